/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, grouped by what they use; beside each, its result in host C. */
#include "warps_rows.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static uint32_t lanes_of(const struct warps_block *b, uint32_t t)
{
    const uint32_t left = b->threads - (t & ~31u);

    return left < 32 ? left : 32;
}

/* ---- shuffles ---- */

/* The ISA's description of shfl, for all lanes of a full mask. */
static uint32_t shuffled(const struct warps_block *b, uint32_t t, char mode, uint32_t by, uint32_t c, bool *in_range)
{
    const int32_t lane = (int32_t)(t % 32), segment = (int32_t)(c >> 8 & 31), clamp = (int32_t)(c & 31);
    const int32_t most = (lane & segment) | (clamp & ~segment);
    int32_t j = 0;

    by &= 31;
    switch (mode) {
    case 'u':
        j = lane - (int32_t)by;
        *in_range = j >= most;
        break;
    case 'd':
        j = lane + (int32_t)by;
        *in_range = j <= most;
        break;
    case 'b':
        j = lane ^ (int32_t)by;
        *in_range = j <= most;
        break;
    default:
        j = (lane & segment) | ((int32_t)by & ~segment);
        *in_range = j <= most;
        break;
    }
    return *in_range ? b->in[(t & ~31u) + (uint32_t)j] : b->in[t];
}

/* Combines the results of all four kinds, with segments of 32 and of 8 lanes. */
static void expect_shuffles(struct warps_block *b)
{
    static const struct {
        char mode;
        uint32_t c;
    } kinds[] = {{'u', 0x0000}, {'d', 0x001f}, {'b', 0x001f}, {'i', 0x001f}, {'u', 0x1800}, {'d', 0x181f}, {'b', 0x181f}, {'i', 0x181f}};

    for (uint32_t t = 0; t < b->threads; t++)
        for (size_t k = 0; k < 8; k++) {
            bool in_range;
            const uint32_t value = shuffled(b, t, kinds[k].mode, b->n & 7, kinds[k].c, &in_range);

            b->out[t] = (b->out[t] << 3 | b->out[t] >> 29) + value + in_range;
        }
}
#define SHUFFLE(mode, by, c)                                                                                                               \
    "shfl.sync." mode ".b32 r1|p, v, " by ", " c ", -1; selp.u32 r2,1,0,p; shf.l.wrap.b32 x,x,x,3; add.u32 x,x,r1; add.u32 x,x,r2;"
static const char shuffles[] = "and.b32 r3,n,7;" SHUFFLE("up", "r3", "0x0000") SHUFFLE("down", "r3", "0x001f")
    SHUFFLE("bfly", "r3", "0x001f") SHUFFLE("idx", "r3", "0x001f") SHUFFLE("up", "r3", "0x1800") SHUFFLE("down", "r3", "0x181f")
        SHUFFLE("bfly", "r3", "0x181f") SHUFFLE("idx", "r3", "0x181f");

/* Registers that are written again between shuffles which could be executed together, and shuffles that depend on others. */
static uint32_t reused_of(const struct warps_block *b, uint32_t t)
{
    return b->in[t ^ 2] + 5 + (b->in[t ^ 4] ^ 3) + b->in[t ^ 8] + (b->in[t] + 5 + b->in[t ^ 1]) + b->in[t] + b->n;
}

static void expect_reused(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = 3 * reused_of(b, t) + 2 * b->n + reused_of(b, t ^ 16);
}

static void expect_reused_in_branches(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = (t / 32 + b->n) % 2 ? b->in[t] : 3 * reused_of(b, t) + 2 * b->n + reused_of(b, t ^ 16);
}
#define REUSED                                                                                                                             \
    "mov.u32 r1,v; mov.u32 r2,v; mov.b32 r9,-1; shfl.sync.bfly.b32 r3,r1,1,31,r9; add.u32 r1,v,5; shfl.sync.bfly.b32 r4,r1,2,31,-1; "      \
    "add.u32 r1,r1,r3;"                                                                                                                    \
    "xor.b32 r5,v,3; shfl.sync.bfly.b32 r5|q,r5,4,31,-1; add.u32 r6,r5,r4; add.u32 r6,r6,r2; mov.u32 r2,n; shfl.sync.bfly.b32 "            \
    "r3,v,8,31,r9; add.u32 r6,r6,r3;"                                                                                                      \
    "mov.u32 r4,n; shfl.sync.bfly.b32 r7,r4,1,31,-1; add.u32 r6,r6,r1; add.u32 r6,r6,r4; shfl.sync.bfly.b32 r8,r6,16,31,-1;"               \
    "mad.lo.u32 x,r6,3,r7; add.u32 x,x,r8; add.u32 x,x,r2;"
static const char reused[] = REUSED;
static const char reused_in_branches[] =
    "mov.u32 x,v; shr.u32 r1,t,5; add.u32 r1,r1,n; and.b32 r1,r1,1; setp.ne.u32 p,r1,0; @p bra OUT;" REUSED "OUT: bar.sync 0;";

/* A tree sum in each warp whose number has the parity of n; the others keep their value. */
static void expect_one_warp(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t sum = 0;

        for (uint32_t l = 0; l < 32 && lanes_of(b, t) == 32; l++)
            sum += b->in[(t & ~31u) + l];
        b->out[t] = (t / 32 + b->n) % 2 || lanes_of(b, t) < 32 ? b->in[t] : sum;
    }
}
static const char one_warp[] = "mov.u32 x,v; shr.u32 r1,t,5; add.u32 r1,r1,n; and.b32 r1,r1,1; setp.ne.u32 p,r1,0; @p bra OUT;"
                               "or.b32 r2,t,31; setp.ge.u32 p,r2,z; @p bra OUT;"
                               "shfl.sync.bfly.b32 r1,x,16,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,8,31,-1; add.u32 x,x,r1;"
                               "shfl.sync.bfly.b32 r1,x,4,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,2,31,-1; add.u32 x,x,r1;"
                               "shfl.sync.bfly.b32 r1,x,1,31,-1; add.u32 x,x,r1; OUT: bar.sync 0;";

