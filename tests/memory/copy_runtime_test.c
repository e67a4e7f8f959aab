/* SPDX-License-Identifier: Apache-2.0 */
/* Large copies between page-locked and device memory by a copy runtime (core/copy_beside.c, backend_vk/copy_runtime.c): which ones it
 * makes, in which order, and what it keeps. On lavapipe the runtime is copy_runtime_stub.c, which counts; with NVIDIA's the contents are
 * checked. */
#include "../api/api_test.h"

#include "copy_runtime_stub.h"

#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define BYTES (24 * MIB)
#define LARGE (17 * MIB + 12) /* a copy that the runtime makes */

static struct copy_stub *stub; /* NULL: the runtime is a real one */
static struct copy_stub before;
static unsigned char *host;
static CUdeviceptr there, other;
static CUstream stream;

static void fill(unsigned char *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static int make(void **state)
{
    stub = copy_stub_or_null();
    if (with_context(state) || cuMemHostAlloc((void **)&host, 2 * BYTES, 0) || cuMemAlloc(&there, BYTES) || cuMemAlloc(&other, BYTES) ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return -1;
    fill(host, BYTES, 1);
    return 0;
}

static int finish(void **state)
{
    return cuStreamDestroy(stream) || cuMemFreeHost(host) || cuMemFree(there) || cuMemFree(other) || without_context(state);
}

static int note(void **state)
{
    (void)state;
    memset(host + BYTES, 0, BYTES);
    if (stub)
        before = *stub;
    return 0;
}

/* So many copies each way since the test began, and none against the rules. */
static void made(int uploads, int downloads)
{
    if (!stub)
        return;
    assert_int_equal(stub->uploads - before.uploads, uploads);
    assert_int_equal(stub->downloads - before.downloads, downloads);
    assert_int_equal(stub->faults, 0);
}

static void CUDA_CB wait_a_little(void *user)
{
    (void)user;
    usleep(20000);
}

static void there_and_back(void **state)
{
    (void)state;
    ok(cuMemcpyHtoDAsync(there + 5, host + 3, LARGE, stream));
    ok(cuMemcpyDtoHAsync(host + BYTES + 9, there + 5, LARGE, stream));
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(host + BYTES + 9, host + 3, LARGE);
    made(1, 1);
}

static void synchronous_copies(void **state)
{
    (void)state;
    ok(cuMemcpyHtoD(other, host + 1, LARGE));
    ok(cuMemcpyDtoH(host + BYTES, other, LARGE));
    assert_memory_equal(host + BYTES, host + 1, LARGE);
    if (stub && getenv("CUTTLE_COPY_BY_HOST"))
        made(1, 1);
}

/* What was recorded before is done first, what is recorded later waits, also in streams that wait for an event. */
static void in_stream_order(void **state)
{
    CUstream second;
    CUevent event;

    (void)state;
    ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int round = 0; round < 4; round++) {
        ok(cuMemsetD8Async(there, 0xa5, BYTES, stream));
        ok(cuMemcpyHtoDAsync(there + MIB, host, LARGE, stream));
        ok(cuMemcpyDtoDAsync(other, there, BYTES, stream));
        ok(cuEventRecord(event, stream));
        ok(cuStreamWaitEvent(second, event, 0));
        ok(cuMemcpyDtoHAsync(host + BYTES, other, BYTES, second));
        ok(cuMemsetD8Async(other, 0, BYTES, second));
        ok(cuStreamWaitEvent(stream, event, 0));
        ok(cuStreamSynchronize(second));
        ok(cuStreamSynchronize(stream));
        assert_memory_equal(host + BYTES + MIB, host, LARGE);
        assert_int_equal(host[BYTES + MIB - 1], 0xa5);
        assert_int_equal(host[BYTES + MIB + LARGE], 0xa5);
        fill(host, LARGE, 3 + (unsigned)round);
    }
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(second));
    made(4, 4);
}

static void not_what_is_small_or_pageable(void **state)
{
    unsigned char *pageable = malloc(LARGE);

    (void)state;
    assert_non_null(pageable);
    fill(pageable, LARGE, 9);
    ok(cuMemcpyHtoDAsync(there, host, 15 * MIB, stream));
    ok(cuMemcpyDtoHAsync(host + BYTES, there, 15 * MIB, stream));
    ok(cuMemcpyHtoDAsync(other, pageable, LARGE, stream));
    ok(cuMemcpyDtoDAsync(there, other, LARGE, stream));
    memset(pageable, 0, LARGE);
    ok(cuMemcpyDtoHAsync(pageable, there, LARGE, stream));
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(host + BYTES, host, 15 * MIB);
    assert_int_equal(pageable[LARGE - 1], (unsigned char)((LARGE - 1) * 7 + (LARGE - 1) / 251 + 9));
    free(pageable);
    made(0, 0);
}

