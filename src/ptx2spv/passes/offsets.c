/* SPDX-License-Identifier: Apache-2.0 */
/* offsets: addresses of global memory as a parameter plus an offset of 32 bits, which GPUs add in the access itself
 * (ptx2spv_target.short_offsets).
 * In:  SSA; `addrspace` has run.   Out: the same; fn->limits_objects is set if the code is only correct while every object in memory is at most
 * PTX2SPV_OBJECT_LIMIT bytes. Accesses whose address was replaced are marked `is_device`.
 *
 *     d = mulwide.s32 i, 4                        e = shl.32 i, 2
 *     a = add.64 p, d                             f = add.32 e, 2^31
 *     x = load.global [a + 8]           =>        q = or.64 p, mask                   the rule for pointers, if it is an OR
 *                                                 r = add.64 q, -2^31
 *                                                 b = add.64 r, ext.u32 f
 *                                                 x = load.global [b + 8]
 *
 * p is a parameter of the kernel, and points into the object that is accessed; so if that has less than 2^31 bytes the distance of the access
 * from p is between -2^31 and 2^31, and its lower 32 bits determine it, which can be computed in 32 bits. The distance is made positive by
 * adding 2^31, unless all its terms are positive anyway. AMD's compiler finds the form base + zero-extended offset + constant, and keeps
 * the base in scalar registers; otherwise an access takes six instructions of 32-bit vectors.
 * Only the addresses of accesses are changed: what a program computes with pointers otherwise need not point into an object. A pointer that was
 * loaded from memory is left alone, since the object may be larger than those that existed when the kernel was launched. */
#include "ptx2spv/ir/builder.h"
#include "simplify.h"

enum { DEPTH_MAX = 8, TERMS_MAX = 8 };
#define NEAR (INT64_C(1) << 11) /* constants of this size may stay in the access; NEAR + PTX2SPV_OBJECT_LIMIT < 2^31 */
#define BIAS (UINT64_C(1) << 31)

struct distance {
    struct ct_fn *fn;
    ct_value base; /* the parameter; none: not yet found */
    ct_value terms[TERMS_MAX];
    uint32_t n_terms;
    uint64_t constant;
    bool failed;
};

static const struct ct_insn *definition(const struct ct_fn *fn, ct_value x)
{
    const struct ct_insn *def = fn->values.v[x.i].def;

    while (def && def->op == CT_OP_COPY)
        def = fn->values.v[def->operands[0].i].def;
    return def;
}

static bool is_parameter(const struct ct_insn *def)
{
    return def->op == CT_OP_LOAD && def->space == CT_SPACE_PARAM && !def->n_operands && ptx_type_bits(def->type) == 64;
}

/* Whether a term can only be a distance. Any other may be the pointer, and the parameter a distance from it. */
static bool is_distance(const struct ct_insn *def)
{
    return def->op == CT_OP_EXT || def->op == CT_OP_MULWIDE || def->op == CT_OP_SHL || def->op == CT_OP_MUL;
}

/* Divides a sum into its terms. */
static void add_terms(struct distance *d, ct_value x, unsigned depth)
{
    const struct ct_insn *def = definition(d->fn, x);

    if (!def || (d->n_terms == TERMS_MAX && def->op != CT_OP_CONST) || (is_parameter(def) && d->base.i)) {
        d->failed = true;
    } else if (is_parameter(def)) {
        d->base = x;
    } else if (def->op == CT_OP_CONST) {
        d->constant += def->imm;
    } else if (def->op == CT_OP_ADD && depth) {
        add_terms(d, def->operands[0], depth - 1);
        add_terms(d, def->operands[1], depth - 1);
    } else if (is_distance(def)) {
        d->terms[d->n_terms++] = x;
    } else {
        d->failed = true;
    }
}

/* Whether a 64-bit value is certainly a product or a sum of unsigned 32-bit numbers that did not wrap around. */
static bool is_positive(const struct ct_fn *fn, ct_value x, unsigned depth)
{
    const struct ct_insn *def = definition(fn, x);

    if (!def || !depth)
        return false;
    if (def->op == CT_OP_EXT)
        return !ptx_type_is_signed(def->type);
    if (def->op == CT_OP_MULWIDE)
        return def->type == PTX_U32;
    return def->op == CT_OP_SHL && is_positive(fn, def->operands[0], depth - 1) && ct_constant_or_null(fn, def->operands[1]) &&
           ct_constant_or_null(fn, def->operands[1])->imm < 32;
}

