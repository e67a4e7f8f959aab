/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills within device memory as launches: for recordings (struct ct_recording_calls), which refer to memory by addresses only. */
#ifndef CT_CORE_MEMORY_KERNELS_H
#define CT_CORE_MEMORY_KERNELS_H

#include "memset.h"

/* What a launch does: one of the kernels, with these parameters. */
struct ct_memory_launch {
    unsigned kernel; /* of a table in memory_kernels.c */
    uint32_t grid[3];
    uint64_t params[7];
};

/* Finds the launch that does the same as a copy or a fill in `stream`. False: kernels cannot, or should not, do it, since the memory is not in the
 * device, the ends overlap, or the host does it faster. */
bool ct_memory_kernels_copy(const struct ct_stream *stream, const struct ct_copy_command *command, struct ct_memory_launch *out);
bool ct_memory_kernels_fill(const struct ct_stream *stream, const struct ct_fill *fill, struct ct_memory_launch *out);
/* Compiles the kernel of a launch for the stream's device; the caller holds no lock. *out refers to the parameters, and its fault address is not set, since these
 * kernels report no fault. ct_memory_kernels_release releases its variant. False: the kernel does not compile. */
bool ct_memory_kernels_prepare(const struct ct_stream *stream, const struct ct_memory_launch *memory, struct ct_launch *out);
void ct_memory_kernels_release(const struct ct_stream *stream, const struct ct_launch *launch);
bool ct_memory_launch_equal(const struct ct_memory_launch *a, const struct ct_memory_launch *b);
/* Called before the device is closed. */
void ct_memory_kernels_destroy(struct ct_device *device);

#endif
