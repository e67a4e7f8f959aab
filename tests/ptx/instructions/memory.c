/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores, atomics, addresses and calls. Each thread has 32 bytes of global memory at %q0 (operands a, b, c, e, 8 bytes each); the
 * variables and functions are in prelude.h. */
#include "rows.h"

static float add_plain(float a, float b)
{
    return add_f32(NEAREST, a, b);
}

static uint32_t counted_up(uint32_t old, uint32_t limit)
{
    return old >= limit ? 0 : old + 1;
}

static uint32_t counted_down(uint32_t old, uint32_t limit)
{
    return old == 0 || old > limit ? limit : old - 1;
}

static uint32_t byte_table(uint32_t i)
{
    return (i * 7 + 3) & 255;
}

static uint32_t way(unsigned i)
{
    static const uint32_t sums[] = {11, 10, 1100, 1000};

    return sums[i];
}

/* The address of this thread's 16 bytes of shared memory in %y (32 bits) and %z (64 bits). */
#define SHARED_SLOT "mov.u32 %y, %tid.x; shl.b32 %y, %y, 4; mov.u32 %t0, slots; add.u32 %y, %y, %t0; cvt.u64.u32 %z, %y; "
#define GENERIC_SHARED SHARED_SLOT "cvta.shared.u64 %z, %z; "
#define LOCAL "{ .local .align 16 .b8 frame[32]; .reg .b64 %l; mov.u64 %l, frame; "

