/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative launches: blocks that wait for each other, at barriers of the grid and in loops of their own, with all kinds of live state
 * across the waits; launches that are rejected; and their order in a stream. Each row is a kernel and a host function that computes its
 * result. */
#include <cuda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../api/which_driver.h"

enum { WORDS = 2048 }; /* size of each of the buffers: maximum number of threads of a grid */

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)

struct grid {
    uint32_t blocks[3], threads, n;
    uint32_t size;       /* threads of the grid */
    uint32_t in[WORDS];  /* read only */
    uint32_t out[WORDS]; /* expected; initialized with 0 */
};

/* The barrier of cooperative groups: the last block to arrive flips the top bit of the second word at the address in %envreg1 and 2. */
static const char functions[] =
    ".extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
    ".extern .func (.param .b32 result) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags);\n"
    ".extern .func (.param .b32 result) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle);\n"
    ".extern .func (.param .b32 result) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle);\n"
    ".extern .func (.param .b64 handle) __cuda_syscall_CGS_get_intrinsic_handle(.param .b32 scope);\n"
    ".extern .func (.param .b32 result) __cuda_syscall_CGS_sync(.param .b64 handle, .param .b32 flags);\n"
    ".extern .func (.param .b32 result) __cuda_syscall_CGS_get_size(.param .b64 threads, .param .b64 grids, .param .b64 handle);\n"
    ".extern .func (.param .b32 result) __cuda_syscall_CGS_get_rank(.param .b64 thread, .param .b64 grid, .param .b64 handle);\n"
    ".func meet()\n{\n.reg .pred p; .reg .b32 r<9>; .reg .b64 a;\n"
    "mov.u32 r0,%envreg2; mov.u32 r1,%envreg1; mov.b64 a,{r0,r1}; bar.sync 0;\n"
    "mov.u32 r2,%tid.x; setp.ne.u32 p,r2,0; @p bra DONE; mov.u32 r3,%nctaid.x; mov.u32 r4,%nctaid.y; mul.lo.u32 r3,r3,r4;\n"
    "mov.u32 r4,%nctaid.z; mul.lo.u32 r3,r3,r4; mov.u32 r5,%ctaid.x; mov.u32 r6,%ctaid.y; or.b32 r5,r5,r6; mov.u32 r6,%ctaid.z;\n"
    "or.b32 r5,r5,r6; setp.eq.u32 p,r5,0; sub.u32 r6,0x80000001,r3; selp.b32 r6,r6,1,p; membar.gl;\n"
    "atom.global.add.u32 r7,[a+4],r6;\n"
    "WAIT: ld.volatile.global.u32 r8,[a+4]; xor.b32 r8,r8,r7; setp.ge.s32 p,r8,0; @p bra WAIT; membar.gl;\n"
    "DONE: bar.sync 0; ret;\n}\n";
#define SYNC "call meet;"

/* ---- kernels: g is the thread's number in the grid, z the grid's size, b the block's number; o and i point to out[g] and in[g],
 *      w to a buffer of WORDS zeros ---- */

/* Rounds in which each thread adds a neighbour's previous value. */
static void expect_rounds(struct grid *g)
{
    uint32_t now[WORDS], next[WORDS];

    memcpy(now, g->in, sizeof now);
    for (uint32_t round = 0; round < g->n; round++) {
        for (uint32_t t = 0; t < g->size; t++)
            next[t] = now[t] + now[(t + 7 * round + 1) % g->size];
        memcpy(now, next, sizeof now);
    }
    memcpy(g->out, now, sizeof now);
}
static const char rounds[] =
    "mov.u32 x,v; mov.u32 r0,0; LOOP: setp.ge.u32 p,r0,n; @p bra DONE; mul.wide.u32 d1,g,4; add.u64 d1,w,d1; st.global.u32 [d1],x;" SYNC
    "mad.lo.u32 r1,r0,7,g; add.u32 r1,r1,1; rem.u32 r1,r1,z; mul.wide.u32 d1,r1,4; add.u64 d1,w,d1; ld.global.u32 r2,[d1];"
    "add.u32 x,x,r2;" SYNC "add.u32 r0,r0,1; bra LOOP; DONE:";