/* A sum over the first lanes only, whose mask contains no others, as many programs do it: values read from other lanes count as 0. */
static void expect_first_lanes(struct warps_block *b)
{
    const uint32_t count = b->n + 1;

    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t sum = 0;

        for (uint32_t l = 0; l < count; l++)
            sum += b->in[(t & ~31u) + l];
        b->out[t] = t % 32 ? b->in[t] : sum;
    }
}
#define ADD_FROM(by) "shfl.sync.down.b32 r1,r2," by ",31,r3; add.u32 r2,r2,r1;"
static const char first_lanes[] =
    "mov.u32 x,v; mov.u32 r2,v; and.b32 r4,t,31; add.u32 r5,n,1; setp.lt.u32 p,r4,r5; vote.sync.ballot.b32 r3,p,-1; @!p bra OUT;" ADD_FROM(
        "16") ADD_FROM("8") ADD_FROM("4") ADD_FROM("2") ADD_FROM("1") "setp.ne.u32 p,r4,0; @p bra OUT; mov.u32 x,r2; OUT: bar.sync 0;";

/* Each warp executes its own number of rounds; each round rotates the values by one lane. */
static void expect_rounds(struct warps_block *b)
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

/* The same trees in a function that one branch calls. */
static const char called[] =
    "shr.u32 r1,t,5; add.u32 r1,r1,n; and.b32 r1,r1,1; mov.u32 x,v; setp.ne.u32 p,r1,0; @p bra OUT; or.b32 r2,t,31; setp.ge.u32 p,r2,z;"
    "@p bra OUT; { .param .b32 a; .param .b32 b; st.param.b32 [a],v; call (b), sum, (a); ld.param.b32 x,[b]; } OUT:";
static const char called_functions[] =
    ".func (.param .b32 all) sum (.param .b32 one)\n{ .reg .b32 x, w; ld.param.b32 x,[one]; shfl.sync.bfly.b32 w,x,16,31,-1; add.u32 x,x,w;"
    "shfl.sync.bfly.b32 w,x,8,31,-1; add.u32 x,x,w; shfl.sync.bfly.b32 w,x,4,31,-1; add.u32 x,x,w; shfl.sync.bfly.b32 w,x,2,31,-1;"
    "add.u32 x,x,w; shfl.sync.bfly.b32 w,x,1,31,-1; add.u32 x,x,w; st.param.b32 [all],x; ret; }\n";

/* Rounds by warp again, each of them a call that passes words through memory between two bar.warp.sync. */
static const char called_rounds[] =
    "mov.u32 x,v; shr.u32 r1,t,5; add.u32 r2,n,1; mul.lo.u32 r1,r1,r2; and.b32 r3,t,-32; sub.u32 r4,z,r3; min.u32 r4,r4,32;"
    "and.b32 r5,t,31; add.u32 r5,r5,1; rem.u32 r5,r5,r4; add.u32 r5,r5,r3; mov.u32 r3,s; mad.lo.u32 r5,r5,4,r3; mad.lo.u32 r4,t,4,r3;"
    "LOOP: setp.eq.u32 p,r1,0; @p bra DONE; { .param .b32 a; .param .b32 b; .param .b32 c; .param .b32 d; st.param.b32 [a],x;"
    "st.param.b32 [b],r4; st.param.b32 [c],r5; call (d), pass, (a, b, c); ld.param.b32 x,[d]; } sub.u32 r1,r1,1; bra LOOP; DONE:";
static const char called_rounds_functions[] =
    ".func (.param .b32 got) pass (.param .b32 word, .param .b32 mine, .param .b32 next)\n{ .reg .b32 x, m, o; ld.param.b32 x,[word];"
    "ld.param.b32 m,[mine]; ld.param.b32 o,[next]; st.shared.b32 [m],x; bar.warp.sync -1; ld.shared.b32 x,[o]; bar.warp.sync -1;"
    "st.param.b32 [got],x; ret; }\n";

/* The active lanes of each round count themselves, one of them for all; lanes that take no part in a round are not in a later one meanwhile. */
static void expect_counted_rounds(struct warps_block *b)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < b->n + 5; i++)
        for (uint32_t t = 0; t < b->threads; t++)
            sum += (b->in[t] >> i & 1) * (i + 1);
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = sum;
}
static const char counted_rounds[] =
    "mov.u32 r6,s; mad.lo.u32 r7,t,4,r6; st.shared.u32 [r7],0; bar.sync 0; add.u32 r8,n,5; mov.u32 r9,%lanemask_lt; mov.u32 r1,0;"
    "LOOP: shr.u32 r2,v,r1; and.b32 r2,r2,1; setp.eq.u32 p,r2,0; @p bra NEXT; activemask.b32 r3; and.b32 r4,r9,r3; setp.ne.u32 q,r4,0;"
    "@q bra NEXT; popc.b32 r5,r3; mad.lo.u32 r7,r1,4,r6; atom.shared.add.u32 r7,[r7],r5; NEXT: add.u32 r1,r1,1; setp.lt.u32 p,r1,r8;"
    "@p bra LOOP; bar.sync 0; mov.u32 r1,0; SUM: mad.lo.u32 r7,r1,4,r6; ld.shared.u32 r2,[r7]; add.u32 r1,r1,1; mad.lo.u32 x,r2,r1,x;"
    "setp.lt.u32 p,r1,r8; @p bra SUM;";

/* Each lane remains in the loop for its own number of rounds; the lanes in the loop read the word of the lowest one. */
static void expect_lane_rounds(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        for (uint32_t round = 0; round < b->in[t] % 8 + b->n; round++) {
            uint32_t lane = t & ~31u;

            while (round >= b->in[lane] % 8 + b->n)
                lane++;
            b->out[t] = b->out[t] * 5 + b->in[lane];
        }
}
static const char lane_rounds[] =
    "and.b32 r1,v,7; add.u32 r1,r1,n; mov.u32 r2,0; mov.u32 r3,-1; LOOP: setp.lt.u32 p,r2,r1; vote.sync.ballot.b32 r3,p,r3; @!p bra DONE;"
    "brev.b32 r4,r3; clz.b32 r4,r4; shfl.sync.idx.b32 r5,v,r4,31,r3; mad.lo.u32 x,x,5,r5; add.u32 r2,r2,1; bra LOOP; DONE:";

