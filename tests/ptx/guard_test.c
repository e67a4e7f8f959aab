/* SPDX-License-Identifier: Apache-2.0 */
/* guard, on a machine whose fused multiply-adds flush subnormals: random loops of float operations must give the bits that the host's
 * fmaf gives without the pass on a machine that does not flush. The pass must make unguarded versions of the loops of one kind: orbits,
 * which end when a sum of squares is large. For another kind, pulls of bodies in shared memory, it makes none, and guards each
 * multiply-add. */
#include "ir_machine.h"
#include "ptx2spv/ir/builder.h"
#include "ptx2spv/passes/simplify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#ifdef SANITIZED
enum { N_KERNELS = 200 };
#else
enum { N_KERNELS = 400 };
#endif
enum { N_REGISTERS = 6, ROUNDS = 2 };
#define SEED UINT64_C(0x2545f4914f6cdd1d)

static const struct ptx2spv_target target = {.float64 = 1, .exact_fma32 = 1, .fma32_flushes = 1, .guards_fma32 = 1, .exact_zeros = 1};

struct maker {
    struct ct_cursor at;
    uint64_t *random;
    ct_value registers[N_REGISTERS];
    unsigned critical;   /* number of operands out of ten that are chosen so that flushing matters */
    unsigned exponent;   /* if not 0: the approximate exponent of all operands, plus one */
    enum ct_space space; /* where numbers are loaded from: shared memory is tracked, local memory is not */
    unsigned zeros;      /* number of operands out of ten that are 0 */
    bool ordinary;       /* the other operands are between 2^-20 and 2^3, or zeros */
};

/* Exponents at which the proof of the pass changes its outcome, and fractions of all zeros and all ones. */
static uint32_t critical_number(uint64_t *random)
{
    static const uint8_t exponents[] = {0,  0,  0,  1,  1,  2,   23,  24,  25,  48,  49,  63,  64,  64,  65,  66,  67,
                                        68, 70, 86, 87, 88, 102, 103, 104, 126, 126, 127, 127, 128, 133, 134, 166, 167};
    static const uint32_t fractions[] = {0, 1, 2, 0x400000, 0x7fffff, 0x7ffffe};
    const uint32_t exponent = exponents[random_below(random, sizeof exponents)];
    const uint32_t fraction = random_below(random, 2) ? fractions[random_below(random, 6)] : random_below(random, 0x800000);

    return random_below(random, 2) << 31 | exponent << 23 | fraction;
}

static uint32_t operand_bits(struct maker *m)
{
    if (random_below(m->random, 10) < m->zeros)
        return random_below(m->random, 2) << 31;
    if (m->exponent && !(m->ordinary && random_below(m->random, 4) == 0))
        return random_below(m->random, 2) << 31 | (m->exponent - 1 + random_below(m->random, 3)) << 23 | random_below(m->random, 0x800000);
    if (random_below(m->random, 10) < m->critical)
        return random_below(m->random, 100) == 0 ? 0x7f800000 | random_below(m->random, 2) : critical_number(m->random);
    if (m->ordinary)
        return random_below(m->random, 2) << 31 | (107 + random_below(m->random, 23)) << 23 | random_below(m->random, 0x800000);
    return random_below(m->random, 2) << 31 | (120 + random_below(m->random, 16)) << 23 | random_below(m->random, 0x800000);
}

static ct_value any(struct maker *m)
{
    return m->registers[random_below(m->random, N_REGISTERS)];
}

static void put_value_in(struct maker *m, enum ct_space space, unsigned place, ct_value x)
{
    const ct_value address = ct_const32(&m->at, 4 * place);
    struct ct_insn *insn = ct_emit_insn(&m->at, CT_OP_STORE, PTX_B32, 0, 2);

    insn->space = space;
    insn->operands[0] = address;
    insn->operands[1] = x;
}

/* Stores two words by one instruction, as clang copies structures. */
static void put_pair(struct maker *m, unsigned place, uint32_t low, uint32_t high)
{
    const ct_value address = ct_const32(&m->at, 4 * place), pair = ct_const64(&m->at, (uint64_t)high << 32 | low);
    struct ct_insn *insn = ct_emit_insn(&m->at, CT_OP_STORE, PTX_U64, 0, 2);

    insn->space = m->space;
    insn->operands[0] = address;
    insn->operands[1] = pair;
}

