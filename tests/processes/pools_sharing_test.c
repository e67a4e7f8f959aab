/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of several processes (Driver API: cuMemPoolExportToShareableHandle, cuMemPoolImportFromShareableHandle,
 * cuMemPoolExportPointer, cuMemPoolImportPointer), with real processes. A plain program of the driver API: NVIDIA's own driver must pass, too. */
#include "peer.h"

#include <pthread.h>

#define FILE_TYPE CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define WORDS SEEDS_WORDS
#define BYTES (WORDS * 4)

enum order {
    IMPORT_POOL,     /* fd. Gives numbers[3]: the pool */
    IMPORT_TOGETHER, /* the same in several threads at once; CUDA_ERROR_UNKNOWN: they got different pointers */
    IMPORT,          /* bytes: exported data; numbers[3]: a pool. Gives numbers[0]: the pointer */
    FREE,            /* numbers[0]: a pointer, by cuMemFree */
    FREE_ASYNC,      /* the same by cuMemFreeAsync, and waits */
    STEP,            /* numbers: pointer, words. The kernel of seeds_step */
    WORD,            /* numbers: pointer. Gives numbers[1]: the word there */
    ALLOCATE,        /* numbers[3]: a pool. Allocates in it */
    MAKE_CURRENT,    /* numbers[3]: a pool, of the device */
    EXPORT,          /* numbers[3]: a pool, to a file descriptor again */
    EXPORT_POINTER,  /* numbers[0]: a pointer, again */
    POOL_OF,         /* numbers: pointer. Gives numbers[1]: 1 if it is of pool numbers[3] */
    DESTROY,         /* numbers[3]: a pool */
};

/* ---- the other process ---- */

static CUresult import_pool(struct peer_message *message)
{
    CUmemoryPool pool = NULL;
    CUresult r = cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)message->fd, FILE_TYPE, 0);

    if (message->fd >= 0)
        close(message->fd);
    message->fd = -1;
    message->numbers[3] = (uintptr_t)pool;
    return r;
}

static CUresult import_pointer(struct peer_message *message, CUmemoryPool pool)
{
    CUmemPoolPtrExportData data;
    CUdeviceptr pointer = 0;
    CUresult r;

    memcpy(&data, message->bytes, sizeof data);
    r = cuMemPoolImportPointer(&pointer, pool, &data);
    message->numbers[0] = pointer;
    return r;
}

enum { IMPORTERS = 8 };

struct importer {
    pthread_t thread;
    pthread_barrier_t *start;
    CUcontext context;
    CUmemoryPool pool;
    struct peer_message message;
    CUresult result;
};

static void *import_with_others(void *user)
{
    struct importer *importer = user;

    ok(cuCtxSetCurrent(importer->context));
    pthread_barrier_wait(importer->start);
    importer->result = import_pointer(&importer->message, importer->pool);
    return NULL;
}

static CUresult import_together(struct peer_message *message, CUmemoryPool pool)
{
    struct importer importers[IMPORTERS];
    pthread_barrier_t start;
    CUresult r = CUDA_SUCCESS;
    CUcontext context;

    ok(cuCtxGetCurrent(&context));
    pthread_barrier_init(&start, NULL, IMPORTERS);
    for (int i = 0; i < IMPORTERS; i++) {
        importers[i] = (struct importer){.start = &start, .context = context, .pool = pool, .message = *message};
        assert_int_equal(pthread_create(&importers[i].thread, NULL, import_with_others, &importers[i]), 0);
    }
    for (int i = 0; i < IMPORTERS; i++) {
        pthread_join(importers[i].thread, NULL);
        if (importers[i].result != CUDA_SUCCESS)
            r = importers[i].result;
        else if (importers[i].message.numbers[0] != importers[0].message.numbers[0])
            r = CUDA_ERROR_UNKNOWN;
    }
    message->numbers[0] = importers[0].message.numbers[0];
    pthread_barrier_destroy(&start);
    return r;
}

