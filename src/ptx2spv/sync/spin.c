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

struct search {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t *component; /* indexed by block id: blocks of one cycle share a number; 0: in no cycle */
    bool *constant;      /* indexed by value: every definition is a constant */
};

/* ---- cycles: Tarjan's strongly connected components, without recursion ---- */

static void find_components(struct search *s)
{
    const uint32_t n = s->fn->blocks.n;
    uint32_t *index = CT_ARENA_ARRAY(s->scratch, uint32_t, n), *low = CT_ARENA_ARRAY(s->scratch, uint32_t, n);
    uint32_t *next = CT_ARENA_ARRAY(s->scratch, uint32_t, n), counter = 0, number = 0;
    bool *on_stack = CT_ARENA_ARRAY(s->scratch, bool, n);
    CT_VEC(struct ct_block *) path = {0}, stack = {0};

    *CT_PUSH(s->scratch, &path) = s->fn->blocks.v[0];
    while (path.n) {
        struct ct_block *block = path.v[path.n - 1];
        const uint32_t b = block->id;

        if (!index[b]) {
            index[b] = low[b] = ++counter;
            on_stack[b] = true;
            *CT_PUSH(s->scratch, &stack) = block;
        }
        if (next[b] < block->n_succs) {
            struct ct_block *to = block->succs[next[b]++];

            if (!index[to->id])
                *CT_PUSH(s->scratch, &path) = to;
            else if (on_stack[to->id] && index[to->id] < low[b])
                low[b] = index[to->id];
            continue;
        }
        path.n--;
        if (path.n && low[b] < low[path.v[path.n - 1]->id])
            low[path.v[path.n - 1]->id] = low[b];
        if (low[b] != index[b])
            continue;
        bool loops = stack.v[stack.n - 1] != block;
        for (uint32_t i = 0; i < block->n_succs; i++)
            loops |= block->succs[i] == block;
        number++;
        for (struct ct_block *member = NULL; member != block;) {
            member = stack.v[--stack.n];
            on_stack[member->id] = false;
            s->component[member->id] = loops ? number : 0;
        }
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

static bool decides_in_its_cycle(const struct search *s, const struct ct_insn *read)
{
    const uint32_t component = s->component[read->block->id];
    bool *tainted = CT_ARENA_ARRAY(s->scratch, bool, s->fn->values.n + 1);

    for (uint32_t i = 0; i < read->n_results; i++)
        tainted[read->results[i].i] = true;
    tainted[0] = false;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < s->fn->blocks.n; b++) {
            if (s->component[b] != component)
                continue;
            for (const struct ct_insn *insn = s->fn->blocks.v[b]->first; insn; insn = insn->next) {
                bool reads = false;

                for (uint32_t i = 0; i < insn->n_operands; i++)
                    reads |= tainted[insn->operands[i].i];
                if (!reads)
                    continue;
                if (insn->op == CT_OP_CBR || insn->op == CT_OP_SWITCH)
                    return true;
                for (uint32_t i = 0; i < insn->n_results && insn->op != CT_OP_LOAD; i++) {
                    changed |= insn->results[i].i && !tainted[insn->results[i].i];
                    tainted[insn->results[i].i] |= insn->results[i].i != 0;
                }
            }
        }
    }
    return false;
}

bool ct_mark_spins(struct ct_fn *fn, enum ct_spins which)
{
    struct search s = {.fn = fn, .scratch = &fn->compilation->scratch};
    bool found = false;

    s.component = CT_ARENA_ARRAY(s.scratch, uint32_t, fn->blocks.n);
    s.constant = CT_ARENA_ARRAY(s.scratch, bool, fn->values.n + 1);
    find_components(&s);
    find_constants(&s);
    for (uint32_t b = 0; b < fn->blocks.n; b++) {
        if (!s.component[b])
            continue;
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (may_wait(&s, insn, which) && decides_in_its_cycle(&s, insn)) {
                ct_insn_insert_before(insn, ct_insn_create(fn, CT_OP_YIELD, PTX_NONE, 0, 0));
                found = true;
            }
    }
    return found;
}
