/* SPDX-License-Identifier: Apache-2.0 */
/* The predicated form: points in divergent code for which lockstep.c proved that threads meet there in the order of the basic blocks.
 *
 * The divergent part of the graph is cut into pieces with a single entry each: at the points, and wherever control flow from different
 * pieces joins. A register `next` holds the piece at which a thread continues, and all threads of the block pass all pieces in order:
 *
 *     if (c) {                      next = c ? A : B
 *         x = shfl(x);     -->      A: if (next == A) post;  barrier;  if (next == A) read;  barrier
 *         use(x);                      if (next == A) { use(x); next = B }
 *     }                             B: ...
 *
 *     for (; c; ) {                 next = H
 *         x = shfl(x);     -->      do {  H: if (next == H) next = c ? A : B
 *     }                                   A: ... next = H
 *                                   } while (any thread of the block has next == H)
 *                                   B: ...
 *
 * A thread that ends continues after the last piece. Within a piece the control flow is unchanged; registers carry the values that are
 * live across pieces, and no thread executes anything that it would not have executed before. */
#include "sync.h"

#define ENDED UINT32_MAX

struct predication {
    struct ct_fn *fn;
    struct ct_exchange *x;
    struct ct_arena *scratch;
    struct ct_block **order; /* reverse postorder */
    uint32_t n;              /* number of blocks before this pass added any */
    const bool *divergent;   /* indexed by block id */
    uint32_t *part;          /* indexed by block id: number of the connected divergent part with points that contains the block; 0: none */
    uint32_t n_parts;
    bool *is_spread;        /* indexed by block id: its successors are in the parts to which they belong */
    bool *cut;              /* indexed by block id: a piece begins here */
    uint32_t *owner;        /* indexed by block id: id of the block at which its piece begins; its own id outside of all parts */
    struct ct_block **join; /* indexed by owner's id: where its piece ends */
    struct ct_block **head; /* indexed by part: its entry */
    /* Lists in reverse postorder; NULL ends a list. first_piece: indexed by part, its pieces outside of loops with cuts. inner_piece: indexed
     * by the id of a loop's header, the pieces in that loop. next_piece: indexed by block id. */
    struct ct_block **first_piece, **inner_piece, **next_piece;
    struct touching {
        CT_VEC(struct ct_block *) blocks;
    } *touching;                     /* indexed by part: the blocks in it, and those that branch into it, in reverse postorder */
    CT_VEC(struct ct_block *) exits; /* of the current part, to blocks outside */
    uint32_t *exit_of;               /* indexed by block id: the last part that has this exit */
    bool ends;                       /* threads end in the current part */
    ct_value next, any_slot;         /* registers */
};

/* ---- parts ---- */

static bool has_point(const struct ct_block *block)
{
    return ct_is_sync(block->first->op);
}

struct worklist {
    CT_VEC(struct ct_block *) blocks;
};

static void take_into_part(struct predication *p, struct worklist *work, struct ct_block *block)
{
    if (!p->divergent[block->id] || p->part[block->id])
        return;
    p->part[block->id] = p->n_parts;
    *CT_PUSH(p->scratch, &work->blocks) = block;
}

/* Adds all divergent blocks that are connected by an edge, and all divergent successors of a branch that leads into the part. */
static void spread_part(struct predication *p, struct ct_block *first)
{
    struct worklist work = {0};

    take_into_part(p, &work, first);
    while (work.blocks.n) {
        const struct ct_block *block = work.blocks.v[--work.blocks.n];

        for (uint32_t i = 0; i < block->n_succs; i++)
            take_into_part(p, &work, block->succs[i]);
        for (uint32_t i = 0; i < block->preds.n; i++) {
            struct ct_block *pred = block->preds.v[i];

            take_into_part(p, &work, pred);
            for (uint32_t s = 0; !p->is_spread[pred->id] && s < pred->n_succs; s++)
                take_into_part(p, &work, pred->succs[s]);
            p->is_spread[pred->id] = true;
        }
    }
}

static void find_parts(struct predication *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct ct_block *block = p->order[i];

        if (!p->divergent[block->id] || !has_point(block) || p->part[block->id])
            continue;
        p->n_parts++;
        spread_part(p, block);
    }
}

