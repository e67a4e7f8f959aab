/* SPDX-License-Identifier: Apache-2.0 */
/* Texture fetches against texture_model.c: every geometry, with formats, address modes, filters, read modes and kinds of coordinates, at random
 * places and at halves of texels. The same program passes on NVIDIA's driver. */
#include "texture_kernels.h"
#include "texture_model.h"

#include <math.h>
#include <time.h>

#define N_PLACES 600u
#define SIDE_MAX 16u

static const struct geometry {
    enum model_geometry geometry;
    const char *kernel;
    unsigned width, height, depth, flags, layers;
} geometries[] = {
    {MODEL_1D, "1d", 13, 0, 0, 0, 0},
    {MODEL_2D, "2d", 13, 7, 0, 0, 0},
    {MODEL_3D, "3d", 6, 7, 5, 0, 0},
    {MODEL_1D_LAYERED, "a1d", 13, 0, 4, CUDA_ARRAY3D_LAYERED, 4},
    {MODEL_2D_LAYERED, "a2d", 9, 7, 3, CUDA_ARRAY3D_LAYERED, 3},
    {MODEL_CUBE, "cube", 8, 8, 6, CUDA_ARRAY3D_CUBEMAP, 0},
    {MODEL_CUBE_LAYERED, "acube", 5, 5, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED, 2},
};

static const struct format {
    const char *name;
    CUarray_format format;
    unsigned channels;
    bool as_integer;
} formats[] = {
    {"float x4", CU_AD_FORMAT_FLOAT, 4, false},
    {"float x1", CU_AD_FORMAT_FLOAT, 1, false},
    {"half x2", CU_AD_FORMAT_HALF, 2, false},
    {"half x4", CU_AD_FORMAT_HALF, 4, false},
    {"unorm8 x4", CU_AD_FORMAT_UNSIGNED_INT8, 4, false},
    {"unorm8 x1", CU_AD_FORMAT_UNSIGNED_INT8, 1, false},
    {"snorm8 x2", CU_AD_FORMAT_SIGNED_INT8, 2, false},
    {"unorm16 x2", CU_AD_FORMAT_UNSIGNED_INT16, 2, false},
    {"snorm16 x1", CU_AD_FORMAT_SIGNED_INT16, 1, false},
    {"u8 x4", CU_AD_FORMAT_UNSIGNED_INT8, 4, true},
    {"s8 x1", CU_AD_FORMAT_SIGNED_INT8, 1, true},
    {"s16 x2", CU_AD_FORMAT_SIGNED_INT16, 2, true},
    {"u16 x1", CU_AD_FORMAT_UNSIGNED_INT16, 1, true},
    {"u32 x4", CU_AD_FORMAT_UNSIGNED_INT32, 4, true},
    {"s32 x1", CU_AD_FORMAT_SIGNED_INT32, 1, true},
    {"10 10 10 2", CU_AD_FORMAT_UNORM_INT_101010_2, 4, false},
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- random input ---- */

static uint64_t random_state;

static uint32_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static double random_between(double low, double high)
{
    return low + (high - low) * (random_bits() / 4294967296.0);
}

/* Floats and halves with few digits; any integers. */
static void random_texels(CUarray_format format, unsigned char *texels, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        texels[i] = (unsigned char)(random_bits() >> 8);
    for (size_t i = 0; format == CU_AD_FORMAT_FLOAT && i < bytes; i += sizeof(float)) {
        const float value = (float)((int)(random_bits() % 2001) - 1000) / 64;

        memcpy(texels + i, &value, sizeof value);
    }
    for (size_t i = 1; format == CU_AD_FORMAT_HALF && i < bytes; i += 2)
        texels[i] = (unsigned char)((texels[i] & 0x80) | texels[i] % 0x52); /* subnormal numbers to 47 */
}

/* From -n to 2n in texels; every fourth is a quarter of a texel. */
static float random_coordinate(unsigned n, bool normalized)
{
    double u = random_between(-(double)n, 2.0 * n);

    if (random_bits() % 4 == 0)
        u = floor(u * 4) / 4;
    return (float)(normalized ? u / n : u);
}

static void random_places(const struct geometry *geometry, bool normalized, struct place *places)
{
    const bool is_cube = geometry->flags & CUDA_ARRAY3D_CUBEMAP;

    for (unsigned i = 0; i < N_PLACES; i++) {
        struct place *place = &places[i];

        *place = (struct place){
            .x = is_cube ? (float)random_between(-1, 1) : random_coordinate(geometry->width, normalized),
            .y = is_cube ? (float)random_between(-1, 1) : random_coordinate(geometry->height ? geometry->height : 1, normalized),
            .z = is_cube ? (float)random_between(-1, 1) : random_coordinate(geometry->depth ? geometry->depth : 1, normalized),
            .level = (float)random_between(-2, 8),
            .layer = (int)(random_bits() % (geometry->layers + 4)) - 2,
        };
        for (unsigned k = 0; k < 3; k++)
            place->offset[k] = (int)(random_bits() % 16) - 8;
    }
}

/* ---- textures ---- */

struct texture {
    struct model model;
    CUmipmappedArray mipmap;
    CUarray array;
    CUtexObject object;
    unsigned char texels[MODEL_LEVELS][SIDE_MAX * SIDE_MAX * 12 * 16];
};

static void fill(CUarray array, const struct texture *texture, unsigned level)
{
    const size_t row = texture->model.levels[level].width * model_texel_bytes(&texture->model);
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = texture->texels[level],
                          .srcPitch = row,
                          .srcHeight = texture->model.levels[level].height,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array,
                          .WidthInBytes = row,
                          .Height = texture->model.levels[level].height,
                          .Depth = texture->model.levels[level].depth};

    ok(cuMemcpy3D(&copy));
}

static unsigned halved(unsigned side, unsigned level)
{
    return side >> level ? side >> level : 1;
}

