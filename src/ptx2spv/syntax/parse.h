/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser's files share. One recursive-descent parser in parts: parse.c (module), parse_variable.c (declarations and
 * initializers), parse_function.c, parse_body.c (statements), parse_operand.c, parse_expression.c (constants), parse_spelling.c
 * (opcode and modifiers), parse_symbols.c (scopes), parse_check.c (operands against opcodes.def).
 *
 * Every parse function returns false after it reported an error; statements then recover behind the next ';'. Nothing recurses
 * without a bound: braces of statements are a stack, expressions and initializers stop at PTX_MAX_DEPTH. */
#ifndef PTX2SPV_PARSE_H
#define PTX2SPV_PARSE_H

#include "lex.h"
#include "opcodes.h"

#define PTX_MAX_DEPTH 200 /* nested parentheses, operators or initializer braces */

/* A register range: .reg .b32 %r<100>. Its registers come into being when they are used. */
struct ptx_register_range {
    enum ptx_type type;
    uint8_t vector;
    uint32_t count;
};

enum { PTX_SYM_RANGE = PTX_SYM_TARGETS + 1 }; /* beside enum ptx_symbol_kind */

struct ptx_symbol {
    int kind;       /* enum ptx_symbol_kind or one of the above */
    uint32_t depth; /* of the scope that declares it */
    struct ct_location where;
    struct ptx_name *name;
    struct ptx_symbol *outer; /* what the name meant outside */
    struct ptx_symbol *next;  /* in the scope */
    union {
        struct ptx_register *reg;
        struct ptx_register_range *range;
        struct ptx_variable *variable;
        struct ptx_function *function; /* FUNC, PROTOTYPE */
        struct ptx_targets *targets;
        struct ptx_label_entry *label;
    };
};

/* A label as the parser sees it: a use before the definition makes an entry of its own in the scope of the use, which is bound to
 * the definition when a scope that has one is left. The tree's operands point at `label`; ptx_labels_resolve redirects them. */
struct ptx_label_entry {
    struct ptx_label label;        /* first: a struct ptx_label * of the parser is a struct ptx_label_entry * */
    struct ptx_label_entry *bound; /* NULL: this is the definition, or not resolved yet */
    struct ptx_name *name;
};

struct ptx_scope_frame {
    struct ptx_symbol *symbols;               /* newest first */
    CT_VEC(struct ptx_label_entry *) pending; /* labels used here and not defined yet */
};

struct ptx_alias {
    struct ptx_function *alias, *target;
};

struct ptx_parser {
    struct ct_compilation *compilation;
    struct ptx_names names;
    struct ptx_lexer lexer;
    struct ptx_token token; /* the current one */
    struct ptx_module *module;
    struct ptx_function *function;             /* being parsed, NULL at module scope */
    CT_VEC(struct ptx_scope_frame) scopes;     /* [0] is the module */
    CT_VEC(struct ptx_instruction) body;       /* of the function; copied out at its end */
    CT_VEC(struct ptx_operand) operands;       /* of the instruction and, as a stack, of its lists */
    CT_VEC(struct ptx_targets *) target_lists; /* of the function */
    CT_VEC(struct ptx_alias) aliases;
    uint32_t depth;         /* of expressions and initializer braces */
    enum ptx_opcode opcode; /* of the instruction whose operands are parsed */
    bool mark_unsupported;  /* it uses legal PTX that the tree cannot hold */
};

