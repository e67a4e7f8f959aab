/* SPDX-License-Identifier: Apache-2.0 */
#include "app_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LEVELS 16
#define must(call) must_succeed((call), #call, __LINE__)

static void must_succeed(VkResult result, const char *call, int line)
{
    if (result == VK_SUCCESS)
        return;
    fprintf(stderr, "app_image.c:%d: %s gave %d\n", line, call, (int)result);
    exit(EXIT_FAILURE);
}

/* ---- the image ---- */

static VkImageUsageFlags usage_of(const struct app_image_desc *desc)
{
    return desc->usage | VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
}

bool app_image_is_possible(struct app *app, const struct app_image_desc *desc)
{
    const VkPhysicalDeviceExternalImageFormatInfo handle = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO,
                                                            .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkPhysicalDeviceImageFormatInfo2 wanted = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
                                                     .pNext = &handle,
                                                     .format = desc->format,
                                                     .type = desc->type,
                                                     .tiling = VK_IMAGE_TILING_OPTIMAL,
                                                     .usage = usage_of(desc),
                                                     .flags = desc->flags};
    VkExternalImageFormatProperties external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_IMAGE_FORMAT_PROPERTIES};
    VkImageFormatProperties2 found = {.sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2, .pNext = &external};
    VkExternalMemoryFeatureFlags features;

    if (vkGetPhysicalDeviceImageFormatProperties2(app->physical, &wanted, &found) != VK_SUCCESS)
        return false;
    features = external.externalMemoryProperties.externalMemoryFeatures;
    return features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT &&
           (desc->dedicated || !(features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT));
}

static VkImage create_handle(struct app *app, const struct app_image_desc *desc)
{
    const VkExternalMemoryImageCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO,
                                                      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .pNext = &external,
        .flags = desc->flags,
        .imageType = desc->type,
        .format = desc->format,
        .extent = desc->extent,
        .mipLevels = desc->levels,
        .arrayLayers = desc->layers,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = VK_IMAGE_TILING_OPTIMAL,
        .usage = usage_of(desc),
    };
    VkImage handle;

    must(vkCreateImage(app->device, &info, NULL, &handle));
    return handle;
}

static uint32_t choose_type(const struct app *app, uint32_t allowed)
{
    for (uint32_t i = 0; i < app->memory.memoryTypeCount; i++)
        if ((allowed & (1u << i)) && (app->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
            return i;
    must(VK_ERROR_FEATURE_NOT_PRESENT);
    return 0;
}

void app_image_create(struct app *app, const struct app_image_desc *desc, struct app_image *out)
{
    struct app_image image = {.desc = *desc, .handle = create_handle(app, desc)};
    const VkMemoryDedicatedAllocateInfo dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .image = image.handle};
    const VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                                 .pNext = desc->dedicated ? &dedicated : NULL,
                                                 .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &exported};
    VkMemoryRequirements needed;

    vkGetImageMemoryRequirements(app->device, image.handle, &needed);
    image.offset = desc->offset * needed.alignment;
    info.allocationSize = image.memory_bytes = needed.size + image.offset;
    info.memoryTypeIndex = choose_type(app, needed.memoryTypeBits);
    must(vkAllocateMemory(app->device, &info, NULL, &image.memory));
    must(vkBindImageMemory(app->device, image.handle, image.memory, image.offset));
    for (uint32_t level = 0; level < desc->levels; level++)
        image.texels_bytes += app_image_level_bytes(&image, level);
    *out = image;
}

void app_image_destroy(struct app *app, struct app_image *image)
{
    vkDestroyImage(app->device, image->handle, NULL);
    vkFreeMemory(app->device, image->memory, NULL);
    *image = (struct app_image){0};
}

int app_image_export(struct app *app, const struct app_image *image)
{
    const VkMemoryGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                       .memory = image->memory,
                                       .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    int fd;

    must(vkGetMemoryFdKHR(app->device, &info, &fd));
    return fd;
}

static uint32_t halved(uint32_t side, uint32_t level)
{
    return side >> level ? side >> level : 1;
}

VkExtent3D app_image_level(const struct app_image *image, uint32_t level)
{
    const VkExtent3D *all = &image->desc.extent;

    return (VkExtent3D){halved(all->width, level), halved(all->height, level), halved(all->depth, level)};
}

