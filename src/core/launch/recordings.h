/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of recordings for a context, which live no longer than it. */
#ifndef CT_CORE_RECORDINGS_H
#define CT_CORE_RECORDINGS_H

#include "core/device/context.h"

struct ct_recordings {
    struct ct_recordings *next, **link;
    const struct ct_context *context; /* NULL: it was destroyed, and the recordings with it */
    const struct ct_backend *backend;
    struct ct_recording **list; /* NULL members: there is none */
    size_t count;
};

/* Makes a set of `count` members, all NULL. OUT_OF_MEMORY. */
CUresult ct_recordings_init(struct ct_recordings *out, const struct ct_context *context, size_t count);
/* Destroys the recordings of a set; one that was not made, but is zeroed, is left alone. Replays that were enqueued continue. */
void ct_recordings_finish(struct ct_recordings *recordings);
/* Whether the set is for this context, of which the caller has a use, so that the result stays true. */
bool ct_recordings_are_for(const struct ct_recordings *recordings, const struct ct_context *context);

/* Destroys all recordings for a context whose streams are idle. */
void ct_recordings_forget(const struct ct_context *context);

#endif
