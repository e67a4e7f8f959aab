/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling ahead: once a kernel of a module has been launched, threads of the library compile the module's other kernels while processors are idle,
 * since programs tend to launch several kernels of a module. A launch waits for its own kernel only. */
#ifndef CT_CORE_COMPILE_AHEAD_H
#define CT_CORE_COMPILE_AHEAD_H

#include "launch.h"

/* After a launch of the function with that shape. Returns at once, and does nothing but at the module's first launch. */
void ct_compile_ahead(struct ct_function *launched, const struct ct_launch_shape *shape);

#endif
