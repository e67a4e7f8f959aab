/* SPDX-License-Identifier: Apache-2.0 */
/* The table that maps OpenCL's error codes to CUresult. */
#include "cl.h"

#include "core/base/log.h"

#define CT_CHANNEL "opencl"

static const struct {
    cl_int opencl;
    CUresult cuda;
    const char *name;
} results[] = {
#define ROW(code, cuda) {code, cuda, #code}
    ROW(CL_OUT_OF_HOST_MEMORY, CUDA_ERROR_OUT_OF_MEMORY),
    ROW(CL_MEM_OBJECT_ALLOCATION_FAILURE, CUDA_ERROR_OUT_OF_MEMORY),
    ROW(CL_INVALID_BUFFER_SIZE, CUDA_ERROR_OUT_OF_MEMORY),
    ROW(CL_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    ROW(CL_INVALID_WORK_GROUP_SIZE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    ROW(CL_INVALID_WORK_ITEM_SIZE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    ROW(CL_INVALID_GLOBAL_WORK_SIZE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    ROW(CL_BUILD_PROGRAM_FAILURE, CUDA_ERROR_INVALID_IMAGE),
    ROW(CL_COMPILER_NOT_AVAILABLE, CUDA_ERROR_JIT_COMPILER_NOT_FOUND),
    ROW(CL_INVALID_KERNEL_NAME, CUDA_ERROR_INVALID_IMAGE),
    ROW(CL_INVALID_BINARY, CUDA_ERROR_INVALID_IMAGE),
    /* our own arguments are checked before: the only ones left are the words of a module */
    ROW(CL_INVALID_VALUE, CUDA_ERROR_INVALID_IMAGE),
    ROW(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CUDA_ERROR_LAUNCH_FAILED),
    ROW(CL_DEVICE_NOT_AVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE),
    ROW(CL_DEVICE_NOT_FOUND, CUDA_ERROR_NO_DEVICE),
    ROW(CL_INVALID_OPERATION, CUDA_ERROR_NOT_SUPPORTED),
    ROW(CL_PROFILING_INFO_NOT_AVAILABLE, CUDA_ERROR_NOT_READY),
#undef ROW
};

CUresult ct_cl_result(cl_int result, const char *call)
{
    if (result == CL_SUCCESS)
        return CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (results[i].opencl == result)
            return ct_fail(results[i].cuda, "%s: %s", call, results[i].name);
    }
    return ct_fail(CUDA_ERROR_UNKNOWN, "%s: OpenCL error %d", call, (int)result);
}
