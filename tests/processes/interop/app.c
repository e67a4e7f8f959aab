/* SPDX-License-Identifier: Apache-2.0 */
#define VOLK_IMPLEMENTATION
#include "app.h"
#include "backend_vk/driver_leaks.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 16
#define MAX_SETS 256
#define LAYER "VK_LAYER_KHRONOS_validation"
#define must(call) must_succeed((call), #call, __LINE__)

static void must_succeed(VkResult result, const char *call, int line)
{
    if (result == VK_SUCCESS)
        return;
    fprintf(stderr, "app.c:%d: %s gave %d\n", line, call, (int)result);
    exit(EXIT_FAILURE);
}

static void die(const char *what)
{
    fprintf(stderr, "app.c: %s\n", what);
    exit(EXIT_FAILURE);
}

/* ---- the instance ---- */

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    (void)severity;
    (void)types;
    (void)user;
    fprintf(stderr, "the application's validation error: %s\n", data->pMessage);
    return VK_FALSE;
}

static bool has_layer(void)
{
    VkLayerProperties layers[64];
    uint32_t count = 64;

    if (!getenv("INTEROP_VALIDATE") || vkEnumerateInstanceLayerProperties(&count, layers) < VK_SUCCESS)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(layers[i].layerName, LAYER))
            return true;
    return false;
}

static void create_instance(struct app *app)
{
    const char *const layer = LAYER, *const extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
    const uint32_t watched = has_layer();
    const VkDebugUtilsMessengerCreateInfoEXT watch = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = on_message,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = watched ? &watch : NULL, /* for messages during creation and destruction */
        .pApplicationInfo = &application,
        .enabledLayerCount = watched,
        .ppEnabledLayerNames = &layer,
        .enabledExtensionCount = watched,
        .ppEnabledExtensionNames = &extension,
    };
    VkDebugUtilsMessengerEXT messenger;

    must(vkCreateInstance(&info, NULL, &app->instance));
    volkLoadInstance(app->instance);
    if (watched)
        must(vkCreateDebugUtilsMessengerEXT(app->instance, &watch, NULL, &messenger));
}

static void find_device(struct app *app, const uint8_t uuid[VK_UUID_SIZE])
{
    VkPhysicalDevice all[MAX_DEVICES];
    uint32_t count = MAX_DEVICES;

    if (vkEnumeratePhysicalDevices(app->instance, &count, all) < VK_SUCCESS)
        die("no Vulkan devices");
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
        VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};

        vkGetPhysicalDeviceProperties2(all[i], &properties);
        if (!memcmp(id.deviceUUID, uuid, VK_UUID_SIZE)) {
            app->physical = all[i];
            app->id = id;
            vkGetPhysicalDeviceMemoryProperties(all[i], &app->memory);
            return;
        }
    }
    die("no Vulkan device has the UUID of the CUDA device");
}

/* ---- the device ---- */

static bool has_extension(const struct app *app, const char *name)
{
    VkExtensionProperties *all;
    uint32_t count = 0;
    bool found = false;

    must(vkEnumerateDeviceExtensionProperties(app->physical, NULL, &count, NULL));
    all = calloc(count, sizeof *all);
    must(vkEnumerateDeviceExtensionProperties(app->physical, NULL, &count, all));
    for (uint32_t i = 0; i < count && !found; i++)
        found = !strcmp(all[i].extensionName, name);
    free(all);
    return found;
}

static bool exports_semaphores(const struct app *app, VkSemaphoreType kind)
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = kind};
    const VkPhysicalDeviceExternalSemaphoreInfo info = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
                                                        .pNext = &type,
                                                        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkExternalSemaphoreProperties properties = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};

    vkGetPhysicalDeviceExternalSemaphoreProperties(app->physical, &info, &properties);
    return properties.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT;
}

static bool exports_dma_bufs(const struct app *app)
{
    const VkPhysicalDeviceExternalBufferInfo info = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
                                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
                                                     .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT};
    VkExternalBufferProperties properties = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};

    vkGetPhysicalDeviceExternalBufferProperties(app->physical, &info, &properties);
    return properties.externalMemoryProperties.externalMemoryFeatures & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT;
}

static uint32_t compute_family(const struct app *app)
{
    VkQueueFamilyProperties families[32];
    uint32_t count = 32;

    vkGetPhysicalDeviceQueueFamilyProperties(app->physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)
            return i;
    die("no queue for compute shaders");
    return 0;
}

