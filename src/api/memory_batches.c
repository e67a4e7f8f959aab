/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: batches of copies. A batch as a whole is in stream order; the copies within it are unordered.
 * Every function: NOT_INITIALIZED; INVALID_CONTEXT and CONTEXT_IS_DESTROYED according to the current context; INVALID_HANDLE if the
 * handle is not that of a stream, and the error of a kernel that failed. INVALID_VALUE: the legacy default stream, an array that is
 * NULL, no copies, attributes that do not cover the copies, an invalid source access order or flags, and everything that cuMemcpyAsync
 * and cuMemcpy3DAsync refuse. All copies are validated before the first is recorded, so a batch that is refused has no effect. */
#include "entry_points.h"

#include "core/array/array.h"
#include "core/backing/address_uses.h"
#include "core/command/command.h"
#include "core/graph/capture_state.h"
#include "core/base/log.h"
#include "core/base/process.h"

#define CT_CHANNEL "copy"

#define NO_COPY SIZE_MAX /* as an index: the error does not belong to a particular copy */

/* A copy of a batch, by its index. */
struct item {
    struct ct_copy copy;
    CUmemcpySrcAccessOrder order;
    struct ct_array *dst_array, *src_array; /* referenced until the copy is recorded; or NULL */
    unsigned uses;                          /* of addresses, before those of this copy */
};

/* The common part of both kinds of batches. */
struct batch {
    size_t count;
    CUresult (*item)(const struct batch *batch, size_t index, struct item *out);
    const void *data;
};

static CUresult check_order(CUmemcpySrcAccessOrder order, unsigned flags)
{
    if (order != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
        order != CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "source access order %d does not exist", (int)order);
    if (flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) /* a hint without effect */
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown flags 0x%x of a copy", flags);
    return CUDA_SUCCESS;
}

static void release_item(struct item *item)
{
    ct_address_uses_end(item->uses);
    ct_array_release(item->dst_array);
    ct_array_release(item->src_array);
}

/* Releases are the caller's duty after success. */
static CUresult make_item(const struct batch *batch, size_t index, struct item *out)
{
    CUresult r;

    *out = (struct item){.uses = ct_address_uses_begin()};
    r = batch->item(batch, index, out);
    if (r == CUDA_SUCCESS && out->copy.dst.read_only)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "the destination of a copy is read-only");
    if (r != CUDA_SUCCESS)
        release_item(out);
    return r;
}

/* The order has been validated. */
static enum ct_copy_source source_of(CUmemcpySrcAccessOrder order)
{
    if (order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
        return CT_SOURCE_IN_ORDER;
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ? CT_SOURCE_AT_CALL : CT_SOURCE_DEFAULT;
}

static CUresult run_items(struct ct_stream *stream, const struct batch *batch, size_t *out_index)
{
    struct ct_command command = {.kind = CT_COMMAND_COPY};
    struct item item;
    CUresult r;

    for (size_t i = 0; i < batch->count; i++) {
        *out_index = i;
        if ((r = make_item(batch, i, &item)) != CUDA_SUCCESS)
            return r;
        release_item(&item);
    }
    for (size_t i = 0; i < batch->count; i++) {
        *out_index = i;
        if ((r = make_item(batch, i, &item)) != CUDA_SUCCESS)
            return r;
        command.copy = (struct ct_copy_command){.copy = item.copy, .mode = CT_COPY_ASYNC, .source = source_of(item.order)};
        r = ct_stream_enqueue(stream, &command);
        release_item(&item);
        if (r != CUDA_SUCCESS)
            return r;
    }
    return CUDA_SUCCESS;
}

/* `refusal` is the error of the batch as a whole; `*index_or_null` receives the index of the copy that failed. */
static CUresult run(const struct batch *batch, CUresult refusal, size_t *index_or_null, CUstream handle)
{
    struct ct_stream *stream;
    size_t index = NO_COPY;
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS && (!handle || handle == CU_STREAM_LEGACY)) /* even if no context is current, as with NVIDIA's driver */
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "batches are not allowed in the legacy default stream");
    if (r == CUDA_SUCCESS)
        r = ct_stream_lookup_uncaptured(handle, "a batch of copies", &stream);
    if (r == CUDA_SUCCESS) {
        r = refusal == CUDA_SUCCESS ? run_items(stream, batch, &index) : refusal;
        ct_stream_release(stream);
    }
    if (r != CUDA_SUCCESS && index_or_null)
        *index_or_null = index;
    return r;
}

