/* SPDX-License-Identifier: Apache-2.0 */
/* Processes get compiled kernels from the disk cache: one that runs the same kernels as an earlier one compiles none of them, and has the same
 * results. Each process is this program with the argument "use"; what it did is in its log. */
#include "../api/api_kernels.h"
#include "../api/loaded_module.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNELS 5 /* in different forms, one of them for cooperative launches if the device has these */
#define THREADS 64

static const char kernels[] = PTX_HEADER PTX_RAMP PTX_SHARED("shares", 1024) PTX_DYNAMIC PTX_COUNTED PTX_MANY;
/* The same, with one number changed. */
static const char changed_kernels[] = PTX_HEADER PTX_RAMP PTX_SHARED("shares", 2048) PTX_DYNAMIC PTX_COUNTED PTX_MANY;

/* The compiler warns about an instruction that no device has. The thread that gets there traps; none does here. */
static const char warned_kernels[] =
    PTX_HEADER ".visible .entry counts(.param .u64 out)\n{\n    .reg .pred %p;\n    .reg .b32 %r<4>;\n    .reg .b64 %d<4>;\n"
               "    ld.param.u64 %d1, [out];\n    mov.u32 %r1, %ntid.y;\n    setp.gt.u32 %p, %r1, 1;\n    mov.u32 %r2, 5;\n"
               "    @%p mov.u32 %r2, %pm0;\n    st.global.u32 [%d1], %r2;\n    ret;\n}\n";

/* ---- a process that uses kernels ---- */

static bool run(const char *name, unsigned x, unsigned y, unsigned z, unsigned shared, void **params)
{
    CUfunction function;

    return cuMemsetD32(out, 0, THREADS) == CUDA_SUCCESS && cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS &&
           cuLaunchKernel(function, 1, 1, 1, x, y, z, shared, NULL, params, NULL) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS;
}

static bool run_together(void **params)
{
    CUfunction function;
    int is_supported = 0;

    if (cuDeviceGetAttribute(&is_supported, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0) != CUDA_SUCCESS || !is_supported)
        return true;
    return cuModuleGetFunction(&function, module, "ramp") == CUDA_SUCCESS &&
           cuLaunchCooperativeKernel(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, params) == CUDA_SUCCESS &&
           cuCtxSynchronize() == CUDA_SUCCESS;
}

static bool out_is(unsigned first, int step, unsigned count)
{
    unsigned words[THREADS];

    if (cuMemcpyDtoH(words, out, sizeof words) != CUDA_SUCCESS)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (words[i] != first + (unsigned)((int)i * step))
            return false;
    return true;
}

static int use_cuda(const char *ptx)
{
    static unsigned words[996];
    unsigned a = 1000, count = THREADS, index = 700;
    void *state, *ramp[] = {&out, &a, &count}, *many[] = {&out, &index, words};

    for (unsigned i = 0; i < 996; i++)
        words[i] = i * 7;
    if (load_module(&state, ptx, 4096) != 0 || !run("ramp", THREADS, 1, 1, 0, ramp) || !out_is(1000, 1, THREADS))
        return 1;
    a = 5000;
    if (!run_together(ramp) || !(out_is(5000, 1, THREADS) || out_is(1000, 1, THREADS)))
        return 2;
    if (!run("shares", 1, 1, 1, 0, ramp) || !out_is(77, 0, 1) || !run("reverse", THREADS, 1, 1, 4 * THREADS, ramp) ||
        !out_is(THREADS - 1, -1, THREADS))
        return 3;
    if (!run("counted", 8, 4, 2, 0, ramp) || !out_is(64, 0, 1) || !run("many", 1, 1, 1, 0, many) || !out_is(7 * 700, 0, 1))
        return 4;
    return unload_module(&state) == 0 ? 0 : 5;
}

static int compile_with_warning(void)
{
    CUfunction function;
    void *state;
    int registers;

    if (load_module(&state, warned_kernels, 4096) != 0 || cuModuleGetFunction(&function, module, "counts") != CUDA_SUCCESS ||
        cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function) != CUDA_SUCCESS)
        return 1;
    return unload_module(&state) == 0 ? 0 : 2;
}

/* ---- those that start it ---- */

static char folder[] = "/tmp/cached_kernels_XXXXXX"; /* with logs, and cuttle/ */

