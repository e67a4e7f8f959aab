/* SPDX-License-Identifier: Apache-2.0 */
/* Memory between processes (Driver API: cuIpcGetMemHandle, cuIpcOpenMemHandle, cuIpcCloseMemHandle), with real processes. A plain program of
 * the driver API: NVIDIA's own driver must pass, too. The manual does not specify which error is returned when; the tests have Cuttle's. */
#include "peer.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <time.h>

#define LARGE ((size_t)3 << 20)
#define SMALL ((size_t)5000) /* not a multiple of the allocation granularity */
#define FLAG CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

enum order {
    OPEN,                /* bytes: a handle; numbers[0]: flags. Gives numbers[0]: the pointer */
    CLOSE,               /* numbers[0]: a pointer */
    FREE,                /* numbers[0]: a pointer, by cuMemFree */
    STEP,                /* numbers: pointer, words. The kernel of seeds_step */
    FILL,                /* numbers: pointer, words, value */
    WORD,                /* numbers: pointer. Gives numbers[1]: the word there */
    RANGE,               /* numbers: pointer. Gives its allocation's base and size in numbers[1] and [2] */
    SHARE,               /* numbers: pointer. Gives bytes: a handle of it */
    ALLOCATE,            /* numbers[0]: bytes. Gives numbers[0]: the pointer */
    OPEN_IN_NEW_CONTEXT, /* as OPEN, in a context of its own, which is destroyed with the memory still open */
};

/* ---- the other process ---- */

static CUresult open_handle(struct peer_message *message)
{
    CUdeviceptr pointer = 0;
    CUipcMemHandle handle;
    CUresult r;

    memcpy(&handle, message->bytes, sizeof handle);
    r = cuIpcOpenMemHandle(&pointer, handle, (unsigned)message->numbers[0]);
    message->numbers[0] = pointer;
    return r;
}

static CUresult open_in_new_context(struct peer_message *message)
{
    CUcontext before, context;
    uint32_t word = 0;
    CUresult r, r_read = CUDA_SUCCESS;

    cuCtxGetCurrent(&before);
    if ((r = cuCtxCreate(&context, NULL, 0, 0)) != CUDA_SUCCESS)
        return r;
    r = open_handle(message);
    if (r == CUDA_SUCCESS)
        r_read = cuMemcpyDtoH(&word, message->numbers[0], sizeof word);
    message->numbers[1] = word;
    cuCtxDestroy(context);
    cuCtxSetCurrent(before);
    return r == CUDA_SUCCESS ? r_read : r;
}

static CUresult obey(struct peer_message *message)
{
    uint64_t *numbers = message->numbers;
    CUdeviceptr pointer = numbers[0], start = 0;
    CUipcMemHandle handle;
    uint32_t word = 0;
    size_t size = 0;
    CUresult r;

    switch ((enum order)message->order) {
    case OPEN:
        return open_handle(message);
    case CLOSE:
        return cuIpcCloseMemHandle(pointer);
    case FREE:
        return cuMemFree(pointer);
    case STEP:
        seeds_step(pointer, (unsigned)numbers[1]);
        return CUDA_SUCCESS;
    case FILL:
        r = cuMemsetD32(pointer, (unsigned)numbers[2], numbers[1]);
        return r == CUDA_SUCCESS ? cuCtxSynchronize() : r;
    case WORD:
        r = cuMemcpyDtoH(&word, pointer, sizeof word);
        numbers[1] = word;
        return r;
    case RANGE:
        r = cuMemGetAddressRange(&start, &size, pointer);
        numbers[1] = start;
        numbers[2] = size;
        return r;
    case SHARE:
        r = cuIpcGetMemHandle(&handle, pointer);
        memcpy(message->bytes, &handle, sizeof handle);
        return r;
    case ALLOCATE:
        r = cuMemAlloc(&start, numbers[0]);
        numbers[0] = start;
        return r;
    case OPEN_IN_NEW_CONTEXT:
        return open_in_new_context(message);
    }
    return CUDA_ERROR_UNKNOWN;
}

