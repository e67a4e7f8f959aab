/* SPDX-License-Identifier: Apache-2.0 */
#include "conditions.h"

#include "core/base/log.h"
#include "core/command/command.h"
#include "core/device/device.h"
#include "graph.h"
#include "launch_mark.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "graph"

/* ---- creation ---- */

static void free_condition(struct ct_object *object)
{
    struct ct_condition *condition = (struct ct_condition *)object;

    ct_backing_destroy(condition->context->device->primary, &condition->word);
    ct_object_release(&condition->context->object);
    free(condition);
}

static CUresult make_condition(struct ct_context *context, uint32_t default_value, bool assigns_default, struct ct_condition **out)
{
    struct ct_condition *condition = calloc(1, sizeof *condition);
    CUresult r;

    if (!condition)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a condition of a graph");
    ct_object_init(&condition->object, CT_OBJECT_NONE, free_condition);
    ct_object_retain(&context->object);
    condition->context = context;
    condition->default_value = default_value;
    condition->assigns_default = assigns_default;
    r = ct_backing_create_host(context->device->primary, sizeof default_value, CT_MEMORY_HOST, &condition->word);
    if (r != CUDA_SUCCESS) {
        ct_object_release(&condition->object);
        return r;
    }
    memset(condition->word.host, 0, sizeof default_value);
    *out = condition;
    return CUDA_SUCCESS;
}

static void free_set(struct ct_object *object)
{
    struct ct_condition_set *set = (struct ct_condition_set *)object;

    while (set->first) {
        struct ct_condition *condition = set->first;

        set->first = condition->next;
        ct_object_release(&condition->object);
    }
    if (set->launched)
        ct_event_discard(set->launched);
    ct_exclusive_finish(&set->use);
    free(set);
}

static struct ct_condition_set *make_set_or_null(void)
{
    struct ct_condition_set *set = calloc(1, sizeof *set);

    if (!set)
        return NULL;
    ct_object_init(&set->object, CT_OBJECT_NONE, free_set);
    ct_exclusive_init(&set->use);
    return set;
}

CUresult ct_condition_create(struct ct_graph *graph, struct ct_context *context, uint32_t default_value, bool assigns_default,
                             CUgraphConditionalHandle *out)
{
    struct ct_condition *condition;
    struct ct_graph *root;
    CUresult r = make_condition(context, default_value, assigns_default, &condition);

    if (r != CUDA_SUCCESS)
        return r;
    ct_graphs_lock();
    root = ct_graph_root_locked(graph);
    if (!root->conditions)
        root->conditions = make_set_or_null();
    if (root->conditions) {
        condition->next = root->conditions->first;
        root->conditions->first = condition;
        *out = condition->word.address;
    } else {
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the conditions of a graph");
    }
    ct_graphs_unlock();
    if (r != CUDA_SUCCESS)
        ct_object_release(&condition->object);
    return r;
}

struct ct_condition *ct_condition_or_null_locked(const struct ct_graph *graph, CUgraphConditionalHandle handle)
{
    const struct ct_condition_set *set = ct_graph_root_locked((struct ct_graph *)graph)->conditions;
    struct ct_condition *condition = set ? set->first : NULL;

    while (condition && condition->word.address != handle)
        condition = condition->next;
    return condition;
}

/* ---- launches ---- */

static CUresult assign_default(const struct ct_condition *condition, struct ct_stream *stream)
{
    const struct ct_fill fill = {
        .place = {.memory = condition->word.memory, .host = condition->word.host, .owner = condition->context->object.handle},
        .pattern = condition->default_value,
        .row_bytes = sizeof condition->default_value,
        .rows = 1,
        .mode = CT_COPY_ASYNC,
    };

    return ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_FILL, .fill = fill});
}

static CUresult assign_defaults(struct ct_condition_set *set, struct ct_stream *stream)
{
    const struct ct_condition *condition;
    CUresult r = CUDA_SUCCESS;

    ct_graphs_lock();
    condition = set->first;
    ct_graphs_unlock();
    for (; condition && r == CUDA_SUCCESS; condition = condition->next)
        if (condition->assigns_default)
            r = assign_default(condition, stream);
    return r;
}

CUresult ct_conditions_begin(struct ct_condition_set *set, struct ct_stream *stream)
{
    CUresult r;

    ct_exclusive_enter(&set->use);
    r = ct_launch_mark_follow(set->launched, stream);
    if (r == CUDA_SUCCESS)
        r = assign_defaults(set, stream);
    if (r != CUDA_SUCCESS)
        ct_exclusive_leave(&set->use);
    return r;
}

CUresult ct_conditions_end(struct ct_condition_set *set, struct ct_stream *stream)
{
    CUresult r = ct_launch_mark_record(&set->launched, stream);

    ct_exclusive_leave(&set->use);
    return r;
}
