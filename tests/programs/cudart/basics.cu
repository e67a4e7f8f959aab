/* SPDX-License-Identifier: Apache-2.0 */
/* Features that most CUDA programs use: memory, copies, launches of all kinds of kernels, variables, events, attributes. */
#include "check.h"

#include <cstring>
#include <vector>

struct weights {
    float scale;
    int offset;
    char skip[3];
};

__constant__ int table[64];
__device__ unsigned counter = 5;
__device__ int *slot = nullptr;

template <typename T> __global__ void scale(const T *in, T *out, int n, weights w)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = in[i] * static_cast<T>(w.scale) + static_cast<T>(w.offset + w.skip[2]);
}

__global__ void look_up(int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    out[i] = table[i % 64];
    atomicAdd(&counter, 1u);
}

__global__ void reverse(int *values)
{
    extern __shared__ int shared[];

    shared[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    values[blockIdx.x * blockDim.x + threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void store_through_slot(int value)
{
    *slot = value;
}

template <typename T> static void test_scale(int n)
{
    const weights w = {2.0f, 7, {0, 0, 3}};
    std::vector<T> in(n), out(n);
    T *device_in, *device_out;

    for (int i = 0; i < n; i++)
        in[i] = static_cast<T>(i);
    ok(cudaMalloc(&device_in, n * sizeof(T)));
    ok(cudaMalloc(&device_out, n * sizeof(T)));
    ok(cudaMemcpy(device_in, in.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    scale<<<(n + 127) / 128, 128>>>(device_in, device_out, n, w);
    ok(cudaGetLastError());
    ok(cudaMemcpy(out.data(), device_out, n * sizeof(T), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        check(out[i] == static_cast<T>(2 * i + 10));
    ok(cudaFree(device_in));
    ok(cudaFree(device_out));
}

static void test_variables()
{
    const int n = 1000;
    int host[64], *device, *managed_by_slot, got;
    unsigned count;
    std::vector<int> out(n);
    void *address;
    size_t size;

    for (int i = 0; i < 64; i++)
        host[i] = i * i - 7;
    ok(cudaMemcpyToSymbol(table, host, sizeof host));
    ok(cudaMalloc(&device, n * sizeof *device));
    look_up<<<8, 125>>>(device, n);
    ok(cudaMemcpy(out.data(), device, n * sizeof *device, cudaMemcpyDefault));
    for (int i = 0; i < n; i++)
        check(out[i] == host[i % 64]);
    ok(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    check(count == 5 + n);

    ok(cudaGetSymbolSize(&size, table));
    check(size == sizeof host);
    ok(cudaGetSymbolAddress(&address, slot));
    ok(cudaMalloc(&managed_by_slot, sizeof(int)));
    ok(cudaMemcpy(address, &managed_by_slot, sizeof managed_by_slot, cudaMemcpyHostToDevice));
    store_through_slot<<<1, 1>>>(1234);
    ok(cudaMemcpy(&got, managed_by_slot, sizeof got, cudaMemcpyDeviceToHost));
    check(got == 1234);
    ok(cudaFree(device));
    ok(cudaFree(managed_by_slot));
}

static void test_shared()
{
    const int block = 64, n = 4 * block;
    std::vector<int> values(n);
    int *device, blocks, grid, best;
    cudaFuncAttributes attributes;
    cudaLaunchConfig_t config = {};

    for (int i = 0; i < n; i++)
        values[i] = i;
    ok(cudaMalloc(&device, n * sizeof *device));
    ok(cudaMemcpy(device, values.data(), n * sizeof *device, cudaMemcpyHostToDevice));
    ok(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 4096));
    ok(cudaFuncGetAttributes(&attributes, reverse));
    check(attributes.maxDynamicSharedSizeBytes == 4096 && attributes.maxThreadsPerBlock >= block);
    config.gridDim = n / block;
    config.blockDim = block;
    config.dynamicSmemBytes = block * sizeof(int);
    ok(cudaLaunchKernelEx(&config, reverse, device));
    ok(cudaMemcpy(values.data(), device, n * sizeof *device, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        check(values[i] == i / block * block + block - 1 - i % block);
    reverse<<<1, block, 8192>>>(device); /* more than was requested */
    check(cudaGetLastError() == cudaErrorInvalidValue);
    ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, block, 1024));
    check(blocks >= 1);
    ok(cudaOccupancyMaxPotentialBlockSize(&grid, &best, look_up));
    check(grid >= 1 && best >= 32);
    ok(cudaFree(device));
}

static void test_host_memory()
{
    const int n = 4096;
    float *pinned, *device;
    cudaPointerAttributes attributes;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    float milliseconds = -1;
    const weights w = {0.5f, 0, {0, 0, 0}};

    ok(cudaHostAlloc(&pinned, n * sizeof *pinned, cudaHostAllocDefault));
    ok(cudaMalloc(&device, n * sizeof *device));
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ok(cudaEventCreate(&start));
    ok(cudaEventCreate(&stop));
    for (int i = 0; i < n; i++)
        pinned[i] = static_cast<float>(2 * i);
    ok(cudaEventRecord(start, stream));
    ok(cudaMemcpyAsync(device, pinned, n * sizeof *pinned, cudaMemcpyHostToDevice, stream));
    scale<<<n / 256, 256, 0, stream>>>(device, device, n, w);
    ok(cudaMemcpyAsync(pinned, device, n * sizeof *pinned, cudaMemcpyDeviceToHost, stream));
    ok(cudaEventRecord(stop, stream));
    ok(cudaEventSynchronize(stop));
    ok(cudaEventElapsedTime(&milliseconds, start, stop));
    check(milliseconds >= 0);
    for (int i = 0; i < n; i++)
        check(pinned[i] == static_cast<float>(i));
    ok(cudaPointerGetAttributes(&attributes, pinned));
    check(attributes.type == cudaMemoryTypeHost);
    ok(cudaPointerGetAttributes(&attributes, device));
    check(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
    ok(cudaMemsetAsync(device, 0, n * sizeof *device, stream));
    ok(cudaMemcpyAsync(pinned, device, n * sizeof *pinned, cudaMemcpyDeviceToHost, stream));
    ok(cudaStreamSynchronize(stream));
    check(pinned[0] == 0 && pinned[n - 1] == 0);
    ok(cudaEventDestroy(start));
    ok(cudaEventDestroy(stop));
    ok(cudaStreamDestroy(stream));
    ok(cudaFree(device));
    ok(cudaFreeHost(pinned));
}

static void test_devices()
{
    int count, version;
    cudaDeviceProp properties;
    size_t free_bytes, total_bytes;

    ok(cudaGetDeviceCount(&count));
    check(count >= 1);
    ok(cudaGetDeviceProperties(&properties, 0));
    check(properties.name[0] && properties.warpSize == 32 && properties.maxThreadsPerBlock >= 128 && properties.totalGlobalMem > 0);
    ok(cudaMemGetInfo(&free_bytes, &total_bytes));
    check(free_bytes <= total_bytes);
    ok(cudaDriverGetVersion(&version));
    check(version >= 13000);
    gives(cudaErrorInvalidDevice, cudaSetDevice(count));
    check(cudaGetLastError() == cudaErrorInvalidDevice);
    ok(cudaSetDevice(0));
}

int main()
{
    test_devices();
    test_scale<float>(1000);
    test_scale<double>(777);
    test_scale<short>(500);
    test_variables();
    test_shared();
    test_host_memory();
    ok(cudaDeviceSynchronize());
    std::puts("ok");
    return 0;
}
