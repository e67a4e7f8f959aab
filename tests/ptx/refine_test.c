/* SPDX-License-Identifier: Apache-2.0 */
/* refine, on a machine whose inverse roots have errors of up to two units in the last place: f64 roots and inverses of them have the
 * host's bits, for all operands that the proof in refine_root.c leaves open and for random ones, and so has the straight-line code
 * around them. f32 quotients, with errors of up to three units, roots, and f64 multiply-adds without a fused operation have the host's bits
 * as well. f32 comparisons and inverse roots handle subnormals on a machine whose own do not. */
#include "ir_machine.h"
#include "../float_bits.h"
#include "ptx2spv/exact/lower.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

enum { MAX_ULPS = 2, N_KERNELS = 400 };
#define SEED UINT64_C(0x9e3779b97f4a7c15)
#define TWO_106 ((unsigned __int128)1 << 106)

static const struct ptx2spv_target target = {.float64 = 1, .exact_fma64 = 1, .exact_sqrt64 = 1, .exact_div64 = 1, .refined_roots64 = 1};

/* ---- kernels ---- */

static ct_value marked(struct ct_cursor *at, ct_value x)
{
    at->fn->values.v[x.i].def->refined = true;
    return x;
}

static ct_value root(struct ct_cursor *at, ct_value x)
{
    return marked(at, ct_op1(at, CT_OP_FSQRT, PTX_F64, x));
}

static ct_value inverse(struct ct_cursor *at, ct_value x)
{
    return marked(at, ct_op2(at, CT_OP_FDIV, PTX_F64, ct_const64(at, bits_of_f64(1.0)), x));
}

static void refine(struct bench *bench)
{
    bench->fn->props |= CT_PROP_CALLS_INLINED | CT_PROP_REDUCIBLE | CT_PROP_SSA | CT_PROP_LOWERED;
    ct_fn_compute_defs(bench->fn);
    assert_int_equal(ct_pass_refine(bench->fn), CT_PASS_CHANGED);
    bench->fn->last_pass = "refine";
    if (!ct_fn_verify(bench->fn))
        fail_msg("%s\n%s", bench->diagnostics, ct_fn_dump(bench->fn, &bench->compilation.arena));
    ct_arena_reset(&bench->compilation.scratch);
}

static struct ct_cursor begin(struct bench *bench, const struct ptx2spv_target *on)
{
    bench_init(bench);
    bench->fn->target = on;
    return (struct ct_cursor){.fn = bench->fn, .block = ct_block_create(bench->fn)};
}

/* ---- f64: single operands ---- */

/* For any estimate, and without the driver's own operations where they must not be used. */
static void assert_root_and_inverse(double a)
{
    struct bench bench;
    struct ct_cursor at = begin(&bench, &target);
    const ct_value x = root(&at, ct_const64(&at, bits_of_f64(a)));
    static struct trace found;

    emit_event(&at, 0, inverse(&at, ct_copy(&at, x)));
    emit_event(&at, 1, x);
    ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
    refine(&bench);
    for (int ulps = -MAX_ULPS; ulps <= MAX_ULPS; ulps++) {
        const double want[] = {1 / sqrt(a), sqrt(a)};

        run_ir_estimating(bench.fn, ulps, &found);
        assert_int_equal(found.n, 2);
        for (unsigned i = 0; i < 2; i++)
            if (found.events[i].value != bits_of_f64(want[i]) && !isnan(want[i]))
                fail_msg("%s of %a: %a, not %a; estimates %d ulps off", i ? "root" : "inverse root", a, f64_of(found.events[i].value),
                         want[i], ulps);
    }
    bench_finish(&bench);
}

/* For all magnitudes except those that use the driver's operations. */
static void assert_scaled(double a)
{
    static const int exponents[] = {0, -900, -300, 300, 996};

    for (unsigned i = 0; i < sizeof exponents / sizeof *exponents; i++)
        assert_root_and_inverse(ldexp(a, exponents[i]));
}

