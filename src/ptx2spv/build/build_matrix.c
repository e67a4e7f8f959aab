/* SPDX-License-Identifier: Apache-2.0 */
/* build: the matrix area, and the instructions that move matrices of 8x8 elements of 16 bits (PTX ISA, "ldmatrix", "stmatrix",
 * "movmatrix"). Lane l holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, or of column l / 4 with .trans. */
#include "matrix.h"

enum { ROW_LANES = 4, MATRIX_ROWS = 8, WORD_BYTES = 4 };

/* ---- the matrix area ---- */

void ct_matrix_area_open(struct ct_build *b, unsigned words, struct ct_matrix_area *out)
{
    out->words = words;
    out->warp = ct_sysval(&b->at, CT_SYS_MATRIX_BASE);
    out->lane = ct_sysval(&b->at, CT_SYS_LANEID);
    out->own = ct_matrix_area_of(b, out, out->lane);
    if (b->fn->matrix_words < words)
        b->fn->matrix_words = words;
}

ct_value ct_matrix_area_of(struct ct_build *b, const struct ct_matrix_area *area, ct_value lane)
{
    if (!lane.i)
        return area->warp;
    return ct_add(&b->at, area->warp, ct_op2(&b->at, CT_OP_MUL, PTX_U32, lane, ct_const32(&b->at, WORD_BYTES * area->words)));
}

/* Values have 32 bits, also those of which 16 are in memory: not all devices have 16-bit integers. */
static struct ct_insn *shared_access(struct ct_build *b, enum ct_op op, enum ptx_type type, ct_value address, int64_t offset)
{
    struct ct_insn *insn = ct_emit_insn(&b->at, op, type, op == CT_OP_LOAD, op == CT_OP_LOAD ? 1 : 2);

    insn->space = CT_SPACE_SHARED;
    insn->align_log2 = (uint8_t)__builtin_ctz(ptx_type_bits(type) / 8);
    insn->offset = offset;
    insn->operands[0] = address;
    if (op == CT_OP_LOAD)
        insn->results[0] = ct_value_create(b->fn, CT_W_32);
    return insn;
}

void ct_matrix_area_post(struct ct_build *b, const struct ct_matrix_area *area, unsigned index, ct_value word)
{
    shared_access(b, CT_OP_STORE, PTX_B32, area->own, WORD_BYTES * (int64_t)index)->operands[1] = word;
}

ct_value ct_matrix_area_load(struct ct_build *b, ct_value address, unsigned word)
{
    return shared_access(b, CT_OP_LOAD, PTX_B32, address, WORD_BYTES * (int64_t)word)->results[0];
}

void ct_matrix_area_meet(struct ct_build *b)
{
    const ct_value all = ct_const32(&b->at, UINT32_MAX);

    ct_emit_insn(&b->at, CT_OP_WARPSYNC, PTX_B32, 0, 1)->operands[0] = all;
}

const struct ptx_operand *ct_matrix_items(struct ct_build *b, unsigned index, uint32_t n)
{
    const struct ptx_operand *operand = index < b->insn->n_operands ? &b->insn->operands[index] : NULL;
    const bool is_vector = operand && (operand->kind == PTX_OPND_VECTOR || (operand->kind == PTX_OPND_REG && operand->reg->vector));
    uint32_t found = 0;
    const struct ptx_operand *items = is_vector ? ct_build_parts(b, operand, PTX_B32, &found) : NULL;

    if (items && found == n)
        return items;
    ct_build_invalid(b, "a matrix operand has the wrong number of registers");
    return NULL;
}

/* ---- ldmatrix, stmatrix ---- */

/* Lane 8 i + r gives the address of row r of matrix i. */
struct rows {
    bool in_registers; /* the addresses: lanes read each other's */
    ct_value address;  /* the one that this lane gives */
    struct ct_matrix_area area;
    ct_value row, pair; /* of this lane: l / 4, l % 4 */
};

static bool read_move(struct ct_build *b, struct ct_matrix_words *out)
{
    const enum ptx_space space = (enum ptx_space)b->insn->mods.space;

    if (!ct_matrix_words_read(b->insn, out) || out->m != 8 || out->n != 8 || out->k || out->n_types != 1 ||
        out->types[0] != CT_ELEMENT_B16 || (space && space != PTX_SPACE_SHARED)) {
        ct_build_unsupported(b, NULL);
        return false;
    }
    return true;
}

/* Generic addresses are those of shared memory, too: their lower half is the offset there. */
static bool post_addresses(struct ct_build *b, unsigned operand, struct rows *out)
{
    struct ct_address address;
    ct_value lane;

    if (b->insn->n_operands != 2) {
        ct_build_invalid(b, "wrong number of operands");
        return false;
    }
    if (!ct_build_address(b, operand, &address))
        return false;
    if (address.space != CT_SPACE_GENERIC && address.space != CT_SPACE_SHARED) {
        ct_build_invalid(b, "the matrix is not in shared memory");
        return false;
    }
    out->address = ct_add_imm(&b->at, ct_low32(&b->at, address.base), (uint32_t)address.offset);
    out->in_registers = ct_build_may_read_lanes(b);
    if (!out->in_registers) {
        ct_matrix_area_open(b, 1, &out->area);
        ct_matrix_area_post(b, &out->area, 0, out->address);
        ct_matrix_area_meet(b);
    }
    lane = ct_sysval(&b->at, CT_SYS_LANEID);
    out->row = ct_shr_imm(&b->at, lane, 2);
    out->pair = ct_and_imm(&b->at, lane, ROW_LANES - 1);
    return true;
}

