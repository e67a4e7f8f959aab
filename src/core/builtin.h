/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of our own, written in PTX and compiled as an application's are: what the queues of a backend cannot do by themselves. */
#ifndef CT_CORE_BUILTIN_H
#define CT_CORE_BUILTIN_H

#include "context.h"
#include "stream.h"

/* Records on `stream` (between ct_stream_begin and ct_stream_end) a kernel that writes `value` to `height` rows of `width` elements,
 * rows `pitch` bytes apart (any pitch when height is 1). element_bytes is 1, 2 or 4; address and pitch are multiples of it, and
 * the caller has checked that the whole range is mapped. Nothing is recorded when width or height is 0.
 * The kernels are compiled once per device, at the first call: ct_builtin_prepare does that outside of any lock. */
CUresult ct_builtin_memset(struct ct_stream *stream, uint64_t address, uint64_t pitch, unsigned element_bytes, uint32_t value,
                           uint64_t width, uint64_t height);

/* Compiles the kernels for the context's device unless that was done. Call before ct_stream_begin, holding no lock. */
CUresult ct_builtin_prepare(struct ct_context *context);

/* Destroys a device's kernels; the device is idle. Takes NULL. */
struct ct_builtins;
void ct_builtins_destroy(struct ct_builtins *builtins);

#endif
