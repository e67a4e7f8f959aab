/* SPDX-License-Identifier: Apache-2.0 */
/* Graphics interop in a program that has loaded no OpenGL: functions of OpenGL say that there is no context of it. EGL and VDPAU are not supported:
 * every function returns the documented error for any arguments, and does not write results, and the log names each function that was called.
 * Programs then use ordinary memory instead. For Cuttle only, since NVIDIA's driver supports these functions. tests/graphics is about OpenGL. */
#include <cuda.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../api/which_driver.h"

/* Types of headers that cuda.h does not include; their handles are numbers and pointers. */
typedef int vdpau_get_proc_address(uint32_t device, uint32_t function_id, void **function);
CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *resource, unsigned buffer, unsigned flags);
CUresult cuGraphicsGLRegisterImage(CUgraphicsResource *resource, unsigned image, unsigned target, unsigned flags);
CUresult cuGLInit(void);
CUresult cuGLGetDevices_v2(unsigned *count, CUdevice *devices, unsigned room, unsigned list);
CUresult cuGLRegisterBufferObject(unsigned buffer);
CUresult cuGLMapBufferObject_v2(CUdeviceptr *pointer, size_t *size, unsigned buffer);
CUresult cuGraphicsEGLRegisterImage(CUgraphicsResource *resource, void *image, unsigned flags);
CUresult cuEventCreateFromEGLSync(CUevent *event, void *sync, unsigned flags);
CUresult cuVDPAUGetDevice(CUdevice *device, uint32_t vdpau_device, vdpau_get_proc_address *get);
CUresult cuGraphicsVDPAURegisterVideoSurface(CUgraphicsResource *resource, uint32_t surface, unsigned flags);
CUresult cuGraphicsVDPAURegisterOutputSurface(CUgraphicsResource *resource, uint32_t surface, unsigned flags);

#define MAX_CALLS 32

static int failed;
static const char *calls[MAX_CALLS]; /* the calls, with their arguments */
static unsigned n_calls;

#define UNTOUCHED ((void *)(uintptr_t)0x5a5a)
#define not_there(call)                                                                                                                    \
    do {                                                                                                                                   \
        CUresult result = (call);                                                                                                          \
        calls[n_calls++] = #call;                                                                                                          \
        if (result != CUDA_ERROR_NOT_SUPPORTED) {                                                                                          \
            printf("%s gave %d\n", #call, (int)result);                                                                                    \
            failed = 1;                                                                                                                    \
        }                                                                                                                                  \
    } while (0)

#define without_opengl(code, call)                                                                                                         \
    do {                                                                                                                                   \
        CUresult result = (call);                                                                                                          \
        if (result != (code)) {                                                                                                            \
            printf("%s gave %d\n", #call, (int)result);                                                                                    \
            failed = 1;                                                                                                                    \
        }                                                                                                                                  \
    } while (0)

static void not_initialized(CUgraphicsResource *resource)
{
    CUmipmappedArray mipmapped;
    CUdeviceptr pointer;
    unsigned count;
    CUarray array;
    size_t size;

    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGLInit());
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGLGetDevices_v2(&count, NULL, 0, 1));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGLRegisterBufferObject(1));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGLMapBufferObject_v2(&pointer, &size, 1));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsGLRegisterBuffer(resource, 1, 0));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsGLRegisterImage(resource, 1, 0x0de1, 0));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsMapResources(1, resource, NULL));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsUnmapResources(1, resource, NULL));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsUnregisterResource(*resource));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsResourceSetMapFlags(*resource, 0));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsResourceGetMappedPointer(&pointer, &size, *resource));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsSubResourceGetMappedArray(&array, *resource, 0, 0));
    without_opengl(CUDA_ERROR_NOT_INITIALIZED, cuGraphicsResourceGetMappedMipmappedArray(&mipmapped, *resource));
}

static void opengl(CUgraphicsResource *resource)
{
    CUdevice device = -5;
    unsigned count = 5;
    size_t size = 0;
    CUdeviceptr pointer = 0;

    without_opengl(CUDA_SUCCESS, cuGLInit());
    without_opengl(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, cuGLGetDevices_v2(&count, &device, 1, 1));
    without_opengl(CUDA_ERROR_OPERATING_SYSTEM, cuGraphicsGLRegisterBuffer(resource, 1, 0));
    without_opengl(CUDA_ERROR_OPERATING_SYSTEM, cuGraphicsGLRegisterImage(resource, 1, 0x0de1, 0));
    without_opengl(CUDA_ERROR_OPERATING_SYSTEM, cuGLRegisterBufferObject(1));
    without_opengl(CUDA_ERROR_INVALID_VALUE, cuGLMapBufferObject_v2(&pointer, &size, 1));
    without_opengl(CUDA_ERROR_INVALID_HANDLE, cuGraphicsMapResources(1, resource, NULL));
    if (device != -5 || count != 5 || pointer || size)
        failed = 1;
}

static void families(CUgraphicsResource *resource)
{
    CUdevice device;
    CUevent event;

    not_there(cuGraphicsEGLRegisterImage(resource, NULL, 0));
    not_there(cuEventCreateFromEGLSync(&event, NULL, 0));
    not_there(cuVDPAUGetDevice(&device, 0, NULL));
    not_there(cuGraphicsVDPAURegisterVideoSurface(resource, 0, 0));
    not_there(cuGraphicsVDPAURegisterOutputSurface(resource, 0, 0));
}

static int says(const char *text, const char *name, const char *version)
{
    char line[160];

    snprintf(line, sizeof line, "%s%s is not supported and returned CUDA_ERROR_NOT_SUPPORTED\n", name, version);
    return strstr(text, line) != NULL;
}

/* Whether the log has a line for each function that was called; cuda.h maps some names to newer versions. */
static void check_log(const char *path)
{
    char text[16384], name[64];
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

    text[length] = 0;
    for (unsigned i = 0; i < n_calls; i++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(calls[i], "("), calls[i]);
        if (!says(text, name, "") && !says(text, name, "_v2")) {
            printf("the log does not report that %s is not supported\n", name);
            failed = 1;
        }
    }
    if (file)
        fclose(file);
}

int main(void)
{
    char path[] = "/tmp/graphics_test_XXXXXX";
    CUgraphicsResource resource = UNTOUCHED;
    CUcontext context;
    int log;

    if (!on_cuttle())
        return 77; /* the test is for a driver without these functions */
    log = mkstemp(path);
    if (log < 0 || setenv("CUTTLE_LOG_FILE", path, 1) || setenv("CUTTLE_LOG", "warn", 1))
        return EXIT_FAILURE;

    not_initialized(&resource);
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return EXIT_FAILURE;
    opengl(&resource);
    families(&resource);
    if (resource != UNTOUCHED)
        failed = 1;
    if (cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS)
        failed = 1;
    check_log(path);
    unlink(path);
    close(log);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
