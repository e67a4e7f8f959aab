/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of calls. Its nodes are functions, and sets of functions: all calls by address with the same parameters lead to one set, and the
 * set to each of its functions, so that n calls with m candidates need n + m edges. There are those that the kernel reaches.
 *
 * Compilers' run time and memory grow faster than code does, and calls of calls multiply it: Cycles, the renderer of Blender, has a kernel of
 * 137,000 PTX instructions, which would be 345,000 if all calls were inlined. Of such kernels the larger functions with several calls have one
 * instance each (inline.c). The price is that threads that take different ways meet less often, so the kernel must have no instruction that
 * threads execute together.
 *
 * Nodes are found in a hash table with open addressing, keyed by the function's address; it is never enumerated, so its order does not
 * matter. Sets are few: programs have few signatures. */
#include "call_graph.h"

#include "ptx2spv/ir/components.h"
#include "ptx2spv/module/bodies.h"
#include "ptx2spv/module/module.h"

struct node {
    uint32_t number;                     /* index in graph->nodes */
    const struct ptx_function *function; /* NULL: a set */
    struct ct_candidates set;
    const struct ptx_function *signature; /* of a set, as the next one */
    const struct ptx_targets *targets;
    CT_VEC(struct node *) callees;
    struct ct_cycle cycle;
    uint64_t instructions; /* of an instance, with those of the functions that are inlined into it */
    bool is_out_of_line;
    /* Only known if the kernel is too large to be inlined: */
    uint32_t n_calls; /* of the function, in all functions that the kernel reaches */
    bool may_wait;    /* an instance has a read by which threads may wait for others */
};

struct ct_call_graph {
    struct ct_fn *fn;
    struct ct_arena *scratch;
    struct node **table;
    uint32_t mask;
    CT_VEC(struct node *) nodes, sets; /* nodes: the first is the kernel */
};

/* ---- nodes ---- */

static struct node *create_node(struct ct_call_graph *graph)
{
    struct node *node = CT_ARENA_NEW(graph->scratch, struct node);

    node->number = graph->nodes.n;
    *CT_PUSH(graph->scratch, &graph->nodes) = node;
    return node;
}

static struct node *function_node(struct ct_call_graph *graph, const struct ptx_function *function)
{
    uint32_t i = (uint32_t)(((uintptr_t)function >> 4) * 0x9e3779b97f4a7c15u >> 32) & graph->mask;

    while (graph->table[i] && graph->table[i]->function != function)
        i = (i + 1) & graph->mask;
    if (!graph->table[i]) {
        graph->table[i] = create_node(graph);
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
        found->instructions += found->functions[i] ? found->functions[i]->n_instructions : 0;
}

static struct node *set_node(struct ct_call_graph *graph, const struct ptx_function *signature, const struct ptx_targets *targets)
{
    struct node *set;

