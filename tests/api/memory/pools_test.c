/* SPDX-License-Identifier: Apache-2.0 */
/* The stream-ordered memory allocator, according to the manual (Driver API: Stream Ordered Memory Allocator; CUDA programming guide, the
 * chapter of the same name). A plain program of the driver API: NVIDIA's own driver must pass, too. */
#include "seeds.h"

#define WORDS 3000u
#define BYTES (WORDS * 4)
#define MIB ((size_t)1 << 20)

static CUdevice device_of_test(void)
{
    CUdevice device;

    ok(cuCtxGetDevice(&device));
    return device;
}

static CUmemPoolProps props_of_test(void)
{
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, device_of_test()}};
}

static CUmemoryPool make_pool(void)
{
    CUmemPoolProps props = props_of_test();
    CUmemoryPool pool;

    ok(cuMemPoolCreate(&pool, &props));
    return pool;
}

static cuuint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value = 12345;

    ok(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void set_number(CUmemoryPool pool, CUmemPool_attribute attribute, cuuint64_t value)
{
    ok(cuMemPoolSetAttribute(pool, attribute, &value));
}

static void set_policy(CUmemoryPool pool, CUmemPool_attribute attribute, int value)
{
    ok(cuMemPoolSetAttribute(pool, attribute, &value));
}

static void keep_everything(CUmemoryPool pool)
{
    set_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
}

static CUstream make_stream(void)
{
    CUstream stream;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* ---- memory ---- */

/* "Basic stream ordering allows future work submitted into the same stream to use the allocation": copies, fills and kernels. */
static void is_memory_in_its_stream(void **state)
{
    CUstream stream = make_stream();
    uint32_t words[WORDS], back[WORDS];
    unsigned count = WORDS;
    CUfunction function;
    CUdeviceptr p = 0;
    CUmodule module;

    (void)state;
    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&function, module, "step"));
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = i;
    ok(cuMemAllocAsync(&p, BYTES, stream));
    assert_int_not_equal(p, 0);
    assert_int_equal(p % 256, 0);
    ok(cuMemcpyHtoDAsync(p, words, BYTES, stream));
    ok(cuLaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, stream, (void *[]){&p, &count}, NULL));
    ok(cuMemcpyDtoHAsync(back, p, BYTES, stream));
    ok(cuMemsetD32Async(p, 7, 1, stream));
    ok(cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < WORDS; i++)
        assert_int_equal(back[i], i * 3 + 1);
    ok(cuStreamDestroy(stream));
    ok(cuModuleUnload(module));
}

/* "Stream query, stream synchronize, and CUDA events can be used to guarantee that the allocation operation completes before work
 * submitted in a separate stream runs." */
static void is_memory_behind_an_event(void **state)
{
    CUstream first = make_stream(), second = make_stream();
    uint32_t word = 0;
    CUdeviceptr p;
    CUevent event;

    (void)state;
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuMemAllocAsync(&p, BYTES, first));
    ok(cuEventRecord(event, first));
    ok(cuStreamWaitEvent(second, event, 0));
    ok(cuMemsetD32Async(p, 99, WORDS, second));
    ok(cuMemcpyDtoHAsync(&word, p + BYTES - 4, 4, second));
    ok(cuStreamSynchronize(second));
    assert_int_equal(word, 99);
    ok(cuMemFreeAsync(p, second));
    ok(cuStreamSynchronize(second));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(first));
    ok(cuStreamDestroy(second));
}

/* The same in the default streams. */
static void works_in_default_streams(void **state)
{
    static const CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};

    (void)state;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        uint32_t word = 0;
        CUdeviceptr p;

        ok(cuMemAllocAsync(&p, BYTES, streams[i]));
        ok(cuMemsetD32Async(p, 5 + (unsigned)i, WORDS, streams[i]));
        ok(cuMemcpyDtoHAsync(&word, p, 4, streams[i]));
        ok(cuMemFreeAsync(p, streams[i]));
        ok(cuStreamSynchronize(streams[i]));
        assert_int_equal(word, 5 + i);
    }
}

