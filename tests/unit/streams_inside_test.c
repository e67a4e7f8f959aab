/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of streams: the resources that they keep and release, invalid handles, destruction with pending work. */
#include "../api/api_test.h"

#include "core/backing/address_rule.h"
#include "core/device/context.h"
#include "core/memory/memory.h"
#include "core/stream/stream.h"
#include "core/stream/stream_ring.h"
#include "mock_backend.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void CUDA_CB stand_before(void *user)
{
    while (!atomic_load((atomic_int *)user))
        usleep(200);
}

/* These tests are only in this file, since NVIDIA's driver crashes in them. */
static void dead_handles_are_found_out(void **state)
{
    CUstream stream, other;
    CUevent event;
    unsigned flags;
    CUdeviceptr p;

    (void)state;
    ok(cuMemAlloc(&p, 16));
    ok(cuStreamCreate(&stream, 0));
    ok(cuEventCreate(&event, 0));
    ok(cuStreamDestroy(stream));
    ok(cuEventDestroy(event));
    ok(cuStreamCreate(&other, 0)); /* in the same slot of the table */
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamGetFlags(stream, &flags));
    gives(CUDA_ERROR_INVALID_HANDLE, cuMemsetD8Async(p, 1, 16, stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuMemcpyDtoHAsync(&flags, p, 4, stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuLaunchHostFunc(stream, stand_before, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(event));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(other, event, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery((CUstream)(uintptr_t)0x123456789abcdef0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery((CUstream)p));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventQuery((CUevent)other));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(CU_STREAM_LEGACY));
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(CU_STREAM_PER_THREAD));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(p, 1, SIZE_MAX / 2));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(p, SIZE_MAX / 4, 1, 4, 100));
    ok(cuStreamDestroy(other));
    ok(cuMemFree(p));
}

/* A large amount of data is staged through one stream: its ring stays small, and all bytes arrive. */
static void the_ring_is_recycled(void **state)
{
    enum { WORDS = 50000, ROUNDS = 600 };
    static unsigned words[WORDS], got[WORDS];
    struct mock_counts before, after;
    CUstream stream;
    CUdeviceptr p;

    (void)state;
    ok(cuMemAlloc(&p, sizeof words));
    ok(cuStreamCreate(&stream, 0));
    before = mock_count();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < WORDS; i++)
            words[i] = round * 31 + i;
        ok(cuMemcpyHtoDAsync(p, words, sizeof words, stream));
    }
    after = mock_count();
    assert_true(after.memories - before.memories <= 20); /* 16 MiB of blocks, though 120 MB went through */
    ok(cuMemcpyDtoHAsync(got, p, sizeof got, stream));
    assert_memory_equal(got, words, sizeof words);
    ok(cuStreamDestroy(stream));
    ok(cuMemFree(p));
}

/* The ring: large requests get memory of their own, which is released when their work is complete. */
static void ring_pieces_of_every_size(void **state)
{
    static const uint64_t sizes[] = {1, 16, 4096, 256 << 10, (256 << 10) + 1, 5 << 20};
    struct mock_counts before = mock_count(), after;
    struct ct_stream *stream;
    CUstream handle;

    (void)state;
    ok(cuStreamCreate(&handle, 0));
    ok(ct_stream_lookup(handle, &stream));
    for (unsigned round = 0; round < 40; round++) {
        ok(ct_stream_begin(stream));
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct ct_ring_piece piece;

            ok(ct_stream_ring_take(stream->ring, sizes[i], 64, &piece));
            assert_int_equal(piece.offset % 64, 0);
            assert_true(piece.offset + sizes[i] <= piece.memory->size_bytes);
            assert_ptr_equal(piece.host, (char *)piece.memory->host + piece.offset);
            assert_int_equal(ct_rule_devaddr(&stream->context->device->info.target, piece.address).v,
                             piece.memory->address.v + piece.offset);
            memset(piece.host, (int)round, sizes[i]);
        }
        ct_stream_end(stream);
    }
    ok(ct_stream_synchronize(stream));
    ct_stream_release(stream);
    ok(cuStreamDestroy(handle));
    after = mock_count();
    assert_int_equal(after.memories, before.memories);
    assert_int_equal(after.queues, before.queues);
}

static void destroyed_streams_go_when_their_work_is_done(void **state)
{
    struct mock_counts before = mock_count(), during, after;
    atomic_int open = 0;
    CUstream stream, other;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(stream, stand_before, &open));
    ok(cuStreamDestroy(stream));
    during = mock_count();
    assert_int_equal(during.queues, before.queues + 1);
    atomic_store(&open, 1);
    ok(cuCtxSynchronize());
    ok(cuStreamCreate(&other, 0));
    ok(cuStreamDestroy(other));
    after = mock_count();
    assert_int_equal(after.queues, before.queues);
    assert_int_equal(after.timelines, before.timelines);
}

