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
 *   If the clock has the lower 32 bits of CLOCK_MONOTONIC's nanoseconds only (lavapipe 25.0.7, whose clock is that one without its upper
 * half), a thread keeps a reference in memory up to date, from which kernels extend the clock (struct ptx2spv_timer).
 * The origin is chosen such that the timer equals the host's CLOCK_REALTIME, as with NVIDIA's CUDA driver; from then on it advances
 * without adjustments. */
#include "timer.h"

#include "context.h"
#include "core/base/log.h"
#include "core/base/object.h"
#include "core/base/thread.h"
#include "core/backing/memory_backing.h"
#include "probe_job.h"

#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
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
#define CLOCKS_NS 100000  /* allowed for the drift between two clocks of the host during the readings */
#define REFRESH_NS 250000000l

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
static bool counts_cycles(const struct ct_timer_input *input)
{
    for (unsigned i = 0; i < input->count; i++) {
        const struct ct_timer_reading *reading = &input->readings[i];

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
static struct span best_span(const struct ct_timer_input *input)
{
    struct span best = {.error_ns = 1};

    for (unsigned i = 0; i < input->count; i++)
        for (unsigned k = i + 1; k < input->count; k++) {
            const struct span span = span_of(&input->readings[i], &input->readings[k]);

            if (span.elapsed_ns > 0 && span.error_ns * best.elapsed_ns <= best.error_ns * span.elapsed_ns)
                best = span;
        }
    return best;
}

double ct_timer_error(const struct ct_timer_input *input)
{
    const struct span span = best_span(input);

    return span.elapsed_ns > 0 ? span.error_ns / span.elapsed_ns : 1;
}

static double tick_of_cycles(const struct ct_timer_input *input)
{
    const struct ct_timer_reading *first = &input->readings[0], *last = &input->readings[input->count - 1];

    return (double)(last->after_ns - first->before_ns) / (double)(last->cycles_after - first->cycles_before);
}

static double find_tick(const struct ct_timer_input *input)
{
    const double known[] = {input->nominal_ns, 1};
    const struct span span = best_span(input);

    if (span.ticks == 0 || counts_cycles(input))
        return span.ticks == 0 ? 0 : tick_of_cycles(input);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] > 0 && fabs(span.ticks * known[i] - span.elapsed_ns) <= span.error_ns + 0.001 * span.elapsed_ns)
            return known[i];
    return span.elapsed_ns / span.ticks;
}

bool ct_timer_find(const struct ct_timer_input *input, struct ptx2spv_timer *out)
{
    const struct ct_timer_reading *last = &input->readings[input->count - 1];
    const double tick = find_tick(input), whole = floor(tick);
    struct ptx2spv_timer timer = {0};

    if (tick <= 0 || tick > 1e9)
        return false;
    timer.whole_ns = (uint64_t)whole;
    timer.fraction = (uint64_t)((tick - whole) * 0x1p64);
    timer.origin_ns = (uint64_t)(input->realtime_ns - input->at_ns + (int64_t)middle(last));
    timer.origin_ns -= last->ticks * timer.whole_ns + (uint64_t)((unsigned __int128)last->ticks * timer.fraction >> 64);
    *out = timer;
    return true;
}

/* ---- a clock without its upper half ---- */

static int64_t now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Completes the readings of the lower half of CLOCK_MONOTONIC. False: the clock is another one. */
static bool complete_readings(struct ct_timer_reading *readings, unsigned count)
{
    const int64_t ahead = now_ns(CLOCK_MONOTONIC) - now_ns(CLOCK_MONOTONIC_RAW);
    uint64_t ticks[ROUNDS];

    for (unsigned i = 0; i < count; i++) {
        const uint64_t first = (uint64_t)(readings[i].before_ns + ahead) - CLOCKS_NS;
        const uint32_t later = (uint32_t)readings[i].ticks - (uint32_t)first;

        if (readings[i].ticks > UINT32_MAX || later > (uint64_t)(readings[i].after_ns - readings[i].before_ns) + 2 * CLOCKS_NS)
            return false;
        ticks[i] = first + later;
    }
    for (unsigned i = 0; i < count; i++)
        readings[i].ticks = ticks[i];
    return true;
}

