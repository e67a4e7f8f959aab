/* SPDX-License-Identifier: Apache-2.0 */
/* Recording of commands: copies, fills, launches and timestamps.
 *
 * A command that is too large for one batch (many bytes, a grid of many pieces) is recorded in several, each with a point of its own. */
#include "queue.h"

#include "core/base/log.h"
#include "image.h"
#include "memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "queue"
#define COPY_CHUNK 256 /* regions in one vkCmdCopyBuffer */
/* Blocks of a grid in one submission. Drivers abort a submission after 2 s or more: with 500 resident blocks this leaves 1 ms per block.
 * A smaller number would slow down launches of ordinary kernels; each piece of a larger grid takes a millisecond or more. */
#define SUBMIT_GROUPS (UINT64_C(1) << 20)

_Static_assert(sizeof(struct ptx2spv_system_block) == PTX2SPV_PARAMS_OFFSET, "the parameters follow the system block");

/* ---- copies ---- */

/* Collects regions and records them in chunks. */
struct copy {
    struct ct_queue *queue;
    struct ct_vk_batch *batch;
    const struct ct_vk_memory *to, *from;
    VkBuffer dst, src; /* of the regions */
    unsigned n;
    VkBufferCopy regions[COPY_CHUNK];
};

static void copy_flush(struct copy *copy)
{
    if (copy->n)
        copy->queue->device->vk.vkCmdCopyBuffer(copy->batch->commands, copy->src, copy->dst, copy->n, copy->regions);
    copy->n = 0;
}

/* Adds bytes that lie in a single piece of memory on both sides. */
static void add_region(struct copy *copy, const struct ct_vk_piece *to, const struct ct_vk_piece *from, const VkBufferCopy *region)
{
    if (copy->n == COPY_CHUNK || copy->dst != to->buffer || copy->src != from->buffer)
        copy_flush(copy);
    copy->dst = to->buffer;
    copy->src = from->buffer;
    copy->regions[copy->n++] = *region;
    copy->batch->cost_bytes += region->size;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Copies contiguous bytes, in parts that fit into a batch. */
static CUresult copy_bytes(struct copy *copy, uint64_t dst, uint64_t src, uint64_t size)
{
    while (size) {
        const struct ct_vk_piece *to = ct_vk_memory_piece(copy->to, dst), *from = ct_vk_memory_piece(copy->from, src);
        uint64_t into = dst - to->offset, out_of = src - from->offset;
        uint64_t part = min_u64(min_u64(size, CT_VK_BATCH_BYTES), min_u64(to->size_bytes - into, from->size_bytes - out_of));
        CUresult r;

        if (copy->batch->cost_bytes >= CT_VK_BATCH_BYTES) {
            copy_flush(copy);
            (void)ct_vk_command_end_locked(copy->queue, CUDA_SUCCESS); /* the batch is full: the next begin uses another batch, or fails */
            if ((r = ct_vk_command_begin_locked(copy->queue, &copy->batch)) != CUDA_SUCCESS)
                return r;
        }
        add_region(copy, to, from, &(VkBufferCopy){from->buffer_offset + out_of, to->buffer_offset + into, part});
        dst += part;
        src += part;
        size -= part;
    }
    return CUDA_SUCCESS;
}

/* Rows that are contiguous on both sides become one row; likewise slices. */
static struct ct_copy_region merge(struct ct_copy_region region)
{
    if (region.row_bytes == region.dst_pitch && region.row_bytes == region.src_pitch) {
        region.row_bytes *= region.rows;
        region.rows = 1;
    }
    if (region.rows == 1 && region.row_bytes == region.dst_slice && region.row_bytes == region.src_slice) {
        region.row_bytes *= region.slices;
        region.slices = 1;
    }
    return region;
}

static CUresult copy_region(struct copy *copy, struct ct_copy_region region)
{
    CUresult r = CUDA_SUCCESS;

    region = merge(region);
    for (uint64_t slice = 0; slice < region.slices; slice++) {
        uint64_t dst = region.dst_offset + slice * region.dst_slice, src = region.src_offset + slice * region.src_slice;

        for (uint64_t row = 0; row < region.rows && r == CUDA_SUCCESS; row++)
            r = copy_bytes(copy, dst + row * region.dst_pitch, src + row * region.src_pitch, region.row_bytes);
    }
    return r;
}

/* offset + (slices - 1) * slice + (rows - 1) * pitch + row_bytes <= size, without intermediate overflow. */
static bool fits(uint64_t offset, const struct ct_copy_region *region, uint64_t pitch, uint64_t slice, uint64_t size)
{
    uint64_t rows, slices, end;

    return !__builtin_mul_overflow(region->rows - 1, pitch, &rows) && !__builtin_mul_overflow(region->slices - 1, slice, &slices) &&
           !__builtin_add_overflow(rows, slices, &end) && !__builtin_add_overflow(end, offset, &end) &&
           !__builtin_add_overflow(end, region->row_bytes, &end) && end <= size;
}

static CUresult check_regions(const struct ct_memory *dst, const struct ct_memory *src, const struct ct_copy_region *regions, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct ct_copy_region *region = &regions[i];

        if (!region->rows || !region->slices || !fits(region->dst_offset, region, region->dst_pitch, region->dst_slice, dst->size_bytes) ||
            !fits(region->src_offset, region, region->src_pitch, region->src_slice, src->size_bytes))
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "region %u of a copy exceeds its memory", i);
    }
    return CUDA_SUCCESS;
}

