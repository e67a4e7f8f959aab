/* SPDX-License-Identifier: Apache-2.0 */
/* Launching kernels. */
#ifndef CT_CORE_LAUNCH_H
#define CT_CORE_LAUNCH_H

#include "core/code/function.h"
#include "core/stream/stream.h"

/* As cuLaunchKernel takes it: dimensions in blocks and threads, shared memory in bytes. */
struct ct_launch_shape {
    unsigned grid[3], block[3];
    unsigned dynamic_shared_bytes;
    bool cooperative; /* blocks may wait for each other */
};

/* Records a launch; does not wait for it. Parameters come as a pointer to each (params), or as one block (extra), not both.
 * INVALID_HANDLE: function or stream; INVALID_CONTEXT: the function is of another context than the stream; INVALID_VALUE: dimensions,
 * shared memory or parameters against the limits of device and kernel; what ct_function_compile gives; LAUNCH_OUT_OF_RESOURCES;
 * COOPERATIVE_LAUNCH_TOO_LARGE: more blocks than cuOccupancyMaxActiveBlocksPerMultiprocessor has room for on the device. */
CUresult ct_launch_kernel(CUfunction function, const struct ct_launch_shape *shape, CUstream stream, void **params, void **extra);
/* Returns r. Unless that is success it warns that the kernel does not run, and why: programs that look at no error would take its results, or
 * how long it took, for good. For the entry points; the reason is what ct_fail told since ct_log_forget_failure. */
CUresult ct_launch_tell(CUfunction function, CUresult r);
/* launch_attributes.c. INVALID_VALUE: no such attribute, not for launches, or a timed event; INVALID_HANDLE: no such event; NOT_SUPPORTED:
 * one that would change what the launch does. */
CUresult ct_launch_check_attributes(const CUlaunchAttribute *attributes, unsigned count);
bool ct_launch_attributes_cooperate(const CUlaunchAttribute *attributes, unsigned count);
/* Records the events among the attributes of a launch, behind it. */
CUresult ct_launch_record_events(CUstream stream, const CUlaunchAttribute *attributes, unsigned count);

/* A compiled kernel, as a queue takes it. */
struct ct_launch_code {
    struct ct_kernel_image *image;
    const struct ptx2spv_kernel_info *info;
    ct_devaddr variables; /* of its module; 0 none */
    const struct ct_kernel_variant *variant; /* compiled for the launch's shape, or NULL */
};
/* cooperative.c: a cooperative launch, between begin and end, of a kernel that ct_function_cooperative gave and that stays until the stream's
 * work is done. `params`: param_bytes of them, without the one that it has besides. OUT_OF_MEMORY. */
CUresult ct_launch_record_cooperative(struct ct_stream *stream, const struct ct_launch_code *code, const struct ct_launch_shape *shape,
                                      const void *params, uint32_t param_bytes);

#endif
