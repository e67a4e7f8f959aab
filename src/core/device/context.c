/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts in use: look-up, use counts, and errors of kernels. setup/context_setup.c creates and destroys a context's parts. */
#include "context.h"

#include "core/base/log.h"
#include "coredump.h"
#include "device_fault.h"
#include "green_context.h"
#include "running.h"

#include <stdio.h>

#define CT_CHANNEL "context"
#define NAME_BYTES 1024 /* longer names are truncated */

CUresult ct_context_use(struct ct_context *context)
{
    unsigned uses = atomic_load_explicit(&context->uses, memory_order_relaxed);

    if (!atomic_load_explicit(&context->active, memory_order_acquire)) /* pairs with bring_up */
        return ct_fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context %p is destroyed, or primary and not retained", context->object.handle);
    do {
        if (uses == 0)
            return ct_fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context %p is being destroyed", context->object.handle);
    } while (!atomic_compare_exchange_weak_explicit(&context->uses, &uses, uses + 1, memory_order_acquire, memory_order_relaxed));
    return CUDA_SUCCESS;
}

void ct_context_release(struct ct_context *context)
{
    /* acq_rel: the last release sees all writes of the others */
    if (context && atomic_fetch_sub_explicit(&context->uses, 1, memory_order_acq_rel) == 1)
        context->take_down(context);
}

CUresult ct_context_lookup(CUcontext handle, struct ct_context **out)
{
    struct ct_context *context = (struct ct_context *)ct_object_find_or_null(CT_OBJECT_CONTEXT, handle);
    struct ct_green_context *green = context ? NULL : ct_green_find_or_null(handle);
    CUresult r;

    if (green) {
        context = green->primary;
        ct_object_retain(&context->object);
        ct_green_release(green);
    }
    if (!context)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "%p is not a context", (void *)handle);
    r = ct_context_use(context);
    ct_object_release(&context->object); /* the use keeps the struct */
    if (r == CUDA_SUCCESS)
        *out = context;
    return r;
}

/* Whether an error leaves the context unusable. */
static bool is_sticky(CUresult result)
{
    static const int sticky[] = {
        CUDA_ERROR_ECC_UNCORRECTABLE,    CUDA_ERROR_ILLEGAL_ADDRESS,     CUDA_ERROR_LAUNCH_TIMEOUT,     CUDA_ERROR_ASSERT,
        CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,           CUDA_ERROR_LAUNCH_FAILED,       CUDA_ERROR_DEVICE_UNAVAILABLE,
    };

    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
        if (sticky[i] == (int)result)
            return true;
    return false;
}

static CUresult fault_of(const struct ct_context *context)
{
    switch ((enum ptx2spv_fault_code)(context->fault_words->code & PTX2SPV_FAULT_CODE_MASK)) {
    case PTX2SPV_FAULT_NONE:
        return CUDA_SUCCESS;
    case PTX2SPV_FAULT_TRAP:
        return CUDA_ERROR_LAUNCH_FAILED;
    case PTX2SPV_FAULT_ASSERT:
        return CUDA_ERROR_ASSERT;
    case PTX2SPV_FAULT_UNSUPPORTED:
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case PTX2SPV_FAULT_STACK:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return CUDA_ERROR_LAUNCH_FAILED; /* the word was overwritten */
}

uint32_t ct_context_stack_bytes(struct ct_context *context)
{
    const uint32_t most = context->device->info.stack_bytes ? context->device->info.stack_bytes : CT_STACK_BYTES_MAX;
    uint32_t bytes = PTX2SPV_STACK_BYTES;
    size_t limit;

    ct_mutex_lock(&context->lock);
    limit = context->limits[CU_LIMIT_STACK_SIZE];
    ct_mutex_unlock(&context->lock);
    while (bytes < most && bytes / 2 < limit)
        bytes *= 2;
    return bytes;
}

CUresult ct_context_error(const struct ct_context *context)
{
    CUresult sticky = (CUresult)atomic_load_explicit(&context->sticky_error, memory_order_relaxed); /* publishes no other data */

    return sticky == CUDA_SUCCESS ? (CUresult)atomic_load_explicit(&context->device->lost, memory_order_relaxed) : sticky;
}

/* A kernel that traps has written its tag; other failures are those of the device, which is asked what it was doing. */
static void log_failure(struct ct_context *context, CUresult error)
{
    const uint32_t tag = context->fault_words->code & ~PTX2SPV_FAULT_CODE_MASK;
    char name[NAME_BYTES], line[NAME_BYTES + 128];

    if (atomic_load(&context->device->lost) != CUDA_SUCCESS)
        return; /* its loss has been logged */
    if (fault_of(context) != CUDA_SUCCESS && context->name_kernel(context, tag, name, sizeof name))
        snprintf(line, sizeof line, "kernel %s failed with error %d%s", name, (int)error,
                 error == CUDA_ERROR_LAUNCH_FAILED         ? " (a trap)"
                 : error == CUDA_ERROR_ILLEGAL_INSTRUCTION ? " (an instruction that is not supported: see the warning from its compilation)"
                 : error == CUDA_ERROR_ILLEGAL_ADDRESS     ? " (a thread's stack is full: see CU_LIMIT_STACK_SIZE)"
                                                           : "");
    else {
        ct_running_describe(context->device, name, sizeof name);
        snprintf(line, sizeof line, "%s failed with error %d", name, (int)error);
    }
    ct_log(CT_LOG_WARN, "%s; the context cannot be used any more", line);
    ct_device_fault_log(context->device);
    ct_coredump_write(context, context->device, line);
}

CUresult ct_context_check(struct ct_context *context, CUresult result)
{
    void (*flush)(struct ct_context *) = atomic_load_explicit(&context->flush_prints, memory_order_acquire); /* pairs with print.c */
    void (*check)(struct ct_context *) =
        atomic_load_explicit(&context->flush_checks, memory_order_acquire); /* pairs with core/check/sites.c */
    CUresult error = is_sticky(result) ? result : fault_of(context);
    int none = CUDA_SUCCESS;

    if (flush) /* every call that waits or queries gets here; kernels' output is written before an error is reported */
        flush(context);
    if (check)
        check(context);
    if (error == CUDA_SUCCESS)
        return result;
    if (atomic_compare_exchange_strong(&context->sticky_error, &none, error))
        log_failure(context, error);
    return (CUresult)atomic_load(&context->sticky_error);
}

static atomic_bool any_cross_context_work; /* few programs have several contexts */

void ct_context_note_access(struct ct_context *context, CUcontext owner)
{
    if (!owner || owner == context->object.handle || atomic_load_explicit(&context->has_cross_context_work, memory_order_relaxed))
        return;
    atomic_store(&context->has_cross_context_work, true);
    atomic_store(&any_cross_context_work, true);
}

bool ct_contexts_have_cross_context_work(void)
{
    return atomic_load(&any_cross_context_work);
}