static void describe(const struct model *model, CUDA_TEXTURE_DESC *out)
{
    *out = (CUDA_TEXTURE_DESC){
        .addressMode = {model->address, model->address, model->address},
        .filterMode = model->linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
        .flags = (model->as_integer ? CU_TRSF_READ_AS_INTEGER : 0) | (model->normalized_coordinates ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
                 (model->seamless ? CU_TRSF_SEAMLESS_CUBEMAP : 0),
        .mipmapFilterMode = model->linear_levels ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
        .mipmapLevelBias = (float)model->bias,
        .minMipmapLevelClamp = (float)model->min_level,
        .maxMipmapLevelClamp = (float)model->max_level,
    };
    for (unsigned i = 0; i < 4; i++)
        out->borderColor[i] = (float)model->border[i];
}

/* Creates the array with random texels, and the object. The model has everything but the levels. */
static void create(struct texture *texture, const struct geometry *geometry, unsigned n_levels)
{
    struct model *model = &texture->model;
    const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = geometry->width,
                                          .Height = geometry->height,
                                          .Depth = geometry->depth,
                                          .Format = model->format,
                                          .NumChannels = model->channels,
                                          .Flags = geometry->flags};
    CUDA_RESOURCE_DESC resource = {.resType = n_levels > 1 ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY : CU_RESOURCE_TYPE_ARRAY};
    CUDA_TEXTURE_DESC how;

    model->geometry = geometry->geometry;
    model->n_levels = n_levels;
    if (n_levels > 1)
        ok(cuMipmappedArrayCreate(&texture->mipmap, &desc, n_levels));
    else
        ok(cuArray3DCreate(&texture->array, &desc));
    for (unsigned level = 0; level < n_levels; level++) {
        CUarray array = texture->array;

        model->levels[level].width = halved(geometry->width, level);
        model->levels[level].height = geometry->height ? halved(geometry->height, level) : 1;
        model->levels[level].depth = geometry->flags ? geometry->depth : geometry->depth ? halved(geometry->depth, level) : 1;
        model->levels[level].texels = texture->texels[level];
        random_texels(model->format, texture->texels[level],
                      (size_t)model->levels[level].width * model->levels[level].height * model->levels[level].depth *
                          model_texel_bytes(model));
        if (n_levels > 1)
            ok(cuMipmappedArrayGetLevel(&array, texture->mipmap, level));
        fill(array, texture, level);
    }
    if (n_levels > 1)
        resource.res.mipmap.hMipmappedArray = texture->mipmap;
    else
        resource.res.array.hArray = texture->array;
    describe(model, &how);
    ok(cuTexObjectCreate(&texture->object, &resource, &how, NULL));
}

static void destroy(struct texture *texture)
{
    ok(cuTexObjectDestroy(texture->object));
    if (texture->mipmap)
        ok(cuMipmappedArrayDestroy(texture->mipmap));
    else
        ok(cuArrayDestroy(texture->array));
}

/* ---- comparison ---- */

static double result_value(const struct model *model, uint32_t word)
{
    float value;

    if (!model_reads_floats(model))
        return model->format == CU_AD_FORMAT_UNSIGNED_INT32 || model->format == CU_AD_FORMAT_UNSIGNED_INT8 ||
                       model->format == CU_AD_FORMAT_UNSIGNED_INT16
                   ? (double)word
                   : (double)(int32_t)word;
    memcpy(&value, &word, sizeof value);
    return value;
}

enum operands { HAS_LEVEL = 1, HAS_OFFSET = 2 }; /* of a kernel's fetch */

static struct model_place model_place(const struct place *at, unsigned operands)
{
    struct model_place place = {at->x, at->y, at->z, at->layer, operands & HAS_LEVEL, at->level, {0}};

    for (unsigned i = 0; operands & HAS_OFFSET && i < 3; i++)
        place.offset[i] = at->offset[i];
    return place;
}

static unsigned compare(const char *name, const struct model *model, unsigned operands, const struct place *places, const uint32_t *results)
{
    unsigned wrong = 0, certain = 0;

    for (unsigned i = 0; i < N_PLACES; i++) {
        const struct place *at = &places[i];
        const struct model_place place = model_place(at, operands);
        const struct model_result expected = model_fetch(model, &place);

        certain += !expected.is_uncertain;
        for (unsigned c = 0; c < 4 && !expected.is_uncertain; c++) {
            const double got = result_value(model, results[4 * i + c]), wanted = expected.values[c];

            if (expected.tolerance == 0 ? got == (model_reads_floats(model) ? (double)(float)wanted : wanted)
                                        : fabs(got - wanted) <= expected.tolerance)
                continue;
            if (wrong++ < 5)
                print_error("%s: channel %u at %.9g %.9g %.9g layer %d level %.9g: %.9g, expected %.9g within %.3g\n", name, c, at->x,
                            at->y, at->z, at->layer, at->level, got, wanted, expected.tolerance);
        }
    }
    assert_true(certain > N_PLACES / 8); /* with filtered levels 141 to 199 of 600 in a dozen runs */
    return wrong;
}

/* Tests one texture by one kernel, and destroys it. Returns the number of wrong values. */
static unsigned test_texture(struct texture *texture, const struct geometry *geometry, const char *name, const char *kernel,
                             unsigned operands)
{
    static struct place places[N_PLACES];
    static uint32_t results[4 * N_PLACES];

    random_places(geometry, texture->model.normalized_coordinates, places);
    fetch(kernel, texture->object, places, N_PLACES, results);
    return compare(name, &texture->model, operands, places, results);
}

/* ---- tests ---- */

static bool exists(const struct geometry *geometry, CUaddress_mode address, bool normalized)
{
    const bool folds = address == CU_TR_ADDRESS_MODE_WRAP || address == CU_TR_ADDRESS_MODE_MIRROR;

    if (geometry->flags & CUDA_ARRAY3D_CUBEMAP)
        return address == CU_TR_ADDRESS_MODE_CLAMP && normalized;
    return normalized || !folds;
}

