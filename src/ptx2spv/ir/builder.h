/* SPDX-License-Identifier: Apache-2.0 */
/* IR builder: convenience functions for passes that emit much IR. Results have the width of the first operand, immediate operands that
 * of the other operand. */
#ifndef PTX2SPV_BUILDER_H
#define PTX2SPV_BUILDER_H

#include "ir.h"

static inline enum ct_width ct_width_at(const struct ct_cursor *at, ct_value a)
{
    return ct_width_of_value(at->fn, a);
}

/* The untyped, unsigned or signed integer type of a width. */
enum ptx_type ct_bits_type(enum ct_width width);
enum ptx_type ct_unsigned_type(enum ct_width width);
enum ptx_type ct_signed_type(enum ct_width width);

static inline ct_value ct_op1(struct ct_cursor *at, enum ct_op op, enum ptx_type type, ct_value a)
{
    return ct_emit1(at, op, type, ct_width_at(at, a), a);
}

static inline ct_value ct_op2(struct ct_cursor *at, enum ct_op op, enum ptx_type type, ct_value a, ct_value b)
{
    return ct_emit2(at, op, type, ct_width_at(at, a), a, b);
}

/* Operations whose type is just a width. */
static inline ct_value ct_bits1(struct ct_cursor *at, enum ct_op op, ct_value a)
{
    return ct_op1(at, op, ct_bits_type(ct_width_at(at, a)), a);
}

/* An operation on f32 that may take subnormals for zeros. */
static inline ct_value ct_op2_ignoring_subnormals(struct ct_cursor *at, enum ct_op op, ct_value a, ct_value b)
{
    const ct_value result = ct_op2(at, op, PTX_F32, a, b);

    at->fn->values.v[result.i].def->ignores_subnormals = true;
    return result;
}

static inline ct_value ct_bits2(struct ct_cursor *at, enum ct_op op, ct_value a, ct_value b)
{
    return ct_op2(at, op, ct_bits_type(ct_width_at(at, a)), a, b);
}

static inline ct_value ct_const32(struct ct_cursor *at, uint32_t bits)
{
    return ct_emit_const(at, CT_W_32, bits);
}

static inline ct_value ct_const64(struct ct_cursor *at, uint64_t bits)
{
    return ct_emit_const(at, CT_W_64, bits);
}

/* A constant as wide as `like`. */
static inline ct_value ct_const_like(struct ct_cursor *at, ct_value like, uint64_t bits)
{
    return ct_emit_const(at, ct_width_at(at, like), bits);
}

static inline ct_value ct_and(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_bits2(at, CT_OP_AND, a, b);
}

static inline ct_value ct_or(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_bits2(at, CT_OP_OR, a, b);
}

static inline ct_value ct_xor(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_bits2(at, CT_OP_XOR, a, b);
}

static inline ct_value ct_not(struct ct_cursor *at, ct_value a)
{
    return ct_bits1(at, CT_OP_NOT, a);
}

static inline ct_value ct_and_imm(struct ct_cursor *at, ct_value a, uint64_t bits)
{
    return ct_and(at, a, ct_const_like(at, a, bits));
}

static inline ct_value ct_or_imm(struct ct_cursor *at, ct_value a, uint64_t bits)
{
    return ct_or(at, a, ct_const_like(at, a, bits));
}

static inline ct_value ct_xor_imm(struct ct_cursor *at, ct_value a, uint64_t bits)
{
    return ct_xor(at, a, ct_const_like(at, a, bits));
}

static inline ct_value ct_add(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_bits2(at, CT_OP_ADD, a, b);
}

static inline ct_value ct_sub(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_bits2(at, CT_OP_SUB, a, b);
}

static inline ct_value ct_add_imm(struct ct_cursor *at, ct_value a, uint64_t bits)
{
    return ct_add(at, a, ct_const_like(at, a, bits));
}

/* Shifts by a constant that is below the width. */
static inline ct_value ct_shl_imm(struct ct_cursor *at, ct_value a, uint32_t amount)
{
    return ct_bits2(at, CT_OP_SHL, a, ct_const32(at, amount));
}

