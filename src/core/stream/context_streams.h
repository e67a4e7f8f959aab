/* SPDX-License-Identifier: Apache-2.0 */
/* All streams of a context, or of many contexts, at once. */
#ifndef CT_CORE_CONTEXT_STREAMS_H
#define CT_CORE_CONTEXT_STREAMS_H

#include "core/device/context.h"

/* Waits for all work of the context that was recorded until now. The first error. */
CUresult ct_streams_synchronize(struct ct_context *context);
/* Records the event of this context behind all that its streams have now. INVALID_HANDLE: the event is of another context. */
CUresult ct_streams_record(struct ct_context *context, struct ct_event *event);
/* What any stream of the context gets from now on, those made later included, waits for what the event recorded last. */
CUresult ct_streams_wait(struct ct_context *context, struct ct_event *event);

/* Waits for all streams of the context, then checks it. */
CUresult ct_context_synchronize(struct ct_context *context);
/* Waits for the work of all contexts but one, or of all for NULL. What they failed at they tell who asks them. */
void ct_contexts_synchronize_but(const struct ct_context *context_or_null);
/* The same of those that have copied or filled memory of others; usually there are none. */
void ct_contexts_synchronize_reaching(const struct ct_context *but);

#endif
