/* SPDX-License-Identifier: Apache-2.0 */
/*   FREE ──map──> BUSY ──> MAPPED ──unmap──> BUSY ──> FREE ──unregister──> GONE
 *
 * The thread that makes a resource BUSY owns it until it stores the next state; others treat a BUSY resource as being in the state that it leaves. A
 * resource that fails to be mapped or unmapped returns to the state from before.
 *
 * The functions of OpenGL have to be called in the application's thread, during the call. With shared memory (gl_shared.h) OpenGL copies a buffer
 * to and from CUDA's memory itself, and texels to and from a staging area in it. Without, the contents go through memory of the host: to the device by a
 * copy in stream order, which reads that memory before the call returns, and back by a copy for which the call waits. */
#include "graphics_resource.h"

#include "core/array/array_layers.h"
#include "core/backing/address_uses.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/copy/copy.h"
#include "gl_buffer.h"
#include "gl_image.h"
#include "gl_names.h"
#include "gl_shared.h"

#include <stdlib.h>

#define CT_CHANNEL "graphics"
#define ALL_MAP_FLAGS (CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY | CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD)
#define ALL_IMAGE_FLAGS (CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST | CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER)
#define ALIGNMENT ((uint64_t)512) /* of the memory of buffers */

enum state { FREE, BUSY, MAPPED, GONE };

struct ct_graphics_resource {
    struct ct_object object;
    struct ct_context *context; /* a reference, which keeps the struct alive */
    void *gl_context;           /* in which it was registered; only for comparison */
    atomic_int state;           /* enum state; acquire and release, since its owner changes the members below */
    enum ct_graphics_kind kind;
    unsigned name;
    unsigned flags; /* CU_GRAPHICS_MAP_RESOURCE_FLAGS_* */
    bool is_image;
    struct ct_gl_image image;
    CUmipmappedArray array;       /* of an image */
    uint64_t address, size_bytes; /* the memory of a buffer; for an image, shared memory, or 0 */
    struct ct_gl_shared shared;   /* the same memory in OpenGL, if it can be shared */
};

static bool take(struct ct_graphics_resource *resource, enum state from, enum state to)
{
    int expected = from;

    return atomic_compare_exchange_strong_explicit(&resource->state, &expected, to, memory_order_acquire, memory_order_relaxed);
}

static void put(struct ct_graphics_resource *resource, enum state state)
{
    atomic_store_explicit(&resource->state, state, memory_order_release); /* pairs with the acquire in `take` */
}

static bool is_mapped(struct ct_graphics_resource *resource)
{
    return atomic_load_explicit(&resource->state, memory_order_acquire) == MAPPED;
}

/* ---- life ---- */

static void free_resource(struct ct_object *object)
{
    struct ct_graphics_resource *resource = (struct ct_graphics_resource *)object;

    ct_object_release(&resource->context->object);
    free(resource);
}

/* Frees the memory of a resource whose context is in use. */
static void drop_memory(struct ct_graphics_resource *resource)
{
    if (resource->array)
        ct_mipmapped_array_drop(resource->array);
    if (resource->address)
        (void)ct_memory_free(resource->context, resource->address, CT_RANGE_MODULE);
    resource->array = NULL;
    resource->address = 0;
}

static CUresult make(struct ct_context *context, const struct ct_gl *gl, unsigned name, unsigned flags, struct ct_graphics_resource **out)
{
    struct ct_graphics_resource *resource = calloc(1, sizeof *resource);

    if (!resource)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graphics resource");
    ct_object_init(&resource->object, CT_OBJECT_GRAPHICS_RESOURCE, free_resource);
    ct_object_retain(&context->object);
    resource->context = context;
    resource->gl_context = gl->context;
    resource->name = name;
    resource->flags = flags & ALL_MAP_FLAGS;
    *out = resource;
    return CUDA_SUCCESS;
}