/* ---- this process ---- */

static struct peer peer;

static CUresult tell(enum order order, uint64_t a, uint64_t b, uint64_t c, struct peer_message *out)
{
    struct peer_message message = {.numbers = {a, b, c}, .fd = -1};
    CUresult r = peer_tell(&peer, order, &message);

    if (out)
        *out = message;
    return r;
}

/* Opens the handle in the other process and returns its pointer; `r` is the result of opening. */
static CUdeviceptr open_there(const CUipcMemHandle *handle, CUresult *r)
{
    struct peer_message message = {.numbers = {FLAG}, .fd = -1};

    memcpy(message.bytes, handle, sizeof *handle);
    *r = peer_tell(&peer, OPEN, &message);
    return message.numbers[0];
}

static CUdeviceptr must_open_there(const CUipcMemHandle *handle)
{
    CUresult r;
    CUdeviceptr pointer = open_there(handle, &r);

    assert_int_equal(r, CUDA_SUCCESS);
    return pointer;
}

static CUdeviceptr allocate_filled(size_t size, uint32_t value, CUipcMemHandle *handle)
{
    CUdeviceptr pointer;

    ok(cuMemAlloc(&pointer, size));
    ok(cuMemsetD32(pointer, value, size / 4));
    ok(cuCtxSynchronize());
    ok(cuIpcGetMemHandle(handle, pointer));
    return pointer;
}

/* Each process reads what the other writes, by kernels, fills and copies. */
static void both_write(size_t size)
{
    const unsigned words = SEEDS_WORDS < size / 4 ? SEEDS_WORDS : (unsigned)(size / 4);
    struct peer_message message;
    CUipcMemHandle handle;
    CUdeviceptr ours = allocate_filled(size, 7, &handle), theirs = must_open_there(&handle);

    ok(tell(STEP, theirs, words, 0, NULL));
    assert_int_equal(word_at(ours), 22);
    assert_int_equal(word_at(ours + 4 * (words - 1)), 22);
    seeds_step(ours, words);
    ok(tell(WORD, theirs + 4 * (words - 1), 0, 0, &message));
    assert_int_equal(message.numbers[1], 67);
    ok(tell(FILL, theirs, size / 4, 99, NULL));
    assert_int_equal(word_at(ours + size / 4 * 4 - 4), 99);
    ok(tell(CLOSE, theirs, 0, 0, NULL));
    assert_int_equal(word_at(ours), 99); /* remains valid in this process */
    ok(cuMemFree(ours));
}

static void large_memory(void **state)
{
    (void)state;
    both_write(LARGE);
}

static void small_memory(void **state)
{
    CUdeviceptr before, after;

    (void)state;
    ok(cuMemAlloc(&before, 600)); /* so that the next one does not begin at an allocation of the driver */
    both_write(SMALL);
    ok(cuMemAlloc(&after, 4));
    ok(cuMemFree(before));
    ok(cuMemFree(after));
}

/* Adjacent allocations are shared separately. */
static void neighbours_are_apart(void **state)
{
    enum { N = 5 };
    CUdeviceptr ours[N], theirs[N];
    CUipcMemHandle handles[N];
    struct peer_message message;

    (void)state;
    for (unsigned i = 0; i < N; i++)
        ours[i] = allocate_filled(SMALL, 100 + i, &handles[i]);
    for (unsigned i = 0; i < N; i++)
        theirs[i] = must_open_there(&handles[i]);
    for (unsigned i = 0; i < N; i++) {
        ok(tell(WORD, theirs[i], 0, 0, &message));
        assert_int_equal(message.numbers[1], 100 + i);
        ok(tell(FILL, theirs[i], SMALL / 4, 200 + i, NULL));
    }
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(word_at(ours[i]), 200 + i);
        assert_int_equal(word_at(ours[i] + SMALL - 4), 200 + i);
        ok(tell(CLOSE, theirs[i], 0, 0, NULL));
        ok(cuMemFree(ours[i]));
    }
}

