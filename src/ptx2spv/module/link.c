/* SPDX-License-Identifier: Apache-2.0 */
/* link: see link.h. Names are resolved as trees are added; references are bound at the end, when all names are resolved. */
#include "link.h"

#include "module.h"

#include <stdlib.h>
#include <string.h>

#define INITIAL_SLOTS 256u

/* The precedence of a declaration; of several declarations with the same precedence the first one is used. */
enum strength { UNKNOWN, DECLARED, WEAK, COMMON, STRONG };

/* A function or a variable of a tree. */
struct entity {
    enum strength strength;
    struct ptx_function *function; /* one of the two is set */
    struct ptx_variable *variable;
};

struct ct_symbol {
    const char *name;
    uint32_t hash;
    uint32_t provider;      /* index of the first unit on demand that defines it, + 1; 0 none */
    struct entity resolved; /* the declaration with the highest precedence so far */
    bool is_reported;       /* whether it was reported as undefined */
};

/* ---- the symbol table ---- */

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash ^ hash >> 15;
}

static struct ct_symbol **find_slot(struct ct_symbol **slots, uint32_t n_slots, const char *name, uint32_t hash)
{
    uint32_t i = hash & (n_slots - 1);

    while (slots[i] && (slots[i]->hash != hash || strcmp(slots[i]->name, name)))
        i = (i + 1) & (n_slots - 1);
    return &slots[i];
}

static void grow(struct ct_link *link)
{
    const uint32_t n_slots = link->n_slots ? link->n_slots * 2 : INITIAL_SLOTS;
    struct ct_symbol **slots = CT_ARENA_ARRAY(&link->compilation->arena, struct ct_symbol *, n_slots);

    for (uint32_t i = 0; i < link->n_slots; i++)
        if (link->slots[i])
            *find_slot(slots, n_slots, link->slots[i]->name, link->slots[i]->hash) = link->slots[i];
    link->slots = slots;
    link->n_slots = n_slots;
}

static struct ct_symbol *intern(struct ct_link *link, const char *name)
{
    const uint32_t hash = hash_name(name);
    struct ct_symbol **slot;

    if (2 * link->n_symbols >= link->n_slots)
        grow(link);
    slot = find_slot(link->slots, link->n_slots, name, hash);
    if (!*slot) {
        *slot = CT_ARENA_NEW(&link->compilation->arena, struct ct_symbol);
        (*slot)->name = name;
        (*slot)->hash = hash;
        link->n_symbols++;
    }
    return *slot;
}

/* ---- resolution of names ---- */

/* Its strength is UNKNOWN if the function is local to its text. */
static struct entity entity_of_function(struct ptx_function *function)
{
    struct entity entity = {.function = function};

    if (!function->has_body)
        entity.strength = DECLARED;
    else if (function->linkage != PTX_LINK_NONE)
        entity.strength = function->linkage == PTX_LINK_WEAK ? WEAK : STRONG;
    return entity;
}

static struct entity entity_of_variable(struct ptx_variable *variable)
{
    static const enum strength strengths[] = {
        [PTX_LINK_NONE] = UNKNOWN, [PTX_LINK_EXTERN] = DECLARED, [PTX_LINK_VISIBLE] = STRONG,
        [PTX_LINK_WEAK] = WEAK,    [PTX_LINK_COMMON] = COMMON,
    };

    return (struct entity){.strength = strengths[variable->linkage], .variable = variable};
}

static struct ct_location where_of(const struct entity *entity)
{
    return entity->function ? entity->function->where : entity->variable->where;
}

static const char *input_name(const struct ct_link *link, struct ct_location where)
{
    const char *name = where.source < link->compilation->n_sources ? link->compilation->sources[where.source].name : NULL;

    return name ? name : ct_arena_printf(&link->compilation->scratch, "input %u", where.source + 1u);
}

static bool report_conflict(const struct ct_link *link, const struct ct_symbol *symbol, const struct entity *entity, const char *what,
                            const char *relation)
{
    const struct ct_location where = where_of(entity);

    return ct_error(link->compilation, where, PTX2SPV_MULTIPLY_DEFINED, "%s '%s' in '%s', first %s in '%s'", what, symbol->name,
                    input_name(link, where), relation, input_name(link, where_of(&symbol->resolved)));
}

