/* SPDX-License-Identifier: Apache-2.0 */
/* A function's body: scopes, declarations, labels, instructions (PTX ISA, "Statements", "Control Flow Directives"). Nested braces are
 * counted, without recursion. After an error in a statement, parsing continues with the next one. */
#include "parse.h"

#include <string.h>

/* ---- labels and target lists */

static bool push_target(struct ptx_parser *p, const struct ptx_token *name, struct ptx_targets *targets, bool labels, uint32_t *cap)
{
    struct ptx_symbol *symbol;
    uint32_t n = targets->n;

    if (n == *cap) {
        uint32_t grown = *cap;

        if (labels)
            ct_arena_grow(p->arena, (void **)&targets->labels, &grown, n, sizeof *targets->labels);
        else
            ct_arena_grow(p->arena, (void **)&targets->functions, &grown, n, sizeof *targets->functions);
        *cap = grown;
    }
    targets->n++;
    if (labels) {
        targets->labels[n] = ptx_label_use(p, name);
        return true;
    }
    symbol = ptx_lookup(p, name->name);
    if (!symbol || symbol->kind != PTX_SYM_FUNC)
        return ptx_fail(p, name->where, "'%.*s' is not a declared function", PTX_SHOW(name->text, name->length));
    targets->functions[n] = symbol->function;
    return true;
}

/* targets: name : (.branchtargets | .calltargets) name , ... ; */
static bool parse_targets(struct ptx_parser *p, const struct ptx_token *name)
{
    const bool labels = ptx_at_directive(p, PTX_DIR_BRANCHTARGETS);
    struct ptx_symbol *symbol = ptx_declare(p, PTX_SYM_TARGETS, name);
    struct ptx_token target;
    uint32_t cap = 0;

    ptx_advance(p);
    if (!symbol)
        return false;
    symbol->targets = CT_ARENA_NEW(p->arena, struct ptx_targets);
    symbol->targets->name = name->name->text;
    symbol->targets->where = name->where;
    do {
        if (!ptx_expect_name(p, &target, "a target") || !push_target(p, &target, symbol->targets, labels, &cap))
            return false;
    } while (ptx_accept(p, ','));
    *CT_PUSH(p->arena, &p->body.targets) = symbol->targets;
    return ptx_expect(p, ';', "';' after the list of targets");
}

/* label: name : , or the name of a target list or prototype. The current token is the name. */
static bool parse_label(struct ptx_parser *p)
{
    const struct ptx_token name = p->token;

    ptx_advance(p);
    ptx_advance(p); /* the ':', which the caller has seen */
    if (ptx_at_directive(p, PTX_DIR_BRANCHTARGETS) || ptx_at_directive(p, PTX_DIR_CALLTARGETS))
        return parse_targets(p, &name);
    if (ptx_at_directive(p, PTX_DIR_CALLPROTOTYPE))
        return ptx_parse_prototype(p, &name);
    return ptx_label_define(p, &name);
}

/* ---- instructions ---- */

/* guard: @ [!] predicate */
static bool parse_guard(struct ptx_parser *p, struct ptx_instruction *insn)
{
    struct ptx_token name;
    struct ptx_symbol *symbol;

    if (!ptx_accept(p, '@'))
        return true;
    insn->guard_negated = ptx_accept(p, '!');
    if (!ptx_expect_name(p, &name, "a predicate register"))
        return false;
    symbol = ptx_lookup(p, name.name);
    if (!symbol)
        return ptx_fail(p, name.where, "'%.*s' is not declared", PTX_SHOW(name.text, name.length));
    if (symbol->kind != PTX_SYM_REG || symbol->reg->type != PTX_PRED || symbol->reg->vector)
        return ptx_fail(p, name.where, "'%.*s' is not a predicate register", PTX_SHOW(name.text, name.length));
    insn->guard = symbol->reg;
    return true;
}

/* Parses an opcode and its modifiers. They are usually one piece of text, but white space is allowed before each modifier. */
static struct ptx_name *parse_spelling(struct ptx_parser *p)
{
    const struct ptx_token opcode = p->token;
    struct ptx_name *text = ptx_lex_spelling(&p->lexer, &opcode);

    ptx_advance(p);
    while (ptx_at(p, PTX_TOK_WORD)) {
        const char *joined = ct_arena_printf(&p->compilation->scratch, "%s.%s", text->text, p->token.name->text);

        if (text->length > 1000)
            break;
        text = ptx_names_find(p->names, joined, strlen(joined));
        ptx_advance(p);
    }
    return text;
}

