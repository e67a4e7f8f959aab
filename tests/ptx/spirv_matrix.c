/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative matrices, from the text of SPV_KHR_cooperative_matrix. Which thread holds which element is left open there: the run's table
 * decides. */
#include "spirv_program.h"

#include <string.h>

enum { LANES = 32, ELEMENTS_MAX = 64 * 64 };

static unsigned rows_of(const struct ptx2spv_matrix *matrix, unsigned use)
{
    return use == PTX2SPV_MATRIX_B ? matrix->k : matrix->m;
}

static unsigned columns_of(const struct ptx2spv_matrix *matrix, unsigned use)
{
    return use == PTX2SPV_MATRIX_A ? matrix->k : matrix->n;
}

static unsigned bits_of(const struct ptx2spv_matrix *matrix, unsigned use)
{
    return ptx2spv_matrix_element_bits(use == PTX2SPV_MATRIX_C ? matrix->sum : matrix->factor);
}

static bool is_integer(const struct ptx2spv_matrix *matrix)
{
    return matrix->factor == PTX2SPV_MATRIX_S8 || matrix->factor == PTX2SPV_MATRIX_U8;
}

bool spirv_declare_matrix(struct spirv_program *p, const uint32_t *w, struct spirv_id *type)
{
    const unsigned rows = (unsigned)p->ids[w[4]].at[0], columns = (unsigned)p->ids[w[5]].at[0], use = (unsigned)p->ids[w[6]].at[0];

    type->bits = p->ids[w[2]].bits;
    type->element = w[2];
    type->use = use;
    for (const struct ptx2spv_matrix *row = p->run->matrices ? p->run->matrices->table : NULL; row && row->m; row++)
        if (rows_of(row, use) == rows && columns_of(row, use) == columns && bits_of(row, use) == type->bits &&
            is_integer(row) == (spirv_op(p->ids[w[2]].def) == SpvOpTypeInt)) {
            type->matrix = row;
            type->count = row->components[use];
            return p->ids[w[3]].at[0] == SpvScopeSubgroup || spirv_wrong(p, "a matrix of another scope");
        }
    return spirv_wrong(p, "a matrix of %u x %u elements of %u bits, use %u", rows, columns, type->bits, use);
}

/* ---- elements ---- */

static unsigned coordinate(const char *bits, unsigned lane, unsigned component)
{
    unsigned value = 0;

    for (unsigned i = 0; bits[i]; i++)
        value |= (bits[i] < 'a' ? lane >> (bits[i] - '0') & 1 : component >> (bits[i] - 'a') & 1) << i;
    return value;
}

/* The number of the element that component c of a lane is, row by row. */
static unsigned element_of(const struct spirv_id *type, unsigned lane, unsigned c)
{
    const struct ptx2spv_matrix_layout *layout = &type->matrix->layouts[type->use];

    return coordinate(layout->row, lane, c) * columns_of(type->matrix, type->use) + coordinate(layout->column, lane, c);
}

/* Lanes that hold the same element must agree. */
static bool gather(struct spirv_program *p, uint32_t id, unsigned first, uint64_t *out)
{
    static bool is_known[ELEMENTS_MAX];
    const struct spirv_id *type = spirv_type(p, id);

    memset(is_known, 0, sizeof is_known);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned c = 0; c < type->count; c++) {
            const unsigned e = element_of(type, lane, c);
            const uint64_t value = *spirv_part(p, id, c, first + lane);

            if (is_known[e] && out[e] != value)
                return spirv_wrong(p, "two lanes hold element %u with different values", e);
            is_known[e] = true;
            out[e] = value;
        }
    return true;
}

static void scatter(struct spirv_program *p, uint32_t id, unsigned first, const uint64_t *elements)
{
    const struct spirv_id *type = spirv_type(p, id);

    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned c = 0; c < type->count; c++)
            *spirv_part(p, id, c, first + lane) = elements[element_of(type, lane, c)];
}

/* ---- instructions ---- */

