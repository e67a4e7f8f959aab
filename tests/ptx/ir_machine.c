/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of the IR, written from ir_ops.def alone, without the compiler's constant folding. */
#include "ir_machine.h"
#include "../float_bits.h"
#include "ptx2spv/ir/builder.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BLOCKS_BETWEEN_EVENTS 2000

enum { FRAME_BYTES = 4096, OBJECT_BYTES = 64, EXCHANGE_BASE = FRAME_BYTES - 8 };

struct machine {
    struct ct_fn *fn;
    uint64_t *values;
    struct trace *trace;
    bool flushes, estimates;
    int32_t ulps;                /* error of f32 roots, quotients and inverse roots in units in the last place */
    uint8_t frame[FRAME_BYTES];  /* before layout each object has OBJECT_BYTES of it */
    uint8_t shared[FRAME_BYTES]; /* its last two words are the exchange area; the machine executes a single thread */
};

static unsigned bits_of(const struct machine *m, ct_value value)
{
    return ct_width_bits(m->fn->values.v[value.i].width);
}

static uint64_t mask(unsigned bits)
{
    return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static int64_t as_signed(uint64_t value, unsigned bits)
{
    value &= mask(bits);
    return value >> (bits - 1) & 1 ? (int64_t)(value | ~mask(bits)) : (int64_t)value;
}

static uint64_t compare(const struct ct_insn *insn, uint64_t a, uint64_t b, unsigned bits)
{
    const int64_t sa = as_signed(a, bits), sb = as_signed(b, bits);
    const bool is_signed = ptx_type_is_signed(insn->type);
    const bool less = is_signed ? sa < sb : a < b;

    switch (insn->compare) {
    case PTX_EQ:
        return a == b;
    case PTX_NE:
        return a != b;
    case PTX_LT:
        return less;
    case PTX_LE:
        return less || a == b;
    case PTX_GT:
        return !less && a != b;
    case PTX_GE:
        return !less;
    }
    fail_msg("comparison %u", insn->compare);
    return 0;
}

static uint64_t wide_product(const struct ct_insn *insn, uint64_t a, uint64_t b, unsigned bits)
{
    return ptx_type_is_signed(insn->type) ? (uint64_t)(as_signed(a, bits) * as_signed(b, bits)) : a * b;
}

static uint64_t minimum(const struct ct_insn *insn, uint64_t a, uint64_t b, unsigned bits)
{
    return (ptx_type_is_signed(insn->type) ? as_signed(a, bits) < as_signed(b, bits) : a < b) ? a : b;
}

static uint64_t count_leading_zeros(uint64_t a)
{
    uint64_t n = 0;

    while (n < 32 && !(a >> (31 - n) & 1))
        n++;
    return n;
}

static uint64_t reverse(uint64_t a)
{
    uint64_t result = 0;

    for (int i = 0; i < 32; i++)
        result = result << 1 | (a >> i & 1);
    return result;
}

static uint64_t population(uint64_t a)
{
    uint64_t n = 0;

    for (; a; a >>= 1)
        n += a & 1;
    return n;
}

/* ---- floats: all NaNs are the same ---- */

static double flushed32(double x)
{
    return fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}

static double read_float(const struct machine *m, enum ptx_type type, uint64_t bits, bool may_flush)
{
    if (type == PTX_F64)
        return f64_of(bits);
    return m->flushes && may_flush ? flushed32(f32_of(bits)) : f32_of(bits);
}

/* The encoding of a value; for type f32 the value is an f32. */
static uint64_t float_bits(enum ptx_type type, double x)
{
    if (isnan(x))
        return type == PTX_F64 ? UINT64_C(0x7fffffffffffffff) : 0x7fffffff;
    return type == PTX_F64 ? bits_of_f64(x) : bits_of_f32((float)x);
}

/* Whether a result is flushed is decided before it is rounded to the precision of subnormals: the result for an operand scaled by 2^24
 * shows it. */
float flushing_fma(float a, float b, float c)
{
    const float x = (float)flushed32(a), y = (float)flushed32(b), z = (float)flushed32(c), result = fmaf(x, y, z);

    if (fabsf(result) <= 0x1p-126f && fabsf(fmaf(x * 0x1p24f, y, z * 0x1p24f)) < 0x1p-102f)
        return copysignf(0, result);
    return result;
}

/* f32. */
static double fused(const struct machine *m, double a, double b, double c)
{
    return m->flushes ? flushing_fma((float)a, (float)b, (float)c) : fmaf((float)a, (float)b, (float)c);
}

/* The driver's result for a positive f32. */
static double estimate32(const struct machine *m, double exact)
{
    const uint64_t bits = float_bits(PTX_F32, exact);

    return isfinite(exact) && exact > 0 ? read_float(m, PTX_F32, bits + (uint64_t)(int64_t)m->ulps, false) : exact;
}

static double inverse_root32(const struct machine *m, double x)
{
    return estimate32(m, 1 / sqrt(m->flushes ? flushed32(x) : x));
}

/* Checks that the driver's operations on f64 are executed only where they must be: see run_ir_estimating. */
static bool ends_with_ones(double x)
{
    return (uint32_t)float_bits(PTX_F64, x) == UINT32_MAX;
}

static double root_or_neighbour(const struct machine *m, double x)
{
    const double root = sqrt(x);

    return m->estimates && x >= 0x1p-700 && x < 0x1p1000 && !ends_with_ones(root) ? nextafter(root, 0) : root;
}

static double quotient_or_neighbour(const struct machine *m, double a, double b)
{
    return m->estimates && a != 0 && b >= 0x1p-290 && b < 0x1p500 && !ends_with_ones(b) ? nextafter(a / b, 0) : a / b;
}

static bool compare_floats(const struct ct_insn *insn, double a, double b)
{
    switch (insn->compare) {
    case PTX_EQ:
        return a == b;
    case PTX_NE:
        return a < b || a > b;
    case PTX_LT:
        return a < b;
    case PTX_GT:
        return a > b;
    case PTX_LE:
        return a <= b;
    case PTX_GE:
        return a >= b;
    case PTX_NEU:
        return !(a == b);
    case PTX_LTU:
        return !(a >= b);
    case PTX_GTU:
        return !(a <= b);
    case PTX_LEU:
        return !(a > b);
    case PTX_GEU:
        return !(a < b);
    }
    fail_msg("comparison of floats %u", insn->compare);
    return false;
}

static bool computes_floats(enum ct_op op)
{
    return op == CT_OP_FADD || op == CT_OP_FSUB || op == CT_OP_FMUL || op == CT_OP_FFMA || op == CT_OP_FMIN || op == CT_OP_FABS ||
           op == CT_OP_FCMP || op == CT_OP_FTOF || op == CT_OP_ITOF || op == CT_OP_FNEG || op == CT_OP_FDIV || op == CT_OP_FSQRT ||
           op == CT_OP_FRSQRT || op == CT_OP_FTOI;
}

static uint64_t compute_floats(const struct machine *m, const struct ct_insn *insn)
{
    const enum ct_op op = insn->op;
    const bool may_flush = op == CT_OP_FFMA || op == CT_OP_FMIN || op == CT_OP_FCMP || op == CT_OP_FTOF || op == CT_OP_FRSQRT;
    double x[3] = {0};

    for (uint32_t i = 0; op != CT_OP_ITOF && i < insn->n_operands; i++)
        x[i] = read_float(m, insn->type, m->values[insn->operands[i].i], may_flush);
    switch ((unsigned)op) {
    case CT_OP_FADD: /* in f32 computed in f64, which gives the same results */
        return float_bits(insn->type, x[0] + x[1]);
    case CT_OP_FSUB:
        return float_bits(insn->type, x[0] - x[1]);
    case CT_OP_FMUL:
        return float_bits(insn->type, x[0] * x[1]);
    case CT_OP_FFMA:
        return float_bits(insn->type, insn->type == PTX_F64 ? fma(x[0], x[1], x[2]) : fused(m, x[0], x[1], x[2]));
    case CT_OP_FNEG:
        return float_bits(insn->type, -x[0]);
    case CT_OP_FDIV:
        return float_bits(insn->type, insn->type == PTX_F32 ? estimate32(m, x[0] / x[1]) : quotient_or_neighbour(m, x[0], x[1]));
    case CT_OP_FSQRT:
        return float_bits(insn->type, insn->type == PTX_F32 ? estimate32(m, sqrt(x[0])) : root_or_neighbour(m, x[0]));
    case CT_OP_FRSQRT:
        return float_bits(insn->type, inverse_root32(m, x[0]));
    case CT_OP_FMIN:
        return float_bits(insn->type, fmin(x[0], x[1]));
    case CT_OP_FABS:
        return float_bits(insn->type, fabs(x[0]));
    case CT_OP_FCMP:
        return compare_floats(insn, x[0], x[1]);
    case CT_OP_FTOF:
        return float_bits(insn->type2, x[0]);
    case CT_OP_FTOI: /* of what is out of range, some value */
        return x[0] >= 0 && x[0] < 0x1p32 ? (uint64_t)x[0] : x[0] >= -0x1p31 && x[0] < 0 ? (uint32_t)(int32_t)x[0] : 0;
    default: /* ITOF */
        return float_bits(insn->type2,
                          insn->type == PTX_S32 ? (double)(int32_t)m->values[insn->operands[0].i] : (double)m->values[insn->operands[0].i]);
    }
}

static uint64_t compute(const struct machine *m, const struct ct_insn *insn)
{
    const uint64_t a = insn->n_operands > 0 ? m->values[insn->operands[0].i] : 0;
    const uint64_t b = insn->n_operands > 1 ? m->values[insn->operands[1].i] : 0;
    const uint64_t c = insn->n_operands > 2 ? m->values[insn->operands[2].i] : 0;
    const unsigned bits = insn->n_operands ? bits_of(m, insn->operands[0]) : 0;

    switch (insn->op) {
    case CT_OP_CONST:
        return insn->imm;
    case CT_OP_UNDEF:
        return 0;
    case CT_OP_SYSVAL:
        return insn->sreg == CT_SYS_EXCHANGE_BASE ? EXCHANGE_BASE : insn->sreg * 0x9e3779b9u >> 16;
    case CT_OP_COPY:
        return a;
    case CT_OP_SELECT:
        return a ? b : c;
    case CT_OP_ADD:
        return a + b;
    case CT_OP_SUB:
        return a - b;
    case CT_OP_MUL:
        return a * b;
    case CT_OP_MULHI:
        return wide_product(insn, a, b, bits) >> bits;
    case CT_OP_MULWIDE:
        return wide_product(insn, a, b, bits);
    case CT_OP_NEG:
        return ~a + 1;
    case CT_OP_AND:
        return a & b;
    case CT_OP_OR:
        return a | b;
    case CT_OP_XOR:
        return a ^ b;
    case CT_OP_NOT:
        return ~a;
    case CT_OP_SHL:
        return b < bits ? a << b : 0;
    case CT_OP_SHR:
        return b >= bits ? 0 : ptx_type_is_signed(insn->type) ? (uint64_t)(as_signed(a, bits) >> b) : a >> b;
    case CT_OP_MIN:
        return minimum(insn, a, b, bits);
    case CT_OP_MAX:
        return minimum(insn, a, b, bits) == a ? b : a;
    case CT_OP_POPC:
        return population(a);
    case CT_OP_CLZ:
        return count_leading_zeros(a);
    case CT_OP_BREV:
        return reverse(a);
    case CT_OP_ICMP:
        return compare(insn, a, b, bits);
    case CT_OP_TRUNC:
        return a;
    case CT_OP_EXT:
        return ptx_type_is_signed(insn->type) ? (uint64_t)as_signed(a, ptx_type_bits(insn->type)) : a & mask(ptx_type_bits(insn->type));
    default:
        fail_msg("the machine does not know %s", ct_op_infos[insn->op].name);
        return 0;
    }
}

static uint64_t packed(const struct machine *m, const struct ct_insn *insn)
{
    uint64_t whole = 0;
    unsigned shift = 0;

    for (uint32_t i = 0; i < insn->n_operands; i++) {
        whole |= m->values[insn->operands[i].i] << shift;
        shift += bits_of(m, insn->operands[i]);
    }
    return whole;
}

static void set(struct machine *m, ct_value result, uint64_t value)
{
    m->values[result.i] = value & mask(bits_of(m, result));
}

/* One element of the frame or of shared memory, little-endian; 8 to 64 bits. */
static uint64_t read_frame(const uint8_t *frame, uint64_t at, unsigned bytes)
{
    uint64_t value = 0;

    assert_true(at + bytes <= FRAME_BYTES);
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)frame[at + i] << 8 * i;
    return value;
}

