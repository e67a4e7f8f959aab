/* SPDX-License-Identifier: Apache-2.0 */
/* Reference-counted objects and the handle table.
 *
 * A handle is a number: the generation is in the upper half, and slot + 1 above four zero bits in the lower half. So it is aligned like a
 * pointer, differs from the small numbers that have a meaning in CUDA (CU_STREAM_LEGACY ..), and never equals an older handle. */
#include "object.h"

#include "log.h"
#include "process.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "object"
#define CT_MAX_SLOTS (1u << 27)
#define CT_FIRST_SLOTS 256u

static void *make_handle(uint32_t slot, uint32_t generation)
{
    return (void *)(uintptr_t)((uint64_t)generation << 32 | (uint64_t)(slot + 1) << 4);
}

/* The slot to which a handle refers, whatever its content; NULL: not a handle. */
static struct ct_handle_slot *named_slot_locked(struct ct_handle_table *table, const void *handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    uint32_t slot = (uint32_t)(bits & UINT32_MAX) >> 4;

    assert(ct_mutex_held(&table->lock));
    return bits & 15 || slot == 0 || slot > table->n_slots ? NULL : &table->slots[slot - 1];
}

static uint32_t generation_of(const void *handle)
{
    return (uint32_t)((uint64_t)(uintptr_t)handle >> 32);
}

static struct ct_handle_slot *slot_of_locked(struct ct_handle_table *table, const void *handle)
{
    struct ct_handle_slot *slot = named_slot_locked(table, handle);

    return slot && slot->object && slot->generation == generation_of(handle) ? slot : NULL;
}

static bool grow_locked(struct ct_handle_table *table)
{
    uint32_t capacity = table->capacity ? table->capacity * 2 : CT_FIRST_SLOTS;
    struct ct_handle_slot *slots;

    if (capacity > CT_MAX_SLOTS)
        return false;
    slots = realloc(table->slots, capacity * sizeof *slots);
    if (!slots)
        return false;
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

/* A free slot with its generation set, or CT_NO_SLOT. */
static uint32_t take_slot_locked(struct ct_handle_table *table)
{
    uint32_t slot = table->first_free;

    if (slot != CT_NO_SLOT) {
        table->first_free = table->slots[slot].next_free;
        return slot;
    }
    if (table->n_slots == table->capacity && !grow_locked(table))
        return CT_NO_SLOT;
    slot = table->n_slots++;
    table->slots[slot] = (struct ct_handle_slot){.generation = 1};
    return slot;
}

static void give_slot_locked(struct ct_handle_table *table, struct ct_handle_slot *slot, bool orphaned)
{
    slot->object = NULL;
    slot->orphaned = orphaned;
    if (++slot->generation == 0)
        return; /* all generations are used up: this slot is never reused */
    slot->next_free = table->first_free;
    table->first_free = (uint32_t)(slot - table->slots);
}

void ct_object_init(struct ct_object *object, enum ct_object_kind kind, void (*destroy)(struct ct_object *object))
{
    atomic_init(&object->references, 1);
    object->kind = kind;
    object->handle = NULL;
    object->destroy = destroy;
}

CUresult ct_object_publish(struct ct_object *object)
{
    struct ct_handle_table *table = &ct_process.handles;
    uint32_t slot;

    ct_mutex_lock(&table->lock);
    slot = take_slot_locked(table);
    if (slot != CT_NO_SLOT) {
        table->slots[slot].object = object;
        object->handle = make_handle(slot, table->slots[slot].generation);
        ct_object_retain(object);
    }
    ct_mutex_unlock(&table->lock);
    return slot != CT_NO_SLOT ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "the handle table is full");
}

static CUresult unpublish(struct ct_object *object, bool orphaned)
{
    struct ct_handle_table *table = &ct_process.handles;
    struct ct_handle_slot *slot;

    ct_mutex_lock(&table->lock);
    slot = slot_of_locked(table, object->handle);
    if (slot)
        give_slot_locked(table, slot, orphaned);
    ct_mutex_unlock(&table->lock);
    if (!slot)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "handle %p is already destroyed", object->handle);
    ct_object_release(object);
    return CUDA_SUCCESS;
}

CUresult ct_object_unpublish(struct ct_object *object)
{
    return unpublish(object, false);
}

void ct_object_orphan(struct ct_object *object)
{
    (void)unpublish(object, true);
}

bool ct_object_was_orphaned(const void *handle)
{
    struct ct_handle_table *table = &ct_process.handles;
    struct ct_handle_slot *slot;
    bool was;

    ct_mutex_lock(&table->lock);
    slot = named_slot_locked(table, handle);
    was = slot && !slot->object && slot->orphaned && slot->generation == generation_of(handle) + 1;
    ct_mutex_unlock(&table->lock);
    return was;
}

struct ct_object *ct_object_find_or_null(enum ct_object_kind kind, const void *handle)
{
    struct ct_handle_table *table = &ct_process.handles;
    struct ct_handle_slot *slot;
    struct ct_object *object = NULL;

    ct_mutex_lock(&table->lock);
    slot = slot_of_locked(table, handle);
    if (slot && slot->object->kind == kind) {
        object = slot->object;
        ct_object_retain(object);
    }
    ct_mutex_unlock(&table->lock);
    return object;
}

struct ct_object *ct_object_next_or_null(enum ct_object_kind kind, uint32_t *cursor)
{
    struct ct_handle_table *table = &ct_process.handles;
    struct ct_object *found = NULL;

    ct_mutex_lock(&table->lock);
    while (!found && *cursor < table->n_slots) {
        struct ct_object *object = table->slots[(*cursor)++].object;

        if (object && object->kind == kind)
            found = object;
    }
    if (found)
        ct_object_retain(found);
    ct_mutex_unlock(&table->lock);
    return found;
}

void ct_object_retain(struct ct_object *object)
{
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed); /* relaxed: the caller has a reference */
}

void ct_object_release(struct ct_object *object)
{
    if (!object)
        return;
    /* acq_rel: the last release sees all writes of the others */
    if (atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1)
        object->destroy(object);
}
