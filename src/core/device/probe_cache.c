/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache of probe results: one file for each device, driver and set of claims. */
#include "probe.h"

#include "core/base/disk_cache.h"

#include <string.h>

/* Part of the key: incremented when the cases of probe.def change, or the conditions under which they run. */
#define CASES_VERSION 3u
#define KIND "probe"

static uint64_t key_of(const struct ct_device_info *info, uint32_t claims)
{
    const uint32_t versions[] = {CASES_VERSION,
                                 PTX2SPV_VERSION,
                                 claims,
                                 info->vendor_id,
                                 info->device_id,
                                 info->target.dialect,
                                 info->target.workarounds,
                                 info->target.warp_form,
                                 info->target.subgroup_size};
    uint64_t key = ct_hash(CT_HASH_SEED, versions, sizeof versions);

    key = ct_hash(key, info->uuid, sizeof info->uuid);
    key = ct_hash(key, info->name, strlen(info->name) + 1);
    return ct_hash(key, info->driver, strlen(info->driver) + 1);
}

bool ct_probe_cache_read(const struct ct_device_info *info, uint32_t claims, uint32_t *out_wrong)
{
    uint32_t wrong;

    if (!ct_disk_cache_read(KIND, key_of(info, claims), &wrong))
        return false;
    *out_wrong = wrong & claims;
    return true;
}

void ct_probe_cache_write(const struct ct_device_info *info, uint32_t claims, uint32_t wrong)
{
    ct_disk_cache_write(KIND, key_of(info, claims), wrong);
}
