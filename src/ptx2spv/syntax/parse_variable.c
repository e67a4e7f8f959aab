/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of variables, registers and parameters (PTX ISA, "Variables") and initializers. */
#include "parse.h"

#include <string.h>

/* The part of a declaration between the state space and the names. */
struct declaration {
    enum ptx_linkage linkage;
    enum ptx_space space;
    enum ptx_type type;
    unsigned vector;
    uint64_t align; /* 0: natural */
    bool managed, is_pointer;
    enum ptx2spv_reference reference;
};

struct dimensions {
    CT_VEC(uint64_t) counts; /* 0 if the first one is empty */
};

enum ptx_space ptx_space_of_directive(enum ptx_directive directive)
{
    switch (directive) {
    case PTX_DIR_CONST:
        return PTX_SPACE_CONST;
    case PTX_DIR_GLOBAL:
        return PTX_SPACE_GLOBAL;
    case PTX_DIR_LOCAL:
        return PTX_SPACE_LOCAL;
    case PTX_DIR_PARAM:
        return PTX_SPACE_PARAM;
    case PTX_DIR_SHARED:
        return PTX_SPACE_SHARED;
    case PTX_DIR_TEX:
        return PTX_SPACE_TEX;
    default:
        return PTX_SPACE_NONE;
    }
}

/* ---- the words before the names ---- */

static bool parse_align(struct ptx_parser *p, uint64_t *align)
{
    const struct ct_location where = p->token.where;

    if (!ptx_parse_count(p, "the alignment", 1, UINT32_C(1) << 30, align))
        return false;
    return (*align & (*align - 1)) == 0 || ptx_fail(p, where, "the alignment must be a power of two");
}

/* attribute: .attribute ( .managed | .unified [ (uuid1, uuid2) ] , ... ); the current token follows `.attribute` */
bool ptx_parse_attributes(struct ptx_parser *p, bool *managed)
{
    if (!ptx_expect(p, '(', "'(' after .attribute"))
        return false;
    do {
        if (ptx_accept_directive(p, PTX_DIR_MANAGED)) {
            *managed = true;
        } else if (ptx_accept_directive(p, PTX_DIR_UNIFIED)) {
            uint64_t uuid;

            if (ptx_accept(p, '(') && (!ptx_parse_count(p, "a UUID", 0, UINT64_MAX, &uuid) || !ptx_expect(p, ',', "','") ||
                                       !ptx_parse_count(p, "a UUID", 0, UINT64_MAX, &uuid) || !ptx_expect(p, ')', "')'")))
                return false;
        } else {
            return ptx_unexpected(p, "an attribute");
        }
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ')', "')' after the attributes");
}

/* pointer: .ptr [.const|.global|.local|.shared|...] [.align n]: describes what a kernel's parameter points to; has no effect here */
static bool parse_pointer_attribute(struct ptx_parser *p, struct declaration *d)
{
    uint64_t align;

    d->is_pointer = true;
    if (p->token.kind == PTX_TOK_WORD && ptx_space_of_directive((enum ptx_directive)p->token.name->directive) != PTX_SPACE_NONE)
        ptx_advance(p);
    return !ptx_accept_directive(p, PTX_DIR_ALIGN) || parse_align(p, &align);
}

static bool set_reference(struct declaration *d, enum ptx2spv_reference reference)
{
    d->reference = reference;
    d->type = PTX_B64;
    return true;
}

static bool parse_declaration_word(struct ptx_parser *p, struct declaration *d)
{
    const struct ptx_token word = p->token;

    ptx_advance(p);
    switch (word.name->directive) {
    case PTX_DIR_ALIGN:
        return parse_align(p, &d->align);
    case PTX_DIR_ATTRIBUTE:
        return ptx_parse_attributes(p, &d->managed);
    case PTX_DIR_PTR:
        return parse_pointer_attribute(p, d);
    case PTX_DIR_V2:
    case PTX_DIR_V4:
        d->vector = word.name->directive == PTX_DIR_V2 ? 2 : 4;
        return true;
    case PTX_DIR_TEXREF:
        return set_reference(d, PTX2SPV_TEXREF);
    case PTX_DIR_SAMPLERREF:
        return set_reference(d, PTX2SPV_SAMPLERREF);
    case PTX_DIR_SURFREF:
        return set_reference(d, PTX2SPV_SURFREF);
    default:
        break;
    }
    if (!word.name->type)
        return ptx_fail(p, word.where, "'%.*s' is not allowed in a declaration", PTX_SHOW(word.text, word.length));
    if (d->type)
        return ptx_fail(p, word.where, "a second type: '%.*s'", PTX_SHOW(word.text, word.length));
    d->type = (enum ptx_type)word.name->type;
    return true;
}

