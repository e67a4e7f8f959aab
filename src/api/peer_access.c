/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Peer Context Memory Access. Devices cannot access each other's memory here, and the functions report that. */
#include "entry_points.h"

#include "core/device/context.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "core/base/process.h"

#define CT_CHANNEL "device"

/* cuDeviceCanAccessPeer. Always 0. INVALID_DEVICE, INVALID_VALUE: canAccessPeer is NULL. */
CUresult CUDAAPI cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    struct ct_device *device;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!canAccessPeer)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "canAccessPeer is NULL");
    if ((r = ct_device_lookup(dev, &device)) != CUDA_SUCCESS || (r = ct_device_lookup(peerDev, &device)) != CUDA_SUCCESS)
        return r;
    *canAccessPeer = 0;
    return CUDA_SUCCESS;
}

/* Checks both contexts of a peer function: the current one and the given one. For a context that is its own peer the manual specifies
 * INVALID_CONTEXT; NVIDIA's driver 580 does not treat that case specially, and neither does this library. */
static CUresult check_contexts(CUcontext peer)
{
    struct ct_context *current, *other;
    CUresult r = ct_context_current(&current);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_context_lookup(peer, &other);
    if (r == CUDA_SUCCESS)
        ct_context_release(other);
    ct_context_release(current);
    return r;
}

/* cuCtxEnablePeerAccess. PEER_ACCESS_UNSUPPORTED; checked before it: INVALID_VALUE if Flags is not 0, INVALID_CONTEXT for either
 * context. */
CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    CUresult r = check_contexts(peerContext);

    if (r != CUDA_SUCCESS)
        return r;
    if (Flags != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "Flags is 0x%x instead of 0", Flags);
    return ct_fail(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "devices cannot access each other's memory");
}

/* cuCtxDisablePeerAccess. PEER_ACCESS_NOT_ENABLED; checked before it: INVALID_CONTEXT for either context. */
CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peerContext)
{
    CUresult r = check_contexts(peerContext);

    return r != CUDA_SUCCESS ? r : ct_fail(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access was never enabled");
}

/* cuDeviceGetP2PAttribute. Every value is 0. INVALID_VALUE: the attribute does not exist; INVALID_DEVICE: a device does not exist, or
 * both are the same. */
CUresult CUDAAPI cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
    struct ct_device *device;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (value && srcDevice == dstDevice)
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "both devices are device %d", (int)srcDevice);
    if (!value || attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "attribute %d, result at %p", (int)attrib, (void *)value);
    if ((r = ct_device_lookup(srcDevice, &device)) != CUDA_SUCCESS || (r = ct_device_lookup(dstDevice, &device)) != CUDA_SUCCESS)
        return r;
    *value = 0;
    return CUDA_SUCCESS;
}

/* cuDeviceGetP2PAtomicCapabilities. 0 for each of `count` operations. INVALID_VALUE: a null pointer, count is 0, or an operation does
 * not exist; INVALID_DEVICE: a device does not exist, or both are the same. */
CUresult CUDAAPI cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count,
                                                  CUdevice srcDevice, CUdevice dstDevice)
{
    struct ct_device *device;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!capabilities)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "capabilities is NULL");
    if ((r = ct_device_lookup(srcDevice, &device)) != CUDA_SUCCESS || (r = ct_device_lookup(dstDevice, &device)) != CUDA_SUCCESS)
        return r;
    if (srcDevice == dstDevice)
        return ct_fail(CUDA_ERROR_INVALID_DEVICE, "both devices are device %d", (int)srcDevice);
    r = ct_atomics_check(operations, count);
    for (unsigned i = 0; r == CUDA_SUCCESS && i < count; i++)
        capabilities[i] = 0;
    return r;
}
