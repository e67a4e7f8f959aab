/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the loads of shared memory that form groups (load_groups.c), in SSA form. Before the first of them:
 *
 *     if (base is not aligned, or the lowest or the highest byte of the group is not in shared memory)
 *         for (i = 0 ... n - 1)
 *             report load i, if it is not allowed
 *     else, where shared memory has a shadow of written bytes:
 *         for (i = 0 ... n - 1)
 *             report load i, if nothing has written there
 *
 * So these loads, of which unrolled loops have hundreds, need no code for reports of their own in check.c and written.c. */
#include "check.h"

#include "ptx2spv/passes/simplify.h"

/* A fault that the loads of a group may have. */
struct fault {
    ct_value (*holds)(const struct ct_check *check, struct ct_cursor *at, const struct ct_access *load);
    ct_value (*number)(struct ct_cursor *at, const struct ct_access *load);
};

static ct_value is_refused(const struct ct_check *check, struct ct_cursor *at, const struct ct_access *load)
{
    (void)check;
    return ct_not(at, ct_check_shared_allows(at, load->address, load->bytes, load->bytes));
}

static ct_value refusal(struct ct_cursor *at, const struct ct_access *load)
{
    return ct_check_fault_of(at, load, CT_NO_VALUE);
}

static ct_value is_unwritten(const struct ct_check *check, struct ct_cursor *at, const struct ct_access *load)
{
    return ct_check_is_unwritten(at, load, ct_add(at, load->address, check->shared_written));
}

static ct_value unwritten(struct ct_cursor *at, const struct ct_access *load)
{
    (void)load;
    return ct_const32(at, PTX2SPV_CHECK_UNWRITTEN);
}

static const struct fault refused = {is_refused, refusal}, never_written = {is_unwritten, unwritten};

/* Reports the loads that have the fault, and goes on to `next`. */
static void report_each(struct ct_check *check, struct ct_cursor *at, const struct fault *fault, struct ct_insn *insn,
                        const struct ct_load_group *group, struct ct_block *next)
{
    struct ct_fn *fn = at->fn;
    struct ct_block *head = ct_block_create(fn), *report = ct_block_create(fn), *end = ct_block_create(fn);
    const ct_value zero = ct_const32(at, 0);
    struct ct_access access = {.insn = insn, .bytes = ct_check_access_bytes(insn), .uses = ct_check_uses_of(check, insn)};
    ct_value number, next_number;

    ct_ssa_jump(fn, at->block, head);
    at->block = head;
    number = ct_loop_phi(at, zero);
    access.address = ct_add(at, insn->operands[0], ct_load_group_offset(at, group, number));
    ct_ssa_branch(at, fault->holds(check, at, &access), report, end);
    at->block = report;
    ct_check_report(check, at,
                    &(struct ct_incident){
                        .where = insn->where,
                        .access = ct_check_describe(&access),
                        .address = access.address,
                        .fault = fault->number(at, &access),
                        .group = group,
                        .number = number,
                    });
    ct_ssa_jump(fn, at->block, end);
    at->block = end;
    next_number = ct_add_imm(at, number, 1);
    ct_loop_phi_set_next(fn, number, next_number);
    ct_ssa_branch(at, ct_icmp_imm(at, PTX_U32, PTX_LT, next_number, group->n), head, next);
}

static bool are_used_alike(const struct ct_check *check, const struct ct_insn *a, const struct ct_insn *b)
{
    bool alike = a->n_results == b->n_results;

    for (uint32_t i = 0; alike && i < a->n_results; i++)
        alike = check->uses[a->results[i].i] == check->uses[b->results[i].i];
    return alike;
}

/* Whether the group shares one test for unwritten memory: its loads must count as reads by the same rule. */
static bool tests_written(const struct ct_check *check, struct ct_insn *insn, const struct ct_load_group *group)
{
    if (!check->shared_written.i || !ct_check_reads(&(struct ct_access){.insn = insn, .uses = ct_check_uses_of(check, insn)}))
        return false;
    for (uint32_t i = 0; i < group->n; i++)
        if (!are_used_alike(check, group->loads[i], insn))
            return false;
    return true;
}

/* insn: the first load of the group in the block. */
static void examine(struct ct_check *check, struct ct_insn *insn, const struct ct_load_group *group, uint8_t *reported)
{
    struct ct_fn *fn = check->fn;
    const int64_t first = group->loads[0]->offset, last = group->loads[group->n - 1]->offset;
    const int64_t lowest = first < last ? first : last, extent = first < last ? last - first : first - last;
    const bool is_written_tested = tests_written(check, insn, group);
    struct ct_block *block = insn->block, *slow = ct_block_create(fn), *rest = ct_block_split(fn, block, insn);
    struct ct_block *allowed = is_written_tested ? ct_block_create(fn) : rest;
    struct ct_cursor at = {.fn = fn, .block = block, .where = insn->where};
    const ct_value address = ct_add_imm(&at, insn->operands[0], (uint32_t)lowest);
    const uint32_t bytes = ct_check_access_bytes(insn);

    ct_ssa_branch(&at, ct_check_shared_allows(&at, address, (uint32_t)extent + bytes, bytes), allowed, slow);
    if (is_written_tested) {
        at.block = allowed;
        report_each(check, &at, &never_written, insn, group, rest);
    }
    at.block = slow;
    report_each(check, &at, &refused, insn, group, rest);
    for (uint32_t i = 0; i < group->n; i++)
        reported[group->loads[i]->results[0].i] = CT_REPORTED_REFUSED | (is_written_tested ? CT_REPORTED_UNWRITTEN : 0);
}

/* Of an address that is known at compile time nothing needs to be examined. */
static bool may_be_grouped(const struct ct_fn *fn, const struct ct_insn *insn)
{
    return insn->op == CT_OP_LOAD && insn->space == CT_SPACE_SHARED && insn->is_checked && !insn->is_device &&
           !ct_constant_or_null(fn, insn->operands[0]);
}

/* Instructions that may write shared memory, or let other threads write it, before a later load. A test for unwritten memory must not be made before them. */
static bool ends_groups(const struct ct_check *check, const struct ct_insn *insn)
{
    const bool writes = (insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM) && insn->space == CT_SPACE_SHARED;

    return check->shared_written.i && (writes || ct_check_orders_threads(insn));
}

void ct_check_report_groups(struct ct_check *check)
{
    struct ct_fn *fn = check->fn;
    uint8_t *reported = CT_ARENA_ARRAY(&fn->compilation->scratch, uint8_t, fn->values.n);
    CT_VEC(struct ct_check_point) points = {0};

    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (may_be_grouped(fn, insn) || ends_groups(check, insn))
                *CT_PUSH(&fn->compilation->scratch, &points) = (struct ct_check_point){insn, NULL};
    ct_load_groups_find(fn, points.v, fn->clusters ? 0 : points.n);
    for (uint32_t i = points.n; i-- > 0;)
        if (points.v[i].group)
            examine(check, points.v[i].insn, points.v[i].group, reported);
    check->reported = reported;
}
