/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Stream Memory Operations. All functions work on every device, and version 1 like version 2.
 * NOT_INITIALIZED; INVALID_CONTEXT and CONTEXT_IS_DESTROYED according to the current context; INVALID_HANDLE: the handle is not that of
 * a stream. INVALID_VALUE: an address that is misaligned, in no allocation, in managed memory or in memory of another device; unknown
 * flags. NOT_SUPPORTED: flushing remote writes (CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0). Writes are ordered after all earlier
 * work of the stream, even with CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, which "is not supported in the v2 API" and gives INVALID_VALUE
 * there. */
#include "entry_points.h"

#include "core/command/memory_operations.h"
#include "core/graph/capture_calls.h"

static CUresult run_all(CUstream handle, unsigned count, const CUstreamBatchMemOpParams *ops, unsigned flags, int version)
{
    struct ct_stream *stream;
    CUresult r = ct_stream_lookup(handle, &stream);

    if (r != CUDA_SUCCESS)
        return r;
    if (ct_stream_is_captured(stream))
        r = ct_capture_node(stream,
                            &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                                 .memOp = {stream->context->object.handle, count, (CUstreamBatchMemOpParams *)ops, flags}});
    else
        r = ct_memory_operations_enqueue(stream, &(struct ct_memory_operations){ops, count, flags, version});
    ct_stream_release(stream);
    return r;
}

/* cuStreamBatchMemOp_v2. INVALID_VALUE also: 256 or more operations, paramArray is NULL, flags are not 0, or an operation does not
 * exist. */
CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    return run_all(stream, count, paramArray, flags, 2);
}

/* cuStreamBatchMemOp. The same without memory barriers. */
CUresult CUDAAPI cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    return run_all(stream, count, paramArray, flags, 1);
}

static CUresult wait_for(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value, unsigned flags)
{
    const CUstreamBatchMemOpParams op = {.waitValue = {.operation = operation, .address = address, .value64 = value, .flags = flags}};

    return run_all(stream, 1, &op, 0, 2); /* the versions do not differ */
}

static CUresult write_to(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value, unsigned flags,
                         int version)
{
    const CUstreamBatchMemOpParams op = {.writeValue = {.operation = operation, .address = address, .value64 = value, .flags = flags}};

    return run_all(stream, 1, &op, 0, version);
}

/* cuStreamWaitValue32_v2 */
CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return wait_for(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
}

/* cuStreamWaitValue64_v2 */
CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return wait_for(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
}

/* cuStreamWriteValue32_v2 */
CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return write_to(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags, 2);
}

/* cuStreamWriteValue64_v2 */
CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return write_to(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags, 2);
}

/* cuStreamWaitValue32 */
CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return cuStreamWaitValue32_v2(stream, addr, value, flags);
}

/* cuStreamWaitValue64 */
CUresult CUDAAPI cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

/* cuStreamWriteValue32 */
CUresult CUDAAPI cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return write_to(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags, 1);
}

/* cuStreamWriteValue64 */
CUresult CUDAAPI cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return write_to(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags, 1);
}
