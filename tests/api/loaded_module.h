/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of launches: a module that is loaded for all tests of a group, and memory that its kernels write. */
#ifndef CUTTLE_TESTS_LOADED_MODULE_H
#define CUTTLE_TESTS_LOADED_MODULE_H

#include "api_test.h"

static CUmodule module;
static CUdeviceptr out;

/* For group fixtures. */
static inline int load_module(void **state, const char *ptx, size_t out_bytes)
{
    if (with_context(state) != 0 || cuModuleLoadData(&module, ptx) != CUDA_SUCCESS || cuMemAlloc(&out, out_bytes) != CUDA_SUCCESS)
        return -1;
    return 0;
}

static inline int unload_module(void **state)
{
    if (cuMemFree(out) != CUDA_SUCCESS || cuModuleUnload(module) != CUDA_SUCCESS)
        return -1;
    return without_context(state);
}

static inline CUfunction get(const char *name)
{
    CUfunction function = NULL;

    ok(cuModuleGetFunction(&function, module, name));
    return function;
}

#endif
