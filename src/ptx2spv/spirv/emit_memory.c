/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores in any space. An access of n elements becomes one of units, the integers that are accessed: vectors of narrow
 * elements are accessed as whole words if they fill them (ld.v4.u8 is one 32-bit access), all others element by element. */
#include "emit.h"

#include <assert.h>

bool ct_gen_is_strong(const struct ct_insn *insn)
{
    return insn->semantics != PTX_SEM_NONE && insn->semantics != PTX_WEAK;
}

/* The units of an access of n elements, its address and alignment. False: there is no such access. */
static bool describe_access(struct ct_gen *g, const struct ct_insn *insn, uint32_t n, struct ct_access *out)
{
    const unsigned element = ptx_type_bits(insn->type), total = element * n;

    if (n < 1 || n > CT_ACCESS_UNITS_MAX || (n & (n - 1)) || element < 8 || element > 64) {
        ct_gen_refuse(g, PTX2SPV_UNSUPPORTED, "memory access of %u elements of %u bits", n, element);
        return false;
    }
    *out = (struct ct_access){.insn = insn, .offset = insn->offset, .bits = element, .count = n};
    if (n > 1 && element < 32) {
        out->bits = total < 32 ? total : 32;
        out->count = total / out->bits;
    }
    /* PTX requires natural alignment ("Addresses as Operands: Alignment"); the IR may know a greater one or, for vectors, a smaller one. */
    out->align = insn->align_log2 ? 1u << insn->align_log2 : total / 8;
    if (out->align < out->bits / 8)
        out->align = out->bits / 8;
    out->address = insn->n_operands && insn->operands[0].i ? ct_gen_use(g, insn->operands[0]) : ct_gen_u32(g, 0);
    return true;
}

/* Splits units into elements: a unit that is wider contains several elements, lowest first. */
static void split_units(struct ct_gen *g, const struct ct_access *access, const uint32_t *units, unsigned element, uint32_t *elements)
{
    const unsigned each = access->bits / element;

    for (unsigned i = 0; i < access->count * each; i++) {
        uint32_t id = units[i / each];

        if (i % each)
            id = ct_gen_shift_by(g, SpvOpShiftRightLogical, access->bits, id, i % each * element);
        elements[i] = ct_gen_resize(g, id, access->bits, element, false);
    }
}

static void join_units(struct ct_gen *g, const struct ct_access *access, const uint32_t *elements, unsigned element, uint32_t *units)
{
    const uint32_t type = ct_gen_int_type(g, access->bits);
    const unsigned each = access->bits / element;

    for (unsigned i = 0; i < access->count * each; i++) {
        uint32_t id = ct_gen_resize(g, elements[i], element, access->bits, false);

        if (i % each) {
            id = ct_gen_shift_by(g, SpvOpShiftLeftLogical, access->bits, id, i % each * element);
            id = GEN(g, SpvOpBitwiseOr, type, units[i / each], id);
        }
        units[i / each] = id;
    }
}

/* ---- generic addresses ---- */

struct arm {
    enum ct_space space;
    uint32_t label;
    uint32_t results[CT_ACCESS_UNITS_MAX];
    uint32_t end; /* the block in which the arm ends */
};

static bool may_lie_in(const struct ct_gen *g, const struct ct_dispatch *dispatch, enum ct_space space)
{
    if (space == CT_SPACE_SHARED)
        return !g->fn->shared_in_memory && (g->fn->shared_bytes || g->fn->uses_dynamic_shared);
    return g->fn->local_bytes && !dispatch->never_local;
}

static void gen_arm(struct ct_gen *g, struct arm *arm, uint32_t address, const struct ct_dispatch *dispatch, uint32_t merge)
{
    const uint32_t in_space = arm->space == CT_SPACE_GLOBAL ? address : ct_gen_resize(g, address, 64, 32, false);

    dispatch->arm(g, arm->space, in_space, dispatch->user, arm->results);
    arm->end = g->label;
    ct_gen_branch(g, merge);
}