/* Atomic, since two threads may do so at once, and relaxed: a kernel needs any value of the last two seconds. */
static void store_reference(struct ct_context *context)
{
    char *timer = (char *)context->fault->host + PTX2SPV_TIMER_OFFSET;

    atomic_store_explicit((_Atomic uint64_t *)(timer + offsetof(struct ptx2spv_timer, reference)), (uint64_t)now_ns(CLOCK_MONOTONIC),
                          memory_order_relaxed);
}

static void refresh_context(struct ct_context *context)
{
    if (ct_context_use(context) != CUDA_SUCCESS)
        return;
    if (atomic_load_explicit(&context->needs_reference, memory_order_relaxed))
        store_reference(context);
    ct_context_release(context);
}

static void *refresh_references(void *unused)
{
    const struct timespec pause = {.tv_nsec = REFRESH_NS};

    (void)unused;
    for (;;) {
        struct ct_object *object;
        uint32_t cursor = 0;

        while ((object = ct_object_next_or_null(CT_OBJECT_CONTEXT, &cursor))) {
            refresh_context((struct ct_context *)object);
            ct_object_release(object);
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* One thread for the process, which ends with it. */
static CUresult start_refreshing(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool runs;
    bool started;

    pthread_mutex_lock(&lock);
    runs = started = runs || ct_thread_start_detached(refresh_references, NULL) == 0;
    pthread_mutex_unlock(&lock);
    return started ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no thread for the clock");
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
    struct ct_timer_input input = {.readings = readings + 1, .count = ROUNDS, .nominal_ns = device->info.timestamp_period_ns};
    CUresult r = CUDA_ERROR_NOT_READY;
    bool is_half = false;

    for (unsigned i = 0; i < TRIES && (i == 0 || (r == CUDA_SUCCESS && ct_timer_error(&input) > ERROR_MAX)); i++) {
        r = ct_probe_execute(device->backend, opened, &device->info.target, &job);
        is_half = r == CUDA_SUCCESS && (device->info.target.workarounds & PTX2SPV_WORKAROUND_TRUNCATED_CLOCK) != 0 &&
                  complete_readings(readings + 1, ROUNDS);
    }
    if (r != CUDA_SUCCESS)
        return ct_fail(r, "the clock of device %d cannot be read", device->ordinal);
    if (is_half && (r = start_refreshing()) != CUDA_SUCCESS)
        return r;
    input.at_ns = now_ns(CLOCK_MONOTONIC_RAW);
    input.realtime_ns = now_ns(CLOCK_REALTIME);
    if (!ct_timer_find(&input, out))
        return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "the clock of device %d does not advance with time", device->ordinal);
    out->lost_bits = is_half ? 32 : 0;
    ct_log(CT_LOG_DEBUG, "a tick of device %d is %llu + %.9f ns", device->ordinal, (unsigned long long)out->whole_ns,
           (double)out->fraction * 0x1p-64);
    return CUDA_SUCCESS;
}

/* ---- once for each device ---- */

static CUresult ensure_measured(struct ct_device *device, struct ct_backend_device *opened)
{
    CUresult r;

    if (!ct_once_begin(&device->timer_measured, &device->lock))
        return CUDA_SUCCESS;
    r = measure(device, opened, &device->timer);
    ct_once_end(&device->timer_measured, &device->lock, r == CUDA_SUCCESS);
    return r;
}

CUresult ct_timer_ensure(struct ct_context *context)
{
    struct ct_device *device = context->device;
    const struct ptx2spv_timer *timer = &device->timer;
    CUresult r = ensure_measured(device, context->backend_device);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&device->lock);
    memcpy((char *)context->fault->host + PTX2SPV_TIMER_OFFSET, timer, offsetof(struct ptx2spv_timer, reference));
    if (timer->lost_bits)
        store_reference(context);
    atomic_store_explicit(&context->needs_reference, timer->lost_bits != 0, memory_order_relaxed);
    ct_mutex_unlock(&device->lock);
    return CUDA_SUCCESS;
}