/* Registers of every width, predicates, shared memory of both kinds and local memory, each changed between barriers and read at the end. */
static void expect_state(struct grid *g)
{
    for (uint32_t t = 0; t < g->size; t++) {
        const uint32_t block = t / g->threads, own = t % g->threads, mate = (own + 1) % g->threads;
        uint32_t local[8] = {0}, shared = 0, dynamic = 0, x = g->in[t];
        uint64_t wide = (uint64_t)x << 20;
        uint16_t half = (uint16_t)x;
        bool odd = x & 1;

        for (uint32_t round = 0; round < g->n; round++) {
            wide = wide * 3 + t;
            half = (uint16_t)(half * 5 + round);
            odd ^= round & 1;
            local[(t + round) % 8] += round + own;
            shared = 100 * round + mate + block;
            dynamic += mate * 3 + round;
        }
        g->out[t] = (uint32_t)wide ^ (uint32_t)(wide >> 32) ^ half ^ (odd ? 0x10000 : 0);
        for (uint32_t i = 0; i < 8; i++)
            g->out[t] = g->out[t] * 31 + local[i];
        g->out[t] += shared + 7 * dynamic;
    }
}
static const char state[] =
    "cvt.u64.u32 d1,v; shl.b64 d1,d1,20; cvt.u16.u32 h,v; and.b32 r0,v,1; setp.ne.u32 q,r0,0; cvt.u64.u32 d2,g; mov.u32 r0,0;"
    "mov.u32 r9,l; mov.u32 r1,0; CLEAR: st.local.u32 [r9],r1; add.u32 r9,r9,4; sub.u32 r2,r9,l; setp.lt.u32 p,r2,32; @p bra CLEAR;"
    "mov.u32 r8,0; mov.u32 r9,0; mad.lo.u32 r3,t,4,s; mad.lo.u32 r4,t,4,e; add.u32 r5,t,1; rem.u32 r5,r5,m;"
    "mad.lo.u32 r6,r5,4,s; mad.lo.u32 r7,r5,4,e;"
    "mov.u32 r1,0; st.shared.u32 [r4],r1;"
    "LOOP: setp.ge.u32 p,r0,n; @p bra DONE; mad.lo.u64 d1,d1,3,d2; cvt.u16.u32 k,r0; mad.lo.u16 h,h,5,k; and.b32 r1,r0,1;"
    "setp.ne.u32 p,r1,0; xor.pred q,q,p; add.u32 r1,g,r0; and.b32 r1,r1,7; mad.lo.u32 r1,r1,4,l; ld.local.u32 r2,[r1]; add.u32 r2,r2,r0;"
    "add.u32 r2,r2,t; st.local.u32 [r1],r2; mad.lo.u32 r1,r0,100,t; add.u32 r1,r1,b; st.shared.u32 [r3],r1; ld.shared.u32 r1,[r4];"
    "mad.lo.u32 r1,t,3,r1; add.u32 r1,r1,r0; st.shared.u32 [r4],r1;" SYNC "ld.shared.u32 r8,[r6]; ld.shared.u32 r9,[r7];" SYNC
    "add.u32 r0,r0,1; bra LOOP; DONE: mov.b64 {x,r1},d1; xor.b32 x,x,r1; cvt.u32.u16 r1,h; xor.b32 x,x,r1; selp.b32 r1,0x10000,0,q;"
    "xor.b32 x,x,r1; mov.u32 r1,l; FOLD: ld.local.u32 r2,[r1]; mad.lo.u32 x,x,31,r2; add.u32 r1,r1,4; sub.u32 r2,r1,l;"
    "setp.lt.u32 p,r2,32; @p bra FOLD; add.u32 x,x,r8; mad.lo.u32 x,r9,7,x;";

