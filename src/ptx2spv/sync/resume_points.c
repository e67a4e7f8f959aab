/* SPDX-License-Identifier: Apache-2.0 */
#include "resume_points.h"

#include <string.h>

enum { MANY_POINTS = 32, MANY_POINTS_OPENCL = 64 };

void ct_resume_points_init(struct ct_resume_points *points, struct ct_fn *fn, uint32_t n)
{
    const bool is_vulkan = fn->target->dialect == PTX2SPV_VULKAN;

    *points = (struct ct_resume_points){.fn = fn};
    points->shares_registers = n >= (is_vulkan ? MANY_POINTS : MANY_POINTS_OPENCL);
    points->shares_code = points->shares_registers && is_vulkan;
}

/* ---- kinds ---- */

struct ct_point_kind *ct_resume_points_kind(const struct ct_resume_points *points, const struct ct_insn *insn)
{
    for (uint32_t i = 0; i < points->kinds.n && insn->op != CT_OP_ACTIVEMASK; i++) {
        const struct ct_insn *other = points->all.v[points->kinds.v[i].point - 1].insn;

        if (other->op == insn->op && other->mode == insn->mode && other->type == insn->type && other->operation == insn->operation)
            return &points->kinds.v[i];
    }
    return NULL;
}

static uint32_t number_of_kind(const struct ct_resume_points *points, uint32_t point)
{
    const struct ct_point_kind *kind = ct_resume_points_kind(points, points->all.v[point - 1].insn);

    return kind ? kind->point : CT_KIND_ACTIVEMASK + point;
}

static void note_kind(struct ct_resume_points *points, const struct ct_insn *insn)
{
    struct ct_point_kind *kind = ct_resume_points_kind(points, insn);

    if (!kind) {
        kind = CT_PUSH(&points->fn->compilation->scratch, &points->kinds);
        *kind = (struct ct_point_kind){.point = points->all.n, .is_counted = ct_has_mask(insn->op)};
    }
    kind->is_counted = kind->is_counted && points->full[ct_mask_of(insn).i];
}

void ct_resume_points_add(struct ct_resume_points *points, struct ct_insn *insn, const struct ct_insn *const *writers)
{
    struct ct_arena *scratch = &points->fn->compilation->scratch;
    struct ct_point *point = CT_PUSH(scratch, &points->all);

    point->insn = insn;
    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const struct ct_insn *writer = writers[insn->operands[i].i];

        if (writer && writer->block == insn->block && writer->op == CT_OP_CONST)
            point->constants[i] = writer;
    }
    if (insn->op != CT_OP_ACTIVEMASK)
        note_kind(points, insn);
}

uint32_t ct_resume_points_number_counters(struct ct_resume_points *points)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < points->kinds.n; i++)
        if (points->kinds.v[i].is_counted) {
            points->kinds.v[i].counter = n++;
            points->kinds.v[i].passed = ct_value_create(points->fn, CT_W_32);
        }
    return n;
}

/* ---- groups ---- */

/* Whether the same ones exist, and have the same widths. */
static bool are_alike(const struct ct_fn *fn, const ct_value *a, const ct_value *b, uint32_t n)
{
    bool alike = true;

    for (uint32_t i = 0; i < n && alike; i++)
        alike = !a[i].i == !b[i].i && (!a[i].i || ct_width_of_value(fn, a[i]) == ct_width_of_value(fn, b[i]));
    return alike;
}

/* Whether the instructions differ in the values of their operands and results only. Each ACTIVEMASK has a kind of its own. */
static bool have_same_code(const struct ct_fn *fn, const struct ct_insn *a, const struct ct_insn *b)
{
    return a->op == b->op && a->mode == b->mode && a->type == b->type && a->operation == b->operation && a->n_operands == b->n_operands &&
           a->n_results == b->n_results && are_alike(fn, a->operands, b->operands, a->n_operands) &&
           are_alike(fn, a->results, b->results, a->n_results) && a->op != CT_OP_ACTIVEMASK;
}

