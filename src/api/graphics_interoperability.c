/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Graphics Interoperability. Resources are those of OpenGL (opengl_interoperability.c); core/graphics/graphics_resource.h describes them.
 * Every function: NOT_INITIALIZED; INVALID_CONTEXT: no context is current; INVALID_HANDLE: the resource does not exist; CONTEXT_IS_DESTROYED: its context
 * was destroyed; the error of a kernel that failed. The error where several apply is that of the manual's first sentence about it. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/graph/capture_state.h"
#include "core/graphics/graphics_resource.h"

#define CT_CHANNEL "graphics"

/* Looks up a resource while a context is current. */
static CUresult look_up(CUgraphicsResource handle, struct ct_graphics_resource **out)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graphics_lookup(handle, out);
    ct_context_release(context);
    return r;
}

/* cuGraphicsUnregisterResource. Frees the memory or the arrays of the resource. UNKNOWN: it is mapped. */
CUresult CUDAAPI cuGraphicsUnregisterResource(CUgraphicsResource resource)
{
    struct ct_graphics_resource *found;
    CUresult r = look_up(resource, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graphics_unregister(found);
    ct_graphics_release(found);
    return r;
}

/* cuGraphicsSubResourceGetMappedArray. A level of the image, or of one of its layers or faces. INVALID_VALUE: pArray is NULL, or there is no such layer
 * or level; NOT_MAPPED_AS_ARRAY: the resource is a buffer; NOT_MAPPED. */
CUresult CUDAAPI cuGraphicsSubResourceGetMappedArray(CUarray *pArray, CUgraphicsResource resource, unsigned int arrayIndex,
                                                     unsigned int mipLevel)
{
    struct ct_graphics_resource *found;
    CUresult r = look_up(resource, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = pArray ? ct_graphics_array(found, arrayIndex, mipLevel, pArray) : ct_fail(CUDA_ERROR_INVALID_VALUE, "pArray is NULL");
    ct_graphics_release(found);
    return r;
}

/* cuGraphicsResourceGetMappedMipmappedArray. All levels, layers and faces. INVALID_VALUE: pMipmappedArray is NULL; NOT_MAPPED_AS_ARRAY; NOT_MAPPED. */
CUresult CUDAAPI cuGraphicsResourceGetMappedMipmappedArray(CUmipmappedArray *pMipmappedArray, CUgraphicsResource resource)
{
    struct ct_graphics_resource *found;
    CUresult r = look_up(resource, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = pMipmappedArray ? ct_graphics_mipmapped_array(found, pMipmappedArray)
                        : ct_fail(CUDA_ERROR_INVALID_VALUE, "pMipmappedArray is NULL");
    ct_graphics_release(found);
    return r;
}

/* cuGraphicsResourceGetMappedPointer_v2. pDevPtr and pSize may be NULL. NOT_MAPPED_AS_POINTER: the resource is an image; NOT_MAPPED. */
CUresult CUDAAPI cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *pDevPtr, size_t *pSize, CUgraphicsResource resource)
{
    struct ct_graphics_resource *found;
    uint64_t address, bytes;
    CUresult r = look_up(resource, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graphics_pointer(found, &address, &bytes);
    ct_graphics_release(found);
    if (r == CUDA_SUCCESS && pDevPtr)
        *pDevPtr = address;
    if (r == CUDA_SUCCESS && pSize)
        *pSize = bytes;
    return r;
}

/* cuGraphicsResourceSetMapFlags_v2. flags: one of CUgraphicsMapResourceFlags, for the next mappings. INVALID_VALUE: another value; ALREADY_MAPPED. */
CUresult CUDAAPI cuGraphicsResourceSetMapFlags_v2(CUgraphicsResource resource, unsigned int flags)
{
    struct ct_graphics_resource *found;
    CUresult r = look_up(resource, &found);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graphics_set_map_flags(found, flags);
    ct_graphics_release(found);
    return r;
}

/* cuGraphicsResourceSetMapFlags, the version of CUDA 3.0, which does the same. */
CUresult CUDAAPI cuGraphicsResourceSetMapFlags(CUgraphicsResource resource, unsigned int flags)
{
    return cuGraphicsResourceSetMapFlags_v2(resource, flags);
}

/* With NVIDIA's driver, too, resources that do not exist leave the capture valid. */
static CUresult change_all(struct ct_stream *stream, unsigned count, const CUgraphicsResource *resources, const char *call,
                           CUresult (*function)(const struct ct_graphics_batch *batch))
{
    struct ct_graphics_batch batch;
    CUresult r = ct_graphics_batch_init(&batch, stream, resources, count);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_capture_check_stream(stream, call);
    if (r == CUDA_SUCCESS && count)
        r = function(&batch);
    ct_graphics_batch_finish(&batch);
    return r;
}

/* Maps or unmaps the resources. */
static CUresult change(unsigned count, const CUgraphicsResource *resources, CUstream handle, const char *call,
                       CUresult (*function)(const struct ct_graphics_batch *batch))
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(handle, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = count && !resources ? ct_fail(CUDA_ERROR_INVALID_HANDLE, "the array of %u resources is NULL", count)
                            : change_all(stream, count, resources, call, function);
    ct_stream_release(stream);
    return r;
}

/* cuGraphicsMapResources. Copies the contents to CUDA's memory, unless the flags are WRITE_DISCARD: the work of OpenGL so far comes before the later work
 * of the stream. The OpenGL context of the resources, or one that shares its objects, is current in the thread. INVALID_HANDLE: also a resource that is in
 * the list twice; ALREADY_MAPPED; UNKNOWN: OpenGL fails, there is no such context, or the object has been deleted or has another size.
 * STREAM_CAPTURE_UNSUPPORTED. */
CUresult CUDAAPI cuGraphicsMapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
    return change(count, resources, hStream, "mapping graphics resources", ct_graphics_map);
}

/* cuGraphicsUnmapResources. Copies the contents back, unless the flags are READ_ONLY, and waits for the stream. Errors as cuGraphicsMapResources;
 * NOT_MAPPED. */
CUresult CUDAAPI cuGraphicsUnmapResources(unsigned int count, CUgraphicsResource *resources, CUstream hStream)
{
    return change(count, resources, hStream, "unmapping graphics resources", ct_graphics_unmap);
}
