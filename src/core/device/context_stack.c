/* SPDX-License-Identifier: Apache-2.0 */
/* Current contexts: each thread has a stack of contexts. Entries hold a reference, not a use: a context may be destroyed while it is
 * current in a thread, and calls in that thread then return CONTEXT_IS_DESTROYED. */
#include "context.h"

#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/thread.h"
#include "green_context.h"

#include <stdlib.h>

#define CT_CHANNEL "context"

/* With a green context the context is its primary one. Both are retained. */
struct entry {
    struct ct_context *context;
    struct ct_green_context *green;
};

struct stack {
    struct entry *entries;
    unsigned depth, capacity;
    bool freed_at_exit; /* forget_stack is called when the thread exits */
};
static _Thread_local struct stack stack;

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static bool exit_works; /* written inside exit_once */

static void drop(const struct entry *entry)
{
    ct_object_release(&entry->context->object);
    ct_green_release(entry->green);
}

static void forget_stack(void *value)
{
    struct stack *leaving = value;

    while (leaving->depth > 0)
        drop(&leaving->entries[--leaving->depth]);
    free(leaving->entries);
    *leaving = (struct stack){0};
}

static void make_exit_key(void)
{
    exit_works = pthread_key_create(&exit_key, forget_stack) == 0;
}

static CUresult grow(void)
{
    unsigned capacity = stack.capacity ? stack.capacity * 2 : 8;
    struct entry *entries = realloc(stack.entries, capacity * sizeof *entries);

    if (!entries)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "stack of contexts");
    stack.entries = entries;
    stack.capacity = capacity;
    if (!stack.freed_at_exit) {
        pthread_once(&exit_once, make_exit_key);
        stack.freed_at_exit = exit_works && pthread_setspecific(exit_key, &stack) == 0;
    }
    return CUDA_SUCCESS;
}

/* The entry of a handle, whose context is active or not. */
static CUresult find(CUcontext handle, struct entry *out)
{
    struct ct_object *object = ct_object_find_or_null(CT_OBJECT_CONTEXT, handle);
    struct ct_green_context *green = object ? NULL : ct_green_find_or_null(handle);

    if (!object && !green)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "%p is not a context", (void *)handle);
    *out = (struct entry){green ? green->primary : (struct ct_context *)object, green};
    if (green)
        ct_object_retain(&green->primary->object);
    return CUDA_SUCCESS;
}

static const struct entry *top_or_null(void)
{
    return stack.depth ? &stack.entries[stack.depth - 1] : NULL;
}

CUcontext ct_context_top_handle(void)
{
    const struct entry *top = top_or_null();

    if (!top)
        return NULL;
    return top->green ? (CUcontext)top->green->object.handle : top->context->object.handle;
}

struct ct_green_context *ct_context_top_green_or_null(void)
{
    return stack.depth ? stack.entries[stack.depth - 1].green : NULL;
}

struct ct_context *ct_context_top_or_null(void)
{
    return stack.depth ? stack.entries[stack.depth - 1].context : NULL;
}

CUresult ct_context_ordinal(CUcontext handle_or_null, CUdevice *out)
{
    struct ct_context *context = ct_context_top_or_null();
    struct entry entry;
    CUresult r;

    if (handle_or_null) {
        r = find(handle_or_null, &entry);
        if (r != CUDA_SUCCESS)
            return r;
        context = entry.context;
        *out = context->device->ordinal; /* devices outlive it */
        drop(&entry);
        return CUDA_SUCCESS;
    }
    if (!context)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current");
    *out = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult ct_context_push(CUcontext handle)
{
    struct entry entry;
    CUresult r = find(handle, &entry);

    if (r != CUDA_SUCCESS)
        return r;
    if (stack.depth == stack.capacity && (r = grow()) != CUDA_SUCCESS) {
        drop(&entry);
        return r;
    }
    stack.entries[stack.depth++] = entry;
    return CUDA_SUCCESS;
}

CUresult ct_context_pop(CUcontext *out_or_null)
{
    if (!stack.depth)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current");
    if (out_or_null)
        *out_or_null = ct_context_top_handle();
    drop(&stack.entries[--stack.depth]);
    return CUDA_SUCCESS;
}

CUresult ct_context_set_current(CUcontext handle_or_null)
{
    struct entry entry;
    CUresult r;

    if (!handle_or_null)
        return stack.depth ? ct_context_pop(NULL) : CUDA_SUCCESS;
    if (!stack.depth)
        return ct_context_push(handle_or_null);
    r = find(handle_or_null, &entry);
    if (r != CUDA_SUCCESS)
        return r;
    drop(&stack.entries[stack.depth - 1]);
    stack.entries[stack.depth - 1] = entry;
    return CUDA_SUCCESS;
}

/* Releases the use and fails if a kernel has failed in the context. */
static CUresult refuse_if_failed(struct ct_context *context)
{
    CUresult sticky = ct_context_error(context);

    if (sticky == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    ct_context_release(context);
    ct_log(CT_LOG_DEBUG, "an earlier kernel failed with error %d", (int)sticky); /* ct_context_check has logged a warning */
    return sticky;
}

/* The current context, failed or not. Host functions have none: they may only make calls that find the context by a handle. */
static CUresult current(struct ct_context **out)
{
    if (ct_thread_is_in_host_function())
        return ct_fail(CUDA_ERROR_NOT_PERMITTED, "a host function of a stream has no current context");
    return ct_context_lookup_or_current(NULL, out);
}

static CUresult or_null(CUresult r, struct ct_context **out)
{
    if (r != CUDA_ERROR_INVALID_CONTEXT)
        return r;
    *out = NULL;
    return CUDA_SUCCESS;
}

CUresult ct_context_current(struct ct_context **out)
{
    struct ct_context *context;
    CUresult r = current(&context);

    if (r == CUDA_SUCCESS)
        r = refuse_if_failed(context);
    if (r == CUDA_SUCCESS)
        *out = context;
    return r;
}

CUresult ct_context_current_or_null(struct ct_context **out)
{
    return or_null(ct_context_current(out), out);
}

CUresult ct_context_failed_or_null(struct ct_context **out)
{
    return or_null(current(out), out);
}

CUresult ct_context_enter(struct ct_context *context)
{
    CUresult r = ct_context_use(context);

    return r == CUDA_SUCCESS ? refuse_if_failed(context) : r;
}

CUresult ct_context_lookup_or_current(CUcontext handle, struct ct_context **out)
{
    struct ct_context *top;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    if (handle) { /* CONTEXT_IS_DESTROYED is only for current contexts; an invalid handle is INVALID_CONTEXT */
        r = ct_context_lookup(handle, out);
        return r == CUDA_ERROR_CONTEXT_IS_DESTROYED ? CUDA_ERROR_INVALID_CONTEXT : r;
    }
    top = ct_context_top_or_null();
    if (!top)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current");
    r = ct_context_use(top);
    if (r == CUDA_SUCCESS)
        *out = top;
    return r;
}
