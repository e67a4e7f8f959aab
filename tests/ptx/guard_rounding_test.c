/* SPDX-License-Identifier: Apache-2.0 */
/* guard, on a target whose fused multiply-add does not round once: sums in f64 narrowed to f32 must give the bits of the host's fmaf. Most
 * operands are such that the f64 sum is inexact and half-way between two f32, so that the second rounding matters. */
#include "ir_machine.h"
#include "ptx2spv/ir/builder.h"
#include "ptx2spv/passes/simplify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#ifdef SANITIZED
enum { N_KERNELS = 500 };
#else
enum { N_KERNELS = 2000 };
#endif
enum { FFMAS = 48 };
#define SEED UINT64_C(0x9e3779b97f4a7c15)

static const struct ptx2spv_target target = {.float64 = 1, .keeps_subnormals32 = 1, .exact_zeros = 1};

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float random_sign(uint64_t *random, float x)
{
    return random_below(random, 2) ? x : -x;
}

/* A number between 1 and 2. */
static float random_fraction(uint64_t *random)
{
    static const uint32_t fractions[] = {0, 1, 2, 0x400000, 0x7fffff, 0x7ffffe};
    const uint32_t fraction = random_below(random, 2) ? fractions[random_below(random, 6)] : random_below(random, 0x800000);

    return 1 + (float)fraction * 0x1p-23f;
}

/* a * b is 2^power - i^2 * 2^(power - 46): half a unit in the last place of c, but for the term that the f64 sum loses. */
static void make_half(uint64_t *random, int power, float x[3])
{
    const float i = (float)random_below(random, 4) * 0x1p-23f;

    x[0] = random_sign(random, ldexpf(1 + i, power / 2));
    x[1] = random_sign(random, ldexpf(1 - i, power - power / 2));
}

static void make_ordinary(uint64_t *random, float x[3])
{
    for (int i = 0; i < 3; i++)
        x[i] = random_sign(random, ldexpf(1 + (float)random_below(random, 0x800000) * 0x1p-23f, (int)random_below(random, 8)));
}

static void make_critical(uint64_t *random, float x[3])
{
    static const uint32_t subnormals[] = {0x800000, 0x800000, 0x7fffff, 64};
    const int power = (int)random_below(random, 120) - 60;

    switch (random_below(random, 6)) {
    case 0: /* c is normal */
        x[2] = random_sign(random, ldexpf(random_fraction(random), power));
        make_half(random, power - 24, x);
        return;
    case 1: /* c is subnormal or the least normal number, also with few bits and near that number */
        x[2] = random_sign(random, (float)(subnormals[random_below(random, 4)] - random_below(random, 64)) * 0x1p-149f);
        make_half(random, -150, x);
        return;
    case 2: /* the sum is where infinity begins */
        x[2] = random_sign(random, FLT_MAX);
        make_half(random, 103, x);
        return;
    case 3: /* the product has 25 bits, and c is small */
        x[0] = random_sign(random, ldexpf((float)(random_below(random, 0x400000) * 2 + 0x800001), power));
        x[1] = 1.5f;
        x[2] = random_sign(random, ldexpf(random_fraction(random), power - 40 - (int)random_below(random, 60)));
        return;
    case 4: /* exact sums with few bits, and zeros */
        for (int i = 0; i < 3; i++)
            x[i] = random_sign(random, (float)random_below(random, 4));
        return;
    default:
        for (int i = 0; i < 3; i++)
            x[i] = random_sign(random, random_below(random, 50) ? ldexpf(random_fraction(random), power) : INFINITY);
    }
}

static float rounded_twice(const float x[3])
{
    return (float)((double)x[0] * x[1] + x[2]);
}

static ct_value fused(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    const ct_value r = ct_emit3(at, CT_OP_FFMA, PTX_F32, CT_W_32, a, b, c);

    at->fn->values.v[r.i].def->guarded = true;
    return r;
}

/* FFMAs of constants and of earlier results, with side effects that end segments between some. The number of FFMAs of constants for which
 * two roundings are wrong. */
static unsigned build(struct bench *bench, uint64_t *random)
{
    struct ct_cursor at = {.fn = bench->fn, .block = ct_block_create(bench->fn)};
    const bool depend = random_below(random, 2), few = random_below(random, 2);
    ct_value earlier = ct_const32(&at, 0);
    unsigned n_wrong = 0;

    bench->fn->target = &target;
    for (unsigned i = 0; i < FFMAS; i++) {
        float x[3];
        ct_value v[3];

        if (random_below(random, few ? FFMAS : 2)) /* one critical FFMA has a segment recomputed */
            make_ordinary(random, x);
        else
            make_critical(random, x);
        for (int k = 0; k < 3; k++)
            v[k] = ct_const32(&at, bits_of(x[k]));
        n_wrong += bits_of(rounded_twice(x)) != bits_of(fmaf(x[0], x[1], x[2])) && !isnan(rounded_twice(x));
        if (depend && random_below(random, 4) == 0)
            v[random_below(random, 3)] = earlier;
        earlier = fused(&at, v[0], v[1], v[2]);
        if (random_below(random, 4))
            emit_event(&at, i, earlier);
    }
    emit_event(&at, FFMAS, earlier);
    ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
    return n_wrong;
}

static void run_pass(struct bench *bench, const char *name, enum ct_pass_result (*pass)(struct ct_fn *fn), uint32_t gives)
{
    if (bench->fn->props & CT_PROP_SSA)
        ct_fn_compute_defs(bench->fn);
    assert_int_not_equal(pass(bench->fn), CT_PASS_FAILED);
    bench->fn->props |= gives;
    bench->fn->last_pass = name;
    if (!ct_fn_verify(bench->fn))
        fail_msg("after %s: %s\n%s", name, bench->diagnostics, ct_fn_dump(bench->fn, &bench->compilation.arena));
    ct_arena_reset(&bench->compilation.scratch);
}

static bool has_ffma(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_FFMA)
                return true;
    return false;
}

static void test_results_are_rounded_once(void **state)
{
    uint64_t random = SEED;
    unsigned n_wrong = 0;

    (void)state;
    for (int i = 0; i < N_KERNELS; i++) {
        static struct trace wanted, found;
        struct bench bench;

        bench_init(&bench);
        n_wrong += build(&bench, &random);
        run_ir(bench.fn, &wanted); /* by the host's fmaf */
        run_pass(&bench, "make_reducible", ct_pass_make_reducible, CT_PROP_REDUCIBLE);
        run_pass(&bench, "ssa", ct_pass_ssa, CT_PROP_SSA);
        run_pass(&bench, "guard", ct_pass_guard, 0);
        assert_false(has_ffma(bench.fn));
        run_ir(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        run_pass(&bench, "cleanup", ct_pass_cleanup, 0);
        run_ir(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        bench_finish(&bench);
    }
    assert_in_range(n_wrong, N_KERNELS * FFMAS / 40, N_KERNELS * FFMAS); /* else the test proves nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results_are_rounded_once)};

    if (setjmp(bench_exhausted))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
