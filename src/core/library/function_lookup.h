/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the functions of handles. */
#ifndef CT_CORE_FUNCTION_LOOKUP_H
#define CT_CORE_FUNCTION_LOOKUP_H

#include "core/code/function.h"

/* Returns a function of a loaded module of any context, retained, with a reference to its context; or, if the handle is a library's
 * kernel (CUkernel), its function in `context`, to which the caller holds a reference. INVALID_HANDLE, CONTEXT_IS_DESTROYED; for a
 * kernel also the errors of ct_library_module. */
CUresult ct_function_lookup(CUfunction handle, struct ct_context *context, struct ct_function **out);
/* The same in the current context, for a call whose other arguments are valid if `is_valid`. INVALID_CONTEXT: there is none; then
 * INVALID_VALUE; then the errors of the handle. */
CUresult ct_function_lookup_current(CUfunction handle, bool is_valid, struct ct_function **out);

#endif
