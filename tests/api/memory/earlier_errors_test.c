/* SPDX-License-Identifier: Apache-2.0 */
/* "Note that this function may also return error codes from previous, asynchronous launches" (Driver API, at the functions of Memory
 * Management, Stream Ordered Memory Allocator and Unified Addressing). The rules tested: the error of a kernel that failed is returned by
 * every function that waits for its end, by every function after it was returned once (except those that NVIDIA's driver still executes),
 * and never lost because of a function that does not return it. With NVIDIA's driver no context of the process works afterwards: there each
 * failing kernel has a process of its own. */
#include "earlier_errors.h"

#include <sys/wait.h>
#include <unistd.h>

static void make(struct broken *b)
{
    memset(b, 0, sizeof *b);
    ok(cuCtxCreate(&b->context, NULL, 0, 0));
    ok(cuModuleLoadData(&b->module, seeds_ptx));
    ok(cuModuleGetFunction(&b->stops, b->module, "stops"));
    ok(cuStreamCreate(&b->stream, CU_STREAM_DEFAULT));
    ok(cuMemAlloc(&b->device, BYTES));
    ok(cuMemAlloc(&b->second, BYTES));
    ok(cuMemAllocHost(&b->host, BYTES));
    b->pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(b->pages, MAP_FAILED);
    ok(cuMemHostRegister(b->pages, BYTES, 0));
    ok(cuMemAllocManaged(&b->managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    errors_make_objects(b);
    ok(cuCtxSynchronize());
}

/* The context's own objects are destroyed with it. */
static void destroy(struct broken *b)
{
    if (!on_cuttle())
        return; /* the process ends */
    ok(cuCtxDestroy(b->context));
    munmap(b->pages, BYTES);
    errors_destroy_objects(b);
}

static void fail_in_background(struct broken *b)
{
    ok(cuLaunchKernel(b->stops, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/* ---- the rows of all tables ---- */

/* NVIDIA's driver supports virtual memory, and is not initialized yet here. */
static size_t row_count(void)
{
    int is_virtual = !on_cuttle();

    if (on_cuttle())
        ok(cuDeviceGetAttribute(&is_virtual, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    return errors_linear.count + errors_objects.count + (is_virtual ? errors_virtual.count : 0);
}

static const struct errors_row *row_at(size_t i)
{
    const struct errors_table *const tables[] = {&errors_linear, &errors_objects, &errors_virtual};
    const struct errors_table *const *table = tables;

    while (i >= (*table)->count)
        i -= (*table++)->count;
    return &(*table)->rows[i];
}

/* ---- the tests ---- */

/* Once the error was returned, every function returns it, and has no other effect. */
static void a_sticky_error_is_returned_by_all(void **state)
{
    struct broken *b = *state;
    const size_t count = row_count();
    unsigned wrong = 0;
    CUresult error;

    make(b);
    fail_in_background(b);
    error = cuCtxSynchronize();
    assert_int_not_equal(error, CUDA_SUCCESS);
    memset(b->plain, 0x33, BYTES);
    for (size_t i = 0; i < count; i++) {
        const struct errors_row *row = row_at(i);
        const CUresult r = row->call(b), want = row->continues ? CUDA_SUCCESS : error;

        if (r != want) {
            print_error("%s: %s, not %s\n", row->name, api_error_name(r), api_error_name(want));
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(b->plain[i], 0x33);
    assert_true(b->pointer == 0 && b->address == NULL);
    gives(error, cuStreamSynchronize(b->stream));
    destroy(b);
}

/* "the device must have a non-zero value for the device attribute CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS" */
static bool is_refused(const struct errors_row *row, CUresult r)
{
    int moves = 0;

    ok(cuDeviceGetAttribute(&moves, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    return strcmp(row->name, "mem_prefetch_async") == 0 && !moves && r == CUDA_ERROR_INVALID_DEVICE;
}

static size_t first_row, end_row; /* the rows of one process */

/* As the first call after a failing kernel: functions that wait return the error, the others may or may not; the next function that waits
 * returns it in any case. */
static void no_function_loses_an_error(void **state)
{
    struct broken *b = *state;

    for (size_t i = first_row; i < end_row; i++) {
        const struct errors_row *row = row_at(i);
        CUresult first, second;

        make(b);
        fail_in_background(b);
        first = row->call(b);
        second = cuCtxSynchronize();
        if (second != CUDA_ERROR_LAUNCH_FAILED)
            fail_msg("after %s (%s): %s", row->name, api_error_name(first), api_error_name(second));
        if (first != second && (row->waits || first != CUDA_SUCCESS) && !is_refused(row, first))
            fail_msg("%s: %s", row->name, api_error_name(first));
        gives(second, cuMemAlloc(&b->pointer, 100));
        destroy(b);
    }
}

/* Another context of the device is not affected, and the memory of the broken one is free again after its destruction. */
static void other_contexts_go_on(void **state)
{
    struct broken *b = *state;
    CUcontext other;
    uint32_t word = 0;
    CUdeviceptr p;

    ok(cuCtxCreate(&other, NULL, 0, 0));
    ok(cuMemAlloc(&p, 1 << 20));
    make(b);
    fail_in_background(b);
    assert_int_not_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    ok(cuCtxSetCurrent(other));
    ok(cuMemsetD32(p, 5, 1 << 18));
    ok(cuMemcpyDtoH(&word, p + (1 << 20) - 4, 4));
    assert_int_equal(word, 5);
    seeds_step(p, 1000);
    ok(cuMemcpyDtoH(&word, p, 4));
    assert_int_equal(word, 16);
    destroy(b);
    ok(cuMemFree(p));
    ok(cuCtxDestroy(other));
}

/* An error of a call itself is returned by that call only. */
static void refusals_do_not_stick(void **state)
{
    struct broken *b = *state;

    make(b);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, b->plain, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(b->device, b->second + 1, BYTES));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(b->device + 2, 1, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(b->device + 1));
    gives(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(b->pages, BYTES, 0));
    for (size_t i = 0; i < row_count(); i++)
        if (strncmp(row_at(i)->name, "memcpy", 6) == 0 || strncmp(row_at(i)->name, "memset", 6) == 0)
            ok(row_at(i)->call(b));
    ok(cuCtxSynchronize());
    destroy(b);
}

/* ---- a process for each failing kernel ---- */

#define PROCESSES 8 /* number of concurrent processes */

static struct broken broken;
static const struct CMUnitTest tests[] = {
    cmocka_unit_test_prestate(a_sticky_error_is_returned_by_all, &broken),
    cmocka_unit_test_prestate(no_function_loses_an_error, &broken),
    cmocka_unit_test_prestate(other_contexts_go_on, &broken),
    cmocka_unit_test_prestate(refusals_do_not_stick, &broken),
};

static int run_one(const struct CMUnitTest *test)
{
    const struct CMUnitTest alone[] = {*test};

    return cuInit(0) != CUDA_SUCCESS ? 77 : cmocka_run_group_tests(alone, NULL, NULL);
}

/* Returns how many processes failed; waits until at most `most` are still running. */
static unsigned wait_for(unsigned *running, unsigned most)
{
    unsigned failed = 0;

    while (*running > most) {
        int status = 0;
        const bool ended = wait(&status) > 0;

        failed += !ended || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        --*running;
    }
    return failed;
}

static int run_apart(void)
{
    unsigned running = 0, failed = 0;

    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        const bool by_rows = tests[i].test_func == no_function_loses_an_error;

        if (tests[i].test_func == other_contexts_go_on)
            continue; /* no process does */
        for (first_row = 0; first_row < (by_rows ? row_count() : 1); first_row++) {
            failed += wait_for(&running, PROCESSES - 1);
            end_row = first_row + 1;
            fflush(NULL);
            if (fork() == 0)
                exit(run_one(&tests[i]));
            running++;
        }
    }
    return (failed += wait_for(&running, 0)) != 0;
}

int main(void)
{
    if (!on_cuttle())
        return run_apart();
    if (cuInit(0) != CUDA_SUCCESS)
        return 1;
    end_row = row_count();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