static CUresult check_flags(unsigned flags, unsigned others)
{
    if (flags & ~(ALL_MAP_FLAGS | others) || (flags & ALL_MAP_FLAGS) == ALL_MAP_FLAGS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x of a graphics resource", flags);
    return CUDA_SUCCESS;
}

/* Whether the object of OpenGL is mapped, or has already been registered by its name. */
static CUresult check_unused(const struct ct_gl *gl, unsigned name, bool is_image, enum ct_graphics_kind kind)
{
    CUresult r = CUDA_SUCCESS;
    uint32_t cursor = 0;
    struct ct_object *object;

    while ((object = ct_object_next_or_null(CT_OBJECT_GRAPHICS_RESOURCE, &cursor))) {
        struct ct_graphics_resource *other = (struct ct_graphics_resource *)object;

        if (other->gl_context == gl->context && other->name == name && other->is_image == is_image &&
            (is_mapped(other) || (kind == CT_GRAPHICS_BY_NAME && other->kind == kind)))
            r = ct_fail(CUDA_ERROR_ALREADY_MAPPED, "object %u of OpenGL is mapped, or registered", name);
        ct_object_release(object);
    }
    return r;
}

static void log_copies(const struct ct_context *context)
{
    if (!atomic_exchange_explicit(&ct_process.graphics_logged, true, memory_order_relaxed)) /* orders nothing */
        ct_log(CT_LOG_WARN, "%s does not share memory with OpenGL: buffers and textures are copied whenever they are mapped and unmapped",
               context->device->info.name);
}

/* Publishes a resource that is complete, or discards it. */
static CUresult finish_registration(const struct ct_gl *gl, struct ct_graphics_resource *resource, CUresult r, CUgraphicsResource *out)
{
    if (r == CUDA_SUCCESS)
        r = ct_object_publish(&resource->object);
    if (r == CUDA_SUCCESS) {
        *out = resource->object.handle;
    } else {
        ct_gl_shared_finish(gl, &resource->shared);
        drop_memory(resource);
    }
    ct_object_release(&resource->object);
    return r;
}

/* Memory of MODULE is not freed by cuMemFree. */
static CUresult allocate(struct ct_graphics_resource *resource, uint64_t bytes)
{
    resource->size_bytes = bytes;
    return ct_memory_alloc(resource->context, bytes, ALIGNMENT, CT_RANGE_MODULE, &resource->address);
}

static bool share(const struct ct_gl *gl, struct ct_graphics_resource *resource)
{
    return ct_gl_shared_init(gl, resource->context, resource->address, resource->size_bytes, &resource->shared) == CUDA_SUCCESS;
}

CUresult ct_graphics_register_buffer(struct ct_context *context, unsigned buffer, unsigned flags, enum ct_graphics_kind kind,
                                     CUgraphicsResource *out)
{
    struct ct_graphics_resource *resource;
    struct ct_gl gl;
    uint64_t bytes;
    CUresult r = check_flags(flags, 0);

    if (r != CUDA_SUCCESS || (r = ct_gl_enter(CUDA_ERROR_OPERATING_SYSTEM, &gl)) != CUDA_SUCCESS ||
        (r = ct_gl_buffer_size(&gl, buffer, &bytes)) != CUDA_SUCCESS || (r = check_unused(&gl, buffer, false, kind)) != CUDA_SUCCESS ||
        (r = make(context, &gl, buffer, flags, &resource)) != CUDA_SUCCESS)
        return r;
    resource->kind = kind;
    r = allocate(resource, bytes);
    if (r == CUDA_SUCCESS && !share(&gl, resource))
        log_copies(context);
    return finish_registration(&gl, resource, r, out);
}

/* The bytes of a level in shared memory, with those before the next one. */
static uint64_t level_room(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/* Makes memory through which the device copies the texels, if it can be shared. */
static void share_texels(const struct ct_gl *gl, struct ct_graphics_resource *resource)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < resource->image.levels; i++) {
        const struct ct_gl_extent extent = ct_gl_image_extent(&resource->image, i);

        bytes += level_room((uint64_t)extent.width * extent.height * extent.slices * resource->image.format.texel_bytes);
    }
    if (resource->context->device->info.memory_fd && allocate(resource, bytes) == CUDA_SUCCESS && share(gl, resource))
        return;
    if (resource->address)
        (void)ct_memory_free(resource->context, resource->address, CT_RANGE_MODULE);
    resource->address = 0;
    log_copies(resource->context);
}

