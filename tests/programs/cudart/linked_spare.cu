/* SPDX-License-Identifier: Apache-2.0 */
/* A member of the library that nobody asks for. */
__device__ int of_nobody(int x)
{
    return x;
}
