/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that allocate and free memory, and allocations in captured streams (Driver API: Graph Management; CUDA C++ Programming Guide, "Graph
 * Memory Nodes"). */
#include "graphs_test.h"

static CUstream stream;

static int set_up_stream(void **state)
{
    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return 0;
}

static int tear_down_stream(void **state)
{
    (void)state;
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    return 0;
}

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(size_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = bytes};

    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ok(cuCtxGetDevice(&params.poolProps.location.id));
    return params;
}

/* Behind the node `after`, which may be NULL, as the following functions. */
static CUgraphNode add_alloc(CUgraph graph, CUgraphNode after, size_t bytes, CUdeviceptr *out)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(bytes);
    CUgraphNode node;

    ok(cuGraphAddMemAllocNode(&node, graph, &after, after ? 1 : 0, &params));
    assert_int_not_equal(params.dptr, 0);
    *out = params.dptr;
    return node;
}

static CUgraphNode add_free(CUgraph graph, CUgraphNode after, CUdeviceptr address)
{
    CUgraphNode node;

    ok(cuGraphAddMemFreeNode(&node, graph, &after, after ? 1 : 0, address));
    return node;
}

static CUgraphNode add_fill(CUgraph graph, CUgraphNode after, CUdeviceptr address, uint32_t value)
{
    const CUDA_MEMSET_NODE_PARAMS params = {.dst = address, .value = value, .elementSize = 4, .width = COUNT, .height = 1};
    CUcontext context;
    CUgraphNode node;

    ok(cuCtxGetCurrent(&context));
    ok(cuGraphAddMemsetNode(&node, graph, &after, after ? 1 : 0, &params, context));
    return node;
}

static CUgraph new_graph(void)
{
    CUgraph graph;

    ok(cuGraphCreate(&graph, 0));
    return graph;
}

static CUgraphExec instantiate_with(CUgraph graph, unsigned long long flags)
{
    CUgraphExec exec;

    ok(cuGraphInstantiate(&exec, graph, flags));
    return exec;
}

static void launch(CUgraphExec exec)
{
    ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
}

static void destroy(CUgraph graph, CUgraphExec exec)
{
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}

/* ---- within a graph ---- */

/* A kernel computes in memory that exists only while the graph runs: (3 * 7 + 1). */
static void a_graph_has_temporary_memory(void **state)
{
    CUdeviceptr temporary, result;
    CUgraph graph = new_graph();
    CUDA_MEMCPY3D copy;
    CUgraphExec exec;
    CUgraphNode node;
    unsigned type;

    (void)state;
    ok(cuMemAlloc(&result, BYTES));
    node = add_alloc(graph, NULL, BYTES, &temporary);
    node = add_fill(graph, node, temporary, 3);
    node = add_linear(graph, &node, 1, temporary, 7, 1);
    copy = copy_params(NULL, result, NULL, temporary, BYTES);
    node = add_copy(graph, &node, 1, &copy);
    add_free(graph, node, temporary);
    exec = instantiate_with(graph, 0);
    for (int round = 0; round < 3; round++) {
        ok(cuMemsetD32(result, 0, COUNT));
        ok(cuCtxSynchronize());
        gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, temporary));
        launch(exec);
        all_are(result, 22);
    }
    destroy(graph, exec);
    ok(cuMemFree(result));
}

static void memory_is_reused_behind_its_free(void **state)
{
    CUdeviceptr first, second, parallel, other;
    CUgraph graph = new_graph(), another = new_graph();
    CUgraphNode node;

    (void)state;
    node = add_alloc(graph, NULL, 1 << 20, &first);
    node = add_free(graph, node, first);
    node = add_alloc(graph, node, 1 << 20, &second);
    add_free(graph, node, second);
    assert_int_equal(second, first);
    add_alloc(graph, NULL, 1 << 20, &parallel); /* depends on no free */
    assert_int_not_equal(parallel, first);
    add_alloc(another, NULL, 1 << 20, &other);
    assert_int_not_equal(other, first);
    assert_int_not_equal(other, parallel);
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(another));
}

