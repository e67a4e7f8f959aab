/* SPDX-License-Identifier: Apache-2.0 */
/* spirv-val as a judge: not for a chip, but for the code that each kind of device gets. */
#include "judge.h"

#include "../ptx/spirv_check.h"

#include <stdio.h>
#include <string.h>

#define ALL_WIDTHS                                                                                                                         \
    .float64 = 1, .int64 = 1, .int16 = 1, .int8 = 1, .storage8 = 1, .storage16 = 1, .atomic_int64_global = 1, .atomic_int64_shared = 1,    \
    .memory_model_device_scope = 1, .shader_clock_subgroup = 1, .shader_clock_device = 1
#define ALIASED_SHARED .shared_explicit_layout = 1, .shared_explicit_layout8 = 1, .shared_explicit_layout16 = 1
/* All workarounds at once: code with any of them must be valid. */
#define ALL_WORKAROUNDS .workarounds = PTX2SPV_WORKAROUNDS
#define ALL_EXACT                                                                                                                          \
    .exact_fma32 = 1, .exact_fma64 = 1, .exact_div32 = 1, .exact_div64 = 1, .exact_sqrt32 = 1, .exact_sqrt64 = 1, .exact_zeros = 1

/* Devices that are as different as possible: the code for a real device consists of the same parts. */
static const struct kind {
    const char *name;
    struct ptx2spv_target target;
} kinds[] = {
    {"vulkan-cpu", /* lavapipe */
     {ALL_WORKAROUNDS, .dialect = PTX2SPV_VULKAN, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 8, .push_constant_bytes = 256,
      .shared_bytes = 32768, .max_block_threads = 1024, ALL_WIDTHS, .float16 = 1, .rounding_rte32 = 1, .rounding_rte64 = 1,
      .keeps_subnormals32 = 1, .exact_div32 = 1, .exact_div64 = 1, .exact_sqrt32 = 1, .exact_sqrt64 = 1, .vectors = PTX2SPV_VECTORS_SPLIT,
      .sampled_images = 1}},
    {"vulkan-gpu", /* NVIDIA's driver, without maximal reconvergence, which Debian 12's spirv-val does not support */
     {ALL_WORKAROUNDS,
      .dialect = PTX2SPV_VULKAN,
      .warp_form = PTX2SPV_WARP_NATIVE,
      .subgroup_size = 32,
      .push_constant_bytes = 256,
      .shared_bytes = 49152,
      .max_block_threads = 1024,
      ALL_WIDTHS,
      ALIASED_SHARED,
      ALL_EXACT,
      .float16 = 1,
      .atomic_float32_add_global = 1,
      .atomic_float32_add_shared = 1,
      .atomic_float64_add_global = 1,
      .atomic_float64_add_shared = 1,
      .denorm_preserve16 = 1,
      .denorm_preserve64 = 1,
      .rounding_rte16 = 1,
      .rounding_rte32 = 1,
      .rounding_rte64 = 1,
      .signed_zero_inf_nan32 = 1,
      .signed_zero_inf_nan64 = 1,
      .fma32_flushes = 1,
      .guards_fma32 = 1,
      .refined_sqrt32 = 1,
      .sampled_images = 1,
      .images_take_any_place = 1}},
    {"vulkan-mask", /* RADV with 64 lanes */
     {ALL_WORKAROUNDS, .dialect = PTX2SPV_VULKAN, .pointer_rule = PTX2SPV_POINTER_OR, .pointer_mask = UINT64_C(0xffff800000000000),
      .warp_form = PTX2SPV_WARP_NATIVE, .subgroup_size = 64, .push_constant_bytes = 256, .shared_bytes = 65536, .max_block_threads = 1024,
      ALL_WIDTHS, ALIASED_SHARED, .float16 = 1, .denorm_preserve32 = 1, .denorm_flush32 = 1, .denorm_preserve64 = 1, .exact_fma32 = 1,
      .rounding_rte32 = 1, .rounding_rte64 = 1}},
    {"opencl-lanes", /* Intel's runtime for CPUs */
     {ALL_WORKAROUNDS, .dialect = PTX2SPV_OPENCL, .warp_form = PTX2SPV_WARP_NATIVE, .subgroup_size = 32, .shared_bytes = 262144,
      .max_block_threads = 1024, ALL_WIDTHS, ALIASED_SHARED, ALL_EXACT, .float16 = 1, .atomic_float32_add_global = 1,
      .atomic_float32_add_shared = 1, .atomic_float64_add_global = 1, .atomic_float64_add_shared = 1, .keeps_subnormals32 = 1,
      .threads_in_turn = 1, .vectorizes = 1, .vectors = PTX2SPV_VECTORS_LOADS_SPLIT}},
    {"opencl-words", /* PoCL */
     {ALL_WORKAROUNDS, .dialect = PTX2SPV_OPENCL, .warp_form = PTX2SPV_WARP_COLLECTIVE, .subgroup_size = 1, .shared_bytes = 1048576,
      .max_block_threads = 1024, ALL_WIDTHS, ALIASED_SHARED, ALL_EXACT, .keeps_subnormals32 = 1, .llvm_functions = 1,
      .vectors = PTX2SPV_VECTORS_LOADS_SPLIT}},
    {"opencl-resumed",
     {ALL_WORKAROUNDS, .dialect = PTX2SPV_OPENCL, .warp_form = PTX2SPV_WARP_COLLECTIVE, .sync_form = PTX2SPV_SYNC_RESUMED,
      .subgroup_size = 1, .shared_bytes = 1048576, .max_block_threads = 1024, ALL_WIDTHS, ALIASED_SHARED, .float16 = 1,
      .keeps_subnormals32 = 1}},
};

static enum verdict validate(struct judge *judge, const struct exhibit *exhibit, struct statistics *out, char *why, size_t why_size)
{
    (void)judge;
    (void)out;
    return spirv_check(exhibit->kernel->words, exhibit->kernel->n_words, why, why_size) ? VERDICT_COMPILED : VERDICT_REFUSED;
}

bool judge_open_validator(struct judge *judge, const char *kind, char *why, size_t why_size)
{
#ifndef HAVE_SPIRV_TOOLS
    snprintf(why, why_size, "built without SPIRV-Tools, no module for %s is validated", kind);
    return false;
#endif
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, kind)) {
            snprintf(judge->name, sizeof judge->name, "%s, spirv-val", kind);
            judge->target = kinds[i].target;
            judge->may_lack = !kinds[i].target.float16;
            judge->is_safe = true;
            judge->compile = validate;
            return true;
        }
    snprintf(why, why_size, "no kind of device is called %s", kind);
    return false;
}
