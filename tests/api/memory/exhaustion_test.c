/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out: each allocator returns CUDA_ERROR_OUT_OF_MEMORY when it is called, existing memory still works, and after freeing, here,
 * in another thread or in another context, all of it can be allocated again. Only on a CPU device, where pages are allocated when they are
 * touched, does the test allocate so much host memory; of a GPU's memory it allocates all. */
#include "virtual_memory.h"

#define PARTS 8 /* allocations of all memory: this number of calls, and a few more for other memory */
#define MOST (PARTS + 1)

static size_t total_bytes(void)
{
    size_t free_bytes, total;

    ok(cuMemGetInfo(&free_bytes, &total));
    return total;
}

static size_t free_bytes(void)
{
    size_t free_now, total;

    ok(cuMemGetInfo(&free_now, &total));
    assert_true(free_now <= total);
    return free_now;
}

/* ---- allocators: each returns an address, or the error ---- */

static CUstream stream;
static CUmemoryPool pool;

static CUresult device_alloc(CUdeviceptr *out, size_t bytes)
{
    return cuMemAlloc(out, bytes);
}

static CUresult device_free(CUdeviceptr p, size_t bytes)
{
    (void)bytes;
    return cuMemFree(p);
}

static CUresult pitch_alloc(CUdeviceptr *out, size_t bytes)
{
    size_t pitch;

    return cuMemAllocPitch(out, &pitch, (size_t)1 << 20, bytes >> 20, 16);
}

static CUresult managed_alloc(CUdeviceptr *out, size_t bytes)
{
    return cuMemAllocManaged(out, bytes, CU_MEM_ATTACH_GLOBAL);
}

static CUresult host_alloc(CUdeviceptr *out, size_t bytes)
{
    void *host = NULL;
    CUresult r = cuMemAllocHost(&host, bytes);

    *out = (CUdeviceptr)(uintptr_t)host;
    return r;
}

static CUresult combined_alloc(CUdeviceptr *out, size_t bytes)
{
    void *host = NULL;
    CUresult r = cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_WRITECOMBINED);

    *out = (CUdeviceptr)(uintptr_t)host;
    return r;
}

static CUresult host_free(CUdeviceptr p, size_t bytes)
{
    (void)bytes;
    return cuMemFreeHost((void *)(uintptr_t)p);
}

static CUresult async_alloc(CUdeviceptr *out, size_t bytes)
{
    return cuMemAllocAsync(out, bytes, stream);
}

static CUresult pool_alloc(CUdeviceptr *out, size_t bytes)
{
    return cuMemAllocFromPoolAsync(out, bytes, pool, stream);
}

static CUresult async_free(CUdeviceptr p, size_t bytes)
{
    CUresult r = cuMemFreeAsync(p, stream);

    (void)bytes;
    return r == CUDA_SUCCESS ? cuStreamSynchronize(stream) : r;
}

static CUresult virtual_alloc(CUdeviceptr *out, size_t bytes)
{
    CUmemAllocationProp props = vm_properties();
    CUmemGenericAllocationHandle handle;
    CUresult r = cuMemCreate(&handle, bytes, &props, 0);

    if (r != CUDA_SUCCESS)
        return r;
    ok(cuMemAddressReserve(out, bytes, 0, 0, 0));
    ok(cuMemMap(*out, bytes, 0, handle, 0));
    ok(cuMemRelease(handle));
    return vm_access(*out, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static CUresult virtual_free(CUdeviceptr p, size_t bytes)
{
    CUresult r = cuMemUnmap(p, bytes);

    return r == CUDA_SUCCESS ? cuMemAddressFree(p, bytes) : r;
}

static const struct allocator {
    const char *name;
    CUresult (*alloc)(CUdeviceptr *out, size_t bytes);
    CUresult (*free)(CUdeviceptr p, size_t bytes);
    CUdevice_attribute needs;
    bool of_host; /* host memory: on CPU devices only */
} allocators[] = {
    {"cuMemAlloc", device_alloc, device_free, 0, false},
    {"cuMemAllocPitch", pitch_alloc, device_free, 0, false},
    {"cuMemAllocAsync", async_alloc, async_free, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, false},
    {"cuMemAllocFromPoolAsync", pool_alloc, async_free, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, false},
    {"cuMemCreate", virtual_alloc, virtual_free, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, false},
    {"cuMemAllocManaged", managed_alloc, device_free, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, true},
    {"cuMemAllocHost", host_alloc, host_free, 0, true},
    {"cuMemHostAlloc", combined_alloc, host_free, 0, true},
};
#define N_ALLOCATORS (sizeof allocators / sizeof *allocators)

static bool is_there(const struct allocator *a)
{
    if (a->of_host && !(on_cuttle() && seeds_attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)))
        return false;
    return !a->needs || seeds_attribute(a->needs);
}

static size_t part_bytes(const struct allocator *a)
{
    size_t all = a->of_host ? (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) : total_bytes();

    return all / PARTS & ~(((size_t)2 << 20) - 1);
}

/* Allocates until nothing is left; returns the number of successful allocations. */
static size_t exhaust(const struct allocator *a, size_t bytes, CUdeviceptr *out)
{
    size_t count = 0;
    CUresult r;

    while ((r = a->alloc(&out[count], bytes)) == CUDA_SUCCESS)
        if (++count == MOST)
            fail_msg("%s: %d of %d parts of the memory could be had", a->name, MOST, PARTS);
    if (r != CUDA_ERROR_OUT_OF_MEMORY)
        fail_msg("%s: %s", a->name, api_error_name(r));
    return count;
}

static void free_parts(const struct allocator *a, size_t bytes, const CUdeviceptr *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ok(a->free(parts[i], bytes));
}

static int make(void **state)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

    if (with_context(state))
        return -1;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemPoolCreate(&pool, &props));
    return 0;
}