#define ACCESSES(R)                                                                                                                        \
    R(ld_u8, "ld.global.u8 %d, [%q0];", U32, U32, NONE, NONE, NONE, (uint8_t)a)                                                            \
    R(ld_s8, "ld.global.s8 %d, [%q0+1];", S32, U32, NONE, NONE, NONE, (int8_t)(a >> 8))                                                    \
    R(ld_s16, "ld.global.s16 %d, [%q0+2];", S64, U32, NONE, NONE, NONE, (int16_t)(a >> 16))                                                \
    R(ld_v2, "ld.global.v2.u32 {%y, %d}, [%q0];", U32, U64, NONE, NONE, NONE, a >> 32)                                                     \
    R(ld_v4, "ld.global.v4.u32 {%y, %t0, %t1, %d}, [%q0];", U32, U64, U64, NONE, NONE, b >> 32)                                            \
    R(ld_v4_u8, "ld.global.v4.u8 {%h, %h2, %d, %h}, [%q0];", U16, U32, NONE, NONE, NONE, a >> 16 & 255)                                    \
    R(ld_own_base, "ld.global.v2.u64 {%q0, %z}, [%q0]; xor.b64 %d, %q0, %z;", U64, U64, U64, NONE, NONE, a ^ b)                            \
    R(ld_generic, "ld.u64 %d, [%q0+8];", U64, U64, U64, NONE, NONE, b)                                                                     \
    R(ld_volatile, "ld.volatile.global.u32 %d, [%q0];", U32, U32, NONE, NONE, NONE, a)                                                     \
    R(ld_acquire, "ld.acquire.gpu.global.u32 %d, [%q0];", U32, U32, NONE, NONE, NONE, a)                                                   \
    R(ld_negative_offset, "add.u64 %z, %q0, 24; ld.global.u32 %d, [%z+-16];", U32, U32, U32, NONE, NONE, b)                                \
    R(st_u8, "st.global.u8 [%q0+1], %b; ld.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, (a & ~0xff00u) | (b & 255) << 8)             \
    R(st_u16, "st.global.u16 [%q0+2], %b; ld.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, (a & 0xffff) | b << 16)                    \
    R(st_v2, "st.global.v2.u32 [%q0], {%b, %a}; ld.global.u64 %d, [%q0];", U64, U32, U32, NONE, NONE, (uint64_t)a << 32 | b)               \
    R(st_release, "st.release.gpu.global.u32 [%q0], %b; ld.relaxed.gpu.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, b)               \
    R(shared_u32, SHARED_SLOT "st.shared.u32 [%y+4], %a; bar.sync 0; ld.shared.u32 %d, [%y+4];", U32, U32, NONE, NONE, NONE, a)            \
    R(shared_u8, SHARED_SLOT "st.shared.u32 [%y], %a; st.shared.u8 [%y+2], %b; ld.shared.u32 %d, [%y];", U32, U32, U32, NONE, NONE,        \
      (a & ~0xff0000u) | (b & 255) << 16)                                                                                                  \
    R(shared_v2_u64, SHARED_SLOT "st.shared.v2.u64 [%y], {%a, %b}; ld.shared.u64 %d, [%y+8];", U64, U64, U64, NONE, NONE, b)               \
    R(shared_generic, GENERIC_SHARED "st.u64 [%z], %a; ld.shared.u64 %d, [%y];", U64, U64, NONE, NONE, NONE, a)                            \
    R(shared_to_shared, GENERIC_SHARED "st.u32 [%z+12], %a; cvta.to.shared.u64 %z, %z; ld.shared.u32 %d, [%z+12];", U32, U32, NONE, NONE,  \
      NONE, a)                                                                                                                             \
    R(chosen_space, GENERIC_SHARED "st.u32 [%z], %b; selp.u64 %z, %z, %q0, %c; ld.u32 %d, [%z];", U32, U32, U32, PRED, NONE, c ? b : a)    \
    R(shared_halves,                                                                                                                       \
      GENERIC_SHARED "st.shared.u32 [%y+4], %a; mov.b64 {%t0, %t1}, %z; add.u32 %t0, %t0, 4; mov.b64 %z, {%t0, %t1}; ld.u32 %d, [%z];",    \
      U32, U32, NONE, NONE, NONE, a)                                                                                                       \
    R(isspacep_shared, GENERIC_SHARED "selp.u64 %z, %z, %q0, %a; isspacep.shared %d, %z;", PRED, PRED, NONE, NONE, NONE, a)                \
    R(isspacep_global, GENERIC_SHARED "selp.u64 %z, %z, %q0, %a; isspacep.global %d, %z;", PRED, PRED, NONE, NONE, NONE, !a)               \
    R(local_u32, LOCAL "st.local.u32 [frame+4], %a; st.local.u32 [frame+8], %b; ld.local.u32 %d, [%l+4]; }", U32, U32, U32, NONE, NONE, a) \
    R(local_indexed,                                                                                                                       \
      LOCAL "st.local.v2.u32 [frame], {%a, %b}; and.b32 %y, %c, 4; cvt.u64.u32 %z, %y; add.u64 %z, %z, %l; "                               \
            "ld.local.u32 %d, [%z]; }",                                                                                                    \
      U32, U32, U32, U32, NONE, c & 4 ? b : a)                                                                                             \
    R(local_generic, LOCAL "cvta.local.u64 %l, %l; st.u64 [%l+16], %a; ld.local.u64 %d, [frame+16]; }", U64, U64, NONE, NONE, NONE, a)     \
    R(local_bytes, LOCAL "st.local.u32 [frame], %a; st.local.u8 [frame+3], %b; ld.local.s16 %d, [frame+2]; }", S32, U32, U32, NONE, NONE,  \
      (int16_t)((a >> 16 & 255) | (b & 255) << 8))                                                                                         \
    R(const_table, "and.b32 %y, %a, 15; cvt.u64.u32 %z, %y; mov.u64 %q1, table; add.u64 %z, %z, %q1; ld.const.u8 %d, [%z];", U32, U32,     \
      NONE, NONE, NONE, byte_table(a & 15))                                                                                                \
    R(global_pointer, "ld.global.u64 %z, [pointer]; ld.u8 %d, [%z+1];", U32, NONE, NONE, NONE, NONE, byte_table(6))

