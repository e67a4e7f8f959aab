/* SPDX-License-Identifier: Apache-2.0 */
/* lane_values: reads of another lane's register that need no exchange, since each lane can compute what the other one has: from its number, and
 * from values that all threads of the block have in common.
 * In:  SSA.   Out: the same.
 *
 * Row r of matrix i of ldmatrix has the address that lane 8 i + r gives, which is usually a base plus an offset by the lane's number. Here each
 * lane computes that address itself: a copy of the computation, with the number of the other lane. Its registers and its loops' phis
 * are copied, too, in uniform control flow, where all lanes are in the same iteration. */
#include "sync.h"

#include <string.h>

enum { CLONED_MAX = 64 /* instructions for one read */, LANE_DEPTH_MAX = 6 };

struct lane {                 /* a lane whose values are computed */
    ct_value number, linear;  /* computed from the own lane's number, at the kernel's start; the thread's number in its block */
    const struct ct_insn *of; /* the expression that was given for it */
    ct_value *values;         /* by value: that lane's; CT_NO_VALUE: not computed yet */
};

struct pass {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    struct ct_divergence divergence;
    uint32_t n_values; /* when the pass began */
    CT_VEC(struct lane *) lanes;
    uint32_t *visited, visit; /* by value: the last search that met it */
    unsigned n_cloned;
};

static const struct ct_insn *definition(const struct pass *p, ct_value value)
{
    return p->fn->values.v[value.i].def;
}

/* ---- whether a value can be computed ---- */

static bool is_thread_index(const struct ct_insn *insn)
{
    return insn->op == CT_OP_SYSVAL &&
           (insn->sreg == CT_SYS_TID_LINEAR || insn->sreg == CT_SYS_LANEID || (insn->sreg >= CT_SYS_TID_X && insn->sreg <= CT_SYS_TID_Z));
}

/* A read of one lane by all lanes gives all the same value. */
static bool is_same_in_warp(const struct pass *p, ct_value value)
{
    const struct ct_insn *def = definition(p, value);

    return !p->divergence.values[value.i] ||
           (def->op == CT_OP_LANEREAD && !p->divergence.blocks[def->block->id] && !p->divergence.values[def->operands[1].i]);
}

static bool is_uniform_phi(const struct pass *p, const struct ct_insn *insn)
{
    return insn->op == CT_OP_PHI && !p->divergence.blocks[insn->block->id] && !ct_is_reached_variously(&p->divergence, insn->block);
}

static bool is_computation(const struct ct_insn *insn)
{
    return ct_insn_is_pure(insn) && insn->op != CT_OP_PHI && insn->op != CT_OP_SYSVAL && insn->op != CT_OP_UNDEF;
}

static bool can_compute(struct pass *p, ct_value value)
{
    const struct ct_insn *def;

    if (value.i >= p->n_values || is_same_in_warp(p, value) || p->visited[value.i] == p->visit)
        return value.i < p->n_values;
    p->visited[value.i] = p->visit;
    def = definition(p, value);
    if (++p->n_cloned > CLONED_MAX || p->divergence.blocks[def->block->id] || def->n_results != 1)
        return false;
    if (is_thread_index(def))
        return true;
    if (!is_uniform_phi(p, def) && !is_computation(def))
        return false;
    for (uint32_t i = 0; i < def->n_operands; i++)
        if (!can_compute(p, def->operands[i]))
            return false;
    return true;
}

/* ---- the lane ---- */

/* An expression of the own lane's number and constants. */
static bool is_lane_expression(const struct pass *p, ct_value value, unsigned depth)
{
    const struct ct_insn *def = definition(p, value);

    if (value.i >= p->n_values || depth > LANE_DEPTH_MAX || ct_width_of_value(p->fn, value) != CT_W_32)
        return false;
    if (def->op == CT_OP_CONST || (def->op == CT_OP_SYSVAL && (def->sreg == CT_SYS_LANEID || def->sreg == CT_SYS_TID_LINEAR)))
        return true;
    if (def->op != CT_OP_ADD && def->op != CT_OP_AND && def->op != CT_OP_OR && def->op != CT_OP_SHR && def->op != CT_OP_SHL)
        return false;
    for (uint32_t i = 0; i < def->n_operands; i++)
        if (!is_lane_expression(p, def->operands[i], depth + 1))
            return false;
    return true;
}

static bool is_equal(const struct pass *p, const struct ct_insn *a, const struct ct_insn *b)
{
    if (a == b)
        return true;
    if (a->op != b->op || a->imm != b->imm || a->sreg != b->sreg || a->n_operands != b->n_operands ||
        ptx_type_is_signed(a->type) != ptx_type_is_signed(b->type))
        return false;
    for (uint32_t i = 0; i < a->n_operands; i++)
        if (!is_equal(p, definition(p, a->operands[i]), definition(p, b->operands[i])))
            return false;
    return true;
}

static struct ct_cursor at_start(const struct pass *p)
{
    struct ct_block *entry = p->fn->blocks.v[0];

    return (struct ct_cursor){.fn = p->fn, .block = entry, .before = entry->first, .where = entry->first->where};
}

static ct_value copy_expression(struct pass *p, struct ct_cursor *at, ct_value value)
{
    const struct ct_insn *def = definition(p, value);
    ct_value operands[2];
    struct ct_insn *copy;

    for (uint32_t i = 0; i < def->n_operands; i++)
        operands[i] = copy_expression(p, at, def->operands[i]);
    copy = ct_emit_copy_of(at, def);
    memcpy(copy->operands, operands, def->n_operands * sizeof *operands);
    return copy->results[0];
}

/* The code at the kernel's start precedes everything, also what was there before. */
static struct lane *find_lane(struct pass *p, ct_value number)
{
    const struct ct_insn *of = definition(p, number);
    struct ct_cursor at;
    struct lane *lane;

