/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls make a device work, in which stream, and how much they copy (device_work.def). */
#ifndef CT_INTERPOSE_DEVICE_WORK_H
#define CT_INTERPOSE_DEVICE_WORK_H

#include "forward.h"

#include "tools/trace/record.h"

struct device_work;

/* The row of a function, by its name without versions and variants. NULL: it makes no device work. */
const struct device_work *device_work_find(const char *base_name);
/* What the call, whose plan has a row, is going to do: kind, stream and size. */
void device_work_describe(const struct forward_call *call, struct trace_work *out);

#endif
