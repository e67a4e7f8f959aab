/* SPDX-License-Identifier: Apache-2.0 */
/* Writes are commands of the stream's queue. Waits are done by the stream's worker, as no GPU API's queue waits for a value in memory: it
 * looks again and again, at the host's own view of the memory where there is one, else at a copy that a queue of its own makes.
 *
 * The queue waits for the worker on the host's side, so a wait keeps no queue of the device from the work that is to write the value. */
#include "stream_value.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/stream/stream_record.h"
#include "core/stream/stream_ring.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CT_CHANNEL "stream"
#define LOOKS_AT_ONCE 64      /* before the worker sleeps between two looks */
#define FIRST_SLEEP_NS 10000l /* doubled each time */
#define LAST_SLEEP_NS 1000000l

static CUresult find(const struct ct_stream_value *value, struct ct_place *out)
{
    return ct_place_find(CT_POINTER_DEVICE, value->address, value->bytes, out);
}

CUresult ct_stream_value_check(const struct ct_stream_value *value)
{
    struct ct_place place;
    struct ct_range range;
    CUresult r;

    if (value->address % value->bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not aligned to %u bytes", (unsigned long long)value->address, value->bytes);
    r = find(value, &place);
    if (r != CUDA_SUCCESS)
        return r;
    if (place.read_only)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx may only be read", (unsigned long long)value->address);
    if (ct_address_find_any(value->address, 1, &range) && (range.kind == CT_RANGE_MANAGED || range.kind == CT_RANGE_MANAGED_VARIABLES))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is in managed memory", (unsigned long long)value->address);
    return CUDA_SUCCESS;
}

/* Where the host may look at the value itself: device memory only where that is as good as a copy. */
static void *host_view_or_null(const struct ct_stream *stream, const struct ct_place *place)
{
    return place->host && (!place->is_device || ct_copy_host_is_fast(stream->context)) ? place->host : NULL;
}

/* release and acquire: who sees the value sees what was written before it */
static void store(void *at, const struct ct_stream_value *value)
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
        store(write->at, &write->value);
    free(write);
}

/* 8 bytes are one piece only if the host writes them, or as one copy. */
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
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "write of a value");
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

/* Memory of another device is reached from here as the host can, or not at all. */
static CUresult check_device(const struct ct_stream *stream, const struct ct_place *place, const struct ct_stream_value *value)
{
    if (place->memory->device != stream->context->backend_device)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is in memory of another device", (unsigned long long)value->address);
    return CUDA_SUCCESS;
}

CUresult ct_stream_value_write(struct ct_stream *stream, const struct ct_stream_value *value)
{
    struct ct_place place;
    void *host;
    CUresult r = find(value, &place);

    if (r == CUDA_SUCCESS)
        r = check_device(stream, &place, value);
    if (r == CUDA_SUCCESS)
        r = ct_stream_begin(stream);
    if (r != CUDA_SUCCESS)
        return r;
    ct_context_note_access(stream->context, place.owner);
    host = host_view_or_null(stream, &place);
    if (host && ct_stream_is_idle_locked(stream))
        store(host, value);
    else
        r = record_write_locked(stream, &place, host, value);
    ct_stream_end(stream);
    return ct_context_check(stream->context, r);
}

/* ---- waiting ---- */

/* What looks at memory that the host does not see: a queue of its own and a place for copies. */
struct looking_glass {
    struct ct_queue *queue;
    struct ct_stream_ring *ring;
    struct ct_ring_piece copy;
};

struct wait {
    struct ct_context *context; /* borrowed: the worker belongs to a stream of it */
    struct ct_stream_value value;
    bool by_host; /* looks at the host's view */
};

static void glass_finish(struct looking_glass *glass, const struct ct_context *context)
{
    ct_stream_ring_destroy(glass->ring);
    context->backend->queues->destroy(glass->queue);
}

