/* SPDX-License-Identifier: Apache-2.0 */
/* Once a kernel of a module has been launched, a thread of the library compiles the module's others (CUTTLE_COMPILE_THREADS=1). It leaves some of
 * them to their launches, says nothing of those that fail, and neither delays launches of other kernels nor outlives the module. The backend
 * is the real one, but its compiler can be held up in that thread. */
#include "api_test.h"

#include "api_kernels.h"

#include "core/base/process.h"
#include "core/device/context.h"
#include "core/device/device.h"

#include <pthread.h>
#include <unistd.h>

#define PTX_FIRST ".visible .entry first()\n{\n    ret;\n}\n"
#define PTX_SECOND ".visible .entry second()\n{\n    ret;\n}\n"
#define PTX_THIRD ".visible .entry third()\n{\n    ret;\n}\n"
/* Not a kernel that any device gets: none has performance counters. */
#define PTX_BAD ".visible .entry bad()\n{\n    .reg .b32 %r;\n    mov.u32 %r, %pm0;\n    ret;\n}\n"
enum { BLOCK = 64, MOST_KERNELS = 64, STORES = 4000 };

static char log_path[] = "/tmp/compile_ahead_XXXXXX";

/* ---- a backend whose compiler can be held up ---- */

static const struct ct_backend *real;
static struct ct_backend watched;
static struct ct_kernel_calls watched_kernels;
static pthread_t main_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_held, is_compiling;
static unsigned n_prepared_ahead;

static void wait_in_compiler(void)
{
    if (pthread_equal(pthread_self(), main_thread))
        return;
    pthread_mutex_lock(&lock);
    is_compiling = true;
    pthread_cond_broadcast(&changed);
    while (is_held)
        pthread_cond_wait(&changed, &lock);
    is_compiling = false;
    pthread_mutex_unlock(&lock);
}

static CUresult create_watched(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *kernel,
                               struct ct_kernel_image **out)
{
    wait_in_compiler();
    return real->kernels->create(device, name, kernel, out);
}

static CUresult prepare_watched(const struct ct_launch *launch, struct ct_kernel_variant **out)
{
    if (!pthread_equal(pthread_self(), main_thread)) {
        pthread_mutex_lock(&lock);
        n_prepared_ahead += launch->block[0] == BLOCK;
        pthread_mutex_unlock(&lock);
    }
    return real->kernels->prepare(launch, out);
}

static void replace_backend(void)
{
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    main_thread = pthread_self();
    real = ct_process.devices[0].backend;
    watched = *real;
    watched_kernels = *real->kernels;
    watched_kernels.create = create_watched;
    watched_kernels.prepare = real->kernels->prepare ? prepare_watched : NULL;
    watched.kernels = &watched_kernels;
    ct_process.devices[0].backend = &watched;
    ct_process.devices[0].primary->backend = &watched;
}

