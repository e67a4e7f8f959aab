/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of graphs: 32-bit words that kernels set (cudaGraphSetConditional) and CONDITIONAL nodes read. The handle of a condition is
 * the CUDA address of its word, which is host memory.
 *
 * All conditions of a graph, of its child graphs and of its bodies are in one set, which belongs to the outermost graph. The executable graph
 * shares the set with the graph. So that no two launches use a word at the same time, a launch follows the last one of any executable graph
 * with the same set. */
#ifndef CT_CORE_CONDITIONS_H
#define CT_CORE_CONDITIONS_H

#include "core/backing/memory_backing.h"
#include "core/base/exclusive.h"
#include "core/base/object.h"
#include "core/stream/event.h"

struct ct_graph;

struct ct_condition {
    struct ct_object object;
    struct ct_condition *next;  /* in the set, which holds a reference; never changes */
    struct ct_context *context; /* a reference to the object */
    struct ct_backing word;     /* of the device, so that it may outlive the context */
    uint32_t default_value;
    bool assigns_default; /* CU_GRAPH_COND_ASSIGN_DEFAULT: at each launch */
};

struct ct_condition_set {
    struct ct_object object;
    struct ct_condition *first; /* guarded by the lock of graphs, as is the next member */
    bool is_claimed;            /* the graph has an executable graph */
    struct ct_exclusive use;    /* of the thread that launches a graph with these conditions */
    struct ct_event *launched;  /* recorded after each launch; NULL: there was none */
};

/* Creates a condition for a graph; *out is its handle. OUT_OF_MEMORY. */
CUresult ct_condition_create(struct ct_graph *graph, struct ct_context *context, uint32_t default_value, bool assigns_default,
                             CUgraphConditionalHandle *out);
/* With the lock of graphs held: the condition of a handle, borrowed from the graph's set; NULL: it does not belong to the graph. */
struct ct_condition *ct_condition_or_null_locked(const struct ct_graph *graph, CUgraphConditionalHandle handle);

/* A launch begins in the stream: waits for the last one, and assigns the default values. After success the caller calls ct_conditions_end when
 * the launch is enqueued, as far as it succeeded. */
CUresult ct_conditions_begin(struct ct_condition_set *set, struct ct_stream *stream);
CUresult ct_conditions_end(struct ct_condition_set *set, struct ct_stream *stream);

#endif
