/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are lost for this process: a kernel on them cannot go on, and its driver cannot end it. */
#ifndef CT_CORE_DEVICE_LOSS_H
#define CT_CORE_DEVICE_LOSS_H

#include "context.h"

/* Gives the device up: from now on every call in its contexts returns `cause`, as do the threads that wait for it, and no context can be
 * created. Nothing of it is freed, since the kernel may still run. The first cause is kept; false: there was one. */
bool ct_device_give_up(struct ct_device *device, CUresult cause);
/* CUDA_SUCCESS, or why the device is lost; new contexts fail with it, and a log line says why. */
CUresult ct_device_check_usable(const struct ct_device *device);

#endif
