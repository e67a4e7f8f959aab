/* SPDX-License-Identifier: Apache-2.0 */
/* The stream's worker decompresses, in stream order. Where the host works on the memory itself it does so in place. Otherwise the source is copied
 * to the host, and the result and its size are copied back, in a stream of the batch's own: the application's stream waits for the worker.
 *
 * The manual names no way to report compressed data that are damaged. Here the operation writes 0 as the number of its bytes, its destination has
 * any content within dstNumBytes (if that is 0, the content it had), the log has a warning, and the other operations of the batch run. */
#include "decompression.h"

#include "core/base/decompressor.h"
#include "core/base/log.h"
#include "core/stream/stream_record.h"
#include "core/vmm/vmm.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "memory"

struct operation {
    struct ct_place src, dst, size; /* of `size`: 4 bytes */
    size_t src_bytes, capacity;
    bool has_size; /* dstNumBytes: all of `capacity` is the operation's to write */
    CUmemDecompressAlgorithm format;
};

struct ct_decompression {
    struct ct_stream *copies; /* a reference to a stream for the copies; NULL: the host reaches all memory */
    size_t count;
    struct operation operations[];
};

/* ---- validation ---- */

/* The bytes from `address` to the end of its allocation or mapping. */
static CUresult room_at(uint64_t address, size_t *out)
{
    struct ct_vmm_mapping_info mapping;
    struct ct_range range;
    CUresult r = ct_address_find(address, 1, &range);

    if (r != CUDA_SUCCESS)
        return r;
    if (range.kind != CT_RANGE_VIRTUAL) {
        *out = range.start + range.size_bytes - address;
        return CUDA_SUCCESS;
    }
    if ((r = ct_vmm_mapping_at(address, &mapping)) == CUDA_SUCCESS)
        *out = mapping.start + mapping.size_bytes - address;
    return r;
}

static CUresult find(const struct ct_stream *stream, const void *pointer, size_t bytes, struct ct_place *out)
{
    const uint64_t address = (uint64_t)(uintptr_t)pointer;
    CUresult r = ct_place_find(CT_POINTER_DEVICE, address, bytes, out);

    if (r == CUDA_SUCCESS && out->is_device && out->memory->device != stream->context->backend_device)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is in memory of another device", (unsigned long long)address);
    return r;
}

static CUresult find_writable(const struct ct_stream *stream, const void *pointer, size_t bytes, struct ct_place *out)
{
    CUresult r = find(stream, pointer, bytes, out);

    if (r == CUDA_SUCCESS && out->read_only)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is in memory that can only be read", pointer);
    return r;
}

static CUresult check_format(CUmemDecompressAlgorithm format)
{
    if (format != CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE && format != CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY &&
        format != CU_MEM_DECOMPRESS_ALGORITHM_LZ4)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "there is no decompression algorithm %d", (int)format);
    if (!(ct_decompressor_formats() & format))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the library for decompression algorithm %d is not installed", (int)format);
    return CUDA_SUCCESS;
}

static CUresult check_numbers(const CUmemDecompressParams *params)
{
    static const unsigned char zeros[sizeof params->padding];

    if (params->srcNumBytes == 0 || params->srcNumBytes > CT_DECOMPRESSED_BYTES_MAX || params->dstNumBytes > CT_DECOMPRESSED_BYTES_MAX)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "decompression of %zu bytes to %zu bytes; the most are %zu", params->srcNumBytes,
                       params->dstNumBytes, CT_DECOMPRESSED_BYTES_MAX);
    if (!params->src || !params->dst || !params->dstActBytes || (uintptr_t)params->dstActBytes % sizeof(cuuint32_t))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the source is %p, the destination %p, the address of the size %p", params->src,
                       params->dst, (void *)params->dstActBytes);
    if (memcmp(params->padding, zeros, sizeof zeros))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the padding of a decompression is not 0");
    return check_format(params->algo);
}

static CUresult operation_init(const struct ct_stream *stream, const CUmemDecompressParams *params, struct operation *out)
{
    CUresult r = check_numbers(params);
    size_t limit;

    if (r != CUDA_SUCCESS)
        return r;
    limit = ct_decompressor_limit(params->algo, params->srcNumBytes);
    *out = (struct operation){
        .src_bytes = params->srcNumBytes, .capacity = params->dstNumBytes, .has_size = params->dstNumBytes != 0, .format = params->algo};
    if (out->capacity == 0 && (r = room_at((uint64_t)(uintptr_t)params->dst, &out->capacity)) != CUDA_SUCCESS)
        return r;
    if ((r = find(stream, params->src, params->srcNumBytes, &out->src)) != CUDA_SUCCESS ||
        (r = find_writable(stream, params->dst, out->capacity, &out->dst)) != CUDA_SUCCESS ||
        (r = find_writable(stream, params->dstActBytes, sizeof(cuuint32_t), &out->size)) != CUDA_SUCCESS)
        return r;
    out->capacity = out->capacity < limit ? out->capacity : limit;
    return CUDA_SUCCESS;
}

/* ---- execution, on the worker ---- */

static char *host_view_or_null(const struct ct_context *context, const struct ct_place *place)
{
    return !place->is_device || ct_copy_host_is_fast(context) ? place->host : NULL;
}

static struct ct_place place_on_host(const void *bytes)
{
    return (struct ct_place){.host = (char *)bytes};
}

static CUresult copy_now(struct ct_stream *copies, const struct ct_place *dst, const struct ct_place *src, size_t bytes)
{
    const struct ct_copy_command command = {.copy = {.dst = *dst, .src = *src, .row_bytes = bytes, .rows = 1, .slices = 1},
                                            .mode = CT_COPY_SYNC};

    return ct_copy_execute(copies, &command);
}