static void test_simple_and_rare_operands(void **state)
{
    static const double operands[] = {0.0,
                                      -0.0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      0.25,
                                      -1,
                                      INFINITY,
                                      -INFINITY,
                                      NAN,
                                      0x1p-1074,
                                      0x3p-1074,
                                      0x1p-1022,
                                      0x1p-1000,
                                      0x1p-901,
                                      0x1.fffffffffffffp-901,
                                      0x1p-900,
                                      0x1.fffffffffffffp999,
                                      0x1p1000,
                                      0x1.fffffffffffffp1023};

    (void)state;
    for (unsigned i = 0; i < sizeof operands / sizeof *operands; i++)
        assert_root_and_inverse(operands[i]);
    for (int i = -20; i <= 20; i++) {
        assert_scaled(f64_of(bits_of_f64(1.0) + (uint64_t)(int64_t)i));
        assert_scaled(f64_of(bits_of_f64(2.0) + (uint64_t)(int64_t)i));
    }
}

/* Of every exponent, with most of them near the ends of the range. */
static void test_random_operands(void **state)
{
    uint64_t random = SEED;

    (void)state;
    for (uint64_t exponent = 0; exponent < 2047; exponent++)
        for (int i = exponent < 150 || exponent > 2000 ? 8 : 1; i; i--)
            assert_root_and_inverse(
                f64_of(exponent << 52 | (uint64_t)random_below(&random, 1 << 20) << 32 | random_below(&random, UINT32_MAX)));
}

/* All N < 2^bits with N * N = -j modulo 2^bits, for j 7 more than a multiple of 8: there are four. */
static unsigned find_midpoints(int j, unsigned bits, uint64_t found[4])
{
    uint64_t now[8] = {1, 3, 5, 7};
    unsigned n = 4;

    for (unsigned b = 4; b <= bits; b++) {
        const uint64_t modulus = UINT64_C(1) << b;
        uint64_t next[8];
        unsigned n_next = 0;

        for (unsigned i = 0; i < 2 * n; i++) {
            const uint64_t candidate = now[i / 2] + (i % 2) * (modulus / 2);

            if (((candidate * candidate + (uint64_t)(int64_t)j) & (modulus - 1)) == 0)
                next[n_next++] = candidate;
        }
        memcpy(now, next, sizeof now);
        n = n_next;
        assert_in_range(n, 1, 4);
    }
    memcpy(found, now, n * sizeof *now);
    return n;
}

/* Operands from 1 to 2, or 2 to 4, whose roots have the distance j * 2^-107 / root from the midpoint N * 2^-53 between two numbers. */
static unsigned try_midpoints(int j, unsigned bits)
{
    uint64_t found[4];
    const unsigned n = find_midpoints(j, bits, found);
    unsigned n_tried = 0;

    for (unsigned i = 0; i < n; i++) {
        const uint64_t middle = found[i];
        const __int128 operand = ((__int128)middle * middle + j) >> bits;

        if (middle < UINT64_C(1) << 53 || middle >= UINT64_C(1) << 54 || operand < (__int128)1 << 52 || operand >= (__int128)1 << 53)
            continue;
        assert_scaled(ldexp((double)operand, bits == 54 ? -52 : -51));
        n_tried++;
    }
    return n_tried;
}

static void test_roots_next_to_middles(void **state)
{
    unsigned n = 0;

    (void)state;
    for (int j = -57; j < 64; j += 8)
        n += try_midpoints(j, 54) + try_midpoints(j, 55);
    assert_int_equal(n, 24);
}

/* Operands whose root b is `significand` * 2^-52. */
static unsigned try_root(uint64_t significand)
{
    const double b = ldexp((double)significand, -52);
    unsigned n = 0;

    for (int i = -6; i <= 6; i++) {
        const double a = f64_of(bits_of_f64(b * b) + (uint64_t)(int64_t)i);

        if (sqrt(a) != b)
            continue;
        assert_scaled(a);
        n++;
    }
    return n;
}

/* Divisors of 2^106 - j from 2^52 to 2^53, built from the remaining prime factors. */
static unsigned try_divisors(const uint64_t *primes, unsigned n, int j, unsigned __int128 divisor)
{
    const unsigned __int128 other = (TWO_106 - (unsigned)j) / divisor;

    if (n)
        return try_divisors(primes + 1, n - 1, j, divisor) + try_divisors(primes + 1, n - 1, j, divisor * primes[0]);
    if (divisor < (uint64_t)1 << 52 || divisor >= (uint64_t)1 << 53 || !(other & 1))
        return 0;
    assert_true(divisor * other == TWO_106 - (unsigned)j);
    return try_root((uint64_t)divisor);
}

