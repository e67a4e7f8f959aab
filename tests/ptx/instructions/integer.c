/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic Instructions"). */
#include "rows.h"

typedef __int128 wide;
typedef unsigned __int128 uwide;

/* The ISA leaves the result of a division by zero to the machine: NVIDIA's GPUs return all ones. */
static int64_t quotient(int64_t a, int64_t b)
{
    return b == 0 ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_of(int64_t a, int64_t b)
{
    return b == 0 ? -1 : b == -1 ? 0 : a % b;
}

static int32_t clamp32(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

static int32_t part24(int32_t a)
{
    return (int32_t)((uint32_t)a << 8) >> 8;
}

static uint32_t distance(int64_t a, int64_t b)
{
    return (uint32_t)(a > b ? a - b : b - a);
}

static uint32_t dot(uint32_t a, uint32_t b, uint32_t c, int sign_a, int sign_b, int halves, int from)
{
    for (int i = 0; i < (halves ? 2 : 4); i++) {
        const int64_t p =
            halves ? (sign_a ? (int16_t)(a >> 16 * i) : (uint16_t)(a >> 16 * i)) : (sign_a ? (int8_t)(a >> 8 * i) : (uint8_t)(a >> 8 * i));
        const int64_t q = sign_b ? (int8_t)(b >> 8 * (i + from)) : (uint8_t)(b >> 8 * (i + from));

        c += (uint32_t)(p * q);
    }
    return c;
}

/* Video instructions on parts of `bits` bits: applies `operation` to the parts, which are signed according to sign_a and sign_b. */
enum video { V_ADD, V_SUB, V_AVRG, V_ABSDIFF, V_MIN, V_MAX, V_LT, V_EQ };

static int32_t video_part(uint32_t a, unsigned bits, int is_signed)
{
    return is_signed ? (bits == 8 ? (int8_t)a : (int16_t)a) : (bits == 8 ? (uint8_t)a : (uint16_t)a);
}

static int32_t video_lane(enum video operation, int32_t a, int32_t b)
{
    switch (operation) {
    case V_ADD:
        return a + b;
    case V_SUB:
        return a - b;
    case V_AVRG:
        return a + b >= 0 ? (a + b + 1) / 2 : (a + b - 1) / 2;
    case V_ABSDIFF:
        return a > b ? a - b : b - a;
    case V_MIN:
        return a < b ? a : b;
    case V_MAX:
        return a > b ? a : b;
    case V_LT:
        return a < b;
    case V_EQ:
        return a == b;
    }
    return 0;
}

/* mode: 0 keeps the low bits, 1 clamps, 2 adds the parts to c; the sum is of all their bits, as in NVIDIA's driver. */
static uint32_t video(enum video operation, unsigned bits, int sign_d, int sign_a, int sign_b, int mode, uint32_t a, uint32_t b, uint32_t c)
{
    const int32_t low = sign_d ? -(1 << (bits - 1)) : 0, high = sign_d ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    uint32_t parts = 0, sum = c;

    for (unsigned i = 0; i < 32; i += bits) {
        int32_t part = video_lane(operation, video_part(a >> i, bits, sign_a), video_part(b >> i, bits, sign_b));

        if (mode == 1)
            part = part < low ? low : part > high ? high : part;
        parts |= ((uint32_t)part & ((1u << bits) - 1)) << i;
        sum += (uint32_t)part;
    }
    return mode == 2 ? sum : parts;
}

#define ROWS(R)                                                                                                                            \
    R(add_s16, "add.s16 %d, %a, %b;", S16, S16, S16, NONE, NONE, a + b)                                                                    \
    R(add_u16, "add.u16 %d, %a, %b;", U16, U16, U16, NONE, NONE, a + b)                                                                    \
    R(add_s32, "add.s32 %d, %a, %b;", S32, U32, U32, NONE, NONE, a + b)                                                                    \
    R(add_u64, "add.u64 %d, %a, %b;", U64, U64, U64, NONE, NONE, a + b)                                                                    \
    R(add_sat, "add.sat.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, clamp32((int64_t)a + b))                                              \
    R(add_imm, "add.s32 %d, %a, -7;", S32, U32, NONE, NONE, NONE, a - 7)                                                                   \
    R(sub_s16, "sub.s16 %d, %a, %b;", S16, S16, S16, NONE, NONE, a - b)                                                                    \
    R(sub_s32, "sub.s32 %d, %a, %b;", S32, U32, U32, NONE, NONE, a - b)                                                                    \
    R(sub_s64, "sub.s64 %d, %a, %b;", S64, U64, U64, NONE, NONE, a - b)                                                                    \
    R(sub_sat, "sub.sat.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, clamp32((int64_t)a - b))                                              \
    R(mul_lo_s16, "mul.lo.s16 %d, %a, %b;", S16, S16, S16, NONE, NONE, a *b)                                                               \
    R(mul_lo_s32, "mul.lo.s32 %d, %a, %b;", S32, U32, U32, NONE, NONE, a *b)                                                               \
    R(mul_lo_u64, "mul.lo.u64 %d, %a, %b;", U64, U64, U64, NONE, NONE, a *b)                                                               \
    R(mul_hi_s16, "mul.hi.s16 %d, %a, %b;", S16, S16, S16, NONE, NONE, (a * b) >> 16)                                                      \
    R(mul_hi_u16, "mul.hi.u16 %d, %a, %b;", U16, U16, U16, NONE, NONE, ((uint32_t)a * b) >> 16)                                            \
    R(mul_hi_s32, "mul.hi.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, ((int64_t)a * b) >> 32)                                             \
    R(mul_hi_u32, "mul.hi.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, ((uint64_t)a * b) >> 32)                                            \
    R(mul_hi_s64, "mul.hi.s64 %d, %a, %b;", S64, S64, S64, NONE, NONE, ((wide)a * b) >> 64)                                                \
    R(mul_hi_u64, "mul.hi.u64 %d, %a, %b;", U64, U64, U64, NONE, NONE, ((uwide)a * b) >> 64)                                               \
    R(mul_wide_s16, "mul.wide.s16 %d, %a, %b;", S32, S16, S16, NONE, NONE, a *b)                                                           \
    R(mul_wide_u16, "mul.wide.u16 %d, %a, %b;", U32, U16, U16, NONE, NONE, (uint32_t)a *b)                                                 \
    R(mul_wide_s32, "mul.wide.s32 %d, %a, %b;", S64, S32, S32, NONE, NONE, (int64_t)a *b)                                                  \
    R(mul_wide_u32, "mul.wide.u32 %d, %a, %b;", U64, U32, U32, NONE, NONE, (uint64_t)a *b)                                                 \
    R(mad_lo_s32, "mad.lo.s32 %d, %a, %b, %c;", S32, U32, U32, U32, NONE, a *b + c)                                                        \
    R(mad_lo_u16, "mad.lo.u16 %d, %a, %b, %c;", U16, U16, U16, U16, NONE, (uint32_t)a *b + c)                                              \
    R(mad_lo_s64, "mad.lo.s64 %d, %a, %b, %c;", S64, U64, U64, U64, NONE, a *b + c)                                                        \
    R(mad_hi_s32, "mad.hi.s32 %d, %a, %b, %c;", S32, S32, S32, S32, NONE, (((int64_t)a * b) >> 32) + c)                                    \
    R(mad_hi_u64, "mad.hi.u64 %d, %a, %b, %c;", U64, U64, U64, U64, NONE, (uint64_t)(((uwide)a * b) >> 64) + c)                            \
    R(mad_hi_sat, "mad.hi.sat.s32 %d, %a, %b, %c;", S32, S32, S32, S32, NONE, clamp32((((int64_t)a * b) >> 32) + c))                       \
    R(mad_wide_s32, "mad.wide.s32 %d, %a, %b, %c;", S64, S32, S32, S64, NONE, (uint64_t)((int64_t)a * b) + (uint64_t)c)                    \
    R(mad_wide_u16, "mad.wide.u16 %d, %a, %b, %c;", U32, U16, U16, U32, NONE, (uint32_t)a *b + c)                                          \
    R(mul24_lo_s32, "mul24.lo.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, (int64_t)part24(a) * part24(b))                                 \
    R(mul24_hi_s32, "mul24.hi.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, ((int64_t)part24(a) * part24(b)) >> 16)                         \
    R(mul24_lo_u32, "mul24.lo.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, (uint64_t)(a & 0xffffff) * (b & 0xffffff))                      \
    R(mul24_hi_u32, "mul24.hi.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, ((uint64_t)(a & 0xffffff) * (b & 0xffffff)) >> 16)              \
    R(mad24_lo_u32, "mad24.lo.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, (uint64_t)(a & 0xffffff) * (b & 0xffffff) + c)               \
    R(div_s16, "div.s16 %d, %a, %b;", S16, S16, S16, NONE, NONE, quotient(a, b))                                                           \
    R(div_u16, "div.u16 %d, %a, %b;", U16, U16, U16, NONE, NONE, b ? a / b : UINT16_MAX)                                                   \
    R(div_s32, "div.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, quotient(a, b))                                                           \
    R(div_u32, "div.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, b ? a / b : UINT32_MAX)                                                   \
    R(div_s64, "div.s64 %d, %a, %b;", S64, S64, S64, NONE, NONE, quotient(a, b))                                                           \
    R(div_u64, "div.u64 %d, %a, %b;", U64, U64, U64, NONE, NONE, b ? a / b : UINT64_MAX)                                                   \
    R(div_by_7, "div.s32 %d, %a, 7;", S32, S32, NONE, NONE, NONE, a / 7)                                                                   \
    R(div_by_minus_1, "div.s32 %d, %a, -1;", S32, U32, NONE, NONE, NONE, 0 - a)                                                            \
    R(rem_s16, "rem.s16 %d, %a, %b;", S16, S16, S16, NONE, NONE, remainder_of(a, b))                                                       \
    R(rem_s32, "rem.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, remainder_of(a, b))                                                       \
    R(rem_u32, "rem.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, b ? a % b : UINT32_MAX)                                                   \
    R(rem_s64, "rem.s64 %d, %a, %b;", S64, S64, S64, NONE, NONE, remainder_of(a, b))                                                       \
    R(rem_u64, "rem.u64 %d, %a, %b;", U64, U64, U64, NONE, NONE, b ? a % b : UINT64_MAX)                                                   \
    R(abs_s16, "abs.s16 %d, %a;", S16, S16, NONE, NONE, NONE, a < 0 ? -a : a)                                                              \
    R(abs_s32, "abs.s32 %d, %a;", S32, S32, NONE, NONE, NONE, a < 0 ? 0 - (uint32_t)a : (uint32_t)a)                                       \
    R(abs_s64, "abs.s64 %d, %a;", S64, S64, NONE, NONE, NONE, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)                                       \
    R(neg_s16, "neg.s16 %d, %a;", S16, S16, NONE, NONE, NONE, -a)                                                                          \
    R(neg_s32, "neg.s32 %d, %a;", S32, U32, NONE, NONE, NONE, 0 - a)                                                                       \
    R(neg_s64, "neg.s64 %d, %a;", S64, U64, NONE, NONE, NONE, 0 - a)                                                                       \
    R(min_s16, "min.s16 %d, %a, %b;", S16, S16, S16, NONE, NONE, a < b ? a : b)                                                            \
    R(min_u16, "min.u16 %d, %a, %b;", U16, U16, U16, NONE, NONE, a < b ? a : b)                                                            \
    R(min_s32, "min.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, a < b ? a : b)                                                            \
    R(min_u32, "min.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, a < b ? a : b)                                                            \
    R(min_s64, "min.s64 %d, %a, %b;", S64, S64, S64, NONE, NONE, a < b ? a : b)                                                            \
    R(min_u64, "min.u64 %d, %a, %b;", U64, U64, U64, NONE, NONE, a < b ? a : b)                                                            \
    R(max_s16, "max.s16 %d, %a, %b;", S16, S16, S16, NONE, NONE, a > b ? a : b)                                                            \
    R(max_s32, "max.s32 %d, %a, %b;", S32, S32, S32, NONE, NONE, a > b ? a : b)                                                            \
    R(max_u32, "max.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, a > b ? a : b)                                                            \
    R(max_u64, "max.u64 %d, %a, %b;", U64, U64, U64, NONE, NONE, a > b ? a : b)                                                            \
    R(sad_s32, "sad.s32 %d, %a, %b, %c;", S32, S32, S32, U32, NONE, c + distance(a, b))                                                    \
    R(sad_u32, "sad.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, c + distance(a, b))                                                    \
    R(sad_u16, "sad.u16 %d, %a, %b, %c;", U16, U16, U16, U16, NONE, c + distance(a, b))                                                    \
    R(dp4a_ss, "dp4a.s32.s32 %d, %a, %b, %c;", S32, U32, U32, U32, NONE, dot(a, b, c, 1, 1, 0, 0))                                         \
    R(dp4a_uu, "dp4a.u32.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, dot(a, b, c, 0, 0, 0, 0))                                         \
    R(dp4a_su, "dp4a.s32.u32 %d, %a, %b, %c;", S32, U32, U32, U32, NONE, dot(a, b, c, 1, 0, 0, 0))                                         \
    R(dp2a_lo, "dp2a.lo.s32.s32 %d, %a, %b, %c;", S32, U32, U32, U32, NONE, dot(a, b, c, 1, 1, 1, 0))                                      \
    R(dp2a_hi, "dp2a.hi.u32.s32 %d, %a, %b, %c;", S32, U32, U32, U32, NONE, dot(a, b, c, 0, 1, 1, 2))                                      \
    R(vadd4_uuu, "vadd4.u32.u32.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ADD, 8, 0, 0, 0, 0, a, b, c))                      \
    R(vadd4_sat, "vadd4.u32.u32.u32.sat %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ADD, 8, 0, 0, 0, 1, a, b, c))                  \
    R(vadd4_ssat, "vadd4.s32.s32.s32.sat %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ADD, 8, 1, 1, 1, 1, a, b, c))                 \
    R(vadd4_mixed, "vadd4.s32.s32.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ADD, 8, 1, 1, 0, 0, a, b, c))                    \
    R(vadd4_add, "vadd4.s32.s32.s32.add %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ADD, 8, 1, 1, 1, 2, a, b, c))                  \
    R(vadd2_sat, "vadd2.u32.u32.s32.sat %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ADD, 16, 0, 0, 1, 1, a, b, c))                 \
    R(vadd2_add, "vadd2.u32.u32.u32.add %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ADD, 16, 0, 0, 0, 2, a, b, c))                 \
    R(vsub4, "vsub4.u32.u32.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_SUB, 8, 0, 0, 0, 0, a, b, c))                          \
    R(vsub4_sat, "vsub4.u32.u32.u32.sat %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_SUB, 8, 0, 0, 0, 1, a, b, c))                  \
    R(vsub2_ssat, "vsub2.s32.u32.u32.sat %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_SUB, 16, 1, 0, 0, 1, a, b, c))                \
    R(vavrg4_u, "vavrg4.u32.u32.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_AVRG, 8, 0, 0, 0, 0, a, b, c))                     \
    R(vavrg4_s, "vavrg4.s32.s32.s32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_AVRG, 8, 1, 1, 1, 0, a, b, c))                     \
    R(vavrg2_s, "vavrg2.s32.s32.s32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_AVRG, 16, 1, 1, 1, 0, a, b, c))                    \
    R(vabsdiff4, "vabsdiff4.u32.u32.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ABSDIFF, 8, 0, 0, 0, 0, a, b, c))              \
    R(vabsdiff4_add, "vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ABSDIFF, 8, 0, 0, 0, 2, a, b, c))      \
    R(vabsdiff4_s, "vabsdiff4.u32.s32.s32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ABSDIFF, 8, 0, 1, 1, 0, a, b, c))            \
    R(vabsdiff2_add, "vabsdiff2.u32.u32.u32.add %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ABSDIFF, 16, 0, 0, 0, 2, a, b, c))     \
    R(vabsdiff2_sat, "vabsdiff2.s32.s32.s32.sat %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_ABSDIFF, 16, 1, 1, 1, 1, a, b, c))     \
    R(vmin4_u, "vmin4.u32.u32.u32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_MIN, 8, 0, 0, 0, 0, a, b, c))                        \
    R(vmin2_s, "vmin2.s32.s32.s32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_MIN, 16, 1, 1, 1, 0, a, b, c))                       \
    R(vmax4_s, "vmax4.s32.s32.s32 %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_MAX, 8, 1, 1, 1, 0, a, b, c))                        \
    R(vmax2_u, "vmax2.u32.u32.u32.add %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_MAX, 16, 0, 0, 0, 2, a, b, c))                   \
    R(vset4_lt, "vset4.u32.u32.lt %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_LT, 8, 0, 0, 0, 0, a, b, c))                         \
    R(vset4_lt_s, "vset4.s32.s32.lt.add %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_LT, 8, 0, 1, 1, 2, a, b, c))                   \
    R(vset2_eq, "vset2.u32.u32.eq %d, %a, %b, %c;", U32, U32, U32, U32, NONE, video(V_EQ, 16, 0, 0, 0, 0, a, b, c))                        \
    R(add_cc, "add.cc.u32 %y, %a, %b; addc.u32 %d, %c, %e;", U32, U32, U32, U32, U32, c + e + (uint32_t)(((uint64_t)a + b) >> 32))         \
    R(addc_cc, "add.cc.u32 %y, %a, %b; addc.cc.u32 %y, %c, %e; addc.u32 %d, 0, 0;", U32, U32, U32, U32, U32,                               \
      ((uint64_t)c + e + (((uint64_t)a + b) >> 32)) >> 32)                                                                                 \
    R(sub_cc, "sub.cc.u32 %y, %a, %b; subc.u32 %d, %c, %e;", U32, U32, U32, U32, U32, c - e - (a < b))                                     \
    R(subc_cc, "sub.cc.u32 %y, %a, %b; subc.cc.u32 %y, %c, %e; subc.u32 %d, 0, 0;", U32, U32, U32, U32, U32,                               \
      (uint32_t)(((uint64_t)c - e - (a < b)) >> 32))                                                                                       \
    R(sub_cc_addc, "sub.cc.u32 %y, %a, %b; addc.u32 %d, %c, %e;", U32, U32, U32, U32, U32, c + e + (a >= b))                               \
    R(sub_cc_zero_addc, "sub.cc.u32 %y, %a, 0; addc.u32 %d, %c, %e;", U32, U32, U32, U32, U32, c + e + 1)                                  \
    R(sub_cc_five_addc, "sub.cc.u32 %y, %a, 5; addc.u32 %d, %c, %e;", U32, U32, U32, U32, U32, c + e + (a >= 5))                           \
    R(five_sub_cc_addc, "sub.cc.s32 %y, 5, %a; addc.u32 %d, %c, %e;", U32, U32, U32, U32, U32, c + e + (a <= 5))                           \
    R(sub_cc_u64_addc, "sub.cc.u64 %z, %a, %b; addc.u64 %d, %c, %e;", U64, U64, U64, U64, U64, c + e + (a >= b))                           \
    R(add_cc_subc, "add.cc.u32 %y, %a, %b; subc.u32 %d, %c, %e;", U32, U32, U32, U32, U32, c - e - !(((uint64_t)a + b) >> 32))             \
    R(add_cc_subc_u64, "add.cc.u64 %z, %a, %b; subc.u64 %d, %c, %e;", U64, U64, U64, U64, U64, c - e - !(((uwide)a + b) >> 64))            \
    R(subc_cc_addc, "add.cc.u32 %y, %a, %b; subc.cc.u32 %y, %c, %e; addc.u32 %d, 0, 0;", U32, U32, U32, U32, U32,                          \
      (uint32_t)(((uint64_t)c + ~e + (((uint64_t)a + b) >> 32)) >> 32))                                                                    \
    R(mad_cc_subc, "mad.lo.cc.u32 %y, %a, %b, %c; subc.u32 %d, %e, 0;", U32, U32, U32, U32, U32,                                           \
      e - !((((uint64_t)a * b & UINT32_MAX) + c) >> 32))                                                                                   \
    R(sub_cc_madc, "sub.cc.u32 %y, %a, %b; madc.lo.u32 %d, %a, %c, %e;", U32, U32, U32, U32, U32, a *c + e + (a >= b))                     \
    R(add_cc_u64, "add.cc.u64 %z, %a, %b; addc.u64 %d, %c, %e;", U64, U64, U64, U64, U64, c + e + (uint64_t)(((uwide)a + b) >> 64))        \
    R(mad_cc, "mad.lo.cc.u32 %y, %a, %b, %c; madc.hi.u32 %d, %a, %b, %e;", U32, U32, U32, U32, U32,                                        \
      (uint32_t)(((uint64_t)a * b) >> 32) + e + (uint32_t)((((uint64_t)a * b & UINT32_MAX) + c) >> 32))                                    \
    R(madc_hi_cc, "mad.hi.cc.u32 %y, %a, %b, %c; addc.u32 %d, %e, 0;", U32, U32, U32, U32, U32,                                            \
      e + (uint32_t)(((((uint64_t)a * b) >> 32) + c) >> 32))                                                                               \
    R(guarded_add, "mov.u32 %d, %c; @%e add.u32 %d, %a, %b;", U32, U32, U32, U32, PRED, e ? a + b : c)                                     \
    R(guarded_not, "mov.u32 %d, %c; @!%e sub.u32 %d, %a, %b;", U32, U32, U32, U32, PRED, e ? c : a - b)

DEFINE_TABLE(integer, ROWS)
