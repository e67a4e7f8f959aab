/* SPDX-License-Identifier: Apache-2.0 */
/* CT_COPY_METHOD_BETWEEN_DEVICES. */
#ifndef CT_CORE_COPY_DEVICES_H
#define CT_CORE_COPY_DEVICES_H

#include "copy.h"

/* For copies with at least one end in memory of another device than the stream's. Waits for the stream's work, and returns when the copy is
 * complete. It consists of copies between one device and the host, which `execute` executes. */
typedef CUresult ct_copy_executor(struct ct_stream *stream, const struct ct_copy_command *command);
CUresult ct_copy_between_devices(struct ct_stream *stream, const struct ct_copy *copy, ct_copy_executor *execute);

#endif
