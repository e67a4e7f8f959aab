/* SPDX-License-Identifier: Apache-2.0 */
/* IR builder: the functions that emit more than one instruction. */
#include "builder.h"

#include <assert.h>

enum ptx_type ct_bits_type(enum ct_width width)
{
    static const uint8_t types[] = {[CT_W_PRED] = PTX_PRED, [CT_W_16] = PTX_B16, [CT_W_32] = PTX_B32, [CT_W_64] = PTX_B64};

    return types[width];
}

enum ptx_type ct_unsigned_type(enum ct_width width)
{
    static const uint8_t types[] = {[CT_W_PRED] = PTX_PRED, [CT_W_16] = PTX_U16, [CT_W_32] = PTX_U32, [CT_W_64] = PTX_U64};

    return types[width];
}

enum ptx_type ct_signed_type(enum ct_width width)
{
    static const uint8_t types[] = {[CT_W_PRED] = PTX_PRED, [CT_W_16] = PTX_S16, [CT_W_32] = PTX_S32, [CT_W_64] = PTX_S64};

    return types[width];
}

void ct_assign(struct ct_cursor *at, ct_value to, ct_value from)
{
    const enum ct_width width = ct_width_at(at, to);
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_COPY, ct_bits_type(width), 1, 1);

    assert(width == ct_width_at(at, from));
    insn->results[0] = to;
    insn->operands[0] = from;
    at->fn->values.v[to.i].def = insn;
}

/* The type of the source of an EXT, which takes u8 s8 u16 s16 u32 s32. */
static enum ptx_type integer_source(enum ptx_type type)
{
    static const uint8_t types[2][3] = {{PTX_U8, PTX_U16, PTX_U32}, {PTX_S8, PTX_S16, PTX_S32}};
    const unsigned bits = ptx_type_bits(type);

    return types[ptx_type_is_signed(type)][bits == 8 ? 0 : bits == 16 ? 1 : 2];
}

struct ct_insn *ct_emit_object_access(struct ct_cursor *at, enum ct_op op, enum ptx_type type, uint32_t object, uint32_t offset_bytes)
{
    struct ct_insn *insn = ct_emit_insn(at, op, type, op == CT_OP_LOAD, op == CT_OP_LOAD ? 1 : 2);

    insn->space = CT_SPACE_LOCAL;
    insn->local = object;
    insn->offset = offset_bytes;
    insn->align_log2 = (uint8_t)__builtin_ctz(at->fn->locals.v[object - 1].align | offset_bytes | ptx_type_bits(type) / 8);
    return insn;
}

static struct ct_insn *access_frame(struct ct_cursor *at, enum ct_op op, enum ct_width width, ct_value address, uint32_t offset_bytes,
                                    uint32_t number)
{
    struct ct_insn *insn = ct_emit_insn(at, op, ct_bits_type(width), op == CT_OP_LOAD, op == CT_OP_LOAD ? 1 : 2);

    insn->space = CT_SPACE_LOCAL;
    insn->align_log2 = width == CT_W_64 ? 3 : 2;
    insn->offset = offset_bytes;
    insn->saved = number;
    insn->operands[0] = address;
    return insn;
}

ct_value ct_load_register(struct ct_cursor *at, ct_value address, uint32_t offset_bytes, enum ct_width width, uint32_t number)
{
    const enum ct_width stored = width == CT_W_64 ? CT_W_64 : CT_W_32;
    const ct_value loaded = ct_value_create(at->fn, stored);

    access_frame(at, CT_OP_LOAD, stored, address, offset_bytes, number)->results[0] = loaded;
    if (width == CT_W_PRED)
        return ct_icmp_imm(at, PTX_B32, PTX_NE, loaded, 0);
    return ct_resize(at, loaded, PTX_U32, width);
}

void ct_store_register(struct ct_cursor *at, ct_value address, uint32_t offset_bytes, ct_value value, uint32_t number)
{
    const enum ct_width width = ct_width_at(at, value), stored = width == CT_W_64 ? CT_W_64 : CT_W_32;

    value = width == CT_W_PRED ? ct_select(at, value, ct_const32(at, 1), ct_const32(at, 0)) : ct_resize(at, value, PTX_U16, stored);
    access_frame(at, CT_OP_STORE, stored, address, offset_bytes, number)->operands[1] = value;
}

