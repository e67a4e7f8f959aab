/* SPDX-License-Identifier: Apache-2.0 */
/* The SPIR-V module builder (spirv_builder.h). Source: SPIR-V specification, "Physical Layout of a SPIR-V Module and Instruction" and
 * "Logical Layout of a Module". */
#include "spirv_builder.h"

#include <assert.h>
#include <string.h>

#define FIRST_BUCKETS 256 /* a power of two */

void ct_spv_module_init(struct ct_spv_module *m, struct ct_arena *arena)
{
    *m = (struct ct_spv_module){.arena = arena, .bound = 1, .n_buckets = FIRST_BUCKETS};
    m->buckets = CT_ARENA_ARRAY(arena, uint32_t, m->n_buckets);
    m->extended = ct_spv_id(m);
}

uint32_t ct_spv_id(struct ct_spv_module *m)
{
    return m->bound++;
}

void ct_spv_capability(struct ct_spv_module *m, SpvCapability capability)
{
    for (uint32_t i = 0; i < m->n_capabilities; i++)
        if (m->capabilities[i] == (uint32_t)capability)
            return;
    assert(m->n_capabilities < CT_SPV_MAX_CAPABILITIES);
    m->capabilities[m->n_capabilities++] = capability;
}

void ct_spv_extension(struct ct_spv_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_extensions; i++)
        if (!strcmp(m->extensions[i], name))
            return;
    assert(m->n_extensions < CT_SPV_MAX_EXTENSIONS);
    m->extensions[m->n_extensions++] = name;
}

static void push(struct ct_spv_module *m, ct_spv_words *words, uint32_t word)
{
    *CT_PUSH(m->arena, words) = word;
}

static void push_all(struct ct_spv_module *m, ct_spv_words *words, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        push(m, words, from[i]);
}

static uint32_t first_word(SpvOp op, uint32_t n_words)
{
    assert(n_words <= UINT16_MAX);
    return n_words << SpvWordCountShift | (uint32_t)op;
}

void ct_spv_emit(struct ct_spv_module *m, enum ct_spv_section section, SpvOp op, const uint32_t *words, uint32_t n)
{
    push(m, &m->sections[section], first_word(op, n + 1));
    push_all(m, &m->sections[section], words, n);
}

/* Writes an instruction with the result type and result id at their places. */
static void push_with_result(struct ct_spv_module *m, ct_spv_words *to, SpvOp op, uint32_t type, uint32_t id, const uint32_t *words,
                             uint32_t n)
{
    push(m, to, first_word(op, n + (type ? 3 : 2)));
    if (type)
        push(m, to, type);
    push(m, to, id);
    push_all(m, to, words, n);
}

uint32_t ct_spv_result(struct ct_spv_module *m, enum ct_spv_section section, SpvOp op, uint32_t type, const uint32_t *words, uint32_t n)
{
    const uint32_t id = ct_spv_id(m);

    push_with_result(m, &m->sections[section], op, type, id, words, n);
    return id;
}