/* if (tag == shared) .. else if (tag == local) .. else global; the inner selection's merge block branches to the outer one's. */
void ct_gen_dispatch(struct ct_gen *g, uint32_t address, const struct ct_dispatch *dispatch, uint32_t *results)
{
    static const struct {
        enum ct_space space;
        uint32_t tag;
    } tagged[] = {{CT_SPACE_SHARED, CT_TAG_SHARED}, {CT_SPACE_LOCAL, CT_TAG_LOCAL}};
    uint32_t merges[2], n_merges = 0, tag = 0;
    struct arm arms[2], last = {.space = CT_SPACE_GLOBAL};

    for (unsigned i = 0; i < 2; i++) {
        struct arm *arm = &arms[n_merges];
        uint32_t other;

        if (!may_lie_in(g, dispatch, tagged[i].space))
            continue;
        if (!tag)
            tag = ct_gen_resize(g, ct_gen_shift_by(g, SpvOpShiftRightLogical, 64, address, CT_TAG_SHIFT), 64, 32, false);
        *arm = (struct arm){.space = tagged[i].space, .label = ct_gen_label(g)};
        other = ct_gen_label(g);
        merges[n_merges] = ct_gen_label(g);
        ct_gen_branch_if(g, GEN(g, SpvOpIEqual, ct_gen_int_type(g, 1), tag, ct_gen_u32(g, tagged[i].tag)), arm->label, other,
                         merges[n_merges]);
        ct_gen_begin_block(g, arm->label);
        gen_arm(g, arm, address, dispatch, merges[n_merges++]);
        ct_gen_begin_block(g, other);
    }
    dispatch->arm(g, CT_SPACE_GLOBAL, address, dispatch->user, last.results);
    while (n_merges--) {
        const uint32_t from = g->label;

        ct_gen_branch(g, merges[n_merges]);
        ct_gen_begin_block(g, merges[n_merges]);
        for (uint32_t i = 0; i < dispatch->n_results; i++)
            last.results[i] = GEN(g, SpvOpPhi, dispatch->types[i], last.results[i], from, arms[n_merges].results[i], arms[n_merges].end);
    }
    for (uint32_t i = 0; i < dispatch->n_results; i++)
        results[i] = last.results[i];
}

/* ---- loads ---- */

static void load_arm(struct ct_gen *g, enum ct_space space, uint32_t address, void *user, uint32_t *results)
{
    struct ct_access access = *(struct ct_access *)user;

    access.address = address;
    if (space == CT_SPACE_GLOBAL || g->dialect->has_pointers)
        ct_gen_load_pointed(g, space, &access, results);
    else
        ct_gen_load_words(g, space, &access, results);
}

void ct_gen_load(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned element = ptx_type_bits(insn->type);
    uint32_t units[CT_ACCESS_UNITS_MAX], elements[CT_ACCESS_UNITS_MAX], types[CT_ACCESS_UNITS_MAX];
    struct ct_access access;

    if (insn->space == CT_SPACE_PARAM) {
        ct_gen_load_param(g, insn);
        return;
    }
    if (!describe_access(g, insn, insn->n_results, &access))
        return;
    for (unsigned i = 0; i < access.count; i++)
        types[i] = ct_gen_int_type(g, access.bits);
    if (insn->space == CT_SPACE_GENERIC)
        ct_gen_dispatch(g, access.address,
                        &(struct ct_dispatch){.arm = load_arm, .user = &access, .types = types, .n_results = access.count}, units);
    else
        load_arm(g, insn->space, access.address, &access, units);
    split_units(g, &access, units, element, elements);
    for (uint32_t i = 0; i < insn->n_results; i++)
        if (insn->results[i].i)
            ct_gen_define(g, insn->results[i],
                          ct_gen_resize(g, elements[i], element, ct_gen_bits(g, insn->results[i]), ptx_type_is_signed(insn->type)));
}

/* ---- stores ---- */

struct store_job {
    struct ct_access access;
    const uint32_t *units;
};

static void store_arm(struct ct_gen *g, enum ct_space space, uint32_t address, void *user, uint32_t *results)
{
    const struct store_job *job = user;
    struct ct_access access = job->access;

    (void)results;
    access.address = address;
    if (space == CT_SPACE_GLOBAL || g->dialect->has_pointers)
        ct_gen_store_pointed(g, space, &access, job->units);
    else
        ct_gen_store_words(g, space, &access, job->units);
}

void ct_gen_store(struct ct_gen *g, const struct ct_insn *insn)
{
    const unsigned element = ptx_type_bits(insn->type);
    uint32_t units[CT_ACCESS_UNITS_MAX], elements[CT_ACCESS_UNITS_MAX];
    struct store_job job = {.units = units};

    if (insn->space == CT_SPACE_PARAM) {
        ct_gen_refuse(g, PTX2SPV_INTERNAL, "store to a kernel parameter");
        return;
    }
    if (!describe_access(g, insn, insn->n_operands - 1, &job.access))
        return;
    for (uint32_t i = 1; i < insn->n_operands; i++)
        elements[i - 1] = ct_gen_resize(g, ct_gen_use(g, insn->operands[i]), ct_gen_bits(g, insn->operands[i]), element, false);
    join_units(g, &job.access, elements, element, units);
    if (insn->space == CT_SPACE_GENERIC)
        ct_gen_dispatch(g, job.access.address, &(struct ct_dispatch){.arm = store_arm, .user = &job}, NULL);
    else
        store_arm(g, insn->space, job.access.address, &job, NULL);
}
