/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the shaders *.comp on the first Vulkan device, as a native program would: storage buffers in a descriptor set, push constants,
 * a command buffer that is recorded once, with barriers between launches in a row. */
#define VK_NO_PROTOTYPES
#define VOLK_IMPLEMENTATION
#include <volk.h>

#include "example.h"
#include "handwritten.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BUFFERS 32

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkCommandPool pool;
static VkDescriptorPool descriptors;
static VkFence fence;
static VkCommandBuffer commands;
static struct {
    VkBuffer buffer;
    VkDeviceMemory memory;
    void *mapped;
} buffers[MAX_BUFFERS];
static unsigned n_buffers;
static struct { /* the texture of the prepared kernel, or zeros */
    VkImage image;
    VkDeviceMemory memory;
    VkImageView view;
    VkSampler sampler;
} texture;
static struct { /* the state of the prepared kernel */
    VkShaderModule module;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorSet set;
} current;

static void must(VkResult result, const char *what)
{
    if (result != VK_SUCCESS)
        hand_fail(what, (int)result);
}

static void make_instance(void)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    uint32_t count = 1;

    must(volkInitialize(), "volkInitialize");
    must(vkCreateInstance(&info, NULL, &instance), "vkCreateInstance");
    volkLoadInstance(instance);
    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < VK_SUCCESS || count == 0)
        hand_fail("no Vulkan device", 0);
}

static uint32_t compute_family(void)
{
    VkQueueFamilyProperties families[16];
    uint32_t count = 16;

    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)
            return i;
    hand_fail("no queue for compute", 0);
}

static void open_vulkan(void)
{
    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue_info};
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 64}, {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 8}};
    const VkDescriptorPoolCreateInfo descriptor_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 32, .poolSizeCount = 2, .pPoolSizes = sizes};
    const VkFenceCreateInfo fence_info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};

    make_instance();
    pool_info.queueFamilyIndex = queue_info.queueFamilyIndex = compute_family();
    must(vkCreateDevice(physical, &info, NULL, &device), "vkCreateDevice");
    volkLoadDevice(device);
    vkGetDeviceQueue(device, queue_info.queueFamilyIndex, 0, &queue);
    must(vkCreateCommandPool(device, &pool_info, NULL, &pool), "vkCreateCommandPool");
    must(vkCreateDescriptorPool(device, &descriptor_info, NULL, &descriptors), "vkCreateDescriptorPool");
    must(vkCreateFence(device, &fence_info, NULL, &fence), "vkCreateFence");
}

/* Finds a host-visible memory type, device-local if there is one. */
static uint32_t memory_type(uint32_t allowed)
{
    static const VkMemoryPropertyFlags wanted[] = {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
                                                       VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                                   VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT};
    VkPhysicalDeviceMemoryProperties memory;

    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < memory.memoryTypeCount; i++)
            if (allowed >> i & 1 && (memory.memoryTypes[i].propertyFlags & wanted[k]) == wanted[k])
                return i;
    hand_fail("no memory that the host sees", 0);
}

static unsigned make_buffer(const void *data, size_t size_bytes)
{
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = size_bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    VkMemoryRequirements needs;
    const unsigned b = n_buffers++;

    if (b == MAX_BUFFERS)
        hand_fail("too many buffers", 0);
    must(vkCreateBuffer(device, &info, NULL, &buffers[b].buffer), "vkCreateBuffer");
    vkGetBufferMemoryRequirements(device, buffers[b].buffer, &needs);
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = memory_type(needs.memoryTypeBits);
    must(vkAllocateMemory(device, &allocate, NULL, &buffers[b].memory), "vkAllocateMemory");
    must(vkBindBufferMemory(device, buffers[b].buffer, buffers[b].memory, 0), "vkBindBufferMemory");
    must(vkMapMemory(device, buffers[b].memory, 0, VK_WHOLE_SIZE, 0, &buffers[b].mapped), "vkMapMemory");
    if (data)
        memcpy(buffers[b].mapped, data, size_bytes);
    else
        memset(buffers[b].mapped, 0, size_bytes);
    return b;
}

