/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the operands of an instruction against its row of opcodes.def: number, kinds, types (PTX ISA, "Operand Type Checking" and
 * "Operand Size Exceeding Instruction-Type Size"). */
#include "parse.h"

#include <string.h>

/* One operand to check: its position, and what the pattern requires there. */
struct check {
    struct ptx_parser *p;
    const struct ptx_instruction *insn;
    unsigned number;    /* from 1, for messages */
    enum ptx_type type; /* NONE: not checked */
    bool relaxed;       /* registers may be wider than the type */
};

static bool fail_operand(const struct check *c, const struct ptx_operand *operand, const char *why)
{
    return ptx_fail(c->p, operand->where, "operand %u of %s: %s", c->number, c->insn->text, why);
}

/* ---- types ---- */

static enum ptx_type widened(enum ptx_type type)
{
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    case PTX_S32:
        return PTX_S64;
    default:
        return type;
    }
}

static enum ptx_type nth_type(const struct ptx_instruction *insn, unsigned n)
{
    return n < insn->n_types ? insn->types[n] : PTX_NONE;
}

/* The type that a letter of the pattern denotes. */
static enum ptx_type type_of_letter(const struct ptx_instruction *insn, char letter)
{
    switch (letter) {
    case '0':
    case '+':
        return nth_type(insn, 0);
    case '1':
    case '^':
        return nth_type(insn, 1);
    case '2':
        return nth_type(insn, 2);
    case 'w':
        return insn->mods.half == PTX_WIDE ? widened(nth_type(insn, 0)) : nth_type(insn, 0);
    case 'u':
    case '*':
        return PTX_U32;
    case 'b':
        return PTX_B32;
    case 'v':
        return PTX_U64;
    case 'z':
        return PTX_PRED;
    default:
        return PTX_NONE;
    }
}

enum family { FAMILY_BITS, FAMILY_INT, FAMILY_FLOAT, FAMILY_PRED };

static enum family family_of(enum ptx_type type)
{
    if (type == PTX_PRED)
        return FAMILY_PRED;
    if (ptx_type_is_float(type))
        return FAMILY_FLOAT;
    return type >= PTX_B8 && type <= PTX_B128 ? FAMILY_BITS : FAMILY_INT;
}

/* Whether a register of type `reg` is legal where type `want` is required. */
static bool types_agree(enum ptx_type want, enum ptx_type reg, bool relaxed)
{
    /* Packed registers count as untyped: any 32-bit instruction accepts them. */
    const bool packed = reg == PTX_F16X2 || reg == PTX_BF16X2;
    const enum family wanted = family_of(want), given = packed ? FAMILY_BITS : family_of(reg);
    const unsigned want_bits = ptx_type_bits(want), reg_bits = ptx_type_bits(reg);

    if (want == reg || want == PTX_NONE)
        return true;
    if (wanted == FAMILY_PRED || given == FAMILY_PRED)
        return false;
    if (relaxed ? reg_bits < want_bits : reg_bits != want_bits)
        return false;
    if (wanted == FAMILY_BITS || given == FAMILY_BITS || wanted == given)
        return wanted == FAMILY_BITS || given == FAMILY_BITS || wanted == FAMILY_INT || reg_bits == want_bits;
    return false;
}

static bool check_register(const struct check *c, const struct ptx_operand *operand)
{
    const struct ptx_register *reg = operand->reg;

    if (reg->vector && operand->component < 0)
        return fail_operand(c, operand, "a vector register where a scalar is expected");
    if (types_agree(c->type, reg->type, c->relaxed))
        return true;
    return ptx_fail(c->p, operand->where, "operand %u of %s: register '%s' has type .%s, not .%s", c->number, c->insn->text, reg->name,
                    ptx_type_name(reg->type), ptx_type_name(c->type));
}

/* ---- single values ---- */

/* There is no implicit conversion between integer and floating point constants, but untyped operands accept floating point literals of
 * their size. */
