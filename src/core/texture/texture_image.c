/* SPDX-License-Identifier: Apache-2.0 */
/* Textures as images: arrays and mipmapped arrays of every geometry, and pitched memory. The image lies over the memory of the texels, so copies,
 * surfaces and pointers see the same texels, and instructions that this way does not cover read the object by its record.
 *
 * A line is the only row of a plane, at y = 0, where NVIDIA's texture units filter it with the border above it. Cubes are layers of faces, since
 * devices differ in which face has an edge: kernels find the face. */
#include "texture_image.h"

#include "core/array/array_group.h"
#include "core/array/array_tiled.h"
#include "core/backing/address_uses.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/copy/copy.h"
#include "texture_record.h"

#include <math.h>
#include <string.h>

#define CT_CHANNEL "memory"

/* ---- which textures ---- */

static enum ptx2spv_image_geometry geometry_of(const struct ptx2spv_texture *record)
{
    const bool is_layered = record->flags & PTX2SPV_TEXTURE_LAYERED;

    if (record->flags & PTX2SPV_TEXTURE_CUBE)
        return is_layered ? PTX2SPV_IMAGE_ACUBE : PTX2SPV_IMAGE_CUBE;
    if (record->dimensions == 3)
        return PTX2SPV_IMAGE_3D;
    if (record->dimensions == 2)
        return is_layered ? PTX2SPV_IMAGE_A2D : PTX2SPV_IMAGE_2D;
    return is_layered ? PTX2SPV_IMAGE_A1D : PTX2SPV_IMAGE_1D;
}

static bool is_cube(const struct ptx2spv_texture *record)
{
    return record->flags & PTX2SPV_TEXTURE_CUBE;
}

static bool has_texel_coordinates(const struct ptx2spv_texture *record)
{
    return !is_cube(record) && !(record->flags & PTX2SPV_TEXTURE_NORMALIZED_COORDINATES);
}

static bool folds(uint32_t address)
{
    return address == PTX2SPV_TEXTURE_WRAP || address == PTX2SPV_TEXTURE_MIRROR;
}

/* The address modes of the image's axes. */
static void get_addresses(const struct ptx2spv_texture *record, enum ptx2spv_texture_address out[3])
{
    const bool has_row = geometry_of(record) == PTX2SPV_IMAGE_1D && record->address[1] == PTX2SPV_TEXTURE_BORDER;

    for (unsigned i = 0; i < 3; i++)
        out[i] = i < record->dimensions && !is_cube(record) ? (enum ptx2spv_texture_address)record->address[i] : PTX2SPV_TEXTURE_CLAMP;
    if (has_row)
        out[1] = PTX2SPV_TEXTURE_BORDER;
}

/* Images have borders of zeros only. If only some axes fold no bound would do for coordinates of all (PTX2SPV_IMAGE_NARROW_SHIFT). */
static bool has_image_addresses(const struct ptx2spv_texture *record)
{
    const uint32_t *border = record->border;
    enum ptx2spv_texture_address address[3];
    bool has_border = false, is_mixed = false;

    get_addresses(record, address);
    for (unsigned i = 0; i < 3; i++)
        has_border |= address[i] == PTX2SPV_TEXTURE_BORDER;
    for (unsigned i = 1; i < record->dimensions; i++)
        is_mixed |= folds(address[i]) != folds(address[0]);
    return !(has_border && (border[0] | border[1] | border[2] | border[3])) && !is_mixed;
}

static bool is_whole(float level)
{
    return level == floorf(level);
}

/* Samplers add the bias to every level, CUDA not to that of fetches without one. Where they choose the nearest of two levels is not the same
 * everywhere in the middle, to which a limit must not lead. */
static bool has_image_levels(const struct ptx2spv_texture *record)
{
    const bool is_filtered = record->flags & PTX2SPV_TEXTURE_LINEAR_LEVELS;

    return record->n_levels == 1 || (record->level_bias == 0 && record->min_level <= record->max_level &&
                                     (is_filtered || (is_whole(record->min_level) && is_whole(record->max_level))));
}

/* Filtered texels of 16 bits have more precision than the fraction of the place. */
static bool is_exact(const struct ct_device_info *info, const struct ptx2spv_texture *record)
{
    const bool is_filtered16 =
        record->flags & PTX2SPV_TEXTURE_LINEAR && (record->texel == PTX2SPV_TEXEL_U16 || record->texel == PTX2SPV_TEXEL_S16);

    return !(record->flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES) || info->exact_normalized || is_filtered16 ||
           !strcmp(ct_config()->textures, "image");
}

/* Vulkan does not filter integers. Filtering across the edges of a cube needs a cube. Anisotropy is computed by generated code, which reads all
 * objects of several levels where an instruction has derivatives. */
