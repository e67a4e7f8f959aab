/* SPDX-License-Identifier: Apache-2.0 */
/* The compute capability that a caller sees. Programs and most libraries see that of ct_compute_capability. */
#ifndef CT_CORE_LIBRARY_CAPABILITY_H
#define CT_CORE_LIBRARY_CAPABILITY_H

#include "compute_capability.h"

/* The compute capability of a device for the library or program that contains the code at `caller`; library_capability.def. It determines its number and
 * the shared memory that blocks may opt in to. CUTTLE_LIBRARY_COMPUTE_CAPABILITY names another one for all of them, and
 * CUTTLE_COMPUTE_CAPABILITY for all other callers. Any thread. */
const struct ct_compute_capability *ct_library_capability(const struct ct_device_info *info, const void *caller);

/* The shared memory that blocks may opt in to, in bytes, as it is reported to that library or program. Any thread. */
unsigned ct_library_shared_optin(const struct ct_device_info *info, const void *caller);

#endif
