/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills within device memory as launches: for recordings (struct ct_recording_calls), which refer to memory by addresses only. */
#ifndef CT_CORE_MEMORY_KERNELS_H
#define CT_CORE_MEMORY_KERNELS_H

#include "memset.h"

/* A launch and its parameters. The fault address is not set: these kernels report none. */
struct ct_memory_launch {
    struct ct_launch launch; /* its `params` are those below */
    uint64_t params[7];
};

/* Makes the launch that does the same as a copy or a fill in `stream`. Compiles the kernel that it needs; the caller holds no lock. False: kernels
 * cannot, or should not, do it, since the memory is not in the device, the ends overlap, or the host does it faster. */
bool ct_memory_kernels_copy(const struct ct_stream *stream, const struct ct_copy_command *command, struct ct_memory_launch *out);
bool ct_memory_kernels_fill(const struct ct_stream *stream, const struct ct_fill *fill, struct ct_memory_launch *out);
/* Called before the device is closed. */
void ct_memory_kernels_destroy(struct ct_device *device);

#endif
