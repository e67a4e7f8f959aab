/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of feature structures that a device is queried for. */
#include "vk.h"

#include <string.h>

/* All extensible structures of Vulkan begin with the members of VkBaseOutStructure. */
static void chain(VkPhysicalDeviceFeatures2 *head, void *block, VkStructureType type)
{
    VkBaseOutStructure *base = block;

    base->sType = type;
    base->pNext = head->pNext;
    head->pNext = base;
}

void ct_vk_features_init(struct ct_vk_features *features, const bool has[CT_VK_EXT_COUNT])
{
    VkPhysicalDeviceFeatures2 *core = &features->core;

    memset(features, 0, sizeof *features);
    core->sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    chain(core, &features->v11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
    chain(core, &features->v12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    chain(core, &features->v13, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
    if (has[CT_VK_EXT_EXPLICIT_LAYOUT])
        chain(core, &features->explicit_layout, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR);
    if (has[CT_VK_EXT_ATOMIC_FLOAT])
        chain(core, &features->atomic_float, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT);
    if (has[CT_VK_EXT_SHADER_CLOCK])
        chain(core, &features->clock, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR);
    if (has[CT_VK_EXT_MAXIMAL_RECONVERGENCE])
        chain(core, &features->reconvergence, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MAXIMAL_RECONVERGENCE_FEATURES_KHR);
    if (has[CT_VK_EXT_PIPELINE_EXECUTABLE_PROPERTIES])
        chain(core, &features->executable, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
    if (has[CT_VK_EXT_COOPERATIVE_MATRIX])
        chain(core, &features->cooperative_matrix, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    if (has[CT_VK_EXT_SHADER_BFLOAT16])
        chain(core, &features->bfloat16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR);
    if (has[CT_VK_EXT_SHADER_FMA])
        chain(core, &features->fma, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FMA_FEATURES_KHR);
    if (has[CT_VK_EXT_DEVICE_FAULT])
        chain(core, &features->fault, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT);
}
