/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the library's own. They use device addresses. */
#ifndef CT_CORE_BUILTIN_KERNEL_H
#define CT_CORE_BUILTIN_KERNEL_H

#include "core/device/device.h"

/* Compiles the first kernel of a PTX text for a device. The caller holds no lock. NOT_SUPPORTED: it does not compile, or its parameters do not fit
 * into a launch; errors of the backend. */
CUresult ct_builtin_kernel_create(struct ct_device *device, const char *text, size_t size_bytes, const char *name,
                                  struct ct_kernel_image **out);

#endif
