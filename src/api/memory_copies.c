/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: copies.
 * Every function: NOT_INITIALIZED; INVALID_CONTEXT and CONTEXT_IS_DESTROYED according to the current context; INVALID_HANDLE if the
 * handle is not that of a stream, and the error of a kernel that failed. INVALID_VALUE: a null pointer, a device pointer outside of
 * every allocation, or a range that exceeds its allocation. Copies of 0 bytes succeed. ct_<symbol> implements <symbol> and
 * <symbol>_ptds: `stream` is the default stream that applies. */
#include "entry_points.h"

#include "core/backing/address_uses.h"
#include "core/command/command.h"
#include "core/command/copy_call.h"
#include "core/base/log.h"
#include "core/graph/capture_calls.h"

#define CT_CHANNEL "copy"

/* ---- one dimension ---- */

struct linear {
    enum ct_pointer_role dst_role, src_role;
    uint64_t dst, src, bytes;
};

static struct ct_copy_side side_of(enum ct_pointer_role role, uint64_t address)
{
    static const CUmemorytype types[] = {
        [CT_POINTER_UNIFIED] = CU_MEMORYTYPE_UNIFIED, [CT_POINTER_HOST] = CU_MEMORYTYPE_HOST, [CT_POINTER_DEVICE] = CU_MEMORYTYPE_DEVICE};

    return (struct ct_copy_side){.type = types[role], .device = address, .host = (const void *)(uintptr_t)address};
}

static CUresult capture_linear(const struct linear *c, struct ct_stream *stream, enum ct_copy_mode mode)
{
    const struct ct_copy_request request = {side_of(c->dst_role, c->dst), side_of(c->src_role, c->src), {c->bytes, 1, 1}};

    return c->bytes ? ct_capture_copy(stream, &request, mode) : CUDA_SUCCESS;
}

static CUresult copy_linear(const struct linear *c, CUstream handle, enum ct_copy_mode mode)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_command command;
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(handle, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (ct_stream_is_captured(stream)) {
        r = capture_linear(c, stream, mode);
    } else {
        command.kind = CT_COMMAND_COPY;
        r = ct_copy_command_linear(c->dst_role, c->dst, c->src_role, c->src, c->bytes, mode, &command.copy);
        if (r == CUDA_SUCCESS)
            r = ct_stream_enqueue(stream, &command);
    }
    ct_address_uses_end(uses);
    ct_stream_release(stream);
    return r;
}

/* cuMemcpy. Either pointer may be a host pointer: the map of addresses says what it is. */
CUresult ct_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream stream)
{
    return copy_linear(&(struct linear){CT_POINTER_UNIFIED, CT_POINTER_UNIFIED, dst, src, ByteCount}, stream, CT_COPY_SYNC);
}

/* cuMemcpyHtoD_v2 */
CUresult ct_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream stream)
{
    return copy_linear(&(struct linear){CT_POINTER_DEVICE, CT_POINTER_HOST, dstDevice, (uintptr_t)srcHost, ByteCount}, stream,
                       CT_COPY_SYNC);
}

/* cuMemcpyDtoH_v2 */
CUresult ct_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream stream)
{
    return copy_linear(&(struct linear){CT_POINTER_HOST, CT_POINTER_DEVICE, (uintptr_t)dstHost, srcDevice, ByteCount}, stream,
                       CT_COPY_SYNC);
}

/* cuMemcpyDtoD_v2. Does not wait for the copy. */
CUresult ct_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream stream)
{
    return copy_linear(&(struct linear){CT_POINTER_DEVICE, CT_POINTER_DEVICE, dstDevice, srcDevice, ByteCount}, stream, CT_COPY_SYNC);
}

/* cuMemcpyAsync */
CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_linear(&(struct linear){CT_POINTER_UNIFIED, CT_POINTER_UNIFIED, dst, src, ByteCount}, hStream, CT_COPY_ASYNC);
}

/* cuMemcpyHtoDAsync_v2. Pageable memory has been read when the function returns. */
CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
    return copy_linear(&(struct linear){CT_POINTER_DEVICE, CT_POINTER_HOST, dstDevice, (uintptr_t)srcHost, ByteCount}, hStream,
                       CT_COPY_ASYNC);
}

