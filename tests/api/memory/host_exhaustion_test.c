/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory runs out inside the library: for each function that allocates, the n-th allocation fails, for n = 0, 1, .. until the call
 * succeeds. The manual's code for that is CUDA_ERROR_OUT_OF_MEMORY; nothing leaks (a sanitizer build checks that, and the descriptors are
 * counted), no output is written, and the same call succeeds as soon as no allocation fails. Only allocations of the library fail: so this
 * program is not for other drivers. */
#include "../../failing_allocations.h"
#include "open_files.h"
#include "virtual_memory.h"

#define MOST 200 /* maximum number of allocations of one call */
#define BYTES ((size_t)3 << 20)
#define SMALL ((size_t)5000)
#define LARGE ((size_t)100 << 20)
#define FILE_TYPE CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

/* ---- the arguments of the calls ---- */

static struct {
    CUdeviceptr memory, managed, pooled, reserved, mapped;
    CUarray array;
    CUmemGenericAllocationHandle physical, shared;
    CUmemoryPool pool, imported_pool;
    CUdeviceptr fresh; /* of the pool, not exported yet */
    CUmemPoolPtrExportData pointer_data;
    CUstream stream;
    void *pages, *pinned, *registered;
    size_t granule;
    int physical_fd, pool_fd;
} given;

/* Objects that the calls may create. */
static struct {
    CUdeviceptr address, pooled;
    void *host;
    CUarray array;
} held;

/* The outputs of the calls. */
static struct {
    CUdeviceptr address;
    void *host;
    size_t pitch;
    CUarray array;
    CUmipmappedArray mipmap;
    CUmemGenericAllocationHandle handle;
    CUmemoryPool pool;
    CUipcMemHandle memory_handle;
    CUmemPoolPtrExportData pointer_data;
    int fd;
} got;