static bool load(struct spirv_program *p, const uint32_t *w, unsigned first)
{
    static uint64_t elements[ELEMENTS_MAX];
    const struct spirv_id *type = &p->ids[w[1]], *pointee = &p->ids[spirv_type(p, w[3])->element];
    const unsigned columns = columns_of(type->matrix, type->use), bytes = type->bits / 8;
    const uint64_t stride = spirv_read(p, w[5], first) * pointee->bits / 8;

    if (spirv_read(p, w[4], first))
        return spirv_wrong(p, "a matrix that is not row-major");
    for (unsigned e = 0; e < rows_of(type->matrix, type->use) * columns; e++) {
        const uint8_t *from = spirv_find_global(p, spirv_read(p, w[3], first) + e / columns * stride + e % columns * bytes, bytes);

        if (!from)
            return false;
        elements[e] = 0;
        memcpy(&elements[e], from, bytes);
    }
    scatter(p, w[2], first, elements);
    return true;
}

static bool multiply(struct spirv_program *p, const uint32_t *w, unsigned first)
{
    static uint64_t a[ELEMENTS_MAX], b[ELEMENTS_MAX], c[ELEMENTS_MAX];
    const struct ptx2spv_matrix *found = NULL;
    const struct spirv_id *of_a = spirv_type(p, w[3]), *of_b = spirv_type(p, w[4]), *of_c = spirv_type(p, w[5]);

    if (!gather(p, w[3], first, a) || !gather(p, w[4], first, b) || !gather(p, w[5], first, c))
        return false;
    for (const struct ptx2spv_matrix *row = p->run->matrices->table; row->m; row++) {
        const bool is_signed = row->factor == PTX2SPV_MATRIX_S8, is_signed_sum = row->sum == PTX2SPV_MATRIX_S32;
        const uint32_t operands = (is_signed ? 0x3 : 0) | (is_signed_sum ? 0xc : 0), *type = p->ids[of_a->element].def;
        const bool is_bfloat = spirv_op(type) == SpvOpTypeFloat && spirv_length(type) > 3; /* it has an encoding */

        if (row->m == rows_of(of_a->matrix, PTX2SPV_MATRIX_A) && row->k == columns_of(of_a->matrix, PTX2SPV_MATRIX_A) &&
            row->n == columns_of(of_b->matrix, PTX2SPV_MATRIX_B) && bits_of(row, PTX2SPV_MATRIX_A) == of_a->bits &&
            bits_of(row, PTX2SPV_MATRIX_C) == of_c->bits && (spirv_length(w) > 6 ? w[6] : 0) == operands &&
            is_bfloat == (row->factor == PTX2SPV_MATRIX_BF16))
            found = row;
    }
    if (!found || of_a->use != PTX2SPV_MATRIX_A || of_b->use != PTX2SPV_MATRIX_B || of_c->use != PTX2SPV_MATRIX_C)
        return spirv_wrong(p, "a product of %u x %u x %u elements, operands %x, that the device does not have", of_a->matrix->m,
                           of_b->matrix->n, of_a->matrix->k, spirv_length(w) > 6 ? w[6] : 0);
    p->run->matrices->multiply(found, a, b, c);
    scatter(p, w[2], first, c);
    return true;
}

bool spirv_execute_matrix(struct spirv_program *p, const uint32_t *w, unsigned first)
{
    switch (spirv_op(w)) {
    case CT_SPV_OP_COOPERATIVE_MATRIX_LOAD_KHR:
        return load(p, w, first);
    case CT_SPV_OP_COOPERATIVE_MATRIX_MUL_ADD_KHR:
        return multiply(p, w, first);
    case CT_SPV_OP_COOPERATIVE_MATRIX_LENGTH_KHR:
        for (unsigned lane = 0; lane < LANES; lane++)
            *spirv_part(p, w[2], 0, first + lane) = p->ids[w[3]].count;
        return true;
    default:
        return spirv_wrong(p, "matrix instruction %u", spirv_op(w));
    }
}
