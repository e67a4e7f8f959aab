/* SPDX-License-Identifier: Apache-2.0 */
/* User objects: reference-counted resources of the application, which graphs can keep alive. */
#ifndef CT_CORE_USER_OBJECT_H
#define CT_CORE_USER_OBJECT_H

#include "core/base/object.h"

#include <stddef.h>

struct ct_user_object;

/* Creates an object with `count` references, which belong to the application. `destroy` is called with `user` when there are none left.
 * OUT_OF_MEMORY. */
CUresult ct_user_object_create(CUhostFn destroy, void *user, unsigned count, CUuserObject *out);
/* The live object of a handle, retained as an object (not as a resource of the application). INVALID_VALUE. */
CUresult ct_user_object_lookup(CUuserObject handle, struct ct_user_object **out);
void ct_user_object_release(struct ct_user_object *object);
/* Changes the number of references. remove: INVALID_VALUE: there are fewer. */
CUresult ct_user_object_add(struct ct_user_object *object, unsigned count);
CUresult ct_user_object_remove(struct ct_user_object *object, unsigned count);

/* The references that a graph holds. */
struct ct_user_references {
    struct ct_user_reference *list;
    size_t count, capacity;
};
/* Guarded by the lock of graphs. OUT_OF_MEMORY. The caller has already added the references to the object. */
CUresult ct_user_references_note(struct ct_user_references *references, struct ct_user_object *object, unsigned count);
/* INVALID_VALUE: the graph holds fewer. The caller removes them from the object. */
CUresult ct_user_references_forget(struct ct_user_references *references, struct ct_user_object *object, unsigned count);
/* Adds the references to their objects again, for a clone. */
CUresult ct_user_references_copy(struct ct_user_references *out, const struct ct_user_references *references);
/* Removes them from their objects, which may call `destroy`: the caller holds no lock. */
void ct_user_references_finish(struct ct_user_references *references);

#endif
