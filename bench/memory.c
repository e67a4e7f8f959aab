/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of memory operations: copies, fills, allocation, registration, zero-copy reads, virtual memory. Runs on any libcuda.so.1, so that
 * two can be compared (bench/memory). Prints "name value unit", one per line; the median of several rounds. Argument 1: MiB to copy;
 * argument 2: seconds of copies before the measurements. */
#include "example.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 15
#define MIB ((size_t)1 << 20)
#define READ_BLOCKS 2048
#define READ_THREADS 256

/* Every thread reads 16 bytes with a grid stride; the sum is written only if it has a value that does not occur. */
static const char read_kernel[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                  ".visible .entry read_all(.param .u64 from, .param .u64 units, .param .u64 result)\n{\n"
                                  ".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %d<8>;\n"
                                  "ld.param.u64 %d1, [from]; ld.param.u64 %d2, [units]; ld.param.u64 %d3, [result];\n"
                                  "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %nctaid.x;\n"
                                  "mad.lo.u32 %r3, %r1, %r2, %r3; cvt.u64.u32 %d4, %r3; mul.wide.u32 %d5, %r4, %r2; mov.u32 %r9, 0;\n"
                                  "again:\nsetp.ge.u64 %p, %d4, %d2; @%p bra done;\n"
                                  "shl.b64 %d6, %d4, 4; add.u64 %d6, %d6, %d1; ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d6];\n"
                                  "add.u32 %r5, %r5, %r6; add.u32 %r7, %r7, %r8; add.u32 %r5, %r5, %r7; add.u32 %r9, %r9, %r5;\n"
                                  "add.u64 %d4, %d4, %d5; bra again;\n"
                                  "done:\nsetp.ne.u32 %p, %r9, 0x12345679; @%p bra out;\nst.global.u32 [%d3], %r9;\nout:\nret;\n}\n";

static void report(const char *name, double value, const char *unit)
{
    printf("%-36s %12.3f %s\n", name, value, unit);
    fflush(stdout);
}

/* ---- copies and fills ---- */

/* The memory that is copied from and to, and the number of bytes. */
struct buffers {
    size_t bytes;
    CUdeviceptr a, b;
    char *pinned, *pageable, *other;
};

static void host_memcpy(const struct buffers *on)
{
    memcpy(on->other, on->pageable, on->bytes);
}

static void pinned_to_device(const struct buffers *on)
{
    CHECK(cuMemcpyHtoDAsync(on->a, on->pinned, on->bytes, NULL));
}

static void device_to_pinned(const struct buffers *on)
{
    CHECK(cuMemcpyDtoHAsync(on->pinned, on->a, on->bytes, NULL));
}

static void pageable_to_device(const struct buffers *on)
{
    CHECK(cuMemcpyHtoD(on->a, on->pageable, on->bytes));
}

static void device_to_pageable(const struct buffers *on)
{
    CHECK(cuMemcpyDtoH(on->pageable, on->a, on->bytes));
}

static void device_to_device(const struct buffers *on)
{
    CHECK(cuMemcpyDtoDAsync(on->b, on->a, on->bytes, NULL));
}

static void set_words(const struct buffers *on)
{
    CHECK(cuMemsetD32Async(on->a, 0x01020304, on->bytes / 4, NULL));
}

static void set_bytes(const struct buffers *on)
{
    CHECK(cuMemsetD8Async(on->a, 5, on->bytes, NULL));
}

static const struct transfer {
    const char *name;
    void (*run)(const struct buffers *on);
} transfers[] = {
    {"host memcpy", host_memcpy},
    {"pinned to device", pinned_to_device},
    {"device to pinned", device_to_pinned},
    {"pageable to device", pageable_to_device},
    {"device to pageable", device_to_pageable},
    {"device to device", device_to_device},
    {"memset, words", set_words},
    {"memset, bytes", set_bytes},
};

/* Runs the measured copies of page-locked memory for a while, as warm-up. They do not change its contents. */
static void warm_up(const struct buffers *on, double seconds)
{
    const double end = now_us() + seconds * 1e6;

    while (now_us() < end) {
        CHECK(cuMemcpyHtoDAsync(on->a, on->pinned, on->bytes, NULL));
        CHECK(cuMemcpyHtoDAsync(on->b, on->pinned, on->bytes, NULL));
        CHECK(cuMemcpyDtoHAsync(on->pinned, on->b, on->bytes, NULL));
        CHECK(cuCtxSynchronize());
    }
}

static void measure_transfers(const struct buffers *on)
{
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers; i++) {
        double rates[ROUNDS];

        transfers[i].run(on); /* touches pages, compiles kernels */
        CHECK(cuCtxSynchronize());
        for (int round = 0; round < ROUNDS; round++) {
            double start = now_us();

            transfers[i].run(on);
            CHECK(cuCtxSynchronize());
            rates[round] = (double)on->bytes / (now_us() - start) / 1e3;
        }
        report(transfers[i].name, median(rates, ROUNDS), "GB/s");
    }
}

