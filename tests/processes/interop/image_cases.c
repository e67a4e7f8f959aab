/* SPDX-License-Identifier: Apache-2.0 */
/* Images of a Vulkan program as mipmapped arrays of CUDA: each API reads what the other writes, in every level, layer and slice. */
#include "app_image.h"
#include "interop.h"

#include "../../api/which_driver.h"

#include <string.h>

#define LAYERED CUDA_ARRAY3D_LAYERED
#define CUBE CUDA_ARRAY3D_CUBEMAP
#define SURFACE CUDA_ARRAY3D_SURFACE_LDST
#define TARGET CUDA_ARRAY3D_COLOR_ATTACHMENT

/* An image, and the equivalent descriptor of CUDA. */
static const struct row {
    const char *name;
    struct app_image_desc image;
    CUarray_format format;
    unsigned channels, flags;
} rows[] = {
    {"2D", {VK_IMAGE_TYPE_2D, VK_FORMAT_R8G8B8A8_UNORM, 4, {200, 90, 1}, 1, 1, 0, 0, false, 0}, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0},
    {"2D, dedicated", {VK_IMAGE_TYPE_2D, VK_FORMAT_R8G8B8A8_UNORM, 4, {200, 90, 1}, 1, 1, 0, 0, true, 0}, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0},
    {"2D at an offset", {VK_IMAGE_TYPE_2D, VK_FORMAT_R32_SFLOAT, 4, {77, 65, 1}, 1, 1, 0, 0, false, 3}, CU_AD_FORMAT_FLOAT, 1, 0},
    {"2D with levels", {VK_IMAGE_TYPE_2D, VK_FORMAT_R16G16B16A16_SFLOAT, 8, {128, 64, 1}, 1, 8, 0, 0, false, 0}, CU_AD_FORMAT_HALF, 4, 0},
    {"2D with levels, dedicated",
     {VK_IMAGE_TYPE_2D, VK_FORMAT_R32_UINT, 4, {100, 100, 1}, 1, 4, 0, 0, true, 0},
     CU_AD_FORMAT_UNSIGNED_INT32,
     1,
     0},
    {"2D for storage",
     {VK_IMAGE_TYPE_2D, VK_FORMAT_R32G32B32A32_SFLOAT, 16, {300, 40, 1}, 1, 1, 0, VK_IMAGE_USAGE_STORAGE_BIT, true, 0},
     CU_AD_FORMAT_FLOAT,
     4,
     SURFACE},
    {"2D to render into",
     {VK_IMAGE_TYPE_2D, VK_FORMAT_R8G8B8A8_UNORM, 4, {320, 200, 1}, 1, 1, 0, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, true, 0},
     CU_AD_FORMAT_UNSIGNED_INT8,
     4,
     TARGET},
    {"2D to render and store into",
     {VK_IMAGE_TYPE_2D,
      VK_FORMAT_R8G8B8A8_UNORM,
      4,
      {320, 200, 1},
      1,
      2,
      0,
      VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_STORAGE_BIT,
      true,
      0},
     CU_AD_FORMAT_UNSIGNED_INT8,
     4,
     TARGET | SURFACE},
    {"2D layers", {VK_IMAGE_TYPE_2D, VK_FORMAT_R16_UINT, 2, {60, 50, 1}, 5, 3, 0, 0, false, 0}, CU_AD_FORMAT_UNSIGNED_INT16, 1, LAYERED},
    {"cubemap",
     {VK_IMAGE_TYPE_2D, VK_FORMAT_R8G8B8A8_UNORM, 4, {64, 64, 1}, 6, 3, VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT, 0, false, 0},
     CU_AD_FORMAT_UNSIGNED_INT8,
     4,
     CUBE},
    {"3D", {VK_IMAGE_TYPE_3D, VK_FORMAT_R32_SFLOAT, 4, {40, 30, 20}, 1, 3, 0, 0, false, 0}, CU_AD_FORMAT_FLOAT, 1, 0},
    {"3D for storage, dedicated",
     {VK_IMAGE_TYPE_3D, VK_FORMAT_R16G16_SFLOAT, 4, {33, 17, 9}, 1, 1, 0, VK_IMAGE_USAGE_STORAGE_BIT, true, 0},
     CU_AD_FORMAT_HALF,
     2,
     SURFACE},
    {"1D", {VK_IMAGE_TYPE_1D, VK_FORMAT_R32G32_SFLOAT, 8, {500, 1, 1}, 1, 1, 0, 0, false, 0}, CU_AD_FORMAT_FLOAT, 2, 0},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC describe(const struct row *row, const struct app_image *image)
{
    const VkExtent3D *extent = &row->image.extent;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc;

    memset(&desc, 0, sizeof desc);
    desc.offset = image->offset;
    desc.arrayDesc.Width = extent->width;
    desc.arrayDesc.Height = row->image.type == VK_IMAGE_TYPE_1D ? 0 : extent->height;
    desc.arrayDesc.Depth = row->image.type == VK_IMAGE_TYPE_3D ? extent->depth : row->image.layers > 1 ? row->image.layers : 0;
    desc.arrayDesc.Format = row->format;
    desc.arrayDesc.NumChannels = row->channels;
    desc.arrayDesc.Flags = row->flags;
    desc.numLevels = row->image.levels;
    return desc;
}

static CUexternalMemory import_image(struct app *app, const struct app_image *image)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc =
        memory_handle(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, app_image_export(app, image), image->memory_bytes);
    CUexternalMemory memory;

    desc.flags = image->desc.dedicated ? CUDA_EXTERNAL_MEMORY_DEDICATED : 0;
    ok(cuImportExternalMemory(&memory, &desc));
    return memory;
}

