/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is bound to arrays without memory of their own (Driver API: Virtual Memory Management, cuMemMapArrayAsync).
 *
 * Tiles are numbered: the boxes of a level row by row, slice by slice, layer by layer, level after level; then the tails. Each tile holds a
 * reference to its memory, so the memory lives until its last tile is freed or bound to other memory.
 *
 * A request is validated when it is made, and the stream's worker binds it in stream order. Until then it counts as a mapping of its
 * memory. It borrows its array, which waits for its context's streams before it is freed. */
#include "array_tiles.h"

#include "array_group.h"
#include "core/device/device.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/stream/event.h"
#include "core/vmm/vmm_handle.h"

#include <stdlib.h>

#define CT_CHANNEL "memory"

struct grid {
    uint32_t x, y, z; /* the number of boxes of a level in each dimension */
    uint64_t first;   /* the number of the level's first tile */
};

struct ct_array_tiles {
    struct ct_image_tiling tiling;
    enum ct_image_memory source;
    uint32_t n_layers;
    struct grid *grids;           /* of the levels before the tail */
    uint64_t tail_first;          /* the number of the first tile of the first tail */
    uint64_t tail_tiles, n_tails; /* of a tail; 0 if there is none */
    uint64_t n;
    struct ct_allocated **memory;     /* of each tile, with a reference, or NULL; under ct_vmm_lock */
    _Atomic(struct ct_event *) bound; /* of deferred arrays: recorded when memory is bound; NULL before the first time */
    atomic_bool is_bound;             /* memory is bound, in stream order */
};

/* ---- numbering ---- */

static uint32_t boxes(uint32_t side, uint32_t level, uint32_t box)
{
    const uint32_t length = side >> level ? side >> level : 1;

    return (length + box - 1) / box;
}

static void number_tiles(struct ct_array_tiles *tiles, const struct ct_image_request *request)
{
    const struct ct_image_tiling *tiling = &tiles->tiling;
    uint64_t next = 0;

    for (uint32_t level = 0; level < tiling->tail_level; level++) {
        struct grid grid = {boxes(request->width, level, tiling->width), boxes(request->height, level, tiling->height),
                            boxes(request->depth, level, tiling->depth), next};

        tiles->grids[level] = grid;
        next += (uint64_t)grid.x * grid.y * grid.z * tiles->n_layers;
    }
    tiles->tail_first = next;
    tiles->tail_tiles = tiling->tail_bytes / tiling->tile_bytes;
    tiles->n_tails = tiling->single_tail ? 1 : tiles->n_layers;
    tiles->n = next + tiles->tail_tiles * tiles->n_tails;
}

CUresult ct_array_tiles_create(const struct ct_image_tiling *tiling, const struct ct_image_request *request, struct ct_array_tiles **out)
{
    struct ct_array_tiles *tiles = calloc(1, sizeof *tiles);

    if (!tiles)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the tiles of an array");
    tiles->tiling = *tiling;
    tiles->source = request->memory;
    tiles->n_layers = request->layers;
    tiles->grids = calloc(request->levels, sizeof *tiles->grids);
    if (tiles->grids) {
        number_tiles(tiles, request);
        tiles->memory = calloc(tiles->n, sizeof *tiles->memory);
    }
    if (!tiles->memory) {
        ct_array_tiles_destroy(tiles);
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the tiles of an array");
    }
    *out = tiles;
    return CUDA_SUCCESS;
}

/* ---- the memory of tiles ---- */

static void drop_locked(struct ct_allocated *memory_or_null)
{
    if (!memory_or_null)
        return;
    memory_or_null->mappings--;
    ct_vmm_drop_if_unused_locked(memory_or_null);
}

static void set_locked(struct ct_array_tiles *tiles, uint64_t tile, struct ct_allocated *memory_or_null)
{
    struct ct_allocated *old = tiles->memory[tile];

    if (memory_or_null)
        memory_or_null->mappings++;
    tiles->memory[tile] = memory_or_null;
    drop_locked(old);
}