static unsigned test_case(const struct geometry *geometry, const struct format *format, CUaddress_mode address, bool linear,
                          bool normalized)
{
    static struct texture texture;
    char name[128], kernel[32];
    unsigned wrong;

    memset(&texture, 0, sizeof texture);
    texture.model = (struct model){.format = format->format,
                                   .channels = format->channels,
                                   .as_integer = format->as_integer,
                                   .address = address,
                                   .linear = linear,
                                   .normalized_coordinates = normalized};
    snprintf(name, sizeof name, "%s, %s, address mode %d, %s, %s", geometry->kernel, format->name, (int)address,
             linear ? "linear" : "point", normalized ? "normalized" : "in texels");
    snprintf(kernel, sizeof kernel, "fetch_%s", geometry->kernel);
    create(&texture, geometry, 1);
    wrong = test_texture(&texture, geometry, name, kernel, 0);
    destroy(&texture);
    return wrong;
}

static void fetches_follow_the_model(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (size_t g = 0; g < COUNT(geometries); g++)
        for (size_t f = 0; f < COUNT(formats); f++)
            for (unsigned how = 0; how < 16; how++)
                if (exists(&geometries[g], (CUaddress_mode)(how & 3), how & 8))
                    wrong += test_case(&geometries[g], &formats[f], (CUaddress_mode)(how & 3), how & 4, how & 8);
    assert_int_equal(wrong, 0);
}

/* A border has the precision of the texels, so its colours here are exact in all of them. */
static void borders_have_a_colour(void **state)
{
    static const struct format tested[] = {{"float x4", CU_AD_FORMAT_FLOAT, 4, false},
                                           {"unorm8 x4", CU_AD_FORMAT_UNSIGNED_INT8, 4, false},
                                           {"half x2", CU_AD_FORMAT_HALF, 2, false},
                                           {"10 10 10 2", CU_AD_FORMAT_UNORM_INT_101010_2, 4, false}};
    unsigned wrong = 0;

    (void)state;
    for (size_t f = 0; f < COUNT(tested); f++)
        for (size_t g = 0; g < 3; g++)
            for (int linear = 0; linear < 2; linear++) {
                static struct texture texture;
                char kernel[32];

                memset(&texture, 0, sizeof texture);
                texture.model = (struct model){.format = tested[f].format,
                                               .channels = tested[f].channels,
                                               .linear = linear,
                                               .address = CU_TR_ADDRESS_MODE_BORDER,
                                               .border = {1, 0, 1, 0}};
                snprintf(kernel, sizeof kernel, "fetch_%s", geometries[g].kernel);
                create(&texture, &geometries[g], 1);
                wrong += test_texture(&texture, &geometries[g], tested[f].name, kernel, 0);
                destroy(&texture);
            }
    assert_int_equal(wrong, 0);
}

/* What an H200 computes where integers are filtered on a plane, to the bit: the weights are multiples of 1/256, and their products are rounded
 * so that the sum of the four stays 1. */
static int64_t filtered_integer(const struct model *model, const struct place *at, unsigned channel)
{
    const int x = (int)floor(at->x * 256.0 - 127.5), y = (int)floor(at->y * 256.0 - 127.5), right = x & 255, below = y & 255;
    const int both = (right * below + 128) >> 8;
    const int weights[4] = {256 - right - below + both, right - both, below - both, both};
    const bool is_rounded = model->format != CU_AD_FORMAT_UNSIGNED_INT32 && model->format != CU_AD_FORMAT_SIGNED_INT32;
    int64_t sum = is_rounded ? 128 : 0;

    for (unsigned k = 0; k < 4; k++) {
        struct model point = *model;
        const struct model_place place = {.x = (x >> 8) + (int)(k & 1) + 0.5, .y = (y >> 8) + (int)(k >> 1) + 0.5};

        point.linear = false;
        sum += weights[k] * (int64_t)model_fetch(&point, &place).values[channel];
    }
    return sum >> 8;
}

static void integers_are_filtered(void **state)
{
    static struct place places[N_PLACES];
    static uint32_t results[4 * N_PLACES];

    (void)state;
    for (size_t f = 0; f < COUNT(formats); f++) {
        static struct texture texture;

        memset(&texture, 0, sizeof texture);
        texture.model = (struct model){.format = formats[f].format,
                                       .channels = formats[f].channels,
                                       .as_integer = formats[f].as_integer,
                                       .address = CU_TR_ADDRESS_MODE_CLAMP,
                                       .linear = true};
        if (model_reads_floats(&texture.model))
            continue;
        for (unsigned i = 0; i < N_PLACES; i++)
            places[i] = (struct place){.x = (float)(random_bits() % (512 * 10)) / 512, .y = (float)(random_bits() % (512 * 8)) / 512};
        create(&texture, &geometries[1], 1);
        fetch("fetch_2d", texture.object, places, N_PLACES, results);
        for (unsigned i = 0; i < N_PLACES; i++)
            for (unsigned c = 0; c < 4; c++)
                if (results[4 * i + c] != (uint32_t)filtered_integer(&texture.model, &places[i], c))
                    fail_msg("%s: channel %u at %.9g %.9g: %#x, expected %#x", formats[f].name, c, places[i].x, places[i].y,
                             results[4 * i + c], (uint32_t)filtered_integer(&texture.model, &places[i], c));
        destroy(&texture);
    }
}

static void levels_follow_the_model(void **state)
{
    static const struct geometry side16[] = {
        {MODEL_1D, "1d", 16, 0, 0, 0, 0},
        {MODEL_2D, "2d", 16, 8, 0, 0, 0},
        {MODEL_3D, "3d", 8, 8, 4, 0, 0},
        {MODEL_2D_LAYERED, "a2d", 8, 8, 3, CUDA_ARRAY3D_LAYERED, 3},
        {MODEL_CUBE, "cube", 8, 8, 6, CUDA_ARRAY3D_CUBEMAP, 0},
    };
    unsigned wrong = 0;

    (void)state;
    for (size_t g = 0; g < COUNT(side16); g++)
        for (unsigned how = 0; how < 16; how++) {
            static struct texture texture;
            const bool has_level = how & 4;
            char kernel[32], name[64];

            memset(&texture, 0, sizeof texture);
            texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT,
                                           .channels = 4,
                                           .address = CU_TR_ADDRESS_MODE_CLAMP,
                                           .normalized_coordinates = true,
                                           .linear = how & 1,
                                           .linear_levels = how & 2,
                                           .max_level = 10};
            if (how & 8) {
                texture.model.bias = 1.25;
                texture.model.min_level = 0.75;
                texture.model.max_level = 2.5;
            }
            snprintf(kernel, sizeof kernel, "%s_%s", has_level ? "level" : "fetch", side16[g].kernel);
            snprintf(name, sizeof name, "%s, form %u", kernel, how);
            create(&texture, &side16[g], 4);
            wrong += test_texture(&texture, &side16[g], name, kernel, has_level ? HAS_LEVEL : 0);
            destroy(&texture);
        }
    assert_int_equal(wrong, 0);
}

