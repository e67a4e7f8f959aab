/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the `cuttle` command. Each function takes parsed arguments and returns the exit status. */
#ifndef CT_TOOLS_VERBS_H
#define CT_TOOLS_VERBS_H

#include "tool.h"

enum cuttle_verb {
#define VERB(id, name, min, max, operands, help, text, usage_status) CUTTLE_##id,
#include "verbs.def"
};

enum cuttle_option {
#define OPTION(verb, id, name, value, help) CUTTLE_##verb##_##id,
#include "verbs.def"
    CUTTLE_OPTION_COUNT
};

#define VERB(id, name, min, max, operands, help, text, usage_status) int verb_##name(const struct tool_arguments *arguments);
#include "verbs.def"

#endif
