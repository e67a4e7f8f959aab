/* SPDX-License-Identifier: Apache-2.0 */
/* Textures as images (texture_images.h).
 *
 * Invariants: every descriptor is valid from the creation of the set on, so that a handle of garbage reads zeros; those without a texture refer
 * to the empty image. A descriptor changes only while no kernel can use it: that of a destroyed texture is kept with its image, in the list of
 * retired ones, until all queues are seen to be idle (Vulkan, VkDescriptorBindingFlagBits, UPDATE_UNUSED_WHILE_PENDING). This is looked at when a
 * texture is created or destroyed and when memory is freed; if it is never so, the descriptors run out, and textures are read by generated
 * code.
 *
 * The memory has contents, which the first change of an image's layout must keep: from "preinitialized", or, where Vulkan forbids that since other
 * processes can import the memory or it was imported, by acquiring the image from outside (as image.c does it). */
#include "texture_images.h"

#include "core/base/log.h"
#include "image.h"
#include "memory.h"
#include "queue.h"

#include <stdlib.h>
#include <time.h>

#define CT_CHANNEL "memory"
#define N_SAMPLERS 512 /* more than the keys without mipmap levels; programs have a few */
/* A texture is created while kernels run, of which one may wait for what the calling thread does next. */
#define BUSY_WAIT_NS UINT64_C(1000000000)
#define BUSY_POLL_NS 200000

struct ct_sampled {
    struct ct_backend_device *device; /* borrowed */
    struct ct_sampled *next;          /* in the list of retired ones */
    VkImage image;                    /* over texels in memory, or VK_NULL_HANDLE */
    struct ct_vk_image *existing;     /* retained, or NULL */
    VkImageView view;
    enum ptx2spv_image_shape shape;
    uint32_t descriptor;
    bool has_descriptor;
    bool is_external; /* its memory was imported, or can be exported */
};

struct sampler_key {
    uint32_t flags, address;
    float min_level, max_level;
};

struct sampler {
    struct sampler_key key;
    VkSampler handle;
};

struct ct_vk_textures {
    VkDescriptorPool pool;
    VkDescriptorSet set;
    struct ct_texel_image *empty[PTX2SPV_IMAGE_SHAPES];
    VkImageView empty_views[PTX2SPV_IMAGE_SHAPES];
    struct ct_queue *queue;              /* for changes of layouts */
    struct ct_mutex lock;                /* rank CT_RANK_BACKEND; guards what follows */
    struct sampler samplers[N_SAMPLERS]; /* the first one is that of the empty images; they are kept */
    uint32_t n_samplers;
    struct ct_sampled *retired;
    uint16_t free[PTX2SPV_IMAGE_DESCRIPTORS]; /* a ring, so that a number is used again as late as possible */
    uint32_t first_free, n_free;
};

/* Textures that cannot be images are read by generated code: that is no failure. */
#define REFUSE(...) (ct_log(CT_LOG_DEBUG, __VA_ARGS__), CUDA_ERROR_NOT_SUPPORTED)

/* ---- formats ---- */

