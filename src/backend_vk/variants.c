/* SPDX-License-Identifier: Apache-2.0 */
#include "variants.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "kernel"

void ct_vk_variant_retain(struct ct_kernel_variant *variant)
{
    atomic_fetch_add_explicit(&variant->references, 1, memory_order_relaxed);
}

void ct_vk_variant_release(struct ct_kernel_variant *variant)
{
    if (!variant || ct_vk_device_is_given_up(variant->device) ||
        atomic_fetch_sub_explicit(&variant->references, 1, memory_order_acq_rel) > 1)
        return;
    variant->device->vk.vkDestroyPipeline(variant->device->handle, variant->pipeline, NULL);
    free(variant);
}

CUresult ct_vk_variants_keep(struct ct_vk_variants *variants, struct ct_kernel_variant *variant)
{
    if (variants->count && variants->list[variants->count - 1] == variant)
        return CUDA_SUCCESS;
    if (variants->count == variants->capacity) {
        const unsigned capacity = variants->capacity ? 2 * variants->capacity : 8;
        struct ct_kernel_variant **list = realloc(variants->list, capacity * sizeof(*list));

        if (!list)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of pipelines");
        variants->list = list;
        variants->capacity = capacity;
    }
    ct_vk_variant_retain(variant);
    variants->list[variants->count++] = variant;
    return CUDA_SUCCESS;
}

void ct_vk_variants_drop(struct ct_vk_variants *variants)
{
    for (unsigned i = 0; i < variants->count; i++)
        ct_vk_variant_release(variants->list[i]);
    variants->count = 0;
}
