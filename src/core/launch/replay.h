/* SPDX-License-Identifier: Apache-2.0 */
/* Replays of recorded launches. */
#ifndef CT_CORE_REPLAY_H
#define CT_CORE_REPLAY_H

#include "launch.h"

/* Recordings that are replayed one after the other, and what their launches use. */
struct ct_replay {
    struct ct_recording *const *recordings;
    struct ct_module *const *modules; /* of the kernels, each once */
    unsigned n_recordings, n_modules;
    const char *name; /* of the kernels, for reports of faults */
};

/* INVALID_HANDLE: a module was unloaded; NOT_READY: nothing was done, since the launches should be enqueued one by one. */
CUresult ct_replay_execute(struct ct_stream *stream, const struct ct_replay *replay);

#endif
