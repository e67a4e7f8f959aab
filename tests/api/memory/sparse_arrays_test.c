/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that get their memory later, by cuMemMapArrayAsync: sparse ones tile by tile, those with deferred mapping at once. */
#include "arrays.h"

#include <stdbool.h>

#define POOL_BYTES ((size_t)8 << 20)
#define FLOAT CU_AD_FORMAT_FLOAT
#define SPARSE CUDA_ARRAY3D_SPARSE
#define DEFERRED CUDA_ARRAY3D_DEFERRED_MAPPING

static bool has_sparse(void)
{
    return attribute(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
}

static CUmemAllocationProp pool_properties(void)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    return properties;
}

static CUmemGenericAllocationHandle pool(void)
{
    const CUmemAllocationProp properties = pool_properties();
    CUmemGenericAllocationHandle handle;

    ok(cuMemCreate(&handle, POOL_BYTES, &properties, 0));
    return handle;
}

static CUarrayMapInfo request_for(CUarray array, CUmemGenericAllocationHandle memory_or_0, size_t offset)
{
    CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY, .offset = offset, .deviceBitMask = 1};

    info.resource.array = array;
    info.memOperationType = memory_or_0 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
    info.memHandle.memHandle = memory_or_0;
    return info;
}

static CUarrayMapInfo box_of(CUarrayMapInfo info, const unsigned offset[3], const unsigned extent[3])
{
    info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    info.subresource.sparseLevel.offsetX = offset[0];
    info.subresource.sparseLevel.offsetY = offset[1];
    info.subresource.sparseLevel.offsetZ = offset[2];
    info.subresource.sparseLevel.extentWidth = extent[0];
    info.subresource.sparseLevel.extentHeight = extent[1];
    info.subresource.sparseLevel.extentDepth = extent[2];
    return info;
}

static size_t tile_bytes(const CUDA_ARRAY_SPARSE_PROPERTIES *properties, size_t element_bytes)
{
    return (size_t)properties->tileExtent.width * properties->tileExtent.height * properties->tileExtent.depth * element_bytes;
}

/* Copies a box of 4-byte elements to an array or from it. */
struct box {
    size_t x, y, z, width, height, depth;
};

static void copy_box(CUarray array, const struct box *box, void *host, bool to_array)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = box->width * 4, .Height = box->height, .Depth = box->depth};

    copy.srcMemoryType = to_array ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
    copy.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    copy.srcHost = copy.dstHost = host;
    copy.srcArray = copy.dstArray = array;
    copy.srcPitch = copy.dstPitch = box->width * 4;
    copy.srcHeight = copy.dstHeight = box->height;
    if (to_array) {
        copy.dstXInBytes = box->x * 4;
        copy.dstY = box->y;
        copy.dstZ = box->z;
    } else {
        copy.srcXInBytes = box->x * 4;
        copy.srcY = box->y;
        copy.srcZ = box->z;
    }
    ok(cuMemcpy3D(&copy));
}

static void write_box(CUarray array, const struct box *box, unsigned seed)
{
    size_t bytes = box->width * box->height * box->depth * 4;
    unsigned char *there = malloc(bytes);

    fill_with_noise(there, bytes, seed);
    copy_box(array, box, there, true);
    free(there);
}

static void check_box(CUarray array, const struct box *box, unsigned seed)
{
    size_t bytes = box->width * box->height * box->depth * 4;
    unsigned char *want = malloc(bytes), *got = calloc(1, bytes);

    fill_with_noise(want, bytes, seed);
    copy_box(array, box, got, false);
    assert_memory_equal(want, got, bytes);
    free(want);
    free(got);
}

static void holds(CUarray array, const struct box *box, unsigned seed)
{
    write_box(array, box, seed);
    check_box(array, box, seed);
}

/* ---- supported arrays ---- */

