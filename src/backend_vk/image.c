/* SPDX-License-Identifier: Apache-2.0 */
/* Images with memory of their own or of another API, or without memory (image_tiles.c).
 *
 * CUDA's descriptor is all that is known about an image of another API. The image created here gets the same properties, so that drivers
 * choose the same tiling: external, optimal tiling, one sample, usage for sampling and transfers, and for storage and attachments if the
 * flags say so. Drivers do not compress images that are shared as opaque descriptors (RADV, ANV); otherwise formats and usage would matter.
 * The image already has contents: the barrier that acquires it must not begin from an undefined layout. */
#include "image.h"

#include "core/base/log.h"
#include "memory.h"
#include "queue.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

/* ---- creation info ---- */

static const struct image_format {
    CUarray_format format;
    unsigned channels;
    VkFormat vulkan;
    bool reinterpreted;
} formats[] = {
#define IMAGE_FORMAT(format, channels, vulkan, reinterpreted) {CU_AD_FORMAT_##format, channels, VK_FORMAT_##vulkan, reinterpreted},
#include "image_formats.def"
};

static const struct image_format *find_format_or_null(CUarray_format format, unsigned channels)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].format == format && formats[i].channels == channels)
            return &formats[i];
    return NULL;
}

/* Kernels store elements as bits, whatever the format, so storage needs a mutable format. */
static VkImageCreateFlags create_flags(const struct ct_image_request *request, const struct image_format *format)
{
    static const VkImageCreateFlags sources[] = {
        [CT_IMAGE_DEFERRED] = VK_IMAGE_CREATE_SPARSE_BINDING_BIT,
        [CT_IMAGE_SPARSE] = VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT,
    };

    return sources[request->memory] | (request->cube ? VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT : 0) |
           (format->reinterpreted || request->storage ? VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT : 0);
}

static VkImageUsageFlags usage(const struct ct_image_request *request)
{
    return VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT |
           (request->storage ? VK_IMAGE_USAGE_STORAGE_BIT : 0) | (request->attachment ? VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT : 0);
}

static VkExternalMemoryHandleTypeFlagBits handle_type(const struct ct_image_request *request)
{
    return request->import ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT : 0;
}

/* Fills in the arguments of vkCreateImage; `external` is chained if the image is imported. */
static CUresult describe(const struct ct_image_request *request, VkExternalMemoryImageCreateInfo *external, VkImageCreateInfo *out)
{
    static const VkImageType types[] = {
        [CT_IMAGE_1D] = VK_IMAGE_TYPE_1D, [CT_IMAGE_2D] = VK_IMAGE_TYPE_2D, [CT_IMAGE_3D] = VK_IMAGE_TYPE_3D};
    const struct image_format *format = find_format_or_null(request->format, request->channels);

    if (!format)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "images with %u channels of format 0x%x", request->channels, (unsigned)request->format);
    *external = (VkExternalMemoryImageCreateInfo){.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO,
                                                  .handleTypes = handle_type(request)};
    *out = (VkImageCreateInfo){
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .pNext = request->import ? external : NULL,
        .flags = create_flags(request, format),
        .imageType = types[request->shape],
        .format = format->vulkan,
        .extent = {request->width, request->height, request->depth},
        .mipLevels = request->levels,
        .arrayLayers = request->layers,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = VK_IMAGE_TILING_OPTIMAL,
        .usage = usage(request),
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
        .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
    };
    return CUDA_SUCCESS;
}

static bool is_within(const VkImageCreateInfo *info, const VkImageFormatProperties *most)
{
    return info->extent.width <= most->maxExtent.width && info->extent.height <= most->maxExtent.height &&
           info->extent.depth <= most->maxExtent.depth && info->mipLevels <= most->maxMipLevels &&
           info->arrayLayers <= most->maxArrayLayers;
}

/* The size of all texels without padding; UINT64_MAX if it does not fit into 64 bits. */
static uint64_t min_bytes(const struct ct_image_request *request)
{
    uint64_t sum = 0;

    for (uint32_t level = 0; level < request->levels; level++) {
        uint64_t bytes = request->texel_bytes;
        const uint64_t sides[] = {ct_texel_elements(ct_vk_level_side(request->width, level), request->block_side),
                                  ct_texel_elements(ct_vk_level_side(request->height, level), request->block_side),
                                  ct_vk_level_side(request->depth, level), request->layers};

        for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
            if (__builtin_mul_overflow(bytes, sides[i], &bytes))
                return UINT64_MAX;
        if (__builtin_add_overflow(sum, bytes, &sum))
            return UINT64_MAX;
    }
    return sum;
}

