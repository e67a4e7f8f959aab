/* SPDX-License-Identifier: Apache-2.0 */
/* External semaphores (Driver API: External Resource Interoperability), on the mock backend, since lavapipe has none. The test acts as the
 * other API. tests/processes/interop tests the same with Vulkan, on devices that share semaphores. */
#include "../api/api_test.h"

#include "mock_backend.h"
#include "mock_semaphores.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#define MOMENT_US 20000

struct fixture {
    int files[2];
    CUexternalSemaphore semaphores[2];
    CUstream stream;
    CUdeviceptr word;
};

static CUresult import(int fd, bool timeline, unsigned flags, CUexternalSemaphore *out)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = {.flags = flags};

    desc.type = timeline ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = fd;
    return cuImportExternalSemaphore(out, &desc);
}

static void begin(struct fixture *f, bool timelines)
{
    for (int i = 0; i < 2; i++) {
        f->files[i] = mock_semaphore_make();
        ok(import(dup(f->files[i]), timelines, 0, &f->semaphores[i]));
    }
    ok(cuStreamCreate(&f->stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemAlloc(&f->word, 4));
    ok(cuMemsetD32(f->word, 0, 1));
}

static void finish(struct fixture *f)
{
    ok(cuStreamDestroy(f->stream));
    ok(cuCtxSynchronize());
    ok(cuMemFree(f->word));
    for (int i = 0; i < 2; i++) {
        if (f->semaphores[i])
            ok(cuDestroyExternalSemaphore(f->semaphores[i]));
        close(f->files[i]);
    }
    assert_int_equal(mock_semaphores_imported(), 0);
    mock_semaphores_forget();
}

static CUresult await(CUexternalSemaphore semaphore, uint64_t value, CUstream stream)
{
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params = {.params.fence.value = value};

    return cuWaitExternalSemaphoresAsync(&semaphore, &params, 1, stream);
}

static CUresult signal(CUexternalSemaphore semaphore, uint64_t value, CUstream stream)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params = {.params.fence.value = value};

    return cuSignalExternalSemaphoresAsync(&semaphore, &params, 1, stream);
}

/* Expects that the stream makes no progress. */
static void expect_waiting(struct fixture *f)
{
    usleep(MOMENT_US);
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(f->stream));
}

static unsigned word_of(const struct fixture *f)
{
    unsigned word;

    ok(cuMemcpyDtoH(&word, f->word, 4));
    return word;
}

/* "all prior work on the stream is done" before a signal; commands after a wait are delayed. */
static void in_stream_order(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    ok(await(f.semaphores[0], 3, f.stream));
    ok(cuMemsetD32Async(f.word, 7, 1, f.stream));
    ok(signal(f.semaphores[1], 5, f.stream));
    expect_waiting(&f);
    mock_semaphore_signal(f.files[0], 2); /* less than the awaited value */
    expect_waiting(&f);
    assert_int_equal(mock_semaphore_value(f.files[1]), 0);
    assert_int_equal(word_of(&f), 0);
    mock_semaphore_signal(f.files[0], 3);
    ok(cuStreamSynchronize(f.stream));
    assert_int_equal(mock_semaphore_value(f.files[1]), 5);
    assert_int_equal(word_of(&f), 7);
    ok(await(f.semaphores[0], 1, f.stream)); /* a reached value does not delay */
    ok(cuStreamSynchronize(f.stream));
    finish(&f);
}

static void arrays(void **state)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signals[2] = {{.params.fence.value = 9}, {.params.fence.value = 11}};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[2] = {{.params.fence.value = 3}, {.params.fence.value = 8}};
    struct fixture f;

    (void)state;
    begin(&f, true);
    ok(cuWaitExternalSemaphoresAsync(f.semaphores, waits, 2, f.stream));
    ok(cuSignalExternalSemaphoresAsync(f.semaphores, signals, 2, f.stream));
    mock_semaphore_signal(f.files[1], 8);
    expect_waiting(&f); /* for the first semaphore */
    assert_int_equal(mock_semaphore_value(f.files[1]), 8);
    mock_semaphore_signal(f.files[0], 3);
    ok(cuStreamSynchronize(f.stream));
    assert_int_equal(mock_semaphore_value(f.files[0]), 9);
    assert_int_equal(mock_semaphore_value(f.files[1]), 11);
    ok(cuWaitExternalSemaphoresAsync(NULL, NULL, 0, f.stream));
    ok(cuSignalExternalSemaphoresAsync(NULL, NULL, 0, f.stream));
    finish(&f);
}

