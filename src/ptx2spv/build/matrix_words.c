/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of matrix instructions say, which the parser leaves to this file. */
#include "matrix.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    uint8_t bits;
    enum ptx_type reg;
} elements[] = {
    [CT_ELEMENT_NONE] = {"", 0, PTX_NONE},
#define MATRIX_ELEMENT(id, word, bits, register) [CT_ELEMENT_##id] = {word, bits, PTX_##register},
#include "matrix.def"
};

unsigned ct_element_bits(enum ct_element element)
{
    return elements[element].bits;
}

enum ptx_type ct_element_register(enum ct_element element)
{
    return elements[element].reg;
}

static bool is(const char *word, size_t length, const char *text)
{
    return strlen(text) == length && memcmp(word, text, length) == 0;
}

/* .m16n8k16, .m8n8 */
static bool read_shape(const char *word, struct ct_matrix_words *out)
{
    char *end;

    out->m = (uint16_t)strtoul(word + 1, &end, 10);
    if (end == word + 1 || *end != 'n')
        return false;
    word = end;
    out->n = (uint16_t)strtoul(word + 1, &end, 10);
    if (end == word + 1)
        return false;
    if (*end == 'k') {
        word = end;
        out->k = (uint16_t)strtoul(word + 1, &end, 10);
    }
    return end != word + 1 && (*end == '.' || !*end);
}

static bool read_element(const char *word, size_t length, struct ct_matrix_words *out)
{
    for (unsigned i = 1; i < CT_ELEMENT_COUNT; i++) {
        if (!is(word, length, elements[i].word))
            continue;
        if (out->n_types == CT_MATRIX_TYPES_MAX)
            return false;
        out->types[out->n_types++] = (enum ct_element)i;
        return true;
    }
    return false;
}

static bool read_layout(const char *word, size_t length, struct ct_matrix_words *out)
{
    if ((!is(word, length, "row") && !is(word, length, "col")) || out->n_layouts == CT_MATRIX_LAYOUTS_MAX)
        return false;
    out->layouts[out->n_layouts++] = *word;
    return true;
}

/* .load.a, .store.d, .mma */
static bool read_action(const char *word, size_t length, struct ct_matrix_words *out)
{
    static const char *const actions[] = {[CT_MATRIX_LOAD] = "load", [CT_MATRIX_STORE] = "store", [CT_MATRIX_MMA] = "mma"};

    for (unsigned i = CT_MATRIX_LOAD; i <= CT_MATRIX_MMA; i++)
        if (is(word, length, actions[i])) {
            out->action = (enum ct_matrix_action)i;
            return true;
        }
    if (length != 1 || !strchr("abcd", *word))
        return false;
    out->fragment = *word;
    return true;
}

/* Words that the parser knows, too, and has stored in insn->mods. */
static bool is_of_parser(const char *word, size_t length)
{
    static const char *const words[] = {"sync", "aligned", "shared", "shared::cta", "global", "satfinite",
                                        "xor",  "and",     "rn",     "rz",          "rm",     "rp"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is(word, length, words[i]))
            return true;
    return false;
}

static bool read_word(const char *word, size_t length, struct ct_matrix_words *out)
{
    if (length == 2 && word[0] == 'x' && strchr("124", word[1]))
        out->count = (uint8_t)(word[1] - '0');
    else if (is(word, length, "trans"))
        out->is_transposed = true;
    else if (is(word, length, "sp") || is(word, length, "sp::ordered_metadata"))
        out->is_sparse = true;
    else if (is(word, length, "popc"))
        out->popc = true;
    else if (word[0] == 'm' && length > 3 && word[1] >= '0' && word[1] <= '9')
        return read_shape(word, out);
    else
        return read_element(word, length, out) || read_layout(word, length, out) || read_action(word, length, out) ||
               is_of_parser(word, length);
    return true;
}

bool ct_matrix_words_read(const struct ptx_instruction *insn, struct ct_matrix_words *out)
{
    const char *word = strchr(insn->text, '.');

    *out = (struct ct_matrix_words){0};
    while (word) {
        const size_t length = strcspn(++word, ".");

        if (!read_word(word, length, out))
            return false;
        word = word[length] ? word + length : NULL;
    }
    return insn->mods.sync && insn->mods.aligned;
}
