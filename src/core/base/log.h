/* SPDX-License-Identifier: Apache-2.0 */
/* Logging and failures. CUTTLE_LOG=level[:channel,...]; default warn; lines go to stderr (CUTTLE_LOG_FILE). */
#ifndef CT_CORE_LOG_H
#define CT_CORE_LOG_H

#include "cuda.h"

#include <stdatomic.h>

enum ct_log_level { CT_LOG_OFF, CT_LOG_ERROR, CT_LOG_WARN, CT_LOG_INFO, CT_LOG_DEBUG };
extern atomic_int ct_log_threshold;

/* A file that logs first defines its channel: #define CT_CHANNEL "memory" */
#define ct_log(level, ...)                                                                                                                 \
    ((int)(level) <= atomic_load_explicit(&ct_log_threshold, memory_order_relaxed)                                                         \
         ? ct_log_write((level), CT_CHANNEL, __FILE__, __LINE__, __VA_ARGS__)                                                              \
         : (void)0)
/* Logs an error where it is detected and returns its code. Errors of the application and those for which it probes (INVALID_*, NOT_READY,
 * NOT_FOUND, OUT_OF_MEMORY ...) are logged at level debug; those of the library and of drivers at level warn. */
#define ct_fail(code, ...) ct_log_failure((code), CT_CHANNEL, __FILE__, __LINE__, __VA_ARGS__)

void ct_log_write(enum ct_log_level level, const char *channel, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
CUresult ct_log_failure(CUresult code, const char *channel, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The last message of ct_fail on this thread since ct_log_forget_failure, or "". For callers that add details to it. */
const char *ct_log_last_failure(void);
void ct_log_forget_failure(void);
/* Reads CUTTLE_LOG; called once by process start-up. */
void ct_log_init(void);

#endif
