/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that the user does not want (CUTTLE_CHECK_SUPPRESSIONS). */
#ifndef CT_CORE_CHECK_SUPPRESSIONS_H
#define CT_CORE_CHECK_SUPPRESSIONS_H

#include <stdbool.h>

/* Whether a line of the file is for this kind of report and its text. */
bool ct_suppressions_match(const char *kind, const char *text);

#endif
