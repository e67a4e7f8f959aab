/* SPDX-License-Identifier: Apache-2.0 */
/* build: cp.async (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy"), from global to shared memory, and
 * createpolicy.
 *
 *     cp.async.ca.shared.global [to], [from], size {, src-size or ignore-src} {, cache-policy};    size: 4, 8 or 16
 *
 * An asynchronous copy may complete as soon as it is issued, so it is a load and a store, and groups have no effect. The pass async_copies may move
 * stores to the next wait, for whichever group. Bytes beyond src-size, or all bytes if ignore-src is true, are not read; zeros are
 * written instead. */
#include "build_address.h"

#include <string.h>

#define WORDS_MAX 4

struct copy {
    struct ct_address to, from;
    unsigned size; /* in bytes */
};

static bool read_addresses(struct ct_build *b, struct copy *out)
{
    const struct ptx_instruction *written = b->insn;
    struct ptx_instruction of_source = *written; /* its space is the second space of the instruction */
    bool good = ct_build_address(b, 0, &out->to);

    of_source.mods.space = PTX_SPACE_GLOBAL;
    b->insn = &of_source;
    good = good && ct_build_address(b, 1, &out->from);
    b->insn = written;
    if (good && (out->to.space != CT_SPACE_SHARED || out->from.space != CT_SPACE_GLOBAL)) {
        ct_build_invalid(b, "cp.async copies from global to shared memory");
        return false;
    }
    return good;
}

static struct ct_address moved(struct ct_build *b, struct ct_address address, ct_value by)
{
    address.base = ct_add(&b->at, address.base, ct_width_at(&b->at, address.base) == CT_W_64 ? ct_zext64(&b->at, by) : by);
    return address;
}

static void load(struct ct_build *b, const struct ct_address *from, enum ptx_type type, uint32_t n, ct_value *values)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_LOAD, type, n, 1);

    ct_build_access(b, insn, from, ptx_type_bits(type) / 8 * n);
    for (uint32_t i = 0; i < n; i++)
        insn->results[i] = values[i] = ct_value_create(b->fn, CT_W_32);
}

static void store(struct ct_build *b, const struct ct_address *to, enum ptx_type type, uint32_t n, const ct_value *values)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_STORE, type, 0, n + 1);

    ct_build_access(b, insn, to, ptx_type_bits(type) / 8 * n);
    for (uint32_t i = 0; i < n; i++)
        insn->operands[i + 1] = values[i];
}

static void copy_all(struct ct_build *b, const struct copy *copy)
{
    ct_value words[WORDS_MAX];

    load(b, &copy->from, PTX_B32, copy->size / 4, words);
    store(b, &copy->to, PTX_B32, copy->size / 4, words);
    b->at.block->last->is_async = true;
}

/* Writes zeros, then copies byte by byte. */
static void copy_some(struct ct_build *b, const struct copy *copy, ct_value count)
{
    struct ct_block *head = ct_build_block(b), *body = ct_build_block(b), *after = ct_build_block(b);
    const ct_value i = ct_value_create(b->fn, CT_W_32), zero = ct_const32(&b->at, 0);
    const ct_value zeros[WORDS_MAX] = {zero, zero, zero, zero};
    struct ct_address from, to;
    ct_value byte;

    store(b, &copy->to, PTX_B32, copy->size / 4, zeros);
    ct_assign(&b->at, i, zero);
    ct_build_jump(b, head);
    ct_build_enter(b, head);
    ct_build_branch(b, ct_icmp(&b->at, PTX_U32, PTX_LT, i, count), body, after);
    ct_build_enter(b, body);
    from = moved(b, copy->from, i);
    to = moved(b, copy->to, i);
    load(b, &from, PTX_U8, 1, &byte);
    store(b, &to, PTX_U8, 1, &byte);
    ct_assign(&b->at, i, ct_add_imm(&b->at, i, 1));
    ct_build_jump(b, head);
    ct_build_enter(b, after);
}

/* The number of bytes to copy, as the fourth operand says. */
static ct_value bytes_to_copy(struct ct_build *b, unsigned size)
{
    const struct ptx_operand *operand = &b->insn->operands[3];
    struct ct_cursor *at = &b->at;

    if (operand->kind == PTX_OPND_REG && operand->reg->type == PTX_PRED)
        return ct_select(at, ct_build_source(b, 3, PTX_PRED), ct_const32(at, 0), ct_const32(at, size));
    return ct_op2(at, CT_OP_MIN, PTX_U32, ct_build_source(b, 3, PTX_U32), ct_const32(at, size));
}

static void copy_to_limit(struct ct_build *b, const struct copy *copy)
{
    const ct_value count = bytes_to_copy(b, copy->size);
    struct ct_block *all = ct_build_block(b), *some = ct_build_block(b), *after = ct_build_block(b);

    ct_build_branch(b, ct_equals(&b->at, count, copy->size), all, some);
    ct_build_enter(b, all);
    copy_all(b, copy);
    ct_build_jump(b, after);
    ct_build_enter(b, some);
    copy_some(b, copy, count);
    ct_build_jump(b, after);
    ct_build_enter(b, after);
}

void ct_build_async_copy(struct ct_build *b)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    const uint32_t policy = strstr(b->insn->text, "L2::cache_hint") ? 1 : 0;
    struct copy copy;
    uint64_t size;

    if (mods->mode2 != PTX_MODE_ASYNC) {
        ct_build_unsupported(b, NULL);
        return;
    }
    if (mods->mode == PTX_MODE_GROUP) {
        if (strstr(b->insn->text, "wait"))
            ct_emit_insn(&b->at, CT_OP_ASYNCWAIT, PTX_NONE, 0, 0);
        return;
    }
    if (b->insn->n_operands < 3 + policy || b->insn->n_operands > 4 + policy || !ct_build_constant(b, 2, &size) ||
        (size != 4 && size != 8 && size != 16)) {
        ct_build_invalid(b, "cp.async takes two addresses, a size of 4, 8 or 16 bytes, and optionally the number of bytes to read");
        return;
    }
    copy.size = (unsigned)size;
    if (!read_addresses(b, &copy))
        return;
    if (b->insn->n_operands > 3 + policy)
        copy_to_limit(b, &copy);
    else
        copy_all(b, &copy);
}

/* A policy is used by cache_hint operands only, which have no effect on results. */
void ct_build_policy(struct ct_build *b)
{
    ct_build_result(b, ct_const64(&b->at, 0), PTX_B64);
}
