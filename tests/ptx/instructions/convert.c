/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions (PTX ISA, "cvt"). NaN becomes zero, except from f64 or to 64 bits, where it becomes the sign bit alone. */
#include "rows.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

#define SIGN(bits) (INT64_MIN >> (64 - (bits)))

#define INTEGERS(R)                                                                                                                        \
    R(s32_s8, "cvt.s32.s8 %d, %a;", S32, U32, NONE, NONE, NONE, (int8_t)a)                                                                 \
    R(u32_u8, "cvt.u32.u8 %d, %a;", U32, U32, NONE, NONE, NONE, (uint8_t)a)                                                                \
    R(s8_s32, "cvt.s8.s32 %d, %a;", S32, U32, NONE, NONE, NONE, (int8_t)a)                                                                 \
    R(u8_u32, "cvt.u8.u32 %d, %a;", U32, U32, NONE, NONE, NONE, (uint8_t)a)                                                                \
    R(s16_s8, "cvt.s16.s8 %d, %a;", S16, U32, NONE, NONE, NONE, (int8_t)a)                                                                 \
    R(s16_s32, "cvt.s16.s32 %d, %a;", S32, U32, NONE, NONE, NONE, (int16_t)a)                                                              \
    R(u16_u32, "cvt.u16.u32 %d, %a;", U16, U32, NONE, NONE, NONE, a)                                                                       \
    R(u16_u64, "cvt.u16.u64 %d, %a;", U32, U64, NONE, NONE, NONE, (uint16_t)a)                                                             \
    R(s32_s16, "cvt.s32.s16 %d, %a;", S32, S16, NONE, NONE, NONE, a)                                                                       \
    R(u32_s16, "cvt.u32.s16 %d, %a;", U32, S16, NONE, NONE, NONE, a)                                                                       \
    R(s64_s32, "cvt.s64.s32 %d, %a;", S64, S32, NONE, NONE, NONE, a)                                                                       \
    R(u64_u32, "cvt.u64.u32 %d, %a;", U64, U32, NONE, NONE, NONE, a)                                                                       \
    R(u64_u16, "cvt.u64.u16 %d, %a;", U64, U16, NONE, NONE, NONE, a)                                                                       \
    R(s64_s8, "cvt.s64.s8 %d, %a;", S64, U32, NONE, NONE, NONE, (int8_t)a)                                                                 \
    R(u32_u64, "cvt.u32.u64 %d, %a;", U32, U64, NONE, NONE, NONE, a)                                                                       \
    R(s8_s32_sat, "cvt.sat.s8.s32 %d, %a;", S32, S32, NONE, NONE, NONE, clamp(a, -128, 127))                                               \
    R(u8_s32_sat, "cvt.sat.u8.s32 %d, %a;", U32, S32, NONE, NONE, NONE, clamp(a, 0, 255))                                                  \
    R(u16_s32_sat, "cvt.sat.u16.s32 %d, %a;", U16, S32, NONE, NONE, NONE, clamp(a, 0, 65535))                                              \
    R(s16_u32_sat, "cvt.sat.s16.u32 %d, %a;", S16, U32, NONE, NONE, NONE, a > 32767 ? 32767 : a)                                           \
    R(u32_s32_sat, "cvt.sat.u32.s32 %d, %a;", U32, S32, NONE, NONE, NONE, a < 0 ? 0 : a)                                                   \
    R(s32_u32_sat, "cvt.sat.s32.u32 %d, %a;", S32, U32, NONE, NONE, NONE, a > INT32_MAX ? INT32_MAX : a)                                   \
    R(s32_s64_sat, "cvt.sat.s32.s64 %d, %a;", S32, S64, NONE, NONE, NONE, clamp(a, INT32_MIN, INT32_MAX))                                  \
    R(u32_s64_sat, "cvt.sat.u32.s64 %d, %a;", U32, S64, NONE, NONE, NONE, clamp(a, 0, UINT32_MAX))                                         \
    R(s64_u64_sat, "cvt.sat.s64.u64 %d, %a;", S64, U64, NONE, NONE, NONE, a > INT64_MAX ? INT64_MAX : a)                                   \
    R(u64_s64_sat, "cvt.sat.u64.s64 %d, %a;", U64, S64, NONE, NONE, NONE, a < 0 ? 0 : a)