/* ---- tokens ---- */
void ptx_advance(struct ptx_parser *p);
bool ptx_at(const struct ptx_parser *p, int kind);
bool ptx_at_directive(const struct ptx_parser *p, enum ptx_directive directive);
bool ptx_accept(struct ptx_parser *p, int kind); /* advances if it is there */
bool ptx_accept_directive(struct ptx_parser *p, enum ptx_directive directive);
bool ptx_expect(struct ptx_parser *p, int kind, const char *what); /* the same, or an error: "what expected" */
bool ptx_expect_name(struct ptx_parser *p, struct ptx_token *out, const char *what);
bool ptx_unexpected(struct ptx_parser *p, const char *wanted); /* reports the current token; returns false */
bool ptx_fail(struct ptx_parser *p, struct ct_location where, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A name or token of the source, shortened for a message, with its length first: for "%.*s". */
#define PTX_SHOW(text, length) ((int)((length) > 80 ? 80 : (length))), (text)

/* ---- symbols (parse_symbols.c) ---- */
void ptx_scope_push(struct ptx_parser *p);
/* Leaves the innermost scope; its unresolved labels move outwards. At a function's outermost scope they are errors. */
void ptx_scope_pop(struct ptx_parser *p);
/* Declares name in the innermost scope. NULL after the error that it is declared there already. */
struct ptx_symbol *ptx_declare(struct ptx_parser *p, int kind, const struct ptx_token *name);
/* The symbol that a name stands for; makes the register of a range. NULL: none. */
struct ptx_symbol *ptx_lookup(struct ptx_parser *p, struct ptx_name *name);
struct ptx_register *ptx_register_create(struct ptx_parser *p, const char *name, enum ptx_type type, unsigned vector);
struct ptx_label *ptx_label_use(struct ptx_parser *p, const struct ptx_token *name);
bool ptx_label_define(struct ptx_parser *p, const struct ptx_token *name);
/* Redirects every label of the body to its definition. */
void ptx_labels_resolve(struct ptx_parser *p);

/* ---- constants (parse_expression.c) ---- */
struct ptx_constant {
    bool is_float, is_unsigned, is_single; /* is_single: written as 0f and not computed with */
    uint64_t bits;                         /* FLOAT: of a double */
    uint32_t single_bits;
};
bool ptx_parse_constant(struct ptx_parser *p, struct ptx_constant *out);
/* A constant integer of at least `least`; *out is clamped to no range but 0..INT64_MAX. */
bool ptx_parse_count(struct ptx_parser *p, const char *what, uint64_t least, uint64_t most, uint64_t *out);
double ptx_double_of_bits(uint64_t bits);
uint64_t ptx_bits_of_double(double value);
/* Rounds to the nearest: bits of `value` in a floating point type. */
uint64_t ptx_float_bits(enum ptx_type type, const struct ptx_constant *value);

/* ---- declarations (parse_variable.c) ---- */
enum ptx_space ptx_space_of_directive(enum ptx_directive directive); /* NONE if it names no state space of variables */
/* A declaration behind its linkage, up to and with the ';'. The current token is the state space. */
bool ptx_parse_variables(struct ptx_parser *p, enum ptx_linkage linkage);
bool ptx_parse_registers(struct ptx_parser *p);
/* One parameter of a function: `.param .align 8 .b8 name[16]` or `.reg .u32 name`. Declares its name if `declare`. */
bool ptx_parse_parameter(struct ptx_parser *p, bool declare, struct ptx_variable **variable, struct ptx_register **reg);
bool ptx_parse_attributes(struct ptx_parser *p, bool *managed);

/* ---- functions (parse_function.c, parse_body.c) ---- */
bool ptx_parse_function(struct ptx_parser *p, enum ptx_linkage linkage);
bool ptx_parse_alias(struct ptx_parser *p);
/* At the end of the module: an alias without a body gets that of its target. */
void ptx_resolve_aliases(struct ptx_parser *p);
bool ptx_parse_prototype(struct ptx_parser *p, const struct ptx_token *name);
/* If `.file`, `.loc`, `.section` or `.pragma` stands here, goes behind it and sets *ok; else returns false. */
bool ptx_skip_debug(struct ptx_parser *p, bool *ok);
bool ptx_skip_braces(struct ptx_parser *p);
/* After an error: goes behind the next ';', but not out of the braces. */
void ptx_recover(struct ptx_parser *p);
/* The statements of a function up to and with its last brace. */
bool ptx_parse_body(struct ptx_parser *p);

/* ---- instructions ---- */
/* An opcode with its modifiers, looked at once for each distinct text. */
struct ptx_spelling {
    enum ptx_opcode opcode;
    struct ptx_modifiers mods;
    enum ptx_type types[4];
    uint8_t n_types;
    uint64_t classes;    /* that occur */
    const char *error;   /* NULL: legal */
    uint32_t at, length; /* the offending word in the text */
};
struct ptx_spelling *ptx_spell(struct ptx_parser *p, struct ptx_name *text);
bool ptx_parse_operand(struct ptx_parser *p, struct ptx_operand *out);
/* The same with what only operands of an instruction, but not their parts, may be. */
bool ptx_parse_instruction_operand(struct ptx_parser *p, const struct ptx_instruction *insn, struct ptx_operand *out);
bool ptx_parse_call(struct ptx_parser *p, struct ptx_instruction *insn);
/* Takes the operands from `first` on off the parser's stack, into the tree. */
struct ptx_operand *ptx_take_operands(struct ptx_parser *p, uint32_t first, uint32_t *count);
bool ptx_check_instruction(struct ptx_parser *p, const struct ptx_instruction *insn);

#endif
