/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of graphs: every type of node, the order of nodes, repeated launches, updates (Driver API: Graph Management). */
#include "graphs_test.h"

#include <stdatomic.h>
#include <unistd.h>

/* ((1 * 3 + 5) * 2 + 1) * 10 + 4 */
static void kernels_follow_their_dependencies(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraphNode a, b, c;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    c = add_linear(graph, NULL, 0, data, 10, 4); /* created in another order than they run */
    a = add_linear(graph, NULL, 0, data, 3, 5);
    b = add_linear(graph, &a, 1, data, 2, 1);
    ok(cuGraphAddDependencies(graph, &b, &c, NULL, 1));
    exec = instantiate(graph);
    ok(cuGraphDestroy(graph));
    launch_and_wait(exec);
    all_are(data, 174);
    launch_and_wait(exec);
    all_are(data, ((174 * 3 + 5) * 2 + 1) * 10 + 4);
    ok(cuGraphExecDestroy(exec));
    ok(cuMemFree(data));
}

/* A launch is a command of its stream, and the launches of an executable graph follow each other. */
static void launches_are_ordered(void **state)
{
    CUdeviceptr data = allocate(1);
    CUstream streams[2];
    CUgraphExec exec;
    CUgraph graph;
    uint32_t expected = 1;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    add_linear(graph, NULL, 0, data, 3, 1);
    exec = instantiate(graph);
    ok(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 50; i++) {
        ok(cuGraphLaunch(exec, streams[i & 1]));
        expected = expected * 3 + 1;
    }
    ok(cuGraphExecDestroy(exec)); /* while it runs */
    ok(cuStreamSynchronize(streams[0]));
    ok(cuStreamSynchronize(streams[1]));
    all_are(data, expected);
    ok(cuStreamDestroy(streams[0]));
    ok(cuStreamDestroy(streams[1]));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

static _Atomic unsigned calls;

static void fill_input(void *user)
{
    uint32_t *words = user;

    atomic_fetch_add(&calls, 1);
    for (unsigned i = 0; i < COUNT; i++)
        words[i] = 7;
}

/* Pageable memory is read before a launch returns, although an earlier node writes it later, and has been written when the launch returns. */
static void copies_of_pageable_memory(void **state)
{
    static uint32_t input[COUNT], output[COUNT];
    CUdeviceptr data = allocate(0);
    CUDA_MEMCPY3D up = copy_params(NULL, data, input, 0, BYTES), down = copy_params(output, 0, NULL, data, BYTES);
    CUgraphNode a, b;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    a = add_copy(graph, NULL, 0, &up);
    b = add_linear(graph, &a, 1, data, 6, 0);
    add_copy(graph, &b, 1, &down);
    exec = instantiate(graph);
    for (unsigned round = 1; round <= 3; round++) {
        for (unsigned i = 0; i < COUNT; i++)
            input[i] = round + i;
        ok(cuGraphLaunch(exec, NULL));
        memset(input, 0, sizeof input);
        for (unsigned i = 0; i < COUNT; i++)
            assert_int_equal(output[i], (round + i) * 6);
    }
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

static void host_functions_run_in_order(void **state)
{
    static uint32_t pageable[COUNT];
    CUDA_HOST_NODE_PARAMS host = {fill_input, NULL};
    CUdeviceptr data = allocate(0);
    CUDA_MEMCPY3D up, down;
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph;
    void *locked;

    (void)state;
    ok(cuMemAllocHost(&locked, BYTES));
    memset(locked, 0, BYTES);
    host.userData = locked;
    up = copy_params(NULL, data, locked, 0, BYTES);
    down = copy_params(pageable, 0, NULL, data, BYTES);
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
    node = add_copy(graph, &node, 1, &up);
    node = add_linear(graph, &node, 1, data, 6, 0);
    add_copy(graph, &node, 1, &down);
    exec = instantiate(graph);
    launch_and_wait(exec);
    assert_int_equal(atomic_load(&calls), 1);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(pageable[i], 42);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFreeHost(locked));
    ok(cuMemFree(data));
}

static void copies_between_all_kinds_of_memory(void **state)
{
    static uint32_t pageable[COUNT], result[COUNT];
    CUdeviceptr first = allocate(0), second = allocate(0);
    CUDA_MEMCPY3D copies[5];
    CUgraphNode node = NULL;
    CUgraphExec exec;
    CUgraph graph;
    void *locked;

    (void)state;
    ok(cuMemAllocHost(&locked, BYTES));
    for (unsigned i = 0; i < COUNT; i++)
        pageable[i] = i * i;
    copies[0] = copy_params(locked, 0, pageable, 0, BYTES);
    copies[1] = copy_params(NULL, first, locked, 0, BYTES);
    copies[2] = copy_params(NULL, second, NULL, first, BYTES);
    copies[3] = copy_params(locked, 0, NULL, second, BYTES);
    copies[4] = copy_params(result, 0, locked, 0, BYTES);
    ok(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 5; i++)
        node = add_copy(graph, &node, node ? 1 : 0, &copies[i]);
    exec = instantiate(graph);
    launch_and_wait(exec);
    assert_memory_equal(result, pageable, BYTES);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFreeHost(locked));
    ok(cuMemFree(first));
    ok(cuMemFree(second));
}

