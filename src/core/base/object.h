/* SPDX-License-Identifier: Apache-2.0 */
/* Objects behind CUDA handles: counted, and found through a table. A handle is never dereferenced: it carries slot and generation
 * (not a pointer), so a destroyed, foreign or made-up handle is not found. */
#ifndef CT_CORE_OBJECT_H
#define CT_CORE_OBJECT_H

#include "cuda.h"
#include "locks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum ct_object_kind {
    CT_OBJECT_NONE,
    CT_OBJECT_CONTEXT,
    CT_OBJECT_MODULE,
    CT_OBJECT_FUNCTION,
    CT_OBJECT_STREAM,
    CT_OBJECT_EVENT,
    CT_OBJECT_LIBRARY,
    CT_OBJECT_KERNEL,
    CT_OBJECT_LINK_STATE,
    CT_OBJECT_MEMORY_POOL,
    CT_OBJECT_ALLOCATED, /* vmm_handle.h */
    CT_OBJECT_EXTERNAL_MEMORY,
    CT_OBJECT_EXTERNAL_SEMAPHORE,
    CT_OBJECT_ARRAY,
    CT_OBJECT_MIPMAPPED_ARRAY,
    CT_OBJECT_KINDS
};

/* Embedded first in every object. */
struct ct_object {
    atomic_uint references;
    enum ct_object_kind kind;
    void *handle;                              /* what the application holds; NULL before publish */
    void (*destroy)(struct ct_object *object); /* called when the last reference goes */
};

struct ct_handle_slot {
    struct ct_object *object; /* NULL: free */
    uint32_t generation;      /* of the object in it, or of the next one; 0: worn out, never used again */
    bool orphaned;            /* the object before that went with its context */
    uint32_t next_free;
};

/* The table of ct_process. It only grows; slots are reused with a new generation. */
struct ct_handle_table {
    struct ct_mutex lock;
    struct ct_handle_slot *slots;
    uint32_t n_slots, capacity;
    uint32_t first_free; /* CT_NO_SLOT: none */
};
#define CT_NO_SLOT UINT32_MAX
#define CT_HANDLE_TABLE_INITIALIZER                                                                                                        \
    {                                                                                                                                      \
        .lock = CT_MUTEX_INITIALIZER(CT_RANK_HANDLES), .first_free = CT_NO_SLOT                                                            \
    }

/* One reference, held by the caller. */
void ct_object_init(struct ct_object *object, enum ct_object_kind kind, void (*destroy)(struct ct_object *object));
/* Gives it a handle (object->handle); the table holds a reference of its own. OUT_OF_MEMORY when the table is full. */
CUresult ct_object_publish(struct ct_object *object);
/* The handle is dead from now on; drops the table's reference. Of two threads that try, one gets CUDA_SUCCESS. */
CUresult ct_object_unpublish(struct ct_object *object);
/* The same, of an object that goes with its context. */
void ct_object_orphan(struct ct_object *object);
/* Whether the handle was that of an orphan, and no object has taken its place since. */
bool ct_object_was_orphaned(const void *handle);
/* The live object of that kind behind the handle, retained; NULL if there is none. */
struct ct_object *ct_object_find_or_null(enum ct_object_kind kind, const void *handle);
/* One live object of that kind after another, retained; NULL when there are no more. *cursor begins with 0. */
struct ct_object *ct_object_next_or_null(enum ct_object_kind kind, uint32_t *cursor);
void ct_object_retain(struct ct_object *object);
void ct_object_release(struct ct_object *object); /* takes NULL */

#endif
