/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES: which devices a process gets, in which order, and what it gets for lists that name none or one twice. The environment is
 * read once, so each case has its own process. Ours has two devices here, made from one; the cases also hold for NVIDIA's driver with one. */
#include "api_test.h"

#include <ctype.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 2, UUID_TEXT = 41 };

struct devices {
    int result; /* of cuInit */
    int count;
    CUuuid uuids[MOST];
};

static struct devices all; /* without the variable */

static struct devices devices_of(const char *list_or_null)
{
    struct devices found = {0};
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("CUTTLE_DEVICE", "0,0", 1);
        unsetenv("CUDA_VISIBLE_DEVICES");
        if (list_or_null)
            setenv("CUDA_VISIBLE_DEVICES", list_or_null, 1);
        found.result = (int)cuInit(0);
        if (!found.result && cuDeviceGetCount(&found.count) != CUDA_SUCCESS)
            _exit(1);
        for (int i = 0; i < found.count && i < MOST; i++)
            if (cuDeviceGetUuid_v2(&found.uuids[i], i) != CUDA_SUCCESS)
                _exit(1);
        _exit(write(ends[1], &found, sizeof found) != sizeof found);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &found, sizeof found), sizeof found);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return found;
}

static void print_uuid(const CUuuid *uuid, char out[UUID_TEXT])
{
    int length = snprintf(out, UUID_TEXT, "GPU-");

    for (int i = 0; i < 16; i++)
        length += snprintf(out + length, (size_t)(UUID_TEXT - length), "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                           (unsigned char)uuid->bytes[i]);
}

/* Whether the process sees just these of all devices; numbers that do not exist end the list. */
static bool sees(const char *list, int error, const int *numbers, int n)
{
    const struct devices found = devices_of(list);
    int expected = 0;

    while (expected < n && numbers[expected] < all.count)
        expected++;
    if (!error && !expected)
        error = CUDA_ERROR_NO_DEVICE;
    if (found.result != error || (!error && found.count != expected)) {
        print_error("CUDA_VISIBLE_DEVICES=%s: error %d and %d devices, expected error %d and %d devices\n", list, found.result, found.count,
                    error, expected);
        return false;
    }
    for (int i = 0; !error && i < expected; i++)
        if (memcmp(&found.uuids[i], &all.uuids[numbers[i]], sizeof(CUuuid)) != 0) {
            print_error("CUDA_VISIBLE_DEVICES=%s: device %d is another one\n", list, i);
            return false;
        }
    return true;
}

static void numbers(void **state)
{
    static const struct {
        const char *list;
        int error, numbers[MOST], n;
    } cases[] = {
        {"0", 0, {0}, 1},
        {"1", 0, {1}, 1},
        {"0,1", 0, {0, 1}, 2},
        {"1,0", 0, {1, 0}, 2},
        {"0,2", 0, {0}, 1},
        {"0,-1,1", 0, {0}, 1},
        {"-1,0", 0, {0}, 0},
        {"-1", 0, {0}, 0},
        {"", 0, {0}, 0},
        {" 0", 0, {0}, 1},
        {"0 ", 0, {0}, 1},
        {"+0", 0, {0}, 1},
        {"00", 0, {0}, 1},
        {"0x1", 0, {0}, 1},
        {"0a", 0, {0}, 1},
        {"0,", 0, {0}, 1},
        {"0,,1", 0, {0}, 1},
        {",0", 0, {0}, 0},
        {"a", 0, {0}, 0},
        {"0,a,1", 0, {0}, 1},
        {"NoDevFiles", 0, {0}, 0},
        {"0,0", CUDA_ERROR_INVALID_DEVICE, {0}, 0},
        {"99999999999999999999", 0, {0}, 0},
    };
    unsigned wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        wrong += !sees(cases[i].list, cases[i].error, cases[i].numbers, cases[i].n);
    assert_int_equal(wrong, 0);
}

static void uuids(void **state)
{
    const int first = 0, last = all.count - 1;
    char uuid[UUID_TEXT], upper[UUID_TEXT], list[3 * UUID_TEXT];
    unsigned wrong = 0;

    (void)state;
    print_uuid(&all.uuids[last], uuid);
    for (size_t i = 0; i < UUID_TEXT; i++)
        upper[i] = (char)toupper((unsigned char)uuid[i]);
    wrong += !sees(uuid, 0, &last, 1);
    wrong += !sees(upper, 0, &last, 1);
    snprintf(list, sizeof list, "gpu-%s", uuid + 4);
    wrong += !sees(list, 0, NULL, 0);
    snprintf(list, sizeof list, "%s,%s", uuid, uuid);
    wrong += !sees(list, CUDA_ERROR_INVALID_DEVICE, NULL, 0);
    snprintf(list, sizeof list, "%s,0", uuid); /* words of the other kind end the list */
    wrong += !sees(list, 0, &last, 1);
    snprintf(list, sizeof list, "0,%s", uuid);
    wrong += !sees(list, 0, &first, 1);
    wrong += !sees("GPU-", 0, NULL, 0);
    wrong += !sees("MIG-0", 0, NULL, 0);
    snprintf(list, sizeof list, "%s0", uuid); /* one digit too many */
    wrong += !sees(list, 0, NULL, 0);
    assert_int_equal(wrong, 0);
}

/* The two devices that are made from one differ in the last digits. */
static void beginnings_of_uuids(void **state)
{
    const int first = 0;
    char uuid[UUID_TEXT], beginning[UUID_TEXT];
    unsigned wrong = 0;

    (void)state;
    print_uuid(&all.uuids[0], uuid);
    for (int length = 5; length < UUID_TEXT - 1; length += 5) {
        snprintf(beginning, sizeof beginning, "%.*s", length, uuid);
        wrong += !sees(beginning, 0, &first, all.count == 1); /* that of two devices names none */
    }
    assert_int_equal(wrong, 0);
}

static int list_all(void **state)
{
    (void)state;
    all = devices_of(NULL);
    return all.result || all.count < 1 || all.count > MOST;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers), cmocka_unit_test(uuids), cmocka_unit_test(beginnings_of_uuids)};

    return cmocka_run_group_tests_name("visible_devices", tests, list_all, NULL);
}
