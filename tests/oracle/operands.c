/* SPDX-License-Identifier: Apache-2.0 */
/* Operands (PTX ISA, "Instruction Operands", "Special Registers"). */
#include "machine.h"

#include <string.h>

enum ptx_type oracle_type(const struct oracle_step *s, unsigned n)
{
    return n < s->insn->n_types ? s->insn->types[n] : PTX_NONE;
}

uint64_t oracle_cut(uint64_t bits, enum ptx_type type)
{
    const unsigned width = ptx_type_bits(type);

    return width >= 64 || width == 0 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

int64_t oracle_signed(uint64_t bits, enum ptx_type type)
{
    const unsigned unused = 64 - ptx_type_bits(type);

    return (int64_t)(bits << unused) >> unused;
}

enum ptx_type oracle_element(enum ptx_type type)
{
    switch (type) {
    case PTX_F16X2:
        return PTX_F16;
    case PTX_BF16X2:
        return PTX_BF16;
    case PTX_F32X2:
        return PTX_F32;
    case PTX_U16X2:
        return PTX_U16;
    case PTX_S16X2:
        return PTX_S16;
    default:
        return type;
    }
}

const struct ptx_operand *oracle_items(const struct ptx_operand *operand, uint32_t *n)
{
    const bool has_items = operand->kind == PTX_OPND_VECTOR || operand->kind == PTX_OPND_PAIR || operand->kind == PTX_OPND_LIST;

    *n = has_items ? operand->n_items : 1;
    return has_items ? operand->items : operand;
}

/* ---- special registers ---- */

/* A block's threads are numbered x first; 32 consecutive ones are a warp. */
static uint64_t lane_masks(const struct oracle_thread *thread, enum ptx_sreg sreg)
{
    const uint32_t equal = UINT32_C(1) << oracle_lane(thread), below = equal - 1;

    switch (sreg) {
    case PTX_SREG_LANEMASK_LE:
        return below | equal;
    case PTX_SREG_LANEMASK_LT:
        return below;
    case PTX_SREG_LANEMASK_GE:
        return ~below;
    case PTX_SREG_LANEMASK_GT:
        return ~(below | equal);
    default:
        return equal;
    }
}

static uint64_t shared_bytes(const struct oracle_step *s)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < s->block->shared.n; i++)
        if (s->block->shared.v[i]->address + s->block->shared.v[i]->size_bytes > end)
            end = s->block->shared.v[i]->address + s->block->shared.v[i]->size_bytes;
    return end;
}

uint64_t oracle_special(struct oracle_step *s, enum ptx_sreg sreg, int component)
{
    const struct oracle_launch *launch = s->grid->launch;
    const unsigned at = component < 0 ? 0 : (unsigned)component;

    switch (sreg) {
    case PTX_SREG_TID:
        return at < 3 ? s->thread->tid[at] : 0;
    case PTX_SREG_NTID:
        return at < 3 ? launch->block[at] : 0;
    case PTX_SREG_CTAID:
    case PTX_SREG_CLUSTERID:
        return at < 3 ? s->block->ctaid[at] : 0;
    case PTX_SREG_NCTAID:
    case PTX_SREG_NCLUSTERID:
        return at < 3 ? launch->grid[at] : 0;
    case PTX_SREG_CLUSTER_NCTAID:
        return at < 3;
    case PTX_SREG_CLUSTER_NCTARANK:
    case PTX_SREG_NSMID:
        return 1;
    case PTX_SREG_CLUSTER_CTAID:
    case PTX_SREG_CLUSTER_CTARANK:
    case PTX_SREG_IS_EXPLICIT_CLUSTER:
    case PTX_SREG_SMID:
    case PTX_SREG_GRIDID:
        return 0;
    case PTX_SREG_LANEID:
        return oracle_lane(s->thread);
    case PTX_SREG_WARPID:
        return s->thread->index / ORACLE_LANES;
    case PTX_SREG_NWARPID:
        return s->block->n_warps;
    case PTX_SREG_WARP_SZ:
        return ORACLE_LANES;
    case PTX_SREG_LANEMASK_EQ:
    case PTX_SREG_LANEMASK_LE:
    case PTX_SREG_LANEMASK_LT:
    case PTX_SREG_LANEMASK_GE:
    case PTX_SREG_LANEMASK_GT:
        return lane_masks(s->thread, sreg);
    case PTX_SREG_CLOCK: /* time is the number of steps */
    case PTX_SREG_CLOCK64:
    case PTX_SREG_GLOBALTIMER:
    case PTX_SREG_GLOBALTIMER_LO:
        return s->grid->result->steps;
    case PTX_SREG_CLOCK_HI:
    case PTX_SREG_GLOBALTIMER_HI:
        return s->grid->result->steps >> 32;
    case PTX_SREG_DYNAMIC_SMEM_SIZE:
        return launch->dynamic_shared_bytes;
    case PTX_SREG_TOTAL_SMEM_SIZE:
    case PTX_SREG_AGGR_SMEM_SIZE:
        return shared_bytes(s);
    default:
        oracle_fail(s, ORACLE_UNSUPPORTED, "a special register that the oracle does not know");
        return 0;
    }
}