static bool can_be_image(const struct ct_device_info *info, const struct ptx2spv_texture *record)
{
    const bool linear = record->flags & PTX2SPV_TEXTURE_LINEAR, is_seamless = linear && record->flags & PTX2SPV_TEXTURE_SEAMLESS;
    const bool is_anisotropic = linear && record->max_anisotropy > 1 && record->n_levels == 1;

    return info->target.sampled_images && !is_seamless && !is_anisotropic && !ct_texture_filters_integers(record) &&
           has_image_addresses(record) && has_image_levels(record) && is_exact(info, record);
}

/* ---- creation ---- */

static enum ptx2spv_image_use use_of(const struct ptx2spv_texture *record, enum ptx2spv_image_shape shape)
{
    if (record->n_levels > 1)
        return record->flags & PTX2SPV_TEXTURE_LINEAR_LEVELS ? PTX2SPV_IMAGE_LINEAR_LEVELS : PTX2SPV_IMAGE_POINT_LEVELS;
    if (shape == PTX2SPV_IMAGE_PLANE || !has_texel_coordinates(record))
        return PTX2SPV_IMAGE_ONE_LEVEL;
    return record->flags & PTX2SPV_TEXTURE_LINEAR ? PTX2SPV_IMAGE_LINEAR_TEXELS : PTX2SPV_IMAGE_POINT_TEXELS;
}

static enum ptx2spv_image_channels channels_of(const struct ptx2spv_texture *record)
{
    if (record->flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES || record->texel >= PTX2SPV_TEXEL_F16)
        return PTX2SPV_IMAGE_FLOAT;
    return record->texel >= PTX2SPV_TEXEL_S8 ? PTX2SPV_IMAGE_SIGNED : PTX2SPV_IMAGE_UNSIGNED;
}

/* Where a kernel finds the image, and what it does with the operands. */
static uint32_t image_bits(const struct ptx2spv_texture *record, enum ptx2spv_image_shape shape, uint32_t descriptor)
{
    const bool is_narrow = !has_texel_coordinates(record) && (is_cube(record) || !folds(record->address[0]));

    return 1u << PTX2SPV_IMAGE_SHIFT | (uint32_t)channels_of(record) << PTX2SPV_IMAGE_CHANNELS_SHIFT |
           (uint32_t)is_narrow << PTX2SPV_IMAGE_NARROW_SHIFT | descriptor << PTX2SPV_IMAGE_DESCRIPTOR_SHIFT |
           (uint32_t)geometry_of(record) << PTX2SPV_IMAGE_GEOMETRY_SHIFT | (uint32_t)use_of(record, shape) << PTX2SPV_IMAGE_USE_SHIFT;
}

/* Creates the image of a request that says where the texels are. */
static CUresult make(struct ct_context *context, const struct ptx2spv_texture *record, struct ct_sampled_request *request,
                     struct ct_texture *object)
{
    const enum ptx2spv_image_shape shape = request->extent.shape;
    uint32_t descriptor;
    CUresult r;

    request->texel = (enum ptx2spv_texel)record->texel;
    request->channels = record->channels;
    request->texel_bytes = record->texel_bytes;
    request->normalized_values = record->flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES;
    request->normalized_coordinates = shape != PTX2SPV_IMAGE_PLANE || !has_texel_coordinates(record);
    request->srgb = record->flags & PTX2SPV_TEXTURE_SRGB;
    request->linear = record->flags & PTX2SPV_TEXTURE_LINEAR;
    request->linear_levels = record->flags & PTX2SPV_TEXTURE_LINEAR_LEVELS;
    request->min_level = fmaxf(record->min_level, 0);
    request->max_level = fmaxf(record->max_level, 0);
    get_addresses(record, request->address);
    r = context->backend->images->sampled_create(context->backend_device, request, &object->image, &descriptor);
    if (r == CUDA_SUCCESS)
        object->image_bits = image_bits(record, shape, descriptor);
    return r;
}

/* The image with the device's own tiling has all levels of the array. */
static CUresult make_tiled(struct ct_context *context, const struct ct_array *levels, const struct ptx2spv_texture *record,
                           const struct ct_sampled_request *request, struct ct_texture *object)
{
    struct ct_sampled_request tiled = *request;
    CUresult r = ct_array_tiled(levels, &tiled.image_or_null);

    tiled.first_level += (uint32_t)(levels - levels->group->levels);
    return r == CUDA_SUCCESS ? make(context, record, &tiled, object) : r;
}

/* From the first of the levels on that the texture reads. */
static CUresult make_over_read_levels(struct ct_context *context, const struct ct_array *levels, unsigned n_levels,
                                      const CUDA_RESOURCE_VIEW_DESC *view_or_null, const struct ptx2spv_texture *record,
                                      struct ct_texture *object)
{
    struct ct_sampled_request request = {
        .memory = levels->base.memory,
        .offset = levels->base.offset,
        .extent = ct_array_sampled_extent(levels, n_levels),
        .first_level = view_or_null ? view_or_null->firstMipmapLevel : 0,
        .n_levels = record->n_levels,
        .n_layers = 1,
    };
    CUresult r;

