/* SPDX-License-Identifier: Apache-2.0 */
/* IR values: their forms (integer, float), and the Function variables that carry phis, and values that are used outside of the lists that
 * define them.
 *
 * The tree determines dominance: a node is reached only through the nodes before it in its list, and those before the nodes around it. So a
 * definition dominates the rest of its own list and everything inside it; elsewhere the variable is read.
 *
 * A phi with many edges usually has the same value on nearly all of them: kernels that are cut at their barriers become a loop in which
 * each iteration changes little of a state of hundreds of values (resume.c). If every edge stored each of them, the code would grow
 * quadratically. Therefore phis share variables with their values where possible (emit_variables.c); else the phi's variable is stored where
 * the majority value is defined, and only the other edges overwrite it. */
#include "emit.h"

#include <assert.h>

static struct ct_gen_value *info_of(struct ct_gen *g, ct_value value)
{
    assert(value.i && value.i < g->fn->values.n);
    return &g->values[value.i];
}

unsigned ct_gen_bits(const struct ct_gen *g, ct_value value)
{
    return ct_width_bits(ct_width_of_value(g->fn, value));
}

static bool is_global(enum ct_op op)
{
    return op == CT_OP_CONST || op == CT_OP_UNDEF; /* module-scope constants: they dominate everything */
}

static bool is_visible(const struct ct_gen *g, const struct ct_insn *def, const struct ct_block *block)
{
    const struct ct_gen_position *from = &g->positions[def->block->id];
    const uint32_t at = g->positions[block->id].at;

    return is_global(def->op) || (from->at <= at && at <= from->list_end);
}

/* ---- the plan ---- */

/* Width of the float as which an instruction reads its operand; 0: it reads an integer. */
static unsigned operand_float_bits(const struct ct_insn *insn, uint32_t operand)
{
    switch (insn->op) {
    case CT_OP_FADD:
    case CT_OP_FSUB:
    case CT_OP_FMUL:
    case CT_OP_FFMA:
    case CT_OP_FDIV:
    case CT_OP_FRCP:
    case CT_OP_FSQRT:
    case CT_OP_FRSQRT:
    case CT_OP_FSIN:
    case CT_OP_FCOS:
    case CT_OP_FLG2:
    case CT_OP_FEX2:
    case CT_OP_FMIN:
    case CT_OP_FMAX:
    case CT_OP_FNEG:
    case CT_OP_FABS:
    case CT_OP_FFLOOR:
    case CT_OP_FCEIL:
    case CT_OP_FTRUNC:
    case CT_OP_FRINT:
    case CT_OP_FCMP:
    case CT_OP_FTOF:
    case CT_OP_FTOI:
        return ptx_type_bits(insn->type);
    case CT_OP_ATOM:
        return operand > 0 && insn->operation == PTX_ADD && ptx_type_is_float(insn->type) ? ptx_type_bits(insn->type) : 0;
    default: /* all others, also new ones, read integers */
        return 0;
    }
}

/* ---- variables: PoCL's code sometimes stores a boolean as a byte that is neither 0 nor 1, so there they are words ---- */

static bool is_stored_as_word(const struct ct_gen *g, ct_value value)
{
    return ct_gen_bits(g, value) == 1 && ct_gen_works_around(g, PTX2SPV_WORKAROUND_STORED_BOOLEANS);
}

static uint32_t stored_type(struct ct_gen *g, ct_value value)
{
    return ct_gen_int_type(g, is_stored_as_word(g, value) ? 32 : ct_gen_bits(g, value));
}

static uint32_t variable_for(struct ct_gen *g, ct_value value)
{
    return ct_gen_variable(g, stored_type(g, value));
}

/* The value as its variable holds it. */
static uint32_t to_variable(struct ct_gen *g, ct_value value, uint32_t id)
{
    return is_stored_as_word(g, value) ? GEN(g, SpvOpSelect, ct_gen_int_type(g, 32), id, ct_gen_u32(g, 1), ct_gen_u32(g, 0)) : id;
}