static void create_device(struct app *app)
{
    const float priority = 1;
    const char *extensions[4] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
    uint32_t n_extensions = 1;
    VkPhysicalDeviceVulkan12Features v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .timelineSemaphore = VK_TRUE};
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &v12,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .ppEnabledExtensionNames = extensions};

    app->has_semaphores = has_extension(app, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
    app->has_timelines = app->has_semaphores && exports_semaphores(app, VK_SEMAPHORE_TYPE_TIMELINE);
    app->has_semaphores = app->has_semaphores && exports_semaphores(app, VK_SEMAPHORE_TYPE_BINARY);
    app->has_dma_buf = has_extension(app, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME) && exports_dma_bufs(app);
    if (app->has_semaphores)
        extensions[n_extensions++] = VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME;
    if (app->has_dma_buf)
        extensions[n_extensions++] = VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME;
    info.enabledExtensionCount = n_extensions;
    queue.queueFamilyIndex = app->family = compute_family(app);
    ct_vk_driver_leaks_begin();
    must(vkCreateDevice(app->physical, &info, NULL, &app->device));
    ct_vk_driver_leaks_end();
    volkLoadDevice(app->device);
    vkGetDeviceQueue(app->device, app->family, 0, &app->queue);
}

/* ---- the shader ---- */

static VkShaderModule load_shader(struct app *app, const char *name)
{
    static uint32_t words[4096];
    char self[PATH_MAX] = "", path[PATH_MAX + 64];
    VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .pCode = words};
    VkShaderModule shader;
    FILE *file;

    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        die("/proc/self/exe");
    snprintf(path, sizeof path, "%s/spirv/%s.spv", dirname(self), name);
    if (!(file = fopen(path, "rb")))
        die(path);
    info.codeSize = fread(words, 1, sizeof words, file);
    fclose(file);
    must(vkCreateShaderModule(app->device, &info, NULL, &shader));
    return shader;
}

static void create_pipeline(struct app *app)
{
    const VkDescriptorSetLayoutBinding bindings[2] = {
        {.binding = 0,
         .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
         .descriptorCount = 1,
         .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT},
        {.binding = 1,
         .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
         .descriptorCount = 1,
         .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT},
    };
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 2, .pBindings = bindings};
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(struct app_map)};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .setLayoutCount = 1,
                                         .pSetLayouts = &app->set_layout,
                                         .pushConstantRangeCount = 1,
                                         .pPushConstantRanges = &push};
    VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};

    must(vkCreateDescriptorSetLayout(app->device, &set, NULL, &app->set_layout));
    must(vkCreatePipelineLayout(app->device, &layout, NULL, &app->layout));
    info.layout = app->layout;
    info.stage = (VkPipelineShaderStageCreateInfo){.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                   .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                   .module = load_shader(app, "map"),
                                                   .pName = "main"};
    must(vkCreateComputePipelines(app->device, VK_NULL_HANDLE, 1, &info, NULL, &app->map));
    vkDestroyShaderModule(app->device, info.stage.module, NULL);
}

static void create_pools(struct app *app)
{
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * MAX_SETS};
    const VkDescriptorPoolCreateInfo descriptors = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = MAX_SETS, .poolSizeCount = 1, .pPoolSizes = &size};
    const VkCommandPoolCreateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = app->family};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};

    must(vkCreateDescriptorPool(app->device, &descriptors, NULL, &app->descriptors));
    must(vkCreateCommandPool(app->device, &commands, NULL, &app->commands));
    must(vkCreateFence(app->device, &fence, NULL, &app->fence));
}

void app_open(struct app *app, const uint8_t uuid[VK_UUID_SIZE])
{
    *app = (struct app){0};
    must(volkInitialize());
    create_instance(app);
    find_device(app, uuid);
    create_device(app);
    create_pipeline(app);
    create_pools(app);
}

/* The instance stays, as its messenger does, until the process ends. */
void app_close(struct app *app)
{
    must(vkDeviceWaitIdle(app->device));
    vkDestroyFence(app->device, app->fence, NULL);
    vkDestroyCommandPool(app->device, app->commands, NULL);
    vkDestroyDescriptorPool(app->device, app->descriptors, NULL);
    vkDestroyPipeline(app->device, app->map, NULL);
    vkDestroyPipelineLayout(app->device, app->layout, NULL);
    vkDestroyDescriptorSetLayout(app->device, app->set_layout, NULL);
    vkDestroyDevice(app->device, NULL);
}

/* ---- buffers ---- */

static VkExternalMemoryHandleTypeFlagBits handle_type(enum app_memory_kind kind)
{
    return kind == APP_DMA_BUF ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT : VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
}

static VkBuffer create_handle(struct app *app, VkDeviceSize bytes, enum app_memory_kind kind)
{
    const VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                       .handleTypes = handle_type(kind)};
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = kind == APP_HOST ? NULL : &external,
        .size = bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                 (kind == APP_HOST ? VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT : 0),
    };
    VkBuffer handle;

    must(vkCreateBuffer(app->device, &info, NULL, &handle));
    return handle;
}

