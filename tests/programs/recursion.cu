/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that call themselves. recursion_test.c computes each kernel's result in C. */
#include "device.h"

typedef unsigned word;

/* ---- directly ---- */

__device__ __attribute__((noinline)) word fibonacci(word n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void numbers(word *out, const word *in, word n)
{
    const word t = threadIdx.x;

    out[t] = fibonacci(in[t] % 13 + n) ^ fibonacci(t % 7);
}

/* The result of one call is the argument of another: all registers live at once belong to different activations. */
__device__ __attribute__((noinline)) word ackermann(word m, word n)
{
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

extern "C" __global__ void nested(word *out, const word *in, word n)
{
    const word t = threadIdx.x;

    out[t] = ackermann(in[t] % 3, t % 5 + n);
}

/* ---- in cycles ---- */

__device__ word odd_steps(unsigned long long v, word sum);

__device__ __attribute__((noinline)) word even_steps(unsigned long long v, word sum)
{
    return v == 1 ? sum : v & 1 ? odd_steps(v, sum + 1) + 3 : even_steps(v / 2, sum + 2);
}

__device__ __attribute__((noinline)) word odd_steps(unsigned long long v, word sum)
{
    const word before = sum * 5;

    return (v & 1 ? even_steps(3 * v + 1, sum + 7) : even_steps(v, sum)) ^ before;
}

extern "C" __global__ void collatz(word *out, const word *in, word n)
{
    const word t = threadIdx.x;

    out[t] = even_steps(in[t] % 15 + n + 1, t) + odd_steps(t % 15 + 1, n);
}

/* ---- objects in memory ---- */

/* Sorts in memory that belongs to another activation, or to none. */
__device__ __attribute__((noinline)) void sort(word *values, int low, int high)
{
    int left = low, right = high;

    if (low >= high)
        return;
    const word middle = values[low + (high - low) / 2];

    while (left <= right) {
        while (values[left] < middle)
            left++;
        while (values[right] > middle)
            right--;
        if (left <= right) {
            const word swapped = values[left];

            values[left++] = values[right];
            values[right--] = swapped;
        }
    }
    sort(values, low, right);
    sort(values, left, high);
}

extern "C" __global__ void sorted(word *out, const word *in, word n)
{
    const word t = threadIdx.x;
    word values[16], sum = 0;

    for (int i = 0; i < 16; i++)
        values[i] = in[(t + i * (n + 1)) % 256] >> (t & 7);
    sort(values, 0, 15);
    for (int i = 0; i < 16; i++)
        sum = sum * 3 + values[i];
    out[t] = sum;
}

/* Each activation has an array of its own, to which the next one writes through a pointer. */
__device__ __attribute__((noinline)) word chain(word *callers, word depth, word v)
{
    word own[4] = {v, depth, v ^ depth, 1};

    callers[v & 3] += depth;
    if (depth) {
        const word below = chain(own, depth - 1, v * 5 + 1);

        callers[(v >> 1) & 3] ^= below;
    }
    return own[0] + 3 * own[1] + 5 * own[2] + 7 * own[v & 3];
}

extern "C" __global__ void chained(word *out, const word *in, word n)
{
    const word t = threadIdx.x;
    word first[4] = {1, 2, 3, 4};
    const word result = chain(first, (in[t] & 7) + n, in[t]);

    out[t] = result + first[0] + first[1] * 3 + first[2] * 5 + first[3] * 7;
}

/* ---- values of all widths, by value ---- */

struct parts {
    double wide;
    unsigned long long bits;
    word middle;
    unsigned short narrow;
    unsigned char byte;
    bool flag;
};

__device__ __attribute__((noinline)) parts split(parts p, word depth)
{
    const bool is_even = (p.middle & 1) == 0, was = p.flag;
    const unsigned short narrow = (unsigned short)(p.narrow * 3);

    if (depth == 0)
        return p;
    parts next = p;

    next.wide = p.wide * 2 + 1;
    next.bits = p.bits * 6364136223846793005ull + depth;
    next.middle = p.middle / 2 + depth;
    next.narrow = (unsigned short)(p.narrow + depth);
    next.byte = (unsigned char)(p.byte ^ depth);
    next.flag = is_even;
    next = split(next, depth - 1);
    next.wide += is_even ? p.wide : -1;
    next.bits ^= p.bits >> 7;
    next.middle += was ? 1 : 3;
    next.narrow = (unsigned short)(next.narrow ^ narrow);
    next.byte = (unsigned char)(next.byte + p.byte);
    next.flag = next.flag != was;
    return next;
}

extern "C" __global__ void widths(word *out, const word *in, word n)
{
    const word t = threadIdx.x, v = in[t];
    const parts p = split({(double)(v & 1023), v * 77ull, v, (unsigned short)v, (unsigned char)t, (v & 4) != 0}, (t & 7) + n);

    out[t] = (word)p.wide + (word)(p.bits >> 32) + (word)p.bits * 3 + p.middle * 5 + p.narrow * 7u + p.byte * 11u + p.flag * 13u;
}

/* ---- through addresses ---- */

struct Node {
    __device__ virtual word value(word x) const = 0;
};

struct Leaf : Node {
    word number;
    __device__ word value(word x) const override { return number * x + 1; }
};

struct Sum : Node {
    const Node *left, *right;
    __device__ word value(word x) const override { return left->value(x) + right->value(x + 1); }
};

struct Product : Node {
    const Node *left, *right;
    __device__ word value(word x) const override
    {
        const word first = left->value(x);

        return first * right->value(first);
    }
};

/* An expression of 15 nodes, of which the kernel chooses the kinds. */
extern "C" __global__ void expressions(word *out, const word *in, word n)
{
    const word t = threadIdx.x, v = in[t];
    Leaf leaves[8];
    Sum sums[7];
    Product products[7];
    const Node *nodes[15];

    for (word i = 0; i < 8; i++) {
        leaves[i].number = v >> i & 15;
        nodes[7 + i] = &leaves[i];
    }
    for (int i = 6; i >= 0; i--) {
        sums[i].left = products[i].left = nodes[2 * i + 1];
        sums[i].right = products[i].right = nodes[2 * i + 2];
        nodes[i] = v >> (8 + i) & 1 ? (const Node *)&sums[i] : (const Node *)&products[i];
    }
    out[t] = nodes[0]->value(n + 1) + nodes[1 + t % 6]->value(t);
}

struct Found {
    word distance, number;
};

struct Thing {
    __device__ virtual bool nearest(const word &x, word most, Found &found) const = 0;
};

struct Point : Thing {
    word at, number;
    __device__ bool nearest(const word &x, word most, Found &found) const override
    {
        const word distance = x > at ? x - at : at - x;

        if (distance >= most)
            return false;
        found.distance = distance;
        found.number = number;
        return true;
    }
};

/* As ray tracers have it: objects of each activation are filled through references by the next one. */
struct List : Thing {
    const Thing *things[4];
    word n;
    __device__ bool nearest(const word &x, word most, Found &found) const override
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

/* Lists of points and of other lists, n deep. */
extern "C" __global__ void lists(word *out, const word *in, word n)
{
    const word t = threadIdx.x;
    Point points[8];
    List all[4];
    Found found = {0, 77};
    word sum = 0;

    for (word i = 0; i < 8; i++) {
        points[i].at = in[(t + i) % 256] & 255;
        points[i].number = i;
    }
    for (word i = 0; i < 4; i++) {
        all[i].n = 2;
        all[i].things[0] = &points[2 * i];
        all[i].things[1] = &points[2 * i + 1];
        if (i < n)
            all[i].things[all[i].n++] = &all[i + 1];
    }
    for (word x = 0; x < 256; x += 64)
        if (all[0].nearest(x + (t & 63), 100, found))
            sum += found.distance * 8 + found.number;
    out[t] = sum + found.number;
}

typedef word (*step)(word, word);
__device__ word up(word v, word left);
__device__ word down(word v, word left);
__device__ step steps[2] = {up, down};

__device__ __attribute__((noinline)) word up(word v, word left) { return left ? steps[v & 1](v * 3 + 1, left - 1) + left : v; }
__device__ __attribute__((noinline)) word down(word v, word left)
{
    return left ? steps[v >> 1 & 1](v ^ left, left - 1) * 3 : ~v;
}

extern "C" __global__ void tables(word *out, const word *in, word n)
{
    const word t = threadIdx.x;

    out[t] = steps[t & 1](in[t], (t >> 1 & 7) + n);
}

/* ---- together with other threads ---- */

/* All threads recurse to the same depth, with a barrier at each level. */
__device__ __attribute__((noinline)) word tree(word *shared, word width)
{
    const word t = threadIdx.x;
    word below = 0;

    if (width == 0)
        return shared[0];
    if (t < width)
        shared[t] += shared[t + width];
    __syncthreads();
    below = tree(shared, width / 2);
    __syncthreads();
    if (t < width)
        shared[t + width] = shared[t] * width + below;
    __syncthreads();
    return below + shared[(t + width) % 256];
}

extern "C" __global__ void barriers(word *out, const word *in, word n)
{
    __shared__ word shared[256];
    const word t = threadIdx.x;

    shared[t] = in[t] + n;
    __syncthreads();
    out[t] = tree(shared, 128);
}

/* A cycle inside another one. */
__device__ __attribute__((noinline)) word inner(word v, word depth) { return depth ? inner(v * 7 + depth, depth - 1) ^ v : v; }
__device__ __attribute__((noinline)) word outer(word v, word depth)
{
    if (depth == 0)
        return inner(v, 3);
    return outer(inner(v, depth), depth - 1) + inner(v + 1, depth / 2) + outer(v + depth, depth / 2);
}

extern "C" __global__ void cycles(word *out, const word *in, word n)
{
    const word t = threadIdx.x;

    out[t] = outer(in[t], t % 4 + n) + outer(t, in[t] % 4);
}

/* ---- depth ---- */

__device__ __attribute__((noinline)) word deep(word depth, word v) { return depth ? deep(depth - 1, v + depth) * 3 + depth : v; }

extern "C" __global__ void depth(word *out, const word *in, word n)
{
    const word t = threadIdx.x;

    out[t] = deep(n, in[t]);
}