/* With a binary semaphore every wait consumes a signal of its own. */
static void binary(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, false);
    mock_semaphore_signal(f.files[0], 0);
    ok(await(f.semaphores[0], 77, f.stream)); /* the value is ignored except for timelines */
    ok(cuStreamSynchronize(f.stream));
    ok(await(f.semaphores[0], 0, f.stream));
    ok(cuMemsetD32Async(f.word, 4, 1, f.stream));
    ok(signal(f.semaphores[1], 0, f.stream));
    expect_waiting(&f);
    assert_int_equal(mock_semaphore_value(f.files[1]), 0);
    mock_semaphore_signal(f.files[0], 0);
    ok(cuStreamSynchronize(f.stream));
    assert_int_equal(mock_semaphore_value(f.files[1]), 1);
    assert_int_equal(word_of(&f), 4);
    finish(&f);
}

/* Two streams are ordered by a semaphore of another API; the wait is recorded first. */
static void between_streams(void **state)
{
    struct fixture f;
    CUstream other;

    (void)state;
    begin(&f, true);
    ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 1; round <= 100; round++) {
        ok(await(f.semaphores[0], round, f.stream));
        ok(cuMemsetD32Async(f.word, round, 1, f.stream));
        ok(signal(f.semaphores[1], round, f.stream));
        ok(await(f.semaphores[1], round - 1, other));
        ok(signal(f.semaphores[0], round, other));
    }
    ok(cuStreamSynchronize(f.stream));
    assert_int_equal(word_of(&f), 100);
    assert_int_equal(mock_semaphore_value(f.files[1]), 100);
    ok(cuStreamDestroy(other));
    finish(&f);
}

/* "For all other types of CUexternalSemaphore, flags must be zero"; with one invalid element, none of the array is used. */
static void bad_arguments(void **state)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signals[2] = {{.params.fence.value = 1}, {.params.fence.value = 1}};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[2] = {{.params.fence.value = 1}, {.params.fence.value = 1}};
    CUexternalSemaphore semaphores[2] = {NULL, NULL};
    struct fixture f;

    (void)state;
    begin(&f, true);
    semaphores[0] = f.semaphores[0];
    gives(CUDA_ERROR_INVALID_HANDLE, cuSignalExternalSemaphoresAsync(semaphores, signals, 2, f.stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuWaitExternalSemaphoresAsync(semaphores, waits, 2, f.stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuSignalExternalSemaphoresAsync(NULL, signals, 1, f.stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuSignalExternalSemaphoresAsync(semaphores, NULL, 1, f.stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuWaitExternalSemaphoresAsync(semaphores, NULL, 1, f.stream));
    gives(CUDA_ERROR_INVALID_HANDLE, cuWaitExternalSemaphoresAsync(semaphores, waits, 1, MADE_UP(CUstream)));
    signals[1].flags = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC;
    waits[1].flags = 4;
    gives(CUDA_ERROR_INVALID_VALUE, cuSignalExternalSemaphoresAsync(f.semaphores, signals, 2, f.stream));
    gives(CUDA_ERROR_INVALID_VALUE, cuWaitExternalSemaphoresAsync(f.semaphores, waits, 2, f.stream));
    ok(cuStreamSynchronize(f.stream));
    for (int i = 0; i < 2; i++)
        assert_int_equal(mock_semaphore_value(f.files[i]), 0);
    finish(&f);
}

/* The driver owns the descriptor on success, and only then. */
static void ownership(void **state)
{
    CUexternalSemaphore semaphore;
    int file = mock_semaphore_make(), fd = dup(file), ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    gives(CUDA_ERROR_OPERATING_SYSTEM, import(ends[0], true, 0, &semaphore));
    gives(CUDA_ERROR_OPERATING_SYSTEM, import(-1, true, 0, &semaphore));
    gives(CUDA_ERROR_INVALID_VALUE, import(fd, true, 1, &semaphore));
    assert_true(fcntl(ends[0], F_GETFD) >= 0 && fcntl(fd, F_GETFD) >= 0);
    ok(import(fd, true, 0, &semaphore));
    assert_true(fcntl(fd, F_GETFD) >= 0);
    ok(cuDestroyExternalSemaphore(semaphore));
    assert_true(fcntl(fd, F_GETFD) < 0);
    gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalSemaphore(semaphore));
    gives(CUDA_ERROR_INVALID_HANDLE, await(semaphore, 0, NULL));
    close(ends[0]);
    close(ends[1]);
    close(file);
    mock_semaphores_forget();
}

/* Pending signals and waits complete after a semaphore is destroyed. */
static void destroyed_while_waited_for(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, true);
    ok(await(f.semaphores[0], 2, f.stream));
    ok(cuMemsetD32Async(f.word, 6, 1, f.stream));
    ok(signal(f.semaphores[1], 2, f.stream));
    for (int i = 0; i < 2; i++) {
        ok(cuDestroyExternalSemaphore(f.semaphores[i]));
        f.semaphores[i] = NULL;
    }
    expect_waiting(&f);
    mock_semaphore_signal(f.files[0], 2);
    ok(cuStreamSynchronize(f.stream));
    assert_int_equal(mock_semaphore_value(f.files[1]), 2);
    assert_int_equal(word_of(&f), 6);
    finish(&f);
}

/* Semaphores are destroyed with their context, and cannot be used in another. */
static void contexts(void **state)
{
    CUexternalSemaphore semaphore;
    CUcontext context;
    int file = mock_semaphore_make();

    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(import(dup(file), true, 0, &semaphore));
    ok(signal(semaphore, 4, NULL));
    ok(cuCtxDestroy(context));
    ok(cuCtxSetCurrent(*state));
    assert_int_equal(mock_semaphores_imported(), 0);
    assert_int_equal(mock_semaphore_value(file), 4);
    gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalSemaphore(semaphore));
    close(file);
    mock_semaphores_forget();
}