static void make_pipeline(const struct hand_launch *launch)
{
    VkDescriptorSetLayoutBinding bindings[HAND_BUFFERS + 1];
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof launch->scalars};
    char name[64];
    size_t size;

    for (uint32_t i = 0; i < launch->n_buffers; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    bindings[launch->n_buffers] =
        (VkDescriptorSetLayoutBinding){launch->n_buffers, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    const VkDescriptorSetLayoutCreateInfo set_info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                      .bindingCount = launch->n_buffers + (launch->texture != HAND_NO_TEXTURE),
                                                      .pBindings = bindings};
    must(vkCreateDescriptorSetLayout(device, &set_info, NULL, &current.set_layout), "vkCreateDescriptorSetLayout");
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &current.set_layout,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &range};
    must(vkCreatePipelineLayout(device, &layout, NULL, &current.layout), "vkCreatePipelineLayout");
    snprintf(name, sizeof name, "handwritten/%s.spv", launch->kernel);
    uint32_t *words = (uint32_t *)example_read_file(example_beside(name), &size);
    const VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = size, .pCode = words};
    must(vkCreateShaderModule(device, &module, NULL, &current.module), "vkCreateShaderModule");
    free(words);
    const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                              .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                        .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                        .module = current.module,
                                                        .pName = "main"},
                                              .layout = current.layout};
    must(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &current.pipeline), "vkCreateComputePipelines");
}

static void make_set(const struct hand_launch *launch)
{
    const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = descriptors,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &current.set_layout};

    must(vkAllocateDescriptorSets(device, &info, &current.set), "vkAllocateDescriptorSets");
    for (uint32_t i = 0; i < launch->n_buffers; i++) {
        const VkDescriptorBufferInfo buffer = {buffers[launch->buffers[i]].buffer, 0, VK_WHOLE_SIZE};
        const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = current.set,
                                            .dstBinding = i,
                                            .descriptorCount = 1,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                            .pBufferInfo = &buffer};

        vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    }
    if (launch->texture != HAND_NO_TEXTURE) {
        const VkDescriptorImageInfo image = {texture.sampler, texture.view, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
        const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                            .dstSet = current.set,
                                            .dstBinding = launch->n_buffers,
                                            .descriptorCount = 1,
                                            .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                            .pImageInfo = &image};

        vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    }
}

/* ---- textures ---- */

static void make_image(uint32_t side)
{
    const VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                    .imageType = VK_IMAGE_TYPE_2D,
                                    .format = VK_FORMAT_R32_SFLOAT,
                                    .extent = {side, side, 1},
                                    .mipLevels = 1,
                                    .arrayLayers = 1,
                                    .samples = VK_SAMPLE_COUNT_1_BIT,
                                    .tiling = VK_IMAGE_TILING_OPTIMAL,
                                    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
    VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    VkMemoryRequirements needs;

    must(vkCreateImage(device, &info, NULL, &texture.image), "vkCreateImage");
    vkGetImageMemoryRequirements(device, texture.image, &needs);
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = (uint32_t)__builtin_ctz(needs.memoryTypeBits); /* drivers list the best one first */
    must(vkAllocateMemory(device, &allocate, NULL, &texture.memory), "vkAllocateMemory");
    must(vkBindImageMemory(device, texture.image, texture.memory, 0), "vkBindImageMemory");
}

