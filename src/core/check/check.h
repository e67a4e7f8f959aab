/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle check` in the library: what checked kernels need for a launch, and what is reported at the end. */
#ifndef CT_CORE_CHECK_H
#define CT_CORE_CHECK_H
/* Parts: check_end.c. */

#include "core/code/function.h"
#include "ranges.h"

/* What the parameter of a checked kernel points to: struct ptx2spv_check, the ranges of its parameters, and all ranges. */
struct ct_check_block {
    struct ct_function *function; /* borrowed: the kernel in the form that runs */
    uint64_t sites;               /* CUDA address */
    uint64_t launch;
    uint64_t variables; /* as in struct ptx2spv_check */
    struct ct_check_ranges ranges;
};

/* Before the launch of a function, checked or not, is recorded. */
void ct_check_note_launch(const struct ct_function *function);
/* Makes it for a launch of a function whose info.check_param_offset is not 0, with packed parameters. extra: further ranges that the kernel may access. Finish
 * it on success. OUT_OF_MEMORY. */
CUresult ct_check_block_init(struct ct_check_block *block, struct ct_function *function, const unsigned char *params,
                             const struct ptx2spv_check_range *extra, size_t n_extra);
void ct_check_block_finish(struct ct_check_block *block);
size_t ct_check_block_bytes(const struct ct_check_block *block);
/* Writes it to host memory, 16-byte aligned, which kernels see at an address, and that address to the packed parameters of the launch. */
void ct_check_block_write(const struct ct_check_block *block, void *host, uint64_t address, unsigned char *params);

/* check_end.c: called when the parts of a context are destroyed, before its memory is. */
void ct_check_end_context(struct ct_context *context);
/* Called once, at start-up: what is to be reported when the process exits. */
void ct_check_watch_exit(void);

#endif