/* A box of 5 x 3 x 2 words in pageable memory, with gaps, to device memory with other gaps, and back. */
static void boxes_are_copied(void **state)
{
    enum { W = 8, H = 4, D = 3, ALL = W * H * D };
    uint32_t source[ALL], result[ALL] = {0};
    CUdeviceptr data = allocate(0);
    CUDA_MEMCPY3D up = copy_params(NULL, data, source, 0, 5 * 4), down = copy_params(result, 0, NULL, data, 5 * 4);
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    for (unsigned i = 0; i < ALL; i++)
        source[i] = 1000 + i;
    up.Height = down.Height = 3;
    up.Depth = down.Depth = 2;
    up.srcPitch = down.dstPitch = W * 4;
    up.srcHeight = down.dstHeight = H;
    up.dstPitch = down.srcPitch = 32;
    up.dstHeight = down.srcHeight = 5;
    up.srcXInBytes = down.dstXInBytes = 8;
    up.srcY = down.dstY = 1;
    up.srcZ = down.dstZ = 1;
    ok(cuGraphCreate(&graph, 0));
    node = add_copy(graph, NULL, 0, &up);
    add_copy(graph, &node, 1, &down);
    exec = instantiate(graph);
    launch_and_wait(exec);
    for (unsigned z = 0; z < D; z++)
        for (unsigned y = 0; y < H; y++)
            for (unsigned x = 0; x < W; x++) {
                const unsigned i = (z * H + y) * W + x;
                const int inside = x >= 2 && x < 7 && y >= 1 && z >= 1;

                assert_int_equal(result[i], inside ? source[i] : 0);
            }
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

static void memset_nodes_fill(void **state)
{
    CUdeviceptr data = allocate(1);
    CUDA_MEMSET_NODE_PARAMS params = {.dst = data, .value = 5, .elementSize = 4, .width = COUNT, .height = 1};
    CUcontext context;
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuCtxGetCurrent(&context));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
    add_linear(graph, &node, 1, data, 2, 1);
    exec = instantiate(graph);
    launch_and_wait(exec);
    all_are(data, 11);
    params.value = 6;
    ok(cuGraphExecMemsetNodeSetParams(exec, node, &params, context));
    launch_and_wait(exec);
    all_are(data, 13);
    params.elementSize = 3;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

/* 1 -> a child of two kernels -> another kernel. */
static void child_graphs_run_in_place(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraphNode a, b, node;
    CUgraphExec exec;
    CUgraph graph, child;

    (void)state;
    ok(cuGraphCreate(&child, 0));
    a = add_linear(child, NULL, 0, data, 3, 0);
    add_linear(child, &a, 1, data, 1, 4);
    ok(cuGraphCreate(&graph, 0));
    b = add_linear(graph, NULL, 0, data, 2, 0);
    ok(cuGraphAddChildGraphNode(&node, graph, &b, 1, child));
    add_linear(graph, &node, 1, data, 10, 0);
    ok(cuGraphDestroy(child));
    exec = instantiate(graph);
    launch_and_wait(exec);
    all_are(data, ((1 * 2) * 3 + 4) * 10);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

static void memory_operations_write_and_wait(void **state)
{
    CUdeviceptr data = allocate(1);
    CUstreamBatchMemOpParams ops[3] = {{.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = data, .value = 7}},
                                       {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = data, .value = 7}},
                                       {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = data + 8, .value64 = 5}}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.count = 3, .paramArray = ops}, got;
    uint32_t words[4];
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuCtxGetCurrent(&params.ctx));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
    ok(cuGraphBatchMemOpNodeGetParams(node, &got));
    assert_int_equal(got.count, 3);
    assert_ptr_not_equal(got.paramArray, ops);
    assert_int_equal(got.paramArray[0].writeValue.value, 7);
    exec = instantiate(graph);
    launch_and_wait(exec);
    ok(cuMemcpyDtoH(words, data, sizeof words));
    assert_int_equal(words[0], 7);
    assert_int_equal(words[1], 1);
    assert_int_equal(words[2], 5);
    assert_int_equal(words[3], 0);
    ops[2].writeValue.value64 = 9;
    ok(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
    launch_and_wait(exec);
    ok(cuMemcpyDtoH(words, data, sizeof words));
    assert_int_equal(words[2], 9);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

static CUgraph one_linear(CUdeviceptr data, uint32_t factor)
{
    CUgraph graph;

    ok(cuGraphCreate(&graph, 0));
    add_linear(graph, NULL, 0, data, factor, 0);
    return graph;
}

static void a_child_graph_is_replaced(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph, child = one_linear(data, 3), other = one_linear(data, 7), longer = one_linear(data, 7);
    CUgraphNode node;
    CUgraphExec exec;

    (void)state;
    add_empty(longer, NULL, 0);
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    exec = instantiate(graph);
    ok(cuGraphExecChildGraphNodeSetParams(exec, node, other));
    launch_and_wait(exec);
    all_are(data, 7);
    gives(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecChildGraphNodeSetParams(exec, node, longer));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(child));
    ok(cuGraphDestroy(other));
    ok(cuGraphDestroy(longer));
    ok(cuMemFree(data));
}

