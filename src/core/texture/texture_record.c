/* SPDX-License-Identifier: Apache-2.0 */
#include "texture_record.h"

#include "core/array/array_decoded.h"
#include "core/array/array_descriptor.h"
#include "core/array/array_group.h"
#include "core/array/array_mirror.h"
#include "core/base/log.h"
#include "core/blocks/block_decoder.h"
#include "core/device/device.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define CT_CHANNEL "memory"
#define FACES 6

/* ---- formats ---- */

static const struct format {
    CUarray_format format;
    enum ptx2spv_texel texel;
    bool normalized, is_for_surfaces;
} formats[] = {
#define FORMAT(name, texel, normalized) {CU_AD_FORMAT_##name, PTX2SPV_TEXEL_##texel, normalized, false},
#define SURFACE(name, texel) {CU_AD_FORMAT_##name, PTX2SPV_TEXEL_##texel, false, true},
#include "texture_formats.def"
};

/* A channel of 10 bits takes two bytes wherever it is on its own. */
static uint32_t channel_bytes(uint32_t texel)
{
    static const uint8_t bytes[] = {
        [PTX2SPV_TEXEL_U8] = 1,  [PTX2SPV_TEXEL_U16] = 2, [PTX2SPV_TEXEL_U32] = 4, [PTX2SPV_TEXEL_S8] = 1,  [PTX2SPV_TEXEL_S16] = 2,
        [PTX2SPV_TEXEL_S32] = 4, [PTX2SPV_TEXEL_F16] = 2, [PTX2SPV_TEXEL_F32] = 4, [PTX2SPV_TEXEL_U10] = 2,
    };

    return bytes[texel];
}

static bool is_float(uint32_t texel)
{
    return texel == PTX2SPV_TEXEL_F16 || texel == PTX2SPV_TEXEL_F32;
}

static CUresult set_format(CUarray_format wanted, unsigned channels, enum ct_mirror_use use, struct ptx2spv_texture *out)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].format != wanted || (formats[i].is_for_surfaces && use != CT_MIRROR_WRITE))
            continue;
        if ((channels != 1 && channels != 2 && channels != 4) || (formats[i].texel == PTX2SPV_TEXEL_U10 && channels != 4))
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "texels of %u channels", channels);
        out->texel = formats[i].texel;
        out->channels = channels;
        out->texel_bytes = out->texel == PTX2SPV_TEXEL_U10 ? 4 : channel_bytes(out->texel) * channels;
        out->flags |= formats[i].normalized ? PTX2SPV_TEXTURE_NORMALIZED_VALUES : 0;
        return CUDA_SUCCESS;
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "textures of format 0x%x do not exist", (unsigned)wanted);
}

/* ---- linear memory ---- */

static CUresult check_address(struct ct_context *context, CUdeviceptr address)
{
    const int align = ct_device_limit(context->device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);

    if (address && address % (unsigned)align == 0)
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "a texture at 0x%llx, which is not aligned to %d", (unsigned long long)address, align);
}

static CUresult set_linear(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, struct ptx2spv_texture *out)
{
    const size_t bytes = resource->res.linear.sizeInBytes;
    const size_t most = (size_t)ct_device_limit(context->device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    CUresult r = set_format(resource->res.linear.format, resource->res.linear.numChannels, CT_MIRROR_READ, out);

    if (r != CUDA_SUCCESS || (r = check_address(context, resource->res.linear.devPtr)) != CUDA_SUCCESS)
        return r;
    if (bytes / out->texel_bytes > most)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a texture of %zu bytes of linear memory; the limit is %zu texels of %u bytes", bytes,
                       most, out->texel_bytes);
    out->dimensions = 1;
    out->n_levels = 1;
    out->levels[0] =
        (struct ptx2spv_texture_level){resource->res.linear.devPtr, bytes, bytes, (uint32_t)(bytes / out->texel_bytes), 1, 1, 0};
    if (channel_bytes(out->texel) == sizeof(uint32_t)) {
        out->linear_texels = resource->res.linear.devPtr;
        out->linear_width = out->levels[0].width;
        out->linear_bytes = out->texel_bytes;
    }
    return CUDA_SUCCESS;
}

