/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the API that fail, and after which the program goes on as if they had not. */
#ifndef CT_CORE_CHECK_CALLS_H
#define CT_CORE_CHECK_CALLS_H

#include "cuda.h"

#include <stdbool.h>

/* Whether calls are watched at all: from start-up on, with CUTTLE_CHECK. */
bool ct_check_watches_calls(void);
/* A call of the application has ended; error_name: that of its result, borrowed for ever. */
void ct_check_call(const char *symbol, CUresult result, const char *error_name);
/* The process exits with a status in the calling thread. */
void ct_check_calls_end(int status);
void ct_check_calls_watch(void); /* called once, at start-up */

#endif
