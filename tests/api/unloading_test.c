/* SPDX-License-Identifier: Apache-2.0 */
/* A module is unloaded while another thread launches one of its kernels: the kernel exists until that launch is complete. The backend is
 * the real one, but it records the launch only when the other thread is unloading, and after a wait that the test ends. */
#include "api_test.h"

#include "api_kernels.h"

#include "core/device/device.h"
#include "core/base/process.h"
#include "core/device/context.h"
#include "core/stream/stream.h"

#include <pthread.h>
#include <unistd.h>

enum { BLOCK = 64, PATIENCE_S = 60, ABOUT_TO_WAIT_US = 100000 };

/* ---- a backend that checks whether a destroyed kernel is still needed by a launch ---- */

static const struct ct_backend *real;
static struct ct_backend watched;
static struct ct_kernel_calls kernels;
static struct ct_queue_calls queues;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_held, is_launching;
static struct ct_timeline *timeline; /* the launch runs when its value is 1 */
static struct ct_queue *launch_queue;
static uint64_t launch_point;
static struct ct_kernel_image *launched;
static unsigned early; /* kernels destroyed before their launch was complete */

static CUresult launch_held(struct ct_queue *queue, const struct ct_launch *launch)
{
    CUresult r;

    if (!timeline) /* a probe, before the test's launch */
        return real->queues->launch(queue, launch);
    pthread_mutex_lock(&lock);
    if (is_held) {
        is_launching = true;
        pthread_cond_broadcast(&changed);
        while (is_held)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    if ((r = real->queues->wait(queue, timeline, 1)) != CUDA_SUCCESS || (r = real->queues->launch(queue, launch)) != CUDA_SUCCESS)
        return r;
    launch_queue = queue;
    launch_point = real->queues->point(queue);
    launched = launch->kernel;
    return r;
}

static void destroy_watched(struct ct_kernel_image *kernel)
{
    uint64_t completed = 0;

    if (kernel && kernel == launched && (real->queues->completed(launch_queue, &completed) != CUDA_SUCCESS || completed < launch_point))
        early++;
    real->kernels->destroy(kernel);
}

static void watch_backend(void)
{
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    real = ct_process.devices[0].backend;
    watched = *real;
    kernels = *real->kernels;
    kernels.destroy = destroy_watched;
    queues = *real->queues;
    queues.launch = launch_held;
    watched.kernels = &kernels;
    watched.queues = &queues;
    ct_process.devices[0].backend = &watched;
    ct_process.devices[0].primary->backend = &watched;
}

/* ---- the test ---- */

struct fixture {
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
    CUstream stream;
    CUresult launched, unloaded;
};

static void change(bool *value, bool now)
{
    pthread_mutex_lock(&lock);
    *value = now;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(const bool *value)
{
    pthread_mutex_lock(&lock);
    while (!*value)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void *launch(void *argument)
{
    struct fixture *f = argument;
    uint32_t a = 1, count = BLOCK;
    void *params[] = {&f->memory, &a, &count};

    f->launched = cuCtxSetCurrent(f->context);
    if (f->launched == CUDA_SUCCESS)
        f->launched = cuLaunchKernel(f->function, 1, 1, 1, BLOCK, 1, 1, 0, f->stream, params, NULL);
    return NULL;
}

static void *unload(void *argument)
{
    struct fixture *f = argument;

    f->unloaded = cuCtxSetCurrent(f->context);
    if (f->unloaded == CUDA_SUCCESS)
        f->unloaded = cuModuleUnload(f->module);
    return NULL;
}

static void test_a_launch_that_is_being_recorded_keeps_its_kernel(void **state)
{
    struct fixture f = {.context = *state};
    pthread_t launcher, unloader;
    uint32_t word;

    alarm(PATIENCE_S);
    ok(cuModuleLoadData(&f.module, PTX_HEADER PTX_RAMP));
    ok(cuModuleGetFunction(&f.function, f.module, "ramp"));
    ok(cuFuncLoad(f.function)); /* compiles it, for which the device is probed */
    ok(cuMemAlloc(&f.memory, BLOCK * 4));
    ok(cuStreamCreate(&f.stream, CU_STREAM_NON_BLOCKING));
    ok(real->timelines->create(ct_process.devices[0].primary->backend_device, &timeline));
    is_held = true;
    assert_int_equal(pthread_create(&launcher, NULL, launch, &f), 0);
    await(&is_launching);
    assert_int_equal(pthread_create(&unloader, NULL, unload, &f), 0);
    usleep(ABOUT_TO_WAIT_US);
    change(&is_held, false);
    assert_int_equal(pthread_join(launcher, NULL), 0);
    ok(f.launched);
    usleep(ABOUT_TO_WAIT_US);
    ok(real->timelines->signal(timeline, 1));
    assert_int_equal(pthread_join(unloader, NULL), 0);
    ok(f.unloaded);
    assert_non_null(launched);
    assert_int_equal(early, 0);
    ok(cuStreamSynchronize(f.stream));
    ok(cuMemcpyDtoH(&word, f.memory + 4, sizeof word));
    assert_int_equal(word, 2);
    ok(cuStreamDestroy(f.stream));
    real->timelines->destroy(timeline);
    ok(cuMemFree(f.memory));
    alarm(0);
}

/* A thread has found a stream, and another destroys it before the first records its command: the stream is idle and is not waited for any more,
 * so it takes no command that frees of modules and memory would have to wait for. */
static void test_a_destroyed_stream_takes_no_more_commands(void **state)
{
    struct ct_stream *stream;
    CUstream handle;

    (void)state;
    ok(cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING));
    ok(ct_stream_lookup(handle, &stream));
    ok(cuStreamDestroy(handle));
    gives(CUDA_ERROR_INVALID_HANDLE, ct_stream_begin(stream));
    ct_stream_release(stream);
}

static int set_up(void **state)
{
    watch_backend();
    return with_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_launch_that_is_being_recorded_keeps_its_kernel),
        cmocka_unit_test(test_a_destroyed_stream_takes_no_more_commands),
    };

    return cmocka_run_group_tests(tests, set_up, without_context);
}
