/* SPDX-License-Identifier: Apache-2.0 */
/* ssa: registers become values with one definition each.
 * In:  register form; the graph is reducible (not needed here, but preserved).   Out: pruned SSA; no COPY; no unreachable block; the entry
 *      has no predecessors; reads of registers that no path has written read one UNDEF per width.
 * How: phis at the iterated dominance frontiers of a register's definitions, where the register is live (Cytron et al., "Efficiently
 *      Computing Static Single Assignment Form and the Control Dependence Graph", 1991), then renaming along the dominator tree. Most
 *      registers of PTX are written once, before every read; they keep their number and need no work beyond that check.
 *      The blocks in which a register is live are found by a walk from its reads. For n registers that are live in n blocks that would take
 *      n * n steps, so the walk gives up after a number of steps that is proportional to the register's reads and writes. Then all places
 *      where phis may be needed are found first; those that some read depends on stay. Both give the same phis.
 *      If n edges join in a block, and each comes from code that writes a register of its own, phis would take n * n operands. Registers
 *      whose phis go beyond what is in proportion to the size of the kernel are kept in the thread's frame (demote.c). */
#include "demote.h"

#include <stdlib.h>

/* Phi operands that a kernel may have whatever its size, and those for each instruction and for each read and write of one register. */
enum { OPERANDS_MIN = 1 << 18, OPERANDS_PER_INSN = 32, OPERANDS_PER_ACCESS = 16 };

struct block_list {
    struct block_list *next;
    struct ct_block *block;
};

struct variable { /* a register, by its number in fn->values */
    uint32_t n_defs;
    bool general;                      /* false: it has one definition, which dominates every use */
    bool renamed;                      /* its own number is used by a definition already */
    struct ct_block *block;            /* the first definition: its block */
    uint32_t number;                   /* and its index in the block */
    struct block_list *defs, *exposed; /* if general: blocks that write it; blocks that read it before writing it */
};

struct undo {
    uint32_t variable;
    ct_value before;
};

struct phi_place {
    struct ct_block *block;
    uint32_t variable;
};

/* In the blocks from this preorder number of the dominator tree on, up to the next change, the innermost place of the variable that
 * dominates the block is this one (NULL: there is none). */
struct change {
    uint32_t from;
    struct ct_block *place;
};

struct ssa {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    uint32_t n_variables; /* values from here on were created by this pass */
    struct variable *variables;
    /* indexed by block id */
    struct frontier {
        CT_VEC(struct ct_block *) blocks;
    } *frontiers;
    struct ct_insn **last_phi;
    /* the last variable for which the block had this property; variables are processed in ascending order */
    uint32_t *writes, *live, *has_phi, *needed;
    struct ct_block **work;
    CT_VEC(struct ct_block *) places; /* of one variable: see place_far_phis */
    CT_VEC(struct change) changes;
    CT_VEC(struct phi_place) phis; /* to be inserted */
    uint64_t n_operands, n_insns;  /* of these phis; of the kernel */
    uint64_t most_operands;        /* of the current variable, if the kernel has more than enough */
    bool *is_demoted, has_demoted; /* indexed by variable; whether there are any */
    uint32_t *first_edge;          /* indexed by block id: index of its first edge in edge_slots */
    uint32_t *edge_slots;          /* indexed by edge, ordered by source: the edge's index among the predecessors of its target */
    /* renaming: */
    ct_value *current;
    ct_value undefined[CT_W_64 + 1];
    CT_VEC(struct undo) undo;
};

/* ---- registers that need phis ---- */

static void find_definitions(struct ssa *s)
{
    for (uint32_t b = 0; b < s->fn->blocks.n; b++) {
        struct ct_block *block = s->fn->blocks.v[b];
        uint32_t number = 0;

        for (struct ct_insn *insn = block->first; insn; insn = insn->next, number++, s->n_insns++)
            for (uint32_t r = 0; r < insn->n_results; r++) {
                struct variable *variable = &s->variables[insn->results[r].i];

                if (variable->n_defs++ == 0) {
                    variable->block = block;
                    variable->number = number;
                }
            }
    }
    for (uint32_t i = 1; i < s->n_variables; i++)
        s->variables[i].general = s->variables[i].n_defs != 1;
}

