/* SPDX-License-Identifier: Apache-2.0 */
/* build: mov including vectors, special registers, generic addresses (PTX ISA, "Data Movement and Conversion Instructions"). */
#include "build.h"

#include <stddef.h>
#include <string.h>

void ct_build_no_op(struct ct_build *b)
{
    (void)b; /* hints, and instructions without an observable effect */
}

/* ---- special registers ---- */

static ct_value lane_mask(struct ct_build *b, enum ptx_sreg sreg)
{
    struct ct_cursor *at = &b->at;
    const ct_value equal = ct_bits2(at, CT_OP_SHL, ct_const32(at, 1), ct_sysval(at, CT_SYS_LANEID));
    const ct_value below = ct_add_imm(at, equal, UINT32_MAX);

    if (sreg == PTX_SREG_LANEMASK_EQ)
        return equal;
    if (sreg == PTX_SREG_LANEMASK_LT)
        return below;
    if (sreg == PTX_SREG_LANEMASK_LE)
        return ct_or(at, below, equal);
    if (sreg == PTX_SREG_LANEMASK_GE)
        return ct_not(at, below);
    return ct_not(at, ct_or(at, below, equal)); /* gt */
}

static ct_value timer_part(struct ct_build *b, ct_value base, size_t offset)
{
    const bool changes = offset == offsetof(struct ptx2spv_timer, reference);
    struct ct_insn *load = ct_emit_insn(&b->at, CT_OP_LOAD, PTX_U64, 1, 1);

    load->space = CT_SPACE_GLOBAL;
    load->align_log2 = 3;
    load->read_only = !changes;
    load->semantics = changes ? PTX_VOLATILE : PTX_WEAK;
    load->offset = (int64_t)(PTX2SPV_TIMER_OFFSET + offset);
    load->operands[0] = base;
    load->results[0] = ct_value_create(b->fn, CT_W_64);
    return load->results[0];
}

/* The bits that the clock lacks: struct ptx2spv_timer. The shifts up and down extend the sign of the distance to the reference. */
static ct_value whole_clock(struct ct_build *b, ct_value clock)
{
    struct ct_cursor *at = &b->at;
    const ct_value base = ct_sysval(at, CT_SYS_FAULT_BASE);
    const ct_value reference = timer_part(b, base, offsetof(struct ptx2spv_timer, reference));
    const ct_value lost = ct_low32(at, timer_part(b, base, offsetof(struct ptx2spv_timer, lost_bits)));
    const ct_value up = ct_op2(at, CT_OP_SHL, PTX_B64, ct_sub(at, clock, reference), lost);

    return ct_add(at, reference, ct_op2(at, CT_OP_SHR, PTX_S64, up, lost));
}

/* A 64-bit clock: that of the multiprocessor, or one for the whole device if there is such. */
static ct_value read_clock(struct ct_build *b, enum ptx_scope scope)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, CT_OP_CLOCK, PTX_U64, 1, 0);

    insn->scope = scope;
    insn->results[0] = ct_value_create(b->fn, CT_W_64);
    if (b->fn->target->workarounds & PTX2SPV_WORKAROUND_TRUNCATED_CLOCK)
        return whole_clock(b, insn->results[0]);
    return insn->results[0];
}

/* Nanoseconds (PTX ISA, "Special Registers: %globaltimer"): struct ptx2spv_timer says how they come of the clock's ticks. */
static ct_value read_timer(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    const ct_value ticks = read_clock(b, PTX_GPU), base = ct_sysval(at, CT_SYS_FAULT_BASE);
    const ct_value whole = ct_op2(at, CT_OP_MUL, PTX_U64, ticks, timer_part(b, base, offsetof(struct ptx2spv_timer, whole_ns)));
    const ct_value fraction = ct_op2(at, CT_OP_MULHI, PTX_U64, ticks, timer_part(b, base, offsetof(struct ptx2spv_timer, fraction)));

    return ct_add(at, ct_add(at, whole, fraction), timer_part(b, base, offsetof(struct ptx2spv_timer, origin_ns)));
}

static ct_value high_half(struct ct_build *b, ct_value clock)
{
    return ct_low32(&b->at, ct_shr_imm(&b->at, clock, 32));
}

