/* SPDX-License-Identifier: Apache-2.0 */
/* The capture of streams (Driver API: Stream Management). */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/graph/capture.h"

#define CT_CHANNEL "stream"

/* cuThreadExchangeStreamCaptureMode. Exchanges the calling thread's mode with *mode (ct_capture_check_unsafe). INVALID_VALUE: mode is NULL, or the mode does not exist. */
CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid capture mode at %p", (void *)mode);
    *mode = ct_capture_exchange_mode(*mode);
    return CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream handle, CUstreamCaptureMode mode, struct ct_graph *graph_or_null,
                              const struct ct_dependencies *dependencies)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(handle, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_capture_begin(stream, mode, graph_or_null, dependencies);
    ct_stream_release(stream);
    return r;
}

/* cuStreamBeginCapture_v2. Work of the stream becomes nodes of a new graph. Errors of ct_capture_begin. */
CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin_capture(hStream, mode, NULL, &(struct ct_dependencies){0});
}

/* cuStreamBeginCapture */
CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream)
{
    return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* cuStreamBeginCaptureToGraph. The nodes are added to a graph, behind some of its nodes. INVALID_VALUE also: it is not a graph. */
CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                             const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode)
{
    struct ct_graph *graph;
    CUresult r = ct_graph_lookup(hGraph, &graph);

    if (r != CUDA_SUCCESS)
        return r;
    r = begin_capture(hStream, mode, graph, &(struct ct_dependencies){dependencies, dependencyData, numDependencies});
    ct_graph_release(graph);
    return r;
}

/* cuStreamEndCapture. *phGraph is the graph, or NULL after an error; a phGraph of NULL destroys the graph. Errors of ct_capture_end. */
CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_capture_end(stream, phGraph);
    ct_stream_release(stream);
    return r;
}

/* STREAM_CAPTURE_IMPLICIT: the legacy stream, while a stream is captured that it would wait for. */
static CUresult query_capture(CUstream handle, struct ct_capture_info *out)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(handle, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_capture_check_implicit_query(stream);
    ct_capture_query(stream, out);
    ct_stream_release(stream);
    return r;
}

/* cuStreamIsCapturing. INVALID_VALUE: captureStatus is NULL; STREAM_CAPTURE_IMPLICIT. */
CUresult CUDAAPI cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus, NULL, NULL, NULL, NULL, NULL);
}

/* cuStreamGetCaptureInfo */
CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

/* cuStreamGetCaptureInfo_v2 */
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                           CUgraph *graph_out, const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out);
}

/* cuStreamGetCaptureInfo_v3. All but the status may be NULL, and are written only if the capture is active. The arrays stay valid until the
 * next call with the stream. INVALID_VALUE: captureStatus_out is NULL; STREAM_CAPTURE_IMPLICIT. */
CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                           CUgraph *graph_out, const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
                                           size_t *numDependencies_out)
{
    struct ct_capture_info info;
    CUresult r = query_capture(hStream, &info);

    if (r != CUDA_SUCCESS)
        return r;
    if (!captureStatus_out)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "captureStatus is NULL");
    *captureStatus_out = info.status;
    if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (id_out)
        *id_out = info.id;
    if (graph_out)
        *graph_out = info.graph;
    if (dependencies_out)
        *dependencies_out = info.next->nodes;
    if (edgeData_out)
        *edgeData_out = info.next->data;
    if (numDependencies_out)
        *numDependencies_out = info.next->count;
    return CUDA_SUCCESS;
}

/* cuStreamUpdateCaptureDependencies_v2. Adds to the nodes on which the stream's next node depends, or replaces them. ILLEGAL_STATE: the stream is
 * not captured; INVALID_VALUE: unknown flags, or not nodes of the capture's graph. */
CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
                                                      size_t numDependencies, unsigned int flags)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(hStream, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags);
    else
        r = ct_capture_update(stream, &(struct ct_dependencies){dependencies, dependencyData, numDependencies},
                              flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    ct_stream_release(stream);
    return r;
}

/* cuStreamUpdateCaptureDependencies */
CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies, unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies, flags);
}
