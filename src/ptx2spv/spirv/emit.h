/* SPDX-License-Identifier: Apache-2.0 */
/* Structured IR to SPIR-V: the interface between the emit_*.c files.
 *
 * Every IR value has an id as an integer (or bool) and, if some instruction reads it as a float, one as a float; the other form is a
 * bitcast directly after the definition. A value also lives in a Function variable if its definition does not dominate a use in the
 * emitted control flow (a use outside of the tree's list that contains the definition); so do phis. */
#ifndef PTX2SPV_EMIT_H
#define PTX2SPV_EMIT_H
/* Parts: emit_arith.c, emit_atomic.c, emit_bytes.c, emit_choices.c, emit_compare.c, emit_contractions.c, emit_control.c, emit_entry.c,
 * emit_errors.c, emit_factors.c, emit_float.c, emit_matrix.c, emit_memory.c, emit_opencl.c, emit_pointers.c, emit_products.c, emit_signs.c, emit_types.c, emit_values.c, emit_variables.c,
 * emit_vulkan.c, emit_warp.c, emit_wide.c, emit_words.c. */

#include "ptx2spv/ir/ir.h"
#include "spirv_builder.h"

enum ct_ext {
#define EXT(id, glsl, opencl) CT_EXT_##id,
#include "emit_ext.def"
    CT_EXT_COUNT
};

#define CT_ACCESS_UNITS_MAX 8 /* elements of one access: PTX has vectors of up to 8 */

/* A phi whose variable is stored where its majority value is defined: see emit_values.c. */
struct ct_gen_seed {
    uint32_t variable;
    struct ct_gen_seed *next;
};

struct ct_gen_value {
    uint32_t as_int, as_float;
    uint32_t variable; /* Function variable, of the integer type, for uses that the definition does not dominate; 0: none */
    uint32_t incoming; /* phis: the Function variable that predecessors write */
    ct_value shares;   /* phis with the same variable, which is also `variable`: one of them, for all; 0: see `majority` */
    ct_value majority; /* phis: the value of most edges, which is stored in `incoming` at its definition, not on the edges; 0: none */
    struct ct_gen_seed *seeds; /* the phis that have this value as their majority value */
    uint32_t type_float;       /* width of the float as which it is read; 0: it is not */
    bool wants_int;
    uint8_t sums;  /* see emit_products.c */
    uint8_t hides; /* see emit_choices.c */
    /* loads from `variable` in the current block */
    uint32_t loaded_in, loaded_int, loaded_float; /* block id + 1 */
};

/* The position of a block in the tree: its BLOCK node in preorder, and the last node of the list that contains it. */
struct ct_gen_position {
    uint32_t at, list_end;
};

struct ct_gen_region {
    uint32_t merge, next_round; /* labels; next_round: LOOP only */
    uint32_t n_exits;           /* the number of edges that reach the merge block */
};

enum ct_shared_view { CT_VIEW_8, CT_VIEW_16, CT_VIEW_32, CT_VIEW_64, CT_VIEW_2X32, CT_VIEW_4X32, CT_VIEW_F32, CT_VIEW_F64, CT_VIEW_COUNT };

struct ct_gen;
struct ct_access;

/* The differences between Vulkan and OpenCL. The functions return ids. */
struct ct_dialect {
    struct ct_spv_environment environment;
    SpvExecutionModel execution_model;
    const uint16_t *extended;              /* instruction numbers in the set of extended instructions, by enum ct_ext */
    SpvStorageClass global_storage;        /* of global memory */
    bool has_pointers;                     /* shared and local memory are also accessed through pointers to any type */
    bool shift_amounts_have_operand_width; /* the shift amount must be as wide as the shifted value (LLVM) */
    bool decorates_no_contraction;         /* contraction of float operations is prevented by a decoration of each operation */
    void (*begin)(struct ct_gen *g);       /* capabilities, interface, the function up to its first label */
    void (*end)(struct ct_gen *g);         /* execution modes; may raise g->version */
    uint32_t (*sysval)(struct ct_gen *g, enum ct_sysval which);          /* computed at the function's start */
    uint32_t (*param)(struct ct_gen *g, uint32_t offset, unsigned bits); /* part of the parameters, as an integer */
    uint32_t (*pointer)(struct ct_gen *g, enum ct_space space, uint32_t address, int64_t offset, uint32_t type);
    /* Memory operands of a nonatomic OpLoad or OpStore, at most 3; returns their number. Declares the capabilities that the access
     * needs. */
    uint32_t (*memory_operands)(struct ct_gen *g, SpvOp op, enum ct_space space, const struct ct_access *access, uint32_t *words);
    uint32_t (*scope)(struct ct_gen *g, enum ct_space space, uint8_t scope); /* enum ptx_scope */
    uint32_t (*semantics)(struct ct_gen *g, uint8_t semantics);              /* enum ptx_semantics */
    /* integer operations: bits 32 (multiply_high: or 64) */
    uint32_t (*multiply_high)(struct ct_gen *g, unsigned bits, bool is_signed, uint32_t a, uint32_t b);
    uint32_t (*leading_zeros)(struct ct_gen *g, uint32_t x);
    uint32_t (*reverse_bits)(struct ct_gen *g, uint32_t x);
    void (*sample)(struct ct_gen *g, const struct ct_insn *insn); /* NULL, as the next one: not without target.sampled_images */
    void (*image_size)(struct ct_gen *g, const struct ct_insn *insn);
};
extern const struct ct_dialect ct_dialect_vulkan, ct_dialect_opencl;

