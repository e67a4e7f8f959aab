/* SPDX-License-Identifier: Apache-2.0 */
/* Access to page-locked and managed memory of one device from kernels of all other devices. */
#ifndef CT_CORE_HOST_ALIASES_H
#define CT_CORE_HOST_ALIASES_H

#include "memory_backing.h"

/* Imports the pages of host memory just created on `device` into the other open devices, and into those opened during its lifetime.
 * Devices that refuse them get no alias. `registered`: how the application's pages were imported; NULL: the memory was allocated. */
void ct_host_aliases_make(struct ct_device *device, const struct ct_host_import *registered, struct ct_backing *backing);
/* Destroys the aliases; no work of any device may use them. */
void ct_host_aliases_drop(struct ct_backing *backing);
/* Imports all existing host memory into a device that was just opened. The caller holds device->lock. */
void ct_host_aliases_open(struct ct_device *device);
/* The CUDA address of the first byte of another device's memory for kernels of `device`. False: they cannot access it. */
bool ct_host_aliases_find(const struct ct_device *device, const struct ct_memory *memory, uint64_t *out_address);
/* Whether devices other than its own may have imported the memory. */
bool ct_host_aliases_exist(const struct ct_memory *memory);

#endif
