/* SPDX-License-Identifier: Apache-2.0 */
/* Memory management: allocation of device memory and of page-locked memory, registration, and arguments that are rejected. */
#include "api_test.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void alloc_gives_aligned_memory_that_works(void **state)
{
    static const size_t sizes[] = {1, 4, 255, 256, 513, 4096, 65535, MIB - 1, MIB, MIB + 1, 2 * MIB, 5 * MIB + 12345};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUdeviceptr p = 0;
        unsigned char first = 0, last = 0;

        ok(cuMemAlloc(&p, sizes[i]));
        assert_int_equal(p % 256, 0);
        ok(cuMemsetD8(p, 0x5a, sizes[i]));
        ok(cuMemcpyDtoH(&first, p, 1));
        ok(cuMemcpyDtoH(&last, p + sizes[i] - 1, 1));
        assert_int_equal(first, 0x5a);
        assert_int_equal(last, 0x5a);
        ok(cuMemFree(p));
    }
}

static void alloc_refuses(void **state)
{
    CUdeviceptr p;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 16));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, (size_t)1 << 50));
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, SIZE_MAX));
    ok(cuMemAlloc(&p, 16)); /* nothing was overwritten */
    ok(cuMemFree(p));
}

static void free_refuses(void **state)
{
    CUdeviceptr p;
    void *host;
    int local = 0;

    (void)state;
    ok(cuMemFree(0));
    ok(cuMemAlloc(&p, 4096));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 256));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)&local));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x123456789000));
    ok(cuMemFree(p));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
    ok(cuMemAllocHost(&host, 4096));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)host));
    ok(cuMemFreeHost(host));
}

static void small_allocations_do_not_overlap(void **state)
{
    enum { COUNT = 300 };
    static CUdeviceptr p[COUNT];
    static size_t size[COUNT];

    (void)state;
    for (unsigned i = 0; i < COUNT; i++) {
        size[i] = 1 + (i * 7919u) % 9000;
        ok(cuMemAlloc(&p[i], size[i]));
        ok(cuMemsetD8(p[i], (unsigned char)i, size[i]));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned char bytes[9000];

        ok(cuMemcpyDtoH(bytes, p[i], size[i]));
        for (size_t k = 0; k < size[i]; k++)
            assert_int_equal(bytes[k], i & 0xff);
    }
    for (unsigned i = 0; i < COUNT; i++)
        ok(cuMemFree(p[(i * 37) % COUNT])); /* 37 and 300 are coprime: each index once */
}

static void info_follows_large_allocations(void **state)
{
    size_t free_before, free_with, total;
    CUdeviceptr p;

    (void)state;
    ok(cuMemGetInfo(&free_before, &total));
    assert_true(free_before > 0 && free_before <= total);
    ok(cuMemAlloc(&p, 64 * MIB));
    ok(cuMemGetInfo(&free_with, NULL));
    ok(cuMemGetInfo(NULL, NULL));
    assert_true(free_with <= total - 64 * MIB);
    ok(cuMemFree(p));
}

static void address_range_of_inner_pointers(void **state)
{
    CUdeviceptr p, base = 0;
    size_t size = 0;
    int local = 0;

    (void)state;
    ok(cuMemAlloc(&p, 3 * MIB));
    ok(cuMemGetAddressRange(&base, &size, p + 2 * MIB));
    assert_int_equal(base, p);
    assert_int_equal(size, 3 * MIB);
    ok(cuMemGetAddressRange(NULL, &size, p + 3 * MIB - 1));
    ok(cuMemGetAddressRange(&base, NULL, p));
    gives(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)&local));
    ok(cuMemFree(p));
    gives(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, p));
}

static void pitch_is_aligned_and_no_less_than_a_row(void **state)
{
    static const struct {
        size_t width, height;
        unsigned element;
    } shapes[] = {{1, 1, 4}, {100, 30, 4}, {512, 5, 8}, {513, 7, 16}, {10000, 100, 16}};
    CUdeviceptr p, base;
    size_t pitch, size;

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ok(cuMemAllocPitch(&p, &pitch, shapes[i].width, shapes[i].height, shapes[i].element));
        assert_true(pitch >= shapes[i].width);
        assert_int_equal(pitch % 32, 0);
        ok(cuMemGetAddressRange(&base, &size, p));
        assert_true(size >= pitch * (shapes[i].height - 1) + shapes[i].width);
        ok(cuMemsetD2D8(p, pitch, 1, shapes[i].width, shapes[i].height));
        ok(cuMemFree(p));
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(NULL, &pitch, 16, 16, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, NULL, 16, 16, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 0, 16, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 16, 0, 4));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 16, 16, 3));
}

