/* SPDX-License-Identifier: Apache-2.0 */
/* For the stress test: memory of every kind with a model of its contents. stress_objects.c makes and frees it, stress_work.c works on it,
 * stress_test.c has the threads. */
#ifndef CUTTLE_TESTS_MEMORY_STRESS_H
#define CUTTLE_TESTS_MEMORY_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <pthread.h>

#define STRESS_LANES 5

/* The default stream, and the last of those that wait for it and for which it waits. The lanes behind do not. */
#define STRESS_LEGACY_LANE 0
#define STRESS_BLOCKING_LANE 2
#define STRESS_MAX_OBJECTS 24
#define STRESS_MAX_HANDED 3

/* A sequence of numbers that its seed determines. */
struct stress_random {
    uint64_t state;
};
uint64_t stress_number(struct stress_random *random, uint64_t below); /* of 0 .. below - 1 */
bool stress_chance(struct stress_random *random, unsigned percent);

/* A thread of the test: what it does follows from its seed, and so does what it gets from others. */
struct stress_thread {
    struct stress_random random;
    uint64_t seed;   /* of the run */
    unsigned number; /* of the thread */
    unsigned operation;
    const char *doing;
    CUdevice device;
    CUcontext context;
    CUstream lanes[STRESS_LANES];
    CUevent event; /* orders lanes */
    CUmemoryPool pool;
    CUfunction mix, add; /* NULL: no kernels */
};

/* Says what went wrong and how to see it again, and ends the process. */
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

/* Memory. All work on it is in the order of its lane; `model` is what it holds when that work is done. */
struct stress_object {
    enum stress_kind kind;
    CUdeviceptr start;   /* as copies take it */
    CUdeviceptr kernels; /* as kernels take it; 0: they do not */
    CUdeviceptr alias;   /* VIRTUAL: the same memory once more, or 0 */
    unsigned char *host; /* as the host takes it once the lane is idle, or NULL */
    unsigned char *model;
    size_t bytes;
    CUcontext context;
    CUdevice device;
    unsigned lane;
    void *pages; /* REGISTERED, PAGEABLE: of malloc */
};

extern const char *const stress_kind_names[STRESS_KINDS];

/* Memory of a random kind and size, in a random lane, its bytes those of the model. */
struct stress_object *stress_make(struct stress_thread *thread);
/* In any thread, in any context, behind the work of its lane, which is one of the thread's. */
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
    struct stress_object *handed[STRESS_MAX_HANDED]; /* to the next thread, at the end of a round */
    unsigned n_handed;
    unsigned char *buffer;
    size_t buffer_bytes;
};

/* stress_work.c: one random operation on what the worker has. */
void stress_operate(struct stress_worker *worker);
struct stress_object *stress_random_object(struct stress_worker *worker);            /* NULL: it has none */
void stress_take_object(struct stress_worker *worker, struct stress_object *object); /* out of its list */
void stress_destroy(struct stress_worker *worker, struct stress_object *object);     /* at times checked before */
extern bool stress_trace;                                                            /* each operation is printed */

#endif