/* ---- one dimension ---- */

struct linear_batch {
    const CUdeviceptr *dsts, *srcs;
    const size_t *sizes;
    const CUmemcpyAttributes *attributes;
    const size_t *starts; /* attributes[k] applies to the copies from starts[k] on */
    size_t n_attributes;
};

static CUresult linear_item(const struct batch *batch, size_t index, struct item *out)
{
    const struct linear_batch *b = batch->data;
    size_t below = 0, above = b->n_attributes;
    CUresult r;

    while (above - below > 1) { /* starts[below] <= index < starts[above] */
        size_t middle = below + (above - below) / 2;

        *(b->starts[middle] <= index ? &below : &above) = middle;
    }
    out->order = b->attributes[below].srcAccessOrder;
    if (b->sizes[index] == 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "copy %zu has 0 bytes", index);
    if ((r = check_order(out->order, b->attributes[below].flags)) != CUDA_SUCCESS)
        return r;
    out->copy = (struct ct_copy){.row_bytes = b->sizes[index], .rows = 1, .slices = 1};
    r = ct_place_find(CT_POINTER_UNIFIED, b->dsts[index], b->sizes[index], &out->copy.dst);
    return r == CUDA_SUCCESS ? ct_place_find(CT_POINTER_UNIFIED, b->srcs[index], b->sizes[index], &out->copy.src) : r;
}

static CUresult check_linear(const struct linear_batch *b, size_t count)
{
    if (!b->dsts || !b->srcs || !b->sizes || !b->attributes || !b->starts || count == 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an array is NULL, or the number of copies is %zu", count);
    if (b->n_attributes == 0 || b->n_attributes > count || b->starts[0] != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu attributes for %zu copies", b->n_attributes, count);
    for (size_t i = 1; i < b->n_attributes; i++)
        if (b->starts[i] <= b->starts[i - 1] || b->starts[i] >= count)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "attributes %zu apply from copy %zu of %zu on", i, b->starts[i], count);
    return CUDA_SUCCESS;
}

/* cuMemcpyBatchAsync, of CUDA 12.8. Makes `count` copies; attrs[k] applies to the copies from attrsIdxs[k] on. *failIdx, unless failIdx
 * is NULL, receives the index of the copy that failed, or SIZE_MAX if the error belongs to no particular copy. INVALID_VALUE: also a
 * copy of 0 bytes. */
CUresult CUDAAPI cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                                    size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
    const struct linear_batch linear = {dsts, srcs, sizes, attrs, attrsIdxs, numAttrs};

    return run(&(struct batch){count, linear_item, &linear}, check_linear(&linear, count), failIdx, hStream);
}

/* cuMemcpyBatchAsync_v2. The same without failIdx. */
CUresult CUDAAPI cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                                       size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
    return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL, hStream);
}

/* ---- three dimensions ---- */

/* One side of a copy, with the pitches of its rows and slices in bytes. */
struct side {
    struct ct_place place;
    uint64_t pitch, slice;
};

/* The units of extents, offsets and row lengths: elements of the array if one side is an array, otherwise bytes. */
struct units {
    const CUextent3D *extent;
    uint64_t element_bytes, width_bytes;
};

/* A row length or a layer height of 0 means that there are no gaps. */
static CUresult locate_pointer(const CUmemcpy3DOperand *operand, const struct units *units, struct side *out)
{
    const CUextent3D *extent = units->extent;
    uint64_t height = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent->height, span;
    uint64_t row = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : extent->width;
    CUresult r;

    if (row < extent->width || height < extent->height)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "rows of %llu and layers of %llu for a copy of %zu x %zu", (unsigned long long)row,
                       (unsigned long long)height, extent->width, extent->height);
    if (__builtin_mul_overflow(row, units->element_bytes, &out->pitch) || __builtin_mul_overflow(out->pitch, height, &out->slice))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the extent of a copy exceeds 64 bits");
    r = ct_copy_span(units->width_bytes, extent->height, out->pitch, extent->depth, out->slice, &span);
    return r == CUDA_SUCCESS ? ct_place_find(CT_POINTER_UNIFIED, operand->op.ptr.ptr, span, &out->place) : r;
}

