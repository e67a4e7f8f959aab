/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the families of integer and float arithmetic: opcodes that have both forms. */
#ifndef PTX2SPV_BUILD_ARITHMETIC_H
#define PTX2SPV_BUILD_ARITHMETIC_H
/* Parts: build_float.c, build_integer.c, build_logic.c. */

#include "build.h"

/* Builds a float operation with `sources` operands of the instruction's first type, with its rounding, .ftz, .sat, .approx, .NaN and
 * .relu; on both halves if the type is packed. Writes the result. */
void ct_build_float_operation(struct ct_build *b, enum ct_op op, unsigned sources);
/* min and max of a float type, with two or three sources. */
void ct_build_float_min_max(struct ct_build *b);
/* Applies .relu to a result of a scalar float type. */
ct_value ct_build_relu(struct ct_build *b, enum ptx_type type, ct_value x);
/* Builds add, sub or mad with a carry-in (takes_carry), a carry-out (.cc), or both. */
void ct_build_carry_arithmetic(struct ct_build *b, bool takes_carry);
/* Shifts x by any 32-bit amount, with PTX's clamping: amounts beyond the width shift out all bits. */
ct_value ct_build_clamped_shift(struct ct_cursor *at, enum ct_op op, enum ptx_type type, ct_value x, ct_value amount);

#endif