void ct_emit_fence(struct ct_cursor *at, enum ptx_semantics semantics, enum ptx_scope scope)
{
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_FENCE, PTX_NONE, 0, 0);

    insn->semantics = (uint8_t)semantics;
    insn->scope = (uint8_t)scope;
}

ct_value ct_load_added_param(struct ct_cursor *at, uint32_t *offset)
{
    struct ct_fn *fn = at->fn;
    struct ct_insn *load;

    if (!*offset) {
        if (!fn->param_bytes)
            ct_fn_add_param(fn, sizeof(uint64_t)); /* so that the offset is not 0 */
        *offset = ct_fn_add_param(fn, sizeof(uint64_t));
    }
    load = ct_emit_insn(at, CT_OP_LOAD, PTX_B64, 1, 0);
    load->space = CT_SPACE_PARAM;
    load->align_log2 = 3;
    load->offset = *offset;
    load->results[0] = ct_value_create(fn, CT_W_64);
    fn->values.v[load->results[0].i].def = load;
    return load->results[0];
}

ct_value ct_converted(struct ct_cursor *at, enum ct_op op, enum ptx_type from, enum ptx_type to, ct_value a)
{
    const ct_value result = ct_emit1(at, op, from, ct_width_of(to), a);

    at->fn->values.v[result.i].def->type2 = to;
    return result;
}

ct_value ct_resize(struct ct_cursor *at, ct_value a, enum ptx_type type, enum ct_width width)
{
    const enum ct_width from = ct_width_at(at, a);

    if (from == width)
        return a;
    if (from > width)
        return ct_emit1(at, CT_OP_TRUNC, ct_bits_type(from), width, a);
    return ct_emit1(at, CT_OP_EXT, integer_source(type), width, a);
}

ct_value ct_extend_in_place(struct ct_cursor *at, ct_value a, enum ptx_type type)
{
    const enum ct_width width = ct_width_at(at, a);

    if (ptx_type_bits(type) >= ct_width_bits(width))
        return a;
    if (ptx_type_bits(type) == 8)
        return ct_emit1(at, CT_OP_EXT, integer_source(type), width, a);
    return ct_resize(at, ct_resize(at, a, type, ct_width_of(type)), type, width);
}

ct_value ct_pack2(struct ct_cursor *at, ct_value low, ct_value high)
{
    const enum ct_width half = ct_width_at(at, low);
    const enum ct_width whole = half == CT_W_16 ? CT_W_32 : CT_W_64;

    return ct_emit2(at, CT_OP_PACK, ct_bits_type(whole), whole, low, high);
}

void ct_unpack2(struct ct_cursor *at, ct_value a, ct_value *low, ct_value *high)
{
    const enum ct_width half = ct_width_at(at, a) == CT_W_64 ? CT_W_32 : CT_W_16;
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_UNPACK, ct_bits_type(half), 2, 1);

    insn->operands[0] = a;
    for (int i = 0; i < 2; i++) {
        insn->results[i] = ct_value_create(at->fn, half);
        at->fn->values.v[insn->results[i].i].def = insn;
    }
    *low = insn->results[0];
    *high = insn->results[1];
}

static ct_value selected_byte(struct ct_cursor *at, ct_value low, ct_value high, unsigned selector)
{
    const ct_value word = selector & 4 ? high : low;
    const unsigned first = 8 * (selector & 3);

    if (selector & 8)
        return ct_and_imm(at, ct_sar_imm(at, first == 24 ? word : ct_shl_imm(at, word, 24 - first), 31), 0xff);
    return ct_and_imm(at, first ? ct_shr_imm(at, word, first) : word, 0xff);
}

ct_value ct_permuted(struct ct_cursor *at, ct_value low, ct_value high, uint32_t selectors)
{
    ct_value result = selected_byte(at, low, high, selectors & 15);

    for (unsigned i = 1; i < 4; i++)
        result = ct_or(at, result, ct_shl_imm(at, selected_byte(at, low, high, selectors >> (4 * i) & 15), 8 * i));
    return result;
}

ct_value ct_count_leading_zeros(struct ct_cursor *at, ct_value a)
{
    ct_value low, high;

    if (ct_width_at(at, a) == CT_W_32)
        return ct_op1(at, CT_OP_CLZ, PTX_B32, a);
    ct_unpack2(at, a, &low, &high);
    low = ct_add_imm(at, ct_op1(at, CT_OP_CLZ, PTX_B32, low), 32);
    return ct_select(at, ct_equals(at, high, 0), low, ct_op1(at, CT_OP_CLZ, PTX_B32, high));
}

