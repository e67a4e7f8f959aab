/* SPDX-License-Identifier: Apache-2.0 */
/* The order of CPU devices. A machine may have several, since lavapipe, PoCL and Intel's OpenCL runtime all run on its processors, and programs
 * use device 0: that is the one that executes CUDA code fastest. */
#ifndef CT_CORE_CPU_ORDER_H
#define CT_CORE_CPU_ORDER_H

#include "core/device/backend.h"

/* Why the devices are in that order. */
enum ct_cpu_order {
    CT_CPU_ORDER_NOT_CHOSEN,
    CT_CPU_ORDER_BY_SPEED,
    CT_CPU_ORDER_VULKAN_FIRST, /* the process uses Vulkan, and only devices of the Vulkan backend share memory with it */
};

/* The order for this process: VULKAN_FIRST if Vulkan's loader is in it. Called before the Vulkan backend loads it. */
enum ct_cpu_order ct_cpu_order_choose(void);
/* Devices with lower places come first; those with equal places keep the order of their backends. */
unsigned ct_cpu_order_place(enum ct_cpu_order order, const struct ct_device_info *info);
/* A sentence for users. */
const char *ct_cpu_order_reason(enum ct_cpu_order order);

#endif
