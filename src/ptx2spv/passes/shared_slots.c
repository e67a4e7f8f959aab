/* SPDX-License-Identifier: Apache-2.0 */
/* shared_slots: the shared memory of a block moves to device memory (struct ptx2spv_slots), for kernels that need more than the device has, and
 * where device memory is the faster one.
 * In:  SSA, primitives only; all accesses to shared memory exist, including those of `collective` and `guard`.
 * Out: if it moves, no access is in the SHARED space; a GENERIC access with a shared tag is redirected, so that only global and local memory
 *      remain; fn->shared_in_memory is set.
 *
 *     load.shared [a + c]    =>    load.global [slot + zext(a + c)]
 *     load [g + c]           =>    load [(g >> 56 == tag ? slot + zext(trunc(g)) : g) + c]
 *
 * In clusters a 32-bit address may be one of another block's shared memory (PTX2SPV_CLUSTER_RANK_SHIFT), in the SHARED space, too.
 *
 * The whole segment moves, with the exchange area. Tags, and what cvta and isspacep compute from them, do not change. Barriers already order
 * global memory, since PTX requires that of them (PTX ISA, "bar, barrier").
 *
 * lavapipe (Mesa 25.0.7, lp_bld_nir_soa.c) turns an access to work-group memory into four basic blocks for each of eight lanes, but a load or a
 * store of device memory into one gather or scatter; an atomic is a loop over the lanes in either, unrolled only for work-group memory. LLVM
 * then computes a dominator tree of all blocks for each variable (CoroFrame.cpp, collectFrameAlloca). CUB's DeviceScanKernel has 23,474
 * blocks and takes 18.5 s of LLVM's passes with work-group memory, 0.4 s with device memory; a tiled matrix_multiply runs 1.7 times as fast,
 * a histogram a quarter as fast. */
#include "ptx2spv/ir/builder.h"

#include <stddef.h>

static ct_value load_param(struct ct_cursor *at, enum ptx_type type, size_t member)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOAD, type, 1, 0);

    insn->space = CT_SPACE_PARAM;
    insn->align_log2 = type == PTX_B64 ? 3 : 2;
    insn->offset = (int64_t)(at->fn->slots_param_offset + member);
    return insn->results[0] = ct_value_create(at->fn, ct_width_of(type));
}

static ct_value multiply(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_op2(at, CT_OP_MUL, ct_unsigned_type(ct_width_at(at, a)), a, b);
}

/* The number of the block in the grid, modulo 2^32: the number of slots is a power of two, so its remainder is right. */
static ct_value block_number(struct ct_cursor *at)
{
    const ct_value planes = multiply(at, ct_sysval(at, CT_SYS_NCTAID_Y), ct_sysval(at, CT_SYS_CTAID_Z));
    const ct_value rows = ct_add(at, ct_sysval(at, CT_SYS_CTAID_Y), planes);

    return ct_add(at, ct_sysval(at, CT_SYS_CTAID_X), multiply(at, ct_sysval(at, CT_SYS_NCTAID_X), rows));
}

/* What the addresses of one block are added to. */
struct slots {
    ct_value own;            /* 64 bits: the address of its slot */
    ct_value cluster, bytes; /* in clusters: the address of the slot of rank 0, and the size of a slot, both of 64 bits; else none */
};

static struct slots cluster_slots(struct ct_cursor *at)
{
    const ct_value bytes = ct_zext64(at, load_param(at, PTX_B32, offsetof(struct ptx2spv_slots, stride_bytes)));
    const ct_value before = multiply(at, ct_zext64(at, ct_cluster_number(at)), ct_zext64(at, ct_cluster_blocks(at)));
    const ct_value first = load_param(at, PTX_B64, offsetof(struct ptx2spv_slots, address));
    const ct_value cluster = ct_add(at, first, multiply(at, before, bytes));

    return (struct slots){ct_add(at, cluster, multiply(at, ct_zext64(at, ct_cluster_rank(at)), bytes)), cluster, bytes};
}

static ct_value slot_address(struct ct_cursor *at)
{
    const ct_value slot = ct_and(at, block_number(at), load_param(at, PTX_B32, offsetof(struct ptx2spv_slots, mask)));
    const ct_value stride = load_param(at, PTX_B32, offsetof(struct ptx2spv_slots, stride_bytes));
    const ct_value offset = multiply(at, ct_zext64(at, slot), ct_zext64(at, stride));

    return ct_add(at, load_param(at, PTX_B64, offsetof(struct ptx2spv_slots, address)), offset);
}

/* The 64-bit address in device memory of a 32-bit address of shared memory, in whose upper bits may be the rank of another block of the cluster
 * (PTX2SPV_CLUSTER_RANK_SHIFT). */
