/* SPDX-License-Identifier: Apache-2.0 */
/* The latest failures, kept in memory for the application to read (Driver API: Error Log Management), independent of CUTTLE_LOG. */
#ifndef CT_CORE_LOG_HISTORY_H
#define CT_CORE_LOG_HISTORY_H

#include "cuda.h"

/* The capacity according to the manual: this many bytes of the newest text. */
#define CT_LOG_HISTORY_BYTES 25600

/* Adds one line, given without its newline (newlines inside become spaces), and removes the oldest ones if necessary. Any thread, under any
 * lock except those of rank LOG. */
void ct_log_history_add(const char *text);

/* Called around a fork: no other thread may hold the lock then, or it would never be released in the child. */
void ct_log_history_lock(void);
void ct_log_history_unlock(void);

/* The number of the next new line. Lines are numbered from 0 on, modulo 2^32. */
unsigned ct_log_history_end(void);
/* The number of the oldest stored line; equal to the end if there is none. */
unsigned ct_log_history_begin(void);

/* Copies the lines from number *from on, each with its newline, into a buffer of *size_bytes, with a terminating 0. If not all of them fit,
 * or some were removed, a first line says so and the newest lines follow. *from becomes the number of the next new line, *size_bytes the
 * length without the 0. INVALID_VALUE: there are lines but none fits; then *size_bytes becomes 0 and *from is unchanged. */
CUresult ct_log_history_read(unsigned *from, char *buffer, size_t *size_bytes);

#endif
