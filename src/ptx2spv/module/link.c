/* SPDX-License-Identifier: Apache-2.0 */
/* link: see link.h. Names first, as trees come; references last, when it is known what each name means. */
#include "link.h"

#include "module.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 256u

/* How much a declaration has to say about what a name means; of equal ones the first counts. */
enum strength { UNKNOWN, DECLARED, WEAK, COMMON, STRONG };

/* A function or a variable of some tree. */
struct entity {
    enum strength strength;
    struct ptx_function *function; /* one of the two */
    struct ptx_variable *variable;
};

struct ct_symbol {
    const char *name;
    uint32_t hash;
    uint32_t provider;     /* the first unit on demand that defines it, + 1; 0 none */
    struct entity meaning; /* so far */
    bool is_reported;      /* as undefined */
};

/* ---- the table of names ---- */

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
    const uint32_t n_slots = link->n_slots ? link->n_slots * 2 : FIRST_SLOTS;
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

/* ---- what names mean ---- */

/* UNKNOWN: not known outside of its text. */
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

static bool refuse(const struct ct_link *link, const struct ct_symbol *symbol, const struct entity *entity, const char *what,
                   const char *relation)
{
    const struct ct_location where = where_of(entity);

    return ct_error(link->compilation, where, PTX2SPV_MULTIPLY_DEFINED, "%s '%s' in '%s', first %s in '%s'", what, symbol->name,
                    input_name(link, where), relation, input_name(link, where_of(&symbol->meaning)));
}

static bool have_other_sizes(const struct ptx_variable *a, const struct ptx_variable *b)
{
    return !a->incomplete && !b->incomplete && a->size_bytes != b->size_bytes && a->linkage != PTX_LINK_COMMON &&
           b->linkage != PTX_LINK_COMMON;
}

/* ptxas takes any prototype of what the device provides; calls are made to fit where they are built. */
static bool is_of_system(const struct entity *entity)
{
    return entity->function->is_system || ptx_is_system_function(entity->function->name);
}

static bool check_fit(const struct ct_link *link, const struct ct_symbol *symbol, const struct entity *entity)
{
    const struct entity *before = &symbol->meaning;

    if (!before->function != !entity->function || (before->variable && before->variable->space != entity->variable->space))
        return refuse(link, symbol, entity, "Memory space doesn't match for", "specified");
    if (before->function && (before->function->is_entry != entity->function->is_entry ||
                             !(is_of_system(before) || is_of_system(entity) || ptx_same_signature(before->function, entity->function))))
        return refuse(link, symbol, entity, "Prototype doesn't match for", "specified");
    if (before->variable && have_other_sizes(before->variable, entity->variable))
        return refuse(link, symbol, entity, "Size doesn't match for", "specified");
    if (before->strength == STRONG && entity->strength == STRONG)
        return refuse(link, symbol, entity, "Multiple definition of", "defined");
    return true;
}

/* The larger one stays, but the one with an initial value must be the largest of all. */
static bool merge_common(const struct ct_link *link, struct ct_symbol *symbol, const struct entity *entity)
{
    const struct ptx_variable *before = symbol->meaning.variable, *now = entity->variable;

    if (before->n_inits && now->n_inits)
        return refuse(link, symbol, entity, "Multiple definition of", "defined");
    if ((before->n_inits && now->size_bytes > before->size_bytes) || (now->n_inits && now->size_bytes < before->size_bytes))
        return refuse(link, symbol, entity, "Size doesn't match for", "specified");
    if (now->n_inits || now->size_bytes > before->size_bytes)
        symbol->meaning = *entity;
    return true;
}

/* The one that stays is aligned for the others, too. */
static void merge_alignment(struct ptx_variable *a, struct ptx_variable *b)
{
    if (a && b)
        a->align = b->align = a->align > b->align ? a->align : b->align;
}

