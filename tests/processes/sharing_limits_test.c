/* SPDX-License-Identifier: Apache-2.0 */
/* A process without free file descriptors or addresses (ulimit -n, ulimit -v) shares memory, pools and events, and opens those of
 * others: it gets the documented error, leaks nothing, and everything works after the limit is lifted. How many resources a call needs
 * depends on the driver: NVIDIA's is called in the same states, but its results are only printed. A plain program of the driver API. */
#include "../api/memory/open_files.h"
#include "peer.h"

#define FILE_TYPE CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define BYTES ((size_t)16 << 20)
#define HEADROOM ((size_t)4 << 20) /* bytes of addresses for other purposes than the memory itself */
#define MOST_FILES 16u             /* the maximum that one call may need */

enum order {
    LIMIT_FILES,     /* numbers[0]: how many more may be opened */
    LIMIT_ADDRESSES, /* HEADROOM more than are in use */
    LIFT,            /* all limits */
    COUNT_FILES,     /* returns numbers[0]: how many are open */
    OPEN,            /* bytes: a memory handle. Gives numbers[0]: the pointer */
    CLOSE,           /* numbers[0]: the pointer */
    OPEN_EVENT,      /* bytes: an event's handle */
    CLOSE_EVENT,
    IMPORT_POOL,    /* fd */
    IMPORT_POINTER, /* bytes: exported data. Gives numbers[0]: the pointer */
    FREE,           /* numbers[0]: that pointer */
    WORD,           /* numbers[0]: a pointer. Gives numbers[1]: the word there */
    MAKE,           /* memory and a pool of its own */
    SHARE,          /* that memory. Gives bytes: its handle */
    EXPORT_POOL,    /* gives fd */
    EXPORT_POINTER, /* of that pool. Gives bytes: the data */
    FORGET,         /* frees all that it owns */
};

/* ---- the other process ---- */

static struct {
    CUevent event;
    CUmemoryPool imported, pool;
    CUdeviceptr memory, pooled;
} its;

