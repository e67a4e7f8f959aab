/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of the functions that make tensor maps (Driver API: Tensor Map Object Management). NVIDIA's driver gives them, too. */
#include "api_test.h"

#define S(n) CU_TENSOR_MAP_SWIZZLE_##n
#define I(n) CU_TENSOR_MAP_INTERLEAVE_##n

/* A valid call, of which each row of the test changes one argument. */
struct call {
    CUtensorMapDataType type;
    uint32_t rank;
    uint64_t address, sizes[3], strides[2];
    uint32_t box[3], steps[3];
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

static CUresult encode(const struct call *call)
{
    CUtensorMap map;

    return cuTensorMapEncodeTiled(&map, call->type, call->rank, (void *)(uintptr_t)call->address, call->sizes, call->strides, call->box,
                                  call->steps, call->interleave, call->swizzle, call->promotion, call->fill);
}

static CUresult encode_image(const struct call *call, int lower, int upper, uint32_t channels, uint32_t pixels)
{
    CUtensorMap map;

    return cuTensorMapEncodeIm2col(&map, call->type, call->rank, (void *)(uintptr_t)call->address, call->sizes, call->strides, &lower,
                                   &upper, channels, pixels, call->steps, call->interleave, call->swizzle, call->promotion, call->fill);
}

static void test_errors(void **state)
{
    static const struct call valid = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                      .rank = 2,
                                      .address = 0x10000,
                                      .sizes = {64, 64},
                                      .strides = {128},
                                      .box = {64, 8},
                                      .steps = {1, 1},
                                      .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
    struct call call = valid;

    (void)state;
    assert_int_equal(encode(&call), CUDA_SUCCESS);
    call.address = 0; /* for cuTensorMapReplaceAddress */
    assert_int_equal(encode(&call), CUDA_SUCCESS);
#define INVALID(member, value)                                                                                                             \
    call = valid;                                                                                                                          \
    call.member = value;                                                                                                                   \
    assert_int_equal(encode(&call), CUDA_ERROR_INVALID_VALUE)
    INVALID(type, (CUtensorMapDataType)77);
    INVALID(rank, 0);
    INVALID(rank, 6);
    INVALID(address, 0x10008);
    INVALID(sizes[1], 0);
    INVALID(sizes[0], (UINT64_C(1) << 32) + 1);
    INVALID(strides[0], 136);
    INVALID(strides[0], UINT64_C(1) << 40);
    INVALID(box[0], 0);
    INVALID(box[1], 257);
    INVALID(box[0], 12);
    INVALID(box[0], 72);             /* 144 bytes, more than the swizzle's span */
    call.swizzle = S(128B_ATOM_64B); /* of the same span */
    assert_int_equal(encode(&call), CUDA_ERROR_INVALID_VALUE);
    INVALID(steps[1], 0);
    INVALID(steps[1], 9);
    INVALID(swizzle, (CUtensorMapSwizzle)77);
    INVALID(promotion, (CUtensorMapL2promotion)77);
    INVALID(fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA); /* of integers */
    INVALID(interleave, (CUtensorMapInterleave)77);
    INVALID(interleave, I(16B)); /* of two dimensions */
}

/* A box has at most the bytes of the shared memory of a multiprocessor: 228 KiB on an H200. */
static void test_large_boxes(void **state)
{
    static const struct call valid = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                      .rank = 3,
                                      .address = 0x10000,
                                      .sizes = {256, 256, 256},
                                      .strides = {256, 65536},
                                      .box = {16, 256, 57},
                                      .steps = {1, 1, 1}};
    struct call call = valid;

    (void)state;
    assert_int_equal(encode(&call), CUDA_SUCCESS);
    INVALID(box[2], 58);
    call.steps[1] = 2;
    assert_int_equal(encode(&call), CUDA_SUCCESS);
    call.box[2] = 115;
    assert_int_equal(encode(&call), CUDA_ERROR_INVALID_VALUE);
    call = valid;
    call.interleave = I(16B); /* of which elements count, too */
    assert_int_equal(encode(&call), CUDA_SUCCESS);
    call.box[2] = 58;
    assert_int_equal(encode(&call), CUDA_ERROR_INVALID_VALUE);
}

static const struct call interleaved_call = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                             .rank = 3,
                                             .address = 0x10010,
                                             .sizes = {8, 4, 5},
                                             .strides = {144, 576},
                                             .box = {8, 1, 2},
                                             .steps = {1, 1, 1},
                                             .interleave = I(16B)};
