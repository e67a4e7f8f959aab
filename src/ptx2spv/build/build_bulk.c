/* SPDX-License-Identifier: Apache-2.0 */
/* build: cp.async.bulk, cp.reduce.async.bulk, st.async, red.async (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous
 * copy").
 *
 * The thread that issues a copy carries it out, in pieces of 16 bytes, to which addresses and sizes are aligned. It is complete when it
 * has been issued: bulk groups have nothing to wait for, and a barrier gets the number of bytes at the end. */
#include "build_async.h"

#define PIECE_BYTES 16
#define PIECE_WORDS 4
#define MAX_VALUES 4

struct copy {
    struct ct_address to, from;
    ct_value size; /* in bytes */
};

/* ---- loops ---- */

/* A loop over the offsets 0, step, 2 * step ... below a size. */
struct loop {
    struct ct_block *head, *after;
    ct_value offset;
    uint32_t step;
};

static void loop_begin(struct ct_build *b, ct_value size, uint32_t step, struct loop *loop)
{
    struct ct_block *body = ct_build_block(b);

    *loop = (struct loop){ct_build_block(b), ct_build_block(b), ct_value_create(b->fn, CT_W_32), step};
    ct_assign(&b->at, loop->offset, ct_const32(&b->at, 0));
    ct_build_jump(b, loop->head);
    ct_build_enter(b, loop->head);
    ct_build_branch(b, ct_icmp(&b->at, PTX_U32, PTX_LT, loop->offset, size), body, loop->after);
    ct_build_enter(b, body);
}

static void loop_end(struct ct_build *b, const struct loop *loop)
{
    ct_assign(&b->at, loop->offset, ct_add_imm(&b->at, loop->offset, loop->step));
    ct_build_jump(b, loop->head);
    ct_build_enter(b, loop->after);
}

/* ---- accesses ---- */

static struct ct_address moved(struct ct_build *b, struct ct_address address, ct_value by)
{
    address.base = ct_add(&b->at, address.base, ct_width_at(&b->at, address.base) == CT_W_64 ? ct_zext64(&b->at, by) : by);
    return address;
}

static struct ct_insn *emit_access(struct ct_build *b, enum ct_op op, const struct ct_address *address, enum ptx_type type, uint32_t n)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, op, type, op == CT_OP_LOAD ? n : 0, op == CT_OP_LOAD ? 1 : n + 1);

    ct_build_access(b, insn, address, ptx_type_bits(type) / 8 * n);
    insn->semantics = PTX_SEM_NONE;
    insn->scope = PTX_SCOPE_NONE;
    return insn;
}

static void load(struct ct_build *b, const struct ct_address *from, enum ptx_type type, uint32_t n, ct_value *values)
{
    struct ct_insn *insn = emit_access(b, CT_OP_LOAD, from, type, n);

    for (uint32_t i = 0; i < n; i++)
        insn->results[i] = values[i] = ct_value_create(b->fn, type == PTX_U8 ? CT_W_32 : ct_width_of(type));
}

static void store(struct ct_build *b, const struct ct_address *to, enum ptx_type type, uint32_t n, const ct_value *values)
{
    struct ct_insn *insn = emit_access(b, CT_OP_STORE, to, type, n);

    for (uint32_t i = 0; i < n; i++)
        insn->operands[i + 1] = values[i];
}

/* Copies n elements at an offset. */
static void copy_at(struct ct_build *b, const struct copy *copy, ct_value offset, enum ptx_type type, uint32_t n)
{
    const struct ct_address from = moved(b, copy->from, offset), to = moved(b, copy->to, offset);
    ct_value values[PIECE_WORDS];

    load(b, &from, type, n, values);
    store(b, &to, type, n, values);
}

static void copy_all(struct ct_build *b, const struct copy *copy)
{
    struct loop loop;

    loop_begin(b, copy->size, PIECE_BYTES, &loop);
    copy_at(b, copy, loop.offset, PTX_B32, PIECE_WORDS);
    loop_end(b, &loop);
}