static bool overlaps(const struct operation *op)
{
    return op->src.host < op->dst.host + op->capacity && op->dst.host < op->src.host + op->src_bytes;
}

static CUresult decompress(const struct operation *op, const char *src, char *dst, size_t *out_bytes)
{
    if (ct_decompress(op->format, src, op->src_bytes, dst, op->capacity, out_bytes))
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes are not compressed data of algorithm %d, or more than %zu bytes are the result",
                   op->src_bytes, (int)op->format, op->capacity);
}

/* In the memory itself, where that is possible: a source within the destination is moved away, and without a known size there is a buffer for the
 * result, since the libraries may write beyond it, up to the capacity. */
static CUresult decompress_in_place(const struct operation *op, size_t *out_bytes)
{
    char *src = overlaps(op) ? malloc(op->src_bytes) : op->src.host, *dst = op->has_size ? op->dst.host : malloc(op->capacity);
    CUresult r;

    if (src && src != op->src.host)
        memcpy(src, op->src.host, op->src_bytes);
    r = src && dst ? decompress(op, src, dst, out_bytes)
                   : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory to decompress %zu bytes to at most %zu", op->src_bytes, op->capacity);
    if (r == CUDA_SUCCESS && dst != op->dst.host)
        memcpy(op->dst.host, dst, *out_bytes);
    if (src != op->src.host)
        free(src);
    if (dst != op->dst.host)
        free(dst);
    return r;
}

/* In buffers of the host, which are empty pages until they are used. */
static CUresult decompress_copy(struct ct_stream *copies, const struct operation *op, size_t *out_bytes)
{
    struct ct_place src = place_on_host(malloc(op->src_bytes)), dst = place_on_host(malloc(op->capacity));
    CUresult r = src.host && dst.host
                     ? copy_now(copies, &src, &op->src, op->src_bytes)
                     : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory to decompress %zu bytes to at most %zu", op->src_bytes, op->capacity);

    if (r == CUDA_SUCCESS)
        r = decompress(op, src.host, dst.host, out_bytes);
    if (r == CUDA_SUCCESS)
        r = copy_now(copies, &op->dst, &dst, *out_bytes);
    free(src.host);
    free(dst.host);
    return r;
}

static void run_operation(struct ct_stream *copies_or_null, const struct operation *op)
{
    size_t bytes = 0;
    CUresult r = copies_or_null ? decompress_copy(copies_or_null, op, &bytes) : decompress_in_place(op, &bytes);
    const cuuint32_t size = r == CUDA_SUCCESS ? (cuuint32_t)bytes : 0;
    const struct ct_place size_here = place_on_host(&size);

    if (r != CUDA_SUCCESS)
        ct_log(CT_LOG_WARN, "the stream could not decompress %zu bytes by algorithm %d; 0 is written as the size of the result",
               op->src_bytes, (int)op->format);
    if (copies_or_null)
        copy_now(copies_or_null, &op->size, &size_here, sizeof size);
    else
        __atomic_store_n((cuuint32_t *)op->size.host, size, __ATOMIC_RELEASE); /* after the result, for other threads that poll it */
}

static void run(void *user, CUresult status)
{
    struct ct_decompression *decompression = user;

    for (size_t i = 0; i < decompression->count && status == CUDA_SUCCESS; i++)
        run_operation(decompression->copies, &decompression->operations[i]);
    ct_decompression_destroy(decompression);
}

/* ---- life ---- */

static bool host_reaches(const struct ct_context *context, const struct operation *op)
{
    return host_view_or_null(context, &op->src) && host_view_or_null(context, &op->dst) && host_view_or_null(context, &op->size);
}

CUresult ct_decompression_create(struct ct_stream *stream, const CUmemDecompressParams *operations, size_t count, size_t *out_index,
                                 struct ct_decompression **out)
{
    struct ct_decompression *decompression;
    bool needs_copies = false;
    CUresult r = CUDA_SUCCESS;
    size_t bytes;

    *out_index = SIZE_MAX;
    if (__builtin_mul_overflow(count, sizeof *decompression->operations, &bytes) ||
        !(decompression = calloc(1, sizeof *decompression + bytes)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu decompressions", count);
    decompression->count = count;
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        *out_index = i;
        r = operation_init(stream, &operations[i], &decompression->operations[i]);
        if (r == CUDA_SUCCESS) {
            ct_place_note_write(stream, &decompression->operations[i].dst, decompression->operations[i].capacity);
            ct_place_note_write(stream, &decompression->operations[i].size, sizeof(cuuint32_t));
        }
        needs_copies = needs_copies || (r == CUDA_SUCCESS && !host_reaches(stream->context, &decompression->operations[i]));
    }
    if (r == CUDA_SUCCESS && needs_copies) {
        *out_index = SIZE_MAX;
        r = ct_stream_create_internal(stream->context, &decompression->copies);
    }
    if (r == CUDA_SUCCESS)
        *out = decompression;
    else
        ct_decompression_destroy(decompression);
    return r;
}

void ct_decompression_destroy(struct ct_decompression *decompression)
{
    if (decompression && decompression->copies) {
        ct_stream_mark_destroyed(decompression->copies);
        ct_object_release(&decompression->copies->object);
    }
    free(decompression);
}

CUresult ct_decompression_record(struct ct_stream *stream, struct ct_decompression *const *decompression)
{
    for (size_t i = 0; i < (*decompression)->count; i++) {
        ct_context_note_access(stream->context, (*decompression)->operations[i].src.owner);
        ct_context_note_access(stream->context, (*decompression)->operations[i].dst.owner);
        ct_context_note_access(stream->context, (*decompression)->operations[i].size.owner);
    }
    return ct_stream_run_on_host(stream, run, *decompression);
}
