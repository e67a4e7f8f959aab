/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up of the process: the backends are asked for their devices, which are chosen, put in order, and made. */
#ifndef CT_CORE_STARTUP_H
#define CT_CORE_STARTUP_H

#include "cuda.h"

/* cuInit. INVALID_VALUE: flags; NO_DEVICE; or why a backend failed. Calling again is cheap. */
CUresult ct_process_init(unsigned flags);

#endif
