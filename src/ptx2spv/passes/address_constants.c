/* SPDX-License-Identifier: Apache-2.0 */
/* address_constants: constants in the computation of addresses in shared memory become offsets of the accesses.
 * In:  SSA, spaces.   Out: the same.
 *
 * Unrolled loops over tiles compute addresses like ((lane | 16) * 80 + stage) + 4 * column, which differ in constants only. Here such a constant
 * moves outwards, through sums, products with constants, and `or` where the bits are 0; the rest is then the same for all accesses, so one
 * register serves them instead of one each, and devices add the offset in the access. Addresses wrap around, so nothing is lost. */
#include "ptx2spv/ir/builder.h"

enum { DEPTH_MAX = 8 };

struct parts { /* value = rest + constant, modulo 2^32 */
    ct_value rest;
    uint32_t constant;
};

struct pass {
    struct ct_fn *fn;
    struct parts *known; /* by value; rest is CT_NO_VALUE: not yet */
    uint32_t n_values;   /* when the pass began */
    bool changed;
};

static const struct ct_insn *definition(const struct pass *p, ct_value value)
{
    return p->fn->values.v[value.i].def;
}

static const struct ct_insn *constant_or_null(const struct pass *p, ct_value value)
{
    const struct ct_insn *def = definition(p, value);

    return def && def->op == CT_OP_CONST ? def : NULL;
}

/* ---- bits that are 0 ---- */

static uint32_t bits_up_to(uint32_t most)
{
    return most ? UINT32_MAX >> __builtin_clz(most) : 0;
}

/* The bits of a 32-bit value that may be 1. */
static uint32_t possible_bits(const struct pass *p, ct_value value, unsigned depth)
{
    const struct ct_insn *def = definition(p, value), *c;
    uint64_t a, b;

    if (depth > DEPTH_MAX || ct_width_of_value(p->fn, value) != CT_W_32)
        return UINT32_MAX;
    switch (def->op) {
    case CT_OP_CONST:
        return (uint32_t)def->imm;
    case CT_OP_SYSVAL:
        if (def->sreg == CT_SYS_LANEID)
            return 31;
        return def->sreg <= CT_SYS_TID_Z || def->sreg == CT_SYS_TID_LINEAR ? bits_up_to(p->fn->target->max_block_threads - 1) : UINT32_MAX;
    case CT_OP_COPY:
        return possible_bits(p, def->operands[0], depth + 1);
    case CT_OP_AND:
        return possible_bits(p, def->operands[0], depth + 1) & possible_bits(p, def->operands[1], depth + 1);
    case CT_OP_OR:
    case CT_OP_XOR:
        return possible_bits(p, def->operands[0], depth + 1) | possible_bits(p, def->operands[1], depth + 1);
    case CT_OP_SHL:
    case CT_OP_SHR:
        c = constant_or_null(p, def->operands[1]);
        if (!c || c->imm > 31 || (def->op == CT_OP_SHR && ptx_type_is_signed(def->type)))
            return UINT32_MAX;
        a = possible_bits(p, def->operands[0], depth + 1);
        return (uint32_t)(def->op == CT_OP_SHL ? a << c->imm : a >> c->imm);
    case CT_OP_ADD:
        a = possible_bits(p, def->operands[0], depth + 1);
        b = possible_bits(p, def->operands[1], depth + 1);
        return a & b ? a + b > UINT32_MAX ? UINT32_MAX : bits_up_to((uint32_t)(a + b)) : (uint32_t)(a | b);
    default:
        return UINT32_MAX;
    }
}

/* ---- parts ---- */

static struct parts split(struct pass *p, ct_value value, unsigned depth);

static ct_value remade(struct pass *p, const struct ct_insn *def, ct_value a, ct_value b)
{
    struct ct_cursor at = {.fn = p->fn, .block = def->block, .before = def->next, .where = def->where};
    struct ct_insn *copy = ct_emit_copy_of(&at, def);

    copy->operands[0] = a;
    copy->operands[1] = b;
    return copy->results[0];
}

static struct parts split_sum(struct pass *p, const struct ct_insn *def, unsigned depth)
{
    const struct ct_insn *c = constant_or_null(p, def->operands[1]);
    struct parts a = split(p, def->operands[0], depth + 1), b;

    if (c) {
        a.constant += (uint32_t)c->imm;
        return a;
    }
    b = split(p, def->operands[1], depth + 1);
    if (!a.constant && !b.constant)
        return (struct parts){def->results[0], 0};
    return (struct parts){remade(p, def, a.rest, b.rest), a.constant + b.constant};
}

/* A product with a constant. */
static struct parts split_scaled(struct pass *p, const struct ct_insn *def, uint32_t factor, unsigned depth)
{
    const struct parts a = split(p, def->operands[0], depth + 1);

    if (!a.constant)
        return (struct parts){def->results[0], 0};
    return (struct parts){remade(p, def, a.rest, def->operands[1]), a.constant * factor};
}

static struct parts split_or(struct pass *p, const struct ct_insn *def, unsigned depth)
{
    const struct ct_insn *c = constant_or_null(p, def->operands[1]);
    struct parts a;

    if (!c || possible_bits(p, def->operands[0], 0) & (uint32_t)c->imm)
        return (struct parts){def->results[0], 0};
    a = split(p, def->operands[0], depth + 1);
    a.constant += (uint32_t)c->imm;
    return a;
}

static struct parts split_new(struct pass *p, ct_value value, unsigned depth)
{
    const struct ct_insn *def = definition(p, value), *c;

    switch (def->op) {
    case CT_OP_COPY:
        return split(p, def->operands[0], depth + 1);
    case CT_OP_ADD:
        return split_sum(p, def, depth);
    case CT_OP_OR:
        return split_or(p, def, depth);
    case CT_OP_MUL:
        c = constant_or_null(p, def->operands[1]);
        return c ? split_scaled(p, def, (uint32_t)c->imm, depth) : (struct parts){value, 0};
    case CT_OP_SHL:
        c = constant_or_null(p, def->operands[1]);
        return c && c->imm < 32 ? split_scaled(p, def, UINT32_C(1) << c->imm, depth) : (struct parts){value, 0};
    default:
        return (struct parts){value, 0};
    }
}

static struct parts split(struct pass *p, ct_value value, unsigned depth)
{
    if (value.i >= p->n_values || depth > DEPTH_MAX || ct_width_of_value(p->fn, value) != CT_W_32)
        return (struct parts){value, 0};
    if (!p->known[value.i].rest.i)
        p->known[value.i] = split_new(p, value, depth);
    return p->known[value.i];
}

/* ---- the pass ---- */

static void move_constant(struct pass *p, struct ct_insn *access)
{
    const struct parts parts = split(p, access->operands[0], 0);
    const int64_t offset = access->offset + (int32_t)parts.constant;

    if (!parts.constant || offset > INT32_MAX || offset < INT32_MIN)
        return;
    access->operands[0] = parts.rest;
    access->offset = offset;
    p->changed = true;
}

enum ct_pass_result ct_pass_address_constants(struct ct_fn *fn)
{
    struct pass p = {.fn = fn, .n_values = fn->values.n};

    p.known = CT_ARENA_ARRAY(&fn->compilation->scratch, struct parts, p.n_values);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if ((insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE) && insn->space == CT_SPACE_SHARED)
                move_constant(&p, insn);
    return p.changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
