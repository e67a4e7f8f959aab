/* SPDX-License-Identifier: Apache-2.0 */
/* cp.async.bulk.tensor and cp.reduce.async.bulk.tensor (PTX ISA, "Tensors") in generated code. build_tensor.c calls these functions; the
 * maps that they read are those of struct ptx2spv_tensor_map. tensor_text.h, their PTX, is made of this file by ci/texture_functions.
 *
 * A copy consists of rows along the innermost dimension, whose bytes are a multiple of 16; of an interleaved tensor, they are slices. A piece of
 * 16 bytes is moved at once if it is inside of the tensor and aligned, otherwise element by element. */
#include "cuttle/ptx2spv.h"

#include "device.cuh"

#define PIECE 16

struct words {
    u32 v[4];
};

/* ---- memory ---- */

/* The map may be in global, constant or parameter memory. */
INLINE u32 map32(u64 at)
{
    u32 value;

    asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(at));
    return value;
}

INLINE u64 map64(u64 at)
{
    return map32(at) | (u64)map32(at + 4) << 32;
}

#define MEMBER32(map, member) map32((map) + offsetof(struct ptx2spv_tensor_map, member))
#define ITEM32(map, member, i) map32((map) + offsetof(struct ptx2spv_tensor_map, member) + 4 * (i))
#define ITEM64(map, member, i) map64((map) + offsetof(struct ptx2spv_tensor_map, member) + 8 * (i))

INLINE int step_of(u64 map, u32 dimension)
{
    return (int)(MEMBER32(map, steps) >> 4 * dimension & 15);
}

INLINE struct words load_piece(u64 at)
{
    struct words w;

    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w.v[0]), "=r"(w.v[1]), "=r"(w.v[2]), "=r"(w.v[3]) : "l"(at));
    return w;
}

INLINE void store_piece(u64 at, struct words w)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w.v[0]), "r"(w.v[1]), "r"(w.v[2]), "r"(w.v[3]) : "memory");
}

INLINE struct words load_shared(u32 at)
{
    struct words w;

    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w.v[0]), "=r"(w.v[1]), "=r"(w.v[2]), "=r"(w.v[3]) : "r"(at));
    return w;
}

INLINE void store_shared(u32 at, struct words w)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(w.v[0]), "r"(w.v[1]), "r"(w.v[2]), "r"(w.v[3]) : "memory");
}

/* ---- tensors ---- */

INLINE bool is_inside(long long x, u32 last)
{
    return x >= 0 && x <= last;
}

struct tensor {
    u32 type, bytes, last, swizzle, fill; /* bytes: of an element; last: the last element of a row */
    u32 row_bytes;
    u64 base;
    int first;      /* element of each row of the box */
    bool is_inside; /* as far as coordinate C of an interleaved tensor is concerned */
};

/* c: the coordinates of the instruction, which become those of the map. */
INLINE struct tensor read_tensor(u64 map, int *c)
{
    const u32 flags = MEMBER32(map, flags), rank = MEMBER32(map, rank);
    struct tensor t;

    t.type = MEMBER32(map, type);
    t.bytes = MEMBER32(map, element_bytes);
    t.last = ITEM32(map, last, 0);
    t.swizzle = MEMBER32(map, swizzle);
    t.fill = !(flags & PTX2SPV_TENSOR_FILLS_NAN) ? 0 : t.bytes == 2 ? 0x7fff7fff : 0x7fffffff;
    t.row_bytes = ITEM32(map, box, 0) * t.bytes;
    t.base = map64(map + offsetof(struct ptx2spv_tensor_map, address));
    t.first = c[0];
    t.is_inside = true;
    if (flags & PTX2SPV_TENSOR_INTERLEAVED) {
        const int slice = rank == 3 ? c[1] : rank == 4 ? c[2] : c[3];

        t.is_inside = is_inside(slice, t.last);
        t.base += (u64)(long long)slice * map64(map + offsetof(struct ptx2spv_tensor_map, slice_stride));
        t.last = ITEM32(map, box, 0) - 1;
        t.first = 0;
        c[3] = rank == 4 ? c[3] : rank == 5 ? c[2] : 0;
        c[2] = rank == 3 ? c[2] : c[1];
        c[1] = c[0];
    }
    return t;
}

