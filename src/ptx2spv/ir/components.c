/* SPDX-License-Identifier: Apache-2.0 */
/* Tarjan, "Depth-first search and linear graph algorithms" (1972), without recursion. */
#include "components.h"

#include <stdbool.h>

struct node {
    uint32_t order, low; /* Tarjan's numbers; order 0: not visited */
    uint32_t next;       /* the successor that is visited next */
    bool is_open;        /* on the stack of nodes whose component is not complete */
    bool leads_to_itself;
};

struct search {
    const struct ct_graph *graph;
    struct ct_arena *arena;
    struct node *nodes;
    CT_VEC(uint32_t) path, open;
    uint32_t n_visited, n_cycles;
    uint32_t *cycles;
};

static void visit(struct search *s, uint32_t n)
{
    s->nodes[n].order = s->nodes[n].low = ++s->n_visited;
    s->nodes[n].is_open = true;
    *CT_PUSH(s->arena, &s->path) = n;
    *CT_PUSH(s->arena, &s->open) = n;
}

/* Ends the component of which node n was visited first. */
static void close_component(struct search *s, uint32_t n)
{
    const bool is_cycle = s->nodes[n].leads_to_itself || s->open.v[s->open.n - 1] != n;
    uint32_t member;

    s->n_cycles += is_cycle;
    do {
        member = s->open.v[--s->open.n];
        s->nodes[member].is_open = false;
        s->cycles[member] = is_cycle ? s->n_cycles : 0;
    } while (member != n);
}

static void leave(struct search *s, uint32_t n)
{
    struct node *before = --s->path.n ? &s->nodes[s->path.v[s->path.n - 1]] : NULL;

    if (s->nodes[n].low == s->nodes[n].order)
        close_component(s, n);
    if (before && s->nodes[n].low < before->low)
        before->low = s->nodes[n].low;
}

uint32_t *ct_find_cycles(struct ct_arena *arena, const struct ct_graph *graph, uint32_t *out_count)
{
    struct search s = {.graph = graph, .arena = arena};

    s.nodes = CT_ARENA_ARRAY(arena, struct node, graph->n);
    s.cycles = CT_ARENA_ARRAY(arena, uint32_t, graph->n);
    visit(&s, 0);
    while (s.path.n) {
        const uint32_t n = s.path.v[s.path.n - 1], to = graph->successor(graph->user, n, s.nodes[n].next++);

        if (to == UINT32_MAX) {
            leave(&s, n);
            continue;
        }
        s.nodes[n].leads_to_itself |= to == n;
        if (!s.nodes[to].order)
            visit(&s, to);
        else if (s.nodes[to].is_open && s.nodes[to].order < s.nodes[n].low)
            s.nodes[n].low = s.nodes[to].order;
    }
    *out_count = s.n_cycles;
    return s.cycles;
}
