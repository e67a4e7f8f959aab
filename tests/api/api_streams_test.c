/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: order within a stream and between streams, host functions, default streams. A stream is kept busy by a host function that
 * waits. */
#include "api_test.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 20)

/* A gate at which a stream waits until the test opens it. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool reached, open;
};

static void gate_close(struct gate *gate)
{
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, NULL);
    gate->reached = gate->open = false;
}

static void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

static void gate_await_reached(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    while (!gate->reached)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

static void CUDA_CB stand_before(void *user)
{
    struct gate *gate = user;

    pthread_mutex_lock(&gate->mutex);
    gate->reached = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

static void CUDA_CB add_one(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static void create_and_what_it_tells(void **state)
{
    CUcontext context = *state, got = NULL;
    CUstream stream;
    CUdevice device = -1;
    unsigned flags = 99;
    unsigned long long id = 0, other_id = 0;
    int least, greatest, priority = 99, supported = 99;

    ok(cuCtxGetStreamPriorityRange(&least, &greatest));
    ok(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 0));
    assert_int_equal(greatest < least, supported);
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuStreamGetFlags(stream, &flags));
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    ok(cuStreamGetPriority(stream, &priority));
    assert_int_equal(priority, least);
    ok(cuStreamGetCtx(stream, &got));
    assert_ptr_equal(got, context);
    ok(cuStreamGetDevice(stream, &device));
    assert_int_equal(device, 0);
    ok(cuStreamGetId(stream, &id));
    ok(cuStreamGetId(NULL, &other_id));
    assert_int_not_equal(id, other_id);
    ok(cuStreamQuery(stream));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuStreamCreateWithPriority(&stream, 0, greatest - 100)); /* is clamped to the nearest priority */
    ok(cuStreamGetPriority(stream, &priority));
    assert_int_equal(priority, greatest);
    ok(cuStreamGetFlags(stream, &flags));
    assert_int_equal(flags, CU_STREAM_DEFAULT);
    ok(cuStreamDestroy(stream));
    ok(cuStreamGetFlags(NULL, &flags));
    assert_int_equal(flags, CU_STREAM_DEFAULT);
}

static void streams_refuse(void **state)
{
    CUstream stream;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&stream, 0x100));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(NULL));
    ok(cuStreamCreate(&stream, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamGetFlags(stream, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamGetPriority(stream, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamGetCtx(stream, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(stream, NULL, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(stream, NULL, NULL, 0));
    ok(cuStreamDestroy(stream));
}

static void work_of_one_stream_is_in_order(void **state)
{
    CUdeviceptr p;
    CUstream stream;
    unsigned got[4] = {0};

    (void)state;
    ok(cuMemAlloc(&p, BYTES));
    ok(cuStreamCreate(&stream, 0));
    for (unsigned i = 0; i < 200; i++)
        ok(cuMemsetD32Async(p + 4 * (i % 4), i, 1, stream));
    ok(cuMemcpyDtoHAsync(got, p, sizeof got, stream));
    ok(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(got[i], 196 + i);
    ok(cuStreamDestroy(stream));
    ok(cuMemFree(p));
}

static void query_tells_of_work_under_way(void **state)
{
    struct gate gate;
    CUstream stream;

    (void)state;
    gate_close(&gate);
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(stream, stand_before, &gate));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    gate_await_reached(&gate);
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    gate_open(&gate);
    ok(cuStreamSynchronize(stream));
    ok(cuStreamQuery(stream));
    ok(cuStreamDestroy(stream));
}

/* Work after the gate is not executed while the gate is closed, although it was recorded long before. */
static void work_waits_for_host_functions(void **state)
{
    struct gate gate;
    CUstream stream;
    CUdeviceptr p;
    unsigned *pinned;

    (void)state;
    gate_close(&gate);
    ok(cuMemAlloc(&p, 4));
    ok(cuMemAllocHost((void **)&pinned, 4));
    ok(cuMemsetD32(p, 1, 1));
    ok(cuCtxSynchronize()); /* a non-blocking stream would not wait for it */
    *pinned = 0;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(stream, stand_before, &gate));
    ok(cuMemcpyDtoHAsync(pinned, p, 4, stream));
    gate_await_reached(&gate);
    usleep(20000);
    assert_int_equal(*(volatile unsigned *)pinned, 0);
    gate_open(&gate);
    ok(cuStreamSynchronize(stream));
    assert_int_equal(*pinned, 1);
    ok(cuStreamDestroy(stream));
    ok(cuMemFreeHost(pinned));
    ok(cuMemFree(p));
}

static void host_functions_run_once_and_in_order(void **state)
{
    CUstream stream;
    atomic_int count = 0;

    (void)state;
    ok(cuStreamCreate(&stream, 0));
    for (int i = 0; i < 100; i++)
        ok(cuLaunchHostFunc(stream, add_one, &count));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(atomic_load(&count), 100);
    ok(cuStreamDestroy(stream));
}

struct called {
    CUstream stream;
    CUresult status;
    int times;
};

static void CUDA_CB note_call(CUstream stream, CUresult status, void *user)
{
    struct called *called = user;

    called->stream = stream;
    called->status = status;
    called->times++;
}

static void callbacks_get_stream_and_status(void **state)
{
    struct called called = {NULL, CUDA_ERROR_UNKNOWN, 0};
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamAddCallback(stream, note_call, &called, 0));
    ok(cuStreamSynchronize(stream));
    assert_ptr_equal(called.stream, stream);
    assert_int_equal(called.status, CUDA_SUCCESS);
    assert_int_equal(called.times, 1);
    ok(cuStreamDestroy(stream));
}

static void CUDA_CB call_cuda(void *user)
{
    CUdeviceptr p;

    *(CUresult *)user = cuMemAlloc(&p, 16);
}

static void host_functions_may_not_call_cuda(void **state)
{
    CUresult result = CUDA_SUCCESS;
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, 0));
    ok(cuLaunchHostFunc(stream, call_cuda, &result));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(result, CUDA_ERROR_NOT_PERMITTED);
    ok(cuStreamDestroy(stream));
}

