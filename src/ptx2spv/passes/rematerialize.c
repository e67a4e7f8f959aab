/* SPDX-License-Identifier: Apache-2.0 */
/* rematerialize: computes values where they are used instead of keeping them during a loop, for GPUs with few registers
 * (ptx2spv_target.register_words).
 * In:  SSA, lowered. No pass behind this one merges equal values.   Out: the same. Only kernels that need many registers (fn->registers) are
 *      changed.
 *
 *     b = shr.32 tid, 4                           loop:
 *     loop:                             =>          c = shr.32 tid, 4
 *       x = load.shared [b]                         x = load.shared [c]
 *
 * nvcc computes what does not change in a loop before it, for GPUs with 255 registers. On an Intel GPU a thread has 64, or 32 if an older
 * one has subgroups of 32 lanes, and the driver spills what does not fit. A value is computed again if it takes a few operations on 32-bit
 * integers from constants, parameters and system values, while the loops that use it do not become much longer. Then every block that uses
 * it has a copy, also outside of loops: if one were left in a block that dominates a loop, drivers would take it for those in the loop. */
#include "simplify.h"

enum {
    OPERATIONS_MAX = 12, /* of one value, without regard to what they have in common */
    GROWTH = 8,          /* at most about an eighth of a loop's instructions is added to it */
};

struct change {
    ct_value *use, to;
};

struct remat {
    struct ct_fn *fn;
    uint8_t *operations; /* indexed by value: how many it takes, plus one; 0: not yet known */
    bool *crosses;       /* indexed by value: it is to be computed again, since it is used in a loop that its definition is not in */
    uint32_t *room;      /* indexed by header: instructions that may be added to the loop, without those of loops in it */
    ct_value *copy;      /* indexed by value: its last copy, */
    uint32_t *copied_in; /* and the number of the block that this is in, plus one */
    CT_VEC(struct change) changes; /* carried out at the end: copies are made of the code as it was */
};

/* ---- which values ---- */

static bool is_cheap(const struct ct_fn *fn, const struct ct_insn *def)
{
    switch ((unsigned)def->op) {
    case CT_OP_ADD:
    case CT_OP_SUB:
    case CT_OP_MUL:
    case CT_OP_AND:
    case CT_OP_OR:
    case CT_OP_XOR:
    case CT_OP_NOT:
    case CT_OP_SHL:
    case CT_OP_SHR:
        return ct_width_of_value(fn, def->results[0]) == CT_W_32;
    default:
        return false;
    }
}

/* Whether it takes no register, or is needed in one anyway. */
static bool is_leaf(const struct ct_insn *def)
{
    return def->op == CT_OP_CONST || def->op == CT_OP_SYSVAL || (def->op == CT_OP_LOAD && def->space == CT_SPACE_PARAM);
}

/* At most OPERATIONS_MAX + 1, which means that the value cannot be computed again. */
static unsigned count_operations(struct remat *r, ct_value value, unsigned depth)
{
    const struct ct_insn *def = r->fn->values.v[value.i].def;
    unsigned n = 1;

    if (r->operations[value.i])
        return r->operations[value.i] - 1u;
    if (is_leaf(def))
        n = 0;
    else if (!is_cheap(r->fn, def) || depth == OPERATIONS_MAX)
        n = OPERATIONS_MAX + 1;
    else
        for (uint32_t i = 0; i < def->n_operands && n <= OPERATIONS_MAX; i++)
            n += count_operations(r, def->operands[i], depth + 1);
    if (n > OPERATIONS_MAX)
        n = OPERATIONS_MAX + 1;
    if (depth == 0 || n <= OPERATIONS_MAX) /* a deep one may only have been too deep here */
        r->operations[value.i] = (uint8_t)(n + 1);
    return n;
}

static void note_use(struct remat *r, ct_value *use, struct ct_insn *place)
{
    const struct ct_block *header = place->block->loop_head;
    unsigned n;

    if (!use->i || !header || ct_loop_contains(header, r->fn->values.v[use->i].def->block))
        return;
    n = count_operations(r, *use, 0);
    r->crosses[use->i] |= n > 0 && n <= OPERATIONS_MAX;
}

