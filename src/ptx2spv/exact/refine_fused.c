/* SPDX-License-Identifier: Apache-2.0 */
/* refine: a * b + c in f64, rounded to nearest once, where the driver has no such operation. ct_fused64 computes it for all operands; this is a quarter of
 * its length, and correct for nearly all.
 *
 * The product is the sum of two f64, and with c added of three: `upper`, which is the nearest number to the whole, and two errors. Their sum `rest` is
 * rounded, and the sum of upper and rest is rounded again. That can differ from one rounding only if the first one moves the whole onto, or across, the
 * midpoint between two numbers. This midpoint minus `upper` is an f64, so that `rest` is then equal to it (rounding is monotonic), and what the second
 * rounding drops is half a unit in the last place: a power of two. If one of the errors is 0, `rest` is exact.
 *
 * Nothing underflows if the product is not below 2^-900, or a factor is 0, and what overflows makes the result infinite or NaN. A result of zero means that
 * the sum is exact; it has the sign of product + c. Compared with the C library's fma on 270 million operands, two thirds of them near midpoints or cancelling. */
#include "refine.h"
#include "lower.h"

#include <math.h>

enum { FRACTION_BITS = 52 };

static ct_value number(struct ct_cursor *at, double value)
{
    return ct_float_const(at, PTX_F64, value);
}

static ct_value compares(struct ct_cursor *at, enum ptx_compare compare, ct_value a, double b)
{
    return ct_fcmp(at, PTX_F64, compare, a, number(at, b));
}

static ct_value add(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FADD, PTX_F64, a, b);
}

static ct_value subtract(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_FSUB, PTX_F64, a, b);
}

/* Whether a number other than 0 may have been lost below the range. */
static ct_value underflows(struct ct_cursor *at, ct_value product, ct_value a, ct_value b)
{
    const ct_value is_tiny = compares(at, PTX_LT, ct_float_magnitude(at, PTX_F64, product), 0x1p-900);

    return ct_and(at, is_tiny, ct_and(at, compares(at, PTX_NEU, a, 0), compares(at, PTX_NEU, b, 0)));
}

struct ct_refined ct_refine_fused64(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    ct_value product_error, errors[2], rare;
    const ct_value product = ct_two_product64(at, a, b, &product_error);
    const ct_value lower = ct_two_sum(at, PTX_F64, c, product_error, &errors[0]);
    const ct_value upper = ct_two_sum(at, PTX_F64, product, lower, &errors[1]);
    const ct_value rest = add(at, errors[0], errors[1]), sum = add(at, upper, rest);
    const ct_value dropped = subtract(at, rest, subtract(at, sum, upper));

    rare = ct_equals(at, ct_shl_imm(at, dropped, 64 - FRACTION_BITS), 0);
    rare = ct_and(at, rare, ct_and(at, compares(at, PTX_NEU, errors[0], 0), compares(at, PTX_NEU, errors[1], 0)));
    rare = ct_or(at, rare, compares(at, PTX_GEU, ct_float_magnitude(at, PTX_F64, sum), INFINITY));
    rare = ct_or(at, rare, underflows(at, product, a, b));
    return (struct ct_refined){.result = ct_select(at, compares(at, PTX_EQ, sum, 0), add(at, product, c), sum), .rare = rare};
}

ct_value ct_refine_rare_fused64(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    ct_value error;

    return ct_fused64(at, a, b, c, &error);
}
