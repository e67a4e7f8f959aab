/* SPDX-License-Identifier: Apache-2.0 */
/* Events: creation, look-up and destruction (Driver API: Event Management). event_record.c has recording and waiting.
 *
 * A queue may still write the timestamp of a destroyed event, so events are managed like streams: the context's list holds a reference to
 * each, and a destroyed event leaves the list when its record is complete. */
#include "event_record.h"

#include "core/base/log.h"
#include "core/base/process.h"

#include <stdlib.h>

#define CT_CHANNEL "event"
#define EVENT_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static void free_event(struct ct_object *object)
{
    struct ct_event *event = (struct ct_event *)object;
    struct ct_context *context = event->context;

    if (event->timestamp)
        context->backend->timestamps->destroy(event->timestamp);
    if (event->stream)
        ct_object_release(&event->stream->object);
    ct_shared_event_release(event->shared);
    ct_object_release(event->captured);
    ct_mutex_finish(&event->lock);
    free(event);
    ct_object_release(&context->object);
}

CUresult ct_event_make(struct ct_context *context, unsigned flags, struct ct_event **out)
{
    struct ct_event *event = calloc(1, sizeof *event);
    CUresult r = CUDA_SUCCESS;

    if (!event)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "event");
    ct_object_init(&event->object, CT_OBJECT_EVENT, free_event);
    ct_mutex_init(&event->lock, CT_RANK_EVENT);
    event->context = context;
    ct_object_retain(&context->object);
    event->flags = flags;
    if (!(flags & CU_EVENT_DISABLE_TIMING))
        r = context->backend->timestamps->create(context->backend_device, &event->timestamp);
    if (r == CUDA_SUCCESS)
        *out = event;
    else
        ct_object_release(&event->object);
    return r;
}

void ct_event_set_captured(struct ct_event *event, struct ct_object *captured_or_null)
{
    struct ct_object *before;

    ct_mutex_lock(&event->lock);
    before = event->captured;
    event->captured = captured_or_null;
    ct_mutex_unlock(&event->lock);
    ct_object_release(before);
}

struct ct_object *ct_event_captured_or_null(struct ct_event *event)
{
    struct ct_object *captured;

    ct_mutex_lock(&event->lock);
    captured = event->captured;
    if (captured)
        ct_object_retain(captured);
    ct_mutex_unlock(&event->lock);
    return captured;
}

void ct_event_link(struct ct_event *event)
{
    struct ct_context *context = event->context;

    ct_mutex_lock(&context->lock);
    event->next_in_context = context->events;
    context->events = event;
    ct_object_retain(&event->object);
    ct_mutex_unlock(&context->lock);
}

static bool is_reapable(struct ct_event *event)
{
    bool complete;

    if (!event->is_destroyed)
        return false;
    ct_mutex_lock(&event->lock);
    complete = ct_event_is_complete_locked(event);
    ct_mutex_unlock(&event->lock);
    return complete;
}

/* Removes the destroyed events whose records are complete from the list and releases them. */
static void reap(struct ct_context *context)
{
    struct ct_event *done = NULL, **link = &context->events;

    ct_mutex_lock(&context->lock);
    while (*link) {
        struct ct_event *event = *link;

        if (!is_reapable(event)) {
            link = &event->next_in_context;
            continue;
        }
        *link = event->next_in_context;
        event->next_in_context = done;
        done = event;
    }
    ct_mutex_unlock(&context->lock);
    while (done) {
        struct ct_event *event = done;

        done = event->next_in_context;
        ct_object_release(&event->object);
    }
}

static void mark_destroyed(struct ct_event *event)
{
    ct_mutex_lock(&event->context->lock);
    event->is_destroyed = true;
    ct_mutex_unlock(&event->context->lock);
    reap(event->context);
}

