/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API, Graph Management: cuUserObjectCreate and its kin. */
#include "user_object.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "graph"

struct ct_user_object {
    struct ct_object object;
    CUhostFn destroy;
    void *user;
    atomic_uint count; /* references of the application and of graphs; 0: destroyed */
};

struct ct_user_reference {
    struct ct_user_object *object; /* retained */
    unsigned count;
};

static void free_object(struct ct_object *object)
{
    free(object);
}

CUresult ct_user_object_create(CUhostFn destroy, void *user, unsigned count, CUuserObject *out)
{
    struct ct_user_object *object = calloc(1, sizeof *object);
    CUresult r;

    if (!object)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a user object");
    ct_object_init(&object->object, CT_OBJECT_USER_OBJECT, free_object);
    object->destroy = destroy;
    object->user = user;
    atomic_init(&object->count, count);
    r = ct_object_publish(&object->object);
    if (r == CUDA_SUCCESS)
        *out = object->object.handle;
    ct_object_release(&object->object);
    return r;
}

CUresult ct_user_object_lookup(CUuserObject handle, struct ct_user_object **out)
{
    struct ct_object *object = ct_object_find_or_null(CT_OBJECT_USER_OBJECT, handle);

    if (!object)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not a user object", (void *)handle);
    *out = (struct ct_user_object *)object;
    return CUDA_SUCCESS;
}

void ct_user_object_release(struct ct_user_object *object)
{
    ct_object_release(&object->object);
}

CUresult ct_user_object_add(struct ct_user_object *object, unsigned count)
{
    unsigned before = atomic_load(&object->count);

    do
        if (before == 0 || before + count < before)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u references to a user object that has %u", count, before);
    while (!atomic_compare_exchange_weak(&object->count, &before, before + count));
    return CUDA_SUCCESS;
}

CUresult ct_user_object_remove(struct ct_user_object *object, unsigned count)
{
    unsigned before = atomic_load(&object->count);

    do
        if (before < count)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u references are released, but the user object has %u", count, before);
    while (!atomic_compare_exchange_weak(&object->count, &before, before - count));
    if (before == count && ct_object_unpublish(&object->object) == CUDA_SUCCESS)
        object->destroy(object->user);
    return CUDA_SUCCESS;
}

/* ---- references of graphs ---- */

static struct ct_user_reference *find_or_null(const struct ct_user_references *references, const struct ct_user_object *object)
{
    for (size_t i = 0; i < references->count; i++)
        if (references->list[i].object == object)
            return &references->list[i];
    return NULL;
}

static bool reserve(struct ct_user_references *references, size_t capacity)
{
    struct ct_user_reference *list;

    if (capacity <= references->capacity)
        return true;
    list = realloc(references->list, capacity * sizeof *list);
    if (!list)
        return false;
    references->list = list;
    references->capacity = capacity;
    return true;
}

CUresult ct_user_references_note(struct ct_user_references *references, struct ct_user_object *object, unsigned count)
{
    struct ct_user_reference *reference = find_or_null(references, object);

    if (!reference) {
        if (references->count == references->capacity && !reserve(references, 2 * references->capacity + 4))
            return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a reference to a user object");
        reference = &references->list[references->count++];
        *reference = (struct ct_user_reference){.object = object};
        ct_object_retain(&object->object);
    }
    reference->count += count;
    return CUDA_SUCCESS;
}

CUresult ct_user_references_forget(struct ct_user_references *references, struct ct_user_object *object, unsigned count)
{
    struct ct_user_reference *reference = find_or_null(references, object);

    if (!reference || reference->count < count)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the graph has %u references to the user object, not %u", reference ? reference->count : 0,
                       count);
    reference->count -= count;
    return CUDA_SUCCESS;
}

CUresult ct_user_references_copy(struct ct_user_references *out, const struct ct_user_references *references)
{
    struct ct_user_references copy = {0};

    if (references->count && !reserve(&copy, references->count))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for references to user objects");
    for (size_t i = 0; i < references->count; i++) {
        const struct ct_user_reference *reference = &references->list[i];

        if (reference->count == 0 || ct_user_object_add(reference->object, reference->count) != CUDA_SUCCESS)
            continue;
        copy.list[copy.count++] = *reference;
        ct_object_retain(&reference->object->object);
    }
    *out = copy;
    return CUDA_SUCCESS;
}

void ct_user_references_finish(struct ct_user_references *references)
{
    for (size_t i = 0; i < references->count; i++) {
        if (references->list[i].count)
            (void)ct_user_object_remove(references->list[i].object, references->list[i].count);
        ct_object_release(&references->list[i].object->object);
    }
    free(references->list);
    *references = (struct ct_user_references){0};
}