/* Bit i of the mask says whether byte i of each piece is copied. */
static void copy_masked(struct ct_build *b, const struct copy *copy, ct_value mask)
{
    struct ct_block *inside = ct_build_block(b), *next = ct_build_block(b);
    struct loop loop;
    ct_value bit;

    loop_begin(b, copy->size, 1, &loop);
    bit = ct_op2(&b->at, CT_OP_SHR, PTX_U32, mask, ct_and_imm(&b->at, loop.offset, PIECE_BYTES - 1));
    ct_build_branch(b, ct_equals(&b->at, ct_and_imm(&b->at, bit, 1), 0), next, inside);
    ct_build_enter(b, inside);
    copy_at(b, copy, loop.offset, PTX_U8, 1);
    ct_build_jump(b, next);
    ct_build_enter(b, next);
    loop_end(b, &loop);
}

/* ---- cp.async.bulk ---- */

static bool read_copy(struct ct_build *b, enum ptx_space to, enum ptx_space from, struct copy *out)
{
    uint64_t size;

    if (!ct_async_address(b, 0, to, &out->to) || !ct_async_address(b, 1, from, &out->from))
        return false;
    if (ct_build_constant(b, 2, &size) && size % PIECE_BYTES) {
        ct_build_invalid(b, "the size of a bulk copy is a multiple of 16");
        return false;
    }
    out->size = ct_build_source(b, 2, PTX_U32);
    return true;
}

static ct_value mask_operand(struct ct_build *b, unsigned index)
{
    return ct_resize(&b->at, ct_build_source(b, index, PTX_U16), PTX_U16, CT_W_32);
}

/* The mask names the blocks of the cluster that get the data, each at the same offset, as does its barrier. Where every block is a cluster of
 * its own, its rank is 0. */
void ct_bulk_begin_chosen(struct ct_build *b, unsigned index, struct ct_chosen *out)
{
    struct ct_block *inside, *test;
    ct_value bit;

    *out = (struct ct_chosen){0};
    if (!ct_async_has(b, "multicast::cluster"))
        return;
    inside = ct_build_block(b);
    out->next = ct_build_block(b);
    out->after = ct_build_block(b);
    bit = mask_operand(b, index);
    if (b->fn->clusters) {
        test = ct_build_block(b);
        out->head = ct_build_block(b);
        out->rank = ct_value_create(b->fn, CT_W_32);
        ct_assign(&b->at, out->rank, ct_const32(&b->at, 0));
        ct_build_jump(b, out->head);
        ct_build_enter(b, out->head);
        ct_build_branch(b, ct_icmp(&b->at, PTX_U32, PTX_LT, out->rank, ct_cluster_blocks(&b->at)), test, out->after);
        ct_build_enter(b, test);
        bit = ct_op2(&b->at, CT_OP_SHR, PTX_U32, bit, out->rank);
        b->multicast_rank = out->rank;
    }
    ct_build_branch(b, ct_equals(&b->at, ct_and_imm(&b->at, bit, 1), 0), out->next, inside);
    ct_build_enter(b, inside);
}

void ct_bulk_end_chosen(struct ct_build *b, const struct ct_chosen *chosen)
{
    b->multicast_rank = CT_NO_VALUE;
    if (!chosen->next)
        return;
    ct_build_jump(b, chosen->next);
    ct_build_enter(b, chosen->next);
    if (chosen->rank.i)
        ct_assign(&b->at, chosen->rank, ct_add_imm(&b->at, chosen->rank, 1));
    ct_build_jump(b, chosen->rank.i ? chosen->head : chosen->after);
    ct_build_enter(b, chosen->after);
}

void ct_build_bulk_load(struct ct_build *b)
{
    struct ct_chosen chosen;
    struct copy copy;

    ct_bulk_begin_chosen(b, 4, &chosen);
    if (read_copy(b, PTX_SPACE_SHARED, ct_async_has(b, "global") ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED, &copy)) {
        copy_all(b, &copy);
        ct_mbarrier_complete_bytes(b, 3, copy.size);
    }
    ct_bulk_end_chosen(b, &chosen);
}

