/* SPDX-License-Identifier: Apache-2.0 */
/* How much shared memory a block of a launch gets. */
#ifndef CT_CORE_BLOCK_SHARED_H
#define CT_CORE_BLOCK_SHARED_H

#include "cuttle/ptx2spv.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_block_shared {
    uint64_t own_bytes; /* the static and the dynamic part, in whole words */
    uint64_t all_bytes; /* with what the threads exchange data through */
};

/* The dynamic part is rounded up where a kernel cannot see that, and what the device has still suffices: launches with many sizes then share few
 * pipelines, since the size is a constant of a Vulkan pipeline. `threads`: of the block. `device_bytes`: what the device has for a block. */
struct ct_block_shared ct_block_shared(const struct ptx2spv_kernel_info *info, uint32_t dynamic_bytes, uint64_t threads,
                                       uint64_t device_bytes);

#endif
