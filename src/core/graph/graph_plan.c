/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_plan.h"

#include "core/backing/address_uses.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/command/command.h"
#include "core/launch/recordings.h"
#include "graph_recording.h"
#include "recorded_slots.h"

#include <stdio.h>
#include <stdlib.h>

#define CT_CHANNEL "graph"

/* When a node is executed: after all nodes of earlier phases, and of lower levels of its phase. Levels of nodes begin with 1, and level 0 is the
 * begin of the phase. */
struct position {
    unsigned phase, level;
};

/* A node that does something. */
struct item {
    struct ct_graph_node *node;
    size_t index; /* in the order of the steps */
    struct position at;
    struct ct_recorded_node recorded; /* unless it is enqueued */
};

/* Some consecutive items of a phase, which are recorded together. */
struct chunk {
    size_t first, count;
};

/* A phase. */
struct part {
    bool is_replayed, uses_slots; /* uses_slots: one of the items does */
    size_t first, count;          /* items */
    size_t first_chunk, n_chunks; /* if it is replayed */
    struct ct_module **modules;   /* borrowed from the functions of the items; each once */
    unsigned n_modules;
    char name[96];
};

struct ct_graph_plan {
    struct item *items;
    struct chunk *chunks;
    struct part *parts;
    struct ct_recordings recordings; /* of the chunks; NULL: the chunk has to be recorded */
    size_t n_items, n_chunks, n_parts;
};

#define CHUNK_NODES 64 /* an update records one chunk again; a submission of that many kernels is short */
#define LEAST_REPLAYED 2

/* ---- the order ---- */

static struct position later(struct position a, struct position b)
{
    return a.phase > b.phase || (a.phase == b.phase && a.level > b.level) ? a : b;
}

/* The earliest position behind another one. */
static struct position behind(struct position before, bool is_replayed)
{
    const bool same = (before.phase % 2 == 0) == is_replayed;

    return (struct position){same ? before.phase : before.phase + 1, same ? before.level + 1 : 1};
}

static bool does_nothing(const struct ct_graph_step *step)
{
    const CUgraphNodeType type = step->node->params.given.type;

    return step->disabled || type == CU_GRAPH_NODE_TYPE_EMPTY || type == CU_GRAPH_NODE_TYPE_GRAPH;
}

static struct position end_of_dependencies(const struct ct_graph_node *node, struct position begin, const struct position *ends)
{
    for (size_t i = 0; i < node->dependencies.count; i++)
        begin = later(begin, ends[node->dependencies.list[i].node->index]);
    return begin;
}

struct placement {
    struct ct_graph_plan *plan;
    const struct ct_graph_step *next; /* of the executable graph */
    const struct ct_graph_step *steps;
    struct ct_stream *stream;
};

/* Makes the items of a graph, whose nodes are the next steps. *end: the end of all of them. */
static CUresult place(struct placement *placement, const struct ct_graph *graph, struct position begin, struct position *end)
{
    struct ct_graph_plan *plan = placement->plan;
    struct position *ends = calloc(graph->count ? graph->count : 1, sizeof *ends); /* of the nodes */
    CUresult r = ends ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the plan of %zu nodes", graph->count);

    *end = begin;
    for (size_t i = 0; i < graph->count && r == CUDA_SUCCESS; i++) {
        const struct ct_graph_step *step = placement->next++;
        struct position *at = &ends[step->node->index];

        *at = end_of_dependencies(step->node, begin, ends);
        if (step->node->params.child) {
            r = place(placement, ct_node_child_or_null(step->node), *at, at);
        } else if (!does_nothing(step)) {
            struct item *item = &plan->items[plan->n_items++];

            *item = (struct item){.node = step->node, .index = (size_t)(step - placement->steps)};
            ct_recorded_node_init(&item->recorded, &step->node->params, placement->stream);
            item->at = *at = behind(*at, item->recorded.kind != CT_RECORDED_NOTHING);
        }
        *end = later(*end, *at);
    }
    free(ends);
    return r;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->at.phase != y->at.phase)
        return x->at.phase < y->at.phase ? -1 : 1;
    if (x->at.level != y->at.level)
        return x->at.level < y->at.level ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* ---- parts ---- */

static void add_module(struct part *part, struct ct_module *module)
{
    for (unsigned i = 0; i < part->n_modules; i++)
        if (part->modules[i] == module)
            return;
    part->modules[part->n_modules++] = module;
}

/* The modules of the kernels, a name for all of them, and whether they use slots. There is room for the modules. */
static void describe(const struct ct_graph_plan *plan, struct part *part)
{
    const char *first = NULL;
    size_t kernels = 0;

    part->n_modules = 0;
    part->uses_slots = false;
    for (size_t i = part->first; i < part->first + part->count; i++) {
        struct ct_function *function = plan->items[i].recorded.function;

        if (!function)
            continue;
        part->uses_slots |= plan->items[i].recorded.uses_slots;
        first = first ? first : function->decl->name;
        kernels++;
        add_module(part, function->module);
    }
    if (kernels > 1)
        (void)snprintf(part->name, sizeof part->name, "%.40s or another of %zu in a graph", first, kernels);
    else
        (void)snprintf(part->name, sizeof part->name, "%.90s", first ? first : "(copies of a graph)");
}

