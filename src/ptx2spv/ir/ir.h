/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler's intermediate representation: one function (a kernel, with or without the functions that it calls) as basic blocks.
 *
 * The IR has two forms. After `build`, values are registers: any number of instructions may define one, and a read sees the last write.
 * After `ssa`, every value has one definition, which dominates its uses, and phis stand at the head of blocks. fn->props says which
 * properties hold; verify.c checks exactly those. Passes that change the graph (inline, make_reducible, cutting at synchronization points) run
 * in register form, where blocks can be split and copied without repairing SSA form. */
#ifndef PTX2SPV_IR_H
#define PTX2SPV_IR_H
/* Parts: cfg.c, dump.c, verify.c. */

#include "ptx2spv/syntax/ast.h"
#include "ptx2spv/module/compilation.h"

#include <stdbool.h>
#include <stdint.h>

enum ct_op {
#define IR_OP(id, name, results, operands, flags) CT_OP_##id,
#include "ir_ops.def"
    CT_OP_COUNT
};

enum ct_op_flags { CT_OPF_PURE = 1, CT_OPF_EFFECT = 2, CT_OPF_TERMINATOR = 4, CT_OPF_PRIMITIVE = 8, CT_OPF_RICH = 16, CT_OPF_FLOAT = 32 };
struct ct_op_info {
    const char *name;
    int8_t results, operands;
    uint8_t flags;
};
extern const struct ct_op_info ct_op_infos[CT_OP_COUNT];

enum ct_width { CT_W_PRED, CT_W_16, CT_W_32, CT_W_64 };
unsigned ct_width_bits(enum ct_width width);   /* PRED is 1 */
enum ct_width ct_width_of(enum ptx_type type); /* 8-bit types: CT_W_16 */

typedef struct {
    uint32_t i; /* index in fn->values, 0 is none */
} ct_value;
#define CT_NO_VALUE ((ct_value){0})

/* System values: what a kernel reads of its launch and its device. They have 32 bits unless stated otherwise. */
enum ct_sysval {
    CT_SYS_NONE,
    CT_SYS_TID_X,
    CT_SYS_TID_Y,
    CT_SYS_TID_Z,
    CT_SYS_NTID_X,
    CT_SYS_NTID_Y,
    CT_SYS_NTID_Z,
    CT_SYS_CTAID_X,
    CT_SYS_CTAID_Y,
    CT_SYS_CTAID_Z,
    CT_SYS_NCTAID_X,
    CT_SYS_NCTAID_Y,
    CT_SYS_NCTAID_Z,
    CT_SYS_TID_LINEAR,    /* threadIdx.x + x*(y + y*z): the thread's number in its block */
    CT_SYS_BLOCK_THREADS, /* ntid.x * ntid.y * ntid.z */
    CT_SYS_LANEID,
    CT_SYS_SMID,
    CT_SYS_NSMID,
    CT_SYS_SHARED_BYTES,         /* static and dynamic part */
    CT_SYS_DYNAMIC_SHARED_BYTES, /* rounded up to whole words */
    CT_SYS_EXCHANGE_BASE,        /* offset of the exchange area in the shared segment, after both parts: see sync.h */
    CT_SYS_MATRIX_BASE, /* offset of the warp's buffer in the matrix area, for the next matrix instruction: `collective` replaces it */
    CT_SYS_IMAGE_BASE,  /* 64 bits: CUDA address of the module's image */
    CT_SYS_FAULT_BASE,  /* 64 bits: CUDA address of struct ptx2spv_fault */
    CT_SYS_PARAM_BASE,  /* 64 bits: CUDA address of the parameter block; an instruction that reads it sets fn->params_in_buffer */
    CT_SYS_TID_X_64,    /* 64 bits: CT_SYS_TID_X (OpenCL) */
    CT_SYS_COUNT
};

/* Generic addresses are tagged. A global address is the CUDA address itself, a host address of at most 57 bits, so the top byte is free
 * for the tag. */
#define CT_TAG_SHIFT 56
#define CT_TAG_SHARED 0x53u /* low 32 bits: offset in the block's shared segment */
#define CT_TAG_LOCAL 0x4cu  /* low 32 bits: offset in the thread's local memory */

/* The address of a function is its number with a tag of its own, so that it differs from null, from every integer and from every data
 * address. */