/* Whether the device supports such images, and whether imported memory must be dedicated to the image. */
static CUresult check(const struct ct_backend_device *device, const VkImageCreateInfo *info, const struct ct_image_request *request,
                      bool *out_dedicated_only)
{
    const VkPhysicalDeviceExternalImageFormatInfo handle = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO,
                                                            .handleType = handle_type(request)};
    const VkPhysicalDeviceImageFormatInfo2 wanted = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
        .pNext = request->import ? &handle : NULL,
        .format = info->format,
        .type = info->imageType,
        .tiling = info->tiling,
        .usage = info->usage,
        .flags = info->flags,
    };
    VkExternalImageFormatProperties external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_IMAGE_FORMAT_PROPERTIES};
    VkImageFormatProperties2 found = {.sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2, .pNext = request->import ? &external : NULL};
    VkResult result = vkGetPhysicalDeviceImageFormatProperties2(device->physical->handle, &wanted, &found);
    VkExternalMemoryFeatureFlags features = external.externalMemoryProperties.externalMemoryFeatures;

    if (result == VK_ERROR_FORMAT_NOT_SUPPORTED || (result == VK_SUCCESS && !is_within(info, &found.imageFormatProperties)) ||
        (result == VK_SUCCESS && request->import && !(features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT)))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not support such images: VkFormat %d, usage 0x%x", device->info->name,
                       (int)info->format, info->usage);
    if (result == VK_SUCCESS && min_bytes(request) > found.imageFormatProperties.maxResourceSize)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "an image of %llu bytes; %s supports at most %llu for such images",
                       (unsigned long long)min_bytes(request), device->info->name,
                       (unsigned long long)found.imageFormatProperties.maxResourceSize);
    *out_dedicated_only = features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
    return ct_vk_result(result, "vkGetPhysicalDeviceImageFormatProperties2");
}

/* ---- memory ---- */

static const struct ct_vk_type_preferences local = {0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};

static CUresult allocate(struct ct_vk_image *image, const VkMemoryRequirements *needed, const VkMemoryDedicatedAllocateInfo *dedicated)
{
    struct ct_backend_device *device = image->base.device;
    const VkPhysicalDeviceMemoryProperties *types = &device->physical->memory;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = dedicated, .allocationSize = needed->size};
    CUresult r;

    if (needed->size > device->physical->max_memory_bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "an image needs %llu bytes of memory; %s allocates at most %llu at once",
                       (unsigned long long)needed->size, device->info->name, (unsigned long long)device->physical->max_memory_bytes);
    if (!ct_vk_choose_type(types, needed->memoryTypeBits, local, &info.memoryTypeIndex))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s has no memory type for images", device->info->name);
    if ((r = ct_vk_allocate(device, &info, &image->memory)) != CUDA_SUCCESS)
        return r;
    image->heap = types->memoryTypes[info.memoryTypeIndex].heapIndex;
    image->charged_bytes = needed->size;
    atomic_fetch_add_explicit(&device->heap_used[image->heap], needed->size, memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* Tries the type that was found when the descriptor was imported, then the other types that the image allows. */
static CUresult import(struct ct_vk_image *image, const struct ct_image_request *request, const VkMemoryRequirements *needed,
                       const VkMemoryDedicatedAllocateInfo *dedicated)
{
    const struct ct_fd_import *from = request->import;
    struct ct_backend_device *device = image->base.device;
    uint32_t allowed = needed->memoryTypeBits & from->types ? needed->memoryTypeBits & from->types : needed->memoryTypeBits, type;
    uint64_t room = from->total_bytes > request->import_offset ? from->total_bytes - request->import_offset : 0;
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;

    if (request->import_offset & (needed->alignment - 1) || needed->size > room || (dedicated && request->import_offset))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an image of %llu bytes, aligned to %llu, at %llu of %llu bytes of external memory",
                       (unsigned long long)needed->size, (unsigned long long)needed->alignment, (unsigned long long)request->import_offset,
                       (unsigned long long)from->total_bytes);
    while (r != CUDA_SUCCESS && ct_vk_choose_type(&device->physical->memory, allowed, local, &type)) {
        r = ct_vk_allocate_from_fd(device, from, VK_NULL_HANDLE, type, dedicated, &image->memory);
        allowed &= ~(1u << type);
    }
    return r;
}

