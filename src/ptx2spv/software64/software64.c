/* SPDX-License-Identifier: Apache-2.0 */
/* software64: operations on 64-bit floats become integer code on devices that have none.
 * In:  SSA, lowered: what is left of f64 are operations that round to nearest.   Out: the same without any operation on f64.
 *
 * Long sequences are subroutines (exact/lower_subroutine.c), which a kernel and the subroutines of other operations call. Within the subroutine of
 * an operation everything is expanded. */
#include "software64.h"
#include "ptx2spv/exact/lower.h"

enum form { NONE, CALLED, INLINE };

static const struct software {
    ct_software64_fn function;
    enum form form;
} software[CT_OP_COUNT] = {
#define SOFTWARE64(operation, handler, form_) [CT_OP_##operation] = {ct_software64_##handler, form_},
#include "software64.def"
};

static bool is_software(const struct ct_insn *insn)
{
    return software[insn->op].form != NONE && (insn->type == PTX_F64 || insn->type2 == PTX_F64);
}

static ct_value replacement(struct ct_cursor *at, const struct ct_insn *insn)
{
    if (at->fn->expands_software64 || software[insn->op].form == INLINE)
        return software[insn->op].function(at, insn);
    return ct_subroutine_call(at, insn, &(struct ct_subroutine_call){.operands = insn->operands, .expands_software64 = true});
}

enum ct_pass_result ct_pass_software64(struct ct_fn *fn)
{
    bool changed = false;

    if (fn->target->float64)
        return CT_PASS_UNCHANGED;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first, *next; insn; insn = next) {
            struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};

            next = insn->next;
            if (!is_software(insn))
                continue;
            ct_assign(&at, insn->results[0], replacement(&at, insn));
            ct_insn_remove(insn);
            changed = true;
        }
    return changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
