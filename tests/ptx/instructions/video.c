/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar video instructions, and selectors of SIMD video instructions (PTX ISA, "Video Instructions"). The model computes in 128 bits.
 * NVIDIA's GPUs since Maxwell have no such unit: ptxas emits other instructions, which depart from the manual where results of words leave 32
 * bits and where parts are saturated (on an H100 0xffffffff + 1 saturates to 0, and -128 to 0x7f). Those rows are named manual_ and fail
 * there. Elsewhere the H100 decides where the manual is silent: the second operation of vset has the type of a. */
#include "rows.h"

typedef __int128 wide;

enum operation { ADD, SUB, DIST, MIN, MAX, SHL_C, SHL_W, SHR_C, SHR_W, LT, GE, EQ };
enum second { NONE2, ADD2, MIN2, MAX2 };
enum part { W, B0, B1, B2, B3, H0, H1 }; /* of a word */

static unsigned bits_of_part(enum part part)
{
    return part == W ? 32 : part < H0 ? 8 : 16;
}

static unsigned first_of_part(enum part part)
{
    return part == W ? 0 : part < H0 ? 8 * (part - B0) : 16 * (part - H0);
}

static wide take(uint32_t word, enum part part, int is_signed)
{
    const unsigned bits = bits_of_part(part);
    const wide value = (wide)((uint64_t)word >> first_of_part(part) & ((UINT64_C(1) << bits) - 1));

    return is_signed && value >> (bits - 1) ? value - ((wide)1 << bits) : value;
}

static wide clamp_wide(wide value, unsigned bits, int is_signed)
{
    const wide low = is_signed ? -((wide)1 << (bits - 1)) : 0, high = low + ((wide)1 << bits) - 1;

    return value < low ? low : value > high ? high : value;
}

static wide first_result(enum operation operation, wide a, wide b)
{
    switch (operation) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case DIST:
        return a > b ? a - b : b - a;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case SHL_C:
        return a * ((wide)1 << (b > 32 ? 32 : (int)b));
    case SHL_W:
        return a * ((wide)1 << (int)(b & 31));
    case SHR_C:
        return a >> (b > 32 ? 32 : (int)b);
    case SHR_W:
        return a >> (int)(b & 31);
    case LT:
        return a < b;
    case GE:
        return a >= b;
    default:
        return a == b;
    }
}

/* d: the signedness of the result; to: the part of it that is written. */
static uint32_t video(enum operation operation, int d, wide a, wide b, int sat, enum part to, enum second second, uint32_t c)
{
    const unsigned bits = bits_of_part(to), first = first_of_part(to);
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    wide x = first_result(operation, a, b);
    uint32_t word;

    if (sat)
        x = clamp_wide(x, bits, d);
    word = (uint32_t)x;
    switch (second) {
    case ADD2:
        return word + c;
    case MIN2:
        return d ? ((int32_t)word < (int32_t)c ? word : c) : (word < c ? word : c);
    case MAX2:
        return d ? ((int32_t)word > (int32_t)c ? word : c) : (word > c ? word : c);
    default:
        return to == W ? word : (uint32_t)((c & ~(mask << first)) | (word & mask) << first);
    }
}

/* vmad: the sum is signed if a source is, or if the product or c is negated. */
static uint32_t mad(wide a, wide b, int any_signed, int negate_product, int negate_c, int plus_one, unsigned shift, int sat, uint32_t c)
{
    const int is_signed = any_signed || negate_product || negate_c;
    const wide third = is_signed ? (int32_t)c : (wide)c;
    wide sum = (negate_product ? -(a * b) : a * b) + (negate_c ? -third : third) + plus_one;

    sum >>= shift;
    return (uint32_t)(sat ? clamp_wide(sum, 32, is_signed) : sum);
}

/* vop4 and vop2: `from` selects a part of a and b, taken together as one number; parts of d outside the mask are those of c. */
static wide lane_of(uint32_t a, uint32_t b, unsigned bits, unsigned from, int is_signed)
{
    const uint64_t both = (uint64_t)b << 32 | a;
    const wide value = (wide)(both >> from * bits & ((1u << bits) - 1));

    return is_signed && value >> (bits - 1) ? value - ((wide)1 << bits) : value;
}

