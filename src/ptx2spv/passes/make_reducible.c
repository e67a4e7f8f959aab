/* SPDX-License-Identifier: Apache-2.0 */
/* make_reducible: transforms irreducible loops (loops with several entries) into loops with one entry.
 * In:  register form.   Out: a reducible graph, which is verified; the entry block has no predecessors if anything changed.
 *
 * Strongly connected components are processed from the outside in. A component with one entry block is a natural loop with that header; the
 * components of what remains without the header are processed next. A component with several entry blocks becomes a loop by one of
 *   node splitting: one entry h stays the header; the blocks that the other entries reach within the component before h are copied for
 *                   the edges from outside. This is done only while few instructions are copied and none of them is a synchronization
 *                   point, which must exist only once.
 *   dispatch:       every jump to an entry sets a selector and goes to a new block, the header, which switches on the selector.
 * All registers that one of the entries reads would be live wherever a jump to any entry is, and each would have a phi in the header with an
 * operand for each jump. So if entries are many, or the kernel has calls, what they read is passed in registers that they have in common. */
#include "passed_registers.h"

#include "ptx2spv/ir/live.h"
#include "ptx2spv/sync/sync.h"

#include <string.h>

#define MAX_COPIED_INSNS 96u /* per component */
#define MAX_COPIED_INSNS_IN_ALL 4096u
#define MAX_ENTRIES_TRIED 8u /* as the header, when splitting */
#define TOO_MANY UINT32_MAX
#define MANY_ENTRIES 8u /* registers are passed from there on; in kernels with calls always, as their loops are nested deeply */

struct block_state {           /* indexed by block id */
    uint32_t region;           /* number of the pending region that contains the block */
    uint32_t component;        /* number of the component that contains the block; 0: none */
    uint32_t reached;          /* stamp of the last traversal that reached the block */
    uint32_t index, low, next; /* Tarjan's algorithm: visit order (0: not visited), low link, index of the next successor */
    bool on_stack;
    struct ct_block *copy; /* valid if copy_stamp is the stamp of the current split */
    uint32_t copy_stamp;
};

struct blocks {
    CT_VEC(struct ct_block *) list;
};

struct entry {
    struct ct_block *jumps[2]; /* set the selector: for jumps from outside and from inside; NULL: there are none */
    struct ct_block *landing;  /* between the header and the entry */
    ct_value *passed;          /* registers that the entry reads */
    uint32_t n_passed;
};

/* A dispatch whose entries have registers in common. */
struct wide_dispatch {
    struct ct_block *header;
    struct blocks component;
    struct entry *entries;
    uint32_t n_entries;
};

struct reducer {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    CT_VEC(struct block_state) states;
    CT_VEC(struct blocks) waiting; /* regions that are still to be processed */
    uint32_t n_regions, n_components, stamp, n_copied;
    CT_VEC(struct wide_dispatch) wide;     /* in the order in which they were made, from the outside in */
    CT_VEC(struct ct_block *) path, stack; /* Tarjan's algorithm: the path of the depth-first search; the blocks of open components */
};

static struct block_state *state_of(struct reducer *rd, const struct ct_block *block)
{
    while (rd->states.n <= block->id)
        (void)CT_PUSH(rd->scratch, &rd->states);
    return &rd->states.v[block->id];
}

static void add_region(struct reducer *rd, const struct blocks *blocks, const struct ct_block *without)
{
    struct blocks region = {0};

    rd->n_regions++;
    for (uint32_t i = 0; i < blocks->list.n; i++) {
        struct ct_block *block = blocks->list.v[i];

        if (block == without)
            continue;
        state_of(rd, block)->region = rd->n_regions;
        *CT_PUSH(rd->scratch, &region.list) = block;
    }
    if (region.list.n)
        *CT_PUSH(rd->scratch, &rd->waiting) = region;
}

static bool has_edge(const struct ct_block *from, const struct ct_block *to)
{
    for (uint32_t s = 0; s < from->n_succs; s++)
        if (from->succs[s] == to)
            return true;
    return false;
}

/* ---- entries ---- */

static bool is_inside(struct reducer *rd, const struct ct_block *block, uint32_t component)
{
    return state_of(rd, block)->component == component;
}

