/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of an address that need no search: alignment, the bounds of shared and local memory, and those of the range that the root of a global
 * address leads to. */
#include "check.h"

#include "ptx2spv/passes/simplify.h"

#include <assert.h>

/* ---- verdicts ---- */

static struct ct_verdict both(struct ct_cursor *at, struct ct_verdict a, struct ct_verdict b)
{
    if (a.never || b.never)
        return (struct ct_verdict){.never = true};
    return (struct ct_verdict){.holds = !a.holds.i ? b.holds : !b.holds.i ? a.holds : ct_and(at, a.holds, b.holds)};
}

static struct ct_verdict known(bool holds)
{
    return (struct ct_verdict){.never = !holds};
}

/* ---- alignment ---- */

ct_value ct_check_is_aligned(struct ct_cursor *at, const struct ct_access *access)
{
    return ct_equals(at, ct_and_imm(at, ct_low32(at, access->address), access->bytes - 1), 0);
}

static struct ct_verdict alignment(struct ct_cursor *at, const struct ct_access *access)
{
    if (access->bytes == 1)
        return known(true);
    return (struct ct_verdict){.holds = ct_check_is_aligned(at, access)};
}

/* ---- shared and local memory ---- */

ct_value ct_check_shared_size(struct ct_cursor *at)
{
    ct_value all = ct_sysval(at, CT_SYS_SHARED_BYTES);

    at->fn->reads_shared_size = true; /* so that the host does not round the size up (block_shared.c) */
    if (at->fn->check_thread_bytes)
        all = ct_sub(at, all,
                     ct_op2(at, CT_OP_MUL, PTX_U32, ct_sysval(at, CT_SYS_BLOCK_THREADS), ct_const32(at, at->fn->check_thread_bytes)));
    return at->fn->shared_copies > 1 ? ct_op2(at, CT_OP_UDIV, PTX_U32, all, ct_const32(at, at->fn->shared_copies)) : all;
}

ct_value ct_check_is_within(struct ct_cursor *at, enum ct_space space, ct_value offset, uint32_t bytes)
{
    const struct ct_fn *fn = at->fn;
    ct_value size, last;

    if (space == CT_SPACE_LOCAL)
        return fn->local_program_bytes < bytes ? ct_emit_const(at, CT_W_PRED, 0)
                                               : ct_icmp_imm(at, PTX_U32, PTX_LE, offset, fn->local_program_bytes - bytes);
    size = ct_check_shared_size(at);
    last = ct_icmp(at, PTX_U32, PTX_LE, offset, ct_add_imm(at, size, -(uint64_t)bytes & UINT32_MAX));
    return fn->shared_bytes >= bytes ? last : ct_and(at, last, ct_icmp_imm(at, PTX_U32, PTX_GE, size, bytes));
}

ct_value ct_check_shared_allows(struct ct_cursor *at, ct_value offset, uint32_t extent, uint32_t bytes)
{
    const ct_value within = ct_check_is_within(at, CT_SPACE_SHARED, offset, extent);

    return bytes > 1 ? ct_and(at, within, ct_equals(at, ct_and_imm(at, offset, bytes - 1), 0)) : within;
}

static struct ct_verdict window_bounds(struct ct_cursor *at, const struct ct_access *access)
{
    const struct ct_fn *fn = at->fn;
    const bool is_local = access->insn->space == CT_SPACE_LOCAL;
    const uint64_t size = is_local ? fn->local_program_bytes : fn->shared_bytes;
    const struct ct_insn *base = ct_constant_or_null(fn, access->insn->operands[0]);
    const uint64_t place = base ? (uint32_t)(base->imm + (uint64_t)access->insn->offset) : 0;

    if (fn->clusters && !is_local) /* the address may have the rank of another block */
        return alignment(at, access);
    if (base && place + access->bytes <= size)
        return known(place % access->bytes == 0);
    return both(at, alignment(at, access),
                (struct ct_verdict){.holds = ct_check_is_within(at, (enum ct_space)access->insn->space, access->address, access->bytes)});
}

/* ---- the ranges of roots ---- */

/* The number of places where an access of `bytes` may begin; 0: the range is too small, or there is none. */
static ct_value places(struct ct_cursor *at, ct_value size, uint32_t bytes)
{
    if (bytes == 1)
        return size;
    return ct_select(at, ct_icmp_imm(at, PTX_U64, PTX_GE, size, bytes), ct_add_imm(at, size, -(uint64_t)(bytes - 1)), ct_const64(at, 0));
}

struct ct_shadows ct_check_load_shadows(const struct ct_check *check, struct ct_cursor *at, ct_value range, uint64_t offset)
{
    static const size_t members[] = {
        [CT_SHADOW_WRITTEN] = offsetof(struct ptx2spv_check_range, written),
        [CT_SHADOW_ACCESSES] = offsetof(struct ptx2spv_check_range, accesses),
        [CT_SHADOW_LAUNCHES] = offsetof(struct ptx2spv_check_range, launches),
    };
    struct ct_shadows shadows = {0};

    for (unsigned i = 0; i < CT_SHADOWS; i++)
        if (check->has_shadow[i])
            shadows.at[i] = ct_check_load(at, range, offset + members[i], CT_W_64);
    return shadows;
}

