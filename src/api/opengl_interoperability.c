/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: OpenGL Interoperability, and its functions of CUDA 2, which know a buffer by its name. Registering, mapping and unmapping need an OpenGL
 * context that is current in the calling thread (core/graphics/gl.h). Every function: NOT_INITIALIZED; those that need a context of CUDA: INVALID_CONTEXT
 * and CONTEXT_IS_DESTROYED, and the error of a kernel that failed. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/device.h"
#include "core/graph/capture_state.h"
#include "core/graphics/gl.h"
#include "core/graphics/graphics_resource.h"
#include "core/stream/context_streams.h"

#define CT_CHANNEL "graphics"

/* Of CUGLDeviceList: all devices of the context, or those of this or the next frame; here these are the same. */
enum { LIST_FIRST = 1, LIST_LAST = 3 };

/* cuGLCtxCreate_v2. As cuCtxCreate_v2: a context of CUDA need not belong to one of OpenGL. */
CUresult CUDAAPI cuGLCtxCreate_v2(CUcontext *pCtx, unsigned int Flags, CUdevice device)
{
    return cuCtxCreate_v2(pCtx, Flags, device);
}

/* cuGLCtxCreate. As the first cuCtxCreate. */
CUresult CUDAAPI cuGLCtxCreate(CUcontext *pCtx, unsigned int Flags, CUdevice device)
{
    return cuCtxCreate(pCtx, Flags, device);
}

/* cuGLInit. There is nothing to initialize. */
CUresult CUDAAPI cuGLInit(void)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r == CUDA_SUCCESS)
        ct_context_release(context);
    return r;
}

/* cuGLGetDevices_v2. The devices with which the current context of OpenGL draws, by their UUIDs; for software that draws, all processors. *pCudaDeviceCount
 * is their number, which may be larger than cudaDeviceCount. INVALID_VALUE: a null pointer or an unknown list; INVALID_GRAPHICS_CONTEXT: no context
 * of OpenGL is current; NO_DEVICE: it draws with none. */
CUresult CUDAAPI cuGLGetDevices_v2(unsigned int *pCudaDeviceCount, CUdevice *pCudaDevices, unsigned int cudaDeviceCount,
                                   unsigned int deviceList)
{
    struct ct_gl gl;
    unsigned n = 0;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!pCudaDeviceCount || (cudaDeviceCount && !pCudaDevices) || deviceList < LIST_FIRST || deviceList > LIST_LAST)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "list %u, at most %u devices at %p", deviceList, cudaDeviceCount, (void *)pCudaDevices);
    if ((r = ct_gl_enter(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, &gl)) != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < ct_process.n_devices; i++) {
        const struct ct_device_info *info = &ct_process.devices[i].info;

        if (!ct_gl_draws_with(&gl, info->uuid) && !(info->kind == CT_DEVICE_CPU && ct_gl_is_software(&gl)))
            continue;
        if (n < cudaDeviceCount)
            pCudaDevices[n] = (CUdevice)i;
        n++;
    }
    if (n == 0)
        return ct_fail(CUDA_ERROR_NO_DEVICE, "OpenGL draws with none of the devices; buffers and textures can be registered nevertheless");
    *pCudaDeviceCount = n;
    return CUDA_SUCCESS;
}

/* cuGLGetDevices, the version of CUDA 4.1, which does the same. */
CUresult CUDAAPI cuGLGetDevices(unsigned int *pCudaDeviceCount, CUdevice *pCudaDevices, unsigned int cudaDeviceCount,
                                unsigned int deviceList)
{
    return cuGLGetDevices_v2(pCudaDeviceCount, pCudaDevices, cudaDeviceCount, deviceList);
}

/* ---- buffers by their names ---- */

/* The resource of a buffer of the current context, with which ct_graphics_release. INVALID_VALUE. */
static CUresult look_up(unsigned buffer, struct ct_graphics_resource **out)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graphics_lookup_name(context, buffer, out);
    ct_context_release(context);
    return r;
}

/* cuGLRegisterBufferObject. ALREADY_MAPPED: it is registered already. Other errors as cuGraphicsGLRegisterBuffer. */
CUresult CUDAAPI cuGLRegisterBufferObject(unsigned int buffer)
{
    struct ct_context *context;
    CUgraphicsResource handle;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graphics_register_buffer(context, buffer, 0, CT_GRAPHICS_BY_NAME, &handle);
    ct_context_release(context);
    return r;
}

/* Maps the buffer in a stream. */
static CUresult map(unsigned buffer, CUdeviceptr *out_address, size_t *out_bytes, CUstream stream)
{
    struct ct_graphics_resource *resource;
    CUgraphicsResource handle;
    uint64_t address, bytes;
    CUresult r = look_up(buffer, &resource);

    if (r != CUDA_SUCCESS)
        return r;
    handle = ct_graphics_handle(resource);
    r = cuGraphicsMapResources(1, &handle, stream);
    if (r == CUDA_SUCCESS)
        r = ct_graphics_pointer(resource, &address, &bytes);
    else if (r == CUDA_ERROR_ALREADY_MAPPED || r == CUDA_ERROR_UNKNOWN)
        r = ct_fail(CUDA_ERROR_MAP_FAILED, "buffer %u of OpenGL cannot be mapped", buffer); /* what the manual lists for this function */
    ct_graphics_release(resource);
    if (r == CUDA_SUCCESS && out_address)
        *out_address = address;
    if (r == CUDA_SUCCESS && out_bytes)
        *out_bytes = bytes;
    return r;
}

