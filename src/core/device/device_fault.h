/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says of the fault by which a device was lost. */
#ifndef CT_CORE_DEVICE_FAULT_H
#define CT_CORE_DEVICE_FAULT_H

#include "backend.h"

struct ct_device;

/* Logs the driver's account, if it gives one: the accesses, and the allocations of the application that are nearest to them. */
void ct_device_fault_log(struct ct_device *device);
/* Writes what one access was, as a text: "a write to address 0x.., 16 bytes behind an allocation of 64 bytes at 0x..". */
void ct_device_fault_describe(const struct ct_device_info *info, const struct ct_fault_address *address, char *out, size_t size);

#endif