/* By texel, whether its values are normalized, and channels (1, 2, 4). */
static VkFormat format_of(enum ptx2spv_texel texel, bool normalized, uint32_t channels)
{
    static const VkFormat formats[][2][3] = {
#define SIZES(bits, type)                                                                                                                  \
    {VK_FORMAT_R##bits##_##type, VK_FORMAT_R##bits##G##bits##_##type, VK_FORMAT_R##bits##G##bits##B##bits##A##bits##_##type}
        [PTX2SPV_TEXEL_U8] = {SIZES(8, UINT), SIZES(8, UNORM)},
        [PTX2SPV_TEXEL_U16] = {SIZES(16, UINT), SIZES(16, UNORM)},
        [PTX2SPV_TEXEL_U32] = {SIZES(32, UINT)},
        [PTX2SPV_TEXEL_S8] = {SIZES(8, SINT), SIZES(8, SNORM)},
        [PTX2SPV_TEXEL_S16] = {SIZES(16, SINT), SIZES(16, SNORM)},
        [PTX2SPV_TEXEL_S32] = {SIZES(32, SINT)},
        [PTX2SPV_TEXEL_F16] = {SIZES(16, SFLOAT)},
        [PTX2SPV_TEXEL_F32] = {SIZES(32, SFLOAT)},
#undef SIZES
    };

    return texel < sizeof formats / sizeof *formats ? formats[texel][normalized][channels / 2] : VK_FORMAT_UNDEFINED;
}

static VkFormat format_of_request(const struct ct_sampled_request *request)
{
    static const VkFormat srgb[] = {VK_FORMAT_R8_SRGB, VK_FORMAT_R8G8_SRGB, VK_FORMAT_R8G8B8A8_SRGB};

    return request->srgb && request->normalized_values ? srgb[request->channels / 2]
                                                       : format_of(request->texel, request->normalized_values, request->channels);
}

static bool is_integer(enum ptx2spv_texel texel)
{
    return texel <= PTX2SPV_TEXEL_S32;
}

/* Any format of texels of that size: a row has the same length in all of them, which is checked again for each texture. */
static VkFormat format_of_size(uint32_t texel_bytes)
{
    static const VkFormat formats[] = {VK_FORMAT_R8_UINT, VK_FORMAT_R16_UINT, VK_FORMAT_R32_UINT, VK_FORMAT_R32G32_UINT,
                                       VK_FORMAT_R32G32B32A32_UINT};

    return formats[__builtin_ctz(texel_bytes)];
}

/* ---- images ---- */

static VkImageCreateInfo describe(VkFormat format, const struct ct_sampled_extent *extent)
{
    const bool is_volume = extent->shape == PTX2SPV_IMAGE_VOLUME;

    return (VkImageCreateInfo){
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = is_volume ? VK_IMAGE_TYPE_3D : VK_IMAGE_TYPE_2D,
        .format = format,
        .extent = {extent->width, extent->height, is_volume ? extent->slices : 1},
        .mipLevels = extent->n_levels,
        .arrayLayers = is_volume ? 1 : extent->slices,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = VK_IMAGE_TILING_LINEAR, /* the only one with a layout that the host and other code know */
        .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
        .initialLayout = VK_IMAGE_LAYOUT_PREINITIALIZED, /* the memory has contents, which stay */
    };
}

static bool is_within(const VkImageCreateInfo *info, const VkImageFormatProperties *most, uint32_t texel_bytes)
{
    const VkExtent3D extent = info->extent, limit = most->maxExtent;

    return extent.width <= limit.width && extent.height <= limit.height && extent.depth <= limit.depth &&
           info->mipLevels <= most->maxMipLevels && info->arrayLayers <= most->maxArrayLayers &&
           (uint64_t)extent.width * extent.height * texel_bytes <= most->maxResourceSize / extent.depth / info->arrayLayers;
}

/* Whether the device has such images in memory of these handle types. */
static bool is_supported(const struct ct_backend_device *device, const VkImageCreateInfo *info, VkExternalMemoryHandleTypeFlags types,
                         uint32_t texel_bytes, bool linear)
{
    VkImageFormatProperties2 found = {.sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2};
    VkFormatProperties format;

    vkGetPhysicalDeviceFormatProperties(device->physical->handle, info->format, &format);
    if (linear && !(format.linearTilingFeatures & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT))
        return false;
    do { /* for each type, or without one */
        const VkExternalMemoryHandleTypeFlags type = types & -types;
        const VkPhysicalDeviceExternalImageFormatInfo handle = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO,
                                                                .handleType = (VkExternalMemoryHandleTypeFlagBits)type};
        const VkPhysicalDeviceImageFormatInfo2 wanted = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
            .pNext = type ? &handle : NULL,
            .format = info->format,
            .type = info->imageType,
            .tiling = info->tiling,
            .usage = info->usage,
        };
        const VkResult result = vkGetPhysicalDeviceImageFormatProperties2(device->physical->handle, &wanted, &found);

        if (result != VK_SUCCESS || !is_within(info, &found.imageFormatProperties, texel_bytes))
            return false;
        types &= types - 1;
    } while (types);
    return true;
}

