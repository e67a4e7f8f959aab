/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the library's own. Unless they say otherwise they use device addresses. */
#ifndef CT_CORE_BUILTIN_KERNEL_H
#define CT_CORE_BUILTIN_KERNEL_H

#include "core/device/device.h"

struct ct_builtin_source {
    const char *text, *name; /* PTX, and the name in messages */
    unsigned entry;          /* the number of the kernel in the text */
    bool takes_cuda_addresses;
};

/* Compiles a kernel for a device. The caller holds no lock. NOT_SUPPORTED: it does not compile, or its parameters do not fit into a launch; errors of
 * the backend. */
CUresult ct_builtin_kernel_create(struct ct_device *device, const struct ct_builtin_source *source, struct ct_kernel_image **out);

#define CT_BUILTIN_KERNELS 8

/* The kernels of a table of sources, of a device. Members are NULL until a launch needs them; each is written once. */
struct ct_builtin_kernels {
    _Atomic(struct ct_kernel_image *) images[CT_BUILTIN_KERNELS];
};

/* Compiles a kernel when it is needed for the first time, and creates *kernels before the first one; NULL: it cannot be compiled. Two threads may do so
 * at the same time; then one of the two is kept. The caller holds no lock. */
struct ct_kernel_image *ct_builtin_kernel_or_null(struct ct_device *device, _Atomic(struct ct_builtin_kernels *) *kernels,
                                                  const struct ct_builtin_source *sources, unsigned index);
/* Called before the device is closed. */
void ct_builtin_kernels_destroy(struct ct_device *device, _Atomic(struct ct_builtin_kernels *) *kernels);

#endif
