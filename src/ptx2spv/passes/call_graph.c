/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of calls. Its nodes are functions, and sets of functions: all calls by address with the same parameters lead to one set, and the
 * set to each of its functions, so that n calls with m candidates need n + m edges. Cycles are the strongly connected components (Tarjan,
 * "Depth-first search and linear graph algorithms", 1972), found from the kernel on, without recursion.
 *
 * Nodes are found in a hash table with open addressing, keyed by the function's address; it is never enumerated, so its order does not
 * matter. Sets are few: programs have few signatures. */
#include "call_graph.h"

#include "ptx2spv/module/module.h"

struct node {
    const struct ptx_function *function; /* NULL: a set */
    struct ct_candidates set;
    const struct ptx_function *signature; /* of a set, as the next one */
    const struct ptx_targets *targets;
    CT_VEC(struct node *) callees;
    uint32_t next;       /* the callee that the search visits next */
    uint32_t order, low; /* Tarjan's numbers; order 0: not visited */
    bool is_open;        /* on the stack of nodes whose component is not complete */
    bool calls_itself;
    struct ct_cycle cycle;
};

struct ct_call_graph {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    struct node **table;
    uint32_t mask;
    CT_VEC(struct node *) sets;
    CT_VEC(struct node *) path, open;
    uint32_t n_visited, n_cycles;
};

/* ---- nodes ---- */

static struct node *function_node(struct ct_call_graph *graph, const struct ptx_function *function)
{
    uint32_t i = (uint32_t)(((uintptr_t)function >> 4) * 0x9e3779b97f4a7c15u >> 32) & graph->mask;

    while (graph->table[i] && graph->table[i]->function != function)
        i = (i + 1) & graph->mask;
    if (!graph->table[i]) {
        graph->table[i] = CT_ARENA_NEW(graph->scratch, struct node);
        graph->table[i]->function = function;
    }
    return graph->table[i];
}

/* Whether a call through an address may reach this function. */
static bool is_candidate(const struct ptx_function *function, const struct ptx_function *signature)
{
    return function->address_number && function->has_body && !function->is_entry && ptx_same_signature(function, signature);
}

static void find_candidates(struct ct_call_graph *graph, struct node *set)
{
    struct ptx_function *const *all = set->targets ? set->targets->functions : graph->fn->module->functions.v;
    const uint32_t n = set->targets ? set->targets->n : graph->fn->module->functions.n;
    struct ct_candidates *found = &set->set;
    uint32_t last = 0;

    found->first = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_candidate(all[i], set->signature))
            continue;
        found->first = all[i]->address_number < found->first ? all[i]->address_number : found->first;
        last = all[i]->address_number > last ? all[i]->address_number : last;
    }
    if (!last)
        return;
    found->n = last - found->first + 1;
    found->functions = CT_ARENA_ARRAY(graph->scratch, struct ptx_function *, found->n);
    for (uint32_t i = 0; i < n; i++)
        if (is_candidate(all[i], set->signature))
            found->functions[all[i]->address_number - found->first] = all[i];
    for (uint32_t i = 0; i < found->n; i++)
        found->instructions += found->functions[i] ? found->functions[i]->n_body : 0;
}

static struct node *set_node(struct ct_call_graph *graph, const struct ptx_function *signature, const struct ptx_targets *targets)
{
    struct node *set;

    for (uint32_t i = 0; i < graph->sets.n; i++)
        if (graph->sets.v[i]->targets == targets && ptx_same_signature(graph->sets.v[i]->signature, signature))
            return graph->sets.v[i];
    set = CT_ARENA_NEW(graph->scratch, struct node);
    set->signature = signature;
    set->targets = targets;
    find_candidates(graph, set);
    *CT_PUSH(graph->scratch, &graph->sets) = set;
    return set;
}

/* ---- edges ---- */

