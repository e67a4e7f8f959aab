/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations for notifications of a device (Driver API: Device Management). They are kept, but no driver reports that a process exceeds its
 * budget of memory, so no function is called. */
#ifndef CT_CORE_ASYNC_NOTIFICATION_H
#define CT_CORE_ASYNC_NOTIFICATION_H

#include "device.h"

/* OUT_OF_MEMORY. */
CUresult ct_async_notification_register(const struct ct_device *device, CUasyncCallbackHandle *out);
/* INVALID_VALUE: the handle is not that of a registration with this device. */
CUresult ct_async_notification_unregister(const struct ct_device *device, CUasyncCallbackHandle handle);

#endif