/* cuMemFree: "memory allocated [with] cuMemAllocAsync() [...] Callers must ensure that all accesses to these allocations have completed";
 * and the programming guide: memory of cudaMalloc may be given to cudaFreeAsync. */
static void each_free_takes_each_memory(void **state)
{
    CUstream stream = make_stream();
    uint32_t word = 0;
    CUdeviceptr p;

    (void)state;
    ok(cuMemAllocAsync(&p, BYTES, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemFree(p));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
    for (size_t bytes = 4; bytes <= 4 * MIB; bytes *= 1024) {
        ok(cuMemAlloc(&p, bytes));
        ok(cuMemsetD32Async(p, 31, bytes / 4, stream));
        ok(cuMemcpyDtoHAsync(&word, p + bytes - 4, 4, stream));
        ok(cuMemFreeAsync(p, stream));
        ok(cuStreamSynchronize(stream));
        assert_int_equal(word, 31);
    }
    ok(cuStreamDestroy(stream));
}

/* Neither the allocation nor the free waits for the stream's work. */
static void nothing_waits(void **state)
{
    struct seeds_gate gate;
    CUdeviceptr p, q;

    (void)state;
    seeds_gate_make(&gate);
    ok(cuMemAllocAsync(&p, BYTES, gate.stream));
    ok(cuMemAlloc(&q, BYTES));
    ok(cuMemsetD32Async(p, 1, WORDS, gate.stream));
    ok(cuMemFreeAsync(p, gate.stream));
    ok(cuMemFreeAsync(q, gate.stream));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(gate.stream));
    seeds_gate_finish(&gate);
}

/* Allocations of many sizes do not overlap. */
static void allocations_are_apart(void **state)
{
    enum { COUNT = 40 };
    CUstream stream = make_stream();
    CUdeviceptr p[COUNT];
    uint32_t back[2];

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            ok(cuMemAllocAsync(&p[i], 4 + i * i * i * 40, stream));
            ok(cuMemsetD32Async(p[i], i + round, 1 + i * i * i * 10, stream));
        }
        for (unsigned i = 0; i < COUNT; i++) {
            ok(cuMemcpyDtoHAsync(&back[0], p[i], 4, stream));
            ok(cuMemcpyDtoHAsync(&back[1], p[i] + i * i * i * 40, 4, stream));
            ok(cuStreamSynchronize(stream));
            assert_int_equal(back[0], i + round);
            assert_int_equal(back[1], i + round);
        }
        for (unsigned i = 0; i < COUNT; i++)
            ok(cuMemFreeAsync(p[(i * 7 + round) % COUNT], stream));
    }
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
}

/* ---- reuse ---- */

/* A stream can reuse at once the memory that it freed, although the free has not been executed. */
static void a_stream_reuses_its_own(void **state)
{
    CUmemoryPool pool = make_pool();
    struct seeds_gate gate;
    CUdeviceptr p, q;

    (void)state;
    seeds_gate_make(&gate);
    ok(cuMemAllocFromPoolAsync(&p, 4 * MIB, pool, gate.stream));
    ok(cuMemFreeAsync(p, gate.stream));
    ok(cuMemAllocFromPoolAsync(&q, 4 * MIB, pool, gate.stream));
    assert_int_equal(p, q);
    ok(cuMemFreeAsync(q, gate.stream));
    seeds_gate_finish(&gate);
    ok(cuMemPoolDestroy(pool));
}

/* Two streams; the second one allocates the memory that the first one freed after a gate. Returns whether it got the same memory. */
static bool reused_by_other(CUmemoryPool pool, bool ordered)
{
    struct seeds_gate gate;
    CUstream other = make_stream();
    CUdeviceptr p, q;
    CUevent event;

    keep_everything(pool);
    seeds_gate_make(&gate);
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuMemAllocFromPoolAsync(&p, 4 * MIB, pool, gate.stream));
    ok(cuMemFreeAsync(p, gate.stream));
    ok(cuEventRecord(event, gate.stream));
    if (ordered)
        ok(cuStreamWaitEvent(other, event, 0));
    ok(cuMemAllocFromPoolAsync(&q, 4 * MIB, pool, other));
    ok(cuMemsetD32Async(q, 3, MIB, other));
    ok(cuMemFreeAsync(q, other));
    seeds_gate_finish(&gate);
    ok(cuStreamSynchronize(other));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(other));
    return p == q;
}

