/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix area: words in shared memory through which the lanes of a warp pass elements of matrices to each other (build/matrix.h). It
 * lies before the exchange area, and has 2 * fn->matrix_words words for each thread: two buffers for each warp, which its instructions use
 * in turn. So one synchronization of the warp for each instruction is enough: when a lane stores to a buffer again, it has passed the
 * synchronization of the instruction after the one that used the buffer, and all lanes have left that one before. All lanes execute the
 * same instructions (.aligned), so each lane alternates by itself. */
#include "sync.h"

static ct_value begin(struct ct_fn *fn, ct_value *sum)
{
    struct ct_block *entry;
    struct ct_cursor at = {.fn = fn, .where = fn->source->where};
    ct_value first, buffer;

    ct_fn_compute_preds(fn);
    ct_fn_detach_entry(fn);
    entry = fn->blocks.v[0];
    at.block = entry;
    at.before = entry->first;
    first = ct_and_imm(&at, ct_sysval(&at, CT_SYS_TID_LINEAR), ~UINT32_C(31));
    first = ct_op2(&at, CT_OP_MUL, PTX_U32, first, ct_const32(&at, ct_matrix_thread_bytes(fn)));
    buffer = ct_copy(&at, ct_add(&at, ct_sysval(&at, CT_SYS_EXCHANGE_BASE), first));
    *sum = ct_copy(&at, ct_add_imm(&at, ct_shl_imm(&at, buffer, 1), 32 * ct_matrix_thread_bytes(fn) / 2));
    return buffer;
}

/* `buffer` is the one that this instruction uses; then it becomes the other one. */
static void replace(struct ct_fn *fn, struct ct_insn *insn, ct_value buffer, ct_value sum)
{
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};

    ct_assign(&at, insn->results[0], buffer);
    ct_assign(&at, buffer, ct_sub(&at, sum, buffer));
    ct_insn_remove(insn);
}

void ct_matrix_area_place(struct ct_fn *fn)
{
    ct_value buffer, sum;
    struct ct_insn *next;

    if (!fn->matrix_words)
        return;
    buffer = begin(fn, &sum);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = next) {
            next = insn->next;
            if (insn->op == CT_OP_SYSVAL && insn->sreg == CT_SYS_MATRIX_BASE)
                replace(fn, insn, buffer, sum);
        }
}

/* If the last warp has less than 32 lanes, the others would read words of lanes that do not exist: those are added to the fixed part. */
void ct_matrix_area_finish(struct ct_fn *fn)
{
    if (!fn->matrix_words)
        return;
    fn->exchange_words += 32 * ct_matrix_thread_bytes(fn) / 4;
    fn->exchange_thread_words += ct_matrix_thread_bytes(fn) / 4;
}
