/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Initialization. */
#include "entry_points.h"

#include "core/base/process.h"
#include "core/setup/startup.h"

/* cuInit. Flags: 0. INVALID_VALUE: other flags; NO_DEVICE: no device that CUTTLE_BACKEND and CUTTLE_DEVICE allow;
 * NOT_INITIALIZED: in a child of a process that had called it; or the error of a backend. Calling again is cheap. */
CUresult CUDAAPI cuInit(unsigned int Flags)
{
    return ct_process_init(Flags);
}
