/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Unified Addressing. Queries of pointers need no current context, since pointers mean the same in all contexts, and also
 * work after a kernel failed, as in NVIDIA's driver. Every function: NOT_INITIALIZED; functions of managed memory INVALID_CONTEXT, and
 * the error of a kernel that failed in the current context. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/graph/capture_state.h"
#include "core/memory/managed.h"
#include "core/pointer/pointer.h"

#define CT_CHANNEL "memory"

/* cuPointerGetAttribute. INVALID_VALUE: data is NULL, the attribute does not exist, ptr is not known to CUDA, or HOST_POINTER of device
 * memory. INVALID_CONTEXT: DEVICE_POINTER while no context is current. */
CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = ct_context_failed_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    r = data ? ct_pointer_attribute(context, attribute, ptr, data) : ct_fail(CUDA_ERROR_INVALID_VALUE, "data is NULL");
    ct_context_release(context);
    return r;
}

/* cuPointerSetAttribute. Sets CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of allocated memory, from an unsigned int. NOT_SUPPORTED: the memory is
 * mapped in a reservation; INVALID_VALUE: anything else. */
CUresult CUDAAPI cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = ct_context_failed_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "pointer attribute %d cannot be set, or its value is NULL", (int)attribute);
    return ct_pointer_set_synchronous(ptr, *(const unsigned *)value != 0);
}

/* cuPointerGetAttributes. An attribute that does not apply to the pointer, or a pointer that CUDA does not know, gives a default value:
 * 0, NULL, or CU_DEVICE_INVALID; the host pointer of memory that CUDA does not know is the pointer itself. INVALID_VALUE: an attribute
 * does not exist, P2P_TOKENS, or a null pointer. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
    struct ct_context *context;
    CUresult r = ct_context_failed_or_null(&context);

    if (r != CUDA_SUCCESS)
        return r;
    if (numAttributes == 0 || !attributes || !data)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "%u attributes, or an array is NULL", numAttributes);
    for (unsigned i = 0; i < numAttributes && r == CUDA_SUCCESS; i++) {
        if (!data[i])
            r = ct_fail(CUDA_ERROR_INVALID_VALUE, "data[%u] is NULL", i);
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
            r = ct_fail(CUDA_ERROR_INVALID_VALUE, "P2P_TOKENS cannot be queried together with other attributes");
        else if (ct_pointer_attribute(context, attributes[i], ptr, data[i]) != CUDA_SUCCESS)
            r = ct_pointer_attribute_default(attributes[i], ptr, data[i]);
    }
    ct_context_release(context);
    return r;
}

/* ---- managed memory ---- */

/* A batch, which is not allowed in the legacy default stream. */
static CUresult run_batch(CUstream handle, unsigned long long flags, const struct ct_managed_ranges *ranges,
                          CUresult (*run)(struct ct_stream *stream, const struct ct_managed_ranges *ranges))
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup_uncaptured(handle, "a batch of managed memory", &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags || stream->is_legacy)
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "a batch with flags 0x%llx, %s", flags,
                    stream->is_legacy ? "in the legacy default stream" : "in a stream");
    else
        r = run(stream, ranges);
    ct_stream_release(stream);
    return r;
}

/* cuMemPrefetchAsync_v2. Declares the preferred location of [devPtr, devPtr + count) in managed memory, or in pageable memory that all
 * devices can access: a device, the host, or a NUMA node. The bytes do not move. flags must be 0. INVALID_VALUE: count is 0, other
 * memory, or the location does not exist; INVALID_DEVICE: the device does not exist, or, with CUTTLE_STRICT=1, it or the stream's device
 * has no concurrent managed access; INVALID_HANDLE: the stream does not exist. */
CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream)
{
    const size_t first = 0;
    const struct ct_managed_ranges range = {&devPtr, &count, 1, &location, &first, 1};
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup_uncaptured(hStream, "cuMemPrefetchAsync", &stream);

    if (r != CUDA_SUCCESS)
        return r;
    r = flags ? ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x", flags) : ct_managed_prefetch(stream, &range);
    ct_stream_release(stream);
    return r;
}

/* cuMemPrefetchAsync, the version of CUDA 8.0: dstDevice is a device or CU_DEVICE_CPU. */
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
    return cuMemPrefetchAsync_v2(devPtr, count, ct_managed_location(dstDevice), 0, hStream);
}

/* cuMemPrefetchBatchAsync. Prefetches `count` ranges; location k applies to the ranges from prefetchLocIdxs[k] on. Errors as in
 * cuMemPrefetchAsync_v2, and INVALID_VALUE: no ranges, indices that do not start at 0 and ascend, or the legacy default stream. */
CUresult CUDAAPI cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
                                         size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
    const struct ct_managed_ranges ranges = {dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs};

    return run_batch(hStream, flags, &ranges, ct_managed_prefetch);
}

/* cuMemDiscardBatchAsync. Declares that the bytes of the ranges are no longer needed; they keep their values. Errors as in
 * cuMemPrefetchBatchAsync. */
CUresult CUDAAPI cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags, CUstream hStream)
{
    const struct ct_managed_ranges ranges = {.addresses = dptrs, .sizes = sizes, .count = count};

    return run_batch(hStream, flags, &ranges, ct_managed_discard);
}

/* cuMemDiscardAndPrefetchBatchAsync. Does both. */
CUresult CUDAAPI cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
                                                   size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                                   CUstream hStream)
{
    return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

/* cuMemAdvise_v2. Stores the advice for a range, which only cuMemRangeGetAttribute reports. INVALID_VALUE: count is 0, neither managed
 * memory nor pageable memory that all devices can access, or the advice or location does not exist; INVALID_DEVICE: the device does not
 * exist, or, with CUTTLE_STRICT=1, has no concurrent managed access. */
CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    return ct_managed_advise(devPtr, count, advice, location);
}

/* cuMemAdvise, the version of CUDA 8.0: device is a device or CU_DEVICE_CPU. */
CUresult CUDAAPI cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return cuMemAdvise_v2(devPtr, count, advice, ct_managed_location(device));
}

/* cuMemRangeGetAttribute. Returns the advice of cuMemAdvise or the location of cuMemPrefetchAsync that all pages of a range of managed
 * memory share: 4 bytes, or a list of devices for ACCESSED_BY. INVALID_VALUE: other memory, the attribute does not exist, or dataSize
 * does not fit. */
CUresult CUDAAPI cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)
{
    return cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

/* cuMemRangeGetAttributes. The same for several attributes. */
CUresult CUDAAPI cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes, size_t numAttributes,
                                         CUdeviceptr devPtr, size_t count)
{
    struct ct_context *context;
    CUresult r = ct_context_current(&context);

    if (r != CUDA_SUCCESS)
        return r;
    ct_context_release(context);
    if (numAttributes == 0 || !data || !dataSizes || !attributes)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%zu attributes", numAttributes);
    for (size_t i = 0; i < numAttributes && r == CUDA_SUCCESS; i++)
        r = ct_managed_attribute(devPtr, count, attributes[i], data[i], dataSizes[i]);
    return r;
}
