/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the compressed blocks of a level into texels. decode_text.h, the PTX of these kernels, is made of this file by ci/texture_functions.
 *
 * A thread decodes a block. Every texel has the bits that NVIDIA's texture units give (measured on an H200): BC6H and BC7 are specified exactly, but
 * between the two colours of BC1 to BC3 and the two values of BC4 and BC5 devices interpolate in their own ways. */
#include "core/blocks/block_tables.h"

#include "ptx2spv/textures/device.cuh"

#define KERNEL extern "C" __attribute__((global))
#define IN_MEMORY __attribute__((address_space(1)))

/* The members of a struct ct_block_job: clang takes the address of a parameter that is a struct, and then it must be in memory. */
#define JOB                                                                                                                                \
    u64 texels, u64 texel_row, u64 texel_slice, u64 blocks, u64 block_row, u64 block_slice, u64 tables, u32 width, u32 height, u32 format, \
        u32 channels, u32 alpha
#define JOB_OF_PARAMETERS                                                                                                                  \
    {                                                                                                                                      \
        texels, texel_row, texel_slice, blocks, block_row, block_slice, tables, width, height, format, channels, alpha, 0                  \
    }

typedef const IN_MEMORY struct ct_block_tables *tables_t;

struct block {
    u64 low, high;
};

struct place { /* of a block, in blocks */
    u32 x, y, z;
};

INLINE struct place find_place()
{
    struct place at;
    u32 group, thread;

    asm("mov.u32 %0, %%ctaid.x;" : "=r"(group));
    asm("mov.u32 %0, %%tid.x;" : "=r"(thread));
    asm("mov.u32 %0, %%ctaid.y;" : "=r"(at.y));
    asm("mov.u32 %0, %%ctaid.z;" : "=r"(at.z));
    at.x = group * 64 + thread;
    return at;
}

INLINE u64 load(u64 address)
{
    return *(const IN_MEMORY u64 *)address;
}

INLINE struct block load_block(const struct ct_block_job *job, struct place at, u32 bytes)
{
    const u64 address = job->blocks + at.z * job->block_slice + at.y * job->block_row + (u64)at.x * bytes;

    return {load(address), bytes == 16 ? load(address + 8) : 0};
}

/* The address of texel t of a block, or 0 beyond the edges of the level. */
INLINE u64 texel_address(const struct ct_block_job *job, struct place at, u32 t, u32 bytes)
{
    const u32 x = 4 * at.x + t % 4, y = 4 * at.y + t / 4;

    return x < job->width && y < job->height ? job->texels + at.z * job->texel_slice + y * job->texel_row + (u64)x * bytes : 0;
}

INLINE void store32(u64 address, u32 value)
{
    *(IN_MEMORY u32 *)address = value;
}

/* Up to 16 bits of a block. */
INLINE u32 bits_at(struct block block, u32 at, u32 n)
{
    const u64 low = at < 64 ? block.low >> (at & 63) : block.high >> (at & 63), next = at < 64 && at ? block.high << (64 - (at & 63)) : 0;

    return (u32)(low | next) & ((1u << n) - 1);
}

/* ---- BC1, BC2, BC3 ---- */

INLINE u32 pack(u32 red, u32 green, u32 blue, u32 alpha)
{
    return red | green << 8 | blue << 16 | alpha << 24;
}

/* A colour of 5, 6 and 5 bits a third or half of the way to another one. */
INLINE int mix_5(int a, int b, u32 way)
{
    return way == 0 ? 66 * a >> 3 : way == 3 ? 22 * (2 * a + b) >> 3 : 33 * (a + b) >> 3;
}

INLINE int mix_6(int a, int b, u32 way)
{
    const int from = a << 2 | a >> 4, difference = (b << 2 | b >> 4) - from;
    const int sum = 256 * from + difference / 4 + 128 + difference * (way == 3 ? 80 : 128);

    return way == 0 ? from : sum / 256;
}

INLINE u32 color_of(u64 colors, u32 t, bool four)
{
    const u32 index = (u32)(colors >> (32 + 2 * t)) & 3, first = (u32)colors & 0xffff, second = (u32)colors >> 16 & 0xffff;
    const u32 a = index & 1 ? second : first, b = index & 1 ? first : second, way = index < 2 ? 0 : four ? 3 : 2;

    if (!four && index == 3)
        return 0;
    return pack((u32)mix_5(a >> 11, b >> 11, way), (u32)mix_6(a >> 5 & 63, b >> 5 & 63, way), (u32)mix_5(a & 31, b & 31, way), 0);
}