/* ---- pieces ---- */

/* The owner that all predecessors with a known owner share, or the block itself. */
static uint32_t agreed_owner(const struct predication *p, const struct ct_block *block)
{
    uint32_t found = UINT32_MAX;

    for (uint32_t i = 0; i < block->preds.n; i++) {
        const uint32_t owner = p->owner[block->preds.v[i]->id];

        if (owner == UINT32_MAX || owner == found)
            continue;
        if (found != UINT32_MAX)
            return block->id;
        found = owner;
    }
    return found;
}

/* Computes owners from the cuts known so far; where forward edges from different pieces join, there is a new cut. */
static void spread_owners(struct predication *p)
{
    for (uint32_t b = 0; b < p->n; b++)
        p->owner[b] = UINT32_MAX;
    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t b = p->order[i]->id;

        p->owner[b] = p->part[b] && !p->cut[b] ? agreed_owner(p, p->order[i]) : b;
        p->cut[b] |= p->part[b] && p->owner[b] == b;
    }
}

static void find_pieces(struct predication *p)
{
    for (uint32_t b = 0; b < p->n; b++)
        p->cut[b] = p->part[b] && has_point(p->fn->blocks.v[b]);
    for (bool changed = true; changed;) {
        changed = false;
        spread_owners(p);
        for (uint32_t b = 0; b < p->n; b++) /* back edges */
            if (p->part[b] && !p->cut[b] && agreed_owner(p, p->fn->blocks.v[b]) == b)
                p->cut[b] = changed = true;
    }
}

/* ---- points ---- */

static void begin_if(struct ct_cursor *at, ct_value condition, struct ct_block **after)
{
    struct ct_block *inside = ct_block_create(at->fn);

    *after = ct_block_create(at->fn);
    ct_cursor_branch(at, condition, inside, *after);
    ct_cursor_enter(at, inside);
}

static void jump_and_enter(struct ct_cursor *at, struct ct_block *after)
{
    ct_cursor_jump(at, after);
    ct_cursor_enter(at, after);
}

static void reduce(struct ct_cursor *at, const struct ct_insn *insn, ct_value in)
{
    const ct_value word = ct_exchange_bar_word(at, ct_const32(at, 0), CT_BAR_PRED_TOTAL);
    const ct_value mine = ct_select(at, in, ct_exchange_predicate(at, insn), ct_const32(at, 0));
    struct ct_block *after;
    ct_value counted;

    ct_exchange_atomic(at, PTX_ADD, word, mine);
    ct_exchange_barrier(at);
    counted = ct_exchange_load(at, word);
    begin_if(at, in, &after);
    ct_assign(at, insn->results[0], ct_exchange_bar_result(at, insn, counted));
    jump_and_enter(at, after);
    ct_exchange_barrier(at);
    ct_exchange_atomic(at, PTX_ADD, word, ct_sub(at, ct_const32(at, 0), mine));
}

/* `run`: the start of the code after the point, for the threads that take part. */
static void exchange(struct ct_cursor *at, struct ct_exchange *x, const struct ct_shuffle_run *together, ct_value in, struct ct_cursor *run)
{
    const struct ct_insn *insn = together->insns[0];
    const bool names_lanes = insn->op != CT_OP_SHFL && insn->op != CT_OP_WARPSYNC;
    struct ct_block *after;
    ct_value members;

    begin_if(at, in, &after);
    ct_exchange_post_run(at, x, together);
    if (names_lanes)
        ct_exchange_set_present(at, x);
    jump_and_enter(at, after);
    ct_exchange_barrier(at);
    if (insn->op == CT_OP_WARPSYNC)
        return;
    begin_if(at, in, &after);
    members = ct_exchange_mask(at, insn);
    if (names_lanes)
        members = ct_and(at, members, ct_exchange_present_lanes(at, x));
    ct_exchange_results_of_run(at, x, together, members);
    jump_and_enter(at, after);
    ct_exchange_barrier(at);
    ct_exchange_retract(run, x, insn);
    if (names_lanes)
        ct_exchange_clear_present(run, x);
}