/* Parses types, alignment and attributes, in any order, up to the name. */
static bool parse_declaration(struct ptx_parser *p, struct declaration *d)
{
    while (p->token.kind == PTX_TOK_WORD)
        if (!parse_declaration_word(p, d))
            return false;
    if (!d->type)
        return ptx_unexpected(p, "a type");
    if (1u << d->type & (T(BF16) | T(BF16X2) | T(TF32) | T(F32X2) | T_I16X2 | T(E4M3X2) | T(E5M2X2)))
        return ptx_fail(p, p->token.where, "type .%s is legal in instructions only: registers and variables are declared as .b%u",
                        ptx_type_name(d->type), ptx_type_bits(d->type));
    if (d->type == PTX_PRED && d->space != PTX_SPACE_REG)
        return ptx_fail(p, p->token.where, "only registers can be predicates");
    if (d->vector && ptx_type_bits(d->type) * d->vector > 128)
        return ptx_fail(p, p->token.where, "a vector may have at most 128 bits");
    return true;
}

/* ---- sizes ---- */

/* dimensions: { [ count ] }; the first may be empty */
static bool parse_dimensions(struct ptx_parser *p, struct dimensions *dimensions)
{
    while (ptx_at(p, '[')) {
        uint64_t count = 0;

        ptx_advance(p);
        if (dimensions->counts.n == PTX_MAX_DEPTH)
            return ptx_fail(p, p->token.where, "too many dimensions");
        if (!(ptx_at(p, ']') && dimensions->counts.n == 0) && !ptx_parse_count(p, "the size of an array", 1, INT64_MAX, &count))
            return false;
        if (!ptx_expect(p, ']', "']'"))
            return false;
        *CT_PUSH(&p->compilation->scratch, &dimensions->counts) = count;
    }
    return true;
}

/* The product of the vector width and of the dimensions from `from` on, a number of scalars. False on overflow. */
static bool count_scalars(const struct declaration *d, const struct dimensions *dimensions, uint32_t from, uint64_t *out)
{
    *out = d->vector ? d->vector : 1;
    for (uint32_t i = from; i < dimensions->counts.n; i++)
        if (__builtin_mul_overflow(*out, dimensions->counts.v[i], out))
            return false;
    return true;
}

static bool set_size(struct ptx_parser *p, struct ptx_variable *variable, uint64_t count)
{
    variable->count = count;
    if (__builtin_mul_overflow(count, (uint64_t)ptx_type_bytes(variable->type), &variable->size_bytes) ||
        variable->size_bytes > INT64_MAX / 2)
        return ptx_fail(p, variable->where, "variable '%s' is too large", variable->name);
    return true;
}

/* ---- initializers ---- */

struct initializer {
    struct ptx_variable *variable;
    const struct declaration *declaration;
    const struct dimensions *dimensions;
    CT_VEC(struct ptx_init) items;
    uint64_t end; /* index of the last scalar that has an initializer, plus one */
};

/* reference: name | generic ( name ), then an offset */
static bool parse_reference(struct ptx_parser *p, struct ptx_init *init)
{
    struct ptx_token name;
    struct ptx_symbol *symbol;
    struct ptx_constant offset;

    if (!ptx_expect_name(p, &name, "a name or constant"))
        return false;
    if (name.length == 7 && memcmp(name.text, "generic", 7) == 0 && ptx_accept(p, '(')) {
        init->generic = true;
        if (!ptx_expect_name(p, &name, "a name") || !ptx_expect(p, ')', "')'"))
            return false;
    }
    symbol = ptx_lookup(p, name.name);
    if (!symbol || (symbol->kind != PTX_SYM_VAR && symbol->kind != PTX_SYM_FUNC))
        return ptx_fail(p, name.where, "'%.*s' is not the name of a variable or function", PTX_SHOW(name.text, name.length));
    init->kind = PTX_INIT_SYMBOL;
    if (symbol->kind == PTX_SYM_VAR)
        init->variable = symbol->variable;
    else
        init->function = symbol->function;
    if (!ptx_at(p, '+') && !ptx_at(p, '-'))
        return true;
    if (!ptx_parse_constant(p, &offset))
        return false;
    if (offset.is_float)
        return ptx_fail(p, name.where, "an offset must be an integer");
    init->bits = offset.bits;
    return true;
}