/* cuMemcpyDtoHAsync_v2. Pageable memory has been written when the function returns. */
CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    return copy_linear(&(struct linear){CT_POINTER_HOST, CT_POINTER_DEVICE, (uintptr_t)dstHost, srcDevice, ByteCount}, hStream,
                       CT_COPY_ASYNC);
}

/* cuMemcpyDtoDAsync_v2 */
CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    return copy_linear(&(struct linear){CT_POINTER_DEVICE, CT_POINTER_DEVICE, dstDevice, srcDevice, ByteCount}, hStream, CT_COPY_ASYNC);
}

/* ---- between contexts ---- */

/* Checks that a context is alive; NULL is the current one. The map of addresses says where the memory is. */
static CUresult check_context(CUcontext handle)
{
    struct ct_context *context;
    CUresult r = handle ? ct_context_lookup(handle, &context) : ct_context_current(&context);

    if (r == CUDA_SUCCESS)
        ct_context_release(context);
    return r;
}

static CUresult check_contexts(CUcontext dst, CUcontext src)
{
    CUresult r = check_context(dst);

    return r == CUDA_SUCCESS ? check_context(src) : r;
}

static CUresult copy_peer(const struct linear *c, CUcontext dst, CUcontext src, CUstream stream, enum ct_copy_mode mode)
{
    CUresult r = check_contexts(dst, src);

    return r == CUDA_SUCCESS ? copy_linear(c, stream, mode) : r;
}

/* cuMemcpyPeer. A context of NULL is the current one. INVALID_CONTEXT: a handle is not that of a context. */
CUresult ct_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
                         CUstream stream)
{
    return copy_peer(&(struct linear){CT_POINTER_DEVICE, CT_POINTER_DEVICE, dstDevice, srcDevice, ByteCount}, dstContext, srcContext,
                     stream, CT_COPY_SYNC);
}

/* NVIDIA's driver captures no copies between contexts. */
static CUresult check_captured(CUstream handle, const char *call)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup_uncaptured(handle, call, &stream);

    if (r == CUDA_SUCCESS)
        ct_stream_release(stream);
    return r;
}

/* cuMemcpyPeerAsync. A copy between two devices is complete when the function returns. STREAM_CAPTURE_UNSUPPORTED: the stream is captured. */
CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                                   size_t ByteCount, CUstream hStream)
{
    CUresult r = check_captured(hStream, "cuMemcpyPeerAsync");

    if (r != CUDA_SUCCESS)
        return r;
    return copy_peer(&(struct linear){CT_POINTER_DEVICE, CT_POINTER_DEVICE, dstDevice, srcDevice, ByteCount}, dstContext, srcContext,
                     hStream, CT_COPY_ASYNC);
}

/* ---- two and three dimensions ---- */

static CUresult copy_request(const struct ct_copy_request *request, CUstream handle, enum ct_copy_mode mode)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(handle, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (!ct_copy_request_is_empty(request))
        r = ct_copy_call(stream, request, mode);
    ct_stream_release(stream);
    return r;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, enum ct_copy_mode mode)
{
    if (!p)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pCopy is NULL");
    return copy_request(
        &(struct ct_copy_request){
            .dst = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes, p->dstY, 0, p->dstPitch, 0},
            .src = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes, p->srcY, 0, p->srcPitch, 0},
            .extent = {p->WidthInBytes, p->Height, 1},
        },
        stream, mode);
}

/* cuMemcpy2D_v2. Pitches are in bytes; 0 means rows without gaps. INVALID_VALUE also: a pitch less than a row; widths and positions in
 * arrays that are not whole elements. INVALID_HANDLE: the array does not exist. */
CUresult ct_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy, CUstream stream)
{
    return copy_2d(pCopy, stream, CT_COPY_SYNC);
}

/* cuMemcpy2DUnaligned_v2. The same, since cuMemcpy2D refuses no pitch for its alignment. */
CUresult ct_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy, CUstream stream)
{
    return copy_2d(pCopy, stream, CT_COPY_SYNC);
}

/* cuMemcpy2DAsync_v2 */
CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d(pCopy, hStream, CT_COPY_ASYNC);
}

static CUresult copy_memcpy3d(const CUDA_MEMCPY3D *p, CUstream stream, enum ct_copy_mode mode)
{
    struct ct_copy_request request;
    CUresult r = ct_copy_request_init(p, &request);

    return r == CUDA_SUCCESS ? copy_request(&request, stream, mode) : r;
}

