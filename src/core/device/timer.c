/* SPDX-License-Identifier: Apache-2.0 */
/* How the nanoseconds of %globaltimer come of a device's clock.
 *
 * Nothing tells what the clock of OpReadClockKHR counts: it is nanoseconds on lavapipe (Mesa 25.0.7) and Intel's OpenCL runtime (2026.2),
 * the reference clock that timestamps count on RADV (its source), and on PoCL 6.0, which has none, LLVM's llvm.readcyclecounter is the
 * processor's time-stamp counter. So a kernel reads it a few times while the host looks at its own clock.
 *   If the readings lie between those that the host makes of the processor's counter, it is that one, and the host's two clocks, read next
 *   to each other at the beginning and at the end, give the length of a tick to a few millionths.
 *   If the length of a tick comes out as the driver has it for timestamps, or as a nanosecond, as exactly as a launch can tell, it is
 *   that.
 *   Else it is what was measured.
 * The origin is chosen such that the timer is the host's CLOCK_REALTIME, as it is with NVIDIA's CUDA driver; it advances evenly from there
 * on. */
#include "timer.h"

#include "context.h"
#include "core/base/log.h"
#include "core/backing/memory_backing.h"
#include "probe_job.h"

#include <math.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#define CT_CHANNEL "timer"

#define ROUNDS 4u
#define PAUSE_NS 4000000l /* between two: three of them are what the length of a tick is measured by */

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t processor_cycles(void)
{
#ifdef __x86_64__
    return __rdtsc();
#else
    return 0;
#endif
}

/* ---- what follows from readings ---- */

/* Whether the clock is the processor's own counter. */
static bool counts_cycles(const struct ct_timer_question *question)
{
    for (unsigned i = 0; i < question->count; i++) {
        const struct ct_timer_reading *reading = &question->readings[i];

        if (!reading->cycles_before || reading->ticks < reading->cycles_before || reading->ticks > reading->cycles_after)
            return false;
    }
    return true;
}

static double middle(const struct ct_timer_reading *reading)
{
    return ((double)reading->before_ns + (double)reading->after_ns) / 2;
}

static double width(const struct ct_timer_reading *reading)
{
    return (double)(reading->after_ns - reading->before_ns);
}

/* The length of a tick, from the first reading and the last; 0: the clock does not advance. The first launch of a kernel takes longest, so
 * it is not among the readings. */
static double measured_tick(const struct ct_timer_question *question, double *out_error)
{
    const struct ct_timer_reading *first = &question->readings[0], *last = &question->readings[question->count - 1];
    const double elapsed = middle(last) - middle(first), ticks = (double)(last->ticks - first->ticks);

    if (last->ticks <= first->ticks || elapsed <= 0)
        return 0;
    *out_error = (width(first) + width(last)) / 2 / elapsed;
    return elapsed / ticks;
}

static double tick_of_cycles(const struct ct_timer_question *question)
{
    const struct ct_timer_reading *first = &question->readings[0], *last = &question->readings[question->count - 1];

    return (double)(last->after_ns - first->before_ns) / (double)(last->cycles_after - first->cycles_before);
}

static double find_tick(const struct ct_timer_question *question)
{
    const double known[] = {question->nominal_ns, 1};
    double error, tick = measured_tick(question, &error);

    if (tick == 0 || counts_cycles(question))
        return tick == 0 ? 0 : tick_of_cycles(question);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] > 0 && fabs(tick / known[i] - 1) <= error + 0.001)
            return known[i];
    return tick;
}

bool ct_timer_find(const struct ct_timer_question *question, struct ptx2spv_timer *out)
{
    const struct ct_timer_reading *last = &question->readings[question->count - 1];
    const double tick = find_tick(question), whole = floor(tick);
    struct ptx2spv_timer timer;

    if (tick <= 0 || tick > 1e9)
        return false;
    timer.whole_ns = (uint64_t)whole;
    timer.fraction = (uint64_t)((tick - whole) * 0x1p64);
    timer.origin_ns = (uint64_t)(question->realtime_ns - question->at_ns + (int64_t)middle(last));
    timer.origin_ns -= last->ticks * timer.whole_ns + (uint64_t)((unsigned __int128)last->ticks * timer.fraction >> 64);
    *out = timer;
    return true;
}

