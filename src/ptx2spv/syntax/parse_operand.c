/* SPDX-License-Identifier: Apache-2.0 */
/* Parses operands (PTX ISA, "Instruction Operands"). parse_check.c checks which of them an opcode accepts. */
#include "parse.h"

#include <string.h>

struct ptx_operand *ptx_take_operands(struct ptx_parser *p, uint32_t first, uint32_t *count)
{
    struct ptx_operand *items;

    *count = p->operands.n - first;
    items = CT_ARENA_ARRAY(p->arena, struct ptx_operand, *count);
    if (*count)
        memcpy(items, p->operands.v + first, *count * sizeof *items);
    p->operands.n = first;
    return items;
}

static bool is_adjacent(const struct ptx_parser *p, const struct ptx_token *before)
{
    return p->token.text == before->text + before->length;
}

/* ---- components and selectors ---- */

/* The value of ptx_operand.component for .x to .w, .r to .a, .b0 to .b3, .h0 and .h1; -1: it is none of these. */
static int component_of(const struct ptx_token *word)
{
    static const char letters[] = "xyzwrgba";
    const char *text = word->text + 1;
    const char *letter = word->length == 2 ? strchr(letters, text[0]) : NULL;

    if (letter)
        return (int)(letter - letters) % 4;
    if (word->length == 3 && text[0] == 'b' && text[1] >= '0' && text[1] <= '3')
        return PTX_SELECTOR_BYTE + text[1] - '0';
    if (word->length == 3 && text[0] == 'h' && text[1] >= '0' && text[1] <= '1')
        return PTX_SELECTOR_HALF + text[1] - '0';
    return -1;
}

/* .b3210, .h10: several bytes or halves, in SIMD video instructions (PTX ISA, "SIMD Video Instructions"). False: it is none. */
static bool read_selector(const struct ptx_token *word, struct ptx_operand *out)
{
    const unsigned n = word->length - 2;

    if (word->length < 4 || n > sizeof out->selected || (word->text[1] != 'b' && word->text[1] != 'h'))
        return false;
    for (unsigned i = 0; i < n; i++) {
        const char digit = word->text[word->length - 1 - i];

        if (digit < '0' || digit > '7')
            return false;
        out->selected[i] = (uint8_t)(digit - '0');
    }
    out->n_selected = (uint8_t)n;
    return true;
}

static bool parse_component(struct ptx_parser *p, const struct ptx_token *name, struct ptx_operand *out)
{
    int component;

    if (!ptx_at(p, PTX_TOK_WORD) || !is_adjacent(p, name))
        return true;
    component = component_of(&p->token);
    if (component < 0 && !read_selector(&p->token, out))
        return ptx_unexpected(p, "a component such as .x");
    if (out->kind == PTX_OPND_REG && component >= 0 && component < 16 && component >= out->reg->vector)
        return ptx_fail(p, p->token.where, "register '%s' has no component '%.*s'", out->reg->name,
                        PTX_SHOW(p->token.text, p->token.length));
    out->component = (int8_t)component;
    ptx_advance(p);
    return true;
}

/* ---- addresses ---- */

/* offset: (+ | -) constant; the sign is parsed as part of the constant */
static bool parse_offset(struct ptx_parser *p, struct ptx_operand *out)
{
    const struct ct_location where = p->token.where;
    struct ptx_constant offset;

    if (!ptx_at(p, '+') && !ptx_at(p, '-'))
        return true;
    if (!ptx_parse_constant(p, &offset))
        return false;
    if (offset.is_float)
        return ptx_fail(p, where, "an offset must be an integer");
    out->offset = (int64_t)((uint64_t)out->offset + offset.bits);
    return true;
}

