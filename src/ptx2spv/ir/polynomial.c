/* SPDX-License-Identifier: Apache-2.0 */
#include "polynomial.h"

#include <string.h>

enum { DEPTH_MAX = 8, CHEAP_TERMS = 2, CHEAP_DEGREE = 2 };

static int compare_atoms(const struct ct_monomial *a, const struct ct_monomial *b)
{
    if (a->degree != b->degree)
        return a->degree < b->degree ? -1 : 1;
    for (uint32_t i = 0; i < a->degree; i++)
        if (a->atoms[i].i != b->atoms[i].i)
            return a->atoms[i].i < b->atoms[i].i ? -1 : 1;
    return 0;
}

static bool add_monomial(struct ct_polynomial *sum, const struct ct_monomial *term, uint32_t coefficient)
{
    uint32_t at = 0;

    while (at < sum->n && compare_atoms(&sum->terms[at], term) < 0)
        at++;
    if (at < sum->n && !compare_atoms(&sum->terms[at], term)) {
        coefficient += sum->terms[at].coefficient;
        if (!coefficient)
            memmove(&sum->terms[at], &sum->terms[at + 1], (--sum->n - at) * sizeof *sum->terms);
        else
            sum->terms[at].coefficient = coefficient;
        return true;
    }
    if (!coefficient)
        return true;
    if (sum->n == CT_MONOMIALS_MAX)
        return false;
    memmove(&sum->terms[at + 1], &sum->terms[at], (sum->n++ - at) * sizeof *sum->terms);
    sum->terms[at] = *term;
    sum->terms[at].coefficient = coefficient;
    return true;
}

bool ct_polynomial_add(struct ct_polynomial *sum, const struct ct_polynomial *other, uint32_t factor)
{
    for (uint32_t i = 0; i < other->n; i++)
        if (!add_monomial(sum, &other->terms[i], other->terms[i].coefficient * factor))
            return false;
    return true;
}

/* False: the product has too many factors. */
static bool multiply_monomials(const struct ct_monomial *a, const struct ct_monomial *b, struct ct_monomial *out)
{
    uint32_t i = 0, j = 0;

    if (a->degree + b->degree > CT_DEGREE_MAX)
        return false;
    *out = (struct ct_monomial){.coefficient = a->coefficient * b->coefficient, .degree = a->degree + b->degree};
    for (uint32_t k = 0; k < out->degree; k++)
        out->atoms[k] = j == b->degree || (i < a->degree && a->atoms[i].i <= b->atoms[j].i) ? a->atoms[i++] : b->atoms[j++];
    return true;
}

static bool multiply(const struct ct_polynomial *a, const struct ct_polynomial *b, struct ct_polynomial *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++) {
            struct ct_monomial term;

            if (!multiply_monomials(&a->terms[i], &b->terms[j], &term) || !add_monomial(out, &term, term.coefficient))
                return false;
        }
    return true;
}

/* Two to the power of a constant below 32, else 0. */
static uint32_t power_of_two(const struct ct_fn *fn, ct_value exponent)
{
    const struct ct_insn *constant = ct_constant_or_null(fn, exponent);

    return constant && constant->imm < 32 ? UINT32_C(1) << constant->imm : 0;
}

static void expand(const struct ct_fn *fn, ct_value value, struct ct_polynomial *out, unsigned depth);

/* False: the operation is none of a polynomial, or the result has too many terms. */
static bool expand_operation(const struct ct_fn *fn, const struct ct_insn *def, struct ct_polynomial *out, unsigned depth)
{
    struct ct_polynomial b;
    uint32_t factor;

    switch ((unsigned)def->op) {
    case CT_OP_ADD:
    case CT_OP_SUB:
        expand(fn, def->operands[0], out, depth);
        expand(fn, def->operands[1], &b, depth);
        return ct_polynomial_add(out, &b, def->op == CT_OP_ADD ? 1 : UINT32_MAX);
    case CT_OP_MUL:
    case CT_OP_MULWIDE: {
        struct ct_polynomial a;

        if (ct_width_of_value(fn, def->operands[0]) < CT_W_32)
            return false;
        expand(fn, def->operands[0], &a, depth);
        expand(fn, def->operands[1], &b, depth);
        return multiply(&a, &b, out);
    }
    case CT_OP_SHL:
        factor = power_of_two(fn, def->operands[1]);
        expand(fn, def->operands[0], &b, depth);
        out->n = 0;
        return factor && ct_polynomial_add(out, &b, factor);
    case CT_OP_EXT:
        if (ptx_type_bits(def->type) != 32)
            return false;
        expand(fn, def->operands[0], out, depth);
        return true;
    case CT_OP_CONST:
        out->n = 0;
        return add_monomial(out, &(struct ct_monomial){.degree = 0}, (uint32_t)def->imm);
    default:
        return false;
    }
}

