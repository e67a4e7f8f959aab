/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: what a plain launch has of a grid, and how a program learns that there are no cooperative ones. */
#include <cooperative_groups.h>

#include "check.h" /* last: its macros are words that others use */

namespace cg = cooperative_groups;

static __global__ void describe(unsigned long long *out)
{
    const cg::grid_group grid = cg::this_grid();
    const cg::thread_block block = cg::this_thread_block();

    if (grid.thread_rank() + 1 < grid.size())
        return;
    out[0] = grid.is_valid();
    out[1] = grid.size();
    out[2] = grid.thread_rank();
    out[3] = block.size();
    out[4] = grid.block_rank();
}

static __global__ void meet(int *data)
{
    cg::this_grid().sync();
    *data = 1;
}

int main()
{
    unsigned long long got[5], *device;
    int cooperative = -1, *data;

    ok(cudaMalloc(&device, sizeof got));
    describe<<<3, 40>>>(device);
    ok(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
    check(got[0] == 0 && got[1] == 120 && got[2] == 119 && got[3] == 40 && got[4] == 2);
    ok(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
    ok(cudaMalloc(&data, sizeof *data));
    void *arguments[] = {&data};
    if (!cooperative) { /* the attribute tells the truth */
        gives(cudaErrorNotSupported, cudaLaunchCooperativeKernel((void *)meet, 2, 32, arguments, 0, 0));
        check(cudaGetLastError() == cudaErrorNotSupported);
    }
    ok(cudaDeviceSynchronize());
    meet<<<2, 32>>>(data); /* in a plain launch a grid has no barrier: the kernel stops itself */
    gives(cudaErrorLaunchFailure, cudaDeviceSynchronize());
    std::puts("ok");
    return 0;
}
