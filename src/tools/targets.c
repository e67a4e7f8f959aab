/* SPDX-License-Identifier: Apache-2.0 */
/* Devices to compile for without having them. */
#include "targets.h"

#include "core/device/workarounds.h"

#include <string.h>

/* The workarounds for the drivers that the targets are named after. A target of no driver in particular has all of its dialect. */
enum {
    VULKAN_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVERS_VULKAN ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    LAVAPIPE_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVER_LAVAPIPE ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    NVIDIA_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVER_NVIDIA ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    INTEL_CPU_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVER_INTEL_CL_CPU ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    POCL_WORKAROUNDS = 0
#define COMPILER(id, name, drivers, first, last, fault, proof, test) | ((drivers) & CT_DRIVER_POCL ? PTX2SPV_WORKAROUND_##id : 0)
#include <cuttle/workarounds.def>
    ,
    OPENCL_WORKAROUNDS = PTX2SPV_WORKAROUNDS & ~VULKAN_WORKAROUNDS
};

/* The features that the compiler requires of every Vulkan 1.3 device that Cuttle supports. */
#define EVERY_DEVICE                                                                                                                       \
    .dialect = PTX2SPV_VULKAN, .pointer_rule = PTX2SPV_POINTER_SAME, .max_block_threads = 1024, .float64 = 1, .float16 = 1, .int64 = 1,    \
    .int16 = 1, .int8 = 1, .storage8 = 1, .storage16 = 1, .atomic_int64_global = 1, .memory_model_device_scope = 1

/* The same for every OpenCL 3.0 device with 64-bit addresses and shared virtual memory. */
#define EVERY_OPENCL                                                                                                                       \
    .dialect = PTX2SPV_OPENCL, .pointer_rule = PTX2SPV_POINTER_SAME, .max_block_threads = 1024, .float64 = 1, .int64 = 1, .int16 = 1,      \
    .int8 = 1, .atomic_int64_global = 1, .atomic_int64_shared = 1, .exact_fma64 = 1, .exact_div64 = 1, .exact_sqrt64 = 1, .exact_zeros = 1

static const struct {
    const char *name;
    struct ptx2spv_target target;
} targets[] = {
    {"vulkan",
     {EVERY_DEVICE, .workarounds = VULKAN_WORKAROUNDS, .push_constant_bytes = 128, .shared_bytes = 32768, .subgroup_size = 32,
      .warp_form = PTX2SPV_WARP_COLLECTIVE}},
    {"lavapipe",
     {EVERY_DEVICE,
      .workarounds = LAVAPIPE_WORKAROUNDS,
      .push_constant_bytes = 256,
      .shared_bytes = 32768,
      .subgroup_size = 8,
      .warp_form = PTX2SPV_WARP_COLLECTIVE,
      .atomic_int64_shared = 1,
      .atomic_float32_add_global = 1,
      .atomic_float32_add_shared = 1,
      .rounding_rte16 = 1,
      .rounding_rte32 = 1,
      .rounding_rte64 = 1,
      .signed_zero_inf_nan16 = 1,
      .signed_zero_inf_nan32 = 1,
      .signed_zero_inf_nan64 = 1,
      .maximal_reconvergence = 1,
      .shader_clock_subgroup = 1,
      .shader_clock_device = 1,
      .exact_div32 = 1,
      .exact_div64 = 1,
      .exact_sqrt32 = 1,
      .exact_sqrt64 = 1,
      .keeps_subnormals32 = 1,
      .inlines = 1,
      .vectors = PTX2SPV_VECTORS_SPLIT}},
    {"h200",
     {EVERY_DEVICE,
      .workarounds = NVIDIA_WORKAROUNDS,
      .push_constant_bytes = 256,
      .shared_bytes = 49152,
      .subgroup_size = 32,
      .warp_form = PTX2SPV_WARP_NATIVE,
      .shared_explicit_layout = 1,
      .shared_explicit_layout8 = 1,
      .shared_explicit_layout16 = 1,
      .atomic_int64_shared = 1,
      .atomic_float32_add_global = 1,
      .atomic_float32_add_shared = 1,
      .atomic_float64_add_global = 1,
      .atomic_float64_add_shared = 1,
      .denorm_preserve16 = 1,
      .denorm_preserve64 = 1,
      .rounding_rte16 = 1,
      .rounding_rte32 = 1,
      .rounding_rte64 = 1,
      .signed_zero_inf_nan16 = 1,
      .signed_zero_inf_nan32 = 1,
      .signed_zero_inf_nan64 = 1,
      .maximal_reconvergence = 1,
      .shader_clock_subgroup = 1,
      .shader_clock_device = 1,
      .exact_fma16 = 1,
      .exact_fma32 = 1,
      .exact_fma64 = 1,
      .exact_div32 = 1,
      .exact_div64 = 1,
      .exact_sqrt64 = 1,
      .fma32_flushes = 1,
      .guards_fma32 = 1,
      .refined_sqrt32 = 1,
      .refined_roots64 = 1,
      .near_functions = PTX2SPV_NEAR_ALL,
      .exact_zeros = 1,
      .unroll_hint = 1}},
    {"opencl",
     {EVERY_OPENCL, .workarounds = OPENCL_WORKAROUNDS, .shared_bytes = 32768, .subgroup_size = 8, .warp_form = PTX2SPV_WARP_COLLECTIVE}},
    {"intel_cpu",
     {EVERY_OPENCL, .workarounds = INTEL_CPU_WORKAROUNDS, .shared_bytes = 262144, .subgroup_size = 32, .warp_form = PTX2SPV_WARP_NATIVE,
      .threads_in_turn = 1, .float16 = 1, .atomic_float32_add_global = 1, .atomic_float32_add_shared = 1, .atomic_float64_add_global = 1,
      .atomic_float64_add_shared = 1, .exact_fma16 = 1, .exact_fma32 = 1, .exact_div32 = 1, .exact_sqrt32 = 1,
      .near_functions = PTX2SPV_NEAR_ALL, .vectorizes = 1, .vectors = PTX2SPV_VECTORS_LOADS_SPLIT}},
    {"pocl",
     {EVERY_OPENCL, .workarounds = POCL_WORKAROUNDS, .shared_bytes = 1048576, .subgroup_size = 32, .warp_form = PTX2SPV_WARP_COLLECTIVE,
      .atomic_float32_add_global = 1, .atomic_float32_add_shared = 1, .atomic_float64_add_global = 1, .atomic_float64_add_shared = 1,
      .exact_fma32 = 1, .exact_div32 = 1, .exact_sqrt32 = 1, .near_functions = PTX2SPV_NEAR_ALL, .llvm_functions = 1, .vectorizes = 1,
      .vectors = PTX2SPV_VECTORS_LOADS_SPLIT}},
};

const struct ptx2spv_target *tool_target(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i].target;
    return NULL;
}
