/* SPDX-License-Identifier: Apache-2.0 */
/* The _ptds and _ptsz symbols, generated from entry_points.def: they differ from the plain ones only in the meaning of stream 0. Programs
 * compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM call them.
 * If the linker reports that a symbol of an ENTRY_PTDS row is defined twice, define ct_<symbol> instead (entry_points.h). */
#include "entry_points.h"

static CUstream or_per_thread(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

/* Applies or_per_thread to none, one or two arguments. */
#define RESOLVE_1(a) a = or_per_thread(a)
#define RESOLVE_2(a, b) RESOLVE_1(a), RESOLVE_1(b)
#define RESOLVE_N(a, b, which, ...) which
#define RESOLVE(...) __VA_OPT__(RESOLVE_N(__VA_ARGS__, RESOLVE_2, RESOLVE_1, )(__VA_ARGS__))

#define ENTRY(symbol, name, version, params, args)
#define ENTRY_PTDS(symbol, name, version, per_thread_version, params, args)                                                                \
    CUresult CUDAAPI symbol params                                                                                                         \
    {                                                                                                                                      \
        return ct_##symbol(CT_UNPAREN args, CU_STREAM_LEGACY);                                                                             \
    }                                                                                                                                      \
    CUresult CUDAAPI symbol##_ptds params                                                                                                  \
    {                                                                                                                                      \
        return ct_##symbol(CT_UNPAREN args, CU_STREAM_PER_THREAD);                                                                         \
    }
#define ENTRY_PTSZ(symbol, name, version, per_thread_version, params, args, streams)                                                       \
    CUresult CUDAAPI symbol##_ptsz params                                                                                                  \
    {                                                                                                                                      \
        RESOLVE streams;                                                                                                                   \
        return symbol args;                                                                                                                \
    }
#define ENTRY_PTSZ_OWN(symbol, name, version, per_thread_version, params, args)
#include "entry_points.def"

/* cuLaunchKernelEx (Driver API: Execution Control). The stream is in the caller's config, which is not modified. */
CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    CUlaunchConfig resolved;

    if (!config)
        return cuLaunchKernelEx(config, f, kernelParams, extra);
    resolved = *config;
    resolved.hStream = or_per_thread(config->hStream);
    return cuLaunchKernelEx(&resolved, f, kernelParams, extra);
}

/* cuGraphInstantiateWithParams (Driver API: Graph Management). Results are stored in the caller's struct, whose stream is not modified. */
CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS resolved;
    CUresult result;

    if (!instantiateParams)
        return cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
    resolved = *instantiateParams;
    resolved.hUploadStream = or_per_thread(instantiateParams->hUploadStream);
    result = cuGraphInstantiateWithParams(phGraphExec, hGraph, &resolved);
    instantiateParams->hErrNode_out = resolved.hErrNode_out;
    instantiateParams->result_out = resolved.result_out;
    return result;
}
