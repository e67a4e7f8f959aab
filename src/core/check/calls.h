/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the API that fail, and after which the program goes on as if they had not. */
#ifndef CT_CORE_CHECK_CALLS_H
#define CT_CORE_CHECK_CALLS_H

#include "cuda.h"

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool ct_check_calls_watched; /* relaxed: it orders nothing */

/* Whether calls are watched at all: from start-up on, with CUTTLE_CHECK. */
static inline bool ct_check_watches_calls(void)
{
    return atomic_load_explicit(&ct_check_calls_watched, memory_order_relaxed);
}
/* A call of the application has ended; error_name: that of its result, borrowed for ever. */
void ct_check_call(const char *symbol, CUresult result, const char *error_name);
/* The process exits with a status in the calling thread. */
void ct_check_calls_end(int status);
void ct_check_calls_watch(void); /* called once, at start-up */

#endif
