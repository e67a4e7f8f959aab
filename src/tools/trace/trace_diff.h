/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two traces: on Cuttle and on NVIDIA's driver, for example, or before and after a change. */
#ifndef CT_TOOLS_TRACE_DIFF_H
#define CT_TOOLS_TRACE_DIFF_H

#include <stdio.h>

enum trace_diff_result { TRACE_DIFF_SAME, TRACE_DIFF_DIFFERENT, TRACE_DIFF_FAILED };

/* Prints which calls only one of them has, which have other results or arguments, and how long the same things took. Times do not count as a difference.
 * FAILED, with a message that begins with `verb`: a file cannot be read. */
enum trace_diff_result trace_diff(const char *verb, const char *path_a, const char *path_b, FILE *to);

#endif
