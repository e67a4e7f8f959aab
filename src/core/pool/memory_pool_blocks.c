/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs and blocks of memory pools: finding, taking, freeing and reclaiming blocks.
 *
 * A stream with pending blocks is retained by its ct_pool_user, so that the progress of its queue can be read even after
 * cuStreamDestroy. It is released without a lock and with a reference to its context held, since this may be the last reference. */
#include "memory_pool_blocks.h"

#include "core/backing/device_open.h"
#include "core/backing/opened_backing.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "slab_mapping.h"

#include <assert.h>
#include <stdlib.h>

#define CT_CHANNEL "memory"
#define SLAB_ALIGN ((uint64_t)2 << 20)

/* ---- taking ---- */

static bool is_available(const struct ct_pool_block *block, const struct ct_pool_request *request)
{
    switch (block->state) {
    case CT_BLOCK_FREE:
        return true;
    case CT_BLOCK_USED:
        return false;
    case CT_BLOCK_PENDING:
        break;
    }
    if (request->any)
        return block->user->stream->context == request->stream->context;
    if (block->user->stream == request->stream)
        return true;
    return request->stream && block->slab->pool->reuse[CT_REUSE_EVENTS] &&
           ct_stream_follows_locked(request->stream, block->user->stream, block->point);
}

/* Returns the link to the first block of a run that is large enough, or NULL. */
static struct ct_pool_block **find_run(struct ct_pool_slab *slab, const struct ct_pool_request *request)
{
    const uint64_t needed = ct_pool_block_bytes(request->size_bytes);
    struct ct_pool_block **start = &slab->first;
    uint64_t bytes = 0;
    unsigned n_blocks = 0;

    if (slab->mapping) /* for one block that keeps its address */
        return NULL;
    for (struct ct_pool_block **link = start; *link; link = &(*link)->next) {
        if (!is_available(*link, request)) {
            start = &(*link)->next;
            bytes = n_blocks = 0;
            continue;
        }
        bytes += (*link)->size_bytes;
        n_blocks++;
        if (bytes >= needed)
            return request->any && n_blocks > CT_POOL_WAITS ? NULL : start;
    }
    return NULL;
}

static void detach(struct ct_pool_block *block)
{
    if (block->state == CT_BLOCK_PENDING)
        block->user->n_pending--; /* at 0 the next reclaiming removes the user */
    block->user = NULL;
}

static void note_wait(struct ct_pool_wait *waits, unsigned index, const struct ct_pool_block *block)
{
    if (block->state != CT_BLOCK_PENDING)
        return;
    waits[index] = (struct ct_pool_wait){block->user->stream, block->point};
    ct_object_retain(&block->user->stream->object);
}

/* Inserts `block` at `link`; it absorbs as much as it needs of the blocks that follow. */
static void carve(struct ct_pool_block **link, struct ct_pool_block *block, const struct ct_pool_request *request,
                  struct ct_pool_wait *waits)
{
    struct ct_pool_block *rest = *link;
    uint64_t missing = ct_pool_block_bytes(request->size_bytes);

    *block = (struct ct_pool_block){
        .slab = rest->slab, .offset = rest->offset, .size_bytes = missing, .requested_bytes = request->size_bytes, .state = CT_BLOCK_USED};
    for (unsigned i = 0; missing > 0; i++) {
        struct ct_pool_block *eaten = rest;

        if (request->any)
            note_wait(waits, i, eaten);
        if (eaten->size_bytes > missing) {
            eaten->offset += missing;
            eaten->size_bytes -= missing;
            break;
        }
        missing -= eaten->size_bytes;
        rest = eaten->next;
        detach(eaten);
        free(eaten);
    }
    block->next = rest;
    *link = block;
}

static void count_used(struct ct_memory_pool *pool, const struct ct_pool_block *block)
{
    pool->used += block->requested_bytes;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
}

struct ct_pool_block *ct_pool_take_locked(struct ct_memory_pool *pool, const struct ct_pool_request *request, struct ct_pool_block *spare,
                                          struct ct_pool_wait *waits)
{
    struct ct_pool_block **link = NULL;