static void destroyed_streams_finish_their_work(void **state)
{
    struct gate gate;
    CUstream stream;
    CUdeviceptr p;
    unsigned got = 0;

    (void)state;
    gate_close(&gate);
    ok(cuMemAlloc(&p, 4));
    ok(cuMemsetD32(p, 0, 1));
    ok(cuCtxSynchronize()); /* a memset does not wait for itself, and a non-blocking stream does not wait for the legacy one */
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(stream, stand_before, &gate));
    ok(cuMemsetD32Async(p, 42, 1, stream));
    ok(cuStreamDestroy(stream)); /* returns although the gate is closed */
    gate_open(&gate);
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoH(&got, p, 4));
    assert_int_equal(got, 42);
    ok(cuMemFree(p));
}

/* ---- the legacy default stream ---- */

/* Work recorded in one stream waits for the other one, which waits at its gate. */
static void check_wait(CUstream waiting, CUstream held)
{
    struct gate gate;
    atomic_int count = 0;

    gate_close(&gate);
    ok(cuLaunchHostFunc(held, stand_before, &gate));
    gate_await_reached(&gate);
    ok(cuLaunchHostFunc(waiting, add_one, &count));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    usleep(20000);
    assert_int_equal(atomic_load(&count), 0);
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    gate_open(&gate);
    ok(cuStreamSynchronize(waiting));
    assert_int_equal(atomic_load(&count), 1);
}

static void legacy_stream_waits_for_blocking_streams(void **state)
{
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    check_wait(NULL, stream);
    ok(cuStreamDestroy(stream));
}

static void blocking_streams_wait_for_the_legacy_stream(void **state)
{
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    check_wait(stream, NULL);
    ok(cuStreamDestroy(stream));
}

static void non_blocking_streams_do_not_wait(void **state)
{
    struct gate gate;
    CUstream stream;
    CUdeviceptr p;

    (void)state;
    gate_close(&gate);
    ok(cuMemAlloc(&p, 4));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(NULL, stand_before, &gate));
    gate_await_reached(&gate);
    ok(cuMemsetD32Async(p, 5, 1, stream));
    ok(cuStreamSynchronize(stream)); /* would wait forever if it had to wait for the gate */
    gate_open(&gate);
    ok(cuStreamDestroy(stream));
    ok(cuMemFree(p));
}

/* A thread's own default stream is a blocking stream: it and the legacy stream wait for each other. */
static void own_streams_and_the_legacy_stream_wait_for_each_other(void **state)
{
    static const CUstream order[2][2] = {{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}, {CU_STREAM_PER_THREAD, CU_STREAM_LEGACY}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct gate gate;
        atomic_int count = 0;

        gate_close(&gate);
        ok(cuLaunchHostFunc(order[i][0], stand_before, &gate));
        gate_await_reached(&gate);
        ok(cuLaunchHostFunc(order[i][1], add_one, &count));
        usleep(10000);
        assert_int_equal(atomic_load(&count), 0);
        gives(CUDA_ERROR_NOT_READY, cuStreamQuery(order[i][1]));
        gate_open(&gate);
        ok(cuStreamSynchronize(order[i][1]));
        assert_int_equal(atomic_load(&count), 1);
    }
}

/* Two blocking streams are independent until something is recorded in the legacy stream between them. Only one host function is in flight:
 * several may be executed one after the other, whichever streams they are in. */
