/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's Vulkan driver executes copies on a copy engine: 400 GB/s on an H200, where kernels and NVIDIA's own CUDA driver reach 2000.
 * Each thread copies 16 bytes, which is as fast there as any other number. The kernel only copies whole blocks, without bounds checks; the
 * driver copies the rest. The kernel uses device addresses. */
#include "copy_kernel.h"

#include "builtin_kernel.h"
#include "core/stream/stream_record.h"

#include "core/base/config.h"
#include "core/base/log.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "copy"
#define BLOCK_THREADS 256u
#define UNIT_BYTES 16u
#define BLOCK_BYTES ((uint64_t)BLOCK_THREADS * UNIT_BYTES)
#define LEAST_BYTES ((uint64_t)1 << 20) /* below this size both are equally fast */

/* If its member is NULL the kernel is not available. */
struct ct_copy_kernel {
    struct ct_kernel_image *image;
};

static const struct ct_builtin_source source = {
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry copy(.param .u64 dst, .param .u64 src)\n{\n"
    ".reg .b32 %i<2>, %a<4>;\n.reg .b64 %dst, %src, %at, %in;\n"
    "ld.param.u64 %dst, [dst];\nld.param.u64 %src, [src];\nmov.u32 %i0, %ctaid.x;\nmov.u32 %i1, %tid.x;\n"
    "mul.wide.u32 %at, %i0, 4096;\nmul.wide.u32 %in, %i1, 16;\nadd.u64 %at, %at, %in;\n" /* BLOCK_BYTES, UNIT_BYTES */
    "add.u64 %dst, %dst, %at;\nadd.u64 %src, %src, %at;\n"
    "ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%src];\nst.global.v4.u32 [%dst], {%a0, %a1, %a2, %a3};\nret;\n}\n",
    "copy", 0, false};
_Static_assert(BLOCK_BYTES == 4096, "as in the kernel's text");

/* ---- creation ---- */

/* Compiles the pipelines that its launches need, while no stream is locked. All launches have the same block; a grid above the driver's
 * limits may need a variant of its own. */
static CUresult prepare(const struct ct_device *device, struct ct_kernel_image *image)
{
    const struct ct_kernel_calls *calls = device->backend->kernels;
    const uint32_t grids[] = {1, device->info.max_grid[0]};
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < sizeof grids / sizeof *grids && r == CUDA_SUCCESS; i++) {
        const struct ct_launch launch = {.kernel = image, .grid = {grids[i], 1, 1}, .block = {BLOCK_THREADS, 1, 1}};
        struct ct_kernel_variant *variant;

        if ((r = calls->prepare(&launch, &variant)) == CUDA_SUCCESS)
            calls->variant_release(variant);
    }
    return r;
}

static CUresult make(struct ct_device *device, struct ct_kernel_image **out)
{
    struct ct_kernel_image *image;
    CUresult r = ct_builtin_kernel_create(device, &source, &image);

    if (r == CUDA_SUCCESS && device->backend->kernels->prepare && (r = prepare(device, image)) != CUDA_SUCCESS)
        device->backend->kernels->destroy(image);
    if (r == CUDA_SUCCESS)
        *out = image;
    return r;
}

/* The device's kernel. Two threads may create it at the same time; then one of the two is kept. NULL: out of memory. */
static struct ct_copy_kernel *kernel_of(struct ct_device *device)
{
    struct ct_copy_kernel *before = atomic_load_explicit(&device->copy_kernel, memory_order_acquire); /* pairs with the exchange */
    struct ct_copy_kernel *made;

    if (before || !(made = calloc(1, sizeof *made)))
        return before;
    if (make(device, &made->image) != CUDA_SUCCESS)
        ct_log(CT_LOG_WARN, "device %d: copies are slow, since the copy kernel is not available", device->ordinal);
    if (atomic_compare_exchange_strong(&device->copy_kernel, &before, made))
        return made;
    device->backend->kernels->destroy(made->image);
    free(made);
    return before;
}

void ct_copy_kernel_destroy(struct ct_device *device)
{
    struct ct_copy_kernel *kernel = atomic_exchange(&device->copy_kernel, NULL);

    if (!kernel)
        return;
    device->backend->kernels->destroy(kernel->image);
    free(kernel);
}

/* ---- use ---- */

static uint64_t address_of(const struct ct_place *place)
{
    return place->memory->address.v + place->offset;
}

bool ct_copy_kernel_takes(struct ct_device *device, const struct ct_copy *copy)
{
    const struct ct_copy_kernel *kernel;

    if (!device->info.copies_by_kernel && !ct_config()->copy_by_kernel)
        return false;
    if (!copy->dst.memory || !copy->src.memory || !copy->dst.is_device || !copy->src.is_device || copy->rows > 1 || copy->slices > 1 ||
        copy->dst.memory->texels || copy->src.memory->texels ||
        copy->row_bytes < (ct_config()->copy_by_kernel ? 2 * BLOCK_BYTES : LEAST_BYTES) ||
        (address_of(&copy->dst) - address_of(&copy->src)) % UNIT_BYTES)
        return false;
    kernel = kernel_of(device);
    return kernel && kernel->image;
}

/* Copies bytes at offset `distance` from the beginning of both locations. */
static CUresult record_rest(struct ct_stream *stream, const struct ct_copy *copy, uint64_t distance, uint64_t bytes)
{
    const struct ct_copy_region region = {
        .dst_offset = copy->dst.offset + distance, .src_offset = copy->src.offset + distance, .row_bytes = bytes, .rows = 1, .slices = 1};

    return bytes ? ct_stream_record_copy_locked(stream, copy->dst.memory, copy->src.memory, &region) : CUDA_SUCCESS;
}

static CUresult record_blocks(struct ct_stream *stream, const struct ct_copy *copy, uint64_t distance, uint64_t blocks)
{
    const struct ct_device *device = stream->context->device;
    CUresult r = CUDA_SUCCESS;

    for (uint64_t done = 0, part; done < blocks && r == CUDA_SUCCESS; done += part) {
        const uint64_t at = distance + done * BLOCK_BYTES, params[] = {address_of(&copy->dst) + at, address_of(&copy->src) + at};
        struct ct_launch launch = {.kernel = atomic_load(&device->copy_kernel)->image, .block = {BLOCK_THREADS, 1, 1}, .params = params};

        part = blocks - done < device->info.max_grid[0] ? blocks - done : device->info.max_grid[0];
        launch.grid[0] = (uint32_t)part;
        launch.grid[1] = launch.grid[2] = 1;
        r = ct_stream_record_launch_locked(stream, &launch);
    }
    return r;
}

CUresult ct_copy_kernel_record_locked(struct ct_stream *stream, const struct ct_copy *copy)
{
    const uint64_t head = -address_of(&copy->dst) % UNIT_BYTES, blocks = (copy->row_bytes - head) / BLOCK_BYTES;
    const uint64_t end = head + blocks * BLOCK_BYTES;
    CUresult r = record_rest(stream, copy, 0, head);

    if (r == CUDA_SUCCESS)
        r = record_blocks(stream, copy, head, blocks);
    return r == CUDA_SUCCESS ? record_rest(stream, copy, end, copy->row_bytes - end) : r;
}
