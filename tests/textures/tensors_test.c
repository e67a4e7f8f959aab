/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of tensors (PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor") by maps of the driver API. The expectations follow the
 * manuals' definitions, element by element. Runs with NVIDIA's driver on sm_90, too. */
#include "api_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SHARED_BYTES = 16384, TENSOR_BYTES = 65536, THREADS = 64, MAX_RANK = 5 };

struct tensor_case {
    CUtensorMapDataType type;
    uint32_t bytes, rank;
    uint64_t sizes[MAX_RANK], strides[MAX_RANK - 1];
    uint32_t box[MAX_RANK], steps[MAX_RANK];
    CUtensorMapSwizzle swizzle;
    CUtensorMapFloatOOBfill fill;
    int at[MAX_RANK];
    CUtensorMapInterleave interleave;
};

#define U8 CU_TENSOR_MAP_DATA_TYPE_UINT8, 1
#define U16 CU_TENSOR_MAP_DATA_TYPE_UINT16, 2
#define U32 CU_TENSOR_MAP_DATA_TYPE_UINT32, 4
#define S32 CU_TENSOR_MAP_DATA_TYPE_INT32, 4
#define U64 CU_TENSOR_MAP_DATA_TYPE_UINT64, 8
#define F16 CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2
#define F32 CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4
#define F64 CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8
#define BF16 CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2
#define ZERO CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
#define NAN_FILL CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
#define S(n) CU_TENSOR_MAP_SWIZZLE_##n
#define I(n) CU_TENSOR_MAP_INTERLEAVE_##n

static const struct tensor_case cases[] = {
    {U32, 1, {100}, {0}, {32}, {1}, S(NONE), ZERO, {0}, I(NONE)},
    {U32, 1, {100}, {0}, {32}, {1}, S(NONE), ZERO, {7}, I(NONE)},
    {U32, 1, {100}, {0}, {32}, {1}, S(NONE), ZERO, {-5}, I(NONE)},
    {U32, 1, {100}, {0}, {32}, {1}, S(NONE), ZERO, {90}, I(NONE)},
    {U32, 1, {100}, {0}, {32}, {1}, S(NONE), ZERO, {1000}, I(NONE)},
    {U8, 1, {1001}, {0}, {256}, {1}, S(NONE), ZERO, {-3}, I(NONE)},
    {U16, 2, {33, 17}, {80}, {16, 8}, {1, 1}, S(NONE), ZERO, {0, 0}, I(NONE)},
    {U16, 2, {33, 17}, {80}, {16, 8}, {1, 1}, S(32B), ZERO, {8, 9}, I(NONE)},
    {U16, 2, {33, 17}, {80}, {32, 8}, {1, 1}, S(64B), ZERO, {5, 12}, I(NONE)},
    {U8, 2, {200, 40}, {208}, {128, 24}, {1, 1}, S(128B), ZERO, {16, 8}, I(NONE)},
    {U8, 2, {200, 40}, {208}, {128, 24}, {1, 1}, S(128B), ZERO, {-13, 30}, I(NONE)},
    {F16, 2, {64, 64}, {128}, {64, 64}, {1, 1}, S(128B), ZERO, {0, 0}, I(NONE)},
    {F32, 2, {40, 9}, {160}, {32, 8}, {1, 1}, S(NONE), NAN_FILL, {20, -3}, I(NONE)},
    {F16, 2, {40, 9}, {80}, {32, 8}, {1, 1}, S(NONE), NAN_FILL, {30, 4}, I(NONE)},
    {U64, 3, {6, 5, 4}, {48, 240}, {4, 3, 2}, {1, 1, 1}, S(NONE), ZERO, {1, 1, 1}, I(NONE)},
    {U64, 3, {6, 5, 4}, {64, 320}, {4, 3, 4}, {1, 1, 1}, S(NONE), ZERO, {-1, 3, 2}, I(NONE)},
    {S32, 3, {20, 9, 11}, {80, 720}, {8, 9, 8}, {1, 2, 3}, S(NONE), ZERO, {4, 0, 0}, I(NONE)},
    {S32, 3, {20, 9, 11}, {80, 720}, {8, 7, 8}, {1, 3, 5}, S(32B), ZERO, {4, -1, 2}, I(NONE)},
    {U32, 4, {9, 5, 4, 3}, {48, 240, 960}, {8, 3, 2, 2}, {1, 1, 1, 1}, S(NONE), ZERO, {0, 1, 2, 1}, I(NONE)},
    {F64, 5, {5, 4, 3, 3, 2}, {48, 192, 576, 1728}, {4, 3, 2, 2, 2}, {1, 1, 1, 1, 1}, S(NONE), ZERO, {1, 2, 2, -1, 0}, I(NONE)},
    {U8, 5, {32, 3, 3, 3, 3}, {32, 96, 288, 864}, {16, 2, 2, 3, 2}, {1, 1, 1, 2, 1}, S(NONE), ZERO, {9, 2, 1, 0, 1}, I(NONE)},
};

static const struct tensor_case atoms[] = {
    {U8, 2, {256, 40}, {256}, {128, 24}, {1, 1}, S(128B_ATOM_32B), ZERO, {16, 8}, I(NONE)},
    {F16, 2, {64, 64}, {128}, {64, 64}, {1, 1}, S(128B_ATOM_32B), ZERO, {0, 0}, I(NONE)},
    {U32, 3, {40, 9, 5}, {160, 1440}, {16, 4, 3}, {1, 1, 1}, S(128B_ATOM_32B), ZERO, {4, 2, 1}, I(NONE)},
    {U8, 2, {256, 40}, {256}, {128, 24}, {1, 1}, S(128B_ATOM_32B_FLIP_8B), ZERO, {16, 8}, I(NONE)},
    {U64, 2, {16, 17}, {128}, {16, 16}, {1, 1}, S(128B_ATOM_32B_FLIP_8B), ZERO, {2, 3}, I(NONE)},
    {U8, 2, {256, 40}, {256}, {128, 24}, {1, 1}, S(128B_ATOM_64B), ZERO, {16, 8}, I(NONE)},
    {F32, 2, {32, 33}, {128}, {32, 32}, {1, 1}, S(128B_ATOM_64B), ZERO, {0, 0}, I(NONE)},
};

/* Dimensions W, H, D, C and N, of which H and D may be missing. W and C count slices. */
static const struct tensor_case interleaved[] = {
    {U16, 3, {9, 4, 3}, {160, 672}, {8, 1, 2}, {1, 1, 1}, S(NONE), ZERO, {0, 1, 0}, I(16B)},
    {U16, 3, {9, 4, 3}, {160, 672}, {8, 1, 2}, {1, 1, 1}, S(NONE), ZERO, {1, 3, 1}, I(16B)},
    {U64, 3, {9, 4, 3}, {160, 672}, {2, 1, 2}, {1, 1, 1}, S(NONE), ZERO, {5, 2, 1}, I(16B)},
    {U8, 4, {8, 5, 3, 2}, {128, 640, 1920}, {16, 3, 1, 2}, {1, 1, 1, 1}, S(NONE), ZERO, {2, 1, 1, 0}, I(16B)},
    {U32, 5, {6, 5, 4, 3, 2}, {96, 480, 1920, 5760}, {4, 3, 2, 1, 2}, {1, 1, 1, 1, 1}, S(NONE), ZERO, {1, 1, 1, 2, 0}, I(16B)},
    {U64, 4, {8, 5, 3, 2}, {128, 640, 1920}, {4, 3, 1, 2}, {1, 1, 1, 1}, S(NONE), ZERO, {5, 3, 2, 1}, I(16B)},
    {U16, 4, {8, 5, 3, 2}, {128, 640, 1920}, {8, 3, 1, 2}, {1, 1, 1, 1}, S(NONE), ZERO, {-2, -1, 1, 0}, I(16B)},
    {U16, 3, {9, 4, 3}, {160, 672}, {8, 1, 2}, {1, 1, 1}, S(NONE), ZERO, {0, 4, 0}, I(16B)},
    {F32, 4, {8, 5, 3, 2}, {128, 640, 1920}, {4, 3, 1, 2}, {1, 1, 1, 1}, S(NONE), NAN_FILL, {6, 4, 2, 1}, I(16B)},
    {U16, 4, {8, 9, 3, 2}, {128, 1152, 3456}, {8, 7, 1, 2}, {2, 3, 1, 1}, S(NONE), ZERO, {1, 2, 1, 0}, I(16B)},
    {U16, 3, {9, 4, 3}, {160, 672}, {8, 3, 2}, {1, 1, 1}, S(NONE), ZERO, {0, 1, 0}, I(16B)}, /* one slice all the same */
    {U16, 4, {6, 4, 3, 2}, {192, 768, 2304}, {8, 2, 1, 2}, {1, 1, 1, 1}, S(32B), ZERO, {1, 1, 2, 0}, I(32B)},
    {F32, 5, {4, 3, 3, 2, 3}, {128, 384, 1152, 2304}, {4, 2, 2, 1, 2}, {1, 1, 1, 1, 1}, S(32B), NAN_FILL, {2, 1, 2, 1, 1}, I(32B)},
    {U8, 3, {20, 3, 2}, {640, 1920}, {16, 1, 2}, {1, 1, 1}, S(32B), ZERO, {3, 1, 0}, I(32B)},
    {U16, 4, {9, 9, 3, 2}, {288, 2592, 7776}, {8, 8, 1, 2}, {1, 1, 1, 1}, S(NONE), ZERO, {-1, 0, 1, 0}, I(32B)},
    {U16, 4, {9, 9, 3, 2}, {288, 2592, 7776}, {8, 8, 1, 2}, {1, 1, 1, 1}, S(64B), ZERO, {0, 1, 1, 0}, I(32B)},
    {U16, 4, {9, 9, 3, 2}, {288, 2592, 7776}, {8, 8, 1, 2}, {1, 1, 1, 1}, S(128B), ZERO, {0, 1, 1, 0}, I(32B)},
    {U16, 4, {8, 9, 3, 2}, {128, 1152, 3456}, {8, 8, 1, 2}, {1, 1, 1, 1}, S(32B), ZERO, {0, 1, 1, 0}, I(16B)},
    {U16, 4, {8, 9, 3, 2}, {128, 1152, 3456}, {8, 8, 1, 2}, {1, 1, 1, 1}, S(64B), ZERO, {0, 1, 1, 0}, I(16B)},
    {U16, 4, {8, 9, 3, 2}, {128, 1152, 3456}, {8, 8, 1, 2}, {1, 1, 1, 1}, S(128B), ZERO, {0, 1, 1, 0}, I(16B)},
};

/* ---- kernels ---- */

static const char load_text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes, .param .align 4 .b8 at[20], .param .align 4 .b8 "
    "by[12])\n{\n"
    "    .shared .align 1024 .b8 box[16384];\n    .shared .align 8 .b64 barrier;\n"
    "    .reg .pred %%p;\n    .reg .b16 %%h<4>;\n    .reg .b32 %%r<20>;\n    .reg .b64 %%d<9>;\n"
    "    mov.b64 %%d1, map;\n    cvta.param.u64 %%d1, %%d1;\n    ld.param.u64 %%d2, [out];\n    ld.param.u32 %%r1, [bytes];\n"
    "    ld.param.u32 %%r2, [at];\n    ld.param.u32 %%r3, [at+4];\n    ld.param.u32 %%r4, [at+8];\n    ld.param.u32 %%r5, [at+12];\n"
    "    ld.param.u32 %%r6, [at+16];\n    ld.param.u16 %%h0, [by];\n    ld.param.u16 %%h1, [by+4];\n    ld.param.u16 %%h2, [by+8];\n"
    "    mov.u32 %%r7, %%tid.x;\n    mov.u32 %%r8, box;\n    setp.ne.u32 %%p, %%r7, 0;\n    @%%p bra start;\n"
    "    mbarrier.init.shared::cta.b64 [barrier], 1;\n    fence.mbarrier_init.release.cluster;\n"
    "start:\n    bar.sync 0;\n    @%%p bra wait;\n    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], %%r1;\n"
    "    cp.async.bulk.tensor.%ud.shared::cluster.global%s.mbarrier::complete_tx::bytes [box], [%%d1, {%s}], [barrier]%s;\n"
    "wait:\n    mbarrier.try_wait.parity.shared::cta.b64 %%p, [barrier], 0;\n    @!%%p bra wait;\n    shl.b32 %%r9, %%r7, 2;\n"
    "copy:\n    setp.ge.u32 %%p, %%r9, %%r1;\n    @%%p bra end;\n    add.u32 %%r10, %%r9, %%r8;\n    ld.shared.u32 %%r11, [%%r10];\n"
    "    cvt.u64.u32 %%d3, %%r9;\n    add.u64 %%d3, %%d3, %%d2;\n    st.global.u32 [%%d3], %%r11;\n    add.u32 %%r9, %%r9, 256;\n"
    "    bra copy;\nend:\n    ret;\n}\n";

/* The map goes through shared memory to global memory, where the copy reads it. */
static const char moved_map_text[] =
    ".version 8.3\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 scratch, .param .u32 bytes)\n{\n"
    "    .shared .align 1024 .b8 box[16384];\n    .shared .align 128 .b8 copied[128];\n    .shared .align 8 .b64 barrier;\n"
    "    .reg .pred %p;\n    .reg .b32 %r<20>;\n    .reg .b64 %d<9>;\n"
    "    mov.b64 %d1, map;\n    cvta.param.u64 %d1, %d1;\n    ld.param.u64 %d2, [out];\n    ld.param.u32 %r1, [bytes];\n"
    "    ld.param.u64 %d4, [scratch];\n    mov.u32 %r2, 0;\n    mov.u32 %r7, %tid.x;\n    mov.u32 %r8, box;\n"
    "    setp.ge.u32 %p, %r7, 32;\n    @%p bra start;\n"
    "    mul.wide.u32 %d3, %r7, 4;\n    add.u64 %d3, %d3, %d1;\n    ld.u32 %r3, [%d3];\n    mov.u32 %r4, copied;\n"
    "    mad.lo.u32 %r4, %r7, 4, %r4;\n    st.shared.u32 [%r4], %r3;\n    bar.warp.sync 0xffffffff;\n"
    "    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d4], [copied], 128;\n"
    "    setp.ne.u32 %p, %r7, 0;\n    @%p bra start;\n"
    "    mbarrier.init.shared::cta.b64 [barrier], 1;\n    fence.mbarrier_init.release.cluster;\n"
    "start:\n    bar.sync 0;\n    setp.ne.u32 %p, %r7, 0;\n    @%p bra wait;\n"
    "    fence.proxy.tensormap::generic.acquire.gpu [%d4], 128;\n"
    "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], %r1;\n"
    "    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%d4, {%r2}], [barrier];\n"
    "wait:\n    mbarrier.try_wait.parity.shared::cta.b64 %p, [barrier], 0;\n    @!%p bra wait;\n    shl.b32 %r9, %r7, 2;\n"
    "copy:\n    setp.ge.u32 %p, %r9, %r1;\n    @%p bra end;\n    add.u32 %r10, %r9, %r8;\n    ld.shared.u32 %r11, [%r10];\n"
    "    cvt.u64.u32 %d3, %r9;\n    add.u64 %d3, %d3, %d2;\n    st.global.u32 [%d3], %r11;\n    add.u32 %r9, %r9, 256;\n"
    "    bra copy;\nend:\n    ret;\n}\n";

static const char put_text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, .param .u32 bytes, .param .align 4 .b8 at[20])\n{\n"
    "    .shared .align 1024 .b8 box[16384];\n"
    "    .reg .pred %%p;\n    .reg .b32 %%r<20>;\n    .reg .b64 %%d<9>;\n"
    "    mov.b64 %%d1, map;\n    cvta.param.u64 %%d1, %%d1;\n    ld.param.u64 %%d2, [in];\n    ld.param.u32 %%r1, [bytes];\n"
    "    ld.param.u32 %%r2, [at];\n    ld.param.u32 %%r3, [at+4];\n    ld.param.u32 %%r4, [at+8];\n    ld.param.u32 %%r5, [at+12];\n"
    "    ld.param.u32 %%r6, [at+16];\n    mov.u32 %%r7, %%tid.x;\n    mov.u32 %%r8, box;\n    shl.b32 %%r9, %%r7, 2;\n"
    "copy:\n    setp.ge.u32 %%p, %%r9, %%r1;\n    @%%p bra copied;\n    add.u32 %%r10, %%r9, %%r8;\n    cvt.u64.u32 %%d3, %%r9;\n"
    "    add.u64 %%d3, %%d3, %%d2;\n    ld.global.u32 %%r11, [%%d3];\n    st.shared.u32 [%%r10], %%r11;\n    add.u32 %%r9, %%r9, 256;\n"
    "    bra copy;\ncopied:\n    fence.proxy.async.shared::cta;\n    bar.sync 0;\n    setp.ne.u32 %%p, %%r7, 0;\n    @%%p bra end;\n"
    "    %s.async.bulk.tensor.%ud.global.shared::cta%s.bulk_group [%%d1, {%s}], [box];\n"
    "    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\nend:\n    ret;\n}\n";

static const char *const coordinate_lists[] = {"", "%r2", "%r2, %r3", "%r2, %r3, %r4", "%r2, %r3, %r4, %r5", "%r2, %r3, %r4, %r5, %r6"};

static CUfunction load_kernel(CUmodule *module, const char *text)
{
    CUfunction kernel;

    if (cuModuleLoadData(module, text) != CUDA_SUCCESS)
        fail_msg("does not load: %s", text);
    assert_int_equal(cuModuleGetFunction(&kernel, *module, "k"), CUDA_SUCCESS);
    return kernel;
}

/* An H100 ends kernels whose first column is not at a multiple of 16 bytes (CUDA_ERROR_ILLEGAL_INSTRUCTION). The manuals do not say so, and here
 * such copies are as good as others. */
static bool can_run(const struct tensor_case *c)
{
    return on_cuttle() || c->interleave || c->at[0] * (int)c->bytes % 16 == 0;
}

static void launch(const char *text, void **params)
{
    CUmodule module;
    CUfunction kernel = load_kernel(&module, text);

    assert_int_equal(cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

/* ---- the model ---- */

static uint8_t tensor[TENSOR_BYTES], box[SHARED_BYTES], found[TENSOR_BYTES];

static void fill(uint8_t *bytes, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

static uint32_t slice_bytes(CUtensorMapInterleave interleave)
{
    return interleave == I(32B) ? 32 : 16;
}

/* What coordinate 0 counts: an element or a slice. */
static uint32_t unit_bytes(const struct tensor_case *c)
{
    return c->interleave ? slice_bytes(c->interleave) : c->bytes;
}

static uint32_t count_of(const struct tensor_case *c, uint32_t i)
{
    if (i >= c->rank || (c->interleave && i == c->rank - 2))
        return 1;
    return i || c->interleave ? (c->box[i] + c->steps[i] - 1) / c->steps[i] : c->box[0];
}

static uint32_t box_bytes(const struct tensor_case *c)
{
    uint32_t bytes = unit_bytes(c);

    for (uint32_t i = 0; i < MAX_RANK; i++)
        bytes *= count_of(c, i);
    return bytes;
}

/* Where byte `offset` of a box lies in shared memory. */
static uint32_t swizzled(CUtensorMapSwizzle swizzle, uint32_t offset)
{
    const uint32_t row = offset / 128, chunk = offset / 16 % 8;

    switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B:
        return row * 128 + (chunk ^ row % 2) * 16 + offset % 16;
    case CU_TENSOR_MAP_SWIZZLE_64B:
        return row * 128 + (chunk ^ row % 4) * 16 + offset % 16;
    case CU_TENSOR_MAP_SWIZZLE_128B:
        return row * 128 + (chunk ^ row % 8) * 16 + offset % 16;
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
        return row * 128 + (chunk / 2 ^ row % 4) * 32 + offset % 32;
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B:
        return row * 128 + (chunk / 2 ^ row % 4) * 32 + (offset % 32 ^ row % 2 * 8);
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B:
        return row * 128 + (chunk / 4 ^ row % 2) * 64 + offset % 64;
    default:
        return offset;
    }
}

/* The address in the tensor of element n of the box; NULL if it is outside. */
static uint8_t *element_or_null(const struct tensor_case *c, uint32_t n)
{
    const uint32_t units = unit_bytes(c) / c->bytes;
    uint64_t offset = n % units * c->bytes;

    n /= units;
    for (uint32_t i = 0; i < c->rank; i++) {
        const int64_t x = c->at[i] + (int64_t)(n % count_of(c, i)) * (i || c->interleave ? c->steps[i] : 1);

        n /= count_of(c, i);
        if (x < 0 || (uint64_t)x >= c->sizes[i])
            return NULL;
        offset += (uint64_t)x * (i ? c->strides[i - 1] : unit_bytes(c));
    }
    return tensor + offset;
}

/* Whether an element of a half or a float is NaN. */
static bool is_nan(const struct tensor_case *c, const uint8_t *element)
{
    uint32_t word = 0;

    memcpy(&word, element, c->bytes);
    return c->bytes == 2 ? (word & 0x7fff) > 0x7c00 : (word & 0x7fffffff) > 0x7f800000;
}

static CUtensorMap map_of(const struct tensor_case *c, CUdeviceptr memory)
{
    CUtensorMap map;

    assert_int_equal(cuTensorMapEncodeTiled(&map, c->type, c->rank, (void *)memory, c->sizes, c->strides, c->box, c->steps, c->interleave,
                                            c->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, c->fill),
                     CUDA_SUCCESS);
    return map;
}

/* NVIDIA's driver encodes the larger atoms for later devices only: it refuses them on an H200, with CUDA_ERROR_INVALID_VALUE. */
static void skip_unless_atoms(void)
{
    const struct tensor_case *c = &atoms[0];
    CUtensorMap map;

    if (!on_cuttle() && cuTensorMapEncodeTiled(&map, c->type, c->rank, (void *)0x10000, c->sizes, c->strides, c->box, c->steps,
                                               c->interleave, c->swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, c->fill) != CUDA_SUCCESS) {
        print_message("the driver refuses larger atoms of swizzling for this device\n");
        skip();
    }
}

static CUdeviceptr allocate(const void *contents, size_t bytes)
{
    CUdeviceptr memory;

    assert_int_equal(cuMemAlloc(&memory, bytes), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyHtoD(memory, contents, bytes), CUDA_SUCCESS);
    return memory;
}

/* ---- loads ---- */

static void check_loaded(const struct tensor_case *c, size_t number)
{
    static const uint8_t zeros[8];

    for (uint32_t n = 0; n < box_bytes(c) / c->bytes; n++) {
        const uint8_t *got = found + swizzled(c->swizzle, n * c->bytes), *want = element_or_null(c, n);

        if (!want && c->fill ? !is_nan(c, got) : memcmp(got, want ? want : zeros, c->bytes) != 0)
            fail_msg("case %zu, element %u of the box is wrong", number, n);
    }
}

static void check_loads(const struct tensor_case *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tensor_case *c = &all[i];
        char text[sizeof load_text + 200];
        CUdeviceptr memory, out;
        CUtensorMap map;
        uint32_t bytes = box_bytes(c), by[3] = {0};
        int at[MAX_RANK];
        void *params[] = {&map, &out, &bytes, at, by};

        if (!can_run(c))
            continue;
        memcpy(at, c->at, sizeof at);
        fill(tensor, sizeof tensor, (uint32_t)i);
        memory = allocate(tensor, sizeof tensor);
        out = allocate(tensor, SHARED_BYTES);
        map = map_of(c, memory);
        snprintf(text, sizeof text, load_text, c->rank, i & 1 ? ".tile" : "", coordinate_lists[c->rank], "");
        launch(text, params);
        assert_int_equal(cuMemcpyDtoH(found, out, bytes), CUDA_SUCCESS);
        check_loaded(c, i);
        assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
        assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    }
}

static void test_loads(void **state)
{
    (void)state;
    check_loads(cases, sizeof cases / sizeof *cases);
}

static void test_loads_in_larger_atoms(void **state)
{
    (void)state;
    skip_unless_atoms();
    check_loads(atoms, sizeof atoms / sizeof *atoms);
}

static void test_interleaved_loads(void **state)
{
    (void)state;
    check_loads(interleaved, sizeof interleaved / sizeof *interleaved);
}

/* ---- stores and reductions ---- */

static uint64_t read(const uint8_t *from, uint32_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, from, bytes);
    return value;
}

static bool is_float(CUtensorMapDataType type)
{
    return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 || type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ||
           type == CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
}

/* Numbers that every type has, and that have the same sums in every type: quarters from -16 to 16. */
static uint64_t bits_of(CUtensorMapDataType type, double number)
{
    const float single = (float)number;
    const _Float16 half = (_Float16)number;
    uint16_t half_bits;
    uint32_t single_bits;
    uint64_t bits;

    memcpy(&half_bits, &half, sizeof half);
    memcpy(&single_bits, &single, sizeof single);
    memcpy(&bits, &number, sizeof number);
    return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT64    ? bits
           : type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32  ? single_bits
           : type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 ? single_bits >> 16
                                                      : half_bits;
}

static double number_of(CUtensorMapDataType type, uint64_t bits)
{
    for (int quarters = -128; quarters <= 128; quarters++)
        if (bits_of(type, quarters / 4.0) == bits)
            return quarters / 4.0;
    fail_msg("0x%llx is no number of this test", (unsigned long long)bits);
    return 0;
}

static void fill_numbers(CUtensorMapDataType type, uint32_t bytes, uint8_t *to, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i += bytes) {
        uint64_t bits;

        seed = seed * 1664525 + 1013904223;
        bits = bits_of(type, ((int)(seed >> 24) % 129 - 64) / 4.0);
        memcpy(to + i, &bits, bytes);
    }
}

