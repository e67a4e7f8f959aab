/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that use every form of the emitted code, run on the device and compared with host C: memory of each space and width, control
 * flow, thread indices, parameters. One kernel for each row; each has the parameters (out, in, n). */
#include "../api/api_test.h"

#include <stdbool.h>

enum { N = 256 }; /* number of words of `in` and `out`, and of threads of a launch, unless a row specifies another one */

struct data {
    uint32_t in[N], out[N];
    uint32_t n;
};

/* ---- memory ---- */

/* s[t] = in[t]; out[t] = s[(7 t + n) % 256], with narrow and signed accesses. */
static void expect_bytes(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = (uint32_t)(int8_t)d->in[(7 * t + d->n) % N];
}

static void expect_halves(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = (uint32_t)(int16_t)d->in[(7 * t + d->n) % N];
}

static const char bytes[] =
    ".shared .align 16 .b8 s[256]; cvt.u16.u32 h0,v; mov.u32 r1,s; add.u32 r1,r1,t; st.shared.u8 [r1],h0; bar.sync 0;"
    "mad.lo.u32 r2,t,7,n; and.b32 r2,r2,255; mov.u32 r1,s; add.u32 r1,r1,r2; ld.shared.s8 r3,[r1]; mov.u32 x,r3;";
static const char halves[] =
    ".shared .align 16 .b8 s[512]; cvt.u16.u32 h0,v; mov.u32 r1,s; mad.lo.u32 r1,t,2,r1; st.shared.u16 [r1],h0; bar.sync 0;"
    "mad.lo.u32 r2,t,7,n; and.b32 r2,r2,255; mov.u32 r1,s; mad.lo.u32 r1,r2,2,r1; ld.shared.s16 x,[r1];";

/* Pairs of 64 bits: s[t] = (in[t] * t, in[t] + t); out[t] = both values of the mirrored thread, combined. */
static void expect_wide(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t m = 255 - t;
        const uint64_t low = (uint64_t)d->in[m] * m, high = (uint64_t)d->in[m] + m + ((uint64_t)d->n << 32);

        d->out[t] = (uint32_t)(low ^ low >> 32 ^ high ^ high >> 31);
    }
}
static const char wide[] =
    ".shared .align 16 .b8 s[4096]; mul.wide.u32 d1,v,t; cvt.u64.u32 d2,v; cvt.u64.u32 d3,t; add.u64 d2,d2,d3; cvt.u64.u32 d3,n;"
    "shl.b64 d3,d3,32; add.u64 d2,d2,d3; mov.u32 r1,s; mad.lo.u32 r2,t,16,r1; st.shared.v2.u64 [r2],{d1,d2}; bar.sync 0;"
    "sub.u32 r3,255,t; mad.lo.u32 r2,r3,16,r1; ld.shared.u64 d4,[r2]; ld.shared.u64 d5,[r2+8]; shr.u64 d6,d4,32; shr.u64 d7,d5,31;"
    "xor.b64 d4,d4,d5; xor.b64 d4,d4,d6; xor.b64 d4,d4,d7; cvt.u32.u64 x,d4;";

