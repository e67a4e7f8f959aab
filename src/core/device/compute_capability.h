/* SPDX-License-Identifier: Apache-2.0 */
/* The compute capability that devices report. It determines which PTX libraries choose, and the launch sizes of programs. */
#ifndef CT_CORE_COMPUTE_CAPABILITY_H
#define CT_CORE_COMPUTE_CAPABILITY_H

#include "backend.h"

struct ct_compute_capability {
    unsigned number;                                                /* ten times the capability */
    unsigned blocks, threads, registers_sm, registers_block, ratio; /* compute_capability.def */
    unsigned shared_sm, shared_block, shared_reserved;              /* the same, in bytes */
};

/* The one named by CUTTLE_COMPUTE_CAPABILITY; without that, or if it is invalid, for which a warning is logged once, that of the device. Any
 * thread. */
const struct ct_compute_capability *ct_compute_capability(const struct ct_device_info *info);

/* Ten times the one by which the PTX of a fat binary is chosen, which is read before it is known for which device: that of the process's first
 * device, which start-up notes. */
void ct_compute_capability_note_first(const struct ct_device_info *info);
unsigned ct_compute_capability_for_images(void);

/* The row of compute_capability.def for ten times the capability. */
const struct ct_compute_capability *ct_compute_capability_find_or_null(unsigned long number);

/* The row that the value of an option names. NULL: the value is empty, or invalid, for which a warning is logged. */
const struct ct_compute_capability *ct_compute_capability_chosen_or_null(const char *option, const char *value);

#endif
