/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API before CUDA 3.2: memory with 32-bit pointers and sizes (CUdeviceptr_v1), still exported under the plain names.
 *
 * cuda.h has not declared these functions for programs since 3.2; only programs that were built before call them, in contexts of the
 * original cuCtxCreate. Mixing the two kinds gives INVALID_CONTEXT, as the manual says of that error (cuCtxGetApiVersion returns the
 * kind). In an old context they work for memory below 4 GiB. Allocations of a 64-bit process rarely lie there: then cuMemAlloc and
 * similar functions return OUT_OF_MEMORY and log the reason, rather than a truncated address. Everything else is as in the current
 * functions that each of them calls. */
#include "entry_points.h"

#include "core/device/context.h"
#include "core/base/log.h"

#include <limits.h>

#define CT_CHANNEL "memory"
#define OLD_API_VERSION 3010

/* Checks that the current context is one of the old API. */
static CUresult check_old(void)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (context->api_version != OLD_API_VERSION)
        r = ct_fail(CUDA_ERROR_INVALID_CONTEXT, "a function with 32-bit pointers in a context with 64-bit pointers (cuCtxGetApiVersion)");
    ct_context_release(context);
    return r;
}

static unsigned clamp(size_t value)
{
    return value > UINT_MAX ? UINT_MAX : (unsigned)value;
}

/* Converts an address to 32 bits. OUT_OF_MEMORY: it does not fit. */
static CUresult narrow(CUdeviceptr address, CUdeviceptr_v1 *out)
{
    if (address > UINT_MAX)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory below 4 GiB for a function with 32-bit pointers");
    *out = (CUdeviceptr_v1)address;
    return CUDA_SUCCESS;
}

/* cuModuleGetGlobal */
CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule hmod, const char *name)
{
    CUdeviceptr address;
    size_t size;
    CUresult r = check_old();

    if (r != CUDA_SUCCESS)
        return r;
    r = cuModuleGetGlobal_v2(&address, &size, hmod, name);
    if (r == CUDA_SUCCESS && dptr)
        r = narrow(address, dptr);
    if (r == CUDA_SUCCESS && bytes)
        *bytes = clamp(size);
    return r;
}

/* cuMemGetInfo. The sizes are clamped to the range of the results. */
CUresult CUDAAPI cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    size_t free_bytes, total_bytes;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuMemGetInfo_v2(&free_bytes, &total_bytes);
    if (r != CUDA_SUCCESS)
        return r;
    if (free)
        *free = clamp(free_bytes);
    if (total)
        *total = clamp(total_bytes);
    return CUDA_SUCCESS;
}

/* Frees a new allocation if its address does not fit into 32 bits. */
static CUresult keep_or_free(CUdeviceptr address, CUdeviceptr_v1 *out)
{
    CUresult r = narrow(address, out);

    if (r != CUDA_SUCCESS)
        cuMemFree_v2(address);
    return r;
}

/* cuMemAlloc */
CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
    CUdeviceptr address;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuMemAlloc_v2(dptr ? &address : NULL, bytesize);
    return r == CUDA_SUCCESS ? keep_or_free(address, dptr) : r;
}

/* cuMemAllocPitch */
CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes, unsigned int Height,
                                 unsigned int ElementSizeBytes)
{
    CUdeviceptr address;
    size_t pitch;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuMemAllocPitch_v2(dptr ? &address : NULL, pPitch ? &pitch : NULL, WidthInBytes, Height, ElementSizeBytes);
    if (r == CUDA_SUCCESS)
        r = keep_or_free(address, dptr);
    if (r == CUDA_SUCCESS)
        *pPitch = clamp(pitch);
    return r;
}

/* cuMemFree */
CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 dptr)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemFree_v2(dptr) : r;
}

/* cuMemGetAddressRange. An allocation that contains an address below 4 GiB begins there, too. */
CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr)
{
    CUdeviceptr base;
    size_t size;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuMemGetAddressRange_v2(&base, &size, dptr);
    if (r != CUDA_SUCCESS)
        return r;
    if (pbase)
        *pbase = (CUdeviceptr_v1)base;
    if (psize)
        *psize = clamp(size);
    return CUDA_SUCCESS;
}

