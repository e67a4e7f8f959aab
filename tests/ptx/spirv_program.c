/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a SPIR-V module. Constants have one value, other results one for each thread. */
#include "spirv_program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPONENTS_MAX = 64 }; /* of a matrix, in a thread */

/* The header has it as a C99 inline function, which needs an external definition in one file. */
extern inline void SpvHasResultAndType(SpvOp opcode, bool *has_result, bool *has_type);

bool spirv_wrong(struct spirv_program *p, const char *format, ...)
{
    va_list arguments;

    if (p->run->message[0])
        return false;
    va_start(arguments, format);
    vsnprintf(p->run->message, sizeof p->run->message, format, arguments);
    va_end(arguments);
    return false;
}

static void decorate(struct spirv_program *p, const uint32_t *w)
{
    if (spirv_op(w) == SpvOpMemberDecorate) {
        if (w[3] == SpvDecorationOffset && w[2] < SPIRV_MEMBERS_MAX)
            p->ids[w[1]].offsets[w[2]] = (uint16_t)w[4];
        return;
    }
    switch (w[2]) {
    case SpvDecorationArrayStride:
        p->ids[w[1]].array_stride = w[3];
        break;
    case SpvDecorationBuiltIn:
        p->ids[w[1]].builtin = w[3];
        break;
    case SpvDecorationSpecId:
        p->ids[w[1]].spec_id = w[3];
        p->ids[w[1]].is_spec = true;
        break;
    default:
        break;
    }
}

uint32_t spirv_bytes(const struct spirv_program *p, uint32_t type)
{
    const struct spirv_id *t = &p->ids[type];

    if (spirv_op(t->def) == SpvOpTypeArray)
        return t->count * t->array_stride;
    return t->count * t->bits / 8;
}

static bool declare_type(struct spirv_program *p, const uint32_t *w)
{
    struct spirv_id *type = &p->ids[w[1]];

    type->count = 1;
    switch (spirv_op(w)) {
    case SpvOpTypeBool:
        type->bits = 1;
        break;
    case SpvOpTypeInt:
    case SpvOpTypeFloat:
        type->bits = w[2];
        break;
    case SpvOpTypeVector:
        type->bits = p->ids[w[2]].bits;
        type->count = w[3];
        type->element = w[2];
        break;
    case SpvOpTypeArray:
        type->element = w[2];
        type->bits = p->ids[w[2]].bits;
        type->count = (uint32_t)p->ids[w[3]].at[0];
        if (!type->array_stride)
            type->array_stride = spirv_bytes(p, w[2]);
        break;
    case SpvOpTypeStruct: /* the result of OpUMulExtended: two equal members */
        type->bits = p->ids[w[2]].bits;
        type->count = spirv_length(w) - 2;
        break;
    case CT_SPV_OP_TYPE_COOPERATIVE_MATRIX_KHR:
        return spirv_declare_matrix(p, w, type);
    case SpvOpTypePointer:
        type->bits = 64;
        type->storage = w[2];
        type->element = w[3];
        break;
    default:
        break;
    }
    return true;
}

static bool is_constant(uint32_t op)
{
    return (op >= SpvOpConstantTrue && op <= SpvOpSpecConstantOp) || op == SpvOpUndef;
}

/* The values of a constant; the run's values for specialization constants. */
static bool define_constant(struct spirv_program *p, const uint32_t *w)
{
    const struct spirv_id *type = &p->ids[w[1]];
    struct spirv_id *id = &p->ids[w[2]];
    uint32_t folded[16];

    if (id->is_spec && p->run->spec) {
        id->at[0] = p->run->spec[id->spec_id];
        return true;
    }
    switch (spirv_op(w)) {
    case SpvOpConstantTrue:
    case SpvOpSpecConstantTrue:
        id->at[0] = 1;
        return true;
    case SpvOpConstant:
    case SpvOpSpecConstant:
        id->at[0] = w[3] | (uint64_t)(spirv_length(w) > 4 ? w[4] : 0) << 32;
        return true;
    case SpvOpConstantComposite:
        for (unsigned i = 0; i < type->count; i++)
            id->at[i] = p->ids[w[3 + i]].at[0];
        return true;
    case SpvOpUndef:
        for (unsigned i = 0; i < type->count; i++)
            id->at[i] = p->run->unwritten & spirv_mask(type->bits);
        return true;
    case SpvOpSpecConstantOp: /* the same operation as an instruction */
        if (spirv_length(w) > 16)
            return spirv_wrong(p, "a long specialization constant");
        folded[0] = w[3] | (spirv_length(w) - 1) << SpvWordCountShift;
        folded[1] = w[1];
        folded[2] = w[2];
        memcpy(folded + 3, w + 4, (spirv_length(w) - 4) * sizeof *w);
        return spirv_evaluate(p, folded, 0);
    default:
        return true; /* null and false are zeros */
    }
}

