/* SPDX-License-Identifier: Apache-2.0 */
/* build: SIMD video instructions on two halves or four bytes (PTX ISA, "SIMD Video Instructions"). Without selectors
 * each part of a is taken with the same part of b. A part has at most 16 bits, so 32-bit arithmetic is exact.
 *     vadd4.u32.s32.u32.sat d, a, b, c;    types of d, a, b; parts are clamped to the type of d; c provides the parts outside the mask of d
 *     vadd4.u32.u32.u32 d.b20, a.b3210, b.b7654, c;    the parts of d that are written; for each part of d the part of a and b together
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
    unsigned bits;                /* of a part */
    unsigned mask;                /* the parts of d that are written */
    uint8_t from_a[4], from_b[4]; /* the part of the sources for each part of d */
};

/* ---- selectors ---- */

/* The sources: the parts of a and b have numbers, those of b follow those of a. A selector has the number for each part of d. */
static void read_selector(const struct ptx_operand *operand, unsigned n_parts, unsigned first_default, uint8_t numbers[4])
{
    for (unsigned i = 0; i < n_parts; i++)
        numbers[i] = operand->n_selected ? operand->selected[i] : (uint8_t)(first_default + i);
}

static bool check_selector(const struct ptx_operand *operand, unsigned n_parts)
{
    for (unsigned i = 0; i < operand->n_selected; i++)
        if (operand->selected[i] >= 2 * n_parts)
            return false;
    return operand->component < 0 && (!operand->n_selected || operand->n_selected == n_parts);
}

/* The parts of d that are written, a bit for each; 0: the mask is illegal. Its numbers descend: .b20, not .b02. */
static unsigned read_mask(const struct ptx_operand *operand, unsigned n_parts)
{
    const int number = operand->component - (n_parts == 4 ? PTX_SELECTOR_BYTE : PTX_SELECTOR_HALF);
    unsigned mask = 0;

    if (operand->component >= 0)
        return number >= 0 && number < (int)n_parts ? 1u << number : 0;
    if (!operand->n_selected)
        return (1u << n_parts) - 1;
    for (unsigned i = 0; i < operand->n_selected; i++) {
        const unsigned bit = operand->selected[i] < n_parts ? 1u << operand->selected[i] : 0;

        if (bit <= mask)
            return 0;
        mask |= bit;
    }
    return mask;
}

static bool read_selectors(struct ct_build *b, struct video *video)
{
    const struct ptx_operand *operands = b->insn->operands;
    const unsigned n_parts = 32 / video->bits;

    video->mask = read_mask(&operands[0], n_parts);
    if (!video->mask || !check_selector(&operands[1], n_parts) || !check_selector(&operands[2], n_parts)) {
        ct_build_invalid(b, "an illegal selector");
        return false;
    }
    read_selector(&operands[1], n_parts, 0, video->from_a);
    read_selector(&operands[2], n_parts, n_parts, video->from_b);
    return true;
}

static bool read_video(struct ct_build *b, unsigned bits, struct video *out)
{
    const struct ptx_instruction *insn = b->insn;
    const part_fn compute = part_function_of(insn->opcode);
    const unsigned n = compute ? 3 : 2;

    if (insn->n_types != n || insn->n_operands != 4 || (!compute && (!insn->mods.compare || insn->mods.compare > PTX_GE))) {
        ct_build_invalid(b, "wrong types, operands or comparison");
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        if (insn->types[i] == PTX_U32 || insn->types[i] == PTX_S32)
            continue;
        ct_build_invalid(b, "only .u32 and .s32 are legal types");
        return false;
    }
    *out = (struct video){
        .compute = compute, .d = compute ? insn->types[0] : PTX_U32, .a = insn->types[n - 2], .b = insn->types[n - 1], .bits = bits};
    return read_selectors(b, out);
}

/* ---- the instruction ---- */

/* Part `number` of the words. */
static ct_value selected_part(struct ct_build *b, const struct video *video, const ct_value words[2], unsigned number, enum ptx_type type)
{
    const unsigned n_parts = 32 / video->bits;

    return part_of(b, words[number / n_parts], part_type(type, video->bits), number % n_parts * video->bits);
}

static ct_value build_part(struct ct_build *b, const struct video *video, const ct_value words[2], unsigned i)
{
    const ct_value p = selected_part(b, video, words, video->from_a[i], video->a);
    const ct_value q = selected_part(b, video, words, video->from_b[i], video->b);
    ct_value part;

    if (video->compute)
        part = video->compute(&b->at, p, q);
    else
        part = ct_select(&b->at, ct_icmp(&b->at, PTX_S32, (enum ptx_compare)b->insn->mods.compare, p, q), ct_const32(&b->at, 1),
                         ct_const32(&b->at, 0));
    return b->insn->mods.sat ? clamp_part(b, part, ptx_type_is_signed(video->d), video->bits) : part;
}

/* Parts outside the mask are those of c; a sum is c and the parts of the mask. */
static void build_parts(struct ct_build *b, const struct video *video)
{
    const bool sums = b->insn->mods.operation == PTX_ADD;
    const uint32_t part_mask = (1u << video->bits) - 1;
    const struct ptx_operand d = ct_build_whole_word(&b->insn->operands[0]), x = ct_build_whole_word(&b->insn->operands[1]),
                             y = ct_build_whole_word(&b->insn->operands[2]);
    const ct_value words[2] = {ct_build_read(b, &x, PTX_B32), ct_build_read(b, &y, PTX_B32)};
    ct_value result = ct_build_source(b, 3, PTX_B32);
    uint32_t kept = UINT32_MAX;

    for (unsigned i = 0; i < 32 / video->bits; i++)
        kept &= video->mask >> i & 1 ? ~(part_mask << i * video->bits) : UINT32_MAX;
    if (!sums)
        result = ct_and_imm(&b->at, result, kept);
    for (unsigned i = 0; i < 32 / video->bits; i++) {
        ct_value part;

        if (!(video->mask >> i & 1))
            continue;
        part = build_part(b, video, words, i);
        if (sums)
            result = ct_add(&b->at, result, part);
        else
            result = ct_or(&b->at, result, ct_shl_imm(&b->at, ct_and_imm(&b->at, part, part_mask), i * video->bits));
    }
    ct_build_write(b, &d, result, PTX_U32);
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
