/* SPDX-License-Identifier: Apache-2.0 */
/* Gates, for `cuttle check --host-accesses`: work of a stream that does not begin before the host waits for it, or has gone on for a while. Until then the
 * memory that the work will use can be watched. */
#ifndef CT_CORE_HOST_GATE_H
#define CT_CORE_HOST_GATE_H

#include <stdbool.h>

struct ct_stream;

struct ct_host_gate {
    struct ct_host_gate *next;
    const struct ct_stream *stream; /* borrowed: the gate is in its way */
    bool is_open;
};

void ct_host_gate_close(struct ct_host_gate *gate, const struct ct_stream *stream);
/* Waits until the gate is open, or for as long as CUTTLE_CHECK_HOST_WAIT_MS says. It is no longer used then. */
void ct_host_gate_pass(struct ct_host_gate *gate);
/* The host waits for a stream, or asks whether its work is complete: its gates open, and those of streams that it waits for because of the rules of the
 * legacy stream. What else it waits for (events) has to wait for the time above. The caller holds no lock. */
void ct_host_gates_open(const struct ct_stream *stream);
/* All gates open. */
void ct_host_gates_open_all(void);

#endif
