/* SPDX-License-Identifier: Apache-2.0 */
/* Roots and inverses of f64 in one kernel, since the compiler groups those that it computes itself: inverses of roots, independent ones and
 * ones that depend on others, and comparisons of the results. */
#include "rows.h"

#define REGISTERS ".reg .f64 %r<8>;\n"

/* Each term is rounded separately; the result is NaN where an operand is negative. */
static double sum_of_roots(double a, double b, double c)
{
    const double x = sqrt(a), y = sqrt(b), z = sqrt(c);
    const double products = x * y + 1 / y;

    return sqrt(products) + 1 / z;
}

static double chain(double a)
{
    const double x = 1 / sqrt(a), y = 1 / x;

    return sqrt(sqrt(y)) - 1 / sqrt(y);
}

static double many(double a, double b, double c)
{
    const double x[6] = {fabs(a), fabs(b), fabs(c), fabs(a) + 1, fabs(b) + 2, fabs(c) + 3};
    double sum = 0;

    for (int i = 0; i < 6; i++)
        sum += i % 2 ? 1 / sqrt(x[i]) : 1 / x[i] - sqrt(x[i]);
    return sum;
}

#define SQUARE_ROOT_OF(number, x) "abs.f64 %r0, " x "; add.f64 %r0, %r0, 0d" number "; sqrt.rn.f64 %r1, %r0;\n"
#define ADD_DIFFERENCE "rcp.rn.f64 %r2, %r0; sub.f64 %r2, %r2, %r1; add.f64 %r3, %r3, %r2;\n"
#define ADD_INVERSE "rcp.rn.f64 %r2, %r1; add.f64 %r3, %r3, %r2;\n"

#define ROWS(R)                                                                                                                            \
    R(inverse_of_root_f64, "sqrt.rn.f64 %d, %a; rcp.rn.f64 %d, %d;", F64, F64, NONE, NONE, NONE, 1 / sqrt(a))                              \
    R(divided_by_root_f64, "sqrt.rn.f64 %d, %a; div.rn.f64 %d, %b, %d;", F64, F64, F64, NONE, NONE, b / sqrt(a))                           \
    R(both_of_root_f64, "sqrt.rn.f64 %d, %a; rcp.rn.f64 %z, %d; sub.f64 %d, %z, %d;", F64, F64, NONE, NONE, NONE, 1 / sqrt(a) - sqrt(a))   \
    R(sum_of_roots_f64,                                                                                                                    \
      REGISTERS "sqrt.rn.f64 %r0, %a; sqrt.rn.f64 %r1, %b; mul.rn.f64 %r2, %r0, %r1; rcp.rn.f64 %r3, %r1;\n"                               \
                "sqrt.rn.f64 %r4, %c; add.rn.f64 %r2, %r2, %r3; sqrt.rn.f64 %r5, %r2; rcp.rn.f64 %r6, %r4; add.rn.f64 %d, %r5, %r6;",      \
      F64, F64, F64, F64, NONE, sum_of_roots(a, b, c))                                                                                     \
    R(chain_of_roots_f64,                                                                                                                  \
      REGISTERS "sqrt.rn.f64 %r0, %a; rcp.rn.f64 %r1, %r0; rcp.rn.f64 %r2, %r1; sqrt.rn.f64 %r3, %r2;\n"                                   \
                "sqrt.rn.f64 %r4, %r3; rcp.rn.f64 %r5, %r3; sub.rn.f64 %d, %r4, %r5;",                                                     \
      F64, F64, NONE, NONE, NONE, chain(a))                                                                                                \
    R(many_roots_f64,                                                                                                                      \
      REGISTERS "mov.f64 %r3, 0d0000000000000000;\n" SQUARE_ROOT_OF("0000000000000000", "%a")                                              \
          ADD_DIFFERENCE SQUARE_ROOT_OF("0000000000000000", "%b") ADD_INVERSE SQUARE_ROOT_OF("0000000000000000", "%c")                     \
              ADD_DIFFERENCE SQUARE_ROOT_OF("3ff0000000000000", "%a") ADD_INVERSE SQUARE_ROOT_OF("4000000000000000", "%b")                 \
                  ADD_DIFFERENCE SQUARE_ROOT_OF("4008000000000000", "%c") ADD_INVERSE "mov.f64 %d, %r3;",                                  \
      F64, F64, F64, F64, NONE, many(a, b, c))                                                                                             \
    R(lesser_root_f64, REGISTERS "sqrt.rn.f64 %r0, %a; sqrt.rn.f64 %r1, %b; setp.lt.f64 %d, %r0, %r1;", PRED, F64, F64, NONE, NONE,        \
      sqrt(a) < sqrt(b))                                                                                                                   \
    R(narrow_root_f64, REGISTERS "sqrt.rn.f64 %r0, %a; cvt.rn.f32.f64 %d, %r0; setp.gt.f32 %x, %d, %b; selp.f32 %d, %b, %d, %x;", F32,     \
      F64, F32, NONE, NONE, (float)sqrt(a) > b ? b : (float)sqrt(a))

DEFINE_TABLE(roots, ROWS)
