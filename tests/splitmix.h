/* SPDX-License-Identifier: Apache-2.0 */
/* SplitMix64: random numbers of tests that print their seed, so the same ones from it for ever. */
#ifndef CUTTLE_TESTS_SPLITMIX_H
#define CUTTLE_TESTS_SPLITMIX_H

#include <stdint.h>

static inline uint64_t splitmix_next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#endif