INLINE u32 swizzled(u32 at, u32 swizzle)
{
    return at ^ (at >> (swizzle >> PTX2SPV_TENSOR_SWIZZLE_SHIFT) & swizzle & PTX2SPV_TENSOR_SWIZZLE_BITS);
}

INLINE struct words flipped(struct words w, u32 at, u32 swizzle)
{
    const struct words other = {{w.v[2], w.v[3], w.v[0], w.v[1]}};

    return at & swizzle & PTX2SPV_TENSOR_SWIZZLE_FLIP ? other : w;
}

/* The byte offset of coordinates 1 to 4 of a row; *inside: whether the row exists. */
INLINE u64 row_offset(u64 map, const int *c, bool *inside)
{
    u64 offset = 0;

#pragma unroll
    for (u32 i = 1; i < 5; i++) {
        *inside = *inside && is_inside(c[i], ITEM32(map, last, i));
        offset += (u64)(long long)c[i] * ITEM64(map, strides, i - 1);
    }
    return offset;
}

/* ---- loads ---- */

INLINE u32 load_element(u64 at, u32 bytes)
{
    u32 value;

    if (bytes == 1)
        asm volatile("ld.global.u8 %0, [%1];" : "=r"(value) : "l"(at));
    else if (bytes == 2)
        asm volatile("{ .reg .u16 %%half; ld.global.u16 %%half, [%1]; cvt.u32.u16 %0, %%half; }" : "=r"(value) : "l"(at));
    else
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(at));
    return value;
}

/* A word at byte `offset` of a row that begins with element `first`; elements outside are filled. */
INLINE u32 load_word(const struct tensor *t, u64 row, long long first, u32 offset, bool inside)
{
    const u32 step = t->bytes < 4 ? t->bytes : 4;
    const u32 fill = t->bytes == 8 && t->fill && !(offset & 4) ? 0xffffffff : t->fill;
    u32 word = 0;

#pragma unroll 1
    for (u32 b = 0; b < 4; b += step) {
        const long long x = first + (offset + b) / t->bytes;
        u32 value = fill & (step == 4 ? 0xffffffff : (1u << 8 * step) - 1);

        if (inside && is_inside(x, t->last))
            value = load_element(row + (u64)(x * t->bytes) + (offset & (t->bytes - 1) & 4), t->bytes);
        word |= value << 8 * b;
    }
    return word;
}

INLINE u32 flushed(u32 word, u32 type)
{
    const bool flushes = type == PTX2SPV_TENSOR_F32_FTZ || type == PTX2SPV_TENSOR_TF32_FTZ;

    return flushes && !(word & 0x7f800000) ? word & 0x80000000 : word;
}

INLINE bool is_whole(const struct tensor *t, u64 row, long long first, u32 offset, bool inside)
{
    const long long x = first + offset / t->bytes;

    return inside && is_inside(x, t->last) && is_inside(x + PIECE / t->bytes - 1, t->last) && !((row + (u64)(x * t->bytes)) & (PIECE - 1));
}

