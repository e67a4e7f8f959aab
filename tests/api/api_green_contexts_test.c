/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: resources and how they are split, contexts made of them, their streams and events (Driver API: Green Contexts). */
#include "api_test.h"

#include "api_kernels.h"
#include "which_driver.h"

enum { MOST = 256 };

static CUdevResource all_of_device(void)
{
    CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_INVALID};
    CUdevice device;

    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetDevResource(device, &resource, CU_DEV_RESOURCE_TYPE_SM));
    return resource;
}

static void a_device_has_multiprocessors(void **state)
{
    CUdevResource resource = all_of_device(), same = {.type = CU_DEV_RESOURCE_TYPE_INVALID};
    int count;

    ok(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    assert_int_equal(resource.type, CU_DEV_RESOURCE_TYPE_SM);
    assert_int_equal(resource.sm.smCount, count);
    assert_true(resource.sm.minSmPartitionSize >= 1 && resource.sm.smCoscheduledAlignment >= 1);
    ok(cuCtxGetDevResource(*state, &same, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(same.sm.smCount, count);
    gives(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(0, &same, CU_DEV_RESOURCE_TYPE_INVALID));
    gives(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(0, &same, (CUdevResourceType)7));
    gives(CUDA_ERROR_INVALID_VALUE, cuDeviceGetDevResource(0, NULL, CU_DEV_RESOURCE_TYPE_SM));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDevResource(99, &same, CU_DEV_RESOURCE_TYPE_SM));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevResource(NULL, &same, CU_DEV_RESOURCE_TYPE_SM));
}

static void groups_are_rounded_up(void **state)
{
    const CUdevResource all = all_of_device();
    const unsigned count = all.sm.smCount, unit = all.sm.minSmPartitionSize;
    CUdevResource groups[MOST], rest;
    unsigned n = MOST;

    (void)state;
    for (unsigned want = 0; want <= count + 1; want++) {
        const unsigned rounded = ((want ? want : 1) + unit - 1) / unit * unit, size = rounded > count && want <= count ? count : rounded;

        n = MOST;
        if (want > count) {
            gives(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevSmResourceSplitByCount(groups, &n, &all, &rest, 0, want));
            continue;
        }
        ok(cuDevSmResourceSplitByCount(groups, &n, &all, &rest, 0, want));
        if (!on_cuttle()) { /* where clusters of multiprocessors cannot be divided there are fewer groups */
            assert_true(n >= 1 && n <= count / size && groups[0].sm.smCount == size);
            continue;
        }
        assert_int_equal(n, count / size);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(groups[i].sm.smCount, size);
        assert_int_equal(rest.type, count % size ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID);
        if (count % size)
            assert_int_equal(rest.sm.smCount, count % size);
        n = MOST;
        ok(cuDevSmResourceSplitByCount(NULL, &n, &all, NULL, 0, want));
        assert_int_equal(n, count / size);
        n = 1;
        ok(cuDevSmResourceSplitByCount(groups, &n, &all, NULL, 0, want));
        assert_int_equal(n, 1);
    }
}

static void wrong_splits_are_refused(void **state)
{
    const CUdevResource all = all_of_device(), none = {.type = CU_DEV_RESOURCE_TYPE_INVALID};
    CUdevResource groups[MOST], rest;
    unsigned n = 0;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(groups, &n, &all, &rest, 0, 1));
    n = 1;
    gives(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(groups, NULL, &all, &rest, 0, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(groups, &n, NULL, &rest, 0, 1));
    gives(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDevSmResourceSplitByCount(groups, &n, &none, &rest, 0, 1));
    ok(cuDevSmResourceSplitByCount(groups, &n, &all, &rest, 0, 1));
    n = 1;
    gives(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevSmResourceSplitByCount(&rest, &n, &groups[0], NULL, 0, 1)); /* no second time */
}

/* A green context of the smallest group. */
static CUgreenCtx make(unsigned *out_count)
{
    const CUdevResource all = all_of_device();
    CUdevResourceDesc desc;
    CUdevResource group;
    unsigned n = 1;
    CUgreenCtx green;

    ok(cuDevSmResourceSplitByCount(&group, &n, &all, NULL, 0, 1));
    ok(cuDevResourceGenerateDesc(&desc, &group, 1));
    ok(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    *out_count = group.sm.smCount;
    return green;
}

static void wrong_descriptions_are_refused(void **state)
{
    CUdevResource all = all_of_device(), none = {.type = CU_DEV_RESOURCE_TYPE_INVALID};
    CUdevResourceDesc desc;
    CUgreenCtx green;

    (void)state;
    ok(cuDevResourceGenerateDesc(&desc, &all, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(NULL, &all, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&desc, NULL, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&green, desc, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(NULL, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxDestroy(NULL));
    if (!on_cuttle())
        return; /* NVIDIA's driver crashes */
    gives(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&desc, &all, 0));
    gives(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDevResourceGenerateDesc(&desc, &none, 1));
    gives(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, (CUdevResource[]){all, all}, 2));
    gives(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&green, (CUdevResourceDesc)16, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    gives(CUDA_ERROR_INVALID_DEVICE, cuGreenCtxCreate(&green, desc, 99, CU_GREEN_CTX_DEFAULT_STREAM));
}

static void it_is_a_context(void **state)
{
    CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_INVALID};
    unsigned long long id, same_id, primary_id;
    CUcontext context, again, found, owner;
    CUdeviceptr memory;
    CUgreenCtx green;
    unsigned count;
    CUdevice device;

    green = make(&count);
    ok(cuCtxFromGreenCtx(&context, green));
    ok(cuCtxFromGreenCtx(&again, green));
    assert_ptr_equal(context, again);
    assert_ptr_not_equal(context, *state);
    ok(cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(resource.sm.smCount, count);
    ok(cuCtxGetDevResource(context, &resource, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(resource.sm.smCount, count);
    gives(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_INVALID));
    ok(cuGreenCtxGetId(green, &id));
    ok(cuCtxGetId(context, &same_id));
    ok(cuCtxGetId(*state, &primary_id));
    assert_true(id == same_id && id != primary_id);
    ok(cuCtxPushCurrent(context));
    ok(cuCtxGetCurrent(&found));
    assert_ptr_equal(found, context);
    ok(cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    ok(cuMemAlloc(&memory, 64)); /* in the primary context */
    ok(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
    assert_ptr_equal(owner, *state);
    ok(cuCtxSynchronize());
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(context));
    ok(cuCtxPopCurrent(&found));
    assert_ptr_equal(found, context);
    ok(cuMemFree(memory));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxFromGreenCtx(NULL, green));
    ok(cuGreenCtxDestroy(green));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxFromGreenCtx(&context, NULL));
}

static void streams_belong_to_it(void **state)
{
    CUgreenCtx green, found;
    CUstream stream, plain, made;
    CUcontext context, owner;
    unsigned count;

    green = make(&count);
    ok(cuCtxFromGreenCtx(&context, green));
    ok(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    ok(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    ok(cuStreamGetGreenCtx(stream, &found));
    assert_ptr_equal(found, green);
    ok(cuStreamGetCtx(stream, &owner));
    assert_ptr_equal(owner, context);
    ok(cuStreamGetCtx_v2(stream, &owner, &found));
    assert_ptr_equal(owner, *state);
    assert_ptr_equal(found, green);
    ok(cuStreamGetCtx_v2(plain, &owner, &found));
    assert_ptr_equal(owner, *state);
    assert_null(found);
    ok(cuStreamGetGreenCtx(NULL, &found));
    assert_null(found);
    ok(cuCtxSetCurrent(context));
    ok(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    ok(cuStreamGetGreenCtx(made, &found));
    assert_ptr_equal(found, green);
    ok(cuStreamGetGreenCtx(NULL, &found));
    assert_ptr_equal(found, green);
    ok(cuCtxSetCurrent(*state));
    gives(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(NULL, green, CU_STREAM_NON_BLOCKING, 0));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxStreamCreate(&stream, NULL, CU_STREAM_NON_BLOCKING, 0));
    ok(cuStreamDestroy(plain));
    ok(cuGreenCtxDestroy(green)); /* with its streams */
    assert_int_not_equal(cuStreamQuery(made), CUDA_SUCCESS);
}

static void work_of_the_primary_context_runs_in_it(void **state)
{
    uint32_t value = 0;
    CUgreenCtx green;
    CUfunction ramp;
    CUmodule module;
    CUdeviceptr data;
    CUstream stream;
    unsigned count;
    CUevent event;

    (void)state;
    green = make(&count);
    ok(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    ok(cuMemAlloc(&data, 64));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuModuleLoadData(&module, PTX_HEADER PTX_NOTHING));
    ok(cuModuleGetFunction(&ramp, module, "nothing"));
    ok(cuMemsetD32Async(data, 7, 16, stream));
    ok(cuLaunchKernel(ramp, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    ok(cuGreenCtxRecordEvent(green, event));
    ok(cuEventSynchronize(event));
    ok(cuMemcpyDtoH(&value, data, 4));
    assert_int_equal(value, 7);
    ok(cuGreenCtxWaitEvent(green, event));
    ok(cuStreamSynchronize(stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuGreenCtxRecordEvent(green, NULL));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxRecordEvent(NULL, event));
    ok(cuStreamDestroy(stream));
    ok(cuGreenCtxDestroy(green));
    ok(cuModuleUnload(module));
    ok(cuEventDestroy(event));
    ok(cuMemFree(data));
}

/* The graph of a capture that never ends is not returned to anybody. */
static void a_captured_stream_is_destroyed_with_it(void **state)
{
    CUstreamCaptureStatus status;
    CUstream stream, forked;
    CUgreenCtx green;
    unsigned count;
    CUevent event;

    (void)state;
    green = make(&count);
    ok(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    ok(cuStreamCreate(&forked, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuEventRecord(event, stream));
    ok(cuStreamWaitEvent(forked, event, 0));
    ok(cuGreenCtxDestroy(green));
    assert_int_not_equal(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    ok(cuStreamDestroy(forked));
    ok(cuEventDestroy(event));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_multiprocessors),
        cmocka_unit_test(groups_are_rounded_up),
        cmocka_unit_test(wrong_splits_are_refused),
        cmocka_unit_test(wrong_descriptions_are_refused),
        cmocka_unit_test(it_is_a_context),
        cmocka_unit_test(streams_belong_to_it),
        cmocka_unit_test(work_of_the_primary_context_runs_in_it),
        cmocka_unit_test(a_captured_stream_is_destroyed_with_it),
    };

    return cmocka_run_group_tests_name("green contexts", tests, with_context, without_context);
}
