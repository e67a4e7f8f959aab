/* SPDX-License-Identifier: Apache-2.0 */
/* software64: the code for each operation on f64, executed by the interpreter of the IR, gives the host's bits for edge values and random ones. Quotients
 * and roots start from the device's own of f32, which may be several units in the last place off. */
#include "ir_machine.h"
#include "../float_bits.h"
#include "ptx2spv/ir/builder.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { OPERANDS_MAX = 3, ULPS_MAX = 8 };
#ifdef SANITIZED
enum { N_CASES = 2000 };
#else
enum { N_CASES = 40000 };
#endif
#define SEED UINT64_C(0x9e3779b97f4a7c15)

static const struct ptx2spv_target target = {.int64 = 1, .int16 = 1};

/* A function with one operation, whose operands are constants that change from run to run. */
struct kernel {
    struct bench bench;
    struct ct_insn *operands[OPERANDS_MAX];
    unsigned n_operands;
    bool has_estimates;
};

static unsigned width_of(enum ptx_type type)
{
    return ptx_type_bits(type) == 64 ? CT_W_64 : CT_W_32;
}

static void open_kernel(struct kernel *kernel, enum ct_op op, enum ptx_type from, enum ptx_type to, enum ptx_compare compare)
{
    const unsigned n = (unsigned)ct_op_infos[op].operands;
    struct ct_insn *insn;
    struct ct_cursor at;

    bench_init(&kernel->bench);
    kernel->bench.fn->target = &target;
    kernel->bench.fn->expands_software64 = true;
    kernel->n_operands = n;
    kernel->has_estimates = op == CT_OP_FDIV || op == CT_OP_FRCP || op == CT_OP_FSQRT || op == CT_OP_FRSQRT;
    at = (struct ct_cursor){.fn = kernel->bench.fn, .block = ct_block_create(kernel->bench.fn)};
    insn = ct_insn_create(at.fn, op, from, 1, n);
    insn->type2 = to == from ? PTX_NONE : to;
    insn->compare = compare;
    for (unsigned i = 0; i < n; i++) {
        insn->operands[i] = ct_emit_const(&at, width_of(from), 0);
        kernel->operands[i] = at.fn->values.v[insn->operands[i].i].def;
    }
    insn->results[0] = ct_value_create(at.fn, op == CT_OP_FCMP ? CT_W_PRED : width_of(to));
    ct_insn_append(at.block, insn);
    emit_event(&at, 0, op == CT_OP_FCMP ? ct_select(&at, insn->results[0], ct_const32(&at, 1), ct_const32(&at, 0)) : insn->results[0]);
    ct_emit_insn(&at, CT_OP_RET, PTX_NONE, 0, 0);
    at.fn->props |= CT_PROP_CALLS_INLINED | CT_PROP_REDUCIBLE | CT_PROP_SSA | CT_PROP_LOWERED;
    ct_fn_compute_defs(at.fn);
    assert_int_equal(ct_pass_software64(at.fn), CT_PASS_CHANGED);
    at.fn->last_pass = "software64";
    if (!ct_fn_verify(at.fn))
        fail_msg("%s\n%s", kernel->bench.diagnostics, ct_fn_dump(at.fn, &kernel->bench.compilation.arena));
}

static uint64_t run_kernel(struct kernel *kernel, const uint64_t *operands, int ulps)
{
    static struct trace found;

    for (unsigned i = 0; i < kernel->n_operands; i++)
        kernel->operands[i]->imm = operands[i];
    run_ir_estimating(kernel->bench.fn, ulps, &found);
    assert_int_equal(found.n, 1);
    return found.events[0].value;
}

/* ---- operands ---- */

static uint64_t random_bits(uint64_t *random)
{
    return (uint64_t)random_below(random, UINT32_MAX) << 32 | random_below(random, UINT32_MAX);
}

/* Of any exponent; near one; subnormal and near the least normal number; with few bits; near the greatest. */
static uint64_t random_f64(uint64_t *random)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     0x000fffffffffffff,
                                     0x0010000000000000,
                                     0x3fefffffffffffff,
                                     0x3ff0000000000000,
                                     0x3ff0000000000001,
                                     0x3fe0000000000000,
                                     0x4330000000000000,
                                     0x433fffffffffffff,
                                     0x7fefffffffffffff,
                                     0x7ff0000000000000,
                                     0x7ff8000000000000};
    const uint64_t bits = random_bits(random), sign = bits & UINT64_C(1) << 63, fraction = bits & ((UINT64_C(1) << 52) - 1);
    const uint64_t few = fraction & UINT64_MAX << random_below(random, 52);

    switch (random_below(random, 8)) {
    case 0:
        return bits;
    case 1:
        return sign | (uint64_t)(1023 - 30 + random_below(random, 60)) << 52 | fraction;
    case 2:
        return sign | (uint64_t)random_below(random, 60) << 52 | fraction;
    case 3:
        return sign | fraction >> random_below(random, 52);
    case 4:
        return sign | (uint64_t)(2046 - random_below(random, 8)) << 52 | few;
    case 5:
        return sign | edges[random_below(random, sizeof edges / sizeof *edges)];
    default:
        return sign | (uint64_t)(1023 - 60 + random_below(random, 130)) << 52 | few;
    }
}