#define FROM_INTEGERS(R)                                                                                                                   \
    R(f32_s32_rn, "cvt.rn.f32.s32 %d, %a;", F32, S32, NONE, NONE, NONE, float_of_s64(NEAREST, a))                                          \
    R(f32_s32_rz, "cvt.rz.f32.s32 %d, %a;", F32, S32, NONE, NONE, NONE, float_of_s64(ZERO, a))                                             \
    R(f32_s32_rm, "cvt.rm.f32.s32 %d, %a;", F32, S32, NONE, NONE, NONE, float_of_s64(DOWN, a))                                             \
    R(f32_u32_rp, "cvt.rp.f32.u32 %d, %a;", F32, U32, NONE, NONE, NONE, float_of_s64(UP, a))                                               \
    R(f32_u32_rn, "cvt.rn.f32.u32 %d, %a;", F32, U32, NONE, NONE, NONE, float_of_s64(NEAREST, a))                                          \
    R(f32_s64_rn, "cvt.rn.f32.s64 %d, %a;", F32, S64, NONE, NONE, NONE, float_of_s64(NEAREST, a))                                          \
    R(f32_s64_rz, "cvt.rz.f32.s64 %d, %a;", F32, S64, NONE, NONE, NONE, float_of_s64(ZERO, a))                                             \
    R(f32_s64_rm, "cvt.rm.f32.s64 %d, %a;", F32, S64, NONE, NONE, NONE, float_of_s64(DOWN, a))                                             \
    R(f32_u64_rn, "cvt.rn.f32.u64 %d, %a;", F32, U64, NONE, NONE, NONE, float_of_u64(NEAREST, a))                                          \
    R(f32_u64_rz, "cvt.rz.f32.u64 %d, %a;", F32, U64, NONE, NONE, NONE, float_of_u64(ZERO, a))                                             \
    R(f32_u64_rp, "cvt.rp.f32.u64 %d, %a;", F32, U64, NONE, NONE, NONE, float_of_u64(UP, a))                                               \
    R(f32_u16, "cvt.rn.f32.u16 %d, %a;", F32, U16, NONE, NONE, NONE, a)                                                                    \
    R(f32_s8, "cvt.rn.f32.s8 %d, %a;", F32, U32, NONE, NONE, NONE, (int8_t)a)                                                              \
    R(f64_s32, "cvt.rn.f64.s32 %d, %a;", F64, S32, NONE, NONE, NONE, a)                                                                    \
    R(f64_u32, "cvt.rn.f64.u32 %d, %a;", F64, U32, NONE, NONE, NONE, a)                                                                    \
    R(f64_s64_rn, "cvt.rn.f64.s64 %d, %a;", F64, S64, NONE, NONE, NONE, double_of_s64(NEAREST, a))                                         \
    R(f64_s64_rm, "cvt.rm.f64.s64 %d, %a;", F64, S64, NONE, NONE, NONE, double_of_s64(DOWN, a))                                            \
    R(f64_u64_rn, "cvt.rn.f64.u64 %d, %a;", F64, U64, NONE, NONE, NONE, double_of_u64(NEAREST, a))                                         \
    R(f64_u64_rz, "cvt.rz.f64.u64 %d, %a;", F64, U64, NONE, NONE, NONE, double_of_u64(ZERO, a))                                            \
    R(f64_u64_rp, "cvt.rp.f64.u64 %d, %a;", F64, U64, NONE, NONE, NONE, double_of_u64(UP, a))                                              \
    R(f16_s32, "cvt.rn.f16.s32 %d, %a;", F16, S32, NONE, NONE, NONE, f16_from_double(a, NEAREST))                                          \
    R(f16_s32_rz, "cvt.rz.f16.s32 %d, %a;", F16, S32, NONE, NONE, NONE, f16_from_double(a, ZERO))                                          \
    R(f16_s16, "cvt.rn.f16.s16 %d, %a;", F16, S16, NONE, NONE, NONE, f16_from_double(a, NEAREST))                                          \
    R(f16_u64, "cvt.rn.f16.u64 %d, %a;", F16, U64, NONE, NONE, NONE, f16_from_double((double)a, NEAREST))                                  \
    R(f32_s32_sat, "cvt.rn.sat.f32.s32 %d, %a;", F32, S32, NONE, NONE, NONE, saturate((float)a))

