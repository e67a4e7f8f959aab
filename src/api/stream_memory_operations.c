/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Stream Memory Operations. All functions work on every device, and version 1 like version 2.
 * NOT_INITIALIZED; INVALID_CONTEXT and CONTEXT_IS_DESTROYED according to the current context; INVALID_HANDLE: the handle is not that of
 * a stream. INVALID_VALUE: an address that is misaligned, in no allocation, in managed memory or in memory of another device; unknown
 * flags. NOT_SUPPORTED: flushing remote writes (CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0). Writes are ordered after all earlier
 * work of the stream, even with CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, which "is not supported in the v2 API" and gives INVALID_VALUE
 * there. */
#include "entry_points.h"

#include "core/command/command.h"
#include "core/base/log.h"

#define CT_CHANNEL "stream"
#define MAX_OPERATIONS 256u /* exclusive limit */

static CUresult flush_is_missing(void)
{
    return ct_fail(CUDA_ERROR_NOT_SUPPORTED, "flushing remote writes in a stream is not supported");
}

static CUresult check_wait(const CUstreamBatchMemOpParams *op, struct ct_stream_value *out)
{
    const unsigned flags = op->waitValue.flags;
    const bool wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;

    if (flags & ~(CU_STREAM_WAIT_VALUE_NOR | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown flags 0x%x of a wait for a value", flags);
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

static CUresult check_write(const CUstreamBatchMemOpParams *op, int version, struct ct_stream_value *out)
{
    const bool wide = op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;

    if (op->writeValue.flags & ~(version == 1 ? (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : 0))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "unknown flags 0x%x of a write of a value", op->writeValue.flags);
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

/* Fills in *out for waits and writes. `version` of the API: 1 or 2. */
static CUresult check(const CUstreamBatchMemOpParams *op, int version, struct ct_stream_value *out)
{
    switch ((int)op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return check_wait(op, out);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return check_write(op, version, out);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return flush_is_missing();
    case CU_STREAM_MEM_OP_BARRIER:
        if (version == 1 || op->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU)
            return ct_fail(CUDA_ERROR_INVALID_VALUE, "a memory barrier with flags 0x%x in version %d", op->memoryBarrier.flags, version);
        return CUDA_SUCCESS; /* every two operations of a stream are separated by one */
    default:
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "memory operation %d does not exist", (int)op->operation);
    }
}

static CUresult run(struct ct_stream *stream, const CUstreamBatchMemOpParams *op, int version)
{
    struct ct_stream_value value;
    CUresult r = check(op, version, &value);

    if (r != CUDA_SUCCESS || op->operation == CU_STREAM_MEM_OP_BARRIER)
        return r;
    return ct_stream_enqueue(stream, is_wait(op) ? &(struct ct_command){.kind = CT_COMMAND_VALUE_WAIT, .value_wait = value}
                                                 : &(struct ct_command){.kind = CT_COMMAND_VALUE_WRITE, .value_write = value});
}

/* All operations are validated before the first is recorded. */
static CUresult run_all(CUstream stream, unsigned count, const CUstreamBatchMemOpParams *ops, unsigned flags, int version)
{
    struct ct_stream_value value;
    struct ct_stream *found;
    CUresult r = ct_stream_lookup(stream, &found);

    if (r != CUDA_SUCCESS)
        return r;
    if (flags != 0 || count >= MAX_OPERATIONS || (count && !ops))
        r = ct_fail(CUDA_ERROR_INVALID_VALUE, "%u operations at %p, flags 0x%x", count, (const void *)ops, flags);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = check(&ops[i], version, &value);
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = run(found, &ops[i], version);
    ct_stream_release(found);
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