/* ---- copies ---- */

/* The copy of a value in the block, which is made before `place` if there is none yet. */
static ct_value copy_of(struct remat *r, ct_value value, struct ct_insn *place)
{
    struct ct_cursor at = {.fn = r->fn, .block = place->block, .before = place, .where = place->where};
    const struct ct_insn *def = r->fn->values.v[value.i].def;
    struct ct_insn *copy;

    if (is_leaf(def) || def->block == place->block)
        return value;
    if (r->copied_in[value.i] == place->block->id + 1)
        return r->copy[value.i];
    copy = ct_emit_copy_of(&at, def);
    for (uint32_t i = 0; i < copy->n_operands; i++)
        copy->operands[i] = copy_of(r, copy->operands[i], copy);
    r->copied_in[value.i] = place->block->id + 1;
    return r->copy[value.i] = copy->results[0];
}

static void copy_for_use(struct remat *r, ct_value *use, struct ct_insn *place)
{
    const struct ct_block *header = place->block->loop_head;
    const uint32_t before = r->fn->values.n;

    if (!r->crosses[use->i] || (header && !r->room[header->id]))
        return;
    *CT_PUSH(&r->fn->compilation->scratch, &r->changes) = (struct change){use, copy_of(r, *use, place)};
    if (header) {
        const uint32_t added = r->fn->values.n - before;

        r->room[header->id] -= added < r->room[header->id] ? added : r->room[header->id];
    }
}

typedef void visitor(struct remat *r, ct_value *use, struct ct_insn *place);

/* What a phi uses, is used at the end of the predecessor. */
static void visit_uses(struct remat *r, visitor *visit)
{
    for (uint32_t b = 0; b < r->fn->blocks.n; b++) {
        struct ct_block *block = r->fn->blocks.v[b];

        for (struct ct_insn *insn = block->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                if (insn->op != CT_OP_PHI)
                    visit(r, &insn->operands[i], insn);
        for (uint32_t s = 0; s < block->n_succs; s++)
            for (struct ct_insn *phi = block->succs[s]->first; phi && phi->op == CT_OP_PHI; phi = phi->next)
                for (uint32_t i = 0; i < phi->n_operands; i++)
                    if (block->succs[s]->preds.v[i] == block)
                        visit(r, &phi->operands[i], block->last);
    }
}

static void measure_loops(struct remat *r)
{
    for (uint32_t b = 0; b < r->fn->blocks.n; b++) {
        const struct ct_block *block = r->fn->blocks.v[b];

        for (const struct ct_insn *insn = block->first; insn && block->loop_head; insn = insn->next)
            r->room[block->loop_head->id]++;
    }
    for (uint32_t b = 0; b < r->fn->blocks.n; b++)
        r->room[b] /= GROWTH;
}

enum ct_pass_result ct_pass_rematerialize(struct ct_fn *fn)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct remat r = {.fn = fn};

    /* Half of them: fn->registers was estimated before lowering, and before addresses of 64 bits and operands that the driver loads ahead. */
    if (fn->registers <= fn->target->register_words / 2 || !fn->target->register_words)
        return CT_PASS_UNCHANGED;
    ct_fn_compute_preds(fn);
    ct_fn_compute_rpo(fn);
    ct_fn_compute_dominators(fn);
    ct_fn_compute_loops(fn);
    r.operations = CT_ARENA_ARRAY(scratch, uint8_t, fn->values.n);
    r.crosses = CT_ARENA_ARRAY(scratch, bool, fn->values.n);
    r.copy = CT_ARENA_ARRAY(scratch, ct_value, fn->values.n);
    r.copied_in = CT_ARENA_ARRAY(scratch, uint32_t, fn->values.n);
    r.room = CT_ARENA_ARRAY(scratch, uint32_t, fn->blocks.n);
    measure_loops(&r);
    visit_uses(&r, note_use);
    visit_uses(&r, copy_for_use);
    for (uint32_t i = 0; i < r.changes.n; i++)
        *r.changes.v[i].use = r.changes.v[i].to;
    return r.changes.n && ct_remove_dead(fn) ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
