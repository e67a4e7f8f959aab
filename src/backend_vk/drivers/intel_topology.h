/* SPDX-License-Identifier: Apache-2.0 */
/* The number of subslices (Xe cores) of an Intel GPU. Vulkan does not report it; the kernel drivers of Linux do. */
#ifndef CT_VK_INTEL_TOPOLOGY_H
#define CT_VK_INTEL_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

/* Returns the number for the device of a render node (VkPhysicalDeviceDrmPropertiesEXT); 0: its driver is neither i915 nor xe, or the
 * query fails. */
unsigned ct_vk_intel_subslices(int64_t render_major, int64_t render_minor);

/* The same from the kernel drivers' replies to DRM_I915_QUERY_TOPOLOGY_INFO and to DRM_XE_DEVICE_QUERY_GT_TOPOLOGY. 0: the reply is truncated
 * or inconsistent. */
unsigned ct_vk_i915_subslices(const void *reply, size_t size);
unsigned ct_vk_xe_subslices(const void *reply, size_t size);

#endif
