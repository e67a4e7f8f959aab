/* SPDX-License-Identifier: Apache-2.0 */
/* build: float arithmetic (PTX ISA, "Floating Point Instructions", "Half Precision Floating Point Instructions"). Modifiers remain on
 * the IR instruction; `lower` makes them explicit. */
#include "build_arithmetic.h"

#define MAX_SOURCES 3
#define OOB_NAN 0x7ff7

/* ---- fields of the encoding ---- */

struct float_layout {
    uint64_t sign, exponent, fraction; /* masks */
    uint64_t nan;                      /* the canonical NaN */
};

static struct float_layout layout_of(enum ptx_type type)
{
    switch ((unsigned)type) {
    case PTX_F64:
        return (struct float_layout){UINT64_C(1) << 63, UINT64_C(0x7ff) << 52, (UINT64_C(1) << 52) - 1, UINT64_C(0x7fffffffffffffff)};
    case PTX_F16:
        return (struct float_layout){0x8000, 0x7c00, 0x03ff, 0x7fff};
    case PTX_BF16:
        return (struct float_layout){0x8000, 0x7f80, 0x007f, 0x7fff};
    default:
        return (struct float_layout){0x80000000u, 0x7f800000u, 0x007fffffu, 0x7fffffffu};
    }
}

/* The element type of a packed type; other types are their own. */
static enum ptx_type element_of(enum ptx_type type)
{
    return type == PTX_F16X2 ? PTX_F16 : type == PTX_BF16X2 ? PTX_BF16 : type == PTX_F32X2 ? PTX_F32 : type;
}

static ct_value is_nan(struct ct_cursor *at, enum ptx_type type, ct_value x)
{
    const struct float_layout layout = layout_of(type);

    return ct_icmp_imm(at, ct_unsigned_type(ct_width_of(type)), PTX_GT, ct_and_imm(at, x, ~layout.sign), layout.exponent);
}

/* ---- operations on elements ---- */

/* Builds the operation on values of a scalar type, with the instruction's modifiers except .relu and .xorsign. */
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

/* .relu: negative numbers and -0 become 0, a NaN becomes the canonical NaN. */
ct_value ct_build_relu(struct ct_build *b, enum ptx_type type, ct_value x)
{
    struct ct_cursor *at = &b->at;
    const struct float_layout layout = layout_of(type);
    const enum ct_width width = ct_width_of(type);
    const ct_value negative = ct_icmp_imm(at, ct_unsigned_type(width), PTX_GE, x, layout.sign);
    const ct_value positive = ct_select(at, negative, ct_emit_const(at, width, 0), x);

    return ct_select(at, is_nan(at, type, x), ct_emit_const(at, width, layout.nan), positive);
}

static ct_value plain_element(struct ct_build *b, enum ct_op op, enum ptx_type type, unsigned sources, const ct_value *values)
{
    const ct_value result = float_value(b, op, type, sources, values);

    return b->insn->mods.relu ? ct_build_relu(b, type, result) : result;
}

/* fma.oob: 0 if a factor is the NaN that tensor copies store for elements out of bounds, of either sign. An H100 knows only the bits 0x7ff7, in
 * f16 and in bf16, and does not look at c. */
static ct_value oob_element(struct ct_build *b, enum ct_op op, enum ptx_type type, unsigned sources, const ct_value *values)
{
    struct ct_cursor *at = &b->at;
    const ct_value result = plain_element(b, op, type, sources, values);
    const ct_value first = ct_equals(at, ct_and_imm(at, values[0], 0x7fff), OOB_NAN);
    const ct_value second = ct_equals(at, ct_and_imm(at, values[1], 0x7fff), OOB_NAN);

    return ct_select(at, ct_or(at, first, second), ct_emit_const(at, ct_width_of(type), 0), result);
}

/* .xorsign.abs: the minimum or maximum of the magnitudes, with the sign of the product unless the result is NaN. */
static ct_value xorsign_min_max(struct ct_build *b, enum ct_op op, enum ptx_type type, const ct_value *values)
{
    struct ct_cursor *at = &b->at;
    const uint64_t sign = layout_of(type).sign;
    const ct_value magnitudes[2] = {ct_and_imm(at, values[0], ~sign), ct_and_imm(at, values[1], ~sign)};
    const ct_value extreme = float_value(b, op, type, 2, magnitudes);
    const ct_value negated = ct_or(at, extreme, ct_and_imm(at, ct_xor(at, values[0], values[1]), sign));

    return ct_select(at, is_nan(at, type, extreme), extreme, negated);
}

/* For three sources, the minimum or maximum of two and then the third; with .abs of their magnitudes. */
static ct_value min_max_element(struct ct_build *b, enum ct_op op, enum ptx_type type, unsigned sources, const ct_value *values)
{
    ct_value in[MAX_SOURCES];

    if (b->insn->mods.xorsign)
        return xorsign_min_max(b, op, type, values);
    for (unsigned i = 0; i < sources; i++)
        in[i] = b->insn->mods.absolute ? ct_and_imm(&b->at, values[i], ~layout_of(type).sign) : values[i];
    in[1] = float_value(b, op, type, 2, in);
    return sources > 2 ? float_value(b, op, type, 2, &in[1]) : in[1];
}

typedef ct_value (*element_fn)(struct ct_build *b, enum ct_op op, enum ptx_type type, unsigned sources, const ct_value *values);

/* Applies an operation to both halves of a packed type. */
static ct_value on_halves(struct ct_build *b, element_fn element, enum ct_op op, unsigned sources, const ct_value *values)
{
    const enum ptx_type type = element_of(b->insn->types[0]);
    ct_value low[MAX_SOURCES], high[MAX_SOURCES], results[2];

    for (unsigned i = 0; i < sources; i++)
        ct_unpack2(&b->at, values[i], &low[i], &high[i]);
    results[0] = element(b, op, type, sources, low);
    results[1] = element(b, op, type, sources, high);
    return ct_pack2(&b->at, results[0], results[1]);
}

static void build_elements(struct ct_build *b, element_fn element, enum ct_op op, unsigned sources)
{
    const enum ptx_type type = b->insn->types[0];
    ct_value values[MAX_SOURCES];

    for (unsigned i = 0; i < sources; i++)
        values[i] = ct_build_source(b, i + 1, type);
    if (type != element_of(type))
        ct_build_result(b, on_halves(b, element, op, sources, values), type);
    else
        ct_build_result(b, element(b, op, type, sources, values), type);
}

void ct_build_float_operation(struct ct_build *b, enum ct_op op, unsigned sources)
{
    build_elements(b, plain_element, op, sources);
}

void ct_build_float_min_max(struct ct_build *b)
{
    build_elements(b, min_max_element, b->rule->float_op, b->insn->n_operands - 1);
}

void ct_build_float_unary(struct ct_build *b)
{
    ct_build_float_operation(b, b->rule->float_op, 1);
}

void ct_build_float_ternary(struct ct_build *b)
{
    build_elements(b, b->insn->mods.oob ? oob_element : plain_element, b->rule->float_op, 3);
}

/* ---- classes and signs ---- */

/* magnitude - 1 < fraction mask; for zero the subtraction wraps around to the greatest value. */
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