static CUresult locate_array(const CUmemcpy3DOperand *operand, const struct ct_array *array, const struct units *units, struct side *out)
{
    const CUoffset3D *offset = &operand->op.array.offset;
    const CUextent3D *extent = units->extent;
    struct ct_array_box box = {0, offset->y, offset->z, units->width_bytes, extent->height, extent->depth};

    if (__builtin_mul_overflow(offset->x, units->element_bytes, &box.x_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an offset of %zu elements is too large", offset->x);
    return ct_array_locate(array, &box, &out->place, &out->pitch, &out->slice);
}

static CUresult locate(const CUmemcpy3DOperand *operand, const struct ct_array *array_or_null, const struct units *units, struct side *out)
{
    return array_or_null ? locate_array(operand, array_or_null, units, out) : locate_pointer(operand, units, out);
}

static CUresult look_up(const CUmemcpy3DOperand *operand, struct ct_array **out_or_null)
{
    switch (operand->type) {
    case CU_MEMCPY_OPERAND_TYPE_POINTER:
        return CUDA_SUCCESS;
    case CU_MEMCPY_OPERAND_TYPE_ARRAY:
        return ct_array_lookup(operand->op.array.array, out_or_null);
    case CU_MEMCPY_OPERAND_TYPE_MAX:
        break;
    }
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "operand type %d does not exist", (int)operand->type);
}

static CUresult find_units(const struct item *item, const CUextent3D *extent, struct units *out)
{
    const struct ct_array *dst = item->dst_array, *src = item->src_array;

    out->extent = extent;
    out->element_bytes = dst ? dst->texels.texel_bytes : src ? src->texels.texel_bytes : 1;
    if (dst && src && dst->texels.texel_bytes != src->texels.texel_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "the elements of the arrays have different sizes, %u and %u bytes",
                       dst->texels.texel_bytes, src->texels.texel_bytes);
    if (extent->width == 0 || extent->height == 0 || extent->depth == 0 ||
        __builtin_mul_overflow(extent->width, out->element_bytes, &out->width_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "invalid extent %zu x %zu x %zu of a copy", extent->width, extent->height, extent->depth);
    return CUDA_SUCCESS;
}

static CUresult box_item(const struct batch *batch, size_t index, struct item *out)
{
    const CUDA_MEMCPY3D_BATCH_OP *op = (const CUDA_MEMCPY3D_BATCH_OP *)batch->data + index;
    struct side dst, src;
    struct units units;
    CUresult r;

    if ((r = check_order(op->srcAccessOrder, op->flags)) != CUDA_SUCCESS || (r = look_up(&op->dst, &out->dst_array)) != CUDA_SUCCESS ||
        (r = look_up(&op->src, &out->src_array)) != CUDA_SUCCESS || (r = find_units(out, &op->extent, &units)) != CUDA_SUCCESS ||
        (r = locate(&op->dst, out->dst_array, &units, &dst)) != CUDA_SUCCESS ||
        (r = locate(&op->src, out->src_array, &units, &src)) != CUDA_SUCCESS)
        return r;
    out->order = op->srcAccessOrder;
    out->copy = (struct ct_copy){.dst = dst.place,
                                 .src = src.place,
                                 .row_bytes = units.width_bytes,
                                 .rows = op->extent.height,
                                 .slices = op->extent.depth,
                                 .dst_pitch = dst.pitch,
                                 .src_pitch = src.pitch,
                                 .dst_slice = dst.slice,
                                 .src_slice = src.slice};
    return CUDA_SUCCESS;
}

/* cuMemcpy3DBatchAsync, of CUDA 12.8. Makes numOps copies; flags must be 0. *failIdx, unless failIdx is NULL, receives the index of the
 * copy that failed, or SIZE_MAX if the error belongs to no particular copy. Where an operand is an array, extents and row lengths are in
 * its elements, otherwise in bytes. INVALID_VALUE also: an extent of 0, or two arrays with elements of different sizes. INVALID_HANDLE:
 * the array does not exist. */
CUresult CUDAAPI cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
                                      CUstream hStream)
{
    CUresult refusal = CUDA_SUCCESS;

    if (numOps == 0 || !opList || flags)
        refusal = ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu copies at %p, flags 0x%llx", numOps, (void *)opList, flags);
    return run(&(struct batch){numOps, box_item, opList}, refusal, failIdx, hStream);
}

/* cuMemcpy3DBatchAsync_v2. The same without failIdx. */
CUresult CUDAAPI cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream)
{
    return cuMemcpy3DBatchAsync(numOps, opList, NULL, flags, hStream);
}
