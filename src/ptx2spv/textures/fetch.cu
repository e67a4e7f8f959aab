/* SPDX-License-Identifier: Apache-2.0 */
/* Texture fetches and accesses to surfaces in generated code (CUDA C++ Programming Guide, "Texture Fetching"; PTX ISA, "Texture
 * Instructions", "Surface Instructions"). build_texture.c calls these functions; the records that they read are those of struct
 * ptx2spv_texture. fetch_text.h, their PTX, is made of this file by ci/texture_functions.
 *
 * A fetch of a level is a sum over the corners of a cell: one corner for point sampling, 2, 4 or 8 for linear filtering. The weights have
 * 8 bits after the point, as in NVIDIA's texture units. There is one loop over the corners, so that the code that unpacks texels exists
 * once for each fetch of a kernel. */
#include "cuttle/ptx2spv.h"

#include "device.cuh"

extern "C" __device__ __attribute__((weak)) u64 __cuttle_textures = 0;

struct words {
    u32 v[4];
};

/* ---- memory ---- */

/* Records do not change while a kernel that uses them runs. */
INLINE u32 read32(u64 address)
{
    u32 value;

    asm("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}

INLINE u64 read64(u64 address)
{
    u64 value;

    asm("ld.global.nc.u64 %0, [%1];" : "=l"(value) : "l"(address));
    return value;
}

#define MEMBER32(record, member) read32((record) + offsetof(struct ptx2spv_texture, member))
#define LEVEL32(level, member) read32((level) + offsetof(struct ptx2spv_texture_level, member))
#define LEVEL64(level, member) read64((level) + offsetof(struct ptx2spv_texture_level, member))

/* 0 until the host has stored it. */
INLINE u64 directory()
{
    u64 address;

    asm("ld.global.nc.u64 %0, [__cuttle_textures];" : "=l"(address));
    return address;
}

/* Where the record of a handle would be; 0 if no handle is like this one. */
INLINE u64 record_of(u64 handle)
{
    const u32 number = (u32)handle - 1;
    const u64 chunks = directory();
    u64 chunk;

    if (!chunks || !(handle >> 32) || number >= PTX2SPV_TEXTURE_CHUNKS * PTX2SPV_TEXTURE_CHUNK_RECORDS)
        return 0;
    chunk = read64(chunks + 8 * (number / PTX2SPV_TEXTURE_CHUNK_RECORDS));
    return chunk ? chunk + (u64)sizeof(struct ptx2spv_texture) * (number % PTX2SPV_TEXTURE_CHUNK_RECORDS) : 0;
}

/* The record of a handle; 0 if there is no such object. */
INLINE u64 find(u64 handle)
{
    const u64 record = record_of(handle);

    return record && MEMBER32(record, generation) == (u32)(handle >> 32) ? record : 0;
}

INLINE u64 level_of(u64 record, u32 level)
{
    return record + offsetof(struct ptx2spv_texture, levels) + (u64)sizeof(struct ptx2spv_texture_level) * level;
}

/* ---- texels ---- */

INLINE u32 load_word(u64 at)
{
    u32 word;

    asm volatile("ld.global.u32 %0, [%1];" : "=r"(word) : "l"(at));
    return word;
}

/* A texel in whole words. A small one is shifted down from the word that contains it; allocations consist of whole words. */
INLINE struct words load(u64 at, u32 bytes)
{
    const u32 shift = 8 * ((u32)at & 3);
    struct words w = {{load_word(at & ~3ull) >> shift, 0, 0, 0}};

    w.v[0] &= bytes < 4 ? (1u << 8 * bytes) - 1 : 0xffffffff; /* channels that do not exist are 0 */
    if (bytes >= 8)
        w.v[1] = load_word(at + 4);
    if (bytes == 16) {
        w.v[2] = load_word(at + 8);
        w.v[3] = load_word(at + 12);
    }
    return w;
}

INLINE u32 channel_bits(u32 texel)
{
    return texel == PTX2SPV_TEXEL_U8 || texel == PTX2SPV_TEXEL_S8                                     ? 8
           : texel == PTX2SPV_TEXEL_U16 || texel == PTX2SPV_TEXEL_S16 || texel == PTX2SPV_TEXEL_F16 ? 16
                                                                                                    : 32;
}

/* The channels of a texel, each as 32 bits. */
INLINE struct words unpack(struct words raw, u32 texel)
{
    const u32 bits = channel_bits(texel), unused = 32 - bits;
    const bool is_signed = texel == PTX2SPV_TEXEL_S8 || texel == PTX2SPV_TEXEL_S16;
    struct words out;

#pragma unroll
    for (u32 c = 0; c < 4; c++) {
        const u32 word = bits == 32 ? raw.v[c] : bits == 16 ? raw.v[c / 2] : raw.v[0];
        const u32 top = word << (unused - (bits == 32 ? 0 : bits == 16 ? 16 * (c & 1) : 8 * c));

        out.v[c] = is_signed ? (u32)((int)top >> unused) : top >> unused;
    }
    if (texel == PTX2SPV_TEXEL_F16)
#pragma unroll
        for (u32 c = 0; c < 4; c++)
            out.v[c] = float_of_half(out.v[c]);
    if (texel == PTX2SPV_TEXEL_U10) /* thirds are multiples of 1/1023 */
        out = {{raw.v[0] & 1023, raw.v[0] >> 10 & 1023, raw.v[0] >> 20 & 1023, (raw.v[0] >> 30) * 341}};
    return out;
}

/* The integer that stands for 1.0; 0 for floats. */
INLINE float one_of(u32 texel)
{
    return texel == PTX2SPV_TEXEL_U8    ? 255.0f
           : texel == PTX2SPV_TEXEL_S8  ? 127.0f
           : texel == PTX2SPV_TEXEL_U16 ? 65535.0f
           : texel == PTX2SPV_TEXEL_S16 ? 32767.0f
           : texel == PTX2SPV_TEXEL_U10 ? 1023.0f
                                        : 0.0f;
}

INLINE float reciprocal_of(float one)
{
    return one == 255.0f     ? 1.0f / 255.0f
           : one == 127.0f   ? 1.0f / 127.0f
           : one == 65535.0f ? 1.0f / 65535.0f
           : one == 1023.0f  ? 1.0f / 1023.0f
                             : 1.0f / 32767.0f;
}

/* ---- coordinates ---- */

struct axis {
    int low, high; /* the texels beside the coordinate; negative: the border */
    u32 weight;    /* of `high`, in units of 1/256 */
};

INLINE float floor_of(float x)
{
    return __builtin_floorf(x);
}

#define ADDRESS_BEYOND 4 /* an address mode for cubes: indices beyond the edges remain */

INLINE int index_of(int i, u32 size, u32 mode)
{
    if (mode == ADDRESS_BEYOND)
        return i;
    const int wrapped = i < 0 ? i + (int)size : i - (int)size, clamped = i < 0 ? 0 : (int)size - 1;
    const int outside = mode == PTX2SPV_TEXTURE_BORDER ? -1 : mode == PTX2SPV_TEXTURE_WRAP ? wrapped : clamped;

    return (u32)i < size ? i : outside;
}

/* A coordinate between 0 and 1, folded by the mode and scaled. */
INLINE float scale(float x, u32 size, u32 mode)
{
    const float half = x * 0.5f, wrapped = x - floor_of(x), sawtooth = 2.0f * (half - floor_of(half));
    const float mirrored = sawtooth > 1.0f ? 2.0f - sawtooth : sawtooth;

    return (mode == PTX2SPV_TEXTURE_WRAP ? wrapped : mode == PTX2SPV_TEXTURE_MIRROR ? mirrored : x) * (float)size;
}

INLINE float reciprocal(float x)
{
    float y;

    asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Linear filtering rounds the position to 1/256 of a texel. The offset counts texels, and precedes the address mode. */
INLINE struct axis place(float x, int offset, u32 size, u32 mode, bool is_scaled, bool linear)
{
    struct axis axis;
    int position;

    x = offset && !is_scaled ? x + (float)offset * reciprocal((float)size) : x; /* constants, in most kernels 0 */
    x = is_scaled ? x : scale(x, size, mode);
    x = x == x ? x : 0.0f; /* not a number is 0, as on NVIDIA's GPUs; so is an infinite coordinate that is folded */
    x = __builtin_fminf(__builtin_fmaxf(x, -10.0f), (float)size + 10.0f); /* conversions to integers must not overflow */
    position = linear ? (int)floor_of(x * 256.0f - 127.5f) : (int)floor_of(x) * 256;
    position += is_scaled ? 256 * offset : 0; /* the sum of floats would be rounded */
    axis.weight = (u32)position & 255;
    axis.low = index_of(position >> 8, size, mode);
    axis.high = index_of((position >> 8) + 1, size, mode);
    return axis;
}

struct coordinates {
    float x, y, z;
    u32 slice; /* layer; cubes: the number of the cube */
    int dx, dy, dz; /* offsets in texels, from -8 to 7 */
};

enum geometry { LINE, LINES /* layers of them */, PLANE, VOLUME, CUBE };

INLINE u32 clamp_slice(u32 slice, u32 n)
{
    return slice < n ? slice : n - 1;
}

/* ---- cubes ---- */

/* The face of a cube that a direction points to, and the coordinates there (Programming Guide, "Cubemap Textures"). */
INLINE u32 find_face(struct coordinates *at)
{
    const float x = at->x == at->x ? at->x : 0.0f, y = at->y == at->y ? at->y : 0.0f, z = at->z == at->z ? at->z : 0.0f;
    const float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
    const u32 axis = az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0; /* on an edge, as NVIDIA's GPUs choose */
    const float major = axis == 0 ? x : axis == 1 ? y : z;
    const bool negative = major < 0.0f;
    const float s = axis == 0 ? (negative ? z : -z) : axis == 1 ? x : (negative ? -x : x);
    const float t = axis == 1 ? (negative ? -z : z) : -y;
    const float unit = reciprocal(__builtin_fabsf(major));

    at->x = (s * unit + 1.0f) * 0.5f;
    at->y = (t * unit + 1.0f) * 0.5f;
    return 2 * axis + negative;
}

/* The texel beyond an edge of a face, in the face that it belongs to: the texel next to the edge in the same row or column. */
INLINE void cross_edge(int *x, int *y, int *slice, u32 side)
{
    const u32 face = (u32)*slice % 6;
    const float unit = reciprocal((float)side), beyond = 1.0001f;
    const float inner_s = (float)(2 * *x + 1) * unit - 1.0f, inner_t = (float)(2 * *y + 1) * unit - 1.0f;
    const float s = *x < 0 ? -beyond : (u32)*x >= side ? beyond : inner_s, t = *y < 0 ? -beyond : (u32)*y >= side ? beyond : inner_t;
    const float sign = face & 1 ? -1.0f : 1.0f;
    struct coordinates at = {face < 2 ? sign : face < 4 ? s : sign * s, face < 2 || face > 3 ? -t : sign, face < 2 ? -sign * s : face < 4 ? sign * t : sign};

    *slice += (int)(find_face(&at) - face);
    *x = (int)clamp_slice((u32)floor_of(at.x * (float)side), side);
    *y = (int)clamp_slice((u32)floor_of(at.y * (float)side), side);
}

/* ---- one level ---- */

struct cell {
    struct axis x, y, z;
    u32 dimensions; /* that the cell extends in: a constant */
    u32 cube_side;  /* of a cube whose edges the cell may cross, the side of a face; else 0 */
};

INLINE struct axis whole(u32 index)
{
    return {(int)index, (int)index, 0};
}

INLINE struct words border_of(u64 record)
{
    struct words border;

#pragma unroll
    for (u32 c = 0; c < 4; c++)
        border.v[c] = read32(record + offsetof(struct ptx2spv_texture, border) + 4 * c);
    return border;
}

INLINE struct words fetch_texel(u64 record, u64 level, int x, int y, int z, u32 texel)
{
    if ((x | y | z) < 0)
        return border_of(record);
    const u32 bytes = MEMBER32(record, texel_bytes);
    const u64 at = LEVEL64(level, texels) + (u64)z * LEVEL64(level, slice_bytes) + (u64)y * LEVEL64(level, row_bytes) + (u64)x * bytes;

    return unpack(load(at, bytes), texel);
}

/* Integers as floats for filtering, where the last bit does not matter. The least integer is below -1 here; the result is not. */
INLINE struct words convert(struct words w, float one)
{
#pragma unroll
    for (u32 c = 0; c < 4; c++)
        w.v[c] = word_of((float)(int)w.v[c] * reciprocal_of(one));
    return w;
}

/* A texel of 8-bit sRGB colours, whose fourth channel is linear. */
INLINE struct words decode(struct words w)
{
    const u64 linear = directory() + PTX2SPV_SRGB_OFFSET;

#pragma unroll
    for (u32 c = 0; c < 4; c++)
        w.v[c] = c == 3 ? fraction(w.v[c], 8) : read32(linear + 4 * w.v[c]);
    return w;
}

INLINE u32 weight_of(struct axis axis, u32 high)
{
    return high ? axis.weight : 256 - axis.weight;
}

INLINE u32 normalize_word(u32 word, u32 texel)
{
    const bool is_negative = (int)word < 0;
    const u32 bits = texel == PTX2SPV_TEXEL_U8    ? 8
                     : texel == PTX2SPV_TEXEL_S8  ? 7
                     : texel == PTX2SPV_TEXEL_U16 ? 16
                     : texel == PTX2SPV_TEXEL_U10 ? 10
                                                  : 15;
    const u32 most = (1u << bits) - 1, magnitude = is_negative ? 0 - word : word;

    if (!word)
        return 0;
    return fraction(magnitude < most ? magnitude : most, bits) | (is_negative ? 0x80000000 : 0);
}

/* Integers as floats: a loop keeps the code small. */
INLINE struct words normalize(struct words w, u32 texel)
{
#pragma clang loop unroll(disable)
    for (u32 c = 0; c < 4; c++) {
        const u32 value = normalize_word(c == 0 ? w.v[0] : c == 1 ? w.v[1] : c == 2 ? w.v[2] : w.v[3], texel);

        w.v[0] = c == 0 ? value : w.v[0];
        w.v[1] = c == 1 ? value : w.v[1];
        w.v[2] = c == 2 ? value : w.v[2];
        w.v[3] = c == 3 ? value : w.v[3];
    }
    return w;
}

INLINE bool is_beyond(int i, u32 side)
{
    return (u32)i >= side;
}

/* At the corner of a cube one corner of the cell has no texel; the other three share its weight equally (measured on an H100). */
INLINE float shared_weight(struct cell cell)
{
    const bool x_low = is_beyond(cell.x.low, cell.cube_side), y_low = is_beyond(cell.y.low, cell.cube_side);
    const bool x = x_low || is_beyond(cell.x.high, cell.cube_side), y = y_low || is_beyond(cell.y.high, cell.cube_side);

    return x && y ? (float)(weight_of(cell.x, !x_low) * weight_of(cell.y, !y_low)) * (1.0f / 3.0f) : 0.0f;
}

/* The weight of a corner of a cell in units of 1/256, rounded as NVIDIA's GPUs do it (asked of an H200): the part of a weight that an axis gives to
 * its higher texel is rounded, the lower one gets the rest. */
INLINE u32 rounded_weight(struct cell cell, u32 corner)
{
    u32 weight = weight_of(cell.x, corner & 1);

    if (cell.dimensions > 1) {
        const u32 high = (cell.x.weight * cell.y.weight + 128) >> 8; /* the part of the corner that is the higher one on both axes */
        const u32 of_x = corner & 1 ? high : cell.y.weight - high;

        weight = corner & 2 ? of_x : weight - of_x;
    }
    if (cell.dimensions > 2) {
        const u32 high = (weight * cell.z.weight + 128) >> 8;

        weight = corner & 4 ? high : weight - high;
    }
    return weight;
}

/* Linear filtering of integers that are not read as fractions, of which the manuals are silent. NVIDIA's GPUs round those of up to 16 bits to the
 * nearest integer, upwards in the middle, and those of 32 bits downwards (asked of an H200). The sums of both halves fit 32 bits. */
struct halves {
    u32 high[4], low[4];
};

INLINE void add_integers(struct halves *sum, u32 weight, struct words texels, u32 texel)
{
#pragma unroll
    for (u32 c = 0; c < 4; c++) {
        sum->high[c] += weight * (texel == PTX2SPV_TEXEL_U32 ? texels.v[c] >> 16 : (u32)((int)texels.v[c] >> 16));
        sum->low[c] += weight * (texels.v[c] & 0xFFFF);
    }
}

INLINE struct words sum_of_integers(const struct halves *sum, u32 texel)
{
    const u32 half = channel_bits(texel) == 32 ? 0 : 128;
    struct words out;

#pragma unroll
    for (u32 c = 0; c < 4; c++)
        out.v[c] = (sum->high[c] << 8) + ((sum->low[c] + half) >> 8);
    return out;
}

INLINE bool filters_integers(u64 record)
{
    return (MEMBER32(record, flags) & (PTX2SPV_TEXTURE_LINEAR | PTX2SPV_TEXTURE_NORMALIZED_VALUES)) == PTX2SPV_TEXTURE_LINEAR &&
           MEMBER32(record, texel) <= PTX2SPV_TEXEL_S32;
}

/* A fetch from a cell. The result has floats, or integers. */
INLINE struct words sample(u64 record, u64 level, struct cell cell)
{
    const u32 flags = MEMBER32(record, flags), texel = MEMBER32(record, texel);
    const bool linear = flags & PTX2SPV_TEXTURE_LINEAR, is_srgb = flags & PTX2SPV_TEXTURE_SRGB;
    const float one = flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES ? one_of(texel) : 0.0f;
    const u32 corners = linear ? 1u << cell.dimensions : 1;
    const float share = cell.cube_side ? shared_weight(cell) : 0.0f;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f}, unit;
    const bool is_whole = filters_integers(record);
    struct halves integers = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    struct words out;

#pragma clang loop unroll(disable)
    for (u32 k = 0; k < corners; k++) {
        int x = k & 1 ? cell.x.high : cell.x.low, y = k & 2 ? cell.y.high : cell.y.low, z = k & 4 ? cell.z.high : cell.z.low;
        u32 weight = weight_of(cell.x, k & 1);

        weight *= cell.dimensions > 1 ? weight_of(cell.y, k & 2) : 1;
        weight *= cell.dimensions > 2 ? weight_of(cell.z, k & 4) : 1;
        if (cell.cube_side) {
            const bool beyond_x = is_beyond(x, cell.cube_side), beyond_y = is_beyond(y, cell.cube_side);

            if (beyond_x && beyond_y)
                continue;
            if (beyond_x || beyond_y)
                cross_edge(&x, &y, &z, cell.cube_side);
        }
        out = fetch_texel(record, level, x, y, z, texel);
        if (one != 0.0f && (x | y | z) >= 0)
            out = is_srgb ? decode(out) : linear ? convert(out, one) : normalize(out, texel);
        if (!linear)
            return out;
        if (is_whole) {
            add_integers(&integers, rounded_weight(cell, k), out, texel);
            continue;
        }
        if (!weight && share == 0.0f)
            continue;
#pragma unroll
        for (u32 c = 0; c < 4; c++)
            sum[c] += ((float)weight + share) * bits_of(out.v[c]);
    }
    if (is_whole)
        return sum_of_integers(&integers, texel);
    unit = cell.dimensions == 1 ? 256.0f : cell.dimensions == 2 ? 65536.0f : 16777216.0f;
#pragma unroll
    for (u32 c = 0; c < 4; c++) {
        const float value = sum[c] * (1.0f / unit);

        out.v[c] = word_of(one == 0.0f ? value : __builtin_fmaxf(value, -1.0f));
    }
    return out;
}

/* ---- geometries ---- */

INLINE struct words blend(struct words a, struct words b, u32 weight)
{
#pragma unroll
    for (u32 c = 0; c < 4; c++)
        a.v[c] = word_of((bits_of(a.v[c]) * (float)(256 - weight) + bits_of(b.v[c]) * (float)weight) * (1.0f / 256.0f));
    return a;
}

INLINE struct words blend_with_border(u64 record, struct words texels)
{
    const u32 texel = MEMBER32(record, texel);
    struct halves sum = {{0, 0, 0, 0}, {0, 0, 0, 0}};

    if (!filters_integers(record))
        return blend(texels, border_of(record), 128);
    add_integers(&sum, 128, texels, texel);
    add_integers(&sum, 128, border_of(record), texel);
    return sum_of_integers(&sum, texel);
}

/* One level. A line with a border is filtered like the row y = 0 of a plane, half of which is the border: so do NVIDIA's GPUs. */
INLINE struct words sample_level(u64 record, u32 number, enum geometry geometry, struct coordinates at, bool is_scaled)
{
    const u64 level = level_of(record, number);
    const bool linear = MEMBER32(record, flags) & PTX2SPV_TEXTURE_LINEAR;
    const u32 depth = LEVEL32(level, depth);
    struct words out;
    struct cell cell = {whole(0), whole(0), whole(0), geometry <= LINES ? 1u : geometry == VOLUME ? 3u : 2u, 0};
    const bool crosses = geometry == CUBE && linear && MEMBER32(record, flags) & PTX2SPV_TEXTURE_SEAMLESS;
    u32 modes[3];

    is_scaled = is_scaled || !(MEMBER32(record, flags) & PTX2SPV_TEXTURE_NORMALIZED_COORDINATES);
#pragma unroll
    for (u32 i = 0; i < 3; i++)
        modes[i] = crosses            ? ADDRESS_BEYOND
                   : geometry == CUBE ? PTX2SPV_TEXTURE_CLAMP
                                      : read32(record + offsetof(struct ptx2spv_texture, address) + 4 * i);
    if (geometry == CUBE) {
        const u32 cube = clamp_slice(at.slice, depth / 6);

        at.slice = find_face(&at) + 6 * cube;
        is_scaled = false;
        cell.cube_side = crosses ? LEVEL32(level, width) : 0;
    }
    cell.x = place(at.x, at.dx, LEVEL32(level, width), modes[0], is_scaled, linear);
    if (geometry > LINES)
        cell.y = place(at.y, at.dy, LEVEL32(level, height), modes[1], is_scaled, linear);
    cell.z = geometry == VOLUME ? place(at.z, at.dz, depth, modes[2], is_scaled, linear) : whole(clamp_slice(at.slice, depth));
    out = sample(record, level, cell);
    if (geometry == LINE && linear && modes[1] == PTX2SPV_TEXTURE_BORDER)
        out = blend_with_border(record, out);
    return out;
}

/* A level, and the next one if it has a weight. */
INLINE struct words sample_mixed(u64 record, enum geometry geometry, struct coordinates at, u32 first, u32 weight)
{
    struct words out = {{0, 0, 0, 0}};

#pragma clang loop unroll(disable)
    for (u32 i = 0; i <= (weight != 0); i++) {
        const struct words next = sample_level(record, first + i, geometry, at, false);

        out = i ? blend(out, next, weight) : next;
    }
    return out;
}

INLINE struct words sample_base(u64 handle, enum geometry geometry, struct coordinates at)
{
    const u64 record = find(handle);

    if (!record)
        return {{0, 0, 0, 0}};
    return sample_mixed(record, geometry, at, MEMBER32(record, base_level), MEMBER32(record, base_weight));
}

/* The level is biased and clamped; point sampling takes the nearest level. */
INLINE struct words sample_levels(u64 record, enum geometry geometry, struct coordinates at, float lod)
{
    const u32 last = MEMBER32(record, n_levels) - 1, flags = MEMBER32(record, flags);
    u32 first, weight = 0;

    lod += bits_of(MEMBER32(record, level_bias));
    lod = __builtin_fminf(__builtin_fmaxf(lod, bits_of(MEMBER32(record, min_level))), bits_of(MEMBER32(record, max_level)));
    lod = __builtin_fminf(__builtin_fmaxf(lod, 0.0f), (float)last);
    if (flags & PTX2SPV_TEXTURE_LINEAR_LEVELS) {
        first = (u32)lod;
        weight = (u32)((lod - (float)first) * 256.0f + 0.5f);
    } else {
        first = (u32)(lod + 0.5f);
    }
    return sample_mixed(record, geometry, at, first, weight);
}

INLINE struct words sample_lod(u64 handle, enum geometry geometry, struct coordinates at, float lod)
{
    const u64 record = find(handle);

    if (!record)
        return {{0, 0, 0, 0}};
    return sample_levels(record, geometry, at, lod);
}

/* ---- derivatives ---- */

/* Measured on an H200 (tests/textures/derivatives_test.c): a length is estimated by weights for its components in the order of their sizes, and the
 * footprint is the longest of the derivatives and of 11/16 of their sum and of their difference. */
INLINE float length_of(struct coordinates d)
{
    const float ax = __builtin_fabsf(d.x), ay = __builtin_fabsf(d.y), az = __builtin_fabsf(d.z);
    const float larger = __builtin_fmaxf(ax, ay), smaller = __builtin_fminf(ax, ay), rest = __builtin_fminf(larger, az);

    return __builtin_fmaxf(larger, az) + 0.34375f * __builtin_fmaxf(smaller, rest) + 0.25f * __builtin_fminf(smaller, rest);
}

INLINE float longest_diagonal(struct coordinates a, struct coordinates b)
{
    const struct coordinates sum = {a.x + b.x, a.y + b.y, a.z + b.z}, difference = {a.x - b.x, a.y - b.y, a.z - b.z};

    return 0.6875f * __builtin_fmaxf(length_of(sum), length_of(difference));
}

/* In texels of the first level. */
INLINE struct coordinates scaled_derivative(u64 record, enum geometry geometry, struct coordinates d)
{
    const u64 level = level_of(record, 0);

    if (geometry == CUBE || MEMBER32(record, flags) & PTX2SPV_TEXTURE_NORMALIZED_COORDINATES) {
        d.x *= (float)LEVEL32(level, width);
        d.y *= (float)LEVEL32(level, height);
        d.z *= (float)LEVEL32(level, depth);
    }
    return d;
}

INLINE u32 axis_of(struct coordinates to)
{
    const float ax = __builtin_fabsf(to.x), ay = __builtin_fabsf(to.y), az = __builtin_fabsf(to.z);

    return az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0; /* as find_face */
}

INLINE float along(struct coordinates to, u32 axis)
{
    return axis == 0 ? to.x : axis == 1 ? to.y : to.z;
}

/* Where a direction leads, as coordinates from -1 to 1 on the face of the direction `middle`, which continues onto its neighbours. Their signs and
 * order do not matter. */
INLINE struct coordinates unfold(struct coordinates middle, struct coordinates to)
{
    const u32 face = axis_of(middle), axis = axis_of(to), s_axis = face == 0 ? 1 : 0, t_axis = face == 2 ? 1 : 2;
    const float unit = reciprocal(__builtin_fabsf(along(to, axis))), towards = along(to, face) * unit;
    const float beyond = 2.0f - (along(middle, face) < 0.0f ? -towards : towards);
    const float s = along(to, s_axis) * unit, t = along(to, t_axis) * unit;

    return {axis == s_axis ? __builtin_copysignf(beyond, s) : s, axis == t_axis ? __builtin_copysignf(beyond, t) : t};
}

INLINE struct coordinates moved(struct coordinates at, struct coordinates d)
{
    return {at.x + d.x, at.y + d.y, at.z + d.z};
}

/* The derivative of a direction becomes one on the face: the step to the direction behind it, in coordinates from 0 to 1. */
INLINE struct coordinates face_step(struct coordinates at, struct coordinates d)
{
    const struct coordinates from = unfold(at, at), to = unfold(at, moved(at, d));

    return {0.5f * (to.x - from.x), 0.5f * (to.y - from.y)};
}

INLINE float power_of_2(float x)
{
    float y;

    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

INLINE float log_of(float x)
{
    float y;

    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The number of places to sample along the longer derivative (Vulkan, "Texel Anisotropic Filtering"). The arguments are the lengths of the two
 * derivatives. */
INLINE u32 count_places(u64 record, float longer, float shorter)
{
    const u32 most = MEMBER32(record, max_anisotropy);
    float n;

    if (most < 2 || !(MEMBER32(record, flags) & PTX2SPV_TEXTURE_LINEAR) || !(longer > shorter))
        return 1;
    n = __builtin_ceilf(power_of_2(log_of(longer) - log_of(shorter)) - 0x1p-8f); /* which may be a little too large */
    return n < 16.0f && (u32)n < most ? (u32)n : most < 16 ? most : 16;
}

/* The mean of n places along a derivative, or what one place has. */
INLINE struct words sample_along(u64 record, struct coordinates at, struct coordinates d, u32 n, float lod)
{
    const float unit = reciprocal((float)(n + 1)), share = reciprocal((float)n);
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    struct words out;

#pragma clang loop unroll(disable)
    for (u32 i = 1; i <= n; i++) {
        const float along = n > 1 ? (float)i * unit - 0.5f : 0.0f;
        struct coordinates place = at;

        place.x += n > 1 ? d.x * along : 0.0f;
        place.y += n > 1 ? d.y * along : 0.0f;
        out = sample_levels(record, PLANE, place, lod);
#pragma unroll
        for (u32 c = 0; c < 4; c++)
            sum[c] += bits_of(out.v[c]);
    }
#pragma unroll
    for (u32 c = 0; c < 4; c++)
        out.v[c] = n > 1 ? word_of(sum[c] * share) : out.v[c];
    return out;
}

INLINE struct words sample_grad(u64 handle, enum geometry geometry, struct coordinates at, struct coordinates dx, struct coordinates dy)
{
    const u64 record = find(handle);

    if (!record)
        return {{0, 0, 0, 0}};
    bool is_one_face = true;

    if (geometry == CUBE) {
        const u32 face = axis_of(at);

        is_one_face = face == axis_of(moved(at, dx)) && face == axis_of(moved(at, dy));
        dx = face_step(at, dx);
        dy = face_step(at, dy);
    }
    const struct coordinates x = scaled_derivative(record, geometry, dx), y = scaled_derivative(record, geometry, dy);
    const float along_x = length_of(x), along_y = length_of(y), longer = __builtin_fmaxf(along_x, along_y);
    const float lod = log_of(is_one_face ? __builtin_fmaxf(longer, longest_diagonal(x, y)) : longer);

    if (geometry != PLANE)
        return sample_levels(record, geometry, at, lod);
    const u32 n = count_places(record, longer, __builtin_fminf(along_x, along_y));

    return sample_along(record, at, along_x >= along_y ? dx : dy, n, n > 1 ? lod - log_of((float)n) : lod);
}

/* Where integer coordinates lead. Measured on an H100; PTX leaves it undefined. */
enum outside {
    OUTSIDE_ZERO,  /* tex: zeros outside of the level and in layers that do not exist, whatever the address mode */
    OUTSIDE_CLAMP, /* tex.level: the nearest texel, whatever the address mode, and the last layer */
};

/* Integer coordinates: a texel of a level; zeros in levels that do not exist. */
INLINE struct words fetch_record(u64 record, enum geometry geometry, int x, int y, int z, u32 slice, u32 number, u32 outside)
{
    const u64 level = level_of(record, number);
    struct words out = {{0, 0, 0, 0}};

    if (!record || (number && number >= MEMBER32(record, n_levels)))
        return out;
    const bool is_normalized = MEMBER32(record, flags) & PTX2SPV_TEXTURE_NORMALIZED_VALUES && one_of(MEMBER32(record, texel)) != 0.0f;

    const u32 mode = outside == OUTSIDE_CLAMP ? PTX2SPV_TEXTURE_CLAMP : PTX2SPV_TEXTURE_BORDER, depth = LEVEL32(level, depth);

    x = index_of(x, LEVEL32(level, width), mode);
    y = geometry <= LINES ? 0 : index_of(y, LEVEL32(level, height), mode);
    z = geometry == VOLUME ? z : (int)(outside == OUTSIDE_CLAMP ? clamp_slice(slice, depth) : slice);
    z = index_of(z, depth, mode);
    if ((x | y | z) < 0)
        return out;
    out = fetch_texel(record, level, x, y, z, MEMBER32(record, texel));
    return !is_normalized ? out : MEMBER32(record, flags) & PTX2SPV_TEXTURE_SRGB ? decode(out) : normalize(out, MEMBER32(record, texel));
}

INLINE struct words fetch(u64 handle, enum geometry geometry, int x, int y, int z, u32 slice, u32 number, u32 outside)
{
    return fetch_record(find(handle), geometry, x, y, z, slice, number, outside);
}

INLINE struct words read_words(u64 address)
{
    struct words w;

    asm("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(w.v[0]), "=r"(w.v[1]), "=r"(w.v[2]), "=r"(w.v[3]) : "l"(address));
    return w;
}

/* A line, or linear memory, which most programs read in this way. Words of it need no conversion and little of the record. */
INLINE struct words fetch_line(u64 handle, int x, u32 number, u32 outside)
{
    const u64 record = find(handle);
    struct words linear = {{0, 0, 0, 0}}, out = {{0, 0, 0, 0}}; /* linear_texels, linear_width, linear_bytes */

    if (record && !number && outside == OUTSIDE_ZERO)
        linear = read_words(record + offsetof(struct ptx2spv_texture, linear_texels));
    if (!linear.v[2])
        return fetch_record(record, LINE, x, 0, 0, 0, number, outside);
    if ((u32)x >= linear.v[2])
        return out;
    const u64 at = (linear.v[0] | (u64)linear.v[1] << 32) + (u64)(u32)x * linear.v[3];

    out.v[0] = load_word(at);
    if (linear.v[3] > 4)
        out.v[1] = load_word(at + 4);
    if (linear.v[3] > 8) {
        out.v[2] = load_word(at + 8);
        out.v[3] = load_word(at + 12);
    }
    return out;
}

/* One channel of the four texels that linear filtering would use, in the order of tld4. */
INLINE struct words gather(u64 handle, u32 channel, enum geometry geometry, struct coordinates at)
{
    const u64 record = find(handle), level = level_of(record, 0);
    struct words out = {{0, 0, 0, 0}};

    if (!record)
        return out;
    const u32 depth = LEVEL32(level, depth), texel = MEMBER32(record, texel), flags = MEMBER32(record, flags);
    const float one = flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES ? one_of(texel) : 0.0f;
    bool is_scaled = !(flags & PTX2SPV_TEXTURE_NORMALIZED_COORDINATES);

    if (geometry == CUBE) {
        const u32 cube = clamp_slice(at.slice, depth / 6);

        at.slice = find_face(&at) + 6 * cube;
        is_scaled = false;
    }
    const u32 mode_x = geometry == CUBE ? PTX2SPV_TEXTURE_CLAMP : MEMBER32(record, address[0]);
    const u32 mode_y = geometry == CUBE ? PTX2SPV_TEXTURE_CLAMP : MEMBER32(record, address[1]);
    const struct axis x = place(at.x, at.dx, LEVEL32(level, width), mode_x, is_scaled, true);
    const struct axis y = place(at.y, at.dy, LEVEL32(level, height), mode_y, is_scaled, true);
    const int z = (int)clamp_slice(at.slice, depth);

#pragma clang loop unroll(disable)
    for (u32 k = 0; k < 4; k++) {
        const int i = k == 1 || k == 2 ? x.high : x.low, j = k < 2 ? y.high : y.low;
        const struct words w = fetch_texel(record, level, i, j, z, texel);
        const u32 word = channel == 0 ? w.v[0] : channel == 1 ? w.v[1] : channel == 2 ? w.v[2] : w.v[3];
        const u32 value = one == 0.0f || (i | j) < 0 ? word : normalize_word(word, texel);

        out.v[0] = k == 0 ? value : out.v[0];
        out.v[1] = k == 1 ? value : out.v[1];
        out.v[2] = k == 2 ? value : out.v[2];
        out.v[3] = k == 3 ? value : out.v[3];
    }
    return out;
}

/* ---- the functions that build_texture.c calls; their parameters are the operands of the instructions ---- */

#define TEXTURE(geometry, name, parameters, ...) \
    FUNCTION struct words __cuttle_tex_##name parameters { return sample_base(h, geometry, {__VA_ARGS__}); }
TEXTURE(LINE, 1d, (u64 h, float x, int dx), x, 0, 0, 0, dx)
TEXTURE(PLANE, 2d, (u64 h, float x, float y, int dx, int dy), x, y, 0, 0, dx, dy)
TEXTURE(VOLUME, 3d, (u64 h, float x, float y, float z, int dx, int dy, int dz), x, y, z, 0, dx, dy, dz)
TEXTURE(LINES, a1d, (u64 h, u32 i, float x, int dx), x, 0, 0, i, dx)
TEXTURE(PLANE, a2d, (u64 h, u32 i, float x, float y, int dx, int dy), x, y, 0, i, dx, dy)
TEXTURE(CUBE, cube, (u64 h, float x, float y, float z), x, y, z, 0)
TEXTURE(CUBE, acube, (u64 h, u32 i, float x, float y, float z), x, y, z, i)

#define LEVEL(geometry, name, parameters, ...) \
    FUNCTION struct words __cuttle_tex_level_##name parameters { return sample_lod(h, geometry, {__VA_ARGS__}, lod); }
LEVEL(LINE, 1d, (u64 h, float x, int dx, float lod), x, 0, 0, 0, dx)
LEVEL(PLANE, 2d, (u64 h, float x, float y, int dx, int dy, float lod), x, y, 0, 0, dx, dy)
LEVEL(VOLUME, 3d, (u64 h, float x, float y, float z, int dx, int dy, int dz, float lod), x, y, z, 0, dx, dy, dz)
LEVEL(LINES, a1d, (u64 h, u32 i, float x, int dx, float lod), x, 0, 0, i, dx)
LEVEL(PLANE, a2d, (u64 h, u32 i, float x, float y, int dx, int dy, float lod), x, y, 0, i, dx, dy)
LEVEL(CUBE, cube, (u64 h, float x, float y, float z, float lod), x, y, z, 0)
LEVEL(CUBE, acube, (u64 h, u32 i, float x, float y, float z, float lod), x, y, z, i)

#define LINE_GRAD float x_x, float y_x
#define PLANE_GRAD float x_x, float x_y, float y_x, float y_y
#define VOLUME_GRAD float x_x, float x_y, float x_z, float y_x, float y_y, float y_z
FUNCTION struct words __cuttle_tex_grad_1d(u64 h, float x, int dx, LINE_GRAD)
{
    return sample_grad(h, LINE, {x, 0, 0, 0, dx}, {x_x}, {y_x});
}
FUNCTION struct words __cuttle_tex_grad_2d(u64 h, float x, float y, int dx, int dy, PLANE_GRAD)
{
    return sample_grad(h, PLANE, {x, y, 0, 0, dx, dy}, {x_x, x_y}, {y_x, y_y});
}
FUNCTION struct words __cuttle_tex_grad_3d(u64 h, float x, float y, float z, int dx, int dy, int dz, VOLUME_GRAD)
{
    return sample_grad(h, VOLUME, {x, y, z, 0, dx, dy, dz}, {x_x, x_y, x_z}, {y_x, y_y, y_z});
}
FUNCTION struct words __cuttle_tex_grad_a1d(u64 h, u32 i, float x, int dx, LINE_GRAD)
{
    return sample_grad(h, LINES, {x, 0, 0, i, dx}, {x_x}, {y_x});
}
FUNCTION struct words __cuttle_tex_grad_a2d(u64 h, u32 i, float x, float y, int dx, int dy, PLANE_GRAD)
{
    return sample_grad(h, PLANE, {x, y, 0, i, dx, dy}, {x_x, x_y}, {y_x, y_y});
}

FUNCTION struct words __cuttle_tex_grad_cube(u64 h, float x, float y, float z, VOLUME_GRAD)
{
    return sample_grad(h, CUBE, {x, y, z, 0}, {x_x, x_y, x_z}, {y_x, y_y, y_z});
}
FUNCTION struct words __cuttle_tex_grad_acube(u64 h, u32 i, float x, float y, float z, VOLUME_GRAD)
{
    return sample_grad(h, CUBE, {x, y, z, i}, {x_x, x_y, x_z}, {y_x, y_y, y_z});
}

FUNCTION struct words __cuttle_tex_fetch_1d(u64 h, int x, u32 level, u32 outside)
{
    return fetch_line(h, x, level, outside);
}
FUNCTION struct words __cuttle_tex_fetch_2d(u64 h, int x, int y, u32 level, u32 outside)
{
    return fetch(h, PLANE, x, y, 0, 0, level, outside);
}
FUNCTION struct words __cuttle_tex_fetch_3d(u64 h, int x, int y, int z, u32 level, u32 outside)
{
    return fetch(h, VOLUME, x, y, z, 0, level, outside);
}
FUNCTION struct words __cuttle_tex_fetch_a1d(u64 h, u32 i, int x, u32 level, u32 outside)
{
    return fetch(h, LINES, x, 0, 0, i, level, outside);
}
FUNCTION struct words __cuttle_tex_fetch_a2d(u64 h, u32 i, int x, int y, u32 level, u32 outside)
{
    return fetch(h, PLANE, x, y, 0, i, level, outside);
}
/* Textures have one sample of each texel. */
FUNCTION struct words __cuttle_tex_fetch_2dms(u64 h, u32 sample, int x, int y, u32 level, u32 outside)
{
    return fetch(sample ? 0 : h, PLANE, x, y, 0, 0, level, outside);
}
FUNCTION struct words __cuttle_tex_fetch_a2dms(u64 h, u32 sample, u32 i, int x, int y, u32 level, u32 outside)
{
    return fetch(sample ? 0 : h, PLANE, x, y, 0, i, level, outside);
}

FUNCTION struct words __cuttle_tld4_2d(u64 h, float x, float y, int dx, int dy, u32 channel)
{
    return gather(h, channel, PLANE, {x, y, 0, 0, dx, dy});
}
FUNCTION struct words __cuttle_tld4_a2d(u64 h, u32 i, float x, float y, int dx, int dy, u32 channel)
{
    return gather(h, channel, PLANE, {x, y, 0, i, dx, dy});
}
FUNCTION struct words __cuttle_tld4_cube(u64 h, float x, float y, float z, u32 channel)
{
    return gather(h, channel, CUBE, {x, y, z, 0});
}
FUNCTION struct words __cuttle_tld4_acube(u64 h, u32 i, float x, float y, float z, u32 channel)
{
    return gather(h, channel, CUBE, {x, y, z, i});
}

/* The channels as halves: in two registers, or each in its own. Integers are converted like floats with their bits, as on an H100. */
FUNCTION struct words __cuttle_tex_pairs(u32 a, u32 b, u32 c, u32 d)
{
    return {{half_of_float(a) | half_of_float(b) << 16, half_of_float(c) | half_of_float(d) << 16, 0, 0}};
}
FUNCTION struct words __cuttle_tex_halves(u32 a, u32 b, u32 c, u32 d)
{
    return {{half_of_float(a), half_of_float(b), half_of_float(c), half_of_float(d)}};
}

/* ---- surfaces ---- */

enum boundary { BOUNDARY_TRAP, BOUNDARY_CLAMP, BOUNDARY_ZERO }; /* as in build_texture.c */

INLINE int limit(int i, int last)
{
    return i < 0 ? 0 : i > last ? last : i;
}

/* The address of `bytes` at byte x of a row of an object; 0 if there are none. A plane has no other slices, so its z is not looked at. */
INLINE u64 surface_address(u64 handle, int x, int y, int z, u32 bytes, u32 boundary, bool is_plane)
{
    const u64 record = record_of(handle);

    if (!record)
        return 0;
    const struct words head = read_words(record), place = read_words(record + offsetof(struct ptx2spv_texture, texels));
    const int last_x = (int)(head.v[1] - bytes), last_y = (int)head.v[2] - 1, last_z = (int)head.v[3] - 1;

    if (head.v[0] != (u32)(handle >> 32)) /* the generation */
        return 0;
    if (x < 0 || x > last_x || (u32)y > (u32)last_y || (!is_plane && (u32)z > (u32)last_z)) {
        if (boundary == BOUNDARY_TRAP)
            asm volatile("trap;");
        if (last_x < 0 || boundary != BOUNDARY_CLAMP)
            return 0;
        x = limit(x, last_x);
        y = limit(y, last_y);
        z = z < 0 && MEMBER32(record, flags) & (PTX2SPV_TEXTURE_LAYERED | PTX2SPV_TEXTURE_CUBE) ? last_z : limit(z, last_z); /* unsigned layers */
    }
    const u64 texels = (place.v[0] | (u64)place.v[1] << 32) + (u64)(u32)y * place.v[2] + ((u32)x & -bytes);

    return is_plane ? texels : texels + (u64)(u32)z * place.v[3] * place.v[2];
}

FUNCTION u64 __cuttle_surface_plane(u64 h, int x, int y, int z, u32 bytes, u32 boundary)
{
    return surface_address(h, x, y, z, bytes, boundary, true);
}

FUNCTION u64 __cuttle_surface_slices(u64 h, int x, int y, int z, u32 bytes, u32 boundary)
{
    return surface_address(h, x, y, z, bytes, boundary, false);
}

/* A component of sust.p as a channel: floats become halves or normalized integers, integers are cut off. */
INLINE u32 channel_of(u32 word, u32 texel, float one)
{
    const bool is_signed = texel == PTX2SPV_TEXEL_S8 || texel == PTX2SPV_TEXEL_S16;

    if (texel == PTX2SPV_TEXEL_F16)
        return half_of_float(word);
    if (one == 0.0f)
        return word;
    const float value = __builtin_fminf(__builtin_fmaxf(bits_of(word), is_signed ? -1.0f : 0.0f), 1.0f) * one;

    return (u32)(int)__builtin_ceilf(value - 0.5f); /* halves are rounded down, as on an H100 */
}

FUNCTION void __cuttle_surface_store(u64 h, int x, int y, int z, u32 boundary, u32 a, u32 b, u32 c, u32 d)
{
    const u64 record = find(h);
    const u32 components[4] = {a, b, c, d};

    if (!record)
        return;
    const u32 texel = MEMBER32(record, texel), bytes = MEMBER32(record, texel_bytes), channels = MEMBER32(record, channels);
    const float one = MEMBER32(record, flags) & PTX2SPV_TEXTURE_NORMALIZED_VALUES ? one_of(texel) : 0.0f;
    const u64 at = surface_address(h, x * (int)bytes, y, z, bytes, boundary, false);
    const u32 each = bytes / channels;

    if (texel == PTX2SPV_TEXEL_U10 && at) {
        const u32 word = channel_of(a, texel, one) | channel_of(b, texel, one) << 10 | channel_of(c, texel, one) << 20;

        asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(word | channel_of(d, texel, 3.0f) << 30) : "memory");
        return;
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        const u32 word = channel_of(components[i], texel, one);
        const u64 to = at + i * each;

        if (!at || i >= channels)
            continue;
        if (each == 4)
            asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
        else if (each == 2)
            asm volatile("st.global.u16 [%0], %1;" ::"l"(to), "h"((unsigned short)word) : "memory");
        else
            asm volatile("st.global.u8 [%0], %1;" ::"l"(to), "r"(word) : "memory");
    }
}

/* ---- queries: the names of txq and suq, in the order of build_texture.c ---- */

enum query {
    QUERY_WIDTH,
    QUERY_HEIGHT,
    QUERY_DEPTH,
    QUERY_CHANNEL_DATA_TYPE,
    QUERY_CHANNEL_ORDER,
    QUERY_NORMALIZED_COORDS,
    QUERY_FORCE_UNNORMALIZED_COORDS,
    QUERY_FILTER_MODE,
    QUERY_ADDR_MODE_0,
    QUERY_ADDR_MODE_1,
    QUERY_ADDR_MODE_2,
    QUERY_ARRAY_SIZE,
    QUERY_NUM_MIPMAP_LEVELS,
    QUERY_NUM_SAMPLES,
    QUERY_MEMORY_LAYOUT,
    QUERY_IS_TEXREF, /* istypep; as on NVIDIA's GPUs (asked on an H200) only references have a type */
    QUERY_IS_SAMPLERREF,
    QUERY_IS_SURFREF,
};

/* The enumerants of OpenCL, which PTX refers to: CL_SNORM_INT8 and following, by texel; CL_R, CL_RG, CL_RGBA by channels. */
INLINE u32 channel_data_type(u32 texel, bool normalized)
{
    switch (texel) {
    case PTX2SPV_TEXEL_U8:
        return normalized ? 0x10d2 : 0x10da;
    case PTX2SPV_TEXEL_U16:
        return normalized ? 0x10d3 : 0x10db;
    case PTX2SPV_TEXEL_U32:
        return 0x10dc;
    case PTX2SPV_TEXEL_S8:
        return normalized ? 0x10d0 : 0x10d7;
    case PTX2SPV_TEXEL_S16:
        return normalized ? 0x10d1 : 0x10d8;
    case PTX2SPV_TEXEL_S32:
        return 0x10d9;
    case PTX2SPV_TEXEL_F16:
        return 0x10dd;
    case PTX2SPV_TEXEL_U10:
        return 0x10e0; /* CL_UNORM_INT_101010_2 */
    default:
        return 0x10de;
    }
}

INLINE u32 extent(u64 level, u32 query, u32 dimensions)
{
    return query == QUERY_WIDTH                      ? LEVEL32(level, width)
           : query == QUERY_HEIGHT && dimensions > 1 ? LEVEL32(level, height)
           : query == QUERY_DEPTH && dimensions > 2  ? LEVEL32(level, depth)
                                                     : 0;
}

FUNCTION u32 __cuttle_texture_query(u64 h, u32 query, u32 level)
{
    const u64 record = find(h);

    if (!record)
        return 0;
    const u32 flags = MEMBER32(record, flags), levels = MEMBER32(record, n_levels), channels = MEMBER32(record, channels);

    switch (query) {
    case QUERY_WIDTH:
    case QUERY_HEIGHT:
    case QUERY_DEPTH:
        return level < levels ? extent(level_of(record, level), query, MEMBER32(record, dimensions)) : 0;
    case QUERY_CHANNEL_DATA_TYPE:
        return channel_data_type(MEMBER32(record, texel), flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES);
    case QUERY_CHANNEL_ORDER:
        return channels == 1 ? 0x10b0 : channels == 2 ? 0x10b2 : 0x10b5;
    case QUERY_NORMALIZED_COORDS:
        return (flags & PTX2SPV_TEXTURE_NORMALIZED_COORDINATES) != 0;
    case QUERY_FORCE_UNNORMALIZED_COORDS:
        return !(flags & PTX2SPV_TEXTURE_NORMALIZED_COORDINATES);
    case QUERY_FILTER_MODE:
        return (flags & PTX2SPV_TEXTURE_LINEAR) != 0;
    case QUERY_ADDR_MODE_0:
    case QUERY_ADDR_MODE_1:
    case QUERY_ADDR_MODE_2:
        return read32(record + offsetof(struct ptx2spv_texture, address) + 4 * (query - QUERY_ADDR_MODE_0));
    case QUERY_ARRAY_SIZE:
        return !(flags & PTX2SPV_TEXTURE_LAYERED)   ? 0
               : flags & PTX2SPV_TEXTURE_CUBE       ? LEVEL32(level_of(record, 0), depth) / 6
                                                    : LEVEL32(level_of(record, 0), depth);
    case QUERY_NUM_MIPMAP_LEVELS:
        return levels;
    case QUERY_NUM_SAMPLES:
        return 1;
    case QUERY_IS_TEXREF:
        return (flags & (PTX2SPV_TEXTURE_REFERENCE | PTX2SPV_TEXTURE_SURFACE)) == PTX2SPV_TEXTURE_REFERENCE;
    case QUERY_IS_SURFREF:
        return (flags & PTX2SPV_TEXTURE_REFERENCE) && (flags & PTX2SPV_TEXTURE_SURFACE);
    default:
        return 0;
    }
}

/* ---- images ---- */

/* The face that a direction points to, and the coordinates there. */
FUNCTION struct words __cuttle_tex_face(float x, float y, float z)
{
    struct coordinates at = {x, y, z};
    const u32 face = find_face(&at);

    return {{face, word_of(at.x), word_of(at.y), 0}};
}

/* The reciprocals of the extents of the image of a descriptor, which coordinates in texels are multiplied by. */
FUNCTION struct words __cuttle_tex_scale(u32 descriptor)
{
    return read_words(directory() + PTX2SPV_IMAGE_SCALES_OFFSET + (u64)PTX2SPV_IMAGE_SCALE_BYTES * descriptor);
}
