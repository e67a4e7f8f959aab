/* SPDX-License-Identifier: Apache-2.0 */
/* lone_readers: one lane reads what the others of its warp have just stored.
 * In:  register form, calls inlined, laid out.   Out: the same, with CONVERGE before branches that only one lane takes.
 *
 *     store ..                                    store ..
 *     p = icmp.ne %tid.x, 0                       p = icmp.ne %tid.x, 0
 *     cbr p, next, alone              =>          converge
 *   alone:                                        cbr p, next, alone
 *     load ..                                   alone:
 *                                                 load ..
 *
 * Such code lacks a __syncwarp(). On NVIDIA's GPUs the lanes of a warp that are together at the branch have all stored by then, so that it works
 * there (cuVS's search in IVF-PQ indices; chacha20 and romberg of HeCBench). Where the lanes of a warp are several subgroups, the
 * first of these could be long past the branch.
 *
 * A branch is taken by one lane if its condition compares a number that depends on the lane, and on nothing else but the launch, for equality.
 * It matters if a store to shared or global memory may have been executed since the lanes last waited for each other, and the blocks that
 * only the one lane reaches load from that memory. */
#include "sync.h"

#include <string.h>

enum memory { MEMORY_SHARED = 1, MEMORY_GLOBAL = 2 };

/* What a register holds, by all instructions that write it. */
enum content {
    CONTENT_NOTHING, /* none of them was seen so far */
    CONTENT_COMMON,  /* the same in all lanes of a warp */
    CONTENT_LANE,    /* depends on the lane, too */
    CONTENT_IS_ONE,  /* a predicate that is true in one lane at most */
    CONTENT_IS_NOT,  /* a predicate that is false in one lane at most */
    CONTENT_ANY,
};

struct readers {
    struct ct_fn *fn;
    struct ct_block **order; /* in reverse postorder, n_blocks elements */
    uint32_t n_blocks;
    uint8_t *contents;         /* indexed by value: enum content */
    uint8_t *loads;            /* indexed by block id: sets of enum memory */
    bool *pending;             /* indexed by block id: a store to the memory may be new before the block */
    struct ct_insn **inserted; /* indexed by block id: the CONVERGE before its branch, or NULL */
};

/* ---- conditions ---- */

/* In blocks that are not narrower than a warp, all of its lanes have the same number in y and z. */
static enum content content_of_sysval(const struct ct_insn *insn)
{
    switch (insn->sreg) {
    case CT_SYS_TID_X:
    case CT_SYS_TID_LINEAR:
    case CT_SYS_TID_X_64:
    case CT_SYS_LANEID:
        return CONTENT_LANE;
    default:
        return CONTENT_COMMON;
    }
}

static enum content content_of_comparison(const struct readers *r, const struct ct_insn *insn)
{
    const uint8_t a = r->contents[insn->operands[0].i], b = r->contents[insn->operands[1].i];
    const bool has_lane = (a == CONTENT_LANE && b == CONTENT_COMMON) || (a == CONTENT_COMMON && b == CONTENT_LANE);

    if (!has_lane || (insn->compare != PTX_EQ && insn->compare != PTX_NE))
        return CONTENT_ANY;
    return insn->compare == PTX_EQ ? CONTENT_IS_ONE : CONTENT_IS_NOT;
}

static enum content content_of_logic(const struct readers *r, const struct ct_insn *insn)
{
    const uint8_t a = insn->n_operands ? r->contents[insn->operands[0].i] : CONTENT_ANY;
    const uint8_t b = insn->n_operands > 1 ? r->contents[insn->operands[1].i] : CONTENT_ANY;

    switch (insn->op) {
    case CT_OP_NOT:
        return a == CONTENT_IS_ONE ? CONTENT_IS_NOT : a == CONTENT_IS_NOT ? CONTENT_IS_ONE : CONTENT_ANY;
    case CT_OP_AND: /* restricts what is true in one lane */
        return a == CONTENT_IS_ONE || b == CONTENT_IS_ONE ? CONTENT_IS_ONE : CONTENT_ANY;
    case CT_OP_OR: /* adds to what is false in one lane */
        return a == CONTENT_IS_NOT || b == CONTENT_IS_NOT ? CONTENT_IS_NOT : CONTENT_ANY;
    default:
        return CONTENT_ANY;
    }
}

static enum content content_of_numbers(const struct readers *r, const struct ct_insn *insn)
{
    enum content content = CONTENT_COMMON;

    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const uint8_t operand = r->contents[insn->operands[i].i];

        if (operand != CONTENT_COMMON && operand != CONTENT_LANE)
            return CONTENT_ANY;
        if (operand == CONTENT_LANE)
            content = CONTENT_LANE;
    }
    return content;
}

static enum content content_of(const struct readers *r, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_CONST || (insn->op == CT_OP_LOAD && insn->space == CT_SPACE_PARAM))
        return CONTENT_COMMON;
    if (insn->op == CT_OP_SYSVAL)
        return content_of_sysval(insn);
    if (insn->op == CT_OP_COPY)
        return r->contents[insn->operands[0].i] ? (enum content)r->contents[insn->operands[0].i] : CONTENT_ANY;
    if (insn->op == CT_OP_ICMP)
        return content_of_comparison(r, insn);
    if (ct_width_of_value(r->fn, insn->results[0]) == CT_W_PRED)
        return content_of_logic(r, insn);
    return ct_insn_is_pure(insn) && insn->n_operands ? content_of_numbers(r, insn) : CONTENT_ANY;
}

