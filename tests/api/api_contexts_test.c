/* SPDX-License-Identifier: Apache-2.0 */
/* Primary contexts, context management, and the current context of each thread. */
#include "api_test.h"

#include <limits.h>
#include <pthread.h>

static CUdevice device;

static int initialize(void **state)
{
    (void)state;
    return cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS ? 0 : -1;
}

/* Each test begins and ends with an empty stack. */
static int empty_stack(void **state)
{
    CUcontext context;

    (void)state;
    while (cuCtxPopCurrent(&context) == CUDA_SUCCESS)
        continue;
    return 0;
}

static CUcontext current(void)
{
    CUcontext context = MADE_UP(CUcontext);

    ok(cuCtxGetCurrent(&context));
    return context;
}

static int primary_is_active(void)
{
    unsigned flags;
    int active = -1;

    ok(cuDevicePrimaryCtxGetState(device, &flags, &active));
    return active;
}

static void primary_handle_never_changes(void **state)
{
    CUcontext first, second, third;

    (void)state;
    ok(cuDevicePrimaryCtxRetain(&first, device));
    ok(cuDevicePrimaryCtxRetain(&second, device));
    assert_ptr_equal(first, second);
    ok(cuDevicePrimaryCtxRelease(device));
    assert_int_equal(primary_is_active(), 1);
    ok(cuDevicePrimaryCtxRelease(device));
    assert_int_equal(primary_is_active(), 0);
    ok(cuDevicePrimaryCtxRetain(&third, device));
    assert_ptr_equal(first, third);
    assert_null(current()); /* retaining does not make it current */
    ok(cuDevicePrimaryCtxRelease(device));
}

static void primary_is_released_as_often_as_retained(void **state)
{
    CUcontext context;

    (void)state;
    gives(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(device));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuDevicePrimaryCtxRelease(device));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(device));
}

static void primary_functions_check_their_arguments(void **state)
{
    CUcontext context;
    unsigned flags;
    int active, count;

    (void)state;
    ok(cuDeviceGetCount(&count));
    gives(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxRetain(NULL, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&context, count));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRelease(-1));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxReset(count));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxSetFlags(count, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
    gives(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(device, 0x10000));
    gives(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxGetState(count, &flags, &active));
}

static void primary_flags_are_kept(void **state)
{
    CUcontext context;
    unsigned flags;
    int active;

    (void)state;
    ok(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC));
    ok(cuDevicePrimaryCtxGetState(device, &flags, &active));
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxPushCurrent(context));
    ok(cuCtxGetFlags(&flags));
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
    ok(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_SPIN)); /* also of an active one, since CUDA 11 */
    ok(cuCtxGetFlags(&flags));
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_SPIN);
    ok(cuCtxPopCurrent(&context));
    ok(cuDevicePrimaryCtxRelease(device));
    ok(cuDevicePrimaryCtxSetFlags(device, 0));
}

/* libcudart works in this order: the context is made current before it is retained. */
static void unretained_primary_may_be_current(void **state)
{
    CUcontext context;
    CUdevice which;
    unsigned version;

    (void)state;
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuDevicePrimaryCtxRelease(device));
    ok(cuCtxSetCurrent(context));
    assert_ptr_equal(current(), context);
    gives(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion(context, &version));
    ok(cuCtxGetDevice(&which)); /* which never changes */
    assert_int_equal(which, device);
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSynchronize());
    ok(cuCtxGetDevice(&which));
    assert_int_equal(which, device);
    ok(cuDevicePrimaryCtxReset(device));
    assert_int_equal(primary_is_active(), 0);
    assert_ptr_equal(current(), context); /* a reset does not unbind the context */
    gives(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxSynchronize());
    while (cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS)
        continue;
    assert_int_equal(primary_is_active(), 0);
}

static void created_context_is_current(void **state)
{
    CUcontext first, second;
    CUdevice which;

    (void)state;
    ok(cuCtxCreate(&first, NULL, 0, device));
    assert_ptr_equal(current(), first);
    ok(cuCtxCreate(&second, NULL, CU_CTX_SCHED_YIELD, device));
    assert_ptr_equal(current(), second);
    assert_ptr_not_equal(first, second);
    ok(cuCtxGetDevice(&which));
    assert_int_equal(which, device);
    ok(cuCtxDestroy(second)); /* destroying the current context pops it */
    assert_ptr_equal(current(), first);
    ok(cuCtxDestroy(first));
    assert_null(current());
}

