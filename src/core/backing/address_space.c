/* SPDX-License-Identifier: Apache-2.0 */
/* The map of every CUDA pointer of the process: ranges that do not overlap, found by any address in them.
 *
 * The map is a radix tree over the eight bytes of an address, the highest byte first. A table entry covers all addresses with one prefix.
 * It is empty, a range (the only one that has a byte among them), or a table for the next byte. So a look-up is a few loads without
 * comparisons, a range takes at most twice 255 entries per level, and a table is made only where an entry would cover two ranges. The
 * tables for the addresses below 2^56 and below 2^48 are permanent: nearly all addresses are below 2^48, and their look-ups start there.
 *
 * Readers take no lock, no reference count, and never retry. This is correct because:
 * 1. A range is a record, which is written once, before an entry points to it. `births` is odd while the record is alive; a reader
 *    compares it before and after copying, and treats a record that was retired in between as no range.
 * 2. A table on the path to a range remains until the range is removed: a table is freed when it contains no range, and a table that
 *    replaces a range in an entry already contains that range. So at every moment all entries of a range lead to it.
 * 3. Records and tables are never returned to the system, only reused: a pointer that a late reader follows is always a record or a table.
 * Hence a range that is in the map for the whole duration of a look-up is found. A range that is added or removed meanwhile may be missed;
 * if it is found, the copy is complete. A late reader in a reused table may reach ranges of other addresses, so it compares the addresses.
 */
#include "address_space.h"

#include "address_history.h"
#include "core/base/permanent_arena.h"
#include "core/base/log.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define CT_CHANNEL "address_space"
#define CACHE_LINE 64
#define TOP_SHIFT 56u /* the shift of the highest byte */
#define LOW_SHIFT 40u /* the shift of the highest non-zero byte of an address below 2^48 */
#define RANGE_WORDS (sizeof(struct ct_range) / sizeof(uint64_t))

struct record {
    atomic_ullong births;                /* incremented at birth and at retirement: odd while it is alive */
    _Atomic uint64_t words[RANGE_WORDS]; /* a struct ct_range; the first word of a retired record is the next free record */
};
_Static_assert(sizeof(struct ct_range) % sizeof(uint64_t) == 0, "the size of a range is a multiple of the word size");
_Static_assert(sizeof(struct record) == 2 * CACHE_LINE, "a record takes two cache lines");

struct table {
    alignas(CACHE_LINE) atomic_uintptr_t entries[256];
    unsigned n_ranges; /* ranges that have a byte here; only writers use this and the next member */
    struct table *next_free;
};

/* Process-wide, since a CUDA pointer means the same in every context. */
static struct {
    struct table root, below_2_56, low;
    struct ct_mutex lock; /* guards changes and the members below */
    struct record *free_records;
    struct table *free_tables;
    struct ct_permanent_arena memory;
    atomic_bool has_large_objects; /* ct_address_has_large_objects; not guarded */
} map = {
    .root.entries[0] = (uintptr_t)&map.below_2_56 + 1,
    .below_2_56 = {.entries[0] = (uintptr_t)&map.low + 1, .n_ranges = 1}, /* one too many, so that the permanent tables are never freed */
    .low.n_ranges = 1,
    .lock = CT_MUTEX_INITIALIZER(CT_RANK_ADDRESS_SPACE),
};

/* ---- entries: 0, a record, or a table plus 1 ---- */

static bool is_table(uintptr_t entry)
{
    return entry & 1;
}

static struct table *table_of(uintptr_t entry)
{
    return (struct table *)(entry - 1);
}

static struct record *record_of(uintptr_t entry)
{
    return (struct record *)entry;
}

static unsigned index_of(uint64_t address, unsigned shift)
{
    return address >> shift & 255;
}

static uintptr_t entry_at(const struct table *table, unsigned index)
{
    return atomic_load_explicit(&table->entries[index], memory_order_acquire); /* pairs with the release in set_entry */
}

static void set_entry(struct table *table, unsigned index, uintptr_t entry)
{
    atomic_store_explicit(&table->entries[index], entry, memory_order_release); /* the record or table is complete */
}

