/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters of several blocks: special registers, the shared memory of other blocks by every kind of instruction that reaches it, barriers of
 * the cluster, and barriers in shared memory to which other blocks arrive. Expectations are computed here. The same kernels run with NVIDIA's
 * driver on sm_90. */
#include "../api/api_test.h"

#include <stdbool.h>

enum { THREADS = 64, MOST_BLOCKS = 64, WORDS = THREADS * MOST_BLOCKS };

#define HEAD ".version 8.1\n.target sm_90\n.address_size 64\n"
/* %r1: the thread's number in its block, %r2: the rank of the block, %r3: the blocks of the cluster; %r4: the number of the block in the grid;
 * %d1: the thread's word of the result. */
#define BEGIN(name, more)                                                                                                                  \
    ".visible .entry " name "(.param .u64 out, .param .u64 in, .param .u32 n)" more "\n{\n"                                                \
    "    .reg .pred %p, %q;\n    .reg .b32 %r<40>;\n    .reg .b64 %d<20>;\n"                                                               \
    "    .shared .align 16 .b8 words[256];\n    .shared .align 16 .b8 others[256];\n    .shared .align 8 .b64 barrier;\n"                  \
    "    mov.u32 %r1, %tid.x;\n    mov.u32 %r2, %cluster_ctarank;\n    mov.u32 %r3, %cluster_nctarank;\n"                                  \
    "    mov.u32 %r5, %ctaid.z;\n    mov.u32 %r6, %nctaid.y;\n    mov.u32 %r7, %ctaid.y;\n    mad.lo.u32 %r5, %r5, %r6, %r7;\n"            \
    "    mov.u32 %r6, %nctaid.x;\n    mov.u32 %r7, %ctaid.x;\n    mad.lo.u32 %r4, %r5, %r6, %r7;\n"                                        \
    "    ld.param.u64 %d1, [out];\n    mad.lo.u32 %r5, %r4, 64, %r1;\n    mul.wide.u32 %d2, %r5, 4;\n    add.u64 %d1, %d1, %d2;\n"         \
    "    mov.u32 %r30, words;\n    mad.lo.u32 %r31, %r1, 4, %r30;\n    mov.u32 %r32, others;\n    mad.lo.u32 %r33, %r1, 4, %r32;\n"        \
    "    mov.u32 %r34, barrier;\n"
#define SYNC "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n"
#define END "    st.global.u32 [%d1], %r20;\n    ret;\n}\n"
/* The rank of the next block of the cluster, in %r8. */
#define NEXT "    add.u32 %r8, %r2, 1;\n    rem.u32 %r8, %r8, %r3;\n"

/* clang-format off */
static const char ptx[] =
    HEAD
    /* All special registers of clusters, folded. */
    BEGIN("registers", "")
