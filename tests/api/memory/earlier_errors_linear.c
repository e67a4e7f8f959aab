/* SPDX-License-Identifier: Apache-2.0 */
/* Earlier errors: functions of linear, page-locked, managed and pooled memory, copies and fills, queries of pointers. */
#include "earlier_errors.h"

/* Returns rows on the device, to the host or elsewhere on the device; valid until the next call. */
static const CUDA_MEMCPY2D *rows(struct broken *b, bool down)
{
    static CUDA_MEMCPY2D copy;

    copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = b->device,
                           .srcPitch = 128,
                           .dstMemoryType = down ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                           .dstHost = b->plain,
                           .dstDevice = b->second,
                           .dstPitch = 128,
                           .WidthInBytes = 100,
                           .Height = 20};
    return &copy;
}

/* The same for a box. */
static const CUDA_MEMCPY3D *box(struct broken *b, bool down)
{
    static CUDA_MEMCPY3D copy;

    copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = b->device,
                           .srcPitch = 128,
                           .srcHeight = 5,
                           .dstMemoryType = down ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                           .dstHost = b->plain,
                           .dstDevice = b->second,
                           .dstPitch = 128,
                           .dstHeight = 5,
                           .WidthInBytes = 100,
                           .Height = 5,
                           .Depth = 3};
    return &copy;
}

static CUresult copy_3d_peer(struct broken *b)
{
    CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = b->device,
                               .srcContext = b->context,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = b->second,
                               .dstContext = b->context,
                               .WidthInBytes = 100,
                               .Height = 1,
                               .Depth = 1};

    return cuMemcpy3DPeer(&copy);
}

static CUresult copy_batch(struct broken *b)
{
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t first = 0, size = BYTES;

    return cuMemcpyBatchAsync(&b->second, &b->device, &size, 1, &attributes, &first, 1, b->stream);
}

static CUresult copy_box_batch(struct broken *b)
{
    CUDA_MEMCPY3D_BATCH_OP op = {.extent = {100, 1, 1}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = b->device;
    op.dst.op.ptr.ptr = b->second;
    return cuMemcpy3DBatchAsync(1, &op, 0, b->stream);
}

static CUresult prefetch(struct broken *b)
{
    return cuMemPrefetchAsync_v2(b->managed, BYTES, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, b->stream);
}

static CUresult advise(struct broken *b)
{
    return cuMemAdvise_v2(b->managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0});
}

static CUresult ask_range(struct broken *b)
{
    return cuMemRangeGetAttribute(&b->number, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, b->managed, BYTES);
}

static CUresult ask_pointer(struct broken *b)
{
    return cuPointerGetAttribute(&b->number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b->device);
}

static CUresult ask_pointers(struct broken *b)
{
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *data = &b->number;

    return cuPointerGetAttributes(1, &attribute, &data, b->device);
}

static CUresult set_pointer(struct broken *b)
{
    unsigned on = 1;

    return cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, b->device);
}

