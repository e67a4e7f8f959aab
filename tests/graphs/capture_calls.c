/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions of the API are allowed while streams are captured: every symbol of entry_points.def is called in each of the situations below, and
 * its result and its effect on the capture are compared with src/api/capture_unsafe.def and capture_calls.def. A call that is not forbidden gives
 * the same result as without a capture, and leaves the capture valid. With NVIDIA's driver this checks the tables.
 *
 * Calls run in a child process, which is started again if a call ends it. */
#include "every_call.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum situation { NO_CAPTURE, GLOBAL, RELAXED, OWN_GLOBAL, OWN_RELAXED, BLOCKING, OF_THREAD, EXCHANGED, SITUATIONS };

enum { UNSAFE_CALL = 1, STREAM_CALL = 2, LEGACY_CALL = 4, CONTEXT_CALL = 8 };

/* `forbids`: which calls give STREAM_CAPTURE_UNSUPPORTED. */
static const struct {
    const char *name;
    CUstreamCaptureMode mode;
    unsigned forbids;
    bool is_own;       /* the stream of the calls is captured, not another one */
    bool is_blocking;  /* one for which the legacy stream would wait */
    bool of_thread;    /* another thread has begun the capture */
    bool is_exchanged; /* the calling thread's mode is RELAXED */
} situations[SITUATIONS] = {
    [NO_CAPTURE] = {.name = "without a capture"},
    [GLOBAL] = {"beside a capture", CU_STREAM_CAPTURE_MODE_GLOBAL, UNSAFE_CALL | CONTEXT_CALL, .is_own = false},
    [RELAXED] = {"beside a relaxed capture", CU_STREAM_CAPTURE_MODE_RELAXED, CONTEXT_CALL, .is_own = false},
    [OWN_GLOBAL] = {"in a captured stream", CU_STREAM_CAPTURE_MODE_GLOBAL, UNSAFE_CALL | STREAM_CALL | CONTEXT_CALL, .is_own = true},
    [OWN_RELAXED] = {"in a relaxed capture", CU_STREAM_CAPTURE_MODE_RELAXED, STREAM_CALL | CONTEXT_CALL, .is_own = true},
    [BLOCKING] = {"beside a captured blocking stream", CU_STREAM_CAPTURE_MODE_RELAXED, CONTEXT_CALL, .is_blocking = true},
    [OF_THREAD] = {"beside a thread's capture", CU_STREAM_CAPTURE_MODE_GLOBAL, UNSAFE_CALL | CONTEXT_CALL, .of_thread = true},
    [EXCHANGED] = {"in a relaxed thread", CU_STREAM_CAPTURE_MODE_GLOBAL, CONTEXT_CALL, .is_exchanged = true},
};

static const unsigned char kinds[CT_ROW_COUNT] = {
#define UNSAFE(symbol) [CT_ROW_##symbol] = UNSAFE_CALL,
#include "capture_unsafe.def"
#define UNSAFE_HERE(symbol) [CT_ROW_##symbol] = UNSAFE_CALL,
#define STREAM(symbol) [CT_ROW_##symbol] = STREAM_CALL,
#define WAITS(symbol) [CT_ROW_##symbol] = UNSAFE_CALL | STREAM_CALL,
#define LEGACY(symbol) [CT_ROW_##symbol] = LEGACY_CALL,
#define CONTEXT(symbol) [CT_ROW_##symbol] = CONTEXT_CALL,
#include "capture_calls.def"
};

static const bool is_left_out[CT_ROW_COUNT] = {
#define OTHERWISE(symbol, reason) [CT_ROW_##symbol] = true,
#include "capture_calls.def"
};

struct outcome {
    bool is_done;
    CUresult code;
    CUstreamCaptureStatus status;
};

/* Memory shared with the child. */
static struct {
    _Atomic size_t next; /* the call that the child makes, or makes next */
    struct outcome outcomes[SITUATIONS][CT_ENTRY_POINT_COUNT];
} *shared;

struct capture {
    enum situation situation;
    CUstream stream;
    CUresult result;
};

static void *begin(void *user)
{
    struct capture *capture = user;

    cuCtxSetCurrent(at.context);
    capture->result = cuStreamBeginCapture_v2(capture->stream, situations[capture->situation].mode);
    return NULL;
}

static void *end(void *user)
{
    struct capture *capture = user;
    CUgraph graph = NULL;

    cuCtxSetCurrent(at.context);
    capture->result = cuStreamEndCapture(capture->stream, &graph);
    if (graph)
        cuGraphDestroy(graph);
    return NULL;
}