#define CT_TAG_FUNCTION 0x46u
static inline uint64_t ct_function_address(const struct ptx_function *function)
{
    return (uint64_t)CT_TAG_FUNCTION << CT_TAG_SHIFT | function->address_number;
}

/* Whether shared memory can be accessed in other widths than 32-bit words. */
static inline bool ct_target_has_views(const struct ptx2spv_target *target)
{
    return target->dialect == PTX2SPV_OPENCL || target->shared_explicit_layout;
}

enum ct_space { CT_SPACE_GENERIC, CT_SPACE_GLOBAL, CT_SPACE_SHARED, CT_SPACE_LOCAL, CT_SPACE_PARAM };

struct ct_block;

struct ct_insn {
    enum ct_op op;
    enum ptx_type type, type2;
    uint8_t compare;   /* enum ptx_compare */
    uint8_t rounding;  /* enum ptx_rounding; NONE means RN */
    uint8_t operation; /* enum ptx_operation: ATOM, BARRIER red, REDUX */
    uint8_t mode;      /* enum ptx_mode; MATRIXLOAD, MATRIXSIZE: enum ptx2spv_matrix_use */
    uint8_t space;     /* enum ct_space */
    uint8_t semantics; /* enum ptx_semantics */
    uint8_t scope;     /* enum ptx_scope */
    uint8_t align_log2;
    uint8_t sreg; /* enum ct_sysval */
    bool ftz, sat, approx, nan, read_only /* ld.global.nc, const: the memory does not change while the kernel runs */;
    bool aligned;            /* BARRIER: all threads of a warp that have not ended reach it together */
    bool guarded;            /* FFMA of f32 with subnormals by an Fma that flushes them: set by `lower`, handled by `guard` */
    bool ignores_subnormals; /* FADD, FSUB and FMUL of f32: it may flush subnormals, since PTX leaves that open or there are none */
    bool residual;           /* FFMA of f32 whose single rounding matters: set by residuals.c, for targets that split others */
    bool split;              /* FFMA of f32: a product and a sum, which may be contracted: set by `lower`, for the emitter */
    bool refined;            /* FCMP, FRSQRT of f32 with subnormals; FSQRT, FDIV of 1, FFMA in f64: set by `lower`, handled by `refine` */
    bool is_device;          /* LOAD, STORE and ATOM in GLOBAL: the rule for pointers has been applied to the address (offsets.c) */
    bool is_element;         /* ADD of 64 bits: operand 0 is the address of an array, operand 1 the distance of a thread's element
                                      from it: set by indices.c, for the emitter */
    bool is_async;           /* STORE: of cp.async; it may be executed later, before the next ASYNCWAIT */
    bool is_checked;         /* LOAD, STORE and ATOM: an access of the program, which `check` examines; set with options.check only */
    uint64_t imm;            /* CONST; SAMPLE, IMAGESIZE: enum ptx2spv_image_shape; MATRIX...: number of the matrix */
    int64_t offset;          /* LOAD, STORE, ATOM */
    uint32_t local;          /* LOCALADDR; LOAD and STORE without an address operand: index in fn->locals + 1; 0 none */
    uint32_t saved;          /* LOAD, STORE of a register by activations.c: its number; a load gives what a store of that number stored */
    struct ptx_variable *variable; /* SHAREDADDR */
    struct ptx_function *callee;   /* CALL; for an indirect call a prototype, or any function with the same parameters */
    uint32_t *call_locals;         /* CALL: local objects (index + 1) for the callee's n_params inputs, then for its n_results results */
    struct ptx_targets *targets;   /* indirect CALL: the functions that it may call, or NULL */
    ct_value *results;
    ct_value *operands;
    uint32_t n_results, n_operands;
    struct ct_block *block;
    struct ct_insn *prev, *next; /* in the block */
    struct ct_location where;
};

struct ct_value_info {
    enum ct_width width;
    struct ct_insn *def; /* SSA only */
    uint32_t name;       /* for dumps: number of the PTX register that it stands for, 0 none */
};