#define FOLD(reg) "    mov.u32 %r21, %" reg ";\n    mad.lo.u32 %r20, %r20, 31, %r21;\n"
    "    mov.u32 %r20, 0;\n"
    FOLD("clusterid.x") FOLD("clusterid.y") FOLD("clusterid.z") FOLD("nclusterid.x") FOLD("nclusterid.y") FOLD("nclusterid.z")
    FOLD("cluster_ctaid.x") FOLD("cluster_ctaid.y") FOLD("cluster_ctaid.z")
    FOLD("cluster_nctaid.x") FOLD("cluster_nctaid.y") FOLD("cluster_nctaid.z") FOLD("cluster_ctarank") FOLD("cluster_nctarank")
    "    mov.pred %p, %is_explicit_cluster;\n    selp.u32 %r21, 1, 0, %p;\n    mad.lo.u32 %r20, %r20, 31, %r21;\n"
    END
    /* Each thread reads the word of its mate in the next block, by a mapped address of 32 bits, and in the one after it, by a generic one. Then
     * the rank of each address, and whether it is in this block's shared memory. */
    BEGIN("reads", "") NEXT
    "    mad.lo.u32 %r21, %r4, 1000, %r1;\n    st.shared.u32 [%r31], %r21;\n"
    SYNC
    "    mapa.shared::cluster.u32 %r22, %r31, %r8;\n    ld.shared::cluster.u32 %r23, [%r22];\n"
    "    add.u32 %r9, %r8, 1;\n    rem.u32 %r9, %r9, %r3;\n    cvt.u64.u32 %d3, %r31;\n    cvta.shared.u64 %d3, %d3;\n"
    "    mapa.u64 %d4, %d3, %r9;\n    ld.u32 %r24, [%d4];\n    mad.lo.u32 %r20, %r23, 3, %r24;\n"
    "    getctarank.shared::cluster.u32 %r25, %r22;\n    mad.lo.u32 %r20, %r20, 31, %r25;\n    getctarank.u64 %r25, %d4;\n"
    "    mad.lo.u32 %r20, %r20, 31, %r25;\n    getctarank.u64 %r25, %d3;\n    mad.lo.u32 %r20, %r20, 31, %r25;\n"
    "    isspacep.shared::cta %p, %d4;\n    selp.u32 %r25, 1, 0, %p;\n    isspacep.shared::cluster %p, %d4;\n"
    "    @%p add.u32 %r25, %r25, 2;\n    isspacep.shared::cta %p, %d3;\n    @%p add.u32 %r25, %r25, 4;\n"
    "    mad.lo.u32 %r20, %r20, 31, %r25;\n"
    SYNC END
    /* Rounds: each thread adds what the same thread of the next block had in the round before, with one barrier between, and one after it. */
    BEGIN("rounds", "") NEXT
    "    ld.param.u32 %r10, [n];\n    ld.param.u64 %d5, [in];\n    add.u64 %d5, %d5, %d2;\n    ld.global.u32 %r20, [%d5];\n"
    "    mapa.shared::cluster.u32 %r22, %r31, %r8;\n"
    "round:\n    st.shared.u32 [%r31], %r20;\n    barrier.cluster.arrive.release;\n    mul.lo.u32 %r20, %r20, 5;\n"
    "    barrier.cluster.wait.acquire;\n    ld.shared::cluster.u32 %r23, [%r22];\n    add.u32 %r20, %r20, %r23;\n"
    "    fence.acq_rel.cluster;\n    barrier.cluster.arrive.relaxed;\n    barrier.cluster.wait;\n    sub.u32 %r10, %r10, 1;\n"
    "    setp.ne.u32 %p, %r10, 0;\n    @%p bra round;\n"
    END
    /* A histogram of the cluster: block r has the bins of remainder r. Atomic operations on the shared memory of others, the second one at an
     * address that is made of a constant. */
    BEGIN("histogram", "")
    "    mov.u32 %r21, 0;\n    st.shared.u32 [%r31], %r21;\n"
    SYNC
    "    ld.param.u64 %d5, [in];\n    add.u64 %d5, %d5, %d2;\n    ld.global.u32 %r21, [%d5];\n    rem.u32 %r22, %r21, %r3;\n"
    "    and.b32 %r23, %r21, 0xfc;\n    add.u32 %r24, %r23, %r30;\n    mapa.shared::cluster.u32 %r24, %r24, %r22;\n"
    "    red.shared::cluster.add.u32 [%r24], 1;\n    cvt.u64.u32 %d3, %r30;\n    cvta.shared.u64 %d3, %d3;\n"
    "    mapa.u64 %d3, %d3, %r22;\n    cvt.u64.u32 %d4, %r23;\n    add.u64 %d3, %d3, %d4;\n    atom.add.u32 %r25, [%d3], 256;\n"
    SYNC
    "    ld.shared.u32 %r20, [%r31];\n"
    END
    /* Thread 0 stores to the next block asynchronously, word by word and in bulk; the next block waits at its own barrier for the bytes, and
     * for an arrival of each block. */
    BEGIN("messages", "") NEXT
    "    setp.ne.u32 %p, %r1, 0;\n    mad.lo.u32 %r21, %r4, 100, %r1;\n    st.shared.u32 [%r31], %r21;\n"
    "    fence.proxy.async.shared::cta;\n    @%p bra initialized;\n"
    "    mbarrier.init.shared::cta.b64 [barrier], %r3;\n    fence.mbarrier_init.release.cluster;\n"
    "initialized:\n"
    SYNC
    "    @%p bra wait;\n    mapa.shared::cluster.u32 %r22, %r34, %r8;\n    mapa.shared::cluster.u32 %r23, %r32, %r8;\n"
    "    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [barrier], 256;\n" /* what will come here */
    "    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r23], [%r30], 240, [%r22];\n"
    "    add.u32 %r24, %r23, 240;\n    add.u32 %r25, %r4, 7;\n"
    "    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r24], {%r25, %r4}, [%r22];\n"
    "    add.u32 %r24, %r23, 248;\n    mov.b64 %d3, {%r4, %r25};\n"
    "    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r24], %d3, [%r22];\n"
    "    mov.u32 %r26, 0;\n"
    "arrive:\n    mapa.shared::cluster.u32 %r27, %r34, %r26;\n    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r27];\n"
    "    add.u32 %r26, %r26, 1;\n    setp.lt.u32 %q, %r26, %r3;\n    @%q bra arrive;\n"
    "wait:\n    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [barrier], 0;\n    @!%q bra wait;\n"
    "    ld.shared.u32 %r20, [%r33];\n"
    SYNC END
    /* Rank 0 copies the input to all blocks of odd rank, and to itself, whose barriers get the bytes. */
    BEGIN("multicast", "")
    "    setp.ne.u32 %p, %r1, 0;\n    mov.u32 %r20, 5;\n    and.b32 %r9, %r2, 1;\n    setp.eq.u32 %q, %r2, 0;\n"
    "    @%q mov.u32 %r9, 1;\n    @%p bra initialized;\n"
    "    mbarrier.init.shared::cta.b64 [barrier], 1;\n    fence.mbarrier_init.release.cluster;\n"
    "initialized:\n"
    SYNC
    "    @%p bra wait;\n    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], 256;\n    @!%q bra wait;\n"
    "    ld.param.u64 %d5, [in];\n    add.u64 %d5, %d5, %d2;\n    .reg .b16 %h;\n"
    "    mov.u32 %r22, 1;\n    shl.b32 %r22, %r22, %r3;\n    sub.u32 %r22, %r22, 1;\n    and.b32 %r22, %r22, 0xaaab;\n" /* blocks that exist */
    "    cvt.u16.u32 %h, %r22;\n"
    "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [words], [%d5], 256, [barrier], %h;\n"
    "wait:\n    setp.eq.u32 %p, %r9, 0;\n    @%p bra end;\n"
    "again:\n    mbarrier.try_wait.parity.shared::cta.b64 %q, [barrier], 0;\n    @!%q bra again;\n    ld.shared.u32 %r20, [%r31];\n"
    "end:\n"
    SYNC END
    /* Some threads end before others meet, also between their arrival and the wait; those that stay count the rounds. */
    BEGIN("leaving", "")
    "    mov.u32 %r20, 0;\n    st.global.u32 [%d1], %r20;\n    ld.param.u32 %r10, [n];\n    add.u32 %r11, %r1, %r2;\n"
    "round:\n    and.b32 %r12, %r11, 7;\n    setp.eq.u32 %p, %r12, %r20;\n    and.b32 %r13, %r11, 8;\n"
    "    setp.eq.and.u32 %q, %r13, 0, %p;\n    @%q bra end;\n    barrier.cluster.arrive;\n    @%p exit;\n    barrier.cluster.wait;\n"
    "    add.u32 %r20, %r20, 1;\n    st.global.u32 [%d1], %r20;\n    setp.lt.u32 %p, %r20, %r10;\n    @%p bra round;\n"
    "end:\n    ret;\n}\n"
    /* What sizes the kernel allows. */