static void attributes_decide(void **state)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {512, 512, 0, FLOAT, 1, SPARSE};
    const CUmemAllocationProp properties = pool_properties();
    CUmemGenericAllocationHandle handle;
    CUarrayMapInfo info = {0};
    CUarray array;

    (void)state;
    if (has_sparse())
        skip();
    gives(CUDA_ERROR_NOT_SUPPORTED, cuArray3DCreate(&array, &desc));
    desc.Flags = DEFERRED;
    gives(CUDA_ERROR_NOT_SUPPORTED, cuArray3DCreate(&array, &desc));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&handle, POOL_BYTES, &properties, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuMemMapArrayAsync(&info, 1, NULL));
}

static void kinds_by_the_manual(void **state)
{
    static const struct {
        CUDA_ARRAY3D_DESCRIPTOR desc;
        CUresult want;
    } rows[] = {
        {{256, 256, 0, FLOAT, 1, SPARSE}, CUDA_SUCCESS},
        {{256, 256, 3, FLOAT, 1, SPARSE | CUDA_ARRAY3D_LAYERED}, CUDA_SUCCESS},
        {{64, 64, 64, FLOAT, 1, SPARSE}, CUDA_SUCCESS},
        {{256, 256, 0, FLOAT, 1, DEFERRED}, CUDA_SUCCESS},
        {{64, 64, 64, FLOAT, 1, DEFERRED | CUDA_ARRAY3D_SURFACE_LDST}, CUDA_SUCCESS},
        {{256, 0, 0, FLOAT, 1, SPARSE}, CUDA_ERROR_INVALID_VALUE},
        {{256, 0, 2, FLOAT, 1, DEFERRED | CUDA_ARRAY3D_LAYERED}, CUDA_ERROR_INVALID_VALUE},
        {{64, 64, 6, FLOAT, 1, SPARSE | CUDA_ARRAY3D_CUBEMAP}, CUDA_ERROR_INVALID_VALUE},
        {{256, 256, 0, FLOAT, 1, SPARSE | DEFERRED}, CUDA_ERROR_INVALID_VALUE},
    };

    (void)state;
    if (!has_sparse())
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUDA_ARRAY3D_DESCRIPTOR got;
        CUarray array;

        if (rows[i].want != CUDA_SUCCESS && !on_cuttle())
            continue; /* NVIDIA's driver creates arrays of kinds that the manual excludes */
        gives(rows[i].want, cuArray3DCreate(&array, &rows[i].desc));
        if (rows[i].want != CUDA_SUCCESS)
            continue;
        ok(cuArray3DGetDescriptor(&got, array));
        assert_int_equal(got.Flags, rows[i].desc.Flags);
        ok(cuArrayDestroy(array));
    }
}

/* ---- kernels ---- */

