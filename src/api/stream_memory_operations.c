/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Stream Memory Operations. All functions work on every device, those of version 1 as those of version 2.
 * NOT_INITIALIZED, INVALID_CONTEXT, CONTEXT_IS_DESTROYED as the current context gives them; INVALID_HANDLE: no stream. INVALID_VALUE: an
 * address that is misaligned, in no allocation, in managed memory or in that of another device; flags that do not exist. NOT_SUPPORTED:
 * flushing remote writes (CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0). Writes come after all that the stream got before, also with
 * CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER. */
#include "entry_points.h"

#include "core/log.h"
#include "core/stream_value.h"

#define CT_CHANNEL "stream"
#define MAX_OPERATIONS 256u /* there must be fewer */

static CUresult flush_is_missing(void)
{
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "flushing remote writes in a stream");
}

static CUresult check_wait(const CUstreamBatchMemOpParams *op, struct ct_stream_value *out)
{
    const unsigned flags = op->waitValue.flags;
    const bool wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;

    if (flags & ~(CU_STREAM_WAIT_VALUE_NOR | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x of a wait for a value", flags);
    if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return flush_is_missing();
    *out = (struct ct_stream_value){
        .address = op->waitValue.address,
        .value = wide ? op->waitValue.value64 : op->waitValue.value,
        .bytes = wide ? 8 : 4,
        .condition = (enum ct_value_condition)flags,
    };
    return ct_stream_value_check(out);
}

static CUresult check_write(const CUstreamBatchMemOpParams *op, struct ct_stream_value *out)
{
    const bool wide = op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;

    if (op->writeValue.flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x of a write of a value", op->writeValue.flags);
    *out = (struct ct_stream_value){
        .address = op->writeValue.address,
        .value = wide ? op->writeValue.value64 : op->writeValue.value,
        .bytes = wide ? 8 : 4,
    };
    return ct_stream_value_check(out);
}

static bool is_wait(const CUstreamBatchMemOpParams *op)
{
    return op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

/* *out is filled in for waits and writes. */
static CUresult check(const CUstreamBatchMemOpParams *op, struct ct_stream_value *out)
{
    switch ((int)op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return check_wait(op, out);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return check_write(op, out);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return flush_is_missing();
    case CU_STREAM_MEM_OP_BARRIER:
        if (op->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "flags 0x%x of a memory barrier", op->memoryBarrier.flags);
        return CUDA_SUCCESS; /* between any two operations of a stream there is one */
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "there is no memory operation %d", (int)op->operation);
    }
}

static CUresult run(struct ct_stream *stream, const CUstreamBatchMemOpParams *op)
{
    struct ct_stream_value value;
    CUresult r = check(op, &value);

    if (r != CUDA_SUCCESS || op->operation == CU_STREAM_MEM_OP_BARRIER)
        return r;
    return is_wait(op) ? ct_stream_value_wait(stream, &value) : ct_stream_value_write(stream, &value);
}

/* cuStreamBatchMemOp_v2. All operations are checked before the first one is recorded. INVALID_VALUE also: 256 or more, paramArray is NULL,
 * flags are not 0, no such operation. */
CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    struct ct_stream_value value;
    struct ct_stream *found;
    CUresult r = ct_stream_lookup(stream, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags != 0 || count >= MAX_OPERATIONS || (count && !paramArray))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "%u operations at %p, flags 0x%x", count, (void *)paramArray, flags);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check(&paramArray[i], &value);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = run(found, &paramArray[i]);
    ct_stream_release(found);
    return r;
}

/* cuStreamBatchMemOp. The same, but it has no memory barriers. */
CUresult CUDAAPI cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    for (unsigned i = 0; paramArray && count < MAX_OPERATIONS && i < count; i++)
        if (paramArray[i].operation == CU_STREAM_MEM_OP_BARRIER)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuStreamBatchMemOp of version 1 has no memory barriers");
    return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}

static CUresult run_one(CUstream stream, CUstreamBatchMemOpParams op)
{
    return cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

/* cuStreamWaitValue32_v2 */
CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return run_one(stream, (CUstreamBatchMemOpParams){
                               .waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = addr, .value = value, .flags = flags}});
}

/* cuStreamWaitValue64_v2 */
CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return run_one(stream,
                   (CUstreamBatchMemOpParams){
                       .waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64, .address = addr, .value64 = value, .flags = flags}});
}

/* cuStreamWriteValue32_v2 */
CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
    return run_one(stream,
                   (CUstreamBatchMemOpParams){
                       .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = addr, .value = value, .flags = flags}});
}

/* cuStreamWriteValue64_v2 */
CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return run_one(stream,
                   (CUstreamBatchMemOpParams){
                       .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = addr, .value64 = value, .flags = flags}});
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
    return cuStreamWriteValue32_v2(stream, addr, value, flags);
}

/* cuStreamWriteValue64 */
CUresult CUDAAPI cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
    return cuStreamWriteValue64_v2(stream, addr, value, flags);
}
