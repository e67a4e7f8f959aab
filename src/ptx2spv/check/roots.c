/* SPDX-License-Identifier: Apache-2.0 */
/* The root of an address: the parameter or variable that it was computed from by adding and subtracting. In SSA form.
 *
 * The root only says which range is tried first, so it may be wrong: of two pointers that are added, the first one is taken. A phi or a
 * select has a root if all of its operands have the same one; a loop that moves a pointer forward has a phi of itself. */
#include "check.h"

#include "ptx2spv/passes/simplify.h"

#define DEPTH_MAX 24

static const struct ct_root unknown = {.kind = CT_ROOT_UNKNOWN};

/* The operands of a merge are followed with less depth, so that the work for nested loops stays bounded. */
static struct ct_root root_of(const struct ct_check *check, ct_value value, const struct ct_insn *phi, unsigned depth);

static bool is_same(const struct ct_root *a, const struct ct_root *b)
{
    return a->kind == b->kind && (a->kind == CT_ROOT_PARAMS || a->offset == b->offset);
}

/* `phi`: the merge from which the walk came, which is no new information. */
static struct ct_root merged(const struct ct_check *check, const struct ct_insn *insn, uint32_t first, unsigned depth)
{
    struct ct_root all = unknown;

    for (uint32_t i = first; i < insn->n_operands; i++) {
        const struct ct_root root = root_of(check, insn->operands[i], insn, depth / 2);

        if (root.kind == CT_ROOT_SAME_PHI)
            continue;
        if (root.kind == CT_ROOT_UNKNOWN || (all.kind != CT_ROOT_UNKNOWN && !is_same(&all, &root)))
            return unknown;
        all = root;
    }
    all.is_place = false;
    return all;
}

static struct ct_root loaded(const struct ct_check *check, const struct ct_insn *insn, ct_value value)
{
    uint64_t offset = (uint64_t)insn->offset;

    if (insn->space != CT_SPACE_PARAM || ptx_type_bits(insn->type) != 64)
        return unknown;
    for (uint32_t i = 0; insn->results[i].i != value.i; i++)
        offset += sizeof(uint64_t);
    if (offset % sizeof(uint64_t) || offset + sizeof(uint64_t) > check->fn->declared_param_bytes)
        return unknown;
    return (struct ct_root){CT_ROOT_PARAM, offset, false};
}

static struct ct_root sum(const struct ct_check *check, const struct ct_insn *insn, const struct ct_insn *phi, unsigned depth)
{
    const uint32_t n = insn->op == CT_OP_SUB ? 1 : 2;
    const struct ct_insn *constant;

    for (uint32_t i = 0; i < n; i++) {
        struct ct_root root = root_of(check, insn->operands[i], phi, depth - 1);

        if (root.kind == CT_ROOT_UNKNOWN)
            continue;
        constant = n == 2 ? ct_constant_or_null(check->fn, insn->operands[1 - i]) : NULL;
        if (root.kind == CT_ROOT_VARIABLE && constant)
            root.offset += constant->imm;
        else
            root.is_place = false;
        return root;
    }
    return unknown;
}

static struct ct_root root_of(const struct ct_check *check, ct_value value, const struct ct_insn *phi, unsigned depth)
{
    const struct ct_insn *def = check->fn->values.v[value.i].def;

    if (!def || !depth || ct_width_of_value(check->fn, value) != CT_W_64)
        return unknown;
    if (def == phi)
        return (struct ct_root){.kind = CT_ROOT_SAME_PHI};
    switch ((unsigned)def->op) {
    case CT_OP_COPY:
        return root_of(check, def->operands[0], phi, depth - 1);
    case CT_OP_ADD:
    case CT_OP_SUB:
        return sum(check, def, phi, depth);
    case CT_OP_PHI:
        return merged(check, def, 0, depth);
    case CT_OP_SELECT:
        return merged(check, def, 1, depth);
    case CT_OP_LOAD:
        return loaded(check, def, value);
    case CT_OP_SYSVAL:
        if (def->sreg == CT_SYS_IMAGE_BASE)
            return (struct ct_root){CT_ROOT_VARIABLE, 0, true};
        return def->sreg == CT_SYS_PARAM_BASE ? (struct ct_root){.kind = CT_ROOT_PARAMS} : unknown;
    }
    return unknown;
}

struct ct_root ct_check_root(const struct ct_check *check, ct_value address)
{
    return root_of(check, address, NULL, DEPTH_MAX);
}