/* Copies all levels to host memory or back, one after another. */
static void copy_levels(CUmipmappedArray mipmap, const struct app_image *image, unsigned char *texels, bool to_array)
{
    for (uint32_t i = 0; i < image->desc.levels; i++) {
        VkExtent3D extent = app_image_level(image, i);
        CUDA_MEMCPY3D copy = {
            .WidthInBytes = extent.width * image->desc.texel_bytes,
            .Height = extent.height,
            .Depth = extent.depth * image->desc.layers,
        };
        CUarray level;

        ok(cuMipmappedArrayGetLevel(&level, mipmap, i));
        copy.srcMemoryType = to_array ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
        copy.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
        copy.srcArray = copy.dstArray = level;
        copy.srcHost = copy.dstHost = texels;
        copy.srcPitch = copy.dstPitch = copy.WidthInBytes;
        copy.srcHeight = copy.dstHeight = copy.Height;
        ok(cuMemcpy3D(&copy));
        texels += app_image_level_bytes(image, i);
    }
    ok(cuCtxSynchronize());
}

static void fill_with_noise(unsigned char *texels, uint64_t bytes, unsigned seed)
{
    for (uint64_t i = 0; i < bytes; i++)
        texels[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24) & 0x3b; /* no float made of these bytes is a NaN */
}

static void expect_same(const struct row *row, const char *what, const unsigned char *got, const unsigned char *want, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if (got[i] == want[i])
            continue;
        fprintf(stderr, "%s: %s: byte %llu of %llu is 0x%02x, not 0x%02x\n", row->name, what, (unsigned long long)i,
                (unsigned long long)bytes, got[i], want[i]);
        exit(EXIT_FAILURE);
    }
}

static void share_image(struct app *app, const struct row *row, unsigned seed)
{
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc;
    unsigned char *there, *got;
    CUexternalMemory memory;
    CUmipmappedArray mipmap;
    struct app_image image;

    app_image_create(app, &row->image, &image);
    there = malloc(image.texels_bytes);
    got = malloc(image.texels_bytes);
    fill_with_noise(there, image.texels_bytes, seed);
    app_image_write(app, &image, there); /* before CUDA imports it */
    memory = import_image(app, &image);
    desc = describe(row, &image);
    ok(cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc));
    copy_levels(mipmap, &image, got, false);
    expect_same(row, "CUDA reads what Vulkan wrote", got, there, image.texels_bytes);
    fill_with_noise(there, image.texels_bytes, seed + 1);
    copy_levels(mipmap, &image, there, true);
    app_image_read(app, &image, got);
    expect_same(row, "Vulkan reads what CUDA wrote", got, there, image.texels_bytes);
    fill_with_noise(there, image.texels_bytes, seed + 2);
    app_image_write(app, &image, there); /* and once more, while it is mapped */
    copy_levels(mipmap, &image, got, false);
    expect_same(row, "CUDA reads what Vulkan wrote later", got, there, image.texels_bytes);
    ok(cuMipmappedArrayDestroy(mipmap));
    ok(cuDestroyExternalMemory(memory));
    app_image_destroy(app, &image);
    free(there);
    free(got);
}

