/* SPDX-License-Identifier: Apache-2.0 */
/* Forms that no manual mentions but ptxas accepts: one register in braces, register + constant as a source, addresses as operands, special
 * registers in cvt, whole vector registers in mov, truth tables with more than 8 bits, and WARP_SZ as a predicate. Their meaning was read
 * from the machine code that ptxas generates for them. */
#include "rows.h"

#define VECTOR(text) "{ .reg .v2 .b32 %v; .reg .v4 .b16 %u; " text " }"

#define ROWS(R)                                                                                                                            \
    R(ld_one_in_braces, "ld.global.b32 { %d }, [%q0];", B32, B32, NONE, NONE, NONE, a)                                                     \
    R(st_one_in_braces, "st.global.b32 [%q0], { %b }; ld.global.b32 %d, [%q0];", B32, B32, B32, NONE, NONE, b)                             \
    R(ld_unified, "st.global.b32 [%q0], %b; ld.global.b32 %d, [%q0].unified;", B32, B32, B32, NONE, NONE, b)                               \
    R(ld_weak_cv, "st.global.b32 [%q0], %b; ld.weak.global.cv.b32 %d, [%q0];", B32, B32, B32, NONE, NONE, b)                               \
    R(st_register_plus, "st.global.u32 [%q0], %b+3; ld.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, b + 3)                           \
    R(st_register_plus_minus, "st.global.u64 [%q0], %b + -3; ld.global.u64 %d, [%q0];", U64, U64, U64, NONE, NONE, b - 3)                  \
    R(st_short_plus, "st.global.u16 [%q0], %b+5; ld.global.u16 %d, [%q0];", U16, U16, U16, NONE, NONE, b + 5)                              \
    R(st_byte_of_word_plus, "st.global.u8 [%q0], %b+0x123; ld.global.u8 %d, [%q0];", U32, U32, U32, NONE, NONE, (uint8_t)(b + 0x23))       \
    R(add_register_plus, "add.u32 %d, %a+1, %b+2;", U32, U32, U32, NONE, NONE, a + b + 3)                                                  \
    R(mul_register_plus, "mul.lo.u32 %d, %a+1, 3;", U32, U32, NONE, NONE, NONE, (a + 1) * 3)                                               \
    R(mov_register_plus, "mov.u64 %d, %a+8;", U64, U64, NONE, NONE, NONE, a + 8)                                                           \
    R(cvt_register_plus, "cvt.u64.u32 %d, %a+1;", U64, U32, NONE, NONE, NONE, (uint32_t)(a + 1))                                           \
    R(shift_register_plus, "shl.b32 %d, %a+1, 3;", U32, U32, NONE, NONE, NONE, (a + 1) << 3)                                               \
    R(compare_register_plus, "setp.lt.s32 %d, %a+1, %b;", PRED, S32, S32, NONE, NONE, (int32_t)((uint32_t)a + 1) < b)                      \
    R(add_address, "mov.u64 %z, bytes; neg.s64 %z, %z; add.u64 %z, %z, bytes+4; add.u64 %d, %z, %a;", U64, U64, NONE, NONE, NONE, a + 4)   \
    R(ntid_in_cvt, "cvt.u64.u16 %d, %ntid.x; add.u64 %d, %d, %a;", U64, U64, NONE, NONE, NONE, a + 64)                                     \
    R(tid_in_cvt, "cvt.s32.u16 %y, %tid.x; mov.u32 %y2, %tid.x; sub.u32 %y, %y, %y2; add.u32 %d, %y, %a;", U32, U32, NONE, NONE, NONE, a)  \
    R(ntid_of_16_bits, "mov.u16 %h, %ntid.x; add.u16 %d, %h, %a;", U16, U16, NONE, NONE, NONE, a + 64)                                     \
    R(warp_size_in_add, "add.u32 %d, %a, WARP_SZ;", U32, U32, NONE, NONE, NONE, a + 32)                                                    \
    R(warp_size_selects, "selp.u32 %d, %a, %b, WARP_SZ;", U32, U32, U32, NONE, NONE, a)                                                    \
    R(lop3_wide_table, "lop3.b32 %d, %a, %b, %c, 0x123456e8;", B32, B32, B32, B32, NONE, (a & b) | (a & c) | (b & c))                      \
    R(lop3_negative_table, "lop3.b32 %d, %a, %b, %c, -2;", B32, B32, B32, B32, NONE, a | b | c)                                            \
    R(vector_from_64, VECTOR("mov.b64 %v, %a; shl.b32 %y, %v.y, 1; xor.b32 %d, %v.x, %y;"), B32, B64, NONE, NONE, NONE,                    \
      (uint32_t)(a ^ a >> 32 << 1))                                                                                                        \
    R(vector_to_64, VECTOR("mov.b32 %v.x, %a; mov.b32 %v.y, %b; mov.b64 %d, %v;"), B64, B32, B32, NONE, NONE, (uint64_t)b << 32 | a)       \
    R(vector_of_four, VECTOR("mov.b64 %u, %a; mov.b16 %u.y, %u.w; mov.b64 %d, %u;"), B64, B64, NONE, NONE, NONE,                           \
      (a & ~UINT64_C(0xffff0000)) | a >> 48 << 16)

DEFINE_TABLE(tolerated, ROWS)
