/* SPDX-License-Identifier: Apache-2.0 */
/* Records one thread's stores as a trace. */
#include "spirv_machine.h"

#include <setjmp.h>
#include <spirv/unified1/spirv.h>
#include <stdarg.h>
#include <cmocka.h>

#define MAX_BLOCKS_BETWEEN_EVENTS 200000

static bool note_event(void *user, uint64_t address, uint64_t value)
{
    struct trace *trace = user;

    trace->events[trace->n++] = (struct event){address, value};
    return trace->n < sizeof trace->events / sizeof *trace->events;
}

void run_spirv(const uint32_t *words, size_t n_words, struct trace *out)
{
    struct spirv_run run = {
        .threads = 1,
        .subgroup_lanes = 1,
        .quiet_limit = MAX_BLOCKS_BETWEEN_EVENTS,
        .on_store = note_event,
        .user = out,
    };
    enum spirv_end end;

    out->n = 0;
    end = spirv_run(words, n_words, &run);
    if (end == SPIRV_WRONG)
        fail_msg("%s", run.message);
    out->end = end == SPIRV_RETURNED ? TRACE_RETURNED : end == SPIRV_STOPPED ? TRACE_FULL : TRACE_GAVE_UP;
}

unsigned count_spirv(const uint32_t *words, size_t n_words, uint32_t opcode)
{
    unsigned n = 0;

    for (const uint32_t *w = words + 5; w < words + n_words; w += w[0] >> SpvWordCountShift)
        n += (w[0] & SpvOpCodeMask) == opcode;
    return n;
}