struct ct_block {
    uint32_t id;                     /* stable; index in fn->blocks */
    struct ct_insn *first, *last;    /* last is the terminator once the block is complete */
    CT_VEC(struct ct_block *) preds; /* computed by ct_fn_compute_preds; one entry for each edge */
    struct ct_block **succs;
    uint32_t n_succs;
    /* results of analyses; valid if fn->props has the property named */
    uint32_t rpo;                 /* reverse postorder number, entry 0; UINT32_MAX unreachable (CT_PROP_RPO) */
    struct ct_block *idom;        /* NULL for the entry (CT_PROP_DOM) */
    uint32_t dom_pre, dom_post;   /* intervals in the dominator tree: a dominates b iff a.pre <= b.pre && b.post <= a.post */
    struct ct_block *loop_head;   /* header of the innermost loop that contains this block (itself if it is a header); NULL none
                                   (CT_PROP_LOOPS) */
    struct ct_block *loop_parent; /* loop headers: header of the enclosing loop; NULL none */
    uint32_t loop_depth;
};

enum ct_props {
    CT_PROP_CALLS_INLINED = 1,
    CT_PROP_SYNCHRONIZED = 1024, /* every barrier is one of the whole block; warp instructions remain only where the target has them */
    CT_PROP_LAID_OUT = 512,      /* no LOCALADDR, SHAREDADDR, insn->local */
    CT_PROP_REDUCIBLE = 2,
    CT_PROP_SSA = 4,
    CT_PROP_SPACES = 8,      /* `addrspace` has run: accesses that are still GENERIC remain so */
    CT_PROP_LOWERED = 16,    /* there are only primitive operations */
    CT_PROP_STRUCTURED = 32, /* fn->body is set */
    CT_PROP_RPO = 64,
    CT_PROP_DOM = 128,
    CT_PROP_LOOPS = 256,                                       /* results of the analyses are up to date */
    CT_PROP_GRAPH = CT_PROP_RPO | CT_PROP_DOM | CT_PROP_LOOPS, /* what a change of the graph invalidates */
};

/* ---- structured form (structurize.c -> emit) ----
 * A tree of statement lists. The regions are LOOP, SCOPE and SWITCH. A jump names the region that it leaves (BREAK) or continues
 * (CONTINUE): the innermost enclosing region, or the innermost enclosing LOOP (also from within SCOPEs and SWITCHes inside of it; SPIR-V
 * allows just these). A jump is the last node of its list. Control that reaches the end of a list continues after the node that
 * contains the list; at the end of a LOOP's body, with the next iteration; at the end of the function's list, the thread ends. A jump
 * that leaves several regions sets the selector of the region that it leaves, and TEST nodes after that region continue it. The tree is
 * at most CT_NODE_DEPTH_MAX deep. */
enum ct_node_kind {
    CT_NODE_BLOCK,    /* the straight-line code of `block` without its terminator, and the assignments to the phis of its successors */
    CT_NODE_IF,       /* `condition`: then_list, else_list */
    CT_NODE_SWITCH,   /* `condition`: cases, each a list; an index past the end selects the last one */
    CT_NODE_LOOP,     /* then_list, as an endless loop */
    CT_NODE_SCOPE,    /* then_list, once */
    CT_NODE_BREAK,    /* leaves `region` */
    CT_NODE_CONTINUE, /* continues with the next iteration of `region`, a LOOP */
    CT_NODE_RETURN,   /* the thread ends */
    CT_NODE_UNREACHABLE,
    CT_NODE_SET,   /* selector `variable` = `number` */
    CT_NODE_TEST,  /* if (selector `variable` == `number`) then_list: continues a jump that leaves several regions */
    CT_NODE_GUARD, /* if (selector `variable` <= `number`) then_list: some parts of a sequence (structurize.c) */
};
#define CT_NODE_DEPTH_MAX 1000      /* SPIR-V guarantees 1023 ("Universal Limits", control-flow nesting depth) */
#define CT_SWITCH_TARGETS_MAX 16384 /* SPIR-V guarantees 16383 pairs of a literal and a label; the last target is the default */
struct ct_node {
    enum ct_node_kind kind;
    struct ct_node *next, *prev; /* in the list */
    struct ct_node *parent;      /* the node that contains the list; NULL: the function */
    uint32_t slot;               /* which list of the parent: 0 then_list, 1 else_list; SWITCH: number of the case */
    uint32_t id;                 /* in order of creation */
    struct ct_block *block;      /* BLOCK */
    ct_value condition;
    struct ct_node *then_list, *else_list;
    struct ct_node **cases;
    uint32_t n_cases;
    struct ct_node *region; /* BREAK, CONTINUE */
    uint32_t variable, number;
    struct ct_block *header; /* LOOP: its header, for dumps */
};