INLINE void load_row(const struct tensor *t, u32 to, u64 row, bool inside)
{
    const long long first = t->first;

#pragma unroll 1
    for (u32 offset = 0; offset < t->row_bytes; offset += PIECE) {
        struct words w;

        if (is_whole(t, row, first, offset, inside)) {
            w = load_piece(row + (u64)(first * t->bytes) + offset);
        } else {
#pragma unroll
            for (u32 i = 0; i < 4; i++)
                w.v[i] = load_word(t, row, first, offset + 4 * i, inside);
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            w.v[i] = flushed(w.v[i], t->type);
        store_shared(swizzled(to + offset, t->swizzle), flipped(w, to + offset, t->swizzle));
    }
}

/* ---- stores and reductions ---- */

INLINE void store_element(u64 at, u32 value, u32 bytes)
{
    if (bytes == 1)
        asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"(value) : "memory");
    else if (bytes == 2)
        asm volatile("st.global.u16 [%0], %1;" ::"l"(at), "h"((unsigned short)value) : "memory");
    else
        asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

INLINE float float_of(u32 half, u32 type)
{
    return bits_of(type == PTX2SPV_TENSOR_BF16 ? half << 16 : float_of_half(half));
}

/* Rounds to nearest even. A float has enough bits for a sum of halves to be rounded twice without harm. */
INLINE u32 rounded(float value, u32 type)
{
    const u32 word = word_of(value);

    if (type != PTX2SPV_TENSOR_BF16)
        return half_of_float(word);
    return value != value ? 0x7fff : (word + 0x7fff + (word >> 16 & 1)) >> 16;
}

/* A sum, or the lesser or greater of two halves, where a NaN loses. */
INLINE u32 combined_halves(u32 x, u32 y, u32 type, u32 operation)
{
    const float a = float_of(x, type), b = float_of(y, type);
    const bool least = operation == PTX2SPV_TENSOR_MIN;

    if (operation == PTX2SPV_TENSOR_ADD)
        return rounded(a + b, type);
    if (a != a)
        return b != b ? 0x7fff : y;
    if (b != b)
        return x;
    if (a == b)
        return least == (bool)(x >> 15) ? x : y; /* -0 is less than +0 */
    return (a < b) == least ? x : y;
}

INLINE void reduce_half(u64 at, u32 value, u32 type, u32 operation)
{
    const u32 shift = 8 * ((u32)at & 2);
    const u64 word = at & ~3ull;
    u32 old, seen;

    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(word));
    for (;;) {
        const u32 half = combined_halves(old >> shift & 0xffff, value, type, operation);
        const u32 next = (old & ~(0xffffu << shift)) | half << shift;

        asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(seen) : "l"(word), "r"(old), "r"(next) : "memory");
        if (seen == old)
            return;
        old = seen;
    }
}

#define RED32(op) asm volatile("red.global." op " [%0], %1;" ::"l"(at), "r"(low) : "memory")
#define RED64(op) asm volatile("red.global." op " [%0], %1;" ::"l"(at), "l"(wide) : "memory")

INLINE void reduce_element(u64 at, u32 low, u32 high, u32 type, u32 operation)
{
    const u64 wide = low | (u64)high << 32;
    const bool is_half = type == PTX2SPV_TENSOR_F16 || type == PTX2SPV_TENSOR_BF16;
    const bool is_wide = type == PTX2SPV_TENSOR_U64 || type == PTX2SPV_TENSOR_S64 || type == PTX2SPV_TENSOR_F64;
    const bool is_float = type == PTX2SPV_TENSOR_F32 || type == PTX2SPV_TENSOR_F32_FTZ || type == PTX2SPV_TENSOR_TF32 ||
                          type == PTX2SPV_TENSOR_TF32_FTZ;

    if (is_half && operation <= PTX2SPV_TENSOR_MAX) {
        reduce_half(at, low, type, operation);
    } else if (operation == PTX2SPV_TENSOR_ADD) {
        if (type == PTX2SPV_TENSOR_F64)
            asm volatile("red.global.add.f64 [%0], %1;" ::"l"(at), "d"(__builtin_bit_cast(double, wide)) : "memory");
        else if (is_float)
            asm volatile("red.global.add.f32 [%0], %1;" ::"l"(at), "f"(__builtin_bit_cast(float, low)) : "memory");
        else if (is_wide)
            RED64("add.u64");
        else
            RED32("add.u32");
    } else if (operation == PTX2SPV_TENSOR_MIN || operation == PTX2SPV_TENSOR_MAX) {
        const bool least = operation == PTX2SPV_TENSOR_MIN;

        if (type == PTX2SPV_TENSOR_S64 && least)
            RED64("min.s64");
        else if (type == PTX2SPV_TENSOR_S64)
            RED64("max.s64");
        else if (is_wide && least)
            RED64("min.u64");
        else if (is_wide)
            RED64("max.u64");
        else if (type == PTX2SPV_TENSOR_S32 && least)
            RED32("min.s32");
        else if (type == PTX2SPV_TENSOR_S32)
            RED32("max.s32");
        else if (least)
            RED32("min.u32");
        else
            RED32("max.u32");
    } else if (operation == PTX2SPV_TENSOR_INC) {
        RED32("inc.u32");
    } else if (operation == PTX2SPV_TENSOR_DEC) {
        RED32("dec.u32");
    } else if (is_wide) {
        if (operation == PTX2SPV_TENSOR_AND)
            RED64("and.b64");
        else if (operation == PTX2SPV_TENSOR_OR)
            RED64("or.b64");
        else
            RED64("xor.b64");
    } else if (operation == PTX2SPV_TENSOR_AND) {
        RED32("and.b32");
    } else if (operation == PTX2SPV_TENSOR_OR) {
        RED32("or.b32");
    } else {
        RED32("xor.b32");
    }
}

