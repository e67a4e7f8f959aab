/* SPDX-License-Identifier: Apache-2.0 */
/* Textures of compressed blocks: arrays of BC1 to BC7, and views of integers as such blocks. What random blocks of every mode and partition decode to
 * was measured on an H200 (block_sums.def): BC6H and BC7 are specified exactly, but devices interpolate the others in their own ways. */
#include "../splitmix.h"
#include "texture_kernels.h"

#include <math.h>
#include <stdbool.h>

#define SIDE 4u
#define BLOCKS_X 32u
#define BLOCKS_Y 18u
#define N_BLOCKS (BLOCKS_X * BLOCKS_Y)
#define WIDTH (SIDE * BLOCKS_X)
#define HEIGHT (SIDE * BLOCKS_Y)
#define N_SUMS 32u /* each of 18 blocks one after another */
#define MAX_BLOCK_BYTES 16u
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct row {
    const char *name;
    CUarray_format format;
    CUresourceViewFormat view;
    unsigned bytes, channels;
    uint32_t sums[N_SUMS];
} rows[] = {
#define BLOCK(name, view, bytes, channels, ...) {#name, CU_AD_FORMAT_##name, CU_RES_VIEW_FORMAT_##view, bytes, channels, {__VA_ARGS__}},
#include "block_sums.def"
};

/* ---- blocks ---- */

/* The mode and the partition of BC6H and BC7 take all values; reserved modes, too. */
static void choose_mode(const struct row *row, unsigned number, unsigned char *block)
{
    static const unsigned char modes_of_6[] = {0, 1, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31};
    const unsigned mode = number % 8, partition = number / 8 % 64;

    if (row->format == CU_AD_FORMAT_BC6H_UF16 || row->format == CU_AD_FORMAT_BC6H_SF16) {
        const unsigned mode_of_6 = modes_of_6[number % COUNT(modes_of_6)];

        block[0] = (unsigned char)((block[0] & (mode_of_6 < 2 ? ~3u : ~31u)) | mode_of_6);
        block[9] = (unsigned char)((block[9] & 0x1f) | (number / 18 & 7) << 5); /* bits 77 to 81 */
        block[10] = (unsigned char)((block[10] & ~3u) | number / 18 >> 3);
    }
    if (row->format == CU_AD_FORMAT_BC7_UNORM) {
        const uint32_t low = (block[0] | (uint32_t)block[1] << 8) & ~(0x7fu << (mode + 1)) & ~((2u << mode) - 1);
        const uint32_t chosen = number == 4 ? (uint32_t)block[1] << 8 : low | 1u << mode | partition << (mode + 1);

        block[0] = (unsigned char)chosen;
        block[1] = (unsigned char)(chosen >> 8);
    }
}

static void make_blocks(const struct row *row, unsigned char *out)
{
    uint64_t state = row->format;

    for (unsigned i = 0; i < N_BLOCKS; i++) {
        for (unsigned k = 0; k < row->bytes; k++)
            out[i * row->bytes + k] = (unsigned char)splitmix_next(&state);
        choose_mode(row, i, out + i * row->bytes);
    }
}

static void copy_blocks(CUarray array, unsigned z, const void *blocks, unsigned bytes, unsigned blocks_x, unsigned blocks_y)
{
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = blocks,
                                .srcPitch = (size_t)bytes * blocks_x,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .dstZ = z,
                                .WidthInBytes = (size_t)bytes * blocks_x,
                                .Height = blocks_y,
                                .Depth = 1};

    ok(cuMemcpy3D(&copy));
}

static CUarray make_array(CUarray_format format, unsigned channels, size_t width, size_t height, size_t depth, unsigned flags)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {width, height, depth, format, channels, flags};
    CUarray array;

    ok(cuArray3DCreate(&array, &desc));
    return array;
}

static CUtexObject texture_of(CUarray array, const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
    const CUDA_RESOURCE_DESC resource = of_array(array);
    CUtexObject object;

    ok(cuTexObjectCreate(&object, &resource, texture, view));
    return object;
}

/* ---- what blocks decode to ---- */

static void fetch_all(CUtexObject object, float *texels)
{
    static struct place places[PLACES_MAX];

    for (unsigned first = 0; first < WIDTH * HEIGHT; first += PLACES_MAX) {
        const unsigned left = WIDTH * HEIGHT - first, n = left < PLACES_MAX ? left : PLACES_MAX;

        for (unsigned i = 0; i < n; i++)
            places[i] = (struct place){.x = (float)((first + i) % WIDTH) + 0.5f, .y = (float)((first + i) / WIDTH) + 0.5f};
        fetch("fetch_2d", object, places, n, (uint32_t *)(texels + 4 * first));
    }
}