static void the_legacy_stream_stands_between(void **state)
{
    struct gate gate;
    CUstream first, second;
    CUdeviceptr words;
    uint32_t seen[2] = {0, 0};

    (void)state;
    gate_close(&gate);
    ok(cuMemAlloc(&words, sizeof seen));
    ok(cuMemsetD32(words, 0, 2));
    ok(cuCtxSynchronize());
    ok(cuStreamCreate(&first, CU_STREAM_DEFAULT));
    ok(cuStreamCreate(&second, CU_STREAM_DEFAULT));
    ok(cuLaunchHostFunc(first, stand_before, &gate));
    gate_await_reached(&gate);
    ok(cuMemsetD32Async(words, 1, 1, second));
    ok(cuStreamSynchronize(second)); /* would wait forever if it waited for the first */
    ok(cuMemsetD32Async(words, 2, 2, NULL));
    ok(cuMemsetD32Async(words, 3, 1, second));
    usleep(10000);
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(second));
    gate_open(&gate);
    ok(cuStreamSynchronize(second));
    ok(cuMemcpyDtoH(seen, words, sizeof seen));
    assert_int_equal(seen[0], 3);
    assert_int_equal(seen[1], 2);
    ok(cuStreamDestroy(first));
    ok(cuStreamDestroy(second));
    ok(cuMemFree(words));
}

