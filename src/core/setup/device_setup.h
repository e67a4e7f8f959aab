/* SPDX-License-Identifier: Apache-2.0 */
/* Initialization and destruction of devices. */
#ifndef CT_CORE_DEVICE_SETUP_H
#define CT_CORE_DEVICE_SETUP_H

#include "core/device/context.h"

/* Initializes a zeroed device without opening it. Creates the struct and handle of its primary context. */
CUresult ct_device_init(struct ct_device *device, int ordinal, const struct ct_backend *backend, unsigned backend_index,
                        const struct ct_device_info *info);
void ct_device_finish(struct ct_device *device);

#endif
