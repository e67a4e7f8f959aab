/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that a program launches: their names and parameters, which the driver is asked for once. */
#ifndef CT_INTERPOSE_KERNELS_H
#define CT_INTERPOSE_KERNELS_H

#include "forward.h"
#include "recorder.h"

#define KERNEL_PARAMS_MAX 64

#define KERNEL_SHAPES_MAX 16 /* of further ones there are no facts */

struct kernel_shape {
    uint32_t block_threads, dynamic_shared_bytes;
};

struct kernel {
    struct kernel *next;
    CUfunction function;
    bool is_library_kernel; /* the handle is a CUkernel */
    bool is_asked;          /* what follows is valid */
    char name[TRACE_TEXT_BYTES_MAX];
    unsigned n_params;
    size_t param_bytes[KERNEL_PARAMS_MAX];
    struct kernel_shape shapes[KERNEL_SHAPES_MAX]; /* whose facts are recorded */
    unsigned n_shapes;
};

/* Before a call: forgets handles that it destroys, and may mean something else afterwards. */
void kernels_before(const struct forward_call *call);
/* After a call that succeeded: notes which handles are CUkernels. */
void kernels_after(const struct forward_call *call);
/* The kernel that a call launches. False: it launches none, or nothing is known of it. */
bool kernels_find(const struct forward_call *call, struct kernel *out);
/* Records its name, and its parameters in this call. */
void kernels_record(struct trace_record *record, const struct forward_call *call, const struct kernel *kernel);

/* Records, the first time that a kernel is launched in a shape, what the driver says of it. The launch has succeeded. */
void kernels_record_facts(const struct forward_call *call);
void kernels_after_fork(void);

#endif
