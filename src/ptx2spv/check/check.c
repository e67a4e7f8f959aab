/* SPDX-License-Identifier: Apache-2.0 */
/* check: examines the program's accesses to memory, and leaves out those that are not allowed.
 * In:  SSA; the accesses marked is_checked; spaces known.   Out: the same, without marks; the graph has more blocks.
 *
 *     x = load a          if (a is within the range that its root leads to && a is aligned)           bounds.c
 *                             x1 = load a
 *              =>         else if (a is allowed according to the table of ranges)                     search.c
 *                             x1 = load a                                                             the same code
 *                         else
 *                             count it at its site                                                    sites.c
 *                         x = phi x1, 0
 *
 * It comes before the passes that change addresses into those of the device, and after those that cut kernels at barriers, so the states that
 * these save are not examined. Shared memory has one range, and so has the local memory of a thread. */
#include "check.h"

#include <string.h>

uint32_t ct_check_access_bytes(const struct ct_insn *insn)
{
    return ct_element_count(insn) * (ptx_type_bits(insn->type) / 8);
}

ct_value ct_check_load(struct ct_cursor *at, ct_value address, uint64_t offset, enum ct_width width)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_LOAD, ct_bits_type(width), 1, 1);

    insn->space = CT_SPACE_GLOBAL;
    insn->read_only = true;
    insn->operands[0] = address;
    insn->offset = (int64_t)offset;
    insn->align_log2 = width == CT_W_64 ? 3 : 2;
    insn->results[0] = ct_value_create(at->fn, width);
    at->fn->values.v[insn->results[0].i].def = insn;
    return insn->results[0];
}

ct_value ct_check_control(struct ct_check *check)
{
    if (!check->control.i)
        check->control = ct_load_added_param(&check->entry, &check->fn->check_param_offset);
    if (!check->fn->check_sites)
        check->fn->check_sites = 1; /* number 0 */
    return check->control;
}

ct_value ct_check_varying_zero(struct ct_check *check)
{
    struct ct_cursor *at = &check->entry;

    if (!check->varying_zero.i)
        check->varying_zero =
            ct_and(at, ct_shr_imm(at, ct_sysval(at, CT_SYS_NCTAID_Z), 16 /* it is at most 65535 */), ct_sysval(at, CT_SYS_TID_LINEAR));
    return check->varying_zero;
}

void ct_check_begin(struct ct_check *check, struct ct_insn *first)
{
    struct ct_fn *fn = check->fn;
    struct ct_insn *marker;

    check->entry = (struct ct_cursor){.fn = fn, .block = first->block, .before = first, .where = fn->source->where};
    marker = ct_emit_insn(&check->entry, CT_OP_UNDEF, PTX_B32, 1, 0); /* stays there when the block is split */
    marker->results[0] = ct_value_create(fn, CT_W_32);
    check->entry.before = marker;
}

static ct_value address_of(struct ct_cursor *at, const struct ct_insn *insn)
{
    const ct_value base = insn->operands[0];

    return insn->offset ? ct_add_imm(at, base, ct_width_at(at, base) == CT_W_32 ? (uint32_t)insn->offset : (uint64_t)insn->offset) : base;
}

ct_value ct_check_fault_of(struct ct_cursor *at, const struct ct_access *access, ct_value inside)
{
    const ct_value outside = ct_const32(at, PTX2SPV_CHECK_OUTSIDE), write = ct_const32(at, PTX2SPV_CHECK_WRITE);
    ct_value fault = inside.i ? ct_select(at, inside, write, outside) : outside;

    if (access->bytes > 1)
        fault = ct_select(at, ct_check_is_aligned(at, access), fault, ct_const32(at, PTX2SPV_CHECK_MISALIGNED));
    return fault;
}