static void host_memory_is_read_and_written_by_both_sides(void **state)
{
    static const unsigned flags[] = {0, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_WRITECOMBINED,
                                     CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED};
    CUdeviceptr device, mapped;

    (void)state;
    ok(cuMemAlloc(&device, 10000));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        unsigned char *host = NULL;
        unsigned got = 0;

        ok(cuMemHostAlloc((void **)&host, 10000, flags[i]));
        memset(host, (int)i + 1, 10000);
        ok(cuMemcpyHtoD(device, host, 10000));
        memset(host, 0, 10000);
        ok(cuMemHostGetDevicePointer(&mapped, host + 100, 0));
        ok(cuMemcpyDtoD(mapped, device, 5000));
        ok(cuCtxSynchronize());
        assert_int_equal(host[99], 0);
        assert_int_equal(host[100], i + 1);
        assert_int_equal(host[5099], i + 1);
        assert_int_equal(host[5100], 0);
        ok(cuMemHostGetFlags(&got, host));
        assert_int_equal(got & flags[i], flags[i]);
        ok(cuMemFreeHost(host));
    }
    ok(cuMemFree(device));
}

static void host_memory_refuses(void **state)
{
    CUdeviceptr device;
    unsigned flags;
    void *host;
    int local = 0;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(NULL, 16, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&host, 16, 0x100));
    gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&host, (size_t)1 << 50, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(&local));
    ok(cuMemFreeHost(NULL));
    ok(cuMemHostAlloc(&host, 0, 0));
    ok(cuMemFreeHost(host));
    ok(cuMemAllocHost(&host, 8192));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((char *)host + 4096));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(NULL, host, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&device, host, 1));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&device, &local, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(NULL, host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(&flags, &local));
    ok(cuMemFreeHost(host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
}

/* Registration of memory that begins and ends within pages; the device can access it. */
static void registered_memory_works(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 5 * page;
    unsigned char *pages = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *start = pages + page / 2;
    CUdeviceptr device, mapped;
    int own_pointer;

    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    memset(pages, 1, 8 * page);
    ok(cuMemHostRegister(start, bytes, CU_MEMHOSTREGISTER_DEVICEMAP));
    gives(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(start, bytes, 0));
    gives(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(start + page, page, 0));
    ok(cuMemHostGetDevicePointer(&mapped, start, 0));
    ok(cuDeviceGetAttribute(&own_pointer, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0));
    if (own_pointer)
        assert_ptr_equal((void *)(uintptr_t)mapped, start);
    ok(cuMemAlloc(&device, bytes));
    ok(cuMemsetD8(device, 9, bytes));
    ok(cuMemcpyDtoD(mapped, device, bytes));
    ok(cuCtxSynchronize());
    assert_int_equal(start[-1], 1);
    assert_int_equal(start[0], 9);
    assert_int_equal(start[bytes - 1], 9);
    assert_int_equal(start[bytes], 1);
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(start + page));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(start));
    ok(cuMemHostUnregister(start));
    gives(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(start));
    ok(cuMemFree(device));
    munmap(pages, 8 * page);
}

