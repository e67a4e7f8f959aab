/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and their attributes. struct ct_device is defined in context.h. */
#ifndef CT_CORE_DEVICE_H
#define CT_CORE_DEVICE_H
/* Parts: device_atomics.c. */

#include "context.h"

/* Warps have 32 lanes on every device: the compiler ensures it. */
#define CT_WARP_SIZE 32
/* Bytes of shared memory that a block may have without opting in to more (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES). */
#define CT_SHARED_BYTES_WITHOUT_OPT_IN (48u << 10)
/* Size limit of a module's constant variables. */
#define CT_CONSTANT_BYTES (64u << 10)

/* The device of an ordinal. INVALID_DEVICE, and the errors of ct_process_check. */
CUresult ct_device_lookup(CUdevice ordinal, struct ct_device **out);

/* The value of one attribute. INVALID_VALUE: there is no such attribute. */
CUresult ct_device_attribute(const struct ct_device *device, CUdevice_attribute attribute, int *out);
/* The same for an attribute that is known to exist. */
int ct_device_limit(const struct ct_device *device, CUdevice_attribute attribute);

#define CT_UUID_CHARACTERS 36
/* The usual text of a UUID: lowercase digits in five groups. */
void ct_uuid_text(const uint8_t uuid[16], char out[CT_UUID_CHARACTERS + 1]);

/* ---- atomic operations between devices and the host: device_atomics.c ---- */

/* INVALID_VALUE: no operations, or an unknown one. */
CUresult ct_atomics_check(const CUatomicOperation *operations, unsigned count);
/* The forms of an operation in kernels that are atomic with respect to the host: bits of CUatomicOperationCapability; 0: none. */
unsigned ct_atomics_with_host(const struct ct_device *device, CUatomicOperation operation);

#endif
