/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Device Management, and Device Management (deprecated). Every function requires cuInit (NOT_INITIALIZED) and returns
 * INVALID_DEVICE for a number that is not a device's, INVALID_VALUE for a null pointer. */
#include "entry_points.h"

#include "core/device/device.h"
#include "core/device/library_capability.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/device/async_notification.h"
#include "core/base/process.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "device"

/* cuDeviceGet. The handle of the device with number `ordinal`, which starts at 0. INVALID_DEVICE: there are fewer devices. */
CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
    struct ct_device *found;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!device)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "device is NULL");
    r = ct_device_lookup(ordinal, &found);
    if (r == CUDA_SUCCESS)
        *device = found->ordinal;
    return r;
}

/* cuDeviceGetCount. */
CUresult CUDAAPI cuDeviceGetCount(int *count)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!count)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "count is NULL");
    *count = (int)ct_process.n_devices;
    return CUDA_SUCCESS;
}

/* Looks up a device for a function that writes to `out`. */
static CUresult lookup_for(const void *out, CUdevice dev, struct ct_device **device)
{
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS && !out)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is NULL");
    return r == CUDA_SUCCESS ? ct_device_lookup(dev, device) : r;
}

/* cuDeviceGetName. Writes at most len - 1 characters and a NUL. INVALID_VALUE: len < 1. */
CUresult CUDAAPI cuDeviceGetName(char *name, int len, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(name, dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (len < 1)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "len is %d", len);
    snprintf(name, (size_t)len, "%s", device->info.name);
    return CUDA_SUCCESS;
}

/* cuDeviceGetUuid. 16 bytes: the device UUID that Vulkan or OpenCL reports. */
CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(uuid, dev, &device);

    if (r == CUDA_SUCCESS)
        memcpy(uuid->bytes, device->info.uuid, sizeof device->info.uuid);
    return r;
}

/* cuDeviceGetUuid_v2. The same as cuDeviceGetUuid, since no device is partitioned. */
CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    return cuDeviceGetUuid(uuid, dev);
}

/* cuDeviceGetLuid. 8 bytes. NOT_SUPPORTED: the device has no LUID, which exists on Windows only. */
CUresult CUDAAPI cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(luid && deviceNodeMask ? luid : NULL, dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (!device->info.has_luid)
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "device %d has no LUID", device->ordinal);
    memcpy(luid, device->info.luid, sizeof device->info.luid);
    *deviceNodeMask = device->info.node_mask;
    return CUDA_SUCCESS;
}

/* cuDeviceTotalMem. The size of device memory in bytes, clamped to the range of the result. */
CUresult CUDAAPI cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(bytes, dev, &device);

    if (r == CUDA_SUCCESS)
        *bytes = device->info.memory_bytes > UINT_MAX ? UINT_MAX : (unsigned)device->info.memory_bytes;
    return r;
}

/* cuDeviceTotalMem_v2. The size of device memory in bytes. */
CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(bytes, dev, &device);

    if (r == CUDA_SUCCESS)
        *bytes = device->info.memory_bytes;
    return r;
}

static bool is_capability(CUdevice_attribute attribute)
{
    return attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR || attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
}

/* cuDeviceGetAttribute. INVALID_VALUE: the attribute does not exist. core/device/device_attributes.def defines the values;
 * core/device/library_capability.def to which libraries another compute capability and its shared memory are reported. */
CUresult CUDAAPI cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(pi, dev, &device);

    if (r == CUDA_SUCCESS)
        r = ct_device_attribute(device, attrib, pi);
    if (r == CUDA_SUCCESS && is_capability(attrib)) {
        const int number = (int)ct_library_capability(&device->info, ct_thread_caller())->number;

        *pi = attrib == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? number / 10 : number % 10;
    }
    if (r == CUDA_SUCCESS && attrib == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        *pi = (int)ct_library_shared_optin(&device->info, ct_thread_caller());
    return r;
}

/* cuDeviceGetTexture1DLinearMaxWidth. The number of elements of a linear texture of any format:
 * CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH. INVALID_VALUE: numChannels is not 1, 2 or 4. */
CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(maxWidthInElements, dev, &device);

    (void)format;
    if (r != CUDA_SUCCESS)
        return r;
    if (numChannels != 1 && numChannels != 2 && numChannels != 4)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "textures with %u channels do not exist", numChannels);
    *maxWidthInElements = (size_t)ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    return CUDA_SUCCESS;
}

/* cuDeviceGetHostAtomicCapabilities. For each of `count` operations, the CUatomicOperationCapability bits for which the device's
 * operation is atomic with respect to the host's. 0 except on CPU devices (CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED).
 * INVALID_VALUE also: count is 0, or an operation does not exist. */