uint32_t ct_check_describe(const struct ct_access *access)
{
    static const uint8_t spaces[] = {
        [CT_SPACE_GENERIC] = PTX2SPV_CHECK_GENERIC,
        [CT_SPACE_GLOBAL] = PTX2SPV_CHECK_GLOBAL,
        [CT_SPACE_SHARED] = PTX2SPV_CHECK_SHARED,
        [CT_SPACE_LOCAL] = PTX2SPV_CHECK_LOCAL,
    };
    const struct ct_insn *insn = access->insn;
    const enum ptx2spv_check_operation operation = insn->op == CT_OP_LOAD    ? PTX2SPV_CHECK_LOAD
                                                   : insn->op == CT_OP_STORE ? PTX2SPV_CHECK_STORE
                                                                             : PTX2SPV_CHECK_ATOMIC;

    return PTX2SPV_CHECK_ACCESS(insn->where.source, access->bytes, operation, spaces[insn->space]);
}

/* What is executed if the cheap test does not let the access pass. `then` makes the access; `join` follows it. Returns the shadows of an access
 * that may be made. */
static struct ct_shadows make_slow_path(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access, struct ct_block *then,
                                        struct ct_block *join)
{
    struct ct_fn *fn = check->fn;
    struct ct_found found = {.inside = CT_NO_VALUE};

    if (!ct_check_is_window(access->insn)) {
        struct ct_block *refused = ct_block_create(fn);

        found = ct_check_search(check, at, access);
        ct_ssa_branch(at, found.allowed, then, refused);
        at->block = refused;
    }
    if (!(access->reported & CT_REPORTED_REFUSED))
        ct_check_report(check, at,
                        &(struct ct_incident){
                            .where = access->insn->where,
                            .access = ct_check_describe(access),
                            .address = access->address,
                            .fault = ct_check_fault_of(at, access, found.inside),
                        });
    ct_ssa_jump(fn, at->block, join);
    return found.shadows;
}

/* The results of the access become phis at the head of `join`, whose predecessors are the block of the access and, second, the refusal. */
static void merge_results(struct ct_fn *fn, struct ct_insn *insn, ct_value *zeros, struct ct_block *join)
{
    struct ct_cursor at = {.fn = fn, .block = join, .before = join->first, .where = insn->where};

    for (uint32_t i = 0; i < insn->n_results; i++) {
        struct ct_insn *phi = ct_emit_insn(&at, CT_OP_PHI, PTX_NONE, 1, 2);

        phi->results[0] = insn->results[i];
        phi->operands[1] = zeros[i];
        insn->results[i] = ct_value_create(fn, ct_width_of_value(fn, insn->results[i]));
        fn->values.v[insn->results[i].i].def = insn;
        fn->values.v[phi->results[0].i].def = phi;
        phi->operands[0] = insn->results[i];
    }
}

static void make_zeros(struct ct_cursor *at, const struct ct_insn *insn, ct_value *out)
{
    for (uint32_t i = 0; i < insn->n_results; i++)
        out[i] = ct_emit_const(at, ct_width_of_value(at->fn, insn->results[i]), 0);
}

/* At the head of the block that makes the access: `fast` behind the cheap test, whose edge comes first, `slow` behind the search. */
static ct_value joined(struct ct_fn *fn, struct ct_block *then, ct_value fast, ct_value slow)
{
    struct ct_cursor at = {.fn = fn, .block = then, .before = then->first, .where = then->first->where};

    return !slow.i || then->preds.n == 1 ? slow : ct_emit2(&at, CT_OP_PHI, PTX_NONE, CT_W_64, fast, slow);
}

/* Makes the access depend on the verdict. Returns its shadows. */
static struct ct_shadows guard(struct ct_check *check, const struct ct_access *access, const struct ct_verdict *fast, struct ct_cursor *at)
{
    struct ct_fn *fn = check->fn;
    struct ct_insn *insn = access->insn;
    ct_value *zeros = CT_ARENA_ARRAY(&fn->compilation->scratch, ct_value, insn->n_results + 1);
    struct ct_block *test = insn->block, *slow = ct_block_create(fn), *join, *then;
    struct ct_cursor in_slow = {.fn = fn, .block = slow, .where = insn->where};
    struct ct_shadows quick = {0}, searched;
    ct_value never;

