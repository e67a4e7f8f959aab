/* SPDX-License-Identifier: Apache-2.0 */
/* Causes a message of the validation layer and returns success: ctest must fail it nevertheless (third_party/TestOutput.cmake), which the
 * property WILL_FAIL turns into a success. So the tests that must not cause messages can indeed fail. */
#include "backend_vk/vk.h"
#include "core/device/backend.h"

#include <stdio.h>

#define SKIPPED 77

int main(void)
{
    /* VUID-VkBufferCreateInfo-size-00912: size must be greater than 0. */
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
    struct ct_backend_device *device;
    VkBuffer buffer = VK_NULL_HANDLE;

    if (!ct_vk_instance_get()->validating || ct_backend_vk.device_open(0, &device) != CUDA_SUCCESS) {
        printf("no validation layer, or no Vulkan device\n");
        return SKIPPED;
    }
    if (device->vk.vkCreateBuffer(device->handle, &info, NULL, &buffer) == VK_SUCCESS)
        device->vk.vkDestroyBuffer(device->handle, buffer, NULL);
    ct_backend_vk.device_close(device);
    return 0;
}
