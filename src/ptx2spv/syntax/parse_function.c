/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, functions, prototypes, aliases (PTX ISA, "Kernel and Function Directives", "Performance-Tuning Directives"). */
#include "parse.h"

#include <string.h>

/* ---- parameters ---- */

struct parameter_list {
    CT_VEC(struct ptx_variable *) variables;
    CT_VEC(struct ptx_register *) registers;
};

/* parameters: ( parameter , ... ) or ( ) */
static bool parse_parameters(struct ptx_parser *p, bool declare, struct parameter_list *list)
{
    struct ptx_variable *variable;
    struct ptx_register *reg;

    if (!ptx_expect(p, '(', "'('"))
        return false;
    while (!ptx_at(p, ')')) {
        if (!ptx_parse_parameter(p, declare, &variable, &reg))
            return false;
        variable->index = list->variables.n;
        *CT_PUSH(p->arena, &list->variables) = variable;
        *CT_PUSH(p->arena, &list->registers) = reg;
        if (!ptx_accept(p, ','))
            break;
    }
    return ptx_expect(p, ')', "')' or ','");
}

static bool parse_results(struct ptx_parser *p, bool declare, struct ptx_function *function)
{
    struct parameter_list list = {0};

    if (!ptx_at(p, '('))
        return true;
    if (!parse_parameters(p, declare, &list))
        return false;
    function->results = list.variables.v;
    function->result_regs = list.registers.v;
    function->n_results = list.variables.n;
    return true;
}

static bool parse_inputs(struct ptx_parser *p, bool declare, struct ptx_function *function)
{
    struct parameter_list list = {0};

    if (!ptx_at(p, '('))
        return true;
    if (!parse_parameters(p, declare, &list))
        return false;
    function->params = list.variables.v;
    function->param_regs = list.registers.v;
    function->n_params = list.variables.n;
    return true;
}

/* ---- directives between the parameters and the body ---- */

/* extent: count , ... : up to three numbers; missing ones are 1 */
static bool parse_extent(struct ptx_parser *p, uint32_t extent[3])
{
    extent[0] = extent[1] = extent[2] = 1;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t value;

        if (!ptx_parse_count(p, "the number of threads", 1, UINT32_MAX, &value))
            return false;
        extent[i] = (uint32_t)value;
        if (!ptx_accept(p, ','))
            return true;
    }
    return ptx_unexpected(p, "at most three numbers");
}