/* change: *out = texel (x, y) of a texture, and that texel of a surface becomes the texel and 1.5. */
static const char kernels[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry change(.param .u64 texture, .param .u64 surface, .param .u64 out, .param .u32 x, .param .u32 y)\n{\n"
    ".reg .b32 r<4>; .reg .f32 f<8>; .reg .b64 d<3>;\n"
    "ld.param.u64 d0,[texture]; ld.param.u64 d1,[surface]; ld.param.u64 d2,[out]; ld.param.u32 r0,[x]; ld.param.u32 r1,[y];\n"
    "cvt.rn.f32.u32 f0,r0; cvt.rn.f32.u32 f1,r1; tex.2d.v4.f32.f32 {f2,f3,f4,f5},[d0,{f0,f1}]; st.global.f32 [d2],f2;\n"
    "add.f32 f2,f2,0f3FC00000; shl.b32 r0,r0,2; sust.b.2d.b32.trap [d1,{r0,r1}],{f2}; ret;\n}\n";

/* Kernels read and change the tiles that have memory, and may access others. */
static void kernels_access_tiles(void **state)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {512, 384, 0, FLOAT, 1, SPARSE | CUDA_ARRAY3D_SURFACE_LDST};
    const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    CUmemGenericAllocationHandle memory;
    CUarrayMapInfo info;
    CUsurfObject surface;
    CUtexObject texture;
    CUfunction function;
    CUdeviceptr out;
    CUmodule module;
    CUarray array;

    (void)state;
    if (!has_sparse())
        skip();
    memory = pool();
    ok(cuModuleLoadData(&module, kernels));
    ok(cuModuleGetFunction(&function, module, "change"));
    ok(cuMemAlloc(&out, sizeof(float)));
    ok(cuArray3DCreate(&array, &desc));
    ok(cuArrayGetSparseProperties(&properties, array));
    resource.res.array.hArray = array;
    ok(cuTexObjectCreate(&texture, &resource, &how, NULL));
    ok(cuSurfObjectCreate(&surface, &resource));
    info = box_of(request_for(array, memory, 0), (unsigned[3]){0, 0, 0},
                  (unsigned[3]){properties.tileExtent.width, properties.tileExtent.height, 1});
    ok(cuMemMapArrayAsync(&info, 1, NULL));
    for (int round = 0; round < 2; round++)
        for (int in_tile = 0; in_tile < 2; in_tile++) {
            unsigned x = in_tile ? 7 : 511, y = in_tile ? 5 : 383;
            const struct box there = {.x = x, .y = y, .width = 1, .height = 1, .depth = 1};
            void *params[] = {&texture, &surface, &out, &x, &y};
            float texel = (float)(10 * round + 3), found;

            copy_box(array, &there, &texel, true);
            ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
            ok(cuMemcpyDtoH(&found, out, sizeof found));
            assert_true(found == texel || !in_tile);
            copy_box(array, &there, &found, false);
            assert_true(found == texel + 1.5f || !in_tile);
        }
    ok(cuSurfObjectDestroy(surface));
    ok(cuTexObjectDestroy(texture));
    ok(cuArrayDestroy(array));
    ok(cuMemFree(out));
    ok(cuModuleUnload(module));
    ok(cuMemRelease(memory));
}

/* ---- tiles ---- */

/* Arrays of several kinds, every tile mapped by one request for each layer. */
static void all_tiles_hold_all_bytes(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR rows[] = {
        {512, 384, 0, FLOAT, 1, SPARSE},
        {300, 200, 0, FLOAT, 1, SPARSE}, /* its last tiles are partial */
        {256, 256, 3, FLOAT, 1, SPARSE | CUDA_ARRAY3D_LAYERED},
        {100, 70, 40, FLOAT, 1, SPARSE},
    };

    (void)state;
    if (!has_sparse())
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const CUDA_ARRAY3D_DESCRIPTOR *desc = &rows[i];
        const bool layered = desc->Flags & CUDA_ARRAY3D_LAYERED;
        const unsigned layers = layered ? (unsigned)desc->Depth : 1, depth = layered ? 1 : (unsigned)at_least_one(desc->Depth);
        const unsigned offset[3] = {0}, extent[3] = {(unsigned)desc->Width, (unsigned)desc->Height, depth};
        const struct box all = {0, 0, 0, desc->Width, desc->Height, at_least_one(desc->Depth)};
        CUmemGenericAllocationHandle memory = pool();
        CUDA_ARRAY_SPARSE_PROPERTIES properties;
        CUarray array;

        ok(cuArray3DCreate(&array, desc));
        ok(cuArrayGetSparseProperties(&properties, array));
        assert_int_equal(tile_bytes(&properties, 4), 65536);
        assert_int_equal(properties.miptailFirstLevel, 0);
        assert_int_equal(properties.miptailSize, 0);
        assert_int_equal(properties.flags, 0);
        for (unsigned layer = 0; layer < layers; layer++) {
            CUarrayMapInfo info = box_of(request_for(array, memory, layer * POOL_BYTES / 4), offset, extent);

            info.subresource.sparseLevel.layer = layer;
            ok(cuMemMapArrayAsync(&info, 1, NULL));
        }
        holds(array, &all, (unsigned)i);
        ok(cuMemRelease(memory)); /* the tiles keep the memory alive */
        check_box(array, &all, (unsigned)i);
        ok(cuArrayDestroy(array));
    }
}

