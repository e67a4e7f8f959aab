/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses on RADV, with Mesa's drm-shim in place of a GPU: nothing is executed there, but the driver returns its real addresses. On GFX9
 * and newer chips these are the host's addresses behind a mask, on GFX8 low ones. */
#include "../api_test.h"

#include "../../shim/preload/buffers.h"
#include "core/memory/memory_arena.h"
#include "open_files.h"
#include "core/base/process.h"
#include "core/device/context.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RADV_MASK UINT64_C(0xffff800000000000)

static const struct ct_device_info *info(void)
{
    return &ct_process.devices[0].info;
}

/* Mesa 26 grants less: no sparse buffer begins between two multiples of 64 KiB, so that registered memory is not at its own pointer; and on GFX9 no
 * allocation follows another one immediately, so that none can be larger than a piece. */
static bool is_mesa26(void)
{
    const char *version = strstr(info()->driver, "Mesa ");

    return version && atoi(version + strlen("Mesa ")) >= 26;
}

/* The device address of a CUDA pointer, as the driver returned it. */
static uint64_t device_address(uint64_t pointer)
{
    struct ct_range range;

    ok(ct_address_find(pointer, 1, &range));
    return range.memory->address.v + range.memory_offset + (pointer - range.start);
}

static void is_masked(uint64_t pointer)
{
    assert_int_equal(device_address(pointer), pointer | info()->target.pointer_mask);
}

static void rule_of_the_chip(void **state)
{
    bool gfx8 = !strncmp(getenv("AMDGPU_GPU_ID"), "polaris", 7);
    int unified = 0, own_pointers = 0;

    (void)state;
    assert_int_equal(info()->address_rule, gfx8 ? CT_ADDRESS_CHOSEN : CT_ADDRESS_CHOSEN_MASK);
    assert_int_equal(info()->target.pointer_mask, gfx8 ? 0 : RADV_MASK);
    ok(cuDeviceGetAttribute(&unified, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
    ok(cuDeviceGetAttribute(&own_pointers, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0));
    assert_int_equal(unified, 1);
    assert_int_equal(own_pointers, !gfx8 && !is_mesa26());
}

static void device_memory(void **state)
{
    static const size_t sizes[] = {100, 4096, 1 << 20, (4 << 20) + 1, 64 << 20};
    CUdeviceptr p[5];

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        ok(cuMemAlloc(&p[i], sizes[i]));
        assert_true(p[i] >= info()->arenas[0].first && p[i] < info()->arenas[0].end);
        is_masked(p[i]);
        is_masked(p[i] + sizes[i] - 1);
    }
    for (size_t i = 0; i < 5; i++)
        ok(cuMemFree(p[i]));
}

static void host_memory(void **state)
{
    static const size_t sizes[] = {100, 4097, 3 << 20, (8 << 20) + 4096};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUdeviceptr device;
        char *host;

        ok(cuMemHostAlloc((void **)&host, sizes[i], 0));
        ok(cuMemHostGetDevicePointer(&device, host, 0));
        assert_int_equal(device, (uintptr_t)host);
        is_masked(device);
        is_masked(device + sizes[i] - 1);
        memset(host, 1, sizes[i]);
        ok(cuMemFreeHost(host));
    }
}

/* The amount of host memory that the driver uses now. */
struct host_bytes {
    uint64_t uncached, cached;
};

static struct host_bytes count_host(void)
{
    uint64_t (*bytes)(enum drm_shim_caching);

    *(void **)&bytes = dlsym(RTLD_DEFAULT, "drm_shim_bytes");
    assert_non_null(bytes);
    return (struct host_bytes){bytes(DRM_SHIM_UNCACHED), bytes(DRM_SHIM_CACHED) + bytes(DRM_SHIM_PAGES)};
}

static void has_grown(const struct host_bytes *since, uint64_t uncached, uint64_t cached)
{
    struct host_bytes now = count_host();

    assert_int_equal(now.uncached - since->uncached, uncached);
    assert_int_equal(now.cached - since->cached, cached);
}

/* "WRITECOMBINED ... Allocates the memory as write-combined (WC)": the driver has cached and uncached host memory, and every allocation
 * uses the type that is meant for it. */
