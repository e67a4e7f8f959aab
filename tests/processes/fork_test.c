/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that fork. CUDA's state does not survive a fork: a child of a process that has called cuInit gets an error from every function, and
 * neither it nor its parent is damaged. Before cuInit a fork has no effect. A plain program of the driver API: NVIDIA's own driver must
 * pass, too. */
#include "../api/memory/seeds.h"

#include <signal.h>
#include <sys/wait.h>

#define PATIENCE_S 10 /* a child that hangs is ended by its alarm */
#define BYTES ((size_t)3 << 20)

static CUdeviceptr memory;
static CUcontext context;
static CUstream queue;
static CUevent event;
static CUmodule module;

/* ---- calls of a child ---- */

static CUresult call_init(void)
{
    return cuInit(0);
}

static CUresult call_count(void)
{
    int count;

    return cuDeviceGetCount(&count);
}

static CUresult call_alloc(void)
{
    CUdeviceptr pointer;

    return cuMemAlloc(&pointer, 4096);
}

static CUresult call_free(void)
{
    return cuMemFree(memory);
}

static CUresult call_fill(void)
{
    return cuMemsetD32(memory, 0, BYTES / 4);
}

static CUresult call_read(void)
{
    char bytes[16];

    return cuMemcpyDtoH(bytes, memory, sizeof bytes);
}

static CUresult call_synchronize(void)
{
    return cuCtxSynchronize();
}

static CUresult call_current(void)
{
    CUcontext current;

    return cuCtxGetCurrent(&current);
}

static CUresult call_create(void)
{
    CUcontext created;

    return cuCtxCreate(&created, NULL, 0, 0);
}

static CUresult call_destroy(void)
{
    return cuCtxDestroy(context);
}

static CUresult call_release(void)
{
    return cuDevicePrimaryCtxRelease(0);
}

static CUresult call_stream(void)
{
    return cuStreamSynchronize(queue);
}

static CUresult call_stream_destroy(void)
{
    return cuStreamDestroy(queue);
}

static CUresult call_event(void)
{
    return cuEventQuery(event);
}

static CUresult call_unload(void)
{
    return cuModuleUnload(module);
}

static CUresult call_share(void)
{
    CUipcMemHandle handle;

    return cuIpcGetMemHandle(&handle, memory);
}

static const struct {
    const char *name;
    CUresult (*call)(void);
} calls[] = {
    {"cuInit", call_init},
    {"cuDeviceGetCount", call_count},
    {"cuCtxGetCurrent", call_current},
    {"cuMemAlloc", call_alloc},
    {"cuMemsetD32", call_fill},
    {"cuMemcpyDtoH", call_read},
    {"cuMemFree", call_free},
    {"cuCtxSynchronize", call_synchronize},
    {"cuStreamSynchronize", call_stream},
    {"cuStreamDestroy", call_stream_destroy},
    {"cuEventQuery", call_event},
    {"cuModuleUnload", call_unload},
    {"cuIpcGetMemHandle", call_share},
    {"cuCtxCreate", call_create},
    {"cuDevicePrimaryCtxRelease", call_release},
    {"cuCtxDestroy", call_destroy},
};
#define N_CALLS (sizeof calls / sizeof *calls)

/* ---- children ---- */

static int finish(pid_t child)
{
    int status = -1;

    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void check_memory(void)
{
    static uint32_t words[BYTES / 4];

    ok(cuMemcpyDtoH(words, memory, BYTES));
    for (size_t i = 0; i < BYTES / 4; i++)
        assert_int_equal(words[i], 0x600d);
}

/* Restores the default signal handlers in a child: cmocka's would continue with the tests. */
static void be_a_child(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    alarm(PATIENCE_S);
}

/* Makes one call in a child of its own, which then calls exit and runs the exit handlers. */
static CUresult try_in_child(CUresult (*call)(void))
{
    int results[2], status;
    CUresult r = CUDA_ERROR_UNKNOWN;
    pid_t child;

    assert_int_equal(pipe(results), 0);
    child = fork();
    if (child == 0) {
        be_a_child();
        r = call();
        exit(write(results[1], &r, sizeof r) == (ssize_t)sizeof r ? 0 : 1);
    }
    close(results[1]);
    status = finish(child);
    if (status == 0)
        assert_int_equal(read(results[0], &r, sizeof r), sizeof r);
    close(results[0]);
    if (status != 0)
        print_message("the child ended with status %#x\n", (unsigned)status);
    assert_int_equal(on_cuttle() ? status : 0, 0); /* other drivers may end it by a signal */
    return r;
}

static void children_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CALLS; i++) {
        CUresult r = try_in_child(calls[i].call);

        if (on_cuttle())
            assert_int_equal(r, CUDA_ERROR_NOT_INITIALIZED);
        else
            print_message("%-26s %s\n", calls[i].name, api_error_name(r));
        check_memory(); /* the children have not changed it */
    }
}

static int to_parent;

static void say_goodbye(void)
{
    (void)!write(to_parent, "handler ", 8);
}