static CUresult add_part(struct ct_graph_plan *plan, size_t first, size_t count)
{
    struct part *part = &plan->parts[plan->n_parts++];

    *part = (struct part){.first = first, .count = count, .first_chunk = plan->n_chunks};
    part->is_replayed = plan->items[first].at.phase % 2 == 0 && count >= LEAST_REPLAYED;
    if (!part->is_replayed)
        return CUDA_SUCCESS;
    for (size_t done = 0; done < count; done += CHUNK_NODES)
        plan->chunks[plan->n_chunks++] =
            (struct chunk){.first = first + done, .count = count - done < CHUNK_NODES ? count - done : CHUNK_NODES};
    part->n_chunks = plan->n_chunks - part->first_chunk;
    part->modules = calloc(count, sizeof(*part->modules));
    return part->modules ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the modules of a graph");
}

static CUresult make_parts(struct ct_graph_plan *plan)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t first = 0, count; first < plan->n_items && r == CUDA_SUCCESS; first += count) {
        for (count = 1; first + count < plan->n_items && plan->items[first + count].at.phase == plan->items[first].at.phase;)
            count++;
        r = add_part(plan, first, count);
    }
    return r;
}

/* ---- creation ---- */

void ct_graph_plan_discard(struct ct_graph_plan *plan)
{
    if (!plan)
        return;
    ct_recordings_finish(&plan->recordings);
    for (size_t i = 0; i < plan->n_items; i++)
        ct_recorded_node_finish(&plan->items[i].recorded);
    for (size_t i = 0; i < plan->n_parts; i++)
        free(plan->parts[i].modules);
    free(plan->items);
    free(plan->chunks);
    free(plan->parts);
    free(plan);
}

static struct ct_graph_plan *make_or_null(size_t n_steps)
{
    struct ct_graph_plan *plan = calloc(1, sizeof *plan);

    if (!plan)
        return NULL;
    n_steps = n_steps ? n_steps : 1;
    plan->items = calloc(n_steps, sizeof *plan->items);
    plan->chunks = calloc(n_steps, sizeof *plan->chunks);
    plan->parts = calloc(n_steps, sizeof *plan->parts);
    if (plan->items && plan->chunks && plan->parts)
        return plan;
    ct_graph_plan_discard(plan);
    return NULL;
}

static CUresult make(struct ct_graph_exec *exec, struct ct_stream *stream)
{
    struct ct_graph_plan *plan = make_or_null(exec->n_steps);
    struct placement placement = {plan, exec->steps, exec->steps, stream};
    struct position end;
    CUresult r = plan ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the plan of %zu nodes", exec->n_steps);

    if (r == CUDA_SUCCESS)
        r = place(&placement, exec->graph, (struct position){0, 0}, &end);
    if (r == CUDA_SUCCESS) {
        qsort(plan->items, plan->n_items, sizeof *plan->items, compare_items);
        r = make_parts(plan);
    }
    if (r == CUDA_SUCCESS)
        r = ct_recordings_init(&plan->recordings, stream->context, plan->n_chunks);
    if (r != CUDA_SUCCESS) {
        ct_graph_plan_discard(plan);
        return r;
    }
    for (size_t i = 0; i < exec->n_steps; i++)
        exec->steps[i].node->is_changed = false;
    exec->plan = plan;
    return CUDA_SUCCESS;
}

/* ---- updates ---- */

/* The recording lacks the item from now on. */
static void invalidate(struct ct_graph_plan *plan, size_t item)
{
    for (size_t i = 0; i < plan->n_chunks; i++) {
        const struct chunk *chunk = &plan->chunks[i];

        if (item < chunk->first || item - chunk->first >= chunk->count || !plan->recordings.list[i])
            continue;
        plan->recordings.backend->recordings->destroy(plan->recordings.list[i]);
        plan->recordings.list[i] = NULL;
    }
}

/* False: the node belongs into another phase now. */
static bool update_item(struct ct_graph_plan *plan, size_t index, struct ct_stream *stream)
{
    struct item *item = &plan->items[index];
    const bool was_recorded = item->recorded.kind != CT_RECORDED_NOTHING;

    ct_recorded_node_finish(&item->recorded);
    ct_recorded_node_init(&item->recorded, &item->node->params, stream);
    item->node->is_changed = false;
    if (was_recorded)
        invalidate(plan, index);
    return was_recorded == (item->recorded.kind != CT_RECORDED_NOTHING);
}

static bool update_items(struct ct_graph_plan *plan, struct ct_stream *stream)
{
    bool same = true;

    for (size_t i = 0; i < plan->n_items && same; i++)
        if (plan->items[i].node->is_changed)
            same = update_item(plan, i, stream);
    return same;
}

