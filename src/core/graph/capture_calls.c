/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the arguments of calls into parameters of nodes. */
#include "capture_calls.h"

#include "core/device/device.h"
#include "core/library/function_lookup.h"
#include "graph_memory.h"

/* Takes over `params`. */
static CUresult add(struct ct_stream *stream, struct ct_node_params *params)
{
    CUresult r = ct_capture_add(stream, params);

    if (r != CUDA_SUCCESS)
        ct_node_params_finish(params);
    return r;
}

static CUresult check_active(struct ct_stream *stream)
{
    CUresult r;

    ct_captures_lock();
    r = ct_capture_check_locked(ct_capture_part_locked(stream));
    ct_captures_unlock();
    return r;
}

CUresult ct_capture_node(struct ct_stream *stream, const CUgraphNodeParams *given)
{
    struct ct_node_params params = {0};
    CUresult r = check_active(stream);

    if (r == CUDA_SUCCESS)
        r = ct_node_params_init(&params, given);
    return r == CUDA_SUCCESS ? add(stream, &params) : r;
}

/* ---- launches ---- */

static CUresult set_attribute(struct ct_node_params *params, CUlaunchAttributeID id, CUlaunchAttributeValue value)
{
    return ct_node_params_set_attribute(params, &(CUlaunchAttribute){.id = id, .value = value});
}

/* The node has the priority of the stream. */
static CUresult set_attributes(struct ct_node_params *params, const struct ct_stream *stream, const struct ct_launch_shape *shape)
{
    CUresult r = CUDA_SUCCESS;

    if (shape->cooperative)
        r = set_attribute(params, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, (CUlaunchAttributeValue){.cooperative = 1});
    if (r == CUDA_SUCCESS && (shape->cluster[0] || shape->cluster[1] || shape->cluster[2]))
        r = set_attribute(params, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                          (CUlaunchAttributeValue){.clusterDim = {shape->cluster[0], shape->cluster[1], shape->cluster[2]}});
    if (r == CUDA_SUCCESS && stream->priority)
        r = set_attribute(params, CU_LAUNCH_ATTRIBUTE_PRIORITY, (CUlaunchAttributeValue){.priority = stream->priority});
    return r;
}

/* A launch that cannot succeed invalidates the capture; wrong handles and parameters do not. */
static CUresult check_launch(struct ct_stream *stream, CUfunction handle, const struct ct_launch_shape *shape)
{
    struct ct_function *function;
    CUresult r = check_active(stream);

    if (r == CUDA_SUCCESS)
        r = ct_function_lookup(handle, stream->context, &function);
    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_launch_check(function, shape)) != CUDA_SUCCESS)
        ct_capture_invalidate(stream);
    ct_function_release(function);
    return r;
}

CUresult ct_capture_launch(struct ct_stream *stream, CUfunction function, const struct ct_launch_shape *shape, void **params, void **extra)
{
    const CUgraphNodeParams given = {
        .type = CU_GRAPH_NODE_TYPE_KERNEL,
        .kernel = {.func = function,
                   .gridDimX = shape->grid[0],
                   .gridDimY = shape->grid[1],
                   .gridDimZ = shape->grid[2],
                   .blockDimX = shape->block[0],
                   .blockDimY = shape->block[1],
                   .blockDimZ = shape->block[2],
                   .sharedMemBytes = shape->dynamic_shared_bytes,
                   .kernelParams = params,
                   .extra = extra,
                   .ctx = stream->context->object.handle},
    };
    struct ct_node_params node = {0};
    CUresult r = check_launch(stream, function, shape);

    if (r == CUDA_SUCCESS)
        r = ct_node_params_init(&node, &given);
    if (r != CUDA_SUCCESS)
        return r;
    if ((r = set_attributes(&node, stream, shape)) == CUDA_SUCCESS)
        return add(stream, &node);
    ct_node_params_finish(&node);
    return r;
}

/* ---- memory ---- */

#define SIDE(prefix, side)                                                                                                                 \
    .prefix##XInBytes = (side).x_bytes, .prefix##Y = (side).y, .prefix##Z = (side).z, .prefix##MemoryType = (side).type,                   \
    .prefix##Device = (side).device, .prefix##Array = (side).array, .prefix##Pitch = (side).pitch, .prefix##Height = (side).height

