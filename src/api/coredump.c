/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Coredump Attributes Control API. With CU_COREDUMP_ENABLE_ON_EXCEPTION a kernel that fails leaves a text file (core/device/coredump.h).
 * The other attributes are kept and can be read back; the process goes on.
 * Every function: INVALID_VALUE: the attribute does not exist, a pointer is NULL, or *size is not the size of the attribute; the functions without
 * "Global" also: the errors of cuCtxGetCurrent, and INVALID_CONTEXT without a current context. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/device/coredump.h"

#define CT_CHANNEL "device"

static CUresult get(struct ct_context *context_or_null, CUcoredumpSettings attribute, void *value, size_t *size)
{
    if (!size)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "size is NULL");
    return value ? ct_coredump_get(context_or_null, attribute, value, *size) : ct_coredump_size(context_or_null, attribute, size);
}

/* A value of NULL leaves the attribute as it is. */
static CUresult set(struct ct_context *context_or_null, CUcoredumpSettings attribute, const void *value, const size_t *size)
{
    size_t ignored;

    if (!size)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "size is NULL");
    return value ? ct_coredump_set(context_or_null, attribute, value, *size) : ct_coredump_size(context_or_null, attribute, &ignored);
}

/* cuCoredumpGetAttribute. Of the current context. With a value of NULL only *size is written. */
CUresult CUDAAPI cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = get(context, attrib, value, size);
    ct_context_release(context);
    return r;
}

/* cuCoredumpGetAttributeGlobal. Of contexts whose attributes were not set. */
CUresult CUDAAPI cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return get(NULL, attrib, value, size);
}

/* cuCoredumpSetAttribute. OUT_OF_MEMORY. */
CUresult CUDAAPI cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = set(context, attrib, value, size);
    ct_context_release(context);
    return r;
}

/* cuCoredumpSetAttributeGlobal */
CUresult CUDAAPI cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    return set(NULL, attrib, value, size);
}
