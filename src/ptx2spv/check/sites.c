/* SPDX-License-Identifier: Apache-2.0 */
/* Each access has one site (struct ptx2spv_check_site) for each kind of fault. Every thread with a fault adds 1 to the count of its site. The thread that
 * finds a count of 0 also writes the description there. To avoid a branch, the other threads write theirs to site 0, which the host never reads. */
#include "check.h"

static struct ct_insn *access_site(struct ct_cursor *at, enum ct_op op, ct_value address, size_t offset, enum ct_width width)
{
    struct ct_insn *insn = ct_emit_insn(at, op, ct_bits_type(width), op == CT_OP_ATOM, 2);

    insn->space = CT_SPACE_GLOBAL;
    insn->operands[0] = address;
    insn->offset = (int64_t)offset;
    insn->align_log2 = width == CT_W_64 ? 3 : 2;
    return insn;
}

static void store(struct ct_cursor *at, ct_value address, size_t offset, ct_value value)
{
    access_site(at, CT_OP_STORE, address, offset, ct_width_at(at, value))->operands[1] = value;
}

/* Stores two words as one. */
static void store2(struct ct_cursor *at, ct_value address, size_t offset, ct_value first, ct_value second)
{
    store(at, address, offset, ct_pack2(at, first, second));
}

/* The number of the incident's site. */
static ct_value site_number(struct ct_check *check, struct ct_cursor *at, const struct ct_incident *incident)
{
    const uint32_t first = check->fn->check_sites - PTX2SPV_CHECK_OUTSIDE;
    const ct_value number = ct_add_imm(at, incident->fault, first);

    check->fn->check_sites += PTX2SPV_CHECK_FAULTS * (incident->group ? incident->group->n : 1);
    if (!incident->group)
        return number;
    return ct_add(at, number, ct_op2(at, CT_OP_MUL, PTX_U32, incident->number, ct_const32(at, PTX2SPV_CHECK_FAULTS)));
}

/* Counts the fault. Returns the address to which this thread writes its description: the site, if it is the first one there, else site 0. */
static ct_value place_of(struct ct_cursor *at, ct_value sites, ct_value number)
{
    const ct_value offset = ct_bits2(at, CT_OP_MUL, ct_zext64(at, number), ct_const64(at, sizeof(struct ptx2spv_check_site)));
    const ct_value site = ct_add(at, sites, offset);
    const ct_value one = ct_const32(at, 1);
    struct ct_insn *count = access_site(at, CT_OP_ATOM, site, offsetof(struct ptx2spv_check_site, count), CT_W_32);

    count->type = PTX_U32;
    count->operation = PTX_ADD;
    count->semantics = PTX_RELAXED;
    count->scope = PTX_SYS;
    count->operands[1] = one;
    count->results[0] = ct_value_create(at->fn, CT_W_32);
    at->fn->values.v[count->results[0].i].def = count;
    return ct_select(at, ct_equals(at, count->results[0], 0), site, sites);
}

static ct_value block_yz(struct ct_cursor *at)
{
    return ct_or(at, ct_sysval(at, CT_SYS_CTAID_Y), ct_shl_imm(at, ct_sysval(at, CT_SYS_CTAID_Z), 16));
}

static ct_value thread(struct ct_cursor *at)
{
    const ct_value y = ct_shl_imm(at, ct_sysval(at, CT_SYS_TID_Y), 10), z = ct_shl_imm(at, ct_sysval(at, CT_SYS_TID_Z), 20);

    return ct_or(at, ct_sysval(at, CT_SYS_TID_X), ct_or(at, y, z));
}

void ct_check_report(struct ct_check *check, struct ct_cursor *at, const struct ct_incident *incident)
{
    const ct_value control = ct_check_control(check);
    const ct_value sites = ct_check_load(at, control, offsetof(struct ptx2spv_check, sites), CT_W_64);
    const ct_value launch = ct_check_load(at, control, offsetof(struct ptx2spv_check, launch), CT_W_32);
    const ct_value place = place_of(at, sites, site_number(check, at, incident));
    const ct_value line =
        incident->group ? ct_load_group_line(at, incident->group, incident->number) : ct_const32(at, incident->where.line);

    store(at, place, offsetof(struct ptx2spv_check_site, address), ct_zext64(at, incident->address));
    store2(at, place, offsetof(struct ptx2spv_check_site, line), line, ct_const32(at, incident->access));
    store2(at, place, offsetof(struct ptx2spv_check_site, block_x), ct_sysval(at, CT_SYS_CTAID_X), block_yz(at));
    store2(at, place, offsetof(struct ptx2spv_check_site, launch), launch, thread(at));
    ct_emit_fence(at, PTX_ACQ_REL, PTX_SYS); /* the host reads a site when it finds `fault` */
    store2(at, place, offsetof(struct ptx2spv_check_site, other), incident->other.i ? incident->other : ct_const32(at, 0), incident->fault);
}

struct ct_block *ct_check_enter_if(struct ct_cursor *at, struct ct_insn *insn, ct_value condition)
{
    struct ct_block *then = ct_block_create(at->fn), *rest = ct_block_split(at->fn, insn->block, insn);

    at->before = NULL;
    ct_ssa_branch(at, condition, then, rest);
    at->block = then;
    return rest;
}

void ct_check_leave_if(struct ct_cursor *at, struct ct_insn *insn, struct ct_block *rest)
{
    ct_ssa_jump(at->fn, at->block, rest);
    at->block = rest;
    at->before = insn;
}