static CUresult set_pitched(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, struct ptx2spv_texture *out)
{
    const size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height, pitch = resource->res.pitch2D.pitchInBytes;
    const struct ct_device *device = context->device;
    CUresult r = set_format(resource->res.pitch2D.format, resource->res.pitch2D.numChannels, CT_MIRROR_READ, out);

    if (r != CUDA_SUCCESS || (r = check_address(context, resource->res.pitch2D.devPtr)) != CUDA_SUCCESS)
        return r;
    if (width > (size_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
        height > (size_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
        pitch > (size_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) || pitch < width * out->texel_bytes ||
        pitch % (unsigned)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a texture of %zu x %zu texels of %u bytes with a pitch of %zu bytes", width, height,
                       out->texel_bytes, pitch);
    out->dimensions = 2;
    out->n_levels = 1;
    out->levels[0] =
        (struct ptx2spv_texture_level){resource->res.pitch2D.devPtr, pitch, pitch * height, (uint32_t)width, (uint32_t)height, 1, 0};
    return CUDA_SUCCESS;
}

/* ---- arrays ---- */

static bool has_block_view(const CUDA_RESOURCE_VIEW_DESC *view_or_null, enum ct_block_format *out)
{
    if (!view_or_null || view_or_null->format < CU_RES_VIEW_FORMAT_UNSIGNED_BC1 || view_or_null->format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7)
        return false;
    *out = (enum ct_block_format)(view_or_null->format - CU_RES_VIEW_FORMAT_UNSIGNED_BC1);
    return true;
}

/* Views of blocks are those of two or four 32-bit integers. */
CUresult ct_texture_levels(const struct ct_array *levels, const CUDA_RESOURCE_VIEW_DESC *view_or_null, const struct ct_array **out)
{
    const CUDA_ARRAY3D_DESCRIPTOR *desc = &levels->desc;
    enum ct_block_format format;
    bool is_srgb;

    *out = levels;
    if (ct_array_format_has_blocks(desc->Format, &format, &is_srgb))
        return view_or_null ? ct_fail(CUDA_ERROR_INVALID_VALUE, "a view of an array of compressed blocks")
                            : ct_array_decoded(levels, format, out);
    if (!has_block_view(view_or_null, &format))
        return CUDA_SUCCESS;
    if (desc->Format != CU_AD_FORMAT_UNSIGNED_INT32 || desc->NumChannels * sizeof(uint32_t) != ct_block_bytes(format) || !desc->Height)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a view as compressed blocks of %u bytes of an array of format 0x%x with %u channels",
                       ct_block_bytes(format), (unsigned)desc->Format, desc->NumChannels);
    return ct_array_decoded(levels, format, out);
}

/* Kernels find the texels of an opaque image in its mirror. */
static CUresult set_level(const struct ct_array *array, enum ct_mirror_use use, struct ptx2spv_texture_level *out)
{
    const struct ct_texels *texels = &array->texels;
    uint64_t address = 0;
    const CUresult r = ct_array_address(array, use, &address);

    *out = (struct ptx2spv_texture_level){
        .texels = address,
        .row_bytes = texels->row_bytes,
        .slice_bytes = texels->slice_bytes,
        .width = (uint32_t)array->desc.Width,
        .height = array->desc.Height ? (uint32_t)array->desc.Height : 1,
        .depth = (uint32_t)array->slices,
    };
    return r;
}

static uint32_t dimensions_of(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    if (!desc->Height)
        return 1;
    return desc->Depth && !(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) ? 3 : 2;
}

static CUresult set_levels(struct ct_context *context, const struct ct_array *levels, unsigned n, enum ct_mirror_use use,
                           struct ptx2spv_texture *out)
{
    const CUDA_ARRAY3D_DESCRIPTOR *desc = &levels->desc;
    CUresult r = set_format(desc->Format, desc->NumChannels, use, out);

    if (r != CUDA_SUCCESS)
        return r;
    if (levels->group->context != context)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the array belongs to another context");
    out->dimensions = dimensions_of(desc);
    out->flags |= desc->Flags & CUDA_ARRAY3D_CUBEMAP ? PTX2SPV_TEXTURE_CUBE : 0;
    out->flags |= desc->Flags & CUDA_ARRAY3D_LAYERED ? PTX2SPV_TEXTURE_LAYERED : 0;
    out->n_levels = n < PTX2SPV_TEXTURE_LEVELS ? n : PTX2SPV_TEXTURE_LEVELS;
    for (unsigned i = 0; i < out->n_levels && r == CUDA_SUCCESS; i++)
        r = set_level(&levels[i], use, &out->levels[i]);
    return r;
}

/* The levels of a texture, of which there are n. */
static CUresult set_texture_levels(struct ct_context *context, const struct ct_array *levels, unsigned n,
                                   const CUDA_RESOURCE_VIEW_DESC *view_or_null, struct ptx2spv_texture *out)
{
    enum ct_block_format format;
    const struct ct_array *read;
    bool is_srgb = false;
    CUresult r = ct_texture_levels(levels, view_or_null, &read);

    if (r != CUDA_SUCCESS)
        return r;
    if (ct_array_format_has_blocks(levels->desc.Format, &format, &is_srgb) && is_srgb)
        out->flags |= PTX2SPV_TEXTURE_SRGB;
    return set_levels(context, read, n, CT_MIRROR_READ, out);
}

static CUresult set_array(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, const CUDA_RESOURCE_VIEW_DESC *view_or_null,
                          struct ptx2spv_texture *out)
{
    struct ct_array *array;
    CUresult r = ct_array_lookup(resource->res.array.hArray, &array);

    if (r != CUDA_SUCCESS)
        return r;
    r = set_texture_levels(context, array, 1, view_or_null, out);
    ct_array_release(array);
    return r;
}

static CUresult set_mipmap(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, const CUDA_RESOURCE_VIEW_DESC *view_or_null,
                           struct ptx2spv_texture *out)
{
    struct ct_array_group *group;
    CUresult r = ct_array_group_lookup(resource->res.mipmap.hMipmappedArray, &group);

    if (r != CUDA_SUCCESS)
        return r;
    r = set_texture_levels(context, group->levels, group->n_levels, view_or_null, out);
    ct_array_group_release(group);
    return r;
}

static CUresult check_flags(const CUDA_RESOURCE_DESC *resource)
{
    return !resource->flags ? CUDA_SUCCESS
                            : ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x of a resource, which must be 0", resource->flags);
}

CUresult ct_texture_record_resource(struct ct_context *context, const CUDA_RESOURCE_DESC *resource,
                                    const CUDA_RESOURCE_VIEW_DESC *view_or_null, struct ptx2spv_texture *out)
{
    const CUresult r = check_flags(resource);

    *out = (struct ptx2spv_texture){0};
    if (r != CUDA_SUCCESS)
        return r;
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return set_array(context, resource, view_or_null, out);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return set_mipmap(context, resource, view_or_null, out);
    case CU_RESOURCE_TYPE_LINEAR:
        return set_linear(context, resource, out);
    case CU_RESOURCE_TYPE_PITCH2D:
        return set_pitched(context, resource, out);
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "resource type %d does not exist", (int)resource->resType);
    }
}

