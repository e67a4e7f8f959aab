/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs beside single launches: the caller's time and the time until the work is complete, per node; instantiation, updates, and the round
 * trip of a small graph. Runs on any libcuda.so.1. Prints "name value unit", one per line; medians of several rounds.
 *
 *   bench_graph [NODES] */
#include "example.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 15
#define SMALL 10
#define BRANCHES 4
#define ELEMENTS 4096u

static const char kernels[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n"
                              ".visible .entry add(.param .u64 to, .param .u32 by)\n{\n.reg .b32 %a, %b, %c, %d;\n.reg .b64 %to, %at;\n"
                              "ld.param.u64 %to, [to];\nld.param.u32 %d, [by];\nmov.u32 %a, %ctaid.x;\nmov.u32 %b, %ntid.x;\n"
                              "mov.u32 %c, %tid.x;\nmad.lo.u32 %a, %a, %b, %c;\nmul.wide.u32 %at, %a, 4;\nadd.u64 %to, %to, %at;\n"
                              "ld.global.u32 %a, [%to];\nadd.u32 %a, %a, %d;\nst.global.u32 [%to], %a;\nret;\n}\n";

static CUfunction empty, add;
static CUdeviceptr memory[BRANCHES];
static CUstream stream;

static CUDA_KERNEL_NODE_PARAMS empty_node(void)
{
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = empty, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
}

static CUDA_KERNEL_NODE_PARAMS add_node(void **params)
{
    CUDA_KERNEL_NODE_PARAMS node = empty_node();

    node.func = add;
    node.gridDimX = ELEMENTS / 256;
    node.blockDimX = 256;
    node.kernelParams = params;
    return node;
}

/* `branches` chains of nodes; the nodes of a chain follow each other. */
static CUgraph make(int nodes, int branches, int by)
{
    CUgraphNode last[BRANCHES] = {0};
    CUgraph graph;

    CHECK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < nodes; i++) {
        const int branch = i % branches;
        void *params[] = {&memory[branch], &by};
        CUDA_KERNEL_NODE_PARAMS node = by ? add_node(params) : empty_node();
        CUgraphNode made;

        CHECK(cuGraphAddKernelNode(&made, graph, last[branch] ? &last[branch] : NULL, last[branch] ? 1 : 0, &node));
        last[branch] = made;
    }
    return graph;
}

static void report(const char *what, const char *name, double *values, const char *unit)
{
    printf("%-16s %-24s %10.3f %s\n", what, name, median(values, ROUNDS), unit);
}

static void launch_singly(int nodes, int branches, int by)
{
    for (int i = 0; i < nodes; i++) {
        void *params[] = {&memory[i % branches], &by};

        CHECK(by ? cuLaunchKernel(add, ELEMENTS / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL)
                 : cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    }
}

static void measure(const char *what, int nodes, int branches, int by)
{
    double call[ROUNDS], whole[ROUNDS], single_call[ROUNDS], single[ROUNDS], instantiate[ROUNDS], update[ROUNDS], after_update[ROUNDS];
    CUgraph graph = make(nodes, branches, by);
    CUgraphExecUpdateResultInfo info;
    CUgraphExec exec;

    for (int round = 0; round < ROUNDS; round++) {
        double start = now_us();

        CHECK(cuGraphInstantiate(&exec, graph, 0));
        instantiate[round] = (now_us() - start) / nodes;
        CHECK(cuGraphUpload(exec, stream));
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamSynchronize(stream));
        start = now_us();
        CHECK(cuGraphLaunch(exec, stream));
        call[round] = (now_us() - start) / nodes;
        CHECK(cuStreamSynchronize(stream));
        whole[round] = (now_us() - start) / nodes;
        start = now_us();
        launch_singly(nodes, branches, by);
        single_call[round] = (now_us() - start) / nodes;
        CHECK(cuStreamSynchronize(stream));
        single[round] = (now_us() - start) / nodes;
        start = now_us();
        CHECK(cuGraphExecUpdate(exec, graph, &info));
        update[round] = (now_us() - start) / nodes;
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamSynchronize(stream));
        after_update[round] = (now_us() - start) / nodes;
        CHECK(cuGraphExecDestroy(exec));
    }
    report(what, "instantiate", instantiate, "us per node");
    report(what, "launch, caller's time", call, "us per node");
    report(what, "launch and wait", whole, "us per node");
    report(what, "singly, caller's time", single_call, "us per node");
    report(what, "singly and wait", single, "us per node");
    report(what, "update", update, "us per node");
    report(what, "update, launch and wait", after_update, "us per node");
    CHECK(cuGraphDestroy(graph));
}

static void measure_small(void)
{
    double round_trip[ROUNDS];
    CUgraph graph = make(SMALL, 1, 1);
    CUgraphExec exec;

    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_us();

        for (int i = 0; i < 100; i++) {
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuStreamSynchronize(stream));
        }
        round_trip[round] = (now_us() - start) / 100;
    }
    report("graph of 10", "launch and wait", round_trip, "us");
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
}

int main(int argc, char **argv)
{
    const int nodes = argc > 1 ? atoi(argv[1]) : 1000;
    CUcontext context;
    CUmodule module;

    (void)example_open(&context);
    CHECK(cuModuleLoadData(&module, kernels));
    CHECK(cuModuleGetFunction(&empty, module, "empty"));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < BRANCHES; i++) {
        CHECK(cuMemAlloc(&memory[i], ELEMENTS * 4));
        CHECK(cuMemsetD32(memory[i], 0, ELEMENTS));
    }
    launch_singly(nodes, 1, 0);
    launch_singly(nodes, 1, 1);
    CHECK(cuStreamSynchronize(stream));
    measure("straight, empty", nodes, 1, 0);
    measure("4 branches", nodes, BRANCHES, 1);
    measure_small();
    return 0;
}