static uint32_t choose_type(const struct app *app, uint32_t allowed, enum app_memory_kind kind)
{
    const VkMemoryPropertyFlags wanted =
        kind == APP_HOST ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;

    for (uint32_t i = 0; i < app->memory.memoryTypeCount; i++)
        if ((allowed & (1u << i)) && (app->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    die("no memory type for a buffer");
    return 0;
}

void app_buffer_create(struct app *app, VkDeviceSize bytes, enum app_memory_kind kind, struct app_buffer *out)
{
    struct app_buffer buffer = {.handle = create_handle(app, bytes, kind), .bytes = bytes, .kind = kind};
    const VkMemoryDedicatedAllocateInfo dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = buffer.handle};
    const VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                                 .pNext = kind == APP_DEDICATED ? &dedicated : NULL,
                                                 .handleTypes = handle_type(kind)};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = kind == APP_HOST ? NULL : &exported};
    VkMemoryRequirements requirements;

    vkGetBufferMemoryRequirements(app->device, buffer.handle, &requirements);
    info.allocationSize = buffer.memory_bytes = requirements.size;
    info.memoryTypeIndex = choose_type(app, requirements.memoryTypeBits, kind);
    buffer.align = requirements.alignment;
    must(vkAllocateMemory(app->device, &info, NULL, &buffer.memory));
    must(vkBindBufferMemory(app->device, buffer.handle, buffer.memory, 0));
    if (kind == APP_HOST)
        must(vkMapMemory(app->device, buffer.memory, 0, VK_WHOLE_SIZE, 0, (void **)&buffer.words));
    *out = buffer;
}

/* Duplicates another API's descriptor to a number that no descriptor of this device has had: validation layers (1.4.309) store the sizes of
 * exported memory by the descriptor's number, even after it has been closed. */
enum { FOREIGN_DESCRIPTORS = 500 };

/* An opaque descriptor does not contain its memory type: the device-local ones are tried. */
static bool import_memory(struct app *app, int fd, uint32_t allowed, struct app_buffer *buffer)
{
    const VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .handleType = handle_type(buffer->kind), .fd = fd};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &import, .allocationSize = buffer->memory_bytes};

    for (uint32_t i = 0; i < app->memory.memoryTypeCount; i++) {
        if (!(allowed & (1u << i)) || !(app->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            continue;
        info.memoryTypeIndex = i;
        if (vkAllocateMemory(app->device, &info, NULL, &buffer->memory) == VK_SUCCESS)
            return true;
        fprintf(stderr, "app.c: the driver does not import memory as type %u of %#x\n", i, allowed);
    }
    return false;
}

bool app_buffer_import(struct app *app, int fd, enum app_memory_kind kind, VkDeviceSize memory_bytes, VkDeviceSize bytes,
                       struct app_buffer *out)
{
    struct app_buffer buffer = {.handle = create_handle(app, bytes, kind), .bytes = bytes, .memory_bytes = memory_bytes, .kind = kind};
    const int foreign = fcntl(fd, F_DUPFD_CLOEXEC, FOREIGN_DESCRIPTORS);
    VkMemoryRequirements requirements;

    vkGetBufferMemoryRequirements(app->device, buffer.handle, &requirements);
    if (foreign < 0 || requirements.size > memory_bytes)
        die("memory of another API is too small for a buffer, or too many descriptors are open");
    buffer.align = requirements.alignment;
    if (!import_memory(app, foreign, requirements.memoryTypeBits, &buffer)) {
        close(foreign);
        vkDestroyBuffer(app->device, buffer.handle, NULL);
        return false;
    }
    close(fd);
    must(vkBindBufferMemory(app->device, buffer.handle, buffer.memory, 0));
    *out = buffer;
    return true;
}

void app_buffer_place(struct app *app, const struct app_buffer *in, VkDeviceSize offset, VkDeviceSize bytes, struct app_buffer *out)
{
    VkMemoryRequirements requirements;

    *out = (struct app_buffer){.handle = create_handle(app, bytes, in->kind), .bytes = bytes, .kind = in->kind};
    vkGetBufferMemoryRequirements(app->device, out->handle, &requirements);
    if (offset % requirements.alignment || offset + requirements.size > in->memory_bytes)
        die("a buffer does not fit where it is placed");
    must(vkBindBufferMemory(app->device, out->handle, in->memory, offset));
}

void app_buffer_destroy(struct app *app, struct app_buffer *buffer)
{
    vkDestroyBuffer(app->device, buffer->handle, NULL);
    vkFreeMemory(app->device, buffer->memory, NULL);
    *buffer = (struct app_buffer){0};
}

int app_buffer_export(struct app *app, const struct app_buffer *buffer)
{
    const VkMemoryGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, .memory = buffer->memory, .handleType = handle_type(buffer->kind)};
    int fd;

    must(vkGetMemoryFdKHR(app->device, &info, &fd));
    return fd;
}

/* ---- running the shader ---- */