/* exit works in a child as elsewhere: handlers run, streams are flushed, and the status is the child's. */
static void children_exit(void **state)
{
    char text[32] = "";
    int words[2], status;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(words), 0);
    to_parent = words[1];
    child = fork();
    if (child == 0) {
        FILE *stream = fdopen(words[1], "w");

        be_a_child();
        atexit(say_goodbye);
        fprintf(stream, "stream");
        exit(42);
    }
    close(words[1]);
    status = finish(child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_true(read(words[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, "handler stream");
    close(words[0]);
}

/* Functions that need no device still work, and a grandchild behaves as the child. */
static void grandchildren(void **state)
{
    pid_t child = fork();
    const char *name = NULL;
    int version = 0;

    (void)state;
    if (child == 0) {
        pid_t grandchild = fork();

        be_a_child();
        if (grandchild == 0) {
            bool good = cuDriverGetVersion(&version) == CUDA_SUCCESS && cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &name) == CUDA_SUCCESS;

            exit(good && (!on_cuttle() || cuInit(0) == CUDA_ERROR_NOT_INITIALIZED) ? 0 : 1);
        }
        exit(finish(grandchild) == 0 ? 0 : 1);
    }
    assert_int_equal(finish(child), 0);
    check_memory();
}

/* Work that is in flight at the fork is executed once, in the parent. */
static void work_in_flight(void **state)
{
    struct seeds_gate gate;
    CUdeviceptr counter;
    uint32_t value = 0;
    pid_t child;

    (void)state;
    ok(cuMemAlloc(&counter, 4));
    ok(cuMemsetD32(counter, 1, 1));
    seeds_gate_make(&gate);
    ok(cuMemsetD32Async(counter, 5, 1, gate.stream));
    child = fork();
    if (child == 0) {
        be_a_child();
        exit(0);
    }
    assert_int_equal(finish(child), 0);
    ok(cuMemcpyDtoH(&value, counter, 4));
    assert_int_equal(value, 1);
    seeds_gate_finish(&gate);
    seeds_step(counter, 1);
    ok(cuMemcpyDtoH(&value, counter, 4));
    assert_int_equal(value, 16);
    ok(cuMemFree(counter));
}

static atomic_int stop;

static void *keep_busy(void *user)
{
    CUdeviceptr pointer;

    ok(cuCtxSetCurrent(context));
    while (!atomic_load(&stop)) {
        ok(cuMemAlloc(&pointer, *(const size_t *)user));
        ok(cuMemsetD8Async(pointer, 1, 64, NULL));
        ok(cuMemFree(pointer));
    }
    return NULL;
}

static void *fail_busily(void *user)
{
    (void)user;
    ok(cuCtxSetCurrent(context));
    while (!atomic_load(&stop))
        gives(CUDA_ERROR_INVALID_VALUE, cuMemFree(1));
    return NULL;
}

/* Locks that other threads hold at the fork are never released in the child, which must not wait for them. */
static void busy_threads(void **state)
{
    static const size_t sizes[] = {1000, (size_t)2 << 20};
    pthread_t threads[3];

    (void)state;
    if (!on_cuttle()) /* the manual does not specify the behaviour in the child */
        skip();
#ifdef __SANITIZE_ADDRESS__ /* that of gcc 12 may hold its own locks at a fork, and its children then wait for ever */
    skip();
#endif
    atomic_store(&stop, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, (void *)&sizes[i]), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, fail_busily, NULL), 0);
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();

        if (child == 0) {
            be_a_child();
            if (cuInit(77) != CUDA_ERROR_INVALID_VALUE)
                exit(1);
            for (size_t k = 0; k < N_CALLS; k++)
                if (calls[k].call() != CUDA_ERROR_NOT_INITIALIZED)
                    exit(1);
            exit(0);
        }
        assert_int_equal(finish(child), 0);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    check_memory();
}

/* ---- before cuInit ---- */

/* Returns 0 if a process that was forked before cuInit works. */
static int use_device(void)
{
    void *state;

    alarm(PATIENCE_S);
    if (with_context(&state) != 0)
        return 1;
    if (cuMemAlloc(&memory, BYTES) != CUDA_SUCCESS || cuMemsetD32(memory, 7, BYTES / 4) != CUDA_SUCCESS ||
        cuCtxSynchronize() != CUDA_SUCCESS || cuMemFree(memory) != CUDA_SUCCESS)
        return 1;
    return without_context(&state);
}

static int early_status;

static void forked_before_init(void **state)
{
    (void)state;
    assert_int_equal(early_status, 0);
}

static int start(void **state)
{
    if (with_context(state) != 0)
        return -1;
    ok(cuCtxGetCurrent(&context));
    ok(cuMemAlloc(&memory, BYTES));
    ok(cuMemsetD32(memory, 0x600d, BYTES / 4));
    ok(cuStreamCreate(&queue, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuModuleLoadData(&module, seeds_ptx));
    ok(cuCtxSynchronize());
    return 0;
}

static int end(void **state)
{
    ok(cuModuleUnload(module));
    ok(cuEventDestroy(event));
    ok(cuStreamDestroy(queue));
    ok(cuMemFree(memory));
    return without_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forked_before_init), cmocka_unit_test(children_are_refused), cmocka_unit_test(children_exit),
        cmocka_unit_test(grandchildren),      cmocka_unit_test(work_in_flight),       cmocka_unit_test(busy_threads),
    };
    pid_t early = fork();

    if (early == 0)
        exit(use_device());
    waitpid(early, &early_status, 0);
    return cmocka_run_group_tests(tests, start, end);
}
