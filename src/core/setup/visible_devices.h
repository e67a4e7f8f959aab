/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES: which devices a process sees, and in which order. */
#ifndef CT_CORE_VISIBLE_DEVICES_H
#define CT_CORE_VISIBLE_DEVICES_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a list of numbers or of UUIDs ("GPU-" and at least one digit of one) as NVIDIA's driver does, which stops at the first word that names
 * none of the `count` devices. Writes the numbers of the named devices, at most `count`, to `out` and their count to *n_out. INVALID_DEVICE: a
 * device is named twice. (CUDA C++ Programming Guide, "CUDA Environment Variables"; details from the driver 580.159.04.) */
CUresult ct_visible_devices(const char *list, const uint8_t (*uuids)[16], unsigned count, unsigned *out, unsigned *n_out);

#endif