static CUresult obey(struct peer_message *message)
{
    uint64_t *numbers = message->numbers;
    CUmemoryPool pool = (CUmemoryPool)(uintptr_t)numbers[3], other = NULL;
    CUdeviceptr pointer = numbers[0], made;
    CUmemPoolPtrExportData data;
    uint32_t word = 0;
    CUresult r;
    int fd;

    switch ((enum order)message->order) {
    case IMPORT_POOL:
        return import_pool(message);
    case IMPORT:
        return import_pointer(message, pool);
    case IMPORT_TOGETHER:
        return import_together(message, pool);
    case FREE:
        r = cuMemFree(pointer);
        return r == CUDA_SUCCESS ? cuCtxSynchronize() : r; /* pools release memory when the host synchronizes */
    case FREE_ASYNC:
        r = cuMemFreeAsync(pointer, NULL);
        return r == CUDA_SUCCESS ? cuStreamSynchronize(NULL) : r;
    case STEP:
        seeds_step(pointer, (unsigned)numbers[1]);
        return CUDA_SUCCESS;
    case WORD:
        r = cuMemcpyDtoH(&word, pointer, sizeof word);
        numbers[1] = word;
        return r;
    case ALLOCATE:
        return cuMemAllocFromPoolAsync(&made, BYTES, pool, NULL);
    case MAKE_CURRENT:
        return cuDeviceSetMemPool(0, pool);
    case EXPORT:
        return cuMemPoolExportToShareableHandle(&fd, pool, FILE_TYPE, 0);
    case EXPORT_POINTER:
        return cuMemPoolExportPointer(&data, pointer);
    case POOL_OF:
        r = cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer);
        numbers[1] = other == pool;
        return r;
    case DESTROY:
        return cuMemPoolDestroy(pool);
    }
    return CUDA_ERROR_UNKNOWN;
}

/* ---- this process ---- */

static struct peer peer;

static CUresult tell(enum order order, uint64_t a, uint64_t b, uint64_t pool, struct peer_message *out)
{
    struct peer_message message = {.numbers = {a, b, 0, pool}, .fd = -1};
    CUresult r = peer_tell(&peer, order, &message);

    if (out)
        *out = message;
    return r;
}

static CUmemoryPool make_pool(CUmemAllocationHandleType types)
{
    CUmemPoolProps properties;
    CUmemoryPool pool;

    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = types;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ok(cuMemPoolCreate(&pool, &properties));
    return pool;
}

/* The pool in the other process. */
static uint64_t import_there(CUmemoryPool pool)
{
    struct peer_message message = {.fd = -1};

    ok(cuMemPoolExportToShareableHandle(&message.fd, pool, FILE_TYPE, 0));
    ok(peer_tell(&peer, IMPORT_POOL, &message));
    return message.numbers[3];
}

static CUdeviceptr allocate(CUmemoryPool pool, size_t bytes, unsigned value)
{
    CUdeviceptr pointer;

    ok(cuMemAllocFromPoolAsync(&pointer, bytes, pool, NULL));
    ok(cuMemsetD32Async(pointer, value, bytes / 4, NULL));
    ok(cuStreamSynchronize(NULL));
    return pointer;
}

static CUresult import_by(enum order order, CUdeviceptr pointer, uint64_t pool_there, CUdeviceptr *out)
{
    struct peer_message message = {.numbers = {0, 0, 0, pool_there}, .fd = -1};
    CUmemPoolPtrExportData data;
    CUresult r;

    ok(cuMemPoolExportPointer(&data, pointer));
    memcpy(message.bytes, &data, sizeof data);
    r = peer_tell(&peer, order, &message);
    *out = message.numbers[0];
    return r;
}

static CUresult import_pointer_there(CUdeviceptr pointer, uint64_t pool_there, CUdeviceptr *out)
{
    return import_by(IMPORT, pointer, pool_there, out);
}

static uint32_t word_there(CUdeviceptr pointer)
{
    struct peer_message message;

    ok(tell(WORD, pointer, 0, 0, &message));
    return (uint32_t)message.numbers[1];
}

