/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver tells of the fault by which a device was lost (VK_EXT_device_fault). */
#include "vk.h"

#include <stdio.h>

/* CT_FAULT_ACCESS: the address is not that of an access to memory, but of an instruction. */
static enum ct_fault_access access_of(VkDeviceFaultAddressTypeEXT type)
{
    switch ((unsigned)type) {
    case VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT:
        return CT_FAULT_READ;
    case VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT:
        return CT_FAULT_WRITE;
    case VK_DEVICE_FAULT_ADDRESS_TYPE_EXECUTE_INVALID_EXT:
        return CT_FAULT_EXECUTION;
    default:
        return CT_FAULT_ACCESS;
    }
}

/* The precision is a power of two: the address is known up to its lower bits. */
static struct ct_fault_address address_of(const VkDeviceFaultAddressInfoEXT *info)
{
    const uint64_t unknown = info->addressPrecision ? info->addressPrecision - 1 : 0;

    return (struct ct_fault_address){access_of(info->addressType), info->reportedAddress & ~unknown, info->reportedAddress | unknown};
}

bool ct_vk_device_fault(struct ct_backend_device *device, struct ct_device_fault *out)
{
    VkDeviceFaultAddressInfoEXT addresses[CT_FAULT_ADDRESSES] = {{0}};
    VkDeviceFaultCountsEXT counts = {.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT, .addressInfoCount = CT_FAULT_ADDRESSES};
    VkDeviceFaultInfoEXT info = {.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT, .pAddressInfos = addresses};
    VkResult result;

    *out = (struct ct_device_fault){.n_addresses = 0};
    if (!device->vk.vkGetDeviceFaultInfoEXT || ct_vk_device_check(device) != CUDA_ERROR_LAUNCH_FAILED || ct_vk_device_is_given_up(device))
        return false;
    result = device->vk.vkGetDeviceFaultInfoEXT(device->handle, &counts, &info);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return false;
    snprintf(out->description, sizeof out->description, "%.*s", (int)sizeof info.description, info.description);
    for (uint32_t i = 0; i < counts.addressInfoCount && i < CT_FAULT_ADDRESSES; i++)
        if (access_of(addresses[i].addressType) != CT_FAULT_ACCESS)
            out->addresses[out->n_addresses++] = address_of(&addresses[i]);
    return out->n_addresses || *out->description;
}