/* FNV-1a over the bits of the channels that blocks have, of 18 blocks. */
static uint32_t sum_of(const struct row *row, const float *texels, unsigned number)
{
    uint32_t sum = 0x811c9dc5;

    for (unsigned block = number * (N_BLOCKS / N_SUMS); block < (number + 1) * (N_BLOCKS / N_SUMS); block++)
        for (unsigned t = 0; t < SIDE * SIDE; t++) {
            const unsigned x = block % BLOCKS_X * SIDE + t % SIDE, y = block / BLOCKS_X * SIDE + t / SIDE;

            for (unsigned c = 0; c < row->channels; c++) {
                uint32_t bits;

                memcpy(&bits, &texels[4 * (y * WIDTH + x) + c], sizeof bits);
                for (unsigned k = 0; k < 32; k += 8)
                    sum = (sum ^ (bits >> k & 255)) * 0x01000193;
            }
        }
    return sum;
}

static void check_texels(const struct row *row, const float *texels, float alpha)
{
    for (unsigned i = 0; i < N_SUMS; i++)
        if (sum_of(row, texels, i) != row->sums[i]) {
            print_error("%s: blocks %u and following decode to 0x%08x, not 0x%08x\n", row->name, i * (N_BLOCKS / N_SUMS),
                        sum_of(row, texels, i), row->sums[i]);
            fail();
        }
    for (unsigned i = 0; row->channels < 4 && i < WIDTH * HEIGHT; i++)
        assert_true(texels[4 * i + 3] == alpha && (row->channels > 1 || texels[4 * i + 1] == 0.0f) &&
                    (row->channels > 2 || texels[4 * i + 2] == 0.0f));
}

static void arrays_of_blocks_decode(void **state)
{
    static unsigned char blocks[N_BLOCKS * MAX_BLOCK_BYTES];
    static float texels[4 * WIDTH * HEIGHT];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        CUarray array = make_array(rows[i].format, rows[i].channels, WIDTH, HEIGHT, 0, 0);
        CUtexObject object;

        make_blocks(&rows[i], blocks);
        copy_blocks(array, 0, blocks, rows[i].bytes, BLOCKS_X, BLOCKS_Y);
        object = texture_of(array, &point, NULL);
        fetch_all(object, texels);
        check_texels(&rows[i], texels, 1.0f);
        ok(cuTexObjectDestroy(object));
        ok(cuArrayDestroy(array));
    }
}

static void views_as_blocks_decode(void **state)
{
    static unsigned char blocks[N_BLOCKS * MAX_BLOCK_BYTES];
    static float texels[4 * WIDTH * HEIGHT];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const CUDA_RESOURCE_VIEW_DESC view = {.format = rows[i].view, .width = WIDTH, .height = HEIGHT};
        CUarray array = make_array(CU_AD_FORMAT_UNSIGNED_INT32, rows[i].bytes / 4, BLOCKS_X, BLOCKS_Y, 0, 0);
        CUtexObject object;

        make_blocks(&rows[i], blocks);
        copy_blocks(array, 0, blocks, rows[i].bytes, BLOCKS_X, BLOCKS_Y);
        object = texture_of(array, &point, &view);
        fetch_all(object, texels);
        check_texels(&rows[i], texels, 0.0f);
        ok(cuTexObjectDestroy(object));
        ok(cuArrayDestroy(array));
    }
}

/* ---- shapes ---- */

/* A BC1 block of one grey, of 31 that exist; its red channel. */
static uint64_t grey(unsigned level)
{
    const uint64_t color = level << 11 | level << 6 | level;

    return color | color << 16;
}

static float red_of(unsigned level)
{
    return (float)(66 * level / 8) / 255.0f;
}

static void expect_red(CUtexObject object, const char *kernel, struct place place, float red)
{
    float texel[4];

    fetch(kernel, object, &place, 1, (uint32_t *)texel);
    if (fabsf(texel[0] - red) > 0.5f / 255.0f)
        print_error("%s at (%g, %g, %g), level %g, layer %d: %g, not %g\n", kernel, (double)place.x, (double)place.y, (double)place.z,
                    (double)place.level, place.layer, (double)texel[0], (double)red);
    assert_true(fabsf(texel[0] - red) <= 0.5f / 255.0f);
}

