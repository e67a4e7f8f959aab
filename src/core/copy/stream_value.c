/* SPDX-License-Identifier: Apache-2.0 */
/* Writes are commands of the stream's queue. Waits are executed by the stream's worker, since no GPU API's queue can wait for a value in
 * memory: it polls the host's mapping of the memory if there is one, else a copy that a separate queue makes.
 *
 * The queue waits for the worker on the host side, so a wait does not block device queues with the work that writes the value. */
#include "stream_value.h"

#include "core/backing/address_uses.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/stream/stream_record.h"
#include "core/stream/stream_ring.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CT_CHANNEL "stream"
#define POLLS_BEFORE_SLEEP 64 /* polls before the worker sleeps between polls */
#define FIRST_SLEEP_NS 10000l /* doubled each time */
#define LAST_SLEEP_NS 1000000l

static CUresult find(const struct ct_stream_value *value, struct ct_place *out)
{
    return ct_place_find(CT_POINTER_DEVICE, value->address, value->bytes, out);
}

CUresult ct_stream_value_check(const struct ct_stream_value *value)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_place place;
    struct ct_range range;
    CUresult r;

    if (value->address % value->bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not aligned to %u bytes", (unsigned long long)value->address, value->bytes);
    r = find(value, &place);
    ct_address_uses_end(uses);
    if (r != CUDA_SUCCESS)
        return r;
    if (place.read_only)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is read-only memory", (unsigned long long)value->address);
    if (ct_address_find_any(value->address, 1, &range) && ct_range_is_managed(&range))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is in managed memory", (unsigned long long)value->address);
    return CUDA_SUCCESS;
}

/* The host's pointer to the value, or NULL; for device memory only if host access is as good as a copy. */
static void *host_view_or_null(const struct ct_stream *stream, const struct ct_place *place)
{
    return place->host && (!place->is_device || ct_copy_host_is_fast(stream->context)) ? place->host : NULL;
}

/* release and acquire: the data written before the value is visible to its readers */
static void store_for_stream(void *at, const struct ct_stream_value *value)
{
    if (value->bytes == 8)
        __atomic_store_n((uint64_t *)at, value->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)at, (uint32_t)value->value, __ATOMIC_RELEASE);
}

static uint64_t load(const void *at, unsigned bytes)
{
    return bytes == 8 ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE) : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
}

static bool is_met(const struct ct_stream_value *wanted, uint64_t seen)
{
    const uint64_t mask = wanted->bytes == 8 ? UINT64_MAX : UINT32_MAX, sign = mask - (mask >> 1);

    switch (wanted->condition) {
    case CT_VALUE_GEQ: /* cyclic */
        return !((seen - wanted->value) & sign);
    case CT_VALUE_EQ:
        return seen == (wanted->value & mask);
    case CT_VALUE_AND:
        return (seen & wanted->value & mask) != 0;
    case CT_VALUE_NOR:
        return (~(seen | wanted->value) & mask) != 0;
    }
    return true;
}

/* ---- writing ---- */

struct host_write {
    void *at;
    struct ct_stream_value value;
};

static void write_by_host(void *user, CUresult status)
{
    struct host_write *write = user;

    if (status == CUDA_SUCCESS)
        store_for_stream(write->at, &write->value);
    free(write);
}

/* A write of 8 bytes is only atomic if the host executes it, or as one copy. */
static CUresult record_write_locked(struct ct_stream *stream, const struct ct_place *place, void *host, const struct ct_stream_value *value)
{
    struct ct_copy_region region = {.dst_offset = place->offset, .row_bytes = 8, .rows = 1, .slices = 1};
    struct ct_ring_piece staged;
    struct host_write *write;
    CUresult r;

    if (value->bytes == 4)
        return ct_stream_record_fill_locked(stream, place->memory, place->offset, 4, (uint32_t)value->value);
    if (host) {
        write = malloc(sizeof *write);
        if (!write)
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "value write");
        *write = (struct host_write){host, *value};
        r = ct_stream_run_on_host_locked(stream, write_by_host, write);
        if (r != CUDA_SUCCESS)
            free(write);
        return r;
    }
    r = ct_stream_ring_take(stream->ring, 8, 8, &staged);
    if (r != CUDA_SUCCESS)
        return r;
    memcpy(staged.host, &value->value, 8);
    region.src_offset = staged.offset;
    return ct_stream_record_copy_locked(stream, place->memory, staged.memory, &region);
}

/* Memory of another device is only accessible through the host. */
static CUresult check_device(const struct ct_stream *stream, const struct ct_place *place, const struct ct_stream_value *value)
{
    if (place->memory->device != stream->context->backend_device)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is in memory of another device", (unsigned long long)value->address);
    return CUDA_SUCCESS;
}

static CUresult write_at(struct ct_stream *stream, const struct ct_place *place, const struct ct_stream_value *value)
{
    void *host;
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_note_access(stream->context, place->owner);
    ct_place_note_write(stream, place, value->bytes);
    host = host_view_or_null(stream, place);
    if (host && ct_stream_is_idle_locked(stream))
        store_for_stream(host, value);
    else
        r = record_write_locked(stream, place, host, value);
    ct_stream_end(stream);
    return ct_context_check(stream->context, r);
}

