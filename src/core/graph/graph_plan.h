/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: how an executable graph is launched. Kernels, and copies and fills within the device, are recorded once where the backend supports that;
 * a launch replays the recordings with one command. Other nodes are enqueued one by one.
 *
 * The nodes are sorted into phases: even phases are replayed, odd ones are enqueued, and each node is in the earliest phase behind those of its
 * dependencies. A recorded phase has levels, with barriers between them: nodes of a level do not depend on each other. */
#ifndef CT_CORE_GRAPH_PLAN_H
#define CT_CORE_GRAPH_PLAN_H

#include "graph_exec.h"

/* The caller has entered the executable graph. */

/* Makes the plan for launches in the stream's context, or updates it, and records what has changed. OUT_OF_MEMORY, and errors of the backend. */
CUresult ct_graph_plan_prepare(struct ct_graph_exec *exec, struct ct_stream *stream);
/* Enqueues all nodes in the stream, after ct_graph_plan_prepare. */
CUresult ct_graph_plan_launch(struct ct_graph_exec *exec, struct ct_stream *stream);
/* Destroys the plan, which may be NULL. Launches that were enqueued continue. */
void ct_graph_plan_discard(struct ct_graph_plan *plan);

#endif