/* The odd lanes are one round behind the even ones: their first shuffle coincides with the others' first one, of the round before. */
static void expect_behind(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        b->out[t] = b->in[t];
        for (uint32_t k = 0; k < b->n + 1; k++)
            b->out[t] += b->in[t ^ 1] + k;
    }
}
static const char behind[] =
    "mov.u32 x,v; and.b32 r1,t,1; mov.u32 r2,0; add.u32 r3,n,1; mov.u32 r6,0; LOOP: setp.lt.u32 p,r2,r1; @p bra NEXT; add.u32 r4,v,r6;"
    "shfl.sync.bfly.b32 r5,r4,1,31,-1; add.u32 x,x,r5; add.u32 r6,r6,1; NEXT: add.u32 r2,r2,1; setp.lt.u32 p,r6,r3; @p bra LOOP;";

/* The lanes of two branches execute one shuffle together, from each branch. */
static void expect_from_branches(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = b->in[t ^ 1] + (t % 2 ? 100 : 200) + b->n;
}
static const char from_branches[] =
    "and.b32 r1,t,1; setp.eq.u32 p,r1,0; @p bra EVEN; add.u32 r2,n,v; shfl.sync.bfly.b32 x,r2,1,31,-1; add.u32 x,x,100; bra OUT;"
    "EVEN: add.u32 r2,n,v; shfl.sync.bfly.b32 x,r2,1,31,-1; add.u32 x,x,200; OUT:";

/* ---- votes ---- */

/* Ballots of the even and of the odd lanes in different branches, with their own masks. */
static void expect_ballots(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t ballot = 0;

        for (uint32_t l = 0; l < lanes_of(b, t); l++)
            if (l % 2 == t % 2 && b->in[(t & ~31u) + l] % 3 == b->n % 3)
                ballot |= 1u << l;
        b->out[t] = ballot;
    }
}
static const char ballots[] = "rem.u32 r1,v,3; rem.u32 r2,n,3; setp.eq.u32 q,r1,r2; and.b32 r3,t,1; setp.ne.u32 p,r3,0; @p bra ODD;"
                              "vote.sync.ballot.b32 x,q,0x55555555; bra OUT; ODD: vote.sync.ballot.b32 x,q,0xaaaaaaaa; OUT:";

static void expect_votes(struct warps_block *b)
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

static void expect_matches(struct warps_block *b)
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

/* activemask in the branch of some lanes: the lane itself, and no lane of the other branch. Uniform: all lanes. */
static void expect_active(struct warps_block *b)
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

/* redux of each kind, of the even and of the odd lanes separately. */
static void expect_reductions(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t sum = 0, all = UINT32_MAX, any = 0, odd = 0, least = UINT32_MAX;
        int32_t most = INT32_MIN;

        for (uint32_t l = t % 2; l < lanes_of(b, t); l += 2) {
            const uint32_t other = b->in[(t & ~31u) + l] << (b->n * 8);

            sum += other;
            all &= other | 0xff;
            any |= other;
            odd ^= other;
            least = other < least ? other : least;
            most = (int32_t)other > most ? (int32_t)other : most;
        }
        b->out[t] = sum ^ all ^ (any + odd) ^ least * 3 ^ (uint32_t)most * 5;
    }
}
static const char reductions[] =
    "shl.b32 r1,n,3; shl.b32 r1,v,r1; and.b32 r3,t,1; setp.ne.u32 p,r3,0; mov.u32 r4,0x55555555; @p mov.u32 r4,0xaaaaaaaa; @p bra ODD;"
    "redux.sync.add.u32 x,r1,r4; bra BOTH; ODD: redux.sync.add.u32 x,r1,r4; BOTH: or.b32 r2,r1,0xff; redux.sync.and.b32 r3,r2,r4;"
    "xor.b32 x,x,r3; redux.sync.or.b32 r3,r1,r4; redux.sync.xor.b32 r5,r1,r4; add.u32 r3,r3,r5; xor.b32 x,x,r3;"
    "redux.sync.min.u32 r3,r1,r4; mul.lo.u32 r3,r3,3; xor.b32 x,x,r3; redux.sync.max.s32 r3,r1,r4; mul.lo.u32 r3,r3,5; xor.b32 x,x,r3;";

/* A fourth of the lanes has exited; the masks still contain them, and no lane waits for them. */
static void expect_after_exits(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t present = 0, ballot = 0, same = 0, all = 1, sum = 0;

        if (t % 4 == b->n)
            continue;
        for (uint32_t l = 0; l < lanes_of(b, t); l++) {
            const uint32_t other = b->in[(t & ~31u) + l];

            if (l % 4 == b->n)
                continue;
            present |= 1u << l;
            ballot |= (other & 1) << l;
            same |= (uint32_t)(other % 4 == b->in[t] % 4) << l;
            all &= other >> 8 != 0;
            sum += other;
        }
        b->out[t] = (ballot ^ same * 3) + all + (same == present) * 2 + sum;
    }
}
static const char after_exits[] =
    "and.b32 r1,t,3; setp.eq.u32 p,r1,n; @p ret; and.b32 r1,v,1; setp.ne.u32 q,r1,0; vote.sync.ballot.b32 x,q,-1; and.b32 r1,v,3;"
    "match.any.sync.b32 r2,r1,-1; mul.lo.u32 r2,r2,3; xor.b32 x,x,r2; shr.u32 r2,v,8; setp.ne.u32 q,r2,0; vote.sync.all.pred p,q,-1;"
    "selp.u32 r2,1,0,p; add.u32 x,x,r2; match.all.sync.b32 r2|p,r1,-1; selp.u32 r2,2,0,p; add.u32 x,x,r2; redux.sync.add.u32 r2,v,-1;"
    "add.u32 x,x,r2;";

