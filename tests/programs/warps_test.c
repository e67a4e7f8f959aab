/* SPDX-License-Identifier: Apache-2.0 */
/* Warp instructions and barriers wherever CUDA allows them: in uniform and divergent code, in called functions, in loops of different
 * lengths, after early exits, beside and in barriers of all kinds, beside threads that spin. Each row is a kernel and its result in host C.
 * Blocks of 256, 64 and 80 threads (whose last warp is half full). The same kernels run in every form: the form that the device prefers,
 * and with CUTTLE_WARP=collective, CUTTLE_SYNC=predicated and CUTTLE_SYNC=resumed. */
#include "../api/api_test.h"
#include "warps_rows.h"

#include <stdbool.h>

static void run(const struct warps_row *row, uint32_t threads)
{
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr in, out;
    char ptx[WARPS_PTX_BYTES];

    warps_make_ptx(ptx, sizeof ptx, row);
    if (cuModuleLoadData(&module, ptx) != CUDA_SUCCESS || cuModuleGetFunction(&kernel, module, "k") != CUDA_SUCCESS)
        fail_msg("%s does not load", row->name);
    assert_int_equal(cuMemAlloc(&in, sizeof(uint32_t) * WARPS_THREADS_MAX), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc(&out, sizeof(uint32_t) * WARPS_THREADS_MAX), CUDA_SUCCESS);
    for (uint32_t n = 0; n < 4; n++) {
        struct warps_block block;
        uint32_t found[WARPS_THREADS_MAX];
        void *params[] = {&out, &in, &n};

        warps_fill(&block, n, threads);
        row->expect(&block);
        assert_int_equal(cuMemcpyHtoD(in, block.in, sizeof block.in), CUDA_SUCCESS);
        assert_int_equal(cuMemsetD32(out, 0, WARPS_THREADS_MAX), CUDA_SUCCESS);
        if (cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL) != CUDA_SUCCESS)
            fail_msg("%s does not start", row->name);
        assert_int_equal(cuMemcpyDtoH(found, out, sizeof found), CUDA_SUCCESS);
        for (uint32_t t = 0; t < WARPS_THREADS_MAX; t++)
            if (found[t] != block.out[t])
                fail_msg("%s, %u threads, n = %u, thread %u: 0x%x instead of 0x%x", row->name, threads, n, t, found[t], block.out[t]);
    }
    assert_int_equal(cuMemFree(in), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

/* Lanes that wait for each other at different places need the exchange through memory: a device's own shuffles read any lane that is
 * active. */
static bool is_surely_collective(void)
{
    const char *warp = getenv("CUTTLE_WARP");

    return (warp && !strcmp(warp, "collective")) || getenv("CUTTLE_SYNC");
}

/* Plain accesses for old targets are executed in lockstep here. NVIDIA's compiler reorders them when it compiles for a new GPU (580.159.04,
 * an H100). */
static bool is_run(const struct warps_row *row, uint32_t threads)
{
    if (row->flags & WARPS_LOCKSTEP && !(getenv("CUTTLE_LOCKSTEP") && on_cuttle()))
        return false;
    if (row->sm && row->sm < 70 && !on_cuttle())
        return false;
    return (threads % 32 == 0 || !(row->flags & WARPS_FULL)) && (is_surely_collective() || !(row->flags & WARPS_APART));
}

static uint32_t only; /* for blocks of this size only; 0: all sizes */

static void run_rows(uint32_t threads)
{
    if (only && threads != only)
        skip();
    for (size_t i = 0; i < warps_row_count; i++)
        if (is_run(&warps_rows[i], threads))
            run(&warps_rows[i], threads);
}

static void test_whole_warps(void **state)
{
    (void)state;
    run_rows(256);
}

static void test_two_warps(void **state)
{
    (void)state;
    if (!getenv("CUTTLE_SYNC")) /* other sizes would need further pipelines */
        run_rows(64);
}

static void test_a_short_warp(void **state)
{
    (void)state;
    run_rows(80);
}

/* An argument selects a single block size, for runs whose compiler has no cache. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_warps),
        cmocka_unit_test(test_two_warps),
        cmocka_unit_test(test_a_short_warp),
    };

    only = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    return cmocka_run_group_tests(tests, with_context, without_context);
}
