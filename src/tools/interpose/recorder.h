/* SPDX-License-Identifier: Apache-2.0 */
/* Writes records to the file of this process (trace/record.h). A thread writes to a chunk of its own, so recording takes no lock. */
#ifndef CT_INTERPOSE_RECORDER_H
#define CT_INTERPOSE_RECORDER_H

#include "tools/trace/record.h"

#include <stddef.h>

/* Opens a record in the thread's chunk; its header is zero but for kind and symbol. The thread opens no other one until it has closed this one. NULL: it is
 * not recorded, since nobody traces, or there is no room. */
struct trace_record *recorder_open(enum trace_kind kind, unsigned symbol);
/* Appends a field, cut off where the record would become too long. */
void recorder_field(struct trace_record *record, enum trace_field_kind kind, unsigned argument, const void *bytes, size_t size_bytes);
/* The record is complete. */
void recorder_close(struct trace_record *record);

/* Counts work of a device whose time is not known. */
void recorder_count_unmeasured(void);

uint64_t recorder_now_ns(void);

#endif