static void parameters_are_read_back(void **state)
{
    CUdeviceptr address, freed;
    CUgraph graph = new_graph();
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUgraphNode allocates, frees;

    (void)state;
    allocates = add_alloc(graph, NULL, 4096, &address);
    frees = add_free(graph, allocates, address);
    ok(cuGraphMemAllocNodeGetParams(allocates, &params));
    assert_int_equal(params.bytesize, 4096);
    assert_int_equal(params.dptr, address);
    assert_int_equal(params.poolProps.allocType, CU_MEM_ALLOCATION_TYPE_PINNED);
    ok(cuGraphMemFreeNodeGetParams(frees, &freed));
    assert_int_equal(freed, address);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphMemAllocNodeGetParams(frees, &params));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphMemFreeNodeGetParams(allocates, &freed));
    ok(cuGraphDestroy(graph));
}

/* ---- memory that outlives a launch ---- */

static void memory_outlives_the_launch(void **state)
{
    CUdeviceptr address;
    CUgraph graph = new_graph();
    CUgraphExec exec;
    CUgraphNode node;
    size_t bytes;

    (void)state;
    node = add_alloc(graph, NULL, BYTES, &address);
    add_fill(graph, node, address, 5);
    exec = instantiate_with(graph, 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(address)); /* not allocated yet */
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(address, 0, 1));
    launch(exec);
    all_are(address, 5);
    ok(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address));
    assert_int_equal(bytes, BYTES);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream)); /* allocated already */
    ok(cuMemFree(address));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(address));
    launch(exec);
    ok(cuMemFreeAsync(address, stream));
    launch(exec);
    destroy(graph, exec); /* the memory stays */
    all_are(address, 5);
    ok(cuMemFree(address));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(address, 0, 1));
}

static void memory_is_freed_at_the_launch(void **state)
{
    CUdeviceptr address;
    CUgraph graph = new_graph();
    CUgraphExec exec;
    CUgraphNode node;

    (void)state;
    node = add_alloc(graph, NULL, BYTES, &address);
    add_fill(graph, node, address, 5);
    exec = instantiate_with(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int i = 0; i < 3; i++)
        launch(exec);
    all_are(address, 5);
    ok(cuMemFree(address));
    launch(exec);
    destroy(graph, exec);
    ok(cuMemFree(address));
}

static void another_graph_frees_the_memory(void **state)
{
    CUdeviceptr address, result;
    CUgraph allocates = new_graph(), frees = new_graph();
    CUgraphExec first, second;
    CUDA_MEMCPY3D copy;
    CUgraphNode node;

    (void)state;
    ok(cuMemAlloc(&result, BYTES));
    node = add_alloc(allocates, NULL, BYTES, &address);
    add_fill(allocates, node, address, 9);
    copy = copy_params(NULL, result, NULL, address, BYTES);
    node = add_copy(frees, NULL, 0, &copy);
    add_free(frees, node, address);
    first = instantiate_with(allocates, 0);
    second = instantiate_with(frees, 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(second, stream));
    for (int i = 0; i < 2; i++) {
        ok(cuGraphLaunch(first, stream));
        ok(cuGraphLaunch(second, stream));
        gives(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(second, stream));
    }
    ok(cuStreamSynchronize(stream));
    all_are(result, 9);
    destroy(allocates, first);
    destroy(frees, second);
    ok(cuMemFree(result));
}

