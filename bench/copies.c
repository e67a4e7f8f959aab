/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a copy until it is complete, compared with memcpy, for several sizes and each kind of copy. A round measures a series of memcpy
 * between ordinary memory and a series of copies of as many bytes, so that disturbances affect both; every other round begins with the
 * copies. Prints, for each kind and size, the median and the quartiles of memcpy's time divided by the copy's in the same round (1: equally
 * fast), and of the copy's additional time. Argument 1: rounds; argument 2: only kinds whose name contains this text. */
#include "example.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define LARGEST (64 * MIB)
#define RUN_BYTES (8 * MIB) /* small copies are repeated within a round, up to this total */
#define MOST_REPEATS 500

/* The memory that is copied from and to. */
struct places {
    CUdeviceptr a, b;
    char *pinned, *pageable, *other;
};

static void by_memcpy(const struct places *on, size_t bytes)
{
    memcpy(on->other, on->pageable, bytes);
    __asm__ volatile("" ::: "memory"); /* prevents the compiler from merging copies */
}

static void pageable_to_device(const struct places *on, size_t bytes)
{
    CHECK(cuMemcpyHtoD(on->a, on->pageable, bytes));
}

static void device_to_pageable(const struct places *on, size_t bytes)
{
    CHECK(cuMemcpyDtoH(on->pageable, on->a, bytes));
}

static void pinned_to_device(const struct places *on, size_t bytes)
{
    CHECK(cuMemcpyHtoD(on->a, on->pinned, bytes));
}

static void device_to_pinned(const struct places *on, size_t bytes)
{
    CHECK(cuMemcpyDtoH(on->pinned, on->a, bytes));
}

static void within_device(const struct places *on, size_t bytes)
{
    CHECK(cuMemcpyDtoD(on->b, on->a, bytes));
    CHECK(cuStreamSynchronize(NULL));
}

static void pageable_to_device_async(const struct places *on, size_t bytes)
{
    CHECK(cuMemcpyHtoDAsync(on->a, on->pageable, bytes, NULL));
    CHECK(cuStreamSynchronize(NULL));
}

static void pinned_to_device_async(const struct places *on, size_t bytes)
{
    CHECK(cuMemcpyHtoDAsync(on->a, on->pinned, bytes, NULL));
    CHECK(cuStreamSynchronize(NULL));
}

static void device_to_pinned_async(const struct places *on, size_t bytes)
{
    CHECK(cuMemcpyDtoHAsync(on->pinned, on->a, bytes, NULL));
    CHECK(cuStreamSynchronize(NULL));
}

typedef void copy_function(const struct places *on, size_t bytes);

static const struct method {
    const char *name;
    copy_function *run;
} methods[] = {
    {"memcpy itself", by_memcpy}, /* shows the noise: two equal series */
    {"pageable to device", pageable_to_device},
    {"device to pageable", device_to_pageable},
    {"pinned to device", pinned_to_device},
    {"device to pinned", device_to_pinned},
    {"within the device", within_device},
    {"pageable to device, async", pageable_to_device_async},
    {"pinned to device, async", pinned_to_device_async},
    {"device to pinned, async", device_to_pinned_async},
};

/* The mean time of a copy in nanoseconds. */
static double time_of(copy_function *run, const struct places *on, size_t bytes, unsigned repeats)
{
    double start = now_us();

    for (unsigned i = 0; i < repeats; i++)
        run(on, bytes);
    return (now_us() - start) * 1e3 / repeats;
}

static double quartile(const double *sorted, unsigned count, unsigned which)
{
    return sorted[(count - 1) * which / 4];
}

static void measure(const struct method *method, const struct places *on, size_t bytes, unsigned rounds, double *ratios, double *beyond)
{
    const unsigned repeats = RUN_BYTES / bytes > MOST_REPEATS ? MOST_REPEATS : bytes < RUN_BYTES ? (unsigned)(RUN_BYTES / bytes) : 1;

    time_of(by_memcpy, on, bytes, 1); /* touches pages */
    time_of(method->run, on, bytes, 1);
    for (unsigned round = 0; round < rounds; round++) {
        double host = round % 2 ? 0 : time_of(by_memcpy, on, bytes, repeats), ours = time_of(method->run, on, bytes, repeats);

        if (round % 2)
            host = time_of(by_memcpy, on, bytes, repeats);
        ratios[round] = host / ours;
        beyond[round] = ours - host;
    }
    median(ratios, rounds); /* sorts */
    median(beyond, rounds);
    printf("%-28s %6zu KiB  %6.3f (%.3f to %.3f)  %+9.0f ns (%+.0f to %+.0f)\n", method->name, bytes >> 10, quartile(ratios, rounds, 2),
           quartile(ratios, rounds, 1), quartile(ratios, rounds, 3), quartile(beyond, rounds, 2), quartile(beyond, rounds, 1),
           quartile(beyond, rounds, 3));
    fflush(stdout);
}

static void measure_all(const struct places *on, unsigned rounds, const char *wanted)
{
    static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, LARGEST};
    double *ratios = malloc(rounds * sizeof *ratios), *beyond = malloc(rounds * sizeof *beyond);

    if (!ratios || !beyond)
        exit(1);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (size_t size = 0; size < sizeof sizes / sizeof *sizes && strstr(methods[i].name, wanted); size++)
            measure(&methods[i], on, sizes[size], rounds, ratios, beyond);
    free(ratios);
    free(beyond);
}

int main(int argc, char **argv)
{
    const long rounds = argc > 1 ? strtol(argv[1], NULL, 0) : 41;
    struct places places;
    CUcontext context;
    CUdevice device;

    device = example_open(&context);
    CHECK(cuMemAlloc(&places.a, LARGEST));
    CHECK(cuMemAlloc(&places.b, LARGEST));
    CHECK(cuMemHostAlloc((void **)&places.pinned, LARGEST, 0));
    places.pageable = malloc(LARGEST);
    places.other = malloc(LARGEST);
    if (!places.pageable || !places.other || rounds < 1 || rounds > 10000)
        return 1;
    memset(places.pinned, 1, LARGEST);
    memset(places.pageable, 2, LARGEST);
    measure_all(&places, (unsigned)rounds, argc > 2 ? argv[2] : "");
    free(places.pageable);
    free(places.other);
    CHECK(cuMemFreeHost(places.pinned));
    CHECK(cuMemFree(places.a));
    CHECK(cuMemFree(places.b));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