/* ---- barriers ---- */

/* The last n * 20 threads have exited; the rest rotate values through shared memory three times. */
static void expect_early_exit(struct warps_block *b)
{
    const uint32_t stay = b->threads - b->n * 20;

    for (uint32_t t = 0; t < stay; t++)
        b->out[t] = b->in[(t + 3) % stay];
}
static const char early_exit[] =
    "mul.lo.u32 r1,n,20; sub.u32 r1,z,r1; setp.ge.u32 p,t,r1; @p ret; mov.u32 x,v; mov.u32 r2,0; mov.u32 r3,s; mad.lo.u32 r4,t,4,r3;"
    "add.u32 r5,t,1; rem.u32 r5,r5,r1; mad.lo.u32 r5,r5,4,r3;"
    "LOOP: st.shared.u32 [r4],x; bar.sync 0; ld.shared.u32 x,[r5]; bar.sync 0; add.u32 r2,r2,1; setp.lt.u32 p,r2,3; @p bra LOOP;";

/* One barrier reached from two branches: the odd warps read what the even ones wrote and vice versa. */
static void expect_two_branches(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = b->in[(t + 32 + 32 * b->n) % b->threads];
}
static const char two_branches[] =
    "mov.u32 r3,s; mad.lo.u32 r4,t,4,r3; mul.lo.u32 r1,n,32; add.u32 r1,r1,32; add.u32 r1,r1,t; rem.u32 r1,r1,z; mad.lo.u32 r5,r1,4,r3;"
    "and.b32 r1,t,32; setp.ne.u32 p,r1,0; @p bra ODD; st.shared.u32 [r4],v; bar.sync 0; ld.shared.u32 x,[r5]; bra OUT;"
    "ODD: st.shared.u32 [r4],v; bar.sync 0; ld.shared.u32 x,[r5]; OUT:";

/* Warp 0 produces n + 2 packets, warp 1 adds them, with named barriers 1 (full) and 2 (empty); the other warps synchronize at barrier 3. */
static void expect_producer(struct warps_block *b)
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

static void expect_bar_red(struct warps_block *b)
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

/* The even warps count among themselves whose predicate is true, for some rounds; then the whole block synchronizes, by barrier.cta. */
static void expect_bar_red_of_some(struct warps_block *b)
{
    uint32_t held = 0;

    for (uint32_t t = 0; t < b->threads; t++)
        held += t / 32 % 2 == 0 && b->in[t] % 8 <= b->n * 2;
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = (t / 32 % 2 ? 0 : held * 3) + b->in[(t + 32) % b->threads];
}
static const char bar_red_of_some[] =
    "mov.u32 r6,s; mad.lo.u32 r7,t,4,r6; st.shared.u32 [r7],v; and.b32 r1,v,7; mul.lo.u32 r2,n,2; setp.le.u32 q,r1,r2; and.b32 r3,t,32;"
    "setp.ne.u32 p,r3,0; @p bra OUT; add.u32 r4,z,32; shr.u32 r4,r4,6; shl.b32 r4,r4,5; mov.u32 r5,0;"
    "LOOP: barrier.cta.red.popc.u32 r8,2,r4,q; add.u32 x,x,r8; add.u32 r5,r5,1; setp.lt.u32 p,r5,3; @p bra LOOP;"
    "OUT: barrier.cta.sync 1; add.u32 r1,t,32; rem.u32 r1,r1,z; mad.lo.u32 r1,r1,4,r6; ld.shared.u32 r2,[r1]; add.u32 x,x,r2;"
    "barrier.cta.sync.aligned 0;";

/* The even warps call a function n + 1 times, in which each votes, shuffles and counts separately, and they reduce together with a named
 * barrier. */
static void expect_called_meetings(struct warps_block *b)
{
    for (uint32_t k = 0; k <= b->n; k++) {
        uint32_t held = 0, present = 0;

        for (uint32_t t = 0; t < b->threads; t++) {
            present += t / 32 % 2 == 0;
            held += t / 32 % 2 == 0 && (b->in[t] + k) % 8 <= b->n * 2;
        }
        for (uint32_t t = 0; t < b->threads; t++) {
            uint32_t ballot = 0;

            if (t / 32 % 2)
                continue;
            for (uint32_t l = 0; l < 32; l++)
                ballot |= (uint32_t)((b->in[(t & ~31u) + l] + k) % 8 <= b->n * 2) << l;
            b->out[t] = b->out[t] * 3 + ballot + b->in[(t & ~31u) + 3] + k + (ballot != 0) + (ballot == UINT32_MAX) * 2 +
                        (ballot == 0 || ballot == UINT32_MAX) * 4 + held + (held != 0) * 8 + (held == present) * 16;
        }
    }
}
static const char called_meetings[] =
    "and.b32 r1,t,32; setp.ne.u32 p,r1,0; @p bra OUT; add.u32 r4,z,32; shr.u32 r4,r4,6; shl.b32 r4,r4,5; mul.lo.u32 r2,n,2; mov.u32 r5,0;"
    "LOOP: add.u32 r6,v,r5; { .param .b32 a; .param .b32 b; .param .b32 c; .param .b32 d; st.param.b32 [a],r6; st.param.b32 [b],r4;"
    "st.param.b32 [c],r2; call (d), meet, (a, b, c); ld.param.b32 r7,[d]; } mad.lo.u32 x,x,3,r7; add.u32 r5,r5,1; setp.le.u32 p,r5,n;"
    "@p bra LOOP; OUT:";
static const char called_meetings_functions[] =
    ".func (.param .b32 got) meet (.param .b32 word, .param .b32 count, .param .b32 limit)\n{ .reg .b32 w, c, l, x, y; .reg .pred p, q;"
    "ld.param.b32 w,[word]; ld.param.b32 c,[count]; ld.param.b32 l,[limit]; and.b32 x,w,7; setp.le.u32 q,x,l; vote.sync.ballot.b32 x,q,-1;"
    "shfl.sync.idx.b32 y,w,3,31,-1; add.u32 x,x,y; vote.sync.any.pred p,q,-1; @p add.u32 x,x,1; vote.sync.all.pred p,q,-1;"
    "@p add.u32 x,x,2; vote.sync.uni.pred p,q,-1; @p add.u32 x,x,4; barrier.cta.red.popc.u32 y,5,c,q; add.u32 x,x,y;"
    "barrier.cta.red.or.pred p,5,c,q; @p add.u32 x,x,8; barrier.cta.red.and.pred p,5,c,q; @p add.u32 x,x,16; st.param.b32 [got],x; ret; "
    "}\n";

