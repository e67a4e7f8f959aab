/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between lower.c, which iterates over the instructions, and the files that each handle one kind of operation (lower_*.c). */
#ifndef PTX2SPV_LOWER_H
#define PTX2SPV_LOWER_H
/* Parts: half.c, lower_approximate.c, lower_convert.c, lower_divide.c, lower_divide32.c, lower_fused32.c, lower_float.c, lower_fma64.c, lower_integer.c, lower_permute.c, lower_round.c,
 * lower_subroutine.c. */

#include "ptx2spv/ir/builder.h"

struct ct_lower {
    struct ct_fn *fn;
    struct ct_cursor at;  /* before the instruction that is being replaced */
    struct ct_insn *insn; /* the instruction that is being replaced */
    ct_value tiny;        /* set by operations with .ftz: see ct_is_tiny64 */
    uint8_t *flushed;     /* indexed by value of the original function: known not to be a subnormal f32 */
    uint32_t n_flushed;
};

typedef ct_value (*ct_lower_fn)(struct ct_lower *l);
#define LOWER(operation, handler) ct_value ct_lower_##handler(struct ct_lower *l);
#include "lower.def"

/* ---- lower_subroutine.c ---- */
/* The result of the call of a subroutine that does what the instruction does; none if it is too short for one. */
ct_value ct_lower_by_call(struct ct_lower *l);
/* The result of that call, however short the sequence. */
ct_value ct_lower_call(struct ct_lower *l);
/* The call of a subroutine that does what an instruction of at->fn does, possibly with other operands. */
struct ct_subroutine_call {
    const ct_value *operands; /* as many as the instruction has */
    uint32_t flushed;         /* the set of those that are known not to be subnormal f32 */
    bool expands_software64;  /* the subroutine is one of software64 */
};
ct_value ct_subroutine_call(struct ct_cursor *at, const struct ct_insn *insn, const struct ct_subroutine_call *call);

/* ---- lower_float.c: encodings ---- */
struct ct_float_layout {
    uint64_t sign, exponent, fraction; /* masks */
    uint64_t one, nan;                 /* 1.0, and the NaN that NVIDIA's devices return */
};
const struct ct_float_layout *ct_float_layout_of(enum ptx_type type); /* f16, f32, f64, bf16 */
ct_value ct_float_const(struct ct_cursor *at, enum ptx_type type, double value);
static inline ct_value ct_float2(struct ct_cursor *at, enum ct_op op, enum ptx_type type, ct_value a, ct_value b)
{
    return ct_op2(at, op, type, a, b);
}
static inline ct_value ct_f32(struct ct_cursor *at, double value)
{
    return ct_float_const(at, PTX_F32, value);
}
static inline ct_value ct_f32_is_below(struct ct_cursor *at, ct_value x, double limit)
{
    return ct_fcmp(at, PTX_F32, PTX_LT, x, ct_f32(at, limit));
}
/* a * b + c in f32 by the driver's fused operation. */
static inline ct_value ct_float_fused32(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    return ct_emit3(at, CT_OP_FFMA, PTX_F32, CT_W_32, a, b, c);
}
ct_value ct_float_negated(struct ct_cursor *at, enum ptx_type type, ct_value x);
ct_value ct_float_magnitude(struct ct_cursor *at, enum ptx_type type, ct_value x);
/* Subnormals become zeros of the same sign. */
ct_value ct_float_flushed(struct ct_cursor *at, enum ptx_type type, ct_value x);
/* Clamps to [0, 1]; NaN and -0 become +0. */
ct_value ct_float_saturated(struct ct_cursor *at, enum ptx_type type, ct_value x);
/* SPIR-V's conversion between float types, which rounds to nearest even when it narrows. */
ct_value ct_float_resized(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, ct_value x);
ct_value ct_float_is_nan(struct ct_cursor *at, enum ptx_type type, ct_value x);
/* bf16, for which no target has instructions: widened to the f32 whose upper half it is; and narrowed from f32 or f64, rounded to
 * nearest even. */
ct_value ct_bf16_widened(struct ct_cursor *at, ct_value x);
ct_value ct_bf16_narrowed(struct ct_lower *l, enum ptx_type from, ct_value x);
/* An f32 comparison that handles subnormals correctly, on a target whose own comparison may not. */
ct_value ct_float_compared(struct ct_cursor *at, enum ptx_compare compare, ct_value a, ct_value b);
/* An operand of the instruction, flushed if the instruction has .ftz. */
ct_value ct_lower_operand(struct ct_lower *l, unsigned index, enum ptx_type type);
bool ct_rounds_to_nearest(unsigned rounding); /* enum ptx_rounding: absent or .rn */
/* Whether the instruction becomes one operation of the device, which carries out its .ftz (flush_mode.c): no code is needed for that. */
bool ct_device_flushes(const struct ct_lower *l);

/* ---- lower_round.c: correct rounding ---- */
/* TwoSum (Knuth): a + b in `type` (f32 or f64), and *error = the exact rounding error (NaN if the sum is not finite). */
ct_value ct_two_sum(struct ct_cursor *at, enum ptx_type type, ct_value a, ct_value b, ct_value *error);
/* Turns a value that was rounded to nearest into one that is rounded to odd, given its rounding error: a later rounding to at least two
 * bits fewer then gives the exact value rounded once. */
