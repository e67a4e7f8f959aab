/* SPDX-License-Identifier: Apache-2.0 */
/* addrspace: generic accesses become accesses to the state space that their address belongs to.
 * In:  SSA.   Out: LOAD, STORE and ATOM keep the GENERIC space only if their space is known only at run time; shared and local accesses
 *      that were resolved take a 32-bit address.
 *
 * A generic address carries a tag in its top byte (CT_TAG_*), which cvta inserts; no tag means global. For each value the analysis finds
 *     UNTAGGED   a number, a global address, or their sum: nothing that carries a tag
 *     SHARED     a shared address with its tag, to which an UNTAGGED number may have been added
 *     LOCAL      the same for an address in the thread's frame
 *     MIXED      anything else, including one half of an address
 * by an optimistic data-flow analysis that starts at UNKNOWN. Kernel parameters are untagged: a tag has no meaning in another kernel. A
 * value that is loaded from memory is untagged unless the kernel stores some value that may carry a tag; in that case loads are MIXED
 * and the analysis is run once more. A register that activations.c stores and loads again is as it was. A kernel that creates no tag at all has only
 * global addresses. */
#include "ptx2spv/ir/ir.h"

#include <string.h>

enum tag_class { UNKNOWN, UNTAGGED, SHARED, LOCAL, MIXED };

#define HIGHEST_CLEAN_SHIFT 23 /* a 32-bit number that is shifted further could reach the top byte */

struct flow {
    struct ct_fn *fn;
    struct ct_block **order;
    uint32_t n_blocks;
    uint8_t *classes; /* enum tag_class, indexed by value */
    uint8_t *saved;   /* the same, of registers that activations.c stores, by their numbers */
    bool tags_in_memory;
};

static enum tag_class class_of_bits(uint64_t bits)
{
    const uint64_t tag = bits >> CT_TAG_SHIFT;

    return tag == CT_TAG_SHARED ? SHARED : tag == CT_TAG_LOCAL ? LOCAL : UNTAGGED;
}

static enum tag_class class_of(const struct flow *flow, ct_value value)
{
    return (enum tag_class)flow->classes[value.i];
}

static const struct ct_insn *constant_of(const struct flow *flow, ct_value value)
{
    const struct ct_insn *def = flow->fn->values.v[value.i].def;

    return def && def->op == CT_OP_CONST ? def : NULL;
}

static enum tag_class meet(enum tag_class a, enum tag_class b)
{
    return a == UNKNOWN ? b : b == UNKNOWN || a == b ? a : MIXED;
}

static enum tag_class sum(enum tag_class a, enum tag_class b)
{
    if (a == UNKNOWN || b == UNKNOWN)
        return UNKNOWN;
    return a == UNTAGGED ? b : b == UNTAGGED ? a : MIXED;
}

static enum tag_class difference(enum tag_class a, enum tag_class b)
{
    if (a == UNKNOWN || b == UNKNOWN)
        return UNKNOWN;
    if (b == UNTAGGED)
        return a;
    return a == b && a != MIXED ? UNTAGGED : MIXED;
}

/* AND, OR, XOR: with a constant operand it is known whether the tag is kept, removed or inserted. */
static enum tag_class bitwise(const struct flow *flow, const struct ct_insn *insn)
{
    const enum tag_class a = class_of(flow, insn->operands[0]), b = class_of(flow, insn->operands[1]);
    const struct ct_insn *left = constant_of(flow, insn->operands[0]), *right = constant_of(flow, insn->operands[1]);
    const struct ct_insn *constant = right ? right : left;
    const enum tag_class other = right ? a : b;

    if (a == UNKNOWN || b == UNKNOWN)
        return UNKNOWN;
    if (a == UNTAGGED && b == UNTAGGED)
        return UNTAGGED;
    if (!constant || ct_width_of_value(flow->fn, insn->results[0]) != CT_W_64)
        return MIXED;
    const uint64_t top = constant->imm >> CT_TAG_SHIFT;
    if (insn->op == CT_OP_AND)
        return top == 0xff ? other : top == 0 ? UNTAGGED : MIXED;
    if (insn->op == CT_OP_XOR && top && other == class_of_bits(constant->imm)) /* cvta.to */
        return UNTAGGED;
    return top == 0 ? other : other == UNTAGGED && insn->op == CT_OP_OR ? class_of_bits(constant->imm) : MIXED;
}