static void put_in(struct maker *m, enum ct_space space, unsigned place)
{
    put_value_in(m, space, place, ct_const32(&m->at, operand_bits(m)));
}

static void put_value(struct maker *m, unsigned place, ct_value x)
{
    put_value_in(m, m->space, place, x);
}

static ct_value get_from(struct maker *m, enum ct_space space, unsigned place)
{
    const ct_value address = ct_const32(&m->at, 4 * place);
    struct ct_insn *insn = ct_emit_insn(&m->at, CT_OP_LOAD, PTX_B32, 1, 1);

    insn->space = space;
    insn->operands[0] = address;
    return insn->results[0] = ct_value_create(m->at.fn, CT_W_32);
}

static void put(struct maker *m, unsigned place)
{
    put_in(m, m->space, place);
}

static ct_value get(struct maker *m, unsigned place)
{
    return get_from(m, m->space, place);
}

/* A number that is unknown at compile time, since it was in memory. */
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

/* The rounding error of a product, which may be zero. */
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
            emit_event(&m->at, i, m->registers[random_below(m->random, N_REGISTERS)]);
        if (random_below(m->random, 2)) /* a side effect that depends on nothing */
            ct_assign(&m->at, m->registers[random_below(m->random, N_REGISTERS)], from_memory(m, 900 + i % 100));
    }
}

/* Sums of products of numbers in memory: for these, everything can be checked before the computation. */
static void fill_tile(struct maker *m, ct_value count, unsigned n)
{
    const ct_value is_first = ct_icmp_imm(&m->at, PTX_U32, PTX_LT, count, 1), one = ct_const32(&m->at, 0x3f800000);
    const unsigned exponent = m->exponent;
    ct_value numbers[8], of_first_round;

    m->exponent = random_below(m->random, 2) ? exponent : 1 + random_below(m->random, 2);
    put_in(m, CT_SPACE_LOCAL, 899);
    m->exponent = exponent;
    of_first_round = ct_select(&m->at, is_first, get_from(m, CT_SPACE_LOCAL, 899), one);
    for (unsigned i = 0; i < 8; i++)
        put(m, 800 + i);
    for (unsigned i = 0; i < 8; i++)
        numbers[i] = get(m, 800 + i);
    for (unsigned i = 0; i < n; i++) {
        const unsigned r = random_below(m->random, N_REGISTERS);
        const ct_value a = numbers[random_below(m->random, 8)], b = numbers[random_below(m->random, 8)];
        const ct_value factor = random_below(m->random, 3)        ? a
                                : random_below(m->random, 4) == 0 ? of_first_round
                                                                  : ct_op2(&m->at, CT_OP_FSUB, PTX_F32, a, numbers[0]);

        ct_assign(&m->at, m->registers[r], fused(m, factor, b, random_below(m->random, 20) ? m->registers[r] : a));
        if (random_below(m->random, 8) == 0)
            emit_event(&m->at, 700 + i, m->registers[random_below(m->random, N_REGISTERS)]);
    }
}

static void jump(struct maker *m, struct ct_block *to)
{
    ct_emit_insn(&m->at, CT_OP_BR, PTX_NONE, 0, 0);
    ct_block_set_succs(m->at.fn, m->at.block, 1, &to);
    m->at.block = to;
}

static void branch(struct maker *m, ct_value condition, struct ct_block *then, struct ct_block *otherwise)
{
    struct ct_block *const succs[] = {then, otherwise};

    ct_emit_insn(&m->at, CT_OP_CBR, PTX_PRED, 0, 1)->operands[0] = condition;
    ct_block_set_succs(m->at.fn, m->at.block, 2, succs);
}

static ct_value f32_operation(struct maker *m, enum ct_op op, ct_value a, ct_value b)
{
    return ct_op2(&m->at, op, PTX_F32, a, b);
}

/* Repeats `loop` until `count` is `rounds`; then jumps to `done`. */
static void repeat(struct maker *m, ct_value count, uint32_t rounds, struct ct_block *loop, struct ct_block *done)
{
    ct_assign(&m->at, count, ct_add_imm(&m->at, count, 1));
    branch(m, ct_icmp_imm(&m->at, PTX_U32, PTX_LT, count, rounds), loop, done);
    m->at.block = done;
}

