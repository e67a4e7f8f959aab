/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel with many shuffles, votes and barriers, whose operands are constants at some and registers at others. Cut at them
 * (CUTTLE_SYNC=resumed), points of one kind share their code. Expectations follow from the PTX ISA's definitions. */
#include "../api/api_test.h"

#include <stdio.h>

enum { POINTS = 40, THREADS = 64 };

/* Point i of each kind: a shuffle from a constant or a computed lane, a ballot, or a barrier with a sum over the block. */
static void write_kernel(FILE *text)
{
    fputs(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.reg .pred %p, %q;\n.reg .b32 %r<16>;\n"
          ".reg .b64 %d<4>;\nld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 31;\nmov.u32 %r3, 0;\n",
          text);
    for (int i = 0; i < POINTS; i++) {
        fprintf(text, "mad.lo.u32 %%r4, %%r1, 7, %d;\n", i);
        if (i % 2 == 0) /* the first one, too */
            fprintf(text, "shfl.sync.idx.b32 %%r5, %%r4, %d, 31, -1;\n", i % 32);
        else
            fprintf(text, "add.u32 %%r6, %%r2, %d;\nand.b32 %%r6, %%r6, 31;\nshfl.sync.idx.b32 %%r5, %%r4, %%r6, 31, -1;\n", i);
        fputs("mad.lo.u32 %r3, %r3, 31, %r5;\n", text);
        fprintf(text, "setp.lt.u32 %%p, %%r2, %d;\nvote.sync.ballot.b32 %%r5, %%p, -1;\nmad.lo.u32 %%r3, %%r3, 31, %%r5;\n", i % 32);
        fprintf(text, "setp.lt.u32 %%p, %%r1, %d;\nbarrier.sync.aligned %d;\nbar.red.popc.u32 %%r5, %d, %%p;\n", i, i % 3, 3 + i % 2);
        fputs("mad.lo.u32 %r3, %r3, 31, %r5;\n", text);
    }
    fputs("mul.wide.u32 %d2, %r1, 4;\nadd.u64 %d1, %d1, %d2;\nst.global.u32 [%d1], %r3;\nret;\n}\n", text);
}

static uint32_t expected(uint32_t thread)
{
    const uint32_t lane = thread % 32, first = thread - lane;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < POINTS; i++) {
        const uint32_t from = first + (i % 2 == 0 ? i % 32 : (lane + i) % 32);

        sum = sum * 31 + from * 7 + i;
        sum = sum * 31 + ((1u << i % 32) - 1);
        sum = sum * 31 + i;
    }
    return sum;
}

static void test_many_points(void **state)
{
    uint32_t found[THREADS];
    CUfunction kernel;
    CUdeviceptr out;
    CUmodule module;
    size_t length;
    char *ptx;
    FILE *text = open_memstream(&ptx, &length);
    void *params[] = {&out};

    (void)state;
    assert_non_null(text);
    write_kernel(text);
    assert_int_equal(fclose(text), 0);
    assert_int_equal(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    free(ptx);
    assert_int_equal(cuModuleGetFunction(&kernel, module, "k"), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc(&out, sizeof found), CUDA_SUCCESS);
    assert_int_equal(cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH(found, out, sizeof found), CUDA_SUCCESS);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(found[i], expected(i));
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_points)};

    return cmocka_run_group_tests(tests, with_context, without_context);
}