    for (uint32_t i = 0; i < p->lanes.n; i++)
        if (is_equal(p, p->lanes.v[i]->of, of))
            return p->lanes.v[i];
    at = at_start(p);
    lane = CT_ARENA_NEW(p->scratch, struct lane);
    lane->of = of;
    lane->values = CT_ARENA_ARRAY(p->scratch, ct_value, p->n_values);
    lane->number = copy_expression(p, &at, number);
    lane->linear = ct_or(&at, ct_and_imm(&at, ct_sysval(&at, CT_SYS_TID_LINEAR), ~UINT32_C(31)), lane->number);
    *CT_PUSH(p->scratch, &p->lanes) = lane;
    return lane;
}

/* ---- its values ---- */

/* x = n % X, y = n / X % Y, z = n / X / Y, without the divisions if the block has one dimension, as far as constants tell. */
static ct_value thread_index(struct ct_cursor *at, const struct lane *lane, uint8_t which)
{
    const ct_value x = ct_sysval(at, CT_SYS_NTID_X), y = ct_sysval(at, CT_SYS_NTID_Y);
    const ct_value is_line = ct_icmp(at, PTX_U32, PTX_EQ, ct_sysval(at, CT_SYS_BLOCK_THREADS), x);
    ct_value rows, index;

    if (which == CT_SYS_TID_X)
        return ct_select(at, is_line, lane->linear, ct_op2(at, CT_OP_UREM, PTX_U32, lane->linear, x));
    rows = ct_op2(at, CT_OP_UDIV, PTX_U32, lane->linear, x);
    index = ct_op2(at, which == CT_SYS_TID_Y ? CT_OP_UREM : CT_OP_UDIV, PTX_U32, rows, y);
    return ct_select(at, is_line, ct_const32(at, 0), index);
}

static struct ct_cursor behind(struct pass *p, const struct ct_insn *def)
{
    struct ct_insn *next = def->next;

    while (next && next->op == CT_OP_PHI)
        next = next->next;
    return (struct ct_cursor){.fn = p->fn, .block = def->block, .before = next, .where = def->where};
}

static ct_value compute(struct pass *p, struct lane *lane, ct_value value);

static ct_value compute_phi(struct pass *p, struct lane *lane, const struct ct_insn *phi)
{
    struct ct_insn *copy = ct_insn_create(p->fn, CT_OP_PHI, phi->type, 1, phi->n_operands);

    copy->where = phi->where;
    ct_insn_insert_before(phi->block->first, copy);
    copy->results[0] = ct_value_create(p->fn, ct_width_of_value(p->fn, phi->results[0]));
    lane->values[phi->results[0].i] = copy->results[0]; /* its operands may depend on it */
    for (uint32_t i = 0; i < phi->n_operands; i++)
        copy->operands[i] = compute(p, lane, phi->operands[i]);
    return copy->results[0];
}

static ct_value compute_pure(struct pass *p, struct lane *lane, const struct ct_insn *def)
{
    ct_value *operands = CT_ARENA_ARRAY(p->scratch, ct_value, def->n_operands);
    struct ct_cursor at;
    struct ct_insn *copy;

    for (uint32_t i = 0; i < def->n_operands; i++)
        operands[i] = compute(p, lane, def->operands[i]);
    at = behind(p, def);
    copy = ct_emit_copy_of(&at, def);
    memcpy(copy->operands, operands, def->n_operands * sizeof *operands);
    return copy->results[0];
}

static ct_value compute(struct pass *p, struct lane *lane, ct_value value)
{
    const struct ct_insn *def = definition(p, value);
    ct_value *kept = &lane->values[value.i];
    struct ct_cursor at;

    if (kept->i)
        return *kept;
    if (is_same_in_warp(p, value))
        return *kept = value;
    if (def->op == CT_OP_PHI)
        return compute_phi(p, lane, def);
    if (!is_thread_index(def))
        return *kept = compute_pure(p, lane, def);
    at = behind(p, def);
    if (def->sreg == CT_SYS_LANEID)
        return *kept = lane->number;
    return *kept = def->sreg == CT_SYS_TID_LINEAR ? lane->linear : thread_index(&at, lane, def->sreg);
}

/* ---- the pass ---- */

static bool replace(struct pass *p, struct ct_insn *read)
{
    ct_value found;

    p->visit++;
    p->n_cloned = 0;
    if (!is_lane_expression(p, read->operands[1], 0) || !can_compute(p, read->operands[0]))
        return false;
    found = compute(p, find_lane(p, read->operands[1]), read->operands[0]);
    read->op = CT_OP_COPY;
    read->operands[0] = found;
    read->n_operands = 1;
    return true;
}

enum ct_pass_result ct_pass_lane_values(struct ct_fn *fn)
{
    struct pass p = {.fn = fn, .scratch = &fn->compilation->scratch};
    CT_VEC(struct ct_insn *) reads = {0};
    bool changed = false;

    for (uint32_t b = 0; fn->has_native_warps && b < fn->blocks.n; b++)
        for (struct ct_insn *insn = fn->blocks.v[b]->first; insn; insn = insn->next)
            if (insn->op == CT_OP_LANEREAD)
                *CT_PUSH(p.scratch, &reads) = insn;
    if (!reads.n)
        return CT_PASS_UNCHANGED;
    p.divergence = ct_find_divergence(fn);
    p.n_values = fn->values.n;
    p.visited = CT_ARENA_ARRAY(p.scratch, uint32_t, p.n_values);
    for (uint32_t i = 0; i < reads.n; i++)
        changed |= replace(&p, reads.v[i]);
    return changed ? CT_PASS_CHANGED : CT_PASS_UNCHANGED;
}
