/* SPDX-License-Identifier: Apache-2.0 */
/* fma.rn.f32 as a product and a sum that the driver may contract (ptx2spv_target.splits_fma32).
 *
 * RADV (Mesa 25.0.7) makes two operations of Fma on chips before GFX10.3. But its backend, ACO, makes one v_fma_f32 of a product and the sum
 * that uses it if neither is NoContraction and the mode is DenormPreserve, on GFX9 and GFX10.1 (has_fast_fma32 in aco_ir.cpp). That takes one
 * rounding, as PTX wants. ACO does so wherever it sees such a pair, except where
 *   - the instruction could not have the operands: on GFX9 it takes no constant other than small integers and a few floats, and one scalar
 *     register at most. Constants and values that all threads of a warp have in common are in scalar registers
 *   - another product of the same factors is NoContraction: the two are merged, and the merged one is NoContraction
 * In these cases operands are combined with a zero by XOR. The driver cannot know that it is one, nor that all threads have the same:
 * the thread's number AND the grid's size in z, at most 65535, shifted right by 16. Drivers move such an operation out of loops.
 *
 * tests/judge/contractions.ptx shows whether one instruction becomes of each. Where a driver does not contract, the result has the
 * rounding errors of two operations. */
#include "emit.h"

#include "ptx2spv/passes/simplify.h"

#include <string.h>

struct ct_gen_contractions {
    bool *varies;         /* indexed by value: it certainly is in a vector register */
    ct_value (*pairs)[2]; /* factors of products other than FFMAs: a hash table */
    uint32_t mask;        /* its size minus one */
};

/* ---- values that are in vector registers ---- */

static bool starts_varying(const struct ct_insn *insn)
{
    if (insn->op == CT_OP_SYSVAL)
        return insn->sreg == CT_SYS_TID_X || insn->sreg == CT_SYS_TID_Y || insn->sreg == CT_SYS_TID_Z || insn->sreg == CT_SYS_LANEID ||
               insn->sreg == CT_SYS_TID_LINEAR || insn->sreg == CT_SYS_TID_X_64;
    return insn->op == CT_OP_ATOM || (insn->op == CT_OP_LOAD && insn->space == CT_SPACE_LOCAL);
}

/* Whether an instruction's results vary since an operand does: computations, and loads from addresses that vary. */
static bool passes_on(const struct ct_insn *insn)
{
    return ct_insn_is_pure(insn) || insn->op == CT_OP_LOAD;
}

static bool note_results(struct ct_gen_contractions *c, const struct ct_insn *insn)
{
    bool varies = starts_varying(insn), changed = false;

    for (uint32_t i = 0; !varies && passes_on(insn) && i < insn->n_operands; i++)
        varies = c->varies[insn->operands[i].i];
    for (uint32_t r = 0; varies && r < insn->n_results; r++) {
        changed |= !c->varies[insn->results[r].i];
        c->varies[insn->results[r].i] = true;
    }
    return changed;
}

static void find_varying(struct ct_gen *g)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (uint32_t b = 0; b < g->fn->blocks.n; b++)
            for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
                changed |= note_results(g->contractions, insn);
    }
}

/* ---- other products ---- */

/* The place of a pair of factors in the table, or the free place where it would be. */
static uint32_t place_of(const struct ct_gen_contractions *c, ct_value a, ct_value b)
{
    const uint32_t low = a.i < b.i ? a.i : b.i, high = a.i ^ b.i ^ low;
    uint32_t at = (low * UINT32_C(0x9e3779b1) ^ high * UINT32_C(0x85ebca6b)) & c->mask;

    while (c->pairs[at][0].i && (c->pairs[at][0].i != low || c->pairs[at][1].i != high))
        at = (at + 1) & c->mask;
    return at;
}

static bool is_product(const struct ct_insn *insn)
{
    return insn->op == CT_OP_FMUL && insn->type == PTX_F32;
}

static void find_products(struct ct_gen *g)
{
    struct ct_gen_contractions *c = g->contractions;
    uint32_t n = 0;

    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
            n += is_product(insn);
    for (c->mask = 15; c->mask < 2 * n; c->mask = 2 * c->mask + 1)
        ;
    c->pairs = ct_arena_alloc_array(&g->fn->compilation->scratch, c->mask + 1, sizeof *c->pairs);
    memset(c->pairs, 0, (c->mask + 1) * sizeof *c->pairs);
    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
            if (is_product(insn)) {
                const ct_value x = insn->operands[0], y = insn->operands[1];
                ct_value *pair = c->pairs[place_of(c, x, y)];

                pair[0].i = x.i < y.i ? x.i : y.i;
                pair[1].i = x.i ^ y.i ^ pair[0].i;
            }
}

void ct_gen_find_contractions(struct ct_gen *g)
{
    struct ct_arena *scratch = &g->fn->compilation->scratch;

    g->contractions = CT_ARENA_ARRAY(scratch, struct ct_gen_contractions, 1);
    g->contractions->varies = CT_ARENA_ARRAY(scratch, bool, g->fn->values.n);
    find_varying(g);
    find_products(g);
}

/* ---- operands ---- */

/* Constants that every instruction can contain: integers from -16 to 64, and these floats. */
static bool is_inline(uint64_t constant)
{
    static const uint32_t floats[] = {0x3f000000, 0x3f800000, 0x40000000, 0x40800000}; /* 0.5, 1, 2, 4 */

    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if ((constant & 0x7fffffff) == floats[i])
            return true;
    return (uint32_t)constant <= 64 || (uint32_t)constant >= UINT32_C(0xfffffff0);
}

unsigned ct_gen_hidden_from_contraction(const struct ct_gen *g, const struct ct_insn *insn)
{
    const struct ct_gen_contractions *c = g->contractions;
    const ct_value *x = insn->operands;
    ct_value scalar = CT_NO_VALUE; /* the one that may stay in a scalar register */
    unsigned hidden = 0;

    for (unsigned i = 0; i < 3; i++) {
        const struct ct_insn *constant = ct_constant_or_null(g->fn, x[i]);

        if (constant)
            hidden |= (unsigned)!is_inline(constant->imm) << i;
        else if (!c->varies[x[i].i] && scalar.i && scalar.i != x[i].i)
            hidden |= 1u << i;
        else if (!c->varies[x[i].i])
            scalar = x[i];
    }
    if (!(hidden & 3) && c->pairs[place_of(c, x[0], x[1])][0].i)
        hidden |= 1;
    return hidden;
}