static void write_frame(uint8_t *frame, uint64_t at, unsigned bytes, uint64_t value)
{
    assert_true(at + bytes <= FRAME_BYTES);
    for (unsigned i = 0; i < bytes; i++)
        frame[at + i] = (uint8_t)(value >> 8 * i);
}

static void access_frame(struct machine *m, const struct ct_insn *insn)
{
    const unsigned bytes = ptx_type_bits(insn->type) / 8;
    uint8_t *frame = insn->space == CT_SPACE_SHARED ? m->shared : m->frame;
    uint64_t at = (uint64_t)insn->offset;

    at += insn->local ? (ct_local_root(m->fn, insn->local) - 1) * OBJECT_BYTES : m->values[insn->operands[0].i];
    for (uint32_t i = 0; insn->op == CT_OP_STORE && i + 1 < insn->n_operands; i++)
        write_frame(frame, at + i * bytes, bytes, m->values[insn->operands[i + 1].i]);
    for (uint32_t i = 0; insn->op == CT_OP_LOAD && i < insn->n_results; i++) {
        const uint64_t value = read_frame(frame, at + i * bytes, bytes);

        set(m, insn->results[i], ptx_type_is_signed(insn->type) ? (uint64_t)as_signed(value, 8 * bytes) : value);
    }
}