/* "Allow cuMemAllocAsync to use memory asynchronously freed in another stream as long as a stream ordering dependency of the allocating
 * stream on the free action exists." */
static void events_let_others_reuse(void **state)
{
    CUmemoryPool pool = make_pool();

    (void)state;
    set_policy(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
    set_policy(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    assert_true(reused_by_other(pool, true));
    ok(cuMemPoolDestroy(pool));
    pool = make_pool();
    set_policy(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 0);
    set_policy(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    assert_false(reused_by_other(pool, true));
    ok(cuMemPoolDestroy(pool));
}

/* A stream waits for an event of an intermediate stream, which itself waits for the free, before or after that event. Returns whether the
 * stream got the same memory. None of this is executed before the allocation. */
static bool reused_over_a_relay(CUmemoryPool pool, bool event_is_late)
{
    struct seeds_gate gate, relay;
    CUstream other = make_stream();
    CUevent freed, event;
    CUdeviceptr p, q;

    keep_everything(pool);
    seeds_gate_make(&gate);
    seeds_gate_make(&relay);
    ok(cuEventCreate(&freed, CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuMemAllocFromPoolAsync(&p, 4 * MIB, pool, gate.stream));
    ok(cuMemFreeAsync(p, gate.stream));
    ok(cuEventRecord(freed, gate.stream));
    if (!event_is_late)
        ok(cuEventRecord(event, relay.stream));
    ok(cuStreamWaitEvent(relay.stream, freed, 0));
    if (event_is_late)
        ok(cuEventRecord(event, relay.stream));
    ok(cuStreamWaitEvent(other, event, 0));
    ok(cuMemAllocFromPoolAsync(&q, 4 * MIB, pool, other));
    ok(cuMemFreeAsync(q, other));
    seeds_gate_finish(&gate);
    seeds_gate_finish(&relay);
    ok(cuStreamSynchronize(other));
    ok(cuEventDestroy(freed));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(other));
    return p == q;
}

/* Event dependencies are transitive, but do not include waits that the other stream recorded after the event. */
static void waits_are_inherited_up_to_the_event(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        CUmemoryPool pool = make_pool();

        set_policy(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
        set_policy(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
        assert_int_equal(reused_over_a_relay(pool, late), late);
        ok(cuMemPoolDestroy(pool));
    }
}

/* Without any ordering, memory whose free has not been executed is not reused. */
static void without_order_there_is_no_reuse(void **state)
{
    CUmemoryPool pool = make_pool();

    (void)state;
    set_policy(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    assert_false(reused_by_other(pool, false));
    ok(cuMemPoolDestroy(pool));
}

/* "Allow reuse of already completed frees when there is no dependency between the free and allocation." */
static void complete_frees_are_reused(void **state)
{
    CUstream first = make_stream(), second = make_stream();
    CUmemoryPool pool = make_pool();
    CUdeviceptr p, q;

    (void)state;
    keep_everything(pool);
    ok(cuMemAllocFromPoolAsync(&p, 4 * MIB, pool, first));
    ok(cuMemFreeAsync(p, first));
    while (cuStreamQuery(first) == CUDA_ERROR_NOT_READY)
        usleep(100);
    ok(cuMemAllocFromPoolAsync(&q, 4 * MIB, pool, second));
    assert_int_equal(p, q);
    ok(cuMemFreeAsync(q, second));
    ok(cuStreamSynchronize(second));
    ok(cuStreamDestroy(first));
    ok(cuStreamDestroy(second));
    ok(cuMemPoolDestroy(pool));
}

/* A pool that may not grow makes the second stream wait for the first: "Allow cuMemAllocAsync to insert new stream dependencies in order to
 * establish the stream ordering required to reuse a piece of memory". If this is disabled, the allocation fails. */
static void full_pools_make_streams_wait(void **state)
{
    CUmemPoolProps props = props_of_test();
    CUstream other = make_stream();
    struct seeds_gate gate;
    CUmemoryPool pool;
    CUdeviceptr p, q;
    uint32_t word = 0;

    (void)state;
    props.maxSize = 32 * MIB;
    ok(cuMemPoolCreate(&pool, &props));
    seeds_gate_make(&gate);
    ok(cuMemAllocFromPoolAsync(&p, 32 * MIB, pool, gate.stream));
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&q, 32 * MIB, pool, other));
    ok(cuMemsetD32Async(p, 1, 8 * MIB, gate.stream));
    ok(cuMemFreeAsync(p, gate.stream));
    set_policy(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&q, 32 * MIB, pool, other));
    set_policy(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 1);
    ok(cuMemAllocFromPoolAsync(&q, 32 * MIB, pool, other));
    assert_int_equal(p, q);
    ok(cuMemsetD32Async(q, 2, 8 * MIB, other));
    seeds_gate_finish(&gate);
    ok(cuMemcpyDtoHAsync(&word, q + 32 * MIB - 4, 4, other));
    ok(cuMemFreeAsync(q, other));
    ok(cuStreamSynchronize(other));
    assert_int_equal(word, 2);
    ok(cuStreamDestroy(other));
    ok(cuMemPoolDestroy(pool));
}

/* ---- attributes ---- */

static void attributes_have_their_defaults(void **state)
{
    static const CUmemPool_attribute policies[] = {CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                                                   CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                                                   CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES};
    CUmemoryPool pool = make_pool();

    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        int value = -1;

        ok(cuMemPoolGetAttribute(pool, policies[i], &value));
        assert_int_equal(value, 1);
        set_policy(pool, policies[i], 0);
        ok(cuMemPoolGetAttribute(pool, policies[i], &value));
        assert_int_equal(value, 0);
    }
    for (int i = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD; i <= CU_MEMPOOL_ATTR_USED_MEM_HIGH; i++)
        assert_int_equal(number(pool, (CUmemPool_attribute)i), 0);
    ok(cuMemPoolDestroy(pool));
}

/* Used and reserved memory, their high watermarks, and "High watermark can only be reset to zero". */
static void statistics_follow(void **state)
{
    CUstream stream = make_stream();
    CUmemoryPool pool = make_pool();
    cuuint64_t one = 1, zero = 0;
    CUdeviceptr p, q;

    (void)state;
    keep_everything(pool);
    ok(cuMemAllocFromPoolAsync(&p, 4 * MIB, pool, stream));
    ok(cuMemAllocFromPoolAsync(&q, 8 * MIB, pool, stream));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 12 * MIB);
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 12 * MIB);
    assert_true(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 12 * MIB);
    ok(cuMemFreeAsync(q, stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4 * MIB);
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 12 * MIB);
    assert_true(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 12 * MIB);
    ok(cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &one));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &zero));
    set_number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
    ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_true(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 12 * MIB);
    set_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
    ok(cuMemAllocFromPoolAsync(&p, 100, pool, stream)); /* the requested size counts, not the size of the block */
    ok(cuMemAllocFromPoolAsync(&q, 1, pool, stream));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 101);
    ok(cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1);
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 101);
    ok(cuMemFreeAsync(q, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuMemPoolDestroy(pool));
}

