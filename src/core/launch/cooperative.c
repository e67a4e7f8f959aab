/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative launches, and those with clusters of several blocks: grids whose blocks wait for each other. Neither Vulkan
 * nor OpenCL guarantees that blocks run concurrently, so the kernel is compiled such that a block which has to wait saves its state in memory
 * and ends (struct ptx2spv_grid), and is dispatched repeatedly until all blocks are done. The number of dispatches is not known in advance:
 * the stream's worker submits them to a separate queue and checks after each one, while the stream's queue waits for the worker, as for a
 * host function. */
#include "launch.h"
#include "core/base/log.h"
#include "core/check/check.h"
#include "core/device/block_shared.h"
#include "core/device/running.h"
#include "core/backing/memory_backing.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "launch"
#define PARAMS_OFFSET 64 /* offset of the parameters, which follow struct ptx2spv_grid */
#define STATES_ALIGN 256

_Static_assert(sizeof(struct ptx2spv_grid) <= PARAMS_OFFSET, "the parameters follow it");

struct cooperative {
    struct ct_context *context; /* borrowed: it remains in use while its stream has a queue */
    struct ct_queue *queue;
    struct ct_running running; /* the launches in `queue` */
    const char *name;          /* borrowed: the kernel exists until the launch is complete */
    struct ct_backing control; /* struct ptx2spv_grid, then the parameters */
    struct ct_backing states;
    struct ct_backing check; /* struct ct_check_block, if the kernel is checked */
    struct ct_backing slots; /* struct ptx2spv_slots: the blocks save and restore them with their state */
    struct ct_launch launch;
    bool may_wait;
};

static void destroy(struct cooperative *job)
{
    ct_running_remove(&job->running);
    job->context->backend->queues->destroy(job->queue);
    ct_backing_destroy(job->context, &job->control);
    ct_backing_destroy(job->context, &job->states);
    ct_backing_destroy(job->context, &job->slots);
    ct_backing_destroy(job->context, &job->check);
    free(job);
}

/* ---- on the worker ---- */

static CUresult dispatch(struct cooperative *job)
{
    const struct ct_backend *backend = job->context->backend;
    CUresult r;

    ct_running_begin(&job->running, job->name);
    r = ct_running_end(&job->running, backend->queues->launch(job->queue, &job->launch));
    if (r == CUDA_SUCCESS)
        r = backend->queues->await(job->queue, backend->queues->point(job->queue), UINT64_MAX, false);
    return ct_context_check(job->context, r);
}

static void run(void *user, CUresult status)
{
    struct cooperative *job = user;
    struct ptx2spv_grid *grid = job->control.host;
    bool waiting = status == CUDA_SUCCESS;

    while (waiting) {
        grid->waiting = 0;
        status = dispatch(job);
        grid->phase = 1;
        waiting = status == CUDA_SUCCESS && job->may_wait && grid->waiting > 0;
    }
    if (status != CUDA_SUCCESS) { /* any error: the launch has returned already, and its work is incomplete */
        ct_log(CT_LOG_WARN, "a cooperative launch failed before it was complete: error %d", (int)status);
        ct_context_check(job->context, CUDA_ERROR_LAUNCH_FAILED);
    }
    destroy(job);
}

/* ---- creation ---- */

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

