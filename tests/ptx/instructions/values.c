/* SPDX-License-Identifier: Apache-2.0 */
/* Operands: all combinations of each type's edge values as far as the limit allows, then random values from a fixed seed. */
#include "harness.h"

#include <stdlib.h>

#define MAX_EDGE_CASES 2048

unsigned random_cases = 512;

unsigned type_bits(enum type type)
{
    static const uint8_t bits[TYPE_COUNT] = {
        [PRED] = 1, [B8] = 8,   [B16] = 16, [U16] = 16, [S16] = 16, [F16] = 16, [BF16] = 16, [B32] = 32,
        [U32] = 32, [S32] = 32, [F32] = 32, [B64] = 64, [U64] = 64, [S64] = 64, [F64] = 64,
    };

    return bits[type];
}

bool type_is_float(enum type type)
{
    return type == F16 || type == BF16 || type == F32 || type == F64;
}

static const uint64_t integers[] = {
    0,
    1,
    UINT64_MAX,
    2,
    31,
    32,
    0x7fffffff,
    0x80000000,
    0x8000000000000000,
    0x7fffffffffffffff,
    0x7fff,
    0x8000,
    3,
    7,
    8,
    33,
    63,
    64,
    255,
    256,
    0xffff,
    0x80000001,
    0xffffffff,
    0x100000000,
    0xaaaaaaaaaaaaaaaa,
    0x5555555555555555,
    0x0123456789abcdef,
    0xfedcba9876543210,
    0x80ff7f01,
    UINT64_MAX - 1,
    0xffffff80,
    1000003,
};

static const uint64_t singles[] = {
    0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x80000001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
    0x00800000, 0x80800000, 0x007fffff, 0x807fffff, 0x3f000000, 0xbf000000, 0x3fc00000, 0xc0200000, 0x40200000, 0x3f800001, 0x3f7fffff,
    0x4b000000, 0x4b800000, 0x4b7fffff, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5f000000, 0xdf000000,
    0x5f800000, 0x3dcccccd, 0x40490fdb, 0x477fe000, 0x477ff000, 0x33800000, 0x1a000000, 0x42fe0000, 0x43000000, 0xc3000000, 0xc3008000,
};

static const uint64_t doubles[] = {
    0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x0000000000000001, 0x8000000000000001,
    0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x0010000000000000,
    0x8010000000000000, 0x000fffffffffffff, 0x800fffffffffffff, 0x3fe0000000000000, 0xbff8000000000000, 0x4004000000000000,
    0x3ff0000000000001, 0x3fefffffffffffff, 0x4330000000000000, 0x4340000000000000, 0x41dfffffffe00000, 0x41e0000000000000,
    0xc1e0000000000000, 0xc1e0000000200000, 0x41efffffffe00000, 0x41f0000000000000, 0x43e0000000000000, 0xc3e0000000000000,
    0x43f0000000000000, 0x3fb999999999999a, 0x400921fb54442d18, 0x36a0000000000000, 0x3690000000000000, 0x47efffffe0000000,
    0x47effffff0000000, 0x380fffffe0000000, 0x3810000000000000, 0x1ff0000000000000, 0x5fe0000000000000, 0x3ff0000010000000,
    0x3ff0000030000000, 0x40effc0000000000, 0x40efe00000000000, 0x3e60000000000000,
};

static const uint64_t halves[] = {
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x8001, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x0400, 0x8400, 0x03ff,
    0x3800, 0xbe00, 0x4100, 0x3c01, 0x3bff, 0x6400, 0x6800, 0x5bff, 0x5c00, 0xd800, 0x2e66, 0x4248, 0x1400, 0x1000,
};

static uint64_t random_state;