/* Takes over the reference to `shared`, which may be NULL. */
static CUresult make_published(struct ct_context *context, unsigned flags, struct ct_shared_event *shared, CUevent *out)
{
    struct ct_event *event;
    CUresult r = ct_event_make(context, flags, &event);

    if (r != CUDA_SUCCESS) {
        ct_shared_event_release(shared);
        return r;
    }
    event->shared = shared;
    ct_event_link(event);
    r = ct_object_publish(&event->object);
    if (r == CUDA_SUCCESS)
        *out = event->object.handle;
    else
        mark_destroyed(event);
    ct_object_release(&event->object); /* the list and the handle table have their own references */
    return r;
}

CUresult ct_event_create(struct ct_context *context, unsigned flags, CUevent *out)
{
    struct ct_shared_event *shared = NULL;
    CUresult r;

    if (flags & ~(unsigned)EVENT_FLAGS || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "event flags 0x%x", flags);
    if (flags & CU_EVENT_INTERPROCESS && (r = ct_shared_event_create(&shared)) != CUDA_SUCCESS)
        return r;
    return make_published(context, flags, shared, out);
}

CUresult ct_event_create_internal(struct ct_context *context, struct ct_event **out)
{
    CUresult r = ct_event_make(context, CU_EVENT_DISABLE_TIMING, out);

    if (r == CUDA_SUCCESS)
        ct_event_link(*out);
    return r;
}

void ct_event_discard(struct ct_event *event)
{
    struct ct_context *context = event->context;

    if (ct_context_use(context) == CUDA_SUCCESS) {
        mark_destroyed(event);
        ct_context_release(context);
    }
    ct_object_release(&event->object);
}

bool ct_event_is_shared(const struct ct_event *event)
{
    return event->shared != NULL;
}

bool ct_event_is_recorded(struct ct_event *event)
{
    bool is_recorded;

    ct_mutex_lock(&event->lock);
    is_recorded = event->stream != NULL;
    ct_mutex_unlock(&event->lock);
    return is_recorded;
}

CUevent ct_event_handle(const struct ct_event *event)
{
    return event->object.handle;
}

struct ct_context *ct_event_context(const struct ct_event *event)
{
    return event->context;
}

CUresult ct_event_share(struct ct_event *event, struct ct_ipc_name *out)
{
    if (!event->shared)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "event %p was created without CU_EVENT_INTERPROCESS", event->object.handle);
    return ct_shared_event_name(event->shared, out);
}

CUresult ct_event_open(struct ct_context *context, const struct ct_ipc_name *name, CUevent *out)
{
    struct ct_shared_event *shared;
    CUresult r = ct_shared_event_open(name, &shared);

    if (r == CUDA_SUCCESS)
        r = make_published(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, shared, out);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) /* the manual documents MAP_FAILED as the only error for an event that exists */
        r = ct_fail(CUDA_ERROR_MAP_FAILED, "the event of another process cannot be mapped");
    return r;
}

CUresult ct_event_lookup(CUevent handle, struct ct_event **out)
{
    struct ct_event *event;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    event = (struct ct_event *)ct_object_find_or_null(CT_OBJECT_EVENT, handle);
    if (!event)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not an event", (void *)handle);
    r = ct_context_enter(event->context);
    if (r == CUDA_SUCCESS)
        *out = event;
    else
        ct_object_release(&event->object);
    return r;
}

void ct_event_release(struct ct_event *event)
{
    struct ct_context *context;

    if (!event)
        return;
    context = event->context;
    ct_object_release(&event->object);
    ct_context_release(context);
}

bool ct_event_is_timed(const struct ct_event *event)
{
    return !(event->flags & CU_EVENT_DISABLE_TIMING);
}

CUresult ct_event_destroy(struct ct_event *event)
{
    CUresult r = ct_object_unpublish(&event->object);

    if (r == CUDA_SUCCESS)
        mark_destroyed(event);
    return r;
}

void ct_events_destroy_all(struct ct_context *context)
{
    while (context->events) { /* the context has no users, so no lock is needed */
        struct ct_event *event = context->events;

        context->events = event->next_in_context;
        if (!event->is_destroyed)
            ct_object_unpublish(&event->object);
        if (event->timestamp)
            context->backend->timestamps->destroy(event->timestamp);
        event->timestamp = NULL;
        ct_object_release(&event->object);
    }
}
