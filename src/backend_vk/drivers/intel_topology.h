/* SPDX-License-Identifier: Apache-2.0 */
/* How many subslices (Xe cores) an Intel GPU has. Vulkan does not tell; Linux's kernel drivers do. */
#ifndef CT_VK_INTEL_TOPOLOGY_H
#define CT_VK_INTEL_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

/* Of the device behind a render node (VkPhysicalDeviceDrmPropertiesEXT); 0: it is of neither i915 nor xe, or does not answer. */
unsigned ct_vk_intel_subslices(int64_t render_major, int64_t render_minor);

/* The same from the replies of the kernel drivers: to DRM_I915_QUERY_TOPOLOGY_INFO, and to DRM_XE_DEVICE_QUERY_GT_TOPOLOGY. 0: the reply is
 * cut short, or contradicts itself. */
unsigned ct_vk_i915_subslices(const void *reply, size_t size);
unsigned ct_vk_xe_subslices(const void *reply, size_t size);

#endif
