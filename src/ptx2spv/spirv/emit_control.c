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

/* ---- the ways out of parts with barriers ---- */

/* PoCL copies what follows a conditional part with barriers, once for each edge that leaves the part, and a loop with barriers gets a barrier
 * on each back edge. Two such edges from the same barrier are for PoCL two ways that a block takes as a whole: all threads follow the first
 * one. So a branch that threads take differently must not become two edges (see also collective.c). LLVM makes two of it if the block behind
 * the branch is empty, and is merged with the merge block of the part or with the header of the loop, or if that merge block ends with the
 * branch and is small enough to be copied to its predecessors. Fences prevent both: the first needs one, for the second jump threading counts
 * four instructions for a call and copies six.
 *
 * g->n_cuts counts the places where PoCL divides the kernel: barriers and, if the kernel has any, loops, which get barriers of their own. */
static void keep_one_edge(struct ct_gen *g, unsigned fences)
{
    if (ct_gen_works_around(g, PTX2SPV_WORKAROUND_SPLIT_TAILS))
        for (unsigned i = 0; i < fences; i++)
            GEN_VOID(g, SpvOpMemoryBarrier, ct_gen_u32(g, SpvScopeWorkgroup), ct_gen_semantics(g, PTX_ACQ_REL));
}

void ct_gen_cut(struct ct_gen *g)
{
    g->n_cuts++;
    g->merged = false;
}

/* The end of a list before which there had been `cuts`: whether ways of threads have merged behind its last one. */
static void end_part(struct ct_gen *g, uint32_t cuts)
{
    if (g->open && g->n_cuts != cuts && g->merged)
        keep_one_edge(g, 1);
}

/* The terminator of a block is a branch, which threads may take differently. */
static void end_with_branch(struct ct_gen *g)
{
    if (g->label == g->merge_of_part)
        keep_one_edge(g, 2);
    g->open = false;
}

static bool has_barriers(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_BARRIER)
                return true;
    return false;
}

void ct_gen_branch_if(struct ct_gen *g, uint32_t condition, uint32_t if_true, uint32_t if_false, uint32_t merge)
{
    end_with_branch(g);
    GEN_VOID(g, SpvOpSelectionMerge, merge, SpvSelectionControlMaskNone);
    GEN_VOID(g, SpvOpBranchConditional, condition, if_true, if_false);
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
    const uint32_t cuts = g->n_cuts;
    bool reached;

    if (!list)
        return true;
    ct_gen_begin_block(g, label);
    gen_list(g, list);
    reached = g->open;
    end_part(g, cuts);
    ct_gen_branch(g, merge);
    return reached;
}

/* n: the number of edges that reach the merge block; cuts: g->n_cuts before the construct. */
static void begin_merge(struct ct_gen *g, uint32_t merge, uint32_t n, uint32_t cuts)
{
    ct_gen_begin_block(g, merge);
    g->merged |= n > 1;
    if (n > 1 && g->n_cuts != cuts)
        g->merge_of_part = merge;
    if (!n)
        end_with(g, SpvOpUnreachable);
}

static void gen_two_arms(struct ct_gen *g, uint32_t condition, const struct ct_node *node)
{
    const uint32_t merge = ct_gen_label(g);
    const uint32_t if_true = arm_label(g, node->then_list, merge), if_false = arm_label(g, node->else_list, merge);
    const uint32_t cuts = g->n_cuts;
    uint32_t reached;

    if (if_true == merge && if_false == merge)
        return;
    ct_gen_branch_if(g, condition, if_true, if_false, merge);
    reached = gen_arm(g, node->then_list, if_true, merge);
    reached += gen_arm(g, node->else_list, if_false, merge);
    begin_merge(g, merge, reached, cuts);
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
    const uint32_t last = node->n_cases - 1, cuts = g->n_cuts;
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
    end_with_branch(g);
    GEN_VOID(g, SpvOpSelectionMerge, region->merge, SpvSelectionControlMaskNone);
    ct_spv_emit(&g->m, CT_SPV_CODE, SpvOpSwitch, words.v, words.n);
    for (uint32_t i = 0; i <= last; i++)
        region->n_exits += gen_arm(g, node->cases[i], labels[i], region->merge);
    begin_merge(g, region->merge, region->n_exits, cuts);
}

static void gen_scope(struct ct_gen *g, const struct ct_node *node)
{
    struct ct_gen_region *region = &g->regions[node->id];
    const uint32_t inside = ct_gen_label(g), cuts = g->n_cuts;

    region->merge = ct_gen_label(g);
    GEN_VOID(g, SpvOpSelectionMerge, region->merge, SpvSelectionControlMaskNone);
    GEN_VOID(g, SpvOpSwitch, ct_gen_u32(g, 0), inside);
    g->open = false;
    if (g->label == g->merge_of_part)
        g->merge_of_part = inside; /* LLVM makes one block of both */
    ct_gen_begin_block(g, inside);
    gen_list(g, node->then_list);
    region->n_exits += g->open;
    ct_gen_branch(g, region->merge);
    begin_merge(g, region->merge, region->n_exits, cuts);
}

static void gen_loop(struct ct_gen *g, const struct ct_node *node)
{
    struct ct_gen_region *region = &g->regions[node->id];
    const uint32_t header = ct_gen_label(g), inside = ct_gen_label(g), cuts = g->n_cuts;

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
    end_part(g, cuts);
    ct_gen_branch(g, header);
    if (g->has_barriers)
        ct_gen_cut(g);
    begin_merge(g, region->merge, region->n_exits, cuts);
}

static void gen_break(struct ct_gen *g, const struct ct_node *node)
{
    struct ct_gen_region *region = &g->regions[node->region->id];

    region->n_exits++;
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
    g->has_barriers = has_barriers(g->fn);
    for (uint32_t i = 0; i < g->fn->n_selectors; i++)
        g->selectors[i] = ct_gen_variable(g, ct_gen_int_type(g, 32));
    gen_list(g, g->fn->body);
    end_with(g, SpvOpReturn);
}
