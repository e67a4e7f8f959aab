/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges of guard_ranges.c contain the host's results, and multiply-adds that it declares unaffected give the same result with
 * flushing: random f32, mostly near the exponents where the rules apply, in ranges that contain them more or less tightly. */
#include "ptx2spv/exact/guard_ranges.h"
#include "../float_bits.h"
#include "ir_machine.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef SANITIZED
enum { N_CASES = 100000 };
#else
enum { N_CASES = 400000 };
#endif
#define SEED UINT64_C(0x9e3779b97f4a7c15)

/* ---- numbers ---- */

/* About 2^power, and mostly a power of two or a neighbour of one. */
static float near_power(uint64_t *random, int power)
{
    static const uint32_t fractions[] = {0, 0, 1, 2, 0x400000, 0x7fffff, 0x7ffffe};
    const uint32_t fraction = random_below(random, 3) ? fractions[random_below(random, 7)] : random_below(random, 0x800000);
    const float x = ldexpf(1.0f + (float)fraction * 0x1p-23f, power);

    return random_below(random, 2) ? x : -x;
}

static float any_number(uint64_t *random)
{
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, 0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f, 0x1.fffffep127f};

    if (random_below(random, 8) == 0)
        return special[random_below(random, 10)];
    return near_power(random, (int)random_below(random, 277) - 149);
}

/* a * b + c at a limit: of absorption, of the product's range, of cancellation. */
static void pick_operands(uint64_t *random, float x[3])
{
    const int power = (int)random_below(random, 20) - 84;

    for (int i = 0; i < 3; i++)
        x[i] = any_number(random);
    switch (random_below(random, 6)) {
    case 0: /* a subnormal, or a number near one, times a number near the limit */
        x[0] = near_power(random, (int)random_below(random, 4) - 128);
        x[1] = near_power(random, power + 100 + (int)random_below(random, 4));
        x[2] = near_power(random, power);
        break;
    case 1: /* a product that is almost cancelled */
        x[0] = near_power(random, power / 2 + (int)random_below(random, 40) - 20);
        x[1] = near_power(random, power - power / 2);
        x[2] = -(x[0] * x[1]);
        break;
    case 2: /* a small product */
        x[0] = near_power(random, -(int)random_below(random, 127));
        x[1] = near_power(random, -126 - ilogbf(x[0]) + (int)random_below(random, 4) - 2);
        x[2] = random_below(random, 2) ? 0.0f : near_power(random, -120 - (int)random_below(random, 30));
        break;
    case 3: /* a square */
        x[1] = x[0];
        break;
    }
}

/* ---- ranges ---- */

static bool is_multiple(float x, int quantum)
{
    const double places = ldexp(x, -quantum);

    return places == rint(places);
}

static bool holds(struct ct_range range, float x)
{
    if (isnan(x))
        return !range.number;
    if (x == 0)
        return !range.nonzero;
    if (range.nonnegative && x < 0)
        return false;
    if (isinf(x))
        return range.most == CT_POWER_ANY;
    return fabsf(x) >= ldexp(1, range.least) && (range.most == CT_POWER_ANY || fabsf(x) <= ldexp(1, range.most)) &&
           is_multiple(x, range.quantum);
}

static int16_t moved(uint64_t *random, int power, int by)
{
    static const uint8_t steps[] = {0, 0, 0, 0, 1, 2, 23, 24, 60};

    return (int16_t)(power + by * steps[random_below(random, sizeof steps)]);
}

/* A range that contains x. */
static struct ct_range loosened(uint64_t *random, float x)
{
    struct ct_range range = ct_range_of_constant((uint32_t)bits_of_f32(x));

    assert_true(holds(range, x));
    range.least = moved(random, range.least, -1);
    range.most = moved(random, range.most, 1);
    range.quantum = moved(random, range.quantum, -1);
    range.least = range.least < CT_POWER_LEAST ? CT_POWER_LEAST : range.least;
    range.quantum = range.quantum < CT_POWER_LEAST ? CT_POWER_LEAST : range.quantum;
    range.most = range.most > CT_POWER_ANY ? CT_POWER_ANY : range.most;
    range.nonzero &= random_below(random, 2);
    range.nonnegative &= random_below(random, 2);
    range.number &= random_below(random, 4) != 0;
    if (random_below(random, 4) == 0)
        range = ct_range_joined(range, ct_range_of_constant((uint32_t)bits_of_f32(any_number(random))));
    assert_true(holds(range, x));
    return range;
}

/* Operands and their ranges. Returns whether the first two are the same value. */
static bool pick_case(uint64_t *random, float x[3], struct ct_range r[3])
{
    bool same;

    pick_operands(random, x);
    for (int i = 0; i < 3; i++)
        r[i] = loosened(random, x[i]);
    same = bits_of_f32(x[0]) == bits_of_f32(x[1]) && random_below(random, 2);
    if (same)
        r[1] = r[0];
    return same;
}

