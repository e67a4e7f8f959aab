/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of the backend fails once: the API returns an error, nothing leaks, and afterwards everything works. */
#include "../api/api_test.h"

#include "mock_backend.h"

#include <stdatomic.h>
#include <unistd.h>

#define BYTES ((size_t)700000)

static unsigned char pageable[BYTES], expected[BYTES];

static void CUDA_CB add_one(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

/* The objects of the scenarios, which release all of them at the end. */
struct hands {
    CUdeviceptr device, small;
    void *host;
    CUstream stream;
    CUevent first, second;
    bool registered;
};

static void let_go(struct hands *hands)
{
    if (hands->stream)
        cuStreamSynchronize(hands->stream);
    cuCtxSynchronize();
    if (hands->registered)
        ok(cuMemHostUnregister(pageable));
    if (hands->first)
        ok(cuEventDestroy(hands->first));
    if (hands->second)
        ok(cuEventDestroy(hands->second));
    if (hands->stream)
        ok(cuStreamDestroy(hands->stream));
    ok(cuMemFree(hands->device));
    ok(cuMemFree(hands->small));
    ok(cuMemFreeHost(hands->host));
}

/* Runs the steps until one fails. */
#define TRY(call)                                                                                                                          \
    do {                                                                                                                                   \
        CUresult try_result = (call);                                                                                                      \
        if (try_result != CUDA_SUCCESS)                                                                                                    \
            return try_result;                                                                                                             \
    } while (0)

static CUresult memory_and_copies(struct hands *h)
{
    TRY(cuMemAlloc(&h->device, BYTES + 400000));
    TRY(cuMemAlloc(&h->small, 1000));
    TRY(cuMemAllocHost(&h->host, BYTES));
    TRY(cuMemcpyHtoD(h->device, pageable, BYTES));
    TRY(cuMemcpyHtoDAsync(h->device + 1, pageable, BYTES, NULL));
    TRY(cuMemcpyDtoDAsync(h->device + 1000, h->device, BYTES, NULL)); /* overlapping */
    TRY(cuMemcpyDtoH(h->host, h->device, BYTES));
    TRY(cuMemcpyDtoHAsync(expected, h->device, BYTES, NULL));
    TRY(cuMemsetD8Async(h->device + 1, 3, BYTES, NULL));
    TRY(cuMemsetD2D8(h->device + 3, 128, 7, 99, 500));
    return cuCtxSynchronize();
}

static CUresult registration(struct hands *h)
{
    TRY(cuMemAlloc(&h->small, 1000));
    TRY(cuMemHostRegister(pageable, BYTES, 0));
    h->registered = true;
    TRY(cuMemcpyHtoDAsync(h->small, pageable, 1000, NULL));
    return cuCtxSynchronize();
}

static CUresult streams_and_events(struct hands *h)
{
    static atomic_int count;

    TRY(cuStreamCreate(&h->stream, CU_STREAM_DEFAULT));
    TRY(cuMemAlloc(&h->small, 1000));
    TRY(cuEventCreate(&h->first, 0));
    TRY(cuEventCreate(&h->second, CU_EVENT_DISABLE_TIMING));
    TRY(cuMemsetD32Async(h->small, 1, 250, h->stream));
    TRY(cuEventRecord(h->first, h->stream));
    TRY(cuLaunchHostFunc(h->stream, add_one, &count));
    TRY(cuEventRecord(h->first, NULL));
    TRY(cuEventRecord(h->second, h->stream));
    TRY(cuStreamWaitEvent(NULL, h->second, 0));
    TRY(cuMemsetD32Async(h->small, 2, 250, NULL));
    TRY(cuMemsetD32Async(h->small, 2, 250, CU_STREAM_PER_THREAD));
    TRY(cuEventSynchronize(h->first));
    TRY(cuStreamSynchronize(h->stream));
    return cuCtxSynchronize();
}

static void CUDA_CB take_a_while(void *user)
{
    (void)user;
    usleep(100);
}

/* All source access orders, while the stream is busy. */
static CUresult batches(struct hands *h)
{
    CUmemcpyAttributes attributes[] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
                                       {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL},
                                       {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY}};
    size_t sizes[3] = {50000, 50000, 50000}, starts[3] = {0, 1, 2};
    CUdeviceptr dsts[3], srcs[3];

    TRY(cuStreamCreate(&h->stream, CU_STREAM_NON_BLOCKING));
    TRY(cuMemAlloc(&h->device, BYTES));
    TRY(cuMemAllocHost(&h->host, BYTES));
    for (size_t i = 0; i < 3; i++) {
        dsts[i] = h->device + i * 50000;
        srcs[i] = i == 1 ? (CUdeviceptr)(uintptr_t)h->host : (CUdeviceptr)(uintptr_t)pageable;
    }
    TRY(cuLaunchHostFunc(h->stream, take_a_while, NULL));
    TRY(cuMemcpyBatchAsync(dsts, srcs, sizes, 3, attributes, starts, 3, h->stream));
    return cuStreamSynchronize(h->stream);
}

