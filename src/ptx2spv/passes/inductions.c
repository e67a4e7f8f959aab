/* SPDX-License-Identifier: Apache-2.0 */
/* inductions: values that a loop advances alike become one, on targets that add offsets in accesses (ptx2spv_target.short_offsets).
 * In:  SSA, reducible.   Out: the same.
 *
 *     loop:                                       loop:
 *       i = phi 0, i2                               i = phi 0, i2
 *       p = phi row, p2                   =>        p = phi row, p2
 *       q = phi row + n, q2                         q = add p, n
 *       a = phi 0, a2                               a = shl i, 4
 *       i2 = add i, 1                               i2 = add i, 1
 *       p2 = add p, step                            p2 = add p, step
 *       q2 = add q, step
 *       a2 = add a, 16
 *
 * nvcc advances every index and every address by itself, which suits NVIDIA's GPUs. Each takes a register and an addition. Other GPUs add the difference
 * in the access, and AMD's shift the operand of an addition for nothing. The differences between first values are found as polynomials, modulo 2^32. */
#include "inductions.h"

#include "ptx2spv/ir/polynomial.h"

enum { INDUCTIONS_MAX = 24 /* of one loop */, SHIFT_MAX = 16 };

struct induction {
    struct ct_insn *phi;
    struct ct_polynomial first, step;
    bool is_stepped_only; /* the sum of the phi and the step is used by the phi only */
    bool is_merged;
};

struct loop {
    struct ct_fn *fn;
    struct ct_block *header, *entry; /* and the block before it */
    uint32_t n;
    struct induction inductions[INDUCTIONS_MAX];
};

/* q = p * 2^shift + difference, in every iteration. */
struct relation {
    uint32_t shift;
    struct ct_polynomial difference;
};

/* ---- what a loop advances ---- */

static bool is_invariant(const struct ct_fn *fn, const struct ct_polynomial *polynomial, const struct ct_block *header)
{
    for (uint32_t i = 0; i < polynomial->n; i++)
        for (uint32_t k = 0; k < polynomial->terms[i].degree; k++) {
            const struct ct_insn *def = fn->values.v[polynomial->terms[i].atoms[k].i].def;

            if (!def || ct_loop_contains(header, def->block))
                return false;
        }
    return true;
}

/* Whether the phi is advanced by the same in each iteration. `latch`: which operand is that of the next one. */
static bool find_induction(struct loop *loop, struct ct_insn *phi, uint32_t latch, const uint32_t *uses, struct induction *out)
{
    const struct ct_fn *fn = loop->fn;
    struct ct_polynomial self;

    if (ct_width_of_value(fn, phi->results[0]) != CT_W_32)
        return false;
    *out = (struct induction){.phi = phi, .is_stepped_only = uses[phi->operands[latch].i] == 1};
    ct_polynomial_of(fn, phi->operands[!latch], &out->first);
    ct_polynomial_of(fn, phi->operands[latch], &out->step);
    ct_polynomial_of(fn, phi->results[0], &self);
    return ct_polynomial_add(&out->step, &self, UINT32_MAX) && out->step.n && is_invariant(fn, &out->step, loop->header);
}

static void find_inductions(struct loop *loop, const uint32_t *uses)
{
    const struct ct_block *header = loop->header;
    const uint32_t latch = ct_loop_contains(header, header->preds.v[1]);

    loop->entry = header->preds.v[!latch];
    for (struct ct_insn *phi = header->first; phi->op == CT_OP_PHI && loop->n < INDUCTIONS_MAX; phi = phi->next)
        loop->n += find_induction(loop, phi, latch, uses, &loop->inductions[loop->n]);
}

/* ---- how two are related ---- */

/* Whether a = b * 2^shift for some shift. */
static bool find_shift(const struct ct_polynomial *a, const struct ct_polynomial *b, uint32_t *shift)
{
    struct ct_polynomial rest = *a;

    *shift = 0;
    while (*shift < SHIFT_MAX && b->terms[0].coefficient << *shift != a->terms[0].coefficient)
        ++*shift;
    return a->n == b->n && ct_polynomial_add(&rest, b, -(UINT32_C(1) << *shift)) && !rest.n;
}

