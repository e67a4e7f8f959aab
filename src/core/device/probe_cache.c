/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache of probe results: one file for each device, driver and set of claims. */
#include "probe.h"

#include "core/base/disk_cache.h"

#include <string.h>

/* Part of the key: incremented when the cases of probe.def change, or the conditions under which they run. */
#define CASES_VERSION 6u

static struct ct_disk_key key_of(const struct ct_device_info *info, uint32_t claims)
{
    const uint32_t versions[] = {CASES_VERSION,     PTX2SPV_VERSION,        claims,
                                 info->vendor_id,   info->device_id,        info->target.dialect,
                                 info->workarounds, info->target.warp_form, info->target.subgroup_size};
    const struct ct_bytes parts[] = {{versions, sizeof versions},
                                     {info->uuid, sizeof info->uuid},
                                     {info->name, strlen(info->name)},
                                     {info->driver, strlen(info->driver)}};

    return ct_disk_key_make(CT_DISK_PROBE, parts, sizeof parts / sizeof *parts);
}

bool ct_probe_cache_read(const struct ct_device_info *info, uint32_t claims, uint32_t *out_wrong)
{
    const struct ct_disk_key key = key_of(info, claims);
    uint32_t wrong;

    if (!ct_disk_cache_load_number(&key, &wrong))
        return false;
    *out_wrong = wrong & claims;
    return true;
}

void ct_probe_cache_write(const struct ct_device_info *info, uint32_t claims, uint32_t wrong)
{
    const struct ct_disk_key key = key_of(info, claims);

    ct_disk_cache_store_number(&key, wrong);
}