struct simd {
    unsigned bits, asel, bsel, mask; /* selectors: a hexadecimal digit for each part of d; mask: a bit for each */
    int d, a, b, sat, sums;
};

static uint32_t simd(enum operation operation, struct simd form, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t part_mask = (1u << form.bits) - 1;
    uint32_t parts = c, sum = c;

    for (unsigned i = 0; i < 32 / form.bits; i++) {
        wide x;

        if (!(form.mask >> i & 1))
            continue;
        x = first_result(operation, lane_of(a, b, form.bits, form.asel >> 4 * i & 15, form.a),
                         lane_of(a, b, form.bits, form.bsel >> 4 * i & 15, form.b));
        if (form.sat)
            x = clamp_wide(x, form.bits, form.d);
        parts = (parts & ~(part_mask << form.bits * i)) | ((uint32_t)x & part_mask) << form.bits * i;
        sum += (uint32_t)x;
    }
    return form.sums ? sum : parts;
}

#define S(part, x) take(x, part, 1)
#define U(part, x) take(x, part, 0)
#define V(R, id, text, expression) R(id, text, U32, U32, U32, U32, NONE, expression)
#define FORM(...) ((struct simd){__VA_ARGS__})

#define ROWS(R)                                                                                                                            \
    V(R, vadd_uu, "vadd.u32.u32.u32 %d, %a, %b;", video(ADD, 0, U(W, a), U(W, b), 0, W, NONE2, c))                                         \
    V(R, manual_vadd_us_sat, "vadd.u32.u32.s32.sat %d, %a, %b;", video(ADD, 0, U(W, a), S(W, b), 1, W, NONE2, c))                          \
    V(R, vadd_ss_sat, "vadd.s32.s32.s32.sat %d, %a, %b;", video(ADD, 1, S(W, a), S(W, b), 1, W, NONE2, c))                                 \
    V(R, vadd_uu_ssat, "vadd.s32.u32.u32.sat %d, %a, %b;", video(ADD, 1, U(W, a), U(W, b), 1, W, NONE2, c))                                \
    V(R, vadd_bytes, "vadd.s32.s32.u32 %d, %a.b3, %b.h1;", video(ADD, 1, S(B3, a), U(H1, b), 0, W, NONE2, c))                              \
    V(R, vadd_add, "vadd.u32.s32.s32.sat.add %d, %a, %b, %c;", video(ADD, 0, S(W, a), S(W, b), 1, W, ADD2, c))                             \
    V(R, vadd_min, "vadd.s32.s32.s32.min %d, %a, %b.b1, %c;", video(ADD, 1, S(W, a), S(B1, b), 0, W, MIN2, c))                             \
    V(R, manual_vadd_max, "vadd.u32.s32.u32.max %d, %a.h0, %b, %c;", video(ADD, 0, S(H0, a), U(W, b), 0, W, MAX2, c))                      \
    V(R, vadd_to_byte, "vadd.s32.s32.s32 %d.b2, %a.b0, %b.b2, %c;", video(ADD, 1, S(B0, a), S(B2, b), 0, B2, NONE2, c))                    \
    V(R, manual_vadd_to_byte_sat, "vadd.s32.s32.s32.sat %d.b3, %a.b0, %b.b2, %c;", video(ADD, 1, S(B0, a), S(B2, b), 1, B3, NONE2, c))     \
    V(R, manual_vadd_to_half_sat, "vadd.u32.s32.s32.sat %d.h1, %a, %b.h0, %c;", video(ADD, 0, S(W, a), S(H0, b), 1, H1, NONE2, c))         \
    V(R, vadd_unused, "vadd.s32.u32.s32 %d, %a, %b, %c;", video(ADD, 1, U(W, a), S(W, b), 0, W, NONE2, c))                                 \
    V(R, vadd_imm, "vadd.s32.u32.s32.sat %d, %a, -5;", video(ADD, 1, U(W, a), -5, 1, W, NONE2, c))                                         \
    V(R, vsub_uu, "vsub.u32.u32.u32.sat %d, %a, %b;", video(SUB, 0, U(W, a), U(W, b), 1, W, NONE2, c))                                     \
    V(R, vsub_us, "vsub.s32.u32.s32.sat %d, %a, %b;", video(SUB, 1, U(W, a), S(W, b), 1, W, NONE2, c))                                     \
    V(R, vsub_add, "vsub.s32.s32.s32.add %d, %a.b1, %b.b3, %c;", video(SUB, 1, S(B1, a), S(B3, b), 0, W, ADD2, c))                         \
    V(R, vabsdiff_ss, "vabsdiff.u32.s32.s32 %d, %a, %b;", video(DIST, 0, S(W, a), S(W, b), 0, W, NONE2, c))                                \
    V(R, vabsdiff_ssat, "vabsdiff.s32.s32.s32.sat %d, %a, %b;", video(DIST, 1, S(W, a), S(W, b), 1, W, NONE2, c))                          \
    V(R, vabsdiff_add, "vabsdiff.u32.u32.u32.add %d, %a.b0, %b.b0, %c;", video(DIST, 0, U(B0, a), U(B0, b), 0, W, ADD2, c))                \
    V(R, manual_vabsdiff_byte, "vabsdiff.u32.s32.u32.sat %d.b0, %a.b0, %b.h1, %c;", video(DIST, 0, S(B0, a), U(H1, b), 1, B0, NONE2, c))   \
    V(R, vmin_us, "vmin.s32.u32.s32 %d, %a, %b;", video(MIN, 1, U(W, a), S(W, b), 0, W, NONE2, c))                                         \
    V(R, vmin_sat, "vmin.u32.s32.s32.sat %d, %a, %b;", video(MIN, 0, S(W, a), S(W, b), 1, W, NONE2, c))                                    \
    V(R, vmin_max, "vmin.s32.s32.s32.max %d, %a, %b, %c;", video(MIN, 1, S(W, a), S(W, b), 0, W, MAX2, c))                                 \
    V(R, vmax_us, "vmax.u32.u32.s32 %d, %a, %b;", video(MAX, 0, U(W, a), S(W, b), 0, W, NONE2, c))                                         \
    V(R, vmax_min, "vmax.u32.u32.u32.min %d, %a, %b, %c;", video(MAX, 0, U(W, a), U(W, b), 0, W, MIN2, c))                                 \
    V(R, vmax_half, "vmax.s32.s32.s32 %d.h0, %a.h1, %b.h0, %c;", video(MAX, 1, S(H1, a), S(H0, b), 0, H0, NONE2, c))                       \
    V(R, vshl_clamp, "vshl.u32.u32.u32.clamp %d, %a, %b;", video(SHL_C, 0, U(W, a), U(W, b), 0, W, NONE2, c))                              \
    V(R, vshl_wrap, "vshl.s32.s32.u32.wrap %d, %a, %b;", video(SHL_W, 1, S(W, a), U(W, b), 0, W, NONE2, c))                                \
    V(R, manual_vshl_sat, "vshl.u32.u32.u32.sat.clamp %d, %a, %b.b0;", video(SHL_C, 0, U(W, a), U(B0, b), 1, W, NONE2, c))                 \
    V(R, manual_vshl_ssat, "vshl.s32.s32.u32.sat.wrap %d, %a, %b;", video(SHL_W, 1, S(W, a), U(W, b), 1, W, NONE2, c))                     \
    V(R, vshl_add, "vshl.u32.u32.u32.wrap.add %d, %a.b2, %b, %c;", video(SHL_W, 0, U(B2, a), U(W, b), 0, W, ADD2, c))                      \
    V(R, vshr_clamp, "vshr.u32.u32.u32.clamp %d, %a, %b;", video(SHR_C, 0, U(W, a), U(W, b), 0, W, NONE2, c))                              \
    V(R, vshr_s_clamp, "vshr.s32.s32.u32.clamp %d, %a, %b;", video(SHR_C, 1, S(W, a), U(W, b), 0, W, NONE2, c))                            \
    V(R, vshr_s_usat, "vshr.u32.s32.u32.sat.wrap %d, %a, %b;", video(SHR_W, 0, S(W, a), U(W, b), 1, W, NONE2, c))                          \
    V(R, vshr_byte, "vshr.s32.s32.u32.wrap %d.b1, %a.h1, %b.b0, %c;", video(SHR_W, 1, S(H1, a), U(B0, b), 0, B1, NONE2, c))                \
    V(R, vset_lt, "vset.s32.s32.lt %d, %a, %b;", video(LT, 0, S(W, a), S(W, b), 0, W, NONE2, c))                                           \
    V(R, vset_us, "vset.u32.s32.ge %d, %a, %b;", video(GE, 0, U(W, a), S(W, b), 0, W, NONE2, c))                                           \
    V(R, vset_add, "vset.u32.u32.eq.add %d, %a.b0, %b.b0, %c;", video(EQ, 0, U(B0, a), U(B0, b), 0, W, ADD2, c))                           \
    V(R, vset_byte, "vset.s32.u32.lt %d.b3, %a, %b.h0, %c;", video(LT, 0, S(W, a), U(H0, b), 0, B3, NONE2, c))                             \
    V(R, vset_min, "vset.u32.u32.lt.min %d, %a, %b, %c;", video(LT, 0, U(W, a), U(W, b), 0, W, MIN2, c))                                   \
    V(R, vset_max, "vset.s32.s32.lt.max %d, %a, %b, %c;", video(LT, 1, S(W, a), S(W, b), 0, W, MAX2, c))                                   \
    V(R, vmad_uu, "vmad.u32.u32.u32 %d, %a, %b, %c;", mad(U(W, a), U(W, b), 0, 0, 0, 0, 0, 0, c))                                          \
    V(R, manual_vmad_uu_sat, "vmad.u32.u32.u32.sat %d, %a, %b, %c;", mad(U(W, a), U(W, b), 0, 0, 0, 0, 0, 1, c))                           \
    V(R, vmad_ss_sat, "vmad.s32.s32.s32.sat %d, %a, %b, %c;", mad(S(W, a), S(W, b), 1, 0, 0, 0, 0, 1, c))                                  \
    V(R, manual_vmad_us_sat, "vmad.s32.u32.s32.sat %d, %a, %b, %c;", mad(U(W, a), S(W, b), 1, 0, 0, 0, 0, 1, c))                           \
    V(R, vmad_bytes, "vmad.s32.s32.u32 %d, %a.b1, %b.h1, %c;", mad(S(B1, a), U(H1, b), 1, 0, 0, 0, 0, 0, c))                               \
    V(R, manual_vmad_halves_sat, "vmad.u32.u32.u32.sat %d, %a.h1, %b.h0, %c;", mad(U(H1, a), U(H0, b), 0, 0, 0, 0, 0, 1, c))               \
    V(R, manual_vmad_shr7, "vmad.u32.u32.u32.shr7 %d, %a, %b, %c;", mad(U(W, a), U(W, b), 0, 0, 0, 0, 7, 0, c))                            \
    V(R, vmad_shr15_sat, "vmad.s32.s32.s32.sat.shr15 %d, %a, %b, %c;", mad(S(W, a), S(W, b), 1, 0, 0, 0, 15, 1, c))                        \
    V(R, manual_vmad_shr7_sat, "vmad.u32.u32.u32.sat.shr7 %d, %a, %b, %c;", mad(U(W, a), U(W, b), 0, 0, 0, 0, 7, 1, c))                    \
    V(R, manual_vmad_po, "vmad.u32.u32.u32.po.shr15 %d, %a.h0, %b.h1, %c;", mad(U(H0, a), U(H1, b), 0, 0, 0, 1, 15, 0, c))                 \
    V(R, vmad_po_sat, "vmad.s32.s32.s32.po.sat %d, %a.h0, %b.h1, %c;", mad(S(H0, a), S(H1, b), 1, 0, 0, 1, 0, 1, c))                       \
    V(R, vmad_negated, "vmad.s32.s32.s32 %d, -%a, %b, %c;", mad(S(W, a), S(W, b), 1, 1, 0, 0, 0, 0, c))                                    \
    V(R, vmad_negated_sat, "vmad.s32.s32.s32.sat %d, %a, -%b, %c;", mad(S(W, a), S(W, b), 1, 1, 0, 0, 0, 1, c))                            \
    V(R, manual_vmad_negated_u, "vmad.s32.u32.u32.sat %d, -%a, %b, %c;", mad(U(W, a), U(W, b), 0, 1, 0, 0, 0, 1, c))                       \
    V(R, manual_vmad_negated_shr, "vmad.s32.u32.u32.shr15 %d, -%a, %b, %c;", mad(U(W, a), U(W, b), 0, 1, 0, 0, 15, 0, c))                  \
    V(R, vmad_twice, "vmad.s32.s32.s32.sat %d, -%a.h0, -%b, %c;", mad(S(H0, a), S(W, b), 1, 0, 0, 0, 0, 1, c))                             \
    V(R, vmad_minus_c, "vmad.s32.u32.u32.sat %d, %a.h0, %b.h0, -%c;", mad(U(H0, a), U(H0, b), 0, 0, 1, 0, 0, 1, c))                        \
    V(R, manual_vmad_minus_c_w, "vmad.s32.u32.u32.sat %d, %a, %b, -%c;", mad(U(W, a), U(W, b), 0, 0, 1, 0, 0, 1, c))                       \
    V(R, vmad_minus_c_s, "vmad.s32.s32.s32.sat.shr7 %d, %a.h0, %b.h0, -%c;", mad(S(H0, a), S(H0, b), 1, 0, 1, 0, 7, 1, c))                 \
    V(R, vadd4_selected, "vadd4.u32.u32.u32 %d, %a.b7052, %b.b3163, %c;", simd(ADD, FORM(8, 0x7052, 0x3163, 15, 0, 0, 0, 0, 0), a, b, c))  \
    V(R, vadd4_masked, "vadd4.s32.s32.u32.sat %d.b20, %a, %b, %c;", simd(ADD, FORM(8, 0x3210, 0x7654, 5, 1, 1, 0, 1, 0), a, b, c))         \
    V(R, vadd4_one, "vadd4.u32.u32.u32 %d.b1, %a, %b.b0123, %c;", simd(ADD, FORM(8, 0x3210, 0x0123, 2, 0, 0, 0, 0, 0), a, b, c))           \
    V(R, vsub4_sum, "vsub4.s32.s32.s32.add %d.b310, %a, %b.b4567, %c;", simd(SUB, FORM(8, 0x3210, 0x4567, 11, 1, 1, 1, 0, 1), a, b, c))    \
    V(R, vmax2_selected, "vmax2.s32.s32.s32 %d, %a.h21, %b.h03, %c;", simd(MAX, FORM(16, 0x21, 0x03, 3, 1, 1, 1, 0, 0), a, b, c))          \
    V(R, vabsdiff2_one, "vabsdiff2.u32.u32.u32 %d.h1, %a, %b.h10, %c;", simd(DIST, FORM(16, 0x10, 0x10, 2, 0, 0, 0, 0, 0), a, b, c))       \
    V(R, vset4_masked, "vset4.u32.u32.ge %d.b31, %a, %b, %c;", simd(GE, FORM(8, 0x3210, 0x7654, 10, 0, 0, 0, 0, 0), a, b, c))              \
    V(R, vset2_sum, "vset2.s32.s32.lt.add %d.h0, %a.h33, %b, %c;", simd(LT, FORM(16, 0x33, 0x32, 1, 0, 1, 1, 0, 1), a, b, c))

DEFINE_TABLE(video, ROWS)
