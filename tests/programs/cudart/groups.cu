/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups: the parts of a grid that ordinary launches have, and barriers of the grid in cooperative launches. */
#include <cooperative_groups.h>

#include "check.h" /* last: its macros are common words */

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

/* The sum of 1 to the grid's size, by halving: this needs a logarithmic number of barriers. */
static __global__ void sum(unsigned *words)
{
    const cg::grid_group grid = cg::this_grid();
    const unsigned rank = (unsigned)grid.thread_rank();
    unsigned mine = rank + 1;

    for (unsigned n = (unsigned)grid.size(); n > 1; n = (n + 1) / 2) {
        if (rank < n)
            words[rank] = mine;
        grid.sync();
        if (rank < n / 2)
            mine += words[rank + (n + 1) / 2];
        grid.sync();
    }
    if (rank == 0)
        words[0] = grid.is_valid() ? mine : 0;
}

static __global__ void meet(int *data)
{
    cg::this_grid().sync();
    *data = 1;
}

int main()
{
    setenv("CUTTLE_STRICT", "1", 1); /* for the documented error of a grid that is too large, which NVIDIA's driver always returns */
    unsigned long long got[5], *device;
    int cooperative = -1, units, each, *data;
    unsigned *words, total;

    ok(cudaMalloc(&device, sizeof got));
    describe<<<3, 40>>>(device);
    ok(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
    check(got[0] == 0 && got[1] == 120 && got[2] == 119 && got[3] == 40 && got[4] == 2);
    ok(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
    ok(cudaMalloc(&data, sizeof *data));
    check(cooperative == 1);
    ok(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, 0));
    ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, sum, 96, 0));
    check(each * units > 1);
    ok(cudaMalloc(&words, (each * units * 96 + 1) * sizeof *words));
    void *arguments[] = {&words};
    ok(cudaLaunchCooperativeKernel((void *)sum, each * units, 96, arguments, 0, 0));
    ok(cudaMemcpy(&total, words, sizeof total, cudaMemcpyDeviceToHost));
    const unsigned long long n = 96ull * each * units;
    check(total == (unsigned)(n * (n + 1) / 2));
    gives(cudaErrorCooperativeLaunchTooLarge, cudaLaunchCooperativeKernel((void *)sum, each * units + 1, 96, arguments, 0, 0));
    check(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
    ok(cudaDeviceSynchronize());
    meet<<<2, 32>>>(data); /* in an ordinary launch a grid has no barrier: the kernel traps */
    gives(cudaErrorLaunchFailure, cudaDeviceSynchronize());
    std::puts("ok");
    return 0;
}
