/* SPDX-License-Identifier: Apache-2.0 */
/* Executes CONDITIONAL nodes.
 *
 * A run is the execution of a node in one launch. It is enqueued before the commands of its bodies are resolved, and its worker waits until
 * they are: a thread that frees memory waits for all work that was enqueued before it removed the memory from the map
 * (core/backing/address_uses.h), so what the commands find then lives until the run is complete. Runs of nodes in bodies are commands of
 * these bodies. */
#include "branches.h"

#include "core/base/log.h"
#include "core/command/command_list.h"
#include "core/device/deferred_work.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"

struct run {
    struct ct_object object; /* references: its command, and the launching thread */
    struct ct_branches *branches;
    struct ct_condition *condition; /* of the time of the launch */
    struct ct_command_list *bodies;
    struct ct_mutex lock;
    pthread_cond_t resolved;
    enum { UNRESOLVED, RESOLVED, UNRESOLVABLE } state;
};

/* ---- on the worker ---- */

/* The command list of the body to be executed, or NULL. Kernels write the word, and the work that did so is complete. */
static const struct ct_command_list *choose_or_null(const struct run *run)
{
    const uint32_t value = *(const volatile uint32_t *)run->condition->word.host;
    uint32_t body = value;

    if (run->branches->type != CU_GRAPH_COND_TYPE_SWITCH)
        body = value ? 0 : 1; /* a WHILE node has no body 1, an IF node may have one */
    return body < run->branches->count ? &run->bodies[body] : NULL;
}

/* What the command refers to lives until it is complete, even if the device fails and the wait for it ends early: its function releases the
 * reference. */
static CUresult enqueue_kept(const struct ct_kept_command *kept, struct ct_stream *stream)
{
    CUresult r;

    if (kept->owned)
        ct_object_retain(kept->owned);
    r = ct_stream_enqueue(stream, &kept->command);
    if (r != CUDA_SUCCESS)
        ct_object_release(kept->owned);
    return r;
}

static CUresult execute_body(const struct ct_command_list *body, struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS, waited;

    for (const struct ct_kept_command *kept = body->first; kept && r == CUDA_SUCCESS; kept = kept->next)
        r = enqueue_kept(kept, stream);
    waited = ct_stream_synchronize(stream);
    return r == CUDA_SUCCESS ? waited : r;
}

static CUresult execute(const struct run *run)
{
    const struct ct_command_list *body = choose_or_null(run);
    CUresult r = CUDA_SUCCESS;

    while (body && r == CUDA_SUCCESS) {
        r = execute_body(body, run->branches->stream);
        body = run->branches->type == CU_GRAPH_COND_TYPE_WHILE ? choose_or_null(run) : NULL;
    }
    return r;
}

/* The launch has returned already, so that a failure becomes the context's error. */
static void execute_or_fail(const struct run *run)
{
    struct ct_context *context = run->condition->context;
    CUresult r = execute(run);

    if (r == CUDA_SUCCESS || ct_context_error(context) != CUDA_SUCCESS)
        return;
    ct_log(CT_LOG_WARN, "a body of a conditional node failed: error %d", (int)r);
    (void)ct_context_check(context, CUDA_ERROR_LAUNCH_FAILED);
}

/* For nodes in bodies, any number of times. */
static void execute_inner(void *user, CUresult status)
{
    struct run *run = user;

    if (status == CUDA_SUCCESS)
        execute_or_fail(run);
    ct_object_release(&run->object);
}

static bool await_commands(struct run *run)
{
    bool is_resolved;

    ct_mutex_lock(&run->lock);
    while (run->state == UNRESOLVED)
        ct_mutex_wait(&run->lock, &run->resolved);
    is_resolved = run->state == RESOLVED;
    ct_mutex_unlock(&run->lock);
    return is_resolved;
}

static void leave(struct run *run)
{
    struct ct_context *context = run->condition->context;

    ct_object_retain(&context->object);
    ct_object_release(&run->object);
    ct_deferred_work_end(context);
    ct_object_release(&context->object);
}

static void execute_outermost(void *user, CUresult status)
{
    struct run *run = user;

    if (await_commands(run) && status == CUDA_SUCCESS)
        execute_or_fail(run);
    leave(run);
}

/* ---- in the launching thread ---- */