struct ct_gen_matrix { /* see emit_matrix.c */
    uint32_t type, id;
    const ct_value *words; /* of a lane */
};

struct ct_gen {
    struct ct_fn *fn;
    const struct ptx2spv_target *target;
    const struct ct_dialect *dialect;
    struct ct_spv_module m;
    uint32_t version;         /* of SPIR-V */
    struct ct_location where; /* of the current instruction */
    bool failed;              /* an error has been reported */
    bool hides_signs;         /* see emit_signs.c */

    struct ct_gen_value *values;       /* indexed by value */
    struct ct_gen_position *positions; /* indexed by block id */
    struct ct_gen_edge {
        uint32_t to, index;                   /* id of the target; index of the edge among the target's predecessors */
    } *edges;                                 /* see emit_values.c */
    uint32_t *first_edge;                     /* indexed by block id: its edges are edges[first_edge[b]] to edges[first_edge[b + 1] - 1] */
    struct ct_gen_region *regions;            /* indexed by node id */
    uint32_t *selectors;                      /* Function variables */
    struct ct_gen_pairs *pairs;               /* see emit_compare.c; NULL: not searched for */
    struct ct_gen_contractions *contractions; /* see emit_contractions.c; NULL: there are none */
    bool *driver_may_know;                    /* indexed by value; see emit_factors.c; NULL: it does not matter */
    uint32_t subgroup_lane, lane_zero;        /* see emit_warp.c and emit_pointers.c; 0: not yet emitted */
    uint32_t varying_zero;                    /* see emit_float.c; 0: not yet emitted */
    const struct ct_block *block;             /* the current block */
    uint32_t label;                           /* of the current SPIR-V block */
    bool open;                                /* which has no terminator yet */

    CT_VEC(struct ct_gen_matrix) matrices; /* that exist in the block of this label */
    uint32_t matrices_label;

    /* see emit_control.c */
    uint32_t n_cuts;        /* barriers and, if the kernel has_barriers, loops that have been emitted */
    bool merged;            /* a merge block with several predecessors has been emitted after the last of them */
    uint32_t merge_of_part; /* the last merge block of a construct with such */
    bool has_barriers;

    uint32_t *subroutines;                     /* indexed like fn->subroutines: ids of functions; 0: it has not been called */
    uint32_t arguments[CT_SPV_MAX_PARAMETERS]; /* of the subroutine that is being emitted */

    /* the module's interface */
    uint32_t entry;
    CT_VEC(uint32_t) interface; /* global variables */
    uint32_t spec[PTX2SPV_SPEC_COUNT];
    uint32_t sysvals[CT_SYS_COUNT]; /* computed at the function's start, on first use */
    uint32_t workgroup_id, local_id, push_constants;
    uint32_t *param_members; /* Vulkan: indexed by word of the parameters: the member of the push constants that begins there */
    bool *param_pairs;       /* whether that is a pair of words */
    uint32_t shared[CT_VIEW_COUNT];
    bool has_wide_words;                              /* see emit_wide.c: shared[CT_VIEW_64] is the only view */
    enum ct_shared_view words_view;                   /* without explicit layout, the only view: CT_VIEW_32, or vectors of such words */
    uint32_t local;                                   /* Function variable: array of words */
    uint32_t argument_block, shared_base, local_base; /* OpenCL: pointers to bytes */
    uint32_t images[PTX2SPV_IMAGE_SHAPES][PTX2SPV_IMAGE_SIGNED + 1]; /* arrays of descriptors, by their channels */
    uint8_t float_widths;                                            /* set of the widths in use: 1: f16, 2: f32, 4: f64 */
};

