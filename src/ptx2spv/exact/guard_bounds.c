/* SPDX-License-Identifier: Apache-2.0 */
/* guard: the range of a number where it is used, from its range anywhere in the loop and from the branches that were taken.
 *
 * An upper bound comes from a branch on a comparison with a constant, for the blocks that the branch's successor dominates: they are
 * reached through that branch after the value was computed. An upper bound of a sum of nonnegative numbers is an upper bound of each of
 * them, and a bound of a square bounds its root; but not if the sum may be a NaN because of the other operand. */
#include "guard_proof.h"

enum { DEPTH_MAX = 6 };

static bool is_positive_constant(const struct ct_guard_proof *proof, ct_value x)
{
    const struct ct_insn *def = ct_guard_definition(proof, x);

    return def->op == CT_OP_CONST && def->imm >= 0x00800000 && def->imm < 0x7f800000;
}

/* ---- branches ---- */

const struct ct_insn *ct_guard_comparison_or_null(const struct ct_guard_proof *proof, ct_value condition, bool *negated)
{
    const struct ct_insn *def = ct_guard_definition(proof, condition);

    while (def->op == CT_OP_COPY || def->op == CT_OP_NOT) {
        *negated ^= def->op == CT_OP_NOT;
        def = ct_guard_definition(proof, def->operands[0]);
    }
    return def->op == CT_OP_FCMP && def->type == PTX_F32 ? def : NULL;
}

static bool is_one_of(uint8_t compare, enum ptx_compare a, enum ptx_compare b, enum ptx_compare c, enum ptx_compare d)
{
    return compare == a || compare == b || compare == c || compare == d;
}

/* Whether the outcome implies that the first operand is not greater than the second, or that one of them is a NaN. */
static bool is_below(const struct ct_insn *comparison, bool holds)
{
    return holds ? is_one_of(comparison->compare, PTX_LT, PTX_LE, PTX_LTU, PTX_LEU)
                 : is_one_of(comparison->compare, PTX_GT, PTX_GE, PTX_GTU, PTX_GEU);
}

static bool is_above(const struct ct_insn *comparison, bool holds)
{
    return holds ? is_one_of(comparison->compare, PTX_GT, PTX_GE, PTX_GTU, PTX_GEU)
                 : is_one_of(comparison->compare, PTX_LT, PTX_LE, PTX_LTU, PTX_LEU);
}

static void note_bound(struct ct_guard_proof *proof, const struct ct_insn *comparison, bool holds, const struct ct_block *from)
{
    for (uint32_t i = 0; i < 2; i++) {
        const ct_value limit = comparison->operands[1 - i];

        if ((i ? is_above(comparison, holds) : is_below(comparison, holds)) && is_positive_constant(proof, limit))
            *CT_PUSH(proof->g->scratch, &proof->bounds) =
                (struct ct_guard_bound){ct_guard_original(proof, comparison->operands[i]), ct_guard_range(proof, limit).most, from};
    }
}

void ct_guard_find_bounds(struct ct_guard_proof *proof)
{
    for (uint32_t b = 0; b < proof->blocks.n; b++) {
        const struct ct_block *block = proof->blocks.v[b];
        bool negated = false;
        const struct ct_insn *comparison =
            block->last->op == CT_OP_CBR ? ct_guard_comparison_or_null(proof, block->last->operands[0], &negated) : NULL;

        for (uint32_t s = 0; comparison && s < 2; s++)
            if (block->succs[s]->preds.n == 1 && ct_loop_contains(proof->header, block->succs[s]))
                note_bound(proof, comparison, (s == 0) != negated, block->succs[s]);
    }
}

/* ---- ranges ---- */

struct ct_range ct_guard_range(const struct ct_guard_proof *proof, ct_value x)
{
    const struct ct_insn *def;

    x = ct_guard_original(proof, x);
    def = ct_guard_definition(proof, x);
    if (def->op == CT_OP_CONST)
        return ct_range_of_constant((uint32_t)def->imm);
    if (proof->input_of[x.i])
        return proof->inputs.v[proof->input_of[x.i] - 1].assumed;
    if (def->op == CT_OP_ITOF && def->type2 == PTX_F32)
        return ct_range_between(0, 64);
    return proof->is_known[x.i] ? proof->known[x.i] : ct_range_any();
}

/* The exponent of a power of two that |x| does not exceed if |of| <= 2^most or `of` is a NaN; CT_POWER_ANY: none is known. */
static int bound(const struct ct_guard_proof *proof, ct_value of, int most, ct_value x, unsigned depth);

/* The same, derived from one operand of a sum of two nonnegative numbers: if the sum is a NaN, so is this operand, unless the other one
 * is. */
static int bound_by_part(const struct ct_guard_proof *proof, ct_value part, ct_value other, int most, ct_value x, unsigned depth)
{
    return ct_guard_range(proof, other).number ? bound(proof, part, most, x, depth) : CT_POWER_ANY;
}

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

/* If x * x rounds to at most 2^most, |x| is at most its root: the square of the next f32 is greater by a unit in the last place. */
static int root_of_bound(int most)
{
    return most < -60 ? CT_POWER_ANY : (most + 1) / 2;
}

static int bound(const struct ct_guard_proof *proof, ct_value of, int most, ct_value x, unsigned depth)
{
    const struct ct_insn *def = ct_guard_definition(proof, of = ct_guard_original(proof, of));
    const ct_value *part = def->operands;
    const bool is_square = def->n_operands > 1 && part[0].i == part[1].i;

    if (of.i == x.i)
        return most;
    if (!depth-- || !ct_loop_contains(proof->header, def->block) || def->type != PTX_F32)
        return CT_POWER_ANY;
    if (def->op == CT_OP_FMUL && is_square)
        return bound(proof, part[0], root_of_bound(most), x, depth);
    if (def->op == CT_OP_FADD && ct_guard_range(proof, part[0]).nonnegative && ct_guard_range(proof, part[1]).nonnegative)
        return lesser(bound_by_part(proof, part[0], part[1], most, x, depth), bound_by_part(proof, part[1], part[0], most, x, depth));
    if (def->op == CT_OP_FFMA && def->guarded && is_square && ct_guard_range(proof, part[2]).nonnegative)
        return lesser(bound_by_part(proof, part[0], part[2], root_of_bound(most), x, depth),
                      bound_by_part(proof, part[2], part[0], most, x, depth));
    return CT_POWER_ANY;
}

struct ct_range ct_guard_range_at(const struct ct_guard_proof *proof, ct_value x, const struct ct_block *block)
{
    struct ct_range r = ct_guard_range(proof, x = ct_guard_original(proof, x));

    for (uint32_t b = 0; b < proof->bounds.n; b++) {
        const struct ct_guard_bound *known = &proof->bounds.v[b];
        int most;

        if (!ct_block_dominates(known->from, block) || !ct_guard_range(proof, known->value).nonnegative)
            continue;
        most = bound(proof, known->value, known->most, x, DEPTH_MAX);
        r.most = most < r.most ? (int16_t)most : r.most;
    }
    return r;
}

bool ct_guard_is_never(const struct ct_guard_proof *proof, const struct ct_insn *comparison)
{
    const struct ct_range x = ct_guard_range_at(proof, comparison->operands[0], comparison->block);
    const ct_value limit = comparison->operands[1];

    return comparison->type == PTX_F32 && comparison->compare == PTX_LT && is_positive_constant(proof, limit) && x.nonnegative &&
           x.nonzero && ct_guard_range(proof, limit).most <= x.least;
}