    for (struct ct_pool_slab *slab = pool->slabs; slab && !link; slab = slab->next)
        link = find_run(slab, request);
    if (!link)
        return NULL;
    carve(link, spare, request, waits);
    count_used(pool, spare);
    return spare;
}

/* Returns the block that contains [offset, end), or NULL. */
static struct ct_pool_block **find_whole(struct ct_pool_slab *slab, uint64_t offset, uint64_t end)
{
    for (struct ct_pool_block **link = &slab->first; *link; link = &(*link)->next)
        if ((*link)->offset <= offset && end <= (*link)->offset + (*link)->size_bytes)
            return link;
    return NULL;
}

struct ct_pool_block *ct_pool_take_at_locked(struct ct_pool_slab *slab, uint64_t offset, uint64_t requested_bytes,
                                             struct ct_pool_block *spares[2])
{
    const uint64_t size_bytes = ct_pool_block_bytes(requested_bytes);
    struct ct_pool_block **link = find_whole(slab, offset, offset + size_bytes), *before, *block = spares[0], *behind = spares[1];

    if (!link || (*link)->state != CT_BLOCK_FREE)
        return NULL;
    before = *link;
    *block = (struct ct_pool_block){.slab = slab,
                                    .offset = offset,
                                    .size_bytes = size_bytes,
                                    .requested_bytes = requested_bytes,
                                    .state = CT_BLOCK_USED,
                                    .next = before->next};
    *behind = (struct ct_pool_block){.slab = slab, .offset = offset + size_bytes, .next = before->next};
    behind->size_bytes = before->offset + before->size_bytes - behind->offset;
    before->size_bytes = offset - before->offset;
    if (behind->size_bytes)
        block->next = behind;
    else
        free(behind);
    before->next = block;
    if (!before->size_bytes) {
        *link = block;
        free(before);
    }
    count_used(slab->pool, block);
    return block;
}

/* ---- freeing ---- */

static void merge_free(struct ct_pool_slab *slab)
{
    for (struct ct_pool_block *block = slab->first; block; block = block->next) {
        while (block->state == CT_BLOCK_FREE && block->next && block->next->state == CT_BLOCK_FREE) {
            struct ct_pool_block *next = block->next;

            block->size_bytes += next->size_bytes;
            block->next = next->next;
            free(next);
        }
    }
}

void ct_pool_free_locked(struct ct_pool_block *block, struct ct_pool_user *user, uint64_t point)
{
    assert(block->state == CT_BLOCK_USED);
    block->slab->pool->used -= block->requested_bytes;
    block->state = user ? CT_BLOCK_PENDING : CT_BLOCK_FREE;
    block->user = user;
    block->point = point;
    if (user)
        user->n_pending++;
    else
        merge_free(block->slab);
}

/* ---- slabs ---- */

/* Creates a slab that is one free block, without memory. */
static struct ct_pool_slab *make_slab(struct ct_memory_pool *pool)
{
    struct ct_pool_slab *slab = calloc(1, sizeof *slab);
    struct ct_pool_block *block = calloc(1, sizeof *block);

    if (!slab || !block) {
        free(slab);
        free(block);
        return NULL;
    }
    block->slab = slab;
    slab->pool = pool;
    slab->first = block;
    return slab;
}

static void drop_slab(struct ct_pool_slab *slab)
{
    if (slab)
        free(slab->first);
    free(slab);
}

CUresult ct_pool_slab_create(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_slab **out)
{
    struct ct_pool_slab *slab = make_slab(pool);
    CUresult r = slab ? ct_device_open(pool->device) : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a slab of a memory pool");

    if (r == CUDA_SUCCESS && pool->kind.place != CT_POOL_DEVICE)
        r = ct_backing_create_portable(pool->device->primary, size_bytes, CT_MEMORY_HOST, &slab->backing);
    else if (r == CUDA_SUCCESS)
        r = ct_backing_create_device(pool->device->primary, size_bytes, SLAB_ALIGN, &slab->backing);
    if (r != CUDA_SUCCESS) {
        drop_slab(slab);
        return r;
    }
    slab->size_bytes = slab->first->size_bytes = size_bytes;
    *out = slab;
    return CUDA_SUCCESS;
}