static void set_surface(struct ptx2spv_texture *out)
{
    const struct ptx2spv_texture_level *level = &out->levels[0];

    out->texels = level->texels;
    out->row_distance = (uint32_t)level->row_bytes;
    out->slice_rows = (uint32_t)(level->slice_bytes / level->row_bytes);
    out->row_bytes = level->width * out->texel_bytes;
    out->height = level->height;
    out->depth = level->depth;
}

CUresult ct_texture_record_surface(struct ct_context *context, const CUDA_RESOURCE_DESC *resource, struct ptx2spv_texture *out)
{
    struct ct_array *array;
    CUresult r = check_flags(resource);

    *out = (struct ptx2spv_texture){0};
    if (r != CUDA_SUCCESS || (r = ct_array_lookup(resource->res.array.hArray, &array)) != CUDA_SUCCESS)
        return r;
    if ((r = set_levels(context, array, 1, CT_MIRROR_WRITE, out)) == CUDA_SUCCESS) {
        ct_place_changes_unsettle(&array->group->changes);
        set_surface(out);
    }
    ct_array_release(array);
    return r;
}

/* ---- views ---- */

/* View formats (CUresourceViewFormat) are the eight texel types with 1, 2 and 4 channels each, from 1 on, and compressed blocks. */
static bool set_view_format(CUresourceViewFormat format, struct ptx2spv_texture *record)
{
    static const struct {
        enum ptx2spv_texel texel;
    } kinds[] = {{PTX2SPV_TEXEL_U8},  {PTX2SPV_TEXEL_S8},  {PTX2SPV_TEXEL_U16}, {PTX2SPV_TEXEL_S16},
                 {PTX2SPV_TEXEL_U32}, {PTX2SPV_TEXEL_S32}, {PTX2SPV_TEXEL_F16}, {PTX2SPV_TEXEL_F32}};
    const unsigned index = (unsigned)format - CU_RES_VIEW_FORMAT_UINT_1X8, channels = 1u << index % 3;

    if (index >= 3 * sizeof kinds / sizeof *kinds || channel_bytes(kinds[index / 3].texel) * channels != record->texel_bytes)
        return false;
    record->texel = kinds[index / 3].texel;
    record->channels = channels;
    record->flags &= ~(unsigned)PTX2SPV_TEXTURE_NORMALIZED_VALUES; /* which the array's own format may imply */
    return true;
}

