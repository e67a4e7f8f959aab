/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of OpenGL have to be called in the application's thread, during the call. With shared memory (gl_shared.h) OpenGL copies a buffer
 * to and from CUDA's memory itself, and texels to and from a staging area in it. Without, the contents go through memory of the host: to the device by a
 * copy in stream order, which reads that memory before the call returns, and back by a copy for which the call waits. */
#include "graphics_contents.h"

#include "core/array/array_layers.h"
#include "core/backing/address_uses.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/copy/copy.h"
#include "gl_buffer.h"
#include "gl_names.h"

#include <stdlib.h>

#define CT_CHANNEL "graphics"
#define ALIGNMENT ((uint64_t)512) /* of the memory of buffers */

/* ---- creation ---- */

static void log_copies(const struct ct_context *context)
{
    if (!atomic_exchange_explicit(&ct_process.graphics_logged, true, memory_order_relaxed)) /* orders nothing */
        ct_log(CT_LOG_WARN, "%s does not share memory with OpenGL: buffers and textures are copied whenever they are mapped and unmapped",
               context->device->info.name);
}

/* Memory of MODULE is not freed by cuMemFree. */
static CUresult allocate(struct ct_graphics_contents *contents, uint64_t bytes)
{
    contents->size_bytes = bytes;
    return ct_memory_alloc(contents->context, bytes, ALIGNMENT, CT_RANGE_MODULE, &contents->address);
}

static void free_memory(struct ct_graphics_contents *contents)
{
    if (contents->address)
        (void)ct_memory_free(contents->context, contents->address, CT_RANGE_MODULE);
    contents->address = 0;
}

static bool share(const struct ct_gl *gl, struct ct_graphics_contents *contents)
{
    return ct_gl_shared_init(gl, contents->context, contents->address, contents->size_bytes, &contents->shared) == CUDA_SUCCESS;
}

CUresult ct_graphics_contents_init_buffer(struct ct_graphics_contents *contents, const struct ct_gl *gl, struct ct_context *context,
                                          unsigned name, uint64_t bytes)
{
    CUresult r;

    *contents = (struct ct_graphics_contents){.context = context, .name = name};
    r = allocate(contents, bytes);
    if (r == CUDA_SUCCESS && !share(gl, contents))
        log_copies(context);
    return r;
}

/* The bytes of a level in shared memory, with those before the next one. */
static uint64_t level_room(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/* Makes memory through which the device copies the texels, if it can be shared. */
static void share_texels(const struct ct_gl *gl, struct ct_graphics_contents *contents)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < contents->image.levels; i++) {
        const struct ct_gl_extent extent = ct_gl_image_extent(&contents->image, i);

        bytes += level_room((uint64_t)extent.width * extent.height * extent.slices * contents->image.format.texel_bytes);
    }
    if (contents->context->device->info.memory_fd && allocate(contents, bytes) == CUDA_SUCCESS && share(gl, contents))
        return;
    free_memory(contents);
    log_copies(contents->context);
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

CUresult ct_graphics_contents_init_image(struct ct_graphics_contents *contents, const struct ct_gl *gl, struct ct_context *context,
                                         unsigned name, const struct ct_gl_image *image, unsigned flags)
{
    const CUDA_ARRAY3D_DESCRIPTOR desc = array_descriptor(image, flags);
    CUresult r;

    *contents = (struct ct_graphics_contents){.context = context, .name = name, .is_image = true, .image = *image};
    r = ct_mipmapped_array_create(context, &desc, image->levels, &contents->array);
    if (r != CUDA_SUCCESS)
        return r;
    ct_mipmapped_array_keep(contents->array);
    share_texels(gl, contents);
    return CUDA_SUCCESS;
}

void ct_graphics_contents_finish(struct ct_graphics_contents *contents, const struct ct_gl *gl_or_null)
{
    if (gl_or_null)
        ct_gl_shared_finish(gl_or_null, &contents->shared);
    if (contents->array)
        ct_mipmapped_array_drop(contents->array);
    free_memory(contents);
    contents->array = NULL;
}

/* ---- buffers ---- */