CUresult ct_array_tiles_await(const struct ct_array_tiles *tiles, struct ct_stream *stream, bool *out_accessible)
{
    *out_accessible = tiles->source == CT_IMAGE_SPARSE || atomic_load(&tiles->is_bound);
    return tiles->source != CT_IMAGE_SPARSE && *out_accessible ? ct_event_wait(atomic_load(&tiles->bound), stream) : CUDA_SUCCESS;
}

void ct_array_tiles_destroy(struct ct_array_tiles *tiles)
{
    if (!tiles)
        return;
    ct_mutex_lock(&ct_vmm_lock);
    for (uint64_t i = 0; tiles->memory && i < tiles->n; i++)
        set_locked(tiles, i, NULL);
    ct_mutex_unlock(&ct_vmm_lock);
    if (atomic_load(&tiles->bound))
        ct_event_discard(atomic_load(&tiles->bound));
    free(tiles->memory);
    free(tiles->grids);
    free(tiles);
}

/* ---- requests ---- */

/* The request of one entry of a list. */
struct request {
    struct ct_array_group *group; /* borrowed */
    struct ct_allocated *memory;  /* the request holds a reference; NULL: unmap */
    uint64_t n;
    struct ct_tile_bind *binds;
    uint64_t *tiles; /* their numbers */
};

struct ct_tile_requests {
    unsigned n;
    struct request requests[];
};

static void finish_work(struct ct_tile_requests *work)
{
    for (unsigned i = 0; i < work->n; i++) {
        ct_mutex_lock(&ct_vmm_lock);
        drop_locked(work->requests[i].memory);
        ct_mutex_unlock(&ct_vmm_lock);
        free(work->requests[i].binds);
        free(work->requests[i].tiles);
    }
    free(work);
}

static void bind(const struct request *request)
{
    struct ct_context *context = request->group->context;
    CUresult r = context->backend->images->bind(request->group->image, request->binds, (unsigned)request->n);

    if (ct_context_check(context, r) != CUDA_SUCCESS)
        return;
    ct_mutex_lock(&ct_vmm_lock);
    for (uint64_t i = 0; i < request->n; i++)
        set_locked(request->group->tiles, request->tiles[i], request->memory);
    ct_mutex_unlock(&ct_vmm_lock);
}

static void do_work(void *user, CUresult status)
{
    struct ct_tile_requests *work = user;

    for (unsigned i = 0; i < work->n && status == CUDA_SUCCESS; i++)
        bind(&work->requests[i]);
    finish_work(work);
}

