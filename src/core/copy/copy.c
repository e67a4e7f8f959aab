/* SPDX-License-Identifier: Apache-2.0 */
/* Copies (Driver API: Memory Management; "API synchronization behavior"): gathers the facts of a copy and executes its plan (copy_plan.h).
 * Levels of images are copied in the same ways as memory: their texels count as bytes that the host can only access by copies. */
#include "copy.h"

#include "core/backing/address_uses.h"
#include "core/base/config.h"
#include "core/base/log.h"
#include "core/stream/stream_record.h"
#include "copy_devices.h"
#include "copy_kernel.h"
#include "copy_pieces.h"
#include "copy_record.h"
#include "place_changes.h"

#define CT_CHANNEL "copy"

/* ---- facts ---- */

static uint64_t span(const struct ct_copy *copy, uint64_t pitch, uint64_t slice)
{
    return (copy->slices - 1) * slice + (copy->rows - 1) * pitch + copy->row_bytes;
}

static bool is_image(const struct ct_place *place)
{
    return place->memory && place->memory->texels;
}

/* Merges rows that are adjacent on both sides into one row, except in images. */
static struct ct_copy simplified(const struct ct_copy *copy)
{
    struct ct_copy c = *copy;

    if (is_image(&c.dst) || is_image(&c.src))
        return c;
    if (c.rows == 1) { /* slices of one row each count as rows */
        c.rows = c.slices;
        c.dst_pitch = c.dst_slice;
        c.src_pitch = c.src_slice;
        c.slices = 1;
    }
    if (c.dst_pitch == c.row_bytes && c.src_pitch == c.row_bytes) {
        c.row_bytes *= c.rows;
        c.rows = 1;
    }
    if (c.rows == 1 && c.slices > 1 && c.row_bytes != copy->row_bytes)
        return simplified(&c);
    return c;
}

static bool overlaps(const struct ct_copy *copy)
{
    uint64_t dst_end = copy->dst.offset + span(copy, copy->dst_pitch, copy->dst_slice);
    uint64_t src_end = copy->src.offset + span(copy, copy->src_pitch, copy->src_slice);

    return copy->dst.memory == copy->src.memory && copy->dst.offset < src_end && copy->src.offset < dst_end;
}

/* Whether all offsets and pitches in plain memory are multiples of the image's texel size. */
static bool is_whole(const struct ct_copy *copy, const struct ct_texels *texels, uint64_t offset, uint64_t pitch, uint64_t slice)
{
    return !((offset | (copy->rows > 1 ? pitch : 0) | (copy->slices > 1 ? slice : 0)) & (texels->texel_bytes - 1));
}

/* Whether the memory satisfies the requirements of copies with images; the ring always does. */
static bool suits_images(const struct ct_copy *copy)
{
    const struct ct_texels *dst = copy->dst.memory->texels, *src = copy->src.memory->texels;

    if (dst && src)
        return ct_texels_match(dst, src);
    if (dst)
        return is_whole(copy, dst, copy->src.offset, copy->src_pitch, copy->src_slice);
    return !src || is_whole(copy, src, copy->dst.offset, copy->dst_pitch, copy->dst_slice);
}

static bool is_foreign(const struct ct_stream *stream, const struct ct_place *place)
{
    return place->memory && place->memory->device != stream->context->backend_device;
}

bool ct_copy_host_is_fast(const struct ct_context *context)
{
    const struct ct_device_info *info = &context->device->info;

    return info->host_visible_device_memory && info->kind == CT_DEVICE_CPU && ct_config()->copy_by_host;
}

static enum ct_copy_end end_of(const struct ct_place *place)
{
    if (!place->memory)
        return CT_END_PAGEABLE;
    return place->is_device ? CT_END_DEVICE : CT_END_HOST;
}

static struct ct_copy_facts facts_of(const struct ct_stream *stream, const struct ct_copy *copy, const struct ct_copy_command *command)
{
    struct ct_copy_facts facts = {
        .dst = end_of(&copy->dst),
        .src = end_of(&copy->src),
        .mode = command->mode,
        .source = command->source,
        .bytes = ct_copy_bytes(copy),
        .foreign = is_foreign(stream, &copy->dst) || is_foreign(stream, &copy->src),
        .host_reaches = copy->dst.host && copy->src.host,
        .host_is_fast = ct_copy_host_is_fast(stream->context),
        .synchronous = copy->dst.synchronous || copy->src.synchronous,
    };

    if (facts.foreign || !copy->dst.memory || !copy->src.memory)
        return facts;
    facts.queue_refuses = overlaps(copy) || !suits_images(copy);
    facts.by_kernel =
        !facts.queue_refuses && ct_copy_kernel_takes(stream->context->device, copy); /* may compile the kernel, so no lock is held */
    return facts;
}

/* ---- execution of a plan ---- */

static void copy_by_host(const struct ct_copy *copy)
{
    for (uint64_t slice = 0; slice < copy->slices; slice++)
        ct_copy_rows(copy->dst.host + slice * copy->dst_slice, copy->dst_pitch, copy->src.host + slice * copy->src_slice, copy->src_pitch,
                     copy->row_bytes, copy->rows);
}

/* Waits for the stream, then copies on the host. */
static CUresult run_by_host(struct ct_stream *stream, const struct ct_copy *copy)
{
    CUresult r = ct_stream_drain(stream);

    if (r == CUDA_SUCCESS)
        copy_by_host(copy);
    return r;
}

typedef CUresult record_function(struct ct_stream *stream, const struct ct_copy *copy);