/* Data written through one tile is read through another one to which the same memory is mapped later. */
static void memory_moves_between_tiles_and_arrays(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {512, 512, 0, FLOAT, 1, SPARSE};
    CUmemGenericAllocationHandle memory;
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    unsigned offset[3] = {0}, extent[3];
    CUarrayMapInfo list[3];
    CUarray from, to;
    struct box box;

    (void)state;
    if (!has_sparse())
        skip();
    memory = pool();
    ok(cuArray3DCreate(&from, &desc));
    ok(cuArray3DCreate(&to, &desc));
    ok(cuArrayGetSparseProperties(&properties, from));
    extent[0] = properties.tileExtent.width;
    extent[1] = properties.tileExtent.height;
    extent[2] = 1;
    box = (struct box){0, 0, 0, extent[0], extent[1], 1};
    list[0] = box_of(request_for(from, memory, 3 * 65536), offset, extent);
    ok(cuMemMapArrayAsync(list, 1, NULL));
    write_box(from, &box, 5);
    box.x = offset[0] = extent[0];
    box.y = offset[1] = 2 * extent[1];
    list[0] = request_for(from, 0, 0);
    list[0] = box_of(list[0], (unsigned[3]){0}, extent);
    list[1] = box_of(request_for(from, memory, 3 * 65536), offset, extent);
    list[2] = box_of(request_for(to, memory, 3 * 65536), offset, extent);
    ok(cuMemMapArrayAsync(list, 3, CU_STREAM_PER_THREAD));
    ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    check_box(from, &box, 5);
    check_box(to, &box, 5);
    write_box(to, &box, 6);
    check_box(from, &box, 6);
    ok(cuMemRelease(memory));
    ok(cuArrayDestroy(from));
    check_box(to, &box, 6);
    ok(cuArrayDestroy(to));
}

/* A copy between two mappings accesses the first one, not the second. */
static void mappings_keep_the_order_of_the_stream(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {128, 128, 0, FLOAT, 1, SPARSE};
    enum { BYTES = 128 * 128 * 4, STEPS = 8 };
    CUmemGenericAllocationHandle memory;
    unsigned offset[3] = {0}, extent[3] = {128, 128, 1};
    unsigned char *host;
    CUstream stream;
    CUarray array;

    (void)state;
    if (!has_sparse())
        skip();
    memory = pool();
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuArray3DCreate(&array, &desc));
    ok(cuMemAllocHost((void **)&host, (size_t)2 * STEPS * BYTES));
    fill_with_noise(host, (size_t)STEPS * BYTES, 9);
    for (int turn = 0; turn < 2; turn++) /* memory is returned to the pool and allocated again */
        for (int i = 0; i < STEPS; i++) {
            CUarrayMapInfo info = box_of(request_for(array, memory, (size_t)i * 65536), offset, extent);
            CUDA_MEMCPY2D copy = {.WidthInBytes = 512, .Height = 128, .srcPitch = 512, .dstPitch = 512};

            copy.srcMemoryType = turn ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
            copy.dstMemoryType = turn ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
            copy.srcArray = copy.dstArray = array;
            copy.srcHost = host + (size_t)i * BYTES;
            copy.dstHost = host + (size_t)(STEPS + i) * BYTES;
            ok(cuMemMapArrayAsync(&info, 1, stream));
            ok(cuMemcpy2DAsync(&copy, stream));
        }
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(host, host + (size_t)STEPS * BYTES, (size_t)STEPS * BYTES);
    for (int i = 0; i < STEPS; i++) { /* destroyed while requests are pending */
        CUarrayMapInfo info = box_of(request_for(array, memory, (size_t)i * 65536), offset, extent);

        ok(cuMemMapArrayAsync(&info, 1, stream));
    }
    ok(cuArrayDestroy(array));
    ok(cuMemFreeHost(host));
    ok(cuStreamDestroy(stream));
    ok(cuMemRelease(memory));
}

