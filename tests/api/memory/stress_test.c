/* SPDX-License-Identifier: Apache-2.0 */
/* Random work on memory of every kind, by several threads in several contexts and many streams, compared with a model in the test: each
 * thread records the expected value of every byte of its memory and compares repeatedly. Threads pass memory to each other, so that it is
 * used and freed far from its allocation. Everything is determined by the seed, except the interleaving of the threads' calls.
 *
 *     memory_stress_test [--seed N] [--seconds N] [--threads N] [--rounds N] [--operations N] [--trace]
 *
 * Without options, one run of seed 1. With --seconds, runs with ascending seeds until the time is over, which is the long form. A plain
 * program of the driver API: NVIDIA's own driver must pass, too. */
#include "stress.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 64
#define MAX_DEVICES 4

/* clang-format off */
static const char ptx[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    /* p[i] = p[i] * 3 + 1 */
    ".visible .entry mix(.param .u64 p, .param .u32 count)\n"
    "{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<6>;\n    .reg .b64 %d<4>;\n"
    "    ld.param.u64 %d1, [p];\n    ld.param.u32 %r2, [count];\n"
    "    mov.u32 %r3, %ctaid.x;\n    mov.u32 %r4, %ntid.x;\n    mov.u32 %r5, %tid.x;\n"
    "    mad.lo.u32 %r3, %r3, %r4, %r5;\n    setp.ge.u32 %p, %r3, %r2;\n    @%p bra done;\n"
    "    cvt.u64.u32 %d2, %r3;\n    add.u64 %d3, %d1, %d2;\n"
    "    ld.global.u8 %r1, [%d3];\n    mad.lo.u32 %r1, %r1, 3, 1;\n    st.global.u8 [%d3], %r1;\n"
    "done:\n    ret;\n}\n"
    /* to[i] += from[i] */
    ".visible .entry add(.param .u64 to, .param .u64 from, .param .u32 count)\n"
    "{\n"
    "    .reg .pred %p;\n    .reg .b32 %r<7>;\n    .reg .b64 %d<6>;\n"
    "    ld.param.u64 %d1, [to];\n    ld.param.u64 %d4, [from];\n    ld.param.u32 %r2, [count];\n"
    "    mov.u32 %r3, %ctaid.x;\n    mov.u32 %r4, %ntid.x;\n    mov.u32 %r5, %tid.x;\n"
    "    mad.lo.u32 %r3, %r3, %r4, %r5;\n    setp.ge.u32 %p, %r3, %r2;\n    @%p bra done;\n"
    "    cvt.u64.u32 %d2, %r3;\n    add.u64 %d3, %d1, %d2;\n    add.u64 %d5, %d4, %d2;\n"
    "    ld.global.u8 %r1, [%d5];\n    ld.global.u8 %r6, [%d3];\n    add.u32 %r1, %r1, %r6;\n    st.global.u8 [%d3], %r1;\n"
    "done:\n    ret;\n}\n";
/* clang-format on */

static struct {
    uint64_t seed;
    unsigned threads, rounds, operations, seconds;
} options = {.seed = 1, .threads = 6, .rounds = 3, .operations = 60};

/* One run with one seed. */
struct stress_run {
    uint64_t seed;
    int n_devices;
    pthread_barrier_t barrier;
    CUcontext primary[MAX_DEVICES];
    CUstream shared[MAX_DEVICES]; /* all threads of a device's primary context use it */
    CUfunction mix[MAX_DEVICES], add[MAX_DEVICES];
    struct stress_worker *workers;
};

void stress_fail(const struct stress_thread *thread, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "thread %u, operation %u (%s): ", thread->number, thread->operation, thread->doing);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nto see it again: --seed %llu --threads %u --rounds %u --operations %u\n", (unsigned long long)thread->seed,
            options.threads, options.rounds, options.operations);
    _Exit(1);
}

/* ---- threads ---- */

