/* SPDX-License-Identifier: Apache-2.0 */
/* build: operands. Sources are read as a type, destinations are written under the guard. */
#include "build.h"

#include <string.h>

bool ct_build_has(const struct ct_build *b, unsigned index)
{
    return index < b->insn->n_operands && b->insn->operands[index].kind != PTX_OPND_NONE && b->insn->operands[index].kind != PTX_OPND_SINK;
}

struct ptx_operand ct_build_whole_word(const struct ptx_operand *operand)
{
    struct ptx_operand word = *operand;

    if (word.component >= PTX_SELECTOR_BYTE)
        word.component = -1;
    word.n_selected = 0;
    word.minus = false;
    return word;
}

const struct ptx_operand *ct_build_items(const struct ptx_operand *operand, uint32_t *count)
{
    const bool many = operand->kind == PTX_OPND_VECTOR || operand->kind == PTX_OPND_PAIR || operand->kind == PTX_OPND_LIST;

    *count = many ? operand->n_items : 1;
    return many ? operand->items : operand;
}

/* ---- registers of several values ---- */

enum ptx_type ct_part_type(enum ptx_type type)
{
    return type == PTX_B128 ? PTX_B64 : type;
}

unsigned ct_register_parts(const struct ptx_register *reg)
{
    return (reg->vector ? reg->vector : 1) * (reg->type == PTX_B128 ? 2 : 1);
}

static unsigned parts_of(const struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type)
{
    if (operand->component >= 0)
        return 1;
    if (operand->kind == PTX_OPND_SREG && b->insn->mods.vector) /* mov.v4.u32 {a, b, c, d}, %tid */
        return b->insn->mods.vector;
    if (operand->kind == PTX_OPND_REG && operand->reg->vector)
        return operand->reg->vector;
    return type == PTX_B128 ? 2 : 1;
}

static struct ptx_operand part_of(const struct ptx_operand *operand, unsigned part)
{
    struct ptx_operand out = *operand;

    if (operand->kind == PTX_OPND_REG || operand->kind == PTX_OPND_SREG)
        out.component = (int8_t)part;
    else if (operand->kind == PTX_OPND_INT && part)
        out.bits = (int64_t)operand->bits < 0 ? UINT64_MAX : 0;
    return out;
}

const struct ptx_operand *ct_build_parts(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type, uint32_t *count)
{
    uint32_t n_items, n = 0;
    const struct ptx_operand *items = ct_build_items(operand, &n_items);
    struct ptx_operand *parts;

    for (uint32_t i = 0; i < n_items; i++)
        n += parts_of(b, &items[i], type);
    *count = n;
    if (n == n_items)
        return items;
    parts = CT_ARENA_ARRAY(&b->fn->compilation->scratch, struct ptx_operand, n);
    n = 0;
    for (uint32_t i = 0; i < n_items; i++)
        for (unsigned part = 0; part < parts_of(b, &items[i], type); part++)
            parts[n++] = part_of(&items[i], part);
    return parts;
}

static bool is_whole_128(const struct ptx_operand *operand)
{
    return operand->reg->type == PTX_B128 && operand->component < 0;
}

/* The value of a register; of a 128-bit register the lower half. */
static ct_value register_value(struct ct_build *b, const struct ptx_operand *operand)
{
    ct_value value = b->registers[operand->reg->index];

    if (operand->n_selected || (operand->component > 0 && operand->component >= (int)ct_register_parts(operand->reg))) {
        ct_build_unsupported(b, "a component of a register as an operand");
        return CT_NO_VALUE;
    }
    if (operand->component > 0)
        value.i += (uint32_t)operand->component;
    return value;
}

/* ---- constants ---- */

