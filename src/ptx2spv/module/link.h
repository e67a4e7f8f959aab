/* SPDX-License-Identifier: Apache-2.0 */
/* link: the syntax trees of several texts become one.
 * In:  trees as the parser leaves them.   Out: one tree in which each name that is known outside of its text has one meaning, and no
 *      operand or initializer refers to anything else; what is used is defined. A text alone goes the same way.
 *
 * PTX ISA, "Linking Directives": .visible defines, .weak gives way to any other definition, of .common ones the largest stays, .extern
 * refers. What has none of these belongs to its text. Libraries' members come in when something that others lack is defined there. In a
 * text alone an .extern .shared array that has a size is the array itself, as ptxas has it, with a warning. */
#ifndef PTX2SPV_LINK_H
#define PTX2SPV_LINK_H

#include "ptx2spv/syntax/ast.h"

/* How a tree comes into the whole: always; when something that others lack is defined there; or in the same way, but before all others:
 * a device's own functions (system_functions.c) stand before those of a library that implements them by calls of the system. */
enum ct_link_kind { CT_LINK_TEXT, CT_LINK_MEMBER, CT_LINK_SYSTEM };

struct ct_link_unit {
    struct ptx_module *tree;
    enum ct_link_kind kind;
    bool is_taken;
};

/* Everything is in the compilation's arena. */
struct ct_link {
    struct ct_compilation *compilation;
    CT_VEC(struct ct_link_unit) units; /* as compilation->sources */
    struct ct_symbol **slots;          /* open addressing, a power of two, at most half full */
    uint32_t n_slots, n_symbols;
    CT_VEC(struct ct_symbol *) wanted; /* declared when nothing had defined them */
};

/* Adds a tree. False after the error that a name means something else to a tree before. */
bool ct_link_add(struct ct_link *link, struct ptx_module *tree, enum ct_link_kind kind);
/* The whole, in the order of the trees. NULL after an error. */
struct ptx_module *ct_link_finish(struct ct_link *link);

#endif