static uint64_t combined_numbers(CUtensorMapDataType type, const char *operation, double old, double value)
{
    if (!strcmp(operation, "add"))
        return bits_of(type, old + value);
    return bits_of(type, (old < value) == !strcmp(operation, "min") ? old : value);
}

static uint64_t combined(CUtensorMapDataType type, const char *operation, uint64_t old, uint64_t value)
{
    if (!operation)
        return value;
    if (is_float(type))
        return combined_numbers(type, operation, number_of(type, old), number_of(type, value));
    if (!strcmp(operation, "add"))
        return old + value;
    if (!strcmp(operation, "xor"))
        return old ^ value;
    if (!strcmp(operation, "and"))
        return old & value;
    if (!strcmp(operation, "or"))
        return old | value;
    if (!strcmp(operation, "inc"))
        return old >= value ? 0 : old + 1;
    if (!strcmp(operation, "dec"))
        return old == 0 || old > value ? value : old - 1;
    const bool is_less = type == CU_TENSOR_MAP_DATA_TYPE_INT32 ? (int32_t)old < (int32_t)value : old < value;
    return is_less == !strcmp(operation, "min") ? old : value;
}

/* An H200 also ends kernels that store to a box which begins before the tensor, and it stores whole units of 16 bytes, so it changes what follows a row that
 * ends within one. The manuals do not say so. */