static void test_inverses_next_to_middles(void **state)
{
    static const uint64_t one[] = {3, 107, 6361, 69431, 20394401, 28059810762433};
    static const uint64_t two[] = {2, 7, 7, 31, 71, 127, 151, 337, 29191, 106681, 122921, 152041};

    (void)state;
    assert_int_equal(try_divisors(one, sizeof one / sizeof *one, 1, 1), 2);
    assert_in_range(try_divisors(two, sizeof two / sizeof *two, 2, 1), 40, 100);
}

/* ---- f64: straight-line code ---- */

static double random_double(uint64_t *random)
{
    static const int exponents[] = {-1074, -1022, -960, -900, -500, -1, 0, 1, 400, 999, 1000, 1023};
    const double significand = 1 + ldexp(random_below(random, UINT32_MAX), -32) + ldexp(random_below(random, 1 << 20), -52);

    if (random_below(random, 4) == 0)
        return ldexp(significand, exponents[random_below(random, sizeof exponents / sizeof *exponents)]);
    return random_below(random, 40) ? ldexp(significand, (int)random_below(random, 40) - 20) : 0;
}

static ct_value random_operation(struct ct_cursor *at, uint64_t *random, const ct_value *values, uint32_t n)
{
    const ct_value a = values[n - 1 - random_below(random, n < 8 ? n : 8)], b = values[random_below(random, n)];

    switch (random_below(random, 8)) {
    case 0:
    case 1:
    case 2:
        return root(at, a);
    case 3:
    case 4:
        return inverse(at, random_below(random, 2) ? ct_copy(at, a) : a);
    case 5:
        return ct_op2(at, CT_OP_FADD, PTX_F64, a, b);
    case 6:
        return ct_select(at, ct_fcmp(at, PTX_F64, PTX_LT, a, b), a, b);
    default:
        return ct_op2(at, CT_OP_FMUL, PTX_F64, a, b);
    }
}

static void build_straight(struct ct_cursor *at, uint64_t *random)
{
    ct_value values[64];
    uint32_t n = 0;

    while (n < 6)
        values[n++] = ct_const64(at, bits_of_f64(random_double(random)));
    values[n++] = root(at, values[0]); /* so that there is something to refine */
    while (n < 64) {
        values[n] = random_operation(at, random, values, n);
        if (random_below(random, 4) == 0)
            emit_event(at, n, values[random_below(random, n + 1)]);
        n++;
    }
    for (n = 0; n < 64; n++)
        emit_event(at, 1000 + n, values[n]);
    ct_emit_insn(at, CT_OP_RET, PTX_NONE, 0, 0);
}

