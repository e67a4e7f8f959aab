/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of a CONDITIONAL node, and their execution.
 *
 * A launch makes a list of the commands of each body, with their handles and addresses resolved, so that later changes of the executable graph
 * or the freeing of memory do not concern it. Where the launch reaches the node, the stream's worker reads the condition, enqueues the
 * commands of a body in a stream of the node's own, waits for them, and repeats this for a WHILE node; the launch's stream waits for the
 * worker, as for a host function. A body that contains CONDITIONAL nodes occupies the worker of that inner stream, so no worker waits for
 * itself. */
#ifndef CT_CORE_BRANCHES_H
#define CT_CORE_BRANCHES_H
/* Parts: branches_run.c. */

#include "conditions.h"
#include "core/stream/stream.h"

struct ct_branches {
    struct ct_object object; /* references: the node, and launches that have not passed it */
    CUgraphConditionalNodeType type;
    struct ct_condition *condition; /* a reference */
    unsigned count;
    struct ct_graph **graphs; /* the bodies, owned; NULL: not created yet */
    CUgraph *handles;         /* of the bodies: phGraph_out */
    /* Of a node in an executable graph: */
    struct ct_object **execs;                                         /* an executable graph for each body, owned */
    CUresult (*launch)(struct ct_object *, struct ct_stream *stream); /* enqueues one of them */
    struct ct_stream
        *stream; /* that of the bodies; NULL until the first launch. The struct is owned; it may be one of a destroyed context */
};

/* An object without bodies. It retains the condition. OUT_OF_MEMORY. */
CUresult ct_branches_make(CUgraphConditionalNodeType type, unsigned count, struct ct_condition *condition, struct ct_branches **out);
/* Enters a body, which it takes over. */
void ct_branches_set(struct ct_branches *branches, unsigned i, struct ct_graph *graph);
/* Takes over a reference to another condition, that of a graph that updates an executable graph, and returns the one before. */
struct ct_condition *ct_branches_replace_condition(struct ct_branches *branches, struct ct_condition *condition);

/* ---- branches_run.c ---- */

/* Enqueues the execution in the stream. The errors of the body's nodes. */
CUresult ct_branches_enqueue(struct ct_branches *branches, struct ct_stream *stream);

#endif
