/* SPDX-License-Identifier: Apache-2.0 */
#include "replay.h"

#include "core/array/array_mirrors.h"
#include "core/base/float_environment.h"
#include "core/base/log.h"
#include "core/code/heap.h"
#include "core/code/print.h"
#include "core/device/running.h"
#include "core/stream/stream_record.h"

#define CT_CHANNEL "launch"

/* As for single launches. */
static void note_launches(struct ct_context *context, const struct ct_replay *replay)
{
    bool print = false, allocate = false;

    for (unsigned i = 0; i < replay->n_modules; i++) {
        print |= replay->modules[i]->prints;
        allocate |= replay->modules[i]->allocates;
    }
    if (print) {
        ct_print_flush(context);
        ct_print_note_launch(context);
    }
    if (allocate)
        ct_heap_note_launch(context);
}

/* Whether mirrors of arrays have come into existence since the launches were recorded: they are copied before and after single launches. */
static bool needs_mirrors(struct ct_context *context, const struct ct_replay *replay)
{
    bool has_textures = false;

    for (unsigned i = 0; i < replay->n_modules; i++)
        has_textures |= replay->modules[i]->has_textures;
    return has_textures && ct_array_mirrors_exist(context);
}

static CUresult check_modules(const struct ct_replay *replay)
{
    for (unsigned i = 0; i < replay->n_modules; i++)
        if (!atomic_load(&replay->modules[i]->loaded)) /* with the stream locked: see module.c */
            return ct_fail(CUDA_ERROR_INVALID_HANDLE, "the module of a kernel in a graph has been unloaded");
    return CUDA_SUCCESS;
}

static CUresult record(struct ct_stream *stream, const struct ct_replay *replay)
{
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = check_modules(replay);
    if (r == CUDA_SUCCESS) {
        ct_running_begin(&stream->running, replay->name);
        r = ct_running_end(&stream->running, ct_stream_record_replay_locked(stream, replay->recordings, replay->n_recordings));
    }
    ct_stream_end(stream);
    return r;
}

CUresult ct_replay_execute(struct ct_stream *stream, const struct ct_replay *replay)
{
    struct ct_float_environment before;
    CUresult r;

    if (needs_mirrors(stream->context, replay))
        return CUDA_ERROR_NOT_READY;
    note_launches(stream->context, replay);
    ct_float_environment_enter(&before); /* a driver may start threads */
    r = record(stream, replay);
    ct_float_environment_restore(&before);
    return r;
}
