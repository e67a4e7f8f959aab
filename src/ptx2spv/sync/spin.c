/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that wait for another thread, in register form: while (!flag) or while (atomicCAS(&lock, 0, 1)). On devices that run the threads of
 * a block one after the other, such a loop never ends by itself, so it gets a point at which the other threads continue (YIELD).
 *
 * On GPUs warps run concurrently, but SPIR-V allows an implementation to hold the lanes of one warp back behind a loop until the last lane
 * has left it. Then a lane that holds a lock never releases it, so loops that take locks need the point there, too.
 *
 * The search is for a volatile, relaxed or acquire load, an exchange, or a compare-and-swap with a constant, in a cycle with a branch
 * whose condition depends on the value that was read. A compare-and-swap with a value that was read before is a retry loop, which waits
 * for no other thread. */
#include "sync.h"

#include "ptx2spv/ir/components.h"

struct search {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t *component; /* indexed by block id: blocks of one cycle share a number, from 1; 0: in no cycle */
    bool *constant;      /* indexed by value: every definition is a constant */
    uint32_t n_components;
    const struct ct_block **call_ends;        /* by block id: the end of the call that begins there */
    bool *returns;                            /* by block id: it is where a function that is out of line returns */
    struct ct_block **members, **next_member; /* by component: its first block; by block id: the next block of the same component */
    uint32_t *decides_in;                     /* indexed by value: the last component in which a branch depends on it */
};

static uint32_t successor(const void *search, uint32_t block, uint32_t i)
{
    const struct search *s = search;
    const struct ct_block *from = s->fn->blocks.v[block];

    if (i < from->n_succs && !s->returns[block])
        return from->succs[i]->id;
    return i == from->n_succs && s->call_ends[block] ? s->call_ends[block]->id : UINT32_MAX;
}

/* Functions that are out of line return to all of their calls, so there are cycles in the graph that are no loops of the program. Therefore their
 * returns have no successors here, and the end of a call is a second successor of its begin. */
static void step_over_calls(struct search *s)
{
    s->call_ends = CT_ARENA_ARRAY(s->scratch, const struct ct_block *, s->fn->blocks.n);
    s->returns = CT_ARENA_ARRAY(s->scratch, bool, s->fn->blocks.n);
    for (uint32_t c = 0; c < s->fn->calls.n; c++) {
        const struct ct_call *call = &s->fn->calls.v[c];
        const struct ct_called_function *callee = &s->fn->called.v[call->callee];

        if (callee->is_recursive || !ct_block_is_reached(call->begin) || !ct_block_is_reached(call->end))
            continue;
        s->call_ends[call->begin->id] = call->end;
        s->returns[callee->leave->id] = true;
    }
}

static void find_constants(struct search *s)
{
    for (uint32_t v = 0; v < s->fn->values.n; v++)
        s->constant[v] = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < s->fn->blocks.n; b++)
            for (const struct ct_insn *insn = s->fn->blocks.v[b]->first; insn; insn = insn->next) {
                const bool is_constant = insn->op == CT_OP_CONST || (insn->op == CT_OP_COPY && s->constant[insn->operands[0].i]);

                for (uint32_t i = 0; i < insn->n_results && !is_constant; i++) {
                    changed |= s->constant[insn->results[i].i];
                    s->constant[insn->results[i].i] = false;
                }
            }
    }
}

/* ---- reads that decide a branch ---- */

static bool may_wait(const struct search *s, const struct ct_insn *insn, enum ct_spins which)
{
    if (insn->space == CT_SPACE_LOCAL || insn->space == CT_SPACE_PARAM || !insn->n_results)
        return false;
    if (insn->op == CT_OP_LOAD && which == CT_SPINS_ALL)
        return insn->semantics == PTX_VOLATILE || insn->semantics == PTX_RELAXED || insn->semantics == PTX_ACQUIRE ||
               insn->semantics == PTX_SC;
    if (insn->op != CT_OP_ATOM)
        return false;
    return insn->operation == PTX_EXCH || (insn->operation == PTX_CAS && s->constant[insn->operands[1].i]);
}

/* Marks the operands of an instruction if they decide, or one of its results does. Whether a mark is new. */
static bool mark_deciding(struct search *s, const struct ct_insn *insn, uint32_t component)
{
    bool decides = insn->op == CT_OP_CBR || insn->op == CT_OP_SWITCH, is_new = false;

    for (uint32_t i = 0; i < insn->n_results && insn->op != CT_OP_LOAD; i++)
        decides |= insn->results[i].i && s->decides_in[insn->results[i].i] == component;
    for (uint32_t i = 0; decides && i < insn->n_operands; i++) {
        is_new |= insn->operands[i].i && s->decides_in[insn->operands[i].i] != component;
        s->decides_in[insn->operands[i].i] = component;
    }
    return is_new;
}

/* Finds the registers on whose values a branch in this cycle depends. */
static void find_deciding(struct search *s, uint32_t component)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (struct ct_block *block = s->members[component]; block; block = s->next_member[block->id])
            for (const struct ct_insn *insn = block->last; insn; insn = insn->prev)
                changed |= mark_deciding(s, insn, component);
    }
}

static bool decides_in_its_cycle(const struct search *s, const struct ct_insn *read)
{
    for (uint32_t i = 0; i < read->n_results; i++)
        if (read->results[i].i && s->decides_in[read->results[i].i] == s->component[read->block->id])
            return true;
    return false;
}

/* Inserts the points in one cycle; whether there are any. */
static bool mark_cycle(struct search *s, uint32_t component, enum ct_spins which)
{
    bool is_searched = false, found = false;

    for (struct ct_block *block = s->members[component]; block; block = s->next_member[block->id])
        for (struct ct_insn *insn = block->first; insn; insn = insn->next) {
            if (!may_wait(s, insn, which))
                continue;
            if (!is_searched)
                find_deciding(s, component);
            is_searched = true;
            if (!decides_in_its_cycle(s, insn))
                continue;
            ct_insn_insert_before(insn, ct_insn_create(s->fn, CT_OP_YIELD, PTX_NONE, 0, 0));
            found = true;
        }
    return found;
}

/* Lists the blocks of each cycle. */
static void list_members(struct search *s)
{
    s->members = CT_ARENA_ARRAY(s->scratch, struct ct_block *, (size_t)s->fn->blocks.n + 1);
    s->next_member = CT_ARENA_ARRAY(s->scratch, struct ct_block *, s->fn->blocks.n);
    for (uint32_t b = s->fn->blocks.n; b-- > 0;) {
        s->next_member[b] = s->members[s->component[b]];
        s->members[s->component[b]] = s->fn->blocks.v[b];
    }
}

bool ct_mark_spins(struct ct_fn *fn, enum ct_spins which)
{
    struct search s = {.fn = fn, .scratch = &fn->compilation->scratch};
    const struct ct_graph graph = {fn->blocks.n, successor, &s};
    bool found = false;

    step_over_calls(&s);
    s.component = ct_find_cycles(s.scratch, &graph, &s.n_components);
    s.constant = CT_ARENA_ARRAY(s.scratch, bool, fn->values.n + 1);
    s.decides_in = CT_ARENA_ARRAY(s.scratch, uint32_t, fn->values.n + 1);
    find_constants(&s);
    list_members(&s);
    for (uint32_t component = 1; component <= s.n_components; component++)
        found |= mark_cycle(&s, component, which);
    return found;
}