static void make_lanes(struct stress_worker *w)
{
    struct stress_thread *t = &w->thread;

    t->lanes[STRESS_LEGACY_LANE] = CU_STREAM_LEGACY;
    t->lanes[1] = CU_STREAM_PER_THREAD;
    STRESS_OK(t, cuStreamCreate(&t->lanes[STRESS_BLOCKING_LANE], CU_STREAM_DEFAULT));
    STRESS_OK(t, cuStreamCreate(&t->lanes[3], CU_STREAM_NON_BLOCKING));
    if (w->own_context)
        STRESS_OK(t, cuStreamCreate(&t->lanes[4], CU_STREAM_NON_BLOCKING));
    else
        t->lanes[4] = w->run->shared[t->device];
    STRESS_OK(t, cuEventCreate(&t->event, CU_EVENT_DISABLE_TIMING));
}

static void make_pool(struct stress_worker *w)
{
    struct stress_thread *t = &w->thread;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, t->device}};
    cuuint64_t keep = stress_number(&t->random, 4) << 20;

    STRESS_OK(t, cuMemPoolCreate(&t->pool, &properties));
    STRESS_OK(t, cuMemPoolSetAttribute(t->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
}

static void load_kernels(const struct stress_thread *t, CUmodule *module, CUfunction *mix, CUfunction *add)
{
    STRESS_OK(t, cuModuleLoadData(module, ptx));
    STRESS_OK(t, cuModuleGetFunction(mix, *module, "mix"));
    STRESS_OK(t, cuModuleGetFunction(add, *module, "add"));
}

static void enter(struct stress_worker *w)
{
    struct stress_thread *t = &w->thread;

    t->doing = "start";
    t->mix = w->run->mix[t->device];
    t->add = w->run->add[t->device];
    t->context = w->run->primary[t->device];
    if (w->own_context) {
        STRESS_OK(t, cuCtxCreate(&t->context, NULL, 0, t->device));
        load_kernels(t, &w->module, &t->mix, &t->add);
    }
    STRESS_OK(t, cuCtxSetCurrent(t->context));
    make_lanes(w);
    make_pool(w);
}

static void synchronize_lanes(struct stress_worker *w)
{
    for (unsigned i = 0; i < STRESS_LANES; i++)
        STRESS_OK(&w->thread, cuStreamSynchronize(w->thread.lanes[i]));
}

/* All work is complete when an object is passed on, so it may continue in another stream. */
static void hand_on(struct stress_worker *w, unsigned round)
{
    struct stress_worker *giver = &w->run->workers[(w->thread.number + 1 + round) % options.threads];

    synchronize_lanes(w);
    for (w->n_handed = 0; w->n_handed < STRESS_MAX_HANDED && w->n_objects > 0;) {
        w->handed[w->n_handed] = stress_random_object(w);
        stress_take_object(w, w->handed[w->n_handed++]);
    }
    pthread_barrier_wait(&w->run->barrier);
    for (unsigned i = 0; i < giver->n_handed && w->n_objects < STRESS_MAX_OBJECTS; i++) {
        w->objects[w->n_objects++] = giver->handed[i];
        giver->handed[i]->lane = (unsigned)stress_number(&w->thread.random, STRESS_LANES);
    }
    pthread_barrier_wait(&w->run->barrier);
}

/* All memory first; then the contexts, to which memory of other threads may belong. */
static void leave(struct stress_worker *w)
{
    struct stress_thread *t = &w->thread;

    t->doing = "end";
    while (w->n_objects > 0)
        stress_destroy(w, w->objects[w->n_objects - 1]);
    synchronize_lanes(w);
    pthread_barrier_wait(&w->run->barrier);
    STRESS_OK(t, cuMemPoolDestroy(t->pool));
    STRESS_OK(t, cuEventDestroy(t->event));
    STRESS_OK(t, cuStreamDestroy(t->lanes[STRESS_BLOCKING_LANE]));
    STRESS_OK(t, cuStreamDestroy(t->lanes[3]));
    if (w->own_context)
        STRESS_OK(t, cuCtxDestroy(t->context)); /* with a stream and a module */
    free(w->buffer);
}

static void *work(void *argument)
{
    struct stress_worker *w = argument;

    enter(w);
    for (unsigned round = 0; round < options.rounds; round++) {
        for (unsigned i = 0; i < options.operations; i++)
            stress_operate(w);
        w->thread.doing = "hand on";
        hand_on(w, round);
    }
    leave(w);
    return NULL;
}

/* ---- runs ---- */

static void open_devices(struct stress_run *run, const struct stress_thread *t)
{
    CUmodule module;

    for (int device = 0; device < run->n_devices; device++) {
        STRESS_OK(t, cuDevicePrimaryCtxRetain(&run->primary[device], device));
        STRESS_OK(t, cuCtxSetCurrent(run->primary[device]));
        STRESS_OK(t, cuStreamCreate(&run->shared[device], CU_STREAM_NON_BLOCKING));
        load_kernels(t, &module, &run->mix[device], &run->add[device]);
    }
}

static void close_devices(struct stress_run *run, const struct stress_thread *t)
{
    STRESS_OK(t, cuCtxSetCurrent(NULL));
    for (int device = 0; device < run->n_devices; device++)
        STRESS_OK(t, cuDevicePrimaryCtxRelease(device));
}

static void run_seed(uint64_t seed, int n_devices)
{
    struct stress_run run = {.seed = seed, .n_devices = n_devices, .workers = calloc(options.threads, sizeof(struct stress_worker))};
    const struct stress_thread self = {.seed = seed, .doing = "set-up"};

    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    if (!run.workers || pthread_barrier_init(&run.barrier, NULL, options.threads) != 0)
        stress_fail(&self, "out of memory");
    open_devices(&run, &self);
    for (unsigned i = 0; i < options.threads; i++) {
        struct stress_worker *w = &run.workers[i];

        *w = (struct stress_worker){.run = &run, .own_context = i % 3 == 2};
        w->thread = (struct stress_thread){.random = {seed * 1000 + i}, .seed = seed, .number = i, .device = (int)i % n_devices};
        if (pthread_create(&w->pthread, NULL, work, w) != 0)
            stress_fail(&self, "pthread_create");
    }
    for (unsigned i = 0; i < options.threads; i++)
        pthread_join(run.workers[i].pthread, NULL);
    close_devices(&run, &self);
    pthread_barrier_destroy(&run.barrier);
    free(run.workers);
}

static const struct {
    const char *name;
    unsigned *value;
} numbers[] = {
    {"--seconds", &options.seconds},
    {"--threads", &options.threads},
    {"--rounds", &options.rounds},
    {"--operations", &options.operations},
};

static bool read_option(const char *name, const char *value)
{
    unsigned long long number = value ? strtoull(value, NULL, 10) : 0;

    for (size_t i = 0; value && i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            *numbers[i].value = (unsigned)number;
            return true;
        }
    options.seed = number;
    return value && strcmp(name, "--seed") == 0;
}

static bool read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            stress_trace = true;
            continue;
        }
        if (!read_option(argv[i], argv[i + 1]))
            return false;
        i++;
    }
    return options.threads > 0 && options.threads <= MAX_THREADS;
}

int main(int argc, char **argv)
{
    const struct stress_thread self = {.doing = "start"};
    time_t start = time(NULL);
    int n_devices = 0;

    if (!read_options(argc, argv)) {
        fprintf(stderr, "usage: %s [--seed N] [--seconds N] [--threads N] [--rounds N] [--operations N] [--trace]\n", argv[0]);
        return 2;
    }
    STRESS_OK(&self, cuInit(0));
    STRESS_OK(&self, cuDeviceGetCount(&n_devices));
    n_devices = n_devices < MAX_DEVICES ? n_devices : MAX_DEVICES;
    do
        run_seed(options.seed++, n_devices);
    while (time(NULL) - start < (time_t)options.seconds);
    return 0;
}
