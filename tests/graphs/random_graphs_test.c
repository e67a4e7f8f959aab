/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs against a model that executes their operations one after the other.
 *
 *   graphs_random_graphs_test [PROGRAMS]
 *
 * A program is a list of operations on buffers of the device and of the host. An operation depends on the earlier ones with which it shares a
 * buffer that one of them writes, and on some others. The graph is made of nodes that are added in another order than they are listed, or by
 * capturing the operations in several streams, and is launched twice. */
#include "conditional_kernels.h"

#include "splitmix.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { DEVICE_BUFFERS = 5, HOST_BUFFERS = 3, BUFFERS = DEVICE_BUFFERS + HOST_BUFFERS, MOST_OPERATIONS = 200, STREAMS = 4, LAUNCHES = 2 };

enum kind { LINEAR, FILL, COPY, ADD_ON_HOST, NOTHING, NESTED, TEMPORARY, CHOICE, LOOP, KINDS };
enum { CASES = 3, MOST_REPEATS = 3 };

struct operation {
    enum kind kind;
    unsigned to, from; /* buffers; those of the host follow those of the device */
    uint32_t factor, term;
    bool after[MOST_OPERATIONS]; /* the earlier operations on which it depends */
    CUgraphNode first, last;     /* its nodes; one, or a chain */
    /* CHOICE: which case a kernel chooses, of which only some do something; LOOP: how often the body is executed. Each body of a LOOP contains
     * a CHOICE. */
    unsigned cases, chosen, repeats;
};

static struct {
    struct operation list[MOST_OPERATIONS];
    unsigned count;
} program;

static CUdeviceptr device[DEVICE_BUFFERS], counters; /* of loops */
static uint32_t *host[HOST_BUFFERS];                 /* page-locked */
static uint32_t model[BUFFERS][COUNT];
static uint64_t random_state;

static unsigned below(unsigned limit)
{
    return (unsigned)(splitmix_next(&random_state) % limit);
}

static bool is_on_device(unsigned buffer)
{
    return buffer < DEVICE_BUFFERS;
}

/* ---- programs ---- */

static bool reads(const struct operation *operation, unsigned buffer)
{
    switch (operation->kind) {
    case COPY:
        return operation->from == buffer;
    case FILL:
    case NOTHING:
        return false;
    default:
        return operation->to == buffer;
    }
}

static bool writes(const struct operation *operation, unsigned buffer)
{
    return operation->kind != NOTHING && operation->to == buffer;
}

static bool conflict(const struct operation *a, const struct operation *b)
{
    for (unsigned i = 0; i < BUFFERS; i++)
        if ((writes(a, i) && (reads(b, i) || writes(b, i))) || (reads(a, i) && writes(b, i)))
            return true;
    return false;
}

static void make_operation(struct operation *out, unsigned index)
{
    *out = (struct operation){.kind = (enum kind)below(KINDS), .factor = below(1000), .term = below(100000)};
    out->cases = 1 + below(CASES);
    out->chosen = below(CASES + 1);
    out->repeats = out->kind == LOOP ? 1 + below(MOST_REPEATS) : 1;
    if (out->kind == ADD_ON_HOST)
        out->to = DEVICE_BUFFERS + below(HOST_BUFFERS);
    else
        out->to = below(DEVICE_BUFFERS);
    if (out->kind == COPY) {
        out->from = below(BUFFERS);
        if (below(4) == 0 && is_on_device(out->from))
            out->to = DEVICE_BUFFERS + below(HOST_BUFFERS);
        if (out->from == out->to)
            out->kind = NOTHING;
    }
    for (unsigned i = 0; i < index; i++)
        out->after[i] = conflict(out, &program.list[i]) || below(4 * index) == 0;
}

static void make_program(uint64_t seed)
{
    random_state = seed;
    program.count = 1 + below(MOST_OPERATIONS);
    for (unsigned i = 0; i < program.count; i++)
        make_operation(&program.list[i], i);
}

