/* SPDX-License-Identifier: Apache-2.0 */
/* build: SIMD video instructions on two halves or four bytes (PTX ISA, "SIMD Video Instructions"), with their default selectors: each
 * part of a with the same part of b, and all parts of d. A part has at most 16 bits, so 32-bit arithmetic is exact.
 *     vadd4.u32.s32.u32.sat d, a, b, c;    types of d, a, b; parts are clamped to the type of d; c provides parts outside a mask,
 *       but the mask is full
 *     vadd4.u32.s32.u32.add d, a, b, c;    d = c + the sum of the parts, with all their bits */
#include "build.h"

static ct_value part_sum(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_add(at, a, b);
}

static ct_value part_difference(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_sub(at, a, b);
}

static ct_value part_distance(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_sub(at, ct_op2(at, CT_OP_MAX, PTX_S32, a, b), ct_op2(at, CT_OP_MIN, PTX_S32, a, b));
}

/* The average; halves are rounded away from zero. */
static ct_value part_average(struct ct_cursor *at, ct_value a, ct_value b)
{
    const ct_value sum = ct_add(at, a, b);
    const ct_value one = ct_xor_imm(at, ct_shr_imm(at, sum, 31), 1); /* 1 if the sum is not negative */

    return ct_sar_imm(at, ct_add(at, sum, one), 1);
}

static ct_value part_minimum(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_MIN, PTX_S32, a, b);
}

static ct_value part_maximum(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_MAX, PTX_S32, a, b);
}

typedef ct_value (*part_fn)(struct ct_cursor *at, ct_value a, ct_value b);

/* The operation of an instruction on a part; NULL: it is a comparison. */
static part_fn part_function_of(enum ptx_opcode opcode)
{
    switch ((int)opcode) {
    case PTX_OP_VADD2:
    case PTX_OP_VADD4:
        return part_sum;
    case PTX_OP_VSUB2:
    case PTX_OP_VSUB4:
        return part_difference;
    case PTX_OP_VABSDIFF2:
    case PTX_OP_VABSDIFF4:
        return part_distance;
    case PTX_OP_VAVRG2:
    case PTX_OP_VAVRG4:
        return part_average;
    case PTX_OP_VMIN2:
    case PTX_OP_VMIN4:
        return part_minimum;
    case PTX_OP_VMAX2:
    case PTX_OP_VMAX4:
        return part_maximum;
    default:
        return NULL;
    }
}

/* The type of a part with `bits` bits and the signedness of `whole`. */
static enum ptx_type part_type(enum ptx_type whole, unsigned bits)
{
    const bool is_signed = ptx_type_is_signed(whole);

    return bits == 8 ? (is_signed ? PTX_S8 : PTX_U8) : (is_signed ? PTX_S16 : PTX_U16);
}

static ct_value part_of(struct ct_build *b, ct_value x, enum ptx_type type, unsigned first)
{
    return ct_extend_in_place(&b->at, first ? ct_shr_imm(&b->at, x, first) : x, type);
}

static ct_value clamp_part(struct ct_build *b, ct_value x, bool is_signed, unsigned bits)
{
    const uint32_t most = is_signed ? (1u << (bits - 1)) - 1 : (1u << bits) - 1;
    const ct_value high = ct_const32(&b->at, most), low = ct_const32(&b->at, is_signed ? ~most : 0);

    return ct_op2(&b->at, CT_OP_MAX, PTX_S32, ct_op2(&b->at, CT_OP_MIN, PTX_S32, x, high), low);
}

/* The types written in the instruction, of d, a and b; a comparison has only those of a and b, and its result is 0 or 1. */
struct video {
    part_fn compute;
    enum ptx_type d, a, b;
    unsigned bits; /* of a part */
};

static bool read_video(struct ct_build *b, unsigned bits, struct video *out)
{
    const struct ptx_instruction *insn = b->insn;
    const part_fn compute = part_function_of(insn->opcode);
    const unsigned n = compute ? 3 : 2;

    if (insn->n_types != n || insn->n_operands != 4) {
        ct_build_invalid(b, "wrong types or operands");
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        if (insn->types[i] == PTX_U32 || insn->types[i] == PTX_S32)
            continue;
        ct_build_invalid(b, "only .u32 and .s32 are legal types");
        return false;
    }
    *out = (struct video){compute, compute ? insn->types[0] : PTX_U32, insn->types[n - 2], insn->types[n - 1], bits};
    return true;
}

static void build_parts(struct ct_build *b, const struct video *video)
{
    const bool sums = b->insn->mods.operation == PTX_ADD;
    const ct_value x = ct_build_source(b, 1, PTX_B32), y = ct_build_source(b, 2, PTX_B32), c = ct_build_source(b, 3, PTX_B32);
    ct_value result = sums ? c : ct_const32(&b->at, 0);

    for (unsigned first = 0; first < 32; first += video->bits) {
        const ct_value p = part_of(b, x, part_type(video->a, video->bits), first);
        const ct_value q = part_of(b, y, part_type(video->b, video->bits), first);
        ct_value part;

        if (video->compute)
            part = video->compute(&b->at, p, q);
        else
            part = ct_select(&b->at, ct_icmp(&b->at, PTX_S32, (enum ptx_compare)b->insn->mods.compare, p, q), ct_const32(&b->at, 1),
                             ct_const32(&b->at, 0));
        if (b->insn->mods.sat)
            part = clamp_part(b, part, ptx_type_is_signed(video->d), video->bits);
        if (sums)
            result = ct_add(&b->at, result, part);
        else
            result = ct_or(&b->at, result, ct_shl_imm(&b->at, ct_and_imm(&b->at, part, (1u << video->bits) - 1), first));
    }
    ct_build_result(b, result, PTX_U32);
}

void ct_build_video2(struct ct_build *b)
{
    struct video video;

    if (read_video(b, 16, &video))
        build_parts(b, &video);
}

void ct_build_video4(struct ct_build *b)
{
    struct video video;

    if (read_video(b, 8, &video))
        build_parts(b, &video);
}