static CUDA_ARRAY3D_DESCRIPTOR array_descriptor(const struct ct_gl_image *image, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = image->width,
                                    .Height = image->height,
                                    .Depth = image->depth,
                                    .Format = image->format.format,
                                    .NumChannels = image->format.channels};

    if (image->target == GL_TEXTURE_2D_ARRAY)
        desc.Flags |= CUDA_ARRAY3D_LAYERED;
    if (image->target == GL_TEXTURE_CUBE_MAP)
        desc.Flags |= CUDA_ARRAY3D_CUBEMAP;
    if (flags & CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST)
        desc.Flags |= CUDA_ARRAY3D_SURFACE_LDST;
    if (flags & CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER)
        desc.Flags |= CUDA_ARRAY3D_TEXTURE_GATHER;
    return desc;
}

CUresult ct_graphics_register_image(struct ct_context *context, unsigned image, unsigned target, unsigned flags, CUgraphicsResource *out)
{
    struct ct_graphics_resource *resource;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    struct ct_gl_image found;
    struct ct_gl gl;
    CUresult r = check_flags(flags, ALL_IMAGE_FLAGS);

    if (r != CUDA_SUCCESS || (r = ct_gl_enter(CUDA_ERROR_OPERATING_SYSTEM, &gl)) != CUDA_SUCCESS ||
        (r = ct_gl_image_init(&gl, image, target, &found)) != CUDA_SUCCESS ||
        (r = check_unused(&gl, image, true, CT_GRAPHICS_BY_HANDLE)) != CUDA_SUCCESS ||
        (r = make(context, &gl, image, flags, &resource)) != CUDA_SUCCESS)
        return r;
    resource->is_image = true;
    resource->image = found;
    desc = array_descriptor(&found, flags);
    if ((r = ct_mipmapped_array_create(context, &desc, found.levels, &resource->array)) == CUDA_SUCCESS) {
        ct_mipmapped_array_keep(resource->array);
        share_texels(&gl, resource);
    }
    return finish_registration(&gl, resource, r, out);
}

/* ---- look-up ---- */

CUresult ct_graphics_lookup(CUgraphicsResource handle, struct ct_graphics_resource **out)
{
    struct ct_graphics_resource *resource;
    CUresult r = ct_process_check();

    if (r != CUDA_SUCCESS)
        return r;
    resource = (struct ct_graphics_resource *)ct_object_find_or_null(CT_OBJECT_GRAPHICS_RESOURCE, handle);
    if (!resource)
        return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is not a graphics resource", (void *)handle);
    if ((r = ct_context_enter(resource->context)) == CUDA_SUCCESS)
        *out = resource;
    else
        ct_object_release(&resource->object);
    return r;
}

CUresult ct_graphics_lookup_name(struct ct_context *context, unsigned buffer, struct ct_graphics_resource **out)
{
    uint32_t cursor = 0;
    struct ct_object *object;

    while ((object = ct_object_next_or_null(CT_OBJECT_GRAPHICS_RESOURCE, &cursor))) {
        struct ct_graphics_resource *resource = (struct ct_graphics_resource *)object;

        if (resource->kind == CT_GRAPHICS_BY_NAME && resource->name == buffer && resource->context == context) {
            CUresult r = ct_context_enter(context);

            if (r == CUDA_SUCCESS)
                *out = resource;
            else
                ct_object_release(object);
            return r;
        }
        ct_object_release(object);
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "buffer %u of OpenGL is not registered by its name", buffer);
}