/* Registered pages are pinned for the first copy, and let go before they are unregistered; so is device memory. */
static void until_memory_is_freed(void **state)
{
    unsigned char *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr fresh;

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    fill(pages, BYTES, 11);
    ok(cuMemAlloc(&fresh, BYTES + 3 * MIB));
    ok(cuMemHostRegister(pages, BYTES, 0));
    for (int round = 0; round < 3; round++)
        ok(cuMemcpyHtoDAsync(fresh + MIB, pages, BYTES, stream));
    ok(cuMemcpyDtoHAsync(host + BYTES, fresh + MIB, BYTES, stream));
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(host + BYTES, pages, BYTES);
    if (stub) {
        assert_int_equal(stub->pins, before.pins + 1);
        assert_int_equal(stub->imports, before.imports + 1);
    }
    ok(cuMemHostUnregister(pages));
    ok(cuMemFree(fresh));
    if (stub) {
        assert_int_equal(stub->pins, before.pins);
        assert_int_equal(stub->imports, before.imports);
    }
    munmap(pages, BYTES);
    made(3, 1);
}

/* Pages that may only be read cannot be pinned. */
static void not_read_only_pages(void **state)
{
    unsigned char *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUresult r;

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    fill(pages, BYTES, 13);
    assert_int_equal(mprotect(pages, BYTES, PROT_READ), 0);
    r = cuMemHostRegister(pages, BYTES, CU_MEMHOSTREGISTER_READ_ONLY);
    if (r == CUDA_SUCCESS) {
        ok(cuMemcpyHtoDAsync(there, pages, LARGE, stream));
        ok(cuMemcpyDtoHAsync(host + BYTES, there, LARGE, stream));
        ok(cuStreamSynchronize(stream));
        assert_memory_equal(host + BYTES, pages, LARGE);
        ok(cuMemHostUnregister(pages));
        made(0, 1);
    } else {
        gives(CUDA_ERROR_NOT_SUPPORTED, r);
    }
    munmap(pages, BYTES);
}

/* Memory that the runtime does not take goes the ordinary way. */
static void what_it_refuses(void **state)
{
    CUdeviceptr fresh;

    (void)state;
    if (!stub)
        skip();
    ok(cuMemAlloc(&fresh, BYTES));
    stub->refuses_imports = 1;
    ok(cuMemcpyHtoDAsync(fresh, host, LARGE, stream));
    stub->refuses_imports = 0;
    ok(cuMemcpyDtoHAsync(host + BYTES, fresh, LARGE, stream)); /* asked once */
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(host + BYTES, host, LARGE);
    ok(cuMemFree(fresh));
    made(0, 0);
}

/* Copies are cut where host memory is glued: with CUTTLE_PIECE_BYTES=27262976 at 26 MiB. */
static void across_pieces(void **state)
{
    unsigned char *want = malloc(LARGE);

    (void)state;
    assert_non_null(want);
    fill(want, LARGE, 5);
    memcpy(host + 15 * MIB, want, LARGE);
    ok(cuMemcpyHtoDAsync(there + 3, host + 15 * MIB, LARGE, stream));
    ok(cuMemcpyDtoHAsync(host + BYTES + 1, there + 3, LARGE, stream));
    ok(cuStreamSynchronize(stream));
    assert_memory_equal(host + BYTES + 1, want, LARGE);
    free(want);
    made(2, 2);
    assert_int_equal(stub->pins, before.pins + 2);
}

/* The last: a copy that fails is an error of the context: behind other work, where more may be behind it, and at once. */
static void failures_stick(void **state)
{
    if (!stub)
        skip();
    for (int behind = 1; behind >= 0; behind--) {
        stub->fails_copies = 1;
        if (behind) {
            ok(cuLaunchHostFunc(stream, wait_a_little, NULL));
            ok(cuMemcpyHtoDAsync(there, host, LARGE, stream));
            gives(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(stream));
        } else {
            gives(CUDA_ERROR_LAUNCH_FAILED, cuMemcpyHtoDAsync(there, host, LARGE, stream));
        }
        stub->fails_copies = 0;
        gives(CUDA_ERROR_LAUNCH_FAILED, cuMemcpyHtoD(there, host, 4));
        ok(cuDevicePrimaryCtxReset(0));
        assert_int_equal(stub->pins + stub->imports, 0);
        assert_int_equal(make(state), 0);
        note(state);
        there_and_back(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(there_and_back, note),        cmocka_unit_test_setup(synchronous_copies, note),
        cmocka_unit_test_setup(in_stream_order, note),       cmocka_unit_test_setup(not_what_is_small_or_pageable, note),
        cmocka_unit_test_setup(until_memory_is_freed, note), cmocka_unit_test_setup(not_read_only_pages, note),
        cmocka_unit_test_setup(what_it_refuses, note),       cmocka_unit_test_setup(failures_stick, note),
    };

    const struct CMUnitTest in_pieces[] = {cmocka_unit_test_setup(across_pieces, note)};

    if (getenv("CUTTLE_PIECE_BYTES") && copy_stub_or_null())
        return cmocka_run_group_tests(in_pieces, make, finish);
    return cmocka_run_group_tests(tests, make, finish);
}