static void find_general(struct ssa *s)
{
    for (uint32_t b = 0; b < s->fn->blocks.n; b++) {
        struct ct_block *block = s->fn->blocks.v[b];
        uint32_t number = 0;

        for (struct ct_insn *insn = block->first; insn; insn = insn->next, number++)
            for (uint32_t i = 0; i < insn->n_operands; i++) {
                struct variable *variable = &s->variables[insn->operands[i].i];

                if (!variable->general && insn->operands[i].i)
                    variable->general = variable->block == block ? variable->number >= number : !ct_block_dominates(variable->block, block);
            }
    }
}

static void add_block(struct ssa *s, struct block_list **list, struct ct_block *block)
{
    struct block_list *item;

    if (*list && (*list)->block == block)
        return;
    item = CT_ARENA_NEW(s->scratch, struct block_list);
    item->block = block;
    item->next = *list;
    *list = item;
}

static void find_places(struct ssa *s)
{
    for (uint32_t b = 0; b < s->fn->blocks.n; b++) {
        struct ct_block *block = s->fn->blocks.v[b];

        for (struct ct_insn *insn = block->first; insn; insn = insn->next) {
            for (uint32_t i = 0; i < insn->n_operands; i++) {
                struct variable *variable = &s->variables[insn->operands[i].i];

                if (variable->general && !(variable->defs && variable->defs->block == block))
                    add_block(s, &variable->exposed, block);
            }
            for (uint32_t r = 0; r < insn->n_results; r++)
                if (s->variables[insn->results[r].i].general)
                    add_block(s, &s->variables[insn->results[r].i].defs, block);
        }
    }
}

/* ---- phis ---- */

/* Computes dominance frontiers: a join is in the frontier of each block from a predecessor of the join up to its immediate dominator,
 * exclusively. */
static void find_frontiers(struct ssa *s)
{
    for (uint32_t b = 0; b < s->fn->blocks.n; b++) {
        struct ct_block *join = s->fn->blocks.v[b];

        for (uint32_t p = 0; join->preds.n > 1 && p < join->preds.n; p++)
            for (struct ct_block *at = join->preds.v[p]; at != join->idom; at = at->idom) {
                struct frontier *frontier = &s->frontiers[at->id];

                if (frontier->blocks.n && frontier->blocks.v[frontier->blocks.n - 1] == join)
                    break; /* an earlier predecessor went this way */
                *CT_PUSH(s->scratch, &frontier->blocks) = join;
            }
    }
}

/* Marks the blocks in which the register is live-in; false if there are more than `most` of them, or nearly so many. */
static bool find_live(struct ssa *s, uint32_t variable, uint32_t most)
{
    uint32_t n = 0, steps = 0;

    for (struct block_list *item = s->variables[variable].exposed; item; item = item->next) {
        s->live[item->block->id] = variable;
        s->work[n++] = item->block;
    }
    while (n) {
        const struct ct_block *block = s->work[--n];

        if ((steps += block->preds.n) > most)
            return false;
        for (uint32_t p = 0; p < block->preds.n; p++) {
            struct ct_block *pred = block->preds.v[p];

            if (s->writes[pred->id] == variable || s->live[pred->id] == variable)
                continue;
            s->live[pred->id] = variable;
            s->work[n++] = pred;
        }
    }
    return true;
}

/* A phi that is still in register form: its result and all its operands are the register. */
static void insert_phi(struct ssa *s, struct ct_block *block, uint32_t variable)
{
    struct ct_insn *phi = ct_insn_create(s->fn, CT_OP_PHI, PTX_NONE, 1, block->preds.n);
    struct ct_insn **last = &s->last_phi[block->id];

    phi->results[0].i = variable;
    for (uint32_t i = 0; i < phi->n_operands; i++)
        phi->operands[i].i = variable;
    phi->where = block->first->where;
    if (*last)
        ct_insn_insert_after(*last, phi);
    else
        ct_insn_insert_before(block->first, phi);
    *last = phi;
}

static void add_phi(struct ssa *s, struct ct_block *block, uint32_t variable)
{
    *CT_PUSH(s->scratch, &s->phis) = (struct phi_place){block, variable};
    s->n_operands += block->preds.n;
}

