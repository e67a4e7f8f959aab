/* SPDX-License-Identifier: Apache-2.0 */
/* Library management: code without a context, and kernels that are used as functions. */
#include "api_test.h"

#include "api_kernels.h"

#include <pthread.h>

static const char source[] = PTX_HEADER ".visible .global .align 4 .u32 answer = 42;\n" PTX_NOTHING PTX_RAMP PTX_DYNAMIC;

static CUlibrary load(void)
{
    CUlibrary library = NULL;

    ok(cuLibraryLoadData(&library, source, NULL, NULL, 0, NULL, NULL, 0));
    return library;
}

/* Launches "ramp" by its kernel's handle in the current context, and checks the result. */
static void check_ramp(CUkernel kernel, unsigned a)
{
    unsigned got[100], count = 100;
    CUdeviceptr out;
    void *params[] = {&out, &a, &count};

    ok(cuMemAlloc(&out, sizeof got));
    ok(cuLaunchKernel((CUfunction)kernel, 2, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(got, out, sizeof got));
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(got[i], a + i);
    ok(cuMemFree(out));
}

static void kernels_pass_for_functions(void **state)
{
    CUlibrary library = load(), of;
    CUkernel kernel, again;
    CUfunction function, as_function;
    CUmodule module, of_function;
    int blocks, value;

    (void)state;
    ok(cuLibraryGetKernel(&kernel, library, "ramp"));
    ok(cuLibraryGetKernel(&again, library, "ramp"));
    assert_ptr_equal(kernel, again);
    check_ramp(kernel, 5);
    ok(cuKernelGetFunction(&function, kernel));
    ok(cuLibraryGetModule(&module, library));
    ok(cuModuleGetFunction(&as_function, module, "ramp"));
    assert_ptr_equal(function, as_function);
    ok(cuFuncGetModule(&of_function, function));
    assert_ptr_equal(of_function, module);
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (CUfunction)kernel, 64, 0));
    assert_true(blocks >= 1);
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    assert_true(value >= 64);
    ok(cuKernelGetLibrary(&of, kernel));
    assert_ptr_equal(of, library);
    ok(cuLibraryUnload(library));
}

/* Each call that takes a function also accepts a kernel, which denotes its function in the current context. The manual guarantees less:
 * NVIDIA's driver accepts kernels for launches and occupancy only. */
static void every_call_on_functions_takes_kernels(void **state)
{
    CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value = {.clusterDim = {1, 1, 1}}};
    CUlibrary library = load();
    CUkernel kernel;
    CUfunction as_function;
    CUfunctionLoadingState loading;
    CUmodule module, of_kernel;
    const char *name;
    size_t offset, bytes;
    int grid, block, value;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuLibraryGetKernel(&kernel, library, "reverse"));
    as_function = (CUfunction)kernel;
    ok(cuFuncLoad(as_function));
    ok(cuFuncIsLoaded(&loading, as_function));
    assert_int_equal(loading, CU_FUNCTION_LOADING_STATE_LOADED);
    ok(cuFuncGetName(&name, as_function));
    assert_string_equal(name, "reverse");
    ok(cuLibraryGetModule(&module, library));
    ok(cuFuncGetModule(&of_kernel, as_function));
    assert_ptr_equal(of_kernel, module);
    ok(cuFuncGetParamInfo(as_function, 0, &offset, &bytes));
    assert_true(offset == 0 && bytes == 8);
    ok(cuFuncSetAttribute(as_function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 512));
    ok(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
    assert_int_equal(value, 512);
    ok(cuFuncSetCacheConfig(as_function, CU_FUNC_CACHE_PREFER_L1));
    ok(cuFuncSetSharedMemConfig(as_function, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
    ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, as_function, NULL, 0, 0));
    assert_true(grid >= 1 && block >= 1);
    ok(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, as_function, NULL, 0, 0, CU_OCCUPANCY_DEFAULT));
    assert_true(grid >= 1 && block >= 1);
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&value, as_function, 32, 0, CU_OCCUPANCY_DEFAULT));
    assert_true(value >= 1);
    ok(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, as_function, 1, 32));
    assert_true(bytes >= 512);
    ok(cuOccupancyMaxPotentialClusterSize(&value, as_function, &config));
    assert_true(value >= 1);
    config.attrs = &cluster;
    config.numAttrs = 1;
    ok(cuOccupancyMaxActiveClusters(&value, as_function, &config));
    assert_true(value >= 1);
    ok(cuLibraryGetKernel(&kernel, library, "nothing"));
    ok(cuLaunchKernelEx(&config, (CUfunction)kernel, NULL, NULL));
    ok(cuLaunchCooperativeKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    ok(cuCtxSynchronize());
    ok(cuLibraryUnload(library));
}

