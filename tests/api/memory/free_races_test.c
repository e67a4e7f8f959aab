/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that free the same memory at once: one succeeds, the others get the error for memory that does not exist, and concurrent queries
 * of the pointer return a result or that error. Nothing is freed twice (run it with the sanitizers), and no memory is freed while a kernel
 * of another context, or a call of another thread, uses it. */
#include "virtual_memory.h"

#include <poll.h>
#include <signal.h>

#define THREADS 4
#define ROUNDS 25
#define BYTES ((size_t)5000)
#define LARGE_BYTES ((size_t)3 << 20)

/* Memory of one kind, and the function that frees it. */
struct memory {
    CUdeviceptr at;
    size_t bytes;
    void *pages;
    CUmemGenericAllocationHandle handle;
    CUstream stream;
};

static void make_small(struct memory *m)
{
    m->bytes = BYTES;
    ok(cuMemAlloc(&m->at, m->bytes));
}

static void make_large(struct memory *m)
{
    m->bytes = LARGE_BYTES;
    ok(cuMemAlloc(&m->at, m->bytes));
}

static void make_managed(struct memory *m)
{
    m->bytes = BYTES;
    ok(cuMemAllocManaged(&m->at, m->bytes, CU_MEM_ATTACH_GLOBAL));
}

static CUresult free_device(const struct memory *m)
{
    return cuMemFree(m->at);
}

static void make_host(struct memory *m)
{
    m->bytes = BYTES;
    ok(cuMemAllocHost(&m->pages, m->bytes));
    m->at = (CUdeviceptr)(uintptr_t)m->pages;
}

static CUresult free_host(const struct memory *m)
{
    return cuMemFreeHost(m->pages);
}

static void make_registered(struct memory *m)
{
    m->bytes = BYTES;
    m->pages = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(m->pages, MAP_FAILED);
    ok(cuMemHostRegister(m->pages, m->bytes, 0));
    m->at = (CUdeviceptr)(uintptr_t)m->pages;
}

static CUresult unregister(const struct memory *m)
{
    return cuMemHostUnregister(m->pages);
}

static void drop_pages(struct memory *m)
{
    munmap(m->pages, LARGE_BYTES);
}