static void event_nodes_record_and_wait(void **state)
{
    CUdeviceptr data = allocate(1);
    CUevent before, after;
    CUgraphNode wait, kernel, record;
    CUstream other, stream;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING));
    ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, before));
    kernel = add_linear(graph, &wait, 1, data, 3, 0);
    ok(cuGraphAddEventRecordNode(&record, graph, &kernel, 1, after));
    exec = instantiate(graph);
    ok(cuMemsetD32Async(data, 5, COUNT, other));
    ok(cuEventRecord(before, other));
    ok(cuGraphLaunch(exec, stream));
    ok(cuStreamWaitEvent(other, after, 0));
    ok(cuEventSynchronize(after));
    all_are(data, 15);
    ok(cuStreamSynchronize(stream));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuEventDestroy(before));
    ok(cuEventDestroy(after));
    ok(cuStreamDestroy(other));
    ok(cuStreamDestroy(stream));
    ok(cuMemFree(data));
}

/* ---- changes of executable graphs ---- */

static void a_kernel_gets_other_parameters(void **state)
{
    CUdeviceptr data = allocate(1);
    struct linear linear = {.data = data, .factor = 7, .term = 1};
    CUDA_KERNEL_NODE_PARAMS params = linear_params(&linear);
    CUgraphNode node, foreign;
    CUgraph graph, other;
    CUgraphExec exec;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphCreate(&other, 0));
    node = add_linear(graph, NULL, 0, data, 2, 0);
    foreign = add_linear(other, NULL, 0, data, 2, 0);
    exec = instantiate(graph);
    ok(cuGraphExecKernelNodeSetParams(exec, node, &params));
    launch_and_wait(exec);
    all_are(data, 8);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, foreign, &params));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphExecHostNodeSetParams(exec, node, &(CUDA_HOST_NODE_PARAMS){fill_input, NULL}));
    ok(cuGraphKernelNodeSetParams(node, &params)); /* of the graph: the executable graph is a snapshot */
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(other));
    ok(cuMemFree(data));
}

