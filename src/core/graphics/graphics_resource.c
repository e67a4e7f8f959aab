/* SPDX-License-Identifier: Apache-2.0 */
/*   FREE ──map──> BUSY ──> MAPPED ──unmap──> BUSY ──> FREE ──unregister──> GONE
 *
 * The thread that makes a resource BUSY owns it until it stores the next state; others treat a BUSY resource as being in the state that it leaves. A
 * resource that fails to be mapped or unmapped returns to the state from before. */
#include "graphics_resource.h"

#include "core/array/array_layers.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "gl_buffer.h"
#include "gl_names.h"
#include "graphics_contents.h"

#include <stdlib.h>

#define CT_CHANNEL "graphics"
#define ALL_MAP_FLAGS (CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY | CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD)
#define ALL_IMAGE_FLAGS (CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST | CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER)

enum state { FREE, BUSY, MAPPED, GONE };

struct ct_graphics_resource {
    struct ct_object object;
    struct ct_context *context; /* a reference, which keeps the struct alive */
    void *gl_context;           /* in which it was registered; only for comparison */
    atomic_int state;           /* enum state; acquire and release, since its owner changes the members below */
    enum ct_graphics_kind kind;
    unsigned flags; /* CU_GRAPHICS_MAP_RESOURCE_FLAGS_* */
    struct ct_graphics_contents contents;
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

static CUresult make(struct ct_context *context, const struct ct_gl *gl, unsigned flags, struct ct_graphics_resource **out)
{
    struct ct_graphics_resource *resource = calloc(1, sizeof *resource);

    if (!resource)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a graphics resource");
    ct_object_init(&resource->object, CT_OBJECT_GRAPHICS_RESOURCE, free_resource);
    ct_object_retain(&context->object);
    resource->context = context;
    resource->gl_context = gl->context;
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

        if (other->gl_context == gl->context && other->contents.name == name && other->contents.is_image == is_image &&
            (is_mapped(other) || (kind == CT_GRAPHICS_BY_NAME && other->kind == kind)))
            r = ct_fail(CUDA_ERROR_ALREADY_MAPPED, "object %u of OpenGL is mapped, or registered", name);
        ct_object_release(object);
    }
    return r;
}

/* Publishes a resource that is complete, or discards it. */
static CUresult finish_registration(const struct ct_gl *gl, struct ct_graphics_resource *resource, CUresult r, CUgraphicsResource *out)
{
    if (r == CUDA_SUCCESS)
        r = ct_object_publish(&resource->object);
    if (r == CUDA_SUCCESS) {
        *out = resource->object.handle;
    } else {
        ct_graphics_contents_finish(&resource->contents, gl);
    }
    ct_object_release(&resource->object);
    return r;
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
        (r = make(context, &gl, flags, &resource)) != CUDA_SUCCESS)
        return r;
    resource->kind = kind;
    r = ct_graphics_contents_init_buffer(&resource->contents, &gl, context, buffer, bytes);
    return finish_registration(&gl, resource, r, out);
}

