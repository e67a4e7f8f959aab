/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic of SPIR-V for one thread, written from the SPIR-V specification alone. */
#include "spirv_program.h"

#include <spirv/unified1/GLSL.std.450.h>

struct operands {
    const struct spirv_program *p;
    const uint32_t *w;
    unsigned thread, bits; /* bits: width of the first operand's components */
    uint64_t a, b;
    int64_t signed_a, signed_b;
};

static bool extended(struct spirv_program *p, const struct operands *o, uint64_t *out)
{
    switch (o->w[4]) {
    case GLSLstd450UMin:
        *out = o->a < o->b ? o->a : o->b;
        return true;
    case GLSLstd450UMax:
        *out = o->a > o->b ? o->a : o->b;
        return true;
    case GLSLstd450SMin:
        *out = o->signed_a < o->signed_b ? o->a : o->b;
        return true;
    case GLSLstd450SMax:
        *out = o->signed_a > o->signed_b ? o->a : o->b;
        return true;
    case GLSLstd450FindUMsb:
        *out = o->a ? 63 - (uint64_t)__builtin_clzll(o->a) : UINT64_MAX;
        return true;
    default:
        return spirv_wrong(p, "GLSL.std.450 instruction %u", o->w[4]);
    }
}

static uint64_t reversed(uint64_t a, unsigned bits)
{
    uint64_t result = 0;

    for (unsigned i = 0; i < bits; i++)
        result |= (a >> i & 1) << (bits - 1 - i);
    return result;
}

static bool divide(struct spirv_program *p, const struct operands *o, uint64_t *out)
{
    if (!o->b)
        return spirv_wrong(p, "division by zero");
    *out = spirv_op(o->w) == SpvOpUDiv ? o->a / o->b : o->a % o->b;
    return true;
}

static bool shift(struct spirv_program *p, const struct operands *o, uint64_t *out)
{
    if (o->b >= o->bits)
        return spirv_wrong(p, "a shift of %u bits by %llu", o->bits, (unsigned long long)o->b);
    switch (spirv_op(o->w)) {
    case SpvOpShiftLeftLogical:
        *out = o->a << o->b;
        break;
    case SpvOpShiftRightLogical:
        *out = o->a >> o->b;
        break;
    default:
        *out = (uint64_t)(o->signed_a >> o->b);
        break;
    }
    return true;
}

/* Inserts o->b into o->a; the result is undefined if the field is too long. */
static bool insert_field(struct spirv_program *p, const struct operands *o, uint64_t *out)
{
    const uint64_t offset = spirv_read(p, o->w[5], o->thread), count = spirv_read(p, o->w[6], o->thread);
    uint64_t mask;

    if (offset > o->bits || count > o->bits - offset)
        return spirv_wrong(p, "a field of %llu bits at %llu", (unsigned long long)count, (unsigned long long)offset);
    mask = count ? spirv_mask((unsigned)count) << offset : 0;
    *out = (o->a & ~mask) | (o->b << offset & mask);
    return true;
}

static bool compute(struct spirv_program *p, const struct operands *o, uint64_t *out)
{
    switch (spirv_op(o->w)) {
    case SpvOpIAdd:
        *out = o->a + o->b;
        return true;
    case SpvOpISub:
        *out = o->a - o->b;
        return true;
    case SpvOpIMul:
        *out = o->a * o->b;
        return true;
    case SpvOpUDiv:
    case SpvOpUMod:
        return divide(p, o, out);
    case SpvOpSNegate:
        *out = 0 - o->a;
        return true;
    case SpvOpBitwiseAnd:
    case SpvOpLogicalAnd:
        *out = o->a & o->b;
        return true;
    case SpvOpBitwiseOr:
    case SpvOpLogicalOr:
        *out = o->a | o->b;
        return true;
    case SpvOpBitwiseXor:
        *out = o->a ^ o->b;
        return true;
    case SpvOpNot:
        *out = ~o->a;
        return true;
    case SpvOpLogicalNot:
        *out = !o->a;
        return true;
    case SpvOpShiftLeftLogical:
    case SpvOpShiftRightLogical:
    case SpvOpShiftRightArithmetic:
        return shift(p, o, out);
    case SpvOpBitCount:
        *out = (uint64_t)__builtin_popcountll(o->a);
        return true;
    case SpvOpBitFieldInsert:
        return insert_field(p, o, out);
    case SpvOpBitReverse:
        *out = reversed(o->a, o->bits);
        return true;
    case SpvOpSelect:
        *out = o->a ? o->b : spirv_read(p, o->w[5], o->thread);
        return true;
    case SpvOpUConvert:
    case SpvOpConvertUToPtr:
    case SpvOpCopyObject:
        *out = o->a;
        return true;
    case SpvOpSConvert:
        *out = (uint64_t)o->signed_a;
        return true;
    case SpvOpIEqual:
    case SpvOpLogicalEqual:
        *out = o->a == o->b;
        return true;
    case SpvOpINotEqual:
    case SpvOpLogicalNotEqual:
        *out = o->a != o->b;
        return true;
    case SpvOpULessThan:
        *out = o->a < o->b;
        return true;
    case SpvOpULessThanEqual:
        *out = o->a <= o->b;
        return true;
    case SpvOpUGreaterThan:
        *out = o->a > o->b;
        return true;
    case SpvOpUGreaterThanEqual:
        *out = o->a >= o->b;
        return true;
    case SpvOpSLessThan:
        *out = o->signed_a < o->signed_b;
        return true;
    case SpvOpSLessThanEqual:
        *out = o->signed_a <= o->signed_b;
        return true;
    case SpvOpSGreaterThan:
        *out = o->signed_a > o->signed_b;
        return true;
    case SpvOpSGreaterThanEqual:
        *out = o->signed_a >= o->signed_b;
        return true;
    case SpvOpExtInst:
        return extended(p, o, out);
    default:
        return spirv_wrong(p, "SPIR-V instruction %u", spirv_op(o->w));
    }
}

