/* SPDX-License-Identifier: Apache-2.0 */
/* guard, on a machine whose fused multiply-adds flush subnormals: random loops of float operations give the bits that the host's fmaf gives
 * without the pass on a machine that does not flush. */
#include "ir_machine.h"
#include "shorthand.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

enum { N_KERNELS = 1000, N_REGISTERS = 6, ROUNDS = 2 };
#define SEED UINT64_C(0x2545f4914f6cdd1d)

static const struct ptx2spv_target target = {.float64 = 1, .exact_fma32 = 1, .fma32_flushes = 1, .guards_fma32 = 1, .exact_zeros = 1};

struct maker {
    struct ct_cursor at;
    uint64_t *random;
    ct_value registers[N_REGISTERS];
    unsigned hurt; /* of ten operands as many are chosen to hurt */
    unsigned exponent; /* else 0; if not, about that of all operands, and one more */
    enum ct_space space; /* where numbers come from: shared memory is watched, local is not */
};

/* Exponents at which the proof of the pass turns, and fractions of all zeros and ones. */
static uint32_t hurtful(uint64_t *random)
{
    static const uint8_t exponents[] = {0, 0, 1, 1, 2, 23, 24, 25, 48, 49, 63, 64, 64, 65, 70, 86, 87, 88, 103, 126, 126, 127, 127, 128};
    static const uint32_t fractions[] = {0, 1, 2, 0x400000, 0x7fffff, 0x7ffffe};
    const uint32_t exponent = exponents[random_below(random, sizeof exponents)];
    const uint32_t fraction = random_below(random, 2) ? fractions[random_below(random, 6)] : random_below(random, 0x800000);

    return random_below(random, 2) << 31 | exponent << 23 | fraction;
}

static uint32_t operand_bits(struct maker *m)
{
    if (m->exponent)
        return random_below(m->random, 2) << 31 | (m->exponent - 1 + random_below(m->random, 3)) << 23 | random_below(m->random, 0x800000);
    if (random_below(m->random, 10) < m->hurt)
        return random_below(m->random, 100) == 0 ? 0x7f800000 | random_below(m->random, 2) : hurtful(m->random);
    return random_below(m->random, 2) << 31 | (120 + random_below(m->random, 16)) << 23 | random_below(m->random, 0x800000);
}

static ct_value any(struct maker *m)
{
    return m->registers[random_below(m->random, N_REGISTERS)];
}

static void store(struct maker *m, uint64_t offset, ct_value x)
{
    const ct_value address = ct_const64(&m->at, 0);
    struct ct_insn *insn = ct_emit_insn(&m->at, CT_OP_STORE, PTX_B32, 0, 2);

    insn->space = CT_SPACE_GLOBAL;
    insn->offset = (int64_t)offset;
    insn->operands[0] = address;
    insn->operands[1] = x;
}

static void put(struct maker *m, unsigned place)
{
    const ct_value address = ct_const32(&m->at, 4 * place), bits = ct_const32(&m->at, operand_bits(m));
    struct ct_insn *insn = ct_emit_insn(&m->at, CT_OP_STORE, PTX_B32, 0, 2);

    insn->space = m->space;
    insn->operands[0] = address;
    insn->operands[1] = bits;
}

static ct_value get(struct maker *m, unsigned place)
{
    const ct_value address = ct_const32(&m->at, 4 * place);
    struct ct_insn *insn = ct_emit_insn(&m->at, CT_OP_LOAD, PTX_B32, 1, 1);

    insn->space = m->space;
    insn->operands[0] = address;
    return insn->results[0] = ct_value_create(m->at.fn, CT_W_32);
}

/* A number that the compiler does not know: it was in memory. */
static ct_value from_memory(struct maker *m, unsigned place)
{
    put(m, place);
    return get(m, place);
}

static ct_value fused(struct maker *m, ct_value a, ct_value b, ct_value c)
{
    const ct_value r = ct_emit3(&m->at, CT_OP_FFMA, PTX_F32, CT_W_32, a, b, c);

    m->at.fn->values.v[r.i].def->guarded = true;
    return r;
}

/* What is left of a product, or nothing. */
static ct_value cancelled(struct maker *m, ct_value a, ct_value b)
{
    return fused(m, a, b, ct_xor_imm(&m->at, ct_op2(&m->at, CT_OP_FMUL, PTX_F32, a, b), 0x80000000));
}

static ct_value random_operation(struct maker *m)
{
    const ct_value a = any(m), b = any(m), c = any(m);

    switch (random_below(m->random, 12)) {
    case 0:
        return ct_op2(&m->at, CT_OP_FADD, PTX_F32, a, b);
    case 1:
        return ct_op2(&m->at, CT_OP_FMUL, PTX_F32, a, b);
    case 2:
        return ct_xor_imm(&m->at, a, 0x80000000);
    case 3:
        return ct_select(&m->at, ct_icmp(&m->at, PTX_U32, PTX_LT, a, b), b, c);
    case 4:
        return cancelled(m, a, b);
    case 5:
        return fused(m, a, b, ct_const32(&m->at, operand_bits(m)));
    case 6:
        return fused(m, a, ct_const32(&m->at, operand_bits(m)), c);
    default:
        return fused(m, a, b, c);
    }
}