static const CUmemPoolProps pool_properties = {
    .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = FILE_TYPE, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUDA_ARRAY_DESCRIPTOR square = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
static const CUDA_ARRAY3D_DESCRIPTOR cube = {.Width = 16, .Height = 16, .Depth = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

static CUmemAllocationProp properties(CUmemAllocationHandleType types)
{
    CUmemAllocationProp p = vm_properties();

    p.requestedHandleTypes = types;
    return p;
}

/* ---- calls, and functions that undo them ---- */

static CUresult alloc_large(void)
{
    return cuMemAlloc(&got.address, BYTES);
}

static CUresult alloc_small(void)
{
    return cuMemAlloc(&got.address, SMALL);
}

static CUresult alloc_pitch(void)
{
    return cuMemAllocPitch(&got.address, &got.pitch, 1000, 1000, 4);
}

static CUresult alloc_managed(void)
{
    return cuMemAllocManaged(&got.address, BYTES, CU_MEM_ATTACH_GLOBAL);
}

static void free_address(void)
{
    ok(cuMemFree(got.address));
}

static CUresult alloc_host(void)
{
    return cuMemAllocHost(&got.host, BYTES);
}

static CUresult alloc_combined(void)
{
    return cuMemHostAlloc(&got.host, BYTES, CU_MEMHOSTALLOC_WRITECOMBINED);
}

static void free_host(void)
{
    ok(cuMemFreeHost(got.host));
}

static CUresult register_pages(void)
{
    return cuMemHostRegister(given.pages, BYTES, 0);
}

static void unregister_pages(void)
{
    ok(cuMemHostUnregister(given.pages));
}

static CUresult unregister_again(void)
{
    return cuMemHostUnregister(given.registered);
}

static void register_again(void)
{
    ok(cuMemHostRegister(given.registered, BYTES, 0));
}

static CUresult create_array(void)
{
    return cuArrayCreate(&got.array, &square);
}

static CUresult create_array_3d(void)
{
    return cuArray3DCreate(&got.array, &cube);
}

static void destroy_array(void)
{
    ok(cuArrayDestroy(got.array));
}

static CUresult create_mipmap(void)
{
    return cuMipmappedArrayCreate(&got.mipmap, &cube, 3);
}

static void destroy_mipmap(void)
{
    ok(cuMipmappedArrayDestroy(got.mipmap));
}

static CUresult reserve(void)
{
    return cuMemAddressReserve(&got.address, given.granule, 0, 0, 0);
}

static void free_reservation(void)
{
    ok(cuMemAddressFree(got.address, given.granule));
}

static CUresult create_physical(void)
{
    CUmemAllocationProp p = properties(CU_MEM_HANDLE_TYPE_NONE);

    return cuMemCreate(&got.handle, given.granule, &p, 0);
}

static CUresult create_shared(void)
{
    CUmemAllocationProp p = properties(FILE_TYPE);

    return cuMemCreate(&got.handle, given.granule, &p, 0);
}

static CUresult import_physical(void)
{
    return cuMemImportFromShareableHandle(&got.handle, (void *)(intptr_t)given.physical_fd, FILE_TYPE);
}

static void release_handle(void)
{
    ok(cuMemRelease(got.handle));
}

static CUresult export_physical(void)
{
    return cuMemExportToShareableHandle(&got.fd, given.shared, FILE_TYPE, 0);
}

static void close_fd(void)
{
    assert_int_equal(close(got.fd), 0);
}

static CUresult map(void)
{
    return cuMemMap(given.reserved, given.granule, 0, given.physical, 0);
}

static void unmap(void)
{
    ok(cuMemUnmap(given.reserved, given.granule));
}

static CUresult set_access(void)
{
    return vm_access(given.mapped, given.granule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static void take_access(void)
{
    ok(vm_access(given.mapped, given.granule, CU_MEM_ACCESS_FLAGS_PROT_NONE));
}

static CUresult create_pool(void)
{
    return cuMemPoolCreate(&got.pool, &pool_properties);
}

static CUresult import_pool(void)
{
    return cuMemPoolImportFromShareableHandle(&got.pool, (void *)(intptr_t)given.pool_fd, FILE_TYPE, 0);
}

static void destroy_pool(void)
{
    ok(cuMemPoolDestroy(got.pool));
}

static CUresult alloc_async(void)
{
    return cuMemAllocAsync(&got.address, BYTES, given.stream);
}

static CUresult alloc_from_pool(void)
{
    return cuMemAllocFromPoolAsync(&got.address, BYTES, given.pool, given.stream);
}

static CUresult import_pointer(void)
{
    return cuMemPoolImportPointer(&got.address, given.imported_pool, &given.pointer_data);
}

static void free_async(void)
{
    ok(cuMemFreeAsync(got.address, given.stream));
    ok(cuStreamSynchronize(given.stream));
}

static CUresult export_pool(void)
{
    return cuMemPoolExportToShareableHandle(&got.fd, given.pool, FILE_TYPE, 0);
}

static CUresult export_pointer(void)
{
    return cuMemPoolExportPointer(&got.pointer_data, given.fresh);
}

static CUresult share_memory(void)
{
    return cuIpcGetMemHandle(&got.memory_handle, given.memory);
}

static void nothing(void)
{
}

static CUresult copy_up(void)
{
    return cuMemcpyHtoDAsync(given.memory, given.pages, BYTES, given.stream);
}

static CUresult copy_down(void)
{
    return cuMemcpyDtoHAsync(given.pages, given.memory, BYTES, given.stream);
}

static CUresult copy_pinned(void)
{
    return cuMemcpyDtoHAsync(given.pinned, given.memory, SMALL, given.stream);
}

static CUresult fill(void)
{
    return cuMemsetD8Async(given.memory + 1, 7, SMALL, given.stream);
}

static CUresult copy_batch(void)
{
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL};
    CUdeviceptr to[2] = {given.memory, given.memory + SMALL}, from[2] = {(uintptr_t)given.pages, (uintptr_t)given.pinned};
    size_t sizes[2] = {SMALL, SMALL}, firsts[1] = {0};

    return cuMemcpyBatchAsync(to, from, sizes, 2, &how, firsts, 1, given.stream);
}

/* The bytes are not compressed data, so the stream finds that out; the call succeeds. */
static CUresult decompress(void)
{
    CUmemDecompressParams params[2] = {{.srcNumBytes = 100,
                                        .dstNumBytes = 100,
                                        .dstActBytes = (cuuint32_t *)(uintptr_t)given.memory,
                                        .src = (void *)(uintptr_t)(given.memory + SMALL),
                                        .dst = (void *)(uintptr_t)(given.memory + 2 * SMALL),
                                        .algo = CU_MEM_DECOMPRESS_ALGORITHM_LZ4}};

    params[1] = params[0];
    return cuMemBatchDecompressAsync(params, 2, 0, NULL, given.stream);
}

static CUresult copy_to_array(void)
{
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = given.pages,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = given.array,
                                .WidthInBytes = 64 * 4,
                                .Height = 64};

    return cuMemcpy2DAsync(&copy, given.stream);
}

static CUresult advise(void)
{
    return cuMemAdvise(given.managed + 4096, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, vm_properties().location);
}

static void unadvise(void)
{
    ok(cuMemAdvise(given.managed + 4096, 4096, CU_MEM_ADVISE_UNSET_READ_MOSTLY, vm_properties().location));
}

static CUresult prefetch(void)
{
    return cuMemPrefetchAsync(given.managed, BYTES, (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0}, 0, given.stream);
}

static CUresult attach(void)
{
    return cuStreamAttachMemAsync(given.stream, given.managed, 0, CU_MEM_ATTACH_SINGLE);
}

static CUresult wait_for_value(void)
{
    return cuStreamWaitValue32(given.stream, given.memory, 0, CU_STREAM_WAIT_VALUE_GEQ);
}

static CUresult write_value(void)
{
    return cuStreamWriteValue32(given.stream, given.memory, 1, 0);
}

/* ---- functions that free something, undone by creating it again ---- */

static CUresult free_held(void)
{
    return cuMemFree(held.address);
}

static void hold_memory(void)
{
    ok(cuMemAlloc(&held.address, BYTES));
}

static CUresult free_held_host(void)
{
    return cuMemFreeHost(held.host);
}

static void hold_host(void)
{
    ok(cuMemAllocHost(&held.host, BYTES));
}

static CUresult free_held_async(void)
{
    return cuMemFreeAsync(held.pooled, given.stream);
}

static void hold_pooled(void)
{
    ok(cuMemAllocFromPoolAsync(&held.pooled, BYTES, given.pool, given.stream));
}

static CUresult destroy_held_array(void)
{
    return cuArrayDestroy(held.array);
}

static void hold_array(void)
{
    ok(cuArrayCreate(&held.array, &square));
}

static CUresult unmap_held(void)
{
    return cuMemUnmap(given.mapped, given.granule);
}

static void hold_mapping(void)
{
    ok(cuMemMap(given.mapped, given.granule, 0, given.physical, 0));
}

static void hold_all(void)
{
    hold_memory();
    hold_host();
    hold_pooled();
    hold_array();
}

static void let_go(void)
{
    ok(free_held());
    ok(free_held_host());
    ok(free_held_async());
    ok(destroy_held_array());
}

static void synchronize(void)
{
    ok(cuStreamSynchronize(given.stream));
}

static const struct row {
    const char *name;
    CUresult (*call)(void);
    void (*undo)(void);
    CUdevice_attribute needs; /* 0: nothing */
} rows[] = {
    {"cuMemAlloc, large", alloc_large, free_address, 0},
    {"cuMemAlloc, small", alloc_small, free_address, 0},
    {"cuMemAllocPitch", alloc_pitch, free_address, 0},
    {"cuMemAllocManaged", alloc_managed, free_address, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {"cuMemAllocHost", alloc_host, free_host, 0},
    {"cuMemHostAlloc", alloc_combined, free_host, 0},
    {"cuMemHostRegister", register_pages, unregister_pages, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {"cuMemHostUnregister", unregister_again, register_again, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {"cuArrayCreate", create_array, destroy_array, 0},
    {"cuArray3DCreate", create_array_3d, destroy_array, 0},
    {"cuMipmappedArrayCreate", create_mipmap, destroy_mipmap, 0},
    {"cuMemAddressReserve", reserve, free_reservation, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"cuMemCreate", create_physical, release_handle, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"cuMemCreate, shareable", create_shared, release_handle, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
    {"cuMemExportToShareableHandle", export_physical, close_fd, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
    {"cuMemImportFromShareableHandle", import_physical, release_handle, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
    {"cuMemMap", map, unmap, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"cuMemSetAccess", set_access, take_access, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"cuMemPoolCreate", create_pool, destroy_pool, 0},
    {"cuMemAllocAsync", alloc_async, free_async, 0},
    {"cuMemAllocFromPoolAsync", alloc_from_pool, free_async, 0},
    {"cuMemPoolExportToShareableHandle", export_pool, close_fd, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES},
    {"cuMemPoolImportFromShareableHandle", import_pool, destroy_pool, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES},
    {"cuMemPoolExportPointer", export_pointer, nothing, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES},
    {"cuMemPoolImportPointer", import_pointer, free_async, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES},
    {"cuIpcGetMemHandle", share_memory, nothing, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES},
    {"cuMemFree", free_held, hold_memory, 0},
    {"cuMemFreeHost", free_held_host, hold_host, 0},
    {"cuMemFreeAsync", free_held_async, hold_pooled, 0},
    {"cuArrayDestroy", destroy_held_array, hold_array, 0},
    {"cuMemUnmap", unmap_held, hold_mapping, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"cuMemcpyHtoDAsync", copy_up, synchronize, 0},
    {"cuMemcpyDtoHAsync, pageable", copy_down, synchronize, 0},
    {"cuMemcpyDtoHAsync, page-locked", copy_pinned, synchronize, 0},
    {"cuMemsetD8Async", fill, synchronize, 0},
    {"cuMemcpyBatchAsync", copy_batch, synchronize, 0},
    {"cuMemBatchDecompressAsync", decompress, synchronize, 0},
    {"cuMemcpy2DAsync, to an array", copy_to_array, synchronize, 0},
    {"cuMemAdvise", advise, unadvise, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {"cuMemPrefetchAsync", prefetch, synchronize, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {"cuStreamAttachMemAsync", attach, synchronize, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {"cuStreamWaitValue32", wait_for_value, synchronize, 0},
    {"cuStreamWriteValue32", write_value, synchronize, 0},
};

/* ---- the tests ---- */

/* No descriptor stays open. A descriptor that this process sends to itself is passed by a thread, which closes its end a moment later; and
 * the number may be lower, since threads of a runtime (Intel's) sometimes have a file open. */
static bool files_settle(unsigned wanted)
{
    for (int i = 0; i < 1000 && open_files_count() > wanted; i++)
        usleep(1000);
    return open_files_count() <= wanted;
}

/* *out_failed: whether allocation n was reached. */
static CUresult call_without(const struct row *row, long n, bool *out_failed)
{
    CUresult r;

    memset(&got, 0x5a, sizeof got);
    allocations_left = n;
    r = row->call();
    *out_failed = allocations_left < 0;
    allocations_left = -1;
    if (r == CUDA_SUCCESS) /* also if the function could continue without the failed allocation */
        row->undo();
    else if (r != CUDA_ERROR_OUT_OF_MEMORY)
        fail_msg("%s, allocation %ld: %s", row->name, n, api_error_name(r));
    return r;
}

/* Returns how many allocations the call makes. */
static long fail_each_once(const struct row *row)
{
    for (long n = 0; n < MOST; n++) {
        unsigned files = open_files_count();
        bool failed;
        CUresult r = call_without(row, n, &failed);

        if (r == CUDA_SUCCESS && !failed)
            return n;
        if (r == CUDA_SUCCESS)
            continue;
        for (size_t i = 0; i < sizeof got; i++)
            assert_int_equal(((unsigned char *)&got)[i], 0x5a);
        if (!files_settle(files)) { /* NVIDIA's driver keeps what it opens in its first call of a kind */
            files = open_files_count();
            (void)call_without(row, n, &failed);
            assert_true(files_settle(files));
        }
        ok(cuStreamSynchronize(given.stream)); /* the context is not in an error state */
    }
    fail_msg("%s: no end of allocations", row->name);
    return 0;
}

static void each_allocation_fails_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];

        if (row->needs && !seeds_attribute(row->needs))
            continue;
        print_message("%-36s %ld\n", row->name, fail_each_once(row));
        for (int again = 0; again < 2; again++) {
            ok(row->call());
            row->undo();
        }
    }
}

static void make_virtual(void)
{
    if (!vm_is_there())
        return;
    given.granule = vm_granule();
    given.physical = vm_create(1);
    ok(cuMemAddressReserve(&given.reserved, given.granule, 0, 0, 0));
    ok(cuMemAddressReserve(&given.mapped, given.granule, 0, 0, 0));
    ok(cuMemMap(given.mapped, given.granule, 0, given.physical, 0));
    if (!seeds_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        return;
    ok(create_shared());
    given.shared = got.handle;
    ok(export_physical());
    given.physical_fd = got.fd;
}

static void make_pools(void)
{
    if (!seeds_attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES)) {
        CUmemPoolProps private = pool_properties;

        private.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
        ok(cuMemPoolCreate(&given.pool, &private));
        return;
    }
    ok(create_pool());
    given.pool = got.pool;
    ok(cuMemAllocFromPoolAsync(&given.pooled, BYTES, given.pool, given.stream));
    ok(cuMemAllocFromPoolAsync(&given.fresh, LARGE, given.pool, given.stream)); /* with memory of its own */
    ok(cuStreamSynchronize(given.stream));
    ok(export_pool());
    given.pool_fd = got.fd;
    ok(import_pool());
    given.imported_pool = got.pool;
    ok(cuMemPoolExportPointer(&given.pointer_data, given.pooled));
}

static int make(void **state)
{
    if (with_context(state))
        return -1;
    given.pages = calloc(1, BYTES); /* zeros, which satisfy a wait for a value */
    ok(cuStreamCreate(&given.stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemAlloc(&given.memory, BYTES));
    ok(cuMemAllocHost(&given.pinned, BYTES));
    ok(cuArrayCreate(&given.array, &square));
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)) {
        given.registered = malloc(BYTES);
        register_again();
    }
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
        ok(cuMemAllocManaged(&given.managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    make_virtual();
    make_pools();
    hold_all();
    return 0;
}

static int destroy(void **state)
{
    let_go();
    if (given.imported_pool) {
        ok(cuMemFreeAsync(given.pooled, given.stream));
        ok(cuMemFreeAsync(given.fresh, given.stream));
        ok(cuStreamSynchronize(given.stream));
        ok(cuMemPoolDestroy(given.imported_pool));
        close(given.pool_fd);
    }
    ok(cuMemPoolDestroy(given.pool));
    if (given.shared) {
        ok(cuMemRelease(given.shared));
        close(given.physical_fd);
    }
    if (given.physical) {
        ok(cuMemUnmap(given.mapped, given.granule));
        ok(cuMemAddressFree(given.mapped, given.granule));
        ok(cuMemAddressFree(given.reserved, given.granule));
        ok(cuMemRelease(given.physical));
    }
    if (given.managed)
        ok(cuMemFree(given.managed));
    if (given.registered)
        ok(unregister_again());
    free(given.registered);
    ok(cuArrayDestroy(given.array));
    ok(cuMemFreeHost(given.pinned));
    ok(cuMemFree(given.memory));
    ok(cuStreamDestroy(given.stream));
    free(given.pages);
    return without_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails_once)};

    return cmocka_run_group_tests(tests, make, destroy);
}
