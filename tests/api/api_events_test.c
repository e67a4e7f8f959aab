/* SPDX-License-Identifier: Apache-2.0 */
/* Events: records, waits, elapsed times, and arguments that are rejected. */
#include "api_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* Host functions that wait for a semaphore: 0 closed, 1 open. */
static void CUDA_CB stand_before(void *user)
{
    while (!atomic_load((atomic_int *)user))
        usleep(200);
}

static void CUDA_CB add_one(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static void events_refuse(void **state)
{
    CUevent event, untimed;
    float ms = 0;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuEventCreate(NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, 0x100));
    gives(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(NULL, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(NULL, NULL, 0));
    ok(cuEventCreate(&event, 0));
    ok(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, event, event)); /* never recorded */
    ok(cuEventRecord(event, NULL));
    ok(cuEventRecord(untimed, NULL));
    ok(cuEventSynchronize(untimed));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, event, untimed));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, event, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(NULL, event, event));
    gives(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(event, NULL, 0x10));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(NULL, event, 0x10));
    gives(CUDA_ERROR_ILLEGAL_STATE, cuEventRecordWithFlags(event, NULL, CU_EVENT_RECORD_EXTERNAL));
    gives(CUDA_ERROR_ILLEGAL_STATE, cuStreamWaitEvent(NULL, event, CU_EVENT_WAIT_EXTERNAL));
    ok(cuEventDestroy(event));
    ok(cuEventDestroy(untimed));
}

static void an_event_without_a_record_is_done(void **state)
{
    CUevent event;
    CUstream stream;

    (void)state;
    ok(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    ok(cuStreamCreate(&stream, 0));
    ok(cuEventQuery(event));
    ok(cuEventSynchronize(event));
    ok(cuStreamWaitEvent(stream, event, 0));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuEventDestroy(event));
}

static void query_and_synchronize(void **state)
{
    static const unsigned flags[] = {0, CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        atomic_int open = 0;
        CUstream stream;
        CUevent event;

        ok(cuEventCreate(&event, flags[i]));
        ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        ok(cuLaunchHostFunc(stream, stand_before, &open));
        ok(cuEventRecord(event, stream));
        gives(CUDA_ERROR_NOT_READY, cuEventQuery(event));
        atomic_store(&open, 1);
        ok(cuEventSynchronize(event));
        ok(cuEventQuery(event));
        ok(cuStreamDestroy(stream));
        ok(cuEventQuery(event)); /* outlives the stream */
        ok(cuEventDestroy(event));
    }
}

static void a_stream_waits_for_an_event_of_another(void **state)
{
    atomic_int open = 0, count = 0;
    CUstream first, second;
    CUevent event;

    (void)state;
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(first, stand_before, &open));
    ok(cuEventRecord(event, first));
    ok(cuStreamWaitEvent(second, event, 0));
    ok(cuLaunchHostFunc(second, add_one, &count));
    ok(cuEventRecord(event, NULL)); /* a later record does not change the record that a wait refers to */
    usleep(20000);
    assert_int_equal(atomic_load(&count), 0);
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(second));
    atomic_store(&open, 1);
    ok(cuStreamSynchronize(second));
    assert_int_equal(atomic_load(&count), 1);
    ok(cuStreamDestroy(first));
    ok(cuStreamDestroy(second));
    ok(cuEventDestroy(event));
}