static bool sizes_differ(const struct ptx_variable *a, const struct ptx_variable *b)
{
    return !a->incomplete && !b->incomplete && a->size_bytes != b->size_bytes && a->linkage != PTX_LINK_COMMON &&
           b->linkage != PTX_LINK_COMMON;
}

/* ptxas accepts any prototype of a function that the device provides; `build` adapts the calls. */
static bool is_system_entity(const struct entity *entity)
{
    return entity->function->is_system || ptx_is_system_function(entity->function->name);
}

static bool check_compatible(const struct ct_link *link, const struct ct_symbol *symbol, const struct entity *entity)
{
    const struct entity *before = &symbol->resolved;

    if (!before->function != !entity->function || (before->variable && before->variable->space != entity->variable->space))
        return report_conflict(link, symbol, entity, "Memory space doesn't match for", "specified");
    if (before->function &&
        (before->function->is_entry != entity->function->is_entry ||
         !(is_system_entity(before) || is_system_entity(entity) || ptx_same_signature(before->function, entity->function))))
        return report_conflict(link, symbol, entity, "Prototype doesn't match for", "specified");
    if (before->variable && sizes_differ(before->variable, entity->variable))
        return report_conflict(link, symbol, entity, "Size doesn't match for", "specified");
    if (before->strength == STRONG && entity->strength == STRONG)
        return report_conflict(link, symbol, entity, "Multiple definition of", "defined");
    return true;
}

/* The larger one is used; but one with an initial value must be the largest of all. */
static bool merge_common(const struct ct_link *link, struct ct_symbol *symbol, const struct entity *entity)
{
    const struct ptx_variable *before = symbol->resolved.variable, *now = entity->variable;

    if (before->n_inits && now->n_inits)
        return report_conflict(link, symbol, entity, "Multiple definition of", "defined");
    if ((before->n_inits && now->size_bytes > before->size_bytes) || (now->n_inits && now->size_bytes < before->size_bytes))
        return report_conflict(link, symbol, entity, "Size doesn't match for", "specified");
    if (now->n_inits || now->size_bytes > before->size_bytes)
        symbol->resolved = *entity;
    return true;
}

/* Gives both the stricter alignment of the two. */
static void merge_alignment(struct ptx_variable *a, struct ptx_variable *b)
{
    if (a && b)
        a->align = b->align = a->align > b->align ? a->align : b->align;
}

static bool add_symbol(struct ct_link *link, const char *name, struct entity entity)
{
    struct ct_symbol *symbol = intern(link, name);
    struct entity *resolved = &symbol->resolved;

    if (entity.function)
        entity.function->symbol = symbol;
    else
        entity.variable->symbol = symbol;
    if (resolved->strength == UNKNOWN && entity.strength == DECLARED)
        *CT_PUSH(&link->compilation->arena, &link->undefined) = symbol;
    if (resolved->strength == UNKNOWN) {
        *resolved = entity;
        return true;
    }
    if (!check_compatible(link, symbol, &entity))
        return false;
    merge_alignment(resolved->variable, entity.variable);
    if (resolved->strength == COMMON && entity.strength == COMMON)
        return merge_common(link, symbol, &entity);
    if (entity.strength > resolved->strength)
        *resolved = entity;
    return true;
}

/* Calls visit for every global name of a tree. */
static bool for_each_entity(struct ct_link *link, uint32_t unit, bool (*visit)(struct ct_link *, uint32_t, const char *, struct entity))
{
    const struct ptx_module *tree = link->units.v[unit].tree;

    for (uint32_t i = 0; i < tree->functions.n; i++) {
        const struct entity entity = entity_of_function(tree->functions.v[i]);

        if (entity.strength != UNKNOWN && !visit(link, unit, tree->functions.v[i]->name, entity))
            return false;
    }
    for (uint32_t i = 0; i < tree->variables.n; i++) {
        const struct entity entity = entity_of_variable(tree->variables.v[i]);

        if (entity.strength != UNKNOWN && !visit(link, unit, tree->variables.v[i]->name, entity))
            return false;
    }
    return true;
}

static bool visit_included(struct ct_link *link, uint32_t unit, const char *name, struct entity entity)
{
    (void)unit;
    return add_symbol(link, name, entity);
}

