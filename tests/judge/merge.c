/* SPDX-License-Identifier: Apache-2.0 */
/* Merges several SPIR-V modules into one, with a separate name for each kernel: a compiler with a large fixed cost then incurs it once for
 * all of them. SPIRV-Tools' parser distinguishes ids from other words. */
#include "judge.h"

#ifdef HAVE_SPIRV_TOOLS
#include <spirv-tools/libspirv.h>
#include <spirv/unified1/spirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sections of a module in their order (SPIR-V, "Logical Layout of a Module"). */
enum part { CAPABILITIES, EXTENSIONS, IMPORTS, MODEL, ENTRIES, MODES, NAMES, DECORATIONS, GLOBALS, CODE, PARTS };

struct words {
    uint32_t *v;
    size_t n, capacity;
};

struct merge {
    struct words parts[PARTS];
    uint32_t bound; /* number of ids of the preceding modules */
    unsigned kernel;
    bool in_code, failed;
};

static void push(struct merge *m, enum part part, const uint32_t *words, size_t n)
{
    struct words *to = &m->parts[part];

    if (to->n + n > to->capacity) {
        const size_t capacity = 2 * (to->n + n) + 256;
        uint32_t *v = realloc(to->v, capacity * sizeof *v);

        if (!v) {
            m->failed = true;
            return;
        }
        to->v = v;
        to->capacity = capacity;
    }
    memcpy(to->v + to->n, words, n * sizeof *words);
    to->n += n;
}

static enum part part_of(const struct merge *m, uint16_t opcode)
{
    if (m->in_code)
        return CODE;
    switch (opcode) {
    case SpvOpCapability:
        return CAPABILITIES;
    case SpvOpExtension:
        return EXTENSIONS;
    case SpvOpExtInstImport:
        return IMPORTS;
    case SpvOpMemoryModel:
        return MODEL;
    case SpvOpEntryPoint:
        return ENTRIES;
    case SpvOpExecutionMode:
    case SpvOpExecutionModeId:
        return MODES;
    case SpvOpSource:
    case SpvOpString:
    case SpvOpName:
    case SpvOpMemberName:
        return NAMES;
    case SpvOpDecorate:
    case SpvOpMemberDecorate:
    case SpvOpDecorateId:
        return DECORATIONS;
    default:
        return GLOBALS;
    }
}

static bool is_id(spv_operand_type_t type)
{
    return type == SPV_OPERAND_TYPE_ID || type == SPV_OPERAND_TYPE_TYPE_ID || type == SPV_OPERAND_TYPE_RESULT_ID ||
           type == SPV_OPERAND_TYPE_MEMORY_SEMANTICS_ID || type == SPV_OPERAND_TYPE_SCOPE_ID;
}

/* Whether the section contains the instruction already, for instructions that all modules share. */
static bool is_there(const struct merge *m, enum part part, const spv_parsed_instruction_t *insn)
{
    const struct words *in = &m->parts[part];

    if (part == MODEL)
        return in->n;
    for (size_t i = 0; part <= EXTENSIONS && i < in->n; i += in->v[i] >> SpvWordCountShift)
        if (!memcmp(in->v + i, insn->words, (in->v[i] >> SpvWordCountShift) * sizeof *in->v))
            return true;
    return false;
}

static spv_result_t take(void *user, const spv_parsed_instruction_t *insn)
{
    struct merge *m = user;
    uint32_t copy[4096];
    enum part part;

    m->in_code |= insn->opcode == SpvOpFunction;
    part = part_of(m, insn->opcode);
    if (insn->num_words > sizeof copy / sizeof *copy)
        m->failed = true;
    if (m->failed || is_there(m, part, insn))
        return m->failed ? SPV_ERROR_INTERNAL : SPV_SUCCESS;
    memcpy(copy, insn->words, insn->num_words * sizeof *copy);
    for (unsigned i = 0; i < insn->num_operands; i++)
        if (is_id(insn->operands[i].type))
            copy[insn->operands[i].offset] += m->bound;
    if (part == ENTRIES) { /* "main" is replaced by a name of the same length */
        char name[5];

        snprintf(name, sizeof name, "k%03u", m->kernel % 1000);
        memcpy(copy + 3, name, 4);
    }
    push(m, part, copy, insn->num_words);
    return m->failed ? SPV_ERROR_OUT_OF_MEMORY : SPV_SUCCESS;
}

static uint32_t *join(struct merge *m, const uint32_t head[5], size_t *out_n)
{
    uint32_t *words;
    size_t n = 5;

    for (unsigned part = 0; part < PARTS; part++)
        n += m->parts[part].n;
    if (!(words = malloc(n * sizeof *words)))
        return NULL;
    memcpy(words, head, 5 * sizeof *words);
    words[3] = m->bound + 1;
    *out_n = 5;
    for (unsigned part = 0; part < PARTS; part++) {
        if (m->parts[part].n)
            memcpy(words + *out_n, m->parts[part].v, m->parts[part].n * sizeof *words);
        *out_n += m->parts[part].n;
    }
    return words;
}

uint32_t *merge_modules(const struct ptx2spv_kernel *const *kernels, unsigned n, size_t *out_n)
{
    spv_context context = spvContextCreate(SPV_ENV_UNIVERSAL_1_6);
    struct merge m = {0};
    uint32_t *words = NULL;

    for (unsigned i = 0; i < n && !m.failed; i++) {
        m.in_code = false;
        m.kernel = i;
        m.failed = spvBinaryParse(context, &m, kernels[i]->words, kernels[i]->n_words, NULL, take, NULL) != SPV_SUCCESS;
        m.bound += kernels[i]->words[3];
    }
    if (!m.failed)
        words = join(&m, kernels[0]->words, out_n);
    for (unsigned part = 0; part < PARTS; part++)
        free(m.parts[part].v);
    spvContextDestroy(context);
    return words;
}
#else
uint32_t *merge_modules(const struct ptx2spv_kernel *const *kernels, unsigned n, size_t *out_n)
{
    (void)kernels;
    (void)n;
    (void)out_n;
    return NULL;
}
#endif
