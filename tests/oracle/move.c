/* SPDX-License-Identifier: Apache-2.0 */
/* Data movement (PTX ISA, "Data Movement and Conversion Instructions", "Stack Manipulation Instructions"). */
#include "machine.h"

#include <string.h>

/* ---- vectors ---- */

/* The number of elements of an access or a move: one, or those of .v2, .v4, .v8. A vector register counts as its components. */
static unsigned element_count(const struct oracle_step *s)
{
    return s->insn->mods.vector ? s->insn->mods.vector : 1;
}

static struct ptx_operand element_at(const struct ptx_operand *operand, unsigned index)
{
    struct ptx_operand item = *operand;

    if (operand->kind == PTX_OPND_VECTOR)
        return operand->items[index];
    if (operand->component < 0 && (operand->kind == PTX_OPND_SREG || (operand->kind == PTX_OPND_REG && operand->reg->vector)))
        item.component = (int8_t)index;
    return item;
}

/* ---- mov ---- */

/* Splits one value into the parts of a destination, or the reverse; the first item is the lowest. */
static void unpack(struct oracle_step *s, const struct ptx_operand *to, const uint64_t words[2], unsigned width)
{
    const unsigned part = width / to->n_items;
    const enum ptx_type type = part == 64 ? PTX_B64 : part == 32 ? PTX_B32 : part == 16 ? PTX_B16 : PTX_B8;

    for (uint32_t i = 0; i < to->n_items; i++)
        oracle_write(s, &to->items[i], type, words[i * part / 64] >> (i * part % 64));
}

static void mov_wide(struct oracle_step *s)
{
    const struct ptx_operand *to = &s->insn->operands[0], *from = &s->insn->operands[1];
    uint64_t words[2] = {0};

    if (from->kind == PTX_OPND_VECTOR) {
        const unsigned part = 128 / from->n_items;

        for (uint32_t i = 0; i < from->n_items; i++)
            words[i * part / 64] |= oracle_read(s, &from->items[i], part == 64 ? PTX_B64 : PTX_B32) << (i * part % 64);
    } else {
        oracle_read_words(s, from, PTX_B128, words);
    }
    if (to->kind == PTX_OPND_VECTOR)
        unpack(s, to, words, 128);
    else
        oracle_write_words(s, to, PTX_B128, words);
}

/* All elements are read before the first is written. */
static void mov_vector(struct oracle_step *s, enum ptx_type type)
{
    uint64_t values[8];

    for (unsigned i = 0; i < element_count(s); i++) {
        const struct ptx_operand from = element_at(&s->insn->operands[1], i);

        values[i] = oracle_read(s, &from, type);
    }
    for (unsigned i = 0; i < element_count(s); i++) {
        const struct ptx_operand to = element_at(&s->insn->operands[0], i);

        oracle_write(s, &to, type, values[i]);
    }
}

void oracle_do_mov(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const struct ptx_operand *to = &s->insn->operands[0];
    uint64_t words[2] = {0};

    if (type == PTX_B128) {
        mov_wide(s);
        return;
    }
    if (s->insn->mods.vector) {
        mov_vector(s, type);
        return;
    }
    words[0] = oracle_source(s, 1, type);
    if (to->kind == PTX_OPND_VECTOR)
        unpack(s, to, words, ptx_type_bits(type));
    else
        oracle_write(s, to, type, words[0]);
}

/* ---- addresses ---- */

void oracle_do_cvta(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint64_t window = oracle_window_of((enum ptx_space)s->insn->mods.space), address = oracle_source(s, 1, type);

    oracle_result(s, type, s->insn->mods.to ? address - window : address + window);
}

static bool is_constant(const struct oracle_step *s, uint64_t address)
{
    for (uint32_t i = 0; i < s->grid->module->n_places; i++) {
        const struct oracle_object *object = s->grid->module->places[i].object;

        if (object->space == PTX_SPACE_CONST && address - object->address < object->size_bytes)
            return true;
    }
    return false;
}

/* Constants are in no other space, parameters are global memory, too. */
void oracle_do_isspacep(struct oracle_step *s)
{
    const uint64_t address = oracle_source(s, 1, PTX_U64);
    const enum ptx_space given = oracle_space_of_window(address), asked = (enum ptx_space)s->insn->mods.space;
    bool result = given == asked;

    if (asked == PTX_SPACE_GLOBAL)
        result = (given == PTX_SPACE_GLOBAL || given == PTX_SPACE_PARAM) && !is_constant(s, address);
    if (asked == PTX_SPACE_CONST)
        result = is_constant(s, address);
    oracle_result(s, PTX_PRED, result);
}

/* ---- loads and stores ---- */

static bool is_strong(const struct oracle_step *s)
{
    return s->insn->mods.semantics > PTX_WEAK;
}

