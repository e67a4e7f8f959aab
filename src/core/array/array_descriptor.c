/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of array descriptors (Driver API: Memory Management, cuArray3DCreate): the kinds of arrays by their extents and flags, and
 * their limits. */
#include "array_descriptor.h"

#include "core/base/log.h"
#include "core/blocks/block_decoder.h"

#include <stddef.h>

#define CT_CHANNEL "memory"
#define KIND_FLAGS (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)
#define LATE_FLAGS (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)
#define GRAPHICS_FLAGS (CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT)
#define ALL_FLAGS                                                                                                                          \
    (KIND_FLAGS | LATE_FLAGS | GRAPHICS_FLAGS | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE)
#define FACES 6

/* ---- kinds ---- */

/* A kind of array: its extents, and the limits of its sides and of its depth. */
static const struct kind {
    const char *name;
    unsigned flags;
    bool has_height, has_depth;
    enum ct_image_shape shape;
    size_t side, depth; /* offsets in struct ct_image_limits */
} kinds[] = {
#define LIMIT(member) offsetof(struct ct_image_limits, member)
    {"1D", 0, false, false, CT_IMAGE_1D, LIMIT(side_1d), LIMIT(side_1d)},
    {"2D", 0, true, false, CT_IMAGE_2D, LIMIT(side_2d), LIMIT(side_2d)},
    {"3D", 0, true, true, CT_IMAGE_3D, LIMIT(side_3d), LIMIT(side_3d)},
    {"1D layered", CUDA_ARRAY3D_LAYERED, false, true, CT_IMAGE_1D, LIMIT(side_1d), LIMIT(layers)},
    {"2D layered", CUDA_ARRAY3D_LAYERED, true, true, CT_IMAGE_2D, LIMIT(side_2d), LIMIT(layers)},
    {"cubemap", CUDA_ARRAY3D_CUBEMAP, true, true, CT_IMAGE_2D, LIMIT(side_cube), LIMIT(layers)},
    {"layered cubemap", KIND_FLAGS, true, true, CT_IMAGE_2D, LIMIT(side_cube), LIMIT(cube_layers)},
#undef LIMIT
};

static uint32_t limit(const struct ct_image_limits *limits, size_t offset)
{
    return *(const uint32_t *)((const char *)limits + offset);
}

static const struct kind *find_kind_or_null(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *kind = &kinds[i];

        if (kind->flags == (desc->Flags & KIND_FLAGS) && kind->has_height == (desc->Height != 0) && kind->has_depth == (desc->Depth != 0))
            return kind;
    }
    return NULL;
}

static bool is_cube(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    bool layered = desc->Flags & CUDA_ARRAY3D_LAYERED;

    return desc->Width == desc->Height && (layered ? desc->Depth % FACES == 0 : desc->Depth == FACES);
}

static CUresult check_extent(const struct ct_image_limits *limits, const struct kind *kind, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    uint32_t side = limit(limits, kind->side), depth = limit(limits, kind->depth);

    if (!desc->Width || desc->Width > side || desc->Height > side || (kind->has_depth && desc->Depth > depth) ||
        (desc->Flags & CUDA_ARRAY3D_CUBEMAP && !is_cube(desc)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a %s array of %zu x %zu x %zu; the limits are %u for each side, %u for the depth",
                       kind->name, desc->Width, desc->Height, desc->Depth, side, depth);
    return CUDA_SUCCESS;
}

/* ---- formats ---- */

static const struct format {
    const char *name;
    CUarray_format format;
    uint32_t channel_bytes, packed_bytes; /* of a channel, or of the texel */
    unsigned channels;                    /* 0: any of 1, 2, 4 */
    bool has_blocks, is_srgb, is_video;
    enum ct_block_format block;
    struct ct_array_planes planes;
} formats[] = {
#define FORMAT(name, channel_bytes, channels) {#name, CU_AD_FORMAT_##name, channel_bytes, 0, channels, .planes = {0}},
#define PACKED(name, texel_bytes, channels) {#name, CU_AD_FORMAT_##name, 0, texel_bytes, channels, .planes = {0}},
#define BLOCKS(name, block, channels, is_srgb) {#name, CU_AD_FORMAT_##name, 0, 0, channels, true, is_srgb, false, CT_BLOCK_##block, {0}},
#define PLANAR(name, plane, n, channels, x, y) {#name, CU_AD_FORMAT_##name, 1, 0, 3, .planes = {n, channels, x, y, CU_AD_FORMAT_##plane}},
#define VIDEO(name, channel_bytes, channels) {#name, CU_AD_FORMAT_##name, channel_bytes, 0, channels, .is_video = true, .planes = {0}},
#include "array_formats.def"
};

static const struct format *find_format_or_null(CUarray_format wanted)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].format == wanted)
            return &formats[i];
    return NULL;
}