CUresult ct_stream_value_write(struct ct_stream *stream, const struct ct_stream_value *value)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_place place;
    CUresult r = find(value, &place);

    if (r == CUDA_SUCCESS)
        r = check_device(stream, &place, value);
    if (r == CUDA_SUCCESS)
        r = write_at(stream, &place, value);
    ct_address_uses_end(uses);
    return r;
}

/* ---- waiting ---- */

/* Polls memory that the host cannot access: a separate queue and a buffer for copies. */
struct poller {
    struct ct_queue *queue;
    struct ct_stream_ring *ring;
    struct ct_ring_piece copy;
};

struct wait {
    struct ct_context *context; /* borrowed: the worker belongs to a stream of it */
    struct ct_stream_value value;
    bool by_host; /* polls the host's mapping */
};

static void poller_finish(struct poller *poller, const struct ct_context *context)
{
    ct_stream_ring_destroy(poller->ring);
    context->backend->queues->destroy(poller->queue);
}

static CUresult poller_init(struct poller *poller, struct ct_context *context)
{
    const struct ct_queue_desc desc = {.priority = 0};
    CUresult r;

    *poller = (struct poller){0};
    r = context->backend->queues->create(context->backend_device, &desc, &poller->queue);
    if (r == CUDA_SUCCESS)
        r = ct_stream_ring_create(context, poller->queue, &poller->ring);
    if (r == CUDA_SUCCESS)
        r = ct_stream_ring_take(poller->ring, sizeof(uint64_t), sizeof(uint64_t), &poller->copy);
    if (r != CUDA_SUCCESS)
        poller_finish(poller, context);
    return r;
}

static CUresult poll_by_copy(struct poller *poller, const struct wait *wait, const struct ct_place *place, uint64_t *out)
{
    const struct ct_backend *backend = wait->context->backend;
    const struct ct_copy_region region = {
        .dst_offset = poller->copy.offset,
        .src_offset = place->offset,
        .row_bytes = wait->value.bytes,
        .rows = 1,
        .slices = 1,
    };
    CUresult r = backend->queues->copy(poller->queue, poller->copy.memory, place->memory, &region, 1);

    if (r == CUDA_SUCCESS)
        r = backend->queues->await(poller->queue, backend->queues->point(poller->queue), UINT64_MAX, false);
    if (r == CUDA_SUCCESS)
        *out = load(poller->copy.host, wait->value.bytes);
    return r;
}

/* The memory is looked up each time, since it may have been freed. */
static CUresult read_value(const struct wait *wait, struct poller *poller, uint64_t *out)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_place place;
    CUresult r = find(&wait->value, &place);

    if (r == CUDA_SUCCESS && wait->by_host)
        *out = load(place.host, wait->value.bytes);
    else if (r == CUDA_SUCCESS)
        r = poll_by_copy(poller, wait, &place, out);
    ct_address_uses_end(uses);
    return r;
}

static CUresult poll_once(const struct wait *wait, struct poller *poller, uint64_t *out)
{
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS)
        r = ct_context_check(wait->context, CUDA_SUCCESS);
    return r == CUDA_SUCCESS ? read_value(wait, poller, out) : r;
}

static void rest(unsigned polls, long *sleep_ns)
{
    const struct timespec time = {.tv_nsec = *sleep_ns};

    if (polls < POLLS_BEFORE_SLEEP)
        return;
    nanosleep(&time, NULL);
    *sleep_ns = *sleep_ns * 2 < LAST_SLEEP_NS ? *sleep_ns * 2 : LAST_SLEEP_NS;
}

/* Polls until the condition is met, or cannot be met any more: the context failed, the memory was freed, or the process exits. */
static void poll_until_met(const struct wait *wait, struct poller *poller)
{
    long sleep_ns = FIRST_SLEEP_NS;
    uint64_t seen;

    for (unsigned polls = 0; poll_once(wait, poller, &seen) == CUDA_SUCCESS && !is_met(&wait->value, seen);
         polls += polls < POLLS_BEFORE_SLEEP)
        rest(polls, &sleep_ns);
}

static void wait_on_worker(void *user, CUresult status)
{
    struct wait *wait = user;
    struct poller poller;

    if (status == CUDA_SUCCESS && wait->by_host) {
        poll_until_met(wait, NULL);
    } else if (status == CUDA_SUCCESS && poller_init(&poller, wait->context) == CUDA_SUCCESS) {
        poll_until_met(wait, &poller);
        poller_finish(&poller, wait->context);
    }
    free(wait);
}

CUresult ct_stream_value_wait(struct ct_stream *stream, const struct ct_stream_value *value)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_place place;
    struct wait *wait;
    void *host;
    CUresult r = find(value, &place);

    if (r == CUDA_SUCCESS)
        r = check_device(stream, &place, value);
    ct_address_uses_end(uses); /* the worker looks the address up again */
    if (r != CUDA_SUCCESS)
        return r;
    host = host_view_or_null(stream, &place);
    wait = malloc(sizeof *wait);
    if (!wait)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "value wait");
    *wait = (struct wait){stream->context, *value, host != NULL};
    r = ct_stream_run_on_host(stream, wait_on_worker, wait);
    if (r != CUDA_SUCCESS)
        free(wait);
    return r;
}
