/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions of the application (cuLaunchHostFunc), as commands. */
#ifndef CT_CORE_HOST_FUNCTION_H
#define CT_CORE_HOST_FUNCTION_H

#include "core/stream/stream.h"

/* Enqueues a call of the function. It does not run if earlier work of the stream has failed. OUT_OF_MEMORY. */
CUresult ct_host_function_enqueue(struct ct_stream *stream, CUhostFn function, void *user);

#endif