static uint32_t from_variable(struct ct_gen *g, ct_value value, uint32_t variable)
{
    const uint32_t stored = GEN(g, SpvOpLoad, stored_type(g, value), variable);

    return is_stored_as_word(g, value) ? GEN(g, SpvOpINotEqual, ct_gen_int_type(g, 1), stored, ct_gen_u32(g, 0)) : stored;
}

/* ---- planning ---- */

static void plan_use(struct ct_gen *g, ct_value value, unsigned float_bits, const struct ct_block *block)
{
    struct ct_gen_value *info;

    if (!value.i)
        return;
    info = info_of(g, value);
    if (float_bits)
        info->type_float = float_bits;
    else
        info->wants_int = true;
    if (info->variable || is_visible(g, g->fn->values.v[value.i].def, block))
        return;
    info->wants_int = true;
    info->variable = variable_for(g, value);
}

/* Whether every path from `block` back to it passes `def`, which dominates it: `def` is in the innermost loop of `block`. */
static bool is_always_redefined(const struct ct_block *def, const struct ct_block *block)
{
    if (!block->loop_head)
        return true;
    if (block->loop_head == block) /* the path to the next iteration may bypass the definition */
        return false;
    return ct_loop_contains(block->loop_head, def);
}

/* Whether the edges that store another value than the majority value come from blocks with no other successor: then no other path finds
 * the variable changed. */
static bool other_preds_have_one_successor(const struct ct_insn *phi, ct_value majority)
{
    for (uint32_t i = 0; i < phi->n_operands; i++)
        if (phi->operands[i].i != majority.i && phi->block->preds.v[i]->n_succs != 1)
            return false;
    return true;
}

static void plan_phi(struct ct_gen *g, const struct ct_insn *phi)
{
    struct ct_gen_value *info = info_of(g, phi->results[0]);
    const ct_value majority = ct_gen_find_majority(phi);
    const struct ct_insn *def = majority.i ? g->fn->values.v[majority.i].def : NULL;
    struct ct_gen_seed *seed;

    if (info->incoming)
        return; /* it shares it */
    info->incoming = variable_for(g, phi->results[0]);
    if (!def || is_global(def->op) || def->block == phi->block || !is_always_redefined(def->block, phi->block) ||
        !other_preds_have_one_successor(phi, majority))
        return;
    seed = CT_ARENA_ARRAY(&g->fn->compilation->scratch, struct ct_gen_seed, 1);
    *seed = (struct ct_gen_seed){.variable = info->incoming, .next = info_of(g, majority)->seeds};
    info_of(g, majority)->seeds = seed;
    info->majority = majority;
}

static void plan_insn(struct ct_gen *g, const struct ct_insn *insn)
{
    if (insn->op == CT_OP_PHI)
        plan_phi(g, insn);
    for (uint32_t i = 0; i < insn->n_operands; i++)
        plan_use(g, insn->operands[i], operand_float_bits(insn, i), insn->op == CT_OP_PHI ? insn->block->preds.v[i] : insn->block);
}

/* Lists the edges by source, then by target, then by their index among the predecessors of the target. */
static void list_edges(struct ct_gen *g)
{
    struct ct_arena *scratch = &g->fn->compilation->scratch;
    const uint32_t n = g->fn->blocks.n;
    uint32_t *next = CT_ARENA_ARRAY(scratch, uint32_t, n);

    g->first_edge = CT_ARENA_ARRAY(scratch, uint32_t, (size_t)n + 1);
    for (uint32_t b = 0; b < n; b++)
        g->first_edge[b + 1] = g->first_edge[b] + g->fn->blocks.v[b]->n_succs;
    for (uint32_t b = 0; b < n; b++)
        next[b] = g->first_edge[b];
    g->edges = CT_ARENA_ARRAY(scratch, struct ct_gen_edge, g->first_edge[n]);
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t p = 0; p < g->fn->blocks.v[b]->preds.n; p++)
            g->edges[next[g->fn->blocks.v[b]->preds.v[p]->id]++] = (struct ct_gen_edge){b, p};
}