#define CT_FRAME_BYTES_MAX (16u << 20)
/* A .local or function-scope .param variable of one inlined instance of a function. */
struct ct_local {
    const struct ptx_variable *variable; /* for dumps */
    uint64_t size_bytes;                 /* at least that of every object whose storage this is; likewise the alignment */
    uint32_t align;
    uint32_t offset;  /* in the frame, from layout on */
    uint32_t same_as; /* index + 1 of the object whose storage this one shares (a formal parameter and its argument, after inline); 0:
                           it has its own */
    uint32_t owner;   /* index + 1 in fn->called: each activation of that function has an object of its own; 0: there is one */
    bool promoted;    /* held in registers: needs no storage */
};

/* A .shared variable that the kernel refers to. */
struct ct_shared_object {
    struct ptx_variable *variable;
    uint32_t offset; /* from layout on */
};

/* A function that has one instance for several calls, and a call of one: see activations.c. */
struct ct_called_function {
    struct ct_block *entry, *leave; /* where all its calls lead; where all its returns lead: a switch to the ends of the calls */
    uint32_t cycle;                 /* the same for functions of a cycle that was entered in the same place */
    bool is_recursive;              /* it is in a cycle; false: it is out of line so that the kernel is smaller */
    ct_value caller;                /* 32 bits: the number of the call among the successors of `leave` */
};
struct ct_call {
    uint32_t callee;              /* index in fn->called */
    uint32_t caller;              /* index + 1 of the function that calls; 0: the kernel */
    bool saves;                   /* the caller's registers are stored: the call is within a cycle, or of a function that is out of line */
    struct ct_block *begin, *end; /* copies the arguments and jumps to the callee's entry; copies the results and goes on */
};

/* A lowered sequence that a kernel calls: see lower_subroutine.c. */
struct ct_subroutine {
    struct ct_fn *fn;                /* straight-line code from ARGUMENTs to RESULT */
    const struct ct_insn *operation; /* what fn computes: an instruction of fn until fn is lowered */
    uint32_t flushed;                /* the set of arguments that are known not to be subnormal f32 */
};

/* An instruction that is not supported: the place has a fault, and then `end`, an EXIT. */
struct ct_refusal {
    const struct ct_insn *end;
    const char *text;
};

