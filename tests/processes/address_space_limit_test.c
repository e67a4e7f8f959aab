/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on the address space (ulimit -v). Drivers of CPU devices crash when they cannot map memory, so the library checks that there is
 * enough before it calls them. Each case is a process of its own, in which CUDA works or returns OUT_OF_MEMORY; no signal ends it. */
#include "../api/api_kernels.h"
#include "../api/loaded_module.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

enum { WORKS = 0, REFUSED = 1, OTHERWISE = 2 }; /* exit statuses */

/* Allows this many bytes beyond those that are mapped. */
static void limit_address_space(size_t more)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    struct rlimit limit;

    if (!file || fscanf(file, "%lu", &pages) != 1)
        exit(OTHERWISE);
    fclose(file);
    limit.rlim_cur = limit.rlim_max = pages * (size_t)sysconf(_SC_PAGESIZE) + more;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        exit(OTHERWISE);
}

static void check(CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS)
        return;
    if (r != CUDA_ERROR_OUT_OF_MEMORY)
        fprintf(stderr, "%s: error %d\n", what, (int)r);
    _exit(r == CUDA_ERROR_OUT_OF_MEMORY ? REFUSED : OTHERWISE);
}

static void use_kernel(void)
{
    CUdeviceptr pointer;
    CUmodule loaded;
    CUfunction function;
    unsigned words = 0, a = 7, count = 1000;
    void *params[] = {&pointer, &a, &count};

    check(cuMemAlloc(&pointer, MIB), "cuMemAlloc");
    check(cuModuleLoadData(&loaded, PTX_HEADER PTX_RAMP), "cuModuleLoadData");
    check(cuModuleGetFunction(&function, loaded, "ramp"), "cuModuleGetFunction");
    check(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL), "cuLaunchKernel");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(cuMemcpyDtoH(&words, pointer + 4 * 999, sizeof words), "cuMemcpyDtoH");
    if (words != 7 + 999)
        _exit(OTHERWISE);
}

static void start(void)
{
    CUcontext context;

    check(cuInit(0), "cuInit");
    check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static void limited_before_start(size_t more)
{
    limit_address_space(more);
    start();
    use_kernel();
}

static void limited_before_the_first_kernel(size_t more)
{
    start();
    limit_address_space(more);
    use_kernel();
}

static void limited_while_it_works(size_t more)
{
    start();
    use_kernel();
    limit_address_space(more);
    for (unsigned i = 0; i < 20; i++)
        use_kernel();
}

static const int faults_of_programs[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/* Runs `what` with more and more address space. The largest must be enough. */
static void try_all(void (*what)(size_t more), size_t step, size_t most)
{
    unsigned faults = 0, refused = 0, n = 0;
    int status = -1;

    for (size_t more = 0; more <= most; more += step, n++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            for (size_t i = 0; i < sizeof faults_of_programs / sizeof *faults_of_programs; i++)
                signal(faults_of_programs[i], SIG_DFL); /* cmocka would go on with the next test, in the child */
            alarm(20);
            what(more);
            _exit(WORKS);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) == OTHERWISE) {
            print_error("with %zu MiB: %s %d\n", more / MIB, WIFEXITED(status) ? "status" : "signal",
                        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
            faults++;
        }
        refused += WIFEXITED(status) && WEXITSTATUS(status) == REFUSED;
    }
    print_message("%u of %u refused\n", refused, n);
    assert_int_equal(faults, 0);
    assert_int_equal(status, WORKS);
    assert_in_range(refused, 1, n - 1); /* the limit had an effect */
}

static void start_with_little_memory(void **state)
{
    (void)state;
    try_all(limited_before_start, 100 * MIB, 4000 * MIB);
}

static void compile_with_little_memory(void **state)
{
    (void)state;
    try_all(limited_before_the_first_kernel, 16 * MIB, 400 * MIB);
}

static void work_with_little_memory(void **state)
{
    (void)state;
    try_all(limited_while_it_works, 8 * MIB, 200 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_with_little_memory),
        cmocka_unit_test(compile_with_little_memory),
        cmocka_unit_test(work_with_little_memory),
    };

    if (!on_cuttle())
        return 77;
    return cmocka_run_group_tests_name("address_space_limit", tests, NULL, NULL);
}
