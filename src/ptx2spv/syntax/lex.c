/* SPDX-License-Identifier: Apache-2.0 */
/* Lexer (PTX ISA, "Syntax": source format, comments, identifiers, constants).
 * It reports no errors itself: invalid text becomes a PTX_TOK_BAD with a message, so that looking ahead has no side effects. */
#include "lex.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define INITIAL_SLOTS 4096u

/* ---- characters (the C library's character classes depend on the locale) ---- */

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_follow_symbol(int c)
{
    return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}

static int hex_value(int c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* ---- names ---- */

static uint32_t hash_text(const char *text, size_t length)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static void names_grow(struct ptx_names *names)
{
    const uint32_t n_slots = names->n_slots ? names->n_slots * 2 : INITIAL_SLOTS;
    struct ptx_name **slots = CT_ARENA_ARRAY(names->arena, struct ptx_name *, n_slots);

    for (uint32_t i = 0; i < names->n_slots; i++) {
        struct ptx_name *name = names->slots[i];
        uint32_t slot;

        if (!name)
            continue;
        for (slot = name->hash & (n_slots - 1); slots[slot]; slot = (slot + 1) & (n_slots - 1))
            ;
        slots[slot] = name;
    }
    names->slots = slots;
    names->n_slots = n_slots;
}

struct ptx_name *ptx_names_find(struct ptx_names *names, const char *text, size_t length)
{
    const uint32_t hash = hash_text(text, length);
    struct ptx_name *name;
    uint32_t slot;

    if (names->n_used >= names->n_slots / 2)
        names_grow(names);
    for (slot = hash & (names->n_slots - 1); (name = names->slots[slot]); slot = (slot + 1) & (names->n_slots - 1))
        if (name->hash == hash && name->length == length && memcmp(name->text, text, length) == 0)
            return name;
    name = CT_ARENA_NEW(names->arena, struct ptx_name);
    name->text = ct_arena_strndup(names->arena, text, length);
    name->length = (uint32_t)length;
    name->hash = hash;
    names->slots[slot] = name;
    names->n_used++;
    return name;
}

static struct ptx_name *find_keyword(struct ptx_names *names, const char *word)
{
    return ptx_names_find(names, word, strlen(word));
}

void ptx_names_init(struct ptx_names *names, struct ct_compilation *compilation, struct ct_arena *arena)
{
    *names = (struct ptx_names){.compilation = compilation, .arena = arena};
#define PTX_DIRECTIVE(id, word) find_keyword(names, word)->directive = PTX_DIR_##id;
#include "directives.def"
    for (unsigned type = 1; type < PTX_TYPE_COUNT; type++)
        find_keyword(names, ptx_type_name((enum ptx_type)type))->type = (uint8_t)type;
    for (unsigned opcode = 1; opcode < PTX_OPCODE_COUNT; opcode++)
        find_keyword(names, ptx_opcode_name((enum ptx_opcode)opcode))->opcode = (uint8_t)opcode;
#define PTX_SREG(id, spelling, type, vector) find_keyword(names, spelling)->sreg = PTX_SREG_##id;
#include "sregs.def"
}

/* ---- white space and comments ---- */

static void start_line(struct ptx_lexer *lexer)
{
    lexer->line++;
    lexer->line_start = lexer->p;
}

/* Skips a C comment. False if it is unterminated; the lexer is then at the end of the text. */
static bool skip_c_comment(struct ptx_lexer *lexer)
{
    for (lexer->p += 2; lexer->p < lexer->end; lexer->p++) {
        if (*lexer->p == '*' && lexer->end - lexer->p > 1 && lexer->p[1] == '/') {
            lexer->p += 2;
            return true;
        }
        if (*lexer->p == '\n') {
            lexer->line++;
            lexer->line_start = lexer->p + 1;
        }
    }
    return false;
}

static bool skip_white_space(struct ptx_lexer *lexer)
{
    while (lexer->p < lexer->end) {
        const char c = *lexer->p;

        if (c == '\n') {
            lexer->p++;
            start_line(lexer);
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            lexer->p++;
        } else if (c == '/' && lexer->end - lexer->p > 1 && lexer->p[1] == '/') {
            const char *newline = memchr(lexer->p, '\n', (size_t)(lexer->end - lexer->p));

            lexer->p = newline ? newline : lexer->end;
        } else if (c == '/' && lexer->end - lexer->p > 1 && lexer->p[1] == '*') {
            if (!skip_c_comment(lexer))
                return false;
        } else {
            return true;
        }
    }
    return true;
}

/* ---- numbers ---- */

static void finish_token(struct ptx_token *token, int kind, const char *end)
{
    token->kind = kind;
    token->length = (uint32_t)(end - token->text);
}

static void finish_bad_token(struct ptx_token *token, const char *message, const char *end)
{
    token->message = message;
    finish_token(token, PTX_TOK_BAD, end);
}

/* Lexes a 0f literal with 8 hexadecimal digits, or a 0d literal with 16. */
static const char *lex_hex_float(struct ptx_token *token, const char *p, const char *end, unsigned digits)
{
    const char *first = p;
    float single;
    double wide;

    while (p < end && hex_value(*p) < 16 && p - first <= 16)
        token->bits = token->bits << 4 | (unsigned)hex_value(*p++);
    if (p - first != digits || (p < end && is_follow_symbol(*p))) {
        while (p < end && is_follow_symbol(*p))
            p++;
        finish_bad_token(token,
                         digits == 8 ? "a 0f literal must have 8 hexadecimal digits" : "a 0d literal must have 16 hexadecimal digits", p);
        return p;
    }
    if (digits == 8) {
        token->is_single = true;
        token->single_bits = (uint32_t)token->bits;
        memcpy(&single, &token->single_bits, sizeof single);
        wide = single;
        memcpy(&token->bits, &wide, sizeof token->bits);
    }
    finish_token(token, PTX_TOK_FLOAT, p);
    return p;
}

/* Converts a decimal floating point literal with the C library, in the "C" locale: the application may have set another one. */
static const char *lex_decimal_float(struct ptx_lexer *lexer, struct ptx_token *token, const char *p)
{
    const size_t length = (size_t)(p - token->text);
    char *copy = ct_arena_strndup(&lexer->names->compilation->scratch, token->text, length);
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
    double value = strtod(copy, NULL);

    if (c_locale) {
        uselocale(before);
        freelocale(c_locale);
    }
    memcpy(&token->bits, &value, sizeof token->bits);
    finish_token(token, PTX_TOK_FLOAT, p);
    return p;
}

static const char *scan_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* The end of the decimal floating point literal that starts at p, or NULL if the literal is an integer. */
static const char *scan_decimal_float(const char *p, const char *end)
{
    const char *mantissa = scan_digits(p, end), *exponent;
    bool is_float = false;

    p = mantissa;
    if (p < end && *p == '.') {
        is_float = true;
        p = scan_digits(p + 1, end);
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        exponent = p + 1;
        if (exponent < end && (*exponent == '+' || *exponent == '-'))
            exponent++;
        if (exponent < end && is_digit(*exponent)) {
            is_float = true;
            p = scan_digits(exponent, end);
        }
    }
    return is_float ? p : NULL;
}

static const char *lex_integer(struct ptx_token *token, const char *p, const char *end, unsigned base)
{
    const char *first = p;
    bool overflow = false;

    for (; p < end && (unsigned)hex_value(*p) < base; p++) {
        overflow |= __builtin_mul_overflow(token->bits, (uint64_t)base, &token->bits);
        overflow |= __builtin_add_overflow(token->bits, (uint64_t)hex_value(*p), &token->bits);
    }
    const bool empty = p == first;
    token->is_unsigned = token->bits > INT64_MAX;
    if (p < end && *p == 'U') {
        token->is_unsigned = true;
        p++;
    }
    if (empty || (p < end && is_follow_symbol(*p))) {
        while (p < end && is_follow_symbol(*p))
            p++;
        finish_bad_token(token, "malformed number", p);
    } else if (overflow) {
        finish_bad_token(token, "this number does not fit in 64 bits", p);
    } else {
        finish_token(token, PTX_TOK_INT, p);
    }
    return p;
}

static const char *lex_number(struct ptx_lexer *lexer, struct ptx_token *token)
{
    const char *p = token->text, *end = lexer->end, *float_end;
    const int second = *p == '0' && end - p > 1 ? p[1] | 0x20 : 0;

    if (second == 'f')
        return lex_hex_float(token, p + 2, end, 8);
    if (second == 'd')
        return lex_hex_float(token, p + 2, end, 16);
    if (second == 'x')
        return lex_integer(token, p + 2, end, 16);
    if (second == 'b')
        return lex_integer(token, p + 2, end, 2);
    float_end = scan_decimal_float(p, end);
    if (float_end && (float_end == end || !is_follow_symbol(*float_end)))
        return lex_decimal_float(lexer, token, float_end);
    return lex_integer(token, p, end, *p == '0' ? 8 : 10);
}

/* ---- tokens ---- */

static const char *scan_name(const char *p, const char *end)
{
    while (p < end && is_follow_symbol(*p))
        p++;
    return p;
}

/* The end of the word that follows a dot; its parts may be joined by `::`. */
static const char *scan_word(const char *p, const char *end)
{
    p = scan_name(p, end);
    while (end - p > 2 && p[0] == ':' && p[1] == ':' && is_follow_symbol(p[2]))
        p = scan_name(p + 2, end);
    return p;
}

static const char *lex_string(struct ptx_token *token, const char *p, const char *end)
{
    for (p++; p < end && *p != '"' && *p != '\n'; p++)
        if (*p == '\\' && end - p > 1 && p[1] != '\n')
            p++;
    if (p >= end || *p != '"') {
        finish_bad_token(token, "unterminated string", p);
        return p;
    }
    finish_token(token, PTX_TOK_STRING, p + 1);
    return p + 1;
}

static const char *lex_punctuation(struct ptx_token *token, const char *p, const char *end)
{
    static const struct {
        char text[3];
        int kind;
    } pairs[] = {{"<<", PTX_TOK_SHL}, {">>", PTX_TOK_SHR}, {"==", PTX_TOK_EQ},  {"!=", PTX_TOK_NE},
                 {"<=", PTX_TOK_LE},  {">=", PTX_TOK_GE},  {"&&", PTX_TOK_AND}, {"||", PTX_TOK_OR}};

    for (size_t i = 0; end - p > 1 && i < sizeof pairs / sizeof pairs[0]; i++) {
        if (memcmp(p, pairs[i].text, 2) == 0) {
            finish_token(token, pairs[i].kind, p + 2);
            return p + 2;
        }
    }
    if (strchr(",;:[]{}()<>+-!~*/%&|^?=@", *p))
        finish_token(token, (unsigned char)*p, p + 1);
    else
        finish_bad_token(token, "invalid character", p + 1);
    return p + 1;
}

/* An identifier starts with a letter, or with _ $ % followed by another character; a single _ is the sink. */
static bool starts_name(const char *p, const char *end)
{
    if (is_letter(*p) || *p == '_')
        return true;
    return (*p == '$' || *p == '%') && end - p > 1 && is_follow_symbol(p[1]);
}

static struct ct_location current_location(const struct ptx_lexer *lexer)
{
    const ptrdiff_t column = lexer->p - lexer->line_start + 1;

    return (struct ct_location){lexer->line, (uint16_t)(column < UINT16_MAX ? column : UINT16_MAX), lexer->source};
}

struct ptx_token ptx_lex(struct ptx_lexer *lexer)
{
    const bool complete = skip_white_space(lexer);
    const char *p = lexer->p, *end = lexer->end;
    struct ptx_token token = {.text = p, .where = current_location(lexer)};

    if (!complete) {
        finish_bad_token(&token, "unterminated comment", p);
    } else if (p == end) {
        token.kind = PTX_TOK_END;
    } else if (starts_name(p, end)) {
        p = scan_name(p + 1, end);
        finish_token(&token, PTX_TOK_NAME, p);
        token.name = ptx_names_find(lexer->names, token.text, token.length);
    } else if (*p == '.' && end - p > 1 && is_follow_symbol(p[1])) {
        p = scan_word(p + 1, end);
        finish_token(&token, PTX_TOK_WORD, p);
        token.name = ptx_names_find(lexer->names, token.text + 1, token.length - 1);
    } else if (is_digit(*p)) {
        p = lex_number(lexer, &token);
    } else if (*p == '"') {
        p = lex_string(&token, p, end);
    } else {
        p = lex_punctuation(&token, p, end);
    }
    lexer->p = p;
    return token;
}

int ptx_lex_peek(const struct ptx_lexer *lexer)
{
    struct ptx_lexer ahead = *lexer;

    skip_white_space(&ahead);
    return ahead.p < ahead.end ? (unsigned char)*ahead.p : 0;
}

struct ptx_name *ptx_lex_spelling(struct ptx_lexer *lexer, const struct ptx_token *opcode)
{
    while (lexer->end - lexer->p > 1 && *lexer->p == '.' && is_follow_symbol(lexer->p[1]))
        lexer->p = scan_word(lexer->p + 1, lexer->end);
    return ptx_names_find(lexer->names, opcode->text, (size_t)(lexer->p - opcode->text));
}

void ptx_lex_skip_line(struct ptx_lexer *lexer)
{
    const char *newline = memchr(lexer->p, '\n', (size_t)(lexer->end - lexer->p));

    lexer->p = newline ? newline : lexer->end;
}

void ptx_lexer_init(struct ptx_lexer *lexer, struct ptx_names *names, uint32_t index)
{
    const struct ct_source *source = &names->compilation->sources[index];
    const char *text = source->text, *nul = memchr(text, 0, source->length);

    *lexer = (struct ptx_lexer){
        .names = names,
        .p = text,
        .end = nul ? nul : text + source->length,
        .line_start = text,
        .line = 1,
        .source = (uint16_t)index,
    };
}

void ptx_lexer_resume(struct ptx_lexer *lexer, struct ptx_names *names, const struct ptx_position *position)
{
    *lexer = (struct ptx_lexer){
        .names = names,
        .p = position->at,
        .end = position->end,
        .line_start = position->line_start,
        .line = position->line,
        .source = position->source,
    };
}

struct ptx_position ptx_lexer_position(const struct ptx_lexer *lexer, const struct ptx_token *token)
{
    return (struct ptx_position){token->text, lexer->end, lexer->line_start, lexer->line, lexer->source};
}
