/* SPDX-License-Identifier: Apache-2.0 */
/* The directory and the chunks of records are device memory; a chunk is allocated when its first slot is used, and kept. A handle has the
 * number of its slot and the slot's generation, which kernels compare with the record's, so handles of destroyed objects lead nowhere. The
 * generation of an image has the lowest bits of the slot's number and says how kernels find the image (enum ptx2spv_image_generation).
 * The lock guards the slots only: records are written without it, by the thread that owns the slot at that time. */
#include "texture_table.h"

#include "core/base/log.h"
#include "core/copy/copy.h"
#include "core/copy/memset.h"
#include "core/memory/memory.h"
#include "srgb.h"

#include <stddef.h>
#include <stdlib.h>

#define CT_CHANNEL "memory"
#define TABLE_ALIGN 256
#define RECORDS_MAX (PTX2SPV_TEXTURE_CHUNKS * PTX2SPV_TEXTURE_CHUNK_RECORDS)
#define NO_SLOT UINT32_MAX
#define DIRECTORY_BYTES (PTX2SPV_SRGB_OFFSET + PTX2SPV_SRGB_VALUES * sizeof(float))
#define CHUNK_BYTES ((uint64_t)PTX2SPV_TEXTURE_CHUNK_RECORDS * sizeof(struct ptx2spv_texture))

enum slot_state { SLOT_FREE, SLOT_OWNED /* by a thread that creates or destroys the object */, SLOT_LIVE };

struct slot {
    enum slot_state state;
    uint32_t uses, next_free; /* uses: a number that each object in the slot gets another one of */
    uint32_t generation;      /* of the object, from its number and its image */
    struct ct_texture texture;
};

struct ct_texture_table {
    struct ct_mutex lock;
    uint64_t directory; /* CUDA address; constant */
    uint64_t chunks[PTX2SPV_TEXTURE_CHUNKS];
    struct slot *slots;
    uint32_t n_slots, capacity, first_free;
};

/* ---- the table ---- */

static void destroy(struct ct_context *context, struct ct_texture_table *table)
{
    for (uint32_t i = 0; i < table->n_slots; i++)
        if (table->slots[i].state == SLOT_LIVE && table->slots[i].texture.image)
            context->backend->images->sampled_destroy(table->slots[i].texture.image);
    for (unsigned i = 0; i < PTX2SPV_TEXTURE_CHUNKS; i++)
        if (table->chunks[i])
            ct_memory_free(context, table->chunks[i], CT_RANGE_MODULE);
    if (table->directory)
        ct_memory_free(context, table->directory, CT_RANGE_MODULE);
    ct_mutex_finish(&table->lock);
    free(table->slots);
    free(table);
}

static CUresult alloc_zeros(struct ct_context *context, uint64_t size_bytes, uint64_t *out)
{
    uint64_t address;
    CUresult r = ct_memory_alloc(context, size_bytes, TABLE_ALIGN, CT_RANGE_MODULE, &address);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = ct_clear_device(context, address, size_bytes)) != CUDA_SUCCESS) {
        ct_memory_free(context, address, CT_RANGE_MODULE);
        return r;
    }
    *out = address;
    return CUDA_SUCCESS;
}

static CUresult create(struct ct_context *context, struct ct_texture_table **out)
{
    struct ct_texture_table *table = calloc(1, sizeof *table);
    float linear[PTX2SPV_SRGB_VALUES];
    CUresult r;

    if (!table)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the table of texture objects");
    ct_mutex_init(&table->lock, CT_RANK_TEXTURES);
    table->first_free = NO_SLOT;
    r = alloc_zeros(context, DIRECTORY_BYTES, &table->directory);
    ct_srgb_get_linear(linear);
    if (r == CUDA_SUCCESS)
        r = ct_copy_to_device(context, table->directory + PTX2SPV_SRGB_OFFSET, linear, sizeof linear);
    if (r == CUDA_SUCCESS)
        *out = table;
    else
        destroy(context, table);
    return r;
}