/* "takes a pointer to the base of an existing device memory allocation"; the opened pointer is the base of an allocation, too. */
static void whole_allocation_is_shared(void **state)
{
    struct peer_message message;
    CUipcMemHandle handle, inner;
    CUdeviceptr ours = allocate_filled(LARGE, 5, &handle), theirs = must_open_there(&handle);
    CUresult r;

    (void)state;
    ok(tell(RANGE, theirs + 100, 0, 0, &message));
    assert_int_equal(message.numbers[1], theirs);
    assert_true(message.numbers[2] >= LARGE);
    ok(cuMemsetD32(ours, 6, 1));
    ok(cuCtxSynchronize());
    r = cuIpcGetMemHandle(&inner, ours + 4096);
    if (r == CUDA_SUCCESS) {
        CUdeviceptr again = must_open_there(&inner);

        ok(tell(WORD, again, 0, 0, &message));
        assert_int_equal(message.numbers[1], 6); /* its beginning */
        ok(tell(CLOSE, again, 0, 0, NULL));
    } else {
        print_message("a handle of a pointer into an allocation: %s\n", api_error_name(r));
    }
    assert_false(on_cuttle() && r != CUDA_SUCCESS);
    ok(tell(CLOSE, theirs, 0, 0, NULL));
    ok(cuMemFree(ours));
}

/* "If the memory handle has already been opened by the current context, the reference count on the handle is incremented by 1 and the
 * existing device pointer is returned." */
static void opening_counts(void **state)
{
    struct peer_message message;
    CUipcMemHandle handle;
    CUdeviceptr ours = allocate_filled(LARGE, 11, &handle), first = must_open_there(&handle);

    (void)state;
    assert_int_equal(must_open_there(&handle), first);
    ok(tell(CLOSE, first, 0, 0, NULL));
    ok(tell(WORD, first, 0, 0, &message));
    assert_int_equal(message.numbers[1], 11);
    ok(tell(CLOSE, first, 0, 0, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, tell(CLOSE, first, 0, 0, NULL));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, tell(WORD, first, 0, 0, NULL));
    ok(tell(CLOSE, must_open_there(&handle), 0, 0, NULL)); /* and again */
    ok(cuMemFree(ours));
}

/* "Memory returned from cuIpcOpenMemHandle must be freed with cuIpcCloseMemHandle." */
static void only_closing_frees(void **state)
{
    struct peer_message message;
    CUipcMemHandle handle;
    CUdeviceptr ours = allocate_filled(SMALL, 12, &handle), theirs = must_open_there(&handle);

    (void)state;
    refuses(CUDA_ERROR_INVALID_VALUE, tell(FREE, theirs, 0, 0, NULL));
    ok(tell(WORD, theirs, 0, 0, &message));
    assert_int_equal(message.numbers[1], 12);
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, tell(CLOSE, theirs + 4, 0, 0, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, tell(SHARE, theirs, 0, 0, NULL)); /* only the creator can export it */
    ok(tell(CLOSE, theirs, 0, 0, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(ours));
    ok(cuMemFree(ours));
    refuses(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(0));
}

/* Destroying a context closes the memory that is open in it. */
static void contexts_close(void **state)
{
    struct peer_message message = {.numbers = {FLAG}, .fd = -1};
    CUipcMemHandle handle;
    CUdeviceptr ours = allocate_filled(LARGE, 13, &handle);

    (void)state;
    for (int i = 0; i < 3; i++) {
        message = (struct peer_message){.numbers = {FLAG}, .fd = -1};
        memcpy(message.bytes, &handle, sizeof handle);
        ok(peer_tell(&peer, OPEN_IN_NEW_CONTEXT, &message));
        assert_int_equal(message.numbers[1], 13);
    }
    ok(tell(CLOSE, must_open_there(&handle), 0, 0, NULL));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, tell(CLOSE, message.numbers[0], 0, 0, NULL));
    ok(cuMemFree(ours));
}