static void sync_stream(CUstream stream)
{
    ok(cuStreamSynchronize(stream));
}

static void sync_context(CUstream stream)
{
    (void)stream;
    ok(cuCtxSynchronize());
}

static void sync_event(CUstream stream)
{
    CUevent event;

    ok(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING));
    ok(cuEventRecord(event, stream));
    ok(cuEventSynchronize(event));
    ok(cuEventDestroy(event));
}

/* "When more than the release threshold bytes of memory are held by the memory pool, the allocator will try to release memory back to the
 * OS on the next call to stream, event or context synchronize." */
static void waits_release_what_is_too_much(void **state)
{
    static void (*const waits[])(CUstream stream) = {sync_stream, sync_context, sync_event};
    CUstream stream = make_stream();
    CUmemoryPool pool = make_pool();

    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        CUdeviceptr p;

        keep_everything(pool);
        ok(cuMemAllocFromPoolAsync(&p, 64 * MIB, pool, stream));
        ok(cuMemFreeAsync(p, stream));
        waits[i](stream);
        assert_true(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * MIB);
        set_number(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
        ok(cuMemAllocFromPoolAsync(&p, 64 * MIB, pool, stream));
        waits[i](stream);
        assert_true(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 64 * MIB); /* in use */
        ok(cuMemFreeAsync(p, stream));
        waits[i](stream);
        assert_int_equal(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    }
    ok(cuStreamDestroy(stream));
    ok(cuMemPoolDestroy(pool));
}

/* "The allocator cannot release OS allocations that back outstanding asynchronous allocations"; "at least minBytesToKeep bytes reserved
 * after the operation" */
static void trimming_keeps_what_it_must(void **state)
{
    CUstream stream = make_stream();
    CUmemoryPool pool = make_pool();
    CUdeviceptr p, q;

    (void)state;
    keep_everything(pool);
    ok(cuMemAllocFromPoolAsync(&p, 64 * MIB, pool, stream));
    ok(cuMemAllocFromPoolAsync(&q, 64 * MIB, pool, stream));
    ok(cuMemFreeAsync(q, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemPoolTrimTo(pool, 100 * MIB));
    assert_true(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 100 * MIB);
    ok(cuMemPoolTrimTo(pool, 0));
    assert_in_range(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * MIB, 127 * MIB);
    ok(cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    ok(cuStreamDestroy(stream));
    ok(cuMemPoolDestroy(pool));
}

static void pointers_tell_their_pool(void **state)
{
    CUstream stream = make_stream();
    CUmemoryPool pool = make_pool(), found = NULL;
    unsigned type = 0, managed = 1;
    CUdeviceptr p, q, start = 0;
    int ordinal = -1;

    (void)state;
    ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, stream));
    ok(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p + 4));
    assert_ptr_equal(found, pool);
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    assert_int_equal(managed, 0);
    ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    assert_int_equal(ordinal, device_of_test());
    ok(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 8));
    assert_int_equal(start, p);
    ok(cuMemAlloc(&q, BYTES));
    ok(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
    assert_null(found);
    ok(cuMemFree(q));
    ok(cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuMemPoolDestroy(pool));
}