static void get_layout(const struct ct_backend_device *device, VkImage image, const struct ct_sampled_extent *extent,
                       struct ct_sampled_layout *out)
{
    for (uint32_t i = 0; i < extent->n_levels; i++) {
        const VkImageSubresource first = {VK_IMAGE_ASPECT_COLOR_BIT, i, 0};
        VkSubresourceLayout layout;

        device->vk.vkGetImageSubresourceLayout(device->handle, image, &first, &layout);
        out->levels[i].offset = layout.offset;
        out->levels[i].row_bytes = layout.rowPitch;
        out->levels[i].slice_bytes = extent->shape == PTX2SPV_IMAGE_VOLUME ? layout.depthPitch
                                     : extent->slices > 1                  ? layout.arrayPitch
                                                                           : layout.size;
    }
}

CUresult ct_vk_sampled_layout(struct ct_backend_device *device, uint32_t texel_bytes, const struct ct_sampled_extent *extent,
                              struct ct_sampled_layout *out)
{
    const VkImageCreateInfo info = describe(format_of_size(texel_bytes), extent);
    VkMemoryRequirements needed;
    VkImage image;
    CUresult r;

    if (extent->n_levels > PTX2SPV_TEXTURE_LEVELS || !is_supported(device, &info, 0, texel_bytes, false))
        return CUDA_ERROR_NOT_SUPPORTED;
    if ((r = ct_vk_result(device->vk.vkCreateImage(device->handle, &info, NULL, &image), "vkCreateImage")) != CUDA_SUCCESS)
        return r;
    device->vk.vkGetImageMemoryRequirements(device->handle, image, &needed);
    get_layout(device, image, extent, out);
    out->size_bytes = needed.size;
    device->vk.vkDestroyImage(device->handle, image, NULL);
    return CUDA_SUCCESS;
}

static uint32_t halved(uint32_t extent, uint32_t level)
{
    return extent >> level ? extent >> level : 1;
}

/* Whether the texels of the request are where the image has them. */
static bool has_layout(const struct ct_sampled *sampled, const struct ct_sampled_request *request)
{
    const struct ct_sampled_extent *extent = &request->extent;
    const bool is_volume = extent->shape == PTX2SPV_IMAGE_VOLUME;
    struct ct_sampled_layout layout;

    get_layout(sampled->device, sampled->image, extent, &layout);
    for (uint32_t i = 0; i < extent->n_levels; i++)
        if (layout.levels[i].offset != request->layout.levels[i].offset ||
            (halved(extent->height, i) > 1 && layout.levels[i].row_bytes != request->layout.levels[i].row_bytes) ||
            ((is_volume ? halved(extent->slices, i) : extent->slices) > 1 &&
             layout.levels[i].slice_bytes != request->layout.levels[i].slice_bytes))
            return false;
    return true;
}

/* Whether the image can have the place of the texels in a piece of memory. */
static bool fits(const struct ct_sampled *sampled, const struct ct_sampled_request *request, const struct ct_vk_piece *piece, uint64_t at)
{
    struct ct_backend_device *device = sampled->device;
    const VkImageMemoryRequirementsInfo2 query = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = sampled->image};
    VkMemoryDedicatedRequirements dedication = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    VkMemoryRequirements2 requirements = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, .pNext = &dedication};
    VkMemoryRequirements needed;

    device->vk.vkGetImageMemoryRequirements2(device->handle, &query, &requirements);
    needed = requirements.memoryRequirements;
    return !dedication.requiresDedicatedAllocation && has_layout(sampled, request) && (needed.memoryTypeBits >> piece->type & 1) &&
           at % needed.alignment == 0 && needed.size <= piece->handle_bytes && at <= piece->handle_bytes - needed.size;
}

static CUresult create_image(struct ct_sampled *sampled, const struct ct_sampled_request *request, VkFormat format)
{
    struct ct_backend_device *device = sampled->device;
    const struct ct_vk_memory *memory = (const struct ct_vk_memory *)request->memory;
    const struct ct_vk_piece *piece = ct_vk_memory_piece(memory, request->offset);
    const uint64_t at = piece->buffer_offset + request->offset - piece->offset;
    const VkExternalMemoryImageCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO,
                                                      .handleTypes = piece->handle_types};
    VkImageCreateInfo info = describe(format, &request->extent);
    CUresult r;

    if (!piece->handle || !is_supported(device, &info, piece->handle_types, request->texel_bytes, request->linear))
        return REFUSE("%s has no linear images of VkFormat %d in this memory", device->info->name, (int)format);
    sampled->is_external = piece->handle_types != 0;
    if (sampled->is_external) {
        info.pNext = &external;
        info.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    }
    r = ct_vk_result(device->vk.vkCreateImage(device->handle, &info, NULL, &sampled->image), "vkCreateImage");
    if (r != CUDA_SUCCESS)
        return r;
    if (!fits(sampled, request, piece, at))
        return REFUSE("an image of %u x %u x %u texels of VkFormat %d has another layout in memory", request->extent.width,
                      request->extent.height, request->extent.slices, (int)format);
    return ct_vk_result(device->vk.vkBindImageMemory(device->handle, sampled->image, piece->handle, at), "vkBindImageMemory");
}

