/* SPDX-License-Identifier: Apache-2.0 */
/* refine: operations whose best form depends on how their operands were lowered, or that need a slow path for rare operands.
 * In:  SSA, lowered; instructions marked `refined`.   Out: the same; the marks no longer mean anything.
 *
 *  - f32 comparisons and inverse roots where drivers flush subnormals: the form depends on the ranges of the operands (range.h). This
 *    comes after `guard`, which separates the driver's multiply-adds, which never return subnormals, from corrected ones.
 *  - f32 quotients where only fused operations are exact: by fused steps (refine_quotient.c).
 *  - f64 multiply-adds where the driver has no fused operation (refine_fused.c).
 *  - f64 roots, and inverses of them, where the driver's own are slow (ptx2spv_target.refined_roots64): by fused steps (refine_root.c).
 *
 *     x = fsqrt a                                 x = refined root of a;  z = refined inverse of x
 *     y = fmul x, b                               v = refined root of c
 *     z = fdiv 1, x                    =>         if (a, x or c is rare)
 *     v = fsqrt c                                     x, z, v = the driver's
 *     w = fadd v, y                               y = fmul x, b
 *                                                 w = fadd v, y
 *
 * Up to four roots, quotients or multiply-adds share one slow path, so that drivers may interleave them; pure code that uses a result is moved after it. */
#include "refine.h"
#include "lower.h"

enum { STARTS_MAX = 4 };

/* ---- straight-line code ---- */

static void refine_f32(struct ct_fn *fn, struct ct_insn *insn)
{
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};
    ct_value value;

    if (!insn->refined || insn->type != PTX_F32)
        return;
    if (insn->op == CT_OP_FCMP)
        value = ct_float_compared(&at, (enum ptx_compare)insn->compare, insn->operands[0], insn->operands[1]);
    else
        value = ct_refine_inverse_root32(&at, insn->operands[0]);
    ct_assign(&at, insn->results[0], value);
    ct_insn_remove(insn);
}

/* ---- groups ---- */

struct member {
    struct ct_insn *insn; /* the instruction that it replaces */
    struct ct_refined refined;
    uint32_t root; /* for the inverse of a member's root: that member's number + 1 */
    ct_value exact;
};

struct group {
    struct ct_fn *fn;
    uint32_t *group_of;        /* indexed by value: the number of the group whose results it depends on */
    uint32_t number, n_starts; /* n_starts: members that are no inverses of roots */
    CT_VEC(struct member) members;
    CT_VEC(struct ct_insn *) delayed; /* pure instructions that use results, in order */
};

static bool depends_on_group(const struct group *group, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_PHI)
        return false;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (group->group_of[insn->operands[i].i] == group->number)
            return true;
    return false;
}

static void note_results(struct group *group, const struct ct_insn *insn)
{
    for (uint32_t r = 0; r < insn->n_results; r++)
        group->group_of[insn->results[r].i] = group->number;
}

static bool is_root(const struct ct_insn *insn)
{
    return insn->refined && insn->op == CT_OP_FSQRT;
}

static bool is_quotient(const struct ct_insn *insn)
{
    return insn->refined && insn->op == CT_OP_FDIV && insn->type == PTX_F32;
}

static bool is_fused(const struct ct_insn *insn)
{
    return insn->refined && insn->op == CT_OP_FFMA;
}

static bool starts(const struct ct_insn *insn)
{
    return is_root(insn) || is_quotient(insn) || is_fused(insn);
}

static const struct ct_insn *definition_or_null(const struct ct_fn *fn, ct_value x)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    while (def && def->op == CT_OP_COPY)
        def = fn->values.v[def->operands[0].i].def;
    return def;
}

/* The number + 1 of the member that is the root whose inverse this is; 0: none. */
static uint32_t find_root(const struct group *group, const struct ct_insn *insn)
{
    const bool is_inverse = insn->refined && insn->op == CT_OP_FDIV && insn->type == PTX_F64;
    const struct ct_insn *root = is_inverse ? definition_or_null(group->fn, insn->operands[1]) : NULL;

    for (uint32_t i = 0; root && i < group->members.n; i++)
        if (group->members.v[i].insn == root && is_root(root))
            return i + 1;
    return 0;
}

static void add_member(struct group *group, struct ct_insn *insn, uint32_t root)
{
    struct ct_cursor at = {.fn = group->fn, .block = insn->block, .before = insn, .where = insn->where};
    struct member member = {.insn = insn, .root = root};

    if (root)
        member.refined = ct_refine_inverse64(&at, &group->members.v[root - 1].refined);
    else if (is_quotient(insn))
        member.refined = ct_refine_quotient32(&at, insn->operands[0], insn->operands[1]);
    else if (is_fused(insn))
        member.refined = ct_refine_fused64(&at, insn->operands[0], insn->operands[1], insn->operands[2]);
    else
        member.refined = ct_refine_root64(&at, insn->operands[0]);
    group->n_starts += !root;
    note_results(group, insn);
    *CT_PUSH(&group->fn->compilation->scratch, &group->members) = member;
}

