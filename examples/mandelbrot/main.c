/* SPDX-License-Identifier: Apache-2.0 */
/* The Mandelbrot set as a PNG (--output FILE). Every pixel's count is compared with the CPU's. */
#include "example.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 1000u

struct view {
    unsigned width, height;
    float left, top, step;
};

static unsigned reference(const struct view *view, unsigned column, unsigned row)
{
    const float cx = fmaf((float)column, view->step, view->left), cy = fmaf(-(float)row, view->step, view->top);
    float x = 0.0f, y = 0.0f;
    unsigned i = 0;

    while (i < LIMIT) {
        const float xx = x * x, yy = y * y;

        if (xx + yy > 4.0f)
            break;
        y = fmaf(x + x, y, cy);
        x = (xx - yy) + cx;
        i++;
    }
    return i;
}

/* Blue to gold by the logarithm of the count, the set itself black. */
static void colour(unsigned count, png_byte *rgb)
{
    const double t = count >= LIMIT ? -1.0 : log1p((double)count) / log1p((double)LIMIT);

    if (t < 0) {
        memset(rgb, 0, 3);
        return;
    }
    rgb[0] = (png_byte)(255.0 * fmin(1.0, 1.8 * t * t + 0.02));
    rgb[1] = (png_byte)(255.0 * fmin(1.0, 1.3 * t * t + 0.25 * t));
    rgb[2] = (png_byte)(255.0 * fmin(1.0, 0.25 + 1.6 * t * (1.0 - t)));
}

static bool write_png(const char *path, const unsigned short *counts, const struct view *view)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = view->width, .height = view->height, .format = PNG_FORMAT_RGB};
    png_byte *pixels = malloc((size_t)3 * view->width * view->height);
    bool written;

    for (size_t i = 0; i < (size_t)view->width * view->height; i++)
        colour(counts[i], pixels + 3 * i);
    written = png_image_write_to_file(&image, path, 0, pixels, 0, NULL);
    if (!written)
        fprintf(stderr, "%s: %s\n", path, image.message);
    free(pixels);
    return written;
}

int main(int argc, char **argv)
{
    struct example example;
    size_t errors = 0, iterations = 0;
    char work[64];

    example_begin(&example, argc, argv, "mandelbrot", 960);
    struct view view = {.width = (unsigned)example.size, .height = (unsigned)example.size * 2 / 3, .left = -2.2f, .top = 1.0f};
    view.step = 2.0f / (float)view.height;
    const size_t pixels = (size_t)view.width * view.height;
    unsigned short *counts = malloc(pixels * sizeof *counts);
    CUdeviceptr device_counts = example_upload(NULL, pixels * sizeof *counts);
    unsigned limit = LIMIT;
    void *params[] = {&device_counts, &view.width, &view.height, &view.left, &view.top, &view.step, &limit};
    const double ms = example_launch(&example, example_function(&example, "mandelbrot"),
                                     (struct example_grid){(view.width + 15) / 16, (view.height + 15) / 16, 16, 16}, params);

    example_download(counts, device_counts, pixels * sizeof *counts);
    for (unsigned row = 0; row < view.height; row++)
        for (unsigned column = 0; column < view.width; column++) {
            const unsigned count = counts[row * view.width + column];

            errors += count != reference(&view, column, row);
            iterations += count;
        }
    snprintf(work, sizeof work, "%u x %u, limit %u", view.width, view.height, LIMIT);
    example_report(&example, work, ms, (double)iterations / 1e9, "Giter/s", errors);
    if (example.output && !write_png(example.output, counts, &view))
        example.failed = true;
    CHECK(cuMemFree(device_counts));
    free(counts);
    return example_end(&example);
}