/* Released memory is freed with the last tile that uses it: the test allocates more in total, a quarter at a time, than there is. */
static void memory_is_freed_with_its_last_tile(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {512, 512, 0, FLOAT, 1, SPARSE};
    const unsigned whole[3] = {512, 512, 1}, start[3] = {0};
    const CUmemAllocationProp properties = pool_properties();
    size_t unused, total, bytes;
    CUarray array;

    (void)state;
    if (!has_sparse() || !on_cuttle()) /* NVIDIA's driver does not create tile pools of that size */
        skip();
    ok(cuMemGetInfo(&unused, &total));
    bytes = unused / 4 & ~(((size_t)2 << 20) - 1);
    ok(cuArray3DCreate(&array, &desc));
    for (unsigned i = 0; i < 12; i++) {
        CUmemGenericAllocationHandle memory;
        CUarrayMapInfo info;

        ok(cuMemCreate(&memory, bytes, &properties, 0));
        info = box_of(request_for(array, memory, bytes - 16 * 65536), start, whole); /* every other tile at the position of the last one */
        ok(cuMemMapArrayAsync(&info, 1, NULL));
        ok(cuMemRelease(memory));
        if (i % 4 == 1) {
            info = box_of(request_for(array, 0, 0), start, whole);
            ok(cuMemMapArrayAsync(&info, 1, NULL));
        } else if (i % 4 == 3) {
            ok(cuArrayDestroy(array));
            ok(cuArray3DCreate(&array, &desc));
        }
        ok(cuCtxSynchronize());
    }
    ok(cuArrayDestroy(array));
}

/* ---- levels and tails ---- */

static void map_level(CUmipmappedArray mipmap, unsigned level, unsigned layer, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                      CUmemGenericAllocationHandle memory, size_t offset)
{
    const unsigned start[3] = {0}, extent[3] = {(unsigned)desc->Width, (unsigned)desc->Height, 1};
    CUarrayMapInfo info = box_of(request_for(NULL, memory, offset), start, extent);

    info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    info.resource.mipmap = mipmap;
    info.subresource.sparseLevel.level = level;
    info.subresource.sparseLevel.layer = layer;
    ok(cuMemMapArrayAsync(&info, 1, NULL));
}

static void every_level_holds_its_bytes(CUmipmappedArray mipmap, unsigned levels)
{
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned level = 0; level < levels; level++) {
            CUDA_ARRAY3D_DESCRIPTOR desc;
            CUarray array;
            struct box box;

            ok(cuMipmappedArrayGetLevel(&array, mipmap, level));
            ok(cuArray3DGetDescriptor(&desc, array));
            box = (struct box){0, 0, 0, desc.Width, desc.Height, at_least_one(desc.Depth)};
            if (pass == 0)
                write_box(array, &box, level);
            else
                check_box(array, &box, level);
        }
}