bool ct_array_format_has_blocks(CUarray_format wanted, enum ct_block_format *out, bool *out_srgb)
{
    const struct format *format = find_format_or_null(wanted);

    if (!format || !format->has_blocks)
        return false;
    *out = format->block;
    *out_srgb = format->is_srgb;
    return true;
}

bool ct_array_format_has_planes(CUarray_format wanted, struct ct_array_planes *out)
{
    const struct format *format = find_format_or_null(wanted);

    if (!format || !format->planes.n)
        return false;
    *out = format->planes;
    return true;
}

static bool has_channels(const struct format *format, unsigned channels)
{
    return format->channels ? channels == format->channels : channels == 1 || channels == 2 || channels == 4;
}

static uint32_t element_bytes(const struct format *format, unsigned channels)
{
    return format->has_blocks     ? ct_block_bytes(format->block)
           : format->packed_bytes ? format->packed_bytes
                                  : format->channel_bytes * channels;
}

static CUresult check_format(CUarray_format wanted, unsigned channels, const struct format **out)
{
    const struct format *format = find_format_or_null(wanted);

    if (!format)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "format 0x%x does not exist", (unsigned)wanted);
    if (!has_channels(format, channels))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "arrays with %u channels of format 0x%x do not exist", channels, (unsigned)wanted);
    *out = format;
    return CUDA_SUCCESS;
}

/* As in NVIDIA's driver (asked on an H200) lines have no blocks, and kernels cannot write to them. */
static CUresult check_blocks(const struct kind *kind, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    if (!kind->has_height)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a %s array of compressed blocks", kind->name);
    if (desc->Flags & CUDA_ARRAY3D_SURFACE_LDST)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "surfaces of compressed blocks do not exist");
    return CUDA_SUCCESS;
}

/* As in NVIDIA's driver (asked on an H200) arrays of several planes are always such that video engines could access, and have one level. */
static CUresult check_planes(const struct kind *kind, const CUDA_ARRAY3D_DESCRIPTOR *desc, const struct ct_array_planes *planes,
                             unsigned levels, enum ct_array_origin origin)
{
    if (origin != CT_ARRAY_OWN)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "imported images of several planes are not supported");
    if (desc->Flags != CUDA_ARRAY3D_VIDEO_ENCODE_DECODE || !kind->has_height || kind->has_depth || levels > 1 || desc->Width % planes->x ||
        desc->Height % planes->y)
        return ct_fail(CUDA_ERROR_INVALID_VALUE,
                       "an array of %zu x %zu x %zu texels of format 0x%x, which has several planes, with %u levels and flags 0x%x",
                       desc->Width, desc->Height, desc->Depth, (unsigned)desc->Format, levels, desc->Flags);
    return CUDA_SUCCESS;
}

/* As in NVIDIA's driver (asked on an H200), where there are no arrays of CU_AD_FORMAT_Y416 at all. */
static CUresult check_video(const struct kind *kind, const CUDA_ARRAY3D_DESCRIPTOR *desc, const struct format *format, unsigned levels)
{
    if ((desc->Flags & ~(unsigned)CUDA_ARRAY3D_SURFACE_LDST) != CUDA_ARRAY3D_VIDEO_ENCODE_DECODE || !kind->has_height || kind->has_depth ||
        levels > 1)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an array of %zu x %zu x %zu elements of CU_AD_FORMAT_%s, with %u levels and flags 0x%x",
                       desc->Width, desc->Height, desc->Depth, format->name, levels, desc->Flags);
    return CUDA_SUCCESS;
}

/* ---- public ---- */

static unsigned count_levels(const struct kind *kind, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    size_t side = desc->Width > desc->Height ? desc->Width : desc->Height;
    unsigned levels = 1;

    if (kind->shape == CT_IMAGE_3D && desc->Depth > side)
        side = desc->Depth;
    for (; side > 1; side /= 2)
        levels++;
    return levels;
}

/* Memory can be bound later to arrays of 2 dimensions, including layered ones, and of 3. */
static CUresult check_late_flags(const struct ct_device_info *info, const struct kind *kind, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                                 enum ct_array_origin origin)
{
    if (!(desc->Flags & LATE_FLAGS))
        return CUDA_SUCCESS;
    if (origin != CT_ARRAY_OWN || (desc->Flags & LATE_FLAGS) == LATE_FLAGS || !kind->has_height || desc->Flags & CUDA_ARRAY3D_CUBEMAP)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid flags 0x%x of a %s array whose memory is bound later", desc->Flags, kind->name);
    if (!info->sparse_images)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s does not support images whose memory is bound later (flags 0x%x)", info->name,
                       desc->Flags);
    return CUDA_SUCCESS;
}

