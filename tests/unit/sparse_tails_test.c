/* SPDX-License-Identifier: Apache-2.0 */
/* Mip tails of sparse arrays, which lavapipe does not have: how core translates requests, on mock images with a given tiling. The expectations
 * are from the manual's sections on CUDA_ARRAY_SPARSE_PROPERTIES and CUarrayMapInfo. */
#include "../api/memory/arrays.h"
#include "mock_images.h"

#define TILE ((uint64_t)65536)
#define POOL_BYTES ((size_t)4 << 20)

static const struct ct_image_tiling tail_each = {TILE, 128, 128, 1, 2, 2 * TILE, false},
                                    tail_together = {TILE, 128, 128, 1, 2, 3 * TILE, true},
                                    all_tail = {TILE, 128, 128, 1, 0, 2 * TILE, false};
static const CUDA_ARRAY3D_DESCRIPTOR layered = {512, 512, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED};
static CUmemGenericAllocationHandle memory;

static int make_memory(void **state)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

    mock_use_tiling(&tail_each);
    if (with_context(state))
        return -1;
    properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    ok(cuMemCreate(&memory, POOL_BYTES, &properties, 0));
    assert_int_equal(mock_physicals(), 1);
    return 0;
}

static int release_memory(void **state)
{
    ok(cuMemRelease(memory));
    assert_int_equal(mock_physicals(), 0);
    return without_context(state);
}

static CUmipmappedArray mipmapped(const struct ct_image_tiling *tiling, unsigned levels)
{
    CUmipmappedArray mipmap;

    mock_use_tiling(tiling);
    ok(cuMipmappedArrayCreate(&mipmap, &layered, levels));
    return mipmap;
}

static CUarrayMapInfo request_of(CUmipmappedArray mipmap, uint64_t offset)
{
    CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, .offset = offset, .deviceBitMask = 1};

    info.resource.mipmap = mipmap;
    info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    info.memHandle.memHandle = memory;
    return info;
}

static unsigned map(CUarrayMapInfo info, const struct ct_tile_bind **out)
{
    ok(cuMemMapArrayAsync(&info, 1, NULL));
    ok(cuCtxSynchronize());
    return mock_binds(out);
}

static void is_tail_tile(const struct ct_tile_bind *bind, uint32_t layer, uint64_t tail_offset, uint64_t offset)
{
    assert_true(bind->tail);
    assert_int_equal(bind->layer, layer);
    assert_int_equal(bind->tail_offset, tail_offset);
    assert_int_equal(bind->offset, offset);
    assert_non_null(bind->physical);
}

/* "Otherwise, miptailSize specifies mip tail size per layer"; "layer must specify a valid layer index". */
static void each_layer_has_its_tail(void **state)
{
    CUmipmappedArray mipmap = mipmapped(&tail_each, 6);
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    const struct ct_tile_bind *binds;
    CUarrayMapInfo info, bad;

    (void)state;
    ok(cuMipmappedArrayGetSparseProperties(&properties, mipmap));
    assert_int_equal(properties.miptailFirstLevel, 2);
    assert_int_equal(properties.miptailSize, 2 * TILE);
    assert_int_equal(properties.flags, 0);
    info = request_of(mipmap, 5 * TILE);
    assert_int_equal(map(tail_of(info, 1, TILE, TILE), &binds), 1);
    is_tail_tile(&binds[0], 1, TILE, 5 * TILE);
    assert_int_equal(map(tail_of(info, 2, 0, 2 * TILE), &binds), 2);
    is_tail_tile(&binds[0], 2, 0, 5 * TILE);
    is_tail_tile(&binds[1], 2, TILE, 6 * TILE);
    bad = tail_of(info, 3, 0, TILE);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&bad, 1, NULL));
    bad = tail_of(info, 0, TILE, 2 * TILE);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&bad, 1, NULL));
    bad = tail_of(info, 0, 4096, TILE);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&bad, 1, NULL));
    bad = tail_of(info, 0, 0, 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&bad, 1, NULL));
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* "if flags contains SINGLE_MIPTAIL, then miptailSize specifies the size of the mip tail of all layers combined"; the layer "must be zero".
 */
