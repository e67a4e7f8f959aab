/* SPDX-License-Identifier: Apache-2.0 */
/* The structure of graphs: nodes, edges, queries, clones, destruction (Driver API: Graph Management). */
#include "graphs_test.h"

#include "which_driver.h"

#include <unistd.h>

static size_t count_nodes(CUgraph graph)
{
    size_t count = 99;

    ok(cuGraphGetNodes(graph, NULL, &count));
    return count;
}

static size_t count_edges(CUgraph graph)
{
    size_t count = 99;

    ok(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    return count;
}

/* a before b and c, which are before d. */
struct diamond {
    CUgraph graph;
    CUgraphNode a, b, c, d;
};

static struct diamond make_diamond(void)
{
    struct diamond x;

    ok(cuGraphCreate(&x.graph, 0));
    x.a = add_empty(x.graph, NULL, 0);
    x.b = add_empty(x.graph, &x.a, 1);
    x.c = add_empty(x.graph, &x.a, 1);
    x.d = add_empty(x.graph, (CUgraphNode[]){x.b, x.c}, 2);
    return x;
}

static void a_diamond_has_four_edges(void **state)
{
    struct diamond x = make_diamond();
    CUgraphNode from[6], to[6], nodes[6];
    size_t count = 6;

    (void)state;
    assert_int_equal(count_nodes(x.graph), 4);
    assert_int_equal(count_edges(x.graph), 4);
    ok(cuGraphGetEdges(x.graph, from, to, NULL, &count));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true((from[i] == x.a && (to[i] == x.b || to[i] == x.c)) || ((from[i] == x.b || from[i] == x.c) && to[i] == x.d));
    assert_null(from[4]);
    assert_null(to[5]);
    count = 6;
    ok(cuGraphGetRootNodes(x.graph, nodes, &count));
    assert_int_equal(count, 1);
    assert_ptr_equal(nodes[0], x.a);
    assert_null(nodes[1]);
    ok(cuGraphDestroy(x.graph));
}

static void lists_of_a_node(void **state)
{
    struct diamond x = make_diamond();
    CUgraphNode nodes[4];
    size_t count = 0;

    (void)state;
    ok(cuGraphNodeGetDependencies(x.d, NULL, NULL, &count));
    assert_int_equal(count, 2);
    ok(cuGraphNodeGetDependencies(x.d, nodes, NULL, &count));
    assert_true((nodes[0] == x.b && nodes[1] == x.c) || (nodes[0] == x.c && nodes[1] == x.b));
    count = 1; /* less room than nodes */
    ok(cuGraphNodeGetDependentNodes(x.a, nodes, NULL, &count));
    assert_int_equal(count, 1);
    count = 0;
    ok(cuGraphNodeGetDependentNodes(x.d, NULL, NULL, &count));
    assert_int_equal(count, 0);
    ok(cuGraphDestroy(x.graph));
}

static void edges_are_added_and_removed(void **state)
{
    struct diamond x = make_diamond();

    (void)state;
    ok(cuGraphAddDependencies(x.graph, &x.a, &x.d, NULL, 1));
    assert_int_equal(count_edges(x.graph), 5);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(x.graph, &x.a, &x.d, NULL, 1));
    ok(cuGraphRemoveDependencies(x.graph, &x.a, &x.d, NULL, 1));
    assert_int_equal(count_edges(x.graph), 4);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(x.graph, &x.a, &x.d, NULL, 1));
    ok(cuGraphAddDependencies(x.graph, NULL, NULL, NULL, 0));
    assert_int_equal(count_edges(x.graph), 4);
    ok(cuGraphDestroy(x.graph));
}

static void a_destroyed_node_takes_its_edges_along(void **state)
{
    struct diamond x = make_diamond();

    (void)state;
    ok(cuGraphDestroyNode(x.b));
    assert_int_equal(count_nodes(x.graph), 3);
    assert_int_equal(count_edges(x.graph), 2);
    if (on_cuttle()) /* NVIDIA's driver reads the freed node */
        gives(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(x.b));
    ok(cuGraphDestroy(x.graph));
}

static void dependencies_must_be_nodes_of_the_graph(void **state)
{
    struct diamond x = make_diamond(), y = make_diamond();
    CUgraphNode node;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, x.graph, &y.a, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, x.graph, (CUgraphNode[]){x.a, x.a}, 2));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, x.graph, NULL, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(x.graph, &x.a, &y.d, NULL, 1));
    assert_int_equal(count_nodes(x.graph), 4);
    assert_int_equal(count_edges(x.graph), 4);
    ok(cuGraphDestroy(y.graph));
    ok(cuGraphDestroy(x.graph));
}

