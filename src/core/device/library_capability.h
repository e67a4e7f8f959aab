/* SPDX-License-Identifier: Apache-2.0 */
/* The compute capability that a caller sees. Programs and most libraries see that of ct_compute_capability. */
#ifndef CT_CORE_LIBRARY_CAPABILITY_H
#define CT_CORE_LIBRARY_CAPABILITY_H

/* Ten times the compute capability for the library or program that contains the code at `caller`; library_capability.def.
 * CUTTLE_COMPUTE_CAPABILITY applies to all of them. Any thread. */
unsigned ct_library_capability(const void *caller);

#endif
