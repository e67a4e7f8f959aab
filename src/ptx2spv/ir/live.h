/* SPDX-License-Identifier: Apache-2.0 */
/* Live registers, for IR in register form. */
#ifndef PTX2SPV_LIVE_H
#define PTX2SPV_LIVE_H

#include "ir.h"

struct ct_liveness;
/* Finds out which registers are live-in of these blocks. In scratch memory. */
struct ct_liveness *ct_liveness_create(struct ct_fn *fn, const struct ct_block *const *blocks, uint32_t n);
/* Those of one of the blocks, in scratch memory, which the caller may change. */
ct_value *ct_live_in(struct ct_liveness *liveness, const struct ct_block *block, uint32_t *out_count);

#endif