static bool can_store_at(const int *at, uint32_t rank)
{
    bool is_before = false;

    for (uint32_t i = 0; i < rank; i++)
        is_before |= at[i] < 0;
    return on_cuttle() || !is_before;
}

static bool can_store(const struct tensor_case *c)
{
    return can_run(c) && can_store_at(c->at, c->rank) && (on_cuttle() || c->interleave || c->sizes[0] * c->bytes % 16 == 0);
}

/* operation: NULL for a store. Does nothing where the device cannot carry it out. */
static void check_put(const struct tensor_case *c, const char *operation)
{
    char text[sizeof put_text + 200], words[16];
    CUdeviceptr memory, in;
    CUtensorMap map;
    uint32_t bytes = box_bytes(c);
    int at[MAX_RANK];
    void *params[] = {&map, &in, &bytes, at};

    if (!can_store(c))
        return;
    memcpy(at, c->at, sizeof at);
    fill(tensor, sizeof tensor, 7);
    fill(box, sizeof box, 77);
    if (operation && is_float(c->type)) {
        fill_numbers(c->type, c->bytes, tensor, sizeof tensor, 7);
        fill_numbers(c->type, c->bytes, box, sizeof box, 77);
    }
    memory = allocate(tensor, sizeof tensor);
    in = allocate(box, sizeof box);
    map = map_of(c, memory);
    snprintf(words, sizeof words, "%s%s", operation ? "." : "", operation ? operation : "");
    snprintf(text, sizeof text, put_text, operation ? "cp.reduce" : "cp", c->rank, words, coordinate_lists[c->rank]);
    launch(text, params);
    assert_int_equal(cuMemcpyDtoH(found, memory, sizeof found), CUDA_SUCCESS);
    for (uint32_t n = 0; n < bytes / c->bytes; n++) {
        uint8_t *to = element_or_null(c, n);
        const uint64_t value = read(box + swizzled(c->swizzle, n * c->bytes), c->bytes);

        if (to) {
            const uint64_t result = combined(c->type, operation, read(to, c->bytes), value);

            memcpy(to, &result, c->bytes);
        }
    }
    for (size_t i = 0; i < sizeof tensor; i++)
        if (found[i] != tensor[i])
            fail_msg("%s, type %d, rank %u: byte %zu is 0x%x instead of 0x%x", operation ? operation : "store", (int)c->type, c->rank, i,
                     found[i], tensor[i]);
    assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(in), CUDA_SUCCESS);
}

