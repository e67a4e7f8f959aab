/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of libnvidia-ml.so.1: the text of the helper, running a program with a time limit, and measurements in a made-up sysfs. */
#include "nvml/facts.h"
#include "nvml/helper_run.h"
#include "nvml/processes.h"
#include "nvml/sensors.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TREE WORK_FOLDER "/sysfs"

/* ---- the text of the helper ---- */

static const struct nvml_facts examples[2] = {
    {.name = "a device\nwith two lines", .driver = "d", .uuid = "GPU-1", .is_cpu = 1, .memory_bytes = UINT64_MAX, .capability_major = 7},
    {.name = "", .driver = "", .uuid = "GPU-2", .has_pci = 1, .pci_bus = 0xc1, .memory_bus_bits = 256},
};

/* The caller frees it. */
static char *example_text(void)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    nvml_facts_write(examples, 2, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void facts_are_read_as_written(void **state)
{
    struct nvml_facts facts[NVML_MAX_DEVICES] = {0};
    unsigned count = 0;
    char *text = example_text();

    (void)state;
    assert_true(nvml_facts_read(text, facts, &count));
    assert_int_equal(count, 2);
    assert_string_equal(facts[0].name, "a device with two lines");
    assert_string_equal(facts[0].uuid, "GPU-1");
    assert_true(facts[0].memory_bytes == UINT64_MAX);
    assert_int_equal(facts[0].capability_major, 7);
    assert_string_equal(facts[1].name, "");
    assert_int_equal(facts[1].pci_bus, 0xc1);
    assert_int_equal(facts[1].memory_bus_bits, 256);
    free(text);
}

static void incomplete_text_is_refused(void **state)
{
    struct nvml_facts facts[NVML_MAX_DEVICES];
    char *text = example_text();
    const size_t length = strlen(text);
    unsigned count;

    (void)state;
    for (size_t i = 0; i < length; i++) {
        char *part = strndup(text, i);

        assert_non_null(part);
        assert_false(nvml_facts_read(part, facts, &count));
        free(part);
    }
    free(text);
}

static void other_text_is_refused(void **state)
{
    static const char *const texts[] = {"devices 65\nend\n",      "devices -1\nend\n", "devices 0\n",
                                        "devices 0\nend\nmore\n", "hello\n",           "devices 0 \nend\n"};
    struct nvml_facts facts[NVML_MAX_DEVICES];
    uint64_t free_bytes, total_bytes;
    unsigned count;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[64];

        strcpy(text, texts[i]);
        assert_false(nvml_facts_read(text, facts, &count));
        strcpy(text, texts[i]);
        assert_false(nvml_memory_read(text, &free_bytes, &total_bytes));
    }
    assert_true(nvml_facts_read((char[]){"devices 0\nend\n"}, facts, &count));
    assert_true(nvml_memory_read((char[]){"memory 12 34\nend\n"}, &free_bytes, &total_bytes));
    assert_true(free_bytes == 12 && total_bytes == 34);
    assert_false(nvml_memory_read((char[]){"memory 12\nend\n"}, &free_bytes, &total_bytes));
    assert_false(nvml_memory_read((char[]){"memory 12 34 56\nend\n"}, &free_bytes, &total_bytes));
}

/* ---- running a program ---- */

static nvmlReturn_t run_script(const char *script, int timeout_ms, char *text, size_t size)
{
    return nvml_helper_run("/bin/sh", "-c", script, timeout_ms, text, size);
}

