/* SPDX-License-Identifier: Apache-2.0 */
#define VK_NO_PROTOTYPES
#define VOLK_IMPLEMENTATION
#include <volk.h>

#include "renderer.h"

#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(call) must((call), #call, __LINE__)
#define FORMAT VK_FORMAT_R8G8B8A8_UNORM

struct push {
    uint32_t size, first;
};

struct renderer {
    uint32_t size, family;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceMemoryProperties memory;
    VkDevice device;
    VkQueue queue;
    VkBuffer heights, pixels;
    VkDeviceMemory heights_memory, pixels_memory, image_memory;
    VkDeviceSize heights_bytes;
    const uint8_t *mapped;
    VkImage image;
    VkImageView view;
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkSemaphore timeline; /* VK_NULL_HANDLE: the device cannot share one */
};

static void must(VkResult result, const char *call, int line)
{
    if (result >= VK_SUCCESS)
        return;
    fprintf(stderr, "renderer.c:%d: %s gave %d\n", line, call, (int)result);
    exit(EXIT_FAILURE);
}

static void die(const char *what)
{
    fprintf(stderr, "renderer.c: %s\n", what);
    exit(EXIT_FAILURE);
}

/* ---- the device ---- */

static void find_device(struct renderer *r, const uint8_t uuid[16])
{
    VkPhysicalDevice all[16];
    uint32_t count = 16;

    MUST(vkEnumeratePhysicalDevices(r->instance, &count, all));
    for (uint32_t i = 0; i < count && !r->physical; i++) {
        VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
        VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};

        vkGetPhysicalDeviceProperties2(all[i], &properties);
        if (!memcmp(id.deviceUUID, uuid, 16))
            r->physical = all[i];
    }
    if (!r->physical)
        die("no Vulkan device has the UUID of the CUDA device");
    vkGetPhysicalDeviceMemoryProperties(r->physical, &r->memory);
}

/* Whether the device exports timeline semaphores as opaque file descriptors. */
static bool shares_timelines(const struct renderer *r)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkPhysicalDeviceExternalSemaphoreInfo info = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
                                                        .pNext = &type,
                                                        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkExternalSemaphoreProperties properties = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};

    vkGetPhysicalDeviceExternalSemaphoreProperties(r->physical, &info, &properties);
    return properties.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT;
}

static uint32_t graphics_family(const struct renderer *r)
{
    VkQueueFamilyProperties families[32];
    uint32_t count = 32;

    vkGetPhysicalDeviceQueueFamilyProperties(r->physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)
            return i;
    die("the device draws nothing: it has no queue for graphics");
    return 0;
}

static void create_device(struct renderer *r)
{
    const float priority = 1;
    const char *const extensions[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME};
    const bool timelines = shares_timelines(r);
    VkPhysicalDeviceVulkan13Features v13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, .dynamicRendering = VK_TRUE};
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &v13, .timelineSemaphore = VK_TRUE};
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &v12,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = timelines ? 2 : 1,
        .ppEnabledExtensionNames = extensions,
    };
    const VkExportSemaphoreCreateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
                                                  .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .pNext = &exported, .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};

    queue.queueFamilyIndex = r->family = graphics_family(r);
    MUST(vkCreateDevice(r->physical, &info, NULL, &r->device));
    volkLoadDevice(r->device);
    vkGetDeviceQueue(r->device, r->family, 0, &r->queue);
    if (timelines)
        MUST(vkCreateSemaphore(r->device, &semaphore, NULL, &r->timeline));
}

/* ---- memory ---- */

static VkDeviceMemory allocate(struct renderer *r, const VkMemoryRequirements *needs, VkMemoryPropertyFlags wanted, const void *next)
{
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = next, .allocationSize = needs->size};
    VkDeviceMemory memory;

    while (info.memoryTypeIndex < r->memory.memoryTypeCount &&
           (!(needs->memoryTypeBits & (1u << info.memoryTypeIndex)) ||
            (r->memory.memoryTypes[info.memoryTypeIndex].propertyFlags & wanted) != wanted))
        info.memoryTypeIndex++;
    if (info.memoryTypeIndex == r->memory.memoryTypeCount)
        die("no memory of the kind that is needed");
    MUST(vkAllocateMemory(r->device, &info, NULL, &memory));
    return memory;
}