static void free_here(CUdeviceptr pointer)
{
    ok(cuMemFreeAsync(pointer, NULL));
    ok(cuStreamSynchronize(NULL));
}

static void both_work_in_it(void **state)
{
    CUmemoryPool pool = make_pool(FILE_TYPE);
    uint64_t there = import_there(pool);
    CUdeviceptr ours = allocate(pool, BYTES, 7), theirs;
    struct peer_message message;

    (void)state;
    ok(import_pointer_there(ours, there, &theirs));
    assert_int_equal(word_there(theirs), 7);
    ok(tell(STEP, theirs, WORDS, 0, NULL));
    assert_int_equal(word_at(ours), 22);
    assert_int_equal(word_at(ours + BYTES - 4), 22);
    seeds_step(ours, WORDS);
    assert_int_equal(word_there(theirs + BYTES - 4), 67);
    ok(tell(POOL_OF, theirs, 0, there, &message));
    assert_int_equal(message.numbers[1], 1);
    ok(tell(FREE, theirs, 0, 0, NULL));
    assert_int_equal(word_at(ours), 67); /* remains valid in this process */
    free_here(ours);
    ok(tell(DESTROY, 0, 0, there, NULL));
    ok(cuMemPoolDestroy(pool));
}

/* Many pointers of one pool, small and large, freed by either function, in a different order than they were allocated. */
static void many_pointers(void **state)
{
    enum { N = 8 };
    CUmemoryPool pool = make_pool(FILE_TYPE);
    uint64_t there = import_there(pool);
    CUdeviceptr ours[N], theirs[N];

    (void)state;
    for (unsigned i = 0; i < N; i++)
        ours[i] = allocate(pool, i % 3 ? 1000 * (i + 1) : (size_t)20 << 20, 100 + i);
    for (unsigned i = 0; i < N; i++)
        ok(import_pointer_there(ours[i], there, &theirs[i]));
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(word_there(theirs[i]), 100 + i);
        ok(tell(STEP, theirs[i], 250, 0, NULL));
    }
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(word_at(ours[i]), (100 + i) * 3 + 1);
        assert_int_equal(word_at(ours[i] + 996), (100 + i) * 3 + 1);
    }
    for (unsigned i = 0; i < N; i++) {
        unsigned k = i * 5 % N;

        ok(tell(k % 2 ? FREE : FREE_ASYNC, theirs[k], 0, 0, NULL));
        free_here(ours[k]);
    }
    ok(tell(DESTROY, 0, 0, there, NULL));
    ok(cuMemPoolDestroy(pool));
}

/* Memory that was freed in both processes is allocated and shared again. */
static void memory_is_reused(void **state)
{
    CUmemoryPool pool = make_pool(FILE_TYPE);
    uint64_t there = import_there(pool);
    cuuint64_t all = UINT64_MAX;
    CUdeviceptr ours, theirs;

    (void)state;
    ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all)); /* the pool keeps the memory */
    for (unsigned i = 0; i < 10; i++) {
        ours = allocate(pool, BYTES, i);
        ok(import_pointer_there(ours, there, &theirs));
        assert_int_equal(word_there(theirs), i);
        ok(tell(i % 2 ? FREE : FREE_ASYNC, theirs, 0, 0, NULL));
        free_here(ours);
    }
    ok(tell(DESTROY, 0, 0, there, NULL));
    ok(cuMemPoolDestroy(pool));
}

/* "Imported memory pools do not support creating new allocations. As such imported memory pools may not be used in cuDeviceSetMemPool or
 * cuMemAllocFromPoolAsync calls." */
