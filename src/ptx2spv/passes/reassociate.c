/* SPDX-License-Identifier: Apache-2.0 */
/* reassociate: an index that differs from an earlier one by what all threads have in common is computed from that one, on targets that add offsets in
 * accesses (ptx2spv_target.short_offsets).
 * In:  SSA, reducible.   Out: the same.
 *
 *     i = add (mul y, n), x                       i = add (mul y, n), x
 *     z = add y, 2                      =>
 *     j = add (mul z, n), x                       j = add i, (mul n, 2)
 *
 * nvcc multiplies once for each row of a stencil. Products of integers take four times as long as sums on AMD's GPUs, and are several operations on
 * Intel's; what all threads have in common is computed once for all. The differences are found as polynomials, modulo 2^32. */
#include "ptx2spv/ir/polynomial.h"

enum { DEPTH_MAX = 6, BUCKETS = 256, TRIED_MAX = 16 /* of a bucket */ };

struct index {
    struct ct_polynomial varying, uniform; /* their sum is the index; uniform: all terms that are the same for all threads */
    const struct ct_insn *def;
    struct index *next; /* with the same hash */
};

struct pass {
    struct ct_fn *fn;
    uint32_t *uses; /* by value */
    bool *is_part;  /* by value: it is used by one other sum only */
    struct index *indices[BUCKETS];
    bool changed;
};

/* Whether the value is a product of values that are not constant, and vary among the threads. */
static bool is_product(const struct pass *p, ct_value value)
{
    const struct ct_insn *def = p->fn->values.v[value.i].def;
    struct ct_polynomial product;

    if (!def || def->op != CT_OP_MUL)
        return false;
    ct_polynomial_of(p->fn, value, &product);
    for (uint32_t i = 0; i < product.n; i++)
        if (product.terms[i].degree > 1 && !ct_monomial_is_uniform(p->fn, &product.terms[i]))
            return true;
    return false;
}

static bool is_sum(const struct pass *p, const struct ct_insn *def)
{
    return def && def->op == CT_OP_ADD && ct_width_of_value(p->fn, def->results[0]) == CT_W_32;
}

/* Whether there is a product among the terms of a sum, which may consist of other sums. `owned`: one that is used nowhere else, and need not be computed if
 * the sum is not. */
static bool has_product(const struct pass *p, const struct ct_insn *sum, bool owned, unsigned depth)
{
    for (uint32_t i = 0; i < 2; i++) {
        const ct_value term = sum->operands[i];
        const struct ct_insn *def = p->fn->values.v[term.i].def;

        if (owned && p->uses[term.i] != 1)
            continue;
        if (is_product(p, term) || (depth && is_sum(p, def) && has_product(p, def, owned, depth - 1)))
            return true;
    }
    return false;
}

static struct index *index_of(const struct pass *p, const struct ct_insn *insn)
{
    struct index *index = CT_ARENA_ARRAY(&p->fn->compilation->scratch, struct index, 1);
    struct ct_polynomial whole;

    index->def = insn;
    ct_polynomial_of(p->fn, insn->results[0], &whole);
    for (uint32_t i = 0; i < whole.n; i++) {
        struct ct_polynomial *part = ct_monomial_is_uniform(p->fn, &whole.terms[i]) ? &index->uniform : &index->varying;

        part->terms[part->n++] = whole.terms[i];
    }
    return index;
}

/* An earlier index in the same loop, which differs from this one by a few operations. Blocks are visited in reverse postorder. */
static const struct index *find_earlier(const struct pass *p, const struct index *list, const struct index *index,
                                        struct ct_polynomial *difference)
{
    unsigned tried = 0;

    for (const struct index *earlier = list; earlier && tried++ < TRIED_MAX; earlier = earlier->next) {
        *difference = index->uniform;
        if (earlier->def->block->loop_head == index->def->block->loop_head && ct_block_dominates(earlier->def->block, index->def->block) &&
            ct_polynomials_equal(&earlier->varying, &index->varying) && ct_polynomial_add(difference, &earlier->uniform, UINT32_MAX) &&
            ct_polynomial_is_cheap(p->fn, difference))
            return earlier;
    }
    return NULL;
}

static void visit(struct pass *p, struct ct_insn *insn)
{
    struct index *index = index_of(p, insn), **bucket = &p->indices[ct_polynomial_hash(&index->varying) % BUCKETS];
    struct ct_cursor at = {.fn = p->fn, .block = insn->block, .before = insn, .where = insn->where};
    struct ct_polynomial difference;
    const struct index *earlier = find_earlier(p, *bucket, index, &difference);

    if (!earlier || !has_product(p, insn, true, DEPTH_MAX)) {
        index->next = *bucket;
        *bucket = index;
        return;
    }
    if (difference.n) {
        insn->operands[0] = earlier->def->results[0];
        insn->operands[1] = ct_polynomial_emit(&at, &difference);
    } else {
        insn->op = CT_OP_COPY;
        insn->operands[0] = earlier->def->results[0];
        insn->n_operands = 1;
    }
    p->changed = true;
}

static void find_parts(struct pass *p)
{
    p->is_part = CT_ARENA_ARRAY(&p->fn->compilation->scratch, bool, p->fn->values.n);
    for (uint32_t b = 0; b < p->fn->blocks.n; b++)
        for (const struct ct_insn *insn = p->fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < 2 && is_sum(p, insn); i++)
                p->is_part[insn->operands[i].i] = p->uses[insn->operands[i].i] == 1;
}

enum ct_pass_result ct_pass_reassociate(struct ct_fn *fn)
{
    struct pass p = {.fn = fn};
    struct ct_block **blocks;
    uint32_t n;

    if (!fn->target->short_offsets)
        return CT_PASS_UNCHANGED;
    p.uses = ct_fn_count_uses(fn);
    find_parts(&p);
    ct_fn_compute_rpo(fn);
    ct_fn_compute_dominators(fn);
    ct_fn_compute_loops(fn);
    blocks = ct_fn_rpo_blocks(fn, &n);
    for (uint32_t b = 0; b < n; b++)
        for (struct ct_insn *insn = blocks[b]->first; insn; insn = insn->next)
            if (is_sum(&p, insn) && !p.is_part[insn->results[0].i] && has_product(&p, insn, false, DEPTH_MAX))
                visit(&p, insn);
    return p.changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