/* ---- the model ---- */

static uint32_t choose(const struct operation *operation, uint32_t value)
{
    for (unsigned i = 0; i < operation->repeats && operation->chosen < operation->cases; i++)
        value = value * (operation->factor + operation->chosen) + operation->term;
    return value;
}

static uint32_t apply(const struct operation *operation, uint32_t value, uint32_t source)
{
    switch (operation->kind) {
    case LINEAR:
    case TEMPORARY:
        return value * operation->factor + operation->term;
    case NESTED: /* twice */
        return (value * operation->factor + operation->term) * operation->factor + operation->term;
    case CHOICE:
    case LOOP:
        return choose(operation, value);
    case FILL:
        return operation->term;
    case COPY:
        return source;
    case ADD_ON_HOST:
        return value + operation->term;
    default:
        return value;
    }
}

static void run_model(void)
{
    for (unsigned i = 0; i < program.count; i++) {
        const struct operation *operation = &program.list[i];

        for (unsigned k = 0; k < COUNT; k++)
            model[operation->to][k] = apply(operation, model[operation->to][k], model[operation->from][k]);
    }
}

static void fill_buffers(void)
{
    for (unsigned i = 0; i < BUFFERS; i++)
        for (unsigned k = 0; k < COUNT; k++)
            model[i][k] = (uint32_t)splitmix_next(&random_state);
    for (unsigned i = 0; i < DEVICE_BUFFERS; i++)
        ok(cuMemcpyHtoD(device[i], model[i], BYTES));
    for (unsigned i = 0; i < HOST_BUFFERS; i++)
        memcpy(host[i], model[DEVICE_BUFFERS + i], BYTES);
    ok(cuCtxSynchronize());
}

static void compare_buffers(uint64_t seed)
{
    static uint32_t words[COUNT];

    for (unsigned i = 0; i < BUFFERS; i++) {
        const uint32_t *found = words;

        if (is_on_device(i))
            ok(cuMemcpyDtoH(words, device[i], BYTES));
        else
            found = host[i - DEVICE_BUFFERS];
        if (memcmp(found, model[i], BYTES))
            fail_msg("seed %llu: buffer %u differs", (unsigned long long)seed, i);
    }
}

/* ---- graphs of nodes ---- */

struct addition {
    uint32_t *words, term;
};
static struct addition additions[MOST_OPERATIONS];

static void CUDA_CB add_on_host(void *user)
{
    const struct addition *addition = user;

    for (unsigned k = 0; k < COUNT; k++)
        addition->words[k] += addition->term;
}

static struct addition *addition_of(const struct operation *operation)
{
    struct addition *addition = &additions[operation - program.list];

    *addition = (struct addition){host[operation->to - DEVICE_BUFFERS], operation->term};
    return addition;
}

static CUDA_MEMCPY3D copy_of(const struct operation *operation)
{
    const unsigned to = operation->to, from = operation->from;

    return copy_params(is_on_device(to) ? NULL : host[to - DEVICE_BUFFERS], is_on_device(to) ? device[to] : 0,
                       is_on_device(from) ? NULL : host[from - DEVICE_BUFFERS], is_on_device(from) ? device[from] : 0, BYTES);
}

static CUgraphNode add_nested(CUgraph graph, const struct operation *operation)
{
    CUgraphNode node, inner;
    CUgraph child;

    ok(cuGraphCreate(&child, 0));
    inner = add_linear(child, NULL, 0, device[operation->to], operation->factor, operation->term);
    add_linear(child, &inner, 1, device[operation->to], operation->factor, operation->term);
    ok(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    ok(cuGraphDestroy(child));
    return node;
}

/* The buffer is copied to memory of the graph, changed there, and copied back. */
static void add_temporary(CUgraph graph, struct operation *operation)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = BYTES};
    CUgraphNode node;
    CUDA_MEMCPY3D copy;

    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ok(cuCtxGetDevice(&params.poolProps.location.id));
    ok(cuGraphAddMemAllocNode(&operation->first, graph, NULL, 0, &params));
    copy = copy_params(NULL, params.dptr, NULL, device[operation->to], BYTES);
    node = add_copy(graph, &operation->first, 1, &copy);
    node = add_linear(graph, &node, 1, params.dptr, operation->factor, operation->term);
    copy = copy_params(NULL, device[operation->to], NULL, params.dptr, BYTES);
    operation->last = add_copy(graph, &node, 1, &copy);
    ok(cuGraphAddMemFreeNode(&node, graph, &operation->last, 1, params.dptr));
}