/* Copies between the memory of CUDA, in plan->dst with its pitches, and `other`, in the order of the stream. The call waits for copies to
 * the host. */
static CUresult copy(struct ct_stream *stream, const struct ct_copy *plan, enum ct_graphics_direction direction,
                     const struct ct_place *other)
{
    struct ct_copy_command command = {.mode = direction == CT_GRAPHICS_TO_CUDA ? CT_COPY_ASYNC : CT_COPY_SYNC, .copy = *plan};
    struct ct_copy *copy = &command.copy;

    if (direction == CT_GRAPHICS_TO_CUDA) {
        copy->src = *other;
    } else {
        copy->src = plan->dst;
        copy->src_pitch = plan->dst_pitch;
        copy->src_slice = plan->dst_slice;
        copy->dst = *other;
        copy->dst_pitch = plan->src_pitch;
        copy->dst_slice = plan->src_slice;
    }
    return ct_copy_execute(stream, &command);
}

static CUresult move_bytes(const struct ct_gl *gl, const struct ct_graphics_contents *contents, enum ct_graphics_direction direction,
                           void *bytes)
{
    return direction == CT_GRAPHICS_TO_CUDA ? ct_gl_buffer_read(gl, contents->name, bytes, contents->size_bytes)
                                            : ct_gl_buffer_write(gl, contents->name, bytes, contents->size_bytes);
}

/* Through memory of the host. */
static CUresult move_by_copy(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_contents *contents,
                             const struct ct_place *place, enum ct_graphics_direction direction)
{
    struct ct_copy plan = {.dst = *place, .row_bytes = contents->size_bytes, .rows = 1, .slices = 1};
    const struct ct_place host = {.host = malloc(contents->size_bytes)};
    CUresult r;

    if (!host.host)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for %llu bytes of a buffer", (unsigned long long)contents->size_bytes);
    if (direction == CT_GRAPHICS_TO_CUDA) {
        r = move_bytes(gl, contents, direction, host.host);
        r = r == CUDA_SUCCESS ? copy(stream, &plan, direction, &host) : r;
    } else {
        r = copy(stream, &plan, direction, &host);
        r = r == CUDA_SUCCESS ? move_bytes(gl, contents, direction, host.host) : r;
    }
    free(host.host);
    return r;
}

/* Where the host works on the memory itself, OpenGL reads and writes it when the stream's work is complete. */
static CUresult move_at_place(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_contents *contents,
                              const struct ct_place *place, enum ct_graphics_direction direction)
{
    CUresult r;

    if (!place->host || !ct_copy_host_is_fast(stream->context))
        return move_by_copy(gl, stream, contents, place, direction);
    r = ct_stream_drain(stream);
    return r == CUDA_SUCCESS ? move_bytes(gl, contents, direction, place->host) : r;
}

static CUresult move_buffer(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_contents *contents,
                            enum ct_graphics_direction direction)
{
    struct ct_place place;
    unsigned uses;
    CUresult r;

    if (contents->shared.buffer)
        return direction == CT_GRAPHICS_TO_CUDA ? ct_gl_shared_load(gl, &contents->shared, contents->name, contents->size_bytes)
                                                : ct_gl_shared_store(gl, &contents->shared, contents->name, contents->size_bytes);
    uses = ct_address_uses_begin();
    r = ct_place_find(CT_POINTER_DEVICE, contents->address, contents->size_bytes, &place);
    if (r == CUDA_SUCCESS)
        r = move_at_place(gl, stream, contents, &place, direction);
    ct_address_uses_end(uses);
    return r;
}

/* ---- images ---- */

/* A level of an image that is copied. */
struct level {
    const struct ct_gl_image *image;
    const struct ct_array *array;
    unsigned number;
};

/* OpenGL's rows have no padding. */
static uint64_t row_bytes(const struct level *level)
{
    return level->array->desc.Width * level->array->texels.texel_bytes;
}

static uint64_t row_count(const struct level *level)
{
    return level->array->desc.Height ? level->array->desc.Height : 1;
}