/* Allocates a request for n tiles; their memory is filled in tile by tile. */
static CUresult size_request(struct request *request, const CUarrayMapInfo *info, uint64_t n)
{
    const uint64_t tile_bytes = request->group->tiles->tiling.tile_bytes;

    if (n == 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the region has no tiles");
    if (request->memory && (info->offset % tile_bytes || info->offset > request->memory->memory.size_bytes ||
                            n > (request->memory->memory.size_bytes - info->offset) / tile_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu tiles of %llu bytes at offset %llu exceed the memory's %llu bytes",
                       (unsigned long long)n, (unsigned long long)tile_bytes, info->offset,
                       (unsigned long long)request->memory->memory.size_bytes);
    request->binds = calloc(n, sizeof *request->binds);
    request->tiles = calloc(n, sizeof *request->tiles);
    return request->binds && request->tiles ? CUDA_SUCCESS
                                            : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %llu tiles", (unsigned long long)n);
}

static void add_tile(struct request *request, const CUarrayMapInfo *info, uint64_t tile, struct ct_tile_bind bind)
{
    if (request->memory) {
        bind.physical = request->memory->memory.physical;
        bind.offset = info->offset + request->n * request->group->tiles->tiling.tile_bytes;
    }
    request->binds[request->n] = bind;
    request->tiles[request->n++] = tile;
}

/* Adds `count` tiles of the tails, numbered from the first tail on. */
static CUresult fill_tail(struct request *request, const CUarrayMapInfo *info, uint64_t first, uint64_t count)
{
    const struct ct_array_tiles *tiles = request->group->tiles;
    CUresult r = size_request(request, info, count);

    for (uint64_t i = first; i < first + count && r == CUDA_SUCCESS; i++)
        add_tile(request, info, tiles->tail_first + i,
                 (struct ct_tile_bind){.tail = true,
                                       .layer = (uint32_t)(i / tiles->tail_tiles),
                                       .tail_offset = i % tiles->tail_tiles * tiles->tiling.tile_bytes});
    return r;
}

/* If an array consists of the tail only, its layers share one tail. */
static bool has_one_tail(const struct ct_array_group *group)
{
    return group->tiles->n_tails == 1 || !group->is_mipmapped;
}

static CUresult check_tail(struct request *request, const CUarrayMapInfo *info)
{
    const struct ct_array_tiles *tiles = request->group->tiles;
    const uint64_t tile_bytes = tiles->tiling.tile_bytes, offset = info->subresource.miptail.offset, size = info->subresource.miptail.size;
    const uint64_t tails = has_one_tail(request->group) ? tiles->n_tails : 1, room = tiles->tail_tiles * tails * tile_bytes;
    const unsigned layer = info->subresource.miptail.layer;

    if (offset % tile_bytes || size % tile_bytes || offset > room || size > room - offset)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%llu bytes at %llu are not tiles of a mip tail of %llu bytes with tiles of %llu",
                       (unsigned long long)size, (unsigned long long)offset, (unsigned long long)room, (unsigned long long)tile_bytes);
    if (layer >= (has_one_tail(request->group) ? 1 : tiles->n_layers))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "layer %u has no mip tail", layer);
    return fill_tail(request, info, layer * tiles->tail_tiles + offset / tile_bytes, size / tile_bytes);
}

/* Converts one side of a region to boxes. The side must end at the end of a box or of the level. */
static bool find_side(uint32_t offset, uint32_t extent, uint32_t box, uint32_t n_boxes, uint32_t length, uint32_t *out_first,
                      uint32_t *out_count)
{
    const uint64_t end = (uint64_t)offset + extent;

    *out_first = offset / box;
    *out_count = (uint32_t)((end + box - 1) / box) - *out_first;
    return extent && offset % box == 0 && (end % box == 0 || end == length) && end <= (uint64_t)n_boxes * box;
}

static CUresult check_level(struct request *request, const CUarrayMapInfo *info)
{
    const struct ct_array_group *group = request->group;
    const struct ct_array_tiles *tiles = group->tiles;
    const struct ct_image_tiling *tiling = &tiles->tiling;
    const unsigned level = info->subresource.sparseLevel.level, layer = info->subresource.sparseLevel.layer;
    const CUDA_ARRAY3D_DESCRIPTOR *desc;
    uint32_t x, y, z, nx, ny, nz;
    const struct grid *grid;
    CUresult r;

    if (level >= tiling->tail_level || layer >= tiles->n_layers)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "level %u of %u levels with tiles, layer %u of %u layers", level, tiling->tail_level,
                       layer, tiles->n_layers);
    desc = &group->levels[level].desc;
    grid = &tiles->grids[level];
    if (!find_side(info->subresource.sparseLevel.offsetX, info->subresource.sparseLevel.extentWidth, tiling->width, grid->x,
                   (uint32_t)desc->Width, &x, &nx) ||
        !find_side(info->subresource.sparseLevel.offsetY, info->subresource.sparseLevel.extentHeight, tiling->height, grid->y,
                   (uint32_t)desc->Height, &y, &ny) ||
        !find_side(info->subresource.sparseLevel.offsetZ, info->subresource.sparseLevel.extentDepth, tiling->depth, grid->z,
                   tiles->n_layers > 1 || !desc->Depth ? 1 : (uint32_t)desc->Depth, &z, &nz))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a region of level %u does not consist of tiles of %u x %u x %u", level, tiling->width,
                       tiling->height, tiling->depth);
    r = size_request(request, info, (uint64_t)nx * ny * nz);
    for (uint64_t i = 0; i < (uint64_t)nx * ny * nz && r == CUDA_SUCCESS; i++) {
        const uint32_t at_x = x + (uint32_t)(i % nx), at_y = y + (uint32_t)(i / nx % ny), at_z = z + (uint32_t)(i / nx / ny);

        add_tile(request, info, grid->first + (((uint64_t)layer * grid->z + at_z) * grid->y + at_y) * grid->x + at_x,
                 (struct ct_tile_bind){
                     .level = level, .layer = layer, .x = at_x * tiling->width, .y = at_y * tiling->height, .z = at_z * tiling->depth});
    }
    return r;
}