/* The kernel has dynamic shared memory, even if it only reads the size. */
static ct_value shared_size(struct ct_build *b, enum ct_sysval part)
{
    b->fn->uses_dynamic_shared = true;
    return ct_sysval(&b->at, part);
}

static ct_value cluster_register(struct ct_cursor *at, enum ptx_sreg sreg, unsigned dimension)
{
    switch ((unsigned)sreg) {
    case PTX_SREG_CLUSTERID:
        return ct_cluster_id(at, dimension);
    case PTX_SREG_NCLUSTERID:
        return ct_cluster_ids(at, dimension);
    case PTX_SREG_CLUSTER_CTAID:
        return ct_cluster_place(at, dimension);
    default: /* %cluster_nctaid */
        return ct_cluster_size(at, dimension);
    }
}

static bool is_of_cluster(enum ptx_sreg sreg)
{
    return sreg == PTX_SREG_CLUSTERID || sreg == PTX_SREG_NCLUSTERID || sreg == PTX_SREG_CLUSTER_CTAID || sreg == PTX_SREG_CLUSTER_NCTAID;
}

/* Vector registers: .x .y .z are values of the launch, .w is 0. Without fn->clusters every block is a cluster of its own. */
static ct_value vector_register(struct ct_build *b, enum ptx_sreg sreg, int component)
{
    static const uint8_t first[PTX_SREG_COUNT] = {
        [PTX_SREG_TID] = CT_SYS_TID_X,          [PTX_SREG_NTID] = CT_SYS_NTID_X,         [PTX_SREG_CTAID] = CT_SYS_CTAID_X,
        [PTX_SREG_NCTAID] = CT_SYS_NCTAID_X,    [PTX_SREG_CLUSTERID] = CT_SYS_CTAID_X,   [PTX_SREG_NCLUSTERID] = CT_SYS_NCTAID_X,
        [PTX_SREG_CLUSTER_CTAID] = CT_SYS_NONE, [PTX_SREG_CLUSTER_NCTAID] = CT_SYS_NONE,
    };

    if (component < 3 && b->fn->clusters && is_of_cluster(sreg))
        return cluster_register(&b->at, sreg, (unsigned)component);
    if (component < 3 && first[sreg])
        return ct_sysval(&b->at, first[sreg] + (unsigned)component);
    return ct_const32(&b->at, component < 3 && sreg == PTX_SREG_CLUSTER_NCTAID);
}

/* cooperative_groups keeps the barriers of the grid in memory; these are the high and low half of its address, the first words of struct
 * ptx2spv_grid. 0: the launch is not cooperative. */
static ct_value grid_workspace(struct ct_cursor *at, bool high)
{
    ct_value halves[2];

    if (!at->fn->cooperative)
        return ct_const32(at, 0);
    ct_unpack2(at, ct_grid_control(at), &halves[0], &halves[1]);
    return halves[high];
}

/* The number of the launch (PTX ISA, "Special Registers: %gridid"): a parameter that exists if something reads it. */
static ct_value launch_number(struct ct_cursor *at)
{
    return ct_load_added_param(at, &at->fn->number_param_offset);
}

