/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the set of descriptors of textures. */
#include "texture_images.h"

CUresult ct_vk_textures_create_layout(struct ct_backend_device *device)
{
    VkDescriptorBindingFlags flags[PTX2SPV_IMAGE_SHAPES];
    VkDescriptorSetLayoutBinding bindings[PTX2SPV_IMAGE_SHAPES];
    const VkDescriptorSetLayoutBindingFlagsCreateInfo with_flags = {.sType =
                                                                        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO,
                                                                    .bindingCount = PTX2SPV_IMAGE_SHAPES,
                                                                    .pBindingFlags = flags};
    const VkDescriptorSetLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                  .pNext = &with_flags,
                                                  .flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT,
                                                  .bindingCount = PTX2SPV_IMAGE_SHAPES,
                                                  .pBindings = bindings};

    for (uint32_t i = 0; i < PTX2SPV_IMAGE_SHAPES; i++) {
        flags[i] = VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT | VK_DESCRIPTOR_BINDING_UPDATE_UNUSED_WHILE_PENDING_BIT |
                   VK_DESCRIPTOR_BINDING_PARTIALLY_BOUND_BIT; /* "unused" is what kernels do not access */
        bindings[i] = (VkDescriptorSetLayoutBinding){.binding = i,
                                                     .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                                     .descriptorCount = PTX2SPV_IMAGE_DESCRIPTORS,
                                                     .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    }
    return ct_vk_result(device->vk.vkCreateDescriptorSetLayout(device->handle, &info, NULL, &device->texture_layout),
                        "vkCreateDescriptorSetLayout");
}