/* Mostly vectors of four words: s[t] = (in[t], in[t] + n, t, in[t] ^ 5). Read as vectors, words, pairs of words and 64 bits. */
static uint32_t word_of_quad(const struct data *d, uint32_t t, unsigned k)
{
    const uint32_t words[] = {d->in[t], d->in[t] + d->n, t, d->in[t] ^ 5};

    return words[k];
}
static void expect_quads(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t m = 255 - t, q = (t + d->n) % N;

        d->out[t] = word_of_quad(d, m, 0) + 3 * word_of_quad(d, m, 1) + 5 * word_of_quad(d, m, 2) + 7 * word_of_quad(d, m, 3);
        d->out[t] += word_of_quad(d, q, 0) ^ word_of_quad(d, q, 1) ^ word_of_quad(d, q, 2) ^ word_of_quad(d, q, 3);
        d->out[t] += word_of_quad(d, m, 2) + word_of_quad(d, m, 0) - word_of_quad(d, m, 1);
        d->out[t] += word_of_quad(d, m, 2) ^ word_of_quad(d, m, 3);
    }
}
static const char quads[] =
    ".shared .align 16 .b8 s[4096]; mov.u32 r1,s; mad.lo.u32 r2,t,16,r1; add.u32 r3,v,n; mul.lo.u32 r4,v,t;"
    "st.shared.v4.u32 [r2],{v,r3,t,r4}; xor.b32 r4,v,5; st.shared.u32 [r2+12],r4; bar.sync 0; sub.u32 r3,255,t; mad.lo.u32 r2,r3,16,r1;"
    "ld.shared.v4.u32 {r4,r5,r6,r7},[r2]; mad.lo.u32 x,r5,3,r4; mad.lo.u32 x,r6,5,x; mad.lo.u32 x,r7,7,x; add.u32 r3,t,n;"
    "and.b32 r3,r3,255; mad.lo.u32 r3,r3,16,r1; ld.shared.v4.u32 {r4,r5,r6,r7},[r3]; xor.b32 r4,r4,r5; xor.b32 r6,r6,r7;"
    "xor.b32 r4,r4,r6; add.u32 x,x,r4; ld.shared.u32 r4,[r2+8]; add.u32 x,x,r4; ld.shared.v2.u32 {r4,r5},[r2]; sub.u32 r4,r4,r5;"
    "add.u32 x,x,r4; ld.shared.u64 d1,[r2+8]; cvt.u32.u64 r4,d1; shr.u64 d1,d1,32; cvt.u32.u64 r5,d1; xor.b32 r4,r4,r5; add.u32 x,x,r4;";

/* Mostly 64 bits: s[t] = in[t] * t, whose upper word is overwritten by n. */
static void expect_pairs(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t m = 255 - t, q = (t + d->n) % N;

        d->out[t] = (d->in[m] * m ^ d->n) + d->in[q] * q * 3 + d->n * 2;
    }
}
static const char pairs[] =
    ".shared .align 16 .b8 s[2048]; mov.u32 r1,s; mad.lo.u32 r2,t,8,r1; mul.wide.u32 d1,v,t; st.shared.u64 [r2],d1;"
    "st.shared.u32 [r2+4],n; bar.sync 0; sub.u32 r3,255,t; mad.lo.u32 r3,r3,8,r1; ld.shared.u64 d2,[r3]; shr.u64 d3,d2,32;"
    "xor.b64 d2,d2,d3; cvt.u32.u64 x,d2; add.u32 r3,t,n; and.b32 r3,r3,255; mad.lo.u32 r3,r3,8,r1; ld.shared.v2.u32 {r4,r5},[r3];"
    "mad.lo.u32 x,r4,3,x; add.u32 x,x,r5; ld.shared.u32 r6,[r3+4]; add.u32 x,x,r6;";

/* The bytes of in[t] in reverse order, each plus its position. */
static void expect_quad(struct data *d)
{
    for (uint32_t t = 0; t < N; t++)
        for (uint32_t k = 0; k < 4; k++)
            d->out[t] |= (((d->in[t] >> (24 - 8 * k)) + k + d->n) & 0xff) << (8 * k);
}
static const char quad[] =
    ".shared .align 16 .b8 s[1024]; ld.global.v4.u8 {h0,h1,h2,h3},[i]; cvt.u16.u32 h7,n; add.u16 h3,h3,h7; add.u16 h2,h2,h7;"
    "add.u16 h1,h1,h7; add.u16 h0,h0,h7; add.u16 h2,h2,1; add.u16 h1,h1,2; add.u16 h0,h0,3;"
    "mov.u32 r1,s; mad.lo.u32 r1,t,4,r1; st.shared.v4.u8 [r1],{h3,h2,h1,h0}; ld.shared.u32 x,[r1];";

