/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix units as cooperative matrices (SPV_KHR_cooperative_matrix). A matrix exists only between the words of its lanes, from which it is composed,
 * and those into which it is taken apart: the components are the registers of the matrix. Within a block the same words are composed once, and a result
 * is not composed again. */
#include "emit.h"
#include "spirv_newer.h"

#include <string.h>

/* One of the three matrices of a row of the target's table. */
struct matrix {
    enum ptx2spv_matrix_element element;
    unsigned rows, columns, components, bits;
    uint32_t component_type, type; /* ids */
};

static const struct ptx2spv_matrix *row_of(const struct ct_gen *g, const struct ct_insn *insn)
{
    return &g->target->matrices[insn->imm];
}

/* bfloat16 is no type for arithmetic: it is declared here only. */
static uint32_t component_type(struct ct_gen *g, enum ptx2spv_matrix_element element, unsigned bits)
{
    switch (element) {
    case PTX2SPV_MATRIX_BF16:
        ct_spv_extension(&g->m, "SPV_KHR_bfloat16");
        ct_spv_capability(&g->m, CT_SPV_CAPABILITY_BFLOAT16_TYPE_KHR);
        ct_spv_capability(&g->m, CT_SPV_CAPABILITY_BFLOAT16_COOPERATIVE_MATRIX_KHR);
        return CT_SPV_INTERN(&g->m, SpvOpTypeFloat, 0, 16, CT_SPV_FP_ENCODING_BFLOAT16_KHR);
    case PTX2SPV_MATRIX_F16:
    case PTX2SPV_MATRIX_F32:
        return ct_gen_float_type(g, bits);
    default:
        return ct_gen_int_type(g, bits);
    }
}

static struct matrix matrix_of(struct ct_gen *g, const struct ptx2spv_matrix *row, enum ptx2spv_matrix_use use)
{
    struct matrix matrix = {
        .element = use == PTX2SPV_MATRIX_C ? row->sum : row->factor,
        .rows = use == PTX2SPV_MATRIX_B ? row->k : row->m,
        .columns = use == PTX2SPV_MATRIX_A ? row->k : row->n,
        .components = row->components[use],
    };

    ct_spv_extension(&g->m, "SPV_KHR_cooperative_matrix");
    ct_spv_capability(&g->m, CT_SPV_CAPABILITY_COOPERATIVE_MATRIX_KHR);
    matrix.bits = ptx2spv_matrix_element_bits(matrix.element);
    matrix.component_type = component_type(g, matrix.element, matrix.bits);
    matrix.type = CT_SPV_INTERN(&g->m, CT_SPV_OP_TYPE_COOPERATIVE_MATRIX_KHR, 0, matrix.component_type, ct_gen_u32(g, SpvScopeSubgroup),
                                ct_gen_u32(g, matrix.rows), ct_gen_u32(g, matrix.columns), ct_gen_u32(g, use));
    return matrix;
}

/* The integers or floats of which a word consists; bfloat16 cannot be part of a vector. */
static uint32_t part_type(struct ct_gen *g, const struct matrix *matrix)
{
    return matrix->element == PTX2SPV_MATRIX_BF16 ? ct_gen_int_type(g, 16) : matrix->component_type;
}

static unsigned words_of(const struct matrix *matrix)
{
    return matrix->components * matrix->bits / 32;
}

/* Matrices of earlier blocks may not dominate this one. */
static uint32_t known_or_none(struct ct_gen *g, const struct matrix *matrix, const ct_value *words)
{
    if (g->matrices_label != g->label)
        g->matrices.n = 0;
    g->matrices_label = g->label;
    for (uint32_t i = g->matrices.n; i-- > 0;) {
        const struct ct_gen_matrix *known = &g->matrices.v[i];

        if (known->type == matrix->type && !memcmp(known->words, words, words_of(matrix) * sizeof *words))
            return known->id;
    }
    return 0;
}

static uint32_t remember(struct ct_gen *g, const struct matrix *matrix, const ct_value *words, uint32_t id)
{
    *CT_PUSH(&g->fn->compilation->scratch, &g->matrices) = (struct ct_gen_matrix){matrix->type, id, words};
    return id;
}

