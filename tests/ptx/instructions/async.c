/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous barriers, bulk copies and clusters of one block. Each thread has 64 bytes of shared memory for itself at %y (stages, in
 * prelude.h): 32 for data, 16 for other data, and a barrier at offset 48. Its operands a, b, c, e are in global memory at %q0, 8 bytes
 * each. tests/programs/barriers_test.c has threads that wait for each other. */
#include "rows.h"

#define STAGE "{ .reg .b32 %u<4>; .reg .pred %v; mov.u32 %y, %tid.x; shl.b32 %y, %y, 6; mov.u32 %u0, stages; add.u32 %y, %y, %u0; "
#define STAGE_GENERIC STAGE "cvt.u64.u32 %z, %y; cvta.shared.u64 %z, %z; "
#define INIT(count) "mbarrier.init.shared::cta.b64 [%y+48], " count "; "
#define TEST_PARITY(parity) "mbarrier.test_wait.parity.shared.b64 %v, [%y+48], " parity "; "
/* Shifts %d left and adds the outcome of a test. */
#define NOTE "selp.u32 %u3, 1, 0, %v; shl.b32 %d, %d, 1; or.b32 %d, %d, %u3; "
#define START "mov.u32 %d, 1; "
#define COUNT "and.b32 %u1, %a, 0x7ffff; add.u32 %u1, %u1, 1; add.u32 %u2, %u1, 1; " /* %u1: 1 to 2^19, %u2: one more */
#define count_of(a) (((a) & 0x7ffff) + 1)