static void levels_and_tails_of_mipmapped_arrays(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR rows[] = {
        {512, 512, 0, FLOAT, 1, SPARSE},
        {256, 256, 2, FLOAT, 1, SPARSE | CUDA_ARRAY3D_LAYERED},
    };

    (void)state;
    if (!has_sparse())
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const unsigned layers = (unsigned)at_least_one(rows[i].Depth), levels = 8;
        CUmemGenericAllocationHandle memory = pool();
        CUDA_ARRAY_SPARSE_PROPERTIES properties, of_level;
        CUmipmappedArray mipmap;
        unsigned first_in_tail;
        size_t offset = 0;

        ok(cuMipmappedArrayCreate(&mipmap, &rows[i], levels));
        ok(cuMipmappedArrayGetSparseProperties(&properties, mipmap));
        assert_int_equal(tile_bytes(&properties, 4), 65536);
        assert_int_equal(properties.miptailSize % 65536, 0);
        first_in_tail = levels; /* without a tail, small levels have a tile nevertheless */
        if (properties.miptailSize)
            first_in_tail = properties.miptailFirstLevel;
        assert_in_range(first_in_tail, 1, levels);
        for (unsigned layer = 0; layer < layers; layer++) {
            CUarrayMapInfo tail = tail_of(request_for(NULL, memory, 0), layer, 0, properties.miptailSize);

            for (unsigned level = 0; level < first_in_tail; level++, offset += level == 1 ? 16 * 65536 : 4 * 65536) {
                CUDA_ARRAY3D_DESCRIPTOR desc;
                CUarray array;

                ok(cuMipmappedArrayGetLevel(&array, mipmap, level));
                ok(cuArray3DGetDescriptor(&desc, array));
                map_level(mipmap, level, layer, &desc, memory, offset);
                gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&of_level, array));
            }
            if (!properties.miptailSize || (layer && properties.flags & CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL))
                continue;
            tail.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
            tail.resource.mipmap = mipmap;
            tail.offset = offset;
            offset += properties.miptailSize;
            ok(cuMemMapArrayAsync(&tail, 1, NULL));
        }
        assert_in_range(offset, 1, POOL_BYTES);
        every_level_holds_its_bytes(mipmap, levels);
        ok(cuMipmappedArrayDestroy(mipmap));
        ok(cuMemRelease(memory));
    }
}

static void an_array_smaller_than_a_tile_is_all_tail_or_a_tile(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {20, 20, 2, FLOAT, 1, SPARSE | CUDA_ARRAY3D_LAYERED};
    const struct box all = {0, 0, 0, 20, 20, 2};
    CUmemGenericAllocationHandle memory;
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    CUarrayMapInfo info;
    CUarray array;

    (void)state;
    if (!has_sparse())
        skip();
    memory = pool();
    ok(cuArray3DCreate(&array, &desc));
    ok(cuArrayGetSparseProperties(&properties, array));
    assert_int_equal(properties.miptailFirstLevel, 0);
    assert_int_equal(properties.miptailSize != 0, properties.flags == CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL);
    if (properties.miptailSize) {
        info = tail_of(request_for(array, memory, 0), 0, 0, properties.miptailSize);
        ok(cuMemMapArrayAsync(&info, 1, NULL));
    } else {
        for (unsigned layer = 0; layer < 2; layer++) {
            info = box_of(request_for(array, memory, layer * 65536), (const unsigned[3]){0}, (const unsigned[3]){20, 20, 1});
            info.subresource.sparseLevel.layer = layer;
            ok(cuMemMapArrayAsync(&info, 1, NULL));
        }
    }
    holds(array, &all, 3);
    ok(cuArrayDestroy(array));
    ok(cuMemRelease(memory));
}

/* ---- deferred mapping ---- */

static void deferred_arrays_get_all_their_memory(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR rows[] = {
        {100, 50, 0, FLOAT, 1, DEFERRED}, {300, 300, 3, FLOAT, 1, DEFERRED | CUDA_ARRAY3D_LAYERED}, {40, 40, 40, FLOAT, 1, DEFERRED}};

    (void)state;
    if (!attribute(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED))
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct box all = {0, 0, 0, rows[i].Width, rows[i].Height, at_least_one(rows[i].Depth)};
        CUmemGenericAllocationHandle memory = pool();
        CUDA_ARRAY_MEMORY_REQUIREMENTS needed;
        CUDA_ARRAY_SPARSE_PROPERTIES sparse;
        CUarrayMapInfo info;
        CUarray array;

        ok(cuArray3DCreate(&array, &rows[i]));
        ok(cuArrayGetMemoryRequirements(&needed, array, 0));
        assert_true(needed.size >= all.width * all.height * all.depth * 4);
        assert_true(needed.alignment && !(needed.alignment & (needed.alignment - 1)));
        gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(NULL, array, 0));
        if (on_cuttle()) /* NVIDIA's driver does not check the device */
            gives(CUDA_ERROR_INVALID_DEVICE, cuArrayGetMemoryRequirements(&needed, array, 99));
        gives(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&sparse, array));
        info = request_for(array, memory, needed.alignment);
        ok(cuMemMapArrayAsync(&info, 1, NULL));
        holds(array, &all, (unsigned)i);
        info = request_for(array, 0, 0);
        ok(cuMemMapArrayAsync(&info, 1, NULL));
        info = request_for(array, memory, 0);
        ok(cuMemMapArrayAsync(&info, 1, NULL));
        holds(array, &all, (unsigned)i + 7);
        ok(cuArrayDestroy(array));
        ok(cuMemRelease(memory));
    }
}

