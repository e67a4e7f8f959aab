/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on f64 by integers, for devices without 64-bit floats: each result is the exact one, rounded to nearest even once. */
#ifndef PTX2SPV_SOFTWARE64_H
#define PTX2SPV_SOFTWARE64_H
/* Parts: software64_convert.c, software64_integral.c, software64_parts.c, software64_roots.c, software64_sums.c, software64_wide.c. */

#include "ptx2spv/ir/builder.h"

enum { CT_BIAS64 = 1023, CT_FRACTION_BITS64 = 52, CT_GREATEST_EXPONENT64 = 2047, CT_SPARE_BITS64 = 11 /* of 64, beside a significand */ };
#define CT_SIGN64 UINT64_C(0x8000000000000000)
#define CT_INFINITE64 UINT64_C(0x7ff0000000000000)
#define CT_ONE64 UINT64_C(0x3ff0000000000000)
#define CT_NAN64 UINT64_C(0xfff8000000000000) /* as ct_float_layout_of(PTX_F64)->nan */

/* Emits the code for an instruction, and returns its result. */
typedef ct_value (*ct_software64_fn)(struct ct_cursor *at, const struct ct_insn *insn);
#define SOFTWARE64(operation, handler, form) ct_value ct_software64_##handler(struct ct_cursor *at, const struct ct_insn *insn);
#include "software64.def"

/* ---- software64_parts.c: numbers taken apart, and rounded ---- */

/* significand / 2^63 * 2^(exponent - CT_BIAS64), without the sign. */
struct ct_parts64 {
    ct_value significand, exponent; /* 64 and 32 bits */
};

ct_value ct_magnitude64(struct ct_cursor *at, ct_value x);
ct_value ct_sign64(struct ct_cursor *at, ct_value x); /* its bit */
ct_value ct_is_nan64(struct ct_cursor *at, ct_value x);
/* Of a number that is finite; bit 63 of the significand is not set in subnormals and zeros. */
struct ct_parts64 ct_parts64_of(struct ct_cursor *at, ct_value x);
/* The same, with bit 63 set unless the number is 0. */
struct ct_parts64 ct_normalized64(struct ct_cursor *at, const struct ct_parts64 *x);
ct_value ct_shifted64(struct ct_cursor *at, enum ct_op op, ct_value x, ct_value amount);
/* Shifts right by `amount`, below 64; the last bit is set if any set bit is lost (sticky). */
ct_value ct_shifted_sticky64(struct ct_cursor *at, ct_value x, ct_value amount);
/* Sets the last bit if `condition`. */
ct_value ct_sticky64(struct ct_cursor *at, ct_value x, ct_value condition);
/* The magnitude of the nearest float with so many bits of fraction, 64 bits wide; x->exponent is that of the new format, and bit 63 of the
 * significand is set unless the result is subnormal. The significand may have a sticky last bit. */
ct_value ct_rounded_to(struct ct_cursor *at, unsigned fraction_bits, unsigned greatest_exponent, const struct ct_parts64 *x);
/* The nearest f64; the sign is its bit. */
ct_value ct_rounded64(struct ct_cursor *at, ct_value sign, const struct ct_parts64 *x);
ct_value ct_select_nan64(struct ct_cursor *at, ct_value condition, ct_value otherwise);

/* ---- software64_wide.c: integers of 128 bits ---- */

struct ct_wide {
    ct_value low, high;
};

struct ct_wide ct_wide_product(struct ct_cursor *at, ct_value a, ct_value b);
ct_value ct_upper_product(struct ct_cursor *at, ct_value a, ct_value b); /* its upper half */
struct ct_wide ct_wide_select(struct ct_cursor *at, ct_value condition, struct ct_wide yes, struct ct_wide no);
struct ct_wide ct_wide_sum(struct ct_cursor *at, struct ct_wide a, struct ct_wide b);
struct ct_wide ct_wide_difference(struct ct_cursor *at, struct ct_wide a, struct ct_wide b);
/* Shifts by an amount below 128; to the right with a sticky last bit. */
struct ct_wide ct_wide_shifted_left(struct ct_cursor *at, struct ct_wide x, ct_value amount);
struct ct_wide ct_wide_shifted_sticky(struct ct_cursor *at, struct ct_wide x, ct_value amount);
ct_value ct_wide_count_zeros(struct ct_cursor *at, struct ct_wide x);
ct_value ct_wide_is_zero(struct ct_cursor *at, struct ct_wide x);

#endif