static bool parse_index_register(struct ptx_parser *p, struct ptx_operand *out)
{
    const struct ptx_token name = p->token;
    struct ptx_symbol *symbol = ptx_lookup(p, name.name);

    if (!symbol || symbol->kind != PTX_SYM_REG || symbol->reg->vector || ptx_type_is_float(symbol->reg->type) ||
        symbol->reg->type == PTX_PRED || ptx_type_bits(symbol->reg->type) > 64)
        return ptx_fail(p, name.where, "'%.*s' is not an index", PTX_SHOW(name.text, name.length));
    out->reg = symbol->reg;
    ptx_advance(p);
    return !ptx_at(p, '+') || parse_offset(p, out);
}

static bool parse_index_constant(struct ptx_parser *p, struct ptx_operand *out)
{
    struct ptx_constant index;

    if (!ptx_parse_constant(p, &index))
        return false;
    if (index.is_float)
        return ptx_fail(p, out->where, "an index must be an integer");
    out->offset = (int64_t)index.bits;
    return true;
}

/* element: name [ register + constant ] or name [ constant ]: the address of an element. Of vectors and of arrays of arrays ptxas counts the scalars. */
static bool parse_element(struct ptx_parser *p, struct ptx_operand *out)
{
    if (!out->variable->is_array)
        return ptx_fail(p, out->where, "'%s' is not an array", out->variable->name);
    ptx_advance(p);
    if (!(ptx_at(p, PTX_TOK_NAME) && !p->token.name->sreg ? parse_index_register(p, out) : parse_index_constant(p, out)))
        return false;
    out->offset = (int64_t)((uint64_t)out->offset * ptx_type_bytes(out->variable->type));
    return ptx_expect(p, ']', "']'");
}

/* name or name[4]: with ld and st the element that they access, with mov and cvta its address. */
static bool parse_variable_operand(struct ptx_parser *p, struct ptx_variable *variable, struct ptx_operand *out)
{
    out->kind = PTX_OPND_ADDRESS;
    out->variable = variable;
    if (ptx_at(p, '[')) {
        out->bracketed = p->opcode == PTX_OP_LD || p->opcode == PTX_OP_LDU || p->opcode == PTX_OP_ST;
        if (!out->bracketed && p->opcode != PTX_OP_MOV && p->opcode != PTX_OP_CVTA)
            return ptx_unexpected(p, "',' or ';'");
        return parse_element(p, out);
    }
    return parse_offset(p, out);
}

/* ---- constants ---- */

static bool parse_constant_operand(struct ptx_parser *p, struct ptx_operand *out)
{
    struct ptx_constant value;

    if (!ptx_parse_constant(p, &value))
        return false;
    out->kind = value.is_float ? PTX_OPND_FLOAT : PTX_OPND_INT;
    out->bits = value.bits;
    out->is_single = value.is_single;
    out->single_bits = value.single_bits;
    return true;
}

/* ---- names ---- */

/* Legal special registers that have no row in sregs.def: %pm3, %pm3_64, %envreg7, %reserved_smem_offset_1. */
static bool is_unlisted_sreg(const struct ptx_token *name)
{
    static const char *const stems[] = {"%pm", "%envreg", "%reserved_smem_offset_"};

    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++)
        if (name->length > strlen(stems[i]) && memcmp(name->text, stems[i], strlen(stems[i])) == 0)
            return true;
    return false;
}

static bool parse_symbol_operand(struct ptx_parser *p, const struct ptx_token *name, struct ptx_operand *out)
{
    struct ptx_symbol *symbol = ptx_lookup(p, name->name);

    if (!symbol && is_unlisted_sreg(name)) {
        p->mark_unsupported = true;
        out->kind = PTX_OPND_SREG;
        out->sreg = PTX_SREG_PM0;
        return true;
    }
    if (!symbol)
        return ptx_fail(p, name->where, "'%.*s' is not declared", PTX_SHOW(name->text, name->length));
    switch (symbol->kind) {
    case PTX_SYM_REG:
        out->kind = PTX_OPND_REG;
        out->reg = symbol->reg;
        return parse_component(p, name, out);
    case PTX_SYM_VAR:
        return parse_variable_operand(p, symbol->variable, out);
    case PTX_SYM_FUNC:
        out->kind = PTX_OPND_FUNC;
        out->function = symbol->function;
        return true;
    case PTX_SYM_TARGETS:
        out->kind = PTX_OPND_SYMBOL;
        out->targets = symbol->targets;
        return true;
    case PTX_SYM_PROTOTYPE:
        out->kind = PTX_OPND_SYMBOL;
        out->function = symbol->function;
        return true;
    default:
        return ptx_fail(p, name->where, "'%.*s' is a label, not an operand of this instruction", PTX_SHOW(name->text, name->length));
    }
}

