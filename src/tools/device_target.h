/* SPDX-License-Identifier: Apache-2.0 */
/* What a command compiles for: a target by name, or device 0. */
#ifndef CT_TOOLS_DEVICE_TARGET_H
#define CT_TOOLS_DEVICE_TARGET_H

#include "cuttle/ptx2spv.h"

/* The target of that name; with NULL or "device" that of device 0, or "vulkan" if there is no device and the name is NULL. *out_name says what
 * it is. NULL, with a message: there is none. */
const struct ptx2spv_target *tool_device_target(const char *name, const char **out_name);

#endif