/* clang-format off */
#define CALLS(CALL, WAITS, CONTINUES) \
    CALL(mem_get_info, cuMemGetInfo(&b->size, &b->other_size)) \
    CALL(mem_alloc, cuMemAlloc(&b->pointer, 100)) \
    CALL(mem_alloc_large, cuMemAlloc(&b->pointer, (size_t)3 << 20)) \
    CALL(mem_alloc_pitch, cuMemAllocPitch(&b->pointer, &b->size, 100, 100, 4)) \
    WAITS(mem_free, cuMemFree(b->device)) \
    WAITS(mem_free_managed, cuMemFree(b->managed)) \
    CALL(mem_get_address_range, cuMemGetAddressRange(&b->pointer, &b->size, b->device)) \
    CALL(mem_alloc_host, cuMemAllocHost(&b->address, 100)) \
    WAITS(mem_free_host, cuMemFreeHost(b->host)) \
    CALL(mem_host_alloc, cuMemHostAlloc(&b->address, 100, 0)) \
    CALL(mem_host_get_device_pointer, cuMemHostGetDevicePointer(&b->pointer, b->host, 0)) \
    CALL(mem_host_get_flags, cuMemHostGetFlags(&b->number, b->host)) \
    CALL(mem_alloc_managed, cuMemAllocManaged(&b->pointer, 100, CU_MEM_ATTACH_GLOBAL)) \
    CALL(mem_host_register, cuMemHostRegister(b->plain, 100, 0)) \
    WAITS(mem_host_unregister, cuMemHostUnregister(b->pages)) \
    WAITS(memcpy_to_host, cuMemcpy(unified(b->plain), b->device, BYTES)) \
    WAITS(memcpy_from_pinned, cuMemcpy(b->device, unified(b->host), BYTES)) \
    WAITS(memcpy_host_to_host, cuMemcpy(unified(b->host), unified(b->pages), BYTES)) \
    CALL(memcpy_on_device, cuMemcpy(b->second, b->device, BYTES)) \
    CALL(memcpy_peer, cuMemcpyPeer(b->second, b->context, b->device, b->context, BYTES)) \
    CALL(memcpy_h_to_d, cuMemcpyHtoD(b->device, b->plain, BYTES)) \
    WAITS(memcpy_h_to_d_pinned, cuMemcpyHtoD(b->device, b->host, BYTES)) \
    WAITS(memcpy_d_to_h, cuMemcpyDtoH(b->plain, b->device, BYTES)) \
    WAITS(memcpy_d_to_h_pinned, cuMemcpyDtoH(b->host, b->device, BYTES)) \
    CALL(memcpy_d_to_d, cuMemcpyDtoD(b->second, b->device, BYTES)) \
    WAITS(memcpy_2d, cuMemcpy2D(rows(b, true))) \
    WAITS(memcpy_2d_unaligned, cuMemcpy2DUnaligned(rows(b, true))) \
    WAITS(memcpy_3d, cuMemcpy3D(box(b, true))) \
    CALL(memcpy_3d_peer, copy_3d_peer(b)) \
    CALL(memcpy_async, cuMemcpyAsync(b->second, b->device, BYTES, b->stream)) \
    CALL(memcpy_peer_async, cuMemcpyPeerAsync(b->second, b->context, b->device, b->context, BYTES, b->stream)) \
    CALL(memcpy_h_to_d_async, cuMemcpyHtoDAsync(b->device, b->plain, BYTES, b->stream)) \
    WAITS(memcpy_d_to_h_async, cuMemcpyDtoHAsync(b->plain, b->device, BYTES, b->stream)) \
    CALL(memcpy_d_to_h_async_pinned, cuMemcpyDtoHAsync(b->host, b->device, BYTES, b->stream)) \
    CALL(memcpy_d_to_d_async, cuMemcpyDtoDAsync(b->second, b->device, BYTES, b->stream)) \
    CALL(memcpy_2d_async, cuMemcpy2DAsync(rows(b, false), b->stream)) \
    CALL(memcpy_3d_async, cuMemcpy3DAsync(box(b, false), b->stream)) \
    CALL(memcpy_batch_async, copy_batch(b)) \
    CALL(memcpy_3d_batch_async, copy_box_batch(b)) \
    CALL(memset_d8, cuMemsetD8(b->device, 1, BYTES)) \
    CALL(memset_d16, cuMemsetD16(b->device, 1, BYTES / 2)) \
    CALL(memset_d32, cuMemsetD32(b->device, 1, BYTES / 4)) \
    CALL(memset_2d_d8, cuMemsetD2D8(b->device, 64, 1, 10, 10)) \
    CALL(memset_2d_d16, cuMemsetD2D16(b->device, 64, 1, 10, 10)) \
    CALL(memset_2d_d32, cuMemsetD2D32(b->device, 64, 1, 10, 10)) \
    WAITS(memset_pinned, cuMemsetD8(unified(b->host), 1, BYTES)) \
    CALL(memset_d8_async, cuMemsetD8Async(b->device, 1, BYTES, b->stream)) \
    CALL(memset_d16_async, cuMemsetD16Async(b->device, 1, BYTES / 2, b->stream)) \
    CALL(memset_d32_async, cuMemsetD32Async(b->device, 1, BYTES / 4, b->stream)) \
    CALL(memset_2d_d8_async, cuMemsetD2D8Async(b->device, 64, 1, 10, 10, b->stream)) \
    CALL(memset_2d_d16_async, cuMemsetD2D16Async(b->device, 64, 1, 10, 10, b->stream)) \
    CALL(memset_2d_d32_async, cuMemsetD2D32Async(b->device, 64, 1, 10, 10, b->stream)) \
    CALL(mem_alloc_async, cuMemAllocAsync(&b->pointer, BYTES, b->stream)) \
    CALL(mem_alloc_from_pool_async, cuMemAllocFromPoolAsync(&b->pointer, BYTES, b->pool, b->stream)) \
    CALL(mem_free_async, cuMemFreeAsync(b->pooled, b->stream)) \
    CALL(mem_free_async_of_alloc, cuMemFreeAsync(b->device, b->stream)) \
    CALL(mem_prefetch_async, prefetch(b)) \
    CALL(mem_advise, advise(b)) \
    CALL(mem_range_get_attribute, ask_range(b)) \
    CONTINUES(pointer_get_attribute, ask_pointer(b)) \
    CONTINUES(pointer_get_attributes, ask_pointers(b)) \
    CONTINUES(pointer_set_attribute, set_pointer(b)) \
    CALL(stream_attach_mem_async, cuStreamAttachMemAsync(b->stream, b->managed, 0, CU_MEM_ATTACH_GLOBAL))
/* clang-format on */

ERRORS_TABLE(errors_linear, CALLS)
