/* SPDX-License-Identifier: Apache-2.0 */
/* The event that marks the end of the last launch of a graph, so that the next launch can follow it. */
#ifndef CT_CORE_LAUNCH_MARK_H
#define CT_CORE_LAUNCH_MARK_H

#include "core/stream/event.h"

/* Records the event, which belongs to the stream's context; it is created, or replaced, if there is none in that context. */
CUresult ct_launch_mark_record(struct ct_event **mark, struct ct_stream *stream);
/* Makes the stream wait for the last launch, unless there was none, or that launch's context was destroyed. */
CUresult ct_launch_mark_follow(struct ct_event *mark_or_null, struct ct_stream *stream);

#endif
