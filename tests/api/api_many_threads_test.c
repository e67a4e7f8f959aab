/* SPDX-License-Identifier: Apache-2.0 */
/* 64 threads share a context. Each has its own stream and memory and checks the results; the module is shared, and all threads launch its
 * kernels for the first time at once, so that they compete for the compilation. Meant for ThreadSanitizer, too. */
#include "api_test.h"

#include "api_kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define THREADS 64
#define ROUNDS 8
#define WORDS 256
#define BYTES ((size_t)WORDS * 4)

static const char ptx[] = PTX_HEADER PTX_RAMP PTX_DYNAMIC;

/* Shared by all threads. */
struct common {
    CUcontext context;
    CUfunction ramp, reverse;
    CUevent start; /* recorded by the main thread, waited for by all */
    pthread_barrier_t barrier;
    atomic_int callbacks;
};

struct worker {
    struct common *common;
    uint32_t number;
    CUstream stream;
    CUdeviceptr memory;
    const char *failed; /* the first call that failed, or a description of the error */
};

#define TRY(worker, call)                                                                                                                  \
    do {                                                                                                                                   \
        if ((call) != CUDA_SUCCESS && !(worker)->failed)                                                                                   \
            (worker)->failed = #call;                                                                                                      \
    } while (0)

static void CUDA_CB count_callback(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static void check_words(struct worker *worker, const uint32_t *words, uint32_t first, int step, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (words[i] != first + (uint32_t)step * i && !worker->failed)
            worker->failed = "a word is wrong";
}

/* A kernel, a copy of its result, and a host function after both. */
static void work_once(struct worker *worker, uint32_t round, CUstream stream)
{
    uint32_t a = worker->number << 16 | round << 8, count = WORDS, words[WORDS];
    void *params[] = {&worker->memory, &a, &count};
    CUevent event;

    memset(words, 0, sizeof words);
    TRY(worker, cuMemsetD32Async(worker->memory, 0, WORDS, stream));
    TRY(worker, cuLaunchKernel(worker->common->ramp, WORDS / 64, 1, 1, 64, 1, 1, 0, stream, params, NULL));
    TRY(worker, cuMemcpyDtoHAsync(words, worker->memory, BYTES, stream));
    TRY(worker, cuEventCreate(&event, CU_EVENT_DEFAULT));
    TRY(worker, cuEventRecord(event, stream));
    TRY(worker, cuEventSynchronize(event));
    check_words(worker, words, a, 1, WORDS);
    TRY(worker, cuLaunchKernel(worker->common->reverse, 1, 1, 1, 64, 1, 1, 256, stream, params, NULL));
    TRY(worker, cuMemcpyDtoHAsync(words, worker->memory, 256, stream));
    TRY(worker, cuLaunchHostFunc(stream, count_callback, &worker->common->callbacks));
    TRY(worker, cuStreamSynchronize(stream));
    check_words(worker, words, 63, -1, 64);
    TRY(worker, cuEventDestroy(event));
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct common *common = worker->common;

    TRY(worker, cuCtxSetCurrent(common->context));
    TRY(worker, cuStreamCreate(&worker->stream, worker->number & 1 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    TRY(worker, cuMemAlloc(&worker->memory, BYTES));
    TRY(worker, cuStreamWaitEvent(worker->stream, common->start, 0));
    pthread_barrier_wait(&common->barrier);
    for (uint32_t round = 0; round < ROUNDS; round++)
        work_once(worker, round, round % 4 == 3 ? CU_STREAM_PER_THREAD : worker->stream);
    TRY(worker, cuStreamDestroy(worker->stream));
    TRY(worker, cuMemFree(worker->memory));
    TRY(worker, cuCtxSetCurrent(NULL));
    return NULL;
}

static void each_thread_has_its_stream(void **state)
{
    struct common common = {.context = *state};
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    CUmodule module;

    ok(cuModuleLoadData(&module, ptx));
    ok(cuModuleGetFunction(&common.ramp, module, "ramp"));
    ok(cuModuleGetFunction(&common.reverse, module, "reverse"));
    ok(cuEventCreate(&common.start, CU_EVENT_DISABLE_TIMING));
    ok(cuEventRecord(common.start, NULL));
    assert_int_equal(pthread_barrier_init(&common.barrier, NULL, THREADS), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.common = &common, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].failed)
            fail_msg("thread %d: %s", i, workers[i].failed);
    }
    assert_int_equal(atomic_load(&common.callbacks), THREADS * ROUNDS);
    pthread_barrier_destroy(&common.barrier);
    ok(cuEventDestroy(common.start));
    ok(cuModuleUnload(module));
}

/* Contexts, modules and memory are created and destroyed in every thread simultaneously. */
static void *come_and_go(void *argument)
{
    struct worker *worker = argument;

    TRY(worker, cuCtxSetCurrent(worker->common->context));
    pthread_barrier_wait(&worker->common->barrier);
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t a = worker->number * 1000 + round, count = 64, words[64] = {0};
        void *params[] = {&worker->memory, &a, &count};
        CUmodule module = NULL;
        CUfunction ramp = NULL;

        TRY(worker, cuModuleLoadData(&module, PTX_HEADER PTX_RAMP));
        TRY(worker, cuModuleGetFunction(&ramp, module, "ramp"));
        TRY(worker, cuMemAlloc(&worker->memory, sizeof words));
        TRY(worker, cuLaunchKernel(ramp, 1, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, params, NULL));
        TRY(worker, cuStreamSynchronize(CU_STREAM_PER_THREAD));
        TRY(worker, cuMemcpyDtoH(words, worker->memory, sizeof words));
        check_words(worker, words, a, 1, 64);
        TRY(worker, cuMemFree(worker->memory));
        TRY(worker, cuModuleUnload(module));
    }
    return NULL;
}

static void modules_come_and_go(void **state)
{
    enum { MANY = 16 };
    struct common common = {.context = *state};
    struct worker workers[MANY];
    pthread_t threads[MANY];

    assert_int_equal(pthread_barrier_init(&common.barrier, NULL, MANY), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        workers[i] = (struct worker){.common = &common, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &workers[i]), 0);
    }
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < MANY; i++) {
        if (workers[i].failed)
            fail_msg("thread %d: %s", i, workers[i].failed);
    }
    pthread_barrier_destroy(&common.barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_has_its_stream),
        cmocka_unit_test(modules_come_and_go),
    };

    return cmocka_run_group_tests_name("many threads", tests, with_context, without_context);
}
