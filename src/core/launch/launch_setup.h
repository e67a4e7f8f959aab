/* SPDX-License-Identifier: Apache-2.0 */
/* The launch calls of CUDA 2: block, shared memory and parameters are put into the function one by one, and stay there from launch to
 * launch. They are kept with the function (ct_function.setup), made when first needed. */
#ifndef CT_CORE_LAUNCH_SETUP_H
#define CT_CORE_LAUNCH_SETUP_H

#include "core/code/function.h"

/* Dimensions in threads. INVALID_VALUE: one below 1; those above the limits are refused by the launch. OUT_OF_MEMORY, as all here. */
CUresult ct_launch_setup_block(struct ct_function *function, int x, int y, int z);
/* Of dynamic shared memory. */
CUresult ct_launch_setup_shared(struct ct_function *function, unsigned bytes);
/* Bytes of parameters of the next launches. INVALID_VALUE: more than the function has. */
CUresult ct_launch_setup_param_size(struct ct_function *function, unsigned bytes);
/* INVALID_VALUE: the bytes do not lie within the function's parameters, or are NULL. */
CUresult ct_launch_setup_param(struct ct_function *function, int offset, const void *bytes, unsigned size);
/* Launches a grid of width x height blocks. INVALID_VALUE: a dimension below 1, or no block was set; and what ct_launch_kernel gives. */
CUresult ct_launch_setup_launch(struct ct_function *function, int width, int height, CUstream stream);

#endif