static void take_levels(struct ptx2spv_texture *record, unsigned first, unsigned last)
{
    record->n_levels = last - first + 1;
    memmove(record->levels, record->levels + first, record->n_levels * sizeof *record->levels);
}

static void take_layers(struct ptx2spv_texture *record, unsigned first, unsigned last)
{
    for (unsigned i = 0; i < record->n_levels; i++) {
        record->levels[i].texels += first * record->levels[i].slice_bytes;
        record->levels[i].depth = last - first + 1;
    }
}

CUresult ct_texture_record_view(const CUDA_RESOURCE_VIEW_DESC *view, struct ptx2spv_texture *record)
{
    const bool has_layers = record->flags & (PTX2SPV_TEXTURE_LAYERED | PTX2SPV_TEXTURE_CUBE);
    const struct ptx2spv_texture_level *level = &record->levels[0];
    const unsigned layers = has_layers ? level->depth : 1, depth = record->dimensions == 3 || has_layers ? level->depth : 0;
    enum ct_block_format block;

    if (!has_block_view(view, &block) && !set_view_format(view->format, record)) /* decoded texels have the format that they need */
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "view format 0x%x of texels of %u bytes", (unsigned)view->format, record->texel_bytes);
    if (view->width != level->width || (view->height ? view->height : 1) != level->height || view->depth != depth)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a view of %zu x %zu x %zu texels of an array of %u x %u x %u", view->width, view->height,
                       view->depth, level->width, level->height, level->depth);
    if (view->firstMipmapLevel > view->lastMipmapLevel || view->lastMipmapLevel >= record->n_levels || view->firstLayer > view->lastLayer ||
        view->lastLayer >= layers)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a view of levels %u to %u and layers %u to %u", view->firstMipmapLevel,
                       view->lastMipmapLevel, view->firstLayer, view->lastLayer);
    take_levels(record, view->firstMipmapLevel, view->lastMipmapLevel);
    if (has_layers)
        take_layers(record, view->firstLayer, view->lastLayer);
    return CUDA_SUCCESS;
}

/* ---- how texels are read ---- */