static void write_combined_memory(void **state)
{
    static const size_t sizes[] = {4096, 3 << 20, (8 << 20) + 4096};
    static const unsigned flags[] = {0, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP,
                                     CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP};

    (void)state;
    for (size_t i = 0; i < 3 * 4; i++) {
        const size_t size = sizes[i % 3], bound = (size + 65535) & ~(size_t)65535; /* to a sparse buffer */
        const struct host_bytes before = count_host();
        void *plain, *combined;

        ok(cuMemHostAlloc(&plain, size, flags[i / 3]));
        has_grown(&before, 0, bound);
        ok(cuMemHostAlloc(&combined, size, flags[i / 3] | CU_MEMHOSTALLOC_WRITECOMBINED));
        has_grown(&before, size, bound);
        ok(cuMemFreeHost(plain));
        has_grown(&before, size, 0);
        ok(cuMemFreeHost(combined));
        has_grown(&before, 0, 0);
    }
}

/* In any page; also two registrations in one fragment of 2 MiB. */
static void registered_memory(void **state)
{
    const size_t size = 6 << 20;
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *ranges[] = {pages + 4096, pages + 3 * 4096 + 20, pages + (64 << 10)};
    static const size_t sizes[] = {4096, 5000, (5 << 20) + 300};
    CUdeviceptr device;

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < 3; i++)
        ok(cuMemHostRegister(ranges[i], sizes[i], CU_MEMHOSTREGISTER_DEVICEMAP));
    for (size_t i = 0; i < 3; i++) {
        ok(cuMemHostGetDevicePointer(&device, ranges[i], 0));
        is_masked(device);
        is_masked(device + sizes[i] - 1);
        if (info()->import_at_pointer)
            assert_int_equal(device, (uintptr_t)ranges[i]);
    }
    for (size_t i = 0; i < 3; i++)
        ok(cuMemHostUnregister(ranges[i]));
    munmap(pages, size);
}

/* The addresses of mappings are those of sparse buffers; more than 4 GiB of addresses use several of them. Nothing is bound: without
 * hardware a binding never completes. */
static void mapped_memory(void **state)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    const size_t size = (size_t)5 << 30, granule = (size_t)2 << 20;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr start;
    int value = 0;

    (void)state;
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    assert_int_equal(value, 1);
    ok(cuMemCreate(&handle, granule, &properties, 0));
    for (int i = 0; i < 3; i++) {
        ok(cuMemAddressReserve(&start, size, 0, 0, 0));
        assert_int_equal(start % granule, 0);
        ok(cuMemMap(start, granule, 0, handle, 0)); /* fails unless the driver returns the requested address */
        ok(cuMemMap(start + size - granule, granule, 0, handle, 0));
        ok(cuMemUnmap(start, granule));
        ok(cuMemUnmap(start + size - granule, granule));
        ok(cuMemAddressFree(start, size));
    }
    ok(cuMemRelease(handle));
}

/* ---- memory as file descriptors ---- */

#define SHARED_BYTES ((size_t)4 << 20)

/* Returns which buffer of the driver a descriptor denotes; closes it. */
static ino_t take_buffer(int fd, size_t bytes)
{
    struct stat file;

    assert_int_equal(fstat(fd, &file), 0);
    assert_int_equal(file.st_size, bytes);
    assert_int_equal(close(fd), 0);
    return file.st_ino;
}

