/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual methods and functions that call themselves. main.c says what is measured. */
#include "device.h"

typedef unsigned word;

struct Found {
    word distance, number;
};

struct Thing {
    __device__ virtual bool nearest(word x, word most, Found &found) const = 0;
};

struct Point : Thing {
    word at, number;
    __device__ bool nearest(word x, word most, Found &found) const override
    {
        const word distance = x > at ? x - at : at - x;

        if (distance >= most)
            return false;
        found.distance = distance;
        found.number = number;
        return true;
    }
};

struct List : Thing {
    const Thing **things;
    word n;
    __device__ bool nearest(word x, word most, Found &found) const override
    {
        bool is_any = false;

        for (word i = 0; i < n; i++) {
            Found now;

            if (things[i]->nearest(x, most, now)) {
                is_any = true;
                most = now.distance;
                found = now;
            }
        }
        return is_any;
    }
};

/* In device memory: a virtual method can be called in the kernels of the module that made the object. */
struct World {
    List lists[8];
    Point points[64];
    const Thing *things[8 * 64];
};

/* 64 points, in one list, or in eight that are in the first one. Executed by one thread. */
extern "C" __global__ void make_world(World *world, const word *places, word is_nested)
{
    List lists;
    Point points;

    for (word i = 0; i < 8; i++) {
        __builtin_memcpy((void *)&world->lists[i], (const void *)&lists, sizeof lists);
        world->lists[i].things = world->things + 64 * i;
        world->lists[i].n = 0;
    }
    for (word i = 0; i < 64; i++) {
        List &list = world->lists[is_nested ? i / 8 : 0];

        __builtin_memcpy((void *)&world->points[i], (const void *)&points, sizeof points);
        world->points[i].at = places[i];
        world->points[i].number = i;
        list.things[list.n++] = &world->points[i];
    }
    for (word i = 1; is_nested && i < 8; i++)
        world->lists[0].things[world->lists[0].n++] = &world->lists[i];
}

/* For `rounds` places, the nearest point that is less than 1000 away. */
extern "C" __global__ void nearest(const World *world, word *out, word rounds)
{
    const Thing *first = &world->lists[0];
    const word t = blockIdx.x * blockDim.x + threadIdx.x;
    word sum = 0, x = t;

    for (word i = 0; i < rounds; i++) {
        Found found;

        x = x * 1664525 + 1013904223;
        if (first->nearest(x >> 16, 1000, found))
            sum = sum * 3 + found.distance + found.number;
    }
    out[t] = sum;
}

__device__ __attribute__((noinline)) word fibonacci_of(word n) { return n < 2 ? n : fibonacci_of(n - 1) + fibonacci_of(n - 2); }

extern "C" __global__ void fibonacci(word *out, word n)
{
    const word t = blockIdx.x * blockDim.x + threadIdx.x;

    out[t] = fibonacci_of(n + (t & 1));
}
