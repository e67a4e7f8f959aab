/* SPDX-License-Identifier: Apache-2.0 */
/* While a device makes no progress with the work of one stream, and a thread waits for room in that stream, calls of other threads return, in
 * other streams and contexts: the waiting thread holds no lock that they need. The device is held until the test has made all those calls:
 * if one of them waited for it, the test would not terminate. (tests/api/slow_compiler_test.c tests the same for compilers.) */
#include "../api/api_test.h"

#include "mock_backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_S = 60, UPLOAD_BYTES = 64 << 20, WORDS = 64 };

struct fixture {
    CUcontext context;
    CUstream busy; /* its queue is held */
    CUevent event; /* recorded in it */
    CUdeviceptr memory, other;
    CUresult (*fill)(struct fixture *f);
    CUresult result;
};

/* ---- threads that wait for room ---- */

/* Copies more from pageable memory than fits into a stream's ring. */
static CUresult fill_the_ring(struct fixture *f)
{
    void *bytes = calloc(1, UPLOAD_BYTES);
    CUresult r = bytes ? cuMemcpyHtoDAsync(f->memory, bytes, UPLOAD_BYTES, f->busy) : CUDA_ERROR_OUT_OF_MEMORY;

    free(bytes);
    return r;
}

/* The calls that do not fit wait with their locks held; here that could be the event's. */
static CUresult fill_the_queue_with_records(struct fixture *f)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < 2 * MOCK_HELD_COMMANDS && r == CUDA_SUCCESS; i++)
        r = cuEventRecord(f->event, f->busy);
    return r;
}

static CUresult fill_the_queue_with_fills(struct fixture *f)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < 2 * MOCK_HELD_COMMANDS && r == CUDA_SUCCESS; i++)
        r = cuMemsetD32Async(f->memory, i, WORDS, f->busy);
    return r;
}

static void *fill_up(void *argument)
{
    struct fixture *f = argument;

    f->result = cuCtxSetCurrent(f->context);
    if (f->result == CUDA_SUCCESS)
        f->result = f->fill(f);
    return NULL;
}

/* ---- the calls of another thread ---- */

static void CUDA_CB note_call(void *user)
{
    *(volatile int *)user = 1;
}

static void work_in(CUstream stream, CUdeviceptr memory)
{
    static int called;
    uint32_t words[WORDS] = {0};
    CUevent event;
    CUdeviceptr pooled;

    ok(cuEventCreate(&event, 0));
    ok(cuMemsetD32Async(memory, 5, WORDS, stream));
    ok(cuMemcpyDtoHAsync(words, memory, sizeof words, stream));
    assert_int_equal(words[WORDS - 1], 5);
    ok(cuMemcpyHtoDAsync(memory, words, sizeof words, stream));
    ok(cuMemAllocAsync(&pooled, 4096, stream));
    ok(cuMemFreeAsync(pooled, stream));
    ok(cuLaunchHostFunc(stream, note_call, &called));
    ok(cuStreamWriteValue32(stream, memory, 7, 0));
    ok(cuStreamWaitValue32(stream, memory, 7, CU_STREAM_WAIT_VALUE_EQ));
    ok(cuEventRecord(event, stream));
    ok(cuEventSynchronize(event));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamQuery(stream));
    ok(cuEventDestroy(event));
}

/* Calls that wait for the held stream on the device, but not on the host. */
static void record_behind(const struct fixture *f, CUstream stream, CUdeviceptr memory)
{
    ok(cuStreamWaitEvent(stream, f->event, 0));
    ok(cuMemsetD32Async(memory, 1, WORDS, stream));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
}

static void look_at_it(const struct fixture *f)
{
    unsigned flags;
    int priority;

    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(f->busy));
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(f->event));
    ok(cuStreamGetFlags(f->busy, &flags));
    ok(cuStreamGetPriority(f->busy, &priority));
}

static void call_in_other_context(struct fixture *f)
{
    CUcontext context;
    CUdeviceptr memory;
    CUstream stream;

    ok(create_context(&context, 0));
    ok(cuStreamCreate(&stream, 0));
    ok(cuMemAlloc(&memory, WORDS * 4));
    work_in(stream, memory);
    work_in(NULL, memory);
    ok(cuCtxSynchronize());
    ok(cuStreamDestroy(stream));
    ok(cuMemAlloc(&memory, WORDS * 4)); /* freed with the context */
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(f->context));
}