/* "cuIpcMemHandles from each CUdevice in a given process may only be opened by one CUcontext per CUdevice per other process." */
static void only_one_context_opens(void **state)
{
    struct peer_message message = {.numbers = {FLAG}, .fd = -1};
    CUipcMemHandle handle;
    CUdeviceptr ours = allocate_filled(LARGE, 14, &handle), theirs = must_open_there(&handle);

    (void)state;
    memcpy(message.bytes, &handle, sizeof handle);
    gives(CUDA_ERROR_INVALID_HANDLE, peer_tell(&peer, OPEN_IN_NEW_CONTEXT, &message));
    ok(tell(WORD, theirs, 0, 0, &message));
    assert_int_equal(message.numbers[1], 14);
    ok(tell(CLOSE, theirs, 0, 0, NULL));
    ok(cuMemFree(ours));
}

static void wrong_arguments_are_refused(void **state)
{
    struct peer_message message = {.fd = -1};
    CUipcMemHandle handle, nothing;
    CUdeviceptr ours = allocate_filled(SMALL, 15, &handle), got = 77;

    (void)state;
    memset(&nothing, 0, sizeof nothing);
    gives(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(NULL, ours));
    gives(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&nothing, 0));
    gives(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(NULL, handle, FLAG));
    memcpy(message.bytes, &handle, sizeof handle);
    refuses(CUDA_ERROR_INVALID_VALUE, peer_tell(&peer, OPEN, &message)); /* without the flag */
    memset(&nothing, 0, sizeof nothing);
    refuses(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&got, nothing, 2));
    refuses(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle(&got, handle, FLAG)); /* of this process itself */
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle(&got, nothing, FLAG));
        memset(&handle, 0x5a, sizeof handle);
        gives(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle(&got, handle, FLAG));
    }
    assert_int_equal(got, 77);
    ok(cuMemFree(ours));
    refuses(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&nothing, ours));
}

/* Only memory of cuMemAlloc has handles; the attribute reports this. */
static void legal(CUdeviceptr pointer, bool capable, const char *what)
{
    CUipcMemHandle handle;
    unsigned said = 77;
    CUresult r = cuIpcGetMemHandle(&handle, pointer);

    ok(cuPointerGetAttribute(&said, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pointer));
    print_message("%-10s %s, attribute %u\n", what, api_error_name(r), said);
    assert_int_equal(said, capable);
    assert_int_equal(r == CUDA_SUCCESS, capable);
    if (on_cuttle() && !capable)
        assert_int_equal(r, CUDA_ERROR_INVALID_VALUE);
}