/* The sum of the whole grid, repeatedly: within a block by shared memory, of all blocks by block 0. Each round begins with the last sum. */
static void expect_reduction(struct grid *g)
{
    uint32_t sum = 0;

    for (uint32_t round = 0; round <= g->n; round++) {
        uint32_t next = 0;

        for (uint32_t t = 0; t < g->size; t++)
            next += g->in[t] + (sum ^ t);
        sum = next;
    }
    for (uint32_t t = 0; t < g->size; t++)
        g->out[t] = sum;
}
static const char reduction[] =
    "mov.u32 x,0; mov.u32 r0,0; mad.lo.u32 r1,t,4,s; div.u32 r2,z,m; mul.wide.u32 d1,b,4; add.u64 d1,w,d1;"
    "LOOP: xor.b32 r3,x,g; add.u32 r3,r3,v; st.shared.u32 [r1],r3; bar.sync 0; setp.ne.u32 p,t,0; @p bra STORED; mov.u32 r4,0;"
    "mov.u32 r5,0; ADD: mad.lo.u32 r6,r4,4,s; ld.shared.u32 r6,[r6]; add.u32 r5,r5,r6; add.u32 r4,r4,1; setp.lt.u32 p,r4,m; @p bra ADD;"
    "st.global.u32 [d1],r5; STORED:" SYNC "setp.ne.u32 p,g,0; @p bra SUMMED; mov.u32 r4,0; mov.u32 r5,0; mov.u64 d2,w;"
    "ALL: ld.global.u32 r6,[d2]; add.u32 r5,r5,r6; add.u64 d2,d2,4; add.u32 r4,r4,1; setp.lt.u32 p,r4,r2; @p bra ALL;"
    "st.global.u32 [w+8000],r5; SUMMED:" SYNC "ld.global.u32 x,[w+8000];" SYNC "add.u32 r0,r0,1; setp.le.u32 p,r0,n; @p bra LOOP;";

/* Each block waits for the next one, except the last one: whatever order blocks run in, one has to wait. One of its threads does. */
static void expect_chain(struct grid *g)
{
    const uint32_t blocks = g->size / g->threads;

    for (uint32_t t = 0; t < g->size; t++)
        for (uint32_t block = t / g->threads; block < blocks; block++)
            g->out[t] += block + g->n;
}
static const char chain[] =
    "div.u32 r2,z,m; mul.wide.u32 d1,b,8; add.u64 d1,w,d1; setp.ne.u32 p,t,5; @p bra HERE; add.u32 r3,b,1; mov.u32 r4,0;"
    "setp.ge.u32 p,r3,r2;"
    "@p bra LAST; WAIT: ld.relaxed.gpu.global.u32 r5,[d1+8]; setp.eq.u32 p,r5,0; @p bra WAIT; fence.acq_rel.gpu; ld.global.u32 r4,[d1+12];"
    "LAST: add.u32 r4,r4,b; add.u32 r4,r4,n; st.global.u32 [d1+4],r4; fence.acq_rel.gpu; mov.u32 r5,1; st.relaxed.gpu.global.u32 [d1],r5;"
    "HERE: bar.sync 0; ld.global.u32 x,[d1+4];";

/* The same from thread to thread, through the whole grid, with as many spinning threads. */
static void expect_threads(struct grid *g)
{
    uint32_t sum = 0;

    for (uint32_t t = g->size; t-- > 0;)
        g->out[t] = sum = sum * 3 + g->in[t] + g->n;
}
static const char threads[] =
    "mul.wide.u32 d1,g,8; add.u64 d1,w,d1; mov.u32 x,0; add.u32 r3,g,1; setp.ge.u32 p,r3,z; @p bra LAST;"
    "WAIT: ld.acquire.gpu.global.u32 r5,[d1+8]; setp.eq.u32 p,r5,0; @p bra WAIT; ld.global.u32 x,[d1+12];"
    "LAST: mad.lo.u32 x,x,3,v; add.u32 x,x,n; st.global.u32 [d1+4],x; mov.u32 r5,1; st.release.gpu.global.u32 [d1],r5;";

/* A lock that all threads of all blocks take in turn, around a word of global memory; a barrier; its final value. */
static void expect_lock(struct grid *g)
{
    for (uint32_t t = 0; t < g->size; t++)
        g->out[t] = g->size * (g->n + 1);
}
static const char lock[] =
    "add.u32 r0,n,1; TRY: atom.global.cas.b32 r1,[w],0,1; setp.ne.u32 p,r1,0; @p bra TRY; membar.gl; ld.volatile.global.u32 r2,[w+4];"
    "add.u32 r2,r2,r0; st.volatile.global.u32 [w+4],r2; membar.gl; atom.global.exch.b32 r1,[w],0;" SYNC "ld.global.u32 x,[w+4];";

