/* SPDX-License-Identifier: Apache-2.0 */
/* Data races, by vector clocks (PTX ISA, "Memory Consistency Model"): a thread's clock counts its releases; an access happened before a
 * point in another thread if that thread's vector clock has reached the count at which it happened. Two accesses of a byte conflict if at
 * least one is a write and they are not both strong (atomic, volatile or with semantics); a conflict in which neither access happened
 * before the other is a race.
 *
 * The following are ordered: accesses that barriers and bar.warp.sync separate; a strong write behind a fence (or .release), with the
 * strong read in front of a fence (or .acquire) that saw it. Shuffles and votes order nothing. */
#include "machine.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    uint32_t clock; /* the thread's own, at the access */
    uint16_t thread;
    uint8_t access; /* enum oracle_access */
};

/* The accesses of a byte that later ones may still conflict with, all of one block. */
struct oracle_shadow {
    struct entry *entries;
    uint32_t n, cap;
    uint64_t block; /* number + 1 */
};

struct oracle_shadow *oracle_shadow_create(uint64_t n)
{
    return oracle_zalloc(n + 1, sizeof(struct oracle_shadow));
}

void oracle_shadow_destroy(struct oracle_shadow *shadow, uint64_t n)
{
    for (uint64_t i = 0; shadow && i < n; i++)
        free(shadow[i].entries);
    free(shadow);
}

/* ---- accesses ---- */

static bool conflict(int a, int b)
{
    return ((a | b) & ORACLE_WRITE) && !(a & b & ORACLE_STRONG);
}

/* Any later access that races with `old` also races with `now`. */
static bool covers(int now, int old)
{
    return ((now & ORACLE_WRITE) || !(old & ORACLE_WRITE)) && (!(now & ORACLE_STRONG) || (old & ORACLE_STRONG));
}

static bool fail(struct oracle_step *s, const struct oracle_object *object, uint64_t offset, int now, const struct entry *old,
                 const char *where)
{
    static const char *const space_names[] = {[PTX_SPACE_CONST] = ".const", [PTX_SPACE_GLOBAL] = ".global", [PTX_SPACE_SHARED] = ".shared"};

    oracle_fail(s, ORACLE_RACE, "%s the byte at %s address 0x%llx that thread %u%s %s, with nothing between",
                now & ORACLE_WRITE ? "writes" : "reads", space_names[object->space], (unsigned long long)(object->address + offset),
                old->thread, where, old->access & ORACLE_WRITE ? "wrote" : "read");
    return false;
}

/* The first access of a block to a byte that an earlier block accessed. */
static bool enter_block(struct oracle_step *s, struct oracle_object *object, uint64_t offset, int access)
{
    struct oracle_shadow *shadow = &object->shadow[offset];

    for (uint32_t i = 0; i < shadow->n && s->grid->launch->find_grid_races; i++)
        if (conflict(access, shadow->entries[i].access))
            return fail(s, object, offset, access, &shadow->entries[i], " of another block");
    shadow->block = s->block->number + 1;
    shadow->n = 0;
    return true;
}

static bool note_byte(struct oracle_step *s, struct oracle_object *object, uint64_t offset, int access)
{
    struct oracle_shadow *shadow = &object->shadow[offset];
    const struct oracle_thread *thread = s->thread;
    uint32_t kept = 0;

    if (shadow->block != s->block->number + 1 && !enter_block(s, object, offset, access))
        return false;
    for (uint32_t i = 0; i < shadow->n; i++) {
        const struct entry old = shadow->entries[i];
        const bool is_known = old.thread == thread->index || old.clock <= thread->clock[old.thread];

        if (!is_known && conflict(access, old.access))
            return fail(s, object, offset, access, &old, "");
        if (!is_known || !covers(access, old.access))
            shadow->entries[kept++] = old;
    }
    shadow->n = kept;
    if (shadow->n == shadow->cap)
        shadow->entries = oracle_grow(shadow->entries, &shadow->cap, shadow->n, sizeof *shadow->entries);
    shadow->entries[shadow->n++] =
        (struct entry){.clock = thread->clock[thread->index], .thread = (uint16_t)thread->index, .access = (uint8_t)access};
    return true;
}

bool oracle_note(struct oracle_step *s, struct oracle_object *object, uint64_t offset, unsigned size, int access)
{
    if (!s->thread->clock)
        return true;
    for (unsigned i = 0; i < size; i++)
        if (!note_byte(s, object, offset + i, access))
            return false;
    return true;
}

