/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters of several blocks (PTX ISA, "Cluster of Cooperative Thread Arrays"). Their kernels are cooperative ones (grid.c), whose blocks may
 * wait for each other, and their shared memory is in device memory (passes/shared_slots.c), where the other blocks of the cluster reach it.
 * The host writes the size of the clusters to struct ptx2spv_grid. */
#include "ptx2spv/ir/builder.h"

#include <stddef.h>

static ct_value load_control(struct ct_cursor *at, enum ptx_type type, size_t member)
{
    const ct_value control = ct_grid_control(at);
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOAD, type, 1, 1);

    insn->space = CT_SPACE_GLOBAL;
    insn->align_log2 = type == PTX_B64 ? 3 : 2;
    insn->offset = (int64_t)member;
    insn->read_only = true;
    insn->operands[0] = control;
    return insn->results[0] = ct_value_create(at->fn, ct_width_of(type));
}

static ct_value multiply_add(struct ct_cursor *at, ct_value a, ct_value b, ct_value c)
{
    return ct_add(at, ct_op2(at, CT_OP_MUL, PTX_U32, a, b), c);
}

ct_value ct_cluster_size(struct ct_cursor *at, unsigned dimension)
{
    return load_control(at, PTX_B32, offsetof(struct ptx2spv_grid, cluster) + sizeof(uint32_t) * dimension);
}

ct_value ct_cluster_blocks(struct ct_cursor *at)
{
    const ct_value plane = ct_op2(at, CT_OP_MUL, PTX_U32, ct_cluster_size(at, 0), ct_cluster_size(at, 1));

    return ct_op2(at, CT_OP_MUL, PTX_U32, plane, ct_cluster_size(at, 2));
}

ct_value ct_cluster_place(struct ct_cursor *at, unsigned dimension)
{
    return ct_op2(at, CT_OP_UREM, PTX_U32, ct_sysval(at, CT_SYS_CTAID_X + dimension), ct_cluster_size(at, dimension));
}

ct_value ct_cluster_id(struct ct_cursor *at, unsigned dimension)
{
    return ct_op2(at, CT_OP_UDIV, PTX_U32, ct_sysval(at, CT_SYS_CTAID_X + dimension), ct_cluster_size(at, dimension));
}

ct_value ct_cluster_ids(struct ct_cursor *at, unsigned dimension)
{
    return ct_op2(at, CT_OP_UDIV, PTX_U32, ct_sysval(at, CT_SYS_NCTAID_X + dimension), ct_cluster_size(at, dimension));
}

ct_value ct_cluster_rank(struct ct_cursor *at)
{
    const ct_value row = multiply_add(at, ct_cluster_place(at, 2), ct_cluster_size(at, 1), ct_cluster_place(at, 1));

    return multiply_add(at, row, ct_cluster_size(at, 0), ct_cluster_place(at, 0));
}

ct_value ct_cluster_number(struct ct_cursor *at)
{
    const ct_value row = multiply_add(at, ct_cluster_id(at, 2), ct_cluster_ids(at, 1), ct_cluster_id(at, 1));

    return multiply_add(at, row, ct_cluster_ids(at, 0), ct_cluster_id(at, 0));
}

ct_value ct_cluster_barrier(struct ct_cursor *at)
{
    const ct_value first = load_control(at, PTX_B64, offsetof(struct ptx2spv_grid, cluster_barriers));

    return ct_add(at, first, ct_shl_imm(at, ct_zext64(at, ct_cluster_number(at)), 3));
}

ct_value ct_cluster_map(struct ct_cursor *at, ct_value address, ct_value rank)
{
    const ct_value offset = ct_and_imm(at, address, (1u << PTX2SPV_CLUSTER_RANK_SHIFT) - 1);

    return ct_or(at, offset, ct_shl_imm(at, ct_add_imm(at, rank, 1), PTX2SPV_CLUSTER_RANK_SHIFT));
}
