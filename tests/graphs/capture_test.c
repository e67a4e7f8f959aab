/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: what becomes a node, forks and joins, events, queries, capture into an existing graph (Driver API: Stream Management). */
#include "capture_test.h"

/* ---- what is captured ---- */

/* (7 * 3 + 5) * 2 + 1, by a graph that can be launched again */
static void work_becomes_nodes(void **state)
{
    static uint32_t input[COUNT], output[COUNT];
    CUdeviceptr data = allocate(0);
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    for (unsigned i = 0; i < COUNT; i++)
        input[i] = 7;
    begin(first);
    ok(cuMemcpyHtoDAsync(data, input, BYTES, first));
    linear(first, data, 3, 5);
    linear(first, data, 2, 1);
    ok(cuMemcpyDtoHAsync(output, data, BYTES, first));
    graph = end(first);
    graph_is(graph, "1 0 0 1", "0-1 1-2 2-3");
    all_are(data, 0); /* nothing has run yet */
    ok(cuGraphInstantiate(&exec, graph, 0));
    ok(cuGraphDestroy(graph));
    for (int round = 0; round < 2; round++) {
        launch_and_wait(exec);
        for (unsigned i = 0; i < COUNT; i++)
            assert_int_equal(output[i], 53);
        memset(output, 0, sizeof output);
    }
    ok(cuGraphExecDestroy(exec));
    ok(cuMemFree(data));
}

static void every_kind_of_work_is_captured(void **state)
{
    CUdeviceptr data = allocate(1), other = allocate(9);
    unsigned calls = 0;
    uint32_t value = 0;
    CUgraph graph;

    (void)state;
    begin(first);
    ok(cuMemsetD32Async(data, 4, COUNT, first));
    ok(cuMemcpyDtoDAsync(data + 400, other, 400, first));
    ok(cuMemcpyAsync(other, data, 400, first));
    ok(cuLaunchHostFunc(first, call_back, &calls));
    ok(cuEventRecordWithFlags(fork_event, first, CU_EVENT_RECORD_EXTERNAL));
    ok(cuStreamWaitEvent(first, join_event, CU_EVENT_WAIT_EXTERNAL));
    ok(cuStreamWriteValue32(first, data, 77, 0));
    ok(cuStreamWaitValue32(first, data, 77, CU_STREAM_WAIT_VALUE_EQ));
    ok(cuMemsetD2D8Async(data + 4, 16, 0x11, 4, 3, first));
    graph = end(first);
    graph_is(graph, "2 1 1 3 7 6 12 12 2", "0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8");
    run_graph(graph);
    assert_int_equal(calls, 1);
    ok(cuEventSynchronize(fork_event));
    ok(cuMemcpyDtoH(&value, data, 4));
    assert_int_equal(value, 77);
    ok(cuMemcpyDtoH(&value, data + 4, 4));
    assert_int_equal(value, 0x11111111);
    ok(cuMemcpyDtoH(&value, data + 404, 4));
    assert_int_equal(value, 9);
    ok(cuMemcpyDtoH(&value, other, 4));
    assert_int_equal(value, 4);
    ok(cuMemFree(data));
    ok(cuMemFree(other));
}