/* cuMemcpy3D_v2. As cuMemcpy2D_v2; the distance of slices is pitch * height bytes. The slices of arrays are their layers or faces. */
CUresult ct_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy, CUstream stream)
{
    return copy_memcpy3d(pCopy, stream, CT_COPY_SYNC);
}

/* cuMemcpy3DAsync_v2 */
CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_memcpy3d(pCopy, hStream, CT_COPY_ASYNC);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, enum ct_copy_mode mode)
{
    CUresult r;

    if (!p)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pCopy is NULL");
    r = check_contexts(p->dstContext, p->srcContext);
    if (r != CUDA_SUCCESS)
        return r;
    return copy_request(
        &(struct ct_copy_request){
            .dst = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch, p->dstHeight},
            .src = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch, p->srcHeight},
            .extent = {p->WidthInBytes, p->Height, p->Depth},
        },
        stream, mode);
}

/* cuMemcpy3DPeer. A context of NULL is the current one. INVALID_CONTEXT: a handle is not that of a context. */
CUresult ct_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy, CUstream stream)
{
    return copy_3d_peer(pCopy, stream, CT_COPY_SYNC);
}

/* cuMemcpy3DPeerAsync. A copy between two devices is complete when the function returns. STREAM_CAPTURE_UNSUPPORTED: the stream is captured. */
CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    CUresult r = check_captured(hStream, "cuMemcpy3DPeerAsync");

    return r == CUDA_SUCCESS ? copy_3d_peer(pCopy, hStream, CT_COPY_ASYNC) : r;
}

/* ---- rows of arrays ---- */

/* A range of bytes in an array: CUDA has these functions for arrays of one dimension. */
static struct ct_copy_side row_of(CUarray array, uint64_t offset)
{
    return (struct ct_copy_side){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x_bytes = offset};
}

static struct ct_copy_side host_row(const void *host)
{
    return (struct ct_copy_side){.type = CU_MEMORYTYPE_HOST, .host = host};
}

static struct ct_copy_side device_row(CUdeviceptr device)
{
    return (struct ct_copy_side){.type = CU_MEMORYTYPE_DEVICE, .device = device};
}

static CUresult copy_row(struct ct_copy_side dst, struct ct_copy_side src, size_t bytes, CUstream stream, enum ct_copy_mode mode)
{
    return copy_request(&(struct ct_copy_request){dst, src, {bytes, 1, 1}}, stream, mode);
}

/* cuMemcpyDtoA_v2. Offsets and counts are in bytes, and whole elements. Does not wait for the copy. */
CUresult ct_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount, CUstream stream)
{
    return copy_row(row_of(dstArray, dstOffset), device_row(srcDevice), ByteCount, stream, CT_COPY_SYNC);
}

/* cuMemcpyAtoD_v2. Does not wait for the copy. */
CUresult ct_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream stream)
{
    return copy_row(device_row(dstDevice), row_of(srcArray, srcOffset), ByteCount, stream, CT_COPY_SYNC);
}

/* cuMemcpyHtoA_v2 */
CUresult ct_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream stream)
{
    return copy_row(row_of(dstArray, dstOffset), host_row(srcHost), ByteCount, stream, CT_COPY_SYNC);
}

/* cuMemcpyAtoH_v2 */
CUresult ct_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream stream)
{
    return copy_row(host_row(dstHost), row_of(srcArray, srcOffset), ByteCount, stream, CT_COPY_SYNC);
}

/* cuMemcpyAtoA_v2. Does not wait for the copy. */
CUresult ct_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream stream)
{
    return copy_row(row_of(dstArray, dstOffset), row_of(srcArray, srcOffset), ByteCount, stream, CT_COPY_SYNC);
}

/* cuMemcpyHtoAAsync_v2. Pageable memory has been read when the function returns. */
CUresult CUDAAPI cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream hStream)
{
    return copy_row(row_of(dstArray, dstOffset), host_row(srcHost), ByteCount, hStream, CT_COPY_ASYNC);
}

/* cuMemcpyAtoHAsync_v2. Pageable memory has been written when the function returns. */
CUresult CUDAAPI cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
    return copy_row(host_row(dstHost), row_of(srcArray, srcOffset), ByteCount, hStream, CT_COPY_ASYNC);
}
