/* SPDX-License-Identifier: Apache-2.0 */
/* Variants of kernels: a pipeline for each set of specialization constants. A kernel keeps those that it used last (kernel.c); work and commands that
 * need a variant hold a reference. */
#ifndef CT_VK_VARIANTS_H
#define CT_VK_VARIANTS_H

#include "vk.h"

/* The specialization constants in the order of enum ptx2spv_spec_constant; they are also the key of a variant. */
struct ct_vk_constants {
    uint32_t value[PTX2SPV_SPEC_COUNT];
};

struct ct_kernel_variant {
    struct ct_kernel_variant *next; /* of the kernel */
    struct ct_backend_device *device;
    struct ct_vk_constants constants;
    VkPipeline pipeline;
    atomic_uint references;
};

void ct_vk_variant_retain(struct ct_kernel_variant *variant);
void ct_vk_variant_release(struct ct_kernel_variant *variant); /* takes NULL */

/* References of a batch or a recording. A zeroed struct has none. */
struct ct_vk_variants {
    struct ct_kernel_variant **list;
    unsigned count, capacity;
};

/* Adds a reference, unless it was the last to be added. OUT_OF_MEMORY. */
CUresult ct_vk_variants_keep(struct ct_vk_variants *variants, struct ct_kernel_variant *variant);
void ct_vk_variants_drop(struct ct_vk_variants *variants); /* releases all, and keeps the memory of the list */

#endif