static uint64_t random_of(enum ptx_type type, uint64_t *random)
{
    if (type == PTX_F64)
        return random_f64(random);
    if (type == PTX_F32)
        return random_below(random, 8) ? random_bits(random) >> 32
                                       : (random_bits(random) >> 32 & 0x80000000) | random_bits(random) >> (41 + random_below(random, 20));
    return (random_bits(random) & UINT64_MAX << random_below(random, 64)) >> (64 - ptx_type_bits(type));
}

/* A third operand that nearly cancels the product of the first two. */
static void make_operands(const struct kernel *kernel, enum ptx_type type, uint64_t *random, uint64_t *operands)
{
    for (unsigned i = 0; i < kernel->n_operands; i++)
        operands[i] = random_of(type, random);
    if (kernel->n_operands == 3 && !random_below(random, 3))
        operands[2] = bits_of_f64(-(f64_of(operands[0]) * f64_of(operands[1]))) + random_below(random, 3) - 1;
    if (kernel->n_operands == 2 && type == PTX_F64 && !random_below(random, 6))
        operands[1] = (operands[0] ^ UINT64_C(1) << 63) + random_below(random, 3) - 1;
}

/* ---- references ---- */

static uint64_t reference(enum ct_op op, enum ptx_type from, enum ptx_type to, const uint64_t *bits)
{
    const double a = f64_of(bits[0]), b = f64_of(bits[1]), c = f64_of(bits[2]);

    switch ((unsigned)op) {
    case CT_OP_FADD:
        return bits_of_f64(a + b);
    case CT_OP_FSUB:
        return bits_of_f64(a - b);
    case CT_OP_FMUL:
        return bits_of_f64(a * b);
    case CT_OP_FFMA:
        return bits_of_f64(fma(a, b, c));
    case CT_OP_FDIV:
        return bits_of_f64(a / b);
    case CT_OP_FRCP:
        return bits_of_f64(1 / a);
    case CT_OP_FSQRT:
        return bits_of_f64(sqrt(a));
    case CT_OP_FRSQRT:
        return bits_of_f64((double)(1 / sqrtl(a)));
    case CT_OP_FMIN:
        return bits_of_f64(isnan(a) || b < a ? b : a);
    case CT_OP_FMAX:
        return bits_of_f64(isnan(a) || b > a ? b : a);
    case CT_OP_FNEG:
        return bits[0] ^ UINT64_C(1) << 63;
    case CT_OP_FABS:
        return bits[0] & UINT64_MAX >> 1;
    case CT_OP_FFLOOR:
        return bits_of_f64(floor(a));
    case CT_OP_FCEIL:
        return bits_of_f64(ceil(a));
    case CT_OP_FTRUNC:
        return bits_of_f64(trunc(a));
    case CT_OP_FRINT:
        return bits_of_f64(nearbyint(a));
    case CT_OP_FTOF:
        return from == PTX_F64 ? bits_of_f32((float)a) : bits_of_f64((double)f32_of(bits[0]));
    case CT_OP_FTOI:
        return ptx_type_is_signed(to) ? (uint64_t)(int64_t)a : (uint64_t)a;
    default: /* ITOF */
        if (from == PTX_S32)
            return bits_of_f64((double)(int32_t)bits[0]);
        return bits_of_f64(from == PTX_S64 ? (double)(int64_t)bits[0] : (double)bits[0]);
    }
}

/* What FTOI accepts; truncated it is in the range of `to`. */
static bool is_in_range(enum ptx_type to, double x)
{
    const unsigned bits = ptx_type_bits(to) - ptx_type_is_signed(to);
    const double limit = ldexp(1, (int)bits);

    return ptx_type_is_signed(to) ? x >= -limit && x < limit : x > -1 && x < limit;
}

/* Either zero may be the least or greatest of both; an inverse root may be a neighbour of the exact one. */
static bool is_same(enum ct_op op, enum ptx_type to, uint64_t wanted, uint64_t found)
{
    const bool is_extreme = op == CT_OP_FMIN || op == CT_OP_FMAX;

    if (wanted == found || (op == CT_OP_FRSQRT && wanted - found + 1 <= 2))
        return true;
    if (to == PTX_F32)
        return isnan(f32_of(wanted)) && isnan(f32_of(found));
    return to == PTX_F64 && ((isnan(f64_of(wanted)) && isnan(f64_of(found))) || (is_extreme && f64_of(wanted) == f64_of(found)));
}

/* ---- tests ---- */