void ct_graphics_release(struct ct_graphics_resource *resource)
{
    struct ct_context *context;

    if (!resource)
        return;
    context = resource->context; /* the reference to the context keeps it alive */
    ct_object_release(&resource->object);
    ct_context_release(context);
}

/* ---- contents ---- */

enum direction { TO_CUDA, TO_GL };

/* Copies between the memory of CUDA, in plan->dst, and `other`, in the order of the stream. The call waits for copies to the host. */
static CUresult copy(struct ct_stream *stream, struct ct_copy *plan, enum direction direction, const struct ct_place *other)
{
    const struct ct_place device = plan->dst;
    struct ct_copy_command command = {.mode = direction == TO_CUDA ? CT_COPY_ASYNC : CT_COPY_SYNC};

    plan->src = direction == TO_CUDA ? *other : device;
    plan->dst = direction == TO_CUDA ? device : *other;
    command.copy = *plan;
    return ct_copy_execute(stream, &command);
}

static CUresult move_bytes(const struct ct_gl *gl, const struct ct_graphics_resource *resource, enum direction direction, void *bytes)
{
    return direction == TO_CUDA ? ct_gl_buffer_read(gl, resource->name, bytes, resource->size_bytes)
                                : ct_gl_buffer_write(gl, resource->name, bytes, resource->size_bytes);
}

/* Through memory of the host. */
static CUresult move_by_copy(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_resource *resource,
                             const struct ct_place *place, enum direction direction)
{
    struct ct_copy plan = {.dst = *place, .row_bytes = resource->size_bytes, .rows = 1, .slices = 1};
    const struct ct_place host = {.host = malloc(resource->size_bytes)};
    CUresult r;

    if (!host.host)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %llu bytes of a buffer", (unsigned long long)resource->size_bytes);
    if (direction == TO_CUDA) {
        r = move_bytes(gl, resource, direction, host.host);
        r = r == CUDA_SUCCESS ? copy(stream, &plan, direction, &host) : r;
    } else {
        r = copy(stream, &plan, direction, &host);
        r = r == CUDA_SUCCESS ? move_bytes(gl, resource, direction, host.host) : r;
    }
    free(host.host);
    return r;
}

/* Where the host works on the memory itself, OpenGL reads and writes it when the stream's work is complete. */
static CUresult move_at_place(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_resource *resource,
                              const struct ct_place *place, enum direction direction)
{
    CUresult r;

    if (!place->host || !ct_copy_host_is_fast(stream->context))
        return move_by_copy(gl, stream, resource, place, direction);
    r = ct_stream_drain(stream);
    return r == CUDA_SUCCESS ? move_bytes(gl, resource, direction, place->host) : r;
}

static CUresult move_buffer(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_resource *resource,
                            enum direction direction)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_place place;
    CUresult r;

    if (resource->shared.buffer)
        return direction == TO_CUDA ? ct_gl_shared_load(gl, &resource->shared, resource->name, resource->size_bytes)
                                    : ct_gl_shared_store(gl, &resource->shared, resource->name, resource->size_bytes);
    r = ct_place_find(CT_POINTER_DEVICE, resource->address, resource->size_bytes, &place);
    if (r == CUDA_SUCCESS)
        r = move_at_place(gl, stream, resource, &place, direction);
    ct_address_uses_end(uses);
    return r;
}

/* A level of an image that is copied. */
struct level {
    const struct ct_gl_image *image;
    const struct ct_array *array;
    unsigned number;
};

static uint64_t level_bytes(const struct level *level)
{
    return level->array->texels.slice_bytes * level->array->slices;
}

static CUresult copy_level(struct ct_stream *stream, const struct level *level, enum direction direction, const struct ct_place *other)
{
    const struct ct_texels *texels = &level->array->texels;
    const uint64_t rows = texels->slice_bytes / texels->row_bytes;
    const struct ct_array_box box = {.width_bytes = texels->row_bytes, .height = rows, .depth = level->array->slices};
    struct ct_copy plan = {.row_bytes = texels->row_bytes, .rows = rows, .slices = level->array->slices};
    CUresult r = ct_array_locate(level->array, &box, &plan.dst, &plan.dst_pitch, &plan.dst_slice);

    plan.src_pitch = texels->row_bytes; /* the same on both sides */
    plan.src_slice = texels->slice_bytes;
    return r == CUDA_SUCCESS ? copy(stream, &plan, direction, other) : r;
}

