/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and free in kernels. */
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)
#define THREADS 1024
#define HEAP_BYTES ((size_t)8 << 20) /* CUDA's own default */

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                          ".extern .func (.param .b64 func_retval0) malloc(.param .b64 malloc_param_0);\n"
                          ".extern .func free(.param .b64 free_param_0);\n"
                          /* blocks[t] = malloc(sizes[t]); its first and its last whole word are set to t */
                          ".visible .entry take(.param .u64 blocks, .param .u64 sizes)\n"
                          "{\n"
                          "    .reg .pred %p;\n"
                          "    .reg .b32 %r<5>;\n"
                          "    .reg .b64 %d<10>;\n"
                          "    ld.param.u64 %d1, [blocks];\n"
                          "    ld.param.u64 %d2, [sizes];\n"
                          "    mov.u32 %r1, %ctaid.x;\n"
                          "    mov.u32 %r2, %ntid.x;\n"
                          "    mov.u32 %r3, %tid.x;\n"
                          "    mad.lo.u32 %r1, %r1, %r2, %r3;\n"
                          "    mul.wide.u32 %d3, %r1, 8;\n"
                          "    add.u64 %d1, %d1, %d3;\n"
                          "    add.u64 %d2, %d2, %d3;\n"
                          "    ld.global.u64 %d4, [%d2];\n"
                          "    {\n"
                          "        .param .b64 size;\n        .param .b64 result;\n"
                          "        st.param.b64 [size], %d4;\n"
                          "        call.uni (result), malloc, (size);\n"
                          "        ld.param.b64 %d5, [result];\n"
                          "    }\n"
                          "    st.global.u64 [%d1], %d5;\n"
                          "    setp.eq.u64 %p, %d5, 0;\n"
                          "    @%p bra done;\n"
                          "    and.b64 %d6, %d4, -4;\n"
                          "    add.u64 %d6, %d5, %d6;\n"
                          "    st.u32 [%d5], %r1;\n"
                          "    st.u32 [%d6-4], %r1;\n"
                          "done:\n"
                          "    ret;\n"
                          "}\n"
                          /* Frees blocks[t] and counts it in *wrong if its words have changed. */
                          ".visible .entry give(.param .u64 blocks, .param .u64 sizes, .param .u64 wrong)\n"
                          "{\n"
                          "    .reg .pred %p, %q;\n"
                          "    .reg .b32 %r<8>;\n"
                          "    .reg .b64 %d<10>;\n"
                          "    ld.param.u64 %d1, [blocks];\n"
                          "    ld.param.u64 %d2, [sizes];\n"
                          "    ld.param.u64 %d7, [wrong];\n"
                          "    mov.u32 %r1, %ctaid.x;\n"
                          "    mov.u32 %r2, %ntid.x;\n"
                          "    mov.u32 %r3, %tid.x;\n"
                          "    mad.lo.u32 %r1, %r1, %r2, %r3;\n"
                          "    mul.wide.u32 %d3, %r1, 8;\n"
                          "    add.u64 %d1, %d1, %d3;\n"
                          "    add.u64 %d2, %d2, %d3;\n"
                          "    ld.global.u64 %d4, [%d2];\n"
                          "    ld.global.u64 %d5, [%d1];\n"
                          "    setp.eq.u64 %p, %d5, 0;\n"
                          "    @%p bra give;\n"
                          "    and.b64 %d6, %d4, -4;\n"
                          "    add.u64 %d6, %d5, %d6;\n"
                          "    ld.u32 %r4, [%d5];\n"
                          "    ld.u32 %r5, [%d6-4];\n"
                          "    setp.ne.u32 %p, %r4, %r1;\n"
                          "    setp.ne.or.u32 %q, %r5, %r1, %p;\n"
                          "    @%q red.global.add.u32 [%d7], 1;\n"
                          "give:\n"
                          "    {\n"
                          "        .param .b64 block;\n"
                          "        st.param.b64 [block], %d5;\n"
                          "        call.uni free, (block);\n"
                          "    }\n"
                          "    ret;\n"
                          "}\n";

struct setting {
    CUcontext context;
    CUmodule module;
    CUfunction take, give;
    CUdeviceptr blocks, sizes, wrong;
};

struct block {
    uint64_t address, size;
};

static int begin(void **state)
{
    static struct setting s;

    *state = &s;
    if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&s.context, NULL, 0, 0) != CUDA_SUCCESS ||
        cuModuleLoadData(&s.module, ptx) != CUDA_SUCCESS || cuModuleGetFunction(&s.take, s.module, "take") != CUDA_SUCCESS ||
        cuModuleGetFunction(&s.give, s.module, "give") != CUDA_SUCCESS)
        return -1;
    if (cuMemAlloc(&s.blocks, THREADS * 8) != CUDA_SUCCESS || cuMemAlloc(&s.sizes, THREADS * 8) != CUDA_SUCCESS ||
        cuMemAlloc(&s.wrong, 4) != CUDA_SUCCESS)
        return -1;
    return cuMemsetD32(s.wrong, 0, 1) == CUDA_SUCCESS ? 0 : -1;
}

