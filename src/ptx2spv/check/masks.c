/* SPDX-License-Identifier: Apache-2.0 */
/* check_masks: finds warp instructions whose member mask lacks the thread that executes them (PTX ISA: "The behavior ... is undefined if the executing
 * thread is not in the membermask").
 * In:  register form, laid out.   Out: the same; with options.check there is a test before each instruction whose mask is not known to contain all
 *      lanes. The instruction itself stays as it is.
 *
 * This comes before `collective`, which replaces the instructions. */
#include "check.h"

#include "ptx2spv/sync/sync.h"

/* Splits the block before the instruction. The predecessors are recomputed at the end. */
static void examine(struct ct_check *check, struct ct_insn *insn)
{
    struct ct_fn *fn = check->fn;
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};
    struct ct_block *wrong = ct_block_create(fn), *rest;
    const ct_value mask = ct_mask_of(insn);
    const ct_value shifted = ct_op2(&at, CT_OP_SHR, PTX_U32, mask, ct_sysval(&at, CT_SYS_LANEID));
    const ct_value is_wrong = ct_equals(&at, ct_and_imm(&at, shifted, 1), 0);

    rest = ct_block_split(fn, insn->block, insn);
    at.before = NULL;
    ct_cursor_branch(&at, is_wrong, wrong, rest);
    at.block = wrong;
    ct_check_report(check, &at,
                    &(struct ct_incident){
                        .where = insn->where,
                        .access = PTX2SPV_CHECK_ACCESS(insn->where.source, 0, PTX2SPV_CHECK_WARP, PTX2SPV_CHECK_GLOBAL),
                        .address = mask,
                        .fault = ct_const32(&at, PTX2SPV_CHECK_MASK),
                    });
    ct_cursor_jump(&at, rest);
}

enum ct_pass_result ct_pass_check_masks(struct ct_fn *fn)
{
    struct ct_check check = {.fn = fn};
    CT_VEC(struct ct_insn *) points = {0};
    bool *full;

    if (!fn->compilation->options.check)
        return CT_PASS_UNCHANGED;
    full = CT_ARENA_ARRAY(&fn->compilation->scratch, bool, fn->values.n);
    ct_find_full_masks(fn, full);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (ct_has_mask(insn->op) && !full[ct_mask_of(insn).i])
                *CT_PUSH(&fn->compilation->scratch, &points) = insn;
    if (!points.n)
        return CT_PASS_UNCHANGED;
    ct_check_begin(&check, fn->blocks.v[0]->first);
    for (uint32_t i = points.n; i-- > 0;)
        examine(&check, points.v[i]);
    ct_fn_compute_preds(fn);
    return CT_PASS_CHANGED;
}
