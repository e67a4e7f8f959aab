/* SPDX-License-Identifier: Apache-2.0 */
/* Registers in which values are passed through a block that leads to several places, each of which reads registers of its own. Otherwise all of
 * those would be live wherever the block is reached, and in SSA form each would have a phi there with an operand for each jump.
 *
 *     jump to place k:  common = what k reads; other common registers are undefined        place k:  what k reads = common
 */
#ifndef PTX2SPV_PASSED_REGISTERS_H
#define PTX2SPV_PASSED_REGISTERS_H

#include "ptx2spv/ir/builder.h"

/* The common registers, by their width. Initialize with {0}. */
struct ct_passed_registers {
    CT_VEC(ct_value) of_width[CT_W_64 + 1];
};
/* The registers of a place, from the common ones, of which there are more if necessary. */
void ct_passed_receive(struct ct_cursor *at, struct ct_passed_registers *passed, const ct_value *registers, uint32_t n);
/* Of a jump to that place; for all places ct_passed_receive has been called. */
void ct_passed_send(struct ct_cursor *at, struct ct_passed_registers *passed, const ct_value *registers, uint32_t n);

#endif