/* A slice of one grey each. */
static void paint(CUarray array, unsigned z, size_t width, size_t height, unsigned level)
{
    uint64_t blocks[64];
    const unsigned nx = (unsigned)(width + 3) / 4, ny = (unsigned)(height + 3) / 4;

    for (unsigned i = 0; i < nx * ny; i++)
        blocks[i] = grey(level);
    copy_blocks(array, z, blocks, sizeof *blocks, nx, ny);
}

static void slices_decode(void **state)
{
    static const struct {
        const char *kernel;
        unsigned flags;
        unsigned slices;
    } shapes[] = {{"fetch_3d", 0, 3}, {"fetch_a2d", CUDA_ARRAY3D_LAYERED, 3}, {"fetch_cube", CUDA_ARRAY3D_CUBEMAP, 6}};
    static const struct place faces[] = {{.x = 1}, {.x = -1}, {.y = 1}, {.y = -1}, {.z = 1}, {.z = -1}};

    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        CUarray array = make_array(CU_AD_FORMAT_BC1_UNORM, 4, 10, 10, shapes[i].slices, shapes[i].flags);
        CUtexObject object = texture_of(array, &point, NULL);

        for (unsigned z = 0; z < shapes[i].slices; z++)
            paint(array, z, 10, 10, 3 * z + 2);
        for (unsigned z = 0; z < shapes[i].slices; z++) {
            const struct place place = {.x = 9.5f, .y = 8.5f, .z = (float)z + 0.5f, .layer = (int32_t)z};

            expect_red(object, shapes[i].kernel, shapes[i].flags == CUDA_ARRAY3D_CUBEMAP ? faces[z] : place, red_of(3 * z + 2));
        }
        ok(cuTexObjectDestroy(object));
        ok(cuArrayDestroy(array));
    }
}

static void levels_decode(void **state)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {20, 12, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0};
    CUDA_TEXTURE_DESC texture = point;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUmipmappedArray mipmap;
    CUtexObject object;

    (void)state;
    texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
    texture.maxMipmapLevelClamp = 10.0f;
    ok(cuMipmappedArrayCreate(&mipmap, &desc, 5));
    resource.res.mipmap.hMipmappedArray = mipmap;
    for (unsigned i = 0; i < 5; i++) {
        CUDA_ARRAY3D_DESCRIPTOR level_desc;
        CUarray level;

        ok(cuMipmappedArrayGetLevel(&level, mipmap, i));
        ok(cuArray3DGetDescriptor(&level_desc, level));
        assert_int_equal(level_desc.Width, 20u >> i);
        paint(level, 0, level_desc.Width, level_desc.Height, 5 * i + 3);
    }
    ok(cuTexObjectCreate(&object, &resource, &texture, NULL));
    for (unsigned i = 0; i < 5; i++)
        expect_red(object, "level_2d", (struct place){.x = 0.9f, .y = 0.9f, .level = (float)i}, red_of(5 * i + 3));
    ok(cuTexObjectDestroy(object));
    ok(cuMipmappedArrayDestroy(mipmap));
}

/* A view of a mipmapped array of integers, whose levels have fewer blocks than a quarter of the view's sides would need. */
static void levels_of_views_decode(void **state)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {5, 3, 0, CU_AD_FORMAT_UNSIGNED_INT32, 2, 0};
    const CUDA_RESOURCE_VIEW_DESC view = {
        .format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1, .width = 20, .height = 12, .firstMipmapLevel = 1, .lastMipmapLevel = 1};
    CUDA_TEXTURE_DESC texture = point;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUmipmappedArray mipmap;
    CUtexObject object;
    CUarray level;

    (void)state;
    texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
    ok(cuMipmappedArrayCreate(&mipmap, &desc, 2));
    resource.res.mipmap.hMipmappedArray = mipmap;
    ok(cuMipmappedArrayGetLevel(&level, mipmap, 1));
    paint(level, 0, 8, 4, 17);
    ok(cuTexObjectCreate(&object, &resource, &texture, &view));
    expect_red(object, "level_2d", (struct place){.x = 0.4f, .y = 0.4f}, red_of(17));
    ok(cuTexObjectDestroy(object));
    ok(cuMipmappedArrayDestroy(mipmap));
}

