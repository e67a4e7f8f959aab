/* SPDX-License-Identifier: Apache-2.0 */
/* Reports about accesses of kernels. */
#ifndef CT_CORE_CHECK_KERNEL_REPORT_H
#define CT_CORE_CHECK_KERNEL_REPORT_H

#include "sites.h"

/* The kind of a fault: a constant, which can be compared by its address. */
const char *ct_check_kind(const struct ptx2spv_check_site *site);
/* Writes a report. False: it is suppressed. */
bool ct_check_report_fault(const struct ct_check_sites *sites, const struct ptx2spv_check_site *site);

#endif
