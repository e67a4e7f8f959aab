/* SPDX-License-Identifier: Apache-2.0 */
/* The environment while drivers start (core/device/driver_environment.h): its effect on the application and its threads. lavapipe reads its
 * variable between the set and restore calls and not again after them; with the argument "intel", the same for Intel's OpenCL runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/device/backend.h"
#include "core/device/driver_environment.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "CUTTLE_TEST_OF_THE_ENVIRONMENT"
#define OTHER "CUTTLE_OTHER_TEST_OF_THE_ENVIRONMENT"
#define NEW "CUTTLE_NEW_TEST_OF_THE_ENVIRONMENT"

extern char **environ;

static const struct ct_variable variables[] = {{NAME, "ours", false}, {OTHER, "ours, too", false}};

static void enter(void)
{
    ct_environment_enter(variables, 2);
}

static void expect(const char *name, const char *value)
{
    const char *found = getenv(name);

    if (value)
        assert_string_equal(found ? found : "(not set)", value);
    else
        assert_null(found);
}

static int clean(void **state)
{
    (void)state;
    unsetenv(NAME);
    unsetenv(OTHER);
    unsetenv(NEW);
    return 0;
}

static void test_within_the_bracket_only(void **state)
{
    char **const theirs = environ;

    (void)state;
    enter();
    expect(NAME, "ours");
    expect(OTHER, "ours, too");
    ct_environment_leave();
    expect(NAME, NULL);
    expect(OTHER, NULL);
    assert_ptr_equal(environ, theirs);
}

static void test_what_the_user_has_set_stays(void **state)
{
    (void)state;
    setenv(NAME, "", 1);
    enter();
    expect(NAME, "");
    expect(OTHER, "ours, too");
    ct_environment_leave();
    expect(NAME, "");
    expect(OTHER, NULL);
}

static void test_what_is_replaced_comes_back(void **state)
{
    static const struct ct_variable replaced = {NAME, "ours", true};

    (void)state;
    setenv(NAME, "theirs", 1);
    ct_environment_enter(&replaced, 1);
    expect(NAME, "ours");
    ct_environment_leave();
    expect(NAME, "theirs");
}

static void test_brackets_in_each_other(void **state)
{
    (void)state;
    enter();
    enter();
    ct_environment_leave();
    expect(NAME, "ours");
    ct_environment_leave();
    expect(NAME, NULL);
}

/* The C library modifies existing entries of the environment array in place, and makes a new array for new entries. */
static void test_changes_within_the_bracket_stay(void **state)
{
    (void)state;
    enter();
    setenv(OTHER, "the application's", 1);
    ct_environment_leave();
    expect(NAME, NULL);
    expect(OTHER, "the application's");
    enter();
    setenv(OTHER, "another", 1);
    ct_environment_leave();
    expect(NAME, NULL);
    expect(OTHER, "another");
    enter();
    setenv(NEW, "of the application", 1);
    ct_environment_leave();
    expect(NAME, NULL);
    expect(OTHER, "another");
    expect(NEW, "of the application");
    enter();
    unsetenv(NEW);
    ct_environment_leave();
    expect(NAME, NULL);
    expect(OTHER, "another");
    expect(NEW, NULL);
}

static void test_empty_environment(void **state)
{
    char **const theirs = environ;
    char *none[] = {NULL};

    (void)state;
    environ = none;
    enter();
    expect(NAME, "ours");
    ct_environment_leave();
    expect(NAME, NULL);
    assert_ptr_equal(environ, none);
    environ = NULL;
    enter();
    expect(NAME, "ours");
    ct_environment_leave();
    assert_null(environ);
    environ = theirs;
}

struct reader {
    atomic_bool ends;
    atomic_uint found;
};

static void *read_on(void *user)
{
    struct reader *reader = user;

    while (!atomic_load(&reader->ends))
        atomic_fetch_add(&reader->found, getenv(OTHER) || getenv("PATH") ? 1 : 0);
    return NULL;
}