static CUresult glass_init(struct looking_glass *glass, struct ct_context *context)
{
    const struct ct_queue_desc desc = {.priority = 0};
    CUresult r;

    *glass = (struct looking_glass){0};
    r = context->backend->queues->create(context->backend_device, &desc, &glass->queue);
    if (r == CUDA_SUCCESS)
        r = ct_stream_ring_create(context, glass->queue, &glass->ring);
    if (r == CUDA_SUCCESS)
        r = ct_stream_ring_take(glass->ring, sizeof(uint64_t), sizeof(uint64_t), &glass->copy);
    if (r != CUDA_SUCCESS)
        glass_finish(glass, context);
    return r;
}

static CUresult look_through(struct looking_glass *glass, const struct wait *wait, const struct ct_place *place, uint64_t *out)
{
    const struct ct_backend *backend = wait->context->backend;
    const struct ct_copy_region region = {
        .dst_offset = glass->copy.offset,
        .src_offset = place->offset,
        .row_bytes = wait->value.bytes,
        .rows = 1,
        .slices = 1,
    };
    CUresult r = backend->queues->copy(glass->queue, glass->copy.memory, place->memory, &region, 1);

    if (r == CUDA_SUCCESS)
        r = backend->queues->await(glass->queue, backend->queues->point(glass->queue), UINT64_MAX, false);
    if (r == CUDA_SUCCESS)
        *out = load(glass->copy.host, wait->value.bytes);
    return r;
}

/* One look. The memory is found anew each time: it may have been freed. */
static CUresult look(const struct wait *wait, struct looking_glass *glass, uint64_t *out)
{
    struct ct_place place;
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS)
        r = ct_context_check(wait->context, CUDA_SUCCESS);
    if (r == CUDA_SUCCESS)
        r = find(&wait->value, &place);
    if (r != CUDA_SUCCESS)
        return r;
    if (!wait->by_host)
        return look_through(glass, wait, &place, out);
    *out = load(place.host, wait->value.bytes);
    return CUDA_SUCCESS;
}

static void rest(unsigned looks, long *sleep_ns)
{
    const struct timespec time = {.tv_nsec = *sleep_ns};

    if (looks < LOOKS_AT_ONCE)
        return;
    nanosleep(&time, NULL);
    *sleep_ns = *sleep_ns * 2 < LAST_SLEEP_NS ? *sleep_ns * 2 : LAST_SLEEP_NS;
}

/* Until the condition is met, or never will be: the context failed, the memory or the process is going. */
static void look_until_met(const struct wait *wait, struct looking_glass *glass)
{
    long sleep_ns = FIRST_SLEEP_NS;
    uint64_t seen;

    for (unsigned looks = 0; look(wait, glass, &seen) == CUDA_SUCCESS && !is_met(&wait->value, seen); looks += looks < LOOKS_AT_ONCE)
        rest(looks, &sleep_ns);
}

static void wait_on_worker(void *user, CUresult status)
{
    struct wait *wait = user;
    struct looking_glass glass;

    if (status == CUDA_SUCCESS && wait->by_host) {
        look_until_met(wait, NULL);
    } else if (status == CUDA_SUCCESS && glass_init(&glass, wait->context) == CUDA_SUCCESS) {
        look_until_met(wait, &glass);
        glass_finish(&glass, wait->context);
    }
    free(wait);
}

CUresult ct_stream_value_wait(struct ct_stream *stream, const struct ct_stream_value *value)
{
    struct ct_place place;
    struct wait *wait;
    void *host;
    CUresult r = find(value, &place);

    if (r == CUDA_SUCCESS)
        r = check_device(stream, &place, value);
    if (r != CUDA_SUCCESS)
        return r;
    host = host_view_or_null(stream, &place);
    wait = malloc(sizeof *wait);
    if (!wait)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "wait for a value");
    *wait = (struct wait){stream->context, *value, host != NULL};
    r = ct_stream_run_on_host(stream, wait_on_worker, wait);
    if (r != CUDA_SUCCESS)
        free(wait);
    return r;
}
