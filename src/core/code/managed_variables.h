/* SPDX-License-Identifier: Apache-2.0 */
/* The managed variables of code: one set, which all contexts with modules of the code share. */
#ifndef CT_CORE_MANAGED_VARIABLES_H
#define CT_CORE_MANAGED_VARIABLES_H

#include "core/device/context.h"
#include "core/backing/memory_backing.h"

/* Zero except for the lock until the first module needs them. A part of struct ct_code. */
struct ct_managed_variables {
    struct ct_mutex lock;     /* guards the allocation */
    struct ct_device *device; /* the device of their memory; NULL: not allocated yet */
    struct ct_backing backing;
};

void ct_managed_variables_init(struct ct_managed_variables *variables);
/* No module may use them any more. */
void ct_managed_variables_finish(struct ct_managed_variables *variables);
/* Returns their address for kernels of `device` and for the host; allocates their memory if needed, which requires no context. Only for
 * code with such variables. NOT_SUPPORTED: the device has no managed memory, or cannot access that of the device on which they were
 * allocated; an initializer is the address of a variable that is not managed. OUT_OF_MEMORY. */
CUresult ct_managed_variables_place(struct ct_managed_variables *variables, const struct ptx2spv_module *ptx, struct ct_device *device,
                                    uint64_t *out_address);

#endif
