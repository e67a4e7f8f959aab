/* SPDX-License-Identifier: Apache-2.0 */
/* The map of every CUDA pointer of the process: ranges that do not overlap, ordered by their start.
 *
 * A treap whose nodes never change once they are published: a writer copies the nodes on the path that it changes (O(log n) of
 * them), and publishes the new root with one store. A reader takes the root and walks; it sees one consistent state of the map.
 *
 * Nodes that a change replaced are freed when no reader can hold them, by epochs:
 * - A reader counts itself into the epoch it read, and looks again whether that is still the epoch; if not it counts itself out and
 *   retries. It repeats only when a writer got ahead in between, so readers are lock-free.
 * - A writer advances the epoch from e to e + 1 only when no reader is counted in e - 1. So readers are in e or in e - 1.
 * - A node that was replaced during epoch e may be held by readers of e - 1 and e. A reader of e + 1 has seen the epoch that was
 *   stored after the root, so it loads a root without that node. When the epoch becomes e + 2 the readers of e are gone: freed.
 * Root, epoch and counters are sequentially consistent: "reader counted itself, then checked the epoch" against "writer stored the
 * epoch, then checked the count" needs that one order. A reader that is late counts into a parity that may be that of a newer epoch for
 * a moment; that only delays a writer's advance.
 * The counters are spread over cache lines by thread, so that readers on different cores do not share one. */
#include "memory.h"

#include "log.h"
#include "process.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "address_space"
#define READER_SHARDS 16u
#define CACHE_LINE 64

/* left < start <= right by `start`; a parent's priority is at least its children's. */
struct node {
    struct ct_range range;
    uint64_t priority;
    const struct node *left, *right;
    struct node *next_retired; /* used by the writer only, after the node was replaced */
};

struct shard {
    alignas(CACHE_LINE) atomic_uint readers[2]; /* by parity of the epoch */
};

/* Process-wide, since a CUDA pointer means the same in every context. Members below `lock` are the writers'. */
static struct {
    _Atomic(const struct node *) root;
    atomic_ullong epoch;
    atomic_uint next_shard;
    struct shard shards[READER_SHARDS];
    struct ct_mutex lock;
    struct node *retired[3]; /* by epoch modulo 3 */
} map = {.lock = CT_MUTEX_INITIALIZER(CT_RANK_ADDRESS_SPACE)};

static _Thread_local unsigned own_shard; /* index + 1; 0: none yet */

/* ---- readers ---- */

static struct shard *shard_of_thread(void)
{
    if (own_shard == 0)
        own_shard = atomic_fetch_add_explicit(&map.next_shard, 1, memory_order_relaxed) % READER_SHARDS + 1; /* any spread will do */
    return &map.shards[own_shard - 1];
}

/* Returns the counter to give to reader_leave. */
static atomic_uint *reader_enter(void)
{
    struct shard *shard = shard_of_thread();

    for (;;) {
        unsigned long long epoch = atomic_load(&map.epoch);
        atomic_uint *readers = &shard->readers[epoch & 1];

        atomic_fetch_add(readers, 1);
        if (atomic_load(&map.epoch) == epoch)
            return readers;
        atomic_fetch_sub(readers, 1);
    }
}

static void reader_leave(atomic_uint *readers)
{
    atomic_fetch_sub(readers, 1); /* pairs with the load in readers_gone: our reads are over */
}