static CUresult limit(int what, rlim_t most)
{
    struct rlimit all;

    if (getrlimit(what, &all) != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    all.rlim_cur = most < all.rlim_max ? most : all.rlim_max;
    return setrlimit(what, &all) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult limit_addresses(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    int read = file ? fscanf(file, "%lu", &pages) : 0;

    if (file)
        fclose(file);
    return read == 1 ? limit(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + HEADROOM) : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult lift(void)
{
    CUresult r = limit(RLIMIT_AS, RLIM_INFINITY);

    return r == CUDA_SUCCESS ? limit(RLIMIT_NOFILE, RLIM_INFINITY) : r;
}

static CUresult open_memory(struct peer_message *message)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer = 0;
    CUresult r;

    memcpy(&handle, message->bytes, sizeof handle);
    r = cuIpcOpenMemHandle(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    message->numbers[0] = pointer;
    return r;
}

static CUresult open_event(const struct peer_message *message)
{
    CUipcEventHandle handle;

    memcpy(&handle, message->bytes, sizeof handle);
    return cuIpcOpenEventHandle(&its.event, handle);
}

static CUresult import_pool(struct peer_message *message)
{
    CUresult r = cuMemPoolImportFromShareableHandle(&its.imported, (void *)(intptr_t)message->fd, FILE_TYPE, 0);

    if (message->fd >= 0)
        close(message->fd);
    message->fd = -1;
    return r;
}

static CUresult import_pointer(struct peer_message *message)
{
    CUmemPoolPtrExportData data;
    CUdeviceptr pointer = 0;
    CUresult r;

    memcpy(&data, message->bytes, sizeof data);
    r = cuMemPoolImportPointer(&pointer, its.imported, &data);
    message->numbers[0] = pointer;
    return r;
}

static CUresult share_memory(struct peer_message *message)
{
    CUipcMemHandle handle;
    CUresult r = cuIpcGetMemHandle(&handle, its.memory);

    if (r == CUDA_SUCCESS)
        memcpy(message->bytes, &handle, sizeof handle);
    return r;
}

static CUmemoryPool make_pool(void)
{
    const CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = FILE_TYPE, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool pool;

    ok(cuMemPoolCreate(&pool, &properties));
    return pool;
}

static CUdeviceptr allocate_from(CUmemoryPool pool, uint32_t value)
{
    CUdeviceptr pointer;

    ok(cuMemAllocFromPoolAsync(&pointer, BYTES, pool, NULL));
    ok(cuMemsetD32Async(pointer, value, BYTES / 4, NULL));
    ok(cuStreamSynchronize(NULL));
    return pointer;
}

static CUdeviceptr allocate(uint32_t value)
{
    CUdeviceptr pointer;

    ok(cuMemAlloc(&pointer, BYTES));
    ok(cuMemsetD32(pointer, value, BYTES / 4));
    ok(cuCtxSynchronize());
    return pointer;
}

static CUresult make(void)
{
    its.memory = allocate(5);
    its.pool = make_pool();
    its.pooled = allocate_from(its.pool, 6);
    return CUDA_SUCCESS;
}

static CUresult export_pool(struct peer_message *message)
{
    int fd = -1;
    CUresult r = cuMemPoolExportToShareableHandle(&fd, its.pool, FILE_TYPE, 0);

    message->fd = fd;
    return r;
}

static CUresult export_pointer(struct peer_message *message)
{
    CUmemPoolPtrExportData data;
    CUresult r = cuMemPoolExportPointer(&data, its.pooled);

    if (r == CUDA_SUCCESS)
        memcpy(message->bytes, &data, sizeof data);
    return r;
}

static CUresult forget(void)
{
    if (its.memory)
        ok(cuMemFree(its.memory));
    if (its.pooled)
        ok(cuMemFreeAsync(its.pooled, NULL));
    ok(cuStreamSynchronize(NULL));
    if (its.pool)
        ok(cuMemPoolDestroy(its.pool));
    if (its.imported)
        ok(cuMemPoolDestroy(its.imported));
    memset(&its, 0, sizeof its);
    return CUDA_SUCCESS;
}

static CUresult obey(struct peer_message *message)
{
    uint64_t *numbers = message->numbers;
    uint32_t word = 0;
    CUresult r;

    switch ((enum order)message->order) {
    case LIMIT_FILES:
        return limit(RLIMIT_NOFILE, open_files_limit((unsigned)numbers[0]));
    case LIMIT_ADDRESSES:
        return limit_addresses();
    case LIFT:
        return lift();
    case COUNT_FILES:
        numbers[0] = open_files_count();
        return numbers[0] ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
    case OPEN:
        return open_memory(message);
    case CLOSE:
        return cuIpcCloseMemHandle(numbers[0]);
    case OPEN_EVENT:
        return open_event(message);
    case CLOSE_EVENT:
        return cuEventDestroy(its.event);
    case IMPORT_POOL:
        return import_pool(message);
    case IMPORT_POINTER:
        return import_pointer(message);
    case FREE:
        r = cuMemFreeAsync(numbers[0], NULL);
        return r == CUDA_SUCCESS ? cuStreamSynchronize(NULL) : r;
    case WORD:
        r = cuMemcpyDtoH(&word, numbers[0], sizeof word);
        numbers[1] = word;
        return r;
    case MAKE:
        return make();
    case SHARE:
        return share_memory(message);
    case EXPORT_POOL:
        return export_pool(message);
    case EXPORT_POINTER:
        return export_pointer(message);
    case FORGET:
        return forget();
    }
    return CUDA_ERROR_UNKNOWN;
}

/* ---- this process ---- */

static struct peer peer;

static uint64_t tell(enum order order, uint64_t number)
{
    struct peer_message message = {.numbers = {number}, .fd = -1};

    ok(peer_tell(&peer, order, &message));
    return message.numbers[order == WORD];
}

static const char *const names[] = {[OPEN] = "cuIpcOpenMemHandle",
                                    [OPEN_EVENT] = "cuIpcOpenEventHandle",
                                    [IMPORT_POINTER] = "cuMemPoolImportPointer",
                                    [SHARE] = "cuIpcGetMemHandle",
                                    [EXPORT_POOL] = "cuMemPoolExportToShareableHandle",
                                    [EXPORT_POINTER] = "cuMemPoolExportPointer"};

/* Whether the request is refused; the error must be `code`. */
static bool is_refused(enum order order, CUresult code, struct peer_message *message)
{
    CUresult r = peer_tell(&peer, order, message);

    if (r == CUDA_SUCCESS)
        return false;
    if (on_cuttle())
        gives(code, r);
    else
        print_message("%s: %s\n", names[order], api_error_name(r));
    return true;
}

/* Repeats the request with no free descriptor, one, two, and so on, until it succeeds. *message is the final reply. */
static void until_there_are_files(enum order order, CUresult code, struct peer_message *message)
{
    const struct peer_message question = *message;
    const uint64_t before = tell(COUNT_FILES, 0);
    unsigned more = 0;
    bool refused;

    do {
        *message = question;
        tell(LIMIT_FILES, more);
        refused = is_refused(order, code, message);
        tell(LIFT, 0);
        if (refused)
            assert_int_equal(tell(COUNT_FILES, 0), before);
    } while (refused && ++more < MOST_FILES);
    if (on_cuttle() && (more == 0 || more == MOST_FILES))
        fail_msg("%s succeeds with %u file descriptors", names[order], more);
}

/* Makes the request for memory that is larger than all free addresses. */
static void without_addresses(enum order order, CUresult code, const struct peer_message *question)
{
    const uint64_t before = tell(COUNT_FILES, 0);
    struct peer_message message = *question;
    bool refused;

    tell(LIMIT_ADDRESSES, 0);
    refused = is_refused(order, code, &message);
    tell(LIFT, 0);
    assert_int_equal(tell(COUNT_FILES, 0), before);
    assert_true(refused || !on_cuttle());
    if (!refused) /* NVIDIA's driver reserves its addresses at the start */
        tell(order == OPEN ? CLOSE : FREE, message.numbers[0]);
}

static void memory_is_opened(void **state)
{
    struct peer_message message = {.fd = -1}, question;
    CUipcMemHandle handle;
    CUdeviceptr ours = allocate(3);

    (void)state;
    ok(cuIpcGetMemHandle(&handle, ours));
    memcpy(message.bytes, &handle, sizeof handle);
    question = message;
    without_addresses(OPEN, CUDA_ERROR_MAP_FAILED, &question);
    until_there_are_files(OPEN, CUDA_ERROR_MAP_FAILED, &message);
    assert_int_equal(tell(WORD, message.numbers[0] + BYTES - 4), 3);
    tell(CLOSE, message.numbers[0]);
    ok(cuMemFree(ours));
}

static void events_are_opened(void **state)
{
    struct peer_message message = {.fd = -1};
    CUipcEventHandle handle;
    CUevent event;

    (void)state;
    ok(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    ok(cuIpcGetEventHandle(&handle, event));
    memcpy(message.bytes, &handle, sizeof handle);
    until_there_are_files(OPEN_EVENT, CUDA_ERROR_MAP_FAILED, &message);
    tell(CLOSE_EVENT, 0);
    ok(cuEventDestroy(event));
}

static void pointers_of_pools_are_imported(void **state)
{
    struct peer_message message = {.fd = -1}, question;
    CUmemPoolPtrExportData data;
    CUmemoryPool pool = make_pool();
    CUdeviceptr ours = allocate_from(pool, 4);

    (void)state;
    ok(cuMemPoolExportToShareableHandle(&message.fd, pool, FILE_TYPE, 0));
    ok(peer_tell(&peer, IMPORT_POOL, &message));
    ok(cuMemPoolExportPointer(&data, ours));
    memcpy(message.bytes, &data, sizeof data);
    question = message;
    without_addresses(IMPORT_POINTER, CUDA_ERROR_OUT_OF_MEMORY, &question);
    until_there_are_files(IMPORT_POINTER, CUDA_ERROR_OUT_OF_MEMORY, &message);
    assert_int_equal(tell(WORD, message.numbers[0] + BYTES - 4), 4);
    tell(FREE, message.numbers[0]);
    tell(FORGET, 0);
    ok(cuMemFreeAsync(ours, NULL));
    ok(cuStreamSynchronize(NULL));
    ok(cuMemPoolDestroy(pool));
}

/* The first memory that the other process shares: this starts the thread that sends descriptors. */
static void memory_is_shared(void **state)
{
    struct peer_message message = {.fd = -1};
    CUipcMemHandle handle;
    CUdeviceptr theirs;

    (void)state;
    tell(MAKE, 0);
    until_there_are_files(SHARE, CUDA_ERROR_OUT_OF_MEMORY, &message);
    memcpy(&handle, message.bytes, sizeof handle);
    ok(cuIpcOpenMemHandle(&theirs, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    assert_int_equal(word_at(theirs + BYTES - 4), 5);
    ok(cuIpcCloseMemHandle(theirs));
    tell(FORGET, 0);
}

static void pools_are_exported(void **state)
{
    struct peer_message message = {.fd = -1};
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr theirs;

    (void)state;
    tell(MAKE, 0);
    if (on_cuttle())
        until_there_are_files(EXPORT_POOL, CUDA_ERROR_OUT_OF_MEMORY, &message);
    else /* NVIDIA's driver never exports a pool again after it once had no descriptor for it */
        ok(peer_tell(&peer, EXPORT_POOL, &message));
    ok(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)message.fd, FILE_TYPE, 0));
    close(message.fd);
    message.fd = -1;
    until_there_are_files(EXPORT_POINTER, CUDA_ERROR_OUT_OF_MEMORY, &message);
    memcpy(&data, message.bytes, sizeof data);
    ok(cuMemPoolImportPointer(&theirs, pool, &data));
    assert_int_equal(word_at(theirs + BYTES - 4), 6);
    ok(cuMemFreeAsync(theirs, NULL));
    ok(cuStreamSynchronize(NULL));
    ok(cuMemPoolDestroy(pool));
    tell(FORGET, 0);
}

static bool is_there(void)
{
    return seeds_attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) & FILE_TYPE;
}

static int start(void **state)
{
    return peer_start_group(state, &peer, is_there, "the device shares no memory with other processes");
}

static int finish(void **state)
{
    return peer_finish(&peer) == 0 ? without_context(state) : -1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_opened), cmocka_unit_test(events_are_opened),  cmocka_unit_test(pointers_of_pools_are_imported),
        cmocka_unit_test(memory_is_shared), cmocka_unit_test(pools_are_exported),
    };

    if (argc > 1 && strcmp(argv[1], "peer") == 0)
        return peer_run(obey);
    return cmocka_run_group_tests(tests, start, finish);
}
