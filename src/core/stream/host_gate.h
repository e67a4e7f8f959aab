/* SPDX-License-Identifier: Apache-2.0 */
/* Gates, for `cuttle check --host-accesses`: work of a stream that does not begin before the host waits for it, or has gone on for a while. Until then the
 * memory that the work will use can be watched. */
#ifndef CT_CORE_HOST_GATE_H
#define CT_CORE_HOST_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct ct_stream;

struct ct_host_gate {
    struct ct_host_gate *next;
    const struct ct_stream *stream; /* borrowed: the gate is in the way of its work after `point` */
    uint64_t point;
    bool is_open;
};

void ct_host_gate_close(struct ct_host_gate *gate, struct ct_stream *stream);
/* Waits until the gate is open, or for as long as CUTTLE_CHECK_HOST_WAIT_MS says. It is no longer used then. */
void ct_host_gate_pass(struct ct_host_gate *gate);
/* The host waits for a point of a stream, or asks whether it is complete: this opens the stream's gates before that point, and all gates of the streams that it
 * waits for by the rules of the legacy stream. Gates of streams that it waits for by events open when their time is over. NULL: all gates open. The caller
 * holds no lock. */
void ct_host_gates_open(const struct ct_stream *stream_or_null, uint64_t point);

#endif
