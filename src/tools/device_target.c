/* SPDX-License-Identifier: Apache-2.0 */
#include "device_target.h"

#include "core/base/process.h"
#include "core/device/context.h"
#include "core/setup/startup.h"
#include "targets.h"

#include <stdio.h>
#include <string.h>

const struct ptx2spv_target *tool_device_target(const char *name, const char **out_name)
{
    const bool is_device = !name || !strcmp(name, "device");
    const struct ptx2spv_target *target;

    if (is_device && ct_process_init(0) == CUDA_SUCCESS) {
        *out_name = ct_process.devices[0].info.name;
        return &ct_process.devices[0].info.target;
    }
    *out_name = name ? name : "vulkan";
    target = tool_target(*out_name);
    if (!target)
        fprintf(stderr, "cuttle: %s%s\n", is_device ? "there is no device" : "unknown target ", is_device ? "" : name);
    return target;
}