/* ---- recording ---- */

/* Whether the item has to wait for those before it in its phase: for another level, or for the slots, which any of its level may use. */
static bool needs_barrier(const struct ct_graph_plan *plan, size_t index)
{
    const struct item *item = &plan->items[index];

    return index && item[-1].at.phase == item->at.phase && (item[-1].at.level != item->at.level || item->recorded.uses_slots);
}

static CUresult record_items(const struct ct_graph_plan *plan, const struct chunk *chunk, struct ct_recording *recording,
                             struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = chunk->first; i < chunk->first + chunk->count && r == CUDA_SUCCESS; i++) {
        const struct item *item = &plan->items[i];

        if (needs_barrier(plan, i))
            plan->recordings.backend->recordings->barrier(recording);
        r = ct_recorded_node_record(&item->recorded, &item->node->params, recording, stream);
    }
    return r == CUDA_SUCCESS ? plan->recordings.backend->recordings->finish(recording) : r;
}

static CUresult record_chunk(struct ct_graph_plan *plan, size_t index, struct ct_stream *stream)
{
    const struct ct_recording_calls *calls = plan->recordings.backend->recordings;
    struct ct_recording *recording;
    CUresult r = calls->create(stream->context->backend_device, &recording);

    if (r != CUDA_SUCCESS)
        return r;
    r = record_items(plan, &plan->chunks[index], recording, stream);
    if (r == CUDA_SUCCESS)
        plan->recordings.list[index] = recording;
    else
        calls->destroy(recording);
    return r;
}

static CUresult record_part(struct ct_graph_plan *plan, struct part *part, struct ct_stream *stream)
{
    bool is_changed = false;
    CUresult r = CUDA_SUCCESS;

    for (size_t i = part->first_chunk; i < part->first_chunk + part->n_chunks && r == CUDA_SUCCESS; i++) {
        if (plan->recordings.list[i])
            continue;
        is_changed = true;
        r = record_chunk(plan, i, stream);
    }
    if (is_changed)
        describe(plan, part);
    return r;
}

CUresult ct_graph_plan_prepare(struct ct_graph_exec *exec, struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS;

    if (exec->plan && (!ct_recordings_are_for(&exec->plan->recordings, stream->context) || !update_items(exec->plan, stream))) {
        ct_graph_plan_discard(exec->plan);
        exec->plan = NULL;
    }
    if (!exec->plan)
        r = make(exec, stream);
    for (size_t i = 0; r == CUDA_SUCCESS && i < exec->plan->n_parts; i++)
        r = record_part(exec->plan, &exec->plan->parts[i], stream);
    return r;
}

/* ---- launches ---- */

static CUresult enqueue(const struct ct_graph_plan *plan, const struct part *part, struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = part->first; i < part->first + part->count && r == CUDA_SUCCESS; i++)
        r = ct_node_execute(&plan->items[i].node->params, stream);
    return r;
}

/* Whether all memory of recorded copies and fills is where it was. It stays there until the caller's ct_address_uses_end. */
static bool is_valid(const struct ct_graph_plan *plan, const struct part *part, struct ct_stream *stream)
{
    bool is_valid = true;

    for (size_t i = part->first; i < part->first + part->count && is_valid; i++)
        is_valid = ct_recorded_node_is_valid(&plan->items[i].recorded, &plan->items[i].node->params, stream);
    return is_valid;
}

static CUresult enqueue_replay(const struct ct_graph_plan *plan, const struct part *part, struct ct_stream *stream)
{
    const struct ct_replay arguments = {plan->recordings.list + part->first_chunk, part->modules, (unsigned)part->n_chunks, part->n_modules,
                                        part->name};
    const unsigned uses = ct_address_uses_begin();
    CUresult r = CUDA_ERROR_NOT_READY;

    if (is_valid(plan, part, stream))
        r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_REPLAY, .replay = arguments});
    ct_address_uses_end(uses);
    return r;
}

static CUresult replay(const struct ct_graph_plan *plan, const struct part *part, struct ct_stream *stream)
{
    CUresult r, ended;

    if (!part->uses_slots)
        return enqueue_replay(plan, part, stream);
    if ((r = ct_recorded_slots_begin(stream)) != CUDA_SUCCESS)
        return r;
    r = enqueue_replay(plan, part, stream);
    ended = ct_recorded_slots_end(stream);
    return r == CUDA_SUCCESS ? ended : r;
}

CUresult ct_graph_plan_launch(struct ct_graph_exec *exec, struct ct_stream *stream)
{
    struct ct_graph_plan *plan = exec->plan;
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < plan->n_parts && r == CUDA_SUCCESS; i++) {
        r = plan->parts[i].is_replayed ? replay(plan, &plan->parts[i], stream) : CUDA_ERROR_NOT_READY;
        if (r == CUDA_ERROR_NOT_READY)
            r = enqueue(plan, &plan->parts[i], stream);
    }
    return r;
}
