/* SPDX-License-Identifier: Apache-2.0 */
/* Products of twice the width, and their upper halves.
 *
 * NVIDIA's driver (580.159.04) fuses the upper half of a product with a sum that uses it. If it then meets the same product again, added to
 * something else under the same condition, it mistakes the second sum for the first and drops it. So `sum += mulhi(x, y)` adds once instead
 * of twice in loops that it unrolls and in which x and y are invariant (measured on an H200, for any factors, signs and order; DontUnroll
 * does not prevent it). Therefore upper halves that are added to several values are computed as products of twice the width, to which the
 * driver adds separately. All others are unchanged: a division by 7 is 1.15 times as fast if fused.
 * One case remains: the upper half of a 64-bit sum of a product and a value whose lower half is 0, which no known compiler generates. */
#include "emit.h"

#define MANY 2       /* number of sums from which on a product must not be fused with them */
#define STEPS_MAX 64 /* instructions that are visited for the dependences of a factor */

static bool lies_in(const struct ct_block *block, const struct ct_block *loop)
{
    const struct ct_block *head = block->loop_head;

    while (head && head != loop)
        head = head->loop_parent;
    return head != NULL;
}

/* Whether a value is known to vary between iterations of a loop: it depends on a phi of the loop's head. */
static bool changes_in(const struct ct_gen *g, ct_value value, const struct ct_block *loop, unsigned *steps)
{
    const struct ct_insn *def = g->fn->values.v[value.i].def;

    if (*steps == 0 || def->op == CT_OP_CONST || !lies_in(def->block, loop))
        return false;
    if (def->op == CT_OP_PHI && def->block == loop)
        return true;
    --*steps;
    for (uint32_t i = 0; i < def->n_operands; i++)
        if (def->operands[i].i && changes_in(g, def->operands[i], loop, steps))
            return true;
    return false;
}

/* Whether the innermost loop around `block` may compute the product with the same operands in every iteration. */
static bool is_repeated(const struct ct_gen *g, const struct ct_insn *insn, const struct ct_block *block)
{
    unsigned steps = STEPS_MAX;

    return block->loop_head && !changes_in(g, insn->operands[0], block->loop_head, &steps) &&
           !changes_in(g, insn->operands[1], block->loop_head, &steps);
}

/* The source of a summand without changes of sign and width. */
static ct_value source_of(const struct ct_gen *g, ct_value value)
{
    const struct ct_insn *def = g->fn->values.v[value.i].def;

    while (def->op == CT_OP_NEG || def->op == CT_OP_NOT || def->op == CT_OP_EXT || def->op == CT_OP_TRUNC) {
        value = def->operands[0];
        def = g->fn->values.v[value.i].def;
    }
    return value;
}

/* Counts a product that is added; one that is subtracted is not fused, unless it was itself negated. */
static void count_sum(struct ct_gen *g, const struct ct_insn *sum, unsigned operand)
{
    const ct_value value = source_of(g, sum->operands[operand]);
    const struct ct_insn *product = g->fn->values.v[value.i].def;
    struct ct_gen_value *info = &g->values[value.i];

    if (product->op != CT_OP_MULHI || (sum->op == CT_OP_SUB && operand == 1 && value.i == sum->operands[1].i))
        return;
    if (info->sums < MANY)
        info->sums += is_repeated(g, product, sum->block) ? MANY : 1;
}

void ct_gen_find_sums(struct ct_gen *g)
{
    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
            for (unsigned i = 0; (insn->op == CT_OP_ADD || insn->op == CT_OP_SUB) && i < 2; i++)
                count_sum(g, insn, i);
}

static uint32_t product_of(struct ct_gen *g, const struct ct_insn *insn, unsigned bits)
{
    const uint32_t a = ct_gen_widened(g, insn, 0, bits), b = ct_gen_widened(g, insn, 1, bits);

    return GEN(g, SpvOpIMul, ct_gen_int_type(g, bits), a, b);
}

/* The upper half of a 16-bit product also comes from a 32-bit product. */
static uint32_t upper_half(struct ct_gen *g, const struct ct_insn *insn, unsigned bits)
{
    uint32_t wide;

    if (bits > 16 && g->values[insn->results[0].i].sums < MANY)
        return g->dialect->multiply_high(g, bits, ptx_type_is_signed(insn->type), ct_gen_use(g, insn->operands[0]),
                                         ct_gen_use(g, insn->operands[1]));
    wide = product_of(g, insn, 2 * bits);
    return ct_gen_resize(g, ct_gen_shift_by(g, SpvOpShiftRightLogical, 2 * bits, wide, bits), 2 * bits, bits, false);
}

void ct_gen_product(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ct_gen_bits(g, insn->results[0]);

    ct_gen_define(g, insn->results[0], insn->op == CT_OP_MULWIDE ? product_of(g, insn, bits) : upper_half(g, insn, bits));
}
