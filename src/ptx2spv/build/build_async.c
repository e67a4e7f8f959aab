/* SPDX-License-Identifier: Apache-2.0 */
/* build: the forms of async_forms.def: finds the row of an instruction, checks its operands, and calls the row's handler. */
#include "build_async.h"

#include <string.h>

#define MAX_ITEMS 8 /* items of a row's words */

struct form {
    ct_build_fn build;
    const char *prefix, *words, *operands;
};

static const struct form forms[] = {
#define ASYNC_FORM(handler, prefix, words, operands) {ct_build_##handler, prefix, words, operands},
#include "async_forms.def"
};

/* ---- words ---- */

/* Whether `text` begins with `length` characters of `words`, and a word ends there. */
static bool begins_with(const char *text, const char *words, size_t length)
{
    return strncmp(text, words, length) == 0 && (text[length] == '.' || !text[length]);
}

/* The number of characters of `text` that one alternative of an item ("a/b.c") matches; 0 if none does. */
static size_t match_item(const char *text, const char *item)
{
    for (item += *item == '?';; item++) {
        const size_t length = strcspn(item, "/ ");

        if (begins_with(text, item, length))
            return length;
        item += length;
        if (*item != '/')
            return 0;
    }
}

static unsigned split_items(const char *words, const char **items)
{
    unsigned n = 0;

    for (words += strspn(words, " "); *words && n < MAX_ITEMS; words += strspn(words, " ")) {
        items[n++] = words;
        words += strcspn(words, " ");
    }
    return n;
}

/* Whether the words of `text`, which begins with a dot unless it is empty, are those of a row. */
static bool match_words(const char *text, const char *words)
{
    const char *items[MAX_ITEMS];
    const unsigned n = split_items(words, items);
    bool used[MAX_ITEMS] = {false};

    while (*text) {
        size_t length = 0;

        for (unsigned i = 0; i < n && !length; i++) {
            length = used[i] ? 0 : match_item(text + 1, items[i]);
            used[i] |= length != 0;
        }
        if (!length)
            return false;
        text += length + 1;
    }
    for (unsigned i = 0; i < n; i++)
        if (!used[i] && *items[i] != '?')
            return false;
    return true;
}

static bool has_word(const char *text, const char *word)
{
    for (const char *at = strchr(text, '.'); at; at = strchr(at + 1, '.'))
        if (begins_with(at + 1, word, strlen(word)))
            return true;
    return false;
}

bool ct_async_has(const struct ct_build *b, const char *word)
{
    return has_word(b->insn->text, word);
}

static const struct form *form_or_null(const struct ptx_instruction *insn)
{
    if (!insn->mods.unsupported && insn->opcode != PTX_OP_CP && insn->opcode != PTX_OP_MBARRIER)
        return NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const size_t length = strlen(forms[i].prefix);

        if (begins_with(insn->text, forms[i].prefix, length) && match_words(insn->text + length, forms[i].words))
            return &forms[i];
    }
    return NULL;
}

bool ct_is_async_form(const struct ptx_instruction *insn)
{
    return form_or_null(insn) != NULL;
}

/* ---- operands ---- */

/* Whether the operand is a register of that many bits, or, as a source, an integer. */
static bool is_value(const struct ptx_operand *operand, unsigned bits, bool is_source)
{
    if (operand->kind == PTX_OPND_INT)
        return is_source;
    return operand->kind == PTX_OPND_REG && !operand->negated && !operand->reg->vector && !ptx_type_is_float(operand->reg->type) &&
           operand->reg->type != PTX_PRED && ptx_type_bits(operand->reg->type) == bits;
}

static bool is_address(const struct ptx_operand *operand)
{
    return operand->kind == PTX_OPND_ADDRESS && operand->bracketed && (operand->variable || operand->reg || operand->bits);
}