static void empty_work_makes_no_nodes(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph;

    (void)state;
    begin(first);
    ok(cuMemcpyHtoDAsync(data, "", 0, first));
    ok(cuMemcpyDtoDAsync(data, data + 64, 0, first));
    ok(cuMemsetD8Async(data, 0, 0, first));
    ok(cuMemsetD2D8Async(data, 16, 0, 0, 4, first));
    graph = end(first);
    graph_is(graph, "", "");
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

static void parameters_are_copied(void **state)
{
    CUdeviceptr data = allocate(2);
    uint32_t factor = 5, term = 1;
    void *list[] = {&data, &factor, &term};
    CUgraph graph;

    (void)state;
    begin(first);
    ok(cuLaunchKernel(graphs_linear, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, first, list, NULL));
    factor = 100;
    graph = end(first);
    run_graph(graph);
    all_are(data, 11);
    ok(cuMemFree(data));
}

static void launches_keep_their_attributes(void **state)
{
    CUdeviceptr data = allocate(2);
    uint32_t factor = 5, term = 1;
    void *list[] = {&data, &factor, &term};
    CUkernelNodeAttrValue value = {0};
    int least, greatest;
    CUstream urgent;
    CUgraphNode node;
    CUgraph graph;
    size_t count = 1;

    (void)state;
    ok(cuCtxGetStreamPriorityRange(&least, &greatest));
    ok(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, greatest));
    begin(urgent);
    ok(cuLaunchCooperativeKernel(graphs_linear, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, urgent, list));
    graph = end(urgent);
    ok(cuGraphGetNodes(graph, &node, &count));
    ok(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    assert_int_equal(value.cooperative, 1);
    ok(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    assert_int_equal(value.priority, greatest);
    run_graph(graph);
    all_are(data, 11);
    ok(cuStreamDestroy(urgent));
    ok(cuMemFree(data));
}

/* ---- forks and joins ---- */

static void streams_fork_and_join(void **state)
{
    CUdeviceptr left = allocate(1), right = allocate(1);
    CUgraph graph;

    (void)state;
    begin(first);
    linear(first, left, 2, 0);
    fork_second();
    status_is(CU_STREAM_CAPTURE_STATUS_ACTIVE, second);
    linear(second, right, 3, 1);
    linear(first, left, 5, 0);
    join_second();
    assert_int_equal(dependencies_of(first), 2);
    linear(first, right, 10, 0);
    graph = end(first);
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, second);
    graph_is(graph, "0 0 0 0", "0-1 0-2 1-3 2-3");
    run_graph(graph);
    all_are(left, 10);
    all_are(right, 40);
    linear(second, right, 2, 0); /* the streams execute again */
    ok(cuStreamSynchronize(second));
    all_are(right, 80);
    ok(cuMemFree(left));
    ok(cuMemFree(right));
}

static void a_fork_at_the_beginning_makes_a_root(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph;

    (void)state;
    begin(first);
    fork_second();
    assert_int_equal(dependencies_of(second), 0);
    linear(second, data, 2, 0);
    join_second();
    assert_int_equal(dependencies_of(first), 1);
    linear(first, data, 3, 0);
    graph = end(first);
    graph_is(graph, "0 0", "0-1");
    run_graph(graph);
    all_are(data, 6);
    ok(cuMemFree(data));
}

static void waits_add_dependencies(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph;

    (void)state;
    begin(first);
    linear(first, data, 2, 0);
    ok(cuEventRecord(fork_event, first));
    linear(first, data, 3, 0);
    ok(cuStreamWaitEvent(first, fork_event, 0)); /* no order is new, but the edge is */
    assert_int_equal(dependencies_of(first), 2);
    ok(cuStreamWaitEvent(first, fork_event, 0));
    assert_int_equal(dependencies_of(first), 2);
    linear(first, data, 5, 0);
    graph = end(first);
    graph_is(graph, "0 0 0", "0-1 0-2 1-2");
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

static void unjoined_work_is_an_error(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph;

    (void)state;
    begin(first);
    fork_second();
    linear(second, data, 2, 0);
    end_gives(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, first);
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, first);
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, second);

    begin(first); /* work after the join */
    fork_second();
    linear(second, data, 2, 0);
    join_second();
    linear(second, data, 2, 0);
    end_gives(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, first);

    begin(first); /* without work of its own there is nothing to join, nor is a node necessary for a join */
    linear(first, data, 2, 0);
    fork_second();
    graph = end(first);
    graph_is(graph, "0", "");
    ok(cuGraphDestroy(graph));
    begin(first);
    fork_second();
    linear(second, data, 2, 0);
    join_second();
    graph = end(first);
    graph_is(graph, "0", "");
    ok(cuGraphDestroy(graph));
    all_are(data, 1);
    ok(cuMemFree(data));
}

static void captures_do_not_mix(void **state)
{
    CUdeviceptr data = allocate(1);
    CUevent executed, never;

    (void)state;
    ok(cuEventCreate(&executed, 0));
    ok(cuEventCreate(&never, 0));
    ok(cuEventRecord(executed, second));
    ok(cuEventSynchronize(executed));
    begin(first);
    ok(cuStreamWaitEvent(first, never, 0)); /* a no-op */
    gives(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(first, executed, 0));
    gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, try_linear(first, data, 1, 0));
    gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuEventRecord(fork_event, first));
    gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamWaitEvent(first, never, 0));
    gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemcpyDtoDAsync(data, data + 4, 4, first));
    gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuLaunchHostFunc(first, call_back, NULL));
    is_invalid(first);

    begin(first);
    begin(second);
    ok(cuEventRecord(fork_event, first));
    gives(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(second, fork_event, 0));
    is_invalid(first);
    is_invalid(second);
    ok(cuEventDestroy(executed));
    ok(cuEventDestroy(never));
    ok(cuMemFree(data));
}

