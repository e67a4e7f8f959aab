/* SPDX-License-Identifier: Apache-2.0 */
/* warp_synchronous: keeps the lanes of a warp in step at memory accesses where a program relies on that implicitly.
 * In:  register form, calls inlined, laid out.   Out: the same, with CONVERGE before such accesses.
 *
 * Warp-synchronous code passes values between the lanes of a warp through memory without __syncwarp(). It is correct if every lane has
 * executed an access before any lane executes the next one. This is guaranteed for code for targets below sm_70 (CUDA C++ Programming
 * Guide, "Independent Thread Scheduling"), and on later NVIDIA GPUs it is what converged lanes do in practice. The last steps of many old
 * reductions rely on it, with volatile accesses to shared memory, since the compiler may reorder other accesses. Therefore lanes are kept
 * in step
 *   - at volatile accesses to shared memory, always;
 *   - at all accesses to shared memory, if the module's .target is below sm_70;
 *   - at all accesses to shared and global memory, if the target of the compilation says so (CUTTLE_LOCKSTEP).
 *
 * For each of the two memories a forward data-flow analysis finds which kinds of access may have been the last one since the lanes were
 * last in step. A CONVERGE is inserted before an access that must not overtake one of those in another lane: a load stays after stores,
 * a store after loads and stores, and an atomic operation after loads and stores, and vice versa. Since there is a CONVERGE between
 * each conflicting pair, only the last access has to be considered. */
#include "sync.h"

#include <string.h>

enum access { ACCESS_NONE = 0, ACCESS_LOAD = 1, ACCESS_STORE = 2, ACCESS_ATOMIC = 4 };

struct search {
    struct ct_fn *fn;
    struct ct_block **order; /* in reverse postorder, n_blocks elements */
    uint32_t n_blocks;
    enum ct_space space; /* the memory under consideration: CT_SPACE_SHARED or CT_SPACE_GLOBAL */
    bool all;            /* also accesses that are not volatile */
    bool *may_be_shared; /* indexed by value: computed from a generic address of shared memory */
    uint8_t *reaching;   /* indexed by block id: kinds of access that may be the last before the block (a set of enum access) */
};

/* ---- which accesses are considered ---- */

static bool is_tainted(const struct search *s, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_CONST)
        return insn->imm >> CT_TAG_SHIFT == CT_TAG_SHARED;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (s->may_be_shared[insn->operands[i].i])
            return true;
    return false;
}

/* Follows the tag that cvta gives to addresses of shared memory. Addresses that were stored in memory are not followed. */
static void find_shared_addresses(struct search *s)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < s->n_blocks; b++)
            for (const struct ct_insn *insn = s->order[b]->first; insn; insn = insn->next) {
                if (insn->op == CT_OP_LOAD || insn->op == CT_OP_ATOM || !is_tainted(s, insn))
                    continue;
                for (uint32_t i = 0; i < insn->n_results; i++) {
                    changed |= !s->may_be_shared[insn->results[i].i];
                    s->may_be_shared[insn->results[i].i] = true;
                }
            }
    }
}

/* Whether lanes may have to be in step at this access, judged by the instruction alone. */
static bool is_candidate(const struct search *s, const struct ct_insn *insn)
{
    return (insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM) &&
           (insn->space == s->space || insn->space == CT_SPACE_GENERIC) && (s->all || insn->semantics == PTX_VOLATILE);
}

static enum access access_of(const struct search *s, const struct ct_insn *insn)
{
    if (!is_candidate(s, insn))
        return ACCESS_NONE;
    if (insn->space == CT_SPACE_GENERIC && s->may_be_shared[insn->operands[0].i] != (s->space == CT_SPACE_SHARED))
        return ACCESS_NONE;
    return insn->op == CT_OP_LOAD ? ACCESS_LOAD : insn->op == CT_OP_STORE ? ACCESS_STORE : ACCESS_ATOMIC;
}

/* Most kernels have no such write: then there is nothing to do. */
static bool has_candidate_write(const struct search *s)
{
    for (uint32_t b = 0; b < s->n_blocks; b++)
        for (const struct ct_insn *insn = s->order[b]->first; insn; insn = insn->next)
            if (insn->op != CT_OP_LOAD && is_candidate(s, insn))
                return true;
    return false;
}

/* The kinds of access that an access of this kind must not overtake in another lane. */
static uint8_t conflicts_of(enum access access)
{
    switch (access) {
    case ACCESS_LOAD:
        return ACCESS_STORE | ACCESS_ATOMIC;
    case ACCESS_STORE:
        return ACCESS_LOAD | ACCESS_STORE | ACCESS_ATOMIC;
    case ACCESS_ATOMIC:
        return ACCESS_LOAD | ACCESS_STORE;
    case ACCESS_NONE:
        break;
    }
    return 0;
}

/* ---- the analysis ---- */

static uint8_t last_access_after(const struct search *s, uint8_t before, const struct ct_insn *insn)
{
    const enum access access = access_of(s, insn);

    return access ? (uint8_t)access : ct_reconverges(insn) ? ACCESS_NONE : before;
}

static void find_reaching(struct search *s)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < s->n_blocks; b++) {
            const struct ct_block *block = s->order[b];
            uint8_t last = s->reaching[block->id];

            for (const struct ct_insn *insn = block->first; insn; insn = insn->next)
                last = last_access_after(s, last, insn);
            for (uint32_t i = 0; i < block->n_succs; i++) {
                uint8_t *next = &s->reaching[block->succs[i]->id];

                changed |= (*next | last) != *next;
                *next |= last;
            }
        }
    }
}

static bool insert_converges(struct search *s, struct ct_block *block)
{
    uint8_t last = s->reaching[block->id];
    bool changed = false;

    for (struct ct_insn *insn = block->first; insn; insn = insn->next) {
        if (conflicts_of(access_of(s, insn)) & last) {
            ct_insn_insert_before(insn, ct_insn_create(s->fn, CT_OP_CONVERGE, PTX_NONE, 0, 0));
            changed = true;
        }
        last = last_access_after(s, last, insn);
    }
    return changed;
}

static bool insert_converges_for(struct search *s, enum ct_space space, bool all)
{
    bool changed = false;

    s->space = space;
    s->all = all;
    if (!has_candidate_write(s))
        return false;
    memset(s->reaching, 0, s->fn->blocks.n * sizeof *s->reaching);
    find_shared_addresses(s);
    find_reaching(s);
    for (uint32_t b = 0; b < s->n_blocks; b++)
        changed |= insert_converges(s, s->order[b]);
    return changed;
}

enum ct_pass_result ct_pass_warp_synchronous(struct ct_fn *fn)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    const bool all = fn->target->lockstep;
    struct search s = {.fn = fn};
    bool changed;

    s.order = ct_fn_rpo_blocks(fn, &s.n_blocks);
    s.may_be_shared = CT_ARENA_ARRAY(scratch, bool, (size_t)fn->values.n + 1);
    s.reaching = CT_ARENA_ARRAY(scratch, uint8_t, fn->blocks.n);
    changed = insert_converges_for(&s, CT_SPACE_SHARED, all || fn->module->oldest_sm < CT_FIRST_INDEPENDENT_SM);
    if (all)
        changed |= insert_converges_for(&s, CT_SPACE_GLOBAL, all);
    return changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