static void test_straight_code(void **state)
{
    uint64_t random = SEED;

    (void)state;
    for (int i = 0; i < N_KERNELS; i++) {
        static struct trace wanted, found;
        struct bench bench;
        struct ct_cursor at = begin(&bench, &target);

        build_straight(&at, &random);
        run_ir(bench.fn, &wanted);
        refine(&bench);
        run_ir(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        bench_finish(&bench);
    }
}

/* ---- f32 ---- */

static const struct ptx2spv_target flushing = {.float64 = 1, .exact_fma32 = 1, .fma32_flushes = 1};

static uint32_t random_single(uint64_t *random)
{
    static const uint32_t edges[] = {0, 1, 0x400000, 0x7fffff, 0x800000, 0x800001, 0x1000000, 0x3f800000, 0x7f7fffff, 0x7f800000};

    return random_below(random, 2) << 31 | (random_below(random, 4) ? edges[random_below(random, 10)] : random_below(random, 0x7f800000));
}

/* Sums, sums of squares and constants, of numbers that are unknown at compile time. */
static ct_value random_term(struct ct_cursor *at, uint64_t *random)
{
    const ct_value a = ct_bits2(at, CT_OP_XOR, ct_const32(at, 0), ct_const32(at, random_single(random)));
    const ct_value b = ct_bits2(at, CT_OP_XOR, ct_const32(at, 0), ct_const32(at, random_single(random)));
    const ct_value square = ct_op2(at, CT_OP_FMUL, PTX_F32, a, a);

    switch (random_below(random, 6)) {
    case 0:
        return ct_const32(at, random_single(random));
    case 1:
        return ct_op2(at, CT_OP_FADD, PTX_F32, a, b);
    case 2:
        return ct_op2(at, CT_OP_FADD, PTX_F32, square, ct_const32(at, random_single(random)));
    case 3:
        return ct_op2(at, CT_OP_FADD, PTX_F32, square, ct_op1(at, CT_OP_FABS, PTX_F32, b));
    case 4:
        return ct_and_imm(at, a, 0x7fffffff);
    default:
        return a;
    }
}

static void test_subnormals(void **state)
{
    static const uint8_t kinds[] = {PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE};
    uint64_t random = SEED;

    (void)state;
    for (int i = 0; i < N_KERNELS; i++) {
        static struct trace wanted, found;
        struct bench bench;
        struct ct_cursor at = begin(&bench, &flushing);

        for (uint64_t k = 0; k < 30; k++) {
            const ct_value a = random_term(&at, &random), b = random_below(&random, 4) ? random_term(&at, &random) : a;
            const ct_value is_true = marked(&at, ct_fcmp(&at, PTX_F32, (enum ptx_compare)kinds[random_below(&random, 6)], a, b));

            emit_event(&at, k, ct_select(&at, is_true, ct_const32(&at, 1), ct_const32(&at, 0)));
        }
        ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
        run_ir(bench.fn, &wanted);
        refine(&bench);
        run_ir_flushing(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        bench_finish(&bench);
    }
}

static uint32_t count(const struct ct_fn *fn, enum ct_op op)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            n += insn->op == op;
    return n;
}

/* The code for subnormals is omitted if there cannot be any: for the result of a flushing multiply-add, or for a number above a
 * constant. */
static void test_inverse_roots(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        struct bench bench;
        struct ct_cursor at = begin(&bench, &flushing);
        const ct_value a = ct_xor_imm(&at, ct_const32(&at, 0x00000003), 0), one = ct_const32(&at, 0x3f800000);
        const ct_value fused = ct_emit3(&at, CT_OP_FFMA, PTX_F32, CT_W_32, a, a, a);
        const ct_value above = ct_op2(&at, CT_OP_FADD, PTX_F32, ct_op2(&at, CT_OP_FMUL, PTX_F32, a, a), one);
        const ct_value x = kind == 0 ? a : kind == 1 ? fused : above;
        static const uint64_t wanted[] = {0x645105ec /* 1 / sqrt(3 * 2^-149) */, 0x7f800000, 0x3f800000};
        static struct trace found;

        emit_event(&at, 0, marked(&at, ct_op1(&at, CT_OP_FRSQRT, PTX_F32, x)));
        ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
        refine(&bench);
        assert_int_equal(count(bench.fn, CT_OP_SELECT), kind ? 0 : 2);
        run_ir_flushing(bench.fn, &found);
        assert_in_range(found.events[0].value, wanted[kind] - 1, wanted[kind] + 1);
        bench_finish(&bench);
    }
}

/* ---- f32: quotients ---- */

enum { QUOTIENT_ULPS = 3 };

static const struct ptx2spv_target quotient_targets[] = {{.float64 = 1, .exact_fma32 = 1, .keeps_subnormals32 = 1},
                                                         {.exact_fma32 = 1, .keeps_subnormals32 = 1}};

/* Of several numbers, which share slow paths: a / b for each b. */
static void assert_quotients(float a, const float *b, unsigned n)
{
    for (unsigned t = 0; t < sizeof quotient_targets / sizeof *quotient_targets; t++) {
        struct bench bench;
        struct ct_cursor at = begin(&bench, &quotient_targets[t]);
        static struct trace found;
        ct_value quotients[8];

        for (unsigned i = 0; i < n; i++)
            quotients[i] = marked(&at, ct_op2(&at, CT_OP_FDIV, PTX_F32, ct_const32(&at, (uint32_t)bits_of_f32(a)),
                                              ct_const32(&at, (uint32_t)bits_of_f32(b[i]))));
        for (unsigned i = 0; i < n; i++)
            emit_event(&at, i, quotients[i]);
        ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
        refine(&bench);
        for (int ulps = -QUOTIENT_ULPS; ulps <= QUOTIENT_ULPS; ulps++) {
            run_ir_estimating(bench.fn, ulps, &found);
            assert_int_equal(found.n, n);
            for (unsigned i = 0; i < n; i++)
                if (found.events[i].value != bits_of_f32(a / b[i]) && !(isnan(f32_of(found.events[i].value)) && isnan(a / b[i])))
                    fail_msg("%a / %a: %a, not %a; estimates %d ulps off", a, b[i], f32_of(found.events[i].value), a / b[i], ulps);
        }
        bench_finish(&bench);
    }
}