static bool scalar(struct spirv_program *p, const uint32_t *w, unsigned thread, uint64_t *out)
{
    const unsigned first = spirv_op(w) == SpvOpExtInst ? 5 : 3;
    struct operands o = {.p = p, .w = w, .thread = thread, .bits = spirv_type(p, w[first])->bits};

    o.a = spirv_read(p, w[first], thread);
    o.b = spirv_length(w) > first + 1 ? spirv_read(p, w[first + 1], thread) : 0;
    o.signed_a = spirv_signed(o.a, o.bits);
    o.signed_b = spirv_signed(o.b, o.bits);
    return compute(p, &o, out);
}

/* Reinterprets components of one type as those of another, low bits first. */
static void bitcast(const struct spirv_program *p, const uint32_t *w, unsigned thread)
{
    const struct spirv_id *from = spirv_type(p, w[3]), *to = &p->ids[w[1]];
    unsigned __int128 whole = 0;

    for (unsigned i = 0; i < from->count; i++)
        whole |= (unsigned __int128)*spirv_part(p, w[3], i, thread) << (i * from->bits);
    for (unsigned i = 0; i < to->count; i++)
        *spirv_part(p, w[2], i, thread) = (uint64_t)(whole >> (i * to->bits)) & spirv_mask(to->bits);
}

static void multiply(const struct spirv_program *p, const uint32_t *w, unsigned thread)
{
    const unsigned bits = spirv_type(p, w[3])->bits;
    const uint64_t a = spirv_read(p, w[3], thread), b = spirv_read(p, w[4], thread);
    const __int128 wide =
        spirv_op(w) == SpvOpSMulExtended ? (__int128)spirv_signed(a, bits) * spirv_signed(b, bits) : (__int128)((unsigned __int128)a * b);

    *spirv_part(p, w[2], 0, thread) = (uint64_t)wide & spirv_mask(bits);
    *spirv_part(p, w[2], 1, thread) = (uint64_t)(wide >> bits) & spirv_mask(bits);
}

bool spirv_evaluate(struct spirv_program *p, const uint32_t *w, unsigned thread)
{
    const struct spirv_id *type = &p->ids[w[1]];
    uint64_t *result = spirv_part(p, w[2], 0, thread);

    switch (spirv_op(w)) {
    case SpvOpBitcast:
        bitcast(p, w, thread);
        return true;
    case SpvOpUMulExtended:
    case SpvOpSMulExtended:
        multiply(p, w, thread);
        return true;
    case SpvOpCompositeConstruct:
        for (unsigned i = 0; i < type->count; i++)
            *spirv_part(p, w[2], i, thread) = spirv_read(p, w[3 + i], thread);
        return true;
    case SpvOpCompositeExtract:
        *result = *spirv_part(p, w[3], w[4], thread);
        return true;
    case SpvOpCompositeInsert:
        for (unsigned i = 0; i < type->count; i++)
            *spirv_part(p, w[2], i, thread) = *spirv_part(p, i == w[5] ? w[3] : w[4], i == w[5] ? 0 : i, thread);
        return true;
    case SpvOpVectorExtractDynamic:
        if (spirv_read(p, w[4], thread) >= spirv_type(p, w[3])->count)
            return spirv_wrong(p, "component %llu of a vector", (unsigned long long)spirv_read(p, w[4], thread));
        *result = *spirv_part(p, w[3], (unsigned)spirv_read(p, w[4], thread), thread);
        return true;
    default:
        if (!scalar(p, w, thread, result))
            return false;
        *result &= spirv_mask(type->bits);
        return true;
    }
}
