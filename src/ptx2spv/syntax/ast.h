/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax tree of a PTX module, as the parser produces it: names are resolved to symbols, modifiers to enumerators, and types are
 * checked against opcodes.def; nothing is lowered. The compiler's `build` and the tests' oracle read it.
 *
 * A module keeps no statements. They take 15 times the memory of their text, and most programs use few of the kernels that their modules have. All
 * functions are parsed once, so that errors are found, and what has to be known of the statements is noted; those of the functions that a kernel
 * reaches are parsed again when it is compiled. */
#ifndef PTX2SPV_AST_H
#define PTX2SPV_AST_H
/* Parts: types.c. */

#include "ptx2spv/module/compilation.h"

#include <stdbool.h>
#include <stdint.h>

enum ptx_type {
    PTX_NONE = 0,
#define PTX_TYPE(id, spelling, bits, kind) PTX_##id,
#include "types.def"
    PTX_TYPE_COUNT
};
unsigned ptx_type_bits(enum ptx_type type);
unsigned ptx_type_bytes(enum ptx_type type);   /* in memory */
const char *ptx_type_name(enum ptx_type type); /* "u32" */
bool ptx_type_is_float(enum ptx_type type);
bool ptx_type_is_signed(enum ptx_type type); /* S only */

/* Opcodes: one enumerator for each row of opcodes.def. */
enum ptx_opcode {
    PTX_OP_NONE = 0,
#define PTX_OPCODE(id, ...) PTX_OP_##id,
#include "opcodes.def"
    PTX_OPCODE_COUNT
};
const char *ptx_opcode_name(enum ptx_opcode opcode); /* "add" */

enum ptx_space {
    PTX_SPACE_NONE, /* generic, for ld/st/atom */
    PTX_SPACE_REG,
    PTX_SPACE_SREG,
    PTX_SPACE_CONST,
    PTX_SPACE_GLOBAL,
    PTX_SPACE_LOCAL,
    PTX_SPACE_PARAM,
    PTX_SPACE_SHARED,
    PTX_SPACE_TEX,
};

enum ptx_linkage { PTX_LINK_NONE, PTX_LINK_EXTERN, PTX_LINK_VISIBLE, PTX_LINK_WEAK, PTX_LINK_COMMON };

/* ---- modifiers: one member for each class, 0 = absent ---- */
enum ptx_rounding { PTX_RND_NONE, PTX_RN, PTX_RZ, PTX_RM, PTX_RP, PTX_RNI, PTX_RZI, PTX_RMI, PTX_RPI, PTX_RNA, PTX_RS };
enum ptx_compare {
    PTX_CMP_NONE,
    PTX_EQ,
    PTX_NE,
    PTX_LT,
    PTX_LE,
    PTX_GT,
    PTX_GE,
    PTX_LO,
    PTX_LS,
    PTX_HI,
    PTX_HS,
    PTX_EQU,
    PTX_NEU,
    PTX_LTU,
    PTX_LEU,
    PTX_GTU,
    PTX_GEU,
    PTX_NUM,
    PTX_NAN
};
/* .and .or .xor .cas .exch .add .inc .dec .min .max .popc: boolean operator of setp/set, operation of atom/red/bar.red/redux */
enum ptx_operation { PTX_OPER_NONE, PTX_AND, PTX_OR, PTX_XOR, PTX_CAS, PTX_EXCH, PTX_ADD, PTX_INC, PTX_DEC, PTX_MIN, PTX_MAX, PTX_POPC };
enum ptx_half { PTX_HALF_NONE, PTX_LO_HALF, PTX_HI_HALF, PTX_WIDE }; /* mul.lo .hi .wide */
enum ptx_semantics { PTX_SEM_NONE, PTX_WEAK, PTX_VOLATILE, PTX_RELAXED, PTX_ACQUIRE, PTX_RELEASE, PTX_ACQ_REL, PTX_SC, PTX_MMIO };
enum ptx_scope { PTX_SCOPE_NONE, PTX_CTA, PTX_CLUSTER, PTX_GPU, PTX_SYS };
/* Words that are specific to some opcodes (shfl.up, prmt.f4e, vote.all, shf.wrap, bar.sync, testp.finite, ...). */
enum ptx_mode {
    PTX_MODE_NONE,
    PTX_MODE_UP,
    PTX_MODE_DOWN,
    PTX_MODE_BFLY,
    PTX_MODE_IDX, /* shfl */
    PTX_MODE_ALL,
    PTX_MODE_ANY,
    PTX_MODE_UNI,
    PTX_MODE_BALLOT, /* vote, match */
    PTX_MODE_L,
    PTX_MODE_R, /* shf */
    PTX_MODE_WRAP,
    PTX_MODE_CLAMP, /* shf, bmsk, szext: in `mode2` */
    PTX_MODE_F4E,
    PTX_MODE_B4E,
    PTX_MODE_RC8,
    PTX_MODE_ECL,
    PTX_MODE_ECR,
    PTX_MODE_RC16, /* prmt */
    PTX_MODE_SYNC,
    PTX_MODE_ARRIVE,
    PTX_MODE_RED,
    PTX_MODE_WARP, /* bar, barrier */
    PTX_MODE_FINITE,
    PTX_MODE_INFINITE,
    PTX_MODE_NUMBER,
    PTX_MODE_NOTANUMBER,
    PTX_MODE_NORMAL,
    PTX_MODE_SUBNORMAL, /* testp */
    PTX_MODE_PROXY,     /* fence.proxy.* */
    PTX_MODE_GL,        /* membar.gl */
    PTX_MODE_PACK,      /* cvt.pack; result types that enum ptx_type lacks are in `mode2` */
    PTX_MODE_U4,
    PTX_MODE_S4,
    PTX_MODE_U2,
    PTX_MODE_S2,
    PTX_MODE_ASYNC,
    PTX_MODE_GROUP, /* cp.async (in `mode2`), and its commit_group, wait_group, wait_all */
    PTX_MODE_SHR7,
    PTX_MODE_SHR15,
    PTX_MODE_PLUS_ONE, /* vmad: .shr7 and .shr15; .po in `mode2` */
};