/* Channels that do not exist are 0. */
static CUresult create_view(struct ct_backend_device *device, VkImage image, VkFormat format, const struct ct_sampled_request *request,
                            VkImageView *out)
{
    static const VkImageViewType types[] = {[PTX2SPV_IMAGE_PLANE] = VK_IMAGE_VIEW_TYPE_2D,
                                            [PTX2SPV_IMAGE_LAYERS] = VK_IMAGE_VIEW_TYPE_2D_ARRAY,
                                            [PTX2SPV_IMAGE_VOLUME] = VK_IMAGE_VIEW_TYPE_3D};
    const VkComponentSwizzle none = VK_COMPONENT_SWIZZLE_ZERO, same = VK_COMPONENT_SWIZZLE_IDENTITY;
    const uint32_t channels = request->channels;
    const VkImageViewCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
        .image = image,
        .viewType = types[request->extent.shape],
        .format = format,
        .components = {channels > 0 ? same : none, channels > 1 ? same : none, channels > 2 ? same : none, channels > 3 ? same : none},
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, request->first_level, request->n_levels, request->first_layer, request->n_layers},
    };

    return ct_vk_result(device->vk.vkCreateImageView(device->handle, &info, NULL, out), "vkCreateImageView");
}

/* NOT_READY: the queue has not come to it in time. */
static CUresult to_general_layout(struct ct_vk_textures *textures, const struct ct_sampled *sampled)
{
    struct ct_backend_device *device = sampled->device;
    uint64_t point;
    CUresult r;

    if (sampled->is_external)
        ct_vk_name_imported_image(device->handle, sampled->image);
    ct_mutex_lock(&device->scheduler->lock);
    r = ct_vk_record_layout_locked(textures->queue, sampled->image, VK_IMAGE_LAYOUT_PREINITIALIZED, sampled->is_external);
    point = ct_vk_queue_point(textures->queue);
    ct_mutex_unlock(&device->scheduler->lock);
    return r == CUDA_SUCCESS ? ct_vk_queue_await(textures->queue, point, BUSY_WAIT_NS, true) : r;
}

/* ---- the set of descriptors ---- */

static CUresult allocate_set(struct ct_vk_textures *textures, struct ct_backend_device *device)
{
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, PTX2SPV_IMAGE_SHAPES * PTX2SPV_IMAGE_DESCRIPTORS};
    const VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .flags = VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT,
                                             .maxSets = 1,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorSetCount = 1, .pSetLayouts = &device->texture_layout};
    CUresult r = ct_vk_result(device->vk.vkCreateDescriptorPool(device->handle, &pool, NULL, &textures->pool), "vkCreateDescriptorPool");

    if (r != CUDA_SUCCESS)
        return r;
    info.descriptorPool = textures->pool;
    return ct_vk_result(device->vk.vkAllocateDescriptorSets(device->handle, &info, &textures->set), "vkAllocateDescriptorSets");
}

static void write_descriptors(const struct ct_vk_textures *textures, struct ct_backend_device *device, enum ptx2spv_image_shape shape,
                              uint32_t first, uint32_t n, const VkDescriptorImageInfo *images)
{
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = textures->set,
                                        .dstBinding = (uint32_t)shape,
                                        .dstArrayElement = first,
                                        .descriptorCount = n,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
                                        .pImageInfo = images};

    device->vk.vkUpdateDescriptorSets(device->handle, 1, &write, 0, NULL);
}