#define TO_INTEGERS(R)                                                                                                                     \
    R(s32_f32_rzi, "cvt.rzi.s32.f32 %d, %a;", S32, F32, NONE, NONE, NONE, to_signed(ZERO, a, 32, 0))                                       \
    R(s32_f32_rni, "cvt.rni.s32.f32 %d, %a;", S32, F32, NONE, NONE, NONE, to_signed(NEAREST, a, 32, 0))                                    \
    R(s32_f32_rmi, "cvt.rmi.s32.f32 %d, %a;", S32, F32, NONE, NONE, NONE, to_signed(DOWN, a, 32, 0))                                       \
    R(s32_f32_rpi, "cvt.rpi.s32.f32 %d, %a;", S32, F32, NONE, NONE, NONE, to_signed(UP, a, 32, 0))                                         \
    R(s32_f32_ftz, "cvt.rpi.ftz.s32.f32 %d, %a;", S32, F32, NONE, NONE, NONE, to_signed(UP, flush(a), 32, 0))                              \
    R(u32_f32_rzi, "cvt.rzi.u32.f32 %d, %a;", U32, F32, NONE, NONE, NONE, to_unsigned(ZERO, a, 32, 0))                                     \
    R(u32_f32_rni, "cvt.rni.u32.f32 %d, %a;", U32, F32, NONE, NONE, NONE, to_unsigned(NEAREST, a, 32, 0))                                  \
    R(s64_f32_rzi, "cvt.rzi.s64.f32 %d, %a;", S64, F32, NONE, NONE, NONE, to_signed(ZERO, a, 64, INT64_MIN))                               \
    R(u64_f32_rpi, "cvt.rpi.u64.f32 %d, %a;", U64, F32, NONE, NONE, NONE, to_unsigned(UP, a, 64, SIGN(64)))                                \
    R(s16_f32_rzi, "cvt.rzi.s16.f32 %d, %a;", S16, F32, NONE, NONE, NONE, to_signed(ZERO, a, 16, 0))                                       \
    R(u16_f32_rni, "cvt.rni.u16.f32 %d, %a;", U16, F32, NONE, NONE, NONE, to_unsigned(NEAREST, a, 16, 0))                                  \
    R(u8_f32_rzi, "cvt.rzi.u8.f32 %d, %a;", U32, F32, NONE, NONE, NONE, to_unsigned(ZERO, a, 8, 0))                                        \
    R(s8_f32_rzi, "cvt.rzi.s8.f32 %d, %a;", S32, F32, NONE, NONE, NONE, to_signed(ZERO, a, 8, 0))                                          \
    R(s32_f64_rzi, "cvt.rzi.s32.f64 %d, %a;", S32, F64, NONE, NONE, NONE, to_signed(ZERO, a, 32, SIGN(32)))                                \
    R(s32_f64_rni, "cvt.rni.s32.f64 %d, %a;", S32, F64, NONE, NONE, NONE, to_signed(NEAREST, a, 32, SIGN(32)))                             \
    R(u32_f64_rmi, "cvt.rmi.u32.f64 %d, %a;", U32, F64, NONE, NONE, NONE, to_unsigned(DOWN, a, 32, SIGN(32)))                              \
    R(s64_f64_rzi, "cvt.rzi.s64.f64 %d, %a;", S64, F64, NONE, NONE, NONE, to_signed(ZERO, a, 64, SIGN(64)))                                \
    R(s64_f64_rpi, "cvt.rpi.s64.f64 %d, %a;", S64, F64, NONE, NONE, NONE, to_signed(UP, a, 64, SIGN(64)))                                  \
    R(u64_f64_rzi, "cvt.rzi.u64.f64 %d, %a;", U64, F64, NONE, NONE, NONE, to_unsigned(ZERO, a, 64, SIGN(64)))                              \
    R(s32_f16_rzi, "cvt.rzi.s32.f16 %d, %a;", S32, F16, NONE, NONE, NONE, to_signed(ZERO, f16_to_float(a), 32, 0))                         \
    R(s32_f16_rni, "cvt.rni.s32.f16 %d, %a;", S32, F16, NONE, NONE, NONE, to_signed(NEAREST, f16_to_float(a), 32, 0))                      \
    R(u16_f16_rzi, "cvt.rzi.u16.f16 %d, %a;", U16, F16, NONE, NONE, NONE, to_unsigned(ZERO, f16_to_float(a), 16, 0))                       \
    R(s8_f16_rzi, "cvt.rzi.s8.f16 %d, %a;", S32, F16, NONE, NONE, NONE, to_signed(ZERO, f16_to_float(a), 8, 0))

