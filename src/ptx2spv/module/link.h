/* SPDX-License-Identifier: Apache-2.0 */
/* link: merges the syntax trees of several texts into one.
 * In:  trees as the parser produces them.
 * Out: one tree in which each global name denotes one function or variable, and every initializer refers to that; everything that is used is
 * defined. Bodies are not part of it: when one is parsed again, ct_link_bind makes its operands refer to it. A single text is processed in the same way.
 *
 * PTX ISA, "Linking Directives": .visible is a strong definition, .weak is overridden by any other definition, of several .common ones
 * the largest is used, .extern is a reference. Names without any of these are local to their text. The members of a library are included
 * only if they define a name that is otherwise undefined. In a single text, an .extern .shared array that has a size is its own
 * definition, as in ptxas, with a warning. */
#ifndef PTX2SPV_LINK_H
#define PTX2SPV_LINK_H
/* Parts: linker.c. */

#include "ptx2spv/syntax/ast.h"

/* When a tree is included: TEXT: always. MEMBER: if it defines a name that is otherwise undefined. SYSTEM: likewise, but preferred over
 * members: a device's own functions (system_functions.c) replace those of a library that implements them by system calls. */
enum ct_link_kind { CT_LINK_TEXT, CT_LINK_MEMBER, CT_LINK_SYSTEM };

struct ct_link_unit {
    struct ptx_module *tree;
    enum ct_link_kind kind;
    bool is_included;
};

/* All memory is in the compilation's arena. */
struct ct_link {
    struct ct_compilation *compilation;
    CT_VEC(struct ct_link_unit) units; /* in the order of compilation->sources */
    struct ct_symbol **slots;          /* hash table with open addressing, a power of two, at most half full */
    uint32_t n_slots, n_symbols;
    CT_VEC(struct ct_symbol *) undefined; /* symbols that were declared before they were defined */
};

/* Adds a tree. False after reporting that a name conflicts with an earlier tree. */
bool ct_link_add(struct ct_link *link, struct ptx_module *tree, enum ct_link_kind kind);
/* The merged tree, in the order of the trees. NULL after an error. */
struct ptx_module *ct_link_finish(struct ct_link *link);
/* What a function of a linked tree is in the merged one. */
struct ptx_function *ct_linked_function(struct ptx_function *function);
/* Makes the operands of a body, which was parsed again, refer to the functions and variables of the merged tree. */
void ct_link_bind(struct ptx_body *body);

#endif