static void create_checks_its_arguments(void **state)
{
    CUcontext context;
    int count;

    (void)state;
    ok(cuDeviceGetCount(&count));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(NULL, NULL, 0, device));
    gives(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&context, NULL, 0, count));
    gives(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&context, NULL, 0, -1));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&context, NULL, 0x10000, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&context, NULL, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_BLOCKING_SYNC, device));
    assert_null(current());
}

static void the_stack_is_last_in_first_out(void **state)
{
    CUcontext a, b, popped;

    (void)state;
    ok(cuCtxCreate(&a, NULL, 0, device));
    ok(cuCtxCreate(&b, NULL, 0, device));
    ok(cuCtxPushCurrent(a)); /* the same one twice is allowed */
    for (int i = 0; i < 40; i++)
        ok(cuCtxPushCurrent(b));
    for (int i = 0; i < 40; i++) {
        ok(cuCtxPopCurrent(&popped));
        assert_ptr_equal(popped, b);
    }
    ok(cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, a);
    ok(cuCtxPopCurrent(NULL));
    assert_ptr_equal(current(), a);
    ok(cuCtxSetCurrent(b)); /* replaces the top of the stack */
    ok(cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, b);
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&popped));
    ok(cuCtxSetCurrent(NULL)); /* with an empty stack: no effect */
    ok(cuCtxDestroy(a));
    ok(cuCtxDestroy(b));
}

static void handles_that_are_no_contexts(void **state)
{
    CUcontext dead, primary;
    unsigned version;

    (void)state;
    ok(cuCtxCreate(&dead, NULL, 0, device));
    ok(cuCtxDestroy(dead));
    if (on_cuttle()) { /* NVIDIA's driver returns either INVALID_CONTEXT or CONTEXT_IS_DESTROYED */
        gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(dead));
        gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion(dead, &version));
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxDestroy(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxPushCurrent(NULL));
    ok(cuDevicePrimaryCtxRetain(&primary, device));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(primary));
    ok(cuDevicePrimaryCtxRelease(device));
    assert_null(current());
}

static void foreign_handles_do_no_harm(void **state)
{
    CUcontext dead;
    CUdevice which;
    unsigned version;
    unsigned long long id;
    int local = 0;

    (void)state;
    if (!on_cuttle())
        skip();
    ok(cuCtxCreate(&dead, NULL, 0, device));
    ok(cuCtxDestroy(dead));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(MADE_UP(CUcontext)));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(MADE_UP(CUcontext)));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(MADE_UP(CUcontext)));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion(MADE_UP(CUcontext), &version));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice_v2(&which, MADE_UP(CUcontext)));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetId((CUcontext)&local, &id));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(dead));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(dead));
    assert_null(current());
}

static void what_needs_a_context_says_so(void **state)
{
    CUdevice which;
    size_t value;
    unsigned flags;

    (void)state;
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&which));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetFlags(&flags));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetStreamPriorityRange(NULL, NULL));
}

static void null_pointers_for_results(void **state)
{
    CUcontext context;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxGetCurrent(NULL));
    ok(cuCtxCreate(&context, NULL, 0, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxGetDevice(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxGetFlags(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxGetCacheConfig(NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxGetApiVersion(context, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxGetId(context, NULL));
    ok(cuCtxDestroy(context));
}

static void settings_of_a_context(void **state)
{
    CUcontext context;
    CUfunc_cache cache;
    unsigned flags, version;
    unsigned long long id, other_id;
    int least = 7, greatest = 7;

    (void)state;
    ok(cuCtxCreate(&context, NULL, CU_CTX_SCHED_SPIN, device));
    ok(cuCtxGetFlags(&flags));
    assert_int_equal(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_SPIN);
    ok(cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, CU_FUNC_CACHE_PREFER_NONE);
    ok(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    ok(cuCtxGetApiVersion(context, &version));
    assert_true(version >= 3020);
    ok(cuCtxGetApiVersion(NULL, &flags)); /* NULL: the current context */
    assert_int_equal(flags, version);
    ok(cuCtxGetId(context, &id));
    ok(cuCtxGetId(NULL, &other_id));
    assert_true(id == other_id && id != 0);
    ok(cuCtxGetStreamPriorityRange(&least, &greatest));
    assert_true(least == 0 && greatest <= 0);
    ok(cuCtxGetStreamPriorityRange(NULL, &greatest));
    ok(cuCtxDestroy(context));
    ok(cuCtxCreate(&context, NULL, 0, device));
    ok(cuCtxGetId(context, &other_id));
    assert_true(id != other_id);
    ok(cuCtxDestroy(context));
}

static void limits_of_a_context(void **state)
{
    static const CUlimit settable[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE};
    CUcontext context;
    size_t value;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, device));
    for (size_t i = 0; i < sizeof settable / sizeof *settable; i++) {
        ok(cuCtxGetLimit(&value, settable[i]));
        assert_true(value > 0);
        ok(cuCtxSetLimit(settable[i], 16 << 10));
        ok(cuCtxGetLimit(&value, settable[i]));
        assert_true(value >= 16 << 10);
    }
    ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1001));
    ok(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, 1008); /* a multiple of 16 */
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (512 << 10) + 1));
    ok(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&value, (CUlimit)1000));
    if (on_cuttle()) { /* dynamic parallelism: NVIDIA's devices support it */
        gives(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
        gives(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1));
    }
    ok(cuCtxDestroy(context));
}