#define SIZE "    mad.lo.u32 %r20, %r3, 100, %r2;\n"
    BEGIN("fixed", " .explicitcluster .reqnctapercluster 2, 2, 1") SIZE END
    BEGIN("unfixed", " .explicitcluster") SIZE END
    BEGIN("limited", " .maxclusterrank 2") SIZE END;

/* The dimensions of the launch are those of the grid of clusters. */
static const char mapped_ptx[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    BEGIN("mapped", " .reqntid 64, 1, 1 .reqnctapercluster 2, 1, 1 .blocksareclusters") SIZE END;
/* clang-format on */

static CUmodule module;
static uint32_t input[WORDS], found[WORDS];

struct shape {
    unsigned grid[3], cluster[3];
};

static const struct shape shapes[] = {
    {{1, 1, 1}, {1, 1, 1}}, {{2, 1, 1}, {2, 1, 1}}, {{12, 1, 1}, {4, 1, 1}},
    {{4, 4, 2}, {2, 2, 1}}, {{2, 3, 4}, {1, 3, 2}}, {{16, 2, 1}, {8, 1, 1}},
};
#define EACH_SHAPE(s) for (const struct shape *s = shapes; s < shapes + sizeof shapes / sizeof *shapes; s++)

static unsigned blocks_of(const unsigned size[3])
{
    return size[0] * size[1] * size[2];
}

/* A block of a grid, and its place in its cluster. */
struct block {
    unsigned at[3], number, id[3], place[3], rank, size;
};

static struct block block_at(const struct shape *shape, unsigned x, unsigned y, unsigned z)
{
    struct block b = {.at = {x, y, z}, .size = blocks_of(shape->cluster)};

    b.number = x + shape->grid[0] * (y + shape->grid[1] * z);
    for (int i = 0; i < 3; i++) {
        b.id[i] = b.at[i] / shape->cluster[i];
        b.place[i] = b.at[i] % shape->cluster[i];
    }
    b.rank = b.place[0] + shape->cluster[0] * (b.place[1] + shape->cluster[1] * b.place[2]);
    return b;
}

static struct block block_of(const struct shape *shape, unsigned number)
{
    return block_at(shape, number % shape->grid[0], number / shape->grid[0] % shape->grid[1], number / shape->grid[0] / shape->grid[1]);
}

/* The block of the same cluster with another rank. */
static struct block mate(const struct shape *shape, const struct block *b, unsigned rank)
{
    const unsigned *c = shape->cluster;

    rank %= b->size;
    return block_at(shape, b->id[0] * c[0] + rank % c[0], b->id[1] * c[1] + rank / c[0] % c[1], b->id[2] * c[2] + rank / c[0] / c[1]);
}

static CUresult try_launch(const char *name, const unsigned grid[3], const unsigned *cluster_or_null, CUdeviceptr out, CUdeviceptr in,
                           uint32_t n)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    CUlaunchConfig config = {
        .gridDimX = grid[0], .gridDimY = grid[1], .gridDimZ = grid[2], .blockDimX = THREADS, .blockDimY = 1, .blockDimZ = 1};
    void *params[] = {&out, &in, &n};
    CUfunction kernel;

    ok(cuModuleGetFunction(&kernel, module, name));
    if (cluster_or_null) {
        attribute.value.clusterDim.x = cluster_or_null[0];
        attribute.value.clusterDim.y = cluster_or_null[1];
        attribute.value.clusterDim.z = cluster_or_null[2];
        config.attrs = &attribute;
        config.numAttrs = 1;
    }
    return cuLaunchKernelEx(&config, kernel, params, NULL);
}