static uint64_t level_bytes(const struct level *level)
{
    return row_bytes(level) * row_count(level) * level->array->slices;
}

static CUresult copy_level(struct ct_stream *stream, const struct level *level, enum ct_graphics_direction direction,
                           const struct ct_place *other)
{
    const struct ct_array_box box = {.width_bytes = row_bytes(level), .height = row_count(level), .depth = level->array->slices};
    struct ct_copy plan = {.row_bytes = box.width_bytes, .rows = box.height, .slices = box.depth};
    CUresult r = ct_array_locate(level->array, &box, &plan.dst, &plan.dst_pitch, &plan.dst_slice);

    plan.src_pitch = plan.row_bytes;
    plan.src_slice = plan.row_bytes * plan.rows;
    return r == CUDA_SUCCESS ? copy(stream, &plan, direction, other) : r;
}

/* Through memory of the host. */
static CUresult move_level(const struct ct_gl *gl, struct ct_stream *stream, const struct level *level,
                           enum ct_graphics_direction direction)
{
    const struct ct_gl_texels texels = {.bytes = malloc(level_bytes(level))};
    const struct ct_place host = {.host = texels.bytes};
    CUresult r;

    if (!texels.bytes)
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for level %u of a texture", level->number);
    if (direction == CT_GRAPHICS_TO_CUDA) {
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
static CUresult move_level_in_device(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_contents *contents,
                                     const struct level *level, uint64_t offset, enum ct_graphics_direction direction)
{
    const struct ct_gl_texels texels = {contents->shared.buffer, (char *)(uintptr_t)(contents->shared.offset + offset)};
    const unsigned uses = ct_address_uses_begin();
    struct ct_place place;
    CUresult r = ct_place_find(CT_POINTER_DEVICE, contents->address + offset, level_bytes(level), &place);

    if (r == CUDA_SUCCESS && direction == CT_GRAPHICS_TO_CUDA) {
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

static CUresult move_image(const struct ct_gl *gl, struct ct_stream *stream, const struct ct_graphics_contents *contents,
                           enum ct_graphics_direction direction)
{
    struct ct_array_group *group;
    uint64_t offset = 0;
    CUresult r = ct_array_group_lookup(contents->array, &group);

    if (r != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < group->n_levels && r == CUDA_SUCCESS; i++) {
        const struct level level = {&contents->image, &group->levels[i], i};

        r = contents->shared.buffer ? move_level_in_device(gl, stream, contents, &level, offset, direction)
                                    : move_level(gl, stream, &level, direction);
        offset += level_room(level_bytes(&level));
    }
    ct_array_group_release(group);
    return r;
}

/* ---- all ---- */

static bool is_same(const struct ct_gl_image *a, const struct ct_gl_image *b)
{
    return a->width == b->width && a->height == b->height && a->depth == b->depth && a->levels == b->levels &&
           a->format.format == b->format.format && a->format.channels == b->format.channels;
}

/* UNKNOWN: the object of OpenGL was deleted, or given other memory. */
static CUresult check_object(const struct ct_gl *gl, const struct ct_graphics_contents *contents)
{
    struct ct_gl_image image;
    uint64_t bytes;

    if (contents->is_image
            ? ct_gl_image_init(gl, contents->name, contents->image.target, &image) == CUDA_SUCCESS && is_same(&image, &contents->image)
            : ct_gl_buffer_size(gl, contents->name, &bytes) == CUDA_SUCCESS && bytes == contents->size_bytes)
        return CUDA_SUCCESS;
    return ct_fail(CUDA_ERROR_UNKNOWN, "object %u of OpenGL is not in the current context, or has changed since it was registered",
                   contents->name);
}

CUresult ct_graphics_contents_move(const struct ct_graphics_contents *contents, const struct ct_gl *gl, struct ct_stream *stream,
                                   enum ct_graphics_direction direction)
{
    CUresult r = check_object(gl, contents);

    if (r != CUDA_SUCCESS || direction == CT_GRAPHICS_NOWHERE)
        return r;
    return contents->is_image ? move_image(gl, stream, contents, direction) : move_buffer(gl, stream, contents, direction);
}
