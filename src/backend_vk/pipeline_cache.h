/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines in the disk cache: what the driver puts into a VkPipelineCache when it compiles. Each pipeline has a VkPipelineCache and a file of its
 * own, which is written as soon as it is compiled: so a process loads only what it uses, the oldest pipelines go first, processes need not
 * merge what they have, and nothing is lost if a process ends in any way. Drivers that leave their caches empty (lavapipe) are asked once. */
#ifndef CT_VK_PIPELINE_CACHE_H
#define CT_VK_PIPELINE_CACHE_H

#include "core/base/disk_cache.h"
#include "vk.h"

struct ct_vk_pipeline_store {
    VkPipelineCache handle; /* to compile with */
    bool is_kept;           /* it is this pipeline's own; otherwise the device's, which is not stored */
    struct ct_disk_key key;
    size_t loaded_bytes; /* 0: there was no file */
};

/* `parts`: all that the pipeline depends on besides the device. */
struct ct_vk_pipeline_store ct_vk_pipeline_store_open(struct ct_backend_device *device, const struct ct_bytes *parts, size_t n_parts);
/* Stores what the driver has added, unless the compilation failed. */
void ct_vk_pipeline_store_close(struct ct_backend_device *device, const struct ct_vk_pipeline_store *store, CUresult compiled);

#endif