CUresult ct_pool_slab_create_mapped(struct ct_memory_pool *pool, uint64_t size_bytes, struct ct_pool_slab **out)
{
    struct ct_pool_slab *slab = make_slab(pool);
    CUresult r = slab ? ct_device_open(pool->device) : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a slab of a memory pool");

    if (r == CUDA_SUCCESS)
        r = ct_slab_mapping_create(pool->device, size_bytes, &slab->mapping, &slab->backing);
    if (r != CUDA_SUCCESS) {
        drop_slab(slab);
        return r;
    }
    slab->size_bytes = slab->first->size_bytes = size_bytes;
    *out = slab;
    return CUDA_SUCCESS;
}

CUresult ct_pool_slab_import(struct ct_memory_pool *pool, const struct ct_share_name *name, struct ct_pool_slab **out)
{
    struct ct_pool_slab *slab = make_slab(pool);
    CUresult r = slab ? ct_device_open(pool->device) : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for an imported slab");

    if (r == CUDA_SUCCESS)
        r = ct_opened_backing_get(pool->device->primary, name, name->id, &slab->opened);
    if (r != CUDA_SUCCESS) {
        drop_slab(slab);
        return r;
    }
    slab->backing = slab->opened->backing;
    slab->lead_bytes = slab->opened->lead_bytes;
    slab->size_bytes = slab->first->size_bytes = slab->lead_bytes + slab->opened->size_bytes;
    slab->origin_id = name->id;
    *out = slab;
    return CUDA_SUCCESS;
}

static void slab_destroy(struct ct_device *device, struct ct_pool_slab *slab)
{
    ct_share_retract(slab->share_id); /* first: other processes must not import memory that is being freed */
    if (slab->mapping)
        ct_slab_mapping_destroy(slab);
    else if (slab->opened)
        ct_opened_backing_release(device->primary, slab->opened);
    else
        ct_backing_destroy(device->primary, &slab->backing);
    drop_slab(slab);
}

static bool is_empty(const struct ct_pool_slab *slab)
{
    return slab->first->state == CT_BLOCK_FREE && !slab->first->next;
}

/* Frames are counted by themselves. */
static uint64_t reserved_bytes(const struct ct_pool_slab *slab)
{
    return slab->mapping ? 0 : slab->size_bytes;
}

void ct_pool_shrink_locked(struct ct_memory_pool *pool, uint64_t min_bytes, struct ct_pool_garbage *garbage)
{
    struct ct_pool_slab **link = &pool->slabs;

    while (*link) {
        struct ct_pool_slab *slab = *link;

        if (!is_empty(slab) || pool->reserved - reserved_bytes(slab) < min_bytes) {
            link = &slab->next;
            continue;
        }
        *link = slab->next;
        slab->next = garbage->slabs;
        garbage->slabs = slab;
        pool->reserved -= reserved_bytes(slab);
    }
}

/* ---- users ---- */

struct ct_pool_user *ct_pools_user_locked(struct ct_device_pools *pools, struct ct_stream *stream)
{
    struct ct_pool_user *user;

    for (user = pools->users; user; user = user->next)
        if (user->stream == stream)
            return user;
    user = calloc(1, sizeof *user);
    if (!user)
        return NULL;
    user->stream = stream;
    ct_object_retain(&stream->object);
    user->next = pools->users;
    pools->users = user;
    return user;
}

/* The queue exists: a destroyed context removes its streams here before it finishes them. */
static void read_progress(struct ct_pool_user *user)
{
    struct ct_stream *stream = user->stream;

    if (stream->context->backend->queues->completed(stream->queue, &user->completed) != CUDA_SUCCESS)
        user->completed = UINT64_MAX; /* no work runs in a queue that failed */
}

/* Removes users without pending blocks; those whose context is being destroyed stay until it forgets them. */
static void drop_users(struct ct_device_pools *pools, struct ct_pool_garbage *garbage)
{
    struct ct_pool_user **link = &pools->users;

    while (*link) {
        struct ct_pool_user *user = *link;

        if (user->n_pending || ct_context_use(user->stream->context) != CUDA_SUCCESS) {
            link = &user->next;
            continue;
        }
        user->in_use = true;
        *link = user->next;
        user->next = garbage->users;
        garbage->users = user;
    }
}

