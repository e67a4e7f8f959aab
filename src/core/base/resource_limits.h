/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that the application, or the shell that has started it, may have set (setrlimit). The kernel ends a process by a signal that exceeds
 * some of them, and drivers crash when memory cannot be mapped, so they are checked before. */
#ifndef CT_CORE_RESOURCE_LIMITS_H
#define CT_CORE_RESOURCE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* The size that a file may have (RLIMIT_FSIZE); UINT64_MAX: any. Exceeding it raises SIGXFSZ, also with files in memory. */
uint64_t ct_limit_of_files(void);
/* Whether `bytes` more memory can be mapped. Always true if there is no limit (RLIMIT_AS, RLIMIT_DATA): memory that the machine does not
 * have ends processes in other ways. */
bool ct_limit_allows_mapping(uint64_t bytes);

#endif