int images(struct app *app, struct cuda *cuda)
{
    unsigned shared = 0;

    (void)cuda;
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!app_image_is_possible(app, &rows[i].image))
            continue;
        if (!on_cuttle() && rows[i].flags & LAYERED) /* NVIDIA's driver (580.159.04) finds other texels in the second layer */
            continue;
        share_image(app, &rows[i], (unsigned)i * 10);
        shared++;
    }
    printf("%u of %u kinds of images are shared\n", shared, (unsigned)N_ROWS);
    return shared ? PASSED : LEFT_OUT;
}

/* The array remains valid after the memory object is destroyed, and so does the application's image. */
int image_order(struct app *app, struct cuda *cuda)
{
    const struct row *row = &rows[0];
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc;
    CUexternalMemory memory;
    CUmipmappedArray first, second;
    struct app_image image;
    unsigned char *there, *got;

    (void)cuda;
    if (!app_image_is_possible(app, &row->image))
        return LEFT_OUT;
    app_image_create(app, &row->image, &image);
    there = malloc(image.texels_bytes);
    got = malloc(image.texels_bytes);
    fill_with_noise(there, image.texels_bytes, 99);
    app_image_write(app, &image, there);
    memory = import_image(app, &image);
    desc = describe(row, &image);
    ok(cuExternalMemoryGetMappedMipmappedArray(&first, memory, &desc));
    ok(cuExternalMemoryGetMappedMipmappedArray(&second, memory, &desc)); /* the same texels */
    ok(cuDestroyExternalMemory(memory));
    copy_levels(first, &image, got, false);
    expect_same(row, "the first", got, there, image.texels_bytes);
    fill_with_noise(there, image.texels_bytes, 98);
    copy_levels(first, &image, there, true);
    copy_levels(second, &image, got, false);
    expect_same(row, "the second", got, there, image.texels_bytes);
    ok(cuMipmappedArrayDestroy(first));
    copy_levels(second, &image, got, false);
    ok(cuMipmappedArrayDestroy(second));
    app_image_destroy(app, &image);
    free(there);
    free(got);
    return PASSED;
}

int image_errors(struct app *app, struct cuda *cuda)
{
    const struct row *row = &rows[3];
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC good, bad;
    CUexternalMemory memory;
    CUmipmappedArray mipmap;
    struct app_image image;

    if (!on_cuttle() || !app_image_is_possible(app, &row->image)) /* NVIDIA's driver checks little, and crashes */
        return LEFT_OUT;
    app_image_create(app, &row->image, &image);
    memory = import_image(app, &image);
    good = describe(row, &image);
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(NULL, memory, &good));
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, NULL));
    bad = good;
    bad.arrayDesc.Width = 0;
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &bad));
    bad = good;
    bad.arrayDesc.NumChannels = 3;
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &bad));
    bad = good;
    bad.numLevels = 0;
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &bad));
    bad = good;
    bad.arrayDesc.Width = bad.arrayDesc.Height = 4096; /* more than the memory has */
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &bad));
    bad = good;
    bad.offset = image.memory_bytes;
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &bad));
    bad = good;
    bad.numLevels = 9; /* 128 texels have at most 8 levels */
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &bad));
    bad = good;
    bad.offset = 1;
    gives(CUDA_ERROR_INVALID_VALUE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &bad));
    gives(CUDA_ERROR_INVALID_HANDLE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, (CUexternalMemory)cuda->module, &good));
    ok(cuDestroyExternalMemory(memory));
    gives(CUDA_ERROR_INVALID_HANDLE, cuExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &good));
    app_image_destroy(app, &image);
    return PASSED;
}