static void *look_at_current(void *seen)
{
    cuCtxGetCurrent(seen);
    return NULL;
}

static void each_thread_has_its_own_stack(void **state)
{
    CUcontext context, seen = MADE_UP(CUcontext);
    pthread_t thread;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, device));
    assert_int_equal(pthread_create(&thread, NULL, look_at_current, &seen), 0);
    pthread_join(thread, NULL);
    assert_null(seen);
    ok(cuCtxDestroy(context));
}

struct handover {
    CUcontext context;
    pthread_barrier_t barrier;
    CUresult before, after;
};

static void *use_while_destroyed(void *argument)
{
    struct handover *handover = argument;

    cuCtxSetCurrent(handover->context);
    handover->before = cuCtxSynchronize();
    pthread_barrier_wait(&handover->barrier);
    pthread_barrier_wait(&handover->barrier); /* destroyed between the two calls */
    handover->after = cuCtxSynchronize();
    return NULL;
}

static void destroyed_while_current_elsewhere(void **state)
{
    struct handover handover;
    pthread_t thread;

    (void)state;
    pthread_barrier_init(&handover.barrier, NULL, 2);
    ok(cuCtxCreate(&handover.context, NULL, 0, device));
    assert_int_equal(pthread_create(&thread, NULL, use_while_destroyed, &handover), 0);
    pthread_barrier_wait(&handover.barrier);
    ok(cuCtxDestroy(handover.context));
    pthread_barrier_wait(&handover.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&handover.barrier);
    gives(CUDA_SUCCESS, handover.before);
    gives(CUDA_ERROR_CONTEXT_IS_DESTROYED, handover.after);
}

static void *retain_and_release(void *argument)
{
    const int rounds = on_cuttle() ? 50 : 3; /* NVIDIA's driver needs a quarter of a second to create and destroy a context */
    int *failures = argument;

    for (int i = 0; i < rounds; i++) {
        CUcontext context;

        if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS ||
            cuCtxSynchronize() != CUDA_SUCCESS || cuDevicePrimaryCtxRelease(device) != CUDA_SUCCESS)
            ++*failures;
    }
    return NULL;
}

static void threads_retain_and_release_the_primary(void **state)
{
    pthread_t threads[4];
    int failures[4] = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, retain_and_release, &failures[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failures[i], 0);
    }
    assert_int_equal(primary_is_active(), 0);
}

static void old_functions_attach_and_detach(void **state)
{
    CUcontext context, again;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, device));
    gives(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(&again, 1));
    ok(cuCtxAttach(&again, 0));
    assert_ptr_equal(again, context);
    ok(cuCtxDetach(context));
    ok(cuCtxSynchronize());
    ok(cuCtxDetach(context)); /* the last release destroys it */
    assert_null(current());
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, empty_stack, empty_stack)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(primary_handle_never_changes),
        TEST(primary_is_released_as_often_as_retained),
        TEST(primary_functions_check_their_arguments),
        TEST(primary_flags_are_kept),
        TEST(unretained_primary_may_be_current),
        TEST(created_context_is_current),
        TEST(create_checks_its_arguments),
        TEST(the_stack_is_last_in_first_out),
        TEST(handles_that_are_no_contexts),
        TEST(foreign_handles_do_no_harm),
        TEST(what_needs_a_context_says_so),
        TEST(null_pointers_for_results),
        TEST(settings_of_a_context),
        TEST(limits_of_a_context),
        TEST(each_thread_has_its_own_stack),
        TEST(destroyed_while_current_elsewhere),
        TEST(threads_retain_and_release_the_primary),
        TEST(old_functions_attach_and_detach),
    };

    return cmocka_run_group_tests_name("contexts", tests, initialize, NULL);
}