static VkDeviceSize create_buffer(struct renderer *r, VkDeviceSize bytes, bool exported, VkBuffer *out, VkDeviceMemory *out_memory)
{
    const VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                       .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkExportMemoryAllocateInfo export_memory = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                                      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = exported ? &external : NULL,
        .size = bytes,
        .usage = exported ? VK_BUFFER_USAGE_STORAGE_BUFFER_BIT : VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
    const VkMemoryPropertyFlags wanted =
        exported ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT : VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryRequirements needs;

    MUST(vkCreateBuffer(r->device, &info, NULL, out));
    vkGetBufferMemoryRequirements(r->device, *out, &needs);
    *out_memory = allocate(r, &needs, wanted, exported ? &export_memory : NULL);
    MUST(vkBindBufferMemory(r->device, *out, *out_memory, 0));
    return needs.size;
}

static void create_image(struct renderer *r)
{
    const VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = FORMAT,
        .extent = {r->size, r->size, 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT,
    };
    VkImageViewCreateInfo view = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
        .viewType = VK_IMAGE_VIEW_TYPE_2D,
        .format = FORMAT,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1},
    };
    VkMemoryRequirements needs;

    MUST(vkCreateImage(r->device, &info, NULL, &r->image));
    vkGetImageMemoryRequirements(r->device, r->image, &needs);
    r->image_memory = allocate(r, &needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, NULL);
    MUST(vkBindImageMemory(r->device, r->image, r->image_memory, 0));
    view.image = r->image;
    MUST(vkCreateImageView(r->device, &view, NULL, &r->view));
}

/* ---- the pipeline ---- */

static VkPipelineShaderStageCreateInfo load_stage(struct renderer *r, VkShaderStageFlagBits stage, const char *name)
{
    static uint32_t words[4096];
    char self[PATH_MAX] = "", path[PATH_MAX + 64];
    VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .pCode = words};
    VkPipelineShaderStageCreateInfo out = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = stage, .pName = "main"};
    FILE *file;

    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        die("/proc/self/exe");
    snprintf(path, sizeof path, "%s/spirv/%s.spv", dirname(self), name);
    if (!(file = fopen(path, "rb")))
        die(path);
    info.codeSize = fread(words, 1, sizeof words, file);
    fclose(file);
    MUST(vkCreateShaderModule(r->device, &info, NULL, &out.module));
    return out;
}

static void create_layout(struct renderer *r)
{
    const VkDescriptorSetLayoutBinding binding = {
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_FRAGMENT_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1, .pBindings = &binding};
    const VkPushConstantRange push = {VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(struct push)};
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &r->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    const VkDescriptorPoolSize count = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &count};
    VkDescriptorSetAllocateInfo allocation = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorSetCount = 1, .pSetLayouts = &r->set_layout};
    const VkDescriptorBufferInfo buffer = {r->heights, 0, VK_WHOLE_SIZE};
    VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                  .descriptorCount = 1,
                                  .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                  .pBufferInfo = &buffer};

    MUST(vkCreateDescriptorSetLayout(r->device, &set, NULL, &r->set_layout));
    MUST(vkCreatePipelineLayout(r->device, &layout, NULL, &r->layout));
    MUST(vkCreateDescriptorPool(r->device, &pool, NULL, &r->descriptors));
    allocation.descriptorPool = r->descriptors;
    MUST(vkAllocateDescriptorSets(r->device, &allocation, &r->set));
    write.dstSet = r->set;
    vkUpdateDescriptorSets(r->device, 1, &write, 0, NULL);
}

