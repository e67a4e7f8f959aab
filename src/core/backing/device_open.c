/* SPDX-License-Identifier: Apache-2.0 */
/* A device is opened at its first use; existing host memory that all devices can access is imported into it at once. */
#include "device_open.h"

#include "core/base/float_environment.h"
#include "core/device/device_loss.h"
#include "core/device/exit_limit.h"
#include "core/device/long_kernels.h"
#include "host_aliases.h"
#include "kernel_faults.h"

CUresult ct_device_open_locked(struct ct_device *device)
{
    struct ct_float_environment before;
    CUresult r = ct_device_check_usable(device);

    if (r != CUDA_SUCCESS || device->opened)
        return r;
    ct_float_environment_enter(&before); /* the driver of a CPU device starts the threads that run kernels */
    r = device->backend->device_open(device->backend_index, &device->opened);
    ct_float_environment_restore(&before);
    if (r != CUDA_SUCCESS)
        return r;
    device->primary->backend_device = device->opened; /* objects that belong to the device and to no context use the primary context */
    ct_host_aliases_open(device);
    ct_kernel_faults_watch_locked(device);
    ct_exit_limit_arm();
    ct_long_kernels_watch();
    return CUDA_SUCCESS;
}

CUresult ct_device_open(struct ct_device *device)
{
    CUresult r;

    ct_mutex_lock(&device->lock);
    r = ct_device_open_locked(device);
    ct_mutex_unlock(&device->lock);
    return r;
}