/* AddressSanitizer would detect an array that was freed while another thread reads it. */
static void test_readers_in_other_threads(void **state)
{
    struct reader reader = {0};
    pthread_t thread;

    (void)state;
    setenv("PATH", "/", 0);
    assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
    for (int i = 0; i < 200 || atomic_load(&reader.found) < 200; i++) {
        enter();
        ct_environment_leave();
    }
    atomic_store(&reader.ends, true);
    pthread_join(thread, NULL);
}

static const char *lavapipe_or_null(void)
{
    const struct ct_device_info *infos;
    unsigned count;

    assert_int_equal(ct_backend_vk.enumerate(&infos, &count), CUDA_SUCCESS);
    for (unsigned i = 0; i < count; i++)
        if (strstr(infos[i].name, "llvmpipe"))
            return infos[i].name;
    return NULL;
}

/* Without AVX its vectors have 128 bits, as its device name shows. Later it reports the value that it read first. */
static void test_lavapipe_reads_it_in_time(void **state)
{
    static const struct ct_variable no_avx = {"GALLIUM_OVERRIDE_CPU_CAPS", "sse4.1", false};
    const char *name;

    (void)state;
    unsetenv(no_avx.name);
    ct_environment_enter(&no_avx, 1);
    name = lavapipe_or_null();
    ct_environment_leave();
    expect(no_avx.name, NULL);
    if (!name)
        skip();
    assert_non_null(strstr(name, "128 bits"));
}

/* ---- Intel's runtime: once it has read the name of a processor that does not exist, it cannot compile kernels ---- */

enum { RUNS, FAILS, NO_DEVICE };

/* The variable is set only while the context is created. */
static int launch_with(const struct ct_variable *variable)
{
    static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdevice device;
    CUresult r;

    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS)
        return NO_DEVICE;
    ct_environment_enter(variable, variable ? 1 : 0);
    r = cuCtxCreate(&context, NULL, 0, device);
    ct_environment_leave();
    if (r == CUDA_SUCCESS)
        r = cuModuleLoadData(&module, text);
    if (r == CUDA_SUCCESS)
        r = cuModuleGetFunction(&function, module, "k");
    if (r == CUDA_SUCCESS)
        r = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    if (r == CUDA_SUCCESS)
        r = cuCtxSynchronize();
    return r == CUDA_SUCCESS ? RUNS : FAILS;
}

/* In a process of its own, since the runtime reads it once. */
static int outcome_with(const struct ct_variable *variable)
{
    const pid_t child = fork();
    int status;

    if (child == 0)
        _exit(launch_with(variable));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_intel_reads_it_in_time(void **state)
{
    static const struct ct_variable no_such = {"CL_CONFIG_CPU_TARGET_ARCH", "no such processor", false};
    int usual;

    (void)state;
    unsetenv(no_such.name);
    usual = outcome_with(NULL);
    if (usual == NO_DEVICE)
        skip();
    assert_int_equal(usual, RUNS);
    assert_int_equal(outcome_with(&no_such), FAILS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest intel[] = {cmocka_unit_test(test_intel_reads_it_in_time)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_within_the_bracket_only, clean, clean),
        cmocka_unit_test_setup_teardown(test_what_the_user_has_set_stays, clean, clean),
        cmocka_unit_test_setup_teardown(test_what_is_replaced_comes_back, clean, clean),
        cmocka_unit_test_setup_teardown(test_brackets_in_each_other, clean, clean),
        cmocka_unit_test_setup_teardown(test_changes_within_the_bracket_stay, clean, clean),
        cmocka_unit_test_setup_teardown(test_empty_environment, clean, clean),
        cmocka_unit_test_setup_teardown(test_readers_in_other_threads, clean, clean),
        cmocka_unit_test(test_lavapipe_reads_it_in_time),
    };

    if (argc > 1 && !strcmp(argv[1], "intel"))
        return cmocka_run_group_tests(intel, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