/* Warps exchange values between barriers, and threads beyond a bound exit before the first one. */
static void expect_early_ends(struct grid *g)
{
    for (uint32_t t = 0; t < g->size; t++) {
        const uint32_t own = t % g->threads, first = t - own % 32;

        if (own < 32)
            for (uint32_t l = 0; l < 32; l++)
                g->out[t] += g->in[(first + l + g->threads) % g->size] + g->n;
    }
}
static const char early_ends[] =
    "mul.wide.u32 d1,g,4; add.u64 d1,w,d1; st.global.u32 [d1],v; setp.ge.u32 p,t,32; @p ret;" SYNC
    "add.u32 r0,g,m; rem.u32 r0,r0,z; mul.wide.u32 d1,r0,4; add.u64 d1,w,d1; ld.global.u32 x,[d1]; add.u32 x,x,n;"
    "shfl.sync.bfly.b32 r1,x,16,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,8,31,-1; add.u32 x,x,r1;" SYNC
    "shfl.sync.bfly.b32 r1,x,4,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,2,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,1,31,-1;"
    "add.u32 x,x,r1;";

/* With the functions that the device runtime of older toolkits has: the sum of the values of all ranks, and their number. NVIDIA's driver
 * provides none of them; its linker takes them from libcudadevrt. */
static void expect_device_runtime(struct grid *g)
{
    uint32_t sum = 0;

    for (uint32_t t = 0; t < g->size; t++)
        sum += g->in[t] * (t + 1);
    for (uint32_t t = 0; t < g->size; t++)
        g->out[t] = sum + 3 * g->size + 5;
}
static const char device_runtime[] =
    "call (d1), cudaCGGetIntrinsicHandle, (1); mov.u64 d2,local; cvta.local.u64 d2,d2; add.u64 d3,d2,4;"
    "call (r0), cudaCGGetRank, (d2,d3,d1); ld.u32 r1,[d2]; ld.u32 r2,[d3]; add.u32 r0,r0,r2; mad.lo.u32 r1,v,r1,v;"
    "atom.global.add.u32 r2,[w],r1; call (r1), cudaCGSynchronize, (d1,0); add.u32 r0,r0,r1; ld.global.u32 x,[w];"
    "call (r1), cudaCGSynchronizeGrid, (d1,0); add.u32 r0,r0,r1; call (r1), cudaCGGetSize, (d2,d3,d1); add.u32 r0,r0,r1; ld.u32 r1,[d2];"
    "mad.lo.u32 x,r1,3,x; ld.u32 r1,[d3]; mad.lo.u32 x,r1,4,x; call (d1), cudaCGGetIntrinsicHandle, (2);"
    "call (r1), cudaCGSynchronize, (d1,0); add.u32 x,x,r1; add.u32 x,x,r0;";

/* The same with the system calls that the PTX of libcudadevrt.a contains: by one thread of each block, or by all. */
static void expect_system_calls(struct grid *g)
{
    uint32_t sum = 0;

    for (uint32_t t = 0; t < g->size; t++)
        sum += g->in[t] * (t + 1);
    for (uint32_t t = 0; t < g->size; t++)
        g->out[t] = sum + g->size;
}
static const char system_calls[] =
    "call (d1), __cuda_syscall_CGS_get_intrinsic_handle, (1); mov.u64 d2,local; cvta.local.u64 d2,d2; add.u64 d3,d2,4;"
    "call (r0), __cuda_syscall_CGS_get_rank, (d2,d3,d1); ld.u32 r1,[d2]; mad.lo.u32 r1,v,r1,v; atom.global.add.u32 r2,[w],r1;"
    "bar.sync 0; setp.ne.u32 p,t,0; @p bra BEHIND; call (r1), __cuda_syscall_CGS_sync, (d1,1); add.u32 r0,r0,r1; BEHIND: bar.sync 0;"
    "ld.global.u32 x,[w]; call (r1), __cuda_syscall_CGS_sync, (d1,0); add.u32 r0,r0,r1; call (r1), __cuda_syscall_CGS_get_size, (d2,d3,d1);"
    "add.u32 r0,r0,r1; ld.u32 r1,[d2]; add.u32 x,x,r1; add.u32 x,x,r0;";

