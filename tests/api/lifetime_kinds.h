/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of objects that one thread can destroy while others use them, for lifetimes_test.c and random_programs_test.c. */
#ifndef CUTTLE_TESTS_LIFETIME_KINDS_H
#define CUTTLE_TESTS_LIFETIME_KINDS_H

#include "api_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { BYTES = 8192, MAX_VALUES = 3, KINDS = 18, SLOTS_OF_KIND = 2, SLOTS = KINDS * SLOTS_OF_KIND };

/* One object, of which threads copy the values without a lock: mixtures of an old and a new object are wanted. */
struct slot {
    const struct kind *kind;
    pthread_mutex_t lock; /* of destroyers */
    bool is_made;
    _Atomic uint64_t values[MAX_VALUES];
};

/* A thread's own things, which nobody destroys. */
struct user {
    CUcontext context;
    CUstream stream;
    CUdeviceptr memory;
    CUfunction function; /* of a module of its own */
    char bytes[BYTES];
    uint64_t random;
};

struct kind {
    const char *name;
    CUresult (*make)(struct slot *slot, struct user *by);
    CUresult (*destroy)(struct slot *slot, struct user *by, const uint64_t *values);
    CUresult (*use)(struct user *user, const uint64_t *values, unsigned way);
    unsigned ways;
    CUdevice_attribute needs; /* 0: nothing */
};

extern const struct kind kinds[KINDS];

/* A pseudo-random number below `below`. */
uint64_t number(struct user *user, uint64_t below);
/* Makes the context current and creates the user's own things. */
CUresult start_user(struct user *user);
/* Whether the device has what the kind needs. */
bool is_there(const struct kind *kind);
void copy_values(const struct slot *slot, uint64_t *out);
/* Whether a call with objects that may be gone may give this result. */
bool is_expected(CUresult r);
/* The objects: those of kinds[i] are slots[SLOTS_OF_KIND * i] and those that follow. */
extern struct slot slots[SLOTS];
void prepare_slots(void);
/* Destroys the object of a slot and makes another one. */
void change_slot(struct slot *slot, struct user *by);
/* Destroys all objects, when no other thread uses them. */
void empty_slots(struct user *by);
/* Prints and counts a result that is not expected. */
void check(const struct kind *kind, const char *what, unsigned way, CUresult r);
extern atomic_uint unexpected;
/* A ramp: one block of 64 threads that writes 64 words. */
CUresult launch(CUfunction function, CUstream stream, CUdeviceptr memory);
/* Bytes of the smallest physical memory; `properties` are its properties. */
size_t granule(CUmemAllocationProp *properties);

#endif