static bool is_entry(struct reducer *rd, const struct ct_block *block, uint32_t component)
{
    for (uint32_t p = 0; p < block->preds.n; p++)
        if (!is_inside(rd, block->preds.v[p], component))
            return true;
    return false;
}

static struct blocks find_entries(struct reducer *rd, const struct blocks *blocks, uint32_t component)
{
    struct blocks entries = {0};

    for (uint32_t i = 0; i < blocks->list.n; i++)
        if (is_entry(rd, blocks->list.v[i], component))
            *CT_PUSH(rd->scratch, &entries.list) = blocks->list.v[i];
    return entries;
}

/* Redirects the edges into `to` whose source is inside (or outside) the component to `instead`. Only the predecessor lists of `to` and
 * `instead` change. */
static void redirect(struct reducer *rd, struct ct_block *to, uint32_t component, bool inside, struct ct_block *instead)
{
    uint32_t kept = 0;

    for (uint32_t p = 0; p < to->preds.n; p++) {
        struct ct_block *pred = to->preds.v[p];

        if (is_inside(rd, pred, component) != inside) {
            to->preds.v[kept++] = pred;
            continue;
        }
        for (uint32_t s = 0; s < pred->n_succs; s++)
            if (pred->succs[s] == to) { /* one edge per predecessor entry */
                pred->succs[s] = instead;
                *CT_PUSH(&rd->fn->compilation->arena, &instead->preds) = pred;
                break;
            }
    }
    to->preds.n = kept;
}

/* ---- node splitting ---- */

static uint32_t count_insns_to_copy(const struct ct_block *block)
{
    uint32_t n = 0;

    for (const struct ct_insn *insn = block->first; insn; insn = insn->next, n++)
        if (ct_is_sync(insn->op) || n > MAX_COPIED_INSNS)
            return TOO_MANY;
    return n;
}

/* Collects the blocks that the entries other than `header` reach within the component before `header`. Returns the number of their
 * instructions, or TOO_MANY. */
static uint32_t find_split(struct reducer *rd, const struct blocks *entries, uint32_t component, const struct ct_block *header,
                           struct blocks *out)
{
    const uint32_t stamp = ++rd->stamp;
    uint32_t insns = 0;

    out->list.n = 0;
    for (uint32_t i = 0; i < entries->list.n; i++)
        if (entries->list.v[i] != header) {
            state_of(rd, entries->list.v[i])->reached = stamp;
            *CT_PUSH(rd->scratch, &out->list) = entries->list.v[i];
        }
    for (uint32_t i = 0; i < out->list.n; i++) {
        const struct ct_block *block = out->list.v[i];
        const uint32_t n = count_insns_to_copy(block);

        if (n == TOO_MANY || (insns += n) > MAX_COPIED_INSNS)
            return TOO_MANY;
        for (uint32_t s = 0; s < block->n_succs; s++) {
            struct ct_block *next = block->succs[s];

            if (next == header || !is_inside(rd, next, component) || state_of(rd, next)->reached == stamp)
                continue;
            state_of(rd, next)->reached = stamp;
            *CT_PUSH(rd->scratch, &out->list) = next;
        }
    }
    return insns;
}

static struct ct_insn *copy_insn(struct ct_fn *fn, const struct ct_insn *insn)
{
    struct ct_insn *copy = ct_insn_create(fn, insn->op, insn->type, insn->n_results, insn->n_operands);
    ct_value *results = copy->results, *operands = copy->operands;

    *copy = *insn;
    copy->results = results;
    copy->operands = operands;
    copy->prev = copy->next = NULL;
    copy->block = NULL;
    memcpy(results, insn->results, insn->n_results * sizeof *results);
    memcpy(operands, insn->operands, insn->n_operands * sizeof *operands);
    return copy;
}

/* Copies the blocks. Edges between them lead to the copies; all other edges keep their targets. */
static struct blocks copy_blocks(struct reducer *rd, const struct blocks *blocks)
{
    struct ct_fn *fn = rd->fn;
    const uint32_t stamp = ++rd->stamp;
    struct blocks copies = {0};

