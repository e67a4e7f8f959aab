/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: tests on a device of whether its operations are as exact as the backend's table of drivers says, and its subgroup instructions
 * are correct. */
#ifndef CT_CORE_PROBE_H
#define CT_CORE_PROBE_H
/* Parts: probe_cache.c, probe_functions.c, probe_matrices.c, probe_warps.c. */

#include "backend.h"

struct ct_device;

/* Called before the first kernel is compiled for the device: probes it, or reads the result from the disk cache, and clears the claims of
 * its target that are false. Once for each device; other threads wait meanwhile. `opened`: device->opened, or another handle of it. */
void ct_probe_ensure(struct ct_device *device, struct ct_backend_device *opened);

/* Bits by enum ct_probe_fact. */
enum ct_probe_fact {
#define FACT(id, member, name) CT_PROBE_##id,
#include "probe.def"
    CT_PROBE_FACT_COUNT,
    CT_PROBE_WARPS = CT_PROBE_FACT_COUNT, /* ct_device_info.unproven_warps: subgroup instructions in divergent code */
    CT_PROBE_FUNCTIONS,                   /* and the next ones: enum ptx2spv_near, of ct_device_info.unproven_functions */
};
/* Runs the test cases of the target's claims. *out_wrong: the claims that a case disproves. It is untouched on failure. */
CUresult ct_probe_run(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                      uint32_t *out_wrong);

/* Whether warps of the target's form (PTX2SPV_WARP_NATIVE) shuffle and vote correctly in divergent code: probe_warps.c. *out_right is
 * untouched on failure. */
CUresult ct_probe_warps(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                        bool *out_right);

/* Measures the device's own functions, whatever the target says of them. *out_near: those that are as precise as PTX's, a set of enum ptx2spv_near. It is
 * untouched on failure. */
CUresult ct_probe_functions(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                            uint32_t *out_near);

/* ---- probe_matrices.c ---- */
/* Finds out, or reads from the disk cache, which lane holds which element of the target's matrices, and removes those for which that cannot be
 * expressed in its table. */
void ct_probe_matrices(const struct ct_backend *backend, struct ct_backend_device *opened, struct ct_device_info *info);

/* ---- probe_cache.c: cached results, in $XDG_CACHE_HOME/cuttle or ~/.cache/cuttle ---- */
/* False: there is no valid result for this device, driver and set of claims. */
bool ct_probe_cache_read(const struct ct_device_info *info, uint32_t claims, uint32_t *out_wrong);
/* May fail silently: then the next process probes again. */
void ct_probe_cache_write(const struct ct_device_info *info, uint32_t claims, uint32_t wrong);

#endif
