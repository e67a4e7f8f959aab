/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up of the process: enumerates the devices of all backends, selects and sorts them, and initializes them. */
#ifndef CT_CORE_STARTUP_H
#define CT_CORE_STARTUP_H

#include "cuda.h"

/* cuInit. INVALID_VALUE: flags is not 0; NO_DEVICE; or the error of the first backend that failed. Further calls are cheap. */
CUresult ct_process_init(unsigned flags);

#endif