ct_value ct_build_special_register(struct ct_build *b, enum ptx_sreg sreg, int component)
{
    struct ct_cursor *at = &b->at;

    switch ((unsigned)sreg) {
    case PTX_SREG_TID:
    case PTX_SREG_NTID:
    case PTX_SREG_CTAID:
    case PTX_SREG_NCTAID:
    case PTX_SREG_CLUSTERID:
    case PTX_SREG_NCLUSTERID:
    case PTX_SREG_CLUSTER_CTAID:
    case PTX_SREG_CLUSTER_NCTAID:
        return vector_register(b, sreg, component);
    case PTX_SREG_LANEMASK_EQ:
    case PTX_SREG_LANEMASK_LE:
    case PTX_SREG_LANEMASK_LT:
    case PTX_SREG_LANEMASK_GE:
    case PTX_SREG_LANEMASK_GT:
        return lane_mask(b, sreg);
    case PTX_SREG_CLOCK:
        return ct_low32(at, read_clock(b, PTX_CTA));
    case PTX_SREG_CLOCK_HI:
        return high_half(b, read_clock(b, PTX_CTA));
    case PTX_SREG_CLOCK64:
        return read_clock(b, PTX_CTA);
    case PTX_SREG_GLOBALTIMER_LO:
        return ct_low32(at, read_timer(b));
    case PTX_SREG_GLOBALTIMER_HI:
        return high_half(b, read_timer(b));
    case PTX_SREG_GLOBALTIMER:
        return read_timer(b);
    case PTX_SREG_GRIDID:
        return launch_number(at);
    case PTX_SREG_LANEID:
        return ct_sysval(at, CT_SYS_LANEID);
    case PTX_SREG_WARPID:
        return ct_shr_imm(at, ct_sysval(at, CT_SYS_TID_LINEAR), 5);
    case PTX_SREG_NWARPID:
        return ct_shr_imm(at, ct_add_imm(at, ct_sysval(at, CT_SYS_BLOCK_THREADS), 31), 5);
    case PTX_SREG_SMID:
        return ct_sysval(at, CT_SYS_SMID);
    case PTX_SREG_NSMID:
        return ct_sysval(at, CT_SYS_NSMID);
    case PTX_SREG_TOTAL_SMEM_SIZE:
    case PTX_SREG_AGGR_SMEM_SIZE:
        return shared_size(b, CT_SYS_SHARED_BYTES);
    case PTX_SREG_DYNAMIC_SMEM_SIZE:
        return shared_size(b, CT_SYS_DYNAMIC_SHARED_BYTES);
    case PTX_SREG_CLUSTER_CTARANK:
        return b->fn->clusters ? ct_cluster_rank(at) : ct_const32(at, 0);
    case PTX_SREG_CLUSTER_NCTARANK:
        return b->fn->clusters ? ct_cluster_blocks(at) : ct_const32(at, 1);
    case PTX_SREG_IS_EXPLICIT_CLUSTER:
        return ct_emit_const(at, CT_W_PRED, b->fn->clusters || b->fn->source->cluster[0] != 0);
    case PTX_SREG_ENVREG1:
    case PTX_SREG_ENVREG2:
        return grid_workspace(at, sreg == PTX_SREG_ENVREG1);
    case PTX_SREG_CURRENT_GRAPH_EXEC:
        return ct_const64(at, 0); /* not launched by a device-side graph */
    default:
        ct_build_unsupported(b, "this special register");
        return ct_const64(at, 0);
    }
}

/* ---- mov ---- */

static enum ptx_type item_type(struct ct_build *b, enum ptx_type type, uint32_t n)
{
    const unsigned bits = n ? ptx_type_bits(type) / n : 0;

    if (bits == 32 && n == 2)
        return PTX_B32;
    if (bits == 16 && (n == 2 || n == 4))
        return PTX_B16;
    if (bits == 8 && (n == 2 || n == 4))
        return PTX_B8;
    ct_build_unsupported(b, "a vector of this shape");
    return PTX_NONE;
}

/* Bytes are packed by shifts, since no value is 8 bits wide. */
static ct_value pack_bytes(struct ct_build *b, const struct ptx_operand *items, uint32_t n)
{
    ct_value all = ct_const32(&b->at, 0);

    for (uint32_t i = 0; i < n; i++) {
        const ct_value byte = ct_and_imm(&b->at, ct_resize(&b->at, ct_build_read(b, &items[i], PTX_B8), PTX_U16, CT_W_32), 0xff);

        all = ct_or(&b->at, all, ct_shl_imm(&b->at, byte, 8 * i));
    }
    return all;
}

