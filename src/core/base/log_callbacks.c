/* SPDX-License-Identifier: Apache-2.0 */
/* The failing thread itself calls the callbacks, before its CUDA call returns. Failures often occur under locks, where no function of the
 * application may be called; they are queued in a list of the thread until it releases its last lock (ct_mutex_when_none_held). Failures
 * inside a callback are not reported to callbacks. */
#include "log_callbacks.h"

#include "locks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct CUlogsCallbackEntry_st {
    struct CUlogsCallbackEntry_st *next;
    CUlogsCallback function;
    void *user;
    unsigned long long number; /* in the order of registration */
    unsigned running;          /* number of active calls */
    bool removed;              /* no new calls; the remover waits for the active ones and frees the entry */
    bool orphaned;             /* the callback removed itself: the entry is freed at the end of its last call */
};

/* Global like the history, since calls may also fail before cuInit. */
static struct {
    struct ct_mutex lock;
    pthread_cond_t idle; /* signalled when a removed entry has no active calls */
    struct CUlogsCallbackEntry_st *first;
    unsigned long long last_number;
    atomic_uint count; /* of entries that are not removed; relaxed: a new callback may miss concurrent failures */
} registry = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_LOG), .idle = PTHREAD_COND_INITIALIZER};

struct message {
    struct message *next;
    size_t length;
    char text[];
};

static _Thread_local struct {
    struct message *first;                  /* oldest first */
    struct CUlogsCallbackEntry_st *calling; /* the callback that is running */
    bool busy;                              /* callbacks are being called */
} mine;

CUresult ct_log_callbacks_add(CUlogsCallback function, void *user, CUlogsCallbackHandle *out_or_null)
{
    struct CUlogsCallbackEntry_st *entry = calloc(1, sizeof *entry), **link = &registry.first;

    if (!entry)
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry->function = function;
    entry->user = user;
    ct_mutex_lock(&registry.lock);
    entry->number = ++registry.last_number;
    while (*link)
        link = &(*link)->next;
    *link = entry;
    atomic_fetch_add_explicit(&registry.count, 1, memory_order_relaxed);
    ct_mutex_unlock(&registry.lock);
    if (out_or_null)
        *out_or_null = entry;
    return CUDA_SUCCESS;
}

static void unlink_locked(struct CUlogsCallbackEntry_st *entry)
{
    struct CUlogsCallbackEntry_st **link = &registry.first;

    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
}

CUresult ct_log_callbacks_remove(CUlogsCallbackHandle handle)
{
    const bool by_itself = handle && mine.calling == handle;
    struct CUlogsCallbackEntry_st *entry;
    bool found;

    ct_mutex_lock(&registry.lock);
    for (entry = registry.first; entry && (entry != handle || entry->removed);)
        entry = entry->next;
    found = entry != NULL;
    if (entry) {
        entry->removed = true;
        atomic_fetch_sub_explicit(&registry.count, 1, memory_order_relaxed);
        while (entry->running > by_itself)
            ct_mutex_wait(&registry.lock, &registry.idle);
        entry->orphaned = by_itself;
        if (!by_itself) {
            unlink_locked(entry);
            free(entry);
        }
    }
    ct_mutex_unlock(&registry.lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The next entry behind number `after`, marked as running; NULL: there is none. */
static struct CUlogsCallbackEntry_st *enter_next_or_null(unsigned long long after)
{
    struct CUlogsCallbackEntry_st *entry;

    ct_mutex_lock(&registry.lock);
    for (entry = registry.first; entry && (entry->removed || entry->number <= after);)
        entry = entry->next;
    if (entry)
        entry->running++;
    ct_mutex_unlock(&registry.lock);
    return entry;
}

/* The entry may be freed afterwards. */
static void leave(struct CUlogsCallbackEntry_st *entry)
{
    ct_mutex_lock(&registry.lock);
    entry->running--;
    if (entry->removed)
        pthread_cond_broadcast(&registry.idle);
    if (entry->orphaned) {
        unlink_locked(entry);
        free(entry);
    }
    ct_mutex_unlock(&registry.lock);
}

static void call_all(struct message *message)
{
    struct CUlogsCallbackEntry_st *entry;
    unsigned long long number = 0;

    while ((entry = enter_next_or_null(number)) != NULL) {
        number = entry->number;
        mine.calling = entry;
        entry->function(entry->user, CU_LOG_LEVEL_ERROR, message->text, message->length);
        mine.calling = NULL;
        leave(entry);
    }
}

static void deliver(void)
{
    struct message *message;

    if (mine.busy)
        return;
    mine.busy = true;
    while ((message = mine.first) != NULL) {
        mine.first = message->next;
        call_all(message);
        free(message);
    }
    mine.busy = false;
}

void ct_log_callbacks_call(const char *text)
{
    struct message *message, **link = &mine.first;

    if (atomic_load_explicit(&registry.count, memory_order_relaxed) == 0 || mine.busy)
        return;
    message = malloc(sizeof *message + strlen(text) + 1);
    if (!message)
        return; /* the message is still in the history */
    message->next = NULL;
    message->length = strlen(text);
    memcpy(message->text, text, message->length + 1);
    while (*link)
        link = &(*link)->next;
    *link = message;
    ct_mutex_when_none_held(deliver);
}