static void cubes_are_filtered_across_edges(void **state)
{
    static const struct geometry cubes[] = {
        {MODEL_CUBE, "cube", 2, 2, 6, CUDA_ARRAY3D_CUBEMAP, 0},
        {MODEL_CUBE, "cube", 5, 5, 6, CUDA_ARRAY3D_CUBEMAP, 0},
        {MODEL_CUBE_LAYERED, "acube", 4, 4, 18, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED, 3},
    };
    unsigned wrong = 0;

    (void)state;
    for (size_t g = 0; g < COUNT(cubes); g++) {
        static struct texture texture;
        char kernel[32];

        memset(&texture, 0, sizeof texture);
        texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT,
                                       .channels = 4,
                                       .address = CU_TR_ADDRESS_MODE_CLAMP,
                                       .normalized_coordinates = true,
                                       .linear = true,
                                       .seamless = true};
        snprintf(kernel, sizeof kernel, "fetch_%s", cubes[g].kernel);
        create(&texture, &cubes[g], 1);
        wrong += test_texture(&texture, &cubes[g], kernel, kernel, 0);
        destroy(&texture);
    }
    assert_int_equal(wrong, 0);
}

/* The level of derivatives d in x and y is log2(d * width): of 2^-n it is a whole number, if the texture is square. */
static void derivatives_choose_the_level(void **state)
{
    static const struct geometry square = {MODEL_2D, "2d", 16, 16, 0, 0, 0};
    static struct texture texture;
    struct place places[5];
    uint32_t results[20];

    (void)state;
    memset(&texture, 0, sizeof texture);
    texture.model = (struct model){
        .format = CU_AD_FORMAT_FLOAT, .channels = 1, .address = CU_TR_ADDRESS_MODE_CLAMP, .normalized_coordinates = true, .max_level = 10};
    create(&texture, &square, 5);
    for (unsigned i = 0; i < 5; i++)
        places[i] = (struct place){.x = 0.3f, .y = 0.7f, .z = (float)(1 << i) / 16};
    fetch("grad_2d", texture.object, places, 5, results);
    for (unsigned i = 0; i < 5; i++) {
        const struct model_result expected = model_fetch(&texture.model, &(struct model_place){0.3f, 0.7f, 0, 0, true, i, {0}});

        assert_true(result_value(&texture.model, results[4 * i]) == expected.values[0]);
    }
    destroy(&texture);
}

/* Integer coordinates: texels of the first level, and zeros outside, whatever the address mode. */
static void integers_fetch_texels(void **state)
{
    (void)state;
    for (size_t g = 1; g < 5; g++) /* in one dimension, linear memory has such fetches */
        for (unsigned mode = 0; mode < 4; mode++) {
            static struct texture texture;
            static struct place places[N_PLACES];
            static uint32_t results[4 * N_PLACES];
            char kernel[32];

            memset(&texture, 0, sizeof texture);
            texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT, .channels = 2, .address = (CUaddress_mode)mode, .border = {5, 6}};
            create(&texture, &geometries[g], 1);
            random_places(&geometries[g], false, places);
            snprintf(kernel, sizeof kernel, "texel_%s", geometries[g].kernel);
            fetch(kernel, texture.object, places, N_PLACES, results);
            for (unsigned i = 0; i < N_PLACES; i++) {
                const bool is_3d = geometries[g].geometry == MODEL_3D;
                const int x = (int)floorf(places[i].x), y = geometries[g].height ? (int)floorf(places[i].y) : 0;
                const int z = is_3d ? (int)floorf(places[i].z) : geometries[g].flags ? places[i].layer : 0;
                const int width = (int)texture.model.levels[0].width, height = (int)texture.model.levels[0].height;
                const bool inside = x >= 0 && x < width && y >= 0 && y < height && z >= 0 && z < (int)texture.model.levels[0].depth;
                float expected = 0;

                if (inside)
                    memcpy(&expected, texture.texels[0] + ((size_t)(z * height + y) * (size_t)width + (size_t)x) * 8 + 4, sizeof expected);
                if (result_value(&texture.model, results[4 * i + 1]) != expected)
                    fail_msg("%s, address mode %u, at %d %d %d: %g, expected %g", kernel, mode, x, y, z,
                             result_value(&texture.model, results[4 * i + 1]), expected);
            }
            destroy(&texture);
        }
}

/* tld4: the second channel of the texels (0,1), (1,1), (1,0), (0,0) that linear filtering would use. */
static void gathers_take_four_texels(void **state)
{
    static struct texture texture;
    struct geometry geometry = geometries[1];
    static struct place places[N_PLACES];
    static uint32_t results[4 * N_PLACES];

    (void)state;
    memset(&texture, 0, sizeof texture);
    texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT, .channels = 4, .address = CU_TR_ADDRESS_MODE_CLAMP};
    geometry.flags = CUDA_ARRAY3D_TEXTURE_GATHER;
    create(&texture, &geometry, 1);
    random_places(&geometries[1], false, places);
    fetch("gather", texture.object, places, N_PLACES, results);
    for (unsigned i = 0; i < N_PLACES; i++) {
        static const int dx[] = {0, 1, 1, 0}, dy[] = {1, 1, 0, 0};
        const double u = floor((places[i].x - 0.5) * 256 + 0.5) / 256, v = floor((places[i].y - 0.5) * 256 + 0.5) / 256;

        for (unsigned k = 0; k < 4; k++) {
            const struct model_place at = {floor(u) + dx[k] + 0.5, floor(v) + dy[k] + 0.5, 0, 0, false, 0, {0}};

            assert_true(result_value(&texture.model, results[4 * i + k]) == model_fetch(&texture.model, &at).values[1]);
        }
    }
    destroy(&texture);
}

