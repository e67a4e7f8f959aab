/* SPDX-License-Identifier: Apache-2.0 */
/* guard: fma.rn.f32 on targets whose Fma does not round once. The common form of a * b + c is s = a * b + c in f64, where the product is
 * exact, and r = s narrowed to f32. It rounds twice, and these are the checks of whether that may have mattered.
 *
 * r is wrong only if the sum s is inexact and lies half-way between two neighbouring f32: a narrowing of any other s gives the same as one
 * of the exact value, since the half-way points are f64 and rounding to f64 does not carry a value across one. Such an s is either
 *  - not below 2^-126 in magnitude. Its fraction has 29 bits more than that of an f32, and these are a one and 28 zeros; this includes the
 *    point above which r is infinite. Or
 *  - below, where f32 are the multiples of 2^-149, so that s has 24 significant bits at most and the last 29 are zeros. Then r is not above
 *    2^-126, and not 0: r is 0 if |s| <= 2^-150, but such sums are exact. Either c is 0; or |c| >= 2^-149, so |a * b| >= 2^-151, and a
 *    product of 48 bits is then a multiple of 2^-198; so is the sum, which has 49 bits at most.
 *
 * The coarse check is whether the last 28 bits of some s are zeros: a shift and a minimum for each FFMA. Sums with few significant bits fail
 * it, zeros among them. The fine check is the two conditions. What the narrowing of infinities and NaNs gives is right in any case.
 *
 * Measured on lavapipe, which skips code that none of the eight threads of a vector takes: `nbody` takes 0.58 and `sgemm` 0.83 of the time
 * that they take if every FFMA is the exact sequence (ct_fused_from_wide). */
#include "guard.h"

#define TIE UINT32_C(0x80000000)               /* the last 29 bits of s, shifted to the upper end of a word */
#define ABOVE_SUBNORMALS UINT32_C(0x00800000)  /* the encoding of 2^-126 */
enum { SHIFT_LAST_28 = 4, SHIFT_LAST_29 = 3 }; /* from the lower word of an f64 */

static void widen(struct ct_cursor *at, const ct_value x[3], ct_value *out)
{
    for (int i = 0; i < 3; i++)
        out[i] = ct_float_resized(at, PTX_F32, PTX_F64, x[i]);
}

ct_value ct_guard_exact(struct ct_cursor *at, const struct ct_insn *ffma, ct_value x[3])
{
    struct ct_insn other = *ffma;
    ct_value wide[3];

    if (at->fn->target->inlines) {
        other.operands = x;
        other.rounding = PTX_RN; /* it may be absent */
        return ct_lower_call(&(struct ct_lower){.fn = at->fn, .at = *at, .insn = &other});
    }
    widen(at, x, wide);
    return ct_fused_from_wide(at, wide[0], wide[1], wide[2]);
}

/* Replaces an FFMA by its common form; the lower word of s. */
static ct_value expand(struct ct_fn *fn, struct ct_insn *ffma)
{
    struct ct_cursor at = {.fn = fn, .block = ffma->block, .before = ffma, .where = ffma->where};
    ct_value wide[3], sum, lower_word;

    widen(&at, ffma->operands, wide);
    sum = ct_op2(&at, CT_OP_FADD, PTX_F64, ct_op2(&at, CT_OP_FMUL, PTX_F64, wide[0], wide[1]), wide[2]);
    lower_word = ct_resize(&at, sum, PTX_U64, CT_W_32);
    ct_assign(&at, ffma->results[0], ct_float_resized(&at, PTX_F64, PTX_F32, sum));
    ct_insn_remove(ffma);
    return lower_word;
}

void ct_guard_expand(struct ct_guard *g, struct ct_segment *segment)
{
    for (uint32_t i = 0; i < segment->dependents.n; i++)
        if (ct_is_guarded(segment->dependents.v[i]))
            *CT_PUSH(g->scratch, &segment->lower_words) = expand(g->fn, segment->dependents.v[i]);
}

ct_value ct_guard_coarse_rounding_check(const struct ct_guard *g, const struct ct_segment *segment, struct ct_cursor *at)
{
    const uint32_t n = segment->lower_words.n;
    ct_value *v = CT_ARENA_ARRAY(g->scratch, ct_value, n);

    for (uint32_t i = 0; i < n; i++)
        v[i] = ct_shl_imm(at, segment->lower_words.v[i], SHIFT_LAST_28);
    return ct_equals(at, ct_guard_least_of(at, CT_OP_MIN, PTX_U32, v, n), 0);
}

/* Whether one of the sums of the segment ends with a one and 28 zeros. As a signed number that is the least. */
static ct_value one_is_tie(const struct ct_guard *g, const struct ct_segment *segment, struct ct_cursor *at)
{
    const uint32_t n = segment->lower_words.n;
    ct_value *v = CT_ARENA_ARRAY(g->scratch, ct_value, n);

    for (uint32_t i = 0; i < n; i++)
        v[i] = ct_shl_imm(at, segment->lower_words.v[i], SHIFT_LAST_29);
    return ct_equals(at, ct_guard_least_of(at, CT_OP_MIN, PTX_S32, v, n), TIE);
}

ct_value ct_guard_fine_rounding_check(const struct ct_guard *g, const struct ct_segment *segment, struct ct_cursor *at)
{
    ct_value_list results = {.n = 0};

    for (uint32_t i = 0; i < segment->dependents.n; i++)
        if (ct_is_guarded(segment->dependents.v[i]))
            *CT_PUSH(g->scratch, &results) = segment->dependents.v[i]->results[0];
    return ct_or(at, one_is_tie(g, segment, at), ct_guard_one_is_between(g, at, &results, ABOVE_SUBNORMALS + 1));
}
