/* SPDX-License-Identifier: Apache-2.0 */
/* While a driver compiles a kernel in one thread, which may take a minute, calls of other threads return, in other streams and contexts as
 * well as in the same ones. The backend here is the real one, but its compiler does not return before the test has made all those calls: if
 * one of them waited for the compiler, the test would never end. */
#include "api_test.h"

#include "api_kernels.h"

#include "core/device/device.h"
#include "core/base/process.h"
#include "core/device/context.h"

#include <pthread.h>
#include <unistd.h>

enum { PATIENCE_S = 60, BLOCK = 64 };

/* ---- a backend whose compiler waits ---- */

static const struct ct_backend *real;
static struct ct_backend slow;
static struct ct_kernel_calls slow_kernels;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_held, is_compiling;
static pthread_t slow_thread;

/* Only in the thread that is to be slow, and only during the test. */
static void wait_in_compiler(void)
{
    pthread_mutex_lock(&lock);
    if (is_held && pthread_equal(pthread_self(), slow_thread)) {
        is_compiling = true;
        pthread_cond_broadcast(&changed);
        while (is_held)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static CUresult create_slowly(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *kernel,
                              struct ct_kernel_image **out)
{
    wait_in_compiler();
    return real->kernels->create(device, name, kernel, out);
}

static CUresult prepare_slowly(const struct ct_launch *launch, struct ct_kernel_variant **out)
{
    wait_in_compiler();
    return real->kernels->prepare(launch, out);
}

static void replace_backend(void)
{
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    real = ct_process.devices[0].backend;
    slow = *real;
    slow_kernels = *real->kernels;
    slow_kernels.create = create_slowly;
    slow_kernels.prepare = real->kernels->prepare ? prepare_slowly : NULL;
    slow.kernels = &slow_kernels;
    ct_process.devices[0].backend = &slow;
    ct_process.devices[0].primary->backend = &slow;
}

/* ---- the test ---- */

struct fixture {
    CUcontext context;
    CUfunction compiled, slow; /* the same kernel in two modules, or one kernel */
    unsigned slow_threads;     /* size of a block of the slow launch */
    CUdeviceptr memory;
    CUstream busy; /* the slow launch's */
    CUresult result;
};

static CUresult launch(CUfunction function, CUstream stream, CUdeviceptr memory, unsigned threads)
{
    uint32_t a = 1, count = threads;
    void *params[] = {&memory, &a, &count};

    return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, params, NULL);
}

static void *launch_slowly(void *argument)
{
    struct fixture *f = argument;

    f->result = cuCtxSetCurrent(f->context);
    if (f->result == CUDA_SUCCESS)
        f->result = launch(f->slow, f->busy, f->memory, f->slow_threads);
    return NULL;
}

static void call_much(struct fixture *f, CUstream other)
{
    CUcontext context;
    CUstream stream;
    CUevent event;
    CUmodule module;
    CUdeviceptr memory;
    uint32_t words[64] = {0};

    ok(cuStreamCreate(&stream, 0));
    ok(cuEventCreate(&event, 0));
    ok(launch(f->compiled, stream, f->memory, BLOCK));
    ok(launch(f->compiled, NULL, f->memory, BLOCK)); /* the legacy stream waits for recording in all other streams */
    ok(launch(f->compiled, f->busy, f->memory, BLOCK));
    ok(cuEventRecord(event, f->busy));
    ok(cuStreamWaitEvent(stream, event, 0));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamSynchronize(f->busy));
    ok(cuCtxSynchronize());
    ok(cuMemAlloc(&memory, 1 << 20));
    ok(cuMemcpyHtoDAsync(memory, words, sizeof words, other));
    ok(cuMemsetD32(memory, 5, 64));
    ok(cuMemcpyDtoH(words, memory, sizeof words));
    assert_int_equal(words[63], 5);
    ok(cuMemFree(memory));
    ok(cuModuleLoadData(&module, PTX_HEADER PTX_NOTHING));
    ok(cuModuleUnload(module));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(stream));
    ok(create_context(&context, 0));
    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamDestroy(stream));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(f->context));
}

/* From the time when the slow launch is in the compiler to the end of all other calls. */
static void call_while_it_compiles(struct fixture *f, CUstream other)
{
    alarm(PATIENCE_S);
    pthread_mutex_lock(&lock);
    is_held = true;
    is_compiling = false;
    assert_int_equal(pthread_create(&slow_thread, NULL, launch_slowly, f), 0);
    while (!is_compiling)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    call_much(f, other);
    pthread_mutex_lock(&lock);
    is_held = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    assert_int_equal(pthread_join(slow_thread, NULL), 0);
    alarm(0);
}

static void load(CUmodule *out_module, CUfunction *out_function)
{
    ok(cuModuleLoadData(out_module, PTX_HEADER PTX_RAMP));
    ok(cuModuleGetFunction(out_function, *out_module, "ramp"));
}

static void check(CUcontext context, bool is_new_kernel)
{
    struct fixture f = {.context = context, .slow_threads = is_new_kernel ? BLOCK : BLOCK / 2};
    CUmodule modules[2];
    CUstream other;

    load(&modules[0], &f.compiled);
    load(&modules[1], &f.slow);
    ok(cuMemAlloc(&f.memory, 4096));
    ok(cuStreamCreate(&f.busy, 0));
    ok(cuStreamCreate(&other, 0));
    ok(launch(f.compiled, other, f.memory, BLOCK));
    if (!is_new_kernel)
        ok(launch(f.slow, other, f.memory, BLOCK));
    call_while_it_compiles(&f, other);
    ok(f.result);
    ok(cuStreamSynchronize(f.busy));
    ok(cuStreamDestroy(f.busy));
    ok(cuStreamDestroy(other));
    ok(cuMemFree(f.memory));
    for (int i = 0; i < 2; i++)
        ok(cuModuleUnload(modules[i]));
}

static void test_calls_go_on_while_a_kernel_is_compiled(void **state)
{
    check(*state, true);
}

/* Vulkan's drivers compile a kernel for each block shape. */
static void test_calls_go_on_while_it_is_compiled_for_another_block(void **state)
{
    if (!real->kernels->prepare)
        skip();
    check(*state, false);
}

static int set_up(void **state)
{
    replace_backend();
    return with_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_go_on_while_a_kernel_is_compiled),
        cmocka_unit_test(test_calls_go_on_while_it_is_compiled_for_another_block),
    };

    return cmocka_run_group_tests(tests, set_up, without_context);
}
