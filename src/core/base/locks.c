/* SPDX-License-Identifier: Apache-2.0 */
/* Locks with ranks. Each thread counts the locks it holds; debug builds also list them and assert that ranks ascend. */
#include "locks.h"

#include <assert.h>
#include <stddef.h>

static _Thread_local unsigned n_held;
static _Thread_local void (*when_none_held)(void); /* NULL: no call is pending */

#ifndef NDEBUG
#define CT_MAX_HELD 16
static _Thread_local struct {
    const struct ct_mutex *locks[CT_MAX_HELD];
    unsigned count;
} held;

static void note_locked(const struct ct_mutex *mutex)
{
    assert(held.count < CT_MAX_HELD);
    held.locks[held.count++] = mutex;
}

static void check_rank(const struct ct_mutex *mutex)
{
    assert(mutex->rank && "the lock exists");
    for (unsigned i = 0; i < held.count; i++)
        assert(held.locks[i]->rank < mutex->rank && "locks are taken in ascending rank");
}

static void note_unlocked(const struct ct_mutex *mutex)
{
    unsigned i = held.count;

    while (i > 0 && held.locks[i - 1] != mutex)
        i--;
    assert(i > 0 && "unlocked by the thread that locked");
    for (held.count--; i <= held.count; i++)
        held.locks[i - 1] = held.locks[i];
}

bool ct_mutex_held(const struct ct_mutex *mutex)
{
    for (unsigned i = 0; i < held.count; i++)
        if (held.locks[i] == mutex)
            return true;
    return false;
}
#else
static void note_locked(const struct ct_mutex *mutex)
{
    (void)mutex;
}

static void check_rank(const struct ct_mutex *mutex)
{
    (void)mutex;
}

static void note_unlocked(const struct ct_mutex *mutex)
{
    (void)mutex;
}

bool ct_mutex_held(const struct ct_mutex *mutex)
{
    (void)mutex;
    return true;
}
#endif

void ct_mutex_init(struct ct_mutex *mutex, enum ct_lock_rank rank)
{
    pthread_mutex_init(&mutex->mutex, NULL); /* cannot fail with default attributes on Linux */
    mutex->rank = (int)rank;
}

void ct_mutex_finish(struct ct_mutex *mutex)
{
    mutex->rank = 0; /* ThreadSanitizer reports this write if a thread still uses the lock; ci/tsan.supp excuses the next call */
    pthread_mutex_destroy(&mutex->mutex);
}

void ct_mutex_lock(struct ct_mutex *mutex)
{
    check_rank(mutex);
    pthread_mutex_lock(&mutex->mutex);
    n_held++;
    note_locked(mutex);
}

static void call_deferred(void)
{
    void (*function)(void) = when_none_held;

    when_none_held = NULL;
    function();
}

void ct_mutex_unlock(struct ct_mutex *mutex)
{
    note_unlocked(mutex);
    pthread_mutex_unlock(&mutex->mutex);
    if (--n_held == 0 && when_none_held)
        call_deferred();
}

void ct_mutex_when_none_held(void (*function)(void))
{
    when_none_held = function;
    if (n_held == 0)
        call_deferred();
}

bool ct_mutex_none_held(void)
{
    return n_held == 0;
}

void ct_mutex_wait(struct ct_mutex *mutex, pthread_cond_t *condition)
{
    assert(ct_mutex_held(mutex));
    pthread_cond_wait(condition, &mutex->mutex);
}

bool ct_mutex_wait_until(struct ct_mutex *mutex, pthread_cond_t *condition, const struct timespec *deadline)
{
    assert(ct_mutex_held(mutex));
    return pthread_cond_timedwait(condition, &mutex->mutex, deadline) == 0;
}
