/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of the SPIR-V that integer kernels become, written from the SPIR-V specification alone. */
#include "spirv_machine.h"

#include <setjmp.h>
#include <spirv/unified1/GLSL.std.450.h>
#include <spirv/unified1/spirv.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#define MAX_BLOCKS_BETWEEN_EVENTS 200000

struct value {
    uint64_t part[4];
};

struct id {
    const uint32_t *def; /* the instruction, NULL before it was seen */
    uint32_t type;
    unsigned bits, count; /* types; of a vector: its components' bits. OpTypeBool: 1 */
    struct value value;   /* OpVariable: what it holds; pointers to memory: the address */
};

struct machine {
    const uint32_t *words, *end;
    struct id *ids;
    struct trace *trace;
};

static uint64_t mask(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static int64_t as_signed(uint64_t value, unsigned bits)
{
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static const struct id *type_of(const struct machine *m, uint32_t id)
{
    return &m->ids[m->ids[id].type];
}

static uint64_t read(const struct machine *m, uint32_t id)
{
    return m->ids[id].value.part[0];
}

static int64_t read_signed(const struct machine *m, uint32_t id)
{
    return as_signed(read(m, id), type_of(m, id)->bits);
}

/* ---- types, constants, variables ---- */

static void declare(struct machine *m, const uint32_t *w)
{
    struct id *ids = m->ids;

    switch (w[0] & SpvOpCodeMask) {
    case SpvOpTypeBool: ids[w[1]].bits = ids[w[1]].count = 1; break;
    case SpvOpTypeInt:
        ids[w[1]].bits = w[2];
        ids[w[1]].count = 1;
        break;
    case SpvOpTypeVector:
        ids[w[1]].bits = ids[w[2]].bits;
        ids[w[1]].count = w[3];
        break;
    case SpvOpTypeStruct: /* of OpUMulExtended: two equal members */
        ids[w[1]].bits = ids[w[2]].bits;
        ids[w[1]].count = 2;
        break;
    case SpvOpConstant:
    case SpvOpSpecConstant: ids[w[2]].value.part[0] = w[3] | (uint64_t)((w[0] >> SpvWordCountShift) > 4 ? w[4] : 0) << 32; break;
    case SpvOpConstantTrue: ids[w[2]].value.part[0] = 1; break;
    default: break;
    }
}

static bool has_result_type(uint32_t op)
{
    switch (op) {
    case SpvOpTypeVoid: case SpvOpTypeBool: case SpvOpTypeInt: case SpvOpTypeVector: case SpvOpTypeStruct: case SpvOpTypePointer:
    case SpvOpTypeFunction: case SpvOpTypeArray: case SpvOpExtInstImport: case SpvOpLabel:
        return false;
    default: return true;
    }
}

static bool has_result(uint32_t op)
{
    switch (op) {
    case SpvOpCapability: case SpvOpExtension: case SpvOpMemoryModel: case SpvOpEntryPoint: case SpvOpExecutionMode:
    case SpvOpExecutionModeId: case SpvOpDecorate: case SpvOpMemberDecorate: case SpvOpStore: case SpvOpBranch:
    case SpvOpBranchConditional: case SpvOpSwitch: case SpvOpSelectionMerge: case SpvOpLoopMerge: case SpvOpReturn:
    case SpvOpUnreachable: case SpvOpFunctionEnd:
        return false;
    default: return true;
    }
}

static void scan(struct machine *m)
{
    for (const uint32_t *w = m->words + 5; w < m->end; w += w[0] >> SpvWordCountShift) {
        const uint32_t op = w[0] & SpvOpCodeMask;

        assert_true(w[0] >> SpvWordCountShift);
        if (!has_result(op))
            continue;
        m->ids[w[has_result_type(op) ? 2 : 1]].def = w;
        m->ids[w[has_result_type(op) ? 2 : 1]].type = has_result_type(op) ? w[1] : 0;
        declare(m, w);
    }
}

/* ---- instructions ---- */

static uint64_t extended(const struct machine *m, const uint32_t *w, uint64_t a, uint64_t b)
{
    switch (w[4]) {
    case GLSLstd450UMin: return a < b ? a : b;
    case GLSLstd450UMax: return a > b ? a : b;
    case GLSLstd450SMin: return read_signed(m, w[5]) < read_signed(m, w[6]) ? a : b;
    case GLSLstd450SMax: return read_signed(m, w[5]) > read_signed(m, w[6]) ? a : b;
    case GLSLstd450FindUMsb:
        for (int i = 31; i >= 0; i--)
            if (a >> i & 1)
                return (uint64_t)i;
        return UINT64_MAX;
    default: fail_msg("GLSL.std.450 instruction %u", w[4]); return 0;
    }
}

static uint64_t reversed(uint64_t a, unsigned bits)
{
    uint64_t result = 0;

    for (unsigned i = 0; i < bits; i++)
        result |= (a >> i & 1) << (bits - 1 - i);
    return result;
}

static uint64_t compute(const struct machine *m, const uint32_t *w)
{
    const uint32_t n = w[0] >> SpvWordCountShift;
    const bool is_ext = (w[0] & SpvOpCodeMask) == SpvOpExtInst;
    const uint32_t ia = is_ext ? w[5] : w[3], ib = is_ext ? (n > 6 ? w[6] : 0) : n > 4 ? w[4] : 0;
    const uint64_t a = read(m, ia), b = ib ? read(m, ib) : 0;
    const unsigned bits = type_of(m, ia)->bits;

    switch (w[0] & SpvOpCodeMask) {
    case SpvOpIAdd: return a + b;
    case SpvOpISub: return a - b;
    case SpvOpIMul: return a * b;
    case SpvOpUDiv: assert_true(b); return a / b;
    case SpvOpUMod: assert_true(b); return a % b;
    case SpvOpSNegate: return 0 - a;
    case SpvOpBitwiseAnd: case SpvOpLogicalAnd: return a & b;
    case SpvOpBitwiseOr: case SpvOpLogicalOr: return a | b;
    case SpvOpBitwiseXor: return a ^ b;
    case SpvOpNot: return ~a;
    case SpvOpLogicalNot: return !a;
    case SpvOpShiftLeftLogical: assert_true(b < bits); return a << b;
    case SpvOpShiftRightLogical: assert_true(b < bits); return a >> b;
    case SpvOpShiftRightArithmetic: assert_true(b < bits); return (uint64_t)(as_signed(a, bits) >> b);
    case SpvOpBitCount: return (uint64_t)__builtin_popcountll(a);
    case SpvOpBitReverse: return reversed(a, bits);
    case SpvOpSelect: return a ? b : read(m, w[5]);
    case SpvOpUConvert: case SpvOpConvertUToPtr: return a;
    case SpvOpSConvert: return (uint64_t)as_signed(a, bits);
    case SpvOpIEqual: case SpvOpLogicalEqual: return a == b;
    case SpvOpINotEqual: case SpvOpLogicalNotEqual: return a != b;
    case SpvOpULessThan: return a < b;
    case SpvOpULessThanEqual: return a <= b;
    case SpvOpUGreaterThan: return a > b;
    case SpvOpUGreaterThanEqual: return a >= b;
    case SpvOpSLessThan: return read_signed(m, ia) < read_signed(m, ib);
    case SpvOpSLessThanEqual: return read_signed(m, ia) <= read_signed(m, ib);
    case SpvOpSGreaterThan: return read_signed(m, ia) > read_signed(m, ib);
    case SpvOpSGreaterThanEqual: return read_signed(m, ia) >= read_signed(m, ib);
    case SpvOpExtInst: return extended(m, w, a, b);
    default: fail_msg("SPIR-V instruction %u", w[0] & SpvOpCodeMask); return 0;
    }
}

/* Components of one type become those of another, low bits first. */
static struct value bitcast(const struct machine *m, uint32_t from, const struct id *to)
{
    const struct id *type = type_of(m, from);
    struct value result = {{0}};
    uint64_t whole = 0;

    for (unsigned i = 0; i < type->count; i++)
        whole |= m->ids[from].value.part[i] << (i * type->bits);
    for (unsigned i = 0; i < to->count; i++)
        result.part[i] = whole >> (i * to->bits) & mask(to->bits);
    return result;
}

static struct value product(const struct machine *m, const uint32_t *w, bool is_signed)
{
    const unsigned bits = type_of(m, w[3])->bits;
    const __int128 wide = is_signed ? (__int128)read_signed(m, w[3]) * read_signed(m, w[4])
                                    : (__int128)((unsigned __int128)read(m, w[3]) * read(m, w[4]));

    return (struct value){{(uint64_t)wide & mask(bits), (uint64_t)(wide >> bits) & mask(bits)}};
}

static struct value evaluate(const struct machine *m, const uint32_t *w)
{
    const struct id *type = &m->ids[w[1]];
    struct value result = {{0}};

    switch (w[0] & SpvOpCodeMask) {
    case SpvOpLoad: return m->ids[w[3]].value;
    case SpvOpBitcast: return bitcast(m, w[3], type);
    case SpvOpUMulExtended: return product(m, w, false);
    case SpvOpSMulExtended: return product(m, w, true);
    case SpvOpCompositeConstruct:
        for (unsigned i = 0; i < type->count; i++)
            result.part[i] = read(m, w[3 + i]);
        return result;
    case SpvOpCompositeExtract: result.part[0] = m->ids[w[3]].value.part[w[4]]; return result;
    default: result.part[0] = compute(m, w) & mask(type->bits ? type->bits : 64); return result;
    }
}

static bool is_memory(const struct machine *m, uint32_t pointer)
{
    return (m->ids[pointer].def[0] & SpvOpCodeMask) == SpvOpConvertUToPtr;
}

/* A store: to memory an event, else to a variable. */
static void store(struct machine *m, const uint32_t *w)
{
    if (is_memory(m, w[1]))
        m->trace->events[m->trace->n++] = (struct event){read(m, w[1]), read(m, w[2])};
    else
        m->ids[w[1]].value = m->ids[w[2]].value;
}

/* The label that a branch goes to; 0 where the thread ends. */
static uint32_t branch(const struct machine *m, const uint32_t *w)
{
    const uint32_t n = w[0] >> SpvWordCountShift;

    switch (w[0] & SpvOpCodeMask) {
    case SpvOpBranch: return w[1];
    case SpvOpBranchConditional: return read(m, w[1]) ? w[2] : w[3];
    case SpvOpSwitch:
        for (uint32_t i = 3; i + 1 < n; i += 2)
            if (read(m, w[1]) == w[i])
                return w[i + 1];
        return w[2];
    case SpvOpReturn: return 0;
    default: fail_msg("a thread reached instruction %u", w[0] & SpvOpCodeMask); return 0;
    }
}

static bool is_terminator(uint32_t op)
{
    return op == SpvOpBranch || op == SpvOpBranchConditional || op == SpvOpSwitch || op == SpvOpReturn || op == SpvOpUnreachable;
}

/* Runs one block. Gives its terminator, NULL once the trace is full. */
static const uint32_t *run_block(struct machine *m, const uint32_t *w)
{
    for (;; w += w[0] >> SpvWordCountShift) {
        const uint32_t op = w[0] & SpvOpCodeMask;

        if (is_terminator(op))
            return w;
        if (op == SpvOpStore)
            store(m, w);
        else if (has_result(op) && op != SpvOpLabel && op != SpvOpVariable)
            m->ids[w[2]].value = evaluate(m, w);
        if (m->trace->n == sizeof m->trace->events / sizeof *m->trace->events)
            return NULL;
    }
}

static const uint32_t *first_block(const struct machine *m)
{
    const uint32_t *w = m->words + 5;

    while ((w[0] & SpvOpCodeMask) != SpvOpLabel) {
        w += w[0] >> SpvWordCountShift;
        assert_true(w < m->end);
    }
    return w;
}

void run_spirv(const uint32_t *words, size_t n_words, struct trace *out)
{
    struct machine m = {.words = words, .end = words + n_words, .trace = out};
    const uint32_t *block;

    m.ids = calloc(words[3], sizeof *m.ids);
    assert_non_null(m.ids);
    scan(&m);
    out->n = 0;
    out->end = TRACE_TIRED;
    block = first_block(&m);
    for (int quiet = 0; quiet < MAX_BLOCKS_BETWEEN_EVENTS; quiet++) {
        const uint32_t before = out->n, *end = run_block(&m, block);
        const uint32_t label = end ? branch(&m, end) : 0;

        if (!label) {
            out->end = end ? TRACE_RETURNED : TRACE_FULL;
            break;
        }
        quiet = out->n == before ? quiet : 0;
        block = m.ids[label].def;
    }
    free(m.ids);
}

unsigned count_spirv(const uint32_t *words, size_t n_words, uint32_t opcode)
{
    unsigned n = 0;

    for (const uint32_t *w = words + 5; w < words + n_words; w += w[0] >> SpvWordCountShift)
        n += (w[0] & SpvOpCodeMask) == opcode;
    return n;
}
