/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL's headers, and definitions that the headers of Debian 12 (2023.02.06) lack; the values are from the Khronos registry. */
#ifndef CT_CL_OPENCL_COMPAT_H
#define CT_CL_OPENCL_COMPAT_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#ifndef CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR /* cl_khr_kernel_clock */
#define CL_DEVICE_KERNEL_CLOCK_CAPABILITIES_KHR 0x1076
#define CL_DEVICE_KERNEL_CLOCK_SCOPE_DEVICE_KHR (1 << 0)
#define CL_DEVICE_KERNEL_CLOCK_SCOPE_SUB_GROUP_KHR (1 << 2)
#endif
#ifndef CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT /* cl_ext_float_atomics */
#define CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT 0x4231
#define CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT 0x4232
#define CL_DEVICE_GLOBAL_FP_ATOMIC_ADD_EXT (1 << 1)
#define CL_DEVICE_LOCAL_FP_ATOMIC_ADD_EXT (1 << 17)
#endif
#ifndef CL_DEVICE_SUB_GROUP_SIZES_INTEL /* cl_intel_required_subgroup_size */
#define CL_DEVICE_SUB_GROUP_SIZES_INTEL 0x4108
#endif

#endif