static inline ct_value ct_shr_imm(struct ct_cursor *at, ct_value a, uint32_t amount)
{
    return ct_op2(at, CT_OP_SHR, ct_unsigned_type(ct_width_at(at, a)), a, ct_const32(at, amount));
}

static inline ct_value ct_sar_imm(struct ct_cursor *at, ct_value a, uint32_t amount)
{
    return ct_op2(at, CT_OP_SHR, ct_signed_type(ct_width_at(at, a)), a, ct_const32(at, amount));
}

static inline ct_value ct_select(struct ct_cursor *at, ct_value condition, ct_value if_true, ct_value if_false)
{
    const enum ct_width width = ct_width_at(at, if_true);

    return ct_emit3(at, CT_OP_SELECT, ct_bits_type(width), width, condition, if_true, if_false);
}

static inline ct_value ct_icmp(struct ct_cursor *at, enum ptx_type type, enum ptx_compare compare, ct_value a, ct_value b)
{
    return ct_emit_compare(at, CT_OP_ICMP, type, compare, a, b);
}

static inline ct_value ct_icmp_imm(struct ct_cursor *at, enum ptx_type type, enum ptx_compare compare, ct_value a, uint64_t bits)
{
    return ct_icmp(at, type, compare, a, ct_const_like(at, a, bits));
}

/* a == bits, of any width. */
static inline ct_value ct_equals(struct ct_cursor *at, ct_value a, uint64_t bits)
{
    return ct_icmp_imm(at, ct_bits_type(ct_width_at(at, a)), PTX_EQ, a, bits);
}

static inline ct_value ct_fcmp(struct ct_cursor *at, enum ptx_type type, enum ptx_compare compare, ct_value a, ct_value b)
{
    return ct_emit_compare(at, CT_OP_FCMP, type, compare, a, b);
}

static inline ct_value ct_copy(struct ct_cursor *at, ct_value a)
{
    return ct_bits1(at, CT_OP_COPY, a);
}

/* Assigns to an existing value: to a register in register form; in SSA form to the result of the instruction that is being replaced. */
void ct_assign(struct ct_cursor *at, ct_value to, ct_value from);
/* Makes a register undefined, in register form, so that it is not live before. */
static inline void ct_undefine(struct ct_cursor *at, ct_value value)
{
    ct_emit_insn(at, CT_OP_UNDEF, PTX_NONE, 1, 0)->results[0] = value;
}

/* A LOAD or STORE of one element of a local object (index + 1), which has at least 8 bits; the caller sets its result or operand 1. */
struct ct_insn *ct_emit_object_access(struct ct_cursor *at, enum ct_op op, enum ptx_type type, uint32_t object, uint32_t offset_bytes);
/* A register's value in the thread's frame, at a 32-bit address plus offset_bytes; number: insn->saved of the access. Predicates and 16-bit
 * registers take 32 bits there, since the frame consists of words. */
ct_value ct_load_register(struct ct_cursor *at, ct_value address, uint32_t offset_bytes, enum ct_width width, uint32_t number);
void ct_store_register(struct ct_cursor *at, ct_value address, uint32_t offset_bytes, ct_value value, uint32_t number);
static inline uint32_t ct_register_bytes(enum ct_width width)
{
    return width == CT_W_64 ? 8 : 4;
}

void ct_emit_fence(struct ct_cursor *at, enum ptx_semantics semantics, enum ptx_scope scope);
/* Loads an additional parameter of 64 bits, which is added if *offset is 0. Its offset is never 0. */
ct_value ct_load_added_param(struct ct_cursor *at, uint32_t *offset);
/* FTOF, FTOI or ITOF. */
ct_value ct_converted(struct ct_cursor *at, enum ct_op op, enum ptx_type from, enum ptx_type to, ct_value a);
/* Converts `a` to `width`: truncated, unchanged, or extended as `type` (how the source is read) says. */
ct_value ct_resize(struct ct_cursor *at, ct_value a, enum ptx_type type, enum ct_width width);
/* `a` read as an integer of `type` (8 bits or more) and extended to its own width. */
ct_value ct_extend_in_place(struct ct_cursor *at, ct_value a, enum ptx_type type);