/* ---- offsets ---- */

/* The offset counts texels of the level, before the address mode. */
static void offsets_move_the_place(void **state)
{
    static const struct format tested[] = {{"float x4", CU_AD_FORMAT_FLOAT, 4, false}, {"unorm8 x2", CU_AD_FORMAT_UNSIGNED_INT8, 2, false}};
    unsigned wrong = 0;

    (void)state;
    for (size_t g = 0; g < 5; g++) /* cubes have no offsets */
        for (size_t f = 0; f < COUNT(tested); f++)
            for (unsigned how = 0; how < 16; how++) {
                static struct texture texture;
                char name[128], kernel[32];

                if (!exists(&geometries[g], (CUaddress_mode)(how & 3), how & 8))
                    continue;
                /* On an H100 bits 4 to 7 of the offset of a line move it in y as well, where only a border has an effect: negative ones read that. */
                if (!strcmp(geometries[g].kernel, "1d") && (how & 3) == CU_TR_ADDRESS_MODE_BORDER && !on_cuttle())
                    continue;
                memset(&texture, 0, sizeof texture);
                texture.model = (struct model){.format = tested[f].format,
                                               .channels = tested[f].channels,
                                               .address = (CUaddress_mode)(how & 3),
                                               .linear = how & 4,
                                               .normalized_coordinates = how & 8};
                snprintf(kernel, sizeof kernel, "offset_%s", geometries[g].kernel);
                snprintf(name, sizeof name, "%s, %s, form %u", kernel, tested[f].name, how);
                create(&texture, &geometries[g], 1);
                wrong += test_texture(&texture, &geometries[g], name, kernel, HAS_OFFSET);
                destroy(&texture);
            }
    assert_int_equal(wrong, 0);
}

static void offsets_count_texels_of_the_level(void **state)
{
    static const struct geometry side16[] = {{MODEL_2D, "2d", 16, 16, 0, 0, 0}, {MODEL_3D, "3d", 8, 8, 8, 0, 0}};
    unsigned wrong = 0;

    (void)state;
    for (size_t g = 0; g < COUNT(side16); g++)
        for (unsigned how = 0; how < 4; how++) {
            static struct texture texture;
            char kernel[32];

            memset(&texture, 0, sizeof texture);
            texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT,
                                           .channels = 4,
                                           .address = how & 1 ? CU_TR_ADDRESS_MODE_MIRROR : CU_TR_ADDRESS_MODE_WRAP,
                                           .linear = how & 2,
                                           .normalized_coordinates = true,
                                           .max_level = 10};
            snprintf(kernel, sizeof kernel, "offset_level_%s", side16[g].kernel);
            create(&texture, &side16[g], 4);
            wrong += test_texture(&texture, &side16[g], kernel, kernel, HAS_LEVEL | HAS_OFFSET);
            destroy(&texture);
        }
    assert_int_equal(wrong, 0);
}

/* The kernels of other instructions have constant offsets, except tld4's. */
static void every_instruction_has_offsets(void **state)
{
    static const struct geometry square = {MODEL_2D, "2d", 16, 16, 0, CUDA_ARRAY3D_TEXTURE_GATHER, 0};
    static struct texture texture;
    static struct place places[N_PLACES];
    static uint32_t results[4 * N_PLACES];

    (void)state;
    memset(&texture, 0, sizeof texture);
    texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT, .channels = 4, .address = CU_TR_ADDRESS_MODE_CLAMP};
    create(&texture, &square, 1);
    random_places(&square, false, places);
    for (unsigned i = 0; i < N_PLACES; i++) { /* the middles of texels that exist, with their neighbours */
        places[i].x = 0.5f + (float)(3 + random_bits() % 13);
        places[i].y = 0.5f + (float)(2 + random_bits() % 12);
        places[i].z = 1;
    }
    fetch("offset_texel", texture.object, places, N_PLACES, results);
    for (unsigned i = 0; i < N_PLACES; i++) {
        const struct model_place at = {places[i].x - 3, places[i].y + 2, 0, 0, false, 0, {0}};

        assert_true(result_value(&texture.model, results[4 * i]) == model_fetch(&texture.model, &at).values[0]);
    }
    fetch("offset_grad", texture.object, places, N_PLACES, results);
    for (unsigned i = 0; i < N_PLACES; i++) {
        const struct model_place at = {places[i].x, places[i].y, 0, 0, false, 0, {1, -2, 0}};

        assert_true(result_value(&texture.model, results[4 * i]) == model_fetch(&texture.model, &at).values[0]);
    }
    fetch("offset_gather", texture.object, places, N_PLACES, results);
    for (unsigned i = 0; i < N_PLACES; i++) { /* the last result is that of the lower texels; at their middle the others follow */
        const struct model_place at = {places[i].x, places[i].y, 0, 0, false, 0, {places[i].offset[0], places[i].offset[1], 0}};

        assert_true(result_value(&texture.model, results[4 * i + 3]) == model_fetch(&texture.model, &at).values[1]);
    }
    destroy(&texture);
}

/* ---- other operands and results ---- */

/* A value to compare with depths has no effect on textures of colours. */
static void colours_are_not_compared(void **state)
{
    static const char *const kernels[][2] = {{"fetch_2d", "depth_2d"}, {"level_2d", "depth_level_2d"}, {"gather", "depth_gather"}};
    static struct texture texture;
    struct geometry geometry = geometries[1];
    static struct place places[N_PLACES];
    static uint32_t results[4 * N_PLACES], compared[4 * N_PLACES];

    (void)state;
    geometry.flags = CUDA_ARRAY3D_TEXTURE_GATHER;
    for (unsigned channels = 1; channels <= 4; channels *= 4) {
        memset(&texture, 0, sizeof texture);
        texture.model =
            (struct model){.format = CU_AD_FORMAT_FLOAT, .channels = channels, .linear = true, .address = CU_TR_ADDRESS_MODE_BORDER};
        create(&texture, &geometry, 1);
        random_places(&geometry, false, places);
        for (size_t i = 0; i < COUNT(kernels); i++) {
            fetch(kernels[i][0], texture.object, places, N_PLACES, results);
            fetch(kernels[i][1], texture.object, places, N_PLACES, compared);
            assert_memory_equal(results, compared, sizeof results);
        }
        destroy(&texture);
    }
}

