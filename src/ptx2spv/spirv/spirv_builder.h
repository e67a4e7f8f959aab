/* SPDX-License-Identifier: Apache-2.0 */
/* A SPIR-V module under construction: words by section, ids, each type and constant once, capabilities and extensions as needed. It
 * knows the binary form of SPIR-V but no IR. The output depends on the order of calls only. */
#ifndef PTX2SPV_SPIRV_BUILDER_H
#define PTX2SPV_SPIRV_BUILDER_H

#include "ptx2spv/module/arena.h"

#include <spirv/unified1/spirv.h>
#include <stdbool.h>
#include <stdint.h>

/* In the order of "Logical Layout of a Module". Capabilities and extensions are kept as sets until the end. */
enum ct_spv_section {
    CT_SPV_ENTRY,
    CT_SPV_MODES,
    CT_SPV_DECORATIONS,
    CT_SPV_GLOBALS,
    CT_SPV_IMPORTS,   /* imported functions */
    CT_SPV_VARIABLES, /* the function's head and its variables */
    CT_SPV_PROLOGUE,  /* straight-line code at its start */
    CT_SPV_CODE,
    CT_SPV_FUNCTIONS, /* other functions, complete */
    CT_SPV_SECTION_COUNT
};

enum { CT_SPV_MAX_CAPABILITIES = 32, CT_SPV_MAX_EXTENSIONS = 16, CT_SPV_MAX_IMPORTS = 8, CT_SPV_MAX_PARAMETERS = 4 };

typedef CT_VEC(uint32_t) ct_spv_words;

struct ct_spv_interned {
    uint32_t first, count; /* words in `interned`: opcode, type, operands */
    uint32_t id;
};

struct ct_spv_module {
    struct ct_arena *arena; /* borrowed */
    ct_spv_words sections[CT_SPV_SECTION_COUNT];
    uint32_t bound;    /* ids used so far, plus one */
    uint32_t extended; /* id of the set of extended instructions */
    uint32_t capabilities[CT_SPV_MAX_CAPABILITIES], n_capabilities;
    const char *extensions[CT_SPV_MAX_EXTENSIONS]; /* borrowed literals */
    uint32_t n_extensions;
    struct {
        const char *name; /* borrowed */
        uint32_t id;
    } imports[CT_SPV_MAX_IMPORTS];
    uint32_t n_imports;
    ct_spv_words interned;
    CT_VEC(struct ct_spv_interned) table; /* in order of creation */
    uint32_t *buckets, n_buckets;         /* index in table + 1 */
};

void ct_spv_module_init(struct ct_spv_module *m, struct ct_arena *arena);
uint32_t ct_spv_id(struct ct_spv_module *m);
void ct_spv_capability(struct ct_spv_module *m, SpvCapability capability);
void ct_spv_extension(struct ct_spv_module *m, const char *name);

/* Appends an instruction without a result. */
void ct_spv_emit(struct ct_spv_module *m, enum ct_spv_section section, SpvOp op, const uint32_t *words, uint32_t n);
/* Appends an instruction with a result, and returns its id. type 0: the instruction has no result type. */
uint32_t ct_spv_result(struct ct_spv_module *m, enum ct_spv_section section, SpvOp op, uint32_t type, const uint32_t *words, uint32_t n);
/* The same in CT_SPV_GLOBALS, only once for equal words. */
uint32_t ct_spv_intern(struct ct_spv_module *m, SpvOp op, uint32_t type, const uint32_t *words, uint32_t n);
/* An imported function whose parameters and result have the same type: only once for each name (a string literal). */
uint32_t ct_spv_import(struct ct_spv_module *m, const char *name, uint32_t type, uint32_t n_parameters);
/* Starts another function while one is under construction, in VARIABLES, PROLOGUE and CODE, whose words are kept in `outer`; and ends it, so
 * that the outer one goes on. */
struct ct_spv_outer {
    ct_spv_words variables, prologue, code;
};
void ct_spv_function_begin(struct ct_spv_module *m, struct ct_spv_outer *outer);
void ct_spv_function_end(struct ct_spv_module *m, const struct ct_spv_outer *outer);
/* Appends a string in SPIR-V's encoding to `words`. */
void ct_spv_push_string(struct ct_spv_module *m, ct_spv_words *words, const char *text);

#define CT_SPV_WORDS(...) (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#define CT_SPV_EMIT(m, section, op, ...) ct_spv_emit((m), (section), (op), CT_SPV_WORDS(__VA_ARGS__))
#define CT_SPV_RESULT(m, section, op, type, ...) ct_spv_result((m), (section), (op), (type), CT_SPV_WORDS(__VA_ARGS__))
#define CT_SPV_INTERN(m, op, type, ...) ct_spv_intern((m), (op), (type), CT_SPV_WORDS(__VA_ARGS__))

/* Types. Integers have no sign. Widths other than 32 declare their capability. */
uint32_t ct_spv_type_void(struct ct_spv_module *m);
uint32_t ct_spv_type_bool(struct ct_spv_module *m);
uint32_t ct_spv_type_int(struct ct_spv_module *m, unsigned bits);
uint32_t ct_spv_type_float(struct ct_spv_module *m, unsigned bits);
uint32_t ct_spv_type_vector(struct ct_spv_module *m, uint32_t component, unsigned count);
uint32_t ct_spv_type_pointer(struct ct_spv_module *m, SpvStorageClass storage, uint32_t pointee);
uint32_t ct_spv_const_int(struct ct_spv_module *m, unsigned bits, uint64_t value);
uint32_t ct_spv_const_bool(struct ct_spv_module *m, bool value);
uint32_t ct_spv_const_float(struct ct_spv_module *m, unsigned bits, uint64_t value_bits);
uint32_t ct_spv_null(struct ct_spv_module *m, uint32_t type); /* zero of any type */
uint32_t ct_spv_const_u32(struct ct_spv_module *m, uint32_t value);

void ct_spv_decorate(struct ct_spv_module *m, uint32_t id, SpvDecoration decoration, const uint32_t *words, uint32_t n);
#define CT_SPV_DECORATE(m, id, decoration, ...) ct_spv_decorate((m), (id), (decoration), CT_SPV_WORDS(__VA_ARGS__))

/* The environment that the head of a module declares. */
struct ct_spv_environment {
    uint32_t version;         /* 0x00010600 is 1.6 */
    const char *extended_set; /* name of the set of extended instructions */
    SpvAddressingModel addressing;
    SpvMemoryModel memory;
};
/* The whole module; words in `arena`. */
uint32_t *ct_spv_module_finish(struct ct_spv_module *m, const struct ct_spv_environment *environment, struct ct_arena *arena,
                               size_t *n_words);

#endif