/* A local byte array, indexed by data; then 64-bit accesses to it. */
static void expect_local(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint8_t l[16];
        uint64_t low, high;

        for (uint32_t k = 0; k < 16; k++)
            l[k] = (uint8_t)(k * d->in[t]);
        for (uint32_t k = 0; k < 16; k++)
            l[(k * 5 + d->n) % 16] = (uint8_t)(l[(k * 5 + d->n) % 16] + l[k]);
        memcpy(&low, l, 8);
        memcpy(&high, l + 8, 8);
        d->out[t] = (uint32_t)(low ^ low >> 32) + (uint32_t)(high ^ high >> 32);
    }
}
static const char local[] =
    ".local .align 16 .b8 l[16]; mov.u32 r1,0; mov.u32 r9,l; F: mul.lo.u32 r2,r1,v; add.u32 r3,r9,r1; st.local.u8 [r3],r2;"
    "add.u32 r1,r1,1; setp.lt.u32 p,r1,16; @p bra F; mov.u32 r1,0; G: mad.lo.u32 r2,r1,5,n; and.b32 r2,r2,15; add.u32 r2,r2,r9;"
    "add.u32 r3,r9,r1; ld.local.u8 r4,[r3]; ld.local.u8 r5,[r2]; add.u32 r5,r5,r4; st.local.u8 [r2],r5; add.u32 r1,r1,1;"
    "setp.lt.u32 p,r1,16; @p bra G; ld.local.v2.u64 {d1,d2},[l]; shr.u64 d3,d1,32; xor.b64 d1,d1,d3; shr.u64 d3,d2,32;"
    "xor.b64 d2,d2,d3; cvt.u32.u64 r1,d1; cvt.u32.u64 r2,d2; add.u32 x,r1,r2;";

/* One pointer to shared, local or global memory, depending on the thread and n; the pointer is stored in memory. */
static void expect_generic(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t which = (t + d->n) % 3;

        d->out[t] = which == 0 ? d->in[t] + 1000 + t : which == 1 ? d->in[t] + 2000 + t : d->in[t] + t;
    }
}
static const char generic[] =
    ".shared .align 16 .b8 s[1024]; .local .align 8 .b8 l[8]; .local .align 8 .b8 q[8]; mov.u32 r1,s; mad.lo.u32 r1,t,4,r1;"
    "add.u32 r2,v,1000; st.shared.u32 [r1],r2; mov.u32 r3,l; add.u32 r2,v,2000; st.local.u32 [r3],r2; bar.sync 0;"
    "cvt.u64.u32 d1,r1; cvta.shared.u64 d1,d1; cvt.u64.u32 d2,r3; cvta.local.u64 d2,d2; add.u32 r4,t,n; rem.u32 r4,r4,3;"
    "setp.eq.u32 p,r4,0; mov.b64 d3,i; @p mov.b64 d3,d1; setp.eq.u32 p,r4,1; @p mov.b64 d3,d2; st.local.u64 [q],d3;"
    "ld.local.u64 d4,[q]; ld.u32 r5,[d4]; add.u32 r5,r5,t; st.u32 [d4],r5; ld.volatile.u32 x,[d4];";

/* Atomics on a block's shared words: sum, signed maximum, bitwise or, an adding compare-and-swap loop. */
static void expect_atomics(struct data *d)
{
    uint32_t sum = d->n, bits = 0;
    int32_t most = INT32_MIN;

    for (uint32_t t = 0; t < N; t++) {
        sum += d->in[t];
        bits |= 1u << (d->in[t] & 31);
        most = (int32_t)d->in[t] > most ? (int32_t)d->in[t] : most;
    }
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = (t & 3) == 0 ? sum : (t & 3) == 1 ? (uint32_t)most : (t & 3) == 2 ? bits : sum - d->n;
}
static const char atomics[] =
    ".shared .align 16 .b8 s[16]; setp.ne.u32 p,t,0; @p bra A; st.shared.u32 [s],n; st.shared.u32 [s+4],0x80000000;"
    "st.shared.u32 [s+8],0; st.shared.u32 [s+12],0; A: bar.sync 0; red.shared.add.u32 [s],v; atom.shared.max.s32 r1,[s+4],v;"
    "and.b32 r2,v,31; shl.b32 r2,1,r2; atom.shared.or.b32 r1,[s+8],r2; ld.shared.u32 r3,[s+12];"
    "B: add.u32 r4,r3,v; mov.u32 r5,r3; atom.shared.cas.b32 r3,[s+12],r5,r4; setp.ne.u32 p,r3,r5; @p bra B; bar.sync 0;"
    "and.b32 r6,t,3; shl.b32 r6,r6,2; mov.u32 r7,s; add.u32 r7,r7,r6; ld.shared.u32 x,[r7];";

