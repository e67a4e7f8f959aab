/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that copies, for devices whose own copies within their memory are slower than their kernels (info.copies_by_kernel). */
#ifndef CT_CORE_COPY_KERNEL_H
#define CT_CORE_COPY_KERNEL_H

#include "copy.h"

/* Whether the kernel is to do this copy; makes it when it is first asked for. The caller holds no lock. A kernel that cannot be made is
 * logged, and the answer is no from then on. */
bool ct_copy_kernel_takes(struct ct_device *device, const struct ct_copy *copy);
/* Records a copy that the kernel takes, in a stream that is begun; what is no whole block of the kernel's the queue copies. */
CUresult ct_copy_kernel_record_locked(struct ct_stream *stream, const struct ct_copy *copy);
/* Before the device is closed. */
void ct_copy_kernel_destroy(struct ct_device *device);

#endif