static float one_of(uint32_t texel)
{
    return texel == PTX2SPV_TEXEL_U8    ? 255
           : texel == PTX2SPV_TEXEL_S8  ? 127
           : texel == PTX2SPV_TEXEL_U16 ? 65535
           : texel == PTX2SPV_TEXEL_U10 ? 1023
                                        : 32767;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A channel of the border as kernels read it. As NVIDIA's driver does (measured on an H100), the colour has the precision of the texels, and
 * an integer has the low bits of the float. */
static uint32_t border_of(const struct ptx2spv_texture *record, float colour)
{
    const bool is_signed = record->texel == PTX2SPV_TEXEL_S8 || record->texel == PTX2SPV_TEXEL_S16;
    const unsigned unused = 32 - 8 * channel_bytes(record->texel);
    const float one = one_of(record->texel), least = is_signed ? -1.0f : 0.0f;
    const uint32_t bits = bits_of(colour);

    if (is_float(record->texel))
        return bits;
    if (record->flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES)
        return bits_of(ceilf((colour < least ? least : colour > 1.0f ? 1.0f : colour) * one - 0.5f) / one);
    return is_signed ? (uint32_t)((int32_t)(bits << unused) >> unused) : bits << unused >> unused;
}

static void set_borders(const CUDA_TEXTURE_DESC *texture, struct ptx2spv_texture *record)
{
    for (unsigned i = 0; i < record->channels; i++) /* missing channels are 0 */
        record->border[i] = border_of(record, texture->borderColor[i]);
    if (record->texel == PTX2SPV_TEXEL_U10) /* a channel of 2 bits is not rounded (measured on an H100) */
        record->border[3] = bits_of(fminf(fmaxf(texture->borderColor[3], 0), 1));
}

/* Coordinates in texels cannot be wrapped or mirrored. */
static void set_addresses(const CUDA_TEXTURE_DESC *texture, struct ptx2spv_texture *record)
{
    for (unsigned i = 0; i < 3; i++) {
        const CUaddress_mode mode = texture->addressMode[i];
        const bool folds = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;

        record->address[i] = folds && !(record->flags & PTX2SPV_TEXTURE_NORMALIZED_COORDINATES) ? PTX2SPV_TEXTURE_CLAMP : (uint32_t)mode;
    }
}

static uint32_t flags_of(const CUDA_TEXTURE_DESC *texture, uint32_t texel)
{
    const bool is_small = !is_float(texel) && channel_bytes(texel) <= 2;
    uint32_t flags = 0;

    if (is_small && !(texture->flags & CU_TRSF_READ_AS_INTEGER))
        flags |= PTX2SPV_TEXTURE_NORMALIZED_VALUES;
    if (texture->flags & CU_TRSF_NORMALIZED_COORDINATES)
        flags |= PTX2SPV_TEXTURE_NORMALIZED_COORDINATES;
    if (texture->flags & CU_TRSF_SRGB)
        flags |= PTX2SPV_TEXTURE_SRGB;
    if (texture->flags & CU_TRSF_SEAMLESS_CUBEMAP)
        flags |= PTX2SPV_TEXTURE_SEAMLESS;
    if (texture->filterMode == CU_TR_FILTER_MODE_LINEAR)
        flags |= PTX2SPV_TEXTURE_LINEAR;
    if (texture->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR)
        flags |= PTX2SPV_TEXTURE_LINEAR_LEVELS;
    return flags;
}

/* Fetches of linear memory take integers, and read zeros outside of it. */
static void ignore_sampler(struct ptx2spv_texture *record)
{
    record->flags &= PTX2SPV_TEXTURE_NORMALIZED_VALUES | PTX2SPV_TEXTURE_SRGB;
    for (unsigned i = 0; i < 3; i++)
        record->address[i] = PTX2SPV_TEXTURE_BORDER;
    memset(record->border, 0, sizeof record->border);
}

/* A fetch without a level is one of level 0 without the bias, but within the limits. */
static void set_base(struct ptx2spv_texture *record)
{
    const float most = fminf(record->max_level, (float)(record->n_levels - 1)), level = fmaxf(fminf(record->min_level, most), 0);

    if (record->flags & PTX2SPV_TEXTURE_LINEAR_LEVELS) {
        record->base_level = (uint32_t)level;
        record->base_weight = (uint32_t)((level - (float)record->base_level) * 256 + 0.5f);
    } else {
        record->base_level = (uint32_t)(level + 0.5f);
    }
}

static bool reads_integers(const struct ptx2spv_texture *record)
{
    return !is_float(record->texel) && !(record->flags & PTX2SPV_TEXTURE_NORMALIZED_VALUES);
}

bool ct_texture_filters_integers(const struct ptx2spv_texture *record)
{
    return record->flags & PTX2SPV_TEXTURE_LINEAR && reads_integers(record);
}

CUresult ct_texture_record_sampler(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture, struct ptx2spv_texture *record)
{
    const bool is_linear_memory = resource->resType == CU_RESOURCE_TYPE_LINEAR;

    if (record->flags & PTX2SPV_TEXTURE_SRGB && !(texture->flags & CU_TRSF_SRGB))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a texture of an sRGB format must have CU_TRSF_SRGB");
    record->flags |= flags_of(texture, record->texel);
    if (reads_integers(record)) /* integers are filtered within a level */
        record->flags &= ~(unsigned)(PTX2SPV_TEXTURE_LINEAR_LEVELS | PTX2SPV_TEXTURE_SEAMLESS);
    if (record->texel != PTX2SPV_TEXEL_U8)
        record->flags &= ~(unsigned)PTX2SPV_TEXTURE_SRGB;
    if (texture->flags & CU_TRSF_SEAMLESS_CUBEMAP && !(record->flags & PTX2SPV_TEXTURE_CUBE))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "seamless filtering of a texture that is no cube");
    set_addresses(texture, record);
    set_borders(texture, record);
    record->level_bias = texture->mipmapLevelBias;
    record->min_level = texture->minMipmapLevelClamp;
    record->max_level = texture->maxMipmapLevelClamp;
    record->max_anisotropy = ct_texture_filters_integers(record) ? 0 : texture->maxAnisotropy;
    set_base(record);
    if (is_linear_memory)
        ignore_sampler(record);
    return CUDA_SUCCESS;
}