/* Runs a kernel on the input; the results are in `found`. */
static void run(const char *name, const unsigned grid[3], const unsigned *cluster_or_null, uint32_t n)
{
    CUdeviceptr out, in;

    ok(cuMemAlloc(&out, sizeof found));
    ok(cuMemAlloc(&in, sizeof input));
    ok(cuMemcpyHtoD(in, input, sizeof input));
    ok(cuMemsetD8(out, 0xee, sizeof found));
    ok(try_launch(name, grid, cluster_or_null, out, in, n));
    ok(cuMemcpyDtoH(found, out, sizeof found));
    ok(cuMemFree(out));
    ok(cuMemFree(in));
}

static void check(const char *name, const struct shape *shape, const struct block *b, uint32_t thread, uint32_t wanted)
{
    if (found[b->number * THREADS + thread] != wanted)
        fail_msg("%s, clusters of %u x %u x %u, block %u, thread %u: 0x%x instead of 0x%x", name, shape->cluster[0], shape->cluster[1],
                 shape->cluster[2], b->number, thread, found[b->number * THREADS + thread], wanted);
}

#define EACH_THREAD(b, t, shape)                                                                                                           \
    for (struct block b = block_of(shape, 0); b.number < blocks_of((shape)->grid); b = block_of(shape, b.number + 1))                      \
        for (uint32_t t = 0; t < THREADS; t++)

static uint32_t fold(uint32_t hash, const unsigned *values, int n)
{
    for (int i = 0; i < n; i++)
        hash = hash * 31 + values[i];
    return hash;
}

static void test_registers(void **state)
{
    (void)state;
    EACH_SHAPE(s)
    {
        run("registers", s->grid, s->cluster, 0);
        EACH_THREAD(b, t, s)
        {
            const unsigned clusters[] = {s->grid[0] / s->cluster[0], s->grid[1] / s->cluster[1], s->grid[2] / s->cluster[2]};
            const unsigned last[] = {b.rank, b.size, 1};
            const uint32_t wanted = fold(fold(fold(fold(fold(0, b.id, 3), clusters, 3), b.place, 3), s->cluster, 3), last, 3);

            if (b.size > 1) /* whether the launch of one block each is explicit was not asked of NVIDIA's driver */
                check("registers", s, &b, t, wanted);
        }
    }
}