static void write_descriptor(const struct ct_vk_textures *textures, struct ct_backend_device *device, enum ptx2spv_image_shape shape,
                             uint32_t number, VkSampler sampler, VkImageView view)
{
    const VkDescriptorImageInfo image = {sampler, view, VK_IMAGE_LAYOUT_GENERAL};

    write_descriptors(textures, device, shape, number, 1, &image);
}

/* ---- samplers ---- */

static VkSamplerAddressMode vulkan_address(enum ptx2spv_texture_address address)
{
    static const VkSamplerAddressMode modes[] = {
        [PTX2SPV_TEXTURE_WRAP] = VK_SAMPLER_ADDRESS_MODE_REPEAT,
        [PTX2SPV_TEXTURE_CLAMP] = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
        [PTX2SPV_TEXTURE_MIRROR] = VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT,
        [PTX2SPV_TEXTURE_BORDER] = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER,
    };

    return modes[address];
}

/* The properties of a request on which its sampler depends: textures with the same key share a sampler. */
static struct sampler_key key_of(const struct ct_sampled_request *request)
{
    const bool has_levels = request->n_levels > 1, of_integers = is_integer(request->texel) && !request->normalized_values;

    return (struct sampler_key){
        .flags = request->linear | (uint32_t)request->normalized_coordinates << 1 | (uint32_t)of_integers << 2 |
                 (uint32_t)(has_levels && request->linear_levels) << 3,
        .address = (uint32_t)request->address[0] | (uint32_t)request->address[1] << 2 | (uint32_t)request->address[2] << 4,
        .min_level = has_levels ? request->min_level : 0,
        .max_level = has_levels ? request->max_level : 0,
    };
}

static CUresult create_sampler(struct ct_backend_device *device, const struct sampler_key *key, const struct ct_sampled_request *request,
                               VkSampler *out)
{
    const bool of_integers = is_integer(request->texel) && !request->normalized_values;
    const VkFilter filter = request->linear ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
    const VkSamplerCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
        .magFilter = filter,
        .minFilter = filter,
        .mipmapMode = request->n_levels > 1 && request->linear_levels ? VK_SAMPLER_MIPMAP_MODE_LINEAR : VK_SAMPLER_MIPMAP_MODE_NEAREST,
        .addressModeU = vulkan_address(request->address[0]),
        .addressModeV = vulkan_address(request->address[1]),
        .addressModeW = vulkan_address(request->address[2]),
        .borderColor = of_integers ? VK_BORDER_COLOR_INT_TRANSPARENT_BLACK : VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK,
        .unnormalizedCoordinates = !request->normalized_coordinates,
        .minLod = key->min_level,
        .maxLod = key->max_level,
    };

    return ct_vk_result(device->vk.vkCreateSampler(device->handle, &info, NULL, out), "vkCreateSampler");
}

static bool are_same(const struct sampler_key *a, const struct sampler_key *b)
{
    return a->flags == b->flags && a->address == b->address && a->min_level == b->min_level && a->max_level == b->max_level;
}

static CUresult find_sampler_locked(struct ct_vk_textures *textures, struct ct_backend_device *device,
                                    const struct ct_sampled_request *request, VkSampler *out)
{
    const struct sampler_key key = key_of(request);
    CUresult r;

    for (uint32_t i = 0; i < textures->n_samplers; i++)
        if (are_same(&textures->samplers[i].key, &key)) {
            *out = textures->samplers[i].handle;
            return CUDA_SUCCESS;
        }
    if (textures->n_samplers == N_SAMPLERS)
        return REFUSE("textures that are images have %d different samplers", N_SAMPLERS);
    if ((r = create_sampler(device, &key, request, out)) == CUDA_SUCCESS)
        textures->samplers[textures->n_samplers++] = (struct sampler){key, *out};
    return r;
}

/* ---- creation of all this ---- */

static void destroy(struct ct_vk_textures *textures, struct ct_backend_device *device)
{
    if (textures->pool)
        device->vk.vkDestroyDescriptorPool(device->handle, textures->pool, NULL);
    for (uint32_t i = 0; i < textures->n_samplers; i++)
        device->vk.vkDestroySampler(device->handle, textures->samplers[i].handle, NULL);
    for (uint32_t i = 0; i < PTX2SPV_IMAGE_SHAPES; i++) {
        if (textures->empty_views[i])
            device->vk.vkDestroyImageView(device->handle, textures->empty_views[i], NULL);
        ct_vk_image_destroy(textures->empty[i]);
    }
    if (textures->queue)
        ct_vk_queue_destroy(textures->queue);
    ct_mutex_finish(&textures->lock);
    free(textures);
}

