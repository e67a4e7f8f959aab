/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes of graphs (CUDA C++ Programming Guide, "Conditional Graph Nodes"; Driver API, Graph Management). What the manual leaves open
 * was asked of NVIDIA's driver 580. */
#include "conditional_kernels.h"

#include <stdbool.h>
#include <unistd.h>

#define IF CU_GRAPH_COND_TYPE_IF
#define WHILE CU_GRAPH_COND_TYPE_WHILE
#define SWITCH CU_GRAPH_COND_TYPE_SWITCH
#define ASSIGN CU_GRAPH_COND_ASSIGN_DEFAULT

enum { WORDS = 4 };
static CUdeviceptr words; /* of kernels; word 0 is the result */

static int set_up(void **state)
{
    if (graphs_set_up(state) != 0)
        return -1;
    load_conditional_kernels();
    return cuMemAlloc(&words, WORDS * sizeof(uint32_t)) == CUDA_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    if (cuMemFree(words) != CUDA_SUCCESS || cuModuleUnload(conditional_module) != CUDA_SUCCESS)
        return -1;
    return graphs_tear_down(state);
}

static CUgraph new_graph(void)
{
    CUgraph graph;

    ok(cuGraphCreate(&graph, 0));
    return graph;
}

static CUgraphExec executable(CUgraph graph)
{
    CUgraphExec exec;

    ok(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

static uint32_t word(unsigned i)
{
    uint32_t value;

    ok(cuMemcpyDtoH(&value, words + 4 * i, sizeof value));
    return value;
}

/* The result of a launch that begins with zeros. */
static uint32_t result_of(CUgraphExec exec)
{
    ok(cuMemsetD32(words, 0, WORDS));
    ok(cuStreamSynchronize(CU_STREAM_LEGACY)); /* the stream of the launch does not wait for it */
    launch_and_wait(exec);
    return word(0);
}

static void destroy(CUgraphExec exec, CUgraph graph)
{
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}

/* ---- conditions ---- */

static void handles_are_validated(void **state)
{
    CUgraphConditionalHandle handle = 0, other = 0;
    CUgraph graph = new_graph();
    CUcontext context = *state;

    gives(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(NULL, graph, context, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, NULL, context, 0, 0));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGraphConditionalHandleCreate(&handle, graph, NULL, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, graph, context, 0, 2));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphConditionalHandleCreate(&handle, graph, context, 0, 3));
    assert_true(handle == 0);
    ok(cuCtxSetCurrent(NULL));
    ok(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0));
    ok(cuCtxSetCurrent(context));
    ok(cuGraphConditionalHandleCreate(&other, graph, context, 7, ASSIGN));
    assert_true(handle != 0 && other != 0 && handle != other);
    ok(cuGraphDestroy(graph));
}

static CUresult add(CUgraph graph, CUgraphConditionalHandle handle, int type, unsigned size, CUcontext context, CUgraphNode *node)
{
    CUgraphNodeParams params = conditional_params(handle, (CUgraphConditionalNodeType)type, size);

    params.conditional.ctx = context;
    return cuGraphAddNode(node, graph, NULL, NULL, 0, &params);
}

static void nodes_are_validated(void **state)
{
    static const struct {
        int type;
        unsigned size;
    } rows[] = {{3, 1}, {IF, 0}, {IF, 3}, {WHILE, 0}, {WHILE, 2}, {SWITCH, 0}};
    CUgraph graph = new_graph(), other = new_graph();
    const CUgraphConditionalHandle handle = make_handle(graph, 0, ASSIGN);
    CUcontext context = *state, second;
    CUgraphNode node;
    CUdevice device;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        gives(CUDA_ERROR_INVALID_VALUE, add(graph, handle, rows[i].type, rows[i].size, context, &node));
    gives(CUDA_ERROR_INVALID_VALUE, add(graph, 0, IF, 1, context, &node));
    gives(CUDA_ERROR_INVALID_VALUE, add(graph, handle + 0x1234567, IF, 1, context, &node));
    gives(CUDA_ERROR_INVALID_VALUE, add(other, handle, IF, 1, context, &node));
    gives(CUDA_ERROR_INVALID_VALUE, add(graph, handle, IF, 1, context, NULL));
    gives(CUDA_ERROR_INVALID_CONTEXT, add(graph, handle, IF, 1, NULL, &node));
    ok(cuCtxGetDevice(&device));
    ok(create_context(&second, device));
    ok(cuCtxSetCurrent(context));
    gives(CUDA_ERROR_INVALID_VALUE, add(graph, handle, IF, 1, second, &node));
    ok(cuCtxDestroy(second));
    ok(add(graph, handle, IF, 1, context, &node));
    gives(CUDA_ERROR_INVALID_VALUE, add(graph, handle, IF, 1, context, &node)); /* a condition has one node */
    ok(cuGraphDestroyNode(node));
    ok(add(graph, handle, IF, 1, context, &node));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(other));
}