CUresult ct_capture_copy(struct ct_stream *stream, const struct ct_copy_request *request, enum ct_copy_mode mode)
{
    const CUgraphNodeParams given = {
        .type = CU_GRAPH_NODE_TYPE_MEMCPY,
        .memcpy.copyCtx = stream->context->object.handle,
        .memcpy.copyParams = {SIDE(src, request->src), .srcHost = request->src.host, SIDE(dst, request->dst),
                              .dstHost = (void *)request->dst.host, .WidthInBytes = request->extent.width_bytes,
                              .Height = request->extent.height, .Depth = request->extent.depth},
    };

    return mode == CT_COPY_ASYNC ? ct_capture_node(stream, &given) : ct_capture_check_stream(stream, "a synchronous copy");
}

CUresult ct_capture_fill(struct ct_stream *stream, const struct ct_fill_request *request)
{
    const CUgraphNodeParams given = {
        .type = CU_GRAPH_NODE_TYPE_MEMSET,
        .memset = {.dst = request->address,
                   .pitch = request->pitch,
                   .value = request->value,
                   .elementSize = request->element_bytes,
                   .width = request->width,
                   .height = request->height,
                   .ctx = stream->context->object.handle},
    };

    if (request->mode != CT_COPY_ASYNC)
        return ct_capture_check_stream(stream, "a synchronous fill");
    if (!request->width || !request->height)
        return check_active(stream);
    return ct_capture_node(stream, &given);
}

/* A copy of the dependencies of the stream's next node. Another thread that adds a node to the stream meanwhile adds one that depends on them. */
static CUresult copy_dependencies(struct ct_stream *stream, struct ct_capture_nodes *out, struct ct_graph **out_graph)
{
    const struct ct_capture_part *part;
    CUresult r;

    ct_captures_lock();
    part = ct_capture_part_locked(stream);
    r = ct_capture_check_locked(part);
    if (r == CUDA_SUCCESS)
        r = ct_capture_nodes_add(out, part->nodes.nodes, part->nodes.data, part->nodes.count);
    if (r == CUDA_SUCCESS) {
        *out_graph = part->capture->graph;
        ct_object_retain(&part->capture->graph->object);
    }
    ct_captures_unlock();
    return r;
}

static CUresult add_memory_node(struct ct_stream *stream, struct ct_node_params *params, uint64_t *out_address)
{
    struct ct_capture_nodes nodes = {0};
    struct ct_graph *graph;
    CUresult r = copy_dependencies(stream, &nodes, &graph);

    if (r == CUDA_SUCCESS) {
        r = ct_graph_memory_attach(graph, &(struct ct_dependencies){nodes.nodes, nodes.data, nodes.count}, params);
        ct_graph_release(graph);
    }
    ct_capture_nodes_finish(&nodes);
    if (r != CUDA_SUCCESS)
        return r;
    *out_address = params->given.alloc.dptr;
    if ((r = ct_capture_add(stream, params)) != CUDA_SUCCESS) {
        ct_graph_memory_detach(params);
        ct_node_params_finish(params);
    }
    return r;
}

CUresult ct_capture_alloc(struct ct_stream *stream, const struct ct_device *device, uint64_t size_bytes, uint64_t *out_address)
{
    const CUgraphNodeParams given = {
        .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        .alloc = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal}},
                  .bytesize = size_bytes},
    };
    struct ct_node_params params;
    CUresult r = check_active(stream);

    *out_address = 0;
    if (r != CUDA_SUCCESS || !size_bytes)
        return r;
    r = ct_node_params_init(&params, &given);
    return r == CUDA_SUCCESS ? add_memory_node(stream, &params, out_address) : r;
}

CUresult ct_capture_free(struct ct_stream *stream, uint64_t address)
{
    struct ct_node_params params = {.given = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free.dptr = address}};
    uint64_t ignored;

    return address ? add_memory_node(stream, &params, &ignored) : check_active(stream);
}