    for (uint32_t i = 0; i < graph->sets.n; i++)
        if (graph->sets.v[i]->targets == targets && ptx_same_signature(graph->sets.v[i]->signature, signature))
            return graph->sets.v[i];
    set = create_node(graph);
    set->signature = signature;
    set->targets = targets;
    find_candidates(graph, set);
    *CT_PUSH(graph->scratch, &graph->sets) = set;
    return set;
}

/* ---- edges ---- */

/* Calls of sets that are too large are refused or become faults (inline.c): memory for the bodies of their functions would be in vain. */
static void add_callees_of_set(struct ct_call_graph *graph, struct node *set)
{
    if (set->set.instructions > CT_DISPATCHED_MAX || set->set.n >= CT_SWITCH_TARGETS_MAX)
        return;
    for (uint32_t i = 0; i < set->set.n; i++)
        if (set->set.functions[i])
            *CT_PUSH(graph->scratch, &set->callees) = function_node(graph, set->set.functions[i]);
}

static void add_callees_of_function(struct ct_call_graph *graph, struct node *node)
{
    const struct ptx_body *body = ct_fn_body(graph->fn, node->function);

    for (uint32_t i = 0; i < body->instructions.n; i++) {
        const struct ptx_instruction *insn = &body->instructions.v[i];
        const struct ptx_function *direct = ptx_called_function(insn), *signature = direct ? NULL : ptx_call_signature(insn);
        struct node *callee = direct ? function_node(graph, direct) : signature ? set_node(graph, signature, ptx_call_targets(insn)) : NULL;

        if (callee)
            *CT_PUSH(graph->scratch, &node->callees) = callee;
    }
}

/* ---- cycles ---- */

/* The nodes that are added meanwhile are visited in turn. */
static void add_callees(struct ct_call_graph *graph)
{
    function_node(graph, graph->fn->source);
    for (uint32_t i = 0; i < graph->nodes.n; i++) {
        if (graph->nodes.v[i]->function)
            add_callees_of_function(graph, graph->nodes.v[i]);
        else
            add_callees_of_set(graph, graph->nodes.v[i]);
    }
}

static uint32_t successor(const void *graph, uint32_t node, uint32_t i)
{
    const struct node *from = ((const struct ct_call_graph *)graph)->nodes.v[node];

    return i < from->callees.n ? from->callees.v[i]->number : UINT32_MAX;
}

static void find_cycles(struct ct_call_graph *graph)
{
    const struct ct_graph view = {graph->nodes.n, successor, graph};
    uint32_t n_cycles;
    const uint32_t *cycles = ct_find_cycles(graph->scratch, &view, &n_cycles);
    bool *by_address = CT_ARENA_ARRAY(graph->scratch, bool, (size_t)n_cycles + 1);

    for (uint32_t i = 0; i < graph->nodes.n; i++)
        by_address[cycles[i]] |= cycles[i] && !graph->nodes.v[i]->function;
    for (uint32_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph->nodes.v[i];

        node->cycle = (struct ct_cycle){cycles[i], by_address[cycles[i]]};
        node->set.cycle = cycles[i];
    }
}

/* ---- functions that are not inlined ---- */

enum { OUT_OF_LINE_MIN = 100 };                       /* instructions, about what a call costs that stores and loads registers */
static const uint64_t most_instructions = UINT32_MAX; /* so that sums cannot overflow */

/* Barriers and instructions of warps; also cp, some forms of which wait. */
static bool is_of_several_threads(enum ptx_opcode opcode)
{
    static const bool of_several[PTX_OPCODE_COUNT] = {
        [PTX_OP_BAR] = true,        [PTX_OP_BARRIER] = true, [PTX_OP_SHFL] = true,  [PTX_OP_VOTE] = true,     [PTX_OP_MATCH] = true,
        [PTX_OP_ACTIVEMASK] = true, [PTX_OP_REDUX] = true,   [PTX_OP_ELECT] = true, [PTX_OP_LDMATRIX] = true, [PTX_OP_STMATRIX] = true,
        [PTX_OP_MOVMATRIX] = true,  [PTX_OP_MMA] = true,     [PTX_OP_WMMA] = true,  [PTX_OP_MBARRIER] = true, [PTX_OP_CP] = true,
    };

    return of_several[opcode];
}

static bool has_instruction_of_several_threads(const struct ptx_body *body)
{
    for (uint32_t i = 0; i < body->instructions.n; i++)
        if (is_of_several_threads(body->instructions.v[i].opcode))
            return true;
    return false;
}

static bool some_instruction_is_of_several_threads(const struct ct_call_graph *graph)
{
    for (uint32_t i = 0; i < graph->nodes.n; i++)
        if (graph->nodes.v[i]->function && has_instruction_of_several_threads(ct_fn_body(graph->fn, graph->nodes.v[i]->function)))
            return true;
    return false;
}

/* Whether there is a read by which threads may wait for others, in a loop. spin.c has to find such loops. It does not look into functions that a
 * loop calls, so functions with such reads are inlined. */
static bool has_waiting_read(const struct ptx_body *body)
{
    for (uint32_t i = 0; i < body->instructions.n; i++) {
        const struct ptx_instruction *insn = &body->instructions.v[i];
        const struct ptx_modifiers *mods = &insn->mods;

        if (insn->opcode == PTX_OP_LD && mods->semantics != PTX_SEM_NONE && mods->semantics != PTX_WEAK)
            return true;
        if (insn->opcode == PTX_OP_ATOM && (mods->operation == PTX_EXCH || mods->operation == PTX_CAS))
            return true;
    }
    return false;
}

/* What an instance has of its own and of the callees that are inlined. Of a set: each call has a direct call of each function (inline.c). */
static void add_inlined(const struct node *node, uint64_t *instructions, bool *may_wait)
{
    *instructions = node->function ? node->function->n_instructions : 0;
    *may_wait = node->may_wait;
    for (uint32_t i = 0; i < node->callees.n; i++) {
        const struct node *callee = node->callees.v[i];

        if (callee->is_out_of_line || (callee->cycle.number && callee->cycle.number == node->cycle.number))
            continue;
        *instructions += callee->instructions;
        *may_wait |= callee->may_wait;
    }
    *instructions = *instructions < most_instructions ? *instructions : most_instructions;
}

/* least: functions with so many instructions that are called more than once become out of line; 0: none does.
 * Callees mostly come behind their callers. Without calls in cycles, the loop ends after as many rounds as calls are nested, at the most. */
static void choose_by_size(struct ct_call_graph *graph, uint32_t least)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = graph->nodes.n; i-- > 0;) {
            struct node *node = graph->nodes.v[i], before = *node;

            add_inlined(node, &node->instructions, &node->may_wait);
            node->is_out_of_line =
                least && node->function && !node->cycle.number && node->n_calls > 1 && !node->may_wait && node->instructions >= least;
            changed |= node->instructions != before.instructions || node->may_wait != before.may_wait ||
                       node->is_out_of_line != before.is_out_of_line;
        }
    }
}

/* Each call by address leads to all functions of its set. */
static void count_calls(struct ct_call_graph *graph)
{
    for (int of_sets = 0; of_sets < 2; of_sets++)
        for (uint32_t i = 0; i < graph->nodes.n; i++) {
            const struct node *node = graph->nodes.v[i];

            for (uint32_t c = 0; c < node->callees.n && of_sets == !node->function; c++)
                node->callees.v[c]->n_calls += of_sets ? node->n_calls : 1;
        }
}

static void choose_out_of_line(struct ct_call_graph *graph)
{
    const uint32_t wanted = graph->fn->compilation->options.inline_max, most = wanted ? wanted : PTX2SPV_INLINE_MAX;

    choose_by_size(graph, 0);
    if (graph->nodes.v[0]->instructions <= most || some_instruction_is_of_several_threads(graph))
        return;
    for (uint32_t i = 0; i < graph->nodes.n; i++)
        graph->nodes.v[i]->may_wait = graph->nodes.v[i]->function && has_waiting_read(ct_fn_body(graph->fn, graph->nodes.v[i]->function));
    count_calls(graph);
    choose_by_size(graph, most < OUT_OF_LINE_MIN ? most : OUT_OF_LINE_MIN);
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
    add_callees(graph);
    find_cycles(graph);
    choose_out_of_line(graph);
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

bool ct_call_graph_is_out_of_line(struct ct_call_graph *graph, const struct ptx_function *function)
{
    return function_node(graph, function)->is_out_of_line;
}
