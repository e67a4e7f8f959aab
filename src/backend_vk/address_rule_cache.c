/* SPDX-License-Identifier: Apache-2.0 */
#include "address_rule_cache.h"

#include "core/base/build_id.h"
#include "core/base/disk_cache.h"
#include "core/base/surroundings.h"

#include <string.h>

/* All that the trials look at, or that decides what the driver does in them. */
static struct ct_disk_key key_of(const struct ct_vk_physical *physical, const struct ct_device_info *info)
{
    const uint32_t facts[] = {info->vendor_id,
                              info->device_id,
                              physical->driver_version,
                              physical->has_sparse_family,
                              physical->sparse_family,
                              physical->family,
                              info->sparse,
                              physical->address_capture_replay,
                              info->kind,
                              physical->memory.memoryTypeCount,
                              (uint32_t)info->driver_id,
                              physical->memory.memoryHeapCount};
    const struct ct_hash surroundings = ct_surroundings();

    return ct_disk_key_make(CT_DISK_ADDRESSES,
                            (const struct ct_bytes[]){ct_build_id(),
                                                      {facts, sizeof facts},
                                                      {&surroundings, sizeof surroundings},
                                                      {physical->has, sizeof physical->has},
                                                      {physical->cache_uuid, sizeof physical->cache_uuid},
                                                      {info->uuid, sizeof info->uuid},
                                                      {info->name, strlen(info->name)},
                                                      {info->driver, strlen(info->driver)}},
                            8);
}

bool ct_vk_address_rule_load(const struct ct_vk_physical *physical, const struct ct_device_info *info, uint32_t *out_candidate)
{
    const struct ct_disk_key key = key_of(physical, info);

    return ct_build_id().size && ct_disk_cache_load_number(&key, out_candidate);
}

void ct_vk_address_rule_store(const struct ct_vk_physical *physical, const struct ct_device_info *info, uint32_t candidate)
{
    const struct ct_disk_key key = key_of(physical, info);

    if (ct_build_id().size)
        ct_disk_cache_store_number(&key, candidate);
}
