/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: calls that would enqueue work in a stream add nodes to a graph instead (Driver API: Stream Management; CUDA C++ Programming
 * Guide, "Creating a Graph Using Stream Capture").
 *
 * A capture begins in one stream, its origin. Other streams join it when they wait for an event that was recorded in one of its streams. Each
 * of its streams has a set of nodes on which the next node depends. The capture ends in the origin, on whose nodes all others must depend by
 * then. A forbidden call (capture_state.h) invalidates the capture: its streams accept nothing but the end. */
#ifndef CT_CORE_CAPTURE_H
#define CT_CORE_CAPTURE_H
/* Parts: capture_events.c. */

#include "capture_state.h"
#include "core/stream/event.h"
#include "graph.h"

struct ct_capture_info {
    CUstreamCaptureStatus status;
    uint64_t id;                         /* of the capture, unique in the process; the rest is set while the capture is active */
    CUgraph graph;                       /* owned by the capture */
    const struct ct_capture_nodes *next; /* valid until the next call with the stream */
};

/* Begins a capture into a new graph, or into `graph` behind `dependencies`. ILLEGAL_STATE: the stream is captured already, or another capture adds
 * nodes to the graph; STREAM_CAPTURE_UNSUPPORTED: it is the legacy stream; STREAM_CAPTURE_IMPLICIT; INVALID_VALUE: the mode, or a dependency is
 * not a node of the graph. */
CUresult ct_capture_begin(struct ct_stream *stream, CUstreamCaptureMode mode, struct ct_graph *graph_or_null,
                          const struct ct_dependencies *dependencies);
/* Ends the capture; *out is the graph, or NULL after a failure; without `out` the graph is destroyed. ILLEGAL_STATE: the stream is not captured;
 * STREAM_CAPTURE_UNMATCHED: the capture began in another stream, and becomes invalid; the capture has ended after the others:
 * STREAM_CAPTURE_WRONG_THREAD; STREAM_CAPTURE_UNJOINED: another stream has nodes on which the origin's do not depend;
 * STREAM_CAPTURE_INVALIDATED. */
CUresult ct_capture_end(struct ct_stream *stream, CUgraph *out_or_null);
void ct_capture_query(struct ct_stream *stream, struct ct_capture_info *out);
/* Adds nodes to those on which the stream's next node depends, or replaces them. ILLEGAL_STATE: the stream is not captured; INVALID_VALUE: they
 * are not nodes of the graph. */
CUresult ct_capture_update(struct ct_stream *stream, const struct ct_dependencies *dependencies, bool replaces);
/* A stream is being destroyed: ends the capture that began in it. From another capture it leaves with its nodes unjoined. */
void ct_capture_forget(struct ct_stream *stream);

/* With the captures' lock held: makes the stream a part of the capture, whose next node depends on `nodes`. OUT_OF_MEMORY. */
CUresult ct_capture_join_locked(struct ct_capture *capture, struct ct_stream *stream, const struct ct_capture_nodes *nodes);

/* ---- captured calls; each returns STREAM_CAPTURE_INVALIDATED if the capture is invalid ---- */

/* Adds a node, which takes over `params` on success, and on which the stream's next node depends. OUT_OF_MEMORY. */
CUresult ct_capture_add(struct ct_stream *stream, struct ct_node_params *params);
/* The event stands for the stream's nodes. STREAM_CAPTURE_UNSUPPORTED, without an effect on the capture: other processes see the event. */
CUresult ct_capture_record(struct ct_stream *stream, struct ct_event *event);
/* The stream's next node also depends on those for which the event stands; a stream that is not captured joins the event's capture.
 * STREAM_CAPTURE_ISOLATION: the stream is captured, and the event was recorded in a stream that is not; STREAM_CAPTURE_MERGE: they belong to
 * different captures; STREAM_CAPTURE_IMPLICIT: the legacy stream; STREAM_CAPTURE_UNSUPPORTED: other processes see the event; INVALID_VALUE: the
 * event's capture has ended. Failures invalidate the captures of both. */
CUresult ct_capture_wait(struct ct_stream *stream, struct ct_event *event);

/* For calls that ask whether an event is complete. CAPTURED_EVENT: the event stands for nodes of a capture; INVALID_VALUE: for those of one that
 * has ended or is invalid. `invalidates`: the former invalidates the capture. */
CUresult ct_capture_check_event(struct ct_event *event, bool invalidates);
#endif