static bool parse_name_operand(struct ptx_parser *p, struct ptx_operand *out)
{
    const struct ptx_token name = p->token;

    if (name.name->sreg == PTX_SREG_WARP_SZ) /* the constant 32 */
        return parse_constant_operand(p, out);
    ptx_advance(p);
    if (p->opcode == PTX_OP_BRA) {
        out->kind = PTX_OPND_LABEL;
        out->label = ptx_label_use(p, &name);
        return true;
    }
    if (name.name->sreg) {
        out->kind = PTX_OPND_SREG;
        out->sreg = name.name->sreg;
        return parse_component(p, &name, out);
    }
    if (name.length == 1 && name.text[0] == '_') {
        out->kind = PTX_OPND_SINK;
        return true;
    }
    return parse_symbol_operand(p, &name, out);
}

/* ---- operands of several parts ---- */

static bool push_operand(struct ptx_parser *p)
{
    struct ptx_operand item;

    if (!ptx_parse_operand(p, &item))
        return false;
    *CT_PUSH(&p->compilation->scratch, &p->operands) = item;
    return true;
}

/* Parses items up to `close`; they are collected with those that the stack has from `first` on. */
static bool parse_items(struct ptx_parser *p, uint32_t first, int close, const char *what, struct ptx_operand *out)
{
    while (!ptx_at(p, close)) {
        if (!push_operand(p))
            return false;
        if (!ptx_accept(p, ','))
            break;
    }
    if (!ptx_expect(p, close, what))
        return false;
    out->items = ptx_take_operands(p, first, &out->n_items);
    return true;
}

static bool parse_vector(struct ptx_parser *p, struct ptx_operand *out)
{
    ptx_advance(p);
    out->kind = PTX_OPND_VECTOR;
    return parse_items(p, p->operands.n, '}', "'}' or ','", out);
}

static void make_address(struct ptx_operand *out)
{
    if (out->kind == PTX_OPND_INT) {
        out->offset = (int64_t)out->bits;
        out->bits = 0;
    }
    out->kind = PTX_OPND_ADDRESS;
    out->bracketed = true;
}

/* bracket: [ base offset ], or, for textures and tensors, [ name , {coordinates} ... ] */
static bool parse_bracket(struct ptx_parser *p, struct ptx_operand *out)
{
    const struct ct_location where = out->where;
    const uint32_t first = p->operands.n;
    struct ptx_operand base;

    ptx_advance(p);
    if (!ptx_parse_operand(p, &base))
        return false;
    if (base.kind == PTX_OPND_REG && base.component < 0 && !parse_offset(p, &base))
        return false;
    if (ptx_at(p, ',')) {
        out->kind = PTX_OPND_LIST;
        out->bracketed = true;
        *CT_PUSH(&p->compilation->scratch, &p->operands) = base;
        ptx_advance(p);
        return parse_items(p, first, ']', "']' or ','", out);
    }
    if (base.bracketed || (base.kind != PTX_OPND_REG && base.kind != PTX_OPND_ADDRESS && base.kind != PTX_OPND_INT))
        return ptx_fail(p, base.where, "this is not an address");
    *out = base;
    out->where = where;
    make_address(out);
    return ptx_expect(p, ']', "']'");
}

