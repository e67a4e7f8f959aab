/* SPDX-License-Identifier: Apache-2.0 */
#include "place_changes.h"

#include "core/stream/event.h"

void ct_place_changes_init(struct ct_place_changes *changes, struct ct_context *context)
{
    ct_exclusive_init(&changes->use);
    changes->context = context;
}

void ct_place_changes_finish(struct ct_place_changes *changes)
{
    if (changes->last)
        ct_event_discard(changes->last);
    ct_exclusive_finish(&changes->use);
}

void ct_place_changes_watch(struct ct_place_changes *changes)
{
    ct_exclusive_enter(&changes->use);
    changes->is_stale = true;
    atomic_store(&changes->is_watched, true);
    ct_exclusive_leave(&changes->use);
}

static bool is_pending(const struct ct_place_changes *changes)
{
    return changes->last && ct_event_query(changes->last) != CUDA_SUCCESS;
}

static void note(struct ct_place_changes *changes, struct ct_stream *stream)
{
    const bool is_same = changes->writer == stream->object.handle;

    changes->is_stale = true;
    if (stream->context != changes->context || (!is_same && is_pending(changes)) ||
        (!changes->last && ct_event_create_internal(changes->context, &changes->last) != CUDA_SUCCESS) ||
        ct_event_record(changes->last, stream) != CUDA_SUCCESS)
        changes->is_unsettled = true;
    changes->writer = stream->object.handle;
}

void ct_place_changes_note(struct ct_place_changes *changes, struct ct_stream *stream)
{
    if (!atomic_load(&changes->is_watched))
        return;
    ct_exclusive_enter(&changes->use);
    note(changes, stream);
    ct_exclusive_leave(&changes->use);
}

void ct_place_changes_unsettle(struct ct_place_changes *changes)
{
    ct_exclusive_enter(&changes->use);
    changes->is_unsettled = true;
    ct_exclusive_leave(&changes->use);
}

bool ct_place_changes_begin(struct ct_place_changes *changes)
{
    ct_exclusive_enter(&changes->use);
    return changes->is_stale || changes->is_unsettled;
}

void ct_place_changes_end(struct ct_place_changes *changes, const struct ct_stream *stream, bool was_made)
{
    if (was_made && (changes->writer == stream->object.handle || !is_pending(changes)))
        changes->is_stale = false;
    ct_exclusive_leave(&changes->use);
}
