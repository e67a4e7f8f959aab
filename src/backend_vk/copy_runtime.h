/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL runtime that copies, with a context on a device of ours. Only with OpenCL's headers. */
#ifndef CT_VK_COPY_RUNTIME_H
#define CT_VK_COPY_RUNTIME_H

#include "core/backend.h"
#include "core/log.h"

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

enum ct_vk_copy_way { CT_VK_COPY_UP, CT_VK_COPY_DOWN, CT_VK_COPY_WAYS };

typedef cl_int(CL_API_CALL *ct_vk_hand_over)(cl_command_queue, cl_uint, const cl_mem *, cl_uint, const cl_event *, cl_event *);

struct ct_vk_copy_runtime {
    const struct _cl_icd_dispatch *cl;
    ct_vk_hand_over acquire, release; /* of memory that is Vulkan's */
    cl_context context;
    cl_command_queue queues[CT_VK_COPY_WAYS];
    enum ct_log_level complaint; /* of what it does not take: copies then go the ordinary way */
};

/* Takes a while. NULL: it is not there, or does not do; logged as a complaint. The caller is inside the exit gate. */
struct ct_vk_copy_runtime *ct_vk_copy_runtime_make(const struct ct_device_info *info, const char *library, enum ct_log_level complaint);
/* Takes NULL. The caller is inside the exit gate. */
void ct_vk_copy_runtime_destroy(struct ct_vk_copy_runtime *runtime);

#endif