CUresult ct_graphics_register_image(struct ct_context *context, unsigned image, unsigned target, unsigned flags, CUgraphicsResource *out)
{
    struct ct_graphics_resource *resource;
    struct ct_gl_image found;
    struct ct_gl gl;
    CUresult r = check_flags(flags, ALL_IMAGE_FLAGS);

    if (r != CUDA_SUCCESS || (r = ct_gl_enter(CUDA_ERROR_OPERATING_SYSTEM, &gl)) != CUDA_SUCCESS ||
        (r = ct_gl_image_init(&gl, image, target, &found)) != CUDA_SUCCESS ||
        (r = check_unused(&gl, image, true, CT_GRAPHICS_BY_HANDLE)) != CUDA_SUCCESS ||
        (r = make(context, &gl, flags, &resource)) != CUDA_SUCCESS)
        return r;
    r = ct_graphics_contents_init_image(&resource->contents, &gl, context, image, &found, flags);
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

        if (resource->kind == CT_GRAPHICS_BY_NAME && resource->contents.name == buffer && resource->context == context) {
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

/* ---- mapping ---- */

void ct_graphics_batch_finish(struct ct_graphics_batch *batch)
{
    for (unsigned i = 0; i < batch->count; i++)
        ct_graphics_release(batch->resources[i]);
    free(batch->resources);
}

static CUresult batch_add(struct ct_graphics_batch *batch, CUgraphicsResource handle)
{
    struct ct_graphics_resource *resource;
    CUresult r = ct_graphics_lookup(handle, &resource);

    if (r != CUDA_SUCCESS)
        return r;
    batch->resources[batch->count++] = resource;
    if (resource->context != batch->stream->context)
        return ct_fail(CUDA_ERROR_INVALID_CONTEXT, "a graphics resource belongs to another context than the stream");
    for (unsigned i = 0; i + 1 < batch->count; i++)
        if (batch->resources[i] == resource)
            return ct_fail(CUDA_ERROR_INVALID_HANDLE, "%p is in the list twice", (void *)handle);
    return CUDA_SUCCESS;
}

CUresult ct_graphics_batch_init(struct ct_graphics_batch *batch, struct ct_stream *stream, const CUgraphicsResource *handles,
                                unsigned count)
{
    CUresult r = CUDA_SUCCESS;

    *batch = (struct ct_graphics_batch){.stream = stream, .resources = calloc(count ? count : 1, sizeof *batch->resources)};
    if (!batch->resources)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a list of %u graphics resources", count);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = batch_add(batch, handles[i]);
    if (r != CUDA_SUCCESS)
        ct_graphics_batch_finish(batch);
    return r;
}

static void put_first(const struct ct_graphics_batch *batch, unsigned count, enum state state)
{
    for (unsigned i = 0; i < count; i++)
        put(batch->resources[i], state);
}

/* Makes all resources BUSY; on failure none. */
static CUresult take_all(const struct ct_graphics_batch *batch, enum state from)
{
    for (unsigned i = 0; i < batch->count; i++)
        if (!take(batch->resources[i], from, BUSY)) {
            put_first(batch, i, from);
            return from == FREE ? ct_fail(CUDA_ERROR_ALREADY_MAPPED, "object %u of OpenGL is mapped", batch->resources[i]->contents.name)
                                : ct_fail(CUDA_ERROR_NOT_MAPPED, "object %u of OpenGL is not mapped", batch->resources[i]->contents.name);
        }
    return CUDA_SUCCESS;
}

/* The contents of a resource whose flags contain `without` are not copied. */
static CUresult move_all(const struct ct_graphics_batch *batch, enum ct_graphics_direction direction, unsigned without)
{
    struct ct_gl gl;
    CUresult r = ct_gl_enter(CUDA_ERROR_UNKNOWN, &gl);

    for (unsigned i = 0; i < batch->count && r == CUDA_SUCCESS; i++) {
        const struct ct_graphics_resource *resource = batch->resources[i];

        r = ct_graphics_contents_move(&resource->contents, &gl, batch->stream, resource->flags & without ? CT_GRAPHICS_NOWHERE : direction);
    }
    return r;
}

CUresult ct_graphics_map(const struct ct_graphics_batch *batch)
{
    CUresult r = take_all(batch, FREE);

    if (r != CUDA_SUCCESS)
        return r;
    r = move_all(batch, CT_GRAPHICS_TO_CUDA, CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD);
    put_first(batch, batch->count, r == CUDA_SUCCESS ? MAPPED : FREE);
    return r;
}

CUresult ct_graphics_unmap(const struct ct_graphics_batch *batch)
{
    CUresult r = ct_stream_synchronize(batch->stream); /* also without a copy, the work of the stream ends before that of OpenGL begins */

    if (r != CUDA_SUCCESS || (r = take_all(batch, MAPPED)) != CUDA_SUCCESS)
        return r;
    r = move_all(batch, CT_GRAPHICS_TO_GL, CU_GRAPHICS_MAP_RESOURCE_FLAGS_READ_ONLY);
    put_first(batch, batch->count, r == CUDA_SUCCESS ? FREE : MAPPED);
    return r;
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
        return ct_fail(CUDA_ERROR_ALREADY_MAPPED, "object %u of OpenGL is mapped", resource->contents.name);
    resource->flags = flags;
    put(resource, FREE);
    return CUDA_SUCCESS;
}

CUresult ct_graphics_unregister(struct ct_graphics_resource *resource)
{
    struct ct_gl gl;
    bool is_current;
    CUresult r;

    if (!take(resource, FREE, GONE))
        return ct_fail(CUDA_ERROR_UNKNOWN, "object %u of OpenGL is mapped", resource->contents.name);
    r = ct_object_unpublish(&resource->object);
    is_current =
        resource->contents.shared.buffer && ct_gl_enter(CUDA_ERROR_UNKNOWN, &gl) == CUDA_SUCCESS && gl.context == resource->gl_context;
    ct_graphics_contents_finish(&resource->contents,
                                is_current ? &gl : NULL); /* in another context its names may be those of other objects */
    return r;
}

CUresult ct_graphics_pointer(struct ct_graphics_resource *resource, uint64_t *out_address, uint64_t *out_bytes)
{
    if (resource->contents.is_image)
        return ct_fail(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "image %u of OpenGL is not a buffer", resource->contents.name);
    if (!is_mapped(resource))
        return ct_fail(CUDA_ERROR_NOT_MAPPED, "buffer %u of OpenGL is not mapped", resource->contents.name);
    *out_address = resource->contents.address;
    *out_bytes = resource->contents.size_bytes;
    return CUDA_SUCCESS;
}

CUresult ct_graphics_mipmapped_array(struct ct_graphics_resource *resource, CUmipmappedArray *out)
{
    if (!resource->contents.is_image)
        return ct_fail(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "buffer %u of OpenGL is not an image", resource->contents.name);
    if (!is_mapped(resource))
        return ct_fail(CUDA_ERROR_NOT_MAPPED, "image %u of OpenGL is not mapped", resource->contents.name);
    *out = resource->contents.array;
    return CUDA_SUCCESS;
}

CUresult ct_graphics_array(struct ct_graphics_resource *resource, unsigned layer, unsigned level, CUarray *out)
{
    CUmipmappedArray array;
    CUresult r = ct_graphics_mipmapped_array(resource, &array);
    const bool is_layered =
        resource->contents.image.target == GL_TEXTURE_2D_ARRAY || resource->contents.image.target == GL_TEXTURE_CUBE_MAP;

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