static bool check_constant(const struct check *c, const struct ptx_operand *operand)
{
    const bool to_float = c->type == PTX_F32 || c->type == PTX_F64;

    if (c->type == PTX_NONE)
        return true;
    if (operand->kind == PTX_OPND_INT)
        return !ptx_type_is_float(c->type) || fail_operand(c, operand, "an integer constant where a floating point value is expected");
    if (to_float || c->type == (operand->is_single ? PTX_B32 : PTX_B64))
        return true;
    return fail_operand(c, operand, "a floating point constant does not match this type");
}

/* Only mov and cvt read special registers. PTX 1.x had some of them with 16 bits, and %gridid has had 16, 32 and 64 bits. cvt
 * takes the low bits of any, as in ptxas. */
static bool check_special(const struct check *c, const struct ptx_operand *operand)
{
    static const struct {
        uint8_t type, has_components;
    } sregs[PTX_SREG_COUNT] = {
#define PTX_SREG(id, spelling, type, vector) [PTX_SREG_##id] = {PTX_##type, vector},
#include "sregs.def"
    };
    const enum ptx_type type = (enum ptx_type)sregs[operand->sreg].type;

    if (c->insn->opcode != PTX_OP_MOV && c->insn->opcode != PTX_OP_CVT)
        return fail_operand(c, operand, "special registers can be read by mov and cvt only");
    if ((operand->component >= 0 || c->insn->mods.vector) != sregs[operand->sreg].has_components)
        return fail_operand(c, operand, "a component such as .x is missing or not allowed");
    if (c->insn->opcode == PTX_OP_MOV &&
        (types_agree(c->type, type, false) || (ptx_type_bits(c->type) == 16 && sregs[operand->sreg].has_components) ||
         (operand->sreg == PTX_SREG_GRIDID && ptx_type_bits(c->type) >= 16 && !ptx_type_is_float(c->type) && c->type != PTX_PRED)))
        return true;
    if (c->insn->opcode == PTX_OP_CVT && type != PTX_PRED && !ptx_type_is_float(c->type) && !ptx_type_is_float(c->insn->types[0]))
        return true;
    return fail_operand(c, operand, "the special register has a different type");
}

/* Checks the sum of an offset and a register or a variable's address, used as a value. */
static bool check_sum(const struct check *c, const struct ptx_operand *operand)
{
    if (operand->bracketed)
        return fail_operand(c, operand, "expected a register or a constant");
    if (operand->reg && (ptx_type_is_float(c->type) || ptx_type_is_float(operand->reg->type) || operand->reg->type == PTX_PRED))
        return fail_operand(c, operand, "an offset can be added to integers only");
    if (operand->reg) { /* of a wider register the low bits are used */
        struct check wider = *c;

        wider.relaxed = true;
        return check_register(&wider, operand);
    }
    if (!operand->offset)
        return fail_operand(c, operand, "expected a register or a constant");
    if (c->type && (ptx_type_is_float(c->type) || ptx_type_bits(c->type) < 32 || ptx_type_bits(c->type) > 64))
        return fail_operand(c, operand, "an address does not fit in this type");
    return true;
}

static bool check_source(const struct check *c, const struct ptx_operand *operand)
{
    switch (operand->kind) {
    case PTX_OPND_REG:
        return check_register(c, operand);
    case PTX_OPND_INT:
    case PTX_OPND_FLOAT:
        return check_constant(c, operand);
    case PTX_OPND_SREG:
        return check_special(c, operand);
    case PTX_OPND_ADDRESS:
        return check_sum(c, operand);
    default:
        return fail_operand(c, operand, "expected a register or a constant");
    }
}

static bool check_destination(const struct check *c, const struct ptx_operand *operand)
{
    if (operand->kind != PTX_OPND_REG || operand->negated)
        return fail_operand(c, operand, "expected a register");
    return check_register(c, operand);
}

static bool check_predicate(const struct check *c, const struct ptx_operand *operand)
{
    if (operand->kind != PTX_OPND_REG || operand->reg->type != PTX_PRED || operand->reg->vector)
        return fail_operand(c, operand, "expected a predicate register");
    return true;
}

/* ---- vectors ---- */

