/* SPDX-License-Identifier: Apache-2.0 */
/* residuals: finds the fma.rn.f32 whose single rounding the program depends on. Others may round their product, too
 * (ptx2spv_target.splits_fma32).
 * In:  SSA, before `lower`.   Out: the same; those FFMAs are marked `residual`.
 *
 * A sum needs its exact product if nearly all of the product cancels, since then the product's rounding error is as large as the result. That
 * cannot be seen in general, but programs use fma in this way in few forms, which are searched for by how the operands are defined:
 *
 *   product     p = a * b;  fma(a, b, -p)                the error of a product: double-double arithmetic, Dekker's product, compensated
 *                                                        dot products; also if some bits of p are masked
 *   difference  fma(a, b, -p) where p is a product whose error is computed as well (Kahan's difference of two products)
 *   quotient    fma(-q, b, a) where q is computed from a by an inversion or a rounding: the remainder of a division or of a root, and
 *                                                        the reduction of an argument, whose q is a rounded a * K
 *   unit        fma(-b, r, 1) where r is computed from b by an inversion, or b and r from one, also with 1/2 (Newton's and Goldschmidt's
 *               iterations; other constants are those of polynomials)
 *   multiple    fma(x, K, -n) where n is x * K, rounded to an integer (exponential functions)
 *   next        fma(k, -K, r) where r is one of the above with the factor k: further parts of a constant
 *   correction  fma(r, y, q) where r is one of the above, computed from q: the last step of a division or a root
 *
 * Values are followed through pure instructions, but through no phi, and not far (VISITS_MAX): such sequences are short. What is
 * marked by mistake only takes longer. */
#include "ptx2spv/passes/simplify.h"

enum { VISITS_MAX = 40 };
#define MAGIC_LEAST UINT32_C(0x4b000000) /* 2^23: adding a constant of this size rounds the other operand to an integer */
#define MAGNITUDE UINT32_C(0x7fffffff)
#define ONE UINT32_C(0x3f800000)
#define HALF UINT32_C(0x3f000000)

/* What lies on the way from a value to one that it was computed from. */
enum { THROUGH_INVERSION = 1, THROUGH_ROUNDING = 2, THROUGH_ELSE = 4 };

/* An operand without the operations on its sign. */
struct factor {
    ct_value root;
    bool negative; /* an odd number of negations, or a negative constant */
};

struct search {
    struct ct_fn *fn;
    bool *is_marked;      /* indexed by value: results of marked FFMAs */
    bool *is_compensated; /* indexed by value: products whose errors are computed */
};

static const struct ct_insn *definition(const struct search *s, ct_value x)
{
    return s->fn->values.v[x.i].def;
}

static bool is_f32(const struct ct_insn *insn, enum ct_op op)
{
    return insn && insn->op == op && insn->type == PTX_F32;
}

static struct factor factor_of(const struct search *s, ct_value x)
{
    struct factor factor = {.root = x};

    for (const struct ct_insn *def = definition(s, x); def; def = definition(s, factor.root)) {
        if (def->op == CT_OP_CONST)
            factor.negative ^= (def->imm & 0x80000000) != 0;
        else if (is_f32(def, CT_OP_FNEG))
            factor.negative ^= true;
        if (def->op != CT_OP_COPY && !is_f32(def, CT_OP_FNEG) && !is_f32(def, CT_OP_FABS))
            break;
        factor.root = def->operands[0];
    }
    return factor;
}

/* Whether two roots are the same value, or constants of the same magnitude. */
static bool are_same(const struct search *s, ct_value a, ct_value b)
{
    const struct ct_insn *x = ct_constant_or_null(s->fn, a), *y = ct_constant_or_null(s->fn, b);

    return a.i == b.i || (x && y && (x->imm & MAGNITUDE) == (y->imm & MAGNITUDE));
}

static bool are_same_pair(const struct search *s, const ct_value a[2], const ct_value b[2])
{
    return (are_same(s, a[0], b[0]) && are_same(s, a[1], b[1])) || (are_same(s, a[0], b[1]) && are_same(s, a[1], b[0]));
}

/* ---- what a value is computed from ---- */