/* Asynchronous copies: the bytes beyond src-size are zeros, and nothing is read if ignore-src is true. */
#define COPIES(R)                                                                                                                          \
    R(cp_async_4,                                                                                                                          \
      SHARED_SLOT "cp.async.ca.shared.global [%y+4], [%q0], 4; cp.async.commit_group; cp.async.wait_group 0; "                             \
                  "ld.shared.u32 %d, [%y+4];",                                                                                             \
      U32, U32, NONE, NONE, NONE, a)                                                                                                       \
    R(cp_async_8, SHARED_SLOT "cp.async.ca.shared::cta.global.L2::128B [%y+8], [%q0+8], 8; cp.async.wait_all; ld.shared.u64 %d, [%y+8];",  \
      U64, U64, U64, NONE, NONE, b)                                                                                                        \
    R(cp_async_16,                                                                                                                         \
      SHARED_SLOT "cp.async.cg.shared.global [%y], [%q0], 16; cp.async.commit_group; cp.async.wait_group 0; "                              \
                  "ld.shared.v2.u64 {%z, %d}, [%y]; shl.b64 %z, %z, 1; xor.b64 %d, %d, %z;",                                               \
      U64, U64, U64, NONE, NONE, a << 1 ^ b)                                                                                               \
    R(cp_async_part,                                                                                                                       \
      SHARED_SLOT "st.shared.u64 [%y], %b; rem.u32 %t0, %c, 9; cp.async.ca.shared.global [%y], [%q0], 8, %t0; "                            \
                  "cp.async.wait_all; ld.shared.u64 %d, [%y];",                                                                            \
      U64, U64, U64, U32, NONE, c % 9 ? a & UINT64_MAX >> (64 - 8 * (c % 9)) : 0)                                                          \
    R(cp_async_ignored, SHARED_SLOT "cp.async.ca.shared.global [%y], [%q0], 4, %c; cp.async.wait_all; ld.shared.u32 %d, [%y];", U32, U32,  \
      NONE, PRED, NONE, c ? 0 : a)                                                                                                         \
    R(cp_async_guarded,                                                                                                                    \
      SHARED_SLOT "st.shared.u32 [%y], %b; setp.ne.u32 %x, %b, 0; @%x cp.async.ca.shared.global [%y], [%q0], 4; "                          \
                  "cp.async.wait_all; ld.shared.u32 %d, [%y];",                                                                            \
      U32, U32, U32, NONE, NONE, b ? a : 0)                                                                                                \
    R(cache_policy,                                                                                                                        \
      SHARED_SLOT "createpolicy.fractional.L2::evict_last.b64 %z, 1.0; "                                                                   \
                  "cp.async.ca.shared.global.L2::cache_hint [%y], [%q0], 4, %z; cp.async.wait_all; ld.shared.u32 %d, [%y]; "               \
                  "ld.global.L2::cache_hint.u32 %y, [%q0+8], %z; xor.b32 %d, %d, %y;",                                                     \
      U32, U32, U32, NONE, NONE, a ^ b)