static void run_insn(struct machine *m, const struct ct_insn *insn)
{
    if ((insn->op == CT_OP_STORE || insn->op == CT_OP_LOAD) && (insn->space == CT_SPACE_LOCAL || insn->space == CT_SPACE_SHARED)) {
        access_frame(m, insn);
    } else if (insn->op == CT_OP_BARRIER) {
        return;
    } else if (insn->op == CT_OP_STORE) {
        struct event *event = &m->trace->events[m->trace->n++];
        const uint64_t base = insn->operands[0].i ? m->values[insn->operands[0].i] : 0;

        event->offset = base + (uint64_t)insn->offset;
        event->value = m->values[insn->operands[1].i];
    } else if (insn->op == CT_OP_PACK) {
        set(m, insn->results[0], packed(m, insn));
    } else if (insn->op == CT_OP_UNPACK) {
        const uint64_t whole = m->values[insn->operands[0].i];

        for (uint32_t r = 0; r < insn->n_results; r++)
            set(m, insn->results[r], whole >> (r * bits_of(m, insn->results[r])));
    } else {
        set(m, insn->results[0], computes_floats(insn->op) ? compute_floats(m, insn) : compute(m, insn));
    }
}

/* Phis read all their operands before one of them is written. */
static void enter_block(struct machine *m, const struct ct_block *from, uint32_t successor)
{
    const struct ct_block *block = from->succs[successor];
    uint64_t read[512];
    uint32_t nth = 0, slot = 0, n = 0;

    if (block->first->op != CT_OP_PHI)
        return;
    for (uint32_t s = 0; s < successor; s++)
        nth += from->succs[s] == block;
    while (block->preds.v[slot] != from || nth-- > 0)
        assert_true(++slot < block->preds.n);
    for (const struct ct_insn *phi = block->first; phi->op == CT_OP_PHI; phi = phi->next) {
        assert_true(n < 512);
        read[n++] = m->values[phi->operands[slot].i];
    }
    n = 0;
    for (const struct ct_insn *phi = block->first; phi->op == CT_OP_PHI; phi = phi->next)
        set(m, phi->results[0], read[n++]);
}