static bool enter(struct ct_link *link, const char *name, struct entity entity)
{
    struct ct_symbol *symbol = intern(link, name);
    struct entity *meaning = &symbol->meaning;

    if (entity.function)
        entity.function->symbol = symbol;
    else
        entity.variable->symbol = symbol;
    if (meaning->strength == UNKNOWN && entity.strength == DECLARED)
        *CT_PUSH(&link->compilation->arena, &link->wanted) = symbol;
    if (meaning->strength == UNKNOWN) {
        *meaning = entity;
        return true;
    }
    if (!check_fit(link, symbol, &entity))
        return false;
    merge_alignment(meaning->variable, entity.variable);
    if (meaning->strength == COMMON && entity.strength == COMMON)
        return merge_common(link, symbol, &entity);
    if (entity.strength > meaning->strength)
        *meaning = entity;
    return true;
}

/* Calls visit for everything of a tree that other texts may know. */
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

static bool visit_taken(struct ct_link *link, uint32_t unit, const char *name, struct entity entity)
{
    (void)unit;
    return enter(link, name, entity);
}

static bool visit_offered(struct ct_link *link, uint32_t unit, const char *name, struct entity entity)
{
    struct ct_symbol *symbol = intern(link, name);

    if (entity.strength != DECLARED && (!symbol->provider || link->units.v[unit].kind == CT_LINK_SYSTEM))
        symbol->provider = unit + 1;
    return true;
}

static bool take(struct ct_link *link, uint32_t unit)
{
    link->units.v[unit].is_taken = true;
    return for_each_entity(link, unit, visit_taken);
}

bool ct_link_add(struct ct_link *link, struct ptx_module *tree, enum ct_link_kind kind)
{
    const uint32_t unit = link->units.n;

    *CT_PUSH(&link->compilation->arena, &link->units) = (struct ct_link_unit){tree, kind, false};
    return kind != CT_LINK_TEXT ? for_each_entity(link, unit, visit_offered) : take(link, unit);
}

/* Takes units that define what is wanted; each may want more. */
static bool take_wanted(struct ct_link *link)
{
    for (uint32_t i = 0; i < link->wanted.n; i++) {
        const struct ct_symbol *symbol = link->wanted.v[i];

        if (symbol->meaning.strength == DECLARED && symbol->provider && !link->units.v[symbol->provider - 1].is_taken &&
            !take(link, symbol->provider - 1))
            return false;
    }
    return true;
}

/* ---- references ---- */

/* An array whose size the launch gives: every kernel may have one. */
static bool is_dynamic(const struct ptx_variable *variable)
{
    return variable->space == PTX_SPACE_SHARED && (variable->incomplete || variable->size_bytes == 0);
}

/* .extern .shared .b8 s[256] in a text alone. ptxas: "Unresolved extern variable in whole program compilation, ignoring extern qualifier".
 */
static void define_shared(struct ct_link *link)
{
    uint32_t n_texts = 0;

    for (uint32_t i = 0; i < link->units.n; i++)
        n_texts += link->units.v[i].kind == CT_LINK_TEXT;
    for (uint32_t i = 0; n_texts == 1 && i < link->wanted.n; i++) {
        struct ct_symbol *symbol = link->wanted.v[i];
        struct ptx_variable *variable = symbol->meaning.variable;

        if (symbol->meaning.strength != DECLARED || !variable || variable->space != PTX_SPACE_SHARED || is_dynamic(variable))
            continue;
        variable->linkage = PTX_LINK_NONE;
        symbol->meaning.strength = STRONG;
        ct_note(link->compilation, variable->where, PTX2SPV_WARNING,
                "shared variable '%s' is .extern and defined nowhere: it is taken for its definition", variable->name);
    }
}

static bool is_undefined(const struct entity *meaning)
{
    if (meaning->strength != DECLARED)
        return false;
    return meaning->function ? !ptx_is_system_function(meaning->function->name) : !is_dynamic(meaning->variable);
}

static void report_undefined(const struct ct_link *link, struct ct_symbol *symbol, struct ct_location where)
{
    const char *kind = symbol->meaning.function ? "function" : "variable";

    if (symbol->is_reported)
        return;
    symbol->is_reported = true;
    if (link->units.n == 1)
        ct_error(link->compilation, where, PTX2SPV_UNDEFINED, "Unresolved extern %s '%s'", kind, symbol->name);
    else
        ct_error(link->compilation, where, PTX2SPV_UNDEFINED, "Undefined reference to '%s' in '%s'", symbol->name, input_name(link, where));
}

