/* SPDX-License-Identifier: Apache-2.0 */
/* Initialization of a device: the options that control how its kernels are compiled, and the parts that exist before it is opened. */
#include "device_setup.h"

#include "context_setup.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/device/device.h"
#include "core/copy/copy_kernel.h"
#include "core/copy/memory_kernels.h"
#include "core/backing/memory_spares.h"
#include "core/blocks/block_decoder.h"
#include "core/pool/memory_pool.h"

#include <string.h>

#define CT_CHANNEL "device"

/* Uses the driver's operations wherever they exist. */
static void claim_all(struct ptx2spv_target *target)
{
    target->exact_fma16 = target->exact_fma32 = target->exact_div32 = target->exact_sqrt32 = 1;
    target->exact_fma64 = target->exact_div64 = target->exact_sqrt64 = 1;
    target->refined_sqrt32 = target->fma32_flushes = target->guards_fma32 = target->splits_fma32 = 0;
}

static void take_fast_math(struct ct_device *device)
{
    const uint8_t flushes = device->info.target.fma32_flushes, splits = device->info.target.splits_fma32;

    claim_all(&device->info.target);
    device->info.unproven_fma = false;
    device->info.target.fma32_flushes = flushes;
    device->info.target.near_functions = PTX2SPV_NEAR_ALL;
    device->info.target.splits_fma32 = splits; /* such drivers contract a product and a sum, and take Fma apart */
    device->info.target.exact_fma32 = !splits;
    ct_log(CT_LOG_WARN, "device %d: CUTTLE_MATH=fast: fma, division and square root are only as accurate as the driver's operations",
           device->ordinal);
}

static void take_own_math(struct ptx2spv_target *target)
{
    target->exact_fma16 = target->exact_fma32 = target->exact_div32 = target->exact_sqrt32 = 0;
    target->exact_fma64 = target->refined_sqrt32 = target->refined_roots64 = target->guards_fma32 = target->splits_fma32 = 0;
}

/* Believes everything that a probe does not disprove. */
static void take_probed_math(struct ct_device_info *info)
{
    claim_all(&info->target);
    info->unproven_functions = true;
}

/* As on AMD's GPUs before GFX10.3. */
static void take_split_math(struct ptx2spv_target *target)
{
    target->exact_fma32 = target->refined_sqrt32 = target->guards_fma32 = 0;
    target->splits_fma32 = 1;
}

/* As on GPUs without 64-bit floats, whose drivers round inexactly. */
static void take_single_math(struct ptx2spv_target *target)
{
    take_own_math(target);
    target->float64 = 0;
}

/* As on GPUs of which only fused operations are known to be exact: f32 quotients, roots and elementary functions are made of them, and f64 roots as on
 * NVIDIA's. */
static void take_refined_math(struct ct_device_info *info)
{
    struct ptx2spv_target *target = &info->target;

    info->unproven_functions = false;
    target->refined_roots64 = 1;
    target->exact_div32 = target->exact_sqrt32 = target->near_functions = 0;
}

/* Treats the driver as an unknown one that claims to support what native warps need. */
static void take_probed_warps(struct ct_device_info *info)
{
    info->target.warp_form = PTX2SPV_WARP_NATIVE;
    if (info->target.subgroup_size < CT_WARP_SIZE)
        info->target.subgroup_size = CT_WARP_SIZE;
    info->unproven_warps = true;
}

/* Options can override how kernels are compiled, so that tests can run each form on devices that do not use it by default. */
static enum ptx2spv_offsets offsets_of(const char *choice)
{
    if (!strcmp(choice, "short"))
        return PTX2SPV_OFFSETS_SHORT;
    return !strcmp(choice, "fixed") ? PTX2SPV_OFFSETS_SHORT_FIXED : PTX2SPV_OFFSETS_LONG;
}

static void apply_options(struct ct_device *device)
{
    struct ptx2spv_target *target = &device->info.target;

    if (!strcmp(ct_config()->warp, "collective"))
        target->warp_form = PTX2SPV_WARP_COLLECTIVE;
    else if (!strcmp(ct_config()->warp, "probed"))
        take_probed_warps(&device->info);
    if (!strcmp(ct_config()->math, "fast"))
        take_fast_math(device);
    else if (!strcmp(ct_config()->math, "exact"))
        take_own_math(target);
    else if (!strcmp(ct_config()->math, "probed"))
        take_probed_math(&device->info);
    else if (!strcmp(ct_config()->math, "guarded"))
        target->guards_fma32 = 1;
    else if (!strcmp(ct_config()->math, "split"))
        take_split_math(target);
    else if (!strcmp(ct_config()->math, "single"))
        take_single_math(target);
    else if (!strcmp(ct_config()->math, "refined"))
        take_refined_math(&device->info);
    if (!strcmp(ct_config()->sync, "resumed"))
        target->sync_form = PTX2SPV_SYNC_RESUMED;
    else if (!strcmp(ct_config()->sync, "predicated"))
        target->sync_form = PTX2SPV_SYNC_PREDICATED;
    if (!strcmp(ct_config()->shared_memory, "native"))
        target->workarounds &= ~(uint32_t)PTX2SPV_WORKAROUND_SLOW_SHARED;
    if (!strcmp(ct_config()->textures, "code"))
        target->sampled_images = 0;
    if (*ct_config()->offsets && target->dialect == PTX2SPV_VULKAN)
        target->short_offsets = offsets_of(ct_config()->offsets);
    target->lockstep = ct_config()->lockstep;
}

CUresult ct_device_init(struct ct_device *device, int ordinal, const struct ct_backend *backend, unsigned backend_index,
                        const struct ct_device_info *info)
{
    CUresult r;

    device->ordinal = ordinal;
    device->backend = backend;
    device->backend_index = backend_index;
    device->info = *info;
    apply_options(device);
    ct_mutex_init(&device->lock, CT_RANK_DEVICE);
    ct_mutex_init(&device->running_lock, CT_RANK_RUNNING);
    pthread_cond_init(&device->primary_destroyed, NULL);
    ct_once_init(&device->probed);
    ct_once_init(&device->timer_measured);
    ct_log(CT_LOG_INFO, "device %d: %s (%s, %s)", ordinal, info->name, backend->name, info->driver);
    r = ct_context_make_primary(device, &device->primary);
    if (r == CUDA_SUCCESS)
        r = ct_spares_create(device, &device->spares);
    return r == CUDA_SUCCESS ? ct_device_pools_create(device, &device->pools) : r;
}

void ct_device_finish(struct ct_device *device)
{
    ct_device_pools_destroy(device->pools);
    ct_context_unmake_primary(device->primary);
    ct_spares_destroy(device->spares);
    ct_copy_kernel_destroy(device);
    ct_memory_kernels_destroy(device);
    ct_block_kernels_destroy(device);
    if (device->opened)
        device->backend->device_close(device->opened);
    pthread_cond_destroy(&device->primary_destroyed);
    ct_once_destroy(&device->probed);
    ct_once_destroy(&device->timer_measured);
    ct_mutex_finish(&device->running_lock);
    ct_mutex_finish(&device->lock);
}
