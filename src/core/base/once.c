/* SPDX-License-Identifier: Apache-2.0 */
/* The state is read without the lock first, since most calls come when the work is done. */
#include "once.h"

enum { NOT_YET, RUNNING, DONE };

void ct_once_init(struct ct_once *once)
{
    atomic_init(&once->state, NOT_YET);
    pthread_cond_init(&once->changed, NULL);
}

void ct_once_destroy(struct ct_once *once)
{
    pthread_cond_destroy(&once->changed);
}

bool ct_once_begin(struct ct_once *once, struct ct_mutex *lock)
{
    bool begins;

    if (atomic_load_explicit(&once->state, memory_order_acquire) == DONE) /* pairs with the release in ct_once_end */
        return false;
    ct_mutex_lock(lock);
    while (atomic_load(&once->state) == RUNNING)
        ct_mutex_wait(lock, &once->changed);
    begins = atomic_load(&once->state) == NOT_YET;
    if (begins)
        atomic_store(&once->state, RUNNING);
    ct_mutex_unlock(lock);
    return begins;
}

void ct_once_end(struct ct_once *once, struct ct_mutex *lock, bool is_done)
{
    ct_mutex_lock(lock);
    atomic_store_explicit(&once->state, is_done ? DONE : NOT_YET, memory_order_release);
    pthread_cond_broadcast(&once->changed);
    ct_mutex_unlock(lock);
}
