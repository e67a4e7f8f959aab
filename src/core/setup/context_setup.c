/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: activation and destruction.
 *
 *            bring_up                   last use released
 *   DOWN ──────────────> ACTIVE ──> LEAVING ──────────────> DOWN (a primary one may be activated again)
 *                            end: no new call can enter
 *
 * Calls hold a use (device/context.c), so parts are never destroyed during a call. The thread that releases the last use destroys them:
 * usually the thread that destroys the context, sometimes one that was still inside a call. device->lock guards is_up and primary_retains;
 * a thread that retains a primary context in state LEAVING waits for primary_destroyed. */
#include "context_setup.h"

#include "core/backing/device_open.h"
#include "core/array/array.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/code/module.h"
#include "core/device/context_local.h"
#include "core/device/deferred_work.h"
#include "core/device/device.h"
#include "core/graph/capture_state.h"
#include "core/graph/recorded_slots.h"
#include "core/launch/recordings.h"
#include "core/check/check.h"
#include "core/code/heap.h"
#include "core/texture/texture_table.h"
#include "core/code/print.h"
#include "core/memory/memory.h"
#include "core/backing/memory_backing.h"
#include "core/pool/memory_pool.h"
#include "core/graphics/graphics_resource.h"
#include "core/share/external_memory.h"
#include "core/share/external_semaphore.h"
#include "core/stream/context_streams.h"
#include "core/stream/event.h"
#include "core/stream/stream.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "context"
#define CT_FAULT_BYTES 4096

static CUresult make_fault_memory(struct ct_context *context)
{
    struct ct_backing *fault = calloc(1, sizeof *fault);
    CUresult r;

    if (!fault)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory for the fault record");
    if ((r = ct_backing_create_host(context, CT_FAULT_BYTES, CT_MEMORY_HOST, fault)) != CUDA_SUCCESS) {
        free(fault);
        return r;
    }
    *(struct ptx2spv_fault *)fault->host = (struct ptx2spv_fault){0};
    context->fault = fault;
    context->fault_words = fault->host;
    return CUDA_SUCCESS;
}

static void drop_fault_memory(struct ct_context *context)
{
    if (context->fault)
        ct_backing_destroy(context, context->fault);
    free(context->fault);
    context->fault = NULL;
    context->fault_words = NULL;
}

/* Accepts NULL parts: also cleans up after a bring_up that failed partway. */
static void drop_parts(struct ct_context *context)
{
    ct_captures_end_in_context(context);
    ct_streams_await_all(context);
    ct_recordings_forget(context);
    ct_recorded_slots_destroy(context);
    ct_events_destroy_all(context);
    ct_memory_pools_forget(context); /* before the queues are destroyed, whose progress the pools query */
    ct_streams_destroy_all(context);
    context->legacy_stream = NULL;
    ct_print_flush(context);
    ct_check_end_context(context);
    ct_modules_destroy_all(context);
    ct_graphics_destroy_all(context);
    ct_arrays_destroy_all(context);
    ct_external_memories_destroy_all(context);
    ct_external_semaphores_destroy_all(context);
    if (context->arena) {
        ct_print_destroy(context);
        ct_heap_destroy(context);
        ct_textures_destroy(context);
    }
    ct_memory_arena_destroy(context->arena);
    context->arena = NULL;
    drop_fault_memory(context);
}

