/* SPDX-License-Identifier: Apache-2.0 */
/* Images whose memory is bound later, by sparse binding: tile by tile if the image has sparse residency, otherwise as a whole, which is then
 * treated as a single mip tail. Vulkan counts the offset of a tail in the memory that the whole image would have. */
#include "image.h"

#include "core/base/log.h"
#include "memory.h"
#include "virtual_memory.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"
#define MAX_ASPECTS 4
#define MIN_TILE_BYTES ((uint64_t)64 << 10) /* of images that are bound as a whole */

/* ---- tiling ---- */

static void init_single_tail_tiling(struct ct_vk_image *image, const VkMemoryRequirements *needed)
{
    const uint64_t tile_bytes = needed->alignment > MIN_TILE_BYTES ? needed->alignment : MIN_TILE_BYTES;

    image->base.tiling = (struct ct_image_tiling){
        .tile_bytes = tile_bytes,
        .width = image->width,
        .height = image->height,
        .depth = image->depth,
        .tail_bytes = (needed->size + tile_bytes - 1) / tile_bytes * tile_bytes,
        .single_tail = true,
    };
}

/* lavapipe (Mesa 25) counts blocks, which Vulkan counts in texels: nothing then says where tiles are. */
static bool counts_texels(const struct ct_vk_image *image, const VkExtent3D *tile, uint64_t tile_bytes)
{
    const uint64_t blocks = (uint64_t)tile->width * tile->height * tile->depth / (image->block_side * image->block_side);

    return image->block_side == 1 || blocks * image->block_bytes == tile_bytes;
}

static CUresult init_tiling_by_tiles(struct ct_vk_image *image, const VkMemoryRequirements *needed)
{
    struct ct_backend_device *device = image->base.device;
    VkSparseImageMemoryRequirements aspects[MAX_ASPECTS];
    const VkSparseImageMemoryRequirements *color = &aspects[0];
    uint32_t count = MAX_ASPECTS;
    bool has_tail;

    device->vk.vkGetImageSparseMemoryRequirements(device->handle, image->handle, &count, aspects);
    if (count != 1 || color->formatProperties.aspectMask != VK_IMAGE_ASPECT_COLOR_BIT)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s keeps more data than texels in such images: %u aspects", device->info->name, count);
    if (!counts_texels(image, &color->formatProperties.imageGranularity, needed->alignment))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not say how many texels tiles of compressed blocks have", device->info->name);
    has_tail = color->imageMipTailFirstLod < image->n_levels;
    image->tail_offset = color->imageMipTailOffset;
    image->tail_stride = color->imageMipTailStride;
    image->base.tiling = (struct ct_image_tiling){
        .tile_bytes = needed->alignment,
        .width = color->formatProperties.imageGranularity.width,
        .height = color->formatProperties.imageGranularity.height,
        .depth = color->formatProperties.imageGranularity.depth,
        .tail_level = has_tail ? color->imageMipTailFirstLod : image->n_levels,
        .tail_bytes = has_tail ? color->imageMipTailSize : 0,
        .single_tail = color->formatProperties.flags & VK_SPARSE_IMAGE_FORMAT_SINGLE_MIPTAIL_BIT,
    };
    return CUDA_SUCCESS;
}

CUresult ct_vk_image_init_tiling(struct ct_vk_image *image)
{
    struct ct_backend_device *device = image->base.device;
    VkMemoryRequirements needed;

    device->vk.vkGetImageMemoryRequirements(device->handle, image->handle, &needed);
    image->base.size_bytes = needed.size;
    image->base.align = needed.alignment;
    image->allowed_types = needed.memoryTypeBits;
    if (image->source == CT_IMAGE_SPARSE)
        return init_tiling_by_tiles(image, &needed);
    init_single_tail_tiling(image, &needed);
    return CUDA_SUCCESS;
}

/* ---- binding ---- */