static void a_node_owns_its_bodies(void **state)
{
    CUgraph graph = new_graph(), parent = new_graph(), clone, *bodies;
    const CUgraphConditionalHandle handle = make_handle(graph, 0, ASSIGN);
    CUgraphNodeParams params = conditional_params(handle, SWITCH, 3), moved = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    CUgraphNode node, inner, child;
    CUgraphNodeType type;
    CUgraphExec exec;
    size_t count = 0;

    ok(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
    bodies = params.conditional.phGraph_out;
    assert_true(bodies && bodies[0] && bodies[1] && bodies[2] && bodies[0] != bodies[1]);
    ok(cuGraphNodeGetType(node, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_CONDITIONAL);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphNodeSetParams(node, &params));
    inner = add_digit(bodies[0], NULL, words, 1);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(graph, &inner, &node, NULL, 1));
    ok(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 1);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(bodies[0]));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&exec, bodies[0], 0));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, bodies[0]));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&child, parent, NULL, 0, graph));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&child, parent, NULL, 0, bodies[0]));
    moved.graph.graph = graph;
    moved.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode(&child, parent, NULL, NULL, 0, &moved));
    ok(cuGraphDestroyNode(inner));
    clone = bodies[0];
    ok(cuGraphDestroyNode(node));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(clone, NULL, &count));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(parent));
    (void)state;
}

static void every_condition_needs_a_node(void **state)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = 0};
    CUgraph graph = new_graph(), *bodies;
    CUgraphExec exec;
    CUgraphNode node;

    (void)state;
    node = add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), IF, 1, &bodies);
    exec = executable(graph);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroyNode(node));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
    assert_null(params.hErrNode_out);
    ok(cuGraphDestroy(graph));
}

/* Even if no node has them yet. */
static void a_graph_with_conditions_is_not_copied(void **state)
{
    CUgraph graph = new_graph(), parent = new_graph(), clone;
    CUgraphNode child;

    (void)state;
    make_handle(graph, 1, ASSIGN);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&child, parent, NULL, 0, graph));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(parent));
}

static void a_graph_has_one_executable_graph(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    CUgraphExec exec, second;

    (void)state;
    add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), IF, 1, &bodies);
    exec = executable(graph);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&second, graph, 0));
    ok(cuGraphExecDestroy(exec));
    exec = executable(graph);
    destroy(exec, graph);
}

/* ---- execution ---- */

/* Body i appends the digit i + 1. */
static const struct {
    const char *name;
    CUgraphConditionalNodeType type;
    unsigned size;
    uint32_t value, expected;
} choices[] = {
    {"if, not taken", IF, 1, 0, 79},    {"if, taken", IF, 1, 5, 719},         {"else", IF, 2, 0, 729},
    {"if with else", IF, 2, 1, 719},    {"first case", SWITCH, 3, 0, 719},    {"last case", SWITCH, 3, 2, 739},
    {"no such case", SWITCH, 3, 3, 79}, {"far from any", SWITCH, 3, -1u, 79}, {"while, never", WHILE, 1, 0, 79},
    {"many cases", SWITCH, 9, 8, 799},
};

static void the_value_chooses_a_body(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        CUgraph graph = new_graph(), *bodies;
        const CUgraphConditionalHandle handle = make_handle(graph, choices[i].value, ASSIGN);
        CUgraphNode node = add_digit(graph, NULL, words, 7);
        CUgraphExec exec;

        node = add_conditional(graph, node, handle, choices[i].type, choices[i].size, &bodies);
        for (unsigned k = 0; k < choices[i].size; k++)
            add_digit(bodies[k], NULL, words, k + 1);
        add_digit(graph, node, words, 9);
        exec = executable(graph);
        for (int launch = 0; launch < 2; launch++)
            if (result_of(exec) != choices[i].expected)
                fail_msg("%s: %u", choices[i].name, word(0));
        destroy(exec, graph);
    }
}

