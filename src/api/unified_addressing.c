/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Unified Addressing.
 * Every function: NOT_INITIALIZED, INVALID_CONTEXT, CONTEXT_IS_DESTROYED as the current context gives them, and the error of a kernel
 * that failed in it. */
#include "entry_points.h"

#include "core/log.h"
#include "core/pointer.h"

#define CT_CHANNEL "memory"

/* cuPointerGetAttribute. INVALID_VALUE: data is NULL, no such attribute, ptr is not known to CUDA; HOST_POINTER of device memory. */
CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = data ? ct_pointer_attribute(context, attribute, ptr, data) : ct_fail(CUDA_ERROR_INVALID_VALUE, "data is NULL");
    ct_context_release(context);
    return r;
}

/* cuPointerSetAttribute. CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of memory of cuMemAlloc, from an unsigned int. INVALID_VALUE: anything else. */
CUresult CUDAAPI cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pointer attribute %d cannot be set, or its value is NULL", (int)attribute);
    return ct_pointer_set_synchronous(ptr, *(const unsigned *)value != 0);
}

/* cuPointerGetAttributes. What a pointer has not, or that CUDA does not know it, is told by default values: 0, NULL, CU_DEVICE_INVALID.
 * INVALID_VALUE: no such attribute, a NULL pointer. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (numAttributes == 0 || !attributes || !data)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "%u attributes", numAttributes);
    for (unsigned i = 0; i < numAttributes && r == CUDA_SUCCESS; i++) {
        if (!data[i])
            r = ct_fail(CUDA_ERROR_INVALID_VALUE, "data[%u] is NULL", i);
        else if (ct_pointer_attribute(context, attributes[i], ptr, data[i]) != CUDA_SUCCESS)
            r = ct_pointer_attribute_default(attributes[i], data[i]);
    }
    ct_context_release(context);
    return r;
}
