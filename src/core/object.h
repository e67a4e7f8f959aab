/* SPDX-License-Identifier: Apache-2.0 */
/* Objects behind CUDA handles: counted, and found through a table. A handle is never dereferenced: it carries slot and generation
 * (not a pointer), so a destroyed, foreign or made-up handle is not found. */
#ifndef CT_CORE_OBJECT_H
#define CT_CORE_OBJECT_H

#include "cuda.h"

#include <stdatomic.h>
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
    CT_OBJECT_KINDS
};

/* Embedded first in every object. */
struct ct_object {
    atomic_uint references;
    enum ct_object_kind kind;
    void *handle;                              /* what the application holds; NULL before publish */
    void (*destroy)(struct ct_object *object); /* called when the last reference goes */
};

/* One reference, held by the caller. */
void ct_object_init(struct ct_object *object, enum ct_object_kind kind, void (*destroy)(struct ct_object *object));
/* Gives it a handle (object->handle); the table holds a reference of its own. OUT_OF_MEMORY when the table is full. */
CUresult ct_object_publish(struct ct_object *object);
/* The handle is dead from now on; drops the table's reference. Of two threads that try, one gets CUDA_SUCCESS. */
CUresult ct_object_unpublish(struct ct_object *object);
/* The live object of that kind behind the handle, retained; NULL if there is none. */
struct ct_object *ct_object_find_or_null(enum ct_object_kind kind, const void *handle);
void ct_object_retain(struct ct_object *object);
void ct_object_release(struct ct_object *object); /* takes NULL */

#endif