static bool has_magic_constant(const struct search *s, const struct ct_insn *sum)
{
    for (uint32_t i = 0; i < sum->n_operands; i++) {
        const struct ct_insn *constant = ct_constant_or_null(s->fn, factor_of(s, sum->operands[i]).root);

        if (constant && (constant->imm & MAGNITUDE) >= MAGIC_LEAST)
            return true;
    }
    return false;
}

/* What an instruction adds to the way through it. */
static unsigned kind_of(const struct search *s, const struct ct_insn *insn)
{
    switch ((unsigned)insn->op) {
    case CT_OP_FRCP:
    case CT_OP_FDIV:
    case CT_OP_FSQRT:
    case CT_OP_FRSQRT:
    case CT_OP_SUB: /* of the bits of a float from a constant: a first guess of its inverse or inverse root */
        return THROUGH_INVERSION;
    case CT_OP_FCVT:
    case CT_OP_FRINT:
    case CT_OP_FTRUNC:
    case CT_OP_FFLOOR:
    case CT_OP_FCEIL:
        return THROUGH_ROUNDING;
    case CT_OP_FADD:
    case CT_OP_FSUB:
    case CT_OP_FFMA:
        return has_magic_constant(s, insn) ? THROUGH_ROUNDING : THROUGH_ELSE;
    case CT_OP_FMUL:
        return THROUGH_ELSE;
    default:
        return 0;
    }
}

struct visit {
    ct_value value;
    unsigned through;
};

struct visits {
    struct visit v[VISITS_MAX];
    unsigned n;
};

static void add_visit(struct visits *visits, ct_value value, unsigned through)
{
    for (unsigned i = 0; i < visits->n; i++)
        if (visits->v[i].value.i == value.i && (visits->v[i].through & through) == through)
            return;
    if (visits->n < VISITS_MAX)
        visits->v[visits->n++] = (struct visit){value, through};
}

/* Lists what x is computed from, nearest first, beginning with x itself. */
static void follow(const struct search *s, ct_value x, struct visits *out)
{
    out->n = 0;
    add_visit(out, x, 0);
    for (unsigned i = 0; i < out->n; i++) {
        const struct ct_insn *def = definition(s, out->v[i].value);
        const unsigned through = out->v[i].through;

        if (!def || def->op == CT_OP_PHI || !ct_insn_is_pure(def))
            continue;
        for (uint32_t k = 0; k < def->n_operands; k++)
            add_visit(out, def->operands[k], through | kind_of(s, def));
    }
}

/* Whether x was computed from `from`, through one of the given kinds. */
static bool derives(const struct search *s, ct_value x, ct_value from, unsigned through)
{
    struct visits visits;

    follow(s, x, &visits);
    for (unsigned i = 1; i < visits.n; i++)
        if (visits.v[i].value.i == from.i && (visits.v[i].through & through) != 0)
            return true;
    return false;
}

/* Whether both were computed from one inverse, or one from the inverse of the other. */
static bool are_inverses(const struct search *s, ct_value a, ct_value b)
{
    struct visits of_a, of_b;

    if (derives(s, a, b, THROUGH_INVERSION) || derives(s, b, a, THROUGH_INVERSION))
        return true;
    follow(s, a, &of_a);
    follow(s, b, &of_b);
    for (unsigned i = 0; i < of_a.n; i++) {
        const struct ct_insn *def = definition(s, of_a.v[i].value);

        for (unsigned k = 0; def && kind_of(s, def) == THROUGH_INVERSION && k < of_b.n; k++)
            if (of_a.v[i].value.i == of_b.v[k].value.i)
                return true;
    }
    return false;
}

/* ---- the forms ---- */

struct form {
    ct_value factors[2], addend; /* roots */
    bool cancels;                /* the signs of the product and the addend differ, as far as they are visible */
};

static struct form form_of(const struct search *s, const struct ct_insn *ffma)
{
    const struct factor a = factor_of(s, ffma->operands[0]), b = factor_of(s, ffma->operands[1]), c = factor_of(s, ffma->operands[2]);

    return (struct form){.factors = {a.root, b.root}, .addend = c.root, .cancels = a.negative ^ b.negative ^ c.negative};
}

