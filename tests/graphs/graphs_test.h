/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of graphs. They also run with NVIDIA's driver. */
#ifndef CUTTLE_TESTS_GRAPHS_TEST_H
#define CUTTLE_TESTS_GRAPHS_TEST_H

#include "api_test.h"

#include "api_kernels.h"

#define COUNT 1000u
#define BYTES (COUNT * sizeof(uint32_t))

/* data[i] = data[i] * factor + term: the order of two such kernels matters. */
#define PTX_LINEAR                                                                                                                         \
    ".visible .entry linear(.param .u64 data, .param .u32 factor, .param .u32 term)\n"                                                     \
    "{\n"                                                                                                                                  \
    "    .reg .pred %p;\n"                                                                                                                 \
    "    .reg .b32 %r<8>;\n"                                                                                                               \
    "    .reg .b64 %d<4>;\n"                                                                                                               \
    "    ld.param.u64 %d1, [data];\n"                                                                                                      \
    "    ld.param.u32 %r1, [factor];\n"                                                                                                    \
    "    ld.param.u32 %r2, [term];\n"                                                                                                      \
    "    mov.u32 %r3, %ctaid.x;\n"                                                                                                         \
    "    mov.u32 %r4, %ntid.x;\n"                                                                                                          \
    "    mov.u32 %r5, %tid.x;\n"                                                                                                           \
    "    mad.lo.u32 %r3, %r3, %r4, %r5;\n"                                                                                                 \
    "    setp.ge.u32 %p, %r3, 1000;\n"                                                                                                     \
    "    @%p bra done;\n"                                                                                                                  \
    "    mul.wide.u32 %d2, %r3, 4;\n"                                                                                                      \
    "    add.u64 %d3, %d1, %d2;\n"                                                                                                         \
    "    ld.global.u32 %r6, [%d3];\n"                                                                                                      \
    "    mad.lo.u32 %r7, %r6, %r1, %r2;\n"                                                                                                 \
    "    st.global.u32 [%d3], %r7;\n"                                                                                                      \
    "done:\n"                                                                                                                              \
    "    ret;\n"                                                                                                                           \
    "}\n"

static CUmodule graphs_module;
static CUfunction graphs_linear;

static inline int graphs_set_up(void **state)
{
    if (with_context(state) != 0 || cuModuleLoadData(&graphs_module, PTX_HEADER PTX_LINEAR PTX_NOTHING) != CUDA_SUCCESS)
        return -1;
    return cuModuleGetFunction(&graphs_linear, graphs_module, "linear") == CUDA_SUCCESS ? 0 : -1;
}

static inline int graphs_tear_down(void **state)
{
    return cuModuleUnload(graphs_module) == CUDA_SUCCESS ? without_context(state) : -1;
}

/* Parameters of `linear`; they must live until the node is added. */
struct linear {
    CUdeviceptr data;
    uint32_t factor, term;
    void *list[3];
};

static inline CUDA_KERNEL_NODE_PARAMS linear_params(struct linear *linear)
{
    linear->list[0] = &linear->data;
    linear->list[1] = &linear->factor;
    linear->list[2] = &linear->term;
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = graphs_linear,
        .gridDimX = (COUNT + 127) / 128,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 128,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = linear->list,
    };
}

static inline CUgraphNode add_linear(CUgraph graph, const CUgraphNode *after, size_t n_after, CUdeviceptr data, uint32_t factor,
                                     uint32_t term)
{
    struct linear linear = {.data = data, .factor = factor, .term = term};
    const CUDA_KERNEL_NODE_PARAMS params = linear_params(&linear);
    CUgraphNode node;

    ok(cuGraphAddKernelNode(&node, graph, after, n_after, &params));
    return node;
}

static inline CUgraphNode add_empty(CUgraph graph, const CUgraphNode *after, size_t n_after)
{
    CUgraphNode node;

    ok(cuGraphAddEmptyNode(&node, graph, after, n_after));
    return node;
}

static inline CUDA_MEMCPY3D copy_params(void *dst_host, CUdeviceptr dst, const void *src_host, CUdeviceptr src, size_t bytes)
{
    return (CUDA_MEMCPY3D){
        .dstMemoryType = dst_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .dstHost = dst_host,
        .dstDevice = dst,
        .srcMemoryType = src_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = src_host,
        .srcDevice = src,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
}

static inline CUgraphNode add_copy(CUgraph graph, const CUgraphNode *after, size_t n_after, const CUDA_MEMCPY3D *params)
{
    CUcontext context;
    CUgraphNode node;

    ok(cuCtxGetCurrent(&context));
    ok(cuGraphAddMemcpyNode(&node, graph, after, n_after, params, context));
    return node;
}

static inline CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec;

    ok(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

/* Memory for COUNT words, all of which are `value`. */
static inline CUdeviceptr allocate(uint32_t value)
{
    CUdeviceptr data;

    ok(cuMemAlloc(&data, BYTES));
    ok(cuMemsetD32(data, value, COUNT));
    ok(cuCtxSynchronize()); /* non-blocking streams do not wait for the memset */
    return data;
}

static inline void launch_and_wait(CUgraphExec exec)
{
    CUstream stream;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuGraphLaunch(exec, stream));
    ok(cuStreamSynchronize(stream));
    ok(cuStreamDestroy(stream));
}

static inline void all_are(CUdeviceptr data, uint32_t expected)
{
    static uint32_t words[COUNT];

    ok(cuMemcpyDtoH(words, data, BYTES));
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(words[i], expected);
}

#endif