static float random_significand(uint64_t *random)
{
    return f32_of(0x3f800000 | random_below(random, 1 << 23));
}

static void test_quotients_of_simple_and_rare_operands(void **state)
{
    static const float operands[] = {0.0f,
                                     -0.0f,
                                     1,
                                     -1,
                                     3,
                                     0x1.fffffep0f,
                                     0x1.fffffcp0f,
                                     -0x1.000002p0f,
                                     0x1.fffffep9f,
                                     0x1p-61f,
                                     0x1p-62f,
                                     0x1.fffffep62f,
                                     0x1p63f,
                                     0x1p-126f,
                                     0x1p-127f,
                                     0x1p-149f,
                                     -0x3p-149f,
                                     0x1p127f,
                                     0x1.fffffep127f,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     0x1p-100f,
                                     0x1p100f};
    const unsigned n = sizeof operands / sizeof *operands;

    (void)state;
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < n; k += 6)
            assert_quotients(operands[i], &operands[k], 6);
}

/* Half of them are next to the middle between two numbers. */
static void test_random_quotients(void **state)
{
    uint64_t random = SEED;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        const double middle = random_significand(&random) + 0x1p-24;
        const float b[] = {random_significand(&random), random_significand(&random), ldexpf(random_significand(&random), -61),
                           -ldexpf(random_significand(&random), 62), 0x1.fffffep0f};

        assert_quotients(random_significand(&random), b, 5);
        assert_quotients((float)(middle * b[0]), b, 1);
        assert_quotients((float)ldexp(middle * b[1], (int)random_below(&random, 180) - 90), &b[1], 4);
    }
}

/* Roots have no slow path. */
static void test_roots32(void **state)
{
    uint64_t random = SEED;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        const uint32_t any = i < 2000 ? (uint32_t)i : i < 4000 ? 0x7f800000 - (uint32_t)(i - 2000) : random_below(&random, 0x7f800000);
        const bool ftz = i & 2; /* then the operand has been flushed */
        const uint32_t bits = ftz && any < UINT32_C(1) << 23 ? 0 : any;
        struct bench bench;
        struct ct_cursor at = begin(&bench, &quotient_targets[i & 1]);
        struct ct_lower l = {.fn = bench.fn, .at = at, .insn = ct_insn_create(bench.fn, CT_OP_FSQRT, PTX_F32, 1, 1)};
        static struct trace found;

        l.insn->ftz = ftz;
        emit_event(&l.at, 0, ct_lower_root(&l, PTX_F32, PTX_RN, ct_const32(&l.at, bits)));
        ct_emit_insn(&l.at, CT_OP_RET, PTX_NONE, 0, 0);
        ct_fn_compute_defs(bench.fn);
        for (int ulps = -MAX_ULPS; ulps <= MAX_ULPS; ulps++) {
            run_ir_estimating(bench.fn, ulps, &found);
            if (found.events[0].value != bits_of_f32(sqrtf(f32_of(bits))))
                fail_msg("root%s of %a: %a; estimates %d ulps off", ftz ? " (.ftz)" : "", f32_of(bits), f32_of(found.events[0].value),
                         ulps);
        }
        bench_finish(&bench);
    }
}

/* ---- f64: multiply-adds ---- */

static const struct ptx2spv_target unfused = {.float64 = 1};

struct terms {
    double a, b, c;
};

/* Of several, which share slow paths. */
static void assert_fused(const struct terms *terms, unsigned n)
{
    struct bench bench;
    struct ct_cursor at = begin(&bench, &unfused);
    static struct trace found;
    ct_value results[8];

    for (unsigned i = 0; i < n; i++)
        results[i] = marked(&at, ct_emit3(&at, CT_OP_FFMA, PTX_F64, CT_W_64, ct_const64(&at, bits_of_f64(terms[i].a)),
                                          ct_const64(&at, bits_of_f64(terms[i].b)), ct_const64(&at, bits_of_f64(terms[i].c))));
    for (unsigned i = 0; i < n; i++)
        emit_event(&at, i, results[i]);
    ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
    refine(&bench);
    run_ir(bench.fn, &found);
    assert_int_equal(found.n, n);
    for (unsigned i = 0; i < n; i++) {
        const double want = fma(terms[i].a, terms[i].b, terms[i].c);

        if (found.events[i].value != bits_of_f64(want) && !(isnan(f64_of(found.events[i].value)) && isnan(want)))
            fail_msg("%a * %a + %a: %a, not %a", terms[i].a, terms[i].b, terms[i].c, f64_of(found.events[i].value), want);
    }
    bench_finish(&bench);
}

