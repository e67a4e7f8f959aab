/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a device whether its own operations are as exact as its backend's table of drivers says, and its subgroup instructions right. */
#ifndef CT_CORE_PROBE_H
#define CT_CORE_PROBE_H
/* Parts: probe_cache.c, probe_warps.c. */

#include "backend.h"

struct ct_device;

/* Before the first kernel is compiled for the device: asks it, or remembers the answer from the disk, and takes back in its target what
 * is not so. Once for each device; other threads wait meanwhile. `opened`: device->opened, or another opening of the same device. */
void ct_probe_settle(struct ct_device *device, struct ct_backend_device *opened);

/* Bits by enum ct_probe_fact. */
enum ct_probe_fact {
#define FACT(id, member, name) CT_PROBE_##id,
#include "probe.def"
    CT_PROBE_FACT_COUNT,
    CT_PROBE_WARPS = CT_PROBE_FACT_COUNT, /* ct_device_info.unproven_warps: subgroup instructions in divergent code */
};
/* Runs the cases of what the target claims. *out_wrong: claims that some case speaks against. Untouched on failure. */
CUresult ct_probe_run(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                      uint32_t *out_wrong);

/* Whether warps of the target's form (PTX2SPV_WARP_NATIVE) shuffle and vote as they should in divergent code: probe_warps.c. *out_right is
 * untouched on failure. */
CUresult ct_probe_warps(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                        bool *out_right);

/* ---- probe_cache.c: answers on the disk, under $XDG_CACHE_HOME/cuttle or ~/.cache/cuttle ---- */
/* False: there is none for this device, driver and these claims, or none that can be trusted. */
bool ct_probe_cache_read(const struct ct_device_info *info, uint32_t claims, uint32_t *out_wrong);
/* May fail in silence: then the next process asks again. */
void ct_probe_cache_write(const struct ct_device_info *info, uint32_t claims, uint32_t wrong);

#endif
