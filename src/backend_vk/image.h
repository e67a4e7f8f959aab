/* SPDX-License-Identifier: Apache-2.0 */
/* Images with opaque tiling. Each level is a ct_memory that only copies take. All are in VK_IMAGE_LAYOUT_GENERAL from their making on. */
#ifndef CT_VK_IMAGE_H
#define CT_VK_IMAGE_H
/* Parts: image_layout.c, image_tiles.c, record_image.c. */

#include "vk.h"

struct ct_vk_level {
    struct ct_memory base;
    struct ct_texels texels;
    VkImage image; /* borrowed: the level is a part of it */
    uint32_t level;
};

struct ct_vk_image {
    struct ct_texel_image base;
    VkImage handle;
    VkDeviceMemory memory;  /* none where it is bound later */
    uint64_t charged_bytes; /* counted in device->heap_used[heap] */
    uint32_t heap;
    enum ct_image_memory source;
    uint32_t width, height, depth;     /* of the first level */
    uint32_t allowed_types;            /* bound later: of its memory */
    uint64_t tail_offset, tail_stride; /* bound later: in what Vulkan takes for the image's memory; of the tails of layers */
    unsigned n_levels;
    struct ct_vk_level levels[];
};

static inline uint32_t ct_vk_level_side(uint32_t side, uint32_t level)
{
    return side >> level ? side >> level : 1;
}

CUresult ct_vk_image_create(struct ct_backend_device *device, const struct ct_image_request *request, struct ct_texel_image **out);
void ct_vk_image_destroy(struct ct_texel_image *image);
struct ct_memory *ct_vk_image_level(struct ct_texel_image *image, uint32_t level);
enum ct_vk_image_origin {
    CT_VK_IMAGE_NEW,        /* its contents are lost */
    CT_VK_IMAGE_TAKEN_OVER, /* it is on imported memory, and keeps what the other API wrote */
};
/* Takes an image into the general layout, in which it stays. Waits until that is done: any queue may use the image then. */
CUresult ct_vk_image_settle(struct ct_vk_image *image, enum ct_vk_image_origin origin);

/* image_tiles.c: images whose memory is bound later. NOT_SUPPORTED: the device wants more for them than tiles. */
CUresult ct_vk_image_lay_tiles(struct ct_vk_image *image);
CUresult ct_vk_image_bind(struct ct_texel_image *image, const struct ct_tile_bind *binds, unsigned count);

/* record_image.c: queue_copy where one side at least is a level. */
CUresult ct_vk_queue_copy_image(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                                unsigned n_regions);

#endif