static void a_cycle_is_not_instantiated(void **state)
{
    struct diamond x = make_diamond();
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUgraphExec exec;

    (void)state;
    ok(cuGraphAddDependencies(x.graph, &x.d, &x.a, NULL, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, x.graph, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&exec, x.graph, &params));
    assert_int_equal(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    ok(cuGraphDestroy(x.graph));
}

static void null_and_destroyed_handles(void **state)
{
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph, copy;
    size_t count;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&graph, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, NULL, NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(NULL, NULL, &count));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphExecDestroy(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(NULL, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphClone(&copy, NULL));
    ok(cuGraphCreate(&graph, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(graph, NULL, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(NULL, graph, NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(NULL, graph, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 1u << 20));
    ok(cuGraphDestroy(graph));
    if (!on_cuttle()) /* NVIDIA's driver reads the freed graph */
        return;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(graph, NULL, &count));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, MADE_UP(CUgraph), NULL, 0));
}

static void a_clone_has_its_own_nodes(void **state)
{
    struct diamond x = make_diamond();
    CUgraphNode found, other;
    CUgraphNodeType type;
    CUgraph clone;

    (void)state;
    ok(cuGraphClone(&clone, x.graph));
    assert_int_equal(count_nodes(clone), 4);
    assert_int_equal(count_edges(clone), 4);
    ok(cuGraphNodeFindInClone(&found, x.d, clone));
    assert_ptr_not_equal(found, x.d);
    ok(cuGraphNodeGetType(found, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_EMPTY);
    other = add_empty(x.graph, NULL, 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&found, other, clone));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphNodeFindInClone(&found, x.a, x.graph));
    ok(cuGraphDestroy(x.graph));
    assert_int_equal(count_nodes(clone), 4);
    ok(cuGraphDestroy(clone));
}

static void a_child_graph_belongs_to_its_node(void **state)
{
    struct diamond x = make_diamond();
    CUgraphNode node, nodes[8];
    CUgraph graph, child;
    size_t count = 8;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddChildGraphNode(&node, graph, NULL, 0, x.graph));
    ok(cuGraphDestroy(x.graph));
    ok(cuGraphChildGraphNodeGetGraph(node, &child));
    assert_ptr_not_equal(child, x.graph);
    ok(cuGraphGetNodes(child, nodes, &count));
    assert_int_equal(count, 4);
    assert_int_equal(count_nodes(graph), 1);
    ok(cuGraphDestroy(graph));
}

static void parameters_are_copied_and_read_back(void **state)
{
    struct linear linear = {.data = 4096, .factor = 3, .term = 5};
    CUDA_KERNEL_NODE_PARAMS params = linear_params(&linear), got;
    CUDA_MEMSET_NODE_PARAMS set = {.value = 7, .elementSize = 4, .width = 4, .height = 1}, got_set;
    CUgraphNodeType type;
    CUcontext context;
    CUgraphNode node;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    linear.factor = 99;
    ok(cuGraphKernelNodeGetParams(node, &got));
    assert_ptr_equal(got.func, graphs_linear);
    assert_int_equal(got.gridDimX, params.gridDimX);
    assert_int_equal(got.blockDimX, 128);
    assert_int_equal(*(uint32_t *)got.kernelParams[1], 3);
    assert_int_equal(*(uint32_t *)got.kernelParams[2], 5);
    ok(cuGraphKernelNodeSetParams(node, &params));
    ok(cuGraphKernelNodeGetParams(node, &got));
    assert_int_equal(*(uint32_t *)got.kernelParams[1], 99);
    ok(cuGraphNodeGetType(node, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_KERNEL);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphMemsetNodeGetParams(node, &got_set));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetParams(node, NULL));
    ok(cuMemAlloc(&set.dst, 16));
    ok(cuCtxGetCurrent(&context));
    ok(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
    ok(cuGraphMemsetNodeGetParams(node, &got_set));
    assert_int_equal(got_set.dst, set.dst);
    assert_int_equal(got_set.value, 7);
    assert_int_equal(got_set.width, 4);
    ok(cuMemFree(set.dst));
    ok(cuGraphDestroy(graph));
}