/* The same with 64 bits, beside elements of 32 and 8 bits that share words, and through a generic pointer. Thread t reads word t % 8. */
static void expect_wide_atomics(struct data *d)
{
    uint64_t words[8] = {0, (uint64_t)INT64_MIN, d->n, 0, 0, 0, 0, d->n};
    uint32_t sum = 0, most = 0;
    double floats = 0;

    for (uint32_t t = 0; t < N; t++) {
        const uint64_t value = (uint64_t)d->in[t] * 0x9e3779b1u + t;

        words[0] += value;
        words[1] = (int64_t)value > (int64_t)words[1] ? value : words[1];
        words[2] += value * 3;
        floats += d->in[t] >> 8;
        sum += d->in[t];
        most = d->in[t] > most ? d->in[t] : most;
        words[6] ^= value;
    }
    memcpy(&words[3], &floats, sizeof floats);
    words[4] = (uint64_t)most << 32 | sum;
    for (unsigned i = 0; i < 8; i++)
        words[5] |= (uint64_t)(uint8_t)(i * 37 + d->n) << 8 * i;
    for (uint32_t t = 0; t < N; t++)
        d->out[t] = (uint32_t)(words[t & 7] ^ words[t & 7] >> 32);
}
static const char wide_atomics[] =
    ".shared .align 16 .b8 s[64]; .reg .f64 e; mov.u32 r9,s; setp.ne.u32 p,t,0; @p bra A; mov.u64 d1,0; cvt.u64.u32 d2,n;"
    "st.shared.v2.u64 [s],{d1,0x8000000000000000}; st.shared.u64 [s+16],d2; st.shared.u64 [s+24],d1; st.shared.v2.u32 [s+32],{0,0};"
    "st.shared.u64 [s+40],d1; st.shared.v4.u32 [s+48],{0,0,0,0}; A: bar.sync 0; mul.wide.u32 d1,v,0x9e3779b1; cvt.u64.u32 d2,t;"
    "add.u64 d1,d1,d2; red.shared.add.u64 [s],d1; atom.shared.max.s64 d2,[s+8],d1; mul.lo.u64 d3,d1,3; ld.shared.u64 d4,[s+16];"
    "B: add.u64 d5,d4,d3; mov.u64 d6,d4; atom.shared.cas.b64 d4,[s+16],d6,d5; setp.ne.u64 p,d4,d6; @p bra B; shr.u32 r1,v,8;"
    "cvt.rn.f64.u32 e,r1; red.shared.add.f64 [s+24],e; red.shared.add.u32 [s+32],v; atom.shared.max.u32 r1,[s+36],v;"
    "setp.gt.u32 p,t,7; @p bra C; mad.lo.u32 r1,t,37,n; add.u32 r2,r9,t; st.shared.u8 [r2+40],r1; C: cvt.u64.u32 d2,r9;"
    "cvta.shared.u64 d2,d2; atom.xor.b64 d3,[d2+48],d1; cvt.u64.u32 d4,n; atom.shared.exch.b64 d5,[s+56],d4; bar.sync 0;"
    "and.b32 r6,t,7; mad.lo.u32 r7,r6,8,r9; ld.shared.u64 d1,[r7]; shr.u64 d2,d1,32; xor.b64 d1,d1,d2; cvt.u32.u64 x,d1;";