static void output_is_read(void **state)
{
    char text[64];

    (void)state;
    assert_int_equal(run_script("echo one; sleep 0.1; echo two", 10000, text, sizeof text), NVML_SUCCESS);
    assert_string_equal(text, "one\ntwo\n");
    assert_int_equal(run_script("exit 0", 10000, text, sizeof text), NVML_SUCCESS);
    assert_string_equal(text, "");
    assert_int_equal(run_script("cat", 10000, text, sizeof text), NVML_SUCCESS); /* standard input is empty */
    assert_int_equal(run_script("exit 4", 10000, text, sizeof text), NVML_ERROR_DRIVER_NOT_LOADED);
    assert_int_equal(run_script("while :; do echo much; done", 10000, text, sizeof text), NVML_ERROR_DRIVER_NOT_LOADED);
    assert_int_equal(nvml_helper_run("/no/such/program", NULL, NULL, 10000, text, sizeof text), NVML_ERROR_DRIVER_NOT_LOADED);
}

static void a_program_that_hangs_is_killed(void **state)
{
    struct timespec before, after;
    char text[64];

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(run_script("exec sleep 50", 200, text, sizeof text), NVML_ERROR_TIMEOUT);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(after.tv_sec - before.tv_sec < 20);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void the_environment_has_no_visible_devices(void **state)
{
    char text[64];

    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    setenv("CUDA_VISIBLE_DEVICES_OF_OTHERS", "kept", 1);
    assert_int_equal(run_script("echo \"${CUDA_VISIBLE_DEVICES-none}$CUDA_VISIBLE_DEVICES_OF_OTHERS\"", 10000, text, sizeof text),
                     NVML_SUCCESS);
    assert_string_equal(text, "nonekept\n");
    assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "1");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void signals_and_descriptors_stay_here(void **state)
{
    unsigned long long ignored;
    char text[256], names[256];
    sigset_t all, old;
    const int descriptor = dup(STDERR_FILENO); /* without FD_CLOEXEC */

    (void)state;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(run_script("exec grep -E '^Sig(Blk|Ign)' /proc/self/status", 10000, text, sizeof text), NVML_SUCCESS);
    assert_int_equal(run_script("exec ls /proc/self/fd", 10000, names, sizeof names), NVML_SUCCESS);
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGPIPE, SIG_DFL);
    close(descriptor);
    assert_non_null(strstr(text, "SigBlk:\t0000000000000000\n"));
    assert_int_equal(sscanf(strstr(text, "SigIgn:"), "SigIgn: %llx", &ignored), 1);
    assert_int_equal(ignored & 0x7fffffff, 0);  /* glibc's posix_spawn ignores its own signals, 32 and 33 */
    assert_string_equal(names, "0\n1\n2\n3\n"); /* the last one is that of the folder */
}

/* ---- measurements ---- */

/* Makes TREE/bus/pci/devices/0002:c1:0a.0/<file>, and its folders. */
static void make_file(const char *file, const char *content)
{
    char path[1024];
    FILE *out;

    snprintf(path, sizeof path, "%s/bus/pci/devices/0002:c1:0a.0/%s", TREE, file);
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0755);
        *at = '/';
    }
    out = fopen(path, "w");
    assert_non_null(out);
    fputs(content, out);
    assert_int_equal(fclose(out), 0);
}

