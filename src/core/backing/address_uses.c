/* SPDX-License-Identifier: Apache-2.0 */
/* Announcements of the threads. A thread's record is in a list that only grows, since waiting threads read it without a lock; it is reused
 * by another thread when its thread ends. */
#include "address_uses.h"

#include "core/base/permanent_arena.h"
#include "core/base/locks.h"
#include "core/base/log.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define CT_CHANNEL "address_space"
#define USES 4 /* of a thread: further ones extend the last */
#define FIRST_SLEEP_NS 10000l
#define LAST_SLEEP_NS 1000000l

/* The bytes [first, last]; last < first: none. */
struct use {
    _Atomic uint64_t first, last;
};

struct record {
    struct record *next;
    atomic_bool taken;
    unsigned n; /* only the record's thread uses this */
    struct use uses[USES];
};

static struct {
    struct ct_mutex lock; /* guards insertions into the list */
    _Atomic(struct record *) first;
    struct ct_permanent_arena memory;
} records = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_ADDRESS_SPACE)};

static _Thread_local struct record *own;

static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key; /* set in threads that have a record */
static bool exit_key_usable;

/* ---- records ---- */

static void thread_ends(void *user)
{
    struct record *record = user;

    own = NULL;
    atomic_store_explicit(&record->taken, false, memory_order_release); /* pairs with the exchange in reuse_or_null */
}

static void make_exit_key(void)
{
    exit_key_usable = pthread_key_create(&exit_key, thread_ends) == 0;
}

/* The library may be unloaded before its threads end. */
__attribute__((destructor)) static void delete_exit_key(void)
{
    if (exit_key_usable)
        pthread_key_delete(exit_key);
}

static struct record *first_record(void)
{
    return atomic_load_explicit(&records.first, memory_order_acquire); /* pairs with the release in add_or_null */
}

static struct record *reuse_or_null(void)
{
    for (struct record *record = first_record(); record; record = record->next)
        if (!atomic_load_explicit(&record->taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(&record->taken, true, memory_order_acquire))
            return record;
    return NULL;
}

static struct record *add_or_null(void)
{
    struct record *record;

    ct_mutex_lock(&records.lock);
    record = ct_permanent_arena_alloc(&records.memory, sizeof *record);
    if (record) {
        record->next = atomic_load_explicit(&records.first, memory_order_relaxed);
        record->n = 0;
        atomic_init(&record->taken, true);
        for (int i = 0; i < USES; i++) {
            atomic_init(&record->uses[i].first, UINT64_MAX);
            atomic_init(&record->uses[i].last, 0);
        }
        atomic_store_explicit(&records.first, record, memory_order_release);
    }
    ct_mutex_unlock(&records.lock);
    return record;
}

static CUresult find_own(void)
{
    struct record *record;

    if (own)
        return CUDA_SUCCESS;
    pthread_once(&exit_once, make_exit_key);
    if (!exit_key_usable || (!(record = reuse_or_null()) && !(record = add_or_null())))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of the addresses that a thread uses");
    if (pthread_setspecific(exit_key, record) != 0) {
        atomic_store_explicit(&record->taken, false, memory_order_release);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a thread-specific value");
    }
    own = record;
    return CUDA_SUCCESS;
}

/* ---- announcements ---- */

unsigned ct_address_uses_begin(void)
{
    return own ? own->n : 0;
}

/* Relaxed stores: the fence behind them orders them before the look-up. */
static void set(struct use *use, uint64_t first, uint64_t last)
{
    atomic_store_explicit(&use->first, first, memory_order_relaxed);
    atomic_store_explicit(&use->last, last, memory_order_relaxed);
}

/* Adds to the last use instead: the bytes between the two are awaited needlessly. */
static void extend(struct use *use, uint64_t first, uint64_t last)
{
    const uint64_t old_first = atomic_load_explicit(&use->first, memory_order_relaxed);
    const uint64_t old_last = atomic_load_explicit(&use->last, memory_order_relaxed);

    set(use, first < old_first ? first : old_first, last > old_last ? last : old_last);
}

/* ThreadSanitizer does not know fences; an exchange is one on the processors where it runs. */
static void full_fence(void)
{
#if defined(__SANITIZE_THREAD__)
    static atomic_uint order;

    atomic_fetch_add(&order, 1);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

CUresult ct_address_use(uint64_t address, uint64_t size_bytes)
{
    const uint64_t more = size_bytes ? size_bytes - 1 : 0, last = more < UINT64_MAX - address ? address + more : UINT64_MAX;
    CUresult r = find_own();

    if (r != CUDA_SUCCESS)
        return r;
    if (own->n < USES)
        set(&own->uses[own->n], address, last);
    else
        extend(&own->uses[USES - 1], address, last);
    own->n++;
    full_fence();
    return CUDA_SUCCESS;
}

void ct_address_uses_end(unsigned begin)
{
    if (!own)
        return;
    assert(begin <= own->n);
    for (unsigned i = begin; i < own->n && i < USES; i++) /* release: the accesses precede it for the thread that awaits it */
        atomic_store_explicit(&own->uses[i].last, 0, memory_order_release);
    own->n = begin;
}

/* ---- waiting ---- */

static bool overlaps(const struct record *record, uint64_t start, uint64_t end_last)
{
    for (int i = 0; i < USES; i++) {
        const uint64_t last = atomic_load_explicit(&record->uses[i].last, memory_order_acquire); /* pairs with ct_address_uses_end */
        const uint64_t first = atomic_load_explicit(&record->uses[i].first, memory_order_relaxed);

        if (first <= end_last && last >= start && first <= last)
            return true;
    }
    return false;
}

void ct_address_uses_await(uint64_t start, uint64_t size_bytes)
{
    struct timespec pause = {.tv_nsec = FIRST_SLEEP_NS};

    assert(ct_mutex_none_held());
    full_fence();
    for (const struct record *record = first_record(); record; record = record->next)
        while (record != own && overlaps(record, start, start + (size_bytes - 1))) {
            nanosleep(&pause, NULL);
            pause.tv_nsec = pause.tv_nsec < LAST_SLEEP_NS / 2 ? pause.tv_nsec * 2 : LAST_SLEEP_NS;
        }
}