static void create_pipeline(struct renderer *r)
{
    const VkPipelineShaderStageCreateInfo stages[2] = {load_stage(r, VK_SHADER_STAGE_VERTEX_BIT, "screen.vert"),
                                                       load_stage(r, VK_SHADER_STAGE_FRAGMENT_BIT, "water.frag")};
    const VkFormat format = FORMAT;
    const VkPipelineRenderingCreateInfo rendering = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO, .colorAttachmentCount = 1, .pColorAttachmentFormats = &format};
    const VkPipelineVertexInputStateCreateInfo vertices = {.sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    const VkPipelineInputAssemblyStateCreateInfo assembly = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
                                                             .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST};
    const VkViewport viewport = {0, 0, (float)r->size, (float)r->size, 0, 1};
    const VkRect2D scissor = {{0, 0}, {r->size, r->size}};
    const VkPipelineViewportStateCreateInfo view = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO,
        .viewportCount = 1,
        .pViewports = &viewport,
        .scissorCount = 1,
        .pScissors = &scissor,
    };
    const VkPipelineRasterizationStateCreateInfo raster = {.sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO,
                                                           .lineWidth = 1};
    const VkPipelineMultisampleStateCreateInfo samples = {.sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
                                                          .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT};
    const VkPipelineColorBlendAttachmentState all = {.colorWriteMask = 0xf};
    const VkPipelineColorBlendStateCreateInfo blend = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = 1, .pAttachments = &all};
    const VkGraphicsPipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
        .pNext = &rendering,
        .stageCount = 2,
        .pStages = stages,
        .pVertexInputState = &vertices,
        .pInputAssemblyState = &assembly,
        .pViewportState = &view,
        .pRasterizationState = &raster,
        .pMultisampleState = &samples,
        .pColorBlendState = &blend,
        .layout = r->layout,
    };

    MUST(vkCreateGraphicsPipelines(r->device, VK_NULL_HANDLE, 1, &info, NULL, &r->pipeline));
    for (int i = 0; i < 2; i++)
        vkDestroyShaderModule(r->device, stages[i].module, NULL);
}

static void create_commands(struct renderer *r)
{
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = r->family};
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandBufferCount = 1};

    MUST(vkCreateCommandPool(r->device, &pool, NULL, &r->pool));
    info.commandPool = r->pool;
    MUST(vkAllocateCommandBuffers(r->device, &info, &r->commands));
}

struct renderer *renderer_open(const uint8_t uuid[16], uint32_t size)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
    const char *const layer = "VK_LAYER_KHRONOS_validation";
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
        .enabledLayerCount = getenv("INTEROP_VALIDATE") ? 1 : 0, /* the validation layer prints to the standard output */
        .ppEnabledLayerNames = &layer,
    };
    struct renderer *r = calloc(1, sizeof *r);

    r->size = size;
    MUST(volkInitialize());
    MUST(vkCreateInstance(&info, NULL, &r->instance));
    volkLoadInstance(r->instance);
    find_device(r, uuid);
    create_device(r);
    r->heights_bytes = create_buffer(r, 2ull * size * size * sizeof(float), true, &r->heights, &r->heights_memory);
    create_buffer(r, 4ull * size * size, false, &r->pixels, &r->pixels_memory);
    MUST(vkMapMemory(r->device, r->pixels_memory, 0, VK_WHOLE_SIZE, 0, (void **)&r->mapped));
    create_image(r);
    create_layout(r);
    create_pipeline(r);
    create_commands(r);
    return r;
}

void renderer_close(struct renderer *r)
{
    vkDestroyCommandPool(r->device, r->pool, NULL);
    vkDestroyPipeline(r->device, r->pipeline, NULL);
    vkDestroyPipelineLayout(r->device, r->layout, NULL);
    vkDestroyDescriptorPool(r->device, r->descriptors, NULL);
    vkDestroyDescriptorSetLayout(r->device, r->set_layout, NULL);
    vkDestroyImageView(r->device, r->view, NULL);
    vkDestroyImage(r->device, r->image, NULL);
    vkDestroyBuffer(r->device, r->pixels, NULL);
    vkDestroyBuffer(r->device, r->heights, NULL);
    vkFreeMemory(r->device, r->image_memory, NULL);
    vkFreeMemory(r->device, r->pixels_memory, NULL);
    vkFreeMemory(r->device, r->heights_memory, NULL);
    vkDestroySemaphore(r->device, r->timeline, NULL);
    vkDestroyDevice(r->device, NULL);
    vkDestroyInstance(r->instance, NULL);
    free(r);
}