static void test_reads(void **state)
{
    (void)state;
    EACH_SHAPE(s)
    {
        run("reads", s->grid, s->cluster, 0);
        EACH_THREAD(b, t, s)
        {
            const struct block next = mate(s, &b, b.rank + 1), after = mate(s, &b, b.rank + 2);
            const unsigned last[] = {next.rank, after.rank, b.rank, (after.rank == b.rank) + 2 + 4};

            check("reads", s, &b, t, fold((next.number * 1000 + t) * 3 + after.number * 1000 + t, last, 4));
        }
    }
}

static void test_rounds(void **state)
{
    enum { ROUNDS = 6 };
    static uint32_t now[WORDS], next[WORDS];

    (void)state;
    EACH_SHAPE(s)
    {
        run("rounds", s->grid, s->cluster, ROUNDS);
        memcpy(now, input, sizeof now);
        for (int round = 0; round < ROUNDS; round++) {
            EACH_THREAD(b, t, s)
            next[b.number * THREADS + t] = now[b.number * THREADS + t] * 5 + now[mate(s, &b, b.rank + 1).number * THREADS + t];
            memcpy(now, next, sizeof now);
        }
        EACH_THREAD(b, t, s)
        check("rounds", s, &b, t, now[b.number * THREADS + t]);
    }
}

static void test_histogram(void **state)
{
    static uint32_t bins[WORDS];

    (void)state;
    EACH_SHAPE(s)
    {
        run("histogram", s->grid, s->cluster, 0);
        memset(bins, 0, sizeof bins);
        EACH_THREAD(b, t, s)
        {
            const uint32_t value = input[b.number * THREADS + t];

            bins[mate(s, &b, value % b.size).number * THREADS + value / 4 % THREADS] += 257;
        }
        EACH_THREAD(b, t, s)
        check("histogram", s, &b, t, bins[b.number * THREADS + t]);
    }
}

static void test_messages(void **state)
{
    (void)state;
    EACH_SHAPE(s)
    {
        run("messages", s->grid, s->cluster, 0);
        EACH_THREAD(b, t, s)
        {
            const struct block from = mate(s, &b, b.rank + b.size - 1);
            const uint32_t words[] = {from.number + 7, from.number, from.number, from.number + 7};

            check("messages", s, &b, t, t < 60 ? from.number * 100 + t : words[t - 60]);
        }
    }
}

static void test_multicast(void **state)
{
    (void)state;
    EACH_SHAPE(s)
    {
        run("multicast", s->grid, s->cluster, 0);
        EACH_THREAD(b, t, s)
        check("multicast", s, &b, t, b.rank % 2 || !b.rank ? input[mate(s, &b, 0).number * THREADS + t] : 5);
    }
}

static void test_leaving(void **state)
{
    enum { ROUNDS = 6 };

    (void)state;
    EACH_SHAPE(s)
    {
        run("leaving", s->grid, s->cluster, ROUNDS);
        EACH_THREAD(b, t, s)
        check("leaving", s, &b, t, (t + b.rank) % 8 < ROUNDS ? (t + b.rank) % 8 : ROUNDS);
    }
}

/* As cuLaunchKernel launches it, too. */
static void test_fixed_size(void **state)
{
    const struct shape shape = {{4, 2, 1}, {2, 2, 1}};
    int value;
    CUfunction kernel;

    (void)state;
    run("fixed", shape.grid, NULL, 0);
    EACH_THREAD(b, t, &shape)
    check("fixed", &shape, &b, t, 400 + b.rank);
    run("fixed", shape.grid, shape.cluster, 0);
    EACH_THREAD(b, t, &shape)
    check("fixed", &shape, &b, t, 400 + b.rank);
    ok(cuModuleGetFunction(&kernel, module, "fixed"));
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, kernel));
    assert_int_equal(value, 2);
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, kernel));
    assert_int_equal(value, 1);
    if (on_cuttle()) /* as documented; NVIDIA's driver 580 takes the same value */
        gives(CUDA_ERROR_NOT_PERMITTED, cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
}

