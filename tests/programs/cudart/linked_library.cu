/* SPDX-License-Identifier: Apache-2.0 */
/* The library of linked.cu. */
#include "linked.h"

__device__ int of_the_library(int x)
{
    return twice(x) + x + 1;
}
