/* SPDX-License-Identifier: Apache-2.0 */
/* Checks memory operations and enqueues a command for each. */
#include "memory_operations.h"

#include "command.h"
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

CUresult ct_memory_operations_check(const struct ct_memory_operations *operations)
{
    struct ct_stream_value value;
    CUresult r = CUDA_SUCCESS;

    if (operations->flags != 0 || operations->count >= MAX_OPERATIONS || (operations->count && !operations->list))
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "%u operations at %p, flags 0x%x", operations->count, (const void *)operations->list,
                       operations->flags);
    for (unsigned i = 0; i < operations->count && r == CUDA_SUCCESS; i++)
        r = check(&operations->list[i], operations->version, &value);
    return r;
}

CUresult ct_memory_operations_enqueue(struct ct_stream *stream, const struct ct_memory_operations *operations)
{
    CUresult r = ct_memory_operations_check(operations);

    for (unsigned i = 0; i < operations->count && r == CUDA_SUCCESS; i++)
        r = run(stream, &operations->list[i], operations->version);
    return r;
}
