/* SPDX-License-Identifier: Apache-2.0 */
/* The failures of late, kept in memory for the application to read (Driver API: Error Log Management), whatever CUTTLE_LOG says. */
#ifndef CT_CORE_LOG_HISTORY_H
#define CT_CORE_LOG_HISTORY_H

#include "cuda.h"

/* What the manual promises to hold at most: bytes of text, the newest. */
#define CT_LOG_HISTORY_BYTES 25600

/* Keeps one line, given without its newline (others become spaces), and drops the oldest ones for it. Any thread, under any lock but those
 * of rank LOG. */
void ct_log_history_add(const char *text);

/* Around a fork: nobody is to hold the lock meanwhile, or the child would wait for it in vain. */
void ct_log_history_hold(void);
void ct_log_history_let_go(void);

/* The number that the next line will have. Lines are numbered from 0 and on, beyond 2^32 from 0 again. */
unsigned ct_log_history_end(void);
/* The number of the oldest line that is still held; the same as the end if there is none. */
unsigned ct_log_history_begin(void);

/* Copies the lines from number *from on, each with its newline, into buffer of *size_bytes, with a final 0. If not all fit, or some are
 * gone, a line at the head says so and the newest follow. *from becomes the number of the next line, *size_bytes what was written
 * without the final 0. INVALID_VALUE: there are lines but not one fits; then *size_bytes becomes 0, *from stays. */
CUresult ct_log_history_read(unsigned *from, char *buffer, size_t *size_bytes);

#endif
