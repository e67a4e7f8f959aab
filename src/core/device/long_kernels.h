/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that run for long. At log level info the log names one that has run for two seconds. With CUTTLE_KERNEL_TIMEOUT one that exceeds that time is
 * given up, and with it the device (device_loss.h). */
#ifndef CT_CORE_LONG_KERNELS_H
#define CT_CORE_LONG_KERNELS_H

/* Starts the thread that watches the kernels of all devices, if one of the two is wanted and it does not run yet. Called when a device is opened. */
void ct_long_kernels_watch(void);

#endif
