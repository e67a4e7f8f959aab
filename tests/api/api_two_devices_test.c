/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices in one process: on Cuttle the first one, listed twice; elsewhere the first two, if there are two. */
#include "api_test.h"

#include "api_kernels.h"

#include <stdatomic.h>
#include <unistd.h>

#define WORDS 1024
#define BYTES ((size_t)WORDS * 4)

static const char ptx[] = PTX_HEADER PTX_RAMP;
static CUcontext contexts[2];

static int begin(void **state)
{
    int count = 0;

    (void)state;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return -1;
    for (int i = 0; i < 2 && count >= 2; i++)
        if (cuDevicePrimaryCtxRetain(&contexts[i], i) != CUDA_SUCCESS)
            return -1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    cuCtxSetCurrent(NULL);
    for (int i = 0; i < 2 && contexts[i]; i++)
        if (cuDevicePrimaryCtxRelease(i) != CUDA_SUCCESS)
            return -1;
    return 0;
}

/* Makes the context of a device current. */
static void use(int device)
{
    if (!contexts[1])
        skip();
    ok(cuCtxSetCurrent(contexts[device]));
}

static CUdeviceptr filled(int device, unsigned value)
{
    CUdeviceptr memory;

    use(device);
    ok(cuMemAlloc(&memory, BYTES));
    ok(cuMemsetD32(memory, value, WORDS));
    ok(cuCtxSynchronize());
    return memory;
}

static void release(int device, CUdeviceptr memory)
{
    use(device);
    ok(cuMemFree(memory));
}

static void all_are(int device, CUdeviceptr memory, unsigned value)
{
    unsigned words[WORDS];

    use(device);
    ok(cuMemcpyDtoH(words, memory, BYTES));
    for (int i = 0; i < WORDS; i++)
        assert_int_equal(words[i], value);
}

static void devices_are_distinct(void **state)
{
    CUuuid uuids[2];
    CUdevice device;
    char names[2][100], addresses[2][32];
    int can_access = 7;

    (void)state;
    assert_true(!contexts[1] || contexts[0] != contexts[1]);
    for (int i = 0; i < 2; i++) {
        use(i);
        ok(cuCtxGetDevice(&device));
        assert_int_equal(device, i);
        ok(cuDeviceGetUuid(&uuids[i], i));
        ok(cuDeviceGetName(names[i], 100, i));
        ok(cuDeviceGetPCIBusId(addresses[i], sizeof addresses[i], i));
        ok(cuDeviceGetByPCIBusId(&device, addresses[i]));
        assert_int_equal(device, i);
    }
    assert_string_not_equal(addresses[0], addresses[1]);
    assert_memory_not_equal(&uuids[0], &uuids[1], sizeof uuids[0]);
    if (on_cuttle())
        assert_string_equal(names[0], names[1]);
    ok(cuDeviceCanAccessPeer(&can_access, 0, 1));
    assert_in_range(can_access, 0, 1);
    gives(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can_access, 0, 100));
}

static void each_has_memory_of_its_own(void **state)
{
    CUdeviceptr memory[2] = {filled(0, 1), filled(1, 2)};

    (void)state;
    assert_true(memory[0] + BYTES <= memory[1] || memory[1] + BYTES <= memory[0]);
    for (int i = 0; i < 2; i++) {
        CUcontext context;
        int ordinal = -1;

        ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory[i]));
        assert_ptr_equal(context, contexts[i]);
        ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory[i]));
        assert_int_equal(ordinal, i);
    }
    all_are(0, memory[0], 1);
    all_are(1, memory[1], 2);
    release(0, memory[0]);
    all_are(1, memory[1], 2);
    release(1, memory[1]);
}

