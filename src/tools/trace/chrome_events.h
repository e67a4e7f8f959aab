/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a trace file, for the two files that write them: calls (chrome.c) and work of devices (chrome_devices.c). */
#ifndef CT_TOOLS_CHROME_EVENTS_H
#define CT_TOOLS_CHROME_EVENTS_H

#include "records.h"
#include "tools/json.h"

struct chrome {
    struct json json;
    const struct records *records;
    uint64_t start_ns; /* where the trace's time begins */
};

/* A time of the host as the file has times. */
double chrome_microseconds(const struct chrome *chrome, uint64_t time_ns);
/* Opens an event: a zero-terminated phase and name, and its track. The caller closes it with json_end. */
void chrome_open(struct chrome *chrome, const char *phase, const char *name, uint64_t process, uint64_t thread);
void chrome_times(struct chrome *chrome, uint64_t begin_ns, uint64_t end_ns);
/* Names a process or a thread: `what` is process_name or thread_name. */
void chrome_name(struct chrome *chrome, const char *what, uint64_t process, uint64_t thread, const char *name);
/* One end of an arrow from a call to the work that it made. */
void chrome_arrow(struct chrome *chrome, const char *phase, uint64_t process, uint64_t thread, uint64_t time_ns, const char *id);

/* Writes what devices did, in tracks of their own. False: no memory. */
bool chrome_devices(struct chrome *chrome);

#endif
