/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out while a launch allocates slots for the shared memory of its blocks (struct ptx2spv_slots): with fewer slots the kernel runs
 * in more slices, so the launch succeeds, and every block still has its own shared memory. Only allocations of the library fail: so this
 * program is not for other drivers. */
#include "../../failing_allocations.h"
#include "../api_test.h"

#define MOST 200 /* maximum number of allocations of one launch */

enum { BLOCKS = 300, THREADS = 32, SHARED_BYTES = 44 << 10 };

/* Each thread stores the number of its block in the last words of the shared memory, and outputs the word of the thread opposite to it. */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.extern .shared .align 4 .b8 pool[];\n"
    ".visible .entry fill(.param .u64 out)\n{\n.reg .b32 %r<8>;\n.reg .b64 %d<3>;\n"
    "ld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, pool;\nadd.u32 %r3, %r3, 44928;\n"
    "shl.b32 %r4, %r1, 2;\nadd.u32 %r4, %r3, %r4;\nst.shared.u32 [%r4], %r2;\nbar.sync 0;\n"
    "sub.u32 %r4, 31, %r1;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r4, %r3, %r4;\nld.shared.u32 %r5, [%r4];\n"
    "mad.lo.u32 %r6, %r2, 32, %r1;\nmul.wide.u32 %d2, %r6, 4;\nadd.u64 %d1, %d1, %d2;\nst.global.u32 [%d1], %r5;\nret;\n}\n";

static struct {
    CUmodule module;
    CUfunction fill;
    CUdeviceptr out;
} given;

static int setup(void **state)
{
    if (with_context(state) != 0)
        return -1;
    ok(cuModuleLoadData(&given.module, ptx));
    ok(cuModuleGetFunction(&given.fill, given.module, "fill"));
    ok(cuMemAlloc(&given.out, BLOCKS * THREADS * sizeof(uint32_t)));
    return 0;
}

static int teardown(void **state)
{
    ok(cuMemFree(given.out));
    ok(cuModuleUnload(given.module));
    return without_context(state);
}

static CUresult launch(CUstream stream)
{
    void *params[] = {&given.out};

    return cuLaunchKernel(given.fill, BLOCKS, 1, 1, THREADS, 1, 1, SHARED_BYTES, stream, params, NULL);
}

static void check_results(CUstream stream)
{
    uint32_t words[BLOCKS * THREADS];

    ok(cuMemcpyDtoHAsync(words, given.out, sizeof words, stream));
    ok(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
        assert_int_equal(words[i], i / THREADS);
}

/* Each launch is the first one of its stream, which has no slots yet. Returns whether the launch succeeded although an allocation failed. */
static bool launch_with_failure(long n, bool *has_failed)
{
    CUstream stream;
    CUresult r;

    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemsetD32Async(given.out, 0xffffffff, BLOCKS * THREADS, stream));
    allocations_left = n;
    r = launch(stream);
    *has_failed = allocations_left < 0;
    allocations_left = -1;
    if (r == CUDA_SUCCESS)
        check_results(stream);
    else
        assert_int_equal(r, CUDA_ERROR_OUT_OF_MEMORY);
    ok(launch(stream));
    check_results(stream);
    ok(cuStreamDestroy(stream));
    return *has_failed && r == CUDA_SUCCESS;
}

static void launches_do_with_fewer_slots(void **state)
{
    bool has_failed = true;
    unsigned recovered = 0;
    long n = 0;

    (void)state;
    ok(launch(NULL)); /* compiles the kernel */
    ok(cuCtxSynchronize());
    for (; has_failed; n++) {
        assert_true(n < MOST);
        recovered += launch_with_failure(n, &has_failed);
    }
    assert_true(recovered > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches_do_with_fewer_slots)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
