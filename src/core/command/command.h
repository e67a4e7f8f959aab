/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: the operations that API functions enqueue in streams. A command is a plain struct with validated arguments and resolved
 * pointers and handles; it borrows the objects it refers to, and its creator holds the references. All stream operations of an application
 * pass through ct_stream_enqueue, where code that observes a stream's commands (graph recording, captures, traces) is attached. */
#ifndef CT_CORE_COMMAND_H
#define CT_CORE_COMMAND_H

#include "core/array/array_tiles.h"
#include "core/copy/copy.h"
#include "core/copy/decompression.h"
#include "core/copy/memset.h"
#include "core/launch/replay.h"
#include "core/pool/memory_pool.h"
#include "core/share/external_semaphore.h"
#include "core/stream/event.h"
#include "core/stream/stream.h"
#include "core/copy/stream_value.h"

/* A function that the stream's thread calls; once the command is enqueued, the function owns `user`. */
struct ct_host_call {
    ct_host_function function;
    void *user;
};

enum ct_command_kind {
#define COMMAND(kind, member, type, execute) CT_COMMAND_##kind,
#include "commands.def"
#undef COMMAND
};

struct ct_command {
    enum ct_command_kind kind;
    union {
#define COMMAND(kind, member, type, execute) type member;
#include "commands.def"
#undef COMMAND
    };
};

/* The event (retained) is recorded before the next command that the calling thread enqueues in a stream of the event's context; a failure is none of the
 * command's. With NULL no event is. Returns whether the event given before has been taken. */
bool ct_commands_mark_next(struct ct_event *event_or_null);

/* Enqueues the command. The caller must hold no lock, and may discard the command on return. Returns the result of the kind's function. */
CUresult ct_stream_enqueue(struct ct_stream *stream, const struct ct_command *command);

struct ct_command_list;
/* From now on the calling thread's commands are not executed, but appended to the list (command_list.h); with NULL they are executed again.
 * Returns the list of before. */
struct ct_command_list *ct_commands_keep(struct ct_command_list *list_or_null);
/* The list to which the calling thread's commands are appended. */
struct ct_command_list *ct_commands_kept_or_null(void);

#endif