static pid_t start(unsigned number, const char *what, const char *disable)
{
    const pid_t child = fork();
    char log[128];

    if (child == 0) {
        snprintf(log, sizeof log, "%s/log-%u", folder, number);
        setenv("XDG_CACHE_HOME", folder, 1);
        setenv("CUDA_CACHE_DISABLE", disable, 1);
        setenv("CUTTLE_LOG", "debug", 1);
        setenv("CUTTLE_LOG_FILE", log, 1);
        execl("/proc/self/exe", "cached_kernels", what, (char *)NULL);
        _exit(100);
    }
    return child;
}

static void finish(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* What a process got from the cache, by its log. */
struct hits {
    unsigned kernels;    /* of our compiler */
    unsigned of_drivers; /* what a driver made of them */
    unsigned rules;      /* how devices grant addresses */
    unsigned warnings;   /* of our compiler */
};

/* Removes the log. */
static struct hits hits_of(unsigned number)
{
    struct hits hits = {0};
    char path[128], line[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/log-%u", folder, number);
    assert_non_null(file = fopen(path, "r"));
    while (fgets(line, sizeof line, file)) {
        hits.warnings += strstr(line, "is not supported") != NULL;
        if (!strstr(line, "comes from the disk cache"))
            continue;
        hits.kernels += strstr(line, ": function: kernel ") != NULL;
        hits.of_drivers += strstr(line, ": kernel: the ") != NULL;
        hits.rules += strstr(line, ": the address rule comes") != NULL;
    }
    fclose(file);
    unlink(path);
    return hits;
}

static struct hits use(const char *what, const char *disable)
{
    finish(start(0, what, disable));
    return hits_of(0);
}

/* The form of a kernel for cooperative launches may be the same for the driver as the other one, and is then found by the process itself. */
static void expect_none(struct hits hits)
{
    assert_int_equal(hits.kernels, 0);
    assert_in_range(hits.of_drivers, 0, 1);
}

/* Flips a bit in the middle of each file, or counts them. */
static unsigned visit_entries(const char *prefix, bool flips)
{
    char path[128];
    const struct dirent *entry;
    unsigned count = 0;
    DIR *listing;

    snprintf(path, sizeof path, "%s/cuttle", folder);
    listing = opendir(path);
    while (listing && (entry = readdir(listing))) {
        struct stat status;
        char byte;
        int file;

        if (*entry->d_name == '.' || strncmp(entry->d_name, prefix, strlen(prefix)))
            continue;
        count++;
        if (!flips)
            continue;
        file = openat(dirfd(listing), entry->d_name, O_RDWR);
        assert_true(file >= 0 && fstat(file, &status) == 0 && pread(file, &byte, 1, status.st_size / 2) == 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(file, &byte, 1, status.st_size / 2), 1);
        close(file);
    }
    if (listing)
        closedir(listing);
    return count;
}

/* Drivers whose code is not cached have no such files. */
static void expect_all(struct hits hits, unsigned kernels)
{
    assert_int_equal(hits.kernels, kernels);
    if (visit_entries("program-", false))
        assert_true(hits.of_drivers >= kernels);
}

static void a_later_process_compiles_nothing(void **state)
{
    unsigned kernels, all;

    (void)state;
    expect_none(use("use", "0"));
    kernels = visit_entries("spirv-", false);
    all = visit_entries("", false);
    assert_in_range(kernels, KERNELS, KERNELS + 1);
    expect_all(use("use", "0"), kernels);
    assert_int_equal(visit_entries("", false), all);
}

static void damaged_entries_are_replaced(void **state)
{
    const unsigned kernels = visit_entries("spirv-", false), all = visit_entries("", false);

    (void)state;
    assert_int_equal(visit_entries("", true), all);
    expect_none(use("use", "0"));
    expect_all(use("use", "0"), kernels);
    assert_int_equal(visit_entries("", false), all);
}

static void it_can_be_disabled(void **state)
{
    const unsigned all = visit_entries("", false);

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct hits hits = use(i ? "change" : "use", "1");

        assert_int_equal(hits.kernels + hits.of_drivers, 0);
    }
    assert_int_equal(visit_entries("", false), all);
}

/* Any change in a module makes its kernels others. What they become for the driver may be the same. */
static void other_code_is_compiled(void **state)
{
    const unsigned kernels = visit_entries("spirv-", false);

    (void)state;
    assert_int_equal(use("change", "0").kernels, 0);
    assert_int_equal(visit_entries("spirv-", false), 2 * kernels);
    expect_all(use("change", "0"), kernels);
    expect_all(use("use", "0"), kernels);
}

/* So does another build of the library: this program is linked with the library's objects, and so has a build ID of its own. */
static const char *other_program;

/* What a driver made of them is found, if it depends on the SPIR-V and not on the build, and both builds make the same SPIR-V. */
static void other_builds_compile(void **state)
{
    const unsigned kernels = visit_entries("spirv-", false) / 2;
    char command[512];

    (void)state;
    snprintf(command, sizeof command, "CUDA_CACHE_DISABLE=0 XDG_CACHE_HOME=%s CUTTLE_LOG=debug CUTTLE_LOG_FILE=%s/log-0 %s use", folder,
             folder, other_program);
    assert_int_equal(system(command), 0);
    assert_int_equal(hits_of(0).kernels, 0);
    assert_int_equal(system(command), 0);
    expect_all(hits_of(0), kernels);
}

static void warnings_are_repeated(void **state)
{
    const unsigned kernels = visit_entries("spirv-", false);

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct hits hits = use("warn", "0");

        assert_int_equal(hits.warnings, 1);
        assert_int_equal(hits.kernels, 0);
        assert_int_equal(visit_entries("spirv-", false), kernels);
    }
}

