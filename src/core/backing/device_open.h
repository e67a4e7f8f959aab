/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a device in its backend. */
#ifndef CT_CORE_DEVICE_OPEN_H
#define CT_CORE_DEVICE_OPEN_H

#include "core/device/context.h"

/* Opens the device unless it is open. It stays open until the process ends. For the second, the caller holds device->lock. */
CUresult ct_device_open(struct ct_device *device);
CUresult ct_device_open_locked(struct ct_device *device);

#endif