/* The last n * 20 threads have exited; the rest count with bar.red. */
static void expect_red_after_exit(struct warps_block *b)
{
    const uint32_t stay = b->threads - b->n * 20;
    uint32_t held = 0;

    for (uint32_t t = 0; t < stay; t++)
        held += b->in[t] & 1;
    for (uint32_t t = 0; t < stay; t++)
        b->out[t] = held * 2 + 1;
}
static const char red_after_exit[] =
    "mul.lo.u32 r1,n,20; sub.u32 r1,z,r1; setp.ge.u32 p,t,r1; @p ret; and.b32 r2,v,1; setp.ne.u32 q,r2,0; bar.red.popc.u32 x,0,q;"
    "setp.lt.u32 q,t,r1; bar.red.and.pred p,0,q; shl.b32 x,x,1; @p add.u32 x,x,1;";

/* From n = 1 on every fourth lane has exited: the rest synchronize at barriers that count threads, all of the block's, rounded up to warps.
 * The same barrier had another count before. */
static void expect_counts(struct warps_block *b)
{
    uint32_t held = 0;

    for (uint32_t t = 0; t < b->threads; t++)
        held += (t % 4 || !b->n) && b->in[t] & 1;
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = t % 4 || !b->n ? held * 2 + 1 : 0;
}
static const char counts[] =
    "and.b32 r1,t,3; setp.eq.u32 p,r1,0; setp.ne.and.u32 p,n,0,p; @p ret; setp.ge.u32 p,t,32; @p bra M; bar.sync 3,32; M: bar.sync 0;"
    "add.u32 r2,z,31; and.b32 r2,r2,-32; and.b32 r3,v,1; setp.ne.u32 q,r3,0; bar.sync 3,r2; bar.red.popc.u32 x,3,r2,q;"
    "setp.lt.u32 q,t,z; bar.red.and.pred p,3,r2,q; shl.b32 x,x,1; @p add.u32 x,x,1;";

/* The usual sum of a block, n + 1 times: trees in each warp, a barrier, a tree in the first warp. */
static void expect_block_sum(struct warps_block *b)
{
    uint32_t sum = 0;

    for (uint32_t t = 0; t < b->threads; t++)
        sum += b->in[t];
    for (uint32_t k = 0; k < b->n; k++)
        sum *= b->threads;
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = sum;
}
#define TREE                                                                                                                               \
    "shfl.sync.bfly.b32 r1,x,16,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,8,31,-1; add.u32 x,x,r1;"                                   \
    "shfl.sync.bfly.b32 r1,x,4,31,-1; add.u32 x,x,r1; shfl.sync.bfly.b32 r1,x,2,31,-1; add.u32 x,x,r1;"                                    \
    "shfl.sync.bfly.b32 r1,x,1,31,-1; add.u32 x,x,r1;"
static const char block_sum[] =
    "mov.u32 x,v; mov.u32 r2,0; mov.u32 r3,s; shr.u32 r4,t,5; mad.lo.u32 r5,r4,4,r3; mad.lo.u32 r6,t,4,r3; shr.u32 r7,z,5;"
    "LOOP:" TREE "st.shared.u32 [r5],x; bar.sync 0; setp.ge.u32 p,t,32; @p bra REST; mov.u32 x,0; setp.lt.u32 q,t,r7;"
    "@q ld.shared.u32 x,[r6];" TREE "setp.eq.u32 q,t,0; @q st.shared.u32 [r3+256],x; REST: bar.sync 0; ld.shared.u32 x,[r3+256];"
    "add.u32 r2,r2,1; setp.le.u32 p,r2,n; @p bra LOOP;";

/* Threads beyond a bound have exited; each remaining warp sums rows of its own, a varying number of them. */
static void expect_rows(struct warps_block *b)
{
    const uint32_t stay = b->threads - 32;

    for (uint32_t t = 0; t < stay; t++) {
        for (uint32_t row = t / 32; row < b->n * 3; row += stay / 32)
            for (uint32_t l = 0; l < 32; l++)
                b->out[t] += b->in[(row * 7 + l) % 64] * (row + 1);
    }
}
static const char sum_rows[] =
    "sub.u32 r2,z,32; setp.ge.u32 p,t,r2; @p ret; mov.u32 r9,0; shr.u32 r3,t,5; shr.u32 r4,r2,5; mul.lo.u32 r5,n,3; and.b32 r6,t,31;"
    "LOOP: setp.ge.u32 p,r3,r5; @p bra DONE; mad.lo.u32 r7,r3,7,r6; and.b32 r7,r7,63; mul.wide.u32 d1,r7,4; sub.u64 d2,i,d0;"
    "add.u64 d1,d2,d1; ld.global.u32 x,[d1]; add.u32 r8,r3,1; mul.lo.u32 x,x,r8;" TREE "add.u32 r9,r9,x; add.u32 r3,r3,r4; bra LOOP;"
    "DONE: mov.u32 x,r9;";

