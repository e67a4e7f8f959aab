/* SPDX-License-Identifier: Apache-2.0 */
/* Parser: the module (PTX ISA, "Syntax", "PTX Module Directives"), and helper functions of all parser files. */
#include "parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NEWEST_MAJOR 9

/* ---- tokens ---- */

void ptx_advance(struct ptx_parser *p)
{
    p->token = ptx_lex(&p->lexer);
}

bool ptx_at(const struct ptx_parser *p, int kind)
{
    return p->token.kind == kind;
}

bool ptx_at_directive(const struct ptx_parser *p, enum ptx_directive directive)
{
    return p->token.kind == PTX_TOK_WORD && p->token.name->directive == directive;
}

bool ptx_accept(struct ptx_parser *p, int kind)
{
    if (!ptx_at(p, kind))
        return false;
    ptx_advance(p);
    return true;
}

bool ptx_accept_directive(struct ptx_parser *p, enum ptx_directive directive)
{
    if (!ptx_at_directive(p, directive))
        return false;
    ptx_advance(p);
    return true;
}

bool ptx_fail(struct ptx_parser *p, struct ct_location where, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ct_error(p->compilation, where, PTX2SPV_INVALID_PTX, "%s", text);
}

bool ptx_unexpected(struct ptx_parser *p, const char *expected)
{
    const struct ptx_token *token = &p->token;

    if (token->kind == PTX_TOK_END)
        return ptx_fail(p, token->where, "expected %s, found the end of the text", expected);
    if (token->kind == PTX_TOK_BAD)
        return ptx_fail(p, token->where, "%s: '%.*s'", token->message, PTX_SHOW(token->text, token->length));
    return ptx_fail(p, token->where, "expected %s, found '%.*s'", expected, PTX_SHOW(token->text, token->length));
}

bool ptx_expect(struct ptx_parser *p, int kind, const char *what)
{
    return ptx_accept(p, kind) || ptx_unexpected(p, what);
}

bool ptx_expect_name(struct ptx_parser *p, struct ptx_token *out, const char *what)
{
    *out = p->token;
    return ptx_expect(p, PTX_TOK_NAME, what);
}

/* ---- error recovery, and directives that are skipped ---- */

static bool may_follow_operand_brace(int c)
{
    return c == ',' || c == ';' || c == ']' || c == ')';
}

void ptx_recover(struct ptx_parser *p)
{
    uint32_t open = 0;

    for (; !ptx_at(p, PTX_TOK_END); ptx_advance(p)) {
        if (ptx_at(p, ';')) {
            ptx_advance(p);
            return;
        }
        if (ptx_at(p, '{')) {
            open++;
        } else if (ptx_at(p, '}')) {
            if (open == 0 && !may_follow_operand_brace(ptx_lex_peek(&p->lexer)))
                return;
            open -= open > 0;
        }
    }
}

bool ptx_skip_braces(struct ptx_parser *p)
{
    const struct ct_location where = p->token.where;
    uint32_t open = 0;

    do {
        if (ptx_at(p, PTX_TOK_END))
            return ptx_fail(p, where, "unmatched '{'");
        open += ptx_at(p, '{');
        open -= ptx_at(p, '}');
        ptx_advance(p);
    } while (open);
    return true;
}

static bool skip_number(struct ptx_parser *p)
{
    return ptx_expect(p, PTX_TOK_INT, "a number");
}

/* file: .file index "name" [ , timestamp , size ] */
static bool skip_file(struct ptx_parser *p)
{
    if (!skip_number(p) || !ptx_expect(p, PTX_TOK_STRING, "a file name"))
        return false;
    return !ptx_accept(p, ',') || (skip_number(p) && ptx_expect(p, ',', "','") && skip_number(p));
}

/* loc: .loc file line column [ , function_name label [+ offset] ] [ , inlined_at file line column ] */
static bool skip_loc(struct ptx_parser *p)
{
    if (!skip_number(p) || !skip_number(p) || !skip_number(p))
        return false;
    while (ptx_accept(p, ',')) {
        struct ptx_token word;

        if (!ptx_expect_name(p, &word, "function_name or inlined_at"))
            return false;
        if (word.length == 10 && memcmp(word.text, "inlined_at", 10) == 0) {
            if (!skip_number(p) || !skip_number(p) || !skip_number(p))
                return false;
        } else if (!ptx_expect_name(p, &word, "a label") || (ptx_accept(p, '+') && !skip_number(p))) {
            return false;
        }
    }
    return true;
}

/* pragma: .pragma "text" , ... ; */
static bool skip_pragma(struct ptx_parser *p)
{
    do {
        if (!ptx_expect(p, PTX_TOK_STRING, "the pragma as a string"))
            return false;
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';', "';' after the pragma");
}

/* section: .section .name { DWARF data } */
static bool skip_section(struct ptx_parser *p)
{
    if (!ptx_at(p, PTX_TOK_WORD) && !ptx_at(p, PTX_TOK_NAME))
        return ptx_unexpected(p, "a section name");
    ptx_advance(p);
    return ptx_at(p, '{') ? ptx_skip_braces(p) : ptx_unexpected(p, "'{'");
}