/* One kernel being compiled, or one of its subroutines. */
struct ct_fn {
    struct ct_compilation *compilation;
    const struct ptx_module *module;
    const struct ptx_function *source;
    const struct ptx2spv_target *target;
    const char *name;
    uint32_t props; /* enum ct_props */
    CT_VEC(struct ct_value_info) values;
    CT_VEC(struct ct_block *) blocks; /* blocks[0] is the entry; dead ones are removed by ct_fn_remove_unreachable */
    CT_VEC(struct ct_local) locals;
    CT_VEC(struct ct_shared_object) shared;
    CT_VEC(struct ct_refusal) refusals;
    CT_VEC(struct ct_called_function) called;
    CT_VEC(struct ct_call) calls;
    CT_VEC(struct ct_subroutine) subroutines; /* those that SUBROUTINE instructions call */
    const struct ptx_body **bodies; /* by the functions' numbers: those that were parsed again; NULL: none yet (module/bodies.h) */
    struct ct_fn *kernel;           /* of a subroutine: the kernel that has it; NULL in a kernel */
    bool expands_software64;        /* a subroutine of software64, in which no other one is called for an operation on f64 */
    /* memory layout */
    uint32_t shared_bytes; /* static part of .shared */
    uint32_t dynamic_shared_offset;
    uint32_t local_bytes;         /* size of the .local frame; inlining enlarges it */
    uint32_t local_program_bytes; /* of its beginning: what the program has there */
    uint32_t local_written;       /* set by local_shadow.c: where the frame has bytes for those that are written; 0: it has none */
    uint32_t local_align;
    uint32_t n_saved;     /* set by activations.c: numbers of registers that it stores */
    uint32_t stack_bytes; /* set by activations.c: what activations of recursive functions have of the frame; 0: there are none */
    uint32_t exchange_words, exchange_thread_words; /* the exchange area: its fixed part, and its part for each thread of the block; 0
                                                       none */
    uint32_t matrix_words;                          /* of a lane in a buffer of the matrix area (matrix_area.c) */
    uint32_t registers;                             /* estimate of the 32-bit registers that a thread needs; set by the pass `registers` */
    bool uses_shared, uses_subgroups, linear_block; /* set by emit: struct ptx2spv_kernel_info */
    bool cooperative;           /* compiled for cooperative launches: there is one more parameter, the address of a struct ptx2spv_grid */
    uint32_t grid_param_offset; /* offset of that parameter */
    bool clusters;              /* compiled for clusters of several blocks: addresses in shared memory may have a rank (cluster.c) */
    bool uses_cluster_barrier;  /* only with clusters; build_cluster.c */
    ct_value cluster_state;     /* 32 bits: the upper half of the barrier's word when this thread arrived */
    ct_value cluster_arrived;   /* predicate: it has arrived, and not waited yet */
    bool shared_in_memory;      /* set by shared_slots.c: there is one more parameter, a struct ptx2spv_slots */
    uint32_t slots_param_offset;
    uint32_t number_param_offset;      /* of one more parameter, the launch's number: set by build; 0: the kernel does not read %gridid */
    uint32_t check_param_offset;       /* of one more parameter, the address of a struct ptx2spv_check; 0: there is none */
    bool checks_races, checks_written; /* set by shared_shadow.c: of shared memory, as are the next ones */
    bool checks_barriers, checks_blocks, checks_turns, turns_change, checks_launches;
    uint8_t shared_copies, check_thread_bytes; /* what there is of shared memory, see struct ptx2spv_kernel_info */
    bool writes_unseen;                        /* set by build: the program writes to memory by a function of the system */
    uint32_t check_sites;                      /* set by check.c, as the next one */
    struct ptx2spv_stored check_stored;
    uint32_t declared_param_bytes;
    uint32_t param_bytes;       /* of the parameter block, with the additional parameters */
    uint32_t grid_thread_words; /* 32-bit words that a thread saves from one dispatch to the next; 0: there is only one dispatch */
    bool limits_objects;        /* set by offsets.c: objects in memory have at most PTX2SPV_OBJECT_LIMIT bytes */
    bool needs_native_warps;    /* set by build: there are LANEREAD or MATRIXMAD */
    bool has_native_warps;      /* set by collective */
    bool flushes32;             /* set by flush_mode.c: the device flushes f32 subnormals in this kernel */
    bool whole_warps;           /* set by build: blocks have a multiple of 32 threads */
    bool limits_grid;           /* set by indices.c: launches have at most 2^31 threads in x */
    bool uses_dynamic_shared, reads_shared_size, uses_barrier, uses_fault, uses_timer, uses_images, params_in_buffer;
    /* structured form */
    struct ct_node *body;
    uint32_t n_nodes, n_selectors;
    const char *last_pass;
};

/* The kernel that has fn, which may be the kernel itself. */
static inline struct ct_fn *ct_fn_kernel(struct ct_fn *fn)
{
    return fn->kernel ? fn->kernel : fn;
}

/* ---- building and editing (ir.c) ---- */
struct ct_fn *ct_fn_create(struct ct_compilation *compilation, const struct ptx_module *module, const struct ptx_function *source,
                           const struct ptx2spv_target *target);
