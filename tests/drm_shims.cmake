# SPDX-License-Identifier: Apache-2.0
# Finds Mesa's drm-shims, which imitate kernel drivers, so that Mesa's drivers for real GPUs run without one (docs/devices.md), and the files by which
# the Vulkan loader finds these drivers.
find_library(CUTTLE_AMD_SHIM amdgpu_noop_drm_shim DOC "Mesa's imitation of the amdgpu kernel driver (mesa-drm-shim)")
find_file(CUTTLE_RADV_ICD NAMES radeon_icd.x86_64.json radeon_icd.json PATHS /usr/share/vulkan/icd.d /etc/vulkan/icd.d NO_DEFAULT_PATH
          DOC "How the Vulkan loader finds RADV")
find_library(CUTTLE_I915_SHIM intel_noop_drm_shim DOC "Mesa's imitation of the i915 kernel driver, from the source of the installed Mesa")
find_file(CUTTLE_ANV_ICD NAMES intel_icd.x86_64.json intel_icd.json PATHS /usr/share/vulkan/icd.d /etc/vulkan/icd.d NO_DEFAULT_PATH
          DOC "How the Vulkan loader finds ANV")
mark_as_advanced(CUTTLE_AMD_SHIM CUTTLE_RADV_ICD CUTTLE_I915_SHIM CUTTLE_ANV_ICD)
