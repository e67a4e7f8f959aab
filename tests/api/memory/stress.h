/* SPDX-License-Identifier: Apache-2.0 */
/* For the stress test: memory of every kind with a model of its contents. stress_objects.c allocates and frees it, stress_work.c works on
 * it, stress_test.c has the threads. */
#ifndef CUTTLE_TESTS_MEMORY_STRESS_H
#define CUTTLE_TESTS_MEMORY_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <pthread.h>

#define STRESS_LANES 5

/* The default stream, and the last of the streams that synchronize with it. The following streams do not. */
#define STRESS_LEGACY_LANE 0
#define STRESS_BLOCKING_LANE 2
#define STRESS_MAX_OBJECTS 24
#define STRESS_MAX_HANDED 3

/* A sequence of pseudo-random numbers. */
struct stress_random {
    uint64_t state;
};
uint64_t stress_number(struct stress_random *random, uint64_t below); /* of 0 .. below - 1 */
bool stress_chance(struct stress_random *random, unsigned percent);

/* A thread of the test: its actions are determined by its seed, and so are the objects that it gets from other threads. */
struct stress_thread {
    struct stress_random random;
    uint64_t seed;   /* of the run */
    unsigned number; /* of the thread */
    unsigned operation;
    const char *doing;
    CUdevice device;
    CUcontext context;
    CUstream lanes[STRESS_LANES];
    CUevent event; /* orders streams */
    CUmemoryPool pool;
    CUfunction mix, add; /* NULL: no kernels */
};

/* Prints the error and how to reproduce it, and ends the process. */
_Noreturn void stress_fail(const struct stress_thread *thread, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define STRESS_OK(thread, call)                                                                                                            \
    do {                                                                                                                                   \
        CUresult stress_result = (call);                                                                                                   \
        if (stress_result != CUDA_SUCCESS)                                                                                                 \
            stress_fail(thread, "%s: error %d at %s:%d", #call, (int)stress_result, __FILE__, __LINE__);                                   \
    } while (0)
#define STRESS_GIVES(thread, code, call)                                                                                                   \
    do {                                                                                                                                   \
        CUresult stress_result = (call);                                                                                                   \
        if (stress_result != (code))                                                                                                       \
            stress_fail(thread, "%s: %d, not %s at %s:%d", #call, (int)stress_result, #code, __FILE__, __LINE__);                          \
    } while (0)

enum stress_kind {
    STRESS_DEVICE,
    STRESS_PITCHED,
    STRESS_POOL,
    STRESS_HOST,
    STRESS_REGISTERED,
    STRESS_MANAGED,
    STRESS_VIRTUAL,
    STRESS_PAGEABLE,
    STRESS_KINDS,
};

/* A piece of memory. All work on it is ordered by its stream (lane); `model` is its contents after that work. */
struct stress_object {
    enum stress_kind kind;
    CUdeviceptr start;   /* the address for copies */
    CUdeviceptr kernels; /* the address for kernels; 0: kernels cannot access it */
    CUdeviceptr alias;   /* VIRTUAL: a second mapping of the same memory, or 0 */
    unsigned char *host; /* the address for the host once the stream is idle, or NULL */
    unsigned char *model;
    size_t bytes;
    CUcontext context;
    CUdevice device;
    unsigned lane;
    void *pages; /* REGISTERED, PAGEABLE: allocated by malloc */
};

extern const char *const stress_kind_names[STRESS_KINDS];

/* Allocates memory of a random kind and size, in a random stream, with the model's contents. */
struct stress_object *stress_make(struct stress_thread *thread);
/* Frees memory in any thread, in any context, after the work of its stream, which is one of the thread's. */
void stress_free(struct stress_thread *thread, struct stress_object *object);

/* A thread with its memory. */
struct stress_run;
struct stress_worker {
    struct stress_thread thread;
    struct stress_run *run;
    pthread_t pthread;
    CUmodule module; /* of a context of its own */
    bool own_context;
    struct stress_object *objects[STRESS_MAX_OBJECTS];
    unsigned n_objects;
    struct stress_object *handed[STRESS_MAX_HANDED]; /* passed to the next thread, at the end of a round */
    unsigned n_handed;
    unsigned char *buffer;
    size_t buffer_bytes;
};

/* stress_work.c: executes one random operation on the worker's memory. */
void stress_operate(struct stress_worker *worker);
struct stress_object *stress_random_object(struct stress_worker *worker);            /* NULL: it has none */
void stress_take_object(struct stress_worker *worker, struct stress_object *object); /* removes it from the worker's list */
void stress_destroy(struct stress_worker *worker, struct stress_object *object);     /* sometimes compared before */
extern bool stress_trace;                                                            /* prints each operation */

#endif
