/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that depend on features which are hard to implement (kernels/ *.ptx), compared with plain C, in the threads' order and in
 * random orders. */
#include "test_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

#define MAX_WORDS 1024

static uint32_t in[MAX_WORDS], out[MAX_WORDS], want[MAX_WORDS];

static void fill(uint32_t seed, uint32_t mask)
{
    for (unsigned i = 0; i < MAX_WORDS; i++) {
        seed = seed * 1664525 + 1013904223;
        in[i] = seed >> 8 & mask;
    }
    memset(out, 0, sizeof out);
    memset(want, 0, sizeof want);
}

/* Runs the kernel with several orders of its threads and compares out[] with want[]. */
static void check(const char *file, const char *kernel, uint32_t threads, uint32_t n_out, uint32_t count)
{
    char *text = test_read_file(file);
    struct oracle_result result;
    struct test_run run = {.text = text,
                           .kernel = kernel,
                           .threads = threads,
                           .in = in,
                           .out = out,
                           .n_in = threads,
                           .n_out = n_out,
                           .count = count,
                           .dynamic_shared_bytes = threads * 4};

    for (run.schedule = 0; run.schedule < 6; run.schedule++) {
        memset(out, 0, sizeof out);
        if (test_run(&run, &result) != ORACLE_OK)
            fail_msg("%s: %s: %s", kernel, oracle_status_name(result.status), result.message);
        assert_memory_equal(out, want, n_out * sizeof *out);
    }
    free(text);
}

static void shuffle_sum(void **state)
{
    (void)state;
    fill(1, 0xffff);
    for (unsigned i = 0; i < 75; i++) /* the last warp has 11 lanes */
        want[i / 32] += in[i];
    check("warps.ptx", "shuffle_sum", 75, 3, 0);
}

static uint32_t lanes_like(const uint32_t *warp, uint32_t mask, uint32_t value)
{
    uint32_t lanes = 0;

    for (unsigned i = 0; i < 32; i++)
        lanes |= (uint32_t)((warp[i] & mask) == value) << i;
    return lanes;
}

static void votes(void **state)
{
    (void)state;
    fill(2, 3);
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t *warp = in + i / 32 * 32;
        const uint32_t odd = lanes_like(warp, 3, 1), even = lanes_like(warp, 3, 0);

        if (in[i] < 2) /* LOW: the ballot of its odd lanes; uni */
            want[i] = (odd == 0 || even == 0 ? 16u : 32u) << 8 | (uint32_t)__builtin_popcount(odd);
        else /* the other branch: any and all are true for the odd one */
            want[i] = (in[i] == 3 ? 3u : 0u) << 8 | (uint32_t)__builtin_popcount(lanes_like(warp, 3, in[i]));
    }
    check("warps.ptx", "votes", 64, 64, 0);
}

static void meeting(void **state)
{
    (void)state;
    fill(3, 0xff);
    for (unsigned i = 0; i < 32; i++)
        want[i] = in[i ^ 1] + (i & 1 ? 0 : 1000);
    check("warps.ptx", "meeting", 32, 32, 0);
}

static void match_and_redux(void **state)
{
    uint32_t sum = 0, most = 0, bits = 0;

    (void)state;
    fill(4, 7);
    for (unsigned i = 0; i < 32; i++) {
        sum += in[i];
        most = in[i] > most ? in[i] : most;
        bits ^= in[i];
    }
    for (unsigned i = 0; i < 32; i++) {
        const uint32_t row[] = {lanes_like(in, ~0u, in[i]), 0, sum, most, bits};

        memcpy(want + 5 * i, row, sizeof row);
    }
    check("warps.ptx", "match_redux", 32, 160, 0);
}

static void pipeline(void **state)
{
    (void)state;
    fill(5, 0xffff);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned i = 0; i < 7; i++)
            want[lane] += (in[lane] + i) * (i + 1);
    check("barriers.ptx", "pipeline", 64, 32, 7);
}

static void exits(void **state)
{
    (void)state;
    fill(6, 0xff);
    for (unsigned i = 0; i < 96; i++) {
        const uint32_t before = in[(i + 95) % 96];

        want[i] = in[i] & 1 ? 0 : before & 1 ? UINT32_MAX : before;
    }
    check("barriers.ptx", "exits", 96, 96, 0);
}

static void barrier_reductions(void **state)
{
    const uint32_t limits[] = {0x7f, 0x1000, 0};
    char *text = test_read_file("barriers.ptx");

    (void)state;
    for (unsigned which = 0; which < 3; which++) {
        uint32_t n = 0;

        fill(7, 0xff);
        for (unsigned i = 0; i < 80; i++)
            in[i] += 1;
        for (unsigned i = 0; i < 80; i++)
            n += in[i] > limits[which];
        for (unsigned i = 0; i < 80; i++)
            want[i] = n + (n == 80 ? 1000 : 0) + (n ? 2000 : 0);
        check("barriers.ptx", "reductions", 80, 80, limits[which]);
    }
    free(text);
}

static void message(void **state)
{
    (void)state;
    fill(8, 0xffff);
    for (unsigned i = 0; i < 40; i++)
        want[i] = in[0] + i;
    check("barriers.ptx", "message", 40, 40, 0);
}

static void irreducible(void **state)
{
    (void)state;
    fill(9, 0xffff);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t value = in[i], fuel = 9;
        bool at_head = !(value & 1);

        for (;;) {
            if (at_head) {
                value = value * 3 + 1;
                fuel--;
            }
            value ^= 0x5a5a;
            if (fuel == 0)
                break;
            at_head = value & 8;
            if (!at_head) {
                value += 11;
                fuel--;
            }
        }
        want[i] = value;
    }
    check("flow.ptx", "irreducible", 64, 64, 9);
}

static uint32_t factorial(uint32_t n)
{
    return n <= 1 ? 1 : n * factorial(n - 1);
}

static void calls(void **state)
{
    static const uint32_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19};

    (void)state;
    fill(10, 0x2f);
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t value = in[i] >> 2;

        switch (in[i] & 3) {
        case 0:
            want[i] = factorial(value);
            break;
        case 1:
            want[i] = value < 4 ? value * value : value * 2;
            break;
        case 2:
            want[i] = primes[value & 7];
            break;
        default:
            want[i] = 5;
            break;
        }
    }
    check("flow.ptx", "calls", 64, 64, 0);
}

static void pointers(void **state)
{
    (void)state;
    fill(11, 0xff);
    for (unsigned i = 0; i < 64; i++)
        want[i] = (in[i] + 1) * (in[i] % 3 == 2 ? 1 : 2);
    check("flow.ptx", "pointers", 64, 64, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffle_sum),
        cmocka_unit_test(votes),
        cmocka_unit_test(meeting),
        cmocka_unit_test(match_and_redux),
        cmocka_unit_test(pipeline),
        cmocka_unit_test(exits),
        cmocka_unit_test(barrier_reductions),
        cmocka_unit_test(message),
        cmocka_unit_test(irreducible),
        cmocka_unit_test(calls),
        cmocka_unit_test(pointers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