static void blocks_are_filtered(void **state)
{
    const uint64_t blocks[] = {grey(2), grey(30)};
    CUarray array = make_array(CU_AD_FORMAT_BC1_UNORM, 4, 8, 4, 0, 0);
    CUDA_TEXTURE_DESC texture = point;
    CUtexObject object;

    (void)state;
    copy_blocks(array, 0, blocks, 8, 2, 1);
    texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
    object = texture_of(array, &texture, NULL);
    expect_red(object, "fetch_2d", (struct place){.x = 2.0f, .y = 2.0f}, red_of(2));
    expect_red(object, "fetch_2d", (struct place){.x = 4.0f, .y = 2.0f}, (red_of(2) + red_of(30)) / 2);
    ok(cuTexObjectDestroy(object));
    ok(cuArrayDestroy(array));
}

/* sRGB formats must be read with the flag, others may be. */
static void colours_are_linear(void **state)
{
    static const CUarray_format formats[] = {CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_BC1_UNORM_SRGB};
    const float red = powf((red_of(20) + 0.055f) / 1.055f, 2.4f);

    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        CUarray array = make_array(formats[i], 4, 4, 4, 0, 0);
        const CUDA_RESOURCE_DESC resource = of_array(array);
        CUDA_TEXTURE_DESC texture = point;
        CUtexObject object;

        paint(array, 0, 4, 4, 20);
        gives(i ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS, cuTexObjectCreate(&object, &resource, &texture, NULL));
        if (!i)
            ok(cuTexObjectDestroy(object));
        texture.flags = CU_TRSF_SRGB;
        object = texture_of(array, &texture, NULL);
        expect_red(object, "fetch_2d", (struct place){.x = 1.5f, .y = 1.5f}, red);
        ok(cuTexObjectDestroy(object));
        ok(cuArrayDestroy(array));
    }
}

/* ---- copies ---- */

/* Fetches see what was copied after the object was created, also from another array, and by a kernel through a surface of the integers. */
static void later_blocks_are_seen(void **state)
{
    CUarray array = make_array(CU_AD_FORMAT_BC1_UNORM, 4, 8, 8, 0, 0), other = make_array(CU_AD_FORMAT_BC1_UNORM, 4, 8, 8, 0, 0);
    const CUtexObject object = texture_of(array, &point, NULL);
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = other,
                                .srcXInBytes = 8,
                                .srcY = 1,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .dstXInBytes = 0,
                                .dstY = 1,
                                .WidthInBytes = 8,
                                .Height = 1};

    (void)state;
    paint(array, 0, 8, 8, 5);
    expect_red(object, "fetch_2d", (struct place){.x = 1.5f, .y = 5.5f}, red_of(5));
    paint(array, 0, 8, 8, 25);
    paint(other, 0, 8, 8, 11);
    ok(cuMemcpy2D(&copy));
    expect_red(object, "fetch_2d", (struct place){.x = 1.5f, .y = 5.5f}, red_of(11));
    expect_red(object, "fetch_2d", (struct place){.x = 4.5f, .y = 5.5f}, red_of(25));
    ok(cuTexObjectDestroy(object));
    ok(cuArrayDestroy(other));
    ok(cuArrayDestroy(array));
}

static CUresult copy_at(CUarray array, size_t x_bytes, size_t y, size_t width_bytes, size_t height)
{
    static const unsigned char zeros[4096];
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = zeros,
                                .srcPitch = 256,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .dstXInBytes = x_bytes,
                                .dstY = y,
                                .WidthInBytes = width_bytes,
                                .Height = height};

    return cuMemcpy2D(&copy);
}

/* Copies count blocks: 16 x 10 texels are 4 x 3 of them. */
static void copies_count_blocks(void **state)
{
    CUarray array = make_array(CU_AD_FORMAT_BC3_UNORM, 4, 16, 10, 0, 0);

    (void)state;
    ok(copy_at(array, 0, 0, 64, 3));
    ok(copy_at(array, 48, 2, 16, 1));
    gives(CUDA_ERROR_INVALID_VALUE, copy_at(array, 0, 0, 64, 4));
    gives(CUDA_ERROR_INVALID_VALUE, copy_at(array, 0, 0, 80, 1));
    gives(CUDA_ERROR_INVALID_VALUE, copy_at(array, 16, 0, 64, 1));
    gives(CUDA_ERROR_INVALID_VALUE, copy_at(array, 8, 0, 16, 1));
    gives(CUDA_ERROR_INVALID_VALUE, copy_at(array, 0, 0, 24, 1));
    ok(cuArrayDestroy(array));
}

