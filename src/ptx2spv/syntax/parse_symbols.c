/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes. A name points to its innermost symbol, and a symbol to the one that it hides; leaving a scope removes its symbols. So a
 * look-up takes constant time, however many names there are. Registers of a range (%r<100>) are created when they are first used. */
#include "parse.h"

#include <string.h>

void ptx_scope_push(struct ptx_parser *p)
{
    *CT_PUSH(&p->compilation->scratch, &p->scopes) = (struct ptx_scope_frame){0};
}

static void push_symbol(struct ptx_parser *p, struct ptx_symbol *symbol, uint32_t depth)
{
    struct ptx_scope_frame *frame = &p->scopes.v[depth];

    symbol->depth = depth;
    symbol->outer = symbol->name->symbol;
    symbol->name->symbol = symbol;
    symbol->next = frame->symbols;
    frame->symbols = symbol;
}

static const char *kind_name(int kind)
{
    switch (kind) {
    case PTX_SYM_VAR:
        return "variable";
    case PTX_SYM_FUNC:
        return "function";
    case PTX_SYM_LABEL:
        return "label";
    case PTX_SYM_PROTOTYPE:
        return "prototype";
    case PTX_SYM_TARGETS:
        return "target list";
    default:
        return "register";
    }
}

const char *ptx_keep_name(struct ct_arena *arena, const struct ptx_name *name)
{
    return ct_arena_strndup(arena, name->text, name->length);
}

struct ptx_symbol *ptx_declare(struct ptx_parser *p, int kind, const struct ptx_token *name)
{
    const uint32_t depth = p->scopes.n - 1;
    struct ptx_symbol *symbol, *before = name->name->symbol;

    if (before && before->depth == depth) {
        ptx_fail(p, name->where, "'%.*s' is already declared as a %s in line %u", PTX_SHOW(name->text, name->length),
                 kind_name(before->kind), before->where.line);
        return NULL;
    }
    if (name->name->sreg || (name->length == 1 && name->text[0] == '_')) {
        ptx_fail(p, name->where, "'%.*s' is reserved and cannot be declared", PTX_SHOW(name->text, name->length));
        return NULL;
    }
    symbol = CT_ARENA_NEW(&p->compilation->scratch, struct ptx_symbol);
    symbol->kind = kind;
    symbol->where = name->where;
    symbol->name = name->name;
    push_symbol(p, symbol, depth);
    return symbol;
}

struct ptx_symbol *ptx_declare_again(struct ptx_parser *p, int kind, const char *name)
{
    const struct ptx_token token = {.name = ptx_names_find(p->names, name, strlen(name)), .text = name, .length = (uint32_t)strlen(name)};

    return ptx_is_sink(&token) ? NULL : ptx_declare(p, kind, &token);
}

struct ptx_register *ptx_register_create(struct ptx_parser *p, const char *name, enum ptx_type type, unsigned vector)
{
    struct ptx_register *reg = CT_ARENA_NEW(p->arena, struct ptx_register);

    reg->name = name;
    reg->type = type;
    reg->vector = (uint8_t)vector;
    reg->index = p->body.registers.n;
    *CT_PUSH(p->body.arena, &p->body.registers) = reg;
    return reg;
}

/* Splits a register's name into a stem and the number at its end (without leading zeros, at most 9 digits). False: there is no number. */
static bool split_number(const struct ptx_name *name, uint32_t *stem, uint32_t *number)
{
    uint32_t at = name->length, scale = 1, value = 0;

    while (at > 0 && name->text[at - 1] >= '0' && name->text[at - 1] <= '9' && name->length - at < 9) {
        value += scale * (uint32_t)(name->text[--at] - '0');
        scale *= 10;
    }
    if (at == name->length || at == 0 || (name->text[at] == '0' && name->length - at > 1))
        return false;
    *stem = at;
    *number = value;
    return true;
}

/* A range that includes the name and is declared in a scope inside that of the name itself. NULL: none. */
static struct ptx_symbol *find_range(struct ptx_parser *p, const struct ptx_name *name, uint32_t *number)
{
    uint32_t stem;
    struct ptx_symbol *symbol;

    if (!split_number(name, &stem, number))
        return NULL;
    symbol = ptx_names_find(p->names, name->text, stem)->symbol;
    for (; symbol; symbol = symbol->outer)
        if (symbol->kind == PTX_SYM_RANGE && *number < symbol->range->count)
            break;
    return symbol && (!name->symbol || name->symbol->depth < symbol->depth) ? symbol : NULL;
}

