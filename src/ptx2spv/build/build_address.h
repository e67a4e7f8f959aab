/* SPDX-License-Identifier: Apache-2.0 */
/* Between the families that access memory: where an access goes, and what LOAD, STORE and ATOM carry. */
#ifndef PTX2SPV_BUILD_ADDRESS_H
#define PTX2SPV_BUILD_ADDRESS_H

#include "build.h"

struct ct_address {
    enum ct_space space;
    ct_value base;  /* none: PARAM, or the frame object `local` itself */
    int64_t offset; /* bytes */
    uint32_t local; /* index in fn->locals + 1, 0 none */
};

/* The address operand `index` in the space that the instruction names. False after an error was reported. */
bool ct_build_address(struct ct_build *b, unsigned index, struct ct_address *out);
/* Fills what all accesses share: place, semantics, scope, alignment (that of the whole access, which PTX demands). */
void ct_build_access(struct ct_build *b, struct ct_insn *insn, const struct ct_address *address, unsigned bytes);
void ct_build_fence_of(struct ct_build *b, enum ptx_semantics semantics, enum ptx_scope scope);

#endif
