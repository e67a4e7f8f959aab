/* SPDX-License-Identifier: Apache-2.0 */
/* build: ld, ldu, st, fences (PTX ISA, "Data Movement and Conversion Instructions", "Memory Consistency Model").
 *
 * Acquire and release are implemented by a relaxed access and a fence: after a load for acquire, before a store for release. */
#include "build_address.h"

#include <assert.h>

/* ---- addresses ---- */

static bool is_frame_variable(struct ct_build *b, const struct ptx_variable *variable, struct ct_address *out)
{
    out->local = ct_build_frame_object(b, variable);
    if (out->local)
        out->space = CT_SPACE_LOCAL;
    return out->local != 0;
}

/* The space of an element that a register selects: parameters of an entry are accessed by their address, too, which is a global one. */
static enum ct_space element_space(struct ct_build *b, const struct ptx_variable *variable)
{
    if (ct_build_frame_object(b, variable))
        return CT_SPACE_LOCAL;
    return variable->space == PTX_SPACE_SHARED ? CT_SPACE_SHARED : CT_SPACE_GLOBAL;
}

static enum ct_width width_of_space(enum ct_space space)
{
    return space == CT_SPACE_SHARED || space == CT_SPACE_LOCAL ? CT_W_32 : CT_W_64;
}

static void variable_address(struct ct_build *b, const struct ptx_operand *operand, struct ct_address *out)
{
    const struct ptx_variable *variable = operand->variable;
    uint64_t param_offset;

    if (operand->reg) {
        out->space = element_space(b, variable);
        out->base = ct_build_element_address(b, operand, width_of_space(out->space));
        return;
    }
    out->offset = operand->offset;
    if (is_frame_variable(b, variable, out))
        return;
    if (ct_build_param_offset(b, variable, &param_offset)) {
        out->space = CT_SPACE_PARAM;
        out->offset += (int64_t)param_offset;
    } else if (variable->space == PTX_SPACE_SHARED) {
        out->space = CT_SPACE_SHARED;
        out->base = ct_build_address_of(b, variable, 0, CT_W_32);
    } else {
        out->space = CT_SPACE_GLOBAL;
        if (variable->linkage == PTX_LINK_EXTERN) {
            out->base = ct_build_address_of(b, variable, 0, CT_W_64); /* reports the error */
            return;
        }
        out->base = ct_build_image_base(b, variable);
        out->offset += (int64_t)variable->offset;
    }
}

static enum ct_space register_space(const struct ct_build *b, enum ptx_space space)
{
    switch (space) {
    case PTX_SPACE_NONE:
        return CT_SPACE_GENERIC;
    case PTX_SPACE_SHARED:
        return CT_SPACE_SHARED;
    case PTX_SPACE_LOCAL:
        return CT_SPACE_LOCAL;
    case PTX_SPACE_PARAM: /* the address of a parameter: see cvta */
        return b->source->is_entry ? CT_SPACE_GLOBAL : CT_SPACE_LOCAL;
    case PTX_SPACE_CONST:
    case PTX_SPACE_GLOBAL:
    case PTX_SPACE_REG:
    case PTX_SPACE_SREG:
    case PTX_SPACE_TEX:
        break;
    }
    return CT_SPACE_GLOBAL;
}

bool ct_build_address(struct ct_build *b, unsigned index, struct ct_address *out)
{
    const struct ptx_operand *operand = &b->insn->operands[index];
    enum ct_width width;

    *out = (struct ct_address){.space = CT_SPACE_GENERIC};
    if (operand->kind != PTX_OPND_ADDRESS) {
        ct_build_invalid(b, "an address is missing");
        return false;
    }
    if (operand->variable) {
        variable_address(b, operand, out);
        return true;
    }
    out->space = register_space(b, b->insn->mods.space);
    width = width_of_space(out->space);
    out->offset = operand->offset;
    if (operand->reg) {
        const struct ptx_operand base = {.kind = PTX_OPND_REG, .reg = operand->reg, .component = operand->component};

        out->base = ct_build_read(b, &base, width == CT_W_64 ? PTX_U64 : PTX_U32);
    } else {
        out->base = ct_emit_const(&b->at, width, operand->bits);
    }
    return true;
}

