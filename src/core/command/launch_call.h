/* SPDX-License-Identifier: Apache-2.0 */
/* Launches as the API's calls have them: by handles. */
#ifndef CT_CORE_LAUNCH_CALL_H
#define CT_CORE_LAUNCH_CALL_H

#include "core/launch/launch.h"

/* Enqueues a launch. INVALID_HANDLE: function or stream; what ct_launch_command_init and ct_launch_execute give. */
CUresult ct_launch_call(CUfunction function, const struct ct_launch_shape *shape, CUstream stream, void **params, void **extra);
/* Enqueues records of the events among the attributes of a launch, behind it. */
CUresult ct_launch_call_record_events(CUstream stream, const CUlaunchAttribute *attributes, unsigned count);

#endif