void ct_build_bulk_store(struct ct_build *b)
{
    struct copy copy;

    if (!read_copy(b, PTX_SPACE_GLOBAL, PTX_SPACE_SHARED, &copy))
        return;
    if (ct_async_has(b, "cp_mask"))
        copy_masked(b, &copy, mask_operand(b, b->insn->n_operands - 1));
    else
        copy_all(b, &copy);
}

/* ---- tensormap.cp_fenceproxy ---- */

/* A warp copies a tensor map; its first lane does so for all. */
void ct_build_tensor_map_copy(struct ct_build *b)
{
    const ct_value all = ct_const32(&b->at, UINT32_MAX);
    struct ct_block *inside, *after;
    struct copy copy;

    if (b->insn->operands[2].bits != CT_TENSOR_MAP_BYTES) {
        ct_build_invalid(b, "a tensor map has 128 bytes");
        return;
    }
    ct_emit_insn(&b->at, CT_OP_WARPSYNC, PTX_B32, 0, 1)->operands[0] = all;
    if (!read_copy(b, PTX_SPACE_GLOBAL, PTX_SPACE_SHARED, &copy))
        return;
    inside = ct_build_block(b);
    after = ct_build_block(b);
    ct_build_branch(b, ct_equals(&b->at, ct_sysval(&b->at, CT_SYS_LANEID), 0), inside, after);
    ct_build_enter(b, inside);
    copy_all(b, &copy);
    ct_build_fence_of(b, PTX_RELEASE, (enum ptx_scope)b->insn->mods.scope);
    ct_build_jump(b, after);
    ct_build_enter(b, after);
}

/* ---- cp.reduce.async.bulk ---- */

void ct_build_bulk_reduce(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    const bool to_global = ct_async_has(b, "global");
    struct ct_address from, to;
    struct copy copy;
    struct loop loop;
    ct_value value;

    if (!read_copy(b, to_global ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED, PTX_SPACE_SHARED, &copy))
        return;
    loop_begin(b, copy.size, ptx_type_bits(type) / 8, &loop);
    from = moved(b, copy.from, loop.offset);
    to = moved(b, copy.to, loop.offset);
    load(b, &from, ct_bits_type(ct_width_of(type)), 1, &value);
    ct_build_reduction(b, &to, type, (enum ptx_operation)b->insn->mods.operation, value);
    loop_end(b, &loop);
    if (!to_global)
        ct_mbarrier_complete_bytes(b, 3, copy.size);
}

/* ---- st.async, red.async: [address], value, [barrier] ---- */

void ct_build_async_store(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    uint32_t n;
    const struct ptx_operand *items = ct_build_parts(b, &b->insn->operands[1], type, &n);
    ct_value values[MAX_VALUES];
    struct ct_address to;

    if (n != (b->insn->mods.vector ? b->insn->mods.vector : 1u)) {
        ct_build_invalid(b, "the vector has the wrong length");
        return;
    }
    if (!ct_async_address(b, 0, PTX_SPACE_SHARED, &to))
        return;
    for (uint32_t i = 0; i < n; i++)
        values[i] = ct_build_read(b, &items[i], type);
    store(b, &to, type, n, values);
    ct_mbarrier_complete_bytes(b, 2, ct_const32(&b->at, n * ptx_type_bits(type) / 8));
}

void ct_build_async_reduce(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    struct ct_address to;

    if (!ct_async_address(b, 0, PTX_SPACE_SHARED, &to))
        return;
    ct_build_reduction(b, &to, type, (enum ptx_operation)b->insn->mods.operation, ct_build_source(b, 1, type));
    ct_mbarrier_complete_bytes(b, 2, ct_const32(&b->at, ptx_type_bits(type) / 8));
}
