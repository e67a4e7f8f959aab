/* SPDX-License-Identifier: Apache-2.0 */
/* Many host threads, each with a stream of its own and the default stream, on one device; then the device is reset and used again. */
#include "check.h"

#include <thread>
#include <vector>

#define THREADS 16
#define ROUNDS 8
#define SIZE 2048

__device__ int generation = 1;

__global__ void add(int *values, int n, int what)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        values[i] += what * generation;
}

static void work(int number, int factor)
{
    std::vector<int> values(SIZE);
    cudaStream_t stream;
    int *device;

    ok(cudaStreamCreate(&stream));
    ok(cudaMalloc(&device, SIZE * sizeof *device));
    ok(cudaMemset(device, 0, SIZE * sizeof *device));
    ok(cudaStreamSynchronize(0));
    for (int round = 0; round < ROUNDS; round++)
        add<<<3, 128, 0, round % 2 ? stream : cudaStream_t(0)>>>(device, SIZE, number + round);
    ok(cudaStreamSynchronize(stream));
    ok(cudaMemcpy(values.data(), device, SIZE * sizeof *device, cudaMemcpyDeviceToHost));
    for (int value : values)
        check(value == factor * (ROUNDS * number + ROUNDS * (ROUNDS - 1) / 2));
    ok(cudaFree(device));
    ok(cudaStreamDestroy(stream));
}

static void work_together(int factor)
{
    std::vector<std::thread> threads;

    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(work, i, factor);
    for (std::thread &thread : threads)
        thread.join();
}

int main()
{
    int three = 3;

    work_together(1);
    ok(cudaMemcpyToSymbol(generation, &three, sizeof three));
    work_together(3);
    ok(cudaDeviceReset());
    work_together(1); /* variables have their initial values again */
    std::puts("ok");
    return 0;
}
