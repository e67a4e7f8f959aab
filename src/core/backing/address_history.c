/* SPDX-License-Identifier: Apache-2.0 */
/* Living ranges are in a hash table by their start, removed ones in a ring, of which the oldest are forgotten. Look-ups in it visit all of them: they
 * are made for reports only. */
#include "address_history.h"

#include "core/base/config.h"
#include "core/base/log.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdlib.h>

#define CT_CHANNEL "address_space"
#define BUCKETS 4096u
#define REMOVED_MAX 8192u

struct entry {
    struct entry *next;
    struct ct_range_life life;
};

static struct {
    struct ct_mutex lock; /* guards everything below */
    struct entry *living[BUCKETS];
    struct entry *removed[REMOVED_MAX];
    unsigned n_removed; /* modulo 2^32; the next one replaces the oldest */
    uint64_t now;
} history = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_HISTORY)};

static struct entry **bucket_of(uint64_t start)
{
    return &history.living[start * 0x9e3779b97f4a7c15u >> 52];
}

static bool is_ours(const void *address)
{
    static const char here;
    Dl_info own, other;

    return dladdr(&here, &own) && dladdr(address, &other) && own.dli_fbase == other.dli_fbase;
}

/* The first frames are those of this library. A program into which it is linked statically (tests) keeps them. */
void ct_host_stack_take(struct ct_host_stack *out)
{
    void *frames[CT_STACK_FRAMES + 16];
    const int n = backtrace(frames, sizeof frames / sizeof *frames);
    int first = 0;

    while (first < n && is_ours(frames[first]))
        first++;
    first = first == n ? 0 : first;
    out->n = 0;
    for (int i = first; i < n && out->n < CT_STACK_FRAMES; i++)
        out->frames[out->n++] = frames[i];
}

void ct_history_note_birth(const struct ct_range *range)
{
    struct entry *entry = ct_config()->check ? calloc(1, sizeof *entry) : NULL;

    if (!entry)
        return; /* out of memory: reports will not know it */
    entry->life = (struct ct_range_life){.start = range->start,
                                         .size_bytes = range->size_bytes,
                                         .kind = range->kind,
                                         .owner = range->owner,
                                         .is_internal = ct_range_is_second_address(range)};
    ct_host_stack_take(&entry->life.birth);
    ct_mutex_lock(&history.lock);
    entry->life.born = ++history.now;
    entry->next = *bucket_of(range->start);
    *bucket_of(range->start) = entry;
    ct_mutex_unlock(&history.lock);
}

static struct entry **find_locked(uint64_t start)
{
    struct entry **at = bucket_of(start);

    while (*at && (*at)->life.start != start)
        at = &(*at)->next;
    return at;
}

void ct_history_note_death(uint64_t start)
{
    struct ct_host_stack stack;
    struct entry **at, *entry, **place;

    if (!ct_config()->check)
        return;
    ct_host_stack_take(&stack);
    ct_mutex_lock(&history.lock);
    at = find_locked(start);
    entry = *at;
    if (entry) {
        *at = entry->next;
        entry->life.died = ++history.now;
        entry->life.death = stack;
        place = &history.removed[history.n_removed++ % REMOVED_MAX];
        free(*place);
        *place = entry;
    }
    ct_mutex_unlock(&history.lock);
}

void ct_history_hide(uint64_t start)
{
    struct entry *entry;

    ct_mutex_lock(&history.lock);
    entry = *find_locked(start);
    if (entry)
        entry->life.is_internal = true;
    ct_mutex_unlock(&history.lock);
}

uint64_t ct_history_now(void)
{
    uint64_t now;

    ct_mutex_lock(&history.lock);
    now = ++history.now;
    ct_mutex_unlock(&history.lock);
    return now;
}

/* ---- look-ups ---- */

static bool was_alive(const struct ct_range_life *life, uint64_t when)
{
    return life->born < when && (!life->died || life->died > when);
}

/* The number of bytes between two ranges; 0: they touch or overlap. */
static uint64_t gap(const struct ct_range_life *life, uint64_t address, uint64_t size_bytes)
{
    if (address >= life->start + life->size_bytes)
        return address - (life->start + life->size_bytes);
    return address + size_bytes <= life->start ? life->start - (address + size_bytes) : 0;
}

struct search {
    uint64_t address, size_bytes, when, best;
    const struct ct_range_life *found;
};

static void consider(struct search *search, const struct ct_range_life *life)
{
    const uint64_t distance = gap(life, search->address, search->size_bytes);

    if (was_alive(life, search->when) && (!search->found || distance < search->best)) {
        search->found = life;
        search->best = distance;
    }
}

bool ct_history_nearest(uint64_t address, uint64_t size_bytes, uint64_t when, struct ct_range_life *out)
{
    struct search search = {.address = address, .size_bytes = size_bytes, .when = when};

    ct_mutex_lock(&history.lock);
    for (unsigned b = 0; b < BUCKETS; b++)
        for (const struct entry *entry = history.living[b]; entry; entry = entry->next)
            consider(&search, &entry->life);
    for (unsigned i = 0; i < REMOVED_MAX && history.removed[i]; i++)
        consider(&search, &history.removed[i]->life);
    if (search.found)
        *out = *search.found;
    ct_mutex_unlock(&history.lock);
    return search.found != NULL;
}

bool ct_history_removed(uint64_t address, uint64_t when, struct ct_range_life *out)
{
    const struct ct_range_life *found = NULL;

    ct_mutex_lock(&history.lock);
    for (unsigned i = 0; i < REMOVED_MAX && history.removed[i]; i++) {
        const struct ct_range_life *life = &history.removed[i]->life;

        if (address - life->start < life->size_bytes && life->died < when && (!found || life->died > found->died))
            found = life;
    }
    if (found)
        *out = *found;
    ct_mutex_unlock(&history.lock);
    return found != NULL;
}

static int compare_births(const void *a, const void *b)
{
    const struct ct_range_life *const *x = a, *const *y = b;

    return (*x)->born<(*y)->born ? -1 : (*x)->born>(*y)->born;
}

static size_t list_living_locked(const struct ct_range_life **list, CUcontext owner_or_null)
{
    size_t n = 0;

    for (unsigned b = 0; b < BUCKETS; b++)
        for (const struct entry *entry = history.living[b]; entry; entry = entry->next)
            if (!owner_or_null || entry->life.owner == owner_or_null) {
                if (list)
                    list[n] = &entry->life;
                n++;
            }
    return n;
}

void ct_history_visit_living(CUcontext owner_or_null, void (*visit)(void *user, const struct ct_range_life *life), void *user)
{
    const struct ct_range_life **list;
    size_t n;

    ct_mutex_lock(&history.lock);
    n = list_living_locked(NULL, owner_or_null);
    list = malloc(n ? n * sizeof *list : 1);
    if (list) {
        list_living_locked(list, owner_or_null);
        qsort(list, n, sizeof *list, compare_births);
        for (size_t i = 0; i < n; i++)
            visit(user, list[i]);
        free(list);
    }
    ct_mutex_unlock(&history.lock);
}
