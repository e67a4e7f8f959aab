/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device is lost. */
#include "vk.h"

CUresult ct_vk_device_check(struct ct_backend_device *device)
{
    return (CUresult)atomic_load_explicit(&device->lost, memory_order_acquire);
}

CUresult ct_vk_device_lose(struct ct_backend_device *device, CUresult cause)
{
    int none = CUDA_SUCCESS;

    atomic_compare_exchange_strong_explicit(&device->lost, &none, (int)cause, memory_order_release, memory_order_relaxed);
    return cause;
}