void ct_build_access(struct ct_build *b, struct ct_insn *insn, const struct ct_address *address, unsigned bytes)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    const bool ordered =
        mods->semantics == PTX_ACQUIRE || mods->semantics == PTX_RELEASE || mods->semantics == PTX_ACQ_REL || mods->semantics == PTX_SC;

    insn->space = (uint8_t)address->space;
    insn->offset = address->offset;
    insn->local = address->local;
    insn->semantics = ordered ? PTX_RELAXED : mods->semantics;
    insn->scope = mods->scope;
    insn->align_log2 = (uint8_t)__builtin_ctz(bytes);
    insn->is_checked = b->fn->compilation->options.check && !b->source->is_system;
    if (insn->n_operands)
        insn->operands[0] = address->base;
}

void ct_build_fence_of(struct ct_build *b, enum ptx_semantics semantics, enum ptx_scope scope)
{
    ct_emit_fence(&b->at, semantics, scope);
}

bool ct_build_may_be_wide(struct ct_build *b)
{
    if (!ptx_is_of_system(&b->insn->mods) || b->fn->target->vectors != PTX2SPV_VECTORS_SPLIT)
        return true;
    ct_build_unsupported(b, "an access of 128 bits that the host may see, which this device would split,");
    return false;
}

/* ---- ld, st ---- */

/* Size in bytes of the whole access of n parts, or 0 after an error: parts have 8 to 64 bits, and there are at most 8. */
static unsigned access_bytes(struct ct_build *b, uint32_t n)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    const enum ptx_type type = b->insn->types[0], part = ct_part_type(type);
    const uint32_t wanted = (mods->vector ? mods->vector : 1) * (ptx_type_bits(type) / ptx_type_bits(part));

    if (ptx_type_bits(part) < 8) {
        ct_build_unsupported(b, "an access of this type");
        return 0;
    }
    if (n != wanted || n > 8) {
        ct_build_invalid(b, "the vector has the wrong length");
        return 0;
    }
    if (type == PTX_B128 && !ct_build_may_be_wide(b))
        return 0;
    return ptx_type_bits(part) / 8 * n;
}

/* The memory model treats a strong access of 128 bits as one access (elements of vectors may be accessed separately: PTX ISA 8.2.4). So it is one
 * of the atomic operations of that size, unless the host may see it, which takes no locks. */
static bool is_wide_atomic(const struct ct_build *b)
{
    return b->insn->types[0] == PTX_B128 && b->insn->operands[b->insn->n_operands - 1].kind == PTX_OPND_FUNC;
}

static void load_wide(struct ct_build *b, const struct ct_address *address, const struct ptx_operand *items)
{
    const enum ptx_semantics semantics = b->insn->mods.semantics;
    const ct_value zero = ct_const64(&b->at, 0), zeros[] = {zero, zero};
    ct_value values[2];

    ct_build_wide_swap(b, address, zeros, zeros, values); /* which changes nothing */
    if (semantics == PTX_ACQUIRE || semantics == PTX_SC)
        ct_build_fence_of(b, PTX_ACQUIRE, b->insn->mods.scope);
    for (uint32_t i = 0; i < 2; i++)
        ct_build_write(b, &items[i], values[i], PTX_B64);
}

void ct_build_load(struct ct_build *b)
{
    const enum ptx_type type = ct_part_type(b->insn->types[0]);
    const struct ptx_modifiers *mods = &b->insn->mods;
    uint32_t n;
    const struct ptx_operand *items = ct_build_parts(b, &b->insn->operands[0], b->insn->types[0], &n);
    const unsigned bytes = access_bytes(b, n);
    struct ct_address address;
    struct ct_insn *insn;
    ct_value values[8];

    if (!bytes || !ct_build_address(b, 1, &address))
        return;
    if (is_wide_atomic(b)) {
        load_wide(b, &address, items);
        return;
    }
    insn = ct_emit_insn(&b->at, CT_OP_LOAD, type, n, address.space == CT_SPACE_PARAM ? 0 : 1);
    ct_build_access(b, insn, &address, bytes);
    insn->read_only = mods->nc || mods->space == PTX_SPACE_CONST || b->insn->opcode == PTX_OP_LDU;
    for (uint32_t i = 0; i < n; i++)
        insn->results[i] = values[i] = ct_value_create(b->fn, ct_build_width(b, &items[i], type));
    if (mods->semantics == PTX_ACQUIRE || mods->semantics == PTX_SC)
        ct_build_fence_of(b, PTX_ACQUIRE, mods->scope);
    for (uint32_t i = 0; i < n; i++)
        ct_build_write(b, &items[i], values[i], type);
}

