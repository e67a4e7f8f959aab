/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of texture and surface instructions say. */
#include "texture_access.h"

#include <string.h>

static const struct ct_texture_geometry geometries[] = {
    {"1d", 1, 1, false, 1, 1, false},   {"2d", 2, 2, false, 2, 2, false},  {"3d", 3, 4, false, 3, 3, false},
    {"a1d", 1, 2, true, 1, 1, false},   {"a2d", 2, 4, true, 2, 2, false},  {"cube", 3, 4, false, 3, 0, false},
    {"acube", 3, 4, true, 3, 0, false}, {"2dms", 2, 4, false, 2, 2, true}, {"a2dms", 2, 4, true, 2, 2, true},
};

/* In the order of enum query in fetch.cu. */
static const char *const queries[] = {
    "width",         "height",      "depth",       "channel_data_type", "channel_order", "normalized_coords", "force_unnormalized_coords",
    "filter_mode",   "addr_mode_0", "addr_mode_1", "addr_mode_2",       "array_size",    "num_mipmap_levels", "num_samples",
    "memory_layout", "texref",      "samplerref",  "surfref",
};
#define FIRST_TYPE 15 /* of istypep; those before it are queries of txq and suq */

static const struct {
    const char *word;
    enum ptx_operation operation;
} operations[] = {{"add", PTX_ADD}, {"min", PTX_MIN}, {"max", PTX_MAX}, {"and", PTX_AND}, {"or", PTX_OR}};

struct word {
    const char *text;
    size_t length;
};

static bool is(struct word word, const char *text)
{
    return strlen(text) == word.length && memcmp(word.text, text, word.length) == 0;
}

/* Takes the next word after a dot. An empty one ends the text. */
static struct word next_word(const char **text)
{
    const char *begin = **text == '.' ? *text + 1 : *text;
    struct word word = {begin, strcspn(begin, ".")};

    *text = begin + word.length;
    return word;
}

static bool read_geometry(struct word word, struct ct_texture_access *out)
{
    for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++)
        if (is(word, geometries[i].word))
            out->geometry = &geometries[i];
    return out->geometry;
}

static bool read_query(struct word word, struct ct_texture_access *out)
{
    for (uint8_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        if (!is(word, queries[i]) || (i >= FIRST_TYPE) != out->is_type)
            continue;
        out->query = i;
        return true;
    }
    if (out->is_type)
        return false;
    if (is(word, "level"))
        out->has_level = true;
    return out->has_level || is(word, "b32");
}

static bool read_mode(struct word word, struct ct_texture_access *out)
{
    if (is(word, "level"))
        out->kind = CT_TEXTURE_LEVEL;
    else if (is(word, "grad"))
        out->kind = CT_TEXTURE_GRAD;
    else
        return is(word, "base");
    return true;
}

static bool read_channel(struct word word, struct ct_texture_access *out)
{
    const char *at = word.length == 1 ? memchr("rgba", *word.text, 4) : NULL;

    if (at)
        out->channel = (uint8_t)(at - "rgba");
    return at;
}

static bool read_operation(struct word word, struct ct_texture_access *out)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (!is(word, operations[i].word))
            continue;
        out->operation = operations[i].operation;
        return true;
    }
    return false;
}

/* .b or .p, cache operators (no effect), and what happens outside of the surface. */
static bool read_surface(struct word word, struct ct_texture_access *out)
{
    static const char *const boundaries[] = {"trap", "clamp", "zero"}, *const ignored[] = {"b", "ca", "cg", "cs", "cv", "wb", "wt"};

    for (uint8_t i = 0; i < sizeof boundaries / sizeof *boundaries; i++)
        if (is(word, boundaries[i])) {
            out->boundary = i;
            return true;
        }
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (is(word, ignored[i]))
            return true;
    if (out->kind == CT_SURFACE_STORE && is(word, "p")) {
        out->kind = CT_SURFACE_FORMAT;
        return true;
    }
    return out->kind == CT_SURFACE_REDUCE && read_operation(word, out);
}

static bool is_type(struct word word)
{
    return word.length >= 2 && strchr("busf", *word.text) && word.text[1] >= '0' && word.text[1] <= '9';
}

static bool read_word(struct word word, struct ct_texture_access *out)
{
    if (is(word, "v2") || is(word, "v4")) {
        out->vector = (uint8_t)(word.text[1] - '0');
        return true;
    }
    if (is_type(word)) /* the parser has them */
        return true;
    if (!out->geometry && read_geometry(word, out))
        return true;
    return out->kind >= CT_SURFACE_LOAD     ? read_surface(word, out)
           : out->kind == CT_TEXTURE_GATHER ? read_channel(word, out)
                                            : read_mode(word, out);
}