/* Phis that share a variable also use it as `variable`. */
static void plan_shared_variable(struct ct_gen *g, const struct ct_insn *phi)
{
    struct ct_gen_value *info = info_of(g, phi->results[0]), *first;

    if (!info->shares.i)
        return;
    first = info_of(g, info->shares);
    if (!first->incoming)
        first->incoming = variable_for(g, info->shares);
    info->incoming = info->variable = first->incoming;
    info->wants_int = true;
}

static void plan_shared_variables(struct ct_gen *g)
{
    ct_gen_share_variables(g);
    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn && insn->op == CT_OP_PHI; insn = insn->next)
            plan_shared_variable(g, insn);
}

void ct_gen_plan_values(struct ct_gen *g)
{
    list_edges(g);
    g->values = CT_ARENA_ARRAY(&g->fn->compilation->scratch, struct ct_gen_value, g->fn->values.n);
    plan_shared_variables(g);
    for (uint32_t b = 0; b < g->fn->blocks.n; b++)
        for (const struct ct_insn *insn = g->fn->blocks.v[b]->first; insn; insn = insn->next)
            plan_insn(g, insn);
}

/* ---- uses and definitions ---- */

static uint32_t as_float(struct ct_gen *g, const struct ct_gen_value *info, uint32_t id)
{
    return GEN(g, SpvOpBitcast, ct_gen_float_type(g, info->type_float), id);
}

/* Reads the variable once per block. */
static void load_value(struct ct_gen *g, ct_value value, struct ct_gen_value *info)
{
    if (info->loaded_in == g->block->id + 1)
        return;
    info->loaded_in = g->block->id + 1;
    info->loaded_int = from_variable(g, value, info->variable);
    info->loaded_float = info->type_float ? as_float(g, info, info->loaded_int) : 0;
}

static uint32_t constant(struct ct_gen *g, ct_value value)
{
    const struct ct_insn *def = g->fn->values.v[value.i].def;
    const uint64_t bits = def->op == CT_OP_CONST ? def->imm : 0; /* undefined values are zero, so that every run gives the same result */
    const unsigned width = ct_gen_bits(g, value);
    uint32_t id;

    (void)ct_gen_int_type(g, width);
    if (width == 1)
        return ct_spv_const_bool(&g->m, bits & 1);
    id = ct_spv_const_int(&g->m, width, bits);
    return ct_gen_is_hidden_sign(g, width, bits) ? ct_gen_opaque(g, width, id) : id;
}

static uint32_t float_constant(struct ct_gen *g, ct_value value, unsigned width)
{
    const struct ct_insn *def = g->fn->values.v[value.i].def;
    const uint64_t bits = def->op == CT_OP_CONST ? def->imm : 0;
    const uint32_t type = ct_gen_float_type(g, width);

    if (ct_gen_is_hidden_sign(g, width, bits))
        return GEN(g, SpvOpBitcast, type, constant(g, value));
    return ct_spv_const_float(&g->m, width, bits);
}

uint32_t ct_gen_use(struct ct_gen *g, ct_value value)
{
    struct ct_gen_value *info = info_of(g, value);
    const struct ct_insn *def = g->fn->values.v[value.i].def;

    if (is_global(def->op))
        return constant(g, value);
    if (is_visible(g, def, g->block))
        return info->as_int;
    load_value(g, value, info);
    return info->loaded_int;
}

uint32_t ct_gen_use_float(struct ct_gen *g, ct_value value)
{
    struct ct_gen_value *info = info_of(g, value);
    const struct ct_insn *def = g->fn->values.v[value.i].def;

    if (is_global(def->op))
        return float_constant(g, value, info->type_float);
    if (is_visible(g, def, g->block))
        return info->as_float;
    load_value(g, value, info);
    return info->loaded_float;
}