static bool visit_on_demand(struct ct_link *link, uint32_t unit, const char *name, struct entity entity)
{
    struct ct_symbol *symbol = intern(link, name);

    if (entity.strength != DECLARED && (!symbol->provider || link->units.v[unit].kind == CT_LINK_SYSTEM))
        symbol->provider = unit + 1;
    return true;
}

static bool include(struct ct_link *link, uint32_t unit)
{
    link->units.v[unit].is_included = true;
    return for_each_entity(link, unit, visit_included);
}

bool ct_link_add(struct ct_link *link, struct ptx_module *tree, enum ct_link_kind kind)
{
    const uint32_t unit = link->units.n;

    *CT_PUSH(&link->compilation->arena, &link->units) = (struct ct_link_unit){tree, kind, false};
    return kind != CT_LINK_TEXT ? for_each_entity(link, unit, visit_on_demand) : include(link, unit);
}

/* Includes units that define undefined symbols; each of them may add further undefined symbols. */
static bool include_needed_units(struct ct_link *link)
{
    for (uint32_t i = 0; i < link->undefined.n; i++) {
        const struct ct_symbol *symbol = link->undefined.v[i];

        if (symbol->resolved.strength == DECLARED && symbol->provider && !link->units.v[symbol->provider - 1].is_included &&
            !include(link, symbol->provider - 1))
            return false;
    }
    return true;
}

/* ---- references ---- */

/* An array whose size is given at the launch: every kernel may have one. */
static bool is_dynamic(const struct ptx_variable *variable)
{
    return variable->space == PTX_SPACE_SHARED && (variable->incomplete || variable->size_bytes == 0);
}

/* Handles .extern .shared .b8 s[256] in a single text. ptxas: "Unresolved extern variable in whole program compilation, ignoring extern
 * qualifier". */
static void define_shared(struct ct_link *link)
{
    uint32_t n_texts = 0;

    for (uint32_t i = 0; i < link->units.n; i++)
        n_texts += link->units.v[i].kind == CT_LINK_TEXT;
    for (uint32_t i = 0; n_texts == 1 && i < link->undefined.n; i++) {
        struct ct_symbol *symbol = link->undefined.v[i];
        struct ptx_variable *variable = symbol->resolved.variable;

        if (symbol->resolved.strength != DECLARED || !variable || variable->space != PTX_SPACE_SHARED || is_dynamic(variable))
            continue;
        variable->linkage = PTX_LINK_NONE;
        symbol->resolved.strength = STRONG;
        ct_note(link->compilation, variable->where, PTX2SPV_WARNING,
                "shared variable '%s' is .extern and has no definition; the declaration is used as its definition", variable->name);
    }
}

static bool is_undefined(const struct entity *resolved)
{
    if (resolved->strength != DECLARED)
        return false;
    return resolved->function ? !ptx_is_system_function(resolved->function->name) : !is_dynamic(resolved->variable);
}

static void report_undefined(const struct ct_link *link, struct ct_symbol *symbol, struct ct_location where)
{
    const char *kind = symbol->resolved.function ? "function" : "variable";

    if (symbol->is_reported)
        return;
    symbol->is_reported = true;
    if (link->units.n == 1)
        ct_error(link->compilation, where, PTX2SPV_UNDEFINED, "Unresolved extern %s '%s'", kind, symbol->name);
    else
        ct_error(link->compilation, where, PTX2SPV_UNDEFINED, "Undefined reference to '%s' in '%s'", symbol->name, input_name(link, where));
}

static void check_reference(const struct ct_link *link, struct ct_symbol *symbol, struct ct_location where)
{
    if (symbol && is_undefined(&symbol->resolved))
        report_undefined(link, symbol, where);
}

struct ptx_function *ct_linked_function(struct ptx_function *function)
{
    return function && function->symbol ? function->symbol->resolved.function : function;
}

static struct ptx_variable *linked_variable(struct ptx_variable *variable)
{
    return variable && variable->symbol ? variable->symbol->resolved.variable : variable;
}