static bool parse_number(struct ptx_parser *p, uint32_t *out)
{
    uint64_t value;

    if (!ptx_parse_count(p, "the number", 0, UINT32_MAX, &value))
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool parse_tuning(struct ptx_parser *p, struct ptx_function *function)
{
    const struct ptx_token word = p->token;
    uint32_t ignored[1];
    bool managed, ok;

    if (ptx_skip_debug(p, &ok))
        return ok;
    ptx_advance(p);
    switch (word.name->directive) {
    case PTX_DIR_MAXNTID:
        return parse_extent(p, function->max_ntid);
    case PTX_DIR_REQNTID:
        return parse_extent(p, function->req_ntid);
    case PTX_DIR_REQNCTAPERCLUSTER:
        return parse_extent(p, function->cluster);
    case PTX_DIR_MINNCTAPERSM:
        return parse_number(p, &function->min_nctapersm);
    case PTX_DIR_MAXNREG:
        return parse_number(p, &function->max_nreg);
    case PTX_DIR_MAXCLUSTERRANK:
        return parse_number(p, &function->max_cluster);
    case PTX_DIR_MAXNCTAPERSM:
    case PTX_DIR_ABI_PRESERVE:
    case PTX_DIR_ABI_PRESERVE_CONTROL:
        return parse_number(p, ignored);
    case PTX_DIR_NORETURN:
        function->noreturn = true;
        return true;
    case PTX_DIR_EXPLICITCLUSTER:
        function->explicit_cluster = true;
        return true;
    case PTX_DIR_BLOCKSARECLUSTERS:
        function->blocks_are_clusters = true;
        return true;
    case PTX_DIR_ATTRIBUTE:
        return ptx_parse_attributes(p, &managed);
    default:
        return ptx_fail(p, word.where, "'%.*s' is not a function directive", PTX_SHOW(word.text, word.length));
    }
}

static bool parse_tunings(struct ptx_parser *p, struct ptx_function *function)
{
    while (ptx_at(p, PTX_TOK_WORD))
        if (!parse_tuning(p, function))
            return false;
    return true;
}

/* ---- one function ---- */

/* Looks ahead for the function's name, which follows its results: it must be known before them, since they belong to its scope. */
static bool find_function_name(const struct ptx_parser *p, struct ptx_token *name)
{
    struct ptx_lexer lexer = p->lexer;
    struct ptx_token token = p->token;

    if (token.kind == '(') {
        while (token.kind != ')' && token.kind != PTX_TOK_END && token.kind != '{' && token.kind != ';')
            token = ptx_lex(&lexer);
        token = ptx_lex(&lexer);
    }
    *name = token;
    return token.kind == PTX_TOK_NAME;
}

static struct ptx_function *create_function(struct ptx_parser *p, const struct ptx_token *name)
{
    struct ptx_function *function = CT_ARENA_NEW(p->arena, struct ptx_function);

    function->name = ptx_keep_name(p->arena, name->name);
    function->where = name->where;
    return function;
}

/* The function that the header describes: a new one, or that of an earlier declaration. If that has a body already, a temporary one is
 * created, so that the duplicate can be parsed. */
static struct ptx_function *open_function(struct ptx_parser *p, const struct ptx_token *name, bool is_entry)
{
    struct ptx_symbol *symbol = name->name->symbol;
    struct ptx_function *function;

    if (symbol && symbol->kind == PTX_SYM_FUNC) {
        if (symbol->function->is_entry != is_entry) {
            ptx_fail(p, name->where, "'%s' is declared differently in line %u", name->name->text, symbol->function->where.line);
            return NULL;
        }
        return symbol->function->has_body ? create_function(p, name) : symbol->function;
    }
    if (!(symbol = ptx_declare(p, PTX_SYM_FUNC, name)))
        return NULL;
    function = symbol->function = create_function(p, name);
    function->is_entry = is_entry;
    *CT_PUSH(&p->compilation->arena, &p->module->functions) = function;
    return function;
}

static bool parse_header(struct ptx_parser *p, struct ptx_function *function)
{
    const bool was_declared = function->n_params || function->n_results;
    const uint32_t n_params = function->n_params, n_results = function->n_results;
    struct ptx_token name;

    if (!function->is_entry && !parse_results(p, true, function))
        return false;
    if (!ptx_expect_name(p, &name, "the name of a function") || !parse_inputs(p, true, function))
        return false;
    if (was_declared && (function->n_params != n_params || function->n_results != n_results))
        return ptx_fail(p, name.where, "'%s' is declared with different parameters in line %u", function->name, function->where.line);
    function->where = name.where;
    function->n_header_params = function->n_params;
    return parse_tunings(p, function);
}

static bool parse_definition(struct ptx_parser *p, struct ptx_function *function)
{
    const struct ptx_symbol *symbol = ptx_names_find(p->names, function->name, strlen(function->name))->symbol;

    while (symbol && symbol->depth > 0)
        symbol = symbol->outer;
    if (symbol && symbol->function != function)
        return ptx_fail(p, function->where, "function '%s' is already defined in line %u", function->name, symbol->function->where.line);
    if (function->linkage == PTX_LINK_EXTERN)
        return ptx_fail(p, function->where, "function '%s' is .extern and has a body", function->name);
    function->has_body = true;
    function->text = p->module;
    function->body = ptx_lexer_position(&p->lexer, &p->token);
    if (!ptx_parse_body(p))
        return false;
    function->n_instructions = p->body.instructions.n;
    if (!p->compilation->n_errors)
        p->visit(p->compilation, p->module, function, &p->body);
    return true;
}

static void drop_body(struct ptx_parser *p)
{
    ct_arena_reset(p->body.arena);
    p->body = (struct ptx_body){.arena = p->body.arena};
}

/* function: (.entry | .func [results]) name [parameters] directives ( body | ; ) */
bool ptx_parse_function(struct ptx_parser *p, enum ptx_linkage linkage)
{
    const bool is_entry = ptx_at_directive(p, PTX_DIR_ENTRY);
    struct ptx_function *function, early = {0};
    struct ptx_token name;
    bool ok;

    ptx_advance(p);
    if (!parse_tunings(p, &early)) /* .func .attribute(...) .noreturn name */
        return false;
    if (!find_function_name(p, &name))
        return ptx_unexpected(p, "the name of a function");
    if (!(function = open_function(p, &name, is_entry)))
        return false;
    function->linkage = linkage;
    function->noreturn |= early.noreturn;
    p->function = p->defined = function;
    drop_body(p);
    ptx_scope_push(p);
    ok = parse_header(p, function);
    if (ok && ptx_at(p, '{'))
        ok = parse_definition(p, function);
    else if (ok)
        ok = ptx_expect(p, ';', "'{' or ';'");
    if (ok) {
        ptx_scope_pop(p);
        p->function = p->defined = NULL;
    }
    return ok;
}

static void declare_parameter(struct ptx_parser *p, struct ptx_variable *variable, struct ptx_register *reg)
{
    struct ptx_symbol *symbol = ptx_declare_again(p, reg ? PTX_SYM_REG : PTX_SYM_VAR, variable->name);

    if (reg)
        *CT_PUSH(p->body.arena, &p->body.registers) = reg;
    if (symbol && reg)
        symbol->reg = reg;
    else if (symbol)
        symbol->variable = variable;
}

void ptx_declare_parameters(struct ptx_parser *p)
{
    const struct ptx_function *function = p->function;

    for (uint32_t i = 0; i < function->n_results; i++)
        declare_parameter(p, function->results[i], function->result_regs[i]);
    for (uint32_t i = 0; i < function->n_header_params; i++)
        declare_parameter(p, function->params[i], function->param_regs[i]);
}

/* prototype: .callprototype [results] _ [parameters] directives ; */
bool ptx_parse_prototype(struct ptx_parser *p, const struct ptx_token *name)
{
    struct ptx_symbol *symbol = ptx_declare(p, PTX_SYM_PROTOTYPE, name);
    struct ptx_token sink;

    ptx_advance(p);
    if (!symbol)
        return false;
    symbol->function = create_function(p, name);
    symbol->function->is_prototype = true;
    return parse_results(p, false, symbol->function) && ptx_expect_name(p, &sink, "'_'") && parse_inputs(p, false, symbol->function) &&
           parse_tunings(p, symbol->function) && ptx_expect(p, ';', "';' after the prototype");
}

/* ---- aliases ---- */

static struct ptx_function *expect_function(struct ptx_parser *p)
{
    struct ptx_token name;
    const struct ptx_symbol *symbol;

    if (!ptx_expect_name(p, &name, "the name of a function"))
        return NULL;
    symbol = name.name->symbol;
    if (symbol && symbol->kind == PTX_SYM_FUNC)
        return symbol->function;
    ptx_fail(p, name.where, "'%.*s' is not a declared function", PTX_SHOW(name.text, name.length));
    return NULL;
}

/* alias: .alias name , target ; */
bool ptx_parse_alias(struct ptx_parser *p)
{
    const struct ct_location where = p->token.where;
    struct ptx_alias alias;

    if (!(alias.alias = expect_function(p)) || !ptx_expect(p, ',', "','") || !(alias.target = expect_function(p)))
        return false;
    if (alias.alias->has_body || alias.alias->is_entry || alias.target->is_entry)
        return ptx_fail(p, where, "'%s' cannot be an alias of '%s'", alias.alias->name, alias.target->name);
    *CT_PUSH(&p->compilation->scratch, &p->aliases) = alias;
    return ptx_expect(p, ';', "';' after the alias");
}

void ptx_resolve_aliases(struct ptx_parser *p)
{
    for (uint32_t i = 0; i < p->aliases.n; i++) {
        struct ptx_function *alias = p->aliases.v[i].alias;
        const char *name = alias->name;
        const struct ct_location where = alias->where;
        const enum ptx_linkage linkage = alias->linkage;

        if (!p->aliases.v[i].target->has_body) {
            ptx_fail(p, where, "'%s' is an alias of '%s', which has no body", name, p->aliases.v[i].target->name);
            continue;
        }
        *alias = *p->aliases.v[i].target;
        alias->name = name;
        alias->where = where;
        alias->linkage = linkage;
    }
}