/* An event is recorded repeatedly while the first record is pending: each record needs its timestamp slot only until it is written. */
static void records_under_way_keep_their_timestamps(void **state)
{
    struct mock_counts before = mock_count(), after;
    CUstream streams[4];
    atomic_int open = 0;
    CUevent event;

    (void)state;
    ok(cuEventCreate(&event, 0));
    for (int i = 0; i < 4; i++) {
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        ok(cuLaunchHostFunc(streams[i], stand_before, &open));
        ok(cuEventRecord(event, streams[i]));
        ok(cuEventRecord(event, streams[i]));
    }
    ok(cuEventDestroy(event));
    for (int i = 0; i < 4; i++)
        ok(cuStreamDestroy(streams[i]));
    atomic_store(&open, 1);
    ok(cuCtxSynchronize());
    ok(cuEventCreate(&event, 0));
    ok(cuEventDestroy(event));
    after = mock_count();
    assert_int_equal(after.timestamps, before.timestamps);
    assert_int_equal(after.queues, before.queues);
}

static void *open_later(void *user)
{
    usleep(30000);
    atomic_store((atomic_int *)user, 1);
    return NULL;
}

/* A context is destroyed with streams, events and memory left and work pending: all of them are destroyed. */
static void contexts_take_all_along(void **state)
{
    struct mock_counts before = mock_count(), after;
    atomic_int open = 0;
    CUcontext context;
    pthread_t thread;
    CUstream stream;
    CUevent event;
    CUdeviceptr p;
    void *host;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuStreamCreate(&stream, 0));
    ok(cuEventCreate(&event, 0));
    ok(cuMemAlloc(&p, 5 << 20));
    ok(cuMemAlloc(&p, 500));
    ok(cuMemAllocHost(&host, 5000));
    ok(cuMemsetD8Async(p, 1, 500, CU_STREAM_PER_THREAD));
    ok(cuLaunchHostFunc(stream, stand_before, &open));
    ok(cuMemsetD8Async(p, 1, 500, stream));
    ok(cuEventRecord(event, stream));
    assert_int_equal(pthread_create(&thread, NULL, open_later, &open), 0);
    ok(cuCtxDestroy(context));
    pthread_join(thread, NULL);
    after = mock_count();
    assert_memory_equal(&before, &after, sizeof before);
    gives(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
}

static void *use_own_stream(void *user)
{
    CUdeviceptr p;

    if (cuCtxSetCurrent(user) != CUDA_SUCCESS || cuMemAlloc(&p, 64) != CUDA_SUCCESS ||
        cuMemsetD8Async(p, 1, 64, CU_STREAM_PER_THREAD) != CUDA_SUCCESS || cuMemFree(p) != CUDA_SUCCESS)
        return "failed";
    return NULL;
}

static void threads_take_their_streams_along(void **state)
{
    struct mock_counts before, after;

    ok(cuCtxSynchronize());
    before = mock_count();
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        void *failed;

        assert_int_equal(pthread_create(&thread, NULL, use_own_stream, *state), 0);
        pthread_join(thread, &failed);
        assert_null(failed);
    }
    ok(cuCtxSynchronize());
    after = mock_count();
    assert_int_equal(after.queues, before.queues);
}

/* Small allocations share backend memory; freed parts are reused; empty chunks are released except one. */
static void small_allocations_share_chunks(void **state)
{
    enum { COUNT = 3000 };
    static CUdeviceptr p[COUNT];
    struct mock_counts before = mock_count(), during, after;

    (void)state;
    for (int i = 0; i < COUNT; i++)
        ok(cuMemAlloc(&p[i], 2000));
    during = mock_count();
    assert_true(during.memories - before.memories <= 4); /* 6.1 MB in chunks of 2 MiB */
    for (int i = 0; i < COUNT; i += 2)
        ok(cuMemFree(p[i]));
    for (int i = 0; i < COUNT; i += 2)
        ok(cuMemAlloc(&p[i], 1500));
    after = mock_count();
    assert_int_equal(after.memories, during.memories);
    for (int i = 0; i < COUNT; i++)
        ok(cuMemFree(p[i]));
    after = mock_count();
    assert_true(after.memories <= before.memories + 1);
}

/* The mock's queues have priorities. */
static void priorities_reach_the_queues(void **state)
{
    static const struct {
        int asked, got;
    } rows[] = {{0, 0}, {-1, -1}, {-5, -1}, {3, 0}, {INT_MIN, -1}, {INT_MAX, 0}};
    int supported = 0, least = 99, greatest = 99, priority;

    (void)state;
    ok(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 0));
    assert_int_equal(supported, 1);
    ok(cuCtxGetStreamPriorityRange(&least, &greatest));
    assert_int_equal(least, 0);
    assert_int_equal(greatest, -1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUlaunchAttributeValue value = {.priority = rows[i].asked};
        CUstream stream;

        ok(cuStreamCreateWithPriority(&stream, 0, rows[i].asked));
        assert_int_equal(mock_last_priority(), rows[i].got);
        ok(cuStreamGetPriority(stream, &priority));
        assert_int_equal(priority, rows[i].got);
        ok(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
        value.priority = rows[i].got ? 0 : -1; /* the other one */
        gives(CUDA_ERROR_NOT_SUPPORTED, cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
        ok(cuStreamDestroy(stream));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dead_handles_are_found_out),
        cmocka_unit_test(the_ring_is_recycled),
        cmocka_unit_test(ring_pieces_of_every_size),
        cmocka_unit_test(destroyed_streams_go_when_their_work_is_done),
        cmocka_unit_test(records_under_way_keep_their_timestamps),
        cmocka_unit_test(contexts_take_all_along),
        cmocka_unit_test(threads_take_their_streams_along),
        cmocka_unit_test(small_allocations_share_chunks),
        cmocka_unit_test(priorities_reach_the_queues),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