    for (uint32_t i = 0; i < blocks->list.n; i++) {
        struct ct_block *block = blocks->list.v[i], *copy = ct_block_create(fn);
        struct block_state *state = state_of(rd, block);

        state->copy = copy;
        state->copy_stamp = stamp;
        (void)state_of(rd, copy);
        for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
            ct_insn_append(copy, copy_insn(fn, insn));
        *CT_PUSH(rd->scratch, &copies.list) = copy;
    }
    for (uint32_t i = 0; i < blocks->list.n; i++) {
        struct ct_block *copy = copies.list.v[i];

        ct_block_set_succs(fn, copy, blocks->list.v[i]->n_succs, blocks->list.v[i]->succs);
        for (uint32_t s = 0; s < copy->n_succs; s++) {
            const struct block_state *target = state_of(rd, copy->succs[s]);

            if (target->copy_stamp == stamp)
                copy->succs[s] = target->copy;
            *CT_PUSH(&fn->compilation->arena, &copy->succs[s]->preds) = copy;
        }
    }
    return copies;
}

static bool try_to_split(struct reducer *rd, const struct blocks *component, const struct blocks *entries, uint32_t number)
{
    struct ct_block *header = NULL;
    struct blocks region = {0}, copies;
    uint32_t least = MAX_COPIED_INSNS_IN_ALL - rd->n_copied;

    for (uint32_t i = 0; i < entries->list.n && i < MAX_ENTRIES_TRIED; i++) {
        const uint32_t insns = find_split(rd, entries, number, entries->list.v[i], &region);

        if (insns < least) {
            least = insns;
            header = entries->list.v[i];
        }
    }
    if (!header)
        return false;
    rd->n_copied += find_split(rd, entries, number, header, &region);
    copies = copy_blocks(rd, &region);
    for (uint32_t i = 0; i < entries->list.n; i++)
        if (entries->list.v[i] != header)
            redirect(rd, entries->list.v[i], number, false, state_of(rd, entries->list.v[i])->copy);
    add_region(rd, component, header);
    add_region(rd, &copies, NULL);
    return true;
}

/* ---- dispatch ---- */

/* A block that jumps to this one. */
static struct ct_block *create_jump(struct reducer *rd, struct ct_block *to)
{
    struct ct_block *block = ct_block_create(rd->fn);

    (void)state_of(rd, block);
    ct_ssa_jump(rd->fn, block, to);
    return block;
}

/* A block that sets the selector and jumps to the dispatch block. */
static struct ct_block *create_stub(struct reducer *rd, struct ct_block *dispatch, ct_value selector, uint64_t number)
{
    struct ct_block *stub = create_jump(rd, dispatch);
    struct ct_insn *set = ct_insn_create(rd->fn, CT_OP_CONST, PTX_B32, 1, 0);

    set->results[0] = selector;
    set->imm = number;
    ct_insn_insert_before(stub->last, set);
    return stub;
}

static void dispatch(struct reducer *rd, const struct blocks *component, const struct blocks *entries, uint32_t number)
{
    struct ct_fn *fn = rd->fn;
    struct ct_block *header = ct_block_create(fn);
    const ct_value selector = ct_value_create(fn, CT_W_32);
    struct ct_insn *branch = ct_insn_create(fn, CT_OP_SWITCH, PTX_U32, 0, 1);
    const uint32_t n = entries->list.n;
    struct entry *all = CT_ARENA_ARRAY(rd->scratch, struct entry, n);
    struct ct_block **landings = CT_ARENA_ARRAY(rd->scratch, struct ct_block *, n);

    (void)state_of(rd, header);
    branch->operands[0] = selector;
    ct_insn_append(header, branch);
    /* Edges from inside and from outside must use different stubs: a common stub would be a second entry of the loop. */
    for (uint32_t i = 0; i < n; i++) {
        struct ct_block *entry = entries->list.v[i];

        redirect(rd, entry, number, false, all[i].jumps[0] = create_stub(rd, header, selector, i));
        if (entry->preds.n)
            redirect(rd, entry, number, true, all[i].jumps[1] = create_stub(rd, header, selector, i));
        landings[i] = all[i].landing = create_jump(rd, entry);
        *CT_PUSH(&fn->compilation->arena, &landings[i]->preds) = header;
    }
    ct_block_set_succs(fn, header, n, landings);
    add_region(rd, component, NULL);
    if (n >= MANY_ENTRIES || fn->called.n)
        *CT_PUSH(rd->scratch, &rd->wide) = (struct wide_dispatch){header, *component, all, n};
}