/* ---- control flow ---- */

/* Two loops; the inner one is left to its end, to the outer one's next iteration, out of both, and out of the kernel. */
static void expect_exits(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t x = d->n, word = d->in[t];
        bool done = false, gone = false;

        for (uint32_t a = 0; a < 8 && !done && !gone; a++) {
            for (uint32_t b = 0; b < 8; b++) {
                const uint32_t action = word >> 27;

                word = word * 1664525u + 1013904223u;
                x = x * 3 + a + b;
                if (action == 1)
                    break;
                if (action == 2)
                    goto next;
                if (action == 3)
                    done = true;
                if (action == 4)
                    gone = true;
                if (done || gone)
                    break;
            }
            if (done || gone)
                break;
            x ^= 0x55;
        next:
            x++;
        }
        d->out[t] = gone ? 0 : done ? ~x : x;
    }
}
static const char exits[] =
    "mov.u32 x,n; mov.u32 r1,0; mov.u32 r9,v; O: mov.u32 r2,0; I: shr.u32 r3,r9,27; mad.lo.u32 r9,r9,1664525,1013904223;"
    "mad.lo.u32 x,x,3,r1; add.u32 x,x,r2; setp.eq.u32 p,r3,1; @p bra E; setp.eq.u32 p,r3,2; @p bra X; setp.eq.u32 p,r3,3; @p bra D;"
    "setp.eq.u32 p,r3,4; @p ret; add.u32 r2,r2,1; setp.lt.u32 p,r2,8; @p bra I; E: xor.b32 x,x,0x55; X: add.u32 x,x,1; add.u32 r1,r1,1;"
    "setp.lt.u32 p,r1,8; @p bra O; bra Z; D: not.b32 x,x; Z:";

/* A branch table inside a loop; one of its cases falls through into the next. */
static void expect_table(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t x = t, word = d->in[t];

        for (uint32_t k = 0; k < 6 + d->n; k++, word >>= 3) {
            switch (word & 3) {
            case 0:
                x += 17;
                break;
            case 1:
                x *= 5; /* fall through */
            case 2:
                x ^= 0xff;
                break;
            default:
                x -= k;
                break;
            }
        }
        d->out[t] = x;
    }
}
static const char table[] =
    "T: .branchtargets A,B,C,D; mov.u32 x,t; mov.u32 r1,0; add.u32 r2,n,6; L: and.b32 r3,v,3; shr.u32 v,v,3; brx.idx r3,T;"
    "A: add.u32 x,x,17; bra E; B: mul.lo.u32 x,x,5; C: xor.b32 x,x,0xff; bra E; D: sub.u32 x,x,r1; E: add.u32 r1,r1,1;"
    "setp.lt.u32 p,r1,r2; @p bra L;";

/* A loop with two entries. */
static void expect_two_entries(struct data *d)
{
    for (uint32_t t = 0; t < N; t++) {
        uint32_t x = d->in[t], k = 0;
        bool second = t & 1;

        for (;;) {
            if (!second)
                x = x * 7 + 1;
            second = false;
            x ^= x >> 3;
            if (++k >= 5 + d->n)
                break;
        }
        d->out[t] = x;
    }
}
static const char two_entries[] =
    "mov.u32 x,v; mov.u32 r1,0; add.u32 r2,n,5; and.b32 r3,t,1; setp.eq.u32 p,r3,1; @p bra B; A: mad.lo.u32 x,x,7,1; B: shr.u32 r4,x,3;"
    "xor.b32 x,x,r4; add.u32 r1,r1,1; setp.lt.u32 p,r1,r2; @p bra A;";