static void a_kernel_sets_the_value(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    const CUgraphConditionalHandle handle = make_handle(graph, 0, 0);
    CUgraphNode set = add_set(graph, NULL, handle, 2);
    CUgraphExec exec;

    (void)state;
    add_conditional(graph, set, handle, SWITCH, 3, &bodies);
    for (unsigned i = 0; i < 3; i++)
        add_digit(bodies[i], NULL, words, i + 1);
    exec = executable(graph);
    assert_int_equal(result_of(exec), 3);
    for (uint32_t value = 0; value < 4; value++) {
        CUgraphConditionalHandle same = handle;
        void *list[] = {&same, &value};
        const CUDA_KERNEL_NODE_PARAMS params = one_thread(set_function, list);

        ok(cuGraphExecKernelNodeSetParams(exec, set, &params));
        assert_int_equal(result_of(exec), (value + 1) % 4);
    }
    destroy(exec, graph);
}

static void a_body_repeats_while_the_value_is_not_zero(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    const CUgraphConditionalHandle handle = make_handle(graph, 1, ASSIGN);
    CUgraphNode node = add_conditional(graph, NULL, handle, WHILE, 1, &bodies);
    CUgraphExec exec;

    (void)state;
    add_digit(bodies[0], add_step(bodies[0], NULL, words + 4, handle, 5), words, 1);
    add_digit(graph, node, words, 2);
    exec = executable(graph);
    for (int i = 0; i < 3; i++)
        assert_int_equal(result_of(exec), 111112);
    destroy(exec, graph);
}

/* The first launch begins with 0, whatever the default is, and with any value on NVIDIA's driver, which leaves what was in memory; the second with
 * what the first has left. */
static void without_a_flag_the_value_persists(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    const CUgraphConditionalHandle handle = make_handle(graph, 1, 0);
    uint64_t first;
    CUgraphExec exec;

    (void)state;
    add_set(graph, add_conditional(graph, NULL, handle, IF, 2, &bodies), handle, 1);
    add_digit(bodies[0], NULL, words, 1);
    add_digit(bodies[1], NULL, words, 2);
    exec = executable(graph);
    first = result_of(exec);
    assert_true(first == 2 || (first == 1 && !on_cuttle()));
    assert_int_equal(result_of(exec), 1);
    assert_int_equal(result_of(exec), 1);
    destroy(exec, graph);
}

/* Where the inner condition is created makes no difference: its default is assigned when the whole graph is launched. */
static void defaults_are_assigned_once_a_launch(void **state)
{
    (void)state;
    for (int in_body = 0; in_body < 2; in_body++) {
        CUgraph graph = new_graph(), *bodies, *inner;
        const CUgraphConditionalHandle outer = make_handle(graph, 1, ASSIGN);
        CUgraphConditionalHandle handle;
        CUgraphNode node;
        CUgraphExec exec;

        add_conditional(graph, NULL, outer, WHILE, 1, &bodies);
        node = add_step(bodies[0], NULL, words + 4, outer, 3);
        handle = make_handle(in_body ? bodies[0] : graph, 1, ASSIGN);
        add_conditional(bodies[0], node, handle, IF, 2, &inner);
        add_set(inner[0], add_digit(inner[0], NULL, words, 1), handle, 0);
        add_digit(inner[1], NULL, words, 2);
        exec = executable(graph);
        assert_int_equal(result_of(exec), 122);
        assert_int_equal(result_of(exec), 122);
        destroy(exec, graph);
    }
}

/* Conditions of a graph are for its bodies and child graphs, too. */
static void conditions_belong_to_the_whole_graph(void **state)
{
    CUgraph graph = new_graph(), child = new_graph(), *bodies, *inner;
    CUgraphNode node, in_child;
    CUgraphExec exec;

    (void)state;
    node = add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), IF, 1, &bodies);
    add_digit(child, NULL, words, 1);
    ok(cuGraphAddChildGraphNode(&in_child, bodies[0], NULL, 0, child));
    ok(cuGraphDestroy(child));
    ok(cuGraphChildGraphNodeGetGraph(in_child, &child));
    add_digit(graph, node, words, 3);
    ok(cuGraphGetRootNodes(child, &node, &(size_t){1}));
    add_conditional(child, node, make_handle(graph, 1, ASSIGN), IF, 1, &inner);
    add_digit(inner[0], NULL, words, 2);
    exec = executable(graph);
    assert_int_equal(result_of(exec), 123);
    destroy(exec, graph);
}

/* Loops in a loop; the inner counter begins again with each outer one. */
static void bodies_nest(void **state)
{
    CUgraph graph = new_graph(), *bodies, *inner;
    const CUgraphConditionalHandle outer = make_handle(graph, 1, ASSIGN), handle = make_handle(graph, 0, 0);
    const CUDA_MEMSET_NODE_PARAMS zero = {.dst = words + 8, .elementSize = 4, .width = 1, .height = 1};
    CUgraphNode node, set;
    CUgraphExec exec;

    add_conditional(graph, NULL, outer, WHILE, 1, &bodies);
    ok(cuGraphAddMemsetNode(&node, bodies[0], NULL, 0, &zero, *state));
    set = add_set(bodies[0], node, handle, 1);
    node = add_conditional(bodies[0], set, handle, WHILE, 1, &inner);
    add_digit(inner[0], add_step(inner[0], NULL, words + 8, handle, 2), words, 1);
    add_digit(bodies[0], add_step(bodies[0], node, words + 4, outer, 3), words, 2);
    exec = executable(graph);
    assert_int_equal(result_of(exec), 112112112);
    destroy(exec, graph);
}

