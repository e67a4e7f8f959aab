/* SPDX-License-Identifier: Apache-2.0 */
/* Checks documented_errors.def with the loaded libcuda: provokes each error that the manual lists for the functions of the memory chapters.
 * ../api/facts.h describes the harness. */
#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define HUGE_BYTES ((size_t)1 << 46)

/* Objects that rows refer to. */
static CUdevice device;
static CUcontext context;
static CUstream stream, gone_stream;
static CUevent event;
static CUmemoryPool pool, got_pool;
static CUarray array, got_array;
static CUmipmappedArray mipmap, got_mipmap;
static CUdeviceptr memory, more, managed, address;
static CUmemGenericAllocationHandle physical, got_physical;
static CUdeviceptr reserved, mapped;
static void *pinned, *pages, *got_host;
static size_t bytes, more_bytes, granule = 2 * MIB;
static unsigned word;
static int number;
static char text[64];
static unsigned long long flags;
static unsigned char here[4096], data[64];
static CUipcMemHandle memory_handle;
static CUipcEventHandle event_handle;
static CUmemPoolPtrExportData pointer_data;

static CUDA_ARRAY_DESCRIPTOR square = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
static CUDA_ARRAY_DESCRIPTOR got_square;
static CUDA_ARRAY3D_DESCRIPTOR cube = {.Width = 64, .Height = 64, .Depth = 0, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
static CUDA_ARRAY3D_DESCRIPTOR got_cube;
static CUDA_ARRAY_SPARSE_PROPERTIES sparse;
static CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
static CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static CUmemAllocationProp got_props;
static CUmemPoolProps got_pool_props,
    pool_props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static CUmemAccessDesc access_here = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static CUmemAccessDesc access_nowhere = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1000}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static CUmemAccessDesc access_host = {.location = {CU_MEM_LOCATION_TYPE_HOST, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static CUmemAccessDesc access_none = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
static CUmemAccessDesc access_reads = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
static CUmemAccess_flags got_access;
static CUmulticastObjectProp multicast = {.numDevices = 1, .size = 2 * MIB};
static CUasyncCallbackHandle notification;
static CUDA_MEMCPY2D rows;
static CUDA_MEMCPY3D copy;
static CUDA_MEMCPY3D_PEER peers;
static CUmemLocation of_device = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, of_none = {CU_MEM_LOCATION_TYPE_DEVICE, 1000};
static CUmemLocation of_host = {CU_MEM_LOCATION_TYPE_HOST, 0}, of_nowhere = {CU_MEM_LOCATION_TYPE_INVALID, 0}, of_node;
static CUdeviceptr sources[1], destinations[1];
static size_t sizes[1] = {16}, no_bytes[1], firsts[1];
static CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
static CUDA_MEMCPY3D_BATCH_OP box;
static CUpointer_attribute pointer_attributes[1] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
static CUpointer_attribute tokens_attribute[1] = {CU_POINTER_ATTRIBUTE_P2P_TOKENS};
static CUmem_range_attribute range_attributes[1] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY};
static void *values[1] = {data};
static size_t value_sizes[1] = {4};
static CUstreamBatchMemOpParams operation = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32}}, many_operations[256];

/* A copy of 16 bytes from the host to device memory, in which one member is made invalid. */
static CUDA_MEMCPY2D rows_to(CUdeviceptr to)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = here,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .WidthInBytes = 16,
                           .Height = 1};
}

static CUDA_MEMCPY3D box_to(CUdeviceptr to)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = here,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .WidthInBytes = 16,
                           .Height = 1,
                           .Depth = 1};
}

static CUDA_MEMCPY3D_PEER peer_box_to(CUdeviceptr to)
{
    return (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = here,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = to,
                                .dstContext = context,
                                .WidthInBytes = 16,
                                .Height = 1,
                                .Depth = 1};
}

/* Attributes of features that are queried where the device lacks them. */
static bool has(CUdevice_attribute attribute)
{
    int value = 0;

    return cuDeviceGetAttribute(&value, attribute, 0) == CUDA_SUCCESS && value;
}

/* An array whose context has been destroyed; `destroy` selects which result is returned. */
static CUresult of_destroyed_context(CUresult (*call)(CUarray))
{
    CUarray orphan;
    CUcontext other;
    CUresult r;

    if ((r = cuCtxCreate(&other, NULL, 0, device)) != CUDA_SUCCESS || (r = cuArrayCreate(&orphan, &square)) != CUDA_SUCCESS ||
        (r = cuCtxDestroy(other)) != CUDA_SUCCESS || (r = cuCtxSetCurrent(context)) != CUDA_SUCCESS)
        return r;
    return call(orphan);
}

static CUresult describe(CUarray of)
{
    return cuArray3DGetDescriptor(&got_cube, of);
}

static CUresult destroy_mipmap_of_destroyed_context(void)
{
    CUmipmappedArray orphan;
    CUcontext other;
    CUresult r;

    if ((r = cuCtxCreate(&other, NULL, 0, device)) != CUDA_SUCCESS || (r = cuMipmappedArrayCreate(&orphan, &cube, 2)) != CUDA_SUCCESS ||
        (r = cuCtxDestroy(other)) != CUDA_SUCCESS || (r = cuCtxSetCurrent(context)) != CUDA_SUCCESS)
        return r;
    return cuMipmappedArrayDestroy(orphan);
}