static void which_memory_is_legal(void **state)
{
    CUdeviceptr pointer;
    void *host;

    (void)state;
    ok(cuMemAlloc(&pointer, SMALL));
    legal(pointer, true, "cuMemAlloc");
    ok(cuMemFree(pointer));
    ok(cuMemAllocAsync(&pointer, SMALL, NULL));
    ok(cuCtxSynchronize());
    legal(pointer, false, "a pool");
    ok(cuMemFree(pointer));
    ok(cuMemHostAlloc(&host, SMALL, CU_MEMHOSTALLOC_DEVICEMAP));
    ok(cuMemHostGetDevicePointer(&pointer, host, 0));
    legal(pointer, false, "host");
    ok(cuMemFreeHost(host));
    if (seeds_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
        ok(cuMemAllocManaged(&pointer, SMALL, CU_MEM_ATTACH_GLOBAL));
        legal(pointer, false, "managed");
        ok(cuMemFree(pointer));
    }
    if (vm_is_there()) {
        CUmemGenericAllocationHandle physical = vm_create(1);

        ok(cuMemAddressReserve(&pointer, vm_granule(), 0, 0, 0));
        ok(cuMemMap(pointer, vm_granule(), 0, physical, 0));
        ok(vm_access(pointer, vm_granule(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        legal(pointer, false, "cuMemMap");
        ok(cuMemUnmap(pointer, vm_granule()));
        ok(cuMemAddressFree(pointer, vm_granule()));
        ok(cuMemRelease(physical));
    }
}

/* On CPU devices a handle's descriptor is that of all the device's memory, which a process that is not dumpable keeps to itself. */
static void a_process_that_is_not_dumpable_shares_no_pages(void **state)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    char name[256];
    int uses_pages = 0; /* also of OpenCL's CPU devices; some forms of this test take it away from lavapipe */
    CUresult r;

    (void)state;
    ok(cuDeviceGetName(name, sizeof name, 0));
    ok(cuDeviceGetAttribute(&uses_pages, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0));
    ok(cuMemAlloc(&pointer, LARGE));
    assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
    r = cuIpcGetMemHandle(&handle, pointer);
    if (on_cuttle() && (uses_pages || strstr(name, "llvmpipe")))
        assert_int_equal(r, CUDA_ERROR_NOT_SUPPORTED);
    else
        assert_int_equal(r, CUDA_SUCCESS);
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
    ok(cuIpcGetMemHandle(&handle, pointer));
    ok(cuMemFree(pointer));
}

/* "Calling cuMemFree on an exported memory region before calling cuIpcCloseMemHandle in the importing context will result in undefined
 * behavior": in Cuttle nothing is damaged, and the handle becomes invalid. */
static void freed_before_closed(void **state)
{
    CUipcMemHandle handle;
    CUdeviceptr ours, theirs;
    CUresult r;

    (void)state;
    if (!on_cuttle())
        skip();
    for (size_t size = SMALL; size <= LARGE; size += LARGE - SMALL) {
        ours = allocate_filled(size, 16, &handle);
        theirs = must_open_there(&handle);
        ok(cuMemFree(ours));
        ok(tell(WORD, theirs, 0, 0, NULL));
        open_there(&handle, &r);
        assert_int_equal(r, CUDA_SUCCESS); /* it is already open there */
        ok(tell(CLOSE, theirs, 0, 0, NULL));
        ok(tell(CLOSE, theirs, 0, 0, NULL));
        open_there(&handle, &r);
        assert_int_equal(r, CUDA_ERROR_INVALID_HANDLE);
    }
}

/* ---- opening in several threads ---- */

/* How a handle of Cuttle begins (core/ipc/memory_share.h). */
struct name {
    char magic[8];
    uint64_t process;
    int32_t pid, kind;
};

/* A handle of a process that never answers: the name is that of a socket of this process, which the caller listens at. */
static int listen_as_another_process(CUipcMemHandle *handle)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct name name;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), length;

    memcpy(&name, handle, sizeof name);
    name.pid = getpid();
    name.process ^= UINT64_C(0x5a5a5a5a5a5a5a5a);
    memcpy(handle, &name, sizeof name);
    length =
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "cuttle-%d-%016llx", (int)name.pid, (unsigned long long)name.process);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

struct opening {
    CUcontext context;
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    CUresult r;
};