/* Through memory of the host. */
static CUresult move_level(const struct ct_gl *gl, struct ct_stream *stream, const struct level *level, enum direction direction)
{
    const struct ct_gl_texels texels = {.bytes = malloc(level_bytes(level))};
    const struct ct_place host = {.host = texels.bytes};
    CUresult r;

    if (!texels.bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for level %u of a texture", level->number);
    if (direction == TO_CUDA) {
        r = ct_gl_image_move(gl, level->image, level->number, CT_GL_READ, texels);
        r = r == CUDA_SUCCESS ? copy_level(stream, level, direction, &host) : r;
    } else {
        r = copy_level(stream, level, direction, &host);
        r = r == CUDA_SUCCESS ? ct_gl_image_move(gl, level->image, level->number, CT_GL_WRITE, texels) : r;
    }
    free(texels.bytes);
    return r;
}

/* Through `offset` of the shared memory. */
static CUresult move_level_in_device(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_resource *resource,
                                     const struct level *level, uint64_t offset, enum direction direction)
{
    const struct ct_gl_texels texels = {resource->shared.buffer, (char *)(uintptr_t)(resource->shared.offset + offset)};
    const unsigned uses = ct_address_uses_begin();
    struct ct_place place;
    CUresult r = ct_place_find(CT_POINTER_DEVICE, resource->address + offset, level_bytes(level), &place);

    if (r == CUDA_SUCCESS && direction == TO_CUDA) {
        r = ct_gl_image_move(gl, level->image, level->number, CT_GL_READ, texels);
        gl->Finish();
        r = r == CUDA_SUCCESS ? copy_level(stream, level, direction, &place) : r;
    } else if (r == CUDA_SUCCESS) {
        r = copy_level(stream, level, direction, &place);
        r = r == CUDA_SUCCESS ? ct_stream_synchronize(stream) : r;
        r = r == CUDA_SUCCESS ? ct_gl_image_move(gl, level->image, level->number, CT_GL_WRITE, texels) : r;
        gl->Finish();
    }
    ct_address_uses_end(uses);
    return r;
}

static CUresult move_image(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_resource *resource,
                           enum direction direction)
{
    struct ct_array_group *group;
    uint64_t offset = 0;
    CUresult r = ct_array_group_lookup(resource->array, &group);

    if (r != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < group->n_levels && r == CUDA_SUCCESS; i++) {
        const struct level level = {&resource->image, &group->levels[i], i};

        r = resource->shared.buffer ? move_level_in_device(gl, stream, resource, &level, offset, direction)
                                    : move_level(gl, stream, &level, direction);
        offset += level_room(level_bytes(&level));
    }
    ct_array_group_release(group);
    return r;
}

static bool is_same(const struct ct_gl_image *a, const struct ct_gl_image *b)
{
    return a->width == b->width && a->height == b->height && a->depth == b->depth && a->levels == b->levels &&
           a->format.format == b->format.format && a->format.channels == b->format.channels;
}

/* UNKNOWN: the object of OpenGL was deleted, or given other memory. */
static CUresult check_object(const struct ct_gl *gl, const struct ct_graphics_resource *resource)
{
    struct ct_gl_image image;
    uint64_t bytes;

    if (resource->is_image
            ? ct_gl_image_init(gl, resource->name, resource->image.target, &image) == CUDA_SUCCESS && is_same(&image, &resource->image)
            : ct_gl_buffer_size(gl, resource->name, &bytes) == CUDA_SUCCESS && bytes == resource->size_bytes)
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_UNKNOWN, "object %u of OpenGL is not in the current context, or has changed since it was registered",
                   resource->name);
}

