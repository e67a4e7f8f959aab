/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of memory that nothing has written (options.check_written). In SSA form.
 *
 * Each byte of device memory has another one that is 0 until something is written there (struct ptx2spv_check_range.written), and so have shared memory
 * (shared_shadow.c) and local memory (local_shadow.c). Before an access that is allowed:
 *
 *     place = distance ? address + distance : struct ptx2spv_check.written          bytes of ones for memory without a shadow
 *     load:     if (the load's bytes at `place` are 0) report                       see ct_check_is_unwritten
 *     store:    store ones to `place`, as many as the store writes
 *     atomic:   both
 *
 * The shadow is accessed by weak accesses of the same width, before the program's own, so a thread that has the right to see the value that another one
 * stored sees the ones, too. */
#include "check.h"

#include <string.h>

/* ---- what becomes of the values that loads give ---- */

static enum ct_check_use use_by(const struct ct_insn *insn, uint32_t operand)
{
    if (insn->op == CT_OP_COPY || insn->op == CT_OP_PHI)
        return CT_USE_KEPT;
    if (insn->op == CT_OP_STORE && operand > 0)
        return insn->space == CT_SPACE_LOCAL ? CT_USE_KEPT : CT_USE_STORED;
    return insn->op == CT_OP_SELECT && operand > 0 ? CT_USE_CHOSEN : CT_USE_COMPUTED;
}

const uint8_t *ct_check_find_uses(const struct ct_fn *fn)
{
    uint8_t *uses = CT_ARENA_ARRAY(&fn->compilation->scratch, uint8_t, fn->values.n);

    memset(uses, 0, fn->values.n);
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            for (uint32_t i = 0; i < insn->n_operands; i++)
                uses[insn->operands[i].i] |= use_by(insn, i);
    return uses;
}

const uint8_t *ct_check_uses_of(const struct ct_check *check, const struct ct_insn *insn)
{
    uint8_t *uses = CT_ARENA_ARRAY(&check->fn->compilation->scratch, uint8_t, insn->n_results + 1);

    for (uint32_t i = 0; check->uses && i < insn->n_results; i++)
        uses[i] = check->uses[insn->results[i].i];
    return uses;
}

/* ---- the shadow ---- */

static enum ptx_type shadow_type(enum ptx_type type)
{
    switch (ptx_type_bits(type)) {
    case 8:
        return PTX_U8;
    case 16:
        return PTX_U16;
    case 32:
        return PTX_B32;
    default:
        return PTX_B64;
    }
}

/* The width of the values that the access reads or writes. */
static enum ct_width width_of(const struct ct_fn *fn, const struct ct_insn *insn)
{
    return ct_width_of_value(fn, insn->op == CT_OP_LOAD ? insn->results[0] : insn->operands[1]);
}

struct ct_insn *ct_check_access_like(struct ct_cursor *at, enum ct_op op, const struct ct_access *access, ct_value place)
{
    const struct ct_insn *insn = access->insn;
    const uint32_t n = ct_element_count(insn);
    struct ct_insn *like = ct_emit_insn(at, op, shadow_type(insn->type), op == CT_OP_LOAD ? n : 0, op == CT_OP_LOAD ? 1 : n + 1);

    like->space = ct_check_is_window(insn) ? insn->space : CT_SPACE_GLOBAL;
    like->align_log2 = insn->align_log2 < 4 ? insn->align_log2 : 4; /* of struct ptx2spv_check.written */
    like->operands[0] = place;
    for (uint32_t i = 0; i < like->n_results; i++) {
        like->results[i] = ct_value_create(at->fn, width_of(at->fn, insn));
        at->fn->values.v[like->results[i].i].def = like;
    }
    return like;
}

static ct_value place_of(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access, ct_value distance)
{
    const ct_value place = ct_add(at, access->address, distance);

    if (ct_check_is_window(access->insn))
        return place;
    return ct_select(at, ct_equals(at, distance, 0), ct_add_imm(at, ct_check_control(check), offsetof(struct ptx2spv_check, written)),
                     place);
}

/* ---- reads ---- */

/* What makes a read of memory count at all. Compilers load from local memory, of which they know that it exists, before it is certain that the value is needed,
 * and copy structures there whole. */
static uint8_t uses_that_count(const struct ct_access *access)
{
    return access->insn->space == CT_SPACE_LOCAL ? CT_USE_STORED | CT_USE_COMPUTED : UINT8_MAX;
}

static uint8_t uses_that_compute(const struct ct_access *access)
{
    return (CT_USE_CHOSEN | CT_USE_COMPUTED) & uses_that_count(access);
}

ct_value ct_check_is_unwritten(struct ct_cursor *at, const struct ct_access *access, ct_value place)
{
    const struct ct_insn *load = ct_check_access_like(at, CT_OP_LOAD, access, place);
    ct_value all = CT_NO_VALUE, some = CT_NO_VALUE;

    for (uint32_t i = 0; i < load->n_results; i++) {
        const ct_value is_zero = ct_equals(at, load->results[i], 0);

        all = all.i ? ct_and(at, all, is_zero) : is_zero;
        if (access->uses[i] & uses_that_compute(access))
            some = some.i ? ct_or(at, some, is_zero) : is_zero;
    }
    return some.i ? ct_or(at, all, some) : all;
}

/* The first half of an exchange is no read to speak of: programs set flags by it. */
bool ct_check_reads(const struct ct_access *access)
{
    bool used = access->insn->op == CT_OP_ATOM && access->insn->operation != PTX_EXCH;

    for (uint32_t i = 0; access->insn->op == CT_OP_LOAD && i < access->insn->n_results; i++)
        used |= (access->uses[i] & uses_that_count(access)) != 0;
    return used;
}

static void test(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access, ct_value place)
{
    struct ct_insn *insn = access->insn;
    struct ct_block *rest = ct_check_enter_if(at, insn, ct_check_is_unwritten(at, access, place));

    ct_check_report(check, at,
                    &(struct ct_incident){
                        .where = insn->where,
                        .access = ct_check_describe(access),
                        .address = access->address,
                        .fault = ct_const32(at, PTX2SPV_CHECK_UNWRITTEN),
                    });
    ct_check_leave_if(at, insn, rest);
}

static void mark(struct ct_cursor *at, const struct ct_access *access, ct_value place)
{
    const ct_value ones = ct_emit_const(at, width_of(at->fn, access->insn), UINT64_MAX);
    struct ct_insn *store = ct_check_access_like(at, CT_OP_STORE, access, place);

    for (uint32_t i = 1; i < store->n_operands; i++)
        store->operands[i] = ones;
}

void ct_check_written(struct ct_check *check, const struct ct_access *access, ct_value distance)
{
    struct ct_insn *insn = access->insn;
    struct ct_cursor at = {.fn = check->fn, .block = insn->block, .before = insn, .where = insn->where};
    const bool is_read = ct_check_reads(access);
    ct_value place;

    if (access->bytes > sizeof((struct ptx2spv_check *)0)->written || (!is_read && !access->writes))
        return;
    place = place_of(check, &at, access, distance);
    if (is_read && !(access->reported & CT_REPORTED_UNWRITTEN))
        test(check, &at, access, place);
    if (access->writes)
        mark(&at, access, place);
}
