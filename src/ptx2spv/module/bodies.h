/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of a module's functions, which are parsed twice: when the module is created, so that errors are found and what has to be known of
 * them is noted in the functions, and in each compilation of a kernel that reaches them. */
#ifndef PTX2SPV_BODIES_H
#define PTX2SPV_BODIES_H

#include "ptx2spv/ir/ir.h"
#include "ptx2spv/syntax/ast.h"

/* What the parser calls the first time: notes what the body refers to. The other one is for system functions, in which no instruction is replaced
 * by a call. */
void ct_body_note(struct ct_compilation *compilation, struct ptx_module *module, struct ptx_function *function, struct ptx_body *body);
void ct_body_note_system(struct ct_compilation *compilation, struct ptx_module *module, struct ptx_function *function,
                         struct ptx_body *body);

/* Parses the body of a function of a linked module again, in the compilation's arena: its operands refer to definitions. If the function has no
 * body, the result is one without instructions. NULL after an error. */
const struct ptx_body *ct_body_parse(struct ct_compilation *compilation, const struct ptx_function *function);

/* The same for one of fn->module's functions; each is parsed once. An error leaves it without instructions. */
const struct ptx_body *ct_fn_body(struct ct_fn *fn, const struct ptx_function *function);

#endif
