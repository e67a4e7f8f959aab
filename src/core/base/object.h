/* SPDX-License-Identifier: Apache-2.0 */
/* Objects with CUDA handles: they are reference-counted and found through a table. A handle is never dereferenced: it contains a slot and a
 * generation (not a pointer), so the look-up of a destroyed, foreign or invented handle fails. */
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
    CT_OBJECT_GRAPH,
    CT_OBJECT_GRAPH_NODE,
    CT_OBJECT_GRAPH_EXEC,
    CT_OBJECT_USER_OBJECT,
    CT_OBJECT_ASYNC_NOTIFICATION,
    CT_OBJECT_GREEN_CONTEXT,
    CT_OBJECT_GRAPHICS_RESOURCE,
    CT_OBJECT_TEXTURE_REFERENCE,
    CT_OBJECT_SURFACE_REFERENCE,
    CT_OBJECT_KINDS
};

/* The first member of every object. */
struct ct_object {
    atomic_uint references;
    enum ct_object_kind kind;
    void *handle;                              /* the application's handle; NULL before publish */
    void (*destroy)(struct ct_object *object); /* called when the last reference is released */
};

struct ct_handle_slot {
    struct ct_object *object; /* NULL: free */
    uint32_t generation;      /* of the current object or of the next one; 0: used up, never reused */
    bool orphaned;            /* the previous object was destroyed with its context */
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
#define CT_HANDLE_TABLE_INITIALIZER {.lock = CT_MUTEX_INITIALIZER(CT_RANK_HANDLES), .first_free = CT_NO_SLOT}

/* Starts with one reference, which the caller owns. */
void ct_object_init(struct ct_object *object, enum ct_object_kind kind, void (*destroy)(struct ct_object *object));
/* Gives the object a handle (object->handle); the table holds its own reference. OUT_OF_MEMORY if the table is full. */
CUresult ct_object_publish(struct ct_object *object);
/* Invalidates the handle and releases the table's reference. If two threads do this concurrently, only one gets CUDA_SUCCESS. */
CUresult ct_object_unpublish(struct ct_object *object);
/* The same for an object that is destroyed with its context. */
void ct_object_orphan(struct ct_object *object);
/* Whether the handle's object was destroyed with its context, and its slot has not been reused since. */
bool ct_object_was_orphaned(const void *handle);
/* The live object of that kind with the handle, retained; NULL if there is none. */
struct ct_object *ct_object_find_or_null(enum ct_object_kind kind, const void *handle);
/* Iterates over the live objects of that kind and returns them retained; NULL after the last. *cursor is initially 0. */
struct ct_object *ct_object_next_or_null(enum ct_object_kind kind, uint32_t *cursor);
void ct_object_retain(struct ct_object *object);
void ct_object_release(struct ct_object *object); /* takes NULL */

#endif
