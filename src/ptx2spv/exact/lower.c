/* SPDX-License-Identifier: Apache-2.0 */
/* lower: rich operations become primitives that the target executes exactly.
 * In:  SSA; any operation.   Out: no R operation, no M operation with modifiers (ir_ops.def); SSA and the graph are preserved.
 * How: each instruction is replaced in place by straight-line code, whose last value is copied to the old result, or by the call of a
 * subroutine with that code (lower_subroutine.c).
 *
 * Integer division is guarded against undefined operands; .ftz, .sat, rounding modes and NaN rules become explicit code. Operations that
 * the target does not round correctly (ptx2spv_target.exact_*) are emulated by additions and multiplications, for which IEEE 754 is
 * relied on. */
#include "lower.h"

static const ct_lower_fn lowerings[CT_OP_COUNT] = {
#define LOWER(operation, handler) [CT_OP_##operation] = ct_lower_##handler,
#include "lower.def"
};

/* A constant or an argument that is not subnormal, or a copy or select of such values. */
static bool is_known_flushed(const struct ct_lower *l, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_CONST)
        return (insn->imm & 0x7f800000) != 0 || (insn->imm & 0x007fffff) == 0;
    if (insn->op == CT_OP_COPY)
        return l->flushed[insn->operands[0].i];
    if (insn->op == CT_OP_ARGUMENT)
        return insn->ftz;
    return insn->op == CT_OP_SELECT && l->flushed[insn->operands[1].i] && l->flushed[insn->operands[2].i];
}

/* Records what is known of an instruction's result, so that .ftz need not flush it again. */
static void note_flushed(struct ct_lower *l, const struct ct_insn *insn, bool was_float)
{
    if (insn->n_results != 1 || insn->results[0].i >= l->n_flushed)
        return;
    if (was_float)
        l->flushed[insn->results[0].i] = insn->ftz && insn->type == PTX_F32;
    else
        l->flushed[insn->results[0].i] = is_known_flushed(l, insn);
}

static bool lower_block(struct ct_lower *l, struct ct_block *block)
{
    bool changed = false;

    for (struct ct_insn *insn = block->first, *next; insn; insn = next) {
        const ct_lower_fn lowering = lowerings[insn->op];
        ct_value value = CT_NO_VALUE;

        next = insn->next;
        l->insn = insn;
        l->at = (struct ct_cursor){.fn = l->fn, .block = block, .before = insn, .where = insn->where};
        if (lowering)
            value = ct_lower_by_call(l);
        if (lowering && !value.i)
            value = lowering(l);
        note_flushed(l, insn, lowering != NULL && insn->op != CT_OP_FCMP && insn->op != CT_OP_FCVT);
        if (!value.i)
            continue;
        ct_assign(&l->at, insn->results[0], value);
        ct_insn_remove(insn);
        changed = true;
    }
    return changed;
}

enum ct_pass_result ct_pass_lower(struct ct_fn *fn)
{
    struct ct_lower l = {.fn = fn, .n_flushed = fn->values.n};
    const unsigned errors = fn->compilation->n_errors;
    struct ct_block **blocks;
    uint32_t n;
    bool changed = false;

    ct_fn_compute_rpo(fn);
    blocks = ct_fn_rpo_blocks(fn, &n);
    l.flushed = CT_ARENA_ARRAY(&fn->compilation->scratch, uint8_t, fn->values.n);
    for (uint32_t i = 0; i < n; i++)
        changed |= lower_block(&l, blocks[i]);
    if (fn->compilation->n_errors != errors)
        return CT_PASS_FAILED;
    return changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