static int destroy(void **state)
{
    ok(cuMemPoolDestroy(pool));
    ok(cuStreamDestroy(stream));
    return without_context(state);
}

/* ---- the tests ---- */

static void each_allocator_says_so(void **state)
{
    CUdeviceptr parts[MOST];

    (void)state;
    for (size_t i = 0; i < N_ALLOCATORS; i++) {
        const struct allocator *a = &allocators[i];
        size_t bytes, count;

        if (!is_there(a))
            continue;
        bytes = part_bytes(a);
        count = exhaust(a, bytes, parts);
        if (count < 2)
            fail_msg("%s: %zu of %d parts", a->name, count, PARTS);
        ok(cuCtxSynchronize()); /* the context itself is not in an error state */
        ok(a->free(parts[--count], bytes));
        ok(a->alloc(&parts[count++], bytes)); /* freed memory is available again at once */
        free_parts(a, bytes, parts, count);
    }
}

/* More than all memory, in one allocation, and sizes that no computer has. */
static void far_too_much_is_refused(void **state)
{
    const size_t sizes[] = {(total_bytes() & ~(((size_t)2 << 20) - 1)) * 4, (size_t)1 << 46, (size_t)1 << 62};

    (void)state;
    for (size_t i = 0; i < N_ALLOCATORS; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes && is_there(&allocators[i]); k++) {
            CUdeviceptr p = 0;
            CUresult r = allocators[i].alloc(&p, sizes[k]);

            if (r != CUDA_ERROR_OUT_OF_MEMORY && (on_cuttle() || r == CUDA_SUCCESS))
                fail_msg("%s of %zu: %s", allocators[i].name, sizes[k], api_error_name(r));
        }
    ok(cuCtxSynchronize());
}

/* Existing memory still works: kernels, fills, copies from pageable memory and back. */
static void existing_memory_still_works(void **state)
{
    const struct allocator *a = &allocators[0];
    uint32_t words[1000], back[1000];
    CUdeviceptr parts[MOST], p;
    size_t bytes = part_bytes(a), count;

    (void)state;
    ok(cuMemAlloc(&p, sizeof words));
    seeds_step(p, 1000); /* compiled */
    count = exhaust(a, bytes, parts);
    for (unsigned i = 0; i < 1000; i++)
        words[i] = i;
    ok(cuMemcpyHtoD(p, words, sizeof words));
    seeds_step(p, 1000);
    ok(cuMemcpyDtoH(back, p, sizeof back));
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(back[i], i * 3 + 1);
    ok(cuMemsetD32(parts[count - 1] + bytes - 64, 7, 16));
    ok(cuMemcpyDtoH(back, parts[count - 1] + bytes - 4, 4));
    assert_int_equal(back[0], 7);
    free_parts(a, bytes, parts, count);
    ok(cuMemFree(p));
}

