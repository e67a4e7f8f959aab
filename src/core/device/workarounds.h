/* SPDX-License-Identifier: Apache-2.0 */
/* Which faults of drivers are worked around: the table include/cuttle/workarounds.def, and what CUTTLE_WORKAROUNDS makes of it. */
#ifndef CT_CORE_WORKAROUNDS_H
#define CT_CORE_WORKAROUNDS_H

#include <cuttle/ptx2spv.h>
#include <stdbool.h>
#include <stdint.h>

/* Drivers, as bits of a set. */
enum ct_driver {
    CT_DRIVER_NVIDIA = 1 << 0,   /* Vulkan, NVIDIA's own */
    CT_DRIVER_LAVAPIPE = 1 << 1, /* Vulkan on CPUs, of Mesa */
    CT_DRIVER_MESA = 1 << 2,     /* Vulkan, all others of Mesa */
    CT_DRIVER_OTHER_VULKAN = 1 << 3,
    CT_DRIVER_INTEL_CL_CPU = 1 << 4, /* OpenCL, Intel's runtime for CPUs */
    CT_DRIVER_INTEL_CL_GPU = 1 << 5, /* OpenCL, Intel's runtime for GPUs */
    CT_DRIVER_POCL = 1 << 6,         /* OpenCL */
    CT_DRIVER_OTHER_OPENCL = 1 << 7,
    CT_DRIVERS_VULKAN = CT_DRIVER_NVIDIA | CT_DRIVER_LAVAPIPE | CT_DRIVER_MESA | CT_DRIVER_OTHER_VULKAN,
};

/* Bits of a mask. Those of the compiler are those of enum ptx2spv_workaround. */
enum ct_workaround_index {
#define COMPILER(id, name, drivers, first, last, fault, proof, test) CT_WORKAROUND_INDEX_##id,
#define LIBRARY(id, name, drivers, first, last, fault, proof, test) CT_WORKAROUND_INDEX_##id,
#include <cuttle/workarounds.def>
    CT_WORKAROUND_COUNT
};
#define CT_WORKAROUND(id) (UINT32_C(1) << CT_WORKAROUND_INDEX_##id)

struct ct_workaround {
    const char *name;
    unsigned drivers; /* enum ct_driver */
    const char *first, *last, *fault, *proof, *test;
    bool of_compiler;
};
const struct ct_workaround *ct_workaround(enum ct_workaround_index index);

/* Whether a version is between the two bounds of a row. A version is the first number with points, such as 25.0.7, in a text; a text
 * without one is a version that has every fault, and as a bound it is none. */
bool ct_workaround_is_of(const char *first, const char *last, const char *version);

/* The workarounds for a driver of a version. choice: as CUTTLE_WORKAROUNDS has it; what is no name of a workaround is passed over. */
uint32_t ct_workarounds_choose(unsigned driver, const char *version, const char *choice);
/* The same by the option. */
uint32_t ct_workarounds_of(unsigned driver, const char *version);
/* The first word of a choice that means nothing, with its length; NULL: there is none. */
const char *ct_workarounds_unknown_or_null(const char *choice, int *length);

#endif
