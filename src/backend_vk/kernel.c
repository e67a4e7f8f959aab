/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel on a device: its shader module, and pipelines (variants) for the sets of specialization constants that were launched last. */
#include "pipeline_cache.h"
#include "queue.h"
#include "texture_images.h"
#include "variants.h"

#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/device/block_shared.h"
#include "core/base/resource_limits.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "kernel"
#define COMPILER_BYTES ((uint64_t)32 << 20)
#define MOST_VARIANTS 64u /* programs use few block shapes per kernel; those that try all of them should not fill the memory */

struct ct_kernel_image {
    struct ct_backend_device *device; /* borrowed: it outlives its kernels */
    char *name;
    struct ptx2spv_kernel_info info;
    VkShaderModule module;
    struct ct_hash code; /* of the SPIR-V */
    VkPipelineLayout layout;
    uint32_t push_bytes;
    struct ct_mutex lock;               /* guards the list; rank CT_RANK_BACKEND */
    struct ct_kernel_variant *variants; /* references; the most recently used first */
    unsigned n_variants;
};

static CUresult create_module(struct ct_kernel_image *kernel, const struct ptx2spv_kernel *source)
{
    struct ct_backend_device *device = kernel->device;
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = source->n_words * sizeof *source->words,
        .pCode = source->words,
    };

    return ct_vk_result(device->vk.vkCreateShaderModule(device->handle, &info, NULL, &kernel->module), "vkCreateShaderModule");
}

static CUresult create_layout(struct ct_kernel_image *kernel)
{
    struct ct_backend_device *device = kernel->device;
    const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = kernel->push_bytes};
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &range,
                                             .setLayoutCount = kernel->info.uses_images ? 1 : 0,
                                             .pSetLayouts = &device->texture_layout};

    if (kernel->push_bytes > device->info->target.push_constant_bytes)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s: %u bytes of push constants, the device has %u", kernel->name, kernel->push_bytes,
                       device->info->target.push_constant_bytes);
    return ct_vk_result(device->vk.vkCreatePipelineLayout(device->handle, &info, NULL, &kernel->layout), "vkCreatePipelineLayout");
}

/* The set of descriptors exists before the first launch, which holds locks. A device that only compiles has none. */
static CUresult prepare_textures(const struct ct_kernel_image *kernel)
{
    VkDescriptorSet set;

    return kernel->info.uses_images && kernel->device->scheduler ? ct_vk_textures_set(kernel->device, &set) : CUDA_SUCCESS;
}

CUresult ct_vk_kernel_create(struct ct_backend_device *device, const char *name, const struct ptx2spv_kernel *source,
                             struct ct_kernel_image **out)
{
    struct ct_kernel_image *kernel = calloc(1, sizeof *kernel);
    CUresult r;

    if (!kernel)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "kernel object");
    ct_mutex_init(&kernel->lock, CT_RANK_BACKEND);
    kernel->device = device;
    kernel->info = source->info;
    kernel->code = ct_hash_joined(&(struct ct_bytes){source->words, source->n_words * sizeof *source->words}, 1);
    kernel->push_bytes = PTX2SPV_PARAMS_OFFSET;
    if (!source->info.params_in_buffer)
        kernel->push_bytes += (source->info.param_bytes + 3) & ~3u;
    if (!(kernel->name = strdup(name)))
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "name of a kernel");
    else if ((r = create_layout(kernel)) == CUDA_SUCCESS && (r = create_module(kernel, source)) == CUDA_SUCCESS)
        r = prepare_textures(kernel);
    if (r != CUDA_SUCCESS) {
        ct_vk_kernel_destroy(kernel);
        return r;
    }
    *out = kernel;
    return CUDA_SUCCESS;
}

void ct_vk_kernel_destroy(struct ct_kernel_image *kernel)
{
    struct ct_backend_device *device;

    if (!kernel || ct_vk_device_is_given_up(kernel->device))
        return;
    device = kernel->device;
    for (struct ct_kernel_variant *variant = kernel->variants, *next; variant; variant = next) {
        next = variant->next;
        ct_vk_variant_release(variant);
    }
    if (kernel->layout)
        device->vk.vkDestroyPipelineLayout(device->handle, kernel->layout, NULL);
    if (kernel->module)
        device->vk.vkDestroyShaderModule(device->handle, kernel->module, NULL);
    ct_mutex_finish(&kernel->lock);
    free(kernel->name);
    free(kernel);
}

const struct ptx2spv_kernel_info *ct_vk_kernel_info(const struct ct_kernel_image *kernel)
{
    return &kernel->info;
}

const struct ct_backend_device *ct_vk_kernel_device(const struct ct_kernel_image *kernel)
{
    return kernel->device;
}

