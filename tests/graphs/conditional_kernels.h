/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes, and kernels that set their conditions. */
#ifndef CUTTLE_TESTS_CONDITIONAL_KERNELS_H
#define CUTTLE_TESTS_CONDITIONAL_KERNELS_H

#include "graphs_test.h"

#define PTX_CONDITIONAL                                                                                                                    \
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n" /* sets a condition */                               \
    ".visible .entry set(.param .u64 handle, .param .u32 value)\n"                                                                         \
    "{\n"                                                                                                                                  \
    "    .reg .b32 %r1;\n"                                                                                                                 \
    "    .reg .b64 %d1;\n"                                                                                                                 \
    "    ld.param.u64 %d1, [handle];\n"                                                                                                    \
    "    ld.param.u32 %r1, [value];\n"                                                                                                     \
    "    call cudaGraphSetConditional, (%d1, %r1);\n"                                                                                      \
    "    ret;\n"                                                                                                                           \
    "}\n" /* condition = ++*counter < limit */                                                                                             \
    ".visible .entry step(.param .u64 counter, .param .u64 handle, .param .u32 limit)\n"                                                   \
    "{\n"                                                                                                                                  \
    "    .reg .pred %p;\n"                                                                                                                 \
    "    .reg .b32 %r<4>;\n"                                                                                                               \
    "    .reg .b64 %d<3>;\n"                                                                                                               \
    "    ld.param.u64 %d1, [counter];\n"                                                                                                   \
    "    ld.param.u64 %d2, [handle];\n"                                                                                                    \
    "    ld.param.u32 %r1, [limit];\n"                                                                                                     \
    "    ld.global.u32 %r2, [%d1];\n"                                                                                                      \
    "    add.u32 %r2, %r2, 1;\n"                                                                                                           \
    "    st.global.u32 [%d1], %r2;\n"                                                                                                      \
    "    setp.lt.u32 %p, %r2, %r1;\n"                                                                                                      \
    "    selp.u32 %r3, 1, 0, %p;\n"                                                                                                        \
    "    call cudaGraphSetConditional, (%d2, %r3);\n"                                                                                      \
    "    ret;\n"                                                                                                                           \
    "}\n" /* *counter = *counter * 10 + digit: the order of two such kernels matters */                                                    \
    ".visible .entry digit(.param .u64 counter, .param .u32 digit)\n"                                                                      \
    "{\n"                                                                                                                                  \
    "    .reg .b32 %r<3>;\n"                                                                                                               \
    "    .reg .b64 %d1;\n"                                                                                                                 \
    "    ld.param.u64 %d1, [counter];\n"                                                                                                   \
    "    ld.param.u32 %r1, [digit];\n"                                                                                                     \
    "    ld.global.u32 %r2, [%d1];\n"                                                                                                      \
    "    mad.lo.u32 %r2, %r2, 10, %r1;\n"                                                                                                  \
    "    st.global.u32 [%d1], %r2;\n"                                                                                                      \
    "    ret;\n"                                                                                                                           \
    "}\n"

static CUmodule conditional_module;
static CUfunction set_function, step_function, digit_function, trap_function;

static inline void load_functions(void)
{
    ok(cuModuleGetFunction(&set_function, conditional_module, "set"));
    ok(cuModuleGetFunction(&step_function, conditional_module, "step"));
    ok(cuModuleGetFunction(&digit_function, conditional_module, "digit"));
    ok(cuModuleGetFunction(&trap_function, conditional_module, "stops"));
}

static inline void load_conditional_kernels(void)
{
    /* in this order: ptxas 13.0 crashes if the kernel that traps is behind `digit` */
    ok(cuModuleLoadData(&conditional_module, PTX_HEADER PTX_TRAP PTX_CONDITIONAL));
    load_functions();
}

static inline CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction function, void **list)
{
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = function,
        .gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = list,
    };
}

/* Adds a kernel of one thread behind `after`, which may be NULL. */
static inline CUgraphNode add_one_thread(CUgraph graph, CUgraphNode after, CUfunction function, void **list)
{
    const CUDA_KERNEL_NODE_PARAMS params = one_thread(function, list);
    CUgraphNode node;

    ok(cuGraphAddKernelNode(&node, graph, &after, after != NULL, &params));
    return node;
}

static inline CUgraphNode add_set(CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle, uint32_t value)
{
    void *list[] = {&handle, &value};

    return add_one_thread(graph, after, set_function, list);
}

static inline CUgraphNode add_step(CUgraph graph, CUgraphNode after, CUdeviceptr counter, CUgraphConditionalHandle handle, uint32_t limit)
{
    void *list[] = {&counter, &handle, &limit};

    return add_one_thread(graph, after, step_function, list);
}

static inline CUgraphNode add_digit(CUgraph graph, CUgraphNode after, CUdeviceptr counter, uint32_t digit)
{
    void *list[] = {&counter, &digit};

    return add_one_thread(graph, after, digit_function, list);
}

static inline CUgraphConditionalHandle make_handle(CUgraph graph, unsigned value, unsigned flags)
{
    CUgraphConditionalHandle handle = 0;
    CUcontext context;

    ok(cuCtxGetCurrent(&context));
    ok(cuGraphConditionalHandleCreate(&handle, graph, context, value, flags));
    return handle;
}

static inline CUgraphNodeParams conditional_params(CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};

    ok(cuCtxGetCurrent(&params.conditional.ctx));
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    return params;
}

/* Adds a conditional node behind `after`, which may be NULL; *bodies are its graphs. */
static inline CUgraphNode add_conditional(CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle,
                                          CUgraphConditionalNodeType type, unsigned size, CUgraph **bodies)
{
    CUgraphNodeParams params = conditional_params(handle, type, size);
    CUgraphNode node;

    ok(cuGraphAddNode(&node, graph, &after, NULL, after != NULL, &params));
    *bodies = params.conditional.phGraph_out;
    return node;
}

#endif