static void add_callees_of_set(struct ct_call_graph *graph, struct node *set)
{
    if (set->set.instructions > CT_DISPATCHED_MAX)
        return;
    for (uint32_t i = 0; i < set->set.n; i++)
        if (set->set.functions[i])
            *CT_PUSH(graph->scratch, &set->callees) = function_node(graph, set->set.functions[i]);
}

static void add_callees_of_function(struct ct_call_graph *graph, struct node *node)
{
    const struct ptx_function *function = node->function;

    for (uint32_t i = 0; i < function->n_body; i++) {
        const struct ptx_instruction *insn = &function->body[i];
        const struct ptx_function *direct = ptx_called_function(insn), *signature = direct ? NULL : ptx_call_signature(insn);
        struct node *callee = direct ? function_node(graph, direct) : signature ? set_node(graph, signature, ptx_call_targets(insn)) : NULL;

        if (!callee)
            continue;
        node->calls_itself |= callee == node;
        *CT_PUSH(graph->scratch, &node->callees) = callee;
    }
}

/* ---- cycles ---- */

static void visit(struct ct_call_graph *graph, struct node *node)
{
    node->order = node->low = ++graph->n_visited;
    node->is_open = true;
    *CT_PUSH(graph->scratch, &graph->path) = node;
    *CT_PUSH(graph->scratch, &graph->open) = node;
    if (node->function)
        add_callees_of_function(graph, node);
    else
        add_callees_of_set(graph, node);
}

/* Ends the component of which `node` was visited first. */
static void close_component(struct ct_call_graph *graph, struct node *node)
{
    const bool is_cycle = node->calls_itself || graph->open.v[graph->open.n - 1] != node;
    uint32_t first = graph->open.n;
    bool has_set = false;

    graph->n_cycles += is_cycle;
    do
        has_set |= !graph->open.v[--first]->function;
    while (graph->open.v[first] != node);
    for (uint32_t i = first; i < graph->open.n; i++) {
        graph->open.v[i]->is_open = false;
        if (is_cycle)
            graph->open.v[i]->cycle = (struct ct_cycle){graph->n_cycles, has_set};
        graph->open.v[i]->set.cycle = graph->open.v[i]->cycle.number;
    }
    graph->open.n = first;
}

static void leave(struct ct_call_graph *graph, struct node *node)
{
    struct node *caller = --graph->path.n ? graph->path.v[graph->path.n - 1] : NULL;

    if (node->low == node->order)
        close_component(graph, node);
    if (caller && node->low < caller->low)
        caller->low = node->low;
}

static void find_cycles(struct ct_call_graph *graph)
{
    visit(graph, function_node(graph, graph->fn->source));
    while (graph->path.n) {
        struct node *node = graph->path.v[graph->path.n - 1];

        if (node->next == node->callees.n) {
            leave(graph, node);
            continue;
        }
        struct node *callee = node->callees.v[node->next++];

        if (!callee->order)
            visit(graph, callee);
        else if (callee->is_open && callee->order < node->low)
            node->low = callee->order;
    }
}

struct ct_call_graph *ct_call_graph_create(struct ct_fn *fn)
{
    struct ct_arena *scratch = &fn->compilation->scratch;
    struct ct_call_graph *graph = CT_ARENA_NEW(scratch, struct ct_call_graph);

    graph->fn = fn;
    graph->scratch = scratch;
    while (graph->mask < 2 * fn->module->functions.n + 2)
        graph->mask = graph->mask * 2 + 1;
    graph->table = CT_ARENA_ARRAY(scratch, struct node *, (size_t)graph->mask + 1);
    find_cycles(graph);
    return graph;
}

const struct ct_candidates *ct_call_graph_candidates(struct ct_call_graph *graph, const struct ptx_function *signature,
                                                     const struct ptx_targets *targets)
{
    return &set_node(graph, signature, targets)->set;
}

struct ct_cycle ct_call_graph_cycle(struct ct_call_graph *graph, const struct ptx_function *function)
{
    return function_node(graph, function)->cycle;
}