static void expect_no_wait(struct grid *g)
{
    for (uint32_t t = 0; t < g->size; t++)
        g->out[t] = g->in[t] + g->n + 1;
}
static const char no_wait[] =
    "mov.u32 r0,%envreg1; mov.u32 r1,%envreg2; or.b32 r0,r0,r1; setp.ne.u32 p,r0,0; selp.b32 r0,1,0,p; add.u32 x,v,n; add.u32 x,x,r0;";

/* Blocks, threads, n. Each is a separate program for the driver, so most rows use the first one only. */
enum { SHAPES = 3 };
static const uint32_t shapes[SHAPES][5] = {{8, 1, 1, 40, 3}, {2, 2, 2, 96, 1}, {1, 1, 1, 64, 2}};

static const struct row {
    const char *name, *body;
    void (*expect)(struct grid *g);
    int n_shapes;
} rows[] = {
    {"rounds of neighbours", rounds, expect_rounds, SHAPES},
    {"all kinds of state", state, expect_state, 1},
    {"the sum of a grid", reduction, expect_reduction, 1},
    {"a chain of blocks", chain, expect_chain, 1},
    {"a chain of threads", threads, expect_threads, 1},
    {"a lock", lock, expect_lock, 1},
    {"warps, and threads that end before", early_ends, expect_early_ends, 1},
    {"functions of the device runtime", device_runtime, expect_device_runtime, 1},
    {"calls of the system", system_calls, expect_system_calls, 1},
    {"no block waits", no_wait, expect_no_wait, 1},
};

/* ---- execution ---- */

static CUmodule load(const char *body, const char *more_params)
{
    CUmodule module;
    char text[8192];
    const int length = snprintf(
        text, sizeof text,
        ".version 7.8\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n%s"
        ".visible .entry k(.param .u64 out, .param .u64 in, .param .u64 work, .param .u32 count%s)\n{\n"
        ".reg .pred p, q; .reg .b16 h, k; .reg .b32 r<10>; .reg .b64 d<4>; .reg .b64 o, i, w; .reg .b32 t, v, n, x, z, g, b, m, s, e, l;\n"
        ".shared .align 16 .b8 shared[1024]; .local .align 16 .b8 local[32];\n"
        "ld.param.u64 o,[out]; ld.param.u64 i,[in]; ld.param.u64 w,[work]; ld.param.u32 n,[count]; mov.u32 t,%%tid.x; mov.u32 m,%%ntid.x;\n"
        "mov.u32 s,shared; mov.u32 e,dynamic; mov.u32 l,local;\n"
        "mov.u32 r0,%%ctaid.z; mov.u32 r1,%%nctaid.y; mov.u32 r2,%%ctaid.y; mad.lo.u32 r0,r0,r1,r2; mov.u32 r2,%%nctaid.x;\n"
        "mov.u32 r3,%%ctaid.x;\n"
        "mad.lo.u32 b,r0,r2,r3; mad.lo.u32 g,b,m,t; mov.u32 r3,%%nctaid.z; mul.lo.u32 r1,r1,r2; mul.lo.u32 r1,r1,r3; mul.lo.u32 z,r1,m;\n"
        "mul.wide.u32 d0,g,4; add.u64 o,o,d0; add.u64 i,i,d0; ld.global.u32 v,[i]; mov.u32 x,0;\n%s\nst.global.u32 [o],x; ret;\n}\n",
        functions, more_params, body);

    assert_true(length > 0 && (size_t)length < sizeof text);
    ok(cuModuleLoadData(&module, text));
    return module;
}

static CUfunction kernel_of(CUmodule module)
{
    CUfunction kernel;

    ok(cuModuleGetFunction(&kernel, module, "k"));
    return kernel;
}