static void nodes_are_disabled(void **state)
{
    CUdeviceptr data = allocate(1);
    unsigned enabled = 9;
    CUgraphNode a, b, empty;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    a = add_linear(graph, NULL, 0, data, 3, 0);
    b = add_linear(graph, &a, 1, data, 5, 0);
    empty = add_empty(graph, &b, 1);
    exec = instantiate(graph);
    ok(cuGraphNodeGetEnabled(exec, a, &enabled));
    assert_int_equal(enabled, 1);
    ok(cuGraphNodeSetEnabled(exec, a, 0));
    ok(cuGraphNodeGetEnabled(exec, a, &enabled));
    assert_int_equal(enabled, 0);
    launch_and_wait(exec);
    all_are(data, 5);
    ok(cuGraphNodeSetEnabled(exec, a, 1));
    launch_and_wait(exec);
    all_are(data, 75);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, empty, 0));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

static CUgraph chain_of_three(CUdeviceptr data, uint32_t factor)
{
    CUgraphNode node = NULL;
    CUgraph graph;

    ok(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 3; i++)
        node = add_linear(graph, &node, node ? 1 : 0, data, factor, 1);
    return graph;
}

static void a_graph_of_the_same_structure_updates(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph = chain_of_three(data, 2), other = chain_of_three(data, 3);
    CUgraphExec exec = instantiate(graph);
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};

    (void)state;
    ok(cuGraphExecUpdate(exec, other, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    launch_and_wait(exec);
    all_are(data, 40);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(other));
    ok(cuMemFree(data));
}

static void update_fails(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult expected)
{
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};

    gives(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, graph, &info));
    assert_int_equal(info.result, expected);
}

static void other_structures_do_not_update(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraph graph = chain_of_three(data, 2), longer = chain_of_three(data, 3), parallel, mixed;
    CUgraphExec exec = instantiate(graph);
    CUgraphNode node;

    (void)state;
    add_linear(longer, NULL, 0, data, 1, 0);
    update_fails(exec, longer, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    ok(cuGraphCreate(&parallel, 0));
    for (int i = 0; i < 3; i++)
        add_linear(parallel, NULL, 0, data, 1, 0);
    update_fails(exec, parallel, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    ok(cuGraphCreate(&mixed, 0));
    node = add_linear(mixed, NULL, 0, data, 1, 0);
    node = add_empty(mixed, &node, 1);
    add_linear(mixed, &node, 1, data, 1, 0);
    update_fails(exec, mixed, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    launch_and_wait(exec); /* unchanged */
    all_are(data, 15);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(longer));
    ok(cuGraphDestroy(parallel));
    ok(cuGraphDestroy(mixed));
    ok(cuMemFree(data));
}

static void a_thousand_nodes(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraphNode node = NULL;
    uint32_t expected = 1;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    for (uint32_t i = 0; i < 1000; i++) {
        node = add_linear(graph, &node, node ? 1 : 0, data, 3, i);
        expected = expected * 3 + i;
    }
    exec = instantiate(graph);
    launch_and_wait(exec);
    all_are(data, expected);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(data));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_follow_their_dependencies),
        cmocka_unit_test(launches_are_ordered),
        cmocka_unit_test(copies_of_pageable_memory),
        cmocka_unit_test(host_functions_run_in_order),
        cmocka_unit_test(copies_between_all_kinds_of_memory),
        cmocka_unit_test(boxes_are_copied),
        cmocka_unit_test(memset_nodes_fill),
        cmocka_unit_test(child_graphs_run_in_place),
        cmocka_unit_test(memory_operations_write_and_wait),
        cmocka_unit_test(a_child_graph_is_replaced),
        cmocka_unit_test(event_nodes_record_and_wait),
        cmocka_unit_test(a_kernel_gets_other_parameters),
        cmocka_unit_test(nodes_are_disabled),
        cmocka_unit_test(a_graph_of_the_same_structure_updates),
        cmocka_unit_test(other_structures_do_not_update),
        cmocka_unit_test(a_thousand_nodes),
    };

    return cmocka_run_group_tests(tests, graphs_set_up, graphs_tear_down);
}