/* How an index of 3 bits mixes two values: steps from the nearer end, whose number is `from_second`. */
struct mix {
    int steps, step; /* step: 36 if there are six values between the ends, 48 if there are four, in units of about 1/256 */
    bool from_second;
};

INLINE struct mix mix_of(u32 index, bool six)
{
    const bool from_second = six ? index == 4 || index > 5 : index > 3;
    const int steps = index < 2 ? 0 : six ? (index == 2 || index == 7 ? 1 : index == 3 || index == 6 ? 2 : 4) : index == 2 || index == 5 ? 1 : 2;

    return {steps, six ? 36 : 48, index == 1 || (index > 1 && from_second)};
}

INLINE u32 alpha_of(u64 alphas, u32 t)
{
    const int first = (int)(alphas & 255), second = (int)(alphas >> 8 & 255);
    const u32 index = (u32)(alphas >> (16 + 3 * t)) & 7;
    const struct mix mix = mix_of(index, first > second);
    const int from = mix.from_second ? second : first, difference = (mix.from_second ? first : second) - from, way = mix.steps * difference;

    if (first <= second && index > 5)
        return index == 6 ? 0 : 255;
    return (u32)(256 * from + mix.step * way + (way >> 3) + 128) >> 8;
}

KERNEL void decode_bc123(JOB)
{
    const struct ct_block_job job = JOB_OF_PARAMETERS;
    const struct place at = find_place();

    if (4 * at.x >= job.width)
        return;
    const struct block block = load_block(&job, at, job.format == CT_BLOCK_BC1 ? 8 : 16);
    const u64 colors = job.format == CT_BLOCK_BC1 ? block.low : block.high;
    const bool four = job.format != CT_BLOCK_BC1 || ((u32)colors & 0xffff) > ((u32)colors >> 16 & 0xffff);

#pragma clang loop unroll(disable)
    for (u32 t = 0; t < 16; t++) {
        const u64 address = texel_address(&job, at, t, 4);
        const bool is_clear = !four && (colors >> (32 + 2 * t) & 3) == 3;
        const u32 alpha = job.format == CT_BLOCK_BC1   ? (is_clear ? 0 : 255)
                          : job.format == CT_BLOCK_BC2 ? ((u32)(block.low >> 4 * t) & 15) * 17
                                                   : alpha_of(block.low, t);

        if (address)
            store32(address, color_of(colors, t, four) | alpha << 24);
    }
}

/* ---- BC4, BC5 ---- */

/* An end, of 8 bits, with 16. */
INLINE int widen(int value, bool is_signed)
{
    const int magnitude = value < 0 ? -value : value, wide = magnitude << 8 | magnitude << 1 | magnitude >> 6;

    return !is_signed ? value * 257 : value < 0 ? -wide : wide;
}

INLINE u32 value_of(u64 values, u32 t, bool is_signed)
{
    const int raw_first = is_signed ? (signed char)values : (int)(values & 255), first = raw_first < -127 ? -127 : raw_first;
    const int raw_second = is_signed ? (signed char)(values >> 8) : (int)(values >> 8 & 255), second = raw_second < -127 ? -127 : raw_second;
    const u32 index = (u32)(values >> (16 + 3 * t)) & 7;
    const bool six = raw_first > raw_second;
    const struct mix mix = mix_of(index, six);
    const int from = mix.from_second ? second : first, difference = (mix.from_second ? first : second) - from;
    const int most = is_signed ? 32767 : 65535;
    const int mixed = widen(from, is_signed) + mix.step * mix.steps * difference;
    const int value = six || index < 6 ? mixed : index == 7 ? most : is_signed ? -most : 0, magnitude = value < 0 ? -value : value;

    return value == 0 ? 0 : fraction((u32)magnitude, is_signed ? 15 : 16) | (value < 0 ? 0x80000000 : 0);
}

/* Texels of so many floats. */
KERNEL void decode_bc45(JOB)
{
    const struct ct_block_job job = JOB_OF_PARAMETERS;
    const struct place at = find_place();
    const bool is_signed = job.format == CT_BLOCK_BC4S || job.format == CT_BLOCK_BC5S, has_two = job.format >= CT_BLOCK_BC5U;

    if (4 * at.x >= job.width)
        return;
    const struct block block = load_block(&job, at, has_two ? 16 : 8);

#pragma clang loop unroll(disable)
    for (u32 t = 0; t < 16; t++) {
        const u64 address = texel_address(&job, at, t, 4 * job.channels);

        if (!address)
            continue;
        store32(address, value_of(block.low, t, is_signed));
        if (job.channels > 1)
            store32(address + 4, has_two ? value_of(block.high, t, is_signed) : 0);
        if (job.channels > 2) {
            store32(address + 8, 0);
            store32(address + 12, job.alpha);
        }
    }
}

