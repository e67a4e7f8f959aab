/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device is lost, or even given up: then the runtime still executes something that never ends. */
#include "cl.h"

CUresult ct_cl_device_check(struct ct_backend_device *device)
{
    return (CUresult)atomic_load_explicit(&device->lost, memory_order_acquire);
}

void ct_cl_device_give_up(struct ct_backend_device *device, CUresult cause)
{
    atomic_store_explicit(&device->given_up, true, memory_order_relaxed); /* the next line publishes it */
    (void)ct_cl_device_lose(device, cause);
}

bool ct_cl_device_is_given_up(struct ct_backend_device *device)
{
    return ct_cl_device_check(device) != CUDA_SUCCESS && atomic_load_explicit(&device->given_up, memory_order_relaxed);
}

CUresult ct_cl_device_lose(struct ct_backend_device *device, CUresult cause)
{
    int none = CUDA_SUCCESS;

    atomic_compare_exchange_strong_explicit(&device->lost, &none, (int)cause, memory_order_release, memory_order_relaxed);
    return cause;
}