#define BARRIERS(R)                                                                                                                        \
    R(mbarrier_parity,                                                                                                                     \
      STAGE INIT("1") START TEST_PARITY("0") NOTE TEST_PARITY("1") NOTE "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("0")         \
          NOTE TEST_PARITY("1") NOTE "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("0") NOTE TEST_PARITY("1") NOTE "}",            \
      U32, NONE, NONE, NONE, NONE, 0x40 | 0x10 | 0x8 | 0x1)                                                                                \
    R(mbarrier_state,                                                                                                                      \
      STAGE INIT("2") START "mbarrier.arrive.shared.b64 %z, [%y+48]; mbarrier.test_wait.shared.b64 %v, [%y+48], %z; " NOTE                 \
                            "mbarrier.arrive.shared::cta.b64 _, [%y+48]; mbarrier.test_wait.shared.b64 %v, [%y+48], %z; " NOTE             \
                            "mbarrier.arrive.shared.b64 %z, [%y+48]; mbarrier.test_wait.acquire.cta.shared.b64 %v, [%y+48], %z; " NOTE     \
                            "mbarrier.arrive.shared.b64 _, [%y+48]; mbarrier.try_wait.shared.b64 %v, [%y+48], %z, 100; " NOTE "}",         \
      U32, NONE, NONE, NONE, NONE, 0x10 | 0x4 | 0x1)                                                                                       \
    R(mbarrier_counts,                                                                                                                     \
      STAGE COUNT INIT("%u2") START "mbarrier.arrive.release.cta.shared.b64 %z, [%y+48], %u1; " TEST_PARITY("0") NOTE                      \
      "mbarrier.arrive.relaxed.cta.shared.b64 _, [%y+48], 1; " TEST_PARITY("0") NOTE                                                       \
      "mbarrier.arrive.shared.b64 _, [%y+48], %u1; " TEST_PARITY("1") NOTE "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("1") NOTE \
      "}",                                                                                                                                 \
      U32, U32, NONE, NONE, NONE, 0x10 | 0x4 | 0x1)                                                                                        \
    R(mbarrier_pending,                                                                                                                    \
      STAGE COUNT INIT(                                                                                                                    \
          "%u2") "mbarrier.arrive.noComplete.release.cta.shared.b64 %z, [%y+48], %u1; "                                                    \
                 "mbarrier.arrive.shared.b64 %z, [%y+48]; mbarrier.pending_count.b64 %d, %z; "                                             \
                 "mbarrier.arrive.shared.b64 %z, [%y+48]; mbarrier.pending_count.b64 %u1, %z; mad.lo.u32 %d, %d, 0x100000, %u1; }",        \
      U32, U32, NONE, NONE, NONE, 0x100000 + count_of(a) + 1)                                                                              \
    R(mbarrier_largest,                                                                                                                    \
      STAGE INIT("1048575") START "mbarrier.arrive.shared.b64 _, [%y+48], 1048574; " TEST_PARITY("0") NOTE                                 \
      "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("0") NOTE "mbarrier.arrive.shared.b64 _, [%y+48], 1048575; " TEST_PARITY("1")  \
          NOTE "}",                                                                                                                        \
      U32, NONE, NONE, NONE, NONE, 0x8 | 0x3)                                                                                              \
    R(mbarrier_drop,                                                                                                                       \
      STAGE INIT("3") START "mbarrier.arrive_drop.shared.b64 %z, [%y+48]; mbarrier.arrive.shared.b64 _, [%y+48], 2; "                      \
                            "mbarrier.test_wait.shared.b64 %v, [%y+48], %z; " NOTE                                                         \
                            "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%y+48]; " TEST_PARITY("1") NOTE                  \
      "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("1") NOTE "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("0") NOTE "}", \
      U32, NONE, NONE, NONE, NONE, 0x10 | 0x8 | 0x2 | 0x1)                                                                                 \
    R(mbarrier_drop_many,                                                                                                                  \
      STAGE COUNT INIT("%u2") START "mbarrier.arrive_drop.noComplete.shared.b64 %z, [%y+48], %u1; "                                        \
                                    "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("0") NOTE                                        \
      "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("1") NOTE "}",                                                                 \
      U32, U32, NONE, NONE, NONE, 7)                                                                                                       \
    R(mbarrier_tx,                                                                                                                         \
      STAGE INIT("1") START "and.b32 %u1, %a, 0xfffff; mbarrier.expect_tx.relaxed.cta.shared.b64 [%y+48], %u1; "                           \
                            "mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("0") NOTE                                                \
      "mbarrier.complete_tx.relaxed.cta.shared.b64 [%y+48], %u1; " TEST_PARITY("0") NOTE "}",                                              \
      U32, U32, NONE, NONE, NONE, 0x4 | (a & 0xfffff ? 0 : 2) | 1)                                                                         \
    R(mbarrier_tx_in_parts,                                                                                                                \
      STAGE INIT("1") START "mbarrier.arrive.expect_tx.shared.b64 %z, [%y+48], 48; "                                                       \
                            "mbarrier.complete_tx.shared.b64 [%y+48], 16; mbarrier.test_wait.shared.b64 %v, [%y+48], %z; " NOTE            \
                            "mbarrier.expect_tx.shared::cluster.b64 [%y+48], 16; mbarrier.complete_tx.shared::cluster.b64 [%y+48], 32; "   \
                            "mbarrier.test_wait.shared.b64 %v, [%y+48], %z; " NOTE "mbarrier.complete_tx.shared.b64 [%y+48], 16; "         \
                            "mbarrier.test_wait.shared.b64 %v, [%y+48], %z; " NOTE "}",                                                    \
      U32, NONE, NONE, NONE, NONE, 9)                                                                                                      \
    R(mbarrier_tx_early,                                                                                                                   \
      STAGE INIT("1") START "mbarrier.complete_tx.shared.b64 [%y+48], 32; " TEST_PARITY("0") NOTE                                          \
      "mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%y+48], 32; " TEST_PARITY("0") NOTE "}",                          \
      U32, NONE, NONE, NONE, NONE, 5)                                                                                                      \
    R(mbarrier_tx_largest,                                                                                                                 \
      STAGE INIT("1") START "mbarrier.arrive_drop.expect_tx.shared.b64 %z, [%y+48], 1048575; " TEST_PARITY("0") NOTE                       \
      "mbarrier.complete_tx.shared.b64 [%y+48], 1048574; " TEST_PARITY("0") NOTE                                                           \
      "mbarrier.complete_tx.shared.b64 [%y+48], 1; " TEST_PARITY("0") NOTE "}",                                                            \
      U32, NONE, NONE, NONE, NONE, 9)                                                                                                      \
    R(mbarrier_generic,                                                                                                                    \
      STAGE_GENERIC START                                                                                                                  \
      "mbarrier.init.b64 [%z+48], 2; mbarrier.expect_tx.b64 [%z+48], 4; "                                                                  \
      "mbarrier.arrive.b64 _, [%z+48]; mbarrier.complete_tx.b64 [%z+48], 4; mbarrier.test_wait.parity.b64 %v, [%z+48], 0; " NOTE           \
      "mbarrier.arrive_drop.b64 _, [%z+48]; mbarrier.try_wait.parity.b64 %v, [%z+48], 0; " NOTE                                            \
      "mbarrier.arrive.b64 _, [%z+48]; mbarrier.try_wait.parity.b64 %v, [%z+48], 1, 20; " NOTE "mbarrier.inval.b64 [%z+48]; }",            \
      U32, NONE, NONE, NONE, NONE, 8 | 3)                                                                                                  \
    R(mbarrier_reused, STAGE INIT("1") "mbarrier.inval.shared.b64 [%y+48]; st.shared.u64 [%y+48], %a; ld.shared.u64 %d, [%y+48]; }", U64,  \
      U64, NONE, NONE, NONE, a)                                                                                                            \
    R(mbarrier_guarded,                                                                                                                    \
      STAGE INIT("1") START "setp.ne.u32 %v, %b, 0; @%v mbarrier.arrive.shared.b64 _, [%y+48]; " TEST_PARITY("0") NOTE "}", U32, NONE,     \
      U32, NONE, NONE, b ? 3 : 2)                                                                                                          \
    R(mbarrier_copies,                                                                                                                     \
      STAGE INIT("2") START "cp.async.ca.shared.global [%y], [%q0], 8; cp.async.mbarrier.arrive.shared.b64 [%y+48]; "                      \
                            "cp.async.wait_all; " TEST_PARITY("0") NOTE                                                                    \
      "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%y+48]; cp.async.wait_all; "                                                        \
      "mbarrier.arrive.shared.b64 %z, [%y+48]; " TEST_PARITY("0") NOTE                                                                     \
      "ld.shared.u64 %z, [%y]; cvt.u32.u64 %u1, %z; xor.b32 %d, %d, %u1; "                                                                 \
      "}",                                                                                                                                 \
      U32, U64, NONE, NONE, NONE, (uint32_t)a ^ 5)