/* The product of the same factors that the addend is, or is computed from by operations on its bits; none if there is none. */
static ct_value same_product(const struct search *s, const struct form *form)
{
    struct visits visits;

    follow(s, form->addend, &visits);
    for (unsigned i = 0; i < visits.n; i++) {
        const struct ct_insn *def = definition(s, visits.v[i].value);

        if (is_f32(def, CT_OP_FMUL) && !visits.v[i].through) {
            const ct_value factors[2] = {factor_of(s, def->operands[0]).root, factor_of(s, def->operands[1]).root};

            if (are_same_pair(s, form->factors, factors))
                return visits.v[i].value;
        }
    }
    return CT_NO_VALUE;
}

static bool is_quotient(const struct search *s, const struct form *form)
{
    for (int i = 0; form->cancels && i < 2; i++)
        if (derives(s, form->factors[i], form->addend, THROUGH_INVERSION | THROUGH_ROUNDING))
            return true;
    return false;
}

static bool is_unit(const struct search *s, const struct form *form)
{
    const struct ct_insn *constant = ct_constant_or_null(s->fn, form->addend);

    return form->cancels && constant && ((constant->imm & MAGNITUDE) == ONE || (constant->imm & MAGNITUDE) == HALF) &&
           are_inverses(s, form->factors[0], form->factors[1]);
}

static bool is_multiple(const struct search *s, const struct form *form)
{
    for (int i = 0; form->cancels && i < 2; i++)
        if (ct_constant_or_null(s->fn, form->factors[!i]) && derives(s, form->addend, form->factors[i], THROUGH_ROUNDING))
            return true;
    return false;
}

static bool is_marked(const struct search *s, ct_value root)
{
    return s->is_marked[root.i];
}

static bool has_operand(const struct search *s, ct_value ffma, ct_value root)
{
    const struct ct_insn *insn = definition(s, ffma);

    for (int i = 0; i < 3; i++)
        if (are_same(s, factor_of(s, insn->operands[i]).root, root))
            return true;
    return false;
}

static bool is_next(const struct search *s, const struct form *form)
{
    return is_marked(s, form->addend) && (has_operand(s, form->addend, form->factors[0]) || has_operand(s, form->addend, form->factors[1]));
}

static bool is_correction(const struct search *s, const struct form *form)
{
    for (int i = 0; i < 2; i++)
        if (is_marked(s, form->factors[i]) && has_operand(s, form->factors[i], form->addend))
            return true;
    return false;
}

static bool is_residual(struct search *s, const struct form *form)
{
    const ct_value product = same_product(s, form);

    if (product.i)
        s->is_compensated[product.i] = true;
    return product.i || is_quotient(s, form) || is_unit(s, form) || is_multiple(s, form) || is_next(s, form) || is_correction(s, form);
}

static bool mark(struct search *s, struct ct_insn *insn)
{
    s->is_marked[insn->results[0].i] = insn->residual = true;
    return true;
}

/* Differences of products come last, since the product's error may be computed behind them. */
enum ct_pass_result ct_pass_residuals(struct ct_fn *fn)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct search s = {.fn = fn};
    struct ct_block **blocks;
    uint32_t n;
    bool changed = false;

    if (!fn->target->splits_fma32)
        return CT_PASS_UNCHANGED;
    s.is_marked = CT_ARENA_ARRAY(scratch, bool, fn->values.n);
    s.is_compensated = CT_ARENA_ARRAY(scratch, bool, fn->values.n);
    ct_fn_compute_rpo(fn);
    blocks = ct_fn_rpo_blocks(fn, &n);
    for (int differences = 0; differences < 2; differences++)
        for (uint32_t b = 0; b < n; b++)
            for (struct ct_insn *insn = blocks[b]->first; insn; insn = insn->next) {
                struct form form;

                if (!is_f32(insn, CT_OP_FFMA) || insn->residual)
                    continue;
                form = form_of(&s, insn);
                if (differences ? s.is_compensated[form.addend.i] : is_residual(&s, &form))
                    changed |= mark(&s, insn);
            }
    return changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