/* Whether the kernel has too many operands of phis, and the variable whose phis begin behind `before` operands contributes to that. */
static bool has_too_many_operands(const struct ssa *s, uint64_t before)
{
    return s->n_operands > OPERANDS_MIN + OPERANDS_PER_INSN * s->n_insns && s->n_operands - before > s->most_operands;
}

/* If all live blocks are known. */
static void place_near_phis(struct ssa *s, uint32_t variable)
{
    uint32_t n = 0;

    for (struct block_list *item = s->variables[variable].defs; item; item = item->next)
        s->work[n++] = item->block;
    while (n) {
        const struct frontier *frontier = &s->frontiers[s->work[--n]->id];

        for (uint32_t i = 0; i < frontier->blocks.n; i++) {
            struct ct_block *join = frontier->blocks.v[i];

            if (s->has_phi[join->id] == variable || s->live[join->id] != variable)
                continue;
            s->has_phi[join->id] = variable;
            add_phi(s, join, variable);
            if (s->writes[join->id] != variable)
                s->work[n++] = join;
        }
    }
}

/* Collects the places: the blocks that write the register, and those that may need a phi for it (has_phi). */
static void find_joins(struct ssa *s, uint32_t variable)
{
    s->places.n = 0;
    for (struct block_list *item = s->variables[variable].defs; item; item = item->next)
        *CT_PUSH(s->scratch, &s->places) = item->block;
    for (uint32_t next = 0; next < s->places.n; next++) {
        const struct frontier *frontier = &s->frontiers[s->places.v[next]->id];

        for (uint32_t i = 0; i < frontier->blocks.n; i++) {
            struct ct_block *join = frontier->blocks.v[i];

            if (s->has_phi[join->id] == variable)
                continue;
            s->has_phi[join->id] = variable;
            if (s->writes[join->id] != variable)
                *CT_PUSH(s->scratch, &s->places) = join;
        }
    }
}

static int compare_preorder(const void *a, const void *b)
{
    const struct ct_block *x = *(struct ct_block *const *)a, *y = *(struct ct_block *const *)b;

    return (x->dom_pre > y->dom_pre) - (x->dom_pre < y->dom_pre);
}

/* Ends the intervals of the open places (a stack in s->work) that do not contain this preorder number. */
static uint32_t close_places(struct ssa *s, uint32_t depth, uint32_t preorder)
{
    while (depth && s->work[depth - 1]->dom_post < preorder) {
        const uint32_t end = s->work[--depth]->dom_post + 1;

        *CT_PUSH(s->scratch, &s->changes) = (struct change){end, depth ? s->work[depth - 1] : NULL};
    }
    return depth;
}

static void order_places(struct ssa *s)
{
    uint32_t depth = 0;

    s->changes.n = 0;
    if (s->places.n)
        qsort(s->places.v, s->places.n, sizeof *s->places.v, compare_preorder);
    for (uint32_t i = 0; i < s->places.n; i++) {
        depth = close_places(s, depth, s->places.v[i]->dom_pre);
        *CT_PUSH(s->scratch, &s->changes) = (struct change){s->places.v[i]->dom_pre, s->places.v[i]};
        s->work[depth++] = s->places.v[i];
    }
    close_places(s, depth, UINT32_MAX);
}

/* The innermost place that dominates the block, perhaps itself; or NULL. */
static struct ct_block *place_above(const struct ssa *s, const struct ct_block *block)
{
    uint32_t low = 0, high = s->changes.n;

