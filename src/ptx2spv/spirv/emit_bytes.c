/* SPDX-License-Identifier: Apache-2.0 */
/* Byte reversal: values whose bytes are put together in the opposite order.
 *
 * NVIDIA's driver (580.159.04) recognizes an "or" of a value's bytes in reverse order, however it is written, and turns it into one
 * operation. It has that operation for 32 and 64 bits, but also uses it for 16 and 48, for which it does not exist. The two low bytes,
 * swapped, are then whatever a register contains: always for 16-bit values, for wider ones in kernels that also divide by one of the
 * driver's routines (64-bit integers, f64, correctly rounded f32, roots of f64); a reversal of six bytes terminates its compiler there.
 * Measured on an H200: all selections that prmt can make, of which those with swapped low bytes were wrong, and some fifty other ways to
 * write it. It does not misinterpret sums and bit fields; the latter exist for 32 bits only, and are faster than "or" (0.7 of the time
 * for a sequence of swaps and sums). This is done where the target has PTX2SPV_WORKAROUND_SWAPPED_BYTES, in the Vulkan dialect only, since
 * OpenCL's SPIR-V has no bit fields. Intel's OpenCL compiler for GPUs (1.0.12504) terminates on a reversal of six bytes, also when written
 * as a sum, since LLVM combines it into an operation that the compiler does not have. With PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES, an
 * exclusive or with a zero that is opaque to LLVM is inserted. */
#include "emit.h"

#include "ptx2spv/passes/simplify.h"

#define STEPS_MAX 64 /* instructions that are visited for one byte */
#define NOT_WHOLE 8  /* more bytes than a value has */

/* The source of a byte: byte `index` of a value; no value: it is 0. */
struct byte {
    ct_value value;
    unsigned index;
};

static const struct byte zero_byte;

static struct byte byte_of(const struct ct_gen *g, ct_value value, unsigned index, unsigned *steps);

/* By how many bytes a multiplication or a shift by a constant moves its operand; NOT_WHOLE: not by whole bytes. */
static unsigned bytes_moved(const struct ct_gen *g, const struct ct_insn *insn)
{
    const struct ct_insn *constant = ct_constant_or_null(g->fn, insn->operands[1]);
    unsigned bits = 0;

    if (!constant)
        return NOT_WHOLE;
    if (insn->op == CT_OP_SHL || insn->op == CT_OP_SHR)
        return constant->imm % 8 ? NOT_WHOLE : (unsigned)constant->imm / 8;
    while (bits < 64 && constant->imm != UINT64_C(1) << bits)
        bits += 8;
    return bits < 64 ? bits / 8 : NOT_WHOLE;
}

static struct byte moved_byte(const struct ct_gen *g, const struct ct_insn *insn, unsigned index, struct byte itself, unsigned *steps)
{
    const unsigned by = bytes_moved(g, insn), bytes = ct_gen_bits(g, insn->operands[0]) / 8;
    const bool down = insn->op == CT_OP_SHR, is_signed = ptx_type_is_signed(insn->type);
    const unsigned from = down ? index + by : index - by;

    if (by == NOT_WHOLE)
        return itself;
    if (down ? from < bytes : index >= by && from < bytes)
        return byte_of(g, insn->operands[0], from, steps);
    return is_signed && (down || index >= by) ? itself : zero_byte; /* the sign, or what is shifted in at the low end */
}

/* For an instruction that combines bytes of which at most one is not 0. */
static struct byte joined_byte(const struct ct_gen *g, const struct ct_insn *insn, unsigned index, struct byte itself, unsigned *steps)
{
    const struct byte a = byte_of(g, insn->operands[0], index, steps), b = byte_of(g, insn->operands[1], index, steps);

    return !a.value.i ? b : !b.value.i ? a : itself;
}

static struct byte masked_byte(const struct ct_gen *g, const struct ct_insn *insn, unsigned index, struct byte itself, unsigned *steps)
{
    const struct ct_insn *constant = ct_constant_or_null(g->fn, insn->operands[1]);
    const unsigned mask = constant ? constant->imm >> (8 * index) & 0xff : 1;

    return !mask ? zero_byte : mask == 0xff ? byte_of(g, insn->operands[0], index, steps) : itself;
}

static struct byte extended_byte(const struct ct_gen *g, const struct ct_insn *insn, unsigned index, struct byte itself, unsigned *steps)
{
    if (index < ptx_type_bits(insn->type) / 8)
        return byte_of(g, insn->operands[0], index, steps);
    return ptx_type_is_signed(insn->type) ? itself : zero_byte;
}

static struct byte byte_of(const struct ct_gen *g, ct_value value, unsigned index, unsigned *steps)
{
    const struct ct_insn *def = g->fn->values.v[value.i].def;
    const struct byte itself = {value, index};