/* The last range that starts at or below `address`, or NULL. */
static const struct node *node_at_or_below(const struct node *node, uint64_t address)
{
    const struct node *best = NULL;

    while (node) {
        if (node->range.start <= address) {
            best = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return best;
}

static const struct node *node_at_or_above(const struct node *node, uint64_t address)
{
    const struct node *best = NULL;

    while (node) {
        if (node->range.start >= address) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

static const struct node *overlapping_or_null(const struct node *root, uint64_t start, uint64_t size_bytes)
{
    const struct node *node = node_at_or_below(root, start);

    if (node && start - node->range.start < node->range.size_bytes)
        return node;
    node = node_at_or_above(root, start);
    return node && node->range.start - start < size_bytes ? node : NULL;
}

static bool find_any(uint64_t address, uint64_t size_bytes, struct ct_range *out)
{
    atomic_uint *readers = reader_enter();
    const struct node *node = overlapping_or_null(atomic_load(&map.root), address, size_bytes);

    if (node)
        *out = node->range;
    reader_leave(readers);
    return node != NULL;
}

/* ---- writers; map.lock is held ---- */

static bool readers_gone(unsigned parity)
{
    for (unsigned i = 0; i < READER_SHARDS; i++)
        if (atomic_load(&map.shards[i].readers[parity]) != 0)
            return false;
    return true;
}

static void free_retired(struct node **list)
{
    while (*list) {
        struct node *node = *list;

        *list = node->next_retired;
        free(node);
    }
}

static void advance_epoch_locked(void)
{
    unsigned long long epoch = atomic_load_explicit(&map.epoch, memory_order_relaxed); /* only lock holders write it */

    assert(ct_mutex_held(&map.lock));
    if (!readers_gone((epoch + 1) & 1)) /* the parity of epoch - 1 */
        return;
    atomic_store(&map.epoch, epoch + 1);
    free_retired(&map.retired[(epoch + 2) % 3]); /* those of epoch - 1 */
}

/* The nodes that one change makes and replaces, so that it can be undone when memory runs out half-way. */
struct change {
    struct node *made;     /* linked through next_retired */
    struct node *replaced; /* the same */
    bool failed;
};

static void replace_node(struct change *change, const struct node *node)
{
    struct node *old = (struct node *)node; /* readers never look at next_retired */

    old->next_retired = change->replaced;
    change->replaced = old;
}

static struct node *make_node(struct change *change, const struct ct_range *range, uint64_t priority)
{
    struct node *node = malloc(sizeof *node);

    if (!node) {
        change->failed = true;
        return NULL;
    }
    *node = (struct node){.range = *range, .priority = priority, .next_retired = change->made};
    change->made = node;
    return node;
}

/* A copy with other children; the original is replaced. */
static const struct node *with_children(struct change *change, const struct node *node, const struct node *left, const struct node *right)
{
    struct node *copy = make_node(change, &node->range, node->priority);

    if (!copy)
        return NULL;
    copy->left = left;
    copy->right = right;
    replace_node(change, node);
    return copy;
}

/* Splits into what starts below `start` and the rest. */
static void split(struct change *change, const struct node *node, uint64_t start, const struct node **out_below,
                  const struct node **out_rest)
{
    const struct node *below, *rest;

    if (!node) {
        *out_below = *out_rest = NULL;
    } else if (node->range.start < start) {
        split(change, node->right, start, &below, out_rest);
        *out_below = with_children(change, node, node->left, below);
    } else {
        split(change, node->left, start, out_below, &rest);
        *out_rest = with_children(change, node, rest, node->right);
    }
}

/* Joins two trees, all of `left` below all of `right`. */
static const struct node *join(struct change *change, const struct node *left, const struct node *right)
{
    if (!left || !right)
        return left ? left : right;
    if (left->priority >= right->priority)
        return with_children(change, left, left->left, join(change, left->right, right));
    return with_children(change, right, join(change, left, right->left), right->right);
}

static const struct node *insert_node(struct change *change, const struct node *root, struct node *node)
{
    if (root && root->priority >= node->priority) {
        if (node->range.start < root->range.start)
            return with_children(change, root, insert_node(change, root->left, node), root->right);
        return with_children(change, root, root->left, insert_node(change, root->right, node));
    }
    split(change, root, node->range.start, &node->left, &node->right);
    return node;
}

static const struct node *remove_node(struct change *change, const struct node *root, const struct node *node)
{
    if (root == node) {
        replace_node(change, node);
        return join(change, node->left, node->right);
    }
    if (node->range.start < root->range.start)
        return with_children(change, root, remove_node(change, root->left, node), root->right);
    return with_children(change, root, root->left, remove_node(change, root->right, node));
}

static const struct node *update_node(struct change *change, const struct node *root, const struct node *node, const struct ct_range *range)
{
    struct node *copy;

    if (root != node && node->range.start < root->range.start)
        return with_children(change, root, update_node(change, root->left, node, range), root->right);
    if (root != node)
        return with_children(change, root, root->left, update_node(change, root->right, node, range));
    copy = make_node(change, range, node->priority);
    if (!copy)
        return NULL;
    copy->left = node->left;
    copy->right = node->right;
    replace_node(change, node);
    return copy;
}

/* Publishes the new root, or throws away what was made for it. */
static CUresult finish_change_locked(struct change *change, const struct node *root)
{
    unsigned long long epoch = atomic_load_explicit(&map.epoch, memory_order_relaxed);
    struct node **retired = &map.retired[epoch % 3];

    if (change->failed) {
        free_retired(&change->made);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "map of addresses");
    }
    atomic_store(&map.root, root); /* pairs with the load of readers: they see whole nodes */
    while (change->replaced) {
        struct node *node = change->replaced;

        change->replaced = node->next_retired;
        node->next_retired = *retired;
        *retired = node;
    }
    advance_epoch_locked();
    return CUDA_SUCCESS;
}

/* Spreads the bits of an address (the finalizer of SplitMix64), so that the tree stays balanced whatever the order of insertion. */
static uint64_t priority_of(uint64_t start)
{
    uint64_t x = start + 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static CUresult insert_locked(const struct ct_range *range)
{
    const struct node *root = atomic_load_explicit(&map.root, memory_order_relaxed); /* only lock holders write it */
    const struct node *other = overlapping_or_null(root, range->start, range->size_bytes);
    struct change change = {NULL, NULL, false};
    struct node *node;

    if (other)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "range 0x%llx + %llu overlaps the one at 0x%llx", (unsigned long long)range->start,
                       (unsigned long long)range->size_bytes, (unsigned long long)other->range.start);
    node = make_node(&change, range, priority_of(range->start));
    if (node)
        root = insert_node(&change, root, node);
    return finish_change_locked(&change, root);
}

static CUresult remove_locked(uint64_t start, enum ct_range_kind kind, struct ct_range *out)
{
    const struct node *root = atomic_load_explicit(&map.root, memory_order_relaxed);
    const struct node *node = node_at_or_below(root, start);
    struct change change = {NULL, NULL, false};
    struct ct_range range;
    CUresult r;

    if (!node || node->range.start != start || node->range.kind != kind)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "no allocation of that kind starts at 0x%llx", (unsigned long long)start);
    range = node->range;
    r = finish_change_locked(&change, remove_node(&change, root, node));
    if (r == CUDA_SUCCESS)
        *out = range;
    return r;
}

static CUresult update_locked(const struct ct_range *range)
{
    const struct node *root = atomic_load_explicit(&map.root, memory_order_relaxed);
    const struct node *node = node_at_or_below(root, range->start);
    struct change change = {NULL, NULL, false};

    if (!node || node->range.start != range->start || node->range.size_bytes != range->size_bytes || node->range.id != range->id)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the allocation at 0x%llx is gone", (unsigned long long)range->start);
    return finish_change_locked(&change, update_node(&change, root, node, range));
}

/* ---- public ---- */

CUresult ct_address_find(uint64_t address, uint64_t size_bytes, struct ct_range *out)
{
    struct ct_range range;

    if (!find_any(address, 1, &range))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is in no range that CUDA knows", (unsigned long long)address);
    if (size_bytes > range.size_bytes - (address - range.start))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx + %llu is beyond the range 0x%llx + %llu", (unsigned long long)address,
                       (unsigned long long)size_bytes, (unsigned long long)range.start, (unsigned long long)range.size_bytes);
    *out = range;
    return CUDA_SUCCESS;
}

bool ct_address_find_any(uint64_t address, uint64_t size_bytes, struct ct_range *out)
{
    return find_any(address, size_bytes, out);
}

CUresult ct_address_insert(const struct ct_range *range)
{
    CUresult r;

    if (range->size_bytes == 0 || range->start > UINT64_MAX - range->size_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "range 0x%llx + %llu", (unsigned long long)range->start,
                       (unsigned long long)range->size_bytes);
    ct_mutex_lock(&map.lock);
    r = insert_locked(range);
    ct_mutex_unlock(&map.lock);
    return r;
}

CUresult ct_address_remove(uint64_t start, enum ct_range_kind kind, struct ct_range *out)
{
    CUresult r;

    ct_mutex_lock(&map.lock);
    r = remove_locked(start, kind, out);
    ct_mutex_unlock(&map.lock);
    return r;
}

CUresult ct_address_update(const struct ct_range *range)
{
    CUresult r;

    ct_mutex_lock(&map.lock);
    r = update_locked(range);
    ct_mutex_unlock(&map.lock);
    return r;
}
