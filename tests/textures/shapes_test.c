/* SPDX-License-Identifier: Apache-2.0 */
/* Textures of every shape that may be images of the device: lines, volumes, layers, faces, and levels. Objects exist before their texels; kernels see
 * what copies and surfaces wrote before in stream order, and views have their levels and layers. Expectations are computed here, so the same program
 * passes on NVIDIA's driver. */
#include "texture_kernels.h"

#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SIDE_MAX 16u

/* store_3d, store_a2d: texel (x, y, z) of a surface becomes base + 256 z + 16 y + x; the block is as large as the array. level_acube: as fetch_acube,
 * at the level of the place. */
static const char more_kernels[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
#define STORE(name, instruction)                                                                                                           \
    ".visible .entry " name "(.param .u64 surface, .param .f32 base)\n{\n.reg .f32 f<2>; .reg .b32 r<5>; .reg .b64 d;\n"                   \
    "ld.param.u64 d,[surface]; ld.param.f32 f0,[base]; mov.u32 r0,%tid.x; mov.u32 r1,%tid.y; mov.u32 r2,%tid.z;\n"                         \
    "mad.lo.u32 r3,r2,16,r1; mad.lo.u32 r3,r3,16,r0; cvt.rn.f32.u32 f1,r3; add.f32 f0,f0,f1; shl.b32 r0,r0,2;\n" instruction "\nret;\n}\n"
    STORE("store_3d", "sust.b.3d.b32.trap [d,{r0,r1,r2,r2}],{f0};") STORE("store_a2d", "sust.b.a2d.b32.trap [d,{r2,r0,r1,r1}],{f0};")
        FETCH_KERNEL("level_acube", "tex.level.acube.v4.f32.f32 {f0,f1,f2,f3},[d0,{r0,x,y,z}],l;");

static CUmodule more_module;

static const struct shape {
    const char *kernel, *store; /* store: of surfaces; NULL: none here */
    unsigned width, height, depth, flags;
} shapes[] = {
    {"fetch_1d", NULL, 13, 0, 0, 0},
    {"fetch_2d", NULL, 13, 7, 0, 0},
    {"fetch_3d", "store_3d", 6, 7, 5, 0},
    {"fetch_a1d", NULL, 13, 0, 4, CUDA_ARRAY3D_LAYERED},
    {"fetch_a2d", "store_a2d", 9, 7, 3, CUDA_ARRAY3D_LAYERED},
};

static unsigned at_least_one(unsigned n)
{
    return n ? n : 1;
}

static float texel_value(float base, unsigned x, unsigned y, unsigned z)
{
    return base + (float)(256 * z + 16 * y + x);
}

/* ---- arrays ---- */

static void copy_in(CUarray array, unsigned width, unsigned height, unsigned depth, float base)
{
    static float texels[SIDE_MAX * SIDE_MAX * SIDE_MAX];
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = texels,
                                .srcPitch = width * sizeof(float),
                                .srcHeight = height,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .WidthInBytes = width * sizeof(float),
                                .Height = height,
                                .Depth = depth};

    for (unsigned i = 0; i < width * height * depth; i++)
        texels[i] = texel_value(base, i % width, i / width % height, i / width / height);
    ok(cuMemcpy3D(&copy));
}

static CUtexObject make_texture(const CUDA_RESOURCE_DESC *resource, unsigned flags, const CUDA_RESOURCE_VIEW_DESC *view)
{
    const CUaddress_mode clamp = CU_TR_ADDRESS_MODE_CLAMP;
    const CUDA_TEXTURE_DESC how = {.addressMode = {clamp, clamp, clamp}, .flags = flags, .maxMipmapLevelClamp = 16};
    CUtexObject object;

    ok(cuTexObjectCreate(&object, resource, &how, view));
    return object;
}