static const struct ct_check_limits *param_limits(struct ct_check *check, uint64_t offset, uint32_t bytes)
{
    struct ct_cursor *at = &check->entry;
    const uint64_t place = sizeof(struct ptx2spv_check) + offset / sizeof(uint64_t) * sizeof(struct ptx2spv_check_range);
    struct ct_check_limits *limits;
    ct_value control;

    for (uint32_t i = 0; i < check->limits.n; i++)
        if (check->limits.v[i].offset == offset && check->limits.v[i].bytes == bytes)
            return &check->limits.v[i];
    control = ct_check_control(check);
    limits = CT_PUSH(&check->fn->compilation->scratch, &check->limits);
    limits->offset = offset;
    limits->bytes = bytes;
    limits->start = ct_check_load(at, control, place + offsetof(struct ptx2spv_check_range, start), CT_W_64);
    limits->n_places = places(at, ct_check_load(at, control, place + offsetof(struct ptx2spv_check_range, bytes), CT_W_64), bytes);
    limits->shadows = ct_check_load_shadows(check, at, control, place);
    return limits;
}

static struct ct_verdict within(struct ct_cursor *at, const struct ct_access *access, ct_value start, uint64_t size)
{
    if (size < access->bytes)
        return known(false);
    return (struct ct_verdict){
        .holds = ct_icmp_imm(at, PTX_U64, PTX_LE, ct_sub(at, access->address, start), size - access->bytes),
    };
}

/* The variable of the module's image in which a place is, or NULL. */
static const struct ptx_variable *variable_at(const struct ct_fn *fn, uint64_t offset)
{
    for (uint32_t i = 0; i < fn->module->variables.n; i++) {
        const struct ptx_variable *variable = fn->module->variables.v[i];
        const bool is_placed = (variable->space == PTX_SPACE_GLOBAL || variable->space == PTX_SPACE_CONST) &&
                               variable->linkage != PTX_LINK_EXTERN && !variable->managed;

        if (is_placed && offset - variable->offset < variable->size_bytes)
            return variable;
    }
    return NULL;
}

static struct ct_verdict variable_bounds(struct ct_cursor *at, const struct ct_access *access)
{
    const uint64_t place = access->root.offset + (uint64_t)access->insn->offset;
    const struct ptx_variable *variable = variable_at(at->fn, place);

    if (!variable || (access->writes && variable->space == PTX_SPACE_CONST))
        return known(false);
    if (access->root.is_place && place % access->bytes == 0 && place - variable->offset + access->bytes <= variable->size_bytes)
        return known(true);
    return both(at, alignment(at, access),
                within(at, access, ct_add_imm(at, ct_sysval(at, CT_SYS_IMAGE_BASE), variable->offset), variable->size_bytes));
}

static struct ct_verdict global_bounds(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access)
{
    const struct ct_check_limits *limits;

    switch (access->root.kind) {
    case CT_ROOT_UNKNOWN:
    case CT_ROOT_SAME_PHI:
        break;
    case CT_ROOT_VARIABLE:
        return variable_bounds(at, access);
    case CT_ROOT_PARAMS:
        return access->writes
                   ? known(false)
                   : both(at, alignment(at, access), within(at, access, ct_sysval(at, CT_SYS_PARAM_BASE), check->fn->declared_param_bytes));
    case CT_ROOT_PARAM:
        limits = param_limits(check, access->root.offset, access->bytes);
        return both(at, alignment(at, access),
                    (struct ct_verdict){
                        .holds = ct_icmp(at, PTX_U64, PTX_LT, ct_sub(at, access->address, limits->start), limits->n_places),
                    });
    }
    return known(false);
}

struct ct_shadows ct_check_variable_shadows(struct ct_check *check, const struct ct_access *access)
{
    const struct ptx_variable *variable = NULL;
    struct ct_shadows shadows = {0};

    if (check->has_shadow[CT_SHADOW_ACCESSES] && access->root.kind == CT_ROOT_VARIABLE)
        variable = variable_at(check->fn, access->root.offset + (uint64_t)access->insn->offset);
    if (!variable || variable->space == PTX_SPACE_CONST)
        return shadows;
    if (!check->variables.i)
        check->variables = ct_check_load(&check->entry, ct_check_control(check), offsetof(struct ptx2spv_check, variables), CT_W_64);
    shadows.at[CT_SHADOW_ACCESSES] = check->variables;
    return shadows;
}

struct ct_shadows ct_check_fast_shadows(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access)
{
    struct ct_shadows shadows = ct_check_variable_shadows(check, access);

    if (access->root.kind == CT_ROOT_PARAM)
        return param_limits(check, access->root.offset, access->bytes)->shadows;
    for (unsigned i = 0; i < CT_SHADOWS; i++)
        if (check->has_shadow[i] && !shadows.at[i].i)
            shadows.at[i] = ct_const64(at, 0);
    return shadows;
}

struct ct_verdict ct_check_bounds(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access)
{
    if (ct_check_is_window(access->insn))
        return window_bounds(at, access);
    return global_bounds(check, at, access);
}