static void kernels_that_cannot_run_are_refused(void **state)
{
    struct linear linear = {.data = 4096};
    CUDA_KERNEL_NODE_PARAMS params = linear_params(&linear);
    CUgraphNode node;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    params.blockDimX = 4096;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    params = linear_params(&linear);
    params.gridDimX = 0;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    params = linear_params(&linear);
    params.kernelParams = NULL;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&node, graph, NULL, 0, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddHostNode(&node, graph, NULL, 0, &(CUDA_HOST_NODE_PARAMS){0}));
    assert_int_equal(count_nodes(graph), 0);
    ok(cuGraphDestroy(graph));
}

static void kernel_nodes_have_attributes(void **state)
{
    CUkernelNodeAttrValue value = {.cooperative = 1}, got = {.cooperative = 9};
    CUgraphNode a, b, empty;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    a = add_linear(graph, NULL, 0, 4096, 1, 1);
    b = add_linear(graph, NULL, 0, 4096, 1, 1);
    empty = add_empty(graph, NULL, 0);
    ok(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
    assert_int_equal(got.cooperative, 0);
    ok(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    ok(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
    assert_int_equal(got.cooperative, 1);
    ok(cuGraphKernelNodeCopyAttributes(b, a));
    ok(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
    assert_int_equal(got.cooperative, 1);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(a, (CUkernelNodeAttrID)999, &value));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(empty, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, &got));
    if (on_cuttle()) /* NVIDIA's driver writes to the null pointer */
        gives(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, NULL));
    ok(cuGraphDestroy(graph));
}

static void nodes_need_their_objects(void **state)
{
    CUDA_KERNEL_NODE_PARAMS none = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    CUgraphNode node;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphAddKernelNode(&node, graph, NULL, 0, &none));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddEventRecordNode(&node, graph, NULL, 0, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddEventWaitNode(&node, graph, NULL, 0, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddChildGraphNode(&node, graph, NULL, 0, NULL));
    ok(cuGraphDestroy(graph));
}

static const char *printed(CUgraph graph, unsigned flags)
{
    static char text[16384];
    char path[] = "/tmp/cuttle_dot_XXXXXX";
    int fd = mkstemp(path);
    ssize_t size;

    assert_true(fd >= 0);
    ok(cuGraphDebugDotPrint(graph, path, flags));
    size = read(fd, text, sizeof text - 1);
    assert_true(size > 0);
    text[size] = 0;
    close(fd);
    unlink(path);
    return text;
}

static void a_graph_is_printed(void **state)
{
    struct diamond x = make_diamond();
    const char *text = printed(x.graph, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);

    (void)state;
    assert_non_null(strstr(text, "digraph"));
    assert_non_null(strstr(text, "EMPTY"));
    assert_non_null(strstr(text, "->"));
    add_linear(x.graph, NULL, 0, 4096, 1, 1);
    assert_non_null(strstr(printed(x.graph, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE), "linear"));
    assert_non_null(strstr(printed(x.graph, 0), "linear"));
    ok(cuGraphDestroy(x.graph));
}

/* ---- user objects ---- */

static int destroyed;

static void count_destruction(void *user)
{
    ++*(int *)user;
}

static void user_objects_live_as_long_as_graphs(void **state)
{
    CUuserObject object;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    destroyed = 0;
    gives(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, &destroyed, count_destruction, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    gives(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&object, &destroyed, count_destruction, 1, 0));
    ok(cuUserObjectCreate(&object, &destroyed, count_destruction, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ok(cuGraphCreate(&graph, 0));
    add_empty(graph, NULL, 0);
    ok(cuGraphRetainUserObject(graph, object, 1, 0));
    ok(cuUserObjectRelease(object, 1));
    assert_int_equal(destroyed, 0);
    ok(cuGraphInstantiate(&exec, graph, 0));
    ok(cuGraphDestroy(graph));
    assert_int_equal(destroyed, 0);
    launch_and_wait(exec);
    ok(cuGraphExecDestroy(exec));
    ok(cuCtxSynchronize());
    for (int i = 0; i < 1000 && !destroyed; i++)
        usleep(1000); /* NVIDIA's driver calls it later */
    assert_int_equal(destroyed, 1);
}

static void user_objects_are_moved(void **state)
{
    CUuserObject object;
    CUgraph graph;

    (void)state;
    destroyed = 0;
    ok(cuUserObjectCreate(&object, &destroyed, count_destruction, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ok(cuUserObjectRetain(object, 2));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphRetainUserObject(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE));
    ok(cuGraphReleaseUserObject(graph, object, 1));
    assert_int_equal(destroyed, 0);
    ok(cuUserObjectRelease(object, 1));
    assert_int_equal(destroyed, 0);
    ok(cuGraphDestroy(graph));
    for (int i = 0; i < 1000 && !destroyed; i++)
        usleep(1000);
    assert_int_equal(destroyed, 1);
}

static CUresult add_child(CUgraphNode *out, CUgraph graph, CUgraph child, int ownership)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

    params.graph.graph = child;
    params.graph.ownership = (CUgraphChildGraphNodeOwnership)ownership;
    return cuGraphAddNode(out, graph, NULL, NULL, 0, &params);
}

static void a_graph_is_moved_into_another(void **state)
{
    CUgraph parent, other, child, found, clone;
    CUgraphNode node, inner;
    CUgraphExec exec;
    size_t count;

    (void)state;
    ok(cuGraphCreate(&parent, 0));
    ok(cuGraphCreate(&other, 0));
    ok(cuGraphCreate(&child, 0));
    inner = add_empty(child, NULL, 0);
    if (on_cuttle()) /* NVIDIA's driver clones the graph */
        gives(CUDA_ERROR_INVALID_VALUE, add_child(&node, parent, child, 7));
    ok(add_child(&node, parent, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE));
    ok(cuGraphChildGraphNodeGetGraph(node, &found));
    assert_ptr_equal(found, child);
    add_empty(child, &inner, 1); /* it still gets nodes */
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(child));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&exec, child, 0));
    gives(CUDA_ERROR_NOT_SUPPORTED, add_child(&node, other, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE));
    gives(CUDA_ERROR_NOT_SUPPORTED, add_child(&node, other, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE));
    ok(cuGraphClone(&clone, child));
    ok(cuGraphDestroy(clone));
    ok(cuGraphClone(&clone, parent));
    ok(cuGraphDestroy(clone));
    ok(cuGraphInstantiate(&exec, parent, 0));
    launch_and_wait(exec);
    ok(cuGraphExecDestroy(exec));
    ok(add_child(&node, other, parent, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)); /* with its own child */
    ok(cuGraphDestroy(other));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(parent, NULL, &count));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(child, NULL, &count));
}

