/* SPDX-License-Identifier: Apache-2.0 */
/* The table that converts VkResult to CUresult. */
#include "vk.h"

#include "core/base/log.h"

#include <stdatomic.h>

#define CT_CHANNEL "vulkan"

static const struct {
    VkResult vulkan;
    CUresult cuda;
    const char *name;
} results[] = {
#define ROW(code, cuda) {code, cuda, #code}
    ROW(VK_ERROR_OUT_OF_HOST_MEMORY, CUDA_ERROR_OUT_OF_MEMORY),
    ROW(VK_ERROR_OUT_OF_DEVICE_MEMORY, CUDA_ERROR_OUT_OF_MEMORY),
    ROW(VK_ERROR_TOO_MANY_OBJECTS, CUDA_ERROR_OUT_OF_MEMORY),
    ROW(VK_ERROR_FRAGMENTATION, CUDA_ERROR_OUT_OF_MEMORY),
    ROW(VK_ERROR_OUT_OF_POOL_MEMORY, CUDA_ERROR_OUT_OF_MEMORY),
    ROW(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, CUDA_ERROR_MAP_FAILED), /* the driver does not grant the chosen address */
    ROW(VK_ERROR_MEMORY_MAP_FAILED, CUDA_ERROR_MAP_FAILED),
    ROW(VK_ERROR_INVALID_EXTERNAL_HANDLE, CUDA_ERROR_NOT_SUPPORTED), /* host pages that the driver does not import */
    ROW(VK_ERROR_DEVICE_LOST, CUDA_ERROR_LAUNCH_FAILED),
    ROW(VK_ERROR_INITIALIZATION_FAILED, CUDA_ERROR_NO_DEVICE),
    ROW(VK_ERROR_INCOMPATIBLE_DRIVER, CUDA_ERROR_NO_DEVICE),
    ROW(VK_ERROR_LAYER_NOT_PRESENT, CUDA_ERROR_NOT_SUPPORTED),
    ROW(VK_ERROR_EXTENSION_NOT_PRESENT, CUDA_ERROR_NOT_SUPPORTED),
    ROW(VK_ERROR_FEATURE_NOT_PRESENT, CUDA_ERROR_NOT_SUPPORTED),
    ROW(VK_ERROR_INVALID_SHADER_NV, CUDA_ERROR_INVALID_IMAGE),
#undef ROW
};

/* CUDA has no such limit, so a program cannot tell it from a lack of memory. */
static void report_limit(void)
{
    static atomic_flag is_reported = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_reported))
        ct_log(CT_LOG_WARN, "the driver permits no further allocation (VkPhysicalDeviceLimits.maxMemoryAllocationCount)");
}

CUresult ct_vk_result(VkResult result, const char *call)
{
    if (result == VK_SUCCESS)
        return CUDA_SUCCESS;
    if (result == VK_TIMEOUT || result == VK_NOT_READY)
        return CUDA_ERROR_NOT_READY;
    if (result == VK_ERROR_TOO_MANY_OBJECTS)
        report_limit();
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (results[i].vulkan == result)
            return ct_fail(results[i].cuda, "%s: %s", call, results[i].name);
    }
    return ct_fail(CUDA_ERROR_UNKNOWN, "%s: VkResult %d", call, (int)result);
}