static void test_stores(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_put(&cases[i], NULL);
}

static void test_stores_from_larger_atoms(void **state)
{
    (void)state;
    skip_unless_atoms();
    for (size_t i = 0; i < sizeof atoms / sizeof *atoms; i++)
        if (atoms[i].swizzle != S(128B_ATOM_32B_FLIP_8B)) /* of loads only */
            check_put(&atoms[i], NULL);
}

static void test_interleaved_stores(void **state)
{
    static const struct tensor_case sum = {U32,          4,       {8, 5, 3, 2}, {128, 640, 1920}, {4, 3, 1, 2},
                                           {1, 1, 1, 1}, S(NONE), ZERO,         {5, 3, 1, 0},     I(16B)};
    static const struct tensor_case most = {S32,          4,      {6, 4, 3, 2}, {192, 768, 2304}, {4, 2, 1, 2},
                                            {1, 1, 1, 1}, S(32B), ZERO,         {1, 1, 2, 0},     I(32B)};
    static const struct tensor_case halves = {F16, 3, {9, 4, 3}, {160, 672}, {8, 1, 2}, {1, 1, 1}, S(NONE), ZERO, {2, 1, 1}, I(16B)};

    (void)state;
    for (size_t i = 0; i < sizeof interleaved / sizeof *interleaved; i++)
        check_put(&interleaved[i], NULL);
    check_put(&sum, "add");
    check_put(&most, "max");
    check_put(&halves, "add");
}

