/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and destruction of contexts and their parts. */
#ifndef CT_CORE_CONTEXT_SETUP_H
#define CT_CORE_CONTEXT_SETUP_H

#include "core/device/context.h"

/* Creates a non-primary context for cuCtxCreate; published, active, not current in any thread. The caller gets the handle but no use. */
CUresult ct_context_create(struct ct_device *device, unsigned flags, unsigned api_version, CUcontext *out);
/* No new call can enter the context, and its parts are destroyed when the last call has left. INVALID_CONTEXT, also if it is primary. */
CUresult ct_context_destroy(CUcontext handle);
/* INVALID_VALUE: bits that are not in CUctx_flags, or more than one scheduling flag. */
CUresult ct_context_check_flags(unsigned flags);

/* The primary context of a device: its struct and handle exist from cuInit on. */
CUresult ct_context_make_primary(struct ct_device *device, struct ct_context **out);
void ct_context_unmake_primary(struct ct_context *context); /* one that was never activated; accepts NULL */
CUresult ct_context_retain_primary(struct ct_device *device, CUcontext *out);
CUresult ct_context_release_primary(struct ct_device *device); /* INVALID_CONTEXT: not retained */
CUresult ct_context_reset_primary(struct ct_device *device);

#endif
