/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Occupancy. The results follow from the limits that the device reports, without registers. The functions work in the current
 * context.
 * INVALID_HANDLE: the handle is not that of a function; INVALID_VALUE: a null pointer, a size below 1, unknown flags. */
#include "entry_points.h"

#include "core/device/device.h"
#include "core/base/log.h"
#include "core/code/occupancy.h"
#include "core/launch/launch.h"
#include "core/library/function_lookup.h"

#include <limits.h>

#define CT_CHANNEL "launch"

/* Looks up the compiled function of a query; `is_valid` says whether the query's other arguments are valid. */
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

/* cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags. The flags have no effect. */
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

/* cuOccupancyMaxActiveBlocksPerMultiprocessor. The result is 0 if not even one block fits. */
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, CU_OCCUPANCY_DEFAULT);
}

/* cuOccupancyMaxPotentialBlockSizeWithFlags. The flags have no effect. A blockSizeLimit of 0 means no limit. */
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

/* cuOccupancyAvailableDynamicSMemPerBlock. The result is in bytes, and 0 if numBlocks blocks do not fit at all. */
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

static bool config_is_valid(const CUlaunchConfig *config)
{
    return config && (config->numAttrs == 0 || config->attrs) && config->blockDimX > 0 && config->blockDimY > 0 && config->blockDimZ > 0;
}

/* Threads of a block, clamped to the range of unsigned int, which exceeds every limit. */
static unsigned block_threads(const CUlaunchConfig *config)
{
    unsigned threads;

    return __builtin_mul_overflow(config->blockDimX, config->blockDimY, &threads) ||
                   __builtin_mul_overflow(threads, config->blockDimZ, &threads)
               ? UINT_MAX
               : threads;
}

/* cuOccupancyMaxPotentialClusterSize. The most blocks that a cluster may have, 8 or, with CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
 * 16, or 0 if not even one block of the launch fits: blocks of a cluster run in turn, so the device does not limit them. INVALID_CLUSTER_SIZE: the
 * kernel has to have a size (.explicitcluster), and neither it nor the launch specifies one (as NVIDIA's driver does, 580.159.04). */
CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
    struct ct_function *function;
    unsigned given[3], size[3];
    CUresult r = find(func, clusterSize && config_is_valid(config), &function);

    if (r != CUDA_SUCCESS)
        return r;
    *clusterSize = 0;
    ct_launch_attributes_cluster(config->attrs, config->numAttrs, given);
    if (function->decl->explicit_cluster)
        r = ct_launch_check_cluster(function, given, size);
    if (r == CUDA_SUCCESS && ct_occupancy_blocks(function, block_threads(config), config->sharedMemBytes))
        *clusterSize = atomic_load_explicit(&function->larger_clusters, memory_order_relaxed) ? CT_CLUSTER_MOST : CT_CLUSTER_PORTABLE;
    ct_function_release(function);
    return r;
}

/* cuOccupancyMaxActiveClusters. The number of blocks that fit on the whole device, in clusters. INVALID_CLUSTER_SIZE: neither the launch nor
 * the kernel specifies a size, or it is one that a launch would refuse. */
CUresult CUDAAPI cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
    struct ct_function *function;
    unsigned given[3], size[3];
    CUresult r = find(func, numClusters && config_is_valid(config), &function);

    if (r != CUDA_SUCCESS)
        return r;
    ct_launch_attributes_cluster(config->attrs, config->numAttrs, given);
    if (!given[0] && !given[1] && !given[2] && !function->decl->cluster[0])
        r = ct_fail(CUDA_ERROR_INVALID_CLUSTER_SIZE, "the launch does not specify the size of its clusters");
    else
        r = ct_launch_check_cluster(function, given, size);
    if (r == CUDA_SUCCESS)
        *numClusters = (int)(ct_occupancy_blocks(function, block_threads(config), config->sharedMemBytes) *
                             (unsigned)ct_device_limit(function->module->context->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) /
                             (size[0] * size[1] * size[2]));
    ct_function_release(function);
    return r;
}
