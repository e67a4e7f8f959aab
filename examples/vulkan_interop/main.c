/* SPDX-License-Identifier: Apache-2.0 */
/* Waves on a pond: CUDA kernels move the water in a buffer that Vulkan allocated, and Vulkan draws it off screen (--output FILE: as a PNG).
 * Nothing is copied between them. CUDA's last step signals a timeline semaphore for which Vulkan waits; if the device cannot share one, the
 * host waits between them. Every pixel is compared with the result of a CPU computation. */
#include "example.h"
#include "renderer.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 240u
#define SPEED 0.24f
#define KEEP 0.998f
#define DROPS 3

static const struct drop {
    float x, y, depth; /* x, y: in units of the pond's size */
    unsigned radius;
} drops[DROPS] = {{0.3f, 0.35f, 0.0022f, 24}, {0.7f, 0.6f, 0.003f, 20}, {0.42f, 0.78f, 0.004f, 16}};

struct pond {
    struct example *example;
    unsigned size;
    CUexternalMemory memory;
    CUdeviceptr planes[2];
    CUexternalSemaphore timeline; /* NULL: the host waits */
};

/* ---- CUDA ---- */

static void share_heights(struct pond *pond, struct renderer *renderer)
{
    const size_t bytes = (size_t)pond->size * pond->size * sizeof(float);
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = 2 * bytes};
    uint64_t memory_bytes;

    handle.handle.fd = renderer_export_heights(renderer, &memory_bytes);
    handle.size = memory_bytes;
    CHECK(cuImportExternalMemory(&pond->memory, &handle));
    CHECK(cuExternalMemoryGetMappedBuffer(&pond->planes[0], pond->memory, &buffer));
    pond->planes[1] = pond->planes[0] + bytes;
}

static void share_timeline(struct pond *pond, struct renderer *renderer)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC handle = {.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD};

    handle.handle.fd = renderer_export_timeline(renderer);
    if (handle.handle.fd >= 0)
        CHECK(cuImportExternalSemaphore(&pond->timeline, &handle));
}

static void launch(struct pond *pond, CUfunction function, void **params)
{
    const unsigned blocks = (pond->size + 15) / 16;

    CHECK(cuLaunchKernel(function, blocks, blocks, 1, 16, 16, 1, 0, NULL, params, NULL));
}

/* The plane that contains the last state. */
static unsigned simulate(struct pond *pond)
{
    CUfunction drop = example_function(pond->example, "drop"), step = example_function(pond->example, "step");
    float speed = SPEED, keep = KEEP;
    unsigned now = 0;

    CHECK(cuMemsetD32(pond->planes[0], 0, 2 * (size_t)pond->size * pond->size));
    for (int i = 0; i < DROPS; i++) {
        for (int plane = 0; plane < 2; plane++) {
            unsigned x = (unsigned)(drops[i].x * (float)pond->size), y = (unsigned)(drops[i].y * (float)pond->size),
                     radius = drops[i].radius;
            float depth = drops[i].depth;

            launch(pond, drop, (void *[]){&pond->planes[plane], &pond->size, &x, &y, &radius, &depth});
        }
    }
    for (unsigned i = 0; i < STEPS; i++, now ^= 1)
        launch(pond, step, (void *[]){&pond->planes[now], &pond->planes[now ^ 1], &pond->size, &speed, &keep});
    return now;
}

/* Signals Vulkan; returns the timeline value that it has to wait for, or 0 if it need not wait. */
static uint64_t hand_over(struct pond *pond)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal = {.params.fence.value = 1};

    if (!pond->timeline) {
        CHECK(cuStreamSynchronize(NULL));
        return 0;
    }
    CHECK(cuSignalExternalSemaphoresAsync(&pond->timeline, &signal, 1, NULL));
    return signal.params.fence.value;
}

/* ---- the reference ---- */

static void reference_drop(float *heights, unsigned size, const struct drop *drop)
{
    const int x = (int)(drop->x * (float)size), y = (int)(drop->y * (float)size), radius = (int)drop->radius;

    for (int row = y - radius; row <= y + radius; row++)
        for (int column = x - radius; column <= x + radius; column++) {
            const int left = radius * radius - (column - x) * (column - x) - (row - y) * (row - y);

            if (left > 0 && row >= 0 && column >= 0 && row < (int)size && column < (int)size)
                heights[row * (int)size + column] -= drop->depth * (float)left;
        }
}

