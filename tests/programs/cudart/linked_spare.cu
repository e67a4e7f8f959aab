/* SPDX-License-Identifier: Apache-2.0 */
/* A member of the library that is not referenced. */
__device__ int of_nobody(int x)
{
    return x;
}
