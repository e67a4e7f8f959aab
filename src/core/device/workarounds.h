/* SPDX-License-Identifier: Apache-2.0 */
/* The active workarounds for faults of drivers: the table include/cuttle/workarounds.def, modified by CUTTLE_WORKAROUNDS. */
#ifndef CT_CORE_WORKAROUNDS_H
#define CT_CORE_WORKAROUNDS_H

#include <cuttle/ptx2spv.h>
#include <stdbool.h>
#include <stdint.h>

/* Drivers, as bits of a set. */
enum ct_driver {
    CT_DRIVER_NVIDIA = 1 << 0,   /* Vulkan, NVIDIA's proprietary driver */
    CT_DRIVER_LAVAPIPE = 1 << 1, /* Vulkan on CPUs, of Mesa */
    CT_DRIVER_MESA = 1 << 2,     /* Vulkan, all other drivers of Mesa */
    CT_DRIVER_OTHER_VULKAN = 1 << 3,
    CT_DRIVER_INTEL_CL_CPU = 1 << 4, /* OpenCL, Intel's runtime for CPUs */
    CT_DRIVER_INTEL_CL_GPU = 1 << 5, /* OpenCL, Intel's runtime for GPUs */
    CT_DRIVER_POCL = 1 << 6,         /* OpenCL */
    CT_DRIVER_OTHER_OPENCL = 1 << 7,
    CT_DRIVERS_VULKAN = CT_DRIVER_NVIDIA | CT_DRIVER_LAVAPIPE | CT_DRIVER_MESA | CT_DRIVER_OTHER_VULKAN,
};

/* Bit numbers in a mask. The compiler's workarounds have the same bits as in enum ptx2spv_workaround. */
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

/* Whether a version is between the two bounds of a row. A version is the first number in a text, such as 25.0.7. A version text without a
 * number has every fault; a bound without a number is no bound. */
bool ct_workaround_is_of(const char *first, const char *last, const char *version);

/* The workarounds for a version of a driver. choice: the syntax of CUTTLE_WORKAROUNDS; unknown names are ignored. */
uint32_t ct_workarounds_choose(unsigned driver, const char *version, const char *choice);
/* The same with the option CUTTLE_WORKAROUNDS. */
uint32_t ct_workarounds_of(unsigned driver, const char *version);
/* The first unknown word of a choice, with its length; NULL: there is none. */
const char *ct_workarounds_unknown_or_null(const char *choice, int *length);

#endif