/* ---- copies concurrent with other work, each in a stream of its own ---- */

/* One thread that runs for some milliseconds. */
static const char busy_kernel[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry busy(.param .u64 result)\n{\n.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d;\n"
    "ld.param.u64 %d, [result]; mov.u32 %r1, 0; mov.u32 %r2, 1;\n"
    "again:\nmad.lo.u32 %r2, %r2, 1664525, 1013904223; add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 2000000; @%p bra again;\n"
    "setp.ne.u32 %p, %r2, 0x12345679; @%p bra out;\nst.global.u32 [%d], %r2;\nout:\nret;\n}\n";

static void measure_both_ways(const struct buffers *on, CUstream up, CUstream down)
{
    double rates[ROUNDS];

    for (int round = -1; round < ROUNDS; round++) {
        double start = now_us();

        CHECK(cuMemcpyHtoDAsync(on->a, on->pinned, on->bytes / 2, up));
        CHECK(cuMemcpyDtoHAsync(on->pinned + on->bytes / 2, on->b, on->bytes / 2, down));
        CHECK(cuCtxSynchronize());
        if (round >= 0)
            rates[round] = (double)on->bytes / (now_us() - start) / 1e3;
    }
    report("pinned, both ways at once", median(rates, ROUNDS), "GB/s");
}

static void measure_beside_kernel(const struct buffers *on, CUstream kernels, CUstream copies)
{
    double rates[ROUNDS], alone[ROUNDS];
    CUmodule module;
    CUfunction function;

    CHECK(cuModuleLoadData(&module, busy_kernel));
    CHECK(cuModuleGetFunction(&function, module, "busy"));
    for (int round = -1; round < ROUNDS; round++) {
        double start = now_us();

        CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, kernels, (void *[]){(void *)&on->b}, NULL));
        CHECK(cuCtxSynchronize());
        if (round >= 0)
            alone[round] = now_us() - start;
        CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, kernels, (void *[]){(void *)&on->b}, NULL));
        start = now_us();
        CHECK(cuMemcpyHtoDAsync(on->a, on->pinned, on->bytes / 4, copies));
        CHECK(cuStreamSynchronize(copies));
        if (round >= 0)
            rates[round] = (double)(on->bytes / 4) / (now_us() - start) / 1e3;
        CHECK(cuCtxSynchronize());
    }
    report("busy kernel alone", median(alone, ROUNDS), "us");
    report("pinned to device beside it", median(rates, ROUNDS), "GB/s");
    CHECK(cuModuleUnload(module));
}

static void measure_beside(const struct buffers *on)
{
    CUstream streams[2];

    for (int i = 0; i < 2; i++)
        CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    measure_both_ways(on, streams[0], streams[1]);
    measure_beside_kernel(on, streams[0], streams[1]);
    for (int i = 0; i < 2; i++)
        CHECK(cuStreamDestroy(streams[i]));
}

static void measure_zero_copy(const struct buffers *on)
{
    unsigned long long units = on->bytes / 16;
    double rates[ROUNDS];
    CUdeviceptr from;
    CUmodule module;
    CUfunction function;

    CHECK(cuModuleLoadData(&module, read_kernel));
    CHECK(cuModuleGetFunction(&function, module, "read_all"));
    CHECK(cuMemHostGetDevicePointer(&from, on->pinned, 0));
    for (int round = -1; round < ROUNDS; round++) {
        double start = now_us();

        CHECK(cuLaunchKernel(function, READ_BLOCKS, 1, 1, READ_THREADS, 1, 1, 0, NULL, (void *[]){&from, &units, (void *)&on->a}, NULL));
        CHECK(cuCtxSynchronize());
        if (round >= 0)
            rates[round] = (double)on->bytes / (now_us() - start) / 1e3;
    }
    report("zero-copy reads in a kernel", median(rates, ROUNDS), "GB/s");
    CHECK(cuModuleUnload(module));
}