/* FNV-1a over words. */
static uint32_t hash_words(const uint32_t *words, uint32_t n)
{
    uint32_t hash = 2166136261u;

    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ words[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static uint32_t *find_bucket(const struct ct_spv_module *m, const uint32_t *words, uint32_t n)
{
    for (uint32_t at = hash_words(words, n);; at++) {
        uint32_t *bucket = &m->buckets[at & (m->n_buckets - 1)];
        const struct ct_spv_interned *entry = *bucket ? &m->table.v[*bucket - 1] : NULL;

        if (!entry || (entry->count == n && !memcmp(&m->interned.v[entry->first], words, n * sizeof *words)))
            return bucket;
    }
}

static void grow_buckets(struct ct_spv_module *m)
{
    m->n_buckets *= 2;
    m->buckets = CT_ARENA_ARRAY(m->arena, uint32_t, m->n_buckets);
    for (uint32_t i = 0; i < m->table.n; i++)
        *find_bucket(m, &m->interned.v[m->table.v[i].first], m->table.v[i].count) = i + 1;
}

uint32_t ct_spv_intern(struct ct_spv_module *m, SpvOp op, uint32_t type, const uint32_t *words, uint32_t n)
{
    const uint32_t first = m->interned.n;
    uint32_t *bucket;

    push(m, &m->interned, op);
    push(m, &m->interned, type);
    push_all(m, &m->interned, words, n);
    bucket = find_bucket(m, &m->interned.v[first], n + 2);
    if (*bucket) {
        m->interned.n = first;
        return m->table.v[*bucket - 1].id;
    }
    struct ct_spv_interned *entry = CT_PUSH(m->arena, &m->table);
    *entry = (struct ct_spv_interned){first, n + 2, ct_spv_result(m, CT_SPV_GLOBALS, op, type, words, n)};
    *bucket = m->table.n;
    if (m->table.n * 2 > m->n_buckets)
        grow_buckets(m);
    return m->table.v[m->table.n - 1].id;
}

/* Text of any length as words, the first character in the lowest byte, ended by at least one zero byte. */
void ct_spv_push_string(struct ct_spv_module *m, ct_spv_words *words, const char *text)
{
    const size_t length = strlen(text);

    for (size_t i = 0; i <= length; i += 4) {
        uint32_t word = 0;

        for (size_t k = 0; k < 4 && i + k < length; k++)
            word |= (uint32_t)(unsigned char)text[i + k] << (8 * k);
        push(m, words, word);
    }
}

/* ---- types and constants ---- */

uint32_t ct_spv_type_void(struct ct_spv_module *m)
{
    return ct_spv_intern(m, SpvOpTypeVoid, 0, NULL, 0);
}

uint32_t ct_spv_type_bool(struct ct_spv_module *m)
{
    return ct_spv_intern(m, SpvOpTypeBool, 0, NULL, 0);
}

uint32_t ct_spv_type_int(struct ct_spv_module *m, unsigned bits)
{
    if (bits != 32)
        ct_spv_capability(m, bits == 8 ? SpvCapabilityInt8 : bits == 16 ? SpvCapabilityInt16 : SpvCapabilityInt64);
    return CT_SPV_INTERN(m, SpvOpTypeInt, 0, bits, 0);
}

uint32_t ct_spv_type_float(struct ct_spv_module *m, unsigned bits)
{
    if (bits != 32)
        ct_spv_capability(m, bits == 16 ? SpvCapabilityFloat16 : SpvCapabilityFloat64);
    return CT_SPV_INTERN(m, SpvOpTypeFloat, 0, bits);
}

uint32_t ct_spv_type_vector(struct ct_spv_module *m, uint32_t component, unsigned count)
{
    return CT_SPV_INTERN(m, SpvOpTypeVector, 0, component, count);
}

uint32_t ct_spv_type_pointer(struct ct_spv_module *m, SpvStorageClass storage, uint32_t pointee)
{
    return CT_SPV_INTERN(m, SpvOpTypePointer, 0, storage, pointee);
}

static uint32_t const_of(struct ct_spv_module *m, uint32_t type, unsigned bits, uint64_t value)
{
    if (bits < 32)
        value &= (UINT64_C(1) << bits) - 1;
    return ct_spv_intern(m, SpvOpConstant, type, (const uint32_t[]){(uint32_t)value, (uint32_t)(value >> 32)}, bits == 64 ? 2 : 1);
}

uint32_t ct_spv_const_int(struct ct_spv_module *m, unsigned bits, uint64_t value)
{
    return const_of(m, ct_spv_type_int(m, bits), bits, value);
}

uint32_t ct_spv_const_float(struct ct_spv_module *m, unsigned bits, uint64_t value_bits)
{
    return const_of(m, ct_spv_type_float(m, bits), bits, value_bits);
}

uint32_t ct_spv_const_u32(struct ct_spv_module *m, uint32_t value)
{
    return ct_spv_const_int(m, 32, value);
}

uint32_t ct_spv_const_bool(struct ct_spv_module *m, bool value)
{
    return ct_spv_intern(m, value ? SpvOpConstantTrue : SpvOpConstantFalse, ct_spv_type_bool(m), NULL, 0);
}

uint32_t ct_spv_null(struct ct_spv_module *m, uint32_t type)
{
    return ct_spv_intern(m, SpvOpConstantNull, type, NULL, 0);
}

void ct_spv_decorate(struct ct_spv_module *m, uint32_t id, SpvDecoration decoration, const uint32_t *words, uint32_t n)
{
    ct_spv_words *to = &m->sections[CT_SPV_DECORATIONS];

    push(m, to, first_word(SpvOpDecorate, n + 3));
    push(m, to, id);
    push(m, to, decoration);
    push_all(m, to, words, n);
}

/* ---- imported functions ---- */

static void decorate_import(struct ct_spv_module *m, uint32_t id, const char *name)
{
    ct_spv_words words = {0};

    ct_spv_push_string(m, &words, name);
    push(m, &words, SpvLinkageTypeImport);
    ct_spv_capability(m, SpvCapabilityLinkage);
    ct_spv_decorate(m, id, SpvDecorationLinkageAttributes, words.v, words.n);
}

uint32_t ct_spv_import(struct ct_spv_module *m, const char *name, uint32_t type, uint32_t n_parameters)
{
    uint32_t types[1 + CT_SPV_MAX_PARAMETERS], id;

    for (uint32_t i = 0; i < m->n_imports; i++)
        if (!strcmp(m->imports[i].name, name))
            return m->imports[i].id;
    assert(m->n_imports < CT_SPV_MAX_IMPORTS && n_parameters <= CT_SPV_MAX_PARAMETERS);
    for (uint32_t i = 0; i <= n_parameters; i++)
        types[i] = type;
    id = CT_SPV_RESULT(m, CT_SPV_IMPORTS, SpvOpFunction, type, n_parameters ? SpvFunctionControlPureMask : SpvFunctionControlMaskNone,
                       ct_spv_intern(m, SpvOpTypeFunction, 0, types, n_parameters + 1));
    for (uint32_t i = 0; i < n_parameters; i++)
        ct_spv_result(m, CT_SPV_IMPORTS, SpvOpFunctionParameter, type, NULL, 0);
    ct_spv_emit(m, CT_SPV_IMPORTS, SpvOpFunctionEnd, NULL, 0);
    decorate_import(m, id, name);
    m->imports[m->n_imports].name = name;
    m->imports[m->n_imports++].id = id;
    return id;
}

/* ---- several functions ---- */

void ct_spv_function_begin(struct ct_spv_module *m, struct ct_spv_outer *outer)
{
    outer->variables = m->sections[CT_SPV_VARIABLES];
    outer->prologue = m->sections[CT_SPV_PROLOGUE];
    outer->code = m->sections[CT_SPV_CODE];
    m->sections[CT_SPV_VARIABLES] = m->sections[CT_SPV_PROLOGUE] = m->sections[CT_SPV_CODE] = (ct_spv_words){0};
}

void ct_spv_function_end(struct ct_spv_module *m, const struct ct_spv_outer *outer)
{
    for (int s = CT_SPV_VARIABLES; s <= CT_SPV_CODE; s++)
        push_all(m, &m->sections[CT_SPV_FUNCTIONS], m->sections[s].v, m->sections[s].n);
    ct_spv_emit(m, CT_SPV_FUNCTIONS, SpvOpFunctionEnd, NULL, 0);
    m->sections[CT_SPV_VARIABLES] = outer->variables;
    m->sections[CT_SPV_PROLOGUE] = outer->prologue;
    m->sections[CT_SPV_CODE] = outer->code;
}

/* ---- the complete module ---- */

static void push_text_instruction(struct ct_spv_module *m, ct_spv_words *to, SpvOp op, uint32_t id, const char *text)
{
    const uint32_t at = to->n;

    push(m, to, 0);
    if (id)
        push(m, to, id);
    ct_spv_push_string(m, to, text);
    to->v[at] = first_word(op, to->n - at);
}

static void push_preamble(struct ct_spv_module *m, ct_spv_words *to, const struct ct_spv_environment *environment)
{
    push_all(m, to, CT_SPV_WORDS(SpvMagicNumber, environment->version, 0, m->bound, 0));
    for (uint32_t i = 0; i < m->n_capabilities; i++)
        push_all(m, to, CT_SPV_WORDS(first_word(SpvOpCapability, 2), m->capabilities[i]));
    for (uint32_t i = 0; i < m->n_extensions; i++)
        push_text_instruction(m, to, SpvOpExtension, 0, m->extensions[i]);
    push_text_instruction(m, to, SpvOpExtInstImport, m->extended, environment->extended_set);
    push_all(m, to, CT_SPV_WORDS(first_word(SpvOpMemoryModel, 3), environment->addressing, environment->memory));
}

uint32_t *ct_spv_module_finish(struct ct_spv_module *m, const struct ct_spv_environment *environment, struct ct_arena *arena,
                               size_t *n_words)
{
    ct_spv_words all = {0};
    uint32_t *copy;

    push_preamble(m, &all, environment);
    for (int s = 0; s < CT_SPV_SECTION_COUNT; s++)
        push_all(m, &all, m->sections[s].v, m->sections[s].n);
    copy = CT_ARENA_ARRAY(arena, uint32_t, all.n);
    memcpy(copy, all.v, all.n * sizeof *copy);
    *n_words = all.n;
    return copy;
}