/* A kernel that sets the condition, and the node with the cases. The default must not matter. */
static CUgraphNode add_choice(CUgraph graph, CUgraphNode after, const struct operation *operation, CUgraphNode *out_last)
{
    const CUgraphConditionalHandle handle = make_handle(graph, operation->term, operation->term % 2);
    const CUgraphNode first = add_set(graph, after, handle, operation->chosen);
    CUgraph *bodies;

    *out_last = add_conditional(graph, first, handle, CU_GRAPH_COND_TYPE_SWITCH, operation->cases, &bodies);
    for (unsigned i = 0; i < operation->cases; i++)
        add_linear(bodies[i], NULL, 0, device[operation->to], operation->factor + i, operation->term);
    return first;
}

static CUdeviceptr counter_of(const struct operation *operation)
{
    return counters + (size_t)(operation - program.list) * sizeof(uint32_t);
}

static void add_loop_body(CUgraph body, CUgraphConditionalHandle handle, const struct operation *operation)
{
    CUgraphNode step = add_step(body, NULL, counter_of(operation), handle, operation->repeats);

    add_choice(body, step, operation, &step);
}

/* The counter is set to 0, and the body is repeated until it is the number of repetitions. */
static void add_loop(CUgraph graph, struct operation *operation)
{
    const CUDA_MEMSET_NODE_PARAMS zero = {.dst = counter_of(operation), .elementSize = 4, .width = 1, .height = 1};
    const CUgraphConditionalHandle handle = make_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
    CUcontext context;
    CUgraph *bodies;

    ok(cuCtxGetCurrent(&context));
    ok(cuGraphAddMemsetNode(&operation->first, graph, NULL, 0, &zero, context));
    operation->last = add_conditional(graph, operation->first, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &bodies);
    add_loop_body(bodies[0], handle, operation);
}

static CUgraphNode add_one(CUgraph graph, const struct operation *operation)
{
    const CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = device[operation->to % DEVICE_BUFFERS], .value = operation->term, .elementSize = 4, .width = COUNT, .height = 1};
    CUDA_HOST_NODE_PARAMS call = {.fn = add_on_host};
    CUDA_MEMCPY3D copy;
    CUcontext context;
    CUgraphNode node;

    ok(cuCtxGetCurrent(&context));
    switch (operation->kind) {
    case LINEAR:
        return add_linear(graph, NULL, 0, device[operation->to], operation->factor, operation->term);
    case FILL:
        ok(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
        return node;
    case COPY:
        copy = copy_of(operation);
        return add_copy(graph, NULL, 0, &copy);
    case ADD_ON_HOST:
        call.userData = addition_of(operation);
        ok(cuGraphAddHostNode(&node, graph, NULL, 0, &call));
        return node;
    case NESTED:
        return add_nested(graph, operation);
    default:
        return add_empty(graph, NULL, 0);
    }
}

static void add_operation(CUgraph graph, struct operation *operation)
{
    if (operation->kind == TEMPORARY)
        add_temporary(graph, operation);
    else if (operation->kind == CHOICE)
        operation->first = add_choice(graph, NULL, operation, &operation->last);
    else if (operation->kind == LOOP)
        add_loop(graph, operation);
    else
        operation->first = operation->last = add_one(graph, operation);
}

