/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program: runs a kernel through the driver API, and parses the same PTX with the compiler's library. */
#include <cuda.h>
#include <cuttle/ptx2spv.h>

#include <stdio.h>
#include <string.h>

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry add(.param .u64 to, .param .u32 a, .param .u32 b)\n"
                          "{\n"
                          "    .reg .b32 %r<4>;\n"
                          "    .reg .b64 %d;\n"
                          "    ld.param.u64 %d, [to];\n"
                          "    ld.param.u32 %r1, [a];\n"
                          "    ld.param.u32 %r2, [b];\n"
                          "    add.u32 %r3, %r1, %r2;\n"
                          "    st.global.u32 [%d], %r3;\n"
                          "    ret;\n"
                          "}\n";

static int check(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS)
        fprintf(stderr, "%s: CUDA error %d\n", call, (int)result);
    return result == CUDA_SUCCESS;
}
#define CHECK(call)                                                                                                                        \
    if (!check(call, #call))                                                                                                               \
    return 1

int main(void)
{
    const struct ptx2spv_options options = {0};
    struct ptx2spv_module *parsed;
    unsigned a = 3, b = 7, sum = 0;
    CUmodule module;
    CUfunction function;
    CUcontext context;
    CUdeviceptr to;
    CUdevice device;
    int devices;
    void *params[] = {&to, &a, &b};

    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&devices));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&function, module, "add"));
    CHECK(cuMemAlloc(&to, sizeof sum));
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CHECK(cuMemcpyDtoH(&sum, to, sizeof sum));
    if (ptx2spv_module_create(ptx, strlen(ptx), &options, &parsed) != PTX2SPV_OK)
        return 1;
    printf("devices %d, sum %u, kernels %u\n", devices, sum, ptx2spv_module_kernel_count(parsed));
    ptx2spv_module_destroy(parsed);
    return 0;
}