/* Windows are where a process has its memory: of no use to others (Vulkan only). */
static void code_for_windows_is_not_kept(void **state)
{
    const unsigned kernels = visit_entries("spirv-", false);
    const char *backend = getenv("CUTTLE_BACKEND");

    (void)state;
    if (backend && !strcmp(backend, "opencl"))
        skip();
    assert_int_equal(setenv("CUTTLE_ADDRESS_RULE", "windows", 1), 0);
    expect_none(use("use", "0"));
    expect_none(use("use", "0"));
    assert_int_equal(unsetenv("CUTTLE_ADDRESS_RULE"), 0);
    assert_int_equal(visit_entries("spirv-", false), kernels);
}

/* A rule that a variable asks for is tried, since it may be one that exists only for tests. */
static void trials_of_addresses_are_not_repeated(void **state)
{
    const char *backend = getenv("CUTTLE_BACKEND");
    const bool is_vulkan = !backend || strcmp(backend, "opencl") != 0;
    char command[128];
    unsigned rules;

    (void)state;
    snprintf(command, sizeof command, "rm -r %s/cuttle", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(use("use", "0").rules, 0);
    rules = visit_entries("addresses-", false); /* one for each device */
    assert_in_range(rules, is_vulkan, is_vulkan ? 16 : 0);
    assert_int_equal(use("use", "0").rules, rules);
    assert_int_equal(visit_entries("addresses-", true), rules);
    assert_int_equal(use("use", "0").rules, 0); /* damaged */
    assert_int_equal(use("use", "0").rules, rules);
    assert_int_equal(use("use", "1").rules, 0);
    assert_int_equal(setenv("CUTTLE_ADDRESS_RULE", "own", 1), 0);
    assert_int_equal(use("use", "0").rules, 0);
    assert_int_equal(unsetenv("CUTTLE_ADDRESS_RULE"), 0);
    assert_int_equal(visit_entries("addresses-", false), rules);
}

static void many_at_once(void **state)
{
    enum { PROCESSES = 8 };
    char command[128];
    pid_t children[PROCESSES];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s/cuttle", folder);
    assert_int_equal(system(command), 0);
    for (unsigned i = 0; i < PROCESSES; i++)
        children[i] = start(i, i % 2 ? "change" : "use", "0");
    for (unsigned i = 0; i < PROCESSES; i++)
        finish(children[i]);
    for (unsigned i = 0; i < PROCESSES; i++)
        (void)hits_of(i);
    assert_int_equal(visit_entries("draft-", false), 0);
    expect_all(use("use", "0"), visit_entries("spirv-", false) / 2);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_process_compiles_nothing),
        cmocka_unit_test(damaged_entries_are_replaced),
        cmocka_unit_test(it_can_be_disabled),
        cmocka_unit_test(other_code_is_compiled),
        cmocka_unit_test(other_builds_compile),
        cmocka_unit_test(warnings_are_repeated),
        cmocka_unit_test(code_for_windows_is_not_kept),
        cmocka_unit_test(trials_of_addresses_are_not_repeated),
        cmocka_unit_test(many_at_once),
    };

    if (argc == 2 && (!strcmp(argv[1], "use") || !strcmp(argv[1], "change")))
        return use_cuda(*argv[1] == 'u' ? kernels : changed_kernels);
    if (argc == 2 && !strcmp(argv[1], "warn"))
        return compile_with_warning();
    if (argc < 2 || !on_cuttle())
        return 77;
    other_program = argv[1];
    unsetenv("CUDA_CACHE_PATH");
    unsetenv("CUDA_CACHE_MAXSIZE");
    return cmocka_run_group_tests_name("cached_kernels", tests, make_folder, remove_folder);
}