struct ct_block *ct_block_create(struct ct_fn *fn);
ct_value ct_value_create(struct ct_fn *fn, enum ct_width width);
enum ct_width ct_width_of_value(const struct ct_fn *fn, ct_value value);
/* Creates an instruction that is in no block, with room for the given counts; results and operands are zero. */
struct ct_insn *ct_insn_create(struct ct_fn *fn, enum ct_op op, enum ptx_type type, uint32_t n_results, uint32_t n_operands);
void ct_insn_append(struct ct_block *block, struct ct_insn *insn);
void ct_insn_insert_before(struct ct_insn *place, struct ct_insn *insn);
void ct_insn_insert_after(struct ct_insn *place, struct ct_insn *insn);
void ct_insn_remove(struct ct_insn *insn);
void ct_block_set_succs(struct ct_fn *fn, struct ct_block *block, uint32_t n, struct ct_block *const *succs);
bool ct_insn_is_pure(const struct ct_insn *insn); /* the operation's flag CT_OPF_PURE, or a PARAM load */
/* Of a LOAD, STORE or ATOM: the number of elements, and the size of one in memory. */
static inline uint32_t ct_element_count(const struct ct_insn *insn)
{
    return insn->op == CT_OP_LOAD ? insn->n_results : insn->op == CT_OP_STORE ? insn->n_operands - 1 : 1;
}
static inline uint32_t ct_element_bytes(const struct ct_insn *insn)
{
    return (ptx_type_bits(insn->type) + 7) / 8;
}
/* The object (index + 1) whose storage the local object `object` (index + 1) shares, usually itself. */
uint32_t ct_local_root(struct ct_fn *fn, uint32_t object);
/* Indexed by root object, in scratch memory: whether an instruction names it, or one that shares its storage. */
bool *ct_fn_find_used_locals(struct ct_fn *fn);

/* The insertion point of new instructions: the end of a block, or before an instruction. The functions that emit return the result. */
struct ct_cursor {
    struct ct_fn *fn;
    struct ct_block *block;
    struct ct_insn *before; /* NULL: at the end of block */
    struct ct_location where;
};
struct ct_insn *ct_emit_insn(struct ct_cursor *at, enum ct_op op, enum ptx_type type, uint32_t n_results, uint32_t n_operands);
ct_value ct_emit_const(struct ct_cursor *at, enum ct_width width, uint64_t bits);
ct_value ct_emit1(struct ct_cursor *at, enum ct_op op, enum ptx_type type, enum ct_width result, ct_value a);
ct_value ct_emit2(struct ct_cursor *at, enum ct_op op, enum ptx_type type, enum ct_width result, ct_value a, ct_value b);
ct_value ct_emit3(struct ct_cursor *at, enum ct_op op, enum ptx_type type, enum ct_width result, ct_value a, ct_value b, ct_value c);
ct_value ct_emit_compare(struct ct_cursor *at, enum ct_op op, enum ptx_type type, enum ptx_compare compare, ct_value a, ct_value b);
/* Copies an instruction; the copy has new results and the same operands. For SSA form. */
struct ct_insn *ct_emit_copy_of(struct ct_cursor *at, const struct ct_insn *insn);
/* Splits `block` before `place`: `place` and all that follows it move to the new block, with the successors. The first part is left
 * without a terminator. In SSA form the predecessor lists of the successors, and so their phis, stay correct; in register form the lists are
 * out of date afterwards. */
struct ct_block *ct_block_split(struct ct_fn *fn, struct ct_block *block, struct ct_insn *place);
/* The same for code that splits a block at many places, from its first to its last, and must not visit all that follows each time: of the
 * instructions of the new block only `place` has insn->block set. The others get it when the new block is cut or adopted. `block` may
 * itself be the result of ct_block_cut. */
struct ct_block *ct_block_cut(struct ct_fn *fn, struct ct_block *block, struct ct_insn *place);
void ct_block_adopt(struct ct_block *block); /* sets insn->block of all instructions */
/* Cuts blocks at instructions that come in the order of the code, those of one block after each other; starts as zeros. */
struct ct_cutter {
    struct ct_block *origin, *rest; /* the block that is being cut, and the part of it that follows the last cut */
};
void ct_cutter_go_to(struct ct_cutter *cutter, struct ct_insn *insn);                             /* sets insn->block */
struct ct_block *ct_cutter_cut(struct ct_fn *fn, struct ct_cutter *cutter, struct ct_insn *insn); /* splits before insn; returns the rest */
void ct_cutter_finish(struct ct_cutter *cutter);                                                  /* sets insn->block of what is left */
/* Removes successor number `successor`, the predecessor entry in its target and, in SSA form, the operands of the phis for it. Updating
 * the terminator is left to the caller. If there are several edges between two blocks, the n-th successor entry belongs to the n-th
 * predecessor entry. */
