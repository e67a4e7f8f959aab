/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Version Management. */
#include "entry_points.h"

#include "core/base/log.h"

#define CT_CHANNEL "api"

/* cuDriverGetVersion (Driver API: Version Management). The newest CUDA version that this library supports, as 1000 * major + 10 * minor:
 * that of cuda.h. Works before cuInit. INVALID_VALUE: driverVersion is NULL. */
CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuDriverGetVersion: driverVersion is NULL");
    *driverVersion = CUDA_VERSION;
    return CUDA_SUCCESS;
}
