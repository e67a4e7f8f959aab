/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous barriers between the warps of a block (PTX ISA, "mbarrier"): threads that wait while others arrive, over many phases.
 * Expectations are computed here. The same kernels run in every form of synchronization, and with NVIDIA's driver on sm_90. */
#include "../api/api_test.h"

#include <stdbool.h>

enum { STAGES = 3, TILE_WORDS = 64, MAX_TILES = 11, BLOCKS = 3, THREADS = 160, CONSUMERS = THREADS - 32, ROUNDS = 9 };

static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    /* Thread 0 copies tiles of 64 words to a ring of three stages. The threads of the other warps each add a word of every tile, and add
     * the sums to the result in the end, by one bulk reduction. */
    ".visible .entry pipeline(.param .u64 out, .param .u64 in, .param .u32 tiles)\n{\n"
    "    .shared .align 128 .b8 stages[768];\n    .shared .align 128 .b8 sums[512];\n    .shared .align 8 .b64 full[3], empty[3];\n"
    "    .reg .pred %p, %q;\n    .reg .b32 %r<30>;\n    .reg .b64 %d<9>;\n"
    "    ld.param.u64 %d1, [out];\n    ld.param.u64 %d2, [in];\n    ld.param.u32 %r1, [tiles];\n    mov.u32 %r2, %tid.x;\n"
    "    mov.u32 %r3, stages;\n    mov.u32 %r4, full;\n    mov.u32 %r5, empty;\n    mov.u32 %r6, %ctaid.x;\n"
    "    mul.lo.u32 %r7, %r6, %r1;\n    mul.wide.u32 %d3, %r7, 256;\n    add.u64 %d2, %d2, %d3;\n"
    "    setp.ne.u32 %p, %r2, 0;\n    @%p bra initialized;\n"
    "    mbarrier.init.shared::cta.b64 [full], 1;\n    mbarrier.init.shared::cta.b64 [full+8], 1;\n"
    "    mbarrier.init.shared::cta.b64 [full+16], 1;\n    mbarrier.init.shared::cta.b64 [empty], 128;\n"
    "    mbarrier.init.shared::cta.b64 [empty+8], 128;\n    mbarrier.init.shared::cta.b64 [empty+16], 128;\n"
    "    fence.mbarrier_init.release.cluster;\n"
    "initialized:\n    bar.sync 0;\n    mov.u32 %r8, 0;\n    mov.u32 %r9, 0;\n    mov.u32 %r10, 0;\n" /* tile, stage, parity */
    "    setp.ge.u32 %p, %r2, 32;\n    @%p bra consume;\n    setp.ne.u32 %p, %r2, 0;\n    @%p bra end;\n"
    "produce:\n    setp.ge.u32 %p, %r8, %r1;\n    @%p bra end;\n"
    "    shl.b32 %r11, %r9, 3;\n    add.u32 %r12, %r11, %r4;\n    add.u32 %r13, %r11, %r5;\n    xor.b32 %r14, %r10, 1;\n"
    "wait_empty:\n    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r13], %r14;\n    @%p bra is_empty;\n    bra wait_empty;\n"
    "is_empty:\n    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r12], 256;\n"
    "    shl.b32 %r15, %r9, 8;\n    add.u32 %r15, %r15, %r3;\n"
    "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r15], [%d2], 128, [%r12];\n"
    "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r15+128], [%d2+128], 128, [%r12];\n"
    "    add.u64 %d2, %d2, 256;\n    add.u32 %r8, %r8, 1;\n    add.u32 %r9, %r9, 1;\n"
    "    setp.eq.u32 %p, %r9, 3;\n    @%p mov.u32 %r9, 0;\n    @%p xor.b32 %r10, %r10, 1;\n    bra produce;\n"
    "consume:\n    mov.u32 %r16, 0;\n    sub.u32 %r17, %r2, 32;\n    mad.lo.u32 %r18, %r17, 5, %r6;\n    and.b32 %r18, %r18, 63;\n"
    "next:\n    setp.ge.u32 %p, %r8, %r1;\n    @%p bra consumed;\n"
    "    shl.b32 %r11, %r9, 3;\n    add.u32 %r12, %r11, %r4;\n    add.u32 %r13, %r11, %r5;\n"
    "wait_full:\n    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [%r12], %r10, 1000;\n    @!%p bra wait_full;\n"
    "    shl.b32 %r15, %r9, 6;\n    add.u32 %r15, %r15, %r18;\n    shl.b32 %r15, %r15, 2;\n    add.u32 %r15, %r15, %r3;\n"
    "    ld.shared.u32 %r19, [%r15];\n    mad.lo.u32 %r16, %r16, 3, %r19;\n"
    "    mbarrier.arrive.release.cta.shared::cta.b64 _, [%r13];\n"
    "    add.u32 %r8, %r8, 1;\n    add.u32 %r9, %r9, 1;\n"
    "    setp.eq.u32 %p, %r9, 3;\n    @%p mov.u32 %r9, 0;\n    @%p xor.b32 %r10, %r10, 1;\n    bra next;\n"
    "consumed:\n    shl.b32 %r20, %r17, 2;\n    mov.u32 %r21, sums;\n    add.u32 %r20, %r20, %r21;\n    st.shared.u32 [%r20], %r16;\n"
    "    fence.proxy.async.shared::cta;\n"
    "end:\n    bar.sync 0;\n    setp.ne.u32 %p, %r2, 40;\n    @%p bra out_of_it;\n"
    "    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [sums], 512;\n"
    "    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\n"
    "out_of_it:\n    ret;\n}\n"
    /* All threads exchange values over several phases of one barrier: each arrives, does something else, and waits for the others. Warp 1
     * leaves the barrier (mbarrier.arrive_drop) after half of the phases. */
    ".visible .entry tokens(.param .u64 out, .param .u32 rounds)\n{\n"
    "    .shared .align 16 .b8 values[1280];\n    .shared .align 8 .b64 barrier;\n"
    "    .reg .pred %p, %q;\n    .reg .b32 %r<30>;\n    .reg .b64 %d<9>;\n"
    "    ld.param.u64 %d1, [out];\n    ld.param.u32 %r1, [rounds];\n    mov.u32 %r2, %tid.x;\n    mov.u32 %r3, values;\n"
    "    setp.ne.u32 %p, %r2, 7;\n    @%p bra initialized;\n    mbarrier.init.shared.b64 [barrier], 160;\n"
    "initialized:\n    bar.sync 0;\n    mul.lo.u32 %r5, %r2, 977;\n    mov.u32 %r6, 0;\n"
    "    shr.u32 %r7, %r2, 5;\n    setp.eq.u32 %q, %r7, 1;\n"
    /* The values of a round are in one half of the array, so that those of the next do not overwrite them. */
    "round:\n    setp.ge.u32 %p, %r6, %r1;\n    @%p bra done;\n    and.b32 %r8, %r6, 1;\n    mad.lo.u32 %r8, %r8, 640, %r3;\n"
    "    shl.b32 %r9, %r2, 2;\n    add.u32 %r9, %r9, %r8;\n    st.shared.u32 [%r9], %r5;\n"
    "    setp.eq.u32 %p, %r6, 4;\n    and.pred %p, %p, %q;\n    @%p bra drop;\n"
    "    mbarrier.arrive.shared.b64 %d2, [barrier];\n    mad.lo.u32 %r10, %r5, 31, %r6;\n"
    "test:\n    mbarrier.test_wait.shared.b64 %p, [barrier], %d2;\n    @!%p bra test;\n"
    "    add.u32 %r11, %r2, 37;\n    rem.u32 %r11, %r11, 160;\n    shl.b32 %r11, %r11, 2;\n    add.u32 %r11, %r11, %r8;\n"
    "    ld.shared.u32 %r12, [%r11];\n    xor.b32 %r5, %r10, %r12;\n"
    "    add.u32 %r6, %r6, 1;\n    bra round;\n"
    "drop:\n    mbarrier.arrive_drop.shared.b64 %d2, [barrier];\n"
    "done:\n    mul.wide.u32 %d3, %r2, 4;\n    add.u64 %d1, %d1, %d3;\n    st.global.u32 [%d1], %r5;\n    ret;\n}\n"
    /* Threads copy their part by cp.async, and the copies arrive; the threads of one warp wait for all of them. */
    ".visible .entry copies(.param .u64 out, .param .u64 in)\n{\n"
    "    .shared .align 16 .b8 part[2560];\n    .shared .align 8 .b64 barrier;\n"
    "    .reg .pred %p;\n    .reg .b32 %r<30>;\n    .reg .b64 %d<9>;\n"
    "    ld.param.u64 %d1, [out];\n    ld.param.u64 %d2, [in];\n    mov.u32 %r2, %tid.x;\n    mov.u32 %r3, part;\n"
    "    setp.ne.u32 %p, %r2, 0;\n    @%p bra initialized;\n    mbarrier.init.shared.b64 [barrier], 160;\n"
    "initialized:\n    bar.sync 0;\n    shl.b32 %r4, %r2, 4;\n    add.u32 %r5, %r3, %r4;\n    cvt.u64.u32 %d3, %r4;\n    add.u64 %d4, %d2, "
    "%d3;\n"
    "    cp.async.cg.shared.global [%r5], [%d4], 16;\n    cp.async.mbarrier.arrive.noinc.shared.b64 [barrier];\n"
    "    setp.lt.u32 %p, %r2, 128;\n    @%p bra end;\n"
    "wait:\n    mbarrier.try_wait.parity.shared.b64 %p, [barrier], 0;\n    @!%p bra wait;\n"
    "    sub.u32 %r6, %r2, 128;\n    mov.u32 %r7, 0;\n    mov.u32 %r8, %r6;\n"
    "sum:\n    shl.b32 %r9, %r8, 2;\n    add.u32 %r9, %r9, %r3;\n    ld.shared.u32 %r10, [%r9];\n    add.u32 %r7, %r7, %r10;\n"
    "    add.u32 %r8, %r8, 32;\n    setp.lt.u32 %p, %r8, 640;\n    @%p bra sum;\n"
    "    mul.wide.u32 %d5, %r6, 4;\n    add.u64 %d5, %d5, %d1;\n    st.global.u32 [%d5], %r7;\n"
    "end:\n    ret;\n}\n";