/* cuMemHostGetDevicePointer */
CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags)
{
    CUdeviceptr address;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuMemHostGetDevicePointer_v2(pdptr ? &address : NULL, p, Flags);
    return r == CUDA_SUCCESS ? narrow(address, pdptr) : r;
}

/* cuMemcpyHtoD */
CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount) : r;
}

/* cuMemcpyDtoH */
CUresult CUDAAPI cuMemcpyDtoH(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount) : r;
}

/* cuMemcpyDtoD */
CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount) : r;
}

/* cuMemcpyHtoDAsync */
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount, CUstream hStream)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, hStream) : r;
}

/* cuMemcpyDtoHAsync */
CUresult CUDAAPI cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, hStream) : r;
}

/* cuMemcpyDtoDAsync */
CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream) : r;
}

/* Converts an old copy to the current struct, in *out. INVALID_VALUE: old is NULL. */
static CUresult widen_2d(const CUDA_MEMCPY2D_v1 *old, CUDA_MEMCPY2D *out)
{
    CUresult r = check_old();

    if (r != CUDA_SUCCESS)
        return r;
    if (!old)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pCopy is NULL");
    *out = (CUDA_MEMCPY2D){
        .srcXInBytes = old->srcXInBytes,
        .srcY = old->srcY,
        .srcMemoryType = old->srcMemoryType,
        .srcHost = old->srcHost,
        .srcDevice = old->srcDevice,
        .srcArray = old->srcArray,
        .srcPitch = old->srcPitch,
        .dstXInBytes = old->dstXInBytes,
        .dstY = old->dstY,
        .dstMemoryType = old->dstMemoryType,
        .dstHost = old->dstHost,
        .dstDevice = old->dstDevice,
        .dstArray = old->dstArray,
        .dstPitch = old->dstPitch,
        .WidthInBytes = old->WidthInBytes,
        .Height = old->Height,
    };
    return CUDA_SUCCESS;
}

/* Converts an old copy to the current struct, in *out. INVALID_VALUE: old is NULL. */
static CUresult widen_3d(const CUDA_MEMCPY3D_v1 *old, CUDA_MEMCPY3D *out)
{
    CUresult r = check_old();

    if (r != CUDA_SUCCESS)
        return r;
    if (!old)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pCopy is NULL");
    *out = (CUDA_MEMCPY3D){
        .srcXInBytes = old->srcXInBytes,
        .srcY = old->srcY,
        .srcZ = old->srcZ,
        .srcLOD = old->srcLOD,
        .srcMemoryType = old->srcMemoryType,
        .srcHost = old->srcHost,
        .srcDevice = old->srcDevice,
        .srcArray = old->srcArray,
        .srcPitch = old->srcPitch,
        .srcHeight = old->srcHeight,
        .dstXInBytes = old->dstXInBytes,
        .dstY = old->dstY,
        .dstZ = old->dstZ,
        .dstLOD = old->dstLOD,
        .dstMemoryType = old->dstMemoryType,
        .dstHost = old->dstHost,
        .dstDevice = old->dstDevice,
        .dstArray = old->dstArray,
        .dstPitch = old->dstPitch,
        .dstHeight = old->dstHeight,
        .WidthInBytes = old->WidthInBytes,
        .Height = old->Height,
        .Depth = old->Depth,
    };
    return CUDA_SUCCESS;
}

/* cuMemcpy2D */
CUresult CUDAAPI cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy)
{
    CUDA_MEMCPY2D copy;
    CUresult r = widen_2d(pCopy, &copy);

    return r == CUDA_SUCCESS ? cuMemcpy2D_v2(&copy) : r;
}

/* cuMemcpy2DUnaligned */
CUresult CUDAAPI cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy)
{
    CUDA_MEMCPY2D copy;
    CUresult r = widen_2d(pCopy, &copy);

    return r == CUDA_SUCCESS ? cuMemcpy2DUnaligned_v2(&copy) : r;
}

/* cuMemcpy3D */
CUresult CUDAAPI cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy)
{
    CUDA_MEMCPY3D copy;
    CUresult r = widen_3d(pCopy, &copy);

    return r == CUDA_SUCCESS ? cuMemcpy3D_v2(&copy) : r;
}

/* cuMemcpy2DAsync */
CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream)
{
    CUDA_MEMCPY2D copy;
    CUresult r = widen_2d(pCopy, &copy);

    return r == CUDA_SUCCESS ? cuMemcpy2DAsync_v2(&copy, hStream) : r;
}

