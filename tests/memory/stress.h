/* SPDX-License-Identifier: Apache-2.0 */
/* For the stress test: memory of every kind with a model of its contents. stress_objects.c makes and frees, stress_test.c works on it. */
#ifndef CUTTLE_TESTS_MEMORY_STRESS_H
#define CUTTLE_TESTS_MEMORY_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#define STRESS_LANES 5

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

#endif
