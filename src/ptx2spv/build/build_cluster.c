/* SPDX-License-Identifier: Apache-2.0 */
/* build: clusters (PTX ISA, "Cluster of Cooperative Thread Arrays"), and fences between proxies. Every block is a cluster of its own, so
 * its shared memory is that of the cluster, and a barrier of the cluster is one of the block. */
#include "build_async.h"

#define MAP_BYTES 128

/* There is only one proxy; what remains is a fence of the scope that is named. */
void ct_build_async_fence(struct ct_build *b)
{
    const struct ptx_modifiers *mods = &b->insn->mods;

    if (b->insn->n_operands && b->insn->operands[1].bits != MAP_BYTES) {
        ct_build_invalid(b, "a tensor map has 128 bytes");
        return;
    }
    ct_build_fence_of(b, mods->semantics ? (enum ptx_semantics)mods->semantics : PTX_ACQ_REL,
                      mods->scope ? (enum ptx_scope)mods->scope : PTX_CLUSTER);
}

/* All threads of a cluster arrive, and then wait, for each phase, so it is enough that they meet at the wait. */
void ct_build_cluster_arrive(struct ct_build *b)
{
    if (!ct_async_has(b, "relaxed"))
        ct_build_fence_of(b, PTX_RELEASE, PTX_CLUSTER);
}

void ct_build_cluster_wait(struct ct_build *b)
{
    const ct_value number = ct_const32(&b->at, 0);
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_BARRIER, PTX_PRED, 0, 1);

    insn->mode = PTX_MODE_SYNC;
    insn->aligned = ct_async_has(b, "aligned");
    insn->operands[0] = number;
    b->fn->uses_barrier = true;
    ct_build_fence_of(b, PTX_ACQUIRE, PTX_CLUSTER);
}

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
    const enum ptx_type type = b->insn->types[0];

    if (has_cluster_space(b))
        ct_build_result(b, ct_build_source(b, 1, type), type);
}

/* getctarank */
void ct_build_block_rank(struct ct_build *b)
{
    if (has_cluster_space(b))
        ct_build_result(b, ct_const32(&b->at, 0), PTX_U32);
}