/* A graph in one stream allocates what another stream freed: it follows that stream. */
static void launches_follow_the_free(void **state)
{
    CUdeviceptr address;
    CUgraph graph = new_graph();
    CUgraphExec exec;
    CUgraphNode node;
    CUstream other;

    (void)state;
    ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    node = add_alloc(graph, NULL, BYTES, &address);
    add_fill(graph, node, address, 1);
    exec = instantiate_with(graph, 0);
    launch(exec);
    for (int i = 0; i < 20; i++) {
        CUdeviceptr data = address;
        uint32_t factor = 2, term = 0;
        void *list[] = {&data, &factor, &term};

        for (int k = 0; k < 10; k++)
            ok(cuLaunchKernel(graphs_linear, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, other, list, NULL));
        ok(cuMemFreeAsync(address, other));
        launch(exec);
        all_are(address, 1);
    }
    ok(cuMemFree(address));
    ok(cuStreamDestroy(other));
    destroy(graph, exec);
}

/* ---- errors ---- */

static void wrong_allocations_are_refused(void **state)
{
    CUgraph graph = new_graph();
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUgraphNode node;

    (void)state;
    params = alloc_params(0);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    params = alloc_params(16);
    params.poolProps.location.id = 99;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    params = alloc_params(16);
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    params = alloc_params(16);
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_HOST;
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    params = alloc_params(16);
    params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    params = alloc_params((size_t)1 << 50);
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&node, graph, NULL, 0, NULL));
    ok(cuGraphDestroy(graph));
}

static void wrong_frees_are_refused(void **state)
{
    CUgraph graph = new_graph(), other = new_graph();
    CUdeviceptr address, ordinary, pooled;
    CUgraphNode allocates, node;

    (void)state;
    ok(cuMemAlloc(&ordinary, 64));
    ok(cuMemAllocAsync(&pooled, 64, stream));
    allocates = add_alloc(graph, NULL, 4096, &address);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, 12345));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, ordinary));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, pooled));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, address + 256));
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, other, &allocates, 1, address)); /* not a node of that graph */
    add_free(graph, allocates, address);
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, address)); /* twice */
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, other, NULL, 0, address));
    ok(cuMemFree(ordinary));
    ok(cuMemFreeAsync(pooled, stream));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(other));
}

static void graphs_with_memory_are_restricted(void **state)
{
    CUgraph graph = new_graph(), other = new_graph(), clone;
    CUgraphNode allocates, frees, empty, node;
    CUdeviceptr address;
    CUgraphExec exec, second;

    (void)state;
    allocates = add_alloc(graph, NULL, 4096, &address);
    frees = add_free(graph, allocates, address);
    empty = add_empty(graph, &allocates, 1);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(allocates));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(frees));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphRemoveDependencies(graph, &allocates, &empty, NULL, 1));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph));
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&node, other, NULL, 0, graph));
    exec = instantiate_with(graph, 0);
    gives(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&second, graph, 0));
    ok(cuGraphExecDestroy(exec));
    exec = instantiate_with(graph, 0);
    launch(exec);
    destroy(graph, exec);
    ok(cuGraphDestroy(other));
}

/* ---- the memory of a device's graphs ---- */

static cuuint64_t attribute(CUgraphMem_attribute which)
{
    cuuint64_t value;
    CUdevice device;

    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetGraphMemAttribute(device, which, &value));
    return value;
}

static void memory_is_counted_and_trimmed(void **state)
{
    CUgraph graph = new_graph();
    cuuint64_t zero = 0, one = 1;
    CUdeviceptr address;
    CUgraphExec exec;
    CUdevice device;

    (void)state;
    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGraphMemTrim(device));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    add_alloc(graph, NULL, 1 << 20, &address);
    exec = instantiate_with(graph, 0);
    launch(exec);
    assert_true(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= 1 << 20);
    assert_true(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT));
    assert_true(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= 1 << 20);
    ok(cuDeviceGraphMemTrim(device)); /* keeps what is in use */
    ok(cuMemsetD32(address, 1, 1));
    ok(cuMemFree(address));
    destroy(graph, exec);
    ok(cuDeviceGraphMemTrim(device));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_true(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) >= 1 << 20);
    ok(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
    ok(cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 0);
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceSetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)9, &zero));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, NULL));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGraphMemTrim(99));
}

/* ---- memory that graphs share ---- */

