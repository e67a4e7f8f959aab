/* SPDX-License-Identifier: Apache-2.0 */
/* A module as the compiler's parts see it. Made by ptx2spv_module_create and never changed afterwards: kernels may be compiled from
 * it by several threads at once, each with a compilation (and arena) of its own. */
#ifndef PTX2SPV_MODULE_H
#define PTX2SPV_MODULE_H

#include "ptx2spv/syntax/ast.h"
#include "compilation.h"

struct ct_module_image {
    uint8_t *bytes; /* malloc'd: may be large and all zero, which an arena would write out */
    uint64_t size_bytes;
    uint32_t align;
};

struct ptx2spv_module {
    struct ct_compilation compilation; /* of the parser; its arena holds everything below but the image, and our copies of the texts */
    struct ptx_module *syntax;
    const bool *uses; /* by input: is it a part of the module? */
    uint32_t n_inputs;
    struct ptx_function **entries; /* by kernel index */
    struct ptx2spv_kernel_decl *kernels;
    uint32_t n_kernels;
    struct ptx2spv_variable *variables;
    uint32_t n_variables;
    struct ptx2spv_relocation *relocations;
    uint32_t n_relocations;
    struct ct_module_image image, managed; /* where there is a managed one, `image` begins with its address */
};

/* Describes the kernels and lays out the variables of module->syntax. */
enum ptx2spv_status ct_module_lay_out(struct ptx2spv_module *module);

/* Gives each function whose address the module takes its address_number. */
void ptx_number_functions(struct ptx_module *module);
/* Whether parameters and results are of the same sizes: more the ISA does not ask to fit. */
bool ptx_same_signature(const struct ptx_function *a, const struct ptx_function *b);
/* Functions that every CUDA device has without a definition. */
bool ptx_is_system_function(const char *name);
/* What __assertfail calls when it has told of itself. It ends the thread, and the kernel is to fail; it has no text. */
#define PTX_ASSERTION_FAILED "__cuttle_assertion_failed"
/* The PTX that defines one of them, with what it needs (system_functions.c). NULL: it is none of ours, or defined. */
const char *ptx_system_function_or_null(const struct ptx_function *function);

#endif
