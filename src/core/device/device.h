/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA tells about a device. struct ct_device stands in context.h. */
#ifndef CT_CORE_DEVICE_H
#define CT_CORE_DEVICE_H
/* Parts: device_atomics.c. */

#include "context.h"

/* Warps are 32 lanes on every device: the compiler sees to it. */
#define CT_WARP_SIZE 32
/* Bytes of work-group memory that a block may have without asking for more (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES). */
#define CT_SHARED_BYTES_UNASKED (48u << 10)
/* Constant variables of a module, in bytes. */
#define CT_CONSTANT_BYTES (64u << 10)

/* The device of an ordinal. INVALID_DEVICE, and what ct_process_check gives. */
CUresult ct_device_lookup(CUdevice ordinal, struct ct_device **out);

/* The value of one attribute. INVALID_VALUE: there is no such attribute. */
CUresult ct_device_attribute(const struct ct_device *device, CUdevice_attribute attribute, int *out);
/* The same for an attribute that is known to exist. */
int ct_device_limit(const struct ct_device *device, CUdevice_attribute attribute);

/* ---- atomic operations between devices and the host: device_atomics.c ---- */

/* INVALID_VALUE: no operations, or one that does not exist. */
CUresult ct_atomics_check(const CUatomicOperation *operations, unsigned count);
/* How kernels do an operation in one piece with the host's own: bits of CUatomicOperationCapability; 0: not at all. */
unsigned ct_atomics_with_host(const struct ct_device *device, CUatomicOperation operation);

#endif
