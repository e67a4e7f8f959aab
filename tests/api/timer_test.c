/* SPDX-License-Identifier: Apache-2.0 */
/* The computation of %globaltimer: the length of a tick is estimated from readings of clocks as drivers provide them, and the formula that
 * kernels use then gives the host's time. The readings are synthetic: launches of 50 us in which the clock is read at a random time. */
#include "core/device/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#define COUNT 4
#define LAUNCH_NS 50000
#define BETWEEN_NS 4000000

struct clock {
    const char *name;
    double tick_ns;
    uint64_t first; /* ticks at the first reading */
    double nominal_ns;
    double cycle_ns;        /* of the processor's counter; 0: none */
    bool is_counter;        /* the clock is that counter */
    double want_ns, within; /* relative error of the tick */
};

static const struct clock clocks[] = {
    {"nanoseconds, as NVIDIA's", 1, UINT64_C(1700000000000000000), 1, 0.4, false, 1, 0},
    {"timestamps of 100 MHz, as RADV's", 10, 123456789, 10, 0.3, false, 10, 0},
    {"nanoseconds whose timestamps count otherwise", 1, 5000, 80, 0.3, false, 1, 0},
    {"the processor's counter, as lavapipe's", 0.4, UINT64_C(1) << 50, 1, 0.4, true, 0.4, 1e-4},
    {"a counter of a billion Hz all the same", 1, 77, 1, 1, true, 1, 1e-4},
    {"another clock altogether", 52.083333, 1000000, 80, 0.3, false, 52.083333, 0.02},
    {"a clock far along", 0.7, UINT64_C(0xf000000000000000), 1, 0, false, 0.7, 0.02},
};

static void make_readings(const struct clock *clock, struct ct_timer_reading *readings)
{
    for (int i = 0; i < COUNT; i++) {
        const int64_t before = 1000000 + (int64_t)i * BETWEEN_NS, at = before + LAUNCH_NS * (i + 1) / (COUNT + 1);
        const uint64_t cycles = clock->is_counter ? clock->first : 99;

        readings[i] = (struct ct_timer_reading){
            .ticks = clock->first + (uint64_t)((double)(at - 1000000) / clock->tick_ns),
            .before_ns = before,
            .after_ns = before + LAUNCH_NS,
            .cycles_before = clock->cycle_ns > 0 ? cycles + (uint64_t)((double)(before - 1000000) / clock->cycle_ns) : 0,
            .cycles_after = clock->cycle_ns > 0 ? cycles + (uint64_t)((double)(before + LAUNCH_NS - 1000000) / clock->cycle_ns) : 0,
        };
    }
}

/* The computation of kernels. */
static uint64_t timer_at(const struct ptx2spv_timer *timer, uint64_t ticks)
{
    return timer->origin_ns + ticks * timer->whole_ns + (uint64_t)((unsigned __int128)ticks * timer->fraction >> 64);
}

static void test_ticks_become_nanoseconds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        const struct clock *clock = &clocks[i];
        struct ct_timer_reading readings[COUNT];
        const int64_t realtime = INT64_C(1700000000123456789);
        struct ct_timer_input input = {.readings = readings, .count = COUNT, .nominal_ns = clock->nominal_ns, .realtime_ns = realtime};
        struct ptx2spv_timer timer;
        uint64_t now, later;
        double tick;

        make_readings(clock, readings);
        input.at_ns = readings[COUNT - 1].after_ns;
        assert_true(ct_timer_find(&input, &timer));
        tick = (double)timer.whole_ns + (double)timer.fraction * 0x1p-64;
        if (fabs(tick / clock->want_ns - 1) > clock->within)
            fail_msg("%s: a tick of %.9f ns", clock->name, tick);
        now = timer_at(&timer, readings[COUNT - 1].ticks);
        if (llabs((long long)(now - (uint64_t)realtime)) > LAUNCH_NS)
            fail_msg("%s: %llu ns at %lld", clock->name, (unsigned long long)now, (long long)realtime);
        later = timer_at(&timer, readings[COUNT - 1].ticks + (uint64_t)(1e9 / clock->tick_ns)); /* a second */
        if (fabs((double)(later - now) / 1e9 - 1) > clock->within + 1e-6)
            fail_msg("%s: a second is %llu ns", clock->name, (unsigned long long)(later - now));
    }
}

/* A busy machine: launches in which the clock is read at the very beginning or end of 6 ms. The measurement alone would give 1.4 ns for a
 * tick. */
static void test_long_launches_tell_less(void **state)
{
    const struct ct_timer_reading readings[2] = {{.ticks = 6000000, .before_ns = 0, .after_ns = 6000000},
                                                 {.ticks = 20000000, .before_ns = 20000000, .after_ns = 26000000}};
    const struct ct_timer_reading narrow[3] = {readings[0],
                                               {.ticks = 8000000, .before_ns = 7990000, .after_ns = 8010000},
                                               {.ticks = 18000000, .before_ns = 17990000, .after_ns = 18010000}};
    struct ct_timer_input input = {.readings = readings, .count = 2, .nominal_ns = 1};
    struct ptx2spv_timer timer;

    (void)state;
    assert_true(ct_timer_error(&input) > 0.2);
    assert_true(ct_timer_find(&input, &timer));
    assert_int_equal(timer.whole_ns, 1);
    assert_int_equal(timer.fraction, 0);
    input.readings = narrow;
    input.count = 3;
    assert_true(ct_timer_error(&input) < 0.003); /* from the two narrow intervals */
}

static void test_a_clock_that_stands_is_none(void **state)
{
    const struct ct_timer_reading readings[2] = {{.ticks = 5, .before_ns = 0, .after_ns = 9},
                                                 {.ticks = 5, .before_ns = 100, .after_ns = 109}};
    const struct ct_timer_reading backwards[2] = {{.ticks = 5, .before_ns = 0, .after_ns = 9},
                                                  {.ticks = 4, .before_ns = 100, .after_ns = 109}};
    struct ct_timer_input input = {.readings = readings, .count = 2, .nominal_ns = 1};
    struct ptx2spv_timer timer = {.origin_ns = 77};

    (void)state;
    assert_false(ct_timer_find(&input, &timer));
    input.readings = backwards;
    assert_false(ct_timer_find(&input, &timer));
    assert_int_equal(timer.origin_ns, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks_become_nanoseconds),
        cmocka_unit_test(test_long_launches_tell_less),
        cmocka_unit_test(test_a_clock_that_stands_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