static void imported_pools_allocate_nothing(void **state)
{
    CUmemoryPool pool = make_pool(FILE_TYPE);
    uint64_t there = import_there(pool);
    CUdeviceptr ours = allocate(pool, BYTES, 3), theirs;

    (void)state;
    refuses(CUDA_ERROR_INVALID_VALUE, tell(ALLOCATE, 0, 0, there, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, tell(MAKE_CURRENT, 0, 0, there, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, tell(EXPORT, 0, 0, there, NULL));
    ok(import_pointer_there(ours, there, &theirs));
    refuses(CUDA_ERROR_INVALID_VALUE, tell(EXPORT_POINTER, theirs, 0, 0, NULL));
    ok(tell(FREE, theirs, 0, 0, NULL));
    free_here(ours);
    ok(tell(DESTROY, 0, 0, there, NULL));
    ok(cuMemPoolDestroy(pool));
}

/* The same pointer, which is freed once: not in the manual, but the behaviour of NVIDIA's driver. */
static void importing_twice(void **state)
{
    CUmemoryPool pool = make_pool(FILE_TYPE);
    uint64_t there = import_there(pool);
    CUdeviceptr ours = allocate(pool, BYTES, 4), theirs, again = 0;

    (void)state;
    for (int i = 0; i < (on_cuttle() ? 2 : 1); i++) {
        ok(import_pointer_there(ours, there, &theirs));
        ok(import_pointer_there(ours, there, &again));
        assert_int_equal(again, theirs);
        assert_int_equal(word_there(theirs), 4);
        ok(tell(FREE, theirs, 0, 0, NULL));
        gives(CUDA_ERROR_INVALID_VALUE, tell(WORD, theirs, 0, 0, NULL));
        gives(CUDA_ERROR_INVALID_VALUE, tell(FREE, theirs, 0, 0, NULL));
    }
    free_here(ours);
    ok(tell(DESTROY, 0, 0, there, NULL));
    ok(cuMemPoolDestroy(pool));
}

/* Threads that import the same pointer at once get one mapping, which one call frees. */
static void importing_together(void **state)
{
    CUmemoryPool pool = make_pool(FILE_TYPE);
    uint64_t there = import_there(pool);

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        CUdeviceptr ours = allocate(pool, BYTES, i), theirs;

        ok(import_by(IMPORT_TOGETHER, ours, there, &theirs));
        assert_int_equal(word_there(theirs), i);
        ok(tell(FREE, theirs, 0, 0, NULL));
        gives(CUDA_ERROR_INVALID_VALUE, tell(WORD, theirs, 0, 0, NULL));
        free_here(ours);
    }
    ok(tell(DESTROY, 0, 0, there, NULL));
    ok(cuMemPoolDestroy(pool));
}

static void wrong_arguments_are_refused(void **state)
{
    CUmemoryPool pool = make_pool(FILE_TYPE), private = make_pool(CU_MEM_HANDLE_TYPE_NONE), got = NULL, standard;
    CUdeviceptr ours = allocate(pool, BYTES, 5), own = allocate(private, BYTES, 5), plain, pointer = 77;
    CUmemPoolPtrExportData data;
    unsigned long long types = 77;
    int fd = 77, file = fileno(tmpfile());

    (void)state;
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, ours)); /* its pool was not exported */
    (void)import_there(pool);
    ok(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, ours));
    assert_int_equal(types, FILE_TYPE);
    ok(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, own));
    assert_int_equal(types, CU_MEM_HANDLE_TYPE_NONE);
    ok(cuMemAlloc(&plain, BYTES));
    ok(cuDeviceGetDefaultMemPool(&standard, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, private, FILE_TYPE, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, standard, FILE_TYPE, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(NULL, pool, FILE_TYPE, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, FILE_TYPE, 1));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_NONE, 0));
    assert_int_equal(fd, 77);
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&got, (void *)(intptr_t)file, FILE_TYPE, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&got, (void *)(intptr_t)-1, FILE_TYPE, 0));
    assert_null(got);
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, own));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, plain));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(NULL, ours));
    ok(cuMemPoolExportPointer(&data, ours));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&pointer, pool, &data)); /* it is not an imported pool */
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(NULL, pool, &data));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, ours + 512));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&pointer, MADE_UP(CUmemoryPool), &data));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, MADE_UP(CUmemoryPool), FILE_TYPE, 0));
        gives(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_WIN32, 0));
        assert_int_equal(pointer, 77);
    }
    ok(cuMemFree(plain));
    free_here(ours);
    free_here(own);
    ok(cuMemPoolDestroy(pool));
    ok(cuMemPoolDestroy(private));
}