static uint16_t half_sum(uint16_t a, uint16_t b)
{
    return f16_from_double((double)f16_to_float(a) + (double)f16_to_float(b), NEAREST);
}

/* The sum of two bf16 is exact in f64. */
static uint16_t bf16_sum(uint16_t a, uint16_t b)
{
    return bf16_from_double((double)bf16_to_float(a) + (double)bf16_to_float(b));
}

/* A NaN loses, and -0 is less than +0. */
static uint16_t lesser(uint16_t a, uint16_t b, float (*value)(uint16_t))
{
    const float x = value(a), y = value(b);

    if (isnan(x) || isnan(y))
        return isnan(x) ? b : a;
    return x < y || (x == y && a >> 15) ? a : b;
}

#define WAIT(parity) "again: mbarrier.try_wait.parity.shared::cta.b64 %v, [%y+48], " parity "; @!%v bra again; "
#define EXPECT(bytes) INIT("1") "fence.mbarrier_init.release.cluster; mbarrier.arrive.expect_tx.shared.b64 _, [%y+48], " bytes "; "
#define GATHER "ld.shared.v2.u64 {%z, %d}, [%y]; shl.b64 %z, %z, 1; xor.b64 %d, %d, %z; "
#define MOVE(to, from) "ld.global.u64 %z, [%q0+" from "]; st.shared.u64 [%y+" to "], %z; "
#define FILL MOVE("0", "16") MOVE("8", "24") "fence.proxy.async.shared::cta; "
#define DONE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; "
#define REDUCE(op) FILL "cp.reduce.async.bulk.global.shared::cta.bulk_group." op " [%q0], [%y], 16; " DONE
#define MEET(op)                                                                                                                           \
    FILL MOVE("32", "0") MOVE("40", "8") "fence.proxy.async; " EXPECT(                                                                     \
        "16") "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." op                                          \
              " [%y+32], [%y], 16, [%y+48]; " WAIT("0")