#define PART 256u /* of the descriptors, which are written together */

/* Every descriptor of a shape gets an image whose channels are all 0. */
static CUresult create_empty(struct ct_vk_textures *textures, struct ct_backend_device *device, enum ptx2spv_image_shape shape)
{
    static const enum ct_image_shape shapes[] = {
        [PTX2SPV_IMAGE_PLANE] = CT_IMAGE_2D, [PTX2SPV_IMAGE_LAYERS] = CT_IMAGE_2D, [PTX2SPV_IMAGE_VOLUME] = CT_IMAGE_3D};
    const struct ct_image_request one = {.memory = CT_IMAGE_OWN,
                                         .format = CU_AD_FORMAT_FLOAT,
                                         .channels = 1,
                                         .texel_bytes = 4,
                                         .block_side = 1,
                                         .shape = shapes[shape],
                                         .width = 1,
                                         .height = 1,
                                         .depth = 1,
                                         .layers = 1,
                                         .levels = 1};
    const struct ct_sampled_request point = {
        .extent = {.shape = shape}, .n_levels = 1, .n_layers = 1, .texel = PTX2SPV_TEXEL_F32, .normalized_coordinates = true};
    VkDescriptorImageInfo images[PART];
    VkSampler sampler;
    CUresult r = ct_vk_image_create(device, &one, &textures->empty[shape]);

    if (r != CUDA_SUCCESS)
        return r;
    r = create_view(device, ((struct ct_vk_image *)textures->empty[shape])->handle, VK_FORMAT_R32_SFLOAT, &point,
                    &textures->empty_views[shape]);
    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&textures->lock);
    r = find_sampler_locked(textures, device, &point, &sampler);
    for (size_t i = 0; i < PART && r == CUDA_SUCCESS; i++)
        images[i] = (VkDescriptorImageInfo){sampler, textures->empty_views[shape], VK_IMAGE_LAYOUT_GENERAL};
    for (uint32_t i = 0; i < PTX2SPV_IMAGE_DESCRIPTORS && r == CUDA_SUCCESS; i += PART)
        write_descriptors(textures, device, shape, i, PART, images);
    ct_mutex_unlock(&textures->lock);
    return r;
}

static CUresult fill_with_empty(struct ct_vk_textures *textures, struct ct_backend_device *device)
{
    CUresult r = CUDA_SUCCESS;

    for (int shape = 0; shape < PTX2SPV_IMAGE_SHAPES && r == CUDA_SUCCESS; shape++)
        r = create_empty(textures, device, (enum ptx2spv_image_shape)shape);
    for (uint32_t i = 0; i < PTX2SPV_IMAGE_DESCRIPTORS; i++)
        textures->free[i] = (uint16_t)i;
    textures->n_free = PTX2SPV_IMAGE_DESCRIPTORS;
    return r;
}

static CUresult create(struct ct_backend_device *device, struct ct_vk_textures **out)
{
    struct ct_vk_textures *textures = calloc(1, sizeof *textures);
    CUresult r;

    if (!textures)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the images of textures");
    ct_mutex_init(&textures->lock, CT_RANK_BACKEND);
    if ((r = ct_vk_queue_create(device, &(struct ct_queue_desc){0}, &textures->queue)) != CUDA_SUCCESS ||
        (r = allocate_set(textures, device)) != CUDA_SUCCESS || (r = fill_with_empty(textures, device)) != CUDA_SUCCESS) {
        destroy(textures, device);
        return r;
    }
    *out = textures;
    return CUDA_SUCCESS;
}

static void free_sampled(struct ct_sampled *sampled)
{
    struct ct_backend_device *device = sampled->device;

    if (sampled->view)
        device->vk.vkDestroyImageView(device->handle, sampled->view, NULL);
    if (sampled->image)
        device->vk.vkDestroyImage(device->handle, sampled->image, NULL);
    if (sampled->existing)
        ct_vk_image_destroy(&sampled->existing->base);
    free(sampled);
}

