/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a queue: copies, fills, launches, timestamps.
 *
 * If the device executes host functions in a queue's order (CPU runtimes), fills and copies of many rows are one such function: one
 * command for any number of rows (2 us, compared with 1.7 us per row on Intel's runtime), and PoCL 6.0 crashes in clEnqueueSVMMemFill on
 * memory that is not from clSVMAlloc. Contiguous copies use clEnqueueSVMMemcpy, which Intel's runtime executes on all cores. */
#include "queue.h"

#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "queue"
#define COPY_CHUNK 64 /* regions in one host function: they are passed by value */

_Static_assert(sizeof(struct ptx2spv_opencl_block) == PTX2SPV_OPENCL_PARAMS_OFFSET, "the parameters follow the system's part");

static CUresult enqueue_marker(struct ct_queue *queue, cl_event *out)
{
    return ct_cl_result(queue->device->api->clEnqueueMarkerWithWaitList(queue->handle, 0, NULL, out), "clEnqueueMarkerWithWaitList");
}

/* ---- copies ---- */

/* The argument of a host function. */
struct copy {
    unsigned char *dst;
    const unsigned char *src;
    unsigned n;
    struct ct_copy_region regions[COPY_CHUNK];
};

static size_t copy_bytes(unsigned n)
{
    return offsetof(struct copy, regions) + n * sizeof(struct ct_copy_region);
}

/* Rows that are contiguous on both sides become one row; so do slices. */
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

/* offset + (slices - 1) * slice + (rows - 1) * pitch + row_bytes <= size, without overflow in between. */
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
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "region %u of a copy is outside its memory", i);
    }
    return CUDA_SUCCESS;
}

typedef CUresult (*row_fn)(void *user, uint64_t dst_offset, uint64_t src_offset, uint64_t bytes);

static CUresult for_each_row(const struct ct_copy_region *region, row_fn row, void *user)
{
    CUresult r = CUDA_SUCCESS;

    for (uint64_t z = 0; z < region->slices; z++) {
        uint64_t dst = region->dst_offset + z * region->dst_slice, src = region->src_offset + z * region->src_slice;

        for (uint64_t y = 0; y < region->rows && r == CUDA_SUCCESS; y++)
            r = row(user, dst + y * region->dst_pitch, src + y * region->src_pitch, region->row_bytes);
    }
    return r;
}

static CUresult copy_row_on_host(void *user, uint64_t dst_offset, uint64_t src_offset, uint64_t bytes)
{
    const struct copy *copy = user;

    memcpy(copy->dst + dst_offset, copy->src + src_offset, bytes);
    return CUDA_SUCCESS;
}

static void CL_CALLBACK run_copy(void *argument)
{
    struct copy *copy = argument;

    for (unsigned i = 0; i < copy->n; i++)
        (void)for_each_row(&copy->regions[i], copy_row_on_host, copy);
}

static CUresult enqueue_on_host(struct ct_queue *queue, void(CL_CALLBACK *function)(void *), void *argument, size_t size)
{
    cl_event event = NULL;
    CUresult r = ct_cl_command_begin(queue);

    if (r == CUDA_SUCCESS)
        r = ct_cl_result(queue->device->api->clEnqueueNativeKernel(queue->handle, function, argument, size, 0, NULL, NULL, 0, NULL, &event),
                         "clEnqueueNativeKernel");
    return ct_cl_command_end(queue, r, event);
}

/* A contiguous copy, which is a command of its own. */
struct run {
    struct ct_queue *queue;
    unsigned char *dst;
    const unsigned char *src;
};

static CUresult enqueue_row(void *user, uint64_t dst_offset, uint64_t src_offset, uint64_t bytes)
{
    const struct run *run = user;
    const struct ct_cl_api *api = run->queue->device->api;
    cl_event event = NULL;
    CUresult r = ct_cl_command_begin(run->queue);

    if (r == CUDA_SUCCESS && bytes)
        r = ct_cl_result(
            api->clEnqueueSVMMemcpy(run->queue->handle, CL_FALSE, run->dst + dst_offset, run->src + src_offset, bytes, 0, NULL, &event),
            "clEnqueueSVMMemcpy");
    else if (r == CUDA_SUCCESS) /* an empty row still needs a point */
        r = enqueue_marker(run->queue, &event);
    return ct_cl_command_end(run->queue, r, event);
}

CUresult ct_cl_queue_copy(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                          unsigned n_regions)
{
    struct run run = {queue, dst->host, src->host};
    struct copy copy = {.dst = dst->host, .src = src->host};
    CUresult r = check_regions(dst, src, regions, n_regions);

    for (unsigned i = 0; i < n_regions && r == CUDA_SUCCESS; i++) {
        const struct ct_copy_region region = merge(regions[i]);

        if (!queue->device->physical->has_native_kernels || region.rows * region.slices == 1) {
            r = for_each_row(&region, enqueue_row, &run);
            continue;
        }
        copy.regions[copy.n++] = region;
        if (copy.n < COPY_CHUNK && i + 1 < n_regions)
            continue;
        r = enqueue_on_host(queue, run_copy, &copy, copy_bytes(copy.n));
        copy.n = 0;
    }
    if (r == CUDA_SUCCESS && copy.n)
        r = enqueue_on_host(queue, run_copy, &copy, copy_bytes(copy.n));
    return r;
}

/* ---- fills ---- */

struct fill {
    uint32_t *words;
    uint64_t n;
    uint32_t value;
};

static void CL_CALLBACK run_fill(void *argument)
{
    const struct fill *fill = argument;

    for (uint64_t i = 0; i < fill->n; i++)
        fill->words[i] = fill->value;
}

