/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of the functions that make tensor maps (Driver API: Tensor Map Object Management). NVIDIA's driver gives them, too. */
#include "api_test.h"

/* A valid call, of which each row of the test changes one argument. */
struct call {
    CUtensorMapDataType type;
    uint32_t rank;
    uint64_t address, sizes[2], stride;
    uint32_t box[2], steps[2];
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

static CUresult encode(const struct call *call)
{
    CUtensorMap map;

    return cuTensorMapEncodeTiled(&map, call->type, call->rank, (void *)(uintptr_t)call->address, call->sizes, &call->stride, call->box,
                                  call->steps, call->interleave, call->swizzle, call->promotion, call->fill);
}

static void test_errors(void **state)
{
    static const struct call valid = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                      .rank = 2,
                                      .address = 0x10000,
                                      .sizes = {64, 64},
                                      .stride = 128,
                                      .box = {64, 8},
                                      .steps = {1, 1},
                                      .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
    struct call call = valid;

    (void)state;
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
    INVALID(stride, 136);
    INVALID(stride, UINT64_C(1) << 40);
    INVALID(box[0], 0);
    INVALID(box[1], 257);
    INVALID(box[0], 12);
    INVALID(box[0], 72);                                /* 144 bytes, more than the swizzle's span */
    call.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B; /* of the same span */
    assert_int_equal(encode(&call), CUDA_ERROR_INVALID_VALUE);
    INVALID(steps[1], 0);
    INVALID(steps[1], 9);
    INVALID(swizzle, (CUtensorMapSwizzle)77);
    INVALID(promotion, (CUtensorMapL2promotion)77);
    INVALID(fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA); /* of integers */
    INVALID(interleave, (CUtensorMapInterleave)77);
#undef INVALID
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