static void constants_name_the_default_streams(void **state)
{
    unsigned long long by_null = 0, by_name = 0, own = 0;

    (void)state;
    ok(cuStreamGetId(NULL, &by_null));
    ok(cuStreamGetId(CU_STREAM_LEGACY, &by_name));
    ok(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
    assert_int_equal(by_null, by_name);
    assert_int_not_equal(by_null, own);
    ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    ok(cuStreamQuery(CU_STREAM_LEGACY));
}

struct thread_work {
    CUcontext context;
    unsigned long long id;
    unsigned number;
    bool right;
};

/* Each thread uses its own default stream and a stream that it created. */
static void *work_in_a_thread(void *user)
{
    struct thread_work *work = user;
    CUstream stream;
    CUdeviceptr p;
    bool right;

    right = cuCtxSetCurrent(work->context) == CUDA_SUCCESS && cuStreamGetId(CU_STREAM_PER_THREAD, &work->id) == CUDA_SUCCESS &&
            cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && cuMemAlloc(&p, 4096) == CUDA_SUCCESS;
    for (unsigned i = 0; i < 50 && right; i++) {
        unsigned got[1024], value = work->number << 16 | i;
        CUstream to = i & 1 ? stream : CU_STREAM_PER_THREAD;

        right = cuMemsetD32Async(p, value, 1024, to) == CUDA_SUCCESS && cuMemcpyDtoHAsync(got, p, sizeof got, to) == CUDA_SUCCESS &&
                cuStreamSynchronize(to) == CUDA_SUCCESS;
        for (unsigned k = 0; k < 1024 && right; k++)
            right = got[k] == value;
    }
    work->right = right && cuMemFree(p) == CUDA_SUCCESS && cuStreamDestroy(stream) == CUDA_SUCCESS;
    return NULL;
}

static void threads_have_streams_of_their_own(void **state)
{
    enum { THREADS = 6 };
    struct thread_work work[THREADS];
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        work[i] = (struct thread_work){*state, 0, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, work_in_a_thread, &work[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(work[i].right);
    }
    for (unsigned i = 1; i < THREADS; i++)
        assert_int_not_equal(work[i].id, work[0].id);
}

static void CUDA_CB sleep_us(void *user)
{
    usleep(*(const useconds_t *)user);
}

/* The first ones have the most work. */
static void many_streams_at_once(void **state)
{
    enum { COUNT = 80 };
    useconds_t times[COUNT];
    CUstream streams[COUNT];
    unsigned *pinned;
    CUdeviceptr p;

    (void)state;
    ok(cuMemAlloc(&p, COUNT * 4));
    ok(cuMemAllocHost((void **)&pinned, COUNT * 4));
    for (unsigned i = 0; i < COUNT; i++) {
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        times[i] = 500 * (COUNT - i);
        if (i % 5 == 0) /* each such stream has a thread */
            ok(cuLaunchHostFunc(streams[i], sleep_us, &times[i]));
        ok(cuMemsetD32Async(p + 4 * i, i * i, 1, streams[i]));
        ok(cuMemcpyDtoHAsync(pinned + i, p + 4 * i, 4, streams[i]));
    }
    ok(cuCtxSynchronize());
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(pinned[i], i * i);
        ok(cuStreamDestroy(streams[i]));
    }
    ok(cuMemFreeHost(pinned));
    ok(cuMemFree(p));
}

static void attributes(void **state)
{
    CUstreamAttrValue value;
    CUstream a, b;

    (void)state;
    memset(&value, 0, sizeof value);
    ok(cuStreamCreate(&a, 0));
    ok(cuStreamCreate(&b, 0));
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    ok(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    ok(cuStreamCopyAttributes(b, a));
    memset(&value, 0, sizeof value);
    ok(cuStreamGetAttribute(b, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    assert_int_equal(value.syncPolicy, CU_SYNC_POLICY_YIELD);
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute(b, (CUstreamAttrID)CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    ok(cuStreamGetAttribute(b, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
    ok(cuStreamDestroy(a));
    ok(cuStreamDestroy(b));
}

static void nothing_is_captured(void **state)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, 0));
    ok(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamIsCapturing(stream, NULL));
    ok(cuStreamDestroy(stream));
}

/* A blocking stream that waits for an event, the legacy stream, which waits for the former, and the blocking stream again: the work that
 * the legacy stream waits for is done before the second wait. */
static void waits_to_and_fro_come_to_an_end(void **state)
{
    CUstream gated, blocking;
    struct gate gate;
    CUdeviceptr p;
    CUevent event;

    (void)state;
    gate_close(&gate);
    ok(cuMemAlloc(&p, BYTES));
    ok(cuStreamCreate(&gated, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuLaunchHostFunc(gated, stand_before, &gate));
    ok(cuEventRecord(event, gated));
    ok(cuStreamWaitEvent(blocking, event, 0));
    ok(cuMemsetD8Async(p, 1, BYTES, NULL));
    ok(cuMemsetD8Async(p, 2, BYTES, blocking));
    gate_open(&gate);
    ok(cuStreamSynchronize(blocking));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(blocking));
    ok(cuStreamDestroy(gated));
    ok(cuMemFree(p));
}

static void capture_modes_are_a_threads_own(void **state)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    (void)state;
    ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL); /* at first */
    ok(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (!on_cuttle())
        return; /* NVIDIA's driver accepts it without checking */
    gives(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(NULL));
    mode = (CUstreamCaptureMode)3;
    gives(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
}

/* A call waits for room while many host functions are pending, and all run in the end. */
enum { MANY_FUNCTIONS = 5000, PENDING_MAX = 2048, PAUSE_US = 300000 };
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint n_enqueued, n_run;

static void CUDA_CB pass_gate(void *user)
{
    (void)user;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    atomic_fetch_add(&n_run, 1);
}

static void *enqueue_functions(void *stream)
{
    for (unsigned i = 0; i < MANY_FUNCTIONS; i++) {
        if (cuLaunchHostFunc(stream, pass_gate, NULL) != CUDA_SUCCESS)
            break;
        atomic_fetch_add(&n_enqueued, 1);
    }
    return NULL;
}

static void pending_host_functions_are_limited(void **state)
{
    unsigned seen = UINT_MAX;
    pthread_t thread;
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    pthread_mutex_lock(&gate);
    assert_int_equal(pthread_create(&thread, NULL, enqueue_functions, stream), 0);
    while (seen != atomic_load(&n_enqueued)) { /* until the thread waits, or is done */
        seen = atomic_load(&n_enqueued);
        usleep(PAUSE_US);
    }
    pthread_mutex_unlock(&gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    ok(cuStreamSynchronize(stream));
    assert_int_equal(atomic_load(&n_run), MANY_FUNCTIONS);
    if (on_cuttle())
        assert_in_range(seen, 1, PENDING_MAX);
    ok(cuStreamDestroy(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_and_what_it_tells),
        cmocka_unit_test(capture_modes_are_a_threads_own),
        cmocka_unit_test(waits_to_and_fro_come_to_an_end),
        cmocka_unit_test(streams_refuse),
        cmocka_unit_test(work_of_one_stream_is_in_order),
        cmocka_unit_test(query_tells_of_work_under_way),
        cmocka_unit_test(work_waits_for_host_functions),
        cmocka_unit_test(host_functions_run_once_and_in_order),
        cmocka_unit_test(callbacks_get_stream_and_status),
        cmocka_unit_test(host_functions_may_not_call_cuda),
        cmocka_unit_test(destroyed_streams_finish_their_work),
        cmocka_unit_test(legacy_stream_waits_for_blocking_streams),
        cmocka_unit_test(blocking_streams_wait_for_the_legacy_stream),
        cmocka_unit_test(non_blocking_streams_do_not_wait),
        cmocka_unit_test(own_streams_and_the_legacy_stream_wait_for_each_other),
        cmocka_unit_test(the_legacy_stream_stands_between),
        cmocka_unit_test(constants_name_the_default_streams),
        cmocka_unit_test(threads_have_streams_of_their_own),
        cmocka_unit_test(many_streams_at_once),
        cmocka_unit_test(attributes),
        cmocka_unit_test(nothing_is_captured),
        cmocka_unit_test(pending_host_functions_are_limited),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
