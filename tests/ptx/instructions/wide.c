/* SPDX-License-Identifier: Apache-2.0 */
/* Registers that hold several values: 128 bits (PTX ISA 8.3) and whole vectors (6.4.3). */
#include "rows.h"

#define WIDE(text) "{ .reg .b128 %w<3>; " text " }"
#define VECTOR(text) "{ .reg .v2 .b32 %v<3>; .reg .v4 .b32 %u; " text " }"
#define SLOT "mov.u32 %y, %tid.x; shl.b32 %y, %y, 4; mov.u32 %t0, slots; add.u32 %y, %y, %t0; "

/* Both halves of a register affect the result. */
#define HALVES(wide) "mov.b128 {%z, %d}, " wide "; shl.b64 %z, %z, 1; xor.b64 %d, %d, %z;"
#define MIXED(low, high) ((uint64_t)(low) << 1 ^ (uint64_t)(high))

#define MOVES(R)                                                                                                                           \
    R(mov_b128, WIDE("mov.b128 %w0, {%a, %b}; mov.b128 %w1, %w0; mov.b128 %w0, {%c, %c}; " HALVES("%w1")), B64, B64, B64, B64, NONE,       \
      MIXED(a, b))                                                                                                                         \
    R(mov_b128_high, WIDE("mov.b128 %w0, {%a, %b}; mov.b128 {_, %d}, %w0;"), B64, B64, B64, NONE, NONE, b)                                 \
    R(mov_b128_turned, WIDE("mov.b128 %w0, {%a, %b}; mov.b128 {%z, %q1}, %w0; mov.b128 %w0, {%q1, %z}; " HALVES("%w0")), B64, B64, B64,    \
      NONE, NONE, MIXED(b, a))                                                                                                             \
    R(mov_b128_of_four, WIDE("mov.b128 %w0, {%a, %b, %c, %e}; " HALVES("%w0")), B64, B32, B32, B32, B32,                                   \
      MIXED((uint64_t)b << 32 | a, (uint64_t)e << 32 | c))                                                                                 \
    R(mov_b128_into_four,                                                                                                                  \
      WIDE("mov.b128 %w0, {%a, %b}; mov.b128 {%t0, %y, _, %d}, %w0; xor.b32 %d, %d, %t0; shl.b32 %y, %y, 1; "                              \
           "xor.b32 %d, %d, %y;"),                                                                                                         \
      B32, B64, B64, NONE, NONE, b >> 32 ^ a ^ a >> 32 << 1)                                                                               \
    R(mov_b128_constant, WIDE("mov.b128 %w0, 5; " HALVES("%w0") " add.u64 %d, %d, %a;"), U64, U64, NONE, NONE, NONE, a + 10)               \
    R(mov_b128_guarded, WIDE("mov.b128 %w0, {%a, %b}; @%c mov.b128 %w0, {%b, %a}; " HALVES("%w0")), B64, B64, B64, PRED, NONE,             \
      c ? MIXED(b, a) : MIXED(a, b))                                                                                                       \
    R(mov_b128_in_a_loop,                                                                                                                  \
      WIDE("mov.b128 %w0, {%a, %b}; and.b32 %y, %c, 15; AGAIN: mov.b128 {%z, %q1}, %w0; add.u64 %z, %z, %q1; "                             \
           "mov.b128 %w0, {%q1, %z}; setp.ne.u32 %x, %y, 0; sub.u32 %y, %y, 1; @%x bra AGAIN; " HALVES("%w0")),                            \
      U64, U64, U64, U32, NONE, summed_up(a, b, c & 15))                                                                                   \
    R(mov_v2,                                                                                                                              \
      VECTOR("mov.v2.b32 %v0, {%a, %b}; mov.v2.b32 %v1, %v0; mov.v2.b32 %v0, {%v0.y, %v0.x}; mov.b32 %y, %v1.x; "                          \
             "mov.v2.b32 {%t0, %t1}, %v0; shl.b32 %y, %y, 2; shl.b32 %t0, %t0, 1; xor.b32 %d, %y, %t0; xor.b32 %d, %d, %t1;"),             \
      B32, B32, B32, NONE, NONE, a << 2 ^ b << 1 ^ a)                                                                                      \
    R(mov_v4_tid, VECTOR("mov.v4.u32 %u, %tid; mov.u32 %y, %tid.x; sub.u32 %d, %u.x, %y; add.u32 %d, %d, %u.w; add.u32 %d, %d, %a;"), U32, \
      U32, NONE, NONE, NONE, a)

#define ACCESSES(R)                                                                                                                        \
    R(ld_b128, WIDE("ld.global.b128 %w0, [%q0]; " HALVES("%w0")), B64, B64, B64, NONE, NONE, MIXED(a, b))                                  \
    R(ld_b128_generic, WIDE("ld.b128 %w0, [%q0+16]; " HALVES("%w0")), B64, B64, B64, B64, B64, MIXED(c, e))                                \
    R(ld_b128_guarded, WIDE("mov.b128 %w0, {%a, %b}; setp.lt.u64 %x, %a, %b; @%x ld.global.nc.b128 %w0, [%q0+16]; " HALVES("%w0")), B64,   \
      B64, B64, B64, B64, a < b ? MIXED(c, e) : MIXED(a, b))                                                                               \
    R(st_b128,                                                                                                                             \
      WIDE("mov.b128 %w0, {%b, %a}; st.global.b128 [%q0+16], %w0; ld.global.v2.u64 {%z, %d}, [%q0+16]; shl.b64 %z, %z, 1; "                \
           "xor.b64 %d, %d, %z;"),                                                                                                         \
      B64, B64, B64, NONE, NONE, MIXED(b, a))                                                                                              \
    R(st_u32_of_b128, WIDE("mov.b128 %w0, {%b, %a}; st.global.u32 [%q0+4], %w0; ld.global.u64 %d, [%q0];"), B64, B64, B64, NONE, NONE,     \
      b << 32 | (uint32_t)a)                                                                                                               \
    R(ld_u32_into_b128, WIDE("mov.b128 %w0, {%a, %b}; ld.global.u32 %w0, [%q0]; " HALVES("%w0")), B64, B64, B64, NONE, NONE,               \
      MIXED((uint32_t)a, 0))                                                                                                               \
    R(shared_b128, WIDE(SLOT "mov.b128 %w0, {%a, %b}; st.shared.b128 [%y], %w0; ld.shared.b128 %w1, [%y]; " HALVES("%w1")), B64, B64, B64, \
      NONE, NONE, MIXED(a, b))                                                                                                             \
    R(local_b128,                                                                                                                          \
      WIDE(".local .align 16 .b8 frame[32]; mov.b128 %w0, {%a, %b}; st.local.b128 [frame+16], %w0; mov.u64 %q1, frame; "                   \
           "ld.local.b128 %w1, [%q1+16]; " HALVES("%w1")),                                                                                 \
      B64, B64, B64, NONE, NONE, MIXED(a, b))

/* %c is the loop count: the pair advances like the Fibonacci numbers, one iteration more than %c. */
static uint64_t summed_up(uint64_t low, uint64_t high, uint32_t rounds)
{
    for (uint32_t i = 0; i <= rounds; i++) {
        const uint64_t sum = low + high;

        low = high;
        high = sum;
    }
    return MIXED(low, high);
}

#define ROWS(R) MOVES(R) ACCESSES(R)

ROWS(REFERENCE)
static const struct row rows[] = {ROWS(ENTRY)};
const struct table table_wide = {"wide", rows, sizeof rows / sizeof *rows, ".version 8.3\n.target sm_70\n.address_size 64\n"};
