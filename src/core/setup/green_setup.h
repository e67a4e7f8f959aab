/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and destruction of green contexts (core/device/green_context.h). */
#ifndef CT_CORE_GREEN_SETUP_H
#define CT_CORE_GREEN_SETUP_H

#include "core/device/device.h"
#include "core/device/green_context.h"

/* Retains the device's primary context. OUT_OF_MEMORY, and the errors of cuDevicePrimaryCtxRetain. */
CUresult ct_green_create(struct ct_device *device, unsigned sm_count, CUgreenCtx *out);
/* Its streams, which refer to it, stay. INVALID_CONTEXT: it was destroyed. */
CUresult ct_green_destroy(struct ct_green_context *green);

#endif
