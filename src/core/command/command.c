/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches a command to the function that executes it. */
#include "command_list.h"
#include "host_accesses.h"

#include "core/graph/capture_state.h"

/* ---- adapters for the table ---- */

static CUresult run_on_host(struct ct_stream *stream, const struct ct_host_call *call)
{
    return ct_stream_run_on_host(stream, call->function, call->user);
}

static CUresult record_event(struct ct_stream *stream, struct ct_event *const *event)
{
    return ct_event_record(*event, stream);
}

static CUresult wait_for_event(struct ct_stream *stream, struct ct_event *const *event)
{
    return ct_event_wait(*event, stream);
}

static CUresult free_memory(struct ct_stream *stream, const uint64_t *address)
{
    return ct_memory_pool_free_async(stream, *address);
}

static CUresult bind_tiles(struct ct_stream *stream, struct ct_tile_work *const *work)
{
    return ct_tile_work_record(stream, *work);
}

/* ---- the table ---- */

#define COMMAND(kind, member, type, execute)                                                                                               \
    static CUresult execute_##member(struct ct_stream *stream, const struct ct_command *command)                                           \
    {                                                                                                                                      \
        return execute(stream, &command->member);                                                                                          \
    }
#include "commands.def"
#undef COMMAND

static _Thread_local struct ct_command_list *kept; /* NULL: commands are executed */

struct ct_command_list *ct_commands_keep(struct ct_command_list *list_or_null)
{
    struct ct_command_list *before = kept;

    kept = list_or_null;
    return before;
}

struct ct_command_list *ct_commands_kept_or_null(void)
{
    return kept;
}

static _Thread_local struct ct_event *mark; /* a reference; NULL: none */

bool ct_commands_mark_next(struct ct_event *event_or_null)
{
    const bool was_taken = !mark;

    if (mark)
        ct_event_release(mark);
    mark = event_or_null;
    return was_taken;
}

static void record_mark(struct ct_stream *stream)
{
    struct ct_event *event = mark;

    if (ct_event_context(event) != stream->context)
        return; /* a graph may also work in other contexts */
    mark = NULL;
    ct_event_record(event, stream);
    ct_event_release(event);
}

CUresult ct_stream_enqueue(struct ct_stream *stream, const struct ct_command *command)
{
    static CUresult (*const functions[])(struct ct_stream *stream, const struct ct_command *command) = {
#define COMMAND(kind, member, type, execute) [CT_COMMAND_##kind] = execute_##member,
#include "commands.def"
#undef COMMAND
    };
    CUresult r;

    if (kept)
        return ct_command_list_add(kept, command);
    r = ct_capture_check_implicit(stream);
    if (r == CUDA_SUCCESS) /* what can be captured has been, before it became a command */
        r = ct_capture_check_stream(stream, "work that no node of a graph can do");
    if (r != CUDA_SUCCESS)
        return r;
    if (mark)
        record_mark(stream);
    return ct_host_accesses_execute(stream, command, functions[command->kind]);
}
