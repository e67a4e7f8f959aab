/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the parser's files. The parser is one recursive-descent parser in several files: parse.c (module),
 * parse_variable.c (declarations and initializers), parse_function.c, parse_body.c (statements), parse_operand.c, parse_expression.c
 * (constants), parse_spelling.c (opcode and modifiers), parse_symbols.c (scopes), parse_check.c (operands against opcodes.def).
 *
 * Every parse function returns false after it has reported an error; statements then recover after the next ';'. Recursion is bounded:
 * braces of statements are kept on a stack, and expressions and initializers stop at PTX_MAX_DEPTH. */
#ifndef PTX2SPV_PARSE_H
#define PTX2SPV_PARSE_H
/* Parts: parse_body.c, parse_check.c, parse_expression.c, parse_function.c, parse_operand.c, parse_spelling.c, parse_symbols.c,
 * parse_variable.c. */

#include "lex.h"
#include "opcodes.h"

#define PTX_MAX_DEPTH 200 /* nested parentheses, operators or initializer braces */

/* A register range: .reg .b32 %r<100>. Its registers are created when they are first used. */
struct ptx_register_range {
    enum ptx_type type;
    uint8_t vector;
    uint32_t count;
};

enum { PTX_SYM_RANGE = PTX_SYM_TARGETS + 1 }; /* in addition to enum ptx_symbol_kind */

struct ptx_symbol {
    int kind;       /* enum ptx_symbol_kind, or PTX_SYM_RANGE */
    uint32_t depth; /* depth of the scope that declares it */
    struct ct_location where;
    struct ptx_name *name;
    struct ptx_symbol *outer; /* the symbol that this one hides */
    struct ptx_symbol *next;  /* the next symbol of the scope */
    union {
        struct ptx_register *reg;
        struct ptx_register_range *range;
        struct ptx_variable *variable;
        struct ptx_function *function; /* FUNC, PROTOTYPE */
        struct ptx_targets *targets;
        struct ptx_label_entry *label;
    };
};

/* A label in the parser: a use before the definition creates an entry of its own in the scope of the use. When a scope that defines the
 * label is left, the entry is bound to the definition. The operands in the tree point to `label`; ptx_labels_resolve redirects them. */
struct ptx_label_entry {
    struct ptx_label label;        /* first member: a struct ptx_label * of the parser is also a struct ptx_label_entry * */
    struct ptx_label_entry *bound; /* NULL: this entry is the definition, or it is not resolved yet */
    struct ptx_name *name;
};

struct ptx_scope_frame {
    struct ptx_symbol *symbols;               /* the newest first */
    CT_VEC(struct ptx_label_entry *) pending; /* labels that are used here and not defined yet */
};

struct ptx_alias {
    struct ptx_function *alias, *target;
};

struct ptx_parser {
    struct ct_compilation *compilation;
    struct ptx_names *names;
    struct ptx_lexer lexer;
    struct ptx_token token; /* the current token */
    struct ptx_module *module;
    struct ct_arena *arena;                /* of the nodes that are made: the compilation's, or in a body the body's */
    const struct ptx_function *function;   /* the function being parsed, NULL at module scope */
    struct ptx_function *defined;          /* the same, or NULL when its body is parsed again: then the tree exists already */
    uint32_t n_variables, n_params;        /* of that function's, how many were found again */
    ptx_visit *visit;                      /* NULL when a body is parsed again */
    CT_VEC(struct ptx_scope_frame) scopes; /* [0] is the module scope */
    struct ptx_body body;                  /* of the function */
    CT_VEC(struct ptx_operand) operands;   /* operands of the instruction and, as a stack, of its lists */
    CT_VEC(struct ptx_alias) aliases;
    uint32_t depth;         /* nesting depth of expressions and initializer braces */
    enum ptx_opcode opcode; /* opcode of the instruction whose operands are being parsed */
    bool mark_unsupported;  /* that instruction uses legal PTX that the tree cannot represent */
};

