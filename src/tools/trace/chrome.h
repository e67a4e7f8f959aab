/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as files in the format of Chrome's tracing, which Perfetto (ui.perfetto.dev), chrome://tracing and speedscope show. */
#ifndef CT_TOOLS_CHROME_H
#define CT_TOOLS_CHROME_H

#include "records.h"

#include <stdio.h>

/* Writes the JSON. `driver` is the path of the libcuda.so.1 that was called. False: there is no memory for the tracks of devices. */
bool chrome_write(const struct records *records, const char *driver, FILE *to);

#endif