/* masked: 0xFF00 ( reference ): one byte of an address */
static bool parse_masked(struct ptx_parser *p, struct ptx_init *init)
{
    const struct ptx_token mask = p->token;
    unsigned shift = 0;

    while (shift < 8 && mask.bits != UINT64_C(0xff) << 8 * shift)
        shift++;
    if (shift == 8)
        return ptx_fail(p, mask.where, "a mask must select one byte: '%.*s'", PTX_SHOW(mask.text, mask.length));
    ptx_advance(p);
    init->byte_shift = (uint8_t)shift;
    init->byte_mask_bytes = 1;
    return ptx_expect(p, '(', "'('") && parse_reference(p, init) && ptx_expect(p, ')', "')'");
}

static bool check_reference(struct ptx_parser *p, struct ct_location where, enum ptx_type type, const struct ptx_init *init)
{
    const unsigned bits = ptx_type_bits(type);

    if (init->byte_mask_bytes)
        return bits == 8 || ptx_fail(p, where, "a byte of an address can initialize 8-bit types only");
    if (ptx_type_is_float(type) || bits < 32 || bits > 64)
        return ptx_fail(p, where, "an address does not fit in type .%s", ptx_type_name(type));
    return true;
}

static bool set_constant(struct ptx_parser *p, struct ct_location where, enum ptx_type type, const struct ptx_constant *value,
                         struct ptx_init *init)
{
    const bool to_float = ptx_type_is_float(type);

    if (to_float) {
        init->kind = PTX_INIT_FLOAT;
        init->bits = ptx_float_bits(type, value);
        return true;
    }
    init->kind = PTX_INIT_INT;
    init->bits = value->bits;
    if (!value->is_float)
        return true;
    /* Floating point literals are common in .b32 and .b64 arrays, as their bits. */
    if (type != PTX_B32 && type != PTX_B64)
        return ptx_fail(p, where, "a floating point constant cannot initialize type .%s", ptx_type_name(type));
    init->bits = ptx_float_bits(type == PTX_B32 ? PTX_F32 : PTX_F64, value);
    return true;
}

static bool parse_scalar(struct ptx_parser *p, struct initializer *into, uint64_t index)
{
    const struct ct_location where = p->token.where;
    const enum ptx_type type = into->variable->type;
    struct ptx_init init = {.index = index};
    struct ptx_constant value;

    if (ptx_at(p, PTX_TOK_NAME) && !p->token.name->sreg) {
        if (!parse_reference(p, &init) || !check_reference(p, where, type, &init))
            return false;
    } else if (ptx_at(p, PTX_TOK_INT) && ptx_lex_peek(&p->lexer) == '(') {
        if (!parse_masked(p, &init) || !check_reference(p, where, type, &init))
            return false;
    } else if (!ptx_parse_constant(p, &value) || !set_constant(p, where, type, &value, &init)) {
        return false;
    }
    *CT_PUSH(&p->compilation->scratch, &into->items) = init;
    if (index >= into->end)
        into->end = index + 1;
    return true;
}

/* The scalars that one pair of braces initializes. */
struct initializer_block {
    uint32_t level;        /* number of the dimension */
    uint64_t base, extent; /* scalars [base, base + extent) of the variable */
    uint64_t step;         /* number of scalars of an element in braces; 0: elements cannot have braces */
    uint64_t at;           /* the next scalar, relative to base */
};

static bool parse_list(struct ptx_parser *p, struct initializer *into, struct initializer_block *block);

/* element: a list of the next dimension or of a vector's components, or a scalar */
static bool parse_element(struct ptx_parser *p, struct initializer *into, struct initializer_block *block)
{
    const bool is_list = ptx_at(p, '{') && block->step;
    struct initializer_block inner = {.level = block->level + 1, .extent = block->step};

    if (is_list)
        block->at = (block->at + block->step - 1) / block->step * block->step;
    if (block->at >= block->extent)
        return ptx_fail(p, p->token.where, "too many initializers for '%s'", into->variable->name);
    inner.base = block->base + block->at;
    block->at += is_list ? block->step : 1;
    return is_list ? parse_list(p, into, &inner) : parse_scalar(p, into, inner.base);
}

