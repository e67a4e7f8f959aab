/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan headers, and definitions that their oldest supported version (1.3.239) lacks. Each addition is guarded by the extension's
 * own macro, so newer headers take precedence. Source: the Vulkan registry (vk.xml). */
#ifndef CT_VK_VULKAN_COMPAT_H
#define CT_VK_VULKAN_COMPAT_H
/* Parts: volk.c. */

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <volk.h>

#ifndef VK_KHR_shader_maximal_reconvergence
#define VK_KHR_shader_maximal_reconvergence 1
#define VK_KHR_SHADER_MAXIMAL_RECONVERGENCE_EXTENSION_NAME "VK_KHR_shader_maximal_reconvergence"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MAXIMAL_RECONVERGENCE_FEATURES_KHR ((VkStructureType)1000434000)
typedef struct VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR {
    VkStructureType sType;
    void *pNext;
    VkBool32 shaderMaximalReconvergence;
} VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR;
#endif

#endif
