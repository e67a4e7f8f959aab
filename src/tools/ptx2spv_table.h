/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the `ptx2spv` command. */
#ifndef CT_TOOLS_PTX2SPV_TABLE_H
#define CT_TOOLS_PTX2SPV_TABLE_H

#include "tool.h"

enum ptx2spv_argument {
#define OPTION(id, name, value, help) PTX2SPV_ARGUMENT_##id,
#include "ptx2spv.def"
    PTX2SPV_ARGUMENT_COUNT
};

enum { EXIT_NOT_COMPILED = 1, EXIT_USAGE = TOOL_USAGE, EXIT_FILE = 3 };

#endif