/* ---- events ---- */

static void events_of_captures_cannot_be_waited_for(void **state)
{
    CUevent timed[2];
    float ms;

    (void)state;
    ok(cuEventCreate(&timed[0], 0));
    ok(cuEventCreate(&timed[1], 0));
    ok(cuEventRecord(timed[0], second));
    begin(first);
    ok(cuEventRecord(timed[1], first));
    gives(CUDA_ERROR_CAPTURED_EVENT, cuEventElapsedTime(&ms, timed[0], timed[1]));
    status_is(CU_STREAM_CAPTURE_STATUS_ACTIVE, first);
    gives(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(timed[1]));
    is_invalid(first);
    begin(first);
    ok(cuEventRecord(timed[1], first));
    gives(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(timed[1]));
    is_invalid(first);

    gives(CUDA_ERROR_INVALID_VALUE, cuEventQuery(timed[1])); /* its capture has ended */
    gives(CUDA_ERROR_INVALID_VALUE, cuEventSynchronize(timed[1]));
    gives(CUDA_ERROR_INVALID_VALUE, cuEventElapsedTime(&ms, timed[0], timed[1]));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(second, timed[1], 0));
    begin(first);
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(first, timed[1], 0));
    is_invalid(first);
    ok(cuEventRecord(timed[1], second)); /* and again an event of executed work */
    ok(cuEventSynchronize(timed[1]));
    ok(cuEventElapsedTime(&ms, timed[0], timed[1]));
    ok(cuEventDestroy(timed[0]));
    ok(cuEventDestroy(timed[1]));
}

static void external_flags_need_a_capture(void **state)
{
    (void)state;
    gives(CUDA_ERROR_ILLEGAL_STATE, cuEventRecordWithFlags(fork_event, first, CU_EVENT_RECORD_EXTERNAL));
    gives(CUDA_ERROR_ILLEGAL_STATE, cuStreamWaitEvent(first, fork_event, CU_EVENT_WAIT_EXTERNAL));
}

static void shared_events_are_refused(void **state)
{
    CUevent shared;
    CUgraph graph;

    (void)state;
    ok(cuEventCreate(&shared, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    begin(first);
    gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventRecord(shared, first));
    ok(cuEventRecordWithFlags(shared, first, CU_EVENT_RECORD_EXTERNAL));
    graph = end(first);
    graph_is(graph, "7", "");
    ok(cuGraphDestroy(graph));
    begin(first);
    gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamWaitEvent(first, shared, 0));
    is_invalid(first);
    ok(cuEventDestroy(shared));
}

/* ---- queries and changes ---- */

static void information_is_given(void **state)
{
    CUstreamCaptureStatus status;
    cuuint64_t id = 7, other = 7;
    const CUgraphEdgeData *data;
    const CUgraphNode *nodes;
    CUgraph graph = NULL;
    CUgraphNode node;
    size_t count = 1;

    (void)state;
    ok(cuStreamGetCaptureInfo_v2(first, &status, &id, &graph, &nodes, &count));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    assert_true(id == 7 && !graph && count == 1);
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamIsCapturing(first, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamGetCaptureInfo_v2(first, NULL, &id, NULL, NULL, NULL));
    begin(first);
    begin(second);
    ok(cuLaunchHostFunc(first, call_back, NULL));
    ok(cuStreamGetCaptureInfo_v3(first, &status, &id, &graph, &nodes, &data, &count));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(count, 1);
    ok(cuGraphGetNodes(graph, &node, &count));
    assert_ptr_equal(nodes[0], node);
    ok(cuStreamGetCaptureInfo_v2(second, &status, &other, NULL, NULL, NULL));
    assert_true(id != other);
    ok(cuGraphDestroy(end(first)));
    ok(cuGraphDestroy(end(second)));
}

