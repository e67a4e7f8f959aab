/* SPDX-License-Identifier: Apache-2.0 */
/* Images of the application that it shares, filled and read by copies. Any failure ends the program. */
#ifndef CUTTLE_TESTS_INTEROP_APP_IMAGE_H
#define CUTTLE_TESTS_INTEROP_APP_IMAGE_H

#include "app.h"

struct app_image_desc {
    VkImageType type;
    VkFormat format;
    uint32_t texel_bytes;
    VkExtent3D extent;
    uint32_t layers, levels;
    VkImageCreateFlags flags;
    VkImageUsageFlags usage; /* in addition to sampling and transfers */
    bool dedicated;          /* it has dedicated memory */
    VkDeviceSize offset;     /* its offset in its memory, in units of its alignment */
};

struct app_image {
    struct app_image_desc desc;
    VkImage handle;
    VkDeviceMemory memory;
    VkDeviceSize memory_bytes, offset; /* offset in bytes */
    uint64_t texels_bytes;             /* of all levels, each with its layers, without gaps */
    bool used;                         /* has contents, and is owned by the other API in VK_IMAGE_LAYOUT_GENERAL */
};

/* Whether such images can be shared by memory of this kind. */
bool app_image_is_possible(struct app *app, const struct app_image_desc *desc);
void app_image_create(struct app *app, const struct app_image_desc *desc, struct app_image *out);
void app_image_destroy(struct app *app, struct app_image *image);
int app_image_export(struct app *app, const struct app_image *image);
/* Extents and bytes of a level; a level's slices are its depth or its layers. */
VkExtent3D app_image_level(const struct app_image *image, uint32_t level);
uint64_t app_image_level_bytes(const struct app_image *image, uint32_t level);
/* All levels, one after another. */
void app_image_write(struct app *app, struct app_image *image, const void *texels);
void app_image_read(struct app *app, struct app_image *image, void *texels);

#endif