static const uint64_t brains[] = {
    0,      0x8000, 1,      0x8001, 2,      0x40,   0x7f,   0x80,   0x8080, 0x81,   0x0100, 0x2000, 0x3f00, 0x3f7f, 0x3f80, 0xbf80, 0x3f81,
    0xbf82, 0x3fc0, 0x4000, 0x4049, 0x42fe, 0x4300, 0x5f80, 0x7e80, 0x7f00, 0x7f7e, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7fff, 0xffc1,
};

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1d;
}

static const uint64_t *edges_of(enum type type, unsigned *n)
{
    static const uint64_t truth[] = {0, 1};

    switch (type) {
    case PRED:
        *n = 2;
        return truth;
    case F16:
        *n = sizeof halves / sizeof *halves;
        return halves;
    case BF16:
        *n = sizeof brains / sizeof *brains;
        return brains;
    case F32:
        *n = sizeof singles / sizeof *singles;
        return singles;
    case F64:
        *n = sizeof doubles / sizeof *doubles;
        return doubles;
    default:
        *n = sizeof integers / sizeof *integers;
        return integers;
    }
}

/* Integers of all lengths; floats of arbitrary bits, or with similar exponents, so that sums cancel and products round. */
static uint64_t random_value(enum type type)
{
    const uint64_t bits = random_bits();
    const unsigned style = (unsigned)(random_bits() % 4);

    if (type == PRED)
        return bits & 1;
    if (type == F32 && style)
        return (bits & 0x807fffff) | (uint64_t)(127 - 6 + (bits >> 40) % 12) << 23;
    if (type == F64 && style)
        return (bits & 0x800fffffffffffff) | (1023 - 6 + (random_bits() >> 40) % 12) << 52;
    if (type == F16 && style)
        return (bits & 0x83ff) | (15 - 4 + (bits >> 40) % 8) << 10;
    if (type == BF16 && style)
        return (bits & 0x807f) | (127 - 6 + (bits >> 40) % 12) << 7;
    return style ? bits >> (random_bits() % type_bits(type) + (64 - type_bits(type))) : bits;
}

/* A float next to the least or the greatest numbers, or of any size, whose fraction has a few bits, lacks a few, or is random; or next to `other`, of either
 * sign. */
static uint64_t extreme_value(enum type type, uint64_t other)
{
    const unsigned bits = type_bits(type), fraction_bits = type == F64 ? 52 : type == F32 ? 23 : type == F16 ? 10 : 7;
    const uint64_t all = (UINT64_C(1) << fraction_bits) - 1, last = ((UINT64_C(1) << (bits - 1)) - 1) >> fraction_bits;
    const uint64_t few = random_bits() % 8, any = random_bits() >> 20;
    const uint64_t exponents[] = {few / 2, last - 1 - few / 2, any % last},
                   fractions[] = {few, all - few, few << (fraction_bits - 3), any & all};
    const unsigned style = (unsigned)(random_bits() % 4);

    if (style == 3)
        return (other ^ (any & 1) << (bits - 1)) + few - 4;
    return (any >> 1 & 1) << (bits - 1) | exponents[style] << fraction_bits | fractions[random_bits() % 4];
}

static uint64_t from_interval(const struct row *row)
{
    const double part = (double)(random_bits() >> 11) / 9007199254740992.0;
    const double value = row->least + part * (row->greatest - row->least);

    return row->sources[0] == F64 ? bits_of_f64(value) : bits_of_f32((float)value);
}

static uint64_t cut(enum type type, uint64_t bits)
{
    return type_bits(type) >= 64 ? bits : bits & ((UINT64_C(1) << type_bits(type)) - 1);
}

/* The number of edge values for each source such that the number of all combinations stays below the limit. */
static unsigned edge_count(const struct row *row, unsigned counts[MAX_SOURCES])
{
    unsigned total = 1, greatest;

    for (unsigned i = 0; i < MAX_SOURCES; i++) {
        counts[i] = 1;
        if (row->sources[i] != NONE)
            edges_of(row->sources[i], &counts[i]);
        total *= counts[i];
    }
    while (total > MAX_EDGE_CASES) {
        greatest = 0;
        for (unsigned i = 1; i < MAX_SOURCES; i++)
            if (counts[i] > counts[greatest])
                greatest = i;
        total = total / counts[greatest] * (counts[greatest] - 1);
        counts[greatest]--;
    }
    return total;
}