static CUresult copy_locked(struct copy *copy, const struct ct_copy_region *regions, unsigned n)
{
    CUresult r = ct_vk_command_begin_locked(copy->queue, &copy->batch);

    for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++)
        r = copy_region(copy, regions[i]);
    copy_flush(copy);
    return r;
}

CUresult ct_vk_queue_copy(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                          unsigned n_regions)
{
    struct copy copy;
    CUresult r;

    if (dst->texels || src->texels)
        return ct_vk_queue_copy_image(queue, dst, src, regions, n_regions);
    if ((r = check_regions(dst, src, regions, n_regions)) != CUDA_SUCCESS)
        return r;
    copy.queue = queue;
    copy.to = (const struct ct_vk_memory *)dst;
    copy.from = (const struct ct_vk_memory *)src;
    copy.dst = copy.src = VK_NULL_HANDLE;
    copy.n = 0;
    ct_mutex_lock(&queue->scheduler->lock);
    r = ct_vk_command_end_locked(queue, copy_locked(&copy, regions, n_regions));
    ct_mutex_unlock(&queue->scheduler->lock);
    return r;
}

static CUresult fill_locked(struct ct_queue *queue, const struct ct_vk_memory *dst, uint64_t offset, uint64_t size_bytes, uint32_t value)
{
    struct ct_vk_batch *batch;
    CUresult r = ct_vk_command_begin_locked(queue, &batch);

    if (r != CUDA_SUCCESS)
        return r;
    batch->cost_bytes += size_bytes;
    while (size_bytes) {
        const struct ct_vk_piece *piece = ct_vk_memory_piece(dst, offset);
        uint64_t into = offset - piece->offset, part = min_u64(size_bytes, ((piece->size_bytes + 3) & ~UINT64_C(3)) - into);

        queue->device->vk.vkCmdFillBuffer(batch->commands, piece->buffer, piece->buffer_offset + into, part, value);
        offset += part;
        size_bytes -= part;
    }
    return CUDA_SUCCESS;
}

CUresult ct_vk_queue_fill(struct ct_queue *queue, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes, uint32_t value)
{
    CUresult r;

    if ((offset | size_bytes) & 3 || offset > dst->size_bytes || size_bytes > ((dst->size_bytes + 3) & ~UINT64_C(3)) - offset)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "fill of %llu bytes at %llu in memory of %llu", (unsigned long long)size_bytes,
                       (unsigned long long)offset, (unsigned long long)dst->size_bytes);
    ct_mutex_lock(&queue->scheduler->lock);
    r = ct_vk_command_end_locked(queue, fill_locked(queue, (const struct ct_vk_memory *)dst, offset, size_bytes, value));
    ct_mutex_unlock(&queue->scheduler->lock);
    return r;
}

