/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the copies that write to memory of which another copy exists that kernels read (core/array/array_tiled.h). */
#ifndef CT_CORE_PLACE_CHANGES_H
#define CT_CORE_PLACE_CHANGES_H

#include "core/base/exclusive.h"
#include "core/stream/stream.h"

struct ct_event;

struct ct_place_changes {
    atomic_bool is_watched; /* another copy exists */
    struct ct_exclusive use;
    struct ct_context *context; /* borrowed: that of the memory */
    /* Between begin and end, or by the functions below: */
    struct ct_event *last; /* the last write; NULL before the first one */
    CUstream writer;       /* its stream */
    bool is_stale;         /* something was written since the other copy was made */
    bool is_unsettled;     /* for ever: nothing says when all writes are complete */
};

void ct_place_changes_init(struct ct_place_changes *changes, struct ct_context *context);
void ct_place_changes_finish(struct ct_place_changes *changes);
/* From now on writes are recorded. */
void ct_place_changes_watch(struct ct_place_changes *changes);
/* After a copy was recorded in a stream. The caller holds no lock. */
void ct_place_changes_note(struct ct_place_changes *changes, struct ct_stream *stream);
/* Kernels write to the memory from now on. */
void ct_place_changes_unsettle(struct ct_place_changes *changes);

/* Whether the other copy has to be made again for what `stream` executes next. Between begin and end no write is recorded. */
bool ct_place_changes_begin(struct ct_place_changes *changes);
/* It was made in this stream. If writes of other streams are not complete now they may come later, so it is made again next time. */
void ct_place_changes_end(struct ct_place_changes *changes, const struct ct_stream *stream, bool was_made);

#endif
