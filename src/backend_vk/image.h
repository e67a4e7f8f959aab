/* SPDX-License-Identifier: Apache-2.0 */
/* Images with opaque tiling. Each level is a ct_memory that only copies accept. All images are in VK_IMAGE_LAYOUT_GENERAL after creation. */
#ifndef CT_VK_IMAGE_H
#define CT_VK_IMAGE_H
/* Parts: image_layout.c, image_tiles.c, record_image.c. */

#include "vk.h"

struct ct_vk_level {
    struct ct_memory base;
    struct ct_texels texels;
    VkImage image; /* borrowed: the level is a part of it */
    uint32_t level;
    uint32_t width, height; /* in texels: compressed blocks may reach beyond */
};

struct ct_vk_image {
    struct ct_texel_image base;
    atomic_uint references; /* of its owner, and of textures */
    VkImage handle;
    VkFormat format;
    bool has_other_views;   /* of formats of the same size */
    VkDeviceMemory memory;  /* VK_NULL_HANDLE if memory is bound later */
    uint64_t charged_bytes; /* counted in device->heap_used[heap] */
    uint32_t heap;
    enum ct_image_memory source;
    uint32_t width, height, depth; /* of the first level */
    uint32_t block_side, block_bytes;
    uint32_t allowed_types; /* if bound later: the allowed memory types */
    uint64_t tail_offset,
        tail_stride; /* if bound later: the offset of the mip tail in the image's memory, and the distance between layers' tails */
    unsigned n_levels;
    struct ct_vk_level levels[];
};

static inline uint32_t ct_vk_level_side(uint32_t side, uint32_t level)
{
    return side >> level ? side >> level : 1;
}

CUresult ct_vk_image_create(struct ct_backend_device *device, const struct ct_image_request *request, struct ct_texel_image **out);
void ct_vk_image_destroy(struct ct_texel_image *image); /* releases a reference; NULL is a no-op */
struct ct_memory *ct_vk_image_level(struct ct_texel_image *image, uint32_t level);
enum ct_vk_image_origin {
    CT_VK_IMAGE_NEW,        /* its contents are undefined */
    CT_VK_IMAGE_TAKEN_OVER, /* it has imported memory, and keeps the other API's contents */
};
/* Records the change of an image from a layout to the general one; an external image is acquired from outside, where it has that layout. Under
 * the scheduler's lock. */
CUresult ct_vk_record_layout_locked(struct ct_queue *queue, VkImage image, VkImageLayout from, bool is_external);
/* Moves an image into the general layout, in which it stays, and waits until that is done: then any queue may use the image. */
CUresult ct_vk_image_to_general_layout(struct ct_vk_image *image, enum ct_vk_image_origin origin);

/* image_tiles.c: images whose memory is bound later. NOT_SUPPORTED: the device needs further memory besides that of texels. */
CUresult ct_vk_image_init_tiling(struct ct_vk_image *image);
CUresult ct_vk_image_bind(struct ct_texel_image *image, const struct ct_tile_bind *binds, unsigned count);

/* record_image.c: a copy with at least one image level as source or destination. */
CUresult ct_vk_queue_copy_image(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                                unsigned n_regions);

#endif
