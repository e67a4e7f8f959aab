/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of graphs whose nodes are recorded and replayed: many nodes, branches, changes between launches, memory that is replaced. */
#include "graphs_test.h"

#include "which_driver.h"

#include <stdlib.h>

#define NODES 200u  /* more than a recording has */
#define ROOM 20000u /* bytes */

static CUgraph chain(CUdeviceptr data, uint32_t term, CUgraphNode nodes[NODES])
{
    CUgraph graph;

    ok(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < NODES; i++)
        nodes[i] = add_linear(graph, i ? &nodes[i - 1] : NULL, i ? 1 : 0, data, 3, term + i);
    return graph;
}

static uint32_t after_chain(uint32_t value, uint32_t term)
{
    for (unsigned i = 0; i < NODES; i++)
        value = value * 3 + term + i;
    return value;
}

/* Four chains that meet in one node, which adds the results by copies of the values before it. */
static void branches_meet(void **state)
{
    CUgraphNode last[4], sum;
    CUdeviceptr data[4], result = allocate(1);
    uint32_t expected = 1;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuGraphCreate(&graph, 0));
    for (unsigned branch = 0; branch < 4; branch++) {
        data[branch] = allocate(branch);
        for (unsigned i = 0; i < NODES; i++)
            last[branch] = add_linear(graph, i ? &last[branch] : NULL, i ? 1 : 0, data[branch], 3, i);
    }
    sum = add_linear(graph, last, 4, result, 5, 0);
    for (unsigned branch = 0; branch < 4; branch++) /* the same memory, so they must follow each other */
        sum = add_linear(graph, &sum, 1, data[branch], 1, branch + 1);
    exec = instantiate(graph);
    for (unsigned round = 0; round < 3; round++) {
        launch_and_wait(exec);
        expected *= 5;
        all_are(result, expected);
    }
    for (unsigned branch = 0; branch < 4; branch++) {
        uint32_t value = branch;

        for (unsigned round = 0; round < 3; round++)
            value = after_chain(value, 0) + branch + 1;
        all_are(data[branch], value);
        ok(cuMemFree(data[branch]));
    }
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(result));
}

static void nodes_change_between_launches(void **state)
{
    struct linear other = {.factor = 7, .term = 9};
    CUdeviceptr data = allocate(1);
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS params;
    CUgraphNode nodes[NODES], more[NODES];
    uint32_t expected = 1;
    CUgraph graph = chain(data, 1, nodes), second = chain(data, 4, more);
    CUgraphExec exec = instantiate(graph);

    (void)state;
    ok(cuGraphUpload(exec, NULL));
    launch_and_wait(exec);
    all_are(data, expected = after_chain(expected, 1));
    other.data = data;
    params = linear_params(&other);
    ok(cuGraphExecKernelNodeSetParams(exec, nodes[NODES - 1], &params));
    launch_and_wait(exec);
    for (unsigned i = 0; i + 1 < NODES; i++)
        expected = expected * 3 + 1 + i;
    all_are(data, expected = expected * 7 + 9);
    ok(cuGraphExecUpdate(exec, second, &info));
    launch_and_wait(exec);
    all_are(data, expected = after_chain(expected, 4));
    ok(cuGraphNodeSetEnabled(exec, nodes[0], 0));
    launch_and_wait(exec);
    for (unsigned i = 1; i < NODES; i++)
        expected = expected * 3 + 4 + i;
    all_are(data, expected);
    ok(cuGraphNodeSetEnabled(exec, nodes[0], 1));
    launch_and_wait(exec);
    all_are(data, after_chain(expected, 4));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuGraphDestroy(second));
    ok(cuMemFree(data));
}

/* A copy within the device becomes one from pageable memory, and again one within the device. */
static void a_copy_gets_another_source(void **state)
{
    static uint32_t words[COUNT];
    CUdeviceptr from = allocate(5), to = allocate(0);
    CUDA_MEMCPY3D within = copy_params(NULL, to, NULL, from, BYTES), up = copy_params(NULL, to, words, 0, BYTES);
    CUgraphNode copy, first;
    CUcontext context;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    for (unsigned i = 0; i < COUNT; i++)
        words[i] = 11;
    ok(cuCtxGetCurrent(&context));
    ok(cuGraphCreate(&graph, 0));
    first = add_linear(graph, NULL, 0, to, 0, 1);
    copy = add_copy(graph, &first, 1, &within);
    add_linear(graph, &copy, 1, to, 2, 0);
    exec = instantiate(graph);
    launch_and_wait(exec);
    all_are(to, 10);
    if (cuGraphExecMemcpyNodeSetParams(exec, copy, &up, context) == CUDA_SUCCESS) { /* NVIDIA's driver refuses other types of memory */
        launch_and_wait(exec);
        all_are(to, 22);
        ok(cuGraphExecMemcpyNodeSetParams(exec, copy, &within, context));
    }
    ok(cuMemsetD32(from, 6, COUNT));
    ok(cuCtxSynchronize());
    launch_and_wait(exec);
    all_are(to, 12);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemFree(from));
    ok(cuMemFree(to));
}