static void mov_pack(struct ct_build *b, enum ptx_type type, const struct ptx_operand *items, uint32_t n)
{
    const enum ptx_type item = item_type(b, type, n);
    struct ct_insn *pack;
    ct_value values[4], packed;

    if (item == PTX_NONE)
        return;
    if (item == PTX_B8) {
        ct_build_result(b, pack_bytes(b, items, n), type);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        values[i] = ct_build_read(b, &items[i], item);
    pack = ct_emit_insn(&b->at, CT_OP_PACK, type, 1, n);
    packed = ct_value_create(b->fn, ct_width_of(type));
    pack->results[0] = packed;
    for (uint32_t i = 0; i < n; i++)
        pack->operands[i] = values[i];
    ct_build_result(b, packed, type);
}

static void mov_unpack(struct ct_build *b, enum ptx_type type, const struct ptx_operand *items, uint32_t n)
{
    const enum ptx_type item = item_type(b, type, n);
    ct_value whole, parts[4];

    if (item == PTX_NONE)
        return;
    whole = ct_build_source(b, 1, type);
    if (item == PTX_B8) {
        for (uint32_t i = 0; i < n; i++)
            parts[i] = ct_resize(&b->at, ct_and_imm(&b->at, i ? ct_shr_imm(&b->at, whole, 8 * i) : whole, 0xff), PTX_U16, CT_W_16);
    } else {
        struct ct_insn *unpack = ct_emit_insn(&b->at, CT_OP_UNPACK, item, n, 1);

        unpack->operands[0] = whole;
        for (uint32_t i = 0; i < n; i++)
            unpack->results[i] = parts[i] = ct_value_create(b->fn, ct_width_of(item));
    }
    for (uint32_t i = 0; i < n; i++)
        ct_build_write(b, &items[i], parts[i], item);
}

/* mov.v2 {a, b}, {b, a}: all sources are read before the first destination changes. */
static void mov_parts(struct ct_build *b, enum ptx_type type)
{
    uint32_t n_to, n_from;
    const struct ptx_operand *to = ct_build_parts(b, &b->insn->operands[0], type, &n_to);
    const struct ptx_operand *from = ct_build_parts(b, &b->insn->operands[1], type, &n_from);
    ct_value values[8];

    if (n_to != n_from || n_to > 8) {
        ct_build_invalid(b, "vectors of different lengths");
        return;
    }
    for (uint32_t i = 0; i < n_to; i++)
        values[i] = ct_copy(&b->at, ct_build_read(b, &from[i], type));
    for (uint32_t i = 0; i < n_to; i++)
        ct_build_write(b, &to[i], values[i], type);
}

/* ---- 128-bit registers: two values ---- */

/* For {a, b} and {a, b, c, d} as a 128-bit source or destination: each half is one item, or two. */
static const struct ptx_operand *halves_of(struct ct_build *b, const struct ptx_operand *operand, uint32_t *each)
{
    uint32_t n;
    const struct ptx_operand *items =
        operand->kind == PTX_OPND_VECTOR ? ct_build_items(operand, &n) : ct_build_parts(b, operand, PTX_B128, &n);

    *each = n / 2;
    if (n == 2 || n == 4)
        return items;
    ct_build_unsupported(b, "a vector of this shape");
    return NULL;
}

static void mov_128(struct ct_build *b)
{
    uint32_t to_each, from_each;
    const struct ptx_operand *to = halves_of(b, &b->insn->operands[0], &to_each);
    const struct ptx_operand *from = halves_of(b, &b->insn->operands[1], &from_each);
    ct_value halves[2], words[2];

    if (!to || !from)
        return;
    for (unsigned i = 0; i < 2; i++)
        halves[i] = ct_copy(&b->at, from_each == 1 ? ct_build_read(b, &from[i], PTX_B64)
                                                   : ct_pack2(&b->at, ct_build_read(b, &from[2 * i], PTX_B32),
                                                              ct_build_read(b, &from[2 * i + 1], PTX_B32)));
    for (unsigned i = 0; i < 2; i++) {
        if (to_each == 1) {
            ct_build_write(b, &to[i], halves[i], PTX_B64);
            continue;
        }
        ct_unpack2(&b->at, halves[i], &words[0], &words[1]);
        for (unsigned k = 0; k < 2; k++)
            ct_build_write(b, &to[2 * i + k], words[k], PTX_B32);
    }
}

void ct_build_mov(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    const struct ptx_operand *to = &b->insn->operands[0], *from = &b->insn->operands[1];

    if (type == PTX_B128 && !b->insn->mods.vector)
        mov_128(b);
    else if (b->insn->mods.vector || (to->kind == PTX_OPND_VECTOR && from->kind == PTX_OPND_VECTOR))
        mov_parts(b, type);
    else if (from->kind == PTX_OPND_VECTOR)
        mov_pack(b, type, from->items, from->n_items);
    else if (to->kind == PTX_OPND_VECTOR)
        mov_unpack(b, type, to->items, to->n_items);
    else
        ct_build_result(b, ct_build_source(b, 1, type), type);
}

/* ---- generic addresses ---- */

static unsigned generic_tag(const struct ct_build *b, enum ptx_space space)
{
    if (space == PTX_SPACE_SHARED)
        return CT_TAG_SHARED;
    /* The parameters of a function are in the frame, those of an entry in the parameter block, which is global memory. */
    if (space == PTX_SPACE_LOCAL || (space == PTX_SPACE_PARAM && !b->source->is_entry))
        return CT_TAG_LOCAL;
    return 0;
}

void ct_build_cvta(struct ct_build *b)
{
    const enum ptx_type type = b->insn->types[0];
    const unsigned tag = generic_tag(b, b->insn->mods.space);
    ct_value address = ct_build_source(b, 1, type);

    if (tag && ptx_type_bits(type) == 32) {
        ct_build_unsupported(b, "a 32-bit generic address");
        return;
    }
    /* The tag is removed by an exclusive or, so that an address with another tag, such as a null pointer, does not become an offset:
     * clang compares such addresses. */
    if (tag && b->insn->mods.to)
        address = ct_xor_imm(&b->at, address, (uint64_t)tag << CT_TAG_SHIFT);
    else if (tag)
        address = ct_or_imm(&b->at, ct_zext64(&b->at, ct_low32(&b->at, address)), (uint64_t)tag << CT_TAG_SHIFT);
    ct_build_result(b, address, type);
}

/* Whether an address is one of `size` bytes from a base on. */
static ct_value is_within(struct ct_build *b, ct_value address, ct_value base, uint64_t size)
{
    return ct_icmp(&b->at, PTX_U64, PTX_LT, ct_sub(&b->at, address, base), ct_const64(&b->at, size));
}

static ct_value is_constant(struct ct_build *b, ct_value address)
{
    const struct ptx_module *module = b->fn->module;
    const uint64_t size = module->const_end - module->const_begin;

    if (!size)
        return ct_emit_const(&b->at, CT_W_PRED, 0);
    return is_within(b, address, ct_add_imm(&b->at, ct_sysval(&b->at, CT_SYS_IMAGE_BASE), module->const_begin), size);
}

/* Of a kernel's parameters: those of functions are local memory. */
static ct_value is_parameter(struct ct_build *b, ct_value address)
{
    if (!b->fn->param_bytes)
        return ct_emit_const(&b->at, CT_W_PRED, 0);
    return is_within(b, address, ct_sysval(&b->at, CT_SYS_PARAM_BASE), b->fn->param_bytes);
}

/* Whether an address in shared memory is one of this block, in clusters. */
static ct_value is_own_block(struct ct_build *b, ct_value address)
{
    struct ct_cursor *at = &b->at;
    const ct_value above = ct_shr_imm(at, ct_low32(at, address), PTX2SPV_CLUSTER_RANK_SHIFT);
    const ct_value is_mapped = ct_icmp(at, PTX_U32, PTX_EQ, above, ct_add_imm(at, ct_cluster_rank(at), 1));

    return ct_or(at, ct_equals(at, above, 0), is_mapped);
}

/* As an H100 does, constants are not global memory, while parameters of kernels and null pointers are. Constants are those of the kernel's
 * own module. */
void ct_build_isspacep(struct ct_build *b)
{
    const enum ptx_space space = b->insn->mods.space;
    const ct_value address = ct_build_source(b, 1, PTX_U64);
    ct_value is_inside;

    if (strstr(b->insn->text, ".param::func")) {
        ct_build_invalid(b, "a function's parameters are local memory");
        return;
    }
    if (space == PTX_SPACE_CONST)
        is_inside = is_constant(b, address);
    else if (space == PTX_SPACE_PARAM)
        is_inside = is_parameter(b, address);
    else
        is_inside = ct_equals(&b->at, ct_shr_imm(&b->at, address, CT_TAG_SHIFT),
                              space == PTX_SPACE_SHARED  ? CT_TAG_SHARED
                              : space == PTX_SPACE_LOCAL ? CT_TAG_LOCAL
                                                         : 0);
    if (space == PTX_SPACE_SHARED && b->fn->clusters && !strstr(b->insn->text, "shared::cluster"))
        is_inside = ct_and(&b->at, is_inside, is_own_block(b, address));
    if (space == PTX_SPACE_GLOBAL)
        is_inside = ct_and(&b->at, is_inside, ct_not(&b->at, is_constant(b, address)));
    ct_build_result(b, is_inside, PTX_PRED);
}
