/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of captures, and their nodes. */
#include "capture.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"

static struct ct_capture_part *origin_of(const struct ct_capture *capture)
{
    struct ct_capture_part *part = capture->parts;

    while (part->next)
        part = part->next;
    return part;
}

CUresult ct_capture_join_locked(struct ct_capture *capture, struct ct_stream *stream, const struct ct_capture_nodes *nodes)
{
    struct ct_capture_part *part = calloc(1, sizeof *part);
    CUresult r = part ? ct_capture_nodes_add(&part->nodes, nodes->nodes, nodes->data, nodes->count)
                      : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a captured stream");

    if (r != CUDA_SUCCESS) {
        free(part);
        return r;
    }
    ct_object_retain(&stream->object);
    part->stream = stream;
    part->capture = capture;
    part->next = capture->parts;
    capture->parts = part;
    atomic_store_explicit(&stream->capture, part, memory_order_release); /* pairs with ct_stream_is_captured */
    return CUDA_SUCCESS;
}

/* Only one capture at a time adds nodes to a graph. */
static CUresult claim_graph(struct ct_graph *graph)
{
    bool was_captured;

    ct_graphs_lock();
    was_captured = graph->is_captured;
    graph->is_captured = true;
    ct_graphs_unlock();
    return was_captured ? ct_fail(CUDA_ERROR_ILLEGAL_STATE, "another capture adds nodes to the graph") : CUDA_SUCCESS;
}

static void release_graph(struct ct_graph *graph)
{
    ct_graphs_lock();
    graph->is_captured = false;
    ct_graphs_unlock();
}

static void finish(struct ct_capture *capture)
{
    while (capture->parts) {
        struct ct_capture_part *part = capture->parts;

        capture->parts = part->next;
        ct_capture_nodes_finish(&part->nodes);
        ct_object_release(&part->stream->object);
        free(part);
    }
    release_graph(capture->graph);
    if (capture->owns_graph)
        ct_graph_discard(capture->graph);
    else
        ct_graph_release(capture->graph);
    free(capture);
}

static CUresult check_begin(const struct ct_stream *stream, CUstreamCaptureMode mode)
{
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u is not a mode of captures", (unsigned)mode);
    if (stream->is_legacy)
        return ct_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the legacy stream cannot be captured");
    return ct_stream_is_captured(stream) ? ct_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is captured already") : CUDA_SUCCESS;
}

static CUresult take_graph(struct ct_capture *capture, struct ct_graph *graph_or_null)
{
    CUresult r;

    if (!graph_or_null)
        r = ct_graph_create(true, &capture->graph);
    else if ((r = claim_graph(graph_or_null)) == CUDA_SUCCESS)
        ct_object_retain(&graph_or_null->object);
    if (r != CUDA_SUCCESS)
        return r;
    if (graph_or_null)
        capture->graph = graph_or_null;
    else
        (void)claim_graph(capture->graph); /* which no other thread has seen */
    capture->owns_graph = !graph_or_null;
    return CUDA_SUCCESS;
}

static CUresult create(CUstreamCaptureMode mode, struct ct_graph *graph_or_null, struct ct_capture **out)
{
    static atomic_ullong last; /* relaxed: only its uniqueness matters */
    struct ct_capture *capture = calloc(1, sizeof *capture);
    CUresult r = capture ? take_graph(capture, graph_or_null) : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a capture");

    if (r != CUDA_SUCCESS) {
        free(capture);
        return r;
    }
    capture->finish = finish;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->id = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    *out = capture;
    return CUDA_SUCCESS;
}