/* ---- launches ---- */

/* A launch that is being recorded into a batch of a queue, or into a recording. */
struct dispatch {
    struct ct_backend_device *device;
    VkCommandBuffer commands;
    struct ct_queue *queue; /* NULL: a recording */
    struct ct_vk_batch *batch;
    struct ct_vk_bound *bound; /* what the recording has bound */
    struct ct_vk_pipeline pipeline;
    struct ct_kernel_variant *variant; /* of a queue's launch */
    uint64_t groups;                   /* in this batch */
    uint32_t slice_blocks;             /* of struct ct_launch; 0: any number of blocks may run at the same time */
    _Alignas(16) unsigned char push[CT_VK_MAX_PUSH_BYTES];
};

/* A kernel with slots always gets the form for split grids, since the number of slots is not known when it is prepared. */
static bool needs_split(const struct ct_backend_device *device, const struct ct_launch *launch)
{
    const uint32_t *grid = launch->grid;

    if (ct_vk_kernel_info(launch->kernel)->shared_in_memory)
        return true;
    if (!grid[2])
        return false; /* find_variant rejects it */
    for (int i = 0; i < 3; i++)
        if (grid[i] > device->physical->max_group_count[i])
            return true;
    return (uint64_t)grid[0] * grid[1] > SUBMIT_GROUPS / grid[2];
}

/* The maximum size of a piece in each dimension: x first, so that a piece consists of consecutive blocks in CUDA's order if possible. */
static void choose_piece(const struct dispatch *dispatch, const uint32_t grid[3], uint32_t out[3])
{
    const struct ct_backend_device *device = dispatch->device;
    uint64_t room = dispatch->slice_blocks ? dispatch->slice_blocks : SUBMIT_GROUPS;

    for (int i = 0; i < 3; i++) {
        uint32_t most = device->physical->max_group_count[i];

        most = most < room ? most : (uint32_t)room;
        out[i] = grid[i] < most ? grid[i] : most;
        room = room / out[i] ? room / out[i] : 1;
    }
}

static void fill_push_constants(const struct ct_launch *launch, struct dispatch *dispatch)
{
    const struct ptx2spv_kernel_info *info = ct_vk_kernel_info(launch->kernel);
    struct ptx2spv_system_block system = {
        .image_address = launch->image.v, .fault_address = launch->fault.v, .params_address = launch->params_address};

    memcpy(system.nctaid, launch->grid, sizeof system.nctaid);
    memset(dispatch->push, 0, dispatch->pipeline.push_bytes);
    memcpy(dispatch->push, &system, sizeof system);
    if (!info->params_in_buffer && info->param_bytes)
        memcpy(dispatch->push + PTX2SPV_PARAMS_OFFSET, launch->params, info->param_bytes);
}

static void bind_textures(const struct dispatch *dispatch)
{
    if (dispatch->pipeline.textures)
        dispatch->device->vk.vkCmdBindDescriptorSets(dispatch->commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch->pipeline.layout, 0, 1,
                                                     &dispatch->pipeline.textures, 0, NULL);
}

static void bind(const struct dispatch *dispatch)
{
    const struct ct_backend_device *device = dispatch->device;

    device->vk.vkCmdBindPipeline(dispatch->commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch->pipeline.handle);
    device->vk.vkCmdPushConstants(dispatch->commands, dispatch->pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                  dispatch->pipeline.push_bytes, dispatch->push);
    bind_textures(dispatch);
}

