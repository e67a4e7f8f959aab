/* SPDX-License-Identifier: Apache-2.0 */
/* Devices are lost one by one; the others of the process go on working. */
#include "device_loss.h"

#include "core/base/log.h"

#define CT_CHANNEL "device"

bool ct_device_give_up(struct ct_device *device, CUresult cause)
{
    int none = CUDA_SUCCESS;

    if (!atomic_compare_exchange_strong(&device->lost, &none, (int)cause))
        return false;
    device->backend->device_give_up(device->opened, cause);
    return true;
}

CUresult ct_device_check_usable(const struct ct_device *device)
{
    const CUresult cause = (CUresult)atomic_load(&device->lost);

    if (cause == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return ct_fail(cause, "device %d (%s) is lost for this process, since a kernel on it failed or was given up before", device->ordinal,
                   device->info.name);
}