/* The lower 32 bits of a 64-bit value, computed in 32 bits as far as possible. */
static ct_value narrowed(struct ct_cursor *at, ct_value x, unsigned depth)
{
    const struct ct_insn *def = definition(at->fn, x);

    if (!def || !depth)
        return ct_low32(at, x);
    switch ((unsigned)def->op) {
    case CT_OP_CONST:
        return ct_const32(at, (uint32_t)def->imm);
    case CT_OP_EXT:
        return ct_width_of_value(at->fn, def->operands[0]) == CT_W_32 && ptx_type_bits(def->type) == 32 ? def->operands[0]
                                                                                                        : ct_low32(at, x);
    case CT_OP_MULWIDE:
        return ct_width_of_value(at->fn, def->operands[0]) == CT_W_32 ? ct_bits2(at, CT_OP_MUL, def->operands[0], def->operands[1])
                                                                      : ct_low32(at, x);
    case CT_OP_ADD:
    case CT_OP_SUB:
    case CT_OP_MUL:
        return ct_bits2(at, def->op, narrowed(at, def->operands[0], depth - 1), narrowed(at, def->operands[1], depth - 1));
    case CT_OP_SHL: {
        const struct ct_insn *amount = ct_constant_or_null(at->fn, def->operands[1]);

        return amount && amount->imm < 32 ? ct_shl_imm(at, narrowed(at, def->operands[0], depth - 1), (uint32_t)amount->imm)
                                          : ct_low32(at, x);
    }
    default:
        return ct_low32(at, x);
    }
}

static ct_value sum_of_terms(struct ct_cursor *at, const struct distance *d, bool *out_positive)
{
    ct_value sum = narrowed(at, d->terms[0], DEPTH_MAX);

    *out_positive = is_positive(at->fn, d->terms[0], DEPTH_MAX);
    for (uint32_t i = 1; i < d->n_terms; i++) {
        sum = ct_add(at, sum, narrowed(at, d->terms[i], DEPTH_MAX));
        *out_positive &= is_positive(at->fn, d->terms[i], DEPTH_MAX);
    }
    return sum;
}

static bool is_near(int64_t offset)
{
    return offset > -NEAR && offset < NEAR;
}

static void replace_address(struct ct_fn *fn, struct ct_insn *access, const struct distance *d)
{
    struct ct_cursor at = {.fn = fn, .block = access->block, .before = access, .where = access->where};
    const int64_t constant = (int64_t)d->constant + access->offset;
    ct_value base = d->base, sum;
    bool positive;

    sum = sum_of_terms(&at, d, &positive);
    access->offset = is_near(constant) ? constant : 0;
    if (!is_near(constant)) {
        sum = ct_add_imm(&at, sum, (uint32_t)constant);
        positive &= constant > 0;
    }
    if (fn->target->pointer_rule == PTX2SPV_POINTER_OR)
        base = ct_or_imm(&at, base, fn->target->pointer_mask);
    if (!positive) {
        sum = ct_add_imm(&at, sum, BIAS);
        base = ct_add_imm(&at, base, -BIAS);
    }
    access->operands[0] = ct_add(&at, base, ct_zext64(&at, sum));
    access->is_device = true;
    fn->limits_objects = true;
}

static bool is_access(const struct ct_insn *insn)
{
    return (insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM) && insn->space == CT_SPACE_GLOBAL &&
           insn->n_operands && insn->operands[0].i;
}

enum ct_pass_result ct_pass_offsets(struct ct_fn *fn)
{
    const uint32_t rule = fn->target->pointer_rule;

    if (!fn->target->short_offsets || fn->compilation->options.any_grid || (rule != PTX2SPV_POINTER_SAME && rule != PTX2SPV_POINTER_OR))
        return CT_PASS_UNCHANGED;
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next) {
            struct distance d = {.fn = fn};

            if (!is_access(insn))
                continue;
            add_terms(&d, insn->operands[0], DEPTH_MAX);
            if (!d.failed && d.base.i && d.n_terms)
                replace_address(fn, insn, &d);
        }
    return fn->limits_objects ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
