/* SPDX-License-Identifier: Apache-2.0 */
/* guard: loops of which guard_proof.c shows that nothing in them is hurt by flushing, if what comes into them has ordinary sizes, get a
 * copy without guards.
 *
 *     before the loop                                 before the loop
 *     loop: ...                               =>      if (something that comes in is too small or too large)
 *           again, or on                                  loop, which guard.c is to cut
 *                                                     else
 *                                                         the same loop
 *                                                     phis of what leaves it
 *
 * Zeros are ordinary, unless they are added to a product of which nothing is known, and often then. A loop that threads of a block meet in,
 * or in which one may learn of what others store, stays as it is. What the ranges decide is decided in the copy: comparisons that are never
 * true (rsqrt asks for subnormals) and products with 1. */
#include "guard_proof.h"
#include "ptx2spv/ir/ssa_repair.h"

enum { INSNS_MAX = 3000 };

struct loop {
    struct ct_guard *g;
    struct ct_guard_proof proof;
    struct ct_block *header;
    uint32_t entry;          /* which predecessor of the header is outside */
    struct ct_block **twins; /* by block */
    uint32_t n_blocks;       /* before there were any */
    ct_value *copied;        /* by value of the loop */
};

/* ---- which ones ---- */

/* Whether it multiplies and adds, and can be copied. */
static bool is_candidate(const struct ct_fn *fn, const struct ct_block *header)
{
    uint32_t n = 0, n_ffmas = 0, n_entries = 0;

    for (uint32_t p = 0; p < header->preds.n; p++)
        n_entries += !ct_guard_is_inside(header, header->preds.v[p]);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && ct_guard_is_inside(header, fn->blocks.v[b]); insn = insn->next) {
            if (insn != insn->block->last && !ct_guard_leaves_shared_alone(insn))
                return false;
            n_ffmas += ct_is_guarded(insn);
            n++;
        }
    return n_entries == 1 && n_ffmas && n <= INSNS_MAX;
}

/* ---- what is asked ---- */

/* Whether what comes in is not what is assumed of it. */
static ct_value ask(const struct loop *loop, struct ct_cursor *at)
{
    const struct ct_guard_proof *proof = &loop->proof;
    ct_value bad = CT_NO_VALUE, absorbs_not = CT_NO_VALUE, all_bits = CT_NO_VALUE;

    for (uint32_t i = 0; i < proof->inputs.n; i++) {
        const struct ct_guard_input *in = &proof->inputs.v[i];
        const ct_value one = ct_guard_is_out_of_range(at, in->value, in->assumed);

        if (in->must_absorb && proof->zeros_will_do) {
            absorbs_not = ct_guard_either(at, absorbs_not, one);
            all_bits = ct_guard_either(at, all_bits, in->value);
        } else {
            bad = ct_guard_either(at, bad, one);
        }
    }
    if (absorbs_not.i) /* nor are they zeros */
        bad = ct_guard_either(at, bad, ct_and(at, absorbs_not, ct_icmp_imm(at, PTX_U32, PTX_NE, ct_shl_imm(at, all_bits, 1), 0)));
    if (proof->reads_shared)
        bad = ct_guard_either(at, bad, ct_guard_shared_flag(at));
    return bad.i ? bad : ct_emit_const(at, CT_W_PRED, 0);
}

/* ---- the copy ---- */

static ct_value copied(const struct loop *loop, ct_value x)
{
    return loop->copied[x.i].i ? loop->copied[x.i] : x;
}

/* The copy of an edge goes where the edge goes, or where that has been copied to. */
static struct ct_block *target(const struct loop *loop, struct ct_block *block)
{
    return ct_guard_is_inside(loop->header, block) ? loop->twins[block->id] : block;
}

static bool is_one(struct ct_range x)
{
    return x.number && x.nonzero && x.nonnegative && !x.least && !x.most;
}

/* What an instruction is in the copy, if less than it was: nothing else. Its operands are still those of the loop. */
static ct_value shortened(const struct loop *loop, struct ct_cursor *at, const struct ct_insn *insn)
{
    if (loop->proof.zeros_will_do) /* all is not known of that */
        return CT_NO_VALUE;
    if (insn->op == CT_OP_FCMP && ct_guard_is_never(&loop->proof, insn))
        return ct_emit_const(at, CT_W_PRED, 0);
    if (insn->op == CT_OP_FMUL && insn->type == PTX_F32 && ct_guard_range_at(&loop->proof, insn->operands[0], insn->block).number &&
        is_one(ct_guard_range_at(&loop->proof, insn->operands[1], insn->block)))
        return ct_copy(at, insn->operands[0]);
    return CT_NO_VALUE;
}