static void test_reductions(void **state)
{
    static const char *const operations[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
    static const struct tensor_case words = {U32, 2, {32, 17}, {144}, {16, 8}, {1, 1}, S(64B), ZERO, {20, 12}, I(NONE)};
    static const struct tensor_case integers = {S32, 2, {33, 17}, {144}, {16, 8}, {1, 1}, S(NONE), ZERO, {-3, 2}, I(NONE)};
    static const struct tensor_case aligned = {S32, 2, {32, 17}, {144}, {16, 8}, {1, 1}, S(NONE), ZERO, {20, 2}, I(NONE)};
    static const struct tensor_case wide = {U64, 2, {9, 17}, {80}, {8, 8}, {1, 1}, S(NONE), ZERO, {5, -2}, I(NONE)};

    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const bool counts = operations[i][2] == 'c'; /* inc, dec */

        check_put(&words, operations[i]);
        if (i < 3) {
            check_put(&integers, operations[i]);
            check_put(&aligned, operations[i]);
        }
        if (!counts)
            check_put(&wide, operations[i]);
    }
}

static void test_reductions_of_floats(void **state)
{
    static const struct tensor_case f16 = {F16, 2, {32, 17}, {80}, {16, 8}, {1, 1}, S(32B), ZERO, {24, 12}, I(NONE)};
    static const struct tensor_case bf16 = {BF16, 2, {32, 17}, {80}, {16, 8}, {1, 1}, S(NONE), ZERO, {24, 3}, I(NONE)};
    static const struct tensor_case f32 = {F32, 2, {32, 17}, {144}, {16, 8}, {1, 1}, S(64B), ZERO, {20, 12}, I(NONE)};
    static const struct tensor_case f64 = {F64, 2, {8, 17}, {80}, {8, 8}, {1, 1}, S(NONE), ZERO, {6, 12}, I(NONE)};
    static const char *const operations[] = {"add", "min", "max"};

    (void)state;
    check_put(&f32, "add");
    check_put(&f64, "add");
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        check_put(&f16, operations[i]);
        check_put(&bf16, operations[i]);
    }
}

