/* SPDX-License-Identifier: Apache-2.0 */
/* What nvcc's code for the host calls since CUDA 12 and libcudart 11 does not have yet: launches by a handle of the kernel. Before, they were
 * made by the address of the host's function, so that is the handle here. With it the runtime of CUDA 11 runs what nvcc 13 compiled. */
#include <stddef.h>

struct dimensions {
    unsigned x, y, z;
};

int cudaLaunchKernel(const void *function, struct dimensions grid, struct dimensions block, void **arguments, size_t shared, void *stream);
int __cudaGetKernel(const void **kernel, const void *function);
int __cudaLaunchKernel(const void *kernel, struct dimensions grid, struct dimensions block, void **arguments, size_t shared, void *stream);

int __cudaGetKernel(const void **kernel, const void *function)
{
    *kernel = function;
    return 0;
}

int __cudaLaunchKernel(const void *kernel, struct dimensions grid, struct dimensions block, void **arguments, size_t shared, void *stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
