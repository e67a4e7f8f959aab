/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of calls as fields of records: their values, and what they point to as far as its type is known. */
#ifndef CT_INTERPOSE_ARGUMENTS_H
#define CT_INTERPOSE_ARGUMENTS_H

#include "forward.h"
#include "recorder.h"

/* Before the call: all values, and what pointers to const point to. */
void arguments_record_inputs(struct trace_record *record, const struct forward_call *call);
/* After a call that succeeded: what it wrote. */
void arguments_record_outputs(struct trace_record *record, const struct forward_call *call);
/* Copies memory of this process that may not exist. */
bool arguments_read(void *to, const void *from, size_t size_bytes);

#endif