/* ---- destruction in one thread while others signal and wait (tests/api/lifetimes_test.c has the other kinds of objects) ---- */

struct race { /* one for each thread, since values of a timeline increase */
    CUcontext context;
    int file;
    _Atomic(CUexternalSemaphore) semaphore;
    atomic_bool over;
    atomic_uint calls, refused, unexpected;
};

static void note(struct race *race, CUresult r)
{
    atomic_fetch_add(&race->calls, 1);
    if (r == CUDA_ERROR_INVALID_HANDLE)
        atomic_fetch_add(&race->refused, 1);
    else if (r != CUDA_SUCCESS)
        atomic_fetch_add(&race->unexpected, 1);
}

/* Waits only for values that were signalled before. */
static void *signal_and_wait(void *argument)
{
    struct race *race = argument;
    uint64_t value = 0;
    CUstream stream;
    CUresult r = cuCtxSetCurrent(race->context);

    if (r == CUDA_SUCCESS)
        r = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    note(race, r);
    while (r == CUDA_SUCCESS && !atomic_load(&race->over)) {
        CUexternalSemaphore semaphore = atomic_load(&race->semaphore);
        CUresult got = signal(semaphore, ++value, stream);

        note(race, got);
        if (got == CUDA_SUCCESS)
            note(race, await(semaphore, value, stream));
        if (value % 16 == 0) /* otherwise the mock gets slower and slower */
            note(race, cuStreamSynchronize(stream));
    }
    note(race, cuStreamSynchronize(stream));
    note(race, cuStreamDestroy(stream));
    return NULL;
}

static void replace(struct race *race)
{
    CUexternalSemaphore semaphore = atomic_load(&race->semaphore);

    if (semaphore)
        ok(cuDestroyExternalSemaphore(semaphore));
    usleep(100);
    ok(import(dup(race->file), true, 0, &semaphore));
    atomic_store(&race->semaphore, semaphore);
}