/* Whether `refine` has to think of subnormals for it in the copy, too. */
static bool is_refined(const struct loop *loop, const struct ct_insn *insn)
{
    bool may_be_small = false;

    if (insn->type != PTX_F32 || loop->proof.zeros_will_do)
        return insn->refined;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        may_be_small |= ct_guard_range_at(&loop->proof, insn->operands[i], insn->block).least < CT_POWER_NORMAL;
    return insn->refined && may_be_small;
}

static void copy_block(struct loop *loop, const struct ct_block *block)
{
    struct ct_cursor at = {.fn = loop->g->fn, .block = loop->twins[block->id]};

    for (const struct ct_insn *insn = block->first; insn; insn = insn->next) {
        struct ct_insn *copy;
        ct_value less;

        at.where = insn->where;
        less = shortened(loop, &at, insn);
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

/* One more way out of a loop, beside that by predecessor `p`. */
static void add_exit(const struct loop *loop, struct ct_block *exit, uint32_t p, struct ct_block *from)
{
    for (struct ct_insn *phi = exit->first; phi && phi->op == CT_OP_PHI; phi = phi->next)
        ct_phi_add_operand(loop->g->fn, phi, copied(loop, phi->operands[p]));
    *CT_PUSH(&loop->g->fn->compilation->arena, &exit->preds) = from;
}

/* Edges from the twin of a block, in the order of the block's. */
static void copy_edges(struct loop *loop, const struct ct_block *block, struct ct_block *before)
{
    struct ct_fn *fn = loop->g->fn;
    struct ct_block *twin = loop->twins[block->id], **succs = CT_ARENA_ARRAY(loop->g->scratch, struct ct_block *, block->n_succs);

    for (uint32_t p = 0; p < block->preds.n; p++)
        *CT_PUSH(&fn->compilation->arena, &twin->preds) =
            ct_guard_is_inside(loop->header, block->preds.v[p]) ? loop->twins[block->preds.v[p]->id] : before;
    for (uint32_t s = 0; s < block->n_succs; s++)
        succs[s] = target(loop, block->succs[s]);
    ct_block_set_succs(fn, twin, block->n_succs, succs);
    for (struct ct_insn *insn = twin->first; insn; insn = insn->next)
        for (uint32_t i = 0; i < insn->n_operands; i++)
            insn->operands[i] = copied(loop, insn->operands[i]);
}

static void copy_exits(const struct loop *loop, struct ct_block *exit)
{
    const uint32_t n = exit->preds.n;

    for (uint32_t p = 0; p < n; p++)
        if (ct_guard_is_inside(loop->header, exit->preds.v[p]))
            add_exit(loop, exit, p, loop->twins[exit->preds.v[p]->id]);
}

static void copy_loop(struct loop *loop, struct ct_block *before)
{
    const struct ct_guard_proof *proof = &loop->proof;

    loop->twins = CT_ARENA_ARRAY(loop->g->scratch, struct ct_block *, loop->n_blocks);
    loop->copied = CT_ARENA_ARRAY(loop->g->scratch, ct_value, loop->g->fn->values.n);
    for (uint32_t b = 0; b < proof->blocks.n; b++)
        *CT_PUSH(loop->g->scratch, &loop->g->plain) = loop->twins[proof->blocks.v[b]->id] = ct_block_create(loop->g->fn);
    for (uint32_t b = 0; b < proof->blocks.n; b++)
        copy_block(loop, proof->blocks.v[b]);
    for (uint32_t b = 0; b < proof->blocks.n; b++)
        copy_edges(loop, proof->blocks.v[b], before);
    for (uint32_t b = 0; b < loop->n_blocks; b++)
        if (!ct_guard_is_inside(loop->header, loop->g->fn->blocks.v[b]))
            copy_exits(loop, loop->g->fn->blocks.v[b]);
}

/* ---- what leaves it ---- */

/* By value: whether it is computed in the loop and read elsewhere. */
static bool *list_leaving(const struct loop *loop, uint32_t n_values)
{
    const struct ct_fn *fn = loop->g->fn;
    bool *leaves = CT_ARENA_ARRAY(loop->g->scratch, bool, n_values);

    for (uint32_t b = 0; b < loop->n_blocks; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn && !ct_guard_is_inside(loop->header, fn->blocks.v[b]);
             insn = insn->next)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                if (insn->operands[i].i < n_values && loop->copied[insn->operands[i].i].i)
                    leaves[insn->operands[i].i] = true;
    return leaves;
}

static void merge_what_leaves(const struct loop *loop, uint32_t n_values)
{
    struct ct_fn *fn = loop->g->fn;
    const bool *leaves = list_leaving(loop, n_values);

    for (uint32_t x = 1; x < n_values; x++) {
        struct ct_ssa_repair repair;

        if (!leaves[x])
            continue;
        repair = ct_ssa_repair_begin(fn, (ct_value){x});
        for (uint32_t b = 0; b < loop->proof.blocks.n; b++) {
            const uint32_t id = loop->proof.blocks.v[b]->id;

            repair.at_end[id] = repair.x;
            repair.at_end[loop->twins[id]->id] = copied(loop, repair.x);
        }
        for (uint32_t b = 0; b < loop->n_blocks; b++)
            if (!ct_guard_is_inside(loop->header, fn->blocks.v[b]))
                ct_ssa_repair_block(&repair, fn->blocks.v[b]);
    }
}

/* ---- doing it ---- */

/* A block on the loop's way in, with one behind it that only the loop follows. */
static struct ct_block *make_way_in(struct loop *loop, struct ct_block **guarded)
{
    struct ct_fn *fn = loop->g->fn;
    struct ct_block *asking = ct_block_create(fn), *from = loop->header->preds.v[loop->entry];

    *guarded = ct_block_create(fn);
    for (uint32_t s = 0; s < from->n_succs; s++)
        if (from->succs[s] == loop->header)
            from->succs[s] = asking;
    *CT_PUSH(&fn->compilation->arena, &asking->preds) = from;
    loop->header->preds.v[loop->entry] = *guarded;
    ct_cursor_jump(&(struct ct_cursor){.fn = fn, .block = *guarded, .where = loop->header->first->where}, loop->header);
    return asking;
}

/* The copy knows its predecessor already. */
static void ask_before(const struct loop *loop, struct ct_cursor *at, struct ct_block *guarded)
{
    ct_cursor_branch(at, ask(loop, at), guarded, loop->twins[loop->header->id]);
    *CT_PUSH(&at->fn->compilation->arena, &guarded->preds) = at->block;
}

static void make_copy(struct loop *loop)
{
    struct ct_fn *fn = loop->g->fn;
    const uint32_t n_values = fn->values.n;
    struct ct_block *guarded, *asking;
    struct ct_cursor at = {.fn = fn, .where = loop->header->first->where};

    loop->n_blocks = fn->blocks.n;
    while (ct_guard_is_inside(loop->header, loop->header->preds.v[loop->entry]))
        loop->entry++;
    at.block = asking = make_way_in(loop, &guarded);
    copy_loop(loop, asking);
    ask_before(loop, &at, guarded);
    merge_what_leaves(loop, n_values);
}

typedef CT_VEC(struct ct_block *) block_list;

/* Headers of loops that have been looked at, those of which there is a copy now among them. */
struct search {
    struct ct_guard *g;
    block_list seen, twice;
    struct ct_guard_proof room; /* one for all proofs */
    struct ct_block **order;    /* in reverse postorder */
    uint32_t n_blocks;
};

/* The graph is as it is now. */
static void refresh(struct search *search)
{
    ct_guard_compute_graph(search->g->fn);
    search->order = ct_fn_rpo_blocks(search->g->fn, &search->n_blocks);
    ct_guard_reserve(&search->room);
}

static bool is_done(const struct search *search, const struct ct_block *header)
{
    if (ct_guard_is_plain(search->g, header))
        return true;
    for (uint32_t i = 0; i < search->seen.n; i++)
        if (search->seen.v[i] == header)
            return true;
    for (uint32_t i = 0; i < search->twice.n; i++)
        if (ct_guard_is_inside(search->twice.v[i], header))
            return true;
    return false;
}

/* Outer loops come first; what is in a loop of which there are two is done with it. */
static struct ct_block *next_header_or_null(const struct search *search)
{
    for (uint32_t b = 0; b < search->n_blocks; b++)
        if (search->order[b]->loop_head == search->order[b] && !is_done(search, search->order[b]))
            return search->order[b];
    return NULL;
}

void ct_guard_make_plain_loops(struct ct_guard *g)
{
    struct search search = {.g = g, .room = {.g = g}};
    struct ct_block *header;

    refresh(&search);
    while ((header = next_header_or_null(&search)) != NULL) {
        struct loop loop = {.g = g, .header = header, .proof = search.room};

        loop.proof.header = header;
        *CT_PUSH(g->scratch, &search.seen) = header;
        if (!is_candidate(g->fn, header) || !ct_guard_prove(&loop.proof, search.order, search.n_blocks))
            continue;
        make_copy(&loop);
        *CT_PUSH(g->scratch, &search.twice) = header;
        refresh(&search);
    }
}