/* The value of a function variable is its first slot, that of any other variable the byte at which it starts: the position in its
 * storage class. */
static bool define_variable(struct spirv_program *p, const uint32_t *w, uint32_t *local_slots)
{
    const struct spirv_id *holds = &p->ids[p->ids[w[1]].element];
    uint64_t *at = p->ids[w[2]].at;

    *at = 0;
    if (w[3] == SpvStorageClassFunction) {
        *at = *local_slots;
        *local_slots += holds->count;
    } else if (w[3] == SpvStorageClassInput) {
        *at = (uint64_t)p->ids[w[2]].builtin << 8;
    } else if (w[3] == SpvStorageClassWorkgroup) { /* one array, or views of the same bytes */
        const uint32_t array = spirv_op(holds->def) == SpvOpTypeStruct ? holds->def[2] : p->ids[w[1]].element;

        if (spirv_bytes(p, array) > p->shared_bytes)
            p->shared_bytes = spirv_bytes(p, array);
    }
    return true;
}

static bool define(struct spirv_program *p, const uint32_t *w, uint64_t **next, uint32_t *local_slots)
{
    const uint32_t op = spirv_op(w), threads = p->run->threads;
    const bool is_one = is_constant(op) || op == SpvOpVariable;
    struct spirv_id *id = &p->ids[w[2]];
    const uint32_t count = p->ids[w[1]].count;

    id->type = w[1];
    id->at = *next;
    id->part_step = is_one ? 1 : threads;
    id->thread_step = is_one ? 0 : 1;
    *next += count * (is_one ? 1 : threads);
    if (op == SpvOpVariable)
        return define_variable(p, w, local_slots);
    return !is_constant(op) || define_constant(p, w);
}

/* The header does not know them all. */
static void find_result(uint32_t op, bool *has_result, bool *has_type)
{
    *has_result = *has_type = false;
    SpvHasResultAndType((SpvOp)op, has_result, has_type);
    if (spirv_is_matrix_op(op)) {
        *has_result = true;
        *has_type = op != CT_SPV_OP_TYPE_COOPERATIVE_MATRIX_KHR;
    }
}

/* Upper bound of the number of words of values: without matrices, no composite has more components than a struct has members. */
static size_t count_values(const struct spirv_program *p)
{
    const unsigned most = p->run->matrices ? COMPONENTS_MAX : 4;
    size_t n = 0;

    for (const uint32_t *w = p->words + 5; w < p->end; w += spirv_length(w)) {
        bool has_result, has_type;

        find_result(spirv_op(w), &has_result, &has_type);
        if (has_result && has_type)
            n += is_constant(spirv_op(w)) ? most : spirv_op(w) == SpvOpVariable ? 1 : most * (size_t)p->run->threads;
    }
    return n;
}

static bool scan(struct spirv_program *p, uint32_t *local_slots)
{
    uint64_t *next = p->values;

    for (const uint32_t *w = p->words + 5; w < p->end; w += spirv_length(w)) {
        bool has_result, has_type;

        if (spirv_op(w) == SpvOpDecorate || spirv_op(w) == SpvOpMemberDecorate)
            decorate(p, w);
        find_result(spirv_op(w), &has_result, &has_type);
        if (has_result)
            p->ids[w[has_type ? 2 : 1]].def = w;
        if (has_result && !has_type && spirv_op(w) != SpvOpLabel && !declare_type(p, w))
            return false;
        if (has_result && has_type && !define(p, w, &next, local_slots))
            return false;
        if (spirv_op(w) == SpvOpLabel && !p->entry)
            p->entry = w;
    }
    return p->entry || spirv_wrong(p, "a module without code");
}

bool spirv_program_init(struct spirv_program *p, const uint32_t *words, size_t n_words, struct spirv_run *run)
{
    uint32_t local_slots = 0;

    *p = (struct spirv_program){.words = words, .end = words + n_words, .run = run};
    p->ids = calloc(words[3], sizeof *p->ids);
    p->values = calloc(count_values(p), sizeof *p->values);
    if (!p->ids || !p->values || !scan(p, &local_slots))
        return spirv_wrong(p, "no memory");
    p->locals = malloc((local_slots * run->threads + 1) * sizeof *p->locals);
    p->shared = malloc(p->shared_bytes + 8);
    if (!p->locals || !p->shared)
        return spirv_wrong(p, "no memory");
    for (size_t i = 0; i < (size_t)local_slots * run->threads; i++)
        p->locals[i] = run->unwritten;
    memset(p->shared, (int)(run->unwritten & 0xff), p->shared_bytes);
    return true;
}

void spirv_program_finish(struct spirv_program *p)
{
    free(p->ids);
    free(p->values);
    free(p->locals);
    free(p->shared);
}
