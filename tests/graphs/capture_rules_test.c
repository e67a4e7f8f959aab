/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: where captures begin and end, and which calls they forbid (Driver API: Stream Management). */
#include "capture_test.h"

#include "which_driver.h"

#include <pthread.h>
#include <stdbool.h>

/* ---- the beginning and the end ---- */

static void wrong_beginnings_are_refused(void **state)
{
    (void)state;
    gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture(first, (CUstreamCaptureMode)3));
    end_gives(CUDA_ERROR_ILLEGAL_STATE, first);
    begin(first);
    gives(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(cuStreamEndCapture(first, NULL)); /* which destroys the graph */
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, first);
    begin(CU_STREAM_PER_THREAD);
    ok(cuGraphDestroy(end(CU_STREAM_PER_THREAD)));
}

static void only_the_origin_ends_a_capture(void **state)
{
    CUdeviceptr data = allocate(1);

    (void)state;
    begin(first);
    fork_second();
    linear(second, data, 2, 0);
    end_gives(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, second);
    status_is(CU_STREAM_CAPTURE_STATUS_INVALIDATED, second);
    is_invalid(first);
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, second);
    ok(cuMemFree(data));
}

static CUresult ended;

static void *end_in_thread(void *user)
{
    CUgraph graph;

    ok(cuCtxSetCurrent(user));
    ended = cuStreamEndCapture(first, &graph);
    if (ended == CUDA_SUCCESS)
        ok(cuGraphDestroy(graph));
    return NULL;
}

static void *launch_in_thread(void *user)
{
    ok(cuCtxSetCurrent(user));
    ok(cuLaunchHostFunc(first, call_back, NULL));
    return NULL;
}

static void run_thread(void *(*function)(void *))
{
    CUcontext context;
    pthread_t thread;

    ok(cuCtxGetCurrent(&context));
    assert_int_equal(pthread_create(&thread, NULL, function, context), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Any thread may add work, but only a relaxed capture ends in another thread than it began. */
static void threads_take_part(void **state)
{
    static const CUresult expected[] = {[CU_STREAM_CAPTURE_MODE_GLOBAL] = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                                        [CU_STREAM_CAPTURE_MODE_THREAD_LOCAL] = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                                        [CU_STREAM_CAPTURE_MODE_RELAXED] = CUDA_SUCCESS};

    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        ok(cuStreamBeginCapture(first, (CUstreamCaptureMode)mode));
        run_thread(launch_in_thread);
        assert_int_equal(dependencies_of(first), 1);
        run_thread(end_in_thread);
        assert_int_equal(ended, expected[mode]);
        status_is(CU_STREAM_CAPTURE_STATUS_NONE, first);
    }
}

static void destroyed_streams_leave_their_captures(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph;

    (void)state;
    begin(first); /* the origin */
    fork_second();
    ok(cuStreamDestroy(first));
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, second);
    end_gives(CUDA_ERROR_ILLEGAL_STATE, second);
    linear(second, data, 2, 0);
    ok(cuStreamSynchronize(second));
    all_are(data, 2);

    ok(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING)); /* another one, with work that is joined or not */
    begin(first);
    fork_second();
    linear(second, data, 2, 0);
    join_second();
    ok(cuStreamDestroy(second));
    linear(first, data, 2, 0);
    graph = end(first);
    graph_is(graph, "0 0", "0-1");
    ok(cuGraphDestroy(graph));
    ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    begin(first);
    fork_second();
    linear(second, data, 2, 0);
    ok(cuStreamDestroy(second));
    status_is(CU_STREAM_CAPTURE_STATUS_ACTIVE, first);
    end_gives(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, first);
    ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    ok(cuMemFree(data));
}

static void a_destroyed_context_ends_its_captures(void **state)
{
    CUcontext before, context;
    CUdevice device;
    CUstream stream;

    (void)state;
    ok(cuCtxGetCurrent(&before));
    ok(cuCtxGetDevice(&device));
    ok(cuCtxCreate(&context, NULL, 0, device));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    begin(stream);
    ok(cuLaunchHostFunc(stream, call_back, NULL));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(before));
    ok(cuCtxSynchronize());
    ok(cuMemFree(allocate(1))); /* allowed again */
}

/* ---- forbidden calls ---- */

static CUdeviceptr try_allocate(CUresult expected)
{
    CUdeviceptr data = 0;

    gives(expected, cuMemAlloc(&data, 64));
    return data;
}

static CUresult allocated_in_thread;

static void *allocate_in_thread(void *user)
{
    CUdeviceptr data;

    ok(cuCtxSetCurrent(user));
    allocated_in_thread = cuMemAlloc(&data, 64);
    if (allocated_in_thread == CUDA_SUCCESS)
        ok(cuMemFree(data));
    return NULL;
}