typedef bool check_fn(const struct check *c, const struct ptx_operand *operand);

static bool check_items(const struct check *c, const struct ptx_operand *vector, check_fn *check_item, bool sinks)
{
    for (uint32_t i = 0; i < vector->n_items; i++) {
        const struct ptx_operand *item = &vector->items[i];

        if (!(sinks && item->kind == PTX_OPND_SINK) && !check_item(c, item))
            return false;
    }
    return true;
}

/* {a, b} of mov: elements of any types whose sizes sum up to that of the instruction's type. */
static bool check_packed(const struct check *c, const struct ptx_operand *vector, check_fn *check_item, bool sinks)
{
    struct check item = *c;
    unsigned bits = 0;
    bool counted = true;

    item.type = PTX_NONE;
    if (!(1u << c->type & (T_BITS | T_B128)))
        return fail_operand(c, vector, "vectors can be packed into .b types only");
    if (!check_items(&item, vector, check_item, sinks))
        return false;
    for (uint32_t i = 0; i < vector->n_items; i++) {
        counted &= vector->items[i].kind == PTX_OPND_REG;
        bits += counted ? ptx_type_bits(vector->items[i].reg->type) : 0;
    }
    if (vector->n_items != 2 && vector->n_items != 4 && !(vector->n_items == 8))
        return fail_operand(c, vector, "a vector has 2 or 4 elements");
    return !counted || bits == ptx_type_bits(c->type) ||
           fail_operand(c, vector, "the sizes of the elements do not sum up to that of the type");
}

/* A value that may be a vector, with as many elements as .v2, .v4 and .v8 require. */
static bool check_maybe_vector(const struct check *c, const struct ptx_operand *operand, check_fn *check_item, bool sinks)
{
    const unsigned width = c->insn->mods.vector;

    if (operand->kind == PTX_OPND_VECTOR && c->insn->opcode == PTX_OP_MOV && !width)
        return check_packed(c, operand, check_item, sinks);
    if (operand->kind == PTX_OPND_VECTOR && width != operand->n_items)
        return fail_operand(c, operand,
                            width ? "the number of elements differs from that of the instruction" : "a vector without .v2 or .v4");
    if (operand->kind == PTX_OPND_VECTOR)
        return check_items(c, operand, check_item, sinks);
    if (width && operand->kind == PTX_OPND_REG && operand->reg->vector == width && operand->component < 0)
        return types_agree(c->type, operand->reg->type, c->relaxed) || fail_operand(c, operand, "the vector register has a different type");
    if (width)
        return fail_operand(c, operand, "expected a vector");
    return check_item(c, operand);
}

/* ---- one item of the pattern ---- */

/* A variable must be in the instruction's state space, or, for generic addressing, in a space that generic addresses reach. */
static bool check_space(const struct check *c, const struct ptx_operand *operand)
{
    const enum ptx_space space = (enum ptx_space)c->insn->mods.space, given = operand->variable->space;

    if (given == PTX_SPACE_TEX)
        c->p->mark_unsupported = true;
    else if (space ? given != space : given == PTX_SPACE_CONST || given == PTX_SPACE_PARAM)
        return ptx_fail(c->p, operand->where, "operand %u of %s: '%s' is in another state space", c->number, c->insn->text,
                        operand->variable->name);
    return true;
}

static bool check_address(const struct check *c, const struct ptx_operand *operand)
{
    const bool is_number = !operand->variable && !operand->reg;

    if (operand->kind != PTX_OPND_ADDRESS || !operand->bracketed)
        return fail_operand(c, operand, "expected an address in brackets");
    if (is_number && c->insn->mods.space == PTX_SPACE_NONE)
        return fail_operand(c, operand, "a number is not a generic address");
    if (operand->variable)
        return check_space(c, operand);
    if (operand->reg && (operand->reg->vector || ptx_type_bits(operand->reg->type) < 32 || ptx_type_bits(operand->reg->type) > 64 ||
                         ptx_type_is_float(operand->reg->type)))
        return fail_operand(c, operand, "this register cannot hold an address");
    return true;
}