static void CUDA_CB note_word(void *user)
{
    uint32_t *seen = user; /* page-locked: what the node has copied, and what the function found there */

    seen[1] = seen[0];
}

/* Host functions and other work of the stream wait for the bodies, also in the legacy stream. */
static void later_work_waits(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    const CUgraphConditionalHandle handle = make_handle(graph, 1, ASSIGN);
    CUgraphNode node = add_conditional(graph, NULL, handle, WHILE, 1, &bodies), call;
    CUDA_HOST_NODE_PARAMS host = {.fn = note_word};
    CUDA_MEMCPY3D copy;
    CUgraphExec exec;
    uint32_t *seen;

    (void)state;
    ok(cuMemAllocHost((void **)&seen, 16));
    memset(seen, 0, 16);
    add_step(bodies[0], NULL, words, handle, 50);
    copy = copy_params(seen, 0, NULL, words, 4);
    node = add_copy(graph, &node, 1, &copy);
    host.userData = seen;
    ok(cuGraphAddHostNode(&call, graph, &node, 1, &host));
    exec = executable(graph);
    ok(cuMemsetD32(words, 0, WORDS));
    ok(cuGraphLaunch(exec, NULL));
    ok(cuMemcpyDtoHAsync(&seen[2], words, 4, NULL));
    ok(cuLaunchHostFunc(NULL, note_word, &seen[2]));
    ok(cuStreamSynchronize(NULL));
    for (int i = 0; i < 4; i++)
        assert_int_equal(seen[i], 50);
    destroy(exec, graph);
    ok(cuMemFreeHost(seen));
}