bool ptx_skip_debug(struct ptx_parser *p, bool *ok)
{
    if (ptx_accept_directive(p, PTX_DIR_LOC))
        *ok = skip_loc(p);
    else if (ptx_accept_directive(p, PTX_DIR_FILE))
        *ok = skip_file(p);
    else if (ptx_accept_directive(p, PTX_DIR_PRAGMA))
        *ok = skip_pragma(p);
    else if (ptx_accept_directive(p, PTX_DIR_SECTION))
        *ok = skip_section(p);
    else
        return false;
    return true;
}

/* Skips `@@DWARF ...` lines of PTX 1.x and 2.x. */
static bool skip_old_dwarf(struct ptx_parser *p)
{
    if (!ptx_at(p, '@') || ptx_lex_peek(&p->lexer) != '@')
        return false;
    ptx_lex_skip_line(&p->lexer);
    ptx_advance(p);
    return true;
}

/* ---- module directives ---- */

/* version: .version major.minor */
static bool parse_version(struct ptx_parser *p)
{
    unsigned major = 0, minor = 0;
    uint32_t i = 0;
    struct ptx_token number;

    if (!ptx_accept_directive(p, PTX_DIR_VERSION))
        return ptx_unexpected(p, ".version (the first directive of a module)");
    number = p->token;
    if (!ptx_at(p, PTX_TOK_FLOAT) || number.is_single || number.length > 8)
        return ptx_unexpected(p, "a version such as 8.0");
    for (; i < number.length && number.text[i] >= '0' && number.text[i] <= '9'; i++)
        major = major * 10 + (unsigned)(number.text[i] - '0');
    for (i++; i < number.length && number.text[i] >= '0' && number.text[i] <= '9'; i++)
        minor = minor * 10 + (unsigned)(number.text[i] - '0');
    if (i < number.length || major == 0 || minor > 9)
        return ptx_unexpected(p, "a version such as 8.0");
    if (major > NEWEST_MAJOR)
        return ct_error(p->compilation, number.where, PTX2SPV_UNSUPPORTED_VERSION, "PTX version %u.%u is newer than %d.x", major, minor,
                        NEWEST_MAJOR);
    p->module->isa_version = major * 10 + minor;
    ptx_advance(p);
    return true;
}

static bool parse_target_name(struct ptx_parser *p)
{
    static const char *const options[] = {"texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"};
    struct ptx_token name;
    unsigned number = 0;
    uint32_t i = 3;

    if (!ptx_expect_name(p, &name, "a target such as sm_75"))
        return false;
    for (size_t k = 0; k < sizeof options / sizeof options[0]; k++)
        if (strlen(options[k]) == name.length && memcmp(options[k], name.text, name.length) == 0)
            return true;
    if (name.length < 5 || name.length > 8 || memcmp(name.text, "sm_", 3) != 0)
        return ptx_fail(p, name.where, "unknown target '%.*s'", PTX_SHOW(name.text, name.length));
    for (; i < name.length && name.text[i] >= '0' && name.text[i] <= '9'; i++)
        number = number * 10 + (unsigned)(name.text[i] - '0');
    if (i + 1 < name.length || (i < name.length && name.text[i] != 'a' && name.text[i] != 'f') || number < 10)
        return ptx_fail(p, name.where, "unknown target '%.*s'", PTX_SHOW(name.text, name.length));
    p->module->sm = p->module->oldest_sm = number;
    return true;
}

/* target: .target name , ... */
static bool parse_target(struct ptx_parser *p)
{
    if (!ptx_accept_directive(p, PTX_DIR_TARGET))
        return ptx_unexpected(p, ".target (the second directive of a module)");
    do {
        if (!parse_target_name(p))
            return false;
    } while (ptx_accept(p, ','));
    return true;
}

static bool parse_address_size(struct ptx_parser *p)
{
    const struct ptx_token size = p->token;

    if (!ptx_at(p, PTX_TOK_INT) || (size.bits != 32 && size.bits != 64))
        return ptx_unexpected(p, "32 or 64");
    if (size.bits == 32)
        return ct_error(p->compilation, size.where, PTX2SPV_UNSUPPORTED, "32-bit addresses are not supported: .address_size %.*s",
                        PTX_SHOW(size.text, size.length));
    ptx_advance(p);
    return true;
}

static enum ptx_linkage accept_linkage(struct ptx_parser *p)
{
    if (ptx_accept_directive(p, PTX_DIR_EXTERN))
        return PTX_LINK_EXTERN;
    if (ptx_accept_directive(p, PTX_DIR_VISIBLE))
        return PTX_LINK_VISIBLE;
    if (ptx_accept_directive(p, PTX_DIR_WEAK))
        return PTX_LINK_WEAK;
    if (ptx_accept_directive(p, PTX_DIR_COMMON))
        return PTX_LINK_COMMON;
    return PTX_LINK_NONE;
}

