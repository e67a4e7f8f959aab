/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Memory Management: batches of copies. The copies of a batch are in stream order with what is around them; among themselves
 * they have none.
 * Every function: NOT_INITIALIZED, INVALID_CONTEXT, CONTEXT_IS_DESTROYED as the current context gives them, INVALID_HANDLE for a stream
 * that is none, and the error of a kernel that failed. INVALID_VALUE: the legacy default stream, a NULL array, no copies, attributes that
 * do not cover the copies, no such source access order or flags, and what cuMemcpyAsync and cuMemcpy3DAsync refuse. All copies are looked
 * at before the first is recorded, so a batch that is refused leaves nothing behind. */
#include "entry_points.h"

#include "core/array/array.h"
#include "core/command/command.h"
#include "core/base/log.h"
#include "core/base/process.h"

#define CT_CHANNEL "copy"

#define NO_COPY SIZE_MAX /* of an index: the error is of no copy in particular */

/* A copy of a batch, by its index. */
struct item {
    struct ct_copy copy;
    CUmemcpySrcAccessOrder order;
    struct ct_array *dst_array, *src_array; /* in use until the copy is recorded; or NULL */
};

/* What both kinds of batches have in common. */
struct batch {
    size_t count;
    CUresult (*item)(const struct batch *batch, size_t index, struct item *out);
    const void *data;
};

static CUresult check_order(CUmemcpySrcAccessOrder order, unsigned flags)
{
    if (order != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
        order != CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "source access order %d", (int)order);
    if (flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) /* a hint without effect here */
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x of a copy", flags);
    return CUDA_SUCCESS;
}

static void release_item(struct item *item)
{
    ct_array_release(item->dst_array);
    ct_array_release(item->src_array);
}

/* On success to be released. */
static CUresult make_item(const struct batch *batch, size_t index, struct item *out)
{
    CUresult r;

    *out = (struct item){0};
    r = batch->item(batch, index, out);
    if (r == CUDA_SUCCESS && out->copy.dst.read_only)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy to memory that may only be read");
    if (r != CUDA_SUCCESS)
        release_item(out);
    return r;
}

/* The order was checked. */
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

/* `refusal` is what is wrong with the batch as a whole; `index_or_null` gets the copy that failed. */
static CUresult run(const struct batch *batch, CUresult refusal, size_t *index_or_null, CUstream handle)
{
    struct ct_stream *stream;
    size_t index = NO_COPY;
    CUresult r = ct_process_check();

    if (r == CUDA_SUCCESS && (!handle || handle == CU_STREAM_LEGACY)) /* also in no context, as NVIDIA's driver has it */
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a batch in the legacy default stream");
    if (r == CUDA_SUCCESS)
        r = ct_stream_lookup(handle, &stream);
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
    const size_t *starts; /* attributes[k] is for the copies from starts[k] on */
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
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "copy %zu is of 0 bytes", index);
    if ((r = check_order(out->order, b->attributes[below].flags)) != CUDA_SUCCESS)
        return r;
    out->copy = (struct ct_copy){.row_bytes = b->sizes[index], .rows = 1, .slices = 1};
    r = ct_place_find(CT_POINTER_UNIFIED, b->dsts[index], b->sizes[index], &out->copy.dst);
    return r == CUDA_SUCCESS ? ct_place_find(CT_POINTER_UNIFIED, b->srcs[index], b->sizes[index], &out->copy.src) : r;
}