static void place_point(struct predication *p, struct ct_cursor *at, struct ct_block *block, ct_value in)
{
    struct ct_insn *insn = block->first;
    struct ct_cursor run = {.fn = p->fn, .block = block, .where = insn->where};
    struct ct_shuffle_run together;

    ct_shuffle_run_at(insn, p->x->run_max, &together);
    run.before = together.insns[together.n - 1]->next;
    for (uint32_t i = 0; i < together.n; i++)
        ct_insn_remove(together.insns[i]);
    if (ct_is_warp_op(insn->op))
        exchange(at, p->x, &together, in, &run);
    else if (insn->mode == PTX_MODE_RED)
        reduce(at, insn, in);
    else
        ct_exchange_barrier(at);
}

/* ---- order ---- */

static void place_piece(struct predication *p, struct ct_cursor *at, struct ct_block *block)
{
    const ct_value in = ct_equals(at, p->next, block->id);
    struct ct_block *after;

    at->where = block->first->where;
    if (has_point(block))
        place_point(p, at, block, in);
    after = ct_block_create(p->fn);
    ct_cursor_branch(at, in, block, after);
    ct_cursor_enter(at, after);
    p->join[block->id] = after;
}

/* The innermost loop with cuts around the block. Such a loop has a cut at its head, since two pieces join there. */
static const struct ct_block *loop_around(const struct predication *p, const struct ct_block *block)
{
    const struct ct_block *head = block->loop_head == block ? block->loop_parent : block->loop_head;

    while (head && !p->cut[head->id])
        head = head->loop_parent;
    return head && p->part[head->id] == p->part[block->id] ? head : NULL;
}

static void list_pieces(struct predication *p)
{
    for (uint32_t i = p->n; i-- > 0;) {
        struct ct_block *block = p->order[i];
        const struct ct_block *around = loop_around(p, block);
        struct ct_block **list = around ? &p->inner_piece[around->id] : &p->first_piece[p->part[block->id]];

        if (!p->cut[block->id])
            continue;
        p->next_piece[block->id] = *list;
        *list = block;
    }
}

static void place_pieces(struct predication *p, struct ct_cursor *at, struct ct_block *first);

static void place_loop(struct predication *p, struct ct_cursor *at, struct ct_block *block)
{
    struct ct_block *again = ct_block_create(p->fn), *done = ct_block_create(p->fn);

    jump_and_enter(at, again);
    place_piece(p, at, block);
    place_pieces(p, at, p->inner_piece[block->id]);
    ct_cursor_branch(at, ct_exchange_any(at, p->any_slot, ct_equals(at, p->next, block->id)), again, done);
    ct_cursor_enter(at, done);
}

static void place_pieces(struct predication *p, struct ct_cursor *at, struct ct_block *first)
{
    for (struct ct_block *block = first; block; block = p->next_piece[block->id]) {
        if (block->loop_head == block)
            place_loop(p, at, block);
        else
            place_piece(p, at, block);
    }
}

/* ---- edges ---- */

/* The path from a block to the start of a piece, to a block outside of its part, or (NULL) to the end of the thread. */
static struct ct_block *make_hop(struct predication *p, const struct ct_block *from, const struct ct_block *to, uint32_t part)
{
    struct ct_cursor at = {.fn = p->fn, .block = ct_block_create(p->fn), .where = from->last->where};
    struct ct_block *hop = at.block, *join = p->join[p->owner[from->id]];

    ct_assign(&at, p->next, ct_const32(&at, to ? to->id : ENDED));
    ct_cursor_jump(&at, join ? join : p->head[part]); /* NULL: `from` is outside of the part */
    return hop;
}

static void note_exit(struct predication *p, struct ct_block *to, uint32_t part)
{
    if (p->exit_of[to->id] == part)
        return;
    p->exit_of[to->id] = part;
    *CT_PUSH(p->scratch, &p->exits) = to;
}

static void end_in_part(struct predication *p, struct ct_block *block, uint32_t part)
{
    struct ct_block *hop = make_hop(p, block, NULL, part);

    ct_insn_remove(block->last);
    ct_cursor_jump(&(struct ct_cursor){.fn = p->fn, .block = block, .where = hop->first->where}, hop);
    p->ends = true;
}

static bool is_in(const struct predication *p, const struct ct_block *block, uint32_t part)
{
    return block->id < p->n && p->part[block->id] == part;
}