static void fill(struct grid *g, const uint32_t shape[5])
{
    uint32_t word = 54321 + shape[4];

    *g = (struct grid){.blocks = {shape[0], shape[1], shape[2]}, .threads = shape[3], .n = shape[4]};
    g->size = shape[0] * shape[1] * shape[2] * shape[3];
    for (uint32_t t = 0; t < WORDS; t++) {
        word = word * 1664525u + 1013904223u;
        g->in[t] = word >> 8;
    }
}

struct buffers {
    CUdeviceptr in, out, work;
};

static struct buffers make_buffers(const struct grid *g)
{
    struct buffers b;

    ok(cuMemAlloc(&b.in, sizeof g->in));
    ok(cuMemAlloc(&b.out, sizeof g->out));
    ok(cuMemAlloc(&b.work, sizeof(uint64_t) * WORDS));
    ok(cuMemcpyHtoD(b.in, g->in, sizeof g->in));
    return b;
}

static void free_buffers(const struct buffers *b)
{
    ok(cuMemFree(b->in));
    ok(cuMemFree(b->out));
    ok(cuMemFree(b->work));
}

static CUresult launch(CUfunction kernel, const struct grid *g, struct buffers *b, CUstream stream)
{
    uint32_t n = g->n, large[300] = {0};
    void *params[] = {&b->out, &b->in, &b->work, &n, large};

    ok(cuMemsetD32Async(b->out, 0, WORDS, stream));
    ok(cuMemsetD32Async(b->work, 0, 2 * WORDS, stream));
    return cuLaunchCooperativeKernel(kernel, g->blocks[0], g->blocks[1], g->blocks[2], g->threads, 1, 1, 4 * g->threads, stream, params);
}

static void compare(const char *name, const struct grid *g, const struct buffers *b)
{
    static uint32_t got[WORDS];

    ok(cuMemcpyDtoH(got, b->out, sizeof got));
    for (uint32_t t = 0; t < g->size; t++)
        if (got[t] != g->out[t])
            fail_msg("%s: %u x %u x %u blocks of %u: thread %u has %x, not %x", name, g->blocks[0], g->blocks[1], g->blocks[2], g->threads,
                     t, got[t], g->out[t]);
}

static void test_rows(void **unused)
{
    static struct grid g;

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUmodule module;

        if ((rows[i].expect == expect_device_runtime || rows[i].expect == expect_system_calls) && !on_cuttle())
            continue;
        module = load(rows[i].body, "");
        for (int s = 0; s < rows[i].n_shapes; s++) {
            struct buffers b;

            fill(&g, shapes[s]);
            rows[i].expect(&g);
            b = make_buffers(&g);
            ok(launch(kernel_of(module), &g, &b, NULL));
            compare(rows[i].name, &g, &b);
            free_buffers(&b);
        }
        ok(cuModuleUnload(module));
    }
}

/* More parameters than fit into push constants. */
static void test_large_parameters(void **unused)
{
    static struct grid g;
    CUmodule module = load(rounds, ", .param .align 4 .b8 large[1200]");
    struct buffers b;

    (void)unused;
    fill(&g, shapes[0]);
    expect_rounds(&g);
    b = make_buffers(&g);
    ok(launch(kernel_of(module), &g, &b, NULL));
    compare("large parameters", &g, &b);
    free_buffers(&b);
    ok(cuModuleUnload(module));
}

/* Work recorded before and after it keeps its order, in a stream beside another one that does the same. */
static void test_its_place_in_a_stream(void **unused)
{
    static struct grid g;
    CUmodule module = load(rounds, "");
    struct buffers b[2];
    CUstream streams[2];

    (void)unused;
    fill(&g, shapes[0]);
    expect_rounds(&g);
    for (int s = 0; s < 2; s++) {
        b[s] = make_buffers(&g);
        ok(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING));
    }
    for (int round = 0; round < 3; round++)
        for (int s = 0; s < 2; s++) {
            ok(launch(kernel_of(module), &g, &b[s], streams[s])); /* starts with cleared buffers */
            ok(cuMemcpyDtoDAsync(b[s].work, b[s].out, sizeof g.out, streams[s]));
        }
    for (int s = 0; s < 2; s++) {
        ok(cuStreamSynchronize(streams[s]));
        compare("in a stream", &g, &b[s]);
        compare("copied after", &g, &(struct buffers){.out = b[s].work});
        free_buffers(&b[s]);
        ok(cuStreamDestroy(streams[s]));
    }
    ok(cuModuleUnload(module));
}

