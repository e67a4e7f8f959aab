/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes compressed blocks into texels on the device. */
#ifndef CT_CORE_BLOCK_DECODER_H
#define CT_CORE_BLOCK_DECODER_H

#include "block_tables.h"

#include "core/stream/stream.h"

extern const struct ct_block_tables ct_block_tables; /* the caller puts a copy into memory that kernels can read */

/* The texels of a format: BC1, BC2, BC3 and BC7 become UNORM_INT8X4, BC6H four HALF, BC4 and BC5 FLOAT. */
CUarray_format ct_block_texel_format(enum ct_block_format format);
/* Bytes of a block. */
unsigned ct_block_bytes(enum ct_block_format format);

/* Compiles the kernel that decodes a format, unless it exists. The caller holds no lock. NOT_SUPPORTED: it does not compile. */
CUresult ct_block_decoder_prepare(struct ct_device *device, enum ct_block_format format);
/* Records the decoding of so many slices of a level, after ct_block_decoder_prepare. The caller holds no lock. */
CUresult ct_block_decode(struct ct_stream *stream, const struct ct_block_job *job, unsigned slices);
/* Called before the device is closed. */
void ct_block_kernels_destroy(struct ct_device *device);

#endif
