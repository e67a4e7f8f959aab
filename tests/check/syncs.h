/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose threads do not synchronize as they should: check_syncs NAME [good]. The fault is in block 1. It lies between two places in the code, which
 * are marked with HERE and THERE; a report is about one of them, and names the thread that is there. */
#ifndef CUTTLE_TESTS_SYNCS_H
#define CUTTLE_TESTS_SYNCS_H

#define HERE " // HERE\n"
#define THERE " // THERE\n"

/* Blocks of 64 threads. %t, %b: thread, block; %k: the fault is wanted here; %o: as %k, with a condition for the thread; %v, %w: words; %s: the
 * address of 64 words of shared memory, which are written; %a, %c: the addresses of words of the thread and of the block in global memory.
 * SYNC(name, kind, options, first, last, condition, here, there, code): %o holds for the threads from `first` on (up to `last`). here, there: threads */
#define BARRIER(name, first, last, here, there, code) SYNC(name, "barrier", "", first, last, here, there, code)
#define BARRIER_SYNCS                                                                                                                      \
    BARRIER(second_warp, 56, 63, 55, 63, "@%o bra B;\nbar.sync 0;" HERE "bra C;\nB: bar.sync 0;" THERE "C:\n")                             \
    BARRIER(first_warp, 16, 63, 15, 31, "@%o bra B;\nbar.sync 0;" HERE "bra C;\nB: bar.sync 0;" THERE "C:\n")                              \
    BARRIER(one_thread, 3, 3, 2, 3, "@%o bra B;\nbar.sync 0;" HERE "bra C;\nB: bar.sync 0;" THERE "C:\n")                                  \
    BARRIER(skipped, 8, 63, 7, 31, "@%o bra B;\nbar.sync 0;" HERE "B: bar.sync 0;" THERE)                                                  \
    BARRIER(skipped_by_one, 5, 5, 4, 5, "@%o bra B;\nbar.sync 0;" HERE "B: bar.sync 0;" THERE)                                             \
    BARRIER(another_iteration, 20, 63, 19, 31,                                                                                             \
            "mov.u32 %v, 3;\n@%o mov.u32 %v, 2;\nL: bar.sync 0;" HERE "sub.u32 %v, %v, 1;\nsetp.ne.u32 %q, %v, 0;\n@%q bra L;\n"           \
            "bar.sync 0;" THERE)                                                                                                           \
    BARRIER(reduction, 16, 63, 15, 31,                                                                                                     \
            "setp.eq.u32 %q, %t, 0;\n@%o bra B;\nbar.red.popc.u32 %v, 0, %q;" HERE "bra C;\nB: bar.sync 0;" THERE "C:\n")                  \
    BARRIER(predicated, 40, 63, 39, 63, "@!%o bar.sync 0;" HERE "@%o bar.sync 0;" THERE)                                                   \
    BARRIER(nested, 48, 63, 47, 63,                                                                                                        \
            "setp.lt.u32 %q, %t, 99;\n@!%q bra C;\n@%o bra B;\nbar.sync 0;" HERE "bra C;\nB: bar.sync 0;" THERE "C: bar.sync 0;\n")        \
    BARRIER(behind_others, 24, 63, 23, 31, "bar.sync 0;\nbar.sync 0;\n@%o bra B;\nbar.sync 0;" HERE "bra C;\nB: bar.sync 0;" THERE "C:\n")

#define MASK(name, code)                                                                                                                   \
    SYNC(name, "mask", "", 3, 3, 3, 3, "setp.ne.u32 %q, %t, 3;\n@%q bra E;\nmov.u32 %m, 8;\n@%o mov.u32 %m, 16;\n" code HERE "E:\n")