/* ---- copies and memsets of any size and alignment ---- */

static unsigned char model[2][ROOM], result[ROOM];
static uint32_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 8) * limit >> 24);
}

static CUgraphNode add_random_memset(CUgraph graph, const CUgraphNode *after, const CUdeviceptr room[2])
{
    const unsigned size = 1u << random_below(3), side = random_below(2), height = 1 + random_below(random_below(3) ? 2 : 20);
    const unsigned width = 1 + random_below(300 / size), pitch = width * size + size * random_below(9);
    const unsigned offset = random_below((ROOM - pitch * height) / size) * size;
    CUDA_MEMSET_NODE_PARAMS params = {.dst = room[side] + offset,
                                      .pitch = pitch,
                                      .value = random_below(1u << 24) * 257u,
                                      .elementSize = size,
                                      .width = width,
                                      .height = height};
    CUcontext context;
    CUgraphNode node;

    if (size < 4)
        params.value &= (1u << 8 * size) - 1;
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            memcpy(&model[side][offset + y * pitch + x * size], &params.value, size); /* of a little-endian machine */
    ok(cuCtxGetCurrent(&context));
    ok(cuGraphAddMemsetNode(&node, graph, after, after ? 1 : 0, &params, context));
    return node;
}

static CUgraphNode add_random_copy(CUgraph graph, const CUgraphNode *after, const CUdeviceptr room[2])
{
    const unsigned unit = 1u << random_below(5), dst = random_below(2), width = unit * (1 + random_below(400 / unit));
    const unsigned height = 1 + random_below(4), depth = 1 + random_below(3), pitch = width + unit * random_below(3);
    const unsigned span = pitch * height * depth, to = random_below((ROOM - span) / unit) * unit,
                   from = random_below((ROOM - span) / unit) * unit;
    CUDA_MEMCPY3D params = copy_params(NULL, room[dst] + to, NULL, room[!dst] + from, width);

    params.Height = height;
    params.Depth = depth;
    params.dstPitch = params.srcPitch = pitch;
    params.dstHeight = params.srcHeight = height;
    for (unsigned row = 0; row < height * depth; row++)
        memcpy(&model[dst][to + row * pitch], &model[!dst][from + row * pitch], width);
    return add_copy(graph, after, after ? 1 : 0, &params);
}

static void copies_and_memsets_of_any_alignment(void **state)
{
    const char *seed = getenv("CUTTLE_TEST_SEED");
    CUdeviceptr room[2];

    (void)state;
    random_state = seed ? (uint32_t)strtoul(seed, NULL, 0) : 1;
    for (unsigned side = 0; side < 2; side++) {
        ok(cuMemAlloc(&room[side], ROOM));
        ok(cuMemsetD8(room[side], 0, ROOM));
    }
    ok(cuCtxSynchronize());
    for (unsigned round = 0; round < 5; round++) {
        CUgraphNode node;
        CUgraphExec exec;
        CUgraph graph;

        ok(cuGraphCreate(&graph, 0));
        for (unsigned i = 0; i < NODES; i++)
            node = (random_below(2) ? add_random_copy : add_random_memset)(graph, i ? &node : NULL, room);
        exec = instantiate(graph);
        launch_and_wait(exec);
        for (unsigned side = 0; side < 2; side++) {
            ok(cuMemcpyDtoH(result, room[side], ROOM));
            assert_memory_equal(result, model[side], ROOM);
        }
        ok(cuGraphExecDestroy(exec));
        ok(cuGraphDestroy(graph));
    }
    ok(cuMemFree(room[0]));
    ok(cuMemFree(room[1]));
}

/* ---- what recordings refer to ---- */

