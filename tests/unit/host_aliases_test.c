/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory of one device in the other devices: imports, refusals and releases. There are aliases with the address rules that choose
 * addresses, none with the others. The tests depend on each other, since a device is opened once per process. */
#include "../api/api_test.h"

#include "mock_backend.h"

#include "core/backing/host_watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES ((size_t)3 << 20)
#define PAGE 4096

static CUcontext first, second;
static char pages[16 * PAGE] __attribute__((aligned(PAGE)));

static bool has_aliases(void)
{
    const char *rule = getenv("MOCK_ADDRESS_RULE");

    return rule && (!strcmp(rule, "chosen") || !strcmp(rule, "mask"));
}

static bool refusals_spoil(void)
{
    return getenv("MOCK_REFUSALS_SPOIL");
}

static unsigned memories(void)
{
    return mock_count().memories;
}

static void reached(void *host, bool is)
{
    CUdeviceptr device = 0, own;

    ok(cuCtxSetCurrent(first));
    ok(cuMemHostGetDevicePointer(&own, host, 0));
    ok(cuCtxSetCurrent(second));
    if (is)
        ok(cuMemHostGetDevicePointer(&device, host, 0));
    else
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemHostGetDevicePointer(&device, host, 0));
    assert_int_equal(device, is ? own : 0);
    ok(cuCtxSetCurrent(first));
}

static bool is_cpu(void)
{
    const char *rule = getenv("MOCK_ADDRESS_RULE");

    return rule && !strcmp(rule, "shared"); /* the mock is a GPU with all others */
}

/* Whether `cuttle check --host-accesses` watches the memory of a command that uses it. */
static bool is_watched(void *host, size_t bytes)
{
    struct ct_host_watch watch = {0};

    ct_host_watch_add(&watch, (uint64_t)(uintptr_t)host, bytes, true);
    return watch.n_ranges == 1;
}

/* Whether the address is unmapped. */
static bool is_free(void *host)
{
    return msync(host, PAGE, MS_ASYNC) != 0 && errno == ENOMEM;
}

/* The second device is opened when memory exists, and refuses the second import: the context is created nevertheless. */
static void opened_later(void **state)
{
    void *host[3];
    unsigned reaches = 0;

    (void)state;
    ok(cuCtxCreate(&first, NULL, 0, 0));
    for (int i = 0; i < 2; i++)
        ok(cuMemAllocHost(&host[i], BYTES));
    ok(cuMemHostAlloc(&host[2], BYTES, CU_MEMHOSTALLOC_WRITECOMBINED)); /* the mock maps it from a file, as drivers do */
    if (has_aliases())
        mock_fail_call(2, CUDA_ERROR_MAP_FAILED);
    ok(cuCtxCreate(&second, NULL, 0, 1));
    assert_int_equal(mock_has_failed(), has_aliases());
    for (int i = 0; i < 3; i++) {
        CUdeviceptr device;

        reaches += cuMemHostGetDevicePointer(&device, host[i], 0) == CUDA_SUCCESS;
    }
    if (!has_aliases())
        assert_int_equal(reaches, 0);
    else
        reached(host[2], true);
    if (has_aliases())
        assert_int_equal(reaches, refusals_spoil() ? 1 : 2);
    ok(cuCtxSetCurrent(first));
    for (int i = 0; i < 3; i++)
        ok(cuMemFreeHost(host[i]));
}

/* Each allocation is two memory objects until it is freed, in whichever context that is. */
static void given_and_taken_back(void **state)
{
    const unsigned each = has_aliases() ? 2 : 1, before = memories();
    CUdeviceptr managed;
    void *host;

    (void)state;
    if (refusals_spoil())
        skip();
    ok(cuMemAllocHost(&host, BYTES));
    assert_int_equal(memories(), before + each);
    assert_int_equal(is_watched(host, BYTES), !has_aliases()); /* what a GPU has imported is not watched */
    reached(host, has_aliases());
    ok(cuCtxSetCurrent(second));
    ok(cuMemFreeHost(host));
    ok(cuCtxSetCurrent(first));
    assert_int_equal(memories(), before);
    if (has_aliases())
        assert_true(is_free(host));
    ok(cuMemHostRegister(pages + 5, 3 * PAGE, 0));
    assert_int_equal(memories(), before + each);
    assert_int_equal(is_watched(pages + 5, 3 * PAGE), is_cpu());
    reached(pages + 5, has_aliases());
    reached(pages + 2 * PAGE, has_aliases());
    ok(cuMemHostUnregister(pages + 5));
    if (cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) {
        assert_int_equal(memories(), before + each);
        ok(cuMemFree(managed));
    }
    assert_int_equal(memories(), before);
}