static void make_pooled(struct memory *m)
{
    m->bytes = BYTES;
    ok(cuStreamCreate(&m->stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemAllocAsync(&m->at, m->bytes, m->stream));
}

/* Memory of cuMemAlloc, which can also be freed in a stream. */
static void make_for_stream(struct memory *m)
{
    make_small(m);
    ok(cuStreamCreate(&m->stream, CU_STREAM_NON_BLOCKING));
}

static CUresult free_pooled(const struct memory *m)
{
    return cuMemFreeAsync(m->at, m->stream);
}

static void drop_stream(struct memory *m)
{
    ok(cuStreamSynchronize(m->stream));
    ok(cuStreamDestroy(m->stream));
}

static void make_mapped(struct memory *m)
{
    struct vm_range range = vm_range_make(1);

    m->at = range.start;
    m->bytes = range.size;
}

static CUresult unmap(const struct memory *m)
{
    return cuMemUnmap(m->at, m->bytes);
}

static void drop_addresses(struct memory *m)
{
    ok(cuMemAddressFree(m->at, m->bytes));
}

static void make_reserved(struct memory *m)
{
    m->bytes = vm_granule();
    ok(cuMemAddressReserve(&m->at, m->bytes, 0, 0, 0));
}

static CUresult free_reserved(const struct memory *m)
{
    return cuMemAddressFree(m->at, m->bytes);
}

static void make_handle(struct memory *m)
{
    m->bytes = vm_granule();
    m->handle = vm_create(1);
}

static CUresult release(const struct memory *m)
{
    return cuMemRelease(m->handle);
}

static const struct kind {
    const char *name;
    void (*make)(struct memory *memory);
    CUresult (*free)(const struct memory *memory);
    void (*drop)(struct memory *memory); /* the remaining memory; NULL: none */
    CUresult gone;
    CUdevice_attribute needs;
} kinds[] = {
    {"small", make_small, free_device, NULL, CUDA_ERROR_INVALID_VALUE, 0},
    {"large", make_large, free_device, NULL, CUDA_ERROR_INVALID_VALUE, 0},
    {"managed", make_managed, free_device, NULL, CUDA_ERROR_INVALID_VALUE, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {"host", make_host, free_host, NULL, CUDA_ERROR_INVALID_VALUE, 0},
    {"registered", make_registered, unregister, drop_pages, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
     CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {"of a pool", make_pooled, free_pooled, drop_stream, CUDA_ERROR_INVALID_VALUE, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {"in a stream", make_for_stream, free_pooled, drop_stream, CUDA_ERROR_INVALID_VALUE, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {"mapped", make_mapped, unmap, drop_addresses, CUDA_ERROR_INVALID_VALUE, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"reserved", make_reserved, free_reserved, NULL, CUDA_ERROR_INVALID_VALUE, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {"a handle", make_handle, release, NULL, CUDA_ERROR_INVALID_VALUE, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
};

struct race {
    const struct kind *kind;
    struct memory memory;
    CUcontext context;
    pthread_barrier_t start;
    CUresult results[THREADS], asked;
    atomic_uint next;
};

static void *free_it(void *argument)
{
    struct race *race = argument;
    unsigned self = atomic_fetch_add(&race->next, 1);

    cuCtxSetCurrent(race->context);
    pthread_barrier_wait(&race->start);
    race->results[self] = race->kind->free(&race->memory);
    return NULL;
}

static void *ask_about_it(void *argument)
{
    struct race *race = argument;
    size_t size;

    cuCtxSetCurrent(race->context);
    pthread_barrier_wait(&race->start);
    for (unsigned i = 0; i < 50; i++) {
        CUresult r = cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, race->memory.at);

        if (r != CUDA_SUCCESS && r != CUDA_ERROR_INVALID_VALUE)
            race->asked = r;
    }
    return NULL;
}

static void run_race(const struct kind *kind, CUcontext context)
{
    struct race race = {.kind = kind, .context = context};
    unsigned successes = 0, gone = 0;
    pthread_t threads[THREADS + 1];

    kind->make(&race.memory);
    pthread_barrier_init(&race.start, NULL, THREADS + 1);
    for (unsigned i = 0; i <= THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < THREADS ? free_it : ask_about_it, &race), 0);
    for (unsigned i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&race.start);
    for (unsigned i = 0; i < THREADS; i++) {
        successes += race.results[i] == CUDA_SUCCESS;
        gone += race.results[i] == kind->gone;
    }
    if (successes != 1 || gone != THREADS - 1 || race.asked != CUDA_SUCCESS)
        fail_msg("%s: %u succeeded, %u got the error for freed memory; the query returned %s", kind->name, successes, gone,
                 api_error_name(race.asked));
    if (kind->drop)
        kind->drop(&race.memory);
}

static void of_many_that_free_one_succeeds(void **state)
{
    if (!on_cuttle())
        skip(); /* an error of the program, which CUDA leaves undefined */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (unsigned round = 0; round < ROUNDS && (!kinds[i].needs || seeds_attribute(kinds[i].needs)); round++)
            run_race(&kinds[i], *state);
}

static void *open_later(void *gate)
{
    usleep(20000);
    atomic_store(&((struct seeds_gate *)gate)->open, 1);
    return NULL;
}

/* A kernel of the current context waits while `freer`, in the context of the memory, frees the memory that the kernel will use. */
static void free_under_a_kernel(const struct kind *kind, struct memory *memory, CUcontext user, CUcontext freer)
{
    unsigned count = BYTES / 4;
    struct seeds_gate gate;
    CUfunction function;
    CUdeviceptr device;
    pthread_t thread;
    CUmodule module;

    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuModuleGetFunction(&function, module, "step"));
    ok(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory->at));
    if (memory->pages)
        memset(memory->pages, 0, BYTES);
    seeds_gate_make(&gate);
    ok(cuLaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, gate.stream, (void *[]){&device, &count}, NULL));
    assert_int_equal(pthread_create(&thread, NULL, open_later, &gate), 0);
    ok(cuCtxSetCurrent(freer));
    ok(kind->free(memory));
    ok(cuCtxSetCurrent(user));
    ok(cuStreamQuery(gate.stream)); /* the kernel is done */
    if (kind->drop)
        assert_int_equal(((uint32_t *)memory->pages)[count - 1], 1);
    pthread_join(thread, NULL);
    seeds_gate_finish(&gate);
    ok(cuModuleUnload(module));
}

/* Page-locked and managed memory belongs to every context: freeing it waits for the work of all. */
static void freeing_waits_for_other_contexts(void **state)
{
    CUcontext other;

    if (!on_cuttle())
        skip(); /* the manual does not specify this */
    ok(cuCtxCreate(&other, NULL, 0, 0));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool for_all = kinds[i].make == make_host || kinds[i].make == make_registered || kinds[i].make == make_managed;

        for (unsigned way = 0; way < 2 && for_all && (!kinds[i].needs || seeds_attribute(kinds[i].needs)); way++) {
            struct memory memory = {0};

            ok(cuCtxSetCurrent(*state));
            kinds[i].make(&memory);
            ok(cuCtxSetCurrent(other));
            free_under_a_kernel(&kinds[i], &memory, other, way ? other : *state);
            if (kinds[i].drop)
                kinds[i].drop(&memory);
        }
    }
    ok(cuCtxDestroy(other));
    ok(cuCtxSetCurrent(*state));
}

static CUresult copy_from(CUdeviceptr memory, CUdeviceptr own, CUstream stream)
{
    return cuMemcpyDtoDAsync(own, memory, BYTES, stream);
}

static CUresult copy_to(CUdeviceptr memory, CUdeviceptr own, CUstream stream)
{
    return cuMemcpyDtoDAsync(memory, own, BYTES, stream);
}

static CUresult fill(CUdeviceptr memory, CUdeviceptr own, CUstream stream)
{
    (void)own;
    return cuMemsetD8Async(memory, 1, BYTES, stream);
}

static CUresult write_value(CUdeviceptr memory, CUdeviceptr own, CUstream stream)
{
    (void)own;
    return cuStreamWriteValue32(stream, memory, 1, 0);
}

/* Device memory of one context that another one copies or fills: it exists until that is done, whether it is freed or its context is
 * destroyed. */
static void freeing_waits_for_copies_of_other_contexts(void **state)
{
    static CUresult (*const uses[])(CUdeviceptr memory, CUdeviceptr own, CUstream stream) = {copy_from, copy_to, fill, write_value};
    CUdeviceptr own;

    if (!on_cuttle())
        skip();
    ok(cuMemAlloc(&own, BYTES));
    for (unsigned i = 0; i < 2 * sizeof uses / sizeof *uses; i++) {
        struct seeds_gate gate;
        CUdeviceptr memory;
        pthread_t thread;
        CUcontext other;

        ok(cuCtxCreate(&other, NULL, 0, 0));
        ok(cuMemAlloc(&memory, LARGE_BYTES));
        ok(cuCtxSetCurrent(*state));
        seeds_gate_make(&gate);
        ok(uses[i / 2](memory, own, gate.stream));
        assert_int_equal(pthread_create(&thread, NULL, open_later, &gate), 0);
        if (i & 1)
            ok(cuMemFree(memory));
        ok(i & 1 ? cuStreamQuery(gate.stream) : CUDA_SUCCESS);
        ok(cuCtxDestroy(other));
        ok(cuStreamQuery(gate.stream));
        pthread_join(thread, NULL);
        seeds_gate_finish(&gate);
    }
    ok(cuMemFree(own));
}

/* ---- a copy from a page whose first access takes as long as the test says ---- */

#define SLOW_BYTES 4000

static struct {
    char *page;
    atomic_int reached, open;
} slow;

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if ((char *)info->si_addr < slow.page || (char *)info->si_addr >= slow.page + SLOW_BYTES) {
        signal(signal_number, SIG_DFL);
        return;
    }
    atomic_store(&slow.reached, 1);
    while (!atomic_load(&slow.open))
        poll(NULL, 0, 1);
    mprotect(slow.page, SLOW_BYTES, PROT_READ | PROT_WRITE);
}

