/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_recording.h"

#include "core/array/copy_request.h"
#include "core/backing/address_uses.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/pool/kept_block.h"
#include "graph_exec.h"
#include "recorded_slots.h"

#define CT_CHANNEL "graph"

/* ---- kernels ---- */

static CUresult init_launch(struct ct_launch_command *out, struct ct_function *function, const struct ct_node_params *params,
                            unsigned char room[CT_LAUNCH_ROOM_BYTES])
{
    const struct ct_launch_shape shape = ct_node_shape(params);

    return ct_launch_command_init(out, function, &shape, params->given.kernel.kernelParams, NULL, room);
}

static bool takes_kernel(struct ct_recorded_node *out, const struct ct_node_params *params, struct ct_stream *stream)
{
    unsigned char room[CT_LAUNCH_ROOM_BYTES];
    struct ct_launch_command command;
    bool takes = false;

    if (ct_node_params_cooperate(params) || ct_node_function(&params->given.kernel, &out->function) != CUDA_SUCCESS)
        return false;
    if (init_launch(&command, out->function, params, room) == CUDA_SUCCESS) {
        takes = ct_launch_is_recordable(&command, stream->context);
        out->uses_slots = command.runs->info.shared_in_memory;
        ct_launch_command_finish(&command);
    }
    return takes;
}

static CUresult record_with_slots(const struct ct_launch_command *command, struct ct_recording *recording)
{
    struct ct_context *context = command->function->module->context;
    struct ptx2spv_slots slots = ct_launch_plan_slots(context, &command->runs->info, &command->shape);
    CUresult r = ct_recorded_slots_take(context, ct_launch_slots_bytes(&slots), &slots.address);

    return r == CUDA_SUCCESS ? ct_launch_record(recording, command, &slots) : r;
}

static CUresult record_kernel(const struct ct_recorded_node *recorded, const struct ct_node_params *params, struct ct_recording *recording)
{
    unsigned char room[CT_LAUNCH_ROOM_BYTES];
    struct ct_launch_command command;
    CUresult r = init_launch(&command, recorded->function, params, room);

    if (r != CUDA_SUCCESS)
        return r;
    r = recorded->uses_slots ? record_with_slots(&command, recording) : ct_launch_record(recording, &command, NULL);
    ct_launch_command_finish(&command);
    return r;
}

/* ---- memory ---- */

/* Memory that a node of a graph allocates need not exist yet. */
static bool is_of_a_graph(const CUDA_MEMCPY3D *copy)
{
    return ct_kept_blocks_contain(copy->dstDevice) || ct_kept_blocks_contain(copy->srcDevice);
}

static bool takes_copy(const struct ct_node_params *params, struct ct_stream *stream, struct ct_memory_launch *out)
{
    struct ct_copy_located located = {0};
    struct ct_copy_request request;
    bool takes = false;

    if (ct_copy_request_init(&params->given.memcpy.copyParams, &request) != CUDA_SUCCESS || ct_copy_request_is_empty(&request) ||
        request.dst.type == CU_MEMORYTYPE_ARRAY || request.src.type == CU_MEMORYTYPE_ARRAY ||
        is_of_a_graph(&params->given.memcpy.copyParams))
        return false;
    if (ct_copy_request_locate(&request, &located) == CUDA_SUCCESS)
        takes = ct_memory_kernels_copy(stream, &(struct ct_copy_command){.copy = located.copy, .mode = CT_COPY_ASYNC}, out);
    ct_copy_located_finish(&located);
    return takes;
}

static bool takes_fill(const struct ct_node_params *params, struct ct_stream *stream, struct ct_memory_launch *out)
{
    const struct ct_fill_request request = ct_node_fill(&params->given.memset);
    struct ct_fill fill;

    return !ct_kept_blocks_contain(request.address) && ct_fill_init(&fill, &request) == CUDA_SUCCESS &&
           ct_memory_kernels_fill(stream, &fill, out);
}

/* Compiles the kernel. */
static bool prepare_memory(const struct ct_recorded_node *recorded, const struct ct_stream *stream)
{
    struct ct_launch launch;

    if (!ct_memory_kernels_prepare(stream, &recorded->memory, &launch))
        return false;
    ct_memory_kernels_release(stream, &launch);
    return true;
}

static CUresult record_memory(const struct ct_recorded_node *recorded, struct ct_recording *recording, const struct ct_stream *stream)
{
    struct ct_launch launch;
    CUresult r;

    if (!ct_memory_kernels_prepare(stream, &recorded->memory, &launch))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the kernel of a copy or a fill does not compile any more");
    r = stream->context->backend->recordings->launch(recording, &launch);
    ct_memory_kernels_release(stream, &launch);
    return r;
}

/* ---- all ---- */

static enum ct_recorded_kind choose(struct ct_recorded_node *out, const struct ct_node_params *params, struct ct_stream *stream)
{
    if (ct_config()->check_written)
        return CT_RECORDED_NOTHING; /* what is replayed would not be marked as written (shadows.h) */
    switch (params->given.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return takes_kernel(out, params, stream) ? CT_RECORDED_KERNEL : CT_RECORDED_NOTHING;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return takes_copy(params, stream, &out->memory) && prepare_memory(out, stream) ? CT_RECORDED_COPY : CT_RECORDED_NOTHING;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return takes_fill(params, stream, &out->memory) && prepare_memory(out, stream) ? CT_RECORDED_FILL : CT_RECORDED_NOTHING;
    default:
        return CT_RECORDED_NOTHING;
    }
}

void ct_recorded_node_init(struct ct_recorded_node *out, const struct ct_node_params *params, struct ct_stream *stream)
{
    const unsigned uses = ct_address_uses_begin();

    *out = (struct ct_recorded_node){.kind = CT_RECORDED_NOTHING};
    if (stream->context->backend->recordings && ct_config()->kernel_timeout == 0) /* a timeout is of single kernels */
        out->kind = choose(out, params, stream);
    ct_address_uses_end(uses);
    if (out->kind == CT_RECORDED_NOTHING)
        ct_recorded_node_finish(out);
}

void ct_recorded_node_finish(struct ct_recorded_node *recorded)
{
    if (recorded->function)
        ct_function_release(recorded->function);
    recorded->function = NULL;
}

CUresult ct_recorded_node_record(const struct ct_recorded_node *recorded, const struct ct_node_params *params,
                                 struct ct_recording *recording, const struct ct_stream *stream)
{
    return recorded->kind == CT_RECORDED_KERNEL ? record_kernel(recorded, params, recording) : record_memory(recorded, recording, stream);
}

bool ct_recorded_node_is_valid(const struct ct_recorded_node *recorded, const struct ct_node_params *params, struct ct_stream *stream)
{
    struct ct_memory_launch now;

    if (recorded->kind == CT_RECORDED_KERNEL)
        return true;
    return (recorded->kind == CT_RECORDED_COPY ? takes_copy(params, stream, &now) : takes_fill(params, stream, &now)) &&
           ct_memory_launch_equal(&now, &recorded->memory);
}
