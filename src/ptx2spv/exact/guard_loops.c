/* SPDX-License-Identifier: Apache-2.0 */
/* guard: loop versioning. If guard_proof.c shows that flushing changes nothing in a loop as long as its inputs have ordinary magnitudes,
 * the loop gets a second version without guards.
 *
 *     before the loop                                 before the loop
 *     loop: ...                               =>      if (an input is too small or too large)
 *           repeat or leave                               the loop, which guard.c divides into segments
 *                                                     else
 *                                                         the same loop, unguarded
 *                                                     phis of the values that are used after it
 *
 * Zeros are ordinary, except, in most cases, where they are added to a product of which nothing is known. A loop that contains a
 * barrier, or in which stores of other threads may become visible, is left alone. The unguarded version is simplified by what the ranges
 * imply: comparisons that are never true (rsqrt's tests for subnormals) and products with 1. */
#include "guard_proof.h"
#include "ptx2spv/ir/ssa_repair.h"

enum { INSNS_MAX = 3000 };

struct loop {
    struct ct_guard *g;
    struct ct_guard_proof proof;
    struct ct_block *header;
    uint32_t entry;           /* index of the header's predecessor outside of the loop */
    struct ct_block **copies; /* indexed by block: its copy */
    uint32_t n_blocks;        /* before any copies were made */
    ct_value *copied;         /* indexed by value of the loop: its copy */
};

/* ---- the choice of loops ---- */

/* Whether it contains multiply-adds and can be copied. */
static bool is_candidate(const struct ct_fn *fn, const struct ct_block *header)
{
    uint32_t n = 0, n_ffmas = 0, n_entries = 0;

    for (uint32_t p = 0; p < header->preds.n; p++)
        n_entries += !ct_loop_contains(header, header->preds.v[p]);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && ct_loop_contains(header, fn->blocks.v[b]); insn = insn->next) {
            if (insn != insn->block->last && !ct_guard_leaves_shared_alone(insn))
                return false;
            n_ffmas += ct_is_guarded(insn);
            n++;
        }
    return n_entries == 1 && n_ffmas && n <= INSNS_MAX;
}

/* ---- the run-time check ---- */

/* Whether the inputs are not as assumed. */
static ct_value emit_check(const struct loop *loop, struct ct_cursor *at)
{
    const struct ct_guard_proof *proof = &loop->proof;
    ct_value bad = CT_NO_VALUE, too_small = CT_NO_VALUE, all_bits = CT_NO_VALUE;

    for (uint32_t i = 0; i < proof->inputs.n; i++) {
        const struct ct_guard_input *in = &proof->inputs.v[i];
        const ct_value one = ct_guard_is_out_of_range(at, in->value, in->assumed);

        if (in->must_absorb && proof->zeros_allowed) {
            too_small = ct_guard_or(at, too_small, one);
            all_bits = ct_guard_or(at, all_bits, in->value);
        } else {
            bad = ct_guard_or(at, bad, one);
        }
    }
    if (too_small.i) /* and they are not all zero */
        bad = ct_guard_or(at, bad, ct_and(at, too_small, ct_icmp_imm(at, PTX_U32, PTX_NE, ct_shl_imm(at, all_bits, 1), 0)));
    if (proof->reads_shared)
        bad = ct_guard_or(at, bad, ct_guard_shared_flag(at));
    return bad.i ? bad : ct_emit_const(at, CT_W_PRED, 0);
}

/* ---- the copy ---- */

static ct_value copied(const struct loop *loop, ct_value x)
{
    return loop->copied[x.i].i ? loop->copied[x.i] : x;
}

/* The target of a copied edge: the same block, or its copy. */
static struct ct_block *target(const struct loop *loop, struct ct_block *block)
{
    return ct_loop_contains(loop->header, block) ? loop->copies[block->id] : block;
}

static bool is_one(struct ct_range x)
{
    return x.number && x.nonzero && x.nonnegative && !x.least && !x.most;
}

/* A simpler replacement for the copy of an instruction, or none. Its operands are still those of the original loop. */
static ct_value simplified(const struct loop *loop, struct ct_cursor *at, const struct ct_insn *insn)
{
    if (loop->proof.zeros_allowed) /* then the ranges do not cover all cases */
        return CT_NO_VALUE;
    if (insn->op == CT_OP_FCMP && ct_guard_is_never(&loop->proof, insn))
        return ct_emit_const(at, CT_W_PRED, 0);
    if (insn->op == CT_OP_FMUL && insn->type == PTX_F32 && ct_guard_range_at(&loop->proof, insn->operands[0], insn->block).number &&
        is_one(ct_guard_range_at(&loop->proof, insn->operands[1], insn->block)))
        return ct_copy(at, insn->operands[0]);
    return CT_NO_VALUE;
}