/* NVIDIA's driver accepts it, and does not survive it. */
static void a_graph_does_not_contain_itself(void **state)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    CUgraph outer, inner, wrong;
    CUgraphNode node, foreign;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuGraphCreate(&outer, 0));
    ok(cuGraphCreate(&inner, 0));
    ok(cuGraphCreate(&wrong, 0));
    foreign = add_empty(wrong, NULL, 0);
    gives(CUDA_ERROR_INVALID_VALUE, add_child(&node, outer, outer, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE));
    ok(add_child(&node, outer, inner, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE));
    gives(CUDA_ERROR_INVALID_VALUE, add_child(&node, inner, outer, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE));
    params.graph.graph = outer;
    params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, inner, &foreign, NULL, 1, &params)); /* after which it is not moved */
    ok(cuGraphDestroy(outer));
    ok(cuGraphDestroy(wrong));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_diamond_has_four_edges),
        cmocka_unit_test(lists_of_a_node),
        cmocka_unit_test(edges_are_added_and_removed),
        cmocka_unit_test(a_destroyed_node_takes_its_edges_along),
        cmocka_unit_test(dependencies_must_be_nodes_of_the_graph),
        cmocka_unit_test(a_cycle_is_not_instantiated),
        cmocka_unit_test(null_and_destroyed_handles),
        cmocka_unit_test(a_clone_has_its_own_nodes),
        cmocka_unit_test(a_child_graph_belongs_to_its_node),
        cmocka_unit_test(parameters_are_copied_and_read_back),
        cmocka_unit_test(kernels_that_cannot_run_are_refused),
        cmocka_unit_test(kernel_nodes_have_attributes),
        cmocka_unit_test(nodes_need_their_objects),
        cmocka_unit_test(a_graph_is_printed),
        cmocka_unit_test(user_objects_live_as_long_as_graphs),
        cmocka_unit_test(user_objects_are_moved),
        cmocka_unit_test(a_graph_is_moved_into_another),
        cmocka_unit_test(a_graph_does_not_contain_itself),
    };

    return cmocka_run_group_tests(tests, graphs_set_up, graphs_tear_down);
}