static uint64_t block_threads(const struct ct_launch_shape *shape)
{
    return (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
}

static uint64_t cluster_blocks(const struct ct_launch_shape *shape)
{
    return (uint64_t)shape->cluster[0] * shape->cluster[1] * shape->cluster[2];
}

/* The stride between the states of blocks, in bytes. */
static uint64_t state_bytes(const struct ct_context *context, const struct ptx2spv_kernel_info *info, const struct ct_launch_shape *shape)
{
    const uint64_t threads = block_threads(shape);
    const struct ct_block_shared shared = ct_block_shared(info, shape->dynamic_shared_bytes, threads, context->device->info.shared_bytes);

    return round_up(PTX2SPV_GRID_HEADER_BYTES + shared.all_bytes + 4 * info->grid_thread_words * threads, 16);
}

static CUresult make_memory(struct cooperative *job, const struct ptx2spv_kernel_info *info, const struct ct_launch_shape *shape)
{
    const uint64_t stride = state_bytes(job->context, info, shape);
    const uint64_t barriers = round_up(PARAMS_OFFSET + info->param_bytes, sizeof(uint64_t));
    const uint64_t clusters = ct_launch_has_clusters(shape) ? ct_launch_blocks(shape) / cluster_blocks(shape) : 0;
    CUresult r = ct_backing_create_host(job->context, barriers + clusters * sizeof(uint64_t), CT_MEMORY_HOST, &job->control);

    if (r == CUDA_SUCCESS && job->may_wait)
        r = ct_backing_create_device(job->context, stride * ct_launch_blocks(shape), STATES_ALIGN, &job->states);
    if (r != CUDA_SUCCESS)
        return r;
    *(struct ptx2spv_grid *)job->control.host = (struct ptx2spv_grid){
        .states = job->states.address,
        .stride = stride,
        .cluster = {shape->cluster[0], shape->cluster[1], shape->cluster[2]},
        .cluster_barriers = job->control.address + barriers,
    };
    for (uint64_t i = 0; i < clusters; i++)
        ((uint64_t *)((char *)job->control.host + barriers))[i] = PTX2SPV_CLUSTER_BARRIER(cluster_blocks(shape) * block_threads(shape));
    return r;
}

/* Writes the kernel's parameters and the additional one, the address of the control block. */
static void place_params(struct cooperative *job, const struct ptx2spv_kernel_info *info, const void *params, uint32_t param_bytes)
{
    unsigned char *to = (unsigned char *)job->control.host + PARAMS_OFFSET;

    memset(to + param_bytes, 0, info->grid_param_offset - param_bytes);
    memcpy(to, params, param_bytes);
    memcpy(to + info->grid_param_offset, &job->control.address, sizeof job->control.address);
    ct_launch_place_number(job->context, info, to);
    job->launch.params = to;
    job->launch.params_address = job->control.address + PARAMS_OFFSET;
}

/* The job has its own slots, since its dispatches are not in the stream's queue. */
static CUresult make_slots(struct cooperative *job, const struct ptx2spv_kernel_info *info, const struct ct_launch_shape *shape)
{
    struct ptx2spv_slots slots = ct_launch_plan_slots(job->context, info, shape);
    CUresult r;

    if (ct_launch_has_clusters(shape)) { /* each block keeps its slot, which other blocks access while it waits */
        if (ct_launch_blocks(shape) > UINT32_MAX)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "shared memory of %llu blocks in clusters",
                           (unsigned long long)ct_launch_blocks(shape));
        slots.mask = (uint32_t)(ct_launch_blocks(shape) - 1);
    }
    r = ct_backing_create_device(job->context, ct_launch_slots_bytes(&slots), PTX2SPV_SLOT_ALIGN, &job->slots);

    if (r != CUDA_SUCCESS)
        return r;
    slots.address = job->slots.address;
    memcpy((unsigned char *)job->control.host + PARAMS_OFFSET + info->slots_param_offset, &slots, sizeof slots);
    job->launch.slice_blocks = slots.mask + 1;
    return CUDA_SUCCESS;
}

static CUresult make(struct ct_context *context, const struct ct_launch_code *code, const struct ct_launch_shape *shape, const char *name,
                     struct cooperative **out)
{
    struct cooperative *job = calloc(1, sizeof *job);
    const struct ct_queue_desc desc = {0};
    CUresult r;

    if (!job)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "cooperative launch");
    job->context = context;
    job->name = name;
    job->may_wait = code->info->grid_thread_words > 0;
    job->launch = ct_launch_of(code, shape);
    job->launch.fault = context->fault->memory->address;
    r = context->backend->queues->create(context->backend_device, &desc, &job->queue);
    if (r == CUDA_SUCCESS)
        ct_running_add(&job->running, context->device, job->queue);
    if (r == CUDA_SUCCESS)
        r = make_memory(job, code->info, shape);
    if (r == CUDA_SUCCESS && code->info->shared_in_memory)
        r = make_slots(job, code->info, shape);
    if (r == CUDA_SUCCESS)
        *out = job;
    else
        destroy(job);
    return r;
}

/* A checked kernel may access the barriers of the grid and of its clusters, and read the parameters between them. */
static CUresult place_check(struct cooperative *job, const struct ct_launch_code *code)
{
    const uint64_t params = job->control.address + PARAMS_OFFSET, barriers = params + round_up(code->info->param_bytes, sizeof(uint64_t));
    const struct ptx2spv_check_range extra[] = {
        {.start = job->control.address, .bytes = PARAMS_OFFSET},
        {.start = params, .bytes = code->info->param_bytes | PTX2SPV_CHECK_READ_ONLY},
        {.start = barriers, .bytes = job->control.address + job->control.memory->size_bytes - barriers},
    };
    unsigned char *const host_params = (unsigned char *)job->control.host + PARAMS_OFFSET;
    struct ct_check_block block;
    CUresult r;

    ct_check_note_launch(code->function);
    if (!code->info->check_param_offset)
        return CUDA_SUCCESS;
    r = ct_check_block_init(&block, code->function, host_params, extra, sizeof extra / sizeof *extra);
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_backing_create_host(job->context, ct_check_block_bytes(&block), CT_MEMORY_HOST, &job->check);
    if (r == CUDA_SUCCESS)
        ct_check_block_write(&block, job->check.host, job->check.address, host_params);
    ct_check_block_finish(&block);
    return r;
}

CUresult ct_launch_record_cooperative(struct ct_stream *stream, const struct ct_launch_code *code, const struct ct_launch_shape *shape,
                                      const void *params, const struct ptx2spv_kernel_decl *decl)
{
    struct cooperative *job;
    CUresult r = make(stream->context, code, shape, decl->name, &job);

    if (r != CUDA_SUCCESS)
        return r;
    place_params(job, code->info, params, decl->param_bytes);
    r = place_check(job, code);
    if (r == CUDA_SUCCESS)
        r = ct_stream_run_on_host_locked(stream, run, job);
    if (r != CUDA_SUCCESS)
        destroy(job);
    return r;
}
