/* SPDX-License-Identifier: Apache-2.0 */
/* Earlier errors: functions of memory pools, arrays, virtual memory, and memory for other processes. */
#include "earlier_errors.h"

#define WIDTH 16 /* of arrays of bytes, in both dimensions */

static const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
static const CUmemPoolProps pool_props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAllocationProp virtual_props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUDA_ARRAY_DESCRIPTOR rectangle = {WIDTH, WIDTH, CU_AD_FORMAT_UNSIGNED_INT8, 1};
static const CUDA_ARRAY3D_DESCRIPTOR box = {WIDTH, WIDTH, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};

void errors_make_objects(struct broken *b)
{
    ok(cuMemPoolCreate(&b->pool, &pool_props));
    ok(cuMemPoolCreate(&b->other_pool, &pool_props));
    ok(cuMemAllocFromPoolAsync(&b->pooled, BYTES, b->pool, b->stream));
    ok(cuArrayCreate(&b->array, &rectangle));
    ok(cuArrayCreate(&b->other_array, &rectangle));
    ok(cuMipmappedArrayCreate(&b->mipmapped, &box, 2));
    if (!vm_is_there())
        return;
    b->granule = vm_granule();
    b->handle = vm_create(1);
    ok(cuMemAddressReserve(&b->reserved, 2 * b->granule, 0, 0, 0));
    b->mapped = b->reserved + b->granule;
    ok(cuMemMap(b->mapped, b->granule, 0, b->handle, 0));
    ok(vm_access(b->mapped, b->granule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

/* The pools and virtual memory belong to the device; arrays are destroyed with the context. */
void errors_destroy_objects(struct broken *b)
{
    cuMemFree(b->pooled);
    ok(cuMemPoolDestroy(b->pool));
    cuMemPoolDestroy(b->other_pool);
    if (!b->handle)
        return;
    cuMemUnmap(b->mapped, b->granule);
    cuMemAddressFree(b->reserved, 2 * b->granule);
    cuMemRelease(b->handle);
}

/* ---- pools ---- */

static CUresult make_pool(void)
{
    CUmemoryPool made;
    const CUresult r = cuMemPoolCreate(&made, &pool_props);

    return r == CUDA_SUCCESS ? cuMemPoolDestroy(made) : r;
}

static CUresult default_pool(bool set)
{
    CUmemoryPool found;
    const CUresult r = cuDeviceGetDefaultMemPool(&found, 0);

    return r == CUDA_SUCCESS && set ? cuDeviceSetMemPool(0, found) : r;
}

static CUresult current_pool(void)
{
    CUmemoryPool found;

    return cuDeviceGetMemPool(&found, 0);
}

static CUresult pool_attribute(CUmemoryPool pool, bool set)
{
    cuuint64_t bytes = 0;

    return set ? cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes)
               : cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes);
}

static CUresult pool_access(CUmemoryPool pool, bool set)
{
    const CUmemAccessDesc desc = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemLocation location = here;
    CUmemAccess_flags flags;

    return set ? cuMemPoolSetAccess(pool, &desc, 1) : cuMemPoolGetAccess(&flags, pool, &location);
}

/* ---- arrays ---- */

static CUresult make_array(bool with_box)
{
    CUarray made;
    const CUresult r = with_box ? cuArray3DCreate(&made, &box) : cuArrayCreate(&made, &rectangle);

    return r == CUDA_SUCCESS ? cuArrayDestroy(made) : r;
}

static CUresult make_mipmapped(void)
{
    CUmipmappedArray made;
    const CUresult r = cuMipmappedArrayCreate(&made, &box, 2);

    return r == CUDA_SUCCESS ? cuMipmappedArrayDestroy(made) : r;
}

static CUresult describe(CUarray array, bool as_box)
{
    CUDA_ARRAY_DESCRIPTOR two;
    CUDA_ARRAY3D_DESCRIPTOR three;

    return as_box ? cuArray3DGetDescriptor(&three, array) : cuArrayGetDescriptor(&two, array);
}

static CUresult level_of(CUmipmappedArray mipmapped)
{
    CUarray level;

    return cuMipmappedArrayGetLevel(&level, mipmapped, 1);
}

/* clang-format off */
#define OBJECTS(CALL, WAITS, CONTINUES) \
    CONTINUES(mem_pool_create, make_pool()) \
    CONTINUES(device_get_default_mem_pool, default_pool(false)) \
    CONTINUES(device_get_mem_pool, current_pool()) \
    CONTINUES(device_set_mem_pool, default_pool(true)) \
    CONTINUES(mem_pool_set_attribute, pool_attribute(b->pool, true)) \
    CONTINUES(mem_pool_get_attribute, pool_attribute(b->pool, false)) \
    CONTINUES(mem_pool_set_access, pool_access(b->pool, true)) \
    CONTINUES(mem_pool_get_access, pool_access(b->pool, false)) \
    CONTINUES(mem_pool_trim_to, cuMemPoolTrimTo(b->pool, 0)) \
    CALL(array_create, make_array(false)) \
    CALL(array_3d_create, make_array(true)) \
    CALL(array_get_descriptor, describe(b->array, false)) \
    CALL(array_3d_get_descriptor, describe(b->array, true)) \
    CALL(mipmapped_array_create, make_mipmapped()) \
    CALL(mipmapped_array_get_level, level_of(b->mipmapped)) \
    CALL(memcpy_h_to_a, cuMemcpyHtoA(b->array, 0, b->plain, WIDTH)) \
    WAITS(memcpy_a_to_h, cuMemcpyAtoH(b->plain, b->array, 0, WIDTH)) \
    CALL(memcpy_d_to_a, cuMemcpyDtoA(b->array, 0, b->device, WIDTH)) \
    CALL(memcpy_a_to_d, cuMemcpyAtoD(b->device, b->array, 0, WIDTH)) \
    CALL(memcpy_a_to_a, cuMemcpyAtoA(b->other_array, 0, b->array, 0, WIDTH)) \
    CALL(memcpy_h_to_a_async, cuMemcpyHtoAAsync(b->array, 0, b->host, WIDTH, b->stream)) \
    CALL(memcpy_a_to_h_async, cuMemcpyAtoHAsync(b->host, b->array, 0, WIDTH, b->stream)) \
    CALL(array_destroy, cuArrayDestroy(b->other_array)) \
    CALL(mipmapped_array_destroy, cuMipmappedArrayDestroy(b->mipmapped)) \
    CONTINUES(mem_pool_destroy, cuMemPoolDestroy(b->other_pool))
/* clang-format on */

ERRORS_TABLE(errors_objects, OBJECTS)

/* ---- virtual memory, and memory for other processes ---- */

static CUresult reserve(struct broken *b)
{
    CUdeviceptr start;
    const CUresult r = cuMemAddressReserve(&start, b->granule, 0, 0, 0);

    return r == CUDA_SUCCESS ? cuMemAddressFree(start, b->granule) : r;
}

static CUresult create(struct broken *b)
{
    CUmemGenericAllocationHandle made;
    const CUresult r = cuMemCreate(&made, b->granule, &virtual_props, 0);

    return r == CUDA_SUCCESS ? cuMemRelease(made) : r;
}

static CUresult map(struct broken *b)
{
    const CUresult r = cuMemMap(b->reserved, b->granule, 0, b->handle, 0);

    return r == CUDA_SUCCESS ? cuMemUnmap(b->reserved, b->granule) : r;
}

static CUresult access_of(struct broken *b, bool set)
{
    const CUmemAccessDesc desc = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned long long flags;

    return set ? cuMemSetAccess(b->mapped, b->granule, &desc, 1) : cuMemGetAccess(&flags, &here, b->mapped);
}

static CUresult properties(struct broken *b)
{
    CUmemAllocationProp found;

    return cuMemGetAllocationPropertiesFromHandle(&found, b->handle);
}

static CUresult retain(struct broken *b)
{
    CUmemGenericAllocationHandle found;
    const CUresult r = cuMemRetainAllocationHandle(&found, (void *)(uintptr_t)b->mapped);

    return r == CUDA_SUCCESS ? cuMemRelease(found) : r;
}

static CUresult ipc_handle(struct broken *b)
{
    CUipcMemHandle handle;

    return cuIpcGetMemHandle(&handle, b->device);
}

/* clang-format off */
#define VIRTUAL(CALL, WAITS, CONTINUES) \
    CONTINUES(mem_get_allocation_granularity, cuMemGetAllocationGranularity(&b->size, &virtual_props, CU_MEM_ALLOC_GRANULARITY_MINIMUM)) \
    CONTINUES(mem_address_reserve, reserve(b)) \
    CONTINUES(mem_create, create(b)) \
    CONTINUES(mem_map, map(b)) \
    CONTINUES(mem_set_access, access_of(b, true)) \
    CONTINUES(mem_get_access, access_of(b, false)) \
    CONTINUES(mem_get_allocation_properties, properties(b)) \
    CONTINUES(mem_retain_allocation_handle, retain(b)) \
    CALL(ipc_get_mem_handle, ipc_handle(b)) \
    CONTINUES(mem_unmap, cuMemUnmap(b->mapped, b->granule)) \
    CONTINUES(mem_release, cuMemRelease(b->handle))
/* clang-format on */

ERRORS_TABLE(errors_virtual, VIRTUAL)
