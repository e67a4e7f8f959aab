/* SPDX-License-Identifier: Apache-2.0 */
/* An ordinary CUDA program: compiled with NVIDIA's cuda.h, linked with -lcuda, started with our library in LD_LIBRARY_PATH. Checks its
 * results; the exit status is 0 if all are correct. */
#include <cuda.h>

#ifndef __CUDA_API_PTDS
#error "this is not NVIDIA's cuda.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kernel_ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                                 ".visible .entry add_one(.param .u64 data, .param .u32 count)\n"
                                 "{\n"
                                 "    .reg .pred %p;\n    .reg .b32 %i, %n, %t;\n    .reg .b64 %a, %o;\n"
                                 "    ld.param.u64 %a, [data];\n    ld.param.u32 %n, [count];\n"
                                 "    mov.u32 %i, %ctaid.x;\n    mov.u32 %t, %ntid.x;\n    mul.lo.u32 %i, %i, %t;\n"
                                 "    mov.u32 %t, %tid.x;\n    add.u32 %i, %i, %t;\n"
                                 "    setp.ge.u32 %p, %i, %n;\n    @%p bra DONE;\n"
                                 "    mul.wide.u32 %o, %i, 4;\n    add.u64 %a, %a, %o;\n"
                                 "    ld.global.u32 %t, [%a];\n    add.u32 %t, %t, 1;\n    st.global.u32 [%a], %t;\n"
                                 "DONE:\n    ret;\n}\n";

static void check(CUresult result, const char *what)
{
    const char *name = "?", *text = "?";

    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    cuGetErrorString(result, &text);
    fprintf(stderr, "%s: %s (%s)\n", what, name, text);
    exit(EXIT_FAILURE);
}

static void expect(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "not so: %s\n", what);
    exit(EXIT_FAILURE);
}

static void run_on_device(CUdevice device)
{
    enum { COUNT = 1000 };
    unsigned numbers[COUNT], count = COUNT;
    CUdeviceptr data;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    void *parameters[] = {&data, &count};

    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuModuleLoadData(&module, kernel_ptx), "cuModuleLoadData");
    check(cuModuleGetFunction(&function, module, "add_one"), "cuModuleGetFunction");
    check(cuMemAlloc(&data, sizeof numbers), "cuMemAlloc");
    for (unsigned i = 0; i < COUNT; i++)
        numbers[i] = 7 * i;
    check(cuMemcpyHtoD(data, numbers, sizeof numbers), "cuMemcpyHtoD");
    check(cuLaunchKernel(function, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
    check(cuMemcpyDtoH(numbers, data, sizeof numbers), "cuMemcpyDtoH");
    for (unsigned i = 0; i < COUNT; i++)
        expect(numbers[i] == 7 * i + 1, "the kernel adds one to every number");
    check(cuMemFree(data), "cuMemFree");
    check(cuModuleUnload(module), "cuModuleUnload");
    check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
}

int main(void)
{
    int version = 0, count = 0;
    CUdevice device;
    CUresult result;

    check(cuDriverGetVersion(&version), "cuDriverGetVersion");
    expect(version >= CUDA_VERSION, "the driver is at least as new as the header");
    result = cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE) {
        printf("no device\n");
        return 77; /* reported by ctest as skipped */
    }
    check(result, "cuInit");
    check(cuDeviceGetCount(&count), "cuDeviceGetCount");
    expect(count > 0, "there is a device when cuInit says so");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    run_on_device(device);
    printf("ok\n");
    return EXIT_SUCCESS;
}
