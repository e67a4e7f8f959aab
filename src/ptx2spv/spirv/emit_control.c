/* SPDX-License-Identifier: Apache-2.0 */
/* The structured form to SPIR-V's structured control flow.
 *
 *   IF          OpSelectionMerge, OpBranchConditional; so do TEST and GUARD
 *   SWITCH      OpSelectionMerge, OpSwitch
 *   SCOPE       OpSelectionMerge, OpSwitch with only a default: the only selection whose merge block may be branched to from inside
 *               other selections
 *   LOOP        a header of its own with OpLoopMerge, the body, a continue block of its own with the back edge
 *
 * A merge block that no branch reaches is unreachable and ends the list. Trees are at most CT_NODE_DEPTH_MAX deep, so recursion is safe. */
#include "emit.h"

#include "ptx2spv/passes/simplify.h"

uint32_t ct_gen_label(struct ct_gen *g)
{
    return ct_spv_id(&g->m);
}

void ct_gen_begin_block(struct ct_gen *g, uint32_t label)
{
    GEN_VOID(g, SpvOpLabel, label);
    g->label = label;
    g->open = true;
}

/* Ends the current block with a branch, unless it has a terminator. */
void ct_gen_branch(struct ct_gen *g, uint32_t label)
{
    if (g->open)
        GEN_VOID(g, SpvOpBranch, label);
    g->open = false;
}

static void end_with(struct ct_gen *g, SpvOp op)
{
    if (g->open)
        ct_spv_emit(&g->m, CT_SPV_CODE, op, NULL, 0);
    g->open = false;
}

void ct_gen_branch_if(struct ct_gen *g, uint32_t condition, uint32_t if_true, uint32_t if_false, uint32_t merge)
{
    GEN_VOID(g, SpvOpSelectionMerge, merge, SpvSelectionControlMaskNone);
    GEN_VOID(g, SpvOpBranchConditional, condition, if_true, if_false);
    g->open = false;
}

/* ---- hints ---- */

enum { UNROLLED_MAX = 32 };

/* Whether a loop may be left after a number of iterations that drivers know at compile time: they unroll all of these, which takes long. */
static bool counts_to_constant(const struct ct_gen *g, const struct ct_node *node)
{
    const struct ct_insn *def = node->kind == CT_NODE_IF ? g->fn->values.v[node->condition.i].def : NULL;

    return def && def->op == CT_OP_ICMP && (ct_constant_or_null(g->fn, def->operands[0]) || ct_constant_or_null(g->fn, def->operands[1]));
}

/* The number of instructions of a list; more than UNROLLED_MAX if it contains anything but arithmetic. */
static uint32_t weight_of(const struct ct_gen *g, const struct ct_node *list)
{
    uint32_t weight = 0;

    for (const struct ct_node *node = list; node && weight <= UNROLLED_MAX; node = node->next) {
        if (node->kind == CT_NODE_LOOP || node->kind == CT_NODE_SWITCH || counts_to_constant(g, node))
            return UNROLLED_MAX + 1;
        for (const struct ct_insn *insn = node->kind == CT_NODE_BLOCK ? node->block->first : NULL; insn; insn = insn->next)
            if (insn->op != CT_OP_CONST && insn->op != CT_OP_PHI && !(ct_op_infos[insn->op].flags & CT_OPF_TERMINATOR))
                weight += ct_insn_is_pure(insn) ? 1 : UNROLLED_MAX + 1;
        weight += weight_of(g, node->then_list) + weight_of(g, node->else_list);
    }
    return weight;
}

static uint32_t loop_hint(const struct ct_gen *g, const struct ct_node *loop)
{
    const bool unroll = g->target->unroll_hint && weight_of(g, loop->then_list) <= UNROLLED_MAX;

    return unroll ? SpvLoopControlUnrollMask : SpvLoopControlMaskNone;
}

/* ---- positions of blocks in the tree ---- */

static uint32_t number_list(struct ct_gen *g, const struct ct_node *list, uint32_t at);

static uint32_t number_inside(struct ct_gen *g, const struct ct_node *node, uint32_t at)
{
    at = number_list(g, node->then_list, at);
    at = number_list(g, node->else_list, at);
    for (uint32_t i = 0; i < node->n_cases; i++)
        at = number_list(g, node->cases[i], at);
    return at;
}