/* ---- pools of a device ---- */

static void devices_have_pools(void **state)
{
    CUmemoryPool standard, current, pool = make_pool(), found;
    CUdevice device = device_of_test();
    CUstream stream = make_stream();
    int supported = 0;
    CUdeviceptr p;

    (void)state;
    ok(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device));
    assert_int_equal(supported, 1);
    ok(cuDeviceGetDefaultMemPool(&standard, device));
    ok(cuDeviceGetMemPool(&current, device));
    assert_ptr_equal(standard, current);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(standard));
    ok(cuDeviceSetMemPool(device, pool));
    ok(cuDeviceGetMemPool(&current, device));
    assert_ptr_equal(current, pool);
    ok(cuMemAllocAsync(&p, BYTES, stream));
    ok(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    assert_ptr_equal(found, pool);
    ok(cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuMemPoolDestroy(pool)); /* "sets the default mempool of that device as the current mempool" */
    ok(cuDeviceGetMemPool(&current, device));
    assert_ptr_equal(current, standard);
    ok(cuStreamDestroy(stream));
}

/* "If any pointers obtained from this pool haven't been freed [...] resources associated with the pool will be released automatically once
 * there are no more outstanding allocations." */
static void memory_outlives_its_pool(void **state)
{
    CUstream stream = make_stream();
    CUmemoryPool pool = make_pool();
    uint32_t word = 0;
    CUdeviceptr p;

    (void)state;
    ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, stream));
    ok(cuMemPoolDestroy(pool));
    ok(cuMemsetD32Async(p, 77, WORDS, stream));
    ok(cuMemcpyDtoHAsync(&word, p, 4, stream));
    ok(cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(word, 77);
    ok(cuStreamDestroy(stream));
}