static void reset_settings(struct ct_context *context, unsigned flags)
{
    static const size_t limits[CU_LIMIT_MAX] = {
        /* CUDA's defaults */
        [CU_LIMIT_STACK_SIZE] = 1024,
        [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
    };

    for (int i = 0; i < CU_LIMIT_MAX; i++)
        context->limits[i] = limits[i];
    context->limits[CU_LIMIT_SHMEM_SIZE] = (size_t)ct_device_limit(context->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    context->flags = flags;
    context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    context->shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    context->attaches = 0;
    context->id = ct_process_new_id();
    atomic_store_explicit(&context->sticky_error, CUDA_SUCCESS, memory_order_relaxed); /* no other thread has access to the context yet */
}

/* Creates the parts of a context that is DOWN; the device must be open. */
static CUresult bring_up(struct ct_context *context, unsigned flags)
{
    CUresult r;

    context->backend_device = context->device->opened;
    reset_settings(context, flags);
    if ((r = make_fault_memory(context)) != CUDA_SUCCESS || (r = ct_memory_arena_create(context, &context->arena)) != CUDA_SUCCESS ||
        (r = ct_stream_create_legacy(context, &context->legacy_stream)) != CUDA_SUCCESS) {
        drop_parts(context);
        return r;
    }
    context->is_up = true;
    ct_object_retain(&context->object); /* until take_down: a use also keeps the struct alive */
    atomic_store_explicit(&context->uses, 1, memory_order_relaxed);
    atomic_store_explicit(&context->active, true, memory_order_release); /* pairs with the acquire in ct_context_use */
    return CUDA_SUCCESS;
}

static void take_down(struct ct_context *context)
{
    struct ct_device *device = context->device;

    ct_context_local_end(context);
    drop_parts(context);
    ct_log(CT_LOG_DEBUG, "context %llu is destroyed", context->id);
    ct_mutex_lock(&device->lock);
    context->is_up = false;
    pthread_cond_broadcast(&device->primary_destroyed);
    ct_mutex_unlock(&device->lock);
    ct_object_release(&context->object);
}

/* ACTIVE to LEAVING. False: another thread was first. */
static bool end(struct ct_context *context)
{
    if (!atomic_exchange_explicit(&context->active, false, memory_order_acq_rel))
        return false;
    ct_context_release(context);
    return true;
}

CUresult ct_context_check_flags(unsigned flags)
{
    unsigned scheduling = flags & CU_CTX_SCHED_MASK;

    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK || (scheduling & (scheduling - 1)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid context flags 0x%x", flags);
    return CUDA_SUCCESS;
}

static void free_context(struct ct_object *object)
{
    struct ct_context *context = (struct ct_context *)object;

    assert(!context->is_up);
    ct_context_local_finish(context);
    ct_mutex_finish(&context->lock);
    free(context->coredump);
    free(context);
}

/* Creates a context that is DOWN, with one reference. */
static CUresult make(struct ct_device *device, bool is_primary, unsigned api_version, struct ct_context **out)
{
    struct ct_context *context = calloc(1, sizeof *context);

    if (!context)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory for a context");
    ct_object_init(&context->object, CT_OBJECT_CONTEXT, free_context);
    ct_mutex_init(&context->lock, CT_RANK_CONTEXT);
    context->device = device;
    context->backend = device->backend;
    context->is_primary = is_primary;
    context->api_version = api_version;
    context->take_down = take_down;
    context->name_kernel = ct_modules_name_kernel;
    *out = context;
    return CUDA_SUCCESS;
}

CUresult ct_context_create(struct ct_device *device, unsigned flags, unsigned api_version, CUcontext *out)
{
    struct ct_context *context;
    CUresult r = ct_device_open(device);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = make(device, false, api_version, &context)) != CUDA_SUCCESS)
        return r;
    r = bring_up(context, flags);
    if (r == CUDA_SUCCESS) {
        r = ct_object_publish(&context->object);
        if (r == CUDA_SUCCESS)
            *out = context->object.handle;
        else
            end(context);
    }
    ct_object_release(&context->object);
    return r;
}

CUresult ct_context_destroy(CUcontext handle)
{
    struct ct_context *context;
    CUresult r = ct_context_lookup(handle, &context);

    if (r != CUDA_SUCCESS)
        return r;
    if (context->is_primary)
        r = ct_fail(CUDA_ERROR_INVALID_CONTEXT, "a primary context must be released, not destroyed");
    else {
        ct_deferred_work_await(context);
        if (ct_object_unpublish(&context->object) == CUDA_SUCCESS)
            end(context);
        else
            r = CUDA_ERROR_INVALID_CONTEXT; /* another thread was first */
    }
    if (r == CUDA_SUCCESS && ct_context_top_or_null() == context)
        ct_context_pop(NULL);
    ct_context_release(context);
    return r;
}

CUresult ct_context_make_primary(struct ct_device *device, struct ct_context **out)
{
    struct ct_context *context;
    CUresult r = make(device, true, 3020, &context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_object_publish(&context->object);
    if (r == CUDA_SUCCESS)
        *out = context;
    else
        ct_object_release(&context->object);
    return r;
}

void ct_context_unmake_primary(struct ct_context *context)
{
    if (!context)
        return;
    ct_object_unpublish(&context->object);
    ct_object_release(&context->object);
}

static CUresult bring_primary_up_locked(struct ct_device *device)
{
    CUresult r;

    while (device->primary->is_up && !atomic_load(&device->primary->active))
        ct_mutex_wait(&device->lock, &device->primary_destroyed);
    if (device->primary->is_up)
        return CUDA_SUCCESS;
    r = ct_device_open_locked(device);
    return r == CUDA_SUCCESS ? bring_up(device->primary, device->primary_flags) : r;
}

CUresult ct_context_retain_primary(struct ct_device *device, CUcontext *out)
{
    CUresult r;

    ct_mutex_lock(&device->lock);
    r = bring_primary_up_locked(device);
    if (r == CUDA_SUCCESS) {
        device->primary_retains++;
        *out = device->primary->object.handle;
    }
    ct_mutex_unlock(&device->lock);
    return r;
}

static bool has_one_retain(struct ct_device *device)
{
    bool has_one;

    ct_mutex_lock(&device->lock);
    has_one = device->primary_retains == 1;
    ct_mutex_unlock(&device->lock);
    return has_one;
}

CUresult ct_context_release_primary(struct ct_device *device)
{
    bool last;

    if (has_one_retain(device))
        ct_deferred_work_await(device->primary);
    ct_mutex_lock(&device->lock);
    if (device->primary_retains == 0) {
        ct_mutex_unlock(&device->lock);
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "the primary context of device %d is not retained", device->ordinal);
    }
    last = --device->primary_retains == 0;
    /* changed under the lock, so that a thread that retains it from now on finds it LEAVING and waits */
    last = last && atomic_exchange_explicit(&device->primary->active, false, memory_order_acq_rel);
    ct_mutex_unlock(&device->lock);
    if (last)
        ct_context_release(device->primary);
    return CUDA_SUCCESS;
}

CUresult ct_context_reset_primary(struct ct_device *device)
{
    ct_deferred_work_await(device->primary);
    end(device->primary);
    return CUDA_SUCCESS;
}
