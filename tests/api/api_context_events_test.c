/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a whole context. A stream is kept busy by a wait for a value in memory that the host writes. */
#include "api_test.h"

/* Words in host memory: gates at which streams wait while they are 0. */
static volatile uint32_t *gates;
static CUdeviceptr seen_gates;

static int with_gates(void **state)
{
    void *host;

    if (with_context(state) != 0 || cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS ||
        cuMemHostGetDevicePointer(&seen_gates, host, 0) != CUDA_SUCCESS)
        return -1;
    gates = host;
    return 0;
}

static int without_gates(void **state)
{
    if (cuMemFreeHost((void *)gates) != CUDA_SUCCESS)
        return -1;
    return without_context(state);
}

static CUstream busy_stream(unsigned gate)
{
    CUstream stream = NULL;

    gates[gate] = 0;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuStreamWaitValue32(stream, seen_gates + 4 * gate, 1, CU_STREAM_WAIT_VALUE_EQ));
    return stream;
}

static void record_marks_the_work_of_all_streams(void **state)
{
    CUcontext context = *state;
    CUstream first = busy_stream(0), second = busy_stream(1), later;
    CUevent event;
    float ms = -1;
    CUevent before;

    ok(cuEventCreate(&before, CU_EVENT_DEFAULT));
    ok(cuEventCreate(&event, CU_EVENT_DEFAULT));
    ok(cuEventRecord(before, first));
    ok(cuCtxRecordEvent(context, event));
    later = busy_stream(2); /* later work is not part of it */
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    gates[0] = 1;
    ok(cuStreamSynchronize(first));
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    gates[1] = 1;
    ok(cuEventSynchronize(event));
    ok(cuStreamQuery(second));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(later));
    ok(cuEventElapsedTime(&ms, before, event));
    assert_true(ms >= 0);
    gates[2] = 1;
    ok(cuCtxSynchronize());
    ok(cuCtxRecordEvent(context, event)); /* nothing is in flight */
    ok(cuEventSynchronize(event));
    ok(cuEventDestroy(event));
    ok(cuEventDestroy(before));
    ok(cuStreamDestroy(first));
    ok(cuStreamDestroy(second));
    ok(cuStreamDestroy(later));
}

/* Records an event of another context behind a gate. */
static CUevent event_elsewhere(CUcontext context, CUstream *out_stream)
{
    CUevent event = NULL;

    ok(cuCtxPushCurrent(context));
    *out_stream = busy_stream(0);
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuEventRecord(event, *out_stream));
    ok(cuCtxPopCurrent(NULL));
    return event;
}

static void wait_holds_all_streams_and_new_ones(void **state)
{
    CUcontext context = *state, other;
    CUstream streams[3], elsewhere;
    CUdeviceptr memory;
    CUevent event;
    uint32_t words[4];

    ok(cuCtxCreate(&other, NULL, 0, 0));
    ok(cuCtxPopCurrent(NULL));
    ok(cuMemAlloc(&memory, sizeof words));
    ok(cuMemsetD32(memory, 0, 4));
    ok(cuCtxSynchronize());
    event = event_elsewhere(other, &elsewhere);
    ok(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&streams[1], CU_STREAM_DEFAULT));
    ok(cuCtxWaitEvent(context, event));
    ok(cuStreamCreate(&streams[2], CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 3; i++) {
        ok(cuMemsetD32Async(memory + 4 * i, 1, 1, streams[i]));
        gives(CUDA_ERROR_NOT_READY, cuStreamQuery(streams[i]));
    }
    ok(cuMemsetD32Async(memory + 12, 1, 1, CU_STREAM_PER_THREAD)); /* created by its first use */
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
    gates[0] = 1;
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoH(words, memory, sizeof words));
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(words[i], 1);
    for (unsigned i = 0; i < 3; i++)
        ok(cuStreamDestroy(streams[i]));
    ok(cuMemFree(memory));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(elsewhere));
    ok(cuCtxDestroy(other));
}

static void both_refuse(void **state)
{
    CUcontext context = *state, other;
    CUevent event;

    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuCtxCreate(&other, NULL, 0, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(other, event)); /* of another context */
    ok(cuCtxWaitEvent(other, event));                                 /* never recorded: nothing to wait for */
    ok(cuCtxSynchronize());
    ok(cuCtxDestroy(other));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxRecordEvent(other, event));
        gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxWaitEvent(other, event));
        gives(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(context, NULL));
        gives(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(context, MADE_UP(CUevent)));
    }
    ok(cuEventDestroy(event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_marks_the_work_of_all_streams),
        cmocka_unit_test(wait_holds_all_streams_and_new_ones),
        cmocka_unit_test(both_refuse),
    };

    return cmocka_run_group_tests(tests, with_gates, without_gates);
}
