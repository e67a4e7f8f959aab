/* SPDX-License-Identifier: Apache-2.0 */
/* Overheads of the driver: the time of a launch call, the time per launch in a long sequence, the time until the host sees the completion,
 * and the speed of copies. Runs on any libcuda.so.1. Prints "name value unit", one per line; medians of several rounds. */
#include "example.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 15
#define ROW 1000

static const char empty_kernel[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";

static void report(const char *name, double *values, const char *unit)
{
    printf("%-28s %10.3f %s\n", name, median(values, ROUNDS), unit);
}

static void launch(CUfunction function)
{
    CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static void measure_launches(CUfunction function)
{
    double row[ROUNDS], call[ROUNDS], round_trip[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        double start = now_us();

        for (int i = 0; i < ROW; i++)
            launch(function);
        call[round] = (now_us() - start) / ROW;
        CHECK(cuCtxSynchronize());
        row[round] = (now_us() - start) / ROW;
        start = now_us();
        for (int i = 0; i < 100; i++) {
            launch(function);
            CHECK(cuCtxSynchronize());
        }
        round_trip[round] = (now_us() - start) / 100;
    }
    report("launch, caller's time", call, "us");
    report("launch, in a row of 1000", row, "us");
    report("launch and synchronize", round_trip, "us");
}

static void measure_copies(size_t bytes)
{
    void *pageable = calloc(1, bytes), *pinned;
    CUdeviceptr a, b;
    double to_device[ROUNDS], from_device[ROUNDS], on_device[ROUNDS], pinned_to_device[ROUNDS];

    CHECK(cuMemAlloc(&a, bytes));
    CHECK(cuMemAlloc(&b, bytes));
    CHECK(cuMemHostAlloc(&pinned, bytes, 0));
    memset(pinned, 1, bytes);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_us();
        CHECK(cuMemcpyHtoD(a, pageable, bytes));
        to_device[round] = (double)bytes / (now_us() - start) / 1e3;
        start = now_us();
        CHECK(cuMemcpyHtoD(a, pinned, bytes));
        pinned_to_device[round] = (double)bytes / (now_us() - start) / 1e3;
        start = now_us();
        CHECK(cuMemcpyDtoH(pageable, a, bytes));
        from_device[round] = (double)bytes / (now_us() - start) / 1e3;
        start = now_us();
        CHECK(cuMemcpyDtoD(b, a, bytes));
        CHECK(cuCtxSynchronize());
        on_device[round] = (double)bytes / (now_us() - start) / 1e3;
    }
    report("pageable host to device", to_device, "GB/s");
    report("pinned host to device", pinned_to_device, "GB/s");
    report("device to pageable host", from_device, "GB/s");
    report("device to device", on_device, "GB/s");
    CHECK(cuMemFree(a));
    CHECK(cuMemFree(b));
    CHECK(cuMemFreeHost(pinned));
    free(pageable);
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoull(argv[1], NULL, 0) : 64;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;

    device = example_open(&context);
    CHECK(cuModuleLoadData(&module, empty_kernel));
    CHECK(cuModuleGetFunction(&function, module, "empty"));
    launch(function);
    CHECK(cuCtxSynchronize());
    measure_launches(function);
    measure_copies(mib << 20);
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