/* ---- im2col ---- */

struct image_case {
    uint32_t rank;
    uint64_t sizes[MAX_RANK];
    int lower[3], upper[3];
    uint32_t channels, pixels, steps[MAX_RANK];
    int at[MAX_RANK];
    uint32_t by[3];
    CUtensorMapInterleave interleave;
};

static const struct image_case images[] = {
    {3, {8, 10, 3}, {-1}, {-1}, 8, 12, {1, 1, 1}, {0, -1, 0}, {0}, I(NONE)},
    {3, {8, 10, 3}, {-1}, {-1}, 4, 12, {1, 2, 1}, {4, -1, 1}, {2}, I(NONE)},
    {4, {8, 6, 5, 3}, {-1, -1}, {-1, -1}, 8, 40, {1, 1, 1, 1}, {0, -1, -1, 0}, {0, 0}, I(NONE)},
    {4, {8, 6, 5, 3}, {-1, -1}, {-1, -1}, 8, 40, {1, 1, 1, 1}, {0, 2, 1, 0}, {2, 1}, I(NONE)},
    {4, {8, 6, 5, 3}, {0, -1}, {0, -2}, 8, 30, {1, 2, 1, 1}, {0, 0, -1, 1}, {0, 2}, I(NONE)},
    {5, {4, 4, 3, 3, 2}, {-1, 0, -1}, {-1, 0, 0}, 4, 50, {1, 1, 1, 1, 1}, {0, -1, 0, -1, 0}, {1, 0, 1}, I(NONE)},
    {3, {8, 10, 3}, {0}, {0}, 8, 12, {1, 1, 1}, {0, 2, 0}, {0}, I(NONE)},
    {4, {8, 6, 5, 3}, {0, 0}, {0, 0}, 8, 40, {1, 1, 1, 1}, {0, 1, 1, 0}, {0, 0}, I(NONE)},
};