/* ---- clocks ---- */

void oracle_clocks_create(struct oracle_block *block)
{
    const uint32_t n = block->n_threads;

    for (uint32_t i = 0; i < n && block->grid->launch->find_races; i++) {
        block->threads[i].clock = oracle_zalloc(n, sizeof(uint32_t));
        block->threads[i].pending = oracle_zalloc(n, sizeof(uint32_t));
        block->threads[i].clock[i] = 1;
    }
}

void oracle_clocks_finish(struct oracle_block *block)
{
    for (uint32_t i = 0; i < block->n_threads; i++) {
        free(block->threads[i].clock);
        free(block->threads[i].pending);
        free(block->threads[i].released);
    }
    for (unsigned i = 0; i < ORACLE_BARRIERS; i++)
        free(block->barriers[i].clock);
    for (uint32_t i = 0; i < block->n_locations; i++)
        free(block->locations[i].clock);
    free(block->locations);
}

static void join(uint32_t *to, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = to[i] > from[i] ? to[i] : from[i];
}

void oracle_release_to(struct oracle_block *block, struct oracle_thread *thread, uint32_t **clock)
{
    if (!thread->clock)
        return;
    if (!*clock)
        *clock = oracle_zalloc(block->n_threads, sizeof **clock);
    join(*clock, thread->clock, block->n_threads);
    thread->clock[thread->index]++;
}

void oracle_acquire_from(struct oracle_block *block, struct oracle_thread *thread, const uint32_t *clock)
{
    if (thread->clock && clock)
        join(thread->clock, clock, block->n_threads);
}

void oracle_synchronize(struct oracle_block *block, struct oracle_thread **threads, uint32_t n)
{
    uint32_t *clock = NULL;

    for (uint32_t i = 0; i < n; i++)
        oracle_release_to(block, threads[i], &clock);
    for (uint32_t i = 0; i < n; i++)
        oracle_acquire_from(block, threads[i], clock);
    free(clock);
}

/* ---- synchronization through memory ---- */

void oracle_fence(struct oracle_step *s)
{
    struct oracle_thread *thread = s->thread;
    const uint32_t n = s->block->n_threads;

    if (!thread->clock)
        return;
    join(thread->clock, thread->pending, n);
    if (!thread->released)
        thread->released = oracle_zalloc(n, sizeof *thread->released);
    memcpy(thread->released, thread->clock, n * sizeof *thread->released);
    thread->clock[thread->index]++;
}

static struct oracle_location *find_location(struct oracle_block *block, uint64_t generic)
{
    for (uint32_t i = 0; i < block->n_locations; i++)
        if (block->locations[i].address == generic)
            return &block->locations[i];
    return NULL;
}

static struct oracle_location *make_location(struct oracle_block *block, uint64_t generic)
{
    struct oracle_location *location = find_location(block, generic);

    if (location)
        return location;
    if (block->n_locations == block->cap_locations)
        block->locations = oracle_grow(block->locations, &block->cap_locations, block->n_locations, sizeof *block->locations);
    location = &block->locations[block->n_locations++];
    *location = (struct oracle_location){.address = generic, .clock = oracle_zalloc(block->n_threads, sizeof *location->clock)};
    return location;
}

void oracle_strong_write(struct oracle_step *s, uint64_t generic, bool is_release, bool keeps_chain)
{
    struct oracle_thread *thread = s->thread;
    struct oracle_location *location;

    if (!thread->clock || (!is_release && !thread->released && !find_location(s->block, generic)))
        return;
    location = make_location(s->block, generic);
    if (!keeps_chain)
        memset(location->clock, 0, s->block->n_threads * sizeof *location->clock);
    if (is_release)
        oracle_release_to(s->block, thread, &location->clock);
    else if (thread->released)
        join(location->clock, thread->released, s->block->n_threads);
}

void oracle_strong_read(struct oracle_step *s, uint64_t generic, bool is_acquire)
{
    struct oracle_thread *thread = s->thread;
    const struct oracle_location *location = thread->clock ? find_location(s->block, generic) : NULL;

    if (!location)
        return;
    join(thread->pending, location->clock, s->block->n_threads);
    if (is_acquire)
        join(thread->clock, location->clock, s->block->n_threads);
}