/* Other memory at the same address: a launch uses what is there now. */
static void memory_is_replaced(void **state)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    const CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory[2];
    CUdeviceptr range, to = allocate(0);
    CUDA_MEMCPY3D params;
    size_t granularity;
    CUgraphNode copy;
    CUgraphExec exec;
    CUgraph graph;
    int supported;

    (void)state;
    ok(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    if (!supported)
        skip();
    ok(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ok(cuMemAddressReserve(&range, granularity, 0, 0, 0));
    ok(cuMemCreate(&memory[0], granularity, &prop, 0));
    ok(cuMemCreate(&memory[1], granularity, &prop, 0));
    ok(cuMemMap(range, granularity, 0, memory[0], 0));
    ok(cuMemSetAccess(range, granularity, &access, 1));
    ok(cuMemsetD32(range, 3, COUNT));
    ok(cuCtxSynchronize());
    params = copy_params(NULL, to, NULL, range, BYTES);
    ok(cuGraphCreate(&graph, 0));
    copy = add_copy(graph, NULL, 0, &params);
    add_linear(graph, &copy, 1, to, 2, 0);
    exec = instantiate(graph);
    launch_and_wait(exec);
    all_are(to, 6);
    ok(cuMemUnmap(range, granularity));
    if (on_cuttle()) { /* NVIDIA's driver does not notice until the device accesses it */
        gives(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, NULL));
        ok(cuCtxSynchronize());
    }
    ok(cuMemMap(range, granularity, 0, memory[1], 0));
    ok(cuMemSetAccess(range, granularity, &access, 1));
    ok(cuMemsetD32(range, 4, COUNT));
    ok(cuCtxSynchronize());
    launch_and_wait(exec);
    all_are(to, 8);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuMemUnmap(range, granularity));
    ok(cuMemRelease(memory[0]));
    ok(cuMemRelease(memory[1]));
    ok(cuMemAddressFree(range, granularity));
    ok(cuMemFree(to));
}

/* An executable graph of three kernels of a module of the current context. */
static CUgraphExec of_module(CUmodule *module)
{
    CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph;

    ok(cuModuleLoadData(module, PTX_HEADER PTX_NOTHING));
    ok(cuModuleGetFunction(&params.func, *module, "nothing"));
    ok(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < 3; i++)
        ok(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    exec = instantiate(graph);
    ok(cuGraphDestroy(graph));
    return exec;
}

static void modules_are_unloaded(void **state)
{
    CUmodule module;
    CUgraphExec exec;

    (void)state;
    if (!on_cuttle())
        skip(); /* NVIDIA's driver executes code that is gone */
    exec = of_module(&module);
    launch_and_wait(exec);
    ok(cuGraphLaunch(exec, NULL));
    ok(cuModuleUnload(module));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(exec, NULL));
    ok(cuCtxSynchronize());
    ok(cuGraphExecDestroy(exec));
}

/* A graph is launched in its context until that is destroyed; the executable graph lives longer. */
static void contexts_are_destroyed(void **state)
{
    CUcontext context;
    CUmodule module;
    CUgraphExec exec;

    (void)state;
    if (!on_cuttle())
        skip(); /* its result is not documented */
    ok(create_context(&context, 0));
    exec = of_module(&module);
    ok(cuGraphLaunch(exec, NULL));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(*state));
    assert_int_not_equal(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
    ok(cuGraphExecDestroy(exec));
}

/* Kernels of milliseconds are not sent to the device in large numbers. */
static void kernels_that_take_long(void **state)
{
    static const char text[] =
        PTX_HEADER ".visible .entry slow(.param .u64 out, .param .u32 rounds)\n{\n.reg .pred %p;\n.reg .b32 %a<3>;\n"
                   ".reg .b64 %out;\nld.param.u64 %out, [out];\nld.param.u32 %a0, [rounds];\nmov.u32 %a1, 1;\n"
                   "loop: mad.lo.u32 %a1, %a1, 1664525, %a0;\nsub.u32 %a0, %a0, 1;\nsetp.ne.u32 %p, %a0, 0;\n@%p bra loop;\n"
                   "ld.global.u32 %a2, [%out];\nmad.lo.u32 %a2, %a2, 31, %a1;\nst.global.u32 [%out], %a2;\nret;\n}\n";
    CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    uint32_t rounds = 2000000, value = 0, expected = 0, step = 1;
    void *list[2];
    CUdeviceptr out;
    CUgraphNode node;
    CUmodule module;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    ok(cuModuleLoadData(&module, text));
    ok(cuModuleGetFunction(&params.func, module, "slow"));
    ok(cuMemAlloc(&out, 4));
    ok(cuMemsetD32(out, 0, 1));
    list[0] = &out, list[1] = &rounds;
    params.kernelParams = list;
    ok(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < 80; i++)
        ok(cuGraphAddKernelNode(&node, graph, i ? &node : NULL, i ? 1 : 0, &params));
    exec = instantiate(graph);
    for (uint32_t i = rounds; i; i--)
        step = step * 1664525u + i;
    for (unsigned launch = 0; launch < 3; launch++) {
        ok(cuGraphLaunch(exec, NULL));
        for (unsigned i = 0; i < 80; i++)
            expected = expected * 31 + step;
    }
    ok(cuMemcpyDtoH(&value, out, 4));
    assert_int_equal(value, expected);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuModuleUnload(module));
    ok(cuMemFree(out));
}