enum { SHARERS = 6, SHARED_BYTES = 32 << 20 };

/* A graph that computes in temporary memory, step by step: result = value * 3^steps. */
struct sharer {
    CUgraphExec exec;
    CUdeviceptr temporary, result;
    uint32_t expected;
};

static struct sharer new_sharer(size_t bytes, uint32_t value, unsigned steps)
{
    struct sharer sharer = {.expected = value};
    CUgraph graph = new_graph();
    CUDA_MEMCPY3D copy;
    CUgraphNode node;

    ok(cuMemAlloc(&sharer.result, BYTES));
    node = add_alloc(graph, NULL, bytes, &sharer.temporary);
    node = add_fill(graph, node, sharer.temporary, value);
    for (unsigned i = 0; i < steps; i++) {
        node = add_linear(graph, &node, 1, sharer.temporary, 3, 0);
        sharer.expected *= 3;
    }
    copy = copy_params(NULL, sharer.result, NULL, sharer.temporary, BYTES);
    node = add_copy(graph, &node, 1, &copy);
    add_free(graph, node, sharer.temporary);
    sharer.exec = instantiate_with(graph, 0);
    ok(cuGraphDestroy(graph));
    return sharer;
}

static void check_sharer(const struct sharer *sharer)
{
    all_are(sharer->result, sharer->expected);
    ok(cuMemsetD32(sharer->result, 0, COUNT));
    ok(cuCtxSynchronize());
}

static void destroy_sharer(const struct sharer *sharer)
{
    ok(cuGraphExecDestroy(sharer->exec));
    ok(cuMemFree(sharer->result));
}

static int device_maps_memory(void)
{
    CUdevice device;
    int maps;

    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
    return maps;
}

/* Graphs whose launches follow each other have the physical memory of one. */
static void graphs_share_memory_in_turn(void **state)
{
    struct sharer sharers[SHARERS];
    CUdevice device;

    (void)state;
    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGraphMemTrim(device));
    for (unsigned i = 0; i < SHARERS; i++)
        sharers[i] = new_sharer(SHARED_BYTES, 1 + i, 5 * i);
    for (unsigned i = 0; i < 3 * SHARERS; i++)
        ok(cuGraphLaunch(sharers[i % SHARERS].exec, stream));
    ok(cuStreamSynchronize(stream));
    if (device_maps_memory())
        assert_true(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) < 3 * SHARED_BYTES);
    for (unsigned i = 0; i < SHARERS; i++) {
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(sharers[i].temporary, sharers[k].temporary);
        check_sharer(&sharers[i]);
    }
    ok(cuDeviceGraphMemTrim(device));
    if (device_maps_memory())
        assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
    launch(sharers[1].exec);
    check_sharer(&sharers[1]);
    for (unsigned i = 0; i < SHARERS; i++)
        destroy_sharer(&sharers[i]);
    ok(cuDeviceGraphMemTrim(device));
    assert_int_equal(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
}

/* Memory that is still allocated belongs to one graph. */
static void allocated_memory_is_not_shared(void **state)
{
    struct sharer sharer = new_sharer(SHARED_BYTES, 7, 1);
    CUgraph graph = new_graph();
    CUdeviceptr kept;
    CUgraphExec exec;
    CUgraphNode node;

    (void)state;
    node = add_alloc(graph, NULL, SHARED_BYTES, &kept);
    add_fill(graph, node, kept, 5);
    exec = instantiate_with(graph, 0);
    launch(sharer.exec);
    launch(exec);
    launch(sharer.exec);
    check_sharer(&sharer);
    all_are(kept, 5);
    ok(cuMemFree(kept));
    launch(sharer.exec);
    check_sharer(&sharer);
    launch(exec);
    destroy(graph, exec);
    launch(sharer.exec);
    all_are(kept, 5);
    ok(cuMemFree(kept));
    check_sharer(&sharer);
    destroy_sharer(&sharer);
}

