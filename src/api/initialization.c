/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Initialization. */
#include "entry_points.h"

#include "core/base/process.h"
#include "core/setup/startup.h"

/* cuInit. Flags: 0. INVALID_VALUE: nonzero flags; NO_DEVICE: CUTTLE_BACKEND and CUTTLE_DEVICE allow no device; NOT_INITIALIZED: in a
 * child of a process that had called cuInit; or the error of a backend. Repeated calls are cheap. */
CUresult CUDAAPI cuInit(unsigned int Flags)
{
    return ct_process_init(Flags);
}