static void destroy_all(struct ct_backend_device *device)
{
    struct ct_vk_textures *textures = device->textures;

    for (struct ct_sampled *sampled = textures->retired, *next; sampled; sampled = next) {
        next = sampled->next;
        free_sampled(sampled);
    }
    device->textures = NULL;
    destroy(textures, device);
}

static CUresult find(struct ct_backend_device *device, struct ct_vk_textures **out)
{
    struct ct_vk_textures *textures = atomic_load_explicit(&device->textures, memory_order_acquire), /* pairs with the exchange */
        *none = NULL;
    CUresult r;

    if (!textures) {
        if ((r = create(device, &textures)) != CUDA_SUCCESS)
            return r;
        if (atomic_compare_exchange_strong(&device->textures, &none, textures)) {
            device->destroy_textures = destroy_all;
        } else { /* another thread has created them meanwhile */
            destroy(textures, device);
            textures = none;
        }
    }
    *out = textures;
    return CUDA_SUCCESS;
}

CUresult ct_vk_textures_set(struct ct_backend_device *device, VkDescriptorSet *out)
{
    struct ct_vk_textures *textures;
    CUresult r = find(device, &textures);

    if (r == CUDA_SUCCESS)
        *out = textures->set;
    return r;
}

/* ---- textures ---- */

/* Whether all commands of all queues are complete. */
static bool is_idle(struct ct_backend_device *device)
{
    bool idle = true;

    ct_mutex_lock(&device->scheduler->lock);
    for (struct ct_queue *queue = device->scheduler->queues; queue && idle; queue = queue->next) {
        uint64_t completed;

        idle = ct_vk_timeline_semaphore_read(device, queue->semaphore, &completed) == CUDA_SUCCESS &&
               completed >= atomic_load_explicit(&queue->point, memory_order_relaxed); /* written under the lock */
    }
    ct_mutex_unlock(&device->scheduler->lock);
    return idle;
}

/* lavapipe creates and destroys views and samplers under a lock that it holds while a kernel runs (Mesa 25.0.7). False: the device was not idle
 * in time. */