/* cuMemcpy3DAsync */
CUresult CUDAAPI cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream)
{
    CUDA_MEMCPY3D copy;
    CUresult r = widen_3d(pCopy, &copy);

    return r == CUDA_SUCCESS ? cuMemcpy3DAsync_v2(&copy, hStream) : r;
}

/* cuArrayCreate */
CUresult CUDAAPI cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
    CUDA_ARRAY_DESCRIPTOR desc;
    CUresult r = check_old();

    if (r != CUDA_SUCCESS || !pAllocateArray)
        return r == CUDA_SUCCESS ? cuArrayCreate_v2(pHandle, NULL) : r;
    desc = (CUDA_ARRAY_DESCRIPTOR){pAllocateArray->Width, pAllocateArray->Height, pAllocateArray->Format, pAllocateArray->NumChannels};
    return cuArrayCreate_v2(pHandle, &desc);
}

/* cuTexRefSetAddress */
CUresult CUDAAPI cuTexRefSetAddress(unsigned int *ByteOffset, CUtexref hTexRef, CUdeviceptr_v1 dptr, unsigned int bytes)
{
    size_t offset;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuTexRefSetAddress_v2(ByteOffset ? &offset : NULL, hTexRef, dptr, bytes);
    if (r == CUDA_SUCCESS && ByteOffset)
        *ByteOffset = (unsigned)offset; /* below the alignment of textures */
    return r;
}

/* cuTexRefSetAddress2D */
CUresult CUDAAPI cuTexRefSetAddress2D(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR_v1 *desc, CUdeviceptr_v1 dptr, unsigned int Pitch)
{
    CUDA_ARRAY_DESCRIPTOR wide;
    CUresult r = check_old();

    if (r != CUDA_SUCCESS || !desc)
        return r == CUDA_SUCCESS ? cuTexRefSetAddress2D_v3(hTexRef, NULL, dptr, Pitch) : r;
    wide = (CUDA_ARRAY_DESCRIPTOR){desc->Width, desc->Height, desc->Format, desc->NumChannels};
    return cuTexRefSetAddress2D_v3(hTexRef, &wide, dptr, Pitch);
}

/* cuTexRefGetAddress */
CUresult CUDAAPI cuTexRefGetAddress(CUdeviceptr_v1 *pdptr, CUtexref hTexRef)
{
    CUdeviceptr address;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuTexRefGetAddress_v2(pdptr ? &address : NULL, hTexRef);
    return r == CUDA_SUCCESS ? narrow(address, pdptr) : r;
}

/* cuArrayGetDescriptor */
CUresult CUDAAPI cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY_DESCRIPTOR desc;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuArrayGetDescriptor_v2(pArrayDescriptor ? &desc : NULL, hArray);
    if (r == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned)desc.Width, (unsigned)desc.Height, desc.Format, desc.NumChannels};
    return r;
}

/* cuArray3DCreate */
CUresult CUDAAPI cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v1 *old = pAllocateArray;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult r = check_old();

    if (r != CUDA_SUCCESS || !old)
        return r == CUDA_SUCCESS ? cuArray3DCreate_v2(pHandle, NULL) : r;
    desc = (CUDA_ARRAY3D_DESCRIPTOR){old->Width, old->Height, old->Depth, old->Format, old->NumChannels, old->Flags};
    return cuArray3DCreate_v2(pHandle, &desc);
}

/* cuArray3DGetDescriptor */
CUresult CUDAAPI cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuArray3DGetDescriptor_v2(pArrayDescriptor ? &desc : NULL, hArray);
    if (r == CUDA_SUCCESS)
        *pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)desc.Width, (unsigned)desc.Height, (unsigned)desc.Depth,
                                                         desc.Format,          desc.NumChannels,      desc.Flags};
    return r;
}

/* cuMemcpyDtoA */
CUresult CUDAAPI cuMemcpyDtoA(CUarray dstArray, unsigned int dstOffset, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyDtoA_v2(dstArray, dstOffset, srcDevice, ByteCount) : r;
}

/* cuMemcpyAtoD */
CUresult CUDAAPI cuMemcpyAtoD(CUdeviceptr_v1 dstDevice, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyAtoD_v2(dstDevice, srcArray, srcOffset, ByteCount) : r;
}

