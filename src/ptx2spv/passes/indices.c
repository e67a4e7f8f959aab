/* SPDX-License-Identifier: Apache-2.0 */
/* indices: the number of a thread in its grid, ctaid.x * ntid.x + tid.x, in 64 bits, for drivers that make vectors of neighbouring threads
 * (ptx2spv_target.vectorizes).
 * In:  SSA.   Out: the same; fn->limits_grid is set if the code is only correct for launches of at most 2^31 threads in x
 * (PTX2SPV_GRID_LIMIT).
 *
 *     u = mul ctaid.x, ntid.x                     u = mul ctaid.x, ntid.x
 *     i = add u, tid.x                            i = add u, tid.x
 *     d = mulwide.s32 i, 4              =>        w = add.64 (ext.u32 u), tid.x in 64 bits
 *                                                 d = mul.64 w, 4
 *     p = icmp.ge.s32 i, n                        p = icmp.ge.u64 tid.x in 64 bits, max(ext.s32 n - ext.u32 u, 0)
 *
 * The 32-bit sum may wrap around, so a compiler has to assume that neighbours, for which it does not, are not adjacent in memory; but it does
 * not if the grid has at most 2^31 threads in x, and then is not negative either. Where a bound of all threads is compared with the
 * thread's number in its block, Intel's runtime shortens its loop over the threads of a block, instead of masking each access (read in its
 * machine code, 2026.2). */
#include "ptx2spv/ir/builder.h"

enum { DEPTH_MAX = 4 }; /* how many operations back distances are followed */

/* Behind copies, by which the pass itself replaces results. */
static const struct ct_insn *definition(const struct ct_fn *fn, ct_value x)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    while (def->op == CT_OP_COPY)
        def = fn->values.v[def->operands[0].i].def;
    return def;
}

static bool reads(const struct ct_fn *fn, ct_value x, enum ct_sysval which)
{
    const struct ct_insn *def = definition(fn, x);

    return def->op == CT_OP_SYSVAL && def->sreg == which;
}

/* Whether x is ctaid.x * ntid.x. */
static bool is_first_of_block(const struct ct_fn *fn, ct_value x)
{
    const struct ct_insn *def = definition(fn, x);

    return def->op == CT_OP_MUL && ((reads(fn, def->operands[0], CT_SYS_CTAID_X) && reads(fn, def->operands[1], CT_SYS_NTID_X)) ||
                                    (reads(fn, def->operands[0], CT_SYS_NTID_X) && reads(fn, def->operands[1], CT_SYS_CTAID_X)));
}

/* ctaid.x * ntid.x, if x is the sum of that and tid.x; else no value. */
static ct_value first_of_block(const struct ct_fn *fn, ct_value x)
{
    const struct ct_insn *def = definition(fn, x);

    if (def->op != CT_OP_ADD || ct_width_of_value(fn, x) != CT_W_32)
        return CT_NO_VALUE;
    for (unsigned i = 0; i < 2; i++)
        if (reads(fn, def->operands[i], CT_SYS_TID_X) && is_first_of_block(fn, def->operands[1 - i]))
            return def->operands[1 - i];
    return CT_NO_VALUE;
}

static ct_value thread64(struct ct_cursor *at)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_SYSVAL, PTX_NONE, 1, 0);

    insn->sreg = CT_SYS_TID_X_64;
    return insn->results[0] = ct_value_create(at->fn, CT_W_64);
}

static ct_value index64(struct ct_cursor *at, ct_value first)
{
    return ct_add(at, ct_zext64(at, first), thread64(at));
}

static ct_value extended(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    const struct ct_insn *def = definition(at->fn, x);

    if (def->op == CT_OP_CONST) /* it stays one, for is_distance */
        return ct_const64(at, type == PTX_S32 ? (uint64_t)(int32_t)def->imm : (uint32_t)def->imm);
    return ct_resize(at, x, type, CT_W_64);
}

/* EXT or MULWIDE of an index. */
static ct_value widened(struct ct_cursor *at, const struct ct_insn *insn)
{
    for (unsigned i = 0; i < insn->n_operands; i++) {
        const ct_value first = first_of_block(at->fn, insn->operands[i]);

        if (!first.i)
            continue;
        if (insn->op == CT_OP_EXT)
            return index64(at, first);
        return ct_bits2(at, CT_OP_MUL, index64(at, first), extended(at, insn->type, insn->operands[1 - i]));
    }
    return CT_NO_VALUE;
}

/* Whether x is the same for all threads, and known before the kernel runs. */
static bool is_argument(const struct ct_fn *fn, ct_value x)
{
    const struct ct_insn *def = definition(fn, x);

    return def->op == CT_OP_CONST || (def->op == CT_OP_LOAD && def->space == CT_SPACE_PARAM && !def->n_operands);
}

