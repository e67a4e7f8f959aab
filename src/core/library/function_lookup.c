/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the functions of handles, which may be those of a library's kernels. */
#include "function_lookup.h"

#include "core/base/log.h"
#include "library.h"

#define CT_CHANNEL "function"

static CUresult lookup_kernel(CUkernel handle, struct ct_context *context, struct ct_function **out)
{
    struct ct_kernel *kernel = (struct ct_kernel *)ct_object_find_or_null(CT_OBJECT_KERNEL, handle);
    CUresult r;

    if (!kernel)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is neither a function nor a kernel", (void *)handle);
    r = ct_kernel_function(kernel, context, out);
    ct_object_release(&kernel->object);
    return r;
}

CUresult ct_function_lookup(CUfunction handle, struct ct_context *context, struct ct_function **out)
{
    struct ct_function *function = (struct ct_function *)ct_object_find_or_null(CT_OBJECT_FUNCTION, handle);
    CUresult r;

    if (!function)
        return lookup_kernel((CUkernel)handle, context, out);
    r = ct_context_use(function->module->context);
    if (r == CUDA_SUCCESS)
        *out = function;
    else
        ct_object_release(&function->object);
    return r;
}

CUresult ct_function_lookup_current(CUfunction handle, bool is_valid, struct ct_function **out)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = is_valid ? ct_function_lookup(handle, context, out)
                 : ct_fail(CUDA_ERROR_INVALID_VALUE, "an argument of a function query is invalid");
    ct_context_release(context);
    return r;
}