static CUresult move(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_resource *resource,
                     enum direction direction)
{
    const unsigned skip = direction == TO_CUDA ? CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD : CU_GRAPHICS_MAP_RESOURCE_FLAGS_READ_ONLY;
    CUresult r = check_object(gl, resource);

    if (r != CUDA_SUCCESS || resource->flags & skip)
        return r;
    return resource->is_image ? move_image(gl, stream, resource, direction) : move_buffer(gl, stream, resource, direction);
}

/* ---- mapping ---- */

/* The resources of a call, all of which are referenced. */
struct batch {
    unsigned count;
    struct ct_graphics_resource **resources;
};

static void batch_finish(struct batch *batch)
{
    for (unsigned i = 0; i < batch->count; i++)
        ct_graphics_release(batch->resources[i]);
    free(batch->resources);
}

static CUresult batch_add(struct batch *batch, const struct ct_stream *stream, CUgraphicsResource handle)
{
    struct ct_graphics_resource *resource;
    CUresult r = ct_graphics_lookup(handle, &resource);

    if (r != CUDA_SUCCESS)
        return r;
    batch->resources[batch->count++] = resource;
    if (resource->context != stream->context)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "a graphics resource belongs to another context than the stream");
    for (unsigned i = 0; i + 1 < batch->count; i++)
        if (batch->resources[i] == resource)
            return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is in the list twice", (void *)handle);
    return CUDA_SUCCESS;
}