static bool relate(const struct ct_fn *fn, const struct induction *q, const struct induction *p, struct relation *out)
{
    if (p == q || p->is_merged || q->is_merged || !find_shift(&q->step, &p->step, &out->shift))
        return false;
    if (out->shift &&
        fn->target->short_offsets == PTX2SPV_OFFSETS_SHORT_FIXED) /* Intel's additions do not shift: ANV estimates more cycles */
        return false;
    out->difference = q->first;
    if (!ct_polynomial_add(&out->difference, &p->first, -(UINT32_C(1) << out->shift)) || !ct_polynomial_is_cheap(fn, &out->difference))
        return false;
    return q->is_stepped_only || (!out->shift && !out->difference.n);
}

/* The induction to which most others are related; of these, with the fewest terms in their differences. NULL: there are no two. */
static const struct induction *choose_root(const struct loop *loop)
{
    const struct induction *best = NULL;
    uint32_t most = 0, fewest = 0;

    for (uint32_t i = 0; i < loop->n; i++) {
        uint32_t related = 0, terms = 0;

        for (uint32_t k = 0; k < loop->n; k++) {
            struct relation relation;

            if (relate(loop->fn, &loop->inductions[k], &loop->inductions[i], &relation)) {
                related++;
                terms += relation.difference.n;
            }
        }
        if (related > most || (related && related == most && terms < fewest)) {
            best = &loop->inductions[i];
            most = related;
            fewest = terms;
        }
    }
    return best;
}

/* ---- merging ---- */

static struct ct_insn *first_behind_phis(const struct ct_block *block)
{
    struct ct_insn *insn = block->first;

    while (insn->op == CT_OP_PHI)
        insn = insn->next;
    return insn;
}

static void merge(struct loop *loop, struct induction *q, const struct induction *p, const struct relation *relation)
{
    struct ct_cursor before = {.fn = loop->fn, .block = loop->entry, .before = loop->entry->last, .where = q->phi->where};
    const ct_value difference = ct_polynomial_emit(&before, &relation->difference), result = q->phi->results[0];
    struct ct_cursor at = {.fn = loop->fn, .block = loop->header, .before = first_behind_phis(loop->header), .where = q->phi->where};
    ct_value value = p->phi->results[0];

    ct_insn_remove(q->phi);
    if (relation->shift)
        value = ct_shl_imm(&at, value, relation->shift);
    if (difference.i)
        value = ct_add(&at, value, difference);
    ct_assign(&at, result, value);
    q->is_merged = true;
}

static bool merge_inductions(struct loop *loop)
{
    const struct induction *root;
    bool changed = false;

    while ((root = choose_root(loop))) {
        for (uint32_t i = 0; i < loop->n; i++) {
            struct relation relation;

            if (relate(loop->fn, &loop->inductions[i], root, &relation))
                merge(loop, &loop->inductions[i], root, &relation);
        }
        loop->inductions[root - loop->inductions].is_merged = true; /* nothing else is related to it */
        changed = true;
    }
    return changed;
}

bool ct_merge_inductions(struct ct_fn *fn)
{
    struct loop *loop = CT_ARENA_ARRAY(&fn->compilation->scratch, struct loop, 1);
    const uint32_t *uses = ct_fn_count_uses(fn);
    struct ct_block **blocks;
    bool changed = false;
    uint32_t n;

    ct_fn_compute_rpo(fn);
    ct_fn_compute_dominators(fn);
    ct_fn_compute_loops(fn);
    blocks = ct_fn_rpo_blocks(fn, &n);
    for (uint32_t b = 0; b < n; b++) {
        if (blocks[b]->loop_head != blocks[b] || blocks[b]->preds.n != 2)
            continue;
        loop->fn = fn;
        loop->header = blocks[b];
        loop->n = 0;
        find_inductions(loop, uses);
        changed |= merge_inductions(loop);
    }
    return changed;
}

enum ct_pass_result ct_pass_inductions(struct ct_fn *fn)
{
    return fn->target->short_offsets && ct_merge_inductions(fn) ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
