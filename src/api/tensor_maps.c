/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Tensor Map Object Management. Maps are written by the host and need no context, but an initialized library. INVALID_VALUE: a
 * null pointer, or an argument outside of its range. The ranges are those of NVIDIA's driver on an H200 where the manual has others. */
#include "entry_points.h"

#include "core/texture/tensor_map.h"

/* cuTensorMapEncodeTiled. INVALID_VALUE: also elements of 4 and 6 bits, as for devices before sm_100. The L2 promotion has no effect. */
CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                        void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                        const cuuint32_t *boxDim, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    const struct ct_tensor tensor = {tensorDataType, tensorRank, globalAddress, globalDim,   globalStrides,
                                     elementStrides, interleave, swizzle,       l2Promotion, oobFill};

    return ct_tensor_map_tiled(tensorMap, &tensor, boxDim);
}

/* cuTensorMapEncodeIm2col */
CUresult CUDAAPI cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                         void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                         const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
                                         cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
    const struct ct_tensor tensor = {tensorDataType, tensorRank, globalAddress, globalDim,   globalStrides,
                                     elementStrides, interleave, swizzle,       l2Promotion, oobFill};
    const struct ct_tensor_image image = {pixelBoxLowerCorner, pixelBoxUpperCorner, channelsPerPixel, pixelsPerColumn};

    return ct_tensor_map_image(tensorMap, &tensor, &image);
}

/* cuTensorMapReplaceAddress */
CUresult CUDAAPI cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
    return ct_tensor_map_move(tensorMap, globalAddress);
}