static bool fits(char letter, const struct ptx_operand *operand)
{
    switch (letter) {
    case 'a':
        return is_address(operand);
    case 'i':
        return operand->kind == PTX_OPND_INT;
    case 'd':
        return operand->kind == PTX_OPND_SINK || is_value(operand, 64, false);
    case '_':
        return operand->kind == PTX_OPND_SINK;
    case 'n':
        return is_value(operand, 32, false);
    case 'p':
        return operand->kind == PTX_OPND_REG && operand->reg->type == PTX_PRED && !operand->negated;
    case 'u':
        return is_value(operand, 32, true);
    case 'l':
    case 'P':
        return is_value(operand, 64, true);
    case 'M':
    case 'B':
        return is_value(operand, 16, true);
    case 'T':
        return operand->kind == PTX_OPND_LIST && operand->n_items == 2 && operand->items[1].kind == PTX_OPND_VECTOR;
    case 'o':
        return operand->kind == PTX_OPND_VECTOR;
    default: /* v */
        return operand->kind == PTX_OPND_REG || operand->kind == PTX_OPND_VECTOR || operand->kind == PTX_OPND_INT ||
               operand->kind == PTX_OPND_FLOAT;
    }
}

/* Whether the instruction has the operand of a letter that depends on one of its words. */
static bool is_wanted(const struct ptx_instruction *insn, char letter)
{
    switch (letter) {
    case 'M':
        return has_word(insn->text, "multicast::cluster");
    case 'B':
        return has_word(insn->text, "cp_mask");
    case 'P':
        return has_word(insn->text, "L2::cache_hint");
    default:
        return true;
    }
}

/* The number of operands without the function that copies of tensors have as their last one (texture_functions.c). */
static uint32_t operands_of(const struct ptx_instruction *insn)
{
    const uint32_t n = insn->n_operands;

    return n && insn->operands[n - 1].kind == PTX_OPND_FUNC ? n - 1 : n;
}

static bool check_operands(const struct ptx_instruction *insn, const char *letters)
{
    const uint32_t n_given = operands_of(insn);
    uint32_t n = 0;
    bool is_optional = false;

    for (; *letters; letters++) {
        if (*letters == '?') {
            is_optional = true;
            continue;
        }
        if (!is_wanted(insn, *letters))
            continue;
        if (n == n_given)
            return is_optional;
        if (!fits(*letters, &insn->operands[n++]))
            return false;
    }
    return n == n_given;
}

/* A memory ordering and its scope require each other. Instructions of clusters, which order by default, are the exception. */
static bool has_order(const struct ptx_instruction *insn)
{
    const bool is_ordered = has_word(insn->text, "release") || has_word(insn->text, "acquire") || has_word(insn->text, "relaxed");
    const bool has_scope = has_word(insn->text, "cta") || has_word(insn->text, "cluster");

    return insn->opcode != PTX_OP_MBARRIER || is_ordered == has_scope;
}

void ct_build_async(struct ct_build *b)
{
    const struct form *form = form_or_null(b->insn);

    if (!has_order(b->insn))
        ct_build_invalid(b, "a memory ordering and a scope require each other");
    else if (!check_operands(b->insn, form->operands))
        ct_build_invalid(b, "wrong operands");
    else
        form->build(b);
}

/* ---- what the handlers share ---- */

bool ct_async_address(struct ct_build *b, unsigned index, enum ptx_space space, struct ct_address *out)
{
    const struct ptx_instruction *written = b->insn;
    const bool is_generic = space == PTX_SPACE_SHARED && !strstr(written->text, ".shared");
    struct ptx_instruction of_space = *written;
    bool good;

    of_space.mods.space = is_generic ? PTX_SPACE_NONE : space;
    b->insn = &of_space;
    good = ct_build_address(b, index, out);
    b->insn = written;
    if (good && out->space == CT_SPACE_GENERIC) {
        out->space = CT_SPACE_SHARED;
        out->base = ct_low32(&b->at, ct_xor_imm(&b->at, out->base, (uint64_t)CT_TAG_SHARED << CT_TAG_SHIFT));
    }
    if (good && out->space == CT_SPACE_SHARED && b->multicast_rank.i)
        out->base = ct_cluster_map(&b->at, ct_low32(&b->at, out->base), b->multicast_rank);
    if (!good || out->space == (space == PTX_SPACE_SHARED ? CT_SPACE_SHARED : CT_SPACE_GLOBAL))
        return good;
    ct_build_invalid(b, "an address is in another state space");
    return false;
}

/* What is complete as soon as it is issued needs no waiting, and hints have no effect. */
void ct_build_async_nothing(struct ct_build *b)
{
    (void)b;
}
