/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with nodes of two devices: on Cuttle the first one, listed twice; elsewhere the first two, if there are two. */
#include "graphs_test.h"

static CUcontext contexts[2];
static CUmodule modules[2];
static CUfunction functions[2];

static int set_up(void **state)
{
    int count = 0;

    (void)state;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return -1;
    for (int i = 0; i < 2 && count >= 2; i++)
        if (cuDevicePrimaryCtxRetain(&contexts[i], i) != CUDA_SUCCESS || cuCtxSetCurrent(contexts[i]) != CUDA_SUCCESS ||
            cuModuleLoadData(&modules[i], PTX_HEADER PTX_LINEAR) != CUDA_SUCCESS ||
            cuModuleGetFunction(&functions[i], modules[i], "linear") != CUDA_SUCCESS)
            return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 2 && contexts[i]; i++)
        if (cuCtxSetCurrent(contexts[i]) != CUDA_SUCCESS || cuModuleUnload(modules[i]) != CUDA_SUCCESS ||
            cuDevicePrimaryCtxRelease(i) != CUDA_SUCCESS)
            return -1;
    return 0;
}

static CUdeviceptr allocate_in(int device, uint32_t value)
{
    ok(cuCtxSetCurrent(contexts[device]));
    return allocate(value);
}

static CUgraphNode add_in(CUgraph graph, const CUgraphNode *after, int device, CUdeviceptr data, uint32_t factor, uint32_t term)
{
    graphs_linear = functions[device];
    return add_linear(graph, after, after ? 1 : 0, data, factor, term);
}

static CUgraphNode add_copy_in(CUgraph graph, const CUgraphNode *after, int device, CUdeviceptr to, CUdeviceptr from)
{
    const CUDA_MEMCPY3D params = copy_params(NULL, to, NULL, from, BYTES);

    ok(cuCtxSetCurrent(contexts[device]));
    return add_copy(graph, after, 1, &params);
}

/* 2 * 3 + 1 on the first device, * 5 + 2 on the second, * 7 + 3 on the first again. */
static void work_goes_from_one_to_the_other_and_back(void **state)
{
    CUdeviceptr data[2];
    CUstream streams[2];
    CUgraphNode node;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    if (!contexts[1])
        skip();
    data[0] = allocate_in(0, 2);
    data[1] = allocate_in(1, 0);
    ok(cuGraphCreate(&graph, 0));
    node = add_in(graph, NULL, 0, data[0], 3, 1);
    node = add_copy_in(graph, &node, 0, data[1], data[0]);
    node = add_in(graph, &node, 1, data[1], 5, 2);
    node = add_copy_in(graph, &node, 1, data[0], data[1]);
    node = add_in(graph, &node, 0, data[0], 7, 3);
    exec = instantiate(graph);
    for (int device = 0; device < 2; device++) { /* in streams of both */
        ok(cuCtxSetCurrent(contexts[device]));
        ok(cuStreamCreate(&streams[device], CU_STREAM_NON_BLOCKING));
    }
    ok(cuGraphLaunch(exec, streams[0]));
    ok(cuStreamSynchronize(streams[0]));
    all_are(data[0], ((2 * 3 + 1) * 5 + 2) * 7 + 3);
    ok(cuGraphLaunch(exec, streams[1]));
    ok(cuStreamSynchronize(streams[1]));
    all_are(data[0], (((((2 * 3 + 1) * 5 + 2) * 7 + 3) * 3 + 1) * 5 + 2) * 7 + 3);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    for (int device = 0; device < 2; device++) {
        ok(cuCtxSetCurrent(contexts[device]));
        ok(cuStreamDestroy(streams[device]));
        ok(cuMemFree(data[device]));
    }
}

/* Many kernels of either device, launched often. */
static void chains_alternate(void **state)
{
    CUdeviceptr data[2];
    uint32_t expected[2] = {1, 2};
    CUgraphNode last;
    CUstream stream;
    CUgraphExec exec;
    CUgraph graph;

    (void)state;
    if (!contexts[1])
        skip();
    data[0] = allocate_in(0, 1);
    data[1] = allocate_in(1, 2);
    ok(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < 40; i++)
        last = add_in(graph, i ? &last : NULL, i / 3 & 1, data[i / 3 & 1], 3, i);
    exec = instantiate(graph);
    ok(cuCtxSetCurrent(contexts[0]));
    ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    for (unsigned launch = 0; launch < 5; launch++) {
        ok(cuGraphLaunch(exec, stream));
        for (unsigned i = 0; i < 40; i++)
            expected[i / 3 & 1] = expected[i / 3 & 1] * 3 + i;
    }
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    for (int device = 0; device < 2; device++) {
        ok(cuCtxSetCurrent(contexts[device]));
        all_are(data[device], expected[device]);
        ok(cuMemFree(data[device]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_goes_from_one_to_the_other_and_back),
        cmocka_unit_test(chains_alternate),
    };

    return cmocka_run_group_tests_name("graphs on two devices", tests, set_up, tear_down);
}
