/* SPDX-License-Identifier: Apache-2.0 */
/* Warp instructions and barriers wherever CUDA allows them: in uniform and divergent code, in loops of different lengths, after early
 * exits, on named barriers, beside threads that spin. Each row is a kernel and what host C says it computes. Blocks of 256 threads and of
 * 80 (a warp of half a length). The same kernels run in every form: as the device prefers, and by CUTTLE_WARP=collective and
 * CUTTLE_SYNC=resumed. */
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { MAX = 256 };

/* One block: what threads read and must write. */
struct block {
    uint32_t in[MAX], out[MAX];
    uint32_t n, threads;
};

static uint32_t lanes_of(const struct block *b, uint32_t t)
{
    const uint32_t left = b->threads - (t & ~31u);

    return left < 32 ? left : 32;
}

/* ---- shuffles ---- */

/* The ISA's description of shfl, for all lanes of a full mask. */
static uint32_t shuffled(const struct block *b, uint32_t t, char mode, uint32_t by, uint32_t c, bool *in_range)
{
    const int32_t lane = (int32_t)(t % 32), segment = (int32_t)(c >> 8 & 31), clamp = (int32_t)(c & 31);
    const int32_t most = (lane & segment) | (clamp & ~segment);
    int32_t j = 0;

    by &= 31;
    switch (mode) {
    case 'u': j = lane - (int32_t)by; *in_range = j >= most; break;
    case 'd': j = lane + (int32_t)by; *in_range = j <= most; break;
    case 'b': j = lane ^ (int32_t)by; *in_range = j <= most; break;
    default: j = (lane & segment) | ((int32_t)by & ~segment); *in_range = j <= most; break;
    }
    return *in_range ? b->in[(t & ~31u) + (uint32_t)j] : b->in[t];
}

/* Folds what all four kinds give, with segments of 32 and of 8 lanes. */
static void expect_shuffles(struct block *b)
{
    static const struct { char mode; uint32_t c; } kinds[] = {{'u', 0x0000}, {'d', 0x001f}, {'b', 0x001f}, {'i', 0x001f},
                                                              {'u', 0x1800}, {'d', 0x181f}, {'b', 0x181f}, {'i', 0x181f}};

    for (uint32_t t = 0; t < b->threads; t++)
        for (size_t k = 0; k < 8; k++) {
            bool in_range;
            const uint32_t value = shuffled(b, t, kinds[k].mode, b->n & 7, kinds[k].c, &in_range);

           
            b->out[t] = (b->out[t] << 3 | b->out[t] >> 29) + value + in_range;
        }
}
#define SHUFFLE(mode, by, c) \
    "shfl.sync." mode ".b32 r1|p, v, " by ", " c ", -1; selp.u32 r2,1,0,p; shf.l.wrap.b32 x,x,x,3; add.u32 x,x,r1; add.u32 x,x,r2;"
static const char shuffles[] = "and.b32 r3,n,7;" SHUFFLE("up", "r3", "0x0000") SHUFFLE("down", "r3", "0x001f") SHUFFLE("bfly", "r3", "0x001f")
    SHUFFLE("idx", "r3", "0x001f") SHUFFLE("up", "r3", "0x1800") SHUFFLE("down", "r3", "0x181f") SHUFFLE("bfly", "r3", "0x181f")
    SHUFFLE("idx", "r3", "0x181f");

/* A tree sum in each warp whose number has the parity of n; the others keep their value. */
static void expect_one_warp(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t sum = 0;

        for (uint32_t l = 0; l < 32 && lanes_of(b, t) == 32; l++)
            sum += b->in[(t & ~31u) + l];
        b->out[t] = (t / 32 + b->n) % 2 || lanes_of(b, t) < 32 ? b->in[t] : sum;
    }
}
static const char one_warp[] =
    "mov.u32 x,v; shr.u32 r1,t,5; add.u32 r1,r1,n; and.b32 r1,r1,1; setp.ne.u32 p,r1,0; @p bra OUT;"
    "or.b32 r2,t,31; setp.ge.u32 p,r2,z; @p bra OUT;"
    "shfl.sync.bfly.b32 r1,x,16,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,8,31,-1; add.u32 x,x,r1;"
    "shfl.sync.bfly.b32 r1,x,4,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,2,31,-1; add.u32 x,x,r1;"
    "shfl.sync.bfly.b32 r1,x,1,31,-1; add.u32 x,x,r1; OUT: bar.sync 0;";