/* The successor that is taken, -1 at the end. */
static int run_terminator(const struct machine *m, const struct ct_insn *insn)
{
    const uint64_t a = insn->n_operands ? m->values[insn->operands[0].i] : 0;

    switch (insn->op) {
    case CT_OP_BR:
        return 0;
    case CT_OP_CBR:
        return a ? 0 : 1;
    case CT_OP_SWITCH:
        return (int)(a < insn->block->n_succs ? a : insn->block->n_succs - 1);
    default:
        return -1;
    }
}

static void run(struct machine m, struct trace *out)
{
    const struct ct_block *block = m.fn->blocks.v[0];
    int quiet = 0;

    m.trace = out;
    m.values = calloc(m.fn->values.n, sizeof *m.values);
    assert_non_null(m.values);
    out->n = 0;
    out->end = TRACE_GAVE_UP;
    while (quiet++ < MAX_BLOCKS_BETWEEN_EVENTS) {
        const struct ct_insn *insn = block->first;
        int next;

        while (insn->op == CT_OP_PHI)
            insn = insn->next;
        for (; insn != block->last && out->n < 256; insn = insn->next) {
            run_insn(&m, insn);
            quiet = insn->op == CT_OP_STORE ? 0 : quiet;
        }
        if (out->n == 256) {
            out->end = TRACE_FULL;
            break;
        }
        if ((next = run_terminator(&m, block->last)) < 0) {
            out->end = TRACE_RETURNED;
            break;
        }
        enter_block(&m, block, (uint32_t)next);
        block = block->succs[next];
    }
    free(m.values);
}

void run_ir(struct ct_fn *fn, struct trace *out)
{
    run((struct machine){.fn = fn}, out);
}

void run_ir_flushing(struct ct_fn *fn, struct trace *out)
{
    run((struct machine){.fn = fn, .flushes = true}, out);
}

void run_ir_estimating(struct ct_fn *fn, int ulps, struct trace *out)
{
    run((struct machine){.fn = fn, .estimates = true, .ulps = ulps}, out);
}

void emit_event(struct ct_cursor *at, uint64_t offset, ct_value x)
{
    const ct_value address = ct_const64(at, 0);
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_STORE, ct_width_at(at, x) == CT_W_64 ? PTX_B64 : PTX_B32, 0, 2);

    insn->space = CT_SPACE_GLOBAL;
    insn->offset = (int64_t)offset;
    insn->operands[0] = address;
    insn->operands[1] = x;
}

void assert_same_trace(const struct trace *wanted, const struct trace *found)
{
    for (uint32_t i = 0; i < wanted->n && i < found->n; i++) {
        assert_int_equal(wanted->events[i].offset, found->events[i].offset);
        assert_int_equal(wanted->events[i].value, found->events[i].value);
    }
    if (wanted->end == TRACE_GAVE_UP)
        return;
    assert_int_equal(wanted->n, found->n);
    assert_int_equal(wanted->end, found->end);
}

/* ---- the test bench ---- */

jmp_buf bench_exhausted;

static void keep_diagnostic(void *user, const struct ptx2spv_diagnostic *diagnostic)
{
    struct bench *bench = user;

    const size_t used = strlen(bench->diagnostics);

    bench->n_diagnostics++;
    snprintf(bench->diagnostics + used, sizeof bench->diagnostics - used, "%s\n", diagnostic->text);
}

void bench_init(struct bench *bench)
{
    *bench = (struct bench){.source = {.name = "test", .is_entry = true, .has_body = true}};
    bench->compilation.arena.on_exhausted = bench->compilation.scratch.on_exhausted = &bench_exhausted;
    bench->compilation.options.on_diagnostic = keep_diagnostic;
    bench->compilation.options.user = bench;
    bench->fn = ct_fn_create(&bench->compilation, NULL, &bench->source, NULL);
}

void bench_finish(struct bench *bench)
{
    ct_arena_finish(&bench->compilation.scratch);
    ct_arena_finish(&bench->compilation.arena);
}

uint32_t random_below(uint64_t *state, uint32_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 16) % limit);
}

/* ---- random code ---- */

enum { N_REGISTERS = 5 };

struct generator {
    struct ct_fn *fn;
    uint64_t *random;
    struct ct_cursor at;
    ct_value registers[4][N_REGISTERS]; /* by width */
    uint64_t n_stores;
    bool overlapping; /* accesses to local memory may overlap partly */
};

static const enum ptx_type unsigned_types[] = {PTX_PRED, PTX_U16, PTX_U32, PTX_U64};
static const enum ptx_type signed_types[] = {PTX_PRED, PTX_S16, PTX_S32, PTX_S64};

static ct_value any(struct generator *g, enum ct_width width)
{
    return g->registers[width][random_below(g->random, N_REGISTERS)];
}