/* Nodes are added in a random order, and then the edges between them. */
static CUgraph graph_of_nodes(void)
{
    unsigned order[MOST_OPERATIONS];
    CUgraph graph;

    ok(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < program.count; i++) {
        const unsigned at = below(i + 1);

        order[i] = order[at];
        order[at] = i;
    }
    for (unsigned i = 0; i < program.count; i++)
        add_operation(graph, &program.list[order[i]]);
    for (unsigned i = 0; i < program.count; i++)
        for (unsigned k = 0; k < i; k++)
            if (program.list[i].after[k])
                ok(cuGraphAddDependencies(graph, &program.list[k].last, &program.list[i].first, NULL, 1));
    return graph;
}

/* ---- captured graphs ---- */

static void launch_linear(CUstream stream, CUdeviceptr data, uint32_t factor, uint32_t term)
{
    void *list[] = {&data, &factor, &term};

    ok(cuLaunchKernel(graphs_linear, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, stream, list, NULL));
}

static void capture_temporary(CUstream stream, const struct operation *operation)
{
    CUdeviceptr temporary;

    ok(cuMemAllocAsync(&temporary, BYTES, stream));
    ok(cuMemcpyDtoDAsync(temporary, device[operation->to], BYTES, stream));
    launch_linear(stream, temporary, operation->factor, operation->term);
    ok(cuMemcpyDtoDAsync(device[operation->to], temporary, BYTES, stream));
    ok(cuMemFreeAsync(temporary, stream));
}