static bool is_usable(const struct ct_stream *stream)
{
    bool is_listed;

    ct_mutex_lock(&stream->context->lock);
    is_listed = stream->listed;
    ct_mutex_unlock(&stream->context->lock);
    return is_listed;
}

/* A stream ends with its context, of which a primary one may be active again. */
static CUresult make_stream(struct ct_branches *branches)
{
    struct ct_context *context = branches->condition->context;
    CUresult r;

    if (branches->stream && branches->stream->context == context && is_usable(branches->stream))
        return CUDA_SUCCESS;
    if (branches->stream) {
        ct_stream_mark_destroyed(branches->stream);
        ct_object_release(&branches->stream->object);
        branches->stream = NULL;
    }
    if ((r = ct_context_enter(context)) != CUDA_SUCCESS)
        return r;
    r = ct_stream_create_internal(context, &branches->stream);
    ct_context_release(context);
    return r;
}

static void free_run(struct ct_object *object)
{
    struct run *run = (struct run *)object;

    for (unsigned i = 0; run->bodies && i < run->branches->count; i++)
        ct_command_list_finish(&run->bodies[i]);
    free(run->bodies);
    ct_object_release(&run->condition->object);
    ct_object_release(&run->branches->object);
    pthread_cond_destroy(&run->resolved);
    ct_mutex_finish(&run->lock);
    free(run);
}

static CUresult make_run(struct ct_branches *branches, struct run **out)
{
    struct run *run = calloc(1, sizeof *run);
    CUresult r = make_stream(branches);

    if (!run || r != CUDA_SUCCESS) {
        free(run);
        return r == CUDA_SUCCESS ? ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a launch of a conditional node") : r;
    }
    ct_object_init(&run->object, CT_OBJECT_NONE, free_run);
    ct_mutex_init(&run->lock, CT_RANK_BRANCHES);
    pthread_cond_init(&run->resolved, NULL);
    ct_object_retain(&branches->object);
    run->branches = branches;
    ct_object_retain(&branches->condition->object);
    run->condition = branches->condition;
    if (!(run->bodies = calloc(branches->count, sizeof *run->bodies))) {
        ct_object_release(&run->object);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a launch of a conditional node");
    }
    *out = run;
    return CUDA_SUCCESS;
}

static CUresult resolve(struct run *run)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < run->branches->count && r == CUDA_SUCCESS; i++) {
        struct ct_command_list *before = ct_commands_keep(&run->bodies[i]);

        r = run->branches->launch(run->branches->execs[i], run->branches->stream);
        (void)ct_commands_keep(before);
    }
    return r;
}

/* The reference of the caller goes to the list. */
static CUresult keep_inner(struct run *run, struct ct_command_list *list)
{
    CUresult r = ct_command_list_add(list, &(struct ct_command){.kind = CT_COMMAND_HOST_FUNCTION, .host_function = {execute_inner, run}});

    if (r != CUDA_SUCCESS) {
        ct_object_release(&run->object);
        return r;
    }
    ct_command_list_own(list, &run->object);
    return resolve(run);
}

static void finish_resolution(struct run *run, CUresult r)
{
    ct_mutex_lock(&run->lock);
    run->state = r == CUDA_SUCCESS ? RESOLVED : UNRESOLVABLE;
    pthread_cond_signal(&run->resolved);
    ct_mutex_unlock(&run->lock);
}

static CUresult enqueue_outermost(struct run *run, struct ct_stream *stream)
{
    const struct ct_command command = {.kind = CT_COMMAND_HOST_FUNCTION, .host_function = {execute_outermost, run}};
    CUresult r;

    ct_deferred_work_begin(run->condition->context);
    ct_object_retain(&run->object);
    r = ct_stream_enqueue(stream, &command);
    if (r == CUDA_SUCCESS) {
        r = resolve(run);
        finish_resolution(run, r);
    } else {
        leave(run);
    }
    ct_object_release(&run->object);
    return r;
}

CUresult ct_branches_enqueue(struct ct_branches *branches, struct ct_stream *stream)
{
    struct ct_command_list *outer = ct_commands_kept_or_null();
    struct run *run;
    CUresult r = make_run(branches, &run);

    if (r != CUDA_SUCCESS)
        return r;
    return outer ? keep_inner(run, outer) : enqueue_outermost(run, stream);
}