/* cuMemGetInfo: allocated memory is not free, whether or not it has been touched. */
static void the_free_memory_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ALLOCATORS; i++) {
        size_t bytes = part_bytes(&allocators[i]) * 2, total = total_bytes(), before = free_bytes(), during;
        CUdeviceptr p;

        if (allocators[i].of_host || !is_there(&allocators[i]))
            continue;
        ok(allocators[i].alloc(&p, bytes));
        during = free_bytes();
        assert_true(during <= total - bytes);
        ok(allocators[i].free(p, bytes));
        if (before > total - bytes) /* otherwise other processes use so much that it is not visible */
            assert_true(free_bytes() > during);
    }
}

struct job {
    CUcontext context;
    const struct allocator *allocator;
    size_t bytes, count;
    CUdeviceptr parts[MOST];
    CUresult result;
};

static void *free_elsewhere(void *argument)
{
    struct job *job = argument;

    job->result = cuCtxSetCurrent(job->context);
    for (size_t i = 0; i < job->count && job->result == CUDA_SUCCESS; i++)
        job->result = job->allocator->free(job->parts[i], job->bytes);
    return NULL;
}

/* Freed in another thread, with another context current. */
static void freed_elsewhere(void **state)
{
    CUcontext other;

    ok(cuCtxCreate(&other, NULL, 0, 0));
    ok(cuCtxSetCurrent(*state));
    for (size_t i = 0; i < N_ALLOCATORS; i++) {
        struct job job = {.context = other, .allocator = &allocators[i]};
        pthread_t thread;

        if (!is_there(job.allocator))
            continue;
        job.bytes = part_bytes(job.allocator);
        for (unsigned round = 0; round < 2; round++) {
            job.count = exhaust(job.allocator, job.bytes, job.parts);
            assert_true(job.count >= 2);
            assert_int_equal(pthread_create(&thread, NULL, free_elsewhere, &job), 0);
            pthread_join(thread, NULL);
            ok(job.result);
        }
    }
    ok(cuCtxDestroy(other));
}

/* A context's memory is freed with it. */
static void a_context_gives_everything_back(void **state)
{
    const struct allocator *a = &allocators[0];
    CUdeviceptr parts[MOST];
    size_t bytes = part_bytes(a);

    for (unsigned round = 0; round < 3; round++) {
        CUcontext context;

        ok(cuCtxCreate(&context, NULL, 0, 0));
        assert_true(exhaust(a, bytes, parts) >= 2);
        ok(cuCtxDestroy(context));
        ok(cuCtxSetCurrent(*state));
    }
}

static void *take_and_give(void *argument)
{
    struct job *job = argument;
    /* Vulkan drivers of GPUs need 10 ms to allocate a GiB, and as long to free it (NVIDIA 580 on an H200). */
    const unsigned rounds = job->bytes < (size_t)4 << 30 ? 20 : 2;

    job->result = cuCtxSetCurrent(job->context);
    for (unsigned round = 0; round < rounds && job->result == CUDA_SUCCESS; round++) {
        for (job->count = 0; job->count < MOST; job->count++)
            if ((job->result = cuMemAlloc(&job->parts[job->count], job->bytes)) != CUDA_SUCCESS)
                break;
        job->result = job->result == CUDA_ERROR_OUT_OF_MEMORY && job->count <= PARTS ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
        for (size_t i = 0; i < job->count; i++)
            if (cuMemFree(job->parts[i]) != CUDA_SUCCESS)
                job->result = CUDA_ERROR_UNKNOWN;
    }
    return NULL;
}

/* Threads that compete for all of the memory: each address belongs to one thread, and no memory is lost. */
static void threads_compete(void **state)
{
    enum { THREADS = 4 };
    struct job jobs[THREADS] = {{0}};
    pthread_t threads[THREADS];
    CUdeviceptr parts[MOST];
    size_t bytes = part_bytes(&allocators[0]), count;

    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.context = *state, .bytes = bytes};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ok(jobs[i].result);
    }
    count = exhaust(&allocators[0], bytes, parts);
    assert_true(count >= 2);
    free_parts(&allocators[0], bytes, parts, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocator_says_so),
        cmocka_unit_test(far_too_much_is_refused),
        cmocka_unit_test(existing_memory_still_works),
        cmocka_unit_test(the_free_memory_is_reported),
        cmocka_unit_test(freed_elsewhere),
        cmocka_unit_test(a_context_gives_everything_back),
        cmocka_unit_test(threads_compete),
    };

    return cmocka_run_group_tests(tests, make, destroy);
}
