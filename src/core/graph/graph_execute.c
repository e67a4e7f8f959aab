/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the nodes of graphs: each is looked up again and enqueued as a command. */
#include "graph_exec.h"

#include "core/array/copy_request.h"
#include "core/backing/address_uses.h"
#include "core/base/log.h"
#include "core/command/command.h"
#include "core/command/host_function.h"
#include "core/command/launch_call.h"
#include "core/library/function_lookup.h"
#include "core/memory/host_memory.h"

#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "graph"

/* ---- kernels ---- */

static struct ct_launch_shape shape_of(const struct ct_node_params *params)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *given = &params->given.kernel;

    return (struct ct_launch_shape){
        .grid = {given->gridDimX, given->gridDimY, given->gridDimZ},
        .block = {given->blockDimX, given->blockDimY, given->blockDimZ},
        .dynamic_shared_bytes = given->sharedMemBytes,
        .cooperative = ct_node_params_cooperate(params),
    };
}

static CUfunction function_of(const struct ct_node_params *params)
{
    return params->given.kernel.func ? params->given.kernel.func : (CUfunction)params->given.kernel.kern;
}

static CUresult execute_kernel(struct ct_graph_step *step, struct ct_stream *stream)
{
    const struct ct_node_params *params = &step->node->params;
    const struct ct_launch_shape shape = shape_of(params);

    return ct_launch_in_stream(function_of(params), &shape, stream, params->given.kernel.kernelParams, NULL);
}

static CUresult prepare_kernel(const struct ct_node_params *params)
{
    const struct ct_launch_shape shape = shape_of(params);
    unsigned char room[CT_LAUNCH_ROOM_BYTES];
    struct ct_launch_command command;
    struct ct_function *function;
    struct ct_context *context;
    CUresult r = ct_context_lookup_or_current(params->given.kernel.ctx, &context);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_function_lookup(function_of(params), context, &function)) == CUDA_SUCCESS) {
        r = ct_launch_command_init(&command, function, &shape, params->given.kernel.kernelParams, NULL, room);
        if (r == CUDA_SUCCESS)
            ct_launch_command_finish(&command);
        ct_function_release(function);
    }
    ct_context_release(context);
    return r;
}

/* ---- copies ---- */

/* A copy by the host, in the order of a stream, because one side is pageable memory. */
struct host_copy {
    char *dst;
    const char *src;
    uint64_t row_bytes, rows, slices, dst_pitch, src_pitch, dst_slice, src_slice;
};

static void run_host_copy(void *user, CUresult status)
{
    const struct host_copy copy = *(struct host_copy *)user;

    free(user);
    if (status != CUDA_SUCCESS)
        return;
    for (uint64_t z = 0; z < copy.slices; z++)
        for (uint64_t y = 0; y < copy.rows; y++)
            memmove(copy.dst + z * copy.dst_slice + y * copy.dst_pitch, copy.src + z * copy.src_slice + y * copy.src_pitch, copy.row_bytes);
}

static CUresult enqueue_host_copy(struct ct_stream *stream, const struct ct_copy *copy)
{
    struct host_copy *job = malloc(sizeof *job);
    CUresult r;

    if (!job)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a copy by the host");
    *job = (struct host_copy){copy->dst.host,  copy->src.host,  copy->row_bytes, copy->rows,     copy->slices,
                              copy->dst_pitch, copy->src_pitch, copy->dst_slice, copy->src_slice};
    r = ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_HOST_FUNCTION, .host_function = {run_host_copy, job}});
    if (r != CUDA_SUCCESS)
        free(job);
    return r;
}

static CUresult enqueue_copy(struct ct_stream *stream, const struct ct_copy *copy)
{
    return ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_COPY, .copy = {.copy = *copy, .mode = CT_COPY_ASYNC}});
}

/* Page-locked memory of the step that replaces a pageable side: rows without gaps. */
static CUresult take_staging(struct ct_graph_step *step, const struct ct_stream *stream, const struct ct_copy *copy, struct ct_place *out)
{
    const uint64_t bytes = copy->row_bytes * copy->rows * copy->slices; /* less than the pageable side's span, which fits in memory */
    CUresult r = CUDA_SUCCESS;

    if (step->staging && step->staging_bytes < bytes) {
        (void)ct_host_memory_free(stream->context, step->staging);
        step->staging = NULL;
    }
    if (!step->staging)
        r = ct_host_memory_alloc(stream->context, bytes, CU_MEMHOSTALLOC_PORTABLE, &step->staging);
    if (r != CUDA_SUCCESS)
        return r;
    step->staging_bytes = bytes;
    return ct_place_find(CT_POINTER_HOST, (uintptr_t)step->staging, bytes, out);
}