/* The elements of a word of a row, or of two words that are one element. */
INLINE void put_words(const struct tensor *t, u64 row, long long first, u32 offset, u32 low, u32 high, u32 operation)
{
    const u32 step = t->bytes < 4 ? t->bytes : 4;

#pragma unroll 1
    for (u32 b = 0; b < 4; b += step) {
        const long long x = first + (offset + b) / t->bytes;
        const u64 at = row + (u64)(x * t->bytes);
        const u32 value = low >> 8 * b & (step == 4 ? 0xffffffff : (1u << 8 * step) - 1);

        if (!is_inside(x, t->last))
            continue;
        if (operation != PTX2SPV_TENSOR_STORE) {
            reduce_element(at, value, high, t->type, operation);
            continue;
        }
        store_element(at, value, t->bytes);
        if (t->bytes == 8)
            store_element(at + 4, high, 4);
    }
}

INLINE void put_row(const struct tensor *t, u32 from, u64 row, u32 operation)
{
    const long long first = t->first;

#pragma unroll 1
    for (u32 offset = 0; offset < t->row_bytes; offset += PIECE) {
        const struct words w = flipped(load_shared(swizzled(from + offset, t->swizzle)), from + offset, t->swizzle);

        if (operation == PTX2SPV_TENSOR_STORE && is_whole(t, row, first, offset, true)) {
            store_piece(row + (u64)(first * t->bytes) + offset, w);
            continue;
        }
#pragma unroll 1
        for (u32 i = 0; i < 4; i += t->bytes == 8 ? 2 : 1) {
            const u32 low = i == 0 ? w.v[0] : i == 1 ? w.v[1] : i == 2 ? w.v[2] : w.v[3];

            put_words(t, row, first, offset + 4 * i, low, i == 0 ? w.v[1] : w.v[3], operation);
        }
    }
}

/* ---- tiles ---- */

/* Visits the rows of a box: of each dimension but the first, every elementStrides-th coordinate. */
#define FOR_EACH_ROW(map, c, at)                                                                                                    \
    _Pragma("unroll 1") for (at[4] = c[4]; at[4] < c[4] + (int)ITEM32(map, box, 4); at[4] += step_of(map, 4))                        \
        _Pragma("unroll 1") for (at[3] = c[3]; at[3] < c[3] + (int)ITEM32(map, box, 3); at[3] += step_of(map, 3))                    \
            _Pragma("unroll 1") for (at[2] = c[2]; at[2] < c[2] + (int)ITEM32(map, box, 2); at[2] += step_of(map, 2))                \
                _Pragma("unroll 1") for (at[1] = c[1]; at[1] < c[1] + (int)ITEM32(map, box, 1); at[1] += step_of(map, 1))