/* cuCtxDestroy "will not destroy memory allocations by [...] cuMemAllocAsync()". */
static void memory_outlives_its_context(void **state)
{
    CUcontext old, context;
    CUmemoryPool pool = make_pool();
    CUstream stream;
    uint32_t word = 0;
    CUdeviceptr p, q;

    (void)state;
    ok(cuCtxGetCurrent(&old));
    ok(cuCtxCreate(&context, NULL, 0, device_of_test()));
    stream = make_stream();
    ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, stream));
    ok(cuMemAllocFromPoolAsync(&q, BYTES, pool, stream));
    ok(cuMemsetD32Async(p, 42, WORDS, stream));
    ok(cuMemFreeAsync(q, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(old));
    ok(cuMemcpyDtoH(&word, p + BYTES - 4, 4));
    assert_int_equal(word, 42);
    ok(cuMemFreeAsync(p, NULL));
    ok(cuStreamSynchronize(NULL));
    ok(cuMemPoolDestroy(pool));
}

static void access_is_returned(void **state)
{
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_of_test()}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool = make_pool();
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;

    (void)state;
    ok(cuMemPoolGetAccess(&flags, pool, &access.location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ok(cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    assert_int_not_equal(cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
    ok(cuMemPoolDestroy(pool));
}

/* ---- errors ---- */

static void wrong_arguments_are_refused(void **state)
{
    CUmemPoolProps props = props_of_test();
    CUstream stream = make_stream();
    CUmemoryPool pool = make_pool(), other;
    CUdeviceptr p;
    int value = 0;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync(NULL, BYTES, stream));
    ok(cuMemAllocAsync(&p, 0, stream)); /* no error, as in NVIDIA's driver; the manual does not specify it */
    print_message("0 bytes are at %llx\n", (unsigned long long)p);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&p, BYTES, NULL, stream));
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&p, (size_t)1 << 46, stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(NULL, &props));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&other, NULL));
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&other, &props));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolTrimTo(NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, (CUmemPool_attribute)0, &value));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, NULL));
    if (on_cuttle()) /* NVIDIA's driver checks that first */
        gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetMemPool(NULL, device_of_test()));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetMemPool(&other, 1000));
    ok(cuMemAllocFromPoolAsync(&p, BYTES, pool, stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p + 512, stream));
    ok(cuMemFreeAsync(p, stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuMemPoolDestroy(pool));
    if (!on_cuttle())
        return;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    gives(CUDA_ERROR_INVALID_HANDLE, cuMemAllocAsync(&p, BYTES, MADE_UP(CUstream)));
}

/* After OUT_OF_MEMORY everything works, and no memory is lost. */
static void exhaustion_leaves_nothing(void **state)
{
    CUmemPoolProps props = props_of_test();
    CUstream stream = make_stream();
    CUmemoryPool pool;
    CUdeviceptr p[3];

    (void)state;
    props.maxSize = 64 * MIB;
    ok(cuMemPoolCreate(&pool, &props));
    ok(cuMemAllocFromPoolAsync(&p[0], 32 * MIB, pool, stream));
    ok(cuMemAllocFromPoolAsync(&p[1], 32 * MIB, pool, stream));
    for (int i = 0; i < 100; i++)
        gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&p[2], 32 * MIB, pool, stream));
    ok(cuMemFreeAsync(p[0], stream));
    ok(cuMemAllocFromPoolAsync(&p[2], 32 * MIB, pool, stream));
    ok(cuMemFreeAsync(p[1], stream));
    ok(cuMemFreeAsync(p[2], stream));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_int_equal(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    ok(cuStreamDestroy(stream));
    ok(cuMemPoolDestroy(pool));
}