static bool parse_module_item(struct ptx_parser *p)
{
    enum ptx_linkage linkage;
    bool ok;

    if (ptx_accept(p, ';') || skip_old_dwarf(p))
        return true;
    if (ptx_skip_debug(p, &ok))
        return ok;
    if (ptx_accept_directive(p, PTX_DIR_ADDRESS_SIZE))
        return parse_address_size(p);
    if (ptx_at_directive(p, PTX_DIR_TARGET))
        return parse_target(p);
    if (ptx_accept_directive(p, PTX_DIR_ALIAS))
        return ptx_parse_alias(p);
    linkage = accept_linkage(p);
    if (ptx_at_directive(p, PTX_DIR_ENTRY) || ptx_at_directive(p, PTX_DIR_FUNC))
        return ptx_parse_function(p, linkage);
    if (ptx_at(p, PTX_TOK_WORD) && ptx_space_of_directive((enum ptx_directive)p->token.name->directive) != PTX_SPACE_NONE)
        return ptx_parse_variables(p, linkage);
    if (ptx_at_directive(p, PTX_DIR_REG))
        return ct_error(p->compilation, p->token.where, PTX2SPV_UNSUPPORTED, "'.reg' outside of functions is not supported");
    return ptx_unexpected(p, "a directive");
}

/* Recovers after an error at module scope: skips to after the next ';', or after the braces of a function. */
static void recover_module(struct ptx_parser *p)
{
    while (!ptx_at(p, PTX_TOK_END) && !ptx_at(p, ';') && !ptx_at(p, '{') && !ptx_at(p, '}'))
        ptx_advance(p);
    if (ptx_at(p, '{')) {
        ptx_skip_braces(p);
        ptx_accept(p, ';');
    } else if (!ptx_at(p, PTX_TOK_END)) {
        ptx_advance(p);
    }
}

/* Labels of text that was not parsed are not reported. */
static void leave_scopes(struct ptx_parser *p, uint32_t left)
{
    while (p->scopes.n > left) {
        p->scopes.v[p->scopes.n - 1].pending.n = 0;
        ptx_scope_pop(p);
    }
}

static void parse_module(struct ptx_parser *p)
{
    if (!parse_version(p) || !parse_target(p))
        return;
    while (!ptx_at(p, PTX_TOK_END)) {
        if (!parse_module_item(p)) {
            leave_scopes(p, 1);
            p->function = p->defined = NULL;
            p->arena = &p->compilation->arena;
            p->depth = 0;
            recover_module(p);
        }
    }
    ptx_resolve_aliases(p);
}

struct ptx_module *ptx_parse(struct ct_compilation *compilation, uint32_t source, ptx_visit *visit)
{
    struct ptx_parser parser = {
        .compilation = compilation, .arena = &compilation->arena, .visit = visit, .body.arena = &compilation->bodies};
    struct ptx_names names;

    parser.module = CT_ARENA_NEW(&compilation->arena, struct ptx_module);
    parser.module->address_bits = 64;
    parser.names = &names;
    ptx_names_init(&names, compilation, &compilation->scratch);
    ptx_lexer_init(&parser.lexer, &names, source);
    ptx_scope_push(&parser);
    ptx_advance(&parser);
    parse_module(&parser);
    return compilation->n_errors ? NULL : parser.module;
}

/* ---- bodies that are parsed again ---- */

static void declare_reference(struct ptx_parser *p, const struct ptx_reference *reference)
{
    struct ptx_symbol *symbol = reference->function ? ptx_declare_again(p, PTX_SYM_FUNC, reference->function->name)
                                                    : ptx_declare_again(p, PTX_SYM_VAR, reference->variable->name);

    if (symbol && reference->function)
        symbol->function = reference->function;
    else if (symbol)
        symbol->variable = reference->variable;
}

/* The names of a compilation's bodies: one table for all, since it begins with several hundred words. */
static struct ptx_names *names_of(struct ct_compilation *compilation)
{
    if (!compilation->names) {
        compilation->names = CT_ARENA_NEW(&compilation->arena, struct ptx_names);
        ptx_names_init(compilation->names, compilation, &compilation->arena);
    }
    return compilation->names;
}

struct ptx_body *ptx_parse_again(struct ct_compilation *compilation, const struct ptx_function *function)
{
    struct ptx_parser parser = {.compilation = compilation, .arena = &compilation->arena, .body.arena = &compilation->arena};
    const unsigned errors = compilation->n_errors;
    struct ptx_body *body = CT_ARENA_NEW(&compilation->arena, struct ptx_body);

    parser.module = function->text;
    parser.names = names_of(compilation);
    ptx_lexer_resume(&parser.lexer, parser.names, &function->body);
    ptx_scope_push(&parser);
    for (uint32_t i = 0; i < function->references.n; i++)
        declare_reference(&parser, &function->references.v[i]);
    parser.function = function;
    parser.n_params = function->n_header_params;
    ptx_scope_push(&parser);
    ptx_declare_parameters(&parser);
    ptx_advance(&parser);
    if (!ptx_parse_body(&parser) || compilation->n_errors != errors)
        body = NULL;
    leave_scopes(&parser, 0);
    if (body)
        *body = parser.body;
    return body;
}
