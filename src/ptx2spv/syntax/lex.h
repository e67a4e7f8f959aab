/* SPDX-License-Identifier: Apache-2.0 */
/* Lexer: turns PTX text into tokens, and maintains the table of names. Every name is looked up once, here: a token points to its struct
 * ptx_name, which says what the word is as a directive, a type, an opcode or a special register, and which symbol it currently denotes. */
#ifndef PTX2SPV_LEX_H
#define PTX2SPV_LEX_H

#include "ast.h"

enum ptx_directive {
    PTX_DIR_NONE = 0,
#define PTX_DIRECTIVE(id, word) PTX_DIR_##id,
#include "directives.def"
    PTX_DIRECTIVE_COUNT
};

struct ptx_symbol;
struct ptx_spelling;

struct ptx_name {
    const char *text; /* NUL-terminated */
    uint32_t length, hash;
    uint8_t directive, type, opcode, sreg; /* enumerators, 0 if the word is not one */
    struct ptx_symbol *symbol;             /* the innermost declaration in scope, NULL none */
    struct ptx_spelling *spelling;         /* instruction with all its modifiers ("add.s32"), once it was decoded */
};

struct ptx_names {
    struct ct_compilation *compilation;
    struct ct_arena *arena;  /* of all that follows */
    struct ptx_name **slots; /* hash table with open addressing, a power of two, at most half full */
    uint32_t n_slots, n_used;
};

/* Kinds of tokens; for punctuation of one character the kind is the character itself. */
enum ptx_token_kind {
    PTX_TOK_END = 0,
    PTX_TOK_BAD = 256, /* invalid text: `message` says why */
    PTX_TOK_NAME,      /* %r1, foo, $L_1, _ */
    PTX_TOK_WORD,      /* .global: a word with a leading dot; `name` is without the dot */
    PTX_TOK_INT,       /* bits */
    PTX_TOK_FLOAT,     /* bits: a double; is_single: written as 0f, see single_bits */
    PTX_TOK_STRING,    /* text and length include the quotes */
    PTX_TOK_SHL,
    PTX_TOK_SHR,
    PTX_TOK_EQ,
    PTX_TOK_NE,
    PTX_TOK_LE,
    PTX_TOK_GE,
    PTX_TOK_AND,
    PTX_TOK_OR,
};

struct ptx_token {
    int kind;
    struct ct_location where;
    const char *text; /* in the source */
    uint32_t length;
    struct ptx_name *name;
    uint64_t bits;
    uint32_t single_bits;
    bool is_single, is_unsigned;
    const char *message;
};

struct ptx_lexer {
    struct ptx_names *names;
    const char *p, *end, *line_start;
    uint32_t line;
    uint16_t source; /* for the locations of tokens */
};

/* Fills the table with the directives, types, opcodes and special registers. */
void ptx_names_init(struct ptx_names *names, struct ct_compilation *compilation, struct ct_arena *arena);
struct ptx_name *ptx_names_find(struct ptx_names *names, const char *text, size_t length);

/* Starts lexing source `index` of the names' compilation. */
void ptx_lexer_init(struct ptx_lexer *lexer, struct ptx_names *names, uint32_t index);
/* Starts lexing at a place. */
void ptx_lexer_resume(struct ptx_lexer *lexer, struct ptx_names *names, const struct ptx_position *position);
/* The place of the token that was lexed last, which must be in one line. */
struct ptx_position ptx_lexer_position(const struct ptx_lexer *lexer, const struct ptx_token *token);
struct ptx_token ptx_lex(struct ptx_lexer *lexer);
/* The next character that is neither white space nor part of a comment, 0 at the end. Does not advance the lexer. */
int ptx_lex_peek(const struct ptx_lexer *lexer);
/* Extends the name that was just lexed by the modifiers that directly follow it: "add" to "add.rn.f32". Returns the whole text. */
struct ptx_name *ptx_lex_spelling(struct ptx_lexer *lexer, const struct ptx_token *opcode);
/* Skips the rest of the line. */
void ptx_lex_skip_line(struct ptx_lexer *lexer);

#endif
