/* SPDX-License-Identifier: Apache-2.0 */
/* Textures of arrays that get their memory later: sparse ones, and those with deferred mapping, whose objects may be created before. */
#include "texture_kernels.h"

#include <stdbool.h>

#define SIDE 256u

static void need(CUdevice_attribute attribute)
{
    int value = 0;

    ok(cuDeviceGetAttribute(&value, attribute, 0));
    if (!value)
        skip();
}

static CUmemGenericAllocationHandle make_memory(size_t bytes)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle;
    size_t granularity;

    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    ok(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemCreate(&handle, (bytes + granularity - 1) / granularity * granularity, &properties, 0));
    return handle;
}

static CUarray make_array(CUarray_format format, unsigned channels, unsigned flags)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {4 * SIDE, 4 * SIDE, 0, format, channels, flags};
    CUarray array;

    ok(cuArray3DCreate(&array, &desc));
    return array;
}

static CUarrayMapInfo request_for(CUarray array, CUmemGenericAllocationHandle memory_or_0)
{
    CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY, .deviceBitMask = 1};

    info.resource.array = array;
    info.memOperationType = memory_or_0 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
    info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    info.memHandle.memHandle = memory_or_0;
    return info;
}

static void expect_first(CUtexObject object, float value)
{
    const struct place place = {.x = 0.5f, .y = 0.5f};
    float texel[4];

    fetch("fetch_2d", object, &place, 1, (uint32_t *)texel);
    if (texel[0] != value)
        print_error("%g, not %g\n", (double)texel[0], (double)value);
    assert_true(texel[0] == value);
}

/* An array with memory, whose texture must work whether or not others have memory. */
static CUtexObject make_plain(CUarray *out)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    const float value = 7.0f;

    ok(cuArray3DCreate(out, &desc));
    ok(copy_to_row(*out, &value, sizeof value));
    return point_texture_of(*out);
}

/* The memory is mapped, unmapped, and other memory is mapped, while the object exists. */
static void deferred_arrays_are_read(void **state)
{
    static const struct {
        CUarray_format format;
        unsigned channels, bytes;
        float value;
        unsigned char element[8];
    } cases[] = {{CU_AD_FORMAT_FLOAT, 1, 4, 1.0f, {0, 0, 0x80, 0x3f}}, {CU_AD_FORMAT_BC1_UNORM, 4, 8, 1.0f, {0xff, 0xff, 0xff, 0xff}}};
    CUarray plain_array;
    CUtexObject plain;

    (void)state;
    need(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
    plain = make_plain(&plain_array);
    for (size_t i = 0; i < 2; i++) {
        CUarray array = make_array(cases[i].format, cases[i].channels, CUDA_ARRAY3D_DEFERRED_MAPPING);
        const CUtexObject object = point_texture_of(array);
        CUDA_ARRAY_MEMORY_REQUIREMENTS needed;
        CUarrayMapInfo unmap = request_for(array, 0);

        expect_first(plain, 7.0f);
        ok(cuArrayGetMemoryRequirements(&needed, array, 0));
        for (unsigned round = 0; round < 2; round++) {
            CUmemGenericAllocationHandle memory = make_memory(needed.size);
            CUarrayMapInfo map = request_for(array, memory);

            ok(cuMemMapArrayAsync(&map, 1, NULL));
            ok(copy_to_row(array, cases[i].element, cases[i].bytes));
            expect_first(object, cases[i].value);
            ok(cuMemMapArrayAsync(&unmap, 1, NULL));
            ok(cuStreamSynchronize(NULL));
            ok(cuMemRelease(memory));
            expect_first(plain, 7.0f);
        }
        ok(cuTexObjectDestroy(object));
        ok(cuArrayDestroy(array));
    }
    ok(cuTexObjectDestroy(plain));
    ok(cuArrayDestroy(plain_array));
}

/* A tile of compressed blocks; its extent is in texels. */
static void sparse_blocks_are_read(void **state)
{
    static const unsigned char white[] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
    const CUDA_ARRAY3D_DESCRIPTOR desc = {4 * SIDE, 4 * SIDE, 0, CU_AD_FORMAT_BC1_UNORM, 4, CUDA_ARRAY3D_SPARSE};
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    CUmemGenericAllocationHandle memory;
    CUarrayMapInfo map, unmap;
    CUtexObject object;
    CUarray array;

    (void)state;
    need(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    if (on_cuttle() && cuArray3DCreate(&array, &desc) == CUDA_ERROR_NOT_SUPPORTED)
        skip(); /* the driver does not say how many texels a tile has */
    if (!on_cuttle())
        array = make_array(CU_AD_FORMAT_BC1_UNORM, 4, CUDA_ARRAY3D_SPARSE);
    ok(cuArrayGetSparseProperties(&properties, array));
    assert_int_equal(properties.tileExtent.width * properties.tileExtent.height / 2, 65536); /* half a byte each */
    memory = make_memory(65536);
    map = request_for(array, memory);
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    map.subresource.sparseLevel.extentWidth = properties.tileExtent.width;
    map.subresource.sparseLevel.extentHeight = properties.tileExtent.height;
    map.subresource.sparseLevel.extentDepth = 1;
    unmap = map;
    unmap.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    unmap.memHandle.memHandle = 0;
    object = point_texture_of(array);
    ok(cuMemMapArrayAsync(&map, 1, NULL));
    ok(copy_to_row(array, white, sizeof white));
    expect_first(object, 1.0f);
    ok(cuMemMapArrayAsync(&unmap, 1, NULL));
    ok(cuTexObjectDestroy(object));
    ok(cuArrayDestroy(array));
    ok(cuMemRelease(memory));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deferred_arrays_are_read),
        cmocka_unit_test(sparse_blocks_are_read),
    };

    return cmocka_run_group_tests_name("late_arrays", tests, textures_set_up, textures_tear_down);
}
