/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronization points, that is warp instructions, CONVERGE and barriers, and the work-group memory through which threads exchange data
 * at them.
 *
 *   divergence.c  which points all threads of a block reach together
 *   collective.c  the pass: chooses the form of the points and expands them in place
 *   lockstep.c    whether threads meet at the points in the order of the basic blocks
 *   predicate.c   lets all threads pass all points in that order, under predicates
 *   spin.c        loops that wait for another thread
 *   resume.c      cuts a kernel at its points (the form that is correct for any control flow)
 *   resume_points.c  what its points share
 *   coalesce.c    registers that live across points, but never together, become one
 *   cluster.c     the places of blocks in clusters
 *   grid.c        suspends a block of a cooperative launch that waits for another block, and resumes it later
 *   lane_values.c    reads of other lanes' registers whose contents each lane can compute
 *   matrix_area.c    memory of the matrix instructions
 *   shuffle_runs.c   shuffles that threads pass together
 *   exchange.c    the exchange area, and the arithmetic that all forms use
 *
 * The exchange area lies after the kernel's shared memory (CT_SYS_EXCHANGE_BASE). It consists of 32-bit words:
 *   fixed part   the number of threads that have ended; for each warp a set of lanes (resumed form: those that have ended; predicated form:
 *                those at the point) and its ballot; for each barrier its counters (enum ct_bar_word); two words for ct_exchange_any;
 *                resumed form: for each warp and some kinds of points, how many lanes have arrived there since the kernel began
 *   columns      arrays of one word per thread (enum ct_column), as many as the kernel needs
 * Counters only grow: the START words of barriers, and registers for kinds of points, hold their values at the last completion, so nothing
 * is reset while other threads may be counting. A lane clears its own bit of a ballot after all threads have read the ballot. */
#ifndef PTX2SPV_SYNC_H
#define PTX2SPV_SYNC_H
/* Parts: cluster.c, coalesce.c, divergence.c, exchange.c, grid.c, lockstep.c, matrix_area.c, predicate.c, resume.c, shuffle_runs.c, spin.c. */

#include "ptx2spv/ir/builder.h"

enum { CT_MAX_WARPS = 32, CT_MAX_BARRIERS = 16 };

enum ct_bar_word { CT_BAR_TOTAL, CT_BAR_START, CT_BAR_EXPECTED, CT_BAR_PRED_TOTAL, CT_BAR_PRED_START, CT_BAR_ARRIVED_WARPS, CT_BAR_WORDS };

enum { CT_RUN_MAX = 4 };

enum ct_column {
    CT_COLUMN_LOW,  /* the value that a thread posts: 32 bits, or the low half of 64 */
    CT_COLUMN_HIGH, /* match.b64 only */
    CT_COLUMN_KIND, /* resumed form: the kind of point at which the thread waits; 0: none */
    CT_COLUMN_MASK, /* resumed form: the member mask of that point */
    CT_COLUMN_RUN,  /* what the second shuffle of a run posts, and so on */
    CT_COLUMN_COUNT = CT_COLUMN_RUN + CT_RUN_MAX - 1
};

/* What the kernel needs of the exchange area. In the native form, lanes read each other's registers instead, and only `lane` is set. */
struct ct_exchange {
    struct ct_fn *fn;
    bool native;
    ct_value posted[CT_COLUMN_COUNT]; /* native form: the value that the thread posted last */
    bool column[CT_COLUMN_COUNT];
    uint32_t n_counters; /* of each warp */
    uint32_t run_max;    /* shuffles of a run that are passed together */
    /* registers that every point uses, computed once at the kernel's start */
    ct_value thread; /* number of the thread in the block */
    ct_value lane;
    ct_value threads;   /* number of threads in the block */
    ct_value warp;      /* thread / 32 */
    ct_value first;     /* number of the thread that is lane 0 of the warp */
    ct_value own;       /* byte offset of the thread's word in column LOW, and */
    ct_value warp_base; /* of lane 0's word; each further column is column_bytes further */
    ct_value column_bytes;
    ct_value lanes_of_warp; /* mask of the lanes of the warp for which the block has threads */
};