/* ---- readings ---- */

static const char text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry probe(.param .u64 out)\n{\n  .reg .b64 %at, %time;\n"
    "  ld.param.u64 %at, [out];\n  mov.u64 %time, %globaltimer;\n  st.global.u64 [%at], %time;\n  ret;\n}\n";

static void before_round(void *user, unsigned round)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct ct_timer_reading *reading = (struct ct_timer_reading *)user + round;

    if (round > 1)
        nanosleep(&pause, NULL);
    reading->before_ns = now_ns(CLOCK_MONOTONIC_RAW);
    reading->cycles_before = processor_cycles();
}

static void after_round(void *user, unsigned round, const void *output)
{
    struct ct_timer_reading *reading = (struct ct_timer_reading *)user + round;

    reading->cycles_after = processor_cycles();
    reading->after_ns = now_ns(CLOCK_MONOTONIC_RAW);
    memcpy(&reading->ticks, output, sizeof reading->ticks);
}

/* The first round warms up. */
static CUresult measure(struct ct_device *device, struct ct_backend_device *opened, struct ptx2spv_timer *out)
{
    static const uint64_t nothing;
    struct ct_timer_reading readings[ROUNDS + 1];
    uint64_t ticks;
    const struct ct_probe_job job = {.text = text,
                                     .blocks = 1,
                                     .threads = 1,
                                     .input = &nothing,
                                     .output = &ticks,
                                     .size_bytes = sizeof ticks,
                                     .rounds = ROUNDS + 1,
                                     .before = before_round,
                                     .after = after_round,
                                     .user = readings};
    struct ct_timer_question question = {.readings = readings + 1, .count = ROUNDS, .nominal_ns = device->info.timestamp_period_ns};
    CUresult r = ct_probe_execute(device->backend, opened, &device->info.target, &job);

    if (r != CUDA_SUCCESS)
        return ct_fail(r, "the clock of device %d cannot be read", device->ordinal);
    question.at_ns = now_ns(CLOCK_MONOTONIC_RAW);
    question.realtime_ns = now_ns(CLOCK_REALTIME);
    if (!ct_timer_find(&question, out))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the clock of device %d does not advance as time does", device->ordinal);
    ct_log(CT_LOG_DEBUG, "a tick of device %d is %llu + %.9f ns", device->ordinal, (unsigned long long)out->whole_ns,
           (double)out->fraction * 0x1p-64);
    return CUDA_SUCCESS;
}

/* ---- once for each device ---- */

enum { NOT_YET, RUNNING, DONE };

CUresult ct_timer_settle(struct ct_context *context)
{
    struct ct_device *device = context->device;
    struct ptx2spv_timer timer;
    CUresult r = CUDA_SUCCESS;
    bool measures;

    ct_mutex_lock(&device->lock);
    while (device->timer_state == RUNNING)
        ct_mutex_wait(&device->lock, &device->probe_over);
    measures = device->timer_state == NOT_YET;
    if (measures)
        device->timer_state = RUNNING;
    timer = device->timer;
    ct_mutex_unlock(&device->lock);
    if (measures)
        r = measure(device, context->backend_device, &timer);
    ct_mutex_lock(&device->lock);
    if (measures) {
        device->timer = timer;
        device->timer_state = r == CUDA_SUCCESS ? DONE : NOT_YET;
        pthread_cond_broadcast(&device->probe_over);
    }
    if (r == CUDA_SUCCESS)
        memcpy((char *)context->fault->host + PTX2SPV_TIMER_OFFSET, &timer, sizeof timer);
    ct_mutex_unlock(&device->lock);
    return r;
}
