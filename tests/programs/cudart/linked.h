/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the parts of linked.cu share. */
#ifndef CUTTLE_TESTS_CUDART_LINKED_H
#define CUTTLE_TESTS_CUDART_LINKED_H

#include "check.h"

typedef int (*operation)(int);

/* linked_part.cu */
extern __device__ int counter;
extern __device__ int *pointer;
extern __constant__ int factors[4];
extern __device__ operation operations[2];
__device__ int twice(int x);
__device__ int through_shared(int x);
int count_in_the_other_part();

/* linked_library.cu, a library */
__device__ int of_the_library(int x);

/* Every part defines it; after linking there is one variable. */
inline __device__ int shared_by_all = 1000;

template <typename T> __device__ T square(T x)
{
    return x * x;
}

template <typename T> __global__ void squares(T *out)
{
    out[threadIdx.x] = square<T>(out[threadIdx.x]);
}

#endif
