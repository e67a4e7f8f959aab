/* SPDX-License-Identifier: Apache-2.0 */
/* Memory functions of CUDA 2, with 32-bit pointers. cuda.h hides them behind their successors, so they are looked up by name. The results
 * are known for our driver only: with NVIDIA's driver only the presence of the symbols is checked. */
#include "api_test.h"

/* The functions, with their old parameters. */
#define OLD_FUNCTIONS(F)                                                                                                                   \
    F(cuCtxCreate, (CUcontext *, unsigned, CUdevice))                                                                                      \
    F(cuModuleGetGlobal, (unsigned *, unsigned *, CUmodule, const char *))                                                                 \
    F(cuMemGetInfo, (unsigned *, unsigned *))                                                                                              \
    F(cuMemAlloc, (unsigned *, unsigned))                                                                                                  \
    F(cuMemAllocPitch, (unsigned *, unsigned *, unsigned, unsigned, unsigned))                                                             \
    F(cuMemFree, (unsigned))                                                                                                               \
    F(cuMemGetAddressRange, (unsigned *, unsigned *, unsigned))                                                                            \
    F(cuMemHostGetDevicePointer, (unsigned *, void *, unsigned))                                                                           \
    F(cuMemcpyHtoD, (unsigned, const void *, unsigned))                                                                                    \
    F(cuMemcpyDtoH, (void *, unsigned, unsigned))                                                                                          \
    F(cuMemcpyDtoD, (unsigned, unsigned, unsigned))                                                                                        \
    F(cuMemcpyHtoDAsync, (unsigned, const void *, unsigned, CUstream))                                                                     \
    F(cuMemcpyDtoHAsync, (void *, unsigned, unsigned, CUstream))                                                                           \
    F(cuMemcpyDtoDAsync, (unsigned, unsigned, unsigned, CUstream))                                                                         \
    F(cuMemcpy2D, (const void *))                                                                                                          \
    F(cuMemcpy2DUnaligned, (const void *))                                                                                                 \
    F(cuMemcpy3D, (const void *))                                                                                                          \
    F(cuMemcpy2DAsync, (const void *, CUstream))                                                                                           \
    F(cuMemcpy3DAsync, (const void *, CUstream))                                                                                           \
    F(cuMemsetD8, (unsigned, unsigned char, unsigned))                                                                                     \
    F(cuMemsetD16, (unsigned, unsigned short, unsigned))                                                                                   \
    F(cuMemsetD32, (unsigned, unsigned, unsigned))                                                                                         \
    F(cuMemsetD2D8, (unsigned, unsigned, unsigned char, unsigned, unsigned))                                                               \
    F(cuMemsetD2D16, (unsigned, unsigned, unsigned short, unsigned, unsigned))                                                             \
    F(cuMemsetD2D32, (unsigned, unsigned, unsigned, unsigned, unsigned))

/* cuda.h defines these function names as macros: two steps prevent their expansion. */
static struct {
#define DECLARE(name, params) CUresult(CUDAAPI *old_##name) params;
    OLD_FUNCTIONS(DECLARE)
} old;