/* Each warp goes its own number of rounds; each round rotates the values by one lane. */
static void expect_rounds(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        const uint32_t lanes = lanes_of(b, t), rounds = t / 32 * (b->n + 1);

        b->out[t] = b->in[(t & ~31u) + (t % 32 + rounds) % lanes];
    }
}
static const char rounds[] =
    "mov.u32 x,v; shr.u32 r1,t,5; add.u32 r2,n,1; mul.lo.u32 r1,r1,r2; and.b32 r3,t,-32; sub.u32 r3,z,r3; min.u32 r3,r3,32;"
    "and.b32 r4,t,31; add.u32 r4,r4,1; rem.u32 r4,r4,r3; mov.u32 r5,-1; setp.lt.u32 p,r3,32; @p bra SHORT; bra LOOP;"
    "SHORT: mov.u32 r5,1; shl.b32 r5,r5,r3; sub.u32 r5,r5,1;"
    "LOOP: setp.eq.u32 p,r1,0; @p bra DONE; shfl.sync.idx.b32 x,x,r4,31,r5; sub.u32 r1,r1,1; bra LOOP; DONE:";

/* ---- votes ---- */

/* Ballots of the even and of the odd lanes in different branches, with their own masks. */
static void expect_ballots(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t ballot = 0;

        for (uint32_t l = 0; l < lanes_of(b, t); l++)
            if (l % 2 == t % 2 && b->in[(t & ~31u) + l] % 3 == b->n % 3)
                ballot |= 1u << l;
        b->out[t] = ballot;
    }
}
static const char ballots[] =
    "rem.u32 r1,v,3; rem.u32 r2,n,3; setp.eq.u32 q,r1,r2; and.b32 r3,t,1; setp.ne.u32 p,r3,0; @p bra ODD;"
    "vote.sync.ballot.b32 x,q,0x55555555; bra OUT; ODD: vote.sync.ballot.b32 x,q,0xaaaaaaaa; OUT:";

static void expect_votes(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t held = 0, lanes = lanes_of(b, t);

        for (uint32_t l = 0; l < lanes; l++)
            held += b->in[(t & ~31u) + l] % 64 > b->n * 8 - b->n;
        b->out[t] = (held == lanes) | (held > 0) << 1 | (held == lanes || held == 0) << 2;
    }
}
static const char votes[] =
    "and.b32 r1,v,63; mul.lo.u32 r2,n,7; setp.gt.u32 q,r1,r2; vote.sync.all.pred p,q,-1; selp.u32 x,1,0,p; vote.sync.any.pred p,q,-1;"
    "selp.u32 r3,2,0,p; or.b32 x,x,r3; vote.sync.uni.pred p,q,-1; selp.u32 r3,4,0,p; or.b32 x,x,r3;";

static void expect_matches(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t any = 0, all = 1;

        for (uint32_t l = 0; l < lanes_of(b, t); l++) {
            const uint32_t other = b->in[(t & ~31u) + l];

            any |= (uint32_t)(other % 4 == b->in[t] % 4) << l;
            all &= other % (b->n + 1) == b->in[t] % (b->n + 1);
        }
        b->out[t] = any ^ (all ? 0x80000001u : 0);
    }
}
static const char matches[] =
    "and.b32 r1,v,3; match.any.sync.b32 x,r1,-1; add.u32 r2,n,1; rem.u32 r1,v,r2; cvt.u64.u32 d1,r1; shl.b64 d1,d1,33;"
    "match.all.sync.b64 r3|p,d1,-1; @!p bra OUT; xor.b32 x,x,0x80000001; OUT:";