static CUresult give_memory(struct ct_vk_image *image, const struct ct_image_request *request, bool dedicated_only)
{
    struct ct_backend_device *device = image->base.device;
    const VkImageMemoryRequirementsInfo2 query = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = image->handle};
    const VkMemoryDedicatedAllocateInfo alone = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .image = image->handle};
    VkMemoryDedicatedRequirements dedication = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    VkMemoryRequirements2 needed = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, .pNext = &dedication};
    bool dedicated;
    CUresult r;

    device->vk.vkGetImageMemoryRequirements2(device->handle, &query, &needed);
    image->base.size_bytes = needed.memoryRequirements.size;
    image->base.align = needed.memoryRequirements.alignment;
    dedicated = request->import ? dedicated_only || request->import->dedicated : dedication.prefersDedicatedAllocation;
    r = request->import ? import(image, request, &needed.memoryRequirements, dedicated ? &alone : NULL)
                        : allocate(image, &needed.memoryRequirements, dedicated ? &alone : NULL);
    if (r != CUDA_SUCCESS)
        return r;
    return ct_vk_result(device->vk.vkBindImageMemory(device->handle, image->handle, image->memory, request->import_offset),
                        "vkBindImageMemory");
}

/* ---- public ---- */

static void init_level(struct ct_vk_image *image, const struct ct_image_request *request, uint32_t index)
{
    struct ct_vk_level *level = &image->levels[index];
    const uint32_t width = ct_vk_level_side(request->width, index), height = ct_vk_level_side(request->height, index);
    const uint64_t row_bytes = ct_texel_elements(width, request->block_side) * request->texel_bytes;
    uint64_t slices = request->shape == CT_IMAGE_3D ? ct_vk_level_side(request->depth, index) : request->layers;

    level->texels = (struct ct_texels){request->shape, request->texel_bytes, request->block_side, row_bytes,
                                       row_bytes * ct_texel_elements(height, request->block_side)};
    level->base =
        (struct ct_memory){.device = image->base.device, .size_bytes = slices * level->texels.slice_bytes, .texels = &level->texels};
    level->image = image->handle;
    level->level = index;
    level->width = width;
    level->height = height;
}

static CUresult make(struct ct_vk_image *image, const struct ct_image_request *request)
{
    struct ct_backend_device *device = image->base.device;
    VkExternalMemoryImageCreateInfo external;
    VkImageCreateInfo info;
    bool dedicated_only;
    CUresult r;

    if ((r = describe(request, &external, &info)) != CUDA_SUCCESS || (r = check(device, &info, request, &dedicated_only)) != CUDA_SUCCESS ||
        (r = ct_vk_result(device->vk.vkCreateImage(device->handle, &info, NULL, &image->handle), "vkCreateImage")) != CUDA_SUCCESS ||
        (r = request->memory == CT_IMAGE_OWN ? give_memory(image, request, dedicated_only) : ct_vk_image_init_tiling(image)) !=
            CUDA_SUCCESS)
        return r;
    image->format = info.format;
    image->has_other_views = info.flags & VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT;
    if (request->import)
        ct_vk_name_imported_image(device->handle, image->handle);
    for (uint32_t i = 0; i < request->levels; i++)
        init_level(image, request, i);
    return request->memory == CT_IMAGE_DEFERRED
               ? CUDA_SUCCESS /* no command may use it before memory is bound */
               : ct_vk_image_to_general_layout(image, request->import ? CT_VK_IMAGE_TAKEN_OVER : CT_VK_IMAGE_NEW);
}

CUresult ct_vk_image_create(struct ct_backend_device *device, const struct ct_image_request *request, struct ct_texel_image **out)
{
    struct ct_vk_image *image = calloc(1, sizeof *image + request->levels * sizeof *image->levels);
    CUresult r;

    if (!image)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "image of %u levels", request->levels);
    atomic_init(&image->references, 1);
    image->base.device = device;
    image->source = request->memory;
    image->width = request->width;
    image->height = request->height;
    image->depth = request->depth;
    image->block_side = request->block_side;
    image->block_bytes = request->texel_bytes;
    image->n_levels = request->levels;
    if ((r = make(image, request)) != CUDA_SUCCESS) {
        ct_vk_image_destroy(&image->base);
        return r;
    }
    *out = &image->base;
    return CUDA_SUCCESS;
}

void ct_vk_image_destroy(struct ct_texel_image *base)
{
    struct ct_vk_image *image = (struct ct_vk_image *)base;
    struct ct_backend_device *device;

    if (!image || ct_vk_device_is_given_up(base->device) || atomic_fetch_sub(&image->references, 1) > 1)
        return;
    device = base->device;
    if (image->handle)
        device->vk.vkDestroyImage(device->handle, image->handle, NULL);
    if (image->memory)
        device->vk.vkFreeMemory(device->handle, image->memory, NULL);
    atomic_fetch_sub_explicit(&device->heap_used[image->heap], image->charged_bytes, memory_order_relaxed);
    free(image);
}

struct ct_memory *ct_vk_image_level(struct ct_texel_image *base, uint32_t level)
{
    return &((struct ct_vk_image *)base)->levels[level].base;
}
