/* SPDX-License-Identifier: Apache-2.0 */
/* A command that uses memory of the host is enqueued between two functions for the stream's worker:
 *
 *     pass     waits for the gate (core/stream/host_gate.h), while the memory is watched (core/backing/host_watch.h)
 *     command
 *     judge    reports the accesses that the watch has noted, if the command really used that memory
 *
 * So a command begins late, and accesses that come too early are seen whatever the device's speed is. Of a copy or a fill it is known what it uses. Of a
 * kernel, all allocations are watched to which its parameters lead; its checked code notes which words it reads and writes (ptx2spv/check/launches.c).
 *
 * This needs a handler of faults. */
#include "host_accesses.h"

#include "core/backing/address_history.h"
#include "core/backing/host_watch.h"
#include "core/backing/kernel_faults.h"
#include "core/backing/shadows.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/check/host_report.h"
#include "core/stream/host_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "check"
#define NAME_BYTES 256

/* A command and its watch. */
struct use {
    atomic_uint references; /* of the thread that enqueues it, and of the functions that are enqueued */
    struct ct_host_gate gate;
    struct ct_host_watch watch;
    struct ct_context *context; /* borrowed: its parts live while one of its streams has work */
    bool is_launch;
    uint32_t before, after; /* of a launch: its number is between them */
    char name[NAME_BYTES];
};

static void release(struct use *use)
{
    if (atomic_fetch_sub(&use->references, 1) != 1)
        return;
    ct_host_watch_finish(&use->watch);
    free(use);
}

/* ---- what commands use ---- */

static void add_rows(struct ct_host_watch *watch, const struct ct_place *place, uint64_t row_bytes, uint64_t rows, uint64_t pitch,
                     bool is_written)
{
    if (!place->address)
        return;
    if (pitch == row_bytes || rows == 1)
        ct_host_watch_add(watch, place->address, row_bytes * rows, is_written);
    else
        for (uint64_t row = 0; row < rows && row < CT_WATCHED_RANGES_MAX; row++)
            ct_host_watch_add(watch, place->address + row * pitch, row_bytes, is_written);
}

static void add_copy(struct use *use, const struct ct_copy_command *command)
{
    const struct ct_copy *copy = &command->copy;

    snprintf(use->name, sizeof use->name, "a copy");
    for (uint64_t slice = 0; slice < copy->slices && slice < CT_WATCHED_RANGES_MAX && copy->row_bytes; slice++) {
        const struct ct_place dst = ct_place_moved(&copy->dst, slice * copy->dst_slice);
        const struct ct_place src = ct_place_moved(&copy->src, slice * copy->src_slice);

        add_rows(&use->watch, &dst, copy->row_bytes, copy->rows, copy->dst_pitch, true);
        if (command->source != CT_SOURCE_AT_CALL) /* else it is read now */
            add_rows(&use->watch, &src, copy->row_bytes, copy->rows, copy->src_pitch, false);
    }
}

static void add_fill(struct use *use, const struct ct_fill *fill)
{
    snprintf(use->name, sizeof use->name, "a fill");
    if (fill->rows)
        add_rows(&use->watch, &fill->place, fill->row_bytes, fill->rows, fill->pitch, true);
}

/* The managed variables of a module may be used by each of its kernels. */
static void add_managed(struct use *use)
{
    struct ct_range range;

    for (uint64_t at = 0; ct_address_find_any(at, UINT64_MAX - at, &range); at = range.start + range.size_bytes)
        if (range.kind == CT_RANGE_MANAGED_VARIABLES)
            ct_host_watch_add(&use->watch, range.start, range.size_bytes, true);
}

static void add_launch(struct use *use, const struct ct_launch_command *command)
{
    const struct ct_function *function = command->function;
    struct ct_range range;
    uint64_t word;

    if (!command->runs->info.checks_launches)
        return;
    use->is_launch = true;
    snprintf(use->name, sizeof use->name, "kernel %s", function->decl->name);
    for (uint32_t i = 0; i + sizeof word <= function->decl->param_bytes; i += sizeof word) {
        memcpy(&word, command->params + i, sizeof word);
        if (ct_address_find(word, 1, &range) == CUDA_SUCCESS)
            ct_host_watch_add(&use->watch, range.start, range.size_bytes, true);
    }
    add_managed(use);
}

