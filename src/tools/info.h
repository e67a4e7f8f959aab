/* SPDX-License-Identifier: Apache-2.0 */
/* The text of `cuttle info`, for reports. */
#ifndef CT_TOOLS_INFO_H
#define CT_TOOLS_INFO_H

#include <stdio.h>

/* Prints the devices of the process, after cuInit. */
void tool_print_info(FILE *to);

#endif