#define MASK_SYNCS                                                                                                                         \
    MASK(shfl_idx, "shfl.sync.idx.b32 %v, %t, 3, 31, %m;")                                                                                 \
    MASK(shfl_up, "shfl.sync.up.b32 %v, %t, 0, 0, %m;")                                                                                    \
    MASK(shfl_down, "shfl.sync.down.b32 %v, %t, 0, 31, %m;")                                                                               \
    MASK(shfl_bfly, "shfl.sync.bfly.b32 %v, %t, 0, 31, %m;")                                                                               \
    MASK(vote_any, "vote.sync.any.pred %q, %q, %m;")                                                                                       \
    MASK(vote_all, "vote.sync.all.pred %q, %q, %m;")                                                                                       \
    MASK(vote_ballot, "vote.sync.ballot.b32 %v, %q, %m;")                                                                                  \
    MASK(match_any, "match.any.sync.b32 %v, %t, %m;")                                                                                      \
    MASK(match_all, "match.all.sync.b32 %v, %t, %m;")                                                                                      \
    MASK(bar_warp, "bar.warp.sync %m;")                                                                                                    \
    MASK(redux, "redux.sync.add.u32 %v, %t, %m;")

/* Thread 3 makes the access that comes last in the code, thread 40 the other one; with the fault there is no barrier between. */
#define RACE(name, first, second) SYNC(name, "race", "--races", 0, 63, 3, 40, RACE_CODE(first, second, 40))
/* The other one is thread 7, of the same warp. */
#define WARP_RACE(name, first, second) SYNC(name, "race", "--races", 0, 63, 3, 7, RACE_CODE(first, second, 7))
#define RACE_CODE(first, second, other)                                                                                                    \
    "setp.eq.u32 %q, %t, " #other ";\nsetp.eq.u32 %p, %t, 3;\n@%q " first THERE "@%k bra B;\nbar.sync 0;\nB: @%p " second HERE             \
    "bar.sync 0;\n"
#define RACE_SYNCS                                                                                                                         \
    RACE(load_after_store, "st.shared.u32 [%s+16], 9;", "ld.shared.u32 %v, [%s+16];")                                                      \
    RACE(store_after_load, "ld.shared.u32 %v, [%s+16];", "st.shared.u32 [%s+16], 9;")                                                      \
    RACE(store_after_store, "st.shared.u32 [%s+16], 9;", "st.shared.u32 [%s+16], 8;")                                                      \
    RACE(bytes, "st.shared.u8 [%s+17], 9;", "ld.shared.u8 %v, [%s+17];")                                                                   \
    RACE(halves, "st.shared.u16 [%s+18], 9;", "ld.shared.u16 %v, [%s+18];")                                                                \
    RACE(byte_of_a_word, "st.shared.u8 [%s+19], 9;", "ld.shared.u32 %v, [%s+16];")                                                         \
    RACE(vectors, "st.shared.v2.u32 [%s+16], {%t, %t};", "ld.shared.v2.u32 {%v, %w}, [%s+16];")                                            \
    RACE(word_of_a_vector, "st.shared.u32 [%s+28], 9;", "ld.shared.v4.u32 {%v, %w, %m, %n}, [%s+16];")                                     \
    RACE(doubles, "st.shared.u64 [%s+16], 9;", "ld.shared.u64 %l, [%s+16];")                                                               \
    RACE(half_of_a_double, "st.shared.u32 [%s+20], 9;", "ld.shared.u64 %l, [%s+16];")                                                      \
    WARP_RACE(warp_load, "st.shared.u32 [%s+16], 9;", "ld.shared.u32 %v, [%s+16];")                                                        \
    WARP_RACE(warp_store, "ld.shared.u32 %v, [%s+16];", "st.shared.u32 [%s+16], 9;")                                                       \
    WARP_RACE(volatile_load, "st.volatile.shared.u32 [%s+16], 9;", "ld.volatile.shared.u32 %v, [%s+16];")                                  \
    WARP_RACE(volatile_store, "ld.volatile.shared.u32 %v, [%s+16];", "st.volatile.shared.u32 [%s+16], 9;")                                 \
    WARP_RACE(volatile_and_weak, "st.volatile.shared.u32 [%s+16], 9;", "ld.shared.u32 %v, [%s+16];")

/* Loads by thread 3 that form groups, or seem to (load_groups.c in src/ptx2spv/check): one of them conflicts with what thread 40 stores. */
#define LOADS_RACE(name, store, loads) SYNC(name, "race", "--races", 0, 63, 3, 40, LOADS_CODE(store, loads))
#define LOADS_CODE(store, loads)                                                                                                           \
    "setp.eq.u32 %q, %t, 40;\nsetp.ne.u32 %p, %t, 3;\n@%q " store THERE "@%k bra B;\nbar.sync 0;\nB: @%p bra E;\n" loads "E: "             \
    "bar.sync 0;\n"
