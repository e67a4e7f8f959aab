/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked and managed memory of one device in the kernels of all others. */
#ifndef CT_CORE_HOST_ALIASES_H
#define CT_CORE_HOST_ALIASES_H

#include "memory_backing.h"

/* Gives the pages of host memory just made on `device` to the other devices that are open, and to those that open as long as it lives.
 * Devices that do not take them go without. `registered`: how the application's pages were imported; NULL: the memory was allocated. */
void ct_host_aliases_make(struct ct_device *device, const struct ct_host_import *registered, struct ct_backing *backing);
/* Takes them back; no work of any device uses them. */
void ct_host_aliases_drop(struct ct_backing *backing);
/* Gives a device that was just opened what there is. The caller holds device->lock. */
void ct_host_aliases_open(struct ct_device *device);
/* Where kernels of `device` find the first byte of another device's memory, as a CUDA address. False: they do not reach it. */
bool ct_host_aliases_find(const struct ct_device *device, const struct ct_memory *memory, uint64_t *out_address);

#endif
