/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that are hard to round: cases in which sequences of roundings go wrong and which random operands hardly ever contain. They suit
 * additions, products, fused operations, quotients and roots alike, since every row gets all of them. */
#include "harness.h"

#include <math.h>

/* f32 and f64, both represented as f64: bits of precision, exponents of the least normal number and of the greatest number. */
struct format {
    int precision, least, greatest;
};

static const struct format single_format = {24, -126, 127}, double_format = {53, -1022, 1023};

static double rounded(enum type type, double value)
{
    return type == F32 ? (float)value : value;
}

/* A number between 1 and 2 with `bits` random bits, or its negation. */
static double random_significand(int bits, uint64_t (*next)(void))
{
    const uint64_t fraction = next() >> (65 - bits); /* bits - 1 random bits */

    return (next() & 1 ? -1 : 1) * (1 + ldexp((double)fraction, 1 - bits));
}

static int between(int least, int greatest, uint64_t (*next)(void))
{
    return least + (int)(next() % (unsigned)(greatest - least + 1));
}

/* Half a unit in the last place of x in the format. */
static double half_place(const struct format *f, double x)
{
    int exponent;

    frexp(x, &exponent);
    return ldexp(1, exponent - f->precision - 1);
}

/* Few bits: products and sums that are ties, or end just behind the last place. */
static void make_ties(const struct format *f, enum type type, uint64_t (*next)(void), double x[3])
{
    x[0] = random_significand(f->precision / 2 + 1, next);
    x[1] = ldexp(random_significand(f->precision / 2 + 1, next), between(-2, 2, next));
    x[2] = ldexp(random_significand(3, next), between(-f->precision - 2, 3, next));
    x[0] = rounded(type, x[0]);
}

/* The result of the cancellation is the rounding error of the product, or a few units in the last place of a sum. */
static void make_cancellation(const struct format *f, enum type type, uint64_t (*next)(void), double x[3])
{
    const int shift = between(0, 1, next) ? between(f->least / 2 - 12, f->least / 2 + 26, next) : 0; /* error near the least number */

    x[0] = ldexp(random_significand(f->precision, next), shift);
    x[1] = ldexp(random_significand(f->precision, next), shift);
    x[2] = -rounded(type, x[0] * x[1]);
    if (next() & 1)
        x[1] = -x[0] * (1 + 2 * half_place(f, 1) * between(-2, 2, next));
}

/* Products, quotients and sums near the least normal number and below it. */
static void make_tiny(const struct format *f, enum type type, uint64_t (*next)(void), double x[3])
{
    const int sum = between(f->least - f->precision - 2, f->least + 2, next), part = between(f->least, f->greatest / 2, next);
    const int rest = sum - part > f->greatest ? f->greatest : sum - part;

    x[0] = ldexp(random_significand(next() & 1 ? f->precision : 6, next), part);
    x[1] = ldexp(random_significand(next() & 1 ? f->precision : 6, next), next() & 1 ? rest : -rest);
    x[2] = ldexp(random_significand(next() & 1 ? f->precision : 2, next), between(f->least - f->precision, f->least + 2, next));
    for (int i = 0; i < 3; i++)
        x[i] = rounded(type, x[i]);
}

/* Near the greatest number, where one rounding mode overflows and the others do not. */
static void make_great(const struct format *f, enum type type, uint64_t (*next)(void), double x[3])
{
    const int part = between(0, f->greatest, next);

    x[0] = ldexp(random_significand(next() & 1 ? f->precision : 3, next), part);
    x[1] = ldexp(random_significand(next() & 1 ? f->precision : 3, next), f->greatest - part - between(0, 1, next));
    x[2] = ldexp(random_significand(4, next), f->greatest - between(0, f->precision + 1, next));
    for (int i = 0; i < 3; i++)
        x[i] = rounded(type, x[i]);
}

/* x0 / x1 is next to the midpoint between two numbers. */
static void make_hard_quotient(const struct format *f, enum type type, uint64_t (*next)(void), double x[3])
{
    const double q = random_significand(f->precision, next), b = random_significand(f->precision, next);
    const int shift = next() & 1 ? 0 : between(f->least / 2, f->greatest / 2 - 2, next);

    x[0] = ldexp(rounded(type, fma(q, b, b * half_place(f, q))), shift);
    x[1] = ldexp(b, next() & 1 ? shift : 0);
    x[2] = x[0];
}

/* The root of x0 is next to the midpoint between two numbers. */
static void make_hard_root(const struct format *f, enum type type, uint64_t (*next)(void), double x[3])
{
    const double root = fabs(random_significand(f->precision, next)) * (next() & 1 ? 1 : sqrt(0.5));
    const double r = rounded(type, root);

    x[0] = ldexp(rounded(type, fma(r, r, 2 * r * half_place(f, r))), 2 * between(f->least / 2, f->greatest / 2 - 2, next));
    x[1] = r;
    x[2] = -x[0];
}

/* x0 is next to a power of two; x1 is one of the few significands whose inverses are next to the midpoint between two numbers; x2 is a
 * square or next to one. */
static void make_rare_root(const struct format *f, enum type type, uint64_t (*next)(void), double x[3])
{
    static const double divisors[] = {0x1.fffffffffffffp0, 0x1.ffffffffffffdp0, /* divisors of 2^106 - 1, of 2^106 - 9 */
                                      0x1.024a3bd98da02p0, 0x1.0699d36aec84ep0, 0x1.34d8fe343ef42p0, 0x1.63baaac17d1e2p0, /* of 2^106 - 2 */
                                      0x1.7641c46f799eep0, 0x1.bea3278b789d2p0, 0x1.e756f08df1792p0, 0x1.ef7930608393ep0};
    static const double squares[] = {0x1.d407bb3641da5p0, 0x1.5b95344972fe2p1, 0x1.2b035c1197f48p0}; /* roots next to a midpoint */
    const bool all_ones = type == F32 && next() & 1; /* which no divisor is that is rounded to f32 */
    const double significand = all_ones ? 0x1.fffffep0 : divisors[next() % (sizeof divisors / sizeof *divisors)];
    const double sign = next() & 1 ? -1 : 1;
    const double root = random_significand(f->precision / 2, next);

    x[0] = ldexp(1 + between(-4, 4, next) * 2 * half_place(f, 1), between(f->least - 3, f->greatest - 1, next));
    x[1] = sign * ldexp(significand, between(f->least, f->greatest, next));
    x[2] = ldexp(root * root * (1 + between(-1, 1, next) * 2 * half_place(f, 1)), 2 * between(f->least / 2, f->greatest / 2 - 1, next));
    if (next() % 4 == 0)
        x[0] = significand * significand * (1 + between(-1, 1, next) * half_place(f, 1));
    if (next() % 8 == 0)
        x[2] = ldexp(squares[next() % 3], 2 * between(f->least / 2, f->greatest / 2 - 1, next));
    for (int i = 0; i < 3; i++)
        x[i] = rounded(type, x[i]);
}

void make_hard_operands(enum type type, unsigned number, uint64_t (*next)(void), uint64_t *out)
{
    static void (*const makers[])(const struct format *, enum type, uint64_t (*)(void), double *) = {
        make_ties, make_cancellation, make_tiny, make_great, make_hard_quotient, make_hard_root, make_rare_root};
    double x[3];

    makers[number % (sizeof makers / sizeof *makers)](type == F32 ? &single_format : &double_format, type, next, x);
    for (unsigned i = 0; i < 3; i++)
        out[i] = type == F32 ? bits_of_f32((float)x[i]) : bits_of_f64(x[i]);
}