static enum ptx_type any_type(struct generator *g, enum ct_width width)
{
    return random_below(g->random, 2) ? signed_types[width] : unsigned_types[width];
}

static struct ct_insn *assign(struct generator *g, enum ct_op op, enum ptx_type type, ct_value to, uint32_t n_operands)
{
    struct ct_insn *insn = ct_emit_insn(&g->at, op, type, 1, n_operands);

    insn->results[0] = to;
    return insn;
}

static void emit_constant(struct generator *g, enum ct_width width)
{
    static const uint64_t liked[] = {0, 1, 2, 3, 4, 8, 31, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX, 0x100000000};
    struct ct_insn *insn = assign(g, CT_OP_CONST, unsigned_types[width], any(g, width), 0);

    insn->imm = liked[random_below(g->random, sizeof liked / sizeof *liked)] & mask(ct_width_bits(width));
}

static void emit_binary(struct generator *g, enum ct_width width)
{
    static const enum ct_op ops[] = {CT_OP_ADD, CT_OP_SUB, CT_OP_MUL, CT_OP_AND, CT_OP_OR,   CT_OP_XOR,
                                     CT_OP_MIN, CT_OP_MAX, CT_OP_SHL, CT_OP_SHR, CT_OP_MULHI};
    const uint32_t n_ops = sizeof ops / sizeof *ops - (width == CT_W_64); /* MULHI: 16 and 32 bits only */
    const enum ct_op op = ops[random_below(g->random, n_ops)];
    const enum ptx_type type = any_type(g, width);
    ct_value b = any(g, width);
    struct ct_insn *insn;

    if (op == CT_OP_SHL || op == CT_OP_SHR)
        b = ct_emit_const(&g->at, CT_W_32, random_below(g->random, ct_width_bits(width)));
    insn = assign(g, op, type, any(g, width), 2);
    insn->operands[0] = any(g, width);
    insn->operands[1] = b;
}

static void emit_compare(struct generator *g, enum ct_width width)
{
    struct ct_insn *insn = assign(g, CT_OP_ICMP, any_type(g, width), any(g, CT_W_PRED), 2);

    insn->compare = (uint8_t)(PTX_EQ + random_below(g->random, 6));
    insn->operands[0] = any(g, width);
    insn->operands[1] = any(g, width);
}

static void emit_select(struct generator *g, enum ct_width width)
{
    struct ct_insn *insn = assign(g, CT_OP_SELECT, unsigned_types[width], any(g, width), 3);

    insn->operands[0] = any(g, CT_W_PRED);
    insn->operands[1] = any(g, width);
    insn->operands[2] = any(g, width);
}

static void emit_unary(struct generator *g, enum ct_op op, enum ptx_type type, enum ct_width to, enum ct_width from)
{
    assign(g, op, type, any(g, to), 1)->operands[0] = any(g, from);
}

static void emit_resize(struct generator *g, enum ct_width width)
{
    struct ct_insn *insn;

    switch (random_below(g->random, 8)) {
    case 0:
        emit_unary(g, CT_OP_EXT, any_type(g, CT_W_32), CT_W_64, CT_W_32);
        return;
    case 1:
        emit_unary(g, CT_OP_EXT, any_type(g, CT_W_16), width > CT_W_16 ? width : CT_W_32, CT_W_16);
        return;
    case 2:
        emit_unary(g, CT_OP_EXT, random_below(g->random, 2) ? PTX_S8 : PTX_U8, CT_W_16, width);
        return;
    case 3:
        emit_unary(g, CT_OP_TRUNC, PTX_NONE, CT_W_32, CT_W_64);
        return;
    case 4:
        emit_unary(g, CT_OP_TRUNC, PTX_NONE, CT_W_16, width > CT_W_16 ? width : CT_W_64);
        return;
    case 5:
        insn = assign(g, CT_OP_MULWIDE, any_type(g, CT_W_32), any(g, CT_W_64), 2);
        insn->operands[0] = any(g, CT_W_32);
        insn->operands[1] = any(g, CT_W_32);
        return;
    case 6:
        insn = assign(g, CT_OP_PACK, PTX_B64, any(g, CT_W_64), 2);
        insn->operands[0] = any(g, CT_W_32);
        insn->operands[1] = any(g, CT_W_32);
        return;
    default:
        insn = ct_emit_insn(&g->at, CT_OP_UNPACK, PTX_B32, 2, 1);
        insn->results[0] = g->registers[CT_W_32][0];
        insn->results[1] = g->registers[CT_W_32][1 + random_below(g->random, N_REGISTERS - 1)];
        insn->operands[0] = any(g, CT_W_64);
        return;
    }
}

static void emit_store(struct generator *g, enum ct_width width)
{
    struct ct_insn *insn = ct_emit_insn(&g->at, CT_OP_STORE, unsigned_types[width], 0, 2);

    insn->space = CT_SPACE_GLOBAL;
    insn->operands[0] = any(g, CT_W_64);
    insn->operands[1] = any(g, width);
    insn->offset = (int64_t)(8 * g->n_stores++);
}

