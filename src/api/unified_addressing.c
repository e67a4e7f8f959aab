/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Unified Addressing. A context need not be current, since pointers mean the same in all.
 * Every function: NOT_INITIALIZED, and the error of a kernel that failed in the current context. */
#include "entry_points.h"

#include "core/log.h"
#include "core/pointer.h"

#define CT_CHANNEL "memory"

/* The current context with one use held, or NULL if there is none. */
static CUresult current_or_null(struct ct_context **out)
{
    CUresult r = ct_context_current(out);

    if (r != CUDA_ERROR_INVALID_CONTEXT)
        return r;
    *out = NULL;
    return CUDA_SUCCESS;
}

/* cuPointerGetAttribute. INVALID_VALUE: data is NULL, no such attribute, ptr is not known to CUDA; HOST_POINTER of device memory. */
CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = current_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = data ? ct_pointer_attribute(context, attribute, ptr, data) : ct_fail(CUDA_ERROR_INVALID_VALUE, "data is NULL");
    ct_context_release(context);
    return r;
}

/* cuPointerSetAttribute. CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of allocated memory, from an unsigned int. INVALID_VALUE: anything else. */
CUresult CUDAAPI cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = current_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pointer attribute %d cannot be set, or its value is NULL", (int)attribute);
    return ct_pointer_set_synchronous(ptr, *(const unsigned *)value != 0);
}

/* cuPointerGetAttributes. What a pointer has not, or that CUDA does not know it, is told by default values: 0, NULL, CU_DEVICE_INVALID;
 * the host pointer of memory that CUDA does not know is itself. INVALID_VALUE: no such attribute, a NULL pointer. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = current_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (numAttributes == 0 || !attributes || !data)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "%u attributes", numAttributes);
    for (unsigned i = 0; i < numAttributes && r == CUDA_SUCCESS; i++) {
        if (!data[i])
            r = ct_fail(CUDA_ERROR_INVALID_VALUE, "data[%u] is NULL", i);
        else if (ct_pointer_attribute(context, attributes[i], ptr, data[i]) != CUDA_SUCCESS)
            r = ct_pointer_attribute_default(attributes[i], ptr, data[i]);
    }
    ct_context_release(context);
    return r;
}