void ct_block_remove_edge(struct ct_fn *fn, struct ct_block *block, uint32_t successor);
void ct_block_drop_pred(struct ct_block *block, uint32_t index); /* removes the predecessor entry and the operands of the phis only */
/* The instruction that defines a value if it is an integer constant; else NULL. SSA. */
static inline struct ct_insn *ct_constant_or_null(const struct ct_fn *fn, ct_value value)
{
    struct ct_insn *def = fn->values.v[value.i].def;

    return def && def->op == CT_OP_CONST ? def : NULL;
}
/* How often each value is an operand, in scratch memory. */
uint32_t *ct_fn_count_uses(const struct ct_fn *fn);
void ct_fn_compute_defs(struct ct_fn *fn); /* SSA: sets the definition of every value. The pass driver calls it before each pass */

/* ---- analyses (cfg.c); each sets its property in fn->props and needs those before it ---- */
/* In SSA form the known edges keep their order, and phis lose the operands of edges that no longer exist; new edges come last, in order
 * of block ids, and the caller must append the operands for them to the phis of their target. */
void ct_fn_compute_preds(struct ct_fn *fn);
void ct_fn_remove_unreachable(struct ct_fn *fn); /* renumbers the blocks; afterwards preds and rpo are up to date */
/* Whether the last ct_fn_remove_unreachable has kept the block. */
static inline bool ct_block_is_reached(const struct ct_block *block)
{
    return block->id != UINT32_MAX;
}
/* Gives the function an entry block without predecessors, for code that must not run again in each iteration of a loop. Needs preds.
 * Register form only. */
void ct_fn_detach_entry(struct ct_fn *fn);
void ct_fn_compute_rpo(struct ct_fn *fn);
void ct_fn_compute_dominators(struct ct_fn *fn);
/* Adds a parameter that the kernel's declaration does not have; returns its offset, a multiple of 8. */
uint32_t ct_fn_add_param(struct ct_fn *fn, uint32_t size_bytes);
/* Whether the kernel has shared memory or an exchange area. */
bool ct_fn_uses_shared(const struct ct_fn *fn);
void ct_fn_compute_loops(struct ct_fn *fn); /* needs a reducible graph */
/* The blocks in reverse postorder, in scratch memory; valid until the graph changes. */
struct ct_block **ct_fn_rpo_blocks(struct ct_fn *fn, uint32_t *count);
bool ct_block_dominates(const struct ct_block *a, const struct ct_block *b);
/* Whether the block is in the loop of that header, or in a loop in it. Needs loops. */
bool ct_loop_contains(const struct ct_block *header, const struct ct_block *block);
/* Whether the target of each retreating edge (one against reverse postorder) dominates its source. Needs dominators. */
bool ct_fn_is_reducible(struct ct_fn *fn);

/* ---- verifier and dump ---- */
/* Checks the properties in fn->props; dumps the IR, then reports each fault as PTX2SPV_INTERNAL. */
bool ct_fn_verify(struct ct_fn *fn);
char *ct_fn_dump(struct ct_fn *fn, struct ct_arena *arena); /* stable text: it depends on no address and no hash order */

/* ---- passes: see passes.def and pipeline.c ---- */
enum ct_pass_result { CT_PASS_UNCHANGED, CT_PASS_CHANGED, CT_PASS_FAILED };
#define PASS(name, needs, gives, breaks) enum ct_pass_result ct_pass_##name(struct ct_fn *fn);
#include "ptx2spv/module/passes.def"

/* The code of one instance of a function, built into fn in register form. */
struct ct_body {
    struct ct_block *entry;
    CT_VEC(struct ct_block *) returns; /* blocks that end in RET of this instance */
    uint32_t *locals;                  /* local objects (index + 1) of its inputs, then of its results (not for entries) */
};
/* Translates the syntax tree of `source` to IR in register form; calls remain CALL instructions. Used for the kernel itself and, by
 * `inline`, for each call of a function: every call creates new values, blocks and local objects. False after an error was reported. */
bool ct_build_body(struct ct_fn *fn, const struct ptx_function *source, struct ct_body *out);
/* Runs `build` and the passes of passes.def, up to and including the one named `last` (also "build"; NULL: all). False after an error. */
bool ct_fn_run_passes(struct ct_fn *fn, const char *last);
/* Emits SPIR-V from structured IR: sets out->words and n_words, in the compilation's arena (the caller copies them and sets out->info). */
enum ptx2spv_status ct_emit_spirv(struct ct_fn *fn, struct ptx2spv_kernel *out);

#endif