static CUresult run_recorded(struct ct_stream *stream, const struct ct_copy *copy, const struct ct_copy_plan *plan, record_function *record)
{
    uint64_t point;
    CUresult r = ct_stream_begin(stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (plan->host_if_idle && ct_stream_is_idle_locked(stream)) {
        copy_by_host(copy);
        ct_stream_end(stream);
        return ct_context_check(stream->context, CUDA_SUCCESS);
    }
    r = record(stream, copy);
    point = ct_stream_point(stream);
    ct_stream_end(stream);
    if (r == CUDA_SUCCESS && plan->waits)
        return ct_stream_await(stream, point);
    return ct_context_check(stream->context, r);
}

static CUresult carry_out(struct ct_stream *stream, const struct ct_copy *copy, const struct ct_copy_plan *plan)
{
    switch (plan->method) {
    case CT_COPY_METHOD_BETWEEN_DEVICES:
        return ct_copy_between_devices(stream, copy, ct_copy_execute);
    case CT_COPY_METHOD_HOST:
        return run_by_host(stream, copy);
    case CT_COPY_METHOD_DOWNLOAD:
        return ct_copy_download(stream, copy);
    case CT_COPY_METHOD_UPLOAD:
        return run_recorded(stream, copy, plan, ct_copy_record_upload_locked);
    case CT_COPY_METHOD_UPLOAD_IN_ORDER:
        return run_recorded(stream, copy, plan, ct_copy_record_in_order_locked);
    case CT_COPY_METHOD_STAGED:
        return run_recorded(stream, copy, plan, ct_copy_record_staged_locked);
    case CT_COPY_METHOD_KERNEL:
        return run_recorded(stream, copy, plan, ct_copy_kernel_record_locked);
    case CT_COPY_METHOD_QUEUE:
        break;
    }
    return run_recorded(stream, copy, plan, ct_copy_record_direct_locked);
}

/* The copy to execute: the command's, or *changed. A source that must be read during the call is treated as pageable memory, if the host
 * can access it. */
static const struct ct_copy *prepare(const struct ct_copy_command *command, struct ct_copy *changed)
{
    const struct ct_copy *copy = &command->copy;
    const bool reads_now = command->source == CT_SOURCE_AT_CALL && !copy->src.is_device && copy->src.host;

    if (copy->rows == 1 && copy->slices == 1 && !reads_now)
        return copy;
    *changed = simplified(copy);
    if (reads_now)
        changed->src.memory = NULL;
    return changed;
}

static void note_written(struct ct_stream *stream, const struct ct_copy *copy)
{
    if (!ct_config()->check_written)
        return;
    for (uint64_t slice = 0; slice < copy->slices; slice++)
        for (uint64_t row = 0; row < copy->rows; row++) {
            const struct ct_place place = ct_place_moved(&copy->dst, slice * copy->dst_slice + row * copy->dst_pitch);

            ct_place_note_write(stream, &place, copy->row_bytes);
        }
}

CUresult ct_copy_execute(struct ct_stream *stream, const struct ct_copy_command *command)
{
    struct ct_copy changed;
    const struct ct_copy *copy = prepare(command, &changed);
    struct ct_copy_facts facts;
    struct ct_copy_plan plan;
    CUresult r = CUDA_SUCCESS;

    if (copy->row_bytes == 0)
        return CUDA_SUCCESS;
    if (copy->dst.read_only)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the destination of a copy is read-only");
    ct_context_note_access(stream->context, copy->dst.owner);
    ct_context_note_access(stream->context, copy->src.owner);
    note_written(stream, copy);
    facts = facts_of(stream, copy, command);
    plan = ct_copy_plan(&facts);
    if (plan.drains)
        r = ct_stream_drain(stream);
    r = r == CUDA_SUCCESS ? carry_out(stream, copy, &plan) : r;
    if (copy->dst.changes_or_null)
        ct_place_changes_note(copy->dst.changes_or_null, stream);
    return r;
}

bool ct_copy_is_direct(const struct ct_copy_command *command, struct ct_copy *out)
{
    *out = simplified(&command->copy);
    return out->row_bytes && !out->dst.read_only && !overlaps(out);
}

/* ---- construction ---- */

CUresult ct_copy_command_linear(enum ct_pointer_role dst_role, uint64_t dst, enum ct_pointer_role src_role, uint64_t src,
                                uint64_t size_bytes, enum ct_copy_mode mode, struct ct_copy_command *out)
{
    CUresult r = CUDA_SUCCESS;

    *out = (struct ct_copy_command){.copy = {.row_bytes = size_bytes, .rows = 1, .slices = 1}, .mode = mode};
    if (size_bytes == 0)
        return CUDA_SUCCESS;
    r = ct_place_find(dst_role, dst, size_bytes, &out->copy.dst);
    return r == CUDA_SUCCESS ? ct_place_find(src_role, src, size_bytes, &out->copy.src) : r;
}

CUresult ct_copy_to_device(struct ct_context *context, uint64_t dst, const void *src, uint64_t size_bytes)
{
    const unsigned uses = ct_address_uses_begin();
    struct ct_copy_command command;
    CUresult r =
        ct_copy_command_linear(CT_POINTER_DEVICE, dst, CT_POINTER_HOST, (uint64_t)(uintptr_t)src, size_bytes, CT_COPY_SYNC, &command);

    if (r == CUDA_SUCCESS)
        r = ct_copy_execute(context->legacy_stream, &command);
    ct_address_uses_end(uses);
    return r;
}