static void test_fused_of_simple_and_rare_operands(void **state)
{
    static const double operands[] = {0.0,
                                      -0.0,
                                      1,
                                      -1,
                                      3,
                                      0x1p-1074,
                                      -0x3p-1074,
                                      0x1p-1022,
                                      0x1.fffffffffffffp-1,
                                      -0x1.0000000000001p0,
                                      0x1p-450,
                                      -0x1p-900,
                                      0x1p499,
                                      0x1p996,
                                      0x1p1000,
                                      0x1.fffffffffffffp1023,
                                      INFINITY,
                                      -INFINITY,
                                      NAN};
    const unsigned n = sizeof operands / sizeof *operands;

    (void)state;
    for (unsigned k = 0; k < n; k++) /* products that overflow, and, scaled by 2^-200, just do not */
        assert_fused(
            (const struct terms[]){{0x1.ffffffffffffap589, -0x1p634, operands[k]}, {-0x1p804, -0x1.ffffffffffffcp419, operands[k]}}, 2);
    for (unsigned i = 0; i < n * n; i++)
        for (unsigned k = 0; k < n; k += 3) {
            const double a = operands[i / n], b = operands[i % n];

            assert_fused((const struct terms[]){{a, b, operands[k]}, {a, b, operands[(k + 1) % n]}, {a, b, operands[(k + 2) % n]}}, 3);
        }
}

/* Few or many significant bits, exponents up to 2^range or any. */
static double random_term64(uint64_t *random, uint32_t range)
{
    static const uint64_t kept[] = {0xfff0000000000, 0xfffffff000000, 0xfffffffffffff, 0xfffffffffffff, 7};
    const uint64_t fraction =
        ((uint64_t)random_below(random, UINT32_MAX) << 20 | random_below(random, 1 << 20)) & kept[random_below(random, 5)];
    const uint64_t exponent = range ? 1023 - range + random_below(random, 2 * range) : random_below(random, 2047);

    return f64_of((uint64_t)random_below(random, 2) << 63 | exponent << 52 |
                  (random_below(random, 8) ? fraction : fraction ^ 0xfffffffffffff));
}

static int exponent_of(double x)
{
    return x != 0 && isfinite(x) ? ilogb(x) : 0;
}

/* c is any number, near the opposite of the product, or such that the sum is near the middle between two numbers. */
static struct terms random_terms(uint64_t *random)
{
    static const uint32_t ranges[] = {3, 110, 0};
    const uint32_t range = ranges[random_below(random, 3)];
    struct terms terms = {random_term64(random, range), random_term64(random, range), random_term64(random, range)};
    const double product = terms.a * terms.b;

    switch (random_below(random, 4)) {
    case 0:
        terms.c = f64_of(bits_of_f64(-product) + random_below(random, 5) - 2);
        break;
    case 1:
        terms.c = ldexp(terms.c, exponent_of(product) - exponent_of(terms.c) + (int)random_below(random, 110) - 55);
        break;
    case 2:
        terms.c = product * (random_below(random, 2) ? 0x1p53 : 0x3p52) + product;
        break;
    default:
        break;
    }
    return terms;
}

static void test_random_fused(void **state)
{
    uint64_t random = SEED;

    (void)state;
    for (int i = 0; i < 6000; i++) {
        struct terms terms[6];

        for (unsigned k = 0; k < 6; k++)
            terms[k] = random_terms(&random);
        assert_fused(terms, 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused_of_simple_and_rare_operands),
        cmocka_unit_test(test_random_fused),
        cmocka_unit_test(test_quotients_of_simple_and_rare_operands),
        cmocka_unit_test(test_random_quotients),
        cmocka_unit_test(test_roots32),
        cmocka_unit_test(test_simple_and_rare_operands),
        cmocka_unit_test(test_random_operands),
        cmocka_unit_test(test_roots_next_to_middles),
        cmocka_unit_test(test_inverses_next_to_middles),
        cmocka_unit_test(test_straight_code),
        cmocka_unit_test(test_subnormals),
        cmocka_unit_test(test_inverse_roots),
    };

    if (setjmp(bench_exhausted))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
