/* SPDX-License-Identifier: Apache-2.0 */
/* build: clusters (PTX ISA, "Cluster of Cooperative Thread Arrays"), and fences between proxies. In most launches every block is a
 * cluster of its own: its shared memory is that of the cluster, and a barrier of the cluster is one of the block. With fn->clusters clusters
 * have several blocks (sync/cluster.c). */
#include "build_async.h"

#include <string.h>

/* There is only one proxy; what remains is a fence of the scope that is named. */
void ct_build_async_fence(struct ct_build *b)
{
    const struct ptx_modifiers *mods = &b->insn->mods;

    if (b->insn->n_operands && b->insn->operands[1].bits != CT_TENSOR_MAP_BYTES) {
        ct_build_invalid(b, "a tensor map has 128 bytes");
        return;
    }
    ct_build_fence_of(b, mods->semantics ? (enum ptx_semantics)mods->semantics : PTX_ACQ_REL,
                      mods->scope ? (enum ptx_scope)mods->scope : PTX_CLUSTER);
}

/* ---- barriers ---- */

static bool module_has_barrier(const struct ptx_module *module)
{
    for (uint32_t f = 0; f < module->functions.n; f++)
        if (module->functions.v[f]->has_cluster_barrier)
            return true;
    return false;
}

static struct ct_address barrier_address(struct ct_build *b)
{
    return (struct ct_address){.space = CT_SPACE_GLOBAL, .base = ct_cluster_barrier(&b->at)};
}

static void note_arrival(struct ct_build *b, bool arrived)
{
    ct_assign(&b->at, b->fn->cluster_arrived, ct_emit_const(&b->at, CT_W_PRED, arrived));
}

void ct_build_enter_cluster(struct ct_build *b)
{
    struct ct_fn *fn = b->fn;

    if (!fn->clusters || !module_has_barrier(fn->module))
        return;
    fn->uses_cluster_barrier = true;
    fn->cluster_state = ct_value_create(fn, CT_W_32);
    fn->cluster_arrived = ct_value_create(fn, CT_W_PRED);
    ct_assign(&b->at, fn->cluster_state, ct_const32(&b->at, 0));
    note_arrival(b, false);
}

/* A barrier waits for all threads that have not ended, so those that end drop out: after the phase at which they arrived, if they have not waited
 * for it. */
void ct_build_leave_cluster(struct ct_build *b)
{
    struct ct_block *wait, *leave;
    struct ct_address at;

    if (!b->fn->uses_cluster_barrier)
        return;
    wait = ct_build_block(b);
    leave = ct_build_block(b);
    at = barrier_address(b);
    ct_build_branch(b, b->fn->cluster_arrived, wait, leave);
    ct_build_enter(b, wait);
    ct_mbarrier_await(b, &at, b->fn->cluster_state);
    ct_build_jump(b, leave);
    ct_build_enter(b, leave);
    ct_build_fence_of(b, PTX_RELEASE, PTX_CLUSTER);
    ct_mbarrier_arrive(b, &at, true);
}

/* The barrier of a cluster of several blocks is an mbarrier in device memory. In one of one block, where all threads arrive, and then wait, for
 * each phase, it is enough that they meet at the wait. */
void ct_build_cluster_arrive(struct ct_build *b)
{
    struct ct_address at;
    ct_value word;

    if (!ct_async_has(b, "relaxed"))
        ct_build_fence_of(b, PTX_RELEASE, PTX_CLUSTER);
    if (!b->fn->clusters)
        return;
    at = barrier_address(b);
    word = ct_mbarrier_arrive(b, &at, false);
    ct_assign(&b->at, b->fn->cluster_state, ct_low32(&b->at, ct_shr_imm(&b->at, word, 32)));
    note_arrival(b, true);
}

static void meet_block(struct ct_build *b)
{
    const ct_value number = ct_const32(&b->at, 0);
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_BARRIER, PTX_PRED, 0, 1);

    insn->mode = PTX_MODE_SYNC;
    insn->aligned = ct_async_has(b, "aligned");
    insn->operands[0] = number;
    b->fn->uses_barrier = true;
}

void ct_build_cluster_wait(struct ct_build *b)
{
    if (b->fn->clusters) {
        const struct ct_address at = barrier_address(b);

        ct_mbarrier_await(b, &at, b->fn->cluster_state);
        note_arrival(b, false);
    } else {
        meet_block(b);
    }
    ct_build_fence_of(b, PTX_ACQUIRE, PTX_CLUSTER);
}

/* ---- addresses ---- */

/* The address of mapa and getctarank is generic or in .shared::cluster. */
static bool has_cluster_space(struct ct_build *b)
{
    if (!b->insn->mods.space || ct_async_has(b, "shared::cluster"))
        return true;
    ct_build_invalid(b, "the address is neither generic nor in .shared::cluster");
    return false;
}

/* mapa: the address of the same variable in a block of the cluster. */
void ct_build_map_address(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const enum ptx_type type = b->insn->types[0];
    ct_value address, rank, halves[2];

    if (!has_cluster_space(b))
        return;
    address = ct_build_source(b, 1, type);
    if (!b->fn->clusters) {
        ct_build_result(b, address, type);
        return;
    }
    rank = ct_build_source(b, 2, PTX_U32);
    if (ptx_type_bits(type) == 64) { /* the upper half has the tag of a generic address */
        ct_unpack2(at, address, &halves[0], &halves[1]);
        address = ct_pack2(at, ct_cluster_map(at, halves[0], rank), halves[1]);
    } else {
        address = ct_cluster_map(at, address, rank);
    }
    ct_build_result(b, address, type);
}

/* getctarank */
void ct_build_block_rank(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    ct_value above, own;

    if (!has_cluster_space(b))
        return;
    if (!b->fn->clusters) {
        ct_build_result(b, ct_const32(at, 0), PTX_U32);
        return;
    }
    above = ct_shr_imm(at, ct_low32(at, ct_build_source(b, 1, b->insn->types[0])), PTX2SPV_CLUSTER_RANK_SHIFT);
    own = ct_cluster_rank(at);
    ct_build_result(b, ct_select(at, ct_equals(at, above, 0), own, ct_add_imm(at, above, UINT32_MAX)), PTX_U32);
}