/* Dimensions W, H, D, C and N, as of tiles. A pixel is one slice, whatever the number of channels is. */
static const struct image_case interleaved_images[] = {
    {3, {10, 2, 3}, {-1}, {-1}, 4, 12, {1, 1, 1}, {-1, 1, 0}, {0}, I(16B)},
    {4, {6, 5, 2, 3}, {-1, -1}, {-1, -1}, 4, 40, {1, 1, 1, 1}, {2, 1, 1, 0}, {2, 1}, I(16B)},
    {5, {4, 3, 3, 2, 2}, {-1, 0, -1}, {-1, 0, 0}, 4, 50, {1, 1, 1, 1, 1}, {-1, 0, -1, 1, 0}, {1, 0, 1}, I(16B)},
    {4, {6, 5, 2, 3}, {0, -1}, {0, -2}, 8, 30, {2, 1, 1, 1}, {0, -1, 1, 1}, {0, 2}, I(32B)},
    {3, {10, 2, 3}, {0}, {0}, 8, 12, {1, 1, 1}, {2, 1, 0}, {0}, I(16B)},
    {4, {6, 5, 2, 3}, {0, 0}, {0, 0}, 8, 40, {1, 1, 1, 1}, {1, 1, 1, 0}, {0, 0}, I(32B)},
};

/* The words of a pixel: elements have 32 bits. */
static uint32_t pixel_words(const struct image_case *c)
{
    return c->interleave ? slice_bytes(c->interleave) / 4 : c->channels;
}

static CUtensorMapSwizzle image_swizzle(const struct image_case *c)
{
    return c->interleave == I(32B) ? S(32B) : S(NONE);
}

static uint32_t first_of_space(const struct image_case *c)
{
    return c->interleave ? 0 : 1;
}

/* The place of word `ch` of the pixel at a position in the image, without padding; NULL if it is outside. */
static uint8_t *image_word_or_null(const struct image_case *c, const int *at, uint32_t ch)
{
    uint64_t index = c->interleave ? ch : (uint64_t)c->at[0] + ch, distance = c->interleave ? pixel_words(c) : c->sizes[0];

    if (!c->interleave && index >= c->sizes[0])
        return NULL;
    for (uint32_t i = first_of_space(c); i < c->rank; i++) {
        if (at[i] < 0 || (uint64_t)at[i] >= c->sizes[i])
            return NULL;
        index += (uint64_t)at[i] * distance;
        distance *= c->sizes[i];
    }
    return tensor + 4 * index;
}

static void advance(const struct image_case *c, int *at)
{
    for (uint32_t k = 0; k + 2 < c->rank; k++) {
        const uint32_t i = first_of_space(c) + k;

        at[i] += (int)c->steps[i];
        if (at[i] < (int)c->sizes[i] + c->upper[k])
            return;
        at[i] = c->lower[k];
    }
    at[c->rank - 1]++;
}

static void check_image(const struct image_case *c, size_t number, const uint8_t *loaded)
{
    int at[MAX_RANK];

    memcpy(at, c->at, sizeof at);
    for (uint32_t p = 0; p < c->pixels; p++) {
        int moved[MAX_RANK];

        memcpy(moved, at, sizeof moved);
        for (uint32_t k = 0; k + 2 < c->rank; k++)
            moved[first_of_space(c) + k] += (int)c->by[k];
        for (uint32_t ch = 0; ch < pixel_words(c); ch++) {
            const uint8_t *word = image_word_or_null(c, moved, ch);
            const uint64_t want = word ? read(word, 4) : 0;
            const uint64_t got = read(loaded + swizzled(image_swizzle(c), 4 * (p * pixel_words(c) + ch)), 4);

            if (got != want)
                fail_msg("image %zu, pixel %u, word %u: 0x%x instead of 0x%x", number, p, ch, (uint32_t)got, (uint32_t)want);
        }
        advance(c, at);
    }
}

static CUtensorMap map_of_image(const struct image_case *c, CUdeviceptr memory)
{
    uint64_t strides[MAX_RANK], stride = c->interleave ? slice_bytes(c->interleave) : 4;
    CUtensorMap map;

    for (uint32_t k = 0; k + 1 < c->rank; k++)
        strides[k] = stride *= c->sizes[k];
    assert_int_equal(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, c->rank, (void *)memory, c->sizes, strides, c->lower,
                                             c->upper, c->channels, c->pixels, c->steps, c->interleave, image_swizzle(c),
                                             CU_TENSOR_MAP_L2_PROMOTION_NONE, ZERO),
                     CUDA_SUCCESS);
    return map;
}

static void check_images(const struct image_case *all, size_t n)
{
    static const char *const offsets[] = {", {%h0}", ", {%h0, %h1}", ", {%h0, %h1, %h2}"};

    for (size_t i = 0; i < n; i++) {
        const struct image_case *c = &all[i];
        char text[sizeof load_text + 200];
        CUdeviceptr memory, out;
        CUtensorMap map;
        uint32_t bytes = 4 * pixel_words(c) * c->pixels, by[3];
        int at[MAX_RANK];
        void *params[] = {&map, &out, &bytes, at, by};

        memcpy(at, c->at, sizeof at);
        memcpy(by, c->by, sizeof by);
        fill(tensor, sizeof tensor, (uint32_t)i);
        memory = allocate(tensor, sizeof tensor);
        out = allocate(tensor, SHARED_BYTES);
        map = map_of_image(c, memory);
        snprintf(text, sizeof text, load_text, c->rank, ".im2col", coordinate_lists[c->rank], offsets[c->rank - 3]);
        launch(text, params);
        assert_int_equal(cuMemcpyDtoH(found, out, bytes), CUDA_SUCCESS);
        check_image(c, i, found);
        assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
        assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    }
}

static void test_images(void **state)
{
    (void)state;
    check_images(images, sizeof images / sizeof *images);
}

static void test_interleaved_images(void **state)
{
    (void)state;
    check_images(interleaved_images, sizeof interleaved_images / sizeof *interleaved_images);
}