static int find_functions(void **state)
{
    (void)state;
#define FIND(name, params)                                                                                                                 \
    *(void **)&old.old_##name = dlsym(RTLD_DEFAULT, #name);                                                                                \
    if (!old.old_##name) {                                                                                                                 \
        print_error("%s is missing\n", #name);                                                                                             \
        return -1;                                                                                                                         \
    }
    OLD_FUNCTIONS(FIND)
    return cuInit(0) == CUDA_SUCCESS ? 0 : -1;
}

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .u32 number = 7;\n";
#define PAST_ALL 0x7fff0000u /* without a function */

/* Calls every function of the list in turn and records the results. */
static void check_all(CUmodule module, CUresult alloc, CUresult with_memory, CUresult info)
{
    static char host[64];
    const CUDA_MEMCPY2D_v1 rectangle = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                        .srcHost = host,
                                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                        .dstDevice = PAST_ALL,
                                        .WidthInBytes = 8,
                                        .Height = 2};
    const CUDA_MEMCPY3D_v1 box = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                  .srcHost = host,
                                  .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                  .dstDevice = PAST_ALL,
                                  .WidthInBytes = 8,
                                  .Height = 2,
                                  .Depth = 2};
    unsigned a = 77, b = 77;

    gives(alloc, old.old_cuMemAlloc(&a, 64));
    gives(alloc, old.old_cuMemAllocPitch(&a, &b, 64, 4, 4));
    gives(alloc, old.old_cuModuleGetGlobal(&a, NULL, module, "number"));
    assert_int_equal(a, 77); /* nothing was written */
    assert_int_equal(b, 77);
    gives(with_memory, old.old_cuMemFree(PAST_ALL));
    gives(with_memory == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_NOT_FOUND : with_memory, old.old_cuMemGetAddressRange(&a, &b, PAST_ALL));
    gives(with_memory, old.old_cuMemHostGetDevicePointer(&a, host, 0));
    gives(with_memory, old.old_cuMemcpyHtoD(PAST_ALL, host, 8));
    gives(with_memory, old.old_cuMemcpyDtoH(host, PAST_ALL, 8));
    gives(with_memory, old.old_cuMemcpyDtoD(PAST_ALL, PAST_ALL + 64, 8));
    gives(with_memory, old.old_cuMemcpyHtoDAsync(PAST_ALL, host, 8, NULL));
    gives(with_memory, old.old_cuMemcpyDtoHAsync(host, PAST_ALL, 8, NULL));
    gives(with_memory, old.old_cuMemcpyDtoDAsync(PAST_ALL, PAST_ALL + 64, 8, NULL));
    gives(with_memory, old.old_cuMemcpy2D(&rectangle));
    gives(with_memory, old.old_cuMemcpy2DUnaligned(&rectangle));
    gives(with_memory, old.old_cuMemcpy2DAsync(&rectangle, NULL));
    gives(with_memory, old.old_cuMemcpy3D(&box));
    gives(with_memory, old.old_cuMemcpy3DAsync(&box, NULL));
    gives(with_memory, old.old_cuMemcpy2D(NULL));
    gives(with_memory, old.old_cuMemsetD8(PAST_ALL, 1, 8));
    gives(with_memory, old.old_cuMemsetD16(PAST_ALL, 1, 8));
    gives(with_memory, old.old_cuMemsetD32(PAST_ALL, 1, 8));
    gives(with_memory, old.old_cuMemsetD2D8(PAST_ALL, 64, 1, 8, 2));
    gives(with_memory, old.old_cuMemsetD2D16(PAST_ALL, 64, 1, 8, 2));
    gives(with_memory, old.old_cuMemsetD2D32(PAST_ALL, 64, 1, 8, 2));
    gives(info, old.old_cuMemGetInfo(&a, &b));
}

/* The manual on CUDA_ERROR_INVALID_CONTEXT: calls of old functions in contexts of the new API, and vice versa. */
static void todays_contexts_refuse_them(void **state)
{
    CUcontext context;
    CUmodule module;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuModuleLoadData(&module, ptx));
    check_all(module, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
    ok(cuCtxDestroy(context));
    gives(CUDA_ERROR_INVALID_CONTEXT, old.old_cuMemFree(0)); /* no context is current */
}

/* Our memory is never below 4 GiB, and the functions report that. */
static void old_contexts_have_no_memory_for_them(void **state)
{
    unsigned version = 0, free_bytes = 0, total_bytes = 0, size = 0;
    size_t total;
    CUcontext context;
    CUmodule module;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(old.old_cuCtxCreate(&context, 0, 0));
    ok(cuCtxGetApiVersion(context, &version));
    assert_int_equal(version, 3010);
    ok(cuModuleLoadData(&module, ptx));
    check_all(module, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS);
    ok(old.old_cuModuleGetGlobal(NULL, &size, module, "number"));
    assert_int_equal(size, 4);
    gives(CUDA_ERROR_NOT_FOUND, old.old_cuModuleGetGlobal(NULL, &size, module, "nothing"));
    ok(cuMemGetInfo(NULL, &total));
    ok(old.old_cuMemGetInfo(&free_bytes, &total_bytes));
    assert_int_equal(total_bytes, total > UINT32_MAX ? UINT32_MAX : total);
    assert_true(free_bytes <= total_bytes);
    ok(old.old_cuMemFree(0));
    gives(CUDA_ERROR_INVALID_VALUE, old.old_cuMemAlloc(NULL, 64));
    ok(cuCtxDestroy(context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(todays_contexts_refuse_them),
        cmocka_unit_test(old_contexts_have_no_memory_for_them),
    };

    return cmocka_run_group_tests(tests, find_functions, NULL);
}