static bool check_move_source(const struct check *c, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPND_VECTOR && !c->insn->mods.vector && c->insn->operands[0].kind == PTX_OPND_VECTOR)
        return fail_operand(c, operand, "a move from vector to vector needs .v2 or .v4");
    if (operand->kind == PTX_OPND_VECTOR || (c->insn->mods.vector && operand->kind != PTX_OPND_SREG))
        return check_maybe_vector(c, operand, check_source, false);
    if (operand->kind == PTX_OPND_REG && operand->reg->vector && operand->component < 0)
        return fail_operand(c, operand, "a vector register where a scalar is expected");
    if (operand->kind == PTX_OPND_FUNC ||
        (operand->kind == PTX_OPND_ADDRESS && !operand->bracketed && (operand->variable || !operand->reg))) {
        if (ptx_type_bits(c->type) < 32 || ptx_type_bits(c->type) > 64 || ptx_type_is_float(c->type))
            return fail_operand(c, operand, "an address does not fit in this type");
        if (c->insn->opcode == PTX_OP_CVTA)
            return operand->variable ? check_space(c, operand) : fail_operand(c, operand, "expected a variable or a register");
        return true;
    }
    return check_source(c, operand);
}

static bool check_sinkable(const struct check *c, const struct ptx_operand *operand)
{
    return operand->kind == PTX_OPND_SINK || check_destination(c, operand);
}

/* d or d|p; each of them may be a sink. */
static bool check_with_predicate(const struct check *c, const struct ptx_operand *operand)
{
    if (operand->kind != PTX_OPND_PAIR)
        return check_sinkable(c, operand);
    return check_sinkable(c, &operand->items[0]) && (operand->items[1].kind == PTX_OPND_SINK || check_predicate(c, &operand->items[1]));
}

static bool check_predicates(const struct check *c, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPND_SINK)
        return true;
    if (operand->negated)
        return fail_operand(c, operand, "a destination cannot be negated");
    if (operand->kind != PTX_OPND_PAIR)
        return check_predicate(c, operand);
    return check_predicates(c, &operand->items[0]) && check_predicates(c, &operand->items[1]);
}

static bool check_operand(const struct check *c, char kind, const struct ptx_operand *operand)
{
    switch (kind) {
    case 'd':
        return check_destination(c, operand);
    case 'D':
        return check_maybe_vector(c, operand, check_destination, true);
    case 'E':
        return operand->kind == PTX_OPND_SINK || check_maybe_vector(c, operand, check_destination, true);
    case 'c':
        return check_with_predicate(c, operand);
    case 's':
        return check_source(c, operand);
    case 'S':
        return check_maybe_vector(c, operand, check_source, false);
    case 'm':
        return check_move_source(c, operand);
    case 'p':
        return check_predicate(c, operand);
    case 'q':
        return operand->kind == PTX_OPND_INT || check_predicate(c, operand);
    case 'P':
        return check_predicates(c, operand);
    case 'a':
        return check_address(c, operand);
    case 'l':
        return operand->kind == PTX_OPND_LABEL || fail_operand(c, operand, "expected a label");
    case 'i':
        return operand->kind == PTX_OPND_INT || fail_operand(c, operand, "expected an integer constant");
    default: /* 'x' */
        return true;
    }
}

static bool check_count(struct ptx_parser *p, const struct ptx_instruction *insn, unsigned least, unsigned most)
{
    if (insn->n_operands >= least && insn->n_operands <= most)
        return true;
    if (least == most)
        return ptx_fail(p, insn->where, "%s takes %u operands, not %u", insn->text, least, insn->n_operands);
    return ptx_fail(p, insn->where, "%s takes %u to %u operands, not %u", insn->text, least, most, insn->n_operands);
}