/* ---- reading ---- */

static uint64_t double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Literals are doubles; 0f with eight digits gives a float's bits. */
static uint64_t literal(const struct ptx_operand *operand, enum ptx_type type)
{
    if (ptx_type_bits(type) == 32)
        return operand->is_single ? operand->single_bits : oracle_from_double(PTX_F32, oracle_to_double(PTX_F64, operand->bits), PTX_RN);
    return operand->is_single ? double_bits(oracle_to_double(PTX_F32, operand->single_bits)) : operand->bits;
}

static uint64_t function_address(const struct oracle_step *s, const struct ptx_function *function)
{
    const struct ptx_module *syntax = s->grid->module->syntax;

    for (uint32_t i = 0; i < syntax->functions.n; i++)
        if (syntax->functions.v[i] == function)
            return ORACLE_FUNCTION_BASE + i * 16;
    return 0;
}

/* {a, b, ..}: the first item is the lowest part. */
static uint64_t packed(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type)
{
    static const uint8_t types[] = {[0] = PTX_B8, [1] = PTX_B16, [2] = PTX_B32};
    const unsigned width = ptx_type_bits(type) / (operand->n_items ? operand->n_items : 1);
    const enum ptx_type part = (enum ptx_type)types[width >= 32 ? 2 : width >= 16];
    uint64_t bits = 0;

    for (uint32_t i = 0; i < operand->n_items; i++)
        bits |= oracle_read(s, &operand->items[i], part) << i * width;
    return bits;
}

uint64_t oracle_read(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type)
{
    uint64_t bits;

    switch (operand->kind) {
    case PTX_OPND_REG:
        bits = s->frame->registers[operand->reg->index][operand->component > 0 ? operand->component & 3 : 0];
        break;
    case PTX_OPND_SREG:
        bits = oracle_special(s, (enum ptx_sreg)operand->sreg, operand->component);
        break;
    case PTX_OPND_INT:
        bits = type == PTX_PRED ? operand->bits != 0 : operand->bits;
        break;
    case PTX_OPND_FLOAT:
        bits = literal(operand, type);
        break;
    case PTX_OPND_ADDRESS:
        bits = oracle_address(s, operand);
        break;
    case PTX_OPND_FUNC:
        bits = function_address(s, operand->function);
        break;
    case PTX_OPND_VECTOR:
        bits = packed(s, operand, type);
        break;
    default:
        oracle_fail(s, ORACLE_UNSUPPORTED, "an operand of a kind that the oracle does not read");
        bits = 0;
        break;
    }
    return oracle_cut(operand->negated ? !bits : bits, type);
}

uint64_t oracle_source(struct oracle_step *s, unsigned index, enum ptx_type type)
{
    if (index < s->insn->n_operands)
        return oracle_read(s, &s->insn->operands[index], type);
    oracle_fail(s, ORACLE_UNSUPPORTED, "an operand is missing");
    return 0;
}

/* The two words of a 128-bit register. */
static uint64_t *wide_register(struct oracle_step *s, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPND_REG && operand->reg->type == PTX_B128)
        return s->frame->registers[operand->reg->index];
    oracle_fail(s, ORACLE_UNSUPPORTED, "an operand of 128 bits that is no register of them");
    return NULL;
}

void oracle_read_words(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type, uint64_t out[2])
{
    const bool wide = type == PTX_B128 && operand->kind != PTX_OPND_INT;
    const uint64_t *from = wide ? wide_register(s, operand) : NULL;

    out[0] = from ? from[0] : wide ? 0 : oracle_read(s, operand, type == PTX_B128 ? PTX_B64 : type);
    out[1] = from ? from[1] : type == PTX_B128 && (int64_t)out[0] < 0 ? UINT64_MAX : 0;
}

/* ---- writing ---- */

void oracle_write(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type, uint64_t bits)
{
    uint64_t *to;

    if (operand->kind == PTX_OPND_SINK)
        return;
    if (operand->kind != PTX_OPND_REG) {
        oracle_fail(s, ORACLE_UNSUPPORTED, "a destination that is no register");
        return;
    }
    to = &s->frame->registers[operand->reg->index][operand->component > 0 ? operand->component & 3 : 0];
    bits = oracle_cut(bits, type);
    if (ptx_type_is_signed(type))
        bits = (uint64_t)oracle_signed(bits, type);
    *to = oracle_cut(bits, operand->reg->type);
    if (operand->reg->type == PTX_B128)
        to[1] = ptx_type_is_signed(type) && (int64_t)bits < 0 ? UINT64_MAX : 0;
}

void oracle_write_words(struct oracle_step *s, const struct ptx_operand *operand, enum ptx_type type, const uint64_t words[2])
{
    uint64_t *to = type == PTX_B128 && operand->kind != PTX_OPND_SINK ? wide_register(s, operand) : NULL;

    if (to)
        memcpy(to, words, 2 * sizeof *words);
    else if (type != PTX_B128)
        oracle_write(s, operand, type, words[0]);
}

void oracle_result(struct oracle_step *s, enum ptx_type type, uint64_t bits)
{
    oracle_write(s, &s->insn->operands[0], type, bits);
}