static uint64_t bits_of_double(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static double double_of_bits(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint32_t bits_of_single(double d)
{
    const float f = (float)d;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* The bits of a float literal in a type: exact for 0f and 0d literals of that size, else rounded to nearest. */
static uint64_t literal_bits(const struct ptx_operand *operand, enum ptx_type type)
{
    float single;

    if (ptx_type_bits(type) == 32)
        return operand->is_single ? operand->single_bits : bits_of_single(double_of_bits(operand->bits));
    if (!operand->is_single)
        return operand->bits;
    memcpy(&single, &operand->single_bits, sizeof single);
    return bits_of_double((double)single);
}

static ct_value constant(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type)
{
    const enum ct_width width = ct_width_of(type);

    if (operand->kind == PTX_OPND_INT) {
        if (type == PTX_F32 || type == PTX_F64)
            ct_build_invalid(b, "an integer constant where a floating point value is expected");
        return ct_emit_const(&b->at, width, width == CT_W_PRED ? operand->bits != 0 : operand->bits);
    }
    if (width != CT_W_32 && width != CT_W_64)
        ct_build_invalid(b, "a floating point constant does not match the type");
    return ct_emit_const(&b->at, width, literal_bits(operand, type));
}

bool ct_build_constant(const struct ct_build *b, unsigned index, uint64_t *bits)
{
    if (index >= b->insn->n_operands || b->insn->operands[index].kind != PTX_OPND_INT)
        return false;
    *bits = b->insn->operands[index].bits;
    return true;
}

/* ---- addresses as numbers ---- */

/* Kernels read the address of the managed image from the beginning of the module's image, which does not change. */
static ct_value managed_base(struct ct_build *b)
{
    const ct_value base = ct_sysval(&b->at, CT_SYS_IMAGE_BASE);
    struct ct_insn *load = ct_emit_insn(&b->at, CT_OP_LOAD, PTX_U64, 1, 1);

    load->space = CT_SPACE_GLOBAL;
    load->align_log2 = 3;
    load->read_only = true;
    load->operands[0] = base;
    load->results[0] = ct_value_create(b->fn, CT_W_64);
    return load->results[0];
}

ct_value ct_build_image_base(struct ct_build *b, const struct ptx_variable *variable)
{
    return variable->managed ? managed_base(b) : ct_sysval(&b->at, CT_SYS_IMAGE_BASE);
}

static ct_value image_address(struct ct_build *b, const struct ptx_variable *variable, int64_t offset)
{
    if (variable->linkage == PTX_LINK_EXTERN) {
        ct_error(b->fn->compilation, b->insn->where, PTX2SPV_INVALID_PTX, "variable `%s' is declared .extern but never defined",
                 variable->name);
        return ct_const64(&b->at, 0);
    }
    return ct_add_imm(&b->at, ct_build_image_base(b, variable), variable->offset + (uint64_t)offset);
}

static ct_value object_address(struct ct_build *b, enum ct_op op, uint32_t local, const struct ptx_variable *variable)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, op, PTX_U32, 1, 0);

    insn->local = local;
    insn->variable = (struct ptx_variable *)(uintptr_t)variable; /* the tree is const here, but not this field of the IR, which other
                                                                    code uses, too */
    insn->results[0] = ct_value_create(b->fn, CT_W_32);
    return insn->results[0];
}

ct_value ct_build_local_address(struct ct_build *b, uint32_t local)
{
    return object_address(b, CT_OP_LOCALADDR, local, NULL);
}

ct_value ct_build_handle(struct ct_build *b, const struct ptx_variable *variable, int64_t offset)
{
    struct ct_insn *load;
    const ct_value address = image_address(b, variable, 0);

    load = ct_emit_insn(&b->at, CT_OP_LOAD, PTX_U64, 1, 1);
    load->space = CT_SPACE_GLOBAL;
    load->align_log2 = 3;
    load->read_only = true; /* the host changes it while no kernel runs */
    load->offset = offset;
    load->operands[0] = address;
    return load->results[0] = ct_value_create(b->fn, CT_W_64);
}

ct_value ct_build_address_of(struct ct_build *b, const struct ptx_variable *variable, int64_t offset, enum ct_width width)
{
    const uint32_t local = ct_build_frame_object(b, variable);
    uint64_t param_offset;
    ct_value address;

    if (local)
        address = ct_build_local_address(b, local);
    else if (variable->space == PTX_SPACE_SHARED)
        address = object_address(b, CT_OP_SHAREDADDR, 0, variable);
    else if (ct_build_param_offset(b, variable, &param_offset))
        address = ct_add_imm(&b->at, ct_sysval(&b->at, CT_SYS_PARAM_BASE), param_offset);
    else if (variable->space == PTX_SPACE_GLOBAL || variable->space == PTX_SPACE_CONST)
        return ct_resize(&b->at, image_address(b, variable, offset), PTX_U64, width);
    else {
        ct_build_unsupported(b, "the address of this variable");
        address = ct_const64(&b->at, 0);
    }
    if (offset)
        address = ct_add_imm(&b->at, address, (uint64_t)offset);
    return ct_resize(&b->at, address, PTX_U32, width);
}

/* As an H200 computes it, by the width of the index: in 32 bits, without a sign, or in 64. */
ct_value ct_build_element_address(struct ct_build *b, const struct ptx_operand *operand, enum ct_width width)
{
    const struct ptx_operand reg = {.kind = PTX_OPND_REG, .where = operand->where, .reg = operand->reg, .component = -1};
    const enum ptx_type type = ptx_type_bits(operand->reg->type) == 64 ? PTX_U64 : PTX_U32;
    const ct_value index = ct_build_read(b, &reg, type);
    const ct_value bytes = ct_emit_const(&b->at, ct_width_of(type), ptx_type_bytes(operand->variable->type));
    ct_value distance = ct_op2(&b->at, CT_OP_MUL, type, index, bytes);

    distance = ct_resize(&b->at, ct_add_imm(&b->at, distance, (uint64_t)operand->offset), type, width);
    return ct_add(&b->at, ct_build_address_of(b, operand->variable, 0, width), distance);
}

static ct_value address_operand(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type)
{
    ct_value base;

    if (operand->bracketed) {
        ct_build_invalid(b, "an address in brackets is not a value");
        return CT_NO_VALUE;
    }
    if (operand->variable && operand->variable->reference && operand->reg)
        ct_build_unsupported(b, "a texture or surface reference that a register selects");
    if (operand->variable && operand->variable->reference) /* mov.u64 d, tex: what texture instructions take in a register */
        return ct_resize(&b->at, ct_build_handle(b, operand->variable, operand->offset), PTX_U64, ct_width_of(type));
    if (operand->variable && operand->reg)
        return ct_build_element_address(b, operand, ct_width_of(type));
    if (operand->variable)
        return ct_build_address_of(b, operand->variable, operand->offset, ct_width_of(type));
    if (!operand->reg)
        return ct_emit_const(&b->at, ct_width_of(type), operand->bits + (uint64_t)operand->offset);
    base = register_value(b, operand);
    return base.i ? ct_add_imm(&b->at, base, (uint64_t)operand->offset) : base;
}

/* ---- sources ---- */

static ct_value read_any(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type)
{
    switch (operand->kind) {
    case PTX_OPND_REG:
        return register_value(b, operand);
    case PTX_OPND_SREG:
        return ct_build_special_register(b, operand->sreg, operand->component);
    case PTX_OPND_INT:
    case PTX_OPND_FLOAT:
        return constant(b, operand, type);
    case PTX_OPND_ADDRESS:
        return address_operand(b, operand, type);
    case PTX_OPND_FUNC:
        return ct_const64(&b->at, ct_function_address(operand->function));
    case PTX_OPND_NONE:
    case PTX_OPND_VECTOR:
    case PTX_OPND_PAIR:
    case PTX_OPND_LABEL:
    case PTX_OPND_LIST:
    case PTX_OPND_SINK:
    case PTX_OPND_SYMBOL:
        break;
    }
    ct_build_invalid(b, "an operand of the wrong kind");
    return CT_NO_VALUE;
}

ct_value ct_build_read(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type)
{
    const enum ct_width width = ct_width_of(type);
    ct_value value = read_any(b, operand, type);

    if (!value.i)
        return ct_emit_const(&b->at, width, 0); /* an error was reported; the IR must stay well formed */
    if ((width == CT_W_PRED) != (ct_width_at(&b->at, value) == CT_W_PRED)) {
        ct_build_invalid(b, "a predicate where a number is expected, or vice versa");
        return ct_emit_const(&b->at, width, 0);
    }
    value = ct_resize(&b->at, value, type, width);
    if (operand->negated)
        value = ct_not(&b->at, value);
    if (operand->minus)
        value = ct_op1(&b->at, ptx_type_is_float(type) ? CT_OP_FNEG : CT_OP_NEG, type, value);
    return value;
}

ct_value ct_build_source(struct ct_build *b, unsigned index, enum ptx_type type)
{
    if (index < b->insn->n_operands)
        return ct_build_read(b, &b->insn->operands[index], type);
    ct_build_invalid(b, "an operand is missing");
    return ct_emit_const(&b->at, ct_width_of(type), 0);
}

/* ---- destinations ---- */

void ct_build_write(struct ct_build *b, const struct ptx_operand *operand, ct_value value, enum ptx_type type)
{
    ct_value reg;

    if (operand->kind == PTX_OPND_SINK)
        return;
    if (operand->kind != PTX_OPND_REG) {
        ct_build_invalid(b, "the destination is not a register");
        return;
    }
    reg = register_value(b, operand);
    if (!reg.i)
        return;
    if ((ct_width_at(&b->at, reg) == CT_W_PRED) != (ct_width_at(&b->at, value) == CT_W_PRED)) {
        ct_build_invalid(b, "a predicate where a number is expected, or vice versa");
        return;
    }
    value = ct_resize(&b->at, value, type, ct_width_at(&b->at, reg));
    if (operand->negated)
        value = ct_not(&b->at, value);
    ct_assign(&b->at, reg, b->guard.i ? ct_select(&b->at, b->guard, value, reg) : value);
    if (is_whole_128(operand)) {
        const struct ptx_operand high = part_of(operand, 1);

        ct_build_write(b, &high, ptx_type_is_signed(type) ? ct_sar_imm(&b->at, value, 63) : ct_const64(&b->at, 0), PTX_B64);
    }
}

void ct_build_result(struct ct_build *b, ct_value value, enum ptx_type type)
{
    if (b->insn->n_operands)
        ct_build_write(b, &b->insn->operands[0], value, type);
}

enum ct_width ct_build_width(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type)
{
    ct_value value;

    if (operand->kind != PTX_OPND_REG)
        return ct_width_of(type);
    value = register_value(b, operand);
    return value.i ? ct_width_at(&b->at, value) : ct_width_of(type);
}
