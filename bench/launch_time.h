/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a kernel, by events. */
#ifndef CUTTLE_BENCH_LAUNCH_TIME_H
#define CUTTLE_BENCH_LAUNCH_TIME_H

#include "example.h"

#define LAUNCH_TIME_ROUNDS 5
#define LAUNCH_TIME_ROUND_MS 10
#define LAUNCH_TIME_START_MS 0.2 /* bounds the number of launches of a kernel that takes no time */

/* The time of `launches` launches of grid[0] x grid[1] blocks of block[0] x block[1] threads between two events, in milliseconds each. */
static inline double launch_ms(CUfunction function, const unsigned grid[2], const unsigned block[2], void **params, unsigned launches)
{
    CUevent start, stop;
    float ms;

    CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    CHECK(cuEventRecord(start, NULL));
    for (unsigned i = 0; i < launches; i++)
        CHECK(cuLaunchKernel(function, grid[0], grid[1], 1, block[0], block[1], 1, 0, NULL, params, NULL));
    CHECK(cuEventRecord(stop, NULL));
    CHECK(cuEventSynchronize(stop));
    CHECK(cuEventElapsedTime(&ms, start, stop));
    CHECK(cuEventDestroy(start));
    CHECK(cuEventDestroy(stop));
    return ms / launches;
}

/* The minimum time of a launch in five rounds, in milliseconds. A round is up to 10 ms of launches: between the events of a single launch
 * there is also the time in which it starts. */
static inline double least_launch_ms(CUfunction function, const unsigned grid[2], const unsigned block[2], void **params)
{
    unsigned launches;
    double least;

    launch_ms(function, grid, block, params, 1); /* compiles */
    least = launch_ms(function, grid, block, params, 1);
    launches = 1 + (unsigned)(LAUNCH_TIME_ROUND_MS / (least + LAUNCH_TIME_START_MS));
    for (int round = 0; round < LAUNCH_TIME_ROUNDS; round++) {
        const double ms = launch_ms(function, grid, block, params, launches);

        if (ms < least)
            least = ms;
    }
    return least;
}

#endif
