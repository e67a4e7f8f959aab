/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are called from several places, of which a kernel has one instance each if it would be too large otherwise.
 * out_of_line_test.c computes each kernel's result in C. */
#include "device.h"

typedef unsigned word;

/* An array that is selected at run time, and loops whose lengths differ between threads. */
__device__ __attribute__((noinline)) word mix(word v, word k)
{
    word parts[4] = {v, k, v ^ k, 1};

    for (word i = 0; i < (v & 7); i++)
        parts[(k + i) & 3] = parts[i & 3] * 5 + i;
    return parts[0] + 3 * parts[1] + 7 * parts[(v >> 3) & 3];
}

__device__ __attribute__((noinline)) word twice(word v, word k) { return mix(v, k) ^ mix(mix(k, v), v + 1); }

/* Values that are needed behind calls, on both sides of branches and in loops that other threads leave earlier. */
extern "C" __global__ void branches(word *out, const word *in, word n)
{
    const word t = threadIdx.x, v = in[t];
    word sum = v & 4 ? mix(v, t) + t : twice(v, n) - v;

    if (v & 8)
        sum += twice(sum, v);
    for (word i = 0; i < (v >> 4 & 3) + n; i++) {
        const word before = sum * i;

        sum ^= i & 1 ? mix(sum, i) : twice(i, sum) + before;
        if (sum & 1)
            continue;
        sum = mix(before, sum) + i;
    }
    out[t] = sum;
}

/* The arrays of callers, by pointers. */
__device__ __attribute__((noinline)) word swap_some(word *values, word k)
{
    const word place = k & 7, before = values[place];

    values[place] = values[7 - place] + k;
    values[7 - place] ^= before;
    return before;
}

__device__ __attribute__((noinline)) word shuffle_all(word *values, word v)
{
    word own[8], sum = 0;

    for (word i = 0; i < 8; i++)
        own[i] = v * i;
    for (word i = 0; i < 8; i++)
        sum = sum * 3 + swap_some(i & 1 ? own : values, v >> i);
    for (word i = 0; i < 8; i++)
        sum += own[i] * i;
    return sum;
}

extern "C" __global__ void arrays(word *out, const word *in, word n)
{
    const word t = threadIdx.x;
    word values[8], sum = 0;

    for (word i = 0; i < 8; i++)
        values[i] = in[(t + i) % 256];
    for (word i = 0; i <= n; i++) {
        const word first = shuffle_all(values, in[t] + i);

        sum += first ^ swap_some(values, t);
    }
    for (word i = 0; i < 8; i++)
        sum = sum * 5 + shuffle_all(values, values[i]);
    out[t] = sum;
}

/* Calls of functions that are recursive, and by these. */
__device__ __attribute__((noinline)) word tree(word v, word depth)
{
    return depth == 0 ? mix(v, 3) : tree(mix(v, depth), depth - 1) + twice(v, depth) * tree(v + 1, depth / 2);
}

__device__ __attribute__((noinline)) word trees(word v) { return tree(v, v & 3) - tree(v >> 2, 2); }

extern "C" __global__ void recursion(word *out, const word *in, word n)
{
    const word t = threadIdx.x;

    out[t] = trees(in[t]) + trees(t + n) * mix(t, n);
}

/* Calls by address. */
typedef word (*function)(word, word);

extern "C" __global__ void addresses(word *out, const word *in, word n)
{
    const word t = threadIdx.x;
    function choice = in[t] & 16 ? mix : twice;
    word sum = t;

    for (word i = 0; i < 3 + n; i++) {
        sum = choice(sum, in[t] + i) + mix(i, sum);
        choice = sum & 2 ? mix : twice;
    }
    out[t] = sum;
}

/* Wide and narrow values. */
struct parts {
    double wide;
    unsigned long long bits;
    unsigned short narrow;
    bool flag;
};

__device__ __attribute__((noinline)) parts step(parts p, unsigned char by)
{
    p.wide = p.flag ? p.wide * 2 + by : p.wide - by;
    p.bits = p.bits * 6364136223846793005ull + p.narrow;
    p.narrow = (unsigned short)(p.narrow * 3 + by);
    p.flag = p.flag != ((p.bits >> 40 & 1) != 0);
    return p;
}

extern "C" __global__ void widths(word *out, const word *in, word n)
{
    const word t = threadIdx.x, v = in[t];
    parts p = {(double)(v & 1023), v * 77ull, (unsigned short)v, (v & 4) != 0};

    for (word i = 0; i < (v >> 6 & 7) + n; i++)
        p = step(i & 2 ? step(p, (unsigned char)i) : p, (unsigned char)v);
    p = step(p, (unsigned char)t);
    out[t] = (word)(long long)p.wide + (word)(p.bits >> 32) + (word)p.bits * 3 + p.narrow * 7u + p.flag * 13u;
}

/* A lock that is held during calls, and threads that end early. */
__device__ word lock, guarded[4];

__device__ bool take_lock()
{
    word before;

    asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(before) : "l"(&lock) : "memory");
    return before == 0;
}

__device__ void release_lock() { asm volatile("st.release.gpu.global.b32 [%0], 0;" : : "l"(&lock) : "memory"); }

extern "C" __global__ void locks(word *out, const word *in, word n)
{
    const word t = threadIdx.x, v = in[t];
    bool done = false;

    out[t] = mix(v, n);
    if (v & 32)
        return;
    while (!done)
        if (take_lock()) {
            volatile word *place = &guarded[t & 3];

            *place = *place + mix(t, v);
            release_lock();
            done = true;
        }
    out[t] = twice(v, n);
}

extern "C" __global__ void unlocked(word *out, const word *in, word n)
{
    (void)in;
    (void)n;
    out[threadIdx.x] = guarded[threadIdx.x & 3];
}

/* Threads that synchronize: calls are inlined, however many there are. */
extern "C" __global__ void barriers(word *out, const word *in, word n)
{
    __shared__ word shared[256];
    const word t = threadIdx.x;

    shared[t] = twice(in[t], n);
    __syncthreads();
    out[t] = mix(shared[t ^ 1], shared[255 - t]) + twice(t, n);
}
