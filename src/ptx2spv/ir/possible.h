/* SPDX-License-Identifier: Apache-2.0 */
/* Which values an integer can have, from the operations that compute it, a few steps back. */
#ifndef PTX2SPV_POSSIBLE_H
#define PTX2SPV_POSSIBLE_H

#include "ptx2spv/ir/ir.h"

enum { CT_POSSIBLE_MAX = 16 }; /* values that ct_possible_values lists */

/* The bits that can be set; at worst all of the value's width. */
uint64_t ct_possible_bits(const struct ct_fn *fn, ct_value value);
/* All values that it can have, some of them perhaps several times, and their number; 0: that is not known. A value that depends on nothing but
 * constants and a few bits of one other value is known: (0x76543210 >> ((x << 2) & 12)) & 0x7777. */
uint32_t ct_possible_values(const struct ct_fn *fn, ct_value value, uint64_t values[CT_POSSIBLE_MAX]);

#endif