/* ---- reclaiming ---- */

static bool covers(const struct ct_pool_wait *wait, const struct ct_pool_block *block)
{
    const struct ct_stream *stream = block->user->stream;

    if (!wait || !wait->stream)
        return false;
    if (wait->stream == stream)
        return block->point <= wait->point;
    return wait->stream->is_legacy && wait->stream->context == stream->context && !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static void reclaim_slab(struct ct_pool_slab *slab, const struct ct_pool_wait *wait)
{
    for (struct ct_pool_block *block = slab->first; block; block = block->next) {
        if (block->state != CT_BLOCK_PENDING || block->point > block->user->completed)
            continue;
        if (!slab->pool->reuse[CT_REUSE_OPPORTUNISTIC] && !slab->pool->destroyed && !covers(wait, block))
            continue;
        detach(block);
        block->state = CT_BLOCK_FREE;
    }
    merge_free(slab);
}

void ct_pools_reclaim_locked(struct ct_device_pools *pools, const struct ct_pool_wait *wait, struct ct_pool_garbage *garbage)
{
    if (!pools->users)
        return;
    for (struct ct_pool_user *user = pools->users; user; user = user->next)
        read_progress(user);
    for (struct ct_memory_pool *pool = pools->first; pool; pool = pool->next) {
        for (struct ct_pool_slab *slab = pool->slabs; slab; slab = slab->next)
            reclaim_slab(slab, wait);
        ct_pool_frames_reclaim_locked(pool);
    }
    drop_users(pools, garbage);
}

static void forget_blocks(struct ct_pool_slab *slab, const struct ct_context *context)
{
    for (struct ct_pool_block *block = slab->first; block; block = block->next) {
        if (block->state != CT_BLOCK_PENDING || block->user->stream->context != context)
            continue;
        detach(block);
        block->state = CT_BLOCK_FREE;
    }
    merge_free(slab);
}

void ct_pools_forget_locked(struct ct_device_pools *pools, struct ct_context *context, struct ct_pool_garbage *garbage)
{
    struct ct_pool_user **link = &pools->users;

    for (struct ct_memory_pool *pool = pools->first; pool; pool = pool->next) {
        for (struct ct_pool_slab *slab = pool->slabs; slab; slab = slab->next)
            forget_blocks(slab, context);
        ct_pool_frames_forget_locked(pool, context);
    }
    while (*link) {
        struct ct_pool_user *user = *link;

        if (user->stream->context != context) {
            link = &user->next;
            continue;
        }
        *link = user->next;
        user->next = garbage->users;
        garbage->users = user;
    }
}

void ct_pools_reap_locked(struct ct_device_pools *pools, struct ct_pool_garbage *garbage)
{
    struct ct_memory_pool **link = &pools->first;

    while (*link) {
        struct ct_memory_pool *pool = *link;

        if (pool->destroyed)
            ct_pool_shrink_locked(pool, 0, garbage);
        if (!pool->destroyed || pool->reserved > 0) {
            link = &pool->next;
            continue;
        }
        *link = pool->next;
        pool->next = garbage->pools;
        garbage->pools = pool;
    }
}

void ct_pool_garbage_free(struct ct_device_pools *pools, struct ct_pool_garbage *garbage)
{
    while (garbage->slabs) {
        struct ct_pool_slab *slab = garbage->slabs;

        garbage->slabs = slab->next;
        slab_destroy(pools->device, slab);
    }
    ct_pool_frames_destroy(garbage->frames);
    garbage->frames = NULL;
    while (garbage->users) {
        struct ct_pool_user *user = garbage->users;

        garbage->users = user->next;
        if (user->in_use)
            ct_stream_release(user->stream);
        else
            ct_object_release(&user->stream->object);
        free(user);
    }
    while (garbage->pools) {
        struct ct_memory_pool *pool = garbage->pools;

        garbage->pools = pool->next;
        ct_object_release(&pool->object);
    }
}