static CUresult check_subresource(struct request *request, const CUarrayMapInfo *info)
{
    const struct ct_array_tiles *tiles = request->group->tiles;

    if (tiles->source == CT_IMAGE_DEFERRED)
        return fill_tail(request, info, 0, tiles->tail_tiles);
    switch ((int)info->subresourceType) {
    case CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL:
        return check_level(request, info);
    case CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL:
        return check_tail(request, info);
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "subresource type %d does not exist", (int)info->subresourceType);
}

static CUresult find_memory_locked(const CUarrayMapInfo *info, const struct ct_device *device, struct ct_allocated **out)
{
    struct ct_allocated *memory;
    CUresult r = ct_vmm_find_locked(info->memHandle.memHandle, &memory);

    if (r != CUDA_SUCCESS)
        return r;
    if (!ct_vmm_is_tile_pool(&memory->properties) || memory->memory.device != device)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the memory is not a tile pool of the stream's device");
    memory->mappings++;
    *out = memory;
    return CUDA_SUCCESS;
}

/* Validates the operation and finds the memory to map, if any. */
static CUresult check_operation(struct request *request, const CUarrayMapInfo *info, const struct ct_device *device)
{
    CUresult r;

    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        return info->memHandle.memHandle ? ct_fail(CUDA_ERROR_INVALID_VALUE, "memory is specified for an unmap operation") : CUDA_SUCCESS;
    if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP || info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid operation %d or handle type %d", (int)info->memOperationType,
                       (int)info->memHandleType);
    ct_mutex_lock(&ct_vmm_lock);
    r = find_memory_locked(info, device, &request->memory);
    ct_mutex_unlock(&ct_vmm_lock);
    return r;
}

static CUresult check_entry(struct request *request, const CUarrayMapInfo *info, const struct ct_device *device)
{
    CUresult r;

    if (info->flags || info->reserved[0] || info->reserved[1] || device->ordinal > 31 || info->deviceBitMask != 1u << device->ordinal)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid flags 0x%x or device mask 0x%x; the stream's device is %d", info->flags,
                       info->deviceBitMask, device->ordinal);
    if (!request->group->tiles || request->group->context->device != device)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the array owns its memory, or belongs to another device");
    r = check_operation(request, info, device);
    return r == CUDA_SUCCESS ? check_subresource(request, info) : r;
}

/* ---- arrays by their handles ---- */

/* As ct_array_lookup, for an array that is not a level of a mipmapped array. INVALID_VALUE: it is a level. */
static CUresult lookup_alone(CUarray handle, struct ct_array **out)
{
    CUresult r = ct_array_lookup(handle, out);

    if (r != CUDA_SUCCESS || !(*out)->group->is_mipmapped)
        return r;
    ct_array_release(*out);
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "the array is a level of a mipmapped array");
}

/* A query of a group; `out` has the function's result type, or is NULL. */
typedef CUresult query_function(const struct ct_array_group *group, CUdevice device, void *out);