/* A value to be stored has the width of its register, of which the low bits are stored. */
static ct_value stored_value(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type)
{
    if (operand->kind != PTX_OPND_REG)
        return ct_build_read(b, operand, type);
    return ct_build_read(b, operand, ct_bits_type(ct_build_width(b, operand, type)));
}

void ct_build_store(struct ct_build *b)
{
    const enum ptx_type type = ct_part_type(b->insn->types[0]);
    const struct ptx_modifiers *mods = &b->insn->mods;
    uint32_t n;
    const struct ptx_operand *items = ct_build_parts(b, &b->insn->operands[1], b->insn->types[0], &n);
    const unsigned bytes = access_bytes(b, n);
    struct ct_address address;
    struct ct_insn *insn;
    ct_value values[8];

    if (!bytes || !ct_build_address(b, 0, &address))
        return;
    if (address.space == CT_SPACE_PARAM) {
        ct_build_invalid(b, "a kernel's parameters are read-only");
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        values[i] = stored_value(b, &items[i], type);
    if (mods->semantics == PTX_RELEASE || mods->semantics == PTX_SC)
        ct_build_fence_of(b, PTX_RELEASE, mods->scope);
    if (is_wide_atomic(b)) {
        ct_value old[2];

        ct_build_wide_exchange(b, &address, values, old);
        return;
    }
    insn = ct_emit_insn(&b->at, CT_OP_STORE, type, 0, n + 1);
    ct_build_access(b, insn, &address, bytes);
    for (uint32_t i = 0; i < n; i++)
        insn->operands[i + 1] = values[i];
}

void ct_build_move_object(struct ct_build *b, uint32_t local, enum ptx_type type, const struct ptx_operand *operand, bool load)
{
    const enum ptx_type part = ct_part_type(type);
    const unsigned bytes = (ptx_type_bits(part) + 7) / 8;
    uint32_t n;
    const struct ptx_operand *items = ct_build_parts(b, operand, type, &n);

    for (uint32_t i = 0; i < n; i++) {
        const ct_value value = load ? ct_value_create(b->fn, ct_width_of(part)) : ct_build_read(b, &items[i], part);
        struct ct_insn *insn = ct_emit_insn(&b->at, load ? CT_OP_LOAD : CT_OP_STORE, part, load, load ? 1 : 2);

        insn->space = CT_SPACE_LOCAL;
        insn->local = local;
        insn->offset = (int64_t)bytes * i;
        insn->align_log2 = (uint8_t)__builtin_ctz(bytes);
        if (load) {
            insn->results[0] = value;
            ct_build_write(b, &items[i], value, part);
        } else {
            insn->operands[1] = value;
        }
    }
}

/* membar.cta .gl .sys are fence.sc of that scope; fence defaults to acq_rel. Proxy fences have no effect: there is only one proxy. */
void ct_build_fence(struct ct_build *b)
{
    const struct ptx_modifiers *mods = &b->insn->mods;
    const bool membar = b->insn->opcode == PTX_OP_MEMBAR;
    enum ptx_scope scope = mods->scope;

    if (membar && (mods->mode == PTX_MODE_GL || scope == PTX_SCOPE_NONE))
        scope = PTX_GPU;
    if (mods->mode == PTX_MODE_PROXY)
        scope = scope == PTX_SCOPE_NONE ? PTX_SYS : scope;
    ct_build_fence_of(b, membar ? PTX_SC : mods->semantics ? mods->semantics : PTX_ACQ_REL, scope);
}