/* Creates arrays of 4 GiB until memory runs out, and frees them. Returns the result of the last call. */
static CUresult exhaust_by_arrays(bool of_three)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {.Width = 16384, .Height = 16384, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 4};
    const CUDA_ARRAY3D_DESCRIPTOR deep = {
        .Width = 512, .Height = 1024, .Depth = 512, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 4};
    enum { MOST = 100 };
    CUarray arrays[MOST];
    CUresult r = CUDA_SUCCESS;
    size_t count = 0;

    while (count < MOST && r == CUDA_SUCCESS)
        if ((r = of_three ? cuArray3DCreate(&arrays[count], &deep) : cuArrayCreate(&arrays[count], &flat)) == CUDA_SUCCESS)
            count++;
    while (count)
        cuArrayDestroy(arrays[--count]);
    return r;
}

static CUresult write_freed(void)
{
    CUresult r;

    if ((r = cuMemAlloc(&address, 64 * MIB)) != CUDA_SUCCESS || (r = cuMemFree(address)) != CUDA_SUCCESS)
        return r;
    return cuStreamWriteValue32(stream, address, 1, 0);
}

/* ---- groups ---- */
enum group { GROUP_before, GROUP_without, GROUP_after, GROUP_wrong, GROUP_inside, GROUP_lacking, GROUP_COUNT };

static bool make_objects(void)
{
    sources[0] = (CUdeviceptr)(uintptr_t)here;
    if (cuCtxCreate(&context, NULL, 0, device) != CUDA_SUCCESS || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
        cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS) != CUDA_SUCCESS ||
        cuMemAlloc(&memory, 4 * MIB) != CUDA_SUCCESS || cuMemAlloc(&more, MIB) != CUDA_SUCCESS ||
        cuMemAllocHost(&pinned, 4096) != CUDA_SUCCESS || cuArrayCreate(&array, &square) != CUDA_SUCCESS ||
        cuMipmappedArrayCreate(&mipmap, &cube, 2) != CUDA_SUCCESS)
        return false;
    if (cuStreamCreate(&gone_stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || cuStreamDestroy(gone_stream) != CUDA_SUCCESS)
        return false;
    destinations[0] = memory;
    operation.writeValue.address = memory;
    if (has(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) && cuMemPoolCreate(&pool, &pool_props) != CUDA_SUCCESS)
        return false;
    if (!has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
        return true;
    return cuMemGetAllocationGranularity(&granule, &props, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
           cuMemCreate(&physical, granule, &props, 0) == CUDA_SUCCESS && cuMemAddressReserve(&reserved, granule, 0, 0, 0) == CUDA_SUCCESS &&
           cuMemAddressReserve(&mapped, granule, 0, 0, 0) == CUDA_SUCCESS && cuMemMap(mapped, granule, 0, physical, 0) == CUDA_SUCCESS &&
           cuMemSetAccess(mapped, granule, &access_here, 1) == CUDA_SUCCESS;
}

static void run_at_exit(void);

static bool prepare(enum group group)
{
    pages = aligned_alloc(65536, 65536);
    if (!pages)
        return false;
    if (group == GROUP_before) {
        stream = CU_STREAM_PER_THREAD; /* batches do not accept NULL */
        return true;
    }
    if (group == GROUP_after && atexit(run_at_exit) != 0) /* before cuInit: called after the library's initialization */
        return false;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS || !make_objects())
        return false;
    if (group == GROUP_without)
        stream = CU_STREAM_PER_THREAD; /* any other stream has a context, and batches do not accept the default stream */
    return group != GROUP_without || cuCtxSetCurrent(NULL) == CUDA_SUCCESS;
}

static void (*rows_at_exit)(void *);
static void *user_at_exit;

static void run_at_exit(void)
{
    if (!rows_at_exit)
        return;
    rows_at_exit(user_at_exit);
    fflush(stdout);
    _exit(EXIT_SUCCESS);
}

/* Checks the rows of a group, if they apply to the device. */
static void run_rows(enum group group, void (*rows)(void *), void *user)
{
    const bool lacks = group != GROUP_before && !has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);

    if (group != GROUP_before && group != GROUP_after && lacks != (group == GROUP_lacking))
        return;
    if (group == GROUP_after) {
        rows_at_exit = rows, user_at_exit = user;
        exit(EXIT_FAILURE);
    }
    if (group != GROUP_inside)
        rows(user);
    else if (cuLaunchHostFunc(stream, rows, user) != CUDA_SUCCESS || cuStreamSynchronize(stream) != CUDA_SUCCESS)
        exit(EXIT_FAILURE);
}

#define FACTS_RUN run_rows
#define FACTS_FILE "memory/documented_errors.def" /* the name that ../facts.h uses */
#include "../facts.h"

int main(int count, char **arguments)
{
    return check_facts(count, arguments);
}
