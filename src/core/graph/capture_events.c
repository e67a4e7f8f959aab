/* SPDX-License-Identifier: Apache-2.0 */
/* Events in captures: an event that was last recorded in a captured stream stands for nodes. */
#include "capture.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"

/* What an event stands for that was last recorded in a captured stream. */
struct ct_capture_record {
    struct ct_object object;
    uint64_t capture; /* id */
    struct ct_capture_nodes nodes;
};

static struct ct_capture *find_locked(uint64_t id)
{
    for (struct ct_capture *capture = ct_captures; capture; capture = capture->next)
        if (capture->id == id)
            return capture;
    return NULL;
}

static void free_record(struct ct_object *object)
{
    struct ct_capture_record *record = (struct ct_capture_record *)object;

    ct_capture_nodes_finish(&record->nodes);
    free(record);
}

CUresult ct_capture_record(struct ct_stream *stream, struct ct_event *event)
{
    const struct ct_capture_part *part;
    struct ct_capture_record *record;
    CUresult r;

    if (ct_event_is_shared(event))
        return ct_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "an event that other processes see is recorded in a captured stream");
    if (!(record = calloc(1, sizeof *record)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the record of an event");
    ct_object_init(&record->object, CT_OBJECT_NONE, free_record);
    ct_captures_lock();
    part = ct_capture_part_locked(stream);
    r = ct_capture_check_locked(part);
    if (r == CUDA_SUCCESS) {
        record->capture = part->capture->id;
        r = ct_capture_nodes_add(&record->nodes, part->nodes.nodes, part->nodes.data, part->nodes.count);
    }
    ct_captures_unlock();
    if (r == CUDA_SUCCESS)
        ct_event_set_captured(event, &record->object);
    else
        ct_object_release(&record->object);
    return r;
}

/* The event's capture, or NULL: it has ended, or is invalid. */
static struct ct_capture *valid_capture_locked(const struct ct_capture_record *record)
{
    struct ct_capture *capture = find_locked(record->capture);

    return capture && !capture->is_invalid ? capture : NULL;
}

/* The stream's next node depends on the record's nodes, too. */
static CUresult follow_locked(struct ct_stream *stream, const struct ct_capture_record *record)
{
    struct ct_capture *capture = find_locked(record->capture);
    struct ct_capture_part *part = ct_capture_part_locked(stream);
    CUresult r = CUDA_SUCCESS;

    if (part && part->capture->is_invalid)
        return ct_capture_check_locked(part);
    if (!capture)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the event was last recorded in a capture that has ended");
    else if (capture->is_invalid)
        r = ct_fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the event's capture was invalidated by an earlier error");
    else if (stream->is_legacy)
        r = ct_fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the legacy stream waits for an event that was recorded in a captured stream");
    else if (part && part->capture != capture)
        r = ct_fail(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the stream and the event belong to different captures");
    else if (part)
        r = ct_capture_nodes_add(&part->nodes, record->nodes.nodes, record->nodes.data, record->nodes.count);
    else
        r = ct_capture_join_locked(capture, stream, &record->nodes);
    if (r != CUDA_SUCCESS && part)
        part->capture->is_invalid = true;
    if (r != CUDA_SUCCESS && capture)
        capture->is_invalid = true;
    return r;
}

static CUresult isolate_locked(struct ct_stream *stream, const struct ct_event *event)
{
    const struct ct_capture_part *part = ct_capture_part_locked(stream);
    const CUresult r = ct_capture_check_locked(part);

    if (r != CUDA_SUCCESS)
        return r;
    part->capture->is_invalid = true;
    if (ct_event_is_shared(event))
        return ct_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a captured stream waits for an event that other processes see");
    return ct_fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a captured stream waits for an event that was not recorded in its capture");
}

CUresult ct_capture_wait(struct ct_stream *stream, struct ct_event *event)
{
    struct ct_object *record = ct_event_captured_or_null(event);
    const bool has_work = ct_event_is_shared(event) || ct_event_is_recorded(event);
    CUresult r = CUDA_SUCCESS;

    ct_captures_lock();
    if (record)
        r = follow_locked(stream, (const struct ct_capture_record *)record);
    else if (has_work)
        r = isolate_locked(stream, event);
    else
        r = ct_capture_check_locked(ct_capture_part_locked(stream));
    ct_captures_unlock();
    ct_object_release(record);
    return r;
}

CUresult ct_capture_check_event(struct ct_event *event, bool invalidates)
{
    struct ct_object *record = ct_event_captured_or_null(event);
    struct ct_capture *capture;

    if (!record)
        return CUDA_SUCCESS;
    ct_captures_lock();
    capture = valid_capture_locked((const struct ct_capture_record *)record);
    if (capture)
        capture->is_invalid |= invalidates;
    ct_captures_unlock();
    ct_object_release(record);
    if (!capture)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the event was last recorded in a capture that has ended or is invalid");
    return ct_fail(CUDA_ERROR_CAPTURED_EVENT, "the event was last recorded in a captured stream");
}