/* Checks all operands against a pattern such as "d0 s0 ?s0", whose items are two letters. */
static bool check_pattern(struct ptx_parser *p, const struct ptx_instruction *insn, const char *pattern)
{
    struct check c = {.p = p, .insn = insn};
    unsigned least = 0, most = 0;
    bool optional = false;

    for (const char *at = pattern; *at; at += *at == ' ') {
        optional |= *at == '?';
        at += *at == '?';
        if (most < insn->n_operands) {
            c.number = most + 1;
            c.type = type_of_letter(insn, at[1]);
            c.relaxed = at[1] == '+' || at[1] == '^' || at[1] == '*';
            if (!check_operand(&c, at[0], &insn->operands[most]))
                return false;
        }
        most++;
        least += !optional;
        at += 2;
    }
    return check_count(p, insn, least, most);
}

/* .L2::cache_hint requires the operand with the policy, and the operand requires .L2::cache_hint. */
static bool check_hint(struct ptx_parser *p, const struct ptx_instruction *insn, unsigned n_others)
{
    return check_count(p, insn, n_others + insn->mods.cache_hint, n_others + insn->mods.cache_hint);
}

static bool check_atomic(struct ptx_parser *p, const struct ptx_instruction *insn)
{
    const bool is_cas = insn->mods.operation == PTX_CAS;

    if (insn->opcode == PTX_OP_RED && (is_cas || insn->mods.operation == PTX_EXCH))
        return ptx_fail(p, insn->where, "%s: red has no such operation", insn->text);
    if (insn->mods.operation == PTX_ADD && !insn->mods.noftz && (1u << insn->types[0] & T_HALF))
        return ptx_fail(p, insn->where, "%s: .noftz is missing", insn->text);
    return check_hint(p, insn, 2 + is_cas + (insn->opcode == PTX_OP_ATOM)) &&
           check_pattern(p, insn, is_cas ? "E0 a- S0 S0 ?sv" : ptx_opcode_infos[insn->opcode].operands);
}

/* cvt to two packed values takes two sources; .rs adds an operand with random bits. */
static bool check_conversion(struct ptx_parser *p, const struct ptx_instruction *insn)
{
    const uint32_t packed = T(F16X2) | T(BF16X2) | T(E4M3X2) | T(E5M2X2);
    const bool packs = (1u << insn->types[0] & packed) && insn->types[1] == PTX_F32;
    const unsigned want = 2 + packs + (insn->mods.rounding == PTX_RS);

    if (insn->mods.mode == PTX_MODE_PACK)
        return check_pattern(p, insn, ptx_pack_bits(&insn->mods, insn->types[0]) < 16 ? "db su su sb" : "db su su");
    return check_pattern(p, insn, ptx_opcode_infos[insn->opcode].operands) && check_count(p, insn, want, want);
}

/* The pattern of bar and barrier depends on the mode. (The number of a barrier is at most 15: check_barrier.) */
static const char *barrier_pattern(const struct ptx_instruction *insn)
{
    switch (insn->mods.mode) {
    case PTX_MODE_WARP:
    case PTX_MODE_SYNC:
        return insn->mods.mode2 ? "su" : "su ?su";
    case PTX_MODE_ARRIVE:
        return "su su";
    case PTX_MODE_RED:
        return insn->mods.operation == PTX_POPC ? "du su x- ?q-" : "dz su x- ?q-";
    default:
        return "...";
    }
}

/* The number of threads that a barrier waits for must be a multiple of the warp size. */
static bool check_thread_count(struct ptx_parser *p, const struct ptx_instruction *insn, bool is_reduction)
{
    const unsigned at = is_reduction ? 2 : 1;
    const bool has_count = insn->n_operands > at + is_reduction && insn->mods.mode != PTX_MODE_WARP;

    if (has_count && insn->operands[at].kind == PTX_OPND_INT && insn->operands[at].bits % 32)
        return ptx_fail(p, insn->operands[at].where, "%s: the number of threads is not a multiple of 32", insn->text);
    return true;
}

