/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of fetch.cu and tensor.cu, which carry out texture and surface instructions, and copies of tensors. */
#ifndef PTX2SPV_TEXTURE_FUNCTIONS_H
#define PTX2SPV_TEXTURE_FUNCTIONS_H

#include "ptx2spv/syntax/ast.h"

/* Gives each texture instruction of a body that is supported, each copy of a tensor and each 128-bit atomic an additional last operand: the
 * function that it calls. If the results are halves (ct_texture_has_halves), the operand before that is the function that converts them. Those
 * functions that tree->helpers lacks are added to it. */
void ct_texture_add_callees(struct ct_compilation *compilation, struct ptx_module *tree, struct ptx_body *body);
/* The PTX that defines such a function; NULL if it is none. */
const char *ct_texture_function_text_or_null(struct ct_compilation *compilation, const char *name);

#endif
