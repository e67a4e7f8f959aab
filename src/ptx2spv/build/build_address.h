/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the instruction families that access memory: addresses, and the attributes of LOAD, STORE and ATOM. */
#ifndef PTX2SPV_BUILD_ADDRESS_H
#define PTX2SPV_BUILD_ADDRESS_H
/* Parts: build_memory.c. */

#include "build.h"

struct ct_address {
    enum ct_space space;
    ct_value base;  /* none for PARAM, and for the frame object `local` */
    int64_t offset; /* bytes */
    uint32_t local; /* index in fn->locals + 1, 0 none */
};

/* Builds address operand `index` in the space that the instruction names. False after an error was reported. */
bool ct_build_address(struct ct_build *b, unsigned index, struct ct_address *out);
/* Sets the attributes that all accesses have: address, semantics, scope, alignment (that of the whole access, which PTX requires). */
void ct_build_access(struct ct_build *b, struct ct_insn *insn, const struct ct_address *address, unsigned bytes);
/* red: applies an operation to a value of `type` in global or shared memory, atomically. */
void ct_build_reduction(struct ct_build *b, const struct ct_address *to, enum ptx_type type, enum ptx_operation operation, ct_value value);
/* Whether the device can make an access of 128 bits of the instruction's scope; an error is reported if not. */
bool ct_build_may_be_wide(struct ct_build *b);
/* Calls the function that is the instruction's last operand (texture_functions.c): an exchange of 128 bits, or a compare-and-swap. Halves are the
 * lower one first. The result is what was there before. */
void ct_build_wide_exchange(struct ct_build *b, const struct ct_address *address, const ct_value value[2], ct_value old[2]);
void ct_build_wide_swap(struct ct_build *b, const struct ct_address *address, const ct_value expected[2], const ct_value value[2],
                        ct_value old[2]);
void ct_build_fence_of(struct ct_build *b, enum ptx_semantics semantics, enum ptx_scope scope);

#endif
