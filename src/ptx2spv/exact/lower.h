/* SPDX-License-Identifier: Apache-2.0 */
/* Between lower.c, which walks the instructions, and the files that know one kind of operation (lower_*.c). */
#ifndef PTX2SPV_LOWER_H
#define PTX2SPV_LOWER_H
/* Parts: lower_approximate.c, lower_convert.c, lower_divide.c, lower_float.c, lower_fma64.c, lower_integer.c, lower_round.c. */

#include "ptx2spv/ir/builder.h"

struct ct_lower {
    struct ct_fn *fn;
    struct ct_cursor at;  /* before the instruction that is being replaced */
    struct ct_insn *insn; /* that one */
    ct_value tiny;        /* set by an operation that .ftz is on: see ct_is_tiny64 */
    uint8_t *flushed;     /* by value that existed before: known to be no subnormal f32 */
    uint32_t n_flushed;
};

typedef ct_value (*ct_lower_fn)(struct ct_lower *l);
#define LOWER(operation, handler) ct_value ct_lower_##handler(struct ct_lower *l);
#include "lower.def"

/* Reports that the target lacks what the instruction needs. */
void ct_lower_lacks(struct ct_lower *l, const char *what);

/* ---- lower_float.c: parts of encodings ---- */
struct ct_float_layout {
    uint64_t sign, exponent, fraction; /* masks */
    uint64_t one, nan;                 /* 1.0, and the NaN that NVIDIA's devices give */
};
const struct ct_float_layout *ct_float_layout_of(enum ptx_type type); /* f16, f32, f64, bf16 */
ct_value ct_float_const(struct ct_cursor *at, enum ptx_type type, double value);
static inline ct_value ct_float2(struct ct_cursor *at, enum ct_op op, enum ptx_type type, ct_value a, ct_value b)
{
    return ct_op2(at, op, type, a, b);
}
ct_value ct_float_negated(struct ct_cursor *at, enum ptx_type type, ct_value x);
ct_value ct_float_magnitude(struct ct_cursor *at, enum ptx_type type, ct_value x);
/* Subnormals become zeros of the same sign. */
ct_value ct_float_flushed(struct ct_cursor *at, enum ptx_type type, ct_value x);
/* Between 0 and 1; NaN and -0 become +0. */
ct_value ct_float_saturated(struct ct_cursor *at, enum ptx_type type, ct_value x);
/* SPIR-V's conversion between float types, nearest even when it narrows. */
ct_value ct_float_resized(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, ct_value x);
ct_value ct_float_is_nan(struct ct_cursor *at, enum ptx_type type, ct_value x);
/* bf16, for which no target has instructions: as the f32 that it is the upper half of; and from f32 or f64, rounded to nearest even. */
ct_value ct_bf16_widened(struct ct_cursor *at, ct_value x);
ct_value ct_bf16_narrowed(struct ct_lower *l, enum ptx_type from, ct_value x);
/* An f32 comparison that sees subnormals, on a target whose own may not. */
ct_value ct_float_compared(struct ct_cursor *at, enum ptx_compare compare, ct_value a, ct_value b);
/* An operand of the instruction, flushed if it says .ftz. */
ct_value ct_lower_operand(struct ct_lower *l, unsigned index, enum ptx_type type);
bool ct_rounds_to_nearest(unsigned rounding); /* enum ptx_rounding: absent or .rn */

/* ---- lower_round.c: exactness ---- */
/* a + b in `type` (f32 or f64), and *error = exactly what rounding took away (NaN where the sum is not finite). */
ct_value ct_two_sum(struct ct_cursor *at, enum ptx_type type, ct_value a, ct_value b, ct_value *error);
/* A value rounded to nearest becomes one rounded to odd, if `error` is what is missing: a later rounding to at least two bits fewer
 * then is a single rounding of the exact value. */
ct_value ct_to_odd(struct ct_cursor *at, enum ptx_type type, ct_value nearest, ct_value error);
/* nearest, moved by one place where `rounding` (RZ, RM, RP) wants so: the exact value is below, above it, or neither. */
ct_value ct_adjusted(struct ct_cursor *at, enum ptx_type type, enum ptx_rounding rounding, ct_value nearest, ct_value is_below,
                     ct_value is_above);
/* A float as one of a narrower type, rounded as told. */
ct_value ct_float_narrowed(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, enum ptx_rounding rounding, ct_value x);
/* The same, rounded to odd. */
ct_value ct_float_narrowed_to_odd(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, ct_value x);

/* Whether x, an exact f64 or one rounded to odd, is below the least normal f32 once it is rounded to 24 bits of any exponent: such
 * results are what .ftz flushes (measured on an H200). */
ct_value ct_is_tiny64(struct ct_cursor *at, enum ptx_rounding rounding, ct_value x);

/* Cores: one rounding of the exact result; operands and result are plain values of l->insn->type. */
ct_value ct_lower_sum(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b);
ct_value ct_lower_product(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b);
ct_value ct_lower_fused(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b, ct_value c);
/* The f32 that a * b + c is rounded to, of f32 widened to f64; by operations of f64 that round to nearest. */
ct_value ct_fused_from_wide(struct ct_cursor *at, ct_value a, ct_value b, ct_value c);
/* The same of bf16 operands widened to f32, rounded to nearest; the result is bf16. */
ct_value ct_lower_fused_bf16(struct ct_lower *l, ct_value a, ct_value b, ct_value c);
/* Whether fma.rn.f32 is left to `guard`. */
bool ct_guards_fma32(const struct ptx2spv_target *target);
/* ---- lower_divide.c ---- */
ct_value ct_lower_quotient(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b);
ct_value ct_lower_root(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a);
/* The driver's operation on f64, to be refined where the target has that. */
ct_value ct_lower_driver_root64(struct ct_lower *l, ct_value a);
ct_value ct_lower_driver_inverse64(struct ct_lower *l, ct_value b);
/* ---- lower_approximate.c: within the ISA's bounds ---- */
ct_value ct_lower_approximation(struct ct_lower *l, enum ptx_type type, const ct_value *operands);
/* ---- lower_fma64.c ---- */
/* a * b + c in f64 with one rounding to nearest, from operations that round one by one. *error has the sign of what the result lacks to
 * the exact value: 0 if nothing, or if the result is not finite. */
ct_value ct_fused64(struct ct_cursor *at, ct_value a, ct_value b, ct_value c, ct_value *error);

#endif
