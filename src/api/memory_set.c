/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: memset. N and Width are in elements; dstPitch is in bytes.
 * Every function: NOT_INITIALIZED; INVALID_CONTEXT and CONTEXT_IS_DESTROYED according to the current context; INVALID_HANDLE if the
 * handle is not that of a stream. INVALID_VALUE: the range is not inside of an allocation; the address or the pitch is not a multiple of
 * the element size. An empty range succeeds. The functions do not wait, unless the memory is page-locked host memory. ct_<symbol>
 * implements <symbol> and <symbol>_ptds. */
#include "entry_points.h"

#include "core/command/copy_call.h"

struct target {
    CUdeviceptr address;
    size_t pitch, width, height;
    unsigned element_bytes;
};

static CUresult set(const struct target *t, unsigned value, CUstream handle, enum ct_copy_mode mode)
{
    const struct ct_fill_request request = {t->address, t->pitch, t->width, t->height, t->element_bytes, value, mode};
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(handle, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_fill_call(stream, &request);
    ct_stream_release(stream);
    return r;
}

/* cuMemsetD8_v2 */
CUresult ct_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream stream)
{
    return set(&(struct target){dstDevice, 0, N, 1, 1}, uc, stream, CT_COPY_SYNC);
}

/* cuMemsetD16_v2 */
CUresult ct_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream stream)
{
    return set(&(struct target){dstDevice, 0, N, 1, 2}, us, stream, CT_COPY_SYNC);
}

/* cuMemsetD32_v2 */
CUresult ct_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream stream)
{
    return set(&(struct target){dstDevice, 0, N, 1, 4}, ui, stream, CT_COPY_SYNC);
}

/* cuMemsetD2D8_v2 */
CUresult ct_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height, CUstream stream)
{
    return set(&(struct target){dstDevice, dstPitch, Width, Height, 1}, uc, stream, CT_COPY_SYNC);
}

/* cuMemsetD2D16_v2 */
CUresult ct_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height, CUstream stream)
{
    return set(&(struct target){dstDevice, dstPitch, Width, Height, 2}, us, stream, CT_COPY_SYNC);
}

/* cuMemsetD2D32_v2 */
CUresult ct_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height, CUstream stream)
{
    return set(&(struct target){dstDevice, dstPitch, Width, Height, 4}, ui, stream, CT_COPY_SYNC);
}

/* cuMemsetD8Async */
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return set(&(struct target){dstDevice, 0, N, 1, 1}, uc, hStream, CT_COPY_ASYNC);
}

/* cuMemsetD16Async */
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return set(&(struct target){dstDevice, 0, N, 1, 2}, us, hStream, CT_COPY_ASYNC);
}

/* cuMemsetD32Async */
CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return set(&(struct target){dstDevice, 0, N, 1, 4}, ui, hStream, CT_COPY_ASYNC);
}

/* cuMemsetD2D8Async */
CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height, CUstream hStream)
{
    return set(&(struct target){dstDevice, dstPitch, Width, Height, 1}, uc, hStream, CT_COPY_ASYNC);
}

/* cuMemsetD2D16Async */
CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                                    CUstream hStream)
{
    return set(&(struct target){dstDevice, dstPitch, Width, Height, 2}, us, hStream, CT_COPY_ASYNC);
}

/* cuMemsetD2D32Async */
CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height, CUstream hStream)
{
    return set(&(struct target){dstDevice, dstPitch, Width, Height, 4}, ui, hStream, CT_COPY_ASYNC);
}
