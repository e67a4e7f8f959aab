/* SPDX-License-Identifier: Apache-2.0 */
/* Textures as images: planes of one level, in arrays and pitched memory. The image lies over the memory of the texels, so copies, surfaces and
 * pointers see the same texels, and instructions that this way does not cover read the object by its record. */
#include "texture_image.h"

#include "core/array/array_group.h"
#include "core/backing/address_uses.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/copy/copy.h"

#include <string.h>

#define CT_CHANNEL "memory"

/* ---- which textures ---- */

static bool folds(uint32_t address)
{
    return address == PTX2SPV_TEXTURE_WRAP || address == PTX2SPV_TEXTURE_MIRROR;
}

/* Images have borders of zeros only. If only one axis folds no bound would do for coordinates of both (PTX2SPV_IMAGE_NARROW_SHIFT). */
static bool has_image_addresses(const struct ptx2spv_texture *record)
{
    const bool has_border = record->address[0] == PTX2SPV_TEXTURE_BORDER || record->address[1] == PTX2SPV_TEXTURE_BORDER;
    const uint32_t *border = record->border;

    if (has_border && (border[0] | border[1] | border[2] | border[3]))
        return false;
    return folds(record->address[0]) == folds(record->address[1]);
}

/* Filtered texels of 16 bits have more precision than the fraction of the place. */
static bool is_exact(const struct ct_device_info *info, const struct ptx2spv_texture *record)
{
    const bool is_filtered16 =
        record->flags & PTX2SPV_TEXTURE_LINEAR && (record->texel == PTX2SPV_TEXEL_U16 || record->texel == PTX2SPV_TEXEL_S16);

    return !(record->flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES) || info->exact_normalized || is_filtered16 ||
           !strcmp(ct_config()->textures, "image");
}

static bool can_be_image(const struct ct_device_info *info, const struct ptx2spv_texture *record)
{
    const uint32_t excluded = PTX2SPV_TEXTURE_LAYERED | PTX2SPV_TEXTURE_CUBE | PTX2SPV_TEXTURE_SRGB;

    return info->target.sampled_images && record->dimensions == 2 && record->n_levels == 1 && record->levels[0].depth == 1 &&
           !(record->flags & excluded) && has_image_addresses(record) && is_exact(info, record);
}

/* ---- creation ---- */

static CUresult make(struct ct_context *context, const struct ptx2spv_texture *record, struct ct_memory *memory, uint64_t offset,
                     struct ct_texture *object)
{
    const struct ptx2spv_texture_level *level = &record->levels[0];
    const bool normalized = record->flags & PTX2SPV_TEXTURE_NORMALIZED_COORDINATES;
    const bool is_float = record->flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES || record->texel >= PTX2SPV_TEXEL_F16;
    const uint32_t channels = is_float                            ? PTX2SPV_IMAGE_FLOAT
                              : record->texel >= PTX2SPV_TEXEL_S8 ? PTX2SPV_IMAGE_SIGNED
                                                                  : PTX2SPV_IMAGE_UNSIGNED;
    const struct ct_sampled_request request = {
        .memory = memory,
        .offset = offset,
        .row_bytes = level->row_bytes,
        .width = level->width,
        .height = level->height,
        .texel = (enum ptx2spv_texel)record->texel,
        .channels = record->channels,
        .texel_bytes = record->texel_bytes,
        .normalized_values = record->flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES,
        .normalized_coordinates = normalized,
        .linear = record->flags & PTX2SPV_TEXTURE_LINEAR,
        .address = {(enum ptx2spv_texture_address)record->address[0], (enum ptx2spv_texture_address)record->address[1]},
    };
    uint32_t descriptor;
    CUresult r = context->backend->images->sampled_create(context->backend_device, &request, &object->image, &descriptor);

    if (r == CUDA_SUCCESS)
        object->image_bits = 1u << PTX2SPV_IMAGE_SHIFT | channels << PTX2SPV_IMAGE_CHANNELS_SHIFT |
                             (uint32_t)(normalized && !folds(record->address[0])) << PTX2SPV_IMAGE_NARROW_SHIFT |
                             descriptor << PTX2SPV_IMAGE_DESCRIPTOR_SHIFT;
    return r;
}

static CUresult make_over_array(struct ct_context *context, CUarray handle, const struct ptx2spv_texture *record, struct ct_texture *object)
{
    struct ct_array *array;
    CUresult r = ct_array_lookup(handle, &array);

    if (r != CUDA_SUCCESS)
        return r;
    r = make(context, record, array->base.memory, array->base.offset, object);
    ct_array_release(array);
    return r;
}

static CUresult make_over_memory(struct ct_context *context, const struct ptx2spv_texture *record, struct ct_texture *object)
{
    const struct ptx2spv_texture_level *level = &record->levels[0];
    const unsigned begin = ct_address_uses_begin();
    struct ct_place place;
    CUresult r;

    r = ct_place_find(CT_POINTER_DEVICE, level->texels,
                      level->slice_bytes - level->row_bytes + (uint64_t)level->width * record->texel_bytes, &place);
    if (r == CUDA_SUCCESS && (!place.memory || place.memory->device != context->backend_device))
        r = CUDA_ERROR_NOT_SUPPORTED;
    if (r == CUDA_SUCCESS)
        r = make(context, record, place.memory, place.offset, object);
    ct_address_uses_end(begin);
    return r;
}

void ct_texture_image_create(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, const struct ptx2spv_texture *record,
                             struct ct_texture *object)
{
    CUresult r = CUDA_ERROR_NOT_SUPPORTED;

    if (!can_be_image(&context->device->info, record))
        return;
    if (resource->resType == CU_RESOURCE_TYPE_ARRAY)
        r = make_over_array(context, resource->res.array.hArray, record, object);
    else if (resource->resType == CU_RESOURCE_TYPE_PITCH2D)
        r = make_over_memory(context, record, object);
    ct_log(CT_LOG_DEBUG, "a texture of %u x %u texels is %s", record->levels[0].width, record->levels[0].height,
           r == CUDA_SUCCESS ? "an image" : "read by generated code");
}
