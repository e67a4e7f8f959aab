/* SPDX-License-Identifier: Apache-2.0 */
/* Making contexts and their parts, and taking them down. */
#ifndef CT_CORE_CONTEXT_SETUP_H
#define CT_CORE_CONTEXT_SETUP_H

#include "core/device/context.h"

/* A context of its own for cuCtxCreate; published, active, not current anywhere. The caller gets no use: the handle stands for it. */
CUresult ct_context_create(struct ct_device *device, unsigned flags, unsigned api_version, CUcontext *out);
/* Ends it: no call enters any more, and its parts go when the last call has left. Not for primary contexts. INVALID_CONTEXT. */
CUresult ct_context_destroy(CUcontext handle);
/* INVALID_VALUE: bits that CUctx_flags lacks, or two kinds of scheduling. */
CUresult ct_context_check_flags(unsigned flags);

/* The primary context of a device: its struct and handle are there from cuInit on. */
CUresult ct_context_make_primary(struct ct_device *device, struct ct_context **out);
void ct_context_unmake_primary(struct ct_context *context); /* never activated; takes NULL */
CUresult ct_context_retain_primary(struct ct_device *device, CUcontext *out);
CUresult ct_context_release_primary(struct ct_device *device); /* INVALID_CONTEXT: not retained */
CUresult ct_context_reset_primary(struct ct_device *device);

#endif