static enum tag_class shifted_left(const struct flow *flow, const struct ct_insn *insn)
{
    const enum tag_class a = class_of(flow, insn->operands[0]);
    const struct ct_insn *amount = constant_of(flow, insn->operands[1]);

    if (a != UNTAGGED)
        return a == UNKNOWN ? UNKNOWN : MIXED;
    /* This may be the high half of an address, loaded separately, that is shifted into place. */
    return flow->tags_in_memory && (!amount || amount->imm > HIGHEST_CLEAN_SHIFT) ? MIXED : UNTAGGED;
}

/* Operations that do not preserve addresses: only untagged operands give an untagged result. */
static enum tag_class class_of_other(const struct flow *flow, const struct ct_insn *insn)
{
    enum tag_class all = UNTAGGED;

    for (uint32_t i = 0; i < insn->n_operands; i++) {
        const enum tag_class operand = class_of(flow, insn->operands[i]);

        if (operand == UNKNOWN)
            return UNKNOWN;
        if (operand != UNTAGGED)
            all = MIXED;
    }
    return all;
}

static enum tag_class class_of_resized(const struct flow *flow, const struct ct_insn *insn)
{
    const enum tag_class a = class_of(flow, insn->operands[0]);

    /* Truncation from 64 bits removes the tag. Extension to 64 bits fills the top byte with zeros or sign bits. Otherwise one half of an
     * address stays one half of an address. */
    if (a == UNKNOWN || ct_width_of_value(flow->fn, insn->operands[0]) == CT_W_64 ||
        ct_width_of_value(flow->fn, insn->results[0]) == CT_W_64)
        return a == UNKNOWN ? UNKNOWN : UNTAGGED;
    return a == UNTAGGED ? UNTAGGED : MIXED;
}

/* A phi or a select. A null pointer belongs to every space, because it is never dereferenced; if nothing else is known yet, it is an
 * ordinary number. */
static enum tag_class class_of_merge(const struct flow *flow, const ct_value *values, uint32_t n)
{
    enum tag_class all = UNKNOWN;
    bool has_null = false;

    for (uint32_t i = 0; i < n; i++) {
        const struct ct_insn *constant = constant_of(flow, values[i]);

        if (constant && constant->imm == 0)
            has_null = true;
        else
            all = meet(all, class_of(flow, values[i]));
    }
    return all == UNKNOWN && has_null ? UNTAGGED : all;
}

/* The class that the upper half of a value gives it, if that is a constant, as it is where an address was split; else UNKNOWN. */
static enum tag_class class_of_high_half(const struct ct_fn *fn, const struct ct_insn *pack)
{
    const struct ct_insn *high = fn->values.v[pack->operands[pack->n_operands - 1].i].def;

    if (!high || high->op != CT_OP_CONST || pack->n_operands != 2 || ct_width_of_value(fn, pack->results[0]) != CT_W_64)
        return UNKNOWN;
    return class_of_bits(high->imm << 32);
}

static enum tag_class class_of_packed(const struct flow *flow, const struct ct_insn *insn)
{
    const enum tag_class high = class_of_high_half(flow->fn, insn);

    if (high == UNKNOWN)
        return class_of_other(flow, insn);
    return class_of(flow, insn->operands[0]) == UNKNOWN ? UNKNOWN : high;
}

static enum tag_class class_in_memory(const struct flow *flow, const struct ct_insn *insn)
{
    return flow->tags_in_memory && insn->space != CT_SPACE_PARAM ? MIXED : UNTAGGED;
}

static enum tag_class class_of_result(const struct flow *flow, const struct ct_insn *insn, uint32_t result)
{
    switch (insn->op) {
    case CT_OP_CONST:
        return ct_width_of_value(flow->fn, insn->results[0]) == CT_W_64 ? class_of_bits(insn->imm) : UNTAGGED;
    case CT_OP_PACK:
        return class_of_packed(flow, insn);
    case CT_OP_UNDEF:
        return UNTAGGED;
    case CT_OP_COPY:
        return class_of(flow, insn->operands[0]);
    case CT_OP_PHI:
        return class_of_merge(flow, insn->operands, insn->n_operands);
    case CT_OP_SELECT:
        return class_of_merge(flow, insn->operands + 1, 2);
    case CT_OP_ADD:
        return sum(class_of(flow, insn->operands[0]), class_of(flow, insn->operands[1]));
    case CT_OP_SUB:
        return difference(class_of(flow, insn->operands[0]), class_of(flow, insn->operands[1]));
    case CT_OP_AND:
    case CT_OP_OR:
    case CT_OP_XOR:
        return bitwise(flow, insn);
    case CT_OP_SHL:
        return shifted_left(flow, insn);
    case CT_OP_TRUNC:
    case CT_OP_EXT:
    case CT_OP_MULWIDE:
        return class_of_resized(flow, insn);
    case CT_OP_UNPACK:
        return result + 1 < insn->n_results ? UNTAGGED : class_of_other(flow, insn);
    case CT_OP_SHFL: /* the same kind of value from another lane; the predicate is untagged */
        return result ? UNTAGGED : class_of(flow, insn->operands[0]);
    case CT_OP_LOAD:
        return insn->saved ? (enum tag_class)flow->saved[insn->saved] : class_in_memory(flow, insn);
    case CT_OP_ATOM:
        return class_in_memory(flow, insn);
    default: /* no other operation preserves addresses */
        return class_of_other(flow, insn);
    }
}