/* ---- registers that are passed to entries ---- */

/* Makes jumps lead to the entries themselves, or through the headers again. The lists of predecessors are made anew by what follows. */
static void bypass_headers(struct reducer *rd, bool bypass)
{
    for (uint32_t w = 0; w < rd->wide.n; w++) {
        const struct wide_dispatch *wide = &rd->wide.v[w];

        for (uint32_t i = 0; i < wide->n_entries; i++)
            for (uint32_t j = 0; j < 2; j++)
                if (wide->entries[i].jumps[j])
                    wide->entries[i].jumps[j]->succs[0] = bypass ? wide->entries[i].landing : wide->header;
    }
}

/* Registers that nothing in the component writes need not be passed. */
static void find_passed(struct reducer *rd, struct ct_liveness *liveness, uint32_t *written_in)
{
    for (uint32_t w = 0; w < rd->wide.n; w++) {
        const struct wide_dispatch *wide = &rd->wide.v[w];

        for (uint32_t b = 0; b < wide->component.list.n; b++)
            for (const struct ct_insn *insn = wide->component.list.v[b]->first; insn; insn = insn->next)
                for (uint32_t r = 0; r < insn->n_results; r++)
                    written_in[insn->results[r].i] = w + 1;
        for (uint32_t i = 0; i < wide->n_entries; i++) {
            struct entry *entry = &wide->entries[i];
            uint32_t n_live;

            entry->passed = ct_live_in(liveness, entry->landing, &n_live);
            for (uint32_t k = 0; k < n_live; k++)
                if (written_in[entry->passed[k].i] == w + 1)
                    entry->passed[entry->n_passed++] = entry->passed[k];
        }
    }
}

static void pass_registers(struct reducer *rd, const struct wide_dispatch *wide)
{
    struct ct_passed_registers passed = {0};

    for (uint32_t i = 0; i < wide->n_entries; i++) {
        const struct entry *entry = &wide->entries[i];
        struct ct_cursor at = {.fn = rd->fn, .block = entry->landing, .before = entry->landing->last};

        ct_passed_receive(&at, &passed, entry->passed, entry->n_passed);
    }
    for (uint32_t i = 0; i < wide->n_entries; i++)
        for (uint32_t j = 0; j < 2; j++) {
            const struct entry *entry = &wide->entries[i];
            struct ct_cursor at = {.fn = rd->fn, .block = entry->jumps[j]};

            if (!at.block)
                continue;
            at.before = at.block->last;
            ct_passed_send(&at, &passed, entry->passed, entry->n_passed);
        }
}

static void pass_registers_to_entries(struct reducer *rd)
{
    CT_VEC(const struct ct_block *) landings = {0};
    struct ct_liveness *liveness;

    if (!rd->wide.n)
        return;
    for (uint32_t w = 0; w < rd->wide.n; w++)
        for (uint32_t i = 0; i < rd->wide.v[w].n_entries; i++)
            *CT_PUSH(rd->scratch, &landings) = rd->wide.v[w].entries[i].landing;
    bypass_headers(rd, true);
    liveness = ct_liveness_create(rd->fn, landings.v, landings.n);
    find_passed(rd, liveness, CT_ARENA_ARRAY(rd->scratch, uint32_t, rd->fn->values.n));
    bypass_headers(rd, false);
    for (uint32_t w = 0; w < rd->wide.n; w++)
        pass_registers(rd, &rd->wide.v[w]);
}

/* ---- components ---- */

/* `members` is a component found in a region; its last element is the block at which the depth-first search entered it. */
static void process_component(struct reducer *rd, struct ct_block *const *members, uint32_t n)
{
    const uint32_t number = ++rd->n_components;
    struct blocks blocks = {0}, entries;

    if (n == 1 && !has_edge(members[0], members[0]))
        return;
    for (uint32_t i = 0; i < n; i++) {
        state_of(rd, members[i])->component = number;
        *CT_PUSH(rd->scratch, &blocks.list) = members[i];
    }
    entries = find_entries(rd, &blocks, number);
    if (entries.list.n == 1)
        add_region(rd, &blocks, entries.list.v[0]);
    else if (!try_to_split(rd, &blocks, &entries, number))
        dispatch(rd, &blocks, &entries, number);
}