CUresult CUDAAPI cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count,
                                                   CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(capabilities, dev, &device);

    if (r == CUDA_SUCCESS)
        r = ct_atomics_check(operations, count);
    for (unsigned i = 0; r == CUDA_SUCCESS && i < count; i++)
        capabilities[i] = ct_atomics_with_host(device, operations[i]);
    return r;
}

/* cuDeviceRegisterAsyncNotification. The registration has no effect (core/device/async_notification.h). INVALID_VALUE: callbackFunc or callback is
 * NULL; INVALID_DEVICE; OUT_OF_MEMORY. */
CUresult CUDAAPI cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc, void *userData,
                                                   CUasyncCallbackHandle *callback)
{
    struct ct_device *found;
    CUresult r = ct_device_lookup(device, &found);

    (void)userData;
    if (r != CUDA_SUCCESS)
        return r;
    return callbackFunc && callback ? ct_async_notification_register(found, callback)
                                    : ct_fail(CUDA_ERROR_INVALID_VALUE, "%s is NULL", callbackFunc ? "callback" : "callbackFunc");
}

/* cuDeviceUnregisterAsyncNotification. INVALID_VALUE: callback is not registered with the device; INVALID_DEVICE. */
CUresult CUDAAPI cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback)
{
    struct ct_device *found;
    CUresult r = ct_device_lookup(device, &found);

    return r == CUDA_SUCCESS ? ct_async_notification_unregister(found, callback) : r;
}

/* cuDeviceGetExecAffinitySupport. Always 0, for every type: devices cannot be partitioned. */
CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(pi, dev, &device);

    (void)type;
    if (r == CUDA_SUCCESS)
        *pi = 0;
    return r;
}

/* cuDeviceGetByPCIBusId. pciBusId: domain:bus:device[.function] or bus:device.function, in hexadecimal. INVALID_VALUE: it has neither
 * form; INVALID_DEVICE: no device has this id. A device without a PCI bus has the id 0000:00:00.0. */
CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    unsigned domain = 0, bus, slot, function = 0;
    int end = 0;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!dev || !pciBusId)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a null pointer");
    if (sscanf(pciBusId, "%8x:%2x:%2x%n", &domain, &bus, &slot, &end) != 3) {
        domain = 0;
        if (sscanf(pciBusId, "%2x:%2x%n", &bus, &slot, &end) != 2 || pciBusId[end] != '.')
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "\"%s\" is not a PCI bus id", pciBusId);
    }
    if (pciBusId[end] == '.' && sscanf(pciBusId + end, ".%1x", &function) != 1)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "\"%s\" is not a PCI bus id", pciBusId);
    for (unsigned i = 0; i < ct_process.n_devices; i++) {
        const struct ct_device_info *info = &ct_process.devices[i].info;

        if (info->pci_domain == domain && info->pci_bus == bus && info->pci_device == slot && function == 0) {
            *dev = (CUdevice)i;
            return CUDA_SUCCESS;
        }
    }
    return ct_fail(CUDA_ERROR_INVALID_DEVICE, "no device has the PCI bus id %s", pciBusId);
}

/* cuDeviceGetPCIBusId. domain:bus:device.function, 13 characters with the NUL. INVALID_VALUE: len is smaller. */
CUresult CUDAAPI cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(pciBusId, dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    if (len < 13)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "len is %d", len);
    snprintf(pciBusId, (size_t)len, "%04x:%02x:%02x.0", device->info.pci_domain, device->info.pci_bus, device->info.pci_device);
    return CUDA_SUCCESS;
}

/* cuFlushGPUDirectRDMAWrites. A no-op: no other hardware writes to device memory (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED is 0).
 * INVALID_CONTEXT: no context is current. */
CUresult CUDAAPI cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)
{
    struct ct_context *context;
    CUresult r;

    if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "target %d does not exist", (int)target);
    if (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER && scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "scope %d does not exist", (int)scope);
    r = ct_context_current(&context);
    if (r == CUDA_SUCCESS)
        ct_context_release(context);
    return r;
}

/* cuDeviceGetProperties (deprecated). Returns a few attributes in one struct; sizes are in bytes, clockRate in kHz. */
CUresult CUDAAPI cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(prop, dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    for (int i = 0; i < 3; i++) {
        prop->maxThreadsDim[i] = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
        prop->maxGridSize[i] = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
    }
    prop->maxThreadsPerBlock = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    prop->sharedMemPerBlock = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    prop->totalConstantMemory = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    prop->SIMDWidth = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    prop->memPitch = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    prop->regsPerBlock = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop->clockRate = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    prop->textureAlign = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
}

/* cuDeviceComputeCapability (deprecated). */
CUresult CUDAAPI cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    struct ct_device *device;
    CUresult r = lookup_for(major && minor ? major : NULL, dev, &device);

    if (r != CUDA_SUCCESS)
        return r;
    *major = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = ct_device_limit(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return CUDA_SUCCESS;
}
