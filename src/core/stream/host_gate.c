/* SPDX-License-Identifier: Apache-2.0 */
#include "host_gate.h"

#include "core/base/config.h"
#include "stream_record.h"

#include <time.h>

enum { SECOND_NS = 1000 * 1000 * 1000, MILLISECOND_NS = 1000 * 1000 };

static struct {
    struct ct_mutex lock; /* guards the list and its members */
    pthread_cond_t opened;
    struct ct_host_gate *closed;
    atomic_bool were_used; /* relaxed: a gate that another thread closes at this moment opens after a while */
} gates = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_HOST_GATES), .opened = PTHREAD_COND_INITIALIZER};

void ct_host_gate_close(struct ct_host_gate *gate, struct ct_stream *stream)
{
    const uint64_t point = ct_stream_point(stream);

    ct_mutex_lock(&gates.lock);
    *gate = (struct ct_host_gate){gates.closed, stream, point, false};
    gates.closed = gate;
    ct_mutex_unlock(&gates.lock);
    atomic_store_explicit(&gates.were_used, true, memory_order_relaxed);
}

static struct timespec deadline(void)
{
    const int wait_ms = ct_config()->check_host_wait_ms;
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += wait_ms / 1000;
    time.tv_nsec += (long)(wait_ms % 1000) * MILLISECOND_NS;
    if (time.tv_nsec >= SECOND_NS) {
        time.tv_nsec -= SECOND_NS;
        time.tv_sec++;
    }
    return time;
}

void ct_host_gate_pass(struct ct_host_gate *gate)
{
    const struct timespec end = deadline();
    struct ct_host_gate **at = &gates.closed;

    ct_mutex_lock(&gates.lock);
    while (!gate->is_open && ct_mutex_wait_until(&gates.lock, &gates.opened, &end))
        ;
    while (*at != gate)
        at = &(*at)->next;
    *at = gate->next;
    ct_mutex_unlock(&gates.lock);
}

static bool is_in_the_way(const struct ct_host_gate *gate, const struct ct_stream *stream, uint64_t point)
{
    const struct ct_stream *other = gate->stream;

    if (other == stream)
        return point > gate->point;
    return other->context == stream->context && (other->is_legacy || stream->is_legacy) &&
           !((other->flags | stream->flags) & CU_STREAM_NON_BLOCKING);
}

void ct_host_gates_open(const struct ct_stream *stream_or_null, uint64_t point)
{
    if (!atomic_load_explicit(&gates.were_used, memory_order_relaxed))
        return;
    ct_mutex_lock(&gates.lock);
    for (struct ct_host_gate *gate = gates.closed; gate; gate = gate->next)
        gate->is_open = gate->is_open || !stream_or_null || is_in_the_way(gate, stream_or_null, point);
    pthread_cond_broadcast(&gates.opened);
    ct_mutex_unlock(&gates.lock);
}