/* The same sum, once, over all threads but the last warp's, which have exited. */
static void expect_sum_after_exit(struct warps_block *b)
{
    uint32_t sum = 0;

    for (uint32_t t = 0; t < b->threads - 32; t++)
        sum += b->in[t];
    for (uint32_t t = 0; t < b->threads - 32; t++)
        b->out[t] = sum + b->n;
}
static const char sum_after_exit[] =
    "sub.u32 r2,z,32; setp.ge.u32 p,t,r2; @p ret; mov.u32 x,v; mov.u32 r3,s; shr.u32 r4,t,5; mad.lo.u32 r5,r4,4,r3; mad.lo.u32 r6,t,4,r3;"
    "shr.u32 r7,r2,5;" TREE "st.shared.u32 [r5],x; bar.sync 0; setp.ge.u32 p,t,32; @p bra REST; mov.u32 x,0; setp.lt.u32 q,t,r7;"
    "@q ld.shared.u32 x,[r6];" TREE "add.u32 x,x,n; setp.eq.u32 q,t,0; @q st.shared.u32 [r3+256],x; REST: bar.sync 0;"
    "ld.shared.u32 x,[r3+256];";

/* Warp 1 waits on a word of shared memory for warp 0, which does not wait. */
static void expect_spin(struct warps_block *b)
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

/* ---- warp-synchronous code: lanes pass values through shared memory without bar.warp.sync ---- */

/* The last steps of a block's sum as programs for older GPUs write them: the first warp adds 64 words, with volatile accesses. */
static void expect_volatile_sum(struct warps_block *b)
{
    uint32_t sum = 0;

    for (uint32_t t = 0; t < 64; t++)
        sum += b->in[t];
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = sum + b->n;
}
#define VOLATILE_STEP(bytes)                                                                                                               \
    "ld.volatile.shared.u32 r5,[r4+" bytes "]; ld.volatile.shared.u32 r6,[r4]; add.u32 r6,r6,r5; st.volatile.shared.u32 [r4],r6;"
#define SUM_OF_64(step)                                                                                                                    \
    "mov.u32 r3,s; mad.lo.u32 r4,t,4,r3; st.shared.u32 [r4],v; bar.sync 0; setp.ge.u32 p,t,32; @p bra OUT;" step("128") step("64")         \
        step("32") step("16") step("8") step("4") "OUT: bar.sync 0; ld.shared.u32 x,[s]; add.u32 x,x,n;"
static const char volatile_sum[] = SUM_OF_64(VOLATILE_STEP);

/* The same without volatile: guaranteed for targets below sm_70, and elsewhere the purpose of CUTTLE_LOCKSTEP. */
#define PLAIN_STEP(bytes) "ld.shared.u32 r5,[r4+" bytes "]; ld.shared.u32 r6,[r4]; add.u32 r6,r6,r5; st.shared.u32 [r4],r6;"
static const char plain_sum[] = SUM_OF_64(PLAIN_STEP);

/* The same by generic addresses, in a function. */
static const char generic_sum[] =
    "mov.u32 r3,s; mad.lo.u32 r4,t,4,r3; st.shared.u32 [r4],v; bar.sync 0; setp.ge.u32 p,t,32; @p bra OUT; cvt.u64.u32 d1,r4;"
    "cvta.shared.u64 d1,d1; { .param .b64 a; st.param.b64 [a],d1; call add_up, (a); } OUT: bar.sync 0; ld.shared.u32 x,[s]; add.u32 x,x,n;";
#define GENERIC_STEP(bytes) "ld.volatile.u32 x,[a+" bytes "]; ld.volatile.u32 y,[a]; add.u32 y,y,x; st.volatile.u32 [a],y;"
static const char generic_sum_functions[] =
    ".func add_up(.param .b64 at)\n{ .reg .b32 x, y; .reg .b64 a; ld.param.b64 a,[at];" GENERIC_STEP("128") GENERIC_STEP("64")
        GENERIC_STEP("32") GENERIC_STEP("16") GENERIC_STEP("8") GENERIC_STEP("4") "ret; }\n";

/* Inclusive prefix sums over the lanes (Hillis and Steele): in each step some lanes are inactive. */
static void expect_volatile_scan(struct warps_block *b)
{
    for (uint32_t t = 0, sum = 0; t < b->threads; t++) {
        sum = (t % 32 ? sum : 0) + b->in[t];
        b->out[t] = sum + b->n;
    }
}
#define SCAN_STEP(lanes, bytes, label)                                                                                                     \
    "setp.lt.u32 p,r1," lanes "; @p bra " label "; ld.volatile.shared.u32 r5,[r4+-" bytes                                                  \
    "]; ld.volatile.shared.u32 r6,[r4]; add.u32 r6,r6,r5;"                                                                                 \
    "st.volatile.shared.u32 [r4],r6; " label ":"
static const char volatile_scan[] =
    "mov.u32 r3,s; mad.lo.u32 r4,t,4,r3; and.b32 r1,t,31; st.volatile.shared.u32 [r4],v;" SCAN_STEP("1", "4", "A") SCAN_STEP("2", "8", "B")
        SCAN_STEP("4", "16", "C") SCAN_STEP("8", "32", "D") SCAN_STEP("16", "64", "E") "ld.volatile.shared.u32 x,[r4]; add.u32 x,x,n;";

/* Each warp executes its own number of rounds, and each lane takes its neighbour's value in each. */
static void expect_volatile_rounds(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        const uint32_t rounds = t / 32 + b->n;

        b->out[t] = b->in[(t & ~15u) + ((t + rounds) & 15)];
    }
}
static const char volatile_rounds[] =
    "mov.u32 r3,s; mad.lo.u32 r4,t,4,r3; mov.u32 x,v; shr.u32 r1,t,5; add.u32 r1,r1,n; add.u32 r2,t,1; and.b32 r2,r2,15; and.b32 r5,t,-16;"
    "or.b32 r2,r2,r5; mad.lo.u32 r2,r2,4,r3; LOOP: setp.eq.u32 p,r1,0; @p bra DONE; st.volatile.shared.u32 [r4],x; ld.volatile.shared.u32 "
    "x,[r2];"
    "sub.u32 r1,r1,1; bra LOOP; DONE:";

/* Values are rotated by plain accesses, with an atomic operation among them, in code for sm_60. */
static void expect_plain_exchange(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = b->in[t ^ 15] + b->in[t ^ 3] + 1 + b->n;
}
static const char plain_exchange[] =
    "mov.u32 r3,s; mad.lo.u32 r4,t,4,r3; xor.b32 r1,t,15; mad.lo.u32 r1,r1,4,r3; xor.b32 r2,t,3; mad.lo.u32 r2,r2,4,r3; st.shared.u32 "
    "[r4],v;"
    "ld.shared.u32 x,[r1]; add.u32 r5,v,n; st.shared.u32 [r4],r5; red.shared.add.u32 [r1],1; ld.shared.u32 r6,[r2]; add.u32 x,x,r6;";

