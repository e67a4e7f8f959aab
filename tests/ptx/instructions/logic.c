/* SPDX-License-Identifier: Apache-2.0 */
/* Logic, shifts, comparison, selection, moves (PTX ISA, "Logic and Shift Instructions", "Comparison and Selection Instructions"). */
#include "rows.h"

static uint64_t shifted_left(uint64_t a, uint32_t n, unsigned bits)
{
    return n >= bits ? 0 : a << n;
}

static uint64_t shifted_right(uint64_t a, uint32_t n, unsigned bits)
{
    return n >= bits ? 0 : a >> n;
}

static int64_t shifted_arithmetic(int64_t a, uint32_t n, unsigned bits)
{
    return a >> (n >= bits ? bits - 1 : n);
}

static uint32_t table3(uint32_t a, uint32_t b, uint32_t c, unsigned table)
{
    uint32_t d = 0;

    for (int i = 0; i < 32; i++)
        d |= (table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
    return d;
}

static uint32_t funnel(uint32_t low, uint32_t high, unsigned n, int left)
{
    const unsigned __int128 both = (uint64_t)high << 32 | low;

    return left ? (uint32_t)((both << n) >> 32) : (uint32_t)(both >> n);
}

#define ORDERED(a, b) (!isnan(a) && !isnan(b))

#define LOGIC(R)                                                                                                                           \
    R(and_b16, "and.b16 %d, %a, %b;", B16, B16, B16, NONE, NONE, a &b)                                                                     \
    R(and_b32, "and.b32 %d, %a, %b;", B32, B32, B32, NONE, NONE, a &b)                                                                     \
    R(or_b64, "or.b64 %d, %a, %b;", B64, B64, B64, NONE, NONE, a | b)                                                                      \
    R(xor_b32, "xor.b32 %d, %a, %b;", B32, B32, B32, NONE, NONE, a ^ b)                                                                    \
    R(xor_b16, "xor.b16 %d, %a, %b;", B16, B16, B16, NONE, NONE, a ^ b)                                                                    \
    R(and_pred, "and.pred %d, %a, %b;", PRED, PRED, PRED, NONE, NONE, a &&b)                                                               \
    R(or_pred, "or.pred %d, %a, %b;", PRED, PRED, PRED, NONE, NONE, a || b)                                                                \
    R(xor_pred, "xor.pred %d, %a, %b;", PRED, PRED, PRED, NONE, NONE, a != b)                                                              \
    R(not_pred, "not.pred %d, %a;", PRED, PRED, NONE, NONE, NONE, !a)                                                                      \
    R(not_b16, "not.b16 %d, %a;", B16, B16, NONE, NONE, NONE, ~a)                                                                          \
    R(not_b64, "not.b64 %d, %a;", B64, B64, NONE, NONE, NONE, ~a)                                                                          \
    R(cnot_b16, "cnot.b16 %d, %a;", B16, B16, NONE, NONE, NONE, a == 0)                                                                    \
    R(cnot_b32, "cnot.b32 %d, %a;", B32, B32, NONE, NONE, NONE, a == 0)                                                                    \
    R(cnot_b64, "cnot.b64 %d, %a;", B64, B64, NONE, NONE, NONE, a == 0)                                                                    \
    R(shl_b16, "shl.b16 %d, %a, %b;", B16, B16, U32, NONE, NONE, shifted_left(a, b, 16))                                                   \
    R(shl_b32, "shl.b32 %d, %a, %b;", B32, B32, U32, NONE, NONE, shifted_left(a, b, 32))                                                   \
    R(shl_b64, "shl.b64 %d, %a, %b;", B64, B64, U32, NONE, NONE, shifted_left(a, b, 64))                                                   \
    R(shl_32_places, "shl.b32 %d, %a, 32;", B32, B32, NONE, NONE, NONE, 0)                                                                 \
    R(shr_u16, "shr.u16 %d, %a, %b;", U16, U16, U32, NONE, NONE, shifted_right(a, b, 16))                                                  \
    R(shr_s16, "shr.s16 %d, %a, %b;", S16, S16, U32, NONE, NONE, shifted_arithmetic(a, b, 16))                                             \
    R(shr_u32, "shr.u32 %d, %a, %b;", U32, U32, U32, NONE, NONE, shifted_right(a, b, 32))                                                  \
    R(shr_s32, "shr.s32 %d, %a, %b;", S32, S32, U32, NONE, NONE, shifted_arithmetic(a, b, 32))                                             \
    R(shr_b32, "shr.b32 %d, %a, %b;", B32, B32, U32, NONE, NONE, shifted_right(a, b, 32))                                                  \
    R(shr_u64, "shr.u64 %d, %a, %b;", U64, U64, U32, NONE, NONE, shifted_right(a, b, 64))                                                  \
    R(shr_s64, "shr.s64 %d, %a, %b;", S64, S64, U32, NONE, NONE, shifted_arithmetic(a, b, 64))                                             \
    R(shr_s32_40_places, "shr.s32 %d, %a, 40;", S32, S32, NONE, NONE, NONE, a < 0 ? -1 : 0)                                                \
    R(shf_l_wrap, "shf.l.wrap.b32 %d, %a, %b, %c;", B32, B32, B32, U32, NONE, funnel(a, b, c & 31, 1))                                     \
    R(shf_l_clamp, "shf.l.clamp.b32 %d, %a, %b, %c;", B32, B32, B32, U32, NONE, funnel(a, b, c > 32 ? 32 : c, 1))                          \
    R(shf_r_wrap, "shf.r.wrap.b32 %d, %a, %b, %c;", B32, B32, B32, U32, NONE, funnel(a, b, c & 31, 0))                                     \
    R(shf_r_clamp, "shf.r.clamp.b32 %d, %a, %b, %c;", B32, B32, B32, U32, NONE, funnel(a, b, c > 32 ? 32 : c, 0))                          \
    R(shf_l_7, "shf.l.wrap.b32 %d, %a, %b, 7;", B32, B32, B32, NONE, NONE, funnel(a, b, 7, 1))                                             \
    R(shf_r_0, "shf.r.wrap.b32 %d, %a, %b, 32;", B32, B32, B32, NONE, NONE, a)                                                             \
    R(lop3_00, "lop3.b32 %d, %a, %b, %c, 0;", B32, B32, B32, B32, NONE, 0)                                                                 \
    R(lop3_96, "lop3.b32 %d, %a, %b, %c, 0x96;", B32, B32, B32, B32, NONE, a ^ b ^ c)                                                      \
    R(lop3_ca, "lop3.b32 %d, %a, %b, %c, 0xca;", B32, B32, B32, B32, NONE, (a & b) | (~a & c))                                             \
    R(lop3_e8, "lop3.b32 %d, %a, %b, %c, 0xe8;", B32, B32, B32, B32, NONE, (a & b) | (a & c) | (b & c))                                    \
    R(lop3_1b, "lop3.b32 %d, %a, %b, %c, 0x1b;", B32, B32, B32, B32, NONE, table3(a, b, c, 0x1b))                                          \
    R(lop3_2d, "lop3.b32 %d, %a, %b, %c, 0x2d;", B32, B32, B32, B32, NONE, table3(a, b, c, 0x2d))                                          \
    R(lop3_43, "lop3.b32 %d, %a, %b, %c, 0x43;", B32, B32, B32, B32, NONE, table3(a, b, c, 0x43))                                          \
    R(lop3_57, "lop3.b32 %d, %a, %b, %c, 0x57;", B32, B32, B32, B32, NONE, table3(a, b, c, 0x57))                                          \
    R(lop3_b4, "lop3.b32 %d, %a, %b, %c, 0xb4;", B32, B32, B32, B32, NONE, table3(a, b, c, 0xb4))                                          \
    R(lop3_fe, "lop3.b32 %d, %a, %b, %c, 0xfe;", B32, B32, B32, B32, NONE, a | b | c)                                                      \
    R(lop3_0f, "lop3.b32 %d, %a, %b, %c, 0x0f;", B32, B32, B32, B32, NONE, ~a)                                                             \
    R(lop3_cd, "lop3.b32 %d, %a, %b, %c, 0xcd;", B32, B32, B32, B32, NONE, table3(a, b, c, 0xcd))

#define COMPARE(R)                                                                                                                         \
    R(setp_eq_s16, "setp.eq.s16 %d, %a, %b;", PRED, S16, S16, NONE, NONE, a == b)                                                          \
    R(setp_lt_s16, "setp.lt.s16 %d, %a, %b;", PRED, S16, S16, NONE, NONE, a < b)                                                           \
    R(setp_gt_u16, "setp.gt.u16 %d, %a, %b;", PRED, U16, U16, NONE, NONE, a > b)                                                           \
    R(setp_ne_b32, "setp.ne.b32 %d, %a, %b;", PRED, B32, B32, NONE, NONE, a != b)                                                          \
    R(setp_le_s32, "setp.le.s32 %d, %a, %b;", PRED, S32, S32, NONE, NONE, a <= b)                                                          \
    R(setp_lo_u32, "setp.lo.u32 %d, %a, %b;", PRED, U32, U32, NONE, NONE, a < b)                                                           \
    R(setp_hs_u32, "setp.hs.u32 %d, %a, %b;", PRED, U32, U32, NONE, NONE, a >= b)                                                          \
    R(setp_ge_s64, "setp.ge.s64 %d, %a, %b;", PRED, S64, S64, NONE, NONE, a >= b)                                                          \
    R(setp_gt_u64, "setp.gt.u64 %d, %a, %b;", PRED, U64, U64, NONE, NONE, a > b)                                                           \
    R(setp_and, "setp.lt.and.s32 %d, %a, %b, %c;", PRED, S32, S32, PRED, NONE, a < b && c)                                                 \
    R(setp_or_not, "setp.lt.or.s32 %d, %a, %b, !%c;", PRED, S32, S32, PRED, NONE, a < b || !c)                                             \
    R(setp_xor, "setp.eq.xor.s32 %d, %a, %b, %c;", PRED, S32, S32, PRED, NONE, (a == b) != c)                                              \
    R(setp_second, "setp.lt.and.s32 %x|%d, %a, %b, %c;", PRED, S32, S32, PRED, NONE, !(a < b) && c)                                        \
    R(setp_own_guard, "mov.pred %d, %c; @%d setp.lt.s32 %d, %a, %b;", PRED, S32, S32, PRED, NONE, c ? a < b : c)                           \
    R(setp_lt_f32, "setp.lt.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, a < b)                                                           \
    R(setp_eq_f32, "setp.eq.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, a == b)                                                          \
    R(setp_ne_f32, "setp.ne.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, ORDERED(a, b) && a != b)                                         \
    R(setp_equ_f32, "setp.equ.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, !ORDERED(a, b) || a == b)                                      \
    R(setp_neu_f32, "setp.neu.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, a != b)                                                        \
    R(setp_ltu_f32, "setp.ltu.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, !ORDERED(a, b) || a < b)                                       \
    R(setp_leu_f32, "setp.leu.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, !ORDERED(a, b) || a <= b)                                      \
    R(setp_gtu_f32, "setp.gtu.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, !ORDERED(a, b) || a > b)                                       \
    R(setp_geu_f64, "setp.geu.f64 %d, %a, %b;", PRED, F64, F64, NONE, NONE, !ORDERED(a, b) || a >= b)                                      \
    R(setp_num_f32, "setp.num.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, ORDERED(a, b))                                                 \
    R(setp_nan_f64, "setp.nan.f64 %d, %a, %b;", PRED, F64, F64, NONE, NONE, !ORDERED(a, b))                                                \
    R(setp_ftz, "setp.lt.ftz.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, flush(a) < flush(b))                                            \
    R(setp_ftz_eq, "setp.eq.ftz.f32 %d, %a, %b;", PRED, F32, F32, NONE, NONE, flush(a) == flush(b))                                        \
    R(set_u32_s32, "set.lt.u32.s32 %d, %a, %b;", U32, S32, S32, NONE, NONE, a < b ? UINT32_MAX : 0)                                        \
    R(set_f32_u32, "set.ge.f32.u32 %d, %a, %b;", F32, U32, U32, NONE, NONE, a >= b)                                                        \
    R(set_s32_f32, "set.gtu.s32.f32 %d, %a, %b;", S32, F32, F32, NONE, NONE, !ORDERED(a, b) || a > b ? -1 : 0)                             \
    R(set_f32_f64, "set.le.and.f32.f64 %d, %a, %b, %c;", F32, F64, F64, PRED, NONE, a <= b && c)                                           \
    R(selp_b16, "selp.b16 %d, %a, %b, %c;", B16, B16, B16, PRED, NONE, c ? a : b)                                                          \
    R(selp_s32, "selp.s32 %d, %a, %b, %c;", S32, U32, U32, PRED, NONE, c ? a : b)                                                          \
    R(selp_b64, "selp.b64 %d, %a, %b, %c;", B64, B64, B64, PRED, NONE, c ? a : b)                                                          \
    R(selp_f32, "selp.f32 %d, %a, 0f3F800000, %c;", F32, F32, NONE, PRED, NONE, c ? a : 1)                                                 \
    R(slct_s32, "slct.u32.s32 %d, %a, %b, %c;", U32, U32, U32, S32, NONE, c >= 0 ? a : b)                                                  \
    R(slct_f32, "slct.u64.f32 %d, %a, %b, %c;", U64, U64, U64, F32, NONE, c >= 0 ? a : b)                                                  \
    R(slct_ftz, "slct.ftz.s32.f32 %d, %a, %b, %c;", S32, U32, U32, F32, NONE, flush(c) >= 0 ? a : b)

#define MOVE(R)                                                                                                                            \
    R(mov_pack, "mov.b64 %d, {%a, %b};", B64, B32, B32, NONE, NONE, (uint64_t)b << 32 | a)                                                 \
    R(mov_unpack, "mov.b64 {%y, %d}, %a;", B32, B64, NONE, NONE, NONE, a >> 32)                                                            \
    R(mov_swap, "mov.b64 {%y, %y2}, %a; mov.b64 %d, {%y2, %y};", B64, B64, NONE, NONE, NONE, a << 32 | a >> 32)                            \
    R(mov_pack_16, "mov.b32 %d, {%a, %b};", B32, B16, B16, NONE, NONE, (uint32_t)b << 16 | a)                                              \
    R(mov_unpack_16, "mov.b32 {%d, %h}, %a;", B16, B32, NONE, NONE, NONE, a)                                                               \
    R(mov_pack_4, "mov.b64 %d, {%a, %b, %c, %e};", B64, B16, B16, B16, B16, (uint64_t)e << 48 | (uint64_t)c << 32 | (uint32_t)b << 16 | a) \
    R(mov_unpack_4, "mov.b64 {%h, %h2, %d, %h}, %a;", B16, B64, NONE, NONE, NONE, a >> 32)                                                 \
    R(mov_pred, "mov.pred %d, %a;", PRED, PRED, NONE, NONE, NONE, a)                                                                       \
    R(mov_float_bits, "mov.b32 %d, %a;", B32, F32, NONE, NONE, NONE, in[0])                                                                \
    R(bra_over, "mov.u32 %d, %a; @%c bra OVER; mov.u32 %d, %b; OVER:", U32, U32, U32, PRED, NONE, c ? a : b)                               \
    R(guarded_store, "mov.u32 %d, %a; st.global.u32 [%q0], %a; @!%c st.global.u32 [%q0], %b; ld.global.u32 %d, [%q0];", U32, U32, U32,     \
      PRED, NONE, c ? a : b)                                                                                                               \
    R(loop,                                                                                                                                \
      "and.b32 %y, %a, 31; mov.u32 %d, 0; setp.eq.u32 %x, %y, 0; @%x bra END; AGAIN: add.u32 %d, %d, %y; sub.u32 %y, %y, 1; "              \
      "setp.ne.u32 %x, %y, 0; @%x bra AGAIN; END:",                                                                                        \
      U32, U32, NONE, NONE, NONE, (a & 31) * ((a & 31) + 1) / 2)

#define ROWS(R) LOGIC(R) COMPARE(R) MOVE(R)

DEFINE_TABLE(logic, ROWS)
