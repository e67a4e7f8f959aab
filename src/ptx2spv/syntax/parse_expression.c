/* SPDX-License-Identifier: Apache-2.0 */
/* Constant expressions (PTX ISA, "Constant Expressions"): 64-bit integers, signed or unsigned by the rules of C, and doubles. */
#include "parse.h"

#include <math.h>
#include <string.h>

double ptx_double_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t ptx_bits_of_double(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- operators ---- */

static const struct {
    int token;
    uint8_t precedence;
} operators[] = {
    {PTX_TOK_OR, 1}, {PTX_TOK_AND, 2}, {'|', 3},         {'^', 4},         {'&', 5}, {PTX_TOK_EQ, 6}, {PTX_TOK_NE, 6}, {'<', 7},  {'>', 7},
    {PTX_TOK_LE, 7}, {PTX_TOK_GE, 7},  {PTX_TOK_SHL, 8}, {PTX_TOK_SHR, 8}, {'+', 9}, {'-', 9},        {'*', 10},       {'/', 10}, {'%', 10},
};

static unsigned precedence_of(int token)
{
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (operators[i].token == token)
            return operators[i].precedence;
    return 0;
}

static struct ptx_constant make_int(uint64_t bits, bool is_unsigned)
{
    return (struct ptx_constant){.bits = bits, .is_unsigned = is_unsigned};
}

static struct ptx_constant make_float(double value)
{
    return (struct ptx_constant){.is_float = true, .bits = ptx_bits_of_double(value)};
}

static double as_double(const struct ptx_constant *c)
{
    if (c->is_float)
        return ptx_double_of_bits(c->bits);
    return c->is_unsigned ? (double)c->bits : (double)(int64_t)c->bits;
}

static bool is_true(const struct ptx_constant *c)
{
    return c->is_float ? ptx_double_of_bits(c->bits) != 0 : c->bits != 0;
}

static bool float_binary(int token, double a, double b, struct ptx_constant *out)
{
    switch (token) {
    case '+':
        *out = make_float(a + b);
        return true;
    case '-':
        *out = make_float(a - b);
        return true;
    case '*':
        *out = make_float(a * b);
        return true;
    case '/':
        *out = make_float(a / b);
        return true;
    case PTX_TOK_EQ:
        *out = make_int(a == b, false);
        return true;
    case PTX_TOK_NE:
        *out = make_int(a != b, false);
        return true;
    case '<':
        *out = make_int(a < b, false);
        return true;
    case '>':
        *out = make_int(a > b, false);
        return true;
    case PTX_TOK_LE:
        *out = make_int(a <= b, false);
        return true;
    case PTX_TOK_GE:
        *out = make_int(a >= b, false);
        return true;
    default:
        return false;
    }
}

/* Two's complement division without undefined behaviour: INT64_MIN / -1 wraps around. */
static uint64_t divide(uint64_t a, uint64_t b, bool is_unsigned)
{
    if (is_unsigned)
        return a / b;
    return (int64_t)b == -1 ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t shift_right(uint64_t a, uint64_t count, bool is_unsigned)
{
    if (is_unsigned)
        return count > 63 ? 0 : a >> count;
    return (uint64_t)((int64_t)a >> (count > 63 ? 63 : count));
}

static bool less(uint64_t a, uint64_t b, bool is_unsigned)
{
    return is_unsigned ? a < b : (int64_t)a < (int64_t)b;
}

static struct ptx_constant int_binary(int token, const struct ptx_constant *left, const struct ptx_constant *right)
{
    const uint64_t a = left->bits, b = right->bits;
    const bool u = left->is_unsigned || right->is_unsigned;

    switch (token) {
    case '+':
        return make_int(a + b, u);
    case '-':
        return make_int(a - b, u);
    case '*':
        return make_int(a * b, u);
    case '/':
        return make_int(divide(a, b, u), u);
    case '%':
        return make_int(a - divide(a, b, u) * b, u);
    case '&':
        return make_int(a & b, u);
    case '|':
        return make_int(a | b, u);
    case '^':
        return make_int(a ^ b, u);
    case PTX_TOK_SHL:
        return make_int(b > 63 ? 0 : a << b, left->is_unsigned);
    case PTX_TOK_SHR:
        return make_int(shift_right(a, b, left->is_unsigned), left->is_unsigned);
    case '<':
        return make_int(less(a, b, u), false);
    case '>':
        return make_int(less(b, a, u), false);
    case PTX_TOK_LE:
        return make_int(!less(b, a, u), false);
    case PTX_TOK_GE:
        return make_int(!less(a, b, u), false);
    case PTX_TOK_EQ:
        return make_int(a == b, false);
    default: /* PTX_TOK_NE: precedence_of admits no other token */
        return make_int(a != b, false);
    }
}

static bool apply_binary(struct ptx_parser *p, const struct ptx_token *op, const struct ptx_constant *a, const struct ptx_constant *b,
                         struct ptx_constant *out)
{
    if (op->kind == PTX_TOK_AND || op->kind == PTX_TOK_OR) {
        *out = make_int(op->kind == PTX_TOK_AND ? is_true(a) && is_true(b) : is_true(a) || is_true(b), false);
        return true;
    }
    if (a->is_float || b->is_float) {
        if (float_binary(op->kind, as_double(a), as_double(b), out))
            return true;
        return ptx_fail(p, op->where, "operator '%.*s' does not accept floating point operands", PTX_SHOW(op->text, op->length));
    }
    if ((op->kind == '/' || op->kind == '%') && b->bits == 0)
        return ptx_fail(p, op->where, "division by zero in a constant expression");
    *out = int_binary(op->kind, a, b);
    return true;
}

/* ---- grammar ---- */

static bool parse_conditional(struct ptx_parser *p, struct ptx_constant *out);

static bool enter(struct ptx_parser *p)
{
    if (++p->depth <= PTX_MAX_DEPTH)
        return true;
    return ptx_fail(p, p->token.where, "nested too deeply at '%.*s'", PTX_SHOW(p->token.text, p->token.length));
}

/* cast: (.s64) or (.u64), after the '('. */
static bool parse_cast(struct ptx_parser *p, bool *is_unsigned)
{
    const enum ptx_type type = (enum ptx_type)p->token.name->type;

    if (type != PTX_S64 && type != PTX_U64)
        return ptx_unexpected(p, "the cast .s64 or .u64");
    *is_unsigned = type == PTX_U64;
    ptx_advance(p);
    return ptx_expect(p, ')', "')' after the cast");
}

/* primary: number | WARP_SZ | ( conditional ) */
static bool parse_primary(struct ptx_parser *p, struct ptx_constant *out)
{
    const struct ptx_token token = p->token;

    if (token.kind == PTX_TOK_INT) {
        *out = make_int(token.bits, token.is_unsigned);
    } else if (token.kind == PTX_TOK_FLOAT) {
        *out = (struct ptx_constant){.is_float = true, .is_single = token.is_single, .bits = token.bits, .single_bits = token.single_bits};
    } else if (token.kind == PTX_TOK_NAME && token.name->sreg == PTX_SREG_WARP_SZ) {
        *out = make_int(32, false);
    } else if (token.kind == '(') {
        ptx_advance(p);
        return parse_conditional(p, out) && ptx_expect(p, ')', "')'");
    } else {
        return ptx_unexpected(p, "a constant");
    }
    ptx_advance(p);
    return true;
}

static void apply_unary(int op, struct ptx_constant *value)
{
    if (op == '!') {
        *value = make_int(!is_true(value), false);
    } else if (op == '~') {
        value->bits = ~value->bits;
    } else if (op == '-' && value->is_float) {
        value->bits ^= UINT64_C(1) << 63;
        value->single_bits ^= UINT32_C(1) << 31;
    } else if (op == '-') {
        value->bits = 0 - value->bits;
    }
}

/* unary: { - + ! ~ cast } primary */
static bool parse_unary(struct ptx_parser *p, struct ptx_constant *out)
{
    const struct ptx_token op = p->token;
    bool is_unsigned = false, ok;

    if (!enter(p))
        return false;
    if (op.kind == '-' || op.kind == '+' || op.kind == '!' || op.kind == '~') {
        ptx_advance(p);
        ok = parse_unary(p, out);
        if (ok && op.kind == '~' && out->is_float)
            ok = ptx_fail(p, op.where, "operator '~' does not accept floating point operands");
        if (ok)
            apply_unary(op.kind, out);
    } else if (op.kind == '(' && ptx_lex_peek(&p->lexer) == '.') {
        ptx_advance(p);
        ok = p->token.kind == PTX_TOK_WORD ? parse_cast(p, &is_unsigned) : ptx_unexpected(p, "a cast");
        ok = ok && parse_unary(p, out);
        if (ok && out->is_float)
            ok = ptx_fail(p, op.where, "a floating point constant cannot be cast");
        if (ok)
            out->is_unsigned = is_unsigned;
    } else {
        ok = parse_primary(p, out);
    }
    p->depth--;
    return ok;
}

/* binary: unary { operator unary }, by precedence */
static bool parse_binary(struct ptx_parser *p, unsigned least, struct ptx_constant *out)
{
    struct ptx_constant right;
    unsigned precedence;

    if (!parse_unary(p, out))
        return false;
    while ((precedence = precedence_of(p->token.kind)) >= least && precedence) {
        const struct ptx_token op = p->token;

        ptx_advance(p);
        if (!parse_binary(p, precedence + 1, &right) || !apply_binary(p, &op, out, &right, out))
            return false;
    }
    return true;
}

/* conditional: binary [ ? conditional : conditional ] */
static bool parse_conditional(struct ptx_parser *p, struct ptx_constant *out)
{
    struct ptx_constant condition, otherwise;
    bool ok;

    if (!parse_binary(p, 1, out))
        return false;
    if (!ptx_accept(p, '?'))
        return true;
    condition = *out;
    if (!enter(p))
        return false;
    ok = parse_conditional(p, out) && ptx_expect(p, ':', "':'") && parse_conditional(p, &otherwise);
    p->depth--;
    if (ok && !is_true(&condition))
        *out = otherwise;
    return ok;
}

bool ptx_parse_constant(struct ptx_parser *p, struct ptx_constant *out)
{
    const uint32_t depth = p->depth;
    const bool ok = parse_conditional(p, out);

    p->depth = depth;
    return ok;
}

bool ptx_parse_count(struct ptx_parser *p, const char *what, uint64_t least, uint64_t most, uint64_t *out)
{
    const struct ct_location where = p->token.where;
    struct ptx_constant value;

    if (!ptx_parse_constant(p, &value))
        return false;
    if (value.is_float)
        return ptx_fail(p, where, "%s must be an integer", what);
    if ((!value.is_unsigned && (int64_t)value.bits < 0) || value.bits < least || value.bits > most)
        return ptx_fail(p, where, "%s is out of range", what);
    *out = value.bits;
    return true;
}

/* ---- rounding to a type ---- */

/* Rounds a double to a format with `exponent_bits` and `mantissa_bits` (without the hidden bit), to nearest even. */
static uint64_t round_to_format(double value, int exponent_bits, int mantissa_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << mantissa_bits;
    const uint64_t sign = signbit(value) ? UINT64_C(1) << (exponent_bits + mantissa_bits) : 0;
    double magnitude = fabs(value);
    int exponent;
    uint64_t scaled;

    if (isnan(value))
        return sign | infinity | UINT64_C(1) << (mantissa_bits - 1);
    if (isinf(value))
        return sign | infinity;
    if (magnitude == 0)
        return sign;
    frexp(magnitude, &exponent); /* magnitude = m * 2^exponent, m in [0.5, 1) */
    if (exponent - 1 < 1 - bias)
        exponent = 2 - bias; /* denormal: the spacing is that of the smallest normal number */
    if (exponent - 1 > bias)
        return sign | infinity;
    /* The scaling is exact; rint rounds in the current mode, which the library keeps at to-nearest. */
    scaled = (uint64_t)rint(ldexp(magnitude, mantissa_bits + 1 - exponent));
    return sign | (((uint64_t)(exponent - 2 + bias) << mantissa_bits) + scaled);
}

uint64_t ptx_float_bits(enum ptx_type type, const struct ptx_constant *constant)
{
    const double value = as_double(constant);

    switch (ptx_type_bits(type)) {
    case 64:
        return ptx_bits_of_double(value);
    case 32:
        return constant->is_single ? constant->single_bits : round_to_format(value, 8, 23);
    default:
        return type == PTX_BF16 ? round_to_format(value, 8, 7) : round_to_format(value, 5, 10);
    }
}
