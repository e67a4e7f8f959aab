/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: the backend's physical_* and range_* functions. */
#ifndef CT_VK_VIRTUAL_MEMORY_H
#define CT_VK_VIRTUAL_MEMORY_H

#include "memory.h"

CUresult ct_vk_physical_create(struct ct_backend_device *device, uint64_t size_bytes, enum ct_physical_use use, struct ct_physical **out);
CUresult ct_vk_physical_import(struct ct_backend_device *device, int fd, struct ct_physical **out, uint64_t *out_bytes);
CUresult ct_vk_physical_export(struct ct_physical *physical, int *out_fd);
CUresult ct_vk_physical_export_dma_buf(struct ct_physical *physical, int *out_fd);
CUresult ct_vk_physical_pages(struct ct_physical *physical, void **out);
void ct_vk_physical_destroy(struct ct_physical *physical);
CUresult ct_vk_range_create(struct ct_backend_device *device, uint64_t want_address, uint64_t size_bytes, struct ct_memory **out);
CUresult ct_vk_range_bind(struct ct_memory *range, const struct ct_range_bind *binds, unsigned count);

/* Finds the allocation that contains bytes of physical memory, which are within its bounds. False: they are in several. */
struct ct_vk_memory_location {
    VkDeviceMemory memory;
    uint64_t offset;
    uint32_t type;
};
bool ct_vk_physical_location(const struct ct_physical *physical, uint64_t offset, uint64_t size_bytes, struct ct_vk_memory_location *out);

/* Whether memory for ranges can be exported and imported. */
bool ct_vk_shares_ranges(const struct ct_vk_physical *physical, const struct ct_device_info *info);

#endif
