/* SPDX-License-Identifier: Apache-2.0 */
/* The conversion of a device's clock to the nanoseconds of %globaltimer. */
#ifndef CT_CORE_TIMER_H
#define CT_CORE_TIMER_H

#include "core/base/locks.h"

#include <cuda.h>
#include <cuttle/ptx2spv.h>

struct ct_context;
struct ct_device;

/* Called before a kernel with kernel_info.uses_timer runs for the first time in a context: determines the tick length of the device's
 * clock, once for each device, and stores it for kernels (struct ptx2spv_timer after the context's fault word). NOT_SUPPORTED: the clock
 * does not advance with time. */
CUresult ct_timer_ensure(struct ct_context *context);

/* A reading of the clock by a kernel, and the host's time before and after. */
struct ct_timer_reading {
    uint64_t ticks;                       /* with the bits that the clock lacks */
    int64_t before_ns, after_ns;          /* of a clock that is never adjusted */
    uint64_t cycles_before, cycles_after; /* of the processor's time-stamp counter; 0: none */
};
/* The input of the conversion: readings (at least two, in order). nominal_ns: the tick length that the driver reports; 0: unknown.
 * realtime_ns: the timer's value at the host's time at_ns. ct_timer_find returns false if the readings are inconsistent. */
struct ct_timer_input {
    const struct ct_timer_reading *readings;
    unsigned count;
    double nominal_ns;
    int64_t at_ns, realtime_ns;
};
/* The relative uncertainty of the tick length. */
double ct_timer_error(const struct ct_timer_input *input);
bool ct_timer_find(const struct ct_timer_input *input, struct ptx2spv_timer *out);

#endif