/* ---- what BC6H and BC7 share ---- */

INLINE u32 subset_of(tables_t tables, u32 subsets, u32 partition, u32 t)
{
    return subsets < 2 ? 0 : tables->partitions[subsets - 2][partition] >> 2 * t & 3;
}

/* The index of texel t, of so many bits, where the block's indices begin. The first texel and the anchors of the other subsets have a bit less. */
INLINE u32 index_of(tables_t tables, struct block block, u32 begin, u32 bits, u32 subsets, u32 partition, u32 t)
{
    const u32 second = subsets < 2 ? 16 : tables->anchors[subsets - 2][partition], third = subsets < 3 ? 16 : tables->anchors[2][partition];
    const u32 shorter = (t > 0) + (t > second) + (t > third);
    const bool is_anchor = t == 0 || t == second || t == third;

    return bits_at(block, begin + t * bits - shorter, bits - is_anchor);
}

INLINE int interpolate(int a, int b, int weight)
{
    return (a * (64 - weight) + b * weight + 32) >> 6;
}

/* ---- BC6H ---- */

INLINE int extend(int value, u32 bits)
{
    return (int)((u32)value << (32 - bits)) >> (32 - bits);
}

/* An end with 16 bits. */
INLINE int unquantize(int value, u32 bits, bool is_signed)
{
    const int magnitude = value < 0 ? -value : value, most = (1 << (bits - is_signed)) - 1;
    const int wide = magnitude == 0 ? 0 : magnitude >= most ? (is_signed ? 0x7fff : 0xffff) : is_signed ? ((magnitude << 15) + 0x4000) >> (bits - 1) : ((magnitude << 16) + 0x8000) >> bits;

    return bits >= (is_signed ? 16 : 15) ? value : value < 0 ? -wide : wide;
}

/* The half of an interpolated value. */
INLINE u32 finish(int value, bool is_signed)
{
    if (!is_signed)
        return (u32)(value * 31 >> 6);
    return value < 0 ? 0x8000 | (u32)(-value * 31 >> 5) : (u32)(value * 31 >> 5);
}

/* The ends of both subsets: three components each. */
INLINE void read_ends(tables_t tables, struct block block, u32 number, bool is_signed, int ends[12])
{
    const IN_MEMORY struct ct_bc6_mode *mode = &tables->bc6[number];
    const u32 bits = mode->endpoint_bits;
    u32 at = number < 2 ? 2 : 5;

#pragma unroll
    for (u32 c = 0; c < 12; c++)
        ends[c] = 0;
#pragma clang loop unroll(disable)
    for (u32 i = 0; mode->fields[i]; i++) {
        const u32 field = mode->fields[i], channel = field & 15, low = field >> 4 & 15, n = field >> 8 & 15;
        const u32 straight = bits_at(block, at, n), value = field >> 12 ? __builtin_bitreverse32(straight) >> (32 - n) : straight;

#pragma unroll
        for (u32 c = 0; c < 12; c++)
            ends[c] |= c == channel ? (int)(value << low) : 0;
        at += n;
    }
#pragma unroll
    for (u32 c = 0; c < 12; c++) {
        if (c < 3)
            ends[c] = is_signed ? extend(ends[c], bits) : ends[c];
        else if (mode->transformed)
            ends[c] = (ends[c % 3] + extend(ends[c], mode->delta_bits[c % 3])) & ((1 << bits) - 1);
        if (c >= 3 && is_signed)
            ends[c] = extend(ends[c], bits);
    }
#pragma unroll
    for (u32 c = 0; c < 12; c++)
        ends[c] = unquantize(ends[c], bits, is_signed);
}