static int range_handle(CUdeviceptr start, size_t bytes)
{
    int fd = -1;

    ok(cuMemGetHandleForAddressRange(&fd, start, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    return fd;
}

static void dma_bufs_of_memory(void **state)
{
    CUdeviceptr memory[2];
    int value = 0, fd;
    ino_t first;

    (void)state;
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    assert_int_equal(value, 1);
    for (int i = 0; i < 2; i++)
        ok(cuMemAlloc(&memory[i], SHARED_BYTES));
    first = take_buffer(range_handle(memory[0], SHARED_BYTES), SHARED_BYTES);
    assert_int_equal(take_buffer(range_handle(memory[0], 65536), SHARED_BYTES), first);
    assert_int_not_equal(take_buffer(range_handle(memory[1], SHARED_BYTES), SHARED_BYTES), first);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, memory[0] + 65536, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    for (int i = 0; i < 2; i++)
        ok(cuMemFree(memory[i]));
}

/* A mapping can be exported as a descriptor, too, if its memory was created for sharing. */
static void dma_bufs_of_mappings(void **state)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handles[2];
    CUdeviceptr start;
    int fd = -1;
    ino_t buffer;

    (void)state;
    ok(cuMemAddressReserve(&start, 2 * SHARED_BYTES, 0, 0, 0));
    ok(cuMemCreate(&handles[1], SHARED_BYTES, &properties, 0));
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    ok(cuMemCreate(&handles[0], SHARED_BYTES, &properties, 0));
    for (int i = 0; i < 2; i++)
        ok(cuMemMap(start + (size_t)i * SHARED_BYTES, SHARED_BYTES, 0, handles[i], 0));
    ok(cuMemExportToShareableHandle(&fd, handles[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    buffer = take_buffer(fd, SHARED_BYTES); /* this driver's opaque descriptors are dma-bufs */
    assert_int_equal(take_buffer(range_handle(start, SHARED_BYTES), SHARED_BYTES), buffer);
    gives(CUDA_ERROR_NOT_SUPPORTED,
          cuMemGetHandleForAddressRange(&fd, start + SHARED_BYTES, SHARED_BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, start, 2 * SHARED_BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, start + 65536, 65536, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ok(cuMemUnmap(start, 2 * SHARED_BYTES));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemGetHandleForAddressRange(&fd, start, SHARED_BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    for (int i = 0; i < 2; i++)
        ok(cuMemRelease(handles[i]));
    ok(cuMemAddressFree(start, 2 * SHARED_BYTES));
}

/* Buffers on imported memory are at the addresses that the chip's rule requires, overlapping ones at addresses of their own. */
static void imported_memory(void **state)
{
    static const CUexternalMemoryHandleType types[] = {CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole = {.size = SHARED_BYTES}, half = {.offset = SHARED_BYTES / 2, .size = SHARED_BYTES / 2};
    CUexternalMemory imported;
    CUdeviceptr memory, buffers[2];

    (void)state;
    ok(cuMemAlloc(&memory, SHARED_BYTES));
    for (int i = 0; i < 2; i++) {
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = types[i], .size = SHARED_BYTES};

        desc.handle.fd = range_handle(memory, SHARED_BYTES);
        ok(cuImportExternalMemory(&imported, &desc));
        ok(cuExternalMemoryGetMappedBuffer(&buffers[0], imported, &whole));
        ok(cuExternalMemoryGetMappedBuffer(&buffers[1], imported, &half));
        ok(cuDestroyExternalMemory(imported));
        for (int k = 0; k < 2; k++) {
            assert_true(buffers[k] >= info()->arenas[0].first && buffers[k] < info()->arenas[0].end);
            is_masked(buffers[k]);
            is_masked(buffers[k] + SHARED_BYTES / 2 - 1);
        }
        assert_true(buffers[1] >= buffers[0] + SHARED_BYTES || buffers[1] + SHARED_BYTES / 2 <= buffers[0]);
        for (int k = 0; k < 2; k++)
            ok(cuMemFree(buffers[k]));
    }
    ok(cuMemFree(memory));
}

/* ---- memory of several pieces, with CUTTLE_PIECE_BYTES as PIECE_BYTES ---- */

#define PIECE_BYTES ((size_t)2 << 20)
#define N_PIECES 3u
#define CONCATENATED_BYTES (2 * PIECE_BYTES + 65536)

/* The name from which a handle for other processes is made. */
static struct ct_allocation_share share_of(CUdeviceptr memory)
{
    struct ct_allocation_share share;
    CUipcMemHandle handle;

    ok(cuIpcGetMemHandle(&handle, memory));
    memcpy(&share, &handle, sizeof share);
    return share;
}

static void each_piece_has_a_descriptor(void **state)
{
    struct ct_shared_memory shared;
    struct ct_allocation_share share;
    CUdeviceptr memory;

    (void)state;
    ok(cuMemAlloc(&memory, CONCATENATED_BYTES));
    share = share_of(memory);
    ok(ct_share_fetch(&share.name, &shared));
    assert_int_equal(shared.n_parts, N_PIECES);
    for (uint32_t i = 0; i < N_PIECES; i++) {
        struct stat file, before;

        assert_int_equal(shared.parts[i].size_bytes, i + 1 < N_PIECES ? PIECE_BYTES : 65536);
        assert_int_equal(fstat(shared.parts[i].fd, &file), 0);
        assert_true((uint64_t)file.st_size >= shared.parts[i].size_bytes);
        if (i > 0) {
            assert_int_equal(fstat(shared.parts[i - 1].fd, &before), 0);
            assert_int_not_equal(file.st_ino, before.st_ino);
        }
    }
    ct_shared_memory_finish(&shared);
    ok(cuMemFree(memory));
    gives(CUDA_ERROR_INVALID_HANDLE, ct_share_fetch(&share.name, &shared));
}

/* What another process does with the handle. The driver's buffers exist in this process only, so here it is the same process. */
static void pieces_are_concatenated_again(void **state)
{
    struct ct_allocation_share share;
    struct ct_context *context;
    CUdeviceptr memory;

    (void)state;
    ok(cuMemAlloc(&memory, CONCATENATED_BYTES));
    share = share_of(memory);
    ok(ct_context_current(&context));
    for (int i = 0; i < 3; i++) {
        uint64_t lead, bytes;
        struct ct_backing backing;

        ok(ct_backing_open(context, &share.name, &backing, &lead, &bytes)); /* the address of each piece is read back and compared */
        assert_int_equal(lead, 0);
        assert_int_equal(bytes, CONCATENATED_BYTES);
        assert_int_equal(backing.memory->size_bytes, CONCATENATED_BYTES);
        assert_int_not_equal(backing.address, memory);
        assert_int_equal(backing.memory->address.v, backing.address | info()->target.pointer_mask);
        ct_backing_destroy(context, &backing);
    }
    ct_context_release(context);
    ok(cuMemFree(memory));
}

/* If only some pieces' descriptors fit, those that were sent are closed. */
static void descriptors_run_out(void **state)
{
    struct rlimit all, few;
    CUipcMemHandle handle;
    CUdeviceptr memory;
    unsigned more = 0, before;
    CUresult r;

    (void)state;
    ok(cuMemAlloc(&memory, CONCATENATED_BYTES));
    ok(cuIpcGetMemHandle(&handle, memory)); /* there is a socket now, permanently */
    ok(cuMemFree(memory));
    before = open_files_count();
    ok(cuMemAlloc(&memory, CONCATENATED_BYTES));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    do {
        few = (struct rlimit){.rlim_cur = open_files_limit(more), .rlim_max = all.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        r = cuIpcGetMemHandle(&handle, memory);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
        if (r != CUDA_SUCCESS)
            gives(CUDA_ERROR_OUT_OF_MEMORY, r);
    } while (r != CUDA_SUCCESS && ++more < 4 * N_PIECES);
    ok(r);
    assert_true(more >= N_PIECES);
    ok(cuMemFree(memory));
    assert_int_equal(open_files_count(), before);
}

/* A descriptor for a program denotes a single piece. */
static void a_dma_buf_is_one_piece(void **state)
{
    CUdeviceptr memory;
    int fd;

    (void)state;
    ok(cuMemAlloc(&memory, CONCATENATED_BYTES));
    take_buffer(range_handle(memory, PIECE_BYTES), PIECE_BYTES);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, memory, CONCATENATED_BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    ok(cuMemFree(memory));
}

int main(void)
{
    const struct CMUnitTest of_pieces[] = {
        cmocka_unit_test(descriptors_run_out), /* first: no connection is being closed yet */
        cmocka_unit_test(each_piece_has_a_descriptor),
        cmocka_unit_test(pieces_are_concatenated_again),
        cmocka_unit_test(a_dma_buf_is_one_piece),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_of_the_chip),      cmocka_unit_test(device_memory),        cmocka_unit_test(host_memory),
        cmocka_unit_test(write_combined_memory), cmocka_unit_test(registered_memory),    cmocka_unit_test(mapped_memory),
        cmocka_unit_test(dma_bufs_of_memory),    cmocka_unit_test(dma_bufs_of_mappings), cmocka_unit_test(imported_memory),
    };

    if (!getenv("AMDGPU_GPU_ID"))
        return 77;
    if (getenv("CUTTLE_PIECE_BYTES") && cuInit(0) == CUDA_SUCCESS && is_mesa26() && info()->max_allocation_bytes == PIECE_BYTES)
        return 77;
    if (getenv("CUTTLE_PIECE_BYTES"))
        return cmocka_run_group_tests(of_pieces, with_context, without_context);
    return cmocka_run_group_tests(tests, with_context, without_context);
}
