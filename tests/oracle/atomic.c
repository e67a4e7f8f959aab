/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics and fences (PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red, membar, fence"). */
#include "machine.h"

#include <string.h>

static uint64_t float_result(struct oracle_step *s, enum ptx_type type, uint64_t old, uint64_t b)
{
    const uint64_t in[3] = {old, b, 0};
    double x, y;
    bool is_less;

    if (s->insn->mods.operation == PTX_ADD) {
        const uint64_t sum = oracle_compute(type, ORACLE_ADD, PTX_RN, false, in);

        return oracle_is_nan(type, sum) ? oracle_nan(type) : sum;
    }
    x = oracle_to_double(type, old);
    y = oracle_to_double(type, b);
    if (oracle_is_nan(type, old) || oracle_is_nan(type, b))
        return oracle_is_nan(type, old) ? b : old;
    is_less = x < y || (x == y && old & oracle_sign_bit(type)); /* -0 is less than +0 */
    return (s->insn->mods.operation == PTX_MIN) == is_less ? old : b;
}

static uint64_t integer_result(struct oracle_step *s, enum ptx_type type, uint64_t old, uint64_t b, uint64_t c)
{
    switch (s->insn->mods.operation) {
    case PTX_ADD:
        return old + b;
    case PTX_AND:
        return old & b;
    case PTX_OR:
        return old | b;
    case PTX_XOR:
        return old ^ b;
    case PTX_EXCH:
        return b;
    case PTX_CAS:
        return old == b ? c : old;
    case PTX_INC:
        return old >= b ? 0 : old + 1;
    case PTX_DEC:
        return old == 0 || old > b ? b : old - 1;
    case PTX_MIN:
        return oracle_compare(type, PTX_LT, old, b) ? old : b;
    case PTX_MAX:
        return oracle_compare(type, PTX_GT, old, b) ? old : b;
    default:
        oracle_fail(s, ORACLE_UNSUPPORTED, "an atomic operation that the oracle does not know");
        return old;
    }
}

/* Packed types: each half by itself. */
static uint64_t result_of(struct oracle_step *s, enum ptx_type type, uint64_t old, uint64_t b, uint64_t c)
{
    const enum ptx_type element = oracle_element(type);
    const unsigned width = ptx_type_bits(element);
    uint64_t result = 0;

    if (!ptx_type_is_float(type))
        return integer_result(s, type, old, b, c);
    for (unsigned at = 0; at < ptx_type_bits(type); at += width)
        result |= float_result(s, element, oracle_cut(old >> at, element), oracle_cut(b >> at, element)) << at;
    return result;
}

/* b128: exch and cas only. */
static void atomic_wide(struct oracle_step *s, uint8_t *place, unsigned first)
{
    const struct ptx_operand *operands = s->insn->operands;
    const bool is_cas = s->insn->mods.operation == PTX_CAS;
    uint64_t old[2], b[2], c[2] = {0};

    oracle_read_words(s, &operands[first], PTX_B128, b);
    if (is_cas)
        oracle_read_words(s, &operands[first + 1], PTX_B128, c);
    if (oracle_failed(s))
        return;
    memcpy(old, place, sizeof old);
    if (!is_cas)
        memcpy(place, b, sizeof old);
    else if (memcmp(old, b, sizeof old) == 0)
        memcpy(place, c, sizeof old);
    oracle_write_words(s, &operands[0], PTX_B128, old);
}

static void atomic_element(struct oracle_step *s, uint8_t *place, unsigned first, unsigned index)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned bytes = ptx_type_bits(type) / 8;
    const bool returns = s->insn->opcode == PTX_OP_ATOM, is_cas = s->insn->mods.operation == PTX_CAS;
    uint32_t n;
    uint64_t old = 0, result;

    memcpy(&old, place, bytes);
    result = result_of(s, type, old, oracle_read(s, &oracle_items(&s->insn->operands[first], &n)[index], type),
                       is_cas ? oracle_source(s, first + 1, type) : 0);
    memcpy(place, &result, bytes);
    if (returns && s->insn->operands[0].kind != PTX_OPND_SINK)
        oracle_write(s, &oracle_items(&s->insn->operands[0], &n)[index], type, old);
}

void oracle_do_atomic(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned at = s->insn->opcode == PTX_OP_ATOM ? 1 : 0, bytes = ptx_type_bits(type) / 8;
    const unsigned n = s->insn->mods.vector ? s->insn->mods.vector : 1;
    const enum ptx_space space = (enum ptx_space)s->insn->mods.space;
    const uint64_t address = oracle_address(s, &s->insn->operands[at]), generic = address + oracle_window_of(space);
    const uint8_t semantics = s->insn->mods.semantics;
    uint8_t *place;

    if (oracle_failed(s))
        return;
    place = oracle_memory(s, space, address, bytes * n, bytes * n, ORACLE_READ | ORACLE_WRITE | ORACLE_STRONG);
    if (!place)
        return;
    oracle_strong_read(s, generic, semantics == PTX_ACQUIRE || semantics == PTX_ACQ_REL);
    if (bytes == 16)
        atomic_wide(s, place, at + 1);
    for (unsigned i = 0; i < n && bytes != 16; i++)
        atomic_element(s, place + i * bytes, at + 1, i);
    oracle_strong_write(s, generic, semantics == PTX_RELEASE || semantics == PTX_ACQ_REL, true);
}

void oracle_do_fence(struct oracle_step *s)
{
    oracle_fence(s);
}
