/* SPDX-License-Identifier: Apache-2.0 */
/* How the nanoseconds of %globaltimer come of a device's clock. */
#ifndef CT_CORE_TIMER_H
#define CT_CORE_TIMER_H

#include "core/base/locks.h"

#include <cuda.h>
#include <cuttle/ptx2spv.h>

struct ct_context;
struct ct_device;

/* Before a kernel with kernel_info.uses_timer runs for the first time in a context: finds out how long the ticks of the device's clock are,
 * once for each device, and writes it where kernels look (struct ptx2spv_timer behind the context's fault word). NOT_SUPPORTED: the clock
 * does not advance as time does. */
CUresult ct_timer_settle(struct ct_context *context);

/* A reading of the clock by a kernel, and the host's time before and after. */
struct ct_timer_reading {
    uint64_t ticks;
    int64_t before_ns, after_ns;          /* of a clock that advances evenly */
    uint64_t cycles_before, cycles_after; /* of the processor's counter; 0: it has none */
};
/* What follows from some readings (at least two, in order). nominal_ns: the length of a tick as the driver has it; 0: unknown.
 * realtime_ns: what the timer is to say at the host's time at_ns. False: no sense can be made of them. */
struct ct_timer_question {
    const struct ct_timer_reading *readings;
    unsigned count;
    double nominal_ns;
    int64_t at_ns, realtime_ns;
};
/* How exactly the readings tell the length of a tick, relative to it. */
double ct_timer_error(const struct ct_timer_question *question);
bool ct_timer_find(const struct ct_timer_question *question, struct ptx2spv_timer *out);

#endif
