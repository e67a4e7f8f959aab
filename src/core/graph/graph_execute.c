/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the nodes of graphs: each is looked up again and enqueued as a command. */
#include "graph_exec.h"
#include "graph_memory.h"

#include "core/base/log.h"
#include "core/command/command.h"
#include "core/command/copy_call.h"
#include "core/command/host_function.h"
#include "core/command/launch_call.h"
#include "core/command/memory_operations.h"
#include "core/command/semaphore_calls.h"

#define CT_CHANNEL "graph"

/* ---- kernels ---- */

static CUfunction function_of(const struct ct_node_params *params)
{
    return params->given.kernel.func ? params->given.kernel.func : (CUfunction)params->given.kernel.kern;
}

/* Lets later work in `stream` wait for the work that is now in `other`. */
static CUresult follow(struct ct_stream *stream, struct ct_stream *other)
{
    struct ct_event *event;
    CUresult r = ct_event_create_internal(other->context, &event);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_event_record(event, other);
    if (r == CUDA_SUCCESS)
        r = ct_event_wait(event, stream);
    ct_event_discard(event);
    return r;
}

/* A kernel of another context than the stream's runs in a stream there, in the place of the node. */
static CUresult execute_elsewhere(const struct ct_node_params *params, struct ct_context *context, struct ct_stream *stream)
{
    const struct ct_launch_shape shape = ct_node_shape(params);
    struct ct_stream *there;
    CUresult r = ct_stream_create_internal(context, &there);

    if (r != CUDA_SUCCESS)
        return r;
    r = follow(there, stream);
    if (r == CUDA_SUCCESS)
        r = ct_launch_in_stream(function_of(params), &shape, there, params->given.kernel.kernelParams, NULL);
    if (r == CUDA_SUCCESS)
        r = follow(stream, there);
    ct_stream_mark_destroyed(there);
    ct_object_release(&there->object);
    return r;
}

static CUresult execute_kernel(const struct ct_node_params *params, struct ct_stream *stream)
{
    const struct ct_launch_shape shape = ct_node_shape(params);
    struct ct_function *function;
    CUresult r = ct_node_function(&params->given.kernel, &function); /* also keeps its context */

    if (r != CUDA_SUCCESS)
        return r;
    r = function->module->context == stream->context
            ? ct_launch_in_stream(function_of(params), &shape, stream, params->given.kernel.kernelParams, NULL)
            : execute_elsewhere(params, function->module->context, stream);
    ct_function_release(function);
    return r;
}

static CUresult prepare_kernel(const struct ct_node_params *params)
{
    const struct ct_launch_shape shape = ct_node_shape(params);
    unsigned char room[CT_LAUNCH_ROOM_BYTES];
    struct ct_launch_command command;
    struct ct_function *function;
    CUresult r = ct_node_function(&params->given.kernel, &function);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_launch_command_init(&command, function, &shape, params->given.kernel.kernelParams, NULL, room);
    if (r == CUDA_SUCCESS)
        ct_launch_command_finish(&command);
    ct_function_release(function);
    return r;
}

/* ---- memory ---- */

/* As cuMemcpy3DAsync, also for pageable memory: it is read before the launch returns, even if an earlier node writes it, and has been written
 * when the launch returns. NVIDIA's driver 580 does the same. */
static CUresult execute_memcpy(const struct ct_node_params *params, struct ct_stream *stream)
{
    struct ct_copy_request request;
    CUresult r = ct_copy_request_init(&params->given.memcpy.copyParams, &request);

    return r == CUDA_SUCCESS ? ct_copy_call(stream, &request, CT_COPY_ASYNC) : r;
}

static CUresult execute_memset(const struct ct_node_params *params, struct ct_stream *stream)
{
    const struct ct_fill_request request = ct_node_fill(&params->given.memset);

    return ct_fill_call(stream, &request);
}

/* ---- other types ---- */

static CUresult execute_host(const struct ct_node_params *params, struct ct_stream *stream)
{
    return ct_host_function_enqueue(stream, params->given.host.fn, params->given.host.userData);
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

static CUresult execute_event_wait(const struct ct_node_params *params, struct ct_stream *stream)
{
    return enqueue_event(stream, params->given.eventWait.event, false);
}

static CUresult execute_event_record(const struct ct_node_params *params, struct ct_stream *stream)
{
    return enqueue_event(stream, params->given.eventRecord.event, true);
}

static CUresult execute_signals(const struct ct_node_params *params, struct ct_stream *stream)
{
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 *p = &params->given.extSemSignal;

    return ct_semaphore_signals_enqueue(stream, &(struct ct_semaphore_signals){p->extSemArray, p->paramsArray, p->numExtSems});
}

static CUresult execute_waits(const struct ct_node_params *params, struct ct_stream *stream)
{
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 *p = &params->given.extSemWait;

    return ct_semaphore_waits_enqueue(stream, &(struct ct_semaphore_waits){p->extSemArray, p->paramsArray, p->numExtSems});
}

static CUresult execute_operations(const struct ct_node_params *params, struct ct_stream *stream)
{
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p = &params->given.memOp;

    return ct_memory_operations_enqueue(stream, &(struct ct_memory_operations){p->paramArray, p->count, p->flags, 2});
}

static CUresult execute_alloc(const struct ct_node_params *params, struct ct_stream *stream)
{
    return ct_graph_memory_alloc(params, stream);
}

static CUresult execute_free(const struct ct_node_params *params, struct ct_stream *stream)
{
    return ct_stream_enqueue(stream, &(struct ct_command){.kind = CT_COMMAND_MEMORY_FREE, .memory_free = params->given.free.dptr});
}

static CUresult execute_conditional(const struct ct_node_params *params, struct ct_stream *stream)
{
    return ct_branches_enqueue((struct ct_branches *)params->branches, stream);
}

static CUresult execute_nothing(const struct ct_node_params *params, struct ct_stream *stream)
{
    (void)params, (void)stream;
    return CUDA_SUCCESS;
}

/* ---- all types ---- */

CUresult ct_node_prepare(const struct ct_node_params *params)
{
    return params->given.type == CU_GRAPH_NODE_TYPE_KERNEL ? prepare_kernel(params) : CUDA_SUCCESS;
}

CUresult ct_node_execute(const struct ct_node_params *params, struct ct_stream *stream)
{
    static CUresult (*const functions[])(const struct ct_node_params *params, struct ct_stream *stream) = {
#define NODE(type, member, check, execute) [CU_GRAPH_NODE_TYPE_##type] = execute,
#include "node_types.def"
    };

    return functions[params->given.type](params, stream);
}