static void fill_body(struct maker *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const unsigned r = random_below(m->random, N_REGISTERS);

        ct_assign(&m->at, m->registers[r], random_operation(m));
        if (random_below(m->random, 2))
            store(m, i, m->registers[random_below(m->random, N_REGISTERS)]);
        if (random_below(m->random, 2)) /* an effect that depends on nothing */
            ct_assign(&m->at, m->registers[random_below(m->random, N_REGISTERS)], from_memory(m, 900 + i % 100));
    }
}

/* Products of what is in memory, summed up: of such, all can be known before they are computed. */
static void fill_tile(struct maker *m, unsigned n)
{
    ct_value numbers[8];

    for (unsigned i = 0; i < 8; i++)
        put(m, 800 + i);
    for (unsigned i = 0; i < 8; i++)
        numbers[i] = get(m, 800 + i);
    for (unsigned i = 0; i < n; i++) {
        const unsigned r = random_below(m->random, N_REGISTERS);
        const ct_value a = numbers[random_below(m->random, 8)], b = numbers[random_below(m->random, 8)];
        const ct_value factor = random_below(m->random, 3) ? a : ct_op2(&m->at, CT_OP_FSUB, PTX_F32, a, numbers[0]);

        ct_assign(&m->at, m->registers[r], fused(m, factor, b, random_below(m->random, 20) ? m->registers[r] : a));
        if (random_below(m->random, 8) == 0)
            store(m, 700 + i, m->registers[random_below(m->random, N_REGISTERS)]);
    }
}

/* Registers from memory, a loop over random operations on them, and all of them stored. */
static void build(struct bench *bench, uint64_t *random, bool tiles)
{
    struct maker m = {.at = {.fn = bench->fn}, .random = random, .hurt = random_below(random, 8) ? random_below(random, 11) : 0,
                      .space = random_below(random, 2) ? CT_SPACE_SHARED : CT_SPACE_LOCAL};
    struct ct_block *entry = ct_block_create(bench->fn), *loop = ct_block_create(bench->fn), *done = ct_block_create(bench->fn);
    struct ct_block *const succs[] = {loop, done};
    ct_value count, again;

    static const uint8_t exponents[] = {1, 2, 24, 40, 61, 62, 63, 64, 65, 66, 87, 88, 127};

    bench->fn->target = &target;
    if (tiles)
        m.exponent = exponents[random_below(random, sizeof exponents)];
    m.at.block = entry;
    for (unsigned r = 0; r < N_REGISTERS; r++)
        m.registers[r] = tiles ? ct_const32(&m.at, 0) : from_memory(&m, r);
    count = ct_const32(&m.at, 0);
    ct_emit_insn(&m.at, CT_OP_BR, PTX_NONE, 0, 0);
    ct_block_set_succs(bench->fn, entry, 1, &loop);
    m.at.block = loop;
    if (tiles)
        fill_tile(&m, 4 + random_below(random, 60));
    else
        fill_body(&m, 1 + random_below(random, random_below(random, 8) ? 24 : 90));
    ct_assign(&m.at, count, ct_add_imm(&m.at, count, 1));
    again = ct_icmp_imm(&m.at, PTX_U32, PTX_LT, count, ROUNDS);
    ct_emit_insn(&m.at, CT_OP_CBR, PTX_PRED, 0, 1)->operands[0] = again;
    ct_block_set_succs(bench->fn, loop, 2, succs);
    m.at.block = done;
    for (unsigned r = 0; r < N_REGISTERS; r++)
        store(&m, 1000 + r, m.registers[r]);
    ct_emit_insn(&m.at, CT_OP_RET, PTX_NONE, 0, 0);
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

static bool differ(const struct trace *a, const struct trace *b)
{
    return a->n != b->n || memcmp(a->events, b->events, a->n * sizeof *a->events) != 0;
}

/* How many give other results without the pass. */
static unsigned compare_loops(bool tiles)
{
    uint64_t random = SEED;
    unsigned n_wrong = 0;

    for (int i = 0; i < N_KERNELS; i++) {
        static struct trace wanted, unguarded, found;
        struct bench bench;

        bench_init(&bench);
        build(&bench, &random, tiles);
        run_ir(bench.fn, &wanted);
        run_ir_flushing(bench.fn, &unguarded);
        n_wrong += differ(&wanted, &unguarded);
        run_pass(&bench, "reduce", ct_pass_reduce, CT_PROP_REDUCIBLE);
        run_pass(&bench, "ssa", ct_pass_ssa, CT_PROP_SSA);
        run_pass(&bench, "guard", ct_pass_guard, 0);
        run_ir_flushing(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        run_pass(&bench, "cleanup", ct_pass_cleanup, 0);
        run_ir_flushing(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        bench_finish(&bench);
    }
    return n_wrong;
}

/* Flushing must have mattered often without the pass, or the tests say nothing. */
static void test_random_loops(void **state)
{
    (void)state;
    assert_in_range(compare_loops(false), N_KERNELS / 12, N_KERNELS);
}

static void test_tiles(void **state)
{
    (void)state;
    assert_in_range(compare_loops(true), N_KERNELS / 4, N_KERNELS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_loops), cmocka_unit_test(test_tiles)};

    if (setjmp(bench_exhausted))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