static void check_operation(enum ct_op op, enum ptx_type from, enum ptx_type to)
{
    struct kernel kernel;
    uint64_t random = SEED, operands[OPERANDS_MAX] = {0};

    open_kernel(&kernel, op, from, to, PTX_EQ);
    for (unsigned i = 0; i < N_CASES; i++) {
        const int ulps = kernel.has_estimates ? (int)random_below(&random, 2 * ULPS_MAX + 1) - ULPS_MAX : 0;
        uint64_t wanted, found, used = to == PTX_F32 || ptx_type_bits(to) == 32 ? UINT32_MAX : UINT64_MAX;

        make_operands(&kernel, from, &random, operands);
        if (op == CT_OP_FTOI && !is_in_range(to, f64_of(operands[0])))
            continue;
        wanted = reference(op, from, to, operands) & used;
        found = run_kernel(&kernel, operands, ulps) & used;
        if (!is_same(op, to, wanted, found))
            fail_msg("%s of %016llx %016llx %016llx: %016llx, not %016llx; estimates %d ulps off", ct_op_infos[op].name,
                     (unsigned long long)operands[0], (unsigned long long)operands[1], (unsigned long long)operands[2],
                     (unsigned long long)found, (unsigned long long)wanted, ulps);
    }
    bench_finish(&kernel.bench);
}

static void test_arithmetic(void **state)
{
    static const enum ct_op ops[] = {CT_OP_FADD,  CT_OP_FSUB,   CT_OP_FMUL, CT_OP_FFMA, CT_OP_FDIV, CT_OP_FRCP,
                                     CT_OP_FSQRT, CT_OP_FRSQRT, CT_OP_FMIN, CT_OP_FMAX, CT_OP_FNEG, CT_OP_FABS};

    (void)state;
    for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++)
        check_operation(ops[i], PTX_F64, PTX_F64);
}

static void test_integral_numbers(void **state)
{
    static const enum ct_op ops[] = {CT_OP_FFLOOR, CT_OP_FCEIL, CT_OP_FTRUNC, CT_OP_FRINT};

    (void)state;
    for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++)
        check_operation(ops[i], PTX_F64, PTX_F64);
}

static void test_conversions(void **state)
{
    static const enum ptx_type integers[] = {PTX_U32, PTX_S32, PTX_U64, PTX_S64};

    (void)state;
    check_operation(CT_OP_FTOF, PTX_F64, PTX_F32);
    check_operation(CT_OP_FTOF, PTX_F32, PTX_F64);
    for (unsigned i = 0; i < sizeof integers / sizeof *integers; i++) {
        check_operation(CT_OP_FTOI, PTX_F64, integers[i]);
        check_operation(CT_OP_ITOF, integers[i], PTX_F64);
    }
}

static bool holds(enum ptx_compare compare, double a, double b)
{
    const bool unordered = isunordered(a, b);

    switch ((unsigned)compare) {
    case PTX_EQ:
        return a == b;
    case PTX_NE:
        return !unordered && a != b;
    case PTX_LT:
        return a < b;
    case PTX_LE:
        return a <= b;
    case PTX_GT:
        return a > b;
    case PTX_GE:
        return a >= b;
    case PTX_EQU:
        return unordered || a == b;
    case PTX_NEU:
        return a != b;
    case PTX_LTU:
        return unordered || a < b;
    case PTX_LEU:
        return unordered || a <= b;
    case PTX_GTU:
        return unordered || a > b;
    case PTX_GEU:
        return unordered || a >= b;
    default:
        return unordered == (compare == PTX_NAN);
    }
}

static void test_comparisons(void **state)
{
    static const enum ptx_compare compares[] = {PTX_EQ,  PTX_NE,  PTX_LT,  PTX_LE,  PTX_GT,  PTX_GE,  PTX_EQU,
                                                PTX_NEU, PTX_LTU, PTX_LEU, PTX_GTU, PTX_GEU, PTX_NUM, PTX_NAN};

    (void)state;
    for (unsigned c = 0; c < sizeof compares / sizeof *compares; c++) {
        struct kernel kernel;
        uint64_t random = SEED, operands[OPERANDS_MAX];

        open_kernel(&kernel, CT_OP_FCMP, PTX_F64, PTX_F64, compares[c]);
        for (unsigned i = 0; i < N_CASES / 4; i++) {
            make_operands(&kernel, PTX_F64, &random, operands);
            if (!random_below(&random, 4))
                operands[1] = operands[0];
            if (run_kernel(&kernel, operands, 0) != holds(compares[c], f64_of(operands[0]), f64_of(operands[1])))
                fail_msg("comparison %u of %a and %a", compares[c], f64_of(operands[0]), f64_of(operands[1]));
        }
        bench_finish(&kernel.bench);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_integral_numbers),
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_comparisons),
    };

    if (setjmp(bench_exhausted))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
