/* SPDX-License-Identifier: Apache-2.0 */
/* Native warp instructions as subgroup operations. A subgroup has 32 lanes, or is used in parts of 32. */
#include "emit.h"

static uint32_t subgroup_scope(struct ct_gen *g)
{
    return ct_gen_u32(g, SpvScopeSubgroup);
}

uint32_t ct_gen_subgroup_lane(struct ct_gen *g)
{
    if (!g->subgroup_lane) {
        const uint32_t uint = ct_gen_int_type(g, 32), variable = ct_gen_global_variable(g, SpvStorageClassInput, uint);

        CT_SPV_DECORATE(&g->m, variable, SpvDecorationBuiltIn, SpvBuiltInSubgroupLocalInvocationId);
        ct_spv_capability(&g->m, SpvCapabilityGroupNonUniform);
        g->subgroup_lane = GEN_EARLY(g, SpvOpLoad, uint, variable);
    }
    return g->subgroup_lane;
}

/* The first lane of the thread's own part, or 0 if the subgroup is one part. */
static uint32_t part(struct ct_gen *g)
{
    if (g->target->subgroup_size <= 32)
        return 0;
    return GEN(g, SpvOpBitwiseAnd, ct_gen_int_type(g, 32), ct_gen_subgroup_lane(g), ct_gen_u32(g, ~UINT32_C(31)));
}

void ct_gen_laneread(struct ct_gen *g, const struct ct_insn *insn)
{
    const uint32_t uint = ct_gen_int_type(g, 32), first = part(g);
    uint32_t lane = ct_gen_use(g, insn->operands[1]);

    ct_spv_capability(&g->m, SpvCapabilityGroupNonUniform);
    ct_spv_capability(&g->m, SpvCapabilityGroupNonUniformShuffle);
    if (first)
        lane = GEN(g, SpvOpIAdd, uint, first, lane);
    ct_gen_define(g, insn->results[0],
                  GEN(g, SpvOpGroupNonUniformShuffle, uint, subgroup_scope(g), ct_gen_use(g, insn->operands[0]), lane));
}

void ct_gen_ballot(struct ct_gen *g, const struct ct_insn *insn)
{
    const uint32_t uint = ct_gen_int_type(g, 32), vector = ct_spv_type_vector(&g->m, uint, 4), first = part(g);
    const uint32_t ballot = GEN(g, SpvOpGroupNonUniformBallot, vector, subgroup_scope(g), ct_gen_use(g, insn->operands[0]));
    uint32_t word;

    ct_spv_capability(&g->m, SpvCapabilityGroupNonUniform);
    ct_spv_capability(&g->m, SpvCapabilityGroupNonUniformBallot);
    if (first)
        word = GEN(g, SpvOpVectorExtractDynamic, uint, ballot, GEN(g, SpvOpShiftRightLogical, uint, first, ct_gen_u32(g, 5)));
    else
        word = GEN(g, SpvOpCompositeExtract, uint, ballot, 0);
    ct_gen_define(g, insn->results[0], word);
}

void ct_gen_warpsync(struct ct_gen *g, const struct ct_insn *insn)
{
    (void)insn; /* The mask of WARPSYNC is not needed: lanes outside of it are not active here, or wait for nothing. CONVERGE has none. */
    GEN_VOID(g, SpvOpControlBarrier, subgroup_scope(g), subgroup_scope(g), ct_gen_semantics(g, PTX_ACQ_REL));
}