/* list: { element , ... } */
static bool parse_list(struct ptx_parser *p, struct initializer *into, struct initializer_block *block)
{
    const uint32_t n_dimensions = into->dimensions->counts.n;

    if (!count_scalars(into->declaration, into->dimensions, block->level + 1, &block->step))
        return ptx_fail(p, p->token.where, "variable '%s' is too large", into->variable->name);
    if (block->level + (into->declaration->vector ? 0 : 1) >= n_dimensions)
        block->step = 0;
    ptx_advance(p);
    while (!ptx_at(p, '}')) {
        if (!parse_element(p, into, block))
            return false;
        if (!ptx_accept(p, ','))
            break;
    }
    return ptx_expect(p, '}', "'}' or ','");
}

/* Skips the braced fields of a sampler, { addr_mode_0 = wrap, ... }: NVIDIA's driver ignores them, too. */
static bool skip_reference_initializer(struct ptx_parser *p)
{
    if (!ptx_at(p, '{'))
        return ptx_unexpected(p, "'{'");
    return ptx_skip_braces(p);
}

static bool parse_initializer(struct ptx_parser *p, const struct declaration *d, const struct dimensions *dimensions,
                              struct ptx_variable *variable)
{
    struct initializer into = {.variable = variable, .declaration = d, .dimensions = dimensions};
    struct initializer_block whole = {.extent = variable->incomplete ? UINT64_MAX / 16 : variable->count};
    uint64_t inner;
    bool ok;

    if (d->space != PTX_SPACE_GLOBAL && d->space != PTX_SPACE_CONST)
        return ptx_fail(p, p->token.where, "only .global and .const variables may be initialized");
    if (d->reference)
        return skip_reference_initializer(p);
    if (ptx_at(p, '{'))
        ok = parse_list(p, &into, &whole);
    else if (variable->is_array || variable->vector)
        return ptx_unexpected(p, "'{'");
    else
        ok = parse_scalar(p, &into, 0);
    if (!ok)
        return false;
    variable->n_inits = into.items.n;
    variable->inits = CT_ARENA_ARRAY(&p->compilation->arena, struct ptx_init, into.items.n);
    if (into.items.n)
        memcpy(variable->inits, into.items.v, into.items.n * sizeof *into.items.v);
    if (!variable->incomplete)
        return true;
    variable->incomplete = false;
    if (!count_scalars(d, dimensions, 1, &inner) || inner == 0 || __builtin_add_overflow(into.end, inner - 1, &into.end))
        return ptx_fail(p, variable->where, "variable '%s' is too large", variable->name);
    return set_size(p, variable, into.end / inner * inner);
}

/* ---- variables ---- */

/* Until PTX ISA 1.3, a kernel declares its parameters in its body. */
static bool is_old_parameter(const struct ptx_parser *p, const struct declaration *d)
{
    return d->space == PTX_SPACE_PARAM && p->function && p->function->is_entry && p->module->isa_version < 14;
}

/* Whether the variable belongs to the module, and not to a body. */
static bool is_kept(const struct ptx_parser *p, const struct declaration *d)
{
    return !p->function || d->space == PTX_SPACE_GLOBAL || d->space == PTX_SPACE_CONST || is_old_parameter(p, d);
}

/* Parses the dimensions of a variable and initializes the variable. */
static bool make_variable(struct ptx_parser *p, const struct declaration *d, const struct ptx_token *name, struct dimensions *dimensions,
                          struct ptx_variable *variable)
{
    uint64_t count;

    *variable = (struct ptx_variable){.name = ptx_keep_name(is_kept(p, d) ? &p->compilation->arena : p->arena, name->name),
                                      .where = name->where,
                                      .linkage = d->linkage,
                                      .space = d->space,
                                      .type = d->type,
                                      .vector = (uint8_t)d->vector,
                                      .managed = d->managed,
                                      .function = p->function};
    if (d->reference)
        variable->space = PTX_SPACE_TEX;
    variable->reference = d->reference;
    variable->align = d->align ? (uint32_t)d->align : ptx_type_bytes(d->type) * (d->vector ? d->vector : 1);
    if (!parse_dimensions(p, dimensions))
        return false;
    variable->is_array = dimensions->counts.n > 0;
    variable->incomplete = variable->is_array && dimensions->counts.v[0] == 0;
    if (!count_scalars(d, dimensions, 0, &count))
        return ptx_fail(p, name->where, "variable '%s' is too large", variable->name);
    return set_size(p, variable, count);
}

