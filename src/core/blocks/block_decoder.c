/* SPDX-License-Identifier: Apache-2.0 */
#include "block_decoder.h"

#include "core/base/log.h"
#include "core/copy/builtin_kernel.h"
#include "core/stream/stream_record.h"
#include "decode_text.h"

#define CT_CHANNEL "memory"

enum { DECODE_BC123, DECODE_BC45, DECODE_BC6, DECODE_BC7 }; /* in the order of the text */

static const struct ct_builtin_source sources[] = {
    [DECODE_BC123] = {ct_decode_text, "decode_bc123", DECODE_BC123, true},
    [DECODE_BC45] = {ct_decode_text, "decode_bc45", DECODE_BC45, true},
    [DECODE_BC6] = {ct_decode_text, "decode_bc6", DECODE_BC6, true},
    [DECODE_BC7] = {ct_decode_text, "decode_bc7", DECODE_BC7, true},
};

static const struct format {
    unsigned char kernel, bytes;
    CUarray_format texels;
} formats[] = {
    [CT_BLOCK_BC1] = {DECODE_BC123, 8, CU_AD_FORMAT_UNORM_INT8X4},  [CT_BLOCK_BC2] = {DECODE_BC123, 16, CU_AD_FORMAT_UNORM_INT8X4},
    [CT_BLOCK_BC3] = {DECODE_BC123, 16, CU_AD_FORMAT_UNORM_INT8X4}, [CT_BLOCK_BC4U] = {DECODE_BC45, 8, CU_AD_FORMAT_FLOAT},
    [CT_BLOCK_BC4S] = {DECODE_BC45, 8, CU_AD_FORMAT_FLOAT},         [CT_BLOCK_BC5U] = {DECODE_BC45, 16, CU_AD_FORMAT_FLOAT},
    [CT_BLOCK_BC5S] = {DECODE_BC45, 16, CU_AD_FORMAT_FLOAT},        [CT_BLOCK_BC6U] = {DECODE_BC6, 16, CU_AD_FORMAT_HALF},
    [CT_BLOCK_BC6S] = {DECODE_BC6, 16, CU_AD_FORMAT_HALF},          [CT_BLOCK_BC7] = {DECODE_BC7, 16, CU_AD_FORMAT_UNORM_INT8X4},
};

CUarray_format ct_block_texel_format(enum ct_block_format format)
{
    return formats[format].texels;
}

unsigned ct_block_bytes(enum ct_block_format format)
{
    return formats[format].bytes;
}

static struct ct_kernel_image *kernel_or_null(struct ct_device *device, enum ct_block_format format)
{
    return ct_builtin_kernel_or_null(device, &device->block_kernels, sources, formats[format].kernel);
}

CUresult ct_block_decoder_prepare(struct ct_device *device, enum ct_block_format format)
{
    return kernel_or_null(device, format) ? CUDA_SUCCESS
                                          : ct_fail(CUDA_ERROR_NOT_SUPPORTED, "%s cannot decode compressed blocks", device->info.name);
}

static CUresult record(struct ct_stream *stream, const struct ct_launch *launch)
{
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_stream_record_launch_locked(stream, launch);
    ct_stream_end(stream);
    return r;
}

CUresult ct_block_decode(struct ct_stream *stream, const struct ct_block_job *job, unsigned slices)
{
    const struct ct_kernel_calls *calls = stream->context->backend->kernels;
    const unsigned blocks_x = (job->width + CT_BLOCK_SIDE - 1) / CT_BLOCK_SIDE;
    struct ct_launch launch = {
        .kernel = kernel_or_null(stream->context->device, (enum ct_block_format)job->format),
        .grid = {(blocks_x + CT_BLOCK_THREADS - 1) / CT_BLOCK_THREADS, (job->height + CT_BLOCK_SIDE - 1) / CT_BLOCK_SIDE, slices},
        .block = {CT_BLOCK_THREADS, 1, 1},
        .params = job,
    };
    CUresult r;

    if (!launch.kernel)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (calls->prepare && (r = calls->prepare(&launch, &launch.variant)) != CUDA_SUCCESS)
        return r;
    r = record(stream, &launch);
    if (launch.variant)
        calls->variant_release(launch.variant);
    return r;
}

void ct_block_kernels_destroy(struct ct_device *device)
{
    ct_builtin_kernels_destroy(device, &device->block_kernels);
}
