/* SPDX-License-Identifier: Apache-2.0 */
/* Reports about accesses of the host to memory that a stream still used. */
#ifndef CT_CORE_CHECK_HOST_REPORT_H
#define CT_CORE_CHECK_HOST_REPORT_H

#include "core/backing/host_watch.h"

/* what: the command's name; writes: it writes there. The same place in the program is reported once for each command name. */
void ct_check_report_host_access(const struct ct_host_access *access, const char *what, bool writes);

#endif
