/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Primary Context Management. NOT_INITIALIZED before cuInit; INVALID_DEVICE: the device does not exist. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/device/device.h"
#include "core/setup/context_setup.h"

#define CT_CHANNEL "context"

/* cuDevicePrimaryCtxRetain. Activates the context if it had no reference. The handle of a device's primary context never changes; the
 * function does not make it current. INVALID_VALUE: pctx is NULL; OUT_OF_MEMORY. */
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pctx)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pctx is NULL");
    return ct_context_retain_primary(device, pctx);
}

/* cuDevicePrimaryCtxRelease_v2. The last release destroys the context. INVALID_CONTEXT: it is not retained. */
CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(dev, &device);

    return r == CUDA_SUCCESS ? ct_context_release_primary(device) : r;
}

/* cuDevicePrimaryCtxRelease, the version of CUDA 7.0, which does the same. */
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return cuDevicePrimaryCtxRelease_v2(dev);
}

enum when { WHILE_INACTIVE, ANY_TIME };

static CUresult set_flags(CUdevice dev, unsigned flags, enum when when)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(dev, &device);

    if (r != CUDA_SUCCESS || (r = ct_context_check_flags(flags)) != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&device->lock);
    if (device->primary->active && when == WHILE_INACTIVE) {
        r = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
    } else {
        device->primary_flags = flags;
        device->primary->flags = flags;
    }
    ct_mutex_unlock(&device->lock);
    return r == CUDA_SUCCESS ? r : ct_fail(r, "the flags must be set before the primary context is retained");
}

/* cuDevicePrimaryCtxSetFlags_v2. flags: CUctx_flags; the context may be active. INVALID_VALUE: unknown flags. */
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    return set_flags(dev, flags, ANY_TIME);
}

/* cuDevicePrimaryCtxSetFlags, the version of CUDA 7.0. PRIMARY_CONTEXT_ACTIVE: the context is already active. */
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return set_flags(dev, flags, WHILE_INACTIVE);
}

/* cuDevicePrimaryCtxGetState. INVALID_VALUE: a null pointer. */
CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (!flags || !active)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    ct_mutex_lock(&device->lock);
    *active = device->primary->active;
    *flags = device->primary_flags;
    ct_mutex_unlock(&device->lock);
    return CUDA_SUCCESS;
}

/* cuDevicePrimaryCtxReset_v2. Destroys the context regardless of its reference count; each reference must still be released. */
CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    struct ct_device *device;
    CUresult r = ct_device_lookup(dev, &device);

    return r == CUDA_SUCCESS ? ct_context_reset_primary(device) : r;
}

/* cuDevicePrimaryCtxReset, the version of CUDA 7.0, which does the same. */
CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    return cuDevicePrimaryCtxReset_v2(dev);
}
