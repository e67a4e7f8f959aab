/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between build.c, which walks a function's statements, and the instruction families (build_*.c). */
#ifndef PTX2SPV_BUILD_H
#define PTX2SPV_BUILD_H
/* Parts: build_atomic.c, build_bits.c, build_control.c, build_copy.c, build_frame.c, build_matrix_probe.c, build_move.c, build_operand.c, build_stack.c, build_texture.c,
 * build_video.c, build_video_scalar.c, build_warp.c. */

#include "ptx2spv/ir/builder.h"

struct ct_build;

/* Builds the instruction b->insn at b->at. Errors are reported with ct_error; building continues, to find further errors. */
typedef void (*ct_build_fn)(struct ct_build *b);

enum ct_guarding {
    CT_GUARD_SELECT, /* affects only registers: always executed, its results are selected by the guard */
    CT_GUARD_BRANCH, /* built in a block of its own, which is executed only if the guard is true */
    CT_GUARD_SELF,   /* the handler evaluates the guard */
};

struct ct_build_rule { /* one row of build.def */
    ct_build_fn build;
    uint8_t guarding;             /* enum ct_guarding */
    uint8_t integer_op, float_op; /* enum ct_op, for handlers that serve several opcodes */
};

struct ct_frame_entry { /* the frame object of a PTX variable */
    const struct ptx_variable *variable;
    uint32_t local; /* index in fn->locals + 1 */
};

struct ct_build {
    struct ct_fn *fn;
    const struct ptx_function *source;
    const struct ptx_body *syntax; /* of source */
    struct ct_body *body;
    struct ct_cursor at;
    const struct ptx_instruction *insn; /* the current instruction, its rule, */
    const struct ct_build_rule *rule;
    ct_value guard;               /* and, with CT_GUARD_SELECT, its guard while results are written */
    ct_value *registers;          /* by ptx_register.index: the value of the first component or half; the values of the others follow it */
    ct_value carry;               /* CC.CF: 0 or 1, 32 bits; created at its first use */
    struct ct_block **targets;    /* by statement: the block that begins there, if it has a label */
    struct ct_frame_entry *frame; /* hash table of the frame's variables, with open addressing */
    uint32_t frame_mask;
    struct {
        uint32_t local;      /* a frame object, or 0 */
        ct_value pointer;    /* the lowest address in use, 32 bits */
    } stack;                 /* of alloca */
    ct_value multicast_rank; /* while a copy to several blocks of a cluster is built: the rank of the block that gets it; else none */
    const struct ptx_instruction *built_until; /* matrix instructions before it have been built with an earlier one */
    uint32_t *param_offsets;                   /* entries only: byte offset of each parameter in the parameter block */
};

/* ---- build_frame.c ---- */
/* The instruction, or `what` of it unless NULL, is legal PTX that this compiler does not support: a thread that gets there stops with a fault,
 * and a kernel that cannot avoid it is refused (passes/refuse.c). */
void ct_build_unsupported(struct ct_build *b, const char *what);
void ct_build_invalid(struct ct_build *b, const char *why);
struct ct_block *ct_build_block(struct ct_build *b);         /* creates a block */
void ct_build_jump(struct ct_build *b, struct ct_block *to); /* ends the current block */
void ct_build_branch(struct ct_build *b, ct_value condition, struct ct_block *yes, struct ct_block *no);
void ct_build_terminate(struct ct_build *b, enum ct_op op);      /* RET, EXIT, UNREACHABLE; continues in a dead block */
void ct_build_enter(struct ct_build *b, struct ct_block *block); /* continues at the end of `block` */
ct_value ct_build_guard(struct ct_build *b);                     /* the guard, negated if so written; CT_NO_VALUE if the instruction has
                                                                    none */
struct ct_block *ct_build_label(struct ct_build *b, const struct ptx_label *label);
/* The frame object of a .local variable, of a .param variable in the body, or of a function's parameter; 0 if there is none. */
uint32_t ct_build_frame_object(struct ct_build *b, const struct ptx_variable *variable);
uint32_t ct_build_new_local(struct ct_build *b, const struct ptx_variable *variable, uint64_t size_bytes, uint32_t align);
/* The byte offset of an entry's parameter in the parameter block; false if the variable is not such a parameter. */
bool ct_build_param_offset(const struct ct_build *b, const struct ptx_variable *variable, uint64_t *out);