struct ptx_modifiers {
    uint8_t rounding;    /* enum ptx_rounding */
    uint8_t compare;     /* enum ptx_compare */
    uint8_t operation;   /* enum ptx_operation */
    uint8_t half;        /* enum ptx_half */
    uint8_t semantics;   /* enum ptx_semantics */
    uint8_t scope;       /* enum ptx_scope */
    uint8_t space;       /* enum ptx_space */
    uint8_t mode, mode2; /* enum ptx_mode; mode2 is a second word of this kind (shf.l.wrap, bar.warp.sync) */
    uint8_t vector;      /* 2, 4 or 8; 0 scalar */
    bool ftz, sat, approx, full, cc, uni, to /* cvta.to */, sync /* shfl.sync ... */, aligned, noftz, xorsign, absolute, nan, relu, oob,
        shiftamt, nc, satfinite, cache_hint, mmio;
    uint8_t unsupported; /* index + 1 of the instruction's word that is legal PTX and has no member here; 0 none */
};

/* Whether an access is strong in the scope of the system: the host may see it, and it may see the host's. */
static inline bool ptx_is_of_system(const struct ptx_modifiers *mods)
{
    return mods->scope == PTX_SYS || mods->semantics == PTX_VOLATILE || mods->semantics == PTX_MMIO || mods->mmio;
}

/* ---- symbols ---- */
enum ptx_symbol_kind { PTX_SYM_REG, PTX_SYM_VAR, PTX_SYM_FUNC, PTX_SYM_LABEL, PTX_SYM_SREG, PTX_SYM_PROTOTYPE, PTX_SYM_TARGETS };

struct ptx_variable;
struct ptx_function;
struct ct_symbol;

struct ptx_register {
    const char *name; /* "%r12" */
    enum ptx_type type;
    uint8_t vector; /* 2, 4; 0 scalar */
    uint32_t index; /* in body->registers */
};

struct ptx_init {   /* one scalar of an initializer, in order; scalars that are not listed are zero */
    uint64_t index; /* index of the scalar in the variable */
    enum { PTX_INIT_INT, PTX_INIT_FLOAT, PTX_INIT_SYMBOL } kind;
    uint64_t bits;                 /* INT: the value; FLOAT: its bits in the variable's type */
    struct ptx_variable *variable; /* SYMBOL: the address of a variable or function, plus `bits` */
    struct ptx_function *function;
    bool generic;                        /* generic(symbol) */
    uint8_t byte_shift, byte_mask_bytes; /* mask operators 0xFF(sym), 0xFF00(sym): shift right by this many bytes, keep one; 0,0 none */
};

