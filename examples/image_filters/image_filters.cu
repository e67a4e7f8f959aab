/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of a picture: each reads it through a texture, with coordinates from 0 to 1, and writes a tile of a surface. The instructions are
 * written as PTX, since clang has no functions for textures without NVIDIA's SDK. */
#include "device.h"

struct colour {
    float r, g, b, a;
};

static __device__ __forceinline__ struct colour fetch(unsigned long long picture, float x, float y)
{
    struct colour c;

    asm("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=f"(c.r), "=f"(c.g), "=f"(c.b), "=f"(c.a) : "l"(picture), "f"(x), "f"(y));
    return c;
}

static __device__ __forceinline__ unsigned byte_of(float value)
{
    return (unsigned)(fminf(fmaxf(value, 0.0f), 1.0f) * 255.0f + 0.5f);
}

/* Surfaces count x in bytes. */
static __device__ __forceinline__ void store(unsigned long long tile, unsigned x, unsigned y, float r, float g, float b)
{
    const unsigned pixel = byte_of(r) | byte_of(g) << 8 | byte_of(b) << 16 | 0xff000000u;

    asm volatile("sust.b.2d.b32.trap [%0, {%1, %2}], %3;" ::"l"(tile), "r"(4 * x), "r"(y), "r"(pixel) : "memory");
}

#define PIXEL const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y
#define U(pixels) (((float)x + 0.5f + (float)(pixels)) / (float)width)
#define V(pixels) (((float)y + 0.5f + (float)(pixels)) / (float)height)

/* Rotates about the middle; beyond the picture is the texture's border. */
extern "C" __global__ void rotate(unsigned long long picture, unsigned long long tile, unsigned left, unsigned top, unsigned width,
                                  unsigned height, float cosine, float sine)
{
    PIXEL;
    const float aspect = (float)width / (float)height, u = (U(0) - 0.5f) * aspect, v = V(0) - 0.5f;

    if (x >= width || y >= height)
        return;
    const struct colour c = fetch(picture, (u * cosine - v * sine) / aspect + 0.5f, u * sine + v * cosine + 0.5f);

    store(tile, left + x, top + y, c.r, c.g, c.b);
}

/* The mean of a square, weighted by distance from its sides; with `edges` above 0 also by likeness to the middle, which keeps edges. */
extern "C" __global__ void smooth(unsigned long long picture, unsigned long long tile, unsigned left, unsigned top, unsigned width,
                                  unsigned height, float edges)
{
    const int radius = 3;

    PIXEL;
    if (x >= width || y >= height)
        return;
    const struct colour middle = fetch(picture, U(0), V(0));
    float r = 0.0f, g = 0.0f, b = 0.0f, total = 0.0f;

#pragma unroll 1
    for (int i = 0; i < (2 * radius + 1) * (2 * radius + 1); i++) {
        const int dx = i % (2 * radius + 1) - radius, dy = i / (2 * radius + 1) - radius;
        const struct colour c = fetch(picture, U(dx), V(dy));
        const float dr = c.r - middle.r, dg = c.g - middle.g, db = c.b - middle.b;
        const float near = (float)((radius + 1 - (dx < 0 ? -dx : dx)) * (radius + 1 - (dy < 0 ? -dy : dy)));
        const float weight = near / (1.0f + edges * (dr * dr + dg * dg + db * db));

        r += weight * c.r;
        g += weight * c.g;
        b += weight * c.b;
        total += weight;
    }
    store(tile, left + x, top + y, r / total, g / total, b / total);
}

/* Sobel's operator on the brightness. */
extern "C" __global__ void sobel(unsigned long long picture, unsigned long long tile, unsigned left, unsigned top, unsigned width,
                                 unsigned height)
{
    PIXEL;
    if (x >= width || y >= height)
        return;
    float across = 0.0f, down = 0.0f;

#pragma unroll 1
    for (int i = 0; i < 9; i++) {
        const int dx = i % 3 - 1, dy = i / 3 - 1;
        const struct colour c = fetch(picture, U(dx), V(dy));
        const float light = 0.3f * c.r + 0.6f * c.g + 0.1f * c.b;

        across += light * (float)(dx * (2 - dy * dy));
        down += light * (float)(dy * (2 - dx * dx));
    }
    const float strength = (across < 0.0f ? -across : across) + (down < 0.0f ? -down : down);

    store(tile, left + x, top + y, strength, strength, strength);
}