static CUresult check_nodes(struct ct_graph *graph, const struct ct_dependencies *dependencies)
{
    CUresult r = CUDA_SUCCESS;

    if (dependencies->count && !dependencies->nodes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu dependencies, but the list is NULL", dependencies->count);
    ct_graphs_lock();
    for (size_t i = 0; i < dependencies->count && r == CUDA_SUCCESS; i++)
        if (!ct_graph_node_or_null_locked(graph, dependencies->nodes[i]))
            r = ct_fail(CUDA_ERROR_INVALID_VALUE, "dependency %zu is not a node of the graph", i);
    ct_graphs_unlock();
    return r;
}

/* Enters the capture in the list, with its origin. */
static CUresult start_locked(struct ct_capture *capture, struct ct_stream *stream, const struct ct_dependencies *dependencies)
{
    const struct ct_capture_nodes none = {0};
    CUresult r;

    if (ct_stream_is_captured(stream)) /* by another thread meanwhile */
        return ct_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is captured already");
    if ((r = ct_capture_join_locked(capture, stream, &none)) != CUDA_SUCCESS)
        return r;
    capture->next = ct_captures;
    ct_captures = capture;
    atomic_fetch_add_explicit(&ct_capture_count, 1, memory_order_relaxed);
    r = ct_capture_nodes_add(&capture->parts->nodes, dependencies->nodes, dependencies->edge_data, dependencies->count);
    if (r != CUDA_SUCCESS)
        ct_capture_end_locked(capture);
    return r;
}

CUresult ct_capture_begin(struct ct_stream *stream, CUstreamCaptureMode mode, struct ct_graph *graph_or_null,
                          const struct ct_dependencies *dependencies)
{
    struct ct_capture *capture;
    CUresult r = ct_capture_check_implicit(stream);

    if (r == CUDA_SUCCESS)
        r = check_begin(stream, mode);
    if (r == CUDA_SUCCESS && graph_or_null)
        r = check_nodes(graph_or_null, dependencies);
    if (r != CUDA_SUCCESS || (r = create(mode, graph_or_null, &capture)) != CUDA_SUCCESS)
        return r;
    ct_captures_lock();
    r = start_locked(capture, stream, dependencies);
    ct_captures_unlock();
    if (r != CUDA_SUCCESS)
        finish(capture);
    return r;
}

/* ---- the end ---- */

/* Whether the origin's nodes depend on those of all other streams. */
static CUresult check_joined(const struct ct_capture *capture)
{
    const struct ct_capture_nodes *last = &origin_of(capture)->nodes;
    const struct ct_graph *graph = capture->graph;
    CUresult r = CUDA_SUCCESS;
    bool *is_joined;

    ct_graphs_lock();
    is_joined = calloc(graph->count + 1, sizeof *is_joined);
    if (!is_joined || !ct_graph_mark_ancestors_locked(graph, last->nodes, last->count, is_joined))
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the end of a capture");
    for (const struct ct_capture_part *part = capture->parts; part->next && r == CUDA_SUCCESS; part = part->next)
        for (size_t i = 0; i < part->nodes.count && r == CUDA_SUCCESS; i++) {
            const struct ct_graph_node *node = ct_graph_node_or_null_locked(graph, part->nodes.nodes[i]);

            if (node && !is_joined[node->index])
                r = ct_fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a stream that joined the capture was not joined to its origin again");
        }
    ct_graphs_unlock();
    free(is_joined);
    return r;
}

static CUresult check_origin_locked(const struct ct_capture_part *part)
{
    if (!part)
        return ct_fail(CUDA_ERROR_ILLEGAL_STATE, "the stream is not captured");
    if (part == origin_of(part->capture))
        return CUDA_SUCCESS;
    part->capture->is_invalid = true;
    return ct_fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began in another stream");
}

/* Whether the graph of a capture that has ended is complete. */
static CUresult check_end(const struct ct_capture *capture)
{
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return ct_fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture began in another thread");
    if (capture->is_invalid)
        return ct_fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was invalidated by an earlier error");
    return check_joined(capture);
}

CUresult ct_capture_end(struct ct_stream *stream, CUgraph *out)
{
    struct ct_capture *capture = NULL;
    CUresult r;

    if (out)
        *out = NULL;
    ct_captures_lock();
    r = check_origin_locked(ct_capture_part_locked(stream));
    if (r == CUDA_SUCCESS) {
        capture = ct_capture_part_locked(stream)->capture;
        ct_capture_end_locked(capture);
    }
    ct_captures_unlock();
    if (!capture)
        return r;
    r = check_end(capture);
    if (r == CUDA_SUCCESS && out) {
        *out = capture->graph->object.handle;
        if (capture->owns_graph)
            ct_object_retain(&capture->graph->object); /* the reference of the application, which `finish` would release */
        capture->owns_graph = false;
    }
    finish(capture);
    return r;
}

/* The origin's capture ends. Another stream's part stays, without the stream. */
void ct_capture_forget(struct ct_stream *stream)
{
    struct ct_capture *capture = NULL;
    struct ct_capture_part *part;

    ct_captures_lock();
    part = ct_capture_part_locked(stream);
    if (part && part == origin_of(part->capture))
        ct_capture_end_locked(capture = part->capture);
    atomic_store_explicit(&stream->capture, NULL, memory_order_release);
    ct_captures_unlock();
    if (capture)
        finish(capture);
}

/* ---- queries and changes ---- */

void ct_capture_query(struct ct_stream *stream, struct ct_capture_info *out)
{
    const struct ct_capture_part *part;

    *out = (struct ct_capture_info){.status = CU_STREAM_CAPTURE_STATUS_NONE};
    if (!ct_stream_is_captured(stream))
        return;
    ct_captures_lock();
    if ((part = ct_capture_part_locked(stream))) {
        const struct ct_capture *capture = part->capture;

        *out = (struct ct_capture_info){
            .status = capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE,
            .id = capture->id,
            .graph = capture->graph->object.handle,
            .next = &part->nodes,
        };
    }
    ct_captures_unlock();
}

CUresult ct_capture_update(struct ct_stream *stream, const struct ct_dependencies *dependencies, bool replaces)
{
    struct ct_capture_part *part;
    CUresult r;

    ct_captures_lock();
    part = ct_capture_part_locked(stream);
    r = ct_capture_check_locked(part);
    if (r == CUDA_SUCCESS)
        r = check_nodes(part->capture->graph, dependencies);
    if (r == CUDA_SUCCESS && replaces)
        part->nodes.count = 0;
    if (r == CUDA_SUCCESS)
        r = ct_capture_nodes_add(&part->nodes, dependencies->nodes, dependencies->edge_data, dependencies->count);
    ct_captures_unlock();
    return r;
}

/* ---- captured calls ---- */

CUresult ct_capture_add(struct ct_stream *stream, struct ct_node_params *params)
{
    struct ct_capture_part *part;
    CUgraphNode node;
    CUresult r;

    ct_captures_lock();
    part = ct_capture_part_locked(stream);
    r = ct_capture_check_locked(part);
    if (r == CUDA_SUCCESS) {
        const struct ct_dependencies on = {part->nodes.nodes, part->nodes.data, part->nodes.count};

        r = ct_graph_add_node(part->capture->graph, &on, params, &node);
        if (r == CUDA_SUCCESS) {
            part->nodes.count = 0;
            r = ct_capture_nodes_add(&part->nodes, &node, NULL, 1);
        }
    }
    ct_captures_unlock();
    return r;
}