struct ptx_variable {
    const char *name;
    struct ct_location where;
    enum ptx_linkage linkage;
    enum ptx_space space;
    enum ptx_type type;
    uint8_t vector;            /* .v2 .v4; 0 scalar */
    uint32_t align;            /* in bytes, as declared or natural */
    bool is_array, incomplete; /* incomplete: extern name[] */
    uint64_t count;            /* number of scalars: array dimensions times vector width; 1 for a scalar */
    uint64_t size_bytes;
    bool managed;
    uint8_t reference; /* enum ptx2spv_reference, in the space TEX */
    struct ptx_init *inits;
    uint32_t n_inits;
    /* position, set when the module is laid out: image offset for GLOBAL/CONST, segment offset for SHARED, index for PARAM and LOCAL */
    uint64_t offset;
    uint32_t index;
    const struct ptx_function *function; /* the function that declares it, NULL at module scope */
    struct ct_symbol *symbol;            /* as for a function */
    uint32_t last_reference;             /* likewise */
};

/* ---- operands ---- */
enum ptx_operand_kind {
    PTX_OPND_NONE,
    PTX_OPND_REG,     /* reg; component for %r.x and for video selectors */
    PTX_OPND_SREG,    /* special register: sreg, component 0..3 for .x .y .z .w */
    PTX_OPND_INT,     /* bits: the 64-bit two's complement value as written */
    PTX_OPND_FLOAT,   /* bits: the literal as an IEEE double; 0f literals: single_bits has exactly the 32 bits given */
    PTX_OPND_ADDRESS, /* [reg/var/int + offset], or var + offset without brackets (mov): see `bracketed` */
    PTX_OPND_VECTOR,  /* {a, b, ...}: items */
    PTX_OPND_PAIR,    /* a|b: items[0], items[1] */
    PTX_OPND_LABEL,   /* branch target: label */
    PTX_OPND_FUNC,    /* function name */
    PTX_OPND_LIST,    /* ( a, b ) of a call: items */
    PTX_OPND_SINK,    /* _ */
    PTX_OPND_SYMBOL,  /* name of a .branchtargets, .calltargets or .callprototype: targets or prototype */
};

struct ptx_label {
    const char *name;
    struct ct_location where;
    uint32_t statement; /* index in body->instructions of the one that it precedes; their number at the end */
    bool defined;
};

struct ptx_targets { /* .branchtargets / .calltargets */
    const char *name;
    struct ct_location where;
    struct ptx_label **labels;
    struct ptx_function **functions;
    uint32_t n;
};

/* ptx_operand.component of a register with a video selector of one part: the byte or half with that number. */
enum { PTX_SELECTOR_BYTE = 16, PTX_SELECTOR_HALF = 24 };

struct ptx_operand {
    enum ptx_operand_kind kind;
    struct ct_location where;
    bool negated; /* !p */
    bool minus;   /* -a (the signs of literals are part of bits) */
    bool bracketed;
    bool is_single; /* FLOAT: written as 0f........ */
    struct ptx_register *reg;
    int8_t component;   /* -1 none; 0..3: .x .y .z .w (also .r .g .b .a); video selectors .bn, .hn: PTX_SELECTOR_BYTE or _HALF, plus n */
    uint8_t sreg;       /* enum ptx_sreg */
    uint8_t n_selected; /* REG: the selector names several bytes or halves, .b3210 or .h10; `selected` has their numbers, the last first */
    uint8_t selected[4];
    uint64_t bits;
    uint32_t single_bits;
    struct ptx_variable *variable; /* ADDRESS: the base is this variable, and reg the index of one of its scalars; if NULL, reg; if that
                                      is NULL, the absolute address in bits */
    int64_t offset;                /* ADDRESS, in bytes */
    struct ptx_label *label;
    struct ptx_function *function;
    struct ptx_targets *targets;
    struct ptx_operand *items;
    uint32_t n_items;
};

enum ptx_sreg {
    PTX_SREG_NONE,
#define PTX_SREG(id, spelling, type, vector) PTX_SREG_##id,
#include "sregs.def"
    PTX_SREG_COUNT
};

/* ---- statements and functions ---- */
struct ptx_instruction {
    struct ct_location where;
    enum ptx_opcode opcode;
    struct ptx_modifiers mods;
    enum ptx_type types[4]; /* in the order written */
    uint8_t n_types;
    struct ptx_register *guard; /* @p; NULL none */
    bool guard_negated;
    struct ptx_operand *operands; /* in the order written; call: [result LIST or NONE], callee, [argument LIST or NONE], [SYMBOL] */
    uint32_t n_operands;
    const char *text; /* the opcode with all modifiers as written, for diagnostics: "ld.global.nc.v4.f32" */
};