/* Memory that pools keep for reuse is available to other allocators, and to other pools. */
static void what_pools_keep_is_not_lost_to_others(void **state)
{
    CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUstream stream = make_stream();
    CUmemoryPool pool = make_pool(), other = make_pool();
    size_t unused, total, bytes;
    CUdeviceptr most;

    (void)state;
    props.location.id = device_of_test();
    keep_everything(pool);
    ok(cuMemGetInfo(&unused, &total));
    bytes = unused / 5 * 3 & ~(2 * MIB - 1);
    if (cuMemAlloc(&most, bytes) != CUDA_SUCCESS) /* where drivers choose addresses, memory cannot consist of several pieces */
        skip();
    ok(cuMemFree(most));
    for (int i = 0; i < 3; i++) {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr p;

        ok(cuMemAllocFromPoolAsync(&p, bytes, pool, stream));
        ok(cuMemFreeAsync(p, stream));
        ok(cuStreamSynchronize(stream));
        assert_true(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= bytes);
        if (i == 0) {
            ok(cuMemAlloc(&p, bytes));
            ok(cuMemFree(p));
        } else if (i == 1 && seeds_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
            ok(cuMemCreate(&handle, bytes, &props, 0));
            ok(cuMemRelease(handle));
        } else {
            ok(cuMemAllocFromPoolAsync(&p, bytes, other, stream));
            ok(cuMemFreeAsync(p, stream));
            ok(cuStreamSynchronize(stream));
        }
        if (number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) != 0) { /* correct only if other processes have freed memory meanwhile */
            ok(cuMemGetInfo(&unused, &total));
            assert_true(unused >= bytes);
        }
    }
    ok(cuStreamDestroy(stream));
    ok(cuMemPoolDestroy(pool));
    ok(cuMemPoolDestroy(other));
}

/* ---- threads ---- */

/* Allocates, fills, checks and frees in a stream of its own; memory is passed between the threads. */
static void *use_pool(void *user)
{
    CUcontext context = user;
    CUstream stream;
    uint32_t back = 0;
    CUdeviceptr p;

    if (cuCtxSetCurrent(context) != CUDA_SUCCESS || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        return "no stream";
    for (unsigned i = 0; i < 150; i++) {
        unsigned words = 1 + i * i * 37 % 50000, value = (unsigned)(uintptr_t)&back + i;

        if (cuMemAllocAsync(&p, words * 4, stream) != CUDA_SUCCESS || cuMemsetD32Async(p, value, words, stream) != CUDA_SUCCESS ||
            cuMemcpyDtoHAsync(&back, p + (words - 1) * 4, 4, stream) != CUDA_SUCCESS || cuMemFreeAsync(p, stream) != CUDA_SUCCESS)
            return "a call failed";
        if (i % 3 == 0 && (cuStreamSynchronize(stream) != CUDA_SUCCESS || back != value))
            return "wrong contents";
    }
    return cuStreamSynchronize(stream) == CUDA_SUCCESS && cuStreamDestroy(stream) == CUDA_SUCCESS ? NULL : "the stream failed";
}

static void threads_share_a_pool(void **state)
{
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_pool, *state), 0);
    for (size_t i = 0; i < 4; i++) {
        void *complaint;

        pthread_join(threads[i], &complaint);
        if (complaint)
            fail_msg("%s", (const char *)complaint);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_memory_in_its_stream),
        cmocka_unit_test(is_memory_behind_an_event),
        cmocka_unit_test(works_in_default_streams),
        cmocka_unit_test(each_free_takes_each_memory),
        cmocka_unit_test(nothing_waits),
        cmocka_unit_test(allocations_are_apart),
        cmocka_unit_test(a_stream_reuses_its_own),
        cmocka_unit_test(events_let_others_reuse),
        cmocka_unit_test(waits_are_inherited_up_to_the_event),
        cmocka_unit_test(without_order_there_is_no_reuse),
        cmocka_unit_test(complete_frees_are_reused),
        cmocka_unit_test(full_pools_make_streams_wait),
        cmocka_unit_test(attributes_have_their_defaults),
        cmocka_unit_test(statistics_follow),
        cmocka_unit_test(waits_release_what_is_too_much),
        cmocka_unit_test(trimming_keeps_what_it_must),
        cmocka_unit_test(pointers_tell_their_pool),
        cmocka_unit_test(devices_have_pools),
        cmocka_unit_test(memory_outlives_its_pool),
        cmocka_unit_test(memory_outlives_its_context),
        cmocka_unit_test(access_is_returned),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(exhaustion_leaves_nothing),
        cmocka_unit_test(what_pools_keep_is_not_lost_to_others),
        cmocka_unit_test(threads_share_a_pool),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