/* ---- allocation ---- */

static void measure_allocations(void)
{
    static const size_t kib[] = {4, 64, 1024, 2048, 8192, 65536};

    for (size_t i = 0; i < sizeof kib / sizeof *kib; i++) {
        double times[ROUNDS];
        char name[64];
        CUdeviceptr p;

        for (int round = -1; round < ROUNDS; round++) {
            double start = now_us();

            CHECK(cuMemAlloc(&p, kib[i] << 10));
            CHECK(cuMemFree(p));
            if (round >= 0)
                times[round] = now_us() - start;
        }
        snprintf(name, sizeof name, "alloc and free, %zu KiB", kib[i]);
        report(name, median(times, ROUNDS), "us");
    }
}

/* 64 MiB that have been accessed before, as an application's memory has. */
static void measure_registration(void)
{
    const size_t bytes = 64 * MIB;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double in[ROUNDS], out[ROUNDS];

    if (pages == MAP_FAILED)
        exit(1);
    memset(pages, 1, bytes);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_us(), middle;

        CHECK(cuMemHostRegister(pages, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
        middle = now_us();
        CHECK(cuMemHostUnregister(pages));
        in[round] = middle - start;
        out[round] = now_us() - middle;
    }
    report("host register, 64 MiB", median(in, ROUNDS), "us");
    report("host unregister, 64 MiB", median(out, ROUNDS), "us");
    munmap(pages, bytes);
}

/* ---- virtual memory ---- */

static void measure_mapping(CUdevice device)
{
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    const CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const size_t bytes = 64 * MIB;
    double in[ROUNDS], out[ROUNDS], create[ROUNDS];
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;

    CHECK(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    for (int round = -1; round < ROUNDS; round++) {
        double start = now_us(), made, mapped, unmapped;

        CHECK(cuMemCreate(&handle, bytes, &properties, 0));
        made = now_us();
        CHECK(cuMemMap(address, bytes, 0, handle, 0));
        CHECK(cuMemSetAccess(address, bytes, &access, 1));
        mapped = now_us();
        CHECK(cuMemsetD32(address, 1, 16)); /* checks that the memory is accessible */
        CHECK(cuCtxSynchronize());
        unmapped = now_us();
        CHECK(cuMemUnmap(address, bytes));
        if (round >= 0) {
            create[round] = made - start;
            in[round] = mapped - made;
            out[round] = now_us() - unmapped;
        }
        CHECK(cuMemRelease(handle));
    }
    CHECK(cuMemAddressFree(address, bytes));
    report("create, 64 MiB", median(create, ROUNDS), "us");
    report("map and set access, 64 MiB", median(in, ROUNDS), "us");
    report("unmap, 64 MiB", median(out, ROUNDS), "us");
}

/* Fills memory with data that a device cannot compress. */
static void fill_at_random(char *bytes, size_t count)
{
    unsigned long long state = 1;

    for (size_t i = 0; i + 8 <= count; i += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(bytes + i, &state, 8);
    }
}

int main(int argc, char **argv)
{
    struct buffers buffers = {.bytes = (argc > 1 ? strtoull(argv[1], NULL, 0) : 256) * MIB};
    CUcontext context;
    CUdevice device;

    device = example_open(&context);
    CHECK(cuMemAlloc(&buffers.a, buffers.bytes));
    CHECK(cuMemAlloc(&buffers.b, buffers.bytes));
    CHECK(cuMemHostAlloc((void **)&buffers.pinned, buffers.bytes, CU_MEMHOSTALLOC_DEVICEMAP));
    buffers.pageable = malloc(buffers.bytes);
    buffers.other = malloc(buffers.bytes);
    if (!buffers.pageable || !buffers.other)
        return 1;
    fill_at_random(buffers.pinned, buffers.bytes);
    fill_at_random(buffers.pageable, buffers.bytes);
    warm_up(&buffers, argc > 2 ? atof(argv[2]) : 2);
    measure_transfers(&buffers);
    measure_beside(&buffers);
    measure_zero_copy(&buffers);
    CHECK(cuMemFreeHost(buffers.pinned));
    CHECK(cuMemFree(buffers.a));
    CHECK(cuMemFree(buffers.b));
    free(buffers.pageable);
    free(buffers.other);
    measure_allocations();
    measure_registration();
    measure_mapping(device);
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
