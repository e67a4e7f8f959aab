/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the trace files that chrome.h writes. */
#ifndef CT_TOOLS_TRACE_LOAD_H
#define CT_TOOLS_TRACE_LOAD_H

#include "tools/json_read.h"

/* Passes each event of the file to `take`, in the file's order, and then forgets it; `take` returns false if there is no memory. False, with a message that
 * begins with `verb`: the file cannot be read, or is no trace of ours. */
bool trace_load(const char *verb, const char *path, bool (*take)(void *user, const struct json_value *event), void *user);

#endif