static CUresult find_table(struct ct_context *context, struct ct_texture_table **out)
{
    struct ct_texture_table *table = atomic_load_explicit(&context->textures, memory_order_acquire),
                            *none = NULL; /* pairs with the exchange */
    CUresult r;

    if (!table) {
        if ((r = create(context, &table)) != CUDA_SUCCESS)
            return r;
        if (!atomic_compare_exchange_strong(&context->textures, &none, table)) { /* another thread has created it meanwhile */
            destroy(context, table);
            table = none;
        }
    }
    *out = table;
    return CUDA_SUCCESS;
}

CUresult ct_textures_prepare(struct ct_context *context, uint64_t *out_address)
{
    struct ct_texture_table *table;
    CUresult r = find_table(context, &table);

    if (r == CUDA_SUCCESS)
        *out_address = table->directory;
    return r;
}

void ct_textures_destroy(struct ct_context *context)
{
    struct ct_texture_table *table = atomic_exchange(&context->textures, NULL);

    if (table)
        destroy(context, table);
}

/* ---- slots ---- */

static bool grow_locked(struct ct_texture_table *table)
{
    const uint32_t capacity = table->capacity ? 2 * table->capacity : 64;
    struct slot *slots = table->capacity < RECORDS_MAX ? realloc(table->slots, capacity * sizeof *slots) : NULL;

    if (!slots)
        return false;
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

/* Never 0, and for images never below 2^31. */
static uint32_t generation_of(uint32_t uses, uint32_t image_bits)
{
    const uint32_t number = uses & (image_bits ? PTX2SPV_IMAGE_NUMBERS - 1 : 0x7fffffff);

    return image_bits | number | (!image_bits && !number);
}

static CUresult take_slot(struct ct_texture_table *table, uint32_t image_bits, uint32_t *out, uint32_t *out_generation)
{
    uint32_t index;
    bool found = true;

    ct_mutex_lock(&table->lock);
    index = table->first_free;
    if (index != NO_SLOT) {
        table->first_free = table->slots[index].next_free;
    } else if ((found = table->n_slots < table->capacity || grow_locked(table))) {
        index = table->n_slots++;
        table->slots[index].uses = 1;
    }
    if (found) {
        table->slots[index].state = SLOT_OWNED;
        *out = index;
        *out_generation = table->slots[index].generation = generation_of(table->slots[index].uses, image_bits);
    }
    ct_mutex_unlock(&table->lock);
    return found ? CUDA_SUCCESS : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no room for another texture or surface object");
}

static void return_slot(struct ct_texture_table *table, uint32_t index)
{
    ct_mutex_lock(&table->lock);
    table->slots[index].state = SLOT_FREE;
    table->slots[index].uses++;
    table->slots[index].next_free = table->first_free;
    table->first_free = index;
    ct_mutex_unlock(&table->lock);
}

/* ---- records ---- */

/* The chunk of a slot. Several threads may allocate it at the same time; all enter the same one into the directory, so that a thread's
 * record can be found as soon as this returns. */
static CUresult find_chunk(struct ct_context *context, struct ct_texture_table *table, uint32_t number, uint64_t *out)
{
    uint64_t made = 0, chunk;
    CUresult r;

    ct_mutex_lock(&table->lock);
    chunk = table->chunks[number];
    ct_mutex_unlock(&table->lock);
    if (!chunk) {
        r = alloc_zeros(context, CHUNK_BYTES, &made);
        if (r != CUDA_SUCCESS)
            return r;
        ct_mutex_lock(&table->lock);
        chunk = table->chunks[number] ? table->chunks[number] : made;
        table->chunks[number] = chunk;
        ct_mutex_unlock(&table->lock);
        if (chunk != made)
            ct_memory_free(context, made, CT_RANGE_MODULE);
        r = ct_copy_to_device(context, table->directory + number * sizeof chunk, &chunk, sizeof chunk);
        if (r != CUDA_SUCCESS)
            return r;
    }
    *out = chunk;
    return CUDA_SUCCESS;
}

static CUresult write_record(struct ct_context *context, struct ct_texture_table *table, uint32_t index, const void *bytes, size_t n)
{
    uint64_t chunk;
    CUresult r = find_chunk(context, table, index / PTX2SPV_TEXTURE_CHUNK_RECORDS, &chunk);

    if (r != CUDA_SUCCESS)
        return r;
    return ct_copy_to_device(context, chunk + index % PTX2SPV_TEXTURE_CHUNK_RECORDS * sizeof(struct ptx2spv_texture), bytes, n);
}

/* ---- objects ---- */

/* Descriptors are used again only when no kernel that has used one can still run. */
static CUresult write_scale(struct ct_context *context, const struct ct_texture_table *table, uint32_t image_bits,
                            const struct ptx2spv_texture_level *level)
{
    const uint32_t descriptor = image_bits >> PTX2SPV_IMAGE_DESCRIPTOR_SHIFT & (PTX2SPV_IMAGE_DESCRIPTORS - 1);
    const float scale[] = {1.0f / (float)level->width, 1.0f / (float)level->height, 1.0f / (float)level->depth, 0};

    _Static_assert(sizeof scale == PTX2SPV_IMAGE_SCALE_BYTES, "as kernels read it");
    return image_bits
               ? ct_copy_to_device(context, table->directory + PTX2SPV_IMAGE_SCALES_OFFSET + descriptor * sizeof scale, scale, sizeof scale)
               : CUDA_SUCCESS;
}

CUresult ct_texture_publish(struct ct_context *context, const struct ct_texture *texture, const struct ptx2spv_texture *record,
                            unsigned long long *out_handle)
{
    struct ptx2spv_texture written = *record;
    struct ct_texture_table *table;
    uint32_t index;
    CUresult r;

    if ((r = find_table(context, &table)) != CUDA_SUCCESS ||
        (r = write_scale(context, table, texture->image_bits, &record->levels[0])) != CUDA_SUCCESS ||
        (r = take_slot(table, texture->image_bits, &index, &written.generation)) != CUDA_SUCCESS)
        return r;
    if ((r = write_record(context, table, index, &written, sizeof written)) != CUDA_SUCCESS) {
        return_slot(table, index);
        return r;
    }
    ct_mutex_lock(&table->lock);
    table->slots[index].texture = *texture;
    table->slots[index].state = SLOT_LIVE;
    ct_mutex_unlock(&table->lock);
    *out_handle = (uint64_t)written.generation << 32 | (index + 1);
    return CUDA_SUCCESS;
}

static struct slot *find_slot_locked(struct ct_texture_table *table, unsigned long long handle, bool is_surface)
{
    const uint32_t index = (uint32_t)handle - 1;
    struct slot *slot = index < table->n_slots ? &table->slots[index] : NULL;

    return slot && slot->state == SLOT_LIVE && slot->generation == handle >> 32 && slot->texture.is_surface == is_surface ? slot : NULL;
}

/* Finds a live object, copies its description, and marks the slot with a state. */
static CUresult find(struct ct_context *context, unsigned long long handle, bool is_surface, enum slot_state state, struct ct_texture *out)
{
    struct ct_texture_table *table = atomic_load_explicit(&context->textures, memory_order_acquire);
    struct slot *slot = NULL;

    if (table) {
        ct_mutex_lock(&table->lock);
        if ((slot = find_slot_locked(table, handle, is_surface))) {
            slot->state = state;
            *out = slot->texture;
        }
        ct_mutex_unlock(&table->lock);
    }
    return slot ? CUDA_SUCCESS
                : ct_fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not a %s object of the context", handle, is_surface ? "surface" : "texture");
}

CUresult ct_texture_describe(struct ct_context *context, unsigned long long handle, bool is_surface, struct ct_texture *out)
{
    return find(context, handle, is_surface, SLOT_LIVE, out);
}

CUresult ct_texture_remove(struct ct_context *context, unsigned long long handle, bool is_surface)
{
    static const uint32_t none = 0;
    struct ct_texture_table *table;
    struct ct_texture texture;
    CUresult r = find(context, handle, is_surface, SLOT_OWNED, &texture);

    if (r != CUDA_SUCCESS || (r = find_table(context, &table)) != CUDA_SUCCESS)
        return r;
    r = write_record(context, table, (uint32_t)handle - 1, &none, sizeof none);
    return_slot(table, (uint32_t)handle - 1);
    if (texture.image)
        context->backend->images->sampled_destroy(texture.image);
    return r;
}
