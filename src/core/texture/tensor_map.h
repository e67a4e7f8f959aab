/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps (Driver API: Tensor Map Object Management): descriptions of tensors that kernels copy by cp.async.bulk.tensor. A CUtensorMap
 * contains a struct ptx2spv_tensor_map. */
#ifndef CT_CORE_TEXTURE_TENSOR_MAP_H
#define CT_CORE_TEXTURE_TENSOR_MAP_H

#include <cuda.h>

struct ct_tensor { /* the arguments that all kinds of maps have */
    CUtensorMapDataType type;
    cuuint32_t rank;
    void *address;
    const cuuint64_t *sizes, *strides;
    const cuuint32_t *steps;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

struct ct_tensor_image { /* im2col */
    const int *lower, *upper;
    cuuint32_t channels, pixels;
};

/* INVALID_VALUE: an argument is outside of its range, also packed types of 4 and 6 bits. */
CUresult ct_tensor_map_tiled(CUtensorMap *map, const struct ct_tensor *tensor, const cuuint32_t *box);
CUresult ct_tensor_map_image(CUtensorMap *map, const struct ct_tensor *tensor, const struct ct_tensor_image *image);
/* INVALID_VALUE: the map is none, or the address is not aligned. */
CUresult ct_tensor_map_move(CUtensorMap *map, void *address);

#endif
