/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Profiler Control. No profiling tool ever listens, so there is nothing to switch on or off. */
#include "entry_points.h"

#include "core/device/context.h"
#include "core/base/log.h"

#define CT_CHANNEL "api"

/* cuProfilerInitialize (Driver API: Profiler Control, deprecated). NOT_SUPPORTED, always: so it is since CUDA 12.0. */
CUresult CUDAAPI cuProfilerInitialize(const char *configFile, const char *outputFile, CUoutput_mode outputMode)
{
    (void)configFile;
    (void)outputFile;
    (void)outputMode;
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "cuProfilerInitialize left CUDA with version 12.0");
}

/* What both ends of a profiled stretch of code need: a current context. */
static CUresult check_context(void)
{
    struct ct_context *context;
    CUresult result = ct_context_current(&context);

    if (result == CUDA_SUCCESS)
        ct_context_release(context);
    return result;
}

/* cuProfilerStart (Driver API: Profiler Control). NOT_INITIALIZED, or INVALID_CONTEXT: none is current. */
CUresult CUDAAPI cuProfilerStart(void)
{
    return check_context();
}

/* cuProfilerStop (Driver API: Profiler Control). Errors as above. */
CUresult CUDAAPI cuProfilerStop(void)
{
    return check_context();
}
