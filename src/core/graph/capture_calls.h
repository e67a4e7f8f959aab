/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in captured streams, as nodes of the capture's graph. All return the errors of ct_capture_add and those of the node's parameters. */
#ifndef CT_CORE_CAPTURE_CALLS_H
#define CT_CORE_CAPTURE_CALLS_H

#include "capture.h"
#include "core/array/copy_request.h"
#include "core/launch/launch.h"

CUresult ct_capture_launch(struct ct_stream *stream, CUfunction function, const struct ct_launch_shape *shape, void **params, void **extra);
/* STREAM_CAPTURE_UNSUPPORTED: a synchronous copy or fill. */
CUresult ct_capture_copy(struct ct_stream *stream, const struct ct_copy_request *request, enum ct_copy_mode mode);
CUresult ct_capture_fill(struct ct_stream *stream, const struct ct_fill_request *request);
/* Allocates memory of the graph, as cuMemAllocAsync; 0 bytes are at address 0. */
CUresult ct_capture_alloc(struct ct_stream *stream, const struct ct_device *device, uint64_t size_bytes, uint64_t *out_address);
/* INVALID_VALUE: no graph has allocated memory at the address, or a node frees it already. An address of 0 is a no-op. */
CUresult ct_capture_free(struct ct_stream *stream, uint64_t address);
/* The parameters of a node of any other type. */
CUresult ct_capture_node(struct ct_stream *stream, const CUgraphNodeParams *given);

#endif
