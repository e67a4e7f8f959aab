/* SPDX-License-Identifier: Apache-2.0 */
/* Oracle: video instructions on halves and bytes with their default selectors (PTX ISA, "SIMD Video Instructions"). */
#include "machine.h"

enum { SUM, DIFFERENCE, DISTANCE, AVERAGE, LEAST, MOST, COMPARISON };

static const struct {
    enum ptx_opcode opcode;
    int what;
    unsigned bits; /* width of a part */
} rows[] = {
    {PTX_OP_VADD2, SUM, 16},        {PTX_OP_VADD4, SUM, 8},        {PTX_OP_VSUB2, DIFFERENCE, 16},   {PTX_OP_VSUB4, DIFFERENCE, 8},
    {PTX_OP_VAVRG2, AVERAGE, 16},   {PTX_OP_VAVRG4, AVERAGE, 8},   {PTX_OP_VABSDIFF2, DISTANCE, 16}, {PTX_OP_VABSDIFF4, DISTANCE, 8},
    {PTX_OP_VMIN2, LEAST, 16},      {PTX_OP_VMIN4, LEAST, 8},      {PTX_OP_VMAX2, MOST, 16},         {PTX_OP_VMAX4, MOST, 8},
    {PTX_OP_VSET2, COMPARISON, 16}, {PTX_OP_VSET4, COMPARISON, 8},
};

/* Part `index` of a word, sign- or zero-extended according to its type. */
static int64_t part_of(uint64_t word, unsigned index, unsigned bits, enum ptx_type type)
{
    const int64_t part = (int64_t)(word >> bits * index & ((1u << bits) - 1));

    return ptx_type_is_signed(type) && part >> (bits - 1) ? part - (1 << bits) : part;
}

static int64_t combine(int what, enum ptx_compare compare, int64_t a, int64_t b)
{
    const int64_t sum = a + b;

    switch (what) {
    case SUM:
        return sum;
    case DIFFERENCE:
        return a - b;
    case DISTANCE:
        return a > b ? a - b : b - a;
    case AVERAGE: /* rounded away from zero */
        return (sum < 0 ? sum - 1 : sum + 1) / 2;
    case LEAST:
        return a < b ? a : b;
    case MOST:
        return a > b ? a : b;
    default:
        return oracle_compare(PTX_S64, compare, (uint64_t)a, (uint64_t)b);
    }
}

static int64_t clamp(int64_t part, unsigned bits, enum ptx_type type)
{
    const int64_t low = ptx_type_is_signed(type) ? -(1 << (bits - 1)) : 0, high = low + (1 << bits) - 1;

    return part < low ? low : part > high ? high : part;
}

void oracle_do_video(struct oracle_step *s)
{
    const struct ptx_modifiers *mods = &s->insn->mods;
    const uint64_t a = oracle_source(s, 1, PTX_B32), b = oracle_source(s, 2, PTX_B32), c = oracle_source(s, 3, PTX_B32);
    uint64_t parts = 0, sum = c;
    unsigned row = 0;
    enum ptx_type dtype;

    while (rows[row].opcode != s->insn->opcode)
        row++;
    dtype = rows[row].what == COMPARISON ? PTX_U32 : oracle_type(s, 0);
    for (unsigned i = 0; i < 32 / rows[row].bits; i++) {
        const unsigned bits = rows[row].bits, first = rows[row].what == COMPARISON ? 0 : 1;
        int64_t part = combine(rows[row].what, (enum ptx_compare)mods->compare, part_of(a, i, bits, oracle_type(s, first)),
                               part_of(b, i, bits, oracle_type(s, first + 1)));

        if (mods->sat)
            part = clamp(part, bits, dtype);
        parts |= ((uint64_t)part & ((1u << bits) - 1)) << bits * i;
        sum += (uint64_t)part; /* all its bits, as in NVIDIA's driver 580 */
    }
    oracle_result(s, PTX_B32, mods->operation == PTX_ADD ? sum : parts);
}
