/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that a process gets with CUTTLE_BACKEND and CUTTLE_DEVICE, and what a user is told who gets none, or has given an option a
 * value that it cannot have. The environment is read once, so each case has its own process. */
#include "api_test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static char log_path[] = "/tmp/selection_XXXXXX";           /* where the log of the processes goes */
static char broken_driver[] = "/tmp/selection_XXXXXX.json"; /* half of a description of a Vulkan driver */

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

/* ---- what the user is told ---- */

#define VARIABLES_MAX 4
static const struct telling {
    const char *name;
    const char *variables[VARIABLES_MAX][2];
    bool has_device;
    unsigned lines;
    const char *said[4]; /* texts that the log has */
} tellings[] = {
    {"nothing is wrong", {{"CUTTLE_MATH", ""}}, true, 0, {NULL}},
    {"no such backend", {{"CUTTLE_BACKEND", "cuda"}}, false, 2, {"CUTTLE_BACKEND=cuda", "vulkan opencl"}},
    {"no such device", {{"CUTTLE_DEVICE", "abacus"}}, false, 1, {"CUTTLE_DEVICE=abacus", "0: "}},
    {"one device of two", {{"CUTTLE_DEVICE", "0,abacus"}}, true, 1, {"\"abacus\"", "0: "}},
    {"commas", {{"CUTTLE_DEVICE", ",,"}}, false, 1, {"CUTTLE_DEVICE=,,", "0: "}},
    {"no driver",
     {{"VK_DRIVER_FILES", "/no/such/driver.json"}, {"OCL_ICD_VENDORS", "/no/such/folder"}},
     false,
     1,
     {"VK_DRIVER_FILES=/no/such/driver.json", "VK_ERROR_INCOMPATIBLE_DRIVER", "install", "lavapipe"}},
    {"a broken file of a driver",
     {{"VK_DRIVER_FILES", broken_driver}, {"CUTTLE_BACKEND", "vulkan"}},
     false,
     1,
     {"VK_DRIVER_FILES=", "vkCreateInstance", "CUTTLE_BACKEND=vulkan", "install"}},
    {"no OpenCL runtime",
     {{"OCL_ICD_VENDORS", "/no/such/folder"}, {"CUTTLE_BACKEND", "opencl"}},
     false,
     1,
     {"CUTTLE_BACKEND=opencl", NULL}},
    {"no number", {{"CUTTLE_SPARE_MIB", "lots"}}, true, 1, {"CUTTLE_SPARE_MIB=lots", "number"}},
    {"a number and more", {{"CUTTLE_SPARE_MIB", "64k"}}, true, 1, {"CUTTLE_SPARE_MIB=64k", "number"}},
    {"neither yes nor no", {{"CUTTLE_STRICT", "maybe"}}, true, 1, {"CUTTLE_STRICT=maybe", "0 1"}},
    {"no such word", {{"CUTTLE_MATH", "quick"}}, true, 1, {"CUTTLE_MATH=quick", "fast exact"}},
    {"several", {{"CUTTLE_MATH", "quick"}, {"CUTTLE_SYNC", "x"}}, true, 2, {"CUTTLE_MATH=quick", "CUTTLE_SYNC=x"}},
    {"a word in other letters", {{"CUTTLE_SYNC", "Predicated"}}, true, 0, {NULL}},
    {"no such level", {{"CUTTLE_LOG", "loud"}}, true, 1, {"CUTTLE_LOG=loud", "debug"}},
};

/* cuInit twice: what failed is reported once. */
static bool finds_device(const struct telling *telling)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        CUresult r;

        unsetenv("CUTTLE_LOG");
        setenv("CUTTLE_LOG_FILE", log_path, 1);
        for (int i = 0; i < VARIABLES_MAX && telling->variables[i][0]; i++)
            setenv(telling->variables[i][0], telling->variables[i][1], 1);
        r = cuInit(0);
        _exit(cuInit(0) != r ? 99 : r == CUDA_SUCCESS ? 0 : r == CUDA_ERROR_NO_DEVICE ? 1 : 98);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 0, 1);
    return WEXITSTATUS(status) == 0;
}

static bool is_told(const struct telling *telling)
{
    char text[16384];
    unsigned lines = 0;
    bool told = true;
    int file = open(log_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(file, text, sizeof text - 1);

    assert_true(file >= 0 && n >= 0);
    close(file);
    text[n] = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    for (int i = 0; i < 4 && telling->said[i]; i++)
        told &= strstr(text, telling->said[i]) != NULL;
    if (!told || lines != telling->lines)
        print_error("%s: %u lines: %s\n", telling->name, lines, text);
    return told && lines == telling->lines;
}

static void what_is_wrong_is_told_by_default(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof tellings / sizeof *tellings; i++) {
        assert_int_equal(truncate(log_path, 0), 0);
        if (finds_device(&tellings[i]) != tellings[i].has_device) {
            print_error("%s: %s\n", tellings[i].name, tellings[i].has_device ? "no device" : "a device");
            wrong++;
        }
        wrong += !is_told(&tellings[i]);
    }
    assert_int_equal(wrong, 0);
}

static int make_files(void **state)
{
    const char half[] = "{\"ICD\": {";
    int log = mkstemp(log_path), driver = mkstemps(broken_driver, 5);

    (void)state;
    return log < 0 || close(log) != 0 || write(driver, half, sizeof half - 1) != sizeof half - 1 || close(driver) != 0 ? -1 : 0;
}

static int remove_files(void **state)
{
    (void)state;
    return unlink(log_path) != 0 || unlink(broken_driver) != 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_devices_by_default),           cmocka_unit_test(devices_of_one_backend),
        cmocka_unit_test(names_that_nothing_has),           cmocka_unit_test(devices_by_number_and_by_name),
        cmocka_unit_test(what_is_wrong_is_told_by_default),
    };

    if (!on_cuttle())
        return 77; /* the selection of devices is specific to us */
    return cmocka_run_group_tests_name("selection", tests, make_files, remove_files);
}
