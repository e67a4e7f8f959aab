/* SPDX-License-Identifier: Apache-2.0 */
/* The records of all processes that were traced (record.h), in memory. */
#ifndef CT_TOOLS_RECORDS_H
#define CT_TOOLS_RECORDS_H

#include "record.h"

#include <stdbool.h>
#include <stddef.h>

struct records_process {
    const struct trace_file *file; /* mapped: it and the chunks behind it */
    size_t size_bytes;
    uint64_t last_ns; /* the latest time in a record */
};

struct records_entry {
    const struct trace_record *record;
    const struct trace_record *end; /* of TRACE_BEGIN: its TRACE_END. NULL: the call did not return */
    const struct trace_chunk *chunk;
    unsigned process; /* index */
};

struct records {
    struct records_process *processes;
    unsigned n_processes;
    struct records_entry *entries; /* all but TRACE_END, by the time at which they begin */
    size_t n_entries;
    uint64_t lost;       /* records that were not written */
    uint64_t unmeasured; /* launches, copies and fills whose time is not known */
};

/* Reads all files of the folder. False, with a message: it cannot be read, or there is no memory; what was read is in *out in any case. */
bool records_read(const char *folder, struct records *out);
void records_finish(struct records *records);

/* The next field of a record after this one; NULL stands for the one before the first, and for the one after the last. */
const struct trace_field *records_next_field(const struct trace_record *record, const struct trace_field *field);
/* The first field of the kind, for this argument. NULL: none. */
const struct trace_field *records_field(const struct trace_record *record, enum trace_field_kind kind, unsigned argument);

#endif
