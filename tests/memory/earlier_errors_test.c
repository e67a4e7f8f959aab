/* SPDX-License-Identifier: Apache-2.0 */
/* "Note that this function may also return error codes from previous, asynchronous launches" (Driver API, at the functions of Memory
 * Management, Stream Ordered Memory Allocator and Unified Addressing). What that comes to: a kernel that failed is told by every function
 * that waits for its end, by every function once anybody was told, and never lost by one that says nothing of it. On NVIDIA's driver
 * nothing works in the process any more afterwards, so this program is for ours. */
#include "virtual_memory.h"

#define BYTES ((size_t)8192)

/* A context with memory of every kind in it. */
struct broken {
    CUcontext context;
    CUmodule module;
    CUfunction stops;
    CUstream stream;
    CUdeviceptr device, second, managed, pooled;
    CUmemoryPool pool;
    void *host, *pages;
    unsigned char plain[BYTES];
    /* for what functions give back */
    CUdeviceptr pointer;
    size_t size, other_size;
    unsigned number;
    void *address;
};

static const CUmemPoolProps pool_props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static void make(struct broken *b)
{
    memset(b, 0, sizeof *b);
    ok(cuCtxCreate(&b->context, NULL, 0, 0));
    ok(cuModuleLoadData(&b->module, seeds_ptx));
    ok(cuModuleGetFunction(&b->stops, b->module, "stops"));
    ok(cuStreamCreate(&b->stream, CU_STREAM_DEFAULT));
    ok(cuMemAlloc(&b->device, BYTES));
    ok(cuMemAlloc(&b->second, BYTES));
    ok(cuMemAllocHost(&b->host, BYTES));
    b->pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(b->pages, MAP_FAILED);
    ok(cuMemHostRegister(b->pages, BYTES, 0));
    ok(cuMemAllocManaged(&b->managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemPoolCreate(&b->pool, &pool_props));
    ok(cuMemAllocFromPoolAsync(&b->pooled, BYTES, b->pool, b->stream));
    ok(cuCtxSynchronize());
}

/* The context takes with it what is its own; the pool is the device's, and its memory was given back if the free was told nothing. */
static void destroy(struct broken *b)
{
    ok(cuCtxDestroy(b->context));
    munmap(b->pages, BYTES);
    cuMemFree(b->pooled);
    ok(cuMemPoolDestroy(b->pool));
}

static void fail_in_background(struct broken *b)
{
    ok(cuLaunchKernel(b->stops, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

static CUdeviceptr unified(void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static CUDA_MEMCPY2D rows_of(CUmemorytype to, CUdeviceptr dst, CUdeviceptr src)
{
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = src,
                          .srcPitch = 128,
                          .dstMemoryType = to,
                          .dstPitch = 128,
                          .WidthInBytes = 100,
                          .Height = 20};

    copy.dstDevice = dst;
    copy.dstHost = (void *)(uintptr_t)dst;
    return copy;
}

static CUDA_MEMCPY3D box_of(CUmemorytype to, CUdeviceptr dst, CUdeviceptr src)
{
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = src,
                          .srcPitch = 128,
                          .srcHeight = 5,
                          .dstMemoryType = to,
                          .dstPitch = 128,
                          .dstHeight = 5,
                          .WidthInBytes = 100,
                          .Height = 5,
                          .Depth = 3};

    copy.dstDevice = dst;
    copy.dstHost = (void *)(uintptr_t)dst;
    return copy;
}

static CUresult copy_2d_down(struct broken *b)
{
    CUDA_MEMCPY2D copy = rows_of(CU_MEMORYTYPE_HOST, unified(b->plain), b->device);

    return cuMemcpy2D(&copy);
}

static CUresult copy_2d_unaligned(struct broken *b)
{
    CUDA_MEMCPY2D copy = rows_of(CU_MEMORYTYPE_HOST, unified(b->plain), b->device);

    return cuMemcpy2DUnaligned(&copy);
}

static CUresult copy_2d_async(struct broken *b)
{
    CUDA_MEMCPY2D copy = rows_of(CU_MEMORYTYPE_DEVICE, b->second, b->device);

    return cuMemcpy2DAsync(&copy, b->stream);
}

static CUresult copy_3d_down(struct broken *b)
{
    CUDA_MEMCPY3D copy = box_of(CU_MEMORYTYPE_HOST, unified(b->plain), b->device);

    return cuMemcpy3D(&copy);
}

static CUresult copy_3d_async(struct broken *b)
{
    CUDA_MEMCPY3D copy = box_of(CU_MEMORYTYPE_DEVICE, b->second, b->device);

    return cuMemcpy3DAsync(&copy, b->stream);
}

static CUresult copy_3d_peer(struct broken *b)
{
    CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = b->device,
                               .srcContext = b->context,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = b->second,
                               .dstContext = b->context,
                               .WidthInBytes = 100,
                               .Height = 1,
                               .Depth = 1};

    return cuMemcpy3DPeer(&copy);
}

static CUresult copy_batch(struct broken *b)
{
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t first = 0, size = BYTES;

    return cuMemcpyBatchAsync(&b->second, &b->device, &size, 1, &attributes, &first, 1, b->stream);
}

static CUresult copy_box_batch(struct broken *b)
{
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {100, 1, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = b->device;
    op.dst.op.ptr.ptr = b->second;
    return cuMemcpy3DBatchAsync(1, &op, 0, b->stream);
}

static CUresult prefetch(struct broken *b)
{
    return cuMemPrefetchAsync_v2(b->managed, BYTES, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, b->stream);
}

static CUresult advise(struct broken *b)
{
    return cuMemAdvise_v2(b->managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0});
}

static CUresult ask_range(struct broken *b)
{
    return cuMemRangeGetAttribute(&b->number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, b->managed, BYTES);
}

static CUresult ask_pointer(struct broken *b)
{
    return cuPointerGetAttribute(&b->number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b->device);
}

static CUresult ask_pointers(struct broken *b)
{
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *data = &b->number;

    return cuPointerGetAttributes(1, &attribute, &data, b->device);
}

static CUresult set_pointer(struct broken *b)
{
    unsigned on = 1;

    return cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, b->device);
}

/* CALL(name, call): a function of the name that makes the call. WAITS: it does not come back before earlier work is done. */
/* clang-format off */
#define CALLS(CALL, WAITS) \
    CALL(mem_get_info, cuMemGetInfo(&b->size, &b->other_size)) \
    CALL(mem_alloc, cuMemAlloc(&b->pointer, 100)) \
    CALL(mem_alloc_large, cuMemAlloc(&b->pointer, (size_t)3 << 20)) \
    CALL(mem_alloc_pitch, cuMemAllocPitch(&b->pointer, &b->size, 100, 100, 4)) \
    WAITS(mem_free, cuMemFree(b->device)) \
    WAITS(mem_free_managed, cuMemFree(b->managed)) \
    CALL(mem_get_address_range, cuMemGetAddressRange(&b->pointer, &b->size, b->device)) \
    CALL(mem_alloc_host, cuMemAllocHost(&b->address, 100)) \
    WAITS(mem_free_host, cuMemFreeHost(b->host)) \
    CALL(mem_host_alloc, cuMemHostAlloc(&b->address, 100, 0)) \
    CALL(mem_host_get_device_pointer, cuMemHostGetDevicePointer(&b->pointer, b->host, 0)) \
    CALL(mem_host_get_flags, cuMemHostGetFlags(&b->number, b->host)) \
    CALL(mem_alloc_managed, cuMemAllocManaged(&b->pointer, 100, CU_MEM_ATTACH_GLOBAL)) \
    CALL(mem_host_register, cuMemHostRegister(b->plain, 100, 0)) \
    WAITS(mem_host_unregister, cuMemHostUnregister(b->pages)) \
    WAITS(memcpy_to_host, cuMemcpy(unified(b->plain), b->device, BYTES)) \
    WAITS(memcpy_from_pinned, cuMemcpy(b->device, unified(b->host), BYTES)) \
    WAITS(memcpy_host_to_host, cuMemcpy(unified(b->host), unified(b->pages), BYTES)) \
    CALL(memcpy_on_device, cuMemcpy(b->second, b->device, BYTES)) \
    CALL(memcpy_peer, cuMemcpyPeer(b->second, b->context, b->device, b->context, BYTES)) \
    CALL(memcpy_h_to_d, cuMemcpyHtoD(b->device, b->plain, BYTES)) \
    WAITS(memcpy_h_to_d_pinned, cuMemcpyHtoD(b->device, b->host, BYTES)) \
    WAITS(memcpy_d_to_h, cuMemcpyDtoH(b->plain, b->device, BYTES)) \
    WAITS(memcpy_d_to_h_pinned, cuMemcpyDtoH(b->host, b->device, BYTES)) \
    CALL(memcpy_d_to_d, cuMemcpyDtoD(b->second, b->device, BYTES)) \
    WAITS(memcpy_2d, copy_2d_down(b)) \
    WAITS(memcpy_2d_unaligned, copy_2d_unaligned(b)) \
    WAITS(memcpy_3d, copy_3d_down(b)) \
    CALL(memcpy_3d_peer, copy_3d_peer(b)) \
    CALL(memcpy_async, cuMemcpyAsync(b->second, b->device, BYTES, b->stream)) \
    CALL(memcpy_peer_async, cuMemcpyPeerAsync(b->second, b->context, b->device, b->context, BYTES, b->stream)) \
    CALL(memcpy_h_to_d_async, cuMemcpyHtoDAsync(b->device, b->plain, BYTES, b->stream)) \
    WAITS(memcpy_d_to_h_async, cuMemcpyDtoHAsync(b->plain, b->device, BYTES, b->stream)) \
    CALL(memcpy_d_to_h_async_pinned, cuMemcpyDtoHAsync(b->host, b->device, BYTES, b->stream)) \
    CALL(memcpy_d_to_d_async, cuMemcpyDtoDAsync(b->second, b->device, BYTES, b->stream)) \
    CALL(memcpy_2d_async, copy_2d_async(b)) \
    CALL(memcpy_3d_async, copy_3d_async(b)) \
    CALL(memcpy_batch_async, copy_batch(b)) \
    CALL(memcpy_3d_batch_async, copy_box_batch(b)) \
    CALL(memset_d8, cuMemsetD8(b->device, 1, BYTES)) \
    CALL(memset_d16, cuMemsetD16(b->device, 1, BYTES / 2)) \
    CALL(memset_d32, cuMemsetD32(b->device, 1, BYTES / 4)) \
    CALL(memset_2d_d8, cuMemsetD2D8(b->device, 64, 1, 10, 10)) \
    CALL(memset_2d_d16, cuMemsetD2D16(b->device, 64, 1, 10, 10)) \
    CALL(memset_2d_d32, cuMemsetD2D32(b->device, 64, 1, 10, 10)) \
    WAITS(memset_pinned, cuMemsetD8(unified(b->host), 1, BYTES)) \
    CALL(memset_d8_async, cuMemsetD8Async(b->device, 1, BYTES, b->stream)) \
    CALL(memset_d16_async, cuMemsetD16Async(b->device, 1, BYTES / 2, b->stream)) \
    CALL(memset_d32_async, cuMemsetD32Async(b->device, 1, BYTES / 4, b->stream)) \
    CALL(memset_2d_d8_async, cuMemsetD2D8Async(b->device, 64, 1, 10, 10, b->stream)) \
    CALL(memset_2d_d16_async, cuMemsetD2D16Async(b->device, 64, 1, 10, 10, b->stream)) \
    CALL(memset_2d_d32_async, cuMemsetD2D32Async(b->device, 64, 1, 10, 10, b->stream)) \
    CALL(mem_alloc_async, cuMemAllocAsync(&b->pointer, BYTES, b->stream)) \
    CALL(mem_alloc_from_pool_async, cuMemAllocFromPoolAsync(&b->pointer, BYTES, b->pool, b->stream)) \
    CALL(mem_free_async, cuMemFreeAsync(b->pooled, b->stream)) \
    CALL(mem_free_async_of_alloc, cuMemFreeAsync(b->device, b->stream)) \
    CALL(mem_prefetch_async, prefetch(b)) \
    CALL(mem_advise, advise(b)) \
    CALL(mem_range_get_attribute, ask_range(b)) \
    CALL(pointer_get_attribute, ask_pointer(b)) \
    CALL(pointer_get_attributes, ask_pointers(b)) \
    CALL(pointer_set_attribute, set_pointer(b)) \
    CALL(stream_attach_mem_async, cuStreamAttachMemAsync(b->stream, b->managed, 0, CU_MEM_ATTACH_GLOBAL))
#define FUNCTION(name, call) static CUresult name(struct broken *b) { (void)b; return call; }
#define LASTING(name, call) {#name, name, false},
#define WAITING(name, call) {#name, name, true},
CALLS(FUNCTION, FUNCTION)

static const struct row {
    const char *name;
    CUresult (*call)(struct broken *broken);
    bool waits;
} rows[] = {CALLS(LASTING, WAITING)};
/* clang-format on */
#define N_ROWS (sizeof rows / sizeof *rows)

/* Once it was told, every function tells it, and does nothing else. */
static void a_sticky_error_is_told_by_all(void **state)
{
    struct broken *b = *state;
    CUresult error;

    make(b);
    fail_in_background(b);
    error = cuCtxSynchronize();
    assert_int_not_equal(error, CUDA_SUCCESS);
    memset(b->plain, 0x33, BYTES);
    for (size_t i = 0; i < N_ROWS; i++) {
        CUresult r = rows[i].call(b);

        if (r != error)
            fail_msg("%s: %s, not %s", rows[i].name, api_error_name(r), api_error_name(error));
    }
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(b->plain[i], 0x33);
    assert_true(b->pointer == 0 && b->address == NULL);
    gives(error, cuStreamSynchronize(b->stream));
    destroy(b);
}

/* "the device must have a non-zero value for the device attribute CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS" */
static bool is_refused(const struct row *row, CUresult r)
{
    int moves = 0;

    ok(cuDeviceGetAttribute(&moves, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    return row->call == mem_prefetch_async && !moves && r == CUDA_ERROR_INVALID_DEVICE;
}

/* As the first call after a failing kernel: who waits tells of it, the others do or do not; the next who waits does in any case. */
static void no_function_loses_an_error(void **state)
{
    struct broken *b = *state;

    for (size_t i = 0; i < N_ROWS; i++) {
        CUresult first, second;

        make(b);
        fail_in_background(b);
        first = rows[i].call(b);
        second = cuCtxSynchronize();
        if (second != CUDA_ERROR_LAUNCH_FAILED)
            fail_msg("after %s (%s): %s", rows[i].name, api_error_name(first), api_error_name(second));
        if (first != second && (rows[i].waits || first != CUDA_SUCCESS) && !is_refused(&rows[i], first))
            fail_msg("%s: %s", rows[i].name, api_error_name(first));
        gives(second, cuMemAlloc(&b->pointer, 100));
        destroy(b);
    }
}

/* Another context of the device has nothing to do with it, and the memory of the broken one is back when that is destroyed. */
static void other_contexts_go_on(void **state)
{
    struct broken *b = *state;
    CUcontext other;
    uint32_t word = 0;
    CUdeviceptr p;

    ok(cuCtxCreate(&other, NULL, 0, 0));
    ok(cuMemAlloc(&p, 1 << 20));
    make(b);
    fail_in_background(b);
    assert_int_not_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    ok(cuCtxSetCurrent(other));
    ok(cuMemsetD32(p, 5, 1 << 18));
    ok(cuMemcpyDtoH(&word, p + (1 << 20) - 4, 4));
    assert_int_equal(word, 5);
    seeds_step(p, 1000);
    ok(cuMemcpyDtoH(&word, p, 4));
    assert_int_equal(word, 16);
    destroy(b);
    ok(cuMemFree(p));
    ok(cuCtxDestroy(other));
}

/* What was wrong with a call itself is told by that call alone. */
static void refusals_do_not_stick(void **state)
{
    struct broken *b = *state;

    make(b);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, b->plain, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(b->device, b->second + 1, BYTES));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(b->device + 2, 1, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(b->device + 1));
    gives(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(b->pages, BYTES, 0));
    for (size_t i = 0; i < N_ROWS; i++)
        if (strncmp(rows[i].name, "memcpy", 6) == 0 || strncmp(rows[i].name, "memset", 6) == 0)
            ok(rows[i].call(b));
    ok(cuCtxSynchronize());
    destroy(b);
}

int main(void)
{
    static struct broken broken;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_sticky_error_is_told_by_all, &broken),
        cmocka_unit_test_prestate(no_function_loses_an_error, &broken),
        cmocka_unit_test_prestate(other_contexts_go_on, &broken),
        cmocka_unit_test_prestate(refusals_do_not_stick, &broken),
    };

    if (!on_cuttle() || cuInit(0) != CUDA_SUCCESS)
        return on_cuttle() ? 1 : 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
