/* SPDX-License-Identifier: Apache-2.0 */
/* check_local: gives the local memory of a thread a shadow, which says what was written there.
 * In:  register form, laid out.   Out: the same; with options.check_written, where that is needed and possible, the frame has a second half, from
 *      fn->local_written on: for each byte of the first half a byte of ones once it was written. It is cleared at the kernel's start. written.c reads and
 *      writes it.
 *
 * Stores of arguments and results of calls are marked is_checked as well, since the program may read what they write. */
#include "check.h"

enum { ALIGN = 16, MAX_BYTES = 1 << 20 };

static bool is_local(const struct ct_insn *insn)
{
    return insn->space == CT_SPACE_LOCAL || insn->space == CT_SPACE_GENERIC;
}

static bool reads_local(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_LOAD && insn->is_checked && is_local(insn))
                return true;
    return false;
}

static void examine_stores(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            insn->is_checked |= insn->op == CT_OP_STORE && insn->space == CT_SPACE_LOCAL;
}

static void store_zero(struct ct_cursor *at, ct_value place)
{
    const ct_value zero = ct_const32(at, 0);
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_STORE, PTX_B32, 0, 2);

    insn->space = CT_SPACE_LOCAL;
    insn->align_log2 = 2;
    insn->operands[0] = place;
    insn->operands[1] = zero;
}

static void clear(struct ct_cursor *at, uint32_t from, uint32_t to)
{
    struct ct_block *body = ct_block_create(at->fn), *done = ct_block_create(at->fn);
    const ct_value place = ct_value_create(at->fn, CT_W_32);

    ct_assign(at, place, ct_const32(at, from));
    ct_cursor_jump(at, body);
    ct_cursor_enter(at, body);
    store_zero(at, place);
    ct_assign(at, place, ct_add_imm(at, place, 4));
    ct_cursor_branch(at, ct_icmp_imm(at, PTX_U32, PTX_LT, place, to), body, done);
    ct_cursor_enter(at, done);
}

enum ct_pass_result ct_pass_check_local(struct ct_fn *fn)
{
    struct ct_cursor at = {.fn = fn, .where = fn->source->where};
    struct ct_block *rest;

    if (!fn->compilation->options.check_written || !fn->local_bytes || fn->local_bytes > MAX_BYTES || !reads_local(fn))
        return CT_PASS_UNCHANGED;
    examine_stores(fn);
    fn->local_written = (fn->local_bytes + ALIGN - 1) / ALIGN * ALIGN;
    fn->local_bytes = 2 * fn->local_written;
    ct_fn_compute_preds(fn);
    ct_fn_detach_entry(fn);
    rest = ct_block_split(fn, fn->blocks.v[0], fn->blocks.v[0]->first);
    ct_cursor_enter(&at, fn->blocks.v[0]);
    clear(&at, fn->local_written, fn->local_bytes);
    ct_cursor_jump(&at, rest);
    ct_fn_compute_preds(fn);
    return CT_PASS_CHANGED;
}
