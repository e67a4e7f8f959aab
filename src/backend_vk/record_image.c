/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to, from and between levels of images. A region is a box in the image; it is copied in parts that fit into a batch, each a command. */
#include "image.h"

#include "core/base/log.h"
#include "memory.h"
#include "queue.h"

#define CT_CHANNEL "queue"

/* The source or destination: a level, or plain memory. */
struct side {
    const struct ct_vk_level *level;   /* or NULL */
    const struct ct_vk_memory *memory; /* or NULL */
    uint64_t offset, pitch, slice;     /* of the region */
};

struct image_copy {
    struct ct_queue *queue;
    struct ct_vk_batch *batch;
    struct side dst, src;
    uint32_t texel_bytes, block_side;
    uint64_t row_bytes, rows, slices; /* of the region; rows of elements */
};

/* A box in the region. */
struct part {
    uint64_t x_bytes, y, z;
    uint64_t row_bytes, rows, slices;
};

/* ---- the sides ---- */

/* In a level the pitches are those of its texels, whatever a region says for a single row or slice. */
static struct side make_side(struct ct_memory *memory, uint64_t offset, uint64_t pitch, uint64_t slice)
{
    struct side side = {.offset = offset, .pitch = pitch, .slice = slice};

    if (memory->texels) {
        side.level = (const struct ct_vk_level *)memory;
        side.pitch = memory->texels->row_bytes;
        side.slice = memory->texels->slice_bytes;
    } else {
        side.memory = (const struct ct_vk_memory *)memory;
    }
    return side;
}

static uint64_t place_of(const struct side *side, const struct part *part)
{
    return side->offset + part->z * side->slice + part->y * side->pitch + part->x_bytes;
}

static VkOffset3D texel_at(const struct ct_texels *texels, uint64_t place)
{
    return (VkOffset3D){
        (int32_t)(place % texels->row_bytes / texels->texel_bytes * texels->block_side),
        (int32_t)(place % texels->slice_bytes / texels->row_bytes * texels->block_side),
        texels->shape == CT_IMAGE_3D ? (int32_t)(place / texels->slice_bytes) : 0,
    };
}

static VkImageSubresourceLayers layers_at(const struct ct_vk_level *level, uint64_t place, uint64_t slices)
{
    bool layered = level->texels.shape != CT_IMAGE_3D;

    return (VkImageSubresourceLayers){
        .aspectMask = VK_IMAGE_ASPECT_COLOR_BIT,
        .mipLevel = level->level,
        .baseArrayLayer = layered ? (uint32_t)(place / level->texels.slice_bytes) : 0,
        .layerCount = layered ? (uint32_t)slices : 1,
    };
}

