/* SPDX-License-Identifier: Apache-2.0 */
/* A module as the compiler's parts see it. Made by ptx2spv_module_create and never changed afterwards: kernels may be compiled from
 * it by several threads at once, each with a compilation (and arena) of its own. */
#ifndef PTX2SPV_MODULE_H
#define PTX2SPV_MODULE_H

#include "ast.h"
#include "compilation.h"

struct ptx2spv_module {
    struct ct_compilation compilation; /* of the parser; its arena holds everything below but the image */
    const char *text;                  /* the source, our copy; ends with NUL */
    size_t length;
    const struct ptx_module *syntax;
    struct ptx_function **entries; /* by kernel index */
    struct ptx2spv_kernel_decl *kernels;
    uint32_t n_kernels;
    struct ptx2spv_variable *variables;
    uint32_t n_variables;
    struct ptx2spv_relocation *relocations;
    uint32_t n_relocations;
    uint8_t *image; /* malloc'd: may be large and all zero, which an arena would write out */
    uint64_t image_bytes;
    uint32_t image_align;
};

/* Gives each function whose address the module takes its address_number. */
void ptx_number_functions(struct ptx_module *module);

#endif