static CUresult unmap(unsigned buffer, CUstream stream)
{
    struct ct_graphics_resource *resource;
    CUgraphicsResource handle;
    CUresult r = look_up(buffer, &resource);

    if (r != CUDA_SUCCESS)
        return r;
    handle = ct_graphics_handle(resource);
    r = cuGraphicsUnmapResources(1, &handle, stream);
    if (r == CUDA_ERROR_NOT_MAPPED)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "buffer %u of OpenGL is not mapped", buffer); /* what the manual lists for this function */
    ct_graphics_release(resource);
    return r;
}

/* "All streams in the current CUDA context are synchronized with the current GL context." */
static CUresult synchronize(void)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_streams_synchronize(context);
    ct_context_release(context);
    return r;
}

/* cuGLMapBufferObject_v2. dptr and size may be NULL. INVALID_VALUE: the buffer is not registered; MAP_FAILED: it is mapped, or cannot be mapped. */
CUresult ct_cuGLMapBufferObject_v2(CUdeviceptr *dptr, size_t *size, unsigned int buffer, CUstream stream)
{
    CUresult r = synchronize();

    if (r == CUDA_SUCCESS)
        r = map(buffer, dptr, size, stream);
    return r == CUDA_SUCCESS ? synchronize() : r; /* other streams may use the memory at once */
}

/* cuGLMapBufferObjectAsync_v2. The same in the order of a stream. */
CUresult CUDAAPI cuGLMapBufferObjectAsync_v2(CUdeviceptr *dptr, size_t *size, unsigned int buffer, CUstream hStream)
{
    return map(buffer, dptr, size, hStream);
}

/* cuGLUnmapBufferObject. INVALID_VALUE: the buffer is not registered, or not mapped. */
CUresult CUDAAPI cuGLUnmapBufferObject(unsigned int buffer)
{
    CUresult r = synchronize();

    return r == CUDA_SUCCESS ? unmap(buffer, NULL) : r;
}

/* cuGLUnmapBufferObjectAsync. The same in the order of a stream. */
CUresult CUDAAPI cuGLUnmapBufferObjectAsync(unsigned int buffer, CUstream hStream)
{
    return unmap(buffer, hStream);
}

/* cuGLUnregisterBufferObject. INVALID_VALUE: the buffer is not registered; UNKNOWN: it is mapped. */
CUresult CUDAAPI cuGLUnregisterBufferObject(unsigned int buffer)
{
    struct ct_graphics_resource *resource;
    CUresult r = look_up(buffer, &resource);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graphics_unregister(resource);
    ct_graphics_release(resource);
    return r;
}

/* cuGLSetBufferObjectMapFlags. The flags have the values of CUgraphicsMapResourceFlags. INVALID_HANDLE: the buffer is not registered; INVALID_VALUE:
 * unknown flags; ALREADY_MAPPED. */
CUresult CUDAAPI cuGLSetBufferObjectMapFlags(unsigned int buffer, unsigned int Flags)
{
    struct ct_graphics_resource *resource;
    CUresult r = look_up(buffer, &resource);

    if (r == CUDA_ERROR_INVALID_VALUE)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "buffer %u of OpenGL is not registered", buffer);
    if (r != CUDA_SUCCESS)
        return r;
    r = ct_graphics_set_map_flags(resource, Flags);
    ct_graphics_release(resource);
    return r;
}

/* ---- resources ---- */

/* cuGraphicsGLRegisterBuffer. Flags: NONE, READ_ONLY or WRITE_DISCARD, which also hold for its mappings until cuGraphicsResourceSetMapFlags. INVALID_VALUE:
 * pCudaResource is NULL, other flags, a buffer of 0 bytes; INVALID_HANDLE: there is no such buffer; ALREADY_MAPPED: it is mapped; OPERATING_SYSTEM: no
 * context of OpenGL is current; NOT_SUPPORTED: OpenGL ES, or OpenGL before 3.0. */
CUresult CUDAAPI cuGraphicsGLRegisterBuffer(CUgraphicsResource *pCudaResource, unsigned int buffer, unsigned int Flags)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = pCudaResource ? ct_graphics_register_buffer(context, buffer, Flags, CT_GRAPHICS_BY_HANDLE, pCudaResource)
                      : ct_fail(CUDA_ERROR_INVALID_VALUE, "pCudaResource is NULL");
    ct_context_release(context);
    return r;
}

/* cuGraphicsGLRegisterImage. Images of two and three dimensions, layered ones, cubes, and renderbuffers (OpenGL 4.3), with 1, 2 or 4 channels of 8, 16 or 32
 * bits. Flags: also SURFACE_LDST and TEXTURE_GATHER. Errors as cuGraphicsGLRegisterBuffer; INVALID_VALUE: also another target than the image has, or
 * another format. */
CUresult CUDAAPI cuGraphicsGLRegisterImage(CUgraphicsResource *pCudaResource, unsigned int image, unsigned int target, unsigned int Flags)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = pCudaResource ? ct_graphics_register_image(context, image, target, Flags, pCudaResource)
                      : ct_fail(CUDA_ERROR_INVALID_VALUE, "pCudaResource is NULL");
    ct_context_release(context);
    return r;
}