static uint32_t number_list(struct ct_gen *g, const struct ct_node *list, uint32_t at)
{
    for (const struct ct_node *node = list; node; node = node->next) {
        if (node->kind == CT_NODE_BLOCK)
            g->positions[node->block->id].at = at;
        at = number_inside(g, node, at + 1);
    }
    for (const struct ct_node *node = list; node; node = node->next)
        if (node->kind == CT_NODE_BLOCK)
            g->positions[node->block->id].list_end = at - 1;
    return at;
}

void ct_gen_positions(struct ct_gen *g)
{
    g->positions = CT_ARENA_ARRAY(&g->fn->compilation->scratch, struct ct_gen_position, g->fn->blocks.n);
    number_list(g, g->fn->body, 0);
}

/* ---- nodes ---- */

static void gen_list(struct ct_gen *g, const struct ct_node *list);

static void gen_block(struct ct_gen *g, const struct ct_block *block)
{
    g->block = block;
    ct_gen_load_phis(g);
    for (const struct ct_insn *insn = block->first; insn && !g->failed; insn = insn->next)
        if (insn->op != CT_OP_PHI && !(ct_op_infos[insn->op].flags & CT_OPF_TERMINATOR))
            ct_gen_insn(g, insn);
    if (!g->failed)
        ct_gen_store_phis(g);
}

/* The label to branch to for a list as the arm of a selection: the merge block itself for an empty list. */
static uint32_t arm_label(struct ct_gen *g, const struct ct_node *list, uint32_t merge)
{
    return list ? ct_gen_label(g) : merge;
}

/* Emits the arm and returns whether it reaches the merge block. */
static bool gen_arm(struct ct_gen *g, const struct ct_node *list, uint32_t label, uint32_t merge)
{
    bool reached;

    if (!list)
        return true;
    ct_gen_begin_block(g, label);
    gen_list(g, list);
    reached = g->open;
    ct_gen_branch(g, merge);
    return reached;
}

static void begin_merge(struct ct_gen *g, uint32_t merge, bool reached)
{
    ct_gen_begin_block(g, merge);
    if (!reached)
        end_with(g, SpvOpUnreachable);
}

static void gen_two_arms(struct ct_gen *g, uint32_t condition, const struct ct_node *node)
{
    const uint32_t merge = ct_gen_label(g);
    const uint32_t if_true = arm_label(g, node->then_list, merge), if_false = arm_label(g, node->else_list, merge);
    bool reached;

    if (if_true == merge && if_false == merge)
        return;
    ct_gen_branch_if(g, condition, if_true, if_false, merge);
    reached = gen_arm(g, node->then_list, if_true, merge);
    reached |= gen_arm(g, node->else_list, if_false, merge);
    begin_merge(g, merge, reached);
}

static void gen_test(struct ct_gen *g, const struct ct_node *node, SpvOp compare)
{
    const uint32_t selector = GEN(g, SpvOpLoad, ct_gen_int_type(g, 32), g->selectors[node->variable]);

    gen_two_arms(g, GEN(g, compare, ct_gen_int_type(g, 1), selector, ct_gen_u32(g, node->number)), node);
}

/* The last case is also the default. */
static void gen_switch(struct ct_gen *g, const struct ct_node *node)
{
    struct ct_arena *scratch = &g->fn->compilation->scratch;
    struct ct_gen_region *region = &g->regions[node->id];
    const uint32_t last = node->n_cases - 1;
    uint32_t *labels = CT_ARENA_ARRAY(scratch, uint32_t, node->n_cases);
    ct_spv_words words = {0};

    if (node->n_cases > CT_SWITCH_TARGETS_MAX) {
        ct_gen_refuse(g, PTX2SPV_UNSUPPORTED, "an indexed branch with %u targets", node->n_cases);
        return;
    }
    region->merge = ct_gen_label(g);
    for (uint32_t i = 0; i <= last; i++)
        labels[i] = arm_label(g, node->cases[i], region->merge);
    *CT_PUSH(scratch, &words) = ct_gen_use(g, node->condition);
    *CT_PUSH(scratch, &words) = labels[last];
    for (uint32_t i = 0; i < last; i++) {
        *CT_PUSH(scratch, &words) = i;
        *CT_PUSH(scratch, &words) = labels[i];
    }
    GEN_VOID(g, SpvOpSelectionMerge, region->merge, SpvSelectionControlMaskNone);
    ct_spv_emit(&g->m, CT_SPV_CODE, SpvOpSwitch, words.v, words.n);
    g->open = false;
    for (uint32_t i = 0; i <= last; i++)
        region->is_left |= gen_arm(g, node->cases[i], labels[i], region->merge);
    begin_merge(g, region->merge, region->is_left);
}

