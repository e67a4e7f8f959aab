/* SPDX-License-Identifier: Apache-2.0 */
/* CT_WAY_BETWEEN_DEVICES. */
#ifndef CT_CORE_COPY_DEVICES_H
#define CT_CORE_COPY_DEVICES_H

#include "copy.h"

/* At least one end is memory of another device than the stream's. Waits for the stream's work, and returns when the copy is done. `execute`
 * carries out the copies between one device and the host that it consists of. */
typedef CUresult ct_copy_executor(struct ct_stream *stream, const struct ct_copy_command *command);
CUresult ct_copy_between_devices(struct ct_stream *stream, const struct ct_copy *copy, ct_copy_executor *execute);

#endif
