/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of stream capture: two streams and two events, and what tests ask about captures and their graphs. */
#ifndef CUTTLE_TESTS_CAPTURE_TEST_H
#define CUTTLE_TESTS_CAPTURE_TEST_H

#include "graphs_test.h"

static CUstream first, second; /* non-blocking */
static CUevent fork_event, join_event;

static inline int set_up_streams(void **state)
{
    (void)state;
    ok(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
    return 0;
}

static inline int tear_down_streams(void **state)
{
    (void)state;
    ok(cuStreamDestroy(first));
    ok(cuStreamDestroy(second));
    ok(cuEventDestroy(fork_event));
    ok(cuEventDestroy(join_event));
    return 0;
}

static inline void begin(CUstream stream)
{
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static inline CUgraph end(CUstream stream)
{
    CUgraph graph = NULL;

    ok(cuStreamEndCapture(stream, &graph));
    assert_non_null(graph);
    return graph;
}

static inline void end_gives(CUresult expected, CUstream stream)
{
    CUgraph graph = (CUgraph)&graph;

    gives(expected, cuStreamEndCapture(stream, &graph));
    assert_null(graph);
}

static inline void status_is(CUstreamCaptureStatus expected, CUstream stream)
{
    CUstreamCaptureStatus status;

    ok(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, expected);
}

/* The call that was made has invalidated the capture of the stream, which ends. */
static inline void is_invalid(CUstream stream)
{
    status_is(CU_STREAM_CAPTURE_STATUS_INVALIDATED, stream);
    end_gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, stream);
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, stream);
}

static inline CUresult try_linear(CUstream stream, CUdeviceptr data, uint32_t factor, uint32_t term)
{
    void *list[] = {&data, &factor, &term};

    return cuLaunchKernel(graphs_linear, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, stream, list, NULL);
}

static inline void linear(CUstream stream, CUdeviceptr data, uint32_t factor, uint32_t term)
{
    ok(try_linear(stream, data, factor, term));
}

/* The second stream follows the work of the first one so far. */
static inline void fork_second(void)
{
    ok(cuEventRecord(fork_event, first));
    ok(cuStreamWaitEvent(second, fork_event, 0));
}

static inline void join_second(void)
{
    ok(cuEventRecord(join_event, second));
    ok(cuStreamWaitEvent(first, join_event, 0));
}

static inline size_t dependencies_of(CUstream stream)
{
    CUstreamCaptureStatus status;
    const CUgraphNode *nodes;
    size_t count;

    ok(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, &nodes, &count));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    return count;
}

static inline CUgraph graph_of(CUstream stream)
{
    CUstreamCaptureStatus status;
    CUgraph graph;

    ok(cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, NULL, NULL));
    return graph;
}

#define MOST 16

/* Expects nodes of these types in this order, and these edges between their indices: "0-1 1-2". */
static inline void graph_is(CUgraph graph, const char *types, const char *edges)
{
    CUgraphNode nodes[MOST], from[MOST], to[MOST];
    size_t n_nodes = MOST, n_edges = MOST;
    char text[200] = "", *at = text;

    ok(cuGraphGetNodes(graph, nodes, &n_nodes));
    for (size_t i = 0; i < n_nodes; i++) {
        CUgraphNodeType type;

        ok(cuGraphNodeGetType(nodes[i], &type));
        at += snprintf(at, 20, "%s%d", i ? " " : "", (int)type);
    }
    assert_string_equal(text, types);
    ok(cuGraphGetEdges(graph, from, to, NULL, &n_edges));
    text[0] = 0;
    at = text;
    for (size_t a = 0; a < n_nodes; a++)
        for (size_t b = 0; b < n_nodes; b++)
            for (size_t e = 0; e < n_edges; e++)
                if (from[e] == nodes[a] && to[e] == nodes[b])
                    at += snprintf(at, 20, "%s%zu-%zu", at == text ? "" : " ", a, b);
    assert_string_equal(text, edges);
}

static inline void run_graph(CUgraph graph)
{
    CUgraphExec exec;

    ok(cuGraphInstantiate(&exec, graph, 0));
    launch_and_wait(exec);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}

static inline void call_back(void *user)
{
    ++*(unsigned *)user;
}

/* Tests with fresh streams and events. */
#define CAPTURE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_streams, tear_down_streams)

#endif