    make_zeros(at, insn, zeros);
    never = ct_emit_const(at, CT_W_PRED, 0);
    if (!fast->never && !ct_check_is_window(insn))
        quick = ct_check_fast_shadows(check, at, access);
    then = ct_block_split(fn, test, insn);
    join = ct_block_split(fn, then, insn->next);
    at->before = NULL;
    if (fast->never && !ct_check_is_window(access->insn))
        ct_ssa_jump(fn, test, slow);
    else
        ct_ssa_branch(at, fast->never ? never : fast->holds, then, slow);
    ct_ssa_jump(fn, then, join);
    searched = make_slow_path(check, &in_slow, access, then, join);
    merge_results(fn, insn, zeros, join);
    for (unsigned i = 0; i < CT_SHADOWS; i++)
        searched.at[i] = joined(fn, then, quick.at[i], searched.at[i]);
    return searched;
}

static bool is_access(const struct ct_insn *insn)
{
    return insn->is_checked && insn->space != CT_SPACE_PARAM && !insn->is_device;
}

static void examine(struct ct_check *check, struct ct_insn *insn)
{
    static void (*const use_shadow[])(struct ct_check *check, const struct ct_access *access, ct_value shadow) = {
        [CT_SHADOW_WRITTEN] = ct_check_written,
        [CT_SHADOW_ACCESSES] = ct_check_blocks,
        [CT_SHADOW_LAUNCHES] = ct_check_launches,
    };
    struct ct_cursor at = {.fn = check->fn, .block = insn->block, .before = insn, .where = insn->where};
    struct ct_access access = {.insn = insn, .bytes = ct_check_access_bytes(insn), .writes = insn->op != CT_OP_LOAD};
    struct ct_shadows shadows = {0};
    struct ct_verdict fast;

    insn->is_checked = false;
    access.reported = insn->n_results ? check->reported[insn->results[0].i] : 0;
    access.uses = ct_check_uses_of(check, insn); /* before the results are replaced */
    access.address = address_of(&at, insn);
    if (!ct_check_is_window(insn))
        access.root = ct_check_root(check, insn->operands[0]);
    fast = ct_check_bounds(check, &at, &access);
    if (fast.holds.i || fast.never)
        shadows = guard(check, &access, &fast, &at);
    else if (!ct_check_is_window(insn))
        shadows = ct_check_variable_shadows(check, &access);
    if (ct_check_is_window(insn))
        shadows.at[CT_SHADOW_WRITTEN] = insn->space == CT_SPACE_SHARED ? check->shared_written : check->local_written;
    for (unsigned i = 0; i < CT_SHADOWS; i++)
        if (shadows.at[i].i)
            use_shadow[i](check, &access, shadows.at[i]);
}

/* The first instruction of the entry that is no phi. */
static struct ct_insn *first_of(const struct ct_block *block)
{
    struct ct_insn *insn = block->first;

    while (insn->op == CT_OP_PHI)
        insn = insn->next;
    return insn;
}

static bool has_generic_writes(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if ((insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM) && insn->space == CT_SPACE_GENERIC)
                return true;
    return false;
}

static void begin_written(struct ct_check *check)
{
    check->has_shadow[CT_SHADOW_WRITTEN] = true;
    check->uses = ct_check_find_uses(check->fn);
    if (has_generic_writes(check->fn))
        return;
    if (check->fn->local_written)
        check->local_written = ct_const32(&check->entry, check->fn->local_written);
    if (check->fn->checks_written)
        check->shared_written = ct_bits2(&check->entry, CT_OP_MUL, ct_check_shared_size(&check->entry),
                                         ct_const32(&check->entry, (uint32_t)check->fn->shared_copies - 1));
}

enum ct_pass_result ct_pass_check(struct ct_fn *fn)
{
    struct ct_check check = {.fn = fn};
    CT_VEC(struct ct_insn *) accesses = {0};

    if (!fn->compilation->options.check || fn->kernel)
        return CT_PASS_UNCHANGED;
    ct_check_begin(&check, first_of(fn->blocks.v[0]));
    if (fn->compilation->options.check_written)
        begin_written(&check);
    if (fn->checks_blocks)
        ct_blocks_begin(&check);
    if (fn->checks_launches)
        ct_launches_begin(&check);
    ct_check_report_groups(&check);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (is_access(insn))
                *CT_PUSH(&fn->compilation->scratch, &accesses) = insn;
    for (uint32_t i = accesses.n; i-- > 0;) /* backwards, so that splitting a block moves few instructions */
        examine(&check, accesses.v[i]);
    return CT_PASS_CHANGED;
}