ct_value ct_to_odd(struct ct_cursor *at, enum ptx_type type, ct_value nearest, ct_value error);
/* `nearest`, or its neighbour if `rounding` (RZ, RM, RP) requires that, given whether the exact value is below it, above it, or neither. */
ct_value ct_adjusted(struct ct_cursor *at, enum ptx_type type, enum ptx_rounding rounding, ct_value nearest, ct_value is_below,
                     ct_value is_above);
/* Converts a float to a narrower type with the given rounding. */
ct_value ct_float_narrowed(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, enum ptx_rounding rounding, ct_value x);
/* The same, rounded to odd. */
ct_value ct_float_narrowed_to_odd(struct ct_cursor *at, enum ptx_type from, enum ptx_type to, ct_value x);

/* Whether x, an exact f64 or one rounded to odd, is below the least normal f32 after rounding to 24 bits with an unbounded exponent:
 * these are the results that .ftz flushes (measured on an H200). */
ct_value ct_is_tiny64(struct ct_cursor *at, enum ptx_rounding rounding, ct_value x);

/* Arithmetic without modifiers: the exact result rounded once; operands and result are of l->insn->type. */
ct_value ct_lower_sum(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b);
ct_value ct_lower_product(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b);
ct_value ct_lower_fused(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b, ct_value c);
/* The f32 to which a * b + c is rounded, for f32 widened to f64, computed by f64 operations that round to nearest. */
ct_value ct_fused_from_wide(struct ct_cursor *at, ct_value a, ct_value b, ct_value c);
/* The same for bf16 operands widened to f32, rounded to nearest; the result is bf16. */
ct_value ct_lower_fused_bf16(struct ct_lower *l, ct_value a, ct_value b, ct_value c);
/* Whether an FFMA becomes a product and a sum (ptx2spv_target.splits_fma32). */
bool ct_splits_fma32(const struct ct_fn *fn, const struct ct_insn *insn);
/* Whether `guard` handles fma.rn.f32 in the function, since the driver's Fma flushes subnormals or does not round once. In the latter case
 * subroutines have the exact sequence. */
bool ct_guards_fma32(const struct ct_fn *fn);
/* Whether it does, and since the driver's Fma does not round once. */
bool ct_guards_rounding(const struct ct_fn *fn);
/* Whether `refine` handles fma.rn.f64 in the function, since the driver's Fma does not round once: in the subroutine for it, or, on
 * targets without subroutines, in the kernel. */
bool ct_refines_fma64(const struct ct_fn *fn);
/* ---- lower_divide.c ---- */
ct_value ct_lower_quotient(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a, ct_value b);
ct_value ct_lower_root(struct ct_lower *l, enum ptx_type type, enum ptx_rounding rounding, ct_value a);
/* The driver's operation on f64, marked for `refine` if the target uses that. */
ct_value ct_lower_driver_root64(struct ct_lower *l, ct_value a);
ct_value ct_lower_driver_inverse64(struct ct_lower *l, ct_value b);
/* ---- lower_divide32.c: the same for f32 without 64-bit floats ---- */
ct_value ct_lower_integer_quotient32(struct ct_lower *l, enum ptx_rounding rounding, ct_value a, ct_value b);
ct_value ct_lower_integer_root32(struct ct_lower *l, enum ptx_rounding rounding, ct_value a);
/* ---- lower_fused32.c: a * b + c, likewise; the second one of bf16 operands widened to f32, whose result is bf16 ---- */
ct_value ct_lower_integer_fused32(struct ct_lower *l, enum ptx_rounding rounding, ct_value a, ct_value b, ct_value c);
ct_value ct_lower_integer_fused_bf16(struct ct_lower *l, ct_value a, ct_value b, ct_value c);
/* ---- half.c: conversions between f16 and f32 by integers ---- */
ct_value ct_half_widened(struct ct_cursor *at, ct_value x);
ct_value ct_half_narrowed(struct ct_cursor *at, ct_value x); /* rounded to nearest even */
/* ---- lower_approximate.c: within the error bounds of the ISA ---- */
ct_value ct_lower_approximation(struct ct_lower *l, enum ptx_type type, const ct_value *operands);
/* Whether the driver's function is as precise as PTX's. */
static inline bool ct_lower_is_near(const struct ct_lower *l, enum ptx2spv_near function)
{
    return (l->fn->target->near_functions & function) != 0;
}
/* The driver's inverse root. */
ct_value ct_lower_driver_inverse_root32(struct ct_cursor *at, ct_value x);
/* ---- lower_fma64.c ---- */
/* a * b as the sum of two f64, unless something overflows or underflows. */
ct_value ct_two_product64(struct ct_cursor *at, ct_value a, ct_value b, ct_value *error);
/* a * b + c in f64, rounded to nearest once, computed by operations that each round to nearest. *error has the sign of the exact value
 * minus the result: 0 if the result is exact or not finite. */
ct_value ct_fused64(struct ct_cursor *at, ct_value a, ct_value b, ct_value c, ct_value *error);

#endif