/* ---- orbits ---- */

/* Whether x * x + y * y is not above a bound, in one of many spellings; *negated: the predicate is the negation. */
static ct_value is_near(struct maker *m, ct_value xx, ct_value y, ct_value yy, bool *negated)
{
    static const uint32_t bounds[] = {0x40800000, 0x40800000, 0x40000000, 0x41200000, 0x53800000, 0x7f000000, 0x00800000};
    static const enum ptx_compare above[] = {PTX_GT, PTX_GT, PTX_LT, PTX_LT}, below[] = {PTX_LT, PTX_LT, PTX_GT, PTX_GT};
    const uint32_t way = random_below(m->random, 4);
    const ct_value sum = random_below(m->random, 2) ? f32_operation(m, CT_OP_FADD, xx, yy) : fused(m, y, y, xx);
    const ct_value bound = ct_const32(&m->at, bounds[random_below(m->random, 7)]);
    const ct_value a = way / 2 ? bound : sum, b = way / 2 ? sum : bound;

    *negated = random_below(m->random, 2);
    return ct_fcmp(&m->at, PTX_F32, *negated ? above[way] : below[way], a, b);
}

static ct_value orbit_step(struct maker *m, ct_value x, ct_value y, ct_value c, ct_value part)
{
    switch (random_below(m->random, 7)) {
    case 0:
        return f32_operation(m, CT_OP_FADD, part, c);
    case 6:
        return fused(m, x, f32_operation(m, CT_OP_FMUL, c, ct_const32(&m->at, 0x03800000)), c); /* 2^-120: may be a subnormal */
    case 1:
        return fused(m, x, y, c);
    case 2:
        return fused(m, x, ct_xor_imm(&m->at, x, 0x80000000), c);
    case 3:
        return fused(m, x, x, c);
    case 4:
        return fused(m, part, y, c);
    default:
        return fused(m, f32_operation(m, CT_OP_FADD, x, x), y, c);
    }
}

/* The same test again, by the opposite comparison, in a block where the paths of the first test join: clang writes loops like this. */
static void test_again(struct maker *m, ct_value near, bool negated, struct ct_block *ask, struct ct_block *done)
{
    struct ct_block *again = ct_block_create(m->at.fn);
    const struct ct_insn *asked = m->at.fn->values.v[near.i].def;
    struct ct_insn *copy;

    jump(m, ask);
    copy = ct_emit_copy_of(&m->at, asked);
    if (random_below(m->random, 2)) {
        copy->compare = ct_opposite_comparison(asked);
        negated = !negated;
    }
    branch(m, copy->results[0], negated ? done : again, negated ? again : done);
    m->at.block = again;
}

/* x and y come from memory or are 0; loop invariants are added to them until x * x + y * y is large. */
static void fill_orbit(struct maker *m, ct_value count, struct ct_block *done)
{
    struct ct_block *loop = ct_block_create(m->at.fn), *inside = ct_block_create(m->at.fn);
    struct ct_block *ask = random_below(m->random, 2) ? ct_block_create(m->at.fn) : NULL, *outside = ask ? ask : done;
    ct_value x = m->registers[0], y = m->registers[1], xx, yy, near, part, next;
    bool negated;

    switch (random_below(m->random, 4)) {
    case 0:
        ct_assign(&m->at, x, ct_const32(&m->at, 0));
        ct_assign(&m->at, y, ct_const32(&m->at, 0));
        break;
    case 1: /* a sum that is not greater than any bound */
        ct_assign(&m->at, x, f32_operation(m, CT_OP_FMUL, x, ct_const32(&m->at, 0x7b800000)));
        ct_assign(&m->at, y, f32_operation(m, CT_OP_FMUL, y, ct_const32(&m->at, 0x7fffffff)));
        break;
    case 2: /* small, unlike the numbers that are added: 2^-62 and 2^-64 times as much */
        ct_assign(&m->at, x, f32_operation(m, CT_OP_FMUL, x, ct_const32(&m->at, 0x20800000)));
        ct_assign(&m->at, y, f32_operation(m, CT_OP_FMUL, y, ct_const32(&m->at, 0x1f800000)));
        break;
    }
    for (unsigned r = 2; r < 4; r++)
        if (random_below(m->random, 4) == 0) {
            put_value(m, r, ct_const32(&m->at, 0));
            ct_assign(&m->at, m->registers[r], get(m, r));
        }
    jump(m, loop);
    xx = f32_operation(m, CT_OP_FMUL, x, x);
    yy = f32_operation(m, CT_OP_FMUL, y, y);
    near = is_near(m, xx, y, yy, &negated);
    branch(m, near, negated ? outside : inside, negated ? inside : outside);
    m->at.block = inside;
    part = f32_operation(m, CT_OP_FSUB, xx, yy);
    next = orbit_step(m, x, y, m->registers[2], part);
    ct_assign(&m->at, x, orbit_step(m, x, y, m->registers[3], part));
    ct_assign(&m->at, y, next);
    if (random_below(m->random, 2))
        emit_event(&m->at, 500, x);
    if (ask)
        test_again(m, near, negated, ask, done);
    repeat(m, count, 8, loop, done);
}