#define BETWEEN_FLOATS(R)                                                                                                                  \
    R(f64_f32, "cvt.f64.f32 %d, %a;", F64, F32, NONE, NONE, NONE, a)                                                                       \
    R(f64_f32_ftz, "cvt.ftz.f64.f32 %d, %a;", F64, F32, NONE, NONE, NONE, flush(a))                                                        \
    R(f32_f64_rn, "cvt.rn.f32.f64 %d, %a;", F32, F64, NONE, NONE, NONE, narrow_f32(NEAREST, a))                                            \
    R(f32_f64_rz, "cvt.rz.f32.f64 %d, %a;", F32, F64, NONE, NONE, NONE, narrow_f32(ZERO, a))                                               \
    R(f32_f64_rm, "cvt.rm.f32.f64 %d, %a;", F32, F64, NONE, NONE, NONE, narrow_f32(DOWN, a))                                               \
    R(f32_f64_rp, "cvt.rp.f32.f64 %d, %a;", F32, F64, NONE, NONE, NONE, narrow_f32(UP, a))                                                 \
    R(f32_f64_ftz, "cvt.rn.ftz.f32.f64 %d, %a;", F32, F64, NONE, NONE, NONE,                                                               \
      fabs(a) < 0x1.ffffffp-127 ? copysignf(0, (float)a) : narrow_f32(NEAREST, a))                                                         \
    R(f32_f64_sat, "cvt.rn.sat.f32.f64 %d, %a;", F32, F64, NONE, NONE, NONE, narrow_f32(NEAREST, a > 0 ? (a < 1 ? a : 1) : 0))             \
    R(f16_f32_rn, "cvt.rn.f16.f32 %d, %a;", F16, F32, NONE, NONE, NONE, f16_from_double(a, NEAREST))                                       \
    R(f16_f32_rz, "cvt.rz.f16.f32 %d, %a;", F16, F32, NONE, NONE, NONE, f16_from_double(a, ZERO))                                          \
    R(f16_f32_rm, "cvt.rm.f16.f32 %d, %a;", F16, F32, NONE, NONE, NONE, f16_from_double(a, DOWN))                                          \
    R(f16_f64_rn, "cvt.rn.f16.f64 %d, %a;", F16, F64, NONE, NONE, NONE, f16_from_double(a, NEAREST))                                       \
    R(f32_f16, "cvt.f32.f16 %d, %a;", F32, F16, NONE, NONE, NONE, f16_to_float(a))                                                         \
    R(f64_f16, "cvt.f64.f16 %d, %a;", F64, F16, NONE, NONE, NONE, f16_to_float(a))                                                         \
    R(f32_sat, "cvt.sat.f32.f32 %d, %a;", F32, F32, NONE, NONE, NONE, saturate(a))                                                         \
    R(f32_ftz_sat, "cvt.ftz.sat.f32.f32 %d, %a;", F32, F32, NONE, NONE, NONE, saturate(flush(a)))                                          \
    R(f32_rni, "cvt.rni.f32.f32 %d, %a;", F32, F32, NONE, NONE, NONE, (float)integral(NEAREST, a))                                         \
    R(f32_rzi, "cvt.rzi.f32.f32 %d, %a;", F32, F32, NONE, NONE, NONE, (float)integral(ZERO, a))                                            \
    R(f32_rmi, "cvt.rmi.f32.f32 %d, %a;", F32, F32, NONE, NONE, NONE, (float)integral(DOWN, a))                                            \
    R(f32_rpi_ftz, "cvt.rpi.ftz.f32.f32 %d, %a;", F32, F32, NONE, NONE, NONE, (float)integral(UP, flush(a)))                               \
    R(f64_rni, "cvt.rni.f64.f64 %d, %a;", F64, F64, NONE, NONE, NONE, integral(NEAREST, a))                                                \
    R(f64_rzi, "cvt.rzi.f64.f64 %d, %a;", F64, F64, NONE, NONE, NONE, integral(ZERO, a))                                                   \
    R(f64_rpi, "cvt.rpi.f64.f64 %d, %a;", F64, F64, NONE, NONE, NONE, integral(UP, a))                                                     \
    R(f16_rmi, "cvt.rmi.f16.f16 %d, %a;", F16, F16, NONE, NONE, NONE, f16_from_double(integral(DOWN, f16_to_float(a)), NEAREST))

#define ROWS(R) INTEGERS(R) FROM_INTEGERS(R) TO_INTEGERS(R) BETWEEN_FLOATS(R)

DEFINE_TABLE(convert, ROWS)
