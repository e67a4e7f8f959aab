/* SPDX-License-Identifier: Apache-2.0 */
/* Double precision, one rounding for each operation (PTX ISA, "Floating Point Instructions"). */
#include "rows.h"

#include <float.h>

static double least(double a, double b)
{
    if (isnan(a))
        return b;
    if (isnan(b))
        return a;
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

/* The sign and the fraction of a number, with an exponent that is almost the greatest. */
static double great(double a)
{
    return f64_of((bits_of_f64(a) & UINT64_C(0x800fffffffffffff)) | UINT64_C(0x7fd0000000000000));
}

#define ROUNDED(R, id, suffix, mode)                                                                                                       \
    R(add_##id, "add." suffix ".f64 %d, %a, %b;", F64, F64, F64, NONE, NONE, add_f64(mode, a, b))                                          \
    R(sub_##id, "sub." suffix ".f64 %d, %a, %b;", F64, F64, F64, NONE, NONE, add_f64(mode, a, -b))                                         \
    R(add_great_##id,                                                                                                                      \
      "{ .reg .b64 %bits; mov.b64 %bits, %a; and.b64 %bits, %bits, 0x800fffffffffffff; or.b64 %bits, %bits, 0x7fd0000000000000; "          \
      "mov.b64 %d, %bits; add." suffix ".f64 %d, %d, 0dFFEFFFFFFFFFFFFF; }",                                                               \
      F64, F64, NONE, NONE, NONE, add_f64(mode, great(a), -DBL_MAX))                                                                       \
    R(mul_##id, "mul." suffix ".f64 %d, %a, %b;", F64, F64, F64, NONE, NONE, mul_f64(mode, a, b))                                          \
    R(div_##id, "div." suffix ".f64 %d, %a, %b;", F64, F64, F64, NONE, NONE, div_f64(mode, a, b))                                          \
    R(rcp_##id, "rcp." suffix ".f64 %d, %a;", F64, F64, NONE, NONE, NONE, div_f64(mode, 1, a))                                             \
    R(sqrt_##id, "sqrt." suffix ".f64 %d, %a;", F64, F64, NONE, NONE, NONE, sqrt_f64(mode, a))                                             \
    R(fma_##id, "fma." suffix ".f64 %d, %a, %b, %c;", F64, F64, F64, F64, NONE, fma_f64(mode, a, b, c))                                    \
    R(fma_near_##id, "mul.rn.f64 %c, %a, %b; neg.f64 %c, %c; fma." suffix ".f64 %d, %a, %b, %c;", F64, F64, F64, F64, NONE,                \
      fma_f64(mode, a, b, -(a * b)))

#define ROWS(R)                                                                                                                            \
    ROUNDED(R, f64_rn, "rn", NEAREST)                                                                                                      \
    ROUNDED(R, f64_rz, "rz", ZERO)                                                                                                         \
    ROUNDED(R, f64_rm, "rm", DOWN)                                                                                                         \
    ROUNDED(R, f64_rp, "rp", UP)                                                                                                           \
    R(min_f64, "min.f64 %d, %a, %b;", F64, F64, F64, NONE, NONE, least(a, b))                                                              \
    R(max_f64, "max.f64 %d, %a, %b;", F64, F64, F64, NONE, NONE, -least(-a, -b))                                                           \
    R(neg_f64, "neg.f64 %d, %a;", F64, F64, NONE, NONE, NONE, -a)                                                                          \
    R(abs_f64, "abs.f64 %d, %a;", F64, F64, NONE, NONE, NONE, fabs(a))                                                                     \
    R(copysign_f64, "copysign.f64 %d, %a, %b;", B64, F64, F64, NONE, NONE, (in[1] & INT64_MAX) | (in[0] & ~(uint64_t)INT64_MAX))           \
    R(testp_normal_f64, "testp.normal.f64 %d, %a;", PRED, F64, NONE, NONE, NONE, fpclassify(a) == FP_NORMAL || a == 0)                     \
    R(testp_subnormal_f64, "testp.subnormal.f64 %d, %a;", PRED, F64, NONE, NONE, NONE, fpclassify(a) == FP_SUBNORMAL)

DEFINE_TABLE(f64, ROWS)
