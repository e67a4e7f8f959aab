/* SPDX-License-Identifier: Apache-2.0 */
/* Making devices, and taking them down. */
#ifndef CT_CORE_DEVICE_SETUP_H
#define CT_CORE_DEVICE_SETUP_H

#include "core/device/context.h"

/* Fills in a zeroed device; not opened yet. Makes the primary context's struct and handle. */
CUresult ct_device_init(struct ct_device *device, int ordinal, const struct ct_backend *backend, unsigned backend_index,
                        const struct ct_device_info *info);
void ct_device_finish(struct ct_device *device);

#endif