static void bind_variables(const struct ct_link *link, struct ptx_variable *const *variables, uint32_t n)
{
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t i = 0; i < variables[v]->n_inits; i++) {
            struct ptx_init *init = &variables[v]->inits[i];

            if (init->function)
                check_reference(link, init->function->symbol, variables[v]->where);
            if (init->variable)
                check_reference(link, init->variable->symbol, variables[v]->where);
            init->function = ct_linked_function(init->function);
            init->variable = linked_variable(init->variable);
        }
}

static void check_body(const struct ct_link *link, const struct ptx_function *function)
{
    for (uint32_t i = 0; i < function->references.n; i++) {
        const struct ptx_reference *reference = &function->references.v[i];

        check_reference(link, reference->function ? reference->function->symbol : reference->variable->symbol, reference->where);
    }
}

static void bind_operand(struct ptx_operand *operand)
{
    operand->function = ct_linked_function(operand->function);
    operand->variable = linked_variable(operand->variable);
    for (uint32_t i = 0; i < operand->n_items; i++) /* the parser limits the depth of nesting */
        bind_operand(&operand->items[i]);
}

void ct_link_bind(struct ptx_body *body)
{
    for (uint32_t i = 0; i < body->instructions.n; i++)
        for (uint32_t o = 0; o < body->instructions.v[i].n_operands; o++)
            bind_operand(&body->instructions.v[i].operands[o]);
    for (uint32_t i = 0; i < body->targets.n; i++) {
        const struct ptx_targets *targets = body->targets.v[i];

        for (uint32_t t = 0; targets->functions && t < targets->n; t++)
            targets->functions[t] = ct_linked_function(targets->functions[t]);
    }
}

/* ---- the merged tree ---- */

static bool is_kept(const struct ptx_function *function)
{
    return !function->symbol || function->symbol->resolved.function == function;
}

/* An alias has the variables of its target, which is not kept if another definition has precedence. */
static void adopt_variables(struct ptx_function *function)
{
    for (uint32_t i = 0; i < function->variables.n; i++)
        if (!is_kept(function->variables.v[i]->function))
            function->variables.v[i]->function = function;
}

/* Collects the functions and variables of a tree, except those that another declaration replaces. */
static void gather(const struct ct_link *link, const struct ptx_module *tree, struct ptx_module *whole)
{
    struct ct_arena *arena = &link->compilation->arena;

    for (uint32_t i = 0; i < tree->functions.n; i++) {
        struct ptx_function *function = tree->functions.v[i];

        if (!is_kept(function))
            continue;
        adopt_variables(function);
        function->number = whole->functions.n;
        *CT_PUSH(arena, &whole->functions) = function;
    }
    for (uint32_t i = 0; i < tree->variables.n; i++) {
        struct ptx_variable *variable = tree->variables.v[i];

        if (!variable->symbol || variable->symbol->resolved.variable == variable)
            *CT_PUSH(arena, &whole->variables) = variable;
    }
}

/* Merges the versions and targets of the program's own texts. Those of system functions are old, and say nothing about the program. */
static void gather_versions(const struct ptx_module *tree, struct ptx_module *whole)
{
    whole->isa_version = tree->isa_version > whole->isa_version ? tree->isa_version : whole->isa_version;
    whole->sm = tree->sm > whole->sm ? tree->sm : whole->sm;
    whole->oldest_sm = !whole->oldest_sm || tree->oldest_sm < whole->oldest_sm ? tree->oldest_sm : whole->oldest_sm;
    whole->address_bits = tree->address_bits;
}

struct ptx_module *ct_link_finish(struct ct_link *link)
{
    struct ptx_module *whole = CT_ARENA_NEW(&link->compilation->arena, struct ptx_module);

    if (!include_needed_units(link))
        return NULL;
    define_shared(link);
    for (uint32_t i = 0; i < link->units.n; i++) {
        const struct ct_link_unit *unit = &link->units.v[i];

        if (unit->is_included)
            gather(link, unit->tree, whole);
        if (unit->is_included && unit->kind != CT_LINK_SYSTEM)
            gather_versions(unit->tree, whole);
    }
    bind_variables(link, whole->variables.v, whole->variables.n);
    for (uint32_t i = 0; i < whole->functions.n; i++) {
        bind_variables(link, whole->functions.v[i]->variables.v, whole->functions.v[i]->variables.n);
        check_body(link, whole->functions.v[i]);
    }
    return link->compilation->n_errors ? NULL : whole;
}