/* Whether `refine` must still handle subnormals for the copy. */
static bool is_refined(const struct loop *loop, const struct ct_insn *insn)
{
    bool may_be_small = false;

    if (insn->type != PTX_F32 || loop->proof.zeros_allowed)
        return insn->refined;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        may_be_small |= ct_guard_range_at(&loop->proof, insn->operands[i], insn->block).least < CT_POWER_NORMAL;
    return insn->refined && may_be_small;
}

static void copy_block(struct loop *loop, const struct ct_block *block)
{
    struct ct_cursor at = {.fn = loop->g->fn, .block = loop->copies[block->id]};

    for (const struct ct_insn *insn = block->first; insn; insn = insn->next) {
        struct ct_insn *copy;
        ct_value less;

        at.where = insn->where;
        less = simplified(loop, &at, insn);
        if (less.i) {
            loop->copied[insn->results[0].i] = less;
            continue;
        }
        copy = ct_emit_copy_of(&at, insn);
        copy->refined = is_refined(loop, insn);
        for (uint32_t r = 0; r < insn->n_results; r++)
            loop->copied[insn->results[r].i] = copy->results[r];
    }
}

/* Adds an exit of the loop's copy, corresponding to the one from predecessor `p`. */
static void add_exit(const struct loop *loop, struct ct_block *exit, uint32_t p, struct ct_block *from)
{
    for (struct ct_insn *phi = exit->first; phi && phi->op == CT_OP_PHI; phi = phi->next)
        ct_phi_add_operand(loop->g->fn, phi, copied(loop, phi->operands[p]));
    *CT_PUSH(&loop->g->fn->compilation->arena, &exit->preds) = from;
}

/* Makes the edges of a block's copy, in the order of the block's edges. */
static void copy_edges(struct loop *loop, const struct ct_block *block, struct ct_block *before)
{
    struct ct_fn *fn = loop->g->fn;
    struct ct_block *copy = loop->copies[block->id], **succs = CT_ARENA_ARRAY(loop->g->scratch, struct ct_block *, block->n_succs);

    for (uint32_t p = 0; p < block->preds.n; p++)
        *CT_PUSH(&fn->compilation->arena, &copy->preds) =
            ct_loop_contains(loop->header, block->preds.v[p]) ? loop->copies[block->preds.v[p]->id] : before;
    for (uint32_t s = 0; s < block->n_succs; s++)
        succs[s] = target(loop, block->succs[s]);
    ct_block_set_succs(fn, copy, block->n_succs, succs);
    for (struct ct_insn *insn = copy->first; insn; insn = insn->next)
        for (uint32_t i = 0; i < insn->n_operands; i++)
            insn->operands[i] = copied(loop, insn->operands[i]);
}

static void copy_exits(const struct loop *loop, struct ct_block *exit)
{
    const uint32_t n = exit->preds.n;

    for (uint32_t p = 0; p < n; p++)
        if (ct_loop_contains(loop->header, exit->preds.v[p]))
            add_exit(loop, exit, p, loop->copies[exit->preds.v[p]->id]);
}

static void copy_loop(struct loop *loop, struct ct_block *before)
{
    const struct ct_guard_proof *proof = &loop->proof;

    loop->copies = CT_ARENA_ARRAY(loop->g->scratch, struct ct_block *, loop->n_blocks);
    loop->copied = CT_ARENA_ARRAY(loop->g->scratch, ct_value, loop->g->fn->values.n);
    for (uint32_t b = 0; b < proof->blocks.n; b++)
        *CT_PUSH(loop->g->scratch, &loop->g->unguarded) = loop->copies[proof->blocks.v[b]->id] = ct_block_create(loop->g->fn);
    for (uint32_t b = 0; b < proof->blocks.n; b++)
        copy_block(loop, proof->blocks.v[b]);
    for (uint32_t b = 0; b < proof->blocks.n; b++)
        copy_edges(loop, proof->blocks.v[b], before);
    for (uint32_t b = 0; b < loop->n_blocks; b++)
        if (!ct_loop_contains(loop->header, loop->g->fn->blocks.v[b]))
            copy_exits(loop, loop->g->fn->blocks.v[b]);
}

/* ---- values that are used outside ---- */

/* Indexed by value: whether it is computed in the loop and used outside. */
static bool *find_values_used_outside(const struct loop *loop, uint32_t n_values)
{
    const struct ct_fn *fn = loop->g->fn;
    bool *used_outside = CT_ARENA_ARRAY(loop->g->scratch, bool, n_values);

    for (uint32_t b = 0; b < loop->n_blocks; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && !ct_loop_contains(loop->header, fn->blocks.v[b]);
             insn = insn->next)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                if (insn->operands[i].i < n_values && loop->copied[insn->operands[i].i].i)
                    used_outside[insn->operands[i].i] = true;
    return used_outside;
}