static void registration_refuses(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *hole = mmap(NULL, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *memory = malloc(4 * page);
    CUdeviceptr device;
    void *host;

    (void)state;
    ok(cuMemAllocHost(&host, page));
    ok(cuMemAlloc(&device, page));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(host, page, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister((void *)(uintptr_t)device, page, 0));
    ok(cuMemFree(device));
    ok(cuMemFreeHost(host));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(NULL, page, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(memory, 0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(memory, page, 0x1000));
    munmap(hole, 4 * page); /* not earlier: memory allocated in between might get that address */
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(hole, page, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(NULL));
    gives(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(memory));
    free(memory);
}

/* Memory runs out; existing allocations still work, and all of the memory can be allocated again. */
static void out_of_memory_spoils_nothing(void **state)
{
    enum { MAX = 64 };
    CUdeviceptr p[MAX], probe;
    size_t free_bytes, total, step;
    unsigned char byte = 0;
    int n = 0;

    (void)state;
    ok(cuMemGetInfo(&free_bytes, &total));
    step = free_bytes / 4 + 1;
    if (step > (size_t)1 << 31)
        step = (size_t)1 << 31; /* a device may return less in one allocation than it has */
    while (n < MAX && cuMemAlloc(&p[n], step) == CUDA_SUCCESS)
        n++;
    ok(cuMemAlloc(&probe, 1));
    ok(cuMemsetD8(probe, 3, 1));
    ok(cuMemcpyDtoH(&byte, probe, 1));
    assert_int_equal(byte, 3);
    ok(cuMemFree(probe));
    while (n > 0)
        ok(cuMemFree(p[--n]));
    ok(cuMemAlloc(&probe, step));
    ok(cuMemFree(probe));
}

struct block {
    CUdeviceptr p;
    size_t bytes;
    unsigned value;
};

static void check_block(const struct block *b)
{
    unsigned *words = malloc(b->bytes);

    ok(cuMemcpyDtoH(words, b->p, b->bytes));
    for (size_t i = 0; i < b->bytes / 4; i++)
        assert_int_equal(words[i], b->value);
    free(words);
}

static void random_allocations_keep_their_contents(void **state)
{
    enum { SLOTS = 40, ROUNDS = 600 };
    static struct block blocks[SLOTS];
    unsigned seed = 1;

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct block *b = &blocks[(seed = seed * 1103515245u + 12345u) >> 8 & 31];

        if (b->p) {
            check_block(b);
            ok(cuMemFree(b->p));
            b->p = 0;
            continue;
        }
        b->bytes = 4 + 4 * ((seed >> 4) % (round % 16 ? 30000 : 500000));
        b->value = seed;
        ok(cuMemAlloc(&b->p, b->bytes));
        ok(cuMemsetD32(b->p, b->value, b->bytes / 4));
    }
    for (unsigned i = 0; i < SLOTS; i++)
        if (blocks[i].p) {
            check_block(&blocks[i]);
            ok(cuMemFree(blocks[i].p));
        }
}

struct thread_work {
    CUcontext context;
    unsigned number;
    bool right;
};

static void *allocate_in_a_thread(void *user)
{
    struct thread_work *work = user;
    bool right = cuCtxSetCurrent(work->context) == CUDA_SUCCESS;

    for (unsigned i = 0; i < 60 && right; i++) {
        size_t bytes = 1 + (i * 977u + work->number * 131u) % 5000;
        unsigned char got[5000];
        CUdeviceptr p;

        right = cuMemAlloc(&p, bytes) == CUDA_SUCCESS && cuMemsetD8(p, (unsigned char)(work->number * 16 + i), bytes) == CUDA_SUCCESS &&
                cuMemcpyDtoH(got, p, bytes) == CUDA_SUCCESS;
        for (size_t k = 0; k < bytes && right; k++)
            right = got[k] == (unsigned char)(work->number * 16 + i);
        right = right && cuMemFree(p) == CUDA_SUCCESS;
    }
    work->right = right;
    return NULL;
}

static void threads_allocate_at_once(void **state)
{
    enum { THREADS = 6 };
    struct thread_work work[THREADS];
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        work[i] = (struct thread_work){*state, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_in_a_thread, &work[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(work[i].right);
    }
}

static void memory_of_another_context(void **state)
{
    CUcontext second, popped;
    CUdevice device;
    CUdeviceptr p;
    unsigned char byte = 0;

    (void)state;
    ok(cuCtxGetDevice(&device));
    ok(create_context(&second, device));
    ok(cuMemAlloc(&p, 100));
    ok(cuCtxPopCurrent(&popped));
    ok(cuMemsetD8(p, 4, 100));
    ok(cuMemcpyDtoH(&byte, p, 1));
    assert_int_equal(byte, 4);
    ok(cuCtxDestroy(second)); /* its memory is freed with it */
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&byte, p, 1));
}

static void nothing_works_without_a_context(void **state)
{
    CUcontext context = *state;
    CUdeviceptr p = 0;
    unsigned flags;
    size_t size;
    void *host;

    ok(cuCtxSetCurrent(NULL));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 16));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(NULL, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(0x1000)); /* memory belongs to its context */
    ok(cuMemFree(0));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemGetInfo(&size, &size));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemAllocHost(&host, 16));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemHostAlloc(&host, 16, 0));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemHostGetFlags(&flags, &size));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyHtoD(0x1000, &size, 4));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuMemsetD8(0x1000, 1, 4));
    ok(cuCtxSetCurrent(context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_gives_aligned_memory_that_works),
        cmocka_unit_test(alloc_refuses),
        cmocka_unit_test(free_refuses),
        cmocka_unit_test(small_allocations_do_not_overlap),
        cmocka_unit_test(info_follows_large_allocations),
        cmocka_unit_test(address_range_of_inner_pointers),
        cmocka_unit_test(pitch_is_aligned_and_no_less_than_a_row),
        cmocka_unit_test(host_memory_is_read_and_written_by_both_sides),
        cmocka_unit_test(host_memory_refuses),
        cmocka_unit_test(registered_memory_works),
        cmocka_unit_test(registration_refuses),
        cmocka_unit_test(out_of_memory_spoils_nothing),
        cmocka_unit_test(random_allocations_keep_their_contents),
        cmocka_unit_test(threads_allocate_at_once),
        cmocka_unit_test(memory_of_another_context),
        cmocka_unit_test(nothing_works_without_a_context),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
