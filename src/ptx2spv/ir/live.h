/* SPDX-License-Identifier: Apache-2.0 */
/* Live registers, for IR in register form. */
#ifndef PTX2SPV_LIVE_H
#define PTX2SPV_LIVE_H

#include "ir.h"

struct ct_liveness;
/* In scratch memory; valid until the code changes. */
struct ct_liveness *ct_liveness_create(struct ct_fn *fn);
/* Registers that are live-in of the block, in scratch memory. */
ct_value *ct_live_in(struct ct_liveness *liveness, const struct ct_block *block, uint32_t *out_count);

#endif
