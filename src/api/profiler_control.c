/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Profiler Control. `cuttle profile` traces from outside, and finds these calls in its trace; so there is nothing to switch on or off. */
#include "entry_points.h"

#include "core/device/context.h"
#include "core/base/log.h"

#define CT_CHANNEL "api"

/* cuProfilerInitialize (Driver API: Profiler Control, deprecated). Always NOT_SUPPORTED, as in NVIDIA's driver since CUDA 12.0. */
CUresult CUDAAPI cuProfilerInitialize(const char *configFile, const char *outputFile, CUoutput_mode outputMode)
{
    (void)configFile;
    (void)outputFile;
    (void)outputMode;
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "cuProfilerInitialize was removed in CUDA 12.0");
}

/* The common check of cuProfilerStart and cuProfilerStop: a context must be current. */
static CUresult check_context(void)
{
    struct ct_context *context;
    CUresult result = ct_context_current(&context);

    if (result == CUDA_SUCCESS)
        ct_context_release(context);
    return result;
}

/* cuProfilerStart (Driver API: Profiler Control). NOT_INITIALIZED; INVALID_CONTEXT: no context is current. */
CUresult CUDAAPI cuProfilerStart(void)
{
    return check_context();
}

/* cuProfilerStop (Driver API: Profiler Control). Errors as above. */
CUresult CUDAAPI cuProfilerStop(void)
{
    return check_context();
}
