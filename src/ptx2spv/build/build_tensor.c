/* SPDX-License-Identifier: Apache-2.0 */
/* build: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor (PTX ISA, "Data Movement and Conversion Instructions: Tensor copy") as calls of
 * the functions of textures/tensor.cu, which read the CUtensorMap and copy; the thread that issues a copy carries it out. */
#include "build_async.h"

#include "cuttle/ptx2spv.h"

#include <string.h>

#define MAX_RANK 5
#define MAX_OFFSETS 3
#define MAX_ARGUMENTS 10 /* the map, the address in shared memory, the coordinates, offsets */

struct arguments {
    ct_value values[MAX_ARGUMENTS];
    uint32_t n;
};

static void add(struct arguments *arguments, ct_value value)
{
    arguments->values[arguments->n++] = value;
}

static ct_value whole_address(struct ct_build *b, const struct ct_address *address)
{
    return ct_add_imm(&b->at, address->base, (uint64_t)address->offset);
}

static uint32_t rank_of(const struct ct_build *b)
{
    return (uint32_t)(strstr(b->insn->text, ".tensor.")[sizeof ".tensor." - 1] - '0');
}

static bool add_items(struct ct_build *b, const struct ptx_operand *vector, uint32_t wanted, uint32_t all, enum ptx_type type,
                      struct arguments *arguments)
{
    if (vector->n_items != wanted) {
        ct_build_invalid(b, "a vector has the wrong length");
        return false;
    }
    for (uint32_t i = 0; i < all; i++)
        add(arguments, i < wanted ? ct_resize(&b->at, ct_build_read(b, &vector->items[i], type), type, CT_W_32) : ct_const32(&b->at, 0));
    return true;
}

/* The generic address of a map: in a register, or of a variable. */
static bool add_map(struct ct_build *b, const struct ptx_operand *operand, struct arguments *arguments)
{
    const struct ptx_operand base = {.kind = PTX_OPND_REG, .where = operand->where, .reg = operand->reg, .component = operand->component};
    const enum ptx_space space = operand->variable ? operand->variable->space : PTX_SPACE_NONE;

    if (space == PTX_SPACE_GLOBAL || space == PTX_SPACE_CONST) {
        add(arguments, ct_build_address_of(b, operand->variable, operand->offset, CT_W_64));
        return true;
    }
    if (!operand->reg) {
        ct_build_invalid(b, "the address of a tensor map is generic");
        return false;
    }
    add(arguments, ct_add_imm(&b->at, ct_build_read(b, &base, PTX_U64), (uint64_t)operand->offset));
    return true;
}

/* [map, {coordinates}]; `shared`: the operand that is the address in shared memory. */
static bool add_place(struct ct_build *b, unsigned place, unsigned shared, struct arguments *arguments)
{
    const struct ptx_operand *items = b->insn->operands[place].items;
    struct ct_address at;

    if (!ct_async_address(b, shared, PTX_SPACE_SHARED, &at) || !add_map(b, &items[0], arguments))
        return false;
    add(arguments, whole_address(b, &at));
    return add_items(b, &items[1], rank_of(b), MAX_RANK, PTX_S32, arguments);
}

static void call(struct ct_build *b, const struct arguments *arguments, ct_value *result, uint32_t n)
{
    ct_build_function_call(b, b->insn->operands[b->insn->n_operands - 1].function, arguments->values, arguments->n, PTX_B32, result, n);
}

void ct_build_tensor_load(struct ct_build *b)
{
    const bool is_image = ct_async_has(b, "im2col");
    struct arguments arguments = {.n = 0};
    struct ct_chosen chosen;
    ct_value bytes;

    ct_bulk_begin_chosen(b, 3 + is_image, &chosen);
    if (add_place(b, 1, 0, &arguments) &&
        (!is_image || add_items(b, &b->insn->operands[3], rank_of(b) - 2, MAX_OFFSETS, PTX_U16, &arguments))) {
        call(b, &arguments, &bytes, 1);
        ct_mbarrier_complete_bytes(b, 2, bytes);
    }
    ct_bulk_end_chosen(b, &chosen);
}

static uint32_t operation_of(const struct ct_build *b)
{
    static const uint8_t operations[] = {
        [PTX_AND] = PTX2SPV_TENSOR_AND, [PTX_OR] = PTX2SPV_TENSOR_OR,   [PTX_XOR] = PTX2SPV_TENSOR_XOR, [PTX_ADD] = PTX2SPV_TENSOR_ADD,
        [PTX_INC] = PTX2SPV_TENSOR_INC, [PTX_DEC] = PTX2SPV_TENSOR_DEC, [PTX_MIN] = PTX2SPV_TENSOR_MIN, [PTX_MAX] = PTX2SPV_TENSOR_MAX,
    };

    return operations[b->insn->mods.operation];
}

void ct_build_tensor_store(struct ct_build *b)
{
    struct arguments arguments = {.n = 0};

    if (!add_place(b, 0, 1, &arguments))
        return;
    if (ct_async_has(b, "im2col_no_offs"))
        add(&arguments, ct_const32(&b->at, PTX2SPV_TENSOR_STORE));
    call(b, &arguments, NULL, 0);
}

void ct_build_tensor_reduce(struct ct_build *b)
{
    struct arguments arguments = {.n = 0};

    if (!add_place(b, 0, 1, &arguments))
        return;
    add(&arguments, ct_const32(&b->at, operation_of(b)));
    call(b, &arguments, NULL, 0);
}