static inline ct_value ct_low32(struct ct_cursor *at, ct_value a)
{
    return ct_resize(at, a, PTX_U32, CT_W_32);
}

static inline ct_value ct_zext64(struct ct_cursor *at, ct_value a)
{
    return ct_resize(at, a, ct_unsigned_type(ct_width_at(at, a)), CT_W_64);
}

/* Joins two halves (16 or 32 bits each) to one value, the low one first; and splits a value into its halves. */
ct_value ct_pack2(struct ct_cursor *at, ct_value low, ct_value high);
void ct_unpack2(struct ct_cursor *at, ct_value a, ct_value *low, ct_value *high);

/* Four of the eight bytes of two words, lowest first: four bits of `selectors` for each, 0 to 7, or 8 more for eight copies of its sign (PTX
 * ISA, "prmt"). */
ct_value ct_permuted(struct ct_cursor *at, ct_value low, ct_value high, uint32_t selectors);

/* The number of zero bits above the highest set bit, in 32 bits; the width (32 or 64) if `a` is 0. */
ct_value ct_count_leading_zeros(struct ct_cursor *at, ct_value a);
/* The halves of the 128 bits of an unsigned product of 64-bit values. */
void ct_wide_product64(struct ct_cursor *at, ct_value a, ct_value b, ct_value *low, ct_value *high);

ct_value ct_sysval(struct ct_cursor *at, enum ct_sysval which);

/* The address of the launch's struct ptx2spv_grid; in cooperative kernels only (grid.c). */
ct_value ct_grid_control(struct ct_cursor *at);

/* cluster.c; in kernels with fn->clusters only. Of this block: its place in its cluster in a dimension, its rank, the number of its cluster;
 * and of all clusters: their size in a dimension, and their number of blocks. */
ct_value ct_cluster_place(struct ct_cursor *at, unsigned dimension);
ct_value ct_cluster_rank(struct ct_cursor *at);
ct_value ct_cluster_number(struct ct_cursor *at);
ct_value ct_cluster_size(struct ct_cursor *at, unsigned dimension);
ct_value ct_cluster_blocks(struct ct_cursor *at);
/* The place of this block's cluster in the grid of clusters, and the size of that. */
ct_value ct_cluster_id(struct ct_cursor *at, unsigned dimension);
ct_value ct_cluster_ids(struct ct_cursor *at, unsigned dimension);
/* The address of the barrier of this block's cluster. */
ct_value ct_cluster_barrier(struct ct_cursor *at);
/* A 32-bit address in the shared memory of the block with a rank. */
ct_value ct_cluster_map(struct ct_cursor *at, ct_value address, ct_value rank);

/* Emits the terminator of a block that has none, and sets its successors; the caller must have predecessors recomputed. */
void ct_cursor_jump(struct ct_cursor *at, struct ct_block *to);
void ct_cursor_branch(struct ct_cursor *at, ct_value condition, struct ct_block *yes, struct ct_block *no);
static inline void ct_cursor_enter(struct ct_cursor *at, struct ct_block *block)
{
    at->block = block;
    at->before = NULL;
}
/* The same where predecessors are maintained, too, as in SSA form. */
void ct_ssa_jump(struct ct_fn *fn, struct ct_block *from, struct ct_block *to);
void ct_ssa_branch(struct ct_cursor *at, ct_value condition, struct ct_block *yes, struct ct_block *no);
/* A phi in the head of a loop that has two predecessors: the value is `first` when the loop is entered, and `next` in each later iteration. */
static inline ct_value ct_loop_phi(struct ct_cursor *at, ct_value first)
{
    return ct_emit2(at, CT_OP_PHI, PTX_NONE, ct_width_at(at, first), first, first);
}
static inline void ct_loop_phi_set_next(struct ct_fn *fn, ct_value phi, ct_value next)
{
    fn->values.v[phi.i].def->operands[1] = next;
}

/* Records why the thread stops; ending the thread is left to the caller. The host reads the first record when the kernel has completed. */
void ct_emit_fault(struct ct_cursor *at, enum ptx2spv_fault_code code);

#endif
