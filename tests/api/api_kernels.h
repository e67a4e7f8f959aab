/* SPDX-License-Identifier: Apache-2.0 */
/* PTX for the tests of modules and launches. */
#ifndef CUTTLE_TESTS_API_KERNELS_H
#define CUTTLE_TESTS_API_KERNELS_H

/* clang-format off */

#define PTX_HEADER ".version 6.0\n.target sm_50\n.address_size 64\n"

/* out[thread] = a + thread, for `count` threads. */
#define PTX_RAMP                                                                          \
    ".visible .entry ramp(.param .u64 out, .param .u32 a, .param .u32 count)\n"           \
    "{\n"                                                                                 \
    "    .reg .pred %p;\n"                                                                \
    "    .reg .b32 %r<6>;\n"                                                              \
    "    .reg .b64 %d<4>;\n"                                                              \
    "    ld.param.u64 %d1, [out];\n"                                                      \
    "    ld.param.u32 %r1, [a];\n"                                                        \
    "    ld.param.u32 %r2, [count];\n"                                                    \
    "    mov.u32 %r3, %ctaid.x;\n"                                                        \
    "    mov.u32 %r4, %ntid.x;\n"                                                         \
    "    mov.u32 %r5, %tid.x;\n"                                                          \
    "    mad.lo.u32 %r3, %r3, %r4, %r5;\n"                                                \
    "    setp.ge.u32 %p, %r3, %r2;\n"                                                     \
    "    @%p bra done;\n"                                                                 \
    "    mul.wide.u32 %d2, %r3, 4;\n"                                                     \
    "    add.u64 %d3, %d1, %d2;\n"                                                        \
    "    add.u32 %r3, %r3, %r1;\n"                                                        \
    "    st.global.u32 [%d3], %r3;\n"                                                     \
    "done:\n"                                                                             \
    "    ret;\n"                                                                          \
    "}\n"

#define PTX_NOTHING ".visible .entry nothing()\n{\n    ret;\n}\n"

/* Ends with an error. */
#define PTX_TRAP ".visible .entry stops()\n{\n    trap;\n    ret;\n}\n"

/* Static shared memory of `bytes` bytes; it is written so that it is not removed. */
#define PTX_SHARED(name, bytes)                                                           \
    ".visible .entry " name "(.param .u64 out)\n"                                         \
    "{\n"                                                                                 \
    "    .shared .align 4 .b8 room[" #bytes "];\n"                                        \
    "    .reg .b32 %r<3>;\n"                                                              \
    "    .reg .b64 %d<2>;\n"                                                              \
    "    ld.param.u64 %d1, [out];\n"                                                      \
    "    mov.u32 %r1, 77;\n"                                                              \
    "    st.shared.u32 [room + " #bytes " - 4], %r1;\n"                                   \
    "    bar.sync 0;\n"                                                                   \
    "    ld.shared.u32 %r2, [room + " #bytes " - 4];\n"                                   \
    "    st.global.u32 [%d1], %r2;\n"                                                     \
    "    ret;\n"                                                                          \
    "}\n"

/* Each of 64 threads writes its number to dynamic shared memory at 4 * (63 - tid) and copies the word at 4 * tid to out. */
#define PTX_DYNAMIC                                                                       \
    ".extern .shared .align 16 .b8 dynamic[];\n"                                          \
    ".visible .entry reverse(.param .u64 out)\n"                                          \
    "{\n"                                                                                 \
    "    .reg .b32 %r<6>;\n"                                                              \
    "    .reg .b64 %d<4>;\n"                                                              \
    "    ld.param.u64 %d1, [out];\n"                                                      \
    "    mov.u32 %r1, %tid.x;\n"                                                          \
    "    mov.u32 %r2, 63;\n"                                                              \
    "    sub.u32 %r2, %r2, %r1;\n"                                                        \
    "    shl.b32 %r2, %r2, 2;\n"                                                          \
    "    mov.u32 %r3, dynamic;\n"                                                         \
    "    add.u32 %r2, %r2, %r3;\n"                                                        \
    "    st.shared.u32 [%r2], %r1;\n"                                                     \
    "    bar.sync 0;\n"                                                                   \
    "    shl.b32 %r4, %r1, 2;\n"                                                          \
    "    add.u32 %r4, %r4, %r3;\n"                                                        \
    "    ld.shared.u32 %r5, [%r4];\n"                                                     \
    "    mul.wide.u32 %d2, %r1, 4;\n"                                                     \
    "    add.u64 %d3, %d1, %d2;\n"                                                        \
    "    st.global.u32 [%d3], %r5;\n"                                                     \
    "    ret;\n"                                                                          \
    "}\n"

/* Requires blocks of 8 x 4 x 2 threads; allows blocks of at most 64 threads. */
#define PTX_REQUIRED ".visible .entry required()\n.reqntid 8, 4, 2\n{\n    ret;\n}\n"
#define PTX_BOUNDED ".visible .entry bounded()\n.maxntid 64\n{\n    ret;\n}\n"

/* Also requires a block of 8 x 4 x 2; counts threads. */
#define PTX_COUNTED                                                                       \
    ".visible .entry counted(.param .u64 out)\n"                                          \
    ".reqntid 8, 4, 2\n"                                                                  \
    "{\n"                                                                                 \
    "    .reg .b32 %r1;\n"                                                                \
    "    .reg .b64 %d1;\n"                                                                \
    "    ld.param.u64 %d1, [out];\n"                                                      \
    "    atom.global.add.u32 %r1, [%d1], 1;\n"                                            \
    "    ret;\n"                                                                          \
    "}\n"