static void add_command(struct use *use, const struct ct_command *command)
{
    if (command->kind == CT_COMMAND_LAUNCH)
        add_launch(use, &command->launch);
    else if (command->kind == CT_COMMAND_COPY && command->copy.mode == CT_COPY_ASYNC)
        add_copy(use, &command->copy);
    else if (command->kind == CT_COMMAND_FILL && command->fill.mode == CT_COPY_ASYNC)
        add_fill(use, &command->fill);
}

/* ---- the functions for the worker ---- */

static void pass(void *user, CUresult status)
{
    struct use *use = user;

    (void)status;
    ct_host_gate_pass(&use->gate);
    ct_host_watch_end(&use->watch);
    release(use);
}

static bool is_of_launch(const struct use *use, uint32_t number)
{
    return number - use->before < use->after - use->before && number != use->before;
}

static void judge_by_ranges(const struct use *use, const struct ct_host_access *access)
{
    for (unsigned i = 0; i < use->watch.n_ranges; i++)
        if (access->address >= use->watch.ranges[i].start && access->address < use->watch.ranges[i].end)
            ct_check_report_host_access(access, use->name, use->watch.ranges[i].is_written);
}

static void judge_by_marks(const struct use *use, const struct ct_host_access *access, uint64_t address)
{
    const struct ct_word_launches launches = ct_shadow_launches(use->context, address);

    if (is_of_launch(use, launches.writer))
        ct_check_report_host_access(access, use->name, true);
    else if (access->is_write && is_of_launch(use, launches.reader))
        ct_check_report_host_access(access, use->name, false);
}

static void judge_access(const struct use *use, const struct ct_host_access *access)
{
    struct ct_range range;

    if (!use->is_launch) {
        judge_by_ranges(use, access);
    } else if (ct_address_find(access->address, 1, &range) == CUDA_SUCCESS) {
        judge_by_marks(use, access, access->address);
        if (range.device_pointer != range.start) /* kernels use the second range, which has marks of its own */
            judge_by_marks(use, access, range.device_pointer + (access->address - range.start));
    }
}

static void judge(void *user, CUresult status)
{
    struct use *use = user;

    for (unsigned i = 0; i < use->watch.n_accesses && status == CUDA_SUCCESS; i++)
        judge_access(use, &use->watch.accesses[i]);
    release(use);
}

/* ---- execution ---- */

static bool is_possible(const struct ct_stream *stream)
{
    static atomic_bool was_said;

    if (!ct_config()->check || !ct_config()->check_host || ct_thread_is_in_host_function())
        return false;
    if (atomic_load_explicit(&stream->context->device->watched, memory_order_acquire))
        return true;
    if (!atomic_exchange(&was_said, true))
        ct_log(CT_LOG_WARN, "accesses of the host are not examined: there is no handler of faults (see CUTTLE_CATCH_FAULTS)");
    return false;
}

static struct use *use_of_or_null(struct ct_stream *stream, const struct ct_command *command)
{
    struct use *use = is_possible(stream) ? calloc(1, sizeof *use) : NULL;

    if (!use)
        return NULL;
    atomic_init(&use->references, 1);
    use->context = stream->context;
    add_command(use, command);
    if (use->watch.n_ranges)
        return use;
    free(use);
    return NULL;
}

static bool enqueue_function(struct ct_stream *stream, CUresult (*enqueue)(struct ct_stream *stream, ct_host_function function, void *user),
                             ct_host_function function, struct use *use)
{
    atomic_fetch_add(&use->references, 1);
    if (enqueue(stream, function, use) == CUDA_SUCCESS)
        return true;
    atomic_fetch_sub(&use->references, 1);
    return false;
}

CUresult ct_host_accesses_execute(struct ct_stream *stream, const struct ct_command *command,
                                  CUresult (*execute)(struct ct_stream *stream, const struct ct_command *command))
{
    struct use *use = use_of_or_null(stream, command);
    CUresult r;

    if (!use)
        return execute(stream, command);
    ct_host_gate_close(&use->gate, stream);
    ct_kernel_faults_take_over_again();
    ct_host_watch_begin(&use->watch);
    if (!enqueue_function(stream, ct_stream_wait_on_host, pass, use)) {
        atomic_fetch_add(&use->references, 1);
        pass(use, CUDA_SUCCESS);
    }
    use->before = (uint32_t)ct_history_now();
    r = execute(stream, command);
    use->after = (uint32_t)ct_history_now();
    if (r == CUDA_SUCCESS)
        (void)enqueue_function(stream, ct_stream_run_on_host, judge, use);
    release(use);
    return r;
}