static void kernels_are_listed(void **state)
{
    static const char *const names[] = {"nothing", "ramp", "reverse"};
    CUlibrary library = load();
    CUkernel kernels[4] = {NULL};
    const char *name;
    unsigned count, seen = 0;
    size_t offset, size;

    (void)state;
    ok(cuLibraryGetKernelCount(&count, library));
    assert_int_equal(count, 3);
    ok(cuLibraryEnumerateKernels(kernels, 4, library));
    assert_null(kernels[3]);
    for (unsigned i = 0; i < count; i++) {
        ok(cuKernelGetName(&name, kernels[i]));
        for (unsigned k = 0; k < 3; k++)
            seen |= (unsigned)!strcmp(name, names[k]) << k;
    }
    assert_int_equal(seen, 7);
    ok(cuLibraryGetKernel(&kernels[0], library, "ramp"));
    ok(cuKernelGetParamInfo(kernels[0], 2, &offset, &size));
    assert_true(offset == 12 && size == 4);
    gives(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(kernels[0], 3, &offset, &size));
    ok(cuLibraryUnload(library));
}

static void variables_are_found(void **state)
{
    CUlibrary library = load();
    CUdeviceptr address;
    uint32_t value;
    size_t bytes;
    void *function;

    (void)state;
    ok(cuLibraryGetGlobal(&address, NULL, library, "answer"));
    ok(cuMemcpyDtoH(&value, address, sizeof value));
    assert_int_equal(value, 42);
    ok(cuLibraryGetGlobal(NULL, &bytes, library, "answer"));
    assert_int_equal(bytes, 4);
    gives(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&address, &bytes, library, "question"));
    gives(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&address, &bytes, library, "answer"));
    gives(CUDA_ERROR_INVALID_VALUE, cuLibraryGetUnifiedFunction(&function, library, "ramp"));
    ok(cuLibraryUnload(library));
}

/* The library is loaded without a current context; then the same kernel runs in two contexts, each with its own variables. */
static void one_kernel_runs_in_many_contexts(void **state)
{
    CUlibrary library;
    CUkernel kernel;
    CUcontext contexts[2];
    CUdeviceptr addresses[2];
    uint32_t value = 7;

    ok(cuCtxSetCurrent(NULL));
    library = load();
    ok(cuLibraryGetKernel(&kernel, library, "ramp"));
    for (int i = 0; i < 2; i++) {
        ok(cuCtxCreate(&contexts[i], NULL, 0, 0));
        check_ramp(kernel, (unsigned)(i * 1000));
        ok(cuLibraryGetGlobal(&addresses[i], NULL, library, "answer"));
        if (i == 0)
            ok(cuMemcpyHtoD(addresses[0], &value, sizeof value));
    }
    ok(cuMemcpyDtoH(&value, addresses[1], sizeof value));
    assert_int_equal(value, 42);
    ok(cuCtxDestroy(contexts[1])); /* the library remains loaded */
    ok(cuCtxSetCurrent(contexts[0]));
    check_ramp(kernel, 9);
    ok(cuCtxDestroy(contexts[0]));
    ok(cuCtxSetCurrent(*state));
    check_ramp(kernel, 11);
    ok(cuLibraryUnload(library));
}

/* Attributes that are set for a kernel on a device apply to all its contexts, including those that are created later. */
static void attributes_are_the_devices(void **state)
{
    CUlibrary library = load();
    CUfunction function;
    CUkernel kernel;
    CUcontext context;
    int value;

    (void)state;
    ok(cuLibraryGetKernel(&kernel, library, "reverse"));
    ok(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 3000, kernel, 0));
    ok(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
    assert_int_equal(value, 3000);
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuKernelGetFunction(&function, kernel));
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    assert_int_equal(value, 3000);
    ok(cuCtxDestroy(context));
    gives(CUDA_ERROR_INVALID_VALUE, cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30, kernel, 0));
    gives(CUDA_ERROR_INVALID_DEVICE, cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 1000));
    ok(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 0));
    ok(cuLibraryUnload(library));
}

