/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of a picture by textures and a surface: a PNG (photo.png beside the source) is rotated, blurred, smoothed along its edges, and its
 * edges are found. --output FILE writes the four as one PNG. Every pixel is compared with the CPU's; the fractions of linear filtering have 8 bits,
 * so bytes may differ by 2. */
#include "example.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANGLE 0.35
#define EDGES 60.0
#define RADIUS 3
#define TOLERANCE 2
#define CHANNELS 4

struct picture {
    unsigned width, height;
    png_byte *pixels; /* RGBA */
};

static struct picture read_png(const char *path)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    struct picture picture = {0};

    if (png_image_begin_read_from_file(&image, path)) {
        image.format = PNG_FORMAT_RGBA;
        picture = (struct picture){image.width, image.height, malloc(PNG_IMAGE_SIZE(image))};
        if (png_image_finish_read(&image, NULL, picture.pixels, 0, NULL))
            return picture;
    }
    fprintf(stderr, "%s: %s\n", path, image.message);
    exit(1);
}

static bool write_png(const char *path, const struct picture *picture)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = picture->width, .height = picture->height, .format = PNG_FORMAT_RGBA};

    if (png_image_write_to_file(&image, path, 0, picture->pixels, 0, NULL))
        return true;
    fprintf(stderr, "%s: %s\n", path, image.message);
    return false;
}

/* ---- the CPU's filters ---- */

struct colour {
    double v[3];
};

static double texel(const struct picture *picture, int x, int y, int channel)
{
    if (x < 0 || y < 0 || x >= (int)picture->width || y >= (int)picture->height)
        return 0; /* the border */
    return picture->pixels[((size_t)y * picture->width + (size_t)x) * CHANNELS + (size_t)channel] / 255.0;
}

static struct colour fetch(const struct picture *picture, double u, double v)
{
    const double x = u * picture->width - 0.5, y = v * picture->height - 0.5, left = floor(x), top = floor(y);
    const double a = floor((x - left) * 256 + 0.5) / 256, b = floor((y - top) * 256 + 0.5) / 256;
    struct colour c;

    for (int i = 0; i < 3; i++)
        c.v[i] = (1 - b) * ((1 - a) * texel(picture, (int)left, (int)top, i) + a * texel(picture, (int)left + 1, (int)top, i)) +
                 b * ((1 - a) * texel(picture, (int)left, (int)top + 1, i) + a * texel(picture, (int)left + 1, (int)top + 1, i));
    return c;
}

struct tile {
    unsigned width, height;
};

static struct colour fetch_pixel(const struct picture *picture, const struct tile *tile, double x, double y)
{
    return fetch(picture, (x + 0.5) / tile->width, (y + 0.5) / tile->height);
}

static struct colour rotated(const struct picture *picture, const struct tile *tile, int x, int y)
{
    const double aspect = (double)tile->width / tile->height;
    const double u = ((x + 0.5) / tile->width - 0.5) * aspect, v = (y + 0.5) / tile->height - 0.5;

    return fetch(picture, (u * cos(ANGLE) - v * sin(ANGLE)) / aspect + 0.5, u * sin(ANGLE) + v * cos(ANGLE) + 0.5);
}

static struct colour smoothed(const struct picture *picture, const struct tile *tile, int x, int y, double edges)
{
    const struct colour middle = fetch_pixel(picture, tile, x, y);
    struct colour sum = {{0}};
    double total = 0;

    for (int dy = -RADIUS; dy <= RADIUS; dy++)
        for (int dx = -RADIUS; dx <= RADIUS; dx++) {
            const struct colour c = fetch_pixel(picture, tile, x + dx, y + dy);
            double unlike = 0, weight;

            for (int i = 0; i < 3; i++)
                unlike += (c.v[i] - middle.v[i]) * (c.v[i] - middle.v[i]);
            weight = (RADIUS + 1 - abs(dx)) * (RADIUS + 1 - abs(dy)) / (1 + edges * unlike);
            for (int i = 0; i < 3; i++)
                sum.v[i] += weight * c.v[i];
            total += weight;
        }
    for (int i = 0; i < 3; i++)
        sum.v[i] /= total;
    return sum;
}

static struct colour blurred(const struct picture *picture, const struct tile *tile, int x, int y)
{
    return smoothed(picture, tile, x, y, 0);
}

static struct colour smoothed_along_edges(const struct picture *picture, const struct tile *tile, int x, int y)
{
    return smoothed(picture, tile, x, y, EDGES);
}

static struct colour edges_of(const struct picture *picture, const struct tile *tile, int x, int y)
{
    double across = 0, down = 0;

    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            const struct colour c = fetch_pixel(picture, tile, x + dx, y + dy);
            const double light = 0.3 * c.v[0] + 0.6 * c.v[1] + 0.1 * c.v[2];

            across += light * dx * (2 - dy * dy);
            down += light * dy * (2 - dx * dx);
        }
    across = fabs(across) + fabs(down);
    return (struct colour){{across, across, across}};
}

/* ---- the device's ---- */