static CUmodule module;

static uint32_t mixed(uint32_t i)
{
    return (i + 1) * 2654435761u ^ i << 7;
}

static void launch(const char *name, uint32_t blocks, void **params)
{
    CUfunction kernel;

    assert_int_equal(cuModuleGetFunction(&kernel, module, name), CUDA_SUCCESS);
    assert_int_equal(cuLaunchKernel(kernel, blocks, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
}

static CUdeviceptr filled(uint32_t words)
{
    uint32_t *values = test_calloc(words, sizeof *values);
    CUdeviceptr memory;

    for (uint32_t i = 0; i < words; i++)
        values[i] = mixed(i);
    assert_int_equal(cuMemAlloc(&memory, sizeof *values * words), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyHtoD(memory, values, sizeof *values * words), CUDA_SUCCESS);
    test_free(values);
    return memory;
}

static CUdeviceptr zeros(uint32_t words)
{
    CUdeviceptr memory;

    assert_int_equal(cuMemAlloc(&memory, sizeof(uint32_t) * words), CUDA_SUCCESS);
    assert_int_equal(cuMemsetD32(memory, 0, words), CUDA_SUCCESS);
    return memory;
}

/* What consumer i of all blocks together gets. */
static uint32_t pipeline_sum(uint32_t i, uint32_t tiles)
{
    uint32_t all = 0;

    for (uint32_t block = 0; block < BLOCKS; block++) {
        uint32_t sum = 0;

        for (uint32_t t = 0; t < tiles; t++)
            sum = sum * 3 + mixed((block * tiles + t) * TILE_WORDS + (i * 5 + block) % TILE_WORDS);
        all += sum;
    }
    return all;
}

static void test_pipeline(void **state)
{
    const CUdeviceptr in = filled(BLOCKS * MAX_TILES * TILE_WORDS);

    (void)state;
    for (uint32_t tiles = 0; tiles <= MAX_TILES; tiles += tiles < 4 ? 1 : 7) {
        CUdeviceptr out = zeros(CONSUMERS);
        uint32_t found[CONSUMERS];
        void *params[] = {&out, (void *)&in, &tiles};

        launch("pipeline", BLOCKS, params);
        assert_int_equal(cuMemcpyDtoH(found, out, sizeof found), CUDA_SUCCESS);
        for (uint32_t i = 0; i < CONSUMERS; i++)
            if (found[i] != pipeline_sum(i, tiles))
                fail_msg("%u tiles, consumer %u: 0x%x instead of 0x%x", tiles, i, found[i], pipeline_sum(i, tiles));
        assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    }
    assert_int_equal(cuMemFree(in), CUDA_SUCCESS);
}

/* In round 4 warp 1 stores its values and drops out; the others read its old values later: those of the last round with the same half. */
static void expect_tokens(uint32_t rounds, uint32_t *own)
{
    uint32_t halves[2][THREADS] = {{0}};

    for (uint32_t t = 0; t < THREADS; t++)
        own[t] = t * 977;
    for (uint32_t r = 0; r < rounds; r++) {
        for (uint32_t t = 0; t < THREADS; t++)
            if (t / 32 != 1 || r <= 4)
                halves[r & 1][t] = own[t];
        for (uint32_t t = 0; t < THREADS; t++)
            if (t / 32 != 1 || r < 4)
                own[t] = (own[t] * 31 + r) ^ halves[r & 1][(t + 37) % THREADS];
    }
}

static void test_tokens(void **state)
{
    (void)state;
    for (uint32_t rounds = 1; rounds <= ROUNDS; rounds += 4) {
        CUdeviceptr out = zeros(THREADS);
        uint32_t found[THREADS], wanted[THREADS];
        void *params[] = {&out, &rounds};

        launch("tokens", 1, params);
        expect_tokens(rounds, wanted);
        assert_int_equal(cuMemcpyDtoH(found, out, sizeof found), CUDA_SUCCESS);
        for (uint32_t t = 0; t < THREADS; t++)
            if (found[t] != wanted[t])
                fail_msg("%u rounds, thread %u: 0x%x instead of 0x%x", rounds, t, found[t], wanted[t]);
        assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    }
}

static void test_copies(void **state)
{
    CUdeviceptr in = filled(4 * THREADS), out = zeros(32);
    uint32_t found[32];
    void *params[] = {&out, &in};

    (void)state;
    launch("copies", 1, params);
    assert_int_equal(cuMemcpyDtoH(found, out, sizeof found), CUDA_SUCCESS);
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t sum = 0;

        for (uint32_t i = t; i < 4 * THREADS; i += 32)
            sum += mixed(i);
        assert_int_equal(found[t], sum);
    }
    assert_int_equal(cuMemFree(in), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
}

/* cp.async.bulk with a mask of bytes, which targets from sm_100 on have: bit i says whether byte i of each 16 is copied. */
static const char masked_ptx[] =
    ".version 8.6\n.target sm_100\n.address_size 64\n"
    ".visible .entry masked(.param .u64 out, .param .u16 mask)\n{\n"
    "    .shared .align 16 .b8 part[2560];\n    .reg .pred %p;\n    .reg .b16 %h;\n    .reg .b32 %r<9>;\n    .reg .b64 %d<3>;\n"
    "    ld.param.u64 %d1, [out];\n    ld.param.u16 %h, [mask];\n    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, part;\n"
    "    mad.lo.u32 %r3, %r1, 16, %r2;\n    mul.lo.u32 %r4, %r1, 0x01010101;\n    add.u32 %r5, %r4, 0x03020100;\n"
    "    st.shared.v4.u32 [%r3], {%r5, %r4, %r5, %r4};\n    fence.proxy.async.shared::cta;\n    bar.sync 0;\n"
    "    setp.ne.u32 %p, %r1, 0;\n    @%p bra end;\n"
    "    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [part], 2560, %h;\n"
    "    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\nend:\n    ret;\n}\n";

/* Byte i of the four words that thread t stores. All bytes of a word are t; to words 0 and 2, 0x03020100 is added. */
static uint8_t masked_byte(uint32_t t, uint32_t i)
{
    const uint32_t word = t * 0x01010101 + (i / 4 % 2 ? 0 : 0x03020100);

    return (uint8_t)(word >> 8 * (i % 4));
}

static void test_masked_copies(void **state)
{
    static const uint16_t masks[] = {0xffff, 0, 0x8001, 0x5a3c};
    static uint8_t found[16 * THREADS];
    CUmodule masked;
    CUfunction kernel;

    (void)state;
    if (!on_cuttle())
        skip();
    assert_int_equal(cuModuleLoadData(&masked, masked_ptx), CUDA_SUCCESS);
    assert_int_equal(cuModuleGetFunction(&kernel, masked, "masked"), CUDA_SUCCESS);
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
        uint16_t mask = masks[m];
        CUdeviceptr out = zeros(4 * THREADS);
        void *params[] = {&out, &mask};

        assert_int_equal(cuMemsetD8(out, 0xee, sizeof found), CUDA_SUCCESS);
        assert_int_equal(cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
        assert_int_equal(cuMemcpyDtoH(found, out, sizeof found), CUDA_SUCCESS);
        for (uint32_t i = 0; i < sizeof found; i++)
            if (found[i] != (mask >> i % 16 & 1 ? masked_byte(i / 16, i % 16) : 0xee))
                fail_msg("mask 0x%x, byte %u: 0x%x", mask, i, found[i]);
        assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    }
    assert_int_equal(cuModuleUnload(masked), CUDA_SUCCESS);
}

/* Clusters of one block; clusters_test.c has larger ones. */
static void test_clusters(void **state)
{
    static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".visible .entry one(.param .u64 out) .reqnctapercluster 1, 1, 1\n{\n    .reg .pred %p;\n    .reg .b32 %r;\n"
                               "    .reg .b64 %d;\n    ld.param.u64 %d, [out];\n    mov.pred %p, %is_explicit_cluster;\n"
                               "    selp.u32 %r, 5, 6, %p;\n    st.global.u32 [%d], %r;\n    ret;\n}\n";
    CUmodule clusters;
    CUfunction one;
    CUdeviceptr out = zeros(1);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 1, 1}};
    CUlaunchConfig config = {2, 1, 1, 32, 1, 1, 0, NULL, &attribute, 1};
    void *params[] = {&out};
    uint32_t found;

    (void)state;
    assert_int_equal(cuModuleLoadData(&clusters, text), CUDA_SUCCESS);
    assert_int_equal(cuModuleGetFunction(&one, clusters, "one"), CUDA_SUCCESS);
    assert_int_equal(cuLaunchKernelEx(&config, one, params, NULL), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH(&found, out, sizeof found), CUDA_SUCCESS);
    assert_int_equal(found, 5);
    assert_int_equal(cuModuleUnload(clusters), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
}

static int setup(void **state)
{
    return with_context(state) || cuModuleLoadData(&module, ptx) != CUDA_SUCCESS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline),      cmocka_unit_test(test_tokens),   cmocka_unit_test(test_copies),
        cmocka_unit_test(test_masked_copies), cmocka_unit_test(test_clusters),
    };

    return cmocka_run_group_tests(tests, setup, without_context);
}
