/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are put together in the opposite order.
 *
 * NVIDIA's driver (580.159.04) knows "or" of a value's bytes in the opposite order for one operation, however it is written. It has that
 * operation for 32 and 64 bits, and forgets that it has none for 16 and 48. The two low bytes, swapped, are then whatever a register holds:
 * of 16-bit values always, of wider ones in kernels that also divide by a routine of the driver's (64-bit integers, f64, f32 rounded
 * exactly, roots of f64); six bytes turned round end its compiler there. Measured on an H200: all selections that prmt can make, of
 * which those with swapped low bytes were wrong, and some fifty other ways to write it. Sums and bit fields it takes for themselves;
 * these have 32 bits only, and are faster than "or" (0.7 of the time for a row of swaps and sums). This is done where the target has
 * PTX2SPV_WORKAROUND_SWAPPED_BYTES, in the Vulkan dialect only, since OpenCL's SPIR-V has no bit fields. Intel's OpenCL compiler for GPUs
 * (1.0.12504) ends at six bytes turned round, also as a sum, since LLVM makes one operation of them that it does not have. With
 * PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES a zero that LLVM does not know goes in between. */
#include "emit.h"

#include "ptx2spv/passes/simplify.h"

#define STEPS_MAX 64 /* instructions that are looked at for a byte */
#define NOT_WHOLE 8  /* more bytes than a value has */

/* Where a byte comes from: byte `index` of a value; no value: it is 0. */
struct byte {
    ct_value value;
    unsigned index;
};

static const struct byte zero_byte;

static struct byte byte_of(const struct ct_gen *g, ct_value value, unsigned index, unsigned *steps);

/* By how many bytes a multiplication or a shift by a constant moves; NOT_WHOLE: not by whole ones. */
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
    return is_signed && (down || index >= by) ? itself : zero_byte; /* the sign, or what is shifted in at the lower end */
}

/* Of an instruction that puts together bytes of which at most one is not 0. */
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
    case CT_OP_XOR: return joined_byte(g, def, index, itself, steps);
    case CT_OP_AND: return masked_byte(g, def, index, itself, steps);
    case CT_OP_SHL:
    case CT_OP_SHR:
    case CT_OP_MUL:
    case CT_OP_MULWIDE: return moved_byte(g, def, index, itself, steps);
    case CT_OP_EXT: return extended_byte(g, def, index, itself, steps);
    case CT_OP_TRUNC:
    case CT_OP_COPY: return byte_of(g, def->operands[0], index, steps);
    default: return itself;
    }
}

static struct byte find_byte(const struct ct_gen *g, ct_value value, unsigned index)
{
    unsigned steps = STEPS_MAX;

    return byte_of(g, value, index, &steps);
}

/* Whether a value is 0 but for its lowest byte. */
static bool is_byte(const struct ct_gen *g, ct_value value)
{
    for (unsigned i = 1; i < ct_gen_bits(g, value) / 8; i++)
        if (find_byte(g, value, i).value.i)
            return false;
    return true;
}

/* Whether the lowest byte, which `low` has and nothing else, and the next one, of `others`, are neighbours of a value, the upper one
 * first. Only the lowest two of more than 16 bits are taken for a swap of 16. */
static bool is_swap(const struct ct_gen *g, ct_value low, ct_value others)
{
    const struct byte first = find_byte(g, low, 0), second = find_byte(g, others, 1);

    return first.value.i && first.value.i == second.value.i && first.index == second.index + 1 &&
           (ct_gen_bits(g, low) == 16 || second.index == 0) && !find_byte(g, others, 0).value.i && is_byte(g, low);
}

/* Whether the lower six bytes of a value are those of another, the first last, or 0; the others are. */
static bool is_row_of_six(const struct ct_gen *g, ct_value value)
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

/* The operand that is the lower byte of a swap, the other being the rest; -1: the instruction makes none. */
static int low_operand(const struct ct_gen *g, const struct ct_insn *insn)
{
    return is_swap(g, insn->operands[0], insn->operands[1]) ? 0 : is_swap(g, insn->operands[1], insn->operands[0]) ? 1 : -1;
}

/* A form that LLVM does not recognize. */
static uint32_t six_apart(struct ct_gen *g, const struct ct_insn *insn)
{
    const uint32_t type = ct_gen_int_type(g, 64);
    const uint32_t second = GEN(g, SpvOpBitwiseXor, type, ct_gen_use(g, insn->operands[1]), ct_gen_secret_zero(g, 64));

    return GEN(g, SpvOpBitwiseOr, type, ct_gen_use(g, insn->operands[0]), second);
}

uint32_t ct_gen_turned_or_none(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned bits = ct_gen_bits(g, insn->results[0]);
    uint32_t low, others;
    bool is_six;
    int at;

    if ((insn->op != CT_OP_OR && insn->op != CT_OP_XOR) || bits == 1)
        return 0;
    if (!(g->target->workarounds & (PTX2SPV_WORKAROUND_SWAPPED_BYTES | PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES)))
        return 0;
    is_six = bits == 64 && is_row_of_six(g, insn->results[0]);
    if (is_six && ct_gen_works_around(g, PTX2SPV_WORKAROUND_REVERSED_SIX_BYTES))
        return six_apart(g, insn);
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
