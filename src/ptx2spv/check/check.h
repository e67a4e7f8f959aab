/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `check`, which examines the accesses of a kernel to memory (struct ptx2spv_check). */
#ifndef PTX2SPV_CHECK_H
#define PTX2SPV_CHECK_H
/* Parts: barriers.c, blocks.c, bounds.c, group_reports.c, launches.c, load_groups.c, local_shadow.c, masks.c, races.c, roots.c, search.c, shared_shadow.c, sites.c, turns.c, written.c. */

#include "ptx2spv/ir/builder.h"

/* What an address is computed from, as far as that tells where it should lead. */
enum ct_root_kind {
    CT_ROOT_UNKNOWN,
    CT_ROOT_PARAM,    /* 8 bytes of the declared parameters */
    CT_ROOT_VARIABLE, /* a variable in the module's image */
    CT_ROOT_PARAMS,   /* the address of the parameters themselves */
    CT_ROOT_SAME_PHI, /* within roots.c: the walk has come back to the phi that it started from */
};
struct ct_root {
    enum ct_root_kind kind;
    uint64_t offset; /* PARAM: of the 8 bytes; VARIABLE: of the place in the image. The address is that place itself if is_place */
    bool is_place;
};

/* The shadows of a range: the members of struct ptx2spv_check_range that say where they are. */
enum ct_shadow { CT_SHADOW_WRITTEN, CT_SHADOW_ACCESSES, CT_SHADOW_LAUNCHES, CT_SHADOWS };
/* The values of these members; none: without the option, or for accesses to shared and local memory. */
struct ct_shadows {
    ct_value at[CT_SHADOWS];
};

/* The limits of a range that a root leads to, in values that dominate the whole kernel. */
struct ct_check_limits {
    uint64_t offset; /* of the parameter */
    uint32_t bytes;  /* of the accesses */
    ct_value start, n_places;
    struct ct_shadows shadows;
};

struct ct_check {
    struct ct_fn *fn;
    struct ct_cursor entry; /* where code goes that is executed once */
    ct_value control;       /* the address of struct ptx2spv_check, or none yet */
    ct_value varying_zero;  /* or none yet */
    CT_VEC(struct ct_check_limits) limits;
    bool has_shadow[CT_SHADOWS];
    const uint8_t *uses;     /* with check_written: set of enum ct_check_use of each value that the program has */
    const uint8_t *reported; /* for loads, by their first results: set of enum ct_check_reported */
    ct_value mark, launch;   /* with fn->checks_blocks: the words of half a mark, see blocks.c */
    ct_value variables;      /* likewise: struct ptx2spv_check.variables, or none yet */
    ct_value turn;           /* with fn->checks_turns: where turns.c finds that of the thread */
    ct_value number;         /* with fn->checks_launches: that of the launch */
    ct_value shared_written; /* the distance from shared memory to its shadow of written bytes; none: there is no such shadow */
    ct_value local_written;  /* the same for local memory */
};

/* What group_reports.c reports of a load. */
enum ct_check_reported {
    CT_REPORTED_REFUSED = 1,   /* that it is not allowed */
    CT_REPORTED_UNWRITTEN = 2, /* that nothing has written what it reads */
};

/* What becomes of a value: a set. */
enum ct_check_use {
    CT_USE_KEPT = 1,     /* an operand of a copy or a phi, or stored in local memory */
    CT_USE_CHOSEN = 2,   /* one of the two values of a select */
    CT_USE_STORED = 4,   /* stored in other memory */
    CT_USE_COMPUTED = 8, /* an operand of any other instruction */
};

/* An access that is being examined. */
struct ct_access {
    struct ct_insn *insn;
    uint32_t bytes;   /* of the whole access: a power of two */
    ct_value address; /* with insn->offset: 64 bits, in SHARED and LOCAL 32 bits */
    struct ct_root root;
    bool writes;
    uint8_t reported;    /* as in struct ct_check */
    const uint8_t *uses; /* sets of enum ct_check_use, of its results */
};
/* Whether there is one range for all accesses of a thread to that space, so that the cheap test is the only one. */
static inline bool ct_check_is_window(const struct ct_insn *access)
{
    return access->space == CT_SPACE_SHARED || access->space == CT_SPACE_LOCAL;
}

/* The answer of a test: what is known at compile time needs no code. */
struct ct_verdict {
    ct_value holds; /* predicate; none: it always holds */
    bool never;     /* it never does */
};

/* The address of struct ptx2spv_check. */
ct_value ct_check_control(struct ct_check *check);
/* A value that is 0 in every thread, which the driver's compiler cannot find out: to it the value may differ from thread to thread. Checks add it to addresses
 * from which they load what other threads may store at the same time. Otherwise NVIDIA's compiler takes what a warp loads from one address for one value,
 * although the GPU loads 16 bytes for half of the warp at a time and another warp's store may come between. A branch on the value then splits
 * the warp without being joined again, and the next barrier does not wait for both halves. */