static CUresult batch_init(struct batch *batch, const struct ct_stream *stream, const CUgraphicsResource *handles, unsigned count)
{
    CUresult r = CUDA_SUCCESS;

    *batch = (struct batch){0};
    if (!(batch->resources = calloc(count, sizeof *batch->resources)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of %u graphics resources", count);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = batch_add(batch, stream, handles[i]);
    if (r != CUDA_SUCCESS)
        batch_finish(batch);
    return r;
}

CUresult ct_graphics_check(const struct ct_stream *stream, const CUgraphicsResource *handles, unsigned count)
{
    struct batch batch;
    CUresult r = batch_init(&batch, stream, handles, count);

    if (r == CUDA_SUCCESS)
        batch_finish(&batch);
    return r;
}

static void put_first(const struct batch *batch, unsigned count, enum state state)
{
    for (unsigned i = 0; i < count; i++)
        put(batch->resources[i], state);
}

/* Makes all resources BUSY; on failure none. */
static CUresult take_all(const struct batch *batch, enum state from)
{
    for (unsigned i = 0; i < batch->count; i++)
        if (!take(batch->resources[i], from, BUSY)) {
            put_first(batch, i, from);
            return from == FREE ? ct_fail(CUDA_ERROR_ALREADY_MAPPED, "object %u of OpenGL is mapped", batch->resources[i]->name)
                                : ct_fail(CUDA_ERROR_NOT_MAPPED, "object %u of OpenGL is not mapped", batch->resources[i]->name);
        }
    return CUDA_SUCCESS;
}

static CUresult move_all(const struct batch *batch, struct ct_stream *stream, enum direction direction)
{
    struct ct_gl gl;
    CUresult r = ct_gl_enter(CUDA_ERROR_UNKNOWN, &gl);

    for (unsigned i = 0; i < batch->count && r == CUDA_SUCCESS; i++)
        r = move(&gl, stream, batch->resources[i], direction);
    return r;
}

static CUresult change(struct ct_stream *stream, const CUgraphicsResource *handles, unsigned count, enum state from, enum state to)
{
    struct batch batch;
    CUresult r = batch_init(&batch, stream, handles, count);

    if (r != CUDA_SUCCESS)
        return r;
    if ((r = take_all(&batch, from)) == CUDA_SUCCESS) {
        r = move_all(&batch, stream, to == MAPPED ? TO_CUDA : TO_GL);
        put_first(&batch, batch.count, r == CUDA_SUCCESS ? to : from);
    }
    batch_finish(&batch);
    return r;
}

CUresult ct_graphics_map(struct ct_stream *stream, const CUgraphicsResource *handles, unsigned count)
{
    return change(stream, handles, count, FREE, MAPPED);
}

/* Also without a copy, the work of the stream ends before that of OpenGL begins. */
CUresult ct_graphics_unmap(struct ct_stream *stream, const CUgraphicsResource *handles, unsigned count)
{
    CUresult r = ct_stream_synchronize(stream);

    return r == CUDA_SUCCESS ? change(stream, handles, count, MAPPED, FREE) : r;
}

/* ---- one resource ---- */

CUgraphicsResource ct_graphics_handle(const struct ct_graphics_resource *resource)
{
    return resource->object.handle;
}

CUresult ct_graphics_set_map_flags(struct ct_graphics_resource *resource, unsigned flags)
{
    CUresult r = check_flags(flags, 0);

    if (r != CUDA_SUCCESS)
        return r;
    if (!take(resource, FREE, BUSY))
        return ct_fail(CUDA_ERROR_ALREADY_MAPPED, "object %u of OpenGL is mapped", resource->name);
    resource->flags = flags;
    put(resource, FREE);
    return CUDA_SUCCESS;
}

CUresult ct_graphics_unregister(struct ct_graphics_resource *resource)
{
    struct ct_gl gl;
    CUresult r;

    if (!take(resource, FREE, GONE))
        return ct_fail(CUDA_ERROR_UNKNOWN, "object %u of OpenGL is mapped", resource->name);
    r = ct_object_unpublish(&resource->object);
    if (resource->shared.buffer && ct_gl_enter(CUDA_ERROR_UNKNOWN, &gl) == CUDA_SUCCESS && gl.context == resource->gl_context)
        ct_gl_shared_finish(&gl, &resource->shared); /* elsewhere its names may be others'; then it goes with its context */
    drop_memory(resource);
    return r;
}

CUresult ct_graphics_pointer(struct ct_graphics_resource *resource, uint64_t *out_address, uint64_t *out_bytes)
{
    if (resource->is_image)
        return ct_fail(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "image %u of OpenGL is not a buffer", resource->name);
    if (!is_mapped(resource))
        return ct_fail(CUDA_ERROR_NOT_MAPPED, "buffer %u of OpenGL is not mapped", resource->name);
    *out_address = resource->address;
    *out_bytes = resource->size_bytes;
    return CUDA_SUCCESS;
}

CUresult ct_graphics_mipmapped_array(struct ct_graphics_resource *resource, CUmipmappedArray *out)
{
    if (!resource->is_image)
        return ct_fail(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "buffer %u of OpenGL is not an image", resource->name);
    if (!is_mapped(resource))
        return ct_fail(CUDA_ERROR_NOT_MAPPED, "image %u of OpenGL is not mapped", resource->name);
    *out = resource->array;
    return CUDA_SUCCESS;
}

CUresult ct_graphics_array(struct ct_graphics_resource *resource, unsigned layer, unsigned level, CUarray *out)
{
    CUmipmappedArray array;
    CUresult r = ct_graphics_mipmapped_array(resource, &array);
    const bool is_layered = resource->image.target == GL_TEXTURE_2D_ARRAY || resource->image.target == GL_TEXTURE_CUBE_MAP;

    if (r != CUDA_SUCCESS)
        return r;
    if (is_layered)
        return ct_mipmapped_array_layer(array, level, layer, out);
    if (layer != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "layer %u of an image without layers", layer);
    return ct_mipmapped_array_level(array, level, out);
}

void ct_graphics_destroy_all(const struct ct_context *context)
{
    uint32_t cursor = 0;
    struct ct_object *object;

    while ((object = ct_object_next_or_null(CT_OBJECT_GRAPHICS_RESOURCE, &cursor))) {
        if (((struct ct_graphics_resource *)object)->context == context)
            (void)ct_object_unpublish(object);
        ct_object_release(object);
    }
}
