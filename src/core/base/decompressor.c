/* SPDX-License-Identifier: Apache-2.0 */
#include "decompressor.h"

#include "log.h"

#include <dlfcn.h>
#include <lz4.h>
#include <zlib.h>

#define CT_CHANNEL "memory"

/* ---- DEFLATE ---- */

#define DEFLATE_WINDOW (-15) /* negative: without the header of zlib */

static bool inflate_all(const void *src, size_t src_bytes, void *dst, size_t capacity, size_t *out_bytes)
{
    z_stream stream = {.next_in = (Bytef *)src, .avail_in = (uInt)src_bytes, .next_out = dst, .avail_out = (uInt)capacity};
    bool complete;

    if (inflateInit2(&stream, DEFLATE_WINDOW) != Z_OK)
        return false;
    complete = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
    *out_bytes = capacity - stream.avail_out;
    inflateEnd(&stream);
    return complete;
}

/* ---- LZ4 ---- */

static bool unpack_lz4(const void *src, size_t src_bytes, void *dst, size_t capacity, size_t *out_bytes)
{
    const int bytes = LZ4_decompress_safe(src, dst, (int)src_bytes, (int)capacity);

    *out_bytes = bytes < 0 ? 0 : (size_t)bytes;
    return bytes >= 0;
}

/* ---- Snappy ---- */

#define SNAPPY_LIBRARY "libsnappy.so.1"
#define SNAPPY_OK 0 /* of its enumeration snappy_status */

typedef int snappy_uncompress_function(const char *src, size_t src_bytes, char *dst, size_t *dst_bytes);

static snappy_uncompress_function *open_snappy_or_null(void)
{
    void *library = dlopen(SNAPPY_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* stays open; opening it again only finds it */

    return library ? (snappy_uncompress_function *)dlsym(library, "snappy_uncompress") : NULL;
}

static bool unpack_snappy(const void *src, size_t src_bytes, void *dst, size_t capacity, size_t *out_bytes)
{
    snappy_uncompress_function *const uncompress = open_snappy_or_null();

    *out_bytes = capacity;
    return uncompress && uncompress(src, src_bytes, dst, out_bytes) == SNAPPY_OK;
}

/* ---- the formats ---- */

struct format {
    bool (*decompress)(const void *src, size_t src_bytes, void *dst, size_t capacity, size_t *out_bytes);
    size_t expansion; /* the most bytes that a byte of the source can stand for, rounded up */
};

/* By CUmemDecompressAlgorithm. The longest match of DEFLATE, 258 bytes, takes at least 2 bits; a byte of an LZ4 length adds 255 bytes; a copy of
 * 64 bytes takes 2 bytes in Snappy. */
static const struct format formats[] = {
    [CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE] = {inflate_all, 1032},
    [CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY] = {unpack_snappy, 64},
    [CU_MEM_DECOMPRESS_ALGORITHM_LZ4] = {unpack_lz4, 256},
};

unsigned ct_decompressor_formats(void)
{
    const unsigned linked = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE | CU_MEM_DECOMPRESS_ALGORITHM_LZ4;

    return open_snappy_or_null() ? linked | CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY : linked;
}

size_t ct_decompressor_limit(CUmemDecompressAlgorithm format, size_t src_bytes)
{
    size_t bytes;

    if (__builtin_mul_overflow(src_bytes, formats[format].expansion, &bytes) || bytes > CT_DECOMPRESSED_BYTES_MAX)
        return CT_DECOMPRESSED_BYTES_MAX;
    return bytes;
}

bool ct_decompress(CUmemDecompressAlgorithm format, const void *src, size_t src_bytes, void *dst, size_t capacity, size_t *out_bytes)
{
    if (src_bytes > CT_DECOMPRESSED_BYTES_MAX)
        return false;
    if (capacity > CT_DECOMPRESSED_BYTES_MAX)
        capacity = CT_DECOMPRESSED_BYTES_MAX;
    return formats[format].decompress(src, src_bytes, dst, capacity, out_bytes);
}
