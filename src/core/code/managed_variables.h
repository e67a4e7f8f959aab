/* SPDX-License-Identifier: Apache-2.0 */
/* The managed variables of a piece of code: one set of them, whichever contexts have modules of it. */
#ifndef CT_CORE_MANAGED_VARIABLES_H
#define CT_CORE_MANAGED_VARIABLES_H

#include "core/device/context.h"
#include "core/backing/memory_backing.h"

/* Zero but for the lock until the first module needs them. A part of struct ct_code. */
struct ct_managed_variables {
    struct ct_mutex lock;     /* guards making them */
    struct ct_device *device; /* whose memory they are in; NULL: not made yet */
    struct ct_backing backing;
};

void ct_managed_variables_init(struct ct_managed_variables *variables);
/* No module uses them any more. */
void ct_managed_variables_finish(struct ct_managed_variables *variables);
/* Where they are for kernels of `device` and for the host; made now if need be, for which no context is needed. Only for code that has
 * such variables. NOT_SUPPORTED: the device has no managed memory, or does not reach that of the device they were made on; an
 * initializer is the address of a variable that is not managed. OUT_OF_MEMORY. */
CUresult ct_managed_variables_place(struct ct_managed_variables *variables, const struct ptx2spv_module *ptx, struct ct_device *device,
                                    uint64_t *out_address);

#endif