/* ---- errors ---- */

static void expect_array(CUresult code, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    CUarray array;

    gives(code, cuArray3DCreate(&array, desc));
    if (code == CUDA_SUCCESS)
        ok(cuArrayDestroy(array));
}

static void descriptors_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned channels = 1; channels <= 4; channels++) {
            const CUDA_ARRAY3D_DESCRIPTOR desc = {30, 29, 0, rows[i].format, channels, 0};

            expect_array(channels == rows[i].channels ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, &desc);
        }
    expect_array(CUDA_ERROR_INVALID_VALUE, &(CUDA_ARRAY3D_DESCRIPTOR){64, 0, 0, CU_AD_FORMAT_BC7_UNORM, 4, 0});
    expect_array(CUDA_ERROR_NOT_SUPPORTED, &(CUDA_ARRAY3D_DESCRIPTOR){64, 64, 0, CU_AD_FORMAT_BC7_UNORM, 4, CUDA_ARRAY3D_SURFACE_LDST});
    expect_array(CUDA_ERROR_INVALID_VALUE,
                 &(CUDA_ARRAY3D_DESCRIPTOR){64, 64, 4, CU_AD_FORMAT_BC7_UNORM, 4, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_TEXTURE_GATHER});
}

static void expect_view(CUresult code, CUarray array, CUresourceViewFormat format, size_t width, size_t height)
{
    const CUDA_RESOURCE_VIEW_DESC view = {.format = format, .width = width, .height = height};
    const CUDA_RESOURCE_DESC resource = of_array(array);
    CUtexObject object;

    gives(code, cuTexObjectCreate(&object, &resource, &point, &view));
    if (code == CUDA_SUCCESS)
        ok(cuTexObjectDestroy(object));
}

static void views_are_checked(void **state)
{
    static const struct {
        CUarray_format format;
        unsigned channels;
    } others[] = {{CU_AD_FORMAT_UNSIGNED_INT16, 4}, {CU_AD_FORMAT_FLOAT, 2}, {CU_AD_FORMAT_SIGNED_INT32, 2}};
    CUarray array = make_array(CU_AD_FORMAT_UNSIGNED_INT32, 2, 16, 8, 0, 0);

    (void)state;
    expect_view(CUDA_SUCCESS, array, CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 64, 32);
    expect_view(CUDA_ERROR_INVALID_VALUE, array, CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 16, 8);
    expect_view(CUDA_ERROR_INVALID_VALUE, array, CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 62, 31);
    expect_view(CUDA_ERROR_INVALID_VALUE, array, CU_RES_VIEW_FORMAT_UNSIGNED_BC2, 64, 32); /* of larger blocks */
    ok(cuArrayDestroy(array));
    for (size_t i = 0; i < COUNT(others); i++) {
        array = make_array(others[i].format, others[i].channels, 16, 8, 0, 0);
        expect_view(CUDA_ERROR_INVALID_VALUE, array, CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 64, 32);
        ok(cuArrayDestroy(array));
    }
    array = make_array(CU_AD_FORMAT_BC1_UNORM, 4, 64, 32, 0, 0);
    expect_view(CUDA_ERROR_INVALID_VALUE, array, CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 64, 32);
    ok(cuArrayDestroy(array));
}

static void surfaces_are_refused(void **state)
{
    CUarray array = make_array(CU_AD_FORMAT_BC1_UNORM, 4, 64, 32, 0, 0);
    const CUDA_RESOURCE_DESC resource = of_array(array);
    CUsurfObject surface;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surface, &resource));
    ok(cuArrayDestroy(array));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_of_blocks_decode), cmocka_unit_test(views_as_blocks_decode), cmocka_unit_test(slices_decode),
        cmocka_unit_test(levels_decode),           cmocka_unit_test(levels_of_views_decode), cmocka_unit_test(blocks_are_filtered),
        cmocka_unit_test(colours_are_linear),      cmocka_unit_test(later_blocks_are_seen),  cmocka_unit_test(copies_count_blocks),
        cmocka_unit_test(descriptors_are_checked), cmocka_unit_test(views_are_checked),      cmocka_unit_test(surfaces_are_refused),
    };

    return cmocka_run_group_tests_name("blocks", tests, textures_set_up, textures_tear_down);
}