/* Rounds to nearest even. */
static uint16_t half_of(double value)
{
    const double magnitude = fabs(value);
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;

    if (value != value)
        return 0x7fff;
    if (magnitude >= 65520)
        return sign | 0x7c00;
    if (magnitude < 0x1p-14)
        return sign | (uint16_t)nearbyint(magnitude * 0x1p24);
    frexp(magnitude, &exponent);
    return (uint16_t)(sign + ((exponent + 13) << 10) + (int)nearbyint(ldexp(magnitude, 11 - exponent)));
}

static void results_are_halves(void **state)
{
    static const char *const kernels[] = {"pairs_2d", "halves_2d", "texel_pairs"};
    static struct texture texture;
    static struct place places[N_PLACES];
    static uint32_t results[4 * N_PLACES];
    unsigned wrong = 0;

    (void)state;
    for (size_t f = 0; f < COUNT(formats); f++) {
        if (formats[f].as_integer) /* the halves of whatever floats have their bits */
            continue;
        memset(&texture, 0, sizeof texture);
        texture.model = (struct model){.format = formats[f].format, .channels = formats[f].channels, .address = CU_TR_ADDRESS_MODE_CLAMP};
        create(&texture, &geometries[1], 1);
        random_places(&geometries[1], false, places);
        for (unsigned i = 0; i < N_PLACES; i++) { /* inside, since integer coordinates are not clamped */
            places[i].x = (float)(random_bits() % 13) + 0.5f;
            places[i].y = (float)(random_bits() % 7) + 0.5f;
        }
        for (size_t k = 0; k < COUNT(kernels); k++) {
            fetch(kernels[k], texture.object, places, N_PLACES, results);
            for (unsigned i = 0; i < N_PLACES; i++) {
                const struct model_place at = {places[i].x, places[i].y, 0, 0, false, 0, {0}};
                const struct model_result expected = model_fetch(&texture.model, &at);

                for (unsigned c = 0; c < 4; c++)
                    wrong += (uint16_t)(results[4 * i + c / 2] >> (16 * (c & 1))) != half_of((float)expected.values[c]);
            }
        }
        destroy(&texture);
    }
    assert_int_equal(half_of(1 + 0x1p-11), 0x3c00); /* the model */
    assert_int_equal(half_of(-65519.9), 0xfbff);
    assert_int_equal(half_of(3 * 0x1p-25), 2);
    assert_int_equal(wrong, 0);
}

/* tex.level with integer coordinates, which are clamped, whatever the address mode, and zeros in levels that do not exist. */
static void integers_fetch_from_levels(void **state)
{
    static const struct geometry tested[] = {{MODEL_2D, "texel_level", 8, 8, 0, 0, 0},
                                             {MODEL_3D, "texel_level_3d", 8, 8, 8, 0, 0},
                                             {MODEL_2D_LAYERED, "texel_level_a2d", 8, 8, 3, CUDA_ARRAY3D_LAYERED, 3}};

    (void)state;
    for (size_t g = 0; g < COUNT(tested); g++) {
        static struct texture texture;
        static struct place places[N_PLACES];
        static uint32_t results[4 * N_PLACES];

        memset(&texture, 0, sizeof texture);
        texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT,
                                       .channels = 1,
                                       .address = CU_TR_ADDRESS_MODE_BORDER,
                                       .normalized_coordinates = true,
                                       .max_level = 10};
        create(&texture, &tested[g], 4);
        random_places(&tested[g], false, places);
        for (unsigned i = 0; i < N_PLACES; i++)
            places[i].level = (float)(i % 7) - 1; /* to 5 */
        fetch(tested[g].kernel, texture.object, places, N_PLACES, results);
        for (unsigned i = 0; i < N_PLACES; i++) {
            const int level = (int)places[i].level;
            struct model one = {.geometry = tested[g].geometry,
                                .format = CU_AD_FORMAT_FLOAT,
                                .channels = 1,
                                .address = CU_TR_ADDRESS_MODE_CLAMP,
                                .n_levels = 1};
            const struct model_place at = {
                floorf(places[i].x) + 0.5, floorf(places[i].y) + 0.5, floorf(places[i].z) + 0.5, places[i].layer, false, 0, {0}};
            double expected = 0;

            if (level >= 0 && level < 4) {
                one.levels[0] = texture.model.levels[level];
                expected = model_fetch(&one, &at).values[0];
            }
            assert_true(result_value(&one, results[4 * i]) == expected);
        }
        destroy(&texture);
    }
}

/* The format of a view says how texels are read, not that of the array, whose values would be floats. */
static void views_have_their_own_format(void **state)
{
    static const uint32_t texels[2] = {0x12345678, 0xfedcba98};
    static const uint32_t bytes[8] = {0x78, 0x56, 0x34, 0x12, 0x98, 0xba, 0xdc, 0xfe};
    const CUDA_ARRAY3D_DESCRIPTOR desc = {2, 1, 0, CU_AD_FORMAT_UNORM_INT_101010_2, 4, 0};
    const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}, .flags = CU_TRSF_READ_AS_INTEGER};
    CUDA_RESOURCE_VIEW_DESC view = {.format = CU_RES_VIEW_FORMAT_UINT_1X32, .width = 2, .height = 1};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const struct place places[2] = {{.x = 0.5f, .y = 0.5f}, {.x = 1.5f, .y = 0.5f}};
    uint32_t results[8];
    CUtexObject object;
    CUarray array;

    (void)state;
    ok(cuArray3DCreate(&array, &desc));
    ok(cuMemcpyHtoA(array, 0, texels, sizeof texels));
    resource.res.array.hArray = array;
    ok(cuTexObjectCreate(&object, &resource, &how, &view));
    fetch("fetch_2d", object, places, 2, results);
    assert_int_equal(results[0], texels[0]);
    assert_int_equal(results[4], texels[1]);
    ok(cuTexObjectDestroy(object));
    view.format = CU_RES_VIEW_FORMAT_UINT_4X8;
    ok(cuTexObjectCreate(&object, &resource, &how, &view));
    fetch("fetch_2d", object, places, 2, results);
    assert_memory_equal(results, bytes, sizeof bytes);
    ok(cuTexObjectDestroy(object));
    ok(cuArrayDestroy(array));
}