/* A chain across streams: data is passed in a circle, and each stream adds to it. */
static void a_chain_of_streams(void **state)
{
    enum { COUNT = 8, ROUNDS = 25, WORDS = 4096 };
    CUstream streams[COUNT];
    CUevent events[COUNT];
    CUdeviceptr p[COUNT + 1];
    unsigned got[WORDS];

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        ok(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
    }
    for (int i = 0; i <= COUNT; i++)
        ok(cuMemAlloc(&p[i], sizeof got));
    for (unsigned round = 1; round <= ROUNDS; round++) {
        if (round > 1)
            ok(cuStreamWaitEvent(streams[0], events[COUNT - 1], 0));
        ok(cuMemsetD32Async(p[0], round * 1000, WORDS, streams[0]));
        for (int i = 0; i < COUNT; i++) {
            if (i > 0)
                ok(cuStreamWaitEvent(streams[i], events[i - 1], 0));
            ok(cuMemcpyDtoDAsync(p[i + 1], p[i], sizeof got, streams[i]));
            ok(cuEventRecord(events[i], streams[i]));
        }
    }
    ok(cuEventSynchronize(events[COUNT - 1]));
    ok(cuMemcpyDtoH(got, p[COUNT], sizeof got));
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(got[i], ROUNDS * 1000);
    for (int i = 0; i < COUNT; i++) {
        ok(cuStreamDestroy(streams[i]));
        ok(cuEventDestroy(events[i]));
    }
    for (int i = 0; i <= COUNT; i++)
        ok(cuMemFree(p[i]));
}

static void an_event_may_be_destroyed_before_its_record_is_done(void **state)
{
    atomic_int open = 0;
    CUstream stream;
    CUevent event;

    (void)state;
    ok(cuEventCreate(&event, 0));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(stream, stand_before, &open));
    ok(cuEventRecord(event, stream));
    ok(cuEventDestroy(event));
    ok(cuEventCreate(&event, 0));
    atomic_store(&open, 1);
    ok(cuStreamSynchronize(stream));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(stream));
}

static void times_grow_and_are_not_wild(void **state)
{
    CUevent start, middle, end;
    float whole = -1, first = -1, second = -1;
    CUdeviceptr p;

    (void)state;
    ok(cuMemAlloc(&p, 16 << 20));
    ok(cuEventCreate(&start, 0));
    ok(cuEventCreate(&middle, 0));
    ok(cuEventCreate(&end, 0));
    ok(cuEventRecord(start, NULL));
    for (int i = 0; i < 10; i++)
        ok(cuMemsetD32Async(p, (unsigned)i, 4 << 20, NULL));
    ok(cuEventRecord(middle, NULL));
    for (int i = 0; i < 10; i++)
        ok(cuMemsetD32Async(p, (unsigned)i, 4 << 20, NULL));
    ok(cuEventRecord(end, NULL));
    ok(cuEventSynchronize(end));
    ok(cuEventElapsedTime(&whole, start, end));
    ok(cuEventElapsedTime(&first, start, middle));
    ok(cuEventElapsedTime(&second, middle, end));
    assert_true(whole > 0 && first >= 0 && second >= 0);
    assert_true(whole < 60000);
    assert_true(first + second > whole * 0.99f && first + second < whole * 1.01f + 0.01f);
    ok(cuEventElapsedTime(&whole, start, start));
    assert_true(whole == 0);
    ok(cuEventDestroy(start));
    ok(cuEventDestroy(middle));
    ok(cuEventDestroy(end));
    ok(cuMemFree(p));
}

/* Times are taken when the device reaches the records, not at the calls: here all calls are made at once. */
static void times_are_the_devices(void **state)
{
    enum { BEFORE, BEHIND, LAST, COUNT };
    atomic_int open = 0;
    CUevent events[COUNT];
    CUstream stream;
    float held = -1, behind = -1;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < COUNT; i++)
        ok(cuEventCreate(&events[i], 0));
    ok(cuEventRecord(events[BEFORE], stream));
    ok(cuLaunchHostFunc(stream, stand_before, &open));
    ok(cuEventRecord(events[BEHIND], stream));
    ok(cuEventRecord(events[LAST], stream));
    ok(cuEventSynchronize(events[BEFORE]));
    usleep(100000);
    atomic_store(&open, 1);
    usleep(100000); /* nor the time of the query */
    ok(cuEventSynchronize(events[LAST]));
    ok(cuEventElapsedTime(&held, events[BEFORE], events[BEHIND]));
    ok(cuEventElapsedTime(&behind, events[BEHIND], events[LAST]));
    if (held < 95 || held > 60000 || behind < 0 || behind > 95)
        fail_msg("held for %g ms, then %g ms", (double)held, (double)behind);
    for (int i = 0; i < COUNT; i++)
        ok(cuEventDestroy(events[i]));
    ok(cuStreamDestroy(stream));
}