/* The earlier declaration that this one may repeat, or NULL: an .extern declaration and the definition denote one variable. */
static struct ptx_variable *find_redeclared(struct ptx_parser *p, const struct declaration *d, const struct ptx_token *name)
{
    const struct ptx_symbol *symbol = name->name->symbol;

    if (p->function || !symbol || symbol->kind != PTX_SYM_VAR)
        return NULL;
    if (symbol->variable->linkage != PTX_LINK_EXTERN && d->linkage != PTX_LINK_EXTERN)
        return NULL;
    return symbol->variable;
}

static bool same_shape(const struct ptx_variable *a, const struct ptx_variable *b)
{
    return a->space == b->space && a->type == b->type && a->vector == b->vector && a->is_array == b->is_array &&
           (a->incomplete || b->incomplete || a->count == b->count);
}

/* Merges a declaration into the variable of an earlier one. */
static bool redeclare(struct ptx_parser *p, struct ptx_variable *before, const struct ptx_variable *now)
{
    if (!same_shape(before, now))
        return ptx_fail(p, now->where, "'%s' is declared differently in line %u", now->name, before->where.line);
    if (now->linkage != PTX_LINK_EXTERN)
        *before = *now;
    return true;
}

static void add_parameter(struct ptx_parser *p, struct ptx_variable *variable)
{
    struct ptx_function *function = p->defined;
    const uint32_t n = function->n_params;
    struct ptx_variable **params = CT_ARENA_ARRAY(&p->compilation->arena, struct ptx_variable *, n + 1);

    if (n)
        memcpy(params, function->params, n * sizeof *params);
    params[n] = variable;
    variable->index = n;
    function->params = params;
    function->param_regs = CT_ARENA_ARRAY(&p->compilation->arena, struct ptx_register *, n + 1); /* all NULL: parameters of kernels are not
                                                                                                    registers */
    function->n_params = n + 1;
}

static void record_variable(struct ptx_parser *p, const struct declaration *d, struct ptx_variable *variable)
{
    if (is_old_parameter(p, d)) {
        add_parameter(p, variable);
    } else if (!p->function) {
        variable->index = p->module->variables.n;
        *CT_PUSH(p->arena, &p->module->variables) = variable;
    } else if (is_kept(p, d)) {
        *CT_PUSH(&p->compilation->arena, &p->defined->variables) = variable;
    } else {
        variable->index = p->body.variables.n;
        *CT_PUSH(p->arena, &p->body.variables) = variable;
    }
}

/* The variable of a new symbol. If the body is parsed again, and the module has the variable, it is used; but what follows its name is parsed into
 * `made`. */
static struct ptx_variable *add_variable(struct ptx_parser *p, const struct declaration *d, struct ptx_symbol *symbol,
                                         struct ptx_variable *made)
{
    if (p->function && !p->defined && is_kept(p, d)) {
        symbol->variable = is_old_parameter(p, d) ? p->function->params[p->n_params++] : p->function->variables.v[p->n_variables++];
        return made;
    }
    symbol->variable = CT_ARENA_NEW(is_kept(p, d) ? &p->compilation->arena : p->arena, struct ptx_variable);
    *symbol->variable = *made;
    record_variable(p, d, symbol->variable);
    return symbol->variable;
}

static bool parse_variable(struct ptx_parser *p, const struct declaration *d)
{
    struct dimensions dimensions = {0};
    struct ptx_variable made, *variable;
    struct ptx_token name;
    struct ptx_symbol *symbol;

    if (!ptx_expect_name(p, &name, "the name of a variable") || !make_variable(p, d, &name, &dimensions, &made))
        return false;
    variable = find_redeclared(p, d, &name);
    if (variable) {
        if (!redeclare(p, variable, &made))
            return false;
    } else {
        if (!(symbol = ptx_declare(p, PTX_SYM_VAR, &name)))
            return false;
        variable = add_variable(p, d, symbol, &made);
    }
    if (ptx_accept(p, '=') && !parse_initializer(p, d, &dimensions, variable))
        return false;
    if (variable->incomplete && d->linkage != PTX_LINK_EXTERN && d->space != PTX_SPACE_PARAM)
        return ptx_fail(p, name.where, "array '%s' has no size", variable->name);
    return true;
}

