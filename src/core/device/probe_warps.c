/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that shuffles and votes in divergent code with the device's own subgroup instructions. If a driver is not known to be correct
 * here, this probe runs before native warps are used: see probe.c.
 *
 * It covers the known faults of drivers: different instructions on the two sides of a branch, nested branches, a vote in the exit block of
 * a loop (its lanes may continue separately, or together with those that left earlier), lanes that leave a loop in different iterations,
 * divergent warps of one block (PoCL runs subgroup instructions as barriers of the whole block), and lanes that have exited. Each expected
 * result follows from the PTX ISA's description of shfl.sync and vote.sync, whose masks name the participating lanes. */
#include "probe.h"

#include "probe_job.h"
#include "core/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CT_CHANNEL "probe"

#define BLOCKS 2u
#define BLOCK_THREADS 128u
#define THREADS (BLOCKS * BLOCK_THREADS)
#define LEFT_LANES 24u /* lanes of each warp that remain when the others have exited */
#define TEXT_BYTES 8192

/* The value that a thread shuffles. */
static uint32_t value_of(uint32_t thread)
{
    return thread * 7 + 3;
}

/* ---- the expected result of each case, by the number of the thread in the grid ---- */

static uint32_t expect_two_sides(uint32_t thread)
{
    const uint32_t lane = thread % 32;

    return value_of(lane & 1 ? thread ^ 2 : lane < 2 ? thread : thread - 2);
}

static uint32_t expect_nested(uint32_t thread)
{
    const uint32_t lane = thread % 32;

    if (lane & 1)
        return lane & 2 ? 0x88888888 & 0xf0f0f0f0 : 0x22222222 & 0xff00ff00;
    return 0x55555555 & 0xffff0000;
}

static uint32_t expect_leaving(uint32_t thread)
{
    return UINT32_C(0x11111111) << thread % 4;
}

static uint32_t expect_rounds(uint32_t thread)
{
    const uint32_t last = thread | 31;
    uint32_t sum = 0;

    for (uint32_t k = 0; k <= thread % 32 / 8; k++)
        sum += value_of(last) + k + (UINT32_C(0xffffffff) << 8 * k);
    return sum;
}

/* The result of `rounds` from the other half of the warp. */
static uint32_t expect_after_rounds(uint32_t thread)
{
    return expect_rounds(thread ^ 16);
}

static uint32_t expect_any(uint32_t thread)
{
    (void)thread;
    return 32;
}

static uint32_t expect_by_warp(uint32_t thread)
{
    const uint32_t first = thread & ~31u;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < 32; i++)
        sum += value_of(first + i);
    return thread / 32 % 2 ? sum : 0x0f0f0f0f;
}

static uint32_t expect_ended(uint32_t thread)
{
    const uint32_t lane = thread % 32;

    if (lane >= LEFT_LANES)
        return 0;
    return value_of((thread & ~31u) + (lane + 1) % LEFT_LANES) + 0x00555555;
}

