/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression by libraries of the host: raw DEFLATE (RFC 1951) by zlib, blocks of LZ4 by liblz4, blocks of Snappy by libsnappy. The last one is
 * written in C++, so it is not linked but opened when it is first needed: a program of another C++ runtime does not get a second one from us. */
#ifndef CT_CORE_DECOMPRESSOR_H
#define CT_CORE_DECOMPRESSOR_H

#include "cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest source or result; the libraries count in int. */
#define CT_DECOMPRESSED_BYTES_MAX ((size_t)0x7e000000) /* LZ4_MAX_INPUT_SIZE */

/* The formats whose library is there: bits of CUmemDecompressAlgorithm. */
unsigned ct_decompressor_formats(void);

/* No source of so many bytes can have a result of more bytes than this. */
size_t ct_decompressor_limit(CUmemDecompressAlgorithm format, size_t src_bytes);

/* Decompresses all of the source. False: the source is malformed or truncated, or its result exceeds `capacity`; then the destination has any
 * content. Neither is accessed beyond its end. The two do not overlap, and `format` is one of ct_decompressor_formats. */
bool ct_decompress(CUmemDecompressAlgorithm format, const void *src, size_t src_bytes, void *dst, size_t capacity, size_t *out_bytes);

#endif