#define LOAD(offset) "ld.shared.u32 %v, [%s+" #offset "];"
#define LOADS4(a, b, c, d) LOAD(a) LOAD(b) LOAD(c) LOAD(d) "\n"
#define LOADS_SYNCS                                                                                                                        \
    LOADS_RACE(loads_in_a_row, "st.shared.u32 [%s+36], 9;",                                                                                \
               LOADS4(0, 4, 8, 12) LOADS4(16, 20, 24, 28) LOAD(32) "\n" LOAD(36) HERE LOAD(40) LOAD(44) "\n")                              \
    LOADS_RACE(loads_of_two_loops, "st.shared.u32 [%s+140], 9;",                                                                           \
               LOADS4(4, 64, 72, 128) LOADS4(0, 68, 12, 136) LOADS4(200, 196, 192, 204) LOAD(76) LOAD(132) LOAD(8) "\n" LOAD(140) HERE)    \
    LOADS_RACE(loads_of_three_loops, "st.shared.u32 [%s+52], 9;",                                                                          \
               LOADS4(0, 4, 16, 20) LOADS4(32, 36, 48, 128) LOAD(52) HERE LOADS4(132, 144, 148, 160) LOAD(164) LOAD(176) LOAD(180) "\n")   \
    LOADS_RACE(loads_with_a_rest, "st.shared.u32 [%s+68], 9;", LOADS4(0, 4, 8, 12) LOAD(64) "\n" LOAD(68) HERE)                            \
    LOADS_RACE(loads_behind_a_rest, "st.shared.u32 [%s+12], 9;", LOADS4(64, 68, 72, 76) LOAD(8) "\n" LOAD(12) HERE)                        \
    LOADS_RACE(loads_without_a_loop, "st.shared.u32 [%s+68], 9;", LOADS4(0, 4, 12, 28) LOAD(64) "\n" LOAD(68) HERE)                        \
    LOADS_RACE(loads_twice, "st.shared.u32 [%s+12], 9;", LOADS4(0, 4, 8, 4) LOAD(12) HERE)                                                 \
    LOADS_RACE(loads_of_bytes, "st.shared.u8 [%s+5], 9;",                                                                                  \
               "ld.shared.u8 %v, [%s+7];ld.shared.u8 %v, [%s+6];\nld.shared.u8 %v, [%s+5];" HERE "ld.shared.u8 %v, [%s+4];\n")             \
    LOADS_RACE(loads_of_vectors, "st.shared.u32 [%s+44], 9;",                                                                              \
               "ld.shared.v2.u32 {%v, %w}, [%s];ld.shared.v2.u32 {%v, %w}, [%s+80];\nld.shared.v2.u32 {%v, %w}, [%s+120];\n"               \
               "ld.shared.v2.u32 {%v, %w}, [%s+40];" HERE)                                                                                 \
    LOADS_RACE(loads_of_a_wide_address, "st.shared.u32 [%s+12], 9;",                                                                       \
               "cvt.u64.u32 %l, %s;\nld.shared.u32 %v, [%l];ld.shared.u32 %v, [%l+4];ld.shared.u32 %v, [%l+8];\n"                          \
               "ld.shared.u32 %v, [%l+12];" HERE "mov.u64 %l, 0;\n")                                                                       \
    LOADS_RACE(loads_of_two_addresses, "st.shared.u32 [%s+24], 9;", LOAD(0) LOAD(4) "add.u32 %s, %s, 16;\n" LOAD(8) HERE LOAD(12) "\n")    \
    LOADS_RACE(loads_of_a_loaded_address, "st.shared.u32 [%s+4], 0;",                                                                      \
               LOAD(16) LOAD(12) LOAD(8) "\nld.shared.u32 %s, [%s+4];" HERE LOADS4(16, 12, 8, 0))

/* The same in global memory, in words of the block: thread 40 or 7 stores first. Thread 3 comes late, since a GPU executes warps in any order; atomic operations
 * of no order take the time. */