static void attributes_need_no_context(void **state)
{
    CUlibrary library = load();
    CUkernel kernel;
    int value;

    ok(cuCtxSetCurrent(NULL));
    ok(cuLibraryGetKernel(&kernel, library, "ramp"));
    ok(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, 0));
    assert_int_equal(value, 0);
    ok(cuLibraryUnload(library));
    ok(cuCtxSetCurrent(*state));
}

static void libraries_come_from_files(void **state)
{
    char path[] = "/tmp/cuttle-library-XXXXXX";
    int file = mkstemp(path);
    CUlibrary library;
    CUkernel kernel;
    FILE *stream;

    (void)state;
    assert_true(file >= 0 && (stream = fdopen(file, "w")) != NULL && fputs(source, stream) >= 0 && fclose(stream) == 0);
    ok(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    remove(path);
    ok(cuLibraryGetKernel(&kernel, library, "ramp"));
    check_ramp(kernel, 1);
    ok(cuLibraryUnload(library));
    gives(CUDA_ERROR_FILE_NOT_FOUND, cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
}

static void wrong_use_gives_errors(void **state)
{
    CUlibrary library = load(), untouched = library;
    CUlibraryOption option = CU_LIBRARY_NUM_OPTIONS;
    CUkernel kernel;
    void *value = NULL;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&library, source, NULL, NULL, 0, &option, &value, 1));
    if (on_cuttle()) /* NVIDIA's driver does not read the image yet */
        gives(CUDA_ERROR_INVALID_IMAGE, cuLibraryLoadData(&library, "no PTX", NULL, NULL, 0, NULL, NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(NULL, source, NULL, NULL, 0, NULL, NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
    assert_ptr_equal(library, untouched);
    gives(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "slope"));
    gives(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(NULL, library, "ramp"));
    gives(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(&kernel, library, NULL));
    option = CU_LIBRARY_BINARY_IS_PRESERVED;
    value = (void *)1;
    ok(cuLibraryUnload(library));
    ok(cuLibraryLoadData(&library, source, NULL, NULL, 0, &option, &value, 1));
    ok(cuLibraryUnload(library));
}

static void unloaded_ones_are_gone(void **state)
{
    CUlibrary library = load(), gone = library;
    CUkernel kernel;
    CUfunction function;
    int value;

    (void)state;
    ok(cuLibraryGetKernel(&kernel, library, "ramp"));
    check_ramp(kernel, 0);
    ok(cuLibraryUnload(library));
    if (!on_cuttle())
        return; /* NVIDIA's driver dereferences such handles */
    gives(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(gone));
    gives(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel(&kernel, gone, "ramp"));
    gives(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&function, kernel));
    gives(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)kernel));
    gives(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/* Threads that launch a kernel of one library for the first time simultaneously. */
static CUkernel shared_kernel;

static void *launch_in(void *context)
{
    ok(cuCtxSetCurrent(context));
    for (unsigned i = 0; i < 4; i++)
        check_ramp(shared_kernel, i);
    return NULL;
}

static void threads_share_a_library(void **state)
{
    CUlibrary library = load();
    pthread_t threads[8];

    ok(cuLibraryGetKernel(&shared_kernel, library, "ramp"));
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_in, *state), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    ok(cuLibraryUnload(library));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_pass_for_functions),
        cmocka_unit_test(every_call_on_functions_takes_kernels),
        cmocka_unit_test(kernels_are_listed),
        cmocka_unit_test(variables_are_found),
        cmocka_unit_test(one_kernel_runs_in_many_contexts),
        cmocka_unit_test(attributes_are_the_devices),
        cmocka_unit_test(attributes_need_no_context),
        cmocka_unit_test(libraries_come_from_files),
        cmocka_unit_test(wrong_use_gives_errors),
        cmocka_unit_test(unloaded_ones_are_gone),
        cmocka_unit_test(threads_share_a_library),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
