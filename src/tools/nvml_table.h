/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVML as a page in Markdown. */
#ifndef CT_TOOLS_NVML_TABLE_H
#define CT_TOOLS_NVML_TABLE_H

void tool_print_nvml(void);

#endif
