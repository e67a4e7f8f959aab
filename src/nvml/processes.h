/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that have loaded a library, from /proc. Those of other users are not seen without the right to look at them. */
#ifndef CT_NVML_PROCESSES_H
#define CT_NVML_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>

/* The identifiers of processes that map this file, whatever its path is in their file systems; in ascending order, at most `max`. Returns how
 * many there are, which may be more. */
size_t nvml_processes_of(const char *library, unsigned *out, size_t max);
/* The first word of the command line of a process or, where there is none, its short name; cut to `size` - 1 bytes. False: no such process. */
bool nvml_process_name(unsigned pid, char *out, size_t size);

#endif