static bool is_pageable(const struct ct_place *place)
{
    return !place->memory;
}

/* The host must access pageable memory when the node is executed, not now: earlier nodes may write it. */
static CUresult copy_pageable(struct ct_graph_step *step, struct ct_stream *stream, const struct ct_copy *copy)
{
    struct ct_copy first = *copy, second = *copy;
    struct ct_place staging;
    CUresult r;

    if (copy->dst.host && copy->src.host)
        return enqueue_host_copy(stream, copy);
    if ((r = take_staging(step, stream, copy, &staging)) != CUDA_SUCCESS)
        return r;
    first.dst = second.src = staging;
    first.dst_pitch = second.src_pitch = copy->row_bytes;
    first.dst_slice = second.src_slice = copy->row_bytes * copy->rows;
    r = is_pageable(&copy->src) ? enqueue_host_copy(stream, &first) : enqueue_copy(stream, &first);
    if (r != CUDA_SUCCESS)
        return r;
    return is_pageable(&copy->src) ? enqueue_copy(stream, &second) : enqueue_host_copy(stream, &second);
}

static CUresult execute_memcpy(struct ct_graph_step *step, struct ct_stream *stream)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_copy_located located = {0};
    struct ct_copy_request request;
    CUresult r = ct_copy_request_init(&step->node->params.given.memcpy.copyParams, &request);

    if (r == CUDA_SUCCESS)
        r = ct_copy_request_locate(&request, &located);
    if (r == CUDA_SUCCESS)
        r = is_pageable(&located.copy.dst) || is_pageable(&located.copy.src) ? copy_pageable(step, stream, &located.copy)
                                                                             : enqueue_copy(stream, &located.copy);
    ct_address_uses_end(uses);
    ct_copy_located_finish(&located);
    return r;
}

static CUresult execute_memset(struct ct_graph_step *step, struct ct_stream *stream)
{
    const CUDA_MEMSET_NODE_PARAMS_v2 *given = &step->node->params.given.memset;
    const struct ct_fill_request request = {given->dst,         given->pitch, given->width, given->height,
                                            given->elementSize, given->value, CT_COPY_ASYNC};
    const unsigned uses = ct_address_uses_begin();
    struct ct_command command = {.kind = CT_COMMAND_FILL};
    CUresult r = ct_fill_init(&command.fill, &request);

    if (r == CUDA_SUCCESS)
        r = ct_stream_enqueue(stream, &command);
    ct_address_uses_end(uses);
    return r;
}

/* ---- other types ---- */

static CUresult execute_host(struct ct_graph_step *step, struct ct_stream *stream)
{
    return ct_host_function_enqueue(stream, step->node->params.given.host.fn, step->node->params.given.host.userData);
}

static CUresult enqueue_event(struct ct_stream *stream, CUevent handle, bool records)
{
    struct ct_command command;
    struct ct_event *event;
    CUresult r = ct_event_lookup(handle, &event);

    if (r != CUDA_SUCCESS)
        return r;
    if (records)
        command = (struct ct_command){.kind = CT_COMMAND_EVENT_RECORD, .event_record = event};
    else
        command = (struct ct_command){.kind = CT_COMMAND_EVENT_WAIT, .event_wait = event};
    r = ct_stream_enqueue(stream, &command);
    ct_event_release(event);
    return r;
}

static CUresult execute_event_wait(struct ct_graph_step *step, struct ct_stream *stream)
{
    return enqueue_event(stream, step->node->params.given.eventWait.event, false);
}

static CUresult execute_event_record(struct ct_graph_step *step, struct ct_stream *stream)
{
    return enqueue_event(stream, step->node->params.given.eventRecord.event, true);
}

static CUresult execute_nothing(struct ct_graph_step *step, struct ct_stream *stream)
{
    (void)step, (void)stream;
    return CUDA_SUCCESS;
}

/* ---- all types ---- */

CUresult ct_graph_step_prepare(const struct ct_graph_step *step)
{
    const struct ct_node_params *params = &step->node->params;

    return params->given.type == CU_GRAPH_NODE_TYPE_KERNEL ? prepare_kernel(params) : CUDA_SUCCESS;
}

CUresult ct_graph_step_execute(struct ct_graph_step *step, struct ct_stream *stream)
{
    static CUresult (*const functions[])(struct ct_graph_step *step, struct ct_stream *stream) = {
#define NODE(type, member, check, execute) [CU_GRAPH_NODE_TYPE_##type] = execute,
#include "node_types.def"
    };

    return functions[step->node->params.given.type](step, stream);
}