/* Fetches every texel at its middle, in texels. */
static void expect_texels(const struct shape *shape, CUtexObject object, float base)
{
    const unsigned height = at_least_one(shape->height), n = shape->width * height * at_least_one(shape->depth);
    struct place places[13 * 7 * 3] = {{0}};
    uint32_t results[COUNT(places)][4];

    assert_true(n <= COUNT(places));
    for (unsigned i = 0; i < n; i++) {
        places[i].x = (float)(i % shape->width) + 0.5f;
        places[i].y = (float)(i / shape->width % height) + 0.5f;
        places[i].layer = (int)(i / shape->width / height);
        places[i].z = (float)places[i].layer + 0.5f;
    }
    fetch(shape->kernel, object, places, n, *results);
    for (unsigned i = 0; i < n; i++) {
        const float wanted = texel_value(base, i % shape->width, i / shape->width % height, i / shape->width / height);

        assert_memory_equal(&results[i][0], &wanted, sizeof wanted);
        for (unsigned c = 1; c < 4; c++)
            assert_int_equal(results[i][c], 0); /* channels that do not exist */
    }
}

static void store(const struct shape *shape, CUarray array, float base)
{
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUsurfObject surface;
    CUfunction function;
    void *params[] = {&surface, &base};

    resource.res.array.hArray = array;
    ok(cuSurfObjectCreate(&surface, &resource));
    ok(cuModuleGetFunction(&function, more_module, shape->store));
    ok(cuLaunchKernel(function, 1, 1, 1, shape->width, shape->height, shape->depth, 0, NULL, params, NULL));
    ok(cuSurfObjectDestroy(surface));
}

static void copy_between(const struct shape *shape, CUarray from, CUarray to)
{
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = from,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = to,
                                .WidthInBytes = shape->width * sizeof(float),
                                .Height = at_least_one(shape->height),
                                .Depth = at_least_one(shape->depth)};

    ok(cuMemcpy3D(&copy));
}

static void copies_and_surfaces_are_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const struct shape *shape = &shapes[i];
        const unsigned height = at_least_one(shape->height), depth = at_least_one(shape->depth);
        const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = shape->width,
                                              .Height = shape->height,
                                              .Depth = shape->depth,
                                              .Format = CU_AD_FORMAT_FLOAT,
                                              .NumChannels = 1,
                                              .Flags = shape->flags | CUDA_ARRAY3D_SURFACE_LDST};
        CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
        CUtexObject object, of_other;
        CUarray array, other;

        ok(cuArray3DCreate(&array, &desc));
        ok(cuArray3DCreate(&other, &desc));
        resource.res.array.hArray = array;
        object = make_texture(&resource, 0, NULL);
        resource.res.array.hArray = other;
        of_other = make_texture(&resource, 0, NULL);
        for (int round = 0; round < 3; round++) {
            float base = (float)(10000 * round + 1);

            copy_in(array, shape->width, height, depth, base);
            expect_texels(shape, object, base);
            if (shape->store)
                store(shape, array, base += 5000);
            expect_texels(shape, object, base);
            copy_between(shape, array, other);
            expect_texels(shape, of_other, base);
        }
        ok(cuTexObjectDestroy(object));
        ok(cuTexObjectDestroy(of_other));
        ok(cuArrayDestroy(array));
        ok(cuArrayDestroy(other));
    }
}

/* A copy must not go beyond the rows and slices of an array, even if there is padding between them in memory. */
static void slices_have_no_padding_for_copies(void **state)
{
    static char bytes[4096];

    (void)state;
    for (size_t i = 1; i < COUNT(shapes); i++) {
        const struct shape *shape = &shapes[i];
        const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = shape->width,
                                              .Height = shape->height,
                                              .Depth = shape->depth,
                                              .Format = CU_AD_FORMAT_FLOAT,
                                              .NumChannels = 1,
                                              .Flags = shape->flags};
        CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = bytes,
                              .srcPitch = 4,
                              .srcHeight = SIDE_MAX,
                              .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                              .WidthInBytes = 4,
                              .Height = at_least_one(shape->height) + 1,
                              .Depth = 1};

        ok(cuArray3DCreate(&copy.dstArray, &desc));
        assert_int_equal(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
        copy.Height = 1;
        copy.Depth = at_least_one(shape->depth) + 1;
        assert_int_equal(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
        ok(cuArrayDestroy(copy.dstArray));
    }
}

/* ---- levels and views ---- */

#define SIDE 16u
#define LAYERS 12u /* also two cubes */
#define LEVELS 4u

