/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that are destroyed while other threads use them. CUDA leaves that undefined; here each call either succeeds or returns an error
 * for a destroyed object, and nothing crashes, leaks or is accessed after it is freed (run it with the sanitizers). */
#include "api_test.h"

#include "api_kernels.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 3
#define ROUNDS 15

struct race {
    CUcontext context;
    CUfunction function;
    CUmodule module;
    CUdeviceptr out;
    atomic_int ready;
    atomic_int unexpected; /* a CUresult that is neither */
    CUresult alive, dead, dead_too;
};

static void note(struct race *race, CUresult r)
{
    if (r != race->alive && r != race->dead && r != race->dead_too)
        atomic_store(&race->unexpected, (int)r);
}

static void *launch_until_dead(void *argument)
{
    struct race *race = argument;
    uint32_t a = 1, count = 64;
    void *params[] = {&race->out, &a, &count};
    CUresult r = cuCtxSetCurrent(race->context);
    int after = 3; /* calls after the first failure: all of them must fail */

    note(race, r);
    atomic_fetch_add(&race->ready, 1);
    while (after > 0) {
        r = cuLaunchKernel(race->function, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
        note(race, r);
        after -= r != CUDA_SUCCESS;
    }
    cuCtxSetCurrent(NULL);
    return NULL;
}

static void *ask_until_dead(void *argument)
{
    struct race *race = argument;
    int value;
    CUresult r = cuCtxSetCurrent(race->context);

    atomic_fetch_add(&race->ready, 1);
    while (r == CUDA_SUCCESS) {
        CUfunction function;

        r = cuModuleGetFunction(&function, race->module, "ramp");
        note(race, r);
        if (r == CUDA_SUCCESS)
            r = cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
        note(race, r);
    }
    cuCtxSetCurrent(NULL);
    return NULL;
}

static void start(struct race *race, pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i ? launch_until_dead : ask_until_dead, race), 0);
    while (atomic_load(&race->ready) < THREADS)
        continue;
}

static void finish(struct race *race, pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    gives(CUDA_SUCCESS, (CUresult)atomic_load(&race->unexpected));
}

static void prepare(struct race *race)
{
    ok(cuModuleLoadData(&race->module, PTX_HEADER PTX_RAMP));
    ok(cuModuleGetFunction(&race->function, race->module, "ramp"));
    ok(cuMemAlloc(&race->out, 4096));
}

static void a_module_is_unloaded_while_it_is_used(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct race race = {.context = *state, .dead = CUDA_ERROR_INVALID_HANDLE, .dead_too = CUDA_ERROR_NOT_FOUND};
        pthread_t threads[THREADS];

        prepare(&race);
        start(&race, threads);
        ok(cuModuleUnload(race.module));
        finish(&race, threads);
        ok(cuMemFree(race.out));
    }
}

static void a_context_is_destroyed_while_it_is_used(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct race race = {.dead = CUDA_ERROR_CONTEXT_IS_DESTROYED, .dead_too = CUDA_ERROR_INVALID_HANDLE};
        pthread_t threads[THREADS];

        ok(cuCtxCreate(&race.context, NULL, 0, 0));
        prepare(&race);
        start(&race, threads);
        ok(cuCtxDestroy(race.context));
        finish(&race, threads);
    }
}

static void *destroy(void *context)
{
    return (void *)(uintptr_t)(cuCtxDestroy(context) == CUDA_SUCCESS);
}

static void of_many_that_destroy_one_succeeds(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        CUcontext context;
        uintptr_t successes = 0;

        ok(cuCtxCreate(&context, NULL, 0, 0));
        ok(cuCtxPopCurrent(NULL));
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, destroy, context), 0);
        for (int i = 0; i < THREADS; i++) {
            void *success;

            pthread_join(threads[i], &success);
            successes += (uintptr_t)success;
        }
        assert_int_equal(successes, 1);
    }
}

/* Reset and retain alternate: a thread that has retained the context may find it reset, but never half created. */
static void *retain_work_release(void *argument)
{
    struct race *race = argument;

    for (int i = 0; i < 40; i++) {
        CUcontext context;
        CUdeviceptr memory;

        note(race, cuDevicePrimaryCtxRetain(&context, 0));
        note(race, cuCtxSetCurrent(context));
        note(race, cuMemAlloc(&memory, 4096));
        note(race, cuCtxSynchronize());
        note(race, cuDevicePrimaryCtxRelease(0));
    }
    return NULL;
}

static void the_primary_context_is_reset_while_it_is_used(void **state)
{
    struct race race = {.dead = CUDA_ERROR_CONTEXT_IS_DESTROYED, .dead_too = CUDA_ERROR_CONTEXT_IS_DESTROYED};
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, retain_work_release, &race), 0);
    for (int i = 0; i < 40; i++)
        ok(cuDevicePrimaryCtxReset(0));
    finish(&race, threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_is_unloaded_while_it_is_used),
        cmocka_unit_test(a_context_is_destroyed_while_it_is_used),
        cmocka_unit_test(of_many_that_destroy_one_succeeds),
        cmocka_unit_test(the_primary_context_is_reset_while_it_is_used),
    };

    if (!on_cuttle())
        return 77; /* other drivers crash there; CUDA leaves it undefined */
    return cmocka_run_group_tests_name("races", tests, with_context, without_context);
}