/* Texels of four halves. */
KERNEL void decode_bc6(JOB)
{
    const struct ct_block_job job = JOB_OF_PARAMETERS;
    const struct place at = find_place();
    const tables_t constants = (tables_t)job.tables;
    const bool is_signed = job.format == CT_BLOCK_BC6S;

    if (4 * at.x >= job.width)
        return;
    const struct block block = load_block(&job, at, 16);
    const u32 number = block.low & 2 ? block.low & 31 : block.low & 1;
    const IN_MEMORY struct ct_bc6_mode *mode = &constants->bc6[number];
    const bool exists = mode->exists;
    const u32 subsets = mode->partition_bits ? 2 : 1, partition = subsets > 1 ? bits_at(block, 77, 5) : 0, bits = exists ? mode->index_bits : 3;
    int ends[12];

    read_ends(constants, block, number, is_signed, ends);
#pragma clang loop unroll(disable)
    for (u32 t = 0; t < 16; t++) {
        const u64 address = texel_address(&job, at, t, 8);
        const u32 subset = subset_of(constants, subsets, partition, t);
        const u32 index = index_of(constants, block, subsets > 1 ? 82 : 65, bits, subsets, partition, t);
        const int weight = constants->weights[bits - 2][index];
        u32 halves[3];

#pragma unroll
        for (u32 c = 0; c < 3; c++)
            halves[c] = exists ? finish(interpolate(subset ? ends[6 + c] : ends[c], subset ? ends[9 + c] : ends[3 + c], weight), is_signed) : 0;
        if (address) {
            store32(address, halves[0] | halves[1] << 16);
            store32(address + 4, halves[2] | job.alpha << 16);
        }
    }
}

/* ---- BC7 ---- */

INLINE u32 expand(u32 value, u32 bits)
{
    return value << (8 - bits) | value >> (2 * bits - 8);
}

/* One end, of number 2 * subset or 2 * subset + 1; its bits begin at `at`. */
INLINE u32 read_end(const IN_MEMORY struct ct_bc7_mode *mode, struct block block, u32 at, u32 number)
{
    const u32 subsets = mode->subsets, color_bits = mode->color_bits, alpha_bits = mode->alpha_bits;
    const u32 p_at = at + 2 * subsets * (3 * color_bits + alpha_bits), has_p = mode->unique_bits | mode->shared_bits;
    const u32 p = has_p ? bits_at(block, p_at + (mode->shared_bits ? number / 2 : number), 1) : 0;
    u32 end = 0;

#pragma unroll
    for (u32 c = 0; c < 4; c++) {
        const u32 bits = c < 3 ? color_bits : alpha_bits;
        const u32 value = bits_at(block, at + 2 * subsets * color_bits * c + number * bits, bits) << has_p | p;

        end |= (c == 3 && !alpha_bits ? 255 : expand(value, bits + has_p)) << 8 * c;
    }
    return end;
}

INLINE u32 texel_of_bc7(tables_t tables, struct block block, u32 number, u32 t)
{
    const IN_MEMORY struct ct_bc7_mode *mode = &tables->bc7[number];
    const u32 subsets = mode->subsets, bits = mode->index_bits, second_bits = mode->second_index_bits;
    const u32 partition = bits_at(block, number + 1, mode->partition_bits), after = number + 1 + mode->partition_bits;
    const u32 rotation = bits_at(block, after, mode->rotation_bits), selection = bits_at(block, after + mode->rotation_bits, mode->selection_bits);
    const u32 begin = after + mode->rotation_bits + mode->selection_bits;
    const u32 indices = begin + 2 * subsets * (3 * mode->color_bits + mode->alpha_bits + mode->unique_bits) + subsets * mode->shared_bits;
    const u32 subset = subset_of(tables, subsets, partition, t);
    const u32 first = read_end(mode, block, begin, 2 * subset), last = read_end(mode, block, begin, 2 * subset + 1);
    const int primary = tables->weights[bits - 2][index_of(tables, block, indices, bits, subsets, partition, t)];
    const int second = second_bits ? tables->weights[second_bits - 2][index_of(tables, block, indices + 16 * bits - subsets, second_bits, 1, 0, t)] : primary;
    const int color_weight = selection ? second : primary, alpha_weight = selection ? primary : second;
    u32 texel = 0;

#pragma unroll
    for (u32 c = 0; c < 4; c++)
        texel |= (u32)interpolate((int)(first >> 8 * c & 255), (int)(last >> 8 * c & 255), c < 3 ? color_weight : alpha_weight) << 8 * c;
    if (rotation) { /* exchanges alpha with a colour */
        const u32 shift = 8 * (rotation - 1), color = texel >> shift & 255, alpha = texel >> 24;

        texel = (texel & ~(255u << shift) & 0xffffff) | alpha << shift | color << 24;
    }
    return texel;
}

KERNEL void decode_bc7(JOB)
{
    const struct ct_block_job job = JOB_OF_PARAMETERS;
    const struct place at = find_place();

    if (4 * at.x >= job.width)
        return;
    const struct block block = load_block(&job, at, 16);
    const u32 low = (u32)block.low & 255;

#pragma clang loop unroll(disable)
    for (u32 t = 0; t < 16; t++) {
        const u64 address = texel_address(&job, at, t, 4);

        if (address)
            store32(address, low ? texel_of_bc7((tables_t)job.tables, block, (u32)__builtin_ctz(low), t) : 0);
    }
}
