/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point environment (rounding mode, flush-to-zero, trapping exceptions) in which drivers are started and kernels are
 * compiled.
 *
 * A program may set flush-to-zero for its own threads; many audio programs do. A thread inherits the environment of the thread that creates
 * it, so the threads in which a CPU device runs kernels would flush subnormals as well, and a compiler that folds constants would fold them
 * wrongly. Calls that may create threads or compile therefore run in the default environment and restore the caller's afterwards. */
#ifndef CT_CORE_FLOAT_ENVIRONMENT_H
#define CT_CORE_FLOAT_ENVIRONMENT_H

#include <fenv.h>
#include <stdbool.h>

struct ct_float_environment {
    bool changed; /* false: the caller's environment was the default, and need not be restored */
    fenv_t caller;
};

/* Sets the default environment in the calling thread. *out_before is for ct_float_environment_restore. */
void ct_float_environment_enter(struct ct_float_environment *out_before);
void ct_float_environment_restore(const struct ct_float_environment *before);

#endif