/* The class only moves down the lattice, so the analysis terminates. */
static bool lower(uint8_t *place, enum tag_class class)
{
    const uint8_t before = *place;

    *place = (uint8_t)meet((enum tag_class)before, class);
    return *place != before;
}

static void run_analysis(struct flow *flow)
{
    bool changed = true;

    memset(flow->classes, UNKNOWN, flow->fn->values.n);
    memset(flow->saved, UNKNOWN, flow->fn->n_saved + 1);
    while (changed) {
        changed = false;
        for (uint32_t b = 0; b < flow->n_blocks; b++)
            for (const struct ct_insn *insn = flow->order[b]->first; insn; insn = insn->next) {
                for (uint32_t r = 0; r < insn->n_results; r++)
                    changed |= lower(&flow->classes[insn->results[r].i], class_of_result(flow, insn, r));
                if (insn->op == CT_OP_STORE && insn->saved)
                    changed |= lower(&flow->saved[insn->saved], class_of(flow, insn->operands[1]));
            }
    }
}

/* Whether a value that may carry a tag is stored to memory, where the analysis cannot follow it. */
static bool is_tag_stored(const struct flow *flow)
{
    for (uint32_t b = 0; b < flow->n_blocks; b++)
        for (const struct ct_insn *insn = flow->order[b]->first; insn; insn = insn->next)
            for (uint32_t i = 1; (insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM) && i < insn->n_operands; i++)
                if (!insn->saved && class_of(flow, insn->operands[i]) > UNTAGGED)
                    return true;
    return false;
}

static bool is_tag_made(const struct ct_fn *fn)
{
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (const struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if ((insn->op == CT_OP_CONST && class_of_bits(insn->imm) != UNTAGGED) ||
                (insn->op == CT_OP_PACK && class_of_high_half(fn, insn) > UNTAGGED))
                return true;
    return false;
}

static void resolve(struct ct_fn *fn, struct ct_insn *insn, enum tag_class class)
{
    struct ct_cursor at = {.fn = fn, .block = insn->block, .before = insn, .where = insn->where};

    if (class == MIXED)
        return;
    if (class != SHARED && class != LOCAL) {
        insn->space = CT_SPACE_GLOBAL;
        return;
    }
    insn->space = class == SHARED ? CT_SPACE_SHARED : CT_SPACE_LOCAL;
    insn->operands[0] = ct_emit1(&at, CT_OP_TRUNC, PTX_NONE, CT_W_32, insn->operands[0]);
}

static bool is_generic_access(const struct ct_insn *insn)
{
    return (insn->op == CT_OP_LOAD || insn->op == CT_OP_STORE || insn->op == CT_OP_ATOM) && insn->space == CT_SPACE_GENERIC;
}

enum ct_pass_result ct_pass_addrspace(struct ct_fn *fn)
{
    struct flow flow = {.fn = fn};
    const bool tags = is_tag_made(fn);

    if (tags) {
        flow.order = ct_fn_rpo_blocks(fn, &flow.n_blocks);
        flow.classes = CT_ARENA_ARRAY(&fn->compilation->scratch, uint8_t, fn->values.n);
        flow.saved = CT_ARENA_ARRAY(&fn->compilation->scratch, uint8_t, fn->n_saved + 1);
        run_analysis(&flow);
        flow.tags_in_memory = is_tag_stored(&flow);
        if (flow.tags_in_memory)
            run_analysis(&flow);
    }
    for (uint32_t b = 0; b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (is_generic_access(insn))
                resolve(fn, insn, tags ? class_of(&flow, insn->operands[0]) : UNTAGGED);
    return CT_PASS_CHANGED;
}
