/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that a process gets with CUTTLE_BACKEND and CUTTLE_DEVICE. The environment is read once, so each case has its own process. */
#include "api_test.h"

#include <sys/wait.h>
#include <unistd.h>

/* The result of a child: the number of devices, 100 for CUDA_ERROR_NO_DEVICE, 99 for any other error. */
static int devices_with(const char *backend, const char *device)
{
    int status, count = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        CUresult r;

        setenv("CUTTLE_BACKEND", backend, 1);
        setenv("CUTTLE_DEVICE", device, 1);
        r = cuInit(0);
        if (r == CUDA_SUCCESS && cuDeviceGetCount(&count) != CUDA_SUCCESS)
            count = 0;
        _exit(r == CUDA_ERROR_NO_DEVICE ? 100 : r == CUDA_SUCCESS ? count : 99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The name of device `ordinal`, queried in another process, so that this process does not call cuInit. */
static void name_of(int ordinal, char *name, size_t size)
{
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    memset(name, 0, size);
    if (child == 0) {
        int failed = cuInit(0) != CUDA_SUCCESS || cuDeviceGetName(name, (int)size, ordinal) != CUDA_SUCCESS;

        _exit(failed || write(ends[1], name, size) != (ssize_t)size);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], name, size), size);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void all_devices_by_default(void **state)
{
    (void)state;
    assert_in_range(devices_with("", ""), 1, 50);
}

static int count_of(const char *backend)
{
    int devices = devices_with(backend, "");

    return devices == 100 ? 0 : devices;
}

/* A GPU that both backends reach counts once. */
static void devices_of_one_backend(void **state)
{
    int vulkan = count_of("vulkan"), opencl = count_of("opencl"), all = devices_with("", "");

    (void)state;
    assert_in_range(all, vulkan > opencl ? vulkan : opencl, vulkan + opencl);
    assert_int_equal(count_of("VULKAN"), vulkan);
    assert_int_equal(count_of("OpenCL"), opencl);
}

static void names_that_nothing_has(void **state)
{
    (void)state;
    assert_int_equal(devices_with("no such backend", ""), 100);
    assert_int_equal(devices_with("", "no such device"), 100);
    assert_int_equal(devices_with("", "1000"), 100);
    assert_int_equal(devices_with("", ",,"), 100);
}

static void devices_by_number_and_by_name(void **state)
{
    char name[64], twice[130];

    (void)state;
    assert_int_equal(devices_with("", "0"), 1);
    assert_int_equal(devices_with("", "0,0"), 2); /* each occurrence of a number counts */
    assert_int_equal(devices_with("", "0,0,,0"), 3);
    assert_int_equal(devices_with("", "1000,0"), 1);
    name_of(0, name, sizeof name);
    name[5] = 0;
    for (char *at = name; *at; at++) /* case makes no difference */
        *at = *at >= 'a' && *at <= 'z' ? *at - 32 : *at;
    assert_in_range(devices_with("", name), 1, 50);
    snprintf(twice, sizeof twice, "%s,%s", name, name); /* a name selects each device once */
    assert_int_equal(devices_with("", twice), devices_with("", name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_devices_by_default),
        cmocka_unit_test(devices_of_one_backend),
        cmocka_unit_test(names_that_nothing_has),
        cmocka_unit_test(devices_by_number_and_by_name),
    };

    if (!on_cuttle())
        return 77; /* the selection of devices is specific to us */
    return cmocka_run_group_tests_name("selection", tests, NULL, NULL);
}