/* The same without what is bound already. */
static void bind_changes(const struct dispatch *dispatch)
{
    struct ct_vk_bound *bound = dispatch->bound;
    uint32_t first = 0, end = dispatch->pipeline.push_bytes;

    if (bound->pipeline.handle != dispatch->pipeline.handle)
        dispatch->device->vk.vkCmdBindPipeline(dispatch->commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch->pipeline.handle);
    while (bound->pipeline.layout == dispatch->pipeline.layout && first < end && !memcmp(bound->push + first, dispatch->push + first, 4))
        first += 4;
    while (bound->pipeline.layout == dispatch->pipeline.layout && first < end &&
           !memcmp(bound->push + end - 4, dispatch->push + end - 4, 4))
        end -= 4;
    if (first < end)
        dispatch->device->vk.vkCmdPushConstants(dispatch->commands, dispatch->pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, first,
                                                end - first, dispatch->push + first);
    if (bound->pipeline.layout != dispatch->pipeline.layout)
        bind_textures(dispatch);
    bound->pipeline = dispatch->pipeline;
    memcpy(bound->push, dispatch->push, dispatch->pipeline.push_bytes);
}

static CUresult dispatch_begin_locked(struct dispatch *dispatch)
{
    CUresult r = ct_vk_command_begin_locked(dispatch->queue, &dispatch->batch);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_vk_variants_keep(&dispatch->batch->variants, dispatch->variant)) != CUDA_SUCCESS)
        return r;
    dispatch->groups = 0;
    dispatch->batch->has_kernel = true;
    dispatch->commands = dispatch->batch->commands;
    bind(dispatch);
    return CUDA_SUCCESS;
}

/* Lets the next piece of a grid begin in another batch if this one is full. */
static CUresult make_room_for_piece_locked(struct dispatch *dispatch, uint64_t groups)
{
    if (!dispatch->queue || !dispatch->groups || dispatch->groups + groups <= SUBMIT_GROUPS)
        return CUDA_SUCCESS;
    dispatch->batch->closed = true;
    (void)ct_vk_command_end_locked(dispatch->queue, CUDA_SUCCESS); /* the next begin fails if the device is lost */
    return dispatch_begin_locked(dispatch);
}

/* Dispatches one piece of a split grid. */
static CUresult dispatch_piece_locked(struct dispatch *dispatch, const uint32_t offset[3], const uint32_t count[3])
{
    const uint32_t at = offsetof(struct ptx2spv_system_block, ctaid_offset);
    const struct ct_backend_device *device = dispatch->device;
    uint64_t groups = (uint64_t)count[0] * count[1] * count[2];
    CUresult r = make_room_for_piece_locked(dispatch, groups);

    if (r != CUDA_SUCCESS)
        return r;
    if (dispatch->groups && dispatch->slice_blocks) /* the blocks use the slots of the slice before */
        ct_vk_record_barrier(device, dispatch->commands);
    dispatch->groups += groups;
    device->vk.vkCmdPushConstants(dispatch->commands, dispatch->pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, at, 3 * sizeof *offset,
                                  offset);
    device->vk.vkCmdDispatch(dispatch->commands, count[0], count[1], count[2]);
    return CUDA_SUCCESS;
}

/* The size of the piece at `offset`: it ends at its own limit or the grid's. */
static uint32_t piece_of(uint32_t grid, uint32_t offset, uint32_t limit)
{
    return grid - offset < limit ? grid - offset : limit;
}

static CUresult dispatch_split_locked(struct dispatch *dispatch, const uint32_t grid[3])
{
    uint32_t limit[3], at[3], count[3];
    CUresult r = CUDA_SUCCESS;

    choose_piece(dispatch, grid, limit);
    for (at[2] = 0; at[2] < grid[2]; at[2] += count[2]) {
        count[2] = piece_of(grid[2], at[2], limit[2]);
        for (at[1] = 0; at[1] < grid[1]; at[1] += count[1]) {
            count[1] = piece_of(grid[1], at[1], limit[1]);
            for (at[0] = 0; at[0] < grid[0] && r == CUDA_SUCCESS; at[0] += count[0]) {
                count[0] = piece_of(grid[0], at[0], limit[0]);
                r = dispatch_piece_locked(dispatch, at, count);
            }
            if (r != CUDA_SUCCESS)
                return r;
        }
    }
    return r;
}