static void layers_have_one_tail(void **state)
{
    CUmipmappedArray mipmap = mipmapped(&tail_together, 6);
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    const struct ct_tile_bind *binds;
    CUarrayMapInfo info, bad;

    (void)state;
    ok(cuMipmappedArrayGetSparseProperties(&properties, mipmap));
    assert_int_equal(properties.miptailSize, 3 * TILE);
    assert_int_equal(properties.flags, CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL);
    info = request_of(mipmap, 0);
    assert_int_equal(map(tail_of(info, 0, 0, 3 * TILE), &binds), 3);
    is_tail_tile(&binds[2], 0, 2 * TILE, 2 * TILE);
    bad = tail_of(info, 1, 0, TILE);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&bad, 1, NULL));
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* "SINGLE_MIPTAIL, then miptailSize represents the total size of the array"; "miptailFirstLevel is always zero". */
static void an_array_that_is_all_tail(void **state)
{
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    const struct ct_tile_bind *binds;
    CUarrayMapInfo info, bad;
    CUarray array;

    (void)state;
    mock_use_tiling(&all_tail);
    ok(cuArray3DCreate(&array, &layered));
    ok(cuArrayGetSparseProperties(&properties, array));
    assert_int_equal(properties.miptailFirstLevel, 0);
    assert_int_equal(properties.miptailSize, 3 * 2 * TILE);
    assert_int_equal(properties.flags, CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL);
    info = request_of(NULL, 0);
    info.resourceType = CU_RESOURCE_TYPE_ARRAY;
    info.resource.array = array;
    assert_int_equal(map(tail_of(info, 0, 3 * TILE, 2 * TILE), &binds), 2);
    is_tail_tile(&binds[0], 1, TILE, 0);
    is_tail_tile(&binds[1], 2, 0, TILE);
    bad = tail_of(info, 1, 0, TILE);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&bad, 1, NULL));
    bad = tail_of(info, 0, 5 * TILE, 2 * TILE);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&bad, 1, NULL));
    ok(cuArrayDestroy(array));
}

/* Levels in the tail are not mapped by boxes; those before are, each layer separately, row by row. */
static void levels_before_the_tail(void **state)
{
    CUmipmappedArray mipmap = mipmapped(&tail_each, 6);
    CUarrayMapInfo info = request_of(mipmap, TILE);
    const struct ct_tile_bind *binds;

    (void)state;
    info.subresource.sparseLevel.level = 1;
    info.subresource.sparseLevel.layer = 2;
    info.subresource.sparseLevel.extentWidth = info.subresource.sparseLevel.extentHeight = 256;
    info.subresource.sparseLevel.extentDepth = 1;
    assert_int_equal(map(info, &binds), 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_false(binds[i].tail);
        assert_int_equal(binds[i].level, 1);
        assert_int_equal(binds[i].layer, 2);
        assert_int_equal(binds[i].x, i % 2 * 128);
        assert_int_equal(binds[i].y, i / 2 * 128);
        assert_int_equal(binds[i].z, 0);
        assert_int_equal(binds[i].offset, (1 + i) * TILE);
    }
    info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    info.memHandle.memHandle = 0;
    assert_int_equal(map(info, &binds), 4);
    assert_null(binds[3].physical);
    info.subresource.sparseLevel.level = 2;
    info.subresource.sparseLevel.extentWidth = info.subresource.sparseLevel.extentHeight = 128;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&info, 1, NULL));
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* Each tile that uses a part of a memory object keeps the whole object alive. */
static void memory_is_freed_with_its_last_tile(void **state)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmipmappedArray mipmap = mipmapped(&tail_each, 6);
    CUarrayMapInfo info = request_of(mipmap, 0);
    const struct ct_tile_bind *binds;
    CUmemGenericAllocationHandle own;

    (void)state;
    properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    ok(cuMemCreate(&own, POOL_BYTES, &properties, 0));
    info.memHandle.memHandle = own;
    assert_int_equal(map(tail_of(info, 0, 0, 2 * TILE), &binds), 2);
    ok(cuMemRelease(own));
    assert_int_equal(mock_physicals(), 2);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(&info, 1, NULL)); /* the handle is invalid, but its memory still exists */
    info.memHandle.memHandle = memory;
    map(tail_of(info, 0, 0, TILE), &binds);
    assert_int_equal(mock_physicals(), 2);
    map(tail_of(info, 0, TILE, TILE), &binds);
    assert_int_equal(mock_physicals(), 1);
    ok(cuMipmappedArrayDestroy(mipmap));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_layer_has_its_tail),
        cmocka_unit_test(layers_have_one_tail),
        cmocka_unit_test(an_array_that_is_all_tail),
        cmocka_unit_test(levels_before_the_tail),
        cmocka_unit_test(memory_is_freed_with_its_last_tile),
    };

    return cmocka_run_group_tests(tests, make_memory, release_memory);
}