uint64_t app_image_level_bytes(const struct app_image *image, uint32_t level)
{
    VkExtent3D extent = app_image_level(image, level);

    return (uint64_t)extent.width * extent.height * extent.depth * image->desc.layers * image->desc.texel_bytes;
}

/* ---- copies ---- */

/* Transfers ownership from the other API or back to it. An image that has not been written yet has an undefined layout. */
static void hand_over(struct app *app, VkCommandBuffer commands, const struct app_image *image, bool to_us)
{
    const bool first = to_us && !image->used;
    const VkAccessFlags accesses = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    const VkImageMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcAccessMask = to_us ? 0 : VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = to_us ? accesses : 0,
        .oldLayout = first ? VK_IMAGE_LAYOUT_UNDEFINED : VK_IMAGE_LAYOUT_GENERAL,
        .newLayout = VK_IMAGE_LAYOUT_GENERAL,
        .srcQueueFamilyIndex = first   ? VK_QUEUE_FAMILY_IGNORED
                               : to_us ? VK_QUEUE_FAMILY_EXTERNAL
                                       : app->family,
        .dstQueueFamilyIndex = first   ? VK_QUEUE_FAMILY_IGNORED
                               : to_us ? app->family
                                       : VK_QUEUE_FAMILY_EXTERNAL,
        .image = image->handle,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, VK_REMAINING_MIP_LEVELS, 0, VK_REMAINING_ARRAY_LAYERS},
    };

    vkCmdPipelineBarrier(commands, to_us ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT,
                         to_us ? VK_PIPELINE_STAGE_TRANSFER_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, NULL, 0, NULL, 1, &barrier);
}

static uint32_t make_regions(const struct app_image *image, VkBufferImageCopy regions[MAX_LEVELS])
{
    uint64_t offset = 0;

    for (uint32_t level = 0; level < image->desc.levels; level++) {
        regions[level] = (VkBufferImageCopy){
            .bufferOffset = offset,
            .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, level, 0, image->desc.layers},
            .imageExtent = app_image_level(image, level),
        };
        offset += app_image_level_bytes(image, level);
    }
    return image->desc.levels;
}

static void show_to_host(VkCommandBuffer commands)
{
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .dstAccessMask = VK_ACCESS_HOST_READ_BIT};

    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static void run(struct app *app, struct app_image *image, const struct app_buffer *buffer, bool to_image)
{
    const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = app->commands,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1};
    VkBufferImageCopy regions[MAX_LEVELS];
    uint32_t n = make_regions(image, regions);
    VkCommandBuffer commands;

    must(vkAllocateCommandBuffers(app->device, &info, &commands));
    must(vkBeginCommandBuffer(commands, &begin));
    hand_over(app, commands, image, true);
    if (to_image)
        vkCmdCopyBufferToImage(commands, buffer->handle, image->handle, VK_IMAGE_LAYOUT_GENERAL, n, regions);
    else
        vkCmdCopyImageToBuffer(commands, image->handle, VK_IMAGE_LAYOUT_GENERAL, buffer->handle, n, regions);
    show_to_host(commands);
    image->used = true;
    hand_over(app, commands, image, false);
    must(vkEndCommandBuffer(commands));
    submit.pCommandBuffers = &commands;
    must(vkQueueSubmit(app->queue, 1, &submit, app->fence));
    must(vkWaitForFences(app->device, 1, &app->fence, VK_TRUE, UINT64_MAX));
    must(vkResetFences(app->device, 1, &app->fence));
    vkFreeCommandBuffers(app->device, app->commands, 1, &commands);
}

void app_image_write(struct app *app, struct app_image *image, const void *texels)
{
    struct app_buffer buffer;

    app_buffer_create(app, image->texels_bytes, APP_HOST, &buffer);
    memcpy(buffer.words, texels, image->texels_bytes);
    run(app, image, &buffer, true);
    app_buffer_destroy(app, &buffer);
}

void app_image_read(struct app *app, struct app_image *image, void *texels)
{
    struct app_buffer buffer;

    app_buffer_create(app, image->texels_bytes, APP_HOST, &buffer);
    run(app, image, &buffer, false);
    memcpy(texels, buffer.words, image->texels_bytes);
    app_buffer_destroy(app, &buffer);
}