/* The entries of a table, whose first address is `base`, that cover a byte of [first, last]. */
struct span {
    unsigned begin, end; /* end: the last index + 1 */
};

static struct span span_in(uint64_t base, unsigned shift, uint64_t first, uint64_t last)
{
    uint64_t table_last = base + ((256ull << shift) - 1); /* in the root table 256 << shift is 0, and the sum is UINT64_MAX */

    return (struct span){first > base ? index_of(first, shift) : 0, (last < table_last ? index_of(last, shift) : 255) + 1};
}

/* ---- readers ---- */

/* Copies a record; false if it is not alive. Every load is an acquire: a word of a reused record makes its retirement visible, too. */
static bool copy_record(const struct record *record, struct ct_range *out)
{
    unsigned long long births = atomic_load_explicit(&record->births, memory_order_acquire); /* pairs with the release in record_make */

#pragma GCC unroll 16 /* saves a fifth of a look-up's time */
    for (size_t i = 0; i < RANGE_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&record->words[i], memory_order_acquire); /* pairs with the release in set_word */

        memcpy((char *)out + i * sizeof word, &word, sizeof word);
    }
    return births % 2 == 1 && atomic_load_explicit(&record->births, memory_order_relaxed) == births;
}

/* The entry at the end of the path of `address` from `table`, which is indexed by the byte at `shift`. */
static inline uintptr_t entry_below(const struct table *table, uint64_t address, unsigned shift)
{
    uintptr_t entry = entry_at(table, index_of(address, shift));

#pragma GCC unroll 8 /* together with the shorter path saves a fifth of a look-up's time */
    for (; shift > 0; shift -= 8) {
        if (!is_table(entry))
            return entry;
        entry = entry_at(table_of(entry), index_of(address, shift - 8));
    }
    return is_table(entry) ? 0 : entry; /* a late reader's path through reused tables may be longer than an address */
}

static uintptr_t entry_of_address(uint64_t address)
{
    return address >> (LOW_SHIFT + 8) ? entry_below(&map.root, address, TOP_SHIFT) : entry_below(&map.low, address, LOW_SHIFT);
}

static bool find_at(uint64_t address, struct ct_range *out)
{
    uintptr_t entry = entry_of_address(address);

    return entry && copy_record(record_of(entry), out) && address - out->start < out->size_bytes;
}

/* The first range in a table that has a byte in [first, last]. */
static bool find_between(const struct table *table, uint64_t base, unsigned shift, uint64_t first, uint64_t last, struct ct_range *out)
{
    struct span span = span_in(base, shift, first, last);

    for (unsigned i = span.begin; i < span.end; i++) {
        uintptr_t entry = entry_at(table, i);

        if (!entry)
            continue;
        if (!is_table(entry) && copy_record(record_of(entry), out) && out->start <= last && out->start + (out->size_bytes - 1) >= first)
            return true;
        if (is_table(entry) && shift > 0 && find_between(table_of(entry), base + ((uint64_t)i << shift), shift - 8, first, last, out))
            return true;
    }
    return false;
}

/* ---- writers; map.lock is held ---- */

static void set_word(struct record *record, size_t index, uint64_t word)
{
    atomic_store_explicit(&record->words[index], word, memory_order_release); /* makes the retirement of the earlier range visible, too */
}

static void change_life(struct record *record)
{
    atomic_store_explicit(&record->births, atomic_load_explicit(&record->births, memory_order_relaxed) + 1, memory_order_release);
}

/* NULL: out of memory. */
static struct record *take_record(void)
{
    struct record *record = map.free_records;

    if (record) {
        map.free_records = record_of(atomic_load_explicit(&record->words[0], memory_order_relaxed));
        return record;
    }
    record = ct_permanent_arena_alloc(&map.memory, sizeof *record);
    if (record)
        atomic_init(&record->births, 0);
    return record;
}

/* NULL: out of memory. */
static struct record *record_make(const struct ct_range *range)
{
    struct record *record = take_record();

    for (size_t i = 0; record && i < RANGE_WORDS; i++) {
        uint64_t word;

        memcpy(&word, (const char *)range + i * sizeof word, sizeof word);
        set_word(record, i, word);
    }
    if (record)
        change_life(record);
    return record;
}