#define THREADS_RACE(name, first, second, other) SYNC(name, "race", "--global-races", 0, 63, 3, other, THREADS_CODE(first, second, other))
#define THREADS_CODE(first, second, other)                                                                                                 \
    "mul.wide.u32 %l, %b, 64;\nadd.u64 %c, %c, %l;\nadd.u64 %c, %c, 512;\nmov.u64 %l, 0;\nsetp.eq.u32 %q, %t, " #other ";\n"               \
    "@%q " first THERE "@%k bra B;\nbar.sync 0;\nB: setp.ne.u32 %p, %t, 3;\n@%p bra E;\nmov.u32 %n, 300;\n"                                \
    "W: atom.global.or.b32 %v, [%c+48], 0;\nsub.u32 %n, %n, 1;\nsetp.ne.u32 %q, %n, 0;\n@%q bra W;\n" second HERE "E: bar.sync 0;\n"
#define THREADS_SYNCS                                                                                                                      \
    THREADS_RACE(threads_load_u32, "st.global.u32 [%c+16], 9;", "ld.global.u32 %v, [%c+16];", 40)                                          \
    THREADS_RACE(threads_load_u8, "st.global.u8 [%c+17], 9;", "ld.global.u8 %v, [%c+17];", 40)                                             \
    THREADS_RACE(threads_load_u16, "st.global.u16 [%c+18], 9;", "ld.global.u16 %v, [%c+18];", 40)                                          \
    THREADS_RACE(threads_load_u64, "st.global.u64 [%c+16], 9;", "ld.global.u64 %l, [%c+16];", 40)                                          \
    THREADS_RACE(threads_load_half, "st.global.u32 [%c+20], 9;", "ld.global.u64 %l, [%c+16];", 40)                                         \
    THREADS_RACE(threads_load_v4, "st.global.u32 [%c+28], 9;", "ld.global.v4.u32 {%v, %w, %m, %n}, [%c+16];", 40)                          \
    THREADS_RACE(threads_load_generic, "st.u32 [%c+16], 9;", "ld.u32 %v, [%c+16];", 40)                                                    \
    THREADS_RACE(threads_store_u32, "st.global.u32 [%c+16], 9;", "st.global.u32 [%c+16], 8;", 40)                                          \
    THREADS_RACE(threads_store_u8, "st.global.u32 [%c+16], 9;", "st.global.u8 [%c+17], 8;", 40)                                            \
    THREADS_RACE(lanes_load, "st.global.u32 [%c+16], 9;", "ld.global.u32 %v, [%c+16];", 7)                                                 \
    THREADS_RACE(lanes_store, "st.global.u32 [%c+16], 9;", "st.global.u32 [%c+16], 8;", 7)                                                 \
    THREADS_RACE(threads_store_after_load, "ld.global.u32 %v, [%c+16];", "st.global.u32 [%c+16], 9;", 40)                                  \
    THREADS_RACE(threads_store_after_load_u8, "ld.global.u32 %v, [%c+16];", "st.global.u8 [%c+18], 9;", 40)                                \
    THREADS_RACE(threads_store_after_load_v4, "ld.global.v4.u32 {%v, %w, %m, %n}, [%c+16];", "st.global.u32 [%c+28], 9;", 40)              \
    THREADS_RACE(threads_store_after_load_generic, "ld.u64 %l, [%c+16];", "st.u32 [%c+20], 9;", 40)                                        \
    THREADS_RACE(lanes_store_after_load, "ld.global.u32 %v, [%c+16];", "st.global.u32 [%c+16], 9;", 7)                                     \
    THREADS_RACE(threads_store_after_load_by_both, "ld.global.u32 %w, [%c+16];", "ld.global.u32 %m, [%c+16];\nst.global.u32 [%c+16], 9;",  \
                 40)

/* Thread 0 of block 0 makes the first access, and then sets a flag, for which thread 3 of block 1 waits; but nothing orders what they do before and after
 * that. Without the fault it accesses other words. */