static void sensors_are_read_from_sysfs(void **state)
{
    const struct nvml_facts facts = {.has_pci = 1, .pci_domain = 2, .pci_bus = 0xc1, .pci_device = 10},
                            without = {.pci_domain = 2, .pci_bus = 0xc1, .pci_device = 10};
    const struct nvml_facts other = {.has_pci = 1, .pci_domain = 2, .pci_bus = 0xc1, .pci_device = 11};
    long long value = -7;

    (void)state;
    assert_int_equal(system("rm -rf " TREE), 0);
    assert_false(nvml_sensor_read(TREE, &facts, NVML_SENSOR_GPU_BUSY, &value));
    make_file("gpu_busy_percent", "37\n");
    make_file("hwmon/hwmon3/temp1_input", "51999\n");
    make_file("hwmon/hwmon3/power1_input", "17000000\n");
    make_file("hwmon/hwmon3/freq1_input", "1500000000\n");
    make_file("numa_node", "-1\n");
    make_file("mem_info_vram_used", "17163091968\n");
    make_file("mem_busy_percent", "garbage\n");
    assert_true(nvml_sensor_read(TREE, &facts, NVML_SENSOR_GPU_BUSY, &value));
    assert_int_equal(value, 37);
    assert_true(nvml_sensor_read(TREE, &facts, NVML_SENSOR_TEMPERATURE, &value));
    assert_int_equal(value, 51);
    assert_true(nvml_sensor_read(TREE, &facts, NVML_SENSOR_POWER, &value)); /* milliwatts, from the second choice */
    assert_int_equal(value, 17000);
    make_file("hwmon/hwmon3/power1_average", "12500000\n");
    assert_true(nvml_sensor_read(TREE, &facts, NVML_SENSOR_POWER, &value));
    assert_int_equal(value, 12500);
    assert_true(nvml_sensor_read(TREE, &facts, NVML_SENSOR_CORE_CLOCK, &value));
    assert_int_equal(value, 1500);
    assert_true(nvml_sensor_read(TREE, &facts, NVML_SENSOR_MEMORY_USED, &value));
    assert_true(value == 17163091968);
    assert_true(nvml_sensor_read(TREE, &facts, NVML_SENSOR_NUMA_NODE, &value));
    assert_true(value == -1);
    value = -7;
    assert_false(nvml_sensor_read(TREE, &facts, NVML_SENSOR_MEMORY_BUSY, &value));
    assert_false(nvml_sensor_read(TREE, &facts, NVML_SENSOR_MEMORY_CLOCK, &value));
    assert_false(nvml_sensor_read(TREE, &without, NVML_SENSOR_GPU_BUSY, &value));
    assert_false(nvml_sensor_read(TREE, &other, NVML_SENSOR_GPU_BUSY, &value));
    assert_true(value == -7);
}

static void host_memory_is_read(void **state)
{
    const char *path = TREE "/bus/pci/devices/0002:c1:0a.0/meminfo";
    uint64_t used = 0;

    (void)state;
    make_file("meminfo", "MemTotal:       1000 kB\nMemFree:         1 kB\nMemAvailable:    400 kB\n");
    assert_true(nvml_host_memory_used(path, &used));
    assert_true(used == 600 * 1024);
    make_file("meminfo", "MemTotal:       1000 kB\n");
    assert_false(nvml_host_memory_used(path, &used));
    assert_false(nvml_host_memory_used(TREE "/none", &used));
    assert_true(nvml_host_memory_used(NVML_MEMINFO, &used));
    assert_true(used > 0);
}

/* ---- processes ---- */

static void processes_are_found_by_the_file_they_map(void **state)
{
    char self[1024];
    unsigned pids[64];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    size_t count, n_found = 0;

    (void)state;
    assert_true(length > 0);
    self[length] = 0;
    count = nvml_processes_of(self, pids, 64);
    assert_true(count >= 1 && count <= 64);
    for (size_t i = 0; i < count; i++)
        n_found += pids[i] == (unsigned)getpid();
    assert_int_equal(n_found, 1);
    assert_int_equal(nvml_processes_of(self, pids, 0), count);
    assert_int_equal(nvml_processes_of(TREE "/none", pids, 64), 0);
    make_file("nvml_parts_test", "another file of the same name");
    assert_int_equal(nvml_processes_of(TREE "/bus/pci/devices/0002:c1:0a.0/nvml_parts_test", pids, 64), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_read_as_written),
        cmocka_unit_test(incomplete_text_is_refused),
        cmocka_unit_test(other_text_is_refused),
        cmocka_unit_test(output_is_read),
        cmocka_unit_test(a_program_that_hangs_is_killed),
        cmocka_unit_test(the_environment_has_no_visible_devices),
        cmocka_unit_test(signals_and_descriptors_stay_here),
        cmocka_unit_test(sensors_are_read_from_sysfs),
        cmocka_unit_test(host_memory_is_read),
        cmocka_unit_test(processes_are_found_by_the_file_they_map),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