static void expand(const struct ct_fn *fn, ct_value value, struct ct_polynomial *out, unsigned depth)
{
    const struct ct_insn *def = fn->values.v[value.i].def;

    while (def && def->op == CT_OP_COPY) {
        value = def->operands[0];
        def = fn->values.v[value.i].def;
    }
    if (def && depth && expand_operation(fn, def, out, depth - 1))
        return;
    *out = (struct ct_polynomial){.n = 1, .terms = {{.coefficient = 1, .degree = 1, .atoms = {value}}}};
}

void ct_polynomial_of(const struct ct_fn *fn, ct_value value, struct ct_polynomial *out)
{
    expand(fn, value, out, DEPTH_MAX);
}

uint32_t ct_polynomial_take_constant(struct ct_polynomial *polynomial)
{
    uint32_t constant;

    if (!polynomial->n || polynomial->terms[0].degree)
        return 0;
    constant = polynomial->terms[0].coefficient;
    memmove(polynomial->terms, polynomial->terms + 1, --polynomial->n * sizeof *polynomial->terms);
    return constant;
}

bool ct_polynomials_equal(const struct ct_polynomial *a, const struct ct_polynomial *b)
{
    bool equal = a->n == b->n;

    for (uint32_t i = 0; equal && i < a->n; i++)
        equal = a->terms[i].coefficient == b->terms[i].coefficient && !compare_atoms(&a->terms[i], &b->terms[i]);
    return equal;
}

uint32_t ct_polynomial_hash(const struct ct_polynomial *polynomial)
{
    uint32_t hash = 0;

    for (uint32_t i = 0; i < polynomial->n; i++) {
        const struct ct_monomial *term = &polynomial->terms[i];

        hash = (hash ^ term->coefficient) * 0x9e3779b1;
        for (uint32_t k = 0; k < term->degree; k++)
            hash = (hash ^ term->atoms[k].i) * 0x9e3779b1;
    }
    return hash;
}

/* ---- uniform values ---- */

static bool is_uniform(const struct ct_fn *fn, ct_value atom)
{
    const struct ct_insn *def = fn->values.v[atom.i].def;

    return (def->op == CT_OP_LOAD && def->space == CT_SPACE_PARAM && !def->n_operands) ||
           (def->op == CT_OP_SYSVAL && def->sreg >= CT_SYS_NTID_X && def->sreg <= CT_SYS_NCTAID_Z);
}

bool ct_monomial_is_uniform(const struct ct_fn *fn, const struct ct_monomial *term)
{
    for (uint32_t i = 0; i < term->degree; i++)
        if (!is_uniform(fn, term->atoms[i]))
            return false;
    return true;
}

bool ct_polynomial_is_cheap(const struct ct_fn *fn, const struct ct_polynomial *polynomial)
{
    bool cheap = polynomial->n <= CHEAP_TERMS;

    for (uint32_t i = 0; cheap && i < polynomial->n; i++)
        cheap = polynomial->terms[i].degree <= CHEAP_DEGREE && ct_monomial_is_uniform(fn, &polynomial->terms[i]);
    return cheap;
}

/* ---- code ---- */

static ct_value emit_monomial(struct ct_cursor *at, const struct ct_monomial *term, uint32_t coefficient)
{
    ct_value product = CT_NO_VALUE;

    for (uint32_t i = 0; i < term->degree; i++) {
        const ct_value atom = ct_low32(at, term->atoms[i]);

        product = product.i ? ct_bits2(at, CT_OP_MUL, product, atom) : atom;
    }
    if (!product.i)
        return ct_const32(at, coefficient);
    return coefficient == 1 ? product : ct_bits2(at, CT_OP_MUL, product, ct_const32(at, coefficient));
}

/* Terms with negative coefficients come last, as differences. */
ct_value ct_polynomial_emit(struct ct_cursor *at, const struct ct_polynomial *polynomial)
{
    ct_value sum = CT_NO_VALUE;

    for (uint32_t i = 0; i < polynomial->n; i++)
        if (polynomial->terms[i].coefficient <= INT32_MAX) {
            const ct_value term = emit_monomial(at, &polynomial->terms[i], polynomial->terms[i].coefficient);

            sum = sum.i ? ct_add(at, sum, term) : term;
        }
    for (uint32_t i = 0; i < polynomial->n; i++)
        if (polynomial->terms[i].coefficient > INT32_MAX)
            sum = ct_sub(at, sum.i ? sum : ct_const32(at, 0), emit_monomial(at, &polynomial->terms[i], -polynomial->terms[i].coefficient));
    return sum;
}