    if (def->op == CT_OP_CONST)
        return def->imm >> (8 * index) & 0xff ? itself : zero_byte;
    if (*steps == 0)
        return itself;
    --*steps;
    switch (def->op) {
    case CT_OP_OR:
    case CT_OP_XOR:
        return joined_byte(g, def, index, itself, steps);
    case CT_OP_AND:
        return masked_byte(g, def, index, itself, steps);
    case CT_OP_SHL:
    case CT_OP_SHR:
    case CT_OP_MUL:
    case CT_OP_MULWIDE:
        return moved_byte(g, def, index, itself, steps);
    case CT_OP_EXT:
        return extended_byte(g, def, index, itself, steps);
    case CT_OP_TRUNC:
    case CT_OP_COPY:
        return byte_of(g, def->operands[0], index, steps);
    default:
        return itself;
    }
}

static struct byte find_byte(const struct ct_gen *g, ct_value value, unsigned index)
{
    unsigned steps = STEPS_MAX;

    return byte_of(g, value, index, &steps);
}

/* Whether all bytes of a value except the lowest are 0. */
static bool is_byte(const struct ct_gen *g, ct_value value)
{
    for (unsigned i = 1; i < ct_gen_bits(g, value) / 8; i++)
        if (find_byte(g, value, i).value.i)
            return false;
    return true;
}

/* Whether the lowest byte, which is all of `low`, and the next one, in `others`, are adjacent bytes of one value, the higher one first.
 * In values of more than 16 bits, only a swap of the lowest two bytes is misinterpreted as a 16-bit swap. */
static bool is_swap(const struct ct_gen *g, ct_value low, ct_value others)
{
    const struct byte first = find_byte(g, low, 0), second = find_byte(g, others, 1);

    return first.value.i && first.value.i == second.value.i && first.index == second.index + 1 &&
           (ct_gen_bits(g, low) == 16 || second.index == 0) && !find_byte(g, others, 0).value.i && is_byte(g, low);
}

/* Whether the lower six bytes of a value are those of another value in reverse order, or 0, and its other bytes are 0. */
static bool is_six_byte_reversal(const struct ct_gen *g, ct_value value)
{
    const struct byte last = find_byte(g, value, 5);

    if (!last.value.i || last.index != 0)
        return false;
    for (unsigned i = 0; i < 8; i++) {
        const struct byte byte = find_byte(g, value, i);

        if (byte.value.i && (byte.value.i != last.value.i || byte.index + i != 5))
            return false;
    }
    return true;
}

/* Index of the operand that is the low byte of a swap, the other operand being the rest; -1: the instruction is no swap. */
static int low_operand(const struct ct_gen *g, const struct ct_insn *insn)
{
    return is_swap(g, insn->operands[0], insn->operands[1]) ? 0 : is_swap(g, insn->operands[1], insn->operands[0]) ? 1 : -1;
}

/* A form that LLVM does not recognize. */
static uint32_t six_byte_reversal(struct ct_gen *g, const struct ct_insn *insn)
{
    const uint32_t type = ct_gen_int_type(g, 64);
    const uint32_t second = GEN(g, SpvOpBitwiseXor, type, ct_gen_use(g, insn->operands[1]), ct_gen_opaque_zero(g, 64));

    return GEN(g, SpvOpBitwiseOr, type, ct_gen_use(g, insn->operands[0]), second);
}

uint32_t ct_gen_byte_reversal_or_none(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ct_gen_bits(g, insn->results[0]);
    uint32_t low, others;
    bool is_six;
    int at;

    if ((insn->op != CT_OP_OR && insn->op != CT_OP_XOR) || bits == 1)
        return 0;
    if (!(g->target->workarounds & (PTX2SPV_WORKAROUND_SWAPPED_BYTES | PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES)))
        return 0;
    is_six = bits == 64 && is_six_byte_reversal(g, insn->results[0]);
    if (is_six && ct_gen_works_around(g, PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES))
        return six_byte_reversal(g, insn);
    if (!ct_gen_works_around(g, PTX2SPV_WORKAROUND_SWAPPED_BYTES) || g->target->dialect != PTX2SPV_VULKAN)
        return 0;
    at = low_operand(g, insn);
    if (at < 0 && !is_six)
        return 0;
    low = ct_gen_use(g, insn->operands[at < 0 ? 0 : at]);
    others = ct_gen_use(g, insn->operands[at < 0 ? 1 : 1 - at]);
    if (bits != 32)
        return GEN(g, SpvOpIAdd, ct_gen_int_type(g, bits), others, low);
    return GEN(g, SpvOpBitFieldInsert, ct_gen_int_type(g, bits), others, low, ct_gen_u32(g, 0), ct_gen_u32(g, 8));
}