/* operand after a sign or '!': a name, or else the whole operand is a constant */
static bool parse_prefixed(struct ptx_parser *p, struct ptx_operand *out)
{
    const int next = ptx_lex_peek(&p->lexer);
    const bool is_name = next == '%' || next == '_' || next == '$' || (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');

    if (!is_name)
        return parse_constant_operand(p, out);
    out->minus = ptx_at(p, '-');
    if (out->minus && !(ptx_opcode_infos[p->opcode].modifiers & M_LOOSE)) /* vmad accepts it */
        return ptx_fail(p, p->token.where, "'-' is allowed before constants only");
    out->negated = ptx_at(p, '!');
    ptx_advance(p);
    return ptx_at(p, PTX_TOK_NAME) ? parse_name_operand(p, out) : ptx_unexpected(p, "the name of a register");
}

static bool parse_single(struct ptx_parser *p, struct ptx_operand *out)
{
    switch (p->token.kind) {
    case PTX_TOK_NAME:
        return parse_name_operand(p, out);
    case '!':
    case '-':
        return parse_prefixed(p, out);
    case '{':
        return parse_vector(p, out);
    case '[':
        return parse_bracket(p, out);
    case PTX_TOK_INT:
    case PTX_TOK_FLOAT:
    case '+':
    case '~':
    case '(':
        return parse_constant_operand(p, out);
    default:
        return ptx_unexpected(p, "an operand");
    }
}

/* operand: single [ | single ] */
static bool parse_pair(struct ptx_parser *p, struct ptx_operand *out)
{
    const uint32_t first = p->operands.n;
    struct ptx_operand left;

    if (!parse_single(p, out))
        return false;
    if (!ptx_accept(p, '|'))
        return true;
    left = *out;
    *out = (struct ptx_operand){.kind = PTX_OPND_PAIR, .where = left.where, .component = -1};
    *CT_PUSH(&p->compilation->scratch, &p->operands) = left;
    if (!push_operand(p))
        return false;
    out->items = ptx_take_operands(p, first, &out->n_items);
    return true;
}

bool ptx_parse_operand(struct ptx_parser *p, struct ptx_operand *out)
{
    bool ok;

    *out = (struct ptx_operand){.where = p->token.where, .component = -1};
    if (p->depth >= PTX_MAX_DEPTH)
        return ptx_fail(p, p->token.where, "nested too deeply at '%.*s'", PTX_SHOW(p->token.text, p->token.length));
    p->depth++;
    ok = parse_pair(p, out);
    p->depth--;
    return ok;
}

/* `reg + constant` as a source operand: an integer sum. The manual does not mention it; ptxas accepts it in every instruction (but not
 * `-`). */
static bool parse_sum(struct ptx_parser *p, struct ptx_operand *out)
{
    if (out->kind != PTX_OPND_REG || out->negated || out->minus || !ptx_at(p, '+'))
        return true;
    out->kind = PTX_OPND_ADDRESS;
    return parse_offset(p, out);
}

/* A single register in braces is equivalent to the register where a vector is allowed: Triton writes `ld.global.b32 { %r1 }, [%rd1]`. */
static void unwrap_single_element(const struct ptx_parser *p, const struct ptx_instruction *insn, struct ptx_operand *out)
{
    const bool moves = p->opcode == PTX_OP_LD || p->opcode == PTX_OP_LDU || p->opcode == PTX_OP_ST || p->opcode == PTX_OP_MOV;

    if (p->opcode == PTX_OP_MOV && insn->n_types && !(1u << insn->types[0] & (T_BITS | T_B128)))
        return;
    if (moves && out->kind == PTX_OPND_VECTOR && out->n_items == 1 && !insn->mods.vector)
        *out = out->items[0];
}

/* Replaces a whole vector register by its components in braces: mov.b64 d, v. Applies to mov of .b types only; .v2 and .v4 are another
 * form. */
static void expand_vector_register(struct ptx_parser *p, const struct ptx_instruction *insn, struct ptx_operand *out)
{
    const struct ptx_operand whole = *out;
    const bool packs = p->opcode == PTX_OP_MOV && !insn->mods.vector && insn->n_types && (1u << insn->types[0] & (T_BITS | T_B128));

    if (!packs || out->kind != PTX_OPND_REG || !out->reg->vector || out->component >= 0)
        return;
    *out = (struct ptx_operand){.kind = PTX_OPND_VECTOR, .where = whole.where, .component = -1, .n_items = whole.reg->vector};
    out->items = CT_ARENA_ARRAY(p->arena, struct ptx_operand, out->n_items);
    for (uint32_t i = 0; i < out->n_items; i++) {
        out->items[i] = whole;
        out->items[i].component = (int8_t)i;
    }
}

bool ptx_parse_instruction_operand(struct ptx_parser *p, const struct ptx_instruction *insn, struct ptx_operand *out)
{
    if (!ptx_parse_operand(p, out) || !parse_sum(p, out))
        return false;
    if (p->opcode == PTX_OP_LD && out->bracketed) /* ld r, [a].unified: an access to unified memory; it has no effect here */
        ptx_accept_directive(p, PTX_DIR_UNIFIED);
    unwrap_single_element(p, insn, out);
    expand_vector_register(p, insn, out);
    return true;
}

/* ---- calls ---- */

static bool parse_list(struct ptx_parser *p, struct ptx_operand *out)
{
    *out = (struct ptx_operand){.where = p->token.where, .component = -1};
    if (!ptx_accept(p, '('))
        return true;
    out->kind = PTX_OPND_LIST;
    return parse_items(p, p->operands.n, ')', "')' or ','", out);
}

static bool check_count(struct ptx_parser *p, const struct ptx_operand *list, const struct ptx_operand *callee, uint32_t want,
                        const char *what)
{
    if (list->n_items == want)
        return true;
    return ptx_fail(p, callee->where, "function '%s' has %u %s, the call has %u", callee->function->name, want, what, list->n_items);
}

static bool check_callee(struct ptx_parser *p, const struct ptx_operand *operands)
{
    const struct ptx_operand *callee = &operands[1];

    if (callee->kind == PTX_OPND_REG && callee->component < 0)
        return true;
    if (callee->kind != PTX_OPND_FUNC)
        return ptx_fail(p, callee->where, "expected a function or a register");
    if (callee->function->is_entry) /* calling a kernel is never legal */
        return ptx_fail(p, callee->where, "'%s' is a kernel: it cannot be called", callee->function->name);
    return check_count(p, &operands[0], callee, callee->function->n_results, "results") &&
           check_count(p, &operands[2], callee, callee->function->n_params, "parameters");
}

/* call: [ (results) , ] callee [ , (arguments) ] [ , prototype-or-targets ] */
bool ptx_parse_call(struct ptx_parser *p, struct ptx_instruction *insn)
{
    struct ptx_operand operands[4];
    uint32_t n = 3;

    if (!parse_list(p, &operands[0]) || (operands[0].kind && !ptx_expect(p, ',', "','")) || !ptx_parse_operand(p, &operands[1]))
        return false;
    operands[2] = (struct ptx_operand){.where = p->token.where, .component = -1};
    if (ptx_accept(p, ',') && ptx_at(p, '(')) {
        if (!parse_list(p, &operands[2]))
            return false;
        if (ptx_accept(p, ',') && !ptx_parse_operand(p, &operands[n++]))
            return false;
    } else if (ptx_at(p, PTX_TOK_NAME) && !ptx_parse_operand(p, &operands[n++])) {
        return false;
    }
    if (n == 4 && operands[3].kind != PTX_OPND_SYMBOL)
        return ptx_fail(p, operands[3].where, "expected a prototype or a list of targets");
    insn->operands = CT_ARENA_ARRAY(p->arena, struct ptx_operand, n);
    memcpy(insn->operands, operands, n * sizeof *operands);
    insn->n_operands = n;
    return check_callee(p, operands);
}