/* A pointer can be imported only into the pool that it was exported from, and data that was not exported is invalid. */
static void pointers_of_other_pools(void **state)
{
    CUmemoryPool pools[2] = {make_pool(FILE_TYPE), make_pool(FILE_TYPE)};
    uint64_t there[2] = {import_there(pools[0]), import_there(pools[1])};
    CUdeviceptr ours = allocate(pools[0], BYTES, 6), theirs;
    struct peer_message message = {.numbers = {0, 0, 0, there[0]}, .fd = -1};

    (void)state;
    if (on_cuttle()) { /* other drivers may not check this */
        gives(CUDA_ERROR_INVALID_VALUE, import_pointer_there(ours, there[1], &theirs));
        gives(CUDA_ERROR_INVALID_VALUE, peer_tell(&peer, IMPORT, &message));
    }
    ok(import_pointer_there(ours, there[0], &theirs));
    ok(tell(FREE, theirs, 0, 0, NULL));
    free_here(ours);
    for (int i = 0; i < 2; i++) {
        ok(tell(DESTROY, 0, 0, there[i], NULL));
        ok(cuMemPoolDestroy(pools[i]));
    }
}

/* "The imported memory must be freed from all importing processes before being freed in the exporting process": otherwise
 * nothing is damaged in Cuttle, and the freed memory cannot be imported any more. */
static void freed_by_the_owner_first(void **state)
{
    CUmemoryPool pool = make_pool(FILE_TYPE);
    uint64_t there = import_there(pool);
    struct peer_message message = {.numbers = {0, 0, 0, there}, .fd = -1};
    CUdeviceptr ours = allocate(pool, (size_t)40 << 20, 8), theirs;
    CUmemPoolPtrExportData data;

    (void)state;
    if (!on_cuttle()) {
        free_here(ours);
        skip();
    }
    ok(cuMemPoolExportPointer(&data, ours));
    ok(import_pointer_there(ours, there, &theirs));
    free_here(ours);
    ok(cuMemPoolTrimTo(pool, 0));
    ok(tell(WORD, theirs, 0, 0, NULL));
    ok(tell(FREE, theirs, 0, 0, NULL));
    memcpy(message.bytes, &data, sizeof data);
    gives(CUDA_ERROR_INVALID_HANDLE, peer_tell(&peer, IMPORT, &message));
    ok(tell(DESTROY, 0, 0, there, NULL));
    ok(cuMemPoolDestroy(pool));
}

/* The other process exits without having freed or destroyed anything; this process continues. */
static void leaving_with_memory(void **state)
{
    CUmemoryPool pool = make_pool(FILE_TYPE);
    uint64_t there = import_there(pool);
    CUdeviceptr ours = allocate(pool, BYTES, 9), theirs;

    (void)state;
    ok(import_pointer_there(ours, there, &theirs));
    ok(tell(STEP, theirs, WORDS, 0, NULL));
    assert_int_equal(peer_finish(&peer), 0);
    assert_int_equal(word_at(ours), 28);
    free_here(ours);
    ok(cuMemPoolDestroy(pool));
}

static bool is_there(void)
{
    return seeds_attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) & FILE_TYPE;
}

static int start(void **state)
{
    return peer_start_group(state, &peer, is_there, "the device's pools are for one process");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_work_in_it),
        cmocka_unit_test(many_pointers),
        cmocka_unit_test(memory_is_reused),
        cmocka_unit_test(imported_pools_allocate_nothing),
        cmocka_unit_test(importing_twice),
        cmocka_unit_test(importing_together),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(pointers_of_other_pools),
        cmocka_unit_test(freed_by_the_owner_first),
        cmocka_unit_test(leaving_with_memory),
    };

    if (argc > 1 && strcmp(argv[1], "peer") == 0)
        return peer_run(obey);
    return cmocka_run_group_tests(tests, start, without_context);
}