/* Whether an unsafe call is allowed depends on the mode of the capture and on that of the thread, and on whether the thread began the capture. */
static void modes_decide_about_unsafe_calls(void **state)
{
    static const struct {
        CUstreamCaptureMode capture, thread;
        bool own_is_refused, other_is_refused;
    } rows[] = {
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL, true, true},
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true, true},
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED, false, true},
        {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL, true, false},
        {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true, false},
        {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED, false, false},
        {CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL, false, false},
        {CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUstreamCaptureMode mode = rows[i].thread;
        CUdeviceptr data;

        ok(cuThreadExchangeStreamCaptureMode(&mode));
        assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
        ok(cuStreamBeginCapture(first, rows[i].capture));
        data = try_allocate(rows[i].own_is_refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
        if (rows[i].own_is_refused) {
            is_invalid(first);
        } else {
            ok(cuMemFree(data));
            ok(cuGraphDestroy(end(first)));
        }
        ok(cuStreamBeginCapture(first, rows[i].capture));
        run_thread(allocate_in_thread); /* whose mode is GLOBAL */
        assert_int_equal(allocated_in_thread, rows[i].other_is_refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
        if (rows[i].other_is_refused)
            is_invalid(first);
        else
            ok(cuGraphDestroy(end(first)));
        mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        ok(cuThreadExchangeStreamCaptureMode(&mode));
        assert_int_equal(mode, rows[i].thread);
    }
    if (on_cuttle()) /* NVIDIA's driver crashes */
        gives(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(NULL));
}

static void the_legacy_stream_does_not_wait_for_captures(void **state)
{
    static unsigned char bytes[16];
    CUdeviceptr data = allocate(1);
    CUstreamCaptureStatus status;
    CUstream blocking;

    (void)state;
    ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    for (int mode = 0; mode < 3; mode++)
        for (int call = 0; call < 8; call++) {
            const CUresult expected = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;

            ok(cuStreamBeginCapture(blocking, (CUstreamCaptureMode)mode));
            gives(expected, cuStreamIsCapturing(NULL, &status));
            status_is(CU_STREAM_CAPTURE_STATUS_ACTIVE, blocking);
            switch (call) {
            case 0:
                gives(expected, try_linear(NULL, data, 1, 0));
                break;
            case 1:
                gives(expected, cuMemcpyHtoD(data, bytes, 16));
                break;
            case 2:
                gives(expected, cuMemsetD8(data, 0, 16));
                break;
            case 3:
                gives(expected, cuEventRecord(fork_event, NULL));
                break;
            case 4:
                gives(expected, cuStreamWaitEvent(NULL, fork_event, 0));
                break;
            case 5:
                gives(expected, cuStreamSynchronize(NULL));
                break;
            case 6:
                gives(expected, cuStreamQuery(NULL));
                break;
            default:
                gives(expected, cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
                break;
            }
            is_invalid(blocking);
        }
    ok(cuStreamDestroy(blocking));

    begin(first); /* for which the legacy stream does not wait */
    linear(NULL, data, 1, 0);
    ok(cuMemcpyHtoD(data, bytes, 16));
    ok(cuMemcpyDtoH(bytes, data, 16));
    ok(cuMemsetD8(data, 0, 16));
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, NULL);
    ok(cuEventRecord(fork_event, first));
    gives(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamWaitEvent(NULL, fork_event, 0));
    is_invalid(first);
    ok(cuMemFree(data));
}

static void wrong_arguments_keep_captures(void **state)
{
    static unsigned char bytes[16];
    CUdeviceptr data = allocate(1);
    void *list[] = {&data, &data, &data};

    (void)state;
    begin(first);
    gives(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, first, NULL, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(graphs_linear, 1, 1, 1, 1, 1, 1, 0, first, NULL, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(12345, bytes, 16, first));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(data, NULL, 16, first));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(data + 1, 0, 4, first));
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(first, NULL, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(first, 12345, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(fork_event, first, 7));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(NULL, first));
    ok(cuGraphDestroy(end(first)));
    begin(first); /* but no launch that cannot succeed */
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(graphs_linear, 0, 1, 1, 1, 1, 1, 0, first, list, NULL));
    is_invalid(first);
    begin(first);
    gives(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(graphs_linear, 1, 1, 1, 1, 1, 1, 1 << 20, first, list, NULL));
    is_invalid(first);
    begin(first);
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(first, NULL, 0));
    is_invalid(first);
    ok(cuMemFree(data));
}

static void CUDA_CB call_with_status(CUstream stream, CUresult status, void *user)
{
    (void)stream, (void)status, (void)user;
}

static void calls_are_refused_in_captured_streams(void **state)
{
    CUdeviceptr data = allocate(1);
    CUcontext context;
    CUgraphExec exec;
    CUgraph graph;
    unsigned flags;

    (void)state;
    ok(cuCtxGetCurrent(&context));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphInstantiate(&exec, graph, 0));
    for (int mode = 0; mode < 3; mode++)
        for (int call = 0; call < 8; call++) {
            const CUresult expected = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

            ok(cuStreamBeginCapture(first, (CUstreamCaptureMode)mode));
            switch (call) {
            case 0:
                gives(expected, cuStreamSynchronize(first));
                break;
            case 1:
                gives(expected, cuStreamQuery(first));
                break;
            case 2:
                gives(expected, cuStreamAddCallback(first, call_with_status, NULL, 0));
                break;
            case 3:
                gives(expected, cuGraphLaunch(exec, first));
                break;
            case 4:
                gives(expected, cuGraphUpload(exec, first));
                break;
            case 5:
                gives(expected, cuMemcpyPeerAsync(data, context, data + 64, context, 16, first));
                break;
            case 6:
                gives(expected, cuStreamGetFlags(first, &flags));
                break;
            default:
                gives(expected, cuCtxSynchronize());
                break;
            }
            is_invalid(first);
        }
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CAPTURE_TEST(wrong_beginnings_are_refused),
        CAPTURE_TEST(only_the_origin_ends_a_capture),
        CAPTURE_TEST(threads_take_part),
        CAPTURE_TEST(destroyed_streams_leave_their_captures),
        CAPTURE_TEST(a_destroyed_context_ends_its_captures),
        CAPTURE_TEST(modes_decide_about_unsafe_calls),
        CAPTURE_TEST(the_legacy_stream_does_not_wait_for_captures),
        CAPTURE_TEST(wrong_arguments_keep_captures),
        CAPTURE_TEST(calls_are_refused_in_captured_streams),
    };

    return cmocka_run_group_tests(tests, graphs_set_up, graphs_tear_down);
}
