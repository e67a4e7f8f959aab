/* SPDX-License-Identifier: Apache-2.0 */
/* The functions behind handles. */
#ifndef CT_CORE_FUNCTION_LOOKUP_H
#define CT_CORE_FUNCTION_LOOKUP_H

#include "core/code/function.h"

/* A function of a loaded module of any context, retained, with one use of its context; or, where the handle is a library's kernel
 * (CUkernel), its function in `context`, of which the caller holds a use. INVALID_HANDLE, CONTEXT_IS_DESTROYED; for a kernel also what
 * ct_library_module gives. */
CUresult ct_function_lookup(CUfunction handle, struct ct_context *context, struct ct_function **out);
/* The same in the current context, for a call whose other arguments are good if `is_valid`. INVALID_CONTEXT: there is none; then
 * INVALID_VALUE; then what the handle gives. */
CUresult ct_function_lookup_current(CUfunction handle, bool is_valid, struct ct_function **out);

#endif