    while (low < high) { /* the first change behind the block */
        const uint32_t middle = low + (high - low) / 2;

        if (s->changes.v[middle].from <= block->dom_pre)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? s->changes.v[low - 1].place : NULL;
}

/* Notes that the value at the end of a block is needed. If it is that of a phi, the phi is; the new length of the list of those. */
static uint32_t need_value_at_end(struct ssa *s, uint32_t variable, const struct ct_block *block, uint32_t n)
{
    struct ct_block *place = block ? place_above(s, block) : NULL;

    if (!place || s->writes[place->id] == variable || s->needed[place->id] == variable)
        return n;
    s->needed[place->id] = variable;
    s->work[n++] = place;
    return n;
}

static void place_far_phis(struct ssa *s, uint32_t variable)
{
    const uint64_t before = s->n_operands;
    uint32_t n = 0;

    find_joins(s, variable);
    order_places(s);
    for (struct block_list *item = s->variables[variable].exposed; item; item = item->next) {
        struct ct_block *block = item->block;

        if (s->has_phi[block->id] != variable) {
            n = need_value_at_end(s, variable, block->idom, n);
        } else if (s->needed[block->id] != variable) {
            s->needed[block->id] = variable;
            s->work[n++] = block;
        }
    }
    while (n && !has_too_many_operands(s, before)) {
        struct ct_block *block = s->work[--n];

        add_phi(s, block, variable);
        for (uint32_t p = 0; p < block->preds.n && !has_too_many_operands(s, before); p++)
            n = need_value_at_end(s, variable, block->preds.v[p], n);
    }
}

static void place_phis(struct ssa *s, uint32_t variable)
{
    const uint64_t operands_before = s->n_operands;
    const uint32_t phis_before = s->phis.n;
    uint32_t accesses = 0, edges = 0;

    if (!s->variables[variable].exposed)
        return;
    for (struct block_list *item = s->variables[variable].defs; item; item = item->next, accesses++)
        s->writes[item->block->id] = variable;
    for (struct block_list *item = s->variables[variable].exposed; item; item = item->next, accesses++)
        edges += item->block->preds.n;
    s->most_operands = 256 + OPERANDS_PER_ACCESS * (uint64_t)accesses;
    if (find_live(s, variable, 64 + 4 * accesses + edges))
        place_near_phis(s, variable);
    else
        place_far_phis(s, variable);
    if (!has_too_many_operands(s, operands_before))
        return;
    s->phis.n = phis_before;
    s->n_operands = operands_before;
    s->is_demoted[variable] = s->has_demoted = true;
}

/* ---- renaming ---- */

/* The predecessor lists were just computed in order of source and successor number, so the same traversal finds each edge's index in
 * them. */
static void number_edges(struct ssa *s)
{
    uint32_t *seen = CT_ARENA_ARRAY(s->scratch, uint32_t, s->fn->blocks.n);
    uint32_t n = 0;

    for (uint32_t b = 0; b < s->fn->blocks.n; b++) {
        s->first_edge[b] = n;
        n += s->fn->blocks.v[b]->n_succs;
    }
    s->edge_slots = CT_ARENA_ARRAY(s->scratch, uint32_t, n);
    n = 0;
    for (uint32_t b = 0; b < s->fn->blocks.n; b++)
        for (uint32_t i = 0; i < s->fn->blocks.v[b]->n_succs; i++)
            s->edge_slots[n++] = seen[s->fn->blocks.v[b]->succs[i]->id]++;
}

static ct_value undefined_value(struct ssa *s, enum ct_width width)
{
    ct_value *value = &s->undefined[width];

    if (!value->i) {
        struct ct_insn *insn = ct_insn_create(s->fn, CT_OP_UNDEF, PTX_NONE, 1, 0);

        *value = insn->results[0] = ct_value_create(s->fn, width);
        ct_insn_insert_before(s->fn->blocks.v[0]->first, insn);
    }
    return *value;
}

static ct_value read_variable(struct ssa *s, ct_value variable)
{
    if (!variable.i || s->current[variable.i].i)
        return s->current[variable.i];
    return undefined_value(s, ct_width_of_value(s->fn, variable));
}

static void write_variable(struct ssa *s, uint32_t variable, ct_value value)
{
    *CT_PUSH(s->scratch, &s->undo) = (struct undo){variable, s->current[variable]};
    s->current[variable] = value;
}

static void define(struct ssa *s, ct_value *result)
{
    const uint32_t number = result->i;
    struct variable *variable = &s->variables[number];

    if (variable->renamed) {
        *result = ct_value_create(s->fn, ct_width_of_value(s->fn, *result));
        s->fn->values.v[result->i].name = s->fn->values.v[number].name;
    }
    variable->renamed = true;
    write_variable(s, number, *result);
}

static void rename_block(struct ssa *s, struct ct_block *block)
{
    for (struct ct_insn *insn = block->first, *next; insn; insn = next) {
        next = insn->next;
        for (uint32_t i = 0; insn->op != CT_OP_PHI && i < insn->n_operands; i++)
            insn->operands[i] = read_variable(s, insn->operands[i]);
        if (insn->op == CT_OP_COPY) {
            write_variable(s, insn->results[0].i, insn->operands[0]);
            ct_insn_remove(insn);
            continue;
        }
        for (uint32_t r = 0; r < insn->n_results; r++)
            define(s, &insn->results[r]);
    }
    for (uint32_t i = 0; i < block->n_succs; i++) {
        const uint32_t slot = s->edge_slots[s->first_edge[block->id] + i];

        for (struct ct_insn *phi = block->succs[i]->first; phi && phi->op == CT_OP_PHI; phi = phi->next) {
            /* If several edges connect the same blocks, each one fills its own operand. */
            phi->operands[slot] = read_variable(s, phi->operands[slot]);
        }
    }
}

/* Traverses the dominator tree in preorder. Definitions in blocks that do not dominate the current one are undone. */
static void rename_all(struct ssa *s)
{
    const uint32_t n = s->fn->blocks.n;
    struct ct_block **preorder = CT_ARENA_ARRAY(s->scratch, struct ct_block *, n);
    uint32_t *undo_mark = CT_ARENA_ARRAY(s->scratch, uint32_t, n); /* indexed by depth of the path */
    uint32_t depth = 0;

    for (uint32_t b = 0; b < n; b++)
        preorder[s->fn->blocks.v[b]->dom_pre] = s->fn->blocks.v[b];
    for (uint32_t i = 0; i < n; i++) {
        while (depth && !ct_block_dominates(s->work[depth - 1], preorder[i])) {
            depth--;
            while (s->undo.n > undo_mark[depth]) {
                const struct undo undo = s->undo.v[--s->undo.n];

                s->current[undo.variable] = undo.before;
            }
        }
        s->work[depth] = preorder[i];
        undo_mark[depth++] = s->undo.n;
        rename_block(s, preorder[i]);
    }
}

static struct ssa *prepare(struct ct_fn *fn)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct ssa *s = CT_ARENA_NEW(scratch, struct ssa);
    const uint32_t n = fn->blocks.n;

