/* SPDX-License-Identifier: Apache-2.0 */
/* Bit fields, counts and permutations (PTX ISA, "Integer Arithmetic Instructions", prmt), computed one bit at a time. */
#include "rows.h"

static unsigned count(uint64_t a)
{
    unsigned n = 0;

    for (; a; a >>= 1)
        n += a & 1;
    return n;
}

static unsigned leading_zeros(uint64_t a, unsigned bits)
{
    unsigned n = 0;

    while (n < bits && !(a >> (bits - 1 - n) & 1))
        n++;
    return n;
}

static uint64_t reversed(uint64_t a, unsigned bits)
{
    uint64_t result = 0;

    for (unsigned i = 0; i < bits; i++)
        result |= (a >> i & 1) << (bits - 1 - i);
    return result;
}

/* The position of the highest bit that differs from the sign, or -1. */
static uint32_t highest(uint64_t a, unsigned bits, int is_signed, int from_above)
{
    const uint64_t sign = is_signed && (a >> (bits - 1) & 1);

    for (int i = (int)bits - 1; i >= 0; i--)
        if ((a >> i & 1) != sign)
            return (uint32_t)(from_above ? (int)bits - 1 - i : i);
    return UINT32_MAX;
}

static uint64_t extract(uint64_t a, uint32_t b, uint32_t c, unsigned bits, int is_signed)
{
    const unsigned position = b & 255, length = c & 255, last = bits - 1;
    const unsigned top = position + length - 1 < last ? position + length - 1 : last;
    const uint64_t sign = is_signed && length ? a >> top & 1 : 0;
    uint64_t d = 0;

    for (unsigned i = 0; i < bits; i++)
        d |= (i < length && position + i <= last ? a >> (position + i) & 1 : sign) << i;
    return d;
}

static uint64_t insert(uint64_t a, uint64_t b, uint32_t c, uint32_t e, unsigned bits)
{
    const unsigned position = c & 255, length = e & 255;

    for (unsigned i = 0; i < length && position + i < bits; i++) {
        b &= ~(UINT64_C(1) << (position + i));
        b |= (a >> i & 1) << (position + i);
    }
    return b;
}

static uint32_t mask(uint32_t position, uint32_t length)
{
    uint32_t d = 0;

    for (uint64_t i = position; i < 32 && i < (uint64_t)position + length; i++)
        d |= UINT32_C(1) << i;
    return d;
}

static uint32_t extended(uint32_t a, uint32_t length, int is_signed)
{
    uint32_t d = 0;

    if (length == 0)
        return 0;
    for (unsigned i = 0; i < 32; i++)
        d |= (i < length ? a >> i & 1 : is_signed ? a >> (length - 1) & 1 : 0) << i;
    return d;
}