static void repair_uses(const struct loop *loop, uint32_t n_values)
{
    struct ct_fn *fn = loop->g->fn;
    const bool *used_outside = find_values_used_outside(loop, n_values);

    for (uint32_t x = 1; x < n_values; x++) {
        struct ct_ssa_repair repair;

        if (!used_outside[x])
            continue;
        repair = ct_ssa_repair_begin(fn, (ct_value){x});
        for (uint32_t b = 0; b < loop->proof.blocks.n; b++) {
            const uint32_t id = loop->proof.blocks.v[b]->id;

            repair.at_end[id] = repair.x;
            repair.at_end[loop->copies[id]->id] = copied(loop, repair.x);
        }
        for (uint32_t b = 0; b < loop->n_blocks; b++)
            if (!ct_loop_contains(loop->header, fn->blocks.v[b]))
                ct_ssa_repair_block(&repair, fn->blocks.v[b]);
    }
}

/* ---- the transformation ---- */

/* Inserts a block on the loop's entry edge, and after it one that leads to the loop only. */
static struct ct_block *split_entry(struct loop *loop, struct ct_block **guarded)
{
    struct ct_fn *fn = loop->g->fn;
    struct ct_block *checking = ct_block_create(fn), *from = loop->header->preds.v[loop->entry];

    *guarded = ct_block_create(fn);
    for (uint32_t s = 0; s < from->n_succs; s++)
        if (from->succs[s] == loop->header)
            from->succs[s] = checking;
    *CT_PUSH(&fn->compilation->arena, &checking->preds) = from;
    loop->header->preds.v[loop->entry] = *guarded;
    ct_cursor_jump(&(struct ct_cursor){.fn = fn, .block = *guarded, .where = loop->header->first->where}, loop->header);
    return checking;
}

/* The copy has its predecessor already. */
static void branch_to_versions(const struct loop *loop, struct ct_cursor *at, struct ct_block *guarded)
{
    ct_cursor_branch(at, emit_check(loop, at), guarded, loop->copies[loop->header->id]);
    *CT_PUSH(&at->fn->compilation->arena, &guarded->preds) = at->block;
}

static void make_copy(struct loop *loop)
{
    struct ct_fn *fn = loop->g->fn;
    const uint32_t n_values = fn->values.n;
    struct ct_block *guarded, *checking;
    struct ct_cursor at = {.fn = fn, .where = loop->header->first->where};

    loop->n_blocks = fn->blocks.n;
    while (ct_loop_contains(loop->header, loop->header->preds.v[loop->entry]))
        loop->entry++;
    at.block = checking = split_entry(loop, &guarded);
    copy_loop(loop, checking);
    branch_to_versions(loop, &at, guarded);
    repair_uses(loop, n_values);
}

typedef CT_VEC(struct ct_block *) block_list;

/* Headers of loops that have been processed, including those that have two versions now. */
struct search {
    struct ct_guard *g;
    block_list seen, versioned;
    struct ct_guard_proof proof; /* shared by all proofs */
    struct ct_block **order;     /* in reverse postorder */
    uint32_t n_blocks;
};

/* Recomputes the analyses for the current graph. */
static void refresh(struct search *search)
{
    ct_guard_compute_graph(search->g->fn);
    search->order = ct_fn_rpo_blocks(search->g->fn, &search->n_blocks);
    ct_guard_reserve(&search->proof);
}

static bool is_done(const struct search *search, const struct ct_block *header)
{
    if (ct_guard_is_unguarded(search->g, header))
        return true;
    for (uint32_t i = 0; i < search->seen.n; i++)
        if (search->seen.v[i] == header)
            return true;
    for (uint32_t i = 0; i < search->versioned.n; i++)
        if (ct_loop_contains(search->versioned.v[i], header))
            return true;
    return false;
}

/* Outer loops come first; a loop inside of a loop with two versions is done. */
static struct ct_block *next_header_or_null(const struct search *search)
{
    for (uint32_t b = 0; b < search->n_blocks; b++)
        if (search->order[b]->loop_head == search->order[b] && !is_done(search, search->order[b]))
            return search->order[b];
    return NULL;
}

void ct_guard_make_unguarded_loops(struct ct_guard *g)
{
    struct search search = {.g = g, .proof = {.g = g}};
    struct ct_block *header;

    refresh(&search);
    while ((header = next_header_or_null(&search)) != NULL) {
        struct loop loop = {.g = g, .header = header, .proof = search.proof};

        loop.proof.header = header;
        *CT_PUSH(g->scratch, &search.seen) = header;
        if (!is_candidate(g->fn, header) || !ct_guard_prove(&loop.proof, search.order, search.n_blocks))
            continue;
        make_copy(&loop);
        *CT_PUSH(g->scratch, &search.versioned) = header;
        refresh(&search);
    }
}