static void run(void *(*function)(void *), struct capture *capture)
{
    pthread_t thread;

    if (!situations[capture->situation].of_thread) {
        function(capture);
    } else if (pthread_create(&thread, NULL, function, capture) == 0) {
        pthread_join(thread, NULL);
    }
}

static void exchange(enum situation situation, CUstreamCaptureMode mode)
{
    if (situations[situation].is_exchanged)
        cuThreadExchangeStreamCaptureMode(&mode);
}

static void call_in(enum situation situation, size_t i, struct outcome *out)
{
    struct capture capture = {situation, situations[situation].is_own ? at.stream : at.runner, CUDA_SUCCESS};
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

    if (situations[situation].is_blocking)
        cuStreamCreate(&capture.stream, CU_STREAM_DEFAULT);
    if (situation != NO_CAPTURE)
        run(begin, &capture);
    if (capture.result != CUDA_SUCCESS)
        exit(EXIT_FAILURE);
    exchange(situation, CU_STREAM_CAPTURE_MODE_RELAXED);
    out->code = every_call(&every_call_subjects[i]);
    cuThreadExchangeStreamCaptureMode(&mode); /* the call may have changed it, too */
    if (situation != NO_CAPTURE) {
        cuStreamIsCapturing(capture.stream, &out->status);
        run(end, &capture);
    }
    out->is_done = true;
}

static bool is_compared(size_t i)
{
    return !is_left_out[every_call_subjects[i].row];
}

/* A call that succeeds may destroy objects, so it is followed by fresh ones. */
static void run_from(enum situation situation, size_t first)
{
    bool is_prepared = false;

    for (size_t i = first; i < CT_ENTRY_POINT_COUNT; i++) {
        struct outcome *outcome = &shared->outcomes[situation][i];

        atomic_store(&shared->next, i);
        if (!is_compared(i))
            continue;
        alarm(20);
        if (!is_prepared && !every_call_make_objects())
            exit(EXIT_FAILURE);
        cuCtxSetCurrent(at.context);
        call_in(situation, i, outcome);
        is_prepared = outcome->code != CUDA_SUCCESS;
        if (!is_prepared)
            cuCtxDestroy_v2(at.context);
    }
    exit(EXIT_SUCCESS);
}

/* One process for a situation, and another one after each call that ends it. */
static void run_situation(enum situation situation)
{
    int status;
    pid_t child;

    for (size_t first = 0; first < CT_ENTRY_POINT_COUNT; first = atomic_load(&shared->next) + 1) {
        fflush(stdout);
        child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_from(situation, first);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE))
            exit(EXIT_FAILURE);
    }
}

static CUresult expected(enum situation situation, size_t i)
{
    const unsigned kind = kinds[every_call_subjects[i].row];

    if (kind & situations[situation].forbids)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (kind & LEGACY_CALL && situations[situation].is_blocking && !strstr(every_call_subjects[i].symbol, "_ptds"))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return shared->outcomes[NO_CAPTURE][i].code;
}

/* Returns 1 for a difference. */
static int compare(enum situation situation, size_t i)
{
    const struct outcome *outcome = &shared->outcomes[situation][i], *without = &shared->outcomes[NO_CAPTURE][i];
    const CUresult wanted = expected(situation, i);
    const bool is_valid = wanted == without->code;
    const char *symbol = every_call_subjects[i].symbol;

    if (!is_compared(i) || !dlsym(RTLD_DEFAULT, symbol))
        return 0;
    if (outcome->is_done && outcome->code == wanted &&
        (situation == NO_CAPTURE || outcome->status == (is_valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED)))
        return 0;
    printf("%s %s: %s%d, status %d; expected %d, %svalid; without a capture %d\n", symbol, situations[situation].name,
           outcome->is_done ? "" : "ended the process, ", outcome->code, (int)outcome->status, wanted, is_valid ? "" : "in", without->code);
    return 1;
}

int main(void)
{
    int differences = 0, compared = 0;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return EXIT_FAILURE;
    every_call_make_file();
    for (int situation = 0; situation < SITUATIONS; situation++)
        run_situation((enum situation)situation);
    for (size_t i = 0; i < CT_ENTRY_POINT_COUNT; i++) {
        compared += is_compared(i);
        for (int situation = 0; situation < SITUATIONS; situation++)
            differences += compare((enum situation)situation, i);
    }
    printf("%d symbols in %d situations, %d differences\n", compared, SITUATIONS - 1, differences);
    return differences ? EXIT_FAILURE : EXIT_SUCCESS;
}