/* One thread, both devices, launches in turn. */
static void kernels_run_on_both(void **state)
{
    CUdeviceptr out[2] = {filled(0, 0), filled(1, 0)};
    CUmodule modules[2];
    CUfunction ramps[2];
    unsigned words[WORDS], count = WORDS;

    (void)state;
    for (int i = 0; i < 2; i++) {
        use(i);
        ok(cuModuleLoadData(&modules[i], ptx));
        ok(cuModuleGetFunction(&ramps[i], modules[i], "ramp"));
    }
    for (unsigned a = 0; a < 20; a++) {
        int i = a & 1;
        void *params[] = {&out[i], &a, &count};

        use(i);
        ok(cuLaunchKernel(ramps[i], WORDS / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    }
    for (int i = 0; i < 2; i++) {
        void *params[] = {&out[i], &count, &count};

        use(i);
        ok(cuMemcpyDtoH(words, out[i], BYTES));
        for (unsigned k = 0; k < WORDS; k++)
            assert_int_equal(words[k], 18 + i + k);
        use(!i);
        gives(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(ramps[i], 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    }
    for (int i = 0; i < 2; i++) {
        use(i);
        ok(cuModuleUnload(modules[i]));
        release(i, out[i]);
    }
}

/* A library's kernel is one handle for both. */
static void one_kernel_for_both(void **state)
{
    CUdeviceptr out[2] = {filled(0, 0), filled(1, 0)};
    CUlibrary library;
    CUkernel kernel;

    (void)state;
    ok(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetKernel(&kernel, library, "ramp"));
    for (int i = 0; i < 2; i++) {
        unsigned a = 10 + (unsigned)i, count = 64, words[64];
        void *params[] = {&out[i], &a, &count};

        use(i);
        ok(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
        ok(cuMemcpyDtoH(words, out[i], sizeof words));
        for (unsigned k = 0; k < count; k++)
            assert_int_equal(words[k], a + k);
    }
    ok(cuLibraryUnload(library));
    release(0, out[0]);
    release(1, out[1]);
}

static void memory_is_copied_between_them(void **state)
{
    CUdeviceptr a = filled(0, 11), b = filled(1, 22);
    CUDA_MEMCPY3D_PEER box = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = b,
        .srcContext = contexts[1],
        .srcPitch = 64,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = a,
        .dstContext = contexts[0],
        .dstPitch = 64,
        .WidthInBytes = 64,
        .Height = BYTES / 64,
        .Depth = 1,
    };
    CUstream stream;

    (void)state;
    use(0);
    ok(cuMemcpyPeer(b, contexts[1], a, contexts[0], BYTES));
    all_are(1, b, 11);
    use(1);
    ok(cuMemsetD32(b, 33, WORDS));
    ok(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    ok(cuMemcpyPeerAsync(a, contexts[0], b, contexts[1], BYTES, stream)); /* after the memset */
    ok(cuStreamSynchronize(stream));
    all_are(0, a, 33);
    use(1);
    ok(cuMemsetD32(b, 44, WORDS));
    ok(cuMemcpy(a, b, BYTES)); /* by unified addressing */
    all_are(0, a, 44);
    use(1);
    ok(cuMemsetD32(b, 55, WORDS));
    ok(cuMemcpy3DPeer(&box));
    all_are(0, a, 55);
    if (on_cuttle()) { /* NVIDIA's driver dereferences it */
        gives(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(b, MADE_UP(CUcontext), a, contexts[0], BYTES));
        gives(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(b, contexts[1], a, MADE_UP(CUcontext), BYTES));
    }
    use(1);
    ok(cuStreamDestroy(stream));
    release(0, a);
    release(1, b);
}

static void CUDA_CB stand_before(void *user)
{
    while (!atomic_load((atomic_int *)user))
        usleep(200);
}

static void CUDA_CB add_one(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static void events_reach_across(void **state)
{
    atomic_int is_open = 0, count = 0;
    CUstream streams[2];
    CUevent events[2];
    float ms;

    (void)state;
    for (int i = 0; i < 2; i++) {
        use(i);
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        ok(cuEventCreate(&events[i], CU_EVENT_DEFAULT));
    }
    ok(cuLaunchHostFunc(streams[0], stand_before, &is_open));
    use(0);
    ok(cuEventRecord(events[0], streams[0]));
    use(1);
    ok(cuStreamWaitEvent(streams[1], events[0], 0));
    ok(cuLaunchHostFunc(streams[1], add_one, &count));
    ok(cuEventRecord(events[1], streams[1]));
    usleep(20000);
    assert_int_equal(atomic_load(&count), 0);
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(events[1]));
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(events[0], streams[1]));
    atomic_store(&is_open, 1);
    ok(cuEventSynchronize(events[1]));
    assert_int_equal(atomic_load(&count), 1);
    ok(cuEventSynchronize(events[0])); /* in the other one's context */
    gives(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, events[0], events[1]));
    for (int i = 0; i < 2; i++) {
        ok(cuStreamDestroy(streams[i]));
        ok(cuEventDestroy(events[i]));
    }
}

/* A chain: each device copies what the other one computed before, ordered only by events. */
static void a_chain_across(void **state)
{
    enum { ROUNDS = 20 };
    CUdeviceptr memory[2] = {filled(0, 0), filled(1, 0)};
    CUstream streams[2];
    CUevent events[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        use(i);
        ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        ok(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
    }
    for (unsigned round = 1; round <= ROUNDS; round++) {
        use(0);
        ok(cuStreamWaitEvent(streams[0], events[1], 0));
        ok(cuMemsetD32Async(memory[0], round, WORDS, streams[0]));
        ok(cuEventRecord(events[0], streams[0]));
        use(1);
        ok(cuStreamWaitEvent(streams[1], events[0], 0));
        ok(cuMemcpyPeerAsync(memory[1], contexts[1], memory[0], contexts[0], BYTES, streams[1]));
        ok(cuEventRecord(events[1], streams[1]));
    }
    ok(cuEventSynchronize(events[1]));
    all_are(1, memory[1], ROUNDS);
    for (int i = 0; i < 2; i++) {
        ok(cuStreamDestroy(streams[i]));
        ok(cuEventDestroy(events[i]));
        release(i, memory[i]);
    }
}

static void a_reset_leaves_the_other_alone(void **state)
{
    CUdeviceptr memory[2] = {filled(0, 3), filled(1, 4)};

    (void)state;
    ok(cuDevicePrimaryCtxReset(1));
    all_are(0, memory[0], 3);
    release(0, memory[0]);
    contexts[1] = NULL; /* the context is destroyed with its memory; this test is the last one */
    ok(cuDevicePrimaryCtxRetain(&contexts[1], 1));
    memory[1] = filled(1, 5);
    all_are(1, memory[1], 5);
    release(1, memory[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_distinct), cmocka_unit_test(each_has_memory_of_its_own),     cmocka_unit_test(kernels_run_on_both),
        cmocka_unit_test(one_kernel_for_both),  cmocka_unit_test(memory_is_copied_between_them),  cmocka_unit_test(events_reach_across),
        cmocka_unit_test(a_chain_across),       cmocka_unit_test(a_reset_leaves_the_other_alone),
    };

    setenv("CUTTLE_DEVICE", "0,0", 1);
    return cmocka_run_group_tests_name("two devices", tests, begin, end);
}