static const struct call wide_call = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                      .rank = 3,
                                      .address = 0x10020,
                                      .sizes = {8, 4, 5},
                                      .strides = {288, 1152},
                                      .box = {8, 1, 2},
                                      .steps = {1, 1, 1},
                                      .interleave = I(32B),
                                      .swizzle = S(32B)};

static void test_interleaved_errors(void **state)
{
    struct call valid = interleaved_call, call = valid;

    (void)state;
    assert_int_equal(encode(&call), CUDA_SUCCESS);
    call.swizzle = S(128B); /* whose span does not limit the box */
    call.box[0] = 256;
    assert_int_equal(encode(&call), CUDA_SUCCESS);
    INVALID(address, 0x10018);
    INVALID(strides[1], 584);
    INVALID(box[0], 264);
    INVALID(box[0], 12); /* 24 bytes, although the unit of the box is a slice */
    INVALID(box[1], 257);
    INVALID(steps[0], 9);
    call = valid = wide_call;
    assert_int_equal(encode(&call), CUDA_SUCCESS);
    INVALID(address, 0x10010);
    INVALID(strides[0], 272);
    INVALID(strides[1], 1168);
    INVALID(box[0], 4);
    INVALID(rank, 2);
    call = wide_call;
    for (int swizzle = S(NONE); swizzle <= S(128B); swizzle++) { /* the manual requires S(32B), the driver takes others */
        call.swizzle = (CUtensorMapSwizzle)swizzle;
        assert_int_equal(encode(&call), CUDA_SUCCESS);
    }
#undef INVALID
}

static void test_errors_of_images(void **state)
{
    struct call call = interleaved_call;
    static const struct {
        int lower, upper;
        uint32_t channels, pixels;
        CUresult result;
    } rows[] = {
        {-1, -1, 8, 12, CUDA_SUCCESS},
        {-32768, 32767, 8, 1024, CUDA_SUCCESS},
        {-32769, -1, 8, 12, CUDA_ERROR_INVALID_VALUE},
        {-1, 32768, 8, 12, CUDA_ERROR_INVALID_VALUE},
        {5, -2, 8, 12, CUDA_SUCCESS}, /* one pixel */
        {5, -3, 8, 12, CUDA_ERROR_INVALID_VALUE},
        {-1, -1, 256, 456, CUDA_SUCCESS},
        {-1, -1, 256, 457, CUDA_ERROR_INVALID_VALUE},
        {-1, -1, 264, 12, CUDA_ERROR_INVALID_VALUE},
        {-1, -1, 12, 12, CUDA_ERROR_INVALID_VALUE},
        {-1, -1, 8, 1025, CUDA_ERROR_INVALID_VALUE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (encode_image(&call, rows[i].lower, rows[i].upper, rows[i].channels, rows[i].pixels) != rows[i].result)
            fail_msg("row %zu", i);
    call.interleave = I(NONE); /* W is dimension 1 */
    assert_int_equal(encode_image(&call, 1, -2, 8, 12), CUDA_SUCCESS);
    assert_int_equal(encode_image(&call, 1, -3, 8, 12), CUDA_ERROR_INVALID_VALUE);
#define INVALID(valid, member, value)                                                                                                      \
    call = valid;                                                                                                                          \
    call.member = value;                                                                                                                   \
    assert_int_equal(encode_image(&call, -1, -1, 8, 12), CUDA_ERROR_INVALID_VALUE)
    INVALID(interleaved_call, rank, 2);
    INVALID(interleaved_call, address, 0x10018);
    INVALID(wide_call, address, 0x10010);
    INVALID(wide_call, strides[0], 272);
#undef INVALID
}

/* Elements of 4 and 6 bits, which only sm_100 and later targets copy: the driver of an H200 refuses them. */
static void test_packed_elements(void **state)
{
    static const CUtensorMapDataType types[] = {CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
                                                CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B};

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct call call = {
            .type = types[i], .rank = 2, .address = 0x10000, .sizes = {128, 64}, .strides = {128}, .box = {128, 8}, .steps = {1, 1}};

        assert_int_equal(encode(&call), CUDA_ERROR_INVALID_VALUE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),           cmocka_unit_test(test_large_boxes),     cmocka_unit_test(test_interleaved_errors),
        cmocka_unit_test(test_errors_of_images), cmocka_unit_test(test_packed_elements),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