static int end(void **state)
{
    struct setting *s = *state;

    return cuCtxDestroy(s->context) == CUDA_SUCCESS ? 0 : -1; /* with all allocated blocks */
}

static void take(struct setting *s, const uint64_t *sizes, uint64_t *blocks, unsigned n)
{
    void *params[] = {&s->blocks, &s->sizes};

    ok(cuMemcpyHtoD(s->sizes, sizes, n * sizeof *sizes));
    ok(cuLaunchKernel(s->take, n / 64 ? n / 64 : 1, 1, 1, n < 64 ? n : 64, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(blocks, s->blocks, n * sizeof *blocks));
}

static void give(struct setting *s, unsigned n)
{
    void *params[] = {&s->blocks, &s->sizes, &s->wrong};
    unsigned wrong;

    ok(cuLaunchKernel(s->give, n / 64 ? n / 64 : 1, 1, 1, n < 64 ? n : 64, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH(&wrong, s->wrong, sizeof wrong));
    assert_int_equal(wrong, 0);
}

static int compare_blocks(const void *a, const void *b)
{
    const struct block *x = a, *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

static void check_blocks(const uint64_t *sizes, const uint64_t *addresses, unsigned n)
{
    struct block blocks[THREADS];

    for (unsigned i = 0; i < n; i++) {
        assert_true(addresses[i] != 0 && addresses[i] % 16 == 0);
        blocks[i] = (struct block){addresses[i], sizes[i]};
    }
    qsort(blocks, n, sizeof *blocks, compare_blocks);
    for (unsigned i = 1; i < n; i++)
        assert_true(blocks[i - 1].address + blocks[i - 1].size <= blocks[i].address);
}

/* Blocks of many sizes do not overlap, keep their contents from kernel to kernel, and are reused: without reuse, 30 rounds would not
 * fit. */
static void blocks_of_many_sizes(void **state)
{
    struct setting *s = *state;
    uint64_t sizes[THREADS], blocks[THREADS];

    for (unsigned round = 0; round < 30; round++) {
        for (unsigned i = 0; i < THREADS; i++)
            sizes[i] = 4 + (i * 37 + round % 3 * 11) % 3001;
        take(s, sizes, blocks, THREADS);
        check_blocks(sizes, blocks, THREADS);
        give(s, THREADS);
    }
}

static void sizes_at_the_edges(void **state)
{
    static const uint64_t sizes[] = {4, 15, 16, 17, 96, 97, 112, 113, 240, 241, 4096, 65535, 65536, 1000000};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    uint64_t blocks[COUNT];

    take(*state, sizes, blocks, COUNT);
    check_blocks(sizes, blocks, COUNT);
    give(*state, COUNT);
}

static void what_cannot_be_had(void **state)
{
    static const uint64_t sizes[] = {0, HEAP_BYTES, HEAP_BYTES + 1, UINT64_MAX, UINT64_MAX - 30, (uint64_t)1 << 36};
    uint64_t blocks[6];

    take(*state, sizes, blocks, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(blocks[i], 0);
    give(*state, 6); /* free(NULL) */
}

/* If the heap is full, malloc returns NULL; freed memory can be allocated again. */
static void a_full_heap(void **state)
{
    CUcontext context;
    struct setting s = *(struct setting *)*state;
    uint64_t sizes[THREADS], blocks[THREADS];
    unsigned got = 0, again = 0;
    size_t limit;

    ok(cuCtxCreate(&context, NULL, 0, 0));
    ok(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
    assert_int_equal(limit, HEAP_BYTES);
    ok(cuModuleLoadData(&s.module, ptx));
    ok(cuModuleGetFunction(&s.take, s.module, "take"));
    ok(cuModuleGetFunction(&s.give, s.module, "give"));
    ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 65536)); /* also after the module was loaded */
    ok(cuMemAlloc(&s.blocks, sizeof blocks));
    ok(cuMemAlloc(&s.sizes, sizeof sizes));
    ok(cuMemAlloc(&s.wrong, 4));
    ok(cuMemsetD32(s.wrong, 0, 1));
    for (unsigned i = 0; i < THREADS; i++)
        sizes[i] = 240;
    take(&s, sizes, blocks, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        got += blocks[i] != 0;
    assert_in_range(got, 65536 / 256 - 64, 65536 / 240); /* some may find it full while another thread frees a block */
    give(&s, THREADS);
    take(&s, sizes, blocks, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        again += blocks[i] != 0;
    assert_in_range(again, got, 65536 / 240);
    give(&s, THREADS);
    sizes[0] = 100; /* smaller than the free memory */
    take(&s, sizes, blocks, 1);
    assert_int_not_equal(blocks[0], 0);
    give(&s, 1);
    give(&s, 1);                                                                                   /* freed twice: no effect */
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20), CUDA_ERROR_INVALID_VALUE); /* a kernel has been launched */
    ok(cuCtxDestroy(context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_many_sizes),
        cmocka_unit_test(sizes_at_the_edges),
        cmocka_unit_test(what_cannot_be_had),
        cmocka_unit_test(a_full_heap),
    };

    return cmocka_run_group_tests_name("heap", tests, begin, end);
}