/* Values are rotated through global memory; the end of the kernel overwrites them. */
static void expect_global_exchange(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = b->in[t ^ 15] + b->n;
}
static const char global_exchange[] =
    "st.global.u32 [o],v; xor.b32 r1,t,15; mul.wide.u32 d1,r1,4; sub.u64 d2,o,d0; add.u64 d2,d2,d1; ld.global.u32 x,[d2]; add.u32 x,x,n;";

/* A spin lock around a counter in shared memory, acquired by every thread; then the counter's final value. */
static void expect_lock(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++)
        b->out[t] = b->threads * (b->n + 1);
}
static const char lock[] =
    "mov.u32 r3,s; mov.u32 r1,0; st.shared.u32 [r3],r1; st.shared.u32 [r3+4],r1; bar.sync 0; add.u32 r6,n,1;"
    "TRY: atom.shared.cas.b32 r1,[r3],0,1; setp.ne.u32 p,r1,0; @p bra TRY; membar.cta; ld.volatile.shared.u32 r2,[r3+4];"
    "add.u32 r2,r2,r6; st.volatile.shared.u32 [r3+4],r2; membar.cta; atom.shared.exch.b32 r1,[r3],0; bar.sync 0;"
    "ld.shared.u32 x,[r3+4];";

/* ---- matrices ---- */

/* Three products of s8 matrices in a loop, in which D becomes C and A the transposed matrix; each lane has one register of A and of B. */
static const char products[] =
    "mov.u32 r4,0; mov.u32 r5,n; mov.u32 r6,0; mov.u32 r7,v; LOOP: mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {r4,r5},{r7},{v},{r4,r5};"
    "movmatrix.sync.aligned.m8n8.trans.b16 r7,r7; add.u32 r6,r6,1; setp.lt.u32 p,r6,3; @p bra LOOP; xor.b32 x,r4,r5; xor.b32 x,x,r7;";

static void transpose(uint32_t *words)
{
    uint16_t matrix[8][8];

    for (uint32_t l = 0; l < 32; l++)
        for (uint32_t i = 0; i < 2; i++)
            matrix[l / 4][l % 4 * 2 + i] = (uint16_t)(words[l] >> 16 * i);
    for (uint32_t l = 0; l < 32; l++)
        words[l] = matrix[l % 4 * 2][l / 4] | (uint32_t)matrix[l % 4 * 2 + 1][l / 4] << 16;
}

/* Lane 4 g + t has columns 4 t to 4 t + 3 of row g of A, the same rows of column g of B, and columns 2 t and 2 t + 1 of row g of C. */
static uint32_t product(const uint32_t *a, const uint32_t *b, uint32_t row, uint32_t column)
{
    uint32_t sum = 0;

    for (uint32_t k = 0; k < 16; k++)
        sum += (uint32_t)((int8_t)(a[4 * row + k / 4] >> k % 4 * 8) * (int32_t)(uint8_t)(b[4 * column + k / 4] >> k % 4 * 8));
    return sum;
}

static void expect_products(struct warps_block *b)
{
    for (uint32_t first = 0; first < b->threads; first += 32) {
        uint32_t a[32], c[32][2];

        memcpy(a, b->in + first, sizeof a);
        for (uint32_t round = 0; round < 3; round++) {
            for (uint32_t l = 0; l < 32; l++)
                for (uint32_t i = 0; i < 2; i++)
                    c[l][i] = (round ? c[l][i] : i * b->n) + product(a, b->in + first, l / 4, l % 4 * 2 + i);
            transpose(a);
        }
        for (uint32_t l = 0; l < 32; l++)
            b->out[first + l] = c[l][0] ^ c[l][1] ^ a[l];
    }
}

/* Warps take different branches, and multiply in each. */
static const char products_in_branches[] = "shr.u32 r1,t,5; and.b32 r1,r1,1; setp.eq.u32 p,r1,0; mov.u32 r4,0; mov.u32 r5,0; @p bra EVEN;"
                                           "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {r4,r5},{v},{v},{r4,r5}; bra OUT;"
                                           "EVEN: mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {r4,r5},{v},{v},{r4,r5};"
                                           "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {r4,r5},{v},{v},{r4,r5}; OUT: xor.b32 x,r4,r5;";

static void expect_products_in_branches(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        const uint32_t *words = b->in + t / 32 * 32, l = t % 32, times = t / 32 % 2 ? 1 : 2;

        b->out[t] = times * product(words, words, l / 4, l % 4 * 2) ^ times * product(words, words, l / 4, l % 4 * 2 + 1);
    }
}

/* In each of three rounds lane 0 of each warp adds up what its lanes have just stored, without waiting for them. Each lane stores the same word in
 * all rounds, so it does no harm if one is a round ahead. */
static void expect_lone(struct warps_block *b)
{
    for (uint32_t t = 0; t < b->threads; t++) {
        uint32_t sum = 0;

        for (uint32_t l = t; t % 32 == 0 && l < t + lanes_of(b, t); l++)
            sum += 3 * b->in[l];
        b->out[t] = t % 32 ? b->in[t] : sum;
    }
}
#define LONE_READER(space)                                                                                                                 \
    "mov.u32 r0,0; mov.u32 r5,0; and.b32 r1,t,31; sub.u32 r2,z,t; min.u32 r2,r2,32; TOP: st." space                                        \
    ".u32 [d1],v; setp.ne.u32 p,r1,0; @p bra NEXT;"                                                                                        \
    "mov.u32 r3,r2; mov.u64 d2,d1; MORE: ld." space                                                                                        \
    ".u32 r4,[d2]; add.u32 r5,r5,r4; add.u64 d2,d2,4; sub.u32 r3,r3,1; setp.ne.u32 q,r3,0;"                                                \
    "@q bra MORE; NEXT: add.u32 r0,r0,1; setp.lt.u32 q,r0,3; @q bra TOP; mov.u32 x,v; @p bra OUT; mov.u32 x,r5; OUT:"