/* The ISA's pseudocode of fns: it counts set bits upwards or downwards from base. */
static uint32_t nth_set(uint32_t set, uint32_t base, int32_t offset)
{
    const int step = offset < 0 ? -1 : 1;
    int64_t left = offset < 0 ? -(int64_t)offset : offset;

    if (offset == 0)
        return set >> base & 1 ? base : UINT32_MAX;
    for (int64_t i = base; i >= 0 && i < 32; i += step)
        if (set >> i & 1 && --left == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

static uint32_t permuted(uint32_t a, uint32_t b, uint32_t selectors)
{
    const uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t d = 0;

    for (int i = 0; i < 4; i++) {
        const unsigned selector = selectors >> 4 * i & 15;
        uint32_t byte = bytes >> 8 * (selector & 7) & 255;

        if (selector & 8)
            byte = byte & 128 ? 255 : 0;
        d |= byte << 8 * i;
    }
    return d;
}

/* The special modes, byte by byte as in the ISA's table: b3, b2, b1, b0 for c & 3 = 0, 1, 2, 3. */
static uint32_t permuted_by_mode(uint32_t a, uint32_t b, uint32_t c, const char *table)
{
    const char *row = table + 5 * (c & 3);
    uint32_t selectors = 0;

    for (int i = 0; i < 4; i++)
        selectors = selectors << 4 | (uint32_t)(row[i] - '0');
    return permuted(a, b, selectors);
}

/* The ISA limits positions and lengths to 0 to 255; the hardware uses the low byte for 32 bits only. */
#define IN_BYTES "and.b32 %b, %b, 255; and.b32 %c, %c, 255; "

#define FOUR_TIMES(mask) "and.b32 %c, %c, " #mask "; shl.b32 %c, %c, 2; "

#define ROWS(R)                                                                                                                            \
    R(popc_b32, "popc.b32 %d, %a;", U32, U32, NONE, NONE, NONE, count(a))                                                                  \
    R(popc_b64, "popc.b64 %d, %a;", U32, U64, NONE, NONE, NONE, count(a))                                                                  \
    R(clz_b32, "clz.b32 %d, %a;", U32, U32, NONE, NONE, NONE, leading_zeros(a, 32))                                                        \
    R(clz_b64, "clz.b64 %d, %a;", U32, U64, NONE, NONE, NONE, leading_zeros(a, 64))                                                        \
    R(brev_b32, "brev.b32 %d, %a;", B32, B32, NONE, NONE, NONE, reversed(a, 32))                                                           \
    R(brev_b64, "brev.b64 %d, %a;", B64, B64, NONE, NONE, NONE, reversed(a, 64))                                                           \
    R(bfind_u32, "bfind.u32 %d, %a;", U32, U32, NONE, NONE, NONE, highest(a, 32, 0, 0))                                                    \
    R(bfind_s32, "bfind.s32 %d, %a;", U32, U32, NONE, NONE, NONE, highest(a, 32, 1, 0))                                                    \
    R(bfind_u64, "bfind.u64 %d, %a;", U32, U64, NONE, NONE, NONE, highest(a, 64, 0, 0))                                                    \
    R(bfind_s64, "bfind.s64 %d, %a;", U32, U64, NONE, NONE, NONE, highest(a, 64, 1, 0))                                                    \
    R(bfind_shift_u32, "bfind.shiftamt.u32 %d, %a;", U32, U32, NONE, NONE, NONE, highest(a, 32, 0, 1))                                     \
    R(bfind_shift_s64, "bfind.shiftamt.s64 %d, %a;", U32, U64, NONE, NONE, NONE, highest(a, 64, 1, 1))                                     \
    R(fns, "and.b32 %b, %b, 31; max.s32 %c, %c, -40; fns.b32 %d, %a, %b, %c;", B32, B32, B32, S32, NONE,                                   \
      nth_set(a, b & 31, c < -40 ? -40 : c))                                                                                               \
    R(bfe_u32, "bfe.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, extract(a, b, c, 32, 0))                                               \
    R(bfe_s32, "bfe.s32 %d, %a, %b, %c;", S32, U32, U32, U32, NONE, extract(a, b, c, 32, 1))                                               \
    R(bfe_u64, IN_BYTES "bfe.u64 %d, %a, %b, %c;", U64, U64, U32, U32, NONE, extract(a, b, c, 64, 0))                                      \
    R(bfe_s64, IN_BYTES "bfe.s64 %d, %a, %b, %c;", S64, U64, U32, U32, NONE, extract(a, b, c, 64, 1))                                      \
    R(bfe_imm, "bfe.s32 %d, %a, 3, 5;", S32, U32, NONE, NONE, NONE, extract(a, 3, 5, 32, 1))                                               \
    R(bfi_b32, "bfi.b32 %d, %a, %b, %c, %e;", B32, B32, B32, U32, U32, insert(a, b, c, e, 32))                                             \
    R(bfi_b64, "and.b32 %c, %c, 255; and.b32 %e, %e, 255; bfi.b64 %d, %a, %b, %c, %e;", B64, B64, B64, U32, U32, insert(a, b, c, e, 64))   \
    R(bmsk_clamp, "bmsk.clamp.b32 %d, %a, %b;", B32, U32, U32, NONE, NONE, mask(a, b))                                                     \
    R(bmsk_wrap, "bmsk.wrap.b32 %d, %a, %b;", B32, U32, U32, NONE, NONE, mask(a & 31, b & 31))                                             \
    R(szext_clamp_s32, "szext.clamp.s32 %d, %a, %b;", S32, U32, U32, NONE, NONE, extended(a, b > 32 ? 32 : b, 1))                          \
    R(szext_clamp_u32, "szext.clamp.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, extended(a, b > 32 ? 32 : b, 0))                          \
    R(szext_wrap_s32, "szext.wrap.s32 %d, %a, %b;", S32, U32, U32, NONE, NONE, extended(a, b & 31, 1))                                     \
    R(prmt, "prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted(a, b, c))                                                       \
    R(prmt_imm, "prmt.b32 %d, %a, %b, 0xf2c5;", B32, B32, B32, NONE, NONE, permuted(a, b, 0xf2c5))                                         \
    R(prmt_mov, "mov.b32 %c, 0xf2c5; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted(a, b, 0xf2c5))                          \
    R(prmt_no_sign, "and.b32 %c, %c, 0x7777; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted(a, b, c & 0x7777))              \
    R(prmt_one_sign, "shl.b32 %c, %c, 9; or.b32 %c, %c, 0x30; and.b32 %c, %c, 0x8777; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE, \
      permuted(a, b, (c << 9 | 0x30) & 0x8777))                                                                                            \
    R(prmt_row, FOUR_TIMES(3) "shr.u32 %c, 0x76543210, %c; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE,                            \
      permuted(a, b, 0x76543210 >> 4 * (c & 3)))                                                                                           \
    R(prmt_row_down, FOUR_TIMES(3) "sub.u32 %c, 16, %c; shr.u32 %c, 0x76543210, %c; and.b32 %c, %c, 0x7777; prmt.b32 %d, %a, %b, %c;",     \
      B32, B32, B32, B32, NONE, permuted(a, b, 0x76543210 >> (16 - 4 * (c & 3))))                                                          \
    R(prmt_row_wrapped, FOUR_TIMES(15) "and.b32 %c, %c, 15; shl.b32 %c, 0x1111, %c; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE,   \
      permuted(a, b, (uint32_t)(0x1111 << (4 * (c & 15) & 15))))                                                                           \
    R(prmt_row_beyond, FOUR_TIMES(7) "shr.u32 %c, 0x76543210, %c; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE,                     \
      permuted(a, b, 0x76543210 >> 4 * (c & 7)))                                                                                           \
    R(prmt_row_sign, FOUR_TIMES(1) "shr.u32 %c, 0x87654, %c; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE,                          \
      permuted(a, b, 0x87654 >> 4 * (c & 1)))                                                                                              \
    R(prmt_row_of_two,                                                                                                                     \
      FOUR_TIMES(1) "shr.u32 %c, 0x543210, %c; and.b32 %e, %e, 1; mad.lo.u32 %c, %e, 0x1111, %c; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, \
      B32, B32, permuted(a, b, (0x543210 >> 4 * (c & 1)) + 0x1111 * (e & 1)))                                                              \
    R(prmt_backwards, FOUR_TIMES(3) "shr.u32 %c, 0x01234567, %c; prmt.b32 %d, %a, %b, %c;", B32, B32, B32, B32, NONE,                      \
      permuted(a, b, 0x01234567 >> 4 * (c & 3)))                                                                                           \
    R(prmt_f4e, "prmt.b32.f4e %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted_by_mode(a, b, c, "3210 4321 5432 6543"))                \
    R(prmt_b4e, "prmt.b32.b4e %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted_by_mode(a, b, c, "5670 6701 7012 0123"))                \
    R(prmt_rc8, "prmt.b32.rc8 %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted_by_mode(a, b, c, "0000 1111 2222 3333"))                \
    R(prmt_ecl, "prmt.b32.ecl %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted_by_mode(a, b, c, "3210 3211 3222 3333"))                \
    R(prmt_ecr, "prmt.b32.ecr %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted_by_mode(a, b, c, "0000 1110 2210 3210"))                \
    R(prmt_rc16, "prmt.b32.rc16 %d, %a, %b, %c;", B32, B32, B32, B32, NONE, permuted_by_mode(a, b, c, "1010 3232 1010 3232"))

DEFINE_TABLE(bits, ROWS)