static CUresult enqueue_fill(struct ct_queue *queue, void *dst, uint64_t size_bytes, uint32_t value)
{
    cl_event event = NULL;
    CUresult r = ct_cl_command_begin(queue);

    if (r == CUDA_SUCCESS && size_bytes)
        r = ct_cl_result(queue->device->api->clEnqueueSVMMemFill(queue->handle, dst, &value, sizeof value, size_bytes, 0, NULL, &event),
                         "clEnqueueSVMMemFill");
    else if (r == CUDA_SUCCESS)
        r = enqueue_marker(queue, &event);
    return ct_cl_command_end(queue, r, event);
}

CUresult ct_cl_queue_fill(struct ct_queue *queue, struct ct_memory *dst, uint64_t offset, uint64_t size_bytes, uint32_t value)
{
    struct fill fill = {.n = size_bytes / 4, .value = value};

    if ((offset | size_bytes) & 3 || offset > dst->size_bytes || size_bytes > ((dst->size_bytes + 3) & ~UINT64_C(3)) - offset)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "fill of %llu bytes at %llu in memory of %llu", (unsigned long long)size_bytes,
                       (unsigned long long)offset, (unsigned long long)dst->size_bytes);
    fill.words = (uint32_t *)dst->host + offset / 4;
    if (queue->device->physical->has_native_kernels)
        return enqueue_on_host(queue, run_fill, &fill, sizeof fill);
    return enqueue_fill(queue, fill.words, size_bytes, value);
}

/* ---- launches ---- */

/* Consecutive blocks of a grid that may run at the same time. */
struct piece {
    uint32_t offset[3], count[3];
};

static void write_arguments(const struct ct_launch *launch, const struct ct_cl_dispatch *dispatch, const struct piece *piece)
{
    const struct ptx2spv_kernel_info *info = ct_cl_kernel_info(launch->kernel);
    struct ptx2spv_opencl_block block = {
        .system = {.image_address = launch->image.v, .fault_address = launch->fault.v, .params_address = launch->params_address},
        .shared_bytes = dispatch->shared_bytes,
    };

    memcpy(block.system.nctaid, launch->grid, sizeof block.system.nctaid);
    memcpy(block.system.ctaid_offset, piece->offset, sizeof block.system.ctaid_offset);
    memcpy(block.ntid, launch->block, sizeof block.ntid);
    memcpy(dispatch->arguments, &block, sizeof block);
    if (!info->params_in_buffer && info->param_bytes)
        memcpy((char *)dispatch->arguments + PTX2SPV_OPENCL_PARAMS_OFFSET, launch->params, info->param_bytes);
}

static CUresult launch_piece(struct ct_queue *queue, const struct ct_launch *launch, const struct piece *piece)
{
    const struct ptx2spv_kernel_info *info = ct_cl_kernel_info(launch->kernel);
    size_t size = PTX2SPV_OPENCL_PARAMS_OFFSET + (info->params_in_buffer ? 0 : info->param_bytes);
    struct ct_cl_dispatch dispatch;
    cl_event event = NULL;
    CUresult r = ct_cl_kernel_shape(launch, &dispatch);

    if (r != CUDA_SUCCESS || (r = ct_cl_command_begin(queue)) != CUDA_SUCCESS ||
        (r = ct_cl_arguments_allocate(queue, size, &dispatch.arguments)) != CUDA_SUCCESS)
        return r;
    for (int i = 0; i < 3; i++)
        dispatch.global[i] = piece->count[i] * dispatch.local[i];
    write_arguments(launch, &dispatch, piece);
    r = ct_cl_kernel_enqueue(&dispatch, queue->handle, &event);
    r = ct_cl_command_end(queue, r, event);
    ct_cl_arguments_mark_used(queue);
    return r;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Each slice of a kernel with slots is a command, since the queue runs one after the other. A slice consists of consecutive blocks. */
static CUresult launch_slices(struct ct_queue *queue, const struct ct_launch *launch)
{
    const uint32_t *grid = launch->grid, columns = min_u32(grid[0], launch->slice_blocks);
    const uint32_t rows = min_u32(grid[1], launch->slice_blocks / columns);
    const uint32_t planes = min_u32(grid[2], launch->slice_blocks / columns / rows);
    CUresult r = CUDA_SUCCESS;

    for (uint32_t z = 0; z < grid[2]; z += planes)
        for (uint32_t y = 0; y < grid[1]; y += rows)
            for (uint32_t x = 0; x < grid[0] && r == CUDA_SUCCESS; x += columns) {
                const struct piece piece = {{x, y, z},
                                            {min_u32(columns, grid[0] - x), min_u32(rows, grid[1] - y), min_u32(planes, grid[2] - z)}};

                r = launch_piece(queue, launch, &piece);
            }
    return r;
}

CUresult ct_cl_queue_launch(struct ct_queue *queue, const struct ct_launch *launch)
{
    const struct piece whole = {.count = {launch->grid[0], launch->grid[1], launch->grid[2]}};

    if (launch->slice_blocks && launch->grid[0] && launch->grid[1] && launch->grid[2])
        return launch_slices(queue, launch);
    return launch_piece(queue, launch, &whole);
}

/* ---- timestamps ---- */

CUresult ct_cl_queue_timestamp(struct ct_queue *queue, struct ct_timestamp *timestamp)
{
    cl_event event = NULL;
    CUresult r = ct_cl_command_begin(queue);

    if (r == CUDA_SUCCESS)
        r = enqueue_marker(queue, &event);
    if (r == CUDA_SUCCESS)
        ct_cl_timestamp_set(timestamp, event);
    return ct_cl_command_end(queue, r, event);
}