ct_value ct_check_varying_zero(struct ct_check *check);
/* Loads from what the host has prepared, which does not change. */
ct_value ct_check_load(struct ct_cursor *at, ct_value address, uint64_t offset, enum ct_width width);
/* The number of bytes that an access reads or writes. */
uint32_t ct_check_access_bytes(const struct ct_insn *insn);

/* roots.c */
struct ct_root ct_check_root(const struct ct_check *check, ct_value address);

/* bounds.c: a test that is cheap and passes for nearly all accesses that are allowed. If the space is SHARED or LOCAL, it passes for all of
 * them. */
struct ct_verdict ct_check_bounds(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access);
/* Bytes of shared memory that the program has. */
ct_value ct_check_shared_size(struct ct_cursor *at);
/* Whether a 32-bit offset is within the memory of the block (SHARED) or the thread (LOCAL). */
ct_value ct_check_is_within(struct ct_cursor *at, enum ct_space space, ct_value offset, uint32_t bytes);
/* Whether `extent` bytes of shared memory from an offset on are within it, and the offset is aligned for accesses of `bytes`. */
ct_value ct_check_shared_allows(struct ct_cursor *at, ct_value offset, uint32_t extent, uint32_t bytes);
ct_value ct_check_is_aligned(struct ct_cursor *at, const struct ct_access *access);

/* The values of a range whose struct is at an address, loaded there. */
struct ct_shadows ct_check_load_shadows(const struct ct_check *check, struct ct_cursor *at, ct_value range, uint64_t offset);
/* Those of an access that the cheap test lets pass. */
struct ct_shadows ct_check_fast_shadows(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access);
/* Those of an access to a variable, which only has marks of accesses; none: of any other access, or for constants. */
struct ct_shadows ct_check_variable_shadows(struct ct_check *check, const struct ct_access *access);

/* search.c: looks the address up in the ranges. `at` continues behind it. */
struct ct_found {
    ct_value inside;           /* it is within a range */
    ct_value allowed;          /* moreover it may be accessed like that */
    struct ct_shadows shadows; /* 0 in shared and local memory */
};
struct ct_found ct_check_search(struct ct_check *check, struct ct_cursor *at, const struct ct_access *access);

/* written.c */
/* The uses of all values, in scratch memory. */
const uint8_t *ct_check_find_uses(const struct ct_fn *fn);
/* Those of the results of an instruction: struct ct_access.uses. */
const uint8_t *ct_check_uses_of(const struct ct_check *check, const struct ct_insn *insn);
/* Whether an access reads memory. The first half of an exchange is no read to speak of: programs set flags by it. */
bool ct_check_reads(const struct ct_access *access);
/* Whether a read, whose written bytes are at `place`, counts as one of unwritten memory: if none of its bytes is written (a word of which a part is padding
 * does not). Of a vector, which is how structures are copied, an element counts by itself only if something is computed from it. */
ct_value ct_check_is_unwritten(struct ct_cursor *at, const struct ct_access *access, ct_value place);
/* Tests and marks the bytes of an access that is allowed, before it. distance: from an address to that of its shadow. */
void ct_check_written(struct ct_check *check, const struct ct_access *access, ct_value distance);
/* An access of the same form as the program's, to a place of the same alignment (at most 16 bytes) in shared or other memory. */
struct ct_insn *ct_check_access_like(struct ct_cursor *at, enum ct_op op, const struct ct_access *access, ct_value place);
uint32_t ct_check_describe(const struct ct_access *access); /* PTX2SPV_CHECK_ACCESS */
/* The rule (enum ptx2spv_check_fault) that an access breaks that is not allowed: it is misaligned, or else outside of memory, or else a write to memory that
 * is read-only. inside: whether it is inside of memory, or none: it is outside. */
ct_value ct_check_fault_of(struct ct_cursor *at, const struct ct_access *access, ct_value inside);

/* shared_shadow.c: whether the program may write to shared memory without an access that is examined. */
bool ct_check_shared_is_unseen(const struct ct_fn *fn);

/* load_groups.c */
enum { CT_LOAD_GROUP_LEVELS = 3 };
struct ct_load_group {
    struct ct_insn *const *loads; /* by ascending or descending offset */
    uint32_t n, n_levels;
    struct ct_load_level {
        uint32_t period; /* after each `period` loads, `step` is added to the offset, besides the steps of the levels before */
        int64_t step;
    } levels[CT_LOAD_GROUP_LEVELS];
};
/* An instruction that is examined, or the first load of a group. insn is NULL for the others of the group. */
struct ct_check_point {
    struct ct_insn *insn;
    const struct ct_load_group *group; /* or NULL */
};
/* Looks for groups among the loads of a function. The points are the loads and whatever no group may reach across, in the order of the program. */
void ct_load_groups_find(struct ct_fn *fn, struct ct_check_point *points, uint32_t n);
/* The offset from the register, and the line in the PTX text, of a load that has a number in the group. */
ct_value ct_load_group_offset(struct ct_cursor *at, const struct ct_load_group *group, ct_value number);
ct_value ct_load_group_line(struct ct_cursor *at, const struct ct_load_group *group, ct_value number);
/* group_reports.c: sets check->reported. */
void ct_check_report_groups(struct ct_check *check);

