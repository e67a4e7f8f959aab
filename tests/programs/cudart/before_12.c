/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that nvcc's host code calls since CUDA 12 and that libcudart 11 lacks: launches by a handle of the kernel. Earlier launches
 * used the address of the host function, so that is the handle here. With it the runtime of CUDA 11 runs programs that nvcc 13 compiled. */
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