static void check(const char *what, struct ct_range range, float result, const float *x)
{
    if (!holds(range, result))
        fail_msg("%s of %a %a %a: %a is not in [2^%d, 2^%d], multiples of 2^%d%s%s%s", what, x[0], x[1], x[2], result, range.least,
                 range.most, range.quantum, range.nonzero ? ", not 0" : "", range.nonnegative ? ", not negative" : "",
                 range.number ? ", a number" : "");
}

static void test_results_are_in_their_ranges(void **state)
{
    uint64_t random = SEED;

    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        struct ct_range r[3];
        float x[3];
        const bool same = pick_case(&random, x, r);

        check("sum", ct_range_of_sum(r[0], r[1]), x[0] + x[1], x);
        check("difference", ct_range_of_difference(r[0], r[1]), x[0] - x[1], x);
        check("product", ct_range_of_product(r[0], r[1], same), x[0] * x[1], x);
        check("quotient", ct_range_of_quotient(r[0], r[1]), x[0] / x[1], x);
        check("multiply-add", ct_range_of_fused(r[0], r[1], r[2], same), fmaf(x[0], x[1], x[2]), x);
        check("negative", ct_range_of_negative(r[0]), -x[0], x);
        check("magnitude", ct_range_of_magnitude(r[0]), fabsf(x[0]), x);
        check("choice", ct_range_joined(r[0], r[1]), x[i % 2], x);
        if (fabsf(x[0]) >= 0x1p-126f || isnan(x[0]) || x[0] == 0) /* with the error that the device's result may have */
            check("inverse root", ct_range_of_inverse_root(r[0]), (1 / sqrtf(x[0])) * (i % 2 ? 0x1.000004p0f : 0x1.fffff8p-1f), x);
    }
}

/* Many cases must be unaffected, and many of the others must be changed by flushing, or the test proves nothing. */
static void test_unaffected_results_are_not_changed(void **state)
{
    uint64_t random = SEED;
    unsigned n_unaffected = 0, n_changed = 0;

    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        struct ct_range r[3];
        float x[3], wanted, found;
        const bool same = pick_case(&random, x, r);

        wanted = fmaf(x[0], x[1], x[2]);
        found = flushing_fma(x[0], x[1], x[2]);
        n_changed += !isnan(wanted) && bits_of_f32(wanted) != bits_of_f32(found);
        if (!ct_fused_is_unaffected(r[0], r[1], r[2], same))
            continue;
        n_unaffected++;
        if (isnan(wanted) ? !isnan(found) : bits_of_f32(wanted) != bits_of_f32(found))
            fail_msg("%a * %a + %a: %a, flushing %a", x[0], x[1], x[2], wanted, found);
    }
    assert_in_range(n_unaffected, N_CASES / 10, N_CASES);
    assert_in_range(n_changed, N_CASES / 20, N_CASES);
}

/* Each rule holds up to its limit, and an example one step beyond is changed by flushing: the rule cannot be extended there. */
static void test_edges(void **state)
{
    const struct ct_range addend = {.least = -78, .most = CT_POWER_ANY, .quantum = -101, .nonzero = true};
    struct ct_range small = ct_range_any(), large = ct_range_between(-126, 23);

    (void)state;
    assert_true(ct_fused_is_unaffected(small, large, addend, false));
    assert_true(flushing_fma(0x1.fffffcp-127f, 0x1p23f, 0x1p-78f) == fmaf(0x1.fffffcp-127f, 0x1p23f, 0x1p-78f));
    large.most = 24;
    assert_false(ct_fused_is_unaffected(small, large, addend, false));
    assert_false(flushing_fma(-0x1.fffffcp-127f, 0x1p24f, 0x1p-78f) == fmaf(-0x1.fffffcp-127f, 0x1p24f, 0x1p-78f));
    assert_true(ct_fused_is_unaffected(small, small, addend, true)); /* squares need no bound */
    assert_false(ct_fused_is_unaffected(small, small, addend, false));
    assert_true(ct_fused_is_unaffected(ct_range_between(-40, CT_POWER_ANY), ct_range_between(-40, CT_POWER_ANY),
                                       ct_range_between(-103, CT_POWER_ANY), false));
    assert_false(ct_fused_is_unaffected(ct_range_between(-41, CT_POWER_ANY), ct_range_between(-40, CT_POWER_ANY),
                                        ct_range_between(-103, CT_POWER_ANY), false));
    assert_false(ct_fused_is_unaffected(ct_range_between(-40, 3), ct_range_between(-40, 3), ct_range_between(-104, 3), false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results_are_in_their_ranges),
                                       cmocka_unit_test(test_unaffected_results_are_not_changed), cmocka_unit_test(test_edges)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