int renderer_export_heights(struct renderer *r, uint64_t *out_memory_bytes)
{
    const VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                       .memory = r->heights_memory,
                                       .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    int fd;

    MUST(vkGetMemoryFdKHR(r->device, &info, &fd));
    *out_memory_bytes = r->heights_bytes;
    return fd;
}

int renderer_export_timeline(struct renderer *r)
{
    const VkSemaphoreGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                          .semaphore = r->timeline,
                                          .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    int fd = -1;

    if (r->timeline)
        MUST(vkGetSemaphoreFdKHR(r->device, &info, &fd));
    return fd;
}

/* ---- drawing ---- */

/* Ownership of the heights is acquired from CUDA and released back to it. */
static void take_heights(struct renderer *r, bool take)
{
    const VkBufferMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
        .dstAccessMask = take ? VK_ACCESS_SHADER_READ_BIT : 0,
        .srcQueueFamilyIndex = take ? VK_QUEUE_FAMILY_EXTERNAL : r->family,
        .dstQueueFamilyIndex = take ? r->family : VK_QUEUE_FAMILY_EXTERNAL,
        .buffer = r->heights,
        .size = VK_WHOLE_SIZE,
    };

    vkCmdPipelineBarrier(r->commands, take ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT,
                         take ? VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, NULL, 1, &barrier, 0,
                         NULL);
}

static void change_layout(struct renderer *r, bool to_read)
{
    const VkImageMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcAccessMask = to_read ? VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT : 0,
        .dstAccessMask = to_read ? VK_ACCESS_TRANSFER_READ_BIT : VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT,
        .oldLayout = to_read ? VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL : VK_IMAGE_LAYOUT_UNDEFINED,
        .newLayout = to_read ? VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL : VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = r->image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1},
    };

    vkCmdPipelineBarrier(r->commands, to_read ? VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT : VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                         to_read ? VK_PIPELINE_STAGE_TRANSFER_BIT : VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT, 0, 0, NULL, 0, NULL, 1,
                         &barrier);
}

static void draw(struct renderer *r, uint32_t plane)
{
    const VkRenderingAttachmentInfo colour = {
        .sType = VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
        .imageView = r->view,
        .imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
        .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
        .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
    };
    const VkRenderingInfo info = {
        .sType = VK_STRUCTURE_TYPE_RENDERING_INFO,
        .renderArea = {{0, 0}, {r->size, r->size}},
        .layerCount = 1,
        .colorAttachmentCount = 1,
        .pColorAttachments = &colour,
    };
    const struct push push = {r->size, plane * r->size * r->size};

    vkCmdBeginRendering(r->commands, &info);
    vkCmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_GRAPHICS, r->pipeline);
    vkCmdBindDescriptorSets(r->commands, VK_PIPELINE_BIND_POINT_GRAPHICS, r->layout, 0, 1, &r->set, 0, NULL);
    vkCmdPushConstants(r->commands, r->layout, VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof push, &push);
    vkCmdDraw(r->commands, 3, 1, 0, 0);
    vkCmdEndRendering(r->commands);
}

static void read_back(struct renderer *r)
{
    const VkBufferImageCopy copy = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, .imageExtent = {r->size, r->size, 1}};
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = VK_ACCESS_HOST_READ_BIT};

    vkCmdCopyImageToBuffer(r->commands, r->image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, r->pixels, 1, &copy);
    vkCmdPipelineBarrier(r->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
}

const uint8_t *renderer_draw(struct renderer *r, uint32_t plane, uint64_t value)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                  .waitSemaphoreValueCount = value ? 1 : 0,
                                                  .pWaitSemaphoreValues = &value};
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = value ? 1 : 0,
        .pWaitSemaphores = &r->timeline,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 1,
        .pCommandBuffers = &r->commands,
    };

    MUST(vkBeginCommandBuffer(r->commands, &begin));
    take_heights(r, true);
    change_layout(r, false);
    draw(r, plane);
    change_layout(r, true);
    read_back(r);
    take_heights(r, false);
    MUST(vkEndCommandBuffer(r->commands));
    MUST(vkQueueSubmit(r->queue, 1, &submit, VK_NULL_HANDLE));
    MUST(vkQueueWaitIdle(r->queue));
    return r->mapped;
}
