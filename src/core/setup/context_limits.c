/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a context (Driver API: cuCtxSetLimit). Limits of parts that already exist also resize these parts. */
#include "context_limits.h"

#include "core/base/log.h"
#include "core/code/heap.h"
#include "core/code/print.h"

#define CT_CHANNEL "context"

/* Which operations a limit permits. Limits of features that no device here has are UNSUPPORTED: kernels that launch kernels, a persisting
 * part of the L2 cache. Compute in graphics (CIG) is a property of contexts: in other contexts NVIDIA's driver returns its limits, but does
 * not permit setting them (580, CUDA 13.0); there CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED is unsupported. */
enum limit_use { LIMIT_UNSUPPORTED, LIMIT_FIXED, LIMIT_FREE };
static const enum limit_use limit_uses[CU_LIMIT_MAX] = {
    [CU_LIMIT_STACK_SIZE] = LIMIT_FREE,       [CU_LIMIT_PRINTF_FIFO_SIZE] = LIMIT_FREE,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = LIMIT_FREE, [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = LIMIT_FREE,
    [CU_LIMIT_SHMEM_SIZE] = LIMIT_FIXED,      [CU_LIMIT_CIG_ENABLED] = LIMIT_FIXED,
};

static CUresult check_limit(CUlimit limit)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "there is no limit %d", (int)limit);
    return limit_uses[limit] == LIMIT_UNSUPPORTED ? ct_fail(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit %d is not supported", (int)limit)
                                                  : CUDA_SUCCESS;
}

/* Rounds the size of the stack, as NVIDIA's driver does (580), and limits it to what the device's driver compiles. */
static CUresult adjust_stack(const struct ct_context *context, size_t *bytes)
{
    enum { UNIT_BYTES = 16 };
    const size_t most = context->device->info.stack_bytes;

    if (*bytes > CT_STACK_BYTES_MAX)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a thread's stack has at most %u bytes, not %zu", CT_STACK_BYTES_MAX, *bytes);
    *bytes = (*bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
    if (most && *bytes > most)
        *bytes = most;
    return CUDA_SUCCESS;
}

CUresult ct_context_set_limit(struct ct_context *context, CUlimit limit, size_t value)
{
    CUresult r = check_limit(limit);

    if (r != CUDA_SUCCESS)
        return r;
    if (limit_uses[limit] == LIMIT_FIXED)
        return ct_fail(CUDA_ERROR_NOT_PERMITTED, "limit %d can be set only in a compute-in-graphics context", (int)limit);
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the L2 fetch granularity must be at most 128 bytes, not %zu", value);
    if (limit == CU_LIMIT_STACK_SIZE && (r = adjust_stack(context, &value)) != CUDA_SUCCESS)
        return r;
    if (limit == CU_LIMIT_PRINTF_FIFO_SIZE && (r = ct_print_resize(context, &value)) != CUDA_SUCCESS)
        return r;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && (r = ct_heap_resize(context, &value)) != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&context->lock);
    context->limits[limit] = value;
    ct_mutex_unlock(&context->lock);
    return CUDA_SUCCESS;
}

CUresult ct_context_get_limit(struct ct_context *context, CUlimit limit, size_t *out)
{
    CUresult r = check_limit(limit);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&context->lock);
    *out = context->limits[limit];
    ct_mutex_unlock(&context->lock);
    return CUDA_SUCCESS;
}
