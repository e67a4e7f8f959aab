/* SPDX-License-Identifier: Apache-2.0 */
#include "capture_nodes.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"

void ct_capture_nodes_finish(struct ct_capture_nodes *set)
{
    free(set->nodes);
    free(set->data);
    *set = (struct ct_capture_nodes){0};
}

static bool grow(struct ct_capture_nodes *set, size_t count)
{
    CUgraphNode *nodes;
    CUgraphEdgeData *data;

    if (count <= set->capacity)
        return true;
    if ((nodes = realloc(set->nodes, count * 2 * sizeof *nodes)))
        set->nodes = nodes;
    if ((data = realloc(set->data, count * 2 * sizeof *data)))
        set->data = data;
    if (!nodes || !data)
        return false;
    set->capacity = count * 2;
    return true;
}

static bool contains(const struct ct_capture_nodes *set, CUgraphNode node)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->nodes[i] == node)
            return true;
    return false;
}

CUresult ct_capture_nodes_add(struct ct_capture_nodes *set, const CUgraphNode *nodes, const CUgraphEdgeData *data_or_null, size_t count)
{
    if (!grow(set, set->count + count))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the dependencies of a captured stream");
    for (size_t i = 0; i < count; i++)
        if (!contains(set, nodes[i])) {
            set->nodes[set->count] = nodes[i];
            set->data[set->count++] = data_or_null ? data_or_null[i] : (CUgraphEdgeData){0};
        }
    return CUDA_SUCCESS;
}
