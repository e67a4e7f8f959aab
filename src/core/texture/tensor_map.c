/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_map.h"

#include "core/base/log.h"
#include "cuttle/ptx2spv.h"

#include <string.h>

#define CT_CHANNEL "memory"
#define MAX_RANK 5
#define MAP_ALIGNMENT 64
#define PIECE_BYTES 16 /* alignment of tensors, strides and rows of a box */
#define MAX_SIZE (UINT64_C(1) << 32)
#define MAX_STRIDE (UINT64_C(1) << 40)
#define MAX_BOX 256
#define MAX_STEP 8
#define MAX_PIXELS 1024
#define MAX_BOX_BYTES (228 * 1024) /* of NVIDIA's driver (580.159) on an H200: the shared memory of a multiprocessor */

_Static_assert(sizeof(struct ptx2spv_tensor_map) <= sizeof(CUtensorMap), "a map contains the record");
_Static_assert((int)PTX2SPV_TENSOR_TF32_FTZ == (int)CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, "the types have the same numbers");

static const struct {
    uint8_t bytes;
    bool is_float;
} types[] = {
    [CU_TENSOR_MAP_DATA_TYPE_UINT8] = {1, false},       [CU_TENSOR_MAP_DATA_TYPE_UINT16] = {2, false},
    [CU_TENSOR_MAP_DATA_TYPE_UINT32] = {4, false},      [CU_TENSOR_MAP_DATA_TYPE_INT32] = {4, false},
    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = {8, false},      [CU_TENSOR_MAP_DATA_TYPE_INT64] = {8, false},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = {2, true},      [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = {4, true},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = {8, true},      [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = {2, true},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = {4, true},  [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = {4, true},
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = {4, true},
};
#define N_TYPES (sizeof types / sizeof *types)

static CUresult invalid(const char *why)
{
    return ct_fail(CUDA_ERROR_INVALID_VALUE, "%s", why);
}

/* ---- checks ---- */

static CUresult check_modes(const struct ct_tensor *tensor)
{
    if (tensor->type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B || tensor->interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
        tensor->swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B || tensor->promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
        tensor->fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
        return invalid("a type or a mode does not exist");
    if (tensor->type >= N_TYPES)
        return invalid("only devices of sm_100 and later copy elements of 4 and 6 bits");
    if (tensor->fill && !types[tensor->type].is_float)
        return invalid("elements outside of a tensor of integers cannot be NaN");
    if (tensor->interleave && tensor->rank < 3)
        return invalid("an interleaved tensor has at least 3 dimensions");
    return CUDA_SUCCESS;
}

/* The bytes of a slice of an interleaved tensor, to which it and its strides are aligned; of others, the alignment. */
static unsigned slice_bytes(const struct ct_tensor *tensor)
{
    return tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 2 * PIECE_BYTES : PIECE_BYTES;
}

static CUresult check_extents(const struct ct_tensor *tensor)
{
    for (cuuint32_t i = 0; i < tensor->rank; i++) {
        if (!tensor->sizes[i] || tensor->sizes[i] > MAX_SIZE)
            return invalid("a dimension of a tensor has 1 to 2^32 elements");
        if (!tensor->steps[i] || tensor->steps[i] > MAX_STEP)
            return invalid("element strides are from 1 to 8");
        if (i && (tensor->strides[i - 1] % slice_bytes(tensor) || tensor->strides[i - 1] >= MAX_STRIDE))
            return invalid("the strides of a tensor are multiples of 16, or 32, below 2^40");
    }
    return CUDA_SUCCESS;
}

static CUresult check_tensor(const CUtensorMap *map, const struct ct_tensor *tensor, cuuint32_t least_rank)
{
    CUresult r;

    if (!map || (uintptr_t)map % MAP_ALIGNMENT)
        return invalid("a tensor map is aligned to 64 bytes");
    if (tensor->rank < least_rank || tensor->rank > MAX_RANK)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "a tensor of %u dimensions", tensor->rank);
    if (!tensor->sizes || !tensor->steps || (tensor->rank > 1 && !tensor->strides))
        return invalid("a null pointer");
    if ((uintptr_t)tensor->address % slice_bytes(tensor))
        return invalid("a tensor is aligned to 16 bytes, or 32");
    r = check_modes(tensor);
    return r == CUDA_SUCCESS ? check_extents(tensor) : r;
}

static unsigned swizzle_bytes(CUtensorMapSwizzle swizzle)
{
    return swizzle > CU_TENSOR_MAP_SWIZZLE_128B ? 128 : 16u << swizzle;
}

/* The innermost dimension of a box, or the channels of a pixel. The manual excepts interleaved tensors from the multiple of 16 bytes; NVIDIA's
 * driver (580.159, H200) does not. */
static CUresult check_row(const struct ct_tensor *tensor, cuuint32_t elements)
{
    const cuuint32_t bytes = elements * types[tensor->type].bytes;

    if (!elements || elements > MAX_BOX)
        return invalid("a dimension of a box has 1 to 256 elements");
    if (bytes % PIECE_BYTES)
        return invalid("the innermost dimension of a box has a multiple of 16 bytes");
    if (!tensor->interleave && tensor->swizzle && bytes > swizzle_bytes(tensor->swizzle))
        return invalid("the innermost dimension of a box is larger than the swizzle's span");
    return CUDA_SUCCESS;
}

/* Of an interleaved tensor the driver counts elements, too, and not slices. */
static CUresult check_box(const struct ct_tensor *tensor, const cuuint32_t *box)
{
    uint64_t bytes = types[tensor->type].bytes;

    for (cuuint32_t i = 0; i < tensor->rank; i++) {
        if (!box[i] || box[i] > MAX_BOX)
            return invalid("a dimension of a box has 1 to 256 elements");
        bytes *= box[i] / tensor->steps[i];
    }
    if (bytes > MAX_BOX_BYTES)
        return invalid("a box is larger than shared memory");
    return check_row(tensor, box[0]);
}

/* ---- records ---- */

static uint32_t swizzle_of(CUtensorMapSwizzle swizzle)
{
    static const uint32_t modes[] = {
        [CU_TENSOR_MAP_SWIZZLE_32B] = 0x10 | 3 << PTX2SPV_TENSOR_SWIZZLE_SHIFT,
        [CU_TENSOR_MAP_SWIZZLE_64B] = 0x30 | 3 << PTX2SPV_TENSOR_SWIZZLE_SHIFT,
        [CU_TENSOR_MAP_SWIZZLE_128B] = 0x70 | 3 << PTX2SPV_TENSOR_SWIZZLE_SHIFT,
        [CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B] = 0x60 | 2 << PTX2SPV_TENSOR_SWIZZLE_SHIFT,
        [CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B] = 0x60 | PTX2SPV_TENSOR_SWIZZLE_FLIP | 2 << PTX2SPV_TENSOR_SWIZZLE_SHIFT,
        [CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B] = 0x40 | 1 << PTX2SPV_TENSOR_SWIZZLE_SHIFT,
    };

    return modes[swizzle];
}

/* The dimension of the record that is dimension i of the tensor. The manuals do not name the dimensions of an interleaved tensor: they are W, H, D,
 * C and N, of which W and C count slices (measured on an H200). So W has no stride among those of the map. */
static unsigned dimension_of(const struct ct_tensor *tensor, unsigned i)
{
    if (!tensor->interleave || i + 1 == tensor->rank)
        return i;
    return i + 2 == tensor->rank ? 0 : i + 1;
}

/* The part that all kinds of maps have. */
static struct ptx2spv_tensor_map record_of(const struct ct_tensor *tensor)
{
    struct ptx2spv_tensor_map record = {
        .address = (uintptr_t)tensor->address,
        .rank = tensor->rank,
        .type = tensor->type,
        .element_bytes = types[tensor->type].bytes,
        .swizzle = swizzle_of(tensor->swizzle),
        .flags = (tensor->fill ? PTX2SPV_TENSOR_FILLS_NAN : 0) | (tensor->interleave ? PTX2SPV_TENSOR_INTERLEAVED : 0),
        .mark = PTX2SPV_TENSOR_MARK,
    };

    for (unsigned i = 0; i < tensor->rank; i++) {
        const unsigned d = dimension_of(tensor, i);
        const uint64_t stride = i ? tensor->strides[i - 1] : slice_bytes(tensor);

        record.last[d] = (uint32_t)(tensor->sizes[i] - 1);
        record.steps |= (d ? tensor->steps[i] : 1) << 4 * d; /* that of the first dimension has no effect */
        if (d)
            record.strides[d - 1] = stride;
        else if (tensor->interleave)
            record.slice_stride = stride;
    }
    for (unsigned d = tensor->rank; d < MAX_RANK; d++)
        record.steps |= 1u << 4 * d;
    return record;
}

/* The elements of a row of a box: those that the program wants, or of an interleaved tensor those of a slice. */
static int32_t row_elements(const struct ct_tensor *tensor, cuuint32_t wanted)
{
    return (int32_t)(tensor->interleave ? slice_bytes(tensor) / types[tensor->type].bytes : wanted);
}

static void write_record(CUtensorMap *map, const struct ptx2spv_tensor_map *record)
{
    memset(map, 0, sizeof *map);
    memcpy(map, record, sizeof *record);
}

CUresult ct_tensor_map_tiled(CUtensorMap *map, const struct ct_tensor *tensor, const cuuint32_t *box)
{
    CUresult r = check_tensor(map, tensor, 1);
    struct ptx2spv_tensor_map record;

    if (r == CUDA_SUCCESS)
        r = box ? check_box(tensor, box) : invalid("a null pointer");
    if (r != CUDA_SUCCESS)
        return r;
    record = record_of(tensor);
    for (unsigned d = 0; d < MAX_RANK; d++)
        record.box[d] = 1;
    for (unsigned i = 0; i < tensor->rank; i++)
        record.box[dimension_of(tensor, i)] = (int32_t)box[i];
    record.box[0] = row_elements(tensor, box[0]);
    write_record(map, &record);
    return CUDA_SUCCESS;
}

/* Corners have 16 bits in tensors with one dimension of space, 8 with two, and 5 with three. */
static bool fits_corner(int corner, cuuint32_t rank)
{
    const int limit = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;

    return corner >= -limit && corner < limit;
}

static CUresult check_image(const struct ct_tensor *tensor, const struct ct_tensor_image *image)
{
    const cuuint64_t *space = tensor->interleave ? tensor->sizes : tensor->sizes + 1;

    if (!image->lower || !image->upper)
        return invalid("a null pointer");
    for (cuuint32_t i = 0; i + 2 < tensor->rank; i++) {
        const int64_t last = (int64_t)space[i] - 1;

        if (!fits_corner(image->lower[i], tensor->rank) || !fits_corner(image->upper[i], tensor->rank))
            return invalid("a corner of the bounding box is out of range");
        if (image->lower[i] > last + image->upper[i])
            return invalid("the bounding box is empty");
    }
    if (!image->pixels || image->pixels > MAX_PIXELS)
        return invalid("a column has 1 to 1024 pixels");
    if ((uint64_t)image->pixels * image->channels * types[tensor->type].bytes > MAX_BOX_BYTES)
        return invalid("a column is larger than shared memory");
    return check_row(tensor, image->channels);
}

CUresult ct_tensor_map_image(CUtensorMap *map, const struct ct_tensor *tensor, const struct ct_tensor_image *image)
{
    CUresult r = check_tensor(map, tensor, 3);
    struct ptx2spv_tensor_map record;

    if (r == CUDA_SUCCESS)
        r = check_image(tensor, image);
    if (r != CUDA_SUCCESS)
        return r;
    record = record_of(tensor);
    record.pixels = image->pixels;
    record.box[0] = row_elements(tensor, image->channels);
    for (cuuint32_t i = 0; i + 2 < tensor->rank; i++) {
        record.box[1 + i] = image->lower[i];
        record.box[4 + i] = (int32_t)record.last[1 + i] + image->upper[i];
    }
    write_record(map, &record);
    return CUDA_SUCCESS;
}

CUresult ct_tensor_map_move(CUtensorMap *map, void *address)
{
    struct ptx2spv_tensor_map record;

    if (!map || (uintptr_t)map % MAP_ALIGNMENT)
        return invalid("a tensor map is aligned to 64 bytes");
    memcpy(&record, map, sizeof record);
    if (record.mark != PTX2SPV_TENSOR_MARK)
        return invalid("this is no tensor map");
    if (!address || (uintptr_t)address % PIECE_BYTES)
        return invalid("a tensor is aligned to 16 bytes");
    record.address = (uintptr_t)address;
    memcpy(map, &record, sizeof record);
    return CUDA_SUCCESS;
}