static VkDescriptorSet make_set(struct app *app, const struct app_buffer *from, const struct app_buffer *to)
{
    const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = app->descriptors,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &app->set_layout};
    const VkDescriptorBufferInfo buffers[2] = {{from->handle, 0, VK_WHOLE_SIZE}, {to->handle, 0, VK_WHOLE_SIZE}};
    VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                  .descriptorCount = 2,
                                  .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                  .pBufferInfo = buffers};

    must(vkAllocateDescriptorSets(app->device, &info, &write.dstSet));
    vkUpdateDescriptorSets(app->device, 1, &write, 0, NULL);
    return write.dstSet;
}

/* Transfers ownership from the other API or back to it; host memory keeps its owner, but becomes visible to the host. */
static void hand_over(struct app *app, VkCommandBuffer commands, const struct app_buffer *buffer, bool to_us)
{
    const bool shared = buffer->kind != APP_HOST;
    const VkPipelineStageFlags shader = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    const VkAccessFlags accesses = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    const VkBufferMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
        .srcAccessMask = to_us ? 0 : VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = to_us    ? accesses
                         : shared ? 0
                                  : VK_ACCESS_HOST_READ_BIT,
        .srcQueueFamilyIndex = !shared ? VK_QUEUE_FAMILY_IGNORED
                               : to_us ? VK_QUEUE_FAMILY_EXTERNAL
                                       : app->family,
        .dstQueueFamilyIndex = !shared ? VK_QUEUE_FAMILY_IGNORED
                               : to_us ? app->family
                                       : VK_QUEUE_FAMILY_EXTERNAL,
        .buffer = buffer->handle,
        .size = VK_WHOLE_SIZE,
    };

    vkCmdPipelineBarrier(commands, to_us ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : shader,
                         to_us    ? shader
                         : shared ? VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
                                  : VK_PIPELINE_STAGE_HOST_BIT,
                         0, 0, NULL, 1, &barrier, 0, NULL);
}

VkCommandBuffer app_record(struct app *app, const struct app_buffer *from, const struct app_buffer *to, const struct app_map *map)
{
    const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = app->commands,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
    const VkDescriptorSet set = make_set(app, from, to);
    VkCommandBuffer commands;

    must(vkAllocateCommandBuffers(app->device, &info, &commands));
    must(vkBeginCommandBuffer(commands, &begin));
    hand_over(app, commands, from, true);
    if (to != from)
        hand_over(app, commands, to, true);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, app->map);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, app->layout, 0, 1, &set, 0, NULL);
    vkCmdPushConstants(commands, app->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof *map, map);
    vkCmdDispatch(commands, (map->count + 63) / 64, 1, 1);
    hand_over(app, commands, from, false);
    if (to != from)
        hand_over(app, commands, to, false);
    must(vkEndCommandBuffer(commands));
    return commands;
}

void app_run(struct app *app, const struct app_buffer *from, const struct app_buffer *to, const struct app_map *map)
{
    const VkCommandBuffer commands = app_record(app, from, to, map);
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};

    must(vkQueueSubmit(app->queue, 1, &info, app->fence));
    must(vkWaitForFences(app->device, 1, &app->fence, VK_TRUE, UINT64_MAX));
    must(vkResetFences(app->device, 1, &app->fence));
}

/* ---- semaphores ---- */

VkSemaphore app_semaphore_create(struct app *app, bool timeline)
{
    const VkExportSemaphoreCreateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
                                                  .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .pNext = &exported,
                                            .semaphoreType = timeline ? VK_SEMAPHORE_TYPE_TIMELINE : VK_SEMAPHORE_TYPE_BINARY};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkSemaphore semaphore;

    must(vkCreateSemaphore(app->device, &info, NULL, &semaphore));
    return semaphore;
}

int app_semaphore_export(struct app *app, VkSemaphore semaphore)
{
    const VkSemaphoreGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                          .semaphore = semaphore,
                                          .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    int fd;

    must(vkGetSemaphoreFdKHR(app->device, &info, &fd));
    return fd;
}

void app_submit(struct app *app, VkCommandBuffer commands, VkSemaphore wait, uint64_t wait_value, VkSemaphore signal, uint64_t signal_value)
{
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = wait ? 1 : 0,
        .pWaitSemaphoreValues = &wait_value,
        .signalSemaphoreValueCount = signal ? 1 : 0,
        .pSignalSemaphoreValues = &signal_value,
    };
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = wait ? 1 : 0,
        .pWaitSemaphores = &wait,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
        .signalSemaphoreCount = signal ? 1 : 0,
        .pSignalSemaphores = &signal,
    };

    must(vkQueueSubmit(app->queue, 1, &info, VK_NULL_HANDLE));
}

void app_wait_idle(struct app *app)
{
    must(vkQueueWaitIdle(app->queue));
}