/* activemask in the branch of some lanes: itself, and nobody of the other branch. Uniform: all lanes. */
static void expect_active(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = 3;
}
static const char active[] =
    "activemask.b32 r1; and.b32 r2,t,-32; sub.u32 r2,z,r2; min.u32 r2,r2,32; popc.b32 r3,r1; setp.eq.u32 p,r3,r2; selp.u32 x,1,0,p;"
    "mov.u32 r4,0x00ff00ff; and.b32 r2,t,31; shr.u32 r3,r4,r2; and.b32 r3,r3,1; setp.eq.u32 p,r3,0; @p bra OTHER;"
    "activemask.b32 r1; bra MEET; OTHER: activemask.b32 r1; not.b32 r4,r4; MEET:"
    "not.b32 r5,r4; and.b32 r5,r5,r1; setp.eq.u32 p,r5,0; shr.u32 r1,r1,r2; and.b32 r1,r1,1; setp.eq.and.u32 p,r1,1,p;"
    "selp.u32 r3,2,0,p; or.b32 x,x,r3;";

/* ---- barriers ---- */

/* The last n * 20 threads have ended; the rest rotate through shared memory three times. */
static void expect_early_exit(struct block *b)
{
    const uint32_t stay = b->threads - b->n * 20;

    for (uint32_t t = 0; t < stay; t++)
        b->out[t] = b->in[(t + 3) % stay];
}
static const char early_exit[] =
    "mul.lo.u32 r1,n,20; sub.u32 r1,z,r1; setp.ge.u32 p,t,r1; @p ret; mov.u32 x,v; mov.u32 r2,0; mov.u32 r3,s; mad.lo.u32 r4,t,4,r3;"
    "add.u32 r5,t,1; rem.u32 r5,r5,r1; mad.lo.u32 r5,r5,4,r3;"
    "LOOP: st.shared.u32 [r4],x; bar.sync 0; ld.shared.u32 x,[r5]; bar.sync 0; add.u32 r2,r2,1; setp.lt.u32 p,r2,3; @p bra LOOP;";

/* One barrier met from two branches: the odd warps read what the even ones wrote and the other way round. */
static void expect_two_branches(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = b->in[(t + 32 + 32 * b->n) % b->threads];
}
static const char two_branches[] =
    "mov.u32 r3,s; mad.lo.u32 r4,t,4,r3; mul.lo.u32 r1,n,32; add.u32 r1,r1,32; add.u32 r1,r1,t; rem.u32 r1,r1,z; mad.lo.u32 r5,r1,4,r3;"
    "and.b32 r1,t,32; setp.ne.u32 p,r1,0; @p bra ODD; st.shared.u32 [r4],v; bar.sync 0; ld.shared.u32 x,[r5]; bra OUT;"
    "ODD: st.shared.u32 [r4],v; bar.sync 0; ld.shared.u32 x,[r5]; OUT:";

/* Warp 0 makes n + 2 packets, warp 1 adds them up, on named barriers 1 (full) and 2 (empty); the other warps meet at barrier 3. */
static void expect_producer(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = b->in[t];
    for (uint32_t l = 0; l < 32; l++)
        for (uint32_t k = 0; k < b->n + 2; k++)
            b->out[32 + l] += b->in[31 - l] * (k + 1);
}
static const char producer[] =
    "mov.u32 x,v; mov.u32 r3,s; add.u32 r7,n,2; mov.u32 r6,0; setp.ge.u32 p,t,64; @p bra OTHERS; setp.ge.u32 p,t,32; @p bra CONSUMER;"
    "mad.lo.u32 r4,t,4,r3; P: add.u32 r6,r6,1; mul.lo.u32 r5,v,r6; bar.sync 2,64; st.shared.u32 [r4],r5; bar.arrive 1,64;"
    "setp.lt.u32 p,r6,r7; @p bra P; bra OUT;"
    "CONSUMER: sub.u32 r4,63,t; mad.lo.u32 r4,r4,4,r3; bar.arrive 2,64; C: bar.sync 1,64; ld.shared.u32 r5,[r4]; add.u32 x,x,r5;"
    "add.u32 r6,r6,1; setp.ge.u32 p,r6,r7; @p bra OUT; bar.arrive 2,64; bra C; OTHERS: sub.u32 r4,z,64; and.b32 r5,z,31;"
    "setp.ne.u32 p,r5,0; @p bra OUT; bar.sync 3,r4; OUT:";