/* The statements of a function, with what they declare. */
struct ptx_body {
    struct ct_arena *arena; /* in which it is */
    CT_VEC(struct ptx_instruction) instructions;
    CT_VEC(struct ptx_register *) registers; /* those of old-style parameters, too */
    CT_VEC(struct ptx_variable *) variables; /* .local, .shared and .param, including nested scopes */
    CT_VEC(struct ptx_label *) labels;
    CT_VEC(struct ptx_targets *) targets;
};

/* A place in a text at which lexing can start. */
struct ptx_position {
    const char *at, *end, *line_start;
    uint32_t line;
    uint16_t source;
};

/* A use of something that is declared at module scope. */
struct ptx_reference {
    struct ptx_function *function; /* one of the two is set */
    struct ptx_variable *variable;
    struct ct_location where; /* of the first use */
    bool takes_address;       /* of the function, by another instruction than a call */
};

struct ptx_function {
    const char *name;
    struct ct_location where;
    enum ptx_linkage linkage;
    bool is_entry, is_prototype; /* .callprototype */
    bool has_body, noreturn;
    bool is_system;               /* defined in system_functions.c: modules may declare it with any prototype, and calls are adapted */
    struct ptx_variable **params; /* inputs, in order; old-style .reg parameters have registers below */
    uint32_t n_params;
    struct ptx_variable **results;
    uint32_t n_results;
    struct ptx_register **param_regs, **result_regs; /* same counts; NULL items where the parameter is .param */
    uint32_t n_header_params;                /* those that the header declares; until PTX ISA 1.3 the body of a kernel declares more */
    CT_VEC(struct ptx_variable *) variables; /* .global and .const variables declared in the body, in order */
    struct ptx_module *text;                 /* the tree of the text that defines it */
    struct ptx_position body;                /* where its '{' is */
    uint32_t n_instructions;
    bool has_cluster_barrier;
    CT_VEC(struct ptx_reference) references; /* of the body, each function and variable once */
    uint32_t last_reference; /* index of the newest reference to this function, in the list of whatever function it was noted for */
    uint32_t number;         /* in the functions of the linked module */
    uint32_t max_ntid[3], req_ntid[3], cluster[3] /* .reqnctapercluster; 0: none */, min_nctapersm, max_nreg;
    uint32_t max_cluster; /* .maxclusterrank; 0: none */
    bool explicit_cluster, blocks_are_clusters;
    uint32_t kernel_index;    /* index among the module's kernels, entries only */
    uint32_t address_number;  /* number among the functions whose address is taken, from 1; 0: it is not taken. Set by functions.c */
    struct ct_symbol *symbol; /* symbol that its name is bound to in all texts of a module, set by link.c; NULL: known in its own text
                                 only */
};

struct ptx_module {
    unsigned isa_version; /* major*10+minor */
    unsigned sm;          /* number in .target (sm_75: 75); the newest of several texts */
    unsigned oldest_sm;   /* the oldest of several texts */
    unsigned address_bits;
    CT_VEC(struct ptx_function *) functions; /* definitions and extern declarations, in source order */
    CT_VEC(struct ptx_function *) helpers;   /* extern declarations of functions that replace instructions; see texture_functions.c */
    CT_VEC(struct ptx_variable *) variables; /* module scope */
    uint64_t const_begin, const_end;         /* where the .const variables are in the module's image; set by ct_module_lay_out */
};

/* cvt.pack: the width of each of the two integers that it packs, and whether they are signed. */
unsigned ptx_pack_bits(const struct ptx_modifiers *mods, enum ptx_type first_type);
bool ptx_pack_is_signed(const struct ptx_modifiers *mods, enum ptx_type first_type);

/* Called for each body that was parsed without an error; the body exists during the call only. */
typedef void ptx_visit(struct ct_compilation *compilation, struct ptx_module *module, struct ptx_function *function, struct ptx_body *body);

/* Parses one of compilation->sources into a module allocated in compilation->arena. NULL after an error was reported. Does not check
 * what needs the whole program (undefined externs): that is done when modules are linked (link.h). */
struct ptx_module *ptx_parse(struct ct_compilation *compilation, uint32_t source, ptx_visit *visit);

/* Parses the body of a function again, in compilation->arena. The module is only read. NULL after an error, which the first time would have had. */
struct ptx_body *ptx_parse_again(struct ct_compilation *compilation, const struct ptx_function *function);

#endif
