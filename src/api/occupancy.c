/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Occupancy. By the limits that the device reports, registers left out. Functions work in the current context.
 * INVALID_HANDLE: no function; INVALID_VALUE: a null pointer, a size below 1, unknown flags. */
#include "entry_points.h"

#include "core/log.h"
#include "core/occupancy.h"

#define CT_CHANNEL "launch"

/* The compiled function of a query whose arguments are good if `is_valid`. */
static CUresult find(CUfunction handle, bool is_valid, struct ct_function **out)
{
    CUresult r = ct_function_lookup_current(handle, is_valid, out);

    if (r != CUDA_SUCCESS)
        return r;
    r = ct_function_compile(*out);
    if (r != CUDA_SUCCESS)
        ct_function_release(*out);
    return r;
}

static bool flags_are_valid(unsigned flags)
{
    return (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) == 0;
}

/* cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags. The flags make no difference. */
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
                                                                      size_t dynamicSMemSize, unsigned int flags)
{
    struct ct_function *function;
    CUresult r = find(func, numBlocks && blockSize > 0 && flags_are_valid(flags), &function);

    if (r != CUDA_SUCCESS)
        return r;
    *numBlocks = (int)ct_occupancy_blocks(function, (unsigned)blockSize, dynamicSMemSize);
    ct_function_release(function);
    return CUDA_SUCCESS;
}

/* cuOccupancyMaxActiveBlocksPerMultiprocessor. 0: not even one block fits. */
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, CU_OCCUPANCY_DEFAULT);
}

/* cuOccupancyMaxPotentialBlockSizeWithFlags. The flags make no difference. blockSizeLimit 0: none. */
CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                           CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                                           int blockSizeLimit, unsigned int flags)
{
    const struct ct_occupancy_query query = {blockSizeToDynamicSMemSize, dynamicSMemSize, (unsigned)blockSizeLimit};
    struct ct_function *function;
    CUresult r = find(func, minGridSize && blockSize && blockSizeLimit >= 0 && flags_are_valid(flags), &function);

    if (r != CUDA_SUCCESS)
        return r;
    ct_occupancy_best_block(function, &query, minGridSize, blockSize);
    ct_function_release(function);
    return CUDA_SUCCESS;
}

/* cuOccupancyMaxPotentialBlockSize. */
CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                                  CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                                                     blockSizeLimit, CU_OCCUPANCY_DEFAULT);
}

/* cuOccupancyAvailableDynamicSMemPerBlock. Bytes; 0 where so many blocks do not fit at all. */
CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
    struct ct_function *function;
    CUresult r = find(func, dynamicSmemSize && numBlocks > 0 && blockSize > 0, &function);

    if (r != CUDA_SUCCESS)
        return r;
    *dynamicSmemSize = ct_occupancy_shared(function, (unsigned)numBlocks, (unsigned)blockSize);
    ct_function_release(function);
    return CUDA_SUCCESS;
}