/* Launches of several sizes in several streams, which may run at the same time. */
static void graphs_of_several_streams_share_memory(void **state)
{
    enum { STREAMS = 3, LAUNCHES = 120 };
    struct sharer sharers[SHARERS];
    CUstream streams[STREAMS];
    uint32_t random = 1;

    (void)state;
    for (unsigned i = 0; i < STREAMS; i++)
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < SHARERS; i++)
        sharers[i] = new_sharer((size_t)SHARED_BYTES >> i % 3, 11 + i, 10);
    for (unsigned i = 0; i < LAUNCHES; i++) {
        random = random * 1664525 + 1013904223;
        ok(cuGraphLaunch(sharers[i % SHARERS].exec, streams[(random >> 24) % STREAMS]));
        if (i % 40 < 39)
            continue;
        ok(cuCtxSynchronize());
        for (unsigned k = 0; k < SHARERS; k++)
            check_sharer(&sharers[k]);
    }
    ok(cuStreamDestroy(streams[0])); /* with the last launches of some graphs */
    for (unsigned k = 0; k < SHARERS; k++)
        launch(sharers[k].exec);
    for (unsigned k = 0; k < SHARERS; k++)
        check_sharer(&sharers[k]);
    for (unsigned i = 0; i < SHARERS; i++)
        destroy_sharer(&sharers[i]);
    for (unsigned i = 1; i < STREAMS; i++)
        ok(cuStreamDestroy(streams[i]));
}

/* ---- captured streams ---- */

static void captured_streams_allocate(void **state)
{
    CUdeviceptr temporary, kept, nothing = 1;
    uint32_t factor = 4, term = 2;
    void *list[] = {&temporary, &factor, &term};
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(cuMemAllocAsync(&temporary, BYTES, stream));
    ok(cuMemAllocAsync(&kept, BYTES, stream));
    ok(cuMemAllocAsync(&nothing, 0, stream));
    assert_int_equal(nothing, 0);
    ok(cuMemsetD32Async(temporary, 10, COUNT, stream));
    ok(cuLaunchKernel(graphs_linear, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, stream, list, NULL));
    ok(cuMemcpyDtoDAsync(kept, temporary, BYTES, stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(temporary + 256, stream));
    ok(cuMemFreeAsync(temporary, stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(temporary, stream));
    ok(cuMemFreeAsync(0, stream));
    ok(cuStreamEndCapture(stream, &graph));
    exec = instantiate_with(graph, 0);
    for (int i = 0; i < 2; i++) {
        launch(exec);
        all_are(kept, 42);
        ok(cuMemFreeAsync(kept, stream));
    }
    destroy(graph, exec);
}

static void captured_streams_free_only_memory_of_graphs(void **state)
{
    CUdeviceptr ordinary, pooled;
    CUgraph graph;
    size_t count;

    (void)state;
    ok(cuMemAlloc(&ordinary, 64));
    ok(cuMemAllocAsync(&pooled, 64, stream));
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(ordinary, stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(pooled, stream));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 0);
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(ordinary));
    ok(cuMemFreeAsync(pooled, stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_stream, tear_down_stream)
        TEST(memory_is_counted_and_trimmed), /* first: no graph has memory */
        TEST(a_graph_has_temporary_memory),      TEST(memory_is_reused_behind_its_free), TEST(parameters_are_read_back),
        TEST(memory_outlives_the_launch),        TEST(memory_is_freed_at_the_launch),    TEST(another_graph_frees_the_memory),
        TEST(graphs_share_memory_in_turn),       TEST(allocated_memory_is_not_shared),   TEST(graphs_of_several_streams_share_memory),
        TEST(launches_follow_the_free),          TEST(wrong_allocations_are_refused),    TEST(wrong_frees_are_refused),
        TEST(graphs_with_memory_are_restricted), TEST(captured_streams_allocate),        TEST(captured_streams_free_only_memory_of_graphs),
    };

    return cmocka_run_group_tests(tests, graphs_set_up, graphs_tear_down);
}
