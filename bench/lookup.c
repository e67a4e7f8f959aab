/* SPDX-License-Identifier: Apache-2.0 */
/* The time to find the range that contains an address: core's address map alone, with as many live ranges as argument 1 says, far apart
 * (64 KiB) and close together (1 KiB, as for small allocations). Addresses are looked up in an unpredictable order, and from a small set, as
 * programs do. "At random": look-ups are independent, so a processor can overlap them. "In turn": each address depends on the result of the
 * previous look-up, so that cache misses have their full latency. Prints "name value unit". */
#include "core/memory/memory.h"

#include "timing.h"

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 2001 /* each is shorter than 1 ms, so that few are interrupted */
#define LOOKUPS 500u
#define FIRST ((uint64_t)1 << 36)

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The mean time of a round of look-ups in `among` of the ranges; 0: one was not found. With `in_turn` each address depends on the previous
 * result. */
static double measure_round(uint64_t stride, unsigned among, bool in_turn, uint32_t *state)
{
    struct ct_range range = {.memory_offset = 0}, none = range; /* as in all ranges */
    const struct ct_range *before = in_turn ? &range : &none;
    double start = now_us();

    for (unsigned i = 0; i < LOOKUPS; i++) {
        uint64_t which = (uint64_t)next_random(state) * among >> 24;

        if (ct_address_find(FIRST + stride * which + 100 + before->memory_offset, 1, &range) != CUDA_SUCCESS)
            return 0;
    }
    return (now_us() - start) * 1e3 / LOOKUPS;
}

static double measure(uint64_t stride, unsigned among, bool in_turn)
{
    double rounds[ROUNDS];
    uint32_t state = 1;

    for (unsigned i = 0; i < ROUNDS; i++)
        rounds[i] = measure_round(stride, among, in_turn, &state);
    return median(rounds, ROUNDS);
}

static void print(const char *what, uint64_t stride, double ns)
{
    printf("%5llu KiB apart: %-28s %10.3f ns\n", (unsigned long long)(stride >> 10), what, ns);
}

static int run(uint64_t stride, unsigned count)
{
    double start = now_us();
    struct ct_range removed;

    for (unsigned i = 0; i < count; i++) {
        const struct ct_range range = {.start = FIRST + stride * i, .size_bytes = stride / 2, .kind = CT_RANGE_DEVICE, .id = i + 1};

        if (ct_address_insert(&range) != CUDA_SUCCESS)
            return 1;
    }
    print("insert", stride, (now_us() - start) * 1e3 / count);
    print("look-up, all at random", stride, measure(stride, count, false));
    print("look-up, all in turn", stride, measure(stride, count, true));
    print("look-up, 1000 in turn", stride, measure(stride, count < 1000 ? count : 1000, true));
    print("look-up, one in turn", stride, measure(stride, 1, true));
    start = now_us();
    for (unsigned i = 0; i < count; i++)
        if (ct_address_remove(FIRST + stride * i, CT_RANGE_DEVICE, &removed) != CUDA_SUCCESS)
            return 1;
    print("remove", stride, (now_us() - start) * 1e3 / count);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 100000;

    return run(64 << 10, count) || run(1 << 10, count);
}