/* ---- tokens ---- */
void ptx_advance(struct ptx_parser *p);
bool ptx_at(const struct ptx_parser *p, int kind);
bool ptx_at_directive(const struct ptx_parser *p, enum ptx_directive directive);
bool ptx_accept(struct ptx_parser *p, int kind); /* advances if the current token is of this kind */
bool ptx_accept_directive(struct ptx_parser *p, enum ptx_directive directive);
bool ptx_expect(struct ptx_parser *p, int kind, const char *what); /* the same; reports an error if not: "expected <what>" */
bool ptx_expect_name(struct ptx_parser *p, struct ptx_token *out, const char *what);
bool ptx_unexpected(struct ptx_parser *p, const char *expected); /* reports the current token; returns false */
bool ptx_fail(struct ptx_parser *p, struct ct_location where, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A name or token of the source for a message, with its length first, as "%.*s" wants them; at most 80 characters. */
#define PTX_SHOW(text, length) ((int)((length) > 80 ? 80 : (length))), (text)

/* ---- symbols (parse_symbols.c) ---- */
void ptx_scope_push(struct ptx_parser *p);
/* Leaves the innermost scope; its unresolved labels move to the enclosing scope. In a function's outermost scope they are errors. */
void ptx_scope_pop(struct ptx_parser *p);
/* A copy of a name that is kept with the nodes of an arena. */
const char *ptx_keep_name(struct ct_arena *arena, const struct ptx_name *name);
/* Declares a name in the innermost scope. NULL after reporting that it is already declared there. */
struct ptx_symbol *ptx_declare(struct ptx_parser *p, int kind, const struct ptx_token *name);
/* The same for something that the tree has already. NULL for _, too. */
struct ptx_symbol *ptx_declare_again(struct ptx_parser *p, int kind, const char *name);
/* The symbol that a name denotes; creates the register of a range on its first use. NULL: none. */
struct ptx_symbol *ptx_lookup(struct ptx_parser *p, struct ptx_name *name);
struct ptx_register *ptx_register_create(struct ptx_parser *p, const char *name, enum ptx_type type, unsigned vector);
struct ptx_label *ptx_label_use(struct ptx_parser *p, const struct ptx_token *name);
bool ptx_label_define(struct ptx_parser *p, const struct ptx_token *name);
/* Redirects every label of the body to its definition. */
void ptx_labels_resolve(struct ptx_parser *p);

/* ---- constants (parse_expression.c) ---- */
struct ptx_constant {
    bool is_float, is_unsigned, is_single; /* is_single: written as 0f, and not the result of an operation */
    uint64_t bits;                         /* is_float: those of a double */
    uint32_t single_bits;
};
bool ptx_parse_constant(struct ptx_parser *p, struct ptx_constant *out);
/* Parses a constant integer between `least` and `most`. */
bool ptx_parse_count(struct ptx_parser *p, const char *what, uint64_t least, uint64_t most, uint64_t *out);
double ptx_double_of_bits(uint64_t bits);
uint64_t ptx_bits_of_double(double value);
/* The bits of `value` in a floating point type, rounded to nearest. */
uint64_t ptx_float_bits(enum ptx_type type, const struct ptx_constant *value);

/* ---- declarations (parse_variable.c) ---- */
enum ptx_space ptx_space_of_directive(enum ptx_directive directive); /* NONE if it is not a state space of variables */
/* Parses a declaration after its linkage, up to and including the ';'. The current token is the state space. */
bool ptx_parse_variables(struct ptx_parser *p, enum ptx_linkage linkage);
bool ptx_parse_registers(struct ptx_parser *p);
/* Parses one parameter of a function: `.param .align 8 .b8 name[16]` or `.reg .u32 name`. Declares its name if `declare`. */
bool ptx_parse_parameter(struct ptx_parser *p, bool declare, struct ptx_variable **variable, struct ptx_register **reg);
bool ptx_is_sink(const struct ptx_token *name); /* _, which is not declared */
bool ptx_parse_attributes(struct ptx_parser *p, bool *managed);

/* ---- functions (parse_function.c, parse_body.c) ---- */
bool ptx_parse_function(struct ptx_parser *p, enum ptx_linkage linkage);
bool ptx_parse_alias(struct ptx_parser *p);
/* At the end of the module: an alias gets the body of its target. */
void ptx_resolve_aliases(struct ptx_parser *p);
bool ptx_parse_prototype(struct ptx_parser *p, const struct ptx_token *name);
/* If the current token is `.file`, `.loc`, `.section` or `.pragma`, skips it and sets *ok; else returns false. */
bool ptx_skip_debug(struct ptx_parser *p, bool *ok);
bool ptx_skip_braces(struct ptx_parser *p);
/* After an error: skips to after the next ';', but stays within the enclosing braces. */
void ptx_recover(struct ptx_parser *p);
/* Declares the parameters of a function whose body is parsed again. */
void ptx_declare_parameters(struct ptx_parser *p);
/* Parses the statements of a function, up to and including its closing brace. */
bool ptx_parse_body(struct ptx_parser *p);

/* ---- instructions ---- */
/* An opcode with its modifiers, decoded once for each distinct text. */
struct ptx_spelling {
    enum ptx_opcode opcode;
    struct ptx_modifiers mods;
    enum ptx_type types[4];
    uint8_t n_types;
    uint64_t classes;    /* the classes that occur */
    const char *error;   /* NULL: legal */
    uint32_t at, length; /* position of the offending word in the text */
};
struct ptx_spelling *ptx_decode_spelling(struct ptx_parser *p, struct ptx_name *text);
bool ptx_parse_operand(struct ptx_parser *p, struct ptx_operand *out);
/* The same, and also accepts the forms that only a whole operand of an instruction can have. */
bool ptx_parse_instruction_operand(struct ptx_parser *p, const struct ptx_instruction *insn, struct ptx_operand *out);
bool ptx_parse_call(struct ptx_parser *p, struct ptx_instruction *insn);
/* Pops the operands from `first` on off the parser's stack and copies them to the tree. */
struct ptx_operand *ptx_take_operands(struct ptx_parser *p, uint32_t first, uint32_t *count);
bool ptx_check_instruction(struct ptx_parser *p, const struct ptx_instruction *insn);

#endif