static void elapsed_time_is_not_ready_while_a_record_is_under_way(void **state)
{
    atomic_int open = 0;
    CUevent start, end;
    CUstream stream;
    float ms = -1;

    (void)state;
    ok(cuEventCreate(&start, 0));
    ok(cuEventCreate(&end, 0));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuEventRecord(start, stream));
    ok(cuLaunchHostFunc(stream, stand_before, &open));
    ok(cuEventRecord(end, stream));
    gives(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, start, end));
    atomic_store(&open, 1);
    ok(cuEventSynchronize(end));
    ok(cuEventElapsedTime(&ms, start, end));
    assert_true(ms >= 0);
    ok(cuStreamDestroy(stream));
    ok(cuEventDestroy(start));
    ok(cuEventDestroy(end));
}

/* Recorded again in another stream while the first record is pending: the last record counts. */
static void the_last_record_counts(void **state)
{
    atomic_int open = 0;
    CUstream busy, idle;
    CUevent event;
    float ms = -1;

    (void)state;
    ok(cuEventCreate(&event, 0));
    ok(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(busy, stand_before, &open));
    ok(cuEventRecord(event, busy));
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    ok(cuEventRecord(event, idle));
    ok(cuEventSynchronize(event));
    ok(cuEventElapsedTime(&ms, event, event));
    assert_true(ms == 0);
    atomic_store(&open, 1);
    ok(cuStreamDestroy(busy));
    ok(cuStreamDestroy(idle));
    ok(cuCtxSynchronize());
    ok(cuEventDestroy(event));
}

static CUresult query_for_a_while(CUevent event)
{
    CUresult r = cuEventQuery(event);

    for (unsigned i = 0; i < 5000 && r == CUDA_ERROR_NOT_READY; i++) {
        usleep(1000);
        r = cuEventQuery(event);
    }
    return r;
}

/* A stream waits for one event, records an event, and waits for another one: the record is complete when the first wait is. */
static void a_record_between_two_waits(void **state)
{
    CUevent first_event, second_event, between;
    CUstream first, second, stream;
    atomic_int open[2] = {0, 0};

    (void)state;
    ok(cuEventCreate(&first_event, CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&second_event, CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&between, CU_EVENT_DISABLE_TIMING));
    ok(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(first, stand_before, &open[0]));
    ok(cuLaunchHostFunc(second, stand_before, &open[1]));
    ok(cuEventRecord(first_event, first));
    ok(cuEventRecord(second_event, second));
    ok(cuStreamWaitEvent(stream, first_event, 0));
    ok(cuEventRecord(between, stream));
    ok(cuStreamWaitEvent(stream, second_event, 0));
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(between));
    atomic_store(&open[0], 1);
    ok(query_for_a_while(between));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    atomic_store(&open[1], 1);
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(first));
    ok(cuStreamDestroy(second));
    ok(cuStreamDestroy(stream));
    ok(cuEventDestroy(first_event));
    ok(cuEventDestroy(second_event));
    ok(cuEventDestroy(between));
}

static void events_need_no_current_context(void **state)
{
    CUcontext context = *state;
    CUevent event;

    ok(cuEventCreate(&event, 0));
    ok(cuEventRecord(event, NULL));
    ok(cuCtxSetCurrent(NULL));
    ok(cuEventSynchronize(event));
    ok(cuEventQuery(event));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(NULL));
    ok(cuCtxSetCurrent(context));
    ok(cuEventDestroy(event));
}