/* Launches of one executable graph follow each other; other graphs run beside it. */
static void launches_are_ordered(void **state)
{
    enum { GRAPHS = 2, LAUNCHES = 10 };
    CUgraphExec execs[GRAPHS];
    CUstream streams[GRAPHS];
    CUgraph graphs[GRAPHS], *bodies;

    (void)state;
    ok(cuMemsetD32(words, 0, WORDS));
    ok(cuCtxSynchronize());
    for (unsigned i = 0; i < GRAPHS; i++) {
        const CUgraphConditionalHandle handle = make_handle(graphs[i] = new_graph(), 1, ASSIGN);

        add_conditional(graphs[i], NULL, handle, WHILE, 1, &bodies);
        add_step(bodies[0], NULL, words + 4 * i, handle, 20); /* from the second launch on one step */
        execs[i] = executable(graphs[i]);
        ok(cuGraphUpload(execs[i], NULL));
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    for (unsigned i = 0; i < GRAPHS * LAUNCHES; i++)
        ok(cuGraphLaunch(execs[i % GRAPHS], streams[i / 2 % GRAPHS])); /* in changing streams */
    for (unsigned i = 0; i < GRAPHS; i++)
        ok(cuStreamSynchronize(streams[i]));
    for (unsigned i = 0; i < GRAPHS; i++) {
        assert_int_equal(word(i), 20 + LAUNCHES - 1);
        ok(cuStreamDestroy(streams[i]));
        destroy(execs[i], graphs[i]);
    }
}

/* Graphs may be destroyed while a launch runs, and cuMemFree waits for it, also for nodes in bodies that are executed later. */
static void destruction_does_not_end_a_launch(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    const CUgraphConditionalHandle handle = make_handle(graph, 1, ASSIGN);
    CUgraphExec exec;
    CUdeviceptr from;
    CUstream stream;
    CUgraphNode node;
    CUDA_MEMCPY3D copy;

    (void)state;
    ok(cuMemAlloc(&from, 4));
    ok(cuMemsetD32(from, 5, 1));
    ok(cuMemsetD32(words, 0, WORDS));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    add_conditional(graph, NULL, handle, WHILE, 1, &bodies);
    copy = copy_params(NULL, words, NULL, from, 4);
    node = add_copy(bodies[0], NULL, 0, &copy);
    add_step(bodies[0], node, words + 4, handle, 200);
    exec = executable(graph);
    ok(cuGraphLaunch(exec, stream));
    destroy(exec, graph);
    ok(cuMemFree(from));
    ok(cuStreamSynchronize(stream));
    assert_int_equal(word(0), 5);
    assert_int_equal(word(1), 200);
    ok(cuStreamDestroy(stream));
}

/* A context and its modules are destroyed when the bodies, which are enqueued one after the other, are complete. */
static void contexts_wait_for_bodies(void **state)
{
    const CUmodule before = conditional_module;
    const CUdeviceptr words_before = words;
    CUgraph graph, *bodies;
    CUcontext context;
    CUgraphConditionalHandle handle;
    CUdevice device;
    CUgraphExec exec;

    ok(cuCtxGetDevice(&device));
    for (int unload = 0; unload < 2; unload++) {
        ok(create_context(&context, device));
        load_conditional_kernels();
        ok(cuMemAlloc(&words, 4));
        ok(cuMemsetD32(words, 0, 1));
        graph = new_graph();
        handle = make_handle(graph, 1, ASSIGN);
        add_conditional(graph, NULL, handle, WHILE, 1, &bodies);
        add_step(bodies[0], NULL, words, handle, 100);
        exec = executable(graph);
        ok(cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
        destroy(exec, graph);
        if (unload) {
            ok(cuModuleUnload(conditional_module));
            ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
            assert_int_equal(word(0), 100);
        }
        ok(cuCtxDestroy(context));
    }
    ok(cuCtxSetCurrent(*state));
    words = words_before;
    conditional_module = before;
    load_functions();
}

/* ---- bodies ---- */

static void CUDA_CB no_function(void *user)
{
    (void)user;
}

/* Adds a node that bodies may not have. */
static CUgraphNode add_forbidden(CUgraph body, int kind)
{
    const CUDA_HOST_NODE_PARAMS call = {.fn = no_function};
    CUstreamBatchMemOpParams write = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = words}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {.count = 1, .paramArray = &write};
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.bytesize = 64};
    static CUevent event;
    CUgraphNode node;

    ok(cuCtxGetCurrent(&batch.ctx));
    if (!event)
        ok(cuEventCreate(&event, 0));
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    switch (kind) {
    case 0:
        ok(cuGraphAddHostNode(&node, body, NULL, 0, &call));
        break;
    case 1:
        ok(cuGraphAddEventRecordNode(&node, body, NULL, 0, event));
        break;
    case 2:
        ok(cuGraphAddEventWaitNode(&node, body, NULL, 0, event));
        break;
    case 3:
        ok(cuGraphAddBatchMemOpNode(&node, body, NULL, 0, &batch));
        break;
    default:
        ok(cuGraphAddMemAllocNode(&node, body, NULL, 0, &alloc));
        break;
    }
    return node;
}

static void some_nodes_are_not_for_bodies(void **state)
{
    (void)state;
    for (int in_child = 0; in_child < 2; in_child++)
        for (int kind = 0; kind < 5 - in_child; kind++) { /* memory of child graphs is another matter */
            CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = 0};
            CUgraph graph = new_graph(), child = new_graph(), *bodies;
            CUgraphNode node;
            CUgraphExec exec;

            add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), IF, 1, &bodies);
            add_forbidden(in_child ? child : bodies[0], kind);
            if (in_child)
                ok(cuGraphAddChildGraphNode(&node, bodies[0], NULL, 0, child));
            gives(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
            assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
            assert_non_null(params.hErrNode_out);
            ok(cuGraphDestroy(graph));
            ok(cuGraphDestroy(child));
        }
}

/* A copy of pageable memory, or a kernel of another context. */
static CUgraphNode add_foreign(CUgraph body, bool is_copy, CUcontext second)
{
    static uint32_t pageable;
    CUDA_MEMCPY3D copy = copy_params(NULL, words, &pageable, 0, 4);
    CUcontext first;
    CUgraphNode node;
    CUmodule module;
    CUfunction function;

    if (is_copy)
        return add_copy(body, NULL, 0, &copy);
    ok(cuCtxGetCurrent(&first));
    ok(cuCtxSetCurrent(second));
    ok(cuModuleLoadData(&module, PTX_HEADER PTX_NOTHING));
    ok(cuModuleGetFunction(&function, module, "nothing"));
    ok(cuCtxSetCurrent(first));
    node = add_one_thread(body, NULL, function, NULL);
    return node;
}

