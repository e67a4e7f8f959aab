/* SPDX-License-Identifier: Apache-2.0 */
/* Launches by handles, as in the API. */
#ifndef CT_CORE_LAUNCH_CALL_H
#define CT_CORE_LAUNCH_CALL_H

#include "core/launch/launch.h"

/* Enqueues a launch. INVALID_HANDLE: the function or the stream; errors of ct_launch_command_init and ct_launch_execute. */
CUresult ct_launch_call(CUfunction function, const struct ct_launch_shape *shape, CUstream stream, void **params, void **extra);
/* The same in a stream that is looked up already. */
CUresult ct_launch_in_stream(CUfunction function, const struct ct_launch_shape *shape, struct ct_stream *stream, void **params,
                             void **extra);
/* Enqueues records of the events in the attributes of a launch; call it after the launch is enqueued. */
CUresult ct_launch_call_record_events(CUstream stream, const CUlaunchAttribute *attributes, unsigned count);

#endif