/* cuMemcpyHtoA */
CUresult CUDAAPI cuMemcpyHtoA(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int ByteCount)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyHtoA_v2(dstArray, dstOffset, srcHost, ByteCount) : r;
}

/* cuMemcpyAtoH */
CUresult CUDAAPI cuMemcpyAtoH(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyAtoH_v2(dstHost, srcArray, srcOffset, ByteCount) : r;
}

/* cuMemcpyAtoA */
CUresult CUDAAPI cuMemcpyAtoA(CUarray dstArray, unsigned int dstOffset, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyAtoA_v2(dstArray, dstOffset, srcArray, srcOffset, ByteCount) : r;
}

/* cuMemcpyHtoAAsync */
CUresult CUDAAPI cuMemcpyHtoAAsync(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int ByteCount, CUstream hStream)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyHtoAAsync_v2(dstArray, dstOffset, srcHost, ByteCount, hStream) : r;
}

/* cuMemcpyAtoHAsync */
CUresult CUDAAPI cuMemcpyAtoHAsync(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount, CUstream hStream)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemcpyAtoHAsync_v2(dstHost, srcArray, srcOffset, ByteCount, hStream) : r;
}

/* cuMemsetD8 */
CUresult CUDAAPI cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemsetD8_v2(dstDevice, uc, N) : r;
}

/* cuMemsetD16 */
CUresult CUDAAPI cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned int N)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemsetD16_v2(dstDevice, us, N) : r;
}

/* cuMemsetD32 */
CUresult CUDAAPI cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemsetD32_v2(dstDevice, ui, N) : r;
}

/* cuMemsetD2D8 */
CUresult CUDAAPI cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned char uc, unsigned int Width, unsigned int Height)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemsetD2D8_v2(dstDevice, dstPitch, uc, Width, Height) : r;
}

/* cuMemsetD2D16 */
CUresult CUDAAPI cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned short us, unsigned int Width, unsigned int Height)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemsetD2D16_v2(dstDevice, dstPitch, us, Width, Height) : r;
}

/* cuMemsetD2D32 */
CUresult CUDAAPI cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned int ui, unsigned int Width, unsigned int Height)
{
    CUresult r = check_old();

    return r == CUDA_SUCCESS ? cuMemsetD2D32_v2(dstDevice, dstPitch, ui, Width, Height) : r;
}

/* ---- graphics resources ---- */

/* Converts the results of a function that maps a buffer. On OUT_OF_MEMORY the buffer remains mapped. */
static CUresult narrow_mapping(CUdeviceptr address, size_t bytes, CUdeviceptr_v1 *out_address, unsigned *out_bytes)
{
    CUresult r = out_address ? narrow(address, out_address) : CUDA_SUCCESS;

    if (r == CUDA_SUCCESS && out_bytes)
        *out_bytes = clamp(bytes);
    return r;
}

/* cuGraphicsResourceGetMappedPointer */
CUresult CUDAAPI cuGraphicsResourceGetMappedPointer(CUdeviceptr_v1 *pDevPtr, unsigned int *pSize, CUgraphicsResource resource)
{
    CUdeviceptr address;
    size_t size;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuGraphicsResourceGetMappedPointer_v2(&address, &size, resource);
    return r == CUDA_SUCCESS ? narrow_mapping(address, size, pDevPtr, pSize) : r;
}

/* cuGLMapBufferObjectAsync */
CUresult CUDAAPI cuGLMapBufferObjectAsync(CUdeviceptr_v1 *dptr, unsigned int *size, unsigned int buffer, CUstream hStream)
{
    CUdeviceptr address;
    size_t bytes;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = cuGLMapBufferObjectAsync_v2(&address, &bytes, buffer, hStream);
    return r == CUDA_SUCCESS ? narrow_mapping(address, bytes, dptr, size) : r;
}

/* cuGLMapBufferObject */
CUresult CUDAAPI cuGLMapBufferObject(CUdeviceptr_v1 *dptr, unsigned int *size, unsigned int buffer)
{
    CUdeviceptr address;
    size_t bytes;
    CUresult r = check_old();

    if (r == CUDA_SUCCESS)
        r = ct_cuGLMapBufferObject_v2(&address, &bytes, buffer, NULL);
    return r == CUDA_SUCCESS ? narrow_mapping(address, bytes, dptr, size) : r;
}