static CUresult query_alone(CUarray handle, query_function *query, CUdevice device, void *out)
{
    struct ct_array *array;
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS) /* the result code is that of NVIDIA's driver */
        r = handle ? lookup_alone(handle, &array) : ct_fail(CUDA_ERROR_INVALID_VALUE, "the array is NULL");
    if (r != CUDA_SUCCESS)
        return r;
    r = query(array->group, device, out);
    ct_array_release(array);
    return r;
}

static CUresult query_mipmapped(CUmipmappedArray handle, query_function *query, CUdevice device, void *out)
{
    struct ct_array_group *group;
    CUresult r = ct_array_group_lookup(handle, &group);

    if (r != CUDA_SUCCESS)
        return r;
    r = query(group, device, out);
    ct_array_group_release(group);
    return r;
}

static CUresult properties(const struct ct_array_group *group, CUdevice device, void *out)
{
    const struct ct_array_tiles *tiles = group->tiles;
    const struct ct_image_tiling *tiling;
    bool all_tail;

    (void)device;
    if (!out || !tiles || tiles->source != CT_IMAGE_SPARSE)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the array is not sparse, or sparseProperties is NULL");
    tiling = &tiles->tiling;
    all_tail = !group->is_mipmapped && tiling->tail_level == 0;
    *(CUDA_ARRAY_SPARSE_PROPERTIES *)out = (CUDA_ARRAY_SPARSE_PROPERTIES){
        .tileExtent = {tiling->width, tiling->height, tiling->depth},
        .miptailFirstLevel = tiling->tail_bytes ? tiling->tail_level : 0,
        .miptailSize = all_tail ? tiling->tail_bytes * tiles->n_tails : tiling->tail_bytes,
        .flags = tiling->tail_bytes && (all_tail || tiling->single_tail) ? CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL : 0,
    };
    return CUDA_SUCCESS;
}

static CUresult requirements(const struct ct_array_group *group, CUdevice ordinal, void *out)
{
    const struct ct_array_tiles *tiles = group->tiles;
    struct ct_device *device;
    CUresult r;

    if (!out || !tiles || tiles->source != CT_IMAGE_DEFERRED)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the array has no deferred mapping, or memoryRequirements is NULL");
    if ((r = ct_device_lookup(ordinal, &device)) != CUDA_SUCCESS)
        return r;
    *(CUDA_ARRAY_MEMORY_REQUIREMENTS *)out =
        (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = tiles->tiling.tail_bytes, .alignment = tiles->tiling.tile_bytes};
    return CUDA_SUCCESS;
}

CUresult ct_array_sparse_properties(CUarray handle, CUDA_ARRAY_SPARSE_PROPERTIES *out)
{
    return query_alone(handle, properties, 0, out);
}

CUresult ct_mipmapped_array_sparse_properties(CUmipmappedArray handle, CUDA_ARRAY_SPARSE_PROPERTIES *out)
{
    return query_mipmapped(handle, properties, 0, out);
}

CUresult ct_array_memory_requirements(CUarray handle, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *out)
{
    return query_alone(handle, requirements, device, out);
}

CUresult ct_mipmapped_array_memory_requirements(CUmipmappedArray handle, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *out)
{
    return query_mipmapped(handle, requirements, device, out);
}

/* ---- mapping ---- */

static CUresult find_target(const CUarrayMapInfo *info, union ct_tile_target *out, struct ct_array_group **out_group)
{
    CUresult r;

    switch ((int)info->resourceType) {
    case CU_RESOURCE_TYPE_ARRAY:
        if ((r = lookup_alone(info->resource.array, &out->array)) == CUDA_SUCCESS)
            *out_group = out->array->group;
        return r;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        if ((r = ct_array_group_lookup(info->resource.mipmap, &out->group)) == CUDA_SUCCESS)
            *out_group = out->group;
        return r;
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "resource type %d does not exist", (int)info->resourceType);
}

static void release_target(const CUarrayMapInfo *info, const union ct_tile_target *target)
{
    if (info->resourceType == CU_RESOURCE_TYPE_ARRAY)
        ct_array_release(target->array);
    else
        ct_array_group_release(target->group);
}

