/* SPDX-License-Identifier: Apache-2.0 */
/* A Vulkan driver as a judge: the only physical device that the loader finds. The backend's own code creates the target and the
 * pipelines. */
#include "judge.h"

#include "backend_vk/variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vulkan {
    struct ct_vk_physical physical;
    struct ct_device_info info;
    struct ct_backend_device *device;
};

static const struct {
    const char *name; /* names in the statistics of RADV and, the last three, ANV */
    size_t offset;
} wanted[] = {
    {"SGPRs", offsetof(struct statistics, scalar_registers)},
    {"VGPRs", offsetof(struct statistics, vector_registers)},
    {"Instructions", offsetof(struct statistics, instructions)},
    {"Code size", offsetof(struct statistics, code_bytes)},
    {"Spilled VGPRs", offsetof(struct statistics, spills)},
    {"Spilled SGPRs", offsetof(struct statistics, scalar_spills)},
    {"Latency", offsetof(struct statistics, latency)},
    {"Inverse Throughput", offsetof(struct statistics, inverse_throughput)},
    {"Instruction Count", offsetof(struct statistics, instructions)},
    {"Spill Count", offsetof(struct statistics, spills)},
    {"Cycle Count", offsetof(struct statistics, latency)},
};

static void take(const VkPipelineExecutableStatisticKHR *statistic, struct statistics *out)
{
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        uint64_t *field = (uint64_t *)((char *)out + wanted[i].offset);

        if (!strcmp(statistic->name, wanted[i].name))
            *field = statistic->value.u64;
    }
}

static void read_statistics(struct ct_backend_device *device, VkPipeline pipeline, struct statistics *out)
{
    const VkPipelineInfoKHR which = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
    const VkPipelineExecutableInfoKHR first = {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline};
    VkPipelineExecutablePropertiesKHR executable = {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
    VkPipelineExecutableStatisticKHR all[64];
    uint32_t one = 1, n = sizeof all / sizeof *all;

    for (uint32_t i = 0; i < n; i++)
        all[i] = (VkPipelineExecutableStatisticKHR){.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
    if (device->vk.vkGetPipelineExecutablePropertiesKHR(device->handle, &which, &one, &executable) < VK_SUCCESS ||
        device->vk.vkGetPipelineExecutableStatisticsKHR(device->handle, &first, &n, all) < VK_SUCCESS)
        return;
    out->lanes = executable.subgroupSize;
    for (uint32_t i = 0; i < n; i++)
        if (all[i].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR)
            take(&all[i], out);
}

static enum verdict compile(struct judge *judge, const struct exhibit *exhibit, struct statistics *out, char *why, size_t why_size)
{
    struct vulkan *vulkan = judge->state;
    struct ct_kernel_image *image;
    struct ct_kernel_variant *variant;
    CUresult r = ct_vk_kernel_create(vulkan->device, exhibit->name, exhibit->kernel, &image);

    if (r != CUDA_SUCCESS) {
        snprintf(why, why_size, "the shader module gives error %d", (int)r);
        return VERDICT_REFUSED;
    }
    r = ct_vk_kernel_variant(&(struct ct_launch){.kernel = image,
                                                 .block = {exhibit->block[0], exhibit->block[1], exhibit->block[2]},
                                                 .dynamic_shared_bytes = exhibit->dynamic_shared_bytes},
                             false, &variant);
    if (r == CUDA_SUCCESS && vulkan->device->capture_statistics)
        read_statistics(vulkan->device, variant->pipeline, out);
    else if (r != CUDA_SUCCESS)
        snprintf(why, why_size, "the pipeline gives error %d", (int)r);
    ct_vk_kernel_destroy(image);
    return r == CUDA_SUCCESS ? VERDICT_COMPILED : VERDICT_REFUSED;
}

static bool make_layout(const struct ct_backend_device *device, VkDescriptorSetLayout *out_set, VkPipelineLayout *out)
{
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
    VkDescriptorSetLayoutBinding bindings[FOREIGN_BUFFERS];
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = FOREIGN_BUFFERS, .pBindings = bindings};
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = out_set,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &range};

    for (uint32_t i = 0; i < FOREIGN_BUFFERS; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    return device->vk.vkCreateDescriptorSetLayout(device->handle, &set, NULL, out_set) == VK_SUCCESS &&
           device->vk.vkCreatePipelineLayout(device->handle, &layout, NULL, out) == VK_SUCCESS;
}

enum verdict judge_compile_foreign(struct judge *judge, const uint32_t *words, size_t n_words, struct statistics *out)
{
    struct vulkan *vulkan = judge->state;
    struct ct_backend_device *device = vulkan->device;
    const VkShaderModuleCreateInfo module = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = n_words * sizeof *words, .pCode = words};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo lanes = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO, .requiredSubgroupSize = 32};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = vulkan->physical.require_subgroup_32 && !vulkan->physical.subgroups_as_needed ? &lanes : NULL,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"}};
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;

    if (device->capture_statistics && make_layout(device, &set, &info.layout) &&
        device->vk.vkCreateShaderModule(device->handle, &module, NULL, &info.stage.module) == VK_SUCCESS &&
        device->vk.vkCreateComputePipelines(device->handle, VK_NULL_HANDLE, 1, &info, NULL, &pipeline) == VK_SUCCESS)
        read_statistics(device, pipeline, out);
    device->vk.vkDestroyPipeline(device->handle, pipeline, NULL);
    device->vk.vkDestroyShaderModule(device->handle, info.stage.module, NULL);
    device->vk.vkDestroyPipelineLayout(device->handle, info.layout, NULL);
    device->vk.vkDestroyDescriptorSetLayout(device->handle, set, NULL);
    return pipeline ? VERDICT_COMPILED : VERDICT_REFUSED;
}

bool judge_open_vulkan(struct judge *judge, char *why, size_t why_size)
{
    static struct vulkan vulkan; /* lives as long as the process: the backend keeps pointers to it */
    const struct ct_vk_instance *instance = ct_vk_instance_get();
    VkPhysicalDevice handle;
    uint32_t count = 1;
    const char *reason = NULL;

    if (!instance->handle || vkEnumeratePhysicalDevices(instance->handle, &count, &handle) < VK_SUCCESS || !count) {
        snprintf(why, why_size, "no Vulkan device");
        return false;
    }
    if (instance->n_devices) { /* the target as start-up has determined it, including probes */
        vulkan.physical = instance->physical[0];
        vulkan.info = instance->infos[0];
    } else if (!ct_vk_device_examine(instance, handle, &vulkan.physical, &vulkan.info, &reason) && !vulkan.physical.memory_missing) {
        snprintf(why, why_size, "the device lacks %s", reason);
        return false;
    }
    if (vulkan.physical.memory_missing) { /* no address rule can be tested; that of the chips that need this: judge.info.navi31 */
        vulkan.info.target.pointer_rule = PTX2SPV_POINTER_OR;
        vulkan.info.target.pointer_mask = UINT64_C(0xffff800000000000);
    }
    if (ct_vk_device_open_compiler(&vulkan.physical, &vulkan.info, &vulkan.device) != CUDA_SUCCESS) {
        snprintf(why, why_size, "the device does not open");
        return false;
    }
    snprintf(judge->name, sizeof judge->name, "%.120s, %.120s", vulkan.info.name, vulkan.info.driver);
    judge->target = vulkan.info.target;
    judge->may_lack = !judge->target.float64 || !judge->target.atomic_int64_shared;
    judge->compile = compile;
    judge->state = &vulkan;
    return true;
}