/* Writes dimensions and indices of the last thread of the last block, 12 numbers, to out. */
#define PTX_WHERE                                                                         \
    ".visible .entry where(.param .u64 out)\n"                                            \
    "{\n"                                                                                 \
    "    .reg .pred %p<8>;\n"                                                             \
    "    .reg .b32 %r<20>;\n"                                                             \
    "    .reg .b64 %d<2>;\n"                                                              \
    "    ld.param.u64 %d1, [out];\n"                                                      \
    "    mov.u32 %r1, %nctaid.x;\n    mov.u32 %r2, %nctaid.y;\n    mov.u32 %r3, %nctaid.z;\n" \
    "    mov.u32 %r4, %ntid.x;\n    mov.u32 %r5, %ntid.y;\n    mov.u32 %r6, %ntid.z;\n"   \
    "    mov.u32 %r7, %ctaid.x;\n    mov.u32 %r8, %ctaid.y;\n    mov.u32 %r9, %ctaid.z;\n" \
    "    mov.u32 %r10, %tid.x;\n    mov.u32 %r11, %tid.y;\n    mov.u32 %r12, %tid.z;\n"   \
    "    add.u32 %r13, %r7, 1;\n    setp.ne.u32 %p1, %r13, %r1;\n    @%p1 bra done;\n"    \
    "    add.u32 %r13, %r8, 1;\n    setp.ne.u32 %p2, %r13, %r2;\n    @%p2 bra done;\n"    \
    "    add.u32 %r13, %r9, 1;\n    setp.ne.u32 %p3, %r13, %r3;\n    @%p3 bra done;\n"    \
    "    add.u32 %r13, %r10, 1;\n    setp.ne.u32 %p4, %r13, %r4;\n    @%p4 bra done;\n"   \
    "    add.u32 %r13, %r11, 1;\n    setp.ne.u32 %p5, %r13, %r5;\n    @%p5 bra done;\n"   \
    "    add.u32 %r13, %r12, 1;\n    setp.ne.u32 %p6, %r13, %r6;\n    @%p6 bra done;\n"   \
    "    st.global.u32 [%d1], %r1;\n    st.global.u32 [%d1+4], %r2;\n    st.global.u32 [%d1+8], %r3;\n" \
    "    st.global.u32 [%d1+12], %r4;\n    st.global.u32 [%d1+16], %r5;\n    st.global.u32 [%d1+20], %r6;\n" \
    "    st.global.u32 [%d1+24], %r7;\n    st.global.u32 [%d1+28], %r8;\n    st.global.u32 [%d1+32], %r9;\n" \
    "    st.global.u32 [%d1+36], %r10;\n    st.global.u32 [%d1+40], %r11;\n    st.global.u32 [%d1+44], %r12;\n" \
    "done:\n"                                                                             \
    "    ret;\n"                                                                          \
    "}\n"

/* Parameters of every size and alignment, copied to out one after the other: 1 + 2 + 4 + 8 + 12 bytes. */
#define PTX_PARAMS                                                                        \
    ".visible .entry params(.param .u8 b, .param .u64 out, .param .u16 h, .param .u32 w, .param .u64 q,\n" \
    "                       .param .align 4 .b8 three[12])\n"                             \
    "{\n"                                                                                 \
    "    .reg .b16 %h<3>;\n"                                                              \
    "    .reg .b32 %r<5>;\n"                                                              \
    "    .reg .b64 %d<3>;\n"                                                              \
    "    ld.param.u64 %d1, [out];\n"                                                      \
    "    ld.param.u8 %h1, [b];\n"                                                         \
    "    ld.param.u16 %h2, [h];\n"                                                        \
    "    ld.param.u32 %r1, [w];\n"                                                        \
    "    ld.param.u64 %d2, [q];\n"                                                        \
    "    ld.param.u32 %r2, [three];\n"                                                    \
    "    ld.param.u32 %r3, [three+4];\n"                                                  \
    "    ld.param.u32 %r4, [three+8];\n"                                                  \
    "    st.global.u8 [%d1], %h1;\n"                                                      \
    "    st.global.u16 [%d1+2], %h2;\n"                                                   \
    "    st.global.u32 [%d1+4], %r1;\n"                                                   \
    "    st.global.u64 [%d1+8], %d2;\n"                                                   \
    "    st.global.u32 [%d1+16], %r2;\n"                                                  \
    "    st.global.u32 [%d1+20], %r3;\n"                                                  \
    "    st.global.u32 [%d1+24], %r4;\n"                                                  \
    "    ret;\n"                                                                          \
    "}\n"

/* 4,000 bytes of parameters: more than push constants can hold. Copies word `index` of them to out. */
#define PTX_MANY                                                                          \
    ".visible .entry many(.param .u64 out, .param .u32 index, .param .align 4 .b8 words[3984])\n" \
    "{\n"                                                                                 \
    "    .reg .b32 %r<3>;\n"                                                              \
    "    .reg .b64 %d<5>;\n"                                                              \
    "    ld.param.u64 %d1, [out];\n"                                                      \
    "    ld.param.u32 %r1, [index];\n"                                                    \
    "    mul.wide.u32 %d2, %r1, 4;\n"                                                     \
    "    mov.b64 %d3, words;\n"                                                           \
    "    add.u64 %d4, %d3, %d2;\n"                                                        \
    "    ld.param.u32 %r2, [%d4];\n"                                                      \
    "    st.global.u32 [%d1], %r2;\n"                                                     \
    "    ret;\n"                                                                          \
    "}\n"

#endif