static void bind_function(const struct ct_link *link, struct ptx_function **reference, struct ct_location where)
{
    struct ct_symbol *symbol = *reference ? (*reference)->symbol : NULL;

    if (!symbol)
        return;
    if (is_undefined(&symbol->meaning))
        report_undefined(link, symbol, where);
    *reference = symbol->meaning.function;
}

static void bind_variable(const struct ct_link *link, struct ptx_variable **reference, struct ct_location where)
{
    struct ct_symbol *symbol = *reference ? (*reference)->symbol : NULL;

    if (!symbol)
        return;
    if (is_undefined(&symbol->meaning))
        report_undefined(link, symbol, where);
    *reference = symbol->meaning.variable;
}

static void bind_operand(const struct ct_link *link, struct ptx_operand *operand)
{
    bind_function(link, &operand->function, operand->where);
    bind_variable(link, &operand->variable, operand->where);
    for (uint32_t i = 0; operand->targets && operand->targets->functions && i < operand->targets->n; i++)
        bind_function(link, &operand->targets->functions[i], operand->where);
    for (uint32_t i = 0; i < operand->n_items; i++) /* as deep as the parser lets them nest */
        bind_operand(link, &operand->items[i]);
}

static void bind_variables(const struct ct_link *link, struct ptx_variable *const *variables, uint32_t n)
{
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t i = 0; i < variables[v]->n_inits; i++) {
            bind_function(link, &variables[v]->inits[i].function, variables[v]->where);
            bind_variable(link, &variables[v]->inits[i].variable, variables[v]->where);
        }
}

static void bind_body(const struct ct_link *link, const struct ptx_function *function)
{
    bind_variables(link, function->variables.v, function->variables.n);
    for (uint32_t i = 0; i < function->n_body; i++)
        for (uint32_t o = 0; o < function->body[i].n_operands; o++)
            bind_operand(link, &function->body[i].operands[o]);
}

/* ---- the whole ---- */

static bool is_kept(const struct ptx_function *function)
{
    return !function->symbol || function->symbol->meaning.function == function;
}

/* An alias has the variables of its target, which may be the one that goes. */
static void adopt_variables(struct ptx_function *function)
{
    for (uint32_t i = 0; i < function->variables.n; i++)
        if (!is_kept(function->variables.v[i]->function))
            function->variables.v[i]->function = function;
}

/* Everything but what another text says better. */
static void gather(const struct ct_link *link, const struct ptx_module *tree, struct ptx_module *whole)
{
    struct ct_arena *arena = &link->compilation->arena;

    for (uint32_t i = 0; i < tree->functions.n; i++) {
        struct ptx_function *function = tree->functions.v[i];

        if (!is_kept(function))
            continue;
        adopt_variables(function);
        *CT_PUSH(arena, &whole->functions) = function;
    }
    for (uint32_t i = 0; i < tree->variables.n; i++) {
        struct ptx_variable *variable = tree->variables.v[i];

        if (!variable->symbol || variable->symbol->meaning.variable == variable)
            *CT_PUSH(arena, &whole->variables) = variable;
    }
}

/* The versions and targets of the program's own texts. System functions are written for old ones, which says nothing of the program. */
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

    if (!take_wanted(link))
        return NULL;
    define_shared(link);
    for (uint32_t i = 0; i < link->units.n; i++) {
        const struct ct_link_unit *unit = &link->units.v[i];

        if (unit->is_taken)
            gather(link, unit->tree, whole);
        if (unit->is_taken && unit->kind != CT_LINK_SYSTEM)
            gather_versions(unit->tree, whole);
    }
    bind_variables(link, whole->variables.v, whole->variables.n);
    for (uint32_t i = 0; i < whole->functions.n; i++)
        bind_body(link, whole->functions.v[i]);
    return link->compilation->n_errors ? NULL : whole;
}