static void gen_scope(struct ct_gen *g, const struct ct_node *node)
{
    struct ct_gen_region *region = &g->regions[node->id];
    const uint32_t inside = ct_gen_label(g);

    region->merge = ct_gen_label(g);
    GEN_VOID(g, SpvOpSelectionMerge, region->merge, SpvSelectionControlMaskNone);
    GEN_VOID(g, SpvOpSwitch, ct_gen_u32(g, 0), inside);
    g->open = false;
    ct_gen_begin_block(g, inside);
    gen_list(g, node->then_list);
    region->is_left |= g->open;
    ct_gen_branch(g, region->merge);
    begin_merge(g, region->merge, region->is_left);
}

static void gen_loop(struct ct_gen *g, const struct ct_node *node)
{
    struct ct_gen_region *region = &g->regions[node->id];
    const uint32_t header = ct_gen_label(g), inside = ct_gen_label(g);

    region->merge = ct_gen_label(g);
    region->next_round = ct_gen_label(g);
    ct_gen_branch(g, header);
    ct_gen_begin_block(g, header);
    GEN_VOID(g, SpvOpLoopMerge, region->merge, region->next_round, loop_hint(g, node));
    ct_gen_branch(g, inside);
    ct_gen_begin_block(g, inside);
    gen_list(g, node->then_list);
    ct_gen_branch(g, region->next_round);
    ct_gen_begin_block(g, region->next_round);
    ct_gen_branch(g, header);
    begin_merge(g, region->merge, region->is_left);
}

static void gen_break(struct ct_gen *g, const struct ct_node *node)
{
    struct ct_gen_region *region = &g->regions[node->region->id];

    region->is_left = true;
    ct_gen_branch(g, region->merge);
}

static void gen_node(struct ct_gen *g, const struct ct_node *node)
{
    switch (node->kind) {
    case CT_NODE_BLOCK:
        gen_block(g, node->block);
        break;
    case CT_NODE_IF:
        gen_two_arms(g, ct_gen_use(g, node->condition), node);
        break;
    case CT_NODE_SWITCH:
        gen_switch(g, node);
        break;
    case CT_NODE_LOOP:
        gen_loop(g, node);
        break;
    case CT_NODE_SCOPE:
        gen_scope(g, node);
        break;
    case CT_NODE_BREAK:
        gen_break(g, node);
        break;
    case CT_NODE_CONTINUE:
        ct_gen_branch(g, g->regions[node->region->id].next_round);
        break;
    case CT_NODE_RETURN:
        end_with(g, SpvOpReturn);
        break;
    case CT_NODE_UNREACHABLE:
        end_with(g, SpvOpUnreachable);
        break;
    case CT_NODE_SET:
        GEN_VOID(g, SpvOpStore, g->selectors[node->variable], ct_gen_u32(g, node->number));
        break;
    case CT_NODE_TEST:
        gen_test(g, node, SpvOpIEqual);
        break;
    case CT_NODE_GUARD:
        gen_test(g, node, SpvOpULessThanEqual);
        break;
    }
}

/* What follows a node without an exit is never executed. */
static void gen_list(struct ct_gen *g, const struct ct_node *list)
{
    for (const struct ct_node *node = list; node && g->open && !g->failed; node = node->next)
        gen_node(g, node);
}

void ct_gen_tree(struct ct_gen *g)
{
    struct ct_arena *scratch = &g->fn->compilation->scratch;

    g->regions = CT_ARENA_ARRAY(scratch, struct ct_gen_region, g->fn->n_nodes);
    g->selectors = CT_ARENA_ARRAY(scratch, uint32_t, g->fn->n_selectors);
    for (uint32_t i = 0; i < g->fn->n_selectors; i++)
        g->selectors[i] = ct_gen_variable(g, ct_gen_int_type(g, 32));
    gen_list(g, g->fn->body);
    end_with(g, SpvOpReturn);
}