/* The caller has removed all entries that lead to the record. */
static void record_retire(struct record *record)
{
    change_life(record);
    set_word(record, 0, (uintptr_t)map.free_records);
    map.free_records = record;
}

/* An empty table, or NULL: out of memory. */
static struct table *table_make(void)
{
    struct table *table = map.free_tables;

    if (table) {
        map.free_tables = table->next_free;
        return table;
    }
    table = ct_permanent_arena_alloc(&map.memory, sizeof *table);
    if (!table)
        return NULL;
    table->n_ranges = 0;
    for (unsigned i = 0; i < 256; i++)
        atomic_init(&table->entries[i], 0);
    return table;
}

/* Sets all entries for [first, last], which no other range overlaps, to a record. */
static void enter(struct table *table, uint64_t base, unsigned shift, uint64_t first, uint64_t last, struct record *record)
{
    struct span span = span_in(base, shift, first, last);

    table->n_ranges++;
    for (unsigned i = span.begin; i < span.end; i++) {
        uintptr_t entry = entry_at(table, i);

        if (is_table(entry))
            enter(table_of(entry), base + ((uint64_t)i << shift), shift - 8, first, last, record);
        else
            set_entry(table, i, (uintptr_t)record);
    }
}

/* Clears all entries for [first, last], which is a range. Tables without ranges go to the free list. */
static void leave(struct table *table, uint64_t base, unsigned shift, uint64_t first, uint64_t last)
{
    struct span span = span_in(base, shift, first, last);

    table->n_ranges--;
    for (unsigned i = span.begin; i < span.end; i++) {
        uintptr_t entry = entry_at(table, i);

        if (is_table(entry))
            leave(table_of(entry), base + ((uint64_t)i << shift), shift - 8, first, last);
        if (is_table(entry) && table_of(entry)->n_ranges > 0)
            continue;
        set_entry(table, i, 0);
        if (is_table(entry)) {
            table_of(entry)->next_free = map.free_tables;
            map.free_tables = table_of(entry);
        }
    }
}

/* Replaces the range in an entry by a table that contains it. */
static bool split_entry(struct table *table, unsigned shift, uint64_t address)
{
    struct record *record = record_of(entry_at(table, index_of(address, shift)));
    struct table *finer = table_make();
    struct ct_range range;

    if (!finer)
        return false;
    copy_record(record, &range); /* alive while the lock is held */
    enter(finer, address >> shift << shift, shift - 8, range.start, range.start + (range.size_bytes - 1), record);
    set_entry(table, index_of(address, shift), (uintptr_t)finer + 1);
    return true;
}

/* Splits entries on the path to an address, which no range contains, until it ends at an empty entry. If memory runs out, the tables made
 * so far are harmless. */
static bool make_room(uint64_t address)
{
    struct table *table = &map.root;
    unsigned shift = TOP_SHIFT;
    uintptr_t entry;

    while ((entry = entry_at(table, index_of(address, shift))) != 0) {
        if (!is_table(entry)) {
            if (!split_entry(table, shift, address))
                return false;
            continue;
        }
        table = table_of(entry);
        shift -= 8;
    }
    return true;
}