#define ATOMICS(R)                                                                                                                         \
    R(atom_add, "atom.global.add.u32 %y, [%q0], %b; ld.global.u32 %d, [%q0]; add.u32 %d, %d, %y;", U32, U32, U32, NONE, NONE, a + a + b)   \
    R(atom_add_u64, "atom.global.add.u64 %z, [%q0], %b; ld.global.u64 %d, [%q0]; add.u64 %d, %d, %z;", U64, U64, U64, NONE, NONE,          \
      a + a + b)                                                                                                                           \
    R(atom_min_s32, "red.global.min.s32 [%q0], %b; ld.global.s32 %d, [%q0];", S32, S32, S32, NONE, NONE, a < b ? a : b)                    \
    R(atom_max_u32, "red.global.max.u32 [%q0], %b; ld.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, a > b ? a : b)                    \
    R(atom_max_s64, "atom.global.max.s64 %z, [%q0], %b; ld.global.s64 %d, [%q0];", S64, S64, S64, NONE, NONE, a > b ? a : b)               \
    R(atom_and, "atom.global.and.b32 %y, [%q0], %b; ld.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, a &b)                            \
    R(atom_or_u64, "atom.global.or.b64 %z, [%q0], %b; ld.global.u64 %d, [%q0];", U64, U64, U64, NONE, NONE, a | b)                         \
    R(atom_exch, "atom.global.exch.b32 %d, [%q0], %b;", U32, U32, U32, NONE, NONE, a)                                                      \
    R(atom_cas, "atom.global.cas.b32 %y, [%q0], %b, %c; ld.global.u32 %d, [%q0];", U32, U32, U32, U32, NONE, a == b ? c : a)               \
    R(atom_cas_hit, "atom.global.cas.b64 %z, [%q0], %a, %b; ld.global.u64 %d, [%q0];", U64, U64, U64, NONE, NONE, b)                       \
    R(atom_cas_b16, "atom.global.cas.b16 %h, [%q0], %a, %b; ld.global.u16 %d, [%q0];", U16, U16, U16, NONE, NONE, b)                       \
    R(atom_inc, "atom.global.inc.u32 %y, [%q0], %b; ld.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, counted_up(a, b))                \
    R(atom_dec, "atom.global.dec.u32 %y, [%q0], %b; ld.global.u32 %d, [%q0];", U32, U32, U32, NONE, NONE, counted_down(a, b))              \
    R(atom_add_f32,                                                                                                                        \
      "mov.b32 %y, 0f3FC00000; st.global.u32 [%q0], %y; atom.global.add.f32 %d, [%q0], 0f40200000; "                                       \
      "ld.global.f32 %d, [%q0];",                                                                                                          \
      F32, NONE, NONE, NONE, NONE, add_plain(1.5f, 2.5f))                                                                                  \
    R(atom_add_f64, "atom.global.add.f64 %z, [%q0], %b; ld.global.f64 %d, [%q0];", F64, F64, F64, NONE, NONE, add_f64(NEAREST, a, b))      \
    R(atom_shared, SHARED_SLOT "st.shared.u32 [%y], %a; atom.shared.add.u32 %t0, [%y], %b; ld.shared.u32 %d, [%y];", U32, U32, U32, NONE,  \
      NONE, a + b)                                                                                                                         \
    R(atom_shared_f32, SHARED_SLOT "st.shared.u32 [%y], 0; red.shared.add.f32 [%y], 0f40200000; ld.shared.f32 %d, [%y];", F32, NONE, NONE, \
      NONE, NONE, 2.5f)                                                                                                                    \
    R(atom_generic, GENERIC_SHARED "st.u32 [%z], %a; atom.add.u32 %t0, [%z], %b; ld.shared.u32 %d, [%y];", U32, U32, U32, NONE, NONE,      \
      a + b)                                                                                                                               \
    R(atom_guarded, "@%c atom.global.add.u32 %y, [%q0], %b; ld.global.u32 %d, [%q0];", U32, U32, U32, PRED, NONE, c ? a + b : a)

#define CALLS(R)                                                                                                                           \
    R(call_by_param,                                                                                                                       \
      "{ .param .b32 p0; .param .b32 p1; .param .b32 r; st.param.b32 [p0+0], %a; st.param.b32 [p1+0], %b; "                                \
      "call.uni (r), difference, (p0, p1); ld.param.b32 %d, [r+0]; }",                                                                     \
      U32, U32, U32, NONE, NONE, a - b)                                                                                                    \
    R(call_by_register, "call (%d), sum_of, (%a, %b);", U32, U32, U32, NONE, NONE, a + b)                                                  \
    R(call_struct,                                                                                                                         \
      "{ .param .align 8 .b8 p[16]; .param .b64 r; st.param.b64 [p+0], %a; st.param.b64 [p+8], %b; call (r), second_of, (p); "             \
      "ld.param.b64 %d, [r+0]; }",                                                                                                         \
      U64, U64, U64, NONE, NONE, b)                                                                                                        \
    R(call_guarded, "mov.u32 %d, %a; @%c call (%d), sum_of, (%a, %b);", U32, U32, U32, PRED, NONE, c ? a + b : a)                          \
    R(brx,                                                                                                                                 \
      "and.b32 %y, %a, 3; mov.u32 %d, 0; WAYS: .branchtargets W0, W1, W2, W3; brx.idx %y, WAYS; W0: add.u32 %d, %d, 1; W1: "               \
      "add.u32 %d, %d, 10; bra.uni OUT; W2: add.u32 %d, %d, 100; W3: add.u32 %d, %d, 1000; OUT:",                                          \
      U32, U32, NONE, NONE, NONE, way(a & 3))                                                                                              \
    R(early_exit, "st.global.u32 [%q2], %a; @%c exit; mov.u32 %d, %b;", U32, U32, U32, PRED, NONE, c ? a : b)

#define ROWS(R) ACCESSES(R) COPIES(R) ATOMICS(R) CALLS(R)

DEFINE_TABLE(memory, ROWS)
