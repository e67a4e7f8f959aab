/* SPDX-License-Identifier: Apache-2.0 */
/* The variables and functions that every module of the tests contains, for the rows of memory.c. */
#ifndef INSTRUCTIONS_PRELUDE_H
#define INSTRUCTIONS_PRELUDE_H

static const char prelude_header[] = ".version 8.0\n.target sm_90\n.address_size 64\n";

static const char prelude[] = ".const .align 4 .b8 table[16] = {3, 10, 17, 24, 31, 38, 45, 52, 59, 66, 73, 80, 87, 94, 101, 108};\n"
                              ".global .align 4 .b8 bytes[16] = {3, 10, 17, 24, 31, 38, 45, 52, 59, 66, 73, 80, 87, 94, 101, 108};\n"
                              ".global .align 8 .u64 pointer = generic(bytes)+5;\n"
                              ".shared .align 16 .b8 slots[1024];\n"
                              ".shared .align 128 .b8 stages[4096];\n"
                              ".func (.param .b32 r) difference(.param .b32 x, .param .b32 y)\n"
                              "{\n  .reg .b32 %v<3>;\n  ld.param.u32 %v0, [x];\n  ld.param.u32 %v1, [y];\n  sub.u32 %v2, %v0, %v1;\n"
                              "  st.param.b32 [r+0], %v2;\n  ret;\n}\n"
                              ".func (.reg .b32 %r) sum_of(.reg .b32 %x, .reg .b32 %y)\n{\n  add.u32 %r, %x, %y;\n  ret;\n}\n"
                              ".func (.param .b64 r) second_of(.param .align 8 .b8 pair[16])\n"
                              "{\n  .reg .b64 %v;\n  ld.param.u64 %v, [pair+8];\n  st.param.b64 [r+0], %v;\n  ret;\n}\n";

#endif