/* races.c: whether the accesses to shared memory can be examined, and the examination. entry: code that is executed once, before all of them. */
bool ct_races_are_possible(const struct ct_fn *fn);
void ct_races_examine(struct ct_check *check, struct ct_cursor *entry);
/* Whether an instruction orders the accesses of a block's threads: all of them, or those of a warp; or in a way that is not followed. */
bool ct_check_orders_threads(const struct ct_insn *insn);
bool ct_check_synchronizes_otherwise(const struct ct_insn *insn);
/* Whether the lanes of a warp run in step, since the module was written for GPUs on which they do. */
bool ct_check_runs_in_step(const struct ct_fn *fn);

/* sites.c */
struct ct_incident {
    struct ct_location where;
    uint32_t access;  /* PTX2SPV_CHECK_ACCESS */
    ct_value address; /* 32 or 64 bits */
    ct_value fault;   /* 32 bits, enum ptx2spv_check_fault */
    ct_value other;   /* 32 bits, or none */
    /* For a load of a group, else none. `where` is then that of any of them. */
    const struct ct_load_group *group;
    ct_value number;
};
/* For code in SSA form that is executed before an instruction if a condition holds: the cursor, which is before the instruction, enters that code, and leaves it,
 * so that it is before the instruction again. rest: what ct_check_enter_if returned. */
struct ct_block *ct_check_enter_if(struct ct_cursor *at, struct ct_insn *insn, ct_value condition);
void ct_check_leave_if(struct ct_cursor *at, struct ct_insn *insn, struct ct_block *rest);
/* Counts it, and describes it if it is the first one. */
void ct_check_report(struct ct_check *check, struct ct_cursor *at, const struct ct_incident *incident);

/* barriers.c, likewise. The analysis renumbers the blocks. */
enum { CT_BARRIER_THREAD_BYTES = 8 };
bool ct_barriers_may_diverge(struct ct_fn *fn);
void ct_barriers_examine(struct ct_check *check, struct ct_cursor *entry);

/* blocks.c: whether nothing in the kernel orders blocks; and the test and the marks of an access that is allowed, before it. */
bool ct_blocks_are_unordered(const struct ct_fn *fn);
void ct_blocks_begin(struct ct_check *check);
void ct_check_blocks(struct ct_check *check, const struct ct_access *access, ct_value accesses);

/* turns.c: whether it is known what orders the threads of a block, and whether there is anything; what keeps the words in shared memory. */
enum { CT_TURN_THREAD_BYTES = 4 };
bool ct_turns_are_known(const struct ct_fn *fn);
bool ct_turns_change(const struct ct_fn *fn);
void ct_turns_examine(struct ct_check *check, struct ct_cursor *entry);
void ct_turns_post_first(struct ct_cursor *at); /* after the shadow is cleared */
void ct_turns_begin(struct ct_check *check);
/* The thread's own turn, the thread of a turn (or PTX2SPV_CHECK_SEVERAL), and whether an access in another turn of the block is not ordered before one in the
 * thread's own turn. */
ct_value ct_turn(struct ct_check *check, struct ct_cursor *at);
ct_value ct_turn_thread(struct ct_cursor *at, ct_value turn);
ct_value ct_turns_conflict(struct ct_cursor *at, ct_value turn, ct_value other);
/* The upper word of half a mark (blocks.c) has the set of bytes from this bit on. */
enum { CT_MARK_BYTES_SHIFT = 28 };
ct_value ct_have_common_bytes(struct ct_cursor *at, ct_value upper, ct_value other);
/* A turn, and the upper word with the bytes that were loaded in it. */
struct ct_turn_bytes {
    ct_value turn, upper;
};
/* What is remembered of loads in the thread's own turn and in the last one, both of one block and launch: the bytes that several warps have loaded since a
 * barrier, else those of one turn, else those of the last one. */
struct ct_turn_bytes ct_turns_join(struct ct_cursor *at, struct ct_turn_bytes own, struct ct_turn_bytes last);

/* launches.c: whether nothing in the kernel is made for talking to the host while it runs; and the marks of an access that is allowed, before it. */
bool ct_launch_is_unobserved(const struct ct_fn *fn);
void ct_launches_begin(struct ct_check *check);
void ct_check_launches(struct ct_check *check, const struct ct_access *access, ct_value launches);

/* check.c: for code at the kernel's entry; first: the instruction before which it goes. */
void ct_check_begin(struct ct_check *check, struct ct_insn *first);

#endif