/* Shuffles of one mask that follow one another in a block, or any one other instruction. */
struct ct_shuffle_run {
    struct ct_insn *insns[CT_RUN_MAX];
    uint32_t n;
};

bool ct_is_warp_op(enum ct_op op);               /* warp instructions of PTX */
bool ct_is_sync(enum ct_op op);                  /* warp instructions, CONVERGE and barriers */
bool ct_reconverges(const struct ct_insn *insn); /* the lanes of a warp wait for each other here */

/* ---- divergence.c: in scratch memory. Renumbers the blocks. ---- */
struct ct_divergence {
    const bool *blocks; /* by id: not all threads reach it together */
    const bool *values; /* by number: it differs between threads, or is in such a block */
};
struct ct_divergence ct_find_divergence(struct ct_fn *fn);
/* Whether threads may come to a block by different edges, so that its phis differ. */
bool ct_is_reached_variously(const struct ct_divergence *divergence, const struct ct_block *block);
const bool *ct_find_divergent_blocks(struct ct_fn *fn);

/* ---- lockstep.c and predicate.c: the predicated form ---- */
/* Whether ct_predicate is correct for this function. Each point must be the first instruction of its basic block; predecessors and block
 * ids must be as ct_find_divergent_blocks left them. Dominators and loops are valid afterwards. */
bool ct_runs_in_lockstep(struct ct_fn *fn, const bool *divergent);
/* Expands the points in the blocks marked `divergent`, and only those. entry: after ct_exchange_begin, not yet part of the graph. */
void ct_predicate(struct ct_cursor *entry, struct ct_exchange *x, const bool *divergent);

/* ---- shuffle_runs.c: runs of shuffles, of CT_RUN_MAX at most ---- */
uint32_t ct_shuffle_run_max(const struct ct_fn *fn);     /* for which there is room in work-group memory; 1: no runs */
void ct_gather_shuffles(struct ct_fn *fn, uint32_t max); /* moves instructions so that there are runs */
void ct_shuffle_run_at(struct ct_insn *first, uint32_t max, struct ct_shuffle_run *out);

/* ---- spin.c: inserts YIELD where a loop waits for another thread; returns whether there is such a loop ---- */
enum ct_spins { CT_SPINS_ALL, CT_SPINS_FOR_LOCKS };
bool ct_mark_spins(struct ct_fn *fn, enum ct_spins which);

/* ---- exchange.c ---- */
/* Emits the common registers and the initialization of the area, with a barrier after it. */
void ct_exchange_begin(struct ct_cursor *at, struct ct_exchange *x);
/* Sets the sizes for the emitter and the user of the compiler: fn->exchange_words, fn->exchange_thread_words. */
void ct_exchange_finish(struct ct_exchange *x);
void ct_exchange_barrier(struct ct_cursor *at); /* a barrier of all threads of the block */

/* the first byte after the area, once all columns are known */
ct_value ct_exchange_end(struct ct_cursor *at, const struct ct_exchange *x);

/* Words of the fixed part. */
ct_value ct_exchange_ended_word(struct ct_cursor *at);                /* address */
ct_value ct_exchange_lanes_word(struct ct_cursor *at, ct_value warp); /* address */
ct_value ct_exchange_bar_word(struct ct_cursor *at, ct_value number, enum ct_bar_word which);
ct_value ct_exchange_counter(struct ct_cursor *at, const struct ct_exchange *x, uint32_t index); /* address: of the thread's warp */
ct_value ct_exchange_load(struct ct_cursor *at, ct_value address);
void ct_exchange_store(struct ct_cursor *at, ct_value address, ct_value value);
ct_value ct_exchange_atomic(struct ct_cursor *at, enum ptx_operation operation, ct_value address, ct_value value); /* the old value */
ct_value ct_exchange_own(struct ct_cursor *at, const struct ct_exchange *x, enum ct_column column);                /* address */
ct_value ct_exchange_of_lane(struct ct_cursor *at, const struct ct_exchange *x, enum ct_column column, ct_value lane);