/* Returns the number of bytes written. */
FUNCTION u32 __cuttle_tensor_load(u64 map, u32 to, int c0, int c1, int c2, int c3, int c4)
{
    int c[5] = {c0, c1, c2, c3, c4}, at[5];
    const struct tensor t = read_tensor(map, c);
    u32 written = 0;

    FOR_EACH_ROW(map, c, at)
    {
        bool inside = t.is_inside;
        const u64 row = t.base + row_offset(map, at, &inside);

        load_row(&t, to + written, row, inside);
        written += t.row_bytes;
    }
    return written;
}

INLINE void put(u64 map, u32 from, int *c, u32 operation)
{
    const struct tensor t = read_tensor(map, c);
    int at[5];

    FOR_EACH_ROW(map, c, at)
    {
        bool inside = t.is_inside;
        const u64 row = t.base + row_offset(map, at, &inside);

        if (inside)
            put_row(&t, from, row, operation);
        from += t.row_bytes;
    }
}

/* Parts outside of the tensor are ignored. */
FUNCTION void __cuttle_tensor_store(u64 map, u32 from, int c0, int c1, int c2, int c3, int c4)
{
    int c[5] = {c0, c1, c2, c3, c4};

    put(map, from, c, PTX2SPV_TENSOR_STORE);
}

/* operation: enum ptx2spv_tensor_operation other than STORE */
FUNCTION void __cuttle_tensor_reduce(u64 map, u32 from, int c0, int c1, int c2, int c3, int c4, u32 operation)
{
    int c[5] = {c0, c1, c2, c3, c4};

    if (operation != PTX2SPV_TENSOR_STORE)
        put(map, from, c, operation);
}

/* ---- columns of an image ---- */

/* The next pixel. The bounding box of dimension i, 1 to rank - 2, extends from `lower` to `upper` inclusive; at its end the next dimension
 * advances. */
INLINE void advance(u64 map, int *at, u32 rank)
{
    bool carry = true;

#pragma unroll
    for (u32 d = 1; d < 5; d++) {
        const bool is_space = d + 1 < rank;

        if (!carry)
            continue;
        at[d] += is_space ? (int)step_of(map, d) : 1;
        carry = is_space && at[d] > (int)ITEM32(map, box, 3 + d);
        if (carry)
            at[d] = (int)ITEM32(map, box, d);
    }
}

/* Loads the channels of consecutive pixels (PTX ISA, "Im2col mode"). The offsets are added to each position. */
FUNCTION u32 __cuttle_tensor_im2col(u64 map, u32 to, int c0, int c1, int c2, int c3, int c4, u32 o0, u32 o1, u32 o2)
{
    int at[5] = {c0, c1, c2, c3, c4};
    const struct tensor t = read_tensor(map, at);
    const u32 pixels = MEMBER32(map, pixels), rank = MEMBER32(map, rank);
    u32 written = 0;

#pragma unroll 1
    for (u32 i = 0; i < pixels; i++) {
        const int place[5] = {0, at[1] + (int)o0, at[2] + (int)(rank > 3 ? o1 : 0), at[3] + (int)(rank > 4 ? o2 : 0), at[4]};
        bool inside = t.is_inside;
        const u64 row = t.base + row_offset(map, place, &inside);

        load_row(&t, to + written, row, inside);
        written += t.row_bytes;
        advance(map, at, rank);
    }
    return written;
}

/* .im2col_no_offs: stores them, or combines them with those that are there. operation: enum ptx2spv_tensor_operation */
FUNCTION void __cuttle_tensor_im2col_put(u64 map, u32 from, int c0, int c1, int c2, int c3, int c4, u32 operation)
{
    int at[5] = {c0, c1, c2, c3, c4};
    const struct tensor t = read_tensor(map, at);
    const u32 pixels = MEMBER32(map, pixels), rank = MEMBER32(map, rank);

#pragma unroll 1
    for (u32 i = 0; i < pixels; i++) {
        bool inside = t.is_inside;
        const u64 row = t.base + row_offset(map, at, &inside);

        if (inside)
            put_row(&t, from, row, operation);
        from += t.row_bytes;
        advance(map, at, rank);
    }
}