#define BLOCKS_RACE(name, first, second) SYNC(name, "race", "--global-races", 0, 63, 3, 3, BLOCKS_CODE(first, second))
#define BLOCKS_CODE(first, second)                                                                                                         \
    "add.u64 %c, %c, 512;\nsetp.eq.u32 %q, %b, 0;\nsetp.eq.and.u32 %q, %t, 0, %q;\n@!%q bra A;\n" first THERE                              \
    "atom.global.add.u32 %v, [%c+128], 1;\nA: setp.eq.u32 %p, %b, 1;\nsetp.eq.and.u32 %p, %t, 3, %p;\n@!%p bra E;\n"                       \
    "W: atom.global.or.b32 %v, [%c+128], 0;\nsetp.eq.u32 %q, %v, 0;\n@%q bra W;\n@!%k add.u64 %c, %c, 64;\n" second HERE "E:\n"
#define BLOCKS_SYNCS                                                                                                                       \
    BLOCKS_RACE(blocks_load_u32, "st.global.u32 [%c+16], 9;", "ld.global.u32 %v, [%c+16];")                                                \
    BLOCKS_RACE(blocks_load_u8, "st.global.u8 [%c+17], 9;", "ld.global.u8 %v, [%c+17];")                                                   \
    BLOCKS_RACE(blocks_load_u16, "st.global.u16 [%c+18], 9;", "ld.global.u16 %v, [%c+18];")                                                \
    BLOCKS_RACE(blocks_load_u64, "st.global.u64 [%c+16], 9;", "ld.global.u64 %l, [%c+16];")                                                \
    BLOCKS_RACE(blocks_load_v2, "st.global.v2.u32 [%c+16], {%t, %t};", "ld.global.v2.u32 {%v, %w}, [%c+16];")                              \
    BLOCKS_RACE(blocks_load_v4, "st.global.u32 [%c+28], 9;", "ld.global.v4.u32 {%v, %w, %m, %n}, [%c+16];")                                \
    BLOCKS_RACE(blocks_load_half, "st.global.u32 [%c+20], 9;", "ld.global.u64 %l, [%c+16];")                                               \
    BLOCKS_RACE(blocks_load_generic, "st.u32 [%c+16], 9;", "ld.u32 %v, [%c+16];")                                                          \
    BLOCKS_RACE(blocks_store_u32, "st.global.u32 [%c+16], 9;", "st.global.u32 [%c+16], 8;")                                                \
    BLOCKS_RACE(blocks_store_u8, "st.global.u32 [%c+16], 9;", "st.global.u8 [%c+17], 8;")                                                  \
    BLOCKS_RACE(blocks_store_v4, "st.global.u64 [%c+24], 9;", "st.global.v4.u32 [%c+16], {%t, %t, %t, %t};")                               \
    BLOCKS_RACE(blocks_store_after_load, "ld.global.u32 %w, [%c+16];", "st.global.u32 [%c+16], 9;")                                        \
    BLOCKS_RACE(blocks_store_after_load_u8, "ld.global.u8 %w, [%c+17];", "st.global.u32 [%c+16], 9;")                                      \
    BLOCKS_RACE(blocks_store_after_load_v4, "ld.global.v4.u32 {%s, %w, %m, %n}, [%c+16];", "st.global.u16 [%c+26], 9;")                    \
    BLOCKS_RACE(blocks_store_after_load_by_both, "ld.global.u32 %w, [%c+16];", "ld.global.u32 %m, [%c+16];\nst.global.u32 [%c+16], 9;")    \
    BLOCKS_RACE(blocks_store_by_a_loaded_address, "ld.global.u32 %w, [%c+16];",                                                            \
                "st.shared.u64 [%s+8], %c;\nld.shared.u64 %c, [%s+8];\nst.global.u32 [%c+16], 9;")                                         \
    BLOCKS_RACE(blocks_load_variable, "st.global.u32 [common+16], 9;", "@!%k bra E;\nld.global.u32 %v, [common+16];")                      \
    BLOCKS_RACE(blocks_store_variable, "ld.global.u32 %w, [common+16];", "@!%k bra E;\nst.global.u32 [common+16], 9;")                     \
    BLOCKS_RACE(blocks_store_in_variable, "mov.u64 %l, common;\nmad.wide.u32 %l, %t, 4, %l;\nst.global.u32 [%l+24], 9;",                   \
                "mov.u64 %l, common;\n@!%k add.u64 %l, %l, 64;\nmad.wide.u32 %l, %t, 4, %l;\nst.u8 [%l+13], 9;")

#endif
