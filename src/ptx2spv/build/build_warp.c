/* SPDX-License-Identifier: Apache-2.0 */
/* build: instructions that the threads of a warp execute together. The old forms without .sync apply to all 32 lanes. */
#include "build.h"

#define ALL_LANES UINT32_MAX

static ct_value member_mask(struct ct_build *b, unsigned index)
{
    return b->insn->mods.sync ? ct_build_source(b, index, PTX_B32) : ct_const32(&b->at, ALL_LANES);
}

/* Destination d or d|p. */
struct pair {
    const struct ptx_operand *items;
    uint32_t n;
};

static struct pair destination_pair(const struct ct_build *b)
{
    struct pair pair;

    pair.items = ct_build_items(&b->insn->operands[0], &pair.n);
    return pair;
}

/* Creates a 32-bit result for insn, and a predicate if the destination has one; then writes both. */
static void write_pair(struct ct_build *b, struct ct_insn *insn)
{
    const struct pair pair = destination_pair(b);

    for (uint32_t i = 0; i < insn->n_results; i++)
        insn->results[i] = ct_value_create(b->fn, i ? CT_W_PRED : CT_W_32);
    for (uint32_t i = 0; i < insn->n_results; i++)
        ct_build_write(b, &pair.items[i], insn->results[i], i ? PTX_PRED : PTX_B32);
}

void ct_build_shfl(struct ct_build *b)
{
    ct_value values[4];
    struct ct_insn *insn;

    for (unsigned i = 0; i < 3; i++)
        values[i] = ct_build_source(b, i + 1, PTX_B32);
    values[3] = member_mask(b, 4);
    insn = ct_emit_insn(&b->at, CT_OP_SHFL, PTX_B32, destination_pair(b).n > 1 ? 2 : 1, 4);
    insn->mode = b->insn->mods.mode;
    for (unsigned i = 0; i < 4; i++)
        insn->operands[i] = values[i];
    write_pair(b, insn);
}

void ct_build_vote(struct ct_build *b)
{
    const enum ptx_type type = b->insn->mods.mode == PTX_MODE_BALLOT ? PTX_B32 : PTX_PRED;
    const ct_value predicate = ct_build_source(b, 1, PTX_PRED), mask = member_mask(b, 2);
    const ct_value result = ct_emit2(&b->at, CT_OP_VOTE, type, ct_width_of(type), predicate, mask);

    b->at.block->last->mode = b->insn->mods.mode;
    ct_build_result(b, result, type);
}

void ct_build_match(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    const ct_value value = ct_build_source(b, 1, type), mask = member_mask(b, 2);
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_MATCH, type, destination_pair(b).n > 1 ? 2 : 1, 2);

    insn->mode = b->insn->mods.mode;
    insn->operands[0] = value;
    insn->operands[1] = mask;
    write_pair(b, insn);
}

void ct_build_activemask(struct ct_build *b)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_ACTIVEMASK, PTX_B32, 1, 0);
    const ct_value mask = ct_value_create(b->fn, CT_W_32);

    insn->results[0] = mask;
    ct_build_result(b, mask, PTX_B32);
}

void ct_build_redux(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    const ct_value value = ct_build_source(b, 1, type), mask = member_mask(b, 2);
    ct_value result;

    if (ptx_type_is_float(type)) {
        ct_build_unsupported(b, "a float type, which requires the target sm_100a,");
        return;
    }
    result = ct_emit2(&b->at, CT_OP_REDUX, type, CT_W_32, value, mask);
    b->at.block->last->operation = b->insn->mods.operation;
    ct_build_result(b, result, type);
}

/* elect.sync d|p, mask: elects one thread of the mask, always the same one: the lowest. */
void ct_build_elect(struct ct_build *b)
{
    const struct pair pair = destination_pair(b);
    const ct_value mask = ct_build_source(b, 1, PTX_B32);
    ct_value leader;

    ct_emit_insn(&b->at, CT_OP_WARPSYNC, PTX_B32, 0, 1)->operands[0] = mask;
    leader = ct_op1(&b->at, CT_OP_CLZ, PTX_B32, ct_op1(&b->at, CT_OP_BREV, PTX_B32, mask));
    if (pair.n != 2) {
        ct_build_invalid(b, "the destination is not a pair");
        return;
    }
    ct_build_write(b, &pair.items[0], leader, PTX_B32);
    ct_build_write(b, &pair.items[1], ct_icmp(&b->at, PTX_B32, PTX_EQ, ct_sysval(&b->at, CT_SYS_LANEID), leader), PTX_PRED);
}

/* Whether the kernel will have native warps is known later (collective.c). If it has not, it is compiled again (pipeline.c). */
bool ct_build_may_read_lanes(struct ct_build *b)
{
    const struct ptx2spv_target *target = b->fn->target;

    if (target->warp_form != PTX2SPV_WARP_NATIVE || target->sync_form != PTX2SPV_SYNC_CHEAPEST || target->threads_in_turn ||
        target->subgroup_size > 32 || b->fn->cooperative || b->fn->compilation->avoids_native_warps)
        return false;
    b->fn->needs_native_warps = true;
    return true;
}
