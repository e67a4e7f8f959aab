/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_order.h"

#include "core/device/workarounds.h"

#include <dlfcn.h>

#define VULKAN_LOADER "libvulkan.so.1"

/* Fastest first: docs/performance.md, "CPU devices". */
static const enum ct_driver by_speed[] = {CT_DRIVER_INTEL_CL_CPU, CT_DRIVER_POCL, CT_DRIVER_LAVAPIPE};
#define N_DRIVERS (sizeof by_speed / sizeof *by_speed)

enum ct_cpu_order ct_cpu_order_choose(void)
{
    void *loader = dlopen(VULKAN_LOADER, RTLD_LAZY | RTLD_NOLOAD);

    if (!loader)
        return CT_CPU_ORDER_BY_SPEED;
    dlclose(loader);
    return CT_CPU_ORDER_VULKAN_FIRST;
}

unsigned ct_cpu_order_place(enum ct_cpu_order order, const struct ct_device_info *info)
{
    unsigned place = 0;

    if (order == CT_CPU_ORDER_VULKAN_FIRST)
        return info->driver_id & CT_DRIVERS_VULKAN ? 0 : 1;
    while (place < N_DRIVERS && by_speed[place] != info->driver_id)
        place++;
    return place;
}

const char *ct_cpu_order_reason(enum ct_cpu_order order)
{
    return order == CT_CPU_ORDER_VULKAN_FIRST
               ? "CPU devices that Vulkan provides come first, since this process uses Vulkan"
               : "CPU devices are sorted by the speed of CUDA code on their drivers (Intel's OpenCL runtime, PoCL, lavapipe)";
}