/* ---- pulls ---- */

/* 1 / sqrt(x), as `lower` emits it. */
static ct_value inverse_root(struct maker *m, ct_value x)
{
    struct ct_cursor *at = &m->at;
    const ct_value small = ct_fcmp(at, PTX_F32, PTX_LT, ct_and_imm(at, x, 0x7fffffff), ct_const32(at, 0x00800000));
    const ct_value up = ct_select(at, small, ct_const32(at, 0x4b800000), ct_const32(at, 0x3f800000));
    const ct_value down = ct_select(at, small, ct_const32(at, 0x45800000), ct_const32(at, 0x3f800000));

    return f32_operation(m, CT_OP_FMUL, ct_op1(at, CT_OP_FRSQRT, PTX_F32, f32_operation(m, CT_OP_FMUL, x, up)), down);
}

/* The pull of the body at an address on the registers' body; the sums are in registers 3 and 4. */
static void pull(struct maker *m, ct_value address, ct_value mass_address)
{
    ct_value d[3], square = m->registers[5], s, inverse;

    for (unsigned i = 0; i < 3; i++) {
        struct ct_insn *load = ct_emit_insn(&m->at, CT_OP_LOAD, PTX_B32, 1, 1);

        load->space = m->space;
        load->offset = 4 * i;
        load->operands[0] = address;
        load->results[0] = ct_value_create(m->at.fn, CT_W_32);
        d[i] = f32_operation(m, CT_OP_FSUB, load->results[0], m->registers[i]);
        square = fused(m, d[i], d[i], square);
    }
    s = ct_value_create(m->at.fn, CT_W_32);
    {
        struct ct_insn *load = ct_emit_insn(&m->at, CT_OP_LOAD, PTX_B32, 1, 1);

        load->space = m->space;
        load->operands[0] = mass_address;
        load->results[0] = s;
    }
    inverse = inverse_root(m, square);
    for (unsigned i = 0; i < 3; i++)
        s = f32_operation(m, CT_OP_FMUL, inverse, s);
    for (unsigned i = 0; i < 2; i++)
        ct_assign(&m->at, m->registers[3 + i], fused(m, d[i], s, m->registers[3 + i]));
}

/* Stores four numbers for each of some bodies in memory, then a loop processes one body after the other. */
static void fill_pulls(struct maker *m, ct_value count, struct ct_block *done)
{
    enum { N_BODIES = 6 };
    static const uint8_t mass_exponents[] = {0, 0, 0, 1, 2, 20, 24, 40, 66, 102, 103, 104};
    const unsigned exponent = m->exponent, mass_exponent = mass_exponents[random_below(m->random, sizeof mass_exponents)];
    const bool in_pairs = random_below(m->random, 2);
    uint32_t numbers[4 * N_BODIES];
    struct ct_block *loop = ct_block_create(m->at.fn);
    ct_value address;

    for (unsigned i = 0; i < 4 * N_BODIES; i++) {
        m->exponent = i % 4 == 3 ? mass_exponent : exponent;
        numbers[i] = operand_bits(m);
    }
    for (unsigned i = 0; i < 4 * N_BODIES; i += 1 + in_pairs)
        if (in_pairs)
            put_pair(m, 600 + i, numbers[i], numbers[i + 1]);
        else
            put_value(m, 600 + i, ct_const32(&m->at, numbers[i]));
    for (unsigned r = 3; r < N_REGISTERS; r++) /* sums mostly start with 0; the number that is added to squares is sometimes 0 */
        if (random_below(m->random, r < 5 ? 2 : 4) == 0)
            ct_assign(&m->at, m->registers[r], ct_const32(&m->at, 0));
    jump(m, loop);
    address = ct_add_imm(&m->at, ct_shl_imm(&m->at, count, 4), 4 * 600);
    pull(m, address, ct_add_imm(&m->at, address, 12));
    if (random_below(m->random, 2))
        emit_event(&m->at, 500, m->registers[3]);
    repeat(m, count, N_BODIES, loop, done);
}

