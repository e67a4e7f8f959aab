/* SPDX-License-Identifier: Apache-2.0 */
/* Moves registers into the thread's frame. */
#ifndef PTX2SPV_DEMOTE_H
#define PTX2SPV_DEMOTE_H

#include "ptx2spv/ir/ir.h"

/* Gives each register with is_demoted[register] a place in the frame, where every write stores it and every read loads it. Register form, laid
 * out; the entry has no predecessors. False after an error. */
bool ct_demote(struct ct_fn *fn, const bool *is_demoted);

#endif