static CUarray make_array(unsigned width, unsigned height, unsigned flags)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = width, .Height = height, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = CHANNELS, .Flags = flags};
    CUarray array;

    CHECK(cuArray3DCreate(&array, &desc));
    return array;
}

static CUDA_MEMCPY2D copy_of(const struct picture *picture)
{
    return (CUDA_MEMCPY2D){.WidthInBytes = (size_t)picture->width * CHANNELS, .Height = picture->height};
}

static void upload(CUarray array, const struct picture *picture)
{
    CUDA_MEMCPY2D copy = copy_of(picture);

    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = picture->pixels;
    copy.srcPitch = copy.WidthInBytes;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    CHECK(cuMemcpy2D(&copy));
}

static void download(const struct picture *picture, CUarray array)
{
    CUDA_MEMCPY2D copy = copy_of(picture);

    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = array;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = picture->pixels;
    copy.dstPitch = copy.WidthInBytes;
    CHECK(cuMemcpy2D(&copy));
}

static CUtexObject make_texture(CUarray array)
{
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_BORDER, CU_TR_ADDRESS_MODE_BORDER},
                                   .filterMode = CU_TR_FILTER_MODE_LINEAR,
                                   .flags = CU_TRSF_NORMALIZED_COORDINATES};
    CUtexObject texture;

    resource.res.array.hArray = array;
    CHECK(cuTexObjectCreate(&texture, &resource, &how, NULL));
    return texture;
}

static CUsurfObject make_surface(CUarray array)
{
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUsurfObject surface;

    resource.res.array.hArray = array;
    CHECK(cuSurfObjectCreate(&surface, &resource));
    return surface;
}

/* ---- the four filters ---- */

static const struct filter {
    const char *kernel;
    float parameters[2];
    struct colour (*reference)(const struct picture *picture, const struct tile *tile, int x, int y);
} filters[] = {
    {"rotate", {0.9393727f, 0.3428978f}, rotated}, /* the cosine and the sine of ANGLE */
    {"smooth", {0.0f}, blurred},
    {"smooth", {(float)EDGES}, smoothed_along_edges},
    {"sobel", {0.0f}, edges_of},
};
#define N_FILTERS (sizeof filters / sizeof *filters)

static double run(struct example *example, CUtexObject texture, CUsurfObject surface, struct tile *tile)
{
    const struct example_grid grid = {(tile->width + 15) / 16, (tile->height + 15) / 16, 16, 16};
    double ms = 0;

    for (unsigned i = 0; i < N_FILTERS; i++) {
        unsigned left = i % 2 * tile->width, top = i / 2 * tile->height;
        float parameters[2] = {filters[i].parameters[0], filters[i].parameters[1]};
        void *list[] = {&texture, &surface, &left, &top, &tile->width, &tile->height, &parameters[0], &parameters[1]};

        ms += example_launch(example, example_function(example, filters[i].kernel), grid, list);
    }
    return ms;
}

static size_t compare(const struct picture *picture, const struct picture *result, const struct tile *tile)
{
    size_t errors = 0;

    for (unsigned i = 0; i < N_FILTERS; i++)
        for (unsigned y = 0; y < tile->height; y++)
            for (unsigned x = 0; x < tile->width; x++) {
                const struct colour expected = filters[i].reference(picture, tile, (int)x, (int)y);
                const png_byte *got =
                    result->pixels + ((size_t)(y + i / 2 * tile->height) * result->width + x + i % 2 * tile->width) * CHANNELS;
                bool wrong = false;

                for (int c = 0; c < 3; c++)
                    wrong |= fabs(got[c] - fmin(expected.v[c], 1) * 255) > TOLERANCE;
                errors += wrong;
            }
    return errors;
}

int main(int argc, char **argv)
{
    const struct picture picture = read_png(PHOTO);
    struct example example;
    char work[64];

    example_begin(&example, argc, argv, "image_filters", 360);
    struct tile tile = {(unsigned)example.size, (unsigned)example.size * picture.height / picture.width};
    const struct picture result = {2 * tile.width, 2 * tile.height, malloc((size_t)4 * tile.width * tile.height * CHANNELS)};
    const CUarray source = make_array(picture.width, picture.height, 0);
    const CUarray tiles = make_array(result.width, result.height, CUDA_ARRAY3D_SURFACE_LDST);
    const CUtexObject texture = make_texture(source);
    const CUsurfObject surface = make_surface(tiles);

    upload(source, &picture);
    const double ms = run(&example, texture, surface, &tile);

    download(&result, tiles);
    snprintf(work, sizeof work, "4 tiles of %u x %u", tile.width, tile.height);
    example_report(&example, work, ms, 110.0 * tile.width * tile.height / 1e6, "Mfetch/s", compare(&picture, &result, &tile));
    if (example.output && !write_png(example.output, &result))
        example.failed = true;
    CHECK(cuSurfObjectDestroy(surface));
    CHECK(cuTexObjectDestroy(texture));
    CHECK(cuArrayDestroy(tiles));
    CHECK(cuArrayDestroy(source));
    free(result.pixels);
    free(picture.pixels);
    return example_end(&example);
}