static void test_refusals(void **state)
{
    static const struct {
        const char *kernel;
        unsigned grid[3], cluster[3];
    } rows[] = {
        {"reads", {3, 1, 1}, {2, 1, 1}},   {"reads", {4, 3, 1}, {2, 2, 1}}, {"reads", {16, 1, 1}, {16, 1, 1}},
        {"fixed", {4, 4, 1}, {4, 1, 1}},   {"fixed", {3, 2, 1}, {0, 0, 0}}, {"unfixed", {4, 1, 1}, {0, 0, 0}},
        {"limited", {4, 1, 1}, {4, 1, 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        gives(CUDA_ERROR_INVALID_CLUSTER_SIZE,
              try_launch(rows[i].kernel, rows[i].grid, rows[i].cluster[0] ? rows[i].cluster : NULL, 0, 0, 0));
}

/* Sixteen blocks are allowed if the function says so; a size that is set for the function needs no attribute. */
static void test_function_attributes(void **state)
{
    const struct shape shape = {{32, 1, 1}, {16, 1, 1}};
    CUlaunchConfig config = {.gridDimX = 32, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS, .blockDimY = 1, .blockDimZ = 1};
    CUfunction kernel;
    int most;

    (void)state;
    ok(cuModuleGetFunction(&kernel, module, "reads"));
    ok(cuOccupancyMaxPotentialClusterSize(&most, kernel, &config));
    assert_int_equal(most, 8);
    ok(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    ok(cuOccupancyMaxPotentialClusterSize(&most, kernel, &config));
    assert_int_equal(most, 16);
    ok(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0));
    ok(cuModuleGetFunction(&kernel, module, "unfixed")); /* it has no size, and needs one */
    gives(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxPotentialClusterSize(&most, kernel, &config));
    ok(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    ok(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 16));
    ok(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
    ok(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
    run("unfixed", shape.grid, NULL, 0);
    EACH_THREAD(b, t, &shape)
    check("unfixed", &shape, &b, t, 1600 + b.rank);
}

static void test_grid_of_clusters(void **state)
{
    const struct shape shape = {{6, 2, 1}, {2, 1, 1}};
    CUmodule mapped, before = module;

    (void)state;
    if (cuModuleLoadData(&mapped, mapped_ptx) == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        skip(); /* an older driver of NVIDIA's */
    module = mapped;
    run("mapped", (const unsigned[]){3, 2, 1}, NULL, 0);
    module = before;
    EACH_THREAD(b, t, &shape)
    check("mapped", &shape, &b, t, 200 + b.rank);
    ok(cuModuleUnload(mapped));
}

/* In a graph that was captured, launched twice. */
static void test_graph(void **state)
{
    const struct shape shape = {{4, 1, 1}, {4, 1, 1}};
    CUdeviceptr out, in;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 1, 1}};
    CUlaunchConfig config = {.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS, .blockDimY = 1, .blockDimZ = 1};
    uint32_t rounds = 1;
    void *params[] = {&out, &in, &rounds};
    CUfunction kernel;

    (void)state;
    ok(cuMemAlloc(&out, sizeof found));
    ok(cuMemAlloc(&in, sizeof input));
    ok(cuMemcpyHtoD(in, input, sizeof input));
    ok(cuModuleGetFunction(&kernel, module, "rounds"));
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(cuLaunchKernelEx(&config, kernel, params, NULL));
    ok(cuStreamEndCapture(stream, &graph));
    ok(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 2; i++) {
        ok(cuMemsetD8(out, 0, sizeof found));
        ok(cuGraphLaunch(exec, stream));
        ok(cuStreamSynchronize(stream));
        ok(cuMemcpyDtoH(found, out, sizeof found));
        EACH_THREAD(b, t, &shape)
        check("graph", &shape, &b, t, input[b.number * THREADS + t] * 5 + input[mate(&shape, &b, b.rank + 1).number * THREADS + t]);
    }
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
    ok(cuStreamDestroy(stream));
    ok(cuMemFree(out));
    ok(cuMemFree(in));
}

static int load(void **state)
{
    for (uint32_t i = 0; i < WORDS; i++)
        input[i] = (i + 1) * 2654435761u ^ i << 7;
    return with_context(state) == 0 && cuModuleLoadData(&module, ptx) == CUDA_SUCCESS ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_rounds),           cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_messages),         cmocka_unit_test(test_multicast),
        cmocka_unit_test(test_leaving),          cmocka_unit_test(test_fixed_size),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_function_attributes),
        cmocka_unit_test(test_grid_of_clusters), cmocka_unit_test(test_graph),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
