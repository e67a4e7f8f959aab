/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of the application for failures (Driver API: Error Log Management). */
#ifndef CT_CORE_LOG_CALLBACKS_H
#define CT_CORE_LOG_CALLBACKS_H

#include "cuda.h"

/* *out_or_null becomes the handle of the registration. OUT_OF_MEMORY. */
CUresult ct_log_callbacks_add(CUlogsCallback function, void *user, CUlogsCallbackHandle *out_or_null);
/* Afterwards the function is not called any more; waits for active calls in other threads. INVALID_VALUE: it is not registered. */
CUresult ct_log_callbacks_remove(CUlogsCallbackHandle handle);

/* Passes a failure to all callbacks: at once, or, if the thread holds locks of the library, when it releases the last one. */
void ct_log_callbacks_call(const char *text);

#endif
