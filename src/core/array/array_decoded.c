/* SPDX-License-Identifier: Apache-2.0 */
#include "array_decoded.h"

#include "array_create.h"
#include "array_mirror.h"
#include "array_mirrors.h"
#include "core/base/log.h"
#include "core/blocks/block_decoder.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"
#define ONE_FLOAT 0x3f800000u
#define ONE_HALF 0x3c00u
#define KIND_FLAGS (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)

struct ct_array_decoded {
    struct ct_array_decoded *next;
    enum ct_block_format format;
    uint32_t alpha;
    struct ct_array_group *texels;
};

/* ---- creation ---- */

static bool has_one_channel(enum ct_block_format format)
{
    return format == CT_BLOCK_BC4U || format == CT_BLOCK_BC4S;
}

/* Only textures of blocks, not views, have an alpha of 1 where the format has no such channel. */
static unsigned count_channels(enum ct_block_format format, bool is_view)
{
    if (ct_block_texel_format(format) != CU_AD_FORMAT_FLOAT || !is_view)
        return 4;
    return has_one_channel(format) ? 1 : 2;
}

/* If the blocks are in an opaque image, launches must copy them into a mirror, which exists from now on. */
static CUresult prepare(const struct ct_array_group *group, enum ct_block_format format)
{
    uint64_t blocks;
    CUresult r = ct_array_mirrors_prepare(group->context);

    for (unsigned i = 0; i < group->n_levels && r == CUDA_SUCCESS; i++)
        r = ct_array_address(&group->levels[i], CT_MIRROR_READ, &blocks);
    return r == CUDA_SUCCESS ? ct_block_decoder_prepare(group->context->device, format) : r;
}

static CUresult create(const struct ct_array_group *group, enum ct_block_format format, struct ct_array_decoded **out)
{
    const bool is_view = group->levels[0].texels.block_side == 1;
    CUDA_ARRAY3D_DESCRIPTOR desc = group->levels[0].desc;
    struct ct_array_decoded *decoded;
    CUresult r = prepare(group, format);

    if (r != CUDA_SUCCESS)
        return r;
    if (!(decoded = calloc(1, sizeof *decoded)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the decoded blocks of an array");
    desc.Width *= is_view ? CT_BLOCK_SIDE : 1;
    desc.Height *= is_view ? CT_BLOCK_SIDE : 1;
    desc.Flags &= KIND_FLAGS;
    desc.Format = ct_block_texel_format(format);
    desc.NumChannels = count_channels(format, is_view);
    decoded->format = format;
    decoded->alpha = is_view ? 0 : desc.Format == CU_AD_FORMAT_HALF ? ONE_HALF : ONE_FLOAT;
    if ((r = ct_array_group_create_unlisted(group->context, &desc, group->n_levels, &decoded->texels)) == CUDA_SUCCESS)
        *out = decoded;
    else
        free(decoded);
    return r;
}

/* Two threads may create the same one; both are then kept. */
static void link_to(struct ct_array_group *group, struct ct_array_decoded *decoded)
{
    decoded->next = atomic_load(&group->decoded);
    while (!atomic_compare_exchange_weak(&group->decoded, &decoded->next, decoded))
        ;
    ct_array_mirrors_count(group->context, 1);
}

static struct ct_array_decoded *find_or_null(const struct ct_array_group *group, enum ct_block_format format)
{
    struct ct_array_decoded *decoded = atomic_load_explicit(&group->decoded, memory_order_acquire); /* pairs with the exchange */

    while (decoded && decoded->format != format)
        decoded = decoded->next;
    return decoded;
}

CUresult ct_array_decoded(const struct ct_array *level, enum ct_block_format format, const struct ct_array **out)
{
    struct ct_array_group *group = level->group;
    struct ct_array_decoded *decoded = find_or_null(group, format);
    CUresult r;

    if (level < group->levels || level >= group->levels + group->n_levels)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "textures of compressed blocks in a layer are not supported");
    if (!decoded) {
        if ((r = create(group, format, &decoded)) != CUDA_SUCCESS)
            return r;
        link_to(group, decoded);
    }
    *out = &decoded->texels->levels[level - group->levels];
    return CUDA_SUCCESS;
}

void ct_array_decoded_free(struct ct_array_group *group)
{
    for (struct ct_array_decoded *decoded = atomic_exchange(&group->decoded, NULL), *next; decoded; decoded = next) {
        next = decoded->next;
        ct_array_group_drop_unlisted(decoded->texels);
        free(decoded);
        ct_array_mirrors_count(group->context, -1);
    }
}

/* ---- launches ---- */

static unsigned smaller(uint64_t a, uint64_t b)
{
    return (unsigned)(a < b ? a : b);
}

static CUresult decode_level(struct ct_stream *stream, const struct ct_array_decoded *decoded, const struct ct_array *from,
                             const struct ct_array *to, uint64_t tables)
{
    const uint64_t side = CT_BLOCK_SIDE, rows = from->texels.slice_bytes / from->texels.row_bytes;
    struct ct_block_job job = {
        .texels = to->group->backing.address + to->base.offset,
        .texel_row = to->texels.row_bytes,
        .texel_slice = to->texels.slice_bytes,
        .block_row = from->texels.row_bytes,
        .block_slice = from->texels.slice_bytes,
        .tables = tables,
        .width = smaller(to->desc.Width,
                         ct_texel_elements(from->desc.Width, from->texels.block_side) * side), /* halved extents may have less blocks */
        .height = smaller(to->desc.Height, rows * side),
        .format = decoded->format,
        .channels = to->desc.NumChannels,
        .alpha = decoded->alpha,
    };
    uint64_t blocks;
    const CUresult r = ct_array_address(from, CT_MIRROR_READ, &blocks);

    job.blocks = blocks;
    return r == CUDA_SUCCESS ? ct_block_decode(stream, &job, smaller(from->slices, to->slices)) : r;
}

CUresult ct_array_decode(struct ct_stream *stream, const struct ct_array_group *group)
{
    const struct ct_array_decoded *decoded = atomic_load(&group->decoded);
    const uint64_t tables = ct_array_mirrors_tables(stream->context);
    CUresult r = CUDA_SUCCESS;

    for (; decoded && r == CUDA_SUCCESS; decoded = decoded->next)
        for (unsigned i = 0; i < group->n_levels && i < decoded->texels->n_levels && r == CUDA_SUCCESS; i++)
            r = decode_level(stream, decoded, &group->levels[i], &decoded->texels->levels[i], tables);
    return r;
}
