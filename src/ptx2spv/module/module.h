/* SPDX-License-Identifier: Apache-2.0 */
/* A module, as used inside the compiler. It is created by ptx2spv_module_create and not changed afterwards: several threads may compile
 * kernels from it at once, each with its own compilation (and arena). */
#ifndef PTX2SPV_MODULE_H
#define PTX2SPV_MODULE_H
/* Parts: functions.c, places.c, system_functions.c. */

#include "ptx2spv/syntax/ast.h"
#include "compilation.h"
#include "image.h"

struct ptx2spv_module {
    struct ct_compilation compilation; /* the parser's compilation; its arena holds everything below except the images, and our copies of
                                          the texts */
    struct ptx_module *syntax;
    const bool *uses; /* by input: whether it is part of the module */
    uint32_t n_inputs;
    struct ptx_function **entries; /* by kernel index */
    struct ptx2spv_kernel_decl *kernels;
    uint32_t n_kernels;
    struct ptx2spv_variable *variables;
    uint32_t n_variables;
    struct ptx2spv_relocation *relocations;
    uint32_t n_relocations;
    struct ct_module_image image, managed; /* if there is a managed image, `image` begins with its address */
};

/* Describes the kernels and lays out the variables of module->syntax. */
enum ptx2spv_status ct_module_lay_out(struct ptx2spv_module *module);

/* Sets the address_number of each function whose address the module takes. */
void ptx_number_functions(struct ptx_module *module);
/* The function that a call names; NULL for calls by address, and for other instructions. */
struct ptx_function *ptx_called_function(const struct ptx_instruction *insn);
/* Of a call by address: the functions that it lists, or NULL; and a function or a prototype with its parameters and results, or NULL. */
struct ptx_targets *ptx_call_targets(const struct ptx_instruction *insn);
struct ptx_function *ptx_call_signature(const struct ptx_instruction *insn);
/* Whether parameters and results have the same sizes; the ISA requires no more for two declarations to match. */
bool ptx_same_signature(const struct ptx_function *a, const struct ptx_function *b);
/* Whether it is a function that every CUDA device provides without a definition in the program. */
bool ptx_is_system_function(const char *name);
/* The function that __assertfail calls after it has written its record. It has no definition: a call ends the thread and makes the
 * kernel fail. */
#define PTX_ASSERTION_FAILED "__cuttle_assertion_failed"
/* Called by 128-bit atomic operations. */
#define PTX_WIDE_ATOMIC "__cuttle_atomic_wide"
/* The PTX that defines such a function, with all that it needs (system_functions.c). NULL: it is not one of ours, or the module defines
 * it. */
const char *ptx_system_function_or_null(const struct ptx_function *function);

#endif