struct ptx_symbol *ptx_lookup(struct ptx_parser *p, struct ptx_name *name)
{
    struct ptx_symbol *symbol = name->symbol, *range;
    uint32_t number;

    if (symbol && symbol->depth == p->scopes.n - 1)
        return symbol->kind == PTX_SYM_RANGE ? NULL : symbol;
    if (!p->function || !(range = find_range(p, name, &number)))
        return symbol && symbol->kind == PTX_SYM_RANGE ? NULL : symbol;
    symbol = CT_ARENA_NEW(&p->compilation->scratch, struct ptx_symbol);
    symbol->kind = PTX_SYM_REG;
    symbol->where = range->where;
    symbol->name = name;
    symbol->reg = ptx_register_create(p, name->text, range->range->type, range->range->vector);
    push_symbol(p, symbol, range->depth);
    return symbol;
}

/* ---- labels ---- */

static struct ptx_label_entry *label_create(struct ptx_parser *p, const struct ptx_token *name)
{
    struct ptx_label_entry *entry = CT_ARENA_NEW(p->arena, struct ptx_label_entry);

    entry->label.name = name->name->text;
    entry->label.where = name->where;
    entry->name = name->name;
    return entry;
}

struct ptx_label *ptx_label_use(struct ptx_parser *p, const struct ptx_token *name)
{
    struct ptx_scope_frame *frame = &p->scopes.v[p->scopes.n - 1];
    struct ptx_symbol *symbol = name->name->symbol;
    struct ptx_label_entry *entry;

    if (symbol && symbol->kind == PTX_SYM_LABEL && symbol->depth == p->scopes.n - 1)
        return &symbol->label->label;
    /* It may still be defined further down in this scope. */
    entry = label_create(p, name);
    *CT_PUSH(&p->compilation->scratch, &frame->pending) = entry;
    return &entry->label;
}

bool ptx_label_define(struct ptx_parser *p, const struct ptx_token *name)
{
    struct ptx_symbol *symbol = ptx_declare(p, PTX_SYM_LABEL, name);
    struct ptx_label_entry *entry;

    if (!symbol)
        return false;
    entry = symbol->label = label_create(p, name);
    entry->label.defined = true;
    entry->label.statement = p->body.instructions.n;
    *CT_PUSH(p->arena, &p->body.labels) = &entry->label;
    return true;
}

/* Binds the pending uses of the innermost scope to its labels, and moves the others to the enclosing scope. */
static void bind_pending_labels(struct ptx_parser *p, uint32_t depth, bool is_last)
{
    struct ptx_scope_frame *frame = &p->scopes.v[depth];

    for (uint32_t i = 0; i < frame->pending.n; i++) {
        struct ptx_label_entry *entry = frame->pending.v[i];
        const struct ptx_symbol *symbol = entry->name->symbol;

        if (symbol && symbol->kind == PTX_SYM_LABEL && symbol->depth == depth)
            entry->bound = symbol->label;
        else if (is_last)
            ptx_fail(p, entry->label.where, "label '%.*s' is not defined", PTX_SHOW(entry->label.name, entry->name->length));
        else
            *CT_PUSH(&p->compilation->scratch, &p->scopes.v[depth - 1].pending) = entry;
    }
}

void ptx_scope_pop(struct ptx_parser *p)
{
    const uint32_t depth = p->scopes.n - 1;

    bind_pending_labels(p, depth, depth <= 1);
    for (struct ptx_symbol *symbol = p->scopes.v[depth].symbols; symbol; symbol = symbol->next)
        symbol->name->symbol = symbol->outer;
    p->scopes.n--;
}

static struct ptx_label *bound_label(struct ptx_label *label)
{
    struct ptx_label_entry *entry = (struct ptx_label_entry *)label;

    return entry->bound ? &entry->bound->label : label;
}

void ptx_labels_resolve(struct ptx_parser *p)
{
    for (uint32_t i = 0; i < p->body.instructions.n; i++) {
        struct ptx_instruction *insn = &p->body.instructions.v[i];

        for (uint32_t k = 0; k < insn->n_operands; k++)
            if (insn->operands[k].kind == PTX_OPND_LABEL)
                insn->operands[k].label = bound_label(insn->operands[k].label);
    }
    for (uint32_t i = 0; i < p->body.targets.n; i++) {
        struct ptx_targets *targets = p->body.targets.v[i];

        for (uint32_t t = 0; targets->labels && t < targets->n; t++)
            targets->labels[t] = bound_label(targets->labels[t]);
    }
}