static CUresult dispatch_grid_locked(struct dispatch *dispatch, const struct ct_launch *launch)
{
    const uint32_t *grid = launch->grid;

    if (needs_split(dispatch->device, launch))
        return dispatch_split_locked(dispatch, grid);
    dispatch->device->vk.vkCmdDispatch(dispatch->commands, grid[0], grid[1], grid[2]);
    return CUDA_SUCCESS;
}

static CUresult launch_locked(struct dispatch *dispatch, const struct ct_launch *launch)
{
    CUresult r = dispatch_begin_locked(dispatch);

    return r == CUDA_SUCCESS ? dispatch_grid_locked(dispatch, launch) : r;
}

static CUresult find_variant(const struct ct_backend_device *device, const struct ct_launch *launch, struct ct_kernel_variant **out)
{
    const uint32_t *grid = launch->grid, *max = device->info->max_grid;

    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > max[0] || grid[1] > max[1] || grid[2] > max[2])
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "grid of %u x %u x %u blocks", grid[0], grid[1], grid[2]);
    return ct_vk_kernel_variant(launch, needs_split(device, launch), out);
}

CUresult ct_vk_kernel_prepare(const struct ct_launch *launch, struct ct_kernel_variant **out)
{
    return find_variant(ct_vk_kernel_device(launch->kernel), launch, out);
}

static CUresult launch_variant(struct ct_queue *queue, const struct ct_launch *launch, struct ct_kernel_variant *variant)
{
    struct dispatch dispatch;
    CUresult r = ct_vk_kernel_pipeline(launch->kernel, variant, &dispatch.pipeline);

    if (r != CUDA_SUCCESS)
        return r;
    dispatch.variant = variant;
    dispatch.device = queue->device;
    dispatch.queue = queue;
    dispatch.slice_blocks = launch->slice_blocks;
    fill_push_constants(launch, &dispatch);
    ct_mutex_lock(&queue->scheduler->lock);
    r = ct_vk_command_end_locked(queue, launch_locked(&dispatch, launch));
    ct_mutex_unlock(&queue->scheduler->lock);
    return r;
}

CUresult ct_vk_queue_launch(struct ct_queue *queue, const struct ct_launch *launch)
{
    struct ct_kernel_variant *own;
    CUresult r;

    if ((r = ct_vk_check_room(queue->device)) != CUDA_SUCCESS)
        return r;
    if (launch->variant)
        return launch_variant(queue, launch, launch->variant);
    if ((r = find_variant(queue->device, launch, &own)) != CUDA_SUCCESS)
        return r;
    r = launch_variant(queue, launch, own);
    ct_vk_variant_release(own);
    return r;
}

CUresult ct_vk_record_launch(struct ct_backend_device *device, VkCommandBuffer commands, const struct ct_launch *launch,
                             struct ct_vk_bound *bound)
{
    struct dispatch dispatch;
    CUresult r = ct_vk_kernel_pipeline(launch->kernel, launch->variant, &dispatch.pipeline);

    if (r != CUDA_SUCCESS)
        return r;
    dispatch.device = device;
    dispatch.queue = NULL;
    dispatch.commands = commands;
    dispatch.bound = bound;
    dispatch.groups = 0;
    dispatch.slice_blocks = launch->slice_blocks;
    fill_push_constants(launch, &dispatch);
    bind_changes(&dispatch);
    if (needs_split(device, launch)) /* each piece changes the constants */
        bound->pipeline.layout = VK_NULL_HANDLE;
    return dispatch_grid_locked(&dispatch, launch);
}

/* ---- timestamps ---- */

CUresult ct_vk_queue_timestamp(struct ct_queue *queue, struct ct_timestamp *timestamp)
{
    struct ct_vk_batch *batch;
    CUresult r;

    ct_mutex_lock(&queue->scheduler->lock);
    if ((r = ct_vk_command_begin_locked(queue, &batch)) == CUDA_SUCCESS)
        ct_vk_timestamp_record(timestamp, batch->commands);
    r = ct_vk_command_end_locked(queue, r);
    ct_mutex_unlock(&queue->scheduler->lock);
    return r;
}