static CUresult find_location(const struct ct_vk_image *image, const struct ct_tile_bind *bind, struct ct_vk_memory_location *out)
{
    *out = (struct ct_vk_memory_location){VK_NULL_HANDLE, 0, 0};
    if (!bind->physical)
        return CUDA_SUCCESS;
    if (!ct_vk_physical_location(bind->physical, bind->offset, image->base.tiling.tile_bytes, out) ||
        !(image->allowed_types & 1u << out->type))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not accept memory of type %u for images, or not in pieces this small",
                       image->base.device->info->name, out->type);
    return CUDA_SUCCESS;
}

static VkSparseMemoryBind tail_bind(const struct ct_vk_image *image, const struct ct_tile_bind *bind,
                                    const struct ct_vk_memory_location *location)
{
    const uint64_t at = image->tail_offset + bind->layer * image->tail_stride + bind->tail_offset;
    uint64_t size_bytes = image->base.tiling.tile_bytes;

    if (image->source == CT_IMAGE_DEFERRED && size_bytes > image->base.size_bytes - at)
        size_bytes = image->base.size_bytes - at;
    return (VkSparseMemoryBind){.resourceOffset = at, .size = size_bytes, .memory = location->memory, .memoryOffset = location->offset};
}

/* Clips a tile at the end of a level to the level. */
static uint32_t within(uint32_t tile, uint32_t side, uint32_t level, uint32_t at)
{
    const uint32_t left = ct_vk_level_side(side, level) - at;

    return tile < left ? tile : left;
}

static VkSparseImageMemoryBind box_bind(const struct ct_vk_image *image, const struct ct_tile_bind *bind,
                                        const struct ct_vk_memory_location *location)
{
    const struct ct_image_tiling *tiling = &image->base.tiling;

    return (VkSparseImageMemoryBind){
        .subresource = {VK_IMAGE_ASPECT_COLOR_BIT, bind->level, bind->layer},
        .offset = {(int32_t)bind->x, (int32_t)bind->y, (int32_t)bind->z},
        .extent = {within(tiling->width, image->width, bind->level, bind->x), within(tiling->height, image->height, bind->level, bind->y),
                   within(tiling->depth, image->depth, bind->level, bind->z)},
        .memory = location->memory,
        .memoryOffset = location->offset,
    };
}

static CUresult submit(struct ct_vk_image *image, const VkSparseMemoryBind *tails, uint32_t n_tails, const VkSparseImageMemoryBind *boxes,
                       uint32_t n_boxes)
{
    const VkSparseImageOpaqueMemoryBindInfo tail = {.image = image->handle, .bindCount = n_tails, .pBinds = tails};
    const VkSparseImageMemoryBindInfo box = {.image = image->handle, .bindCount = n_boxes, .pBinds = boxes};
    const VkBindSparseInfo all = {
        .imageOpaqueBindCount = n_tails > 0, .pImageOpaqueBinds = &tail, .imageBindCount = n_boxes > 0, .pImageBinds = &box};
    CUresult r = ct_vk_sparse_bind_all(image->base.device, &all);

    return r == CUDA_SUCCESS ? ct_vk_sparse_await_all(image->base.device) : r;
}

CUresult ct_vk_image_bind(struct ct_texel_image *base, const struct ct_tile_bind *binds, unsigned count)
{
    struct ct_vk_image *image = (struct ct_vk_image *)base;
    VkSparseMemoryBind *tails = calloc(count, sizeof *tails);
    VkSparseImageMemoryBind *boxes = calloc(count, sizeof *boxes);
    CUresult r = tails && boxes ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "list of %u tiles", count);
    uint32_t n_tails = 0, n_boxes = 0;
    struct ct_vk_memory_location location;

    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++) {
        if ((r = find_location(image, &binds[i], &location)) != CUDA_SUCCESS)
            break;
        if (binds[i].tail)
            tails[n_tails++] = tail_bind(image, &binds[i], &location);
        else
            boxes[n_boxes++] = box_bind(image, &binds[i], &location);
    }
    if (r == CUDA_SUCCESS)
        r = submit(image, tails, n_tails, boxes, n_boxes);
    if (r == CUDA_SUCCESS && image->source == CT_IMAGE_DEFERRED && binds[0].physical)
        r = ct_vk_image_to_general_layout(image, CT_VK_IMAGE_NEW);
    free(tails);
    free(boxes);
    return r;
}