static ct_value one_is_rare(const struct group *group, struct ct_cursor *at)
{
    ct_value rare = group->members.v[0].refined.rare;

    for (uint32_t i = 1; i < group->members.n; i++)
        rare = ct_or(at, rare, group->members.v[i].refined.rare);
    return rare;
}

static void emit_slow_path(struct group *group, struct ct_cursor *at)
{
    for (uint32_t i = 0; i < group->members.n; i++) {
        struct member *member = &group->members.v[i];

        at->where = member->insn->where;
        if (member->root)
            member->exact = ct_refine_rare_inverse64(at, group->members.v[member->root - 1].exact);
        else if (is_quotient(member->insn))
            member->exact = ct_refine_rare_quotient32(at, member->insn->operands[0], member->insn->operands[1]);
        else if (is_fused(member->insn))
            member->exact = ct_refine_rare_fused64(at, member->insn->operands[0], member->insn->operands[1], member->insn->operands[2]);
        else
            member->exact = ct_refine_rare_root64(at, member->insn->operands[0]);
    }
}

/* Emits the phis first, then copies to the original results, then the delayed instructions. */
static void merge_results(struct group *group, struct ct_insn *place)
{
    struct ct_cursor at = {.fn = group->fn, .block = place->block, .before = place, .where = place->where};

    for (uint32_t i = 0; i < group->members.n; i++) {
        struct member *member = &group->members.v[i];

        member->exact =
            ct_emit2(&at, CT_OP_PHI, PTX_NONE, ct_width_of_value(group->fn, member->exact), member->refined.result, member->exact);
    }
    for (uint32_t i = 0; i < group->members.n; i++) {
        ct_insn_remove(group->members.v[i].insn);
        ct_assign(&at, group->members.v[i].insn->results[0], group->members.v[i].exact);
    }
    for (uint32_t i = 0; i < group->delayed.n; i++) {
        ct_insn_remove(group->delayed.v[i]);
        ct_insn_insert_before(place, group->delayed.v[i]);
        refine_f32(group->fn, group->delayed.v[i]);
    }
}

/* Ends the group before `place`, which moves to a new block with everything after it. */
static void end_group(struct group *group, struct ct_insn *place)
{
    struct ct_fn *fn = group->fn;
    struct ct_cursor at = {.fn = fn, .block = place->block, .where = place->where}, in_slow = at;
    struct ct_block *rest = ct_block_split(fn, place->block, place);

    in_slow.block = ct_block_create(fn);
    ct_ssa_branch(&at, one_is_rare(group, &at), in_slow.block, rest);
    emit_slow_path(group, &in_slow);
    ct_ssa_jump(fn, in_slow.block, rest);
    merge_results(group, place);
    group->number++;
    group->n_starts = group->members.n = group->delayed.n = 0;
}

/* Whether the instruction can neither belong to the group, nor stay in front of the delayed instructions, nor be delayed. */
static bool ends_group(const struct group *group, const struct ct_insn *insn)
{
    const bool depends = depends_on_group(group, insn);

    if (!group->members.n)
        return false;
    if (insn == insn->block->last || (depends && !ct_insn_is_pure(insn)))
        return true;
    return starts(insn) && (depends || group->n_starts == STARTS_MAX);
}

static void refine_block(struct group *group, struct ct_block *block)
{
    for (struct ct_insn *insn = block->first, *next; insn; insn = next) {
        const uint32_t root = find_root(group, insn);

        if (ends_group(group, insn))
            end_group(group, insn);
        next = insn->next;
        if (root || starts(insn)) {
            add_member(group, insn, root);
        } else if (depends_on_group(group, insn)) {
            note_results(group, insn);
            *CT_PUSH(&group->fn->compilation->scratch, &group->delayed) = insn;
        } else {
            refine_f32(group->fn, insn);
        }
    }
}

static bool has_refined(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->refined)
                return true;
    return false;
}

enum ct_pass_result ct_pass_refine(struct ct_fn *fn)
{
    struct group group = {.fn = fn, .number = 1};
    const uint32_t n_blocks = fn->blocks.n;

    if (!has_refined(fn))
        return CT_PASS_UNCHANGED;
    group.group_of = CT_ARENA_ARRAY(&fn->compilation->scratch, uint32_t, fn->values.n);
    for (uint32_t b = 0; b < n_blocks; b++)
        refine_block(&group, fn->blocks.v[b]);
    return CT_PASS_CHANGED;
}