    s->fn = fn;
    s->scratch = scratch;
    s->n_variables = fn->values.n;
    s->variables = CT_ARENA_ARRAY(scratch, struct variable, s->n_variables);
    s->frontiers = CT_ARENA_ARRAY(scratch, struct frontier, n);
    s->last_phi = CT_ARENA_ARRAY(scratch, struct ct_insn *, n);
    s->writes = CT_ARENA_ARRAY(scratch, uint32_t, n);
    s->live = CT_ARENA_ARRAY(scratch, uint32_t, n);
    s->has_phi = CT_ARENA_ARRAY(scratch, uint32_t, n);
    s->needed = CT_ARENA_ARRAY(scratch, uint32_t, n);
    s->is_demoted = CT_ARENA_ARRAY(scratch, bool, s->n_variables);
    s->work = CT_ARENA_ARRAY(scratch, struct ct_block *, n);
    s->first_edge = CT_ARENA_ARRAY(scratch, uint32_t, n);
    s->current = CT_ARENA_ARRAY(scratch, ct_value, s->n_variables);
    return s;
}

static struct ssa *find_phis(struct ct_fn *fn)
{
    struct ssa *s = prepare(fn);

    find_definitions(s);
    find_general(s);
    find_places(s);
    find_frontiers(s);
    for (uint32_t i = 1; i < s->n_variables; i++)
        if (s->variables[i].general)
            place_phis(s, i);
    return s;
}

enum ct_pass_result ct_pass_ssa(struct ct_fn *fn)
{
    struct ssa *s;

    ct_fn_remove_unreachable(fn);
    ct_fn_detach_entry(fn);
    ct_fn_compute_dominators(fn);
    for (s = find_phis(fn); s->has_demoted; s = find_phis(fn))
        if (!ct_demote(fn, s->is_demoted))
            return CT_PASS_FAILED;
    for (uint32_t i = 0; i < s->phis.n; i++)
        insert_phi(s, s->phis.v[i].block, s->phis.v[i].variable);
    number_edges(s);
    rename_all(s);
    return CT_PASS_CHANGED;
}
