/* SPDX-License-Identifier: Apache-2.0 */
/* Textures that kernels read through images: linear images over plain memory, which copies, surfaces and pointers continue to access, in a set
 * of descriptors that all kernels share (PTX2SPV_IMAGE_DESCRIPTORS). */
#ifndef CT_VK_TEXTURE_IMAGES_H
#define CT_VK_TEXTURE_IMAGES_H
/* Parts: texture_layout.c. */

#include "vk.h"

/* texture_layout.c. For devices with target.sampled_images: the layout of the set. */
CUresult ct_vk_textures_create_layout(struct ct_backend_device *device);
/* The set of descriptors, which is created if needed. */
CUresult ct_vk_textures_set(struct ct_backend_device *device, VkDescriptorSet *out);
/* Frees what destroyed textures had, if the device is idle: their handles then lead to zeros, and not to memory that is freed next. */
void ct_vk_textures_reclaim(struct ct_backend_device *device);

CUresult ct_vk_sampled_layout(struct ct_backend_device *device, uint32_t texel_bytes, const struct ct_sampled_extent *extent,
                              struct ct_sampled_layout *out);
CUresult ct_vk_sampled_create(struct ct_backend_device *device, const struct ct_sampled_request *request, struct ct_sampled **out,
                              uint32_t *out_descriptor);
void ct_vk_sampled_destroy(struct ct_sampled *sampled);

#endif
