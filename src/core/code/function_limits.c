/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a function's blocks and of their shared memory. */
#include "function.h"

#include "core/base/log.h"
#include "core/device/device.h"

#define CT_CHANNEL "function"

/* The threads of a block that a dimension directive specifies; 0: the directive is missing. */
static unsigned threads_of(const uint32_t size[3])
{
    uint64_t threads = size[0];

    for (int i = 1; i < 3; i++)
        threads = threads * (size[i] ? size[i] : 1) > UINT32_MAX ? UINT32_MAX : threads * (size[i] ? size[i] : 1);
    return (unsigned)threads;
}

unsigned ct_function_block_limit(const struct ct_function *function)
{
    const struct ct_device *device = function->module->context->device;
    unsigned limit = (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    unsigned requested = threads_of(function->decl->req_ntid);

    if (!requested)
        requested = threads_of(function->decl->max_ntid);
    return requested && requested < limit ? requested : limit;
}

/* The remainder of a block's shared memory of `bytes` bytes after the static part. */
static unsigned remaining_shared(const struct ct_function *function, unsigned bytes)
{
    unsigned used = function->info.static_shared_bytes;

    return used < bytes ? bytes - used : 0;
}

unsigned ct_function_dynamic_shared_limit(const struct ct_function *function)
{
    int requested = atomic_load_explicit(&function->max_dynamic_shared, memory_order_relaxed); /* a single value, which orders nothing */

    if (requested >= 0)
        return (unsigned)requested;
    return remaining_shared(function,
                            (unsigned)ct_device_limit(function->module->context->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
}

unsigned ct_function_shared_base(const struct ct_function *function)
{
    const struct ptx2spv_kernel_info *info = &function->info;

    return info->dynamic_shared_offset > info->static_shared_bytes ? info->dynamic_shared_offset : info->static_shared_bytes;
}

unsigned ct_function_shared_limit(const struct ct_function *function)
{
    const unsigned bytes =
        (unsigned)ct_device_limit(function->module->context->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    const unsigned requested = ct_function_shared_base(function) + ct_function_dynamic_shared_limit(function);

    return requested > bytes ? requested : bytes;
}

CUresult ct_function_set_dynamic_shared(struct ct_function *function, int value, unsigned opt_in_bytes)
{
    CUresult r = ct_function_compile(function);
    unsigned limit;

    if (r != CUDA_SUCCESS)
        return r;
    limit = remaining_shared(function, opt_in_bytes);
    if (value < 0 || (unsigned)value > limit)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "kernel %s cannot have %d bytes of dynamic shared memory, %u at most",
                       function->decl->name, value, limit);
    atomic_store_explicit(&function->max_dynamic_shared, value, memory_order_relaxed);
    return CUDA_SUCCESS;
}