static void emit_any(struct generator *g)
{
    const enum ct_width width = (enum ct_width)(CT_W_16 + random_below(g->random, 3));

    switch (random_below(g->random, 12)) {
    case 0:
    case 1:
        emit_constant(g, width);
        return;
    case 2:
    case 3:
    case 4:
    case 5:
        emit_binary(g, width);
        return;
    case 6:
        emit_compare(g, width);
        return;
    case 7:
        emit_select(g, width);
        return;
    case 8:
        emit_resize(g, width);
        return;
    case 9:
        emit_unary(g, random_below(g->random, 2) ? CT_OP_NOT : CT_OP_NEG, unsigned_types[width], width, width);
        return;
    case 10:
        if (random_below(g->random, 3) == 0) {
            static const enum ct_op ops[] = {CT_OP_POPC, CT_OP_CLZ, CT_OP_BREV};

            emit_unary(g, ops[random_below(g->random, 3)], PTX_B32, CT_W_32, CT_W_32);
        } else if (random_below(g->random, 2)) {
            emit_unary(g, CT_OP_NOT, PTX_PRED, CT_W_PRED, CT_W_PRED);
        } else {
            emit_unary(g, CT_OP_COPY, PTX_NONE, width, width);
        }
        return;
    default:
        emit_store(g, width);
        return;
    }
}

/* An access to a local object: mostly at its natural offset, sometimes overlapping its neighbours. */
static void emit_local(struct generator *g)
{
    static const enum ptx_type types[] = {PTX_U8, PTX_S8, PTX_U16, PTX_S16, PTX_B32, PTX_S32, PTX_U64, PTX_F64};
    const enum ptx_type type = types[random_below(g->random, 8)];
    const unsigned bytes = ptx_type_bits(type) / 8;
    const enum ct_width least = ct_width_of(type), width = (enum ct_width)(least + random_below(g->random, CT_W_64 - least + 1));
    const bool load = random_below(g->random, 2), overlapping = g->overlapping && random_below(g->random, 10) == 0;
    struct ct_insn *insn = ct_emit_insn(&g->at, load ? CT_OP_LOAD : CT_OP_STORE, type, load, load ? 1 : 2);

    /* Elements of one size are in one quarter of the object: otherwise nearly all would overlap. */
    insn->space = CT_SPACE_LOCAL;
    insn->local = 1 + random_below(g->random, g->fn->locals.n);
    insn->offset =
        overlapping ? random_below(g->random, OBJECT_BYTES - 8) : __builtin_ctz(bytes) * 16 + random_below(g->random, 16 / bytes) * bytes;
    if (load)
        insn->results[0] = any(g, width);
    else
        insn->operands[1] = any(g, width);
}

static void emit_terminator(struct generator *g, struct ct_block *const *blocks, uint32_t n)
{
    struct ct_block *targets[5];
    const uint32_t kind = random_below(g->random, 16), n_targets = kind < 1 ? 0 : kind < 6 ? 1 : kind < 14 ? 2 : 5;
    const enum ct_op op = n_targets == 0 ? CT_OP_RET : n_targets == 1 ? CT_OP_BR : n_targets == 2 ? CT_OP_CBR : CT_OP_SWITCH;
    struct ct_insn *insn = ct_emit_insn(&g->at, op, PTX_NONE, 0, n_targets >= 2);

    for (uint32_t i = 0; i < n_targets; i++)
        targets[i] = blocks[random_below(g->random, n)];
    if (n_targets >= 2)
        insn->operands[0] = any(g, n_targets == 2 ? CT_W_PRED : CT_W_32);
    ct_block_set_succs(g->fn, g->at.block, n_targets, targets);
}

static void init_generator(struct generator *g, struct bench *bench, uint64_t *random)
{
    *g = (struct generator){.fn = bench->fn, .random = random, .at = {.fn = bench->fn}};
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t i = 0; i < N_REGISTERS; i++)
            g->registers[w][i] = ct_value_create(bench->fn, (enum ct_width)w);
}

void build_random(struct bench *bench, uint64_t *random, uint32_t n_blocks)
{
    struct ct_block *blocks[256];
    struct generator g;

    assert_true(n_blocks <= 256);
    init_generator(&g, bench, random);
    for (uint32_t b = 0; b < n_blocks; b++)
        blocks[b] = ct_block_create(bench->fn);
    for (uint32_t b = 0; b < n_blocks; b++) {
        g.at.block = blocks[b];
        for (uint32_t i = random_below(random, 6); i-- > 0;)
            emit_any(&g);
        emit_terminator(&g, blocks, n_blocks);
    }
}