#define BULK(R)                                                                                                                            \
    R(bulk_load,                                                                                                                           \
      STAGE EXPECT("16") "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%y], [%q0], 16, [%y+48]; " WAIT("0") GATHER   \
      "}",                                                                                                                                 \
      U64, U64, U64, NONE, NONE, a << 1 ^ b)                                                                                               \
    R(bulk_load_size,                                                                                                                      \
      STAGE "st.shared.u64 [%y+16], %a; fence.proxy.async; and.b32 %u1, %b, 16; add.u32 %u1, %u1, 16; " EXPECT(                            \
          "%u1") "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%y], [%q0], %u1, [%y+48]; " WAIT("0") "ld.shared."    \
                                                                                                                           "u64 %d, "      \
                                                                                                                           "[%y+16]; }",   \
      U64, U64, U32, U64, NONE, b & 16 ? c : a)                                                                                            \
    R(bulk_load_policy,                                                                                                                    \
      STAGE "createpolicy.fractional.L2::evict_first.b64 %z, 1.0; " EXPECT(                                                                \
          "32") "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"                                                             \
                "bytes.L2::cache_hint [%y], [%q0], 32, [%y+48], %z; " WAIT("0") "ld.shared.u64 %d, [%y+24]; }",                            \
      U64, NONE, NONE, NONE, U64, e)                                                                                                       \
    R(bulk_load_chosen,                                                                                                                    \
      STAGE "mov.u16 %h, 1; " EXPECT("16") "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%y], "   \
                                           "[%q0], 16, [%y+48], %h; " WAIT("0") GATHER "}",                                                \
      U64, U64, U64, NONE, NONE, a << 1 ^ b)                                                                                               \
    R(bulk_within_shared,                                                                                                                  \
      STAGE "st.shared.v2.u64 [%y+32], {%a, %b}; fence.proxy.async; " EXPECT(                                                              \
          "16") "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%y], [%y+32], 16, [%y+48]; " WAIT("0") GATHER     \
      "}",                                                                                                                                 \
      U64, U64, U64, NONE, NONE, a << 1 ^ b)                                                                                               \
    R(bulk_store,                                                                                                                          \
      STAGE FILL                                                                                                                           \
      "cp.async.bulk.global.shared::cta.bulk_group [%q0], [%y], 16; cp.async.bulk.commit_group; "                                          \
      "cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0; ld.global.u64 %d, [%q0]; ld.global.u64 %z, [%q0+8]; xor.b64 %d, %d, "  \
      "%z; ld.global.u64 %z, [%q0+16]; xor.b64 %d, %d, %z; }",                                                                             \
      U64, U64, U64, U64, U64, e)                                                                                                          \
    R(bulk_prefetch, STAGE "cp.async.bulk.prefetch.L2.global [%q0], 16; ld.global.u64 %d, [%q0]; }", U64, U64, NONE, NONE, NONE, a)        \
    R(bulk_add_u32, STAGE REDUCE("add.u32") "ld.global.u32 %d, [%q0+4]; }", U32, U64, NONE, U64, NONE, (a >> 32) + (c >> 32))              \
    R(bulk_add_u64, STAGE REDUCE("add.u64") "ld.global.u64 %d, [%q0+8]; }", U64, NONE, U64, NONE, U64, b + e)                              \
    R(bulk_min_s32, STAGE REDUCE("min.s32") "ld.global.s32 %d, [%q0]; }", S32, S32, NONE, S32, NONE, a < c ? a : c)                        \
    R(bulk_max_u32, STAGE REDUCE("max.u32") "ld.global.u32 %d, [%q0+8]; }", U32, NONE, U32, NONE, U32, b > e ? b : e)                      \
    R(bulk_min_u64, STAGE REDUCE("min.u64") "ld.global.u64 %d, [%q0+8]; }", U64, NONE, U64, NONE, U64, b < e ? b : e)                      \
    R(bulk_max_s64, STAGE REDUCE("max.s64") "ld.global.s64 %d, [%q0]; }", S64, S64, NONE, S64, NONE, a > c ? a : c)                        \
    R(bulk_and_b64, STAGE REDUCE("and.b64") "ld.global.u64 %d, [%q0]; }", U64, U64, NONE, U64, NONE, a &c)                                 \
    R(bulk_or_b32, STAGE REDUCE("or.b32") "ld.global.u64 %d, [%q0+8]; }", U64, NONE, U64, NONE, U64, b | e)                                \
    R(bulk_xor_b32, STAGE REDUCE("xor.b32") "ld.global.u64 %d, [%q0]; }", U64, U64, NONE, U64, NONE, a ^ c)                                \
    R(bulk_inc_u32, STAGE REDUCE("inc.u32") "ld.global.u32 %d, [%q0]; }", U32, U32, NONE, U32, NONE, a >= c ? 0 : a + 1)                   \
    R(bulk_dec_u32, STAGE REDUCE("dec.u32") "ld.global.u32 %d, [%q0]; }", U32, U32, NONE, U32, NONE, a == 0 || a > c ? c : a - 1)          \
    R(bulk_add_f32,                                                                                                                        \
      STAGE ".reg .f32 %g; cvt.rn.f32.s32 %g, %a; st.global.f32 [%q0], %g; cvt.rn.f32.s32 %g, %c; st.global.f32 [%q0+16], %g; " REDUCE(    \
          "add.f32") "ld.global.f32 %d, [%q0]; }",                                                                                         \
      F32, S32, NONE, S32, NONE, add_f32(NEAREST, (float)a, (float)c))                                                                     \
    R(bulk_add_f64,                                                                                                                        \
      STAGE ".reg .f64 %g; cvt.rn.f64.s64 %g, %b; st.global.f64 [%q0+8], %g; cvt.rn.f64.s64 %g, %e; st.global.f64 [%q0+24], %g; " REDUCE(  \
          "add.f64") "ld.global.f64 %d, [%q0+8]; }",                                                                                       \
      F64, NONE, S64, NONE, S64, (double)b + (double)e)                                                                                    \
    R(bulk_add_f16, STAGE REDUCE("add.noftz.f16") "ld.global.b16 %d, [%q0]; }", F16, F16, NONE, F16, NONE, half_sum(a, c))                 \
    R(bulk_add_bf16, STAGE REDUCE("add.noftz.bf16") "ld.global.b16 %d, [%q0+8]; }", BF16, NONE, BF16, NONE, BF16, bf16_sum(b, e))          \
    R(bulk_min_f16, STAGE REDUCE("min.f16") "ld.global.b16 %d, [%q0]; }", F16, F16, NONE, F16, NONE, lesser(a, c, f16_to_float))           \
    R(bulk_max_bf16, STAGE REDUCE("max.bf16") "ld.global.b16 %d, [%q0]; }", BF16, BF16, NONE, BF16, NONE,                                  \
      lesser(a ^ 0x8000, c ^ 0x8000, bf16_to_float) ^ 0x8000)                                                                              \
    R(bulk_shared_add, STAGE MEET("add.u32") "ld.shared.u32 %d, [%y+44]; }", U32, U64, U64, U64, U64, (b >> 32) + (e >> 32))               \
    R(bulk_shared_add_u64, STAGE MEET("add.u64") "ld.shared.u64 %d, [%y+40]; }", U64, U64, U64, U64, U64, b + e)                           \
    R(bulk_shared_max, STAGE MEET("max.s32") "ld.shared.s32 %d, [%y+32]; }", S32, S64, U64, S64, U64,                                      \
      (int32_t)a > (int32_t)c ? (int32_t)a : (int32_t)c)                                                                                   \
    R(bulk_shared_xor, STAGE MEET("xor.b32") "ld.shared.u64 %d, [%y+32]; }", U64, U64, U64, U64, U64, a ^ c)                               \
    R(bulk_shared_dec, STAGE MEET("dec.u32") "ld.shared.u32 %d, [%y+32]; }", U32, U64, U64, U64, U64,                                      \
      (uint32_t)a == 0 || (uint32_t)a > (uint32_t)c ? (uint32_t)c : (uint32_t)a - 1)                                                       \
    R(st_async,                                                                                                                            \
      STAGE EXPECT("4") "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%y+4], %a, [%y+48]; " WAIT(                            \
          "0") "ld.shared.u32 %d, [%y+4]; }",                                                                                              \
      U32, U32, NONE, NONE, NONE, a)                                                                                                       \
    R(st_async_v2,                                                                                                                         \
      STAGE EXPECT("16") "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%y], {%a, %b}, [%y+48]; " WAIT("0") GATHER    \
      "}",                                                                                                                                 \
      U64, U64, U64, NONE, NONE, a << 1 ^ b)                                                                                               \
    R(st_async_v4,                                                                                                                         \
      STAGE EXPECT("16") "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%y], {%a, %b, %c, %e}, [%y+48]; " WAIT("0") GATHER \
      "}",                                                                                                                                 \
      U64, U32, U32, U32, U32, ((uint64_t)b << 32 | a) << 1 ^ ((uint64_t)e << 32 | c))                                                     \
    R(st_async_generic,                                                                                                                    \
      STAGE_GENERIC EXPECT("8") "add.u64 %q1, %z, 48; st.async.mbarrier::complete_tx::bytes.b64 [%z+8], %a, [%q1]; " WAIT(                 \
          "0") "ld.shared.u64 %d, [%y+8]; }",                                                                                              \
      U64, U64, NONE, NONE, NONE, a)                                                                                                       \
    R(red_async_add,                                                                                                                       \
      STAGE "st.shared.u32 [%y], %a; " EXPECT("4") "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%y], " \
                                                   "%b, [%y+48]; " WAIT("0") "ld.shared.u32 %d, [%y]; }",                                  \
      U32, U32, U32, NONE, NONE, a + b)                                                                                                    \
    R(red_async_add_u64,                                                                                                                   \
      STAGE "st.shared.u64 [%y], %a; " EXPECT("8") "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%y], " \
                                                   "%b, [%y+48]; " WAIT("0") "ld.shared.u64 %d, [%y]; }",                                  \
      U64, U64, U64, NONE, NONE, a + b)                                                                                                    \
    R(red_async_inc,                                                                                                                       \
      STAGE "st.shared.u32 [%y], %a; " EXPECT("4") "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%y], " \
                                                   "%b, [%y+48]; " WAIT("0") "ld.shared.u32 %d, [%y]; }",                                  \
      U32, U32, U32, NONE, NONE, a >= b ? 0 : a + 1)                                                                                       \
    R(red_async_max,                                                                                                                       \
      STAGE "st.shared.u32 [%y], %a; " EXPECT("4") "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%y], " \
                                                   "%b, [%y+48]; " WAIT("0") "ld.shared.s32 %d, [%y]; }",                                  \
      S32, S32, S32, NONE, NONE, a > b ? a : b)                                                                                            \
    R(red_async_and,                                                                                                                       \
      STAGE "st.shared.u32 [%y], %a; " EXPECT("4") "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.and.b32 [%y], " \
                                                   "%b, [%y+48]; " WAIT("0") "ld.shared.u32 %d, [%y]; }",                                  \
      U32, U32, U32, NONE, NONE, a &b)