static const char lone_shared[] = "mov.u64 d1,s; add.u64 d1,d1,d0;" LONE_READER("shared");
static const char lone_global[] = "mov.u64 d1,o;" LONE_READER("global");

const struct warps_row warps_rows[] = {
    {"shuffles of every kind", shuffles, expect_shuffles, WARPS_FULL, "", 0},
    {"shuffles in some warps", one_warp, expect_one_warp, 0, "", 0},
    {"shuffles of registers that are written again", reused, expect_reused, WARPS_FULL, "", 0},
    {"the same in some warps", reused_in_branches, expect_reused_in_branches, WARPS_FULL, "", 0},
    {"sums over the first lanes", first_lanes, expect_first_lanes, WARPS_FULL, "", 0},
    {"shuffles in loops of different lengths", rounds, expect_rounds, 0, "", 0},
    {"shuffles in a function", called, expect_one_warp, 0, called_functions, 0},
    {"words through memory in a function", called_rounds, expect_rounds, 0, called_rounds_functions, 0},
    {"lanes with rounds of their own", lane_rounds, expect_lane_rounds, 0, "", 0},
    {"active lanes counted in each round", counted_rounds, expect_counted_rounds, 0, "", 0},
    {"lanes one round behind", behind, expect_behind, WARPS_APART, "", 0},
    {"lanes from two branches", from_branches, expect_from_branches, WARPS_APART, "", 0},
    {"ballots in two branches", ballots, expect_ballots, 0, "", 0},
    {"votes", votes, expect_votes, 0, "", 0},
    {"matches", matches, expect_matches, 0, "", 0},
    {"active lanes", active, expect_active, 0, "", 0},
    {"reductions", reductions, expect_reductions, 0, "", 0},
    {"all kinds after early exits", after_exits, expect_after_exits, 0, "", 0},
    {"barriers after early exits", early_exit, expect_early_exit, 0, "", 0},
    {"one barrier from two branches", two_branches, expect_two_branches, WARPS_FULL, "", 0},
    {"producer and consumer", producer, expect_producer, 0, "", 0},
    {"barriers that reduce", bar_red, expect_bar_red, 0, "", 0},
    {"barriers of some warps that reduce", bar_red_of_some, expect_bar_red_of_some, WARPS_FULL, "", 0},
    {"votes and reducing barriers in a function", called_meetings, expect_called_meetings, WARPS_FULL, called_meetings_functions, 0},
    {"barriers that reduce after early exits", red_after_exit, expect_red_after_exit, 0, "", 0},
    {"barriers that count threads", counts, expect_counts, 0, "", 0},
    {"the sum of a block", block_sum, expect_block_sum, WARPS_FULL, "", 0},
    {"the sum of a block after early exits", sum_after_exit, expect_sum_after_exit, WARPS_FULL, "", 0},
    {"rows after early exits", sum_rows, expect_rows, WARPS_FULL, "", 0},
    {"a warp that spins", spin, expect_spin, WARPS_FULL, "", 0},
    {"a spin lock", lock, expect_lock, 0, "", 0},
    {"a volatile sum", volatile_sum, expect_volatile_sum, 0, "", 0},
    {"a volatile sum by generic addresses", generic_sum, expect_volatile_sum, WARPS_GENERIC, generic_sum_functions, 0},
    {"a volatile scan", volatile_scan, expect_volatile_scan, 0, "", 0},
    {"volatile accesses in loops of different lengths", volatile_rounds, expect_volatile_rounds, 0, "", 0},
    {"a sum for sm_60", plain_sum, expect_volatile_sum, 0, "", 60},
    {"values that go round for sm_60", plain_exchange, expect_plain_exchange, 0, "", 60},
    {"global words that want lockstep", global_exchange, expect_global_exchange, WARPS_LOCKSTEP, "", 0},
    {"words in shared memory that lane 0 reads", lone_shared, expect_lone, 0, "", 0},
    {"words in global memory that lane 0 reads", lone_global, expect_lone, 0, "", 0},
    {"products of matrices", products, expect_products, WARPS_FULL, "", 0},
    {"products of matrices in branches of warps", products_in_branches, expect_products_in_branches, WARPS_FULL, "", 0},
    {"a sum that wants lockstep", plain_sum, expect_volatile_sum, WARPS_LOCKSTEP, "", 0},
};

const size_t warps_row_count = sizeof warps_rows / sizeof *warps_rows;

void warps_make_ptx(char *text, size_t size, const struct warps_row *row)
{
    const int length = snprintf(
        text, size,
        ".version 7.8\n.target sm_%u\n.address_size 64\n%s.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 count)\n{\n"
        ".reg .pred p, q; .reg .b32 r<10>; .reg .b64 d<4>; .reg .b64 o, i; .reg .b32 t, v, n, x, z; .shared .align 16 .b8 s[1024];\n"
        "ld.param.u64 o,[out]; ld.param.u64 i,[in]; ld.param.u32 n,[count]; mov.u32 t,%%tid.x; mov.u32 z,%%ntid.x;\n"
        "mul.wide.u32 d0,t,4; add.u64 o,o,d0; add.u64 i,i,d0; ld.global.u32 v,[i]; mov.u32 x,0;\n"
        "%s\nst.global.u32 [o],x; ret;\n}\n",
        row->sm ? row->sm : 80, row->functions, row->body);

    assert(length > 0 && (size_t)length < size);
    (void)length;
}

void warps_fill(struct warps_block *block, uint32_t n, uint32_t threads)
{
    uint32_t word = 54321 + n;

    *block = (struct warps_block){.n = n, .threads = threads};
    for (uint32_t t = 0; t < WARPS_THREADS_MAX; t++) {
        word = word * 1664525u + 1013904223u;
        block->in[t] = word >> 8;
    }
}
