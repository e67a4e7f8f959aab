/* SPDX-License-Identifier: Apache-2.0 */
/* Context-local values: a list that only grows until the context's struct is freed, so that readers need no lock. A key has one node;
 * removing its value leaves the node with the value `absent`, for reuse. There are few keys: one for each copy of the runtime in the
 * process. Writers hold context->lock. */
#include "context_local.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "context"

struct ct_context_local {
    void *key;
    _Atomic(void *) value;      /* &absent: none. Release by writers and acquire by readers also publish the data it points to */
    ct_context_local_fn on_end; /* under context->lock */
    struct ct_context_local *next;
};

static char absent; /* its address is never a value of the application */

static struct ct_context_local *find_or_null(const struct ct_context *context, const void *key)
{
    struct ct_context_local *node = atomic_load_explicit(&context->locals, memory_order_acquire); /* pairs with add_locked */

    while (node && node->key != key)
        node = node->next;
    return node;
}

static struct ct_context_local *add_locked(struct ct_context *context, void *key)
{
    struct ct_context_local *node = calloc(1, sizeof *node);

    if (!node)
        return NULL;
    node->key = key;
    atomic_init(&node->value, &absent);
    node->next = atomic_load_explicit(&context->locals, memory_order_relaxed); /* the lock orders writers */
    atomic_store_explicit(&context->locals, node, memory_order_release);       /* pairs with find_or_null */
    return node;
}

CUresult ct_context_local_put(struct ct_context *context, void *key, void *value, ct_context_local_fn on_end)
{
    struct ct_context_local *node;
    CUresult r = ct_context_use(context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_mutex_lock(&context->lock);
    node = find_or_null(context, key);
    if (!node)
        node = add_locked(context, key);
    if (node) {
        node->on_end = on_end;
        atomic_store_explicit(&node->value, value, memory_order_release);
    }
    ct_mutex_unlock(&context->lock);
    ct_context_release(context);
    return node ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "context-local value");
}

CUresult ct_context_local_remove(struct ct_context *context, void *key)
{
    struct ct_context_local *node;
    bool was_there = false;

    ct_mutex_lock(&context->lock);
    node = find_or_null(context, key);
    if (node) {
        was_there = atomic_exchange_explicit(&node->value, &absent, memory_order_acq_rel) != &absent;
        node->on_end = NULL;
    }
    ct_mutex_unlock(&context->lock);
    return was_there ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_NOT_FOUND, "the context has no local value for key %p", key);
}

CUresult ct_context_local_get(struct ct_context *context, const void *key, void **out)
{
    const struct ct_context_local *node;
    void *value = &absent;

    if (atomic_load_explicit(&context->active, memory_order_acquire)) {
        node = find_or_null(context, key);
        if (node)
            value = atomic_load_explicit(&node->value, memory_order_acquire);
    }
    if (value == &absent)
        return CUDA_ERROR_NOT_FOUND; /* callers look a value up before they set it, so this is not logged */
    *out = value;
    return CUDA_SUCCESS;
}

/* Removes the next value from the list. False: there is none. */
static bool take_next(struct ct_context *context, struct ct_context_local **at, void **out_value, ct_context_local_fn *out_on_end)
{
    void *value = &absent;

    ct_mutex_lock(&context->lock);
    while (*at && (value = atomic_exchange_explicit(&(*at)->value, &absent, memory_order_acq_rel)) == &absent)
        *at = (*at)->next;
    if (*at)
        *out_on_end = (*at)->on_end;
    ct_mutex_unlock(&context->lock);
    *out_value = value;
    return *at != NULL;
}

void ct_context_local_end(struct ct_context *context)
{
    struct ct_context_local *at = atomic_load_explicit(&context->locals, memory_order_acquire);
    ct_context_local_fn on_end;
    void *value;

    while (take_next(context, &at, &value, &on_end))
        if (on_end)
            on_end(context->object.handle, at->key, value);
}

void ct_context_local_finish(struct ct_context *context)
{
    struct ct_context_local *node = atomic_load_explicit(&context->locals, memory_order_relaxed); /* no other thread has access */

    while (node) {
        struct ct_context_local *next = node->next;

        free(node);
        node = next;
    }
}