static void deferred_mipmapped_arrays(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {200, 100, 0, FLOAT, 1, DEFERRED};
    CUmemGenericAllocationHandle memory;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needed;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    CUmipmappedArray mipmap;
    CUarrayMapInfo info;

    (void)state;
    if (!attribute(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED))
        skip();
    memory = pool();
    ok(cuMipmappedArrayCreate(&mipmap, &desc, 8));
    ok(cuMipmappedArrayGetMemoryRequirements(&needed, mipmap, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetSparseProperties(&sparse, mipmap));
    info = request_for(NULL, memory, 0);
    info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    info.resource.mipmap = mipmap;
    ok(cuMemMapArrayAsync(&info, 1, NULL));
    every_level_holds_its_bytes(mipmap, 8);
    ok(cuMipmappedArrayDestroy(mipmap));
    ok(cuMemRelease(memory));
}

/* ---- errors ---- */

static void requests_that_are_refused(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {512, 512, 0, FLOAT, 1, SPARSE}, plain = {512, 512, 0, FLOAT, 1, 0};
    static const unsigned start[3] = {0};
    CUmemAllocationProp properties = pool_properties();
    CUmemGenericAllocationHandle memory, ordinary;
    CUarrayMapInfo good, bad;
    CUmipmappedArray mipmap;
    CUarray array, other;
    CUdeviceptr address;

    (void)state;
    if (!has_sparse() || !on_cuttle()) /* NVIDIA's driver crashes */
        skip();
    memory = pool();
    ok(cuArray3DCreate(&array, &desc));
    ok(cuArray3DCreate(&other, &plain));
    ok(cuMipmappedArrayCreate(&mipmap, &desc, 3));
    good = box_of(request_for(array, memory, 0), start, (const unsigned[3]){128, 128, 1});
    ok(cuMemMapArrayAsync(&good, 1, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(NULL, 1, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuMemMapArrayAsync(&good, 1, (CUstream)(uintptr_t)0xdead0));
#define REFUSES(want, change)                                                                                                              \
    do {                                                                                                                                   \
        bad = good;                                                                                                                        \
        change;                                                                                                                            \
        gives(want, cuMemMapArrayAsync(&bad, 1, NULL));                                                                                    \
    } while (0)
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.flags = 1);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.reserved[1] = 1);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.deviceBitMask = 0);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.deviceBitMask = 1u << 31);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.resourceType = CU_RESOURCE_TYPE_LINEAR);
    REFUSES(CUDA_ERROR_INVALID_HANDLE, bad.resource.array = NULL);
    REFUSES(CUDA_ERROR_INVALID_HANDLE, bad.resource.mipmap = mipmap);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.resource.array = other);
    REFUSES(CUDA_ERROR_INVALID_VALUE, ok(cuMipmappedArrayGetLevel(&bad.resource.array, mipmap, 0)));
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresourceType = (CUarraySparseSubresourceType)7);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.memOperationType = (CUmemOperationType)0);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP); /* which contains no memory handle */
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.memHandleType = (CUmemHandleType)1);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.memHandle.memHandle = 0);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.offset = 4096);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.offset = POOL_BYTES);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresource.sparseLevel.level = 1);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresource.sparseLevel.layer = 1);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresource.sparseLevel.offsetX = 64);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresource.sparseLevel.offsetY = 512);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresource.sparseLevel.offsetZ = 1);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresource.sparseLevel.extentWidth = 100);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresource.sparseLevel.extentHeight = 1024);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.subresource.sparseLevel.extentDepth = 0);
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad = tail_of(good, 0, 0, 65536)); /* the array has none */
    properties.allocFlags.usage = 0;
    ok(cuMemCreate(&ordinary, POOL_BYTES, &properties, 0));
    REFUSES(CUDA_ERROR_INVALID_VALUE, bad.memHandle.memHandle = ordinary);
    ok(cuMemRelease(ordinary));
    ok(cuMemAddressReserve(&address, POOL_BYTES, 0, 0, 0)); /* the manual allows such memory for arrays only; it specifies no error */
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMap(address, POOL_BYTES, 0, memory, 0));
    ok(cuMemAddressFree(address, POOL_BYTES));
    ok(cuMemGetAllocationPropertiesFromHandle(&properties, memory));
    assert_int_equal(properties.allocFlags.usage, CU_MEM_CREATE_USAGE_TILE_POOL);
    ok(cuMemRelease(memory));
    ok(cuArrayDestroy(array));
    ok(cuArrayDestroy(other));
    ok(cuMipmappedArrayDestroy(mipmap));
    gives(CUDA_ERROR_INVALID_HANDLE, cuMemMapArrayAsync(&good, 1, NULL));
}