/* tex.2dms of a texture that has one sample of each texel. */
static void samples_are_numbered(void **state)
{
    static struct texture texture;
    struct place places[26];
    uint32_t results[4 * 26];

    (void)state;
    memset(&texture, 0, sizeof texture);
    texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT, .channels = 4, .address = CU_TR_ADDRESS_MODE_CLAMP};
    create(&texture, &geometries[1], 1);
    for (int i = 0; i < 26; i++)
        places[i] = (struct place){.x = (float)(i % 13), .y = 3, .layer = i / 13};
    fetch("samples", texture.object, places, 26, results);
    for (unsigned i = 0; i < 26; i++) {
        static const unsigned char none[16];

        assert_memory_equal(&results[4 * i], i < 13 ? texture.texels[0] + 16 * (3 * 13 + i) : none, 16);
    }
    destroy(&texture);
}

static void queries_give_sizes(void **state)
{
    (void)state;
    for (size_t g = 0; g < 3; g++) {
        static struct texture texture;
        uint32_t results[4];

        memset(&texture, 0, sizeof texture);
        texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT, .channels = 1, .address = CU_TR_ADDRESS_MODE_CLAMP};
        create(&texture, &geometries[g], 1);
        fetch("sizes", texture.object, &(struct place){0}, 1, results);
        assert_int_equal(results[0], geometries[g].width);
        if (geometries[g].height)
            assert_int_equal(results[1], geometries[g].height);
        if (geometries[g].depth)
            assert_int_equal(results[2], geometries[g].depth);
        destroy(&texture);
    }
}

/* The lanes of a warp may fetch from different textures. */
static void lanes_have_objects_of_their_own(void **state)
{
    static struct texture textures[4];
    static struct place places[N_PLACES];
    static uint32_t results[4 * N_PLACES];
    CUtexObject objects[4];
    CUdeviceptr table;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        memset(&textures[i], 0, sizeof textures[i]);
        textures[i].model = (struct model){
            .format = formats[i].format, .channels = formats[i].channels, .linear = i & 1, .address = CU_TR_ADDRESS_MODE_CLAMP};
        create(&textures[i], &geometries[1], 1);
        objects[i] = textures[i].object;
    }
    ok(cuMemAlloc(&table, sizeof objects));
    ok(cuMemcpyHtoD(table, objects, sizeof objects));
    random_places(&geometries[1], false, places);
    fetch("objects", table, places, N_PLACES, results);
    for (unsigned i = 0; i < N_PLACES; i++) {
        const struct model_result expected =
            model_fetch(&textures[i % 4].model, &(struct model_place){places[i].x, places[i].y, 0, 0, false, 0, {0}});

        assert_true(expected.is_uncertain ||
                    fabs(result_value(&textures[i % 4].model, results[4 * i]) - expected.values[0]) <= expected.tolerance);
    }
    ok(cuMemFree(table));
    for (unsigned i = 0; i < 4; i++)
        destroy(&textures[i]);
}

/* ---- linear memory ---- */

/* Channels of words, of which a fetch takes a shorter way, and others; what the missing channels are; and that kernels see what is written by a
 * pointer. */
static void linear_memory_is_read(void **state)
{
    enum { N = 40 };
    static const struct format tested[] = {
        {"float x1", CU_AD_FORMAT_FLOAT, 1, false},         {"float x2", CU_AD_FORMAT_FLOAT, 2, false},
        {"float x4", CU_AD_FORMAT_FLOAT, 4, false},         {"u32 x4", CU_AD_FORMAT_UNSIGNED_INT32, 4, true},
        {"s32 x2", CU_AD_FORMAT_SIGNED_INT32, 2, true},     {"s8 x4", CU_AD_FORMAT_SIGNED_INT8, 4, true},
        {"u16 x1", CU_AD_FORMAT_UNSIGNED_INT16, 1, true},   {"half x2", CU_AD_FORMAT_HALF, 2, false},
        {"unorm8 x4", CU_AD_FORMAT_UNSIGNED_INT8, 4, false}};

    (void)state;
    for (size_t f = 0; f < COUNT(tested); f++) {
        struct model model = {.geometry = MODEL_1D,
                              .format = tested[f].format,
                              .channels = tested[f].channels,
                              .as_integer = tested[f].as_integer,
                              .n_levels = 1};
        unsigned char texels[16 * N];
        const size_t bytes = (size_t)N * model_texel_bytes(&model);
        const CUDA_TEXTURE_DESC how = {.flags = tested[f].as_integer ? CU_TRSF_READ_AS_INTEGER : 0};
        CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
        struct place places[N + 20];
        uint32_t results[4 * COUNT(places)];
        CUtexObject object;
        CUdeviceptr memory;

        model.levels[0].width = N;
        model.levels[0].height = model.levels[0].depth = 1;
        model.levels[0].texels = texels;
        ok(cuMemAlloc(&memory, bytes));
        resource.res.linear.devPtr = memory;
        resource.res.linear.format = tested[f].format;
        resource.res.linear.numChannels = tested[f].channels;
        resource.res.linear.sizeInBytes = bytes;
        ok(cuTexObjectCreate(&object, &resource, &how, NULL));
        for (unsigned i = 0; i < COUNT(places); i++)
            places[i] = (struct place){.x = (float)i - 10};
        places[0].x = -2147483648.0f;
        places[1].x = 1e9f;
        for (int round = 0; round < 2; round++) {
            random_texels(tested[f].format, texels, bytes);
            ok(cuMemcpyHtoD(memory, texels, bytes));
            fetch("texel_1d", object, places, COUNT(places), results);
            for (unsigned i = 0; i < COUNT(places); i++) {
                const bool is_inside = places[i].x >= 0 && places[i].x < N;
                const struct model_place at = {.x = places[i].x + 0.5};
                const struct model_result expected = model_fetch(&model, &at);

                for (unsigned c = 0; c < 4; c++) {
                    const double wanted = is_inside ? expected.values[c] : 0, got = result_value(&model, results[4 * i + c]);

                    assert_true(got == (model_reads_floats(&model) ? (double)(float)wanted : wanted));
                }
            }
        }
        ok(cuTexObjectDestroy(object));
        ok(cuMemFree(memory));
    }
}

