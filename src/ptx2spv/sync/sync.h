/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronization points: warp instructions, CONVERGE and barriers, and the work-group memory through which threads exchange at them.
 *
 *   uniform.c     which of them a whole block reaches together
 *   collective.c  the pass: chooses the form, expands points in place
 *   lockstep.c    whether threads meet at their points in the order of the blocks
 *   predicate.c   leads all threads past all points in that order, under predicates
 *   spin.c        loops that wait for another thread
 *   resume.c      cuts a kernel at its points (the form that is right for any control flow)
 *   grid.c        lets a block of a cooperative launch end where it waits for another, and go on later
 *   exchange.c    the memory and the arithmetic of all
 *
 * The exchange area lies behind the kernel's shared memory (CT_SYS_EXCHANGE_BASE), in 32-bit words:
 *   fixed part   threads that have ended; for each warp a set of lanes (resumed: ended; predicated: at the point) and its ballot; for each
 *                barrier its counters (enum ct_bar_word); two words for ct_exchange_any
 *   columns      one word a thread each (enum ct_column), as many as the kernel needs
 * Counters of barriers only grow: what was counted before a barrier last completed is in its START words, so nothing is reset while
 * others may count. Bits of a ballot are cleared by the lane that set them, after all have read. */
#ifndef PTX2SPV_SYNC_H
#define PTX2SPV_SYNC_H
/* Parts: exchange.c, grid.c, lockstep.c, predicate.c, resume.c, spin.c, uniform.c, ir/live.c. */

#include "ptx2spv/ir/builder.h"

enum { CT_MAX_WARPS = 32, CT_MAX_BARRIERS = 16 };

enum ct_bar_word { CT_BAR_TOTAL, CT_BAR_START, CT_BAR_EXPECTED, CT_BAR_PRED_TOTAL, CT_BAR_PRED_START, CT_BAR_CAME, CT_BAR_WORDS };

enum ct_column {
    CT_COLUMN_LOW,  /* what a thread posts: 32 bits, or the low half of 64 */
    CT_COLUMN_HIGH, /* match.b64 only */
    CT_COLUMN_SIGN, /* resumed form: the kind of point that the thread waits at; 0 none */
    CT_COLUMN_MASK, /* resumed form: its member mask */
    CT_COLUMN_COUNT
};

/* What the kernel needs of the exchange area. Natively lanes read each other's registers instead, and nothing but `lane` is set. */
struct ct_exchange {
    struct ct_fn *fn;
    bool native;
    ct_value shown[CT_COLUMN_COUNT]; /* natively: what the thread posted last */
    bool column[CT_COLUMN_COUNT];
    /* registers that every point uses, computed once at the kernel's start */
    ct_value thread;     /* number in the block */
    ct_value lane;
    ct_value threads;    /* in the block */
    ct_value warp;       /* thread / 32 */
    ct_value first;      /* thread number of lane 0 of the warp */
    ct_value own;        /* byte offset of the thread's word in column LOW, and */
    ct_value warp_base;  /* of lane 0's word; other columns are column_bytes further each */
    ct_value column_bytes;
    ct_value existing;   /* mask of the warp's lanes that the block has */
};

bool ct_is_warp_op(enum ct_op op); /* as PTX has them */
bool ct_is_sync(enum ct_op op); /* those, CONVERGE and barriers */

/* ---- uniform.c: by block id, in scratch memory. Renumbers blocks. ---- */
const bool *ct_find_divergent_blocks(struct ct_fn *fn);

/* ---- lockstep.c and predicate.c: the predicated form ---- */
/* Whether ct_predicate is right. Each point stands at the head of its block; preds and block ids as ct_find_divergent_blocks left them.
 * Leaves dominators and loops fresh. */
bool ct_runs_in_lockstep(struct ct_fn *fn, const bool *divergent);
/* Places the points in the blocks marked `divergent`; the rest is left. entry: behind ct_exchange_begin, not yet part of the graph. */
void ct_predicate(struct ct_cursor *entry, struct ct_exchange *x, const bool *divergent);

/* ---- spin.c: puts YIELD where a loop waits for another thread; whether there is such a loop ---- */
enum ct_spins { CT_SPINS_ALL, CT_SPINS_FOR_LOCKS };
bool ct_mark_spins(struct ct_fn *fn, enum ct_spins which);