static void note_touching(struct predication *p, struct ct_block *block, uint32_t part)
{
    struct touching *touching = &p->touching[part];

    if (part && !(touching->blocks.n && touching->blocks.v[touching->blocks.n - 1] == block))
        *CT_PUSH(p->scratch, &touching->blocks) = block;
}

static void list_touching(struct predication *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct ct_block *block = p->order[i];

        note_touching(p, block, p->part[block->id]);
        for (uint32_t s = 0; s < block->n_succs; s++)
            note_touching(p, block, p->part[block->succs[s]->id]);
    }
}

/* Redirects the edges that lead into the part, out of it, past it, or from piece to piece. */
static void redirect_edges(struct predication *p, struct ct_block *block, uint32_t part)
{
    if (p->part[block->id] == part && !block->n_succs) {
        end_in_part(p, block, part);
        return;
    }
    for (uint32_t s = 0; s < block->n_succs; s++) {
        struct ct_block *to = block->succs[s];
        const bool leads_out = !is_in(p, to, part);

        if (!leads_out && !p->cut[to->id])
            continue; /* an edge within a piece */
        if (leads_out)
            note_exit(p, to, part);
        block->succs[s] = make_hop(p, block, to, part);
    }
}

static void place_exits(struct predication *p, struct ct_cursor *at)
{
    struct ct_block *last = NULL;

    if (!p->ends)
        last = p->exits.v[--p->exits.n];
    for (uint32_t i = 0; i < p->exits.n; i++) {
        struct ct_block *after = ct_block_create(p->fn);

        ct_cursor_branch(at, ct_equals(at, p->next, p->exits.v[i]->id), p->exits.v[i], after);
        ct_cursor_enter(at, after);
    }
    if (last)
        ct_cursor_jump(at, last);
    else
        ct_emit_insn(at, CT_OP_RET, PTX_NONE, 0, 0);
}

static void place_part(struct predication *p, uint32_t part)
{
    struct ct_cursor at = {.fn = p->fn, .block = ct_block_create(p->fn), .where = p->fn->source->where};

    p->head[part] = at.block;
    p->exits.n = 0;
    p->ends = false;
    place_pieces(p, &at, p->first_piece[part]);
    for (uint32_t i = 0; i < p->touching[part].blocks.n; i++)
        redirect_edges(p, p->touching[part].blocks.v[i], part);
    place_exits(p, &at);
}

void ct_predicate(struct ct_cursor *entry, struct ct_exchange *x, const bool *divergent)
{
    struct ct_fn *fn = entry->fn;
    struct predication p = {.fn = fn, .x = x, .scratch = &fn->compilation->scratch, .divergent = divergent};

    p.order = ct_fn_rpo_blocks(fn, &p.n);
    p.part = CT_ARENA_ARRAY(p.scratch, uint32_t, p.n);
    p.cut = CT_ARENA_ARRAY(p.scratch, bool, p.n);
    p.owner = CT_ARENA_ARRAY(p.scratch, uint32_t, p.n);
    p.join = CT_ARENA_ARRAY(p.scratch, struct ct_block *, p.n);
    p.is_spread = CT_ARENA_ARRAY(p.scratch, bool, p.n);
    find_parts(&p);
    p.head = CT_ARENA_ARRAY(p.scratch, struct ct_block *, (size_t)p.n_parts + 1);
    p.first_piece = CT_ARENA_ARRAY(p.scratch, struct ct_block *, (size_t)p.n_parts + 1);
    p.inner_piece = CT_ARENA_ARRAY(p.scratch, struct ct_block *, p.n);
    p.next_piece = CT_ARENA_ARRAY(p.scratch, struct ct_block *, p.n);
    p.touching = CT_ARENA_ARRAY(p.scratch, struct touching, (size_t)p.n_parts + 1);
    p.exit_of = CT_ARENA_ARRAY(p.scratch, uint32_t, fn->blocks.n);
    find_pieces(&p);
    list_pieces(&p);
    list_touching(&p);
    p.next = ct_copy(entry, ct_const32(entry, ENDED));
    p.any_slot = ct_copy(entry, ct_const32(entry, 0));
    for (uint32_t part = 1; part <= p.n_parts; part++)
        place_part(&p, part);
}