static void enter(struct reducer *rd, struct ct_block *block, uint32_t *order)
{
    struct block_state *state = state_of(rd, block);

    state->index = state->low = ++*order;
    state->next = 0;
    state->on_stack = true;
    *CT_PUSH(rd->scratch, &rd->path) = block;
    *CT_PUSH(rd->scratch, &rd->stack) = block;
}

/* Tarjan, "Depth-first search and linear graph algorithms" (1972), without recursion, from one block and within one region. The
 * components are appended to `found`, each with its root last. They are processed later, because the search needs an unchanged graph. */
static void walk(struct reducer *rd, struct ct_block *start, uint32_t region, uint32_t *order, struct blocks *found, struct blocks *roots)
{
    enter(rd, start, order);
    while (rd->path.n) {
        struct ct_block *block = rd->path.v[rd->path.n - 1];
        struct block_state *state = state_of(rd, block);

        if (state->next < block->n_succs) {
            struct ct_block *next = block->succs[state->next++];
            const struct block_state *there = state_of(rd, next);

            if (there->region != region)
                continue;
            if (!there->index)
                enter(rd, next, order);
            else if (there->on_stack && there->index < state->low)
                state->low = there->index;
            continue;
        }
        rd->path.n--;
        if (rd->path.n && state->low < state_of(rd, rd->path.v[rd->path.n - 1])->low)
            state_of(rd, rd->path.v[rd->path.n - 1])->low = state->low;
        if (state->low != state->index)
            continue;
        *CT_PUSH(rd->scratch, &roots->list) = block;
        for (struct ct_block *member = NULL; member != block;) {
            member = rd->stack.v[--rd->stack.n];
            state_of(rd, member)->on_stack = false;
            *CT_PUSH(rd->scratch, &found->list) = member;
        }
    }
}

static void process_region(struct reducer *rd, const struct blocks *blocks)
{
    const uint32_t region = state_of(rd, blocks->list.v[0])->region;
    struct blocks found = {0}, roots = {0};
    uint32_t order = 0, at = 0;

    for (uint32_t i = 0; i < blocks->list.n; i++) {
        state_of(rd, blocks->list.v[i])->index = 0;
        state_of(rd, blocks->list.v[i])->component = 0;
    }
    for (uint32_t i = 0; i < blocks->list.n; i++)
        if (!state_of(rd, blocks->list.v[i])->index)
            walk(rd, blocks->list.v[i], region, &order, &found, &roots);
    for (uint32_t r = 0; r < roots.list.n; r++) {
        const uint32_t first = at;

        while (found.list.v[at] != roots.list.v[r])
            at++;
        at++;
        process_component(rd, &found.list.v[first], at - first);
    }
}

enum ct_pass_result ct_pass_make_reducible(struct ct_fn *fn)
{
    struct reducer rd = {.fn = fn, .scratch = &fn->compilation->scratch};
    struct blocks all = {0};

    ct_fn_remove_unreachable(fn);
    ct_fn_compute_dominators(fn);
    if (ct_fn_is_reducible(fn))
        return CT_PASS_UNCHANGED;
    ct_fn_detach_entry(fn);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        *CT_PUSH(rd.scratch, &all.list) = fn->blocks.v[b];
    add_region(&rd, &all, NULL);
    while (rd.waiting.n) {
        const struct blocks region = rd.waiting.v[--rd.waiting.n];

        process_region(&rd, &region);
    }
    pass_registers_to_entries(&rd);
    ct_fn_remove_unreachable(fn);
    ct_fn_compute_dominators(fn);
    if (!ct_fn_is_reducible(fn)) {
        ct_error(fn->compilation, fn->source->where, PTX2SPV_INTERNAL, "internal error in %s: the graph is still irreducible", fn->name);
        return CT_PASS_FAILED;
    }
    return CT_PASS_CHANGED;
}
