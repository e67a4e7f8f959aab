/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a context. */
#ifndef CT_CORE_CONTEXT_LIMITS_H
#define CT_CORE_CONTEXT_LIMITS_H

#include "core/device/context.h"

/* Values are in the units of cuCtxSetLimit. UNSUPPORTED_LIMIT; INVALID_VALUE: no such limit, or out of range. */
CUresult ct_context_set_limit(struct ct_context *context, CUlimit limit, size_t value);
CUresult ct_context_get_limit(struct ct_context *context, CUlimit limit, size_t *out);

#endif