/* Threads exchange values through shared memory, whose size is given: of the last words, so that all of it is needed. */
static const char ptx_reversing[] =
    PTX_HEADER ".extern .shared .align 4 .b8 pool[];\n"
               ".visible .entry reverse(.param .u64 data, .param .u32 last)\n{\n.reg .b32 %r<8>;\n.reg .b64 %d<3>;\n"
               "ld.param.u64 %d1, [data];\nld.param.u32 %r1, [last];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\n"
               "shl.b32 %r4, %r3, 6;\nadd.u32 %r4, %r4, %r2;\nmul.wide.u32 %d2, %r4, 4;\nadd.u64 %d1, %d1, %d2;\n"
               "ld.global.u32 %r5, [%d1];\nmov.u32 %r6, pool;\nadd.u32 %r6, %r6, %r1;\nshl.b32 %r7, %r2, 2;\nadd.u32 %r7, %r6, %r7;\n"
               "st.shared.u32 [%r7], %r5;\nbar.sync 0;\nsub.u32 %r7, 63, %r2;\nshl.b32 %r7, %r7, 2;\nadd.u32 %r7, %r6, %r7;\n"
               "ld.shared.u32 %r5, [%r7];\nadd.u32 %r5, %r5, %r3;\nst.global.u32 [%d1], %r5;\nret;\n}\n";

enum { REVERSED_BLOCKS = 100, REVERSED_THREADS = 64, REVERSED_WORDS = REVERSED_BLOCKS * REVERSED_THREADS };

static CUgraphNode add_reversing(CUgraph graph, CUfunction reverse, const CUgraphNode *after, CUdeviceptr data, unsigned shared_bytes)
{
    uint32_t last = shared_bytes - REVERSED_THREADS * 4;
    void *list[] = {&data, &last};
    const CUDA_KERNEL_NODE_PARAMS params = {.func = reverse,
                                            .gridDimX = REVERSED_BLOCKS,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = REVERSED_THREADS,
                                            .blockDimY = 1,
                                            .blockDimZ = 1,
                                            .sharedMemBytes = shared_bytes,
                                            .kernelParams = list};
    CUgraphNode node;

    ok(cuGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &params));
    return node;
}

static void check_reversed(CUdeviceptr data, unsigned times)
{
    static uint32_t words[REVERSED_WORDS];

    ok(cuMemcpyDtoH(words, data, sizeof words));
    for (uint32_t i = 0; i < REVERSED_WORDS; i++) {
        const uint32_t block = i / REVERSED_THREADS, thread = i % REVERSED_THREADS;
        const uint32_t from = times % 2 ? REVERSED_THREADS - 1 - thread : thread;

        assert_int_equal(words[i], block * REVERSED_THREADS + from + times * block);
    }
}

/* Of several sizes, in branches that may run side by side, in two graphs whose launches may, too. */
static void kernels_with_shared_memory(void **state)
{
    enum { GRAPHS = 2, BRANCHES = 4, LENGTH = 30, LAUNCHES = 3 };
    static uint32_t words[REVERSED_WORDS];
    CUdeviceptr data[GRAPHS][BRANCHES];
    CUgraphExec execs[GRAPHS];
    CUstream streams[GRAPHS];
    CUfunction reverse;
    CUmodule module;

    (void)state;
    for (uint32_t i = 0; i < REVERSED_WORDS; i++)
        words[i] = i;
    ok(cuModuleLoadData(&module, ptx_reversing));
    ok(cuModuleGetFunction(&reverse, module, "reverse"));
    for (unsigned g = 0; g < GRAPHS; g++) {
        CUgraph graph;

        ok(cuStreamCreate(&streams[g], CU_STREAM_NON_BLOCKING));
        ok(cuGraphCreate(&graph, 0));
        for (unsigned branch = 0; branch < BRANCHES; branch++) {
            CUgraphNode last = NULL;

            ok(cuMemAlloc(&data[g][branch], sizeof words));
            ok(cuMemcpyHtoD(data[g][branch], words, sizeof words));
            for (unsigned i = 0; i < LENGTH; i++)
                last = add_reversing(graph, reverse, last ? &last : NULL, data[g][branch], (1 + 10 * branch + g) << 10);
        }
        execs[g] = instantiate(graph);
        ok(cuGraphDestroy(graph));
    }
    for (unsigned i = 0; i < LAUNCHES * GRAPHS; i++)
        ok(cuGraphLaunch(execs[i % GRAPHS], streams[i % GRAPHS]));
    for (unsigned g = 0; g < GRAPHS; g++) {
        ok(cuStreamSynchronize(streams[g]));
        for (unsigned branch = 0; branch < BRANCHES; branch++) {
            check_reversed(data[g][branch], LAUNCHES * LENGTH);
            ok(cuMemFree(data[g][branch]));
        }
        ok(cuGraphExecDestroy(execs[g]));
        ok(cuStreamDestroy(streams[g]));
    }
    ok(cuModuleUnload(module));
}

