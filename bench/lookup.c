/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to find the range that an address lies in: core's map of addresses by itself, with as many live ranges as argument 1 says.
 * Addresses come in an order that no cache foresees, and from a small set, as a program's own do. Prints "name value unit". */
#include "core/memory.h"

#include "timing.h"

#include <stdio.h>
#include <stdlib.h>

#define LOOKUPS 2000000u
#define FIRST ((uint64_t)1 << 36)
#define STRIDE ((uint64_t)1 << 16)

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The mean of look-ups among `among` of the ranges; 0: one was not found. */
static double measure(unsigned among)
{
    struct ct_range range;
    uint32_t state = 1;
    double start = now_us();

    for (unsigned i = 0; i < LOOKUPS; i++)
        if (ct_address_find(FIRST + STRIDE * (next_random(&state) % among) + 100, 1, &range) != CUDA_SUCCESS)
            return 0;
    return (now_us() - start) * 1e3 / LOOKUPS;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 100000;
    double start = now_us();

    for (unsigned i = 0; i < count; i++) {
        const struct ct_range range = {.start = FIRST + STRIDE * i, .size_bytes = STRIDE / 2, .kind = CT_RANGE_DEVICE, .id = i + 1};

        if (ct_address_insert(&range) != CUDA_SUCCESS)
            return 1;
    }
    printf("%-36s %12.3f ns\n", "insert", (now_us() - start) * 1e3 / count);
    printf("%-36s %12.3f ns\n", "look-up, all ranges at random", measure(count));
    printf("%-36s %12.3f ns\n", "look-up, 1000 of the ranges", measure(count < 1000 ? count : 1000));
    printf("%-36s %12.3f ns\n", "look-up, one range", measure(1));
    return 0;
}
