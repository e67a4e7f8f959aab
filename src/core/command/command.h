/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: what API functions give to streams. A command is a plain struct whose arguments are checked and whose pointers and handles are
 * resolved; it borrows what it names, which its maker retains. Everything that an application orders in a stream passes ct_stream_enqueue:
 * what looks at a stream's commands (graphs that record them, captures, traces) looks there. */
#ifndef CT_CORE_COMMAND_H
#define CT_CORE_COMMAND_H

#include "core/array/array_tiles.h"
#include "core/copy/copy.h"
#include "core/copy/memset.h"
#include "core/launch/launch.h"
#include "core/pool/memory_pool.h"
#include "core/share/external_semaphore.h"
#include "core/stream/event.h"
#include "core/stream/stream.h"
#include "core/copy/stream_value.h"

/* A function that the stream's thread calls; once the command is enqueued `user` is the function's own. */
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

/* Orders the command in the stream. The caller holds no lock, and may forget the command on return. What the kind's function gives. */
CUresult ct_stream_enqueue(struct ct_stream *stream, const struct ct_command *command);

#endif