/* Code of the function. GEN returns the result's id. */
#define GEN(g, op, type, ...) CT_SPV_RESULT(&(g)->m, CT_SPV_CODE, op, type, __VA_ARGS__)
#define GEN_VOID(g, op, ...) CT_SPV_EMIT(&(g)->m, CT_SPV_CODE, op, __VA_ARGS__)
/* Code at the function's start, for system values. */
#define GEN_EARLY(g, op, type, ...) CT_SPV_RESULT(&(g)->m, CT_SPV_PROLOGUE, op, type, __VA_ARGS__)

/* Reports an error at the current instruction: it cannot be emitted. */
void ct_gen_refuse(struct ct_gen *g, enum ptx2spv_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
static inline bool ct_gen_works_around(const struct ct_gen *g, enum ptx2spv_workaround which)
{
    return (g->target->workarounds & which) != 0;
}
/* Reports an error unless the target has a feature. */
void ct_gen_need(struct ct_gen *g, bool has, const char *what);

/* ---- emit_types.c: types, conversions between them, constants ---- */
uint32_t ct_gen_int_type(struct ct_gen *g, unsigned bits);   /* 1: bool */
uint32_t ct_gen_float_type(struct ct_gen *g, unsigned bits); /* records that the width is used */
uint32_t ct_gen_ext(struct ct_gen *g, enum ct_ext which, uint32_t type, const uint32_t *operands, uint32_t n);
/* Converts an integer from `from` to `to` bits: truncated, unchanged or extended. */
uint32_t ct_gen_resize(struct ct_gen *g, uint32_t id, unsigned from, unsigned to, bool is_signed);
/* x of `bits` shifted by a 32-bit amount. */
uint32_t ct_gen_shift(struct ct_gen *g, SpvOp op, unsigned bits, uint32_t x, uint32_t distance);
uint32_t ct_gen_shift_by(struct ct_gen *g, SpvOp op, unsigned bits, uint32_t x, unsigned distance);
uint32_t ct_gen_not(struct ct_gen *g, uint32_t condition); /* of a boolean */
/* Packs integers of a smaller width into one, lowest first, and unpacks them. */
uint32_t ct_gen_pack(struct ct_gen *g, const uint32_t *parts, unsigned n, unsigned part_bits);
void ct_gen_unpack(struct ct_gen *g, uint32_t id, unsigned n, unsigned part_bits, uint32_t *parts);
static inline uint32_t ct_gen_u32(struct ct_gen *g, uint32_t value)
{
    return ct_spv_const_u32(&g->m, value);
}

/* ---- emit_values.c: IR values ---- */
void ct_gen_plan_values(struct ct_gen *g); /* decides which forms and which variables are needed */
unsigned ct_gen_bits(const struct ct_gen *g, ct_value value);
uint32_t ct_gen_use(struct ct_gen *g, ct_value value);
uint32_t ct_gen_use_float(struct ct_gen *g, ct_value value);
void ct_gen_define(struct ct_gen *g, ct_value value, uint32_t id);
void ct_gen_define_float(struct ct_gen *g, ct_value value, uint32_t id);
void ct_gen_load_phis(struct ct_gen *g);  /* for the phis of g->block */
void ct_gen_store_phis(struct ct_gen *g); /* at the end of g->block, for its successors */
/* A new Function variable. */
uint32_t ct_gen_variable(struct ct_gen *g, uint32_t type);

/* ---- emit_variables.c ---- */
void ct_gen_share_variables(struct ct_gen *g); /* sets `shares` of phis */
/* The value of more than half of a phi's edges, and of some edges at least; 0: none. */
ct_value ct_gen_find_majority(const struct ct_insn *phi);

/* ---- emit_compare.c ---- */
/* finds values that are compared with each other both as signed and as unsigned; call before anything is emitted */
void ct_gen_find_pairs(struct ct_gen *g);
void ct_gen_compare(struct ct_gen *g, const struct ct_insn *insn);

/* ---- emit_bytes.c ---- */
/* OR or XOR that reverses bytes, in a form that no driver misinterprets; 0: it is another instruction. */
uint32_t ct_gen_byte_reversal_or_none(struct ct_gen *g, const struct ct_insn *insn);

/* ---- emit_products.c ---- */
void ct_gen_find_sums(struct ct_gen *g); /* finds the sums that use products; call before anything is emitted */
void ct_gen_product(struct ct_gen *g, const struct ct_insn *insn);

/* ---- emit_choices.c ---- */
/* Which special float has these bits, as a set with one element; 0: none. */
enum { CT_FLOAT_PLUS_ZERO = 1, CT_FLOAT_MINUS_ZERO = 2, CT_FLOAT_PLUS_ONE = 4, CT_FLOAT_MINUS_ONE = 8, CT_FLOAT_LARGEST = 16 };
unsigned ct_gen_float_kind(uint64_t constant, unsigned bits);
/* finds selections between constants that drivers misinterpret; call before anything is emitted */
void ct_gen_find_choices(struct ct_gen *g);
/* An operand of a select, a phi, or an integer or float operation, as an integer or a float that no driver misinterprets. */
uint32_t ct_gen_use_chosen(struct ct_gen *g, const struct ct_insn *insn, uint32_t operand);
uint32_t ct_gen_use_chosen_float(struct ct_gen *g, const struct ct_insn *insn, uint32_t operand);

/* ---- emit_contractions.c ---- */
void ct_gen_find_contractions(struct ct_gen *g); /* analyses the operands of split FFMAs; call before anything is emitted */
/* Those operands of a split FFMA, as a set, that would prevent the driver from making one operation of product and sum. */
unsigned ct_gen_hidden_from_contraction(const struct ct_gen *g, const struct ct_insn *insn);

/* ---- emit_factors.c ---- */
void ct_gen_find_factors(struct ct_gen *g); /* finds the values that the driver may know; call before anything is emitted */
/* Whether the first factor of an FFMA must be hidden from the driver. */
bool ct_gen_hides_factor(const struct ct_gen *g, const struct ct_insn *insn);

/* ---- emit_signs.c ---- */
bool ct_gen_must_hide_signs(const struct ct_fn *fn);
/* Whether the driver's compiler must not see a constant. */
bool ct_gen_is_hidden_sign(const struct ct_gen *g, unsigned bits, uint64_t constant);
/* An integer that no driver can know at compile time. */
uint32_t ct_gen_opaque(struct ct_gen *g, unsigned bits, uint32_t id);

/* ---- emit_arith.c, emit_float.c: arithmetic ---- */
/* An operand as an integer of `bits`, sign- or zero-extended according to the instruction's type. */
uint32_t ct_gen_widened(struct ct_gen *g, const struct ct_insn *insn, uint32_t operand, unsigned bits);
void ct_gen_integer(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_float(struct ct_gen *g, const struct ct_insn *insn);

/* The bits of a constant that is a float zero, if the target must not recognize it; 0: it is no such constant. */
uint32_t ct_gen_hidden_zero_or_none(struct ct_gen *g, ct_value value);

/* ---- emit_memory.c: loads and stores in any space ---- */
/* An access as memory sees it: `count` consecutive integers of `bits` each. */
struct ct_access {
    const struct ct_insn *insn; /* for semantics, scope */
    uint32_t address;           /* id: 64 bits wide for GLOBAL, 32 for SHARED and LOCAL */
    int64_t offset;
    unsigned bits, count;
    uint32_t align; /* in bytes */
};
void ct_gen_load(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_store(struct ct_gen *g, const struct ct_insn *insn);
bool ct_gen_is_strong(const struct ct_insn *insn); /* volatile, relaxed, acquire, ... */
/* An access to a generic address: emitted once for each space to which it may belong, each after a test of the tag; the results are
 * merged. */
struct ct_dispatch {
    /* Emits the access in one space; address: 64 bits for GLOBAL, else 32. */
    void (*arm)(struct ct_gen *g, enum ct_space space, uint32_t address, void *user, uint32_t *results);
    void *user;
    const uint32_t *types; /* of the results */
    uint32_t n_results;
    bool never_local;
};
void ct_gen_dispatch(struct ct_gen *g, uint32_t address, const struct ct_dispatch *dispatch, uint32_t *results);

/* ---- emit_pointers.c: accesses through pointers ---- */
uint32_t ct_gen_global_pointer(struct ct_gen *g, uint32_t address, int64_t offset, uint32_t type);
/* The same for an address to which the rule for pointers has been applied. */
uint32_t ct_gen_device_pointer(struct ct_gen *g, uint32_t address, int64_t offset, uint32_t type);
/* 0, which no driver can know to be 0 at compile time. */
uint32_t ct_gen_opaque_zero(struct ct_gen *g, unsigned bits);
void ct_gen_load_pointed(struct ct_gen *g, enum ct_space space, const struct ct_access *access, uint32_t *units);
void ct_gen_store_pointed(struct ct_gen *g, enum ct_space space, const struct ct_access *access, const uint32_t *units);

/* ---- emit_words.c: shared and local memory as arrays, where they have no pointers ---- */
uint32_t ct_gen_local_array(struct ct_gen *g);
uint32_t ct_gen_shared_pointer(struct ct_gen *g, enum ct_shared_view view, uint32_t address, int64_t offset);
void ct_gen_load_words(struct ct_gen *g, enum ct_space space, const struct ct_access *access, uint32_t *units);
void ct_gen_store_words(struct ct_gen *g, enum ct_space space, const struct ct_access *access, const uint32_t *units);

/* ---- emit_wide.c: shared memory as an array of 64-bit words ---- */
bool ct_gen_wants_wide_words(const struct ct_fn *fn);
enum ct_shared_view ct_gen_words_view(const struct ct_fn *fn);
/* A 32-bit item at address + offset. */
uint32_t ct_gen_wide_load(struct ct_gen *g, uint32_t address, int64_t offset, uint32_t scope, uint32_t semantics);
struct ct_wide_update {
    uint32_t address;
    int64_t offset;
    uint32_t scope, semantics, semantics_unequal;                          /* ids; for a successful and for a failed exchange */
    uint32_t (*replace)(struct ct_gen *g, uint32_t old, const void *user); /* computes the new item */
    const void *user;
};
/* Replaces a 32-bit item atomically; returns its old value. */
uint32_t ct_gen_wide_update(struct ct_gen *g, const struct ct_wide_update *update);

/* ---- emit_atomic.c: atomics, fences, barriers ---- */
void ct_gen_atomic(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_fence(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_barrier(struct ct_gen *g, const struct ct_insn *insn);
static inline uint32_t ct_gen_scope(struct ct_gen *g, enum ct_space space, uint8_t scope)
{
    return g->dialect->scope(g, space, scope);
}
static inline uint32_t ct_gen_semantics(struct ct_gen *g, uint8_t semantics)
{
    return g->dialect->semantics(g, semantics);
}
/* The memory barrier after an acquire load or in front of a release store. */
void ct_gen_order(struct ct_gen *g, const struct ct_insn *insn, enum ct_space space);

/* ---- emit_warp.c: subgroup operations ---- */
uint32_t ct_gen_subgroup_lane(struct ct_gen *g); /* the number of the lane in its subgroup */
void ct_gen_laneread(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_ballot(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_warpsync(struct ct_gen *g, const struct ct_insn *insn);

/* ---- emit_matrix.c: matrix units ---- */
void ct_gen_matrix_mad(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_matrix_load(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_matrix_size(struct ct_gen *g, const struct ct_insn *insn);

/* ---- emit_entry.c: the entry point, system values and parameters ---- */
void ct_gen_begin_entry(struct ct_gen *g);
void ct_gen_end_entry(struct ct_gen *g);
uint32_t ct_gen_sysval(struct ct_gen *g, enum ct_sysval which);
/* 0, computed from a number of 32 bits at the function's start. The driver can know neither that it is 0, nor that it is the same for all threads if the number is not. */
uint32_t ct_gen_early_zero_of(struct ct_gen *g, uint32_t number);
void ct_gen_clock(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_load_param(struct ct_gen *g, const struct ct_insn *insn);
uint32_t ct_gen_global_variable(struct ct_gen *g, SpvStorageClass storage, uint32_t type);
/* Declares float execution modes for the widths in use, as far as the device supports them. Returns whether there are any. */
bool ct_gen_float_modes(struct ct_gen *g);
void ct_gen_subroutine(struct ct_gen *g, const struct ct_insn *insn); /* the call */
void ct_gen_argument(struct ct_gen *g, const struct ct_insn *insn);
void ct_gen_result(struct ct_gen *g, const struct ct_insn *insn);
/* The functions that have been called. To be used after the kernel's last instruction: it takes the place of the kernel in g. */
void ct_gen_subroutines(struct ct_gen *g);

/* ---- emit_control.c: the tree, blocks and labels ---- */
void ct_gen_positions(struct ct_gen *g); /* fills in g->positions */
void ct_gen_tree(struct ct_gen *g);
uint32_t ct_gen_label(struct ct_gen *g);
void ct_gen_begin_block(struct ct_gen *g, uint32_t label);
void ct_gen_branch(struct ct_gen *g, uint32_t label);
/* A selection; the merge block is emitted later. */
void ct_gen_branch_if(struct ct_gen *g, uint32_t condition, uint32_t if_true, uint32_t if_false, uint32_t merge);
/* Notes that the code so far ends with a barrier of the work-group. */
void ct_gen_cut(struct ct_gen *g);

/* ---- emit.c ---- */
void ct_gen_code(struct ct_gen *g); /* the blocks of g->fn */
void ct_gen_insn(struct ct_gen *g, const struct ct_insn *insn);

#endif