static void nodes_of_bodies_belong_to_one_context(void **state)
{
    CUcontext second;
    CUdevice device;

    ok(cuCtxGetDevice(&device));
    ok(create_context(&second, device));
    ok(cuCtxSetCurrent(*state));
    for (int is_copy = 0; is_copy < 2; is_copy++) {
        CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = 0};
        CUgraph graph = new_graph(), *bodies;
        CUgraphExec exec;
        CUgraphNode node;

        add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), IF, 1, &bodies);
        node = add_foreign(bodies[0], is_copy, second);
        gives(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, graph, &params));
        assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
        assert_ptr_equal(params.hErrNode_out, node);
        ok(cuGraphDestroy(graph));
    }
    ok(cuCtxDestroy(second));
}

static void bodies_copy_and_fill(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = words + 4, .value = 6, .elementSize = 4, .width = 1, .height = 1};
    CUDA_MEMCPY3D copy;
    CUgraphNode node;
    CUgraphExec exec;
    uint32_t *host;

    ok(cuMemAllocHost((void **)&host, 8));
    host[0] = 4;
    host[1] = 0;
    add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), IF, 1, &bodies);
    ok(cuGraphAddMemsetNode(&node, bodies[0], NULL, 0, &fill, *state));
    copy = copy_params(NULL, words, NULL, words + 4, 4);
    node = add_copy(bodies[0], &node, 1, &copy);
    copy = copy_params(NULL, words + 4, host, 0, 4);
    node = add_copy(bodies[0], &node, 1, &copy);
    node = add_empty(bodies[0], &node, 1);
    copy = copy_params(host + 1, 0, NULL, words, 4);
    node = add_copy(bodies[0], &node, 1, &copy);
    exec = executable(graph);
    assert_int_equal(result_of(exec), 6);
    assert_int_equal(word(1), 4);
    assert_int_equal(host[1], 6);
    destroy(exec, graph);
    ok(cuMemFreeHost(host));
}

static void an_empty_body_does_nothing(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    CUgraphExec exec;

    (void)state;
    add_digit(graph, add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), IF, 1, &bodies), words, 1);
    exec = executable(graph);
    assert_int_equal(result_of(exec), 1);
    destroy(exec, graph);
}

/* ---- updates ---- */

static void nodes_of_bodies_are_updated(void **state)
{
    CUgraph graph = new_graph(), *bodies;
    CUgraphNode node = add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), IF, 1, &bodies), inner;
    uint32_t digit = 5;
    void *list[] = {&words, &digit};
    const CUDA_KERNEL_NODE_PARAMS params = one_thread(digit_function, list);
    CUgraphExec exec;

    (void)state;
    inner = add_digit(bodies[0], NULL, words, 1);
    exec = executable(graph);
    ok(cuGraphExecKernelNodeSetParams(exec, inner, &params));
    assert_int_equal(result_of(exec), 5);
    ok(cuGraphNodeSetEnabled(exec, inner, 0));
    assert_int_equal(result_of(exec), 0);
    ok(cuGraphNodeSetEnabled(exec, inner, 1));
    assert_int_equal(result_of(exec), 5);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(exec, node, 0));
    destroy(exec, graph);
}

/* A graph with an IF node whose body appends a digit and sets the condition, which its else branch, if there is one, does not need. */
struct updatable {
    CUgraph graph, *bodies;
    CUgraphNode node, inner;
    CUgraphConditionalHandle handle;
};

static struct updatable make_updatable(CUgraphConditionalNodeType type, unsigned size, unsigned value, unsigned flags, uint32_t digit)
{
    struct updatable made = {.graph = new_graph()};

    made.handle = make_handle(made.graph, value, flags);
    made.node = add_conditional(made.graph, NULL, made.handle, type, size, &made.bodies);
    made.inner = add_digit(made.bodies[0], NULL, words, digit);
    add_set(made.bodies[0], made.inner, made.handle, 0);
    return made;
}

static void an_update_takes_over_bodies_and_defaults(void **state)
{
    static const struct {
        unsigned value, flags;
        uint32_t expected;
    } rows[] = {{1, ASSIGN, 2}, {0, ASSIGN, 0}, {1, 0, 0}};
    struct updatable first = make_updatable(IF, 1, 1, ASSIGN, 1);
    CUgraphExec exec = executable(first.graph);

    (void)state;
    assert_int_equal(result_of(exec), 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct updatable next = make_updatable(IF, 1, rows[i].value, rows[i].flags, 2);
        CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};

        ok(cuGraphExecUpdate(exec, next.graph, &info));
        assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
        ok(cuGraphDestroy(next.graph));
        assert_int_equal(result_of(exec), rows[i].expected);
        assert_int_equal(result_of(exec), rows[i].expected);
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate(exec, first.bodies[0], &(CUgraphExecUpdateResultInfo){0}));
    destroy(exec, first.graph);
}

