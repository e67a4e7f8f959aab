/* SPDX-License-Identifier: Apache-2.0 */
#include "deferred_work.h"

#include "context.h"

static struct ct_mutex lock = CT_MUTEX_INITIALIZER(CT_RANK_DEFERRED_WORK);
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static unsigned long long all; /* of all contexts */

void ct_deferred_work_begin(struct ct_context *context)
{
    ct_mutex_lock(&lock);
    context->deferred_work++;
    all++;
    ct_mutex_unlock(&lock);
}

void ct_deferred_work_end(struct ct_context *context)
{
    ct_mutex_lock(&lock);
    context->deferred_work--;
    all--;
    pthread_cond_broadcast(&ended);
    ct_mutex_unlock(&lock);
}

void ct_deferred_work_await(const struct ct_context *context)
{
    ct_mutex_lock(&lock);
    while (context ? context->deferred_work : all)
        ct_mutex_wait(&lock, &ended);
    ct_mutex_unlock(&lock);
}