static CUresult choose_constants(const struct ct_launch *launch, bool split, struct ct_vk_constants *out)
{
    const struct ct_kernel_image *kernel = launch->kernel;
    const struct ct_device_info *device = kernel->device->info;
    struct ct_block_shared shared;
    uint64_t threads = 1;

    for (int i = 0; i < 3; i++) {
        if (!launch->block[i] || launch->block[i] > device->max_block_threads || (threads *= launch->block[i]) > device->max_block_threads)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s: block of %u x %u x %u threads", kernel->name, launch->block[0], launch->block[1],
                           launch->block[2]);
    }
    shared = ct_block_shared(&kernel->info, launch->dynamic_shared_bytes, threads, device->shared_bytes);
    if (!kernel->info.shared_in_memory && shared.all_bytes > device->shared_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s: %llu bytes of shared memory, the device has %u", kernel->name,
                       (unsigned long long)shared.all_bytes, device->shared_bytes);
    out->value[PTX2SPV_SPEC_BLOCK_THREADS] = (uint32_t)threads;
    out->value[PTX2SPV_SPEC_BLOCK_X] = launch->block[0];
    out->value[PTX2SPV_SPEC_BLOCK_Y] = launch->block[1];
    out->value[PTX2SPV_SPEC_BLOCK_Z] = launch->block[2];
    /* The length of an array must not be 0. An exchange area alone is enough: a word before it would not be part of a block's state
     * (cooperative.c). */
    out->value[PTX2SPV_SPEC_SHARED_WORDS] = shared.own_bytes || kernel->info.exchange_bytes ? (uint32_t)(shared.own_bytes / 4) : 1;
    out->value[PTX2SPV_SPEC_GRID_OFFSET] = split;
    return CUDA_SUCCESS;
}

static struct ct_kernel_variant *find_variant_or_null_locked(struct ct_kernel_image *kernel, const struct ct_vk_constants *constants)
{
    for (struct ct_kernel_variant **link = &kernel->variants; *link; link = &(*link)->next) {
        struct ct_kernel_variant *found = *link;

        if (memcmp(&found->constants, constants, sizeof *constants))
            continue;
        *link = found->next;
        found->next = kernel->variants;
        kernel->variants = found;
        return found;
    }
    return NULL;
}

/* NVIDIA's driver and ANV say VK_ERROR_UNKNOWN of kernels that have too many registers, or too much local memory. */
__attribute__((noinline)) static CUresult call_compiler(struct ct_backend_device *device, VkPipelineCache cache,
                                                        const VkComputePipelineCreateInfo *info, VkPipeline *out)
{
    const VkResult r = device->vk.vkCreateComputePipelines(device->handle, cache, 1, info, NULL, out);

    if (r == VK_ERROR_UNKNOWN)
        return ct_fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                       "vkCreateComputePipelines: VK_ERROR_UNKNOWN: the kernel may need more registers or local memory than a thread has");
    return ct_vk_result(r, "vkCreateComputePipelines");
}

static CUresult compile(struct ct_kernel_image *kernel, const struct ct_vk_constants *constants, const VkComputePipelineCreateInfo *info,
                        VkPipeline *out)
{
    struct ct_backend_device *device = kernel->device;
    const uint32_t choices[] = {kernel->push_bytes, info->stage.pNext != NULL, info->stage.flags};
    const struct ct_bytes parts[] = {{&kernel->code, sizeof kernel->code}, {constants, sizeof *constants}, {choices, sizeof choices}};
    const struct ct_vk_pipeline_store store = ct_vk_pipeline_store_open(device, parts, sizeof parts / sizeof *parts);
    struct ct_progress progress;
    CUresult r;

    ct_progress_begin(&progress, "the Vulkan driver's compiler", kernel->name);
    r = call_compiler(device, store.handle, info, out);
    ct_progress_end(&progress);
    if (store.loaded_bytes)
        ct_log(CT_LOG_DEBUG, "the pipeline of %s comes from the disk cache", kernel->name);
    ct_vk_pipeline_store_close(device, &store, r);
    return r;
}

/* LLVM ends the process when it finds no memory for code, and other threads of lavapipe crash: with a limit of 12 MiB beyond what was mapped
 * it did. It compiles here and when a kernel runs for the first time. */
CUresult ct_vk_check_room(const struct ct_backend_device *device)
{
    if (device->info->kind != CT_DEVICE_CPU || ct_limit_allows_mapping(COMPILER_BYTES))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the limit on memory leaves less than the %llu MiB that the driver may need for a kernel",
                   (unsigned long long)(COMPILER_BYTES >> 20));
}

/* Else the driver chooses a size. */
static bool requires_subgroup_size(const struct ct_kernel_image *kernel)
{
    const struct ct_vk_physical *physical = kernel->device->physical;

    return physical->require_subgroup_32 && (kernel->info.uses_subgroups || !physical->subgroups_as_needed);
}

/* ci/tsan.supp excuses what ThreadSanitizer finds below this function: the driver, whose own locks it does not see. So this only reads what
 * does not change any more, and is a function of its own in optimized builds, too. */