static CUgraph loop_graph(CUdeviceptr counter, uint32_t limit, CUgraphConditionalHandle *handle, CUgraphNode *step)
{
    CUgraph graph = new_graph(), *bodies;

    *handle = make_handle(graph, 1, ASSIGN);
    add_conditional(graph, NULL, *handle, WHILE, 1, &bodies);
    *step = add_step(bodies[0], NULL, counter, *handle, limit);
    return graph;
}

/* After an update an executable graph has the conditions of the graph that updated it, which may have an executable graph of its own. Launches
 * of the two at the same time do not disturb each other. */
static void an_update_shares_no_values(void **state)
{
    CUgraphConditionalHandle handle, other;
    CUgraphExecUpdateResultInfo info;
    uint32_t limit = 300;
    CUdeviceptr counter = words + 4;
    void *list[] = {&counter, &other, &limit};
    const CUDA_KERNEL_NODE_PARAMS params = one_thread(step_function, list);
    CUstream streams[2];
    CUgraph first, second;
    CUgraphExec execs[2];
    CUgraphNode step, unused;

    (void)state;
    first = loop_graph(words, limit, &handle, &step);
    second = loop_graph(words, limit, &other, &unused);
    execs[0] = executable(first);
    ok(cuGraphExecUpdate(execs[0], second, &info));
    ok(cuGraphExecKernelNodeSetParams(execs[0], step, &params));
    execs[1] = executable(second);
    ok(cuMemsetD32(words, 0, WORDS));
    ok(cuCtxSynchronize());
    for (int i = 0; i < 2; i++) {
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        ok(cuGraphLaunch(execs[i], streams[i]));
    }
    for (int i = 0; i < 2; i++) {
        ok(cuStreamSynchronize(streams[i]));
        ok(cuStreamDestroy(streams[i]));
    }
    assert_int_equal(word(0), limit);
    assert_int_equal(word(1), limit);
    destroy(execs[0], first);
    destroy(execs[1], second);
}

static void refuse_update(CUgraphExec exec, const struct updatable *next, CUgraphExecUpdateResult result, CUgraphNode node)
{
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};

    gives(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, next->graph, &info));
    assert_int_equal(info.result, result);
    assert_ptr_equal(info.errorNode, node);
    assert_int_equal(result_of(exec), 1);
    ok(cuGraphDestroy(next->graph));
}

static void an_update_changes_no_conditional_node(void **state)
{
    struct updatable first = make_updatable(IF, 1, 1, ASSIGN, 1), next;
    CUgraphExec exec = executable(first.graph);

    (void)state;
    next = make_updatable(WHILE, 1, 1, ASSIGN, 2);
    refuse_update(exec, &next, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, next.node);
    next = make_updatable(SWITCH, 1, 1, ASSIGN, 2);
    refuse_update(exec, &next, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, next.node);
    next = make_updatable(IF, 2, 1, ASSIGN, 2);
    refuse_update(exec, &next, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, next.node);
    next = make_updatable(IF, 1, 1, ASSIGN, 2);
    add_digit(next.bodies[0], next.inner, words, 3);
    refuse_update(exec, &next, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL);
    destroy(exec, first.graph);
}

/* ---- capture ---- */

static void launch_digit(CUstream stream, uint32_t digit)
{
    void *list[] = {&words, &digit};

    ok(cuLaunchKernel(digit_function, 1, 1, 1, 1, 1, 1, 0, stream, list, NULL));
}

static void launch_step(CUstream stream, CUdeviceptr counter, CUgraphConditionalHandle handle, uint32_t limit)
{
    void *list[] = {&counter, &handle, &limit};

    ok(cuLaunchKernel(step_function, 1, 1, 1, 1, 1, 1, 0, stream, list, NULL));
}

