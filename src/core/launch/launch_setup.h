/* SPDX-License-Identifier: Apache-2.0 */
/* The launch calls of CUDA 2: block, shared memory and parameters are put into the function one by one, and stay there from launch to
 * launch. They are kept with the function (ct_function.setup), made when first needed. */
#ifndef CT_CORE_LAUNCH_SETUP_H
#define CT_CORE_LAUNCH_SETUP_H

#include "launch.h"

/* Dimensions in threads. INVALID_VALUE: one below 1; those above the limits are refused by the launch. OUT_OF_MEMORY, as all here. */
CUresult ct_launch_setup_block(struct ct_function *function, int x, int y, int z);
/* Of dynamic shared memory. */
CUresult ct_launch_setup_shared(struct ct_function *function, unsigned bytes);
/* Bytes of parameters of the next launches. INVALID_VALUE: more than the function has. */
CUresult ct_launch_setup_param_size(struct ct_function *function, unsigned bytes);
/* INVALID_VALUE: the bytes do not lie within the function's parameters, or are NULL. */
CUresult ct_launch_setup_param(struct ct_function *function, int offset, const void *bytes, unsigned size);
/* What is set now, for a grid of one block; a block of 0 threads: none was set. The caller frees the parameters. */
CUresult ct_launch_setup_read(struct ct_function *function, struct ct_launch_shape *out, void **out_params, size_t *out_size);

#endif
