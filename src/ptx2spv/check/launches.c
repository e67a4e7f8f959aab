/* SPDX-License-Identifier: Apache-2.0 */
/* Which launch accessed what (options.check_launches), so that the host can tell whether it accessed memory that a kernel was using. In SSA form.
 *
 * Each aligned word of four bytes that has a shadow has two numbers of launches (struct ptx2spv_check_range.launches): of the last one that read it and of the
 * last one that wrote there. Before an access that is allowed, the thread stores the number of its own launch, of which all threads store the same. Memory
 * without a shadow has the first two words of struct ptx2spv_check.scratch.
 *
 * A kernel is left alone if anything in it may be meant for the host that runs beside it: fences, accesses and atomic operations of the system's scope, and
 * volatile accesses. */
#include "check.h"

enum { WORD = 4, MARK_SHIFT = 1, WRITER = 4 };

static bool is_observable(const struct ct_insn *insn)
{
    switch (insn->op) {
    case CT_OP_FENCE:
    case CT_OP_ATOM:
        return insn->scope == PTX_SYS;
    case CT_OP_LOAD:
    case CT_OP_STORE:
        return insn->space != CT_SPACE_SHARED && insn->space != CT_SPACE_LOCAL &&
               (insn->semantics == PTX_VOLATILE || insn->semantics == PTX_MMIO || (insn->semantics > PTX_WEAK && insn->scope == PTX_SYS));
    default:
        return false;
    }
}

bool ct_launch_is_unobserved(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (is_observable(insn))
                return false;
    return true;
}

void ct_launches_begin(struct ct_check *check)
{
    check->has_shadow[CT_SHADOW_LAUNCHES] = true;
    check->number = ct_check_load(&check->entry, ct_check_control(check), offsetof(struct ptx2spv_check, launch), CT_W_32);
}

static void store(struct ct_cursor *at, ct_value place, uint32_t offset, ct_value number)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_STORE, PTX_B32, 0, 2);

    insn->space = CT_SPACE_GLOBAL;
    insn->align_log2 = 2;
    insn->offset = offset;
    insn->operands[0] = place;
    insn->operands[1] = number;
}

void ct_check_launches(struct ct_check *check, const struct ct_access *access, ct_value launches)
{
    struct ct_insn *insn = access->insn;
    struct ct_cursor at = {.fn = check->fn, .block = insn->block, .before = insn, .where = insn->where};
    const uint32_t words = access->bytes > WORD ? access->bytes / WORD : 1;
    const ct_value none = ct_equals(&at, launches, 0);
    const ct_value scratch = ct_add_imm(&at, ct_check_control(check), offsetof(struct ptx2spv_check, scratch));
    const ct_value first = ct_add(&at, ct_shl_imm(&at, ct_and_imm(&at, access->address, ~UINT64_C(3)), MARK_SHIFT), launches);

    for (uint32_t i = 0; i < words; i++) {
        const ct_value place = ct_select(&at, none, scratch, ct_add_imm(&at, first, (uint64_t)i * WORD << MARK_SHIFT));

        store(&at, place, access->writes ? WRITER : 0, check->number);
    }
}