/* Adds a conditional node to the captured graph, behind the stream's last nodes. */
static CUgraph *capture_conditional(CUstream stream, CUgraphConditionalHandle *out, CUgraphConditionalNodeType type, unsigned size,
                                    unsigned value)
{
    CUstreamCaptureStatus status;
    CUgraphNodeParams params;
    const CUgraphNode *after;
    const CUgraphEdgeData *data;
    CUgraphNode node;
    CUgraph graph;
    cuuint64_t id;
    size_t count;

    ok(cuStreamGetCaptureInfo(stream, &status, &id, &graph, &after, &data, &count));
    *out = make_handle(graph, value, CU_GRAPH_COND_ASSIGN_DEFAULT);
    params = conditional_params(*out, type, size);
    ok(cuGraphAddNode(&node, graph, after, data, count, &params));
    ok(cuStreamUpdateCaptureDependencies(stream, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    return params.conditional.phGraph_out;
}

/* The default value chooses; the bodies are captured in another stream. */
static void capture_choice(CUstream stream, const struct operation *operation)
{
    CUgraphConditionalHandle handle;
    CUgraph *bodies = capture_conditional(stream, &handle, CU_GRAPH_COND_TYPE_SWITCH, operation->cases, operation->chosen), same;
    CUstream inner;

    ok(cuStreamCreate(&inner, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < operation->cases; i++) {
        ok(cuStreamBeginCaptureToGraph(inner, bodies[i], NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        launch_linear(inner, device[operation->to], operation->factor + i, operation->term);
        ok(cuStreamEndCapture(inner, &same));
        assert_ptr_equal(same, bodies[i]);
    }
    ok(cuStreamDestroy(inner));
}

static void capture_loop(CUstream stream, const struct operation *operation)
{
    CUgraphConditionalHandle handle;
    CUgraph *bodies;

    ok(cuMemsetD32Async(counter_of(operation), 0, 1, stream));
    bodies = capture_conditional(stream, &handle, CU_GRAPH_COND_TYPE_WHILE, 1, 1);
    add_loop_body(bodies[0], handle, operation);
}

static void capture_operation(CUstream stream, const struct operation *operation)
{
    CUDA_MEMCPY3D copy;

    switch (operation->kind) {
    case NESTED:
        launch_linear(stream, device[operation->to], operation->factor, operation->term);
        launch_linear(stream, device[operation->to], operation->factor, operation->term);
        break;
    case LINEAR:
        launch_linear(stream, device[operation->to], operation->factor, operation->term);
        break;
    case FILL:
        ok(cuMemsetD32Async(device[operation->to], operation->term, COUNT, stream));
        break;
    case COPY:
        copy = copy_of(operation);
        ok(cuMemcpy3DAsync(&copy, stream));
        break;
    case ADD_ON_HOST:
        ok(cuLaunchHostFunc(stream, add_on_host, addition_of(operation)));
        break;
    case TEMPORARY:
        capture_temporary(stream, operation);
        break;
    case CHOICE:
        capture_choice(stream, operation);
        break;
    case LOOP:
        capture_loop(stream, operation);
        break;
    default:
        break;
    }
}

/* The first stream is the origin, which the others follow and which follows them at the end. */
static CUgraph captured_graph(void)
{
    CUevent events[MOST_OPERATIONS], joined;
    CUstream streams[STREAMS];
    CUgraph graph;

    for (unsigned i = 0; i < program.count; i++)
        ok(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
    ok(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < STREAMS; i++)
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    ok(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ok(cuEventRecord(joined, streams[0]));
    for (unsigned i = 1; i < STREAMS; i++)
        ok(cuStreamWaitEvent(streams[i], joined, 0));
    for (unsigned i = 0; i < program.count; i++) {
        const CUstream stream = streams[below(STREAMS)];

        for (unsigned k = 0; k < i; k++)
            if (program.list[i].after[k])
                ok(cuStreamWaitEvent(stream, events[k], 0));
        capture_operation(stream, &program.list[i]);
        ok(cuEventRecord(events[i], stream));
    }
    for (unsigned i = 1; i < STREAMS; i++) {
        ok(cuEventRecord(joined, streams[i]));
        ok(cuStreamWaitEvent(streams[0], joined, 0));
    }
    ok(cuStreamEndCapture(streams[0], &graph));
    for (unsigned i = 0; i < STREAMS; i++)
        ok(cuStreamDestroy(streams[i]));
    for (unsigned i = 0; i < program.count; i++)
        ok(cuEventDestroy(events[i]));
    ok(cuEventDestroy(joined));
    return graph;
}

/* ---- the test ---- */

static unsigned programs = 12;

static void run_program(uint64_t seed)
{
    CUgraphExec exec;
    CUgraph graph;

    make_program(seed);
    fill_buffers();
    graph = seed & 1 ? captured_graph() : graph_of_nodes();
    ok(cuGraphInstantiate(&exec, graph, 0));
    ok(cuGraphDestroy(graph));
    for (int i = 0; i < LAUNCHES; i++) {
        run_model();
        launch_and_wait(exec);
        compare_buffers(seed);
    }
    ok(cuGraphExecDestroy(exec));
}

static void random_graphs_do_what_the_model_does(void **state)
{
    const char *given = getenv("CUTTLE_TEST_SEED");
    const uint64_t first = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

    (void)state;
    for (unsigned i = 0; i < DEVICE_BUFFERS; i++)
        ok(cuMemAlloc(&device[i], BYTES));
    for (unsigned i = 0; i < HOST_BUFFERS; i++)
        ok(cuMemHostAlloc((void **)&host[i], BYTES, 0));
    ok(cuMemAlloc(&counters, MOST_OPERATIONS * sizeof(uint32_t)));
    load_conditional_kernels();
    print_message("%u programs from seed %llu\n", programs, (unsigned long long)first);
    for (unsigned i = 0; i < programs; i++)
        run_program(first + i);
    for (unsigned i = 0; i < DEVICE_BUFFERS; i++)
        ok(cuMemFree(device[i]));
    for (unsigned i = 0; i < HOST_BUFFERS; i++)
        ok(cuMemFreeHost(host[i]));
    ok(cuMemFree(counters));
    ok(cuModuleUnload(conditional_module));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_do_what_the_model_does),
    };

    if (argc > 1)
        programs = (unsigned)strtoul(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, graphs_set_up, graphs_tear_down);
}
