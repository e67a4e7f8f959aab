/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of a trapping kernel on its context, and on others. A separate program, since with NVIDIA's driver CUDA does not work in the
 * process afterwards: for LAUNCH_FAILED the manual states that the process must be terminated and relaunched. Our driver invalidates only
 * the context in which it happened: the other contexts' queues and memory are unaffected, so giving up on them would protect nothing. */
#include "api_test.h"

#include "api_kernels.h"

static CUcontext other; /* exists before */
static CUfunction nothing;

static int initialize(void **state)
{
    CUmodule module;

    (void)state;
    if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&other, NULL, 0, 0) != CUDA_SUCCESS ||
        cuModuleLoadData(&module, PTX_HEADER PTX_NOTHING) != CUDA_SUCCESS ||
        cuModuleGetFunction(&nothing, module, "nothing") != CUDA_SUCCESS)
        return -1;
    return 0;
}

static CUresult launch(CUfunction function)
{
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static void a_trap_ends_its_context(void **state)
{
    CUcontext broken;
    CUmodule module;
    CUfunction stops;
    CUdeviceptr memory;
    unsigned flags;

    (void)state;
    ok(cuCtxCreate(&broken, NULL, 0, 0));
    ok(cuModuleLoadData(&module, PTX_HEADER PTX_TRAP));
    ok(cuModuleGetFunction(&stops, module, "stops"));
    ok(launch(stops));
    gives(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    gives(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    gives(CUDA_ERROR_LAUNCH_FAILED, launch(stops));
    gives(CUDA_ERROR_LAUNCH_FAILED, cuMemAlloc(&memory, 16));
    ok(cuCtxGetFlags(&flags));
    ok(cuCtxDestroy(broken));
}

static void CUDA_CB note_status(CUstream stream, CUresult status, void *user)
{
    (void)stream;
    *(CUresult *)user = status;
}

static void CUDA_CB note_run(void *user)
{
    *(int *)user = 1;
}

/* A callback runs anyway, with the error code; a host function does not run. */
static void after_a_trap_callbacks_get_the_error(void **state)
{
    CUcontext broken;
    CUmodule module;
    CUfunction stops;
    CUresult status = CUDA_SUCCESS;
    int has_run = 0;

    (void)state;
    if (!on_cuttle())
        skip(); /* no function works any more */
    ok(cuCtxCreate(&broken, NULL, 0, 0));
    ok(cuModuleLoadData(&module, PTX_HEADER PTX_TRAP));
    ok(cuModuleGetFunction(&stops, module, "stops"));
    ok(launch(stops));
    /* either call may find the error first */
    if (cuStreamAddCallback(NULL, note_status, &status, 0) != CUDA_SUCCESS)
        status = CUDA_ERROR_LAUNCH_FAILED;
    cuLaunchHostFunc(NULL, note_run, &has_run);
    gives(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    ok(cuCtxDestroy(broken)); /* waits for both */
    assert_int_equal(status, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(has_run, 0);
}

static void after_a_trap_other_contexts_work(void **state)
{
    CUcontext context;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(launch(nothing));
    ok(cuCtxSynchronize());
    ok(cuCtxDestroy(other));
    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuCtxSynchronize());
    ok(cuCtxDestroy(context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trap_ends_its_context),
        cmocka_unit_test(after_a_trap_callbacks_get_the_error),
        cmocka_unit_test(after_a_trap_other_contexts_work),
    };

    return cmocka_run_group_tests_name("traps", tests, initialize, NULL);
}