static void fill_edge(const struct row *row, const unsigned counts[MAX_SOURCES], unsigned number, uint64_t *out)
{
    for (unsigned i = 0; i < MAX_SOURCES; i++) {
        unsigned n;

        if (row->sources[i] == NONE)
            continue;
        out[i] = cut(row->sources[i], edges_of(row->sources[i], &n)[number % counts[i]]);
        number /= counts[i];
    }
}

static void fill_random(const struct row *row, uint64_t *out)
{
    for (unsigned i = 0; i < MAX_SOURCES; i++)
        if (row->sources[i] != NONE)
            out[i] = cut(row->sources[i], random_value(row->sources[i]));
    if (row->least != row->greatest)
        out[0] = from_interval(row);
}

static void fill_extremes(const struct row *row, uint64_t *out)
{
    fill_random(row, out);
    for (unsigned i = 0; i < MAX_SOURCES; i++)
        if (type_is_float(row->sources[i]))
            out[i] = cut(row->sources[i], extreme_value(row->sources[i], out[0]));
}

/* For rows whose sources have one float type; the second and third source may have other types. */
static void fill_hard_operands(const struct row *row, unsigned number, uint64_t *out)
{
    uint64_t values[3];

    fill_random(row, out);
    make_hard_operands(row->sources[0], number, random_bits, values);
    for (unsigned i = 0; i < 3; i++)
        if (row->sources[i] == row->sources[0])
            out[i] = values[i];
}

static uint64_t *chosen_values(const struct row *row, unsigned *n_cases)
{
    unsigned counts[MAX_SOURCES];
    const unsigned edges = row->least != row->greatest ? 0 : edge_count(row, counts);
    const bool has_hard = (row->sources[0] == F32 || row->sources[0] == F64) && row->compare == EXACT;
    const bool has_extremes = type_is_float(row->sources[0]) && row->compare == EXACT && row->least == row->greatest;
    const unsigned n_hard = has_hard ? random_cases / 2 * 3 : 0, n_extremes = has_extremes ? random_cases / 2 : 0;
    const size_t n = (size_t)edges + random_cases + n_hard + n_extremes;
    uint64_t *operands = calloc(n, MAX_SOURCES * sizeof *operands);

    *n_cases = 0;
    if (!operands)
        return NULL;
    random_state = 0x9e3779b97f4a7c15;
    for (unsigned i = 0; i < edges; i++)
        fill_edge(row, counts, i, operands + (size_t)i * MAX_SOURCES);
    for (unsigned i = 0; i < random_cases; i++)
        fill_random(row, operands + (size_t)(edges + i) * MAX_SOURCES);
    for (unsigned i = 0; i < n_hard; i++)
        fill_hard_operands(row, i, operands + (size_t)(edges + random_cases + i) * MAX_SOURCES);
    for (unsigned i = 0; i < n_extremes; i++)
        fill_extremes(row, operands + (n - n_extremes + i) * MAX_SOURCES);
    *n_cases = (unsigned)n;
    return operands;
}

/* Every value of a 16-bit source. */
static uint64_t *every_value(unsigned *n_cases)
{
    uint64_t *operands = calloc(65536, MAX_SOURCES * sizeof *operands);

    *n_cases = operands ? 65536 : 0;
    for (unsigned i = 0; i < *n_cases; i++)
        operands[(size_t)i * MAX_SOURCES] = i;
    return operands;
}

uint64_t *operands_create(const struct row *row, unsigned *n_cases)
{
    if (row->compare == EVERY || row->compare == EVERY_HALVES)
        return every_value(n_cases);
    return chosen_values(row, n_cases);
}
