/* SPDX-License-Identifier: Apache-2.0 */
/* Devices to compile for without having them. */
#ifndef CT_TOOLS_TARGETS_H
#define CT_TOOLS_TARGETS_H

#include "cuttle/ptx2spv.h"

/* NULL: no target has this name. */
const struct ptx2spv_target *tool_target(const char *name);

#endif