#define CLUSTERS(R)                                                                                                                        \
    R(mapa_shared,                                                                                                                         \
      STAGE "mov.u32 %u1, 0; mapa.shared::cluster.u32 %u2, %y, %u1; st.shared::cluster.u32 [%u2+4], %a; "                                  \
            "ld.shared.u32 %d, [%y+4]; }",                                                                                                 \
      U32, U32, NONE, NONE, NONE, a)                                                                                                       \
    R(mapa_generic, STAGE_GENERIC "mapa.u64 %q1, %z, 0; st.u64 [%q1], %a; ld.shared::cluster.u64 %d, [%y]; }", U64, U64, NONE, NONE, NONE, \
      a)                                                                                                                                   \
    R(cluster_atom,                                                                                                                        \
      STAGE "st.shared.u32 [%y], %a; atom.relaxed.cluster.shared::cluster.add.u32 %u1, [%y], %b; ld.shared.u32 %d, [%y]; "                 \
            "xor.b32 %d, %d, %u1; }",                                                                                                      \
      U32, U32, U32, NONE, NONE, (a + b) ^ a)                                                                                              \
    R(getctarank, STAGE_GENERIC "getctarank.shared::cluster.u32 %d, %y; getctarank.u64 %u1, %z; or.b32 %d, %d, %u1; }", U32, NONE, NONE,   \
      NONE, NONE, 0)                                                                                                                       \
    R(isspacep_cluster, STAGE_GENERIC "selp.u64 %z, %z, %q0, %a; isspacep.shared::cluster %d, %z; }", PRED, PRED, NONE, NONE, NONE, a)     \
    R(cluster_registers,                                                                                                                   \
      "{ .reg .b32 %u<4>; .reg .pred %v; mov.u32 %d, %cluster_ctarank; mov.u32 %u0, %cluster_nctarank; "                                   \
      "mad.lo.u32 %d, %d, 2, %u0; mov.u32 %u0, %cluster_nctaid.x; mad.lo.u32 %d, %d, 2, %u0; mov.u32 %u0, %cluster_ctaid.y; "              \
      "mad.lo.u32 %d, %d, 2, %u0; mov.u32 %u0, %clusterid.x; mov.u32 %u1, %ctaid.x; xor.b32 %u0, %u0, %u1; or.b32 %d, %d, %u0; "           \
      "mov.u32 %u0, %nclusterid.x; mov.u32 %u1, %nctaid.x; xor.b32 %u0, %u0, %u1; or.b32 %d, %d, %u0; }",                                  \
      U32, NONE, NONE, NONE, NONE, 6)                                                                                                      \
    R(cluster_barrier,                                                                                                                     \
      STAGE "st.shared.u32 [%y], %a; barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; "                       \
            "ld.shared.u32 %d, [%y]; barrier.cluster.arrive.relaxed; barrier.cluster.wait; }",                                             \
      U32, U32, NONE, NONE, NONE, a)                                                                                                       \
    R(cluster_fences,                                                                                                                      \
      "fence.proxy.async.shared::cluster; fence.proxy.tensormap::generic.release.gpu; fence.acq_rel.cluster; "                             \
      "and.b64 %z, %q0, -128; fence.proxy.tensormap::generic.acquire.gpu [%z], 128; mov.u32 %d, %a;",                                      \
      U32, U32, NONE, NONE, NONE, a)

#define ROWS(R) BARRIERS(R) BULK(R) CLUSTERS(R)
ROWS(REFERENCE)
static const struct row rows[] = {ROWS(ENTRY)};
const struct table table_async = {"async", rows, sizeof rows / sizeof *rows, ".version 8.6\n.target sm_90\n.address_size 64\n"};