/* Memory of a pool, and managed memory. */
static CUresult pools_and_managed(struct hands *h)
{
    CUdeviceptr pooled;
    CUresult r;

    TRY(cuStreamCreate(&h->stream, CU_STREAM_NON_BLOCKING));
    TRY(cuMemAllocManaged(&h->device, BYTES, CU_MEM_ATTACH_GLOBAL));
    TRY(cuMemAllocAsync(&pooled, BYTES, h->stream));
    r = cuMemsetD8Async(pooled, 1, BYTES, h->stream);
    if (r == CUDA_SUCCESS)
        r = cuMemcpyAsync(h->device, pooled, BYTES, h->stream);
    if (cuMemFreeAsync(pooled, h->stream) != CUDA_SUCCESS)
        ok(cuMemFree(pooled)); /* the allocation whose release failed still exists */
    TRY(r);
    return cuStreamSynchronize(h->stream);
}

static void fail_each_call(CUresult (*scenario)(struct hands *), CUresult failure)
{
    struct mock_counts before, after;
    bool failed = true;

    for (unsigned n = 1; failed && n < 1000; n++) {
        struct hands hands = {0};
        CUresult r;

        before = mock_count();
        mock_fail_call(n, failure);
        r = scenario(&hands);
        failed = mock_has_failed();
        mock_fail_call(0, failure);
        /* the call may succeed without the failed one, but must not fail otherwise */
        assert_true(r == CUDA_SUCCESS || (failed && r == failure));
        let_go(&hands);
        hands = (struct hands){0};
        ok(scenario(&hands));
        let_go(&hands);
        after = mock_count();
        assert_true(after.timestamps <= before.timestamps);
    }
    assert_false(failed); /* the last run had no call left to fail */
}

static void memory_runs_out(void **state)
{
    (void)state;
    fail_each_call(memory_and_copies, CUDA_ERROR_OUT_OF_MEMORY);
    fail_each_call(registration, CUDA_ERROR_OUT_OF_MEMORY);
    fail_each_call(streams_and_events, CUDA_ERROR_OUT_OF_MEMORY);
    fail_each_call(batches, CUDA_ERROR_OUT_OF_MEMORY);
}

static void memory_of_pools_runs_out(void **state)
{
    CUdevice device;
    int managed = 0, pools = 0;

    (void)state;
    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device));
    ok(cuDeviceGetAttribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device));
    if (!managed || !pools)
        skip();
    fail_each_call(pools_and_managed, CUDA_ERROR_OUT_OF_MEMORY);
}

/* An error that ends a context: whichever call of the backend returns it, the call of the API or the next one that waits reports it. */
static void a_lost_device_is_reported(void **state)
{
    CUresult (*const scenarios[])(struct hands *) = {memory_and_copies, registration, streams_and_events, batches};

    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        bool failed = true;

        for (unsigned n = 1; failed && n < 1000; n++) {
            struct hands hands = {0};
            CUcontext context;
            CUresult r, later;

            ok(cuCtxCreate(&context, NULL, 0, 0));
            mock_lose_device(n, CUDA_ERROR_LAUNCH_FAILED);
            r = scenarios[i](&hands);
            later = cuCtxSynchronize();
            failed = mock_has_failed();
            mock_fail_call(0, CUDA_SUCCESS);
            if (failed && r == CUDA_SUCCESS && later == CUDA_SUCCESS)
                fail_msg("scenario %zu, call %u: the error was not reported", i, n);
            assert_true(failed || r == CUDA_SUCCESS);
            ok(cuCtxDestroy(context)); /* with all its objects */
            ok(cuCtxSetCurrent(*state));
        }
        assert_false(failed);
    }
}

/* A context that cannot be created leaks nothing; the next attempt succeeds. */
static void contexts_that_cannot_be_made(void **state)
{
    CUcontext context = NULL;
    CUresult r = CUDA_ERROR_UNKNOWN;

    (void)state;
    for (unsigned n = 1; r != CUDA_SUCCESS && n < 100; n++) {
        struct mock_counts before = mock_count(), after;

        mock_fail_call(n, CUDA_ERROR_OUT_OF_MEMORY);
        r = cuCtxCreate(&context, NULL, 0, 0);
        mock_fail_call(0, CUDA_SUCCESS);
        after = mock_count();
        if (r != CUDA_SUCCESS)
            assert_memory_equal(&before, &after, sizeof before);
    }
    ok(cuCtxDestroy(context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(memory_of_pools_runs_out),
        cmocka_unit_test(a_lost_device_is_reported),
        cmocka_unit_test(contexts_that_cannot_be_made),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
