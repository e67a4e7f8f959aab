/* SPDX-License-Identifier: Apache-2.0 */
/* build: float arithmetic (PTX ISA, "Floating Point Instructions", "Half Precision Floating Point Instructions"). Modifiers stay
 * on the IR's instruction; `lower` makes them explicit. */
#include "build_arithmetic.h"

#define MAX_SOURCES 3

/* The same on given values of a scalar type. */
static ct_value float_value(struct ct_build *b, enum ct_op op, enum ptx_type type, unsigned sources, const ct_value *values)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    struct ct_insn *insn = ct_emit_insn(&b->at, op, type, 1, sources);

    insn->rounding = mods->rounding;
    insn->ftz = mods->ftz;
    insn->sat = mods->sat;
    insn->approx = mods->approx;
    insn->nan = mods->nan;
    for (unsigned i = 0; i < sources; i++)
        insn->operands[i] = values[i];
    insn->results[0] = ct_value_create(b->fn, ct_width_of(type));
    return insn->results[0];
}

/* f16x2: the operation on both halves. */
static ct_value on_halves(struct ct_build *b, enum ct_op op, unsigned sources, const ct_value *values)
{
    ct_value low[MAX_SOURCES], high[MAX_SOURCES], results[2];

    for (unsigned i = 0; i < sources; i++)
        ct_unpack2(&b->at, values[i], &low[i], &high[i]);
    results[0] = float_value(b, op, PTX_F16, sources, low);
    results[1] = float_value(b, op, PTX_F16, sources, high);
    return ct_pack2(&b->at, results[0], results[1]);
}

void ct_build_float_operation(struct ct_build *b, enum ct_op op, unsigned sources)
{
    const enum ptx_type type = b->insn->types[0];
    ct_value values[MAX_SOURCES];

    if (type == PTX_BF16 || type == PTX_BF16X2 || type == PTX_F32X2) {
        ct_build_unsupported(b, "this type");
        return;
    }
    if (b->insn->mods.relu) {
        ct_build_unsupported(b, "this modifier");
        return;
    }
    for (unsigned i = 0; i < sources; i++)
        values[i] = ct_build_source(b, i + 1, type);
    if (type == PTX_F16X2)
        ct_build_result(b, on_halves(b, op, sources, values), type);
    else
        ct_build_result(b, float_value(b, op, type, sources, values), type);
}

void ct_build_float_unary(struct ct_build *b)
{
    ct_build_float_operation(b, b->rule->float_op, 1);
}

void ct_build_float_ternary(struct ct_build *b)
{
    ct_build_float_operation(b, b->rule->float_op, 3);
}

/* ---- parts of the encoding ---- */

struct float_layout {
    uint64_t sign, exponent, fraction; /* masks */
};

static struct float_layout layout_of(enum ptx_type type)
{
    if (type == PTX_F64)
        return (struct float_layout){UINT64_C(1) << 63, UINT64_C(0x7ff) << 52, (UINT64_C(1) << 52) - 1};
    return (struct float_layout){0x80000000u, 0x7f800000u, 0x007fffffu};
}

/* magnitude - 1 < fraction: zero wraps to the end. */
static ct_value is_subnormal(struct ct_cursor *at, struct float_layout layout, ct_value magnitude)
{
    return ct_icmp_imm(at, ct_unsigned_type(ct_width_at(at, magnitude)), PTX_LT, ct_add_imm(at, magnitude, UINT64_MAX), layout.fraction);
}

/* Zeros count as normal (PTX ISA, "testp"). */
static ct_value test_class(struct ct_build *b, enum ptx_type type, ct_value x)
{
    struct ct_cursor *at = &b->at;
    const struct float_layout layout = layout_of(type);
    const enum ptx_type bits = ct_unsigned_type(ct_width_of(type));
    const ct_value magnitude = ct_and_imm(at, x, ~layout.sign);

    switch ((unsigned)b->insn->mods.mode) {
    case PTX_MODE_FINITE:
        return ct_icmp_imm(at, bits, PTX_LT, magnitude, layout.exponent);
    case PTX_MODE_INFINITE:
        return ct_icmp_imm(at, bits, PTX_EQ, magnitude, layout.exponent);
    case PTX_MODE_NUMBER:
        return ct_icmp_imm(at, bits, PTX_LE, magnitude, layout.exponent);
    case PTX_MODE_NOTANUMBER:
        return ct_icmp_imm(at, bits, PTX_GT, magnitude, layout.exponent);
    case PTX_MODE_NORMAL:
        return ct_and(at, ct_icmp_imm(at, bits, PTX_LT, magnitude, layout.exponent), ct_not(at, is_subnormal(at, layout, magnitude)));
    case PTX_MODE_SUBNORMAL:
        return is_subnormal(at, layout, magnitude);
    default:
        ct_build_unsupported(b, NULL);
        return ct_emit_const(at, CT_W_PRED, 0);
    }
}

void ct_build_testp(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];

    ct_build_result(b, test_class(b, type, ct_build_source(b, 1, type)), PTX_PRED);
}

/* copysign d, a, b: the sign of a on the magnitude of b. */
void ct_build_copysign(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    const struct float_layout layout = layout_of(type);
    const ct_value sign = ct_and_imm(&b->at, ct_build_source(b, 1, type), layout.sign);
    const ct_value magnitude = ct_and_imm(&b->at, ct_build_source(b, 2, type), ~layout.sign);

    ct_build_result(b, ct_or(&b->at, sign, magnitude), type);
}
