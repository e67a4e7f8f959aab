/* SPDX-License-Identifier: Apache-2.0 */
/* The time of calls by address and of recursive ones: run it with each driver library in turn (bench/README.md).
 *   bench_calls [BLOCKS]
 * Lists of objects call a virtual method of each object: one list of 64 points, and eight lists of eight, the first of which contains the others.
 * Then Fibonacci numbers. All results are checked. */
#include "../launch_time.h"

#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 128, POINTS = 64, LISTS = 8, MOST = 1000, ROUNDS = 32, NUMBER = 14, WORLD_BYTES = 1 << 16 };

static unsigned nearest_of(const unsigned *places, unsigned thread)
{
    unsigned sum = 0, x = thread;

    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned most = MOST, found = POINTS, at;

        x = x * 1664525u + 1013904223u;
        at = x >> 16;
        for (unsigned p = 0; p < POINTS; p++) {
            const unsigned distance = at > places[p] ? at - places[p] : places[p] - at;

            if (distance < most) {
                most = distance;
                found = p;
            }
        }
        if (found < POINTS)
            sum = sum * 3 + most + found;
    }
    return sum;
}

static unsigned fibonacci_of(unsigned n)
{
    unsigned a = 0, b = 1;

    for (unsigned i = 0; i < n; i++) {
        const unsigned sum = a + b;

        a = b;
        b = sum;
    }
    return a;
}

static bool report(const char *name, double ms, double calls, bool is_right)
{
    printf("%-16s %10.3f ms  %9.2f 10^9 calls/s%s\n", name, ms, calls / ms / 1e6, is_right ? "" : "  WRONG");
    return is_right;
}

static bool measure_lists(CUmodule module, const char *name, unsigned is_nested, unsigned blocks)
{
    const unsigned one[2] = {1, 1}, grid[2] = {blocks, 1}, block[2] = {THREADS, 1};
    const unsigned n = blocks * THREADS, calls = POINTS + (is_nested ? LISTS : 1), rounds = ROUNDS;
    CUdeviceptr world = example_upload(NULL, WORLD_BYTES), out = example_upload(NULL, n * sizeof(unsigned)), places_there;
    unsigned places[POINTS], state = 1, *results = malloc(n * sizeof *results);
    bool is_right = true;
    CUfunction make, nearest;
    double ms;

    if (!results)
        exit(EXIT_FAILURE);
    for (unsigned i = 0; i < POINTS; i++)
        places[i] = example_random(&state) >> 16;
    places_there = example_upload(places, sizeof places);
    CHECK(cuModuleGetFunction(&make, module, "make_world"));
    CHECK(cuModuleGetFunction(&nearest, module, "nearest"));
    least_launch_ms(make, one, one, (void *[]){&world, &places_there, &is_nested});
    ms = least_launch_ms(nearest, grid, block, (void *[]){&world, &out, (void *)&rounds});
    example_download(results, out, n * sizeof *results);
    for (unsigned t = 0; t < n; t += 97)
        is_right &= results[t] == nearest_of(places, t);
    CHECK(cuMemFree(world));
    CHECK(cuMemFree(out));
    CHECK(cuMemFree(places_there));
    free(results);
    return report(name, ms, (double)n * ROUNDS * calls, is_right);
}

static bool measure_recursion(CUmodule module, unsigned blocks)
{
    const unsigned grid[2] = {blocks, 1}, block[2] = {THREADS, 1}, n = blocks * THREADS;
    const double calls_of_two = 2 * fibonacci_of(NUMBER + 1) - 1 + 2 * fibonacci_of(NUMBER + 2) - 1;
    CUdeviceptr out = example_upload(NULL, n * sizeof(unsigned));
    unsigned number = NUMBER, *results = malloc(n * sizeof *results);
    bool is_right = true;
    CUfunction function;
    double ms;

    if (!results)
        exit(EXIT_FAILURE);
    CHECK(cuModuleGetFunction(&function, module, "fibonacci"));
    ms = least_launch_ms(function, grid, block, (void *[]){&out, &number});
    example_download(results, out, n * sizeof *results);
    for (unsigned t = 0; t < n; t++)
        is_right &= results[t] == fibonacci_of(NUMBER + (t & 1));
    CHECK(cuMemFree(out));
    free(results);
    return report("fibonacci", ms, n / 2 * calls_of_two, is_right);
}

int main(int argc, char **argv)
{
    const unsigned blocks = argc > 1 ? (unsigned)atoi(argv[1]) : 8192;
    struct example example;
    bool right;

    example_begin(&example, 1, argv, "calls", blocks);
    right = measure_lists(example.module, "a list", 0, blocks);
    right &= measure_lists(example.module, "lists in a list", 1, blocks);
    right &= measure_recursion(example.module, blocks);
    example.failed = !right;
    return example_end(&example);
}
