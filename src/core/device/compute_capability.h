/* SPDX-License-Identifier: Apache-2.0 */
/* The compute capability that all devices report. It determines which PTX libraries choose, and the launch sizes of programs. */
#ifndef CT_CORE_COMPUTE_CAPABILITY_H
#define CT_CORE_COMPUTE_CAPABILITY_H

struct ct_compute_capability {
    unsigned number;                                                /* ten times the capability */
    unsigned blocks, threads, registers_sm, registers_block, ratio; /* compute_capability.def */
    unsigned shared_sm, shared_block, shared_reserved;              /* the same, in bytes */
};

/* The one named by CUTTLE_COMPUTE_CAPABILITY; if that is invalid a warning is logged once and the default is used. Any thread. */
const struct ct_compute_capability *ct_compute_capability(void);

/* The row of compute_capability.def for ten times the capability. */
const struct ct_compute_capability *ct_compute_capability_find_or_null(unsigned long number);

#endif
