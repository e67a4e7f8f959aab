/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of functions (Driver API: Execution Control, cuFuncGetAttribute). */
#include "function.h"

#include "core/base/log.h"
#include "core/device/library_capability.h"
#include "occupancy.h"

#include <limits.h>

#define CT_CHANNEL "function"

void ct_function_required_cluster(const struct ct_function *function, unsigned out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = function->decl->cluster[i];
        if (!function->decl->cluster[0]) /* relaxed: single values, which order nothing */
            out[i] = (unsigned)atomic_load_explicit(&function->required_cluster[i], memory_order_relaxed);
        else if (!out[i])
            out[i] = 1;
    }
}

static CUresult set_value(atomic_int *to, int value, int most)
{
    if (value < 0 || value > most)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a function attribute of %d is out of range", value);
    atomic_store_explicit(to, value, memory_order_relaxed); /* a single value, which orders nothing */
    return CUDA_SUCCESS;
}

static int static_attribute(const struct ct_function *function, CUfunction_attribute attribute)
{
    unsigned cluster[3];

    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return (int)ct_function_block_limit(function);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        return (int)function->module->constant_bytes;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        return (int)function->module->code->sm;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        return (int)ct_compute_capability(&function->module->context->device->info)->number;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return atomic_load_explicit(&function->carveout, memory_order_relaxed); /* a single value, which orders nothing */
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        return function->decl->explicit_cluster;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        ct_function_required_cluster(function, cluster);
        return (int)cluster[(int)attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return atomic_load_explicit(&function->larger_clusters, memory_order_relaxed);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return atomic_load_explicit(&function->cluster_policy, memory_order_relaxed);
    default:
        return 0; /* CACHE_MODE_CA */
    }
}

CUresult ct_function_attribute(struct ct_function *function, CUfunction_attribute attribute, int *out)
{
    CUresult r = CUDA_SUCCESS;

    if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "function attribute %d does not exist", (int)attribute);
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        if ((r = ct_function_compile(function)) == CUDA_SUCCESS)
            *out = (int)function->info.static_shared_bytes;
        return r;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        if ((r = ct_function_compile(function)) == CUDA_SUCCESS)
            *out = (int)function->info.local_bytes;
        return r;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if ((r = ct_function_compile(function)) == CUDA_SUCCESS)
            *out = (int)ct_function_dynamic_shared_limit(function);
        return r;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        if ((r = ct_function_compile(function)) == CUDA_SUCCESS)
            *out = (int)ct_occupancy_registers(function);
        return r;
    default:
        *out = static_attribute(function, attribute);
        return r;
    }
}

CUresult ct_function_set_attribute(struct ct_function *function, CUfunction_attribute attribute, int value, const void *caller)
{
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return ct_function_set_dynamic_shared(function, value,
                                              ct_library_capability(&function->module->context->device->info, caller)->shared_block);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "a carveout of %d percent is out of range", value);
        atomic_store_explicit(&function->carveout, value, memory_order_relaxed);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (function->decl->cluster[0])
            return ct_fail(CUDA_ERROR_NOT_PERMITTED, "the cluster size of kernel %s is fixed (.reqnctapercluster)", function->decl->name);
        return set_value(&function->required_cluster[(int)attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH], value, INT_MAX);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return set_value(&function->larger_clusters, value, 1);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return set_value(&function->cluster_policy, value, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "function attribute %d cannot be set", (int)attribute);
    }
}