/* The comparison of an index with an argument; compare is that of index and argument, in this order. */
static ct_value compared(struct ct_cursor *at, enum ptx_type type, enum ptx_compare compare, ct_value first, ct_value argument)
{
    const bool includes = compare == PTX_LE || compare == PTX_GT; /* the argument itself is on the side of lesser numbers */
    ct_value bound = extended(at, type, argument);

    if (includes)
        bound = ct_add_imm(at, bound, 1);
    bound = ct_op2(at, CT_OP_MAX, PTX_S64, ct_op2(at, CT_OP_SUB, PTX_S64, bound, ct_zext64(at, first)), ct_const64(at, 0));
    return ct_icmp(at, PTX_U64, compare == PTX_LT || compare == PTX_LE ? PTX_LT : PTX_GE, thread64(at), bound);
}

static enum ptx_compare swapped(enum ptx_compare compare)
{
    switch ((unsigned)compare) {
    case PTX_LT:
        return PTX_GT;
    case PTX_LE:
        return PTX_GE;
    case PTX_GT:
        return PTX_LT;
    default:
        return PTX_LE;
    }
}

static ct_value of_comparison(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value a = insn->operands[0], b = insn->operands[1];
    const enum ptx_compare compare = (enum ptx_compare)insn->compare;
    ct_value first;

    if (compare == PTX_EQ || compare == PTX_NE)
        return CT_NO_VALUE;
    first = first_of_block(at->fn, a);
    if (first.i && is_argument(at->fn, b))
        return compared(at, insn->type, compare, first, b);
    first = first_of_block(at->fn, b);
    if (first.i && is_argument(at->fn, a))
        return compared(at, insn->type, swapped(compare), first, a);
    return CT_NO_VALUE;
}

static ct_value replacement(struct ct_cursor *at, const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_EXT:
        return (insn->type == PTX_U32 || insn->type == PTX_S32) ? widened(at, insn) : CT_NO_VALUE;
    case CT_OP_MULWIDE:
        return (insn->type == PTX_U32 || insn->type == PTX_S32) ? widened(at, insn) : CT_NO_VALUE;
    case CT_OP_ICMP:
        return of_comparison(at, insn);
    default:
        return CT_NO_VALUE;
    }
}

/* ---- addresses ---- */

static bool is_constant(const struct ct_fn *fn, ct_value x)
{
    return definition(fn, x)->op == CT_OP_CONST;
}

/* Whether x is the distance of the thread's element from the beginning of an array: a multiple of an index, or that and a constant. */
static bool is_distance(const struct ct_fn *fn, ct_value x, unsigned depth)
{
    const struct ct_insn *def = definition(fn, x);

    if (!depth || (def->op != CT_OP_ADD && def->op != CT_OP_MUL && def->op != CT_OP_SHL))
        return false;
    if (def->op == CT_OP_ADD && reads(fn, def->operands[1], CT_SYS_TID_X_64))
        return true;
    return is_constant(fn, def->operands[1]) && is_distance(fn, def->operands[0], depth - 1);
}

static void mark_element(const struct ct_fn *fn, struct ct_insn *sum)
{
    ct_value *x = sum->operands;

    if (is_distance(fn, x[0], DEPTH_MAX)) {
        const ct_value distance = x[0];

        x[0] = x[1];
        x[1] = distance;
    }
    sum->is_element = is_distance(fn, x[1], DEPTH_MAX) && !is_distance(fn, x[0], DEPTH_MAX) && !is_constant(fn, x[0]);
}

/* Whether there was an index to replace. */
static bool replace_indices(struct ct_fn *fn, struct ct_block *block)
{
    bool changed = false;

    for (struct ct_insn *insn = block->first, *next; insn; insn = next) {
        struct ct_cursor at = {.fn = fn, .block = block, .before = insn, .where = insn->where};
        const ct_value value = replacement(&at, insn);

        next = insn->next;
        if (!value.i)
            continue;
        ct_assign(&at, insn->results[0], value);
        ct_insn_remove(insn);
        changed = true;
    }
    return changed;
}

enum ct_pass_result ct_pass_indices(struct ct_fn *fn)
{
    if (!fn->target->vectorizes || fn->compilation->options.any_grid)
        return CT_PASS_UNCHANGED;
    ct_fn_compute_defs(fn);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        fn->limits_grid |= replace_indices(fn, fn->blocks.v[b]);
    if (!fn->limits_grid)
        return CT_PASS_UNCHANGED;
    ct_fn_compute_defs(fn);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_ADD && ct_width_of_value(fn, insn->results[0]) == CT_W_64)
                mark_element(fn, insn);
    return CT_PASS_CHANGED;
}