__attribute__((noinline)) static CUresult create_pipeline(struct ct_kernel_image *kernel, const struct ct_vk_constants *constants,
                                                          VkPipeline *out)
{
    struct ct_backend_device *device = kernel->device;
    VkSpecializationMapEntry entries[PTX2SPV_SPEC_COUNT];
    const VkSpecializationInfo specialization = {PTX2SPV_SPEC_COUNT, entries, sizeof *constants, constants};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup_size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO, .requiredSubgroupSize = 32};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = device->capture_statistics ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
        .stage =
            {
                .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = requires_subgroup_size(kernel) ? &subgroup_size : NULL,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = kernel->module,
                .pName = "main",
                .pSpecializationInfo = &specialization,
            },
        .layout = kernel->layout,
    };

    for (uint32_t i = 0; i < PTX2SPV_SPEC_COUNT; i++)
        entries[i] = (VkSpecializationMapEntry){i, i * (uint32_t)sizeof(uint32_t), sizeof(uint32_t)};
    /* Full subgroups may be required only if the block has no partial subgroup (VUID-VkPipelineShaderStageCreateInfo-pNext-02757). */
    if (info.stage.pNext && device->physical->features.v13.computeFullSubgroups && constants->value[PTX2SPV_SPEC_BLOCK_THREADS] % 32 == 0)
        info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    return compile(kernel, constants, &info, out);
}

/* The one that was not used for the longest time. */
static struct ct_kernel_variant *remove_last_locked(struct ct_kernel_image *kernel)
{
    struct ct_kernel_variant **link = &kernel->variants, *last;

    while ((*link)->next)
        link = &(*link)->next;
    last = *link;
    *link = NULL;
    kernel->n_variants--;
    return last;
}

static CUresult make_variant(struct ct_kernel_image *kernel, const struct ct_vk_constants *constants, struct ct_kernel_variant **out)
{
    struct ct_kernel_variant *made = calloc(1, sizeof *made);
    const uint64_t begin_ns = ct_vk_now_ns();
    CUresult r;

    if (!made)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "variant of %s", kernel->name);
    if ((r = ct_vk_check_room(kernel->device)) != CUDA_SUCCESS ||
        (r = create_pipeline(kernel, constants, &made->pipeline)) != CUDA_SUCCESS) {
        free(made);
        return r;
    }
    ct_log(CT_LOG_DEBUG, "%s: compiled for blocks of %u threads, %u words of shared memory, in %.1f ms", kernel->name,
           constants->value[PTX2SPV_SPEC_BLOCK_THREADS], constants->value[PTX2SPV_SPEC_SHARED_WORDS],
           (double)(ct_vk_now_ns() - begin_ns) / 1e6);
    made->device = kernel->device;
    made->constants = *constants;
    atomic_init(&made->references, 1);
    *out = made;
    return CUDA_SUCCESS;
}

/* Compiles without the lock; if two threads compile the same variant, the second result is freed. */
static CUresult add_variant(struct ct_kernel_image *kernel, const struct ct_vk_constants *constants, struct ct_kernel_variant **out)
{
    struct ct_kernel_variant *made, *other, *unneeded = NULL;
    CUresult r = make_variant(kernel, constants, &made);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&kernel->lock);
    if ((other = find_variant_or_null_locked(kernel, constants)) != NULL) {
        unneeded = made;
    } else {
        if (kernel->n_variants == MOST_VARIANTS)
            unneeded = remove_last_locked(kernel);
        made->next = kernel->variants;
        kernel->variants = other = made;
        kernel->n_variants++;
    }
    ct_vk_variant_retain(other);
    *out = other;
    ct_mutex_unlock(&kernel->lock);
    ct_vk_variant_release(unneeded);
    return CUDA_SUCCESS;
}

CUresult ct_vk_kernel_variant(const struct ct_launch *launch, bool split, struct ct_kernel_variant **out)
{
    struct ct_kernel_image *kernel = launch->kernel;
    struct ct_vk_constants constants = {{0}};
    struct ct_kernel_variant *found;
    CUresult r = choose_constants(launch, split, &constants);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&kernel->lock);
    if ((found = find_variant_or_null_locked(kernel, &constants)) != NULL)
        ct_vk_variant_retain(found);
    ct_mutex_unlock(&kernel->lock);
    if (!found)
        return add_variant(kernel, &constants, out);
    *out = found;
    return CUDA_SUCCESS;
}

CUresult ct_vk_kernel_pipeline(const struct ct_kernel_image *kernel, const struct ct_kernel_variant *variant, struct ct_vk_pipeline *out)
{
    *out = (struct ct_vk_pipeline){variant->pipeline, kernel->layout, kernel->push_bytes, VK_NULL_HANDLE};
    return kernel->info.uses_images ? ct_vk_textures_set(kernel->device, &out->textures) : CUDA_SUCCESS;
}
