/* SPDX-License-Identifier: Apache-2.0 */
/* The log messages for failed launches: by default a warning with the kernel's name. Many programs check no error, and print the duration
 * of a kernel that never ran. */
#include "api_kernels.h"
#include "loaded_module.h"

#include <unistd.h>

#define THREADS_LIMIT 64 /* of PTX_BOUNDED */

static const char kernels[] = PTX_HEADER PTX_NOTHING PTX_BOUNDED PTX_RAMP;
static char path[] = "/tmp/launch_log_XXXXXX";

static int open_log(void **state)
{
    int file = mkstemp(path);

    if (file < 0 || setenv("CUTTLE_LOG_FILE", path, 1) != 0 || unsetenv("CUTTLE_LOG") != 0)
        return -1;
    close(file);
    return load_module(state, kernels, 4096);
}

static int close_log(void **state)
{
    unlink(path);
    return unload_module(state);
}

/* Returns the log since the last call; the text is valid until the next call. */
static const char *news(void)
{
    static char text[65536];
    static long seen;
    FILE *file = fopen(path, "r");
    size_t n;

    assert_non_null(file);
    assert_int_equal(fseek(file, seen, SEEK_SET), 0);
    n = fread(text, 1, sizeof text - 1, file);
    text[n] = 0;
    seen += (long)n;
    fclose(file);
    return text;
}

static void warns(const char *kernel, const char *reason)
{
    const char *text = news();

    if (on_cuttle() && (!strstr(text, "warn") || !strstr(text, kernel) || !strstr(text, reason))) {
        print_error("the log says: %s\n", text);
        fail();
    }
}

static CUresult launch(const char *name, unsigned grid, unsigned threads, unsigned shared, void **params)
{
    return cuLaunchKernel(get(name), grid, 1, 1, threads, 1, 1, shared, NULL, params, NULL);
}

static void a_launch_that_works_is_silent(void **state)
{
    (void)state;
    news();
    ok(launch("nothing", 1, 1, 0, NULL));
    ok(cuCtxSynchronize());
    assert_string_equal(news(), "");
}

static void each_failing_launch_is_a_warning(void **state)
{
    (void)state;
    news();
    gives(CUDA_ERROR_INVALID_VALUE, launch("nothing", 1, 1, 10 << 20, NULL));
    warns("nothing", "dynamic shared memory");
    gives(CUDA_ERROR_INVALID_VALUE, launch("nothing", 1, 1025, 0, NULL));
    warns("nothing", "");
    gives(CUDA_ERROR_INVALID_VALUE, launch("bounded", 1, THREADS_LIMIT + 1, 0, NULL));
    warns("bounded", "threads");
    gives(CUDA_ERROR_INVALID_VALUE, launch("nothing", 0, 1, 0, NULL));
    warns("nothing", "grid");
    gives(CUDA_ERROR_INVALID_VALUE, launch("ramp", 1, 1, 0, NULL));
    warns("ramp", "parameters");
}

static void other_calls_that_launch_warn_too(void **state)
{
    CUlaunchAttribute wrong = {.id = (CUlaunchAttributeID)1000};
    CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .attrs = &wrong, .numAttrs = 1};

    (void)state;
    news();
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, get("nothing"), NULL, NULL));
    warns("nothing", "attribute");
    gives(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchCooperativeKernel(get("nothing"), 65535, 65535, 65535, 32, 1, 1, 0, NULL, NULL));
    warns("nothing", "cooperative");
    if (on_cuttle()) { /* NVIDIA's driver treats any number as a pointer */
        gives(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(get("ramp"), 1, 1, 1, 1, 1, 1, 0, MADE_UP(CUstream), NULL, NULL));
        warns("ramp", "");
    }
}

static void a_loop_of_failures_is_logged_once(void **state)
{
    (void)state;
    news();
    for (int i = 0; i < 100; i++)
        gives(CUDA_ERROR_INVALID_VALUE, launch("ramp", 1, 1, 10 << 20, NULL));
    warns("ramp", "dynamic shared memory");
    gives(CUDA_ERROR_INVALID_VALUE, launch("ramp", 1, 1, 10 << 20, NULL));
    assert_string_equal(news(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_that_works_is_silent),
        cmocka_unit_test(each_failing_launch_is_a_warning),
        cmocka_unit_test(other_calls_that_launch_warn_too),
        cmocka_unit_test(a_loop_of_failures_is_logged_once),
    };

    return cmocka_run_group_tests(tests, open_log, close_log);
}