static ct_value place_of(struct ct_cursor *at, const struct slots *slots, ct_value address)
{
    ct_value rank, offset, remote, is_own;

    if (!slots->cluster.i)
        return ct_add(at, slots->own, ct_zext64(at, address));
    offset = ct_zext64(at, ct_and_imm(at, address, (1u << PTX2SPV_CLUSTER_RANK_SHIFT) - 1));
    rank = ct_shr_imm(at, address, PTX2SPV_CLUSTER_RANK_SHIFT);
    is_own = ct_equals(at, rank, 0);
    remote = ct_add(at, slots->cluster, multiply(at, ct_zext64(at, ct_add_imm(at, rank, UINT32_MAX)), slots->bytes));
    return ct_add(at, ct_select(at, is_own, slots->own, remote), offset);
}

/* Shared offsets are added modulo 2^32, global ones modulo 2^64. */
static void move_shared(struct ct_cursor *at, struct ct_insn *insn, const struct slots *slots)
{
    const struct ct_insn *def = at->fn->values.v[insn->operands[0].i].def;

    insn->space = CT_SPACE_GLOBAL;
    insn->scope = slots->cluster.i ? PTX_GPU : PTX_CTA; /* without clusters no thread of another block sees this memory */
    if (def && def->op == CT_OP_CONST) {
        insn->offset = (uint32_t)(def->imm + (uint64_t)insn->offset);
        insn->operands[0] = slots->own;
        return;
    }
    if (insn->offset)
        insn->operands[0] = ct_add_imm(at, insn->operands[0], (uint32_t)insn->offset);
    insn->offset = 0;
    insn->operands[0] = place_of(at, slots, insn->operands[0]);
}

static void redirect_generic(struct ct_cursor *at, struct ct_insn *insn, const struct slots *slots)
{
    const ct_value address = insn->operands[0];
    const ct_value is_shared = ct_equals(at, ct_shr_imm(at, address, CT_TAG_SHIFT), CT_TAG_SHARED);
    const ct_value in_slot = place_of(at, slots, ct_low32(at, address));

    insn->operands[0] = ct_select(at, is_shared, in_slot, address);
}

static bool is_access(const struct ct_insn *insn)
{
    return insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM;
}

/* ---- the choice ---- */

#define MANY_ACCESSES 100 /* then the time of compilation decides */
#define ATOMIC_WEIGHT 20  /* what an atomic loses in device memory, in terms of what a load or a store gains (lavapipe) */
#define MOST_DEPTH 6

struct accesses {
    uint64_t count, loads_and_stores, atomics; /* the last two are weighted */
};

/* An inner loop is taken to have eight iterations. */
static uint64_t weight_of(const struct ct_block *block)
{
    return UINT64_C(1) << 3 * (block->loop_depth < MOST_DEPTH ? block->loop_depth : MOST_DEPTH);
}

static struct accesses count_accesses(const struct ct_fn *fn)
{
    struct accesses n = {0, 0, 0};

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            if (!is_access(insn) || insn->space != CT_SPACE_SHARED)
                continue;
            n.count++;
            *(insn->op == CT_OP_ATOM ? &n.atomics : &n.loads_and_stores) += weight_of(fn->blocks.v[b]);
        }
    return n;
}

static bool is_faster_in_memory(struct ct_fn *fn)
{
    struct accesses n;

    if (!(fn->target->workarounds & PTX2SPV_WORKAROUND_SLOW_SHARED))
        return false;
    ct_fn_compute_dominators(fn);
    ct_fn_compute_loops(fn);
    n = count_accesses(fn);
    return n.count >= MANY_ACCESSES || n.atomics * ATOMIC_WEIGHT < n.loads_and_stores;
}

static bool belongs_in_memory(struct ct_fn *fn)
{
    if (fn->clusters)
        return true;
    switch (fn->compilation->options.shared_form) {
    case PTX2SPV_SHARED_NATIVE:
        return false;
    case PTX2SPV_SHARED_IN_MEMORY:
        return true;
    default:
        return fn->shared_bytes > fn->target->shared_bytes || is_faster_in_memory(fn);
    }
}

/* ---- the pass ---- */

static void move_accesses(struct ct_fn *fn, struct ct_insn *first, const struct slots *slots)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = b ? fn->blocks.v[b]->first : first; insn; insn = insn->next) {
            struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};

            if (is_access(insn) && insn->space == CT_SPACE_SHARED)
                move_shared(&at, insn, slots);
            else if (is_access(insn) && insn->space == CT_SPACE_GENERIC)
                redirect_generic(&at, insn, slots);
        }
}

enum ct_pass_result ct_pass_shared_slots(struct ct_fn *fn)
{
    struct ct_cursor entry = {.fn = fn, .block = fn->blocks.v[0], .before = fn->blocks.v[0]->first};
    struct ct_insn *first = entry.before;
    struct slots slots;

    if (fn->kernel || !ct_fn_uses_shared(fn) || !belongs_in_memory(fn))
        return CT_PASS_UNCHANGED;
    fn->shared_in_memory = true;
    fn->slots_param_offset = ct_fn_add_param(fn, sizeof(struct ptx2spv_slots));
    entry.where = first->where;
    slots = fn->clusters ? cluster_slots(&entry) : (struct slots){.own = slot_address(&entry)};
    move_accesses(fn, first, &slots);
    return CT_PASS_CHANGED;
}