static CUresult check_linear(const struct linear_batch *b, size_t count)
{
    if (!b->dsts || !b->srcs || !b->sizes || !b->attributes || !b->starts || count == 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a NULL array, or %zu copies", count);
    if (b->n_attributes == 0 || b->n_attributes > count || b->starts[0] != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu attributes for %zu copies", b->n_attributes, count);
    for (size_t i = 1; i < b->n_attributes; i++)
        if (b->starts[i] <= b->starts[i - 1] || b->starts[i] >= count)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "attributes %zu begin at copy %zu of %zu", i, b->starts[i], count);
    return CUDA_SUCCESS;
}

/* cuMemcpyBatchAsync, of CUDA 12.8. count copies; attrs[k] is for those from attrsIdxs[k] on. *failIdx, if not NULL: the copy that failed,
 * or SIZE_MAX where it was none in particular. INVALID_VALUE: also a copy of 0 bytes. */
CUresult CUDAAPI cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                                    size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
    const struct linear_batch linear = {dsts, srcs, sizes, attrs, attrsIdxs, numAttrs};

    return run(&(struct batch){count, linear_item, &linear}, check_linear(&linear, count), failIdx, hStream);
}

/* cuMemcpyBatchAsync_v2. The same without the index. */
CUresult CUDAAPI cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                                       size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
    return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL, hStream);
}

/* ---- three dimensions ---- */

/* One side of a copy, and the distances between its rows and slices in bytes. */
struct side {
    struct ct_place place;
    uint64_t pitch, slice;
};

/* What extents, offsets and row lengths count: elements of the array where one side is one, else bytes. */
struct units {
    const CUextent3D *extent;
    uint64_t element_bytes, width_bytes;
};

/* A row length or a layer height of 0 means without gaps. */
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
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy of more than 64 bits of address");
    r = ct_copy_span(units->width_bytes, extent->height, out->pitch, extent->depth, out->slice, &span);
    return r == CUDA_SUCCESS ? ct_place_find(CT_POINTER_UNIFIED, operand->op.ptr.ptr, span, &out->place) : r;
}

static CUresult locate_array(const CUmemcpy3DOperand *operand, const struct ct_array *array, const struct units *units, struct side *out)
{
    const CUoffset3D *offset = &operand->op.array.offset;
    const CUextent3D *extent = units->extent;
    struct ct_array_box box = {0, offset->y, offset->z, units->width_bytes, extent->height, extent->depth};

    if (__builtin_mul_overflow(offset->x, units->element_bytes, &box.x_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "an offset of %zu elements", offset->x);
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
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "an operand of type %d", (int)operand->type);
}

static CUresult find_units(const struct item *item, const CUextent3D *extent, struct units *out)
{
    const struct ct_array *dst = item->dst_array, *src = item->src_array;

    out->extent = extent;
    out->element_bytes = dst ? dst->texels.texel_bytes : src ? src->texels.texel_bytes : 1;
    if (dst && src && dst->texels.texel_bytes != src->texels.texel_bytes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "arrays with elements of %u and %u bytes", dst->texels.texel_bytes,
                       src->texels.texel_bytes);
    if (extent->width == 0 || extent->height == 0 || extent->depth == 0 ||
        __builtin_mul_overflow(extent->width, out->element_bytes, &out->width_bytes))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a copy of %zu x %zu x %zu", extent->width, extent->height, extent->depth);
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

/* cuMemcpy3DBatchAsync, of CUDA 12.8. numOps copies; flags must be 0. *failIdx, if not NULL: the copy that failed, or SIZE_MAX where it was
 * none in particular. Where an operand is an array, extents and row lengths count its elements, else bytes. INVALID_VALUE also: an extent
 * of 0, two arrays with elements of different sizes. INVALID_HANDLE: no such array. */
CUresult CUDAAPI cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
                                      CUstream hStream)
{
    CUresult refusal = CUDA_SUCCESS;

    if (numOps == 0 || !opList || flags)
        refusal = ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu copies at %p, flags 0x%llx", numOps, (void *)opList, flags);
    return run(&(struct batch){numOps, box_item, opList}, refusal, failIdx, hStream);
}

/* cuMemcpy3DBatchAsync_v2. The same without the index. */
CUresult CUDAAPI cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream)
{
    return cuMemcpy3DBatchAsync(numOps, opList, NULL, flags, hStream);
}