static void *open_in_thread(void *argument)
{
    struct opening *opening = argument;

    opening->r = cuCtxSetCurrent(opening->context);
    if (opening->r == CUDA_SUCCESS)
        opening->r = cuIpcOpenMemHandle(&opening->pointer, opening->handle, FLAG);
    return NULL;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A process that does not answer is given up after 5 seconds. Meanwhile handles of others open. */
static void nobody_waits_for_a_silent_process(void **state)
{
    struct opening silent = {.context = *state}, proper = {.context = *state};
    struct peer_message message;
    CUdeviceptr theirs;
    pthread_t thread;
    double seconds;
    int fd, link;
    char request[256];

    if (!on_cuttle())
        skip();
    ok(tell(ALLOCATE, LARGE, 0, 0, &message));
    theirs = message.numbers[0];
    ok(tell(SHARE, theirs, 0, 0, &message));
    memcpy(&proper.handle, message.bytes, sizeof proper.handle);
    silent.handle = proper.handle;
    fd = listen_as_another_process(&silent.handle);
    assert_int_equal(pthread_create(&thread, NULL, open_in_thread, &silent), 0);
    link = accept(fd, NULL, NULL);
    assert_true(recv(link, request, sizeof request, 0) > 0); /* the thread waits for the answer now */
    seconds = now_s();
    open_in_thread(&proper);
    ok(proper.r);
    ok(cuIpcCloseMemHandle(proper.pointer));
    seconds = now_s() - seconds;
    print_message("opening and closing take %.3f s\n", seconds);
    pthread_join(thread, NULL);
    close(link);
    close(fd);
    gives(CUDA_ERROR_MAP_FAILED, silent.r);
    assert_true(seconds < 2);
    ok(tell(FREE, theirs, 0, 0, NULL));
}

/* Threads that open a handle at once get the same pointer, and each has to close it. */
static void threads_open_the_same_handle(void **state)
{
    enum { THREADS = 4 };
    struct opening openings[THREADS];
    struct peer_message message;
    pthread_t threads[THREADS];
    CUdeviceptr theirs;

    ok(tell(ALLOCATE, LARGE, 0, 0, &message));
    theirs = message.numbers[0];
    ok(tell(SHARE, theirs, 0, 0, &message));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < THREADS; i++) {
            openings[i] = (struct opening){.context = *state};
            memcpy(&openings[i].handle, message.bytes, sizeof openings[i].handle);
            assert_int_equal(pthread_create(&threads[i], NULL, open_in_thread, &openings[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) {
            ok(openings[i].r);
            assert_int_equal(openings[i].pointer, openings[0].pointer);
            ok(cuIpcCloseMemHandle(openings[i].pointer));
        }
        refuses(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(openings[0].pointer));
    }
    ok(tell(FREE, theirs, 0, 0, NULL));
}

/* The last test: when a process dies, its memory remains valid in processes that have opened it, and its handles become invalid. */
static void death_of_the_owner(void **state)
{
    struct peer_message message;
    CUipcMemHandle handle;
    CUdeviceptr theirs, opened, again;

    (void)state;
    ok(tell(ALLOCATE, LARGE, 0, 0, &message));
    theirs = message.numbers[0];
    ok(tell(FILL, theirs, LARGE / 4, 17, NULL));
    ok(tell(SHARE, theirs, 0, 0, &message));
    memcpy(&handle, message.bytes, sizeof handle);
    ok(cuIpcOpenMemHandle(&opened, handle, FLAG));
    assert_int_equal(word_at(opened + LARGE - 4), 17);
    peer_kill(&peer);
    if (on_cuttle()) {
        assert_int_equal(word_at(opened + LARGE - 4), 17);
        seeds_step(opened, SEEDS_WORDS);
        assert_int_equal(word_at(opened), 52);
    }
    ok(cuIpcCloseMemHandle(opened));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle(&again, handle, FLAG));
}

static bool is_there(void)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    CUresult r;

    ok(cuMemAlloc(&pointer, SMALL));
    r = cuIpcGetMemHandle(&handle, pointer);
    ok(cuMemFree(pointer));
    return r != CUDA_ERROR_NOT_SUPPORTED;
}

static int start(void **state)
{
    return peer_start_group(state, &peer, is_there, "the device shares no memory with other processes");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_memory),
        cmocka_unit_test(small_memory),
        cmocka_unit_test(neighbours_are_apart),
        cmocka_unit_test(whole_allocation_is_shared),
        cmocka_unit_test(opening_counts),
        cmocka_unit_test(only_closing_frees),
        cmocka_unit_test(contexts_close),
        cmocka_unit_test(only_one_context_opens),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(which_memory_is_legal),
        cmocka_unit_test(a_process_that_is_not_dumpable_shares_no_pages),
        cmocka_unit_test(freed_before_closed),
        cmocka_unit_test(nobody_waits_for_a_silent_process),
        cmocka_unit_test(threads_open_the_same_handle),
        cmocka_unit_test(death_of_the_owner),
    };

    if (argc > 1 && strcmp(argv[1], "peer") == 0)
        return peer_run(obey);
    return cmocka_run_group_tests(tests, start, without_context);
}
