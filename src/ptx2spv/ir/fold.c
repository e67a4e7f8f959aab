/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding of integer operations, by their definitions in ir_ops.def. Values are kept in their low bits; the other bits are
 * zero. */
#include "ptx2spv/passes/simplify.h"

struct arguments {
    uint64_t a, b;  /* the operands, zero-extended */
    int64_t sa, sb; /* the operands, sign-extended */
    unsigned bits;  /* of operand 0 */
    bool is_signed; /* insn->type */
};

static uint64_t low_bits(uint64_t value, unsigned bits)
{
    return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

static int64_t sign_extended(uint64_t value, unsigned bits)
{
    const uint64_t sign = UINT64_C(1) << (bits - 1);

    return (int64_t)((low_bits(value, bits) ^ sign) - sign);
}

/* -1, 0, 1 */
static int order_of(const struct arguments *x)
{
    if (x->is_signed)
        return (x->sa > x->sb) - (x->sa < x->sb);
    return (x->a > x->b) - (x->a < x->b);
}

static bool fold_compare(const struct ct_insn *insn, const struct arguments *x, uint64_t *out)
{
    const int order = order_of(x);

    switch (insn->compare) {
    case PTX_EQ:
        *out = order == 0;
        return true;
    case PTX_NE:
        *out = order != 0;
        return true;
    case PTX_LT:
        *out = order < 0;
        return true;
    case PTX_LE:
        *out = order <= 0;
        return true;
    case PTX_GT:
        *out = order > 0;
        return true;
    case PTX_GE:
        *out = order >= 0;
        return true;
    default:
        return false;
    }
}

static bool fold_division(enum ct_op op, const struct arguments *x, uint64_t *out)
{
    const bool is_signed = op == CT_OP_SDIV || op == CT_OP_SREM || ((op == CT_OP_DIV || op == CT_OP_REM) && x->is_signed);
    const bool remainder = op == CT_OP_REM || op == CT_OP_UREM || op == CT_OP_SREM;

    if (x->b == 0 || (is_signed && x->sb == -1))
        return false;
    if (is_signed)
        *out = (uint64_t)(remainder ? x->sa % x->sb : x->sa / x->sb);
    else
        *out = remainder ? x->a % x->b : x->a / x->b;
    return true;
}

static uint64_t reversed32(uint64_t a)
{
    uint64_t reversed = 0;

    for (unsigned i = 0; i < 32; i++)
        reversed |= (a >> i & 1) << (31 - i);
    return reversed;
}

static uint64_t product(const struct arguments *x)
{
    return x->is_signed ? (uint64_t)x->sa * (uint64_t)x->sb : x->a * x->b;
}

static bool fold_extension(const struct ct_insn *insn, const struct arguments *x, uint64_t *out)
{
    const unsigned bits = ptx_type_bits(insn->type);

    *out = x->is_signed ? (uint64_t)sign_extended(x->a, bits) : low_bits(x->a, bits);
    return true;
}

static bool fold_shift(enum ct_op op, const struct arguments *x, uint64_t *out)
{
    if (x->b >= x->bits)
        return false;
    *out = op == CT_OP_SHL ? x->a << x->b : x->is_signed ? (uint64_t)(x->sa >> x->b) : x->a >> x->b;
    return true;
}

static bool compute(const struct ct_insn *insn, const struct arguments *x, uint64_t *out)
{
    switch (insn->op) {
    case CT_OP_COPY:
        *out = x->a;
        return true;
    case CT_OP_ADD:
        *out = x->a + x->b;
        return true;
    case CT_OP_SUB:
        *out = x->a - x->b;
        return true;
    case CT_OP_MUL:
        *out = x->a * x->b;
        return true;
    case CT_OP_MULHI:
        *out = product(x) >> x->bits;
        return x->bits <= 32;
    case CT_OP_MULWIDE:
        *out = product(x);
        return x->bits <= 32;
    case CT_OP_NEG:
        *out = 0 - x->a;
        return true;
    case CT_OP_AND:
        *out = x->a & x->b;
        return true;
    case CT_OP_OR:
        *out = x->a | x->b;
        return true;
    case CT_OP_XOR:
        *out = x->a ^ x->b;
        return true;
    case CT_OP_NOT:
        *out = ~x->a;
        return true;
    case CT_OP_SHL:
    case CT_OP_SHR:
        return fold_shift(insn->op, x, out);
    case CT_OP_DIV:
    case CT_OP_REM:
    case CT_OP_UDIV:
    case CT_OP_SDIV:
    case CT_OP_UREM:
    case CT_OP_SREM:
        return fold_division(insn->op, x, out);
    case CT_OP_MIN:
        *out = order_of(x) <= 0 ? x->a : x->b;
        return true;
    case CT_OP_MAX:
        *out = order_of(x) >= 0 ? x->a : x->b;
        return true;
    case CT_OP_POPC:
        *out = (uint64_t)__builtin_popcountll(x->a);
        return true;
    case CT_OP_CLZ:
        *out = x->a ? (uint64_t)__builtin_clz((unsigned)x->a) : 32;
        return true;
    case CT_OP_BREV:
        *out = reversed32(x->a);
        return true;
    case CT_OP_ICMP:
        return fold_compare(insn, x, out);
    case CT_OP_TRUNC:
        *out = x->a;
        return true;
    case CT_OP_EXT:
        return fold_extension(insn, x, out);
    default:
        return false; /* operations on floats, memory and warps are not folded */
    }
}

static bool fold_pack(const struct ct_fn *fn, const struct ct_insn *insn, uint64_t *out)
{
    unsigned at = 0;

    *out = 0;
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const struct ct_insn *piece = ct_constant_or_null(fn, insn->operands[i]);

        if (!piece)
            return false;
        *out |= piece->imm << at;
        at += ct_width_bits(ct_width_of_value(fn, insn->operands[i]));
    }
    return true;
}

bool ct_fold_values(const struct ct_fn *fn, const struct ct_insn *insn, const uint64_t operands[2], uint64_t *out)
{
    const unsigned bits = ct_width_bits(ct_width_of_value(fn, insn->operands[0]));
    const struct arguments x = {.a = operands[0],
                                .b = operands[1],
                                .sa = sign_extended(operands[0], bits),
                                .sb = sign_extended(operands[1], bits),
                                .bits = bits,
                                .is_signed = ptx_type_is_signed(insn->type)};
    uint64_t result;

    if (!compute(insn, &x, &result))
        return false;
    *out = low_bits(result, ct_width_bits(ct_width_of_value(fn, insn->results[0])));
    return true;
}

bool ct_fold(const struct ct_fn *fn, const struct ct_insn *insn, uint64_t *out)
{
    uint64_t operands[2] = {0};

    if (insn->n_results != 1 || insn->n_operands == 0)
        return false;
    if (insn->op == CT_OP_PACK)
        return fold_pack(fn, insn, out);
    if (insn->n_operands > 2)
        return false;
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const struct ct_insn *constant = insn->operands[i].i ? ct_constant_or_null(fn, insn->operands[i]) : NULL;

        if (!constant)
            return false;
        operands[i] = constant->imm;
    }
    return ct_fold_values(fn, insn, operands, out);
}
