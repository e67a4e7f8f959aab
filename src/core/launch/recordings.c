/* SPDX-License-Identifier: Apache-2.0 */
#include "recordings.h"

#include "core/base/log.h"

#include <stdlib.h>

#define CT_CHANNEL "launch"

static struct ct_mutex lock = CT_MUTEX_INITIALIZER(CT_RANK_RECORDINGS);
static struct ct_recordings *all; /* guarded by `lock`, as is the context of each */

CUresult ct_recordings_init(struct ct_recordings *out, const struct ct_context *context, size_t count)
{
    *out = (struct ct_recordings){.context = context, .backend = context->backend, .count = count};
    out->list = calloc(count ? count : 1, sizeof(*out->list));
    if (!out->list)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %zu recordings", count);
    ct_mutex_lock(&lock);
    if ((out->next = all) != NULL)
        all->link = &out->next;
    out->link = &all;
    all = out;
    ct_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static void destroy_locked(struct ct_recordings *recordings)
{
    for (size_t i = 0; i < recordings->count && recordings->context; i++)
        if (recordings->list[i])
            recordings->backend->recordings->destroy(recordings->list[i]);
    recordings->context = NULL;
}

void ct_recordings_finish(struct ct_recordings *recordings)
{
    if (!recordings->list)
        return;
    ct_mutex_lock(&lock);
    destroy_locked(recordings);
    if ((*recordings->link = recordings->next) != NULL)
        recordings->next->link = recordings->link;
    ct_mutex_unlock(&lock);
    free(recordings->list);
    recordings->list = NULL;
}

bool ct_recordings_are_for(const struct ct_recordings *recordings, const struct ct_context *context)
{
    bool are_for;

    ct_mutex_lock(&lock);
    are_for = recordings->context == context;
    ct_mutex_unlock(&lock);
    return are_for;
}

void ct_recordings_forget(const struct ct_context *context)
{
    ct_mutex_lock(&lock);
    for (struct ct_recordings *recordings = all; recordings; recordings = recordings->next)
        if (recordings->context == context)
            destroy_locked(recordings);
    ct_mutex_unlock(&lock);
}
