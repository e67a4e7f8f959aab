/* SPDX-License-Identifier: Apache-2.0 */
/* Calls through addresses and pointers kept in memory, as C++ compilers make them. calls_test.c computes each kernel's result in C. */
#include "device.h"

typedef unsigned word;

/* ---- virtual functions ---- */

struct Named {
    word id;
    __device__ explicit Named(word id) : id(id) {}
    __device__ virtual word name(word x, word y) const = 0;
};

struct Shape {
    word a;
    __device__ explicit Shape(word a) : a(a) {}
    __device__ virtual word area(word k) const = 0;
    __device__ virtual word twice(word k) const { return 2 * area(k); } /* looks recursive: its type fits the calls of area() */
};

struct Square : Shape {
    __device__ explicit Square(word a) : Shape(a) {}
    __device__ word area(word k) const override { return a * a + k; }
};

/* name() is called through a thunk: Named is the second base. */
struct Rectangle : Shape, Named {
    word b;
    __device__ Rectangle(word a, word b) : Shape(a), Named(7), b(b) {}
    __device__ word area(word k) const override { return a * b - k; }
    __device__ word twice(word k) const override { return 3 * area(k) + 1; }
    __device__ word name(word x, word y) const override { return id * x + b * y; }
};

struct Tall : Rectangle {
    __device__ Tall(word a, word b) : Rectangle(a, b) {}
    __device__ word area(word k) const override { return Rectangle::area(k) ^ 0x55; }
    __device__ word name(word x, word y) const override { return x - id * y; }
};

extern "C" __global__ void shapes(word *out, const word *in, word n)
{
    const word t = threadIdx.x, v = in[t];
    Square square(v);
    Rectangle rectangle(v, t);
    Tall tall(v, t + n);
    const Shape *shapes[3] = {&square, &rectangle, &tall};
    const Named *named[2] = {&rectangle, &tall};

    out[t] = shapes[(v >> 3) % 3]->twice(n) + shapes[t % 3]->area(t) + named[(v >> 7) & 1]->name(t, n);
}

/* ---- tables of functions ---- */

typedef word (*binary)(word, word);

__device__ word add(word a, word b) { return a + b; }
__device__ word subtract(word a, word b) { return a - b; }
__device__ word multiply(word a, word b) { return a * b; }
__device__ word power(word a, word b)
{
    word product = 1;

    for (word i = 0; i < (b & 7); i++)
        product *= a;
    return product;
}

__device__ binary changing[4] = {add, subtract, multiply, power};
__constant__ binary fixed[2] = {multiply, subtract};
__device__ word fold(binary f, const word *values, word n)
{
    word x = n;

    for (word i = 0; i < 5; i++)
        x = f(x, values[i]);
    return x;
}

extern "C" __global__ void tables(word *out, const word *in, word n)
{
    const word t = threadIdx.x, v = in[t];
    const word values[5] = {v, t, v >> 8, n, 3};

    out[t] = changing[v & 3](v, t) ^ fixed[t & 1](v, n) ^ fold(changing[(v >> 2) & 3], values, n);
}

/* The threads of a block synchronize at barriers in functions that are called by address. */
__device__ word left_of(word t, word *row)
{
    asm volatile("bar.sync 0;" ::: "memory");
    return row[(t + 255) & 255];
}
__device__ word right_of(word t, word *row)
{
    asm volatile("bar.sync 0;" ::: "memory");
    return row[(t + 1) & 255];
}
__device__ word (*neighbours[2])(word, word *) = {left_of, right_of};

extern "C" __global__ void meeting(word *out, const word *in, word n)
{
    __shared__ word row[256];
    const word t = threadIdx.x;

    row[t] = in[t];
    out[t] = neighbours[n & 1](t, row);
}

/* ---- pointers to local and shared memory in memory ---- */

struct Node {
    word value;
    Node *next;
};

/* A ring for each thread, followed for as many steps as the data specify. */
extern "C" __global__ void local_ring(word *out, const word *in, word n)
{
    const word t = threadIdx.x;
    Node nodes[4];
    Node *at;
    word sum = n;

    for (word i = 0; i < 4; i++) {
        nodes[i].value = in[t] >> (8 * i) & 0xff;
        nodes[i].next = &nodes[(i + 1 + (t & 1)) & 3];
    }
    at = &nodes[t & 3];
    for (word i = 0; i < (in[t] & 15); i++) {
        sum = sum * 3 + at->value;
        at->value = sum;
        at = at->next;
    }
    out[t] = sum;
}

/* A list in shared memory that all threads build, and that each follows from its own node. */
extern "C" __global__ void shared_list(word *out, const word *in, word n)
{
    __shared__ Node nodes[256];
    const word t = threadIdx.x;
    const Node *at = &nodes[t];
    word sum = 0;

    nodes[t].value = in[t];
    nodes[t].next = t & 7 ? &nodes[(t * 5 + n) & 255] : nullptr;
    asm volatile("bar.sync 0;" ::: "memory");
    for (word i = 0; at && i < 20; i++, at = at->next)
        sum = sum * 5 + at->value;
    out[t] = sum;
}

/* A table in global memory and one in shared memory with pointers of all three kinds; each thread reads and writes its own two elements. */
__device__ word *kept[256];

extern "C" __global__ void mixed_table(word *out, const word *in, word n)
{
    __shared__ word row[256];
    __shared__ word *table[256];
    const word t = threadIdx.x, kind = (t + n) % 3;
    word own[2] = {in[t] + 2, t};

    row[t] = in[t] + 1;
    out[t] = in[t] + 3;
    kept[t] = kind == 0 ? &row[t] : kind == 1 ? own : out + t;
    table[t] = kind == 0 ? own + (t & 1) : kind == 1 ? out + t : &row[t];
    asm volatile("bar.sync 0;" ::: "memory");
    *kept[t] *= 3;
    *table[t] += *kept[t];
    asm volatile("bar.sync 0;" ::: "memory");
    const word sum = row[t] + own[0] * 5 + own[1] * 7 + out[t] * 11;
    asm volatile("bar.sync 0;" ::: "memory");
    out[t] = sum;
}
