/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies between page-locked and device memory, made beside the queues where the backend has a way (copy_beside of backend.h). */
#ifndef CT_CORE_COPY_BESIDE_H
#define CT_CORE_COPY_BESIDE_H

#include "copy.h"

/* Whether this copy goes that way; then ct_copy_beside_run follows. It may take milliseconds. The caller holds no lock. */
bool ct_copy_beside_takes(const struct ct_stream *stream, const struct ct_copy *copy);
/* Makes such a copy in stream order: `wait`: before it comes back; else by the stream's worker. */
CUresult ct_copy_beside_run(struct ct_stream *stream, const struct ct_copy *copy, bool wait);

#endif