/* data[i] = data[i] * 3 + terms[i % 1000]: more parameters than a device with Vulkan has push constants. */
static const char ptx_wide[] =
    PTX_HEADER ".visible .entry wide(.param .u64 data, .param .align 4 .b8 terms[4000])\n{\n.reg .b32 %r<6>;\n.reg .b64 %d<4>;\n"
               "ld.param.u64 %d1, [data];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
               "mad.lo.u32 %r1, %r1, %r2, %r3;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d1, %d1, %d2;\nmov.b64 %d3, terms;\n"
               "add.u64 %d3, %d3, %d2;\nld.param.u32 %r4, [%d3];\nld.global.u32 %r5, [%d1];\nmad.lo.u32 %r5, %r5, 3, %r4;\n"
               "st.global.u32 [%d1], %r5;\nret;\n}\n";

struct wide {
    CUdeviceptr data;
    uint32_t terms[COUNT];
    void *list[2];
};

static CUDA_KERNEL_NODE_PARAMS wide_params(CUfunction kernel, CUdeviceptr data, uint32_t term, struct wide *out)
{
    out->data = data;
    for (uint32_t i = 0; i < COUNT; i++)
        out->terms[i] = term;
    out->list[0] = &out->data;
    out->list[1] = out->terms;
    return (CUDA_KERNEL_NODE_PARAMS){.func = kernel,
                                     .gridDimX = 10,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = COUNT / 10,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = out->list};
}

static CUgraphNode add_wide(CUgraph graph, CUfunction kernel, const CUgraphNode *after, CUdeviceptr data, uint32_t term)
{
    struct wide wide;
    const CUDA_KERNEL_NODE_PARAMS params = wide_params(kernel, data, term, &wide);
    CUgraphNode node;

    ok(cuGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &params));
    return node;
}

/* A launch that has been enqueued keeps its parameters when the graph gets others. */
static void kernels_with_many_parameters(void **state)
{
    CUdeviceptr data = allocate(1);
    CUgraphNode nodes[NODES];
    CUgraphExec exec;
    CUfunction kernel;
    CUmodule module;
    CUgraph graph;
    uint32_t expected = 1;

    (void)state;
    ok(cuModuleLoadData(&module, ptx_wide));
    ok(cuModuleGetFunction(&kernel, module, "wide"));
    ok(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < NODES; i++)
        nodes[i] = add_wide(graph, kernel, i ? &nodes[i - 1] : NULL, data, i);
    exec = instantiate(graph);
    for (uint32_t round = 0; round < 4; round++) {
        struct wide wide;
        const CUDA_KERNEL_NODE_PARAMS params = wide_params(kernel, data, 1000 + round, &wide);

        ok(cuGraphLaunch(exec, NULL));
        ok(cuGraphExecKernelNodeSetParams(exec, nodes[NODES - 1], &params));
        for (unsigned i = 0; i + 1 < NODES; i++)
            expected = expected * 3 + i;
        expected = expected * 3 + (round ? 1000 + round - 1 : NODES - 1);
    }
    ok(cuGraphExecDestroy(exec)); /* while it runs */
    ok(cuCtxSynchronize());
    all_are(data, expected);
    ok(cuGraphDestroy(graph));
    ok(cuModuleUnload(module));
    ok(cuMemFree(data));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_meet),
        cmocka_unit_test(nodes_change_between_launches),
        cmocka_unit_test(a_copy_gets_another_source),
        cmocka_unit_test(copies_and_memsets_of_any_alignment),
        cmocka_unit_test(memory_is_replaced),
        cmocka_unit_test(modules_are_unloaded),
        cmocka_unit_test(contexts_are_destroyed),
        cmocka_unit_test(kernels_that_take_long),
        cmocka_unit_test(kernels_with_shared_memory),
        cmocka_unit_test(kernels_with_many_parameters),
    };

    return cmocka_run_group_tests_name("replays of graphs", tests, graphs_set_up, graphs_tear_down);
}