/* A stream of one context waits until another context's work is done; and the same in the other direction. */
static void waits_hold_across_contexts(void **state)
{
    CUcontext contexts[2] = {*state};
    CUdevice device;

    ok(cuCtxGetDevice(&device));
    ok(create_context(&contexts[1], device));
    for (int i = 0; i < 2; i++) {
        atomic_int open = 0, count = 0;
        CUstream held, waiting;
        CUevent event;

        ok(cuCtxSetCurrent(contexts[i]));
        ok(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
        ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        ok(cuLaunchHostFunc(held, stand_before, &open));
        ok(cuEventRecord(event, held));
        ok(cuCtxSetCurrent(contexts[!i]));
        ok(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
        ok(cuStreamWaitEvent(waiting, event, 0));
        ok(cuLaunchHostFunc(waiting, add_one, &count));
        usleep(20000);
        gives(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
        assert_int_equal(atomic_load(&count), 0);
        atomic_store(&open, 1);
        ok(cuStreamSynchronize(waiting));
        assert_int_equal(atomic_load(&count), 1);
        ok(cuEventDestroy(event));
        ok(cuStreamDestroy(waiting));
        ok(cuStreamDestroy(held));
    }
    ok(cuCtxDestroy(contexts[1]));
    ok(cuCtxSetCurrent(contexts[0]));
}

static void an_event_belongs_to_its_context(void **state)
{
    CUcontext second, popped;
    CUevent event, foreign;
    CUdevice device;
    CUstream stream;

    (void)state;
    ok(cuEventCreate(&event, 0));
    ok(cuStreamCreate(&stream, 0));
    ok(cuCtxGetDevice(&device));
    ok(create_context(&second, device));
    ok(cuEventCreate(&foreign, 0));
    ok(cuEventRecord(foreign, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, NULL));
    ok(cuEventQuery(event)); /* it can be queried in any context */
    ok(cuStreamQuery(stream));
    ok(cuCtxPopCurrent(&popped));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(foreign, stream));
    ok(cuStreamWaitEvent(stream, foreign, 0)); /* waits between contexts */
    ok(cuStreamSynchronize(stream));
    ok(cuCtxDestroy(second));
    ok(cuStreamDestroy(stream));
    ok(cuEventDestroy(event));
}

/* A handle is never reused, although its entry in our table is. CUDA leaves the use of such a handle undefined. */
static void a_dead_handle_is_no_other_object(void **state)
{
    CUevent dead, living;

    (void)state;
    if (!on_cuttle())
        return;
    for (int i = 0; i < 3; i++) {
        ok(cuEventCreate(&dead, 0));
        ok(cuEventDestroy(dead));
        ok(cuEventCreate(&living, 0));
        assert_ptr_not_equal(dead, living);
        gives(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(dead));
        gives(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(dead));
        ok(cuEventQuery(living));
        ok(cuEventDestroy(living));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_refuse),
        cmocka_unit_test(an_event_without_a_record_is_done),
        cmocka_unit_test(query_and_synchronize),
        cmocka_unit_test(a_stream_waits_for_an_event_of_another),
        cmocka_unit_test(a_chain_of_streams),
        cmocka_unit_test(an_event_may_be_destroyed_before_its_record_is_done),
        cmocka_unit_test(times_grow_and_are_not_wild),
        cmocka_unit_test(times_are_the_devices),
        cmocka_unit_test(elapsed_time_is_not_ready_while_a_record_is_under_way),
        cmocka_unit_test(the_last_record_counts),
        cmocka_unit_test(a_record_between_two_waits),
        cmocka_unit_test(events_need_no_current_context),
        cmocka_unit_test(waits_hold_across_contexts),
        cmocka_unit_test(an_event_belongs_to_its_context),
        cmocka_unit_test(a_dead_handle_is_no_other_object),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