static CUresult check_flags(const struct kind *kind, const CUDA_ARRAY3D_DESCRIPTOR *desc, enum ct_array_origin origin)
{
    if (desc->Flags & ~(unsigned)ALL_FLAGS || (desc->Flags & CUDA_ARRAY3D_TEXTURE_GATHER && (kind->has_depth || !kind->has_height)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid flags 0x%x of a %s array", desc->Flags, kind->name);
    if (origin == CT_ARRAY_OWN && desc->Flags & GRAPHICS_FLAGS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x are valid for imported images only", desc->Flags);
    if (desc->Flags & CUDA_ARRAY3D_DEPTH_TEXTURE)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "depth textures are not supported: flags 0x%x", desc->Flags);
    return CUDA_SUCCESS;
}

CUresult ct_array_check(const struct ct_device_info *info, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                        enum ct_array_origin origin, struct ct_array_shape *out)
{
    const struct kind *kind = find_kind_or_null(desc);
    const struct format *format;
    unsigned most;
    CUresult r;

    if (!kind)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "arrays of %zu x %zu x %zu with flags 0x%x do not exist", desc->Width, desc->Height,
                       desc->Depth, desc->Flags);
    if ((r = check_format(desc->Format, desc->NumChannels, &format)) != CUDA_SUCCESS ||
        (format->has_blocks && (r = check_blocks(kind, desc)) != CUDA_SUCCESS) ||
        (format->is_video && (r = check_video(kind, desc, format, levels)) != CUDA_SUCCESS) ||
        (format->planes.n && (r = check_planes(kind, desc, &format->planes, levels, origin)) != CUDA_SUCCESS) ||
        (r = check_flags(kind, desc, origin)) != CUDA_SUCCESS || (r = check_late_flags(info, kind, desc, origin)) != CUDA_SUCCESS ||
        (r = check_extent(&info->images, kind, desc)) != CUDA_SUCCESS)
        return r;
    most = count_levels(kind, desc);
    *out = (struct ct_array_shape){
        .desc = *desc,
        .shape = kind->shape,
        .layered = kind->flags != 0,
        .texel_bytes = element_bytes(format, desc->NumChannels),
        .block_side = format->has_blocks ? CT_BLOCK_SIDE : 1,
        .levels = levels < 1      ? 1
                  : levels < most ? levels
                                  : most,
    };
    return CUDA_SUCCESS;
}

/* An extent of 0 stays 0. */
static size_t halved(size_t extent, unsigned level)
{
    return extent && !(extent >> level) ? 1 : extent >> level;
}

CUDA_ARRAY3D_DESCRIPTOR ct_array_level_descriptor(const struct ct_array_shape *shape, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = shape->desc;

    desc.Width = halved(desc.Width, level);
    desc.Height = halved(desc.Height, level);
    if (!shape->layered)
        desc.Depth = halved(desc.Depth, level);
    return desc;
}

struct ct_texels ct_array_texels(const struct ct_array_shape *shape, const CUDA_ARRAY3D_DESCRIPTOR *level)
{
    const uint64_t row_bytes = ct_texel_elements(level->Width, shape->block_side) * shape->texel_bytes;

    return (struct ct_texels){shape->shape, shape->texel_bytes, shape->block_side, row_bytes,
                              row_bytes * ct_texel_elements(level->Height, shape->block_side)};
}

static uint32_t at_least_one(size_t extent)
{
    return extent ? (uint32_t)extent : 1;
}

void ct_array_request(const struct ct_array_shape *shape, struct ct_image_request *out)
{
    const CUDA_ARRAY3D_DESCRIPTOR *desc = &shape->desc;

    *out = (struct ct_image_request){
        .memory = desc->Flags & CUDA_ARRAY3D_SPARSE             ? CT_IMAGE_SPARSE
                  : desc->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING ? CT_IMAGE_DEFERRED
                                                                : CT_IMAGE_OWN,
        .format = desc->Format,
        .channels = desc->NumChannels,
        .texel_bytes = shape->texel_bytes,
        .block_side = shape->block_side,
        .shape = shape->shape,
        .width = (uint32_t)desc->Width,
        .height = at_least_one(desc->Height),
        .depth = shape->layered ? 1 : at_least_one(desc->Depth),
        .layers = shape->layered ? at_least_one(desc->Depth) : 1,
        .levels = shape->levels,
        .cube = desc->Flags & CUDA_ARRAY3D_CUBEMAP,
        .storage = desc->Flags & CUDA_ARRAY3D_SURFACE_LDST,
        .attachment = desc->Flags & CUDA_ARRAY3D_COLOR_ATTACHMENT,
    };
}

CUresult ct_array_own_request(const struct ct_device_info *info, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels,
                              struct ct_array_shape *out_shape, struct ct_image_request *out)
{
    const CUresult r = ct_array_check(info, desc, levels, CT_ARRAY_OWN, out_shape);

    if (r == CUDA_SUCCESS)
        ct_array_request(out_shape, out);
    return r;
}