static void end_race(struct race *race, pthread_t thread)
{
    pthread_join(thread, NULL);
    print_message("%u calls, %u with a destroyed semaphore\n", race->calls, race->refused);
    assert_int_equal(race->unexpected, 0);
    assert_true(race->refused > 0);
    ok(cuDestroyExternalSemaphore(atomic_load(&race->semaphore)));
    close(race->file);
}

static void destruction_races(void **state)
{
    enum { USERS = 3, ROUNDS = 200 };
    struct race races[USERS];
    pthread_t threads[USERS];

    memset(races, 0, sizeof races);
    for (int i = 0; i < USERS; i++) {
        races[i].context = *state;
        races[i].file = mock_semaphore_make();
        replace(&races[i]);
        assert_int_equal(pthread_create(&threads[i], NULL, signal_and_wait, &races[i]), 0);
    }
    for (int i = 0; i < ROUNDS * USERS; i++)
        replace(&races[i % USERS]);
    for (int i = 0; i < USERS; i++)
        atomic_store(&races[i].over, true);
    for (int i = 0; i < USERS; i++)
        end_race(&races[i], threads[i]);
    ok(cuCtxSynchronize());
    assert_int_equal(mock_semaphores_imported(), 0);
    mock_semaphores_forget();
}

static int with_semaphores(void **state)
{
    mock_use_semaphores();
    return with_context(state);
}

/* A graph waits, fills the word, and signals. */
static CUgraph make_graph(const struct fixture *f, CUgraphNode *out_signal)
{
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait_params = {.params.fence.value = 3};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal_params = {.params.fence.value = 5};
    CUexternalSemaphore semaphores[2] = {f->semaphores[0], f->semaphores[1]};
    const CUDA_EXT_SEM_WAIT_NODE_PARAMS wait = {&semaphores[0], &wait_params, 1};
    const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signals = {&semaphores[1], &signal_params, 1};
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = f->word, .value = 7, .elementSize = 4, .width = 1, .height = 1};
    CUcontext context;
    CUgraphNode nodes[2];
    CUgraph graph;

    ok(cuCtxGetCurrent(&context));
    ok(cuGraphCreate(&graph, 0));
    ok(cuGraphAddExternalSemaphoresWaitNode(&nodes[0], graph, NULL, 0, &wait));
    ok(cuGraphAddMemsetNode(&nodes[1], graph, &nodes[0], 1, &fill, context));
    ok(cuGraphAddExternalSemaphoresSignalNode(out_signal, graph, &nodes[1], 1, &signals));
    return graph;
}

static void in_graphs(void **state)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS later = {.params.fence.value = 9};
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signals;
    CUgraphNode node;
    CUgraphExec exec;
    struct fixture f;
    CUgraph graph;

    (void)state;
    begin(&f, true);
    graph = make_graph(&f, &node);
    ok(cuGraphInstantiate(&exec, graph, 0));
    ok(cuGraphLaunch(exec, f.stream));
    expect_waiting(&f);
    assert_int_equal(word_of(&f), 0);
    mock_semaphore_signal(f.files[0], 3);
    ok(cuStreamSynchronize(f.stream));
    assert_int_equal(mock_semaphore_value(f.files[1]), 5);
    assert_int_equal(word_of(&f), 7);
    ok(cuGraphExternalSemaphoresSignalNodeGetParams(node, &signals));
    assert_int_equal(signals.numExtSems, 1);
    assert_int_equal(signals.paramsArray[0].params.fence.value, 5);
    signals.paramsArray = &later;
    ok(cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, node, &signals));
    ok(cuGraphLaunch(exec, f.stream));
    ok(cuStreamSynchronize(f.stream));
    assert_int_equal(mock_semaphore_value(f.files[1]), 9);
    later.flags = 1;
    gives(CUDA_ERROR_INVALID_VALUE, cuGraphExternalSemaphoresSignalNodeSetParams(node, &signals));
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_stream_order),
        cmocka_unit_test(arrays),
        cmocka_unit_test(binary),
        cmocka_unit_test(between_streams),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(ownership),
        cmocka_unit_test(destroyed_while_waited_for),
        cmocka_unit_test(contexts),
        cmocka_unit_test(in_graphs),
        cmocka_unit_test(destruction_races),
    };

    return cmocka_run_group_tests(tests, with_semaphores, without_context);
}