static uint8_t *access_bytes(struct oracle_step *s, unsigned address_at, int access, uint64_t *generic)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned size = (ptx_type_bits(type) + 7) / 8 * element_count(s);
    enum ptx_space space = (enum ptx_space)s->insn->mods.space;
    const uint64_t address = oracle_address(s, &s->insn->operands[address_at]);

    *generic = address + oracle_window_of(space);
    return oracle_failed(s) ? NULL : oracle_memory(s, space, address, size, size, access | (is_strong(s) ? ORACLE_STRONG : 0));
}

void oracle_do_load(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned bytes = ptx_type_bits(type) / 8;
    uint64_t generic;
    const uint8_t *from = access_bytes(s, 1, ORACLE_READ, &generic);

    if (!from)
        return;
    for (unsigned i = 0; i < element_count(s); i++) {
        const struct ptx_operand to = element_at(&s->insn->operands[0], i);
        uint64_t words[2] = {0};

        memcpy(words, from + i * bytes, bytes);
        oracle_write_words(s, &to, type, words);
    }
    if (is_strong(s))
        oracle_strong_read(s, generic, s->insn->mods.semantics == PTX_ACQUIRE);
}

void oracle_do_store(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const unsigned bytes = ptx_type_bits(type) / 8;
    uint64_t generic;
    uint8_t *to = access_bytes(s, 0, ORACLE_WRITE, &generic);

    if (!to)
        return;
    for (unsigned i = 0; i < element_count(s); i++) {
        const struct ptx_operand from = element_at(&s->insn->operands[1], i);
        uint64_t words[2];

        oracle_read_words(s, &from, type, words);
        memcpy(to + i * bytes, words, bytes);
    }
    if (is_strong(s))
        oracle_strong_write(s, generic, s->insn->mods.semantics == PTX_RELEASE, false);
}

/* cp.async.ca.shared.global [to], [from], size {, src-size or ignore-src} {, policy}: bytes beyond src-size are zeros. The copy is
 * executed when it is issued, so groups and waits do nothing. */
void oracle_do_copy(struct oracle_step *s)
{
    const struct ptx_instruction *insn = s->insn;
    const bool is_group = insn->mods.mode == PTX_MODE_GROUP, has_policy = strstr(insn->text, "L2::cache_hint");
    uint8_t *to, bytes[16] = {0};
    uint64_t size, copied;

    if (is_group)
        return;
    size = copied = oracle_source(s, 2, PTX_U32);
    if (size != 4 && size != 8 && size != 16) {
        oracle_fail(s, ORACLE_UNSUPPORTED, "a copy of %llu bytes", (unsigned long long)size);
        return;
    }
    if (insn->n_operands - has_policy > 3) {
        const struct ptx_operand *limit = &insn->operands[3];
        const bool is_predicate = limit->kind == PTX_OPND_REG && limit->reg->type == PTX_PRED;
        const uint64_t value = oracle_source(s, 3, is_predicate ? PTX_PRED : PTX_U32);

        copied = is_predicate ? (value ? 0 : size) : value < size ? value : size;
    }
    if (copied) {
        const uint8_t *from = oracle_memory(s, PTX_SPACE_GLOBAL, oracle_address(s, &insn->operands[1]), (unsigned)copied,
                                            copied == size ? (unsigned)size : 1, ORACLE_READ);

        if (!from)
            return;
        memcpy(bytes, from, copied);
    }
    if ((to = oracle_memory(s, PTX_SPACE_SHARED, oracle_address(s, &insn->operands[0]), (unsigned)size, (unsigned)size, ORACLE_WRITE)))
        memcpy(to, bytes, size);
}

/* A hint: no program can distinguish policies. */
void oracle_do_policy(struct oracle_step *s)
{
    oracle_result(s, PTX_B64, 0);
}

void oracle_do_nothing(struct oracle_step *s)
{
    (void)s;
}

/* ---- the stack ---- */

/* alloca d, size {, align}: the memory lives until the function returns. */
void oracle_do_alloca(struct oracle_step *s)
{
    const enum ptx_type type = oracle_type(s, 0);
    const uint64_t size = oracle_source(s, 1, type), align = s->insn->n_operands > 2 ? oracle_source(s, 2, PTX_U32) : 8;
    struct oracle_thread *thread = s->thread;

    if (size > 1 << 24 || align == 0 || align > 1 << 16) {
        oracle_fail(s, ORACLE_OUT_OF_BOUNDS, "alloca of %llu bytes", (unsigned long long)size);
        return;
    }
    thread->local_top = (thread->local_top + align - 1) / align * align;
    oracle_objects_add(&thread->locals, oracle_object_create(PTX_SPACE_LOCAL, thread->local_top, size, false));
    oracle_result(s, type, thread->local_top);
    thread->local_top += size + 1;
}

/* No memory is reused before the function returns, so the stack pointer is only a number. */
void oracle_do_stack(struct oracle_step *s)
{
    if (s->insn->opcode == PTX_OP_STACKSAVE)
        oracle_result(s, oracle_type(s, 0), s->thread->local_top);
}