struct call {
    const struct kind *kind;
    const struct memory *memory;
    CUcontext context;
    CUresult result;
    atomic_int done;
};

static void *copy_slowly(void *argument)
{
    struct call *call = argument;

    cuCtxSetCurrent(call->context);
    call->result = cuMemcpy(call->memory->at, (CUdeviceptr)(uintptr_t)slow.page, SLOW_BYTES);
    return NULL;
}

static void *free_meanwhile(void *argument)
{
    struct call *call = argument;

    cuCtxSetCurrent(call->context);
    call->result = call->kind->free(call->memory);
    atomic_store(&call->done, 1);
    return NULL;
}

static void free_during_a_copy(const struct kind *kind, CUcontext context)
{
    struct memory memory = {0};
    struct call copying = {.memory = &memory, .context = context}, freeing = {.kind = kind, .memory = &memory, .context = context};
    pthread_t threads[2];

    kind->make(&memory);
    if (memory.stream)
        ok(cuStreamSynchronize(memory.stream));
    atomic_store(&slow.reached, 0);
    atomic_store(&slow.open, 0);
    assert_int_equal(mprotect(slow.page, SLOW_BYTES, PROT_NONE), 0);
    assert_int_equal(pthread_create(&threads[0], NULL, copy_slowly, &copying), 0);
    while (!atomic_load(&slow.reached))
        usleep(100);
    assert_int_equal(pthread_create(&threads[1], NULL, free_meanwhile, &freeing), 0);
    usleep(30000);
    if (atomic_load(&freeing.done))
        fail_msg("%s: freed while a copy writes to it", kind->name);
    atomic_store(&slow.open, 1);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ok(copying.result);
    ok(freeing.result);
    if (kind->drop)
        kind->drop(&memory);
}

static void freeing_waits_for_calls_of_other_threads(void **state)
{
    const struct sigaction handler = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction before;

    if (!on_cuttle())
        skip();
    slow.page = mmap(NULL, SLOW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(slow.page, MAP_FAILED);
    sigaction(SIGSEGV, &handler, &before);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].make != make_reserved && kinds[i].make != make_handle && (!kinds[i].needs || seeds_attribute(kinds[i].needs)))
            free_during_a_copy(&kinds[i], *state);
    sigaction(SIGSEGV, &before, NULL);
    munmap(slow.page, SLOW_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_many_that_free_one_succeeds), cmocka_unit_test(freeing_waits_for_other_contexts),
                                       cmocka_unit_test(freeing_waits_for_copies_of_other_contexts),
                                       cmocka_unit_test(freeing_waits_for_calls_of_other_threads)};

    return cmocka_run_group_tests(tests, with_context, without_context);
}