/* A barrier in a loop; half of the threads skip the work early. */
static void expect_scan(struct data *d)
{
    uint32_t sum = d->n;

    for (uint32_t t = 0; t < N; t++)
        d->out[t] = sum += d->in[t];
}
static const char scan[] =
    ".shared .align 4 .b8 s[1024]; mov.u32 r9,s; mad.lo.u32 r1,t,4,r9; setp.eq.u32 p,t,0; @p add.u32 v,v,n; st.shared.u32 [r1],v;"
    "bar.sync 0; mov.u32 r2,1; L: setp.lt.u32 p,t,r2; mov.u32 r5,0; @p bra S; sub.u32 r3,t,r2; mad.lo.u32 r4,r3,4,r9;"
    " ld.shared.u32 r5,[r4];"
    "S: bar.sync 0; ld.shared.u32 r6,[r1]; add.u32 r6,r6,r5; st.shared.u32 [r1],r6; bar.sync 0; shl.b32 r2,r2,1; setp.lt.u32 p,r2,256;"
    "@p bra L; ld.shared.u32 x,[r1];";

/* ---- indices ---- */

static void expect_indices(struct data *d)
{
    for (uint32_t b = 0; b < 8; b++)
        for (uint32_t t = 0; t < 32; t++)
            d->out[b * 32 + t] = t % 4 | t / 4 % 2 << 4 | t / 8 << 8 | b % 2 << 12 | b / 2 % 2 << 16 | b / 4 << 20 | 2u << 24 | 2u << 28;
}
static const char indices[] =
    "mov.u32 x,%tid.x; mov.u32 r1,%tid.y; shl.b32 r1,r1,4; or.b32 x,x,r1; mov.u32 r1,%tid.z; shl.b32 r1,r1,8; or.b32 x,x,r1;"
    "mov.u32 r1,%ctaid.x; shl.b32 r1,r1,12; or.b32 x,x,r1; mov.u32 r1,%ctaid.y; shl.b32 r1,r1,16; or.b32 x,x,r1; mov.u32 r1,%ctaid.z;"
    "shl.b32 r1,r1,20; or.b32 x,x,r1; mov.u32 r1,%nctaid.y; shl.b32 r1,r1,24; or.b32 x,x,r1; mov.u32 r1,%ntid.y; shl.b32 r1,r1,28;"
    "or.b32 x,x,r1;";

/* ---- the rows ---- */

struct row {
    const char *name, *body;
    void (*expect)(struct data *data);
    unsigned grid[3], block[3]; /* 0: one block of N threads */
};
static const struct row rows[] = {
    {"bytes in shared memory", bytes, expect_bytes, {0}, {0}},
    {"halves in shared memory", halves, expect_halves, {0}, {0}},
    {"64 bits in shared memory", wide, expect_wide, {0}, {0}},
    {"mostly vectors of words in shared memory", quads, expect_quads, {0}, {0}},
    {"mostly 64 bits in shared memory", pairs, expect_pairs, {0}, {0}},
    {"vectors of four bytes", quad, expect_quad, {0}, {0}},
    {"local memory", local, expect_local, {0}, {0}},
    {"generic pointers", generic, expect_generic, {0}, {0}},
    {"shared atomics", atomics, expect_atomics, {0}, {0}},
    {"shared atomics of 64 bits", wide_atomics, expect_wide_atomics, {0}, {0}},
    {"exits of nested loops", exits, expect_exits, {0}, {0}},
    {"indexed branch", table, expect_table, {0}, {0}},
    {"loop with two entries", two_entries, expect_two_entries, {0}, {0}},
    {"barriers in a loop", scan, expect_scan, {0}, {0}},
    {"thread and block indices", indices, expect_indices, {2, 2, 2}, {4, 2, 4}},
};