/* What a store of the columns in `box`, or a reduction, makes of the tensor. */
static void put_image(const struct image_case *c, const char *operation)
{
    int at[MAX_RANK];

    memcpy(at, c->at, sizeof at);
    for (uint32_t p = 0; p < c->pixels; p++) {
        for (uint32_t ch = 0; ch < pixel_words(c); ch++) {
            uint8_t *to = image_word_or_null(c, at, ch);

            if (to) {
                const uint64_t value = read(box + swizzled(image_swizzle(c), 4 * (p * pixel_words(c) + ch)), 4);
                const uint64_t result = combined(CU_TENSOR_MAP_DATA_TYPE_UINT32, operation, read(to, 4), value);

                memcpy(to, &result, 4);
            }
        }
        advance(c, at);
    }
}

static void check_stored_images(const struct image_case *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct image_case *c = &all[i];
        const char *operation = i % 2 ? "add" : NULL;
        char text[sizeof put_text + 200];
        CUdeviceptr memory, in;
        CUtensorMap map;
        uint32_t bytes = 4 * pixel_words(c) * c->pixels;
        int at[MAX_RANK];
        void *params[] = {&map, &in, &bytes, at};

        if (!can_store_at(c->at, c->rank) || (!on_cuttle() && (c->lower[0] || c->upper[0]))) /* where an H200 ends kernels, too */
            continue;
        memcpy(at, c->at, sizeof at);
        fill(tensor, sizeof tensor, (uint32_t)i);
        fill(box, sizeof box, (uint32_t)i + 50);
        memory = allocate(tensor, sizeof tensor);
        in = allocate(box, sizeof box);
        map = map_of_image(c, memory);
        snprintf(text, sizeof text, put_text, operation ? "cp.reduce" : "cp", c->rank,
                 operation ? ".add.im2col_no_offs" : ".im2col_no_offs", coordinate_lists[c->rank]);
        launch(text, params);
        assert_int_equal(cuMemcpyDtoH(found, memory, sizeof found), CUDA_SUCCESS);
        put_image(c, operation);
        for (size_t k = 0; k < sizeof tensor; k++)
            if (found[k] != tensor[k])
                fail_msg("image %zu: byte %zu is 0x%x instead of 0x%x", i, k, found[k], tensor[k]);
        assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
        assert_int_equal(cuMemFree(in), CUDA_SUCCESS);
    }
}

static void test_stored_images(void **state)
{
    (void)state;
    check_stored_images(images, sizeof images / sizeof *images);
}

static void test_interleaved_stored_images(void **state)
{
    (void)state;
    check_stored_images(interleaved_images, sizeof interleaved_images / sizeof *interleaved_images);
}

/* ---- maps that change ---- */

static void test_replaced_address(void **state)
{
    static const struct tensor_case wide = {U8, 3, {20, 3, 2}, {640, 1920}, {16, 1, 2}, {1, 1, 1}, S(32B), ZERO, {3, 1, 0}, I(32B)};
    const struct tensor_case *c = &cases[0];
    CUdeviceptr first, second, out;
    char text[sizeof load_text + 200];
    CUtensorMap map;
    uint32_t bytes = box_bytes(c), by[3] = {0};
    int at[MAX_RANK];
    void *params[] = {&map, &out, &bytes, at, by};

    (void)state;
    memcpy(at, c->at, sizeof at);
    fill(tensor, sizeof tensor, 1);
    first = allocate(tensor, sizeof tensor);
    fill(tensor, sizeof tensor, 2);
    second = allocate(tensor, sizeof tensor);
    out = allocate(tensor, SHARED_BYTES);
    map = map_of(c, first);
    assert_int_equal(cuTensorMapReplaceAddress(&map, (void *)(second + 8)), CUDA_ERROR_INVALID_VALUE);
    if (on_cuttle()) /* NVIDIA's driver dereferences it */
        assert_int_equal(cuTensorMapReplaceAddress(NULL, (void *)second), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuTensorMapReplaceAddress(&map, (void *)second), CUDA_SUCCESS);
    snprintf(text, sizeof text, load_text, c->rank, "", coordinate_lists[c->rank], "");
    launch(text, params);
    assert_int_equal(cuMemcpyDtoH(found, out, bytes), CUDA_SUCCESS);
    check_loaded(c, 0);
    map = map_of(&wide, first);
    assert_int_equal(cuTensorMapReplaceAddress(&map, (void *)(second + 16)), CUDA_SUCCESS); /* an H200 refuses the copies only */
    assert_int_equal(cuTensorMapReplaceAddress(&map, (void *)(second + 24)), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemFree(first), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(second), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
}

static void test_moved_map(void **state)
{
    const struct tensor_case *c = &cases[0]; /* of one dimension, from coordinate 0 on */
    static const uint8_t nothing[128];
    CUdeviceptr memory, out, scratch = allocate(nothing, sizeof nothing);
    CUtensorMap map;
    uint32_t bytes = box_bytes(c);
    void *params[] = {&map, &out, &scratch, &bytes};

    (void)state;
    fill(tensor, sizeof tensor, 3);
    memory = allocate(tensor, sizeof tensor);
    out = allocate(tensor, SHARED_BYTES);
    map = map_of(c, memory);
    launch(moved_map_text, params);
    assert_int_equal(cuMemcpyDtoH(found, out, bytes), CUDA_SUCCESS);
    check_loaded(c, 0);
    assert_int_equal(cuMemcpyDtoH(found, scratch, sizeof map), CUDA_SUCCESS);
    assert_memory_equal(found, &map, sizeof map);
    assert_int_equal(cuMemFree(memory), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(scratch), CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_stores),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_reductions_of_floats),
        cmocka_unit_test(test_stored_images),
        cmocka_unit_test(test_moved_map),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_replaced_address),
        cmocka_unit_test(test_interleaved_loads),
        cmocka_unit_test(test_interleaved_stores),
        cmocka_unit_test(test_interleaved_images),
        cmocka_unit_test(test_interleaved_stored_images),
        cmocka_unit_test(test_loads_in_larger_atoms),
        cmocka_unit_test(test_stores_from_larger_atoms),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