/* Posts the operands of a warp instruction, before the other lanes read them. */
void ct_exchange_post(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn);
void ct_exchange_post_run(struct ct_cursor *at, struct ct_exchange *x, const struct ct_shuffle_run *run);
/* Computes the results of the instruction from what the lanes of `members` posted. The cursor may be in another basic block afterwards. */
void ct_exchange_results(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn, ct_value members);
void ct_exchange_results_of_run(struct ct_cursor *at, struct ct_exchange *x, const struct ct_shuffle_run *run, ct_value members);
/* Removes what must not be seen again, after all threads have read it. */
void ct_exchange_retract(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn);
/* The set of lanes that are at a point: set before a barrier, read after it, cleared after another one. */
void ct_exchange_set_present(struct ct_cursor *at, const struct ct_exchange *x);
ct_value ct_exchange_present_lanes(struct ct_cursor *at, const struct ct_exchange *x);
void ct_exchange_clear_present(struct ct_cursor *at, const struct ct_exchange *x);
/* Whether the predicate holds for any thread of the block; contains barriers. slot: a 32-bit register used for this only, initially 0. */
ct_value ct_exchange_any(struct ct_cursor *at, ct_value slot, ct_value holds);
/* Member mask of a warp instruction; all lanes for activemask. */
ct_value ct_exchange_mask(struct ct_cursor *at, const struct ct_insn *insn);

/* A loop over the set bits of a mask, lowest first; `lane` is the bit's number in the body. The cursor is after the loop afterwards. */
struct ct_lane_loop {
    struct ct_block *head, *done;
    ct_value rest, lane;
};
void ct_lane_loop_begin(struct ct_cursor *at, ct_value mask, struct ct_lane_loop *loop);
void ct_lane_loop_end(struct ct_cursor *at, struct ct_lane_loop *loop);

/* bar.red: 1 for a thread that counts, else 0. A thread counts if its predicate holds, or, for .and, if it does not (so that the number
 * of threads, some of which may have ended, need not be known); and the result as computed from the sum. */
ct_value ct_exchange_predicate(struct ct_cursor *at, const struct ct_insn *insn);
ct_value ct_exchange_bar_result(struct ct_cursor *at, const struct ct_insn *insn, ct_value counted);

/* ---- matrix_area.c ---- */
void ct_matrix_area_place(struct ct_fn *fn);  /* before points are expanded */
void ct_matrix_area_finish(struct ct_fn *fn); /* when the size of the exchange area is known */

static inline uint32_t ct_matrix_thread_bytes(const struct ct_fn *fn)
{
    return 2 * 4 * fn->matrix_words;
}

/* ---- resume.c ---- */
/* x->column says which columns the instructions need. False: the kernel has too many points, which has been reported. */
bool ct_resume(struct ct_fn *fn, struct ct_exchange *x);

/* ---- coalesce.c: before the kernel is cut. Removes unreachable blocks. ---- */
void ct_coalesce_registers(struct ct_fn *fn);

/* ---- exchange.c, lockstep.c: the member masks of warp instructions ---- */
bool ct_has_mask(enum ct_op op); /* activemask has none, but takes whichever lanes are there */
ct_value ct_mask_of(const struct ct_insn *insn);
/* In register form: full[v] = every assignment to value v, of which there is one at least, makes it -1. */
void ct_find_full_masks(const struct ct_fn *fn, bool *full);

enum { CT_FIRST_INDEPENDENT_SM = 70 }; /* independent thread scheduling: before, the lanes of a warp run in step */

/* ---- grid.c: kernels of cooperative launches ---- */
struct ct_grid_blocks { /* the loop of a kernel, and empty blocks that grid.c fills */
    struct ct_block *head;
    struct ct_block *start; /* the entry jumps there */
    struct ct_block *wait;  /* reached by all threads, after a barrier, if all of them wait for other blocks */
    struct ct_block *end;   /* reached by all threads at the end */
};
/* Sets fn->grid_thread_words. */
void ct_grid_add_checkpoint(struct ct_fn *fn, const struct ct_exchange *x, const struct ct_grid_blocks *blocks);

#endif