static void pitched_memory_is_filtered(void **state)
{
    static struct texture texture; /* only for its model */
    static struct place places[N_PLACES];
    static uint32_t results[4 * N_PLACES];
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    unsigned wrong = 0;

    (void)state;
    for (unsigned how = 0; how < 16; how++) {
        struct model *model = &texture.model;
        CUDA_TEXTURE_DESC desc;
        CUtexObject object;
        CUdeviceptr memory;
        CUDA_MEMCPY2D copy;

        memset(&texture, 0, sizeof texture);
        *model = (struct model){.geometry = MODEL_2D,
                                .format = CU_AD_FORMAT_UNSIGNED_INT8,
                                .channels = 4,
                                .n_levels = 1,
                                .address = (CUaddress_mode)(how & 3),
                                .linear = how & 4,
                                .normalized_coordinates = how & 8};
        if (!exists(&geometries[1], model->address, model->normalized_coordinates))
            continue;
        model->levels[0].width = 13;
        model->levels[0].height = 7;
        model->levels[0].depth = 1;
        model->levels[0].texels = texture.texels[0];
        random_texels(model->format, texture.texels[0], 13 * 7 * 4);
        ok(cuMemAlloc(&memory, 64 * 7));
        copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                               .srcHost = texture.texels[0],
                               .srcPitch = 13 * 4,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = memory,
                               .dstPitch = 64,
                               .WidthInBytes = 13 * 4,
                               .Height = 7};
        ok(cuMemcpy2D(&copy));
        resource.res.pitch2D.devPtr = memory;
        resource.res.pitch2D.format = model->format;
        resource.res.pitch2D.numChannels = 4;
        resource.res.pitch2D.width = 13;
        resource.res.pitch2D.height = 7;
        resource.res.pitch2D.pitchInBytes = 64;
        describe(model, &desc);
        ok(cuTexObjectCreate(&object, &resource, &desc, NULL));
        random_places(&geometries[1], model->normalized_coordinates, places);
        fetch("fetch_2d", object, places, N_PLACES, results);
        wrong += compare("pitched memory", model, 0, places, results);
        ok(cuTexObjectDestroy(object));
        ok(cuMemFree(memory));
    }
    assert_int_equal(wrong, 0);
}

/* Each of these coordinates must end somewhere; NVIDIA's driver says where nothing is documented. */
static void special_coordinates_are_harmless(void **state)
{
    static const float values[] = {NAN, INFINITY, -INFINITY, 1e10f, -1e10f, 3e38f, -3e38f, -0.0f, 1e-40f};
    struct place places[COUNT(values)];
    uint32_t results[4 * COUNT(values)];

    (void)state;
    for (size_t i = 0; i < COUNT(values); i++)
        places[i] = (struct place){.x = values[i], .y = values[i], .z = values[i], .level = values[i], .layer = (int)(i * 0x10000000u)};
    for (size_t g = 0; g < COUNT(geometries); g++)
        for (unsigned how = 0; how < 16; how++) {
            static struct texture texture;
            char kernel[32];

            if (!exists(&geometries[g], (CUaddress_mode)(how & 3), how & 8))
                continue;
            memset(&texture, 0, sizeof texture);
            texture.model = (struct model){.format = CU_AD_FORMAT_FLOAT,
                                           .channels = 4,
                                           .address = (CUaddress_mode)(how & 3),
                                           .linear = how & 4,
                                           .normalized_coordinates = how & 8};
            create(&texture, &geometries[g], 1);
            snprintf(kernel, sizeof kernel, "fetch_%s", geometries[g].kernel);
            fetch(kernel, texture.object, places, COUNT(values), results);
            for (size_t i = 0; i < 4 * COUNT(values); i++) {
                float value;

                memcpy(&value, &results[i], sizeof value);
                assert_true(fabsf(value) <= 1000.0f / 64);
            }
            destroy(&texture);
        }
}

int main(void)
{
    const char *seed = getenv("CUTTLE_TEST_SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fetches_follow_the_model),
        cmocka_unit_test(borders_have_a_colour),
        cmocka_unit_test(integers_are_filtered),
        cmocka_unit_test(levels_follow_the_model),
        cmocka_unit_test(cubes_are_filtered_across_edges),
        cmocka_unit_test(derivatives_choose_the_level),
        cmocka_unit_test(integers_fetch_texels),
        cmocka_unit_test(gathers_take_four_texels),
        cmocka_unit_test(queries_give_sizes),
        cmocka_unit_test(lanes_have_objects_of_their_own),
        cmocka_unit_test(linear_memory_is_read),
        cmocka_unit_test(pitched_memory_is_filtered),
        cmocka_unit_test(special_coordinates_are_harmless),
        cmocka_unit_test(offsets_move_the_place),
        cmocka_unit_test(offsets_count_texels_of_the_level),
        cmocka_unit_test(every_instruction_has_offsets),
        cmocka_unit_test(colours_are_not_compared),
        cmocka_unit_test(results_are_halves),
        cmocka_unit_test(integers_fetch_from_levels),
        cmocka_unit_test(samples_are_numbered),
        cmocka_unit_test(views_have_their_own_format),
    };

    random_state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    print_message("CUTTLE_TEST_SEED=%llu\n", (unsigned long long)random_state);
    return cmocka_run_group_tests(tests, textures_set_up, textures_tear_down);
}