static CUresult insert_locked(const struct ct_range *range)
{
    uint64_t last = range->start + (range->size_bytes - 1);
    struct ct_range other;
    struct record *record;

    if (find_between(&map.root, 0, TOP_SHIFT, range->start, last, &other))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "range 0x%llx + %llu overlaps the one at 0x%llx", (unsigned long long)range->start,
                       (unsigned long long)range->size_bytes, (unsigned long long)other.start);
    if (!make_room(range->start) || !make_room(last) || !(record = record_make(range)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the address map");
    enter(&map.root, 0, TOP_SHIFT, range->start, last, record);
    return CUDA_SUCCESS;
}

static CUresult remove_locked(uint64_t start, enum ct_range_kind kind, struct ct_range *out)
{
    uintptr_t entry = entry_of_address(start);

    if (!entry || !find_at(start, out) || out->start != start || out->kind != kind)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no allocation of that kind starts at 0x%llx", (unsigned long long)start);
    leave(&map.root, 0, TOP_SHIFT, start, start + (out->size_bytes - 1));
    record_retire(record_of(entry));
    return CUDA_SUCCESS;
}

/* Changes one word of a live record: a reader sees either the old or the new value. */
static CUresult set_synchronous_locked(uint64_t start, unsigned long long id, bool synchronous)
{
    const size_t at = offsetof(struct ct_range, synchronous) / sizeof(uint64_t);
    uintptr_t entry = entry_of_address(start);
    struct ct_range range;
    uint64_t word;

    if (!entry || !find_at(start, &range) || range.start != start || range.id != id)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the allocation at 0x%llx no longer exists", (unsigned long long)start);
    range.synchronous = synchronous;
    memcpy(&word, (const char *)&range + at * sizeof word, sizeof word);
    set_word(record_of(entry), at, word);
    return CUDA_SUCCESS;
}

/* ---- public ---- */

/* Among the ranges that overlap the smallest window around the bytes in which there are any. */
bool ct_address_find_nearest(uint64_t first, uint64_t last, uint64_t reach, struct ct_range *out)
{
    struct ct_range range;
    bool found = false;

    for (uint64_t window = 4096; window && window <= reach && !found; window *= 2) {
        uint64_t at = first > window ? first - window : 0;
        const uint64_t end = last < UINT64_MAX - window ? last + window : UINT64_MAX;

        while (at < end && ct_address_find_any(at, end - at, &range)) {
            if (!found || ct_range_distance(&range, first, last) < ct_range_distance(out, first, last))
                *out = range;
            found = true;
            at = range.start + range.size_bytes;
        }
    }
    return found;
}

CUresult ct_range_check(const struct ct_range *range, uint64_t address, uint64_t size_bytes)
{
    if (size_bytes > range->size_bytes - (address - range->start))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx + %llu is beyond the range 0x%llx + %llu", (unsigned long long)address,
                       (unsigned long long)size_bytes, (unsigned long long)range->start, (unsigned long long)range->size_bytes);
    return CUDA_SUCCESS;
}

CUresult ct_address_find(uint64_t address, uint64_t size_bytes, struct ct_range *out)
{
    if (!find_at(address, out))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not in a known CUDA address range", (unsigned long long)address);
    return ct_range_check(out, address, size_bytes);
}

bool ct_address_find_any(uint64_t address, uint64_t size_bytes, struct ct_range *out)
{
    uint64_t more = size_bytes ? size_bytes - 1 : 0;

    return find_at(address, out) ||
           (more && find_between(&map.root, 0, TOP_SHIFT, address, more < UINT64_MAX - address ? address + more : UINT64_MAX, out));
}

CUresult ct_address_insert(const struct ct_range *range)
{
    CUresult r;

    if (range->size_bytes == 0 || range->start > UINT64_MAX - range->size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "range 0x%llx + %llu is empty or overflows", (unsigned long long)range->start,
                       (unsigned long long)range->size_bytes);
    if (range->size_bytes > PTX2SPV_OBJECT_LIMIT &&
        range->kind != CT_RANGE_SCRATCH) /* relaxed: a launch with a pointer into it comes later */
        atomic_store_explicit(&map.has_large_objects, true, memory_order_relaxed);
    ct_mutex_lock(&map.lock);
    r = insert_locked(range);
    ct_mutex_unlock(&map.lock);
    if (r == CUDA_SUCCESS)
        ct_history_note_birth(range);
    return r;
}

bool ct_address_has_large_objects(void)
{
    return atomic_load_explicit(&map.has_large_objects, memory_order_relaxed);
}

CUresult ct_address_remove(uint64_t start, enum ct_range_kind kind, struct ct_range *out)
{
    CUresult r;

    ct_mutex_lock(&map.lock);
    r = remove_locked(start, kind, out);
    ct_mutex_unlock(&map.lock);
    if (r == CUDA_SUCCESS)
        ct_history_note_death(start);
    return r;
}

CUresult ct_address_set_synchronous(uint64_t start, unsigned long long id, bool synchronous)
{
    CUresult r;

    ct_mutex_lock(&map.lock);
    r = set_synchronous_locked(start, id, synchronous);
    ct_mutex_unlock(&map.lock);
    return r;
}
