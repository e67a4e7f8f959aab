/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose device code is linked from several source files and a library (nvcc -rdc=true). */
#include "linked.h"

static __device__ int own = 1;

__global__ void use_the_others(int *out)
{
    const int i = threadIdx.x;

    out[i] = twice(i) + counter + *pointer + factors[i % 4] + operations[i % 2](i) + of_the_library(i) + own + shared_by_all;
}

__global__ void use_shared(int *out)
{
    out[threadIdx.x] = through_shared(threadIdx.x);
}

static int *device;
static int got[64];

static void fetch()
{
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
}

static void names_across_files()
{
    use_the_others<<<1, 64>>>(device);
    fetch();
    for (int i = 0; i < 64; i++)
        check(got[i] == 2 * i + 5 + 7 + 10 * (i % 4 + 1) + (i % 2 ? i - 1 : i + 1) + (3 * i + 1) + 1 + 1000);
}

static void variables_from_the_host()
{
    const int now[4] = {1, 2, 3, 4};
    int five = 0;

    ok(cudaMemcpyFromSymbol(&five, counter, sizeof five));
    check(five == 5);
    ok(cudaMemcpyToSymbol(factors, now, sizeof now));
    use_the_others<<<1, 64>>>(device);
    fetch();
    check(got[3] == 6 + 5 + 7 + 4 + 2 + 10 + 1 + 1000);
    check(count_in_the_other_part() == 6); /* it is the same variable */
    ok(cudaMemcpyFromSymbol(&five, counter, sizeof five));
    check(five == 6);
}

static void kernels_in_every_file()
{
    for (int i = 0; i < 64; i++)
        got[i] = i;
    ok(cudaMemcpy(device, got, sizeof got, cudaMemcpyHostToDevice));
    squares<<<1, 64>>>(device);
    fetch();
    check(got[9] == 81);
    use_shared<<<1, 64, 64 * sizeof(int)>>>(device);
    fetch();
    check(got[0] == 63 && got[63] == 0);
}

int main()
{
    ok(cudaMalloc(&device, sizeof got));
    names_across_files();
    variables_from_the_host();
    kernels_in_every_file();
    ok(cudaFree(device));
    std::puts("ok");
    return 0;
}