static enum content joined(enum content a, enum content b)
{
    if (a == b || a == CONTENT_NOTHING)
        return b;
    return a <= CONTENT_LANE && b <= CONTENT_LANE ? CONTENT_LANE : CONTENT_ANY;
}

/* In reverse postorder, so what a loop writes behind a use is not seen there. Whether there is a predicate that is true or false in one lane. */
static bool find_contents(struct readers *r)
{
    bool has_conditions = false;

    for (uint32_t b = 0; b < r->n_blocks; b++)
        for (const struct ct_insn *insn = r->order[b]->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_results; i++) {
                const enum content content = insn->n_results == 1 ? content_of(r, insn) : CONTENT_ANY;
                uint8_t *held = &r->contents[insn->results[i].i];

                *held = (uint8_t)joined((enum content) * held, content);
                has_conditions |= *held == CONTENT_IS_ONE || *held == CONTENT_IS_NOT;
            }
    return has_conditions;
}

/* ---- memory ---- */

static uint8_t memories_of(const struct ct_insn *insn)
{
    if (insn->op != CT_OP_LOAD && insn->op != CT_OP_STORE && insn->op != CT_OP_ATOM)
        return 0;
    switch (insn->space) {
    case CT_SPACE_SHARED:
        return MEMORY_SHARED;
    case CT_SPACE_GLOBAL:
        return MEMORY_GLOBAL;
    case CT_SPACE_GENERIC:
        return MEMORY_SHARED | MEMORY_GLOBAL;
    default:
        return 0;
    }
}

/* Whether a store may be new behind the instruction. */
static bool pending_after(bool pending, const struct ct_insn *insn, enum memory memory)
{
    return !ct_reconverges(insn) && (pending || (insn->op != CT_OP_LOAD && (memories_of(insn) & memory)));
}

static void find_pending(struct readers *r, enum memory memory)
{
    memset(r->pending, 0, r->fn->blocks.n * sizeof *r->pending);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < r->n_blocks; b++) {
            const struct ct_block *block = r->order[b];
            bool pending = r->pending[block->id];

            for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
                pending = pending_after(pending, insn, memory);
            for (uint32_t i = 0; pending && i < block->n_succs; i++) {
                changed |= !r->pending[block->succs[i]->id];
                r->pending[block->succs[i]->id] = true;
            }
        }
    }
}

/* ---- branches ---- */

/* The memories from which a block, and those that it dominates, load what can change. */
static void find_loads(struct readers *r)
{
    for (uint32_t b = r->n_blocks; b-- > 0;) {
        const struct ct_block *block = r->order[b];

        for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
            if (insn->op == CT_OP_LOAD && !insn->read_only)
                r->loads[block->id] |= memories_of(insn);
        if (b)
            r->loads[block->idom->id] |= r->loads[block->id];
    }
}

/* The memories from which one lane loads alone behind the branch at the end of the block. */
static uint8_t loaded_alone(const struct readers *r, const struct ct_block *block)
{
    const struct ct_insn *branch = block->last;
    const struct ct_block *to;
    uint8_t content;

    if (!branch || branch->op != CT_OP_CBR || block->n_succs != 2)
        return 0;
    content = r->contents[branch->operands[0].i];
    if (content != CONTENT_IS_ONE && content != CONTENT_IS_NOT)
        return 0;
    to = block->succs[content == CONTENT_IS_ONE ? 0 : 1];
    return to->preds.n == 1 ? r->loads[to->id] : 0;
}

/* Inserts a CONVERGE before all such branches, and removes those before which no store may be new, given the others. */
static bool insert_converges(struct readers *r, enum memory memory)
{
    bool changed = false;

    for (uint32_t b = 0; b < r->n_blocks; b++) {
        struct ct_block *block = r->order[b];

        r->inserted[block->id] = NULL;
        if (loaded_alone(r, block) & memory) {
            r->inserted[block->id] = ct_insn_create(r->fn, CT_OP_CONVERGE, PTX_NONE, 0, 0);
            ct_insn_insert_before(block->last, r->inserted[block->id]);
        }
    }
    find_pending(r, memory);
    for (uint32_t b = 0; b < r->n_blocks; b++) {
        struct ct_insn *inserted = r->inserted[r->order[b]->id];
        bool pending = r->pending[r->order[b]->id];

        for (const struct ct_insn *insn = r->order[b]->first; inserted && insn != inserted; insn = insn->next)
            pending = pending_after(pending, insn, memory);
        if (inserted && !pending)
            ct_insn_remove(inserted);
        changed |= inserted && pending;
    }
    return changed;
}

enum ct_pass_result ct_pass_lone_readers(struct ct_fn *fn)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct readers r = {.fn = fn};
    bool changed;

    r.order = ct_fn_rpo_blocks(fn, &r.n_blocks);
    r.contents = CT_ARENA_ARRAY(scratch, uint8_t, (size_t)fn->values.n + 1);
    r.loads = CT_ARENA_ARRAY(scratch, uint8_t, fn->blocks.n);
    r.pending = CT_ARENA_ARRAY(scratch, bool, fn->blocks.n);
    r.inserted = CT_ARENA_ARRAY(scratch, struct ct_insn *, fn->blocks.n);
    if (!find_contents(&r))
        return CT_PASS_UNCHANGED;
    ct_fn_compute_preds(fn);
    ct_fn_compute_dominators(fn);
    find_loads(&r);
    changed = insert_converges(&r, MEMORY_SHARED);
    changed |= insert_converges(&r, MEMORY_GLOBAL);
    return changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
