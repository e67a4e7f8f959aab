/* SPDX-License-Identifier: Apache-2.0 */
#include "vulkan.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_QUEUES 32

static PFN_vkGetInstanceProcAddr instance_address;
static VkInstance instance;
static VkDevice device;

/* Every function is looked up where it is used: a program that uses few of them does not pay for more. */
#define CALL(name, ...) ((PFN_##name)instance_address(instance, #name))(__VA_ARGS__)
#define CHECK(call) check(call, #call)

static void check(VkResult result, const char *call)
{
    if (result < VK_SUCCESS) {
        fprintf(stderr, "%s: %d\n", call, (int)result);
        exit(EXIT_FAILURE);
    }
}

struct buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    VkDeviceAddress address;
    uint32_t *words;
};

static uint32_t host_visible_type(VkPhysicalDevice physical, uint32_t allowed)
{
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties memory;

    CALL(vkGetPhysicalDeviceMemoryProperties, physical, &memory);
    for (uint32_t i = 0; i < memory.memoryTypeCount; i++)
        if (allowed >> i & 1 && (memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    exit(EXIT_FAILURE);
}

static struct buffer make_buffer(VkPhysicalDevice physical, uint32_t size_bytes)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size_bytes, .usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags};
    VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    VkMemoryRequirements needs;
    struct buffer buffer;
    void *words;

    CHECK(CALL(vkCreateBuffer, device, &info, NULL, &buffer.handle));
    CALL(vkGetBufferMemoryRequirements, device, buffer.handle, &needs);
    allocation.allocationSize = needs.size;
    allocation.memoryTypeIndex = host_visible_type(physical, needs.memoryTypeBits);
    CHECK(CALL(vkAllocateMemory, device, &allocation, NULL, &buffer.memory));
    CHECK(CALL(vkBindBufferMemory, device, buffer.handle, buffer.memory, 0));
    CHECK(CALL(vkMapMemory, device, buffer.memory, 0, size_bytes, 0, &words));
    address.buffer = buffer.handle;
    buffer.address = CALL(vkGetBufferDeviceAddress, device, &address);
    buffer.words = words;
    return buffer;
}

struct pipeline {
    VkShaderModule shader;
    VkPipelineLayout layout;
    VkPipeline handle;
};

static struct pipeline make_pipeline(const uint32_t *code, size_t code_bytes)
{
    const VkShaderModuleCreateInfo shader = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = code_bytes, .pCode = code};
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(VkDeviceAddress)};
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .pushConstantRangeCount = 1, .pPushConstantRanges = &range};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main"}};
    struct pipeline pipeline;

    CHECK(CALL(vkCreateShaderModule, device, &shader, NULL, &pipeline.shader));
    CHECK(CALL(vkCreatePipelineLayout, device, &layout, NULL, &pipeline.layout));
    info.stage.module = pipeline.shader;
    info.layout = pipeline.layout;
    CHECK(CALL(vkCreateComputePipelines, device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline.handle));
    return pipeline;
}

static void dispatch(uint32_t family, const struct pipeline *pipeline, VkDeviceAddress address, uint32_t groups)
{
    const VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = family};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkCommandBufferAllocateInfo allocation = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1};
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1};
    VkCommandBuffer commands;
    VkCommandPool pool;
    VkQueue queue;

    CALL(vkGetDeviceQueue, device, family, 0, &queue);
    CHECK(CALL(vkCreateCommandPool, device, &pool_info, NULL, &pool));
    allocation.commandPool = pool;
    CHECK(CALL(vkAllocateCommandBuffers, device, &allocation, &commands));
    CHECK(CALL(vkBeginCommandBuffer, commands, &begin));
    CALL(vkCmdBindPipeline, commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->handle);
    CALL(vkCmdPushConstants, commands, pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof address, &address);
    CALL(vkCmdDispatch, commands, groups, 1, 1);
    CHECK(CALL(vkEndCommandBuffer, commands));
    submit.pCommandBuffers = &commands;
    CHECK(CALL(vkQueueSubmit, queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(CALL(vkQueueWaitIdle, queue));
    CALL(vkDestroyCommandPool, device, pool, NULL);
}

static int run_kernel(VkPhysicalDevice physical, uint32_t family, const uint32_t *code, size_t code_bytes, uint32_t count)
{
    const struct buffer buffer = make_buffer(physical, count * (uint32_t)sizeof(uint32_t));
    const struct pipeline pipeline = make_pipeline(code, code_bytes);
    int status = 0;

    for (uint32_t i = 0; i < count; i++)
        buffer.words[i] = 1;
    dispatch(family, &pipeline, buffer.address, count / 64);
    for (uint32_t i = 0; i < count; i++)
        status |= buffer.words[i] != i + 1;
    CALL(vkDestroyPipeline, device, pipeline.handle, NULL);
    CALL(vkDestroyPipelineLayout, device, pipeline.layout, NULL);
    CALL(vkDestroyShaderModule, device, pipeline.shader, NULL);
    CALL(vkDestroyBuffer, device, buffer.handle, NULL);
    CALL(vkFreeMemory, device, buffer.memory, NULL);
    return status;
}

/* Reduces *n_queues to what the family has. */
static uint32_t compute_family(VkPhysicalDevice physical, uint32_t *n_queues)
{
    VkQueueFamilyProperties families[16];
    uint32_t count = 16;

    CALL(vkGetPhysicalDeviceQueueFamilyProperties, physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            if (*n_queues > families[i].queueCount)
                *n_queues = families[i].queueCount;
            return i;
        }
    exit(EXIT_FAILURE);
}

int run_vulkan(uint32_t n_queues, const uint32_t *code_or_null, size_t code_bytes, uint32_t count)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    const float priorities[MOST_QUEUES] = {0};
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .pQueuePriorities = priorities};
    const VkPhysicalDeviceVulkan12Features addresses = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                        .bufferDeviceAddress = VK_TRUE};
    const VkPhysicalDeviceFeatures features = {.shaderInt64 = VK_TRUE};
    const VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                            .pNext = &addresses,
                                            .queueCreateInfoCount = 1,
                                            .pQueueCreateInfos = &queue,
                                            .pEnabledFeatures = &features};
    void *library = dlopen("libvulkan.so.1", RTLD_NOW);
    VkPhysicalDevice physical;
    uint32_t n_devices = 1;
    int status = 0;

    if (!library || !(instance_address = (PFN_vkGetInstanceProcAddr)dlsym(library, "vkGetInstanceProcAddr")))
        return EXIT_FAILURE;
    CHECK(CALL(vkCreateInstance, &info, NULL, &instance));
    CHECK(CALL(vkEnumeratePhysicalDevices, instance, &n_devices, &physical));
    if (!n_devices)
        return EXIT_FAILURE;
    queue.queueFamilyIndex = compute_family(physical, &n_queues);
    queue.queueCount = n_queues;
    CHECK(CALL(vkCreateDevice, physical, &device_info, NULL, &device));
    if (code_or_null)
        status = run_kernel(physical, queue.queueFamilyIndex, code_or_null, code_bytes, count);
    CALL(vkDestroyDevice, device, NULL);
    CALL(vkDestroyInstance, instance, NULL);
    return status;
}