static void reference_step(const float *now, float *previous, unsigned size)
{
    for (unsigned row = 1; row + 1 < size; row++)
        for (unsigned at = row * size + 1; at < row * size + size - 1; at++) {
            const float around = (now[at - 1] + now[at + 1]) + (now[at - size] + now[at + size]);
            const float pull = SPEED * (around - 4.0f * now[at]);

            previous[at] = KEEP * (((now[at] + now[at]) - previous[at]) + pull);
        }
}

/* Returns the last state, which the caller frees. */
static float *reference(unsigned size)
{
    float *planes[2] = {calloc((size_t)size * size, sizeof(float)), calloc((size_t)size * size, sizeof(float))};
    unsigned now = 0;

    for (int i = 0; i < 2 * DROPS; i++)
        reference_drop(planes[i % 2], size, &drops[i / 2]);
    for (unsigned i = 0; i < STEPS; i++, now ^= 1)
        reference_step(planes[now], planes[now ^ 1], size);
    free(planes[now ^ 1]);
    return planes[now];
}

/* Computes the fragment shader's result for a height and its neighbours. */
static void colour(float h, float right, float below, float *rgb)
{
    const float s = fminf(1, fmaxf(0, 0.45f + 6 * ((right - h) + (below - h))));

    rgb[0] = 0.05f + 0.75f * s * s;
    rgb[1] = 0.15f + 0.75f * s;
    rgb[2] = 0.35f + 0.6f * s;
}

/* Returns the number of pixels that differ by more than two of 255 levels. */
static size_t count_wrong(const uint8_t *pixels, const float *heights, unsigned size)
{
    size_t wrong = 0;

    for (unsigned row = 0; row < size; row++)
        for (unsigned column = 0; column < size; column++) {
            const size_t at = (size_t)row * size + column;
            float rgb[3];
            bool differs = false;

            colour(heights[at], heights[at + (column + 1 < size)], heights[at + (row + 1 < size ? size : 0)], rgb);
            for (int i = 0; i < 3; i++)
                differs |= fabsf((float)pixels[4 * at + i] - 255 * rgb[i]) > 2;
            wrong += differs;
        }
    return wrong;
}

/* A pond with this number of colours is not empty. */
static bool is_a_picture(const uint8_t *pixels, unsigned size)
{
    bool seen[256] = {false};
    unsigned shades = 0;

    for (size_t i = 0; i < (size_t)size * size; i++)
        seen[pixels[4 * i + 1]] = true;
    for (int i = 0; i < 256; i++)
        shades += seen[i];
    return shades > 60;
}

static bool write_png(const char *path, const uint8_t *pixels, unsigned size)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = size, .height = size, .format = PNG_FORMAT_RGBA};

    if (png_image_write_to_file(&image, path, 0, pixels, 0, NULL))
        return true;
    fprintf(stderr, "%s: %s\n", path, image.message);
    return false;
}

int main(int argc, char **argv)
{
    struct example example;
    char work[64];
    CUuuid uuid;

    example_begin(&example, argc, argv, "vulkan_interop", 400);
    CHECK(cuDeviceGetUuid(&uuid, example.device));
    struct pond pond = {.example = &example, .size = (unsigned)example.size};
    struct renderer *renderer = renderer_open((const uint8_t *)uuid.bytes, pond.size);
    share_heights(&pond, renderer);
    share_timeline(&pond, renderer);

    const unsigned plane = simulate(&pond);
    const uint8_t *pixels = renderer_draw(renderer, plane, hand_over(&pond));
    float *expected = reference(pond.size);
    const size_t errors = count_wrong(pixels, expected, pond.size) + !is_a_picture(pixels, pond.size);

    snprintf(work, sizeof work, "%u x %u, %u steps, %s", pond.size, pond.size, STEPS, pond.timeline ? "by a timeline" : "by the host");
    example_report(&example, work, 0, 0, "", errors);
    if (example.output && !write_png(example.output, pixels, pond.size))
        example.failed = true;
    if (pond.timeline)
        CHECK(cuDestroyExternalSemaphore(pond.timeline));
    CHECK(cuMemFree(pond.planes[0]));
    CHECK(cuDestroyExternalMemory(pond.memory));
    renderer_close(renderer);
    free(expected);
    return example_end(&example);
}