/* Memory that the second device refuses belongs to the first one only; its address is not used again. */
static void refused(void **state)
{
    const unsigned before = memories();
    void *host, *next;

    (void)state;
    if (!has_aliases() || refusals_spoil())
        skip();
    mock_fail_call(2, CUDA_ERROR_MAP_FAILED);
    ok(cuMemAllocHost(&host, BYTES));
    assert_true(mock_has_failed());
    assert_int_equal(memories(), before + 1);
    reached(host, false);
    ok(cuMemFreeHost(host));
    assert_int_equal(memories(), before);
    assert_false(is_free(host));
    mock_fail_call(2, CUDA_ERROR_UNKNOWN);
    ok(cuMemHostRegister(pages, PAGE, 0));
    reached(pages, false);
    ok(cuMemHostUnregister(pages));
    ok(cuMemAllocHost(&next, BYTES)); /* other memory is imported again */
    reached(next, true);
    ok(cuMemFreeHost(next));
}

/* After a refusal, a driver whose refusals spoil later imports gets no further imports. */
static void asked_no_more(void **state)
{
    const unsigned before = memories();
    void *host;

    (void)state;
    if (!has_aliases() || !refusals_spoil())
        skip();
    ok(cuMemAllocHost(&host, BYTES));
    assert_int_equal(memories(), before + 1);
    reached(host, false);
    ok(cuMemFreeHost(host));
}

static void *make_and_free(void *enough)
{
    void *host;

    ok(cuCtxSetCurrent(first));
    while (!atomic_load((atomic_bool *)enough)) {
        ok(cuMemAllocHost(&host, PAGE));
        ok(cuMemFreeHost(host));
    }
    return NULL;
}

/* A third device is opened while memory is allocated and freed concurrently. */
static void opened_meanwhile(void **state)
{
    const unsigned before = memories();
    atomic_bool enough = false;
    CUdeviceptr device;
    CUcontext third;
    pthread_t thread;
    void *host;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, make_and_free, &enough), 0);
    usleep(5000);
    ok(cuCtxCreate(&third, NULL, 0, 2));
    usleep(5000);
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    ok(cuMemAllocHost(&host, BYTES)); /* of the third device */
    ok(cuCtxSetCurrent(first));
    if (has_aliases())
        ok(cuMemHostGetDevicePointer(&device, host, 0));
    else
        gives(CUDA_ERROR_NOT_SUPPORTED, cuMemHostGetDevicePointer(&device, host, 0));
    ok(cuMemFreeHost(host));
    ok(cuCtxDestroy(third));
    ok(cuCtxSetCurrent(first));
    assert_int_equal(memories(), before);
}

/* Memory that is not freed is released with its context, in the other device too. */
static void left_behind(void **state)
{
    const unsigned before = memories();
    CUcontext context;
    void *host;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, 1));
    ok(cuMemAllocHost(&host, BYTES));
    ok(cuMemHostRegister(pages, PAGE, 0));
    ok(cuCtxDestroy(context));
    assert_int_equal(memories(), before);
    ok(cuCtxDestroy(second));
    ok(cuCtxDestroy(first));
    assert_int_equal(memories(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opened_later),     cmocka_unit_test(given_and_taken_back),
                                       cmocka_unit_test(refused),          cmocka_unit_test(asked_no_more),
                                       cmocka_unit_test(opened_meanwhile), cmocka_unit_test(left_behind)};

    ok(cuInit(0));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
