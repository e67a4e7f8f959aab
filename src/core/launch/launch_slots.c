/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose shared memory is in device memory: how many slots a launch gets. A grid with more blocks than slots runs in slices
 * (ct_launch.slice_blocks), so the memory is bounded, and no block ever waits for a slot. */
#include "launch.h"

#include "core/device/block_shared.h"
#include "core/device/device.h"
#include "core/stream/stream_slots.h"

#include <string.h>

#define SLOTS_BYTES ((uint64_t)64 << 20) /* of one stream; a single slot may need more */
#define MOST_SLOTS 32768u /* below 65535, the least maximum of a dispatch in Vulkan: see choose_piece in backend_vk/record.c */
/* CPU devices: the slots should fit in the caches, but each processor needs some, and a slice should take much longer than its submission. */
#define CACHED_BYTES ((uint64_t)1 << 20)
#define SLOTS_OF_PROCESSOR 32u

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

static uint64_t bytes_of_block(const struct ct_context *context, const struct ptx2spv_kernel_info *info,
                               const struct ct_launch_shape *shape)
{
    const uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];

    return ct_block_shared(info, shape->dynamic_shared_bytes, threads, context->device->info.shared_bytes).all_bytes;
}

bool ct_launch_needs_slots(const struct ct_function *function, const struct ct_launch_shape *shape)
{
    const struct ct_context *context = function->module->context;

    return function->info.uses_shared && bytes_of_block(context, &function->info, shape) > context->device->info.shared_bytes;
}

static uint64_t most_slots(const struct ct_device *device, uint64_t stride)
{
    const uint64_t least = SLOTS_OF_PROCESSOR * (uint64_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    uint64_t most = SLOTS_BYTES / stride;

    if (device->info.kind == CT_DEVICE_CPU && most > least)
        most = CACHED_BYTES / stride > least ? CACHED_BYTES / stride : least;
    return most < MOST_SLOTS ? most : MOST_SLOTS;
}

struct ptx2spv_slots ct_launch_plan_slots(const struct ct_context *context, const struct ptx2spv_kernel_info *info,
                                          const struct ct_launch_shape *shape)
{
    /* one word more: there is one even if the kernel itself has no shared memory (PTX2SPV_SPEC_SHARED_WORDS) */
    const uint64_t stride = round_up(bytes_of_block(context, info, shape) + sizeof(uint32_t), PTX2SPV_SLOT_ALIGN);
    const uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1]; /* below 2^47 */
    const uint64_t most = most_slots(context->device, stride);
    uint32_t slots = 1;

    while (2 * (uint64_t)slots <= most && slots < blocks * (uint64_t)shape->grid[2])
        slots *= 2;
    return (struct ptx2spv_slots){.mask = slots - 1, .stride_bytes = (uint32_t)stride};
}

CUresult ct_launch_place_slots(struct ct_stream *stream, const struct ct_launch_code *code, const struct ct_launch_shape *shape,
                               unsigned char *params, uint32_t *out_slice_blocks)
{
    struct ptx2spv_slots slots = ct_launch_plan_slots(stream->context, code->info, shape);
    CUresult r;

    while ((r = ct_stream_slots_take(stream->context, stream->queue, &stream->slots, ct_launch_slots_bytes(&slots), &slots.address)) ==
               CUDA_ERROR_OUT_OF_MEMORY &&
           slots.mask)
        slots.mask /= 2;
    if (r != CUDA_SUCCESS)
        return r;
    memcpy(params + code->info->slots_param_offset, &slots, sizeof slots);
    *out_slice_blocks = slots.mask + 1;
    return CUDA_SUCCESS;
}