/* Writes the variables that carry a value that has just been defined; a phi's own variable has it already. */
static void store_value(struct ct_gen *g, ct_value value, const struct ct_gen_value *info)
{
    const bool is_new = info->variable && info->variable != info->incoming;
    const uint32_t stored = is_new || info->seeds ? to_variable(g, value, info->as_int) : 0;

    if (is_new)
        GEN_VOID(g, SpvOpStore, info->variable, stored);
    for (const struct ct_gen_seed *seed = info->seeds; seed; seed = seed->next)
        GEN_VOID(g, SpvOpStore, seed->variable, stored);
}

void ct_gen_define(struct ct_gen *g, ct_value value, uint32_t id)
{
    struct ct_gen_value *info = info_of(g, value);

    info->as_int = id;
    if (info->type_float)
        info->as_float = as_float(g, info, id);
    store_value(g, value, info);
}

void ct_gen_define_float(struct ct_gen *g, ct_value value, uint32_t id)
{
    struct ct_gen_value *info = info_of(g, value);

    info->as_float = id;
    if (info->wants_int)
        info->as_int = GEN(g, SpvOpBitcast, ct_gen_int_type(g, ct_gen_bits(g, value)), id);
    store_value(g, value, info);
}

/* ---- phis ---- */

void ct_gen_load_phis(struct ct_gen *g)
{
    for (const struct ct_insn *insn = g->block->first; insn && insn->op == CT_OP_PHI; insn = insn->next) {
        const ct_value value = insn->results[0];

        ct_gen_define(g, value, from_variable(g, value, info_of(g, value)->incoming));
    }
}

/* The index of the current block among the predecessors of another. Several edges between two blocks carry the same values: the first one
 * counts. */
static uint32_t pred_index(const struct ct_gen *g, const struct ct_block *block)
{
    uint32_t low = g->first_edge[g->block->id], high = g->first_edge[g->block->id + 1];

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (g->edges[middle].to < block->id)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low < g->first_edge[g->block->id + 1] && g->edges[low].to == block->id);
    return g->edges[low].index;
}

/* Without an operand, the phi is undefined on that edge. */
static uint32_t phi_operand(struct ct_gen *g, const struct ct_insn *phi, uint32_t index)
{
    if (phi->operands[index].i)
        return ct_gen_use_chosen(g, phi, index);
    return ct_spv_null(&g->m, ct_gen_int_type(g, ct_gen_bits(g, phi->results[0])));
}

/* Whether the variable has this value wherever it is live: see emit_variables.c. */
static bool holds(struct ct_gen *g, uint32_t variable, ct_value value)
{
    return value.i && info_of(g, value)->shares.i && info_of(g, value)->incoming == variable;
}

void ct_gen_store_phis(struct ct_gen *g)
{
    CT_VEC(uint32_t) stores = {0}; /* pairs: variable, value */
    struct ct_arena *scratch = &g->fn->compilation->scratch;

    /* All values are computed first: one may be read from a variable that is written here. */
    for (uint32_t s = 0; s < g->block->n_succs; s++) {
        const struct ct_block *to = g->block->succs[s];
        const uint32_t index = to->first->op == CT_OP_PHI ? pred_index(g, to) : 0;

        for (const struct ct_insn *phi = to->first; phi && phi->op == CT_OP_PHI; phi = phi->next) {
            const struct ct_gen_value *info = info_of(g, phi->results[0]);

            if ((info->majority.i && phi->operands[index].i == info->majority.i) || holds(g, info->incoming, phi->operands[index]))
                continue;
            *CT_PUSH(scratch, &stores) = info->incoming;
            *CT_PUSH(scratch, &stores) = to_variable(g, phi->results[0], phi_operand(g, phi, index));
        }
    }
    for (uint32_t i = 0; i < stores.n; i += 2)
        GEN_VOID(g, SpvOpStore, stores.v[i], stores.v[i + 1]);
}

uint32_t ct_gen_variable(struct ct_gen *g, uint32_t type)
{
    const uint32_t pointer = ct_spv_type_pointer(&g->m, SpvStorageClassFunction, type);

    return CT_SPV_RESULT(&g->m, CT_SPV_VARIABLES, SpvOpVariable, pointer, SpvStorageClassFunction);
}