/* ---- kernels ---- */

enum kind { RANDOM_LOOPS, TILES, ORBITS, PULLS };

/* The initial values of sums. */
static ct_value from_local_or_zero(struct maker *m, unsigned place)
{
    const unsigned exponent = m->exponent;

    if (random_below(m->random, 8))
        return ct_const32(&m->at, 0);
    m->exponent = random_below(m->random, 2) ? exponent : 1;
    put_in(m, CT_SPACE_LOCAL, place);
    m->exponent = exponent;
    return get_from(m, CT_SPACE_LOCAL, place);
}

/* Loads registers from memory, executes a loop of operations on them, and stores all of them. */
static void build(struct bench *bench, uint64_t *random, enum kind kind)
{
    struct maker m = {.at = {.fn = bench->fn},
                      .random = random,
                      .critical = random_below(random, 8) ? random_below(random, 11) : 0,
                      .space = random_below(random, 2) ? CT_SPACE_SHARED : CT_SPACE_LOCAL};
    struct ct_block *entry = ct_block_create(bench->fn), *loop = ct_block_create(bench->fn), *done = ct_block_create(bench->fn);
    static const uint8_t exponents[] = {1, 2, 24, 40, 61, 62, 63, 64, 65, 66, 87, 88, 127};
    ct_value count;

    bench->fn->target = &target;
    m.ordinary = kind == ORBITS || kind == PULLS;
    m.zeros = m.ordinary ? 1 : kind == TILES && random_below(random, 4) == 0 ? 8 : 0;
    if (m.ordinary && random_below(random, 2))
        m.critical = random_below(random, 2);
    if (kind == ORBITS && random_below(random, 3) == 0)
        m.exponent = 1 + random_below(random, 2);
    else if (kind == TILES || (m.ordinary && random_below(random, 3) == 0))
        m.exponent = exponents[random_below(random, sizeof exponents)];
    m.at.block = entry;
    for (unsigned r = 0; r < N_REGISTERS; r++)
        m.registers[r] = kind != TILES ? from_memory(&m, r) : ct_copy(&m.at, from_local_or_zero(&m, r));
    count = ct_const32(&m.at, 0);
    jump(&m, loop);
    switch (kind) {
    case RANDOM_LOOPS:
        fill_body(&m, 1 + random_below(random, random_below(random, 8) ? 24 : 90));
        repeat(&m, count, ROUNDS, loop, done);
        break;
    case TILES:
        fill_tile(&m, count, 4 + random_below(random, 60));
        repeat(&m, count, ROUNDS, loop, done);
        break;
    case ORBITS:
        fill_orbit(&m, count, done);
        break;
    case PULLS:
        fill_pulls(&m, count, done);
        break;
    }
    m.at.block = done;
    for (unsigned r = 0; r < N_REGISTERS; r++)
        emit_event(&m.at, 1000 + r, m.registers[r]);
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

static unsigned count_loops(struct bench *bench)
{
    unsigned n = 0;

    ct_fn_compute_rpo(bench->fn);
    ct_fn_compute_dominators(bench->fn);
    ct_fn_compute_loops(bench->fn);
    for (uint32_t b = 0; b < bench->fn->blocks.n; b++)
        n += bench->fn->blocks.v[b]->loop_head == bench->fn->blocks.v[b];
    return n;
}

/* The number of kernels whose results differ without the pass, and of those whose loop got a second version. */
struct found {
    unsigned wrong, copied;
};

static struct found compare_loops(enum kind kind)
{
    uint64_t random = SEED;
    struct found n = {0, 0};

    for (int i = 0; i < N_KERNELS; i++) {
        static struct trace wanted, unguarded, found;
        struct bench bench;

        bench_init(&bench);
        build(&bench, &random, kind);
        run_ir(bench.fn, &wanted);
        run_ir_flushing(bench.fn, &unguarded);
        n.wrong += differ(&wanted, &unguarded);
        run_pass(&bench, "make_reducible", ct_pass_make_reducible, CT_PROP_REDUCIBLE);
        run_pass(&bench, "ssa", ct_pass_ssa, CT_PROP_SSA);
        run_pass(&bench, "jump_threading", ct_pass_jump_threading, 0);
        run_pass(&bench, "guard", ct_pass_guard, 0);
        run_ir_flushing(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        run_pass(&bench, "cleanup", ct_pass_cleanup, 0);
        run_ir_flushing(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        n.copied += count_loops(&bench) > 1;
        bench_finish(&bench);
    }
    return n;
}

/* Without the pass, flushing must have changed many results, or the tests prove nothing. */
static void test_random_loops(void **state)
{
    (void)state;
    assert_in_range(compare_loops(RANDOM_LOOPS).wrong, N_KERNELS / 12, N_KERNELS);
}

static void test_tiles(void **state)
{
    (void)state;
    assert_in_range(compare_loops(TILES).wrong, N_KERNELS / 4, N_KERNELS);
}

static void test_orbits(void **state)
{
    const struct found n = compare_loops(ORBITS);

    (void)state;
    assert_in_range(n.wrong, N_KERNELS / 20, N_KERNELS);
    assert_in_range(n.copied, N_KERNELS / 3, N_KERNELS);
}

static void test_pulls(void **state)
{
    (void)state;
    assert_in_range(compare_loops(PULLS).wrong, N_KERNELS / 20, N_KERNELS);
}

/* A sum of numbers in shared memory: `begins` + first * second, and then zeros, which count as ordinary. */
static void build_sum(struct bench *bench, uint32_t begins, uint32_t first, uint32_t second)
{
    struct maker m = {.at = {.fn = bench->fn, .block = ct_block_create(bench->fn)}, .space = CT_SPACE_LOCAL};
    struct ct_block *loop = ct_block_create(bench->fn), *done = ct_block_create(bench->fn);
    ct_value count, factor, zero, sum;

    bench->fn->target = &target;
    put_value(&m, 1, ct_const32(&m.at, begins));
    put_value(&m, 2, ct_const32(&m.at, first));
    put_value(&m, 3, ct_const32(&m.at, second));
    sum = ct_copy(&m.at, get(&m, 1));
    count = ct_const32(&m.at, 0);
    jump(&m, loop);
    factor = get(&m, 2);
    zero = get(&m, 3);
    put_value(&m, 2, ct_const32(&m.at, 0x3f800000));
    put_value(&m, 3, ct_const32(&m.at, 0));
    m.space = CT_SPACE_SHARED;
    put_value(&m, 800, ct_const32(&m.at, 0));
    put_value(&m, 801, zero);
    zero = get(&m, 800);
    ct_assign(&m.at, sum, fused(&m, factor, get(&m, 801), sum));
    for (unsigned i = 0; i < 8; i++)
        ct_assign(&m.at, sum, fused(&m, zero, zero, sum));
    repeat(&m, count, 3, loop, done);
    emit_event(&m.at, 1000, sum);
    ct_emit_insn(&m.at, CT_OP_RET, PTX_NONE, 0, 0);
}

/* An accumulator that is not checked in each iteration is not flushed if it is subnormal: initially, or after the first iteration. */
static void test_sums_that_are_subnormal(void **state)
{
    static const struct {
        uint32_t begins, first, second, sum;
    } rows[] = {
        {5, 0x3f800000, 0, 5}, {5, 0, 0x3e800000, 5}, {0, 0x01000000, 0x3e800000, 0x00400000}, {0x80000003, 0x00000010, 0x3e800000, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct trace found;
        struct bench bench;

        bench_init(&bench);
        build_sum(&bench, rows[i].begins, rows[i].first, rows[i].second);
        run_pass(&bench, "make_reducible", ct_pass_make_reducible, CT_PROP_REDUCIBLE);
        run_pass(&bench, "ssa", ct_pass_ssa, CT_PROP_SSA);
        run_pass(&bench, "guard", ct_pass_guard, 0);
        run_ir_flushing(bench.fn, &found);
        assert_int_equal(found.n, 1);
        assert_int_equal(found.events[0].value, rows[i].sum);
        bench_finish(&bench);
    }
}

/* examples/mandelbrot: x, y, and the numbers that are added to them; an initial value of 0 is a constant. */
static void build_mandelbrot(struct bench *bench, const uint32_t bits[4])
{
    struct maker m = {.at = {.fn = bench->fn, .block = ct_block_create(bench->fn)}, .space = CT_SPACE_LOCAL};
    struct ct_block *loop = ct_block_create(bench->fn), *inside = ct_block_create(bench->fn), *done = ct_block_create(bench->fn);
    ct_value v[4], count, xx, yy, next;

    bench->fn->target = &target;
    for (unsigned i = 0; i < 4; i++) {
        const bool is_known = i < 2 && !bits[0] && !bits[1];

        put_value(&m, i, ct_const32(&m.at, bits[i]));
        v[i] = is_known ? ct_const32(&m.at, 0) : ct_copy(&m.at, get(&m, i));
    }
    count = ct_const32(&m.at, 0);
    jump(&m, loop);
    xx = f32_operation(&m, CT_OP_FMUL, v[0], v[0]);
    yy = f32_operation(&m, CT_OP_FMUL, v[1], v[1]);
    branch(&m, ct_fcmp(&m.at, PTX_F32, PTX_GT, f32_operation(&m, CT_OP_FADD, xx, yy), ct_const32(&m.at, 0x40800000)), done, inside);
    m.at.block = inside;
    next = fused(&m, f32_operation(&m, CT_OP_FADD, v[0], v[0]), v[1], v[3]);
    ct_assign(&m.at, v[0], f32_operation(&m, CT_OP_FADD, f32_operation(&m, CT_OP_FSUB, xx, yy), v[2]));
    ct_assign(&m.at, v[1], next);
    emit_event(&m.at, 500, v[1]);
    repeat(&m, count, 6, loop, done);
    emit_event(&m.at, 1000, v[0]);
    ct_emit_insn(&m.at, CT_OP_RET, PTX_NONE, 0, 0);
}

/* Initial values and addends at the limits of the run-time check. */
static void test_edges_of_orbits(void **state)
{
    static const uint32_t numbers[] = {0,          0x80000000, 0x3f000000, 0x1f800000, 0x20000000, 0xa17fffff,
                                       0x21800000, 0xa1800001, 0x2b7fffff, 0x2b800000, 0x53800000, 0x53800001,
                                       0x00000001, 0x80400000, 0x7f800000, 0x7fc00000, 0x0c000000};
    enum { N = sizeof numbers / sizeof *numbers };
    unsigned n_copied = 0;

    (void)state;
    for (unsigned i = 0; i < N * N * 8; i++) {
        static const uint32_t starts[8][2] = {{0, 0},
                                              {0x1f800000, 0x1f800001},
                                              {0x20000000, 0xa0000001},
                                              {0x3f000000, 0x00000003},
                                              {0x0c000000, 0x3f800000},
                                              {0x7fc00000, 0x3f800000},
                                              {0, 0x3e800000},
                                              {0xbf800000, 0}};
        const uint32_t bits[4] = {starts[i % 8][0], starts[i % 8][1], numbers[i / 8 % N], numbers[i / 8 / N]};
        static struct trace wanted, found;
        struct bench bench;

        bench_init(&bench);
        build_mandelbrot(&bench, bits);
        run_ir(bench.fn, &wanted);
        run_pass(&bench, "make_reducible", ct_pass_make_reducible, CT_PROP_REDUCIBLE);
        run_pass(&bench, "ssa", ct_pass_ssa, CT_PROP_SSA);
        run_pass(&bench, "guard", ct_pass_guard, 0);
        run_ir_flushing(bench.fn, &found);
        assert_same_trace(&wanted, &found);
        n_copied += count_loops(&bench) > 1;
        bench_finish(&bench);
    }
    assert_int_equal(n_copied, N * N * 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_loops),
                                       cmocka_unit_test(test_tiles),
                                       cmocka_unit_test(test_orbits),
                                       cmocka_unit_test(test_pulls),
                                       cmocka_unit_test(test_sums_that_are_subnormal),
                                       cmocka_unit_test(test_edges_of_orbits)};

    if (setjmp(bench_exhausted))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