/* As PyTorch does: while a stream is captured a conditional node is added, and its body is captured in another stream. */
static void bodies_are_captured(void **state)
{
    CUgraph graph, captured, *bodies;
    CUgraphConditionalHandle handle;
    CUstreamCaptureStatus status;
    const CUgraphNode *after;
    CUstream stream, inner;
    CUgraphNode node;
    CUgraphExec exec;
    cuuint64_t id;
    size_t count;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&inner, CU_STREAM_NON_BLOCKING));
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    launch_digit(stream, 7);
    ok(cuStreamGetCaptureInfo(stream, &status, &id, &graph, &after, NULL, &count));
    assert_int_equal(count, 1);
    handle = make_handle(graph, 1, ASSIGN);
    node = add_conditional(graph, after[0], handle, WHILE, 1, &bodies);
    ok(cuStreamUpdateCaptureDependencies(stream, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    ok(cuStreamBeginCaptureToGraph(inner, bodies[0], NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ok(cuStreamGetCaptureInfo(inner, &status, &id, &captured, NULL, NULL, NULL));
    assert_ptr_equal(captured, bodies[0]);
    launch_step(inner, words + 4, handle, 3);
    launch_digit(inner, 1);
    ok(cuStreamEndCapture(inner, &captured));
    assert_ptr_equal(captured, bodies[0]);
    launch_digit(stream, 9);
    ok(cuStreamEndCapture(stream, &captured));
    assert_ptr_equal(captured, graph);
    exec = executable(graph);
    assert_int_equal(result_of(exec), 71119);
    assert_int_equal(result_of(exec), 71119);
    destroy(exec, graph);
    ok(cuStreamDestroy(stream));
    ok(cuStreamDestroy(inner));
}

/* ---- output and failures ---- */

static void dot_shows_the_bodies(void **state)
{
    char path[] = "/tmp/conditional_test.XXXXXX", text[8192] = "";
    CUgraph graph = new_graph(), *bodies;
    const int descriptor = mkstemp(path);
    FILE *file;

    (void)state;
    assert_true(descriptor >= 0);
    add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), WHILE, 1, &bodies);
    add_digit(bodies[0], NULL, words, 1);
    ok(cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS));
    assert_non_null(file = fdopen(descriptor, "r"));
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    unlink(path);
    assert_non_null(strstr(text, "CONDITIONAL"));
    assert_non_null(strstr(text, "WHILE"));
    assert_non_null(strstr(strstr(text, "subgraph") + 1, "subgraph")); /* that of the body */
    ok(cuGraphDestroy(graph));
}

/* A context of its own fails, and nothing waits for ever. */
static void a_fault_in_a_body_ends_the_launch(void **state)
{
    const CUmodule before = conditional_module;
    CUcontext context;
    CUdevice device;
    CUgraph graph, *bodies;
    CUgraphExec exec;
    CUresult r;

    ok(cuCtxGetDevice(&device));
    ok(create_context(&context, device));
    load_conditional_kernels();
    graph = new_graph();
    add_conditional(graph, NULL, make_handle(graph, 1, ASSIGN), WHILE, 1, &bodies);
    add_one_thread(bodies[0], NULL, trap_function, NULL);
    exec = executable(graph);
    r = cuGraphLaunch(exec, CU_STREAM_PER_THREAD); /* which reports the error if the body has failed before the call returns */
    if (r == CUDA_SUCCESS)
        r = cuStreamSynchronize(CU_STREAM_PER_THREAD);
    assert_true(r == CUDA_ERROR_LAUNCH_FAILED || r == CUDA_ERROR_ILLEGAL_INSTRUCTION);
    (void)cuGraphExecDestroy(exec); /* which may report the error again */
    (void)cuGraphDestroy(graph);
    (void)cuCtxDestroy(context);
    ok(cuCtxSetCurrent(*state));
    conditional_module = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_are_validated),
        cmocka_unit_test(nodes_are_validated),
        cmocka_unit_test(a_node_owns_its_bodies),
        cmocka_unit_test(every_condition_needs_a_node),
        cmocka_unit_test(a_graph_with_conditions_is_not_copied),
        cmocka_unit_test(a_graph_has_one_executable_graph),
        cmocka_unit_test(the_value_chooses_a_body),
        cmocka_unit_test(a_kernel_sets_the_value),
        cmocka_unit_test(a_body_repeats_while_the_value_is_not_zero),
        cmocka_unit_test(without_a_flag_the_value_persists),
        cmocka_unit_test(defaults_are_assigned_once_a_launch),
        cmocka_unit_test(conditions_belong_to_the_whole_graph),
        cmocka_unit_test(bodies_nest),
        cmocka_unit_test(later_work_waits),
        cmocka_unit_test(launches_are_ordered),
        cmocka_unit_test(destruction_does_not_end_a_launch),
        cmocka_unit_test(contexts_wait_for_bodies),
        cmocka_unit_test(some_nodes_are_not_for_bodies),
        cmocka_unit_test(nodes_of_bodies_belong_to_one_context),
        cmocka_unit_test(bodies_copy_and_fill),
        cmocka_unit_test(an_empty_body_does_nothing),
        cmocka_unit_test(nodes_of_bodies_are_updated),
        cmocka_unit_test(an_update_takes_over_bodies_and_defaults),
        cmocka_unit_test(an_update_shares_no_values),
        cmocka_unit_test(an_update_changes_no_conditional_node),
        cmocka_unit_test(bodies_are_captured),
        cmocka_unit_test(dot_shows_the_bodies),
        cmocka_unit_test(a_fault_in_a_body_ends_the_launch),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