static uint32_t smaller(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* The extent of a part at a place of a level. `volume`: slices are the depth, not layers. The last blocks may reach beyond the level. */
static VkExtent3D extent_of(const struct image_copy *copy, const struct part *part, const struct ct_vk_level *level, VkOffset3D at,
                            bool volume)
{
    return (VkExtent3D){smaller(part->row_bytes / copy->texel_bytes * copy->block_side, level->width - (uint32_t)at.x),
                        smaller(part->rows * copy->block_side, level->height - (uint32_t)at.y), volume ? (uint32_t)part->slices : 1};
}

/* ---- commands ---- */

static void copy_between_images(const struct image_copy *copy, const struct part *part)
{
    const struct ct_vk_level *dst = copy->dst.level, *src = copy->src.level;
    uint64_t to = place_of(&copy->dst, part), from = place_of(&copy->src, part);
    const VkImageCopy region = {
        .srcSubresource = layers_at(src, from, part->slices),
        .srcOffset = texel_at(&src->texels, from),
        .dstSubresource = layers_at(dst, to, part->slices),
        .dstOffset = texel_at(&dst->texels, to),
        .extent =
            extent_of(copy, part, src, texel_at(&src->texels, from), dst->texels.shape == CT_IMAGE_3D || src->texels.shape == CT_IMAGE_3D),
    };

    copy->queue->device->vk.vkCmdCopyImage(copy->batch->commands, src->image, VK_IMAGE_LAYOUT_GENERAL, dst->image, VK_IMAGE_LAYOUT_GENERAL,
                                           1, &region);
}

static void copy_with_buffer(const struct image_copy *copy, const struct part *part)
{
    const struct side *image = copy->dst.level ? &copy->dst : &copy->src, *plain = copy->dst.level ? &copy->src : &copy->dst;
    uint64_t texel = place_of(image, part), byte = place_of(plain, part);
    const struct ct_vk_piece *piece = ct_vk_memory_piece(plain->memory, byte);
    const VkBufferImageCopy region = {
        .bufferOffset = piece->buffer_offset + (byte - piece->offset),
        .bufferRowLength = part->rows > 1 || part->slices > 1 ? (uint32_t)(plain->pitch / copy->texel_bytes * copy->block_side) : 0,
        .bufferImageHeight = part->slices > 1 ? (uint32_t)(plain->slice / plain->pitch * copy->block_side) : 0,
        .imageSubresource = layers_at(image->level, texel, part->slices),
        .imageOffset = texel_at(&image->level->texels, texel),
        .imageExtent =
            extent_of(copy, part, image->level, texel_at(&image->level->texels, texel), image->level->texels.shape == CT_IMAGE_3D),
    };
    const struct VolkDeviceTable *vk = &copy->queue->device->vk;

    if (copy->dst.level)
        vk->vkCmdCopyBufferToImage(copy->batch->commands, piece->buffer, image->level->image, VK_IMAGE_LAYOUT_GENERAL, 1, &region);
    else
        vk->vkCmdCopyImageToBuffer(copy->batch->commands, image->level->image, VK_IMAGE_LAYOUT_GENERAL, piece->buffer, 1, &region);
}

static CUresult copy_part(struct image_copy *copy, const struct part *part)
{
    CUresult r;

    if (copy->batch->cost_bytes >= CT_VK_BATCH_BYTES) {
        (void)ct_vk_command_end_locked(copy->queue, CUDA_SUCCESS); /* the batch is full: the next begin uses another batch, or fails */
        if ((r = ct_vk_command_begin_locked(copy->queue, &copy->batch)) != CUDA_SUCCESS)
            return r;
    }
    if (copy->dst.level && copy->src.level)
        copy_between_images(copy, part);
    else
        copy_with_buffer(copy, part);
    copy->batch->cost_bytes += part->row_bytes * part->rows * part->slices;
    return CUDA_SUCCESS;
}

/* ---- parts ---- */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t at_least_one(uint64_t n)
{
    return n ? n : 1;
}

/* Whether one command can copy more than a row: the memory is a single piece, and Vulkan can express the pitches. */
static bool is_regular(const struct image_copy *copy, const struct side *side)
{
    if (side->level)
        return true;
    return side->memory->n_pieces == 1 && side->pitch >= copy->row_bytes &&
           side->pitch / copy->texel_bytes <= UINT32_MAX / copy->block_side &&
           (copy->slices == 1 || (side->slice % side->pitch == 0 && side->slice / side->pitch >= copy->rows &&
                                  side->slice / side->pitch <= UINT32_MAX / copy->block_side));
}

static CUresult copy_in_boxes(struct image_copy *copy)
{
    struct part part = {.row_bytes = copy->row_bytes};
    uint64_t rows = min_u64(at_least_one(CT_VK_BATCH_BYTES / copy->row_bytes), copy->rows);
    uint64_t slices = at_least_one(CT_VK_BATCH_BYTES / (copy->row_bytes * copy->rows));
    CUresult r = CUDA_SUCCESS;

    for (part.z = 0; part.z < copy->slices; part.z += part.slices) {
        part.slices = min_u64(slices, copy->slices - part.z);
        for (part.y = 0; part.y < copy->rows && r == CUDA_SUCCESS; part.y += part.rows) {
            part.rows = min_u64(rows, copy->rows - part.y);
            r = copy_part(copy, &part);
        }
    }
    return r;
}

/* How much of a row lies in the piece of memory in which `part` begins. */
static uint64_t left_in_piece(const struct side *side, const struct part *part)
{
    uint64_t byte = place_of(side, part);
    const struct ct_vk_piece *piece;

    if (side->level)
        return UINT64_MAX;
    piece = ct_vk_memory_piece(side->memory, byte);
    return piece->offset + piece->size_bytes - byte;
}

static CUresult copy_row(struct image_copy *copy, struct part *part)
{
    CUresult r = CUDA_SUCCESS;

    for (part->x_bytes = 0; part->x_bytes < copy->row_bytes && r == CUDA_SUCCESS; part->x_bytes += part->row_bytes) {
        uint64_t left = min_u64(left_in_piece(&copy->dst, part), left_in_piece(&copy->src, part));

        part->row_bytes = min_u64(left, copy->row_bytes - part->x_bytes);
        r = copy_part(copy, part);
    }
    return r;
}

static CUresult copy_in_rows(struct image_copy *copy)
{
    struct part part = {.rows = 1, .slices = 1};
    CUresult r = CUDA_SUCCESS;

    for (part.z = 0; part.z < copy->slices; part.z++)
        for (part.y = 0; part.y < copy->rows && r == CUDA_SUCCESS; part.y++)
            r = copy_row(copy, &part);
    return r;
}

/* ---- regions ---- */

static bool is_box(const struct side *side, uint64_t size_bytes, const struct image_copy *copy)
{
    const struct ct_texels *texels = &side->level->texels;
    uint64_t x = side->offset % texels->row_bytes, y = side->offset % texels->slice_bytes / texels->row_bytes;
    uint64_t z = side->offset / texels->slice_bytes, end = size_bytes / texels->slice_bytes;

    return !((x | copy->row_bytes) & (texels->texel_bytes - 1)) && copy->row_bytes <= texels->row_bytes - x &&
           copy->rows <= texels->slice_bytes / texels->row_bytes - y && z <= end && copy->slices <= end - z;
}

/* offset + (slices - 1) * slice + (rows - 1) * pitch + row_bytes <= size, in whole texels, without intermediate overflow. */
static bool is_in_memory(const struct side *side, uint64_t size_bytes, const struct image_copy *copy)
{
    uint64_t rows, slices, end;
    bool whole = !((side->offset | (copy->rows > 1 ? side->pitch : 0) | (copy->slices > 1 ? side->slice : 0)) & (copy->texel_bytes - 1));

    return whole && !__builtin_mul_overflow(copy->rows - 1, side->pitch, &rows) &&
           !__builtin_mul_overflow(copy->slices - 1, side->slice, &slices) && !__builtin_add_overflow(rows, slices, &end) &&
           !__builtin_add_overflow(end, side->offset, &end) && !__builtin_add_overflow(end, copy->row_bytes, &end) && end <= size_bytes;
}

static bool is_inside(const struct side *side, const struct ct_memory *memory, const struct image_copy *copy)
{
    return side->level ? is_box(side, memory->size_bytes, copy) : is_in_memory(side, memory->size_bytes, copy);
}

static bool are_compatible(const struct ct_texels *dst, const struct ct_texels *src)
{
    return !dst || !src || ct_texels_match(dst, src);
}

static CUresult set_region(struct image_copy *copy, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *region)
{
    copy->texel_bytes = dst->texels ? dst->texels->texel_bytes : src->texels->texel_bytes;
    copy->block_side = dst->texels ? dst->texels->block_side : src->texels->block_side;
    copy->row_bytes = region->row_bytes;
    copy->rows = region->rows;
    copy->slices = region->slices;
    copy->dst = make_side(dst, region->dst_offset, region->dst_pitch, region->dst_slice);
    copy->src = make_side(src, region->src_offset, region->src_pitch, region->src_slice);
    if (!copy->row_bytes || !copy->rows || !copy->slices || !are_compatible(dst->texels, src->texels) ||
        !is_inside(&copy->dst, dst, copy) || !is_inside(&copy->src, src, copy))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a region of a copy is not a box of texels, or exceeds its memory");
    return CUDA_SUCCESS;
}

/* A single row needs no pitch; for several slices of one row each the pitch is the distance of the slices. */
static void normalize(struct image_copy *copy, struct side *side)
{
    if (!side->level && copy->rows == 1)
        side->pitch = copy->slices > 1 ? side->slice : copy->row_bytes;
}

static CUresult copy_region_locked(struct image_copy *copy)
{
    CUresult r = ct_vk_command_begin_locked(copy->queue, &copy->batch);

    if (r != CUDA_SUCCESS)
        return r;
    normalize(copy, &copy->dst);
    normalize(copy, &copy->src);
    return is_regular(copy, &copy->dst) && is_regular(copy, &copy->src) ? copy_in_boxes(copy) : copy_in_rows(copy);
}

CUresult ct_vk_queue_copy_image(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                                unsigned n_regions)
{
    struct image_copy copy = {.queue = queue};
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < n_regions && r == CUDA_SUCCESS; i++) {
        if ((r = set_region(&copy, dst, src, &regions[i])) != CUDA_SUCCESS)
            return r;
        ct_mutex_lock(&queue->scheduler->lock);
        r = ct_vk_command_end_locked(queue, copy_region_locked(&copy));
        ct_mutex_unlock(&queue->scheduler->lock);
    }
    return r;
}