/* ---- exchange.c ---- */
/* Emits the common registers and the clearing of the area, with the barrier behind it. */
void ct_exchange_begin(struct ct_cursor *at, struct ct_exchange *x);
/* Sizes for the emitter and the caller of the compiler: fn->exchange_words, fn->exchange_thread_words. */
void ct_exchange_finish(struct ct_exchange *x);
void ct_exchange_barrier(struct ct_cursor *at); /* every thread of the block */

ct_value ct_exchange_end(struct ct_cursor *at, const struct ct_exchange *x); /* the byte behind the area, once all columns are known */

/* Words of the fixed part. */
ct_value ct_exchange_ended_word(struct ct_cursor *at);                                    /* address */
ct_value ct_exchange_lanes_word(struct ct_cursor *at, ct_value warp);       /* address */
ct_value ct_exchange_bar_word(struct ct_cursor *at, ct_value number, enum ct_bar_word which);
ct_value ct_exchange_load(struct ct_cursor *at, ct_value address);
void ct_exchange_store(struct ct_cursor *at, ct_value address, ct_value value);
ct_value ct_exchange_atomic(struct ct_cursor *at, enum ptx_operation operation, ct_value address, ct_value value); /* old value */
ct_value ct_exchange_own(struct ct_cursor *at, const struct ct_exchange *x, enum ct_column column);                /* address */
ct_value ct_exchange_of_lane(struct ct_cursor *at, const struct ct_exchange *x, enum ct_column column, ct_value lane);

/* What a warp instruction shows to the others, before they read. */
void ct_exchange_post(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn);
/* Its results from what the lanes of `members` posted. The cursor may stand in another block afterwards. */
void ct_exchange_results(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn, ct_value members);
/* Takes back what must not be seen again; after everybody has read. */
void ct_exchange_unpost(struct ct_cursor *at, struct ct_exchange *x, const struct ct_insn *insn);
/* Which lanes are at a point: shown before a barrier, read behind it, taken back behind another. */
void ct_exchange_show_presence(struct ct_cursor *at, const struct ct_exchange *x);
ct_value ct_exchange_present(struct ct_cursor *at, const struct ct_exchange *x);
void ct_exchange_hide_presence(struct ct_cursor *at, const struct ct_exchange *x);
/* Whether the predicate holds for any thread of the block. turn: a register of 32 bits for this alone, 0 at first. Has barriers in it. */
ct_value ct_exchange_any(struct ct_cursor *at, ct_value turn, ct_value holds);
/* Member mask of a warp instruction; all lanes for activemask. */
ct_value ct_exchange_mask(struct ct_cursor *at, const struct ct_insn *insn);

/* A loop over the set bits of a mask, lowest first:  body gets the lane's number. Cursor: behind the loop afterwards. */
struct ct_lane_loop {
    struct ct_block *head, *done;
    ct_value rest, lane;
};
void ct_lane_loop_begin(struct ct_cursor *at, ct_value mask, struct ct_lane_loop *loop);
void ct_lane_loop_end(struct ct_cursor *at, struct ct_lane_loop *loop);

/* bar.red: 1 for a thread that counts, else 0: whose predicate holds, or, for .and, fails (so that nobody has to know how many threads there
 * are: some may have ended); and the result from the sum. */
ct_value ct_exchange_predicate(struct ct_cursor *at, const struct ct_insn *insn);
ct_value ct_exchange_bar_result(struct ct_cursor *at, const struct ct_insn *insn, ct_value counted);

/* ---- resume.c ---- */
/* x->column says which columns the points need; SIGN and MASK among them. */
void ct_resume(struct ct_fn *fn, struct ct_exchange *x);

/* ---- live.c ---- */
/* Registers that live into the block, in scratch memory. */
ct_value *ct_find_live(struct ct_fn *fn, const struct ct_block *block, uint32_t *out_count);

/* ---- grid.c: kernels of cooperative launches ---- */
struct ct_grid_cut { /* a kernel's loop, and blocks without code that grid.c fills */
    struct ct_block *head;
    struct ct_block *start; /* what the entry ends in */
    struct ct_block *wait;  /* where all threads come that wait for other blocks, behind a barrier */
    struct ct_block *end;   /* where all come in the end */
};
/* Sets fn->grid_thread_words. */
void ct_grid_cut(struct ct_fn *fn, const struct ct_exchange *x, const struct ct_grid_cut *cut);

/* Control flow for passes in register form, beside ct_cursor_jump. */
static inline void ct_cursor_enter(struct ct_cursor *at, struct ct_block *block)
{
    at->block = block;
    at->before = NULL;
}

#endif
