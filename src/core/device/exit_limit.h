/* SPDX-License-Identifier: Apache-2.0 */
/* The process ends although a kernel never does. */
#ifndef CT_CORE_EXIT_LIMIT_H
#define CT_CORE_EXIT_LIMIT_H

#include <stdbool.h>

/* Called when a device has been opened, whose driver has then registered its exit handlers: limits the time that these may take if a kernel
 * is running when the process exits. */
void ct_exit_limit_arm(void);
/* Whether the process exits in limited time. Safe in signal handlers. */
bool ct_exit_is_limited(void);

#endif