static float level_base(unsigned level)
{
    return (float)(10000 * level);
}

static CUmipmappedArray make_levels(unsigned flags)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = SIDE, .Height = SIDE, .Depth = LAYERS, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = flags};
    CUmipmappedArray mipmap;
    CUarray array;

    ok(cuMipmappedArrayCreate(&mipmap, &desc, LEVELS));
    for (unsigned level = 0; level < LEVELS; level++) {
        ok(cuMipmappedArrayGetLevel(&array, mipmap, level));
        copy_in(array, SIDE >> level, SIDE >> level, LAYERS, level_base(level));
    }
    return mipmap;
}

/* Fetches texel (1, 1) of each layer and level of an object that has those from the first ones on. */
static void expect_levels(const char *kernel, CUtexObject object, unsigned first_level, unsigned n_levels, unsigned first_layer,
                          unsigned n_layers)
{
    struct place places[LEVELS * LAYERS];
    uint32_t results[COUNT(places)][4];

    for (unsigned i = 0; i < n_levels * n_layers; i++) {
        const float side = (float)(SIDE >> (first_level + i / n_layers));

        places[i] =
            (struct place){.x = 1.5f / side, .y = 1.5f / side, .z = 0, .level = (float)(i / n_layers), .layer = (int)(i % n_layers)};
    }
    fetch(kernel, object, places, n_levels * n_layers, *results);
    for (unsigned i = 0; i < n_levels * n_layers; i++) {
        const unsigned level = first_level + i / n_layers;
        const float wanted = texel_value(level_base(level), 1, 1, first_layer + i % n_layers);

        float found;

        memcpy(&found, &results[i][0], sizeof found);
        if (found != wanted)
            fail_msg("%s, level %u, layer %u: %g, expected %g", kernel, level, first_layer + i % n_layers, (double)found, (double)wanted);
    }
}