static void expect_bar_red(struct block *b)
{
    uint32_t held = 0;

    for (uint32_t t = 0; t < b->threads; t++)
        held += b->in[t] % 8 <= b->n * 2;
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = held | (uint32_t)(held == b->threads) << 16 | (uint32_t)(held != 0) << 17;
}
static const char bar_red[] =
    "and.b32 r1,v,7; mul.lo.u32 r2,n,2; setp.le.u32 q,r1,r2; bar.red.popc.u32 x,0,q; bar.red.and.pred p,0,q; selp.u32 r3,0x10000,0,p;"
    "or.b32 x,x,r3; bar.red.or.pred p,0,q; selp.u32 r3,0x20000,0,p; or.b32 x,x,r3;";

/* Warp 1 waits on a word of shared memory for warp 0, which waits for nobody. */
static void expect_spin(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = t / 32 == 1 ? b->in[t % 32] + b->n : b->in[t];
}
static const char spin[] =
    "mov.u32 x,v; mov.u32 r3,s; mad.lo.u32 r4,t,4,r3; mov.u32 r1,0; st.volatile.shared.u32 [r3+512],r1; bar.sync 0;"
    "setp.ge.u32 p,t,64; @p bra OUT; setp.ge.u32 p,t,32; @p bra WAIT; st.shared.u32 [r4],v; membar.cta; bar.warp.sync -1;"
    "add.u32 r1,n,1; setp.eq.u32 p,t,0; @p st.volatile.shared.u32 [r3+512],r1; bra OUT;"
    "WAIT: ld.volatile.shared.u32 r1,[r3+512]; setp.eq.u32 p,r1,0; @p bra WAIT; membar.cta; ld.shared.u32 x,[r4+-128]; add.u32 x,x,r1;"
    "sub.u32 x,x,1; OUT:";

/* A spin lock around a counter in shared memory, taken by every thread; then its final value. */
static void expect_lock(struct block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = b->threads * (b->n + 1);
}
static const char lock[] =
    "mov.u32 r3,s; mov.u32 r1,0; st.shared.u32 [r3],r1; st.shared.u32 [r3+4],r1; bar.sync 0; add.u32 r6,n,1;"
    "TRY: atom.shared.cas.b32 r1,[r3],0,1; setp.ne.u32 p,r1,0; @p bra TRY; membar.cta; ld.volatile.shared.u32 r2,[r3+4];"
    "add.u32 r2,r2,r6; st.volatile.shared.u32 [r3+4],r2; membar.cta; atom.shared.exch.b32 r1,[r3],0; bar.sync 0;"
    "ld.shared.u32 x,[r3+4];";

static const struct row {
    const char *name, *body;
    void (*expect)(struct block *b);
    bool full_warps; /* only blocks of whole warps */
} rows[] = {
    {"shuffles of every kind", shuffles, expect_shuffles, true},
    {"shuffles in some warps", one_warp, expect_one_warp, false},
    {"shuffles in loops of different lengths", rounds, expect_rounds, false},
    {"ballots in two branches", ballots, expect_ballots, false},
    {"votes", votes, expect_votes, false},
    {"matches", matches, expect_matches, false},
    {"active lanes", active, expect_active, false},
    {"barriers after early exits", early_exit, expect_early_exit, false},
    {"one barrier from two branches", two_branches, expect_two_branches, true},
    {"producer and consumer", producer, expect_producer, false},
    {"barriers that reduce", bar_red, expect_bar_red, false},
    {"a warp that spins", spin, expect_spin, true},
    {"a spin lock", lock, expect_lock, false},
};

