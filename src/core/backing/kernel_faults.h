/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of kernels on CPU devices: a stray pointer in a kernel raises a signal in a thread of the driver. Without this the process would
 * end; with it the device is lost (core/device/device_loss.h), a log line names the kernel and the address, and the process goes on. */
#ifndef CT_CORE_KERNEL_FAULTS_H
#define CT_CORE_KERNEL_FAULTS_H

#include "core/device/context.h"

/* Watches the threads that execute the kernels of an open device, if it is a CPU device whose threads are known. With `cuttle check --host-accesses` the
 * signals are handled for all devices. With CUTTLE_CATCH_FAULTS=0 this does nothing. device->lock is held. */
void ct_kernel_faults_watch_locked(struct ct_device *device);

/* If the program has installed a handler of SIGSEGV since then, takes the signal over again, and passes on to that handler what is no fault of a kernel or of
 * watched memory (host_watch.h). False: signals are not handled. */
bool ct_kernel_faults_take_over_again(void);

#endif