static void hold(bool hold_up)
{
    pthread_mutex_lock(&lock);
    is_held = hold_up;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_until_compiling(void)
{
    pthread_mutex_lock(&lock);
    while (!is_compiling)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- modules ---- */

static CUfunction function_of(CUmodule module, const char *name)
{
    CUfunction function;

    ok(cuModuleGetFunction(&function, module, name));
    return function;
}

static CUresult launch(CUmodule module, const char *name)
{
    return cuLaunchKernel(function_of(module, name), 1, 1, 1, BLOCK, 1, 1, 0, NULL, NULL, NULL);
}

static bool is_loaded(CUmodule module, const char *name)
{
    CUfunctionLoadingState state;

    ok(cuFuncIsLoaded(&state, function_of(module, name)));
    return state == CU_FUNCTION_LOADING_STATE_LOADED;
}

/* The test's time limit ends it if this never happens. */
static void wait_until_loaded(CUmodule module, const char *name)
{
    while (!is_loaded(module, name))
        usleep(1000);
}

static CUmodule load(const char *ptx)
{
    CUmodule module;

    ok(cuModuleLoadData(&module, ptx));
    return module;
}

static bool log_contains(const char *text)
{
    static char contents[65536];
    FILE *file = fopen(log_path, "r");

    assert_non_null(file);
    contents[fread(contents, 1, sizeof contents - 1, file)] = 0;
    fclose(file);
    return strstr(contents, text) != NULL;
}

/* ---- tests ---- */

static void test_the_other_kernels_are_compiled(void **state)
{
    CUmodule module = load(PTX_HEADER PTX_FIRST PTX_SECOND PTX_THIRD);

    (void)state;
    assert_false(is_loaded(module, "third"));
    n_prepared_ahead = 0;
    ok(launch(module, "second"));
    wait_until_loaded(module, "third");
    wait_until_loaded(module, "first");
    ok(launch(module, "first"));
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(module)); /* waits until the last one is prepared */
    assert_int_equal(n_prepared_ahead, real->kernels->prepare ? 2 : 0);
}

static void test_nothing_is_said_of_a_kernel_that_fails_before_its_launch(void **state)
{
    CUmodule module = load(PTX_HEADER PTX_FIRST PTX_BAD PTX_THIRD);

    (void)state;
    ok(launch(module, "first"));
    wait_until_loaded(module, "third"); /* so `bad` was tried */
    assert_false(is_loaded(module, "bad"));
    assert_false(log_contains("bad"));
    gives(CUDA_ERROR_NOT_SUPPORTED, launch(module, "bad"));
    assert_true(log_contains("kernel bad could not be compiled"));
    ok(cuModuleUnload(module));
}

static void test_a_large_kernel_is_left_to_its_launch(void **state)
{
    char *ptx = malloc(512 + STORES * 40), *end = ptx;
    CUmodule module;

    (void)state;
    assert_non_null(ptx);
    end += sprintf(end, PTX_HEADER PTX_FIRST ".visible .entry large(.param .u64 out)\n{\n.reg .b64 %%d;\nld.param.u64 %%d, [out];\n");
    for (int i = 0; i < STORES; i++)
        end += sprintf(end, "st.volatile.global.u32 [%%d+%d], %d;\n", 4 * i, i);
    strcpy(end, "ret;\n}\n" PTX_THIRD);
    module = load(ptx);
    free(ptx);
    ok(launch(module, "first"));
    wait_until_loaded(module, "third");
    assert_false(is_loaded(module, "large"));
    ok(cuModuleUnload(module));
}

static void test_modules_with_many_kernels_are_libraries(void **state)
{
    char *ptx = malloc(256 + (MOST_KERNELS + 1) * 64), *end = ptx;
    CUmodule many, few = load(PTX_HEADER PTX_FIRST PTX_SECOND);

    (void)state;
    assert_non_null(ptx);
    end += sprintf(end, PTX_HEADER);
    for (int i = 0; i <= MOST_KERNELS; i++)
        end += sprintf(end, ".visible .entry kernel%d()\n{\n    ret;\n}\n", i);
    many = load(ptx);
    free(ptx);
    ok(launch(many, "kernel0"));
    ok(launch(few, "first"));
    wait_until_loaded(few, "second"); /* modules are served in order */
    for (int i = 1; i <= MOST_KERNELS; i++) {
        char name[32];

        snprintf(name, sizeof name, "kernel%d", i);
        assert_false(is_loaded(many, name));
    }
    ok(cuModuleUnload(many));
    ok(cuModuleUnload(few));
}

static void test_a_launch_waits_for_its_own_kernel_only(void **state)
{
    CUmodule module = load(PTX_HEADER PTX_FIRST PTX_SECOND PTX_THIRD);

    (void)state;
    hold(true);
    ok(launch(module, "first"));
    wait_until_compiling(); /* `second` */
    ok(launch(module, "third"));
    ok(cuCtxSynchronize());
    assert_false(is_loaded(module, "second"));
    hold(false);
    ok(launch(module, "second"));
    ok(cuCtxSynchronize());
    ok(cuModuleUnload(module));
}

static void *release_later(void *unused)
{
    (void)unused;
    usleep(100000);
    hold(false);
    return NULL;
}

static void test_unloading_waits_for_the_compiler(void **state)
{
    CUmodule module = load(PTX_HEADER PTX_FIRST PTX_SECOND PTX_THIRD);
    pthread_t thread;

    (void)state;
    hold(true);
    ok(launch(module, "first"));
    wait_until_compiling();
    assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
    ok(cuModuleUnload(module));
    pthread_mutex_lock(&lock);
    assert_false(is_held);
    assert_false(is_compiling);
    pthread_mutex_unlock(&lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static int set_up(void **state)
{
    const int file = mkstemp(log_path);

    if (file < 0 || setenv("CUTTLE_LOG_FILE", log_path, 1) != 0)
        return -1;
    close(file);
    replace_backend();
    return with_context(state);
}

static int tear_down(void **state)
{
    const int r = without_context(state);

    return unlink(log_path) || r;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_other_kernels_are_compiled),
        cmocka_unit_test(test_nothing_is_said_of_a_kernel_that_fails_before_its_launch),
        cmocka_unit_test(test_a_large_kernel_is_left_to_its_launch),
        cmocka_unit_test(test_modules_with_many_kernels_are_libraries),
        cmocka_unit_test(test_a_launch_waits_for_its_own_kernel_only),
        cmocka_unit_test(test_unloading_waits_for_the_compiler),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
