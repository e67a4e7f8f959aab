/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the application that are told of failures (Driver API: Error Log Management). */
#ifndef CT_CORE_LOG_CALLBACKS_H
#define CT_CORE_LOG_CALLBACKS_H

#include "cuda.h"

/* *out_or_null names the registration. OUT_OF_MEMORY. */
CUresult ct_log_callbacks_add(CUlogsCallback function, void *user, CUlogsCallbackHandle *out_or_null);
/* Afterwards the function is not called any more; a call under way in another thread is waited for. INVALID_VALUE: no registration. */
CUresult ct_log_callbacks_remove(CUlogsCallbackHandle handle);

/* Tells all of a failure: at once, or, if the thread holds locks of ours, when it gives the last one back. */
void ct_log_callbacks_tell(const char *text);

#endif
