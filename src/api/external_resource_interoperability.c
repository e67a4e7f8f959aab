/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: External Resource Interoperability: memory and semaphores of other APIs, such as Vulkan, and of other processes.
 * Every function: NOT_INITIALIZED, INVALID_HANDLE if a handle is not that of a live object, and the error of a kernel that failed in its
 * context. */
#include "entry_points.h"

#include "core/command/semaphore_calls.h"
#include "core/graph/capture_calls.h"
#include "core/share/external_memory.h"
#include "core/share/external_semaphore.h"
#include "core/base/log.h"

#define CT_CHANNEL "external"

/* cuImportExternalMemory. Imports memory of the current context's device from a file descriptor, which is opaque or (if the device
 * supports it) a dma-buf. The driver owns the descriptor after success, and the caller after a failure. Flags:
 * CUDA_EXTERNAL_MEMORY_DEDICATED; size: of the whole memory in bytes. INVALID_VALUE: a null pointer, size 0, unknown flags or type;
 * OPERATING_SYSTEM: the descriptor refers to something else; NOT_SUPPORTED: types that the device does not import, and those of Windows. */
CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *extMem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (extMem_out && memHandleDesc)
        r = ct_external_memory_import(context, memHandleDesc, extMem_out);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "extMem_out %p, memHandleDesc %p", (void *)extMem_out, (const void *)memHandleDesc);
    ct_context_release(context);
    return r;
}

/* cuExternalMemoryGetMappedBuffer. Maps bytes [offset, offset + size) of the memory as device memory of the context that imported it;
 * the mapping is freed with cuMemFree. Buffers may overlap; each has its own address. INVALID_VALUE: a null pointer, nonzero flags, size
 * 0, or the range exceeds the memory. */
CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc)
{
    if (!devPtr || !bufferDesc)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "devPtr %p, bufferDesc %p", (void *)devPtr, (const void *)bufferDesc);
    return ct_external_memory_map_buffer(extMem, bufferDesc, devPtr);
}

/* cuExternalMemoryGetMappedMipmappedArray. Maps an image that another API bound to the memory at `offset`, with all its levels; the
 * array is destroyed with cuMipmappedArrayDestroy. The descriptor must describe the image as it was created: format, extents,
 * CUDA_ARRAY3D_SURFACE_LDST if it has storage usage, CUDA_ARRAY3D_COLOR_ATTACHMENT if it is a render target; its layout must be
 * VK_IMAGE_LAYOUT_GENERAL. INVALID_VALUE: a null pointer, a descriptor that cuMipmappedArrayCreate refuses, too many levels, a range
 * that exceeds the memory, or an offset that is not aligned for images; NOT_SUPPORTED: the device does not share such images, or the
 * memory is a dma-buf. */
CUresult CUDAAPI cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
                                                         const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc)
{
    CUresult r = ct_external_memory_check(extMem);

    if (r != CUDA_SUCCESS)
        return r;
    if (!mipmap || !mipmapDesc)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "mipmap %p, mipmapDesc %p", (void *)mipmap, (const void *)mipmapDesc);
    return ct_external_memory_map_array(extMem, mipmapDesc, mipmap);
}

/* cuDestroyExternalMemory. Mapped buffers stay valid until they are freed. */
CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory extMem)
{
    return ct_external_memory_destroy(extMem);
}

/* cuImportExternalSemaphore. Imports a binary or a timeline semaphore from an opaque file descriptor, which the driver owns after
 * success. Flags: 0. INVALID_VALUE: a null pointer, nonzero flags, unknown type; OPERATING_SYSTEM: the descriptor refers to something
 * else; NOT_SUPPORTED: types that the device does not import (lavapipe imports none). */
CUresult CUDAAPI cuImportExternalSemaphore(CUexternalSemaphore *extSem_out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (extSem_out && semHandleDesc)
        r = ct_external_semaphore_import(context, semHandleDesc, extSem_out);
    else
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "extSem_out %p, semHandleDesc %p", (void *)extSem_out, (const void *)semHandleDesc);
    ct_context_release(context);
    return r;
}

/* cuDestroyExternalSemaphore. The manual requires that signals and waits are complete; here pending ones continue. */
CUresult CUDAAPI cuDestroyExternalSemaphore(CUexternalSemaphore extSem)
{
    return ct_external_semaphore_destroy(extSem);
}

/* cuSignalExternalSemaphoresAsync. When all earlier work of the stream is complete, a binary semaphore is signalled, and a timeline is
 * set to its value. Vulkan requires that the signal of a binary semaphore is submitted before a wait for it: this is so when the
 * function returns, unless the stream itself waits for the host. INVALID_VALUE: a null pointer, nonzero flags, or a value that is not
 * greater than the previous one. */
CUresult CUDAAPI cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                                 const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray, unsigned int numExtSems,
                                                 CUstream stream)
{
    struct ct_stream *found;
    CUresult r = ct_stream_lookup(stream, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (ct_stream_is_captured(found))
        r = ct_capture_node(found, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
                                                        .extSemSignal = {(CUexternalSemaphore *)extSemArray, paramsArray, numExtSems}});
    else
        r = ct_semaphore_signals_enqueue(found, &(struct ct_semaphore_signals){extSemArray, paramsArray, numExtSems});
    ct_stream_release(found);
    return r;
}

/* cuWaitExternalSemaphoresAsync. Later work of the stream waits until each binary semaphore is signalled, and resets it, and until each
 * timeline has reached its value. INVALID_VALUE: a null pointer or nonzero flags. */
CUresult CUDAAPI cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *extSemArray,
                                               const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray, unsigned int numExtSems,
                                               CUstream stream)
{
    struct ct_stream *found;
    CUresult r = ct_stream_lookup(stream, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (ct_stream_is_captured(found))
        r = ct_capture_node(found, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
                                                        .extSemWait = {(CUexternalSemaphore *)extSemArray, paramsArray, numExtSems}});
    else
        r = ct_semaphore_waits_enqueue(found, &(struct ct_semaphore_waits){extSemArray, paramsArray, numExtSems});
    ct_stream_release(found);
    return r;
}
