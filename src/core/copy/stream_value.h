/* SPDX-License-Identifier: Apache-2.0 */
/* Value writes and value waits of streams (Driver API: Stream Memory Operations). */
#ifndef CT_CORE_STREAM_VALUE_H
#define CT_CORE_STREAM_VALUE_H

#include "copy.h"
#include "core/stream/stream.h"

enum ct_value_condition { CT_VALUE_GEQ, CT_VALUE_EQ, CT_VALUE_AND, CT_VALUE_NOR }; /* as CUstreamWaitValue_flags has them */

/* A value of 4 or 8 bytes, aligned to its size. */
struct ct_stream_value {
    uint64_t address;
    uint64_t value;
    unsigned bytes;
    enum ct_value_condition condition; /* only for waits */
};

/* INVALID_VALUE: misaligned, in no allocation, read-only, or in managed memory. */
CUresult ct_stream_value_check(const struct ct_stream_value *value);
/* Writes it atomically when the commands recorded before are complete. */
CUresult ct_stream_value_write(struct ct_stream *stream, const struct ct_stream_value *value);
/* Commands recorded later wait until the value at the address meets the condition. */
CUresult ct_stream_value_wait(struct ct_stream *stream, const struct ct_stream_value *value);

#endif
