/* SPDX-License-Identifier: Apache-2.0 */
/* Images with opaque tiling. Each level is a ct_memory that only copies take. All are in VK_IMAGE_LAYOUT_GENERAL from their making on. */
#ifndef CT_VK_IMAGE_H
#define CT_VK_IMAGE_H

#include "vk.h"

struct ct_vk_image;

struct ct_vk_level {
    struct ct_memory base;
    struct ct_texels texels;
    VkImage image; /* borrowed: the level is a part of it */
    uint32_t level;
};

CUresult ct_vk_image_create(struct ct_backend_device *device, const struct ct_image_request *request, struct ct_texel_image **out);
void ct_vk_image_destroy(struct ct_texel_image *image);
struct ct_memory *ct_vk_image_level(struct ct_texel_image *image, uint32_t level);

/* record_image.c: queue_copy where one side at least is a level. */
CUresult ct_vk_queue_copy_image(struct ct_queue *queue, struct ct_memory *dst, struct ct_memory *src, const struct ct_copy_region *regions,
                                unsigned n_regions);

#endif