/* If a request is rejected, the preceding requests of the call are not executed. */
static void a_rejected_list_changes_nothing(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {256, 256, 0, FLOAT, 1, SPARSE};
    static const unsigned start[3] = {0}, extent[3] = {128, 128, 1};
    const struct box tile = {0, 0, 0, 128, 128, 1};
    CUmemGenericAllocationHandle memory;
    CUarrayMapInfo list[2];
    CUarray array;

    (void)state;
    if (!has_sparse())
        skip();
    memory = pool();
    ok(cuArray3DCreate(&array, &desc));
    list[0] = box_of(request_for(array, memory, 0), start, extent);
    ok(cuMemMapArrayAsync(list, 1, NULL));
    write_box(array, &tile, 1);
    list[0].offset = 65536;
    list[1] = list[0];
    list[1].flags = 1;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(list, 2, NULL));
    check_box(array, &tile, 1);
    ok(cuArrayDestroy(array));
    ok(cuMemRelease(memory));
}

static void a_context_takes_mapped_arrays_along(void **state)
{
    static const CUDA_ARRAY3D_DESCRIPTOR desc = {256, 256, 0, FLOAT, 1, SPARSE};
    CUmemGenericAllocationHandle memory;
    CUarrayMapInfo info;
    CUcontext context;
    CUarray array;

    if (!has_sparse() || !on_cuttle())
        skip();
    ok(cuCtxCreate(&context, NULL, 0, 0));
    memory = pool();
    ok(cuArray3DCreate(&array, &desc));
    info = box_of(request_for(array, memory, 0), (const unsigned[3]){0}, (const unsigned[3]){256, 256, 1});
    ok(cuMemMapArrayAsync(&info, 1, NULL));
    ok(cuMemRelease(memory));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(*state));
    gives(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemMapArrayAsync(&info, 1, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_decide),
        cmocka_unit_test(kernels_access_tiles),
        cmocka_unit_test(kinds_by_the_manual),
        cmocka_unit_test(all_tiles_hold_all_bytes),
        cmocka_unit_test(memory_moves_between_tiles_and_arrays),
        cmocka_unit_test(mappings_keep_the_order_of_the_stream),
        cmocka_unit_test(memory_is_freed_with_its_last_tile),
        cmocka_unit_test(levels_and_tails_of_mipmapped_arrays),
        cmocka_unit_test(an_array_smaller_than_a_tile_is_all_tail_or_a_tile),
        cmocka_unit_test(deferred_arrays_get_all_their_memory),
        cmocka_unit_test(deferred_mipmapped_arrays),
        cmocka_unit_test(requests_that_are_refused),
        cmocka_unit_test(a_rejected_list_changes_nothing),
        cmocka_unit_test(a_context_takes_mapped_arrays_along),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