/* Creates the objects of all variables of the function, once, at its start. */
void ct_build_add_frame_variables(struct ct_build *b);

/* ---- build_operand.c ---- */
bool ct_build_has(const struct ct_build *b, unsigned index); /* whether the instruction has this operand, and it is not `_` */
/* The operand of a video instruction without its selector and sign. */
struct ptx_operand ct_build_whole_word(const struct ptx_operand *operand);
/* Reads a scalar source operand as `type`; the value has the width of that type. */
ct_value ct_build_read(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type);
ct_value ct_build_source(struct ct_build *b, unsigned index, enum ptx_type type);
/* Whether source `index` is an integer constant; *bits gets its value. */
bool ct_build_constant(const struct ct_build *b, unsigned index, uint64_t *bits);
/* Assigns to a destination register (`_`: no effect) under the guard; the value is truncated, or extended as `type` says, to the
 * register's width. */
void ct_build_write(struct ct_build *b, const struct ptx_operand *operand, ct_value value, enum ptx_type type);
/* The same for destination 0. */
void ct_build_result(struct ct_build *b, ct_value value, enum ptx_type type);
/* The width of a destination register, or of `type` for `_`, for instructions that must know it before they compute. */
enum ct_width ct_build_width(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type);
/* The items of a vector operand; a scalar operand is its only item. */
const struct ptx_operand *ct_build_items(const struct ptx_operand *operand, uint32_t *count);
/* The same, with each value split into parts: a whole vector register into its components, 128 bits into two halves, the lower one
 * first. The parts have type ct_part_type(type). */
const struct ptx_operand *ct_build_parts(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type, uint32_t *count);
enum ptx_type ct_part_type(enum ptx_type type);
/* The number of values of a register; they have consecutive numbers, from that in b->registers on. */
unsigned ct_register_parts(const struct ptx_register *reg);
/* The address of a variable in its own state space plus an offset, as a value of `width`. */
ct_value ct_build_address_of(struct ct_build *b, const struct ptx_variable *variable, int64_t offset, enum ct_width width);
/* The address of the element of an array that a register selects (operand->reg), in the array's own state space. */
ct_value ct_build_element_address(struct ct_build *b, const struct ptx_operand *operand, enum ct_width width);
/* The address of a frame object, 32 bits. */
ct_value ct_build_local_address(struct ct_build *b, uint32_t local);
/* The address of the image that contains a .global or .const variable. */
ct_value ct_build_image_base(struct ct_build *b, const struct ptx_variable *variable);
/* The handle that a texture or surface reference contains at a byte offset: that of element offset / 8 of an array of references. */
ct_value ct_build_handle(struct ct_build *b, const struct ptx_variable *variable, int64_t offset);
ct_value ct_build_special_register(struct ct_build *b, enum ptx_sreg sreg, int component);
/* Loads a scalar operand from a frame object, or stores it there: for parameters that are in registers. */
void ct_build_move_object(struct ct_build *b, uint32_t local, enum ptx_type type, const struct ptx_operand *operand, bool load);

/* ---- build_stack.c ---- */
/* At the entry of a function: creates its stack, if it uses one. */
void ct_build_prepare_stack(struct ct_build *b);

/* ---- build_texture.c ---- */
/* Calls a function with 32-bit and 64-bit arguments, whose result consists of n values of a type. */
void ct_build_function_call(struct ct_build *b, struct ptx_function *callee, const ct_value *arguments, uint32_t n_arguments,
                            enum ptx_type type, ct_value *results, uint32_t n);

/* ---- build_warp.c ---- */
/* Whether the lanes of a warp can read each other's registers (LANEREAD, BALLOT). The kernel is then compiled for native warps only. */
bool ct_build_may_read_lanes(struct ct_build *b);

/* ---- build_matrix_probe.c ---- */
/* The body of a kernel that is compiled with options.probe_matrices. */
void ct_build_matrix_probe(struct ct_build *b);

/* ---- families ---- */
#define BUILD(opcode, handler, guarding, integer_op, float_op) void ct_build_##handler(struct ct_build *b);
#include "build.def"

#endif