/* The point joins a group; operands that are another constant at it are none of the group's constants. */
static bool join(const struct ct_resume_points *points, struct ct_point_group *group, const struct ct_point *point)
{
    if (!points->shares_code || !have_same_code(points->fn, group->insn, point->insn))
        return false;
    for (uint32_t i = 0; i < point->insn->n_operands; i++)
        if (group->constants[i] && (!point->constants[i] || point->constants[i]->imm != group->constants[i]->imm))
            group->constants[i] = NULL;
    return true;
}

/* ---- shared registers ---- */

static ct_value shared_register(struct ct_resume_points *points, ct_value *of_width, ct_value like)
{
    const enum ct_width width = ct_width_of_value(points->fn, like);

    if (!of_width[width].i)
        of_width[width] = ct_value_create(points->fn, width);
    return of_width[width];
}

/* Replaces the group's instruction by a copy with the shared registers. */
static void share_registers(struct ct_resume_points *points, struct ct_point_group *group)
{
    const struct ct_insn *insn = group->insn;
    struct ct_insn *copy = ct_insn_create(points->fn, insn->op, insn->type, insn->n_results, insn->n_operands);
    const struct ct_insn lists = *copy;

    *copy = *insn;
    copy->results = lists.results;
    copy->operands = lists.operands;
    for (uint32_t i = 0; i < insn->n_operands; i++)
        if (insn->operands[i].i && !group->constants[i])
            copy->operands[i] = shared_register(points, points->operands[i], insn->operands[i]);
    for (uint32_t i = 0; i < insn->n_results; i++)
        if (insn->results[i].i)
            copy->results[i] = shared_register(points, points->results[i], insn->results[i]);
    group->insn = copy;
    group->posting = points->shares_code ? ct_block_create(points->fn) : NULL;
}

void ct_resume_points_group(struct ct_resume_points *points)
{
    for (uint32_t i = 0; i < points->all.n; i++) {
        struct ct_point *point = &points->all.v[i];
        struct ct_point_group *group;

        for (point->group = 0; point->group < points->groups.n; point->group++)
            if (join(points, &points->groups.v[point->group], point))
                break;
        if (point->group < points->groups.n)
            continue;
        group = CT_PUSH(&points->fn->compilation->scratch, &points->groups);
        *group =
            (struct ct_point_group){.insn = point->insn, .kind = number_of_kind(points, i + 1), .evaluation = ct_block_create(points->fn)};
        memcpy(group->constants, point->constants, sizeof group->constants);
    }
    for (uint32_t i = 0; i < points->groups.n && points->shares_registers; i++)
        share_registers(points, &points->groups.v[i]);
}

void ct_resume_points_store(struct ct_cursor *at, const struct ct_resume_points *points, const struct ct_point *point)
{
    const struct ct_point_group *group = &points->groups.v[point->group];

    for (uint32_t i = 0; points->shares_registers && i < point->insn->n_operands; i++)
        if (point->insn->operands[i].i && !group->constants[i])
            ct_assign(at, group->insn->operands[i], point->insn->operands[i]);
}

void ct_resume_points_load(struct ct_cursor *at, const struct ct_resume_points *points, const struct ct_point *point)
{
    const struct ct_point_group *group = &points->groups.v[point->group];

    for (uint32_t i = 0; points->shares_registers && i < point->insn->n_results; i++)
        if (point->insn->results[i].i)
            ct_assign(at, point->insn->results[i], group->insn->results[i]);
}

const struct ct_insn *ct_resume_points_insn(struct ct_cursor *at, const struct ct_resume_points *points, const struct ct_point_group *group)
{
    for (uint32_t i = 0; points->shares_registers && i < group->insn->n_operands; i++)
        if (group->constants[i])
            group->insn->operands[i] = ct_emit_const(at, ct_width_at(at, group->constants[i]->results[0]), group->constants[i]->imm);
    return group->insn;
}