static void views_have_levels_and_layers(void **state)
{
    CUmipmappedArray mipmap = make_levels(CUDA_ARRAY3D_LAYERED);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    static const unsigned parts[][4] = {{0, 3, 0, 11}, {1, 2, 3, 5}, {3, 3, 11, 11}, {0, 1, 0, 0}};
    CUtexObject object;

    (void)state;
    resource.res.mipmap.hMipmappedArray = mipmap;
    object = make_texture(&resource, CU_TRSF_NORMALIZED_COORDINATES, NULL);
    expect_levels("level_a2d", object, 0, LEVELS, 0, LAYERS);
    ok(cuTexObjectDestroy(object));
    for (size_t i = 0; i < COUNT(parts); i++) {
        const CUDA_RESOURCE_VIEW_DESC view = {.format = CU_RES_VIEW_FORMAT_FLOAT_1X32,
                                              .width = SIDE,
                                              .height = SIDE,
                                              .depth = LAYERS,
                                              .firstMipmapLevel = parts[i][0],
                                              .lastMipmapLevel = parts[i][1],
                                              .firstLayer = parts[i][2],
                                              .lastLayer = parts[i][3]};

        object = make_texture(&resource, CU_TRSF_NORMALIZED_COORDINATES, &view);
        expect_levels("level_a2d", object, parts[i][0], parts[i][1] - parts[i][0] + 1, parts[i][2], parts[i][3] - parts[i][2] + 1);
        ok(cuTexObjectDestroy(object));
    }
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* An array that is a level of another one is a texture of one level. NVIDIA's driver (580) reads other texels from layers but the first. */
static void levels_are_arrays(void **state)
{
    CUmipmappedArray mipmap = make_levels(CUDA_ARRAY3D_LAYERED);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};

    (void)state;
    for (unsigned level = 0; level < LEVELS; level++) {
        CUtexObject object;

        ok(cuMipmappedArrayGetLevel(&resource.res.array.hArray, mipmap, level));
        object = make_texture(&resource, CU_TRSF_NORMALIZED_COORDINATES, NULL);
        expect_levels("fetch_a2d", object, level, 1, 0, on_cuttle() ? LAYERS : 1);
        ok(cuTexObjectDestroy(object));
    }
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* Every face of every level of two cubes, of the next cube that does not exist, and of the last one there can be. */
static void cubes_have_levels(void **state)
{
    static const float directions[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    static const int cubes[] = {0, 1, 2, -1};
    CUmipmappedArray mipmap = make_levels(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    struct place places[LEVELS * COUNT(cubes) * 6];
    uint32_t results[COUNT(places)][4];
    CUtexObject object;

    (void)state;
    resource.res.mipmap.hMipmappedArray = mipmap;
    object = make_texture(&resource, CU_TRSF_NORMALIZED_COORDINATES, NULL);
    for (unsigned i = 0; i < COUNT(places); i++) {
        const float *to = directions[i % 6];

        places[i] = (struct place){
            .x = to[0], .y = to[1], .z = to[2], .level = (float)(i / 6 / COUNT(cubes)), .layer = cubes[i / 6 % COUNT(cubes)]};
    }
    fetch_by(more_module, "level_acube", object, places, COUNT(places), *results);
    for (unsigned i = 0; i < COUNT(places); i++) {
        const unsigned level = i / 6 / COUNT(cubes), middle = (SIDE >> level) / 2, cube = i / 6 % COUNT(cubes) ? 1 : 0;
        const float wanted = texel_value(level_base(level), middle, middle, 6 * cube + i % 6);

        assert_memory_equal(&results[i][0], &wanted, sizeof wanted);
    }
    ok(cuTexObjectDestroy(object));
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* ---- colours ---- */

/* The sum of the words of all linear values, measured on an H200; images have the device's own approximation. */
static void compare_sum(const uint32_t results[256][4])
{
    const char *way = getenv("CUTTLE_TEXTURES");
    uint32_t sum = 0;

    for (unsigned i = 0; i < 256; i++)
        sum = sum * 16777619 + results[i][0];
    if (!on_cuttle() || !way || strcmp(way, "image") != 0)
        assert_int_equal(sum, 0xd1780000);
}

/* Every value of sRGB in the first three channels, and of the fourth one, which is linear (IEC 61966-2-1; Programming Guide, cudaTextureDesc::sRGB).
 * Texture units have approximations. */
static void srgb_texels_are_linear(void **state)
{
    const CUDA_ARRAY_DESCRIPTOR desc = {.Width = 256, .Height = 1, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4};
    const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}, .flags = CU_TRSF_SRGB};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    static uint32_t results[256][4];
    static struct place places[256];
    unsigned char texels[256][4];
    CUtexObject object;

    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        memset(texels[i], (int)i, 4);
        places[i] = (struct place){.x = (float)i + 0.5f};
    }
    ok(cuArrayCreate(&resource.res.array.hArray, &desc));
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = texels,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = resource.res.array.hArray,
                                .WidthInBytes = sizeof texels,
                                .Height = 1};
    ok(cuMemcpy2D(&copy));
    ok(cuTexObjectCreate(&object, &resource, &how, NULL));
    fetch("fetch_2d", object, places, 256, *results);
    compare_sum(results);
    for (unsigned i = 0; i < 256; i++)
        for (unsigned c = 0; c < 4; c++) {
            const double value = i / 255.0,
                         wanted = c == 3 || value <= 0.04045 ? value / (c == 3 ? 1 : 12.92) : pow((value + 0.055) / 1.055, 2.4);
            float found;

            memcpy(&found, &results[i][c], sizeof found);
            if (fabs(found - wanted) > 2e-3 + wanted / 512)
                fail_msg("channel %u of %u: %g, expected %g", c, i, (double)found, wanted);
        }
    ok(cuTexObjectDestroy(object));
    ok(cuArrayDestroy(resource.res.array.hArray));
}

static int set_up(void **state)
{
    return textures_set_up(state) || cuModuleLoadData(&more_module, more_kernels) != CUDA_SUCCESS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_surfaces_are_seen),
        cmocka_unit_test(slices_have_no_padding_for_copies),
        cmocka_unit_test(views_have_levels_and_layers),
        cmocka_unit_test(levels_are_arrays),
        cmocka_unit_test(cubes_have_levels),
        cmocka_unit_test(srgb_texels_are_linear),
    };

    return cmocka_run_group_tests(tests, set_up, textures_tear_down);
}
