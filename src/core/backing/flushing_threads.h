/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a driver that execute kernels, and flush subnormals: lavapipe sets the processor's modes FTZ and DAZ in them from Mesa 26 on (lp_cs_tpool.c), for f32 and
 * f64, and Vulkan has no way to ask it not to. */
#ifndef CT_CORE_FLUSHING_THREADS_H
#define CT_CORE_FLUSHING_THREADS_H

#include "core/device/context.h"

#include <signal.h>
#include <ucontext.h>

/* Has each of the driver's threads run a kernel that makes it keep subnormals from then on: once for each device, before its first kernel. Requires the handler of
 * kernel_faults.h. False: some may still flush, as all do on other processors than x86-64. */
bool ct_flushing_threads_mend(struct ct_device *device, struct ct_backend_device *opened);

/* In the handler of SIGSEGV: whether the fault is that kernel's. Then the thread keeps subnormals, and the instruction is to be executed again. */
bool ct_flushing_threads_takes(const siginfo_t *info, ucontext_t *state);

#endif
