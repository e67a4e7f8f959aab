/* SPDX-License-Identifier: Apache-2.0 */
/* The list has an entry for all memory of other processes that is open. The entry is added before the memory is opened, and removed after it is closed; the
 * lock is not held meanwhile. The other process may take seconds to answer, and only threads that want the same memory wait for that. */
#include "opened_backing.h"

#include "core/base/locks.h"
#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "ipc"

static struct {
    struct ct_mutex lock;
    pthread_cond_t changed; /* an entry has become ready, or was removed */
    struct ct_opened_backing *first;
} openings = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_OPENED_BACKING), .changed = PTHREAD_COND_INITIALIZER};

static struct ct_opened_backing *find_locked(const struct ct_opened_backing *wanted)
{
    struct ct_opened_backing *opened = openings.first;

    while (opened && (opened->owner != wanted->owner || opened->process != wanted->process || opened->memory_id != wanted->memory_id))
        opened = opened->next;
    return opened;
}

static struct ct_opened_backing *add_locked(const struct ct_opened_backing *wanted)
{
    struct ct_opened_backing *opened = malloc(sizeof *opened);

    if (!opened)
        return NULL;
    *opened = *wanted;
    opened->next = openings.first;
    openings.first = opened;
    return opened;
}

static void remove_and_free(struct ct_opened_backing *opened)
{
    struct ct_opened_backing **link = &openings.first;

    ct_mutex_lock(&openings.lock);
    while (*link != opened)
        link = &(*link)->next;
    *link = opened->next;
    pthread_cond_broadcast(&openings.changed);
    ct_mutex_unlock(&openings.lock);
    free(opened);
}

void ct_opened_backing_release(struct ct_context *context, struct ct_opened_backing *opened)
{
    bool last;

    if (!opened)
        return;
    ct_mutex_lock(&openings.lock);
    last = --opened->references == 0;
    opened->is_ready = !last;
    ct_mutex_unlock(&openings.lock);
    if (!last)
        return;
    ct_backing_destroy(context, &opened->backing);
    remove_and_free(opened);
}

/* Opens the memory of a new entry. */
static CUresult open_new(struct ct_context *context, const struct ct_share_name *name, struct ct_opened_backing *opened)
{
    CUresult r = ct_backing_open(context, name, &opened->backing, &opened->lead_bytes, &opened->size_bytes);

    if (r != CUDA_SUCCESS) {
        remove_and_free(opened);
        return r;
    }
    ct_mutex_lock(&openings.lock);
    opened->is_ready = true;
    pthread_cond_broadcast(&openings.changed);
    ct_mutex_unlock(&openings.lock);
    return CUDA_SUCCESS;
}

/* The memory is open; whether the name is valid is still the other process's to say. */
static CUresult check_name(struct ct_context *context, const struct ct_share_name *name, struct ct_opened_backing *opened)
{
    struct ct_shared_memory shared;
    CUresult r = ct_share_fetch(name, &shared);

    if (r == CUDA_SUCCESS)
        ct_shared_memory_finish(&shared);
    else
        ct_opened_backing_release(context, opened);
    return r;
}

CUresult ct_opened_backing_get(struct ct_context *context, const struct ct_share_name *name, uint64_t memory_id,
                               struct ct_opened_backing **out)
{
    const struct ct_opened_backing wanted = {
        .owner = context->object.handle, .process = name->process, .memory_id = memory_id, .references = 1};
    struct ct_opened_backing *opened, *new = NULL;
    CUresult r;

    ct_mutex_lock(&openings.lock);
    while ((opened = find_locked(&wanted)) && !opened->is_ready)
        ct_mutex_wait(&openings.lock, &openings.changed);
    if (opened)
        opened->references++;
    else
        opened = new = add_locked(&wanted);
    ct_mutex_unlock(&openings.lock);
    if (!opened)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory to open that of another process");
    r = new ? open_new(context, name, new) : check_name(context, name, opened);
    if (r == CUDA_SUCCESS)
        *out = opened;
    return r;
}
