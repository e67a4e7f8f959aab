/* SPDX-License-Identifier: Apache-2.0 */
/* The conversion of a device's clock to the nanoseconds of %globaltimer.
 *
 * No API reports the unit of OpReadClockKHR: it is the nanosecond on lavapipe (Mesa 25.0.7) and Intel's OpenCL runtime (2026.2), and the
 * tick of the reference clock of timestamps on RADV (its source). PoCL 6.0 lacks the instruction; there LLVM's llvm.readcyclecounter is
 * the processor's time-stamp counter. So a kernel reads the clock a few times while the host reads its own clocks.
 *   If the readings lie between those that the host makes of the processor's counter, it is that one, and the host's two clocks, read next
 *   to each other at the beginning and at the end, give the tick length to a few millionths.
 *   If the measured tick length agrees, within the uncertainty of a launch, with the driver's timestamp period or with one nanosecond, it
 *   is that.
 *   Otherwise it is the measured length.
 * The origin is chosen such that the timer equals the host's CLOCK_REALTIME, as with NVIDIA's CUDA driver; from then on it advances
 * without adjustments. */
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
#define TRIES 6u       /* of ROUNDS each, while launches take too long for a precise result */
#define ERROR_MAX 0.02 /* accepted relative uncertainty of the tick length */
#define READS_MAX 50u
#define READ_NS 2000      /* maximum distance between the readings of the host's two clocks */
#define PAUSE_NS 4000000l /* between two rounds: the tick length is measured over three pauses */

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

/* ---- evaluation of readings ---- */

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

/* The time between two readings, by the host's clock (to within `error_ns`) and by the device's. */
struct span {
    double elapsed_ns, error_ns, ticks;
};

static struct span span_of(const struct ct_timer_reading *from, const struct ct_timer_reading *to)
{
    return (struct span){
        .elapsed_ns = middle(to) - middle(from),
        .error_ns = ((double)(from->after_ns - from->before_ns) + (double)(to->after_ns - to->before_ns)) / 2,
        .ticks = to->ticks > from->ticks ? (double)(to->ticks - from->ticks) : 0,
    };
}

/* The span with the least relative error: a launch takes long if the machine is busy. If its ticks are 0 the clock does not advance. */
static struct span best_span(const struct ct_timer_question *question)
{
    struct span best = {.error_ns = 1};

    for (unsigned i = 0; i < question->count; i++)
        for (unsigned k = i + 1; k < question->count; k++) {
            const struct span span = span_of(&question->readings[i], &question->readings[k]);

            if (span.elapsed_ns > 0 && span.error_ns * best.elapsed_ns <= best.error_ns * span.elapsed_ns)
                best = span;
        }
    return best;
}

double ct_timer_error(const struct ct_timer_question *question)
{
    const struct span span = best_span(question);

    return span.elapsed_ns > 0 ? span.error_ns / span.elapsed_ns : 1;
}

static double tick_of_cycles(const struct ct_timer_question *question)
{
    const struct ct_timer_reading *first = &question->readings[0], *last = &question->readings[question->count - 1];

    return (double)(last->after_ns - first->before_ns) / (double)(last->cycles_after - first->cycles_before);
}

static double find_tick(const struct ct_timer_question *question)
{
    const double known[] = {question->nominal_ns, 1};
    const struct span span = best_span(question);

    if (span.ticks == 0 || counts_cycles(question))
        return span.ticks == 0 ? 0 : tick_of_cycles(question);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] > 0 && fabs(span.ticks * known[i] - span.elapsed_ns) <= span.error_ns + 0.001 * span.elapsed_ns)
            return known[i];
    return span.elapsed_ns / span.ticks;
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

/* Reads both of the host's clocks at almost the same time, unless the machine is very busy. */
static void read_clocks(int64_t *ns, uint64_t *cycles)
{
    int64_t first, second;

    for (unsigned i = 0; i < READS_MAX; i++) {
        first = now_ns(CLOCK_MONOTONIC_RAW);
        *cycles = processor_cycles();
        second = now_ns(CLOCK_MONOTONIC_RAW);
        *ns = first + (second - first) / 2;
        if (second - first <= READ_NS)
            break;
    }
}

static void before_round(void *user, unsigned round)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct ct_timer_reading *reading = (struct ct_timer_reading *)user + round;

    if (round > 1)
        nanosleep(&pause, NULL);
    read_clocks(&reading->before_ns, &reading->cycles_before);
}

static void after_round(void *user, unsigned round, const void *output)
{
    struct ct_timer_reading *reading = (struct ct_timer_reading *)user + round;

    read_clocks(&reading->after_ns, &reading->cycles_after);
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
    CUresult r = CUDA_ERROR_NOT_READY;

    for (unsigned i = 0; i < TRIES && (i == 0 || (r == CUDA_SUCCESS && ct_timer_error(&question) > ERROR_MAX)); i++)
        r = ct_probe_execute(device->backend, opened, &device->info.target, &job);
    if (r != CUDA_SUCCESS)
        return ct_fail(r, "the clock of device %d cannot be read", device->ordinal);
    question.at_ns = now_ns(CLOCK_MONOTONIC_RAW);
    question.realtime_ns = now_ns(CLOCK_REALTIME);
    if (!ct_timer_find(&question, out))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the clock of device %d does not advance with time", device->ordinal);
    ct_log(CT_LOG_DEBUG, "a tick of device %d is %llu + %.9f ns", device->ordinal, (unsigned long long)out->whole_ns,
           (double)out->fraction * 0x1p-64);
    return CUDA_SUCCESS;
}

/* ---- once for each device ---- */

enum { NOT_YET, RUNNING, DONE };

CUresult ct_timer_ensure(struct ct_context *context)
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