static uint32_t compose(struct ct_gen *g, const struct matrix *matrix, const ct_value *words)
{
    const unsigned n = 32 / matrix->bits;
    const uint32_t part = part_type(g, matrix), vector = n > 1 ? ct_spv_type_vector(&g->m, part, n) : part;
    uint32_t whole = known_or_none(g, matrix, words);

    if (whole)
        return whole;
    whole = ct_spv_intern(&g->m, SpvOpUndef, matrix->type, NULL, 0);
    for (unsigned i = 0; i < matrix->components; i++) {
        uint32_t component = ct_gen_use(g, words[i / n]);

        if (n > 1)
            component = GEN(g, SpvOpCompositeExtract, part, GEN(g, SpvOpBitcast, vector, component), i % n);
        if (n == 1 ? matrix->element == PTX2SPV_MATRIX_F32 : part != matrix->component_type)
            component = GEN(g, SpvOpBitcast, matrix->component_type, component);
        whole = GEN(g, SpvOpCompositeInsert, matrix->type, component, whole, i);
    }
    return remember(g, matrix, words, whole);
}

static void take_apart(struct ct_gen *g, const struct matrix *matrix, uint32_t whole, const ct_value *words)
{
    const unsigned n = 32 / matrix->bits;
    const uint32_t uint = ct_gen_int_type(g, 32), part = part_type(g, matrix);
    uint32_t parts[4];

    for (unsigned i = 0; i < matrix->components; i++) {
        uint32_t component = GEN(g, SpvOpCompositeExtract, matrix->component_type, whole, i);

        if (part != matrix->component_type)
            component = GEN(g, SpvOpBitcast, part, component);
        parts[i % n] = component;
        if (i % n < n - 1)
            continue;
        if (n > 1)
            component = ct_spv_result(&g->m, CT_SPV_CODE, SpvOpCompositeConstruct, ct_spv_type_vector(&g->m, part, n), parts, n);
        if (n > 1 || matrix->element == PTX2SPV_MATRIX_F32)
            component = GEN(g, SpvOpBitcast, uint, component);
        ct_gen_define(g, words[i / n], component);
    }
}

void ct_gen_matrix_mad(struct ct_gen *g, const struct ct_insn *insn)
{
    const struct ptx2spv_matrix *row = row_of(g, insn);
    const ct_value *words = insn->operands;
    uint32_t operands[4], result;
    struct matrix matrix;

    for (unsigned use = 0; use < PTX2SPV_MATRIX_USES; use++) {
        matrix = matrix_of(g, row, (enum ptx2spv_matrix_use)use);
        operands[use] = compose(g, &matrix, words);
        words += words_of(&matrix);
    }
    operands[3] = (row->factor == PTX2SPV_MATRIX_S8 ? CT_SPV_MATRIX_FACTORS_SIGNED_KHR : 0) |
                  (row->sum == PTX2SPV_MATRIX_S32 ? CT_SPV_MATRIX_SUMS_SIGNED_KHR : 0);
    result = ct_spv_result(&g->m, CT_SPV_CODE, (SpvOp)CT_SPV_OP_COOPERATIVE_MATRIX_MUL_ADD_KHR, matrix.type, operands, operands[3] ? 4 : 3);
    take_apart(g, &matrix, remember(g, &matrix, insn->results, result), insn->results);
}

/* The rows follow each other in memory, as words. */
void ct_gen_matrix_load(struct ct_gen *g, const struct ct_insn *insn)
{
    const struct matrix matrix = matrix_of(g, row_of(g, insn), (enum ptx2spv_matrix_use)insn->mode);
    const uint32_t stride = ct_gen_u32(g, matrix.columns * matrix.bits / 32), layout = ct_gen_u32(g, CT_SPV_MATRIX_ROW_MAJOR_KHR);
    const uint32_t pointer = ct_gen_global_pointer(g, ct_gen_use(g, insn->operands[0]), insn->offset, ct_gen_int_type(g, 32));

    take_apart(g, &matrix,
               GEN(g, (SpvOp)CT_SPV_OP_COOPERATIVE_MATRIX_LOAD_KHR, matrix.type, pointer, layout, stride, SpvMemoryAccessAlignedMask, 16),
               insn->results);
}

void ct_gen_matrix_size(struct ct_gen *g, const struct ct_insn *insn)
{
    const struct matrix matrix = matrix_of(g, row_of(g, insn), (enum ptx2spv_matrix_use)insn->mode);

    ct_gen_define(g, insn->results[0], GEN(g, (SpvOp)CT_SPV_OP_COOPERATIVE_MATRIX_LENGTH_KHR, ct_gen_int_type(g, 32), matrix.type));
}