static ct_value product32(struct ct_cursor *at, ct_value a, ct_value b)
{
    return ct_emit2(at, CT_OP_MULWIDE, PTX_U32, CT_W_64, a, b);
}

/* From the products of halves. None of the sums carries out of 64 bits. */
void ct_wide_product64(struct ct_cursor *at, ct_value a, ct_value b, ct_value *low, ct_value *high)
{
    ct_value a_low, a_high, b_low, b_high, lowest, middle, other;

    ct_unpack2(at, a, &a_low, &a_high);
    ct_unpack2(at, b, &b_low, &b_high);
    lowest = product32(at, a_low, b_low);
    middle = ct_add(at, product32(at, a_high, b_low), ct_shr_imm(at, lowest, 32));
    other = ct_add(at, product32(at, a_low, b_high), ct_and_imm(at, middle, UINT32_MAX));
    *low = ct_or(at, ct_and_imm(at, lowest, UINT32_MAX), ct_shl_imm(at, other, 32));
    *high = ct_add(at, ct_add(at, product32(at, a_high, b_high), ct_shr_imm(at, middle, 32)), ct_shr_imm(at, other, 32));
}

ct_value ct_sysval(struct ct_cursor *at, enum ct_sysval which)
{
    const bool wide = which == CT_SYS_IMAGE_BASE || which == CT_SYS_FAULT_BASE || which == CT_SYS_PARAM_BASE;
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_SYSVAL, wide ? PTX_U64 : PTX_U32, 1, 0);

    insn->sreg = (uint8_t)which;
    insn->results[0] = ct_value_create(at->fn, wide ? CT_W_64 : CT_W_32);
    at->fn->values.v[insn->results[0].i].def = insn;
    if (which == CT_SYS_PARAM_BASE)
        at->fn->params_in_buffer = true;
    if (which == CT_SYS_FAULT_BASE)
        at->fn->uses_fault = true;
    return insn->results[0];
}

void ct_cursor_jump(struct ct_cursor *at, struct ct_block *to)
{
    ct_emit_insn(at, CT_OP_BR, PTX_NONE, 0, 0);
    ct_block_set_succs(at->fn, at->block, 1, &to);
}

void ct_cursor_branch(struct ct_cursor *at, ct_value condition, struct ct_block *yes, struct ct_block *no)
{
    ct_emit_insn(at, CT_OP_CBR, PTX_PRED, 0, 1)->operands[0] = condition;
    ct_block_set_succs(at->fn, at->block, 2, (struct ct_block *[]){yes, no});
}

void ct_ssa_jump(struct ct_fn *fn, struct ct_block *from, struct ct_block *to)
{
    ct_cursor_jump(&(struct ct_cursor){.fn = fn, .block = from}, to);
    *CT_PUSH(&fn->compilation->arena, &to->preds) = from;
}

void ct_ssa_branch(struct ct_cursor *at, ct_value condition, struct ct_block *yes, struct ct_block *no)
{
    ct_cursor_branch(at, condition, yes, no);
    *CT_PUSH(&at->fn->compilation->arena, &yes->preds) = at->block;
    *CT_PUSH(&at->fn->compilation->arena, &no->preds) = at->block;
}

uint32_t ptx2spv_kernel_tag(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash & ~PTX2SPV_FAULT_CODE_MASK;
}

void ct_emit_fault(struct ct_cursor *at, enum ptx2spv_fault_code code)
{
    const ct_value address = ct_sysval(at, CT_SYS_FAULT_BASE);
    const ct_value none = ct_const32(at, PTX2SPV_FAULT_NONE), reason = ct_const32(at, code | ptx2spv_kernel_tag(at->fn->name));
    struct ct_insn *insn = ct_emit_insn(at, CT_OP_ATOM, PTX_B32, 1, 3);

    insn->operation = PTX_CAS;
    insn->space = CT_SPACE_GLOBAL;
    insn->semantics = PTX_RELAXED;
    insn->scope = PTX_SYS;
    insn->align_log2 = 2;
    insn->results[0] = ct_value_create(at->fn, CT_W_32);
    insn->operands[0] = address;
    insn->operands[1] = none;
    insn->operands[2] = reason;
}
