// SPDX-License-Identifier: Apache-2.0
// Managed memory with the runtime API: __managed__ variables, cudaMallocManaged, and their attributes.
#include "check.h"

#include <cstring>

struct pair {
    int first;
    double second;
};

__managed__ int counter = 40;
__managed__ pair pairs[3] = {{1, 1.5}, {2, 2.5}, {3, 3.5}};
__device__ __managed__ int *head;
__device__ int plain = 2;

struct node {
    int value;
    node *next;
};

__global__ void count()
{
    atomicAdd(&counter, plain);
    if (threadIdx.x < 3)
        pairs[threadIdx.x].second += pairs[threadIdx.x].first;
}

__global__ void sum(const node *list, int *out)
{
    int total = 0;

    for (; list; list = list->next)
        total += list->value;
    *out = total;
    head = out;
}

static void variables()
{
    cudaPointerAttributes attributes;
    int *symbol;

    check(counter == 40);
    counter = 100; // before any kernel
    count<<<1, 32>>>();
    ok(cudaDeviceSynchronize());
    check(counter == 164);
    check(pairs[0].second == 2.5 && pairs[1].second == 4.5 && pairs[2].second == 6.5);
    ok(cudaGetSymbolAddress(reinterpret_cast<void **>(&symbol), counter));
    check(symbol == &counter);
    ok(cudaPointerGetAttributes(&attributes, &counter));
    check(attributes.type == cudaMemoryTypeManaged);
    counter = 7;
    int copied = 0;
    ok(cudaMemcpyFromSymbol(&copied, counter, sizeof copied));
    check(copied == 7);
}

// A list that the host builds and a kernel follows.
static void lists()
{
    node *list = nullptr;
    int *out;

    ok(cudaMallocManaged(&out, sizeof *out));
    for (int i = 1; i <= 100; i++) {
        node *next = list;

        ok(cudaMallocManaged(&list, sizeof *list));
        *list = {i, next};
    }
    sum<<<1, 1>>>(list, out);
    ok(cudaDeviceSynchronize());
    check(*out == 5050);
    check(head == out);
    while (list) {
        node *next = list->next;

        ok(cudaFree(list));
        list = next;
    }
    ok(cudaFree(out));
}

// Runtimes before CUDA 13 have functions of these names that take a device number; programs compiled with CUDA 13 use its declarations.
#ifdef RUNTIME_BEFORE_13
extern "C" cudaError_t advise_by_number(const void *bytes, size_t count, cudaMemoryAdvise advice, int device) __asm__("cudaMemAdvise");
extern "C" cudaError_t prefetch_by_number(const void *bytes, size_t count, int device, cudaStream_t stream) __asm__("cudaMemPrefetchAsync");

static cudaError_t prefer_host(char *bytes, size_t count)
{
    return advise_by_number(bytes, count, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId);
}

static cudaError_t prefetch_to_device(char *bytes, size_t count, cudaStream_t stream)
{
    return prefetch_by_number(bytes, count, 0, stream);
}
#else
static cudaError_t prefer_host(char *bytes, size_t count)
{
    return cudaMemAdvise(bytes, count, cudaMemAdviseSetPreferredLocation, {cudaMemLocationTypeHost, 0});
}

static cudaError_t prefetch_to_device(char *bytes, size_t count, cudaStream_t stream)
{
    return cudaMemPrefetchAsync(bytes, count, {cudaMemLocationTypeDevice, 0}, 0, stream);
}
#endif

static void advice(int concurrent)
{
    cudaStream_t stream;
    int where = 0;
    char *bytes;

    ok(cudaStreamCreate(&stream));
    ok(cudaMallocManaged(&bytes, 1 << 20));
    std::memset(bytes, 1, 1 << 20);
    ok(prefer_host(bytes, 1 << 20));
    ok(cudaMemRangeGetAttribute(&where, sizeof where, cudaMemRangeAttributePreferredLocation, bytes, 1 << 20));
    check(where == cudaCpuDeviceId);
    gives(concurrent ? cudaSuccess : cudaErrorInvalidDevice, prefetch_to_device(bytes, 1 << 20, stream));
    cudaGetLastError();
    ok(cudaMemsetAsync(bytes, 5, 1 << 19, stream));
    ok(cudaStreamAttachMemAsync(stream, bytes));
    ok(cudaStreamSynchronize(stream));
    check(bytes[0] == 5 && bytes[(1 << 19) - 1] == 5 && bytes[1 << 19] == 1);
    ok(cudaFree(bytes));
    ok(cudaStreamDestroy(stream));
}

int main()
{
    int managed = 0, concurrent = 0;

    ok(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
    check(managed);
    ok(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    variables();
    lists();
    advice(concurrent);
    std::printf("all is well\n");
    return 0;
}