static bool await_turn(struct ct_backend_device *device)
{
    const struct timespec pause = {.tv_nsec = BUSY_POLL_NS};
    const uint64_t begin_ns = ct_vk_now_ns();

    if (device->info->kind != CT_DEVICE_CPU)
        return true;
    while (!is_idle(device)) {
        if (ct_vk_now_ns() - begin_ns > BUSY_WAIT_NS)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static struct ct_sampled *take_retired(struct ct_vk_textures *textures)
{
    struct ct_sampled *retired;

    ct_mutex_lock(&textures->lock);
    retired = textures->retired;
    textures->retired = NULL;
    ct_mutex_unlock(&textures->lock);
    return retired;
}

static void retire_locked(struct ct_vk_textures *textures, struct ct_sampled *sampled)
{
    sampled->next = textures->retired;
    textures->retired = sampled;
}

static void give_back_locked(struct ct_vk_textures *textures, const struct ct_sampled *sampled)
{
    const uint32_t last = (textures->first_free + textures->n_free++) % PTX2SPV_IMAGE_DESCRIPTORS;

    write_descriptor(textures, sampled->device, sampled->shape, sampled->descriptor, textures->samplers[0].handle,
                     textures->empty_views[sampled->shape]);
    textures->free[last] = (uint16_t)sampled->descriptor;
}

/* Frees the textures that were destroyed before the queues were seen to be idle. Work that is recorded later does not use them. */
static void reclaim(struct ct_vk_textures *textures, struct ct_backend_device *device)
{
    struct ct_sampled *retired = take_retired(textures);
    const bool idle = retired && is_idle(device);

    for (struct ct_sampled *sampled = retired, *next; sampled; sampled = next) {
        next = sampled->next;
        ct_mutex_lock(&textures->lock);
        if (!idle) {
            retire_locked(textures, sampled);
        } else if (sampled->has_descriptor) {
            give_back_locked(textures, sampled);
        }
        ct_mutex_unlock(&textures->lock);
        if (idle)
            free_sampled(sampled);
    }
}

static CUresult give_descriptor(struct ct_vk_textures *textures, struct ct_sampled *sampled, const struct ct_sampled_request *request)
{
    struct ct_backend_device *device = sampled->device;
    VkSampler sampler;
    CUresult r;

    ct_mutex_lock(&textures->lock);
    if ((r = find_sampler_locked(textures, device, request, &sampler)) == CUDA_SUCCESS && !textures->n_free)
        r = REFUSE("%u textures are images, or were while kernels ran", PTX2SPV_IMAGE_DESCRIPTORS);
    if (r == CUDA_SUCCESS) {
        sampled->descriptor = textures->free[textures->first_free];
        sampled->has_descriptor = true;
        textures->first_free = (textures->first_free + 1) % PTX2SPV_IMAGE_DESCRIPTORS;
        textures->n_free--;
        write_descriptor(textures, device, sampled->shape, sampled->descriptor, sampler, sampled->view);
    }
    ct_mutex_unlock(&textures->lock);
    return r;
}

/* A texture of an image that exists, and is in the general layout. */
static CUresult view_existing(struct ct_sampled *sampled, const struct ct_sampled_request *request, VkFormat format)
{
    struct ct_backend_device *device = sampled->device;
    struct ct_vk_image *image = (struct ct_vk_image *)request->image_or_null;
    VkFormatProperties properties;

    vkGetPhysicalDeviceFormatProperties(device->physical->handle, format, &properties);
    if ((format != image->format && !image->has_other_views) || !(properties.optimalTilingFeatures & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT) ||
        (request->linear && !(properties.optimalTilingFeatures & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT)))
        return REFUSE("%s does not read an image of VkFormat %d as %d", device->info->name, (int)image->format, (int)format);
    atomic_fetch_add(&image->references, 1);
    sampled->existing = image;
    return create_view(device, image->handle, format, request, &sampled->view);
}

static CUresult make(struct ct_sampled *sampled, struct ct_vk_textures *textures, const struct ct_sampled_request *request)
{
    const VkFormat format = format_of_request(request);
    CUresult r;

    if (format == VK_FORMAT_UNDEFINED)
        return REFUSE("no images have texels of type %d", (int)request->texel);
    if (request->image_or_null)
        return (r = view_existing(sampled, request, format)) == CUDA_SUCCESS ? give_descriptor(textures, sampled, request) : r;
    if ((r = create_image(sampled, request, format)) != CUDA_SUCCESS ||
        (r = create_view(sampled->device, sampled->image, format, request, &sampled->view)) != CUDA_SUCCESS ||
        (r = to_general_layout(textures, sampled)) != CUDA_SUCCESS)
        return r;
    return give_descriptor(textures, sampled, request);
}

void ct_vk_sampled_destroy(struct ct_sampled *sampled)
{
    struct ct_backend_device *device;
    struct ct_vk_textures *textures;

    if (!sampled || ct_vk_device_is_given_up(sampled->device))
        return;
    device = sampled->device;
    textures = device->textures;
    ct_mutex_lock(&textures->lock);
    retire_locked(textures, sampled);
    ct_mutex_unlock(&textures->lock);
    reclaim(textures, device);
}

CUresult ct_vk_sampled_create(struct ct_backend_device *device, const struct ct_sampled_request *request, struct ct_sampled **out,
                              uint32_t *out_descriptor)
{
    struct ct_vk_textures *textures;
    struct ct_sampled *sampled;
    CUresult r;

    if (!await_turn(device))
        return REFUSE("the device is busy");
    if ((r = find(device, &textures)) != CUDA_SUCCESS)
        return r;
    reclaim(textures, device);
    if (!(sampled = calloc(1, sizeof *sampled)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the image of a texture");
    sampled->device = device;
    sampled->shape = request->extent.shape;
    r = make(sampled, textures, request);
    if (r == CUDA_ERROR_NOT_READY) { /* its image is in use */
        ct_vk_sampled_destroy(sampled);
        return REFUSE("the device is busy");
    }
    if (r != CUDA_SUCCESS) {
        free_sampled(sampled);
        return r;
    }
    *out = sampled;
    *out_descriptor = sampled->descriptor;
    return CUDA_SUCCESS;
}

void ct_vk_textures_reclaim(struct ct_backend_device *device)
{
    struct ct_vk_textures *textures = atomic_load_explicit(&device->textures, memory_order_acquire); /* pairs with the exchange in find */

    if (textures && !ct_vk_device_is_given_up(device))
        reclaim(textures, device);
}