bool ptx_parse_variables(struct ptx_parser *p, enum ptx_linkage linkage)
{
    struct declaration d = {.linkage = linkage, .space = ptx_space_of_directive((enum ptx_directive)p->token.name->directive)};
    const struct ptx_token space = p->token;

    ptx_advance(p);
    if (!p->function && d.space == PTX_SPACE_PARAM)
        return ptx_fail(p, space.where, ".param variables must be declared in functions");
    if (p->function && (d.space == PTX_SPACE_TEX || linkage != PTX_LINK_NONE))
        return ptx_fail(p, space.where, "this declaration is not allowed in functions");
    if (d.space == PTX_SPACE_TEX && p->module->isa_version >= 15)
        return ptx_fail(p, space.where, ".tex variables are not part of PTX since version 1.5");
    if (ptx_at(p, '['))
        return ct_error(p->compilation, space.where, PTX2SPV_UNSUPPORTED, "memory banks ('%.*s[...]') are not supported",
                        PTX_SHOW(space.text, space.length));
    if (!parse_declaration(p, &d))
        return false;
    if (d.space == PTX_SPACE_TEX) /* `.tex .u32 t` is the old form of `.global .texref t` */
        set_reference(&d, PTX2SPV_TEXREF);
    do {
        if (!parse_variable(p, &d))
            return false;
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';', "';' after the declaration");
}

/* ---- registers ---- */

static bool parse_register_range(struct ptx_parser *p, const struct declaration *d, struct ptx_symbol *symbol)
{
    /* The symbol becomes a range at once, which is empty until its size is known, since it stays in scope after an error. */
    symbol->kind = PTX_SYM_RANGE;
    symbol->range = CT_ARENA_NEW(&p->compilation->scratch, struct ptx_register_range);
    *symbol->range = (struct ptx_register_range){d->type, (uint8_t)d->vector, 0};
    if (!ptx_at(p, PTX_TOK_INT))
        return ptx_unexpected(p, "the number of registers");
    if (p->token.bits > UINT32_MAX)
        return ptx_fail(p, p->token.where, "the number of registers is out of range");
    symbol->range->count = (uint32_t)p->token.bits;
    ptx_advance(p);
    return ptx_expect(p, '>', "'>'");
}

bool ptx_parse_registers(struct ptx_parser *p)
{
    struct declaration d = {.space = PTX_SPACE_REG};
    struct ptx_token name;
    struct ptx_symbol *symbol;

    ptx_advance(p);
    if (!parse_declaration(p, &d))
        return false;
    do {
        if (!ptx_expect_name(p, &name, "the name of a register") || !(symbol = ptx_declare(p, PTX_SYM_REG, &name)))
            return false;
        if (ptx_accept(p, '<')) {
            if (!parse_register_range(p, &d, symbol))
                return false;
        } else {
            symbol->reg = ptx_register_create(p, name.name->text, d.type, d.vector);
        }
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';', "';' after the registers");
}

/* ---- parameters ---- */

bool ptx_is_sink(const struct ptx_token *name)
{
    return name->length == 1 && name->text[0] == '_';
}

bool ptx_parse_parameter(struct ptx_parser *p, bool declare, struct ptx_variable **out, struct ptx_register **reg)
{
    const bool in_register = ptx_at_directive(p, PTX_DIR_REG);
    struct declaration d = {.space = PTX_SPACE_PARAM};
    struct dimensions dimensions = {0};
    struct ptx_symbol *symbol = NULL;
    struct ptx_token name;

    if (!in_register && !ptx_at_directive(p, PTX_DIR_PARAM))
        return ptx_unexpected(p, ".param or .reg");
    ptx_advance(p);
    d.space = in_register ? PTX_SPACE_REG : PTX_SPACE_PARAM;
    if (!parse_declaration(p, &d) || !ptx_expect_name(p, &name, "the name of a parameter"))
        return false;
    *out = CT_ARENA_NEW(p->arena, struct ptx_variable);
    *reg = NULL;
    if (!make_variable(p, &d, &name, &dimensions, *out))
        return false;
    if (in_register && (*out)->is_array)
        return ptx_fail(p, name.where, "a register cannot be an array");
    if (in_register && declare)
        *reg = ptx_register_create(p, (*out)->name, d.type, d.vector);
    if (!declare || ptx_is_sink(&name))
        return true;
    if (!(symbol = ptx_declare(p, in_register ? PTX_SYM_REG : PTX_SYM_VAR, &name)))
        return false;
    if (in_register)
        symbol->reg = *reg;
    else
        symbol->variable = *out;
    return true;
}
