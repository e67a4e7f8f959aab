/* SPDX-License-Identifier: Apache-2.0 */
/* Between build.c, which walks a function's statements, and the families of instructions (build_*.c). */
#ifndef PTX2SPV_BUILD_H
#define PTX2SPV_BUILD_H

#include "ptx2spv/ir/builder.h"

struct ct_build;

/* Builds the instruction b->insn at b->at. An error is reported with ct_error, and the walk goes on for further ones. */
typedef void (*ct_build_fn)(struct ct_build *b);

enum ct_guarding {
    CT_GUARD_SELECT, /* no effect but on registers: computed always, kept where the guard holds */
    CT_GUARD_BRANCH, /* built in a block of its own, which only threads with the guard enter */
    CT_GUARD_SELF,   /* the handler reads the guard */
};

struct ct_build_rule { /* a row of build.def */
    ct_build_fn build;
    uint8_t guarding;             /* enum ct_guarding */
    uint8_t integer_op, float_op; /* enum ct_op, for the handlers that serve many opcodes */
};

struct ct_place { /* where a PTX variable of a function's frame lives */
    const struct ptx_variable *variable;
    uint32_t local; /* index in fn->locals + 1 */
};

struct ct_build {
    struct ct_fn *fn;
    const struct ptx_function *source;
    struct ct_body *body;
    struct ct_cursor at;
    const struct ptx_instruction *insn; /* the current one, its rule, */
    const struct ct_build_rule *rule;
    ct_value guard;            /* and its guard while results are written under CT_GUARD_SELECT */
    ct_value *registers;       /* by ptx_register.index: the value of the first component or half; others follow it */
    ct_value carry;            /* CC.CF: 0 or 1, 32 bits; made at its first use */
    struct ct_block **targets; /* by statement: the block that begins there, where a label stands */
    struct ct_place *places;   /* open-addressed hash of frame variables */
    uint32_t places_mask;
    uint32_t *param_offsets; /* entries: byte offset of each parameter in the parameter block */
};

/* ---- build.c ---- */
/* Reports that the instruction, or `what` of it unless NULL, is legal PTX that this compiler lacks. */
void ct_build_unsupported(struct ct_build *b, const char *what);
void ct_build_invalid(struct ct_build *b, const char *why);
struct ct_block *ct_build_block(struct ct_build *b);         /* a new one */
void ct_build_jump(struct ct_build *b, struct ct_block *to); /* ends the current block */
void ct_build_branch(struct ct_build *b, ct_value condition, struct ct_block *yes, struct ct_block *no);
void ct_build_terminate(struct ct_build *b, enum ct_op op);      /* RET, EXIT, UNREACHABLE; goes on in a dead block */
void ct_build_enter(struct ct_build *b, struct ct_block *block); /* goes on at the end of block */
ct_value ct_build_guard(struct ct_build *b);                     /* the guard with its negation; CT_NO_VALUE if the instruction has none */
struct ct_block *ct_build_label(struct ct_build *b, const struct ptx_label *label);
/* The frame object of a .local or body-level .param variable, or of a function's parameter. 0 if it is none. */
uint32_t ct_build_place(struct ct_build *b, const struct ptx_variable *variable);
uint32_t ct_build_new_local(struct ct_build *b, const struct ptx_variable *variable, uint64_t size_bytes, uint32_t align);
/* Byte offset of an entry's parameter in the parameter block; false if the variable is not one. */
bool ct_build_param_offset(const struct ct_build *b, const struct ptx_variable *variable, uint64_t *out);

/* ---- build_operand.c ---- */
bool ct_build_has(const struct ct_build *b, unsigned index); /* the instruction has such an operand, not `_` */
/* A scalar source read as `type`; its width is that of the type. */
ct_value ct_build_read(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type);
ct_value ct_build_source(struct ct_build *b, unsigned index, enum ptx_type type);
/* True if source `index` is an integer constant; *bits gets it. */
bool ct_build_constant(const struct ct_build *b, unsigned index, uint64_t *bits);
/* Assigns to a destination register (or nowhere: `_`), under the guard; cut or, as `type` says, extended to its width. */
void ct_build_write(struct ct_build *b, const struct ptx_operand *operand, ct_value value, enum ptx_type type);
/* The same for destination 0. */
void ct_build_result(struct ct_build *b, ct_value value, enum ptx_type type);
/* For instructions that must fix their width before they compute: that of a destination register, or of type for `_`. */
enum ct_width ct_build_width(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type);
/* A scalar operand or the items of a vector one. */
const struct ptx_operand *ct_build_items(const struct ptx_operand *operand, uint32_t *count);
/* The same, with each value of the type taken apart: a whole vector register into its components, 128 bits into two halves, the lower one
 * first. The parts' type is ct_part_type(type). */
const struct ptx_operand *ct_build_parts(struct ct_build *b, const struct ptx_operand *operand, enum ptx_type type, uint32_t *count);
enum ptx_type ct_part_type(enum ptx_type type);
/* How many values the register has, one behind the other from b->registers on. */
unsigned ct_register_parts(const struct ptx_register *reg);
/* The address of a variable as a number (in its own space), with an offset; as wide as `width`. */
ct_value ct_build_address_of(struct ct_build *b, const struct ptx_variable *variable, int64_t offset, enum ct_width width);
/* Where the image begins that a .global or .const variable lies in. */
ct_value ct_build_image_base(struct ct_build *b, const struct ptx_variable *variable);
ct_value ct_build_special(struct ct_build *b, enum ptx_sreg sreg, int component);
/* Loads a scalar operand from a frame object, or stores it there: parameters that stand in registers. */
void ct_build_move_object(struct ct_build *b, uint32_t local, enum ptx_type type, const struct ptx_operand *operand, bool load);

/* ---- families ---- */
#define BUILD(opcode, handler, guarding, integer_op, float_op) void ct_build_##handler(struct ct_build *b);
#include "build.def"

#endif