static void make_ptx(char *text, size_t size, const char *body)
{
    const int length = snprintf(
        text, size,
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 count)\n{\n"
        ".reg .pred p, q; .reg .b32 r<10>; .reg .b64 d<4>; .reg .b64 o, i; .reg .b32 t, v, n, x, z; .shared .align 16 .b8 s[1024];\n"
        "ld.param.u64 o,[out]; ld.param.u64 i,[in]; ld.param.u32 n,[count]; mov.u32 t,%%tid.x; mov.u32 z,%%ntid.x;\n"
        "mul.wide.u32 d0,t,4; add.u64 o,o,d0; add.u64 i,i,d0; ld.global.u32 v,[i]; mov.u32 x,0;\n"
        "%s\nst.global.u32 [o],x; ret;\n}\n",
        body);

    assert_true(length > 0 && (size_t)length < size);
}

static void fill(struct block *block, uint32_t n, uint32_t threads)
{
    uint32_t word = 54321 + n;

    *block = (struct block){.n = n, .threads = threads};
    for (uint32_t t = 0; t < MAX; t++) {
        word = word * 1664525u + 1013904223u;
        block->in[t] = word >> 8;
    }
}

static void run(const struct row *row, uint32_t threads)
{
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr in, out;
    char ptx[8192];

    make_ptx(ptx, sizeof ptx, row->body);
    if (cuModuleLoadData(&module, ptx) != CUDA_SUCCESS || cuModuleGetFunction(&kernel, module, "k") != CUDA_SUCCESS)
        fail_msg("%s does not load", row->name);
    assert_int_equal(cuMemAlloc(&in, sizeof(uint32_t) * MAX), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc(&out, sizeof(uint32_t) * MAX), CUDA_SUCCESS);
    for (uint32_t n = 0; n < 4; n++) {
        struct block block;
        uint32_t found[MAX];
        void *params[] = {&out, &in, &n};

        fill(&block, n, threads);
        row->expect(&block);
        assert_int_equal(cuMemcpyHtoD(in, block.in, sizeof block.in), CUDA_SUCCESS);
        assert_int_equal(cuMemsetD32(out, 0, MAX), CUDA_SUCCESS);
        if (cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL) != CUDA_SUCCESS)
            fail_msg("%s does not start", row->name);
        assert_int_equal(cuMemcpyDtoH(found, out, sizeof found), CUDA_SUCCESS);
        for (uint32_t t = 0; t < MAX; t++)
            if (found[t] != block.out[t])
                fail_msg("%s, %u threads, n = %u, thread %u: 0x%x instead of 0x%x", row->name, threads, n, t, found[t], block.out[t]);
    }
    assert_int_equal(cuMemFree(in), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

static void run_rows(uint32_t threads)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (threads % 32 == 0 || !rows[i].full_warps)
            run(&rows[i], threads);
}

static void test_whole_warps(void **state)
{
    (void)state;
    run_rows(256);
}

static void test_two_warps(void **state)
{
    (void)state;
    run_rows(64);
}

static void test_a_short_warp(void **state)
{
    (void)state;
    run_rows(80);
}

static int make_context(void **state)
{
    static CUcontext context;
    CUdevice device;

    *state = &context;
    return cuInit(0) || cuDeviceGet(&device, 0) || cuCtxCreate(&context, NULL, 0, device);
}

static int destroy_context(void **state)
{
    return cuCtxDestroy(*(CUcontext *)*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_warps),
        cmocka_unit_test(test_two_warps),
        cmocka_unit_test(test_a_short_warp),
    };

    return cmocka_run_group_tests(tests, make_context, destroy_context);
}