static void dependencies_are_updated(void **state)
{
    CUgraph graph, other;
    CUgraphNode own, foreign;

    (void)state;
    ok(cuGraphCreate(&other, 0));
    foreign = add_empty(other, NULL, 0);
    gives(CUDA_ERROR_ILLEGAL_STATE, cuStreamUpdateCaptureDependencies_v2(first, NULL, NULL, 0, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    begin(first);
    ok(cuLaunchHostFunc(first, call_back, NULL));
    own = add_empty(graph_of(first), NULL, 0);
    ok(cuStreamUpdateCaptureDependencies_v2(first, &own, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    assert_int_equal(dependencies_of(first), 2);
    ok(cuStreamUpdateCaptureDependencies_v2(first, &own, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    assert_int_equal(dependencies_of(first), 2);
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamUpdateCaptureDependencies_v2(first, &foreign, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamUpdateCaptureDependencies_v2(first, &own, NULL, 1, 2));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamUpdateCaptureDependencies_v2(first, NULL, NULL, 1, 0));
    assert_int_equal(dependencies_of(first), 2);
    ok(cuLaunchHostFunc(first, call_back, NULL));
    ok(cuStreamUpdateCaptureDependencies_v2(first, &own, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ok(cuLaunchHostFunc(first, call_back, NULL));
    ok(cuStreamUpdateCaptureDependencies_v2(first, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    assert_int_equal(dependencies_of(first), 0);
    ok(cuLaunchHostFunc(first, call_back, NULL));
    graph = end(first);
    graph_is(graph, "3 5 3 3 3", "0-2 1-2 1-3");
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(other));
}

static void a_graph_is_kept_while_it_is_captured(void **state)
{
    CUgraph graph, clone;
    CUgraphNode node;
    size_t count = 1;

    (void)state;
    begin(first);
    ok(cuLaunchHostFunc(first, call_back, NULL));
    graph = graph_of(first);
    gives(CUDA_ERROR_ILLEGAL_STATE, cuGraphDestroy(graph));
    ok(cuGraphGetNodes(graph, &node, &count));
    gives(CUDA_ERROR_ILLEGAL_STATE, cuGraphDestroyNode(node));
    ok(cuGraphClone(&clone, graph));
    assert_ptr_equal(end(first), graph);
    ok(cuGraphDestroyNode(node));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(clone));
}

static void work_is_added_to_a_graph(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph, other, ended;
    CUgraphNode node, foreign;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphCreate(&other, 0));
    node = add_linear(graph, NULL, 0, data, 2, 0);
    add_empty(graph, NULL, 0);
    foreign = add_empty(other, NULL, 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCaptureToGraph(first, graph, &foreign, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCaptureToGraph(first, graph, NULL, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gives(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCaptureToGraph(first, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    status_is(CU_STREAM_CAPTURE_STATUS_NONE, first);
    ok(cuStreamBeginCaptureToGraph(first, graph, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(dependencies_of(first), 1);
    assert_ptr_equal(graph_of(first), graph);
    gives(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCaptureToGraph(second, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    linear(first, data, 3, 1);
    ok(cuStreamEndCapture(first, &ended));
    assert_ptr_equal(ended, graph);
    graph_is(graph, "0 5 0", "0-2");
    ok(cuStreamBeginCaptureToGraph(first, graph, (CUgraphNode[]){node, node}, NULL, 2, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(dependencies_of(first), 1);
    ok(cuStreamEndCapture(first, &ended));
    run_graph(graph);
    all_are(data, 7);
    ok(cuGraphDestroy(other));
    ok(cuMemFree(data));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CAPTURE_TEST(work_becomes_nodes),
        CAPTURE_TEST(every_kind_of_work_is_captured),
        CAPTURE_TEST(empty_work_makes_no_nodes),
        CAPTURE_TEST(parameters_are_copied),
        CAPTURE_TEST(launches_keep_their_attributes),
        CAPTURE_TEST(streams_fork_and_join),
        CAPTURE_TEST(a_fork_at_the_beginning_makes_a_root),
        CAPTURE_TEST(waits_add_dependencies),
        CAPTURE_TEST(unjoined_work_is_an_error),
        CAPTURE_TEST(captures_do_not_mix),
        CAPTURE_TEST(events_of_captures_cannot_be_waited_for),
        CAPTURE_TEST(external_flags_need_a_capture),
        CAPTURE_TEST(shared_events_are_refused),
        CAPTURE_TEST(information_is_given),
        CAPTURE_TEST(dependencies_are_updated),
        CAPTURE_TEST(a_graph_is_kept_while_it_is_captured),
        CAPTURE_TEST(work_is_added_to_a_graph),
    };

    return cmocka_run_group_tests(tests, graphs_set_up, graphs_tear_down);
}
