/* SPDX-License-Identifier: Apache-2.0 */
/* The compute capability that all devices report: libraries choose their PTX by it, and programs the sizes of their launches. */
#ifndef CT_CORE_COMPUTE_CAPABILITY_H
#define CT_CORE_COMPUTE_CAPABILITY_H

struct ct_compute_capability {
    unsigned number; /* ten times the capability */
    unsigned blocks, threads, registers_sm, registers_block, ratio; /* compute_capability.def */
};

/* That of CUTTLE_COMPUTE_CAPABILITY; where that is none, a line says so once, and it is the default. Any thread. */
const struct ct_compute_capability *ct_compute_capability(void);

#endif