static void call_much(struct fixture *f, bool is_blocking)
{
    const CUdeviceptr memory = f->other;
    CUstream stream, waiting;
    CUevent event;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    look_at_it(f);
    work_in(stream, memory);
    if (!is_blocking)
        work_in(NULL, memory); /* otherwise the legacy stream rightly waits for the held one */
    else
        ok(cuMemsetD32Async(memory, 1, WORDS, NULL));
    record_behind(f, waiting, memory);
    ok(cuEventRecord(event, waiting));
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    ok(cuEventDestroy(event));
    call_in_other_context(f);
    ok(cuStreamDestroy(waiting));
    ok(cuStreamDestroy(stream));
}

static void check(CUcontext context, unsigned flags, CUresult (*fill)(struct fixture *f))
{
    struct fixture f = {.context = context, .fill = fill};
    pthread_t thread;

    alarm(PATIENCE_S);
    ok(cuMemAlloc(&f.memory, UPLOAD_BYTES));
    ok(cuMemAlloc(&f.other, WORDS * 4)); /* freed at the end, since freeing waits for the device */
    ok(cuEventCreate(&f.event, 0));
    mock_hold_next_queue();
    ok(cuStreamCreate(&f.busy, flags));
    ok(cuEventRecord(f.event, f.busy));
    assert_int_equal(pthread_create(&thread, NULL, fill_up, &f), 0);
    mock_await_waiter();
    call_much(&f, !(flags & CU_STREAM_NON_BLOCKING));
    mock_release_queue();
    assert_int_equal(pthread_join(thread, NULL), 0);
    ok(f.result);
    ok(cuCtxSynchronize());
    ok(cuEventDestroy(f.event));
    ok(cuStreamDestroy(f.busy));
    ok(cuMemFree(f.other));
    ok(cuMemFree(f.memory));
    alarm(0);
}

static void test_a_full_ring(void **state)
{
    check(*state, CU_STREAM_NON_BLOCKING, fill_the_ring);
    check(*state, CU_STREAM_DEFAULT, fill_the_ring);
}

static void test_a_queue_full_of_records(void **state)
{
    check(*state, CU_STREAM_NON_BLOCKING, fill_the_queue_with_records);
    check(*state, CU_STREAM_DEFAULT, fill_the_queue_with_records);
}

static void test_a_queue_full_of_fills(void **state)
{
    check(*state, CU_STREAM_NON_BLOCKING, fill_the_queue_with_fills);
    check(*state, CU_STREAM_DEFAULT, fill_the_queue_with_fills);
}

/* Must wait for the thread that fills the legacy stream, and must hold no lock meanwhile that others need. */
static void *record_one_more(void *argument)
{
    struct fixture *f = argument;
    CUresult r = cuCtxSetCurrent(f->context);

    return r == CUDA_SUCCESS && cuMemsetD32Async(f->other, 1, WORDS, NULL) == CUDA_SUCCESS ? f : NULL;
}

/* The legacy stream itself is held: recording in other streams continues, and so do calls that traverse the context's streams. */
static void test_a_full_legacy_stream(void **state)
{
    CUcontext context;
    struct fixture f = {.fill = fill_the_ring};
    CUstream stream;
    pthread_t thread, second;
    void *done;

    alarm(PATIENCE_S);
    mock_hold_next_queue();
    ok(create_context(&context, 0)); /* its first queue is the legacy stream's */
    f.context = context;
    ok(cuMemAlloc(&f.memory, UPLOAD_BYTES));
    ok(cuMemAlloc(&f.other, WORDS * 4));
    ok(cuEventCreate(&f.event, 0));
    ok(cuEventRecord(f.event, NULL)); /* otherwise the stream is idle, and the host copies */
    assert_int_equal(pthread_create(&thread, NULL, fill_up, &f), 0);
    mock_await_waiter();
    assert_int_equal(pthread_create(&second, NULL, record_one_more, &f), 0);
    for (int i = 0; i < 50; i++) { /* some of them are made after the second thread has begun to wait */
        ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        ok(cuStreamDestroy(stream));
        usleep(1000);
    }
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    work_in(stream, f.other);
    ok(cuStreamDestroy(stream));
    ok(cuStreamCreate(&stream, 0));
    ok(cuMemsetD32Async(f.other, 1, WORDS, stream));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    mock_release_queue();
    assert_int_equal(pthread_join(thread, NULL), 0);
    ok(f.result);
    assert_int_equal(pthread_join(second, &done), 0);
    assert_non_null(done);
    ok(cuStreamDestroy(stream));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(*state));
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_full_ring),
        cmocka_unit_test(test_a_queue_full_of_records),
        cmocka_unit_test(test_a_queue_full_of_fills),
        cmocka_unit_test(test_a_full_legacy_stream),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