static bool spelling_error(struct ptx_parser *p, struct ct_location where, const struct ptx_name *text)
{
    const struct ptx_spelling *spelling = text->spelling;

    where.column += spelling->at;
    return ptx_fail(p, where, "%s: '%.*s' in '%.*s'", spelling->error, PTX_SHOW(text->text + spelling->at, spelling->length),
                    PTX_SHOW(text->text, text->length));
}

static bool parse_operands(struct ptx_parser *p, struct ptx_instruction *insn)
{
    struct ptx_operand operand;

    p->operands.n = 0;
    if (insn->opcode == PTX_OP_CALL)
        return ptx_parse_call(p, insn);
    if (!ptx_at(p, ';')) {
        do {
            if (!ptx_parse_instruction_operand(p, insn, &operand))
                return false;
            *CT_PUSH(&p->compilation->scratch, &p->operands) = operand;
        } while (ptx_accept(p, ','));
    }
    insn->operands = ptx_take_operands(p, 0, &insn->n_operands);
    return true;
}

/* instruction: [guard] opcode{.modifier} [operand , ...] ; */
static bool parse_instruction(struct ptx_parser *p)
{
    struct ptx_instruction insn = {.where = p->token.where};
    const struct ptx_spelling *spelling;
    struct ptx_name *text;

    if (!parse_guard(p, &insn))
        return false;
    insn.where = p->token.where;
    if (!ptx_at(p, PTX_TOK_NAME))
        return ptx_unexpected(p, "an instruction");
    text = parse_spelling(p);
    spelling = ptx_decode_spelling(p, text);
    if (spelling->error)
        return spelling_error(p, insn.where, text);
    insn.opcode = p->opcode = spelling->opcode;
    insn.mods = spelling->mods;
    memcpy(insn.types, spelling->types, sizeof insn.types);
    insn.n_types = spelling->n_types;
    insn.text = text->text;
    p->mark_unsupported = false;
    p->depth = 0;
    if (!parse_operands(p, &insn))
        return false;
    if (!ptx_at(p, ';'))
        return ptx_unexpected(p, "',' or ';'");
    if (!ptx_check_instruction(p, &insn))
        return false;
    if (p->mark_unsupported && !insn.mods.unsupported)
        insn.mods.unsupported = 1;
    *CT_PUSH(p->arena, &p->body.instructions) = insn;
    ptx_advance(p);
    return true;
}

/* ---- statements ---- */

static bool parse_word_statement(struct ptx_parser *p)
{
    bool ok;

    if (ptx_at_directive(p, PTX_DIR_REG))
        return ptx_parse_registers(p);
    if (ptx_space_of_directive((enum ptx_directive)p->token.name->directive) != PTX_SPACE_NONE)
        return ptx_parse_variables(p, PTX_LINK_NONE);
    if (ptx_skip_debug(p, &ok))
        return ok;
    return ptx_unexpected(p, "a statement");
}

static bool parse_statement(struct ptx_parser *p)
{
    if (ptx_at(p, PTX_TOK_NAME))
        return ptx_lex_peek(&p->lexer) == ':' ? parse_label(p) : parse_instruction(p);
    if (ptx_at(p, PTX_TOK_WORD))
        return parse_word_statement(p);
    if (ptx_at(p, '@'))
        return parse_instruction(p);
    return ptx_accept(p, ';') || ptx_unexpected(p, "a statement");
}

static bool open_scope(struct ptx_parser *p)
{
    if (p->scopes.n > PTX_MAX_DEPTH)
        return ptx_fail(p, p->token.where, "nested too deeply at '{'");
    ptx_scope_push(p);
    ptx_advance(p);
    return true;
}

bool ptx_parse_body(struct ptx_parser *p)
{
    const struct ct_location where = p->token.where;
    const uint32_t outside = p->scopes.n;

    p->arena = p->body.arena;
    if (!open_scope(p))
        return false;
    while (p->scopes.n > outside) {
        if (ptx_at(p, PTX_TOK_END))
            return ptx_fail(p, where, "unmatched '{'");
        if (ptx_at(p, '{')) {
            if (!open_scope(p))
                return false;
        } else if (ptx_at(p, '}')) {
            ptx_scope_pop(p);
            ptx_advance(p);
        } else if (!parse_statement(p)) {
            ptx_recover(p);
        }
    }
    ptx_labels_resolve(p);
    p->arena = &p->compilation->arena;
    return true;
}