static bool read_kind(enum ptx_opcode opcode, enum ct_texture_kind *out)
{
    static const struct {
        enum ptx_opcode opcode;
        enum ct_texture_kind kind;
    } rows[] = {
        {PTX_OP_TEX, CT_TEXTURE_BASE},     {PTX_OP_TLD4, CT_TEXTURE_GATHER},   {PTX_OP_TXQ, CT_TEXTURE_QUERY},
        {PTX_OP_SUQ, CT_TEXTURE_QUERY},    {PTX_OP_SULD, CT_SURFACE_LOAD},     {PTX_OP_SUST, CT_SURFACE_STORE},
        {PTX_OP_SURED, CT_SURFACE_REDUCE}, {PTX_OP_ISTYPEP, CT_TEXTURE_QUERY},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].opcode == opcode) {
            *out = rows[i].kind;
            return true;
        }
    return false;
}

bool ct_is_texture_opcode(enum ptx_opcode opcode)
{
    enum ct_texture_kind kind;

    return read_kind(opcode, &kind);
}

static bool has_function(const struct ct_texture_access *access)
{
    const struct ct_texture_geometry *geometry = access->geometry;

    if (access->kind == CT_TEXTURE_QUERY)
        return true;
    if (!geometry)
        return false;
    if (geometry->multisample)
        return access->kind == CT_TEXTURE_TEXEL && !access->has_level;
    if (access->kind >= CT_SURFACE_LOAD)
        return geometry->offsets && !(access->kind == CT_SURFACE_REDUCE && geometry->layered);
    switch (access->kind) {
    case CT_TEXTURE_TEXEL:
        return strstr(geometry->word, "cube") == NULL;
    case CT_TEXTURE_GATHER:
        return geometry->coordinates >= 2 && strcmp(geometry->word, "3d");
    default:
        return true;
    }
}

/* Four results of 32 bits, or of tex four halves, also in two registers. */
static bool has_texture_results(const struct ct_texture_access *access)
{
    const bool of_tex = access->kind != CT_TEXTURE_GATHER;

    if (access->type == PTX_F16X2)
        return of_tex && access->vector == 2;
    return access->vector == 4 && (ptx_type_bits(access->type) == 32 || (of_tex && access->type == PTX_F16));
}

/* What integer coordinates with derivatives mean is not documented. */
static bool read_coordinate_type(enum ptx_type type, struct ct_texture_access *out)
{
    if (type != PTX_S32)
        return type == PTX_F32;
    if (out->kind != CT_TEXTURE_BASE && out->kind != CT_TEXTURE_LEVEL)
        return false;
    out->has_level = out->kind == CT_TEXTURE_LEVEL;
    out->kind = CT_TEXTURE_TEXEL;
    return true;
}

/* Surfaces hold elements of up to 64 bits, 128 bits in all. */
static bool has_valid_types(const struct ptx_instruction *insn, struct ct_texture_access *out)
{
    out->type = insn->n_types ? insn->types[0] : PTX_NONE;
    if (out->kind == CT_TEXTURE_QUERY)
        return true;
    if (out->kind < CT_SURFACE_LOAD)
        return insn->n_types == 2 && has_texture_results(out) && read_coordinate_type(insn->types[1], out);
    out->vector = out->vector ? out->vector : 1;
    return insn->n_types == 1 && out->vector * ptx_type_bits(out->type) <= 128;
}

bool ct_texture_access_read(const struct ptx_instruction *insn, struct ct_texture_access *out)
{
    const char *text = insn->text;

    *out = (struct ct_texture_access){0};
    if (!read_kind(insn->opcode, &out->kind))
        return false;
    out->is_type = insn->opcode == PTX_OP_ISTYPEP;
    for (struct word word = (next_word(&text), next_word(&text)); word.length; word = next_word(&text))
        if (!(out->kind == CT_TEXTURE_QUERY ? read_query(word, out) : read_word(word, out)))
            return false;
    return has_valid_types(insn, out) && has_function(out);
}

bool ct_texture_has_halves(const struct ct_texture_access *access)
{
    return access->kind < CT_TEXTURE_QUERY && (access->type == PTX_F16 || access->type == PTX_F16X2);
}

const char *ct_texture_image_function_or_null(const struct ct_texture_access *access)
{
    if (access->kind > CT_TEXTURE_GRAD)
        return NULL;
    if (strstr(access->geometry->word, "cube"))
        return "tex_face";
    return access->geometry->layered || access->geometry->coordinates > 2 ? "tex_scale" : NULL;
}
