/* SPDX-License-Identifier: Apache-2.0 */
/* The launch calls of CUDA 2: block, shared memory and parameters are set on the function one by one and persist across launches.
 * They are stored with the function (ct_function.setup), which is allocated on first use. */
#ifndef CT_CORE_LAUNCH_SETUP_H
#define CT_CORE_LAUNCH_SETUP_H

#include "launch.h"

/* Dimensions in threads. INVALID_VALUE: below 1, or too many threads; the launch checks other limits. OUT_OF_MEMORY, as for all here. */
CUresult ct_launch_setup_block(struct ct_function *function, int x, int y, int z);
/* Sets the size of dynamic shared memory. */
CUresult ct_launch_setup_shared(struct ct_function *function, unsigned bytes);
/* Bytes of parameters of the next launches. INVALID_VALUE: more than the function has. */
CUresult ct_launch_setup_param_size(struct ct_function *function, unsigned bytes);
/* INVALID_VALUE: the bytes do not lie within the function's parameters, or are NULL. */
CUresult ct_launch_setup_param(struct ct_function *function, int offset, const void *bytes, unsigned size);
/* Reads the settings, with a grid of one block; a block of 0 threads means that none was set. The caller frees the parameters. */
CUresult ct_launch_setup_read(struct ct_function *function, struct ct_launch_shape *out, void **out_params, size_t *out_size);

#endif