    if (levels->group->image) /* whose mirror has another layout */
        return CUDA_ERROR_NOT_SUPPORTED;
    if (request.extent.shape == PTX2SPV_IMAGE_LAYERS) {
        request.first_layer = view_or_null ? view_or_null->firstLayer : 0;
        request.n_layers = record->levels[0].depth;
    }
    if (ct_array_prefers_tiled(levels) && make_tiled(context, levels, record, &request, object) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    for (unsigned i = 0; i < n_levels; i++) {
        request.layout.levels[i].offset = levels[i].base.offset - levels->base.offset;
        request.layout.levels[i].row_bytes = levels[i].texels.row_bytes;
        request.layout.levels[i].slice_bytes = levels[i].texels.slice_bytes;
    }
    r = make(context, record, &request, object);
    return r == CUDA_SUCCESS ? r : make_tiled(context, levels, record, &request, object);
}

static CUresult make_over_levels(struct ct_context *context, const struct ct_array *of_array, unsigned n_levels,
                                 const CUDA_RESOURCE_VIEW_DESC *view_or_null, const struct ptx2spv_texture *record,
                                 struct ct_texture *object)
{
    const struct ct_array *levels;
    const CUresult r = ct_texture_levels(of_array, view_or_null, &levels);

    return r == CUDA_SUCCESS ? make_over_read_levels(context, levels, n_levels, view_or_null, record, object) : r;
}

static CUresult make_over_array(struct ct_context *context, CUarray handle, const CUDA_RESOURCE_VIEW_DESC *view_or_null,
                                const struct ptx2spv_texture *record, struct ct_texture *object)
{
    struct ct_array *array;
    CUresult r = ct_array_lookup(handle, &array);

    if (r != CUDA_SUCCESS)
        return r;
    r = make_over_levels(context, array, 1, view_or_null, record, object);
    ct_array_release(array);
    return r;
}

static CUresult make_over_mipmap(struct ct_context *context, CUmipmappedArray handle, const CUDA_RESOURCE_VIEW_DESC *view_or_null,
                                 const struct ptx2spv_texture *record, struct ct_texture *object)
{
    struct ct_array_group *group;
    CUresult r = ct_array_group_lookup(handle, &group);

    if (r != CUDA_SUCCESS)
        return r;
    r = group->n_levels <= PTX2SPV_TEXTURE_LEVELS ? make_over_levels(context, group->levels, group->n_levels, view_or_null, record, object)
                                                  : CUDA_ERROR_NOT_SUPPORTED;
    ct_array_group_release(group);
    return r;
}

static CUresult make_over_memory(struct ct_context *context, const struct ptx2spv_texture *record, struct ct_texture *object)
{
    const struct ptx2spv_texture_level *level = &record->levels[0];
    const unsigned begin = ct_address_uses_begin();
    struct ct_sampled_request request = {
        .extent = {.shape = PTX2SPV_IMAGE_PLANE, .width = level->width, .height = level->height, .slices = 1, .n_levels = 1},
        .layout = {.levels = {{.row_bytes = level->row_bytes}}},
        .n_levels = 1,
        .n_layers = 1,
    };
    struct ct_place place;
    CUresult r;

    r = ct_place_find(CT_POINTER_DEVICE, level->texels,
                      level->slice_bytes - level->row_bytes + (uint64_t)level->width * record->texel_bytes, &place);
    if (r == CUDA_SUCCESS && (!place.memory || place.memory->device != context->backend_device))
        r = CUDA_ERROR_NOT_SUPPORTED;
    if (r == CUDA_SUCCESS) {
        request.memory = place.memory;
        request.offset = place.offset;
        r = make(context, record, &request, object);
    }
    ct_address_uses_end(begin);
    return r;
}

void ct_texture_image_create(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, const CUDA_RESOURCE_VIEW_DESC *view,
                             const struct ptx2spv_texture *record, struct ct_texture *object)
{
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;

    if (!can_be_image(&context->device->info, record))
        return;
    if (resource->resType == CU_RESOURCE_TYPE_ARRAY)
        r = make_over_array(context, resource->res.array.hArray, view, record, object);
    else if (resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        r = make_over_mipmap(context, resource->res.mipmap.hMipmappedArray, view, record, object);
    else if (resource->resType == CU_RESOURCE_TYPE_PITCH2D)
        r = make_over_memory(context, record, object);
    ct_log(CT_LOG_DEBUG, "a texture of %u x %u x %u texels is %s", record->levels[0].width, record->levels[0].height,
           record->levels[0].depth, r == CUDA_SUCCESS ? "an image" : "read by generated code");
}