/* Each case writes its result to %x. Its inputs are %lane, %warp and %v (value_of); %p<4>, %m<4>, %k, %n and %t are scratch registers. */
static const struct {
    const char *name;
    uint32_t (*expect)(uint32_t thread);
    const char *text;
} cases[] = {
    {"shuffles in both sides of a branch", expect_two_sides,
     "  and.b32 %t, %lane, 1;\n  setp.ne.u32 %p0, %t, 0;\n  @%p0 bra ODD0;\n"
     "  shfl.sync.up.b32 %x, %v, 2, 0, 0x55555555;\n  bra JOIN0;\n"
     "ODD0:\n  shfl.sync.bfly.b32 %x, %v, 2, 31, 0xaaaaaaaa;\nJOIN0:\n"},
    {"votes in nested branches", expect_nested,
     "  and.b32 %t, %lane, 1;\n  setp.ne.u32 %p0, %t, 0;\n  @%p0 bra ODD1;\n"
     "  and.b32 %t, %lane, 16;\n  setp.ne.u32 %p1, %t, 0;\n  vote.sync.ballot.b32 %x, %p1, 0x55555555;\n  bra JOIN1;\n"
     "ODD1:\n  and.b32 %t, %lane, 2;\n  setp.ne.u32 %p0, %t, 0;\n  @%p0 bra SECOND1;\n"
     "  and.b32 %t, %lane, 8;\n  setp.ne.u32 %p1, %t, 0;\n  vote.sync.ballot.b32 %x, %p1, 0x22222222;\n  bra JOIN1;\n"
     "SECOND1:\n  and.b32 %t, %lane, 4;\n  setp.ne.u32 %p1, %t, 0;\n  vote.sync.ballot.b32 %x, %p1, 0x88888888;\nJOIN1:\n"},
    {"a vote that leaves a loop", expect_leaving,
     "  mov.u32 %k, 0;\n  mov.u32 %m0, 0x11111111;\nLOOP2:\n  and.b32 %t, %lane, 3;\n  setp.ne.u32 %p0, %t, %k;\n  @%p0 bra ON2;\n"
     "  vote.sync.ballot.b32 %x, 1, %m0;\n  bra DONE2;\n"
     "ON2:\n  shl.b32 %m0, %m0, 1;\n  add.u32 %k, %k, 1;\n  setp.lt.u32 %p0, %k, 4;\n  @%p0 bra LOOP2;\nDONE2:\n"},
    {"rounds that differ by lane", expect_rounds,
     "  mov.u32 %k, 0;\n  mov.u32 %m0, 0xffffffff;\n  mov.u32 %x, 0;\nLOOP3:\n"
     "  shfl.sync.idx.b32 %t, %v, 31, 31, %m0;\n  add.u32 %x, %x, %t;\n  add.u32 %x, %x, %k;\n"
     "  vote.sync.ballot.b32 %t, 1, %m0;\n  add.u32 %x, %x, %t;\n"
     "  shl.b32 %m0, %m0, 8;\n  add.u32 %k, %k, 1;\n  shl.b32 %t, %k, 3;\n  setp.ge.u32 %p0, %lane, %t;\n  @%p0 bra LOOP3;\n"
     "  mov.u32 %n, %x;\n"},
    {"a shuffle after those rounds", expect_after_rounds, "  shfl.sync.bfly.b32 %x, %n, 16, 31, 0xffffffff;\n"},
    {"a loop that a vote ends", expect_any,
     "  mov.u32 %t, %lane;\n  mov.u32 %x, 0;\nLOOP5:\n  setp.gt.s32 %p0, %t, 0;\n  vote.sync.any.pred %p1, %p0, 0xffffffff;\n"
     "  sub.u32 %t, %t, 1;\n  add.u32 %x, %x, 1;\n  @%p1 bra LOOP5;\n"},
    {"warps that do different things", expect_by_warp,
     "  and.b32 %t, %warp, 1;\n  setp.ne.u32 %p0, %t, 0;\n  @%p0 bra ODD6;\n"
     "  and.b32 %t, %lane, 4;\n  setp.eq.u32 %p1, %t, 0;\n  vote.sync.ballot.b32 %x, %p1, 0xffffffff;\n  bra JOIN6;\n"
     "ODD6:\n  mov.u32 %x, %v;\n  mov.u32 %k, 16;\nLOOP6:\n  shfl.sync.bfly.b32 %t, %x, %k, 31, 0xffffffff;\n  add.u32 %x, %x, %t;\n"
     "  shr.u32 %k, %k, 1;\n  setp.ne.u32 %p1, %k, 0;\n  @%p1 bra LOOP6;\nJOIN6:\n"},
    /* this is the last case, since some lanes exit */
    {"lanes that are left when others have ended", expect_ended,
     "  setp.ge.u32 %p0, %lane, 24;\n  @%p0 bra END;\n  add.u32 %k, %lane, 1;\n  setp.eq.u32 %p0, %k, 24;\n  selp.u32 %k, 0, %k, %p0;\n"
     "  shfl.sync.idx.b32 %x, %v, %k, 31, 0x00ffffff;\n  and.b32 %t, %lane, 1;\n  setp.eq.u32 %p1, %t, 0;\n"
     "  vote.sync.ballot.b32 %t, %p1, 0x00ffffff;\n  add.u32 %x, %x, %t;\n"},
};
#define N_CASES (sizeof cases / sizeof *cases)

static const char kernel_head[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry probe(.param .u64 results)\n{\n"
    "  .reg .pred %p<4>;\n  .reg .b32 %m<4>, %x, %k, %n, %t, %lane, %warp, %v, %id;\n  .reg .b64 %at, %offset;\n"
    "  ld.param.u64 %at, [results];\n  mov.u32 %id, %ctaid.x;\n  mov.u32 %t, %ntid.x;\n  mov.u32 %lane, %tid.x;\n"
    "  mad.lo.u32 %id, %id, %t, %lane;\n  shr.u32 %warp, %lane, 5;\n  and.b32 %lane, %lane, 31;\n  mul.lo.u32 %v, %id, 7;\n"
    "  add.u32 %v, %v, 3;\n  mul.wide.u32 %offset, %id, 4;\n  add.u64 %at, %at, %offset;\n  mov.u32 %n, 0;\n";
static const char kernel_tail[] = "END:\n  ret;\n}\n";

static void write_kernel(char *text)
{
    size_t used = (size_t)snprintf(text, TEXT_BYTES, "%s", kernel_head);

    for (size_t i = 0; i < N_CASES; i++)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "  mov.u32 %%x, 0;\n%s  st.global.u32 [%%at+%zu], %%x;\n", cases[i].text,
                                 i * THREADS * sizeof(uint32_t));
    snprintf(text + used, TEXT_BYTES - used, "%s", kernel_tail);
}

static bool are_right(const uint32_t *results)
{
    for (size_t i = 0; i < N_CASES; i++)
        for (uint32_t thread = 0; thread < THREADS; thread++) {
            const uint32_t result = results[i * THREADS + thread], want = cases[i].expect(thread);

            if (result == want)
                continue;
            ct_log(CT_LOG_DEBUG, "warps: %s: thread %u has %#x instead of %#x", cases[i].name, thread, result, want);
            return false;
        }
    return true;
}

CUresult ct_probe_warps(const struct ct_backend *backend, struct ct_backend_device *opened, const struct ptx2spv_target *target,
                        bool *out_right)
{
    static const uint32_t nothing[N_CASES * THREADS];
    uint32_t results[N_CASES * THREADS];
    char text[TEXT_BYTES];
    const struct ct_probe_job job = {
        .text = text, .blocks = BLOCKS, .threads = BLOCK_THREADS, .input = nothing, .output = results, .size_bytes = sizeof results};
    CUresult r;

    write_kernel(text);
    r = ct_probe_execute(backend, opened, target, &job);
    if (r == CUDA_SUCCESS)
        *out_right = are_right(results);
    return r;
}