static void make_view_and_sampler(enum hand_texture kind)
{
    const VkFilter filter = kind == HAND_LINEAR ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
    const VkImageViewCreateInfo view = {.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                        .image = texture.image,
                                        .viewType = VK_IMAGE_VIEW_TYPE_2D,
                                        .format = VK_FORMAT_R32_SFLOAT,
                                        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
    const VkSamplerCreateInfo sampler = {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                         .magFilter = filter,
                                         .minFilter = filter,
                                         .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                         .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                         .unnormalizedCoordinates = VK_TRUE};

    must(vkCreateImageView(device, &view, NULL, &texture.view), "vkCreateImageView");
    must(vkCreateSampler(device, &sampler, NULL, &texture.sampler), "vkCreateSampler");
}

static void change_layout(VkImageLayout from, VkImageLayout to)
{
    const VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                          .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                          .dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_READ_BIT,
                                          .oldLayout = from,
                                          .newLayout = to,
                                          .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                          .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                          .image = texture.image,
                                          .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};

    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                         0, NULL, 0, NULL, 1, &barrier);
}

static void record_upload(const struct hand_launch *launch)
{
    const uint32_t side = launch->scalars.n;
    const VkBufferImageCopy whole = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, .imageExtent = {side, side, 1}};

    change_layout(VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
    vkCmdCopyBufferToImage(commands, buffers[launch->buffers[0]].buffer, texture.image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &whole);
    change_layout(VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
}

static void forget_texture(void)
{
    vkDestroySampler(device, texture.sampler, NULL);
    vkDestroyImageView(device, texture.view, NULL);
    vkDestroyImage(device, texture.image, NULL);
    vkFreeMemory(device, texture.memory, NULL);
    memset(&texture, 0, sizeof texture);
}

/* ---- commands ---- */

static void begin_commands(void)
{
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool, .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};

    must(vkAllocateCommandBuffers(device, &info, &commands), "vkAllocateCommandBuffers");
    must(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
}

static void run(void)
{
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};

    must(vkQueueSubmit(queue, 1, &submit, fence), "vkQueueSubmit");
    must(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
    must(vkResetFences(device, 1, &fence), "vkResetFences");
}

static void make_texture(const struct hand_launch *launch)
{
    make_image(launch->scalars.n);
    make_view_and_sampler(launch->texture);
    begin_commands();
    record_upload(launch);
    must(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    run();
    vkFreeCommandBuffers(device, pool, 1, &commands);
    commands = VK_NULL_HANDLE;
}

static void record(const struct hand_launch *launch)
{
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};

    begin_commands();
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, current.pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, current.layout, 0, 1, &current.set, 0, NULL);
    vkCmdPushConstants(commands, current.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof launch->scalars, &launch->scalars);
    for (unsigned i = 0; i < launch->times; i++) {
        if (i)
            vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0,
                                 NULL, 0, NULL);
        vkCmdDispatch(commands, launch->groups[0], launch->groups[1], 1);
    }
    must(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
}

static void forget_current(void)
{
    vkDestroyPipeline(device, current.pipeline, NULL);
    vkDestroyShaderModule(device, current.module, NULL);
    vkDestroyPipelineLayout(device, current.layout, NULL);
    vkDestroyDescriptorSetLayout(device, current.set_layout, NULL);
    if (commands)
        vkFreeCommandBuffers(device, pool, 1, &commands);
    commands = VK_NULL_HANDLE;
    forget_texture();
}

static void prepare(const struct hand_launch *launch)
{
    forget_current();
    if (launch->texture != HAND_NO_TEXTURE)
        make_texture(launch);
    make_pipeline(launch);
    make_set(launch);
    record(launch);
}

static void read_buffer(unsigned buffer, void *data, size_t size_bytes)
{
    memcpy(data, buffers[buffer].mapped, size_bytes);
}

static void close_vulkan(void)
{
    forget_current();
    for (unsigned i = 0; i < n_buffers; i++) {
        vkDestroyBuffer(device, buffers[i].buffer, NULL);
        vkFreeMemory(device, buffers[i].memory, NULL);
    }
    vkDestroyFence(device, fence, NULL);
    vkDestroyDescriptorPool(device, descriptors, NULL);
    vkDestroyCommandPool(device, pool, NULL);
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
}

const struct hand_api hand_vulkan = {"vulkan", open_vulkan, make_buffer, prepare, run, read_buffer, close_vulkan};