static CUresult add_request(struct ct_tile_work *work, const CUarrayMapInfo *info, const struct ct_device *device)
{
    struct request *request = &work->requests->requests[work->n_targets];
    CUresult r = find_target(info, &work->targets[work->n_targets], &request->group);

    if (r != CUDA_SUCCESS)
        return r;
    work->requests->n = ++work->n_targets;
    return check_entry(request, info, device);
}

CUresult ct_tile_work_init(struct ct_tile_work *work, const struct ct_device *device, const CUarrayMapInfo *list, unsigned count)
{
    CUresult r = CUDA_SUCCESS;

    *work = (struct ct_tile_work){
        .requests = calloc(1, sizeof *work->requests + count * sizeof *work->requests->requests),
        .targets = calloc(count, sizeof *work->targets),
        .list = list,
    };
    if (!work->requests || !work->targets)
        r = ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of %u requests", count);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = add_request(work, &list[i], device);
    if (r != CUDA_SUCCESS)
        ct_tile_work_finish(work);
    return r;
}

void ct_tile_work_finish(struct ct_tile_work *work)
{
    if (work->requests)
        finish_work(work->requests);
    for (unsigned i = 0; i < work->n_targets; i++)
        release_target(&work->list[i], &work->targets[i]);
    free(work->targets);
}

static const struct ct_array_group *group_of(const struct ct_tile_work *work, unsigned i)
{
    return work->list[i].resourceType == CU_RESOURCE_TYPE_ARRAY ? work->targets[i].array->group : work->targets[i].group;
}

/* Before the work is recorded: from now on commands may not access arrays that lose their memory. */
static void note_unbound(const struct ct_tile_work *work)
{
    for (unsigned i = 0; i < work->n_targets; i++)
        if (work->list[i].memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
            atomic_store(&group_of(work, i)->tiles->is_bound, false);
}

static CUresult find_event(struct ct_array_tiles *tiles, struct ct_context *context, struct ct_event **out)
{
    struct ct_event *event = atomic_load(&tiles->bound), *none = NULL;
    CUresult r;

    if (!event) {
        if ((r = ct_event_create_internal(context, &event)) != CUDA_SUCCESS)
            return r;
        if (!atomic_compare_exchange_strong(&tiles->bound, &none, event)) { /* another thread has created it meanwhile */
            ct_event_discard(event);
            event = none;
        }
    }
    *out = event;
    return CUDA_SUCCESS;
}

/* After it was recorded, and is complete if the stream belongs to another context. */
static CUresult note_bound(const struct ct_tile_work *work, struct ct_stream *stream)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < work->n_targets && r == CUDA_SUCCESS; i++) {
        const struct ct_array_group *group = group_of(work, i);
        struct ct_event *event;

        if (group->tiles->source == CT_IMAGE_SPARSE || work->list[i].memOperationType != CU_MEM_OPERATION_TYPE_MAP)
            continue;
        r = find_event(group->tiles, group->context, &event);
        if (r == CUDA_SUCCESS && group->context == stream->context)
            r = ct_event_record(event, stream);
        if (r == CUDA_SUCCESS)
            atomic_store(&group->tiles->is_bound, true);
    }
    return r;
}

/* An array that is destroyed waits only for the streams of its own context, so work in streams of other contexts is waited for here. */
CUresult ct_tile_work_record(struct ct_stream *stream, struct ct_tile_work *work)
{
    bool foreign = false;
    CUresult r;

    for (unsigned i = 0; i < work->n_targets; i++)
        foreign |= work->requests->requests[i].group->context != stream->context;
    note_unbound(work);
    if ((r = ct_stream_run_on_host(stream, do_work, work->requests)) != CUDA_SUCCESS)
        return r;
    work->requests = NULL; /* the stream owns them now */
    r = foreign ? ct_stream_synchronize(stream) : CUDA_SUCCESS;
    return r == CUDA_SUCCESS ? note_bound(work, stream) : r;
}