void build_random_kept(struct bench *bench, uint64_t *random, uint32_t n_blocks)
{
    static const enum ct_op ops[] = {CT_OP_ADD, CT_OP_SUB, CT_OP_MUL, CT_OP_AND, CT_OP_OR, CT_OP_XOR};
    enum { N_OPS = sizeof ops / sizeof *ops, N_LEAVES = 4, N_KEPT = 24 };
    ct_value kept[N_KEPT];
    struct ct_block *blocks[64];
    struct generator g;

    assert_true(n_blocks > 2 && n_blocks < 64);
    init_generator(&g, bench, random);
    for (uint32_t b = 0; b < n_blocks; b++)
        blocks[b] = ct_block_create(bench->fn);
    for (uint32_t i = 0; i < N_KEPT; i++) {
        g.at.block = blocks[i >= N_KEPT / 2];
        kept[i] = i < N_LEAVES ? ct_emit_const(&g.at, CT_W_32, random_below(random, UINT32_MAX))
                               : ct_emit2(&g.at, ops[random_below(random, N_OPS)], PTX_B32, CT_W_32, kept[random_below(random, i)],
                                          kept[random_below(random, i)]);
    }
    for (uint32_t b = 0; b < n_blocks; b++) {
        g.at.block = blocks[b];
        for (uint32_t i = b ? random_below(random, 80) : 0; i-- > 0;) {
            struct ct_insn *insn =
                assign(&g, ops[random_below(random, N_OPS)], PTX_B32, g.registers[CT_W_32][random_below(random, N_REGISTERS)], 2);

            insn->operands[0] = any(&g, CT_W_32);
            insn->operands[1] = kept[random_below(random, N_KEPT)];
        }
        emit_store(&g, CT_W_32);
        emit_any(&g);
        if (b) {
            emit_terminator(&g, blocks + 2, n_blocks - 2);
        } else {
            ct_emit_insn(&g.at, CT_OP_BR, PTX_NONE, 0, 0);
            ct_block_set_succs(bench->fn, blocks[0], 1, blocks + 1);
        }
    }
}

void build_random_locals(struct bench *bench, uint64_t *random, uint32_t n_insns)
{
    struct generator g;

    init_generator(&g, bench, random);
    g.overlapping = random_below(random, 2);
    for (uint32_t i = 0; i < 6; i++) {
        struct ct_local *local = CT_PUSH(&bench->compilation.arena, &bench->fn->locals);

        local->size_bytes = OBJECT_BYTES;
        local->align = 8;
        local->same_as = i >= 4 ? 1 + random_below(random, i) : 0;
    }
    g.at.block = ct_block_create(bench->fn);
    for (uint32_t w = CT_W_16; w <= CT_W_64; w++)
        for (uint32_t i = 0; i < N_REGISTERS; i++) {
            struct ct_insn *insn = assign(&g, CT_OP_CONST, unsigned_types[w], g.registers[w][i], 0);

            insn->imm = (*random + i) & mask(ct_width_bits((enum ct_width)w));
        }
    for (uint32_t i = 0; i < n_insns; i++) {
        emit_local(&g);
        if (random_below(random, 3) == 0)
            emit_any(&g);
    }
    for (uint32_t w = CT_W_16; w <= CT_W_64; w++)
        for (uint32_t i = 0; i < N_REGISTERS; i++)
            emit_store(&g, (enum ct_width)w);
    ct_emit_insn(&g.at, CT_OP_RET, PTX_NONE, 0, 0);
}

void build_random_straight(struct bench *bench, uint64_t *random, uint32_t n_insns)
{
    struct generator g;

    init_generator(&g, bench, random);
    g.at.block = ct_block_create(bench->fn);
    for (uint32_t i = 0; i < n_insns; i++)
        emit_any(&g);
    for (uint32_t w = CT_W_16; w <= CT_W_64; w++)
        for (uint32_t i = 0; i < N_REGISTERS; i++)
            emit_store(&g, (enum ct_width)w);
    ct_emit_insn(&g.at, CT_OP_RET, PTX_NONE, 0, 0);
}

/* Mostly forward, otherwise nearly all graphs would be endless loops. */
static struct ct_block *any_target(struct generator *g, struct ct_block *const *blocks, uint32_t b, uint32_t n)
{
    if (random_below(g->random, 8) == 0)
        return blocks[random_below(g->random, n)];
    return blocks[b + 1 + random_below(g->random, b + 4 < n ? 3 : n - b - 1)];
}

/* A comparison, or its negation, of two registers that hardly ever change. */
static ct_value emit_condition(struct generator *g)
{
    static const enum ptx_compare compares[] = {PTX_LT, PTX_LT, PTX_GE, PTX_EQ};
    struct ct_insn *insn = assign(g, CT_OP_ICMP, PTX_U32, any(g, CT_W_PRED), 2);
    const uint32_t r = random_below(g->random, 2);
    const ct_value question = insn->results[0];

    insn->compare = (uint8_t)compares[random_below(g->random, 4)];
    insn->operands[0] = g->registers[CT_W_32][r];
    insn->operands[1] = g->registers[CT_W_32][r + 1];
    if (random_below(g->random, 4) == 0)
        assign(g, CT_OP_NOT, PTX_PRED, question, 1)->operands[0] = question;
    return question;
}

static void emit_step(struct generator *g, uint32_t by)
{
    const ct_value sum = g->registers[CT_W_32][3], step = ct_emit_const(&g->at, CT_W_32, by);
    struct ct_insn *insn = assign(g, CT_OP_ADD, PTX_U32, sum, 2);

    insn->operands[0] = sum;
    insn->operands[1] = step;
}

