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
/* The parameters of a node of any other type. */
CUresult ct_capture_node(struct ct_stream *stream, const CUgraphNodeParams *given);

#endif
