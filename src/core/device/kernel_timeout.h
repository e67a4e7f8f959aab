/* SPDX-License-Identifier: Apache-2.0 */
/* CUTTLE_KERNEL_TIMEOUT: a kernel that runs for longer is given up, and with it the device (device_loss.h). */
#ifndef CT_CORE_KERNEL_TIMEOUT_H
#define CT_CORE_KERNEL_TIMEOUT_H

/* Starts the thread that watches the kernels of all devices, if the option is set and it does not run yet. Called when a device is opened. */
void ct_kernel_timeout_start(void);

#endif