void build_random_branches(struct bench *bench, uint64_t *random, uint32_t n_blocks)
{
    struct ct_block *blocks[256];
    struct generator g;

    assert_true(n_blocks > 1 && n_blocks <= 256);
    init_generator(&g, bench, random);
    for (uint32_t b = 0; b < n_blocks; b++)
        blocks[b] = ct_block_create(bench->fn);
    for (uint32_t b = 0; b + 1 < n_blocks; b++) {
        struct ct_block *to[2] = {any_target(&g, blocks, b, n_blocks), any_target(&g, blocks, b, n_blocks)};
        ct_value question;

        g.at.block = blocks[b];
        for (uint32_t i = b ? random_below(random, 3) : 12; i-- > 0;)
            if (!b || random_below(random, 4) == 0)
                emit_any(&g);
            else
                emit_step(&g, b);
        question = emit_condition(&g);
        ct_emit_insn(&g.at, CT_OP_CBR, PTX_NONE, 0, 1)->operands[0] = question;
        ct_block_set_succs(bench->fn, g.at.block, 2, to);
    }
    g.at.block = blocks[n_blocks - 1];
    for (enum ct_width width = CT_W_16; width <= CT_W_64; width++)
        emit_store(&g, width);
    ct_emit_insn(&g.at, CT_OP_RET, PTX_NONE, 0, 0);
}

/* ---- loops ---- */

/* Goes to `out` if the counter has, or has not, reached the limit, and to a new block otherwise. */
static void emit_test(struct generator *g, ct_value counter, ct_value limit, struct ct_block *out)
{
    const bool equal = random_below(g->random, 2);
    struct ct_block *on = ct_block_create(g->fn), *to[2] = {equal ? out : on, equal ? on : out};
    struct ct_insn *compare = assign(g, CT_OP_ICMP, PTX_U32, any(g, CT_W_PRED), 2);
    ct_value question = compare->results[0];

    compare->compare = equal ? PTX_EQ : PTX_NE;
    compare->operands[0] = counter;
    compare->operands[1] = limit;
    if (random_below(g->random, 4) == 0) {
        assign(g, CT_OP_NOT, PTX_PRED, question, 1)->operands[0] = question;
        to[0] = equal ? on : out;
        to[1] = equal ? out : on;
    }
    ct_emit_insn(&g->at, CT_OP_CBR, PTX_NONE, 0, 1)->operands[0] = question;
    ct_block_set_succs(g->fn, g->at.block, 2, to);
    g->at.block = on;
}

static void emit_jump(struct generator *g, struct ct_block *to)
{
    ct_emit_insn(&g->at, CT_OP_BR, PTX_NONE, 0, 0);
    ct_block_set_succs(g->fn, g->at.block, 1, &to);
}

/* Counts modulo 8, so that each loop ends. */
static void emit_count(struct generator *g, ct_value counter)
{
    const ct_value next = ct_emit2(&g->at, CT_OP_ADD, PTX_U32, CT_W_32, counter, ct_emit_const(&g->at, CT_W_32, 1));
    const ct_value mask = ct_emit_const(&g->at, CT_W_32, 7);
    struct ct_insn *insn = assign(g, CT_OP_AND, PTX_B32, counter, 2);

    insn->operands[0] = next;
    insn->operands[1] = mask;
}

static void emit_loops(struct generator *g, const ct_value *counters, const ct_value *limits, uint32_t n)
{
    struct ct_block *head = ct_block_create(g->fn), *out = ct_block_create(g->fn);
    const uint32_t tests = 1 + random_below(g->random, 7); /* before, at the head, at the end */

    assign(g, CT_OP_COPY, PTX_NONE, counters[0], 1)->operands[0] = limits[random_below(g->random, 3)];
    if (tests & 1)
        emit_test(g, counters[0], limits[0], out);
    emit_jump(g, head);
    g->at.block = head;
    if (tests & 2 || !(tests & 4))
        emit_test(g, counters[0], limits[0], out);
    if (n > 1)
        emit_loops(g, counters + 1, limits + 1, n - 1);
    emit_event(&g->at, 8 * g->n_stores++, counters[0]);
    emit_count(g, counters[0]);
    if (tests & 4)
        emit_test(g, counters[0], limits[0], out);
    emit_jump(g, head);
    g->at.block = out;
}

void build_random_loops(struct bench *bench, uint64_t *random, uint32_t n_loops)
{
    static const enum ct_sysval inputs[] = {CT_SYS_TID_X, CT_SYS_TID_Y, CT_SYS_TID_Z, CT_SYS_CTAID_X, CT_SYS_CTAID_Y, CT_SYS_CTAID_Z};
    enum { N_INPUTS = sizeof inputs / sizeof *inputs };
    ct_value counters[N_INPUTS], limits[N_INPUTS];
    struct generator g;

    assert_true(n_loops && n_loops + 2 <= N_INPUTS);
    init_generator(&g, bench, random);
    g.at.block = ct_block_create(bench->fn);
    for (uint32_t i = 0; i < N_INPUTS; i++) {
        const ct_value mask = ct_emit_const(&g.at, CT_W_32, 7);
        struct ct_insn *input = ct_emit_insn(&g.at, CT_OP_SYSVAL, PTX_U32, 1, 0);

        input->sreg = (uint8_t)inputs[i];
        input->results[0] = ct_value_create(bench->fn, CT_W_32);
        limits[i] = ct_emit2(&g.at, CT_OP_AND, PTX_B32, CT_W_32, input->results[0], mask);
        counters[i] = ct_value_create(bench->fn, CT_W_32);
    }
    emit_loops(&g, counters, limits, n_loops);
    ct_emit_insn(&g.at, CT_OP_RET, PTX_NONE, 0, 0);
}