static bool check_barrier(struct ptx_parser *p, const struct ptx_instruction *insn)
{
    const bool is_reduction = insn->mods.mode == PTX_MODE_RED;
    const struct ptx_operand *last = insn->n_operands ? &insn->operands[insn->n_operands - 1] : NULL;
    const struct check c = {.p = p, .insn = insn, .number = insn->n_operands};

    if (insn->mods.scope == PTX_CLUSTER)
        p->mark_unsupported = true;
    else if (insn->mods.mode == PTX_MODE_NONE)
        return ptx_fail(p, insn->where, "%s: .sync, .arrive or .red is missing", insn->text);
    else if (!check_pattern(p, insn, barrier_pattern(insn)) || (is_reduction && !check_operand(&c, 'q', last)))
        return false;
    if (!check_thread_count(p, insn, is_reduction))
        return false;
    for (uint32_t i = 0; i < insn->n_operands && insn->mods.mode != PTX_MODE_WARP; i++)
        if (i == (is_reduction ? 1 : 0) && insn->operands[i].kind == PTX_OPND_INT && insn->operands[i].bits > 15)
            return ptx_fail(p, insn->operands[i].where, "%s: barriers are numbered from 0 to 15", insn->text);
    return true;
}

/* A comparison or truth table has a predicate operand if and only if a boolean operation combines them; so has lop3 a destination d|p. */
static bool check_boolean(struct ptx_parser *p, const struct ptx_instruction *insn)
{
    const unsigned n_others = insn->opcode == PTX_OP_LOP3 ? 5 : 3;
    const bool is_pair = insn->opcode == PTX_OP_LOP3 && insn->n_operands && insn->operands[0].kind == PTX_OPND_PAIR;
    const bool combines = insn->mods.operation != PTX_OPER_NONE;

    if (insn->opcode == PTX_OP_LOP3 && is_pair != combines)
        return ptx_fail(p, insn->where, "%s: a destination d|p and a boolean operation require each other", insn->text);
    return check_count(p, insn, n_others + combines, n_others + combines);
}

/* Checks constants that the ISA limits: bit positions and lengths, event numbers. The number of operands is right. */
static bool check_ranges(struct ptx_parser *p, const struct ptx_instruction *insn)
{
    const bool is_field = insn->opcode == PTX_OP_BFE || insn->opcode == PTX_OP_BFI;
    const unsigned first = insn->opcode == PTX_OP_BFE ? 2 : insn->opcode == PTX_OP_BFI ? 3 : 0, limit = is_field ? 255 : 15;

    if ((insn->opcode == PTX_OP_DISCARD || insn->opcode == PTX_OP_APPLYPRIORITY) && insn->operands[1].bits != 128)
        return ptx_fail(p, insn->operands[1].where, "operand 2 of %s: the size must be 128 bytes", insn->text);
    if (!is_field && (insn->opcode != PTX_OP_PMEVENT || strstr(insn->text, ".mask")))
        return true;
    for (uint32_t i = first; i < insn->n_operands; i++)
        if (insn->operands[i].kind == PTX_OPND_INT && insn->operands[i].bits > limit)
            return ptx_fail(p, insn->operands[i].where, "operand %u of %s: the constant is out of range 0 to %u", i + 1, insn->text, limit);
    return true;
}

bool ptx_check_instruction(struct ptx_parser *p, const struct ptx_instruction *insn)
{
    const char *pattern = ptx_opcode_infos[insn->opcode].operands;

    if (insn->mods.unsupported || p->mark_unsupported)
        return true;
    if (insn->opcode == PTX_OP_BAR || insn->opcode == PTX_OP_BARRIER)
        return check_barrier(p, insn);
    if (pattern[0] == '.')
        return true;
    if (insn->opcode == PTX_OP_ATOM || insn->opcode == PTX_OP_RED)
        return check_atomic(p, insn);
    if (insn->opcode == PTX_OP_CVT)
        return check_conversion(p, insn);
    if ((insn->opcode == PTX_OP_LD || insn->opcode == PTX_OP_ST) && !check_hint(p, insn, 2))
        return false;
    if ((insn->opcode == PTX_OP_SET || insn->opcode == PTX_OP_SETP || insn->opcode == PTX_OP_LOP3) && !check_boolean(p, insn))
        return false;
    return check_pattern(p, insn, pattern) && check_ranges(p, insn);
}
