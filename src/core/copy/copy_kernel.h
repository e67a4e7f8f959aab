/* SPDX-License-Identifier: Apache-2.0 */
/* The copy kernel, for devices whose queue copies within device memory are slower than kernels (info.copies_by_kernel). */
#ifndef CT_CORE_COPY_KERNEL_H
#define CT_CORE_COPY_KERNEL_H

#include "copy.h"

/* Whether the kernel should execute this copy. Creates the kernel when it is first needed. The caller holds no lock. If that fails, it
 * is logged once, and the result is false from then on. */
bool ct_copy_kernel_takes(struct ct_device *device, const struct ct_copy *copy);
/* Records a copy for which ct_copy_kernel_takes is true, between begin and end; the queue copies the bytes beyond whole blocks. */
CUresult ct_copy_kernel_record_locked(struct ct_stream *stream, const struct ct_copy *copy);
/* Called before the device is closed. */
void ct_copy_kernel_destroy(struct ct_device *device);

#endif