/* As many blocks as the device can hold, and one more. */
static void test_as_many_as_there_is_room(void **unused)
{
    static struct grid g;
    CUmodule module = load(reduction, "");
    uint32_t shape[5] = {0, 1, 1, 32, 0};
    struct buffers b;
    CUdevice device;
    int each, units, cooperative;

    (void)unused;
    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetAttribute(&cooperative, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, device));
    assert_int_equal(cooperative, 1);
    ok(cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    do {
        ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel_of(module), (int)shape[3], 4 * shape[3]));
        shape[0] = (uint32_t)(each * units);
    } while (shape[0] * shape[3] > WORDS && (shape[3] *= 2) <= 256);
    if (shape[0] * shape[3] > WORDS)
        shape[0] = WORDS / shape[3];
    fill(&g, shape);
    expect_reduction(&g);
    b = make_buffers(&g);
    ok(launch(kernel_of(module), &g, &b, NULL));
    compare("as many blocks as there is room", &g, &b);
    g.blocks[0] = (uint32_t)(each * units) + 1;
    if (!on_cuttle() || getenv("CUTTLE_STRICT"))
        assert_int_equal(launch(kernel_of(module), &g, &b, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    g.blocks[0] = 65535, g.blocks[1] = g.blocks[2] = 65535;
    assert_int_equal(launch(kernel_of(module), &g, &b, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    g.blocks[0] = 0;
    assert_int_equal(launch(kernel_of(module), &g, &b, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch(NULL, &g, &b, NULL), CUDA_ERROR_INVALID_HANDLE);
    free_buffers(&b);
    ok(cuModuleUnload(module));
}

/* NVIDIA's driver rejects a grid whose blocks do not fit at once. Here it runs: blocks that wait make room for others. */
static void test_more_than_there_is_room(void **unused)
{
    static struct grid g;
    CUmodule module = load(reduction, "");
    const uint32_t shape[5] = {WORDS / 8, 1, 1, 8, 0};
    struct buffers b;
    CUdevice device;
    int each, units;

    (void)unused;
    ok(cuCtxGetDevice(&device));
    ok(cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel_of(module), (int)shape[3], 4 * shape[3]));
    if (!on_cuttle() || getenv("CUTTLE_STRICT") || (uint32_t)(each * units) >= shape[0])
        skip();
    fill(&g, shape);
    expect_reduction(&g);
    b = make_buffers(&g);
    ok(launch(kernel_of(module), &g, &b, NULL));
    compare("more blocks than there is room", &g, &b);
    free_buffers(&b);
    ok(cuModuleUnload(module));
}

/* One block fails: the others, which would wait forever, are stopped. The context is unusable. */
static void test_a_block_that_fails(void **unused)
{
    static struct grid g;
    CUmodule module = load("setp.ne.u32 p,b,1; @p bra ON; trap; ON:" SYNC, "");
    struct buffers b;

    (void)unused;
    fill(&g, shapes[0]);
    b = make_buffers(&g);
    ok(launch(kernel_of(module), &g, &b, NULL));
    assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

static int make_context(void **unused)
{
    CUcontext context;
    CUdevice device;

    (void)unused;
    return !(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
             cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

static int release_context(void **unused)
{
    CUdevice device;

    (void)unused;
    return !(cuDeviceGet(&device, 0) == CUDA_SUCCESS && cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_large_parameters),
        cmocka_unit_test(test_its_place_in_a_stream),
        cmocka_unit_test(test_as_many_as_there_is_room),
        cmocka_unit_test(test_more_than_there_is_room),
        cmocka_unit_test(test_a_block_that_fails), /* last */
    };

    return cmocka_run_group_tests_name("grid", tests, make_context, release_context);
}
