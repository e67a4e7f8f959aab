/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: decompression. */
#include "entry_points.h"

#include "core/backing/address_uses.h"
#include "core/base/log.h"
#include "core/command/command.h"
#include "core/graph/capture_state.h"

#define CT_CHANNEL "memory"

static CUresult enqueue(struct ct_stream *stream, const CUmemDecompressParams *operations, size_t count, size_t *out_index)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_command command = {.kind = CT_COMMAND_DECOMPRESSION};
    CUresult r = ct_decompression_create(stream, operations, count, out_index, &command.decompression);

    if (r == CUDA_SUCCESS) {
        *out_index = SIZE_MAX;
        r = ct_stream_enqueue(stream, &command);
        if (r != CUDA_SUCCESS)
            ct_decompression_destroy(command.decompression);
    }
    ct_address_uses_end(uses);
    return r;
}

/* cuMemBatchDecompressAsync, of CUDA 12.6. Each operation decompresses srcNumBytes bytes of raw DEFLATE, or of a block of LZ4 or Snappy, and writes
 * the size of the result to *dstActBytes; core/copy/decompression.c states what damaged data do. All operations are validated before the batch is
 * enqueued. flags is 0. Any memory that the device reaches is accepted, not only that of the allocators that the manual names. *errorIndex, if
 * errorIndex is not NULL, receives the operation at fault, or SIZE_MAX. NOT_INITIALIZED; INVALID_CONTEXT and CONTEXT_IS_DESTROYED according to the
 * current context; INVALID_HANDLE: no such stream; the error of a kernel that failed. INVALID_VALUE and NOT_SUPPORTED: as ct_decompression_create;
 * also flags, no operations, an array that is NULL. STREAM_CAPTURE_UNSUPPORTED: no type of graph node decompresses. */
CUresult CUDAAPI cuMemBatchDecompressAsync(CUmemDecompressParams *paramsArray, size_t count, unsigned int flags, size_t *errorIndex,
                                           CUstream stream)
{
    struct ct_stream *found;
    size_t index = SIZE_MAX;
    CUresult r = ct_stream_lookup_uncaptured(stream, "decompression", &found);

    if (r == CUDA_SUCCESS) {
        if (!paramsArray || count == 0 || flags)
            r = ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu decompressions at %p, flags 0x%x", count, (void *)paramsArray, flags);
        else
            r = enqueue(found, paramsArray, count, &index);
        ct_stream_release(found);
    }
    if (r != CUDA_SUCCESS && errorIndex)
        *errorIndex = index;
    return r;
}