/* out, in, n and, so that they do not fit into push constants, a filler before n. */
static void make_ptx(char *text, size_t size, const char *body, unsigned filler_bytes)
{
    char filler[64] = "";

    if (filler_bytes)
        snprintf(filler, sizeof filler, ".param .align 16 .b8 filler[%u], ", filler_bytes);
    const int length =
        snprintf(text, size,
                 ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in,"
                 " %s.param .u32 count)\n{\n"
                 ".reg .pred p; .reg .b16 h<8>; .reg .b32 r<10>; .reg .b64 d<8>; .reg .b64 o, i; .reg .b32 t, v, n, x, w, z;\n"
                 "ld.param.u64 o,[out]; ld.param.u64 i,[in]; ld.param.u32 n,[count];\n"
                 "mov.u32 t,%%tid.x; mov.u32 w,%%tid.y; mov.u32 z,%%ntid.x; mad.lo.u32 t,w,z,t; mov.u32 w,%%ntid.y; mul.lo.u32 z,z,w;\n"
                 "mov.u32 w,%%tid.z; mad.lo.u32 t,w,z,t; mov.u32 w,%%ntid.z; mul.lo.u32 z,z,w;\n"
                 "mov.u32 r1,%%ctaid.z; mov.u32 r2,%%nctaid.y; mov.u32 r3,%%ctaid.y; mad.lo.u32 r1,r1,r2,r3; mov.u32 r2,%%nctaid.x;\n"
                 "mov.u32 r3,%%ctaid.x; mad.lo.u32 r1,r1,r2,r3; mad.lo.u32 t,r1,z,t;\n"
                 "mul.wide.u32 d0,t,4; add.u64 o,o,d0; add.u64 i,i,d0; ld.global.u32 v,[i]; mov.u32 x,0;\n"
                 "%s\nst.global.u32 [o],x; ret;\n}\n",
                 filler, body);
    assert_true(length > 0 && (size_t)length < size);
}

static void launch(const struct row *row, CUfunction kernel, unsigned filler_bytes, CUdeviceptr out, CUdeviceptr in, uint32_t n)
{
    const unsigned *grid = row->grid[0] ? row->grid : (const unsigned[]){1, 1, 1};
    const unsigned *block = row->grid[0] ? row->block : (const unsigned[]){N, 1, 1};
    unsigned char filler[512] = {0};
    void *direct[] = {&out, &in, &n}, *behind_filler[] = {&out, &in, filler, &n};

    assert_int_equal(cuLaunchKernel(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, NULL,
                                    filler_bytes ? behind_filler : direct, NULL),
                     CUDA_SUCCESS);
}

static void fill(struct data *data, uint32_t n)
{
    uint32_t word = 12345 + n;

    *data = (struct data){.n = n};
    for (uint32_t t = 0; t < N; t++)
        data->in[t] = word = word * 1664525u + 1013904223u;
}

static void run_row(const struct row *row, unsigned filler_bytes)
{
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr in, out;
    char ptx[8192];

    make_ptx(ptx, sizeof ptx, row->body, filler_bytes);
    if (cuModuleLoadData(&module, ptx) != CUDA_SUCCESS || cuModuleGetFunction(&kernel, module, "k") != CUDA_SUCCESS)
        fail_msg("%s does not compile", row->name);
    assert_int_equal(cuMemAlloc(&in, sizeof(uint32_t) * N), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc(&out, sizeof(uint32_t) * N), CUDA_SUCCESS);
    for (uint32_t n = 0; n < 4; n++) {
        struct data data;
        uint32_t found[N];

        fill(&data, n);
        row->expect(&data);
        assert_int_equal(cuMemcpyHtoD(in, data.in, sizeof data.in), CUDA_SUCCESS);
        assert_int_equal(cuMemsetD32(out, 0, N), CUDA_SUCCESS);
        launch(row, kernel, filler_bytes, out, in, n);
        assert_int_equal(cuMemcpyDtoH(found, out, sizeof found), CUDA_SUCCESS);
        for (uint32_t t = 0; t < N; t++)
            if (found[t] != data.out[t])
                fail_msg("%s, n = %u, thread %u: 0x%x instead of 0x%x", row->name, n, t, found[t], data.out[t]);
    }
    assert_int_equal(cuMemFree(in), CUDA_SUCCESS);
    assert_int_equal(cuMemFree(out), CUDA_SUCCESS);
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
}

static void test_kernels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run_row(&rows[i], 0);
}

static void test_parameters_in_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run_row(&rows[i], 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_parameters_in_memory),
    };

    return cmocka_run_group_tests(tests, with_context, without_context);
}