static ct_value address_of_row(struct ct_build *b, const struct rows *rows, unsigned matrix, ct_value row)
{
    if (rows->in_registers)
        return ct_emit2(&b->at, CT_OP_LANEREAD, PTX_B32, CT_W_32, rows->address, ct_add_imm(&b->at, row, MATRIX_ROWS * matrix));
    return ct_matrix_area_load(b, ct_matrix_area_of(b, &rows->area, row), MATRIX_ROWS * matrix);
}

/* The address of this lane's pair of elements, or, with .trans, of one of them, in another row each. */
static ct_value address_of_pair(struct ct_build *b, const struct rows *rows, unsigned matrix)
{
    return ct_add(&b->at, address_of_row(b, rows, matrix, rows->row), ct_shl_imm(&b->at, rows->pair, 2));
}

static ct_value address_of_half(struct ct_build *b, const struct rows *rows, unsigned matrix, unsigned half)
{
    const ct_value row = ct_add_imm(&b->at, ct_shl_imm(&b->at, rows->pair, 1), half);

    return ct_add(&b->at, address_of_row(b, rows, matrix, row), ct_shl_imm(&b->at, rows->row, 1));
}

static ct_value load_matrix(struct ct_build *b, const struct rows *rows, unsigned matrix, bool is_transposed)
{
    ct_value halves[2];

    if (!is_transposed)
        return shared_access(b, CT_OP_LOAD, PTX_B32, address_of_pair(b, rows, matrix), 0)->results[0];
    for (unsigned i = 0; i < 2; i++)
        halves[i] = shared_access(b, CT_OP_LOAD, PTX_U16, address_of_half(b, rows, matrix, i), 0)->results[0];
    return ct_or(&b->at, halves[0], ct_shl_imm(&b->at, halves[1], 16));
}

void ct_build_ldmatrix(struct ct_build *b)
{
    const struct ptx_operand *items;
    struct ct_matrix_words words;
    struct rows rows;
    ct_value values[4];

    if (!read_move(b, &words) || !(items = ct_matrix_items(b, 0, words.count)) || !post_addresses(b, 1, &rows))
        return;
    for (unsigned i = 0; i < words.count; i++)
        values[i] = load_matrix(b, &rows, i, words.is_transposed);
    for (unsigned i = 0; i < words.count; i++)
        ct_build_write(b, &items[i], values[i], PTX_B32);
}

static void store_matrix(struct ct_build *b, const struct rows *rows, unsigned matrix, bool is_transposed, ct_value value)
{
    const ct_value halves[2] = {value, is_transposed ? ct_shr_imm(&b->at, value, 16) : value};

    if (!is_transposed) {
        shared_access(b, CT_OP_STORE, PTX_B32, address_of_pair(b, rows, matrix), 0)->operands[1] = value;
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        shared_access(b, CT_OP_STORE, PTX_U16, address_of_half(b, rows, matrix, i), 0)->operands[1] = halves[i];
}

void ct_build_stmatrix(struct ct_build *b)
{
    const struct ptx_operand *items;
    struct ct_matrix_words words;
    struct rows rows;

    if (!read_move(b, &words) || !(items = ct_matrix_items(b, 1, words.count)) || !post_addresses(b, 0, &rows))
        return;
    for (unsigned i = 0; i < words.count; i++)
        store_matrix(b, &rows, i, words.is_transposed, ct_build_read(b, &items[i], PTX_B32));
}

/* ---- movmatrix ---- */

/* This lane's elements of the transposed matrix are elements l / 4 of rows 2 (l % 4) and 2 (l % 4) + 1, which are in lanes
 * 8 (l % 4) + l / 8, and 4 further. */
void ct_build_movmatrix(struct ct_build *b)
{
    struct ct_cursor *at = &b->at;
    struct ct_matrix_words words;
    struct ct_matrix_area area;
    ct_value lane, shift, halves[2];

    if (!read_move(b, &words))
        return;
    if (!words.is_transposed || words.count || b->insn->n_operands != 2) {
        ct_build_invalid(b, "movmatrix is .trans, with two operands");
        return;
    }
    ct_matrix_area_open(b, 1, &area);
    ct_matrix_area_post(b, &area, 0, ct_build_source(b, 1, PTX_B32));
    ct_matrix_area_meet(b);
    lane = ct_or(at, ct_shl_imm(at, ct_and_imm(at, area.lane, 3), 3), ct_shr_imm(at, area.lane, 3));
    shift = ct_shl_imm(at, ct_and_imm(at, ct_shr_imm(at, area.lane, 2), 1), 4);
    for (unsigned i = 0; i < 2; i++) {
        const ct_value word = ct_matrix_area_load(b, ct_matrix_area_of(b, &area, lane), ROW_LANES * i);

        halves[i] = ct_op2(at, CT_OP_SHR, PTX_U32, word, shift);
    }
    ct_build_result(b, ct_or(at, ct_and_imm(at, halves[0], 0xffff), ct_shl_imm(at, halves[1], 16)), PTX_B32);
}
